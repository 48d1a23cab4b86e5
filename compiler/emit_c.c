// emit_c.c -- a kernel as C: plain loops that gcc and clang vectorise, the same bits from both.
//
// Loop i of the source is i0, i1, …; value %7 is v7; buffer 2 is b2. A value is computed in the loop of the innermost
// range it depends on. Innermost loops are marked free of dependences (MT_FREE) instead of using restrict: a kernel may
// write where it reads (kernel_in_place), element by element; within a body all loads stand before all stores.
//
// Reductions do not depend on the compiler: terms go to a small array in a loop like any other; kernel_math.h adds that
// up in 16 lanes, 64 terms a lane in the term's format, then in f64. What a later pass would compute again at some cost
// (exp, random, sums of operands, …) is kept on the stack, of rows that fit.
//
// Large results go past the caches in blocks (stream), and large operands are asked for a block ahead (ahead).
#include "compiler/kernel.h"
#include "compiler/kernel_source.h"
#include "compiler/tiles.h"

// Values of a row kept on the stack: those that take so many operations to compute again, where a row has so few
// elements; dear ones of longer rows too; so many bytes of them in all.
enum { STACK_OPS = 4, STACK_ROW = 8192, STACK = 512 << 10 };
enum {
  STREAM = 2 << 20,                          // bytes of a result that goes past the caches: it is read much later
  AHEAD = 1 << 20, STEP = 64                 // bytes of an operand that are asked for ahead; points of a step
};

static const char *const alu_text[ALU_COUNT] = {
#define ALU(word, operands, takes, gives, text, f, i) [ALU_##word] = text,
#include "compiler/alu.def"
#undef ALU
};

// ---- writing -----------------------------------------------------------------------------------------------------
typedef struct {
  const Kernel *k;
  Text *o;
  Arena *a;
  Facts f;
  Ranges nest;                               // every range in the order of the loops
  uint8_t *need;                             // values that the present loops compute
  uint8_t **ready;                           // by depth: values that have a variable here
  int depth;
  uint8_t *home;                             // values kept on the stack: 1 + pass that computes them; 0: not kept
  uint8_t pass;
  uint8_t *across;                           // loads and stores that go through a tile
  const char *tile_point;                    // where in it
  uint8_t *streamed;                         // stores that go through y… and past the caches
  bool streams;                              // there are some in this function
  uint8_t *fetched;                          // loads that were asked for ahead in this row
  uint8_t *side;                             // selects whose condition is known here: 1 takes b, 2 takes c
} Emit;

static void line(Emit *e, const char *fmt, ...) PRINTF(2, 3);
static void line(Emit *e, const char *fmt, ...) {
  text_printf(e->o, "%*s", 2 * e->depth, "");
  va_list args;
  va_start(args, fmt);
  text_puts(e->o, arena_vprintf(e->a, fmt, args));
  va_end(args);
  text_puts(e->o, "\n");
}

static void open(Emit *e, const char *fmt, ...) PRINTF(2, 3);
static void open(Emit *e, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  line(e, "%s {", arena_vprintf(e->a, fmt, args));
  va_end(args);
  uint8_t *inside = NEW_N(e->a, uint8_t, e->k->ins.n);
  memcpy(inside, e->ready[e->depth], e->k->ins.n);
  if (e->depth + 1 >= 64) bug("emit_c: loops too deep");
  e->ready[++e->depth] = inside;
}
static void close(Emit *e) { e->depth--, line(e, "}"); }
static void close_else(Emit *e) {
  e->depth--, line(e, "} else {");
  memcpy(e->ready[e->depth + 1], e->ready[e->depth], e->k->ins.n);
  e->depth++;
}

typedef long long Long;
static const char *type_name(DType t) { return t == DT_bool ? "i32" : dtype_name(t); }
static const char *type_of(const Ins *x) { return type_name((DType)x->dtype); }
static const char *wide_of(const Ins *x) { return dtype_is_float((DType)x->dtype) ? "f64" : "i64"; } // of sums
static const char *red_word(const Ins *x) { return x->what == RED_sum ? "sum" : x->what == RED_max ? "max" : "min"; }
static const char *red_macro(const Ins *x) {
  return x->what == RED_sum ? "MT_SUM" : x->what == RED_max ? "MT_MAX" : "MT_MIN";
}

static const char *literal(Emit *e, DType t, double f, int64_t i) {
  if (t == DT_i32 || t == DT_bool)
    return i == INT32_MIN ? "(-2147483647 - 1)" : arena_printf(e->a, i < 0 ? "(%lld)" : "%lld", (Long)i);
  if (t == DT_i64)
    return i == INT64_MIN ? "(-9223372036854775807ll - 1)"
                          : arena_printf(e->a, i < 0 ? "(%lldll)" : "%lldll", (Long)i);
  const char *of = t == DT_f32 ? "" : "(double)";
  if (f != f) return arena_printf(e->a, "%sMT_NAN_F32", of);
  if (f - f != 0) return arena_printf(e->a, "(%s%sMT_INF_F32)", f < 0 ? "-" : "", of);
  return arena_printf(e->a, "(%a%s)", f, t == DT_f32 ? "f" : "");
}

// What a reduction of nothing is: in the value's dtype, or (wide) as it is added up.
static const char *nothing(Emit *e, const Ins *x, bool wide) {
  DType t = (DType)x->dtype;
  double inf = __builtin_inf();
  DType as = !wide ? t : dtype_is_float(t) ? DT_f64 : DT_i64;
  if (x->what == RED_sum) return literal(e, as, 0, 0);
  if (x->what == RED_max) return literal(e, as, -inf, t == DT_i32 ? INT32_MIN : INT64_MIN);
  return literal(e, as, inf, t == DT_i32 ? INT32_MAX : INT64_MAX);
}

static const char *operand(Emit *e, uint32_t v) {
  const Ins *x = kernel_ins(e->k, v);
  if (e->side[v]) return operand(e, e->side[v] == 1 ? x->b : x->c);
  return x->op == KI_const ? literal(e, (DType)x->dtype, x->f, x->i) : arena_printf(e->a, "v%u", v);
}

static const char *address(Emit *e, const Access *at) {
  Text t;
  text_init(&t, e->a);
  for (uint32_t j = 0; j < e->nest.n; j++) {
    uint32_t r = e->nest.at[j];
    if (at->stride[r] == 1) text_printf(&t, "%si%u", t.n ? " + " : "", r);
    else if (at->stride[r]) text_printf(&t, "%s%lldll*i%u", t.n ? " + " : "", (Long)at->stride[r], r);
  }
  if (at->index) text_printf(&t, "%s%lldll*(i64)%s", t.n ? " + " : "", (Long)at->index_stride, operand(e, at->index));
  if (at->base || !t.n) text_printf(&t, "%s%lld", t.n ? " + " : "", (Long)at->base);
  return t.s;
}

static const char *load_text(Emit *e, const Ins *x) {
  DType t = e->k->buf[x->buf].dtype;
  const char *s = arena_printf(e->a, "b%d[%s]", x->buf, address(e, &x->at));
  switch (t) {
    case DT_bf16: s = arena_printf(e->a, "f32_bf16(%s)", s); break;
    case DT_f16: s = arena_printf(e->a, "f32_f16(%s)", s); break;
    case DT_bool: s = arena_printf(e->a, "%s != 0", s); break;
    case DT_u64: s = arena_printf(e->a, "(i64)MT_HOLD(0, 9223372036854775807ull, %s)", s); break;
    default: break;
  }
  if (!x->at.index) return s;
  return arena_printf(e->a, "(uint64_t)(i64)%s < %lldull ? %s : 0", operand(e, x->at.index),
                      (Long)x->at.index_extent, s);
}

static const char *cast_text(Emit *e, const Ins *x) {
  DType from = (DType)kernel_ins(e->k, x->a)->dtype, to = (DType)x->dtype;
  const char *a = operand(e, x->a);
  if (to == DT_bool) return arena_printf(e->a, "%s != 0", a);
  if (dtype_is_int(to) && dtype_is_float(from))
    return arena_printf(e->a, "%s_%s(%s)", type_name(to), type_name(from), a);
  if (to == DT_i32 && from == DT_i64) return arena_printf(e->a, "i32_i64(%s)", a);
  return arena_printf(e->a, "(%s)%s", type_name(to), a);
}

// The place of a value in the nest: 1 + that of the innermost loop it depends on; 0 outside all.
static uint32_t level_of(const Emit *e, uint32_t v) {
  for (uint32_t j = e->nest.n; j; j--)
    if (e->f.deps[v] >> e->nest.at[j - 1] & 1) return j;
  return 0;
}

// Divided by what stays the same over a loop.
static bool divides(const Emit *e, const Ins *x) {
  return x->op == KI_alu && x->what == ALU_div && x->dtype == DT_f32 && !e->f.exact &&
         kernel_ins(e->k, x->b)->op != KI_const && level_of(e, x->b) < MAX(level_of(e, x->a), level_of(e, x->b));
}

// After v is there: r… s… such that a / v is a * r * s; s keeps the reciprocal from overflowing.
static void reciprocal(Emit *e, uint32_t v) {
  for (uint32_t d = v + 1; d < e->k->ins.n; d++) {
    if (kernel_ins(e->k, d)->b != v || !divides(e, kernel_ins(e->k, d))) continue;
    line(e, "const f32 s%u = near_f32(v%u), r%u = 1.0f / (v%u * s%u);", v, v, v, v, v);
    return;
  }
}

static const char *alu_of(Emit *e, const Ins *x) {
  Text t;
  text_init(&t, e->a);
  if (divides(e, x) && !e->side[x->b]) return arena_printf(e->a, "%s * r%u * s%u", operand(e, x->a), x->b, x->b);
  DType dt = (DType)kernel_ins(e->k, x->a)->dtype;
  for (const char *s = alu_text[x->what]; *s; s++) {
    if (*s != '$') { text_add(&t, s, 1); continue; }
    s++;
    text_puts(&t, *s == 'a'   ? operand(e, x->a)
                  : *s == 'b' ? operand(e, x->b)
                  : *s == 'c' ? operand(e, x->c)
                              : type_name(dt));
  }
  return t.s;
}

// The number of the point among the reduced ones, for rows kept on the stack.
static const char *row_point(Emit *e) {
  Ranges red = ranges_in(e->k, e->f.red);
  const char *s = "0";
  for (uint32_t j = 0; j < red.n; j++)
    s = j ? arena_printf(e->a, "(%s)*%lldll + i%u", s, (Long)e->k->range[red.at[j]].valid, red.at[j])
          : arena_printf(e->a, "i%u", red.at[j]);
  return s;
}

static void define(Emit *e, uint32_t v) {
  const Ins *x = kernel_ins(e->k, v);
  const char *t = type_of(x), *s = "";
  if (x->op == KI_const) return;
  if (e->across[v]) {
    line(e, "const %s v%u = x%u[%s];", t, v, v, e->tile_point);
    return;
  }
  if (e->home[v] && e->home[v] <= e->pass) {
    line(e, "const %s v%u = x%u[%s];", t, v, v, row_point(e));
    return;
  }
  switch ((KIns)x->op) {
    case KI_load: s = load_text(e, x); break;
    case KI_alu: s = alu_of(e, x); break;
    case KI_cast: s = cast_text(e, x); break;
    case KI_index: s = arena_printf(e->a, "(%s)(%s)", t, address(e, &x->at)); break;
    case KI_scalar: s = arena_printf(e->a, "((const %s *)scalars)[%lld]", t, (Long)x->i); break;
    case KI_random:
      s = arena_printf(
          e->a, "philox_uniform((uint64_t)%s, (uint32_t)%s, (uint32_t)((uint64_t)%s >> 32), (uint64_t)%s)",
          operand(e, x->a), operand(e, x->b), operand(e, x->b), operand(e, x->c));
      break;
    case KI_cumsum:
      line(e, "c%u += %s;", v, operand(e, x->a));
      s = arena_printf(e->a, "(%s)c%u", t, v);
      break;
    case KI_none: case KI_const: case KI_store: case KI_accumulate: case KI_reduce: return;
  }
  line(e, "const %s v%u = %s;", t, v, s);
  if (e->home[v] == e->pass + 1) line(e, "x%u[%s] = v%u;", v, row_point(e), v);
}

// Needed values of the loops 1 … level that are known after `phase` passes.
static void values(Emit *e, uint32_t level, uint8_t phase) {
  uint8_t *ready = e->ready[e->depth];
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (!e->need[v] || ready[v] || e->side[v] || e->f.phase[v] > phase || level_of(e, v) > level) continue;
    if (is_store(x) || x->op == KI_reduce) continue;
    define(e, v);
    reciprocal(e, v);
    ready[v] = 1;
  }
}

static bool is_inner(const Emit *e, const Ins *x) {    // a store inside rows
  for (uint32_t r = 0; r < e->k->nrange; r++)
    if (x->at.stride[r] && e->f.red >> r & 1) return true;
  return false;
}

static void store(Emit *e, const Ins *x, const char *v) {
  DType t = e->k->buf[x->buf].dtype;
  uint32_t number = (uint32_t)(x - e->k->ins.at);
  const char *to = number < e->k->ins.n && e->streamed[number] ? arena_printf(e->a, "y%u[j]", number)
                                          : arena_printf(e->a, "b%d[%s]", x->buf, address(e, &x->at));
  if (x->op == KI_accumulate)
    v = arena_printf(e->a, "(%s)(%s + %s)", type_name(value_dtype(t)),
                     load_text(e, &(Ins){.buf = x->buf, .at = x->at}), v);
  switch (t) {
    case DT_bf16: v = arena_printf(e->a, "bf16_f32(%s)", v); break;
    case DT_f16: v = arena_printf(e->a, "f16_f32(%s)", v); break;
    case DT_u8: v = arena_printf(e->a, "(uint8_t)MT_HOLD(0, 255, %s)", v); break;
    case DT_i8: v = arena_printf(e->a, "(int8_t)MT_HOLD(-128, 127, %s)", v); break;
    case DT_u16: v = arena_printf(e->a, "(uint16_t)MT_HOLD(0, 65535, %s)", v); break;
    case DT_i16: v = arena_printf(e->a, "(int16_t)MT_HOLD(-32768, 32767, %s)", v); break;
    case DT_u32: v = arena_printf(e->a, "(uint32_t)MT_HOLD(0, 4294967295ll, %s)", v); break;
    case DT_u64: v = arena_printf(e->a, "(uint64_t)(%s < 0 ? 0 : %s)", v, v); break;
    case DT_bool: v = arena_printf(e->a, "(uint8_t)%s", v); break;
    default: break;
  }
  line(e, "%s = %s;", to, v);
}

// Stores inside rows of this pass, or those of whole rows.
static void stores(Emit *e, bool inner) {
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (!is_store(x) || is_inner(e, x) != inner || (inner && e->f.phase[v] != e->pass)) continue;
    if (e->across[v]) line(e, "x%u[%s] = %s;", v, e->tile_point, operand(e, x->a));
    else store(e, x, operand(e, x->a));
  }
}

// Everything that marked values are made of, up to and not through those in cut (0: none).
static void close_over(const Emit *e, uint8_t *need, const uint8_t *cut) {
  for (uint32_t v = e->k->ins.n; --v;) {
    const Ins *x = kernel_ins(e->k, v);
    if (!need[v] || (cut && cut[v])) continue;
    if (e->side[v]) need[e->side[v] == 1 ? x->b : x->c] = 1;
    else need[x->a] = need[x->b] = need[x->c] = need[x->at.index] = 1;
  }
}

static void reset(Emit *e, uint8_t *need) { memset(need, 0, e->k->ins.n); }

// ---- loops -------------------------------------------------------------------------------------------------------
static void loop(Emit *e, uint32_t r, bool whole, bool free) {
  open(e, "%sfor (i64 i%u = 0; i%u < %lld; i%u++)", free ? "MT_FREE " : "", r, r,
       (Long)(whole ? e->k->range[r].n : e->k->range[r].valid), r);
}

// i… of the ranges from the number `q`, the last the fastest.
static void decompose(Emit *e, const char *q, const Ranges *rs, bool whole) {
  const char *rest = q;
  for (uint32_t j = rs->n; j--;) {
    int64_t n = whole ? e->k->range[rs->at[j]].n : e->k->range[rs->at[j]].valid;
    if (j == 0) { line(e, "const i64 i%u = %s;", rs->at[0], rest); return; }
    line(e, "const i64 i%u = %s %% %lld, %s_%u = %s / %lld;", rs->at[j], rest, (Long)n, q, j, rest, (Long)n);
    rest = arena_printf(e->a, "%s_%u", q, j);
  }
}

// "i0 < 5 && i2 < 7": the padded ones among the ranges exist; 0 when none is padded.
static const char *exists(Emit *e, const Ranges *rs) {
  const char *s = 0;
  for (uint32_t j = 0; j < rs->n; j++) {
    Range x = e->k->range[rs->at[j]];
    if (x.valid != x.n) s = arena_printf(e->a, "%s%si%u < %lld", s ? s : "", s ? " && " : "", rs->at[j], (Long)x.valid);
  }
  return s;
}

static void put_zero(Emit *e, const Ins *x) { line(e, "b%d[%s] = 0;", x->buf, address(e, &x->at)); }

// The padding of one store along the ranges from[…] (the others stand): everything when `all`, else where one is
// missing.
static void zeros(Emit *e, const Ins *x, const Ranges *rs, uint32_t j, bool all) {
  if (j == rs->n) {
    if (all) put_zero(e, x);
    return;
  }
  uint32_t r = rs->at[j];
  Range range = e->k->range[r];
  if (!x->at.stride[r]) {
    zeros(e, x, rs, j + 1, all);
  } else if (all) {
    loop(e, r, true, false);
    zeros(e, x, rs, j + 1, true);
    close(e);
  } else {
    if (range.valid != range.n) {
      open(e, "for (i64 i%u = %lld; i%u < %lld; i%u++)", r, (Long)range.valid, r, (Long)range.n, r);
      zeros(e, x, rs, j + 1, true);
      close(e);
    }
    Ranges rest = {0};
    for (uint32_t i = j + 1; i < rs->n; i++) rest.at[rest.n++] = rs->at[i];
    if (!exists(e, &rest)) return;
    loop(e, r, false, false);
    zeros(e, x, rs, j + 1, false);
    close(e);
  }
}

static void all_zeros(Emit *e, const Ranges *rs, bool all) {
  if (!all && !exists(e, rs)) return;
  for (uint32_t v = 1; v < e->k->ins.n; v++)
    if (kernel_ins(e->k, v)->op == KI_store) zeros(e, kernel_ins(e->k, v), rs, 0, all);
}

static void begin(Emit *e, const char *symbol, const char *suffix) {
  const Kernel *k = e->k;
  e->depth = 0;
  e->streams = false;
  memset(e->ready[0], 0, k->ins.n);
  line(e, "void %s%s(void *const *buf, const void *scalars, i64 lo, i64 hi);", symbol, suffix);
  open(e, "void %s%s(void *const *buf, const void *scalars, i64 lo, i64 hi)", symbol, suffix);
  for (uint32_t b = 0; b < k->nbuf; b++) {
    const char *t = dtype_c_name(k->buf[b].dtype);
    if (k->buf[b].read || k->buf[b].written)
      line(e, "%s%s *const b%u = buf[%u];", k->buf[b].written ? "" : "const ", t, b, b);
  }
}

static void finish(Emit *e) {
  if (e->streams) line(e, "MT_STREAMED;");
  close(e);
}

static Ranges joined(Ranges x, Ranges y) {
  for (uint32_t j = 0; j < y.n; j++) x.at[x.n++] = y.at[j];
  return x;
}

// ---- memory: results past the caches, operands ahead of their use ------------------------------------------------
// Bytes that an access touches in all.
static int64_t span(const Emit *e, const Ins *x) {
  int64_t n = (int64_t)dtype_bytes(e->k->buf[x->buf].dtype);
  for (uint32_t r = 0; r < e->k->nrange; r++) n *= x->at.stride[r] ? e->k->range[r].valid : 1;
  return n;
}

// Chooses the streamed among this loop's stores: large, whole along range r, to where nothing is read.
static bool choose_streams(Emit *e, uint32_t r, bool inner) {
  const Kernel *k = e->k;
  bool any = false;
  reset(e, e->streamed);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (x->op != KI_store || x->at.stride[r] != 1 || e->across[v] || k->buf[x->buf].read) continue;
    if (k->range[r].valid < 64 || span(e, x) < STREAM) continue;
    if (inner && (!is_inner(e, x) || e->f.phase[v] != e->pass)) continue;
    e->streamed[v] = 1, any = e->streams = true;
  }
  return any;
}

static void streams_begin(Emit *e) {
  for (uint32_t v = 1; v < e->k->ins.n; v++)
    if (e->streamed[v]) line(e, "%s y%u[MT_BLOCK];", dtype_c_name(e->k->buf[kernel_ins(e->k, v)->buf].dtype), v);
}

// After m points of range r from `at`.
static void streams_end(Emit *e, uint32_t r) {
  bool any = false;
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (!e->streamed[v]) continue;
    if (!any) line(e, "const i64 i%u = at;", r);
    line(e, "stream(b%d + %s, y%u, m * %d);", x->buf, address(e, &x->at), v, (int)dtype_bytes(e->k->buf[x->buf].dtype));
    any = true;
  }
  reset(e, e->streamed);
}

// Asks for what a step reads of an operand, so many elements further on: the hardware does not look past a page, and
// asking for much at once waits as long as reading it. The first opens the loop over the steps, along r.
static void ask(Emit *e, bool first, const Ins *x, uint32_t r, const char *from, const char *n, const char *on) {
  if (first) {
    open(e, "for (i64 s = 0; s < m; s += %d)", STEP);
    if (*n == 'n') line(e, "const i64 n = m - s < %d ? m - s : %d;", STEP, STEP);
    line(e, "const i64 i%u = %s + s;", r, from);
  }
  line(e, "ahead(b%d + %s + %s, %s * %d);", x->buf, address(e, &x->at), on, n, (int)dtype_bytes(e->k->buf[x->buf].dtype));
}
static const char *step_of(Emit *e, uint32_t r) { return e->k->range[r].valid % STEP ? "n" : arena_printf(e->a, "%d", STEP); }

// The loop over the m points along r from `at`. Where much is read, each step asks for the same one of the next m points.
static void open_points(Emit *e, uint32_t r) {
  bool any = false;
  const char *n = step_of(e, r);
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (x->op != KI_load || !e->need[v] || e->fetched[v] || e->home[v] || x->at.index || x->at.stride[r] != 1) continue;
    if (e->across[v] || span(e, x) < AHEAD) continue;
    ask(e, !any, x, r, "at", n, "m");
    e->fetched[v] = 1, any = true;
  }
  if (any) open(e, "MT_FREE for (i64 j = s; j < s + %s; j++)", n);
  else open(e, "%s", ""), open(e, "MT_FREE for (i64 j = 0; j < m; j++)");
  line(e, "const i64 i%u = at + j;", r);
}
static void close_points(Emit *e) { close(e), close(e); }

// ---- map ---------------------------------------------------------------------------------------------------------
// A select whose condition is the same for the whole innermost loop: a stack of values, a shifted border. Its
// condition, or 0.
static uint32_t settled(const Emit *e) {
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (x->op == KI_alu && x->what == ALU_select && e->need[v] && !e->side[v] && !e->ready[e->depth][v] &&
        e->ready[e->depth][x->a])
      return x->a;
  }
  return 0;
}

// Points from … to - 1 of the innermost range r, in blocks where memory gains by it.
static void map_loop(Emit *e, uint32_t r, const char *from, const char *to) {
  bool streams = choose_streams(e, r, false), blocks = streams;
  for (uint32_t v = 1; v < e->k->ins.n && !blocks; v++) {
    const Ins *x = kernel_ins(e->k, v);
    blocks = x->op == KI_load && e->need[v] && x->at.stride[r] == 1 && !x->at.index && span(e, x) >= AHEAD;
  }
  if (blocks) {
    open(e, "for (i64 at = %s; at < %s; at += MT_BLOCK)", from, to);
    line(e, "const i64 m = %s - at < MT_BLOCK ? %s - at : MT_BLOCK;", to, to);
    reset(e, e->fetched);
    streams_begin(e);
    open_points(e, r);
  } else {
    open(e, "MT_FREE for (i64 i%u = %s; i%u < %s; i%u++)", r, from, r, to, r);
  }
  values(e, e->nest.n, 0);
  stores(e, false);
  if (blocks) close_points(e), streams_end(e, r);
  close(e);
}

// The innermost loop; where such a select is in it, two of them behind an if, each with its own values only.
static void map_innermost(Emit *e, uint32_t r, const char *from, const char *to, int choices) {
  const Kernel *k = e->k;
  uint32_t condition = choices < 2 ? settled(e) : 0;
  if (!condition) {
    map_loop(e, r, from, to);
    return;
  }
  uint8_t *need = e->need;
  for (uint8_t side = 1; side <= 2; side++) {
    if (side == 1) open(e, "if (%s)", operand(e, condition));
    else close_else(e);
    e->need = NEW_N(e->a, uint8_t, k->ins.n);
    for (uint32_t v = 1; v < k->ins.n; v++) {
      const Ins *x = kernel_ins(k, v);
      if (x->op == KI_alu && x->what == ALU_select && x->a == condition && !e->ready[e->depth][v]) e->side[v] = side;
      if (is_store(x)) e->need[x->a] = 1;
    }
    close_over(e, e->need, 0);
    map_innermost(e, r, from, to, choices + 1);
    for (uint32_t v = 1; v < k->ins.n; v++)
      if (e->side[v] && kernel_ins(k, v)->a == condition) e->side[v] = 0;
  }
  close(e);
  e->need = need;
}

// A square of points (rows r0 … r1 of the tile's range, all of the innermost in steps): loads across it, the body,
// stores across it.
static void emit_tiles(Emit *e, const MapTiles *t, const char *end) {
  const Kernel *k = e->k;
  uint32_t r = t->order.at[t->cut], c = t->order.at[t->cut + 1];
  int64_t n = k->range[c].valid;
  for (uint32_t v = 1; v < k->ins.n; v++) e->across[v] = is_across(kernel_ins(k, v), r, c);
  e->tile_point = arena_printf(e->a, "(i%u - r0)*%d + i%u - c0", r, TILE_WIDTH, c);
  open(e, "for (i64 r0 = from; r0 < %s; r0 += %d)", end, TILE);
  line(e, "const i64 r1 = r0 + %d < %s ? r0 + %d : %s;", TILE, end, TILE, end);
  open(e, "for (i64 c0 = 0; c0 < %lld; c0 += %d)", (Long)n, TILE_WIDTH);
  line(e, "const i64 c1 = c0 + %d < %lld ? c0 + %d : %lld;", TILE_WIDTH, (Long)n, TILE_WIDTH, (Long)n);
  for (int after = 0; after < 2; after++) {
    for (uint32_t v = 1; v < k->ins.n; v++) {
      const Ins *x = kernel_ins(k, v);
      if (!e->across[v]) continue;
      if (!after) line(e, "%s x%u[%d];", type_of(is_store(x) ? kernel_ins(k, x->a) : x), v, TILE * TILE_WIDTH);
      if (is_store(x) != after) continue;
      open(e, "for (i64 i%u = c0; i%u < c1; i%u++)", c, c, c);
      open(e, "MT_FREE for (i64 i%u = r0; i%u < r1; i%u++)", r, r, r);
      if (after) store(e, x, arena_printf(e->a, "x%u[%s]", v, e->tile_point));
      else line(e, "x%u[%s] = %s;", v, e->tile_point, load_text(e, x));
      close(e), close(e);
    }
    if (after) break;
    open(e, "for (i64 i%u = r0; i%u < r1; i%u++)", r, r, r);
    values(e, t->cut + 1, 0);
    map_innermost(e, c, "c0", "c1", 0);
    close(e);
  }
  close(e), close(e);
  reset(e, e->across);
}

static void emit_map(Emit *e, const char *symbol) {
  const Kernel *k = e->k;
  MapTiles t = map_tiles(k);
  Ranges units = t.order, inside = {0};
  units.n = t.cut, e->nest = t.order;
  for (uint32_t j = t.cut + 1; j < t.order.n; j++) inside.at[inside.n++] = t.order.at[j];
  memset(e->need, 1, k->ins.n);
  begin(e, symbol, "");
  if (!t.units) { close(e); return; }
  values(e, 0, 0);
  open(e, "for (i64 u = lo; u < hi; u++)");
  if (!k->nrange) {
    values(e, 0, 0), stores(e, false);
    close(e), close(e);
    return;
  }
  uint32_t c = t.order.at[t.cut];
  line(e, "const i64 q = u / %lld, from = u %% %lld * %lld;", (Long)t.blocks, (Long)t.blocks, (Long)t.block);
  line(e, "const i64 to = from + %lld < %lld ? from + %lld : %lld;", (Long)t.block, (Long)k->range[c].n,
       (Long)t.block, (Long)k->range[c].n);
  decompose(e, "q", &units, true);
  const char *here = exists(e, &units);
  if (here) open(e, "if (%s)", here);
  values(e, t.cut, 0);
  bool padded = k->range[c].valid != k->range[c].n;
  if (padded) line(e, "const i64 end = to < %lld ? to : %lld;", (Long)k->range[c].valid, (Long)k->range[c].valid);
  if (t.tile >= 0) {
    emit_tiles(e, &t, padded ? "end" : "to");
  } else {
    uint32_t r = c;
    const char *from = "from", *to = padded ? "end" : "to";
    for (uint32_t j = 0; j < inside.n; j++) {
      open(e, "for (i64 i%u = %s; i%u < %s; i%u++)", r, from, r, to, r);
      values(e, t.cut + 1 + j, 0);
      r = inside.at[j], from = "0", to = arena_printf(e->a, "%lld", (Long)k->range[r].valid);
    }
    map_innermost(e, r, from, to, 0);
    for (uint32_t j = 0; j < inside.n; j++) close(e);
  }
  if (exists(e, &inside)) {
    open(e, "for (i64 i%u = from; i%u < %s; i%u++)", c, c, padded ? "end" : "to", c);
    all_zeros(e, &inside, false);
    close(e);
  }
  if (padded) {
    open(e, "for (i64 i%u = from > %lld ? from : %lld; i%u < to; i%u++)", c, (Long)k->range[c].valid,
         (Long)k->range[c].valid, c, c);
    all_zeros(e, &inside, true);
    close(e);
  }
  if (here) {
    close_else(e);
    open(e, "for (i64 i%u = from; i%u < to; i%u++)", c, c, c);
    all_zeros(e, &inside, true);
    close(e);
    close(e);
  }
  close(e);
  finish(e);
}

// ---- row ---------------------------------------------------------------------------------------------------------
static bool is_dear(const Ins *x) {
  if (x->op == KI_random || x->op == KI_cumsum || (x->op == KI_load && x->at.index)) return true;
  if (x->op != KI_alu) return false;
  switch ((Alu)x->what) {
    case ALU_exp: case ALU_exp0: case ALU_log: case ALU_tanh: case ALU_tanh1: case ALU_sech2: case ALU_erf:
    case ALU_sin: case ALU_cos: case ALU_pow: case ALU_mod:
      return true;
    default: return false;
  }
}

// What pass p computes: the terms of its reductions and its stores, from whole-row values and rows on the stack.
static void pass_needs(Emit *e, uint8_t p, uint8_t *need) {
  uint8_t *cut = NEW_N(e->a, uint8_t, e->k->ins.n);
  reset(e, need);
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    cut[v] = !(e->f.deps[v] & e->f.red) || (e->home[v] && e->home[v] <= p);
    if ((x->op == KI_reduce && e->f.phase[v] == p + 1) ||
        (is_store(x) && is_inner(e, x) && e->f.phase[v] == p))
      need[x->a] = 1;
  }
  close_over(e, need, cut);
  need[0] = 0;
}

// What a pass does to compute v, up to what is kept.
static int64_t operations(Emit *e, uint32_t v, uint8_t *need) {
  uint8_t *cut = NEW_N(e->a, uint8_t, e->k->ins.n);
  int64_t n = 0;
  for (uint32_t i = 1; i < e->k->ins.n; i++) cut[i] = e->home[i] || !(e->f.deps[i] & e->f.red);
  reset(e, need);
  need[v] = 1;
  close_over(e, need, cut);
  for (uint32_t i = 1; i <= v; i++) {
    const Ins *x = kernel_ins(e->k, i);
    if (need[i] && (!cut[i] || e->home[i])) n += x->op == KI_load && dtype_bytes(e->k->buf[x->buf].dtype) == 2 ? 3 : 1;
  }
  return n;
}

// Keeps v from its first pass on if it is used in another.
static void choose_home(Emit *e, uint32_t v, uint8_t *need, int64_t row, int64_t *left) {
  int first = -1, last = -1;
  int64_t bytes = row * (int64_t)dtype_bytes((DType)kernel_ins(e->k, v)->dtype);
  if ((e->f.deps[v] & e->f.red) != e->f.red || bytes > *left) return;
  for (uint8_t p = 0; p < e->f.phases; p++) {
    pass_needs(e, p, need);
    if (need[v]) first = first < 0 ? p : first, last = p;
  }
  if (first >= 0 && last > first) e->home[v] = (uint8_t)(first + 1), *left -= bytes;
}

static void choose_homes(Emit *e) {
  const Kernel *k = e->k;
  Ranges red = ranges_in(k, e->f.red);
  int64_t row = range_count(k, &red, false), left = STACK;
  uint8_t *need = NEW_N(e->a, uint8_t, k->ins.n);
  for (uint32_t v = k->ins.n; --v;)
    if (is_dear(kernel_ins(k, v))) choose_home(e, v, need, row, &left);
  for (uint32_t v = 1; v < k->ins.n && row <= STACK_ROW; v++) {
    const Ins *x = kernel_ins(k, v);
    if (!e->home[v] && x->op == KI_alu && x->dtype == DT_f32 && operations(e, v, need) >= STACK_OPS)
      choose_home(e, v, need, row, &left);
  }
}

// A pass in which terms may come in any order: reductions by lanes.
static void lane_loops(Emit *e, const Ranges *outer, uint32_t lane, const char *lane_from,
                       const char *lane_to, const uint32_t *red, uint32_t nred) {
  for (uint32_t j = 0; j < outer->n; j++) {
    loop(e, outer->at[j], false, false);
    values(e, e->nest.n - outer->n - 1 + j + 1, e->pass);
  }
  bool streams = choose_streams(e, lane, true), blocks = nred || streams;
  if (blocks) {
    if (e->k->range[lane].valid <= BLOCK) {
      open(e, "%s", "");
      line(e, "const i64 at = 0, m = %lld;", (Long)e->k->range[lane].valid);
    } else {
      open(e, "for (i64 at = %s; at < %s; at += MT_BLOCK)", lane_from, lane_to);
      line(e, "const i64 m = %s - at < MT_BLOCK ? %s - at : MT_BLOCK;", lane_to, lane_to);
    }
    for (uint32_t j = 0; j < nred; j++) line(e, "%s t%u[MT_BLOCK];", type_of(kernel_ins(e->k, red[j])), red[j]);
    streams_begin(e);
    open_points(e, lane);
  } else {
    open(e, "MT_FREE for (i64 i%u = %s; i%u < %s; i%u++)", lane, lane_from, lane, lane_to, lane);
  }
  values(e, e->nest.n, e->pass);
  for (uint32_t j = 0; j < nred; j++) line(e, "t%u[j] = %s;", red[j], operand(e, kernel_ins(e->k, red[j])->a));
  stores(e, true);
  if (blocks) close_points(e);
  else close(e);
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    line(e, "lanes_%s_%s(a%u, t%u, m);", red_word(x), type_of(x), red[j], red[j]);
  }
  if (blocks) streams_end(e, lane), close(e);
  for (uint32_t j = 0; j < outer->n; j++) close(e);
}

static void lanes_begin(Emit *e, const uint32_t *red, uint32_t nred) {
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    line(e, "%s a%u[MT_LANES];", wide_of(x), red[j]);
    line(e, "for (int l = 0; l < MT_LANES; l++) a%u[l] = %s;", red[j], nothing(e, x, true));
  }
}

// A pass with a cumulative sum: one point after another, forwards or backwards.
static void ordered_loops(Emit *e, const Ranges *rs, bool backwards, const uint32_t *red, uint32_t nred) {
  for (uint32_t v = 1; v < e->k->ins.n; v++)
    if (e->need[v] && kernel_ins(e->k, v)->op == KI_cumsum && !(e->home[v] && e->home[v] <= e->pass))
      line(e, "%s c%u = 0;", wide_of(kernel_ins(e->k, v)), v);
  for (uint32_t j = 0; j < rs->n; j++) {
    uint32_t r = rs->at[j];
    if (backwards) open(e, "for (i64 i%u = %lld; i%u >= 0; i%u--)", r, (Long)e->k->range[r].valid - 1, r, r);
    else loop(e, r, false, false);
    values(e, e->nest.n - rs->n + j + 1, e->pass);
  }
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    line(e, "a%u = %s(%s, a%u, (%s)%s);", red[j], red_macro(x), wide_of(x), red[j], wide_of(x), operand(e, x->a));
  }
  stores(e, true);
  for (uint32_t j = 0; j < rs->n; j++) close(e);
}

static void emit_pass(Emit *e, uint8_t p, const Ranges *rs) {
  const Kernel *k = e->k;
  uint32_t *red = NEW_N(e->a, uint32_t, k->ins.n), nred = 0;
  bool ordered = false, backwards = false, any = false;
  e->pass = p;
  pass_needs(e, p, e->need);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (x->op == KI_reduce && e->f.phase[v] == p + 1) red[nred++] = v, any = true;
    if (is_store(x) && is_inner(e, x) && e->f.phase[v] == p) any = true;
    if (x->op == KI_cumsum && e->need[v] && !(e->home[v] && e->home[v] <= p)) ordered = true, backwards = x->what;
  }
  if (!any) return;
  if (ordered) {
    for (uint32_t j = 0; j < nred; j++)
      line(e, "%s a%u = %s;", wide_of(kernel_ins(k, red[j])), red[j],
           nothing(e, kernel_ins(k, red[j]), true));
    open(e, "%s", "");
    ordered_loops(e, rs, backwards, red, nred);
    close(e);
  } else {
    lanes_begin(e, red, nred);
    Ranges outer = *rs;
    uint32_t lane = outer.at[--outer.n];
    lane_loops(e, &outer, lane, "0", arena_printf(e->a, "%lld", (Long)k->range[lane].valid), red, nred);
  }
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(k, red[j]);
    const char *t = type_of(x);
    if (ordered) line(e, "const %s v%u = (%s)a%u;", t, red[j], t, red[j]);
    else line(e, "const %s v%u = (%s)tree_%s_%s(a%u);", t, red[j], t, red_word(x), t, red[j]);
    reciprocal(e, red[j]);
    e->ready[e->depth][red[j]] = 1;
  }
}

// Everything of one row, i… of the parallel ranges being there.
static void emit_one_row(Emit *e, const Ranges *par, const Ranges *red) {
  const Kernel *k = e->k;
  uint8_t *all = NEW_N(e->a, uint8_t, k->ins.n), *pass = NEW_N(e->a, uint8_t, k->ins.n);
  memset(all, 1, k->ins.n);
  const char *here = exists(e, par);
  if (here) open(e, "if (%s)", here);
  reset(e, e->fetched);
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (e->home[v]) line(e, "%s x%u[%lld];", type_of(kernel_ins(k, v)), v, (Long)MAX(range_count(k, red, false), 1));
  for (uint8_t p = 0; p < e->f.phases && red->n; p++) {
    e->need = all;
    values(e, par->n, p);
    e->need = pass;
    emit_pass(e, p, red);
  }
  e->need = all;
  values(e, par->n, UINT8_MAX);
  stores(e, false);
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (kernel_ins(k, v)->op == KI_store && is_inner(e, kernel_ins(k, v)) && exists(e, red))
      zeros(e, kernel_ins(k, v), red, 0, false);
  if (here) {
    close_else(e);
    all_zeros(e, red, true);
    close(e);
  }
}

// ROW_TILE rows: what they store across lies in tiles, a row of the tile being a row, until they are done.
static void emit_tiled_rows(Emit *e, const RowTiles *t, const Ranges *par) {
  const Kernel *k = e->k;
  uint32_t r = (uint32_t)t->tile, inner = t->red.at[t->red.n - 1];
  int64_t n = k->range[r].n, valid = k->range[r].valid, wide = range_count(k, &t->red, false);
  line(e, "const i64 q = u / %lld, r0 = u %% %lld * %d;", (Long)t->blocks, (Long)t->blocks, ROW_TILE);
  line(e, "const i64 r1 = r0 + %d < %lld ? r0 + %d : %lld;", ROW_TILE, (Long)n, ROW_TILE, (Long)n);
  decompose(e, "q", &t->other, true);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    e->across[v] = x->op == KI_store && is_inner(e, x) && is_across(x, r, inner);
    if (e->across[v]) line(e, "%s x%u[%lld];", type_of(kernel_ins(k, x->a)), v, (Long)(ROW_TILE * MAX(wide, 1)));
  }
  e->tile_point = arena_printf(e->a, "(i%u - r0)*%lldll + %s", r, (Long)wide, row_point(e));
  open(e, "for (i64 i%u = r0; i%u < r1; i%u++)", r, r, r);
  emit_one_row(e, par, &t->red);
  close(e);
  const char *here = exists(e, &t->other);
  if (here) open(e, "if (%s)", here);
  if (valid != n) line(e, "const i64 r2 = r1 < %lld ? r1 : %lld;", (Long)valid, (Long)valid);
  for (uint32_t v = 1; v < k->ins.n; v++) {
    if (!e->across[v]) continue;
    for (uint32_t j = 0; j < t->red.n; j++) loop(e, t->red.at[j], false, false);
    open(e, "MT_FREE for (i64 i%u = r0; i%u < %s; i%u++)", r, r, valid != n ? "r2" : "r1", r);
    store(e, kernel_ins(k, v), arena_printf(e->a, "x%u[%s]", v, e->tile_point));
    close(e);
    for (uint32_t j = 0; j < t->red.n; j++) close(e);
  }
  if (here) close(e);
  reset(e, e->across);
}

static void emit_row(Emit *e, const char *symbol) {
  const Kernel *k = e->k;
  RowTiles t = row_tiles(k, &e->f);
  Ranges par = t.other;
  if (t.tile >= 0) par.at[par.n++] = (uint32_t)t.tile;
  e->nest = joined(par, t.red);
  choose_homes(e);
  begin(e, symbol, "");
  if (!t.units) { close(e); return; }
  memset(e->need, 1, k->ins.n);
  values(e, 0, 0);
  open(e, "for (i64 u = lo; u < hi; u++)");
  if (t.tile >= 0) emit_tiled_rows(e, &t, &par);
  else decompose(e, "u", &par, true), emit_one_row(e, &par, &t.red);
  close(e);
  finish(e);
}

// ---- col ---------------------------------------------------------------------------------------------------------
// Terms of a block of columns, one row: s… = s… with the term, for j < m, column c0 + j.
// along: the range of the next row, -1: none that is known.
static void column_row(Emit *e, int col, int along, const uint32_t *red, uint32_t nred) {
  bool any = false;
  const char *n = col >= 0 ? step_of(e, (uint32_t)col) : "n";
  for (uint32_t v = 1; v < e->k->ins.n && col >= 0 && along >= 0; v++) {
    const Ins *x = kernel_ins(e->k, v);
    if (x->op != KI_load || !e->need[v] || x->at.index || x->at.stride[col] != 1) continue;
    if (!x->at.stride[along] || span(e, x) < AHEAD) continue;
    ask(e, !any, x, (uint32_t)col, "c0", n, arena_printf(e->a, "%lldll", (Long)x->at.stride[along] * 2));
    any = true;
  }
  if (any) open(e, "MT_FREE for (i64 j = s; j < s + %s; j++)", n);
  else open(e, "MT_FREE for (i64 j = 0; j < m; j++)");
  if (col >= 0) line(e, "const i64 i%d = c0 + j;", col);
  values(e, e->nest.n, 0);
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    line(e, "s%u[j] = %s(%s, s%u[j], %s);", red[j], red_macro(x), type_of(x), red[j], operand(e, x->a));
  }
  close(e);
  if (any) close(e);
}

static void columns_begin(Emit *e, int col, char name, bool wide, const uint32_t *red, uint32_t nred) {
  int n = col < 0 ? 1 : (int)MAX(MIN(e->k->range[col].valid, COLUMNS), 1);
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    line(e, "%s %c%u[%d];", wide ? wide_of(x) : type_of(x), name, red[j], n);
    line(e, "for (i64 j = 0; j < m; j++) %c%u[j] = %s;", name, red[j], nothing(e, x, wide));
  }
}

static void columns_fold(Emit *e, const uint32_t *red, uint32_t nred) {
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(e->k, red[j]);
    const char *w = wide_of(x);
    line(e, "for (i64 j = 0; j < m; j++) a%u[j] = %s(%s, a%u[j], (%s)s%u[j]);", red[j], red_macro(x), w,
         red[j], w, red[j]);
  }
}

// The columns of block c: c0 … c0 + m - 1 exist.
static void columns_here(Emit *e, int col, const char *block) {
  if (col < 0) { line(e, "const i64 m = 1;"); return; }
  int64_t valid = e->k->range[col].valid;
  line(e, "const i64 c0 = %s * %d;", block, COLUMNS);
  line(e, "const i64 m = %lld - c0 < 0 ? 0 : %lld - c0 < %d ? %lld - c0 : %d;", (Long)valid, (Long)valid,
       COLUMNS, (Long)valid, COLUMNS);
}

// A chunk's terms by lanes: along a reduced range, into one result.
static void lane_terms(Emit *e, const ColTiles *t, const uint32_t *red, uint32_t nred) {
  const Kernel *k = e->k;
  int64_t n = k->range[t->lane].valid;
  values(e, ranges_in(k, e->f.par).n, 0);
  lanes_begin(e, red, nred);
  open(e, "for (i64 r = chunk * %lld; r < r1; r++)", (Long)t->rows);
  line(e, "const i64 from = r %% %lld * %d, g = r / %lld;", (Long)t->laneblocks, LANE_BLOCK, (Long)t->laneblocks);
  line(e, "const i64 to = from + %d < %lld ? from + %d : %lld;", LANE_BLOCK, (Long)n, LANE_BLOCK, (Long)n);
  decompose(e, "g", &t->outer, false);
  values(e, e->nest.n - 1, 0);
  lane_loops(e, &(Ranges){0}, (uint32_t)t->lane, "from", "to", red, nred);
  close(e);
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(k, red[j]);
    line(e, "((%s *)buf[%u])[(%u + chunk) * %lld + p] = tree_%s_%s(a%u);", wide_of(x), k->nbuf,
         (unsigned)(j * t->chunks), (Long)(t->others * t->ncol), red_word(x), type_of(x), red[j]);
  }
}

// A chunk's terms by columns: ROWS at a time in the terms' format, then wide.
static void column_terms(Emit *e, const ColTiles *t, const uint32_t *red, uint32_t nred) {
  const Kernel *k = e->k;
  columns_here(e, t->col, "block");
  values(e, t->other.n, 0);
  columns_begin(e, t->col, 'a', true, red, nred);
  open(e, "for (i64 r0 = chunk * %lld; r0 < r1; r0 += %d)", (Long)t->rows, ROWS);
  columns_begin(e, t->col, 's', false, red, nred);
  line(e, "const i64 r2 = r0 + %d < r1 ? r0 + %d : r1;", ROWS, ROWS);
  open(e, "for (i64 r = r0; r < r2; r++)");
  decompose(e, "r", &t->outer, false);
  values(e, e->nest.n - 1, 0);
  column_row(e, t->col, t->outer.n ? (int)t->outer.at[t->outer.n - 1] : -1, red, nred);
  close(e);
  columns_fold(e, red, nred);
  close(e);
  for (uint32_t j = 0; j < nred; j++)
    line(e, "for (i64 j = 0; j < m; j++) ((%s *)buf[%u])[(%u + chunk) * %lld + q * %lld + c0 + j] = a%u[j];",
         wide_of(kernel_ins(k, red[j])), k->nbuf, (unsigned)(j * t->chunks), (Long)(t->others * t->ncol),
         (Long)t->ncol, red[j]);
}

static void emit_col_terms(Emit *e, const ColTiles *t, const uint32_t *red, uint32_t nred) {
  Ranges par = ranges_in(e->k, e->f.par);
  open(e, "for (i64 u = lo; u < hi; u++)");
  line(e, "const i64 chunk = u %% %lld, p = u / %lld;", (Long)t->chunks, (Long)t->chunks);
  if (t->by_lanes) decompose(e, "p", &par, true);
  else {
    line(e, "const i64 block = p %% %lld, q = p / %lld;", (Long)t->colblocks, (Long)t->colblocks);
    decompose(e, "q", &t->other, true);
  }
  const char *here = exists(e, t->by_lanes ? &par : &t->other);
  if (here) open(e, "if (%s)", here);
  line(e, "const i64 r1 = chunk * %lld + %lld < %lld ? chunk * %lld + %lld : %lld;", (Long)t->rows,
       (Long)t->rows, (Long)t->all_rows, (Long)t->rows, (Long)t->rows, (Long)t->all_rows);
  if (t->by_lanes) lane_terms(e, t, red, nred);
  else column_terms(e, t, red, nred);
  if (here) close(e);
  close(e);
}

// Values and stores of a block of columns whose reductions stand in a….
static void column_results(Emit *e, int col, const uint32_t *red, uint32_t nred) {
  open(e, "MT_FREE for (i64 j = 0; j < m; j++)");
  if (col >= 0) line(e, "const i64 i%d = c0 + j;", col);
  for (uint32_t j = 0; j < nred; j++) {
    const char *t = type_of(kernel_ins(e->k, red[j]));
    line(e, "const %s v%u = (%s)a%u[j];", t, red[j], t, red[j]);
    e->ready[e->depth][red[j]] = 1;
  }
  values(e, e->nest.n, UINT8_MAX);
  stores(e, false);
  close(e);
}

static void emit_col_results(Emit *e, const ColTiles *t, const uint32_t *red, uint32_t nred) {
  const Kernel *k = e->k;
  int64_t blocks = ceil_div(t->ncol, COLUMNS);
  open(e, "for (i64 u = lo; u < hi; u++)");
  line(e, "const i64 block = u %% %lld, q = u / %lld;", (Long)blocks, (Long)blocks);
  decompose(e, "q", &t->other, true);
  columns_here(e, t->col, "block");
  if (t->col >= 0)
    line(e, "const i64 n = %lld - c0 < %d ? %lld - c0 : %d;", (Long)t->ncol, COLUMNS, (Long)t->ncol, COLUMNS);
  const char *here = exists(e, &t->other);
  if (here) open(e, "if (%s)", here);
  values(e, t->other.n, 0);
  columns_begin(e, t->col, 'a', true, red, nred);
  open(e, "for (i64 chunk = 0; chunk < %lld; chunk++)", (Long)t->chunks);
  for (uint32_t j = 0; j < nred; j++) {
    const Ins *x = kernel_ins(k, red[j]);
    const char *w = wide_of(x);
    line(e, "const %s *const w%u = (const %s *)buf[%u] + (%u + chunk) * %lld + q * %lld%s;", w, red[j], w,
         k->nbuf, (unsigned)(j * t->chunks), (Long)(t->others * t->ncol), (Long)t->ncol,
         t->col >= 0 ? " + c0" : "");
    line(e, "for (i64 j = 0; j < m; j++) a%u[j] = %s(%s, a%u[j], w%u[j]);", red[j], red_macro(x), w, red[j], red[j]);
  }
  close(e);
  column_results(e, t->col, red, nred);
  if (t->col >= 0 && k->range[t->col].valid != t->ncol) {
    open(e, "for (i64 i%d = c0 + m; i%d < c0 + n; i%d++)", t->col, t->col, t->col);
    all_zeros(e, &(Ranges){0}, true);
    close(e);
  }
  if (here) {
    close_else(e);
    if (t->col >= 0) open(e, "for (i64 i%d = c0; i%d < c0 + n; i%d++)", t->col, t->col, t->col);
    all_zeros(e, &(Ranges){0}, true);
    if (t->col >= 0) close(e);
    close(e);
  }
  close(e);
}

// What the first stage needs (from: reduction operands) and the second (from: stores).
static void stage_needs(Emit *e, int stage) {
  uint8_t *cut = NEW_N(e->a, uint8_t, e->k->ins.n);
  reset(e, e->need);
  for (uint32_t v = 1; v < e->k->ins.n; v++) {
    const Ins *x = kernel_ins(e->k, v);
    cut[v] = x->op == KI_reduce;
    if (stage == 0 ? x->op == KI_reduce : is_store(x)) e->need[x->a] = 1;
  }
  close_over(e, e->need, cut);
}

static void emit_col(Emit *e, const char *symbol) {
  const Kernel *k = e->k;
  ColTiles t = col_tiles(k);
  uint32_t *red = NEW_N(e->a, uint32_t, k->ins.n), nred = 0;
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (kernel_ins(k, v)->op == KI_reduce) red[nred++] = v;
  Ranges par = ranges_in(k, e->f.par), one = {0};
  stage_needs(e, 0);
  if (t.by_lanes) one = (Ranges){1, {(uint32_t)t.lane}}, e->nest = joined(joined(par, t.outer), one);
  else one = (Ranges){1, {(uint32_t)t.col}}, e->nest = joined(joined(t.other, t.outer), one);
  begin(e, symbol, "");
  if (t.units0) values(e, 0, 0), emit_col_terms(e, &t, red, nred);
  close(e);
  stage_needs(e, 1);
  one = (Ranges){t.col >= 0, {(uint32_t)MAX(t.col, 0)}};
  e->nest = joined(joined(t.other, one), ranges_in(k, e->f.red));
  begin(e, symbol, "_combine");
  if (t.units1) values(e, 0, 0), emit_col_results(e, &t, red, nred);
  close(e);
}

// ---- scatter -----------------------------------------------------------------------------------------------------
static const char *list_type(const ScatterTiles *t) { return t->wide ? "i64" : "i32"; }

// One list of terms per destination, in order: first[key], next[term], -1 ends.
static void emit_lists(Emit *e, const ScatterTiles *t) {
  const Kernel *k = e->k;
  int64_t keys = k->range[t->key].n;
  open(e, "for (i64 u = lo; u < hi; u++)");
  decompose(e, "u", &t->batch, true);
  line(e, "%s *const first = (%s *)buf[%u] + u * %lld, *const next = first + %lld;", list_type(t),
       list_type(t), k->nbuf, (Long)(keys + t->terms), (Long)keys);
  line(e, "for (i64 j = 0; j < %lld; j++) first[j] = -1;", (Long)keys);
  const char *here = exists(e, &t->batch);
  if (here) open(e, "if (%s)", here);
  values(e, t->batch.n, 0);
  open(e, "for (i64 t = %lld; t >= 0; t--)", (Long)t->terms - 1);
  decompose(e, "t", &t->red, false);
  values(e, e->nest.n, 0);
  const char *index = operand(e, kernel_ins(k, t->reduce)->b);
  open(e, "if ((uint64_t)(i64)%s < %lldull)", index, (Long)k->range[t->key].valid);
  line(e, "next[t] = first[%s], first[%s] = (%s)t;", index, index, list_type(t));
  close(e);
  close(e);
  if (here) close(e);
  close(e);
}

// True when nothing happens to a destination without terms: every store adds the bare sum.
static bool skips_empty(const Kernel *k, uint32_t reduce) {
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (kernel_ins(k, v)->op == KI_store ||
        (kernel_ins(k, v)->op == KI_accumulate && kernel_ins(k, v)->a != reduce))
      return false;
  return kernel_ins(k, reduce)->what == RED_sum;
}

static void emit_destinations(Emit *e, const ScatterTiles *t) {
  const Kernel *k = e->k;
  const uint32_t *red = &t->reduce;
  int64_t keys = k->range[t->key].n;
  Ranges key = {1, {t->key}};
  open(e, "for (i64 u = lo; u < hi; u++)");
  line(e, "const i64 block = u %% %lld, q = u / %lld;", (Long)t->keyblocks, (Long)t->keyblocks);
  decompose(e, "q", &t->batch, true);
  line(e, "const %s *const first = (const %s *)buf[%u] + q * %lld, *const next = first + %lld;", list_type(t),
       list_type(t), k->nbuf, (Long)(keys + t->terms), (Long)keys);
  line(e, "const i64 end = block * %lld + %lld < %lld ? block * %lld + %lld : %lld;", (Long)t->keyblock,
       (Long)t->keyblock, (Long)keys, (Long)t->keyblock, (Long)t->keyblock, (Long)keys);
  open(e, "for (i64 i%u = block * %lld; i%u < end; i%u++)", t->key, (Long)t->keyblock, t->key, t->key);
  Ranges rows = joined(t->batch, key);
  const char *here = exists(e, &rows);
  if (here) open(e, "if (%s)", here);
  if (skips_empty(k, t->reduce)) line(e, "if (first[i%u] < 0) continue;", t->key);
  uint32_t level = t->batch.n + 1;
  values(e, level, 0);
  for (uint32_t j = 0; j < t->other.n; j++) {
    loop(e, t->other.at[j], false, false);
    values(e, ++level, 0);
  }
  int64_t valid = t->col >= 0 ? k->range[t->col].valid : 1;
  if (t->col >= 0) {
    open(e, "for (i64 c0 = 0; c0 < %lld; c0 += %d)", (Long)valid, COLUMNS);
    line(e, "const i64 m = %lld - c0 < %d ? %lld - c0 : %d;", (Long)valid, COLUMNS, (Long)valid, COLUMNS);
  } else {
    open(e, "%s", "");
    line(e, "const i64 m = 1;");
  }
  columns_begin(e, t->col, 'a', true, red, 1);
  columns_begin(e, t->col, 's', false, red, 1);
  line(e, "i64 taken = 0;");
  uint8_t *results = e->need;
  e->need = NEW_N(e->a, uint8_t, k->ins.n);
  stage_needs(e, 0);
  open(e, "for (i64 t = first[i%u]; t >= 0; t = next[t])", t->key);
  decompose(e, "t", &t->red, false);
  values(e, e->nest.n - (t->col >= 0), 0);
  column_row(e, t->col, -1, red, 1);
  open(e, "if (++taken %% %d == 0)", ROWS);
  columns_fold(e, red, 1);
  line(e, "for (i64 j = 0; j < m; j++) s%u[j] = %s;", t->reduce, nothing(e, kernel_ins(k, t->reduce), false));
  close(e);
  close(e);
  columns_fold(e, red, 1);
  e->need = results;
  column_results(e, t->col, red, 1);
  close(e);
  for (uint32_t j = 0; j < t->other.n; j++) close(e);
  all_zeros(e, &t->columns, false);
  if (here) {
    close_else(e);
    all_zeros(e, &t->columns, true);
    close(e);
  }
  close(e), close(e);
}

static void emit_scatter(Emit *e, const char *symbol) {
  const Kernel *k = e->k;
  ScatterTiles t = scatter_tiles(k, &e->f);
  Ranges key = {1, {t.key}}, col = {t.col >= 0, {(uint32_t)MAX(t.col, 0)}};
  reset(e, e->need);
  e->need[kernel_ins(k, t.reduce)->b] = 1;
  close_over(e, e->need, 0);
  e->nest = joined(t.batch, t.red);
  begin(e, symbol, "");
  if (t.batches) values(e, 0, 0), emit_lists(e, &t);
  close(e);
  e->nest = joined(joined(joined(t.batch, key), t.other), joined(t.red, col));
  stage_needs(e, 1);
  begin(e, symbol, "_combine");
  if (t.batches && t.keyblocks) emit_destinations(e, &t);
  close(e);
}

// ---- the whole ---------------------------------------------------------------------------------------------------
void emit_c_text(Text *out, const char *s) {
  while (*s) {
    size_t n = strcspn(s, "\n") + 1;
    if (strncmp(s, "#include", 8)) text_add(out, s, n);
    s += n;
  }
}

void emit_c_prelude(Text *out) { emit_c_text(out, kernel_math_text), emit_c_text(out, philox_text); }

void emit_c(Text *out, const Kernel *k, const char *symbol) {
  Arena *a = arena_create();
  uint32_t n = k->ins.n;
  Emit e = {.k = k, .o = out, .a = a, .f = kernel_facts(k, a)};
  e.need = NEW_N(a, uint8_t, n), e.home = NEW_N(a, uint8_t, n), e.across = NEW_N(a, uint8_t, n),
  e.streamed = NEW_N(a, uint8_t, n), e.fetched = NEW_N(a, uint8_t, n), e.side = NEW_N(a, uint8_t, n),
  e.ready = NEW_N(a, uint8_t *, 64);
  e.ready[0] = NEW_N(a, uint8_t, n);
  switch (k->class) {
    case LOOP_map: emit_map(&e, symbol); break;
    case LOOP_row: emit_row(&e, symbol); break;
    case LOOP_col: emit_col(&e, symbol); break;
    case LOOP_scatter: emit_scatter(&e, symbol); break;
    case LOOP_auto: case LOOP_COUNT: bug("a kernel without a class is emitted");
  }
  arena_destroy(a);
}
