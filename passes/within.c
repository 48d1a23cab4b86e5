// within.c -- values that are made where they are wanted: the parts of a stack that a product or an attention makes
// are written to their places in the stack, so that nothing copies them there.
#include "passes/group.h"
#include <string.h>

typedef struct {
  ValId v;
  Env env;
} Part; // what is made, and its dims at those of the stack: coef[i] of the i-th dim is 1

static const Node *def(const Fn *f, ValId v) { return f->val.at[v].def ? fn_node(f, f->val.at[v].def) : 0; }

// Operand k of a stack, through renames.
static bool part_of(const Groups *g, const uint32_t *uses, const Type *host, const Node *stack, uint32_t k, Part *p) {
  const Fn *f = g->f;
  ValId next = node_in(f, stack)[k];
  p->env.n = 0;
  for (int i = 0; i < host->ndim; i++) {
    Pos at = {0};
    at.coef[i] = 1;
    if (host->dim[i] != stack->attr.dims[0]) env_set(&p->env, host->dim[i], at);
  }
  for (bool more = true; more;) {
    p->v = next;
    const Node *d = def(f, p->v);
    if (uses[p->v] != 1 || !d) return false;
    Cut cut;
    int64_t range[KERNEL_RANGES] = {0};
    more = d->op == OP_rename && view_step(f, p->v, &p->env, range, &next, &cut) == VIEW_passed;
  }
  Op op = def(f, p->v)->op;
  return (op == OP_dot || op == OP_attention || op == OP_attention_grad) && val_type(f, p->v)->dtype == host->dtype &&
         !g->returned[p->v];
}

// Each dim of v lies along one of the stack; so many elements apart.
static bool strides_of(const Groups *g, const Part *p, const int64_t *step, int ndim, int64_t stride[MAX_DIMS]) {
  const Type *t = val_type(g->f, p->v);
  if (t->ndim != ndim - 1) return false;
  for (int i = 0; i < t->ndim; i++) {
    const Pos *at = env_find((Env *)(uintptr_t)&p->env, t->dim[i]);
    if (!at) return false;
    stride[i] = 0;
    for (int r = 0; r < ndim; r++) stride[i] += step[r] * at->coef[r];
  }
  return true;
}

static bool product_fits(const Fn *f, const Node *n, const int64_t stride[MAX_DIMS]) {
  PlanGemm gemm;
  ValId base[2];
  int64_t at[2];
  return product_of(f, node_in(f, n)[0], node_in(f, n)[1], n->attr.dims, n->attr.ndims, val_type(f, n->out), stride,
                    &gemm, base, at);
}

static void place_parts(Groups *g, const uint32_t *uses, const Node *stack, ValId host) {
  enum { PARTS = 64 };
  const Fn *f = g->f;
  const Type *t = val_type(f, host);
  Within place[PARTS];
  ValId part[PARTS];
  int64_t step[MAX_DIMS] = {0}, walk = 1, apart = 0;
  if (stack->nin > PARTS || t->ndim > KERNEL_RANGES) return;
  for (int i = t->ndim; i--; walk *= type_local(g->m, t, (uint32_t)i)) {
    step[i] = walk;
    if (t->dim[i] == stack->attr.dims[0]) apart = walk;
  }
  for (uint32_t k = 0; k < stack->nin; k++) {
    Part p;
    place[k] = (Within){.in = host, .at = (int64_t)k * apart};
    if (!part_of(g, uses, t, stack, k, &p) || !strides_of(g, &p, step, t->ndim, place[k].stride)) return;
    if (def(f, p.v)->op == OP_dot && !product_fits(f, def(f, p.v), place[k].stride)) return;
    part[k] = p.v;
  }
  for (uint32_t k = 0; k < stack->nin; k++) g->within[part[k]] = place[k];
  g->made_of_parts[host] = true;
}

// why: by value, WHY_nothing when it is not stored
void find_within(Groups *g, const uint32_t *uses) {
  const Fn *f = g->f;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i), *stack = n;
    bool reorder = n->op == OP_cast && uses[node_in(f, n)[0]] == 1 && def(f, node_in(f, n)[0]);
    if (reorder) stack = def(f, node_in(f, n)[0]); // the same in another order of its dims
    if (stack->op != OP_stack || !g->why[n->out] || g->returned[n->out]) continue;
    if (stack != n && g->why[stack->out]) continue;
    place_parts(g, uses, stack, n->out);
  }
}

void made_at(const Groups *g, const Fn *f, ValId v, ValId *base, int64_t *at, int64_t stride[MAX_DIMS]) {
  if (!g || !g->within[v].in) {
    locate(f, v, false, base, at, stride);
    return;
  }
  *base = g->within[v].in, *at = g->within[v].at;
  memcpy(stride, g->within[v].stride, MAX_DIMS * sizeof *stride);
}
