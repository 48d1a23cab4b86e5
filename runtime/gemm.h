// gemm.h -- the matrix products of a plan: tiles of a size that depends on the product only, one single-threaded call of a
// library per tile. So the bits of a product do not depend on the number of threads.
#ifndef MT_GEMM_H
#define MT_GEMM_H
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Gemms Gemms;
// Loads the libraries that the plan's products name, and prepares every product. Fails with what to install.
Status gemm_open(Arena *a, const Plan *p, int threads, Gemms **g);
void   gemm_close(Gemms *g);                                      // 0 is allowed
Str    gemm_libraries(const Gemms *g);                            // "oneDNN 2.6.3 avx512_core_bf16, OpenBLAS 0.3.21 Zen"; "": none
// Product number `gemm` of the plan, on these addresses. The plan was checked by plan_verify.
void   gemm_run(Gemms *g, Work *w, uint32_t gemm, void *c, const void *a, const void *b);
// The library that does such a product best among those that can be loaded here.
PlanLib gemm_choose(const PlanGemm *g);
#endif
