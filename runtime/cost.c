// cost.c -- see cost.h.
#include "runtime/cost.h"
#include <math.h>
#include <string.h>

void ins_cost(const Plan *p, const PlanIns *in, double *flops, double *bytes) {
  *flops = *bytes = 0;
  if (in->op == PI_kernel)
    *flops = (double)p->kernel.at[in->what].flops, *bytes = (double)p->kernel.at[in->what].bytes;
  if (in->op == PI_copy) *bytes = 2 * (double)in->bytes;
  if (in->op == PI_zero) *bytes = (double)in->bytes;
  if (in->op != PI_gemm) return;
  const PlanGemm *g = &p->gemm.at[in->what];
  double loops = 1;
  for (uint32_t i = 0; i < g->nloop; i++) loops *= (double)g->loop[i].n;
  *flops = (double)gemm_flops(g);
  *bytes = loops * ((double)(g->m * g->k) * (double)dtype_bytes(g->a) +
                    (double)(g->k * g->n) * (double)dtype_bytes(g->b) +
                    (double)(g->m * g->n) * (double)dtype_bytes(g->c));
}

// The instructions of one step, each as often as it runs
typedef struct { const Plan *p; uint32_t cell, ins; } Walk;
static const PlanIns *walk_next(Walk *w, uint32_t *fn) {   // 0: no more
  for (; w->cell < w->p->cell.n; w->cell++, w->ins = 0) {
    const PlanCell *c = &w->p->cell.at[w->cell];
    const PlanFn *f = &w->p->fn.at[c->fn];
    *fn = c->fn;
    while (w->ins < f->ins.n) {
      const PlanIns *in = &f->ins.at[w->ins++];
      bool skipped = in->when == WHEN_last && c->microbatch + 1 < w->p->microbatches;
      if (!skipped && in->when != (c->microbatch ? WHEN_first : WHEN_later)) return in;
    }
  }
  return 0;
}

double plan_step_flops(const Plan *p) {
  double total = 0, flops, bytes;
  uint32_t fn;
  Walk w = {.p = p};
  for (const PlanIns *in; (in = walk_next(&w, &fn));) ins_cost(p, in, &flops, &bytes), total += flops;
  return total;
}

// ---- limits ---------------------------------------------------------------------------------------------------------
static RateFormat format_of(const PlanGemm *g) {           // what it is computed in
  return g->a == DT_f64 ? RF_f64 : g->lib != LIB_openblas && g->a == DT_bf16 ? RF_bf16 : RF_f32;
}

static RateLayout layout_of(const PlanGemm *g) {
  bool turned = g->n > 1 && g->cn != 1;                    // the product of the transposes
  bool ta = g->m > 1 && g->k > 1 && g->ak != 1, tb = g->n > 1 && g->k > 1 && g->bn != 1;
  if (turned ? !tb : ta) return RL_TN;
  return (turned ? !ta : tb) ? RL_NT : RL_NN;
}

static double product_rate(const PlanGemm *g, const Rates *r) {    // FLOP/s; the size that is nearer
  double loops = 1;
  for (uint32_t i = 0; i < g->nloop; i++) loops *= g->loop[i].c ? 1 : (double)g->loop[i].n;
  bool large = (double)g->m * (double)g->n * (double)g->k * loops > 512.0 * 768 * 3072;
  return 1e9 * r->product[format_of(g)][layout_of(g)][large ? RT_1024 : RT_256];
}

static double kernel_limit(const Plan *p, uint32_t fn, const PlanKernel *k, const Rates *r) {
  bool update = !strcmp(p->fn.at[fn].name, "update") && !strcmp(k->class, "map");
  double memory = (double)k->bytes / (1e9 * (update ? r->update : r->copy));
  RateFormat f = k->param.at[0].dtype == DT_f64 ? RF_f64 : k->param.at[0].dtype == DT_bf16 ? RF_bf16 : RF_f32;
  double rate = 1e9 * r->product[f][RL_NT][RT_256];
  return !strcmp(k->class, "tile") && rate > 0 ? MAX(memory, (double)k->flops / rate) : memory;
}

double ins_limit(const Plan *p, uint32_t fn, const PlanIns *in, const Rates *r) {
  double flops, bytes, rate;
  ins_cost(p, in, &flops, &bytes);
  switch (in->op) {
    case PI_kernel: return kernel_limit(p, fn, &p->kernel.at[in->what], r);
    case PI_gemm: rate = product_rate(&p->gemm.at[in->what], r); return rate > 0 ? flops / rate : 0;
    case PI_copy: case PI_zero: return bytes / (1e9 * r->copy);
    case PI_record: case PI_wait: case PI_load: case PI_coll: case PI_COUNT: break;
  }
  return 0;
}

Str step_estimate(Arena *a, const Plan *p, const Rates *r) {
  double products = 0, memory = 0, jobs = 0;
  uint32_t fn;
  Walk w = {.p = p};
  for (const PlanIns *in; (in = walk_next(&w, &fn));) {
    if (in->stream != STREAM_compute) continue;
    bool product = in->op == PI_gemm || (in->op == PI_kernel && !strcmp(p->kernel.at[in->what].class, "tile"));
    double s = ins_limit(p, fn, in, r);
    *(product ? &products : &memory) += s;
    jobs += in->op == PI_kernel ? p->kernel.at[in->what].stages : 1;
  }
  memory += 1e-6 * r->job * jobs * (r->threads > 1);
  double all = products + memory, unit = all < 1 ? 1e-3 : 1;
  int digits = all < 1 ? all < 0.02 : 2;                   // 7.3 ms, 145 ms, 1.52 s
  if (!p->cell.n) return 0;
  return arena_printf(a, "about %.*f %s a step: products %.*f, memory %.*f", digits, all / unit, all < 1 ? "ms" : "s",
                      digits, products / unit, digits, memory / unit);
}
