// The attention kernels against the formula in f64: shapes around the blocks' edges, masks, windows, groups, every format;
// any cut of the units into calls gives the same bits. Tolerances: |got - want| <= tol (|want| + rms(want) + 2 Σ|terms|).
//
//   attention [time]    or times forward and backward
//
// Compiled twice: for any CPU, and for this one, whose bf16 goes by tiles when it has them.
#include "runtime/kernel_attention.h"
#define W f32
#include "runtime/kernel_attention.h"
#undef W
#define W f64
#include "runtime/kernel_attention.h"
#undef W
#include "runtime/dtype.h"
#include "runtime/jit.h"
#include "runtime/philox.h"
#include "tests/seeds.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum { MASK_none, MASK_keys, MASK_pairs, MASK_all } Mask;        // all: nothing is seen
typedef struct {
  int64_t b, h, g, s, t, s_size, t_size, d, window, chunks;
  int64_t zigzag, first;                     // chunks in whose order keys and queries lie; where the queries are a part, its begin
  bool causal, turned;                       // turned: d is not the fastest dim
  Mask mask;
  DType type;
  double scale;                              // of 1 / sqrt(d)
  uint64_t seed;
} Case;

typedef struct {
  const Case *c;
  Attention a;
  int64_t count[ATTN_OPERANDS];
  void *at[ATTN_OPERANDS + 1];               // the operands, the work buffer
  int64_t scalars[1];                        // the first query
  double *x[ATTN_OPERANDS], *terms[ATTN_OPERANDS];  // what they hold, or should; sums of the terms' sizes
} Data;

static bool is_f64(const Case *c) { return c->type == DT_f64; }
static bool is_half(const Case *c) { return c->type == DT_bf16 || c->type == DT_f16; }
static DType stored(const Case *c, int o) { return o == ATTN_mask ? DT_bool : o == ATTN_lse ? (is_f64(c) ? DT_f64 : DT_f32) : c->type; }

static int64_t place(const Data *z, int o, int64_t b, int64_t h, int64_t g, int64_t row, int64_t e) {
  const Attention *a = &z->a;
  return b * a->step[o][0] + h * a->step[o][1] + g * a->step[o][2] + row * (a->along_s[o] + a->along_t[o]) + e * a->along_d[o];
}

static void data_init(Data *z, const Case *c) {
  Attention *a = &z->a;
  *z = (Data){.c = c};
  *a = (Attention){.s = c->s, .t = c->t, .d = c->d, .s_size = c->s_size, .t_size = c->t_size, .nshared = 2, .ngroup = 1, .n = {c->b, c->h, c->g},
                   .causal = c->causal, .half = c->type == DT_bf16 ? 1 : c->type == DT_f16 ? 2 : 0, .window = c->window, .scale = c->scale / sqrt((double)c->d), .shared = c->b * c->h,
                   .groups = c->g, .chunks = c->chunks, .work = ATTN_OPERANDS, .block = ATTN_QUERIES};
  if (c->zigzag) {
    z->scalars[0] = c->first, a->first_s = 1, a->zigzag = a->key_zigzag = c->zigzag, a->length = a->key_length = c->t / c->zigzag;
    while (a->length % a->block) a->block -= ATTN_STRIP;
  }
  a->direct = c->chunks == 1 && !is_half(c) && c->d % ATTN_PANEL == 0 && !c->turned;
  a->near = !a->direct && c->chunks == 1 && (c->t + 31) / 32 * 32 * ((c->d + 31) / 32 * 32) <= ATTN_SUMS;
  for (int o = 0; o < ATTN_OPERANDS; o++) {
    bool keys = o == ATTN_k || o == ATTN_v || o == ATTN_dk || o == ATTN_dv;
    int64_t rows = keys ? c->t_size : c->s_size, g = keys ? 1 : c->g, d = o == ATTN_lse ? 1 : c->d, row = d * g * c->h + 3;
    if (o == ATTN_mask && c->mask == MASK_none) continue;
    a->stored[o] = o == ATTN_mask ? ATTN_bool : !is_half(c) || o == ATTN_lse ? ATTN_work : c->type == DT_bf16 ? ATTN_bf16 : ATTN_f16, a->buffer[o] = o;
    a->step[o][1] = d * g, a->step[o][2] = keys ? 0 : d;               // [b, row, h, g, d], rows with a gap
    *(keys ? &a->along_t[o] : &a->along_s[o]) = row, a->step[o][0] = rows * row, a->along_d[o] = o == ATTN_lse ? 0 : 1;
    z->count[o] = c->b * rows * row;
    if (c->turned && o != ATTN_lse) {                                  // [b, h, g, d, row]
      *(keys ? &a->along_t[o] : &a->along_s[o]) = 1, a->along_d[o] = rows;
      if (!keys) a->step[o][2] = d * rows;
      a->step[o][1] = d * g * rows, a->step[o][0] = c->h * d * g * rows;
    }
    if (o == ATTN_mask) {
      a->step[o][1] = a->step[o][2] = a->along_d[o] = 0;
      a->along_t[o] = 1, a->along_s[o] = c->mask == MASK_pairs ? c->t_size : 0, a->step[o][0] = (c->mask == MASK_pairs ? c->s_size : 1) * c->t_size;
      z->count[o] = c->b * a->step[o][0];
    }
    DType t = stored(c, o);
    z->at[o] = malloc((size_t)z->count[o] * dtype_bytes(t) + 64), z->x[o] = calloc((size_t)z->count[o] + 1, sizeof(double)), z->terms[o] = calloc((size_t)z->count[o] + 1, sizeof(double));
    memset(z->at[o], 0xff, (size_t)z->count[o] * dtype_bytes(t));
    if (o != ATTN_q && o != ATTN_k && o != ATTN_v && o != ATTN_dout && o != ATTN_mask) continue;
    for (int64_t i = 0; i < z->count[o]; i++) {
      double u = (double)philox_uniform(c->seed, (uint32_t)o, 0, (uint64_t)i);
      z->x[o][i] = dtype_round(t, o == ATTN_mask ? c->mask != MASK_all && u < 0.6 : (double)philox_normal(c->seed, (uint32_t)o, 0, (uint64_t)i));
      dtype_store(t, (char *)z->at[o] + i * (int64_t)dtype_bytes(t), z->x[o][i]);
    }
  }
  z->at[ATTN_OPERANDS] = malloc((size_t)(a->shared * a->chunks * 2 * (c->t + ATTN_PANEL) * (c->d + ATTN_PANEL)) * 8 + 64);
}

static void data_free(Data *z) {
  for (int o = 0; o < ATTN_OPERANDS; o++) free(z->at[o]), free(z->x[o]), free(z->terms[o]);
  free(z->at[ATTN_OPERANDS]);
}

static void forward(Data *z, int64_t lo, int64_t hi) { is_f64(z->c) ? attention_forward_f64(&z->a, z->at, z->scalars, lo, hi) : attention_forward_f32(&z->a, z->at, z->scalars, lo, hi); }
static void backward(Data *z, int64_t lo, int64_t hi) { is_f64(z->c) ? attention_backward_f64(&z->a, z->at, z->scalars, lo, hi) : attention_backward_f32(&z->a, z->at, z->scalars, lo, hi); }
static void combine(Data *z, int64_t lo, int64_t hi) { is_f64(z->c) ? attention_combine_f64(&z->a, z->at, z->scalars, lo, hi) : attention_combine_f32(&z->a, z->at, z->scalars, lo, hi); }

static void run(Data *z, int64_t step) {
  const Attention *a = &z->a;
  int64_t blocks = (a->s_size + a->block - 1) / a->block, units = a->shared * a->groups * blocks;
  for (int64_t i = 0; i < units; i += step) forward(z, i, i + step < units ? i + step : units);
  units = a->shared * a->chunks;
  for (int64_t i = 0; i < units; i += step) backward(z, i, i + step < units ? i + step : units);
  for (int64_t i = 0; i < a->shared && a->chunks > 1; i += step) combine(z, i, i + step < a->shared ? i + step : a->shared);
}

// the number of what lies at `at`
static int64_t number(const Case *c, int64_t at) {
  int64_t length = c->zigzag ? c->t / c->zigzag : 1, chunk = at / length;
  return !c->zigzag ? at : (chunk % 2 ? c->zigzag - 1 - chunk / 2 : chunk / 2) * length + at % length;
}

// What a row's results are, from the formula. The gradients take out as it was stored.
static void formula(Data *z) {
  const Case *c = z->c;
  const Attention *a = &z->a;
  double *p = malloc((size_t)c->t * sizeof *p + 8);
#define X(o, row, e) z->x[o][place(z, o, b, h, g, row, e)]
#define ADD(o, row, e, term, size) (X(o, row, e) += (term), z->terms[o][place(z, o, b, h, g, row, e)] += fabs(size))
  for (int64_t b = 0; b < c->b; b++) for (int64_t h = 0; h < c->h; h++) for (int64_t g = 0; g < c->g; g++) for (int64_t i = 0; i < c->s; i++) {
    double top = -INFINITY, sum = 0, delta = 0, size = 0;
    for (int64_t j = 0; j < c->t; j++) {
      int64_t back = number(c, c->first + i) - number(c, j);
      bool ok = (!c->causal || back >= 0) && (c->window <= 0 || back < c->window);
      if (c->mask) ok &= z->x[ATTN_mask][b * a->step[ATTN_mask][0] + i * a->along_s[ATTN_mask] + j] != 0;
      p[j] = 0;
      for (int64_t e = 0; e < c->d; e++) p[j] += X(ATTN_q, i, e) * X(ATTN_k, j, e);
      p[j] = ok ? p[j] * a->scale : -INFINITY, top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < c->t; j++) p[j] = p[j] > -INFINITY ? exp(p[j] - top) : 0, sum += p[j];
    X(ATTN_lse, i, 0) = sum > 0 ? top + log(sum) : INFINITY;
    for (int64_t j = 0; j < c->t; j++) {
      p[j] = sum > 0 ? p[j] / sum : 0;
      for (int64_t e = 0; e < c->d; e++) ADD(ATTN_out, i, e, p[j] * X(ATTN_v, j, e), p[j] * X(ATTN_v, j, e));
    }
    for (int64_t e = 0; e < c->d; e++) delta += dtype_round(c->type, X(ATTN_out, i, e)) * X(ATTN_dout, i, e), size += fabs(X(ATTN_out, i, e) * X(ATTN_dout, i, e));
    for (int64_t j = 0; j < c->t; j++) {
      double dp = 0;
      for (int64_t e = 0; e < c->d; e++) dp += X(ATTN_dout, i, e) * X(ATTN_v, j, e), ADD(ATTN_dv, j, e, p[j] * X(ATTN_dout, i, e), p[j] * X(ATTN_dout, i, e));
      double ds = p[j] * (dp - delta) * a->scale, large = p[j] * (fabs(dp) + size) * a->scale;
      for (int64_t e = 0; e < c->d; e++) ADD(ATTN_dq, i, e, ds * X(ATTN_k, j, e), large * X(ATTN_k, j, e)), ADD(ATTN_dk, j, e, ds * X(ATTN_q, i, e), large * X(ATTN_q, i, e));
    }
  }
  free(p);
}

static bool wrong(const Case *c, const char *what, int64_t i, double got, double want) {
  printf("seed %llu: b %lld h %lld g %lld s %lld/%lld t %lld/%lld d %lld window %lld chunks %lld zigzag %lld from %lld scale %g causal %d turned %d mask %d %s: %s[%lld] is %.17g, not %.17g\n",
         (unsigned long long)c->seed, (long long)c->b, (long long)c->h, (long long)c->g, (long long)c->s, (long long)c->s_size, (long long)c->t, (long long)c->t_size,
         (long long)c->d, (long long)c->window, (long long)c->chunks, (long long)c->zigzag, (long long)c->first, c->scale, c->causal, c->turned, (int)c->mask, dtype_name(c->type), what, (long long)i, got, want);
  return false;
}

static bool compare(Data *z) {
  static const struct { int o; const char *name; } outs[] = {{ATTN_out, "out"}, {ATTN_lse, "lse"}, {ATTN_dq, "dq"}, {ATTN_dk, "dk"}, {ATTN_dv, "dv"}};
  const Case *c = z->c;
  double tol = c->type == DT_f64 ? 1e-12 : c->type == DT_f32 ? 2e-6 : c->type == DT_bf16 ? 0x1p-8 : 0x1p-11;
  for (size_t k = 0; k < COUNT(outs); k++) {
    int o = outs[k].o;
    bool keys = o == ATTN_dk || o == ATTN_dv;
    double square = 0, rms;
    int64_t rows = keys ? c->t : c->s, size = keys ? c->t_size : c->s_size, d = o == ATTN_lse ? 1 : c->d, n = 0;
    DType t = stored(c, o);
    for (int64_t i = 0; i < z->count[o]; i++)
      if (isfinite(z->x[o][i])) square += z->x[o][i] * z->x[o][i], n += z->x[o][i] != 0;
    rms = n ? sqrt(square / (double)n) : 0;
    for (int64_t b = 0; b < c->b; b++) for (int64_t h = 0; h < c->h; h++) for (int64_t g = 0; g < (keys ? 1 : c->g); g++) for (int64_t i = 0; i < size; i++) for (int64_t e = 0; e < d; e++) {
      int64_t at = place(z, o, b, h, g, i, e);
      double got = dtype_load(t, (char *)z->at[o] + at * (int64_t)dtype_bytes(t)), want = i < rows ? z->x[o][at] : 0;
      double bound = i < rows ? (o == ATTN_lse && is_half(c) ? 1e-5 : tol) * (fabs(want) + rms + 2 * z->terms[o][at]) : 0;
      if (!(fabs(got - want) <= bound) && got != want) return wrong(c, outs[k].name, at, got, want);
    }
  }
  return true;
}

static bool check(const Case *c) {
  Data z;
  data_init(&z, c);
  formula(&z);
  run(&z, 1 << 20);
  bool ok = compare(&z);
  static const int outs[] = {ATTN_out, ATTN_lse, ATTN_dq, ATTN_dk, ATTN_dv};
  void *was[COUNT(outs)];
  for (size_t k = 0; k < COUNT(outs); k++) {
    size_t n = (size_t)z.count[outs[k]] * dtype_bytes(stored(c, outs[k]));
    was[k] = malloc(n + 1), memcpy(was[k], z.at[outs[k]], n);
  }
  run(&z, 1);
  for (size_t k = 0; k < COUNT(outs); k++) {
    if (ok && memcmp(was[k], z.at[outs[k]], (size_t)z.count[outs[k]] * dtype_bytes(stored(c, outs[k])))) ok = wrong(c, "bits by units", outs[k], 0, 0);
    free(was[k]);
  }
  data_free(&z);
  return ok;
}

static int64_t pick(uint64_t *s, const int64_t *of, int64_t n) { return *s = *s * 6364136223846793005u + 1442695040888963407u, of[(*s >> 33) % (uint64_t)n]; }
#define PICK(...) pick(&s, (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t)))

static Case draw(uint64_t seed) {
  static const DType types[] = {DT_f32, DT_f64, DT_bf16, DT_f16};
  uint64_t s = seed * 7919;
  Case c = {.seed = seed, .type = types[seed % 4]};
  c.b = PICK(1, 2), c.h = PICK(1, 2, 3), c.g = PICK(1, 1, 2);
  c.s = PICK(1, 2, 7, 31, 32, 33, 63, 64, 65, 97, 128, 131), c.t = PICK(1, 2, 3, 31, 33, 64, 65, 127, 129, 200);
  c.d = PICK(1, 3, 8, 16, 31, 32, 33, 64, 64, 96, 128, 256);
  c.causal = PICK(0, 1, 1) != 0, c.window = PICK(0, 0, 0, 1, 5, 40, 100), c.mask = (Mask)PICK(0, 0, 0, 1, 1, 2, 2, 3);
  if (c.causal && PICK(0, 1, 1)) c.t = c.s;
  c.turned = PICK(0, 0, 0, 1), c.chunks = PICK(1, 1, 2, 3);
  c.scale = (double)PICK(2, 2, 2, 3, -2, 0) / 2;
  c.s_size = c.s + PICK(0, 0, 5, 64), c.t_size = c.t + PICK(0, 0, 3, 70);
  c.zigzag = PICK(0, 0, 0, 0, 2, 4);
  if (c.zigzag) {                            // all queries, or those of a rank
    c.b = c.h = 1, c.d = PICK(5, 32, 64);
    c.t = c.t_size = c.zigzag * PICK(64, 64, 64, 128), c.s = c.s_size = PICK(0, 1) ? c.t : c.t / c.zigzag * 2;
    c.first = (c.t - c.s) / 2 / (c.t / c.zigzag) * (c.t / c.zigzag);
  }
  return c;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void times(void) {
  static const struct { int64_t b, h, s, d; } sizes[] = {{1, 2, 1024, 64}, {1, 8, 256, 64}, {1, 24, 64, 64}, {2, 4, 128, 32}};
  for (size_t i = 0; i < COUNT(sizes); i++) for (int t = 0; t < 2; t++) {
    Case c = {.b = sizes[i].b, .h = sizes[i].h, .g = 1, .s = sizes[i].s, .t = sizes[i].s, .s_size = sizes[i].s, .t_size = sizes[i].s, .d = sizes[i].d, .causal = true,
              .chunks = 1, .scale = 1, .type = t ? DT_bf16 : DT_f32, .seed = 1};
    Data z;
    data_init(&z, &c);
    double best[2] = {1e9, 1e9};
    for (int k = 0; k < 15; k++) {
      double a = now();
      forward(&z, 0, c.b * c.h * ((c.s + z.a.block - 1) / z.a.block));
      double b = now();
      backward(&z, 0, c.b * c.h);
      if (z.a.chunks > 1) combine(&z, 0, c.b * c.h);
      double e = now();
      best[0] = fmin(best[0], b - a), best[1] = fmin(best[1], e - b);
    }
    double half = (double)(c.b * c.h * c.s * (c.s + 1) / 2 * c.d);     // a product of the causal half: 2 flops for each
    printf("%s b %lld h %lld s %lld d %lld: forward %.0f us %.1f GFLOP/s, backward %.0f us %.1f GFLOP/s\n", dtype_name(c.type), (long long)c.b, (long long)c.h,
           (long long)c.s, (long long)c.d, best[0] * 1e6, 4 * half / best[0] * 1e-9, best[1] * 1e6, 10 * half / best[1] * 1e-9);
    data_free(&z);
  }
}

// Whether this process may run what was compiled.
static bool runs(void) {
  bool ok = true;
#if defined(MT_TILES) && (defined(__AMX_BF16__) || defined(__AMXBF16__))
  Arena *a = arena_create();
  ok = strstr(jit_cpu(a), "-tiles");
  arena_destroy(a);
#endif
  return ok;
}

int main(int argc, char **argv) {
  if (!runs()) return 77;                    // skipped
  if (argc > 1 && !strcmp(argv[1], "time")) return times(), 0;
  Seeds s = seeds_of(argc, argv, 220, 6000);
  for (uint64_t seed = s.first; seed < s.end; seed++) {
    Case c = draw(seed);
    if (!check(&c)) return 1;
  }
  return 0;
}
