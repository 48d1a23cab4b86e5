// The gradient rule of every differentiable op against central differences in f64: shapes with 0, 1, primes and padding,
// operands in another order than the result, upstream gradients in another order than the value.
#include "compiler/vjp.h"
#include "tests/diff/gradient.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char dims[] = "a 3, b 5, c 2, d 7, one 1, none 0, p 3:4, q 5:8, six 6, two 2, three 3, e=a, wide 11";

typedef struct { Op op; double lo, hi; } Unary;
static const Unary unary[] = {
  {OP_neg, -2, 2}, {OP_exp, -2, 2}, {OP_log, 0.3, 3}, {OP_sqrt, 0.3, 3}, {OP_rsqrt, 0.3, 3}, {OP_tanh, -2, 2}, {OP_sin, -3, 3},
  {OP_cos, -3, 3}, {OP_erf, -2, 2}, {OP_abs, -2, 2},
};
static const char *const shapes[][2] = {                // operand, result
  {"f64[]", "f64[]"}, {"f64[a, b]", "f64[b, a]"}, {"f64[one, d]", "f64[one, d]"}, {"f64[none, a]", "f64[a, none]"}, {"f64[q, p]", "f64[p, q]"},
};

static void unary_ops(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(unary); k++)
    for (size_t s = 0; s < COUNT(shapes); s++) {
      World w = world("", dims);
      begin(&w, "f");
      ValId x = arg(&w, shapes[s][0]);
      ir_return(w.b.fn, opt(&w, unary[k].op, "", shapes[s][1], OPS(x)), "y");
      assert_true(gradient_check(&w, (Range){unary[k].lo, unary[k].hi, 0, 1, 10 * k + s}, arena_printf(w.arena, "%s %s", op_info[unary[k].op].name, shapes[s][0])));
      world_end(&w);
    }
}

// floor, ceil, detach, comparisons: 0, and nothing is computed for them
static void stops(void **state) {
  (void)state;
  const Op ops[] = {OP_floor, OP_ceil, OP_detach};
  for (size_t k = 0; k < COUNT(ops); k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, "f64[a]");
    ir_return(w.b.fn, op(&w, ops[k], "", OPS(x)), "y");
    Fn *g = vjp_function(w.m, w.b.fn, "g", false);
    const double xs[3] = {0.5, 1.5, -2.5}, seed[3] = {1, 2, 3}, *in[] = {xs, seed};
    double dx[3] = {9, 9, 9}, *out[] = {dx};
    Interp *it = interp_create(w.arena, w.m);
    assert_true(interp_run(it, g, in, out));
    for (int i = 0; i < 3; i++) assert_true(dx[i] == 0);
    assert_false(vjp_passes(ops[k]));
    world_end(&w);
  }
}

static const Op binary[] = {OP_add, OP_sub, OP_mul, OP_div, OP_pow, OP_min, OP_max};
static const char *const pairs[][3] = {                 // operands, result
  {"f64[]", "f64[]", "f64[]"}, {"f64[a, b]", "f64[b, a]", "f64[b, a]"}, {"f64[a, b, c]", "f64[c]", "f64[c, a, b]"}, {"f64[b]", "f64[a, b]", "f64[a, b]"},
  {"f64[]", "f64[a, one]", "f64[one, a]"}, {"f64[p, a]", "f64[p]", "f64[a, p]"}, {"f64[q]", "f64[q, p]", "f64[p, q]"}, {"f64[none, a]", "f64[a]", "f64[a, none]"},
};

static void binary_ops(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(binary); k++)
    for (size_t s = 0; s < COUNT(pairs); s++) {
      World w = world("", dims);
      begin(&w, "f");
      ValId x = arg(&w, pairs[s][0]), y = arg(&w, pairs[s][1]);
      ir_return(w.b.fn, opt(&w, binary[k], "", pairs[s][2], OPS(x, y)), "y");
      assert_true(gradient_check(&w, (Range){0.5, 2.5, 0, 1, 100 + 10 * k + s}, arena_printf(w.arena, "%s %s %s", op_info[binary[k]].name, pairs[s][0], pairs[s][1])));
      world_end(&w);
    }
}

// x ^ p with p known: also at 0 and below, where log x is not
static void powers(void **state) {
  (void)state;
  const double ps[] = {0, 1, 2, 3, 4, -1, -2, 0.5, 1.7};
  for (size_t k = 0; k < COUNT(ps); k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, "f64[a, b]");
    ir_return(w.b.fn, op(&w, OP_pow, "", OPS(x, ir_const(&w.b, ps[k], DT_f64))), "y");
    bool whole = ps[k] == (int)ps[k];
    assert_true(gradient_check(&w, (Range){whole ? -2 : 0.4, 2, 0, 1, k}, arena_printf(w.arena, "power %g", ps[k])));
    world_end(&w);
  }
  const double want[] = {0, 1, 0, 0};                   // at x = 0
  for (size_t k = 0; k < COUNT(want); k++)
    for (int known = 0; known < 2; known++) {
      World w = world("", dims);
      begin(&w, "f");
      ValId x = arg(&w, "f64[]"), p = known ? ir_const(&w.b, ps[k], DT_f64) : arg(&w, "f64[]");
      ir_return(w.b.fn, op(&w, OP_pow, "", OPS(x, p)), "y");
      Fn *g = vjp_function(w.m, w.b.fn, "g", false);
      const double zero = 0, one = 1, *in[] = {&zero, known ? &one : &ps[k], &one};
      double dx = 9, dp = 9, *out[] = {&dx, &dp};
      assert_true(interp_run(interp_create(w.arena, w.m), g, in, out));
      assert_true(dx == want[k]);
      if (!known) assert_true(dp == 0);
      world_end(&w);
    }
}

static void selections(void **state) {
  (void)state;
  const char *const s[][4] = {{"bool[a, b]", "f64[b]", "f64[b, a]", "f64[b, a]"}, {"bool[a]", "f64[a, b]", "f64[]", "f64[b, a]"}, {"bool[a, p]", "f64[p]", "f64[a]", "f64[p, a]"}};
  for (size_t k = 0; k < COUNT(s); k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId c = arg(&w, s[k][0]), x = arg(&w, s[k][1]), y = arg(&w, s[k][2]);
    ir_return(w.b.fn, opt(&w, OP_select, "", s[k][3], OPS(c, x, y)), "y");
    assert_true(gradient_check(&w, (Range){-2, 2, 0, 2, k}, s[k][0]));
    world_end(&w);
  }
}

// what is not taken does not leak: select(x > 0, log(x), 0) at -1 and 0 has gradient 0, with inf and NaN in log(x)
static void selected_not_multiplied(void **state) {
  (void)state;
  World w = world("", dims);
  begin(&w, "f");
  ValId x = arg(&w, "f64[a]"), zero = ir_const(&w.b, 0, DT_f64);
  ValId pos = op(&w, OP_gt, "", OPS(x, zero)), big = op(&w, OP_log, "", OPS(x));
  ir_return(w.b.fn, op(&w, OP_select, "", OPS(pos, big, zero)), "y");
  Fn *g = vjp_function(w.m, w.b.fn, "g", false);
  const double xs[3] = {-1, 0.5, 2}, seed[3] = {1, 1, __builtin_inf()}, *in[] = {xs, seed};
  double dx[3], *out[] = {dx};
  assert_true(interp_run(interp_create(w.arena, w.m), g, in, out));
  assert_true(dx[0] == 0 && dx[1] == 2 && dx[2] == __builtin_inf());
  world_end(&w);
}

// ties of max and min go to the first operand
static void ties(void **state) {
  (void)state;
  const Op ops[] = {OP_max, OP_min};
  for (size_t k = 0; k < 2; k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, "f64[]"), y = arg(&w, "f64[]");
    ir_return(w.b.fn, op(&w, ops[k], "", OPS(x, y)), "y");
    Fn *g = vjp_function(w.m, w.b.fn, "g", false);
    const double at = 1.5, seed = 2, *in[] = {&at, &at, &seed};
    double dx, dy, *out[] = {&dx, &dy};
    assert_true(interp_run(interp_create(w.arena, w.m), g, in, out));
    assert_true(dx == 2 && dy == 0);
    world_end(&w);
  }
}

typedef struct { Op op; const char *at, *in, *out; } Shaped;
static const Shaped shaped[] = {
  {OP_sum, "[a]", "f64[a, b]", "f64[b]"}, {OP_sum, "[b, a]", "f64[a, b, c]", "f64[c]"}, {OP_sum, "[none]", "f64[none, a]", "f64[a]"},
  {OP_sum, "[q]", "f64[q, p]", "f64[p]"}, {OP_sum, "[one]", "f64[one]", "f64[]"},
  {OP_reduce_max, "[a]", "f64[a, b]", "f64[b]"}, {OP_reduce_max, "[b, a]", "f64[a, b, c]", "f64[c]"}, {OP_reduce_max, "[q]", "f64[q, p]", "f64[p]"},
  {OP_reduce_max, "[one]", "f64[a, one]", "f64[a]"},
  {OP_cumsum, "[a]", "f64[a, b]", "f64[b, a]"}, {OP_cumsum, "[a] at=1", "f64[a, b]", "f64[a, b]"}, {OP_cumsum, "[b, a]", "f64[a, b, c]", "f64[a, b, c]"},
  {OP_cumsum, "[q, a] at=1", "f64[a, q]", "f64[a, q]"}, {OP_cumsum, "[none]", "f64[none]", "f64[none]"},
  {OP_expand, "[a, b]", "f64[c]", "f64[a, c, b]"}, {OP_expand, "[p]", "f64[]", "f64[p]"}, {OP_expand, "[none]", "f64[a]", "f64[none, a]"},
  {OP_rename, "[a -> e]", "f64[a, b]", "f64[b, e]"}, {OP_rename, "[a, e -> e, a]", "f64[a, e]", "f64[e, a]"},
  {OP_split, "[six -> two, three]", "f64[six, a]", "f64[a, three, two]"},
  {OP_merge, "[two, three -> six]", "f64[three, a, two]", "f64[a, six]"}, {OP_merge, "[three, two -> six]", "f64[three, a, two]", "f64[six, a]"},
  {OP_slice, "[d -> a] at=2", "f64[b, d]", "f64[a, b]"}, {OP_slice, "[q -> p] at=1", "f64[q, a]", "f64[p, a]"}, {OP_slice, "[d -> none] at=7", "f64[d]", "f64[none]"},
  {OP_unslice, "[a -> d] at=4", "f64[b, a]", "f64[d, b]"}, {OP_unslice, "[p -> q] at=2", "f64[a, p]", "f64[q, a]"},
  {OP_shift, "[d] at=2 num=0.5", "f64[d, a]", "f64[a, d]"}, {OP_shift, "[q] at=-1 num=3", "f64[q]", "f64[q]"}, {OP_shift, "[a] at=9", "f64[a]", "f64[a]"},
};

static void shaped_ops(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(shaped); k++) {
    const Shaped *s = &shaped[k];
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, s->in);
    ir_return(w.b.fn, opt(&w, s->op, s->at, s->out, OPS(x)), "y");
    assert_true(gradient_check(&w, (Range){-2, 2, 0, 1, k}, arena_printf(w.arena, "%s%s %s", op_info[s->op].name, s->at, s->in)));
    world_end(&w);
  }
}

// the gradient of a maximum goes to the first one in row-major order over the dims as listed
static void first_maximum(void **state) {
  (void)state;
  for (int turned = 0; turned < 2; turned++) {
    World w = world("", "r 2, s 3");
    begin(&w, "f");
    ValId x = arg(&w, "f64[r, s]");
    ir_return(w.b.fn, op(&w, OP_reduce_max, turned ? "[s, r]" : "[r, s]", OPS(x)), "y");
    Fn *g = vjp_function(w.m, w.b.fn, "g", false);
    const double xs[6] = {0, 0, 5, 5, 0, 5}, seed = 1, *in[] = {xs, &seed};
    double dx[6], *out[] = {dx};
    assert_true(interp_run(interp_create(w.arena, w.m), g, in, out));
    for (int i = 0; i < 6; i++) assert_true(dx[i] == (i == (turned ? 3 : 2)));
    world_end(&w);
  }
}

static const char *const products[][4] = {              // operands, contracted, result
  {"f64[a, b]", "f64[b, c]", "[b]", "f64[a, c]"}, {"f64[a, b]", "f64[c, b]", "[b]", "f64[c, a]"}, {"f64[a, b, c]", "f64[c, b, d]", "[b, c]", "f64[a, d]"},
  {"f64[a, b, c]", "f64[c, a, d]", "[c]", "f64[a, b, d]"}, {"f64[a]", "f64[b]", "[]", "f64[b, a]"}, {"f64[a, b]", "f64[b, a]", "[]", "f64[a, b]"},
  {"f64[a]", "f64[a]", "[a]", "f64[]"}, {"f64[p, q]", "f64[q, a]", "[q]", "f64[p, a]"}, {"f64[a, p]", "f64[b, p]", "[p]", "f64[b, a]"},
  {"f64[a, none]", "f64[none, b]", "[none]", "f64[a, b]"}, {"f64[none, b]", "f64[b, a]", "[b]", "f64[none, a]"}, {"f64[one, b]", "f64[b]", "[b]", "f64[one]"},
  {"f64[a, b]", "f64[a, b]", "[a]", "f64[b]"},
};
static void dots(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(products); k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, products[k][0]), y = arg(&w, products[k][1]);
    ir_return(w.b.fn, opt(&w, OP_dot, products[k][2], products[k][3], OPS(x, y)), "y");
    assert_true(gradient_check(&w, (Range){-2, 2, 0, 1, k}, arena_printf(w.arena, "dot%s %s %s", products[k][2], products[k][0], products[k][1])));
    world_end(&w);
  }
}

static void stacks(void **state) {
  (void)state;
  World w = world("", dims);
  begin(&w, "f");
  ValId x = arg(&w, "f64[a, b]"), y = arg(&w, "f64[b]"), z = arg(&w, "f64[]");
  ir_return(w.b.fn, opt(&w, OP_stack, "[three]", "f64[b, three, a]", OPS(x, y, z)), "y");
  ir_return(w.b.fn, op(&w, OP_stack, "[one]", OPS(y)), "z");
  assert_true(gradient_check(&w, (Range){-2, 2, 0, 1, 1}, "stack"));
  world_end(&w);
  for (uint32_t unused = 0; unused < 4; unused++) {     // 3: all are used
    w = world("", dims);
    begin(&w, "f");
    x = arg(&w, "f64[b, three, a]");
    ValId part = op(&w, OP_unstack, "[three]", OPS(x));
    for (uint32_t i = 0; i < 3; i++)
      if (i != unused) ir_return(w.b.fn, op(&w, OP_mul, "", OPS(part + i, part + (i + 1) % 3)), "y");
    if (unused < 3) ir_return(w.b.fn, part + unused, "z");
    assert_true(gradient_check(&w, (Range){-2, 2, 0, 1, unused}, "unstack"));
    world_end(&w);
  }
  w = world("", dims);                                  // only the middle one
  begin(&w, "f");
  x = arg(&w, "f64[three, p]");
  ir_return(w.b.fn, op(&w, OP_unstack, "[three]", OPS(x)) + 1, "y");
  assert_true(gradient_check(&w, (Range){-2, 2, 0, 1, 9}, "unstack, one result"));
  world_end(&w);
}

static const char *const gathers[][4] = {               // table, index, attribute, result
  {"f64[d, b]", "i32[a, c]", "[d]", "f64[a, c, b]"}, {"f64[b, d]", "i32[b, a]", "[d]", "f64[a, b]"}, {"f64[a, d, b]", "i32[b, a]", "[d]", "f64[a, b]"},
  {"f64[d]", "i32[]", "[d]", "f64[]"}, {"f64[q, p]", "i32[p, a]", "[q]", "f64[p, a]"}, {"f64[d, b]", "i32[none]", "[d]", "f64[none, b]"},
  {"f64[q, a]", "i32[wide]", "[q]", "f64[a, wide]"},
};
static void gather_scatter(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(gathers); k++) {         // indices from -1: nothing is read there
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, gathers[k][0]), i = arg(&w, gathers[k][1]);
    ir_return(w.b.fn, opt(&w, OP_gather, gathers[k][2], gathers[k][3], OPS(x, i)), "y");
    assert_true(gradient_check(&w, (Range){-2, 2, -1, 5, k}, arena_printf(w.arena, "gather %s %s", gathers[k][0], gathers[k][1])));
    world_end(&w);
  }
  const char *const scatters[][4] = {{"f64[a, c, b]", "i32[c, a]", "[d]", "f64[b, d]"}, {"f64[a, b]", "i32[b, a]", "[d -> b]", "f64[b, d]"}, {"f64[p, a]", "i32[p]", "[q]", "f64[a, q]"}};
  for (size_t k = 0; k < COUNT(scatters); k++) {
    World w = world("", dims);
    begin(&w, "f");
    ValId x = arg(&w, scatters[k][0]), i = arg(&w, scatters[k][1]);
    ir_return(w.b.fn, opt(&w, OP_scatter, scatters[k][2], scatters[k][3], OPS(x, i)), "y");
    assert_true(gradient_check(&w, (Range){-2, 2, -1, 5, k}, arena_printf(w.arena, "scatter %s %s", scatters[k][0], scatters[k][1])));
    world_end(&w);
  }
}

// values used several times, by several ops and results, and one that is an argument and a result
static void sums_of_gradients(void **state) {
  (void)state;
  World w = world("", dims);
  begin(&w, "f");
  ValId x = arg(&w, "f64[a, b]"), y = arg(&w, "f64[b, c]"), z = arg(&w, "f64[b]"), unused = arg(&w, "f64[c]");
  ValId u = op(&w, OP_dot, "[b]", OPS(op(&w, OP_mul, "", OPS(x, z)), y));
  ValId t = op(&w, OP_tanh, "", OPS(u)), s = op(&w, OP_sum, "[a]", OPS(op(&w, OP_mul, "", OPS(t, u))));
  ValId v = op(&w, OP_add, "", OPS(op(&w, OP_mul, "", OPS(x, x)), x));
  ir_return(w.b.fn, op(&w, OP_add, "", OPS(t, s)), "t");
  ir_return(w.b.fn, op(&w, OP_dot, "[b]", OPS(v, z)), "v");
  ir_return(w.b.fn, z, "z");
  ir_return(w.b.fn, t, "t2");
  (void)unused;
  assert_true(gradient_check(&w, (Range){-1, 1, 0, 1, 3}, "a small graph"));
  world_end(&w);
}

// a cast hands back in the operand's format, and integers end the path
static void casts(void **state) {
  (void)state;
  World w = world("", dims);
  begin(&w, "f");
  ValId x = arg(&w, "f32[a]"), whole = ir_cast(&w.b, ir_cast(&w.b, x, DT_i32), DT_f64);
  ir_return(w.b.fn, op(&w, OP_mul, "", OPS(ir_cast(&w.b, x, DT_f64), op(&w, OP_add, "", OPS(whole, ir_const(&w.b, 1, DT_f64))))), "y");
  Fn *g = vjp_function(w.m, w.b.fn, "g", false);
  assert_int_equal(val_type(g, g->ret.at[0])->dtype, DT_f32);
  const double xs[3] = {2.5, 0.5, 3.25}, seed[3] = {1, 1, 1}, *in[] = {xs, seed};
  double dx[3], *out[] = {dx};
  assert_true(interp_run(interp_create(w.arena, w.m), g, in, out));
  assert_true(dx[0] == 3 && dx[1] == 1 && dx[2] == 4);
  world_end(&w);
}

// every op that passes gradients, and is no composite, was in a case above
static void all_ops(void **state) {
  (void)state;
  bool seen[OP_COUNT] = {false};
  for (size_t k = 0; k < COUNT(unary); k++) seen[unary[k].op] = true;
  for (size_t k = 0; k < COUNT(binary); k++) seen[binary[k]] = true;
  for (size_t k = 0; k < COUNT(shaped); k++) seen[shaped[k].op] = true;
  const Op alone[] = {OP_select, OP_dot, OP_stack, OP_unstack, OP_gather, OP_scatter, OP_cast};
  for (size_t k = 0; k < COUNT(alone); k++) seen[alone[k]] = true;
  for (Op o = OP_none + 1; o < OP_COUNT; o++)
    if (vjp_passes(o) && !op_has(o, OPF_COMPOSITE) && !seen[o]) fail_msg("no case for %s", op_info[o].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(unary_ops), cmocka_unit_test(stops), cmocka_unit_test(binary_ops), cmocka_unit_test(powers), cmocka_unit_test(selections),
    cmocka_unit_test(selected_not_multiplied), cmocka_unit_test(ties), cmocka_unit_test(shaped_ops), cmocka_unit_test(first_maximum), cmocka_unit_test(dots),
    cmocka_unit_test(stacks), cmocka_unit_test(gather_scatter), cmocka_unit_test(sums_of_gradients), cmocka_unit_test(casts), cmocka_unit_test(all_ops),
  };
  return cmocka_run_group_tests(tests, 0, 0);
}
