// coll.c -- see coll.h.
#include "runtime/coll.h"
#include "runtime/rows.h"
#include <string.h>

enum { GRAIN = 1 << 14, BLOCK = 4096 };      // elements
enum { LARGE = 1 << 20 };                    // bytes of a result that no cache is to hold

static size_t width(const Coll *j) { return dtype_bytes(j->x->dtype); }
static bool coll_large(const Coll *j) { return (size_t)(j->x->outer * j->x->inner) * width(j) >= LARGE; }

static void sum_rows(const Coll *j, int64_t at, int64_t n, char *to) {  // of f32 or bf16: in f32
  DType t = j->x->dtype;
  float room[512];
  for (int64_t i = 0, k; i < n; i += k) {
    k = MIN(n - i, t == DT_f32 ? n : (int64_t)COUNT(room));
    float *d = t == DT_f32 ? (float *)(void *)to : room;
    for (int64_t m = 0; m < j->n; m++) row_take(d, t, j->from[m] + (size_t)(at + i) * width(j), k, m > 0);
    if (t != DT_f32) row_put(to + (size_t)i * width(j), t, room, k, false);
  }
}

// Terms that were sent in a narrower format: summed in f32, and the sum is sent in it, too.
static void sum_sent(const Coll *j, int64_t at, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++) {
    float sum = 0;
    for (int64_t m = 0; m < j->n; m++) {
      float v = (float)dtype_round(j->x->sent, (double)((const float *)(const void *)j->from[m])[at + i]);
      sum = m ? sum + v : v;
    }
    to[i] = (float)dtype_round(j->x->sent, (double)sum);
  }
}

void coll_sum(const Coll *j, int64_t at, int64_t n, char *to) {
  DType t = j->x->dtype;
  if (j->x->sent) { sum_sent(j, at, n, (float *)(void *)to); return; }
  bool most = j->x->kind == COLL_all_max;
  if (!most && (t == DT_f32 || t == DT_bf16)) {
    sum_rows(j, at, n, to);
    return;
  }
#define COMBINE(T) do { \
    T *restrict d = (T *)(void *)to; \
    for (int64_t m = 0; m < j->n; m++) { \
      const T *s = (const T *)(const void *)(j->from[m] + (size_t)at * width(j)); \
      if (!m) for (int64_t i = 0; i < n; i++) d[i] = s[i]; \
      else if (most) for (int64_t i = 0; i < n; i++) d[i] = s[i] > d[i] || s[i] != s[i] ? s[i] : d[i]; \
      else for (int64_t i = 0; i < n; i++) d[i] += s[i]; \
    } \
  } while (0)
  switch (t) {
    case DT_f32: COMBINE(float); return;
    case DT_f64: COMBINE(double); return;
    case DT_i32: COMBINE(int32_t); return;
    case DT_i64: COMBINE(int64_t); return;
    default: break;
  }
#undef COMBINE
  for (int64_t i = 0; i < n; i++) {          // half formats: summed in f32, rounded once; bools: is one true
    float sum = 0;
    for (int64_t m = 0; m < j->n; m++) {
      float v = (float)dtype_load(t, j->from[m] + (size_t)(at + i) * width(j));
      sum = !m ? v : most ? (v > sum || v != v ? v : sum) : sum + v;
    }
    dtype_store(t, to + (size_t)i * width(j), (double)sum);
  }
}

// To memory, past the caches when there is much of it: rows_done follows.
static void put(const Coll *j, char *to, const char *from, int64_t n) {
  size_t bytes = (size_t)n * width(j);
  bool large = coll_large(j) && j->to[0] != j->from[0] && bytes % sizeof(float) == 0;
  if (large) row_stream((float *)(void *)to, (const float *)(const void *)from, (int64_t)(bytes / sizeof(float)));
  else memcpy(to, from, bytes);
}

// Blocks lo … hi-1 of this member's share: made here, and put to all.
static void all_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Coll *j = with;
  _Alignas(64) char room[BLOCK * 8];
  (void)worker;
  int64_t total = j->x->inner, share = (total + j->n - 1) / j->n, first = share * j->place;
  for (int64_t b = lo; b < hi; b++) {
    int64_t at = first + b * BLOCK, n = MIN(MIN(BLOCK, first + share - at), total - at);
    if (n <= 0) continue;
    coll_sum(j, at, n, room);
    for (int64_t m = 0; m < j->n; m++) put(j, j->to[m] + (size_t)at * width(j), room, n);
  }
  rows_done();
}

static int64_t blocks(const PlanColl *x) { return (x->inner + BLOCK - 1) / BLOCK; }

// Blocks of this member's pieces. A piece may be put where this member's own term lies.
static void scatter_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Coll *j = with;
  const PlanColl *x = j->x;
  _Alignas(64) char room[BLOCK * 8];
  (void)worker;
  for (int64_t u = lo; u < hi; u++) {
    int64_t o = u / blocks(x), at = u % blocks(x) * BLOCK, n = MIN(BLOCK, x->inner - at);
    coll_sum(j, (o * j->n + j->place) * x->inner + at, n, room);
    put(j, j->to[j->place] + (size_t)(o * x->inner + at) * width(j), room, n);
  }
  rows_done();
}

// Each member gives its piece where it gets it: its place differs from member to member.
static bool gathers_in_place(const Coll *j) {
  return j->x->outer == 1 && j->from[j->place] == j->to[j->place] + (size_t)(j->place * j->x->inner) * width(j);
}

static void gather_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Coll *j = with;
  const PlanColl *x = j->x;
  size_t bytes = (size_t)x->inner * width(j);
  bool here = gathers_in_place(j);
  (void)worker;
  for (int64_t u = lo; u < hi; u++) {
    int64_t o = u / j->n, m = u % j->n;
    if (here && m == j->place) continue;
    if (here) memcpy(j->to[j->place] + (size_t)u * bytes, j->to[m] + (size_t)u * bytes, bytes);
    else memcpy(j->to[j->place] + (size_t)u * bytes, j->from[m] + (size_t)o * bytes, bytes);
  }
}

static void exchange_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Coll *j = with;
  const PlanColl *x = j->x;
  int64_t n = j->n, in = x->inner;
  (void)worker;
  for (int64_t u = lo; u < hi; u++) {        // outer, member, gather
    int64_t o = u / (n * x->gather), m = u / x->gather % n, k = u % x->gather;
    for (int64_t i = 0; i < x->mid; i++)
      for (int64_t s = 0; s < (x->turned ? x->scatter : 1); s++) {
        int64_t mine = j->place * x->scatter, all = n * x->scatter, many = n * x->gather, here = m * x->gather + k;
        int64_t from = x->turned ? ((o * all + mine + s) * x->mid + i) * x->gather + k
                                 : ((o * x->gather + k) * x->mid + i) * all + mine;
        int64_t to = x->turned ? ((o * x->scatter + s) * x->mid + i) * many + here
                               : ((o * many + here) * x->mid + i) * x->scatter;
        size_t bytes = (size_t)((x->turned ? 1 : x->scatter) * in) * width(j);
        memcpy(j->to[j->place] + (size_t)(to * in) * width(j), j->from[m] + (size_t)(from * in) * width(j), bytes);
      }
  }
}

void coll_run(Work *w, const Coll *j) {
  const PlanColl *x = j->x;
  int64_t grain = x->inner > 0 ? MAX(1, GRAIN / x->inner) : 1;
  void *with = (void *)(uintptr_t)j;
  switch (x->kind) {
    case COLL_all_reduce: case COLL_all_max:
      work_run(w, all_task, with, ((x->inner + j->n - 1) / j->n + 4095) / 4096, 4);
      break;
    case COLL_reduce_scatter: work_run(w, scatter_task, with, x->outer * blocks(x), MAX(1, MIN(grain, 4))); break;
    case COLL_all_gather: work_run(w, gather_task, with, x->outer * j->n, grain); break;
    case COLL_all_to_all: work_run(w, exchange_task, with, x->outer * j->n * x->gather, grain); break;
    case COLL_COUNT: break;
  }
}

double coll_bytes(const Plan *p, const PlanColl *x) {
  int64_t n = coll_members(p, x), most = MAX(coll_count(p, x, false), coll_count(p, x, true));
  double whole = (double)most * (double)dtype_bytes(x->sent ? x->sent : x->dtype) * (double)(n - 1) / (double)n;
  return x->kind <= COLL_all_max ? 2 * whole : whole;      // to the owner of each part, and from it to all
}
