// openblas.h -- OpenBLAS, loaded at run time: products of f32 and of f64.
#ifndef MT_OPENBLAS_H
#define MT_OPENBLAS_H
#include "runtime/base.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };          // of cblas.h
typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                   float beta, float *c, int ldc);
typedef void Dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb,
                   double beta, double *c, int ldc);
typedef struct {
  Sgemm *sgemm;
  Dgemm *dgemm;
  Str name;                                  // "OpenBLAS 0.3.21 Zen"
} OpenBlas;

// $MTRUN_OPENBLAS, else libopenblas.so.0; it starts no threads of its own. It maps 128 MiB for each thread that calls it, and
// tries for ever when the system refuses.
Status openblas_open(Arena *a, OpenBlas *b);
#endif
