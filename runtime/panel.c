// panel.c -- see panel.h.
//
// Along k everything is counted in units of four bytes: one f32, or two bf16. b is copied once per tile and chunk of k, into
// panels of [k][16] units. A block of c then stays in registers over the chunk. By vectors it is up to 28 rows of 16 sums:
// the same rows of a lie as [k][rows], and each of their units is multiplied, out of memory, with a vector of b; so there is
// about one instruction a multiplication, which also is fast on a core that runs another thread. By tiles (the CPU's: 16 rows
// of 16 units) it is 32 × 32, and the rows of a are read where they are; some are copied first where its columns lie side by
// side, or an edge is reached. What chunks before have summed waits in the room. An element's sum runs over k in order
// whatever the tile, so tiles of any size give the same bits. Beyond the edges of k there are zeros, as what is there could be
// no number; beyond those of m and n anything, as it goes nowhere.
#include "runtime/panel.h"
#include "runtime/jit.h"
#include "runtime/vector.h"
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

enum { LANES = 16, ROWS = 28, SIDE = 32 };   // of the blocks: ROWS × LANES by vectors, SIDE × SIDE by tiles
// units of k at a time, by vectors and by tiles; rows of a that are copied at a time; units between panels, lest their lines
// share few sets of a cache; rows that are fetched before they are copied
enum { CHUNK = 384, CHUNK_TILES = 768, TURNED = 128, PAD = 16, AHEAD = 16 };
enum { PART = 128, GROUP = 4 };              // by tiles: units of k, and blocks side by side, see row_by_tiles
enum { SPILL = 16 * ROWS + LANES };          // what copying writes beyond a panel of a
enum { ROOM_A = TURNED * (CHUNK_TILES + PAD) };
typedef float __attribute__((may_alias)) Unit;                        // only moved, where it is two bf16
static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

#define MT_AVX512_BF16 MT_AVX512 ",avx512bf16"
#define VECTOR static __attribute__((target(MT_AVX512)))
#define INLINE static inline __attribute__((always_inline, target(MT_AVX512)))
#define EACH _Pragma("GCC unroll 32")                                // as many as there are

typedef struct {
  const PanelShape *s;
  int64_t per;                               // elements of a unit
  bool tiles;
  int64_t panel, wide;                       // units from one panel of b to the next; columns with those beyond
  Unit *b, *a;
  float *sums;
} Tile;

// ---- copying --------------------------------------------------------------------------------------------------------------
INLINE __m512i load_units(const void *p, int64_t halves) {           // zeros from there on
  if (halves >= 32) return _mm512_loadu_si512(p);
  return halves <= 0 ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi16((1u << halves) - 1, p);
}

INLINE void turn(__m512i r[16]) {                                    // rows become columns
  __m512i t[16];
  EACH for (int i = 0; i < 16; i += 2)
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  EACH for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]), r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]), r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  EACH for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88), t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  EACH for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88), r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// 16 units side by side, of which the elements lie in rows `step` bytes apart: `rows` of them, `columns` are there
INLINE __m512i beside(const char *p, int64_t step, int64_t per, int64_t rows, int64_t columns) {
  if (per == 1) return load_units(p, 2 * columns);
  __mmask16 m = columns >= 16 ? 0xffff : (__mmask16)((1u << columns) - 1);
  __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p));
  if (rows < 2) return low;
  return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p + step)), 16));
}

// Of one row of units, elements side by side along n: 16 from p on, of which n - j and k - i are there
INLINE __m512i units_beside(const char *p, int64_t step, int64_t per, int64_t k, int64_t n) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                         39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  _mm_prefetch(p + AHEAD * per * step, _MM_HINT_T0);
  if (per == 2) _mm_prefetch(p + (AHEAD * 2 + 1) * step, _MM_HINT_T0);
  if (per == 2 && n >= 16 && k > 1)
    return _mm512_permutex2var_epi16(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)p)), first,
                                     _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(p + step))));
  return beside(p, step, per, k, n);
}

// Units [k][n] of elements that lie side by side along n, into panels of [k][16].
INLINE void copy_beside(Unit *to, int64_t panel, const char *from, int64_t step, int64_t per, int64_t k, int64_t n) {
  for (int64_t i = 0; i < k; i += per, to += LANES, from += per * step) {
    Unit *t = to;
    const char *p = from;
    for (int64_t j = 0; j < n; j += LANES, p += LANES * 4 / per, t += panel)
      _mm512_store_si512(t, units_beside(p, step, per, k - i, n - j));
  }
}

// 16 rows of units, `step` bytes apart, of which `rows` and `halves` along k are there: as 16 rows along k
INLINE void load_turned(__m512i r[16], const char *p, int64_t step, int64_t rows, int64_t halves) {
  bool whole = rows >= 16 && halves >= 32;
  EACH for (int x = 0; x < 16; x++, p += step)
    r[x] = whole ? _mm512_loadu_si512(p) : load_units(p, x < rows ? halves : 0);
  turn(r);
}

VECTOR void copy_b(const Tile *t, const char *b, int64_t k, int64_t j0) {       // columns from j0 on
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = (k + t->per - 1) / t->per;
  if (s->bn == 1 || s->n == 1) {
    Unit *to = t->b + j0 / LANES * t->panel;
    if (t->per == 1) copy_beside(to, t->panel, b + j0 * bytes, s->bk * bytes, 1, k, s->n - j0);
    else copy_beside(to, t->panel, b + j0 * bytes, s->bk * bytes, 2, k, s->n - j0);
    size_t beyond = t->tiles ? (size_t)(up(units, 16) - units) * LANES * sizeof *t->b : 0;
    for (int64_t j = 0; beyond && j < s->n; j += LANES) memset(t->b + j / LANES * t->panel + units * LANES, 0, beyond);
  } else {
    for (int64_t j = 0; j < s->n; j += LANES)
      for (int64_t i = 0; i < units; i += 16) {
        __m512i r[16];
        Unit *to = t->b + j / LANES * t->panel + i * LANES;
        load_turned(r, b + j * s->bn * bytes + i * 4, s->bn * bytes, s->n - j, (k - i * t->per) * (2 / t->per));
        EACH for (int x = 0; x < 16; x++) _mm512_store_si512(to + x * LANES, r[x]);
      }
  }
}

// m ≤ ROWS rows of a, k elements, as [k][up(m, 2)] units. A vector is stored whole; what lies behind it is stored after it.
VECTOR void copy_a(const Tile *t, Unit *to, const char *a, int64_t m, int64_t k) {
  int64_t rows = up(m, 2);
  const PanelShape *s = t->s;
  int64_t per = t->per, bytes = 4 / per, units = (k + per - 1) / per;
  if (s->ak == 1 || s->k == 1) {
    for (int64_t i = 0; i < units; i += 16)
      for (int64_t y = m > LANES ? LANES : 0; y >= 0; y -= LANES) {
        __m512i r[16];
        load_turned(r, a + y * s->am * bytes + i * 4, s->am * bytes, m - y, (k - i * per) * (2 / per));
        EACH for (int x = 0; x < 16; x++) _mm512_storeu_si512(to + (i + x) * rows + y, r[x]);
      }
  } else {
    int64_t step = s->ak * bytes;
    for (int64_t i = 0; i < units; i++, a += per * step, to += rows)
      for (int64_t y = 0; y < m; y += LANES) {
        const char *p = a + y * bytes;
        _mm512_storeu_si512(to + y, per == 1 ? units_beside(p, step, 1, k - i, m - y)
                                             : units_beside(p, step, 2, k - 2 * i, m - y));
      }
  }
}

// m rows of a, k elements, into `rows` rows of `row` units; zeros up to 16 units
VECTOR void copy_a_rows(const Tile *t, const char *a, int64_t m, int64_t rows, int64_t k, int64_t row) {
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = (k + t->per - 1) / t->per;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t x = 0; x < units; x += 16) {
      const char *p = a + i * s->am * bytes + x * 4;
      _mm512_store_si512(t->a + i * row + x, load_units(p, i < m ? (k - x * t->per) * (2 / t->per) : 0));
    }
}

// The same of bf16 where the columns lie side by side. 32 columns at once: pairs along k are made of half of each 16 bytes.
VECTOR void turn_a_rows(const Tile *t, const char *a, int64_t m, int64_t rows, int64_t k, int64_t row) {
  int64_t step = t->s->ak * 2;
  for (int64_t x = 0; x < (k + 1) / 2; x += 16)
    for (int64_t i = 0; i < rows; i += 32) {
      __m512i low[16], high[16];
      const char *p = a + 2 * x * step + i * 2;
      bool whole = i + 32 <= m && 2 * x + 32 <= k;
      EACH for (int y = 0; y < 16; y++, p += 2 * step) {
        int64_t left = k - 2 * (x + y);
        __m512i even = whole ? _mm512_loadu_si512(p) : load_units(p, left > 0 ? m - i : 0);
        __m512i odd = whole ? _mm512_loadu_si512(p + step) : load_units(p + step, left > 1 ? m - i : 0);
        _mm_prefetch(p + 32 * step, _MM_HINT_T0), _mm_prefetch(p + 33 * step, _MM_HINT_T0);
        low[y] = _mm512_unpacklo_epi16(even, odd), high[y] = _mm512_unpackhi_epi16(even, odd);
      }
      turn(low), turn(high);
      Unit *to = t->a + i * row + x;
      EACH for (int y = 0; y < 16; y++) {
        int at = y / 4 * 8 + y % 4;
        _mm512_store_si512(to + at * row, low[y]), _mm512_store_si512(to + (at + 4) * row, high[y]);
      }
    }
}

// ---- a block's sums -------------------------------------------------------------------------------------------------------
// Where b lies before it is copied, f32 side by side; numbers from a row to the next
typedef struct { const Unit *at; int64_t step; } Source;
// Where a block goes when it is done: c, if it is f32 that nothing is added to
typedef struct { float *c; int64_t cm; float alpha; bool stream; } Out;

// R × 16, a as [units][R], b as [units][16]. ROW(u): the u-th of b. Checked for undefined behaviour, they take minutes to compile.
#define BLOCK(R, name, isa, MULTIPLY, ROW) \
  __attribute__((target(isa), no_sanitize("undefined"))) static void name##_##R(\
      float *sum, bool fresh, const Unit *a, Unit *b, int64_t units, const Source *from, const Out *out) { \
    __m512 c[R]; \
    const Unit *source = from->at; \
    (void)source; \
    EACH for (int i = 0; i < R; i++) c[i] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(sum + i * LANES); \
    for (; units > 1; units -= 2, a += 2 * R, b += 2 * LANES) \
      EACH for (int u = 0; u < 2; u++) { \
        __m512 row = ROW(u); \
        EACH for (int i = 0; i < R; i++) c[i] = MULTIPLY(c[i], _mm512_set1_ps(a[u * R + i]), row); \
      } \
    if (units) { \
      __m512 row = ROW(0); \
      EACH for (int i = 0; i < R; i++) c[i] = MULTIPLY(c[i], _mm512_set1_ps(a[i]), row); \
    } \
    if (!out->c) { \
      EACH for (int i = 0; i < R; i++) _mm512_storeu_ps(sum + i * LANES, c[i]); \
      return; \
    } \
    __m512 alpha = _mm512_set1_ps(out->alpha); \
    EACH for (int i = 0; i < R; i++) c[i] = _mm512_mul_ps(c[i], alpha); \
    float *to = out->c; \
    if (out->stream) { \
      EACH for (int i = 0; i < R; i++, to += out->cm) _mm512_stream_ps(to, c[i]); \
    } else { \
      EACH for (int i = 0; i < R; i++, to += out->cm) _mm512_storeu_ps(to, c[i]); \
    } \
  }
#define PACKED(u) _mm512_load_ps(b + (u) * LANES)
#define PACKING(u) pack_row(&source, from->step, b + (u) * LANES)
INLINE __m512 pack_row(const Unit **from, int64_t step, Unit *to) {
  __m512 row = _mm512_loadu_ps(*from);
  _mm_prefetch(*from + LANES, _MM_HINT_T0);
  *from += step;
  _mm512_store_ps(to, row);
  return row;
}
#define F32(c, x, y) _mm512_fmadd_ps(x, y, c)
#define BF16(c, x, y) _mm512_dpbf16_ps(c, (__m512bh)(x), (__m512bh)(y))
#define ALL(X, ...) \
  X(2, __VA_ARGS__) X(4, __VA_ARGS__) X(6, __VA_ARGS__) X(8, __VA_ARGS__) X(10, __VA_ARGS__) X(12, __VA_ARGS__) \
  X(14, __VA_ARGS__) X(16, __VA_ARGS__) X(18, __VA_ARGS__) X(20, __VA_ARGS__) X(22, __VA_ARGS__) X(24, __VA_ARGS__) \
  X(26, __VA_ARGS__) X(28, __VA_ARGS__)
ALL(BLOCK, f32, MT_AVX512, F32, PACKED)
ALL(BLOCK, f32_packing, MT_AVX512, F32, PACKING)
ALL(BLOCK, bf16, MT_AVX512_BF16, BF16, PACKED)
typedef void Block(float *sum, bool fresh, const Unit *a, Unit *b, int64_t units, const Source *from, const Out *out);
#define NAME(R, name) [R / 2] = name##_##R,
static Block *const block[][ROWS / 2 + 1] = {{0}, {ALL(NAME, f32)}, {ALL(NAME, bf16)}};  // by elements of a unit, half the rows
static Block *const packing[ROWS / 2 + 1] = {ALL(NAME, f32_packing)};

// SIDE × SIDE; rows of a `ai` units apart, units a multiple of 16
#define TILES __attribute__((noinline, target(MT_AVX512 ",amx-tile,amx-bf16")))
TILES static void block_tiles(float *sum, bool fresh, const Unit *a, int64_t ai, const Unit *b, int64_t panel, int64_t units) {
  size_t wide = SIDE * sizeof *sum, row = (size_t)ai * sizeof *a;
  float *below = sum + 16 * SIDE;
  if (fresh) {
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  } else {
    _tile_loadd(0, sum, wide); _tile_loadd(1, sum + 16, wide);
    _tile_loadd(2, below, wide); _tile_loadd(3, below + 16, wide);
  }
  const Unit *lower = a + 16 * ai, *right = b + panel;
  for (int64_t x = 0; x < units; x += 16) {
    _tile_loadd(4, a + x, row); _tile_loadd(6, b + x * LANES, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + x * LANES, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower + x, row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sum, wide); _tile_stored(1, sum + 16, wide);
  _tile_stored(2, below, wide); _tile_stored(3, below + 16, wide);
}

TILES static void tiles_begin(void) {        // eight of 16 rows of 64 bytes
  static const struct { uint8_t palette, start, zero[14]; uint16_t bytes[16]; uint8_t rows[16]; } all = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&all);
}
TILES static void tiles_end(void) { _tile_release(); }

// ---- c --------------------------------------------------------------------------------------------------------------------
// A row of c from sums that lie in blocks of `wide` columns, `block` numbers from one to the next
typedef struct { const float *sum; int64_t wide, block; } Sums;

VECTOR void put_f32(const PanelShape *s, float *c, Sums f, int64_t columns) {
  __m512 alpha = _mm512_set1_ps((float)s->alpha);
  bool past = s->stream && !s->accumulate && (uintptr_t)c % 64 == 0;
  for (; columns > 0; columns -= f.wide, f.sum += f.block)
    for (int64_t j = 0; j < MIN(columns, f.wide); j += LANES, c += LANES) {
      __mmask16 m = columns - j >= LANES ? 0xffff : (__mmask16)((1u << (columns - j)) - 1);
      __m512 v = _mm512_mul_ps(_mm512_loadu_ps(f.sum + j), alpha);
      if (s->accumulate) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, c));
      if (past && m == 0xffff) _mm512_stream_ps(c, v);
      else _mm512_mask_storeu_ps(c, m, v);
    }
}

__attribute__((target(MT_AVX512_BF16))) static void put_bf16(const PanelShape *s, uint16_t *c, Sums f, int64_t columns) {
  __m512 alpha = _mm512_set1_ps((float)s->alpha);
  for (; columns > 0; columns -= f.wide, f.sum += f.block)
    for (int64_t j = 0; j < MIN(columns, f.wide); j += LANES, c += LANES) {
      __mmask16 m = columns - j >= LANES ? 0xffff : (__mmask16)((1u << (columns - j)) - 1);
      __m512 v = _mm512_mul_ps(_mm512_loadu_ps(f.sum + j), alpha);
      if (s->accumulate) {
        __m512i was = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, c));
        v = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(was, 16)));
      }
      _mm256_mask_storeu_epi16(c, m, (__m256i)_mm512_cvtneps_pbh(v));
    }
}

// ---- a tile ---------------------------------------------------------------------------------------------------------------
// The lines of c that a block is added to are on their way while it is made.
VECTOR void ask_for(const PanelShape *s, const char *c, int64_t rows, int64_t columns) {
  int64_t bytes = (int64_t)dtype_bytes(s->c);
  for (int64_t i = 0; i < rows; i++, c += s->cm * bytes)
    for (int64_t x = 0; x < columns * bytes; x += 64) _mm_prefetch(c + x, _MM_HINT_T0);
}

// What follows the last chunk of some rows; a row's sums lie f.wide numbers apart
static void put(const PanelShape *s, char *c, Sums f, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++, f.sum += f.wide, c += (size_t)s->cm * dtype_bytes(s->c))
    if (s->c == DT_f32) put_f32(s, (float *)(void *)c, f, columns);
    else put_bf16(s, (uint16_t *)(void *)c, f, columns);
}

static char *place(const PanelShape *s, void *c, int64_t i, int64_t j) {
  return (char *)c + (size_t)(i * s->cm + j) * dtype_bytes(s->c);
}

// Lines that are fetched bit by bit while blocks are made: `rows` of `width` bytes, `step` bytes apart
typedef struct { const char *at; int64_t step, width, rows, x, pace; } Fetch;
static Fetch fetch_over(const char *at, int64_t step, int64_t width, int64_t rows, int64_t blocks) {
  return (Fetch){at, step, width, rows, 0, (rows * ((width + 63) / 64) + blocks - 1) / blocks};
}
INLINE void fetch_some(Fetch *f) {
  for (int64_t n = f->pace; n > 0 && f->rows > 0; n--) {
    _mm_prefetch(f->at + f->x, _MM_HINT_T1);
    if ((f->x += 64) >= f->width) f->x = 0, f->at += f->step, f->rows--;
  }
}

typedef struct {
  void *c;
  const char *a, *b;                         // from this chunk of k on
  int64_t k;
  bool fresh, last, kept;
  int64_t packed;                            // columns of b that are copied while the first rows are made
  Fetch b_next;                              // b's next chunk
} Chunk;

// Rows of blocks by vectors: m of them from i on, made as `made`, an even number
typedef struct {
  const Unit *a;
  int64_t i, m, made, units;
  Fetch a_next;
} Rows;

VECTOR void rows_by_vectors(const Tile *t, Chunk *h, Rows *r) {
  const PanelShape *s = t->s;
  bool direct = h->last && s->c == DT_f32 && !s->accumulate && r->m == r->made;
  int64_t done = direct ? s->n / LANES * LANES : 0;        // columns that go straight into c
  float *sums = h->kept ? t->sums + r->i * t->wide : t->sums;
  for (int64_t j = 0; j < s->n; j += LANES) {
    fetch_some(&r->a_next), fetch_some(&h->b_next);
    if (h->last && s->accumulate) ask_for(s, place(s, h->c, r->i, j), r->m, MIN(LANES, s->n - j));
    Out out = {0};
    if (j < done) {
      float *c = (float *)(void *)place(s, h->c, r->i, j);
      out = (Out){c, s->cm, (float)s->alpha, s->stream && (uintptr_t)c % 64 == 0 && s->cm % LANES == 0};
    }
    Source from = {(const Unit *)(const void *)h->b + j, s->bk};
    Block *const *kind = !r->i && j < h->packed ? packing : block[t->per];
    kind[r->made / 2](sums + j * r->made, h->fresh, r->a, t->b + j / LANES * t->panel, r->units, &from, &out);
  }
  if (h->last && done < s->n)
    put(s, place(s, h->c, r->i, done), (Sums){sums + done * r->made, LANES, r->made * LANES}, r->m, s->n - done);
}

VECTOR void chunk_by_vectors(const Tile *t, Chunk *h) {
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = (h->k + t->per - 1) / t->per, most = (s->m + ROWS - 1) / ROWS;
  int64_t rows = up((s->m + most - 1) / most, 2), high = up(rows * units, LANES) + SPILL;
  bool columns = !(s->ak == 1 || s->k == 1);
  int64_t some = columns ? TURNED / rows : 1;    // of them are copied at once, where they lie side by side
  for (int64_t at = 0, i = 0; i < s->m; i += rows, at++) {
    Rows r = {.a = t->a + at % some * high, .i = i, .m = MIN(rows, s->m - i), .units = units};
    int64_t next = MIN(rows, s->m - i - r.m);
    for (int64_t x = i; at % some == 0 && x < s->m && x < i + some * rows; x += rows)
      copy_a(t, t->a + (x - i) / rows * high, h->a + (columns ? x : x * s->am) * bytes, MIN(rows, s->m - x), h->k);
    if (!columns)
      r.a_next = fetch_over(h->a + (i + r.m) * s->am * bytes, s->am * bytes, h->k * bytes, next, (s->n + LANES - 1) / LANES);
    r.made = up(r.m, 2);
    rows_by_vectors(t, h, &r);
  }
}

typedef struct {
  const Unit *a;                             // the rows from i on
  int64_t ai, i, units;
} Row;

// Neither a's rows nor a panel of b over a whole chunk stay in the first cache; a's over a part of it do for some blocks, whose
// sums do as well.
VECTOR void row_by_tiles(const Tile *t, const Chunk *h, const Row *r) {
  const PanelShape *s = t->s;
  int64_t m = MIN(SIDE, s->m - r->i);
  for (int64_t j0 = 0; j0 < s->n; j0 += GROUP * SIDE) {
    int64_t end = MIN(j0 + GROUP * SIDE, s->n);
    float *sums = h->kept ? t->sums + r->i * t->wide + j0 * SIDE : t->sums;
    for (int64_t x = 0; x < r->units; x += PART)
      for (int64_t j = j0; j < end; j += SIDE) {
        if (!x && h->last && s->accumulate) ask_for(s, place(s, h->c, r->i, j), m, MIN(SIDE, s->n - j));
        block_tiles(sums + (j - j0) * SIDE, h->fresh && !x, r->a + x, r->ai, t->b + j / LANES * t->panel + x * LANES, t->panel,
                    MIN(PART, r->units - x));
      }
    if (h->last) put(s, place(s, h->c, r->i, j0), (Sums){sums, SIDE, SIDE * SIDE}, m, end - j0);
  }
}

static void chunk_by_tiles(const Tile *t, Chunk *h) {
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = up((h->k + t->per - 1) / t->per, 16), row = units + PAD;
  bool columns = !(s->ak == 1 || s->k == 1);
  Row r = {.units = units};
  for (int64_t i = 0; i < s->m; i += SIDE) {
    const char *from = h->a + (columns ? i : i * s->am) * bytes;
    int64_t m = MIN(SIDE, s->m - i), at = i % TURNED, many = MIN(TURNED, s->m - i);
    r.i = i;
    if (columns) {                           // some rows at once
      if (!at) turn_a_rows(t, from, many, up(many, SIDE), h->k, row);
      r.a = t->a + at * row, r.ai = row;
    } else if (m < SIDE || h->k % 32 || s->am % t->per || (uintptr_t)from % 4) {
      copy_a_rows(t, from, m, SIDE, h->k, row);
      r.a = t->a, r.ai = row;
    } else {
      r.a = (const Unit *)(const void *)from, r.ai = s->am / t->per;
    }
    row_by_tiles(t, h, &r);
  }
}

static bool use_tiles(DType t) { return t == DT_bf16 && jit_tiles(); }

void panel_block(DType t, int64_t *rows, int64_t *columns) {
  *rows = use_tiles(t) ? SIDE : 8, *columns = use_tiles(t) ? SIDE : LANES;
}

size_t panel_room(int64_t m, int64_t n) {
  int64_t wide = up(n, SIDE);
  return (size_t)(wide / LANES * (CHUNK_TILES * LANES + PAD) + ROOM_A + up(m, SIDE) * wide) * sizeof(Unit);
}

bool panel_has(DType t) {
  return (t == DT_f32 || (t == DT_bf16 && __builtin_cpu_supports("avx512bf16"))) && has_avx512();
}

Str panel_name(void) { return jit_tiles() ? "amx" : __builtin_cpu_supports("avx512bf16") ? "avx512_bf16" : "avx512"; }

void panel_add(const PanelShape *s, int64_t l, void *c, const void *a, const void *b, void *room) {
  Tile t = {.s = s, .per = s->t == DT_f32 ? 1 : 2, .tiles = use_tiles(s->t)};
  int64_t longest = t.tiles ? CHUNK_TILES : CHUNK, most = longest * t.per, chunks = (s->k + most - 1) / most, bytes = 4 / t.per;
  t.panel = longest * LANES + PAD, t.wide = up(s->n, t.tiles ? SIDE : LANES);
  t.b = room, t.a = t.b + t.wide / LANES * t.panel, t.sums = (float *)(void *)(t.a + ROOM_A);
  int64_t step = up((s->k + chunks - 1) / chunks, 16 * t.per);       // of k: chunks of about the same length
  bool beside = s->bn == 1 || s->n == 1;
  if (t.tiles) tiles_begin();
  for (int64_t k = 0; k < s->k; k += step) {
    int64_t n = MIN(step, s->k - k), next = MIN(step, s->k - k - n);
    Chunk h = {.c = c, .a = (const char *)a + k * s->ak * bytes, .b = (const char *)b + k * s->bk * bytes, .k = n};
    h.fresh = !l && !k, h.last = l + 1 == s->sums && k + n == s->k, h.kept = s->sums > 1 || s->k > step;
    if (beside && t.per == 1) h.packed = s->n / LANES * LANES;
    copy_b(&t, h.b, n, h.packed);
    if (t.tiles) {
      chunk_by_tiles(&t, &h);
    } else {
      const char *then = h.b + n * s->bk * bytes;
      int64_t blocks = (s->m + ROWS - 1) / ROWS * ((s->n + LANES - 1) / LANES);
      if (beside) h.b_next = fetch_over(then, s->bk * bytes, s->n * bytes, next, blocks);
      else if (next) h.b_next = fetch_over(then, s->bn * bytes, next * bytes, s->n, blocks);
      chunk_by_vectors(&t, &h);
    }
  }
  if (t.tiles) tiles_end();
  if (s->stream) _mm_sfence();
}
#else
bool panel_has(DType t) { return (void)t, false; }
Str panel_name(void) { return ""; }
void panel_block(DType t, int64_t *rows, int64_t *columns) { (void)t, *rows = *columns = 1; }
size_t panel_room(int64_t m, int64_t n) { return (void)m, (void)n, 0; }
void panel_add(const PanelShape *s, int64_t l, void *c, const void *a, const void *b, void *room) {
  (void)s, (void)l, (void)c, (void)a, (void)b, (void)room;
  bug("no products by panels on this CPU");
}
#endif
