// Initial values: padding and layout change nothing, any number of threads gives the same bits, the distribution is right.
#include "runtime/init.h"
#include "runtime/philox.h"
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#define DIM(name_, extent_, size_, axis_) {.name = name_, .extent = extent_, .size = size_, .axis = axis_}

static void places_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Work *one, *three;
  assert_int_equal(work_create(a, 1, &one), 0);
  assert_int_equal(work_create(a, 3, &three), 0);
  Storage tight = {"h.0.w", DT_f32, 3, {DIM("a", 37, 37, 0), DIM("b", 5, 5, 1), DIM("c", 61, 61, 2)}};
  Storage padded = {"h.0.w", DT_f64, 3, {DIM("a", 37, 40, 0), DIM("b", 5, 8, 1), DIM("c", 61, 64, 2)}};
  int64_t n = storage_count(&tight);
  float *x = NEW_N(a, float, n), *y = NEW_N(a, float, n);
  double *z = NEW_N(a, double, storage_count(&padded));
  for (int64_t i = 0; i < storage_count(&padded); i++) z[i] = (double)NAN;
  for (PlanInit init = 0; init < PINIT_COUNT; init++) {
    init_values(one, &tight, init, -0.5, 2, 7, x);
    init_values(three, &tight, init, -0.5, 2, 7, y);
    init_values(three, &padded, init, -0.5, 2, 7, z);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    for (int i = 0; i < 40; i++)
      for (int j = 0; j < 8; j++)
        for (int k = 0; k < 64; k++) {
          bool real = i < 37 && j < 5 && k < 61;
          double want = real ? (double)x[(i * 5 + j) * 61 + k] : 0;
          if (z[(i * 8 + j) * 64 + k] != want) fail_msg("init %d entry %d %d %d", (int)init, i, j, k);
        }
  }
  Storage scalar = {"t", DT_f32, 0, {{0}}};
  init_values(three, &scalar, PINIT_ones, 0, 0, 7, x);
  assert_true(x[0] == 1);
  work_destroy(one), work_destroy(three);
  arena_destroy(a);
}

static void distribution_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Work *w;
  assert_int_equal(work_create(a, 1, &w), 0);
  Storage s = {"wte.weight", DT_f32, 1, {DIM("a", 200000, 200000, 0)}}, other = s;
  other.name = "wpe.weight";
  int64_t n = storage_count(&s);
  float *x = NEW_N(a, float, n), *y = NEW_N(a, float, n);
  init_values(w, &s, PINIT_normal, 0.02, 0, 1234, x);
  init_values(w, &other, PINIT_normal, 0.02, 0, 1234, y);
  double mean = 0, square = 0, fourth = 0, both = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = (double)x[i] / 0.02;
    mean += v, square += v * v, fourth += v * v * v * v, both += v * (double)y[i] / 0.02;
  }
  double dn = (double)n;                                   // within 4 standard errors
  assert_true(fabs(mean / dn) < 4 / sqrt(dn));
  assert_true(fabs(square / dn - 1) < 4 * sqrt(2 / dn));
  assert_true(fabs(fourth / dn - 3) < 4 * sqrt(96 / dn));
  assert_true(fabs(both / dn) < 4 / sqrt(dn));
  // one entry by hand: the rule, so that other programs can draw the same
  uint32_t hash = path_hash("wte.weight");
  assert_true(x[5] == (float)0.02 * philox_normal(1234, 0, hash, 5));
  work_destroy(w);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(places_test), cmocka_unit_test(distribution_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
