// select.c -- the graph in the form that kernels and library products take.
//
// Composites are replaced by their bodies, but attention and its gradient where there is a kernel for them. A
// product that contracts nothing is an elementwise multiplication. A product whose operands or result a library
// call cannot address (no dim of stride 1 where it needs one) gets a copy of the operand, or another order of the
// result. Nothing changes what is computed.
#include "compiler/inline.h"
#include "passes/group.h"
#include "passes/pass.h"
#include <string.h>

static ValId outer(Build *b, const Type *out, ValId x, ValId y) {      // x · y without contraction
  DimId more[MAX_DIMS];
  uint32_t n = 0;
  const Type tx = *val_type(b->fn, x), ty = *val_type(b->fn, y);
  for (int i = 0; i < ty.ndim; i++)
    if (type_pos(&tx, ty.dim[i]) < 0) more[n++] = ty.dim[i];
  if (n && n < ty.ndim + 0u + tx.ndim) x = ir_dims(b, OP_expand, x, more, n);
  Type t = *val_type(b->fn, x);
  t.ndim = out->ndim;
  memcpy(t.dim, out->dim, sizeof t.dim), memcpy(t.split, out->split, sizeof t.split);
  TypeId id = type_intern(b->fn->module, t);
  ValId v = ir_add_typed(b, OP_mul, (ValId[]){x, y}, 2, (Attr){0}, &id, 1, 0);
  return ir_cast(b, v, out->dtype);
}

// x with its dims in the order: those that `other` shares, its own, the contracted ones (in one
// order for both operands)
static ValId reordered(Build *b, ValId x, const Type *other, const DimId *inner, uint32_t ninner) {
  Type t = *val_type(b->fn, x), now = t;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < t.ndim; i++)
      if (!dims_have(inner, ninner, t.dim[i]) && (type_pos(other, t.dim[i]) < 0) == pass)
        now.dim[n] = t.dim[i], now.split[n++] = t.split[i];
  for (uint32_t i = 0; i < ninner; i++) now.dim[n] = inner[i], now.split[n++] = t.split[type_pos(&t, inner[i])];
  TypeId id = type_intern(b->fn->module, now);
  Build copy = *b;
  copy.why = "select: a copy that the library product can address";
  return ir_add_typed(&copy, OP_cast, &x, 1, (Attr){0}, &id, 1, 0);
}

static ValId product(Build *b, const Node *n, const Type *given, ValId x, ValId y) {
  Module *m = b->fn->module;
  Type out = *given, tx = *val_type(b->fn, x), ty = *val_type(b->fn, y);
  if (!n->attr.ndims) return outer(b, &out, x, y);
  PlanGemm g;
  ValId base[2], in[2] = {x, y};
  int64_t at[2];
  if (!product_of(b->fn, x, y, n->attr.dims, n->attr.ndims, &out, 0, &g, base, at)) {
    in[0] = reordered(b, x, &ty, n->attr.dims, n->attr.ndims);
    in[1] = reordered(b, y, &tx, n->attr.dims, n->attr.ndims);
    if (!product_of(b->fn, in[0], in[1], n->attr.dims, n->attr.ndims, &out, 0, &g, base, at)) {
      uint32_t k = 0;
      for (int pass = 0; pass < 3; pass++)                             // the result: shared dims, x's, y's
        for (int i = 0; i < given->ndim; i++) {
          bool inx = type_pos(&tx, given->dim[i]) >= 0, iny = type_pos(&ty, given->dim[i]) >= 0;
          if ((inx && iny ? 0 : inx ? 1 : 2) == pass) out.dim[k] = given->dim[i], out.split[k++] = given->split[i];
        }
      if (!product_of(b->fn, in[0], in[1], n->attr.dims, n->attr.ndims, &out, 0, &g, base, at))
        bug("select: a product at line %u cannot be addressed", n->loc.line);
    }
  }
  TypeId type = type_intern(m, out);
  return ir_add_typed(b, OP_dot, in, 2, n->attr, &type, 1, 0);
}

// false: copy the node as it is. now: by value of f, what it is in the function that is made
typedef bool Rewrite(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out);

static bool rewrite_composite(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out) {
  (void)now;
  Tile tile;
  if (!op_has(fn_node(f, n)->op, OPF_COMPOSITE) || tile_of(0, f, n, &tile)) return false;
  inline_body(b, f, n, in, inline_always, out);
  return true;
}
static bool rewrite_product(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out) {
  (void)now;
  const Node *node = fn_node(f, n);
  if (node->op != OP_dot) return false;
  *out = product(b, node, val_type(f, node->out), in[0], in[1]);
  return true;
}

// A collective moves its operand as it lies: in the order of the result.
static bool rewrite_collective(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out) {
  const Node *node = fn_node(f, n);
  (void)now;
  if (!op_has(node->op, OPF_COLL)) return false;
  Type want = *val_type(f, node->out);
  want.dtype = val_type(b->fn, in[0])->dtype;
  for (uint32_t i = 0; i < node->attr.nto; i++) want.dim[type_pos(val_type(f, node->out), node->attr.to[i])] = node->attr.dims[i];
  TypeId id = type_intern(b->fn->module, want);
  if (id == b->fn->val.at[in[0]].type) return false;
  Build copy = *b;
  copy.why = "select: a copy in the order in which it is sent";
  ValId x = ir_add_typed(&copy, OP_cast, in, 1, (Attr){0}, &id, 1, 0);
  *out = ir_add_typed(b, node->op, &x, 1, node->attr, &f->val.at[node->out].type, 1, 0);
  return true;
}

// ---- dims in zigzag order -----------------------------------------------------------------------------------------
// What goes by the order of entries and has no way of its own to find them (a running sum, a dim taken apart or made of
// others) works on a dim that is in order; values are renamed to it and back, which moves them.
typedef struct { uint32_t n; DimId was[MAX_DIMS], is[MAX_DIMS]; } Turn;

static DimId ordered_dim(Module *m, DimId d) {
  Str name = intern_printf(m->in, "%s.ordered", dim_of(m, d)->name);
  DimId had = dim_find(m, name);
  const Dim *of = dim_of(m, d);
  return had ? had : dim_add(m, (Dim){.name = name, .extent = of->extent, .size = of->size, .sample = of->sample});
}

static void turn_add(Module *m, Turn *t, DimId *d) {
  if (!dim_zigzag(m, *d)) return;
  t->was[t->n] = *d, *d = ordered_dim(m, *d), t->is[t->n++] = *d;
}

static TypeId turned_type(Module *m, TypeId id, const Turn *t) {
  Type x = m->type.at[id];
  for (uint32_t i = 0; i < t->n; i++) {
    int at = type_pos(&x, t->was[i]);
    if (at >= 0) x.dim[at] = t->is[i];
  }
  return type_intern(m, x);
}

static ValId turned(Build *b, ValId x, const DimId *from, const DimId *to, uint32_t n, TypeId as) {
  Attr at = {.ndims = (uint8_t)n, .nto = (uint8_t)n};
  Build move = *b;
  move.why = "select: from one order of entries to another";
  memcpy(at.dims, from, n * sizeof *from), memcpy(at.to, to, n * sizeof *to);
  return ir_add_typed(&move, OP_rename, &x, 1, at, &as, 1, 0);
}

static bool turns_of(Module *m, const Node *n, Attr *at, Turn *before, Turn *after) {
  bool apart = n->op == OP_split || n->op == OP_merge;               // one dim against its parts
  DimId *one = n->op == OP_merge ? at->to : at->dims, *part = n->op == OP_merge ? at->dims : at->to;
  Turn *of_one = n->op == OP_merge ? after : before, *of_part = n->op == OP_merge ? before : after;
  uint32_t nparts = n->op == OP_merge ? at->ndims : at->nto;
  if (n->op == OP_unstack) turn_add(m, before, &at->dims[0]);
  if (n->op == OP_stack) turn_add(m, after, &at->dims[0]);
  for (uint32_t i = 0; i < at->ndims && n->op == OP_cumsum; i++) turn_add(m, before, &at->dims[i]);
  if (n->op == OP_cumsum) *after = *before;
  bool alike = apart && dim_zigzag(m, *one) == dim_zigzag(m, part[0]);
  if (apart && !alike) turn_add(m, of_one, one);
  for (uint32_t i = alike; i < nparts && apart; i++) turn_add(m, of_part, &part[i]);
  return before->n || after->n;
}

static bool rewrite_order(Build *b, const Fn *f, NodeId id, const ValId *in, const ValId *now, ValId *out) {
  const Node *n = fn_node(f, id);
  Module *m = b->fn->module;
  Attr at = n->attr;
  Turn before = {0}, after = {0};
  (void)now;
  if (!turns_of(m, n, &at, &before, &after)) return false;
  ValId x = in[0];
  if (before.n) x = turned(b, x, before.was, before.is, before.n, turned_type(m, b->fn->val.at[x].type, &before));
  TypeId *type = NEW_N(m->arena, TypeId, n->nout);
  for (uint32_t i = 0; i < n->nout; i++) type[i] = turned_type(m, f->val.at[n->out + i].type, &after);
  ValId v = ir_add_typed(b, n->op, before.n ? &x : in, n->nin, at, type, n->nout, 0);
  for (uint32_t i = 0; i < n->nout; i++)
    out[i] = after.n ? turned(b, v + i, after.is, after.was, after.n, f->val.at[n->out + i].type) : v + i;
  return true;
}

// ---- sums ---------------------------------------------------------------------------------------------------------
// The terms of a sum that nobody else uses and that is of their type; false: more than fit
enum { TERMS = 8 };
static bool terms_of(const Fn *f, const uint32_t *uses, ValId v, ValId *term, uint32_t *n) {
  const Node *d = f->val.at[v].def ? fn_node(f, f->val.at[v].def) : 0;
  const ValId *in = d ? node_in(f, d) : 0;
  TypeId t = f->val.at[v].type;
  if (d && d->op == OP_add && uses[v] == 1 && f->val.at[in[0]].type == t && f->val.at[in[1]].type == t)
    return terms_of(f, uses, in[0], term, n) && terms_of(f, uses, in[1], term, n);
  return *n < TERMS && (term[(*n)++] = v, true);
}

// A gradient that is the sum of what several products and scatters make (a tied embedding's) is added up where it is
// kept, a term at a time, and never made whole.
static bool rewrite_sum(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out) {
  const Node *node = fn_node(f, n);
  (void)in, (void)out;
  if (node->op != OP_accumulate) return false;
  NodeId sum = f->val.at[node_in(f, node)[0]].def;
  if (!sum || fn_node(f, sum)->op != OP_add) return false;
  Arena *a = arena_create();
  uint32_t *uses = fn_uses(f, a), count = 0, made = 0;
  ValId term[TERMS];
  bool apart = terms_of(f, uses, node_in(f, node)[0], term, &count) && count > 1;
  for (uint32_t i = 0; i < count; i++) {
    const Node *d = f->val.at[term[i]].def ? fn_node(f, f->val.at[term[i]].def) : 0;
    made += d && (d->op == OP_dot || d->op == OP_scatter) && uses[term[i]] == 1;
  }
  arena_destroy(a);
  if (!apart || !made) return false;
  b->why = "select: added up where it is kept, term by term";
  for (uint32_t i = 0; i < count; i++) ir_add(b, OP_accumulate, &now[term[i]], 1, node->attr);
  return true;
}

static bool rewrite_rest(Build *b, const Fn *f, NodeId n, const ValId *in, const ValId *now, ValId *out) {
  return rewrite_product(b, f, n, in, now, out) || rewrite_sum(b, f, n, in, now, out) ||
         rewrite_collective(b, f, n, in, now, out) || rewrite_order(b, f, n, in, now, out);
}

static void rewrite_fn(Module *m, Fn *f, Rewrite *rewrite) {
  Fn *s = fn_like(m, f, intern_printf(m->in, "%s:select", f->name));
  Arena *a = arena_create();
  ValId *now = NEW_N(a, ValId, f->val.n);
  NodeId *node_now = NEW_N(a, NodeId, f->node.n);
  ir_args(s, f, now);
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    const ValId *in = ir_operands(f, n, now);
    Build b = build_like(s, f, i);
    b.fwd = n->fwd ? node_now[n->fwd] : 0;
    if (!rewrite(&b, f, i, in, now, now + n->out)) ir_results(n, ir_copy(&b, f, i, in), now);
    node_now[i] = s->node.n - 1;
  }
  for (uint32_t i = 0; i < f->ret.n; i++) ir_return(s, now[f->ret.at[i]], f->ret_name.at[i]);
  fn_replace(m, f, s);
  arena_destroy(a);
}

bool pass_select(Module *m) {
  for (FnId i = 1; i < m->fn.n; i++) {
    if (m->fn.at[i]->is_body) continue;
    rewrite_fn(m, m->fn.at[i], rewrite_composite);
    rewrite_fn(m, m->fn.at[i], rewrite_rest);
  }
  return true;
}
