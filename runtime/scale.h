// scale.h -- the factor that keeps small gradients of f16 from becoming 0: a constant, or one that adapts, as Megatron-LM's.
#ifndef MT_SCALE_H
#define MT_SCALE_H
#include "runtime/base.h"

typedef enum { SCALE_none, SCALE_constant, SCALE_dynamic } ScaleKind;

typedef struct { const char *name; double num; } ScaleArg;

typedef struct {
  ScaleKind kind;
  double  min, growth, backoff;              // of a dynamic scale
  int64_t window, hysteresis;                // steps
  double  value;                             // what the gradient of the loss is multiplied by; 1 when there is none
  int64_t good, bad;                         // steps: finite in a row; not finite since the scale last grew
} Scale;

// word: "none", or "dynamic" with any of initial, window, hysteresis, growth, backoff, min; 0: the number. False: why says
// what is wrong.
bool scale_make(Scale *s, const char *word, double number, const ScaleArg *arg, size_t narg, Text *why);
// After a step whose gradient was finite, or not. True: the scale was above its least, so that less of it may help.
bool scale_step(Scale *s, bool finite);
#endif
