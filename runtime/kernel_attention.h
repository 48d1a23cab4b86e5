// kernel_attention.h -- attention and its gradient in blocks: no [seq, seq] matrix exists. Text of generated C files, behind
// kernel_math.h; once with W defined as f32, once as f64. Without W: the description only.
//
//   forward   o = softmax(scale q·k) v, row by row, with running maximum and sum (Milakov, Gimelshein 2018; Dao et al. 2022)
//   backward  p = exp(scale q·k - lse); dv = pᵀ·do; ds = p (do·v - Σ do·o); dq = scale ds·k; dk = scale dsᵀ·q
//
// A block of scores lies as [keys, queries]: lanes run along queries, so a row's maximum and sum are elementwise, and k and v
// are read as they lie, one number at a time. Every sum over a contracted dim runs in its order, whatever the tiles and the
// vectors are, so the bits depend on neither. What a mask hides is skipped by whole blocks, else selected away.
//
// Products are the one place where a·b + c is fused (with the CPU's FMA): in functions of their own, so that the setting
// reaches nothing else.
#ifndef MT_KERNEL_ATTENTION_H
#define MT_KERNEL_ATTENTION_H
#include "runtime/philox.h"

enum { ATTN_q, ATTN_k, ATTN_v, ATTN_out, ATTN_lse, ATTN_mask, ATTN_dout, ATTN_dq, ATTN_dk, ATTN_dv, ATTN_OPERANDS, ATTN_DIMS = 8 };
enum { ATTN_absent, ATTN_bf16, ATTN_work, ATTN_bool };   // how an operand is stored; work: as W
enum { ATTN_QUERIES = 64, ATTN_KEYS = 64, ATTN_PANEL = 32, ATTN_WIDTH = 256 }; // of a block; queries side by side; largest d

typedef struct {
  int64_t s, t, d;                           // entries that exist; of d: entries stored
  int64_t s_size, t_size;                    // entries stored
  int32_t nshared, ngroup;                   // other dims: those that k and v have too, then those that only q has
  int64_t n[ATTN_DIMS];                      // their extents
  int64_t step[ATTN_OPERANDS][ATTN_DIMS];    // strides along them
  int64_t along_s[ATTN_OPERANDS], along_t[ATTN_OPERANDS], along_d[ATTN_OPERANDS];
  int32_t stored[ATTN_OPERANDS], buffer[ATTN_OPERANDS];
  int32_t causal, half;                      // half: probabilities and their gradient are rounded to bf16
  int64_t window;                            // > 0: keys that are less far back
  double  scale;
  int64_t shared, groups, chunks;            // products of extents; backward: parts that the queries of a unit are dealt to
  // dropout: a pair stays, divided by what stays of all, where its draw is not below `least` · 2^-24
  int32_t draws, random;                     // random: the argument that holds the hash, i64; -1: hash is it
  uint32_t hash, least;
  double  enlarge;                           // 1 / (1 - p)
  int64_t slot_seed, slot_step, slot_sample; // of the scalar block
  int64_t number[ATTN_DIMS], number_s, number_t, number_sample;     // strides of the pairs' numbers
  int32_t direct, work;                      // backward: dk and dv are added up where they end; else the work buffer's number
} Attention;
#endif

#ifdef W
#define ATTN_2(x, w) attention_##x##_##w
#define ATTN_1(x, w) ATTN_2(x, w)
#define AT(x) ATTN_1(x, W)
#define EXP_2(x, w) x##_##w
#define EXP_1(x, w) EXP_2(x, w)
#define ATTN_SLOW static __attribute__((noinline, unused))

#if defined(__AVX512F__)
enum { AT(bytes) = 64, AT(rows) = 8, AT(vectors) = 2 };
#elif defined(__AVX__)
enum { AT(bytes) = 32, AT(rows) = 4, AT(vectors) = 2 };
#else
enum { AT(bytes) = 16, AT(rows) = 4, AT(vectors) = 2 };
#endif
enum { AT(lanes) = AT(bytes) / sizeof(W), AT(strip) = AT(lanes) * AT(vectors) };
typedef W AT(vec) __attribute__((vector_size(AT(bytes)), aligned(sizeof(W)), may_alias));

// ---- products: c[m, n] (+)= sum over x of a[m, x] · b[x, n]; the n of a strip side by side --------------------------------
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#define ATTN_CONTRACT
#else
#define ATTN_CONTRACT _Pragma("clang fp contract(fast)")
#endif
#define ATTN_TILE(R) \
  ATTN_SLOW void AT(tile##R)(W *c, i64 cm, const W *a, i64 am, i64 ak, const W *b, i64 bk, i64 k, int fresh) { \
    ATTN_CONTRACT \
    AT(vec) acc[R][AT(vectors)], zero = {0}; \
    for (int r = 0; r < R; r++) \
      for (int v = 0; v < AT(vectors); v++) acc[r][v] = fresh ? zero : *(const AT(vec) *)(c + r * cm + v * AT(lanes)); \
    for (i64 x = 0; x < k; x++) { \
      AT(vec) line[AT(vectors)]; \
      for (int v = 0; v < AT(vectors); v++) line[v] = *(const AT(vec) *)(b + x * bk + v * AT(lanes)); \
      for (int r = 0; r < R; r++) { \
        AT(vec) one = a[r * am + x * ak] - zero; \
        for (int v = 0; v < AT(vectors); v++) acc[r][v] = one * line[v] + acc[r][v]; \
      } \
    } \
    for (int r = 0; r < R; r++) \
      for (int v = 0; v < AT(vectors); v++) *(AT(vec) *)(c + r * cm + v * AT(lanes)) = acc[r][v]; \
  }
ATTN_TILE(1)
ATTN_TILE(4)
#ifdef __AVX512F__
ATTN_TILE(8)
#endif
#undef ATTN_TILE
#if !defined(__clang__)
#pragma GCC pop_options
#endif
#undef ATTN_CONTRACT

// n: a multiple of ATTN_PANEL
MT_FN void AT(product)(W *c, i64 cm, i64 m, i64 n, const W *a, i64 am, i64 ak, const W *b, i64 bk, i64 k, int fresh) {
  for (i64 j = 0; j < n; j += AT(strip)) {
    i64 i = 0;
#ifdef __AVX512F__
    for (; i + 8 <= m; i += 8) AT(tile8)(c + i * cm + j, cm, a + i * am, am, ak, b + j, bk, k, fresh);
#endif
    for (; i + 4 <= m; i += 4) AT(tile4)(c + i * cm + j, cm, a + i * am, am, ak, b + j, bk, k, fresh);
    for (; i < m; i++) AT(tile1)(c + i * cm + j, cm, a + i * am, am, ak, b + j, bk, k, fresh);
  }
}

// ---- rows in and out ------------------------------------------------------------------------------------------------------
MT_FN W AT(load)(const void *p, int32_t how, i64 i) { return how == ATTN_bf16 ? (W)f32_bf16(((const uint16_t *)p)[i]) : ((const W *)p)[i]; }
MT_FN void AT(store)(void *p, int32_t how, i64 i, W x) {
  if (how == ATTN_bf16) ((uint16_t *)p)[i] = bf16_f32((float)x);
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
    } else if (step_d == 1) {
      const W *x = (const W *)p + r * step;
      for (; e < have; e++) row[e] = x[e] * scale;
    } else {
      for (; e < have; e++) row[e] = AT(load)(p, how, r * step + e * step_d) * scale;
    }
    for (; e < width; e++) row[e] = 0;
  }
}

// n rows of d from a block of rows
ATTN_SLOW void AT(rows_out)(void *p, int32_t how, i64 n, i64 d, i64 step, i64 step_d, const W *x, i64 width) {
  for (i64 r = 0; r < n; r++) {
    const W *row = x + r * width;
    if (step_d == 1 && how == ATTN_bf16) {
      uint16_t *to = (uint16_t *)p + r * step;
      for (i64 e = 0; e < d; e++) to[e] = bf16_f32((float)row[e]);
    } else if (step_d == 1) {
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

// to[e][i] = from[i][e] of a block of queries; and back
ATTN_SLOW void AT(turned)(W *to, const W *from, i64 width, i64 d) {
  for (i64 e = 0; e < d; e += 16)
    for (i64 i = 0; i < ATTN_QUERIES; i += 16)
      for (i64 x = e; x < d && x < e + 16; x++)
        for (i64 y = i; y < i + 16; y++) to[x * ATTN_QUERIES + y] = from[y * width + x];
}
ATTN_SLOW void AT(turned_back)(W *to, i64 width, const W *from, i64 d, i64 n) {
  for (i64 i = 0; i < n; i += 16)
    for (i64 e = 0; e < d; e += 16)
      for (i64 y = i; y < n && y < i + 16; y++)
        for (i64 x = e; x < d && x < e + 16; x++) to[y * width + x] = from[x * ATTN_QUERIES + y];
}

// ---- places ---------------------------------------------------------------------------------------------------------------
typedef struct {                             // where the operands of one head begin
  const Attention *a;
  char *at[ATTN_OPERANDS];
  i64 number, seed;                          // of its first pair
  uint32_t step, hash;
} AT(Head);

MT_FN i64 AT(size)(int32_t how) { return how == ATTN_bf16 ? 2 : how == ATTN_bool ? 1 : (i64)sizeof(W); }

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
  if (!a->draws) return;
  const i64 *slot = (const i64 *)scalars;
  h->seed = slot[a->slot_seed], h->step = (uint32_t)slot[a->slot_step];
  h->hash = a->random < 0 ? a->hash : (uint32_t)*(const i64 *)buf[a->random];
  h->number = slot[a->slot_sample] * a->number_sample;
  for (int32_t i = 0; i < a->nshared + a->ngroup; i++) h->number += digit[i] * a->number[i];
}
MT_FN char *AT(row)(const AT(Head) *h, int o, i64 along, i64 i) { return h->at[o] + i * along * AT(size)(h->a->stored[o]); }

// keys that the queries q0 … q0+n-1 may see
MT_FN void AT(range)(const Attention *a, i64 q0, i64 n, i64 *from, i64 *to) {
  *to = a->causal && q0 + n < a->t ? q0 + n : a->t;
  *from = a->window > 0 && q0 - a->window + 1 > 0 ? (q0 - a->window + 1) / ATTN_KEYS * ATTN_KEYS : 0;
  if (n <= 0) *to = *from;
}

// Which of the pairs of a block exist: ok[key][query]; false: all do. n queries from q0, m keys from k0.
ATTN_SLOW int AT(hidden)(const AT(Head) *h, i64 q0, i64 n, i64 k0, i64 m, uint8_t *ok) {
  const Attention *a = h->a;
  if (!h->at[ATTN_mask] && (!a->causal || k0 + m - 1 <= q0) && (a->window <= 0 || q0 + n - 1 - k0 < a->window)) return 0;
  i64 most = a->window > 0 ? a->window - 1 : (i64)1 << 40, least = a->causal ? 0 : -((i64)1 << 40);
  for (i64 j = 0; j < m; j++) {
    i64 lo = least - (q0 - k0 - j), hi = most - (q0 - k0 - j);         // of the query's number in the block
    int first = lo < 0 ? 0 : lo > ATTN_QUERIES ? ATTN_QUERIES : (int)lo, last = hi < -1 ? -1 : hi > ATTN_QUERIES ? ATTN_QUERIES : (int)hi;
    for (int i = 0; i < ATTN_QUERIES; i++) ok[j * ATTN_QUERIES + i] = (uint8_t)((i >= first) & (i <= last));
  }
  if (!h->at[ATTN_mask]) return 1;
  for (i64 j = 0; j < m; j++) {
    const uint8_t *mask = (const uint8_t *)h->at[ATTN_mask] + (k0 + j) * a->along_t[ATTN_mask] + q0 * a->along_s[ATTN_mask];
    if (a->along_s[ATTN_mask] == 0)
      for (int i = 0; i < ATTN_QUERIES; i++) ok[j * ATTN_QUERIES + i] &= *mask != 0;
    else
      for (i64 i = 0; i < n; i++) ok[j * ATTN_QUERIES + i] &= mask[i * a->along_s[ATTN_mask]] != 0;
  }
  return 1;
}

// keys of a block that a panel of queries may see
MT_FN i64 AT(seen)(const Attention *a, i64 q0, i64 n, i64 k0, i64 m, i64 panel) {
  i64 see = q0 + panel + ATTN_PANEL - k0;
  return panel >= n ? 0 : !a->causal || see > m ? m : see < 0 ? 0 : see;
}

// Which pairs of a block stay.
ATTN_SLOW void AT(drawn)(const AT(Head) *h, i64 q0, i64 n, i64 k0, i64 m, uint8_t *keep) {
  const Attention *a = h->a;
  uint64_t seed = (uint64_t)h->seed;
  uint32_t step = h->step, hash = h->hash, least = a->least;
  for (int at = 0; at < ATTN_QUERIES; at += ATTN_PANEL) {
    i64 see = AT(seen)(a, q0, n, k0, m, at), by = a->number_s;
    for (i64 j = 0; j < see; j++) {
      i64 number = h->number + (q0 + at) * by + (k0 + j) * a->number_t;
      uint32_t draw[ATTN_PANEL];
      for (int i = 0; i < ATTN_PANEL; i++) draw[i] = philox_at(seed, step, hash, (uint64_t)(number + i * by)).w[0] >> 8;
      for (int i = 0; i < ATTN_PANEL; i++) keep[j * ATTN_QUERIES + at + i] = draw[i] >= least;
    }
  }
}

// Rows of k or v as they lie when they are W side by side, else copied to room.
MT_FN const W *AT(keys)(const AT(Head) *h, int o, i64 k0, i64 m, W *room, i64 *step) {
  const Attention *a = h->a;
  const void *p = AT(row)(h, o, a->along_t[o], k0);
  if (a->stored[o] == ATTN_work && a->along_d[o] == 1) return *step = a->along_t[o], (const W *)p;
  AT(rows_in)(room, a->d, m, p, a->stored[o], m, a->d, a->along_t[o], a->along_d[o], 1);
  return *step = a->d, room;
}

MT_FN i64 AT(width)(const Attention *a) { return (a->d + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL; }

// ---- forward: a unit is a block of queries of a head -----------------------------------------------------------------------
typedef struct {
  W rows[ATTN_QUERIES * ATTN_WIDTH], q[ATTN_WIDTH * ATTN_QUERIES], o[ATTN_WIDTH * ATTN_QUERIES], p[ATTN_KEYS * ATTN_QUERIES];
  W k[ATTN_KEYS * ATTN_WIDTH], v[ATTN_KEYS * ATTN_WIDTH];
  W top[ATTN_QUERIES], sum[ATTN_QUERIES], fade[ATTN_QUERIES];
  uint8_t ok[ATTN_KEYS * ATTN_QUERIES], keep[ATTN_KEYS * ATTN_QUERIES];
} __attribute__((aligned(64))) AT(Forward);

// scores to probabilities relative to the new maxima; what was summed so far fades
ATTN_SLOW void AT(softmax)(AT(Forward) *u, const Attention *a, i64 q0, i64 n, i64 k0, i64 m, int masked) {
  for (int at = 0; at < ATTN_QUERIES; at += ATTN_PANEL) {
    W top[ATTN_PANEL], sum[ATTN_PANEL];
    i64 see = AT(seen)(a, q0, n, k0, m, at);
    for (int i = 0; i < ATTN_PANEL; i++) top[i] = u->top[at + i];
    for (i64 j = 0; j < see; j++) {
      W *p = u->p + j * ATTN_QUERIES + at;
      const uint8_t *ok = u->ok + j * ATTN_QUERIES + at;
      if (masked)
        for (int i = 0; i < ATTN_PANEL; i++) p[i] = ok[i] ? p[i] : -(W)MT_INF_F32;
      for (int i = 0; i < ATTN_PANEL; i++) top[i] = p[i] > top[i] ? p[i] : top[i];
    }
    for (int i = 0; i < ATTN_PANEL; i++) {
      W fade = EXP_1(exp, W)(u->top[at + i] - top[i]);
      u->top[at + i] = top[i], u->fade[at + i] = fade, sum[i] = u->sum[at + i] * fade;
    }
    for (i64 j = 0; j < see; j++) {
      W *p = u->p + j * ATTN_QUERIES + at;
      for (int i = 0; i < ATTN_PANEL; i++) p[i] = EXP_1(exp, W)(p[i] - top[i]);
      for (int i = 0; i < ATTN_PANEL; i++) sum[i] += p[i];
    }
    for (int i = 0; i < ATTN_PANEL; i++) u->sum[at + i] = sum[i];
  }
}

ATTN_SLOW void AT(fade)(AT(Forward) *u, i64 d) {
  W least = 1;
  for (int i = 0; i < ATTN_QUERIES; i++) least = u->fade[i] < least ? u->fade[i] : least;
  if (least == 1) return;
  for (i64 e = 0; e < d; e++)
    for (int i = 0; i < ATTN_QUERIES; i++) u->o[e * ATTN_QUERIES + i] *= u->fade[i];
}

// Rounded relative to the maximum so far, not to the sum: the same error.
ATTN_SLOW void AT(halve)(W *p, i64 n) {
  for (i64 i = 0; i < n; i++) p[i] = (W)round_bf16((float)p[i]);
}

ATTN_SLOW void AT(block)(AT(Forward) *u, const AT(Head) *h, i64 q0, i64 n) {
  const Attention *a = h->a;
  i64 d = a->d, width = AT(width)(a), from, to, sk, sv;
  AT(rows_in)(u->rows, width, ATTN_QUERIES, AT(row)(h, ATTN_q, a->along_s[ATTN_q], q0), a->stored[ATTN_q], n, d, a->along_s[ATTN_q], a->along_d[ATTN_q], (W)a->scale);
  AT(turned)(u->q, u->rows, width, d);
  for (int i = 0; i < ATTN_QUERIES; i++) u->top[i] = (W)-1e30, u->sum[i] = 0;
  for (i64 i = 0; i < d * ATTN_QUERIES; i++) u->o[i] = 0;
  AT(range)(a, q0, n, &from, &to);
  for (i64 k0 = from; k0 < to; k0 += ATTN_KEYS) {
    i64 m = to - k0 < ATTN_KEYS ? to - k0 : ATTN_KEYS;
    const W *k = AT(keys)(h, ATTN_k, k0, m, u->k, &sk), *v = AT(keys)(h, ATTN_v, k0, m, u->v, &sv);
    int masked = AT(hidden)(h, q0, n, k0, m, u->ok);
    for (i64 at = 0; at < ATTN_QUERIES; at += ATTN_PANEL)
      AT(product)(u->p + at, ATTN_QUERIES, AT(seen)(a, q0, n, k0, m, at), ATTN_PANEL, k, sk, 1, u->q + at, ATTN_QUERIES, d, 1);
    AT(softmax)(u, a, q0, n, k0, m, masked);
    if (a->draws) {
      AT(drawn)(h, q0, n, k0, m, u->keep);
      for (i64 i = 0; i < m * ATTN_QUERIES; i++) u->p[i] = u->keep[i] ? u->p[i] : 0;
    }
    if (a->half) AT(halve)(u->p, m * ATTN_QUERIES);
    AT(fade)(u, d);
    for (i64 at = 0; at < ATTN_QUERIES; at += ATTN_PANEL)
      AT(product)(u->o + at, ATTN_QUERIES, d, ATTN_PANEL, v, 1, sv, u->p + at, ATTN_QUERIES, AT(seen)(a, q0, n, k0, m, at), 0);
  }
  for (int i = 0; i < ATTN_QUERIES; i++) u->fade[i] = u->sum[i] > 0 ? (a->draws ? (W)a->enlarge : 1) / u->sum[i] : 0;
  for (i64 e = 0; e < d; e++)
    for (int i = 0; i < ATTN_QUERIES; i++) u->o[e * ATTN_QUERIES + i] *= u->fade[i];
  AT(turned_back)(u->rows, width, u->o, d, n);
  AT(rows_out)(AT(row)(h, ATTN_out, a->along_s[ATTN_out], q0), a->stored[ATTN_out], n, d, a->along_s[ATTN_out], a->along_d[ATTN_out], u->rows, width);
  for (i64 i = 0; i < n && h->at[ATTN_lse]; i++)
    AT(store)(AT(row)(h, ATTN_lse, a->along_s[ATTN_lse], q0), ATTN_work, i * a->along_s[ATTN_lse], u->sum[i] > 0 ? u->top[i] + EXP_1(log, W)(u->sum[i]) : (W)MT_INF_F32);
}

ATTN_SLOW void AT(forward)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  AT(Forward) u;
  i64 blocks = (a->s_size + ATTN_QUERIES - 1) / ATTN_QUERIES;
  for (i64 at = lo; at < hi; at++) {
    AT(Head) h;
    i64 q0 = (blocks - 1 - at % blocks) * ATTN_QUERIES, head = at / blocks; // the longest first
    i64 all = a->s_size - q0 < ATTN_QUERIES ? a->s_size - q0 : ATTN_QUERIES, n = a->s - q0 < all ? a->s - q0 : all;
    if (n < 0) n = 0;
    AT(head)(&h, a, buf, scalars, head / a->groups, head % a->groups);
    if (n) AT(block)(&u, &h, q0, n);
    AT(rows_zero)(AT(row)(&h, ATTN_out, a->along_s[ATTN_out], q0 + n), a->stored[ATTN_out], all - n, a->d, a->along_s[ATTN_out], a->along_d[ATTN_out]);
    if (h.at[ATTN_lse]) AT(rows_zero)(AT(row)(&h, ATTN_lse, a->along_s[ATTN_lse], q0 + n), ATTN_work, all - n, 1, a->along_s[ATTN_lse], 0);
  }
}

// ---- backward: a unit is a chunk of the query blocks of all heads that share keys -------------------------------------------
typedef struct {
  W qrows[ATTN_QUERIES * ATTN_WIDTH], q[ATTN_WIDTH * ATTN_QUERIES], orows[ATTN_QUERIES * ATTN_WIDTH], o[ATTN_WIDTH * ATTN_QUERIES];
  W dq[ATTN_WIDTH * ATTN_QUERIES], p[ATTN_KEYS * ATTN_QUERIES], ds[ATTN_KEYS * ATTN_QUERIES];
  W k[ATTN_KEYS * ATTN_WIDTH], v[ATTN_KEYS * ATTN_WIDTH];
  W lse[ATTN_QUERIES], delta[ATTN_QUERIES];
  uint8_t ok[ATTN_KEYS * ATTN_QUERIES], keep[ATTN_KEYS * ATTN_QUERIES];
} __attribute__((aligned(64))) AT(Backward);

typedef struct { W *at; i64 step; } AT(Sum); // rows of d, padded to the width

// scores and do·v to p and ds
ATTN_SLOW void AT(slopes)(AT(Backward) *u, const Attention *a, i64 q0, i64 n, i64 k0, i64 m, int masked) {
  for (int at = 0; at < ATTN_QUERIES; at += ATTN_PANEL) {
    i64 see = AT(seen)(a, q0, n, k0, m, at);
    const W *lse = u->lse + at, *delta = u->delta + at, enlarge = (W)a->enlarge;
    for (i64 j = 0; j < m; j++) {
      W *p = u->p + j * ATTN_QUERIES + at, *ds = u->ds + j * ATTN_QUERIES + at, x[ATTN_PANEL];
      const uint8_t *ok = u->ok + j * ATTN_QUERIES + at, *keep = u->keep + j * ATTN_QUERIES + at;
      if (j >= see) {
        for (int i = 0; i < ATTN_PANEL; i++) p[i] = ds[i] = 0;
        continue;
      }
      for (int i = 0; i < ATTN_PANEL; i++) x[i] = EXP_1(exp, W)(p[i] - lse[i]);
      if (masked)
        for (int i = 0; i < ATTN_PANEL; i++) x[i] = ok[i] ? x[i] : 0;
      if (a->draws)
        for (int i = 0; i < ATTN_PANEL; i++) p[i] = keep[i] ? x[i] * enlarge : 0, ds[i] = x[i] * ((keep[i] ? ds[i] * enlarge : 0) - delta[i]);
      else
        for (int i = 0; i < ATTN_PANEL; i++) p[i] = x[i], ds[i] = x[i] * (ds[i] - delta[i]);
      if (masked)
        for (int i = 0; i < ATTN_PANEL; i++) ds[i] = ok[i] ? ds[i] : 0;
    }
  }
}

ATTN_SLOW void AT(back)(AT(Backward) *u, const AT(Head) *h, i64 q0, i64 n, AT(Sum) dk, AT(Sum) dv) {
  const Attention *a = h->a;
  i64 d = a->d, width = AT(width)(a), from, to, sk, sv;
  AT(rows_in)(u->qrows, width, ATTN_QUERIES, AT(row)(h, ATTN_out, a->along_s[ATTN_out], q0), a->stored[ATTN_out], n, d, a->along_s[ATTN_out], a->along_d[ATTN_out], 1);
  AT(rows_in)(u->orows, width, ATTN_QUERIES, AT(row)(h, ATTN_dout, a->along_s[ATTN_dout], q0), a->stored[ATTN_dout], n, d, a->along_s[ATTN_dout], a->along_d[ATTN_dout], 1);
  AT(turned)(u->q, u->qrows, width, d), AT(turned)(u->o, u->orows, width, d);
  for (int i = 0; i < ATTN_QUERIES; i++) u->delta[i] = 0, u->lse[i] = (W)MT_INF_F32;
  for (i64 e = 0; e < d; e++)
    for (int i = 0; i < ATTN_QUERIES; i++) u->delta[i] += u->q[e * ATTN_QUERIES + i] * u->o[e * ATTN_QUERIES + i];
  for (i64 i = 0; i < n; i++) u->lse[i] = AT(load)(AT(row)(h, ATTN_lse, a->along_s[ATTN_lse], q0), ATTN_work, i * a->along_s[ATTN_lse]);
  AT(rows_in)(u->qrows, width, ATTN_QUERIES, AT(row)(h, ATTN_q, a->along_s[ATTN_q], q0), a->stored[ATTN_q], n, d, a->along_s[ATTN_q], a->along_d[ATTN_q], (W)a->scale);
  AT(turned)(u->q, u->qrows, width, d);
  for (i64 i = 0; i < d * ATTN_QUERIES; i++) u->dq[i] = 0;
  AT(range)(a, q0, n, &from, &to);
  for (i64 k0 = from; k0 < to; k0 += ATTN_KEYS) {
    i64 m = to - k0 < ATTN_KEYS ? to - k0 : ATTN_KEYS;
    const W *k = AT(keys)(h, ATTN_k, k0, m, u->k, &sk), *v = AT(keys)(h, ATTN_v, k0, m, u->v, &sv);
    int masked = AT(hidden)(h, q0, n, k0, m, u->ok);
    for (i64 at = 0; at < ATTN_QUERIES; at += ATTN_PANEL) {
      i64 see = AT(seen)(a, q0, n, k0, m, at);
      AT(product)(u->p + at, ATTN_QUERIES, see, ATTN_PANEL, k, sk, 1, u->q + at, ATTN_QUERIES, d, 1);
      AT(product)(u->ds + at, ATTN_QUERIES, see, ATTN_PANEL, v, sv, 1, u->o + at, ATTN_QUERIES, d, 1);
    }
    if (a->draws) AT(drawn)(h, q0, n, k0, m, u->keep);
    AT(slopes)(u, a, q0, n, k0, m, masked);
    if (a->half) AT(halve)(u->p, m * ATTN_QUERIES), AT(halve)(u->ds, m * ATTN_QUERIES);
    i64 all = AT(seen)(a, q0, n, k0, m, 0);                            // keys that both panels see; the others only the second
    i64 late = ATTN_PANEL, rest = AT(seen)(a, q0, n, k0, m, late) - all;
    W *dkr = dk.at + k0 * dk.step, *dvr = dv.at + k0 * dv.step;
    AT(product)(dvr, dv.step, all, width, u->p, ATTN_QUERIES, 1, u->orows, width, n, 0);
    AT(product)(dkr, dk.step, all, width, u->ds, ATTN_QUERIES, 1, u->qrows, width, n, 0);
    if (rest > 0) {
      AT(product)(dvr + all * dv.step, dv.step, rest, width, u->p + all * ATTN_QUERIES + late, ATTN_QUERIES, 1, u->orows + late * width, width, n - late, 0);
      AT(product)(dkr + all * dk.step, dk.step, rest, width, u->ds + all * ATTN_QUERIES + late, ATTN_QUERIES, 1, u->qrows + late * width, width, n - late, 0);
    }
    for (i64 at = 0; at < ATTN_QUERIES; at += ATTN_PANEL)
      AT(product)(u->dq + at, ATTN_QUERIES, d, ATTN_PANEL, k, 1, sk, u->ds + at, ATTN_QUERIES, AT(seen)(a, q0, n, k0, m, at), 0);
  }
  for (i64 i = 0; i < d * ATTN_QUERIES; i++) u->dq[i] *= (W)a->scale;
  AT(turned_back)(u->qrows, width, u->dq, d, n);
  AT(rows_out)(AT(row)(h, ATTN_dq, a->along_s[ATTN_dq], q0), a->stored[ATTN_dq], n, d, a->along_s[ATTN_dq], a->along_d[ATTN_dq], u->qrows, width);
}

// where unit's sums are: dk, then dv
MT_FN AT(Sum) AT(sum)(const AT(Head) *h, void *const *buf, i64 unit, int o) {
  const Attention *a = h->a;
  i64 width = AT(width)(a);
  if (a->direct) return (AT(Sum)){(W *)(void *)h->at[o], a->along_t[o]};
  W *work = (W *)buf[a->work];
  return (AT(Sum)){work + (unit * 2 + (o == ATTN_dv)) * a->t * width, width};
}

ATTN_SLOW void AT(backward)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  AT(Backward) u;
  i64 blocks = (a->s_size + ATTN_QUERIES - 1) / ATTN_QUERIES, width = AT(width)(a);
  for (i64 unit = lo; unit < hi; unit++) {
    AT(Head) h;
    AT(head)(&h, a, buf, scalars, unit / a->chunks, 0);
    AT(Sum) dk = AT(sum)(&h, buf, unit, ATTN_dk), dv = AT(sum)(&h, buf, unit, ATTN_dv);
    for (i64 j = 0; j < (a->direct ? a->t_size : a->t); j++)
      for (i64 e = 0; e < width; e++) dk.at[j * dk.step + e] = dv.at[j * dv.step + e] = 0;
    for (i64 at = unit % a->chunks; at < a->groups * blocks; at += a->chunks) {
      i64 q0 = at % blocks * ATTN_QUERIES;
      i64 all = a->s_size - q0 < ATTN_QUERIES ? a->s_size - q0 : ATTN_QUERIES, n = a->s - q0 < all ? a->s - q0 : all;
      if (n < 0) n = 0;
      AT(head)(&h, a, buf, scalars, unit / a->chunks, at / blocks);
      if (n) AT(back)(&u, &h, q0, n, dk, dv);
      AT(rows_zero)(AT(row)(&h, ATTN_dq, a->along_s[ATTN_dq], q0 + n), a->stored[ATTN_dq], all - n, a->d, a->along_s[ATTN_dq], a->along_d[ATTN_dq]);
    }
  }
}

// the chunks' sums in their order; a unit is one head of keys
ATTN_SLOW void AT(combine)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  W sum[ATTN_WIDTH];
  i64 width = AT(width)(a);
  for (i64 unit = lo; unit < hi; unit++) {
    AT(Head) h;
    AT(head)(&h, a, buf, scalars, unit, 0);
    for (int o = ATTN_dk; o <= ATTN_dv; o++) {
      for (i64 j = 0; j < a->t; j++) {
        for (i64 e = 0; e < width; e++) sum[e] = 0;
        for (i64 c = 0; c < a->chunks; c++) {
          AT(Sum) from = AT(sum)(&h, buf, unit * a->chunks + c, o);
          for (i64 e = 0; e < width; e++) sum[e] += from.at[j * width + e];
        }
        AT(rows_out)(AT(row)(&h, o, a->along_t[o], j), a->stored[o], 1, a->d, a->along_t[o], a->along_d[o], sum, width);
      }
      AT(rows_zero)(AT(row)(&h, o, a->along_t[o], a->t), a->stored[o], a->t_size - a->t, a->d, a->along_t[o], a->along_d[o]);
    }
  }
}
#undef AT
#undef ATTN_1
#undef ATTN_2
#undef EXP_1
#undef EXP_2
#undef ATTN_SLOW
#endif
