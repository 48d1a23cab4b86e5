// cost.h -- what an instruction of a plan does, and how long that takes at the rates of this machine.
#ifndef MT_COST_H
#define MT_COST_H
#include "runtime/plan.h"
#include "runtime/rates.h"

void   ins_cost(const Plan *p, const PlanIns *in, double *flops, double *bytes);
double plan_step_flops(const Plan *p);                            // of one step's cells
// Seconds of one run: a product at the rate of its format, an attention too or at the copy rate for its bytes, whatever
// else moves memory at the copy rate, the update at its own. 0: not known.
double ins_limit(const Plan *p, uint32_t fn, const PlanIns *in, const Rates *r);
// A step's time, were all of it so fast: "about 0.92 s a step: products 0.61, memory 0.31"; 0: there is no step
Str    step_estimate(Arena *a, const Plan *p, const Rates *r);
#endif
