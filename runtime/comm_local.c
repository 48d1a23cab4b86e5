// comm_local.c -- the ranks of one machine, see comm.h.
//
// All memory of all ranks lies in one mapping that every rank has at the same address, each rank's blocks at the same
// places behind its own start; so a collective reads what the others have where it lies. Two ways to have ranks:
// processes (forked before anything is opened) and threads of one process, for debuggers and sanitizers.
//
// A rank that is lost cannot say so. Whoever waits for it says it for all, once: the first that finds out puts its mark
// where all see it, and they end. That is a rank that has ended, which rank 0 hears from the system, or one that is
// silent for too long.
//
// What all ranks find alike, such as a file that is not there, rank 0 says: another rank that has something to say
// waits until rank 0 has said the same, or cannot any more, and then says what is its own, with its number.
#include "runtime/comm_way.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE 0.05                           // seconds between two looks around while a rank waits
#define GRACE 4.0                            // that ranks have to end when one is lost
#define HEARING 5.0                          // that a rank waits for rank 0 to say the same
enum { SAID = 256 };                         // messages of rank 0 that are noted

// What all see of a rank: how often it has come to each group's meetings, by mask of axes.
typedef struct {
  _Atomic uint32_t came[COMM_GROUPS];
  _Atomic uint32_t state, status, signal;    // PLACE_runs, done or failed; the signal that killed it
  _Atomic uint32_t coll, line, number;       // the last collective it came to, of how many; coll 0: a meeting of all
  // 1 + the rank that it waits for, to come to this meeting of a group; 0: it computes
  _Atomic uint32_t waits, group, meeting;
  _Atomic int64_t value;                     // see comm_agree
} Desk;

typedef struct Hall {
  _Atomic uint32_t lost, silent;             // a rank is, and that is said; 1 + one that may not end of itself: stopped
  _Atomic uint32_t nsaid;                    // messages of rank 0
  _Atomic uint64_t said[SAID];               // their hashes; 0: none yet
  Desk desk[];
} Hall;

// The same place in another rank's memory.
static void *place_of(const Comm *c, int64_t rank, const void *mine) {
  return (char *)(uintptr_t)mine + (rank - c->rank) * (int64_t)c->stride;
}

// ---- a rank is lost -------------------------------------------------------------------------------------------------
// 1 + the rank that a rank waits for; 0: it computes, or that rank has come and it does not go on.
static uint32_t waits_for(const Comm *c, int64_t rank) {
  const Desk *d = &c->hall->desk[rank];
  uint32_t waits = d->waits;
  if (!waits || (int32_t)(c->hall->desk[waits - 1].came[d->group] - d->meeting) >= 0) return 0;
  return waits;
}

static Place place_now(const Comm *c, int64_t rank) {
  const Desk *d = &c->hall->desk[rank];
  Place at = {(PlaceState)d->state, d->signal, d->coll, d->line, d->number, waits_for(c, rank)};
  bool left = at.state == PLACE_failed && d->status == EXIT_PEER && at.waits && !at.signal;      // since the loss is known
  if (left) at.state = PLACE_runs;
  return at;
}

static Status lost(Comm *c, int64_t rank) {
  if (atomic_exchange(&c->hall->lost, 1)) return EXIT_PEER;          // another one has said it
  Arena *a = arena_create();
  Place *at = NEW_N(a, Place, c->ranks);
  for (int64_t r = 0; r < c->ranks; r++) at[r] = place_now(c, r);
  Status s = place_lost(c, at, rank, &rank);
  if (at[rank].state == PLACE_runs) c->hall->silent = (uint32_t)rank + 1;
  arena_destroy(a);
  return s;
}

static void reap(Comm *c, int64_t rank, int status) {
  Desk *d = &c->hall->desk[rank];
  c->child[rank] = 0;
  if (d->state != PLACE_runs) return;
  d->status = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : EXIT_PEER;
  d->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
  d->state = PLACE_failed;
}

static void watch(Comm *c) {
  for (int64_t r = 1; c->child && r < c->ranks; r++) {
    int status;
    if (c->child[r] && waitpid(c->child[r], &status, WNOHANG) == c->child[r]) reap(c, r, status);
  }
}

// ---- waiting ------------------------------------------------------------------------------------------------------
static void futex_wait(_Atomic uint32_t *at, uint32_t is) {
  struct timespec t = {0, (long)(SLICE * 1e9)};
  syscall(SYS_futex, at, FUTEX_WAIT, is, &t, 0, 0);
}
static void futex_wake(_Atomic uint32_t *at) { syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, 0, 0, 0); }

// Seconds since *last; the time in which all were stopped and went on together is nobody's silence.
static double passed(double *last) {
  double now = now_seconds(), d = now - *last;
  *last = now;
  return MIN(d, 2 * SLICE);
}

// Until `rank` has come to the group's meeting number n.
static Status await(Comm *c, int64_t rank, uint32_t group, uint32_t n) {
  Desk *d = &c->hall->desk[rank], *mine = &c->hall->desk[c->rank];
  double waited = 0, last = now_seconds();
  mine->group = group;
  mine->meeting = n;
  mine->waits = (uint32_t)rank + 1;
  for (uint32_t is; (int32_t)((is = atomic_load_explicit(&d->came[group], memory_order_acquire)) - n) < 0;) {
    if (c->hall->lost) return EXIT_PEER;
    if (d->state != PLACE_runs && (int32_t)(d->came[group] - n) < 0) return lost(c, rank);
    if (waited > c->options.patience) return lost(c, rank);
    futex_wait(&d->came[group], is);
    waited += passed(&last);
    watch(c);
  }
  return 0;
}

static Status meet(Comm *c, const Group *g, uint8_t axes) {
  Desk *mine = &c->hall->desk[c->rank];
  uint32_t n = atomic_fetch_add_explicit(&mine->came[axes], 1, memory_order_release) + 1;
  futex_wake(&mine->came[axes]);
  for (int64_t i = 0; i < g->n; i++) TRY(await(c, g->rank[i], axes, n));
  mine->waits = 0;
  return 0;
}

static void come_to(Comm *c, uint32_t coll, uint32_t line) {
  Desk *mine = &c->hall->desk[c->rank];
  mine->coll = coll;
  mine->line = line;
  mine->number++;
}

static Status local_barrier(Comm *c) {
  uint8_t all = group_all(c);
  come_to(c, 0, 0);
  return meet(c, group_of(c, all), all);
}

static Status local_agree(Comm *c, int64_t *v) {
  if (!c->rank) c->hall->desk[0].value = *v;
  TRY(local_barrier(c));
  *v = c->hall->desk[0].value;
  return local_barrier(c);
}

static Status local_fetch(Comm *c, int64_t rank, const void *mine, size_t bytes, const void **there) {
  (void)bytes;
  *there = place_of(c, rank, mine);
  return 0;
}

static Status local_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line, CommMeeting m) {
  Group *g = group_of(c, x->axes);
  come_to(c, (uint32_t)(x - c->plan->coll.at), line);
  if (m.begins) TRY(meet(c, g, x->axes));    // all have made what they give, and need no more what they get it into
  for (int64_t i = 0; i < g->n; i++) g->to[i] = place_of(c, g->rank[i], to), g->from[i] = place_of(c, g->rank[i], from);
  double begin = now_seconds() - (m.begins ? 0 : c->options.link.latency); // once a meeting
  coll_run(w, &(Coll){x, g->n, g->place, g->to, g->from});
  link_wait(c, x, begin);
  return m.ends ? meet(c, g, x->axes) : 0;   // nobody reads this rank's memory any more
}

static const CommWay local = {local_run, local_barrier, local_agree, local_barrier, local_fetch};

// ---- what ranks say -----------------------------------------------------------------------------------------------
typedef struct { const Comm *comm; _Atomic bool heard[SAID]; } Ear;  // which of rank 0's messages this rank has had too

static uint64_t message_hash(const char *message) { return hash_bytes(message, strlen(message), 0) | 1; }

static void note_message(void *with, const char *message) {          // rank 0
  Hall *h = with;
  uint32_t i = atomic_fetch_add(&h->nsaid, 1);
  if (i < SAID) h->said[i] = message_hash(message);
}

static bool was_said(Ear *e, uint64_t hash) {                        // and was not had before
  for (size_t i = 0; i < SAID; i++)
    if (e->comm->hall->said[i] == hash && !atomic_exchange(&e->heard[i], true)) return true;
  return false;
}

// Rank 0 says nothing more, or not before this rank goes on.
static bool first_is_quiet(const Comm *c) {
  uint32_t rank = 0;
  if (c->hall->lost || c->hall->desk[0].state != PLACE_runs) return true;
  for (int64_t i = 0; i < c->ranks && rank != c->rank; i++) {
    uint32_t waits = waits_for(c, rank);
    if (!waits) return false;
    rank = waits - 1;
  }
  return rank == c->rank;
}

static bool first_says(void *with, const char *message) {            // the others
  Ear *e = with;
  uint64_t hash = message_hash(message);
  double waited = 0, last = now_seconds();
  for (bool quiet = false; !was_said(e, hash); waited += passed(&last)) {
    if (quiet || waited > HEARING) return false;
    quiet = first_is_quiet(e->comm);         // it may have said so just before: asked once more
    if (!quiet) nanosleep(&(struct timespec){0, 2 * 1000 * 1000}, 0);
  }
  return true;
}

static void find_voice(Comm *c) {
  voice = (Voice){.with = c->hall, .said = note_message};
  if (!c->rank) return;
  Ear *e = NEW(c->arena, Ear);
  e->comm = c;
  voice = (Voice){.with = e, .holds = first_says};
  snprintf(voice.who, sizeof voice.who, "rank %lld: ", (long long)c->rank);
}

// ---- processes ------------------------------------------------------------------------------------------------------
static void leave(Comm *c, Status mine) {
  Desk *d = &c->hall->desk[c->rank];
  d->status = (uint32_t)mine;
  d->state = mine ? PLACE_failed : PLACE_done;
  for (uint32_t k = 0; k < COMM_GROUPS; k++) futex_wake(&d->came[k]);
}

static Status first_failure(const Comm *c) { // that a rank is lost is no reason where there is another one
  for (int64_t r = 0; r < c->ranks; r++)
    if (c->hall->desk[r].status && c->hall->desk[r].status != EXIT_PEER) return (Status)c->hall->desk[r].status;
  for (int64_t r = 0; r < c->ranks; r++)
    if (c->hall->desk[r].status) return EXIT_PEER;
  return 0;
}

static bool any_child(const Comm *c) {
  for (int64_t r = 1; r < c->ranks; r++)
    if (c->child[r]) return true;
  return false;
}

// Until all have ended. One that is silent or does not end is killed: it may be stopped, and would stay.
static void wait_children(Comm *c) {
  double waited = 0, last = now_seconds();
  for (watch(c); any_child(c); watch(c)) {
    bool late = waited > (first_failure(c) ? GRACE : c->options.patience);
    if (late && !first_failure(c))
      for (int64_t r = 1; r < c->ranks; r++)
        if (c->child[r]) lost(c, r);
    for (int64_t r = 1; r < c->ranks; r++)
      if (c->child[r] && (late || c->hall->silent == (uint32_t)r + 1)) kill(c->child[r], SIGKILL);
    nanosleep(&(struct timespec){0, 2 * 1000 * 1000}, 0);
    waited += passed(&last);
  }
}

static Status fork_ranks(Comm *c) {
  pid_t parent = getpid();
  c->child = NEW_N(c->arena, pid_t, c->ranks);
  for (int64_t r = 1; r < c->ranks; r++) {
    fflush(0);
    pid_t pid = fork();
    if (pid < 0) {
      Status s = fail(EXIT_UNAVAILABLE, "rank %lld cannot be started: %s", (long long)r, strerror(errno));
      for (int64_t k = 1; k < r; k++) kill(c->child[k], SIGKILL);
      for (int64_t k = 1; k < r; k++) waitpid(c->child[k], 0, 0);
      return s;
    }
    if (!pid) {
      c->rank = r, c->memory += (size_t)r * c->stride, c->child = 0;
      prctl(PR_SET_PDEATHSIG, SIGKILL);      // nothing is left behind when rank 0 is killed
      if (getppid() != parent) _exit(EXIT_PEER);
      return 0;
    }
    c->child[r] = pid;
  }
  return 0;
}

static Status run_processes(Comm *c, RankMain *rank, void *with) {
  TRY(fork_ranks(c));
  find_voice(c);
  Status mine = rank(with, c);
  leave(c, mine);
  if (c->rank) exit(mine);
  wait_children(c);
  voice = (Voice){.with = 0};
  return first_failure(c);
}

// ---- threads --------------------------------------------------------------------------------------------------------
typedef struct { Comm comm; RankMain *rank; void *with; pthread_t thread; } Rank;

static void *rank_main(void *arg) {
  Rank *r = arg;
  leave(&r->comm, r->rank(r->with, &r->comm));
  return 0;
}

static Status run_threads(Comm *c, RankMain *rank, void *with) {
  Rank *all = NEW_N(c->arena, Rank, c->ranks);
  Status s = 0;
  int64_t n = 0;
  for (; n < c->ranks && !s; n++) {
    all[n] = (Rank){*c, rank, with, 0};
    all[n].comm.rank = n, all[n].comm.memory += (size_t)n * c->stride, all[n].comm.arena = arena_create();
    int e = n ? thread_start(&all[n].thread, rank_main, &all[n]) : 0;
    if (e) s = fail(EXIT_UNAVAILABLE, "rank %lld cannot be started: %s%s", (long long)n, strerror(e), space_limit());
  }
  if (s) {                                   // those that have begun end where they meet
    c->hall->lost = 1;
    arena_destroy(all[--n].comm.arena);
  } else rank_main(&all[0]);
  for (int64_t r = 1; r < n; r++) pthread_join(all[r].thread, 0);
  for (int64_t r = 0; r < n; r++) arena_destroy(all[r].comm.arena);
  return s ? s : first_failure(c);
}

Status comm_launch(Arena *a, const Plan *p, size_t bytes, CommOptions o, RankMain *rank, void *with) {
  enum { PAGE = 4096 };
  Comm *c;
  TRY(comm_alone(a, &c));
  if (plan_ranks(p) == 1) return rank(with, c);
  *c = (Comm){.way = &local, .plan = p, .arena = a, .options = o, .ranks = plan_ranks(p), .here = plan_ranks(p)};
  if (c->ranks > COMM_RANKS)
    return fail(EXIT_UNAVAILABLE, "%lld ranks on one machine; at most %d", (long long)c->ranks, COMM_RANKS);
  size_t hall = (sizeof(Hall) + (size_t)c->ranks * sizeof(Desk) + PAGE - 1) / PAGE * PAGE;
  c->stride = (bytes + PAGE - 1) / PAGE * PAGE;
  size_t mapped = hall + (size_t)c->ranks * c->stride;
  char *at = mmap(0, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return fail(EXIT_UNAVAILABLE, "%lld ranks need %.1f MiB of memory, the system refused: %s", (long long)c->ranks,
                (double)mapped / 0x1p20, strerror(errno));
  madvise(at + hall, mapped - hall, MADV_HUGEPAGE);
  c->hall = (Hall *)(void *)at, c->memory = at + hall;
  Status s = o.as == RANKS_threads ? run_threads(c, rank, with) : run_processes(c, rank, with);
  munmap(at, mapped);
  return s;
}
