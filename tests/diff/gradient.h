// gradient.h -- the gradient of a function of world.h against differences, or against another way of making it.
#ifndef MT_TEST_GRADIENT_H
#define MT_TEST_GRADIENT_H
#include "tests/interp/fd.h"
#include "tests/interp/world.h"

// The gradient of w's function against central differences; prints what is wrong under `what`.
bool gradient_check(World *w, Range r, const char *what);
// By the short rules and by the bodies: equal to tol (|a - b| <= tol · (|b| + rms(b))). x: 0, or values of the arguments.
bool gradient_equal(World *w, Range r, double *const *x, double tol, const char *what);
#endif
