// empty.c -- K04, github.com/NVIDIA/Fuser/issues/264: reductions, products and scans over no entries, beside values that have
// some; by the kernels' evaluator and compiled. (A model text cannot say a dim of extent 0, the graph can.)
#include "compiler/kernel.h"
#include "passes/emit.h"
#include "passes/pass.h"
#include "runtime/dev.h"
#include "tests/backend/replay.h"
#include <math.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const char text[] =
  "dim b = 1 sample\n"
  "dim a = 3\n"
  "dim z = 0\n"
  "dim y = 0 of z\n"
  "dim m = 2\n"
  "fn eval(%1 x: f64[b, a, z], %2 u: f64[b, m, z], %3 w: f64[b, a]) -> "
  "(total: %4, largest: %5, product: %7, least: %9, scan: %10, mixed: %13, none: %15) {\n"
  "  %4 = sum[z](%1)\n"
  "  %5 = reduce_max[z](%1)\n"
  "  %7 = dot[z](%1, %2)\n"
  "  %8 = const -7 : f64[]\n"
  "  %9 = max(%5, %8)\n"
  "  %10 = cumsum[z](%1)\n"
  "  %11 = expand[z](%3)\n"
  "  %12 = sum[z](%11)\n"
  "  %13 = add(%12, %3)\n"
  "  %14 = mul(%1, %11)\n"
  "  %15 = sum[a, z](%14)\n"
  "}\n";

static Module *module(Arena *a) {
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  Module *m = ir_parse(a, intern_create(a), d, diag_source(d, "empty.ir", text, sizeof text - 1));
  assert_non_null(m);
  assert_true(ir_verify(m, "text") && pass_simplify(m) && pass_select(m) && ir_verify(m, "select"));
  return m;
}

static const double w[] = {1, 2, 3};

// Of an output: how many values, and which.
static const struct { const char *name; int64_t n; double value[6]; } wanted[] = {
  {"total", 3, {0, 0, 0}},   {"largest", 3, {-INFINITY, -INFINITY, -INFINITY}}, {"product", 6, {0}}, {"least", 3, {-7, -7, -7}},
  {"scan", 0, {0}},          {"mixed", 3, {1, 2, 3}},                           {"none", 1, {0}}};

static void right(const Plan *p, uint32_t i, const double *got) {
  const PlanOutput *o = &p->output.at[i];
  size_t k = 0;
  while (k < COUNT(wanted) && strcmp(wanted[k].name, o->name)) k++;
  assert_true(k < COUNT(wanted));
  assert_int_equal(plan_count(p, o->dim, o->ndim, false), wanted[k].n);
  for (int64_t j = 0; j < wanted[k].n; j++)
    if (got[j] != wanted[k].value[j]) fail_msg("%s[%lld] is %g, not %g", o->name, (long long)j, got[j], wanted[k].value[j]);
}

static void evaluated_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  const Kernel *const *kernels;
  const Tile *const *tiles;
  Plan *p = emit(module(a), (EmitOptions){.model = "empty", .kernels = &kernels, .tiles = &tiles});
  assert_null(plan_verify(p, a));
  Replay r;
  replay_init(&r, a, p, kernels, tiles);
  replay_run(&r, "eval", true, (const double *const[]){w, w, w});
  double got[8];
  assert_int_equal(p->output.n, COUNT(wanted));
  for (uint32_t i = 0; i < p->output.n; i++) {
    const PlanOutput *o = &p->output.at[i];
    replay_values(p, o->dim, o->ndim, o->dtype, replay_at(&r, (PlanArg){o->buffer, 0}), got);
    right(p, i, got);
  }
  arena_destroy(a);
}

static Status feed(void *with, uint32_t input, int64_t microbatch, void *to) {
  const Plan *p = with;
  (void)microbatch;
  if (!strcmp(p->input.at[input].name, "w")) memcpy(to, w, sizeof w);
  return 0;
}

static void compiled_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Plan *p = emit(module(a), (EmitOptions){.model = "empty"});
  Dev *d;
  assert_int_equal(dev_open(a, p, (DevOptions){.threads = 2}, &d), 0);
  dev_feed(d, feed, p);
  dev_cell(d, &(DevCell){.fn = plan_find_fn(p, "eval"), .first = true});
  assert_int_equal(dev_sync(d), 0);
  for (uint32_t i = 0; i < p->output.n; i++) right(p, i, dev_at(d, (PlanArg){p->output.at[i].buffer, 0}));
  dev_close(d);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(evaluated_test), cmocka_unit_test(compiled_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
