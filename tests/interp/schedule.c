// Learning-rate schedules: values worked out by hand, the golden runs' cosine, edges of (warm-up, steps), refusals.
#include "runtime/schedule.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static Schedule made(const char *kind, double warmup, double min, double max, int64_t steps) {
  Arena *a = arena_create();
  Text why;
  text_init(&why, a);
  ScheduleArg arg[] = {{"warmup", warmup, 0}, {"min", min, 0}};
  Schedule s;
  if (!schedule_make(&s, kind, arg, strcmp(kind, "constant") ? 2 : 1, max, steps, &why)) fail_msg("%s: %s", kind, why.s);
  arena_destroy(a);
  return s;
}

static void expect(const Schedule *s, const double *lr, int n) {
  for (int i = 0; i < n; i++)
    if (fabs(schedule_lr(s, i) - lr[i]) > 1e-15) fail_msg("%s: lr(%d) is %.17g, not %.17g", schedule_names[s->kind], i, schedule_lr(s, i), lr[i]);
}

static void values_test(void **state) {
  (void)state;
  Schedule s = made("linear", 4, 0, 1, 10);
  expect(&s, (double[]){0, .25, .5, .75, 1, 1 - 1. / 6, 1 - 2. / 6, .5, 1 - 4. / 6, 1 - 5. / 6, 0, 0}, 12);
  s = made("cosine", 0, .1, 1, 10);
  assert_true(fabs(schedule_lr(&s, 0) - 1) < 1e-15 && fabs(schedule_lr(&s, 5) - .55) < 1e-15 && fabs(schedule_lr(&s, 10) - .1) < 1e-15);
  s = made("cosine", 2, 3e-4, 3e-3, 8);                  // as the golden runs
  expect(&s, (double[]){0, .0015, .003, .0028191342951089924, .002325, .00165, .00097500000000000004, .00048086570489100773}, 8);
  s = made("constant", 2, 0, 3, 100);
  expect(&s, (double[]){0, 1.5, 3, 3, 3}, 5);
  assert_true(schedule_lr(&s, 1000) == 3);
  s = made("inverse_sqrt", 4, .5, 1, 100);
  assert_true(schedule_lr(&s, 4) == 1 && schedule_lr(&s, 9) == 2. / 3 && schedule_lr(&s, 16) == .5 && schedule_lr(&s, 64) == .5);
}

static void wsd_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  static const struct { const char *style; double half; } rows[] = {
    {"linear", .5}, {"cosine", .5}, {"exponential", 0.41421356237309515}, {"minus_sqrt", 0.29289321881345243}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    Text why;
    text_init(&why, a);
    ScheduleArg arg[] = {{"warmup", 2, 0}, {"decay", 4, 0}, {"style", 0, rows[i].style}};
    Schedule s;
    assert_true(schedule_make(&s, "wsd", arg, 3, 1, 20, &why));
    assert_true(schedule_lr(&s, 1) == .5 && schedule_lr(&s, 2) == 1 && schedule_lr(&s, 16) == 1 && schedule_lr(&s, 21) == 0);
    if (fabs(schedule_lr(&s, 18) - rows[i].half) > 1e-15) fail_msg("%s: %.17g", rows[i].style, schedule_lr(&s, 18));
    assert_true(fabs(schedule_lr(&s, 20)) < 1e-15);
  }
  arena_destroy(a);
}

// warm-up equal to all steps, none, one step, no step: finite, in [0, max], never rising after the warm-up
static void edges_test(void **state) {
  (void)state;
  static const int64_t pairs[][2] = {{0, 10}, {10, 10}, {4, 10}, {0, 1}, {1, 1}, {0, 0}, {9, 10}};
  for (ScheduleKind k = 0; k < SCHEDULE_COUNT; k++)
    for (size_t i = 0; i < COUNT(pairs); i++) {
      Schedule s = made(schedule_names[k], (double)pairs[i][0], .1, 1, pairs[i][1]);
      for (int64_t n = 0; n < 15; n++) {
        double lr = schedule_lr(&s, n);
        if (!(lr >= 0 && lr <= 1)) fail_msg("%s, %lld of %lld: lr(%lld) is %g", schedule_names[k], (long long)pairs[i][0], (long long)pairs[i][1], (long long)n, lr);
        if (n > pairs[i][0]) assert_true(lr <= schedule_lr(&s, n - 1));
      }
      assert_true(pairs[i][0] == 0 || schedule_lr(&s, pairs[i][0]) == 1);
    }
}

static void refused_test(void **state) {
  (void)state;
  static const struct { const char *kind; ScheduleArg arg; double max; int64_t steps; const char *why; } rows[] = {
    {"cosin", {"warmup", 0, 0}, 1, 10, "no schedule 'cosin'; did you mean 'cosine'?"},
    {"cosine", {"warmup", 11, 0}, 1, 10, "warmup is 11 steps, more than the 10 in all"},
    {"cosine", {"warmup", 1.5, 0}, 1, 10, "warmup is 1.5; it must be a whole number of steps"},
    {"cosine", {"warmup", -1, 0}, 1, 10, "warmup is -1; it must be a whole number of steps"},
    {"cosine", {"warmup", NAN, 0}, 1, 10, "warmup is nan; it must be a whole number of steps"},
    {"linear", {"min", 2, 0}, 1, 10, "min is 2; it must lie between 0 and the learning rate, 1"},
    {"linear", {"min", 0, 0}, INFINITY, 10, "the learning rate is inf; it must be finite and not negative"},
    {"constant", {"min", 0, 0}, 1, 10, "constant: no argument 'min'; there are warmup"},
    {"wsd", {"style", 0, "cosin"}, 1, 10, "no style 'cosin'; did you mean 'cosine'?"},
    {"wsd", {"style", 3, 0}, 1, 10, "style must be a word"},
    {"wsd", {"decay", 11, 0}, 1, 10, "decay is 11 steps, more than the 10 after the warm-up"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    Arena *a = arena_create();
    Text why;
    text_init(&why, a);
    Schedule s;
    assert_false(schedule_make(&s, rows[i].kind, &rows[i].arg, 1, rows[i].max, rows[i].steps, &why));
    assert_string_equal(why.s, rows[i].why);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_test), cmocka_unit_test(wsd_test), cmocka_unit_test(edges_test), cmocka_unit_test(refused_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
