// ir.c -- the graph's tables and its builder.
#include "compiler/ir.h"
#include <string.h>

enum { EW = OPF_EW, LINEAR = OPF_LINEAR, VIEW = OPF_VIEW, STATE = OPF_STATE, RANDOM = OPF_RANDOM, COLL = OPF_COLL,
       COMPOSITE = OPF_COMPOSITE, CHEAP = OPF_CHEAP };
enum { NONE = AT_NONE, NUM = AT_NUM, AT = AT_AT, VAR = AT_VAR, PATH = AT_PATH, DIMS = AT_DIMS, TO = AT_TO,
       AXES = AT_AXES, ARGS = AT_ARGS };

// SPLIT(free, frozen) -> the count and the words with their prefix
#define SP_1(a) 1, {SPLIT_##a}
#define SP_2(a, b) 2, {SPLIT_##a, SPLIT_##b}
#define SP_3(a, b, c) 3, {SPLIT_##a, SPLIT_##b, SPLIT_##c}
#define SP_PICK(a, b, c, f, ...) f
#define SPLIT(...) SP_PICK(__VA_ARGS__, SP_3, SP_2, SP_1, 0)(__VA_ARGS__)

const OpInfo op_info[OP_COUNT] = {
  [OP_none] = {.name = "none"},
#define OP(name, in, out, flags, attrs, shape, vjp, split, kernel) \
  [OP_##name] = {#name, in, out, flags, attrs, split, KC_##kernel},
#include "compiler/ops.def"
#undef OP
};

#define X(kind) #kind,
const char *const var_kind_name[VAR_COUNT] = {VAR_KINDS(X)};
const char *const init_kind_name[INIT_COUNT] = {INIT_KINDS(X)};
#undef X

Op op_find(const char *name) {
  for (Op o = OP_none + 1; o < OP_COUNT; o++)
    if (!strcmp(op_info[o].name, name)) return o;
  return OP_none;
}

SplitKind op_split(Op op, uint32_t i) {
  const OpInfo *o = &op_info[op];
  return o->split[MIN(i, (uint32_t)o->nsplit - 1)];
}

// ---- module -------------------------------------------------------------------------------------------------------
Module *module_create(Arena *a, Intern *in, Diag *d) {
  Module *m = NEW(a, Module);
  m->arena = a, m->in = in, m->diag = d;
  vec_push(a, &m->dim, (Dim){.name = ""});
  vec_push(a, &m->type, (Type){.dtype = DT_none});
  vec_push(a, &m->var, (Var){.name = ""});
  vec_push(a, &m->fn, (Fn *)0);
  map_init(&m->dim_by_name, a), map_init(&m->var_by_name, a), map_init(&m->fn_by_name, a),
      map_init(&m->type_by_hash, a);
  return m;
}

static uint32_t find(const Map *by_name, Str name) {
  const uint64_t *id = map_get(by_name, key_of(name));
  return id ? (uint32_t)*id : 0;
}

DimId dim_find(const Module *m, Str name) { return find(&m->dim_by_name, name); }
Storage var_storage(const Module *m, const Var *param) {
  const Type *t = &m->type.at[param->type];
  Storage s = {.name = param->name, .dtype = t->dtype, .ndim = t->ndim};
  for (int i = 0; i < t->ndim; i++) {
    const Dim *d = dim_of(m, t->dim[i]);
    s.dim[i] = (StorageDim){.name = d->name, .extent = d->extent, .size = d->extent, .axis = param->axis[i]};
  }
  return s;
}

VarId var_find(const Module *m, Str name) { return find(&m->var_by_name, name); }

const Output *output_find(const Module *m, Str name) {
  for (uint32_t i = 0; i < m->output.n; i++)
    if (m->output.at[i].name == name) return &m->output.at[i];
  return 0;
}

DimId dim_add(Module *m, Dim d) {
  if (dim_find(m, d.name)) bug("dim %s is added twice", d.name);
  DimId id = m->dim.n;
  if (!d.root) d.root = id;
  vec_push(m->arena, &m->dim, d);
  map_put(&m->dim_by_name, key_of(d.name), id);
  return id;
}

Str part_first_name(const Module *m, DimId part) { return intern_printf(m->in, "$at:%s", dim_of(m, part)->name); }
VarId part_first(const Module *m, DimId d) { return dim_of(m, d)->whole ? var_find(m, part_first_name(m, d)) : 0; }

bool is_sharded(const Module *m) {
  for (DimId d = 1; d < m->dim.n; d++)
    if (m->dim.at[d].whole) return true;
  return false;
}

VarId var_add(Module *m, Var v) {
  if (var_find(m, v.name)) bug("variable %s is added twice", v.name);
  vec_push(m->arena, &m->var, v);
  map_put(&m->var_by_name, key_of(v.name), m->var.n - 1);
  return m->var.n - 1;
}

int axis_find(const Module *m, Str name) {
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (m->axis.at[i].name == name) return (int)i;
  return -1;
}

// ---- types --------------------------------------------------------------------------------------------------------
static bool type_same(const Type *a, const Type *b) {
  return a->dtype == b->dtype && a->ndim == b->ndim && a->pending == b->pending && a->pending_axes == b->pending_axes &&
         !memcmp(a->dim, b->dim, a->ndim * sizeof *a->dim) && !memcmp(a->split, b->split, a->ndim * sizeof *a->split);
}

TypeId type_intern(Module *m, Type t) {
  if (t.ndim > MAX_DIMS) bug("a type with %d dims", t.ndim);
  if (!t.pending_axes) t.pending = PENDING_none;
  for (uint32_t i = t.ndim; i < MAX_DIMS; i++) t.dim[i] = 0, t.split[i] = 0;
  uint64_t h = hash_mix(t.dtype + 32u * t.ndim, t.pending + 8u * t.pending_axes);
  h = hash_mix(h, hash_bytes(t.dim, sizeof t.dim, hash_bytes(t.split, sizeof t.split, 0)));
  for (;; h++) {                                        // collisions probe on
    const uint64_t *id = map_get(&m->type_by_hash, h);
    if (!id) break;
    if (type_same(&m->type.at[*id], &t)) return (TypeId)*id;
  }
  vec_push(m->arena, &m->type, t);
  map_put(&m->type_by_hash, h, m->type.n - 1);
  return m->type.n - 1;
}

TypeId type_make(Module *m, DType dtype, const DimId *dims, uint32_t n) {
  Type t = {.dtype = dtype, .ndim = (uint8_t)n};
  if (n > MAX_DIMS) bug("a type with %u dims", n);
  for (uint32_t i = 0; i < n; i++) t.dim[i] = dims[i];
  return type_intern(m, t);
}

int type_pos(const Type *t, DimId d) {
  for (int i = 0; i < t->ndim; i++)
    if (t->dim[i] == d) return i;
  return -1;
}

bool dims_have(const DimId *dims, uint32_t n, DimId d) {
  for (uint32_t i = 0; i < n; i++)
    if (dims[i] == d) return true;
  return false;
}

bool type_is_whole(const Type *t) {
  for (int i = 0; i < t->ndim; i++)
    if (t->split[i]) return false;
  return !t->pending;
}

uint8_t type_axes(const Type *t) {
  uint8_t axes = t->pending_axes;
  for (int i = 0; i < t->ndim; i++) axes |= split_mask(t->split[i]);
  return axes;
}

double attr_arg(const Attr *at, const char *name, double otherwise) {
  for (uint32_t i = 0; i < at->nargs; i++)
    if (!strcmp(at->args[i].name, name)) return at->args[i].num;
  return otherwise;
}

bool type_is_float(const Type *t) { return dtype_is_float(t->dtype); }

int64_t split_ways(const Module *m, Split s) {
  int64_t n = 1;
  for (; s; s >>= 4) n *= m->axis.at[(s & 15) - 1].size;
  return n;
}
int64_t axes_ways(const Module *m, uint8_t axes) {
  int64_t n = 1;
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (axes >> i & 1) n *= m->axis.at[i].size;
  return n;
}
const char *axes_text(const Module *m, Arena *a, uint8_t axes, const char *between) {
  Text t;
  text_init(&t, a);
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (axes >> i & 1) text_printf(&t, "%s%s", t.n ? between : "", m->axis.at[i].name);
  return t.s;
}

uint8_t split_mask(Split s) {
  uint8_t mask = 0;
  for (; s; s >>= 4) mask |= (uint8_t)(1u << ((s & 15) - 1));
  return mask;
}

Split split_push(Split s, uint32_t axis) {
  uint32_t at = 0;
  while (at < 4 * MAX_SPLIT && s >> at) at += 4;
  if (at == 4 * MAX_SPLIT) bug("a dim is split by more than %d axes", MAX_SPLIT);
  return (Split)(s | (axis + 1) << at);
}

int64_t type_local(const Module *m, const Type *t, uint32_t i) {
  return dim_of(m, t->dim[i])->size / split_ways(m, t->split[i]);
}

int64_t type_count(const Module *m, const Type *t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t->ndim; i++)
    if (!mul_ok(n, type_local(m, t, i), &n) || n > (int64_t)1 << 62) return -1;
  return n;
}

int64_t type_bytes(const Module *m, const Type *t) {
  int64_t n = type_count(m, t);
  return n < 0 || !mul_ok(n, (int64_t)dtype_bytes(t->dtype), &n) || n > (int64_t)1 << 62 ? -1 : n;
}

// ---- functions ----------------------------------------------------------------------------------------------------
void fn_reserve(Fn *f, const Fn *like) {
  Arena *a = f->module->arena;
  vec_reserve(a, &f->node, like->node.n + like->node.n / 8 + 1);
  vec_reserve(a, &f->val, like->val.n + like->val.n / 8 + 1);
  vec_reserve(a, &f->operand, like->operand.n + like->operand.n / 8 + 1);
  if (!f->node.n) vec_push(a, &f->node, (Node){.op = OP_none});
  if (!f->val.n) vec_push(a, &f->val, (Value){.type = 0});
}

Fn *fn_like(Module *m, const Fn *f, Str name) {
  if (fn_find(m, name)) bug("function %s is added twice", name);
  Fn *s = NEW(m->arena, Fn);
  s->module = m, s->name = name;
  fn_reserve(s, f);
  vec_push(m->arena, &m->fn, s);
  map_put(&m->fn_by_name, key_of(name), m->fn.n - 1);
  return s;
}

Fn *fn_create(Module *m, Str name) { return fn_like(m, &(Fn){0}, name); }

Fn *fn_find(const Module *m, Str name) { return m->fn.at[find(&m->fn_by_name, name)]; }

uint32_t *fn_uses(const Fn *f, Arena *a) {
  uint32_t *uses = NEW_N(a, uint32_t, f->val.n);
  for (NodeId i = 1; i < f->node.n; i++)
    for (uint32_t k = 0; k < fn_node(f, i)->nin; k++) uses[node_in(f, fn_node(f, i))[k]]++;
  for (uint32_t i = 0; i < f->ret.n; i++) uses[f->ret.at[i]]++;
  return uses;
}
uint32_t *fn_touches(const Fn *f, Arena *a) {
  uint32_t *n = NEW_N(a, uint32_t, f->module->var.n);
  for (NodeId i = 1; i < f->node.n; i++)
    if (op_has(fn_node(f, i)->op, OPF_STATE)) n[fn_node(f, i)->attr.var]++;
  return n;
}
VarId fn_read_of(const Fn *f, ValId v) {
  NodeId def = f->val.at[v].def;
  return def && fn_node(f, def)->op == OP_read ? fn_node(f, def)->attr.var : 0;
}

FnId fn_id(const Fn *f) { return find(&f->module->fn_by_name, f->name); }

void fn_replace(Module *m, Fn *was, Fn *now) {
  FnId id = fn_id(was), from = fn_id(now);
  if (from != m->fn.n - 1) bug("function %s is not the youngest", now->name);
  map_put(&m->fn_by_name, key_of(now->name), 0);
  m->fn.n--;
  now->name = was->name, now->is_body = was->is_body, now->body_of = was->body_of;
  m->fn.at[id] = now;
}

// ---- building -----------------------------------------------------------------------------------------------------
ValId ir_arg(Fn *f, TypeId t, Str name) {
  if (f->node.n > 1) bug("function %s: an argument after the first node", f->name);
  vec_push(f->module->arena, &f->val, (Value){.type = t, .name = name});
  vec_push(f->module->arena, &f->arg, f->val.n - 1);
  return f->val.n - 1;
}

void ir_return(Fn *f, ValId v, Str name) {
  vec_push(f->module->arena, &f->ret, v);
  vec_push(f->module->arena, &f->ret_name, name ? name : "");
}

static Node node_make(const Build *b, Op op, const ValId *in, uint32_t nin, Attr at, FnId body) {
  Fn *f = b->fn;
  Arena *a = f->module->arena;
  if (op_info[op].nin >= 0 && (uint32_t)op_info[op].nin != nin)
    bug("%s takes %d operands, got %u", op_info[op].name, op_info[op].nin, nin);
  Node n = {.op = op, .nin = (uint16_t)nin, .in = f->operand.n, .out = f->val.n, .attr = at, .body = body,
            .loc = b->loc, .fwd = b->fwd, .why = b->why, .path = b->path ? b->path : "", .layer = b->layer};
  for (uint32_t i = 0; i < nin; i++) {
    ValId v = in[i];                                    // in[] may lie in the pool that grows
    if (!v || v >= f->val.n) bug("%s in %s: operand %u is no value", op_info[op].name, f->name, i);
    if (f->operand.n && f->operand.n == f->operand.room && in >= f->operand.at && in < f->operand.at + f->operand.n) {
      ValId *copy = NEW_N(a, ValId, nin);
      memcpy(copy, in, nin * sizeof *in);
      in = copy;
    }
    vec_push(a, &f->operand, v);
  }
  return n;
}

static ValId node_push(Build *b, Node n, const TypeId *types, uint32_t nout) {
  Fn *f = b->fn;
  Arena *a = f->module->arena;
  n.nout = (uint16_t)nout;
  vec_push(a, &f->node, n);
  for (uint32_t i = 0; i < nout; i++) vec_push(a, &f->val, (Value){.type = types[i], .def = f->node.n - 1});
  return nout ? n.out : 0;
}

static uint32_t results(const Module *m, Op op, const Attr *at) {
  if (op_info[op].nout >= 0) return (uint32_t)op_info[op].nout;
  int64_t n = dim_of(m, at->dims[0])->extent;           // unstack
  if (n < 0 || n > UINT16_MAX) bug("%s gives %lld results", op_info[op].name, (long long)n);
  return (uint32_t)n;
}

ValId ir_add_typed(Build *b, Op op, const ValId *in, uint32_t nin, Attr at, const TypeId *types, uint32_t nout,
                   FnId body) {
  return node_push(b, node_make(b, op, in, nin, at, body), types, nout);
}

static ValId add_inferred(Build *b, Op op, const ValId *in, uint32_t nin, Attr at, FnId body) {
  Module *m = b->fn->module;
  Node n = node_make(b, op, in, nin, at, body);
  TypeId few[8], *types = few;
  uint32_t nout = results(m, op, &at);
  if (nout > COUNT(few)) types = NEW_N(m->arena, TypeId, nout);
  n.nout = (uint16_t)nout;
  Text why;
  text_init(&why, m->arena);
  if (!shape_infer(m, b->fn, &n, types, &why))
    bug("%s in %s (%s, %s): %s", op_info[op].name, b->fn->name, span_text(m->diag, m->arena, b->loc),
        b->why ? b->why : "", why.s);
  return node_push(b, n, types, nout);
}

ValId ir_add(Build *b, Op op, const ValId *in, uint32_t nin, Attr at) { return add_inferred(b, op, in, nin, at, 0); }

Build build_like(Fn *f, const Fn *from, NodeId id) {
  const Node *n = fn_node(from, id);
  return (Build){.fn = f, .loc = n->loc, .why = n->why, .path = n->path, .layer = n->layer};
}

ValId ir_copy(Build *b, const Fn *from, NodeId id, const ValId *in) {
  Node n = *fn_node(from, id);
  TypeId few[8], *types = few;
  if (n.nout > COUNT(few)) types = NEW_N(b->fn->module->arena, TypeId, n.nout);
  for (uint32_t i = 0; i < n.nout; i++) types[i] = from->val.at[n.out + i].type;
  Build like = build_like(b->fn, from, id);
  like.fwd = b->fwd;
  ValId v = ir_add_typed(&like, n.op, in, n.nin, n.attr, types, n.nout, n.body);
  for (uint32_t i = 0; i < n.nout; i++) b->fn->val.at[v + i].name = from->val.at[n.out + i].name;
  return v;
}

void ir_args(Fn *f, const Fn *from, ValId *map) {
  for (uint32_t i = 0; i < from->arg.n; i++) {
    ValId v = from->arg.at[i];
    map[v] = ir_arg(f, from->val.at[v].type, from->val.at[v].name);
  }
}

ValId *ir_operands(const Fn *from, const Node *n, const ValId *map) {
  ValId *in = NEW_N(from->module->arena, ValId, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) in[i] = map[node_in(from, n)[i]];
  return in;
}

void ir_results(const Node *n, ValId first, ValId *map) {
  for (uint32_t i = 0; i < n->nout; i++) map[n->out + i] = first + i;
}

ValId ir_const(Build *b, double num, DType dtype) {
  TypeId t = type_make(b->fn->module, dtype, 0, 0);
  return ir_add_typed(b, OP_const, 0, 0, (Attr){.num = num}, &t, 1, 0);
}

ValId ir_unary(Build *b, Op op, ValId a) { return ir_add(b, op, &a, 1, (Attr){0}); }
ValId ir_binary(Build *b, Op op, ValId x, ValId y) { return ir_add(b, op, (ValId[]){x, y}, 2, (Attr){0}); }
ValId ir_select(Build *b, ValId c, ValId x, ValId y) { return ir_add(b, OP_select, (ValId[]){c, x, y}, 3, (Attr){0}); }

ValId ir_cast(Build *b, ValId a, DType dtype) {
  Type t = *val_type(b->fn, a);
  if (t.dtype == dtype) return a;
  t.dtype = dtype;
  TypeId id = type_intern(b->fn->module, t);
  return ir_add_typed(b, OP_cast, &a, 1, (Attr){0}, &id, 1, 0);
}

ValId ir_read_var(Build *b, VarId v) { return ir_add(b, OP_read, 0, 0, (Attr){.var = v}); }
void  ir_write_var(Build *b, VarId v, ValId x) { ir_add(b, OP_write, &x, 1, (Attr){.var = v}); }

ValId ir_dims(Build *b, Op op, ValId a, const DimId *dims, uint32_t n) {
  Attr at = {.ndims = (uint8_t)n};
  if (!n) return a;
  if (n > MAX_DIMS) bug("%s of %u dims", op_info[op].name, n);
  memcpy(at.dims, dims, n * sizeof *dims);
  return ir_add(b, op, &a, 1, at);
}

ValId ir_dot(Build *b, ValId x, ValId y, const DimId *dims, uint32_t n) {
  Attr at = {.ndims = (uint8_t)n};
  if (n > MAX_DIMS) bug("a product over %u dims", n);
  if (n) memcpy(at.dims, dims, n * sizeof *dims);
  return ir_add(b, OP_dot, (ValId[]){x, y}, 2, at);
}

void fn_remove(Module *m, Fn *f) {
  FnId gone = fn_id(f);
  map_put(&m->fn_by_name, key_of(f->name), 0);
  memmove(m->fn.at + gone, m->fn.at + gone + 1, (m->fn.n - gone - 1) * sizeof *m->fn.at);
  m->fn.n--;
  for (FnId i = gone; i < m->fn.n; i++) map_put(&m->fn_by_name, key_of(m->fn.at[i]->name), i);
  for (FnId i = 1; i < m->fn.n; i++)
    for (NodeId n = 1; n < m->fn.at[i]->node.n; n++) {
      Node *node = &m->fn.at[i]->node.at[n];
      if (node->body == gone) bug("function %s is removed while %s uses it", f->name, m->fn.at[i]->name);
      if (node->body > gone) node->body--;
    }
}

Fn *fn_slice(Module *m, const Fn *f, const ValId *vals, uint32_t n, Str name, ValId *got) {
  bool *need = NEW_N(m->arena, bool, f->val.n);
  ValId *now = NEW_N(m->arena, ValId, f->val.n);
  for (uint32_t i = 0; i < n; i++) need[vals[i]] = true;
  for (NodeId i = f->node.n; i-- > 1;) {
    const Node *node = fn_node(f, i);
    bool any = false;
    for (uint32_t k = 0; k < node->nout; k++) any |= need[node->out + k];
    for (uint32_t k = 0; any && k < node->nin; k++) need[node_in(f, node)[k]] = true;
  }
  Fn *s = fn_create(m, name);
  for (uint32_t i = 0; i < f->arg.n; i++)
    if (need[f->arg.at[i]]) now[f->arg.at[i]] = ir_arg(s, f->val.at[f->arg.at[i]].type, f->val.at[f->arg.at[i]].name);
  NodeId *node_now = NEW_N(m->arena, NodeId, f->node.n);
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *node = fn_node(f, i);
    bool any = false;
    for (uint32_t k = 0; k < node->nout; k++) any |= need[node->out + k];
    if (!any) continue;
    Build b = {.fn = s, .fwd = node->fwd ? node_now[node->fwd] : 0};
    ir_results(node, ir_copy(&b, f, i, ir_operands(f, node, now)), now);
    node_now[i] = s->node.n - 1;
  }
  for (uint32_t i = 0; i < n; i++) got[i] = now[vals[i]];
  return s;
}

// ---- settings -----------------------------------------------------------------------------------------------------
const Setting *setting_arg(const Setting *call, const char *name) {
  for (uint32_t i = 0; call && i < call->narg; i++)
    if (!strcmp(call->arg[i].path, name)) return &call->arg[i];
  return 0;
}

const Setting *setting_find(const Module *m, const char *path) {
  for (uint32_t i = 0; i < m->set.n; i++) {
    const Setting *s = &m->set.at[i];
    size_t n = strlen(s->path);
    if (!strcmp(s->path, path)) return s;
    if (s->kind == SET_call && !strncmp(s->path, path, n) && path[n] == '.') return setting_arg(s, path + n + 1);
  }
  return 0;
}

double setting_num(const Module *m, const char *path, double otherwise) {
  const Setting *s = setting_find(m, path);
  return s && (s->kind == SET_num || s->kind == SET_bool) ? s->num : otherwise;
}

Str setting_word(const Module *m, const char *path, const char *otherwise) {
  const Setting *s = setting_find(m, path);
  return s && (s->kind == SET_word || s->kind == SET_call) ? s->word : intern(m->in, otherwise);
}

// f's value v goes into a gradient, as it is or cast or masked
static bool is_accumulated(const Fn *f, ValId v) {
  for (NodeId id = f->val.at[v].def + 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    bool uses = false;
    for (uint32_t i = 0; i < n->nin; i++) uses |= node_in(f, n)[i] == v;
    if (!uses) continue;
    if (n->op == OP_accumulate) return f->module->var.at[n->attr.var].kind == VAR_grad;
    if (n->op != OP_cast && n->op != OP_select) return false;
    v = n->out;
  }
  return false;
}

DType sum_format(const Fn *f, NodeId id) {
  const Module *m = f->module;
  const Node *n = fn_node(f, id);
  if (n->op != OP_all_reduce && n->op != OP_reduce_scatter) return DT_none;
  DType t = dtype_find(setting_word(m, "precision.grad_reduce", "f32")), own = val_type(f, n->out)->dtype;
  if ((t != DT_bf16 && t != DT_f16) || own != DT_f32) return DT_none;
  NodeId def = f->val.at[node_in(f, n)[0]].def;
  const Node *from = def ? fn_node(f, def) : 0;
  if (from && from->op == OP_read) return m->var.at[from->attr.var].kind == VAR_grad ? t : DT_none;
  return is_accumulated(f, n->out) ? t : DT_none;
}
