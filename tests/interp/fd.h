// fd.h -- gradients against central differences in f64: h = 1e-6 · max(1, |x|), tolerance 1e-6 relative.
#ifndef MT_FD_H
#define MT_FD_H
#include "compiler/interp.h"

double fd_random(uint64_t *seed, double lo, double hi);           // uniform in [lo, hi)
void   fd_fill(double *x, int64_t n, uint64_t *seed, double lo, double hi);

// Whole arrays for f's arguments: floats in [lo, hi), integers in [ilo, ihi), bools. Padding is not in them.
typedef struct { double lo, hi; int ilo, ihi; uint64_t seed; } Range;
double **fd_inputs(Arena *a, const Fn *f, Range r);

// f: arguments x…, results y…. g: the arguments of f, then a seed of the type of each float result of f, in order; its
// results are the gradients of Σ seed·y by the float arguments of f, in order. x: whole arrays of f's arguments, changed
// and restored. Seeds are random. False: why says which entry, both numbers and the seed.
bool fd_check(Interp *it, const Fn *f, const Fn *g, double *const *x, uint64_t seed, Text *why);
#endif
