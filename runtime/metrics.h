// metrics.h -- what a run says: the start block, a line per interval, a bar on a terminal, a
// JSON log with a line per step.
#ifndef MT_METRICS_H
#define MT_METRICS_H
#include "runtime/exec.h"
#include "runtime/safetensors.h"

typedef struct {
  const char *json;                          // file of the JSON log, "-": standard output; 0: none
  bool append;                               // the run goes on where another one stopped: its lines up to there stay
  int64_t every;                             // steps from console line to console line
  int64_t first, last;                       // steps: done before, done at the end
  FILE *out;                                 // where lines for people go; standard error if the JSON log goes to standard output
} MetricsOptions;

typedef struct {                             // all a row of metrics.def may use
  const StepResult *result;
  double tokens, flops;                      // of a step
  int64_t samples, updates, skipped;
  int64_t before;                            // peak_bytes before the plan's memory was there
  int64_t planned;                           // bytes that the plan and the threads were said to need
  const StepResult *valid;                   // 0: not evaluated after this step
} MetricsStep;

typedef struct { Str key; const Tensor *tensor; uint32_t n; const double *norm; } Norms;   // "KEY/NAME": norm[i]

typedef struct Metrics {
  const Exec *exec;
  MetricsOptions options;
  FILE *json, *console;
  bool bar;                                  // standard error is a terminal
  double tokens, flops, shown, pace;         // shown: when the bar was drawn; pace: smoothed seconds per step
  Arena *arena; Text line;                   // of the JSON log, made once
} Metrics;

typedef struct { Str label, text; } About;   // a row of the start block
// rooms: bytes that the threads have for products, see gemm_rooms
void   start_print(FILE *to, const Plan *p, int64_t rooms, const char *version, const About *about, size_t n);

Status metrics_open(Metrics *m, const Exec *x, const MetricsOptions *o);
// valid 0: not evaluated after this step. norms: nnorms lists of them, for the JSON log
Status metrics_step(Metrics *m, const StepResult *r, const StepResult *valid, const Norms *norms, size_t nnorms);
// "valid_loss 1.82787", each output
void   eval_print(FILE *to, const Exec *x, const StepResult *valid);
// says if the log could not be written; again: nothing
Status metrics_close(Metrics *m);
Str    bytes_text(Arena *a, double bytes);                        // "41.2 MiB"
#endif
