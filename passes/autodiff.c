// autodiff.c -- forward becomes micro: forward and backward of one microbatch.
//
// micro keeps forward's nodes and arguments. It then adds, for every scalar output, `accumulate $out.NAME` (the value,
// or its share of the step's mean), and the gradient of the objective Σ coef · output by every parameter, `accumulate
// NAME:grad`, as soon as the last use of the parameter is behind. A parameter that is read several times (tied) is one
// variable with one gradient. Only what lies between parameters and objective is differentiated.
//
// Composites stay nodes where a short rule exists (vjp.c); others on the differentiated path are replaced by their
// bodies. Contributions are added in the order of the sweep, from the last use to the first, so the bits depend on the
// text only. Gradients of parameters are made and added in the wider of precision.grads and the parameter's format as
// read: a product of bf16 that gives a parameter's gradient has an f32 result.
#include "compiler/inline.h"
#include "compiler/vjp.h"
#include "passes/pass.h"
#include <string.h>

typedef struct {
  Module *m;
  const Fn *fwd;
  Fn *micro;
  Build b;
  ValId *map;                                // by value of forward
  Grad g;
  VEC(NodeId) read;                          // reads of parameters, in order
  uint32_t *chain;                           // by node: 1 + index of a read whose first use it is
  uint32_t *next;                            // by read: 1 + the next one of the same node
} Autodiff;

static Str autodiff_why(Module *m, const char *what) { return intern_printf(m->in, "autodiff: %s", what); }

static bool reads_param(const Module *m, const Node *n) {
  if (n->op != OP_read) return false;
  VarKind k = m->var.at[n->attr.var].kind;
  return k == VAR_param || k == VAR_copy;
}
static VarId param_of(const Module *m, VarId v) { return m->var.at[v].kind == VAR_copy ? m->var.at[v].of : v; }

static DType word_dtype(const Module *m, const char *path) {
  DType t = dtype_find(setting_word(m, path, "f32"));
  return dtype_is_float(t) && t != DT_float ? t : DT_f32;
}

// ---- forward ------------------------------------------------------------------------------------------------------
// true for the nodes of forward that lie between a parameter and the objective
static bool *active_nodes(const Autodiff *a) {
  const Module *m = a->m;
  const Fn *f = a->fwd;
  bool *varied = NEW_N(m->arena, bool, f->val.n), *useful = NEW_N(m->arena, bool, f->val.n);
  bool *active = NEW_N(m->arena, bool, f->node.n);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    bool any = reads_param(m, n);
    if (vjp_passes(n->op))
      for (uint32_t i = 0; i < n->nin; i++) any |= varied[node_in(f, n)[i]];
    for (uint32_t i = 0; i < n->nout; i++) varied[n->out + i] = any && type_is_float(val_type(f, n->out + i));
  }
  for (uint32_t i = 0; i < f->ret.n; i++) {
    const Output *o = output_find(m, f->ret_name.at[i]);
    useful[f->ret.at[i]] |= o && o->coef != 0;
  }
  for (NodeId id = f->node.n - 1; id; id--) {
    const Node *n = fn_node(f, id);
    bool any = false;
    for (uint32_t i = 0; i < n->nout; i++) any |= useful[n->out + i] && varied[n->out + i];
    if (!(active[id] = any)) continue;
    for (uint32_t i = 0; i < n->nin; i++) useful[node_in(f, n)[i]] = true;
  }
  return active;
}

static void copy_forward(Autodiff *a, const bool *active) {
  const Fn *f = a->fwd;
  a->map = NEW_N(a->m->arena, ValId, f->val.n);
  ir_args(a->micro, f, a->map);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    const ValId *in = ir_operands(f, n, a->map);
    Build b = {.fn = a->micro};
    bool opened = active[id] && op_has(n->op, OPF_COMPOSITE) && vjp_inlines(f, id);
    if (opened) inline_body(&b, f, id, in, vjp_inlines, a->map + n->out);
    else {
      ValId v = active[id] ? vjp_copy(&b, f, id, in) : ir_copy(&b, f, id, in);
      ir_results(n, v, a->map);
    }
    if (opened && f->val.at[n->out].name) a->micro->val.at[a->map[n->out]].name = f->val.at[n->out].name;
  }
}

// what outputs mean over a step: they add up (per_step), or they are averaged over the microbatches
static ValId share(Autodiff *a, ValId v, const Output *o) {
  if (o && o->per_step) return v;
  VarId inv = var_find(a->m, intern(a->m->in, "$inv_micro"));
  if (!inv) bug("autodiff: there is no $inv_micro");
  return ir_binary(&a->b, OP_mul, v, ir_cast(&a->b, ir_read_var(&a->b, inv), val_type(a->micro, v)->dtype));
}

static void at_output(Autodiff *a, const Output *o, ValId v, const char *what) {
  NodeId def = a->micro->val.at[v].def;
  Span none = {0};
  a->b = def ? build_like(a->micro, a->micro, def) : (Build){.fn = a->micro, .loc = o ? o->loc : none};
  if (o && o->loc.line) a->b.loc = o->loc;
  a->b.why = autodiff_why(a->m, what);
}

static void add_outputs(Autodiff *a) {
  Module *m = a->m;
  for (uint32_t i = 0; i < a->fwd->ret.n; i++) {
    Str name = a->fwd->ret_name.at[i];
    const Output *o = output_find(m, name);
    ValId v = a->map[a->fwd->ret.at[i]];
    at_output(a, o, v, "the step's value of an output");
    Str var = intern_printf(m->in, "$out.%s", name);
    VarId to = var_find(m, var);
    if (!to)
      to = var_add(m, (Var){.name = var, .type = type_make(m, DT_f64, 0, 0), .kind = VAR_scalar, .loc = a->b.loc,
                            .why = a->b.why});
    v = share(a, ir_cast(&a->b, v, m->type.at[m->var.at[to].type].dtype), o);
    ir_add(&a->b, OP_accumulate, &v, 1, (Attr){.var = to});
  }
}

// ---- backward -----------------------------------------------------------------------------------------------------
static void find_reads(Autodiff *a, NodeId last, DType grads) {
  Module *m = a->m;
  Fn *f = a->micro;
  uint32_t *read_at = NEW_N(m->arena, uint32_t, f->val.n);             // by value: 1 + index into a->read
  for (NodeId id = 1; id <= last; id++) {
    const Node *n = fn_node(f, id);
    if (!reads_param(m, n) || !type_is_float(val_type(f, n->out))) continue;
    vec_push(m->arena, &a->read, id);
    read_at[n->out] = a->read.n;
    DType own = val_type(f, n->out)->dtype;
    grad_wrt(&a->g, n->out, dtype_bytes(own) >= dtype_bytes(grads) ? own : grads);
  }
  a->chain = NEW_N(m->arena, uint32_t, last + 1), a->next = NEW_N(m->arena, uint32_t, a->read.n + 1);
  bool *used = NEW_N(m->arena, bool, a->read.n + 1);
  for (NodeId id = 1; id <= last; id++) {
    const Node *n = fn_node(f, id);
    for (uint32_t i = 0; i < n->nin; i++) {
      uint32_t r = read_at[node_in(f, n)[i]];
      if (!r || used[r]) continue;
      used[r] = true, a->next[r] = a->chain[id], a->chain[id] = r;
    }
  }
  for (uint32_t r = 1; r <= a->read.n; r++)
    if (!used[r]) a->chain[a->read.at[r - 1]] = r;                     // nothing but an output, if anything, has it
}

// All gradients are that much larger, until the update.
static ValId loss_scaled(Autodiff *a, ValId seed) {
  VarId scale = var_find(a->m, intern(a->m->in, "$loss_scale"));
  if (!scale) return seed;
  return ir_binary(&a->b, OP_mul, seed, ir_cast(&a->b, ir_read_var(&a->b, scale), DT_f64));
}

static void add_seeds(Autodiff *a) {
  for (uint32_t i = 0; i < a->fwd->ret.n; i++) {
    const Output *o = output_find(a->m, a->fwd->ret_name.at[i]);
    ValId v = a->map[a->fwd->ret.at[i]];
    if (!o || o->coef == 0 || !a->g.varied[v]) continue;
    at_output(a, o, v, "gradient of the objective");
    a->b.fwd = a->micro->val.at[v].def;
    ValId seed = loss_scaled(a, share(a, ir_const(&a->b, o->coef, DT_f64), o));
    a->g.b = a->b;
    grad_give(&a->g, v, ir_cast(&a->b, seed, val_type(a->micro, v)->dtype));
  }
}

static Str grad_name(Module *m, VarId p) { return intern_printf(m->in, "%s:grad", m->var.at[p].name); }

static void add_grad_vars(Module *m, DType grads) {
  for (VarId p = 1, n = m->var.n; p < n; p++) {
    Var v = m->var.at[p];
    if (v.kind != VAR_param) continue;
    Type t = m->type.at[v.type];
    t.dtype = grads;
    var_add(m, (Var){.name = grad_name(m, p), .type = type_intern(m, t), .kind = VAR_grad, .of = p, .loc = v.loc,
                     .why = autodiff_why(m, "gradient of a parameter")});
  }
}

static void accumulate_grad(Autodiff *a, VarId p, ValId d, NodeId fwd, DType grads) {
  VarId to = var_find(a->m, grad_name(a->m, p));
  if (fwd) a->b = build_like(a->micro, a->micro, fwd);
  else a->b = (Build){.fn = a->micro, .loc = a->m->var.at[p].loc};
  a->b.fwd = fwd, a->b.why = autodiff_why(a->m, "gradient of a parameter");
  const Type *t = &a->m->type.at[a->m->var.at[to].type];
  if (!d) d = ir_dims(&a->b, OP_expand, ir_const(&a->b, 0, grads), t->dim, t->ndim);
  d = ir_cast(&a->b, d, grads);
  ir_add(&a->b, OP_accumulate, &d, 1, (Attr){.var = to});
}

// The sweep. total: by parameter, the gradient so far; left: its reads that are still to come.
static void backward(Autodiff *a, NodeId last, DType grads) {
  Module *m = a->m;
  uint32_t nvar = m->var.n;
  ValId *total = NEW_N(m->arena, ValId, nvar);
  uint32_t *left = NEW_N(m->arena, uint32_t, nvar);
  bool *done = NEW_N(m->arena, bool, nvar);
  for (uint32_t i = 0; i < a->read.n; i++) left[param_of(m, fn_node(a->micro, a->read.at[i])->attr.var)]++;
  for (NodeId id = last; id; id--) {
    grad_node(&a->g, id);
    for (uint32_t r = a->chain[id]; r; r = a->next[r]) {
      NodeId read = a->read.at[r - 1];
      VarId p = param_of(m, fn_node(a->micro, read)->attr.var);
      ValId d = grad_of(&a->g, fn_node(a->micro, read)->out);
      if (d && total[p]) {
        a->b = build_like(a->micro, a->micro, read);
        a->b.fwd = read, a->b.why = autodiff_why(m, "gradients added");
        DType to = val_type(a->micro, d)->dtype, was = val_type(a->micro, total[p])->dtype;
        if (dtype_bytes(was) > dtype_bytes(to)) to = was;
        ValId before = ir_cast(&a->b, total[p], to);
        d = ir_binary(&a->b, OP_add, before, ir_cast(&a->b, d, to));
      }
      if (d) total[p] = d;
      if (!--left[p] && total[p]) accumulate_grad(a, p, total[p], read, grads), done[p] = true;
    }
  }
  for (VarId p = 1; p < nvar; p++) {
    if (m->var.at[p].kind != VAR_param || done[p]) continue;
    if (!total[p]) {
      diag_warning(m->diag, m->var.at[p].loc, "MT0228", "parameter '%s' never reaches the loss", m->var.at[p].name);
      diag_note(m->diag, "its gradient is 0; remove it, or use it");
    }
    accumulate_grad(a, p, total[p], 0, grads);
  }
}

// micro under forward's id, with its own name
static void take_place(Module *m, Fn *forward, Fn *micro) {
  Str was = forward->name, name = micro->name;
  FnId id = fn_id(forward);
  fn_replace(m, forward, micro);
  map_put(&m->fn_by_name, key_of(was), 0);
  map_put(&m->fn_by_name, key_of(name), id);
  micro->name = name;
}

bool pass_autodiff(Module *m) {
  Fn *forward = fn_find(m, intern(m->in, "forward"));
  if (!forward) return true;
  uint32_t errors = m->diag->errors;
  Autodiff a = {.m = m, .fwd = forward};
  bool *active = active_nodes(&a);
  for (NodeId id = 1; id < forward->node.n; id++)                      // bodies first: micro is the youngest function
    if (active[id]) vjp_prepare(m, forward, id);
  a.micro = fn_create(m, intern(m->in, "micro"));
  copy_forward(&a, active);
  NodeId last = a.micro->node.n - 1;
  a.b.fn = a.micro;
  DType grads = word_dtype(m, "precision.grads");
  grad_init(&a.g, a.micro);
  find_reads(&a, last, grads);
  grad_mark(&a.g);
  add_grad_vars(m, grads);
  add_outputs(&a);
  add_seeds(&a);
  backward(&a, last, grads);
  take_place(m, forward, a.micro);
  return m->diag->errors == errors;
}
