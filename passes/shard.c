// shard.c -- from the program of all ranks to the program that each of them runs: a dim that is split becomes its
// part, a dim of its own ("seq|tp", 512 of 1024 entries), and no type is split or pending any more. All ranks have
// the same program; what differs is which part they hold: the scalar "$at:seq|tp" is the number of its first entry.
//
// A part's entries keep their numbers in the whole, so index, gather, scatter and random mean what they meant. The
// padding of a dim lies with the last parts, whose entries all exist here; so where a padded dim's part is summed up,
// contracted, stored or gathered, what lies in the padding is made 0 (-inf for a maximum) before, unless it is 0.
#include "compiler/ir.h"
#include "passes/pass.h"
#include <math.h>
#include <string.h>

typedef struct {
  Module *m;
  Arena *arena;
  Map part, body;                            // (dim, split) -> its part; (body, parts of its dims) -> its copy
  const Fn *from;
  Fn *to;
  ValId *now;                                // by value of from
  NodeId *node;
  Map zero, exists;                          // (value of to, part) -> 1: 0 in the padding; part -> value: index < extent
} Shard;

// ---- dims and types -----------------------------------------------------------------------------------------------
static Split alive(const Module *m, Split s) { // without axes of one rank
  Split left = 0;
  for (; s; s >>= 4)
    if (m->axis.at[(s & 15u) - 1].size > 1) left = split_push(left, (s & 15u) - 1);
  return left;
}

static DimId part_of(Shard *p, DimId d, Split s) {
  Module *m = p->m;
  s = alive(m, s);
  if (!s) return d;
  uint64_t key = hash_mix(d, s);
  const uint64_t *had = map_get(&p->part, key);
  if (had) return (DimId)*had;
  const Dim *whole = dim_of(m, d);
  Text name;
  text_init(&name, p->arena);
  text_puts(&name, whole->name);
  for (Split k = s; k; k >>= 4) text_printf(&name, "|%s", m->axis.at[(k & 15u) - 1].name);
  int64_t n = whole->size / split_ways(m, s);
  Dim part = {.name = intern(m->in, name.s), .extent = n, .size = n, .sample = whole->sample, .ragged = whole->ragged,
              .whole = d, .cut = s};
  DimId id = dim_add(m, part);
  Type at = {.dtype = DT_i64};
  var_add(m, (Var){.name = part_first_name(m, id), .type = type_intern(m, at), .kind = VAR_scalar,
                   .why = "shard: the first entry of this rank's part"});
  map_put(&p->part, key, id);
  return id;
}

static TypeId type_here(Shard *p, TypeId id) {
  Type t = p->m->type.at[id];
  for (int i = 0; i < t.ndim; i++) t.dim[i] = part_of(p, t.dim[i], t.split[i]), t.split[i] = 0;
  t.pending = PENDING_none, t.pending_axes = 0;
  return type_intern(p->m, t);
}

static bool split_in(const Type *t, DimId d, Split *s) {
  int at = type_pos(t, d);
  if (at >= 0) *s = t->split[at];
  return at >= 0;
}

// Dim d of a node is split as in its operands, or else as in its results; results first: the other way.
static DimId dim_here(Shard *p, const Node *n, DimId d, bool results_first) {
  Split s = 0;
  for (int round = 0; round < 2; round++) {
    bool results = results_first == !round;
    for (uint32_t i = 0; i < (results ? n->nout : n->nin); i++)
      if (split_in(val_type(p->from, results ? n->out + i : node_in(p->from, n)[i]), d, &s)) return part_of(p, d, s);
  }
  return d;
}

// ---- padding ------------------------------------------------------------------------------------------------------
static bool is_padded(const Module *m, DimId d) {
  const Dim *whole = dim_of(m, dim_of(m, d)->whole);
  return dim_of(m, d)->whole && whole->size != whole->extent;
}

static uint64_t zero_key(ValId v, DimId d) { return hash_mix(hash_mix(v, 7), d); }
static bool is_zero(const Shard *p, ValId v, DimId d) {
  NodeId def = p->to->val.at[v].def;
  return (def && fn_node(p->to, def)->op == OP_const && fn_node(p->to, def)->attr.num == 0) ||
         map_get(&p->zero, zero_key(v, d));
}

static ValId exists(Shard *p, Build *b, DimId d) {
  const uint64_t *had = map_get(&p->exists, d);
  if (had) return (ValId)*had;
  Type t = {.dtype = DT_i32, .ndim = 1, .dim = {d}};
  TypeId type = type_intern(p->m, t);
  Build at = *b;
  at.why = intern_printf(p->m->in, "shard: which entries of %s exist", dim_of(p->m, d)->name), at.fwd = 0;
  ValId index = ir_add_typed(&at, OP_index, 0, 0, (Attr){.ndims = 1, .dims = {d}}, &type, 1, 0);
  ValId is = ir_binary(&at, OP_lt, index, ir_const(&at, (double)dim_of(p->m, dim_of(p->m, d)->whole)->extent, DT_i32));
  map_put(&p->exists, d, is);
  return is;
}

// v with `other` in the padding of its part d
static ValId masked(Shard *p, Build *b, ValId v, DimId d, double other) {
  const Type *t = val_type(p->to, v);
  if (type_pos(t, d) < 0 || !is_padded(p->m, d) || (other == 0 && is_zero(p, v, d))) return v;
  ValId is = exists(p, b, d);
  Build at = *b;
  at.why = intern_printf(p->m->in, "shard: the padding of %s", dim_of(p->m, d)->name);
  t = val_type(p->to, v);
  ValId none = ir_const(&at, t->dtype == DT_bool ? 0 : other, t->dtype);
  TypeId type = p->to->val.at[v].type;
  ValId r = ir_add_typed(&at, OP_select, (ValId[]){is, v, none}, 3, (Attr){0}, &type, 1, 0);
  if (other == 0) map_put(&p->zero, zero_key(r, d), 1);
  return r;
}

static ValId masked_all(Shard *p, Build *b, ValId v) {
  const Type t = *val_type(p->to, v);
  for (int i = 0; i < t.ndim; i++) v = masked(p, b, v, t.dim[i], 0);
  return v;
}

static double least(DType t) { return t == DT_i32 ? -0x1p31 : t == DT_i64 ? -0x1p63 : -INFINITY; }

// What a node wants of the padding of its operands.
static void mask_operands(Shard *p, Build *b, const Node *n, ValId *in) {
  const Attr *at = &n->attr;
  switch (n->op) {
  case OP_sum: case OP_reduce_max: case OP_cumsum: case OP_dot: case OP_unslice:
    for (uint32_t i = 0; i < at->ndims; i++)
      for (uint32_t k = 0; k < n->nin; k++)
        in[k] = masked(p, b, in[k], dim_here(p, n, at->dims[i], false), n->op == OP_reduce_max ? least(val_type(p->to, in[k])->dtype) : 0);
    break;
  case OP_scatter: {                         // what it adds up: all dims of the indexes
    const Type *index = val_type(p->from, node_in(p->from, n)[1]);
    for (int i = 0; i < index->ndim; i++)
      in[0] = masked(p, b, in[0], part_of(p, index->dim[i], index->split[i]), 0);
    break;
  }
  case OP_write: case OP_accumulate: case OP_all_reduce: case OP_reduce_scatter: case OP_all_gather:
  case OP_all_to_all: case OP_take_shard:
    in[0] = masked_all(p, b, in[0]);
    break;
  default:
    if (op_has(n->op, OPF_COMPOSITE))
      for (uint32_t k = 0; k < n->nin; k++) in[k] = masked_all(p, b, in[k]);
  }
}

// Whether a result is 0 in the padding of its part d, from what its operands are there.
static bool stays_zero(const Shard *p, const Node *n, const ValId *in, DimId d) {
  bool any = false, all = true;
  for (uint32_t k = 0; k < n->nin; k++) {
    bool has = type_pos(val_type(p->to, in[k]), d) >= 0, zero = is_zero(p, in[k], d);
    if (n->op == OP_select && !k) continue;
    any |= has && zero, all &= zero;
  }
  switch (n->op) {
  case OP_read: case OP_all_reduce: case OP_all_max: case OP_reduce_scatter: case OP_all_gather: case OP_all_to_all:
    return true;
  case OP_take_shard: return d != n->attr.to[0]; // what is made here and never stored may be anything in its padding
  case OP_dot: case OP_mul: return any;
  case OP_div: return is_zero(p, in[0], d);
  case OP_gather: return type_pos(val_type(p->to, in[0]), d) >= 0 && is_zero(p, in[0], d);
  case OP_add: case OP_sub: case OP_neg: case OP_cast: case OP_select: case OP_sum: case OP_detach: case OP_abs:
  case OP_sqrt: case OP_tanh: case OP_sin: case OP_erf: case OP_expand: case OP_rename: case OP_unstack:
  case OP_stack: case OP_cumsum: return n->nin && all;
  default: return false;
  }
}

// ---- nodes --------------------------------------------------------------------------------------------------------
static Fn *function(Shard *p, const Fn *f, Str name, const Type *split);

// A composite's body with the parts that this node's dims are cut into.
static FnId body_here(Shard *p, const Node *n) {
  Module *m = p->m;
  const Fn *body = m->fn.at[n->body];
  Type cut = {.dtype = DT_bool};             // the dims that are split, and how
  uint64_t key = hash_mix(n->body, 3);
  for (uint32_t i = 0; i < (uint32_t)n->nin + n->nout; i++) {
    const Type *t = val_type(p->from, i < n->nin ? node_in(p->from, n)[i] : n->out + i - n->nin);
    for (int k = 0; k < t->ndim; k++) {
      if (!alive(m, t->split[k]) || type_pos(&cut, t->dim[k]) >= 0 || cut.ndim == MAX_DIMS) continue;
      cut.dim[cut.ndim] = t->dim[k], cut.split[cut.ndim++] = t->split[k];
      key = hash_mix(key, hash_mix(t->dim[k], t->split[k]));
    }
  }
  if (!cut.ndim) return n->body;
  const uint64_t *had = map_get(&p->body, key);
  if (had) return (FnId)*had;
  Shard inner = *p;
  Fn *made = function(&inner, body, intern_printf(m->in, "%s.part%llx", body->name, (unsigned long long)key), &cut);
  made->is_body = true, made->body_of = body->body_of;
  p->part = inner.part, p->body = inner.body;
  map_put(&p->body, key, fn_id(made));
  return fn_id(made);
}

static void convert(Shard *p, NodeId id) {
  const Node *n = fn_node(p->from, id);
  Build b = build_like(p->to, p->from, id);
  b.fwd = p->node[n->fwd];
  ValId *in = ir_operands(p->from, n, p->now);
  Attr at = n->attr;
  bool moves = op_has(n->op, OPF_COLL) || n->op == OP_take_shard;
  mask_operands(p, &b, n, in);
  for (uint32_t i = 0; i < at.ndims; i++) at.dims[i] = dim_here(p, n, n->attr.dims[i], false);
  for (uint32_t i = 0; i < at.nto; i++) at.to[i] = dim_here(p, n, n->attr.to[i], true);
  Op op = n->op;
  if (op == OP_all_reduce && val_type(p->from, node_in(p->from, n)[0])->pending == PENDING_max) op = OP_all_max;
  if (moves && at.ndims) {
    DimId to[2] = {n->attr.dims[0], n->attr.to[0]};
    uint32_t k = op == OP_all_to_all ? 2 : 1;
    at.ndims = at.nto = (uint8_t)k;
    for (uint32_t i = 0; i < k; i++)
      at.dims[i] = dim_here(p, n, to[i], false), at.to[i] = dim_here(p, n, to[i], true);
  }
  TypeId *type = NEW_N(p->arena, TypeId, n->nout + 1);
  for (uint32_t i = 0; i < n->nout; i++) type[i] = type_here(p, p->from->val.at[n->out + i].type);
  FnId body = n->body ? body_here(p, n) : 0;
  ValId v = n->nout ? ir_add_typed(&b, op, in, n->nin, at, type, n->nout, body) : ir_add(&b, op, in, n->nin, at);
  ir_results(n, v, p->now);
  p->node[id] = p->to->node.n - 1;
  for (uint32_t i = 0; i < n->nout; i++) {
    if (p->from->val.at[n->out + i].name) p->to->val.at[v + i].name = p->from->val.at[n->out + i].name;
    const Type t = *val_type(p->to, v + i);
    for (int k = 0; k < t.ndim; k++)
      if (is_padded(p->m, t.dim[k]) && stays_zero(p, fn_node(p->to, p->node[id]), in, t.dim[k]))
        map_put(&p->zero, zero_key(v + i, t.dim[k]), 1);
  }
}

// f as a new function, the youngest. split: of a body, whose types are whole: how its dims are split.
static Fn *function(Shard *p, const Fn *f, Str name, const Type *split) {
  Module *m = p->m;
  Fn given = *f;                             // the same with types that say how they are split
  if (split) {
    VEC(Value) val = {0};
    for (uint32_t v = 0; v < f->val.n; v++) {
      Value x = f->val.at[v];
      Type t = m->type.at[x.type];
      for (int k = 0; v && k < t.ndim; k++) split_in(split, t.dim[k], &t.split[k]);
      if (v) x.type = type_intern(m, t);
      vec_push(p->arena, &val, x);
    }
    given.val.at = val.at;
  }
  p->from = &given;
  for (NodeId id = 1; id < f->node.n; id++)  // bodies first: a function that takes another's place is the youngest
    if (fn_node(f, id)->body) body_here(p, fn_node(f, id));
  Fn *to = p->to = fn_create(m, name);
  p->now = NEW_N(p->arena, ValId, f->val.n), p->node = NEW_N(p->arena, NodeId, f->node.n);
  map_init(&p->zero, p->arena), map_init(&p->exists, p->arena);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    ValId a = f->arg.at[i];
    p->now[a] = ir_arg(to, type_here(p, given.val.at[a].type), f->val.at[a].name);
  }
  for (NodeId id = 1; id < f->node.n; id++) convert(p, id);
  for (uint32_t i = 0; i < f->ret.n; i++) {
    ValId v = p->now[f->ret.at[i]];
    if (!f->is_body) {
      Build b = build_like(to, to, to->node.n - 1);
      v = masked_all(p, &b, v);
    }
    ir_return(to, v, f->ret_name.at[i]);
  }
  return to;
}

bool pass_shard(Module *m) {
  int64_t ranks = 1;
  for (uint32_t i = 0; i < m->axis.n; i++) ranks *= m->axis.at[i].size;
  if (ranks == 1) return true;
  Arena *arena = arena_create();
  Shard shard = {.m = m, .arena = arena}, *p = &shard;
  map_init(&p->part, arena), map_init(&p->body, arena);
  FnId n = m->fn.n;
  for (VarId v = 1, nvar = m->var.n; v < nvar; v++) {
    TypeId type = type_here(p, m->var.at[v].type);
    m->var.at[v].partial = m->type.at[m->var.at[v].type].pending_axes;
    m->var.at[v].type = type;
  }
  for (FnId i = 1; i < n; i++) {
    Fn *f = m->fn.at[i];
    if (!f->is_body) fn_replace(m, f, function(p, f, intern_printf(m->in, "%s:shard", f->name), 0));
  }
  arena_destroy(arena);
  return true;
}
