// bigram.h -- a plan made by hand: x = wte[tokens]; loss = stepmean(cross_entropy(x @ head)), plain gradient descent. Its
// kernels are written here, so the runtime is tested without the compiler.
#ifndef MT_TEST_BIGRAM_H
#define MT_TEST_BIGRAM_H
#include "runtime/plan.h"

typedef struct {
  int64_t batch, seq, vocab, size, embed;    // size: stored entries of vocab
  int64_t microbatches, steps;
  double lr;
  DType dtype;                               // f64 or f32
} Bigram;
static const Bigram bigram_small = {2, 5, 7, 8, 3, 2, 6, 0.5, DT_f64};

Plan *bigram_plan(Arena *a, const Bigram *b);
#endif
