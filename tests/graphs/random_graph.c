// random_graph.c -- see random_graph.h. Each value carries a bound on its magnitude; what could outgrow it is calmed by
// tanh or scaled first.
#include "tests/graphs/random_graph.h"
#include <math.h>
#include <string.h>

enum { MOST = 2048, MOST_DIMS = 24 };                   // stored entries of a value; dims of a module
static const double CALM = 64, LIMIT = 3e4;             // bounds of floats in the pool; of sums and integers (f16 ends at 65504, i16 at 32767)

typedef struct { ValId v; double bound; bool used; } Pooled;

typedef struct {
  Module *m;
  Fn *f;
  Build b;
  RandomGraph o;
  uint64_t state;
  uint32_t paths;
  VEC(Pooled) pool;                                     // values that later nodes may use
} Graph;

static uint64_t draw(Graph *g, uint64_t below) { return (g->state = hash_mix(g->state, 1)) % below; }
static bool chance(Graph *g, uint64_t of) { return !draw(g, of); }
static double uniform(Graph *g, double lo, double hi) { return lo + (hi - lo) * (double)draw(g, 1 << 20) / (1 << 20); }

// ---- dims ---------------------------------------------------------------------------------------------------------
static DimId new_dim(Graph *g, int64_t extent, int64_t size, DimId root) {
  if (g->m->dim.n > MOST_DIMS) return 0;
  return dim_add(g->m, (Dim){.name = intern_printf(g->m->in, "%s%u", root ? "role" : "d", g->m->dim.n), .extent = extent, .size = size, .root = root});
}

static void new_dims(Graph *g) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16};
  for (uint64_t n = 3 + draw(g, 4); n; n--) {
    int64_t extent = sizes[draw(g, COUNT(sizes))], size = extent;
    if (g->o.empty && chance(g, 40)) extent = size = 0;
    if (chance(g, 4)) size += (int64_t)draw(g, 5);
    DimId d = new_dim(g, extent, size, 0);
    if (chance(g, 4)) new_dim(g, extent, size, d);
  }
}

static int64_t count_of(const Graph *g, const DimId *dims, uint32_t n) {        // stored entries, one at least
  int64_t c = 1;
  for (uint32_t i = 0; i < n; i++) c *= MAX(dim_of(g->m, dims[i])->size, 1);
  return c;
}
static bool fits(const Graph *g, const Type *t) { return t->ndim < MAX_DIMS && count_of(g, t->dim, t->ndim) <= MOST; }
static bool named(const DimId *dims, uint32_t n, DimId d) {
  for (uint32_t i = 0; i < n; i++)
    if (dims[i] == d) return true;
  return false;
}
static bool has_dims(const Type *all, const Type *t) {
  for (uint32_t i = 0; i < t->ndim; i++)
    if (type_pos(all, t->dim[i]) < 0) return false;
  return true;
}

// a dim that t has, or has not; 0 when there is none
static DimId dim_in(Graph *g, const Type *t) { return t->ndim ? t->dim[draw(g, t->ndim)] : 0; }
static DimId dim_outside(Graph *g, const Type *t) {
  for (int tries = 0; tries < 8; tries++) {
    DimId d = 1 + (DimId)draw(g, g->m->dim.n - 1);
    if (type_pos(t, d) < 0) return d;
  }
  return 0;
}

static Type random_type(Graph *g, DType dtype) {
  Type t = {.dtype = dtype};
  for (uint64_t n = draw(g, 4); n; n--) {
    DimId d = dim_outside(g, &t);
    if (!d) continue;
    t.dim[t.ndim++] = d;
    if (!fits(g, &t)) t.ndim--;
  }
  return t;
}

// ---- values -------------------------------------------------------------------------------------------------------
static const Type *type_of(const Graph *g, ValId v) { return val_type(g->f, v); }
static bool is_float(const Graph *g, ValId v) { return dtype_is_float(type_of(g, v)->dtype); }

static double bound_of(const Graph *g, ValId v) {
  for (uint32_t i = g->pool.n; i--;)
    if (g->pool.at[i].v == v) return g->pool.at[i].bound;
  return LIMIT;
}

static ValId keep(Graph *g, ValId v, double bound) {
  vec_push(g->m->arena, &g->pool, (Pooled){v, bound, false});
  return v;
}

typedef enum { ANY, FLOATS, INTS, BOOLS, NUMBERS } Kind;
static bool is_kind(const Graph *g, ValId v, Kind k) {
  DType t = type_of(g, v)->dtype;
  return k == ANY || (k == FLOATS && dtype_is_float(t)) || (k == INTS && dtype_is_int(t)) || (k == BOOLS && t == DT_bool) || (k == NUMBERS && t != DT_bool);
}

static ValId take(Pooled *p) { return p->used = true, p->v; }

// a value of that kind, young ones rather than old; 0 when none was found
static ValId pick(Graph *g, Kind k) {
  for (int tries = 0; tries < 16; tries++) {
    uint32_t n = g->pool.n, i = chance(g, 2) ? n - 1 - (uint32_t)draw(g, MIN(n, 6)) : (uint32_t)draw(g, n);
    if (is_kind(g, g->pool.at[i].v, k)) return take(&g->pool.at[i]);
  }
  return 0;
}

static ValId number(Graph *g, DType t, double v) { return ir_const(&g->b, v, t); }

// a value of `like`'s dtype with no dim that `like` lacks: a number when none is found
static ValId pick_under(Graph *g, const Type *like) {
  for (int tries = 0; tries < 12; tries++) {
    Pooled *p = &g->pool.at[draw(g, g->pool.n)];
    if (type_of(g, p->v)->dtype == like->dtype && has_dims(like, type_of(g, p->v))) return take(p);
  }
  if (like->dtype == DT_bool) return keep(g, number(g, DT_bool, (double)draw(g, 2)), 1);
  double v = dtype_is_float(like->dtype) ? uniform(g, -2, 2) : (double)draw(g, 6) - 2;
  if (dtype_is_float(like->dtype)) v = dtype_round(DT_bf16, v);
  return keep(g, number(g, like->dtype, v), 2 + fabs(v));
}

static ValId bin(Graph *g, Op op, ValId x, ValId y) { return ir_binary(&g->b, op, x, y); }
static ValId scaled(Graph *g, ValId x, double by) { return bin(g, OP_mul, x, number(g, type_of(g, x)->dtype, dtype_round(DT_bf16, by))); }
static ValId plus(Graph *g, ValId x, double v) { return bin(g, OP_add, x, number(g, type_of(g, x)->dtype, v)); }
static ValId magnitude(Graph *g, ValId x) {             // |x|, or something like it that differentiates
  return g->o.smooth && is_float(g, x) ? bin(g, OP_mul, x, x) : ir_unary(&g->b, OP_abs, x);
}

// the pool's bound holds for what enters it
static ValId settle(Graph *g, ValId v, double bound) {
  if (bound <= CALM) return keep(g, v, bound);
  if (!is_float(g, v)) return bound < LIMIT ? keep(g, v, bound) : 0;
  return keep(g, ir_unary(&g->b, OP_tanh, v), 1);
}

// x such that sums of `count` of it stay below the limit
static ValId modest(Graph *g, ValId x, double *bound, int64_t count) {
  if (*bound * (double)count <= LIMIT) return x;
  *bound = 1.01 * LIMIT / 2 / (double)count;
  return scaled(g, ir_unary(&g->b, OP_tanh, x), LIMIT / 2 / (double)count);
}

// ---- elementwise --------------------------------------------------------------------------------------------------
static ValId arithmetic(Graph *g, Op op) {
  ValId x = pick(g, NUMBERS);
  if (!x) return 0;
  bool flt = is_float(g, x);
  if (!flt && (op == OP_div || op == OP_pow)) return 0;
  if (flt && g->o.smooth && (op == OP_mod || op == OP_min || op == OP_max)) return 0;
  ValId y = pick_under(g, type_of(g, x));
  double a = bound_of(g, x), b = bound_of(g, y), bound = MAX(a, b);
  bool swap = op != OP_div && op != OP_mod && op != OP_pow && chance(g, 3);
  switch (op) {
  case OP_add: case OP_sub: bound = a + b; break;
  case OP_mul: bound = a * b; break;
  case OP_div: y = plus(g, magnitude(g, y), 1), bound = a; break;
  case OP_mod: y = plus(g, magnitude(g, y), 1), bound = b + 1; break;
  case OP_pow:
    x = plus(g, magnitude(g, ir_unary(&g->b, OP_tanh, x)), 0.5), bound = 4;        // [0.5, 1.5] to the power of [-2, 2]
    y = number(g, type_of(g, x)->dtype, (double)draw(g, 9) / 2 - 2);
    break;
  default: break;
  }
  if (!flt && bound >= LIMIT) return 0;
  return settle(g, swap ? bin(g, op, y, x) : bin(g, op, x, y), bound);
}

// x beside where it would be: what is made of whole numbers by rounded sums is not left at the edge of a step.
static ValId off_edge(Graph *g, ValId x) { return is_float(g, x) ? plus(g, x, 0.1234567) : x; }

static ValId compare(Graph *g, Op op) {
  ValId x = pick(g, g->o.smooth ? INTS : ANY);
  if (!x) return 0;
  ValId y = pick_under(g, type_of(g, x));
  return keep(g, bin(g, op, op == OP_eq || op == OP_ne ? x : off_edge(g, x), y), 1);
}

static ValId logic(Graph *g, Op op) {
  ValId x = pick(g, BOOLS);
  if (!x) return 0;
  return keep(g, op == OP_not ? ir_unary(&g->b, op, x) : bin(g, op, x, pick_under(g, type_of(g, x))), 1);
}

static ValId unary(Graph *g, Op op) {
  ValId x = pick(g, FLOATS);
  if (!x) return 0;
  double bound = bound_of(g, x);
  switch (op) {
  case OP_exp:
    if (bound > 4) x = ir_unary(&g->b, OP_tanh, x), bound = 1;
    bound = exp(bound);
    break;
  case OP_log: x = plus(g, magnitude(g, x), 0.5), bound = 12; break;
  case OP_sqrt: x = plus(g, magnitude(g, x), 0.25), bound = 1 + bound; break;
  case OP_rsqrt: x = plus(g, magnitude(g, x), 0.25), bound = 2; break;
  case OP_floor: case OP_ceil:
    if (g->o.smooth) return 0;
    x = off_edge(g, x), bound += 2;
    break;
  default: bound = 1;                                   // tanh sin cos erf
  }
  return settle(g, ir_unary(&g->b, op, x), bound);
}

static ValId negate(Graph *g, Op op) {
  ValId x = pick(g, NUMBERS);
  if (!x || (op == OP_abs && g->o.smooth && is_float(g, x))) return 0;
  return keep(g, ir_unary(&g->b, op, x), bound_of(g, x));
}

static ValId choose(Graph *g) {
  ValId c = pick(g, BOOLS), x = pick(g, ANY);
  if (!c || !x) return 0;
  if (has_dims(type_of(g, x), type_of(g, c))) {
    ValId y = pick_under(g, type_of(g, x));
    bool swap = chance(g, 3);
    return keep(g, ir_select(&g->b, c, swap ? y : x, swap ? x : y), MAX(bound_of(g, x), bound_of(g, y)));
  }
  Type like = *type_of(g, c);
  like.dtype = type_of(g, x)->dtype;
  x = pick_under(g, &like);
  ValId y = pick_under(g, &like);
  return keep(g, ir_select(&g->b, c, x, y), MAX(bound_of(g, x), bound_of(g, y)));
}

static ValId convert(Graph *g) {
  static const DType narrow[] = {DT_f32, DT_bf16, DT_f16}, ints[] = {DT_i32, DT_i64, DT_i16, DT_bool};
  ValId x = pick(g, ANY);
  if (!x) return 0;
  DType to = g->o.dtype;
  bool flt = is_float(g, x);
  if (flt && type_of(g, x)->dtype == g->o.dtype) {
    bool thin = g->o.narrow && !g->o.smooth;
    if (thin && chance(g, 2)) to = narrow[draw(g, COUNT(narrow))];
    else if (g->o.smooth) return 0;
    else to = ints[draw(g, COUNT(ints))];
    if (dtype_is_float(to) && dtype_bytes(to) > dtype_bytes(g->o.dtype)) return 0;
  }
  return settle(g, ir_cast(&g->b, x, to), MAX(bound_of(g, x) * 1.01, 1));
}

// ---- products and reductions --------------------------------------------------------------------------------------
static ValId product(Graph *g) {
  ValId x = pick(g, FLOATS), y = 0;
  if (!x) return 0;
  for (int tries = 0; tries < 6 && !y; tries++) {
    y = pick(g, FLOATS);
    if (y && type_of(g, y)->dtype != type_of(g, x)->dtype) y = 0;
  }
  if (!y) return 0;
  Type a = *type_of(g, x), b = *type_of(g, y), t = {.dtype = a.dtype};
  Attr at = {0};
  for (uint32_t i = 0; i < a.ndim; i++)
    if (type_pos(&b, a.dim[i]) >= 0 && !chance(g, 3)) at.dims[at.ndims++] = a.dim[i];
  if (a.ndim + b.ndim > MAX_DIMS) return 0;
  for (uint32_t i = 0; i < a.ndim; i++)
    if (!named(at.dims, at.ndims, a.dim[i])) t.dim[t.ndim++] = a.dim[i];
  for (uint32_t i = 0; i < b.ndim; i++)
    if (type_pos(&a, b.dim[i]) < 0) t.dim[t.ndim++] = b.dim[i];
  if (!fits(g, &t)) return 0;
  int64_t inner = count_of(g, at.dims, at.ndims);
  double bx = bound_of(g, x), by = bound_of(g, y);
  double both = bx * by;
  if (both * (double)inner > LIMIT) {
    x = ir_unary(&g->b, OP_tanh, x), y = ir_unary(&g->b, OP_tanh, y);
    both = 1;
  }
  return settle(g, ir_add(&g->b, OP_dot, (ValId[]){x, y}, 2, at), both * (double)inner);
}

// a random subset of t's dims, in random order; at least one where t has any
static uint32_t some_dims(Graph *g, const Type *t, DimId *dims) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->ndim; i++)
    if (chance(g, 2)) dims[n++] = t->dim[i];
  if (!n && t->ndim) dims[n++] = dim_in(g, t);
  for (uint32_t i = n; i > 1; i--) {
    uint32_t k = (uint32_t)draw(g, i);
    DimId d = dims[i - 1];
    dims[i - 1] = dims[k], dims[k] = d;
  }
  return n;
}

static ValId reduce(Graph *g, Op op) {
  ValId x = pick(g, NUMBERS);
  if (!x || !type_of(g, x)->ndim) return 0;
  if (op == OP_reduce_max && g->o.smooth && is_float(g, x)) return 0;
  Attr at = {0};
  at.ndims = (uint8_t)some_dims(g, type_of(g, x), at.dims);
  for (uint32_t i = 0; i < at.ndims && op == OP_reduce_max; i++)
    if (!dim_of(g->m, at.dims[i])->extent) return 0;    // the maximum of nothing is -inf
  int64_t n = count_of(g, at.dims, at.ndims);
  double bound = bound_of(g, x);
  if (op != OP_reduce_max) {
    if (is_float(g, x)) x = modest(g, x, &bound, n);
    bound *= (double)n;
    if (!is_float(g, x) && bound >= LIMIT) return 0;
  }
  if (op == OP_cumsum) at.at = (int64_t)draw(g, 2);
  return settle(g, ir_add(&g->b, op, &x, 1, at), bound);
}

// ---- dims ---------------------------------------------------------------------------------------------------------
static ValId expand(Graph *g) {
  ValId x = pick(g, ANY);
  Attr at = {0};
  if (!x) return 0;
  Type t = *type_of(g, x);
  for (uint64_t n = 1 + draw(g, 2); n; n--) {
    DimId d = dim_outside(g, &t);
    if (!d) continue;
    t.dim[t.ndim++] = d;
    if (fits(g, &t)) at.dims[at.ndims++] = d;
    else t.ndim--;
  }
  return at.ndims ? keep(g, ir_add(&g->b, OP_expand, &x, 1, at), bound_of(g, x)) : 0;
}

static DimId twin(Graph *g, const Type *t, DimId d) {   // a dim like d that t lacks
  const Dim *like = dim_of(g->m, d);
  for (DimId k = 1; k < g->m->dim.n; k++)
    if (dim_of(g->m, k)->extent == like->extent && dim_of(g->m, k)->size == like->size && type_pos(t, k) < 0 && !chance(g, 3))
      return k;
  return new_dim(g, like->extent, like->size, chance(g, 2) ? like->root : 0);
}

static ValId rename_dims(Graph *g) {
  ValId x = pick(g, ANY);
  if (!x || !type_of(g, x)->ndim) return 0;
  Attr at = {0};
  Type t = *type_of(g, x);
  uint32_t n = some_dims(g, type_of(g, x), at.dims);
  for (uint32_t i = 0; i < n; i++) {
    DimId to = twin(g, &t, at.dims[i]);
    if (!to) break;
    at.to[at.nto++] = to, at.ndims++;
    if (t.ndim < MAX_DIMS) t.dim[t.ndim++] = to;
    else break;
  }
  return at.ndims ? keep(g, ir_add(&g->b, OP_rename, &x, 1, at), bound_of(g, x)) : 0;
}

static DimId sized(Graph *g, const Type *t, int64_t extent) {     // a dim of that extent without padding that t lacks
  for (DimId k = 1; k < g->m->dim.n; k++)
    if (dim_of(g->m, k)->extent == extent && dim_of(g->m, k)->size == extent && type_pos(t, k) < 0 && !chance(g, 3))
      return k;
  return new_dim(g, extent, extent, 0);
}

static ValId split(Graph *g) {
  ValId x = pick(g, ANY);
  if (!x || !type_of(g, x)->ndim) return 0;
  Attr at = {.ndims = 1};
  Type t = *type_of(g, x);
  DimId d = at.dims[0] = dim_in(g, &t);
  int64_t left = dim_of(g->m, d)->extent;
  if (!left || dim_of(g->m, d)->size != left || t.ndim > MAX_DIMS - 3) return 0;
  for (uint64_t n = 1 + draw(g, 3); n; n--) {
    int64_t part = left;
    for (int64_t k = left - 1; k && n > 1 && part == left; k--)
      if (left % k == 0 && chance(g, 2)) part = k;
    DimId p = sized(g, &t, part);
    if (!p) return 0;
    at.to[at.nto++] = t.dim[t.ndim++] = p, left /= part;
  }
  return left == 1 ? keep(g, ir_add(&g->b, OP_split, &x, 1, at), bound_of(g, x)) : 0;
}

static ValId merge(Graph *g) {
  ValId x = pick(g, ANY);
  if (!x || !type_of(g, x)->ndim) return 0;
  Attr at = {.nto = 1};
  const Type t = *type_of(g, x);
  int64_t whole = 1;
  DimId some[MAX_DIMS];
  uint32_t n = some_dims(g, &t, some);
  for (uint32_t i = 0; i < n && i < 3; i++) {
    const Dim *d = dim_of(g->m, some[i]);
    if (d->extent == d->size && d->extent) at.dims[at.ndims++] = some[i], whole *= d->extent;
  }
  if (!at.ndims || !(at.to[0] = sized(g, &t, whole))) return 0;
  return keep(g, ir_add(&g->b, OP_merge, &x, 1, at), bound_of(g, x));
}

static ValId stack(Graph *g) {
  ValId in[3] = {pick(g, ANY)};
  if (!in[0]) return 0;
  Type t = *type_of(g, in[0]);
  uint32_t n = 1 + (uint32_t)draw(g, 3);
  double bound = bound_of(g, in[0]);
  Attr at = {.ndims = 1};
  if (t.ndim == MAX_DIMS || !(at.dims[0] = sized(g, &t, n))) return 0;
  t.dim[t.ndim++] = at.dims[0];
  if (!fits(g, &t)) return 0;
  t.ndim--;
  for (uint32_t i = 1; i < n; i++) in[i] = pick_under(g, &t), bound = MAX(bound, bound_of(g, in[i]));
  uint32_t k = (uint32_t)draw(g, n);
  ValId first = in[0];
  in[0] = in[k], in[k] = first;
  return keep(g, ir_add(&g->b, OP_stack, in, n, at), bound);
}

static ValId unstack(Graph *g) {
  ValId x = pick(g, ANY);
  if (!x || !type_of(g, x)->ndim) return 0;
  Attr at = {.ndims = 1, .dims = {dim_in(g, type_of(g, x))}};
  int64_t n = dim_of(g->m, at.dims[0])->extent;
  if (n < 1 || n > 13) return 0;
  double bound = bound_of(g, x);
  ValId v = ir_add(&g->b, OP_unstack, &x, 1, at);
  for (int64_t i = 0; i < n; i++) keep(g, v + (ValId)i, bound);
  return v;
}

static ValId window(Graph *g, Op op) {                  // slice, unslice
  ValId x = pick(g, ANY);
  if (!x || !type_of(g, x)->ndim) return 0;
  Type t = *type_of(g, x);
  Attr at = {.ndims = 1, .nto = 1, .dims = {dim_in(g, &t)}, .to = {dim_outside(g, &t)}};
  if (!at.to[0]) return 0;
  const Dim *a = dim_of(g->m, at.dims[0]), *b = dim_of(g->m, at.to[0]);
  int64_t room = op == OP_slice ? a->extent - b->extent : b->extent - a->extent;
  t.dim[type_pos(&t, at.dims[0])] = at.to[0];
  if (room < 0 || !fits(g, &t)) return 0;
  at.at = (int64_t)draw(g, (uint64_t)room + 1);
  return keep(g, ir_add(&g->b, op, &x, 1, at), bound_of(g, x));
}

static ValId shift(Graph *g) {
  ValId x = pick(g, NUMBERS);
  if (!x || !type_of(g, x)->ndim) return 0;
  double fill = is_float(g, x) ? (double)draw(g, 5) / 2 - 1 : (double)draw(g, 5) - 2;
  Attr at = {.ndims = 1, .dims = {dim_in(g, type_of(g, x))}, .at = (int64_t)draw(g, 9) - 4, .num = fill};
  return keep(g, ir_add(&g->b, OP_shift, &x, 1, at), MAX(bound_of(g, x), 2));
}

static ValId gather(Graph *g) {
  ValId x = pick(g, NUMBERS), i = pick(g, INTS);
  if (!x || !i || !type_of(g, x)->ndim) return 0;
  const Type tx = *type_of(g, x), ti = *type_of(g, i);
  Attr at = {.ndims = 1, .dims = {dim_in(g, &tx)}};
  if (type_pos(&ti, at.dims[0]) >= 0 || tx.ndim + ti.ndim > MAX_DIMS) return 0;
  Type t = ti;
  for (uint32_t k = 0; k < tx.ndim; k++)
    if (tx.dim[k] != at.dims[0] && type_pos(&t, tx.dim[k]) < 0) t.dim[t.ndim++] = tx.dim[k];
  if (!fits(g, &t)) return 0;
  int64_t extent = dim_of(g->m, at.dims[0])->extent;    // most indices hit; those below 0 and past the end read 0
  if (bound_of(g, i) > 2 * (double)extent) i = bin(g, OP_mod, i, number(g, ti.dtype, (double)(extent + 1)));
  return keep(g, ir_add(&g->b, OP_gather, (ValId[]){x, i}, 2, at), bound_of(g, x));
}

static ValId scatter(Graph *g) {
  ValId x = pick(g, FLOATS), i = pick(g, INTS);
  if (!x || !i) return 0;
  double bound = bound_of(g, x);
  Type tx = *type_of(g, x);
  const Type ti = *type_of(g, i);
  Attr at = {.ndims = 1, .dims = {dim_outside(g, &tx)}};
  if (!at.dims[0] || !has_dims(&tx, &ti)) return 0;
  Type t = {.dtype = tx.dtype, .ndim = 1, .dim = {at.dims[0]}};
  int64_t summed = 1;
  for (uint32_t k = 0; k < ti.ndim; k++) {
    if (chance(g, 2)) at.to[at.nto++] = ti.dim[k];
    else summed *= MAX(dim_of(g->m, ti.dim[k])->extent, 1);
  }
  for (uint32_t k = 0; k < tx.ndim; k++)
    if ((type_pos(&ti, tx.dim[k]) < 0 || named(at.to, at.nto, tx.dim[k])) && t.ndim < MAX_DIMS) t.dim[t.ndim++] = tx.dim[k];
  if (tx.ndim == MAX_DIMS || !fits(g, &t)) return 0;
  int64_t extent = dim_of(g->m, at.dims[0])->extent;
  if (bound_of(g, i) > 2 * (double)extent) i = bin(g, OP_mod, i, number(g, ti.dtype, (double)(extent + 1)));
  x = modest(g, x, &bound, summed);
  return settle(g, ir_add(&g->b, OP_scatter, (ValId[]){x, i}, 2, at), bound * (double)summed);
}

static ValId noise(Graph *g) {
  Type t = random_type(g, DT_f32);
  TypeId id = type_intern(g->m, t);
  ValId in[2] = {number(g, DT_i64, (double)draw(g, 1000)), number(g, chance(g, 2) ? DT_i32 : DT_i64, (double)draw(g, 1000))};
  Attr at = {.path = intern_printf(g->m->in, "noise.%u", g->paths++)};
  ValId v = ir_add_typed(&g->b, OP_random, in, 2, at, &id, 1, 0);
  return keep(g, ir_cast(&g->b, v, g->o.dtype), 1);
}

// ---- the graph ----------------------------------------------------------------------------------------------------
bool random_makes(Op op) { return !(op_info[op].flags & (OPF_STATE | OPF_COLL | OPF_COMPOSITE) || op_info[op].attrs & AT_AXES || op == OP_reshard); }

static ValId step(Graph *g, Op op) {
  switch (op) {
  case OP_const: return keep(g, number(g, g->o.dtype, dtype_round(DT_bf16, uniform(g, -2, 2))), 2);
  case OP_index: {
    Attr at = {.ndims = 1, .dims = {1 + (DimId)draw(g, g->m->dim.n - 1)}};
    return keep(g, ir_add(&g->b, op, 0, 0, at), MAX((double)dim_of(g->m, at.dims[0])->extent, 1));
  }
  case OP_random: return noise(g);
  case OP_neg: case OP_abs: return negate(g, op);
  case OP_add: case OP_sub: case OP_mul: case OP_div: case OP_mod: case OP_pow: case OP_min: case OP_max: return arithmetic(g, op);
  case OP_eq: case OP_ne: case OP_lt: case OP_le: case OP_gt: case OP_ge: return compare(g, op);
  case OP_and: case OP_or: case OP_not: return logic(g, op);
  case OP_exp: case OP_log: case OP_sqrt: case OP_rsqrt: case OP_tanh: case OP_sin: case OP_cos: case OP_erf: case OP_floor: case OP_ceil: return unary(g, op);
  case OP_select: return choose(g);
  case OP_cast: return convert(g);
  case OP_detach: {
    ValId x = g->o.smooth ? pick(g, INTS) : pick(g, ANY);
    return x ? keep(g, ir_unary(&g->b, op, x), bound_of(g, x)) : 0;
  }
  case OP_dot: return product(g);
  case OP_sum: case OP_reduce_max: case OP_cumsum: return reduce(g, op);
  case OP_expand: return expand(g);
  case OP_rename: return rename_dims(g);
  case OP_split: return split(g);
  case OP_merge: return merge(g);
  case OP_stack: return stack(g);
  case OP_unstack: return unstack(g);
  case OP_slice: case OP_unslice: return window(g, op);
  case OP_shift: return shift(g);
  case OP_gather: return gather(g);
  case OP_scatter: return scatter(g);
  default: bug("no random %s: add it to random_graph.c", op_info[op].name);
  }
}

static void arguments(Graph *g) {
  static const DType kinds[] = {DT_i32, DT_i32, DT_bool, DT_i64};
  for (uint64_t n = 3 + draw(g, 4), i = 0; i < n; i++) {
    DType t = i < 2 || chance(g, 2) ? g->o.dtype : kinds[draw(g, COUNT(kinds))];
    TypeId id = type_intern(g->m, random_type(g, t));
    keep(g, ir_arg(g->f, id, intern_printf(g->m->in, "x%u", (unsigned)i)), t == DT_bool ? 1 : dtype_is_float(t) ? 2 : 12);
  }
}

static ValId total(Graph *g, ValId x, double bound) {   // a scalar of it
  const Type t = *type_of(g, x);
  x = ir_cast(&g->b, x, g->o.dtype);
  x = modest(g, x, &bound, count_of(g, t.dim, t.ndim));
  return ir_dims(&g->b, OP_sum, x, t.dim, t.ndim);
}

static void finish(Graph *g) {                          // the result: of all that no other node uses, most
  ValId sum = number(g, g->o.dtype, 0.5);
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->pool.n; i++) n += !g->pool.at[i].used;
  for (uint32_t i = 0; i < g->pool.n; i++) {
    Pooled p = g->pool.at[i];
    if (p.used || (chance(g, 16) && n > 2)) continue;
    sum = bin(g, OP_add, sum, scaled(g, total(g, p.v, p.bound), uniform(g, -1, 1) / MAX(n, 1u)));
  }
  ir_return(g->f, sum, "loss");
}

Module *random_graph(Arena *a, uint64_t seed, RandomGraph o) {
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  uint16_t file = diag_source(d, "random.mt", "", 0);
  Module *m = module_create(a, intern_create(a), d);
  Graph g = {.m = m, .o = o, .state = hash_mix(seed, 77)};
  if (!g.o.dtype) g.o.dtype = DT_f64;
  new_dims(&g);
  g.f = fn_create(m, intern(m->in, "forward"));
  g.b = (Build){.fn = g.f, .loc = {.file = file, .line = 1, .end_line = 1, .col = 1, .end_col = 9}, .why = intern(m->in, "random: a graph"), .path = ""};
  arguments(&g);
  VEC(Op) ops = {0};
  for (Op op = OP_none + 1; op < OP_COUNT; op++)
    if (random_makes(op) && (op != OP_random || o.draws)) vec_push(a, &ops, op);
  uint64_t n = o.nodes ? o.nodes : 5 + draw(&g, 56);
  for (uint64_t k = 0; k < 3 * n && g.f->node.n <= n; k++) {
    g.b.loc.line = g.b.loc.end_line = (uint32_t)k + 1;
    g.b.path = chance(&g, 3) ? "" : intern_printf(m->in, "h.%u", (unsigned)draw(&g, 3));
    g.b.layer = *g.b.path ? (uint32_t)(g.b.path[2] - '0') + 1 : 0;
    step(&g, ops.at[draw(&g, ops.n)]);
  }
  g.b.path = "", g.b.layer = 0;
  finish(&g);
  vec_push(a, &m->output, (Output){.name = intern(m->in, "loss"), .coef = 1});
  return m;
}

Module *random_module(Arena *a, uint64_t seed) { return random_graph(a, seed, (RandomGraph){.narrow = true, .empty = true, .draws = true}); }

// ---- inputs -------------------------------------------------------------------------------------------------------
int64_t random_count(const Module *m, TypeId t) {
  const Type *y = &m->type.at[t];
  int64_t n = 1;
  for (uint32_t i = 0; i < y->ndim; i++) n *= dim_of(m, y->dim[i])->extent;
  return n;
}

double **random_inputs(Arena *a, const Fn *f, uint64_t seed) {
  double **in = NEW_N(a, double *, f->arg.n + 1);
  Graph g = {.state = hash_mix(seed, 99)};
  for (uint32_t i = 0; i < f->arg.n; i++) {
    TypeId id = f->val.at[f->arg.at[i]].type;
    DType t = f->module->type.at[id].dtype;
    int64_t n = random_count(f->module, id);
    in[i] = NEW_N(a, double, n + 1);
    for (int64_t k = 0; k < n; k++)
      in[i][k] = dtype_is_float(t) ? (t == DT_float ? uniform(&g, -2, 2) : dtype_round(t, uniform(&g, -2, 2))) : t == DT_bool ? (double)draw(&g, 2) : (double)draw(&g, 16) - 3;
  }
  return in;
}

// ---- a mesh and rules ---------------------------------------------------------------------------------------------
static uint64_t draw_mesh(uint64_t *s, uint64_t n) { return (*s = hash_mix(*s, 1)) % n; }

void random_rules(Module *m, uint64_t seed, int64_t most) {
  uint64_t s = hash_mix(seed, 77);
  static const char *const names[] = {"x", "y", "z"};
  m->axis.n = 0;
  for (uint32_t i = 0, n = 2 + (uint32_t)draw_mesh(&s, 2); i < n; i++) {
    int32_t size = 2 + (int32_t)draw_mesh(&s, 2);
    if (size > most) size = 1;
    most /= size;
    vec_push(m->arena, &m->axis, (Axis){intern(m->in, names[i]), size});
  }
  for (DimId d = 1; d < m->dim.n; d++) {
    Dim *dim = &m->dim.at[d];
    if (dim->root == d && dim->size && dim->size == dim->extent && dim->size % 4 == 0 && draw_mesh(&s, 3) == 0) dim->zigzag = 4;
    int64_t left = dim->size;
    for (uint32_t k = 0; k < m->axis.n && left; k++) {
      uint32_t a = (uint32_t)draw_mesh(&s, m->axis.n);
      if (left % m->axis.at[a].size || draw_mesh(&s, 3) == 0) continue;
      left /= m->axis.at[a].size;
      vec_push(m->arena, &m->rule,
               (MapRule){.dim = dim->name, .weak = draw_mesh(&s, 3) != 0, .naxis = 1, .axis = {(uint8_t)a}});
    }
  }
}
