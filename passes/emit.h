// emit.h -- the end of the way: a module after its passes becomes a plan.
#ifndef MT_EMIT_H
#define MT_EMIT_H
#include "compiler/ir.h"
#include "compiler/kernel.h"
#include "runtime/plan.h"

// model: the plan's name for it. Kernels are in the plan as sources; compile_objects adds what they compile to. kernels (0:
// not wanted) gets them as they were, beside Plan.kernel.
Plan  *emit(Module *m, const char *model, const Kernel *const **kernels);
Status compile_objects(Plan *p);             // with the system's compiler, for this CPU
#endif
