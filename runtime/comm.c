// comm.c -- see comm.h.
#include "runtime/comm.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS = 256, MEMBERS = 4096, GRAIN = 1 << 14 };
enum { STATE_runs, STATE_done, STATE_failed };
// What all see of a rank: how often it has come to each group's meetings, by mask of axes.
typedef struct {
  _Atomic uint32_t came[GROUPS];
  _Atomic uint32_t state, status;
  _Atomic uint32_t line;                     // where it waits: a line of the plan, 0: nowhere
  _Atomic int64_t value;                     // see comm_agree
} Desk;

struct Comm {
  const Plan *plan;
  int64_t ranks, rank;
  double seconds;
  Desk *desk;                                // [ranks]
  char *base;                                // of rank 0's memory
  size_t stride;
  pid_t *child;                              // rank 0: of the others
};

int64_t comm_ranks(const Comm *c) { return c->ranks; }
int64_t comm_rank(const Comm *c) { return c->rank; }
void *comm_memory(Comm *c) { return c->base ? c->base + (size_t)c->rank * c->stride : 0; }
void *comm_of(const Comm *c, int64_t rank, void *mine) {
  return (char *)mine + (rank - c->rank) * (int64_t)c->stride;
}

Status comm_alone(Arena *a, Comm **c) {
  *c = NEW(a, Comm);
  **c = (Comm){.ranks = 1};
  return 0;
}

// ---- waiting ------------------------------------------------------------------------------------------------------
static void futex_wait(_Atomic uint32_t *at, uint32_t is, long nanoseconds) {
  struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  syscall(SYS_futex, at, FUTEX_WAIT, is, &t, 0, 0);
}
static void futex_wake(_Atomic uint32_t *at) { syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, 0, 0, 0); }

static Status lost(const Comm *c, int64_t rank, uint32_t line, const char *how) {
  Arena *a = arena_create();
  Text waits;
  text_init(&waits, a);
  for (int64_t r = 0; r < c->ranks && r < 64; r++) {
    uint32_t at = c->desk[r].line;
    text_printf(&waits, "\n  rank %lld %s %s", (long long)r,
                c->desk[r].state == STATE_runs ? at ? "waits at" : "computes" :
                c->desk[r].state == STATE_done ? "is done" : "has failed",
                at && at < c->plan->line.n ? plan_place(c->plan, a, at) : "");
  }
  Status s = fail(EXIT_PEER, "rank %lld: rank %lld %s; this rank waits at %s%s", (long long)c->rank, (long long)rank, how,
                  line ? plan_place(c->plan, a, line) : "the end", waits.s);
  arena_destroy(a);
  return s;
}

// A rank that was killed cannot say so: rank 0 does.
static void reap(Comm *c, int64_t rank, int status) {
  Desk *d = &c->desk[rank];
  c->child[rank] = 0;
  if (d->state != STATE_runs) return;
  d->status = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : EXIT_PEER;
  d->state = STATE_failed;
}

static void watch(Comm *c) {
  for (int64_t r = 1; r < c->ranks && !c->rank; r++) {
    int status;
    if (c->child[r] && waitpid(c->child[r], &status, WNOHANG) == c->child[r]) reap(c, r, status);
  }
}

// Until `rank` has come to the group's meeting number n.
static Status await(Comm *c, int64_t rank, uint32_t group, uint32_t n, uint32_t line) {
  Desk *d = &c->desk[rank];
  double begin = now_seconds();
  for (uint32_t is; (int32_t)((is = atomic_load_explicit(&d->came[group], memory_order_acquire)) - n) < 0;) {
    uint32_t state = d->state;
    if (state != STATE_runs && (int32_t)(d->came[group] - n) < 0)
      return lost(c, rank, line, state == STATE_failed ? "has failed" : "has ended");
    if (now_seconds() - begin > c->seconds) return lost(c, rank, line, "does not come");
    futex_wait(&d->came[group], is, 50 * 1000 * 1000);
    watch(c);
  }
  return 0;
}

typedef struct { int64_t n, place; uint16_t rank[MEMBERS]; } Group;

static void members(const Comm *c, uint8_t axes, Group *g) {
  g->n = 0;
  for (int64_t r = 0; r < c->ranks; r++) {
    bool in = true;
    for (uint32_t a = 0; a < c->plan->axis.n && in; a++)
      in = axes >> a & 1 || plan_coord(c->plan, r, a) == plan_coord(c->plan, c->rank, a);
    if (r == c->rank) g->place = g->n;
    if (in) g->rank[g->n++] = (uint16_t)r;
  }
}

static Status meet(Comm *c, const Group *g, uint8_t axes, uint32_t line) {
  Desk *mine = &c->desk[c->rank];
  uint32_t n = atomic_fetch_add_explicit(&mine->came[axes], 1, memory_order_release) + 1;
  mine->line = line;
  futex_wake(&mine->came[axes]);
  for (int64_t i = 0; i < g->n; i++) TRY(await(c, g->rank[i], axes, n, line));
  mine->line = 0;
  return 0;
}

Status comm_barrier(Comm *c) {
  Group g;
  if (c->ranks == 1) return 0;
  members(c, (uint8_t)((1u << c->plan->axis.n) - 1), &g);
  return meet(c, &g, (uint8_t)((1u << c->plan->axis.n) - 1), 0);
}

Status comm_agree(Comm *c, int64_t *v) {
  if (c->ranks == 1) return 0;
  if (!c->rank) c->desk[0].value = *v;
  TRY(comm_barrier(c));
  *v = c->desk[0].value;
  return comm_barrier(c);
}

// ---- collectives ----------------------------------------------------------------------------------------------------
typedef struct {
  Comm *c;
  const PlanColl *x;
  const Group *g;
  char *to;
  const char *from;
  size_t width;
} Job;

static const char *from_of(const Job *j, int64_t member) {
  return comm_of(j->c, j->g->rank[member], (char *)(uintptr_t)j->from);
}

// The members' values at from + at, n of them, in their order: their sum or maximum.
static void combine(const Job *j, int64_t at, int64_t n, char *to) {
  DType t = j->x->dtype;
  bool most = j->x->kind == COLL_all_max;
#define COMBINE(T) do { \
    T *restrict d = (T *)(void *)to; \
    for (int64_t m = 0; m < j->g->n; m++) { \
      const T *s = (const T *)(const void *)(from_of(j, m) + (size_t)at * j->width); \
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
  for (int64_t i = 0; i < n; i++) {          // half formats: summed in f32, rounded once
    float sum = 0;
    for (int64_t m = 0; m < j->g->n; m++) {
      float v = (float)dtype_load(t, from_of(j, m) + (size_t)(at + i) * j->width);
      sum = !m ? v : most ? (v > sum || v != v ? v : sum) : sum + v;
    }
    dtype_store(t, to + (size_t)i * j->width, (double)sum);
  }
}

// Blocks lo … hi-1 of this member's share: made here, and put to all.
static void all_task(void *with, int64_t lo, int64_t hi, int worker) {
  enum { BLOCK = 4096 };
  const Job *j = with;
  _Alignas(64) char room[BLOCK * 8];
  (void)worker;
  int64_t total = j->x->inner, share = (total + j->g->n - 1) / j->g->n, first = share * j->g->place;
  for (int64_t b = lo; b < hi; b++) {
    int64_t at = first + b * BLOCK, n = MIN(MIN(BLOCK, first + share - at), total - at);
    if (n <= 0) continue;
    combine(j, at, n, room);
    for (int64_t m = 0; m < j->g->n; m++)
      memcpy((char *)comm_of(j->c, j->g->rank[m], j->to) + (size_t)at * j->width, room, (size_t)n * j->width);
  }
}

static void scatter_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Job *j = with;
  const PlanColl *x = j->x;
  (void)worker;
  for (int64_t o = lo; o < hi; o++)
    combine(j, (o * j->g->n + j->g->place) * x->inner, x->inner, j->to + (size_t)(o * x->inner) * j->width);
}

static void gather_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Job *j = with;
  const PlanColl *x = j->x;
  size_t bytes = (size_t)x->inner * j->width;
  (void)worker;
  for (int64_t u = lo; u < hi; u++) {
    int64_t o = u / j->g->n, m = u % j->g->n;
    memcpy(j->to + (size_t)u * bytes, from_of(j, m) + (size_t)o * bytes, bytes);
  }
}

static void exchange_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Job *j = with;
  const PlanColl *x = j->x;
  int64_t n = j->g->n, in = x->inner;
  (void)worker;
  for (int64_t u = lo; u < hi; u++) {        // outer, member, gather
    int64_t o = u / (n * x->gather), m = u / x->gather % n, k = u % x->gather;
    for (int64_t i = 0; i < x->mid; i++)
      for (int64_t s = 0; s < (x->turned ? x->scatter : 1); s++) {
        int64_t mine = j->g->place * x->scatter, all = n * x->scatter, many = n * x->gather, here = m * x->gather + k;
        int64_t from = x->turned ? ((o * all + mine + s) * x->mid + i) * x->gather + k
                                 : ((o * x->gather + k) * x->mid + i) * all + mine;
        int64_t to = x->turned ? ((o * x->scatter + s) * x->mid + i) * many + here
                               : ((o * many + here) * x->mid + i) * x->scatter;
        size_t bytes = (size_t)((x->turned ? 1 : x->scatter) * in) * j->width;
        memcpy(j->to + (size_t)(to * in) * j->width, from_of(j, m) + (size_t)(from * in) * j->width, bytes);
      }
  }
}

Status comm_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line) {
  Group g;
  members(c, x->axes, &g);
  Job j = {c, x, &g, to, from, dtype_bytes(x->dtype)};
  TRY(meet(c, &g, x->axes, line));           // all have made what they give, and need no more what they get it into
  int64_t grain = x->inner > 0 ? MAX(1, GRAIN / x->inner) : 1;
  switch (x->kind) {
    case COLL_all_reduce: case COLL_all_max:
      work_run(w, all_task, &j, ((x->inner + g.n - 1) / g.n + 4095) / 4096, 4);
      break;
    case COLL_reduce_scatter: work_run(w, scatter_task, &j, x->outer, grain); break;
    case COLL_all_gather: work_run(w, gather_task, &j, x->outer * g.n, grain); break;
    case COLL_all_to_all: work_run(w, exchange_task, &j, x->outer * g.n * x->gather, grain); break;
    case COLL_COUNT: break;
  }
  return meet(c, &g, x->axes, line);         // nobody reads this rank's memory any more
}

// ---- processes ------------------------------------------------------------------------------------------------------
Status comm_fork(Arena *a, const Plan *p, size_t bytes, double seconds, Comm **out) {
  enum { PAGE = 4096 };
  Comm *c = *out = NEW(a, Comm);
  *c = (Comm){.plan = p, .ranks = plan_ranks(p), .seconds = seconds};
  if (c->ranks > MEMBERS) return fail(EXIT_UNAVAILABLE, "%lld ranks on one machine; at most %d", (long long)c->ranks, MEMBERS);
  size_t desks = ((size_t)c->ranks * sizeof(Desk) + PAGE - 1) / PAGE * PAGE;
  c->stride = (bytes + PAGE - 1) / PAGE * PAGE;
  size_t mapped = desks + (size_t)c->ranks * c->stride;
  char *at = mmap(0, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return fail(EXIT_UNAVAILABLE, "%lld ranks need %.1f MiB of memory, the system refused: %s", (long long)c->ranks,
                (double)mapped / 0x1p20, strerror(errno));
  madvise(at + desks, mapped - desks, MADV_HUGEPAGE);
  c->desk = (Desk *)(void *)at, c->base = at + desks;
  c->child = NEW_N(a, pid_t, c->ranks);
  pid_t parent = getpid();
  for (int64_t r = 1; r < c->ranks; r++) {
    fflush(0);
    pid_t pid = fork();
    if (pid < 0) {
      Status s = fail(EXIT_UNAVAILABLE, "rank %lld cannot be started: %s", (long long)r, strerror(errno));
      for (int64_t k = 1; k < r; k++) kill(c->child[k], SIGKILL);
      for (int64_t k = 1; k < r; k++) waitpid(c->child[k], 0, 0);
      c->ranks = 1;
      return s;
    }
    if (!pid) {
      c->rank = r;
      prctl(PR_SET_PDEATHSIG, SIGKILL);      // nothing is left behind when rank 0 is killed
      if (getppid() != parent) _exit(EXIT_PEER);
      return 0;
    }
    c->child[r] = pid;
  }
  return 0;
}

Status comm_end(Comm *c, Status mine) {
  if (!c || c->ranks == 1) return mine;
  Desk *d = &c->desk[c->rank];
  d->status = (uint32_t)mine;
  d->state = mine ? STATE_failed : STATE_done;
  for (uint32_t k = 0; k < GROUPS; k++) futex_wake(&d->came[k]);
  if (c->rank) return mine;
  for (int64_t r = 1; r < c->ranks; r++) {
    int status = 0;
    if (c->child[r] && waitpid(c->child[r], &status, 0) == c->child[r]) reap(c, r, status);
  }
  for (int64_t r = 0; r < c->ranks; r++)
    if (c->desk[r].status && c->desk[r].status != EXIT_PEER) return (Status)c->desk[r].status;
  for (int64_t r = 0; r < c->ranks; r++)
    if (c->desk[r].status) return (Status)c->desk[r].status;
  return mine;
}
