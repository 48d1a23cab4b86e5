// precision.c -- `float` becomes a number format, and masters get their compute copies.
//
//   precision.compute   what `float` is: activations, inputs of products
//   precision.params    the parameters' own format: what the optimizer updates and a checkpoint holds
//   precision.grads     in which gradients are accumulated
//
// With compute = f64 every float of the program is f64, written f32s, keep regions, params and grads too (scalars of
// the step are f64 anyway): gradient checks and comparisons of layouts are then strict. params and grads are set to
// f64, so passes after this one read the settings as they hold.
//
// Where compute is narrower than a parameter, functions read its copy NAME:copy instead. `update` refreshes it, and
// `refresh` writes all of them from the masters. Where it is another or a wider format, the
// value is cast where it is read.
//
// keep regions are casts already. A product of two operands that were both widened from one half format is taken of the
// halves with a wide result: the same numbers, since products of halves are exact in f32, and sums are in
// f32 either way. random draws f32 always.
#include "passes/pass.h"
#include <string.h>

typedef struct {
  Module *m;
  DType compute, params, grads;
} Precision;

static bool half(DType t) { return t == DT_bf16 || t == DT_f16; }

static DType resolve(const Precision *p, DType t) {
  if (t == DT_float) return p->compute;
  return p->compute == DT_f64 && dtype_is_float(t) ? DT_f64 : t;
}
static TypeId resolve_type(const Precision *p, TypeId id) {
  Type t = p->m->type.at[id];
  t.dtype = resolve(p, t.dtype);
  return type_intern(p->m, t);
}

// ---- settings -----------------------------------------------------------------------------------------------------
static DType setting_dtype(Module *m, const char *path) {
  const Setting *s = setting_find(m, path);
  if (!s) return DT_f32;
  const char *word = s->kind == SET_word || s->kind == SET_call ? s->word : "";
  DType t = dtype_find(word);
  if (dtype_is_float(t) && t != DT_float) return t;
  VEC(Str) floats = {0};
  for (DType d = DT_none + 1; d < DT_COUNT; d++)
    if (dtype_is_float(d) && d != DT_float) vec_push(m->arena, &floats, dtype_name(d));
  diag_error(m->diag, s->loc, "MT0336", "%s wants a float format: f64, f32, bf16 or f16; got '%s'", path, word);
  Str near = nearest(word, floats.at, floats.n);
  if (near) diag_note(m->diag, "did you mean '%s'?", near);
  return DT_f32;
}

static void set_word(Module *m, const char *path, DType t) {
  for (uint32_t i = 0; i < m->set.n; i++)
    if (!strcmp(m->set.at[i].path, path)) {
      m->set.at[i].kind = SET_word, m->set.at[i].word = dtype_name(t);
      return;
    }
  vec_push(m->arena, &m->set, (Setting){.path = intern(m->in, path), .kind = SET_word, .word = dtype_name(t)});
}

static bool read_settings(Precision *p) {
  Module *m = p->m;
  uint32_t errors = m->diag->errors;
  p->compute = setting_dtype(m, "precision.compute");
  p->params = setting_dtype(m, "precision.params");
  p->grads = setting_dtype(m, "precision.grads");
  if (!strcmp(setting_word(m, "precision.grad_reduce", ""), "compute")) set_word(m, "precision.grad_reduce", p->compute);
  setting_dtype(m, "precision.grad_reduce");
  if (p->compute == DT_f64) {
    p->params = p->grads = DT_f64;
    set_word(m, "precision.params", DT_f64), set_word(m, "precision.grads", DT_f64),
        set_word(m, "precision.grad_reduce", DT_f64);
  }
  return m->diag->errors == errors;
}

// ---- variables ----------------------------------------------------------------------------------------------------
static Str copy_name(Module *m, Str param) { return intern_printf(m->in, "%s:copy", param); }

static void resolve_vars(Precision *p) {
  Module *m = p->m;
  for (VarId v = 1, n = m->var.n; v < n; v++) {
    Var *var = &m->var.at[v];
    Type t = m->type.at[var->type];
    bool open = t.dtype == DT_float;
    t.dtype = open && var->kind == VAR_param ? p->params : resolve(p, t.dtype);
    var->type = type_intern(m, t);
    if (!open || var->kind != VAR_param || dtype_bytes(p->compute) >= dtype_bytes(p->params)) continue;
    Var copy = {.name = copy_name(m, var->name), .kind = VAR_copy, .of = v, .loc = var->loc};
    t.dtype = p->compute;
    copy.type = type_intern(m, t);
    copy.why = intern_printf(m->in, "precision: compute is %s, params are %s", dtype_name(p->compute),
                             dtype_name(p->params));
    var_add(m, copy);
  }
}

// ---- functions ----------------------------------------------------------------------------------------------------
// v widened from a half format: the half value, else 0
static ValId widened(const Fn *f, ValId v) {
  NodeId def = f->val.at[v].def;
  if (!def || fn_node(f, def)->op != OP_cast || val_type(f, v)->dtype != DT_f32) return 0;
  ValId from = node_in(f, fn_node(f, def))[0];
  return half(val_type(f, from)->dtype) ? from : 0;
}

static ValId resolve_node(Precision *p, Build *b, const Fn *f, NodeId id, ValId *in) {
  Module *m = p->m;
  const Node *n = fn_node(f, id);
  DType want = n->nout ? resolve(p, m->type.at[f->val.at[n->out].type].dtype) : DT_none;
  if (n->op == OP_read) {
    VarId var = n->attr.var, copy = var_find(m, copy_name(m, m->var.at[var].name));
    if (copy) var = copy;
    return ir_cast(b, ir_read_var(b, var), want);
  }
  if (n->op == OP_write || n->op == OP_accumulate) {
    ValId x = ir_cast(b, in[0], m->type.at[m->var.at[n->attr.var].type].dtype);
    return ir_add(b, n->op, &x, 1, n->attr);
  }
  if (n->op == OP_cast && b->fn->val.at[in[0]].type == resolve_type(p, f->val.at[n->out].type)) return in[0];
  TypeId few[8], *types = few;
  if (n->nout > COUNT(few)) types = NEW_N(m->arena, TypeId, n->nout);
  for (uint32_t i = 0; i < n->nout; i++) types[i] = resolve_type(p, f->val.at[n->out + i].type);
  if (n->op == OP_random) {
    Type t = m->type.at[types[0]];
    t.dtype = DT_f32;
    types[0] = type_intern(m, t);
    return ir_cast(b, ir_add_typed(b, n->op, in, n->nin, n->attr, types, 1, 0), want);
  }
  if (n->op == OP_dot) {
    ValId x = widened(b->fn, in[0]), y = widened(b->fn, in[1]);
    if (x && y && val_type(b->fn, x)->dtype == val_type(b->fn, y)->dtype) in[0] = x, in[1] = y;
  }
  return ir_add_typed(b, n->op, in, n->nin, n->attr, types, n->nout, n->body);
}

static void resolve_fn(Precision *p, Fn *f) {
  Module *m = p->m;
  Fn *t = fn_like(m, f, intern_printf(m->in, "%s.precision", f->name));
  ValId *map = NEW_N(m->arena, ValId, f->val.n);
  NodeId *node = NEW_N(m->arena, NodeId, f->node.n);
  for (uint32_t i = 0; i < f->arg.n; i++)
    map[f->arg.at[i]] = ir_arg(t, resolve_type(p, f->val.at[f->arg.at[i]].type), f->val.at[f->arg.at[i]].name);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    ValId *in = ir_operands(f, n, map);
    Build b = build_like(t, f, id);
    b.fwd = node[n->fwd];
    ValId v = resolve_node(p, &b, f, id, in);
    for (uint32_t i = 0; i < n->nout; i++) {
      map[n->out + i] = v + i;
      if (!t->val.at[v + i].name) t->val.at[v + i].name = f->val.at[n->out + i].name;
    }
    node[id] = n->nout ? t->val.at[v].def : t->node.n - 1;
  }
  for (uint32_t i = 0; i < f->ret.n; i++) ir_return(t, map[f->ret.at[i]], f->ret_name.at[i]);
  fn_replace(m, f, t);
}

static void add_refresh(Precision *p) {
  Module *m = p->m;
  Build b = {0};
  for (VarId v = 1; v < m->var.n; v++) {
    const Var *copy = &m->var.at[v];
    if (copy->kind != VAR_copy) continue;
    if (!b.fn) b.fn = fn_create(m, intern(m->in, "refresh"));
    b.loc = copy->loc, b.why = copy->why;
    ir_write_var(&b, v, ir_cast(&b, ir_read_var(&b, copy->of), m->type.at[copy->type].dtype));
  }
}

bool pass_precision(Module *m) {
  Precision p = {.m = m};
  if (!read_settings(&p)) return false;
  resolve_vars(&p);
  for (FnId f = 1, n = m->fn.n; f < n; f++) resolve_fn(&p, m->fn.at[f]);
  add_refresh(&p);
  return true;
}
