// overlap.c -- collectives beside computation, in plans of meshes: the verifier refuses a plan in which one is waited for
// a step later, starts before what it sends is there, or does not keep its bytes until then.
//
// usage: overlap PLAN…
#include "runtime/plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static char **plans;
static int nplans;

typedef struct { Plan *p; PlanFn *f; PlanIns *was; } Change;

static Change change(Plan *p, PlanFn *f) {
  Change c = {p, f, NEW_N(p->arena, PlanIns, f->ins.n)};
  memcpy(c.was, f->ins.at, f->ins.n * sizeof *c.was);
  return c;
}
static void restore(const Change *c) { memcpy(c->f->ins.at, c->was, c->f->ins.n * sizeof *c->was); }

static bool verifies(const Plan *p) {
  Arena *a = arena_create();
  bool right = !plan_verify(p, a);
  arena_destroy(a);
  return right;
}

static bool is_event(const Plan *p, const PlanIns *in, PlanOp op, const char *name) {
  return in->op == op && in->stream == STREAM_compute && !strcmp(p->event.at[in->what].name, name);
}
static bool computes(const PlanIns *in) {
  return in->stream == STREAM_compute && in->op != PI_wait && in->op != PI_record;
}

static void move(PlanFn *f, uint32_t from, uint32_t to) {
  PlanIns in = f->ins.at[from];
  for (; from < to; from++) f->ins.at[from] = f->ins.at[from + 1];
  for (; from > to; from--) f->ins.at[from] = f->ins.at[from - 1];
  f->ins.at[to] = in;
}

static PlanArg *sent_by(const Plan *p, const PlanFn *f, uint32_t record) {      // what the collective that starts here sends
  while (f->ins.at[record].op != PI_coll) record++;
  return &p->arg.at[f->ins.at[record].arg + 1];
}

// The collective that sends values without dims is waited for at once, needed or not; they end in the order in which
// they start.
static bool sends_scalars(const Plan *p, const PlanFn *f, uint32_t nth) {
  uint32_t i = 0;
  for (; f->ins.at[i].op != PI_coll || nth--; i++) continue;
  const PlanBuffer *b = &p->buffer.at[p->arg.at[f->ins.at[i].arg + 1].buffer];
  return b->mem == MEM_scalars || ends_with(b->name, ".scalars");
}

static void late(Plan *p, PlanFn *f, int *n) {
  uint32_t waits = 0;
  for (uint32_t i = 0; i + 1 < f->ins.n; i++) {
    if (!is_event(p, &f->ins.at[i], PI_wait, "comm.done")) continue;
    if (sends_scalars(p, f, waits++) || !computes(&f->ins.at[i + 1])) continue;
    Change c = change(p, f);
    move(f, i, i + 1);
    if (verifies(p)) fail_msg("%s: the wait %u may come later", f->name, i);
    restore(&c), ++*n;
    memmove(f->ins.at + i, f->ins.at + i + 1, (--f->ins.n - i) * sizeof *f->ins.at);
    if (verifies(p)) fail_msg("%s: the wait %u may go", f->name, i);
    f->ins.n++, restore(&c);
  }
}

static void early(Plan *p, PlanFn *f, int *n) {
  for (uint32_t i = 0; i < f->ins.n; i++) {
    if (!is_event(p, &f->ins.at[i], PI_record, "comm.ready")) continue;
    if (p->buffer.at[sent_by(p, f, i)->buffer].mem != MEM_activations) continue;
    Change c = change(p, f);
    move(f, i, 0);
    if (verifies(p)) fail_msg("%s: the start %u may come first", f->name, i);
    restore(&c), ++*n;
  }
}

// A step between start and wait makes its result where the collective still reads.
static void reused(Plan *p, PlanFn *f, int *n) {
  const PlanArg *sent = 0;
  for (uint32_t i = 0; i < f->ins.n; i++) {
    const PlanIns *in = &f->ins.at[i];
    if (is_event(p, in, PI_record, "comm.ready")) sent = sent_by(p, f, i);
    if (is_event(p, in, PI_wait, "comm.done")) sent = 0;
    if (!sent || !computes(in) || in->op != PI_gemm) continue;
    PlanBuffer *b = &p->buffer.at[p->arg.at[in->arg].buffer], was = *b;
    const PlanBuffer *at = &p->buffer.at[sent->buffer];
    if (b->mem != MEM_activations || at->mem != MEM_activations || b == at) continue;
    b->at = at->at;
    if (b->at + b->bytes <= p->memory[b->mem]) {
      if (verifies(p)) fail_msg("%s: step %u may overwrite what is sent", f->name, i);
      ++*n;
    }
    *b = was;
  }
}

static void plans_test(void **state) {
  int lates = 0, earlies = 0, uses = 0;
  (void)state;
  for (int i = 0; i < nplans; i++) {
    Arena *a = arena_create();
    Plan *p;
    assert_int_equal(plan_load(a, plans[i], &p), 0);
    for (uint32_t f = 1; f < p->fn.n; f++)
      late(p, &p->fn.at[f], &lates), early(p, &p->fn.at[f], &earlies), reused(p, &p->fn.at[f], &uses);
    assert_true(verifies(p));
    arena_destroy(a);
  }
  assert_true(lates > 30 && earlies > 30 && uses > 2);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_test)};
  plans = argv + 1, nplans = argc - 1;
  return cmocka_run_group_tests(tests, 0, 0);
}
