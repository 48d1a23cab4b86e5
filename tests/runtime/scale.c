// The loss scale: what it is after each of some steps, by the rules of Megatron-LM's DynamicGradScaler; what is refused.
#include "runtime/scale.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static Scale made(const char *word, double number, const ScaleArg *arg, size_t narg) {
  Arena *a = arena_create();
  Text why;
  Scale s;
  text_init(&why, a);
  if (!scale_make(&s, word, number, arg, narg, &why)) fail_msg("%s", why.s);
  arena_destroy(a);
  return s;
}
static Scale dynamic(double initial, double window, double hysteresis, double min) {
  ScaleArg arg[] = {{"initial", initial}, {"window", window}, {"hysteresis", hysteresis}, {"min", min}};
  return made("dynamic", 0, arg, COUNT(arg));
}

// steps: '.' a finite gradient, 'x' one that is not; after: the scale after each of them
static void expect(Scale s, const char *steps, const double *after) {
  for (int i = 0; steps[i]; i++) {
    scale_step(&s, steps[i] == '.');
    if (s.value != after[i]) fail_msg("%s: after step %d the scale is %g, not %g", steps, i, s.value, after[i]);
  }
}

static void table_test(void **state) {
  (void)state;
  // P03 github.com/deepspeedai/DeepSpeed/issues/931: the first of two is forgiven, then each one halves
  expect(dynamic(65536, 1000, 2, 1), "xxxx", (double[]){65536, 32768, 16384, 8192});
  // finite steps between them give nothing back: patience is used up for good, until the scale grows
  expect(dynamic(64, 4, 2, 1), "x.x.x...x", (double[]){64, 64, 32, 32, 16, 16, 16, 16, 8});
  expect(dynamic(64, 3, 2, 1), "x...xx.", (double[]){64, 64, 64, 128, 128, 64, 64});
  // growth after exactly `window` finite steps in a row, and again after as many
  expect(dynamic(8, 3, 1, 1), "......", (double[]){8, 8, 16, 16, 16, 32});
  expect(dynamic(8, 3, 2, 1), "..x...", (double[]){8, 8, 8, 8, 8, 16});
  expect(dynamic(8, 3, 1, 1), "..x..x...", (double[]){8, 8, 4, 4, 4, 2, 2, 2, 4});
  expect(dynamic(8, 1, 1, 1), ".x.x", (double[]){16, 8, 16, 8});
  // never below the least one
  expect(dynamic(8, 1000, 1, 3), "xxxx", (double[]){4, 3, 3, 3});
  expect(dynamic(1, 2, 1, 1), "xx..", (double[]){1, 1, 1, 2});
  // other factors
  ScaleArg thirds[] = {{"initial", 81}, {"window", 2}, {"hysteresis", 1}, {"growth", 4}, {"backoff", 0.25}};
  expect(made("dynamic", 0, thirds, COUNT(thirds)), "x..x", (double[]){20.25, 20.25, 81, 20.25});
  // Megatron-LM's defaults
  Scale s = made("dynamic", 0, 0, 0);
  assert_true(s.value == 4294967296. && s.window == 1000 && s.hysteresis == 2 && s.min == 1 && s.growth == 2 &&
              s.backoff == 0.5);
  // a scale that f32 cannot hold would make everything infinite for ever
  expect(dynamic(0x1p127, 1, 1, 1), "..x", (double[]){0x1p127, 0x1p127, 0x1p126});
}

static void fixed_test(void **state) {
  (void)state;
  Scale s = made("none", 0, 0, 0);
  assert_true(s.value == 1 && s.kind == SCALE_none);
  expect(s, "x.x", (double[]){1, 1, 1});
  expect(made(0, 1024, 0, 0), "xxx..", (double[]){1024, 1024, 1024, 1024, 1024});
}

// As that class states them: growth_tracker counts up to the interval, hysteresis_tracker down from the hysteresis.
typedef struct { float scale; int64_t growth_tracker, hysteresis_tracker; } Tracker;
static void tracker_step(Tracker *t, const Scale *s, bool found_inf) {
  if (found_inf) {
    t->growth_tracker = 0;
    t->hysteresis_tracker -= 1;
    if (t->hysteresis_tracker <= 0) t->scale = fmaxf(t->scale * (float)s->backoff, (float)s->min);
    return;
  }
  t->growth_tracker += 1;
  if (t->growth_tracker != s->window) return;
  t->growth_tracker = 0;
  t->hysteresis_tracker = s->hysteresis;
  t->scale = t->scale * (float)s->growth;
}

static void long_test(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int window = 1; window <= 12; window += 1 + window / 3)
    for (int hysteresis = 1; hysteresis <= 4; hysteresis++) {
      Scale s = dynamic(256, window, hysteresis, 1);
      Tracker t = {256, 0, hysteresis};
      for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bool found_inf = (random >> 33) % 100 < (uint64_t)(t.scale > 0x1p60f ? 90 : 100 / (window + 1));
        scale_step(&s, !found_inf), tracker_step(&t, &s, found_inf);
        if (s.value != (double)t.scale || s.good != t.growth_tracker || s.hysteresis - s.bad != t.hysteresis_tracker)
          fail_msg("window %d, hysteresis %d, step %d: %g, not %g", window, hysteresis, i, s.value, (double)t.scale);
      }
    }
}

// What a step is worth waiting for: a scale that can still fall.
static void answers_test(void **state) {
  (void)state;
  Scale s = dynamic(4, 1000, 2, 1), fixed = made(0, 1024, 0, 0);
  for (int i = 0; i < 3; i++) assert_true(scale_step(&s, false)); // 4, 2, 1
  assert_true(s.value == 1);
  assert_false(scale_step(&s, false));
  assert_false(scale_step(&fixed, false));
}

static void refused_test(void **state) {
  (void)state;
  static const struct { const char *word; double number; ScaleArg arg; const char *why; } rows[] = {
    {"dynamc", 0, {0, 0}, "no 'dynamc'; there are a number, dynamic, none"},
    {"none", 0, {"min", 1}, "none has no arguments"},
    {0, 0, {0, 0}, "it is 0; it must be above 0 and at most 2^127"},
    {0, INFINITY, {0, 0}, "it is inf; it must be above 0 and at most 2^127"},
    {"dynamic", 0, {"initial", 0}, "initial is 0; it must be above 0 and below 2^128"},
    {"dynamic", 0, {"initial", NAN}, "initial is nan; it must be above 0 and below 2^128"},
    {"dynamic", 0, {"initial", 0.5}, "min is 1, more than initial, 0.5"},
    {"dynamic", 0, {"window", 0}, "window is 0; it must be a whole number of steps, at least 1"},
    {"dynamic", 0, {"window", 2.5}, "window is 2.5; it must be a whole number of steps, at least 1"},
    {"dynamic", 0, {"hysteresis", 0}, "hysteresis is 0; it must be a whole number of steps, at least 1"},
    {"dynamic", 0, {"growth", 1}, "growth is 1; it must be above 1"},
    {"dynamic", 0, {"backoff", 1}, "backoff is 1; it must be between 0 and 1"},
    {"dynamic", 0, {"backoff", 0}, "backoff is 0; it must be between 0 and 1"},
    {"dynamic", 0, {"min", -1}, "min is -1; it must be above 0 and below 2^128"},
    {"dynamic", 0, {"windw", 1}, "dynamic: no argument 'windw'; did you mean 'window'?"},
    {"dynamic", 0, {"factor", 1}, "dynamic: no argument 'factor'; there are initial, window, hysteresis, growth, backoff, min"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    Arena *a = arena_create();
    Text why;
    Scale s;
    text_init(&why, a);
    assert_false(scale_make(&s, rows[i].word, rows[i].number, &rows[i].arg, rows[i].arg.name != 0, &why));
    assert_string_equal(why.s, rows[i].why);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(table_test), cmocka_unit_test(fixed_test), cmocka_unit_test(long_test),
    cmocka_unit_test(answers_test), cmocka_unit_test(refused_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
