// lower_model.c -- the model as functions of a module: inputs, outputs, the objective, decay groups.
#include "compiler/lower.h"
#include <string.h>

static VarId scalar(Lower *l, const char *name, DType dtype, const char *why) {
  TypeId t = type_make(l->m, dtype, 0, 0);
  return var_add(l->m, (Var){.name = intern(l->p->in, name),
                             .type = t,
                             .kind = VAR_scalar,
                             .loc = l->p->model->ast->span,
                             .why = intern(l->p->in, why)});
}

static void scalars(Lower *l) {
  scalar(l, "$step", DT_i64, "the step's number, from 0");
  scalar(l, "$sample", DT_i64, "number in the step of the microbatch's first sample");
  scalar(l, "$lr", DT_f64, "this step's learning rate");
  scalar(l, "$bc1", DT_f64, "1 - beta1^t");
  scalar(l, "$bc2", DT_f64, "1 - beta2^t");
  scalar(l, "$inv_micro", DT_f64, "1 / microbatches of the step");
  const Setting *scale = setting_find(l->m, "precision.loss_scale");
  if (scale && (scale->kind == SET_num || strcmp(scale->word, "none"))) scalar(l, "$loss_scale", DT_f64, "factor of this step's gradients");
}

// ---- one elaboration --------------------------------------------------------------------------------------
typedef struct { Fn *fn; ValId *out; } Elaborated;                     // out[i]: the i-th output

// A type whose dims are all named.
static bool plain_type(Lower *l, const Ast *formal, const Ast *t, const char *what, const char *example) {
  if (t->kind != N_type)
    return lower_error(l, formal->span, "MT0267", "%s has a type: %s: %s", what, formal->text, example);
  for (uint32_t k = 0; k < t->kid[0]->n; k++)
    if (t->kid[0]->kid[k]->kind != N_name)
      return lower_error(l, t->kid[0]->kid[k]->span, "MT0267", "%s names its dims, without * and ?", what);
  return true;
}

static bool input_types(Lower *l, Frame *f) {
  bool ok = true;
  const Ast *formals = f->def->ast->kid[0];
  for (uint32_t i = 0; i < formals->n; i++) {
    const Ast *fm = formals->kid[i], *t = fm->kid[0];
    DimId dim[MAX_DIMS];
    uint32_t n = 0;
    if (!plain_type(l, fm, t, "an input", "i32[batch, seq]") || !dims_eval(l, t->kid[0], dim, &n)) {
      ok = false;
      continue;
    }
    TypeId type = type_make(l->m, dtype_find(t->text), dim, n);
    bool small = type_is_small(l, &l->m->type.at[type]);
    if (!small) lower_error(l, fm->span, "MT0306", "%s has more than 2^59 entries", fm->text);
    ok &= small;
    named_add(l, f, fm->text, (Val){.tensor = true, .v = ir_arg(l->fn, type, fm->text)}, fm->span);
  }
  return ok;
}

static ValId output(Lower *l, Frame *f, const Ast *o) {  // as declared: dtype, and its storage order
  const uint64_t *at = map_get(&f->val_by_name, key_of(o->text));
  const Ast *t = o->kid[0];
  if (!at || !*at) {
    lower_error(l, o->span, "MT0252", "the model never assigns its output '%s'", o->text);
    return 0;
  }
  Val v = f->val.at[*at - 1].val;
  if (val_is_error(v)) return 0;
  DimId dim[MAX_DIMS];
  uint32_t n = 0;
  if (!plain_type(l, o, t, "an output", "f32[]") || !dims_eval(l, t->kid[0], dim, &n)) return 0;
  DType dtype = dtype_find(t->text);
  if (!n && !dtype_is_float(dtype))
    return lower_error(l, o->span, "MT0267", "an output without dims is a float: it is logged; write f32(…)"),
           0;
  Span at_value = f->val.at[*at - 1].at;
  if (!v.tensor && (n || !number_fits(v.number, dtype))) {
    lower_error(l, at_value, "MT0217", "output %s is %s[%s], and it is given %s", o->text, t->text,
                dims_show(l, dim, n), val_show(l, v));
    if (n && number_fits(v.number, dtype))
      lower_note(l, "write expand[%s](%s)", dims_show(l, dim, n), val_show(l, v));
    return 0;
  }
  if (!v.tensor) v = to_dtype(l, v, dtype, o->span);
  Type have = *val_shape(l, v);
  bool same = have.ndim == n;
  for (uint32_t k = 0; same && k < n; k++) same = type_pos(&have, dim[k]) >= 0;
  if (!same)
    lower_error(l, at_value, "MT0208", "output %s is [%s], and it is given %s", o->text, dims_show(l, dim, n),
                val_show(l, v));
  else if (strcmp(dtype_class(have.dtype), dtype_class(dtype)))
    lower_error(l, at_value, "MT0217", "output %s is %s, and it is given %s", o->text, t->text,
                val_show(l, v)),
      same = false;
  if (!same) return lower_note_at(l, o->span, "the header"), 0;
  bool ordered = have.dtype == dtype;
  for (uint32_t k = 0; k < n; k++) ordered &= have.dim[k] == dim[k];
  if (ordered) return v.v;
  Build b = at_span(l, o->span);
  TypeId type = type_make(l->m, dtype, dim, n);
  return ir_add_typed(&b, OP_cast, &v.v, 1, (Attr){0}, &type, 1, 0);
}

static bool elaborate_in(Lower *l, Str name, bool training, Elaborated *e) {
  const Def *def = l->p->model;
  const Ast *outs = def->ast->kid[1];
  Frame frame = {.def = def, .scope = def->scope, .path = "", .flt = DT_float, .why = "model"};
  map_init(&frame.dim_by_name, l->a), map_init(&frame.val_by_name, l->a), map_init(&frame.ended, l->a);
  map_init(&l->declared, l->a), map_init(&l->random, l->a), map_init(&l->den_seen, l->a);
  l->den.n = l->stepmean.n = l->declared_at.n = 0;
  l->training = training, l->frame = &frame, l->layer = 0;
  l->fn = e->fn = fn_create(l->m, name);
  if (def->keep != DT_none) frame.flt = dtype_wider(frame.flt, def->keep);
  Vals returned = {0};
  if (!input_types(l, &frame)) return false;
  stmts_run(l, def->ast->kid[2], &returned);
  if (frame.returned)
    lower_error(l, frame.returned->span, "MT0268", "a model assigns its outputs by name and does not return");
  if (l->p->diag->errors) return false;
  frame.dim.n = 0;  // the header does not see the body's dims
  map_init(&frame.dim_by_name, l->a);
  e->out = NEW_N(l->a, ValId, outs->n + 1);
  for (uint32_t i = 0; i < outs->n; i++) e->out[i] = output(l, &frame, outs->kid[i]);
  return !l->p->diag->errors;
}

static bool elaborate(Lower *l, Str name, bool training, Elaborated *e) {
  bool ok = elaborate_in(l, name, training, e);
  lower_finish(l);
  l->frame = 0;
  return ok;
}

// ---- the objective ----------------------------------------------------------------------------------------
typedef enum { STEP_none, STEP_linear, STEP_mixed } StepClass;         // how a value depends on the stepmeans

// A stepmean's own result is linear; sums of such and multiples by a constant stay so.
static uint8_t *step_classes(Lower *l, const Fn *f) {
  bool *seed = NEW_N(l->a, bool, f->val.n);
  for (uint32_t i = 0; i < l->stepmean.n; i++) seed[l->stepmean.at[i]] = true;
  uint8_t *c = NEW_N(l->a, uint8_t, f->val.n);
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    const ValId *in = node_in(f, n);
    bool any = false, linear = n->op == OP_neg || n->op == OP_add || n->op == OP_sub || n->op == OP_cast;
    for (uint32_t k = 0; k < n->nin; k++) any |= c[in[k]] != STEP_none;
    for (uint32_t k = 0; k < n->nin && linear; k++) linear = c[in[k]] == STEP_linear;
    if (any && (n->op == OP_mul || n->op == OP_div))
      for (int k = 0; k < (n->op == OP_mul ? 2 : 1) && !linear; k++) {
        NodeId def = f->val.at[in[1 - k]].def;
        linear = c[in[k]] == STEP_linear && def && fn_node(f, def)->op == OP_const;
      }
    for (uint32_t k = 0; k < n->nout; k++)
      c[n->out + k] = seed[n->out + k] ? STEP_linear : !any ? STEP_none : linear ? STEP_linear : STEP_mixed;
  }
  return c;
}

static bool is_scalar(const Type *t) {
  return !t->ndim && type_is_float(t);
}  // an output of the step; others are logits

static void mixed_output(Lower *l, const Output *o) {
  lower_error(l, o->loc, "MT0324", "output %s mixes a stepmean with what is none", o->name);
  lower_note(
    l, "a stepmean is one mean over the step, the rest is averaged over microbatches: make them two outputs");
  lower_note(l, "and add them in train { minimize = … }");
}

static void no_output(Lower *l, const Term *t, const Str *names, uint32_t n) {
  Text list;
  text_init(&list, l->a);
  for (uint32_t i = 0; i < n; i++) text_printf(&list, "%s%s", i ? ", " : "", names[i]);
  lower_error(l, t->loc.line ? t->loc : l->p->model->ast->span, "MT0322",
              "minimize: '%s' is no output; outputs are %s", t->name, n ? list.s : "none");
  lower_suggest(l, t->name, names, n);
  if (!t->loc.line)
    lower_note(l, "the objective is the output 'loss', or what is said in train { minimize = … }");
}

static void outputs(Lower *l, const Elaborated *e) {
  Program *p = l->p;
  const Ast *outs = p->model->ast->kid[1];
  uint8_t *c = step_classes(l, e->fn);
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < outs->n; i++) {
    const Type *t = val_type(e->fn, e->out[i]);
    Output o = {
      .name = outs->kid[i]->text, .loc = outs->kid[i]->span, .per_step = c[e->out[i]] == STEP_linear};
    vec_push(l->a, &names, o.name);
    if (!is_scalar(t)) continue;
    for (uint32_t k = 0; k < p->minimize.n; k++)
      if (p->minimize.at[k].name == o.name) o.coef = p->minimize.at[k].coef;
    if (c[e->out[i]] == STEP_mixed)
      mixed_output(l, &o);
    vec_push(l->a, &l->m->output, o);
  }
  for (uint32_t k = 0; k < p->minimize.n; k++) {
    const Term *t = &p->minimize.at[k];
    bool found = false, scalar_output = false;
    for (uint32_t i = 0; i < names.n; i++) found |= names.at[i] == t->name;
    for (uint32_t i = 0; i < l->m->output.n; i++) scalar_output |= l->m->output.at[i].name == t->name;
    if (scalar_output) continue;
    if (found)
      lower_error(l, t->loc.line ? t->loc : p->model->ast->span, "MT0322",
                  "minimize: '%s' is no float without dims", t->name);
    else no_output(l, t, names.at, names.n);
  }
}

// ---- the functions ----------------------------------------------------------------------------------------
static void accumulate(Fn *f, VarId var, ValId v, Span loc, Str why) {
  Build b = {.fn = f, .loc = loc, .why = why, .path = ""};
  v = ir_cast(&b, v, DT_f64);
  ir_add(&b, OP_accumulate, &v, 1, (Attr){.var = var});
}

static void make_forward(Lower *l, const Elaborated *e, Str name) {
  const Ast *outs = l->p->model->ast->kid[1];
  ValId *pick = NEW_N(l->a, ValId, outs->n + 1), *got = NEW_N(l->a, ValId, outs->n + 1);
  Str *names = NEW_N(l->a, Str, outs->n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < outs->n; i++)
    if (is_scalar(val_type(e->fn, e->out[i]))) pick[n] = e->out[i], names[n++] = outs->kid[i]->text;
  Fn *f = fn_slice(l->m, e->fn, pick, n, name, got);
  for (uint32_t i = 0; i < n; i++) ir_return(f, got[i], names[i]);
}

// What a stepmean's condition may not depend on: a parameter, a random number.
static bool is_no_input(const Lower *l, const Node *n) {
  return n->op == OP_random || (n->op == OP_read && l->m->var.at[n->attr.var].kind == VAR_param);
}

static bool conditions_ok(Lower *l, const Elaborated *e) {
  const Fn *f = e->fn;
  NodeId *from = NEW_N(l->a, NodeId, f->val.n);  // the first such node that a value comes from, or 0
  for (NodeId i = 1; l->den.n && i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    NodeId bad = is_no_input(l, n) ? i : 0;
    for (uint32_t k = 0; k < n->nin && !bad; k++) bad = from[node_in(f, n)[k]];
    for (uint32_t k = 0; k < n->nout; k++) from[n->out + k] = bad;
  }
  for (uint32_t i = 0; i < l->den.n; i++) {
    const Node *n = fn_node(f, from[l->den.at[i].count]);
    if (!from[l->den.at[i].count]) continue;
    lower_error(l, l->den.at[i].loc, "MT0323", "'where' of stepmean depends on inputs only, and here on %s",
                n->op == OP_read ? arena_printf(l->a, "the parameter %s", l->m->var.at[n->attr.var].name)
                                 : "random numbers");
    lower_note(l, "its denominator is counted before the step begins");
    return false;
  }
  return true;
}

static void make_prologue(Lower *l, const Elaborated *e) {
  ValId *pick = NEW_N(l->a, ValId, l->den.n + 1), *got = NEW_N(l->a, ValId, l->den.n + 1);
  for (uint32_t i = 0; i < l->den.n; i++) pick[i] = l->den.at[i].count;
  Fn *f = fn_slice(l->m, e->fn, pick, l->den.n, intern(l->p->in, "prologue"), got);
  for (uint32_t i = 0; i < l->den.n; i++)
    accumulate(f, l->den.at[i].var, got[i], l->den.at[i].loc, "lower: denominator of a stepmean");
}

static void make_eval(Lower *l, const Elaborated *e) {
  const Ast *outs = l->p->model->ast->kid[1];
  ValId *pick = NEW_N(l->a, ValId, outs->n + 1), *got = NEW_N(l->a, ValId, outs->n + 1);
  Intern *in = l->p->in;
  uint32_t n = 0;
  for (uint32_t k = 0; k < outs->n; k++)
    if (is_scalar(val_type(e->fn, e->out[k]))) pick[n++] = e->out[k];
  Fn *f = fn_slice(l->m, e->fn, pick, n, intern(in, "eval"), got);
  for (uint32_t i = 0; i < n; i++) {
    const Output *o = &l->m->output.at[i];
    Build b = {.fn = f, .loc = o->loc, .why = "lower: output of the model", .path = ""};
    ValId v = ir_cast(&b, got[i], DT_f64);
    if (!o->per_step) v = ir_binary(&b, OP_mul, v, ir_read_var(&b, var_find(l->m, intern(in, "$inv_micro"))));
    accumulate(f, var_find(l->m, intern_printf(in, "$out.%s", o->name)), v, o->loc, b.why);
  }
  for (uint32_t i = n = 0; i < outs->n; i++)
    if (val_type(e->fn, e->out[i])->ndim) pick[n++] = e->out[i];
  f = fn_slice(l->m, e->fn, pick, n, intern(in, "logits"), got);
  for (uint32_t i = n = 0; i < outs->n; i++)
    if (val_type(e->fn, e->out[i])->ndim) ir_return(f, got[n++], outs->kid[i]->text);
}

// ---- decay ------------------------------------------------------------------------------------------------
static bool matches(const char *pattern, const char *name) {          // '*' is any part
  const char *star = 0, *from = 0;
  while (*name) {
    if (*pattern == '*') star = pattern++, from = name;
    else if (*pattern == *name) pattern++, name++;
    else if (star) pattern = star + 1, name = ++from;
    else return false;
  }
  while (*pattern == '*') pattern++;
  return !*pattern;
}

// The parameter's path, or one of its tensors, is meant.
static bool param_matches(const char *pattern, const Var *v, const Pieces *tensors) {
  bool hit = matches(pattern, v->name);
  for (uint32_t i = 0; i < tensors->n && !hit; i++) hit = matches(pattern, tensors->at[i].name);
  return hit;
}

static void decay_groups(Lower *l, const Pieces *tensors) {
  Program *p = l->p;
  for (int decays = 0; decays < 2; decays++)
    for (uint32_t i = 0; i < (decays ? p->decay.n : p->no_decay.n); i++) {
      Str pattern = decays ? p->decay.at[i] : p->no_decay.at[i];
      bool hit = false;
      for (VarId v = 1; v < l->m->var.n; v++) {
        Var *var = &l->m->var.at[v];
        if (var->kind == VAR_param && param_matches(pattern, var, &tensors[v]))
          var->decay = decays, hit = true;
      }
      if (hit) continue;
      lower_error(l, decays ? p->decay_at : p->no_decay_at, "MT0321", "%s = \"%s\" matches no parameter",
                  decays ? "decay" : "no_decay", pattern);
      lower_note(l, "a pattern matches a whole path, with * for any part; mtc dump --params lists them");
    }
}

// ---- checkpoint names -------------------------------------------------------------------------------------
// How many tensors the parameter is: the product of the extents of the dims in its holes; -1: very many.
static int64_t tensors_count(Lower *l, const Var *v) {
  int64_t n = 1;
  const Type *t = &l->m->type.at[v->type];
  for (int i = 0; i < t->ndim; i++) {
    const Dim *d = dim_of(l->m, t->dim[i]);
    bool hole = strstr(v->name, arena_printf(l->a, "{%s}", d->name)) ||
                strstr(v->name, arena_printf(l->a, "{%s:", d->name));
    if (hole && !mul_ok(n, d->extent, &n)) return -1;
  }
  return n;
}

// The tensors of each parameter with holes in its name; two of one name are an error.
static Pieces *tensors_of(Lower *l) {
  enum { MOST = 1 << 18 };
  int64_t count = 0;
  Pieces *all = NEW_N(l->a, Pieces, l->m->var.n);
  bool holes = false;
  Map owner;
  map_init(&owner, l->a);
  for (VarId v = 1; v < l->m->var.n; v++) holes |= strchr(l->m->var.at[v].name, '{') != 0;
  for (VarId v = 1; v < l->m->var.n && holes; v++) {
    const Var *var = &l->m->var.at[v];
    if (var->kind != VAR_param) continue;
    int64_t n = tensors_count(l, var);
    count += n < 0 ? MOST + 1 : MIN(n, MOST + 1);
    if (count > MOST)
      return lower_error(l, var->loc, "MT0269", "the parameters would be more than %d tensors", MOST), all;
    Storage s = var_storage(l->m, var);
    const char *why = storage_pieces(l->a, &s, &all[v]);
    if (why) lower_error(l, var->loc, "MT0269", "%s", why);
    for (uint32_t i = 0; i < all[v].n; i++) {
      Str name = intern(l->p->in, all[v].at[i].name);
      const uint64_t *was = map_get(&owner, key_of(name));
      VarId first = was ? (VarId)*was : 0;
      map_put(&owner, key_of(name), v);
      if (!first) continue;
      lower_error(l, var->loc, "MT0262", "two parameters have a tensor %s", name);
      lower_note_at(l, l->m->var.at[first].loc, "the first; give the calls different 'as'");
      break;
    }
  }
  return all;
}

// ---- rules without a use ----------------------------------------------------------------------------------
static DimId rule_dim(const Lower *l, const MapRule *r) {
  const uint64_t *d = map_get(&l->p->user.dim_by_name, key_of(r->dim));
  return d ? (DimId)*d : 0;
}

static bool rule_has(const MapRule *r, uint32_t axis) {
  bool has = false;
  for (uint32_t k = 0; k < r->naxis; k++) has |= r->axis[k] == axis;
  return has;
}

// An axis of several ranks with rules, all of which do nothing: its ranks would all do the same.
static void check_axis(Lower *l, uint32_t a, const bool *used) {
  const Module *m = l->m;
  const Axis *axis = &m->axis.at[a];
  const MapRule *of = 0;
  if (axis->size == 1) return;
  for (uint32_t i = 0; i < m->rule.n; i++) {
    const MapRule *r = &m->rule.at[i];
    DimId d = rule_dim(l, r);
    if (!rule_has(r, a)) continue;
    if (d && used[d] && (!r->weak || dim_of(m, d)->size % axis->size == 0)) return;
    of = of ? of : r;
  }
  if (!of) return;                           // one without rules is reported before
  lower_error(l, of->loc, "MT0313", "axis %s is %d and splits nothing", axis->name, axis->size);
  for (uint32_t i = 0; i < m->rule.n; i++) {
    const MapRule *r = &m->rule.at[i];
    DimId d = rule_dim(l, r);
    if (!rule_has(r, a)) continue;
    if (!d || !used[d]) lower_note_at(l, r->loc, "no value of the model has the dim '%s'", r->dim);
    else
      lower_note_at(l, r->loc, "%s = %lld is not divisible by %s = %d; legal %s: %s", r->dim,
                    (long long)dim_of(m, d)->size, axis->name, axis->size, axis->name,
                    divisors_text(l->a, dim_of(m, d)->size));
  }
}

static void check_rules(Lower *l) {
  const Program *p = l->p;
  bool *used = NEW_N(l->a, bool, l->m->dim.n + 1);
  for (TypeId t = 1; t < l->m->type.n; t++)
    for (int i = 0; i < l->m->type.at[t].ndim; i++) used[l->m->type.at[t].dim[i]] = true;
  for (uint32_t i = 0; i < p->said_map.n; i++)
    for (uint32_t k = 0; k < p->said_map.at[i]->kid[0]->n; k++) {
      const Ast *name = p->said_map.at[i]->kid[0]->kid[k];
      const uint64_t *d = name->kind == N_name ? map_get(&p->user.dim_by_name, key_of(name->text)) : 0;
      if (d && !used[*d])
        lower_error(l, name->span, "MT0318", "no value of the model has the dim '%s'", name->text);
    }
  for (uint32_t a = 0; a < l->m->axis.n; a++) check_axis(l, a, used);
}

Module *lower(Program *p) {
  Lower state = {.p = p, .m = p->module, .a = p->arena}, *l = &state;
  Elaborated train, eval;
  map_init(&l->den_var, l->a), map_init(&l->body, l->a), map_init(&l->bodies, l->a), map_init(&l->local, l->a), map_init(&l->locals, l->a),
    map_init(&l->reported, l->a);
  scalars(l);
  if (!elaborate(l, intern(p->in, "train"), true, &train)) return 0;
  outputs(l, &train);
  if (!conditions_ok(l, &train) || p->diag->errors) return lower_finish(l), (Module *)0;
  for (uint32_t i = 0; i < l->m->output.n; i++)
    scalar(l, arena_printf(l->a, "$out.%s", l->m->output.at[i].name), DT_f64, "an output of the step");
  make_forward(l, &train, intern(p->in, "forward"));
  make_prologue(l, &train);
  if (!elaborate(l, intern(p->in, "infer"), false, &eval)) return 0;
  make_eval(l, &eval);
  fn_remove(l->m, train.fn);
  fn_remove(l->m, eval.fn);
  decay_groups(l, tensors_of(l));
  check_rules(l);
  lower_finish(l);
  uncalled_check(p);
  return p->diag->errors ? 0 : l->m;
}
