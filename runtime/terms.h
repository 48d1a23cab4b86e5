// terms.h -- what all ranks of a run must have the same of: else none goes on, and rank 0 says who has what.
#ifndef MT_TERMS_H
#define MT_TERMS_H
#include "runtime/notes.h"

typedef struct { Str what, value, mend; } Term;       // mend: what to do where they differ, or 0

Status terms_check(Notes *n, const Term *t, size_t count);        // all ranks call it, with terms of the same `what`
#endif
