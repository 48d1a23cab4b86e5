// rates.c -- see rates.h.
//
// The file is one JSON object in the user's cache, as safe as the kernels beside it: it is read only when it is this
// user's and nobody else can write it, and it is replaced at once. A row is found by its key. The file counts only when
// every number in it can be one.
#include "runtime/rates.h"
#include "runtime/file.h"
#include "runtime/gemm.h"
#include "runtime/jit.h"
#include "runtime/json_text.h"
#include "runtime/rows.h"
#include "runtime/vector.h"
#include "runtime/work.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define X(word) #word,
static const Str format_name[] = {RATE_FORMATS(X)}, layout_name[] = {RATE_LAYOUTS(X)}, tokens_name[] = {RATE_TOKENS(X)};
#undef X
#define X(word) word,
static const int64_t tokens_of[] = {RATE_TOKENS(X)};
#undef X
#define X(word) DT_##word,
static const DType format_of[] = {RATE_FORMATS(X)};
#undef X
static const struct { Str name, what, unit; size_t at; } plain[] = {
#define X(name, what, unit) {#name, what, unit, offsetof(Rates, name)},
  RATES(X)
#undef X
};
static double *plain_at(Rates *r, size_t i) { return (double *)(void *)((char *)r + plain[i].at); }

// ---- measuring ------------------------------------------------------------------------------------------------------
enum { ROUNDS = 7, EACH = 8, CHUNK = 1 << 20, JOBS = 500, IN = 768, OUT = 3072 };
typedef struct { double at[ROUNDS * EACH]; int n; } Samples;       // seconds
static void sample_add(Samples *s, double seconds) { s->at[s->n++] = seconds; }

static int by_size(const void *x, const void *y) {
  const double *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}
static double median(Samples s) {
  qsort(s.at, (size_t)s.n, sizeof *s.at, by_size);
  return s.at[s.n / 2];
}

static char *room(size_t bytes) {                          // 0: the system refused
  void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 0;
  madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

static size_t array_bytes(void) {                          // much more than the caches, a small part of the memory
  size_t memory = (size_t)MAX(sysconf(_SC_PHYS_PAGES), 0) * 4096;
  size_t cache = (size_t)MAX(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  size_t want = MIN(MAX(2 * cache, (size_t)256 << 20), (size_t)512 << 20);
  return MAX(MIN(want, memory / 16), (size_t)16 << 20) / (4 * CHUNK) * (4 * CHUNK);
}

// past: the caches. n: in an update, the moments lie so many numbers behind the parameters and the gradients
typedef struct { char *to; const char *from; bool past; int64_t n; } Copy;
static void touch_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Copy *c = with;
  (void)worker;
  memset(c->to + lo * CHUNK, 0, (size_t)(hi - lo) * CHUNK);
}
static void copy_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Copy *c = with;
  char *to = c->to + lo * CHUNK;
  const char *from = c->from + lo * CHUNK;
  (void)worker;
  if (c->past) row_stream((float *)(void *)to, (const float *)(const void *)from, (hi - lo) * CHUNK / 4), rows_done();
  else memcpy(to, from, (size_t)(hi - lo) * CHUNK);
}

MT_FN void adam(float *restrict p, const float *restrict g, float *restrict m, float *restrict v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    m[i] = 0.9f * m[i] + 0.1f * g[i], v[i] = 0.99f * v[i] + 0.01f * g[i] * g[i];
    p[i] -= 1e-6f * m[i] / (__builtin_sqrtf(v[i]) + 1e-8f);
  }
}
VECTORS(void, adam, (float *p, const float *g, float *m, float *v, int64_t n), (p, g, m, v, n))
static void update_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Copy *c = with;
  float *p = (float *)(void *)c->to + lo * CHUNK / 4, *m = p + c->n;
  const float *g = (const float *)(const void *)c->from + lo * CHUNK / 4;
  (void)worker;
  adam_here(p, g, m, (float *)(uintptr_t)(g + c->n), (hi - lo) * CHUNK / 4);
}
static void empty_task(void *with, int64_t lo, int64_t hi, int worker) { (void)with, (void)lo, (void)hi, (void)worker; }

// The three products of a linear layer, in this order of layouts
static PlanGemm product_of(RateFormat f, RateLayout l, int64_t m) {
  DType t = format_of[f];
  PlanGemm g = {.a = t, .b = t, .c = t, .alpha = 1};
  switch (l) {
    case RL_NN: g.m = m, g.n = OUT, g.k = IN, g.am = IN, g.ak = 1, g.bk = OUT, g.bn = 1; break;
    case RL_NT: g.m = m, g.n = IN, g.k = OUT, g.am = OUT, g.ak = 1, g.bk = 1, g.bn = OUT; break;
    case RL_TN: g.m = IN, g.n = OUT, g.k = m, g.am = 1, g.ak = IN, g.bk = OUT, g.bn = 1; break;
    case RL_COUNT: break;
  }
  if (l == RL_TN && t == DT_bf16) g.c = DT_f32;            // gradients of weights are summed in f32
  g.cm = g.n, g.cn = 1, g.lib = gemm_choose(&g);
  return g;
}

typedef struct {
  Gemms *gemms;                              // 0: no library
  uint32_t id[RL_COUNT][RT_COUNT];
  char *a, *b, *c;
  Samples seconds[RL_COUNT][RT_COUNT];
} Format;
enum { OPERAND = 8 * OUT * 1024 };           // bytes of the largest, in f64

static void formats_open(Arena *a, int threads, Format *f) {
  bool missing[LIB_COUNT] = {0};                           // and said to be
  for (RateFormat k = 0; k < RF_COUNT; k++) {
    Plan *p = plan_create(a);
    PlanLib lib = product_of(k, RL_NN, tokens_of[0]).lib;
    for (RateLayout l = 0; l < RL_COUNT; l++)
      for (RateTokens m = 0; m < RT_COUNT; m++) f[k].id[l][m] = plan_gemm(p, product_of(k, l, tokens_of[m]));
    if (missing[lib] || !gemm_open(a, p, threads, &f[k].gemms)) continue;
    gemm_close(f[k].gemms), f[k].gemms = 0, missing[lib] = true;
  }
}
static Status format_fill(RateFormat f, Format *to) {
  to->a = room(OPERAND), to->b = room(OPERAND), to->c = room(OPERAND);
  if (!to->a || !to->b || !to->c) return fail(EXIT_UNAVAILABLE, "no memory to measure in%s", space_limit());
  size_t width = dtype_bytes(format_of[f]);
  for (int64_t i = 0; i < OUT * 1024; i++) {               // no zeroes, no huge sums
    double x = (double)(i * 7919 % 1021 - 510) / 1024;
    dtype_store(format_of[f], to->a + (size_t)i * width, x), dtype_store(format_of[f], to->b + (size_t)i * width, -x);
  }
  return 0;
}
static void format_close(Format *f) {
  gemm_close(f->gemms);
  char *all[] = {f->a, f->b, f->c};
  for (size_t i = 0; i < COUNT(all); i++)
    if (all[i]) munmap(all[i], OPERAND);
}

static double product_seconds(Format *f, Work *w, uint32_t id) {
  double begin = now_seconds();
  gemm_run(f->gemms, w, id, f->c, f->a, f->b);
  return now_seconds() - begin;
}
static void format_sample(Format *f, Work *w, bool first) {
  const double enough = 0.012;                             // seconds of a round
  for (RateLayout l = 0; l < RL_COUNT && f->gemms; l++)
    for (RateTokens m = 0; m < RT_COUNT; m++) {
      double spent = 0, one;
      if (first) product_seconds(f, w, f->id[l][m]);       // touches everything
      for (int i = 0; i < EACH && spent < enough; i++, spent += one)
        sample_add(&f->seconds[l][m], one = product_seconds(f, w, f->id[l][m]));
    }
}

typedef struct { Samples copy_one[2], copy[2], update, job; } Plain;      // [past the caches]
static double timed(Work *w, Task *task, void *with, int64_t n, int64_t grain) {
  double begin = now_seconds();
  if (w) work_run(w, task, with, n, grain);
  else task(with, 0, n, 0);
  return now_seconds() - begin;
}
static void plain_sample(Plain *s, Work *w, char *to, char *from, int64_t chunks) {
  Copy c = {to, from, false, chunks / 2 * CHUNK / 4};
  sample_add(&s->update, timed(w, update_task, &c, chunks / 2, 1));
  for (int past = 0; past < 2; past++) {
    c.past = past;
    sample_add(&s->copy_one[past], timed(0, copy_task, &c, chunks, 1));
    sample_add(&s->copy[past], timed(w, copy_task, &c, chunks, 1));
  }
  double begin = now_seconds();
  for (int i = 0; i < JOBS; i++) work_run(w, empty_task, 0, work_threads(w), 1);
  sample_add(&s->job, (now_seconds() - begin) / JOBS);
}

static void set_rates(Rates *r, const Plain *s, const Format *f, double bytes) {
  r->copy_one = 2e-9 * bytes / MIN(median(s->copy_one[0]), median(s->copy_one[1]));
  r->copy = 2e-9 * bytes / MIN(median(s->copy[0]), median(s->copy[1]));
  r->update = 28e-9 * (bytes / 8) / median(s->update);     // half the bytes of two arrays are p and m, g and v
  r->job = 1e6 * median(s->job);
  for (RateFormat k = 0; k < RF_COUNT; k++)
    for (RateLayout l = 0; l < RL_COUNT; l++)
      for (RateTokens m = 0; m < RT_COUNT; m++)
        if (f[k].gemms) r->product[k][l][m] = 2e-9 * IN * OUT * (double)tokens_of[m] / median(f[k].seconds[l][m]);
}

static Str libraries_of(Arena *a, const Format *f) {
  Text t;
  text_init(&t, a);
  for (RateFormat k = 0; k < RF_COUNT; k++) {
    Str name = f[k].gemms ? gemm_libraries(f[k].gemms) : "";
    if (*name && !strstr(t.s, name)) text_printf(&t, "%s%s", t.n ? ", " : "", name);
  }
  return t.s;
}

Str rates_libraries(Arena *a, int threads) {
  Format f[RF_COUNT] = {0};
  formats_open(a, threads, f);
  Str s = libraries_of(a, f);
  for (RateFormat k = 0; k < RF_COUNT; k++) format_close(&f[k]);
  return s;
}

static Str today(Arena *a) {
  time_t now = time(0);
  struct tm day = {0};
  char text[16];
  localtime_r(&now, &day);
  return arena_strndup(a, text, strftime(text, sizeof text, "%Y-%m-%d", &day));
}

Status rates_measure(Arena *a, int threads, Rates *r) {
  Work *w;
  Format f[RF_COUNT] = {0};
  Plain s = {0};
  size_t bytes = array_bytes();
  formats_open(a, threads, f);
  *r = (Rates){.threads = threads, .cpu = jit_cpu(a), .libraries = libraries_of(a, f), .day = today(a)};
  char *to = room(bytes), *from = room(bytes);
  Status e = to && from ? 0 : fail(EXIT_UNAVAILABLE, "no memory to measure in%s", space_limit());
  for (RateFormat k = 0; k < RF_COUNT && !e; k++) e = format_fill(k, &f[k]);
  if (!e && !(e = work_create(a, threads, &w))) {
    int64_t chunks = (int64_t)(bytes / CHUNK);
    timed(w, touch_task, &(Copy){.to = to}, chunks, 1), timed(w, touch_task, &(Copy){.to = from}, chunks, 1);
    for (int i = 0; i < ROUNDS; i++) {
      plain_sample(&s, w, to, from, chunks);
      for (RateFormat k = 0; k < RF_COUNT; k++) format_sample(&f[k], w, !i);
    }
    set_rates(r, &s, f, (double)bytes);
    work_destroy(w);
  }
  for (RateFormat k = 0; k < RF_COUNT; k++) format_close(&f[k]);
  if (to) munmap(to, bytes);
  if (from) munmap(from, bytes);
  return e;
}

// ---- the file -------------------------------------------------------------------------------------------------------
enum { VERSION = 1, MOST_BYTES = 1 << 20, MOST_ROWS = 64 };
typedef VEC(Rates) Rows;

Str rates_path(Arena *a) {
  const char *wrong, *folder = cache_folder(a, "", false, &wrong);
  return folder ? arena_printf(a, "%s/rates.json", folder) : 0;
}

static bool ignore(Str path, Str why) {
  fail(0, "%s is ignored: %s; mtrun --calibrate=again makes it anew", path, why);
  return false;
}

static Str key_text(Arena *a, const json_t *row, Str key) {
  const json_t *v = json_object_get(row, key);
  return json_is_string(v) ? arena_strndup(a, json_string_value(v), json_string_length(v)) : 0;
}
static bool key_rate(const json_t *row, Str key, double *to) {
  const json_t *v = json_object_get(row, key);
  *to = json_number_value(v);
  return json_is_number(v) && *to >= 0 && *to <= 1e9;
}

static Str product_key(Arena *a, RateFormat f, RateLayout l, RateTokens m) {
  return arena_printf(a, "%s_%s_%s", format_name[f], layout_name[l], tokens_name[m]);
}

static bool row_read(Arena *a, const json_t *row, Rates *r) {
  *r = (Rates){.cpu = key_text(a, row, "cpu"), .day = key_text(a, row, "day")};
  r->libraries = key_text(a, row, "libraries");
  const json_t *threads = json_object_get(row, "threads");
  bool right = r->cpu && r->libraries && r->day && json_is_integer(threads);
  r->threads = json_integer_value(threads);
  for (size_t i = 0; i < COUNT(plain); i++) {
    right = right && key_rate(row, plain[i].name, plain_at(r, i));
    if (right && strcmp(plain[i].name, "job")) right = *plain_at(r, i) > 0;
  }
  for (RateFormat f = 0; f < RF_COUNT; f++)
    for (RateLayout l = 0; l < RL_COUNT; l++)
      for (RateTokens m = 0; m < RT_COUNT; m++)
        right = right && key_rate(row, product_key(a, f, l, m), &r->product[f][l][m]);
  return right;
}

// What the file has; no rows when it is not there or not right.
static bool file_rows(Arena *a, Str path, const struct stat *st, int fd, Rows *rows) {
  if (S_ISDIR(st->st_mode)) return ignore(path, "it is a folder (remove it)");
  if (!S_ISREG(st->st_mode)) return ignore(path, "it is no file");
  if (st->st_uid != geteuid()) return ignore(path, "it belongs to another user");
  if (st->st_mode & 022) return ignore(path, "others can write it");
  if (st->st_size > MOST_BYTES) return ignore(path, "it is too large");
  char *text = arena_alloc(a, (size_t)st->st_size + 1);
  json_t *all;
  if (file_pread(fd, path, 0, text, (size_t)st->st_size) || json_read(path, text, (size_t)st->st_size, 4, &all))
    return ignore(path, "it is damaged");
  const json_t *version = json_object_get(all, "version"), *list = json_object_get(all, "rates");
  bool right = json_is_integer(version) && json_integer_value(version) == VERSION && json_is_array(list);
  for (size_t i = 0; i < json_array_size(list) && right; i++) {
    Rates r;
    if ((right = row_read(a, json_array_get(list, i), &r))) vec_push(a, rows, r);
  }
  json_decref(all);
  if (!right) rows->n = 0, ignore(path, "it does not hold rates as this version writes them");
  return right;
}

static bool rows_read(Arena *a, Rows *rows) {
  const char *wrong, *folder = cache_folder(a, "", false, &wrong);
  *rows = (Rows){0};
  if (!folder || wrong) return false;
  Str path = rates_path(a);
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? false : ignore(path, errno == ELOOP ? "it is a link" : strerror(errno));
  bool right = !fstat(fd, &st) && file_rows(a, path, &st, fd, rows);
  close(fd);
  return right;
}

static Str next_library(Str s) {                           // of "A 1, B 2"
  s += strcspn(s, ",");
  return s + strspn(s, ", ");
}

static bool has_libraries(Str all, Str wanted) {           // "A 1, B 2" has "B 2"
  for (; *wanted; wanted = next_library(wanted)) {
    size_t n = strcspn(wanted, ",");
    Str s = all;
    while (*s && (strcspn(s, ",") != n || strncmp(s, wanted, n))) s = next_library(s);
    if (!*s) return false;
  }
  return true;
}

bool rates_find(Arena *a, int threads, Str libraries, Rates *r) {
  Rows rows;
  if (!rows_read(a, &rows)) return false;
  Str cpu = jit_cpu(a);
  for (uint32_t i = rows.n; i-- > 0;) {                    // the newest last
    const Rates *x = &rows.at[i];
    if (strcmp(x->cpu, cpu) || x->threads != threads || !has_libraries(x->libraries, libraries)) continue;
    *r = *x;
    return true;
  }
  return false;
}

static void put_row(Arena *a, Text *t, const Rates *r) {
  text_puts(t, "\n{\"cpu\":"), text_json(t, r->cpu), text_puts(t, ",\"libraries\":"), text_json(t, r->libraries);
  text_printf(t, ",\"threads\":%lld,\"day\":", (long long)r->threads), text_json(t, r->day);
  for (size_t i = 0; i < COUNT(plain); i++)
    text_printf(t, ",\n \"%s\":", plain[i].name), text_json_number(t, *plain_at((Rates *)(uintptr_t)r, i));
  for (RateFormat f = 0; f < RF_COUNT; f++)
    for (RateLayout l = 0; l < RL_COUNT; l++)
      for (RateTokens m = 0; m < RT_COUNT; m++)
        text_printf(t, ",\n \"%s\":", product_key(a, f, l, m)), text_json_number(t, r->product[f][l][m]);
  text_puts(t, "}");
}

static bool same_key(const Rates *x, const Rates *y) {
  return x->threads == y->threads && !strcmp(x->cpu, y->cpu) && !strcmp(x->libraries, y->libraries);
}

Status rates_target(Arena *a) {
  const char *wrong, *folder = cache_folder(a, "", true, &wrong);
  struct stat st;
  if (wrong)
    return fail(EXIT_CREATE, "the rates cannot be kept: %s%s%s", folder ? folder : "", folder ? ": " : "", wrong);
  Str path = rates_path(a);
  if (!lstat(path, &st) && S_ISDIR(st.st_mode))
    return fail(EXIT_CREATE, "the rates cannot be kept: %s: it is a folder; remove it", path);
  return 0;
}

Status rates_keep(Arena *a, const Rates *r) {
  Rows rows;
  TRY(rates_target(a));
  rows_read(a, &rows);
  Text t;
  text_init(&t, a);
  text_printf(&t, "{\"version\":%d,\"rates\":[", VERSION);
  for (uint32_t i = rows.n > MOST_ROWS ? rows.n - MOST_ROWS : 0; i < rows.n; i++)
    if (!same_key(&rows.at[i], r)) put_row(a, &t, &rows.at[i]), text_puts(&t, ",");
  put_row(a, &t, r), text_puts(&t, "\n]}\n");
  Str path = rates_path(a);
  struct stat st;
  if (!lstat(path, &st) && !S_ISREG(st.st_mode)) unlink(path);     // a pipe or link that was planted
  mode_t was = umask(077);
  Status e = file_write(path, t.s, t.n);
  umask(was);
  return e;
}

// ---- the table ------------------------------------------------------------------------------------------------------
void rates_print(FILE *to, const Rates *r) {
  fprintf(to, "%lld thread%s, %s, %s\n\n", (long long)r->threads, r->threads == 1 ? "" : "s",
          *r->libraries ? r->libraries : "no library for products", r->day);
  for (size_t i = 0; i < COUNT(plain); i++)
    fprintf(to, "  %-18s %8.1f %s\n", plain[i].what, *plain_at((Rates *)(uintptr_t)r, i), plain[i].unit);
  fprintf(to, "\n  %-18s", "products, GFLOP/s");
  for (RateLayout l = 0; l < RL_COUNT; l++) fprintf(to, " %8s", layout_name[l]);
  fputc('\n', to);
  for (RateFormat f = 0; f < RF_COUNT; f++)
    for (RateTokens m = 0; m < RT_COUNT; m++) {
      fprintf(to, "  %-4s %6s tokens ", format_name[f], tokens_name[m]);
      for (RateLayout l = 0; l < RL_COUNT; l++)
        if (r->product[f][l][m] > 0) fprintf(to, " %8.1f", r->product[f][l][m]);
        else fprintf(to, " %8s", "-");
      fputc('\n', to);
    }
}
