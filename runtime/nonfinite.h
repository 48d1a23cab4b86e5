// nonfinite.h -- where the first value that is NaN or infinite comes from.
#ifndef MT_NONFINITE_H
#define MT_NONFINITE_H
#include "runtime/exec.h"
#include "runtime/notes.h"

// Makes a step without an update once more and looks at all that its instructions write. The feed gives the same inputs.
// said: what was found, for a message: which operation, rank, microbatch and model line. All ranks call it.
Status nonfinite_find(Exec *x, const StepResult *r, Notes *n, Text *said);
#endif
