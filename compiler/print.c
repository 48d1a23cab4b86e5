// print.c -- a module as text. What is written here parses back (read.c) to a module that prints to the same bytes;
// grammar/ir_text.h shows what it looks like. A broken module prints too, with ? for what an id does not name.
#include "compiler/ir.h"
#include "grammar/ir_text.h"

// ---- words --------------------------------------------------------------------------------------------------------
static void put_dim(Text *t, const Module *m, DimId d) {
  if (d && d < m->dim.n) ir_text_name(t, dim_of(m, d)->name);
  else text_puts(t, "?");
}

static void put_axis(Text *t, const Module *m, uint32_t axis) {
  if (axis < m->axis.n) ir_text_name(t, m->axis.at[axis].name);
  else text_puts(t, "?");
}

static void put_axes(Text *t, const Module *m, uint32_t mask, const char *between) {
  const char *sep = "";
  for (uint32_t i = 0; i < MAX_AXES; i++)
    if (mask >> i & 1) text_puts(t, sep), put_axis(t, m, i), sep = between;
}

static void put_var(Text *t, const Module *m, VarId v) {
  if (v && v < m->var.n) ir_text_var(t, m->var.at[v].name);
  else text_puts(t, "?");
}

static void put_dims(Text *t, const Module *m, const DimId *dims, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) text_puts(t, i ? ", " : ""), put_dim(t, m, dims[i]);
}

void ir_print_type(Text *t, const Module *m, TypeId id) {
  const Type *y = &m->type.at[id < m->type.n ? id : 0];
  text_printf(t, "%s[", dtype_name(y->dtype));
  for (uint32_t i = 0; i < y->ndim; i++) {
    text_puts(t, i ? ", " : "");
    put_dim(t, m, y->dim[i]);
    for (Split s = y->split[i]; s; s >>= 4) text_puts(t, "|"), put_axis(t, m, (s & 15u) - 1);
  }
  text_puts(t, "]");
  if (!y->pending) return;
  text_puts(t, y->pending == PENDING_sum ? " sum(" : " max(");
  put_axes(t, m, y->pending_axes, ", ");
  text_puts(t, ")");
}

// ---- notes: what stands behind the ; ------------------------------------------------------------------------------
static bool placed(Span at) { return at.file || at.line || at.col || at.end_line || at.end_col; }

static void put_place(Text *t, const Module *m, Span at) {
  text_puts(t, " ");
  ir_text_place(t, at.file < m->diag->source.n ? m->diag->source.at[at.file].path : "?", at);
}

static void put_notes(Text *t, const Module *m, Span at, Str why) {
  if (!placed(at) && !why) return;
  text_puts(t, " ;");
  if (placed(at)) put_place(t, m, at);
  if (why) text_puts(t, " "), ir_text_string(t, why);
}

static void put_node_notes(Text *t, const Fn *f, const Node *n) {
  const Module *m = f->module;
  text_puts(t, " ;");
  if (placed(n->loc)) put_place(t, m, n->loc);
  if (n->path && *n->path) text_puts(t, " in "), ir_text_name(t, n->path);
  if (n->layer) text_printf(t, " layer %u", n->layer);
  if (n->fwd && n->fwd < f->node.n && fn_node(f, n->fwd)->nout) text_printf(t, " fwd %%%u", fn_node(f, n->fwd)->out);
  if (n->why) text_puts(t, " "), ir_text_string(t, n->why);
}

// ---- nodes --------------------------------------------------------------------------------------------------------
static void put_result(Text *t, const Fn *f, ValId v) {
  text_printf(t, "%%%u", v);
  if (f->val.at[v].name) text_puts(t, " "), ir_text_name(t, f->val.at[v].name);
}

const char *attr_at_name(Op op) { return op == OP_shift ? "by" : op == OP_cumsum ? "reverse" : "at"; }

static void put_args(Text *t, const Fn *f, const Node *n) {
  const Module *m = f->module;
  unsigned has = op_info[n->op].attrs;
  bool bare = n->op == OP_const || n->op == OP_index || has & AT_VAR;
  const char *sep = "";
  text_puts(t, n->op == OP_index ? "" : bare ? " " : "(");
  if (has & AT_VAR) put_var(t, m, n->attr.var), sep = ", ";
  if (n->op == OP_const) ir_text_num(t, n->attr.num);
  for (uint32_t i = 0; i < n->nin; i++, sep = ", ") text_printf(t, "%s%%%u", sep, node_in(f, n)[i]);
  if (has & AT_AT && (n->op != OP_cumsum || n->attr.at))
    text_printf(t, "%s%s = %lld", sep, attr_at_name(n->op), (long long)n->attr.at), sep = ", ";
  if (n->op == OP_shift) text_printf(t, "%sfill = ", sep), ir_text_num(t, n->attr.num);
  if (has & AT_PATH && n->attr.path) text_printf(t, "%spath = ", sep), ir_text_string(t, n->attr.path), sep = ", ";
  if (has & AT_AXES) text_printf(t, "%sover = ", sep), put_axes(t, m, n->attr.axes, "|"), sep = ", ";
  for (uint32_t i = 0; has & AT_ARGS && i < n->attr.nargs; i++, sep = ", ") {
    text_puts(t, sep);
    ir_text_name(t, n->attr.args[i].name);
    text_puts(t, " = ");
    ir_text_num(t, n->attr.args[i].num);
  }
  text_puts(t, bare ? "" : ")");
}

static void put_node(Text *t, const Fn *f, const Node *n) {
  const Module *m = f->module;
  for (uint32_t i = 0; i < n->nout; i++) text_puts(t, i ? ", " : ""), put_result(t, f, n->out + i);
  text_printf(t, "%s%s", n->nout ? " = " : "", op_info[n->op].name);
  if (n->attr.ndims && op_info[n->op].attrs & AT_DIMS) {
    text_puts(t, "[");
    put_dims(t, m, n->attr.dims, n->attr.ndims);
    if (n->attr.nto && op_info[n->op].attrs & AT_TO)
      text_puts(t, " -> "), put_dims(t, m, n->attr.to, n->attr.nto);
    text_puts(t, "]");
  }
  put_args(t, f, n);
  if (n->body) text_puts(t, " body "), ir_text_name(t, n->body < m->fn.n ? m->fn.at[n->body]->name : "?");
  bool same = true;                                     // one type stands for all
  for (uint32_t i = 1; i < n->nout; i++) same &= f->val.at[n->out + i].type == f->val.at[n->out].type;
  for (uint32_t i = 0; i < (same ? MIN(n->nout, 1u) : n->nout); i++)
    text_puts(t, i ? ", " : " : "), ir_print_type(t, m, f->val.at[n->out + i].type);
  put_node_notes(t, f, n);
}

void ir_print_node(Text *t, const Fn *f, NodeId id) { put_node(t, f, fn_node(f, id)); }

void ir_print_fn(Text *t, const Fn *f) {
  text_puts(t, f->is_body ? "body " : "fn ");
  ir_text_name(t, f->name);
  if (f->is_body) text_printf(t, " of %s", op_info[f->body_of].name);
  text_puts(t, "(");
  for (uint32_t i = 0; i < f->arg.n; i++) {
    text_puts(t, i ? ", " : "");
    put_result(t, f, f->arg.at[i]);
    text_puts(t, ": ");
    ir_print_type(t, f->module, f->val.at[f->arg.at[i]].type);
  }
  text_puts(t, ") -> (");
  for (uint32_t i = 0; i < f->ret.n; i++) {
    text_puts(t, i ? ", " : "");
    if (*f->ret_name.at[i]) ir_text_name(t, f->ret_name.at[i]), text_puts(t, ": ");
    text_printf(t, "%%%u", f->ret.at[i]);
  }
  text_puts(t, ") {\n");
  for (NodeId id = 1; id < f->node.n; id++) {
    text_puts(t, "  ");
    put_node(t, f, fn_node(f, id));
    text_puts(t, "\n");
  }
  text_puts(t, "}\n");
}

// ---- the tables -----------------------------------------------------------------------------------------------------
static void put_dim_decl(Text *t, const Module *m, DimId id) {
  const Dim *d = dim_of(m, id);
  text_puts(t, "dim ");
  ir_text_name(t, d->name);
  text_printf(t, " = %lld", (long long)d->extent);
  if (d->size != d->extent) text_printf(t, " size %lld", (long long)d->size);
  if (d->root != id) text_puts(t, " of "), put_dim(t, m, d->root);
  if (d->zigzag) text_printf(t, " zigzag %u", d->zigzag);
  if (d->whole) {
    text_puts(t, " part "), put_dim(t, m, d->whole), text_puts(t, "(");
    for (Split s = d->cut; s; s >>= 4) put_axis(t, m, (s & 15u) - 1), text_puts(t, s >> 4 ? ", " : ")");
  }
  text_printf(t, "%s%s\n", d->sample ? " sample" : "", d->ragged ? " ragged" : "");
}

static void put_rule(Text *t, const Module *m, const MapRule *r) {
  text_puts(t, r->weak ? "map weak " : "map ");
  ir_text_name(t, r->dim);
  text_puts(t, " -> ");
  for (uint32_t i = 0; i < r->naxis; i++) text_puts(t, i ? ", " : ""), put_axis(t, m, r->axis[i]);
  put_notes(t, m, r->loc, 0);
  text_puts(t, "\n");
}

static void put_value(Text *t, const Setting *s) {
  switch (s->kind) {
  case SET_num: ir_text_num(t, s->num); break;
  case SET_bool: text_puts(t, s->num != 0 ? "true" : "false"); break;
  case SET_word: ir_text_name(t, s->word); break;
  case SET_call:
    ir_text_name(t, s->word);
    text_puts(t, "(");
    for (uint32_t i = 0; i < s->narg; i++) {
      text_puts(t, i ? ", " : "");
      if (*s->arg[i].path) ir_text_name(t, s->arg[i].path), text_puts(t, " = ");
      put_value(t, &s->arg[i]);
    }
    text_puts(t, ")");
  }
}

static void put_numbers(Text *t, const double *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) text_puts(t, i ? ", " : "("), ir_text_num(t, v[i]);
  text_puts(t, n ? ")" : "");
}

static void put_var_decl(Text *t, const Module *m, const Var *v) {
  const Type *y = &m->type.at[v->type < m->type.n ? v->type : 0];
  bool param = v->kind == VAR_param, stored = false;    // stored: a parameter's axes are not 0 1 2 …, another's not 0 0 0 …
  for (uint32_t i = 0; i < y->ndim; i++) stored |= v->axis[i] != (param ? i : 0);
  text_printf(t, "var %s ", var_kind_name[v->kind]);
  ir_text_var(t, v->name);
  text_puts(t, " : ");
  ir_print_type(t, m, v->type);
  if (v->of) text_puts(t, " of "), put_var(t, m, v->of);
  if (param || v->init || v->a != 0 || v->b != 0) {
    text_printf(t, " = %s", init_kind_name[v->init]);
    put_numbers(t, (double[]){v->a, v->b}, v->b != 0 ? 2 : v->a != 0);
  }
  text_puts(t, v->decay ? " decay" : "");
  if (v->partial) text_puts(t, " partial("), put_axes(t, m, v->partial, ", "), text_puts(t, ")");
  if (stored) {
    double axis[MAX_DIMS];
    for (uint32_t i = 0; i < y->ndim; i++) axis[i] = v->axis[i];
    text_puts(t, " stored ");
    put_numbers(t, axis, y->ndim);
  }
  put_notes(t, m, v->loc, v->why);
  text_puts(t, "\n");
}

static void put_output(Text *t, const Module *m, const Output *o) {
  text_puts(t, "output ");
  ir_text_name(t, o->name);
  text_puts(t, " coef ");
  ir_text_num(t, o->coef);
  text_puts(t, o->per_step ? " per_step" : "");
  put_notes(t, m, o->loc, 0);
  text_puts(t, "\n");
}

void ir_print(Text *t, const Module *m) {
  for (uint32_t i = 0; i < m->axis.n; i++) {
    text_puts(t, i ? ", " : "mesh ");
    ir_text_name(t, m->axis.at[i].name);
    text_printf(t, " = %d", m->axis.at[i].size);
  }
  text_puts(t, m->axis.n ? "\n" : "");
  for (uint32_t i = 0; i < m->rule.n; i++) put_rule(t, m, &m->rule.at[i]);
  for (DimId i = 1; i < m->dim.n; i++) put_dim_decl(t, m, i);
  for (uint32_t i = 0; i < m->set.n; i++) {
    text_puts(t, "set ");
    ir_text_name(t, m->set.at[i].path);
    text_puts(t, " = ");
    put_value(t, &m->set.at[i]);
    put_notes(t, m, m->set.at[i].loc, 0);
    text_puts(t, "\n");
  }
  for (uint32_t i = 0; i < m->output.n; i++) put_output(t, m, &m->output.at[i]);
  for (VarId i = 1; i < m->var.n; i++) put_var_decl(t, m, &m->var.at[i]);
  for (FnId i = 1; i < m->fn.n; i++) text_puts(t, "\n"), ir_print_fn(t, m->fn.at[i]);
}
