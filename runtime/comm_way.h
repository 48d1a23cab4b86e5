// comm_way.h -- what the ways to communicate have in common: a rank, who meets, and what is said when one is lost.
#ifndef MT_COMM_WAY_H
#define MT_COMM_WAY_H
#include "runtime/coll.h"
#include "runtime/comm.h"

enum { COMM_GROUPS = 256, COMM_RANKS = 4096 };

typedef struct {                             // the functions of comm.h with these names
  Status (*run)(Comm *c, Work *w, const PlanColl *x, void *to, const void *from, uint32_t line, CommMeeting m);
  Status (*barrier)(Comm *c);
  Status (*agree)(Comm *c, int64_t *v);
  Status (*release)(Comm *c);
  Status (*fetch)(Comm *c, int64_t rank, const void *mine, size_t bytes, const void **there);
} CommWay;

// The ranks that differ along the axes of a mask only, in their order; place: this one's index.
typedef struct { int64_t n, place; uint16_t *rank; char **to, **from; } Group;

struct Comm {
  const CommWay *way;                        // 0: one rank
  const Plan *plan;
  Arena *arena;
  CommOptions options;
  int64_t ranks, rank;
  int64_t here;                              // ranks on this machine
  char *memory;                              // this rank's
  Group *group[COMM_GROUPS];                 // by mask of axes, as they are met
  // comm_local.c
  struct Hall *hall;
  size_t stride;                             // from one rank's memory to the next one's
  pid_t *child;                              // rank 0, processes: of the others
  // comm_mpi.c
  struct Mpi *mpi;
};

Group  *group_of(Comm *c, uint8_t axes);
void    link_wait(const Comm *c, const PlanColl *x, double begin);     // as long as --link says since then
uint8_t group_all(const Comm *c);            // the mask of all axes

// value[ranks] of all: the same, or it fails, and on rank 0 says who has what. mend: what to do about it, or 0.
Status comm_alike(const Comm *c, Str what, const Str *value, Str mend);

// Where a rank is. silent: it does not say.
typedef enum { PLACE_runs, PLACE_done, PLACE_failed, PLACE_died, PLACE_silent } PlaceState;
typedef struct {
  PlaceState state;
  uint32_t signal;                           // that killed it
  uint32_t coll, line, number;               // the last collective it came to, of how many; coll 0: a meeting of all
  uint32_t waits;                            // 1 + the rank that it waits for there; 0: it computes
} Place;
// Says that a rank is lost: whom all wait for in the end, the one that `rank` waits for itself. at: of all ranks.
Status place_lost(const Comm *c, const Place *at, int64_t rank, int64_t *culprit);
#endif
