// random.c -- random kernels of every class: C against kernel_eval, text against itself. A failure prints the seed and the
// kernel. `long` as argument: 67 times as many, with every compiler; a number: the first seed.
#include "tests/kernel/run.h"

typedef struct {
  Kernel *k;
  uint64_t s;                                // state of the random choices
  DType t;                                   // of the arithmetic
  uint32_t npar, nred;
  uint32_t pool[64], npool;                  // values of dtype t
  uint32_t plain;                            // the first so many stand before any reduction
  bool inner[64];                            // depends on a reduced range
  Case c;
} Gen;

static int64_t below(Gen *g, int64_t n) { return pick_below(&g->s, n); }
static bool chance(Gen *g, int percent) { return below(g, 100) < percent; }
static uint32_t alu(Gen *g, Alu op, uint32_t a, uint32_t b) { return kernel_alu(g->k, op, a, b, 0); }
static uint32_t number(Gen *g, double x) { return kernel_const(g->k, g->t, x); }

static void put(Gen *g, uint32_t v, bool inner) {
  uint32_t i = g->npool < COUNT(g->pool) ? g->npool++ : (uint32_t)below(g, COUNT(g->pool));
  g->pool[i] = v, g->inner[i] = inner;
}

// Ranges of at most `points` points together; reduced ones after the parallel ones or mixed with them.
static void ranges(Gen *g, uint32_t npar, uint32_t nred, int64_t points) {
  static const int64_t some[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 1030, 2500};
  bool mixed = chance(g, 30);
  while (npar + nred) {
    bool red = npar && nred ? mixed && chance(g, 50) : nred;
    int64_t n = chance(g, 2) ? 0 : some[below(g, COUNT(some))];
    n = MIN(n, MAX(points, 1)), points /= MAX(n, 1);
    int64_t more = chance(g, 20) ? 1 + below(g, 9) : 0;
    kernel_range(g->k, n + more, n, red);
    if (red) nred--;
    else npar--;
  }
}

// An address over the ranges in mask, in a random order, some strides wider than needed, some backwards, some 0 when
// `broadcast`. Returns the elements it needs.
static Access place(Gen *g, uint8_t mask, bool broadcast, int64_t *count) {
  Access at = {.base = chance(g, 20) ? below(g, 40) : 0};
  int64_t width = 1, reach = 0;
  uint32_t order[KERNEL_RANGES], n = 0;
  for (uint32_t r = g->k->nrange; r--;)
    if (mask >> r & 1) order[n++] = r;
  if (chance(g, 35))
    for (uint32_t i = 1; i < n; i++) {
      uint32_t j = (uint32_t)below(g, i + 1), swap = order[i];
      order[i] = order[j], order[j] = swap;
    }
  else if (chance(g, 25))                    // the first range the fastest
    for (uint32_t i = 0; i < n / 2; i++) {
      uint32_t swap = order[i];
      order[i] = order[n - 1 - i], order[n - 1 - i] = swap;
    }
  for (uint32_t i = 0; i < n; i++) {
    if (broadcast && chance(g, 25)) continue;
    uint32_t r = order[i];
    int64_t size = MAX(g->k->range[r].n, 1), step = width;
    width *= size + (chance(g, 15) ? below(g, 4) : 0);
    reach += step * (size - 1);
    if (chance(g, 8)) at.base += step * (size - 1), step = -step;
    at.stride[r] = step;
  }
  int64_t base = at.base;
  for (uint32_t r = 0; r < g->k->nrange; r++)
    if (at.stride[r] < 0) base += at.stride[r] * (MAX(g->k->range[r].n, 1) - 1);
  *count = base + reach + 1 + (chance(g, 10) ? 3 : 0);
  return at;
}

static uint8_t all_ranges(const Gen *g) { return (uint8_t)((1 << g->k->nrange) - 1); }
static uint8_t red_ranges(const Gen *g) {
  uint8_t m = 0;
  for (uint32_t r = 0; r < g->k->nrange; r++) m |= (uint8_t)(g->k->range[r].reduced << r);
  return m;
}

static bool is_inner(const Gen *g, const Access *at) {
  for (uint32_t r = 0; r < g->k->nrange; r++)
    if (at->stride[r] && g->k->range[r].reduced) return true;
  return false;
}

static void add_load(Gen *g, uint8_t mask) {
  static const DType types[] = {DT_f32, DT_f32, DT_f32, DT_bf16, DT_f16, DT_f64, DT_i32, DT_u8, DT_bool, DT_i64};
  DType t = chance(g, 60) ? g->t : types[below(g, COUNT(types))];
  int64_t count;
  Access at = place(g, mask, true, &count);
  bool inner = is_inner(g, &at);
  if (chance(g, 12)) {                       // through an index
    int64_t n;
    Access from = place(g, mask, true, &n);
    uint32_t b = kernel_buffer(g->k, DT_i32, n);
    g->c.fill[b] = FILL_index;
    at.index = kernel_load(g->k, b, from), at.index_stride = count, at.index_extent = g->c.below;
    if (chance(g, 20)) at.index_stride = -count, at.base += count * (g->c.below - 1);
    count *= g->c.below, inner |= is_inner(g, &from);
  }
  if (g->k->nbuf + 8 > KERNEL_BUFFERS) return;
  uint32_t b = kernel_buffer(g->k, t, count);
  g->c.fill[b] = chance(g, 20) ? FILL_positive : FILL_normal;
  uint32_t v = kernel_load(g->k, b, at);
  if (t == DT_bool) v = kernel_alu(g->k, ALU_select, v, number(g, 1), number(g, -0.5));
  v = kernel_cast(g->k, g->t, v);
  if (t == DT_i32 || t == DT_i64 || t == DT_u8) v = alu(g, ALU_mul, v, number(g, 0.125));
  put(g, v, inner);
}

// One more value from those there are; bounded and well conditioned, so that errors stay a few units.
static void add_op(Gen *g) {
  uint32_t i = (uint32_t)below(g, g->npool), j = (uint32_t)below(g, g->npool), a = g->pool[i], b = g->pool[j], v = 0;
  bool inner = g->inner[i] || g->inner[j];
  switch (below(g, 20)) {
    case 0: case 1: v = alu(g, ALU_add, a, b); break;
    case 2: case 3: v = alu(g, ALU_mul, alu(g, ALU_tanh, a, 0), b); break;
    case 4: v = alu(g, ALU_sub, a, alu(g, ALU_mul, b, number(g, 0.3))); break;
    case 5: v = alu(g, ALU_max, a, b); break;
    case 6: v = alu(g, ALU_min, a, b); break;
    case 7: v = alu(g, ALU_exp, alu(g, ALU_tanh, a, 0), 0); break;
    case 8: v = alu(g, ALU_erf, a, 0); break;
    case 9: v = alu(g, ALU_div, a, alu(g, ALU_add, alu(g, ALU_abs, b, 0), number(g, 0.5))); break;
    case 10: v = alu(g, ALU_log, alu(g, ALU_add, alu(g, ALU_abs, a, 0), number(g, 2)), 0); break;
    case 11: v = alu(g, ALU_rsqrt, alu(g, ALU_add, alu(g, ALU_mul, a, a), number(g, 1)), 0); break;
    case 12: v = alu(g, ALU_neg, a, 0); break;
    case 13: v = alu(g, ALU_cos, alu(g, ALU_tanh, a, 0), 0); break;
    case 14: v = alu(g, ALU_pow, alu(g, ALU_add, alu(g, ALU_abs, alu(g, ALU_tanh, a, 0), 0), number(g, 0.5)), number(g, 1.5)); break;
    case 15: v = kernel_alu(g->k, ALU_select, alu(g, ALU_lt, g->pool[0], number(g, 0.1)), a, b), inner |= g->inner[0]; break;
    case 16: {
      int64_t count;
      Access at = place(g, all_ranges(g), true, &count);
      v = kernel_cast(g->k, g->t, kernel_index(g->k, chance(g, 50) ? DT_i32 : DT_i64, at)), v = alu(g, ALU_mul, v, number(g, 0x1p-10)), inner = is_inner(g, &at);
      break;
    }
    case 17: v = kernel_cast(g->k, g->t, kernel_scalar(g->k, DT_f64, (uint32_t)(2 * below(g, 4)))), inner = false; break;
    case 18: {
      int64_t count;
      Access at = place(g, all_ranges(g), true, &count);
      v = kernel_random(g->k, kernel_const(g->k, DT_i64, 99),
                        kernel_alu(g->k, ALU_add, kernel_scalar(g->k, DT_i64, 3), kernel_const_int(g->k, DT_i64, (int64_t)(draw(&g->s) << 32)), 0),
                        kernel_index(g->k, DT_i64, at));
      v = kernel_cast(g->k, g->t, v), inner = is_inner(g, &at);
      break;
    }
    default: v = alu(g, ALU_mul, a, number(g, 0.7)); break;
  }
  put(g, v, inner);
}

static void add_store(Gen *g, uint32_t i) {
  bool inner = g->inner[i] && red_ranges(g);
  if (g->k->nbuf == KERNEL_BUFFERS) return;
  uint8_t mask = all_ranges(g);
  if (!inner && (red_ranges(g) == 0 || chance(g, 70))) mask &= (uint8_t)~red_ranges(g);
  if (g->k->class == LOOP_col || g->k->class == LOOP_scatter) mask &= (uint8_t)~red_ranges(g);
  int64_t count;
  Access at = place(g, mask, false, &count);
  static const DType floats[] = {DT_f32, DT_bf16, DT_f16};
  DType t = g->t == DT_f64 ? DT_f64 : chance(g, 70) ? DT_f32 : floats[below(g, 3)];
  uint32_t b = kernel_buffer(g->k, t, count);
  if (chance(g, 20)) kernel_accumulate(g->k, b, at, g->pool[i]);
  else kernel_store(g->k, b, at, g->pool[i]);
}

static uint32_t pick(Gen *g, bool inner) {             // a value of the pool that is (not) inner; the last such otherwise
  for (int tries = 0; tries < 50; tries++) {
    uint32_t i = (uint32_t)below(g, g->npool);
    if (g->inner[i] == inner) return i;
  }
  for (uint32_t i = g->npool; i--;)
    if (g->inner[i] == inner) return i;
  return 0;
}

// A reduction of a pool value, scaled so that it stays near 1.
static void add_reduce(Gen *g) {
  int64_t terms = 1;
  for (uint32_t r = 0; r < g->k->nrange; r++)
    if (g->k->range[r].reduced) terms *= MAX(g->k->range[r].valid, 1);
  Red red = chance(g, 60) ? RED_sum : chance(g, 50) ? RED_max : RED_min;
  bool once = g->k->class == LOOP_col || g->k->class == LOOP_auto;
  uint32_t v = kernel_reduce(g->k, red, g->pool[once ? (uint32_t)below(g, g->plain) : pick(g, chance(g, 95))]);
  if (red == RED_sum) v = alu(g, ALU_mul, v, number(g, 1 / sqrt((double)terms)));
  else v = alu(g, ALU_max, alu(g, ALU_min, v, number(g, 1e3)), number(g, -1e3));    // over nothing: not infinite
  put(g, v, false);
}

// One value of the last `n`, so that they are not all in vain.
static void gather_up(Gen *g, uint32_t n) {
  uint32_t from = g->npool > n ? g->npool - n : 0, v = g->pool[from];
  bool inner = g->inner[from];
  for (uint32_t i = from + 1; i < g->npool; i++) v = alu(g, ALU_add, alu(g, ALU_mul, v, number(g, 0.8)), alu(g, ALU_tanh, g->pool[i], 0)), inner |= g->inner[i];
  put(g, v, inner);
}

static Case generate(Arena *a, uint64_t seed) {
  Gen gen = {.s = seed, .c = {.name = "random", .seed = seed}}, *g = &gen;
  LoopClass class = (LoopClass)(LOOP_map + below(g, 4));
  g->k = kernel_begin(a, class == LOOP_col && chance(g, 50) ? LOOP_auto : class);
  g->t = chance(g, 75) ? DT_f32 : DT_f64;
  g->c.below = 1 + below(g, 30);
  uint32_t npar = (uint32_t)below(g, class == LOOP_map ? 5 : 4), nred = class == LOOP_map ? 0 : 1 + (uint32_t)below(g, 3);
  int64_t keys = 0;
  if (class == LOOP_scatter) keys = 1 + below(g, 40), kernel_range(g->k, keys + (chance(g, 30) ? 5 : 0), keys, false);
  ranges(g, npar, nred, class == LOOP_scatter ? 1000 : 6000);
  for (int64_t n = 1 + below(g, 4); n; n--) add_load(g, all_ranges(g));
  if (!g->npool) put(g, number(g, 0.5), false);
  for (int64_t n = below(g, 8); n; n--) add_op(g);
  g->plain = g->npool;
  if (class == LOOP_scatter) {
    int64_t count;
    Access at = place(g, (uint8_t)(all_ranges(g) & ~1), true, &count);
    uint32_t b = kernel_buffer(g->k, DT_i32, count);
    g->c.fill[b] = FILL_index, g->c.below = keys;
    uint32_t i = kernel_load(g->k, b, at), s = kernel_reduce_where(g->k, chance(g, 80) ? RED_sum : RED_max, g->pool[pick(g, true)], i, 0);
    s = chance(g, 50) ? s : alu(g, ALU_tanh, s, 0);
    for (uint32_t j = 0; j < g->npool; j++) g->inner[j] = true;          // only the result may be stored
    put(g, s, false);
    uint32_t last = g->npool - 1;
    add_store(g, last);
  } else if (class == LOOP_col) {
    for (int64_t n = 1 + below(g, 3); n; n--) add_reduce(g);
    add_store(g, g->npool - 1);
    if (chance(g, 40)) add_store(g, pick(g, false));
  } else if (class == LOOP_row) {
    bool from_end = chance(g, 50);
    for (int64_t n = 1 + below(g, 3); n; n--) {
      add_reduce(g);
      if (chance(g, 60)) {                   // the result goes back into the row
        uint32_t row = alu(g, ALU_tanh, g->pool[g->npool - 1], 0), dear = alu(g, chance(g, 50) ? ALU_erf : ALU_tanh, g->pool[pick(g, true)], 0);
        put(g, alu(g, ALU_mul, dear, row), true);
      }
      for (int64_t m = below(g, 4); m; m--) add_op(g);
      if (chance(g, 30)) put(g, alu(g, ALU_mul, kernel_cumsum(g->k, g->pool[pick(g, true)], from_end), number(g, 0.05)), true);
    }
    for (int64_t n = below(g, 3); n; n--) add_store(g, (uint32_t)below(g, g->npool));
    gather_up(g, 6);
    add_store(g, g->npool - 1);
  } else {
    gather_up(g, 4);
    add_store(g, g->npool - 1);
    for (int64_t n = below(g, 3); n; n--) add_store(g, (uint32_t)below(g, g->npool));
  }
  if (g->k->class == LOOP_auto && !red_ranges(g)) g->k->class = LOOP_map;
  kernel_finish(g->k);
  g->c.k = g->k;
  return g->c;
}

static uint64_t first = 1;
static bool all;

static void random_kernels(void **state) {
  (void)state;
  for (uint64_t from = first, end = first + (all ? 4000 : 60); from < end; from += 60) {
    Arena *a = arena_create();
    Cases cases = {0};
    for (uint64_t seed = from; seed < from + 60; seed++) {
      vec_push(a, &cases, generate(a, seed));
      check_text(&cases.at[cases.n - 1], a);
    }
    run_everywhere(&cases, a, all ? 1 : 6);
    arena_destroy(a);
  }
}

int main(int argc, char **argv) {
  char folder[64];
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "long")) all = true;
    else first = strtoull(argv[i], 0, 10);
  folder_enter(folder), setenv("XDG_CACHE_HOME", folder, 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels)};
  int bad = cmocka_run_group_tests(tests, 0, 0);
  folder_leave(folder);
  return bad;
}
