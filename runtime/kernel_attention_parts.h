// kernel_attention_parts.h -- what attention is made of: its description, products, exp, rows in and out, the places of a
// head's operands, bf16 by tiles. Text of generated C files, before kernel_attention.h, which says how it is used.
#ifndef MT_KERNEL_ATTENTION_PARTS_H
#define MT_KERNEL_ATTENTION_PARTS_H
#include "runtime/philox.h"

enum { ATTN_q, ATTN_k, ATTN_v, ATTN_out, ATTN_lse, ATTN_mask, ATTN_dout, ATTN_dq, ATTN_dk, ATTN_dv, ATTN_OPERANDS, ATTN_DIMS = 8 };
enum { ATTN_absent, ATTN_bf16, ATTN_work, ATTN_bool, ATTN_f16 };   // how an operand is stored; work: as W
enum { ATTN_QUERIES = 256, ATTN_STRIP = 64, ATTN_KEYS = 64, ATTN_PANEL = 32, ATTN_WIDTH = 256 };  // of a unit, of a block; see seen; largest d
enum { ATTN_SUMS = 1024 * 64, ATTN_RISE = 6 };  // numbers of dk or dv that are added up on the stack; see softmax

typedef struct {
  int64_t s, t, d;                           // entries that exist; of d: entries stored
  int64_t s_size, t_size;                    // entries stored
  int32_t nshared, ngroup;                   // other dims: those that k and v have too, then those that only q has
  int64_t n[ATTN_DIMS];                      // their extents
  int64_t step[ATTN_OPERANDS][ATTN_DIMS];    // strides along them
  int64_t along_s[ATTN_OPERANDS], along_t[ATTN_OPERANDS], along_d[ATTN_OPERANDS];
  int32_t stored[ATTN_OPERANDS], buffer[ATTN_OPERANDS];
  int32_t causal, half;                      // half: probabilities and their gradient are rounded, 1: to bf16, 2: to f16
  int64_t window;                            // > 0: keys that are less far back
  double  scale;
  int64_t shared, groups, chunks;            // products of extents; backward: parts that the queries of a unit are dealt to
  // dropout: a pair stays, divided by what stays of all, where its draw is not below `least` · 2^-24
  int32_t draws, random;                     // random: the argument that holds the hash, i64; -1: hash is it
  uint32_t hash, least;
  double  enlarge;                           // 1 / (1 - p)
  int64_t slot_seed, slot_step, slot_sample; // of the scalar block
  int64_t number[ATTN_DIMS], number_s, number_t, number_sample;     // strides of the pairs' numbers
  // parts of dims: 1 + slot of the scalar block with the number of the first entry; 0: it is whole
  int64_t first_s, first_t, first[ATTN_DIMS];
  int64_t block;                             // queries of a unit: they have neighbouring numbers
  int64_t zigzag, length;                    // queries lie in zigzag order of so many chunks of so many; 0: in order
  int64_t key_zigzag, key_length;            // keys as well; a block of them lies in one chunk
  int32_t direct, near, work;                // backward: dk and dv are added up where they end, on the stack, or in work, a buffer's number
} Attention;
#endif

#ifdef W
#define ATTN_2(x, w) attention_##x##_##w
#define ATTN_1(x, w) ATTN_2(x, w)
#define AT(x) ATTN_1(x, W)
#define EXP_2(x, w) x##_##w
#define EXP_1(x, w) EXP_2(x, w)
#define ATTN_IS_f32 1
#define ATTN_IS_f64 0
#define ATTN_SINGLE EXP_1(ATTN_IS, W)
#if defined(MT_TILES) && (defined(__AMX_BF16__) || defined(__AMXBF16__)) && defined(__AVX512BF16__)   // clang 14 has the other name
#define ATTN_PAIRED ATTN_SINGLE
#else
#define ATTN_PAIRED 0
#endif
#define ATTN_SLOW static __attribute__((noinline, unused))

#if defined(__AVX512F__)
enum { AT(bytes) = 64 };
#elif defined(__AVX__)
enum { AT(bytes) = 32 };
#else
enum { AT(bytes) = 16 };
#endif
enum { AT(lanes) = AT(bytes) / sizeof(W), AT(depth) = 64 };
typedef W AT(vec) __attribute__((vector_size(AT(bytes)), aligned(sizeof(W)), may_alias));

// ---- products: c[m, n] (+)= sum over x of a[m, x] · b[x, n]; the n of a strip side by side --------------------------------
// A tile is R rows of V vectors, in registers. Sixteen sums hide what a multiplication waits, 24 need fewer tiles; four
// vectors side by side need the fewest loads. The loops over them are opened before the compiler decides what lies in
// memory.
#if !defined(__clang__)
#define ATTN_CONTRACT
#define ATTN_OPEN _Pragma("GCC unroll 16")
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#else
#define ATTN_CONTRACT _Pragma("clang fp contract(fast)")
#define ATTN_OPEN _Pragma("clang loop unroll(full)")
#endif
#define ATTN_TILE(R, V) \
  ATTN_SLOW void AT(tile##R##x##V)(W *c, i64 cm, const W *a, i64 am, i64 ak, const W *b, i64 bk, i64 k, int fresh) { \
    ATTN_CONTRACT \
    AT(vec) acc[R][V], zero = {0}; \
    ATTN_OPEN for (int r = 0; r < R; r++) \
      ATTN_OPEN for (int v = 0; v < V; v++) acc[r][v] = fresh ? zero : *(const AT(vec) *)(c + r * cm + v * AT(lanes)); \
    for (i64 x = 0; x < k; x++) { \
      AT(vec) line[V]; \
      ATTN_OPEN for (int v = 0; v < V; v++) line[v] = *(const AT(vec) *)(b + x * bk + v * AT(lanes)); \
      ATTN_OPEN for (int r = 0; r < R; r++) { \
        AT(vec) one = a[r * am + x * ak] - zero; \
        ATTN_OPEN for (int v = 0; v < V; v++) acc[r][v] = one * line[v] + acc[r][v]; \
      } \
    } \
    ATTN_OPEN for (int r = 0; r < R; r++) \
      ATTN_OPEN for (int v = 0; v < V; v++) *(AT(vec) *)(c + r * cm + v * AT(lanes)) = acc[r][v]; \
  }
ATTN_TILE(1, 2)
ATTN_TILE(4, 2)
#ifdef __AVX512F__
ATTN_TILE(8, 2)
ATTN_TILE(1, 4)
ATTN_TILE(4, 4)
ATTN_TILE(6, 4)
#endif
#undef ATTN_TILE
#if !defined(__clang__)
#pragma GCC pop_options
#endif

// Rows that are read or written soon. A head's lie far apart, so no core foresees them, and it waits for few lines at
// once: they are asked for between tiles, a few at a time, while vectors have work.
enum { AT(spans) = 12 };
typedef struct { const char *at; i64 step, bytes, rows; int written; } AT(Span);
typedef struct { AT(Span) span[AT(spans)]; i64 n, rows, pace; } AT(Soon);  // spans left, all rows, rows at a time

MT_FN void AT(ask)(AT(Soon) *z) {
  for (i64 more = z->pace; more > 0 && z->n; more--) {
    AT(Span) *x = &z->span[z->n - 1];
    if (x->written)
      for (i64 i = 0; i < x->bytes; i += 64) __builtin_prefetch(x->at + i, 1);
    else
      for (i64 i = 0; i < x->bytes; i += 64) __builtin_prefetch(x->at + i, 0, 2);
    x->at += x->step;
    if (--x->rows == 0) z->n--;
  }
}

// n: a multiple of ATTN_PANEL. A strip of b stays in the first cache while the rows of a pass.
MT_FN void AT(product)(W *c, i64 cm, i64 m, i64 n, const W *a, i64 am, i64 ak, const W *b, i64 bk, i64 all,
    int fresh, AT(Soon) *soon) {
#define ATTN_ROWS(R, V) ATTN_ROWS_IF(1, R, V)
#define ATTN_ROWS_IF(more, R, V) \
  for (; i + R <= m && (more); i += R) \
    AT(ask)(soon), AT(tile##R##x##V)(c + i * cm + j, cm, a + i * am, am, ak, b + j, bk, k, fresh)
  for (i64 x = 0; x < all || x == 0; x += AT(depth), a += AT(depth) * ak, b += AT(depth) * bk, fresh = 0) {
    i64 j = 0, k = all - x < AT(depth) ? all - x : AT(depth);
#ifdef __AVX512F__
    for (; j + 4 * AT(lanes) <= n; j += 4 * AT(lanes)) {
      i64 i = 0;
      ATTN_ROWS_IF((m - i) / 2 != 4, 6, 4);  // 8 or 9 are 4 + 4
      ATTN_ROWS(4, 4);
      ATTN_ROWS(1, 4);
    }
#endif
    for (; j < n; j += 2 * AT(lanes)) {
      i64 i = 0;
#ifdef __AVX512F__
      ATTN_ROWS(8, 2);
#endif
      ATTN_ROWS(4, 2);
      ATTN_ROWS(1, 2);
    }
  }
#undef ATTN_ROWS_IF
#undef ATTN_ROWS
}

// ---- exp(x) is exp(x · unit) of here ---------------------------------------------------------------------------------------
#if ATTN_SINGLE
#define ATTN_UNIT 0x1.715476p+0f
#define ATTN_FMA(a, b, c) MT_FMA(a, b, c)
MT_FN float AT(exp)(float x) {               // 2^x for x < 128; below -127: 0. Cephes' polynomial, without exp_f32's denormals
  float c = x < -127.0f ? -127.0f : x;       // a NaN passes
  float t = c + 0x1.8p23f, r = c - (t - 0x1.8p23f), p = 1.535336188319500e-4f;         // t: the low bits are the whole part
  p = MT_FMA(p, r, 1.339887440266574e-3f);
  p = MT_FMA(p, r, 9.618437357674640e-3f);
  p = MT_FMA(p, r, 5.550332471162809e-2f);
  p = MT_FMA(p, r, 2.402264791363012e-1f);
  p = MT_FMA(p, r, 6.931472028550421e-1f);
  return MT_FMA(p, r, 1.0f) * f32_bits((bits_f32(t) << 23) + 0x3f800000u);
}
#else
#define ATTN_UNIT 1.0
#define ATTN_FMA(a, b, c) ((a) * (b) + (c))
MT_FN double AT(exp)(double x) { return exp(x); }
#endif

// ---- rows in and out ------------------------------------------------------------------------------------------------------
MT_FN W AT(load)(const void *p, int32_t how, i64 i) {
  if (how == ATTN_f16) return (W)f32_f16(((const uint16_t *)p)[i]);
  return how == ATTN_bf16 ? (W)f32_bf16(((const uint16_t *)p)[i]) : ((const W *)p)[i];
}
MT_FN void AT(store)(void *p, int32_t how, i64 i, W x) {
  if (how == ATTN_bf16) ((uint16_t *)p)[i] = bf16_f32((float)x);
  else if (how == ATTN_f16) ((uint16_t *)p)[i] = f16_f32((float)x);
  else ((W *)p)[i] = x;
}

// to[rows][width] = scale · n rows of d; the rest 0
ATTN_SLOW void AT(rows_in)(W *to, i64 width, i64 rows, const void *p, int32_t how, i64 n, i64 d, i64 step, i64 step_d, W scale) {
  for (i64 r = 0; r < rows; r++) {
    W *row = to + r * width;
    i64 e = 0, have = r < n ? d : 0;
    if (step_d == 1 && how == ATTN_bf16) {
      const uint16_t *x = (const uint16_t *)p + r * step;
      for (; e < have; e++) row[e] = (W)f32_bf16(x[e]) * scale;
    } else if (step_d == 1 && how == ATTN_work) {
      const W *x = (const W *)p + r * step;
      for (; e < have; e++) row[e] = x[e] * scale;
    } else {
      for (; e < have; e++) row[e] = AT(load)(p, how, r * step + e * step_d) * scale;
    }
    for (; e < width; e++) row[e] = 0;
  }
}

#if ATTN_PAIRED
typedef uint16_t AT(halves) __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint32_t AT(words) __attribute__((vector_size(64), aligned(4), may_alias));
typedef float AT(floats) __attribute__((vector_size(64), aligned(4), may_alias));

#if defined(__clang__)
#define ATTN_PICK(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#else
#define ATTN_PICK(x, ...) __builtin_shuffle(x, (AT(halves)){__VA_ARGS__})
#endif
MT_FN AT(words) AT(rounded)(AT(floats) low, AT(floats) high) {
  AT(words) r;
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(r) : "v"(low), "v"(high));
  return r;
}
#endif

// n rows of d from a block of rows
ATTN_SLOW void AT(rows_out)(void *p, int32_t how, i64 n, i64 d, i64 step, i64 step_d, const W *x, i64 width) {
  for (i64 r = 0; r < n; r++) {
    const W *row = x + r * width;
    if (step_d == 1 && how == ATTN_bf16) {
      uint16_t *to = (uint16_t *)p + r * step;
      i64 e = 0;
#if ATTN_PAIRED
      for (; e + 32 <= d; e += 32) *(AT(halves) *)(to + e) = (AT(halves))AT(rounded)(*(const AT(floats) *)(row + e), *(const AT(floats) *)(row + e + 16));
#endif
      for (; e < d; e++) to[e] = bf16_f32((float)row[e]);
    } else if (step_d == 1 && how == ATTN_work) {
      W *to = (W *)p + r * step;
      for (i64 e = 0; e < d; e++) to[e] = row[e];
    } else {
      for (i64 e = 0; e < d; e++) AT(store)(p, how, r * step + e * step_d, row[e]);
    }
  }
}
ATTN_SLOW void AT(rows_zero)(void *p, int32_t how, i64 n, i64 d, i64 step, i64 step_d) {
  for (i64 r = 0; r < n; r++)
    for (i64 e = 0; e < d; e++) AT(store)(p, how, r * step + e * step_d, 0);
}

// to[c][r] = from[r][c]: rows a multiple of 16, columns of 4
#if ATTN_SINGLE
#ifdef __AVX512F__
enum { AT(side) = 4 };                       // 4 x 4 side by side, in the lanes of a vector: lane l has rows 4l …
typedef uint32_t AT(four) __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t AT(lane) __attribute__((vector_size(16), aligned(4), may_alias));
MT_FN AT(four) AT(get)(const uint32_t *x, i64 step) {
  AT(four) r;
  __asm__("vmovdqu32 %1, %x0\n\tvinserti32x4 $1, %2, %0, %0\n\tvinserti32x4 $2, %3, %0, %0\n\tvinserti32x4 $3, %4, %0, %0"
          : "=&v"(r) : "m"(*(const AT(lane) *)x), "m"(*(const AT(lane) *)(x + 4 * step)), "m"(*(const AT(lane) *)(x + 8 * step)), "m"(*(const AT(lane) *)(x + 12 * step)));
  return r;
}
#define ATTN_LANES(w, x, y, z) w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, w + 12, x + 12, y + 12, z + 12
#define ATTN_LOW ATTN_LANES(0, 16, 1, 17)
#define ATTN_HIGH ATTN_LANES(2, 18, 3, 19)
#else
enum { AT(side) = 1 };
typedef uint32_t AT(four) __attribute__((vector_size(16), aligned(4), may_alias));
MT_FN AT(four) AT(get)(const uint32_t *x, i64 step) { return (void)step, *(const AT(four) *)x; }
#define ATTN_LOW 0, 4, 1, 5
#define ATTN_HIGH 2, 6, 3, 7
#endif
#if defined(__clang__)
#define ATTN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ATTN_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (AT(four)){__VA_ARGS__})
#endif
ATTN_SLOW void AT(turned)(void *to, i64 to_step, const void *from, i64 from_step, i64 rows, i64 columns) {
  for (i64 r = 0; r < rows; r += 4 * AT(side))
    for (i64 c = 0; c < columns; c += 4) {
      const uint32_t *x = (const uint32_t *)from + r * from_step + c;
      uint32_t *y = (uint32_t *)to + c * to_step + r;
      AT(four) p = AT(get)(x, from_step), q = AT(get)(x + from_step, from_step), s = AT(get)(x + 2 * from_step, from_step), t = AT(get)(x + 3 * from_step, from_step);
      AT(four) ps = ATTN_SHUFFLE(p, s, ATTN_LOW), qt = ATTN_SHUFFLE(q, t, ATTN_LOW), ps2 = ATTN_SHUFFLE(p, s, ATTN_HIGH), qt2 = ATTN_SHUFFLE(q, t, ATTN_HIGH);
      *(AT(four) *)y = ATTN_SHUFFLE(ps, qt, ATTN_LOW), *(AT(four) *)(y + to_step) = ATTN_SHUFFLE(ps, qt, ATTN_HIGH);
      *(AT(four) *)(y + 2 * to_step) = ATTN_SHUFFLE(ps2, qt2, ATTN_LOW), *(AT(four) *)(y + 3 * to_step) = ATTN_SHUFFLE(ps2, qt2, ATTN_HIGH);
    }
}
#undef ATTN_SHUFFLE
#undef ATTN_LOW
#undef ATTN_HIGH
#undef ATTN_LANES
#else
ATTN_SLOW void AT(turned)(W *to, i64 to_step, const W *from, i64 from_step, i64 rows, i64 columns) {
  for (i64 r = 0; r < rows; r += 8)
    for (i64 c = 0; c < columns; c++)
      for (i64 x = r; x < r + 8 && x < rows; x++) to[c * to_step + x] = from[x * from_step + c];
}
#endif

// ---- places ---------------------------------------------------------------------------------------------------------------
typedef struct {                             // where the operands of one head begin
  const Attention *a;
  char *at[ATTN_OPERANDS];
  i64 number, seed;                          // of its first pair
  i64 first;                                 // number of the first query
  uint32_t step, hash;
} AT(Head);

MT_FN i64 AT(size)(int32_t how) { return how == ATTN_bf16 || how == ATTN_f16 ? 2 : how == ATTN_bool ? 1 : (i64)sizeof(W); }

ATTN_SLOW void AT(head)(AT(Head) *h, const Attention *a, void *const *buf, const void *scalars, i64 shared, i64 group) {
  i64 digit[ATTN_DIMS];
  for (int32_t i = a->nshared + a->ngroup; i-- > 0;) {
    i64 *rest = i < a->nshared ? &shared : &group;
    digit[i] = *rest % a->n[i], *rest /= a->n[i];
  }
  h->a = a;
  for (int o = 0; o < ATTN_OPERANDS; o++) {
    i64 off = 0;
    h->at[o] = 0;
    if (a->stored[o] == ATTN_absent) continue;
    for (int32_t i = 0; i < a->nshared + a->ngroup; i++) off += digit[i] * a->step[o][i];
    h->at[o] = (char *)buf[a->buffer[o]] + off * AT(size)(a->stored[o]);
  }
  const i64 *slot = (const i64 *)scalars;
  h->first = a->first_s ? slot[a->first_s - 1] : 0;
  if (!a->draws) return;
  h->seed = slot[a->slot_seed], h->step = (uint32_t)slot[a->slot_step];
  h->hash = a->random < 0 ? a->hash : (uint32_t)*(const i64 *)buf[a->random];
  h->number = slot[a->slot_sample] * a->number_sample;
  for (int32_t i = 0; i < a->nshared + a->ngroup; i++)
    h->number += (digit[i] + (a->first[i] ? slot[a->first[i] - 1] : 0)) * a->number[i];
  if (a->first_t) h->number += slot[a->first_t - 1] * a->number_t;
}
// the number of a query; a block of queries has neighbouring ones
MT_FN i64 AT(number)(const AT(Head) *h, i64 q) {
  const Attention *a = h->a;
  i64 at = h->first + q, chunk = a->zigzag ? at / a->length : 0;
  if (!a->zigzag) return at;
  return (chunk % 2 ? a->zigzag - 1 - chunk / 2 : chunk / 2) * a->length + at % a->length;
}
// where key number k0 lies, and the rest of its block behind it
MT_FN i64 AT(place)(const Attention *a, i64 k0) {
  i64 chunk = a->key_zigzag ? k0 / a->key_length : 0;
  if (!a->key_zigzag) return k0;
  return (2 * chunk < a->key_zigzag ? 2 * chunk : 2 * (a->key_zigzag - 1 - chunk) + 1) * a->key_length + k0 % a->key_length;
}
MT_FN char *AT(row)(const AT(Head) *h, int o, i64 along, i64 i) { return h->at[o] + i * along * AT(size)(h->a->stored[o]); }

typedef struct { AT(Head) h; i64 q0, n, all; } AT(Part);   // queries of a head: n from q0 exist, all are stored

MT_FN void AT(part)(AT(Part) *p, const Attention *a, void *const *buf, const void *scalars, i64 shared, i64 group,
    i64 block) {
  AT(head)(&p->h, a, buf, scalars, shared, group);
  i64 q0 = p->q0 = block * a->block;
  i64 all = p->all = a->s_size - q0 < a->block ? a->s_size - q0 : a->block;
  p->n = a->s - q0 < 0 ? 0 : a->s - q0 < all ? a->s - q0 : all;
}

MT_FN void AT(soon)(AT(Soon) *z, const AT(Head) *h, int o, i64 first, i64 n, int written) {
  const Attention *a = h->a;
  i64 step = a->along_s[o] + a->along_t[o], size = AT(size)(a->stored[o]);        // one of them is 0
  if (n <= 0 || a->stored[o] == ATTN_absent || a->along_d[o] != 1 || z->n == AT(spans)) return;
  z->span[z->n++] = (AT(Span)){AT(row)(h, o, step, first), step * size, a->d * size, n, written}, z->rows += n;
}
MT_FN void AT(soon_share)(AT(Soon) *z, const AT(Head) *h, int o, i64 first, i64 n, i64 i, i64 shares, int written) {
  i64 from = n * i / shares;
  AT(soon)(z, h, o, first + from, n * (i + 1) / shares - from, written);
}

// keys that the queries q0 … q0+n-1 may see
MT_FN void AT(range)(const AT(Head) *h, i64 q0, i64 n, i64 *from, i64 *to) {
  const Attention *a = h->a;
  q0 = AT(number)(h, q0);
  *to = a->causal && q0 + n < a->t ? q0 + n : a->t;
  *from = a->window > 0 && q0 - a->window + 1 > 0 ? (q0 - a->window + 1) / ATTN_KEYS * ATTN_KEYS : 0;
  if (n <= 0) *to = *from;
}

// keys of a block that a panel of queries may see
MT_FN i64 AT(seen)(const AT(Head) *h, i64 q0, i64 n, i64 k0, i64 m, i64 panel) {
  const Attention *a = h->a;
  i64 see = AT(number)(h, q0) + panel + ATTN_PANEL - k0;
  return panel >= n ? 0 : !a->causal || see > m ? m : see < 0 ? 0 : see;
}

// While a part's keys k0 … are gone through: the next keys, or the first that the next part sees; a share of what else
// that one reads, and of what this one writes.
MT_FN void AT(soon_keys)(AT(Soon) *z, const AT(Part) *x, const AT(Part) *next, int back, i64 k0, i64 from, i64 to) {
  const AT(Head) *h = &x->h;
  i64 first = k0 + ATTN_KEYS, end = to, i = (k0 - from) / ATTN_KEYS, shares = (to - from + ATTN_KEYS - 1) / ATTN_KEYS;
  z->n = z->rows = 0;
  if (next) {
    AT(soon_share)(z, &next->h, ATTN_q, next->q0, next->n, i, shares, 0);
    if (back) AT(soon_share)(z, &next->h, ATTN_out, next->q0, next->n, i, shares, 0);
    if (back) AT(soon_share)(z, &next->h, ATTN_dout, next->q0, next->n, i, shares, 0);
    if (first >= end) h = &next->h, AT(range)(h, next->q0, next->n, &first, &end);
  }
  AT(soon_share)(z, &x->h, back ? ATTN_dq : ATTN_out, x->q0, x->n, i, shares, 1);
  i64 keys = end - first < ATTN_KEYS ? end - first : ATTN_KEYS, at = AT(place)(h->a, first);
  AT(soon)(z, h, ATTN_k, at, keys, 0), AT(soon)(z, h, ATTN_v, at, keys, 0);
}
// times: how often it is asked for each strip of queries that sees the keys
MT_FN void AT(soon_pace)(AT(Soon) *z, const AT(Part) *x, i64 k0, i64 times) {
  i64 q0 = AT(number)(&x->h, x->q0), from = x->h.a->causal && k0 > q0 ? k0 - q0 : 0, strips = (x->n - from + ATTN_STRIP - 1) / ATTN_STRIP;
  z->pace = strips > 0 ? (z->rows + strips * times - 1) / (strips * times) : z->rows;
}

// Which of the pairs of a panel from query `at` of a block exist: ok[key][query]; false: all do. n queries from q0, m keys from k0.
ATTN_SLOW int AT(hidden)(const AT(Head) *h, i64 q0, i64 n, i64 k0, i64 m, i64 at, uint8_t *ok) {
  const Attention *a = h->a;
  q0 += at, n = n - at < ATTN_PANEL ? n - at : ATTN_PANEL;
  i64 mine = AT(number)(h, q0);
  if (!h->at[ATTN_mask] && (!a->causal || k0 + m - 1 <= mine) && (a->window <= 0 || mine + n - 1 - k0 < a->window)) return 0;
  i64 most = a->window > 0 ? a->window - 1 : (i64)1 << 40, least = a->causal ? 0 : -((i64)1 << 40);
  int8_t number[ATTN_PANEL];
  for (int i = 0; i < ATTN_PANEL; i++) number[i] = (int8_t)i;
  for (i64 j = 0; j < m; j++) {
    i64 lo = least - (mine - k0 - j), hi = most - (mine - k0 - j);         // of the query's number in the panel
    int8_t first = (int8_t)(lo < 0 ? 0 : lo > ATTN_PANEL ? ATTN_PANEL : lo),
        last = (int8_t)(hi < -1 ? -1 : hi > ATTN_PANEL ? ATTN_PANEL : hi);
    for (int i = 0; i < ATTN_PANEL; i++) ok[j * ATTN_PANEL + i] = (number[i] >= first) & (number[i] <= last);
  }
  if (!h->at[ATTN_mask]) return 1;
  i64 at0 = AT(place)(a, k0);
  for (i64 j = 0; j < m; j++) {
    const uint8_t *mask = (const uint8_t *)h->at[ATTN_mask] + (at0 + j) * a->along_t[ATTN_mask] + q0 * a->along_s[ATTN_mask];
    if (a->along_s[ATTN_mask] == 0)
      for (int i = 0; i < ATTN_PANEL; i++) ok[j * ATTN_PANEL + i] &= *mask != 0;
    else
      for (i64 i = 0; i < n; i++) ok[j * ATTN_PANEL + i] &= mask[i * a->along_s[ATTN_mask]] != 0;
  }
  return 1;
}

// Which pairs of a block stay.
ATTN_SLOW void AT(drawn)(const AT(Head) *h, i64 q0, i64 n, i64 k0, i64 m, uint8_t *keep) {
  const Attention *a = h->a;
  uint64_t seed = (uint64_t)h->seed;
  uint32_t step = h->step, hash = h->hash, least = a->least;
  for (int at = 0; at < ATTN_STRIP; at += ATTN_PANEL) {
    i64 see = AT(seen)(h, q0, n, k0, m, at), by = a->number_s;
    for (i64 j = 0; j < see; j++) {
      i64 number = h->number + (AT(number)(h, q0) + at) * by + (k0 + j) * a->number_t;
      uint32_t draw[ATTN_PANEL];
      for (int i = 0; i < ATTN_PANEL; i++) draw[i] = philox_at(seed, step, hash, (uint64_t)(number + i * by)).w[0] >> 8;
      for (int i = 0; i < ATTN_PANEL; i++) keep[j * ATTN_STRIP + at + i] = draw[i] >= least;
    }
  }
}

// Rows of k or v as they lie when they are W side by side, or read once only; else copied to room: rows far apart share few
// places of a cache.
MT_FN const W *AT(keys)(const AT(Head) *h, int o, i64 k0, i64 m, int once, W *room, i64 *step) {
  const Attention *a = h->a;
  const void *p = AT(row)(h, o, a->along_t[o], AT(place)(a, k0));
  if (a->stored[o] == ATTN_work && a->along_d[o] == 1 && (once || a->along_t[o] == a->d)) return *step = a->along_t[o], (const W *)p;
  AT(rows_in)(room, a->d, m, p, a->stored[o], m, a->d, a->along_t[o], a->along_d[o], 1);
  return *step = a->d, room;
}

MT_FN i64 AT(width)(const Attention *a) { return (a->d + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL; }

// c[keys, queries] = x · b, and c[rows, queries] += x · b of keys: of a block, but for what a panel does not see. Two panels
// side by side where both see.
MT_FN void AT(across)(const i64 *see, W *c, const W *x, i64 xm, const W *b, i64 k, AT(Soon) *soon) {
  i64 both = see[0] < see[1] ? see[0] : see[1];
  AT(product)(c, ATTN_STRIP, both, ATTN_STRIP, x, xm, 1, b, ATTN_STRIP, k, 1, soon);
  for (int i = 0; i < 2; i++)
    AT(product)(c + both * ATTN_STRIP + i * ATTN_PANEL, ATTN_STRIP, see[i] - both, ATTN_PANEL, x + both * xm, xm, 1,
        b + i * ATTN_PANEL, ATTN_STRIP, k, 1, soon);
}
MT_FN void AT(along)(const i64 *see, W *c, i64 rows, const W *x, i64 xk, const W *b, int fresh, AT(Soon) *soon) {
  i64 both = see[0] < see[1] ? see[0] : see[1];
  if (both || fresh) AT(product)(c, ATTN_STRIP, rows, ATTN_STRIP, x, 1, xk, b, ATTN_STRIP, both, fresh, soon);
  for (int i = 0; i < 2; i++)
    if (see[i] > both)
      AT(product)(c + i * ATTN_PANEL, ATTN_STRIP, rows, ATTN_PANEL, x + both * xk, 1, xk,
          b + both * ATTN_STRIP + i * ATTN_PANEL, ATTN_STRIP, see[i] - both, 0, soon);
}

// Blocks of the width that there is lie side by side: at distances of the largest they would share the places of a cache.
enum { AT(block_size) = ATTN_STRIP * ATTN_WIDTH };
MT_FN W *AT(take)(W **room, i64 n) { return *room += n, *room - n; }

// ---- bf16 by pairs: c[m, n] (+)= sum over x of a[m, x] · b[x, n], b's lines x and x + 1 side by side: b[x / 2][n][x % 2] ------
// The CPU's tiles (AMX): c is 2 x 2 tiles of 16 x 16 f32, an operand is 16 rows of 32 numbers. Everything is padded with zeros
// to multiples of 32. Its products of numbers below 2^-126 are 0.
#if ATTN_PAIRED
// whether this attention goes that way: what is multiplied is bf16 as it lies
MT_FN int AT(paired)(const Attention *a) {
  return a->half && !a->direct && a->stored[ATTN_q] == ATTN_bf16 && a->stored[ATTN_k] == ATTN_bf16 && a->stored[ATTN_v] == ATTN_bf16 &&
         a->stored[ATTN_out] == ATTN_bf16 && a->stored[ATTN_dout] != ATTN_work && a->stored[ATTN_dout] != ATTN_f16;
}

// The library that multiplies matrices sets them up for itself.
MT_FN void AT(tiles_begin)(const Attention *a) {
  static const struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape __attribute__((aligned(64))) =
    {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  if (AT(paired)(a)) __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}
MT_FN void AT(tiles_end)(const Attention *a) {
  if (AT(paired)(a)) __asm__ volatile("tilerelease");
}

// A product, and how far it is: vectors have work of their own, so one that nobody waits for yet is done between, step by step.
typedef struct {
  float *c;                                  // [m, n]; m, n, k: multiples of 32
  const uint16_t *a;
  const uint32_t *b;
  i64 cm, am, bk, m, n, k, i, j, x;          // am, bk: steps in numbers, in pairs
  int fresh;
} AT(Job);

MT_FN i64 AT(steps)(const AT(Job) *t) { return t->m * t->n * t->k >> 15; }
MT_FN int AT(step)(AT(Job) *t) {             // 2 x 2 tiles, 32 of k; false: it is done
  if (t->i >= t->m) return 0;
  float *at = t->c + t->i * t->cm + t->j;
  i64 cm = t->cm, am = t->am, bk = t->bk;
  if (t->x == 0 && t->fresh) __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory");
  else if (t->x == 0)
    __asm__ volatile("tileloadd (%0,%4,1), %%tmm0\n\ttileloadd (%1,%4,1), %%tmm1\n\ttileloadd (%2,%4,1), %%tmm2\n\ttileloadd (%3,%4,1), %%tmm3"
                     : : "r"(at), "r"(at + 16), "r"(at + 16 * cm), "r"(at + 16 * cm + 16), "r"(cm * 4) : "memory");
  const uint16_t *left = t->a + t->i * am + t->x;
  const uint32_t *right = t->b + t->x / 2 * bk + t->j;
  __asm__ volatile("tileloadd (%0,%4,1), %%tmm4\n\ttileloadd (%2,%5,1), %%tmm6\n\ttdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                   "tileloadd (%3,%5,1), %%tmm7\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\ttileloadd (%1,%4,1), %%tmm5\n\t"
                   "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3"
                   : : "r"(left), "r"(left + 16 * am), "r"(right), "r"(right + 16), "r"(am * 2), "r"(bk * 4) : "memory");
  if ((t->x += 32) < t->k) return 1;
  __asm__ volatile("tilestored %%tmm0, (%0,%4,1)\n\ttilestored %%tmm1, (%1,%4,1)\n\ttilestored %%tmm2, (%2,%4,1)\n\ttilestored %%tmm3, (%3,%4,1)"
                   : : "r"(at), "r"(at + 16), "r"(at + 16 * cm), "r"(at + 16 * cm + 16), "r"(cm * 4) : "memory");
  t->x = 0;
  if ((t->j += 32) >= t->n) t->j = 0, t->i += 32;
  return 1;
}
ATTN_SLOW void AT(all_steps)(AT(Job) *t) {
  while (AT(step)(t)) {}
}
MT_FN void AT(pair_product)(float *c, i64 cm, i64 m, i64 n, const uint16_t *a, i64 am, const uint32_t *b, i64 bk,
    i64 k, int fresh) {
  AT(Job) t = {.c = c, .a = a, .b = b, .cm = cm, .am = am, .bk = bk, .m = k > 0 ? m : 0, .n = n, .k = k,
      .fresh = fresh};
  AT(all_steps)(&t);
}

typedef struct { AT(Job) job[3]; i64 at, steps, due; } AT(Jobs);
MT_FN void AT(add)(AT(Jobs) *t, AT(Job) job) { t->job[t->steps ? ++t->at : 0] = job, t->steps += AT(steps)(&job); }
// A part of 1 / parts of the jobs, in order from the last one added.
MT_FN void AT(some_steps)(AT(Jobs) *t, i64 parts) {
  for (t->due += t->steps; t->due >= parts; t->due -= parts)
    while (t->at >= 0 && !AT(step)(&t->job[t->at])) t->at--;
}
MT_FN void AT(last_steps)(AT(Jobs) *t) {
  for (; t->steps && t->at >= 0; t->at--) AT(all_steps)(&t->job[t->at]);
}

typedef struct { uint16_t *rows, *turned; uint32_t *pairs; } AT(Halves);         // of a block: rows, rows by pairs, turned

MT_FN i64 AT(up)(i64 n) { return (n + 31) & ~(i64)31; }

MT_FN AT(Halves) AT(halves_in)(W **room, i64 width) {
  uint16_t *rows = (uint16_t *)AT(take)(room, ATTN_STRIP * width / 2), *turned = (uint16_t *)AT(take)(room,
      ATTN_STRIP * width / 2);
  return (AT(Halves)){rows, turned, (uint32_t *)AT(take)(room, ATTN_STRIP * width / 2)};
}

// to[rows][width] = n rows of d; the rest 0
ATTN_SLOW void AT(half_rows)(uint16_t *to, i64 width, i64 rows, const AT(Head) *h, int o, i64 along, i64 first, i64 n) {
  const Attention *a = h->a;
  i64 d = a->d, step_d = a->along_d[o];
  for (i64 r = 0; r < rows; r++, to += width) {
    const uint16_t *x = (const uint16_t *)(const void *)h->at[o] + (first + r) * along;
    i64 e = 0, have = r < n ? d : 0;
    if (step_d == 1)
      for (; e + 32 <= have; e += 32) *(AT(halves) *)(to + e) = *(const AT(halves) *)(x + e);
    for (; e < have; e++) to[e] = x[e * step_d];
    for (; e < width && e % 32; e++) to[e] = 0;
    for (; e < width; e += 32) *(AT(halves) *)(to + e) = (AT(halves)){0};
  }
}

// The scale's size is left to what follows the product, its sign is here.
MT_FN void AT(signed)(uint16_t *x, i64 n, double scale) {
  for (i64 i = 0; i < n && !(scale > 0); i++) x[i] = scale < 0 ? x[i] ^ 0x8000 : 0;
}
MT_FN float AT(size_of)(double scale) { return scale < 0 ? (float)-scale : scale > 0 ? (float)scale : 1; }

// to[r / 2][e] = rows r and r + 1 side by side
ATTN_SLOW void AT(half_pairs)(uint32_t *to, const uint16_t *from, i64 step, i64 width, i64 rows) {
  for (i64 r = 0; r < rows; r += 2)
    for (i64 e = 0; e < width; e++) to[r / 2 * width + e] = from[r * step + e] | (uint32_t)from[(r + 1) * step + e] << 16;
}

// ---- what lies between the products, on vectors of 16 queries: a panel is two --------------------------------------------
// Of such a panel, scores and do·v are [key][ATTN_PANEL], what is multiplied next is rounded at once: rows, and pairs of keys.
typedef uint8_t AT(flags) __attribute__((vector_size(32), aligned(1), may_alias));

MT_FN uint32_t AT(bits)(const uint8_t *x) {  // of 32 flags
  uint32_t r;
  __asm__("vptestmb %1, %1, %%k1\n\tkmovd %%k1, %0" : "=r"(r) : "v"(*(const AT(flags) *)x) : "k1");
  return r;
}
MT_FN AT(floats) AT(where)(uint32_t bits, AT(floats) x, AT(floats) other) {
  __asm__("kmovw %2, %%k1\n\tvmovaps %1, %0%{%%k1%}" : "+v"(other) : "v"(x), "r"(bits) : "k1");
  return other;
}
MT_FN AT(floats) AT(larger)(AT(floats) a, AT(floats) b) {              // b where one is a NaN
  AT(floats) r;
  __asm__("vmaxps %2, %1, %0" : "=v"(r) : "v"(a), "v"(b));
  return r;
}
MT_FN AT(words) AT(paired_up)(AT(floats) even, AT(floats) odd) {
  AT(halves) both = (AT(halves))AT(rounded)(even, odd);
  return (AT(words))ATTN_PICK(both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11,
      27, 12, 28, 13, 29, 14, 30, 15, 31);
}

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast,no-tree-ter")  // ter: puts what has one use there, chain after chain
#endif
// AT(exp) of each, side by side: a core looks ahead over one such chain, not over four
MT_FN void AT(powers)(AT(floats) *x, int n) {
  ATTN_CONTRACT
  static const float factor[] = {1.535336188319500e-4f, 1.339887440266574e-3f, 9.618437357674640e-3f,
      5.550332471162809e-2f, 2.402264791363012e-1f, 6.931472028550421e-1f, 1.0f};
  AT(floats) none = {0}, t[4], r[4], p[4];
  ATTN_OPEN for (int i = 0; i < n; i++) x[i] = AT(larger)(none - 127.0f, x[i]);
  ATTN_OPEN for (int i = 0; i < n; i++) t[i] = x[i] + 0x1.8p23f;
  ATTN_OPEN for (int i = 0; i < n; i++) r[i] = t[i] - 0x1.8p23f;
  ATTN_OPEN for (int i = 0; i < n; i++) r[i] = x[i] - r[i];
  ATTN_OPEN for (int i = 0; i < n; i++) p[i] = r[i] * factor[0] + factor[1];
  ATTN_OPEN for (int k = 2; k < 7; k++)
    ATTN_OPEN for (int i = 0; i < n; i++) p[i] = p[i] * r[i] + factor[k];
  ATTN_OPEN for (int i = 0; i < n; i++) t[i] = (AT(floats))(((AT(words))t[i] << 23) + 0x3f800000u);
  ATTN_OPEN for (int i = 0; i < n; i++) x[i] = p[i] * t[i];
}

typedef struct { AT(floats) top[2], sum[2]; } AT(Tops);

// Scores, times by, of keys 0 … see-1 to pairs of probabilities relative to the maximum, 0 for more keys up to a multiple of 32;
// see softmax. ok, keep: 0 or flags, keep's rows are of a strip. What was summed so far fades by fade; whether it does.
ATTN_SLOW int AT(half_softmax)(uint32_t *pairs, AT(Tops) *z, AT(floats) fade[2], float *scores, i64 see,
    const uint8_t *ok, const uint8_t *keep, float by, AT(Jobs) *jobs, AT(Soon) *soon) {
  ATTN_CONTRACT
  AT(floats) none = {0}, hidden = none - MT_INF_F32, top[2] = {z->top[0], z->top[1]}, down[2], sum[2];
  int rose = 0;
  for (i64 j = 0; j < see; j++) {
    AT(floats) *p = (AT(floats) *)(scores + j * ATTN_PANEL), a = p[0], b = p[1];
    if (ok) {
      uint32_t some = AT(bits)(ok + j * ATTN_PANEL);
      p[0] = a = AT(where)(some, a, hidden), p[1] = b = AT(where)(some >> 16, b, hidden);
    }
    top[0] = AT(larger)(a, top[0]), top[1] = AT(larger)(b, top[1]);
  }
  for (i64 j = see; j % 32; j++) ((AT(floats) *)(scores + j * ATTN_PANEL))[0] = ((AT(floats) *)(scores + j * ATTN_PANEL))[1] = hidden;
  for (int v = 0; v < 2; v++) {
    float t[16], was[16];
    *(AT(floats) *)t = top[v], *(AT(floats) *)was = z->top[v];
    for (int i = 0; i < 16; i++) t[i] = (t[i] - was[i]) * by > ATTN_RISE ? t[i] : was[i];
    for (int i = 0; i < 16; i++) rose |= t[i] != was[i];
    top[v] = *(AT(floats) *)t, fade[v] = (z->top[v] - top[v]) * by, z->top[v] = top[v];
    down[v] = top[v] * by;
  }
  AT(powers)(fade, 2);
  for (int v = 0; v < 2; v++) sum[v] = z->sum[v] * fade[v];
  for (i64 g = 0; g < see; g += 8) {
    for (i64 j = g; j < g + 8 && j < see; j += 2) {
      const AT(floats) *p = (const AT(floats) *)(scores + j * ATTN_PANEL);
      AT(floats) x[4] = {p[0] * by - down[0], p[1] * by - down[1], p[2] * by - down[0], p[3] * by - down[1]}, *a = x,
          *b = x + 2;
      AT(powers)(x, 4);
      sum[0] += a[0], sum[1] += a[1], sum[0] += b[0], sum[1] += b[1];
      if (keep) {
        uint32_t i = AT(bits)(keep + j * ATTN_STRIP), k = AT(bits)(keep + (j + 1) * ATTN_STRIP);
        a[0] = AT(where)(i, a[0], none), a[1] = AT(where)(i >> 16, a[1], none), b[0] = AT(where)(k, b[0], none),
            b[1] = AT(where)(k >> 16, b[1], none);
      }
      AT(words) *to = (AT(words) *)(pairs + j / 2 * ATTN_STRIP);
      to[0] = AT(paired_up)(a[0], b[0]), to[1] = AT(paired_up)(a[1], b[1]);
    }
    AT(some_steps)(jobs, (see + 7) / 8), AT(ask)(soon);
  }
  for (i64 j = (see + 1) & ~(i64)1; j % 32; j += 2) ((AT(words) *)(pairs + j / 2 * ATTN_STRIP))[0] = ((AT(words) *)(pairs + j / 2 * ATTN_STRIP))[1] = (AT(words)){0};
  for (int v = 0; v < 2; v++) z->sum[v] = sum[v];
  return rose;
}

// Scores, times by, and do·v of keys 0 … 31 to p by rows and ds by rows and by pairs; 0 from key see on. rows: of ATTN_STRIP
ATTN_SLOW void AT(half_slopes)(uint16_t *prows, i64 step, uint16_t *dsrows, uint32_t *dspairs, const float *x,
    const float *dp, i64 see, const float *lse, const float *delta,
                               const uint8_t *ok, const uint8_t *keep, float by, float enlarge, AT(Jobs) *jobs,
    AT(Soon) *soon) {
  ATTN_CONTRACT
  AT(floats) none = {0}, down[2] = {((const AT(floats) *)lse)[0], ((const AT(floats) *)lse)[1]},
      less[2] = {((const AT(floats) *)delta)[0], ((const AT(floats) *)delta)[1]};
  for (i64 g = 0; g < 32; g += 8) {
    for (i64 j = g; j < g + 8; j += 2) {
      const AT(floats) *from = (const AT(floats) *)(x + j * ATTN_PANEL),
          *slope = (const AT(floats) *)(dp + j * ATTN_PANEL);
      AT(floats) p[4] = {from[0] * by - down[0], from[1] * by - down[1], from[2] * by - down[0],
          from[3] * by - down[1]}, ds[4];
      AT(powers)(p, 4);
      ATTN_OPEN for (int v = 0; v < 4; v++) {
        i64 r = j + v / 2;
        AT(floats) s = slope[v], y = p[v];
        if (keep) {
          uint32_t stay = AT(bits)(keep + r * ATTN_STRIP) >> v % 2 * 16;
          s = AT(where)(stay, s * enlarge, none), p[v] = AT(where)(stay, y * enlarge, none);
        }
        ds[v] = y * (s - less[v % 2]);
        if (ok || r >= see) {
          uint32_t some = r >= see ? 0 : AT(bits)(ok + r * ATTN_PANEL) >> v % 2 * 16;
          p[v] = AT(where)(some, p[v], none), ds[v] = AT(where)(some, ds[v], none);
        }
      }
      for (int r = 0; r < 2; r++)
        *(AT(words) *)(prows + (j + r) * step) = AT(rounded)(p[2 * r], p[2 * r + 1]),
            *(AT(words) *)(dsrows + (j + r) * step) = AT(rounded)(ds[2 * r], ds[2 * r + 1]);
      AT(words) *to = (AT(words) *)(dspairs + j / 2 * ATTN_STRIP);
      to[0] = AT(paired_up)(ds[0], ds[2]), to[1] = AT(paired_up)(ds[1], ds[3]);
    }
    AT(some_steps)(jobs, 4), AT(ask)(soon);
  }
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif

// Rows of k or v as they lie when nothing is to be padded, as keys does; else copied to room.
MT_FN const uint16_t *AT(half_keys)(const AT(Head) *h, int o, i64 k0, i64 m, int once, uint16_t *room, i64 *step) {
  const Attention *a = h->a;
  i64 at = AT(place)(a, k0);
  if (a->along_d[o] == 1 && a->d % 32 == 0 && m % 32 == 0 && (once || a->along_t[o] == a->d))
    return *step = a->along_t[o], (const uint16_t *)(const void *)AT(row)(h, o, a->along_t[o], at);
  AT(half_rows)(room, *step = AT(width)(a), AT(up)(m), h, o, a->along_t[o], at, m);
  return room;
}

// x[rows][width], turned
MT_FN void AT(half_turned)(AT(Halves) *h, const uint16_t *x, i64 step, i64 rows, i64 width) {
  AT(half_pairs)(h->pairs, x, step, width, rows);
  AT(turned)(h->turned, ATTN_KEYS / 2, h->pairs, width, rows / 2, width);
}
#else
MT_FN int AT(paired)(const Attention *a) { return (void)a, 0; }
MT_FN void AT(tiles_begin)(const Attention *a) { (void)a; }
MT_FN void AT(tiles_end)(const Attention *a) { (void)a; }
MT_FN W AT(size_of)(double scale) { return (W)scale; }
#endif

#endif
