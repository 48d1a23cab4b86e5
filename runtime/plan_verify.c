// plan_verify.c -- is a plan safe to run? Every id names a row, every access lies inside its buffer and every buffer
// inside its block, no two accesses of one product collide, no stream waits for ever, no two streams touch the same
// bytes without an order, nothing is overwritten while a step still reads it, and the cells are a step. It believes
// only plan.h's reader, which gives it rows of the right form.
//
// What it cannot see is what a kernel does: the source and objects are the compiler's word. Run only plans you trust.
#include "runtime/plan.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Str mem_name[] = {
#define X(word) #word,
  PLAN_MEMORY(X)
#undef X
};

typedef struct {
  const Plan *p;
  Arena *arena;
  const char *why;                           // the first thing wrong
} Check;

static bool no(Check *c, const char *fmt, ...) PRINTF(2, 3);
static bool no(Check *c, const char *fmt, ...) {
  if (c->why) return false;
  va_list args;
  va_start(args, fmt);
  c->why = arena_vprintf(c->arena, fmt, args);
  va_end(args);
  return false;
}

// ---- tables ------------------------------------------------------------------------------------------------------
static bool check_dims(Check *c) {
  const Plan *p = c->p;
  for (uint32_t i = 1; i < p->dim.n; i++) {
    const PlanDim *d = &p->dim.at[i];
    if (d->extent < 0 || d->size < d->extent || d->size > INT64_C(1) << 40)
      return no(c, "dim %s has %lld entries in %lld", d->name, (long long)d->extent, (long long)d->size);
    if (!d->whole != !d->ncut || d->whole >= i) return no(c, "dim %s is a part of no dim above it", d->name);
    if (d->chunks && (d->chunks % 2 || d->size % d->chunks || d->size != d->extent || d->whole))
      return no(c, "dim %s cannot lie in %lld chunks", d->name, (long long)d->chunks);
    int64_t n = d->size;
    uint32_t used = 0;
    for (uint32_t k = 0; k < d->ncut; k++) {
      if (d->cut[k] >= p->axis.n || used >> d->cut[k] & 1 || !mul_ok(n, p->axis.at[d->cut[k]].size, &n))
        return no(c, "dim %s is cut by axes that are not there", d->name);
      used |= 1u << d->cut[k];
    }
    if (d->whole && (n != p->dim.at[d->whole].size || d->extent != d->size || p->dim.at[d->whole].whole))
      return no(c, "dim %s is no part of %s", d->name, p->dim.at[d->whole].name);
  }
  return true;
}

// The rank's part of another buffer: as many as there are lie side by side in it.
static bool part_right(const Plan *p, uint32_t id) {
  const PlanBuffer *b = &p->buffer.at[id];
  if (b->of >= id || b->part >= p->dim.n || b->whole >= p->dim.n) return false;
  const PlanBuffer *of = &p->buffer.at[b->of];
  const PlanDim *part = &p->dim.at[b->part], *whole = &p->dim.at[b->whole];
  bool right = !of->of && of->mem == b->mem && of->at == b->at && of->dtype == b->dtype && part->whole && part->size;
  right = right && plan_whole(p, b->part) == plan_whole(p, b->whole) && part->ncut > whole->ncut;
  right = right && !memcmp(part->cut, whole->cut, whole->ncut) && b->bytes >= 0;
  int64_t all;
  return right && mul_ok(whole->size / part->size, b->bytes, &all) && all <= of->bytes;
}

// "$at:PART" is the number of the first entry that a rank has: without the part, all would think that they have the first.
static bool names_part(const Plan *p, const char *slot) {
  bool is = strncmp(slot, "$at:", 4) != 0;
  for (uint32_t i = 1; i < p->dim.n && !is; i++) is = p->dim.at[i].whole && !strcmp(p->dim.at[i].name, slot + 4);
  return is;
}

static bool check_memory(Check *c) {
  const Plan *p = c->p;
  int64_t total = 0;
  for (int i = 0; i < MEM_COUNT; i++)
    if (p->memory[i] < 0 || !add_ok(total, p->memory[i], &total) || total > INT64_C(1) << 46)
      return no(c, "it asks for too much memory");
  if (p->memory[MEM_scalars] != SCALAR_BLOCK)
    return no(c, "the block of scalars has %lld bytes, not %d", (long long)p->memory[MEM_scalars], SCALAR_BLOCK);
  for (uint32_t i = 1; i < p->buffer.n; i++) {
    const PlanBuffer *b = &p->buffer.at[i];
    if (b->of && !part_right(p, i)) return no(c, "buffer %u (%s) is no part of one above it", i, b->name);
    if (b->at < 0 || b->at % 64 || b->bytes < 0 || b->at > p->memory[b->mem] ||
        b->bytes > p->memory[b->mem] - b->at)
      return no(c, "buffer %u (%s) is not inside its block: %s has %lld bytes", i, b->name, mem_name[b->mem],
                (long long)p->memory[b->mem]);
  }
  bool taken[SCALAR_BLOCK / 8] = {0};
  for (uint32_t i = 0; i < p->slot.n; i++) {
    const PlanSlot *s = &p->slot.at[i];
    bool right =
        (s->dtype == DT_f64 || s->dtype == DT_i64) && s->at >= 0 && s->at % 8 == 0 && s->at < SCALAR_BLOCK;
    if (!right || taken[s->at / 8] || !names_part(p, s->name)) return no(c, "slot %s is not right", s->name);
    taken[s->at / 8] = true;
  }
  return true;
}

// `count` values of a format at byte `at` of a buffer
static bool inside(const Plan *p, uint32_t buffer, int64_t at, int64_t count, DType t) {
  int64_t bytes, width = (int64_t)dtype_bytes(t);
  if (!width || !buffer || buffer >= p->buffer.n || at < 0 || at % width || !mul_ok(count, width, &bytes)) return false;
  return at <= p->buffer.at[buffer].bytes && bytes <= p->buffer.at[buffer].bytes - at;
}

static int64_t padded(const Plan *p, const uint32_t *dim, uint32_t ndim) { // stored entries; -1: too many
  int64_t n = 1;
  for (uint32_t i = 0; i < ndim; i++)
    if (!mul_ok(n, p->dim.at[dim[i]].size, &n)) return -1;
  return n;
}

static bool same_whole(const Plan *p, const PlanVar *x, const PlanVar *y) { // they may be cut otherwise
  bool same = x->ndim == y->ndim;
  for (uint32_t i = 0; same && i < x->ndim; i++) same = plan_whole(p, x->dim[i]) == plan_whole(p, y->dim[i]);
  return same;
}

typedef struct { int64_t at, end; uint32_t id; } Range;
static int by_place(const void *x, const void *y) {
  const Range *a = x, *b = y;
  return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : (a->id > b->id) - (a->id < b->id);
}

static bool vars_apart(Check *c) {                         // no two variables share bytes
  const Plan *p = c->p;
  for (int mem = 0; mem < MEM_COUNT; mem++) {
    Range *r = NEW_N(c->arena, Range, p->var.n);
    uint32_t n = 0;
    for (uint32_t i = 1; i < p->var.n; i++) {
      const PlanBuffer *b = &p->buffer.at[p->var.at[i].buffer];
      if (b->mem == (PlanMem)mem && b->bytes) r[n++] = (Range){b->at, b->at + b->bytes, i};
    }
    qsort(r, n, sizeof *r, by_place);
    for (uint32_t i = 1; i < n; i++)
      if (r[i].at < r[i - 1].end)
        return no(c, "variables %s and %s overlap", p->var.at[r[i - 1].id].name, p->var.at[r[i].id].name);
  }
  return true;
}

static bool check_vars(Check *c) {
  const Plan *p = c->p;
  enum { MOST_TENSORS = 1 << 20 };
  uint32_t tensors = 0;
  Map names;
  map_init(&names, c->arena);
  for (uint32_t i = 1; i < p->var.n; i++) {
    const PlanVar *v = &p->var.at[i];
    if (map_get(&names, key_of(v->name))) return no(c, "two variables are called %s", v->name);
    map_put(&names, key_of(v->name), i);
    if (v->line >= p->line.n) return no(c, "variable %s has no line %u", v->name, v->line);
    bool own = v->kind == PVAR_param;
    if (own != (v->of == 0) || v->of >= p->var.n || (!own && p->var.at[v->of].kind != PVAR_param))
      return no(c, "variable %s is of no parameter", v->name);
    if (!dtype_is_float(v->dtype) || !isfinite(v->a) || !isfinite(v->b))
      return no(c, "variable %s: its format or initial value is not right", v->name);
    if (p->axis.n < 8 && v->partial >> p->axis.n)
      return no(c, "variable %s is a sum over axes that are not there", v->name);
    for (uint32_t k = 0; k < v->ndim; k++)
      for (uint32_t j = 0; j < p->dim.at[v->dim[k]].ncut; j++)
        if (v->partial >> p->dim.at[v->dim[k]].cut[j] & 1)
          return no(c, "variable %s is cut by an axis over which it is a sum", v->name);
    Storage s = plan_storage(p, v);
    int64_t n = padded(p, v->dim, v->ndim);
    if (n < 0 || storage_count(&s) < 0 || !inside(p, v->buffer, 0, n, v->dtype))
      return no(c, "variable %s does not fit into its buffer", v->name);
    if (!own && !same_whole(p, v, &p->var.at[v->of]))
      return no(c, "variable %s has not the shape of its parameter", v->name);
    if (!own) continue;
    Pieces pieces = {0};
    const char *why = storage_pieces(c->arena, &s, &pieces);
    if (why) return no(c, "variable %s: %s", v->name, why);
    if ((tensors += pieces.n) > MOST_TENSORS) return no(c, "more than %d tensors", MOST_TENSORS);
  }
  return vars_apart(c);
}

static bool check_ends(Check *c) {                         // inputs and outputs
  const Plan *p = c->p;
  for (uint32_t i = 1; i < p->input.n; i++) {
    const PlanInput *in = &p->input.at[i];
    if (!in->ndim || !p->dim.at[in->dim[0]].sample)
      return no(c, "input %s does not begin with the dim of samples", in->name);
    const PlanDim *samples = plan_whole(p, in->dim[0]);
    if (p->cell.n && samples->extent * p->microbatches != p->global_batch)
      return no(c, "input %s: %lld microbatches of %lld samples are not %lld", in->name,
                (long long)p->microbatches, (long long)samples->extent, (long long)p->global_batch);
    if (padded(p, in->dim, in->ndim) < 0 || in->line >= p->line.n || in->below < 0)
      return no(c, "input %s is not right", in->name);
    for (uint32_t j = 1; j < i; j++)
      if (p->input.at[j].name == in->name) return no(c, "two inputs are called %s", in->name);
  }
  for (uint32_t i = 0; i < p->output.n; i++) {
    const PlanOutput *o = &p->output.at[i];
    bool right = isfinite(o->coef);
    if (o->slot) right = right && o->slot <= p->slot.n && p->slot.at[o->slot - 1].dtype == DT_f64;
    else
      right = right && padded(p, o->dim, o->ndim) >= 0 &&
              inside(p, o->buffer, 0, padded(p, o->dim, o->ndim), o->dtype);
    if (!right) return no(c, "output %s is not right", o->name);
  }
  return true;
}

static bool is_symbol(const char *s) {
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  while (isalnum((unsigned char)*s) || *s == '_') s++;
  return !*s;
}

static bool check_kernels(Check *c) {
  const Plan *p = c->p;
  for (uint32_t i = 1; i < p->kernel.n; i++) {
    const PlanKernel *k = &p->kernel.at[i];
    if (!is_symbol(k->symbol) || strlen(k->symbol) > 200)
      return no(c, "kernel %u: '%.100s' is no symbol", i, k->symbol);
    if (!k->source || k->source >= p->source.n) return no(c, "kernel %s has no source %u", k->symbol, k->source);
    bool right = k->stages >= 1 && k->stages <= 2 && k->param.n && k->param.n + (k->work > 0) <= KERNEL_ARGS;
    for (uint32_t s = 0; s < k->stages && right; s++) right = k->units[s] >= 0 && k->grain[s] >= 1;
    for (uint32_t j = 0; j < k->param.n && right; j++)
      right = dtype_bytes(k->param.at[j].dtype) > 0 && k->param.at[j].count >= 0;
    if (!right) return no(c, "kernel %s is not right", k->symbol);
  }
  for (uint32_t i = 1; i < p->object.n; i++)
    if (!p->object.at[i].source || p->object.at[i].source >= p->source.n)
      return no(c, "object %u has no source", i);
  return true;
}

// ---- products ----------------------------------------------------------------------------------------------------
enum { GEMM_A, GEMM_B, GEMM_C };
typedef struct { int64_t n, stride; } Loop;

static int gemm_loops(const PlanGemm *g, int which, Loop *l) { // all loops that move one operand
  int n = 0;
  if (which == GEMM_A) l[n++] = (Loop){g->m, g->am}, l[n++] = (Loop){g->k, g->ak};
  if (which == GEMM_B) l[n++] = (Loop){g->k, g->bk}, l[n++] = (Loop){g->n, g->bn};
  if (which == GEMM_C) l[n++] = (Loop){g->m, g->cm}, l[n++] = (Loop){g->n, g->cn};
  for (uint32_t i = 0; i < g->nloop; i++)
    l[n++] = (Loop){g->loop[i].n, which == GEMM_A ? g->loop[i].a : which == GEMM_B ? g->loop[i].b : g->loop[i].c};
  return n;
}

static int64_t gemm_span(const PlanGemm *g, int which) {   // elements from the first to the last; -1: too many
  Loop l[2 + GEMM_LOOPS];
  int n = gemm_loops(g, which, l);
  int64_t span = 1, far;
  for (int i = 0; i < n; i++)
    if (l[i].n == 0) return 0;
  for (int i = 0; i < n; i++)
    if (!mul_ok(l[i].n - 1, l[i].stride, &far) || !add_ok(span, far, &span)) return -1;
  return span;
}

static int by_stride(const void *x, const void *y) {
  const Loop *a = x, *b = y;
  return (a->stride > b->stride) - (a->stride < b->stride);
}

// No element of c is computed twice: by ascending stride, each loop steps past all that the ones before it reach.
static bool gemm_c_apart(const PlanGemm *g) {
  Loop l[2 + GEMM_LOOPS];
  int n = gemm_loops(g, GEMM_C, l);
  int64_t reach = 0;
  qsort(l, (size_t)n, sizeof *l, by_stride);
  for (int i = 0; i < n; i++) {
    if (l[i].n <= 1 || l[i].stride == 0) continue;         // 0: summed over, but for m and n
    if (l[i].stride <= reach) return false;
    reach += (l[i].n - 1) * l[i].stride;
  }
  return (g->m <= 1 || g->cm) && (g->n <= 1 || g->cn);
}

// An operand of rows × cols is plain rows or rows of its transpose, each at least as long as what is in it.
static bool is_matrix(int64_t rows, int64_t cols, int64_t row, int64_t col) {
  if (cols <= 1 || col == 1) return rows <= 1 || row >= cols;
  return (rows <= 1 || row == 1) && col >= rows;
}

static bool check_gemms(Check *c) {
  const Plan *p = c->p;
  for (uint32_t i = 1; i < p->gemm.n; i++) {
    const PlanGemm *g = &p->gemm.at[i];
    int wide = (g->a == DT_f64) + (g->b == DT_f64) + (g->c == DT_f64);
    if (!dtype_is_float(g->a) || !dtype_is_float(g->b) || !dtype_is_float(g->c) || (wide && wide != 3) ||
        !isfinite(g->alpha))
      return no(c, "gemm %u: no product of these formats", i);
    bool two = g->a == g->b && (g->a == DT_f32 || g->a == DT_bf16) && (g->c == g->a || g->c == DT_f32);
    if (g->lib != LIB_openblas && !two)
      return no(c, "gemm %u: its library has no product of these formats", i);
    int64_t strides[] = {g->am, g->ak, g->bk, g->bn, g->cm, g->cn};
    bool right = is_matrix(g->m, g->k, g->am, g->ak) && is_matrix(g->k, g->n, g->bk, g->bn) &&
                 is_matrix(g->m, g->n, g->cm, g->cn);
    for (size_t j = 0; j < COUNT(strides); j++) right = right && strides[j] >= 0 && strides[j] <= INT32_MAX;
    right = right && g->m >= 0 && g->n >= 0 && g->k >= 0 && g->m <= INT32_MAX && g->n <= INT32_MAX &&
            g->k <= INT32_MAX;
    int64_t total = 1;
    for (uint32_t j = 0; j < g->nloop && right; j++) {
      const GemmLoop *l = &g->loop[j];
      right = l->n >= 0 && l->a >= 0 && l->b >= 0 && l->c >= 0 && mul_ok(total, l->n, &total) &&
              total < INT64_C(1) << 40;
    }
    int64_t flops = 2;
    right = right && mul_ok(flops, g->m, &flops) && mul_ok(flops, g->n, &flops) &&
            mul_ok(flops, g->k, &flops) && mul_ok(flops, total, &flops);
    if (!right) return no(c, "gemm %u: its extents or strides are not right", i);
    if (gemm_span(g, GEMM_A) < 0 || gemm_span(g, GEMM_B) < 0 || gemm_span(g, GEMM_C) < 0)
      return no(c, "gemm %u is too large", i);
    if (!gemm_c_apart(g)) return no(c, "gemm %u writes an element twice", i);
  }
  return true;
}

static bool check_colls(Check *c) {
  const Plan *p = c->p;
  int64_t ranks = 1;
  if (p->axis.n > 8) return no(c, "more than 8 axes");
  for (uint32_t i = 0; i < p->axis.n; i++)
    if (p->axis.at[i].size < 1 || !mul_ok(ranks, p->axis.at[i].size, &ranks) || ranks > 1 << 20)
      return no(c, "the mesh has too many ranks");
  for (uint32_t i = 1; i < p->coll.n; i++) {
    const PlanColl *x = &p->coll.at[i];
    int64_t n = (int64_t)dtype_bytes(x->dtype), f[] = {x->outer, x->gather, x->mid, x->scatter, x->inner};
    bool right = n > 0 && x->axes && !(x->axes >> p->axis.n);
    for (size_t k = 0; k < COUNT(f) && right; k++) right = f[k] >= 0 && mul_ok(n, f[k], &n);
    right = right && mul_ok(n, coll_members(p, x), &n) && mul_ok(n, coll_members(p, x), &n);
    right = right && (x->kind == COLL_all_to_all || (x->gather == 1 && x->mid == 1 && x->scatter == 1 && !x->turned));
    right = right && (x->kind > COLL_all_max || x->outer == 1);
    right = right && (!x->sent || ((x->kind == COLL_all_reduce || x->kind == COLL_reduce_scatter) && x->dtype == DT_f32 && (x->sent == DT_bf16 || x->sent == DT_f16)));
    if (!right) return no(c, "collective %u is not right", i);
  }
  return true;
}

// ---- accesses ----------------------------------------------------------------------------------------------------
typedef struct { PlanMem mem; int64_t at, end; bool read, written; uint32_t buffer; } Touch;
enum { READ = 1, WRITTEN = 2 };

static Touch touch(const Plan *p, const PlanArg *a, int64_t count, DType t, unsigned how) {
  const PlanBuffer *b = &p->buffer.at[a->buffer], *of = &p->buffer.at[b->of];
  int64_t at = b->at + a->at;
  if (b->of) return (Touch){b->mem, of->at, of->at + of->bytes, how & READ, how & WRITTEN, b->of}; // on one of the ranks
  return (Touch){b->mem, at, at + count * (int64_t)dtype_bytes(t), how & READ, how & WRITTEN, a->buffer};
}

static bool meets(const Touch *x, const Touch *y) {
  return x->mem == y->mem && x->at < y->end && y->at < x->end && (x->written || y->written);
}

// Values without dims lie in one block, which kernels see as a whole too: they know which of them they use.
static bool in_common(const Plan *p, const Touch *t) {
  const PlanBuffer *b = &p->buffer.at[t->buffer];
  size_t n = strlen(b->name);
  return t->mem == MEM_scalars || (t->mem == MEM_activations && !b->at && n > 8 && !strcmp(b->name + n - 8, ".scalars"));
}

static bool kernel_touches(Check *c, const PlanIns *in, const PlanArg *a, Touch *t, int *n) {
  const Plan *p = c->p;
  if (!in->what || in->what >= p->kernel.n) return no(c, "no kernel %u", in->what);
  const PlanKernel *k = &p->kernel.at[in->what];
  if (in->narg != k->param.n + (k->work > 0)) return no(c, "%u buffers for kernel %s", in->narg, k->symbol);
  for (uint32_t i = 0; i < k->param.n; i++) {
    const PlanParam *q = &k->param.at[i];
    if (!inside(p, a[i].buffer, a[i].at, q->count, q->dtype))
      return no(c, "argument %u of kernel %s is not inside buffer %u", i, k->symbol, a[i].buffer);
    unsigned how = (q->read ? READ : 0) | (q->written ? WRITTEN : 0);
    t[(*n)++] = touch(p, &a[i], q->count, q->dtype, how);
  }
  bool tile = !strcmp(k->class, "tile");                   // whose operands may be parts of one value, row by row
  for (int i = 0; i < *n && !tile; i++)
    for (int j = 0; j < i; j++)
      if (meets(&t[i], &t[j]) && !in_common(p, &t[i]))
        return no(c, "arguments %d and %d of kernel %s share bytes", j, i, k->symbol);
  if (!k->work) return true;
  a += k->param.n;
  if (a->buffer && a->buffer < p->buffer.n && p->buffer.at[a->buffer].mem != MEM_workspace)
    return no(c, "the work buffer of kernel %s is not in the workspace", k->symbol);
  if (!inside(p, a->buffer, a->at, k->work, DT_u8) || a->at % 64)
    return no(c, "the work buffer of kernel %s is too small", k->symbol);
  t[(*n)++] = touch(p, a, k->work, DT_u8, WRITTEN);
  return true;
}

static bool gemm_touches(Check *c, const PlanIns *in, const PlanArg *a, Touch *t, int *n) {
  const Plan *p = c->p;
  if (!in->what || in->what >= p->gemm.n || in->narg != 3) return no(c, "no gemm %u", in->what);
  const PlanGemm *g = &p->gemm.at[in->what];
  const struct { int which; DType t; } of[3] = {{GEMM_C, g->c}, {GEMM_A, g->a}, {GEMM_B, g->b}};
  for (int i = 0; i < 3; i++) {
    int64_t span = gemm_span(g, of[i].which);
    if (!inside(p, a[i].buffer, a[i].at, span, of[i].t))
      return no(c, "operand %d of gemm %u is not inside buffer %u", i, in->what, a[i].buffer);
    t[(*n)++] = touch(p, &a[i], span, of[i].t, i ? READ : (g->accumulate ? READ : 0) | WRITTEN);
  }
  return (!meets(&t[0], &t[1]) && !meets(&t[0], &t[2])) || no(c, "gemm %u writes what it reads", in->what);
}

// A sum of parts, or what is gathered, whose smaller operand is the rank's part of the larger.
static bool works_on_parts(const Plan *p, const PlanColl *x, const PlanArg *a) {
  if (x->kind != COLL_reduce_scatter && x->kind != COLL_all_gather) return false;
  const PlanArg *less = x->kind == COLL_reduce_scatter ? &a[0] : &a[1], *more = x->kind == COLL_reduce_scatter ? &a[1] : &a[0];
  const PlanBuffer *b = &p->buffer.at[less->buffer];
  if (b->of != more->buffer || less->at || more->at || x->outer != 1) return false;
  const PlanDim *part = &p->dim.at[b->part];
  uint8_t axes = 0;
  for (uint32_t k = p->dim.at[b->whole].ncut; k < part->ncut; k++) axes |= (uint8_t)(1u << part->cut[k]);
  return axes == x->axes && x->inner * (int64_t)dtype_bytes(x->dtype) == b->bytes;
}

static bool coll_touches(Check *c, const PlanIns *in, const PlanArg *a, Touch *t, int *n) {
  const Plan *p = c->p;
  if (!in->what || in->what >= p->coll.n || in->narg != 2) return no(c, "no collective %u", in->what);
  const PlanColl *x = &p->coll.at[in->what];
  for (int i = 0; i < 2; i++) {
    int64_t count = coll_count(p, x, !i);
    if (!inside(p, a[i].buffer, a[i].at, count, x->dtype))
      return no(c, "operand %d of collective %u is not inside buffer %u", i, in->what, a[i].buffer);
    t[(*n)++] = touch(p, &a[i], count, x->dtype, i ? READ : WRITTEN);
  }
  bool same = x->kind <= COLL_all_max && t[0].mem == t[1].mem && t[0].at == t[1].at;
  same = same || works_on_parts(p, x, a);
  return same || !meets(&t[0], &t[1]) || no(c, "collective %u writes what it reads", in->what);
}

// What an instruction touches: t[0] … t[*n - 1].
static bool ins_touches(Check *c, const PlanIns *in, Touch *t, int *n) {
  const Plan *p = c->p;
  const PlanArg *a = p->arg.at + in->arg;
  *n = 0;
  switch (in->op) {
    case PI_kernel: return kernel_touches(c, in, a, t, n);
    case PI_gemm: return gemm_touches(c, in, a, t, n);
    case PI_coll: return coll_touches(c, in, a, t, n);
    case PI_copy:
      if (in->narg != 2 || !inside(p, a[0].buffer, a[0].at, in->bytes, DT_u8) ||
          !inside(p, a[1].buffer, a[1].at, in->bytes, DT_u8))
        return no(c, "a copy is not inside its buffers");
      t[(*n)++] = touch(p, &a[0], in->bytes, DT_u8, WRITTEN), t[(*n)++] = touch(p, &a[1], in->bytes, DT_u8, READ);
      return !meets(&t[0], &t[1]) || no(c, "a copy onto itself");
    case PI_zero:
      if (in->narg != 1 || !inside(p, a[0].buffer, a[0].at, in->bytes, DT_u8))
        return no(c, "a zero is not inside its buffer");
      t[(*n)++] = touch(p, &a[0], in->bytes, DT_u8, WRITTEN);
      return true;
    case PI_record: case PI_wait:
      return (in->what && in->what < p->event.n && !in->narg && !in->when) || no(c, "no event %u", in->what);
    case PI_load: {
      if (!in->what || in->what >= p->input.n || in->narg != 1 || in->when) return no(c, "no input %u", in->what);
      const PlanInput *input = &p->input.at[in->what];
      int64_t count = padded(p, input->dim, input->ndim);
      if (!inside(p, a[0].buffer, a[0].at, count, input->dtype))
        return no(c, "input %s is not inside buffer %u", input->name, a[0].buffer);
      t[(*n)++] = touch(p, &a[0], count, input->dtype, WRITTEN);
      return true;
    }
    case PI_COUNT: break;
  }
  return no(c, "no such instruction");
}

static bool meets_next(const Plan *p, const PlanFn *f, uint32_t i) {
  const PlanIns *in = &f->ins.at[i], *next = in + 1;
  if (in->op != PI_coll || i + 1 == f->ins.n || next->op != PI_coll || next->when != in->when) return false;
  return next->what < p->coll.n && in->what < p->coll.n && p->coll.at[next->what].axes == p->coll.at[in->what].axes;
}

static bool check_ins(Check *c) {
  const Plan *p = c->p;
  Touch t[KERNEL_ARGS + 1];
  int n;
  for (uint32_t f = 1; f < p->fn.n; f++)
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
      const PlanIns *in = &p->fn.at[f].ins.at[i];
      if (in->line >= p->line.n)
        return no(c, "instruction %u of %s has no line %u", i, p->fn.at[f].name, in->line);
      bool communicates = in->op == PI_coll, moves = in->op != PI_record && in->op != PI_wait;
      if (moves && communicates != (in->stream == STREAM_comm))
        return no(c, "instruction %u of %s: the stream comm is for collectives, and they for it", i, p->fn.at[f].name);
      if (in->and && !meets_next(p, &p->fn.at[f], i))
        return no(c, "instruction %u of %s: the next one is not of its meeting", i, p->fn.at[f].name);
      if (!ins_touches(c, in, t, &n)) {
        c->why = arena_printf(c->arena, "instruction %u of %s (%s): %s", i, p->fn.at[f].name,
                              plan_place(p, c->arena, in->line), c->why);
        return false;
      }
    }
  return true;
}

// ---- streams -----------------------------------------------------------------------------------------------------
// One access with its place in the order: before another one on stream s if at <= the other's clock[s].
typedef struct { Touch touch; PlanStream stream; uint32_t clock[STREAM_COUNT]; uint32_t fn, ins; } Access;
typedef VEC(Access) Accesses;
typedef struct { uint32_t clock[STREAM_COUNT]; } Clock;
typedef VEC(Clock) Clocks;

// Runs functions one after the other as the streams would, each as far as it can, with a clock per stream that records
// and waits carry over. Events have one recording and one waiting stream, so no interleaving gives another result.
typedef struct {
  const uint32_t *fn;
  uint32_t n;
  uint32_t at, ins;
} Walker; // one stream's place: fn[at], instruction ins

static bool walk(Check *c, const uint32_t *fn, uint32_t nfn, Accesses *out) {
  const Plan *p = c->p;
  Walker w[STREAM_COUNT] = {0};
  Clock now[STREAM_COUNT] = {0};
  Clocks *sent = NEW_N(c->arena, Clocks, p->event.n);
  uint32_t *waited = NEW_N(c->arena, uint32_t, p->event.n);
  Touch t[KERNEL_ARGS + 1];
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < STREAM_COUNT; s++)
      for (; w[s].at < nfn; w[s].ins++) {
        const PlanFn *f = &p->fn.at[fn[w[s].at]];
        if (w[s].ins == f->ins.n) { w[s].at++, w[s].ins = UINT32_MAX, moved = true; continue; }
        const PlanIns *in = &f->ins.at[w[s].ins];
        if (in->stream != (PlanStream)s) continue;
        uint32_t e = in->what;
        if (in->op == PI_wait) {
          uint32_t initial = p->event.at[e].initial;
          if (waited[e] >= initial + sent[e].n) break;
          if (waited[e] >= initial)
            for (int k = 0; k < STREAM_COUNT; k++)
              now[s].clock[k] = MAX(now[s].clock[k], sent[e].at[waited[e] - initial].clock[k]);
          waited[e]++;
        }
        moved = true;
        now[s].clock[s]++;
        if (in->op == PI_record) vec_push(c->arena, &sent[e], now[s]);
        int n;
        ins_touches(c, in, t, &n);
        for (int k = 0; k < n; k++) {
          Access a = {.touch = t[k], .stream = (PlanStream)s, .fn = fn[w[s].at], .ins = w[s].ins};
          memcpy(a.clock, now[s].clock, sizeof a.clock);
          vec_push(c->arena, out, a);
        }
      }
  }
  for (int s = 0; s < STREAM_COUNT; s++)
    if (w[s].at < nfn) return no(c, "stream %d waits for ever in %s", s, p->fn.at[fn[w[s].at]].name);
  return true;
}

static bool check_events(Check *c) {
  const Plan *p = c->p;
  int *recorder = NEW_N(c->arena, int, p->event.n), *waiter = NEW_N(c->arena, int, p->event.n);
  int64_t *balance = NEW_N(c->arena, int64_t, p->event.n);
  for (uint32_t f = 1; f < p->fn.n; f++) {
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
      const PlanIns *in = &p->fn.at[f].ins.at[i];
      if (in->op != PI_record && in->op != PI_wait) continue;
      int *who = in->op == PI_record ? &recorder[in->what] : &waiter[in->what];
      if (*who && *who != (int)in->stream + 1)
        return no(c, "event %s is used by two streams at one end", p->event.at[in->what].name);
      *who = (int)in->stream + 1;
      balance[in->what] += in->op == PI_record ? 1 : -1;
    }
    for (uint32_t e = 1; e < p->event.n; e++)
      if (balance[e])
        return no(c, "%s records and waits for %s unequally often", p->fn.at[f].name, p->event.at[e].name);
  }
  for (uint32_t e = 1; e < p->event.n; e++)
    if (p->event.at[e].initial > 2) return no(c, "event %s begins with more than 2", p->event.at[e].name);
  return true;
}

// The functions of a step in order. A stretch of one function is shortened to 4: events let no stream run further
// ahead.
static uint32_t *step_fns(Check *c, uint32_t *n) {
  const Plan *p = c->p;
  uint32_t *fn = NEW_N(c->arena, uint32_t, p->cell.n + 1), run = 0;
  *n = 0;
  for (uint32_t i = 0; i < p->cell.n; i++) {
    run = i && p->cell.at[i].fn == p->cell.at[i - 1].fn ? run + 1 : 0;
    if (run < 4) fn[(*n)++] = p->cell.at[i].fn;
  }
  if (*n > 64) no(c, "the cells change functions too often");
  return fn;
}

// The accesses of stream y that have no order with x: from those behind what x knows of y up to those that know x.
static bool unordered_apart(Check *c, const Access *x, const Accesses *y, uint32_t *from) {
  const Plan *p = c->p;
  while (*from < y->n && y->at[*from].clock[y->at[*from].stream] <= x->clock[y->at[*from].stream]) ++*from;
  for (uint32_t i = *from; i < y->n && y->at[i].clock[x->stream] < x->clock[x->stream]; i++)
    if (meets(&x->touch, &y->at[i].touch))
      return no(c, "instruction %u of %s (%s) and instruction %u of %s (%s) touch the same bytes without an order",
                x->ins, p->fn.at[x->fn].name, plan_place(p, c->arena, p->fn.at[x->fn].ins.at[x->ins].line),
                y->at[i].ins, p->fn.at[y->at[i].fn].name,
                plan_place(p, c->arena, p->fn.at[y->at[i].fn].ins.at[y->at[i].ins].line));
  return true;
}

static bool check_hazards(Check *c, const uint32_t *fn, uint32_t nfn) {
  Accesses all = {0}, by[STREAM_COUNT] = {0};
  if (!walk(c, fn, nfn, &all)) return false;
  for (uint32_t i = 0; i < all.n; i++) vec_push(c->arena, &by[all.at[i].stream], all.at[i]);
  for (int s = 0; s < STREAM_COUNT; s++)
    for (int k = 0; k < s; k++)
      for (uint32_t i = 0, from = 0; i < by[s].n; i++)
        if (!unordered_apart(c, &by[s].at[i], &by[k], &from)) return false;
  return true;
}

static bool check_streams(Check *c) {
  const Plan *p = c->p;
  if (!check_events(c)) return false;
  bool several = false;                                    // one stream has its order from the list
  for (uint32_t f = 1; f < p->fn.n; f++)
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++)
      several |= p->fn.at[f].ins.at[i].stream != STREAM_compute || p->fn.at[f].ins.at[i].op == PI_wait;
  if (!several) return true;
  for (uint32_t f = 1; f < p->fn.n; f++)
    if (!check_hazards(c, (uint32_t[]){f, f, f, f}, 4)) return false;
  uint32_t n, *fn = step_fns(c, &n);
  return !c->why && check_hazards(c, fn, n);
}

// ---- lifetimes ---------------------------------------------------------------------------------------------------
// A buffer has its bytes from the first instruction that writes it to the last one that reads it: of one run of a
// function; a gradient, of a step; what else stays between steps, always. Instructions are counted through all that
// runs.
typedef struct { int64_t at, end, first, last; uint32_t buffer; } Life;
typedef VEC(Life) Lives;
typedef struct { int64_t first, last; bool lasting; } Span; // first 0: not written yet

static int by_first(const void *x, const void *y) {
  const Life *a = x, *b = y;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static void life_add(Check *c, Lives *l, uint32_t buffer, const Span *s) {
  const PlanBuffer *b = &c->p->buffer.at[buffer];
  if (b->bytes && s->first) vec_push(c->arena, l, (Life){b->at, b->at + b->bytes, s->first, s->last, buffer});
}

// In the order in which they begin, those that live by place: a new one meets its neighbours or none.
static bool lives_apart(Check *c, const Lives *l) {
  Lives now = {0};
  if (l->n) qsort(l->at, l->n, sizeof *l->at, by_first);
  for (uint32_t i = 0; i < l->n; i++) {
    const Life *x = &l->at[i];
    uint32_t n = 0, where = 0;
    for (uint32_t k = 0; k < now.n; k++)
      if (now.at[k].last >= x->first) now.at[n++] = now.at[k];
    now.n = n;
    while (where < n && now.at[where].at < x->at) where++;
    const Life *met = where && now.at[where - 1].end > x->at ? &now.at[where - 1]
                      : where < n && now.at[where].at < x->end ? &now.at[where] : 0;
    if (met)
      return no(c, "%s and %s share bytes while both are needed", c->p->buffer.at[met->buffer].name,
                c->p->buffer.at[x->buffer].name);
    vec_push(c->arena, &now, (Life){0});
    memmove(now.at + where + 1, now.at + where, (n - where) * sizeof *now.at);
    now.at[where] = *x;
  }
  return true;
}

static bool live_touch(Check *c, const Touch *t, Span *s, int64_t now, const PlanFn *f, uint32_t ins) {
  if (!s->first && (t->read || !t->written))
    return no(c, "instruction %u of %s (%s) reads %s, which nothing has written", ins, f->name,
              plan_place(c->p, c->arena, f->ins.at[ins].line), c->p->buffer.at[t->buffer].name);
  if (!s->first) s->first = now;
  s->last = now;
  return true;
}

static uint32_t whole_buffer(const Plan *p, uint32_t b) { return p->buffer.at[b].of ? p->buffer.at[b].of : b; }

// The functions run one after the other; later[i]: it is not the first microbatch's.
static bool check_lives(Check *c, const uint32_t *fn, const bool *later, uint32_t nfn) {
  const Plan *p = c->p;
  Lives lives[MEM_COUNT] = {0};
  Span *span = NEW_N(c->arena, Span, p->buffer.n);
  VEC(uint32_t) met = {0};                                 // in this run of a function
  int64_t now = 1;
  Touch t[KERNEL_ARGS + 1];
  int ntouch;
  for (uint32_t i = 1; i < p->var.n; i++) {
    Span *s = &span[whole_buffer(p, p->var.at[i].buffer)];
    s->lasting = true;
    if (p->var.at[i].kind != PVAR_grad) s->first = 1, s->last = INT64_MAX;
  }
  for (uint32_t i = 0; i < nfn; i++)         // what the last microbatch leaves for the update
    for (uint32_t k = 0; k < p->fn.at[fn[i]].ins.n; k++) {
      const PlanIns *in = &p->fn.at[fn[i]].ins.at[k];
      if (in->op == PI_coll && in->when == WHEN_last) span[whole_buffer(p, p->arg.at[in->arg].buffer)].lasting = true;
    }
  for (uint32_t i = 0; i < nfn; i++) {
    const PlanFn *f = &p->fn.at[fn[i]];
    met.n = 0;
    for (uint32_t k = 0; k < f->ins.n; k++, now++) {
      const PlanIns *in = &f->ins.at[k];
      if (in->when == (later[i] ? WHEN_first : WHEN_later)) continue;
      ins_touches(c, in, t, &ntouch);
      for (int j = 0; j < ntouch; j++) {
        PlanMem mem = t[j].mem;
        Span *s = &span[t[j].buffer];
        if (mem == MEM_scalars || mem == MEM_inputs || mem == MEM_workspace) continue;
        if (!s->first && !s->lasting) vec_push(c->arena, &met, t[j].buffer);
        if (s->last != INT64_MAX && !live_touch(c, &t[j], s, now, f, k)) return false;
      }
    }
    for (uint32_t k = 0; k < p->output.n; k++) {           // what it returns stays
      Span *s = &span[p->output.at[k].buffer];
      if (!p->output.at[k].slot && s->first && !s->lasting) s->last = now;
    }
    for (uint32_t k = 0; k < met.n; k++) {
      life_add(c, &lives[p->buffer.at[met.at[k]].mem], met.at[k], &span[met.at[k]]);
      span[met.at[k]] = (Span){0};
    }
  }
  for (uint32_t i = 1; i < p->buffer.n; i++)
    if (span[i].lasting) life_add(c, &lives[p->buffer.at[i].mem], i, &span[i]);
  for (int i = 0; i < MEM_COUNT; i++)
    if (!lives_apart(c, &lives[i])) return false;
  return true;
}

static bool check_memory_plan(Check *c) {
  const Plan *p = c->p;
  Lives inputs = {0};                                      // of two streams: none gives its place to another
  for (uint32_t i = 1; i < p->buffer.n; i++)
    if (p->buffer.at[i].mem == MEM_inputs) life_add(c, &inputs, i, &(Span){1, 1, true});
  if (!lives_apart(c, &inputs)) return false;
  uint32_t n, *fn = step_fns(c, &n);
  if (c->why) return false;
  bool *later = NEW_N(c->arena, bool, n + 1);
  for (uint32_t i = 1; i < n; i++) later[i] = fn[i] == fn[i - 1];
  if (!check_lives(c, fn, later, n)) return false;
  for (uint32_t f = 1; f < p->fn.n; f++) {
    bool in_step = false;
    for (uint32_t i = 0; i < n; i++) in_step |= fn[i] == f;
    if (!in_step && !check_lives(c, &f, (bool[]){false}, 1)) return false;
  }
  return true;
}

// ---- cells -------------------------------------------------------------------------------------------------------
static bool check_cells(Check *c) {
  const Plan *p = c->p;
  int64_t next[CELL_COUNT] = {0};
  if (!p->cell.n) return true;
  if (p->microbatches < 1 || p->microbatches > 1 << 20)
    return no(c, "a step of %lld microbatches", (long long)p->microbatches);
  for (uint32_t i = 0; i < p->cell.n; i++) {
    const PlanCell *cell = &p->cell.at[i];
    if (!cell->fn || cell->fn >= p->fn.n) return no(c, "cell %u has no function %u", i, cell->fn);
    if (cell->microbatch != next[cell->kind]++ || next[CELL_U] > 1) return no(c, "cell %u is out of order", i);
    if (cell->kind == CELL_P && next[CELL_FB]) return no(c, "cell %u: a denominator after the first backward", i);
    if ((cell->kind == CELL_U) != (i == p->cell.n - 1)) return no(c, "cell %u: the update is the last cell", i);
  }
  if (next[CELL_FB] != p->microbatches || (next[CELL_P] && next[CELL_P] != p->microbatches))
    return no(c, "the cells are not one for each microbatch");
  return true;
}

const char *plan_verify(const Plan *p, Arena *a) {
  Check c = {p, a, 0};
  bool right = check_dims(&c) && check_memory(&c) && check_vars(&c) && check_kernels(&c) && check_gemms(&c) && check_colls(&c) &&
               check_cells(&c) && check_ends(&c) && check_ins(&c) && check_streams(&c) && check_memory_plan(&c);
  return right ? 0 : c.why;
}
