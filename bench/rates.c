// rates.c -- what this machine reaches: matrix products by oneDNN and OpenBLAS, and copying. For step.py and kernels.
//
// A product is measured in every way there is, the best counts: each library on one thread, called by T threads that
// have a part of the rows, of the columns or of the batch each; and the library's own T threads. oneDNN's matmul also
// with the second operand in the format that it likes best (packed). A part's operands are where they are in the whole.
#include "runtime/options.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#ifdef MT_ONEDNN
#include <dnnl.h>
#endif

typedef struct { int64_t threads, copy; double seconds; } Settings;
static const Option rows[] = {
  OPTION(Settings, threads, 0, "threads", "T", "threads that compute"),
  OPTION(Settings, seconds, 0, "seconds", "S", "least time for each way of a product, beyond a first run"),
  OPTION(Settings, copy,    0, "copy", "MIB", "first the rate of copying an array of so many MiB to another"),
};
static const Command command = {
  "rates", "< PRODUCTS", "Measures matrix products over oneDNN and OpenBLAS, and the rate of copying.", rows,
  COUNT(rows),
  "A line of standard input is a product: FORMAT FORMAT-OF-C LAYOUT M N K [BATCH [WAYS]]. LAYOUT says of a and of b\n"
  "whether they are stored as they are (N) or transposed (T). WAYS: only these, by their names, joined by commas.\n"
  "A line of JSON comes out for each: GFLOP/s of every way, and the best. Copies: GB/s, read and written bytes\n"
  "counted. Operands are normally distributed, as in training.\n\n"
  "  printf 'f32 f32 NN 1024 768 3072\\nbf16 f32 TN 768 2304 256\\n' | rates --copy 1024"};

// ---- the libraries --------------------------------------------------------------------------------------------------
static struct {
  void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
  void (*set_threads)(int);
} openblas;
static void (*omp_threads)(int);             // of the calling thread

static void *open_library(const char *variable, const char *name) {
  const char *path = getenv(variable);
  return dlopen(path && *path ? path : name, RTLD_NOW | RTLD_GLOBAL);
}

static void load_openblas(void) {
  void *lib = open_library("MTRUN_OPENBLAS", "libopenblas.so.0");
  if (!lib) return;
  *(void **)&openblas.set_threads = dlsym(lib, "openblas_set_num_threads");
  if (openblas.set_threads) *(void **)&openblas.sgemm = dlsym(lib, "cblas_sgemm");
}

#ifdef MT_ONEDNN
#define API(X) \
  X(version) X(engine_create) X(stream_create) X(stream_destroy) X(memory_create) X(memory_destroy) \
  X(memory_desc_init_by_strides) X(memory_desc_init_by_tag) X(memory_desc_get_size) X(matmul_desc_init) \
  X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode) \
  X(primitive_desc_create) X(primitive_desc_destroy) X(primitive_desc_query_md) \
  X(primitive_create) X(primitive_destroy) X(primitive_execute) X(sgemm)
static struct {
#define X(name) __typeof__(dnnl_##name) *name;
  API(X)
#undef X
} api;
static dnnl_engine_t engine;                 // 0: no oneDNN

static void load_onednn(void) {
  void *lib = open_library("MTRUN_ONEDNN", "libdnnl.so.2");
  bool whole = lib;
#define X(name) \
  if (whole) *(void **)&api.name = dlsym(lib, "dnnl_" #name), whole = api.name;
  API(X)
#undef X
  if (!whole || api.version()->major != DNNL_VERSION_MAJOR || api.engine_create(&engine, dnnl_cpu, 0)) engine = 0;
}
#else
static void load_onednn(void) {}
#endif

static void load_libraries(void) {
  load_onednn(), load_openblas();
  *(void **)&omp_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
}

// ---- products -------------------------------------------------------------------------------------------------------
typedef struct {
  bool bf16, wide;                           // format of a and b; wide: c is f32
  bool ta, tb;                               // stored transposed
  int64_t m, n, k, batch;
} Product;

#define LIBRARIES(X) \
  X(matmul, "onednn matmul") X(packed, "onednn packed") X(sgemm, "onednn sgemm") X(openblas, "openblas")
#define SPLITS(X) X(rows, "rows") X(columns, "columns") X(batch, "batch") X(own, "own threads")
#define X(word, name) BY_##word,
typedef enum { LIBRARIES(X) BY_COUNT } Library;
#undef X
#define X(word, name) SPLIT_##word,
typedef enum { SPLITS(X) SPLIT_COUNT } Split;
#undef X
#define X(word, name) name,
static const char *const library_name[] = {LIBRARIES(X)}, *const split_name[] = {SPLITS(X)};
#undef X

typedef struct Try Try;
typedef struct {                             // what one thread does
  Try *of;
  int number;
  int64_t m, n, row, column, first, last;    // its part of c, and of the batch
  double begin, end;                         // of one sample
  bool failed;
#ifdef MT_ONEDNN
  dnnl_primitive_t primitive;
  dnnl_stream_t stream;
  dnnl_memory_t a, b, c, scratch;
  dnnl_memory_t *memory;                     // a b c of each of the batch
#endif
} Part;
struct Try {                                 // one way of one product
  const Product *p;
  Library library;
  Split split;
  int parts, threads, repeat;                // repeat: products in a sample
  char *a, *b, *c;
  double least, best;                        // seconds: of samples in all; of one product
  bool more, failed;
  pthread_barrier_t meet;
  Part *part;
};

// Normally distributed numbers, as operands are in training: of simpler ones (ones, zeros, all of one sign) a CPU multiplies
// some tenths more, as fewer of its wires change. Two of bf16 that are one of f32, too.
static uint32_t normal(uint32_t i) {
  uint32_t both = 0;
  uint64_t h = hash_mix(i, 1);
  for (int k = 0; k < 2; k++, h = hash_mix(h, 2)) {
    int64_t sum = 0;                         // of uniform ones: 8 make a normal one
    for (int j = 0; j < 8; j++) sum += (int64_t)(h >> 8 * j & 255) - 127;
    float x = (float)(sum ? sum : 1) / 209;  // as a half of an f32, 0 would make it subnormal
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    both = both << 16 | bits >> 16;
  }
  return both;
}

static void *room(size_t bytes) { // huge pages
  bytes = (bytes + (2 << 20)) / (2 << 20) * (2 << 20);
  uint32_t *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    fprintf(stderr, "rates: no memory for %zu bytes\n", bytes);
    exit(EXIT_UNAVAILABLE);
  }
  madvise(at, bytes, MADV_HUGEPAGE);
  enum { KNOWN = 1 << 16 };                  // then others of these
  for (size_t i = 0; i < bytes / 4; i++) at[i] = i < KNOWN ? normal((uint32_t)i) : at[hash_mix(i, 3) % KNOWN];
  return at;
}
static void start(pthread_t *thread, void *(*run)(void *), void *with) {
  if (!pthread_create(thread, 0, run, with)) return;
  fprintf(stderr, "rates: no thread\n");
  exit(EXIT_UNAVAILABLE);
}

static void leave(void *at, size_t bytes) { munmap(at, (bytes + (2 << 20)) / (2 << 20) * (2 << 20)); }

static size_t width(const Product *p) { return p->bf16 ? 2 : 4; }
static size_t c_width(const Product *p) { return p->wide ? 4 : 2; }

// Where the part's operands begin in product number i of the batch
static char *a_at(const Part *t, int64_t i) {
  const Product *p = t->of->p;
  return t->of->a + (size_t)(i * p->m * p->k + t->row * (p->ta ? 1 : p->k)) * width(p);
}
static char *b_at(const Part *t, int64_t i) {
  const Product *p = t->of->p;
  return t->of->b + (size_t)(i * p->k * p->n + t->column * (p->tb ? p->k : 1)) * width(p);
}
static char *c_at(const Part *t, int64_t i) {
  const Product *p = t->of->p;
  return t->of->c + (size_t)(i * p->m * p->n + t->row * p->n + t->column) * c_width(p);
}

#ifdef MT_ONEDNN
static void prepare_matmul(Part *t) {
  const Product *p = t->of->p;
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t d;
  dnnl_primitive_attr_t attr = 0;
  dnnl_primitive_desc_t desc = 0;
  dnnl_dims_t da = {t->m, p->k}, db = {p->k, t->n}, dc = {t->m, t->n};
  dnnl_dims_t sa = {p->ta ? 1 : p->k, p->ta ? p->m : 1}, sb = {p->tb ? 1 : p->n, p->tb ? p->k : 1}, sc = {p->n, 1};
  dnnl_data_type_t in = p->bf16 ? dnnl_bf16 : dnnl_f32;
  int e = api.memory_desc_init_by_strides(&a, 2, da, in, sa);
  if (!e && t->of->library == BY_packed) e = api.memory_desc_init_by_tag(&b, 2, db, in, dnnl_format_tag_any);
  else if (!e) e = api.memory_desc_init_by_strides(&b, 2, db, in, sb);
  if (!e) e = api.memory_desc_init_by_strides(&c, 2, dc, p->wide ? dnnl_f32 : dnnl_bf16, sc);
  if (!e) e = api.matmul_desc_init(&d, &a, &b, 0, &c);
  if (!e) e = api.primitive_attr_create(&attr);
  if (!e) e = api.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (!e) e = api.primitive_desc_create(&desc, &d, attr, engine, 0);
  if (!e) e = api.primitive_create(&t->primitive, desc);
  if (!e) e = api.stream_create(&t->stream, engine, dnnl_stream_default_flags);
  const dnnl_memory_desc_t *packed = e ? 0 : api.primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
  const dnnl_memory_desc_t *scratch = e ? 0 : api.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  t->memory = calloc((size_t)(3 * (t->last - t->first)), sizeof *t->memory);
  for (int64_t i = t->first; i < t->last && !e; i++) {
    dnnl_memory_t *at = t->memory + 3 * (i - t->first);
    // the packed operand may be larger than the plain one
    void *from = t->of->library == BY_packed ? DNNL_MEMORY_ALLOCATE : b_at(t, i);
    e = api.memory_create(&at[0], &a, engine, a_at(t, i));
    if (!e) e = api.memory_create(&at[1], packed, engine, from);
    if (!e) e = api.memory_create(&at[2], &c, engine, c_at(t, i));
  }
  if (!e) e = api.memory_create(&t->scratch, scratch, engine, DNNL_MEMORY_ALLOCATE);
  if (desc) api.primitive_desc_destroy(desc);
  if (attr) api.primitive_attr_destroy(attr);
  t->failed = e;
}

static void call_matmul(const Part *t) {
  for (int64_t i = t->first; i < t->last; i++) {
    const dnnl_memory_t *at = t->memory + 3 * (i - t->first);
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_SRC, at[0]}, {DNNL_ARG_WEIGHTS, at[1]}, {DNNL_ARG_DST, at[2]},
                             {DNNL_ARG_SCRATCHPAD, t->scratch}};
    api.primitive_execute(t->primitive, t->stream, COUNT(arg), arg);
  }
}

static void finish_matmul(Part *t) {
  for (int64_t i = 0; i < 3 * (t->last - t->first); i++)
    if (t->memory[i]) api.memory_destroy(t->memory[i]);
  free(t->memory);
  if (t->scratch) api.memory_destroy(t->scratch);
  if (t->stream) api.stream_destroy(t->stream);
  if (t->primitive) api.primitive_destroy(t->primitive);
}

static void call_sgemm(const Part *t) {
  const Product *p = t->of->p;
  for (int64_t i = t->first; i < t->last; i++)
    api.sgemm(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', t->m, t->n, p->k, 1, (float *)(void *)a_at(t, i),
              p->ta ? p->m : p->k, (float *)(void *)b_at(t, i), p->tb ? p->k : p->n, 0, (float *)(void *)c_at(t, i),
              p->n);
}
static bool has_onednn(void) { return engine; }
#else
static void prepare_matmul(Part *t) { t->failed = true; }
static void call_matmul(const Part *t) { (void)t; }
static void finish_matmul(Part *t) { (void)t; }
static void call_sgemm(const Part *t) { (void)t; }
static bool has_onednn(void) { return false; }
#endif

static void call_openblas(const Part *t) {
  enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
  const Product *p = t->of->p;
  for (int64_t i = t->first; i < t->last; i++)
    openblas.sgemm(ROW_MAJOR, p->ta ? TRANSPOSED : PLAIN, p->tb ? TRANSPOSED : PLAIN, (int)t->m, (int)t->n, (int)p->k,
                   1, (float *)(void *)a_at(t, i), (int)(p->ta ? p->m : p->k), (float *)(void *)b_at(t, i),
                   (int)(p->tb ? p->k : p->n), 0, (float *)(void *)c_at(t, i), (int)p->n);
}

static bool is_matmul(const Try *t) { return t->library == BY_matmul || t->library == BY_packed; }
static void call(const Part *t) {
  if (is_matmul(t->of)) call_matmul(t);
  else if (t->of->library == BY_sgemm) call_sgemm(t);
  else call_openblas(t);
}

// Between two meetings of all parts: nothing but products.
static void sample(Part *t) {
  pthread_barrier_wait(&t->of->meet);
  t->begin = now_seconds();
  for (int i = 0; i < t->of->repeat; i++) call(t);
  t->end = now_seconds();
  pthread_barrier_wait(&t->of->meet);
}

static double sample_seconds(const Try *t) {
  double begin = t->part[0].begin, end = t->part[0].end;
  for (int i = 1; i < t->parts; i++) begin = MIN(begin, t->part[i].begin), end = MAX(end, t->part[i].end);
  return (end - begin) / t->repeat;
}

static void *part_main(void *with) {
  enum { LEAST_SAMPLES = 2 };
  const double enough = MIN(4e-3, ((Part *)with)->of->least / 8);  // of a sample: what meeting costs does not show
  Part *t = with;
  Try *of = t->of;
  if (omp_threads) omp_threads(of->split == SPLIT_own ? of->threads : 1);
  if (is_matmul(of)) prepare_matmul(t);
  pthread_barrier_wait(&of->meet);
  if (!t->number)
    for (int i = 0; i < of->parts; i++) of->failed |= of->part[i].failed;
  pthread_barrier_wait(&of->meet);
  if (!of->failed) {
    sample(t), sample(t);                    // the first to touch everything, the second to see how long one takes
    if (!t->number) {
      double one = sample_seconds(of);
      of->repeat = one < enough ? (int)(enough / MAX(one, 1e-7)) + 1 : 1;
      of->best = one;
    }
    double spent = 0;
    for (int i = 0;; i++) {
      if (!t->number) of->more = i < LEAST_SAMPLES || spent < of->least;
      pthread_barrier_wait(&of->meet);
      if (!of->more) break;
      sample(t);
      double one = sample_seconds(of);
      spent += one * of->repeat;
      if (!t->number) of->best = MIN(of->best, one);
    }
  }
  if (is_matmul(of)) finish_matmul(t);
  return 0;
}

static void share(int64_t total, int parts, int i, int64_t *from, int64_t *to) { // in multiples of 16
  int64_t each = ((total + parts - 1) / parts + 15) / 16 * 16;
  *from = MIN(each * i, total), *to = MIN(*from + each, total);
}

// GFLOP/s; 0: there is no such way
static double measure(Try *t) {
  const Product *p = t->p;
  bool f32 = !p->bf16 && p->wide;
  if (t->library == BY_openblas ? !openblas.sgemm || !f32 : !has_onednn() || (t->library == BY_sgemm && !f32)) return 0;
  if (t->split == SPLIT_own && (t->threads == 1 || (t->library != BY_openblas && !omp_threads))) return 0;
  if (t->split == SPLIT_batch && p->batch < t->threads) return 0;
  if (t->split == SPLIT_rows && p->batch >= t->threads && p->batch > 1) return 0;
  if (t->split == SPLIT_columns && (t->threads == 1 || (p->batch >= t->threads && p->batch > 1))) return 0;
  t->parts = t->split == SPLIT_own ? 1 : t->threads, t->repeat = 1, t->failed = false;
  Part part[64] = {0};
  pthread_t thread[64];
  for (int i = 0; i < t->parts; i++) {
    Part *x = &part[i];
    int64_t rows_end = p->m, columns_end = p->n;
    *x = (Part){.of = t, .number = i, .last = p->batch};
    if (t->split == SPLIT_rows) share(p->m, t->parts, i, &x->row, &rows_end);
    if (t->split == SPLIT_columns) share(p->n, t->parts, i, &x->column, &columns_end);
    if (t->split == SPLIT_batch) x->first = p->batch * i / t->parts, x->last = p->batch * (i + 1) / t->parts;
    x->m = rows_end - x->row, x->n = columns_end - x->column;
    if (x->m < 1 || x->n < 1) return 0;      // nothing is left for the last thread
  }
  t->part = part;
  if (openblas.set_threads) openblas.set_threads(t->split == SPLIT_own && t->library == BY_openblas ? t->threads : 1);
  pthread_barrier_init(&t->meet, 0, (unsigned)t->parts);
  for (int i = 0; i < t->parts; i++)
    start(&thread[i], part_main, &part[i]);
  for (int i = 0; i < t->parts; i++) pthread_join(thread[i], 0);
  pthread_barrier_destroy(&t->meet);
  return t->failed ? 0 : 2e-9 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch / t->best;
}

static bool wanted(const char *ways, const char *name) { // is it one of the list's?
  size_t n = strlen(name);
  for (const char *p = ways; p && *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !memcmp(p, name, n)) return true;
  return !ways || !*ways;
}

static void measure_product(const Product *p, const Settings *s, const char *ways) {
  const size_t bytes[] = {(size_t)(p->m * p->k * p->batch) * width(p), (size_t)(p->k * p->n * p->batch) * width(p),
                          (size_t)(p->m * p->n * p->batch) * c_width(p)};
  Try t = {.p = p, .threads = (int)s->threads, .least = s->seconds};
  t.a = room(bytes[0]), t.b = room(bytes[1]), t.c = room(bytes[2]);
  double best = 0;
  char by[64] = "", comma[2] = "";
  printf("{\"ways\": {");
  for (t.library = 0; t.library < BY_COUNT; t.library++)
    for (t.split = 0; t.split < SPLIT_COUNT; t.split++) {
      char name[64];
      snprintf(name, sizeof name, "%s/%s", library_name[t.library], split_name[t.split]);
      double rate = wanted(ways, name) ? measure(&t) : 0;
      if (!(rate > 0)) continue;
      printf("%s\"%s\": %.2f", comma, name, rate);
      strcpy(comma, ",");
      if (rate > best) best = rate, memcpy(by, name, sizeof by);
    }
  printf("}, \"best\": %.2f, \"by\": \"%s\"}\n", best, by);
  fflush(stdout);
  leave(t.a, bytes[0]), leave(t.b, bytes[1]), leave(t.c, bytes[2]);
}

static bool read_product(const char *line, Product *p, char ways[1024]) {
  char in[8], out[8], layout[4];
  long long m, n, k, batch = 1;
  ways[0] = 0;
  if (sscanf(line, "%7s %7s %3s %lld %lld %lld %lld %1023[^\n]", in, out, layout, &m, &n, &k, &batch, ways) < 6)
    return false;
  bool bf16 = !strcmp(in, "bf16"), wide = !strcmp(out, "f32");
  if ((!bf16 && strcmp(in, "f32")) || (!wide && (!bf16 || strcmp(out, "bf16")))) return false;
  if (strspn(layout, "NT") != 2) return false;
  if (MIN(MIN(m, n), MIN(k, batch)) < 1 || MAX(MAX(m, n), k) > INT32_MAX) return false;
  *p = (Product){bf16, wide, layout[0] == 'T', layout[1] == 'T', m, n, k, batch};
  return true;
}

// ---- copying --------------------------------------------------------------------------------------------------------
typedef struct { const char *name; void (*copy)(char *to, const char *from, size_t n); } Copy;

static void copy_libc(char *to, const char *from, size_t n) { memcpy(to, from, n); }
#if defined(__x86_64__)
__attribute__((target("avx"))) static void copy_plain(char *to, const char *from, size_t n) {
  for (size_t i = 0; i < n; i += 64) {
    __m256i a = _mm256_load_si256((const void *)(from + i)), b = _mm256_load_si256((const void *)(from + i + 32));
    _mm256_store_si256((void *)(to + i), a), _mm256_store_si256((void *)(to + i + 32), b);
  }
}
__attribute__((target("avx"))) static void copy_past(char *to, const char *from, size_t n) {
  for (size_t i = 0; i < n; i += 64) {
    __m256i a = _mm256_load_si256((const void *)(from + i)), b = _mm256_load_si256((const void *)(from + i + 32));
    _mm256_stream_si256((void *)(to + i), a), _mm256_stream_si256((void *)(to + i + 32), b);
  }
  _mm_sfence();
}
static const Copy copies[] = {{"plain", copy_plain}, {"non-temporal", copy_past}, {"memcpy", copy_libc}};
#else
static const Copy copies[] = {{"memcpy", copy_libc}};
#endif

typedef struct {
  char *to;
  const char *from;
  size_t n;
  const Copy *copy;
  pthread_barrier_t *meet;
  double begin[8], end[8];
} CopyPart;
enum { COPY_SAMPLES = 4 };

static void *copy_main(void *with) {
  CopyPart *p = with;
  for (int i = 0; i < COPY_SAMPLES; i++) {
    pthread_barrier_wait(p->meet);
    p->begin[i] = now_seconds();
    p->copy->copy(p->to, p->from, p->n);
    p->end[i] = now_seconds();
  }
  return 0;
}

static double copy_rate(const Copy *c, char *to, const char *from, size_t n, int threads) { // GB/s
  CopyPart part[64];
  pthread_t thread[64];
  pthread_barrier_t meet;
  size_t each = n / (size_t)threads / 64 * 64;
  pthread_barrier_init(&meet, 0, (unsigned)threads);
  for (int i = 0; i < threads; i++) {
    size_t at = (size_t)i * each;
    part[i] = (CopyPart){.to = to + at, .from = from + at, .n = each, .copy = c, .meet = &meet};
    start(&thread[i], copy_main, &part[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(thread[i], 0);
  pthread_barrier_destroy(&meet);
  double best = 0;
  for (int k = 0; k < COPY_SAMPLES; k++) {
    double begin = part[0].begin[k], end = part[0].end[k];
    for (int i = 1; i < threads; i++) begin = MIN(begin, part[i].begin[k]), end = MAX(end, part[i].end[k]);
    best = MAX(best, 2e-9 * (double)each * threads / (end - begin));
  }
  return best;
}

static void measure_copy(const Settings *s) {
  size_t n = (size_t)s->copy << 20;
  char *from = room(n), *to = room(n);
  double best = 0;
  printf("{\"copy\": {");
  for (size_t i = 0; i < COUNT(copies); i++) {
    double rate = copy_rate(&copies[i], to, from, n, (int)s->threads);
    printf("%s\"%s\": %.2f", i ? ", " : "", copies[i].name, rate);
    best = MAX(best, rate);
  }
  printf("}, \"best\": %.2f}\n", best);
  fflush(stdout);
  leave(from, n), leave(to, n);
}

int main(int argc, char **argv) {
  Arena *a = arena_create();
  Settings s = {.threads = 2, .seconds = 0.05};
  const Settings defaults = s;
  Words words = {0};
  bool help;
  program_name = "rates";
  Status e = options_parse(a, &command, argc, argv, &s, &words, &help);
  if (!e && help) options_help(&command, &defaults, stdout);
  if (e || help) return arena_destroy(a), e;
  if (words.n) e = fail(EXIT_USAGE, "products are read from standard input");
  if (!e && (s.threads < 1 || s.threads > 64)) e = fail(EXIT_USAGE, "--threads %lld: 1 to 64", (long long)s.threads);
  if (!e && (s.copy < 0 || s.copy > 1 << 20))
    e = fail(EXIT_USAGE, "--copy %lld: MiB, at most 1048576", (long long)s.copy);
  if (!e && s.copy) measure_copy(&s);
  setenv("OMP_NUM_THREADS", "1", 1), setenv("OPENBLAS_NUM_THREADS", "1", 1);               // read when they are loaded
  char line[2048], ways[1024];
  bool loaded = false;
  while (!e && fgets(line, sizeof line, stdin)) {
    Product p;
    if (line[strspn(line, " \t\n")] == 0) continue;
    if (!read_product(line, &p, ways)) {
      e = fail(EXIT_INPUT, "no product: %.100s", line);
      break;
    }
    if (!loaded) load_libraries(), loaded = true;
    measure_product(&p, &s, ways);
  }
  arena_destroy(a);
  return e;
}
