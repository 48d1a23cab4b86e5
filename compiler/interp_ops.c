// interp_ops.c -- every op on every rank, in its plainest form. Results come in as zeros; what is written here is
// rounded and its padding zeroed by the caller.
#include "compiler/local.h"
#include "runtime/philox.h"
#include <math.h>
#include <string.h>

typedef struct { Interp *it; const OpCall *w; const Module *m; const Node *n; const Attr *at; uint32_t rank; } Ctx;

static const Local *operand(const Ctx *c, uint32_t i) { return c->w->in[i]; }
static void *cells(const Ctx *c, uint32_t i) { return operand(c, i)->rank[c->rank]; }
static Local *result(const Ctx *c) { return c->w->out; }
static const Order *order(const Ctx *c, const Local *l, int i) { return local_order(c->it, l, i, c->rank); }
static int position(const Ctx *c, const Local *l, DimId d) {
  int i = type_pos(&l->type, d);
  if (i < 0) bug("interpreter: %s: a value lacks %s", op_info[c->n->op].name, dim_of(c->m, d)->name);
  return i;
}
static bool complain(const Ctx *c, const char *what) {
  return interp_set_fault(c->it, "%s in %s (%s): %s", op_info[c->n->op].name, c->w->fn->name,
                          span_text(c->m->diag, c->it->arena, c->n->loc), what);
}
static bool complete(const Ctx *c, const Local *l, int64_t moved) {
  return moved == local_real(c->it, l, c->rank) || complain(c, "the operand's part lacks entries of the result's part");
}

// ---- elementwise --------------------------------------------------------------------------------------------------
// the result's dims, neighbours merged where all operands allow; steps of up to three operands, 0 along dims they lack
typedef struct { int nd; int64_t n[MAX_DIMS + 1], step[4][MAX_DIMS + 1]; } Grid;

static Grid grid_of(const Ctx *c, const Local *big, uint32_t nin, const Local *const *in) {
  Grid g = {.nd = 0};
  for (int i = 0; i < big->type.ndim; i++) {
    int64_t step[4] = {big->stride[i]};
    for (uint32_t k = 0; k < nin; k++) {
      int j = type_pos(&in[k]->type, big->type.dim[i]);
      step[k + 1] = j < 0 ? 0 : in[k]->stride[j];
      if (j >= 0 && in[k]->n[j] != big->n[i])
        bug("interpreter: %s: %s is split differently", op_info[c->n->op].name, dim_of(c->m, big->type.dim[i])->name);
    }
    if (big->n[i] == 1) continue;
    bool joins = g.nd > 0;
    for (uint32_t k = 0; k <= nin && joins; k++) joins = g.step[k][g.nd - 1] == step[k] * big->n[i];
    if (joins) g.nd--, g.n[g.nd] *= big->n[i];
    else g.n[g.nd] = big->n[i];
    for (uint32_t k = 0; k <= nin; k++) g.step[k][g.nd] = step[k];
    g.nd++;
  }
  if (!g.nd) g.n[0] = 1, g.step[0][0] = 1, g.nd = 1;    // step 0 of the operands: already 0
  return g;
}

// visits the rows (innermost dim) of a grid: at[k] are the offsets of a row's first entry
static bool grid_next(const Grid *g, int64_t *count, int64_t *at) {
  for (int i = g->nd - 1; i-- > 0;) {
    for (int k = 0; k < 4; k++) at[k] += g->step[k][i];
    if (++count[i] < g->n[i]) return true;
    for (int k = 0; k < 4; k++) at[k] -= g->step[k][i] * g->n[i];
    count[i] = 0;
  }
  return false;
}

static double mod_floor(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t idiv_floor(int64_t a, int64_t b) {
  if (!b) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
static int64_t imod_floor(int64_t a, int64_t b) {
  if (!b || b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define EACH(expr) for (int64_t i = 0; i < n; i++) { o[i * so] = (expr); } break
#define A a[i * sa]
#define B b[i * sb]
#define UA (uint64_t)A
#define UB (uint64_t)B
static void row_float(Op op, int64_t n, double *o, int64_t so, const double *a, int64_t sa, const double *b,
                      int64_t sb) {
  switch (op) {
  case OP_neg: EACH(-A);
  case OP_add: EACH(A + B);
  case OP_sub: EACH(A - B);
  case OP_mul: EACH(A * B);
  case OP_div: EACH(A / B);
  case OP_mod: EACH(mod_floor(A, B));
  case OP_pow: EACH(pow(A, B));
  case OP_min: EACH(A <= B || isnan(A) ? A : B);
  case OP_max: EACH(A >= B || isnan(A) ? A : B);
  case OP_exp: EACH(exp(A));
  case OP_log: EACH(log(A));
  case OP_sqrt: EACH(sqrt(A));
  case OP_rsqrt: EACH(1 / sqrt(A));
  case OP_tanh: EACH(tanh(A));
  case OP_sin: EACH(sin(A));
  case OP_cos: EACH(cos(A));
  case OP_erf: EACH(erf(A));
  case OP_abs: EACH(fabs(A));
  case OP_floor: EACH(floor(A));
  case OP_ceil: EACH(ceil(A));
  case OP_detach: EACH(A);
  default: bug("interpreter: no %s of floats", op_info[op].name);
  }
}
static void row_int(Op op, int64_t n, int64_t *o, int64_t so, const int64_t *a, int64_t sa, const int64_t *b,
                    int64_t sb) {
  switch (op) {
  case OP_neg: EACH((int64_t)(0 - UA));
  case OP_add: EACH((int64_t)(UA + UB));
  case OP_sub: EACH((int64_t)(UA - UB));
  case OP_mul: EACH((int64_t)(UA * UB));
  case OP_div: EACH(idiv_floor(A, B));
  case OP_mod: EACH(imod_floor(A, B));
  case OP_min: EACH(A <= B ? A : B);
  case OP_max: EACH(A >= B ? A : B);
  case OP_abs: EACH(A < 0 ? (int64_t)(0 - UA) : A);
  case OP_eq: EACH(A == B);
  case OP_ne: EACH(A != B);
  case OP_lt: EACH(A < B);
  case OP_le: EACH(A <= B);
  case OP_gt: EACH(A > B);
  case OP_ge: EACH(A >= B);
  case OP_and: EACH(A & B);
  case OP_or:  EACH(A | B);
  case OP_not: EACH(A ^ 1);
  case OP_detach: EACH(A);
  default: bug("interpreter: no %s of integers", op_info[op].name);
  }
}
static void row_compare(Op op, int64_t n, int64_t *o, int64_t so, const double *a, int64_t sa, const double *b,
                        int64_t sb) {
  switch (op) {
  case OP_eq: EACH(A == B);
  case OP_ne: EACH(A != B);
  case OP_lt: EACH(A < B);
  case OP_le: EACH(A <= B);
  case OP_gt: EACH(A > B);
  case OP_ge: EACH(A >= B);
  default: bug("interpreter: no %s of floats", op_info[op].name);
  }
}
#undef EACH

static void run_elementwise(const Ctx *c) {
  Local *out = result(c);
  const Local *a = operand(c, 0), *b = operand(c, c->n->nin > 1);
  Grid g = grid_of(c, out, c->n->nin, c->w->in);
  int64_t count[MAX_DIMS + 1] = {0}, at[4] = {0};
  int in = g.nd - 1;
  bool flt = cells_float(a->type.dtype), compare = out->type.dtype == DT_bool && flt;
  char *o = out->rank[c->rank], *x = a->rank[c->rank], *y = b->rank[c->rank];
  if (!out->count) return;
  int second = c->n->nin > 1 ? 2 : 1;
  int64_t so = g.step[0][in], sa = g.step[1][in], sb = g.step[second][in];
  do {
    void *to = o + at[0] * 8, *from = x + at[1] * 8, *with = y + at[second] * 8;
    if (compare) row_compare(c->n->op, g.n[in], to, so, from, sa, with, sb);
    else if (flt) row_float(c->n->op, g.n[in], to, so, from, sa, with, sb);
    else row_int(c->n->op, g.n[in], to, so, from, sa, with, sb);
  } while (grid_next(&g, count, at));
}

static void run_select(const Ctx *c) {
  Local *out = result(c);
  Grid g = grid_of(c, out, 3, c->w->in);
  int64_t count[MAX_DIMS + 1] = {0}, at[4] = {0};
  int in = g.nd - 1;
  int64_t n = g.n[in], so = g.step[0][in], s1 = g.step[1][in], s2 = g.step[2][in], s3 = g.step[3][in];
  if (!out->count) return;
  do {
    const int64_t *cond = (int64_t *)cells(c, 0) + at[1];
    if (cells_float(out->type.dtype)) {
      double *o = (double *)out->rank[c->rank] + at[0];
      const double *x = (double *)cells(c, 1) + at[2], *y = (double *)cells(c, 2) + at[3];
      for (int64_t i = 0; i < n; i++) o[i * so] = cond[i * s1] ? x[i * s2] : y[i * s3];
    } else {
      int64_t *o = (int64_t *)out->rank[c->rank] + at[0];
      const int64_t *x = (int64_t *)cells(c, 1) + at[2], *y = (int64_t *)cells(c, 2) + at[3];
      for (int64_t i = 0; i < n; i++) o[i * so] = cond[i * s1] ? x[i * s2] : y[i * s3];
    }
  } while (grid_next(&g, count, at));
}

static void run_cast(const Ctx *c) {
  Local *out = result(c);
  Grid g = grid_of(c, out, 1, c->w->in);
  int64_t count[MAX_DIMS + 1] = {0}, at[4] = {0};
  int in = g.nd - 1;
  bool from = cells_float(operand(c, 0)->type.dtype), to = cells_float(out->type.dtype);
  int64_t n = g.n[in], so = g.step[0][in], sa = g.step[1][in];
  if (!out->count) return;
  do {
    double *o = (double *)out->rank[c->rank] + at[0], *a = (double *)cells(c, 0) + at[1];
    int64_t *io = (int64_t *)out->rank[c->rank] + at[0], *ia = (int64_t *)cells(c, 0) + at[1];
    if (from && to) for (int64_t i = 0; i < n; i++) o[i * so] = a[i * sa];
    else if (from) for (int64_t i = 0; i < n; i++) io[i * so] = int_of(out->type.dtype, a[i * sa]);
    else if (to) for (int64_t i = 0; i < n; i++) o[i * so] = (double)ia[i * sa];
    else for (int64_t i = 0; i < n; i++) {              // held at the ends of the range, as dtype_store_int does
      uint64_t room = 0;
      dtype_store_int(out->type.dtype, &room, ia[i * sa]);
      io[i * so] = dtype_load_int(out->type.dtype, &room);
    }
  } while (grid_next(&g, count, at));
}

static void fill(Local *l, uint32_t rank, double v) {
  double *x = l->rank[rank];
  int64_t *i = l->rank[rank], k = cells_float(l->type.dtype) ? 0 : int_of(l->type.dtype, v);
  for (int64_t n = 0; n < l->count; n++)
    if (cells_float(l->type.dtype)) x[n] = v;
    else i[n] = k;
}

// ---- leaves -------------------------------------------------------------------------------------------------------
static void run_const(const Ctx *c) { fill(result(c), c->rank, c->at->num); }

static void run_index(const Ctx *c) {
  const Order *o = order(c, result(c), 0);
  for (int64_t p = 0; p < o->n; p++) ((int64_t *)result(c)->rank[c->rank])[p] = order_global(o, p);
}

// Key: the seed; counter: step, hash of the op's path, number of the entry: row-major over the dims' extents in the
// type's order, but the dim of samples first, counted in the step. So it depends on no mesh and no microbatch size.
static void run_random(const Ctx *c) {
  Local *out = result(c);
  int64_t step = *(int64_t *)cells(c, 0), sample = *(int64_t *)cells(c, 1);
  uint32_t hash = path_hash(c->at->path);
  uint64_t weight[MAX_DIMS], rows = 1;
  const Order *o[MAX_DIMS];
  int nd = out->type.ndim, batch = -1;
  for (int i = nd; i-- > 0;) {
    const Dim *d = dim_of(c->m, out->type.dim[i]);
    o[i] = order(c, out, i), weight[i] = rows;
    if (d->sample && batch < 0) batch = i;
    else rows *= (uint64_t)d->extent;
  }
  if (batch >= 0) weight[batch] = rows;
  for (int64_t k = 0; k < out->count; k++) {
    uint64_t number = batch >= 0 ? (uint64_t)sample * rows : 0;
    for (int i = 0; i < nd; i++) number += (uint64_t)order_global(o[i], k / out->stride[i] % out->n[i]) * weight[i];
    ((double *)out->rank[c->rank])[k] = (double)philox_uniform(c->it->seed, (uint32_t)step, hash, number);
  }
}

// ---- reductions ---------------------------------------------------------------------------------------------------
// along the operand's dims: the listed ones all onto the first place
static void run_reduce(const Ctx *c) {
  Local *out = result(c);
  const Local *x = operand(c, 0);
  bool max = c->n->op == OP_reduce_max;
  Pairs p[MAX_DIMS];
  if (max) fill(out, c->rank, -INFINITY);               // of integers: the least
  for (int i = 0; i < x->type.ndim; i++) {
    const Order *o = order(c, x, i);
    bool gone = dims_have(c->at->dims, c->at->ndims, x->type.dim[i]);
    p[i] = pairs_real(c->it, o, gone ? 0 : out->stride[position(c, out, x->type.dim[i])], x->stride[i]);
  }
  cells_move(out->type.dtype, out->rank[c->rank], x->rank[c->rank], p, x->type.ndim, max ? MOVE_max : MOVE_add);
}

// the listed dims row-major, each in the order of its entries
static int64_t *places_in_order(const Ctx *c, const Local *x, int64_t *n) {
  *n = 1;
  for (uint32_t k = 0; k < c->at->ndims; k++) *n *= dim_of(c->m, c->at->dims[k])->extent;
  int64_t *at = scratch_get(c->it, (size_t)*n * sizeof *at);
  for (int64_t i = 0; i < *n; i++) {
    at[i] = 0;
    int64_t rest = i;
    for (uint32_t k = c->at->ndims; k-- > 0;) {
      int pos = position(c, x, c->at->dims[k]);
      int64_t extent = dim_of(c->m, c->at->dims[k])->extent;
      at[i] += order_place(order(c, x, pos), rest % extent) * x->stride[pos], rest /= extent;
    }
  }
  return at;
}

static void run_cumsum(const Ctx *c) {
  const Local *x = operand(c, 0);
  Local *out = result(c);
  int64_t n, *at = places_in_order(c, x, &n), *to = places_in_order(c, out, &n), outer = 1;
  Grid g = {.nd = 0};                                   // the other dims; step 0: result, 1: operand
  for (int i = 0; i < x->type.ndim; i++)
    if (!dims_have(c->at->dims, c->at->ndims, x->type.dim[i])) {
      g.n[g.nd] = x->n[i], outer *= x->n[i];
      g.step[0][g.nd] = out->stride[position(c, out, x->type.dim[i])], g.step[1][g.nd++] = x->stride[i];
    }
  g.n[g.nd++] = 1;
  int64_t count[MAX_DIMS + 1] = {0}, from[4] = {0};
  if (!outer || !n) return;
  do {
    if (cells_float(x->type.dtype)) {
      double s = 0;
      for (int64_t i = 0; i < n; i++) {
        int64_t k = c->at->at ? n - 1 - i : i;
        ((double *)out->rank[c->rank])[from[0] + to[k]] = s += ((double *)x->rank[c->rank])[from[1] + at[k]];
      }
    } else {
      uint64_t s = 0;
      for (int64_t i = 0; i < n; i++) {
        int64_t k = c->at->at ? n - 1 - i : i;
        ((int64_t *)out->rank[c->rank])[from[0] + to[k]] =
            (int64_t)(s += ((uint64_t *)x->rank[c->rank])[from[1] + at[k]]);
      }
    }
  } while (grid_next(&g, count, from));
}

// ---- products -----------------------------------------------------------------------------------------------------
// `l` with its dims in the order given, in one block; l's own storage when it lies so
static double *packed(const Ctx *c, const Local *l, const DimId *dims, int n) {
  bool same = true;
  for (int i = 0; i < n; i++) same &= l->type.dim[i] == dims[i];
  if (same) return l->rank[c->rank];
  double *to = scratch_get(c->it, (size_t)l->count * sizeof *to);
  Pairs p[MAX_DIMS];
  int64_t step = 1;
  for (int i = n; i-- > 0;) {
    int j = position(c, l, dims[i]);
    p[i] = (Pairs){.n = l->n[j], .dto = step, .dfrom = l->stride[j]};
    step *= l->n[j];
  }
  cells_move(l->type.dtype, to, l->rank[c->rank], p, (uint32_t)n, MOVE_copy);
  return to;
}

enum { ROWS = 4, COLS = 4 };
// o[m,n] = a[m,k] · b[k,n], every sum in the order of k; panel: room for k · COLS
static void product(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *o, double *panel) {
  for (int64_t j = 0; j < n; j += COLS) {
    int64_t nj = MIN(n - j, COLS);
    for (int64_t q = 0; q < k; q++)
      for (int64_t y = 0; y < COLS; y++) panel[q * COLS + y] = y < nj ? b[q * n + j + y] : 0;
    for (int64_t i = 0; i < m; i += ROWS) {
      const double *row[ROWS];
      double s[ROWS][COLS] = {{0}};
      for (int64_t x = 0; x < ROWS; x++) row[x] = a + MIN(i + x, m - 1) * k;
      for (int64_t q = 0; q < k; q++)
        for (int x = 0; x < ROWS; x++)
          for (int y = 0; y < COLS; y++) s[x][y] += row[x][q] * panel[q * COLS + y];
      for (int64_t x = 0; x < MIN(ROWS, m - i); x++)
        for (int64_t y = 0; y < nj; y++) o[(i + x) * n + j + y] = s[x][y];
    }
  }
}

static void dims_join(DimId *to, const DimId *a, int na, const DimId *b, int nb, const DimId *c, int nc) {
  for (int i = 0; i < na; i++) to[i] = a[i];
  for (int i = 0; i < nb; i++) to[na + i] = b[i];
  for (int i = 0; i < nc; i++) to[na + nb + i] = c[i];
}

static void run_dot(const Ctx *c) {
  const Local *a = operand(c, 0), *b = operand(c, 1);
  Local *out = result(c);
  DimId da[MAX_DIMS], db[MAX_DIMS], left[MAX_DIMS], right[MAX_DIMS], to[2 * MAX_DIMS];
  int nb = 0, nl = 0, nr = 0, nk = c->at->ndims;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  for (int i = 0; i < a->type.ndim; i++) {
    DimId d = a->type.dim[i];
    int j = type_pos(&b->type, d);
    if (j >= 0 && a->n[i] != b->n[j]) bug("interpreter: dot: %s is split differently", dim_of(c->m, d)->name);
    if (dims_have(c->at->dims, c->at->ndims, d)) k *= a->n[i];
    else if (j >= 0) to[nb++] = d, batch *= a->n[i];
    else left[nl++] = d, m *= a->n[i];
  }
  for (int i = 0; i < b->type.ndim; i++)
    if (type_pos(&a->type, b->type.dim[i]) < 0) right[nr++] = b->type.dim[i], n *= b->n[i];
  dims_join(da, to, nb, left, nl, c->at->dims, nk);
  dims_join(db, to, nb, c->at->dims, nk, right, nr);
  dims_join(to, to, nb, left, nl, right, nr);
  if (!out->count || !k) return;
  double *x = packed(c, a, da, nb + nl + nk), *y = packed(c, b, db, nb + nk + nr);
  double *o = scratch_get(c->it, (size_t)out->count * sizeof *o);
  double *panel = scratch_get(c->it, (size_t)k * COLS * sizeof *panel);
  for (int64_t i = 0; i < batch; i++) product(m, n, k, x + i * m * k, y + i * k * n, o + i * m * n, panel);
  Pairs p[MAX_DIMS];
  int64_t step = 1;
  for (int i = nb + nl + nr; i-- > 0;) {
    int j = position(c, out, to[i]);
    p[i] = (Pairs){.n = out->n[j], .dto = out->stride[j], .dfrom = step};
    step *= out->n[j];
  }
  cells_move(out->type.dtype, out->rank[c->rank], o, p, (uint32_t)(nb + nl + nr), MOVE_copy);
}

// ---- dims ---------------------------------------------------------------------------------------------------------
// result dims from the operand's dim of that name, or repeated; `swap` is found under the name `from` with its entries
// moved by shift
static int64_t remap(const Ctx *c, Local *out, const Local *x, DimId swap, DimId from, int64_t shift, int64_t first) {
  Pairs p[MAX_DIMS];
  for (int i = 0; i < out->type.ndim; i++) {
    DimId d = out->type.dim[i];
    const Order *o = order(c, out, i);
    int j = type_pos(&x->type, d == swap ? from : d);
    p[i] = j < 0 ? pairs_real(c->it, o, out->stride[i], 0)
                 : pairs_match(c->it, o, out->stride[i], order(c, x, j), x->stride[j], d == swap ? shift : 0);
  }
  const char *from_first = (const char *)x->rank[c->rank] + first * 8;
  return cells_move(out->type.dtype, out->rank[c->rank], from_first, p, out->type.ndim, MOVE_copy);
}

// entry g of the old dim is entry g of the new one, whatever the order of either
static bool run_rename(const Ctx *c) {
  const Local *x = operand(c, 0);
  Local *out = result(c);
  Pairs p[MAX_DIMS];
  for (int i = 0; i < out->type.ndim; i++) {
    DimId was = out->type.dim[i];
    for (uint32_t k = 0; k < c->at->ndims; k++)
      if (c->at->to[k] == out->type.dim[i]) was = c->at->dims[k];
    int j = position(c, x, was);
    p[i] = pairs_match(c->it, order(c, out, i), out->stride[i], order(c, x, j), x->stride[j], 0);
  }
  return complete(c, out,
                  cells_move(out->type.dtype, out->rank[c->rank], x->rank[c->rank], p, out->type.ndim, MOVE_copy));
}

// one dim and its parts, the first the slowest: entry (a·B + b) of the dim is entry (a, b) of the parts. Walks `one`.
static bool run_parts(const Ctx *c, const Local *one, const Local *parts, DimId dim, const DimId *part, uint32_t npart,
                      bool merge) {
  Pairs p[MAX_DIMS];
  for (int i = 0; i < one->type.ndim; i++) {
    const Order *o = order(c, one, i);
    if (one->type.dim[i] != dim) {
      int j = position(c, parts, one->type.dim[i]);
      p[i] = merge ? pairs_match(c->it, o, one->stride[i], order(c, parts, j), parts->stride[j], 0)
                   : pairs_match(c->it, order(c, parts, j), parts->stride[j], o, one->stride[i], 0);
      continue;
    }
    p[i] = pairs_table(c->it, o->n);
    for (int64_t q = 0; q < o->n; q++) {
      int64_t rest = order_global(o, q), at = rest < o->extent ? 0 : -1;
      for (uint32_t k = npart; k-- > 0 && at >= 0;) {
        int j = position(c, parts, part[k]);
        int64_t extent = dim_of(c->m, part[k])->extent, place = order_place(order(c, parts, j), rest % extent);
        at = place < 0 ? -1 : at + place * parts->stride[j], rest /= extent;
      }
      if (at < 0) continue;
      p[i].tos[p[i].n] = merge ? q * one->stride[i] : at;
      p[i].froms[p[i].n++] = merge ? at : q * one->stride[i];
    }
  }
  int64_t moved = cells_move(one->type.dtype, result(c)->rank[c->rank], cells(c, 0), p, one->type.ndim, MOVE_copy);
  return complete(c, result(c), moved);
}

static bool run_stack(const Ctx *c) {
  Local *out = result(c);
  int at = position(c, out, c->at->dims[0]);
  int64_t moved = 0;
  for (uint32_t k = 0; k < c->n->nin; k++) {
    Pairs p[MAX_DIMS];
    for (int i = 0; i < out->type.ndim; i++) {
      const Order *o = order(c, out, i);
      int j = type_pos(&operand(c, k)->type, out->type.dim[i]);
      p[i] = i == at ? (Pairs){.n = 1, .to = order_place(o, k) * out->stride[i]}
           : j < 0   ? pairs_real(c->it, o, out->stride[i], 0)
                     : pairs_match(c->it, o, out->stride[i], order(c, operand(c, k), j), operand(c, k)->stride[j], 0);
    }
    if (p[at].to < 0) return complain(c, "the stacked dim is split");
    moved += cells_move(out->type.dtype, out->rank[c->rank], cells(c, k), p, out->type.ndim, MOVE_copy);
  }
  return complete(c, out, moved);
}

static bool run_unstack(const Ctx *c) {
  const Local *x = operand(c, 0);
  int at = position(c, x, c->at->dims[0]);
  for (uint32_t k = 0; k < c->n->nout; k++) {
    Local *out = &c->w->out[k];
    int64_t place = order_place(order(c, x, at), k);
    if (place < 0) return complain(c, "the unstacked dim is split");
    if (!complete(c, out, remap(c, out, x, 0, 0, 0, place * x->stride[at]))) return false;
  }
  return true;
}

static bool run_slice(const Ctx *c) {
  return complete(c, result(c), remap(c, result(c), operand(c, 0), c->at->to[0], c->at->dims[0], c->at->at, 0));
}
// of a split dim: what this rank holds, the rest 0 (a pending sum)
static bool run_unslice(const Ctx *c) {
  remap(c, result(c), operand(c, 0), c->at->to[0], c->at->dims[0], -c->at->at, 0);
  return true;
}

static bool run_shift(const Ctx *c) {
  run_const(c);
  remap(c, result(c), operand(c, 0), c->at->dims[0], c->at->dims[0], -c->at->at, 0);
  return true;
}

// ---- gather, scatter ----------------------------------------------------------------------------------------------
// steps along the dims of `all` of up to three values (0 where they lack a dim)
static Grid grid_over(const Local *all, const Local *x, const Local *y) {
  Grid g = {.nd = 0};
  for (int i = 0; i < all->type.ndim; i++, g.nd++) {
    int j = type_pos(&x->type, all->type.dim[i]), k = type_pos(&y->type, all->type.dim[i]);
    g.n[g.nd] = all->n[i], g.step[0][g.nd] = all->stride[i];
    g.step[1][g.nd] = j < 0 ? 0 : x->stride[j], g.step[2][g.nd] = k < 0 ? 0 : y->stride[k];
  }
  if (!g.nd) g.nd = 1, g.n[0] = 1;
  return g;
}

// an index without an entry here reads 0: below 0, past the end, or another rank's
static void run_gather(const Ctx *c) {
  Local *out = result(c);
  const Local *x = operand(c, 0), *index = operand(c, 1);
  Grid g = grid_over(out, x, index);
  int d = position(c, x, c->at->dims[0]), in = g.nd - 1;
  const Order *o = order(c, x, d);
  const int64_t *ix = index->rank[c->rank];
  int64_t count[MAX_DIMS + 1] = {0}, at[4] = {0};
  bool flt = cells_float(out->type.dtype);
  if (!out->count) return;
  do {
    for (int64_t i = 0; i < g.n[in]; i++) {
      int64_t place = order_place(o, ix[at[2] + i * g.step[2][in]]);
      if (place < 0) continue;
      int64_t from = at[1] + i * g.step[1][in] + place * x->stride[d], to = at[0] + i * g.step[0][in];
      if (flt) ((double *)out->rank[c->rank])[to] = ((double *)x->rank[c->rank])[from];
      else ((int64_t *)out->rank[c->rank])[to] = ((int64_t *)x->rank[c->rank])[from];
    }
  } while (grid_next(&g, count, at));
}

// adds in the order of the rows' storage; only rows whose entry is here
static void run_scatter(const Ctx *c) {
  Local *out = result(c);
  const Local *x = operand(c, 0), *index = operand(c, 1);
  Grid g = grid_over(x, out, index);
  int d = position(c, out, c->at->dims[0]), in = g.nd - 1;
  const Order *o = order(c, out, d);
  for (int i = 0; i < x->type.ndim; i++)                // summed: dims of the index that are not kept
    if (!dims_have(c->at->to, c->at->nto, x->type.dim[i]) && type_pos(&index->type, x->type.dim[i]) >= 0)
      g.step[1][i] = 0;
  const int64_t *ix = index->rank[c->rank];
  int64_t count[MAX_DIMS + 1] = {0}, at[4] = {0};
  bool flt = cells_float(out->type.dtype);
  if (!x->count) return;
  do {
    for (int64_t i = 0; i < g.n[in]; i++) {
      int64_t place = order_place(o, ix[at[2] + i * g.step[2][in]]);
      if (place < 0) continue;
      int64_t from = at[0] + i * g.step[0][in], to = at[1] + i * g.step[1][in] + place * out->stride[d];
      if (flt) ((double *)out->rank[c->rank])[to] += ((double *)x->rank[c->rank])[from];
      else ((uint64_t *)out->rank[c->rank])[to] += ((uint64_t *)x->rank[c->rank])[from];
    }
  } while (grid_next(&g, count, at));
}

// ---- collectives: groups differ in the coordinates on the op's axes only; sums in the order of ranks -------------
static Move combines(const Local *x) { return x->type.pending == PENDING_max ? MOVE_max : MOVE_add; }

// x with rank r's entries in another format, until the node is done
static Local rounded(const Ctx *c, const Local *x, uint32_t r, DType t) {
  Local y = *x;
  y.rank = scratch_get(c->it, c->it->ranks * sizeof *y.rank);
  double *to = y.rank[r] = scratch_get(c->it, (size_t)x->count * 8);
  for (int64_t i = 0; i < x->count; i++) to[i] = dtype_round(t, ((const double *)x->rank[r])[i]);
  return y;
}

static bool run_collective(const Ctx *c) {
  Local *out = result(c);
  const Local *x = operand(c, 0);
  uint8_t axes = c->at->axes;
  bool reduces = c->n->op == OP_all_reduce || c->n->op == OP_reduce_scatter;
  uint8_t others = (uint8_t)~axes;
  int64_t moved = 0, parts = 0;
  DType sent = sum_format(c->w->fn, (NodeId)(c->n - c->w->fn->node.at));
  for (uint32_t r = 0; r < c->it->ranks; r++) {
    if (rank_alike(c->it, r, others) != rank_alike(c->it, c->rank, others)) continue;
    Local term = sent ? rounded(c, x, r, sent) : *x;
    int64_t n = local_move(c->it, out, c->rank, &term, r, reduces && parts ? combines(x) : MOVE_copy);
    if (reduces && !complete(c, out, n)) return false;
    moved += n, parts++;
  }
  for (int64_t i = 0; sent && i < out->count; i++)
    ((double *)out->rank[c->rank])[i] = dtype_round(sent, ((double *)out->rank[c->rank])[i]);
  return reduces || complete(c, out, moved);
}

// Any layout to any other: entries from whoever has them, sums that are pending no more over all ranks that hold terms.
static bool run_reshard(const Ctx *c) {
  Local *out = result(c);
  const Local *x = operand(c, 0);
  uint8_t sums = x->type.pending_axes & (uint8_t)~out->type.pending_axes, parts = 0;
  for (int i = 0; i < x->type.ndim; i++) parts |= split_mask(x->type.split[i]);
  uint8_t same = (uint8_t)~(sums | parts);
  int64_t moved = 0;
  for (uint32_t r = 0; r < c->it->ranks; r++) {
    if (rank_alike(c->it, r, same) != rank_alike(c->it, c->rank, same)) continue;
    bool first = rank_alike(c->it, r, sums) == 0;
    int64_t n = local_move(c->it, out, c->rank, x, r, first ? MOVE_copy : combines(x));
    if (first) moved += n;
  }
  return complete(c, out, moved);
}

// what this rank has of the operand, in the result's order
static bool run_copy(const Ctx *c) {
  return complete(c, result(c), local_move(c->it, result(c), c->rank, operand(c, 0), c->rank, MOVE_copy));
}

// -------------------------------------------------------------------------------------------------------------------
static bool run_on_rank(const Ctx *c) {
  const Attr *at = c->at;
  switch (c->n->op) {
  case OP_const: return run_const(c), true;
  case OP_index: return run_index(c), true;
  case OP_random: return run_random(c), true;
  case OP_select: return run_select(c), true;
  case OP_cast: return run_cast(c), true;
  case OP_dot: return run_dot(c), true;
  case OP_sum: case OP_reduce_max: return run_reduce(c), true;
  case OP_cumsum: return run_cumsum(c), true;
  case OP_expand: return complete(c, result(c), remap(c, result(c), operand(c, 0), 0, 0, 0, 0));
  case OP_rename: return run_rename(c);
  case OP_split: return run_parts(c, operand(c, 0), result(c), at->dims[0], at->to, at->nto, false);
  case OP_merge: return run_parts(c, result(c), operand(c, 0), at->to[0], at->dims, at->ndims, true);
  case OP_stack: return run_stack(c);
  case OP_unstack: return run_unstack(c);
  case OP_slice: return run_slice(c);
  case OP_unslice: return run_unslice(c);
  case OP_shift: return run_shift(c);
  case OP_gather: return run_gather(c), true;
  case OP_scatter: return run_scatter(c), true;
  case OP_all_reduce: case OP_reduce_scatter: case OP_all_gather: case OP_all_to_all: return run_collective(c);
  case OP_take_shard: case OP_read: return run_copy(c);
  case OP_reshard: return run_reshard(c);
  default: break;
  }
  if (op_has(c->n->op, OPF_EW)) return run_elementwise(c), true;
  bug("interpreter: %s is not known", op_info[c->n->op].name);
}

bool op_run(Interp *it, const OpCall *w) {
  for (uint32_t r = 0; r < it->ranks; r++) {
    Ctx c = {.it = it, .w = w, .m = it->m, .n = w->node, .at = &w->node->attr, .rank = r};
    if (!run_on_rank(&c)) return false;
  }
  return true;
}
