// kernel.c -- builds kernels, brings them to their one canonical form, checks them. See kernel.h.
#include "compiler/kernel.h"

typedef enum { TAKES_float, TAKES_f32, TAKES_number, TAKES_bool, TAKES_any } Takes;
typedef enum { GIVES_same, GIVES_bool } Gives;
static const struct { uint8_t operands, takes, gives; } alu_rows[ALU_COUNT] = {
#define ALU(word, operands, takes, gives, text, f, i) [ALU_##word] = {operands, TAKES_##takes, GIVES_##gives},
#include "compiler/alu.def"
#undef ALU
};

DType value_dtype(DType t) {
  switch (t) {
    case DT_f16: case DT_bf16: return DT_f32;
    case DT_u8: case DT_i8: case DT_u16: case DT_i16: return DT_i32;
    case DT_u32: case DT_u64: return DT_i64;
    case DT_f32: case DT_f64: case DT_i32: case DT_i64: case DT_bool: return t;
    case DT_none: case DT_float: case DT_COUNT: break;
  }
  return DT_none;
}

static bool takes(uint8_t kind, DType t) {
  switch ((Takes)kind) {
    case TAKES_float: return t == DT_f32 || t == DT_f64;
    case TAKES_f32: return t == DT_f32;
    case TAKES_number: return t == DT_f32 || t == DT_f64 || t == DT_i32 || t == DT_i64;
    case TAKES_bool: return t == DT_bool;
    case TAKES_any: return t != DT_none;
  }
  return false;
}

// ---- building ---------------------------------------------------------------------------------------------------
Kernel *kernel_begin(Arena *a, LoopClass class) {
  Kernel *k = NEW(a, Kernel);
  k->arena = a, k->class = class;
  map_init(&k->same, a);
  vec_push(a, &k->ins, (Ins){0});
  return k;
}

uint32_t kernel_range(Kernel *k, int64_t n, int64_t valid, bool reduced) {
  if (k->nrange == KERNEL_RANGES) bug("a kernel has more than %d ranges", KERNEL_RANGES);
  k->range[k->nrange] = (Range){n, valid, reduced};
  return k->nrange++;
}

uint32_t kernel_buffer(Kernel *k, DType t, int64_t count) {
  if (k->nbuf == KERNEL_BUFFERS) bug("a kernel has more than %d buffers", KERNEL_BUFFERS);
  k->buf[k->nbuf] = (Buffer){.dtype = t, .count = count};
  return k->nbuf++;
}

static bool ins_same(const Ins *x, const Ins *y) {
  return x->op == y->op && x->what == y->what && x->dtype == y->dtype && x->buf == y->buf && x->range == y->range &&
         x->a == y->a && x->b == y->b && x->c == y->c && x->i == y->i && !memcmp(&x->f, &y->f, sizeof x->f) &&
         access_same(&x->at, &y->at);
}

static uint64_t ins_hash(const Ins *x) {
  uint64_t h = hash_mix((uint64_t)x->op << 32 | (uint64_t)x->what << 24 | (uint64_t)x->dtype << 16 |
                            (uint64_t)x->buf << 8 | x->range,
                        x->a);
  h = hash_mix(hash_mix(h, x->b), x->c);
  h = hash_mix(h, (uint64_t)x->i);
  h = hash_bytes(&x->f, sizeof x->f, h);
  h = hash_mix(hash_mix(h, (uint64_t)x->at.base), x->at.index);
  h = hash_mix(hash_mix(h, (uint64_t)x->at.index_stride), (uint64_t)x->at.index_extent);
  return hash_bytes(x->at.stride, sizeof x->at.stride, h);
}

// The value an equal instruction already gave, or a new one. Stores are never merged.
static uint32_t ins_add(Kernel *k, Ins x) {
  if (k->finished) bug("a finished kernel gets another instruction");
  if (k->ins.n > KERNEL_INS) bug("a kernel has more than %d instructions", KERNEL_INS);
  if (x.a >= k->ins.n || x.b >= k->ins.n || x.c >= k->ins.n || x.at.index >= k->ins.n)
    bug("a kernel's instruction uses a value that is not there");
  bool effect = x.op == KI_store || x.op == KI_accumulate;
  uint64_t h = ins_hash(&x);
  uint64_t *seen = effect ? 0 : map_get(&k->same, h);
  if (seen && ins_same(&k->ins.at[*seen], &x)) return (uint32_t)*seen;
  uint32_t v = k->ins.n;
  vec_push(k->arena, &k->ins, x);
  if (!effect) map_put(&k->same, h, v);
  return v;
}

static DType dtype_at(const Kernel *k, uint32_t v) {
  if (!v || v >= k->ins.n) bug("a kernel has no value %%%u", v);
  return (DType)k->ins.at[v].dtype;
}

static Buffer *buffer_at(Kernel *k, uint32_t buf) {
  if (buf >= k->nbuf) bug("a kernel has no buffer %u", buf);
  return &k->buf[buf];
}

static bool is_access(const Ins *x, uint32_t buf) {
  return (x->op == KI_load || x->op == KI_store || x->op == KI_accumulate) && x->buf == buf;
}

int64_t kernel_rebase(Kernel *k, uint32_t buf) {
  int64_t least = INT64_MAX;
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (is_access(&k->ins.at[v], buf)) least = MIN(least, k->ins.at[v].at.base);
  if (k->finished) bug("kernel: a finished kernel stays as it is");
  if (least <= 0 || least == INT64_MAX || least > k->buf[buf].count) return 0;
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (is_access(&k->ins.at[v], buf)) k->ins.at[v].at.base -= least;
  k->buf[buf].count -= least;
  return least;
}

uint32_t kernel_load(Kernel *k, uint32_t buf, Access at) {
  Buffer *b = buffer_at(k, buf);
  b->read = true;
  return ins_add(k, (Ins){.op = KI_load, .dtype = (uint8_t)value_dtype(b->dtype), .buf = (uint8_t)buf, .at = at});
}

void kernel_store(Kernel *k, uint32_t buf, Access at, uint32_t v) {
  buffer_at(k, buf)->written = true;
  ins_add(k, (Ins){.op = KI_store, .buf = (uint8_t)buf, .at = at, .a = v});
}

void kernel_accumulate(Kernel *k, uint32_t buf, Access at, uint32_t v) {
  Buffer *b = buffer_at(k, buf);
  b->read = b->written = true;
  ins_add(k, (Ins){.op = KI_accumulate, .buf = (uint8_t)buf, .at = at, .a = v});
}

uint32_t kernel_const(Kernel *k, DType t, double v) {
  if (t == DT_f32) return ins_add(k, (Ins){.op = KI_const, .dtype = DT_f32, .f = (double)(float)v});
  if (t == DT_f64) return ins_add(k, (Ins){.op = KI_const, .dtype = DT_f64, .f = v});
  if (!(v >= -0x1p63 && v < 0x1p63)) bug("the constant %g of a kernel is no integer", v);
  return kernel_const_int(k, t, (int64_t)v);
}

uint32_t kernel_const_int(Kernel *k, DType t, int64_t v) {
  if (t == DT_bool) v = v != 0;
  else if (t == DT_i32) v = (int32_t)v;
  else if (t != DT_i64) bug("an integer constant of %s", dtype_name(t));
  return ins_add(k, (Ins){.op = KI_const, .dtype = (uint8_t)t, .i = v});
}

// x to a small whole power, as products: as exact (0.5 ulp a product) and many times faster.
static uint32_t small_power(Kernel *k, uint32_t a, double y) {
  DType t = dtype_at(k, a);
  uint32_t n = (uint32_t)(y < 0 ? -y : y), one = kernel_const(k, t, 1);
  uint32_t x2 = n > 1 ? kernel_alu(k, ALU_mul, a, a, 0) : 0;
  uint32_t p = n == 0   ? one
               : n == 1 ? a
               : n == 2 ? x2
               : n == 3 ? kernel_alu(k, ALU_mul, x2, a, 0)
                        : kernel_alu(k, ALU_mul, x2, x2, 0);
  return y < 0 ? kernel_alu(k, ALU_div, one, p, 0) : p;
}

uint32_t kernel_alu(Kernel *k, Alu op, uint32_t a, uint32_t b, uint32_t c) {
  if (op == ALU_pow && b && b < k->ins.n && k->ins.at[b].op == KI_const) {
    double y = k->ins.at[b].f;
    if (y == -2 || y == -1 || y == 0 || y == 1 || y == 2 || y == 3 || y == 4) return small_power(k, a, y);
  }
  DType t = dtype_at(k, op == ALU_select ? b : a);
  if (alu_rows[op].gives == GIVES_bool) t = DT_bool;
  return ins_add(k, (Ins){.op = KI_alu, .what = (uint8_t)op, .dtype = (uint8_t)t, .a = a, .b = b, .c = c});
}

uint32_t kernel_cast(Kernel *k, DType t, uint32_t a) {
  if (dtype_at(k, a) == t) return a;
  return ins_add(k, (Ins){.op = KI_cast, .dtype = (uint8_t)t, .a = a});
}

uint32_t kernel_index(Kernel *k, DType t, Access at) {
  return ins_add(k, (Ins){.op = KI_index, .dtype = (uint8_t)t, .at = at});
}

uint32_t kernel_scalar(Kernel *k, DType t, uint32_t slot) {
  return ins_add(k, (Ins){.op = KI_scalar, .dtype = (uint8_t)t, .i = slot});
}

uint32_t kernel_random(Kernel *k, uint32_t seed, uint32_t place, uint32_t index) {
  return ins_add(k, (Ins){.op = KI_random, .dtype = DT_f32, .a = seed, .b = place, .c = index});
}

uint32_t kernel_reduce(Kernel *k, Red r, uint32_t a) {
  return ins_add(k, (Ins){.op = KI_reduce, .what = (uint8_t)r, .dtype = (uint8_t)dtype_at(k, a), .a = a});
}

uint32_t kernel_reduce_where(Kernel *k, Red r, uint32_t a, uint32_t index, uint32_t range) {
  return ins_add(k, (Ins){.op = KI_reduce, .what = (uint8_t)r, .dtype = (uint8_t)dtype_at(k, a), .a = a, .b = index,
                          .range = (uint8_t)range});
}

uint32_t kernel_cumsum(Kernel *k, uint32_t a, bool from_end) {
  return ins_add(k, (Ins){.op = KI_cumsum, .what = from_end, .dtype = (uint8_t)dtype_at(k, a), .a = a});
}

// ---- what follows from the instructions ---------------------------------------------------------------------------
static uint8_t access_deps(const Access *at) {
  uint8_t m = 0;
  for (int r = 0; r < KERNEL_RANGES; r++)
    if (at->stride[r]) m |= (uint8_t)(1 << r);
  return m;
}

static bool compares_quotients(const Kernel *k, Arena *a) {
  bool *of = NEW_N(a, bool, k->ins.n);                                // by value: whether it comes from a quotient
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    of[v] = (x->a && of[x->a]) || (x->b && of[x->b]) || (x->c && of[x->c]);
    if (x->op != KI_alu) continue;
    if (of[v] && x->what >= ALU_eq && x->what <= ALU_ge) return true;
    of[v] |= x->what == ALU_div;
  }
  return false;
}

Facts kernel_facts(const Kernel *k, Arena *a) {
  Facts f = {.deps = NEW_N(a, uint8_t, k->ins.n), .phase = NEW_N(a, uint8_t, k->ins.n), .phases = 1};
  for (uint32_t r = 0; r < k->nrange; r++) *(k->range[r].reduced ? &f.red : &f.par) |= (uint8_t)(1 << r);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    uint32_t from[] = {x->a, x->b, x->c, x->at.index};
    uint8_t deps = access_deps(&x->at), phase = 0;
    for (int j = 0; j < 4; j++)
      if (from[j]) deps |= f.deps[from[j]], phase = MAX(phase, f.phase[from[j]]);
    if (x->op == KI_reduce) deps = f.par, phase = phase == UINT8_MAX ? phase : (uint8_t)(phase + 1);
    if (x->op == KI_cumsum) deps |= f.red;
    f.deps[v] = deps, f.phase[v] = phase;
    if (x->op == KI_reduce) f.phases = MAX(f.phases, phase);        // its own pass is the one its operand is in
    else if (deps & f.red) f.phases = MAX(f.phases, (uint8_t)MIN(phase + 1, UINT8_MAX));
  }
  f.exact = compares_quotients(k, a);
  return f;
}

// ---- the canonical form -------------------------------------------------------------------------------------------
static uint32_t range_user(const Kernel *k, uint32_t r) {           // the reduction whose `where` names r, or 0
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (k->ins.at[v].op == KI_reduce && k->ins.at[v].b && k->ins.at[v].range == r) return v;
  return 0;
}

static bool ins_is(const Kernel *k, KIns op) {
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (k->ins.at[v].op == op) return true;
  return false;
}

static bool has_access(const Ins *x) {
  return x->op == KI_load || x->op == KI_store || x->op == KI_accumulate || x->op == KI_index;
}

static void drop_dead(Kernel *k) {
  Arena *a = k->arena;
  uint8_t *live = NEW_N(a, uint8_t, k->ins.n);
  uint32_t *now = NEW_N(a, uint32_t, k->ins.n);
  for (uint32_t v = k->ins.n; --v;) {
    const Ins *x = &k->ins.at[v];
    if (is_store(x)) live[v] = 1;
    if (live[v]) live[x->a] = live[x->b] = live[x->c] = live[x->at.index] = 1;
  }
  uint32_t n = 1;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    if (!live[v]) continue;
    Ins x = k->ins.at[v];
    x.a = now[x.a], x.b = now[x.b], x.c = now[x.c], x.at.index = now[x.at.index];
    now[v] = n, k->ins.at[n++] = x;
  }
  k->ins.n = n;
  for (uint32_t b = 0; b < k->nbuf; b++) k->buf[b].read = k->buf[b].written = false;
  for (uint32_t v = 1; v < n; v++) {
    const Ins *x = &k->ins.at[v];
    if (x->op == KI_load || x->op == KI_accumulate) k->buf[x->buf].read = true;
    if (is_store(x)) k->buf[x->buf].written = true;
  }
}

// ---- cheaper forms ------------------------------------------------------------------------------------------------
static bool is_alu(const Kernel *k, uint32_t v, Alu op) {
  return k->ins.at[v].op == KI_alu && k->ins.at[v].what == op && k->ins.at[v].dtype == DT_f32;
}
static bool is_one(const Kernel *k, uint32_t v) { return k->ins.at[v].op == KI_const && k->ins.at[v].f == 1; }

// t = tanh u serves 1 + t and 1 - t t only (GELU and its derivative): these become functions of u, and t is dead.
static void shorten_tanh(Kernel *k, uint32_t t) {
  uint32_t u = k->ins.at[t].a, square = 0, sum[2] = {0}, nsum = 0;
  for (uint32_t v = t + 1; v < k->ins.n; v++) {
    const Ins *x = &k->ins.at[v];
    bool of_t = x->a == t || x->b == t || x->c == t;
    bool of_square = square && (x->a == square || x->b == square || x->c == square);
    if (!of_t && !of_square) continue;
    if (of_t && is_alu(k, v, ALU_mul) && x->a == x->b) { square = v; continue; }
    bool plus = of_t && is_alu(k, v, ALU_add) && is_one(k, x->a == t ? x->b : x->a);
    bool minus = of_square && is_alu(k, v, ALU_sub) && is_one(k, x->a);
    if ((!plus && !minus) || sum[minus]) return;
    sum[minus] = v, nsum++;
  }
  for (int minus = 0; nsum && minus < 2; minus++)
    if (sum[minus]) {
      Ins *x = &k->ins.at[sum[minus]];
      x->what = minus ? ALU_sech2 : ALU_tanh1, x->a = u, x->b = 0;
    }
}

static void shorten(Kernel *k) {
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v), *d = kernel_ins(k, x->a);
    if (is_alu(k, v, ALU_tanh)) shorten_tanh(k, v);
    if (!is_alu(k, v, ALU_exp) || !is_alu(k, x->a, ALU_sub)) continue;
    const Ins *max = kernel_ins(k, d->b);                           // softmax: exp(y - max y)
    if (max->op == KI_reduce && max->what == RED_max && max->a == d->a && !max->b) k->ins.at[v].what = ALU_exp0;
  }
}

// Ranges are renumbered: old range r becomes to[r] (-1: gone).
static void move_ranges(Kernel *k, const int *to, uint32_t n) {
  Range was[KERNEL_RANGES];
  memcpy(was, k->range, sizeof was);
  for (uint32_t r = 0; r < k->nrange; r++)
    if (to[r] >= 0) k->range[to[r]] = was[r];
  for (uint32_t v = 1; v < k->ins.n; v++) {
    Ins *x = &k->ins.at[v];
    if (x->op == KI_reduce && x->b) x->range = (uint8_t)to[x->range];
    if (!has_access(x)) continue;
    Access at = x->at;
    memset(x->at.stride, 0, sizeof x->at.stride);
    for (uint32_t r = 0; r < k->nrange; r++)
      if (to[r] >= 0) x->at.stride[to[r]] = at.stride[r];
  }
  for (uint32_t r = n; r < KERNEL_RANGES; r++) k->range[r] = (Range){0};
  k->nrange = n;
}

static void drop_range(Kernel *k, uint32_t gone) {
  int to[KERNEL_RANGES];
  for (uint32_t r = 0; r < k->nrange; r++) to[r] = r == gone ? -1 : (int)(r - (r > gone));
  move_ranges(k, to, k->nrange - 1);
}

// A range of one point is no loop; the last reduced one stays for the reductions.
static bool drop_units(Kernel *k) {
  uint32_t reduced = 0;
  for (uint32_t r = 0; r < k->nrange; r++) reduced += k->range[r].reduced;
  bool needs = ins_is(k, KI_reduce) || ins_is(k, KI_cumsum);
  for (uint32_t r = 0; r < k->nrange; r++) {
    Range x = k->range[r];
    if (x.n != 1 || x.valid != 1 || range_user(k, r) || (x.reduced && needs && reduced == 1)) continue;
    drop_range(k, r);
    return true;
  }
  return false;
}

static int64_t size_of(int64_t x) { return x < 0 ? -(x + 1) + 1 : x; }

// How much an innermost loop over r would like to be that: unit strides, stores twice, short loops hardly.
static int64_t inner_score(const Kernel *k, uint32_t r) {
  int64_t score = 0;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = &k->ins.at[v];
    if (x->op != KI_index && has_access(x) && size_of(x->at.stride[r]) == 1) score += is_store(x) ? 2 : 1;
  }
  return score * MIN(k->range[r].n, 16);
}

static int64_t widest(const Kernel *k, uint32_t r, bool stores) {
  int64_t w = 0;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = &k->ins.at[v];
    if (stores ? is_store(x) : x->op == KI_load)
      w = MAX(w, x->at.stride[r] == INT64_MIN ? INT64_MAX : size_of(x->at.stride[r]));
  }
  return w;
}

// Parallel ranges first; in each kind the widest strides first, and innermost the range with most unit strides.
static bool sort_ranges(Kernel *k) {
  struct { int64_t kind, inner, store, load; uint32_t r; } key[KERNEL_RANGES], swap;
  bool ordered = ins_is(k, KI_cumsum);
  uint32_t n = k->nrange;
  for (uint32_t r = 0; r < n; r++) {
    key[r].r = r, key[r].kind = k->range[r].reduced, key[r].inner = key[r].store = key[r].load = 0;
    if (ordered && k->range[r].reduced) continue;
    key[r].store = widest(k, r, true), key[r].load = widest(k, r, false);
  }
  for (int kind = 0; kind < 2; kind++) {
    int64_t best = 0;
    int at = -1;
    for (uint32_t r = 0; r < n; r++) {
      if (k->range[r].reduced != kind || (ordered && kind)) continue;
      int64_t s = inner_score(k, r);
      if (s > best || (s == best && s && at >= 0 && key[r].store + key[r].load < key[at].store + key[at].load))
        best = s, at = (int)r;
    }
    if (at >= 0) key[at].inner = 1;
  }
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t j = i; j; j--) {
      bool before = key[j].kind != key[j - 1].kind     ? key[j].kind < key[j - 1].kind
                    : key[j].inner != key[j - 1].inner ? key[j].inner < key[j - 1].inner
                    : key[j].store != key[j - 1].store ? key[j].store > key[j - 1].store
                                                       : key[j].load > key[j - 1].load;
      if (!before) break;
      swap = key[j], key[j] = key[j - 1], key[j - 1] = swap;
    }
  int to[KERNEL_RANGES];
  bool moved = false;
  for (uint32_t i = 0; i < n; i++) to[key[i].r] = (int)i, moved |= key[i].r != i;
  if (moved) move_ranges(k, to, n);
  return moved;
}

// Two neighbours become one loop when every address walks on from one to the next.
static bool merge_ranges(Kernel *k) {
  for (uint32_t i = 1; i < k->nrange; i++) {
    Range *out = &k->range[i - 1], *in = &k->range[i];
    int64_t n;
    if (out->reduced != in->reduced || in->valid != in->n || range_user(k, i) || range_user(k, i - 1) ||
        !mul_ok(out->n, in->n, &n))
      continue;
    bool walks = true;
    for (uint32_t v = 1; v < k->ins.n && walks; v++) {
      const Ins *x = &k->ins.at[v];
      int64_t step;
      if (has_access(x)) walks = mul_ok(x->at.stride[i], in->n, &step) && step == x->at.stride[i - 1];
    }
    if (!walks) continue;
    in->valid = out->valid * in->n, in->n = n;
    drop_range(k, i - 1);
    return true;
  }
  return false;
}

// Without a reduction the reduced ranges are loops like others, if every store is inside them;
// those that nothing uses go.
static void free_ranges(Kernel *k) {
  if (ins_is(k, KI_reduce) || ins_is(k, KI_cumsum)) return;
  uint8_t used = 0, red = 0, by_all = 0xff;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    used |= access_deps(&x->at);
    if (is_store(x)) by_all &= access_deps(&x->at);
  }
  for (uint32_t r = k->nrange; r--;)
    if (k->range[r].reduced && !(used >> r & 1) && k->range[r].valid)
      drop_range(k, r), by_all = (uint8_t)((by_all & ((1 << r) - 1)) | (by_all >> (r + 1) << r));
  for (uint32_t r = 0; r < k->nrange; r++) red |= (uint8_t)(k->range[r].reduced << r);
  if (red & ~by_all) return;
  for (uint32_t r = 0; r < k->nrange; r++) k->range[r].reduced = false;
  k->class = LOOP_map;
}

static LoopClass choose_class(const Kernel *k, const Facts *f) {
  if (!f->red) return LOOP_map;
  bool inner_store = false, where = false;
  int64_t rows = 1;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = &k->ins.at[v];
    if (is_store(x) && access_deps(&x->at) & f->red) inner_store = true;
    if (x->op == KI_reduce && x->b) where = true;
  }
  if (where) return LOOP_scatter;
  if (ins_is(k, KI_cumsum) || inner_store || f->phases > 1) return LOOP_row;
  for (uint32_t r = 0; r < k->nrange; r++)
    if (!k->range[r].reduced && !mul_ok(rows, k->range[r].n, &rows)) rows = INT64_MAX;
  int64_t par = 0, red = 0;
  for (uint32_t r = 0; r < k->nrange; r++) {
    int64_t s = inner_score(k, r);
    if (k->range[r].reduced) red = MAX(red, s);
    else par = MAX(par, s);
  }
  return rows >= 64 && red >= par ? LOOP_row : LOOP_col;
}

void kernel_finish(Kernel *k) {
  drop_dead(k);
  shorten(k);
  drop_dead(k);
  free_ranges(k);
  const char *wrong = kernel_check(k, k->arena);      // before anything relies on it
  if (wrong) bug("kernel: %s", wrong);
  for (int again = 1, rounds = 0; again && rounds < 64; rounds++)
    again = drop_units(k) || sort_ranges(k) || merge_ranges(k);
  Facts f = kernel_facts(k, k->arena);
  if (k->class == LOOP_auto) k->class = choose_class(k, &f);
  wrong = kernel_check(k, k->arena);
  if (wrong) bug("kernel: %s", wrong);
  k->finished = true;
}

// ---- the check ----------------------------------------------------------------------------------------------------
// The lowest and highest element an access can touch; false on overflow. any: whether it touches one at all.
static bool access_span(const Kernel *k, const Access *at, bool whole, int64_t *lo, int64_t *hi, bool *any) {
  *lo = *hi = at->base, *any = true;
  for (uint32_t r = 0; r < k->nrange; r++) {
    int64_t n = whole ? k->range[r].n : k->range[r].valid, d;
    if (n == 0) { *any = false; continue; }
    if (!mul_ok(at->stride[r], n - 1, &d) || !add_ok(d < 0 ? *lo : *hi, d, d < 0 ? lo : hi)) return false;
  }
  if (at->index) {
    int64_t d;
    if (at->index_extent < 1) { *any = false; return at->index_extent == 0; }
    if (!mul_ok(at->index_stride, at->index_extent - 1, &d) || !add_ok(d < 0 ? *lo : *hi, d, d < 0 ? lo : hi))
      return false;
  }
  return true;
}

// No element is written at two points: sorted by stride, each stride steps over everything below it.
static bool store_apart(const Kernel *k, const Access *at) {
  int64_t reach = 0;
  bool used[KERNEL_RANGES] = {0};
  for (uint32_t i = 0; i < k->nrange; i++) {
    int best = -1;
    for (uint32_t r = 0; r < k->nrange; r++)
      if (!used[r] && at->stride[r] && (best < 0 || size_of(at->stride[r]) < size_of(at->stride[best]))) best = (int)r;
    if (best < 0) break;
    used[best] = true;
    if (k->range[best].n <= 1) continue;
    if (size_of(at->stride[best]) <= reach) return false;
    reach += size_of(at->stride[best]) * (k->range[best].n - 1);
  }
  return true;
}

static const char *check_ranges(const Kernel *k, Arena *a) {
  int64_t all = 1;
  if (k->nrange > KERNEL_RANGES || k->nbuf > KERNEL_BUFFERS) return "too many ranges or buffers";
  for (uint32_t r = 0; r < k->nrange; r++) {
    Range x = k->range[r];
    if (x.n < 0 || x.valid < 0 || x.valid > x.n)
      return arena_printf(a, "r%u has %lld of %lld points", r, (long long)x.valid, (long long)x.n);
    if (!mul_ok(all, MAX(x.n, 1), &all) || all > (int64_t)1 << 56) return "the ranges have too many points";
  }
  for (uint32_t b = 0; b < k->nbuf; b++)
    if (value_dtype(k->buf[b].dtype) == DT_none || k->buf[b].count < 0 || k->buf[b].count > (int64_t)1 << 56)
      return arena_printf(a, "buffer %u has a wrong dtype or size", b);
  return 0;
}

static const char *check_access(const Kernel *k, Arena *a, const Facts *f, uint32_t v) {
  const Ins *x = kernel_ins(k, v);
  int64_t lo, hi;
  bool any;
  for (uint32_t r = k->nrange; r < KERNEL_RANGES; r++)
    if (x->at.stride[r]) return arena_printf(a, "%%%u uses r%u, which does not exist", v, r);
  for (uint32_t r = 0; r < k->nrange; r++)
    if (x->at.stride[r] == INT64_MIN) return arena_printf(a, "%%%u has a stride too large", v);
  if (x->at.index_stride == INT64_MIN || !access_span(k, &x->at, is_store(x), &lo, &hi, &any))
    return arena_printf(a, "the addresses of %%%u overflow", v);
  if (x->op == KI_index) {
    if (x->dtype != DT_i32 && x->dtype != DT_i64) return arena_printf(a, "index %%%u is no integer", v);
    if (x->at.index) return arena_printf(a, "index %%%u has an index", v);
    if (any && x->dtype == DT_i32 && (lo < INT32_MIN || hi > INT32_MAX))
      return arena_printf(a, "index %%%u does not fit i32", v);
    return 0;
  }
  if (x->buf >= k->nbuf) return arena_printf(a, "%%%u uses buffer %d, which does not exist", v, x->buf);
  if (any && (lo < 0 || hi >= k->buf[x->buf].count))
    return arena_printf(a, "%%%u reaches elements %lld to %lld of buffer %d, which has %lld", v, (long long)lo,
                        (long long)hi, x->buf, (long long)k->buf[x->buf].count);
  if (x->at.index && is_store(x)) return arena_printf(a, "store %%%u has an index", v);
  if (x->at.index && kernel_ins(k, x->at.index)->dtype != DT_i32 && kernel_ins(k, x->at.index)->dtype != DT_i64)
    return arena_printf(a, "the index of %%%u is no integer", v);
  if (!is_store(x)) return 0;
  uint8_t at = access_deps(&x->at);
  for (uint32_t r = 0; r < k->nrange; r++)
    if (k->range[r].n == 0 && (!k->range[r].reduced || at >> r & 1)) return 0;      // it never happens
  for (uint32_t r = 0; r < k->nrange; r++) {
    if ((k->range[r].n <= 1 && k->range[r].valid == k->range[r].n) || at >> r & 1) continue;
    if (!k->range[r].reduced) return arena_printf(a, "store %%%u writes the same element for every r%u", v, r);
    if (at & f->red || f->deps[x->a] & f->red)
      return arena_printf(a, "store %%%u keeps one of the values over r%u", v, r);
  }
  if (!store_apart(k, &x->at)) return arena_printf(a, "store %%%u writes an element twice", v);
  return 0;
}

static const char *check_ins(const Kernel *k, Arena *a, const Facts *f, uint32_t v) {
  const Ins *x = kernel_ins(k, v);
  uint32_t from[] = {x->a, x->b, x->c, x->at.index};
  for (int j = 0; j < 4; j++) {
    if (from[j] >= v) return arena_printf(a, "%%%u uses %%%u before it is there", v, from[j]);
    if (from[j] && is_store(kernel_ins(k, from[j]))) return arena_printf(a, "%%%u uses the store %%%u", v, from[j]);
  }
  DType t = (DType)x->dtype, ta = x->a ? (DType)kernel_ins(k, x->a)->dtype : DT_none;
  switch ((KIns)x->op) {
    case KI_load:
      if (value_dtype(k->buf[MIN(x->buf, KERNEL_BUFFERS - 1)].dtype) != t) return "a load has the wrong dtype";
      return check_access(k, a, f, v);
    case KI_store: case KI_accumulate:
      if (x->buf < k->nbuf && ta != value_dtype(k->buf[x->buf].dtype))
        return arena_printf(a, "store %%%u puts %s into a buffer of %s", v, dtype_name(ta),
                            dtype_name(k->buf[x->buf].dtype));
      if (x->op == KI_accumulate && ta == DT_bool) return arena_printf(a, "%%%u accumulates bools", v);
      return check_access(k, a, f, v);
    case KI_index: return check_access(k, a, f, v);
    case KI_const:
      return takes(TAKES_any, t) && value_dtype(t) == t ? 0 : arena_printf(a, "constant %%%u has no dtype", v);
    case KI_alu: {
      if (x->what == ALU_none || x->what >= ALU_COUNT) return arena_printf(a, "%%%u is no op", v);
      bool select = x->what == ALU_select;
      for (int j = 0; j < 3; j++) {
        if (!!from[j] != (j < alu_rows[x->what].operands))
          return arena_printf(a, "%%%u has the wrong number of operands", v);
        if (!from[j]) continue;
        DType tj = (DType)kernel_ins(k, from[j])->dtype;
        DType want = select && j == 0 ? DT_bool : select ? t : ta;
        if (tj != want || !takes(alu_rows[x->what].takes, tj))
          return arena_printf(a, "operand %d of %%%u is %s", j + 1, v, dtype_name(tj));
      }
      return t == (alu_rows[x->what].gives == GIVES_bool ? DT_bool
                   : select                              ? t
                                                         : ta)
                 ? 0
                 : arena_printf(a, "%%%u has the wrong dtype", v);
    }
    case KI_cast:
      return ta != DT_none && value_dtype(t) == t ? 0 : arena_printf(a, "%%%u casts to %s", v, dtype_name(t));
    case KI_scalar:
      return (t == DT_f64 || t == DT_i64) && x->i >= 0 && x->i < KERNEL_SLOTS
                 ? 0
                 : arena_printf(a, "%%%u reads slot %lld as %s", v, (long long)x->i, dtype_name(t));
    case KI_random:
      for (int j = 0; j < 3; j++)
        if (!from[j] || kernel_ins(k, from[j])->dtype != DT_i64)
          return arena_printf(a, "operand %d of random %%%u is no i64", j + 1, v);
      return t == DT_f32 && !x->i ? 0 : arena_printf(a, "random %%%u has the wrong dtype", v);
    case KI_reduce:
      if (x->what == RED_none || x->what >= RED_COUNT || t != ta || !takes(TAKES_number, t))
        return arena_printf(a, "%%%u reduces %s", v, dtype_name(ta));
      if (!f->red) return arena_printf(a, "%%%u reduces no range", v);
      if (!x->b) return 0;
      if (kernel_ins(k, x->b)->dtype != DT_i32 && kernel_ins(k, x->b)->dtype != DT_i64)
        return arena_printf(a, "the index of %%%u is no integer", v);
      if (x->range >= k->nrange || k->range[x->range].reduced)
        return arena_printf(a, "%%%u scatters over r%d", v, x->range);
      return f->deps[x->b] >> x->range & 1 ? arena_printf(a, "the index of %%%u depends on r%d", v, x->range) : 0;
    case KI_cumsum:
      if (t != ta || !takes(TAKES_number, t)) return arena_printf(a, "%%%u sums up %s", v, dtype_name(ta));
      return f->red ? 0 : arena_printf(a, "%%%u sums up no range", v);
    case KI_none: break;
  }
  return arena_printf(a, "%%%u is no instruction", v);
}

// What the class allows.
static const char *check_class(const Kernel *k, Arena *a, const Facts *f) {
  uint32_t reduces = 0, wheres = 0, inner_stores = 0;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    reduces += x->op == KI_reduce, wheres += x->op == KI_reduce && x->b;
    inner_stores += is_store(x) && access_deps(&x->at) & f->red;
  }
  bool cumsum = ins_is(k, KI_cumsum);
  if (reduces > KERNEL_REDUCES) return "more reductions than the stack has room for";
  if (wheres && (reduces != 1 || (k->class != LOOP_scatter && k->class != LOOP_auto)))
    return "a reduction with where stands alone in a scatter kernel";
  switch (k->class) {
    case LOOP_auto: return 0;
    case LOOP_map: return f->red ? "a map kernel has no reduced range" : 0;
    case LOOP_row:
      if (f->phases > 16) return "more than 16 reductions after one another";
      for (uint32_t v = 1; v < k->ins.n; v++) {       // a pass runs one way
        const Ins *x = kernel_ins(k, v);
        if (x->op != KI_cumsum) continue;
        for (uint32_t w = v + 1; w < k->ins.n; w++)
          if (kernel_ins(k, w)->op == KI_cumsum && kernel_ins(k, w)->what != x->what)
            return arena_printf(a, "%%%u and %%%u sum up in opposite directions", v, w);
      }
      return 0;
    case LOOP_col:
      return cumsum || inner_stores || f->phases > 1
                 ? "a col kernel has one level of reductions and no store inside"
             : !reduces ? "a col kernel reduces"
                        : 0;
    case LOOP_scatter:
      return wheres != 1 || cumsum || inner_stores || f->phases > 1
                 ? "a scatter kernel has one reduction with where and no store inside"
                 : 0;
    case LOOP_COUNT: break;
  }
  return "no such class";
}

const char *kernel_check(const Kernel *k, Arena *a) {
  const char *wrong = check_ranges(k, a);
  if (wrong) return wrong;
  for (uint32_t v = 1; v < k->ins.n; v++) {           // operands first: the facts follow them
    const Ins *x = kernel_ins(k, v);
    if (x->a >= v || x->b >= v || x->c >= v || x->at.index >= v)
      return arena_printf(a, "%%%u uses a value before it is there", v);
  }
  Facts f = kernel_facts(k, a);
  for (uint32_t v = 1; v < k->ins.n; v++)
    if ((wrong = check_ins(k, a, &f, v))) return wrong;
  for (uint32_t b = 0; b < k->nbuf; b++)
    for (uint32_t v = 1; v < k->ins.n; v++)
      if (k->ins.at[v].op == KI_load && k->ins.at[v].buf == b && k->buf[b].written && !kernel_in_place(k, b, b))
        return arena_printf(a, "buffer %u is loaded and stored at different addresses", b);
  return check_class(k, a, &f);
}

// A number that a row picks out of itself: one of those that it stores, loaded before the last pass, which stores them.
static bool in_own_row(const Kernel *k, const Facts *f, uint32_t v, const Access *to) {
  const Access *at = &kernel_ins(k, v)->at;
  if (k->class != LOOP_row || f->deps[v] & f->red || f->phase[v] >= f->phases || at->base != to->base) return false;
  int64_t inner = 0, many = 0;
  for (uint32_t r = 0; r < k->nrange; r++) {
    if (!k->range[r].reduced && at->stride[r] != to->stride[r]) return false;
    if (k->range[r].reduced) inner++, many = to->stride[r] == at->index_stride ? k->range[r].n : 0;
  }
  return !at->index || (inner == 1 && at->index_extent <= many);
}

bool kernel_in_place(const Kernel *k, uint32_t written, uint32_t read) {
  Arena *a = arena_create();
  Facts f = kernel_facts(k, a);
  const Access *at = 0;
  bool ok = dtype_bytes(k->buf[written].dtype) == dtype_bytes(k->buf[read].dtype);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (!is_store(x) || x->buf != written) continue;
    if (at && !access_same(at, &x->at)) ok = false;
    at = &x->at;
    // inside rows later passes load again: only the last pass may write
    if (access_deps(at) & f.red && f.phase[x->a] + 1 != f.phases) ok = false;
  }
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (x->buf == read && (x->op == KI_load || (is_store(x) && read != written)) &&
        (!at || !(access_same(at, &x->at) || (x->op == KI_load && in_own_row(k, &f, v, at)))))
      ok = false;
    if (x->buf == read && is_store(x) && read != written) ok = false;
  }
  arena_destroy(a);
  return ok;
}

KernelCost kernel_cost(const Kernel *k) {
  Arena *a = arena_create();
  Facts f = kernel_facts(k, a);
  KernelCost cost = {0};
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    bool memory = x->op == KI_load || is_store(x);
    uint8_t over = memory && !x->at.index ? access_deps(&x->at) : x->op == KI_reduce ? f.par | f.red : f.deps[v];
    int64_t points = 1;
    for (uint32_t r = 0; r < k->nrange; r++)
      if (over >> r & 1) points *= k->range[r].valid;
    if (memory) {
      points = MIN(points, k->buf[x->buf].count);
      cost.bytes += points * (int64_t)dtype_bytes(k->buf[x->buf].dtype) * (x->op == KI_accumulate ? 2 : 1);
    } else if (x->op == KI_alu || x->op == KI_reduce || x->op == KI_cumsum || x->op == KI_random) {
      cost.flops += points;
    }
  }
  arena_destroy(a);
  return cost;
}

uint64_t kernel_hash(const Kernel *k) {
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  kernel_print(&t, k);
  uint64_t h = hash_bytes(t.s, t.n, 0);
  arena_destroy(a);
  return h;
}

const char *kernel_symbol(Arena *a, const Kernel *k) {
  return arena_printf(a, "k_%016llx", (unsigned long long)kernel_hash(k));
}
