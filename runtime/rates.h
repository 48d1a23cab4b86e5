// rates.h -- what this machine reaches: copying, updating parameters, products, handing a job to the workers. Measured
// when asked (mtrun --calibrate), kept in the user's cache, and looked up by CPU, threads and libraries.
#ifndef MT_RATES_H
#define MT_RATES_H
#include "runtime/dtype.h"

#define RATES(X) /* name, what a person reads, unit */ \
  X(copy_one, "copy, one thread",  "GB/s")   /* read and written, both counted; arrays much larger than the caches */ \
  X(copy,     "copy, all threads", "GB/s") \
  X(update,   "update",            "GB/s")   /* as adamw does: 28 bytes a parameter, read 16 and written 12 */ \
  X(job,      "job",               "us")     /* handed to all workers and done by them, with nothing in it */

// A linear layer of 768 to 3072 for so many tokens: its result, the gradient of its input, that of its weights
#define RATE_FORMATS(X) X(f32) X(bf16) X(f64)
#define RATE_LAYOUTS(X) X(NN) X(NT) X(TN)
#define RATE_TOKENS(X) X(256) X(1024)
typedef enum {
#define X(word) RF_##word,
  RATE_FORMATS(X)
#undef X
  RF_COUNT
} RateFormat;
typedef enum {
#define X(word) RL_##word,
  RATE_LAYOUTS(X)
#undef X
  RL_COUNT
} RateLayout;
typedef enum {
#define X(word) RT_##word,
  RATE_TOKENS(X)
#undef X
  RT_COUNT
} RateTokens;

typedef struct {
  int64_t threads;
  Str cpu, libraries, day;                   // jit_cpu; as gemm_libraries says it; "2026-11-30"
#define X(name, what, unit) double name;
  RATES(X)
#undef X
  double product[RF_COUNT][RL_COUNT][RT_COUNT];                    // GFLOP/s; 0: there is no library for it
} Rates;

// Some seconds. Each rate is the median of samples that lie apart, so that another program's burst does not decide it.
Status rates_measure(Arena *a, int threads, Rates *r);
Status rates_target(Arena *a);                                   // there is a place to keep them
Status rates_keep(Arena *a, const Rates *r);                      // beside those for other threads, CPUs and libraries
// Those of this CPU for so many threads, with all of these libraries ("": any). A file that is not right is told of, and
// counts as absent.
bool   rates_find(Arena *a, int threads, Str libraries, Rates *r);
Str    rates_libraries(Arena *a, int threads);                    // those that products are done with here; loads them
void   rates_print(FILE *to, const Rates *r);
Str    rates_path(Arena *a);                                      // 0: there is no place for it
#endif
