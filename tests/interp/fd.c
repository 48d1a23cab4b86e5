// fd.c -- see fd.h.
#include "tests/interp/fd.h"
#include <float.h>
#include <math.h>
#include <string.h>

double fd_random(uint64_t *seed, double lo, double hi) {
  *seed = hash_mix(*seed, 0x5eed);
  return lo + (hi - lo) * ((double)(*seed >> 11) * 0x1p-53);
}

void fd_fill(double *x, int64_t n, uint64_t *seed, double lo, double hi) {
  for (int64_t i = 0; i < n; i++) x[i] = fd_random(seed, lo, hi);
}

double **fd_inputs(Arena *a, const Fn *f, Range r) {
  double **x = NEW_N(a, double *, f->arg.n + 1);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    int64_t n = interp_count(f->module, f->val.at[f->arg.at[i]].type);
    DType t = val_type(f, f->arg.at[i])->dtype;
    bool real = dtype_is_float(t), truth = t == DT_bool;
    x[i] = NEW_N(a, double, n + 1);
    fd_fill(x[i], n, &r.seed, real ? r.lo : truth ? 0 : r.ilo, real ? r.hi : truth ? 2 : r.ihi);
    for (int64_t k = 0; k < n; k++) x[i][k] = real ? dtype_round(t, x[i][k]) : floor(x[i][k]);
  }
  return x;
}

typedef struct { Interp *it; const Fn *f; uint32_t nret; double **seed, **up, **down; int64_t *count; Text *why; } Fd;

static bool wrong(Fd *d, const char *fmt, ...) PRINTF(2, 3);
static bool wrong(Fd *d, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  text_puts(d->why, arena_vprintf(d->why->arena, fmt, args));
  va_end(args);
  return false;
}

static bool floats(const Fn *f, ValId v) { return type_is_float(val_type(f, v)); }

// Σ seed·(y(x+h) − y(x−h)) / 2h along one entry; *noise: what rounding alone may add to it
static bool slope(Fd *d, double *const *x, double *entry, double *got, double *noise) {
  double at = *entry, h = 1e-6 * fmax(1, fabs(at)), sum = 0, size = 0, hidden = 0;
  volatile double hi = at + h, lo = at - h;             // the step that is really made
  *entry = hi;
  if (!interp_run(d->it, d->f, (const double *const *)x, d->up)) return wrong(d, "%s", interp_fault(d->it));
  *entry = lo;
  if (!interp_run(d->it, d->f, (const double *const *)x, d->down)) return wrong(d, "%s", interp_fault(d->it));
  *entry = at;
  for (uint32_t r = 0; r < d->nret; r++)
    for (int64_t i = 0; d->seed[r] && i < d->count[r]; i++) {
      double change = d->up[r][i] - d->down[r][i];
      if (change == 0) { hidden += fabs(d->seed[r][i] * d->up[r][i]); continue; } // up to an ulp of y is not seen
      sum += d->seed[r][i] * change, size += fabs(d->seed[r][i] * d->up[r][i]);
    }
  *got = sum / (hi - lo), *noise = DBL_EPSILON * (64 * size + hidden) / (hi - lo);
  return true;
}

bool fd_check(Interp *it, const Fn *f, const Fn *g, double *const *x, uint64_t seed, Text *why) {
  Arena *a = arena_create();
  Fd d = {.it = it, .f = f, .nret = f->ret.n, .why = why, .seed = NEW_N(a, double *, f->ret.n), .up = NEW_N(a, double *, f->ret.n),
          .down = NEW_N(a, double *, f->ret.n), .count = NEW_N(a, int64_t, f->ret.n)};
  double **in = NEW_N(a, double *, g->arg.n), **grad = NEW_N(a, double *, g->ret.n);
  uint32_t nin = f->arg.n;
  uint64_t draw = seed;
  bool ok = true;
  for (uint32_t i = 0; i < f->arg.n && i < g->arg.n; i++) in[i] = x[i];
  for (uint32_t r = 0; r < f->ret.n; r++) {
    d.count[r] = interp_count(f->module, f->val.at[f->ret.at[r]].type);
    d.up[r] = NEW_N(a, double, d.count[r]), d.down[r] = NEW_N(a, double, d.count[r]);
    if (!floats(f, f->ret.at[r])) continue;
    d.seed[r] = NEW_N(a, double, d.count[r]);
    fd_fill(d.seed[r], d.count[r], &draw, -1, 1);
    if (nin < g->arg.n) in[nin] = d.seed[r];
    nin++;
  }
  if (nin != g->arg.n) ok = wrong(&d, "%s takes %u arguments, not %u", g->name, g->arg.n, nin);
  for (uint32_t r = 0; r < g->ret.n; r++) grad[r] = NEW_N(a, double, interp_count(g->module, g->val.at[g->ret.at[r]].type));
  if (ok && !interp_run(it, g, (const double *const *)in, grad)) ok = wrong(&d, "%s", interp_fault(it));
  for (uint32_t i = 0, k = 0; ok && i < f->arg.n; i++) {
    if (!floats(f, f->arg.at[i])) continue;
    if (k == g->ret.n) { ok = wrong(&d, "%s gives %u gradients only", g->name, g->ret.n); break; }
    int64_t n = interp_count(f->module, f->val.at[f->arg.at[i]].type);
    double rms = 0;
    for (int64_t j = 0; j < n; j++) rms += grad[k][j] * grad[k][j] / (double)n;
    rms = sqrt(rms);
    for (int64_t j = 0; ok && j < n; j++) {
      double got = 0, noise = 0;
      if (!(ok = slope(&d, x, &x[i][j], &got, &noise))) break;
      if (fabs(got - grad[k][j]) <= 1e-6 * (fabs(grad[k][j]) + rms) + noise) continue;
      ok = wrong(&d, "argument %u, entry %lld (%.17g): the gradient is %.17g, differences give %.17g (seed %llu)", i + 1, (long long)j,
                 x[i][j], grad[k][j], got, (unsigned long long)seed);
    }
    k++;
  }
  arena_destroy(a);
  return ok;
}
