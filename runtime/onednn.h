// onednn.h -- oneDNN, loaded at run time: products of f32, and of bf16 with sums in f32.
#ifndef MT_ONEDNN_H
#define MT_ONEDNN_H
#include "runtime/base.h"
#include "runtime/dtype.h"

typedef struct OneDnn OneDnn;
typedef struct Matmul Matmul;                // one product of fixed extents and strides, ready to run on any addresses
// c[m, n] = alpha · a[m, k] · b[k, n], or c + that; strides in elements, those of c are cm and 1
typedef struct {
  DType a, b, c;
  int64_t m, n, k, am, ak, bk, bn, cm;
  double alpha;
  bool accumulate;
} MatmulShape;

bool   onednn_has(DType t);                                       // it can be loaded, and takes operands of this format on this CPU
// $MTRUN_ONEDNN, else libdnnl.so.2; it starts no threads of its own. threads: that call it at once.
// It ends the process when the system refuses it memory: some 100 MiB, and a little for each thread and product.
Status onednn_open(Arena *a, int threads, OneDnn **o);
void   onednn_close(OneDnn *o);                                   // 0 is allowed
Str    onednn_name(const OneDnn *o);                              // "oneDNN 2.6.3 avx512_core_bf16"
Status onednn_matmul(OneDnn *o, const MatmulShape *s, Matmul **m);     // equal shapes get the same
void   onednn_run(const Matmul *m, int worker, void *c, const void *a, const void *b); // worker: 0 … threads-1
#endif
