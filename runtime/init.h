// init.h -- initial values, drawn by place: they depend on the seed, the parameter's path and
// the entry, on nothing else.
#ifndef MT_INIT_H
#define MT_INIT_H
#include "runtime/plan.h"
#include "runtime/work.h"

// Fills the storage of one variable, or the part of it that lies here; padding becomes 0. Drawn in f32 (Philox, key = seed, counter = step 0, hash of the
// name with its holes, number of the entry in row-major order over the extents), then converted.
// normal: mean 0, deviation a. uniform: a to b.
void init_values(Work *w, const Storage *s, PlanInit init, double a, double b, int64_t seed, void *storage);
#endif
