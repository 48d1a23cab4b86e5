// schedule.h -- the learning rate as a function of the number of updates made so far, as in Megatron-LM.
#ifndef MT_SCHEDULE_H
#define MT_SCHEDULE_H
#include "runtime/base.h"

#define SCHEDULES(X) \
  X(constant)       /* max for ever */ \
  X(linear)         /* from max to min */ \
  X(cosine)         /* half a wave from max to min */ \
  X(inverse_sqrt)   /* max · sqrt(warmup / n), at least min */ \
  X(wsd)            /* max, then from max to min in the last `decay` steps, in one of the styles */
#define SCHEDULE_STYLES(X) X(linear) X(cosine) X(exponential) X(minus_sqrt)

typedef enum {
#define X(word) SCHEDULE_##word,
  SCHEDULES(X)
#undef X
  SCHEDULE_COUNT
} ScheduleKind;

typedef enum {
#define X(word) STYLE_##word,
  SCHEDULE_STYLES(X)
#undef X
  STYLE_COUNT
} ScheduleStyle;

typedef struct { const char *name; double num; const char *word; } ScheduleArg;   // word: 0 when it is a number

typedef struct {
  ScheduleKind kind;
  ScheduleStyle style;                       // wsd
  double  max, min;
  int64_t warmup, steps, decay;              // steps: of the run, where the decay ends; decay: wsd's last, falling steps
} Schedule;

extern const char *const schedule_names[SCHEDULE_COUNT];

// kind(warmup = 0, min = 0, decay = 0, style = linear), each where the kind has it. max: the optimizer's lr; steps: the
// run's. False: why says what is wrong with it.
bool   schedule_make(Schedule *s, const char *kind, const ScheduleArg *arg, size_t narg, double max,
                     int64_t steps, Text *why);
// n: updates made before this one. max·n/warmup while warming up, so the first is 0 with a warm-up; min past the end.
double schedule_lr(const Schedule *s, int64_t n);
#endif
