// interp_step.c -- optimizer steps in the interpreter, parameters from and to checkpoints, and `mtc interp`.
#include "compiler/local.h"
#include "runtime/init.h"
#include "runtime/json_text.h"
#include "runtime/safetensors.h"
#include "runtime/scale.h"
#include "runtime/schedule.h"
#include "runtime/tensors.h"
#include <math.h>
#include <string.h>

struct Training {
  Arena *arena;
  Interp *it;
  const Module *m;
  const Fn *prologue, *micro, *update, *refresh;        // 0: the module has none
  Schedule schedule;
  Scale scale;
  double beta1, beta2, *output;
  // batch: samples of a microbatch; updates: that were not skipped
  int64_t batch, microbatches, step, updates;
};

// ---- settings -----------------------------------------------------------------------------------------------------
static Status read_schedule(Training *t) {
  const Setting *s = setting_find(t->m, "train.schedule");
  uint32_t n = s && s->kind == SET_call ? s->narg : 0;
  ScheduleArg *arg = NEW_N(t->arena, ScheduleArg, n + 1);
  for (uint32_t i = 0; i < n; i++) 
    arg[i] = (ScheduleArg){s->arg[i].path, s->arg[i].num, s->arg[i].kind == SET_word ? s->arg[i].word : 0};
  Text why;
  text_init(&why, t->arena);
  const char *kind = s ? setting_word(t->m, "train.schedule", "constant") : "constant";
  double lr = setting_num(t->m, "train.optimizer.lr", 0);
  if (schedule_make(&t->schedule, kind, arg, n, lr, (int64_t)setting_num(t->m, "train.steps", 1), &why)) return EXIT_OK;
  return fail(EXIT_COMPILE, "train.schedule: %s", why.s);
}

static Status read_scale(Training *t) {
  const Setting *s = setting_find(t->m, "precision.loss_scale");
  uint32_t n = s ? s->narg : 0;
  ScaleArg *arg = NEW_N(t->arena, ScaleArg, n + 1);
  for (uint32_t i = 0; i < n; i++) arg[i] = (ScaleArg){s->arg[i].path, s->arg[i].num};
  Text why;
  text_init(&why, t->arena);
  if (scale_make(&t->scale, !s ? "none" : s->kind == SET_num ? 0 : s->word, s ? s->num : 0, arg, n, &why)) return EXIT_OK;
  return fail(EXIT_COMPILE, "precision.loss_scale: %s", why.s);
}

Status training_create(Arena *a, Interp *it, Training **out) {
  const Module *m = it->m;
  Training *t = *out = NEW(a, Training);
  *t = (Training){.arena = a, .it = it, .m = m, .batch = 1};
  t->beta1 = setting_num(m, "train.optimizer.beta1", 0), t->beta2 = setting_num(m, "train.optimizer.beta2", 0);
  t->prologue = fn_find(m, intern(m->in, "prologue")), t->micro = fn_find(m, intern(m->in, "micro"));
  t->update = fn_find(m, intern(m->in, "update")), t->refresh = fn_find(m, intern(m->in, "refresh"));
  if (!t->micro) return fail(EXIT_INTERNAL, "the module has no function 'micro'");
  t->output = NEW_N(a, double, m->output.n + 1);
  for (DimId d = 1; d < m->dim.n; d++)
    if (dim_of(m, d)->sample && dim_of(m, d)->root == d) t->batch = MAX(dim_of(m, d)->extent, 1);
  int64_t samples = (int64_t)setting_num(m, "train.global_batch", (double)t->batch);
  if (samples < 1 || samples % t->batch)
    return fail(EXIT_COMPILE, "train.global_batch is %lld, a microbatch has %lld samples; it must divide",
                (long long)samples, (long long)t->batch);
  t->microbatches = samples / t->batch;
  TRY(read_scale(t));
  return read_schedule(t);
}

int64_t training_samples(const Training *t) { return t->batch * t->microbatches; }

// ---- one step -----------------------------------------------------------------------------------------------------
static VarId scalar(const Training *t, const char *name) { return var_find(t->m, intern(t->m->in, name)); }
static void scalar_set(Training *t, const char *name, double v) {
  VarId var = scalar(t, name);
  if (var) interp_set(t->it, var, &v);
}
static Status scalar_get(Training *t, const char *name, double otherwise, double *v) {
  VarId var = scalar(t, name);
  *v = otherwise;
  return !var || interp_get(t->it, var, v) ? EXIT_OK : fail(EXIT_INTERNAL, "%s", interp_fault(t->it));
}

static Status run(Training *t, const Fn *f, const double *const *in) {
  return !f || interp_run(t->it, f, in, 0) ? EXIT_OK : fail(EXIT_INTERNAL, "interpreter: %s", interp_fault(t->it));
}

static const Feed *feed_find(const Feed *feed, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(feed[i].name, name)) return &feed[i];
  return 0;
}

// microbatch j of a step through one function
static Status run_microbatch(Training *t, const Fn *f, const Feed *feed, uint32_t nfeed, int64_t j) {
  if (!f) return EXIT_OK;
  const double **in = pool_get(t->it, (f->arg.n + 1) * sizeof *in);
  Status s = EXIT_OK;
  for (uint32_t i = 0; i < f->arg.n; i++) {
    const Type *type = val_type(f, f->arg.at[i]);
    const Feed *from = feed_find(feed, nfeed, f->val.at[f->arg.at[i]].name);
    if (!from) { s = fail(EXIT_INPUT, "input '%s' is not fed", f->val.at[f->arg.at[i]].name); break; }
    bool sampled = false;
    for (int k = 0; k < type->ndim; k++) sampled |= dim_of(t->m, type->dim[k])->sample;
    if (sampled && !dim_of(t->m, type->dim[0])->sample) {
      s = fail(EXIT_COMPILE, "input '%s': the dim that counts samples must be its first", from->name);
      break;
    }
    in[i] = from->at + (sampled ? j * interp_count(t->m, f->val.at[f->arg.at[i]].type) : 0);
  }
  scalar_set(t, "$sample", (double)(j * t->batch));
  interp_first(t->it, j == 0);
  if (!s) s = run(t, f, in);
  pool_put(t->it, in);
  return s;
}

static Status read_outputs(Training *t) {
  for (uint32_t i = 0; i < t->m->output.n; i++)
    TRY(scalar_get(t, arena_printf(t->arena, "$out.%s", t->m->output.at[i].name), NAN, &t->output[i]));
  return EXIT_OK;
}

// A loss that is not finite is no step of training, whatever its gradient is.
static bool objective_finite(const Training *t) {
  for (uint32_t i = 0; i < t->m->output.n; i++)
    if (t->m->output.at[i].coef != 0 && !isfinite(t->output[i])) return false;
  return true;
}

static Status denominator_zero(Training *t, bool *zero) {
  for (uint32_t k = 0; scalar(t, arena_printf(t->arena, "$den%u", k)); k++) {
    double den;
    TRY(scalar_get(t, arena_printf(t->arena, "$den%u", k), 1, &den));
    *zero |= den == 0;
  }
  return EXIT_OK;
}

Status training_step(Training *t, const Feed *feed, uint32_t nfeed, void (*before_update)(void *), void *arg,
                     StepLog *log) {
  scalar_set(t, "$step", (double)t->step);
  scalar_set(t, "$inv_micro", 1 / (double)t->microbatches);
  scalar_set(t, "$loss_scale", t->scale.value);
  for (int64_t j = 0; j < t->microbatches; j++) TRY(run_microbatch(t, t->prologue, feed, nfeed, j));
  for (int64_t j = 0; j < t->microbatches; j++) TRY(run_microbatch(t, t->micro, feed, nfeed, j));
  if (before_update) before_update(arg);
  *log = (StepLog){.lr = schedule_lr(&t->schedule, t->updates), .loss_scale = t->scale.value, .output = t->output};
  TRY(read_outputs(t));
  scalar_set(t, "$lr", log->lr);
  scalar_set(t, "$bc1", 1 - pow(t->beta1, (double)(t->updates + 1)));
  scalar_set(t, "$bc2", 1 - pow(t->beta2, (double)(t->updates + 1)));
  interp_first(t->it, true);
  double ok = 0;
  log->grad_norm = NAN;
  if (objective_finite(t)) {
    TRY(run(t, t->update, 0));
    TRY(scalar_get(t, "$ok", t->update != 0, &ok));
    TRY(scalar_get(t, "$grad_norm", NAN, &log->grad_norm));
  }
  bool empty = false;
  TRY(denominator_zero(t, &empty));
  log->updated = ok != 0;
  if (!empty) scale_step(&t->scale, log->updated);
  t->updates += log->updated, t->step++;
  return EXIT_OK;
}

// ---- checkpoints --------------------------------------------------------------------------------------------------
// a parameter as an array without padding
static Status pieces_of(const Training *t, const Var *param, DType dtype, Storage *s, Pieces *p) {
  *s = var_storage(t->m, param);
  s->dtype = dtype;
  const char *why = storage_pieces(t->arena, s, p);
  return why ? fail(EXIT_COMPILE, "%s", why) : EXIT_OK;
}

static const PlanInit plan_init[INIT_COUNT] = {
  [INIT_zeros] = PINIT_zeros, [INIT_ones] = PINIT_ones, [INIT_normal] = PINIT_normal, [INIT_uniform] = PINIT_uniform};

Status training_draw(Training *t) {
  Arena *a = arena_create();
  Work *work = 0;
  Status status = work_create(a, 1, &work);
  for (VarId v = 1; v < t->m->var.n && !status; v++) {
    const Var *var = &t->m->var.at[v];
    Storage s;
    Pieces p = {0};
    if (var->kind != VAR_param || (status = pieces_of(t, var, DT_f64, &s, &p))) continue;
    double *whole = NEW_N(a, double, interp_count(t->m, var->type));
    init_values(work, &s, plan_init[var->init], var->a, var->b, (int64_t)t->it->seed, whole);
    interp_set(t->it, v, whole);
  }
  work_destroy(work);
  arena_destroy(a);
  return status ? status : run(t, t->refresh, 0);
}

static Status load_piece(const Storage *s, const Piece *p, const Safetensors *file, Map *used, double *whole,
                         Arena *a) {
  const Tensor *from = 0;
  for (int i = 0; !from && tensor_alias(a, p->name, i); i++) from = safetensors_find(file, tensor_alias(a, p->name, i));
  if (!from) return fail(EXIT_INPUT, "%s has no tensor '%s'", file->path, p->name);
  if (!piece_fits(s, p, from->ndim, from->shape))
    return fail(EXIT_INPUT, "%s", piece_mismatch(a, s, p, file->path, from->ndim, from->shape));
  map_put(used, hash_bytes(from->name, strlen(from->name), 0), 1);
  double *values = NEW_N(a, double, p->count);
  TRY(tensor_read(file, from, 0, p->count, DT_f64, values));
  piece_put(p, s, whole, 0, p->count, DT_f64, values);
  return EXIT_OK;
}

static bool repeats_another(const char *name, const Map *used) {
  for (int i = 0; tensor_tied(name, i); i++)
    if (map_get(used, hash_bytes(tensor_tied(name, i), strlen(tensor_tied(name, i)), 0))) return true;
  return false;
}

static Status load_parameters(Training *t, const Safetensors *file, Arena *a) {
  Map used;
  map_init(&used, a);
  for (VarId v = 1; v < t->m->var.n; v++) {
    const Var *var = &t->m->var.at[v];
    Storage s;
    Pieces p = {0};
    if (var->kind != VAR_param) continue;
    TRY(pieces_of(t, var, DT_f64, &s, &p));
    double *whole = NEW_N(a, double, interp_count(t->m, var->type));
    for (uint32_t i = 0; i < p.n; i++) TRY(load_piece(&s, &p.at[i], file, &used, whole, a));
    interp_set(t->it, v, whole);
  }
  for (uint32_t i = 0; i < file->tensor.n; i++) {
    const char *name = file->tensor.at[i].name;
    if (!map_get(&used, hash_bytes(name, strlen(name), 0)) && !tensor_ignored(name) && !repeats_another(name, &used))
      return fail(EXIT_INPUT, "%s: the model has no parameter '%s'", file->path, name);
  }
  return run(t, t->refresh, 0);
}

Status training_load(Training *t, const char *path) {
  Arena *a = arena_create();
  Safetensors file;
  Status s = safetensors_open(a, path, &file);
  if (!s) {
    s = load_parameters(t, &file, a);
    safetensors_close(&file);
  }
  arena_destroy(a);
  return s;
}

Status training_save(Training *t, const char *path, VarKind kind) {
  Arena *a = arena_create();
  VEC(Tensor) out = {0};
  Status status = EXIT_OK;
  for (VarId v = 1; v < t->m->var.n && !status; v++) {
    const Var *var = &t->m->var.at[v];
    if (var->kind != kind) continue;
    const Var *param = kind == VAR_param ? var : &t->m->var.at[var->of];
    DType in = t->m->type.at[var->type].dtype, as = in == DT_f64 || in == DT_float ? DT_f64 : DT_f32;
    Storage s;
    Pieces p = {0};
    double *whole = NEW_N(a, double, interp_count(t->m, var->type));
    if ((status = pieces_of(t, param, DT_f64, &s, &p))) break;
    if (!interp_get(t->it, v, whole)) status = fail(EXIT_INTERNAL, "interpreter: %s", interp_fault(t->it));
    for (int64_t i = 0; kind == VAR_grad && i < interp_count(t->m, var->type); i++) whole[i] /= t->scale.value;
    for (uint32_t i = 0; i < p.n && !status; i++) {
      int64_t *shape = NEW_N(a, int64_t, STORAGE_DIMS);
      void *data = arena_alloc(a, (size_t)p.at[i].count * dtype_bytes(as));
      memcpy(shape, p.at[i].shape, sizeof p.at[i].shape);
      piece_get(&p.at[i], &s, whole, 0, p.at[i].count, as, data);
      vec_push(a, &out,
               (Tensor){.name = p.at[i].name,
                        .dtype = as,
                        .ndim = p.at[i].ndim,
                        .shape = shape,
                        .count = p.at[i].count,
                        .bytes = p.at[i].count * (int64_t)dtype_bytes(as),
                        .data = data});
    }
  }
  if (!status) status = safetensors_write(a, path, out.at, out.n, 0, 0, 0);
  arena_destroy(a);
  return status;
}

// ---- the command --------------------------------------------------------------------------------------------------
typedef struct { Feed feed[64]; uint32_t n; int64_t steps, size[64]; } Batches;      // size: values of a step

// [steps, microbatches, batch, …]: the dims between the first and a sample's own are the samples of a step
static Status read_input(const Training *t, const Safetensors *file, Str name, TypeId type, Arena *a, Batches *b) {
  const Tensor *in = safetensors_find(file, name);
  int64_t sample = interp_count(t->m, type) / t->batch;
  for (uint32_t i = 0; i < b->n; i++)
    if (b->feed[i].name == name) return EXIT_OK;
  if (!in || !in->ndim) return fail(EXIT_INPUT, "%s has no tensor '%s' of several steps", file->path, name);
  int64_t steps = in->shape[0], size = steps ? in->count / steps : 0;
  if (size != sample * training_samples(t))
    return fail(EXIT_INPUT, "%s: '%s' is %s: %lld values a step, a step has %lld samples of %lld", file->path, name,
                shape_text(a, in->ndim, in->shape), (long long)size, (long long)training_samples(t), (long long)sample);
  if (b->n == COUNT(b->feed)) return fail(EXIT_INPUT, "more than %zu inputs", COUNT(b->feed));
  double *values = NEW_N(a, double, in->count);
  b->steps = b->n ? MIN(b->steps, steps) : steps;
  b->size[b->n] = size, b->feed[b->n++] = (Feed){name, values};
  return tensor_read(file, in, 0, in->count, DT_f64, values);
}

static Status read_batches(const Training *t, const char *path, Arena *a, Batches *b) {
  Safetensors file;
  const Fn *fns[] = {t->prologue, t->micro};
  Status s = EXIT_OK;
  TRY(safetensors_open(a, path, &file));
  for (size_t k = 0; k < COUNT(fns); k++)
    for (uint32_t i = 0; fns[k] && i < fns[k]->arg.n && !s; i++) {
      const Value *v = &fns[k]->val.at[fns[k]->arg.at[i]];
      s = read_input(t, &file, v->name, v->type, a, b);
    }
  safetensors_close(&file);
  return s;
}

static void log_step(Text *json, const Training *t, int64_t step, const StepLog *log) {
  text_printf(json, "{\"step\": %lld", (long long)step);
  for (uint32_t i = 0; i < t->m->output.n; i++) {
    text_printf(json, ", ");
    text_json(json, t->m->output.at[i].name);
    text_puts(json, ": ");
    text_json_number(json, log->output[i]);
    if (!isfinite(log->output[i]) && !strcmp(t->m->output.at[i].name, "loss"))
      text_printf(json, ", \"loss_state\": \"%s\"", isnan(log->output[i]) ? "nan" : "inf");
  }
  text_puts(json, ", \"grad_norm\": ");
  text_json_number(json, log->grad_norm);
  text_puts(json, ", \"lr\": ");
  text_json_number(json, log->lr);
  text_puts(json, ", \"loss_scale\": ");
  text_json_number(json, log->loss_scale);
  text_printf(json, ", \"updated\": %s}\n", log->updated ? "true" : "false");
}

static void print_step(FILE *to, const Training *t, int64_t step, const StepLog *log) {
  fprintf(to, "step %4lld", (long long)step);
  for (uint32_t i = 0; i < t->m->output.n; i++) fprintf(to, "  %s %.10g", t->m->output.at[i].name, log->output[i]);
  fprintf(to, "  grad_norm %.6g  lr %.4g%s\n", log->grad_norm, log->lr, log->updated ? "" : "  (no update)");
  fflush(to);
}

// --log-json -: standard output is the log's, as with mtrun.
static bool logs_to_stdout(const InterpOptions *o) { return o->log_json && !strcmp(o->log_json, "-"); }

static Status write_log(const InterpOptions *o, const Text *json) {
  if (!o->log_json) return EXIT_OK;
  if (!logs_to_stdout(o)) return file_write(o->log_json, json->s, json->n);
  fwrite(json->s, 1, json->n, stdout);
  return EXIT_OK;                            // main tells what standard output did not take
}

typedef struct { Training *t; const char *path; Status status; } SaveGrads;
static void save_grads(void *arg) {
  SaveGrads *g = arg;
  g->status = training_save(g->t, g->path, VAR_grad);
}

static Status run_steps(Training *t, const InterpOptions *o, const Batches *b, Text *json) {
  int64_t steps = o->steps ? o->steps : (int64_t)setting_num(t->m, "train.steps", 1);
  if (steps > b->steps)
    return fail(EXIT_INPUT, "%s holds %lld steps, %lld are to be made", o->batches, (long long)b->steps,
                (long long)steps);
  for (int64_t step = 0; step < steps; step++) {
    Feed feed[COUNT(b->feed)];
    StepLog log;
    SaveGrads grads = {.t = t, .path = o->grads};
    for (uint32_t i = 0; i < b->n; i++) feed[i] = (Feed){b->feed[i].name, b->feed[i].at + step * b->size[i]};
    TRY(training_step(t, feed, b->n, o->grads && !step ? save_grads : 0, &grads, &log));
    TRY(grads.status);
    log_step(json, t, step, &log);
    print_step(logs_to_stdout(o) ? stderr : stdout, t, step, &log);
  }
  return EXIT_OK;
}

Status interp_command(Arena *a, const Module *m, const InterpOptions *o) {
  Training *t;
  Batches b = {.n = 0};
  Text json;
  text_init(&json, a);
  if (!o->batches) return fail(EXIT_USAGE, "interp needs --batches FILE");
  TRY(training_create(a, interp_create(a, m), &t));
  TRY(o->init ? training_load(t, o->init) : training_draw(t));
  TRY(read_batches(t, o->batches, a, &b));
  TRY(run_steps(t, o, &b, &json));
  if (o->final) TRY(training_save(t, o->final, VAR_param));
  return write_log(o, &json);
}
