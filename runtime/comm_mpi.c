// comm_mpi.c -- ranks that a launcher has started, on one machine or several, over MPI; see comm.h.
//
// MPI only moves bytes from one rank to another. A collective is made slice by slice: a member sends each other one what
// it needs of the slice, adds what it got in the members' order as comm_local.c does, so the bits are the same, and
// where all want the sum it sends its share of it to all. Transfers are asked about, never waited in, so that a rank
// whose peer is lost can leave; who that is, a thread hears and says beside the others, see watch_main.
#include "runtime/comm_way.h"
#include "runtime/mpilib.h"
#include "runtime/options.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TAG_notice = 1, TAG_meet, TAG_agree, TAG_ask, TAG_bytes, TAG_hello, TAG_collective = 256 };
enum { ROOM = 8 << 20, MOST = 1 << 30 };     // bytes of a slice from all members; of one message
#define SLICE 0.05                           // seconds between two looks of the watch
#define GRACE 4.0                            // that a rank has to end in when one is lost

typedef struct { MpiTask task; int64_t peer; bool done; } Transfer;
typedef VEC(Transfer) Transfers;

typedef enum { NOTICE_lost, NOTICE_failed } NoticeKind;
typedef struct {
  NoticeKind kind;
  int64_t from, rank;                        // who says it, of whom
  Place of, place;                           // of that rank; of the one who says it
} Notice;

// What all know of each rank from the start on. What is compared: MT_HELLO.
#define MT_HELLO(X) X(plan, "plan") X(build, "build of mtrun") X(world, "number of ranks") X(device, "device") \
  X(piece, "MTRUN_MPI_PIECE")
typedef struct {
#define X(field, what) char field[64];
  MT_HELLO(X)
#undef X
  char host[96];                             // boot and name space of the process number
  int64_t pid;
} Hello;

typedef struct { void *at; size_t room; const void *mine; size_t bytes; } Fetched; // of one rank, see comm_fetch

typedef struct Mpi {
  Comm *comm;
  const MpiTable *mpi;
  pthread_mutex_t lock;                      // of mpi, which one thread at a time may call
  int64_t most, wanted;                      // bytes of one message: now; from when all are known to have the same
  int64_t piece;                             // bytes of a slice that go to another rank
  char *sent, *got;                          // [ranks][piece]: what lies apart is put together here
  Transfers transfers;
  Fetched *fetched;                          // [ranks], rank 0

  _Atomic uint32_t coll, line, number, waits; // see Place
  _Atomic uint32_t turn;                     // how often it has waited
  _Atomic bool over, leaving, ended, stop;   // a rank is lost; all is done; this rank's life has returned
  pthread_t watch;
  Notice heard;
  MpiTask ear;                               // the receive of `heard`
  int *pidfd;                                // [ranks]: readable when a process of this machine has ended; -1: not known
  Place *seen;                               // [ranks], by the watch
  bool *answered;                            // [ranks]
  bool told;                                 // a notice has come, of a loss that `about` is
  Notice about;
} Mpi;

static Status wrong(Mpi *m, const char *what, int code) {
  char why[256];
  m->mpi->why(code, why, sizeof why);
  return fail(EXIT_UNAVAILABLE, "rank %lld: MPI, %s: %s", (long long)m->comm->rank, what, why);
}

// ---- transfers --------------------------------------------------------------------------------------------------------
static Status begin(Mpi *m, bool send, int64_t peer, int tag, void *at, int64_t bytes) {
  do {                                       // one message also when there is nothing in it
    int64_t n = MIN(bytes, m->most);
    Transfer t = {.peer = peer};
    pthread_mutex_lock(&m->lock);
    int e = send ? m->mpi->send(at, n, (int)peer, tag, &t.task) : m->mpi->receive(at, n, (int)peer, tag, &t.task);
    pthread_mutex_unlock(&m->lock);
    if (e) return wrong(m, send ? "sending" : "receiving", e);
    vec_push(m->comm->arena, &m->transfers, t);
    at = (char *)at + n, bytes -= n;
  } while (bytes > 0);
  return 0;
}

static Status put(Mpi *m, int64_t to, int tag, const void *at, int64_t bytes) {
  return begin(m, true, to, tag, (void *)(uintptr_t)at, bytes);
}
static Status get(Mpi *m, int64_t from, int tag, void *at, int64_t bytes) { return begin(m, false, from, tag, at, bytes); }

static Status ask(Mpi *m, Transfer *t) {
  int yes = 0;
  pthread_mutex_lock(&m->lock);
  int e = m->mpi->done(&t->task, &yes);
  pthread_mutex_unlock(&m->lock);
  t->done = yes != 0;
  return e ? wrong(m, "a transfer", e) : 0;
}

static void nap(int tries) {                 // a peer that is near comes soon; where all CPUs compute it needs one
  enum { SOON = 1000 };
  if (tries < SOON) sched_yield();
  else nanosleep(&(struct timespec){0, 50 * 1000}, 0);
}

// Until all that was begun is done.
static Status settle(Mpi *m) {
  uint32_t first = 0;
  for (int tries = 0;; tries = MIN(tries + 1, 1 << 20)) {
    for (uint32_t i = first; i < m->transfers.n; i++)
      if (!m->transfers.at[i].done) TRY(ask(m, &m->transfers.at[i]));
    while (first < m->transfers.n && m->transfers.at[first].done) first++;
    if (first == m->transfers.n) break;
    if (m->over) return EXIT_PEER;
    m->waits = (uint32_t)m->transfers.at[first].peer + 1;
    nap(tries);
  }
  m->waits = 0;
  m->turn++;
  m->transfers.n = 0;
  return 0;
}

static void come_to(Mpi *m, uint32_t coll, uint32_t line) {
  m->coll = coll;
  m->line = line;
  m->number++;
}

// ---- collectives ------------------------------------------------------------------------------------------------------
// What one member gives another are `each` elements in a row: of the giver's memory those in rows of `from`, one row of
// each member behind the other's, and so of the getter's, in rows of `to`. A row of 0: they lie together.
typedef struct { int64_t each, from, to; } Shape;

static Shape shape_of(const PlanColl *x, int64_t members) {
  int64_t scattered = x->scatter * x->inner, gathered = x->gather * x->inner, block = x->mid * x->scatter * gathered;
  switch (x->kind) {
    case COLL_all_reduce: case COLL_all_max: {
      int64_t share = (x->inner + members - 1) / members;
      return (Shape){share, share, share};
    }
    case COLL_reduce_scatter: return (Shape){x->outer * x->inner, x->inner, 0};
    case COLL_all_gather: return (Shape){x->outer * x->inner, 0, x->inner};
    case COLL_all_to_all:
      return (Shape){x->outer * block, x->turned ? block : scattered, x->turned ? gathered : block};
    case COLL_COUNT: break;
  }
  bug("a collective of no kind");
}

typedef struct {
  Mpi *m;
  const PlanColl *x;
  const Group *g;
  Shape shape;
  char *to;
  const char *from;
  int64_t width;
  int tag;
} Job;

// Elements p … p+n-1 of what goes to a member, or comes from it, in the rows of all; some: how many of them lie together.
static int64_t place_of(int64_t row, int64_t members, int64_t member, int64_t p, int64_t n, int64_t *some) {
  *some = row ? MIN(n, row - p % row) : n;
  return row ? (p / row * members + member) * row + p % row : p;
}

// The last members' shares of a sum are shorter.
static int64_t left(const Job *j, int64_t member, int64_t p, int64_t n) {
  if (j->x->kind > COLL_all_max) return n;
  return MAX(0, MIN(n, j->x->inner - member * j->shape.each - p));
}

static void move(const Job *j, bool in, int64_t member, int64_t p, int64_t n, char *with) {
  int64_t row = in ? j->shape.to : j->shape.from, some;
  for (; n; p += some, n -= some, with += some * j->width) {
    int64_t at = place_of(row, j->g->n, member, p, n, &some) * j->width;
    if (in) memcpy(j->to + at, with, (size_t)(some * j->width));
    else memcpy(with, j->from + at, (size_t)(some * j->width));
  }
}

// Where what goes to a member lies: in this rank's memory, or put together.
static const char *given(const Job *j, int64_t member, int64_t p, int64_t n) {
  int64_t some, at = place_of(j->shape.from, j->g->n, member, p, n, &some);
  char *with = j->m->sent + member * j->m->piece;
  if (some == n) return j->from + at * j->width;
  move(j, false, member, p, n, with);
  return with;
}

static bool adds(const PlanColl *x) { return x->kind <= COLL_reduce_scatter; }

static Status exchange(const Job *j, int64_t p, int64_t n) {
  int64_t mine = left(j, j->g->place, p, n);
  for (int64_t k = 0; k < j->g->n; k++) {
    int64_t theirs = left(j, k, p, n), peer = j->g->rank[k];
    if (k == j->g->place) continue;
    if (mine) TRY(get(j->m, peer, j->tag, j->m->got + k * j->m->piece, mine * j->width));
    if (theirs) TRY(put(j->m, peer, j->tag, given(j, k, p, theirs), theirs * j->width));
  }
  return settle(j->m);
}

typedef struct { Coll coll; char *to; } Sum;
static void sum_task(void *with, int64_t lo, int64_t hi, int worker) {
  enum { SOME = 4096 };
  const Sum *s = with;
  size_t width = dtype_bytes(s->coll.x->dtype);
  _Alignas(64) char room[SOME * 8];
  (void)worker;
  for (int64_t at = lo; at < hi; at += SOME) {             // not in place: what is given may be what is made
    int64_t n = MIN(SOME, hi - at);
    coll_sum(&s->coll, at, n, room);
    memcpy(s->to + (size_t)at * width, room, (size_t)n * width);
  }
}

// This member's part of the sum, at its place.
static char *add(const Job *j, Work *w, int64_t p, int64_t n) {
  int64_t some, at = place_of(j->shape.to, j->g->n, j->g->place, p, n, &some);
  Sum s = {{j->x, j->g->n, j->g->place, j->g->to, j->g->from}, j->to + at * j->width};
  for (int64_t k = 0; k < j->g->n; k++)
    j->g->from[k] = k == j->g->place ? (char *)(uintptr_t)given(j, k, p, n) : j->m->got + k * j->m->piece;
  work_run(w, sum_task, &s, n, 1 << 14);
  return s.to;
}

static Status spread(const Job *j, const char *sum, int64_t p, int64_t n) {
  int64_t mine = left(j, j->g->place, p, n);
  for (int64_t k = 0; k < j->g->n; k++) {
    int64_t theirs = left(j, k, p, n), peer = j->g->rank[k];
    if (k == j->g->place) continue;
    if (theirs) TRY(get(j->m, peer, j->tag, j->to + (k * j->shape.each + p) * j->width, theirs * j->width));
    if (mine) TRY(put(j->m, peer, j->tag, sum, mine * j->width));
  }
  return settle(j->m);
}

static Status slice(const Job *j, Work *w, int64_t p, int64_t n) {
  int64_t mine = left(j, j->g->place, p, n);
  TRY(exchange(j, p, n));
  for (int64_t k = 0; !adds(j->x) && k < j->g->n; k++)
    move(j, true, k, p, n, k == j->g->place ? (char *)(uintptr_t)given(j, k, p, n) : j->m->got + k * j->m->piece);
  if (!adds(j->x)) return 0;
  const char *sum = mine ? add(j, w, p, mine) : 0;
  return j->x->kind == COLL_reduce_scatter ? 0 : spread(j, sum, p, n);
}

static Status mpi_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line, CommMeeting at) {
  Mpi *m = c->mpi;
  (void)at;                                  // members meet as they send
  const Group *g = group_of(c, x->axes);
  Job j = {m, x, g, shape_of(x, g->n), to, from, (int64_t)dtype_bytes(x->dtype), TAG_collective + x->axes};
  int64_t some = MAX(1, m->piece / j.width);
  come_to(m, (uint32_t)(x - c->plan->coll.at), line);
  double begin = now_seconds();
  for (int64_t p = 0; p < j.shape.each; p += some) TRY(slice(&j, w, p, MIN(some, j.shape.each - p)));
  link_wait(c, x, begin);
  return 0;
}

static Status mpi_barrier(Comm *c) {         // after round k a rank knows of the 2^k before it
  Mpi *m = c->mpi;
  come_to(m, 0, 0);
  for (int64_t k = 1; k < c->ranks; k *= 2) {
    TRY(get(m, (c->rank - k % c->ranks + c->ranks) % c->ranks, TAG_meet, 0, 0));
    TRY(put(m, (c->rank + k) % c->ranks, TAG_meet, 0, 0));
    TRY(settle(m));
  }
  return 0;
}

static Status from_first(Mpi *m, int tag, void *at, int64_t bytes) {        // rank 0's bytes to all
  if (m->comm->rank) TRY(get(m, 0, tag, at, bytes));
  for (int64_t r = 1; !m->comm->rank && r < m->comm->ranks; r++) TRY(put(m, r, tag, at, bytes));
  return settle(m);
}

static Status mpi_agree(Comm *c, int64_t *v) {
  come_to(c->mpi, 0, 0);
  return from_first(c->mpi, TAG_agree, v, sizeof *v);
}

// ---- reading everybody's memory -----------------------------------------------------------------------------------------
typedef struct { int64_t at, bytes; } Ask;   // at -1: nothing more

static Status mpi_fetch(Comm *c, int64_t rank, const void *mine, size_t bytes, const void **there) {
  Mpi *m = c->mpi;
  Fetched *f = &m->fetched[rank];
  *there = f->at;
  if (f->mine == mine && f->bytes == bytes) return 0;
  if (f->room < bytes) {
    void *more = realloc(f->at, bytes);
    if (!more) return fail(EXIT_UNAVAILABLE, "no memory for %zu bytes of rank %lld%s", bytes, (long long)rank, space_limit());
    f->at = more, f->room = bytes;
  }
  Ask a = {(const char *)mine - c->memory, (int64_t)bytes};
  f->mine = 0;
  TRY(put(m, rank, TAG_ask, &a, sizeof a));
  TRY(get(m, rank, TAG_bytes, f->at, a.bytes));
  TRY(settle(m));
  *there = f->at, f->mine = mine, f->bytes = bytes;
  return 0;
}

static Status serve(Mpi *m) {                // until rank 0 needs nothing more
  for (Ask a;;) {
    TRY(get(m, 0, TAG_ask, &a, sizeof a));
    TRY(settle(m));
    if (a.at < 0) return 0;
    TRY(put(m, 0, TAG_bytes, m->comm->memory + a.at, a.bytes));
    TRY(settle(m));
  }
}

static Status mpi_release(Comm *c) {
  Mpi *m = c->mpi;
  come_to(m, 0, 0);
  if (c->rank) return serve(m);
  Ask none = {-1, 0};
  for (int64_t r = 1; r < c->ranks; r++) {
    TRY(put(m, r, TAG_ask, &none, sizeof none));
    free(m->fetched[r].at);
    m->fetched[r] = (Fetched){0};
  }
  return settle(m);
}

// ---- a rank is lost ---------------------------------------------------------------------------------------------------
// The watch of each rank looks for processes of this machine that have ended, and for a wait that takes too long. Who
// finds a loss tells all, and each tells ranks 0 and 1 where it is; rank 0 says it for all and ends them, rank 1 where
// rank 0 is the one that is lost, another one where both are silent.
static void tell(Mpi *m, int64_t to, Notice *n) {
  MpiTask t;
  pthread_mutex_lock(&m->lock);
  m->mpi->send(n, sizeof *n, (int)to, TAG_notice, &t);     // who does not hear it is lost as well
  pthread_mutex_unlock(&m->lock);
}

// The first `ranks` of all; a silent one as well, which may wait itself or go on.
static void tell_first(Mpi *m, int64_t ranks, Notice *n) {
  for (int64_t r = 0; r < MIN(ranks, m->comm->ranks); r++)
    if (r != m->comm->rank && (r != n->rank || n->of.state == PLACE_silent)) tell(m, r, n);
}

static Place here(const Mpi *m) {
  return (Place){.state = PLACE_runs, .coll = m->coll, .line = m->line, .number = m->number, .waits = m->waits};
}

static void listen(Mpi *m) { m->mpi->receive(&m->heard, sizeof m->heard, -1, TAG_notice, &m->ear); }

static void hear(Mpi *m) {
  for (int yes = 1; yes;) {
    pthread_mutex_lock(&m->lock);
    if (m->mpi->done(&m->ear, &yes)) yes = 0;
    Notice n = m->heard;
    if (yes) listen(m);
    pthread_mutex_unlock(&m->lock);
    if (!yes) return;
    m->seen[n.from] = n.place, m->answered[n.from] = true;
    if (!m->told) m->told = true, m->about = n;
  }
}

static bool all_answered(const Mpi *m) {
  for (int64_t r = 0; r < m->comm->ranks; r++)
    if (!m->answered[r] && r != m->comm->rank && m->seen[r].state != PLACE_died) return false;
  return true;
}

// Is it this rank that says it, after so many seconds?
static bool speaks(const Mpi *m, double seconds) {
  bool settled = all_answered(m) || seconds > 1;
  if (m->comm->rank == 0) return settled;
  if (m->comm->rank == 1 && m->seen[0].state != PLACE_runs) return settled;
  return seconds > (m->comm->rank == 1 && !m->answered[0] ? 2 : 8);
}

static _Noreturn void end_all(Mpi *m, Status s) {
  fflush(0);
  pthread_mutex_lock(&m->lock);
  m->mpi->abort(s);
  _exit(s);
}

static void wait_ended(const Mpi *m, double seconds) {
  for (double begin = now_seconds(); !m->ended && now_seconds() - begin < seconds;)
    nanosleep(&(struct timespec){0, 5 * 1000 * 1000}, 0);
}

static _Noreturn void lose(Mpi *m, Notice *n, bool mine) {
  double begin = now_seconds();
  static Notice own;                         // stays while it is sent
  own = *n, own.from = m->comm->rank, own.place = m->seen[m->comm->rank] = here(m);
  if (n->rank != m->comm->rank && !m->answered[n->rank]) m->seen[n->rank] = n->of;
  m->over = true;
  tell_first(m, mine ? m->comm->ranks : 2, &own);
  while (!speaks(m, now_seconds() - begin)) {
    hear(m);
    nanosleep(&(struct timespec){0, 2 * 1000 * 1000}, 0);
  }
  for (int64_t r = 0; r < m->comm->ranks; r++)
    if (!m->answered[r] && r != m->comm->rank && m->seen[r].state == PLACE_runs) m->seen[r].state = PLACE_silent;
  int64_t culprit;
  place_lost(m->comm, m->seen, n->rank, &culprit);
  wait_ended(m, GRACE);                      // what this rank is writing it may finish
  end_all(m, EXIT_PEER);
}

static bool has_ended(const Mpi *m, int64_t rank) {
  struct pollfd p = {m->pidfd[rank], POLLIN, 0};
  return m->pidfd[rank] >= 0 && poll(&p, 1, 0) > 0;
}

// A loss that this rank finds itself; 0: none. waited: seconds of the wait that it is in.
static bool find_loss(const Mpi *m, double waited, Notice *n) {
  uint32_t waits = m->waits;
  *n = (Notice){.kind = NOTICE_lost, .rank = (int64_t)waits - 1, .of = {.state = PLACE_silent}};
  if (waits && waited > m->comm->options.patience) return true;
  for (n->rank = 0; !m->leaving && n->rank < m->comm->ranks; n->rank++)
    if (has_ended(m, n->rank)) {
      n->of.state = PLACE_died;
      return true;
    }
  return false;
}

// Another rank has failed and said why, or has said that this one, which was stopped, is lost: it ends all.
static _Noreturn void follow(Mpi *m) {
  m->over = true;
  wait_ended(m, GRACE);
  nanosleep(&(struct timespec){(time_t)GRACE, 0}, 0);
  end_all(m, EXIT_PEER);
}

static void *watch_main(void *arg) {
  Mpi *m = arg;
  Notice n;
  uint32_t turn = 0;
  double waited = 0, last = now_seconds();
  while (!m->stop) {
    double now = now_seconds();
    bool stopped = now - last > m->comm->options.patience;
    waited = m->waits && m->turn == turn ? waited + MIN(now - last, 2 * SLICE) : 0;   // when all are stopped, nobody is silent
    last = now, turn = m->turn;
    hear(m);
    if (m->told && (m->about.kind == NOTICE_failed || (stopped && m->about.rank == m->comm->rank))) follow(m);
    if (m->told) lose(m, &m->about, false);
    if (find_loss(m, waited, &n)) lose(m, &n, true);
    nanosleep(&(struct timespec){0, (long)(SLICE * 1e9)}, 0);
  }
  return 0;
}

// ---- start and end ------------------------------------------------------------------------------------------------------
static void say_hello(Mpi *m, const char *build, const char *device, Hello *h) {
  char boot[40] = "", space[40] = "";
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, boot, sizeof boot - 1) < 0) *boot = 0;
  if (fd >= 0) close(fd);
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) *space = 0;
  snprintf(h->plan, sizeof h->plan, "%s", m->comm->plan->hash);
  snprintf(h->build, sizeof h->build, "%s", build);
  snprintf(h->world, sizeof h->world, "%lld", (long long)m->comm->ranks);
  snprintf(h->device, sizeof h->device, "%s", device);
  snprintf(h->piece, sizeof h->piece, "%lld", (long long)m->wanted);
  snprintf(h->host, sizeof h->host, "%.36s %s", boot, space);
  h->pid = getpid();
}

// All have the same, or none goes on; rank 0 says what differs.
static Status compare(Mpi *m, const Hello *all) {
  static const struct { Str what; size_t at; } field[] = {
#define X(name, what) {what, offsetof(Hello, name)},
    MT_HELLO(X)
#undef X
  };
  Str *value = NEW_N(m->comm->arena, Str, m->comm->ranks);
  for (size_t f = 0; f < COUNT(field); f++) {
    for (int64_t r = 0; r < m->comm->ranks; r++) value[r] = (const char *)&all[r] + field[f].at;
    TRY(comm_alike(m->comm, field[f].what, value, 0));
  }
  return 0;
}

static Status meet(Mpi *m, const char *build, const char *device) {
  Hello *all = NEW_N(m->comm->arena, Hello, m->comm->ranks), *mine = &all[m->comm->rank];
  say_hello(m, build, device, mine);
  come_to(m, 0, 0);
  if (m->comm->rank) TRY(put(m, 0, TAG_hello, mine, sizeof *mine));
  for (int64_t r = 1; !m->comm->rank && r < m->comm->ranks; r++) TRY(get(m, r, TAG_hello, &all[r], sizeof *all));
  TRY(settle(m));
  TRY(from_first(m, TAG_hello, all, (int64_t)sizeof *all * m->comm->ranks));
  TRY(compare(m, all));
  m->most = m->wanted;
  m->comm->here = 0;
  for (int64_t r = 0; r < m->comm->ranks; r++) {
    bool same = !strcmp(all[r].host, mine->host);
    m->comm->here += same;
    if (same && r != m->comm->rank) m->pidfd[r] = (int)syscall(SYS_pidfd_open, all[r].pid, 0);
  }
  return 0;
}

static Status open_rooms(Mpi *m, size_t bytes) {
  enum { PAGE = 4096, LEAST = 4096 };
  Comm *c = m->comm;
  const char *own = getenv("MTRUN_MPI_PIECE");
  if (own && *own) TRY(options_int("MTRUN_MPI_PIECE", own, &m->wanted));
  else m->wanted = MOST;
  if (m->wanted < 1 || m->wanted > MOST)
    return fail(EXIT_USAGE, "MTRUN_MPI_PIECE=%s: bytes of one message, 1 to %d", own, MOST);
  m->most = MOST;
  m->piece = (MAX(ROOM / c->ranks, LEAST) + 63) / 64 * 64;
  if (own && *own) m->piece = (MIN(m->wanted, m->piece) + 63) / 64 * 64;
  size_t rooms = (size_t)(c->ranks * m->piece);
  bytes = (bytes + PAGE - 1) / PAGE * PAGE;
  char *at = mmap(0, bytes + 2 * rooms, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return fail(EXIT_UNAVAILABLE, "rank %lld needs %.1f MiB of memory, the system refused: %s%s", (long long)c->rank,
                (double)(bytes + 2 * rooms) / 0x1p20, strerror(errno), space_limit());
  madvise(at, bytes, MADV_HUGEPAGE);
  c->memory = at, m->sent = at + bytes, m->got = m->sent + rooms;
  m->fetched = NEW_N(c->arena, Fetched, c->ranks), m->seen = NEW_N(c->arena, Place, c->ranks);
  m->answered = NEW_N(c->arena, bool, c->ranks), m->pidfd = NEW_N(c->arena, int, c->ranks);
  for (int64_t r = 0; r < c->ranks; r++) m->pidfd[r] = -1;
  return 0;
}

static const CommWay over_mpi = {mpi_run, mpi_barrier, mpi_agree, mpi_release, mpi_fetch};

// An MPI starts when all ranks have come, and waits for them without end.
typedef struct {
  const Launcher *launcher;
  double patience;
  Status status;                             // to end with after that; 0: says that ranks are missing
  pthread_t thread;
  _Atomic bool done;
} Start;

static void *start_main(void *arg) {
  Start *s = arg;
  double waited = 0;
  for (double last = now_seconds(), now; !s->done && waited <= s->patience; last = now) {
    nanosleep(&(struct timespec){0, (long)(SLICE * 1e9)}, 0);
    now = now_seconds(), waited += MIN(now - last, 2 * SLICE);
  }
  if (s->done) return 0;
  if (!s->status)
    s->status = fail(EXIT_PEER, "rank %lld: not all %lld ranks have come to the start in %g s (--timeout)",
                     (long long)s->launcher->rank, (long long)s->launcher->size, s->patience);
  _exit(s->status);
}

// e: what MPI says. Until it has begun there is no step to stop after: a signal to end ends this rank.
static Status start_mpi(Start *s, const MpiTable *mpi, int *rank, int *ranks, int *e) {
  static const int signals[] = {SIGTERM, SIGINT};
  struct sigaction was[COUNT(signals)], end = {.sa_handler = SIG_DFL};
  int thread = thread_start(&s->thread, start_main, s);
  if (thread) return fail(EXIT_UNAVAILABLE, "cannot start a thread: %s%s", strerror(thread), space_limit());
  for (size_t i = 0; i < COUNT(signals); i++) sigaction(signals[i], &end, &was[i]);
  *e = mpi->start(rank, ranks);
  for (size_t i = 0; i < COUNT(signals); i++) sigaction(signals[i], &was[i], 0);
  s->done = true;
  pthread_join(s->thread, 0);
  return 0;
}

static Status start(Mpi *m, const Launcher *l, MpiLib which) {
  int rank, ranks, e;
  Start s = {.launcher = l, .patience = m->comm->options.patience};
  TRY(mpilib_open(m->comm->arena, which, &m->mpi));
  TRY(start_mpi(&s, m->mpi, &rank, &ranks, &e));
  if (e) return wrong(m, "the start", e);
  m->comm->rank = rank;
  if (ranks == l->size && rank == l->rank) return 0;
  return fail(EXIT_USAGE, "%s says that this is rank %lld of %lld, and %s that it is rank %d of %d: it is the mpirun of "
              "another MPI, or %s did not say so to this one (srun --mpi=pmix)", launch_name(l), (long long)l->rank,
              (long long)l->size, mpilib_name(which), rank, ranks, launch_name(l));
}

static Status life(Mpi *m, const char *build, size_t bytes, RankMain *rank, void *with) {
  TRY(open_rooms(m, bytes));
  listen(m);
  int e = thread_start(&m->watch, watch_main, m);
  if (e) return fail(EXIT_UNAVAILABLE, "cannot start a thread: %s%s", strerror(e), space_limit());
  TRY(meet(m, build, m->comm->plan->target));
  return rank(with, m->comm);
}

// A rank that fails ends all with its status; those that end as they should, or stop, meet once more.
static Status end(Mpi *m, Status mine) {
  Notice n = {.kind = NOTICE_failed, .from = m->comm->rank, .rank = m->comm->rank};
  m->leaving = !mine || mine == EXIT_AGAIN;
  if (m->leaving && mpi_barrier(m->comm)) mine = EXIT_PEER;
  m->ended = true;
  if (m->over) pthread_join(m->watch, 0);    // which ends all
  if (mine && mine != EXIT_AGAIN) {
    tell_first(m, m->comm->ranks, &n);
    // The others close their files. Where all fail, rank 0 ends all: Open MPI 4's mpirun may die of several at once.
    nanosleep(&(struct timespec){0, (m->comm->rank ? 900 : 300) * 1000 * 1000}, 0);
    end_all(m, mine);
  }
  m->stop = true;
  pthread_join(m->watch, 0);
  m->mpi->forget(&m->ear);
  m->mpi->finish();
  return mine;
}

Status comm_join(Arena *a, const Plan *p, size_t bytes, CommOptions o, const Launcher *l, const char *build, RankMain *rank,
                 void *with) {
  Comm *c = NEW(a, Comm);
  Mpi *m = NEW(a, Mpi);
  MpiLib which;
  *c = (Comm){.way = &over_mpi, .plan = p, .arena = a, .options = o, .ranks = l->size, .rank = l->rank, .mpi = m};
  m->comm = c;
  if (l->size > COMM_RANKS) return fail(EXIT_UNAVAILABLE, "%lld ranks; at most %d", (long long)l->size, COMM_RANKS);
  pthread_mutex_init(&m->lock, 0);
  TRY(mpilib_of(l, &which));
  TRY(start(m, l, which));
  return end(m, life(m, build, bytes, rank, with));
}

// Without one of these nobody listens, and to start MPI means nothing.
static bool has_manager(void) {
  static const char *const way[] = {"PMI_FD", "PMI_PORT", "PMIX_NAMESPACE"};
  for (size_t i = 0; i < COUNT(way); i++)
    if (getenv(way[i])) return true;
  return false;
}

// Open MPI's mpirun ends all when a process ends with a status.
void comm_forsake(Arena *a, const Launcher *l, double patience, Status s) {
  const MpiTable *mpi;
  MpiLib which;
  int rank, ranks, e;
  Start start = {.launcher = l, .patience = patience, .status = s};
  if (l->size == 1 || (l->kind != LAUNCH_mpich && l->kind != LAUNCH_slurm) || !has_manager()) return;
  fflush(0);
  if (mpilib_of(l, &which) || mpilib_open(a, which, &mpi) || start_mpi(&start, mpi, &rank, &ranks, &e)) return;
  if (!e && ranks > 1) mpi->abort(s);
}
