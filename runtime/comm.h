// comm.h -- the ranks of a run, and what they exchange.
//
// Every sum is made in the order of the members, by one of them, whatever the timing: results depend neither on it nor on
// the way that bytes take. There are two: comm_local.c has ranks of one machine that it starts itself, comm_mpi.c those
// that a launcher has started, on any.
#ifndef MT_COMM_H
#define MT_COMM_H
#include "runtime/launch.h"
#include "runtime/link.h"
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Comm Comm;
typedef enum { RANKS_processes, RANKS_threads } RanksAs;
typedef struct {
  RanksAs as;
  double patience;                           // seconds that a rank waits for a silent one
  Link link;                                 // what collectives pretend to go over
} CommOptions;
typedef Status RankMain(void *with, Comm *c);                      // one rank's whole life

// One rank: no mapping, nothing to wait for.
Status comm_alone(Arena *a, Comm **c);
// Runs `rank` as each of the plan's ranks, `bytes` of memory for each; returns when all have ended, with the first
// failure of all. Processes: rank 0 is the caller's, the others end here.
Status comm_launch(Arena *a, const Plan *p, size_t bytes, CommOptions o, RankMain *rank, void *with);
// This process is one of the ranks that a launcher has started: runs it, and returns when all have ended. build: of this
// program, the same on all.
Status comm_join(Arena *a, const Plan *p, size_t bytes, CommOptions o, const Launcher *l, const char *build, RankMain *rank,
                 void *with);

// This process is a rank that ends with s before it could join: ends the others as well, where their launcher does not.
void comm_forsake(Arena *a, const Launcher *l, double patience, Status s);

int64_t comm_ranks(const Comm *c);
int64_t comm_rank(const Comm *c);
int64_t comm_here(const Comm *c);            // ranks on this machine
void   *comm_memory(Comm *c);                // this rank's; 0 when it is alone

// A collective of the plan, on addresses of this rank's memory. line: for messages. Fails when another rank is lost.
// Collectives over the same axes may follow each other in one meeting: which of them this one is.
typedef struct { bool begins, ends; } CommMeeting;
Status  comm_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line, CommMeeting m);
Status  comm_barrier(Comm *c);               // of all ranks
Status  comm_agree(Comm *c, int64_t *v);     // all take rank 0's

// Between the two, which all ranks call, nothing moves and rank 0 may fetch: what lies at `mine` in this rank's memory
// lies at the same place in each other's. there: those bytes, or a copy that the next fetch from this rank writes over.
Status  comm_hold(Comm *c);
Status  comm_release(Comm *c);
Status  comm_fetch(Comm *c, int64_t rank, const void *mine, size_t bytes, const void **there);
#endif
