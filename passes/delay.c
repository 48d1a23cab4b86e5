// delay.c -- where pending sums are reduced: the cheapest places, the earliest of equals.
//
// A product over a split dim leaves a sum pending over its axes. Ops that are linear in that operand (and need the axis
// for no dim of theirs) can pass it on; a value with several uses, or one use that cannot, must be reduced there or
// before. Between, pending values form trees: every one has one use. What a tree costs at value v is
//   best(v) = min(bytes(v), before(v)),  before(v) = sum of best over v's pending operands
// with twice the bytes where an all-reduce is needed instead of a reduce-scatter. So two products that are added are
// reduced once, sums over other dims come first, and a gradient that is only accumulated is not reduced at all: its
// variable stays pending and pass `update` reduces it once a step.
#include "passes/layout.h"
#include <math.h>
#include <string.h>

typedef struct {
  uint32_t nuse;
  NodeId   user;                             // the first
  uint8_t  axes;                             // of its splits, by the rule alone
  uint8_t  open;                             // axes over which it may be pending
  uint8_t  passed;                           // of those, the ones that its only use passes on
  uint8_t  due;                              // must be reduced here or before
  double   bytes;                            // on a rank, by the rule alone
  double   best[MAX_AXES], before[MAX_AXES];
} Sum;

typedef struct { const Rules *r; const Fn *f; bool weak; const NodeId *sums; Sum *sum; uint8_t *cut; } Delay;

static bool is_zero(const Fn *f, ValId v) {
  NodeId def = f->val.at[v].def;
  return def && fn_node(f, def)->op == OP_const && fn_node(f, def)->attr.num == 0;
}

static bool op_merges(Op op) { return op == OP_add || op == OP_sub || op == OP_select || op == OP_stack; }

// n is linear in operand i while the others are held
static bool linear_in(const Fn *f, const Node *n, uint32_t i) {
  const ValId *in = node_in(f, n);
  switch (n->op) {
  case OP_neg: case OP_detach: case OP_expand: case OP_rename: case OP_split: case OP_merge: case OP_sum: case OP_cumsum:
  case OP_slice: case OP_unslice: case OP_add: case OP_sub: case OP_stack: return true;
  case OP_cast: return type_is_float(val_type(f, in[0])) == type_is_float(val_type(f, n->out)) && val_type(f, n->out)->dtype != DT_bool;
  case OP_select: return i > 0;
  case OP_mul: case OP_dot: return in[0] != in[1];
  case OP_div: case OP_gather: case OP_scatter: return i == 0 && in[0] != in[1];
  default: return false;
  }
}

// the operands over whose pending sum along axis a node n passes on: 0, or a mask of some that says "those that are open"
static bool node_passes(const Delay *d, const Node *n, uint32_t a) {
  const ValId *in = node_in(d->f, n);
  uint32_t open = 0, others = 0;
  for (uint32_t i = 0; i < n->nin; i++) {
    const Sum *s = &d->sum[in[i]];
    if (s->open >> a & 1) {
      if (s->nuse > 1 || !linear_in(d->f, n, i)) return false;
      open++;
    } else if (!(n->op == OP_select && (i == 0 || is_zero(d->f, in[i]))) && !((n->op == OP_add || n->op == OP_sub) && is_zero(d->f, in[i]))) others++;
  }
  return open && (op_merges(n->op) ? !others : open == 1);
}

// whether v reduced over axis a is wanted split over it
static bool scatters(const Delay *d, ValId v, uint32_t a) {
  const Sum *s = &d->sum[v];
  if (!s->user) return false;
  const Node *u = fn_node(d->f, s->user);
  DimId clash[2];
  Space space;
  const Type *t = val_type(d->f, v);
  if (op_keeps(u->op)) return false;
  space_of(&space, d->f, u);
  if (!space_assign(d->r, &space, d->weak, 0, clash)) return false;
  for (int k = 0; k < t->ndim; k++)
    if (split_mask(space_split(&space, t->dim[k])) >> a & 1) return true;
  return false;
}

static double cost(const Delay *d, ValId v, uint32_t a) {
  const Sum *s = &d->sum[v];
  double bytes = s->bytes;
  if (s->axes >> a & 1) bytes *= d->r->m->axis.at[a].size;   // pending over a it cannot be split by it
  return scatters(d, v, a) ? bytes : 2 * bytes;
}

static void value_init(Delay *d, const Space *s, const Node *n, ValId v) {
  const Type *t = val_type(d->f, v);
  Sum *sum = &d->sum[v];
  if (n && op_keeps(n->op)) {
    const Sum *x = &d->sum[node_in(d->f, n)[0]];
    sum->bytes = x->bytes, sum->axes = x->axes;
    return;
  }
  sum->bytes = (double)dtype_bytes(t->dtype);
  for (int k = 0; k < t->ndim; k++) {
    Split split = s ? space_split(s, t->dim[k]) : d->r->strong[t->dim[k]];
    sum->bytes *= (double)(dim_of(d->r->m, t->dim[k])->size / split_ways(d->r->m, split));
    sum->axes |= split_mask(split);
  }
}

// axes over which an accumulate into v may leave the sum pending
static uint8_t var_pends(const Delay *d, VarId v) {
  const Var *var = &d->r->m->var.at[v];
  uint8_t axes = d->r->live;
  if (var->kind != VAR_grad) return 0;
  const Type *t = &d->r->m->type.at[var->type];
  for (int k = 0; k < t->ndim; k++) axes &= (uint8_t)~split_mask(d->r->strong[t->dim[k]]);
  return axes;
}

static void visit(Delay *d, NodeId id) {
  const Node *n = fn_node(d->f, id);
  const ValId *in = node_in(d->f, n);
  Space s;
  DimId clash[2];
  space_of(&s, d->f, n);
  if (!space_assign(d->r, &s, d->weak, 0, clash)) return;
  for (uint32_t i = 0; i < n->nout; i++) value_init(d, &s, n, n->out + i);
  if (n->op == OP_accumulate) {
    Sum *x = &d->sum[in[0]];
    if (x->nuse == 1) x->passed |= x->open & var_pends(d, n->attr.var);
    return;
  }
  if (d->sums[id]) {
    for (uint32_t i = 0; i < n->nin; i++)
      if (d->sum[in[i]].nuse == 1) d->sum[in[i]].passed |= d->sum[in[i]].open;
    return;
  }
  uint8_t made = space_created(&s, d->f, n);
  if (n->op == OP_reduce_max) {
    d->cut[n->out] = made;
    return;
  }
  if (n->op == OP_read) made = d->r->m->type.at[d->r->m->var.at[n->attr.var].type].pending_axes;
  if (n->nout != 1) return;
  Sum *out = &d->sum[n->out];
  for (uint32_t a = 0; a < d->r->m->axis.n; a++) {
    if (!(d->r->live >> a & 1)) continue;
    bool taken = !op_keeps(n->op) && s.strong >> a & 1, passes = !taken && node_passes(d, n, a);
    if (!passes && !(made >> a & 1)) continue;
    out->open |= (uint8_t)(1u << a), out->before[a] = INFINITY;
    double before = 0;
    for (uint32_t i = 0; passes && i < n->nin; i++) {
      Sum *x = &d->sum[in[i]];
      if (x->open >> a & 1) x->passed |= (uint8_t)(1u << a), before += x->best[a];
    }
    if (passes && !(made >> a & 1)) out->before[a] = before; // a sum that weak rules make is pending either way
    out->best[a] = MIN(cost(d, n->out, a), out->before[a]);
  }
}

static bool reduced_here(const Delay *d, ValId v, uint32_t a) {
  const Sum *s = &d->sum[v];
  const Node *def = s->open && d->f->val.at[v].def ? fn_node(d->f, d->f->val.at[v].def) : 0;
  double here = cost(d, v, a);
  return def && op_keeps(def->op) ? here <= s->before[a] : here < s->before[a];
}

static void decide(Delay *d, ValId v) {
  Sum *s = &d->sum[v];
  uint8_t due = s->open & (uint8_t)(s->due | ~s->passed);
  for (uint32_t a = 0; due; a++, due >>= 1) {
    if (!(due & 1)) continue;
    if (reduced_here(d, v, a)) {
      d->cut[v] |= (uint8_t)(1u << a);
      continue;
    }
    const Node *def = fn_node(d->f, d->f->val.at[v].def);
    for (uint32_t i = 0; i < def->nin; i++) {
      Sum *x = &d->sum[node_in(d->f, def)[i]];
      if (x->open & x->passed & 1u << a) x->due |= (uint8_t)(1u << a);
    }
  }
}

const NodeId *scalar_sums(const Fn *f, Arena *a) {
  NodeId *root = NEW_N(a, NodeId, f->node.n), *user = NEW_N(a, NodeId, f->val.n);
  uint32_t *adds = NEW_N(a, uint32_t, f->node.n), *nuse = NEW_N(a, uint32_t, f->val.n);
  for (NodeId id = 1; id < f->node.n; id++)
    for (uint32_t i = 0; i < fn_node(f, id)->nin; i++) nuse[node_in(f, fn_node(f, id))[i]]++, user[node_in(f, fn_node(f, id))[i]] = id;
  for (uint32_t i = 0; i < f->ret.n; i++) nuse[f->ret.at[i]] += 2;
  for (NodeId id = f->node.n - 1; id; id--) {
    const Node *n = fn_node(f, id);
    if (n->op != OP_add || val_type(f, n->out)->ndim || node_in(f, n)[0] == node_in(f, n)[1]) continue;
    NodeId up = nuse[n->out] == 1 ? root[user[n->out]] : 0;
    root[id] = up ? up : id;
    adds[root[id]]++;
  }
  for (NodeId id = 1; id < f->node.n; id++)
    if (adds[root[id]] < 3) root[id] = 0;
  return root;
}

const uint8_t *delay_sums(const Rules *r, const Fn *f, bool weak, const NodeId *sums, Arena *a) {
  Delay d = {.r = r, .f = f, .weak = weak, .sums = sums, .sum = NEW_N(a, Sum, f->val.n), .cut = NEW_N(a, uint8_t, f->val.n)};
  for (NodeId id = 1; id < f->node.n; id++)
    for (uint32_t i = 0; i < fn_node(f, id)->nin; i++) {
      Sum *x = &d.sum[node_in(f, fn_node(f, id))[i]];
      if (!x->nuse++) x->user = id;
    }
  for (uint32_t i = 0; i < f->ret.n; i++) d.sum[f->ret.at[i]].nuse += 2; // a result is whole: never passed on
  for (uint32_t i = 0; i < f->arg.n; i++) value_init(&d, 0, 0, f->arg.at[i]);
  for (NodeId id = 1; id < f->node.n; id++) visit(&d, id);
  for (ValId v = f->val.n; v-- > 1;) decide(&d, v);
  return d.cut;
}
