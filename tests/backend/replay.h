// replay.h -- runs one function of a fresh plan without compiling anything: kernels by their evaluator, attention by its own text, products by plain
// loops, one instruction after the other. What the backend made is compared with the interpreter so.
#ifndef MT_REPLAY_H
#define MT_REPLAY_H
#include "passes/emit.h"

typedef struct { Arena *arena; const Plan *plan; const Kernel *const *kernel; const Tile *const *tile; char *memory[MEM_COUNT]; } Replay;

// kernels, tiles: what emit gave beside Plan.kernel
void  replay_init(Replay *r, Arena *a, const Plan *p, const Kernel *const *kernels, const Tile *const *tiles); // all memory 0xff: what nobody wrote is a NaN
void *replay_at(const Replay *r, PlanArg at);
// in[i]: values of plan input i+1 without padding, row-major
void  replay_run(Replay *r, const char *fn, bool first, const double *const *in);
// whole values of a tensor of these dims, without padding, from storage
void  replay_values(const Plan *p, const uint32_t *dim, uint32_t ndim, DType t, const void *storage, double *out);
#endif
