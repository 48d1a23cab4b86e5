// replicas.h -- whether the ranks that hold the same do hold the same.
#ifndef MT_REPLICAS_H
#define MT_REPLICAS_H
#include "runtime/exec.h"
#include "runtime/notes.h"

// Compares parameters, copies, moments, scalars and counts between the ranks that must have equal bytes of them, by their
// hashes. EXIT_INTERNAL, after a message with the first difference. All is still; all ranks call it.
Status replicas_check(const Exec *x, Notes *n);
#endif
