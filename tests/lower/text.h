// text.h -- model texts for tests: from a text or a file to a module, with the messages collected.
#ifndef MT_TEST_TEXT_H
#define MT_TEST_TEXT_H
#include "compiler/interp.h"
#include "compiler/program.h"

typedef struct { Arena *arena; Diag diag; Text said; Program *program; Module *module; Status status; } Lowered;

// path: a file. options: as for mtc, "-D hidden=64 --map 'seq -> cp'", or 0. module: 0 after errors, which
// are in said.
void lowered_init(Lowered *t, Arena *a, const char *path, const char *options);
// The same for a text; files that it imports are found from the current folder.
void lowered_text(Lowered *t, Arena *a, const char *text, size_t n, const char *options);

// One output of the model, computed by the interpreter from inputs in[] (in the order of the header): *n
// values, or 0 and a fault printed. Outputs without dims come from the training program, the others from the
// inference program.
double *output_values(Lowered *t, const char *name, const double *const *in, int64_t *n);
#endif
