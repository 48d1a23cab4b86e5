// comm_way.c -- see comm_way.h, and comm.h for what is handed on to the way in use.
#include "runtime/comm_way.h"
#include <errno.h>
#include <string.h>
#include <time.h>

int64_t comm_ranks(const Comm *c) { return c->ranks; }
int64_t comm_rank(const Comm *c) { return c->rank; }
int64_t comm_here(const Comm *c) { return c->here; }
void *comm_memory(Comm *c) { return c->memory; }

Status comm_alone(Arena *a, Comm **c) {
  *c = NEW(a, Comm);
  **c = (Comm){.ranks = 1, .here = 1};
  return 0;
}

Status comm_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line, CommMeeting m) {
  return c->way->run(c, w, x, to, from, line, m);
}
Status comm_barrier(Comm *c) { return c->way ? c->way->barrier(c) : 0; }
Status comm_agree(Comm *c, int64_t *v) { return c->way ? c->way->agree(c, v) : 0; }
Status comm_hold(Comm *c) { return comm_barrier(c); }
Status comm_release(Comm *c) { return c->way ? c->way->release(c) : 0; }
Status comm_fetch(Comm *c, int64_t rank, const void *mine, size_t bytes, const void **there) {
  *there = mine;
  return rank == c->rank ? 0 : c->way->fetch(c, rank, mine, bytes, there);
}

// "rank 0 has A, ranks 1, 3 have B"; what is long has a line of its own
static void put_sides(Text *t, const Str *value, int64_t ranks) {
  enum { LONG = 72 };
  for (int64_t r = 0; r < ranks; r++) {
    int64_t n = 0, first = 0;
    while (strcmp(value[first], value[r])) first++;
    if (first < r) continue;                 // told with an earlier rank
    for (int64_t k = r; k < ranks; k++) n += !strcmp(value[k], value[r]);
    text_printf(t, "%s%s rank%s", r ? "," : "", strlen(value[r]) > LONG ? "\n " : "", n == 1 ? "" : "s");
    for (int64_t k = r, i = 0; k < ranks; k++) {
      if (strcmp(value[k], value[r])) continue;
      if (i < 8) text_printf(t, "%s %lld", i ? "," : "", (long long)k);
      if (i++ == 8) text_printf(t, " and %lld more", (long long)n - 8);
    }
    text_printf(t, " ha%s %s", n == 1 ? "s" : "ve", value[r]);
  }
}

Status comm_alike(const Comm *c, Str what, const Str *value, Str mend) {
  bool alike = true;
  for (int64_t r = 1; r < c->ranks && alike; r++) alike = !strcmp(value[r], value[0]);
  if (alike || c->rank) return alike ? 0 : EXIT_INPUT;
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  put_sides(&t, value, c->ranks);
  Status s = fail(EXIT_INPUT, "the ranks differ, %s:%s%s%s", what, t.s, mend ? "; " : "", mend ? mend : "");
  arena_destroy(a);
  return s;
}

uint8_t group_all(const Comm *c) { return (uint8_t)((1u << c->plan->axis.n) - 1); }

Group *group_of(Comm *c, uint8_t axes) {
  Group *g = c->group[axes];
  if (g) return g;
  g = c->group[axes] = NEW(c->arena, Group);
  g->rank = NEW_N(c->arena, uint16_t, c->ranks);
  for (int64_t r = 0; r < c->ranks; r++) {
    bool in = true;
    for (uint32_t a = 0; a < c->plan->axis.n && in; a++)
      in = axes >> a & 1 || plan_coord(c->plan, r, a) == plan_coord(c->plan, c->rank, a);
    if (r == c->rank) g->place = g->n;
    if (in) g->rank[g->n++] = (uint16_t)r;
  }
  g->to = NEW_N(c->arena, char *, g->n), g->from = NEW_N(c->arena, char *, g->n);
  return g;
}

void link_wait(const Comm *c, const PlanColl *x, double begin) {
  double when = begin + link_seconds(&c->options.link, coll_bytes(c->plan, x));
  struct timespec t = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};
  while (c->options.link.rate > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) continue;
}

// ---- a rank is lost -------------------------------------------------------------------------------------------------
static void put_meeting(Text *t, const Comm *c, Arena *a, const Place *at) {
  static const Str kind[] = {
#define X(word) #word,
    PLAN_COLLS(X)
#undef X
  };
  const Plan *p = c->plan;
  if (!at->coll || at->coll >= p->coll.n || at->line >= p->line.n) {
    text_puts(t, "a meeting of all ranks");
    return;
  }
  text_printf(t, "%s over", kind[p->coll.at[at->coll].kind]);
  for (uint32_t i = 0; i < p->axis.n; i++)
    if (p->coll.at[at->coll].axes >> i & 1) text_printf(t, " %s", p->axis.at[i].name);
  text_printf(t, ", number %u of the run, %s (%s)", at->number, plan_place(p, a, at->line), p->line.at[at->line].what);
}

static void put_rank(Text *t, const Comm *c, Arena *a, int64_t rank, const Place *at) {
  text_printf(t, "\n  rank %lld ", (long long)rank);
  switch (at->state) {
    case PLACE_failed: at->signal ? text_printf(t, "was killed by signal %u", at->signal) : text_puts(t, "has failed"); break;
    case PLACE_died: text_puts(t, "has died"); break;
    case PLACE_done: text_puts(t, "is done"); break;
    case PLACE_silent: text_puts(t, "does not answer"); break;
    case PLACE_runs: at->waits ? text_printf(t, "waits for rank %u", at->waits - 1) : text_puts(t, "computes"); break;
  }
  if (!at->number) return;
  text_puts(t, at->waits ? " at " : ", after "), put_meeting(t, c, a, at);
}

static int64_t last_waited_for(const Comm *c, const Place *at, int64_t rank) {
  for (int64_t i = 0; i < c->ranks && at[rank].state == PLACE_runs && at[rank].waits; i++) rank = at[rank].waits - 1;
  return rank;
}

// A rank that waits: this one, or else the first.
static int64_t witness(const Comm *c, const Place *at) {
  int64_t r = 0;
  if (at[c->rank].waits) return c->rank;
  while (r < c->ranks && !at[r].waits) r++;
  return r;
}

Status place_lost(const Comm *c, const Place *at, int64_t rank, int64_t *culprit) {
  enum { MOST = 64 };
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  *culprit = rank = last_waited_for(c, at, rank);
  text_printf(&t, "rank %lld ", (long long)rank);
  if (at[rank].state == PLACE_failed && at[rank].signal) text_printf(&t, "was killed by signal %u", at[rank].signal);
  else if (at[rank].state == PLACE_failed) text_puts(&t, "has failed");
  else if (at[rank].state == PLACE_done) text_puts(&t, "has ended");
  else if (at[rank].state == PLACE_died) text_puts(&t, "has died");
  else text_printf(&t, "is silent for %g s (--timeout)", c->options.patience);
  int64_t who = witness(c, at);
  if (who < c->ranks) text_printf(&t, ", and rank %lld waits at ", (long long)who), put_meeting(&t, c, a, &at[who]);
  text_puts(&t, "; all ranks end");
  for (int64_t r = 0; r < c->ranks && r < MOST; r++) put_rank(&t, c, a, r, &at[r]);
  if (c->ranks > MOST) text_printf(&t, "\n  and %lld more", (long long)c->ranks - MOST);
  Status s = fail(EXIT_PEER, "%s", t.s);
  arena_destroy(a);
  return s;
}
