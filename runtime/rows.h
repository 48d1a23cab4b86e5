// rows.h -- rows of f32 sums: to where a product's result lies, and of what several ranks have.
#ifndef MT_ROWS_H
#define MT_ROWS_H
#include "runtime/dtype.h"

// to[i] = from[i], or to[i] + from[i] (in f32), rounded once. The results of a product that are not read again soon are
// streamed past the cache: rows_done before another thread is told of them.
void row_put(char *to, DType t, const float *from, int64_t n, bool add);
// to[i] = from[i] of f32 or bf16, or to[i] + from[i]
void row_take(float *to, DType t, const char *from, int64_t n, bool add);
void row_stream(float *to, const float *from, int64_t n);
void rows_done(void);
#endif
