// blas.c -- see blas.h.
//
// A product is cut into tiles of c by a rule that knows m, n, k and nothing else; workers claim them. One tile is one call
// (for 16-bit formats: operands widened to f32 in chunks of k, summed in f32, rounded once), so its bits are fixed. Loops
// that move c are more tiles; loops that do not are summed inside the tile, in order.
#include "runtime/blas.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };  // cblas.h
typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);
typedef void Dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                   const double *b, int ldb, double beta, double *c, int ldc);

enum { TILE_M = 256, TILE_N = 512, TILE_LEAST = 64, CHUNK_K = 512 };
typedef struct {
  float *a, *b, *c;
} Room; // of one worker: TILE_M·CHUNK_K, CHUNK_K·TILE_N, TILE_M·TILE_N

struct Blas {
  Sgemm *sgemm;
  Dgemm *dgemm;
  Str name;
  Room *room;
};

static void *symbol(void *lib, const char *name) { return lib ? dlsym(lib, name) : 0; }

// OpenBLAS maps 128 MiB for each thread that calls it, and tries for ever when the system refuses. A thread's stack and
// heap map some more until then: 192 for each, and once more for the streams.
static Status has_room(Arena *a, int threads) {
  const size_t each = (size_t)192 << 20;
  void **at = NEW_N(a, void *, threads + 1);
  int n = 0, e = 0;
  for (; n <= threads && !e; n += !e) {
    at[n] = mmap(0, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at[n] == MAP_FAILED) e = errno;
  }
  for (int i = 0; i < n; i++) munmap(at[i], each);
  if (!e) return 0;
  return fail(EXIT_UNAVAILABLE, "matrix products on %d thread%s need %lld MiB more of address space, the system refused: %s", threads,
              threads == 1 ? "" : "s", (long long)(threads + 1) * 192, strerror(e));
}

Status blas_open(Arena *a, int threads, bool narrow, Blas **out) {
  const char *path = getenv("MTRUN_OPENBLAS");
  path = path && *path ? path : "libopenblas.so.0";
  setenv("OPENBLAS_NUM_THREADS", "1", 1); // read when it is loaded: it starts no threads of its own
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    return fail(EXIT_UNAVAILABLE,
                "matrix products need OpenBLAS: %s\n  install it: apt-get install libopenblas0-pthread",
                dlerror());
  Blas *b = *out = NEW(a, Blas);
  void (*set_threads)(int);
  char *(*config)(void), *(*core)(void);
  *(void **)&b->sgemm = symbol(lib, "cblas_sgemm"), *(void **)&b->dgemm = symbol(lib, "cblas_dgemm");
  *(void **)&set_threads = symbol(lib, "openblas_set_num_threads");
  *(void **)&config = symbol(lib, "openblas_get_config"), *(void **)&core = symbol(lib, "openblas_get_corename");
  if (!b->sgemm || !b->dgemm || !set_threads)
    return fail(EXIT_UNAVAILABLE,
                "%s is no OpenBLAS: cblas_sgemm, cblas_dgemm or openblas_set_num_threads is missing", path);
  set_threads(1);
  TRY(has_room(a, threads));
  const char *c = config ? config() : "OpenBLAS";
  int words = 0;
  size_t n = 0;
  while (c[n] && !(c[n] == ' ' && ++words == 2)) n++;      // "OpenBLAS 0.3.21"
  b->name = arena_printf(a, "%.*s %s", (int)n, c, core ? core() : "");
  b->room = NEW_N(a, Room, threads);
  for (int i = 0; i < threads && narrow; i++)
    b->room[i] = (Room){NEW_N(a, float, TILE_M *CHUNK_K), NEW_N(a, float, CHUNK_K *TILE_N),
                        NEW_N(a, float, TILE_M *TILE_N)};
  return 0;
}

Str blas_name(const Blas *b) { return b->name; }

// ---- one product --------------------------------------------------------------------------------------------------------
typedef struct {
  Blas *blas;
  PlanGemm g;                                // rows of c are contiguous: cn is 1
  char *c;
  const char *a, *b;
  int64_t tm, tn, nm, nn;                    // tile, and how many of them each way
  uint32_t nmove, nsum;
  GemmLoop move[GEMM_LOOPS], sum[GEMM_LOOPS];// loops that move c, and those that add to it
} Product;

static int64_t at_most(int64_t n, int64_t tile) { // n in pieces of at most `tile`, about equal, multiples of 16
  int64_t pieces = (n + tile - 1) / tile;
  return pieces ? MIN(((n + pieces - 1) / pieces + 15) / 16 * 16, tile) : 1;
}

static void choose_tiles(Product *p) {
  const PlanGemm *g = &p->g;
  int64_t tm = TILE_M, tn = TILE_N, moves = 1;
  for (uint32_t i = 0; i < p->nmove; i++) moves *= p->move[i].n;
  for (;;) {                                               // enough tiles to share, none too small to pay
    int64_t m = MIN(tm, g->m), n = MIN(tn, g->n), tiles = ((g->m + tm - 1) / tm) * ((g->n + tn - 1) / tn) * moves;
    if (tiles >= 8 || 2.0 * (double)m * (double)n * (double)g->k < 48e6 ||
        (m <= TILE_LEAST && n <= TILE_LEAST))
      break;
    if (m >= n) tm = MAX(m / 2, TILE_LEAST);
    else tn = MAX(n / 2, TILE_LEAST);
  }
  p->tm = at_most(g->m, tm), p->tn = at_most(g->n, tn);
  p->nm = (g->m + p->tm - 1) / p->tm, p->nn = (g->n + p->tn - 1) / p->tn;
}

// The i-th index of nested loops, the last the fastest, as element offsets.
static void loop_at(const GemmLoop *l, uint32_t n, int64_t i, int64_t *a, int64_t *b, int64_t *c) {
  while (n-- > 0) {
    int64_t k = i % l[n].n;
    i /= l[n].n, *a += k * l[n].a, *b += k * l[n].b, *c += k * l[n].c;
  }
}

// How an operand of rows × cols with these strides is passed: plain rows, or rows of the transpose.
typedef struct { int trans, ld; } Layout;
static Layout layout_of(int64_t rows, int64_t cols, int64_t row, int64_t col) {
  if (cols <= 1 || col == 1) return (Layout){PLAIN, (int)(rows > 1 ? MAX(row, 1) : MAX(cols, 1))};
  return (Layout){TRANSPOSED, (int)MAX(col, 1)};
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
        for (int64_t j = 0; j < cols; j++)
          to[j] = t == DT_bf16 ? bf16_to_f32(p[j * col]) : f16_to_f32(p[j * col]);
    }
  }
}

static void narrow_row(char *to, DType t, const float *from, int64_t n, bool accumulate) {
  for (int64_t j = 0; j < n; j++) {
    float *f = (float *)(void *)to + j;
    uint16_t *h = (uint16_t *)(void *)to + j;
    if (t == DT_f32) *f = accumulate ? *f + from[j] : from[j];
    else if (t == DT_bf16) *h = f32_to_bf16(accumulate ? bf16_to_f32(*h) + from[j] : from[j]);
    else *h = f32_to_f16(accumulate ? f16_to_f32(*h) + from[j] : from[j]);
  }
}

// One tile of c at rows i…, columns j…; ao, bo, co: where the moving loops are
static void tile_wide(const Product *p, int64_t m, int64_t n, int64_t ao, int64_t bo, int64_t co) {
  const PlanGemm *g = &p->g;
  int64_t sums = 1;
  for (uint32_t i = 0; i < p->nsum; i++) sums *= p->sum[i].n;
  Layout a = layout_of(g->m, g->k, g->am, g->ak), b = layout_of(g->k, g->n, g->bk, g->bn);
  int ldc = (int)(g->m > 1 ? g->cm : MAX(g->n, 1));
  for (int64_t s = 0; s < sums; s++) {
    int64_t as = ao, bs = bo, none = 0;
    loop_at(p->sum, p->nsum, s, &as, &bs, &none);
    double beta = g->accumulate || s ? 1 : 0;
    if (g->c == DT_f64)
      p->blas->dgemm(ROW_MAJOR, a.trans, b.trans, (int)m, (int)n, (int)g->k, g->alpha,
                     (const double *)(const void *)p->a + as, a.ld, (const double *)(const void *)p->b + bs,
                     b.ld, beta, (double *)(void *)p->c + co, ldc);
    else
      p->blas->sgemm(ROW_MAJOR, a.trans, b.trans, (int)m, (int)n, (int)g->k, (float)g->alpha,
                     (const float *)(const void *)p->a + as, a.ld, (const float *)(const void *)p->b + bs,
                     b.ld, (float)beta, (float *)(void *)p->c + co, ldc);
  }
}

static void tile_narrow(const Product *p, int64_t m, int64_t n, int64_t ao, int64_t bo, int64_t co,
                        const Room *r) {
  const PlanGemm *g = &p->g;
  int64_t sums = 1;
  float beta = 0;
  for (uint32_t i = 0; i < p->nsum; i++) sums *= p->sum[i].n;
  memset(r->c, 0, (size_t)(m * n) * sizeof *r->c);
  for (int64_t s = 0; s < sums; s++) {
    int64_t as = ao, bs = bo, none = 0;
    loop_at(p->sum, p->nsum, s, &as, &bs, &none);
    for (int64_t k = 0; k < g->k; k += CHUNK_K, beta = 1) {
      int64_t kc = MIN(CHUNK_K, g->k - k);
      widen(r->a, p->a + (size_t)(as + k * g->ak) * dtype_bytes(g->a), g->a, m, kc, g->am, g->ak);
      widen(r->b, p->b + (size_t)(bs + k * g->bk) * dtype_bytes(g->b), g->b, kc, n, g->bk, g->bn);
      p->blas->sgemm(ROW_MAJOR, PLAIN, PLAIN, (int)m, (int)n, (int)kc, (float)g->alpha, r->a, (int)kc, r->b,
                     (int)n, beta, r->c, (int)n);
    }
  }
  for (int64_t i = 0; i < m; i++)
    narrow_row(p->c + (size_t)(co + i * g->cm) * dtype_bytes(g->c), g->c, r->c + i * n, n, g->accumulate);
}

static void product_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Product *p = with;
  const PlanGemm *g = &p->g;
  for (int64_t t = lo; t < hi; t++) {
    int64_t j = t % p->nn * p->tn, i = t / p->nn % p->nm * p->tm;
    int64_t m = MIN(p->tm, g->m - i), n = MIN(p->tn, g->n - j), ao = i * g->am, bo = j * g->bn,
            co = i * g->cm + j;
    loop_at(p->move, p->nmove, t / p->nn / p->nm, &ao, &bo, &co);
    if (g->a == DT_f64 || (g->a == DT_f32 && g->b == DT_f32 && g->c == DT_f32)) tile_wide(p, m, n, ao, bo, co);
    else tile_narrow(p, m, n, ao, bo, co, &p->blas->room[worker]);
  }
}

static void turn(PlanGemm *g) { // the product of the transposes: c's columns become its rows
  PlanGemm was = *g;
  g->m = was.n, g->n = was.m, g->a = was.b, g->b = was.a;
  g->am = was.bn, g->ak = was.bk, g->bk = was.ak, g->bn = was.am, g->cm = was.cn, g->cn = was.cm;
  for (uint32_t i = 0; i < g->nloop; i++) g->loop[i].a = was.loop[i].b, g->loop[i].b = was.loop[i].a;
}

static void clear(const PlanGemm *g, char *c) {            // nothing is summed: c is 0
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

void blas_gemm(Blas *blas, Work *w, const PlanGemm *g, void *c, const void *a, const void *b) {
  Product p = {.blas = blas, .g = *g, .c = c, .a = a, .b = b};
  bool rows = g->n <= 1 || g->cn == 1;
  if (!rows) turn(&p.g), p.a = b, p.b = a;
  int64_t moves = 1, sums = 1;
  for (uint32_t i = 0; i < g->nloop; i++) {
    const GemmLoop *l = &p.g.loop[i];
    if (l->c || l->n == 1) p.move[p.nmove++] = *l, moves *= l->n;
    else p.sum[p.nsum++] = *l, sums *= l->n;
  }
  if (!g->m || !g->n || !moves) return;
  if (!g->k || !sums) {
    if (!g->accumulate) clear(g, c);
    return;
  }
  choose_tiles(&p);
  double flops = 2.0 * (double)p.tm * (double)p.tn * (double)g->k * (double)sums;
  work_run(w, product_task, &p, p.nm * p.nn * moves, flops < 1e6 ? (int64_t)(1e6 / flops) + 1 : 1);
}
