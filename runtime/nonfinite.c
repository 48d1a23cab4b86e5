// nonfinite.c -- see nonfinite.h.
//
// The memory between instructions is cleared first, so whatever is not finite is made in this run. Looked at is what an
// instruction writes, after it; so the first one is named, though not which operation of a fused kernel it is.
//
// Infinity may be meant: a mask of -inf before a softmax. It is where the kernel's own text has one, or where an
// operand is meant; then only NaN counts, and an infinity only if nothing else is found. A rank's find is one number,
// cell, instruction, rank, kind from the highest bits on, so that the least one of all is the first.
#include "runtime/nonfinite.h"
#include <math.h>
#include <string.h>

typedef enum { KIND_nan, KIND_inf, KIND_minus_inf, KIND_finite } Kind;
enum { KIND_BITS = 2, RANK_BITS = 16, INS_BITS = 24 };             // above them: the cell, 0 for variables, else from 1

typedef struct {
  const Plan *p;
  Dev *dev;
  int64_t rank;
  int64_t cell;                              // that runs: its number in Plan.cell, from 1
  bool *meant;                               // by buffer: it has infinities that are meant
  bool *means;                               // by kernel: its text has one
  int64_t found, doubted;                    // INT64_MAX: nothing
} Hunt;

static int64_t find_pack(int64_t cell, uint32_t ins, int64_t rank, Kind k) {
  return ((cell << INS_BITS | ins) << RANK_BITS | rank) << KIND_BITS | (int64_t)k;
}

// ---- values -------------------------------------------------------------------------------------------------------
static Kind kind_of(double v) { return isnan(v) ? KIND_nan : !isinf(v) ? KIND_finite : v > 0 ? KIND_inf : KIND_minus_inf; }

static Kind worst(DType t, const void *at, int64_t n) {            // the least Kind of n values
  Kind k = KIND_finite;
  if (!dtype_is_float(t)) return k;
  for (int64_t i = 0; i < n && k != KIND_nan; i++) {
    Kind one = kind_of(dtype_load(t, (const char *)at + (size_t)i * dtype_bytes(t)));
    k = MIN(k, one);
  }
  return k;
}

static Kind worst_product(const PlanGemm *g, const char *c, uint32_t loop) {
  Kind k = KIND_finite;
  if (loop < g->nloop) {
    int64_t n = g->loop[loop].c ? g->loop[loop].n : 1;             // else it is summed over
    for (int64_t i = 0; i < n; i++) {
      Kind one = worst_product(g, c + (size_t)(i * g->loop[loop].c) * dtype_bytes(g->c), loop + 1);
      k = MIN(k, one);
    }
    return k;
  }
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j++) {
      Kind one = worst(g->c, c + (size_t)(i * g->cm + j * g->cn) * dtype_bytes(g->c), 1);
      k = MIN(k, one);
    }
  return k;
}

// ---- instructions -------------------------------------------------------------------------------------------------
static PlanArg arg_of(const Hunt *h, const PlanIns *in, uint32_t i) { return h->p->arg.at[in->arg + i]; }
static const void *at_arg(const Hunt *h, const PlanIns *in, uint32_t i) { return dev_at(h->dev, arg_of(h, in, i)); }

static Kind written(const Hunt *h, const PlanIns *in) {
  const Plan *p = h->p;
  Kind k = KIND_finite;
  switch (in->op) {
    case PI_kernel: {
      const PlanKernel *kernel = &p->kernel.at[in->what];
      for (uint32_t i = 0; i < kernel->param.n; i++) {
        const PlanParam *a = &kernel->param.at[i];
        Kind one = a->written ? worst(a->dtype, at_arg(h, in, i), a->count) : KIND_finite;
        k = MIN(k, one);
      }
      return k;
    }
    case PI_gemm: return worst_product(&p->gemm.at[in->what], at_arg(h, in, 0), 0);
    case PI_copy: {
      DType t = p->buffer.at[arg_of(h, in, 0).buffer].dtype;
      return worst(t, at_arg(h, in, 0), in->bytes / (int64_t)dtype_bytes(t));
    }
    case PI_coll: {
      const PlanColl *c = &p->coll.at[in->what];
      return worst(c->dtype, at_arg(h, in, 0), coll_count(p, c, true));
    }
    case PI_zero: case PI_load: case PI_record: case PI_wait: case PI_COUNT: break;
  }
  return k;
}

static bool is_read(const Hunt *h, const PlanIns *in, uint32_t i) {
  return in->op != PI_kernel ? i > 0 : i < h->p->kernel.at[in->what].param.n && h->p->kernel.at[in->what].param.at[i].read;
}
static bool is_written(const Hunt *h, const PlanIns *in, uint32_t i) {
  return in->op != PI_kernel ? i == 0 : i < h->p->kernel.at[in->what].param.n && h->p->kernel.at[in->what].param.at[i].written;
}

static bool at_cell(const Hunt *h, const DevCell *c) {
  const PlanCell *now = &h->p->cell.at[MAX(h->cell, 1) - 1];
  return (h->cell && now->fn == c->fn && now->microbatch == c->microbatch) || h->cell == (int64_t)h->p->cell.n;
}

// After an instruction. An infinity that is not meant, and NaN, is a find.
static void look(void *with, const DevCell *c, uint32_t ins) {
  Hunt *h = with;
  const PlanIns *in = &h->p->fn.at[c->fn].ins.at[ins];
  if (h->found < INT64_MAX) return;
  while (!at_cell(h, c)) h->cell++;
  Kind k = written(h, in);
  bool meant = in->op == PI_kernel && h->means[in->what];
  for (uint32_t i = 0; i < in->narg; i++) meant |= is_read(h, in, i) && h->meant[arg_of(h, in, i).buffer];
  for (uint32_t i = 0; i < in->narg; i++)
    if (is_written(h, in, i)) h->meant[arg_of(h, in, i).buffer] = meant && k != KIND_finite;
  int64_t find = find_pack(h->cell, ins, h->rank, k);
  if (k == KIND_nan || (k != KIND_finite && !meant)) h->found = find;
  else if (k != KIND_finite) h->doubted = MIN(h->doubted, find);
}

static bool means_infinity(const Plan *p, const PlanKernel *k) {
  const char *text = p->source.at[k->source].text, *end = text + p->source.at[k->source].bytes;
  size_t n = strlen(k->symbol);
  for (const char *at = text; (at = memmem(at, (size_t)(end - at), k->symbol, n)); at += n) {
    const char *stop = memmem(at, (size_t)(end - at), "\n}\n", 3);
    if (memmem(at, (size_t)((stop ? stop : end) - at), "INF_F", 5)) return true;
  }
  return false;
}

// ---- the hunt -----------------------------------------------------------------------------------------------------
static void look_at_variables(Hunt *h) {
  const Plan *p = h->p;
  for (uint32_t v = 1; v < p->var.n && h->found == INT64_MAX; v++) {
    const PlanBuffer *b = &p->buffer.at[p->var.at[v].buffer];
    if (p->var.at[v].kind == PVAR_grad) continue;
    Kind k = worst(p->var.at[v].dtype, dev_at(h->dev, (PlanArg){p->var.at[v].buffer, 0}),
                   b->bytes / (int64_t)dtype_bytes(p->var.at[v].dtype));
    if (k != KIND_finite) h->found = find_pack(0, v, h->rank, k);
  }
}

static void clear_between(const Hunt *h) {
  for (uint32_t i = 1; i < h->p->buffer.n; i++) {
    const PlanBuffer *b = &h->p->buffer.at[i];
    if (b->mem == MEM_grads || b->mem == MEM_activations || b->mem == MEM_outputs || b->mem == MEM_workspace)
      memset(dev_at(h->dev, (PlanArg){i, 0}), 0, (size_t)b->bytes);
  }
}

static void say(const Plan *p, int64_t find, Text *said) {
  static const Str what[] = {"nan", "inf", "-inf"};
  const char *kind = what[find & ((1 << KIND_BITS) - 1)];
  long long rank = find >> KIND_BITS & ((1 << RANK_BITS) - 1);
  int64_t ins = find >> (KIND_BITS + RANK_BITS) & ((1 << INS_BITS) - 1), cell = find >> (KIND_BITS + RANK_BITS + INS_BITS);
  Arena *a = said->arena;
  text_puts(said, "\n  the first value that is not finite: ");
  if (!cell) {
    const PlanVar *v = &p->var.at[ins];
    text_printf(said, "%s in '%s' on rank %lld, before the step: %s", kind, v->name, rank, plan_place(p, a, v->line));
    return;
  }
  const PlanCell *c = &p->cell.at[MIN(cell, (int64_t)p->cell.n) - 1];
  const PlanFn *f = &p->fn.at[c->fn];
  const PlanIns *in = &f->ins.at[ins];
  const PlanBuffer *b = &p->buffer.at[p->arg.at[in->arg].buffer];
  const char *where = c->kind == CELL_U ? "the update" : arena_printf(a, "microbatch %lld", (long long)c->microbatch);
  if (in->op == PI_copy && b->mem == MEM_inputs) {
    text_printf(said, "%s in the input '%s' of %s on rank %lld", kind, b->name, where, rank);
    return;
  }
  text_printf(said, "%s in %s on rank %lld, made at %s (%s; instruction %lld of %s)", kind, where, rank,
              plan_place(p, a, in->line), p->line.at[in->line].what, (long long)ins, f->name);
}

static Status hunt(Hunt *h, Exec *x, const StepResult *r, Notes *n) {
  look_at_variables(h);
  clear_between(h);
  TRY(exec_repeat(x, r, false));
  int64_t found = h->found;
  TRY(notes_least(n, &found));
  if (found < INT64_MAX) return h->found = found, 0;
  TRY(exec_repeat(x, r, true));              // finite gradients whose squares are not
  TRY(notes_least(n, &h->found));
  TRY(notes_least(n, &h->doubted));
  h->found = MIN(h->found, h->doubted);
  return 0;
}

Status nonfinite_find(Exec *x, const StepResult *r, Notes *n, Text *said) {
  const Plan *p = x->plan;
  Hunt h = {.p = p, .dev = x->dev, .rank = comm_rank(dev_comm(x->dev)), .found = INT64_MAX, .doubted = INT64_MAX};
  h.meant = NEW_N(said->arena, bool, p->buffer.n), h.means = NEW_N(said->arena, bool, p->kernel.n);
  for (uint32_t i = 1; i < p->kernel.n; i++) h.means[i] = means_infinity(p, &p->kernel.at[i]);
  dev_watch(x->dev, look, &h);
  Status s = hunt(&h, x, r, n);
  dev_watch(x->dev, 0, 0);
  if (!s && h.found < INT64_MAX) say(p, h.found, said);
  else if (!s) text_puts(said, "\n  made once more, all of the step is finite: it was a fault of memory or of a processor");
  return s;
}
