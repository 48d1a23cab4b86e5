// random_graph.h -- random valid modules, the same for a seed on every machine: for tests of passes, kernels and texts.
//
// A module has one function, "forward": whole types, arguments of all kinds, every primitive of ops.def, one scalar result
// "loss" that most nodes reach. Dims are 1, primes, padded, roles of others, and sometimes 0. No value is NaN or infinite
// and no float above 10^5 for inputs as random_inputs makes them: where an op could, its operand is made safe first.
#ifndef MT_RANDOM_GRAPH_H
#define MT_RANDOM_GRAPH_H
#include "compiler/ir.h"

typedef struct {
  DType dtype;                      // of the floats; 0: f64
  uint32_t nodes;                   // about so many before the result; 0: 5 to 60
  bool  smooth;                     // differentiable everywhere in its float inputs, so that differences agree with gradients
  bool  narrow;                     // some floats pass through f32, bf16 and f16
  bool  empty;                      // some dims have extent 0
  bool  draws;                      // there may be op random
} RandomGraph;

Module *random_module(Arena *a, uint64_t seed);                   // narrow, empty and draws, in f64
Module *random_graph(Arena *a, uint64_t seed, RandomGraph o);
// Two or three axes of 2 or 3 ranks, at most so many in all; every dim may have rules for those that divide it, and roots
// a zigzag order.
void    random_rules(Module *m, uint64_t seed, int64_t most);
bool    random_makes(Op op);                                      // a graph may have it: all but state, composites, collectives

// Whole arrays for f's arguments, without padding: floats in [-2, 2), integers in [-3, 12], bools.
double **random_inputs(Arena *a, const Fn *f, uint64_t seed);
int64_t random_count(const Module *m, TypeId t);                  // entries without padding
#endif
