// model.h -- a model text, through the compiler up to a pass.
#ifndef MT_TEST_MODEL_H
#define MT_TEST_MODEL_H
#include "tests/interp/world.h"

// The text, lowered; settings: "train.clip=1" … or 0 at the end. Prints the messages and gives 0 after an error.
Module *model_lower(Arena *a, const char *text, const char *const *settings);
// Runs the passes in their order up to and with `last`, the verifier after each; false after an error (printed).
bool    model_passes(Module *m, const char *last);
// A World around a module and its function of that name.
World   model_world(Module *m, const char *fn);
Fn     *model_fn(Module *m, const char *name);                         // must be there
VarId   model_var(Module *m, const char *name);                        // must be there
#endif
