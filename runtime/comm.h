// comm.h -- the ranks of one machine, and what they exchange.
//
// All memory of all ranks lies in one mapping that every rank has at the same address, each rank's blocks at the same
// places behind its own start; so a collective reads what the others have where it lies. Every sum is made in the order
// of the members, by one of them, whatever the timing: results do not depend on it. Two ways to have ranks: processes
// (forked before anything is opened) and threads of one process, for debuggers and sanitizers.
#ifndef MT_COMM_H
#define MT_COMM_H
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

int64_t comm_ranks(const Comm *c);
int64_t comm_rank(const Comm *c);
void   *comm_memory(Comm *c);                // this rank's; 0 when it is alone
void   *comm_of(const Comm *c, int64_t rank, void *mine); // the same place in another rank's memory

// A collective of the plan, on addresses of this rank's memory. line: for messages. Fails when another rank is lost.
Status  comm_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line);
Status  comm_barrier(Comm *c);               // of all ranks
Status  comm_agree(Comm *c, int64_t *v);     // all take rank 0's
#endif
