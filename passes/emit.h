// emit.h -- the end of the way: a module after its passes becomes a plan.
#ifndef MT_EMIT_H
#define MT_EMIT_H
#include "passes/group.h"
#include "runtime/plan.h"

typedef struct {
  const char *model, *tool;                  // the plan's name for it; the version of the compiler, or 0
  bool apart;                                // nothing is fused: see fuse
  const Kernel *const **kernels;             // 0, or gets the kernels as they were, beside Plan.kernel (0: an attention)
  const Tile *const **tiles;                 // with kernels: the attentions, beside Plan.kernel (0: another kernel)
} EmitOptions;

// What a plan cannot hold, said with the model's path: EXIT_COMPILE; 0 when there is no such thing.
Status emit_possible(const Module *m, const char *path);
Plan  *emit(Module *m, EmitOptions o);       // kernels are in the plan as sources; compile_objects adds what they compile to
Status compile_objects(Plan *p);             // with the system's compiler, for this CPU
#endif
