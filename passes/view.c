// view.c -- dims through ops that move no data: where an element of a view lies in its operand.
#include "passes/group.h"
#include <string.h>

Pos *env_find(Env *e, DimId d) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->dim[i] == d) return &e->pos[i];
  return 0;
}

void env_set(Env *e, DimId d, Pos p) {
  Pos *old = env_find(e, d);
  if (old) { *old = p; return; }
  if (e->n == ENV_DIMS) bug("more than %d dims in one place", ENV_DIMS);
  e->dim[e->n] = d, e->pos[e->n++] = p;
}

bool op_is_view(Op op) {
  return op == OP_rename || op == OP_slice || op == OP_unstack || op == OP_expand || op == OP_split || op == OP_merge || op == OP_detach;
}

static int64_t extent(const Fn *f, DimId d) { return dim_of(f->module, d)->extent; }

// p = high · n + low with 0 <= low < n over all points of the loops. A loop of n·k points with stride 1 does both: then
// *cut says so (the loop must become two) and the answer is false.
static bool divide(const Pos *p, int64_t n, const int64_t *range, Pos *high, Pos *low, Cut *cut) {
  int64_t most = p->base % n;
  if (p->index || p->base < 0) return false;
  *high = (Pos){.base = p->base / n}, *low = (Pos){.base = p->base % n};
  for (uint32_t r = 0; r < KERNEL_RANGES; r++) {
    if (!p->coef[r]) continue;
    if (p->coef[r] % n == 0) high->coef[r] = p->coef[r] / n;
    else {
      low->coef[r] = p->coef[r];
      if (p->coef[r] < 0) return false;
      most += p->coef[r] * (range[r] - 1);
      if (p->coef[r] == 1 && range[r] > n && range[r] % n == 0) *cut = (Cut){n, r};
    }
  }
  return most < n;
}

ViewStep view_step(const Fn *f, ValId v, Env *env, const int64_t *range, ValId *operand, Cut *cut) {
  const Value *val = &f->val.at[v];
  if (!val->def) return VIEW_none;
  const Node *n = fn_node(f, val->def);
  if (!op_is_view(n->op)) return VIEW_none;
  const Attr *at = &n->attr;
  *operand = node_in(f, n)[0];
  const Type *t = val_type(f, *operand);
  Env next = {0};
  for (int i = 0; i < t->ndim; i++) {                                  // dims that the view leaves alone
    Pos *p = env_find(env, t->dim[i]);
    if (p) env_set(&next, t->dim[i], *p);
  }
  switch (n->op) {
  case OP_rename:
    for (uint32_t i = 0; i < at->ndims; i++)
      if (dim_zigzag(f->module, at->dims[i]) != dim_zigzag(f->module, at->to[i])) return VIEW_blocked;
    for (uint32_t i = 0; i < at->ndims; i++) env_set(&next, at->dims[i], *env_find(env, at->to[i]));
    break;
  case OP_slice: {
    const Module *m = f->module;             // a part's piece lies in it as it is; a whole in zigzag order does not
    bool turned = dim_of(m, dim_of(m, at->to[0])->root)->zigzag ||
                  (!dim_of(m, at->dims[0])->whole && dim_of(m, dim_of(m, at->dims[0])->root)->zigzag);
    if (turned) return VIEW_blocked;
    Pos p = *env_find(env, at->to[0]);
    bool beyond = at->at + dim_of(m, at->to[0])->size > dim_of(m, at->dims[0])->size;
    if (p.index && beyond) return VIEW_blocked;          // of a part, loops reach what is padding in the whole
    p.base += at->at;
    env_set(&next, at->dims[0], p);
    break;
  }
  case OP_unstack: env_set(&next, at->dims[0], (Pos){.base = v - n->out}); break;
  case OP_split: {                                                     // d = parts as digits
    Pos sum = {0};
    for (uint32_t i = 0; i < at->nto; i++) {
      const Pos *p = env_find(env, at->to[i]);
      int64_t k = extent(f, at->to[i]);
      if (p->index && sum.index) return VIEW_blocked;
      sum.base = sum.base * k + p->base, sum.icoef = sum.icoef * k + p->icoef;
      if (p->index) sum.index = p->index, sum.iextent = p->iextent;
      for (uint32_t r = 0; r < KERNEL_RANGES; r++) sum.coef[r] = sum.coef[r] * k + p->coef[r];
    }
    env_set(&next, at->dims[0], sum);
    break;
  }
  case OP_merge: {
    Pos rest = *env_find(env, at->to[0]);
    for (uint32_t i = at->ndims; i-- > 1;) {
      Pos high, low;
      if (!divide(&rest, extent(f, at->dims[i]), range, &high, &low, cut)) return VIEW_blocked;
      env_set(&next, at->dims[i], low);
      rest = high;
    }
    env_set(&next, at->dims[0], rest);
    break;
  }
  default: break;                                                      // expand: dims fall away; detach
  }
  *env = next;
  return VIEW_passed;
}
