// panel.h -- a tile of a matrix product on vectors of 16 lanes, and on the CPU's tile registers where it has them. For the
// products that a library does slower; see gemm.c.
#ifndef MT_PANEL_H
#define MT_PANEL_H
#include "runtime/base.h"
#include "runtime/dtype.h"

// c[m, n] = alpha · Σ_l a_l[m, k] · b_l[k, n], or c + that: in f32, each element's sum in the order of l and k, rounded once. Strides are in elements; a's and b's have a 1 each, those of c are cm and 1.
typedef struct {
  DType t, c;                                // of a and b: f32, bf16; of c: the same or f32
  int64_t m, n, k, am, ak, bk, bn, cm;
  int64_t sums;                              // how many l there are
  double alpha;
  bool accumulate, stream;                   // stream: c goes past the caches
} PanelShape;

bool   panel_has(DType t);                                        // this CPU has what products of this format need
Str    panel_name(void);                                          // "avx512", "avx512_bf16", "amx"
// How many rows and columns of c are made at once: extents that are multiples of them cost least.
void   panel_block(DType t, int64_t *rows, int64_t *columns);
// The bytes that a thread needs for itself, from a multiple of 64, for tiles of up to m × n.
size_t panel_room(int64_t m, int64_t n);
// Adds a_l · b_l, for l from 0 on with the same room; c is read and written with the last.
void   panel_add(const PanelShape *s, int64_t l, void *c, const void *a, const void *b, void *room);
#endif
