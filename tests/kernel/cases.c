// cases.c -- kernels with known right values: degenerate reductions, padding after a reduction, columns that are no multiple of
// anything, strides, order-free embedding gradients, index arithmetic above 2^31; and what the checks refuse.
#include "tests/kernel/run.h"
#include <sys/mman.h>

static Arena *arena;
static Jit jit;

#define AT(base_, ...) ((Access){.base = base_, .stride = {__VA_ARGS__}})

static Kernel *read_kernel(const char *text) {
  Text why;
  text_init(&why, arena);
  Kernel *k = kernel_read(arena, text, strlen(text), &why);
  if (!k) fail_msg("%s\n%s", why.s, text);
  kernel_finish(k);
  return k;
}

// Runs k's C in one piece, or in single units from the last, on the buffers given.
static void run_kernel(Kernel *k, void **buf, bool singly) {
  Text t;
  JitObject o;
  JitCode code;
  KernelFn *fn[2];
  uint64_t slots[KERNEL_SLOTS];
  Launch l = kernel_launch(k);
  void *all[KERNEL_BUFFERS + 1];
  memcpy(all, buf, sizeof(void *) * k->nbuf);
  all[k->nbuf] = arena_alloc(arena, (size_t)l.work);
  scalars_fill(slots);
  text_init(&t, arena), emit_c_prelude(&t), emit_c(&t, k, "k");
  assert_int_equal(jit_compile(&jit, &(JitSource){t.s, t.n}, 1, &o), 0);
  assert_int_equal(jit_load(&jit, &o, &code), 0);
  void *symbol = jit_symbol(&code, "k"), *combine = jit_symbol(&code, "k_combine");
  memcpy(&fn[0], &symbol, sizeof symbol), memcpy(&fn[1], &combine, sizeof combine);
  for (int stage = 0; stage < l.stages; stage++)
    for (int64_t u = l.units[stage]; u > 0;) {
      int64_t lo = singly ? u - 1 : 0;
      fn[stage](all, slots, lo, u);
      u = lo;
    }
  jit_unload(&code);
}

#define RUN(k, ...) run_kernel(k, (void *[]){__VA_ARGS__}, false)

static void over_nothing(void **state) {               // [3, 0]: sum 0, max -inf; a mean the builder wrote as sum · 1/0 has its say
  (void)state;
  float x[1] = {5}, s[3] = {7, 7, 7}, m[3] = {7, 7, 7};
  int32_t least[3];
  static const char *const classes[] = {"row", "col"};
  for (int i = 0; i < 2; i++) {
    RUN(read_kernel(arena_printf(arena, "kernel %s\nrange 3\nrange 0 reduce\nbuffer f32 0\nbuffer f32 3\nbuffer f32 3\nbuffer i32 3\n%%1 = load 0 [0 + 1*r1]\n%%2 = reduce sum %%1\n"
                                        "%%3 = reduce max %%1\nstore 1 [0 + 1*r0] %%2\nstore 2 [0 + 1*r0] %%3\n%%6 = cast i32 %%1\n%%7 = reduce min %%6\nstore 3 [0 + 1*r0] %%7\nend\n",
                                 classes[i])), x, s, m, least);
    for (int j = 0; j < 3; j++) assert_true(s[j] == 0 && m[j] == -INFINITY && least[j] == INT32_MAX);
  }
  float y[1] = {9};
  RUN(read_kernel("kernel map\nrange 0\nrange 3\nbuffer f32 1\n%1 = const f32 0x1p+0\nstore 0 [0 + 3*r0 + 1*r1] %1\nend\n"), y);
  assert_true(y[0] == 9);
}

static void over_one(void **state) {                   // reductions over one element: identity; layernorm of one: its bias
  (void)state;
  float x[3] = {3, -4, 5}, s[3], m[3], y[3], b[1] = {0.5f}, g[1] = {2};
  RUN(read_kernel("kernel row\nrange 3\nrange 1 reduce\nbuffer f32 3\nbuffer f32 3\nbuffer f32 3\n%1 = load 0 [0 + 1*r0 + 1*r1]\n%2 = reduce sum %1\nstore 1 [0 + 1*r0] %2\n"
                  "%4 = reduce max %1\nstore 2 [0 + 1*r0] %4\nend\n"), x, s, m);
  assert_memory_equal(s, x, sizeof x), assert_memory_equal(m, x, sizeof x);
  RUN(read_kernel("kernel row\nrange 3\nrange 1 reduce\nbuffer f32 3\nbuffer f32 1\nbuffer f32 1\nbuffer f32 3\n%1 = load 0 [0 + 1*r0 + 1*r1]\n%2 = reduce sum %1\n%3 = sub %1 %2\n"
                  "%4 = mul %3 %3\n%5 = reduce sum %4\n%6 = const f32 0x1.4f8b58p-17\n%7 = add %5 %6\n%8 = rsqrt %7\n%9 = mul %3 %8\n%10 = load 1 [0 + 1*r1]\n%11 = mul %9 %10\n"
                  "%12 = load 2 [0 + 1*r1]\n%13 = add %11 %12\nstore 3 [0 + 1*r0 + 1*r1] %13\nend\n"), x, g, b, y);
  for (int i = 0; i < 3; i++) assert_true(y[i] == 0.5f);
  float one = 7, two = 0;                              // a scalar: no range that is parallel
  RUN(read_kernel("kernel col\nrange 1 reduce\nbuffer f32 1\nbuffer f32 1\n%1 = load 0 [0 + 1*r0]\n%2 = reduce sum %1\nstore 1 [0] %2\nend\n"), &one, &two);
  assert_true(two == 7);
}

static void pad_after_sum(void **state) {              // sum of ones[1, 16384], padded by a zero on the left: [0, 16384]
  (void)state;
  float *x = NEW_N(arena, float, 16384), y[2] = {-1, -1};
  for (int i = 0; i < 16384; i++) x[i] = 1;
  static const char *const classes[] = {"row", "col"};
  for (int i = 0; i < 2; i++) {                        // the pad is a guard over the range of the result, not over the terms
    RUN(read_kernel(arena_printf(arena, "kernel %s\nrange 2\nrange 16384 reduce\nbuffer f32 16384\nbuffer f32 2\n%%1 = load 0 [0 + 1*r1]\n%%2 = reduce sum %%1\n%%3 = index i32 [0 + 1*r0]\n"
                                        "%%4 = const i32 0\n%%5 = eq %%3 %%4\n%%6 = const f32 0x0p+0\n%%7 = select %%5 %%6 %%2\nstore 1 [0 + 1*r0] %%7\nend\n", classes[i])), x, y);
    assert_true(y[0] == 0 && y[1] == 16384);
  }
}

static void all_columns(void **state) {                // bias gradient of 6 rows of ones: 6 in every column
  (void)state;
  static const int64_t columns[] = {1, 31, 32, 33, 63, 65, 257, 1600};
  for (size_t i = 0; i < COUNT(columns); i++) {
    int64_t c = columns[i];
    float *dy = NEW_N(arena, float, 6 * c), *db = NEW_N(arena, float, c);
    for (int64_t j = 0; j < 6 * c; j++) dy[j] = 1;
    RUN(read_kernel(arena_printf(arena, "kernel col\nrange %lld\nrange 6 reduce\nbuffer f32 %lld\nbuffer f32 %lld\n%%1 = load 0 [0 + 1*r0 + %lld*r1]\n%%2 = reduce sum %%1\nstore 1 [0 + 1*r0] %%2\nend\n",
                                 (long long)c, (long long)(6 * c), (long long)c, (long long)c)), dy, db);
    for (int64_t j = 0; j < c; j++) assert_true(db[j] == 6);
  }
}

static void through_transpose(void **state) {          // dx of sum(c · transpose(x)): c comes in with its own strides
  (void)state;
  float c[6] = {1, 2, 3, 4, 5, 6}, dx[6];
  static const float want[6] = {1, 3, 5, 2, 4, 6};
  RUN(read_kernel("kernel map\nrange 2\nrange 3\nbuffer f32 6\nbuffer f32 6\n%1 = load 0 [0 + 1*r0 + 2*r1]\nstore 1 [0 + 3*r0 + 1*r1] %1\nend\n"), c, dx);
  assert_memory_equal(dx, want, sizeof dx);
}

static void same_token(void **state) {                 // 4096 equal tokens: the same bits each time, equal to the sum in f64
  (void)state;
  enum { T = 4096, V = 5, C = 48 };
  float *dy = NEW_N(arena, float, T * C), first[V * C], again[V * C];
  uint16_t *dyb = NEW_N(arena, uint16_t, T * C), b1[V * C], b2[V * C];
  int32_t *id = NEW_N(arena, int32_t, T);
  for (int i = 0; i < T * C; i++) dy[i] = 0.1f + philox_uniform(5, 0, 0, (uint64_t)i), dyb[i] = f32_to_bf16(dy[i]);
  for (int i = 0; i < T; i++) id[i] = 3;
  const char *text = "kernel scatter\nrange 5\nrange 48\nrange 4096 reduce\nbuffer %s 196608\nbuffer i32 4096\nbuffer %s 240\n%%1 = load 0 [0 + 1*r1 + 48*r2]\n%%2 = load 1 [0 + 1*r2]\n"
                     "%%3 = reduce sum %%1 where %%2 r0\nstore 2 [0 + 48*r0 + 1*r1] %%3\nend\n";
  char *f = arena_alloc(arena, 1000), *b = arena_alloc(arena, 1000);
  for (int i = 0, n = 0, m = 0; ; i++) {               // the text twice, with either format
    if (text[i] == '%' && text[i + 1] == 's') n += snprintf(f + n, 8, "f32"), m += snprintf(b + m, 8, "bf16"), i++;
    else if (text[i] == '%') f[n++] = b[m++] = '%', i++;
    else f[n++] = b[m++] = text[i];
    if (!text[i]) break;
  }
  Kernel *k = read_kernel(f), *kb = read_kernel(b);
  run_kernel(k, (void *[]){dy, id, first}, false), run_kernel(kb, (void *[]){dyb, id, b1}, false);
  for (int i = 0; i < 4; i++) {
    run_kernel(k, (void *[]){dy, id, again}, i % 2), run_kernel(kb, (void *[]){dyb, id, b2}, i % 2);
    assert_memory_equal(first, again, sizeof first), assert_memory_equal(b1, b2, sizeof b1);
  }
  for (int c = 0; c < C; c++) {
    double s = 0, sb = 0;
    for (int t = 0; t < T; t++) s += (double)dy[t * C + c], sb += (double)bf16_to_f32(dyb[t * C + c]);
    assert_true(fabs((double)first[3 * C + c] - s) <= 1e-6 * s && fabs((double)bf16_to_f32(b1[3 * C + c]) - sb) <= 0x1p-8 * sb);
    for (int v = 0; v < V; v++) assert_true(v == 3 || first[v * C + c] == 0);
  }
}

static void long_sums(void **state) {                  // a million equal terms: tolerance 2e-6 · sum of |terms|, from either class
  (void)state;
  enum { N = 1000000 };
  float *x = NEW_N(arena, float, N), y = 0;
  for (int i = 0; i < N; i++) x[i] = 0.1f;
  static const char *const classes[] = {"row", "col"};
  for (int i = 0; i < 2; i++) {
    RUN(read_kernel(arena_printf(arena, "kernel %s\nrange 1000000 reduce\nbuffer f32 1000000\nbuffer f32 1\n%%1 = load 0 [0 + 1*r0]\n%%2 = reduce sum %%1\nstore 1 [0] %%2\nend\n", classes[i])), x, &y);
    assert_true(fabs((double)y - N * (double)0.1f) <= 2e-6 * N * (double)0.1f);
  }
}

static void nan_is_seen(void **state) {                // a NaN anywhere in a row is its maximum, minimum and sum
  (void)state;
  enum { N = 100 };
  float x[N], y[3];
  Kernel *k = read_kernel("kernel row\nrange 100 reduce\nbuffer f32 100\nbuffer f32 3\n%1 = load 0 [0 + 1*r0]\n%2 = reduce max %1\n%3 = reduce min %1\n%4 = reduce sum %1\nstore 1 [0] %2\n"
                          "store 1 [1] %3\nstore 1 [2] %4\nend\n");
  static const int at[] = {0, 17, 96, 99};
  for (size_t i = 0; i < COUNT(at); i++) {
    for (int j = 0; j < N; j++) x[j] = j == at[i] ? NAN : (float)j;
    RUN(k, x, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
  }
}

// Addresses above 2^31: the memory is reserved, not used, but for the pages that are touched.
static void far_addresses(void **state) {
  (void)state;
  size_t n = ((size_t)1 << 32) + 4096;
  uint8_t *x = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *y = 0;
  if (x == MAP_FAILED) skip();
  y = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (y == MAP_FAILED) skip();
  x[0] = 1, x[(size_t)1 << 31] = 2, x[(size_t)3 << 30] = 3, x[(size_t)1 << 32] = 4;
  int32_t id[4] = {0, 2, 3, 4}, out[4];                // an i32 index times a stride passes 2^31
  RUN(read_kernel("kernel map\nrange 4\nbuffer u8 4294971392\nbuffer i32 4\nbuffer i32 4\nbuffer u8 4294971392\n%1 = load 1 [0 + 1*r0]\n%2 = load 0 [0 + 1073741824*%1 of 5]\n"
                  "store 2 [0 + 1*r0] %2\nstore 3 [0 + 1431655766*r0] %2\nend\n"), x, id, out, y);
  assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4 && y[(size_t)3 * 1431655766u] == 4 && y[(size_t)2 * 1431655766u] == 3);
  munmap(x, n), munmap(y, n);
}

// ---- what is refused -------------------------------------------------------------------------------------------------------
static void refused(void **state) {
  (void)state;
  static const struct { const char *text, *why; } bad[] = {
    {"", "line 1: expected 'kernel'"},
    {"kernel tall\nend\n", "line 1: no such class"},
    {"kernel map\nrange -1\nend\n", "r0 has -1 of -1 points"},
    {"kernel map\nrange 4 of 3\nend\n", "r0 has 4 of 3 points"},
    {"kernel map\nrange 4611686018427387904\nrange 4611686018427387904\nend\n", "too many points"},
    {"kernel map\nbuffer f33 1\nend\n", "line 2: expected a number format"},
    {"kernel map\nbuffer f32 1\n%2 = load 0 [0]\nend\n", "line 3: instructions are numbered one after another"},
    {"kernel map\nbuffer f32 1\n%1 = load 1 [0]\nend\n", "line 3: this buffer does not exist"},
    {"kernel map\nrange 2\nbuffer f32 1\n%1 = load 0 [0 + 1*r0]\nend\n", "%1 reaches elements 0 to 1 of buffer 0, which has 1"},
    {"kernel map\nrange 2\nbuffer f32 2\n%1 = load 0 [0 + -1*r0]\nend\n", "%1 reaches elements -1 to 0"},
    {"kernel map\nrange 2\nbuffer f32 2\n%1 = load 0 [9223372036854775807 + 1*r0]\nend\n", "the addresses of %1 overflow"},
    {"kernel map\nrange 2\nbuffer f32 2\n%1 = const f32 0x1p+0\nstore 0 [0] %1\nend\n", "store %2 writes the same element for every r0"},
    {"kernel map\nrange 2\nrange 2\nbuffer f32 3\n%1 = const f32 0x1p+0\nstore 0 [0 + 1*r0 + 1*r1] %1\nend\n", "store %2 writes an element twice"},
    {"kernel map\nrange 2\nbuffer f32 3\n%1 = load 0 [0 + 1*r0]\nstore 0 [1 + 1*r0] %1\nend\n", "buffer 0 is loaded and stored at different addresses"},
    {"kernel map\nrange 2\nbuffer i32 2\n%1 = const f32 0x1p+0\nstore 0 [0 + 1*r0] %1\nend\n", "store %2 puts f32 into a buffer of i32"},
    {"kernel map\n%1 = const f32 0x1p+0\n%2 = const i32 1\n%3 = add %1 %2\nend\n", "operand 2 of %3 is i32"},
    {"kernel map\n%1 = const i32 1\n%2 = exp %1\nend\n", "operand 1 of %2 is i32"},
    {"kernel map\n%1 = frob %1\nend\n", "line 2: no such instruction"},
    {"kernel map\n%1 = neg %1\nend\n", "line 2: this value does not exist yet"},
    {"kernel map\n%1 = const f32 one\nend\n", "line 2: expected a number"},
    {"kernel map\n%1 = const f32 0x1p+0\nend\nmore", "text after 'end'"},
    {"kernel map\nrange 2 reduce\n%1 = const f32 0x1p+0\n%2 = reduce sum %1\nend\n", "a map kernel has no reduced range"},
    {"kernel map\n%1 = const f32 0x1p+0\n%2 = reduce sum %1\nend\n", "%2 reduces no range"},
    {"kernel col\nrange 2 reduce\nbuffer f32 2\n%1 = const f32 0x1p+0\n%2 = reduce sum %1\nstore 0 [0 + 1*r0] %2\nend\n", "no store inside"},
    {"kernel row\nrange 2\nrange 2 reduce\nbuffer f32 2\nbuffer f32 2\n%1 = load 0 [0 + 1*r1]\nstore 1 [0 + 1*r0] %1\nend\n", "store %2 keeps one of the values over r1"},
    {"kernel scatter\nrange 2\nrange 2 reduce\n%1 = const f32 0x1p+0\n%2 = index i32 [0 + 1*r0]\n%3 = reduce sum %1 where %2 r0\nend\n", "the index of %3 depends on r0"},
    {"kernel row\nrange 4 reduce\n%1 = const i32 1\n%2 = cumsum %1\n%3 = cumsum %1 from_end\nend\n", "opposite directions"},
    {"kernel map\n%1 = scalar f64 512\nend\n", "%1 reads slot 512"},
    {"kernel map\nrange 3000000000\n%1 = index i32 [0 + 1*r0]\nend\n", "index %1 does not fit i32"},
    {"kernel map\nrange 1\nrange 1\nrange 1\nrange 1\nrange 1\nrange 1\nrange 1\nrange 1\nrange 1\nend\n", "line 10: too many ranges"},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    Text why;
    text_init(&why, arena);
    text_puts(&why, "");
    if (kernel_read(arena, bad[i].text, strlen(bad[i].text), &why)) fail_msg("accepted:\n%s", bad[i].text);
    if (!strstr(why.s, bad[i].why)) fail_msg("\"%s\", not \"…%s…\":\n%s", why.s, bad[i].why, bad[i].text);
  }
}

// Texts with bytes changed or cut off: read or refused; what is read prints and reads again. Never a crash.
static void broken_texts(void **state) {
  (void)state;
  static const char text[] = "kernel row\nrange 5 of 9\nrange 12 reduce\nbuffer f32 108\nbuffer i32 9\nbuffer bf16 108\n%1 = load 0 [0 + 12*r0 + 1*r1]\n%2 = load 1 [0 + 1*r0]\n"
                             "%3 = load 0 [0 + 12*r0 + 1*%2 of 12]\n%4 = sub %1 %3\n%5 = exp %4\n%6 = reduce sum %5\n%7 = div %5 %6\n%8 = scalar i64 3\n%9 = index i64 [7 + 12*r0 + 1*r1]\n"
                             "%10 = random %8 %8 %9\n%11 = const f32 0x1.99999ap-4\n%12 = ge %10 %11\n%13 = cumsum %7\n%14 = select %12 %13 %11\nstore 2 [0 + 12*r0 + 1*r1] %14\nend\n";
  uint64_t s = 1;
  int accepted = 0;
  for (int i = 0; i < 20000; i++) {
    Arena *a = arena_create();
    char copy[sizeof text];
    size_t n = sizeof text - 1;
    memcpy(copy, text, sizeof text);
    for (int64_t j = 1 + pick_below(&s, 3); i && j; j--) {
      size_t at = (size_t)pick_below(&s, (int64_t)n);
      static const char signs[] = "0123456789%r*+-[] \nx.abcdef";
      copy[at] = pick_below(&s, 4) ? signs[pick_below(&s, sizeof signs - 1)] : (char)draw(&s);
    }
    if (i % 5 == 4) n = (size_t)pick_below(&s, (int64_t)n);
    Text why, one, two;
    text_init(&why, a), text_init(&one, a), text_init(&two, a);
    Kernel *k = kernel_read(a, copy, n, &why);
    if (!k && !why.n) fail_msg("round %d: refused without a reason", i);
    if (k) {
      kernel_print(&one, k);
      Kernel *again = kernel_read(a, one.s, one.n, &why);
      if (!again) fail_msg("round %d: %s", i, why.s);
      kernel_print(&two, again);
      assert_string_equal(one.s, two.s);
      if (k->class != LOOP_auto) emit_c(&two, k, "k"), accepted++;
    }
    arena_destroy(a);
  }
  assert_true(accepted > 100);
}

// The builder's canonical form: order of building and of ranges does not matter, dead and equal instructions go.
static void canonical(void **state) {
  (void)state;
  Kernel *x = kernel_begin(arena, LOOP_auto), *y = kernel_begin(arena, LOOP_auto);
  kernel_range(x, 6, 6, false), kernel_range(x, 5, 5, false), kernel_range(x, 4, 4, false);
  uint32_t b = kernel_buffer(x, DT_f32, 120), c = kernel_buffer(x, DT_f32, 120), v = kernel_load(x, b, AT(0, 20, 4, 1));
  kernel_store(x, c, AT(0, 20, 4, 1), kernel_alu(x, ALU_mul, v, v, 0));
  kernel_range(y, 4, 4, false), kernel_range(y, 1, 1, false), kernel_range(y, 30, 30, false);
  b = kernel_buffer(y, DT_f32, 120), c = kernel_buffer(y, DT_f32, 120), v = kernel_load(y, b, AT(0, 1, 0, 4));
  kernel_alu(y, ALU_exp, v, 0, 0);
  kernel_store(y, c, AT(0, 1, 7, 4), kernel_alu(y, ALU_mul, v, kernel_load(y, b, AT(0, 1, 0, 4)), 0));
  kernel_finish(x), kernel_finish(y);
  assert_true(x->class == LOOP_map && x->nrange == 1 && x->range[0].n == 120 && x->ins.n == 4);
  assert_true(kernel_hash(x) == kernel_hash(y));
  assert_true(kernel_in_place(x, 1, 0));
  KernelCost cost = kernel_cost(x);
  assert_true(cost.bytes == 960 && cost.flops == 120);
}

static void small_powers(void **state) {               // products, with the value and the corners of pow
  (void)state;
  static const double powers[] = {-2, -1, 0, 1, 2, 3, 4};
  double x[] = {0.3, -1.7, 0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-200, 1e200, 1}, y[COUNT(x)];
  for (size_t i = 0; i < COUNT(powers); i++) {
    Kernel *k = kernel_begin(arena, LOOP_map);
    kernel_range(k, COUNT(x), COUNT(x), false);
    uint32_t v = kernel_load(k, kernel_buffer(k, DT_f64, COUNT(x)), AT(0, 1));
    kernel_store(k, kernel_buffer(k, DT_f64, COUNT(x)), AT(0, 1), kernel_alu(k, ALU_pow, v, kernel_const(k, DT_f64, powers[i]), 0));
    kernel_finish(k);
    for (uint32_t j = 1; j < k->ins.n; j++) assert_false(k->ins.at[j].op == KI_alu && k->ins.at[j].what == ALU_pow);
    run_kernel(k, (void *[]){x, y}, false);
    for (size_t j = 0; j < COUNT(x); j++) {
      double want = pow(x[j], powers[i]);
      assert_true(isnan(want) ? isnan(y[j]) : y[j] == want || fabs(y[j] - want) <= 1e-15 * fabs(want));
    }
  }
}

static bool finishes_with(const char *text, const char *word) {
  Text out;
  text_init(&out, arena);
  kernel_print(&out, read_kernel(text));
  return strstr(out.s, word);
}

// 1 + tanh, 1 - tanh^2 and softmax's exp have forms of their own; tanh stays where it is needed, exp where it may be of anything.
static void cheaper_forms(void **state) {
  (void)state;
#define OPEN "kernel map\nrange 9\nbuffer f32 9\nbuffer f32 9\n%1 = load 0 [0 + 1*r0]\n%2 = tanh %1\n%3 = const f32 0x1p+0\n"
#define STORE "store 1 [0 + 1*r0] "
  static const char gelu[] = OPEN "%4 = add %3 %2\n%5 = mul %2 %2\n%6 = sub %3 %5\n%7 = mul %4 %6\n" STORE "%7\nend\n";
  static const char both[] = OPEN "%4 = add %3 %2\n%5 = mul %4 %2\n" STORE "%5\nend\n";
#define ROW "kernel row\nrange 3\nrange 9 reduce\nbuffer f32 27\nbuffer f32 27\n%1 = load 0 [0 + 9*r0 + 1*r1]\n%2 = reduce max %1\n"
  static const char softmax[] = ROW "%3 = sub %1 %2\n%4 = exp %3\nstore 1 [0 + 9*r0 + 1*r1] %4\nend\n";
  static const char other[] = ROW "%3 = sub %2 %1\n%4 = exp %3\nstore 1 [0 + 9*r0 + 1*r1] %4\nend\n";
  assert_true(finishes_with(gelu, "tanh1 %") && finishes_with(gelu, "sech2 %") && !finishes_with(gelu, "tanh %"));
  assert_true(finishes_with(both, "tanh %") && !finishes_with(both, "tanh1 %"));
  assert_true(finishes_with(softmax, "exp0 %") && finishes_with(other, "exp %"));
}

int main(void) {
  char folder[64];
  folder_enter(folder), setenv("XDG_CACHE_HOME", folder, 1);
  arena = arena_create();
  if (jit_open(&jit, arena, 0)) return 1;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(over_nothing), cmocka_unit_test(over_one), cmocka_unit_test(pad_after_sum), cmocka_unit_test(all_columns), cmocka_unit_test(through_transpose), cmocka_unit_test(same_token),
    cmocka_unit_test(long_sums), cmocka_unit_test(nan_is_seen), cmocka_unit_test(far_addresses), cmocka_unit_test(refused), cmocka_unit_test(broken_texts), cmocka_unit_test(canonical), cmocka_unit_test(small_powers), cmocka_unit_test(cheaper_forms)};
  int bad = cmocka_run_group_tests(tests, 0, 0);
  jit_close(&jit), arena_destroy(arena), folder_leave(folder);
  return bad;
}
