// layout.c -- the program of every rank: each value's split over the mesh, from dim names and map rules.
//
// Every op is split as its space (layout.h). Its operands are asked for in that layout, its results have it,
// and a contracted split dim leaves a pending sum; where a value is not as it is asked for, a node `reshard`
// stands between (pass reshard makes collectives of it). Asked twice for the same, a value is resharded once.
// Inputs, parameters and results of functions follow strong rules only; what an update does to a parameter is split
// further among the ranks that hold it (zero.c). What costs nothing to make anywhere
// (index, random, expand, a cast to a wider type) is made as it is asked for.
//
// Modules come in whole: no split, no pending sum. First, composites whose bracketed dims are split and not
// free are replaced by their bodies, and a seq that causal attention works on gets its zigzag order.
#include "passes/layout.h"
#include "compiler/inline.h"
#include "passes/pass.h"
#include <string.h>

typedef struct {
  Rules *r;
  Module *m;
  const Fn *from;
  Fn *to;
  bool weak;                                 // weak rules count (not where parameters are updated)
  const uint8_t *cut;                        // delay_sums
  const NodeId *sums;                        // scalar_sums
  bool *anywhere;                            // by value of from: costs nothing to make in any layout, when asked for it
  ValId *now;                                // by value of from; 0: not made yet
  NodeId *node;                              // by node of from
  Map have;                                  // (value of from, type) -> value of to
  bool clash;                                // two strong rules met: reported, and nothing more is made
  const VarId *owner;                        // zero_owners; 0: not where parameters are updated, or not in parts
} Walk;

// ---- messages ---------------------------------------------------------------------------------------------
static const char *split_text(Module *m, const Type *t) {
  Text out;
  text_init(&out, m->arena);
  for (int k = 0; k < t->ndim; k++) {
    if (!t->split[k]) continue;
    text_printf(&out, "%s%s", out.n ? ", " : "", dim_of(m, t->dim[k])->name);
    for (Split s = t->split[k]; s; s >>= 4) text_printf(&out, "|%s", m->axis.at[(s & 15) - 1].name);
  }
  return out.n ? out.s : "whole";
}

// the strong rule that maps d to one of these axes
static const MapRule *strong_rule(const Rules *r, DimId d, uint8_t axes) {
  for (uint32_t i = 0; i < r->m->rule.n; i++) {
    const MapRule *rule = &r->m->rule.at[i];
    for (uint32_t k = 0; k < rule->naxis && !rule->weak; k++)
      if (axes >> rule->axis[k] & 1 && dim_find(r->m, rule->dim) == d) return rule;
  }
  return 0;
}

static Span rule_loc(const Rules *r, DimId d, uint8_t axes) {
  const MapRule *rule = strong_rule(r, d, axes);
  return rule ? rule->loc : (Span){0};
}

static void rule_note(const Rules *r, DimId d, uint8_t axes) {
  const MapRule *rule = strong_rule(r, d, axes);
  if (!rule) return;
  diag_note_at(r->m->diag, rule->loc, "a strong rule of %s; as a weak one: map weak %s -> …; without: --no-map %s",
               rule->dim, rule->dim, rule->dim);
}

static void clash_report(Rules *r, Span loc, const char *where, const DimId clash[2]) {
  Module *m = r->m;
  uint64_t pair = hash_mix(MIN(clash[0], clash[1]), MAX(clash[0], clash[1]));
  if (map_get(&r->said, pair)) return;
  map_put(&r->said, pair, 1);
  uint8_t both = split_mask(r->strong[clash[0]]) & split_mask(r->strong[clash[1]]);
  if (!loc.line) loc = rule_loc(r, clash[1], both);
  diag_error(m->diag, loc, "MT0311", "'%s' and '%s' meet in %s and both map to %s; map one of them weak",
             dim_of(m, clash[0])->name, dim_of(m, clash[1])->name, where, axes_text(m, m->arena, both, ", "));
  for (int k = 0; k < 2; k++) rule_note(r, clash[k], both);
}

// ---- strong rules alone: inputs, results, variables -------------------------------------------------------
static bool type_strong(Rules *r, TypeId whole, Span loc, const char *what, TypeId *out) {
  Type t = r->m->type.at[whole];
  Space s = {0};
  DimId clash[2];
  for (int k = 0; k < t.ndim; k++) space_add(&s, t.dim[k]);
  if (!space_assign(r, &s, false, 0, clash)) {
    clash_report(r, loc, what, clash);
    return false;
  }
  for (int k = 0; k < t.ndim; k++) t.split[k] = space_split(&s, t.dim[k]);
  *out = type_intern(r->m, t);
  return true;
}

static bool variables(Rules *r) {
  bool ok = true;
  for (VarId v = 1; v < r->m->var.n; v++) {
    Var *var = &r->m->var.at[v];
    if (!type_strong(r, var->type, var->loc, arena_printf(r->m->arena, "'%s'", var->name), &var->type)) ok = false;
  }
  return ok;
}

// ---- before: orders and bodies ----------------------------------------------------------------------------
// causal attention works on a split dim: rank r of n owns chunks r and 2n-1-r of 2n, so that all have the same work
static void orders(Rules *r) {
  Module *m = r->m;
  bool *seen = NEW_N(m->arena, bool, m->dim.n);
  for (FnId i = 1; i < m->fn.n; i++)
    for (NodeId id = 1; id < m->fn.at[i]->node.n; id++) {
      const Node *n = fn_node(m->fn.at[i], id);
      if (n->op != OP_attention || attr_arg(&n->attr, "causal", 0) == 0) continue;
      DimId d = n->attr.dims[0], root = dim_of(m, d)->root;
      int64_t chunks = 2 * split_ways(m, r->strong[d]);
      if (chunks == 2 || seen[root]) continue;
      seen[root] = true;
      const Dim *seq = dim_of(m, root);
      bool padded = seq->size != seq->extent;
      if (seq->size % chunks == 0 && !padded) m->dim.at[root].zigzag = (uint32_t)chunks;
      else
        diag_warning(m->diag, n->loc, "MT0317", "'%s' is %lld, %s %lld: causal attention is not balanced over %s",
                     seq->name, (long long)seq->extent, padded ? "padded, and cannot be cut in" : "no multiple of",
                     (long long)chunks, axes_text(m, m->arena, split_mask(r->strong[d]), ", "));
    }
}

// one of the dims in brackets is split and the composite cannot have it so
static bool opens(const Rules *r, const Fn *f, const Node *n, bool weak) {
  Space s;
  DimId clash[2];
  if (!op_has(n->op, OPF_COMPOSITE)) return false;
  space_of(&s, f, n);
  if (!space_assign(r, &s, weak, 0, clash)) return false;  // the walk reports it
  for (uint32_t i = 0; i < (uint32_t)n->attr.ndims + n->attr.nto; i++) {
    DimId d = i < n->attr.ndims ? n->attr.dims[i] : n->attr.to[i - n->attr.ndims];
    SplitKind kind = op_split(n->op, i);
    if (kind != SPLIT_free && kind != SPLIT_sum && space_split(&s, d)) return true;
  }
  return false;
}

static bool opens_any(const Rules *r, const Fn *f, bool weak) {
  for (NodeId id = 1; id < f->node.n; id++)
    if (opens(r, f, fn_node(f, id), weak)) return true;
  return false;
}

static Fn *bodies_opened(Rules *r, Fn *f, bool weak) {
  Module *m = r->m;
  Fn *to = fn_create(m, intern_printf(m->in, "%s.opened", f->name));
  ValId *now = NEW_N(m->arena, ValId, f->val.n);
  NodeId *node = NEW_N(m->arena, NodeId, f->node.n);
  ir_args(to, f, now);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    const ValId *in = ir_operands(f, n, now);
    Build b = build_like(to, f, id);
    b.fwd = node[n->fwd];
    if (opens(r, f, n, weak)) inline_body(&b, f, id, in, 0, now + n->out);
    else ir_results(n, ir_copy(&b, f, id, in), now);
    node[id] = to->node.n - 1;
  }
  for (uint32_t i = 0; i < f->ret.n; i++) ir_return(to, now[f->ret.at[i]], f->ret_name.at[i]);
  fn_replace(m, f, to);
  return to;
}

// ---- a value as it is asked for ---------------------------------------------------------------------------
static bool widens(const Walk *w, const Node *n) {
  return n->op == OP_cast && dtype_bytes(val_type(w->from, n->out)->dtype) >
                                 dtype_bytes(val_type(w->from, node_in(w->from, n)[0])->dtype);
}

// v's sums that its uses pass on
static uint8_t pending(const Walk *w, ValId v) {
  return w->now[v] ? val_type(w->to, w->now[v])->pending_axes & (uint8_t)~w->cut[v] : 0;
}

static bool free_op(const Node *n) {
  if (n->op == OP_expand || op_has(n->op, OPF_EW)) return true;
  return n->op == OP_dot && !n->attr.ndims;
}

// index and random; free ops on such (masks, angles); an expand, a wider cast of anything that is no pending sum
static bool made_when_asked(const Walk *w, const Node *n) {
  const ValId *in = node_in(w->from, n);
  if (n->op == OP_index || n->op == OP_random) return true;
  if (n->op == OP_expand || widens(w, n)) return !w->now[in[0]] || !val_type(w->to, w->now[in[0]])->pending_axes;
  bool any = false;
  for (uint32_t i = 0; i < n->nin; i++) {
    if (w->anywhere[in[i]]) any = true;
    else if (val_type(w->from, in[i])->ndim || pending(w, in[i])) return false;
  }
  return any && free_op(n);
}

static Build walk_build(const Walk *w, NodeId id) {
  Build b = build_like(w->to, w->from, id);
  b.fwd = w->node[fn_node(w->from, id)->fwd];
  return b;
}

static ValId ask(Walk *w, ValId v, Type want, NodeId user);

// the type of value v of `from`, split as t is
static Type restricted(const Walk *w, ValId v, const Type *t) {
  Type x = *val_type(w->from, v);
  for (int k = 0; k < x.ndim; k++) {
    int at = type_pos(t, x.dim[k]);
    x.split[k] = at >= 0 ? t->split[at] : 0;
  }
  return x;
}

static ValId made(Walk *w, ValId v, const Type *want) {
  NodeId id = w->from->val.at[v].def;
  const Node *n = fn_node(w->from, id);
  ValId in[3] = {0};
  for (uint32_t i = 0; i < n->nin; i++)
    in[i] = ask(w, node_in(w->from, n)[i], restricted(w, node_in(w->from, n)[i], want), id);
  Build b = walk_build(w, id);
  TypeId t = type_intern(w->m, *want);
  ValId out = ir_add_typed(&b, n->op, in, n->nin, n->attr, &t, 1, 0);
  w->to->val.at[out].name = w->from->val.at[v].name;
  if (!w->node[id]) w->node[id] = w->to->node.n - 1;
  return out;
}

static ValId resharded(Walk *w, ValId v, const Type *want, NodeId user) {
  const Type *have = val_type(w->to, w->now[v]);
  uint8_t sums = have->pending_axes & (uint8_t)~want->pending_axes;
  NodeId def = w->from->val.at[v].def;
  const Node *from = fn_node(w->from, def);
  const char *of = !def ? "an input" : from->op == OP_read ? w->m->var.at[from->attr.var].name : op_info[from->op].name;
  const char *by = user ? op_info[fn_node(w->from, user)->op].name : "the result";
  Build b = user ? walk_build(w, user) : walk_build(w, w->from->node.n - 1);
  if (sums && def) {
    Build d = build_like(w->to, w->from, def);
    b.loc = d.loc, b.path = d.path, b.layer = d.layer;
  }
  if (sums)
    b.why = intern_printf(w->m->in, "layout: partial %s of %s over %s, for %s (%s)",
                          have->pending == PENDING_max ? "maxima" : "sums", of,
                          axes_text(w->m, w->m->arena, sums, ", "), by, split_text(w->m, want));
  else
    b.why = intern_printf(w->m->in, "layout: %s wants %s of %s, which is %s", by, split_text(w->m, want), of,
                          split_text(w->m, have));
  TypeId t = type_intern(w->m, *want);
  return ir_add_typed(&b, OP_reshard, &w->now[v], 1, (Attr){0}, &t, 1, 0);
}

static ValId ask(Walk *w, ValId v, Type want, NodeId user) {
  want.pending = want.pending_axes ? PENDING_sum : PENDING_none;
  TypeId t = type_intern(w->m, want);
  if (w->now[v] && w->to->val.at[w->now[v]].type == t) return w->now[v];
  uint64_t key = hash_mix(v, t);
  const uint64_t *had = map_get(&w->have, key);
  if (had) return (ValId)*had;
  ValId out = w->now[v] ? resharded(w, v, &want, user) : made(w, v, &want);
  map_put(&w->have, key, out);
  return out;
}

// ---- one op -----------------------------------------------------------------------------------------------
// rename, split, merge: the operand as it is, but whole where its place is not the result's
static void keep(const Walk *w, const Node *n, Type *x) {
  Module *m = w->m;
  const Attr *at = &n->attr;
  for (int k = 0; k < x->ndim; k++)
    for (uint32_t i = 0; i < at->ndims; i++) {
      if (x->dim[k] != at->dims[i]) continue;
      DimId to = at->to[n->op == OP_rename ? i : 0];
      bool whole = dim_of(m, dim_of(m, to)->root)->zigzag != dim_of(m, dim_of(m, at->dims[i])->root)->zigzag;
      if (n->op == OP_merge && i) whole = true;
      if (n->op == OP_split && dim_of(m, to)->size % split_ways(m, x->split[k])) whole = true;
      if (whole) x->split[k] = 0;
    }
}

// What the rules leave free in an op of one operand stays as the operand has it.
static void keep_free(Space *s, uint8_t without, const Type *have) {
  for (uint32_t i = 0; i < s->n; i++) {
    int at = type_pos(have, s->side[i].dim);
    Split is = at < 0 || s->side[i].frozen ? 0 : have->split[at], want = s->side[i].split;
    while (want && (want & 15) == (is & 15)) want >>= 4, is >>= 4;
    for (; !want && is && !((s->used | without) >> ((is & 15) - 1) & 1); is >>= 4) {
      s->side[i].split = split_push(s->side[i].split, (is & 15u) - 1);
      s->used |= (uint8_t)(1u << ((is & 15) - 1));
    }
  }
}

// An op of a parameter's update works on the part of its rank.
static void share(const Walk *w, NodeId id, Space *s, uint8_t without) {
  const Node *n = fn_node(w->from, id);
  VarId p = 0;
  if (!w->owner) return;
  for (uint32_t i = 0; i < n->nin && !p; i++)
    if (val_type(w->from, node_in(w->from, n)[i])->ndim) p = w->owner[node_in(w->from, n)[i]];
  const Type *part = p && w->r->part[p] ? &w->m->type.at[w->r->part[p]] : 0;
  for (uint32_t i = 0; part && i < s->n; i++) {
    int k = type_pos(part, s->side[i].dim);
    if (k < 0 || s->side[i].frozen || split_mask(part->split[k]) & without) continue;
    s->side[i].split = part->split[k], s->used |= split_mask(part->split[k]);
  }
}

// A gradient is added up pending, or (zero 2) as the part of this rank: from here on both are known.
static ValId gradient(Walk *w, NodeId id, ValId pending) {
  Module *m = w->m;
  Var *grad = &m->var.at[fn_node(w->from, id)->attr.var];
  Type t = m->type.at[grad->type];
  uint8_t axes = val_type(w->to, pending)->pending_axes;
  Type part = zero_part(m, t, axes);
  w->r->part[grad->of] = type_intern(m, part);
  if (w->r->zero >= 2) t = part;
  t.pending_axes = axes;
  for (int k = 0; k < t.ndim; k++) t.pending_axes &= (uint8_t)~split_mask(t.split[k]);
  t.pending = t.pending_axes ? PENDING_sum : PENDING_none;
  grad->type = type_intern(m, t);
  Type want = *val_type(w->to, pending);
  for (int k = 0; k < want.ndim; k++) want.split[k] = t.split[type_pos(&t, want.dim[k])];
  want.pending_axes = t.pending_axes;
  return ask(w, node_in(w->from, fn_node(w->from, id))[0], want, id);
}

// The axes over which n passes its operands' sums on. delay_sums has seen to it that those are all; where
// weak rules that give way to a sum made others take effect, they may not be.
static uint8_t passed(const Walk *w, const Node *n, const Space *s) {
  uint8_t few[16], *sums = n->nin > COUNT(few) ? NEW_N(w->m->arena, uint8_t, n->nin) : few, some = 0, all = 0;
  for (uint32_t i = 0; i < n->nin; i++) some |= sums[i] = pending(w, node_in(w->from, n)[i]);
  if (!some) return 0;
  if (n->op == OP_accumulate) return w->m->var.at[n->attr.var].kind == VAR_grad ? some & (uint8_t)~s->strong : 0;
  for (uint32_t a = 0; a < w->m->axis.n; a++)
    if (some >> a & 1 && (op_keeps(n->op) || !(s->strong >> a & 1)) && sum_passes(w->from, n, sums, a))
      all |= (uint8_t)(1u << a);
  return all;
}

static Type wanted(const Walk *w, const Node *n, uint32_t i, const Space *s, uint8_t pass) {
  ValId v = node_in(w->from, n)[i];
  uint8_t kept = pending(w, v) & pass;
  Type t = *val_type(w->from, v);
  bool stays = op_keeps(n->op) && w->now[v] && val_type(w->to, w->now[v])->pending_axes == kept;
  if (stays) t = *val_type(w->to, w->now[v]);
  for (int k = 0; !stays && k < t.ndim; k++) t.split[k] = space_split(s, t.dim[k]);
  if (n->op == OP_write) {
    const Type *var = &w->m->type.at[w->m->var.at[n->attr.var].type];
    for (int k = 0; k < t.ndim; k++) t.split[k] = var->split[type_pos(var, t.dim[k])];
  }
  if (op_keeps(n->op)) keep(w, n, &t);
  t.pending_axes = kept;
  return t;
}

// what the shape rule finds, in the order and dtype of the type before, with the space's split of dims made here
static TypeId settled(const Walk *w, TypeId before, TypeId found, const Space *s, const Node *n) {
  Type t = w->m->type.at[before];
  const Type *f = &w->m->type.at[found];
  for (int k = 0; k < t.ndim; k++) {
    int at = type_pos(f, t.dim[k]);
    bool makes = n->op == OP_scatter && t.dim[k] == n->attr.dims[0];
    if (n->op == OP_expand) makes = type_pos(val_type(w->from, node_in(w->from, n)[0]), t.dim[k]) < 0;
    t.split[k] = makes ? space_split(s, t.dim[k]) : at >= 0 ? f->split[at] : 0;
  }
  t.pending = f->pending, t.pending_axes = f->pending_axes;
  return type_intern(w->m, t);
}

// The terms of a sum of scalars that are pending over the same axes are reduced as one vector; then all are
// added as they were, so that the sum has the same bits on any mesh that leaves the terms alike.
static void reduce_together(Walk *w, const ValId *term, uint32_t n, uint8_t axes, NodeId root) {
  Module *m = w->m;
  ValId *part = NEW_N(m->arena, ValId, n);
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    if (pending(w, term[i]) == axes) part[k++] = term[i];
  if (k < 2) return;
  Str name = intern_printf(m->in, "terms.%u", k);
  DimId d = dim_find(m, name);
  if (!d) d = dim_add(m, (Dim){.name = name, .extent = k, .size = k});
  ValId *in = NEW_N(m->arena, ValId, k);
  for (uint32_t i = 0; i < k; i++) in[i] = w->now[part[i]];
  Build b = walk_build(w, root);
  b.why = intern_printf(m->in, "layout: %u partial sums over %s are reduced as one vector", k,
                        axes_text(m, m->arena, axes, ", "));
  Attr at = {.ndims = 1, .dims = {d}};
  ValId all = ir_add(&b, OP_stack, in, k, at);
  Type t = *val_type(w->to, all);
  t.pending = PENDING_none, t.pending_axes = 0;
  TypeId whole = type_intern(m, t);
  all = ir_add_typed(&b, OP_reshard, &all, 1, (Attr){0}, &whole, 1, 0);
  ValId each = ir_add(&b, OP_unstack, &all, 1, at);
  for (uint32_t i = 0; i < k; i++) w->now[part[i]] = each + i;
}

static void add_scalars(Walk *w, NodeId root) {
  const Fn *f = w->from;
  VEC(ValId) term = {0};
  VEC(NodeId) add = {0};
  for (NodeId id = 1; id <= root; id++) // reads the function once per sum: there are few
    if (w->sums[id] == root) vec_push(w->m->arena, &add, id);
  for (uint32_t i = 0; i < add.n; i++)
    for (uint32_t k = 0; k < 2; k++) {
      ValId x = node_in(f, fn_node(f, add.at[i]))[k];
      NodeId def = f->val.at[x].def;
      if (!def || w->sums[def] != root) vec_push(w->m->arena, &term, x);
    }
  for (uint32_t i = 0; i < term.n; i++)
    if (pending(w, term.at[i])) reduce_together(w, term.at + i, term.n - i, pending(w, term.at[i]), root);
  for (uint32_t i = 0; i < add.n; i++) {
    const Node *n = fn_node(f, add.at[i]);
    ValId in[2];
    for (uint32_t k = 0; k < 2; k++) in[k] = ask(w, node_in(f, n)[k], *val_type(f, node_in(f, n)[k]), add.at[i]);
    Build b = walk_build(w, add.at[i]);
    w->now[n->out] = ir_copy(&b, f, add.at[i], in);
    w->node[add.at[i]] = w->to->node.n - 1;
  }
}

// What is read of a parameter that is stored in parts, as others find it: whole, as far as no rule splits it.
static ValId gathered(Walk *w, NodeId id) {
  ValId v = fn_node(w->from, id)->out;
  Build b = walk_build(w, id);
  b.why = intern_printf(w->m->in, "layout: parallel.zero = 3 stores %s in parts",
                        w->m->var.at[fn_node(w->from, id)->attr.var].name);
  TypeId t = w->to->val.at[w->now[v]].type;
  return ir_add_typed(&b, OP_reshard, &w->now[v], 1, (Attr){0}, &t, 1, 0);
}

static void step(Walk *w, NodeId id) {
  Module *m = w->m;
  const Node *n = fn_node(w->from, id);
  if (w->clash) return;
  if (made_when_asked(w, n)) {
    w->anywhere[n->out] = n->op == OP_index || n->op == OP_random;
    for (uint32_t i = 0; i < n->nin && free_op(n); i++) w->anywhere[n->out] |= w->anywhere[node_in(w->from, n)[i]];
    return;
  }
  if (w->sums[id]) {
    if (w->sums[id] == id) add_scalars(w, id);
    return;
  }
  Space s;
  DimId clash[2];
  bool weak = w->weak && n->op != OP_write && n->op != OP_accumulate;
  space_of(&s, w->from, n);
  if (!space_assign(w->r, &s, weak, 0, clash)) {
    clash_report(w->r, n->loc, "this op", clash);
    w->clash = true;
    return;
  }
  share(w, id, &s, 0);
  uint8_t without = passed(w, n, &s);
  if (without) space_assign(w->r, &s, weak, without, clash), share(w, id, &s, without);
  if (n->nin == 1 && op_has(n->op, OPF_EW) && w->now[node_in(w->from, n)[0]])
    keep_free(&s, without, val_type(w->to, w->now[node_in(w->from, n)[0]]));
  ValId few[16], *in = n->nin > COUNT(few) ? NEW_N(m->arena, ValId, n->nin) : few;
  for (uint32_t i = 0; i < n->nin; i++) in[i] = ask(w, node_in(w->from, n)[i], wanted(w, n, i, &s, without), id);
  if (n->op == OP_accumulate && m->var.at[n->attr.var].kind == VAR_grad) in[0] = gradient(w, id, in[0]);
  Build b = walk_build(w, id);
  TypeId tfew[16], *types = n->nout > COUNT(tfew) ? NEW_N(m->arena, TypeId, n->nout) : tfew;
  for (uint32_t i = 0; i < n->nout; i++) types[i] = w->from->val.at[n->out + i].type;
  ValId out = ir_add_typed(&b, n->op, in, n->nin, n->attr, types, n->nout, n->body);
  w->node[id] = w->to->node.n - 1;
  Text why;
  text_init(&why, m->arena);
  const Node *now = fn_node(w->to, w->node[id]);
  if (!shape_infer(m, w->to, now, types, &why))
    bug("layout: %s in %s (%s): %s", op_info[n->op].name, w->from->name, span_text(m->diag, m->arena, n->loc), why.s);
  for (uint32_t i = 0; i < n->nout; i++) {
    w->to->val.at[out + i].type = settled(w, w->from->val.at[n->out + i].type, types[i], &s, n);
    w->to->val.at[out + i].name = w->from->val.at[n->out + i].name;
    w->now[n->out + i] = out + i;
  }
  VarKind kind = n->op == OP_read ? m->var.at[n->attr.var].kind : VAR_scalar;
  if (w->weak && w->r->zero == 3 && (kind == VAR_param || kind == VAR_copy)) w->now[n->out] = gathered(w, id);
}

static bool function(Rules *r, Fn *f, bool weak) {
  Module *m = r->m;
  const NodeId *sums = scalar_sums(f, m->arena);
  Walk w = {.r = r, .m = m, .from = f, .weak = weak, .sums = sums, .cut = delay_sums(r, f, weak, sums, m->arena)};
  w.to = fn_like(m, f, intern_printf(m->in, "%s.layout", f->name));
  w.anywhere = NEW_N(m->arena, bool, f->val.n), w.now = NEW_N(m->arena, ValId, f->val.n);
  w.node = NEW_N(m->arena, NodeId, f->node.n);
  map_init(&w.have, m->arena);
  if (!weak && r->zero) w.owner = zero_owners(f, m->arena);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    ValId v = f->arg.at[i];
    TypeId t = 0;
    if (!type_strong(r, f->val.at[v].type, (Span){0},
                     arena_printf(m->arena, "input '%s' of %s", f->val.at[v].name, f->name), &t))
      w.clash = true;
    w.now[v] = ir_arg(w.to, t, f->val.at[v].name);
  }
  for (NodeId id = 1; id < f->node.n; id++) step(&w, id);
  for (uint32_t i = 0; i < f->ret.n && !w.clash; i++) {
    ValId v = f->ret.at[i];
    TypeId t = 0;
    if (!type_strong(r, f->val.at[v].type, (Span){0},
                     arena_printf(m->arena, "result '%s' of %s", f->ret_name.at[i], f->name), &t))
      w.clash = true;
    else ir_return(w.to, ask(&w, v, m->type.at[t], 0), f->ret_name.at[i]);
  }
  fn_replace(m, f, w.to);
  return !w.clash;
}

// Gradients get their types where they are accumulated, and other variables by these; so what reads gradients or
// writes parameters comes later.
static bool comes_late(const Module *m, const Fn *f) {
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (n->op == OP_read && m->var.at[n->attr.var].kind == VAR_grad) return true;
    if (n->op == OP_write && m->var.at[n->attr.var].kind != VAR_scalar) return true;
  }
  return false;
}

// a text may say otherwise
static bool module_whole(Module *m) {
  for (VarId v = 1; v < m->var.n; v++)
    if (!type_is_whole(&m->type.at[m->var.at[v].type]))
      return diag_error(m->diag, m->var.at[v].loc, "IR05", "'%s' is laid out already", m->var.at[v].name),
             false;
  for (FnId i = 1; i < m->fn.n; i++)
    for (ValId v = 1; v < m->fn.at[i]->val.n; v++) {
      const Fn *f = m->fn.at[i];
      if (!type_is_whole(val_type(f, v)))
        return diag_error(m->diag, fn_node(f, f->val.at[v].def)->loc, "IR05",
                          "%%%u of %s is laid out already", v, f->name),
               false;
    }
  return true;
}

static bool has_weak(const Fn *f) { return strcmp(f->name, "update") && strcmp(f->name, "refresh"); }

// what bodies compute twice (the maximum and the sum of a softmax, forward and backward) is then one value again
static void open_bodies(Rules *r) {
  bool opened = false;
  for (FnId i = 1; i < r->m->fn.n; i++) {
    Fn *f = r->m->fn.at[i];
    while (!f->is_body && opens_any(r, f, has_weak(f))) f = bodies_opened(r, f, has_weak(f)), opened = true;
  }
  if (opened) pass_simplify(r->m);
}

bool pass_layout(Module *m) {
  Rules r;
  if (!rules_init(&r, m, true)) return false;
  if (!r.live) return true;
  if (!module_whole(m)) return false;
  orders(&r);
  open_bodies(&r);
  if (!variables(&r)) return false;
  bool ok = true;
  FnId n = m->fn.n;
  bool *last = NEW_N(m->arena, bool, n);
  for (FnId i = 1; i < n; i++) last[i] = comes_late(m, m->fn.at[i]);
  for (int late = 0; late < 2; late++) {
    if (late) zero_lay_out(&r);
    for (FnId i = 1; i < n; i++) {
      Fn *f = m->fn.at[i];
      if (!f->is_body && last[i] == late && !function(&r, f, has_weak(f))) ok = false;
    }
  }
  return ok;
}
