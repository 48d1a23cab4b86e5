// interp.h -- the reference interpreter: what every pass and every kernel is compared with. It runs a function on all
// ranks of the mesh in one process, with plain loops: values are computed in double and rounded to their dtype after
// every op (`float`, not yet resolved, is f64); each rank holds its own part of every value.
//
// A whole array, as callers give and get them: the logical value, its dims in the type's order, entries in their order
// (no zigzag), without padding; one double per entry, whatever the dtype (bools are 0 and 1).
//
// After every node the ranks that hold the same entries of a value are compared bit by bit. What is not as the types
// promise stops the run: interp_fault says which node, which ranks.
#ifndef MT_INTERP_H
#define MT_INTERP_H
#include "compiler/ir.h"

typedef struct Interp Interp;

Interp *interp_create(Arena *a, const Module *m);                 // variables are 0; of the module as it is from here on
uint32_t interp_ranks(const Interp *it);
int64_t interp_count(const Module *m, TypeId t);                  // entries of the whole array
void    interp_set(Interp *it, VarId v, const double *whole);     // on every rank that holds a part
bool    interp_get(Interp *it, VarId v, double *whole);           // pending sums are summed; false: replicas differ
void    interp_seed(Interp *it, uint64_t seed);                   // of random; train.seed, or 0, when not called
void    interp_first(Interp *it, bool first);                     // the next run is a step's first microbatch (at the start: yes)
// in: an array per argument; out: room for an array per result (0: not wanted). False: see interp_fault.
bool    interp_run(Interp *it, const Fn *f, const double *const *in, double *const *out);
const char *interp_fault(const Interp *it);                       // why the last call was false

#endif
