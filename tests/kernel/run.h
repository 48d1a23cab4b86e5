// run.h -- compares what a kernel's C computes with what kernel_eval says: many kernels to a compile, with every compiler
// that is here, in tiles of any size. Tolerances: |got - want| <= tol (|want| + rms(want)); integers exactly; NaN fails
// unless the case says otherwise.
#ifndef MT_TESTS_RUN_H
#define MT_TESTS_RUN_H
#include "compiler/kernel.h"
#include "runtime/jit.h"
#include "runtime/philox.h"
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>
#include "tests/data/check.h"

typedef enum { FILL_normal, FILL_positive, FILL_index, FILL_special, FILL_ones } Fill;

typedef struct {
  Kernel *k;
  const char *name;
  uint64_t seed;
  Fill fill[KERNEL_BUFFERS];                 // of buffers that are read; others are poisoned
  int64_t below;                             // FILL_index: -2 … below + 1
  bool odd_values;                           // infinities and NaN are right where kernel_eval has them
} Case;

typedef VEC(Case) Cases;
typedef void KernelFn(void *const *buf, const void *scalars, int64_t lo, int64_t hi);

static inline int64_t pick_below(uint64_t *s, int64_t n) { return (int64_t)draw_below(s, (uint64_t)n); }

static const double specials[] = {0, -0.0, 1, -1, 0.5, -0.5, 2, -3, 1e-30, -1e-30, 100, -100, 1e5, 104729.25, -7.5, 2.5, 3e38, -3e38, 1e-40};

static inline void fill_buffer(void *p, DType t, int64_t n, Fill how, int64_t below, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    void *to = (char *)p + i * (int64_t)dtype_bytes(t);
    double x = (double)philox_normal(seed, 0, 0, (uint64_t)i), u = (double)philox_uniform(seed, 1, 0, (uint64_t)i);
    switch (how) {
      case FILL_normal: x = dtype_is_float(t) ? x : t == DT_bool ? u < 0.5 : floor(x * 20); break;
      case FILL_positive: x = dtype_is_float(t) ? 0.5 + u : 1 + floor(u * 9); break;
      case FILL_index: x = floor(u * (double)(below + 4)) - 2; break;
      case FILL_special: x = i % 8 == 7 ? INFINITY * (u < 0.5 ? -1 : 1) : i % 97 == 5 ? NAN : i % 3 ? specials[(int)(u * COUNT(specials))] : x * 10; break;
      case FILL_ones: x = 1; break;
    }
    dtype_store(t, to, x);
  }
}

enum { GUARD = 64 };                         // bytes before and after each buffer that must stay as they are

// All buffers of a case, one block each; the same bytes for the same case.
static inline void **case_buffers(Arena *a, const Case *c, int64_t work) {
  const Kernel *k = c->k;
  void **buf = NEW_N(a, void *, k->nbuf + 1);
  for (uint32_t b = 0; b <= k->nbuf; b++) {
    int64_t n = b == k->nbuf ? work : k->buf[b].count * (int64_t)dtype_bytes(k->buf[b].dtype);
    char *p = arena_alloc(a, (size_t)n + 2 * GUARD);
    memset(p, 0xff, (size_t)n + 2 * GUARD);
    buf[b] = p + GUARD;
    if (b < k->nbuf && k->buf[b].read) fill_buffer(buf[b], k->buf[b].dtype, k->buf[b].count, c->fill[b], c->below, c->seed + b);
  }
  return buf;
}

static inline double tolerance(DType t) {
  return t == DT_f64 ? 1e-12 : t == DT_f32 ? 2e-6 : t == DT_f16 ? 0x1p-10 : t == DT_bf16 ? 0x1p-8 : 0;
}

static inline void compare(const Case *c, void **got, void **want, const char *who) {
  const Kernel *k = c->k;
  for (uint32_t b = 0; b < k->nbuf; b++) {
    DType t = k->buf[b].dtype;
    int64_t n = k->buf[b].count, size = (int64_t)dtype_bytes(t);
    if (memcmp((char *)got[b] - GUARD, (char *)want[b] - GUARD, GUARD) || memcmp((char *)got[b] + n * size, (char *)want[b] + n * size, GUARD))
      fail_msg("%s (seed %llu), %s: writes outside buffer %u", c->name, (unsigned long long)c->seed, who, b);
    if (!memcmp(got[b], want[b], (size_t)(n * size))) continue;
    double rms = 0;
    int64_t terms = 0;
    for (int64_t i = 0; i < n; i++) {
      double w = dtype_load(t, (char *)want[b] + i * size);
      if (isfinite(w)) rms += w * w, terms++;
    }
    rms = terms ? sqrt(rms / (double)terms) : 0;
    for (int64_t i = 0; i < n; i++) {
      const void *g = (char *)got[b] + i * size, *w = (char *)want[b] + i * size;
      if (!memcmp(g, w, (size_t)size)) continue;
      double x = dtype_load(t, g), y = dtype_load(t, w), e = fabs(x - y);
      if (c->odd_values && ((isnan(x) && isnan(y)) || x == y || e <= tolerance(t) * 2 * fabs(y) + 1e-44)) continue;
      if (!c->odd_values && e <= tolerance(t) * (fabs(y) + rms)) continue;
      Text text;
      text_init(&text, c->k->arena);
      kernel_print(&text, k);
      fprintf(stderr, "%s", text.s);
      fail_msg("%s (seed %llu), %s: buffer %u [%lld] is %.17g (%a), should be %.17g (%a), rms %g", c->name, (unsigned long long)c->seed, who, b, (long long)i, x, x, y, y,
               rms);
    }
  }
}

static inline void scalars_fill(uint64_t slots[KERNEL_SLOTS]) {       // even slots f64, odd ones i64
  for (int i = 0; i < KERNEL_SLOTS; i++) {
    double f = 0.25 * i + 0.125;
    if (i % 2) slots[i] = (uint64_t)(3 * i + 1);
    else memcpy(&slots[i], &f, 8);
  }
}

// Whole, or in tiles that a seed chooses, the last first.
static inline void run_tiles(const Kernel *k, KernelFn *fn[2], void **buf, const void *scalars, uint64_t *seed) {
  Launch l = kernel_launch(k);
  for (int stage = 0; stage < l.stages; stage++) {
    if (!seed) fn[stage](buf, scalars, 0, l.units[stage]);
    else
      for (int64_t hi = l.units[stage]; hi > 0;) {
        int64_t lo = hi - 1 - pick_below(seed, MIN(hi, 1 + hi / 2));
        fn[stage](buf, scalars, lo, hi);
        hi = lo;
      }
  }
}

// Compiles and runs all cases with the compiler of MT_CC for target; bits: a hash per case, set at first, compared later.
static inline void run_cases(const Cases *cases, const char *target, const char *who, uint64_t *bits) {
  enum { PER_FILE = 24 };
  Arena *a = arena_create();
  Jit jit;
  uint64_t slots[KERNEL_SLOTS];
  scalars_fill(slots);
  assert_int_equal(jit_open(&jit, a, target), 0);
  uint32_t files = (cases->n + PER_FILE - 1) / PER_FILE;
  JitSource *src = NEW_N(a, JitSource, files);
  JitObject *obj = NEW_N(a, JitObject, files);
  for (uint32_t f = 0; f < files; f++) {
    Text t;
    text_init(&t, a);
    emit_c_prelude(&t);
    for (uint32_t i = f * PER_FILE; i < MIN(cases->n, (f + 1) * PER_FILE); i++) emit_c(&t, cases->at[i].k, arena_printf(a, "k_%u", i));
    src[f] = (JitSource){t.s, t.n};
  }
  assert_int_equal(jit_compile(&jit, src, files, obj), 0);
  for (uint32_t f = 0; f < files; f++) {
    JitCode code;
    assert_int_equal(jit_load(&jit, &obj[f], &code), 0);
    for (uint32_t i = f * PER_FILE; i < MIN(cases->n, (f + 1) * PER_FILE); i++) {
      const Case *c = &cases->at[i];
      Arena *b = arena_create();
      int64_t work = kernel_launch(c->k).work;
      KernelFn *fn[2] = {0};
      void *symbol = jit_symbol(&code, arena_printf(b, "k_%u", i)), *combine = jit_symbol(&code, arena_printf(b, "k_%u_combine", i));
      assert_non_null(symbol);
      memcpy(&fn[0], &symbol, sizeof symbol), memcpy(&fn[1], &combine, sizeof combine);
      void **want = case_buffers(b, c, work), **got = case_buffers(b, c, work), **tiles = case_buffers(b, c, work);
      uint64_t seed = c->seed + 99, h = 0;
      kernel_eval(c->k, want, slots);
      run_tiles(c->k, fn, got, slots, 0);
      run_tiles(c->k, fn, tiles, slots, &seed);
      compare(c, got, want, who);
      for (uint32_t n = 0; n < c->k->nbuf; n++) {
        size_t bytes = (size_t)c->k->buf[n].count * dtype_bytes(c->k->buf[n].dtype);
        if (memcmp(got[n], tiles[n], bytes)) fail_msg("%s (seed %llu), %s: other tiles give other bits in buffer %u", c->name, (unsigned long long)c->seed, who, n);
        h = hash_bytes(got[n], bytes, h);
      }
      if (bits && bits[i] && bits[i] != h && !c->odd_values) fail_msg("%s (seed %llu): %s gives other bits", c->name, (unsigned long long)c->seed, who);
      if (bits) bits[i] = h;
      arena_destroy(b);
    }
    jit_unload(&code);
  }
  jit_close(&jit);
  arena_destroy(a);
}

// With cc for this CPU; every `other`-th case for an older one and with clang too: the same bits.
static inline void run_everywhere(const Cases *cases, Arena *a, uint32_t other) {
  uint64_t *bits = NEW_N(a, uint64_t, cases->n), *some_bits = NEW_N(a, uint64_t, cases->n);
  Cases some = {0};
  unsetenv("MT_CC");
  run_cases(cases, 0, "cc for this CPU", bits);
  for (uint32_t i = 0; i < cases->n; i += other) {
    some_bits[some.n] = bits[i];
    vec_push(a, &some, cases->at[i]);
  }
  if (jit_runs_here("x86-64-v3")) run_cases(&some, "x86-64-v3", "cc for x86-64-v3", some_bits);
  setenv("MT_CC", "clang", 1);
  Jit jit;
  if (!jit_open(&jit, a, 0) && jit.cc) run_cases(&some, 0, "clang", some_bits);
  unsetenv("MT_CC");
}

// Text and builder: what is printed reads back to the same text and hash; finishing again changes nothing.
static inline void check_text(const Case *c, Arena *a) {
  Text one, two, why;
  text_init(&one, a), text_init(&two, a), text_init(&why, a);
  kernel_print(&one, c->k);
  Kernel *k = kernel_read(a, one.s, one.n, &why);
  if (!k) fail_msg("%s (seed %llu): its text is refused: %s\n%s", c->name, (unsigned long long)c->seed, why.s, one.s);
  kernel_print(&two, k);
  assert_string_equal(one.s, two.s);
  assert_true(kernel_hash(k) == kernel_hash(c->k));
  kernel_finish(k);
  two.n = 0;
  kernel_print(&two, k);
  assert_string_equal(one.s, two.s);
}
#endif
