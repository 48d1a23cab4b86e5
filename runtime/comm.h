// comm.h -- the ranks of one machine, and what they exchange.
//
// All memory of all ranks lies in one mapping that every rank has at the same address, each rank's blocks at the same
// places behind its own start; so a collective reads what the others have where it lies. Every sum is made in the order
// of the members, by one of them, whatever the timing: results do not depend on it. Two ways to have ranks: processes
// (forked before anything is opened) and threads of one process, for debuggers.
#ifndef MT_COMM_H
#define MT_COMM_H
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Comm Comm;

// One rank: no mapping, nothing to wait for.
Status comm_alone(Arena *a, Comm **c);
// Forks: returns in each of plan_ranks(p) processes, rank 0 being the caller. `bytes`: memory of a rank.
// seconds: how long a rank waits for another one before it gives up.
Status comm_fork(Arena *a, const Plan *p, size_t bytes, double seconds, Comm **c);
// The status with which this rank ends. Rank 0 waits for the others and returns the first failure of all.
Status comm_end(Comm *c, Status mine);       // 0 is allowed

int64_t comm_ranks(const Comm *c);
int64_t comm_rank(const Comm *c);
void   *comm_memory(Comm *c);                // this rank's; 0 when it is alone
void   *comm_of(const Comm *c, int64_t rank, void *mine); // the same place in another rank's memory

// A collective of the plan, on addresses of this rank's memory. line: for messages. Fails when another rank is lost.
Status  comm_run(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line);
Status  comm_barrier(Comm *c);               // of all ranks
Status  comm_agree(Comm *c, int64_t *v);     // all take rank 0's
#endif
