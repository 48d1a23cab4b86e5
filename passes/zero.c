// zero.c -- what ranks that hold the same parameters share out among them (ZeRO: Rajbhandari et al. 2020).
//
// A gradient that is a pending sum over some axes is a sum of ranks that all hold the parameter, so each can update a
// part of it. Parts are cut along dims: by all these axes the first dim, as stored, that they divide, since its part
// lies in one piece; where they divide none together, axis by axis the first that it divides. An axis that divides no
// dim is left out, and its ranks do the same work. What is laid out so:
//
//   parallel.zero = 1   the optimizer's moments; parameters that have a compute copy
//   parallel.zero = 2   gradients, too: each microbatch's sum is scattered
//   parallel.zero = 3   what forward and backward read of the parameters, too: gathered where it is used
#include "passes/layout.h"

static bool divides(const Module *m, const Type *t, int k, int64_t ways) {
  if (dim_zigzag(m, t->dim[k]) || t->split[k] >> 4 * (MAX_SPLIT - 1)) return false;
  return dim_of(m, t->dim[k])->size / split_ways(m, t->split[k]) % ways == 0;
}

static bool cut(const Module *m, Type *t, uint8_t axes) {
  int64_t ways = axes_ways(m, axes);
  for (int k = 0; k < t->ndim; k++) {
    Split s = t->split[k];
    if (!divides(m, t, k, ways)) continue;
    for (uint32_t a = 0; a < m->axis.n; a++) {
      if (!(axes >> a & 1)) continue;
      if (s >> 4 * (MAX_SPLIT - 1)) break;
      s = split_push(s, a);
    }
    if ((split_mask(s) & axes) != axes) continue;
    t->split[k] = s;
    return true;
  }
  return false;
}

Type zero_part(const Module *m, Type t, uint8_t axes) {
  if (axes && cut(m, &t, axes)) return t;
  for (uint32_t a = 0; a < m->axis.n; a++)
    if (axes >> a & 1) cut(m, &t, (uint8_t)(1u << a));
  return t;
}

// A variable's type with the splits of a parameter's part.
static void lay_out(Module *m, VarId v, const Type *part) {
  Type t = m->type.at[m->var.at[v].type];
  for (int k = 0; k < t.ndim; k++) t.split[k] = part->split[k];
  m->var.at[v].type = type_intern(m, t);
}

void zero_lay_out(const Rules *r) {
  Module *m = r->m;
  for (VarId v = 1; v < m->var.n; v++) {
    const Var *x = &m->var.at[v];
    VarId p = x->of ? x->of : v;
    if (!r->part[p]) continue;
    bool has_copy = x->kind == VAR_param && var_find(m, intern_printf(m->in, "%s:copy", x->name));
    bool state = x->kind == VAR_moment || has_copy, read = x->kind == VAR_copy || (x->kind == VAR_param && !has_copy);
    if ((state && r->zero >= 1) || (read && r->zero >= 3)) lay_out(m, v, &m->type.at[r->part[p]]);
  }
  for (FnId i = 1; i < m->fn.n; i++) {       // what has been made before knew them whole
    Fn *f = m->fn.at[i];
    for (NodeId id = 1; id < f->node.n && !f->is_body; id++)
      if (fn_node(f, id)->op == OP_read) f->val.at[fn_node(f, id)->out].type = m->var.at[fn_node(f, id)->attr.var].type;
  }
}

VarId *zero_owners(const Fn *f, Arena *a) {
  const Module *m = f->module;
  VarId *owner = NEW_N(a, VarId, f->val.n);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    VarId of = 0;
    if (n->op == OP_read && m->var.at[n->attr.var].kind != VAR_scalar)
      of = m->var.at[n->attr.var].of ? m->var.at[n->attr.var].of : n->attr.var;
    for (uint32_t i = 0; i < n->nin && !of; i++)
      if (val_type(f, node_in(f, n)[i])->ndim) of = owner[node_in(f, n)[i]];
    for (uint32_t i = 0; i < n->nout; i++) owner[n->out + i] = of;
  }
  return owner;
}
