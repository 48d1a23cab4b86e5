// coll.h -- what a collective does once all members have come: on memory that they all see.
#ifndef MT_COLL_H
#define MT_COLL_H
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct {
  const PlanColl *x;
  int64_t n, place;                          // members; which of them this is
  char **to, **from;                         // [n] by member: where it gets its result, where it has what it gives
} Coll;

// This member's part. Every sum is made in the order of the members, by one of them: it depends on nothing else.
// The members' n values from place `at` on, in their order: their sum or maximum, rounded once.
void   coll_sum(const Coll *c, int64_t at, int64_t n, char *to);
void   coll_run(Work *w, const Coll *c);
double coll_bytes(const Plan *p, const PlanColl *x);               // that a member sends when it sends each byte once
#endif
