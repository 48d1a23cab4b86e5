// kernel_eval.c -- what a kernel means, one point after another: the oracle of the emitters.
//
// Every operation is done in f64 (integers in i64) and rounded to its value's dtype; sums are kept in long double and
// rounded once. One row (point of the parallel ranges) at a time, in as many passes over the reduced ranges as its
// reductions and cumulative sums need.
#include "compiler/kernel.h"
#include "runtime/philox.h"
#include <math.h>

typedef struct { double f; int64_t i; } Val;              // floats in f, integers and bools in i
typedef struct { long double f; int64_t i; } Sum;

typedef struct {
  const Kernel *k;
  void *const *buf;
  const char *scalars;
  Facts facts;
  uint8_t *pass;                                          // of a value: passes before it is known
  uint8_t passes;
  int64_t at[KERNEL_RANGES], inner;                       // the point; its number among the reduced ones
  Val *val, **sums;                                       // sums: of a cumsum, for every point of the row
  Sum *acc;
} Eval;

static int64_t wrap(int64_t a, char op, int64_t b) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  return (int64_t)(op == '+' ? x + y : op == '-' ? x - y : x * y);
}

static double alu_float(Alu op, double a, double b, double c) {
  switch (op) {
#define ALU(word, operands, takes, gives, text, f, i) case ALU_##word: return f;
#include "compiler/alu.def"
#undef ALU
    case ALU_none: case ALU_COUNT: break;
  }
  bug("kernel_eval: no op %d", (int)op);
}

static int64_t alu_int(Alu op, int64_t a, int64_t b, int64_t c) {
  switch (op) {
#define ALU(word, operands, takes, gives, text, f, i) case ALU_##word: return i;
#include "compiler/alu.def"
#undef ALU
    case ALU_none: case ALU_COUNT: break;
  }
  bug("kernel_eval: no op %d", (int)op);
}

static Val rounded(DType t, Val v) {
  switch (t) {
    case DT_f32: v.f = (double)(float)v.f; break;
    case DT_i32: v.i = (int32_t)(uint32_t)(uint64_t)v.i; break;
    case DT_bool: v.i = v.i != 0; break;
    default: break;
  }
  return v;
}

static int64_t address(const Eval *e, const Access *at) {  // without the index
  int64_t p = at->base;
  for (uint32_t r = 0; r < e->k->nrange; r++) p += at->stride[r] * e->at[r];
  return p;
}

static Val load(const Eval *e, const Ins *x) {
  DType t = e->k->buf[x->buf].dtype;
  int64_t p = address(e, &x->at), i = x->at.index ? e->val[x->at.index].i : 0;
  if (x->at.index && (i < 0 || i >= x->at.index_extent)) return (Val){0, 0};
  const char *from = (const char *)e->buf[x->buf] + (p + x->at.index_stride * i) * (int64_t)dtype_bytes(t);
  return dtype_is_float(t) ? (Val){.f = dtype_load(t, from)} : (Val){.i = dtype_load_int(t, from)};
}

static void store(const Eval *e, const Ins *x, bool exists) {
  DType t = e->k->buf[x->buf].dtype, tv = value_dtype(t);
  char *to = (char *)e->buf[x->buf] + address(e, &x->at) * (int64_t)dtype_bytes(t);
  Val v = exists ? e->val[x->a] : (Val){0, 0};
  if (x->op == KI_accumulate) {
    if (!exists) return;
    if (dtype_is_float(t)) v.f += dtype_load(t, to);
    else v.i = wrap(v.i, '+', dtype_load_int(t, to));
    v = rounded(tv, v);
  }
  if (dtype_is_float(t)) dtype_store(t, to, v.f);
  else dtype_store_int(t, to, v.i);
}

static Val cast(DType to, DType from, Val v) {
  if (dtype_is_float(from) && dtype_is_float(to)) return rounded(to, v);
  if (dtype_is_float(to)) return (Val){.f = to == DT_f32 ? (double)(float)v.i : (double)v.i};
  char bytes[8] = {0};
  if (dtype_is_float(from)) dtype_store(to, bytes, v.f);
  else dtype_store_int(to, bytes, v.i);
  return (Val){.i = dtype_load_int(to, bytes)};
}

static Val compute(const Eval *e, uint32_t v) {
  const Ins *x = kernel_ins(e->k, v);
  DType t = (DType)x->dtype, ta = (DType)kernel_ins(e->k, x->a)->dtype;
  Val a = e->val[x->a], b = e->val[x->b], c = e->val[x->c];
  switch ((KIns)x->op) {
    case KI_load: return load(e, x);
    case KI_const: return (Val){x->f, x->i};
    case KI_alu: {
      Val r = {0, 0};
      bool select = x->what == ALU_select;
      if (!dtype_is_float(select ? t : ta)) r.i = alu_int((Alu)x->what, a.i, b.i, c.i);
      else if (dtype_is_float(t)) r.f = alu_float((Alu)x->what, select ? (double)a.i : a.f, b.f, c.f);
      else r.i = alu_float((Alu)x->what, a.f, b.f, c.f) != 0;
      return rounded(t, r);
    }
    case KI_cast: return cast(t, ta, a);
    case KI_index: return (Val){.i = address(e, &x->at)};
    case KI_scalar: {
      Val r = {0, 0};
      memcpy(t == DT_f64 ? (void *)&r.f : (void *)&r.i, e->scalars + 8 * x->i, 8);
      return r;
    }
    case KI_random: {
      uint64_t place = (uint64_t)b.i;
      return (Val){.f = (double)philox_uniform((uint64_t)a.i, (uint32_t)place, (uint32_t)(place >> 32), (uint64_t)c.i)};
    }
    case KI_cumsum: return e->sums[v][e->inner];
    case KI_reduce: case KI_store: case KI_accumulate: case KI_none: break;
  }
  return e->val[v];                                       // of a reduction: set after its pass
}

static void reduce(Sum *acc, const Ins *x, Val v) {
  bool isf = dtype_is_float((DType)x->dtype);
  long double f = acc->f, g = (long double)v.f;
  switch ((Red)x->what) {
    case RED_sum: acc->f = f + g, acc->i = wrap(acc->i, '+', v.i); break;
    case RED_max: if (isf ? !(f >= g || isnan(f)) : v.i > acc->i) acc->f = g, acc->i = v.i; break;
    case RED_min: if (isf ? !(f <= g || isnan(f)) : v.i < acc->i) acc->f = g, acc->i = v.i; break;
    case RED_none: case RED_COUNT: break;
  }
}

static Sum nothing(const Ins *x) {
  int64_t low = x->dtype == DT_i32 ? INT32_MIN : INT64_MIN, high = x->dtype == DT_i32 ? INT32_MAX : INT64_MAX;
  if (x->what == RED_max) return (Sum){-(long double)INFINITY, low};
  if (x->what == RED_min) return (Sum){(long double)INFINITY, high};
  return (Sum){0, 0};
}

// The next point of the ranges in mask, the last the fastest; false after the last.
static bool step(Eval *e, uint8_t mask) {
  for (uint32_t r = e->k->nrange; r--;) {
    if (!(mask >> r & 1)) continue;
    if (++e->at[r] < e->k->range[r].n) return true;
    e->at[r] = 0;
  }
  return false;
}

static bool any(const Eval *e, uint8_t mask) {
  for (uint32_t r = 0; r < e->k->nrange; r++)
    if (mask >> r & 1 && e->k->range[r].n == 0) return false;
  return true;
}

static uint8_t missing(const Eval *e) {                   // ranges whose point does not exist
  uint8_t m = 0;
  for (uint32_t r = 0; r < e->k->nrange; r++)
    if (e->at[r] >= e->k->range[r].valid) m |= (uint8_t)(1 << r);
  return m;
}


// Stores at the current point: those inside rows, or those of whole rows.
static void stores(const Eval *e, bool inside, uint8_t gone) {
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (!is_store(x)) continue;
    uint8_t at = 0;
    for (uint32_t r = 0; r < e->k->nrange; r++)
      if (x->at.stride[r]) at |= (uint8_t)(1 << r);
    if (!!(at & e->facts.red) != inside) continue;
    if (!(gone & at)) store(e, x, true);
    else if (x->op == KI_store) store(e, x, false);
  }
}

static void pass(Eval *e, uint8_t p) {
  const Kernel *k = e->k;
  e->inner = 0;
  if (!any(e, e->facts.red)) return;
  do {
    uint8_t gone = missing(e);
    if (!gone) {
      for (uint32_t v = 1; v < k->ins.n; v++)
        if (e->pass[v] <= p && e->facts.deps[v] & e->facts.red) e->val[v] = compute(e, v);
      for (uint32_t v = 1; v < k->ins.n; v++) {
        const Ins *x = kernel_ins(k, v);
        if (e->pass[v] != p + 1) continue;
        if (x->op == KI_cumsum) e->sums[v][e->inner] = e->val[x->a];
        if (x->op == KI_reduce && (!x->b || e->val[x->b].i == e->at[x->range])) reduce(&e->acc[v], x, e->val[x->a]);
      }
      e->inner++;
    }
    if (p + 1 == e->passes) stores(e, true, gone);
  } while (step(e, e->facts.red));
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (x->op != KI_cumsum || e->pass[v] != p + 1) continue;
    Sum sum = {0, 0};
    for (int64_t j = 0; j < e->inner; j++) {
      Val *at = &e->sums[v][x->what ? e->inner - 1 - j : j];
      sum.f += (long double)at->f, sum.i = wrap(sum.i, '+', at->i);
      *at = rounded((DType)x->dtype, (Val){(double)sum.f, sum.i});
    }
  }
}

// What does not differ within a row, before pass p: it may load what the last pass overwrites.
static void outer(Eval *e, uint8_t p, bool later) {
  for (uint32_t v = 1; v < e->k->ins.n; v++)
    if (!(e->facts.deps[v] & e->facts.red) && (later ? e->pass[v] >= p : e->pass[v] <= p)) e->val[v] = compute(e, v);
}

static void row(Eval *e) {
  const Kernel *k = e->k;
  uint8_t gone = missing(e) & e->facts.par;
  for (uint32_t v = 1; v < k->ins.n; v++) e->acc[v] = nothing(kernel_ins(k, v));
  for (uint8_t p = 0; p < e->passes; p++) {
    if (!gone) outer(e, p, false);
    pass(e, p);
    for (uint32_t v = 1; v < k->ins.n; v++) {
      const Ins *x = kernel_ins(k, v);
      if (x->op == KI_reduce && e->pass[v] == p + 1)
        e->val[v] = rounded((DType)x->dtype, (Val){(double)e->acc[v].f, e->acc[v].i});
    }
  }
  if (!gone) outer(e, e->passes, true);
  stores(e, false, gone);
}

void kernel_eval(const Kernel *k, void *const *buf, const void *scalars) {
  Arena *a = arena_create();
  Eval e = {.k = k, .buf = buf, .scalars = scalars, .facts = kernel_facts(k, a), .passes = 1};
  uint32_t n = k->ins.n;
  int64_t points = 1;
  for (uint32_t r = 0; r < k->nrange; r++)
    if (k->range[r].reduced) points *= k->range[r].valid;
  e.pass = NEW_N(a, uint8_t, n), e.val = NEW_N(a, Val, n), e.acc = NEW_N(a, Sum, n), e.sums = NEW_N(a, Val *, n);
  for (uint32_t v = 1; v < n; v++) {
    const Ins *x = kernel_ins(k, v);
    uint32_t from[] = {x->a, x->b, x->c, x->at.index};
    for (int j = 0; j < 4; j++) e.pass[v] = MAX(e.pass[v], e.pass[from[j]]);
    if (x->op == KI_reduce || x->op == KI_cumsum) e.passes = MAX(e.passes, ++e.pass[v]);
    else if (is_store(x) || e.facts.deps[v] & e.facts.red) e.passes = MAX(e.passes, (uint8_t)(e.pass[v] + 1));
    if (x->op == KI_cumsum) e.sums[v] = NEW_N(a, Val, points);
  }
  if (any(&e, e.facts.par)) do row(&e); while (step(&e, e.facts.par));
  arena_destroy(a);
}
