// schedule.c -- see schedule.h. Formulas: Megatron-LM, OptimizerParamScheduler.get_lr.
#include "runtime/schedule.h"
#include <math.h>
#include <string.h>

const char *const schedule_names[SCHEDULE_COUNT] = {
#define X(word) #word,
  SCHEDULES(X)
#undef X
};
static const char *const style_names[STYLE_COUNT] = {
#define X(word) #word,
  SCHEDULE_STYLES(X)
#undef X
};

enum { TAKES_warmup = 1, TAKES_min = 2, TAKES_decay = 4, TAKES_style = 8 };
static const struct { const char *name; unsigned bit; } arguments[] = {
  {"warmup", TAKES_warmup}, {"min", TAKES_min}, {"decay", TAKES_decay}, {"style", TAKES_style}};

static unsigned takes(ScheduleKind kind) {
  switch (kind) {
  case SCHEDULE_constant: return TAKES_warmup;
  case SCHEDULE_wsd:      return TAKES_warmup | TAKES_min | TAKES_decay | TAKES_style;
  default:                return TAKES_warmup | TAKES_min;
  }
}

static int find(const char *const *names, int n, const char *word) {
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], word)) return i;
  return -1;
}

static bool no(Text *why, const char *fmt, ...) PRINTF(2, 3);
static bool no(Text *why, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  text_puts(why, arena_vprintf(why->arena, fmt, args));
  va_end(args);
  return false;
}

static bool unknown(Text *why, const char *what, const char *word, const char *const *names, size_t n) {
  const char *near = nearest(word, names, n);
  no(why, "no %s '%s'; ", what, word);
  if (near) return no(why, "did you mean '%s'?", near);
  no(why, "there are");
  for (size_t i = 0; i < n; i++) no(why, "%s %s", i ? "," : "", names[i]);
  return false;
}

static bool steps_of(const ScheduleArg *a, int64_t *to, Text *why) {
  if (!(a->num >= 0 && a->num <= 0x1p53 && a->num == floor(a->num)))
    return no(why, "%s is %g; it must be a whole number of steps", a->name, a->num);
  *to = (int64_t)a->num;
  return true;
}

static bool read_argument(Schedule *s, const ScheduleArg *a, Text *why) {
  const char *names[COUNT(arguments)];
  size_t n = 0;
  unsigned bit = 0;
  for (size_t i = 0; i < COUNT(arguments); i++) {
    if (takes(s->kind) & arguments[i].bit) names[n++] = arguments[i].name;
    if (!strcmp(arguments[i].name, a->name)) bit = arguments[i].bit;
  }
  if (!(bit & takes(s->kind))) {
    no(why, "%s: ", schedule_names[s->kind]);
    return unknown(why, "argument", a->name, names, n);
  }
  if ((bit == TAKES_style) != (a->word != 0)) return no(why, "%s must be a %s", a->name, a->word ? "number" : "word");
  switch (bit) {
  case TAKES_warmup: return steps_of(a, &s->warmup, why);
  case TAKES_decay:  return steps_of(a, &s->decay, why);
  case TAKES_min:    s->min = a->num; return true;
  default: break;
  }
  int style = find(style_names, STYLE_COUNT, a->word);
  if (style < 0) return unknown(why, "style", a->word, style_names, STYLE_COUNT);
  s->style = (ScheduleStyle)style;
  return true;
}

bool schedule_make(Schedule *s, const char *kind, const ScheduleArg *arg, size_t narg, double max,
                   int64_t steps, Text *why) {
  int k = find(schedule_names, SCHEDULE_COUNT, kind);
  if (k < 0) return unknown(why, "schedule", kind, schedule_names, SCHEDULE_COUNT);
  *s = (Schedule){.kind = (ScheduleKind)k, .max = max, .steps = steps};
  for (size_t i = 0; i < narg; i++)
    if (!read_argument(s, &arg[i], why)) return false;
  if (!(max >= 0 && max <= 1e300)) return no(why, "the learning rate is %g; it must be finite and not negative", max);
  if (!(s->min >= 0 && s->min <= max))
    return no(why, "min is %g; it must lie between 0 and the learning rate, %g", s->min, max);
  if (s->steps < 0) return no(why, "%lld steps", (long long)s->steps);
  if (s->warmup > s->steps)
    return no(why, "warmup is %lld steps, more than the %lld in all", (long long)s->warmup, (long long)s->steps);
  if (s->decay > s->steps - s->warmup)
    return no(why, "decay is %lld steps, more than the %lld after the warm-up", (long long)s->decay,
              (long long)(s->steps - s->warmup));
  return true;
}

// what is left of max - min after a part r of the decay
static double left(ScheduleStyle style, double r) {
  switch (style) {
  case STYLE_cosine:      return 0.5 * (cos(3.14159265358979323846 * r) + 1);
  case STYLE_exponential: return 2 * pow(0.5, r) - 1;
  case STYLE_minus_sqrt:  return 1 - sqrt(r);
  default:                return 1 - r;
  }
}

double schedule_lr(const Schedule *s, int64_t n) {
  n = MAX(n, 0);
  if (s->warmup > 0 && n <= s->warmup) return s->max * (double)n / (double)s->warmup;
  if (s->kind == SCHEDULE_constant) return s->max;
  if (n > s->steps) return s->min;
  if (s->kind == SCHEDULE_inverse_sqrt)
    return fmax(s->min, s->max * sqrt((double)MAX(s->warmup, 1)) / sqrt((double)MAX(n, 1)));
  int64_t length = s->kind == SCHEDULE_wsd ? s->decay : s->steps - s->warmup, start = s->steps - length;
  if (n <= start) return s->max;                        // also: no length
  double r = (double)(n - start) / (double)length;
  ScheduleStyle style = s->kind == SCHEDULE_wsd ? s->style : s->kind == SCHEDULE_cosine ? STYLE_cosine : STYLE_linear;
  return s->min + left(style, r) * (s->max - s->min);
}
