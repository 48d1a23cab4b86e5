// replay.c -- see replay.h.
#include "tests/backend/replay.h"
#include "runtime/init.h"
#define W f32
#include "runtime/kernel_attention.h"
#undef W
#define W f64
#include "runtime/kernel_attention.h"
#undef W
#include <stdlib.h>
#include <string.h>

void replay_init(Replay *r, Arena *a, const Plan *p, const Kernel *const *kernels, const Tile *const *tiles) {
  *r = (Replay){.arena = a, .plan = p, .kernel = kernels, .tile = tiles};
  for (int i = 0; i < MEM_COUNT; i++) {
    size_t n = (size_t)p->memory[i] + 64;
    r->memory[i] = (char *)(((uintptr_t)arena_alloc(a, n + 64) + 63) & ~(uintptr_t)63);
    memset(r->memory[i], i == MEM_scalars ? 0 : 0xff, n);
  }
  for (uint32_t i = 0; i < p->slot.n; i++) {
    if (strncmp(p->slot.at[i].name, "$random:", 8)) continue;
    int64_t hash = path_hash(p->slot.at[i].name + 8);
    memcpy(r->memory[MEM_scalars] + p->slot.at[i].at, &hash, sizeof hash);
  }
}

void *replay_at(const Replay *r, PlanArg at) {
  const PlanBuffer *b = &r->plan->buffer.at[at.buffer];
  return r->memory[b->mem] + b->at + at.at;
}

static bool step(const Plan *p, const uint32_t *dim, uint32_t ndim, int64_t *at) { // to the next existing entry
  for (uint32_t i = ndim; i-- > 0;) {
    if (++at[i] < p->dim.at[dim[i]].extent) return true;
    at[i] = 0;
  }
  return false;
}

static int64_t place(const Plan *p, const uint32_t *dim, uint32_t ndim, const int64_t *at) {
  int64_t o = 0;
  for (uint32_t i = 0; i < ndim; i++) o = o * p->dim.at[dim[i]].size + at[i];
  return o;
}

void replay_values(const Plan *p, const uint32_t *dim, uint32_t ndim, DType t, const void *storage, double *out) {
  int64_t at[PLAN_DIMS] = {0};
  if (!plan_count(p, dim, ndim, false)) return;
  do *out++ = dtype_load(t, (const char *)storage + place(p, dim, ndim, at) * (int64_t)dtype_bytes(t));
  while (step(p, dim, ndim, at));
}

static void fill(const Replay *r, const PlanInput *in, const double *from, void *to) {
  const Plan *p = r->plan;
  int64_t at[PLAN_DIMS] = {0};
  memset(to, 0, (size_t)plan_count(p, in->dim, in->ndim, true) * dtype_bytes(in->dtype));
  if (!plan_count(p, in->dim, in->ndim, false)) return;
  do dtype_store(in->dtype, (char *)to + place(p, in->dim, in->ndim, at) * (int64_t)dtype_bytes(in->dtype), *from++);
  while (step(p, in->dim, in->ndim, at));
}

static void gemm(const PlanGemm *g, char *c, const char *a, const char *b) {
  int64_t loop[GEMM_LOOPS] = {0}, cs = (int64_t)dtype_bytes(g->c), as = (int64_t)dtype_bytes(g->a), bs = (int64_t)dtype_bytes(g->b);
  for (uint32_t i = 0; i < g->nloop; i++)
    if (!g->loop[i].n) return;
  for (bool more = true; more;) {
    int64_t oa = 0, ob = 0, oc = 0;
    bool again = false;                      // a later round of a loop that is summed over
    for (uint32_t i = 0; i < g->nloop; i++) {
      oa += loop[i] * g->loop[i].a, ob += loop[i] * g->loop[i].b, oc += loop[i] * g->loop[i].c;
      again |= !g->loop[i].c && loop[i];
    }
    for (int64_t m = 0; m < g->m; m++)
      for (int64_t n = 0; n < g->n; n++) {
        double sum = 0;
        for (int64_t k = 0; k < g->k; k++) sum += dtype_load(g->a, a + (oa + m * g->am + k * g->ak) * as) * dtype_load(g->b, b + (ob + k * g->bk + n * g->bn) * bs);
        char *to = c + (oc + m * g->cm + n * g->cn) * cs;
        dtype_store(g->c, to, g->alpha * sum + (g->accumulate || again ? dtype_load(g->c, to) : 0));
      }
    more = false;
    for (uint32_t i = g->nloop; i-- > 0 && !more;) {
      if (++loop[i] < g->loop[i].n) more = true;
      else loop[i] = 0;
    }
  }
}

static void attention(const PlanKernel *k, const Tile *t, void *const *buf, const void *scalars) {
  const Attention *a = &t->a;
  bool wide = t->work == DT_f64;
  for (int64_t i = k->units[0]; i-- > 0;)                              // backwards: the order of units does not matter
    if (!t->backward) wide ? attention_forward_f64(a, buf, scalars, i, i + 1) : attention_forward_f32(a, buf, scalars, i, i + 1);
    else wide ? attention_backward_f64(a, buf, scalars, i, i + 1) : attention_backward_f32(a, buf, scalars, i, i + 1);
  for (int64_t i = k->stages > 1 ? k->units[1] : 0; i-- > 0;) wide ? attention_combine_f64(a, buf, scalars, i, i + 1) : attention_combine_f32(a, buf, scalars, i, i + 1);
}

void replay_run(Replay *r, const char *fn, bool first, const double *const *in) {
  const Plan *p = r->plan;
  const PlanFn *f = &p->fn.at[plan_find_fn(p, fn)];
  for (int stream = STREAM_COUNT; stream-- > 0;)                       // the input stream first: then the events are there
    for (uint32_t i = 0; i < f->ins.n; i++) {
      const PlanIns *x = &f->ins.at[i];
      const PlanArg *arg = p->arg.at + x->arg;
      if ((int)x->stream != stream || x->when == (first ? WHEN_later : WHEN_first)) continue;
      void *buf[KERNEL_ARGS];
      for (uint32_t k = 0; k < x->narg; k++) buf[k] = replay_at(r, arg[k]);
      switch (x->op) {
      case PI_kernel:
        if (r->tile[x->what]) attention(&p->kernel.at[x->what], r->tile[x->what], buf, r->memory[MEM_scalars]);
        else kernel_eval(r->kernel[x->what], buf, r->memory[MEM_scalars]);
        break;
      case PI_gemm: gemm(&p->gemm.at[x->what], buf[0], buf[1], buf[2]); break;
      case PI_copy: memmove(buf[0], buf[1], (size_t)x->bytes); break;
      case PI_zero: memset(buf[0], 0, (size_t)x->bytes); break;
      case PI_load: fill(r, &p->input.at[x->what], in[x->what - 1], buf[0]); break;
      default: break;
      }
    }
}
