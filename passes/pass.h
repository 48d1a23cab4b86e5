// pass.h -- a pass reads the module's functions and puts new ones in their place; see passes.def. The runner verifies
// after every one.
#ifndef MT_PASS_H
#define MT_PASS_H
#include "compiler/ir.h"

typedef enum {
  PASS_none,
#define PASS(name, need, then, doc) PASS_##name,
#include "passes/passes.def"
#undef PASS
  PASS_COUNT,
  PASS_last = PASS_COUNT - 1
} Pass;

#define PASS(name, need, then, doc) bool pass_##name(Module *m);
#include "passes/passes.def"
#undef PASS

typedef struct {
  const char *name, *doc;
  bool required;                             // may not be skipped
  Pass then;                                 // runs again after this one; or PASS_none
  bool (*run)(Module *m);
} PassInfo;
extern const PassInfo pass_info[PASS_COUNT];

typedef uint64_t PassSet;                    // bit p: pass p
typedef struct {
  PassSet skip, print;                       // left out; print the module after these
  Pass from;                                 // the module is after this one, and only those behind it run
  FILE *to;                                  // where; 0: stdout
} RunOptions;

Pass   pass_find(const char *name);          // PASS_none when there is none
// "simplify,layout"; list[PASS_COUNT], or both 0
Status pass_list(const char *names, PassSet *set, Pass *list, uint32_t *n);
Status pass_skippable(PassSet skip);         // refuses what is required
// The rows of passes.def in order, up to and with `upto` (PASS_none: all). False after errors of the user's (printed);
// a module that is not right is a bug of the pass, and so is skipping what is required.
bool   passes_run(Module *m, Pass upto, RunOptions o);
// mtc opt: reads an IR text, runs the named passes in the order given, prints what came out.
Status passes_opt(Diag *d, const char *path, const char *names, FILE *to);
#endif
