// trace.h -- where the time went: a Chrome trace (Perfetto, chrome://tracing, speedscope), and a table by kernel.
#ifndef MT_TRACE_H
#define MT_TRACE_H
#include "runtime/dev.h"

enum { TRACE_SPANS = 1 << 19 };              // timed instructions kept per stream

typedef struct { int64_t step; double begin, end; } StepSpan;      // now_seconds
typedef VEC(StepSpan) StepSpans;

Status trace_write(const char *path, const Plan *p, const Dev *d, const StepSpans *steps);
void   profile_print(FILE *to, const Plan *p, const Dev *d, double seconds);       // seconds: of the measured steps
Status profile_write(const char *path, const Plan *p, const Dev *d, double seconds, int64_t steps);
double plan_step_flops(const Plan *p);                                            // of one step's cells
#endif
