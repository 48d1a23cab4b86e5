// exec.c -- see exec.h.
#include "runtime/exec.h"
#include "runtime/init.h"
#include <math.h>
#include <string.h>

// ---- scalars -----------------------------------------------------------------------------------------------------
static void set_int(DevCell *c, uint32_t slot, int64_t v) {
  if (!slot) return;
  memcpy(&c->set[c->nset].bits, &v, 8), c->set[c->nset++].slot = slot;
}
static void set_real(DevCell *c, uint32_t slot, double v) {
  if (!slot) return;
  memcpy(&c->set[c->nset].bits, &v, 8), c->set[c->nset++].slot = slot;
}

static double read_slot(const Exec *x, uint32_t slot, double otherwise) { // all is still
  double v = otherwise;
  if (slot) memcpy(&v, dev_slot(x->dev, slot), 8);
  return v;
}

static bool denominator_zero(const Exec *x) {
  const Plan *p = x->plan;
  for (uint32_t i = 0; i < p->slot.n; i++)
    if (!strncmp(p->slot.at[i].name, "$den", 4) && read_slot(x, i + 1, 1) == 0) return true;
  return false;
}

// A loss that is not finite is no step of training, whatever its gradient is.
static bool objective_finite(const Exec *x, const StepResult *r) {
  for (uint32_t i = 0; i < x->nout; i++)
    if (x->plan->output.at[x->out[i]].coef != 0 && !isfinite(r->out[i])) return false;
  return true;
}

static void read_outputs(const Exec *x, StepResult *r) {
  for (uint32_t i = 0; i < x->nout; i++) r->out[i] = read_slot(x, x->plan->output.at[x->out[i]].slot, 0);
}

// ---- opening -----------------------------------------------------------------------------------------------------
static Status open_schedule(Exec *x) {
  const Plan *p = x->plan;
  ScheduleArg arg[16];
  size_t n = 0;
  Arena *a = arena_create();
  Text why;
  text_init(&why, a);
  for (; n < p->schedule.num.n && n < COUNT(arg); n++)
    arg[n] = (ScheduleArg){p->schedule.num.at[n].name, p->schedule.num.at[n].value, p->schedule.num.at[n].word};
  const char *kind = p->schedule.word ? p->schedule.word : "constant";
  bool made = schedule_make(&x->schedule, kind, arg, n, plan_num(&p->optimizer, "lr", 0), p->steps, &why);
  Status s = made ? 0 : fail(EXIT_INPUT, "the plan's schedule: %s", why.s);
  arena_destroy(a);
  return s;
}

static Status open_scale(Exec *x) {
  const PlanCall *c = &x->plan->loss_scale;
  Arena *a = arena_create();
  ScaleArg *arg = NEW_N(a, ScaleArg, c->num.n + 1);
  Text why;
  text_init(&why, a);
  bool constant = c->word && !strcmp(c->word, "constant");
  for (uint32_t i = 0; i < c->num.n && !constant; i++) arg[i] = (ScaleArg){c->num.at[i].name, c->num.at[i].value};
  bool made = scale_make(&x->scale, constant ? 0 : c->word ? c->word : "none", plan_num(c, "value", 0), arg,
                         constant ? 0 : c->num.n, &why);
  Status s = made ? 0 : fail(EXIT_INPUT, "the plan's loss scale: %s", why.s);
  arena_destroy(a);
  return s;
}

Status exec_init(Exec *x, const Plan *p, Dev *d) {
  *x = (Exec){.plan = p, .dev = d};
  x->beta1 = plan_num(&p->optimizer, "beta1", 0.9), x->beta2 = plan_num(&p->optimizer, "beta2", 0.999);
  x->slot.step = plan_find_slot(p, "$step"), x->slot.sample = plan_find_slot(p, "$sample"),
  x->slot.lr = plan_find_slot(p, "$lr");
  x->slot.bc1 = plan_find_slot(p, "$bc1"), x->slot.bc2 = plan_find_slot(p, "$bc2"),
  x->slot.inv_micro = plan_find_slot(p, "$inv_micro");
  x->slot.grad_norm = plan_find_slot(p, "$grad_norm"), x->slot.ok = plan_find_slot(p, "$ok"),
  x->slot.seed = plan_find_slot(p, "$seed"), x->slot.loss_scale = plan_find_slot(p, "$loss_scale");
  TRY(open_scale(x));
  for (uint32_t i = 0; i < p->slot.n; i++) {               // which random numbers an op draws: by the hash of its path
    if (strncmp(p->slot.at[i].name, "$random:", 8)) continue;
    int64_t hash = path_hash(p->slot.at[i].name + 8);
    memcpy(dev_slot(d, i + 1), &hash, sizeof hash);
  }
  for (uint32_t i = 0; i < p->slot.n; i++) {               // which part of a dim this rank has
    if (strncmp(p->slot.at[i].name, "$at:", 4)) continue;
    int64_t first = 0, n;
    for (uint32_t k = 1; k < p->dim.n; k++)
      if (p->dim.at[k].whole && !strcmp(p->dim.at[k].name, p->slot.at[i].name + 4))
        plan_cut(p, &p->dim.at[k], comm_rank(dev_comm(d)), &first, &n);
    memcpy(dev_slot(d, i + 1), &first, sizeof first);
  }
  for (uint32_t i = 0; i < p->output.n; i++) {
    if (!p->output.at[i].slot) continue;
    if (x->nout == EXEC_OUTPUTS)
      return fail(EXIT_INPUT, "the plan has more than %d scalar outputs", EXEC_OUTPUTS);
    x->out[x->nout++] = i;
  }
  return p->cell.n ? open_schedule(x) : 0;
}

static int64_t samples_of(const Plan *p) {                 // in a microbatch
  return p->input.n > 1 ? plan_whole(p, p->input.at[1].dim[0])->extent : 1;
}

// One function for microbatch j of n
static void run(Exec *x, uint32_t fn, int64_t j, int64_t n) {
  DevCell c = {.fn = fn, .first = j == 0, .last = j == n - 1, .microbatch = j};
  set_int(&c, x->slot.seed, x->plan->seed);
  set_int(&c, x->slot.step, x->step), set_int(&c, x->slot.sample, j * samples_of(x->plan));
  set_real(&c, x->slot.inv_micro, 1 / (double)n), set_real(&c, x->slot.loss_scale, x->scale.value);
  dev_cell(x->dev, &c);
}

Status exec_refresh(Exec *x) {
  uint32_t fn = plan_find_fn(x->plan, "refresh");
  if (fn) run(x, fn, 0, 1);
  return dev_sync(x->dev);
}

// ---- a step ------------------------------------------------------------------------------------------------------
static Status run_cells(Exec *x) {           // all but the update
  const Plan *p = x->plan;
  for (uint32_t i = 0; i + 1 < p->cell.n; i++)
    run(x, p->cell.at[i].fn, p->cell.at[i].microbatch, p->microbatches);
  return dev_sync(x->dev);
}

Status exec_backward(Exec *x, StepResult *r) {
  double begin = now_seconds();
  *r = (StepResult){.step = x->step, .lr = schedule_lr(&x->schedule, x->update), .grad_norm = NAN,
                    .loss_scale = x->scale.value};
  TRY(run_cells(x));
  read_outputs(x, r);
  r->empty = denominator_zero(x);
  r->seconds = now_seconds() - begin;
  return 0;
}

static Status run_update(Exec *x, StepResult *r) {
  double t = (double)x->update + 1;
  DevCell c = {.fn = x->plan->cell.at[x->plan->cell.n - 1].fn, .first = true};
  set_int(&c, x->slot.step, x->step), set_real(&c, x->slot.lr, r->lr);
  set_real(&c, x->slot.loss_scale, r->loss_scale);
  set_real(&c, x->slot.bc1, 1 - pow(x->beta1, t)), set_real(&c, x->slot.bc2, 1 - pow(x->beta2, t));
  dev_cell(x->dev, &c);
  TRY(dev_sync(x->dev));
  r->grad_norm = read_slot(x, x->slot.grad_norm, NAN);
  r->updated = read_slot(x, x->slot.ok, 1) != 0;
  return 0;
}

Status exec_update(Exec *x, StepResult *r) {
  double begin = now_seconds();
  if (!r->empty && objective_finite(x, r)) TRY(run_update(x, r));
  x->step++;
  r->seconds += now_seconds() - begin;
  bool answered = !r->empty && scale_step(&x->scale, r->updated);
  if (r->updated) {
    x->update++, x->in_a_row = 0;
    return 0;
  }
  x->skipped++, x->empty += r->empty, x->in_a_row += !answered;
  return 0;
}

bool exec_stuck(const Exec *x, int64_t most) { return most && x->in_a_row >= most; }

Status exec_repeat(Exec *x, const StepResult *r, bool update) {
  int64_t step = x->step;
  double scale = x->scale.value;
  StepResult again = *r;
  x->step = r->step, x->scale.value = r->loss_scale;
  Status s = update ? run_update(x, &again) : run_cells(x);
  x->step = step, x->scale.value = scale;
  return s;
}

Status exec_eval(Exec *x, int64_t n, StepResult *r) {
  uint32_t prologue = plan_find_fn(x->plan, "prologue"), eval = plan_find_fn(x->plan, "eval");
  double begin = now_seconds();
  *r = (StepResult){.step = x->step};
  if (!eval) return fail(EXIT_INPUT, "the plan has no function eval");
  for (int64_t j = 0; prologue && j < n; j++) run(x, prologue, j, n);
  for (int64_t j = 0; j < n; j++) run(x, eval, j, n);
  TRY(dev_sync(x->dev));
  read_outputs(x, r);
  r->seconds = now_seconds() - begin;
  return 0;
}

Status exec_logits(Exec *x) {
  uint32_t fn = plan_find_fn(x->plan, "logits");
  if (!fn) return fail(EXIT_INPUT, "the plan has no function logits: the model returns no logits");
  run(x, fn, 0, 1);
  return dev_sync(x->dev);
}
