// blas.h -- matrix products: tiles of a size that depends on the product only, one single-threaded library call per tile.
#ifndef MT_BLAS_H
#define MT_BLAS_H
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Blas Blas;
// Loads OpenBLAS ($MTRUN_OPENBLAS, else libopenblas.so.0). narrow: products of 16-bit formats occur, which need room.
Status blas_open(Arena *a, int threads, bool narrow, Blas **b);
Str    blas_name(const Blas *b);                                  // "OpenBLAS 0.3.21 … Zen"
// The product on these addresses. g was checked by plan_verify.
void   blas_gemm(Blas *b, Work *w, const PlanGemm *g, void *c, const void *a, const void *bb);
#endif
