// gradient.c -- see gradient.h.
#include "tests/diff/gradient.h"
#include "compiler/vjp.h"
#include <math.h>

static double **inputs(World *w, const Fn *f, Range r) {
  r.seed++;
  return fd_inputs(w->arena, f, r);
}

bool gradient_check(World *w, Range r, const char *what) {
  Fn *f = w->b.fn, *g = vjp_function(w->m, f, intern(w->m->in, "gradient"), false);
  Interp *it = interp_create(w->arena, w->m);
  double **x = inputs(w, f, r);
  Text why;
  text_init(&why, w->arena);
  bool ok = fd_check(it, f, g, x, r.seed, &why);
  if (!ok) fprintf(stderr, "%s: %s\n", what, why.s);
  return ok;
}

static bool near(World *w, const Fn *g, double *const *a, double *const *b, double tol, const char *what) {
  for (uint32_t i = 0; i < g->ret.n; i++) {
    int64_t n = interp_count(w->m, g->val.at[g->ret.at[i]].type);
    double rms = 0;
    for (int64_t k = 0; k < n; k++) rms += b[i][k] * b[i][k] / (double)n;
    for (int64_t k = 0; k < n; k++) {
      if (fabs(a[i][k] - b[i][k]) <= tol * (fabs(b[i][k]) + sqrt(rms))) continue;
      fprintf(stderr, "%s: gradient %u, entry %lld: the short rule gives %.17g, the body %.17g\n", what, i + 1, (long long)k, a[i][k], b[i][k]);
      return false;
    }
  }
  return true;
}

bool gradient_equal(World *w, Range r, double *const *given, double tol, const char *what) {
  Fn *f = w->b.fn;
  Fn *rule = vjp_function(w->m, f, intern(w->m->in, "by the rule"), false);
  Fn *body = vjp_function(w->m, f, intern(w->m->in, "by the body"), true);
  Interp *it = interp_create(w->arena, w->m);
  double **x = inputs(w, rule, r);
  double **a = NEW_N(w->arena, double *, rule->ret.n), **b = NEW_N(w->arena, double *, rule->ret.n);
  for (uint32_t i = 0; given && i < f->arg.n; i++)
    if (given[i]) x[i] = given[i];
  for (uint32_t i = 0; i < rule->ret.n; i++) {
    int64_t n = interp_count(w->m, rule->val.at[rule->ret.at[i]].type);
    a[i] = NEW_N(w->arena, double, n + 1), b[i] = NEW_N(w->arena, double, n + 1);
  }
  if (!interp_run(it, rule, (const double *const *)x, a) || !interp_run(it, body, (const double *const *)x, b)) {
    fprintf(stderr, "%s: %s\n", what, interp_fault(it));
    return false;
  }
  return near(w, rule, a, b, tol, what);
}
