// gemm.h -- the matrix products of a plan, in tiles that workers claim: a single-threaded call of a library, or panels. The
// bits of a product do not depend on the number of threads.
#ifndef MT_GEMM_H
#define MT_GEMM_H
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Gemms Gemms;
// Loads the libraries that the plan's products name, and prepares every product. Fails with what to install.
Status gemm_open(Arena *a, const Plan *p, int threads, Gemms **g);
void   gemm_close(Gemms *g);                                      // 0 is allowed
// bytes that its threads have to copy operands to and to sum up in, all together; the libraries' own are not counted
int64_t gemm_rooms(const Gemms *g);
Str    gemm_libraries(const Gemms *g);                            // "oneDNN 2.6.3 avx512_core_bf16, OpenBLAS 0.3.21 Zen, panels avx512"; "": none
// Product number `gemm` of the plan, on these addresses. The plan was checked by plan_verify. Returns the FLOP that it left
// out: see PlanRagged.
double gemm_run(Gemms *g, Work *w, uint32_t gemm, void *c, const void *a, const void *b);
// What does such a product best on this CPU, among the libraries that can be loaded here.
PlanLib gemm_choose(const PlanGemm *g);
#endif
