// Composites through their bodies, on a mesh and on one rank: the body's types are whole, its values are split as the
// node's operands are; positions come from the dims' order (seq is in zigzag order on the mesh).
#include "compiler/interp.h"
#include "tests/interp/fd.h"
#include "tests/interp/world.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static const char *const heads[2] = {
  "mesh dp = 1, cp = 1, tp = 1\ndim seq = 8\n",
  "mesh dp = 2, cp = 2, tp = 2\ndim seq = 8 zigzag 4\n"};

static const char text[] =
  "dim batch = 2 sample\ndim kseq = 8 of seq\ndim h = 2\ndim hd = 4\ndim two = 2\ndim half = 2\ndim v = 5 size 8\ndim o = 5 size 8 of v\n"
  "dim e = 4\ndim route = 4 of e\ndim place = 3 ragged\n"
  "var param @w : f64[h|tp, hd] = zeros\n"
  "body softmax.1 of softmax(%1 x: f64[h, batch, seq, kseq]) -> (%5) {\n"
  "  %2 = reduce_max[kseq](%1) : f64[batch, h, seq] ; t:1:1 \"t\"\n"
  "  %3 = sub(%1, %2) : f64[batch, h, seq, kseq] ; t:1:1 \"t\"\n"
  "  %4 = exp(%3) : f64[batch, h, seq, kseq] ; t:1:1 \"t\"\n"
  "  %6 = sum[kseq](%4) : f64[batch, h, seq] ; t:1:1 \"t\"\n"
  "  %5 = div(%4, %6) : f64[h, batch, seq, kseq] ; t:1:1 \"t\"\n"
  "}\n"
  "body attention.1 of attention(%1 q: f64[batch, seq, h, hd], %2 k: f64[batch, kseq, h, hd]) -> (%12) {\n"
  "  %3 = dot[hd](%1, %2) : f64[batch, h, seq, kseq] ; t:1:1 \"t\"\n"
  "  %4 = index[kseq] : i32[kseq] ; t:1:1 \"t\"\n"
  "  %5 = expand[seq](%4) : i32[seq, kseq] ; t:1:1 \"t\"\n"
  "  %6 = index[seq] : i32[seq] ; t:1:1 \"t\"\n"
  "  %7 = le(%5, %6) : bool[seq, kseq] ; t:1:1 \"t\"\n"
  "  %8 = const -inf : f64[] ; t:1:1 \"t\"\n"
  "  %9 = select(%7, %3, %8) : f64[h, batch, seq, kseq] ; t:1:1 \"t\"\n"
  "  %10 = softmax[kseq](%9) body softmax.1 : f64[h, batch, seq, kseq] ; t:1:1 \"t\"\n"
  "  %12 = dot[kseq](%10, %2) : f64[batch, h, seq, hd] ; t:1:1 \"t\"\n"
  "}\n"
  "body rope.1 of rope(%1 x: f64[batch, seq, h, hd]) -> (%15) {\n"
  "  %2 = split[hd -> two, half](%1) : f64[batch, seq, h, two, half] ; t:1:1 \"t\"\n"
  "  %3 a, %4 b = unstack[two](%2) : f64[batch, seq, h, half] ; t:1:1 \"t\"\n"
  "  %5 = index[seq] : i32[seq] ; t:1:1 \"t\"\n"
  "  %6 = cast(%5) : f64[seq] ; t:1:1 \"t\"\n"
  "  %7 = index[half] : i32[half] ; t:1:1 \"t\"\n"
  "  %8 = cast(%7) : f64[half] ; t:1:1 \"t\"\n"
  "  %9 = dot(%6, %8) : f64[half, seq] ; t:1:1 \"t\"\n"
  "  %10 = cos(%9) : f64[half, seq] ; t:1:1 \"t\"\n"
  "  %11 = mul(%3, %10) : f64[batch, seq, h, half] ; t:1:1 \"t\"\n"
  "  %12 = sin(%9) : f64[half, seq] ; t:1:1 \"t\"\n"
  "  %13 = mul(%4, %12) : f64[batch, seq, h, half] ; t:1:1 \"t\"\n"
  "  %14 = stack[two](%11, %13) : f64[two, batch, seq, h, half] ; t:1:1 \"t\"\n"
  "  %15 = merge[two, half -> hd](%14) : f64[batch, seq, h, hd] ; t:1:1 \"t\"\n"
  "}\n"
  "body topk.1 of topk(%1 x: f64[batch, seq, v]) -> (%9) {\n"
  "  %2 = rename[v -> o](%1) : f64[batch, seq, o] ; t:1:1 \"t\"\n"
  "  %3 = expand[v](%2) : f64[v, batch, seq, o] ; t:1:1 \"t\"\n"
  "  %4 = gt(%3, %1) : bool[v, batch, seq, o] ; t:1:1 \"t\"\n"
  "  %5 = cast(%4) : i32[v, batch, seq, o] ; t:1:1 \"t\"\n"
  "  %6 = sum[o](%5) : i32[v, batch, seq] ; t:1:1 \"t\"\n"
  "  %7 = const 2 : i32[] ; t:1:1 \"t\"\n"
  "  %8 = lt(%6, %7) : bool[v, batch, seq] ; t:1:1 \"t\"\n"
  "  %9 = cast(%8) : bool[batch, seq, v] ; t:1:1 \"t\"\n"
  "}\n"
  "body dispatch.1 of dispatch(%1 x: f64[batch, seq, hd], %2 c: bool[batch, seq, route]) -> (%12) {\n"
  "  %3 = cast(%2) : i32[batch, seq, route] ; t:1:1 \"t\"\n"
  "  %4 = cumsum[seq](%3) : i32[batch, seq, route] ; t:1:1 \"t\"\n"
  "  %5 = const 1 : i32[] ; t:1:1 \"t\"\n"
  "  %6 = sub(%4, %5) : i32[batch, seq, route] ; t:1:1 \"t\"\n"
  "  %7 = expand[place](%6) : i32[place, batch, seq, route] ; t:1:1 \"t\"\n"
  "  %8 = index[place] : i32[place] ; t:1:1 \"t\"\n"
  "  %9 = eq(%7, %8) : bool[place, batch, seq, route] ; t:1:1 \"t\"\n"
  "  %10 = and(%9, %2) : bool[place, batch, seq, route] ; t:1:1 \"t\"\n"
  "  %11 = cast(%10) : f64[place, batch, seq, route] ; t:1:1 \"t\"\n"
  "  %13 = dot[seq](%1, %11) : f64[batch, hd, place, route] ; t:1:1 \"t\"\n"
  "  %12 = rename[route -> e](%13) : f64[batch, hd, place, e] ; t:1:1 \"t\"\n"
  "}\n"
  "fn softmax_fn(%1 x: f64[batch|dp, h|tp, seq|cp, kseq]) -> (y: %2) {\n"
  "  %2 = softmax[kseq](%1) body softmax.1 : f64[batch|dp, h|tp, seq|cp, kseq] ; t:2:1 \"t\"\n"
  "}\n"
  "fn attention_fn(%1 q: f64[batch|dp, h|tp, seq|cp, hd], %2 k: f64[batch|dp, kseq, h|tp, hd]) -> (y: %3) {\n"
  "  %3 = attention[seq, kseq, hd](%1, %2) body attention.1 : f64[batch|dp, seq|cp, h|tp, hd] ; t:2:1 \"t\"\n"
  "}\n"
  "fn rope_fn(%1 q: f64[batch|dp, seq|cp, h|tp, hd]) -> (y: %2) {\n"
  "  %2 = rope[seq, hd](%1) body rope.1 : f64[batch|dp, seq|cp, h|tp, hd] ; t:2:1 \"t\"\n"
  "}\n"
  "fn topk_fn(%1 q: f64[batch|dp, seq|cp, v]) -> (y: %2) {\n"
  "  %2 = topk[v](%1) body topk.1 : bool[batch|dp, seq|cp, v] ; t:2:1 \"t\"\n"
  "}\n"
  "fn dispatch_fn(%1 q: f64[batch|dp, seq, hd], %2 c: bool[batch|dp, seq, route]) -> (y: %3) {\n"
  "  %3 = dispatch[seq, route, e, place](%1, %2) body dispatch.1 : f64[batch|dp, hd, place, e] ; t:2:1 \"t\"\n"
  "}\n";

static Module *parsed(Arena *a, int mesh) { return module_text(a, arena_printf(a, "%s%s", heads[mesh], text)); }

static double *outcome(Arena *a, int mesh, const char *fn, uint64_t seed, int64_t *n) {
  Module *m = parsed(a, mesh);
  const Fn *f = fn_find(m, intern(m->in, fn));
  double **in = fd_inputs(a, f, (Range){-2, 2, 0, 2, seed});
  *n = interp_count(m, f->val.at[f->ret.at[0]].type);
  double *out = NEW_N(a, double, *n);
  Interp *it = interp_create(a, m);
  if (!interp_run(it, f, (const double *const *)in, &out)) fail_msg("%s: %s", fn, interp_fault(it));
  return out;
}

static void bodies_test(void **state) {
  (void)state;
  static const char *const fns[] = {"softmax_fn", "attention_fn", "rope_fn", "topk_fn", "dispatch_fn"};
  for (size_t i = 0; i < COUNT(fns); i++) {
    Arena *a = arena_create();
    int64_t n, k;
    double *one = outcome(a, 0, fns[i], 9, &n), *all = outcome(a, 1, fns[i], 9, &k), size = 0;
    assert_int_equal(n, k);
    for (int64_t j = 0; j < n; j++) {
      size += fabs(one[j]);
      if (!(fabs(one[j] - all[j]) <= 1e-14 * (1 + fabs(one[j])))) fail_msg("%s: entry %lld is %.17g on the mesh, %.17g on one rank", fns[i], (long long)j, all[j], one[j]);
    }
    assert_true(size > 0.1);
    arena_destroy(a);
  }
}

// causal attention of the first position is the value at the first position; row sums of softmax are 1; two are chosen
static void values_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  int64_t n;
  double *y = outcome(a, 1, "softmax_fn", 3, &n);
  for (int64_t i = 0; i < n; i += 8) {
    double s = 0;
    for (int k = 0; k < 8; k++) s += y[i + k];
    assert_true(fabs(s - 1) < 1e-14);
  }
  y = outcome(a, 1, "topk_fn", 3, &n);
  for (int64_t i = 0; i < n; i += 5) assert_true(y[i] + y[i + 1] + y[i + 2] + y[i + 3] + y[i + 4] == 2);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bodies_test), cmocka_unit_test(values_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
