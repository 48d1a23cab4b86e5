// launch.h -- who started this process, and which rank of how many it is. Rows: launch.def.
#ifndef MT_LAUNCH_H
#define MT_LAUNCH_H
#include "runtime/plan.h"

typedef enum {
#define LAUNCHER(word, ...) LAUNCH_##word,
#include "runtime/launch.def"
#undef LAUNCHER
  LAUNCH_COUNT
} LaunchKind;

typedef struct {
  LaunchKind kind;                           // none: mtrun starts the ranks itself
  int64_t rank, size;                        // of the run
  int64_t local_rank, local_size;            // on this machine; local_size 0, local_rank -1: not known
} Launcher;

// From the environment. asked: a row's word, or "auto". Refused with both values: variables that contradict one
// another or those of another launcher.
Status launch_find(const char *asked, Launcher *l);
Status launch_fits(const Launcher *l, const Plan *p);                // as many as the plan has ranks
Str    launch_name(const Launcher *l);                               // "mpirun of Open MPI"
Str    launch_mesh(const Plan *p, Arena *a);                       // "dp=2, tp=2"; "": one rank
void   launch_man(FILE *to);                                       // the rows, for man(1)
#endif
