// exec.h -- training steps on a device: cells in order, the scalars that the host writes, what came out.
//
// A step: $step, then for every microbatch its number of the first sample, `prologue`; then for every microbatch `micro`;
// then lr and the bias corrections for n updates so far, `update`. n counts updates that were applied. A step whose
// denominator is 0 makes no update; one whose objective or gradient is not finite makes none either ($ok). Gradients are
// those of the loss times $loss_scale, which follows from what the steps before found.
#ifndef MT_EXEC_H
#define MT_EXEC_H
#include "runtime/dev.h"
#include "runtime/scale.h"
#include "runtime/schedule.h"

enum { EXEC_OUTPUTS = 32 };                  // scalar outputs of a model

typedef struct {
  int64_t step;                              // its number, from 0
  double out[EXEC_OUTPUTS];                  // scalar outputs in the order of Exec.out
  double grad_norm, lr, loss_scale;          // before clipping; that this step used
  bool updated, empty;                       // empty: a denominator was 0
  double seconds;
} StepResult;

typedef struct Exec {
  const Plan *plan;
  Dev *dev;
  Schedule schedule;
  Scale scale;                               // of the next step
  double beta1, beta2;
  int64_t step, update;                      // steps and updates done: what a checkpoint holds
  int64_t skipped, empty;                    // steps without an update since start; of them with a denominator of 0
  int64_t in_a_row;                          // steps without an update, not counting those that a lower loss scale answers
  uint32_t nout; uint32_t out[EXEC_OUTPUTS]; // indexes of the scalar outputs in Plan.output
  struct { uint32_t step, sample, lr, bc1, bc2, inv_micro, grad_norm, ok, seed, loss_scale; } slot;   // 0: the plan has none
} Exec;

Status exec_init(Exec *x, const Plan *p, Dev *d);                 // the caller fills variables, then exec_refresh
Status exec_refresh(Exec *x);                                     // compute copies from masters
// One step in two halves; the feed gives the inputs of microbatches 0 … Plan.microbatches-1. After the first half the
// gradients are there, summed and not clipped.
Status exec_backward(Exec *x, StepResult *r);
Status exec_update(Exec *x, StepResult *r);
bool   exec_stuck(const Exec *x, int64_t most);                   // `most` steps in a row without an update; 0: never
// The cells of the step just made once more, or its update; nothing counts. For dev_watch.
Status exec_repeat(Exec *x, const StepResult *r, bool update);
// Loss and other scalar outputs over n microbatches, no gradient. r: out and seconds.
Status exec_eval(Exec *x, int64_t n, StepResult *r);
Status exec_logits(Exec *x);                                      // the function `logits` on microbatch 0
#endif
