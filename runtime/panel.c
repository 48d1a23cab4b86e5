// panel.c -- see panel.h.
//
// Along k everything is counted in units of four bytes: one f32, or two bf16. b is copied once per tile and chunk of k, into
// panels of [k][48] units for vectors, of [k][16] for tiles (the CPU's: 16 rows of 16 units). A block of c then stays in
// registers over the chunk: 8 × 48 sums by vectors, a broadcast unit of a times a row of a panel; or 32 × 32 by tiles. The
// rows of a are read where they are; where its columns lie side by side, or an edge is reached, some rows of blocks are
// copied first. What chunks before have summed waits in the room. An element's sum runs over k in order whatever the tile,
// so tiles of any size give the same bits. Beyond the edges of k there are zeros, as what is there could be no number; beyond
// those of m and n anything, as it goes nowhere.
#include "runtime/panel.h"
#include "runtime/jit.h"
#include "runtime/vector.h"
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

enum { LANES = 16, ROWS = 8, COLUMNS = 48, SIDE = 32 };              // of the blocks: ROWS × COLUMNS, SIDE × SIDE
// units of k at a time; rows of a that are copied at a time; units between panels, lest their lines share few sets of a cache;
// rows that are fetched before they are copied
enum { CHUNK = 768, TURNED = 128, PAD = 16, AHEAD = 16 };
enum { PART = 128, GROUP = 4 };              // by tiles: units of k, and blocks side by side, see row_by_tiles
enum { ROOM_A = TURNED * (CHUNK + PAD) };
typedef float __attribute__((may_alias)) Unit;                        // only moved, where it is two bf16
static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

#define MT_AVX512_BF16 MT_AVX512 ",avx512bf16"
#define VECTOR static __attribute__((target(MT_AVX512)))
#define INLINE static inline __attribute__((always_inline, target(MT_AVX512)))
#define EACH _Pragma("GCC unroll 16")                                // as many as there are

typedef struct {
  const PanelShape *s;
  int64_t per;                               // elements of a unit
  bool tiles;
  int64_t width, panel;                      // columns of a panel of b; units from one to the next
  int64_t wide;                              // columns with the zeros beyond
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

// Units [k][n] of elements that lie side by side along n, into panels of `width` columns: 16 at a time, or two panels of 8.
INLINE void copy_beside(Unit *to, int64_t panel, int64_t width, const char *from, int64_t step, int64_t per, int64_t k,
                        int64_t n) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                         39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  int64_t units = (k + per - 1) / per, bytes = 4 / per;
  for (int64_t i = 0; i < units; i++, to += width) {
    const char *p = from + i * per * step;
    Unit *t = to;
    for (int64_t j = 0, left = width; j < n; j += 16, p += 16 * bytes) {
      __m512i v;
      _mm_prefetch(p + AHEAD * per * step, _MM_HINT_T0);
      if (per == 2) _mm_prefetch(p + (AHEAD * 2 + 1) * step, _MM_HINT_T0);
      if (per == 2 && n - j >= 16 && k - 2 * i > 1)
        v = _mm512_permutex2var_epi16(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)p)), first,
                                      _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(p + step))));
      else v = beside(p, step, per, k - i * per, n - j);
      if (width == ROWS) {
        _mm256_store_si256((void *)t, _mm512_castsi512_si256(v));
        _mm256_store_si256((void *)(t + panel), _mm512_extracti64x4_epi64(v, 1));
        t += 2 * panel;
      } else {
        _mm512_store_si512(t, v);
        left -= 16, t += 16;
        if (!left) t += panel - width, left = width;
      }
    }
  }
}

VECTOR void copy_b(const Tile *t, const char *b, int64_t k) {
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = (k + t->per - 1) / t->per;
  if (s->bn == 1 || s->n == 1) {
    if (t->per == 1) copy_beside(t->b, t->panel, COLUMNS, b, s->bk * bytes, 1, k, s->n);
    else if (t->tiles) {
      copy_beside(t->b, t->panel, LANES, b, s->bk * bytes, 2, k, s->n);
      size_t beyond = (size_t)(up(units, 16) - units) * LANES * sizeof *t->b;
      for (int64_t j = 0; beyond && j < s->n; j += LANES) memset(t->b + j / LANES * t->panel + units * LANES, 0, beyond);
    } else copy_beside(t->b, t->panel, COLUMNS, b, s->bk * bytes, 2, k, s->n);
  } else {
    for (int64_t j = 0; j < s->n; j += LANES) {
      Unit *to = t->b + j / t->width * t->panel + j % t->width;
      for (int64_t i = 0; i < units; i += 16) {
        __m512i r[16];
        int64_t halves = (k - i * t->per) * (2 / t->per);
        const char *p = b + j * s->bn * bytes + i * 4;
        bool whole = j + 16 <= s->n && halves >= 32;
        EACH for (int x = 0; x < 16; x++, p += s->bn * bytes)
          r[x] = whole ? _mm512_loadu_si512(p) : load_units(p, j + x < s->n ? halves : 0);
        turn(r);
        EACH for (int x = 0; x < 16; x++) _mm512_store_si512(to + (i + x) * t->width, r[x]);
      }
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

// m columns of a that lie side by side, k elements, into panels of ROWS
VECTOR void copy_a_columns(const Tile *t, const char *a, int64_t m, int64_t k, int64_t panel) {
  if (t->per == 1) copy_beside(t->a, panel, ROWS, a, t->s->ak * 4, 1, k, m);
  else copy_beside(t->a, panel, ROWS, a, t->s->ak * 2, 2, k, m);
}

// ---- a block's sums -------------------------------------------------------------------------------------------------------
// ROWS × 16·V. Unit (i, x) of a is at a[i · ai + x · ak].
#define BLOCK(V, MULTIPLY) \
  __m512 c[ROWS][V]; \
  EACH for (int i = 0; i < ROWS; i++) \
    EACH for (int v = 0; v < V; v++) c[i][v] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(sum + i * COLUMNS + v * LANES); \
  const Unit *half = a + ROWS / 2 * ai; \
  for (; units > 0; units--, a += ak, half += ak, b += COLUMNS) { \
    __m512 row[V]; \
    EACH for (int v = 0; v < V; v++) row[v] = _mm512_load_ps(b + v * LANES); \
    EACH for (int i = 0; i < ROWS; i++) { \
      __m512 one = _mm512_set1_ps(i < ROWS / 2 ? a[i * ai] : half[(i - ROWS / 2) * ai]); \
      EACH for (int v = 0; v < V; v++) c[i][v] = MULTIPLY(c[i][v], one, row[v]); \
    } \
  } \
  EACH for (int i = 0; i < ROWS; i++) \
    EACH for (int v = 0; v < V; v++) _mm512_storeu_ps(sum + i * COLUMNS + v * LANES, c[i][v])

typedef void Block(float *sum, bool fresh, const Unit *a, int64_t ai, const Unit *b, int64_t units);
#define BLOCKS(name, isa, V, MULTIPLY) \
  __attribute__((target(isa))) static void name##_rows_##V(float *sum, bool fresh, const Unit *a, int64_t ai, \
                                                           const Unit *b, int64_t units) { \
    const int64_t ak = 1; \
    BLOCK(V, MULTIPLY); \
  } \
  __attribute__((target(isa))) static void name##_columns_##V(float *sum, bool fresh, const Unit *a, int64_t ai, \
                                                              const Unit *b, int64_t units) { \
    const int64_t ak = ROWS; \
    (void)ai, ai = 1; \
    BLOCK(V, MULTIPLY); \
  }
#define F32(c, x, y) _mm512_fmadd_ps(x, y, c)
#define BF16(c, x, y) _mm512_dpbf16_ps(c, (__m512bh)(x), (__m512bh)(y))
BLOCKS(f32, MT_AVX512, 1, F32) BLOCKS(f32, MT_AVX512, 2, F32) BLOCKS(f32, MT_AVX512, 3, F32)
BLOCKS(bf16, MT_AVX512_BF16, 1, BF16) BLOCKS(bf16, MT_AVX512_BF16, 2, BF16) BLOCKS(bf16, MT_AVX512_BF16, 3, BF16)
static Block *const block[2][2][3] = { // by elements of a unit, how a lies, vectors
  {{f32_rows_1, f32_rows_2, f32_rows_3}, {f32_columns_1, f32_columns_2, f32_columns_3}},
  {{bf16_rows_1, bf16_rows_2, bf16_rows_3}, {bf16_columns_1, bf16_columns_2, bf16_columns_3}},
};

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
VECTOR void put_f32(const PanelShape *s, float *c, const float *sum, int64_t ld, int64_t rows, int64_t columns) {
  __m512 alpha = _mm512_set1_ps((float)s->alpha);
  bool past = s->stream && !s->accumulate && (uintptr_t)c % 64 == 0 && s->cm % LANES == 0;
  for (int64_t i = 0; i < rows; i++, sum += ld, c += s->cm)
    for (int64_t j = 0; j < columns; j += LANES) {
      __mmask16 m = columns - j >= LANES ? 0xffff : (__mmask16)((1u << (columns - j)) - 1);
      __m512 v = _mm512_mul_ps(_mm512_loadu_ps(sum + j), alpha);
      if (s->accumulate) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, c + j));
      if (past && m == 0xffff) _mm512_stream_ps(c + j, v);
      else _mm512_mask_storeu_ps(c + j, m, v);
    }
}

__attribute__((target(MT_AVX512_BF16))) static void put_bf16(const PanelShape *s, uint16_t *c, const float *sum, int64_t ld,
                                                        int64_t rows, int64_t columns) {
  __m512 alpha = _mm512_set1_ps((float)s->alpha);
  for (int64_t i = 0; i < rows; i++, sum += ld, c += s->cm)
    for (int64_t j = 0; j < columns; j += LANES) {
      __mmask16 m = columns - j >= LANES ? 0xffff : (__mmask16)((1u << (columns - j)) - 1);
      __m512 v = _mm512_mul_ps(_mm512_loadu_ps(sum + j), alpha);
      if (s->accumulate) {
        __m512i was = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, c + j));
        v = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(was, 16)));
      }
      _mm256_mask_storeu_epi16(c + j, m, (__m256i)_mm512_cvtneps_pbh(v));
    }
}

// ---- a tile ---------------------------------------------------------------------------------------------------------------
// The lines of c that a block is added to are on their way while it is made.
VECTOR void ask_for(const PanelShape *s, const char *c, int64_t rows, int64_t columns) {
  int64_t bytes = (int64_t)dtype_bytes(s->c);
  for (int64_t i = 0; i < rows; i++, c += s->cm * bytes)
    for (int64_t x = 0; x < columns * bytes; x += 64) _mm_prefetch(c + x, _MM_HINT_T0);
}

// What follows the last chunk of a block
VECTOR void put(const PanelShape *s, char *c, const float *sum, int64_t ld, int64_t rows, int64_t columns) {
  if (s->c == DT_f32) put_f32(s, (float *)(void *)c, sum, ld, rows, columns);
  else put_bf16(s, (uint16_t *)(void *)c, sum, ld, rows, columns);
}

typedef struct {
  void *c;
  const Unit *a;                             // the rows from i on
  int64_t ai, i, units;
  bool columns, fresh, last, kept;           // columns: they lie side by side in a, rows of units 8 long
} Row;

static char *place(const PanelShape *s, const Row *r, int64_t j) {
  return (char *)r->c + (size_t)(r->i * s->cm + j) * dtype_bytes(s->c);
}

// The blocks side by side of some rows
VECTOR void row_by_vectors(const Tile *t, const Row *r) {
  const PanelShape *s = t->s;
  int64_t m = MIN(ROWS, s->m - r->i);
  for (int64_t j = 0; j < s->n; j += COLUMNS) {
    float *sum = r->kept ? t->sums + r->i * t->wide + j * ROWS : t->sums;
    int64_t n = MIN(COLUMNS, s->n - j);
    if (r->last && s->accumulate) ask_for(s, place(s, r, j), m, n);
    block[t->per - 1][r->columns][(n - 1) / LANES](sum, r->fresh, r->a, r->ai, t->b + j / COLUMNS * t->panel, r->units);
    if (r->last) put(s, place(s, r, j), sum, COLUMNS, m, n);
  }
}

// The same by tiles. Neither a's rows nor a panel of b over a whole chunk stay in the first cache; a's over a part of it do
// for some blocks, whose sums do as well.
VECTOR void row_by_tiles(const Tile *t, const Row *r) {
  const PanelShape *s = t->s;
  int64_t m = MIN(SIDE, s->m - r->i);
  for (int64_t j0 = 0; j0 < s->n; j0 += GROUP * SIDE) {
    int64_t end = MIN(j0 + GROUP * SIDE, s->n);
    float *sums = r->kept ? t->sums + r->i * t->wide + j0 * SIDE : t->sums;
    for (int64_t x = 0; x < r->units; x += PART)
      for (int64_t j = j0; j < end; j += SIDE) {
        if (!x && r->last && s->accumulate) ask_for(s, place(s, r, j), m, MIN(SIDE, s->n - j));
        block_tiles(sums + (j - j0) * SIDE, r->fresh && !x, r->a + x, r->ai, t->b + j / LANES * t->panel + x * LANES, t->panel,
                    MIN(PART, r->units - x));
      }
    for (int64_t j = j0; j < end && r->last; j += SIDE)
      put(s, place(s, r, j), sums + (j - j0) * SIDE, SIDE, m, MIN(SIDE, s->n - j));
  }
}

static void chunk(const Tile *t, void *c, const char *a, int64_t k, bool fresh, bool last, bool kept) {
  const PanelShape *s = t->s;
  int64_t bytes = 4 / t->per, units = (k + t->per - 1) / t->per, rows = t->tiles ? SIDE : ROWS;
  bool columns = !(s->ak == 1 || s->k == 1);
  int64_t row = up(units, 16) + PAD;
  if (t->tiles) units = up(units, 16);
  Row r = {.c = c, .units = units, .columns = columns && !t->tiles, .fresh = fresh, .last = last, .kept = kept};
  for (int64_t i = r.i = 0; i < s->m; i += rows, r.i = i) {
    const char *from = a + (columns ? i : i * s->am) * bytes;
    int64_t m = MIN(rows, s->m - i);
    int64_t at = i % TURNED, many = MIN(TURNED, s->m - i);           // some rows at once, where they lie side by side
    if (columns && t->tiles) {
      if (!at) turn_a_rows(t, from, many, up(many, SIDE), k, row);
      r.a = t->a + at * row, r.ai = row;
    } else if (columns) {
      int64_t panel = ROWS * units + PAD;
      if (!at) copy_a_columns(t, from, many, k, panel);
      r.a = t->a + at / ROWS * panel, r.ai = 1;
    } else if (m < rows || k % (t->tiles ? 32 : t->per) || s->am % t->per || (uintptr_t)from % 4) {
      copy_a_rows(t, from, m, rows, k, row);
      r.a = t->a, r.ai = row;
    } else {
      r.a = (const Unit *)(const void *)from, r.ai = s->am / t->per;
    }
    if (t->tiles) row_by_tiles(t, &r);
    else row_by_vectors(t, &r);
  }
}

static bool use_tiles(DType t) { return t == DT_bf16 && jit_tiles(); }

void panel_block(DType t, int64_t *rows, int64_t *columns) {
  *rows = use_tiles(t) ? SIDE : ROWS, *columns = use_tiles(t) ? SIDE : COLUMNS;
}

size_t panel_room(int64_t m, int64_t n) {
  int64_t wide = up(n, 2 * COLUMNS);          // a multiple of SIDE, too
  return (size_t)(wide / LANES * (CHUNK * LANES + PAD) + ROOM_A + up(m, SIDE) * wide) * sizeof(Unit);
}

bool panel_has(DType t) {
  return (t == DT_f32 || (t == DT_bf16 && __builtin_cpu_supports("avx512bf16"))) && has_avx512();
}

Str panel_name(void) { return jit_tiles() ? "amx" : __builtin_cpu_supports("avx512bf16") ? "avx512_bf16" : "avx512"; }

void panel_add(const PanelShape *s, int64_t l, void *c, const void *a, const void *b, void *room) {
  Tile t = {.s = s, .per = s->t == DT_f32 ? 1 : 2, .tiles = use_tiles(s->t)};
  t.width = t.tiles ? LANES : COLUMNS, t.panel = CHUNK * t.width + PAD, t.wide = up(s->n, t.tiles ? SIDE : COLUMNS);
  t.b = room, t.a = t.b + t.wide / t.width * t.panel, t.sums = (float *)(void *)(t.a + ROOM_A);
  int64_t most = CHUNK * t.per, chunks = (s->k + most - 1) / most, bytes = 4 / t.per;
  int64_t step = up((s->k + chunks - 1) / chunks, 16 * t.per);       // of k: chunks of about the same length
  bool kept = s->sums > 1 || s->k > step;
  if (t.tiles) tiles_begin();
  for (int64_t k = 0; k < s->k; k += step) {
    int64_t n = MIN(step, s->k - k);
    bool fresh = !l && !k, last = l + 1 == s->sums && k + n == s->k;
    copy_b(&t, (const char *)b + k * s->bk * bytes, n);
    chunk(&t, c, (const char *)a + k * s->ak * bytes, n, fresh, last, kept);
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
