// verify.c -- what every module must be, between any two passes: dense ids defined before use, operands and attributes
// as the op's row says, types as its shape rule gives them, one layout per value, bodies that fit, and a line and a
// reason on every node. It reads only: what the shape rules intern goes into a copy of the type table.
#include "compiler/ir.h"
#include <string.h>

enum { BODY_DEPTH = 64 };                               // bodies in bodies; so a walk through them may recurse

static bool no(Text *why, const char *fmt, ...) PRINTF(2, 3);
static bool no(Text *why, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  text_puts(why, arena_vprintf(why->arena, fmt, args));
  va_end(args);
  return false;
}

static const char *type_text(const Module *m, const Type *t, Arena *a) {
  Module one = *m;                                      // a table with this type only
  Type two[2] = {{.dtype = DT_none}, *t};
  one.type.at = two, one.type.n = 2;
  Text s;
  text_init(&s, a);
  ir_print_type(&s, &one, 1);
  return s.s;
}

// ---- dims and types -----------------------------------------------------------------------------------------------
bool dim_check(const Module *m, DimId id, Text *why) {
  const Dim *d = dim_of(m, id);
  if (!d->name || !*d->name) return no(why, "dim %u has no name", id);
  if (d->extent < 0 || d->size < d->extent)
    return no(why, "dim %s has extent %lld and size %lld", d->name, (long long)d->extent, (long long)d->size);
  if (!d->root || d->root >= m->dim.n || dim_of(m, d->root)->root != d->root)
    return no(why, "dim %s is a role of no root", d->name);
  if (dim_of(m, d->root)->extent != d->extent)
    return no(why, "dim %s is a role of %s and has another extent", d->name, dim_of(m, d->root)->name);
  if (d->zigzag && (d->root != id || d->size % d->zigzag))
    return no(why, "dim %s: %s", d->name, d->root != id ? "zigzag is the root's" : "zigzag does not divide its size");
  if (!d->whole != !d->cut || d->whole >= id) return no(why, "dim %s is a part of no dim above it", d->name);
  if (!d->whole) return true;
  const Dim *w = dim_of(m, d->whole);
  if (w->whole || w->sample != d->sample) return no(why, "dim %s is no part of %s", d->name, w->name);
  uint8_t used = 0;
  for (Split s = d->cut; s; s >>= 4) {
    uint32_t axis = (s & 15u) - 1;
    if (axis >= m->axis.n || used >> axis & 1) return no(why, "dim %s is cut by no axes of the mesh", d->name);
    used |= (uint8_t)(1u << axis);
  }
  if (w->size % split_ways(m, d->cut) || d->size != w->size / split_ways(m, d->cut) || d->extent != d->size)
    return no(why, "dim %s is not as long as a part of %s", d->name, w->name);
  return true;
}

bool type_check(const Module *m, const Type *t, Text *why) {
  if (t->dtype <= DT_none || t->dtype >= DT_COUNT) return no(why, "the type has no dtype");
  if (t->ndim > MAX_DIMS) return no(why, "the type has %u dims, at most %d are allowed", t->ndim, MAX_DIMS);
  uint8_t used = t->pending_axes, known = (uint8_t)((1u << m->axis.n) - 1);
  if (t->pending > PENDING_max || !t->pending != !t->pending_axes || used & ~known)
    return no(why, "the type's pending axes are not those of the mesh");
  for (uint32_t i = 0; i < t->ndim; i++) {
    if (!t->dim[i] || t->dim[i] >= m->dim.n) return no(why, "the type has a dim that is none");
    if (type_pos(t, t->dim[i]) != (int)i)
      return no(why, "%s occurs twice in the type", dim_of(m, t->dim[i])->name);
    for (Split s = t->split[i]; s; s >>= 4) {
      uint32_t axis = (s & 15u) - 1;
      if (axis >= m->axis.n) return no(why, "%s is split by no axis of the mesh", dim_of(m, t->dim[i])->name);
      if (used >> axis & 1) return no(why, "the axis %s is used twice in the type", m->axis.at[axis].name);
      used |= (uint8_t)(1u << axis);
    }
    int64_t ways = split_ways(m, t->split[i]);
    if (dim_of(m, t->dim[i])->size % ways)
      return no(why, "%s has %lld entries, which %lld ranks cannot share alike", dim_of(m, t->dim[i])->name,
                (long long)dim_of(m, t->dim[i])->size, (long long)ways);
  }
  return true;
}

bool var_check(const Module *m, VarId id, Text *why) {
  const Var *v = &m->var.at[id];
  bool derived = v->kind == VAR_copy || v->kind == VAR_grad || v->kind == VAR_moment;
  if (!v->name || !*v->name) return no(why, "variable %u has no name", id);
  if (!v->type || v->type >= m->type.n) return no(why, "@%s has no type", v->name);
  if (!type_check(m, &m->type.at[v->type], why)) return no(why, ", of @%s", v->name);
  if (v->kind >= VAR_COUNT || v->init >= INIT_COUNT) return no(why, "@%s is of no kind", v->name);
  if (derived != (v->of != 0))
    return no(why, "@%s is a %s of %s", v->name, var_kind_name[v->kind], v->of ? "something" : "nothing");
  if (v->of && (v->of >= m->var.n || m->var.at[v->of].kind != VAR_param))
    return no(why, "@%s is not of a parameter", v->name);
  if (v->decay && v->kind != VAR_param) return no(why, "@%s decays and is no parameter", v->name);
  for (uint32_t i = 0; i < m->type.at[v->type].ndim && v->kind == VAR_param; i++)
    if (v->axis[i] > (i ? v->axis[i - 1] + 1 : 0) || (i && v->axis[i] < v->axis[i - 1]))
      return no(why, "@%s: the axes of its tensor do not ascend from 0", v->name);
  return true;
}

// ---- nodes --------------------------------------------------------------------------------------------------------
static bool dims_check(const Module *m, const DimId *dims, uint32_t n, Text *why) {
  if (n > MAX_DIMS) return no(why, "%u dims are named, at most %d are allowed", n, MAX_DIMS);
  for (uint32_t i = 0; i < n; i++) {
    if (!dims[i] || dims[i] >= m->dim.n) return no(why, "a dim in brackets is none");
    if (dims_have(dims, i, dims[i])) return no(why, "%s is named twice", dim_of(m, dims[i])->name);
  }
  return true;
}

static bool axes_check(const Module *m, const Fn *f, const Node *n, Text *why) {
  const Attr *at = &n->attr;
  if (!at->axes || at->axes >> m->axis.n) return no(why, "it is over no axes of the mesh");
  bool sharded = is_sharded(m) && op_info[n->op].attrs & AT_DIMS;
  uint32_t changes = n->op == OP_all_to_all ? 2 : 1;
  if (sharded && (at->ndims != changes || at->nto != changes))
    return no(why, "%u dim%s named, and what it becomes", changes, changes > 1 ? "s are" : " is");
  if (!sharded && op_info[n->op].attrs & AT_DIMS && at->ndims != 1) return no(why, "one dim is named in brackets");
  if (!sharded && at->nto != (n->op == OP_all_to_all)) return no(why, "one dim is named after the arrow");
  if (n->op == OP_all_max && !is_sharded(m)) return no(why, "it is an all_reduce before pass shard");
  const Type *t = val_type(f, node_in(f, n)[0]);
  for (uint32_t i = 0; i < t->ndim; i++)
    if (__builtin_popcount(split_mask(t->split[i])) + __builtin_popcount(at->axes) > MAX_SPLIT &&
        n->op != OP_all_gather && n->op != OP_all_reduce &&
        t->dim[i] == (n->op == OP_all_to_all ? at->to[0] : at->dims[0]))
      return no(why, "%s would be split by more than %d axes", dim_of(m, t->dim[i])->name, MAX_SPLIT);
  return true;
}

static bool attr_check(const Module *m, const Fn *f, const Node *n, Text *why) {
  const Attr *at = &n->attr;
  unsigned has = op_info[n->op].attrs;
  if (has & AT_DIMS && !dims_check(m, at->dims, at->ndims, why)) return false;
  if (has & AT_TO && !dims_check(m, at->to, at->nto, why)) return false;
  if (has & AT_VAR && (!at->var || at->var >= m->var.n)) return no(why, "it names no variable");
  if (has & AT_PATH && (!at->path || !*at->path)) return no(why, "it has no path");
  if (has & AT_AXES && !axes_check(m, f, n, why)) return false;
  if (n->op == OP_cumsum && at->at != 0 && at->at != 1) return no(why, "reverse is 0 or 1");
  for (uint32_t i = 0; has & AT_ARGS && i < at->nargs; i++)
    if (!at->args[i].name || !*at->args[i].name) return no(why, "number %u has no name", i + 1);
  if (n->op == OP_const) {
    DType t = f->val.at[n->out].type ? val_type(f, n->out)->dtype : DT_none;
    if ((dtype_is_int(t) || t == DT_bool) && dtype_round(t, at->num) != at->num)
      return no(why, "%g is no %s", at->num, dtype_name(t));
  }
  return true;
}

static bool body_check(const Module *m, const Node *n, Text *why) {
  bool composite = op_has(n->op, OPF_COMPOSITE);
  if (!composite) return !n->body || no(why, "it has a body and is no composite");
  if (!n->body || n->body >= m->fn.n) return no(why, "it has no body");
  const Fn *body = m->fn.at[n->body];
  if (!body->is_body || body->body_of != n->op)
    return no(why, "%s is no body of %s", body->name, op_info[n->op].name);
  return true;
}

bool node_infer(Module *m, const Fn *f, NodeId id, TypeId *rule, Text *why) {
  const Node *n = fn_node(f, id);
  const OpInfo *o = &op_info[n->op];
  if (o->nin >= 0 && n->nin != o->nin) return no(why, "it takes %d operands, not %u", o->nin, n->nin);
  if (o->nout >= 0 && n->nout != o->nout) return no(why, "it gives %d results, not %u", o->nout, n->nout);
  if (!attr_check(m, f, n, why) || !body_check(m, n, why)) return false;
  if (f->is_body && op_has(n->op, OPF_STATE)) return no(why, "a body reads and writes no variables");
  if (n->fwd && (n->fwd >= id || !fn_node(f, n->fwd)->nout))
    return no(why, "its forward node is no earlier one with a result");
  if (n->op == OP_unstack && (n->attr.ndims != 1 || dim_of(m, n->attr.dims[0])->extent != n->nout))
    return no(why, "%u results are not one for each entry of one dim", n->nout);
  return shape_infer(m, f, n, rule, why);
}

bool node_check(Module *m, const Fn *f, NodeId id, Text *why) {
  const Node *n = fn_node(f, id);
  TypeId few[8] = {0}, *rule = n->nout > COUNT(few) ? NEW_N(why->arena, TypeId, n->nout) : few;
  if (!node_infer(m, f, id, rule, why)) return false;
  for (uint32_t i = 0; i < n->nout; i++) {
    TypeId given = f->val.at[n->out + i].type;
    Text misfit = {.arena = why->arena};
    if (given == rule[i] || type_fits(m, n, rule[i], given, &misfit)) continue;
    return no(why, "its result is %s, the op gives %s: %s", type_text(m, &m->type.at[given], why->arena),
              type_text(m, &m->type.at[rule[i]], why->arena), misfit.s);
  }
  return true;
}

// ---- the module ---------------------------------------------------------------------------------------------------
typedef struct {
  const Module *m;
  Module scratch;                                       // *m, with a copy of the type table
  const char *after;
  Arena *temp;
  uint8_t *type_ok;                                     // of each type: 0 not looked at, 1 right, 2 not
  // of each variable: twice the last function that writes it, odd: it accumulates
  uint32_t *written;
  // of each function: 1 + the most bodies below it; 0 not looked at
  uint8_t *height;
  bool ok;
} Verify;

static bool wrong(Verify *v, Span at, const char *fmt, ...) PRINTF(3, 4);
static bool wrong(Verify *v, Span at, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const char *what = arena_vprintf(v->temp, fmt, args);
  va_end(args);
  diag_error(v->m->diag, at, "IR10", "%s%s%s%s", v->after ? "after " : "", v->after ? v->after : "",
             v->after ? ": " : "", what);
  return v->ok = false;
}

static bool wrong_node(Verify *v, const Fn *f, NodeId id, const char *what) {
  const Node *n = fn_node(f, id);
  Text t;
  text_init(&t, v->temp);
  ir_print_node(&t, f, id);
  wrong(v, n->loc, "%s, node %u, %s: %s", f->name, id, op_info[n->op].name, what);
  diag_note(v->m->diag, "%s", t.s);
  return false;
}

static bool type_right(Verify *v, TypeId id, Text *why) {
  if (!id || id >= v->m->type.n) return no(why, "a value has no type");
  if (!v->type_ok[id]) v->type_ok[id] = type_check(v->m, &v->m->type.at[id], why) ? 1 : 2;
  else if (v->type_ok[id] == 2) type_check(v->m, &v->m->type.at[id], why);
  return v->type_ok[id] == 1;
}

static bool verify_tables(Verify *v) {
  const Module *m = v->m;
  Text why;
  text_init(&why, v->temp);
  int64_t ranks = 1;
  if (m->axis.n > MAX_AXES) return wrong(v, (Span){0}, "%u mesh axes", m->axis.n);
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (m->axis.at[i].size < 1 || !mul_ok(ranks, m->axis.at[i].size, &ranks) || ranks > INT32_MAX)
      return wrong(v, (Span){0}, "mesh axis %s has size %d", m->axis.at[i].name, m->axis.at[i].size);
  for (uint32_t i = 0; i < m->rule.n; i++)
    for (uint32_t k = 0; k < m->rule.at[i].naxis; k++)
      if (m->rule.at[i].naxis > MAX_SPLIT || m->rule.at[i].axis[k] >= m->axis.n)
        return wrong(v, m->rule.at[i].loc, "the rule of %s names no axis", m->rule.at[i].dim);
  for (DimId i = 1; i < m->dim.n; i++)
    if (!dim_check(m, i, &why)) return wrong(v, (Span){0}, "%s", why.s);
  for (VarId i = 1; i < m->var.n; i++)
    if (!var_check(m, i, &why)) return wrong(v, m->var.at[i].loc, "%s", why.s);
  return true;
}

// ids: arguments first, then results, dense; operands defined before
static bool verify_ids(Verify *v, const Fn *f) {
  ValId next = 1;
  if (f->val.n < 1 || f->node.n < 1) return wrong(v, (Span){0}, "%s lacks its unused entries 0", f->name);
  for (uint32_t i = 0; i < f->arg.n; i++, next++)
    if (f->arg.at[i] != next || next >= f->val.n || f->val.at[next].def)
      return wrong(v, (Span){0}, "%s: argument %u is not value %u", f->name, i + 1, next);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (n->op <= OP_none || n->op >= OP_COUNT) return wrong(v, n->loc, "%s, node %u has no op", f->name, id);
    if (n->out != next || n->nout > f->val.n - next)
      return wrong(v, n->loc, "%s, node %u, %s: its results are not values %u, …", f->name, id, op_info[n->op].name,
                   next);
    for (uint32_t i = 0; i < n->nout; i++, next++)
      if (f->val.at[next].def != id)
        return wrong(v, n->loc, "%s: value %u is not defined by node %u", f->name, next, id);
    if (n->in > f->operand.n || n->nin > f->operand.n - n->in)
      return wrong(v, n->loc, "%s, node %u: operands past the pool", f->name, id);
    for (uint32_t i = 0; i < n->nin; i++)
      if (!node_in(f, n)[i] || node_in(f, n)[i] >= n->out)
        return wrong(v, n->loc, "%s, node %u, %s: operand %u is not defined before it", f->name, id,
                     op_info[n->op].name, i + 1);
  }
  if (next != f->val.n)
    return wrong(v, (Span){0}, "%s has %u values, %u are defined", f->name, f->val.n - 1, next - 1);
  if (f->ret_name.n != f->ret.n)
    return wrong(v, (Span){0}, "%s has %u results and %u names for them", f->name, f->ret.n, f->ret_name.n);
  for (uint32_t i = 0; i < f->ret.n; i++)
    if (!f->ret.at[i] || f->ret.at[i] >= f->val.n)
      return wrong(v, (Span){0}, "%s: result %u is no value", f->name, i + 1);
  return true;
}

static bool verify_types(Verify *v, const Fn *f) {
  Text why;
  text_init(&why, v->temp);
  for (ValId i = 1; i < f->val.n; i++) {
    if (!type_right(v, f->val.at[i].type, &why))
      return wrong(v, (Span){0}, "%s, value %u: %s", f->name, i, why.s);
    const Type *t = val_type(f, i);
    bool whole = !t->pending;
    for (uint32_t k = 0; k < t->ndim; k++) whole &= !t->split[k];
    if (f->is_body && !whole)
      return wrong(v, (Span){0}, "%s, value %u: a body's types are whole", f->name, i);
  }
  return true;
}

static bool body_height(Verify *v, FnId id, uint32_t depth) {
  const Fn *f = v->m->fn.at[id];
  if (v->height[id] == UINT8_MAX) return wrong(v, (Span){0}, "%s contains itself", f->name);
  if (v->height[id]) return true;
  uint32_t high = 0;
  if (depth > BODY_DEPTH) high = BODY_DEPTH;
  v->height[id] = UINT8_MAX;
  for (NodeId n = 1; n < f->node.n && high < BODY_DEPTH; n++) {
    FnId body = fn_node(f, n)->body;
    if (!body || body >= v->m->fn.n) continue;
    if (!body_height(v, body, depth + 1)) return false;
    high = MAX(high, v->height[body]);
  }
  if (high >= BODY_DEPTH) return wrong(v, (Span){0}, "%s: bodies nest deeper than %d", f->name, BODY_DEPTH);
  v->height[id] = (uint8_t)(high + 1);
  return true;
}

static void verify_nodes(Verify *v, const Fn *f, FnId fn) {
  Text why;
  text_init(&why, v->temp);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    VarId var = n->op == OP_write || n->op == OP_accumulate ? n->attr.var : 0;
    why.n = 0;
    if (!node_check(&v->scratch, f, id, &why)) wrong_node(v, f, id, why.s);
    else if (!n->loc.line) wrong_node(v, f, id, "it has no line");
    else if (!n->why || !*n->why) wrong_node(v, f, id, "it has no reason");
    else if (!n->path) wrong_node(v, f, id, "it has no path, not even an empty one");
    else if (var && v->written[var] >> 1 == fn && !(v->written[var] & 1 && n->op == OP_accumulate)) wrong_node(v, f, id, "the variable is written twice");
    else if (var) v->written[var] = 2 * fn + (n->op == OP_accumulate);
  }
}

static void verify_all(Verify *v) {
  const Module *m = v->m;
  if (!verify_tables(v)) return;
  for (FnId i = 1; i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    if (f->module != m || fn_find(m, f->name) != f)
      wrong(v, (Span){0}, "function %u, %s, is not found by its name", i, f->name);
    else if (f->is_body ? !op_has(f->body_of, OPF_COMPOSITE) || f->ret.n < 1 : f->body_of != OP_none)
      wrong(v, (Span){0}, "%s is no body and no function", f->name);
    else if (verify_ids(v, f)) verify_types(v, f);
  }
  for (FnId i = 1; i < m->fn.n && v->ok; i++) body_height(v, i, 0);
  for (FnId i = 1; i < m->fn.n && v->ok; i++) verify_nodes(v, m->fn.at[i], i);
}

bool ir_verify(const Module *m, const char *after) {
  Arena *temp = arena_create();
  Verify v = {.m = m, .scratch = *m, .after = after, .temp = temp, .ok = true};
  Module *c = &v.scratch;
  c->arena = temp;
  c->type.at = NEW_N(temp, Type, m->type.n), c->type.room = m->type.n;
  memcpy(c->type.at, m->type.at, m->type.n * sizeof *m->type.at);
  map_init(&c->type_by_hash, temp);
  for (uint32_t i = 0; i < m->type_by_hash.room; i++)
    if (m->type_by_hash.used[i]) map_put(&c->type_by_hash, m->type_by_hash.key[i], m->type_by_hash.val[i]);
  v.type_ok = NEW_N(temp, uint8_t, m->type.n);
  v.written = NEW_N(temp, uint32_t, m->var.n);
  v.height = NEW_N(temp, uint8_t, m->fn.n);
  verify_all(&v);
  arena_destroy(temp);
  return v.ok;
}
