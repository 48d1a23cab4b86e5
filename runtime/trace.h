// trace.h -- where the time went: a Chrome trace (Perfetto, chrome://tracing, speedscope), and a table by kernel.
#ifndef MT_TRACE_H
#define MT_TRACE_H
#include "runtime/dev.h"
#include "runtime/notes.h"
#include "runtime/rates.h"

enum { TRACE_SPANS = 1 << 19 };              // timed instructions kept per stream

typedef struct { int64_t step; double begin, end; } StepSpan;      // now_seconds
typedef VEC(StepSpan) StepSpans;

// One file of all ranks, which all call it; rank 0 writes. notes 0: of this rank only.
Status trace_write(const char *path, const Plan *p, const Dev *d, const StepSpans *steps, Notes *notes);
// seconds: of the measured steps. rates: of this machine, for the share of them that is reached; or 0
void   profile_print(FILE *to, const Plan *p, const Dev *d, double seconds, const Rates *rates);
Status profile_write(const char *path, const Plan *p, const Dev *d, double seconds, int64_t steps, const Rates *rates);
#endif
