// sample.h -- text from a trained model, byte by byte.
#ifndef MT_SAMPLE_H
#define MT_SAMPLE_H
#include "runtime/exec.h"

typedef struct {
  const char *prompt;
  int64_t tokens;                            // to generate
  double temperature;                        // 0: the most likely byte
  int64_t seed;
} SampleRule;

// Prompt and continuation to `to`. The model's tokens are bytes (256 ends a document); refused when it has another
// vocabulary. The whole window is computed for each byte.
Status sample_print(Arena *a, Exec *x, const SampleRule *r, FILE *to);
#endif
