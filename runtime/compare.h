// compare.h -- two plans from the same state and samples: the first of what they compute that differs.
#ifndef MT_COMPARE_H
#define MT_COMPARE_H
#include "runtime/options.h"

enum { COMPARE_DIFFERS = 1 };                // the exit code then, as that of cmp(1)

// Runs both plans as mtrun with the given options, one after the other, and compares each step's outputs, the gradients
// of the first step and the parameters after the last. tolerance: relative, of tensors against the size of their values.
Status compare_plans(Arena *a, const char *const plan[2], const Words *given, double tolerance);
#endif
