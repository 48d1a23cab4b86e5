// scale.c -- see scale.h. The rules: Megatron-LM, DynamicGradScaler.
//
// `window` finite steps in a row: times growth, and the patience is whole again. Each step that is not finite takes one
// of `hysteresis` patience and, from the last one on, times backoff, at least min. Only growth gives patience back: once
// it is used up, every step that is not finite lowers the scale, however many finite ones lie between.
#include "runtime/scale.h"
#include <math.h>
#include <string.h>

#define MOST 0x1p127                         // the greatest power of 2 in f32, in which gradients are scaled

// X(name, default, above, below, whole, what it must be)
#define ARGS(X) \
  X(initial,    0x1p32, 0, 0x1p128,  false, "above 0 and below 2^128") \
  X(window,     1000,   0, 0x1p53,   true,  "a whole number of steps, at least 1") \
  X(hysteresis, 2,      0, 0x1p53,   true,  "a whole number of steps, at least 1") \
  X(growth,     2,      1, INFINITY, false, "above 1") \
  X(backoff,    0.5,    0, 1,        false, "between 0 and 1") \
  X(min,        1,      0, 0x1p128,  false, "above 0 and below 2^128")
enum {
#define X(name, otherwise, above, below, whole, what) ARG_##name,
  ARGS(X)
#undef X
  ARG_COUNT
};
static const struct { const char *name; double otherwise, above, below; bool whole; const char *what; } args[ARG_COUNT] = {
#define X(name, otherwise, above, below, whole, what) {#name, otherwise, above, below, whole, what},
  ARGS(X)
#undef X
};

static bool no(Text *why, const char *fmt, ...) PRINTF(2, 3);
static bool no(Text *why, const char *fmt, ...) {
  va_list list;
  va_start(list, fmt);
  text_puts(why, arena_vprintf(why->arena, fmt, list));
  va_end(list);
  return false;
}

static bool unknown_argument(const char *name, Text *why) {
  const char *names[ARG_COUNT];
  for (int i = 0; i < ARG_COUNT; i++) names[i] = args[i].name;
  const char *near = nearest(name, names, ARG_COUNT);
  no(why, "dynamic: no argument '%s'; ", name);
  if (near) return no(why, "did you mean '%s'?", near);
  no(why, "there are");
  for (int i = 0; i < ARG_COUNT; i++) no(why, "%s %s", i ? "," : "", names[i]);
  return false;
}

static bool read_argument(const ScaleArg *a, double value[ARG_COUNT], Text *why) {
  int i = 0;
  while (i < ARG_COUNT && strcmp(args[i].name, a->name)) i++;
  if (i == ARG_COUNT) return unknown_argument(a->name, why);
  value[i] = a->num;
  bool right = a->num > args[i].above && a->num < args[i].below && (!args[i].whole || a->num == floor(a->num));
  return right || no(why, "%s is %g; it must be %s", args[i].name, a->num, args[i].what);
}

static bool make_dynamic(Scale *s, const ScaleArg *arg, size_t narg, Text *why) {
  double v[ARG_COUNT];
  for (int i = 0; i < ARG_COUNT; i++) v[i] = args[i].otherwise;
  for (size_t i = 0; i < narg; i++)
    if (!read_argument(&arg[i], v, why)) return false;
  *s = (Scale){.kind = SCALE_dynamic,
               .min = v[ARG_min],
               .growth = v[ARG_growth],
               .backoff = v[ARG_backoff],
               .window = (int64_t)v[ARG_window],
               .hysteresis = (int64_t)v[ARG_hysteresis],
               .value = v[ARG_initial]};
  return s->min <= s->value || no(why, "min is %g, more than initial, %g", s->min, s->value);
}

bool scale_make(Scale *s, const char *word, double number, const ScaleArg *arg, size_t narg, Text *why) {
  *s = (Scale){.kind = SCALE_none, .value = 1};
  if (word && !strcmp(word, "dynamic")) return make_dynamic(s, arg, narg, why);
  if (word && !strcmp(word, "none")) return !narg || no(why, "none has no arguments");
  if (word) return no(why, "no '%s'; there are a number, dynamic, none", word);
  *s = (Scale){.kind = SCALE_constant, .value = number};
  return (number > 0 && number <= MOST) || no(why, "it is %g; it must be above 0 and at most 2^127", number);
}

bool scale_step(Scale *s, bool finite) {
  bool can_fall = s->kind == SCALE_dynamic && s->value > s->min;
  if (s->kind != SCALE_dynamic) return false;
  if (!finite) {
    s->good = 0, s->bad++;
    if (s->bad >= s->hysteresis) s->value = fmax(s->value * s->backoff, s->min);
  } else if (++s->good == s->window) {
    s->good = s->bad = 0;
    s->value = fmin(s->value * s->growth, MOST);
  }
  return can_fall;
}
