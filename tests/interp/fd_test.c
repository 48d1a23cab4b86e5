// The finite-difference checker: right gradients pass, wrong ones are found. y = sum[a](x · x · w).
#include "tests/interp/fd.h"
#include "tests/interp/world.h"
#include <setjmp.h>
#include <cmocka.h>

static bool gradient(double factor) {
  World w = world("", "a 3, b 5, none 0");
  begin(&w, "f");
  ValId x = arg(&w, "f64[a, b]"), v = arg(&w, "f64[b]"), i = arg(&w, "i32[a]");
  ValId y = op(&w, OP_mul, "", OPS(op(&w, OP_mul, "", OPS(x, x)), v));
  ir_return(w.b.fn, op(&w, OP_sum, "[a]", OPS(y)), "y");
  ir_return(w.b.fn, i, "i");
  Fn *f = w.b.fn;
  begin(&w, "g");
  x = arg(&w, "f64[a, b]"), v = arg(&w, "f64[b]"), arg(&w, "i32[a]");
  ValId dy = arg(&w, "f64[b]"), c = ir_const(&w.b, factor, DT_f64);
  ValId dx = op(&w, OP_mul, "", OPS(op(&w, OP_mul, "", OPS(x, op(&w, OP_mul, "", OPS(v, dy)))), c));
  ValId dv = op(&w, OP_mul, "", OPS(op(&w, OP_sum, "[a]", OPS(op(&w, OP_mul, "", OPS(x, x)))), dy));
  ir_return(w.b.fn, dx, "dx");
  ir_return(w.b.fn, dv, "dv");
  Interp *it = interp_create(w.arena, w.m);
  double xs[15], vs[5], is[3] = {1, 2, 3}, *in[] = {xs, vs, is};
  uint64_t seed = 7;
  fd_fill(xs, 15, &seed, -2, 2), fd_fill(vs, 5, &seed, -2, 2);
  Text why;
  text_init(&why, w.arena);
  bool ok = fd_check(it, f, w.b.fn, in, 3, &why);
  if (!ok) assert_non_null(strstr(why.s, "argument 1, entry 0"));
  world_end(&w);
  return ok;
}

static void fd_test(void **state) {
  (void)state;
  assert_true(gradient(2));
  assert_false(gradient(2.00001));
  assert_false(gradient(1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fd_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
