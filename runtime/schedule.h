// schedule.h -- the learning rate as a function of the number of updates made so far, as in Megatron-LM.
#ifndef MT_SCHEDULE_H
#define MT_SCHEDULE_H
#include "runtime/base.h"

#define SCHEDULES(X) \
  X(constant)       /* max for ever */ \
  X(linear)         /* from max to min */ \
  X(cosine)         /* half a wave from max to min */ \
  X(inverse_sqrt)   /* max · sqrt(warmup / n), at least min */ \
  X(wsd)            /* max, then from max to min in the last `decay` steps, in one of the shapes */
#define SCHEDULE_SHAPES(X) X(linear) X(cosine) X(exponential) X(minus_sqrt)

typedef enum {
#define X(word) SCHEDULE_##word,
  SCHEDULES(X)
#undef X
  SCHEDULE_COUNT
} ScheduleKind;

typedef enum {
#define X(word) SHAPE_##word,
  SCHEDULE_SHAPES(X)
#undef X
  SHAPE_COUNT
} ScheduleShape;

typedef struct { const char *name; double num; const char *word; } ScheduleArg;   // word: 0 when it is a number

typedef struct {
  ScheduleKind kind;
  ScheduleShape shape;                       // wsd
  double  max, min;
  int64_t warmup, steps, decay;              // steps: where the decay ends; decay: wsd's last steps
} Schedule;

extern const char *const schedule_names[SCHEDULE_COUNT];

// kind(warmup = 0, min = 0, steps = STEPS, decay = a tenth, shape = linear), each where the kind has it. max: the
// optimizer's lr; steps: the run's. False: why says what is wrong with it.
bool   schedule_make(Schedule *s, const char *kind, const ScheduleArg *arg, size_t narg, double max, int64_t steps, Text *why);
// n: updates made before this one. max·n/warmup while warming up, so the first is 0 with a warm-up; min past the end.
double schedule_lr(const Schedule *s, int64_t n);
#endif
