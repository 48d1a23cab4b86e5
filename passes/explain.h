// explain.h -- what a program is, as text for people: `mtc explain`, `mtc dump --params` and the lists.
#ifndef MT_EXPLAIN_H
#define MT_EXPLAIN_H
#include "compiler/program.h"

// What was trained, how, on which mesh, and what is communicated. The module is after the passes.
void explain_all(Text *t, const Program *p);
// What the model's text calls `what` (an output, parameter, dim, config, setting), or the nodes of %12, a
// line 45, a path h.0.attn, a value x. False: there is nothing of that name.
bool explain_name(Text *t, const Program *p, const char *what);
// Every name that explain_name knows, for "did you mean".
typedef VEC(Str) Names;
void explain_names(const Program *p, Names *out);

void params_print(Text *t, const Module *m);                      // with their tensors in checkpoints
void ops_list(Text *t);                                           // of the language, and of the graph
void passes_list(Text *t);
#endif
