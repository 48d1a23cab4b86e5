// local.c -- see local.h.
#include "compiler/local.h"
#include <math.h>
#include <string.h>

// ---- ranks and orders ---------------------------------------------------------------------------------------------
static uint32_t rank_coord(const Interp *it, uint32_t rank, uint32_t axis) {
  return rank / it->coord_step[axis] % (uint32_t)it->m->axis.at[axis].size;
}

uint32_t rank_alike(const Interp *it, uint32_t rank, uint8_t axes) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < it->m->axis.n; i++)
    if (axes >> i & 1) r += rank_coord(it, rank, i) * it->coord_step[i];
  return r;
}

// Storage of a zigzag dim of n chunks is 0, n-1, 1, n-2, …: cut in n/2 equal parts, part r holds chunks r and n-1-r.
static int64_t stored_entry(const Dim *d, int64_t chunks, int64_t at) {
  if (!chunks) return at;
  int64_t len = d->size / chunks, s = at / len;
  return (s & 1 ? chunks - 1 - s / 2 : s / 2) * len + at % len;
}

static Order *order_make(Interp *it, const Dim *d, int64_t pieces, int64_t piece) {
  Order *o = NEW(it->arena, Order);
  int64_t chunks = dim_of(it->m, d->root)->zigzag;
  if (d->size % pieces || (chunks && d->size % chunks))
    bug("interpreter: %s (%lld) does not divide by %lld and %lld", d->name, (long long)d->size, (long long)pieces,
        (long long)chunks);
  *o = (Order){.n = d->size / pieces, .base = d->size / pieces * piece, .extent = d->extent};
  if (!chunks) return o;
  int64_t *global = NEW_N(it->arena, int64_t, o->n), *place = NEW_N(it->arena, int64_t, d->size);
  for (int64_t g = 0; g < d->size; g++) place[g] = -1;
  for (int64_t p = 0; p < o->n; p++) place[global[p] = stored_entry(d, chunks, o->base + p)] = p;
  o->global = global, o->place = place;
  return o;
}

const Order *order_of(Interp *it, DimId d, Split s, uint32_t rank) {
  int64_t pieces = 1, piece = 0;
  for (; s; s >>= 4) {                                  // the first axis is the slowest
    uint32_t axis = (s & 15u) - 1;
    pieces *= it->m->axis.at[axis].size;
    piece = piece * it->m->axis.at[axis].size + rank_coord(it, rank, axis);
  }
  uint64_t key = hash_mix(d, hash_mix((uint64_t)pieces, (uint64_t)piece));
  const uint64_t *had = map_get(&it->order, key);
  if (had) return (const Order *)(uintptr_t)*had;
  Order *o = order_make(it, dim_of(it->m, d), pieces, piece);
  map_put(&it->order, key, key_of(o));
  return o;
}

// ---- memory -------------------------------------------------------------------------------------------------------
typedef struct { _Alignas(16) uint32_t class; } Header;

void *pool_get(Interp *it, size_t bytes) {
  uint32_t class = 6;
  while ((size_t)1 << class < bytes + sizeof(Header)) class++;
  if (class > 48) bug("interpreter: %zu bytes in one array", bytes);
  void *p = it->free[class];
  if (p) memcpy(&it->free[class], p, sizeof p);
  else {
    Header *h = arena_alloc(it->arena, (size_t)1 << class);
    h->class = class, p = h + 1;
  }
  return p;
}

void pool_put(Interp *it, void *p) {
  uint32_t class = ((Header *)p - 1)->class;
  memcpy(p, &it->free[class], sizeof p);
  it->free[class] = p;
}

void *scratch_get(Interp *it, size_t bytes) {
  void *p = pool_get(it, bytes);
  vec_push(it->arena, &it->scratch, p);
  return p;
}

void scratch_free(Interp *it) {
  while (it->scratch.n) pool_put(it, it->scratch.at[--it->scratch.n]);
}

// ---- values -------------------------------------------------------------------------------------------------------
Local local_create(Interp *it, const Type *t) {
  Local l = {.type = *t, .count = 1};
  for (int i = t->ndim; i-- > 0;) {
    l.n[i] = type_local(it->m, t, (uint32_t)i), l.stride[i] = l.count;
    if (!mul_ok(l.count, l.n[i], &l.count) || l.count > (int64_t)1 << 44)
      bug("interpreter: a value of %s and more is too large", dim_of(it->m, t->dim[i])->name);
  }
  l.rank = pool_get(it, it->ranks * sizeof *l.rank);
  for (uint32_t r = 0; r < it->ranks; r++) {
    l.rank[r] = pool_get(it, (size_t)l.count * 8);
    memset(l.rank[r], 0, (size_t)l.count * 8);
  }
  return l;
}

void local_free(Interp *it, Local *l) {
  if (!l->rank || l->borrowed) return;
  for (uint32_t r = 0; r < it->ranks; r++) pool_put(it, l->rank[r]);
  pool_put(it, l->rank);
  l->rank = 0;
}

int64_t local_real(Interp *it, const Local *l, uint32_t rank) {
  int64_t n = 1;
  for (int i = 0; i < l->type.ndim; i++) n *= pairs_real(it, local_order(it, l, i, rank), 1, 1).n;
  return n;
}

int64_t int_of(DType t, double v) {
  uint64_t room = 0;
  dtype_store(t, &room, v);
  return dtype_load_int(t, &room);
}

static int64_t int_wrap(DType t, uint64_t v) {
  switch (t) {
  case DT_bool: return v != 0;
  case DT_i8:  return (int8_t)v;
  case DT_i16: return (int16_t)v;
  case DT_i32: return (int32_t)v;
  case DT_u8:  return (uint8_t)v;
  case DT_u16: return (uint16_t)v;
  case DT_u32: return (uint32_t)v;
  default:     return (int64_t)v;
  }
}

static void zero_padding(Interp *it, Local *l, uint32_t rank) {
  uint64_t *at = l->rank[rank];                         // 0.0 and 0 are the same bits
  for (int i = 0; i < l->type.ndim; i++) {
    const Order *o = local_order(it, l, i, rank);
    const Dim *d = dim_of(it->m, l->type.dim[i]);
    if (d->size == d->extent) continue;
    for (int64_t p = 0; p < l->n[i]; p++) {
      if (order_global(o, p) < d->extent) continue;
      for (int64_t outer = 0; outer < l->count; outer += l->stride[i] * l->n[i])
        memset(at + outer + p * l->stride[i], 0, (size_t)l->stride[i] * 8);
    }
  }
}

// dtype_round, fast for what lies between least (the least normal number) and most: to nearest,
// ties to even, in the bits
static double round_to(DType t, int mantissa, double least, double most, double v) {
  uint64_t u, half = (uint64_t)1 << (51 - mantissa);
  if (!(fabs(v) >= least && fabs(v) < most)) return v == 0 ? v : dtype_round(t, v);
  memcpy(&u, &v, 8);
  u += half - 1 + (u >> (52 - mantissa) & 1);
  u &= ~(2 * half - 1);
  memcpy(&v, &u, 8);
  return v;
}

void local_finish(Interp *it, Local *l, uint32_t rank) {
  if (cells_float(l->type.dtype)) {
    double *x = l->rank[rank];
    if (l->type.dtype == DT_f32)
      for (int64_t i = 0; i < l->count; i++) x[i] = (double)(float)x[i];
    else if (l->type.dtype == DT_bf16)
      for (int64_t i = 0; i < l->count; i++) x[i] = round_to(DT_bf16, 7, 0x1p-126, 0x1p127, x[i]);
    else if (l->type.dtype == DT_f16)
      for (int64_t i = 0; i < l->count; i++) x[i] = round_to(DT_f16, 10, 0x1p-14, 0x1p15, x[i]);
  } else if (l->type.dtype != DT_i64) {
    int64_t *x = l->rank[rank];
    for (int64_t i = 0; i < l->count; i++) x[i] = int_wrap(l->type.dtype, (uint64_t)x[i]);
  }
  zero_padding(it, l, rank);
}

bool local_replicas(Interp *it, const Local *l, uint32_t *a, uint32_t *b) {
  uint8_t axes = type_axes(&l->type);
  for (uint32_t r = 0; r < it->ranks; r++) {
    uint32_t like = rank_alike(it, r, axes);
    if (like == r || !memcmp(l->rank[r], l->rank[like], (size_t)l->count * 8)) continue;
    *a = like, *b = r;
    return false;
  }
  return true;
}

// ---- moves --------------------------------------------------------------------------------------------------------
Pairs pairs_table(Interp *it, int64_t room) {
  int64_t *t = scratch_get(it, (size_t)room * 2 * sizeof *t);
  return (Pairs){.tos = t, .froms = t + room};
}

Pairs pairs_match(Interp *it, const Order *to, int64_t to_step, const Order *from, int64_t from_step, int64_t shift) {
  if (!to->global && !from->global) {
    int64_t g = MAX(to->base, from->base - shift);
    int64_t end = MIN(MIN(to->base + to->n, to->extent), MIN(from->base + from->n, from->extent) - shift);
    return (Pairs){.n = MAX(end - g, 0), .to = (g - to->base) * to_step, .from = (g + shift - from->base) * from_step,
                   .dto = to_step, .dfrom = from_step};
  }
  Pairs p = pairs_table(it, to->n);
  for (int64_t i = 0; i < to->n; i++) {
    int64_t g = order_global(to, i), at = g < to->extent ? order_place(from, g + shift) : -1;
    if (at >= 0) p.tos[p.n] = i * to_step, p.froms[p.n++] = at * from_step;
  }
  return p;
}

Pairs pairs_real(Interp *it, const Order *o, int64_t to_step, int64_t from_step) {
  return pairs_match(it, o, to_step, o, from_step, 0);
}

// rows of n entries, innermost; a NaN wins a maximum, of equals the first
#define ROWS(T, NAN_FIRST) \
  static void row_##T(T *to, const T *from, const Pairs *p, Move how) { \
    if (p->tos) { \
      for (int64_t i = 0; i < p->n; i++) { \
        T *t = to + p->tos[i], f = from[p->froms[i]]; \
        *t = how == MOVE_copy ? f : how == MOVE_add ? PLUS_##T(*t, f) : *t >= f || NAN_FIRST ? *t : f; \
      } \
      return; \
    } \
    to += p->to, from += p->from; \
    int64_t dt = p->dto, df = p->dfrom; \
    if (how == MOVE_copy) { \
      if (dt == 1 && df == 1) memcpy(to, from, (size_t)p->n * sizeof(T)); \
      else for (int64_t i = 0; i < p->n; i++) to[i * dt] = from[i * df]; \
    } else if (how == MOVE_add) { \
      if (!dt) { \
        T s = *to; \
        for (int64_t i = 0; i < p->n; i++) s = PLUS_##T(s, from[i * df]); \
        *to = s; \
      } else for (int64_t i = 0; i < p->n; i++) to[i * dt] = PLUS_##T(to[i * dt], from[i * df]); \
    } else \
      for (int64_t i = 0; i < p->n; i++) { \
        T *t = to + i * dt, f = from[i * df]; \
        *t = *t >= f || NAN_FIRST ? *t : f; \
      } \
  }
#define PLUS_double(a, b) ((a) + (b))
#define PLUS_int64_t(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
ROWS(double, isnan(*t))
ROWS(int64_t, false)

static void move_rows(bool flt, char *to, const char *from, const Pairs *p, uint32_t n, Move how) {
  if (n == 1) {
    if (flt) row_double((double *)(void *)to, (const double *)(const void *)from, p, how);
    else row_int64_t((int64_t *)(void *)to, (const int64_t *)(const void *)from, p, how);
    return;
  }
  for (int64_t i = 0; i < p->n; i++) {
    int64_t t = p->tos ? p->tos[i] : p->to + i * p->dto, f = p->tos ? p->froms[i] : p->from + i * p->dfrom;
    move_rows(flt, to + t * 8, from + f * 8, p + 1, n - 1, how);
  }
}

int64_t cells_move(DType t, void *to, const void *from, const Pairs *p, uint32_t n, Move how) {
  int64_t moved = 1;
  const Pairs one = {.n = 1};
  for (uint32_t i = 0; i < n; i++) moved *= p[i].n;
  if (moved) move_rows(cells_float(t), to, from, n ? p : &one, n ? n : 1, how);
  return moved;
}

int64_t local_move(Interp *it, Local *to, uint32_t to_rank, const Local *from, uint32_t from_rank, Move how) {
  Pairs p[MAX_DIMS];
  for (int i = 0; i < to->type.ndim; i++) {
    int j = type_pos(&from->type, to->type.dim[i]);
    if (j < 0) bug("interpreter: a value without %s is moved to one with it", dim_of(it->m, to->type.dim[i])->name);
    const Order *there = local_order(it, to, i, to_rank), *here = local_order(it, from, j, from_rank);
    p[i] = pairs_match(it, there, to->stride[i], here, from->stride[j], 0);
  }
  return cells_move(to->type.dtype, to->rank[to_rank], from->rank[from_rank], p, to->type.ndim, how);
}
