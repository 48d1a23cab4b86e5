// gemm.c -- see gemm.h.
//
// Workers claim tiles of c; one tile is one call, so its bits are fixed. Loops that move c are more tiles; loops that
// do not are summed inside the tile, in order. Formats that no library takes are widened to f32 in chunks of k,
// summed in f32 and rounded once.
//
// The libraries copy both operands for each call, into the order in which they read them; on tiles small enough to be shared
// that takes a tenth to a third of their time. So products of f32 and bf16 are done by panel.c where the CPU has what that
// needs: b is copied once for all rows, while the first of them are made. With too few rows to pay for the copy they stay the
// library's.
#include "runtime/gemm.h"
#include "runtime/onednn.h"
#include "runtime/openblas.h"
#include "runtime/panel.h"
#include "runtime/rows.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TILE_M = 256, TILE_N = 512, TILE_LEAST = 64, CHUNK_K = 512, STREAM_LEAST = 1 << 20 };
typedef struct {
  float *a, *b, *c;
} Room; // of one worker: TILE_M·CHUNK_K, CHUNK_K·TILE_N, TILE_M·TILE_N

typedef struct {
  Gemms *all;
  PlanGemm g;             // rows of c are contiguous: cn is 1
  bool turned;            // a and b have changed places
  bool apart;             // oneDNN: the sum in f32 is made in the worker's room, and put into c then
  int64_t tm, tn, nm, nn; // tile, and how many of them each way
  int64_t moves, sums, grain;
  uint32_t nmove, nsum;
  GemmLoop move[GEMM_LOOPS], sum[GEMM_LOOPS]; // loops that move c, and those that add to it
  Matmul *matmul[2][2][2];                    // oneDNN: of the last rows, of the last columns, when it adds
  bool stream;                                // panels: see panel.h
} Product;

struct Gemms {
  OpenBlas openblas;
  OneDnn *onednn;
  Room *room;       // by worker
  bool narrow;      // rooms are needed: products of 16-bit formats that are not by panels
  int threads;
  void **panels;    // by worker: panel_room of the largest tile
  size_t panels_bytes;
  Product *product; // by number in the plan
  int64_t *filled;  // of a ragged product: by moving loop, then summed loop, how far the entries go that are not 0
  Str libraries;
};

// ---- tiles ------------------------------------------------------------------------------------------------------
static int64_t up_to(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Enough tiles to share, none too small to pay, few reads of the operands: a tile reads tm rows of a and tn columns
// of b.
static void choose_tiles(Product *p) {
  const PlanGemm *g = &p->g;
  bool narrow = g->a == DT_bf16 && g->lib == LIB_onednn;
  int64_t step = narrow ? 64 : 16, most_m = g->lib == LIB_onednn ? 4 * TILE_M : TILE_M;
  double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)p->sums, best = INFINITY;
  int64_t want = (int64_t)MIN(flops * (double)p->moves / (narrow ? 300e6 : 75e6), 8);
  want += want & 1; // an even number is easier to share
  for (int64_t nm = 1; nm <= g->m; nm++) {
    int64_t tm = up_to((g->m + nm - 1) / nm, 16), widest = MIN(TILE_N * TILE_M / tm / step * step, TILE_N);
    if (tm > most_m) continue;
    if (tm < TILE_LEAST && nm > 1) break;
    int64_t tn = MIN(widest, up_to(MAX((g->n * nm * p->moves) / MAX(want, 1), 1), step));
    tn = up_to((g->n + (g->n + tn - 1) / tn - 1) / ((g->n + tn - 1) / tn), step);
    int64_t rows = (g->m + tm - 1) / tm, columns = (g->n + tn - 1) / tn;
    double cost = (double)(g->n * rows) + (double)(g->m * columns); // short rows of c cost as the operands do
    cost += (double)g->m * (double)g->n / (double)MAX(g->k, 1) * 128 / (double)tn;
    if (cost <= best) best = cost, p->tm = tm, p->tn = tn, p->nm = rows, p->nn = columns;
  }
  double tile = flops / (double)(p->nm * p->nn);
  p->grain = tile < 1e6 ? (int64_t)(1e6 / tile) + 1 : 1;
}

// By panels: the tiles that take the least time, estimated in cycles. b is copied for each tile, a if its columns lie side by
// side, and read for each. The bits do not depend on it.
static void choose_panels(Product *p, int threads) {
  enum { MOST_M = 1024, MOST_N = 384 };
  const PlanGemm *g = &p->g;
  int64_t rows, columns;
  panel_block(g->a, &rows, &columns);
  bool tiles = rows == columns, turned = g->ak != 1 && g->k > 1;
  double fast = tiles ? 500 : 28, b_cost = tiles ? 0.9 : 0.5, best = INFINITY; // a unit of k
  double a_cost = !tiles ? 0.5 : turned ? 0.6 : 0.2;
  for (int64_t tn = columns; tn <= MOST_N; tn += columns) {
    int64_t nn = (g->n + tn - 1) / tn;
    for (int64_t nm = (g->m + MOST_M - 1) / MOST_M; nm <= (g->m + rows - 1) / rows && nm < 256; nm++) {
      int64_t tm = up_to((g->m + nm - 1) / nm, rows), count = (g->m + tm - 1) / tm * nn * p->moves;
      double tile = (double)(tm * tn) / fast + (double)tn * b_cost + (double)tm * a_cost;
      double time = tile * ((double)((count + threads - 1) / threads) + 0.15);
      if (time < best) best = time, p->tm = tm, p->tn = tn, p->nm = (g->m + tm - 1) / tm, p->nn = nn;
    }
    if (tn >= g->n) break;
  }
  double cycles = (double)(p->tm * p->tn) / fast * (double)g->k * (double)p->sums;
  p->grain = cycles < 3e4 ? (int64_t)(3e4 / MAX(cycles, 1)) + 1 : 1;
  p->stream = g->c == DT_f32 && !g->accumulate && g->m * g->n * p->moves >= STREAM_LEAST;
}

// The i-th index of nested loops, the last the fastest, as element offsets.
static void loop_at(const GemmLoop *l, uint32_t n, int64_t i, int64_t *a, int64_t *b, int64_t *c) {
  while (n-- > 0) {
    int64_t k = i % l[n].n;
    i /= l[n].n, *a += k * l[n].a, *b += k * l[n].b, *c += k * l[n].c;
  }
}

// How an operand of rows × cols with these strides is passed: plain rows, or rows of the transpose.
typedef struct {
  int trans, ld;
} Layout;
static Layout layout_of(int64_t rows, int64_t cols, int64_t row, int64_t col) {
  if (cols <= 1 || col == 1) return (Layout){PLAIN, (int)(rows > 1 ? MAX(row, 1) : MAX(cols, 1))};
  return (Layout){TRANSPOSED, (int)MAX(col, 1)};
}

// ---- one tile ---------------------------------------------------------------------------------------------------
static bool is_wide(const PlanGemm *g) {
  return g->a == DT_f64 || (g->a == DT_f32 && g->b == DT_f32 && g->c == DT_f32);
}

// rows × cols of a matrix, as dense rows of f32
static void widen(float *to, const char *from, DType t, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  for (int64_t i = 0; i < rows; i++, to += cols) {
    if (t == DT_f32) {
      const float *p = (const float *)(const void *)from + i * row;
      for (int64_t j = 0; j < cols; j++) to[j] = p[j * col];
    } else {
      const uint16_t *p = (const uint16_t *)(const void *)from + i * row;
      if (t == DT_bf16 && col == 1)
        for (int64_t j = 0; j < cols; j++) to[j] = bf16_to_f32(p[j]);
      else
        for (int64_t j = 0; j < cols; j++) to[j] = t == DT_bf16 ? bf16_to_f32(p[j * col]) : f16_to_f32(p[j * col]);
    }
  }
}

typedef struct {
  const Product *p;
  char *c;
  const char *a, *b;
} Call;

// Of n rows, `step` elements apart, those up to the last that is not all zeros; a row has `inner` elements, `along` apart.
static int64_t filled(const char *x, size_t width, int64_t n, int64_t step, int64_t inner, int64_t along) {
  for (; n > 0; n--) {
    const char *row = x + (size_t)((n - 1) * step) * width;
    size_t side = along == 1 ? (size_t)inner * width : width;
    for (int64_t i = 0; i < (along == 1 ? 1 : inner); i++, row += (size_t)along * width)
      if (*row || memcmp(row, row + 1, side - 1)) return n;
  }
  return 0;
}

static void filled_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Call *call = with;
  const Product *p = call->p;
  const PlanGemm *g = &p->g;
  size_t a = dtype_bytes(g->a), b = dtype_bytes(g->b);
  (void)worker;
  for (int64_t t = lo; t < hi; t++) {
    int64_t ao = 0, bo = 0, none = 0;
    loop_at(p->move, p->nmove, t / p->sums, &ao, &bo, &none), loop_at(p->sum, p->nsum, t % p->sums, &ao, &bo, &none);
    p->all->filled[t] = g->ragged == RAGGED_m   ? filled(call->a + (size_t)ao * a, a, g->m, g->am, g->k, g->ak)
                        : g->ragged == RAGGED_n ? filled(call->b + (size_t)bo * b, b, g->n, g->bn, g->k, g->bk)
                                                : filled(call->a + (size_t)ao * a, a, g->k, g->ak, g->m, g->am);
  }
}

// The rows or columns of c that are not 0, in the moving loops' turn `move`.
static int64_t extent_of(const Product *p, int64_t move) {
  int64_t most = 0;
  for (int64_t s = 0; s < p->sums; s++) most = MAX(most, p->all->filled[move * p->sums + s]);
  return most;
}

// What is summed over there, in the summed loops' turn s: some zeros, too, as a sum over nothing would leave c as it was.
static int64_t depth_of(const Product *p, int64_t move, int64_t s) {
  if (p->g.ragged != RAGGED_k) return p->g.k;
  return MIN(p->g.k, up_to(MAX(p->all->filled[move * p->sums + s], 1), p->g.a == DT_bf16 ? 32 : 1));
}

static double left_out(const Product *p) {
  const PlanGemm *g = &p->g;
  double flop = 0;
  for (int64_t i = 0; i < p->moves; i++) {
    if (g->ragged == RAGGED_m) flop += 2.0 * (double)(g->m - extent_of(p, i)) * (double)(g->n * g->k * p->sums);
    if (g->ragged == RAGGED_n) flop += 2.0 * (double)(g->n - extent_of(p, i)) * (double)(g->m * g->k * p->sums);
    for (int64_t s = 0; s < p->sums && g->ragged == RAGGED_k; s++)
      flop += 2.0 * (double)(g->k - depth_of(p, i, s)) * (double)(g->m * g->n);
  }
  return flop;
}

// One tile of c at rows i…, columns j…; ao, bo, co: where the moving loops are, in their turn `move`
static void tile_wide(const Call *call, int64_t m, int64_t n, int64_t move, int64_t ao, int64_t bo, int64_t co) {
  const Product *p = call->p;
  const OpenBlas *lib = &p->all->openblas;
  const PlanGemm *g = &p->g;
  Layout a = layout_of(g->m, g->k, g->am, g->ak), b = layout_of(g->k, g->n, g->bk, g->bn);
  int ldc = (int)(g->m > 1 ? g->cm : MAX(g->n, 1));
  for (int64_t s = 0; s < p->sums; s++) {
    int64_t as = ao, bs = bo, none = 0;
    loop_at(p->sum, p->nsum, s, &as, &bs, &none);
    double beta = g->accumulate || s ? 1 : 0;
    int k = (int)depth_of(p, move, s);
    if (g->c == DT_f64)
      lib->dgemm(ROW_MAJOR, a.trans, b.trans, (int)m, (int)n, k, g->alpha,
                 (const double *)(const void *)call->a + as, a.ld, (const double *)(const void *)call->b + bs, b.ld,
                 beta, (double *)(void *)call->c + co, ldc);
    else
      lib->sgemm(ROW_MAJOR, a.trans, b.trans, (int)m, (int)n, k, (float)g->alpha,
                 (const float *)(const void *)call->a + as, a.ld, (const float *)(const void *)call->b + bs, b.ld,
                 (float)beta, (float *)(void *)call->c + co, ldc);
  }
}

static void tile_widened(const Call *call, int64_t m, int64_t n, int64_t move, int64_t ao, int64_t bo, int64_t co,
                         const Room *r) {
  const Product *p = call->p;
  const OpenBlas *lib = &p->all->openblas;
  const PlanGemm *g = &p->g;
  float beta = 0;
  memset(r->c, 0, (size_t)(m * n) * sizeof *r->c);
  for (int64_t s = 0; s < p->sums; s++) {
    int64_t as = ao, bs = bo, none = 0, depth = depth_of(p, move, s);
    loop_at(p->sum, p->nsum, s, &as, &bs, &none);
    for (int64_t k = 0; k < depth; k += CHUNK_K, beta = 1) {
      int64_t kc = MIN(CHUNK_K, depth - k);
      widen(r->a, call->a + (size_t)(as + k * g->ak) * dtype_bytes(g->a), g->a, m, kc, g->am, g->ak);
      widen(r->b, call->b + (size_t)(bs + k * g->bk) * dtype_bytes(g->b), g->b, kc, n, g->bk, g->bn);
      lib->sgemm(ROW_MAJOR, PLAIN, PLAIN, (int)m, (int)n, (int)kc, (float)g->alpha, r->a, (int)kc, r->b, (int)n, beta,
                 r->c, (int)n);
    }
  }
  for (int64_t i = 0; i < m; i++)
    row_put(call->c + (size_t)(co + i * g->cm) * dtype_bytes(g->c), g->c, r->c + i * n, n, g->accumulate);
}

static void tile_onednn(const Call *call, int64_t m, int64_t n, int64_t ao, int64_t bo, int64_t co, int worker) {
  const Product *p = call->p;
  const PlanGemm *g = &p->g;
  char *c = call->c + (size_t)co * dtype_bytes(g->c);
  float *sum = p->all->room[worker].c;
  for (int64_t s = 0; s < p->sums; s++) {
    int64_t as = ao, bs = bo, none = 0;
    loop_at(p->sum, p->nsum, s, &as, &bs, &none);
    const Matmul *matmul = p->matmul[m < p->tm][n < p->tn][s || (g->accumulate && !p->apart)];
    onednn_run(matmul, worker, p->apart ? (void *)sum : c, call->a + (size_t)as * dtype_bytes(g->a),
               call->b + (size_t)bs * dtype_bytes(g->b));
  }
  if (!p->apart) return;
  bool stream = g->c == DT_f32 && !g->accumulate;
  for (int64_t i = 0; i < m; i++, c += (size_t)g->cm * dtype_bytes(g->c))
    if (stream)
      row_stream((float *)(void *)c, sum + i * p->tn, n);
    else
      row_put(c, g->c, sum + i * p->tn, n, g->accumulate);
  if (stream) rows_done();
}

static void tile_panels(const Call *call, int64_t m, int64_t n, int64_t move, int64_t ao, int64_t bo, int64_t co,
                        void *room) {
  const Product *p = call->p;
  const PlanGemm *g = &p->g;
  PanelShape s = {g->a,  g->c,  m,       n,        g->k,          g->am,    g->ak, g->bk,
                  g->bn, g->cm, p->sums, g->alpha, g->accumulate, p->stream};
  for (int64_t l = 0; l < p->sums; l++) {
    int64_t as = ao, bs = bo, none = 0;
    loop_at(p->sum, p->nsum, l, &as, &bs, &none);
    s.k = depth_of(p, move, l);
    panel_add(&s, l, call->c + (size_t)co * dtype_bytes(g->c), call->a + (size_t)as * dtype_bytes(g->a),
              call->b + (size_t)bs * dtype_bytes(g->b), room);
  }
}

// A tile of a ragged product shrinks to what is not 0; the rest of c is.
static void tile_filled(const Call *call, int64_t move, int64_t i, int64_t j, int64_t *m, int64_t *n, int64_t co) {
  const Product *p = call->p;
  const PlanGemm *g = &p->g;
  int64_t rows = *m, columns = *n, most = extent_of(p, move);
  size_t width = dtype_bytes(g->c);
  if (g->ragged == RAGGED_m) *m = MAX(0, MIN(rows, most - i));
  else *n = MAX(0, MIN(columns, most - j));
  for (int64_t r = 0; r < rows && !g->accumulate; r++) {
    int64_t from = r < *m ? *n : 0;
    memset(call->c + (size_t)(co + r * g->cm + from) * width, 0, (size_t)(columns - from) * width);
  }
}

static void product_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Call *call = with;
  const Product *p = call->p;
  const PlanGemm *g = &p->g;
  for (int64_t t = lo; t < hi; t++) {
    int64_t j = t % p->nn * p->tn, i = t / p->nn % p->nm * p->tm;
    int64_t m = MIN(p->tm, g->m - i), n = MIN(p->tn, g->n - j), ao = i * g->am, bo = j * g->bn, co = i * g->cm + j;
    int64_t move = t / p->nn / p->nm;
    loop_at(p->move, p->nmove, move, &ao, &bo, &co);
    if (g->ragged == RAGGED_m || g->ragged == RAGGED_n) tile_filled(call, move, i, j, &m, &n, co);
    if (!m || !n) continue;
    if (g->lib == LIB_onednn)
      tile_onednn(call, m, n, ao, bo, co, worker);
    else if (g->lib == LIB_panels)
      tile_panels(call, m, n, move, ao, bo, co, p->all->panels[worker]);
    else if (is_wide(g))
      tile_wide(call, m, n, move, ao, bo, co);
    else
      tile_widened(call, m, n, move, ao, bo, co, &p->all->room[worker]);
  }
}

// ---- preparing --------------------------------------------------------------------------------------------------
static void turn(PlanGemm *g) { // the product of the transposes: c's columns become its rows
  PlanGemm was = *g;
  g->m = was.n, g->n = was.m, g->a = was.b, g->b = was.a;
  g->am = was.bn, g->ak = was.bk, g->bk = was.ak, g->bn = was.am, g->cm = was.cn, g->cn = was.cm;
  if (was.ragged == RAGGED_m || was.ragged == RAGGED_n) g->ragged = was.ragged == RAGGED_m ? RAGGED_n : RAGGED_m;
  for (uint32_t i = 0; i < g->nloop; i++) g->loop[i].a = was.loop[i].b, g->loop[i].b = was.loop[i].a;
}

static void clear(const PlanGemm *g, char *c) { // nothing is summed: c is 0
  size_t width = dtype_bytes(g->c);
  int64_t total = 1;
  for (uint32_t i = 0; i < g->nloop; i++) total *= g->loop[i].c ? g->loop[i].n : 1;
  for (int64_t t = 0; t < total; t++) {
    int64_t at = 0, left = t;
    for (uint32_t i = g->nloop; i-- > 0;)
      if (g->loop[i].c) at += left % g->loop[i].n * g->loop[i].c, left /= g->loop[i].n;
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++) memset(c + (size_t)(at + i * g->cm + j * g->cn) * width, 0, width);
  }
}

static Status prepare_onednn(OneDnn *lib, Product *p) {
  const PlanGemm *g = &p->g;
  p->apart = g->a == DT_bf16; // tiles stored in c itself wait for its lines one by one
  int64_t m[2] = {p->tm, g->m % p->tm}, n[2] = {p->tn, g->n % p->tn};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int add = 0; add < 2; add++) {
        bool wanted = add ? p->sums > 1 || (g->accumulate && !p->apart) : !g->accumulate || p->apart;
        if (!m[i] || !n[j] || !wanted) continue;
        MatmulShape s = {g->a,  g->b,  p->apart ? DT_f32 : g->c, m[i],     n[j], g->k, g->am, g->ak,
                         g->bk, g->bn, p->apart ? p->tn : g->cm, g->alpha, add};
        TRY(onednn_matmul(lib, &s, &p->matmul[i][j][add]));
      }
  return 0;
}

static Status prepare(Gemms *all, Product *p, const PlanGemm *g) {
  p->all = all, p->g = *g, p->moves = p->sums = 1;
  if (g->n > 1 && g->cn != 1) turn(&p->g), p->turned = true;
  for (uint32_t i = 0; i < g->nloop; i++) {
    const GemmLoop *l = &p->g.loop[i];
    if (l->c || l->n == 1)
      p->move[p->nmove++] = *l, p->moves *= l->n;
    else
      p->sum[p->nsum++] = *l, p->sums *= l->n;
  }
  if (!g->m || !g->n || !g->k || !p->moves || !p->sums) return 0; // nothing is computed, or c is 0
  if (g->lib == LIB_panels) {
    choose_panels(p, all->threads);
    all->panels_bytes = MAX(all->panels_bytes, panel_room(p->tm, p->tn));
    return 0;
  }
  choose_tiles(p);
  if (g->lib == LIB_onednn) p->g.ragged = RAGGED_none;  // it has prepared its tiles whole
  return g->lib == LIB_onednn ? prepare_onednn(all->onednn, p) : (Status)0;
}

// The libraries do not cope with a system that refuses memory. What they and the threads' stacks and heaps map is
// tried first.
static Status has_room(Arena *a, int threads, bool openblas) {
  const size_t each = (size_t)(openblas ? 192 : 80) << 20;
  void **at = NEW_N(a, void *, threads + 1);
  int n = 0, e = 0;
  for (; n <= threads && !e; n += !e) {
    at[n] = mmap(0, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at[n] == MAP_FAILED) e = errno;
  }
  for (int i = 0; i < n; i++) munmap(at[i], each);
  if (!e) return 0;
  return fail(EXIT_UNAVAILABLE,
              "matrix products on %d thread%s need %lld MiB more of address space, the system refused: %s%s", threads,
              threads == 1 ? "" : "s", (long long)((size_t)(threads + 1) * each >> 20), strerror(e), space_limit());
}

static Status huge_room(void **out, size_t bytes) {                   // in huge pages, where the system has them
  enum { HUGE = 2 << 20 };
  *out = aligned_alloc(HUGE, (bytes + HUGE - 1) / HUGE * HUGE);
  if (!*out)
    return fail(EXIT_UNAVAILABLE, "no memory for matrix products: %zu MiB for each thread%s", bytes >> 20,
                space_limit());
  madvise(*out, bytes, MADV_HUGEPAGE);
  return 0;
}

static float *lines(Arena *a, int64_t n) { // n numbers, from the start of a cache line
  char *at = NEW_N(a, char, n * 4 + 64);
  return (float *)(void *)(at + (-(uintptr_t)at & 63));
}

Status gemm_open(Arena *a, const Plan *p, int threads, Gemms **out) {
  Gemms *all = *out = NEW(a, Gemms);
  bool used[LIB_COUNT] = {0};
  for (uint32_t i = 1; i < p->gemm.n; i++) {
    const PlanGemm *g = &p->gemm.at[i];
    used[g->lib] = true;
    all->narrow |= !is_wide(g) && g->lib != LIB_panels;
    if (g->lib == LIB_panels && !panel_has(g->a))
      return fail(EXIT_UNAVAILABLE, "the plan's matrix products of %s need a CPU with %s: compile the plan here",
                  dtype_name(g->a), g->a == DT_f32 ? "AVX-512" : "AVX-512 BF16");
  }
  if (used[LIB_openblas]) TRY(openblas_open(a, &all->openblas));
  if (used[LIB_openblas] || used[LIB_onednn]) TRY(has_room(a, threads, used[LIB_openblas]));
  if (used[LIB_onednn]) TRY(onednn_open(a, threads, &all->onednn));
  Text t;
  text_init(&t, a);
  if (all->onednn) text_puts(&t, onednn_name(all->onednn));
  if (all->openblas.name) text_printf(&t, "%s%s", t.n ? ", " : "", all->openblas.name);
  if (used[LIB_panels]) text_printf(&t, "%spanels %s", t.n ? ", " : "", panel_name());
  all->libraries = t.n ? t.s : "";
  all->threads = threads;
  all->room = NEW_N(a, Room, threads);
  for (int i = 0; i < threads && all->narrow; i++)
    all->room[i] = (Room){lines(a, TILE_M * CHUNK_K), lines(a, CHUNK_K * TILE_N), lines(a, TILE_M * TILE_N)};
  all->product = NEW_N(a, Product, p->gemm.n);
  int64_t turns = 0;
  for (uint32_t i = 1; i < p->gemm.n; i++) {
    TRY(prepare(all, &all->product[i], &p->gemm.at[i]));
    if (all->product[i].g.ragged) turns = MAX(turns, all->product[i].moves * all->product[i].sums);
  }
  all->filled = NEW_N(a, int64_t, turns);
  all->panels = NEW_N(a, void *, threads);
  for (int i = 0; i < threads && all->panels_bytes; i++) TRY(huge_room(&all->panels[i], all->panels_bytes));
  return 0;
}

void gemm_close(Gemms *g) {
  if (!g) return;
  onednn_close(g->onednn);
  for (int i = 0; g->panels && i < g->threads; i++) free(g->panels[i]);
}

int64_t gemm_rooms(const Gemms *g) {
  int64_t room = TILE_M * CHUNK_K + CHUNK_K * TILE_N + TILE_M * TILE_N;
  return g->threads * ((int64_t)g->panels_bytes + (g->narrow ? room * (int64_t)sizeof(float) : 0));
}

Str gemm_libraries(const Gemms *g) { return g->libraries; }

#ifdef __SANITIZE_THREAD__
// The libraries are not watched: what a product touches is told, row by row.
void __tsan_read_range(void *at, unsigned long n);
void __tsan_write_range(void *at, unsigned long n);

static void tell_rows(const void *at, DType t, int64_t rows, int64_t cols, int64_t row, int64_t col, bool written) {
  bool turned = col != 1 && cols > 1;
  int64_t n = turned ? cols : rows, each = turned ? rows : cols, step = turned ? col : row;
  for (int64_t i = 0; i < n; i++) {
    char *p = (char *)(uintptr_t)at + (size_t)(i * step) * dtype_bytes(t);
    (written ? __tsan_write_range : __tsan_read_range)(p, (size_t)each * dtype_bytes(t));
  }
}

static void tell(const Product *p, const Call *call) {
  const PlanGemm *g = &p->g;
  for (int64_t i = 0; i < p->moves; i++)
    for (int64_t s = 0; s < p->sums; s++) {
      int64_t a = 0, b = 0, c = 0, none = 0;
      loop_at(p->move, p->nmove, i, &a, &b, &c), loop_at(p->sum, p->nsum, s, &a, &b, &none);
      tell_rows(call->a + (size_t)a * dtype_bytes(g->a), g->a, g->m, g->k, g->am, g->ak, false);
      tell_rows(call->b + (size_t)b * dtype_bytes(g->b), g->b, g->k, g->n, g->bk, g->bn, false);
      tell_rows(call->c + (size_t)c * dtype_bytes(g->c), g->c, g->m, g->n, g->cm, g->cn, true);
    }
}
#endif

double gemm_run(Gemms *all, Work *w, uint32_t gemm, void *c, const void *a, const void *b) {
  const Product *p = &all->product[gemm];
  const PlanGemm *g = &p->g;
  if (!g->m || !g->n || !p->moves) return 0;
  if (!g->k || !p->sums) {
    if (!g->accumulate) clear(g, c);
    return 0;
  }
  Call call = {p, c, p->turned ? b : a, p->turned ? a : b};
#ifdef __SANITIZE_THREAD__
  tell(p, &call);
#endif
  if (g->ragged) work_run(w, filled_task, &call, p->moves * p->sums, 1);
  work_run(w, product_task, &call, p->nm * p->nn * p->moves, p->grain);
  return g->ragged ? left_out(p) : 0;
}

PlanLib gemm_choose(const PlanGemm *g) {
  enum { FEW = 32 };                          // rows of the operand that is read in place
  static int has[DT_COUNT];                   // oneDNN; 0: not asked yet
  bool both = g->a == g->b && (g->c == g->a || g->c == DT_f32);
  if (!both || (g->a != DT_f32 && g->a != DT_bf16)) return LIB_openblas;
  int64_t rows = g->n > 1 && g->cn != 1 ? g->n : g->m, columns = rows == g->m ? g->n : g->m;
  if (panel_has(g->a) && rows >= FEW && columns >= FEW) return LIB_panels;
  if (!has[g->a]) has[g->a] = onednn_has(g->a) ? 1 : -1;
  return has[g->a] > 0 ? LIB_onednn : LIB_openblas;
}
