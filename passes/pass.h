// pass.h -- a pass reads the module's functions and puts new ones in their place; see passes.def.
#ifndef MT_PASS_H
#define MT_PASS_H
#include "compiler/ir.h"

typedef enum {
  PASS_none,
#define PASS(name, doc) PASS_##name,
#include "passes/passes.def"
#undef PASS
  PASS_COUNT
} Pass;

#define PASS(name, doc) bool pass_##name(Module *m);
#include "passes/passes.def"
#undef PASS
#endif
