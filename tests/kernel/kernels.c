// kernels.c -- kernels of every class on random and edge sizes, and known cases: C against kernel_eval and known values.
#include "tests/kernel/run.h"

static Arena *arena;
static Cases cases;
static bool all;                              // argument `long`: everything with every compiler

static Case *add(Kernel *k, const char *name) {
  kernel_finish(k);
  vec_push(arena, &cases, (Case){.k = k, .name = name, .seed = cases.n + 1});
  return &cases.at[cases.n - 1];
}

#define AT(base_, ...) ((Access){.base = base_, .stride = {__VA_ARGS__}})

// ---- every op, every dtype ----------------------------------------------------------------------------------------------
static void all_ops(DType t, Fill fill, const char *name) {
  enum { N = 1003 };
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, N, N, false);
  Access at = AT(0, 1);
  uint32_t in[3], n = 0;
  for (int j = 0; j < 3; j++) in[j] = kernel_load(k, kernel_buffer(k, t, N), at);
  uint32_t bit = kernel_load(k, kernel_buffer(k, DT_bool, N), at);
  DType v = value_dtype(t);
  bool isf = dtype_is_float(v), isb = v == DT_bool;
  struct { Alu op; int operands; const char *takes; bool compares; } row[] = {
#define ALU(word, operands, takes, gives, text, f, i) {ALU_##word, operands, #takes, !strcmp(#gives, "bool")},
#include "compiler/alu.def"
#undef ALU
  };
  for (size_t j = 0; j < COUNT(row); j++) {
    const char *takes = row[j].takes;
    if (!strcmp(takes, "float") ? !isf : !strcmp(takes, "f32") ? v != DT_f32 : !strcmp(takes, "number") ? isb : !strcmp(takes, "bool") ? !isb : false) continue;
    uint32_t a = in[0], b = row[j].operands > 1 ? in[1] : 0;
    if (fill == FILL_normal && (row[j].op == ALU_sqrt || row[j].op == ALU_rsqrt || row[j].op == ALU_log || row[j].op == ALU_pow)) a = kernel_alu(k, ALU_abs, a, 0, 0);
    if (row[j].op == ALU_exp0 || row[j].op == ALU_sech2) a = kernel_alu(k, ALU_neg, kernel_alu(k, ALU_abs, a, 0, 0), 0, 0);
    uint32_t r = row[j].op == ALU_select ? kernel_alu(k, row[j].op, bit, in[1], in[2]) : kernel_alu(k, row[j].op, a, b, 0);
    kernel_store(k, kernel_buffer(k, row[j].compares ? DT_bool : t, N), at, r);
    n++;
  }
  assert_true(n > 0);
  Case *c = add(k, name);
  for (int j = 0; j < 3; j++) c->fill[j] = fill;
  c->odd_values = fill == FILL_special;
}

static void all_casts(Fill fill, const char *name) {
  enum { N = 517 };
  static const DType from[] = {DT_f32, DT_f64, DT_i32, DT_i64, DT_bool, DT_bf16, DT_f16, DT_u8, DT_i8, DT_u16, DT_i16, DT_u32, DT_u64};
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, N, N, false);
  uint32_t in[COUNT(from)];
  for (size_t j = 0; j < COUNT(from); j++) in[j] = kernel_load(k, kernel_buffer(k, from[j], N), AT(0, 1));
  for (size_t j = 0; j < 7; j++)
    for (size_t i = 0; i < 5; i++) kernel_store(k, kernel_buffer(k, from[i], N), AT(0, 1), kernel_cast(k, from[i], in[j]));
  for (size_t i = 5; i < COUNT(from); i++) kernel_store(k, kernel_buffer(k, from[i], N), AT(0, 1), kernel_cast(k, value_dtype(from[i]), in[i < 7 ? 1 : 3]));
  Case *c = add(k, name);
  for (size_t j = 0; j < COUNT(from); j++) c->fill[j] = fill;
  c->odd_values = fill == FILL_special;
}

// ---- building blocks of models -------------------------------------------------------------------------------------------
static const int64_t sizes[] = {0, 1, 3, 16, 33, 64, 257, 1025, 2100};

static uint32_t softmax_values(Kernel *k, uint32_t x) {
  uint32_t m = kernel_reduce(k, RED_max, x), e = kernel_alu(k, ALU_exp, kernel_alu(k, ALU_sub, x, m, 0), 0, 0);
  return kernel_alu(k, ALU_div, e, kernel_reduce(k, RED_sum, e), 0);
}

static void softmax(DType t, int64_t rows, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_row);
  uint32_t r = kernel_range(k, rows, rows, false), c = kernel_range(k, n, n, true), in = kernel_buffer(k, t, rows * n), out = kernel_buffer(k, t, rows * n);
  assert_true(r == 0 && c == 1);
  kernel_store(k, out, AT(0, n, 1), softmax_values(k, kernel_load(k, in, AT(0, n, 1))));
  add(k, "softmax");
}

// softmax of rows, two padded ranges of them, which also stores itself transposed
static void softmax_across(DType t, int64_t outer, int64_t rows, int64_t n) {
  int64_t a = outer + 1, b = rows + 3, c = n + 2;
  Kernel *k = kernel_begin(arena, LOOP_row);
  kernel_range(k, a, outer, false), kernel_range(k, b, rows, false), kernel_range(k, c, n, true);
  uint32_t in = kernel_buffer(k, t, a * b * c), out = kernel_buffer(k, t, a * b * c), across = kernel_buffer(k, t, a * b * c), sums = kernel_buffer(k, value_dtype(t), a * b);
  uint32_t p = softmax_values(k, kernel_load(k, in, AT(0, b * c, c, 1)));
  kernel_store(k, out, AT(0, b * c, c, 1), p), kernel_store(k, across, AT(0, b * c, 1, b), p);
  kernel_store(k, sums, AT(0, b, 1), kernel_reduce(k, RED_sum, p));
  add(k, "softmax across");
}

// layernorm, which also stores the mean and 1/deviation of each row
static void layernorm(DType t, DType stat, int64_t rows, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_row);
  kernel_range(k, rows, rows, false), kernel_range(k, n, n, true);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, rows * n), AT(0, n, 1)), g = kernel_load(k, kernel_buffer(k, t, n), AT(0, 0, 1));
  uint32_t b = kernel_load(k, kernel_buffer(k, t, n), AT(0, 0, 1)), y = kernel_buffer(k, t, rows * n);
  uint32_t over = kernel_const(k, stat, 1.0 / (double)MAX(n, 1)), eps = kernel_const(k, stat, 1e-5);
  uint32_t mean = kernel_alu(k, ALU_mul, kernel_reduce(k, RED_sum, x), over, 0), c = kernel_alu(k, ALU_sub, x, mean, 0);
  uint32_t var = kernel_alu(k, ALU_mul, kernel_reduce(k, RED_sum, kernel_alu(k, ALU_mul, c, c, 0)), over, 0);
  uint32_t rs = kernel_alu(k, ALU_rsqrt, kernel_alu(k, ALU_add, var, eps, 0), 0, 0);
  kernel_store(k, y, AT(0, n, 1), kernel_alu(k, ALU_add, kernel_alu(k, ALU_mul, kernel_alu(k, ALU_mul, c, rs, 0), g, 0), b, 0));
  kernel_store(k, kernel_buffer(k, stat, rows), AT(0, 1), mean);
  kernel_store(k, kernel_buffer(k, stat, rows), AT(0, 1), rs);
  add(k, "layernorm");
}

// y[c] (+)= sum over the rows of x[r][c] (and of its square), either in bf16 or f32
static void column_sums(DType t, int64_t rows, int64_t n, bool accumulate) {
  Kernel *k = kernel_begin(arena, LOOP_col);
  kernel_range(k, n, n, false), kernel_range(k, rows, rows, true);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, rows * n), AT(0, 1, n)), y = kernel_buffer(k, t, n), z = kernel_buffer(k, t, n);
  uint32_t s = kernel_reduce(k, RED_sum, x);
  if (accumulate) kernel_accumulate(k, y, AT(0, 1), s);
  else kernel_store(k, y, AT(0, 1), s);
  kernel_store(k, z, AT(0, 1), kernel_reduce(k, RED_sum, kernel_alu(k, ALU_mul, x, x, 0)));
  add(k, "column sums");
}

// the norm of everything: no parallel range
static void norm(DType t, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_auto);
  kernel_range(k, n, n, true);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, n), AT(0, 1)), w = kernel_cast(k, DT_f64, x);
  kernel_store(k, kernel_buffer(k, DT_f64, 1), AT(0, 0), kernel_alu(k, ALU_sqrt, kernel_reduce(k, RED_sum, kernel_alu(k, ALU_mul, w, w, 0)), 0, 0));
  kernel_store(k, kernel_buffer(k, value_dtype(t), 2), AT(1, 0), kernel_reduce(k, RED_sum, x));
  kernel_store(k, kernel_buffer(k, value_dtype(t), 1), AT(0, 0), kernel_reduce(k, RED_max, x));
  assert_int_equal(add(k, "norm")->k->class, LOOP_col);
}

// d wte: rows of dy added up by token; vocab is padded
static void embedding_gradient(DType t, int64_t tokens, int64_t vocab, int64_t stored, int64_t n, bool accumulate) {
  Kernel *k = kernel_begin(arena, LOOP_scatter);
  kernel_range(k, stored, vocab, false), kernel_range(k, n, n, false), kernel_range(k, tokens, tokens, true);
  uint32_t dy = kernel_load(k, kernel_buffer(k, t, tokens * n), AT(0, 0, 1, n)), id = kernel_load(k, kernel_buffer(k, DT_i32, tokens), AT(0, 0, 0, 1));
  uint32_t dw = kernel_buffer(k, t, stored * n), s = kernel_reduce_where(k, RED_sum, dy, id, 0);
  if (accumulate) kernel_accumulate(k, dw, AT(0, n, 1), s);
  else kernel_store(k, dw, AT(0, n, 1), s);
  Case *c = add(k, "embedding gradient");
  c->fill[1] = FILL_index, c->below = vocab;
}

// wte[token] + wpe[position], rows of 2·embed in a wider store
static void embedding(int64_t batch, int64_t seq, int64_t vocab, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, batch, batch, false), kernel_range(k, seq, seq, false), kernel_range(k, n, n, false);
  uint32_t wte = kernel_buffer(k, DT_bf16, vocab * n), id = kernel_load(k, kernel_buffer(k, DT_i32, batch * seq), AT(0, seq, 1, 0));
  Access at = AT(0, 0, 0, 1);
  at.index = id, at.index_stride = n, at.index_extent = vocab;
  uint32_t x = kernel_load(k, wte, at), p = kernel_load(k, kernel_buffer(k, DT_f32, seq * n), AT(0, 0, n, 1));
  kernel_store(k, kernel_buffer(k, DT_f32, batch * seq * (n + 3)), AT(2, seq * (n + 3), n + 3, 1), kernel_alu(k, ALU_add, x, p, 0));
  Case *c = add(k, "embedding");
  c->fill[1] = FILL_index, c->below = vocab;
}

// the first place of the maximum, and 1 there
static void first_maximum(int64_t rows, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_row);
  kernel_range(k, rows, rows, false), kernel_range(k, n, n, true);
  uint32_t x = kernel_load(k, kernel_buffer(k, DT_i8, rows * n), AT(0, n, 1)), m = kernel_reduce(k, RED_max, x), i = kernel_index(k, DT_i32, AT(0, 0, 1));
  uint32_t first = kernel_reduce(k, RED_min, kernel_alu(k, ALU_select, kernel_alu(k, ALU_eq, x, m, 0), i, kernel_const(k, DT_i32, INT32_MAX)));
  kernel_store(k, kernel_buffer(k, DT_i32, rows), AT(0, 1), first);
  kernel_store(k, kernel_buffer(k, DT_bool, rows * n), AT(0, n, 1), kernel_alu(k, ALU_eq, i, first, 0));
  add(k, "first maximum");
}

static void cumulative(DType t, int64_t rows, int64_t n, int64_t m, bool from_end) {
  Kernel *k = kernel_begin(arena, LOOP_row);
  kernel_range(k, rows, rows, false), kernel_range(k, n, n, true), kernel_range(k, m, m, true);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, rows * n * m), AT(0, m, rows * m, 1)), s = kernel_cumsum(k, x, from_end);   // not the storage order
  uint32_t top = kernel_reduce(k, RED_max, s);
  kernel_store(k, kernel_buffer(k, t, rows * n * m), AT(0, n * m, m, 1), s);
  kernel_store(k, kernel_buffer(k, t, rows * n * m), AT(0, n * m, m, 1), kernel_alu(k, ALU_sub, s, top, 0));
  kernel_store(k, kernel_buffer(k, t, rows), AT(0, 1), top);
  add(k, "cumsum");
}

// x[a][b][c] -> y[c][a][b] and into a padded, shifted, reversed place
static void transpose(DType t, int64_t a, int64_t b, int64_t c) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, a, a, false), kernel_range(k, b + 2, b, false), kernel_range(k, c, c, false);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, a * b * c), AT(0, b * c, c, 1));
  kernel_store(k, kernel_buffer(k, t, a * (b + 2) * c), AT(0, b + 2, 1, a * (b + 2)), x);
  kernel_store(k, kernel_buffer(k, t, a * (b + 2) * c + 7), AT(7 + MAX(a - 1, 0) * (b + 2) * c, -(b + 2) * c, c, 1), kernel_alu(k, ALU_neg, x, 0, 0));
  add(k, "transpose");
}

// exp(x) and tanh(x) stacked along a range of 3, whose last entry is 0.5: a select per entry
static void stacked(DType t, int64_t rows, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, rows, rows, false), kernel_range(k, 3, 3, false), kernel_range(k, n, n, false);
  uint32_t x = kernel_load(k, kernel_buffer(k, t, rows * n), AT(0, n, 0, 1)), i = kernel_index(k, DT_i64, AT(0, 0, 1)), half = kernel_const(k, value_dtype(t), 0.5);
  uint32_t last = kernel_alu(k, ALU_select, kernel_alu(k, ALU_eq, i, kernel_const(k, DT_i64, 1), 0), kernel_alu(k, ALU_tanh, x, 0, 0), half);
  kernel_store(k, kernel_buffer(k, t, rows * n * 3), AT(0, 3 * n, n, 1), kernel_alu(k, ALU_select, kernel_alu(k, ALU_eq, i, kernel_const(k, DT_i64, 0), 0), kernel_alu(k, ALU_exp, x, 0, 0), last));
  add(k, "stacked");
  Text c;
  text_init(&c, arena), emit_c(&c, k, "k");
  assert_true(rows * n == 0 || n == 1 || strstr(c.s, "} else {"));
}

// y[i] = x[i - by], 1.5 outside: a shift, and the zero-filled inverse of a slice
static void shift(int64_t rows, int64_t n, int64_t by) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, rows, rows, false), kernel_range(k, n, n, false);
  uint32_t b = kernel_buffer(k, DT_f32, rows * n), i = kernel_index(k, DT_i64, AT(-by, 0, 1)), zero = kernel_const(k, DT_i64, 0), end = kernel_const(k, DT_i64, (double)n);
  Access at = AT(0, n);
  at.index = i, at.index_stride = 1, at.index_extent = n;
  uint32_t in = kernel_alu(k, ALU_and, kernel_alu(k, ALU_ge, i, zero, 0), kernel_alu(k, ALU_lt, i, end, 0), 0), x = kernel_load(k, b, at);
  kernel_store(k, kernel_buffer(k, DT_f32, rows * n), AT(0, n, 1), kernel_alu(k, ALU_select, in, x, kernel_const(k, DT_f32, 1.5)));
  kernel_store(k, kernel_buffer(k, DT_f32, rows * n), AT(0, n, 1), x);
  add(k, "shift");
}

// dropout, with the step and seed from the scalar block
static void dropout(int64_t batch, int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, batch, batch, false), kernel_range(k, n, n, false);
  uint32_t x = kernel_load(k, kernel_buffer(k, DT_bf16, batch * n), AT(0, n, 1)), base = kernel_scalar(k, DT_i64, 5);
  uint32_t i = kernel_alu(k, ALU_add, kernel_index(k, DT_i64, AT(((int64_t)1 << 33), n, 1)), base, 0);
  uint32_t u = kernel_random(k, kernel_const(k, DT_i64, 1234), kernel_alu(k, ALU_add, kernel_scalar(k, DT_i64, 7), kernel_const_int(k, DT_i64, (int64_t)((uint64_t)0xdeadbeef << 32)), 0), i), p = kernel_const(k, DT_f32, 0.1);
  uint32_t kept = kernel_alu(k, ALU_mul, x, kernel_cast(k, DT_f32, kernel_scalar(k, DT_f64, 4)), 0);
  kernel_store(k, kernel_buffer(k, DT_bf16, batch * n), AT(0, n, 1), kernel_alu(k, ALU_select, kernel_alu(k, ALU_ge, u, p, 0), kept, kernel_const(k, DT_f32, 0)));
  kernel_store(k, kernel_buffer(k, DT_f32, batch * n), AT(0, n, 1), u);
  add(k, "dropout");
}

// an optimizer's update in place, with a bf16 copy
static void adamw(int64_t n) {
  Kernel *k = kernel_begin(arena, LOOP_map);
  kernel_range(k, n, n, false);
  Access at = AT(0, 1);
  uint32_t wb = kernel_buffer(k, DT_f32, n), gb = kernel_buffer(k, DT_f32, n), mb = kernel_buffer(k, DT_f32, n), vb = kernel_buffer(k, DT_f32, n), cb = kernel_buffer(k, DT_bf16, n);
  uint32_t w = kernel_load(k, wb, at), g = kernel_load(k, gb, at), m = kernel_load(k, mb, at), v = kernel_load(k, vb, at);
  uint32_t b1 = kernel_const(k, DT_f32, 0.9), c1 = kernel_const(k, DT_f32, 0.1), b2 = kernel_const(k, DT_f32, 0.95), c2 = kernel_const(k, DT_f32, 0.05);
  m = kernel_alu(k, ALU_add, kernel_alu(k, ALU_mul, m, b1, 0), kernel_alu(k, ALU_mul, g, c1, 0), 0);
  v = kernel_alu(k, ALU_add, kernel_alu(k, ALU_mul, v, b2, 0), kernel_alu(k, ALU_mul, kernel_alu(k, ALU_mul, g, g, 0), c2, 0), 0);
  uint32_t lr = kernel_cast(k, DT_f32, kernel_scalar(k, DT_f64, 2)), eps = kernel_const(k, DT_f32, 1e-8);
  uint32_t d = kernel_alu(k, ALU_div, m, kernel_alu(k, ALU_add, kernel_alu(k, ALU_sqrt, v, 0, 0), eps, 0), 0);
  w = kernel_alu(k, ALU_sub, w, kernel_alu(k, ALU_mul, d, lr, 0), 0);
  kernel_store(k, wb, at, w), kernel_store(k, mb, at, m), kernel_store(k, vb, at, v), kernel_store(k, cb, at, w);
  Case *c = add(k, "adamw");
  c->fill[3] = FILL_positive;
  assert_true(kernel_in_place(k, wb, gb) && !kernel_in_place(k, cb, gb));
}

// cross entropy over a padded vocabulary, its gradient too, also in the place of the logits; a label that is not there
// gives 0
static void cross_entropy(DType t, int64_t rows, int64_t n, int64_t stored, bool over) {
  Kernel *k = kernel_begin(arena, LOOP_row);
  kernel_range(k, rows, rows, false), kernel_range(k, stored, n, true);
  uint32_t zb = kernel_buffer(k, t, rows * stored), z = kernel_load(k, zb, AT(0, stored, 1)), label = kernel_load(k, kernel_buffer(k, DT_i32, rows), AT(0, 1));
  uint32_t m = kernel_reduce(k, RED_max, z), s = kernel_reduce(k, RED_sum, kernel_alu(k, ALU_exp, kernel_alu(k, ALU_sub, z, m, 0), 0, 0));
  Access at = AT(0, stored);
  at.index = label, at.index_stride = 1, at.index_extent = n;
  uint32_t own = kernel_load(k, zb, at), none = kernel_const(k, DT_i32, -100), used = kernel_alu(k, ALU_ne, label, none, 0), zero = kernel_const(k, value_dtype(t), 0);
  uint32_t loss = kernel_alu(k, ALU_sub, kernel_alu(k, ALU_add, kernel_alu(k, ALU_log, s, 0, 0), m, 0), own, 0);
  kernel_store(k, kernel_buffer(k, value_dtype(t), rows), AT(0, 1), kernel_alu(k, ALU_select, used, loss, zero));
  uint32_t p = kernel_alu(k, ALU_div, kernel_alu(k, ALU_exp, kernel_alu(k, ALU_sub, z, m, 0), 0, 0), s, 0);
  uint32_t hit = kernel_alu(k, ALU_eq, kernel_index(k, DT_i32, AT(0, 0, 1)), label, 0), one = kernel_const(k, value_dtype(t), 1);
  uint32_t d = kernel_alu(k, ALU_sub, p, kernel_alu(k, ALU_select, hit, one, zero), 0);
  uint32_t to = over ? zb : kernel_buffer(k, t, rows * stored);
  kernel_store(k, to, AT(0, stored, 1), kernel_alu(k, ALU_select, used, d, zero));
  Case *c = add(k, over ? "cross entropy in place" : "cross entropy");
  assert_true(kernel_in_place(k, to, zb));
  c->fill[1] = FILL_index, c->below = n;
}

static void build_all(void) {
  static const DType types[] = {DT_f32, DT_f64, DT_bf16, DT_f16, DT_i32, DT_i64, DT_bool, DT_u8, DT_i16};
  for (size_t i = 0; i < COUNT(types); i++) all_ops(types[i], FILL_normal, "every op");
  all_ops(DT_f32, FILL_special, "every op, odd values"), all_ops(DT_f64, FILL_special, "every op, odd values");
  all_casts(FILL_normal, "casts"), all_casts(FILL_special, "casts, odd values");
  for (size_t i = 0; i < COUNT(sizes); i++) {
    int64_t n = sizes[i];
    DType t = i % 3 == 0 ? DT_bf16 : i % 3 == 1 ? DT_f32 : DT_f64;
    softmax(DT_f32, 3, n), layernorm(t, value_dtype(t), 5, n);
    column_sums(t, 6 + n % 3, n, n % 2), column_sums(DT_f32, n, 5, true), norm(t, n);
    if (i % 2) transpose(t, 3, n, 5), first_maximum(4, n), stacked(t, 2, n), cross_entropy(t, 3, n, n + 7, false), embedding_gradient(t, n, 7, 8, 5, i % 4 == 1);
    else cumulative(i % 4 ? DT_i32 : DT_f32, 3, 2, n, i % 8 < 4), shift(3, n, 2), shift(2, n, -5), dropout(3, n), adamw(n), embedding(2, 3, 11, n);
  }
  softmax_across(DT_f32, 3, 33, 40), softmax_across(DT_bf16, 2, 16, 31), softmax_across(DT_f64, 1, 50, 17), softmax_across(DT_f32, 2, 9, 1000);
  softmax(DT_f32, 1, 9000), layernorm(DT_f32, DT_f32, 700, 3), norm(DT_f32, 100003), column_sums(DT_f32, 5000, 300, false), column_sums(DT_f32, 10000, 1, false);
  transpose(DT_f32, 70, 60, 90), embedding_gradient(DT_f32, 300, 50, 50, 300, true), embedding_gradient(DT_f32, 100, 13, 16, 1, false), cumulative(DT_f64, 2, 30, 40, true);
  cross_entropy(DT_f32, 3, 100, 103, true), cross_entropy(DT_bf16, 5, 3000, 3072, true), cross_entropy(DT_f64, 1, 64, 64, true);
}

static void everywhere(void **state) {
  (void)state;
  build_all();
  for (uint32_t i = 0; i < cases.n; i++) check_text(&cases.at[i], arena);
  run_everywhere(&cases, arena, all ? 1 : 6);
}

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "long");
  char folder[64];
  folder_enter(folder), setenv("XDG_CACHE_HOME", folder, 1);
  arena = arena_create();
  const struct CMUnitTest tests[] = {cmocka_unit_test(everywhere)};
  int bad = cmocka_run_group_tests(tests, 0, 0);
  arena_destroy(arena), folder_leave(folder);
  return bad;
}
