// inline.c -- replaces a composite by its body: the same value, with every op in the open.
//
// A body has whole types. Where an operand is split, each dim of the body that an operand has is split as it is there
// (a dim has one split throughout an op), and what follows from that, the splits of dims made inside and pending sums,
// is what the ops' shape rules say. A rule that is violated then is a bug of the caller: it had to see that the body
// can be computed on these splits (reductions over split dims leave pending sums, which few ops pass on).
#include "compiler/inline.h"
#include <string.h>

typedef struct {
  Build b;                                   // where the nodes go, and what they carry
  const Fn *body;
  ValId *map;                                // by value of the body
  uint32_t ndim; DimId dim[64]; Split split[64]; // of the operands; 0: all whole
  bool pending;                              // an operand is a pending sum
} Body;

bool inline_always(const Fn *f, NodeId n) { return op_has(fn_node(f, n)->op, OPF_COMPOSITE); }

static void split_note(Body *c, const Type *t) {
  c->pending |= t->pending != PENDING_none;
  for (int k = 0; k < t->ndim; k++) {
    if (!t->split[k]) continue;
    uint32_t i = 0;
    while (i < c->ndim && c->dim[i] != t->dim[k]) i++;
    if (i < c->ndim) continue;
    if (i == COUNT(c->dim)) bug("inline: %u split dims", i);
    c->dim[i] = t->dim[k], c->split[i] = t->split[k], c->ndim++;
  }
}

static Split split_of(const Body *c, DimId d) {
  for (uint32_t i = 0; i < c->ndim; i++)
    if (c->dim[i] == d) return c->split[i];
  return 0;
}

// The body's type with the splits of the operands, and of what the shape rule found for v.
static TypeId retype(const Body *c, TypeId body, const Type *found, bool by_operands) {
  Module *m = c->b.fn->module;
  Type t = m->type.at[body];
  for (int k = 0; k < t.ndim; k++) {
    int at = found ? type_pos(found, t.dim[k]) : -1;
    t.split[k] = at >= 0 ? found->split[at] : 0;
    if (by_operands && !t.split[k]) t.split[k] = split_of(c, t.dim[k]);
  }
  if (found) t.pending = found->pending, t.pending_axes = found->pending_axes;
  return type_intern(m, t);
}

static ValId add_split(Body *c, const Node *n, const ValId *in) {
  Fn *f = c->b.fn;
  if (op_has(n->op, OPF_COMPOSITE)) {
    TypeId few[8], *types = few;
    if (n->nout > COUNT(few)) types = NEW_N(f->module->arena, TypeId, n->nout);
    const Type *x = op_has(n->op, OPF_LINEAR) ? val_type(f, in[0]) : 0;
    for (uint32_t i = 0; i < n->nout; i++) {
      types[i] = retype(c, c->body->val.at[n->out + i].type, 0, true);
      if (!x || !x->pending) continue;
      Type pending = f->module->type.at[types[i]];
      pending.pending = x->pending, pending.pending_axes = x->pending_axes;
      types[i] = type_intern(f->module, pending);
    }
    return ir_add_typed(&c->b, n->op, in, n->nin, n->attr, types, n->nout, n->body);
  }
  // the rule leaves their splits open
  bool makes_dims = n->op == OP_index || n->op == OP_expand || n->op == OP_random;
  ValId v = ir_add(&c->b, n->op, in, n->nin, n->attr);
  for (uint32_t i = 0; i < n->nout; i++) {
    Type found = *val_type(f, v + i);
    f->val.at[v + i].type = retype(c, c->body->val.at[n->out + i].type, &found, makes_dims);
  }
  return v;
}

static ValId add_whole(Body *c, const Node *n, const ValId *in) {
  TypeId few[8], *types = few;
  if (n->nout > COUNT(few)) types = NEW_N(c->b.fn->module->arena, TypeId, n->nout);
  for (uint32_t i = 0; i < n->nout; i++) types[i] = c->body->val.at[n->out + i].type;
  return ir_add_typed(&c->b, n->op, in, n->nin, n->attr, types, n->nout, n->body);
}

static void inline_nodes(const Build *b, const Fn *body, const ValId *in, bool (*deeper)(const Fn *, NodeId),
                         ValId *out) {
  Arena *a = b->fn->module->arena;
  Body c = {.b = *b, .body = body, .map = NEW_N(a, ValId, body->val.n)};
  for (uint32_t i = 0; i < body->arg.n; i++) {
    c.map[body->arg.at[i]] = in[i];
    split_note(&c, val_type(b->fn, in[i]));
  }
  for (NodeId id = 1; id < body->node.n; id++) {
    const Node *n = fn_node(body, id);
    const ValId *mapped = ir_operands(body, n, c.map);
    ValId v = 0;
    if (deeper && op_has(n->op, OPF_COMPOSITE) && deeper(body, id)) {
      Build inner = *b;
      inner.why = intern_printf(b->fn->module->in, "inline: body of %s", op_info[n->op].name);
      inline_nodes(&inner, b->fn->module->fn.at[n->body], mapped, deeper, c.map + n->out);
    } else v = c.ndim || c.pending ? add_split(&c, n, mapped) : add_whole(&c, n, mapped);
    for (uint32_t i = 0; i < n->nout; i++) {
      if (v) c.map[n->out + i] = v + i;
      Value *named = &b->fn->val.at[c.map[n->out + i]];
      if (!named->name) named->name = body->val.at[n->out + i].name;
    }
  }
  for (uint32_t i = 0; i < body->ret.n; i++) out[i] = c.map[body->ret.at[i]];
}

void inline_body(Build *b, const Fn *from, NodeId id, const ValId *in, bool (*deeper)(const Fn *, NodeId), ValId *out) {
  const Node *n = fn_node(from, id);
  Module *m = b->fn->module;
  if (!op_has(n->op, OPF_COMPOSITE) || !n->body) bug("inline: %s in %s has no body", op_info[n->op].name, from->name);
  Build like = build_like(b->fn, from, id);
  like.fwd = b->fwd;
  like.why = intern_printf(m->in, "inline: body of %s", op_info[n->op].name);
  inline_nodes(&like, m->fn.at[n->body], in, deeper, out);
}

ValId inline_value(Build *b, const Fn *f, ValId v, ValId *map) {
  Arena *a = b->fn->module->arena;
  bool *live = NEW_N(a, bool, f->node.n);
  NodeId last = f->val.at[v].def;
  if (last) live[last] = true;
  for (NodeId id = last; id; id--)
    if (live[id])
      for (uint32_t i = 0; i < fn_node(f, id)->nin; i++) {
        ValId x = node_in(f, fn_node(f, id))[i];
        if (!map[x]) live[f->val.at[x].def] = true;
      }
  live[0] = false;
  for (NodeId id = 1; id <= last; id++) {
    const Node *n = fn_node(f, id);
    if (!live[id] || map[n->out]) continue;
    ir_results(n, ir_copy(b, f, id, ir_operands(f, n, map)), map);
  }
  return map[v];
}
