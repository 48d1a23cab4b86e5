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
// Products, and what goes between those by tiles, are the places where a·b + c is fused (with the CPU's FMA): in functions
// of their own, so that the setting reaches nothing else.
//
// A unit has `block` queries, ATTN_QUERIES or fewer, ATTN_STRIP side by side, which share what is copied of a block of keys.
//
// What is stored as bf16 is multiplied as bf16 where the CPU has tiles for it and the process may use them (MT_TILES, see
// jit.h); the scale follows the product, p and ds are rounded to bf16 either way. That is where "paired" and "half" stand.
#include "runtime/kernel_attention_parts.h"

#ifdef W
// ---- forward: a unit is a block of queries of a head -----------------------------------------------------------------------
typedef struct {                             // of queries side by side
  W *q, *o, top[ATTN_STRIP], sum[ATTN_STRIP]; // q: [d, queries], o as well
  i64 q0, n, from, to;                       // n of them from q0, the keys that they see
#if ATTN_PAIRED
  uint32_t *qturned;                         // in place of q
#endif
} AT(Strip);

typedef struct {                             // what vectors and tiles are read from first: at multiples of their size
  W p[ATTN_KEYS * ATTN_STRIP], room[(2 * ATTN_QUERIES / ATTN_STRIP + 3) * AT(block_size)];
#if ATTN_PAIRED
  uint32_t ppairs[ATTN_KEYS / 2 * ATTN_STRIP];
  AT(Halves) x;                              // in place of k and v
#endif
  W *rows, *k, *v;
  uint8_t ok[ATTN_KEYS * ATTN_PANEL], keep[ATTN_KEYS * ATTN_STRIP];
  AT(Soon) soon;
  AT(Strip) strip[ATTN_QUERIES / ATTN_STRIP];
} __attribute__((aligned(64))) AT(Forward);

// Scores of a panel, times by, to probabilities relative to a maximum; what was summed so far fades when that rises. It does
// only where a score is more than 2^ATTN_RISE times as probable: what is left above 1 has the same error.
ATTN_SLOW void AT(softmax)(AT(Forward) *u, AT(Strip) *z, i64 d, int at, i64 see, int masked, W by) {
  W top[ATTN_PANEL], sum[ATTN_PANEL], down[ATTN_PANEL], fade[ATTN_PANEL], was[ATTN_PANEL], was_sum[ATTN_PANEL];
  int rose = 0;
  const W rise = ATTN_UNIT == 1 ? ATTN_RISE * (W)0.6931471805599453 : ATTN_RISE;
  for (int i = 0; i < ATTN_PANEL; i++) top[i] = was[i] = z->top[at + i];
  for (int i = 0; i < ATTN_PANEL; i++) was_sum[i] = z->sum[at + i];
  for (i64 j = 0; j < see; j++) {
    W *p = u->p + j * ATTN_STRIP + at;
    const uint8_t *ok = u->ok + j * ATTN_PANEL;
    if (masked)
      for (int i = 0; i < ATTN_PANEL; i++) p[i] = ok[i] ? p[i] : -(W)MT_INF_F32;
    for (int i = 0; i < ATTN_PANEL; i++) top[i] = p[i] > top[i] ? p[i] : top[i];
  }
  for (int i = 0; i < ATTN_PANEL; i++) top[i] = (top[i] - was[i]) * by > rise ? top[i] : was[i];
  for (int i = 0; i < ATTN_PANEL; i++) fade[i] = AT(exp)((was[i] - top[i]) * by);
  for (int i = 0; i < ATTN_PANEL; i++) sum[i] = was_sum[i] * fade[i], down[i] = -top[i] * by;
  for (int i = 0; i < ATTN_PANEL; i++) rose |= top[i] != was[i];
  for (int i = 0; i < ATTN_PANEL; i++) z->top[at + i] = top[i];
  for (i64 j = 0; j < see; j++) {
    W *p = u->p + j * ATTN_STRIP + at;
    for (int i = 0; i < ATTN_PANEL; i++) p[i] = AT(exp)(ATTN_FMA(p[i], by, down[i]));
    for (int i = 0; i < ATTN_PANEL; i++) sum[i] += p[i];
  }
  for (int i = 0; i < ATTN_PANEL; i++) z->sum[at + i] = sum[i];
  W *o = z->o + at;
  for (i64 e = 0; e < d && rose; e++)
    for (int i = 0; i < ATTN_PANEL; i++) o[e * ATTN_STRIP + i] *= fade[i];
}

// Rounded relative to the maximum so far, not to the sum: the same error.
ATTN_SLOW void AT(halve)(W *p, i64 see, int32_t half) {
  for (i64 j = 0; j < see && half == 1; j++)
    for (int i = 0; i < ATTN_PANEL; i++) p[j * ATTN_STRIP + i] = (W)round_bf16((float)p[j * ATTN_STRIP + i]);
  for (i64 j = 0; j < see && half == 2; j++)
    for (int i = 0; i < ATTN_PANEL; i++) p[j * ATTN_STRIP + i] = (W)round_f16((float)p[j * ATTN_STRIP + i]);
}

ATTN_SLOW void AT(strip_in)(AT(Forward) *u, AT(Strip) *z, const AT(Head) *h) {
  const Attention *a = h->a;
  i64 d = a->d, width = AT(width)(a);
#if ATTN_PAIRED
  if (AT(paired)(a)) {
    AT(half_rows)(u->x.rows, width, ATTN_STRIP, h, ATTN_q, a->along_s[ATTN_q], z->q0, z->n), AT(signed)(u->x.rows,
        ATTN_STRIP * width, a->scale);
    AT(turned)(z->qturned, ATTN_STRIP, u->x.rows, width / 2, ATTN_STRIP, width / 2);
  }
#endif
  if (!AT(paired)(a)) {
    AT(rows_in)(u->rows, width, ATTN_STRIP, AT(row)(h, ATTN_q, a->along_s[ATTN_q], z->q0), a->stored[ATTN_q], z->n, d,
        a->along_s[ATTN_q], a->along_d[ATTN_q], (W)a->scale);
    AT(turned)(z->q, ATTN_STRIP, u->rows, width, ATTN_STRIP, width);
  }
  for (int i = 0; i < ATTN_STRIP; i++) z->top[i] = (W)-1e30, z->sum[i] = 0;
  AT(range)(h, z->q0, z->n, &z->from, &z->to);
  for (i64 i = 0; i < d * ATTN_STRIP && z->from >= z->to; i++) z->o[i] = 0;
}

ATTN_SLOW void AT(strip_out)(AT(Forward) *u, AT(Strip) *z, const AT(Head) *h, W by) {
  const Attention *a = h->a;
  i64 d = a->d, width = AT(width)(a), n = z->n;
  W share[ATTN_STRIP];
  for (int i = 0; i < ATTN_STRIP; i++) share[i] = z->sum[i] > 0 ? (a->draws ? (W)a->enlarge : 1) / z->sum[i] : 0;
  W *o = z->o;
  for (i64 e = 0; e < d; e++)
    for (int i = 0; i < ATTN_STRIP; i++) o[e * ATTN_STRIP + i] *= share[i];
  AT(turned)(u->rows, width, z->o, ATTN_STRIP, width, ATTN_STRIP);
  AT(rows_out)(AT(row)(h, ATTN_out, a->along_s[ATTN_out], z->q0), a->stored[ATTN_out], n, d, a->along_s[ATTN_out],
      a->along_d[ATTN_out], u->rows, width);
  for (int i = 0; i < ATTN_STRIP; i++) z->sum[i] = z->sum[i] > 0 ? z->top[i] * by + EXP_1(log,
      W)(z->sum[i]) : (W)MT_INF_F32;
  for (i64 i = 0; i < n && h->at[ATTN_lse]; i++) AT(store)(AT(row)(h, ATTN_lse, a->along_s[ATTN_lse], z->q0),
      ATTN_work, i * a->along_s[ATTN_lse], z->sum[i]);
}

#if ATTN_PAIRED
// A block of keys, panel by panel: while one goes through softmax, the sums of the one before and the scores of the next are made.
ATTN_SLOW void AT(half_block)(AT(Forward) *u, const AT(Head) *h, i64 strips, const uint16_t *k, i64 sk, i64 k0, W by) {
  const Attention *a = h->a;
  struct { AT(Strip) *z; i64 at, m, see; } panel[ATTN_QUERIES / ATTN_PANEL];
  AT(Job) scores[ATTN_QUERIES / ATTN_PANEL], sums[ATTN_QUERIES / ATTN_PANEL];
  i64 width = AT(width)(a), n = 0;
  for (i64 i = 0; i < 2 * strips; i++) {
    AT(Strip) *z = &u->strip[i / 2];
    i64 at = i % 2 * ATTN_PANEL, m = z->to - k0 < ATTN_KEYS ? z->to - k0 : ATTN_KEYS, see = AT(seen)(h, z->q0, z->n,
        k0, m, at), up = AT(up)(see);
    if (k0 < z->from || see <= 0) continue;
    panel[n].z = z, panel[n].at = at, panel[n].m = m, panel[n].see = see;
    scores[n] = (AT(Job)){.c = u->p + n % 2 * ATTN_KEYS * ATTN_PANEL, .cm = ATTN_PANEL, .m = up, .n = ATTN_PANEL,
        .a = k, .am = sk, .b = z->qturned + at, .bk = ATTN_STRIP, .k = width, .fresh = 1};
    sums[n] = (AT(Job)){.c = z->o + at, .cm = ATTN_STRIP, .m = width, .n = ATTN_PANEL, .a = u->x.turned,
        .am = ATTN_KEYS, .b = u->ppairs + n % 2 * ATTN_PANEL, .bk = ATTN_STRIP, .k = up, .fresh = k0 == z->from};
    n++;
  }
  if (n) AT(all_steps)(&scores[0]);
  for (i64 i = 0; i < n; i++) {
    AT(Strip) *z = panel[i].z;
    i64 at = panel[i].at;
    AT(Jobs) jobs = {.at = 0};
    if (i) AT(add)(&jobs, sums[i - 1]);
    if (i + 1 < n) AT(add)(&jobs, scores[i + 1]);
    if (a->draws && (i == 0 || panel[i - 1].z != z)) AT(drawn)(h, z->q0, z->n, k0, panel[i].m, u->keep);
    int masked = AT(hidden)(h, z->q0, z->n, k0, panel[i].m, at, u->ok);
    AT(Tops) tops;
    AT(floats) fade[2];
    for (int v = 0; v < 2; v++) tops.top[v] = *(AT(floats) *)(z->top + at + 16 * v),
        tops.sum[v] = *(AT(floats) *)(z->sum + at + 16 * v);
    int rose = AT(half_softmax)(u->ppairs + i % 2 * ATTN_PANEL, &tops, fade, u->p + i % 2 * ATTN_KEYS * ATTN_PANEL,
        panel[i].see, masked ? u->ok : 0, a->draws ? u->keep + at : 0, by, &jobs, &u->soon);
    AT(last_steps)(&jobs);
    for (int v = 0; v < 2; v++) *(AT(floats) *)(z->top + at + 16 * v) = tops.top[v],
        *(AT(floats) *)(z->sum + at + 16 * v) = tops.sum[v];
    W *o = z->o + at;
    for (i64 e = 0; e < width && rose && k0 > z->from; e++)
      for (int v = 0; v < 2; v++) *(AT(floats) *)(o + e * ATTN_STRIP + 16 * v) *= fade[v];
  }
  if (n) AT(all_steps)(&sums[n - 1]);
}
#endif

ATTN_SLOW void AT(block)(AT(Forward) *u, const AT(Part) *part, const AT(Part) *next) {
  const AT(Head) *h = &part->h;
  const Attention *a = h->a;
  i64 q0 = part->q0, n = part->n, d = a->d, width = AT(width)(a), from, to, strips = (n + ATTN_STRIP - 1) / ATTN_STRIP;
  int paired = AT(paired)(a);
  W by = paired ? AT(size_of)(a->scale) : 1, *room = u->room;
  u->rows = AT(take)(&room, ATTN_STRIP * width);
#if ATTN_PAIRED
  if (paired) u->x = AT(halves_in)(&room, width);
#endif
  if (!paired) u->k = AT(take)(&room, ATTN_KEYS * width), u->v = AT(take)(&room, ATTN_KEYS * width);
  for (i64 i = 0; i < strips; i++) {
    AT(Strip) *z = &u->strip[i];
    z->q = AT(take)(&room, ATTN_STRIP * width), z->o = AT(take)(&room, ATTN_STRIP * width);
#if ATTN_PAIRED
    z->qturned = (uint32_t *)(void *)z->q;
#endif
    z->q0 = q0 + i * ATTN_STRIP, z->n = n - i * ATTN_STRIP < ATTN_STRIP ? n - i * ATTN_STRIP : ATTN_STRIP;
    AT(strip_in)(u, z, h);
  }
  AT(range)(h, q0, n, &from, &to);
  for (i64 k0 = from; k0 < to; k0 += ATTN_KEYS) {
    i64 some = to - k0 < ATTN_KEYS ? to - k0 : ATTN_KEYS, sk, sv;
    const W *k = 0, *v = 0;
    AT(soon_keys)(&u->soon, part, next, 0, k0, from, to), AT(soon_pace)(&u->soon, part, k0, paired ? 16 : 22);
    if (!paired) k = AT(keys)(h, ATTN_k, k0, some, strips == 1, u->k, &sk), v = AT(keys)(h, ATTN_v, k0, some,
        strips == 1, u->v, &sv);
#if ATTN_PAIRED
    const uint16_t *hk = 0, *hv;
    if (paired) {
      hv = AT(half_keys)(h, ATTN_v, k0, some, strips == 1, u->x.rows, &sv), AT(half_turned)(&u->x, hv, sv,
          AT(up)(some), width);
      hk = AT(half_keys)(h, ATTN_k, k0, some, strips == 1, u->x.rows, &sk);
      AT(half_block)(u, h, strips, hk, sk, k0, by * ATTN_UNIT);
      continue;
    }
#endif
    for (i64 i = 0; i < strips; i++) {
      AT(Strip) *z = &u->strip[i];
      i64 m = z->to - k0 < ATTN_KEYS ? z->to - k0 : ATTN_KEYS, see[2];
      if (k0 < z->from || m <= 0) continue;
      for (int x = 0; x < 2; x++) see[x] = AT(seen)(h, z->q0, z->n, k0, m, x * ATTN_PANEL);
      if (a->draws) AT(drawn)(h, z->q0, z->n, k0, m, u->keep);
      AT(across)(see, u->p, k, sk, z->q, d, &u->soon);
      for (int at = 0; at < z->n; at += ATTN_PANEL) {
        i64 all = see[at / ATTN_PANEL];
        W *p = u->p + at;
        AT(softmax)(u, z, k0 > z->from ? d : 0, at, all, AT(hidden)(h, z->q0, z->n, k0, m, at, u->ok), by * ATTN_UNIT);
        for (i64 j = 0; j < all && a->draws; j++)
          for (int x = 0; x < ATTN_PANEL; x++) p[j * ATTN_STRIP + x] = u->keep[j * ATTN_STRIP + at + x] ? p[j * ATTN_STRIP + x] : 0;
        if (a->half) AT(halve)(p, all, a->half);
      }
      AT(along)(see, z->o, d, v, sv, u->p, k0 == z->from, &u->soon);
    }
  }
  for (i64 i = 0; i < strips; i++) AT(strip_out)(u, &u->strip[i], h, by);
}

ATTN_SLOW void AT(forward)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  AT(Forward) u;
  i64 blocks = (a->s_size + a->block - 1) / a->block;
  AT(tiles_begin)(a);
  AT(Part) part[2];                          // one, and the next
  for (i64 at = lo; at < hi; at++) {
    for (i64 x = at == lo ? at : at + 1; x <= at + 1 && x < hi; x++)   // the longest first
      AT(part)(&part[x % 2], a, buf, scalars, x / blocks / a->groups, x / blocks % a->groups, blocks - 1 - x % blocks);
    const AT(Part) *p = &part[at % 2];
    const AT(Head) *h = &p->h;
    i64 rest = p->q0 + p->n, n = p->all - p->n, step = a->along_s[ATTN_out];
    if (p->n) AT(block)(&u, p, at + 1 < hi ? &part[(at + 1) % 2] : 0);
    AT(rows_zero)(AT(row)(h, ATTN_out, step, rest), a->stored[ATTN_out], n, a->d, step, a->along_d[ATTN_out]);
    step = a->along_s[ATTN_lse];
    if (h->at[ATTN_lse]) AT(rows_zero)(AT(row)(h, ATTN_lse, step, rest), ATTN_work, n, 1, step, 0);
  }
  AT(tiles_end)(a);
}

// ---- backward: a unit is a chunk of the query blocks of all heads that share keys -------------------------------------------
typedef struct {                             // of queries side by side
  W *qrows, *q, *orows, *o, *dq, lse[ATTN_STRIP], delta[ATTN_STRIP];   // q, o (do), dq: [d, queries]
  i64 q0, n, from, to;                       // n of them from q0, the keys that they see
#if ATTN_PAIRED
  AT(Halves) qx, ox;                         // in place of the rows, q and o
#endif
} AT(Back);

typedef struct {                             // what vectors and tiles are read from first: at multiples of their size
  W p[ATTN_KEYS * ATTN_STRIP], ds[ATTN_KEYS * ATTN_STRIP], sums[2 * ATTN_SUMS],
      room[(5 * ATTN_QUERIES / ATTN_STRIP + 4) * AT(block_size)];
#if ATTN_PAIRED
  uint16_t prows[ATTN_KEYS * ATTN_QUERIES], dsrows[ATTN_KEYS * ATTN_QUERIES];
  uint32_t dspairs[ATTN_KEYS / 2 * ATTN_STRIP];
  AT(Halves) x;                              // in place of k
  uint16_t *vrows;                           // of v
  uint32_t *qpairs, *opairs;                 // of q and do of all strips
#endif
  W *k, *v, *rows;
  uint8_t ok[ATTN_KEYS * ATTN_PANEL], keep[ATTN_KEYS * ATTN_STRIP];
  AT(Soon) soon;
  AT(Back) strip[ATTN_QUERIES / ATTN_STRIP];
} __attribute__((aligned(64))) AT(Backward);

typedef struct { W *at; i64 step; } AT(Sum); // rows of d, padded to the width

// scores of a panel, times by, and do·v to p and ds
ATTN_SLOW void AT(slopes)(AT(Backward) *u, const AT(Back) *z, int at, i64 see, int masked, const Attention *a, W by) {
  const W *lse = z->lse + at, *delta = z->delta + at, enlarge = (W)a->enlarge;
  for (i64 j = 0; j < see; j++) {
    W *p = u->p + j * ATTN_STRIP + at, *ds = u->ds + j * ATTN_STRIP + at, x[ATTN_PANEL];
    const uint8_t *ok = u->ok + j * ATTN_PANEL, *keep = u->keep + j * ATTN_STRIP + at;
    for (int i = 0; i < ATTN_PANEL; i++) x[i] = AT(exp)(ATTN_FMA(p[i], by, -lse[i]));
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

// q and do of a block, Σ do·o
ATTN_SLOW void AT(queries_in)(AT(Back) *z, const AT(Head) *h) {
  const Attention *a = h->a;
  i64 q0 = z->q0, n = z->n;
  i64 d = a->d, width = AT(width)(a);
  AT(rows_in)(z->qrows, width, ATTN_STRIP, AT(row)(h, ATTN_out, a->along_s[ATTN_out], q0), a->stored[ATTN_out], n, d,
      a->along_s[ATTN_out], a->along_d[ATTN_out], 1);
  AT(rows_in)(z->orows, width, ATTN_STRIP, AT(row)(h, ATTN_dout, a->along_s[ATTN_dout], q0), a->stored[ATTN_dout], n,
      d, a->along_s[ATTN_dout], a->along_d[ATTN_dout], 1);
  AT(turned)(z->q, ATTN_STRIP, z->qrows, width, ATTN_STRIP, width), AT(turned)(z->o, ATTN_STRIP, z->orows, width,
      ATTN_STRIP, width);
  W sum[ATTN_STRIP] = {0};
  const W *q = z->q, *o = z->o;
  for (i64 e = 0; e < d; e++)
    for (int i = 0; i < ATTN_STRIP; i++) sum[i] += q[e * ATTN_STRIP + i] * o[e * ATTN_STRIP + i];
  for (int i = 0; i < ATTN_STRIP; i++) z->delta[i] = sum[i];
  AT(rows_in)(z->qrows, width, ATTN_STRIP, AT(row)(h, ATTN_q, a->along_s[ATTN_q], q0), a->stored[ATTN_q], n, d,
      a->along_s[ATTN_q], a->along_d[ATTN_q], (W)a->scale);
  AT(turned)(z->q, ATTN_STRIP, z->qrows, width, ATTN_STRIP, width);
}

// What a block of keys gives: dk, dv, dq of the slopes between.
ATTN_SLOW void AT(gradients)(AT(Backward) *u, AT(Back) *z, const AT(Head) *h, const W *k, i64 sk, const W *v, i64 sv,
    i64 k0, i64 m, AT(Sum) dk, AT(Sum) dv) {
  const Attention *a = h->a;
  i64 d = a->d, width = AT(width)(a), n = z->n, see[2];
  for (int i = 0; i < 2; i++) see[i] = AT(seen)(h, z->q0, n, k0, m, i * ATTN_PANEL);
  AT(across)(see, u->p, k, sk, z->q, d, &u->soon);
  AT(across)(see, u->ds, v, sv, z->o, d, &u->soon);
  for (int at = 0; at < n; at += ATTN_PANEL) {
    i64 all = see[at / ATTN_PANEL];
    AT(slopes)(u, z, at, all, AT(hidden)(h, z->q0, n, k0, m, at, u->ok), a, ATTN_UNIT);
    if (a->half) AT(halve)(u->p + at, all, a->half), AT(halve)(u->ds + at, all, a->half);
  }
  AT(along)(see, z->dq, d, k, sk, u->ds, 0, &u->soon);
  i64 all = see[0], late = ATTN_PANEL, rest = see[1] - all;            // keys that both panels see; the others only the second
  i64 at0 = AT(place)(a, k0);
  W *dkr = dk.at + at0 * dk.step, *dvr = dv.at + at0 * dv.step;
  AT(product)(dvr, dv.step, all, width, u->p, ATTN_STRIP, 1, z->orows, width, n, 0, &u->soon);
  AT(product)(dkr, dk.step, all, width, u->ds, ATTN_STRIP, 1, z->qrows, width, n, 0, &u->soon);
  if (rest > 0) {
    AT(product)(dvr + all * dv.step, dv.step, rest, width, u->p + all * ATTN_STRIP + late, ATTN_STRIP, 1,
        z->orows + late * width, width, n - late, 0, &u->soon);
    AT(product)(dkr + all * dk.step, dk.step, rest, width, u->ds + all * ATTN_STRIP + late, ATTN_STRIP, 1,
        z->qrows + late * width, width, n - late, 0, &u->soon);
  }
}

#if ATTN_PAIRED
// Both by pairs; dk lacks the scale's size.
ATTN_SLOW void AT(half_queries_in)(AT(Backward) *u, AT(Back) *z, const AT(Head) *h) {
  const Attention *a = h->a;
  i64 q0 = z->q0, n = z->n;
  i64 width = AT(width)(a), all = ATTN_STRIP;
  uint32_t *out = (uint32_t *)(void *)z->qx.turned, *dout = (uint32_t *)(void *)z->ox.turned;
  AT(half_rows)(u->x.rows, width, all, h, ATTN_out, a->along_s[ATTN_out], q0, n), AT(turned)(out, all, u->x.rows, width / 2, all, width / 2);
  AT(half_rows)(z->ox.rows, width, all, h, ATTN_dout, a->along_s[ATTN_dout], q0, n), AT(turned)(dout, all, z->ox.rows,
      width / 2, all, width / 2);
  W sum[ATTN_STRIP] = {0};
  for (i64 e = 0; e < width / 2; e++)
    for (i64 i = 0; i < all; i++) {
      uint32_t x = out[e * all + i], y = dout[e * all + i];
      sum[i] += f32_bits(x << 16) * f32_bits(y << 16);
      sum[i] += f32_bits(x & 0xffff0000u) * f32_bits(y & 0xffff0000u);
    }
  for (int i = 0; i < ATTN_STRIP; i++) z->delta[i] = sum[i];
  AT(half_rows)(z->qx.rows, width, all, h, ATTN_q, a->along_s[ATTN_q], q0, n), AT(signed)(z->qx.rows, all * width,
      a->scale);
  AT(turned)(z->qx.turned, all, z->qx.rows, width / 2, all, width / 2);
  AT(half_pairs)(z->qx.pairs, z->qx.rows, width, width, all), AT(half_pairs)(z->ox.pairs, z->ox.rows, width, width,
      all);
}

// p, ds and dq of a block of keys; what a panel does not see of p and ds is 0. 32 keys at a time: while they go through the
// slopes, the scores and do·v of the next are made, and dq of the panel before.
ATTN_SLOW void AT(half_gradients)(AT(Backward) *u, const AT(Head) *h, i64 first, i64 last, const uint16_t *k, i64 sk,
    const uint16_t *v, i64 sv, i64 k0, i64 some) {
  const Attention *a = h->a;
  enum { MOST = ATTN_QUERIES / ATTN_PANEL * (ATTN_KEYS / 32) };
  struct { AT(Back) *z; i64 at, m, see, j, column, panel; } part[MOST];
  AT(Job) scores[MOST], slopes[MOST], dq[ATTN_QUERIES / ATTN_PANEL];
  i64 width = AT(width)(a), n = 0, panels = 0;
  int masked = 0;
  for (i64 i = 2 * first; i < 2 * last + 2; i++) {
    AT(Back) *z = &u->strip[i / 2];
    i64 at = i % 2 * ATTN_PANEL, column = i * ATTN_PANEL, m = z->to - k0 < ATTN_KEYS ? z->to - k0 : ATTN_KEYS,
        see = AT(seen)(h, z->q0, z->n, k0, m, at), half = n % 2;
    const uint32_t *q = (const uint32_t *)(const void *)z->qx.turned + at,
        *dout = (const uint32_t *)(const void *)z->ox.turned + at;
    for (i64 j = 0; j < AT(up)(some); j += 32) {
      if (j >= see) {
        for (i64 r = j * ATTN_QUERIES + column; r < (j + 32) * ATTN_QUERIES; r += ATTN_QUERIES)
          *(AT(words) *)(u->prows + r) = *(AT(words) *)(u->dsrows + r) = (AT(words)){0};
        continue;
      }
      half = n % 2;
      part[n].z = z, part[n].at = at, part[n].m = m, part[n].see = see, part[n].j = j, part[n].column = column,
          part[n].panel = panels;
      scores[n] = (AT(Job)){.c = u->p + half * 32 * ATTN_PANEL, .cm = ATTN_PANEL, .m = 32, .n = ATTN_PANEL,
          .a = k + j * sk, .am = sk, .b = q, .bk = ATTN_STRIP, .k = width, .fresh = 1};
      slopes[n] = (AT(Job)){.c = u->ds + half * 32 * ATTN_PANEL, .cm = ATTN_PANEL, .m = 32, .n = ATTN_PANEL,
          .a = v + j * sv, .am = sv, .b = dout, .bk = ATTN_STRIP, .k = width, .fresh = 1};
      n++;
    }
    if (see > 0)
      dq[panels] = (AT(Job)){.c = z->dq + at, .cm = ATTN_STRIP, .m = width, .n = ATTN_PANEL, .a = u->x.turned,
          .am = ATTN_KEYS, .b = u->dspairs + panels % 2 * ATTN_PANEL, .bk = ATTN_STRIP, .k = AT(up)(see)}, panels++;
  }
  if (n) AT(all_steps)(&scores[0]), AT(all_steps)(&slopes[0]);
  for (i64 i = 0; i < n; i++) {
    AT(Back) *z = part[i].z;
    i64 at = part[i].at, j = part[i].j, panel = part[i].panel;
    AT(Jobs) jobs = {.at = 0};
    if (j == 0 && panel) AT(add)(&jobs, dq[panel - 1]);
    if (i + 1 < n) AT(add)(&jobs, scores[i + 1]), AT(add)(&jobs, slopes[i + 1]);
    if (a->draws && j == 0 && (i == 0 || part[i - 1].z != z)) AT(drawn)(h, z->q0, z->n, k0, part[i].m, u->keep);
    if (j == 0) masked = AT(hidden)(h, z->q0, z->n, k0, part[i].m, at, u->ok);
    uint16_t *p = u->prows + j * ATTN_QUERIES + part[i].column, *ds = u->dsrows + j * ATTN_QUERIES + part[i].column;
    AT(half_slopes)(p, ATTN_QUERIES, ds, u->dspairs + j / 2 * ATTN_STRIP + panel % 2 * ATTN_PANEL,
        u->p + i % 2 * 32 * ATTN_PANEL, u->ds + i % 2 * 32 * ATTN_PANEL, part[i].see - j, z->lse + at, z->delta + at,
                    masked ? u->ok + j * ATTN_PANEL : 0, a->draws ? u->keep + j * ATTN_STRIP + at : 0,
                        AT(size_of)(a->scale) * ATTN_UNIT, (W)a->enlarge, &jobs, &u->soon);
    AT(last_steps)(&jobs);
  }
  if (panels) AT(all_steps)(&dq[panels - 1]);
}
#endif

ATTN_SLOW void AT(back_in)(AT(Backward) *u, AT(Back) *z, const AT(Head) *h) {
  (void)u;                                   // tiles have room there
  const Attention *a = h->a;
  W *dq = z->dq;
  for (int i = 0; i < ATTN_STRIP; i++) z->lse[i] = (W)MT_INF_F32;
  for (i64 i = 0; i < z->n; i++) z->lse[i] = AT(load)(AT(row)(h, ATTN_lse, a->along_s[ATTN_lse], z->q0), ATTN_work,
      i * a->along_s[ATTN_lse]) * ATTN_UNIT;
  for (i64 i = 0, all = AT(width)(a) * ATTN_STRIP; i < all; i++) dq[i] = 0;
#if ATTN_PAIRED
  if (AT(paired)(a)) AT(half_queries_in)(u, z, h);
#endif
  if (!AT(paired)(a)) AT(queries_in)(z, h);
  AT(range)(h, z->q0, z->n, &z->from, &z->to);
}

// last: of those that add to dk and dv, which are written next
ATTN_SLOW void AT(back)(AT(Backward) *u, const AT(Part) *part, const AT(Part) *next, int last, AT(Sum) dk, AT(Sum) dv) {
  const AT(Head) *h = &part->h;
  const Attention *a = h->a;
  i64 q0 = part->q0, n = part->n, width = AT(width)(a), from, to, strips = (n + ATTN_STRIP - 1) / ATTN_STRIP;
  int paired = AT(paired)(a);
  W *room = u->room;
  u->rows = AT(take)(&room, ATTN_STRIP * width);
#if ATTN_PAIRED
  if (paired) u->x = AT(halves_in)(&room, width), u->vrows = (uint16_t *)AT(take)(&room, ATTN_KEYS * width / 2);
  if (paired) u->qpairs = (uint32_t *)AT(take)(&room, ATTN_QUERIES * width / 2),
      u->opairs = (uint32_t *)AT(take)(&room, ATTN_QUERIES * width / 2);
#endif
  if (!paired) u->k = AT(take)(&room, ATTN_KEYS * width), u->v = AT(take)(&room, ATTN_KEYS * width);
  for (i64 i = 0; i < strips; i++) {
    AT(Back) *z = &u->strip[i];
    z->dq = AT(take)(&room, ATTN_STRIP * width);
#if ATTN_PAIRED
    if (paired) {
      z->qx = AT(halves_in)(&room, width), z->ox = AT(halves_in)(&room, width);
      z->qx.pairs = u->qpairs + i * ATTN_STRIP / 2 * width, z->ox.pairs = u->opairs + i * ATTN_STRIP / 2 * width;
    }
#endif
    if (!paired) {
      z->q = AT(take)(&room, ATTN_STRIP * width), z->qrows = AT(take)(&room, ATTN_STRIP * width);
      z->o = AT(take)(&room, ATTN_STRIP * width), z->orows = AT(take)(&room, ATTN_STRIP * width);
    }
    z->q0 = q0 + i * ATTN_STRIP, z->n = n - i * ATTN_STRIP < ATTN_STRIP ? n - i * ATTN_STRIP : ATTN_STRIP;
    AT(back_in)(u, z, h);
  }
  AT(range)(h, q0, n, &from, &to);
  for (i64 k0 = from; k0 < to; k0 += ATTN_KEYS) {
    i64 some = to - k0 < ATTN_KEYS ? to - k0 : ATTN_KEYS, sk, sv, first = -1, end = -1, at0 = AT(place)(a, k0);
    (void)end;                               // of the strips that see some of the keys: tiles take them at once
    const W *k = 0, *v = 0;
    AT(soon_keys)(&u->soon, part, next, 1, k0, from, to);
    if (last) AT(soon)(&u->soon, h, ATTN_dk, at0, some, 1), AT(soon)(&u->soon, h, ATTN_dv, at0, some, 1);
    AT(soon_pace)(&u->soon, part, k0, paired ? 16 : 55);
    if (!paired) k = AT(keys)(h, ATTN_k, k0, some, strips == 1, u->k, &sk), v = AT(keys)(h, ATTN_v, k0, some,
        strips == 1, u->v, &sv);
#if ATTN_PAIRED
    const uint16_t *hk = 0, *hv = 0;
    if (paired) {
      hk = AT(half_keys)(h, ATTN_k, k0, some, strips == 1, u->x.rows, &sk), hv = AT(half_keys)(h, ATTN_v, k0, some,
          strips == 1, u->vrows, &sv);
      AT(half_turned)(&u->x, hk, sk, AT(up)(some), width);
    }
#endif
    for (i64 i = 0; i < strips; i++) {
      AT(Back) *z = &u->strip[i];
      i64 m = z->to - k0 < ATTN_KEYS ? z->to - k0 : ATTN_KEYS;
      if (k0 < z->from || m <= 0) continue;
      first = first < 0 ? i : first, end = i;
      if (paired) continue;
      if (a->draws) AT(drawn)(h, z->q0, z->n, k0, m, u->keep);
      AT(gradients)(u, z, h, k, sk, v, sv, k0, m, dk, dv);
    }
#if ATTN_PAIRED
    if (!paired || first < 0) continue;
    AT(half_gradients)(u, h, first, end, hk, sk, hv, sv, k0, some);
    i64 from_q = first * ATTN_STRIP,
        all = (end + 1) * ATTN_STRIP < n ? (end + 1) * ATTN_STRIP - from_q : AT(up)(n) - from_q;
    AT(pair_product)(dv.at + at0 * dv.step, dv.step, AT(up)(some), width, u->prows + from_q, ATTN_QUERIES,
        u->opairs + from_q / 2 * width, width, all, 0);
    AT(pair_product)(dk.at + at0 * dk.step, dk.step, AT(up)(some), width, u->dsrows + from_q, ATTN_QUERIES,
        u->qpairs + from_q / 2 * width, width, all, 0);
#endif
  }
  for (i64 i = 0; i < strips; i++) {
    AT(Back) *z = &u->strip[i];
    W *dq = z->dq, scale = (W)a->scale;
    for (i64 e = 0, all = a->d * ATTN_STRIP; e < all; e++) dq[e] *= scale;
    AT(turned)(u->rows, width, z->dq, ATTN_STRIP, width, ATTN_STRIP);
    AT(rows_out)(AT(row)(h, ATTN_dq, a->along_s[ATTN_dq], z->q0), a->stored[ATTN_dq], z->n, a->d, a->along_s[ATTN_dq],
        a->along_d[ATTN_dq], u->rows, width);
  }
}

// Rows of a unit's sums: to whole panels, which products fill.
MT_FN i64 AT(sum_rows)(const Attention *a) { return (a->t + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL; }

// where unit's sums are: dk, then dv
MT_FN AT(Sum) AT(sum)(const AT(Head) *h, void *const *buf, W *near, i64 unit, int o) {
  const Attention *a = h->a;
  i64 width = AT(width)(a);
  if (a->direct) return (AT(Sum)){(W *)(void *)h->at[o], a->along_t[o]};
  if (a->near) return (AT(Sum)){near + (o == ATTN_dv) * ATTN_SUMS, width};
  W *work = (W *)buf[a->work];
  return (AT(Sum)){work + (unit * 2 + (o == ATTN_dv)) * AT(sum_rows)(a) * width, width};
}

// The chunks' sums in their order, of one head of keys.
ATTN_SLOW void AT(finish)(const AT(Head) *h, void *const *buf, W *near, i64 keys) {
  const Attention *a = h->a;
  W sum[ATTN_WIDTH];
  i64 width = AT(width)(a);
  for (int o = ATTN_dk; o <= ATTN_dv; o++) {
    W by = AT(paired)(a) && o == ATTN_dk ? AT(size_of)(a->scale) : 1;
    AT(Sum) from = AT(sum)(h, buf, near, keys * a->chunks, o);
    for (i64 e = 0, all = a->chunks == 1 && by != 1 ? a->t * width : 0; e < all; e++) from.at[e] *= by;
    if (a->chunks == 1) AT(rows_out)(h->at[o], a->stored[o], a->t, a->d, a->along_t[o], a->along_d[o], from.at, width);
    for (i64 j = 0; j < a->t && a->chunks > 1; j++) {
      from = AT(sum)(h, buf, near, keys * a->chunks, o);
      for (i64 e = 0; e < width; e++) sum[e] = from.at[j * width + e];
      for (i64 c = 1; c < a->chunks; c++) {
        from = AT(sum)(h, buf, near, keys * a->chunks + c, o);
        for (i64 e = 0; e < width; e++) sum[e] += from.at[j * width + e];
      }
      for (i64 e = 0; e < width; e++) sum[e] *= by;
      AT(rows_out)(AT(row)(h, o, a->along_t[o], j), a->stored[o], 1, a->d, a->along_t[o], a->along_d[o], sum, width);
    }
    AT(rows_zero)(AT(row)(h, o, a->along_t[o], a->t), a->stored[o], a->t_size - a->t, a->d, a->along_t[o], a->along_d[o]);
  }
}

// a unit is one head of keys
ATTN_SLOW void AT(combine)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  for (i64 unit = lo; unit < hi; unit++) {
    AT(Head) h;
    AT(head)(&h, a, buf, scalars, unit, 0);
    AT(finish)(&h, buf, 0, unit);
  }
}

ATTN_SLOW void AT(backward)(const Attention *a, void *const *buf, const void *scalars, i64 lo, i64 hi) {
  AT(Backward) u;
  i64 blocks = (a->s_size + a->block - 1) / a->block, width = AT(width)(a), all = a->groups * blocks;
  AT(Part) part[2];                          // one, and the next
  int now = 0, ready = 0;                    // which; whether it is there
  AT(tiles_begin)(a);
  for (i64 unit = lo; unit < hi; unit++) {
    AT(Head) h;
    AT(head)(&h, a, buf, scalars, unit / a->chunks, 0);
    AT(Sum) dk = AT(sum)(&h, buf, u.sums, unit, ATTN_dk), dv = AT(sum)(&h, buf, u.sums, unit, ATTN_dv);
    for (i64 j = 0; j < (a->direct ? a->t_size : AT(sum_rows)(a)); j++)
      for (i64 e = 0; e < width; e++) dk.at[j * dk.step + e] = dv.at[j * dv.step + e] = 0;
    for (i64 at = unit % a->chunks; at < all; at += a->chunks, now = !now) {
      const AT(Part) *p = &part[now];
      int last = at + a->chunks >= all;
      i64 then = last ? unit + 1 : unit, next = last ? then % a->chunks : at + a->chunks;
      if (!ready) AT(part)(&part[now], a, buf, scalars, unit / a->chunks, at / blocks, at % blocks);
      ready = then < hi && next < all;
      if (ready) AT(part)(&part[!now], a, buf, scalars, then / a->chunks, next / blocks, next % blocks);
      if (p->n) AT(back)(&u, p, ready ? &part[!now] : 0, last && a->chunks == 1 && !a->direct, dk, dv);
      i64 step = a->along_s[ATTN_dq];
      AT(rows_zero)(AT(row)(&p->h, ATTN_dq, step, p->q0 + p->n), a->stored[ATTN_dq], p->all - p->n, a->d, step,
          a->along_d[ATTN_dq]);
    }
    if (a->chunks == 1 && !a->direct) AT(finish)(&h, buf, u.sums, unit);
  }
  AT(tiles_end)(a);
}

#undef AT
#undef ATTN_1
#undef ATTN_2
#undef EXP_1
#undef EXP_2
#undef ATTN_IS_f32
#undef ATTN_IS_f64
#undef ATTN_SINGLE
#undef ATTN_PAIRED
#undef ATTN_UNIT
#undef ATTN_FMA
#undef ATTN_SLOW
#undef ATTN_CONTRACT
#undef ATTN_OPEN
#endif
