// lower_call.c -- calls of fns and blocks: arguments against patterns, instantiation, results; composites
// stay one node with the body beside it.
#include "compiler/lower.h"
#include <string.h>

enum { HEIGHT_LIMIT = 4000 };  // of the bodies that call each other, together: the stack is bounded

// ---- headers as text --------------------------------------------------------------------------------------
// "i32[*, seq, embed?]": a pattern with the dims that its dim parameters stand for here.
static const char *pattern_show(const Lower *l, const Ast *t) {
  Text s;
  text_init(&s, l->a);
  text_printf(&s, "%s[", strcmp(t->text, "float") ? t->text : "");
  for (uint32_t i = 0; i < t->kid[0]->n; i++) {
    const Ast *d = t->kid[0]->kid[i];
    DimBind b;
    bool star = d->kind == N_star;
    text_printf(&s, "%s%s%s", i ? ", " : "",
                star                            ? "*"
                : dim_find_here(l, d->text, &b) ? dims_show(l, b.dim, b.n)
                                                : d->text,
                d->kind == N_maybe ? "?" : "");
  }
  text_puts(&s, "]");
  return s.s;
}

// "topk[d](x, k)", "attention[s, t, d](q, k, v, causal = …)": how it is called
static const char *form_of(const Lower *l, const Def *def) {
  Text s;
  text_init(&s, l->a);
  text_puts(&s, def->name);
  const Ast *dims = def->ast->kid[0], *formals = def->ast->kid[1];
  for (uint32_t i = 0; i < dims->n; i++) text_printf(&s, "%s%s", i ? ", " : "[", dims->kid[i]->text);
  text_puts(&s, dims->n ? "](" : "(");
  for (uint32_t i = 0; i < formals->n; i++)
    text_printf(&s, "%s%s%s", i ? ", " : "", formals->kid[i]->text,
                formals->kid[i]->kid[1]->kind == N_none ? "" : " = …");
  text_puts(&s, def->ast->kind == N_block ? ") as name" : ")");
  return s.s;
}

// ---- patterns ---------------------------------------------------------------------------------------------
typedef struct {                             // a type of a header, with the dims of l->frame
  const Ast *type;
  DimId must[MAX_DIMS], may[MAX_DIMS], own[64];    // own: all that the function's dim parameters stand for
  uint32_t nmust, nmay, nown;
  bool star;
} Pattern;

static bool pattern_dim(Lower *l, Pattern *p, const Ast *d) {
  DimBind b;
  if (!dim_find_here(l, d->text, &b)) return no_dim(l, d->span, d->text), false;
  if (!b.n) return false;
  for (uint32_t k = 0; k < b.n; k++) {
    if (dims_have(p->must, p->nmust, b.dim[k]) || dims_have(p->may, p->nmay, b.dim[k])) {
      lower_error(l, d->span, "MT0214", "%s occurs twice", dim_word(l, b.dim[k]));
      lower_note(l, "declare a role, a second dim of the same extent: dim k%s = %s", dim_word(l, b.dim[k]),
                 dim_word(l, b.dim[k]));
      return false;
    }
    if (p->nmust + p->nmay == MAX_DIMS)
      return lower_error(l, d->span, "MT0215", "more than %d dims", MAX_DIMS);
    if (d->kind == N_maybe) p->may[p->nmay++] = b.dim[k];
    else p->must[p->nmust++] = b.dim[k];
  }
  return true;
}

static bool pattern_read(Lower *l, Pattern *p, const Ast *type) {
  *p = (Pattern){.type = type};
  for (uint32_t i = 0; i < type->kid[0]->n; i++) {
    const Ast *d = type->kid[0]->kid[i];
    if (d->kind == N_star) p->star = true;
    else if (d->kind != N_none && !pattern_dim(l, p, d)) return false;
  }
  const Ast *params = l->frame->def->ast->kid[0];
  for (uint32_t i = 0; i < params->n; i++) {
    DimBind b;
    if (dim_find_here(l, params->kid[i]->text, &b))
      for (uint32_t k = 0; k < b.n && p->nown < COUNT(p->own); k++) p->own[p->nown++] = b.dim[k];
  }
  return true;
}

static DimId pattern_lacks(const Pattern *p,
                           const Type *have) {  // a dim of the pattern that the value lacks, or 0
  for (uint32_t i = 0; i < p->nmust; i++)
    if (type_pos(have, p->must[i]) < 0) return p->must[i];
  return 0;
}

static DimId pattern_extra(const Pattern *p,
                           const Type *have) {  // a dim of the value that the pattern does not allow
  for (int i = 0; i < have->ndim; i++) {
    DimId d = have->dim[i];
    if (dims_have(p->must, p->nmust, d) || dims_have(p->may, p->nmay, d)) continue;
    if (!p->star || dims_have(p->own, p->nown, d)) return d;
  }
  return 0;
}

static bool pattern_dtype(const Pattern *p, const Type *have) {
  DType t = dtype_find(p->type->text);
  if (dtype_is_float(t)) return type_is_float(have);
  return t == have->dtype ||
         (dtype_is_int(t) && dtype_is_int(have->dtype) && dtype_wider(t, have->dtype) == t);
}

// What to write where an argument has other dims than the pattern.
static void argument_hint(Lower *l, const Pattern *p, const Def *def, Val v, DimId lacks, DimId extra,
                          const char *words) {
  const Type *have = val_shape(l, v);
  for (int i = 0; i < have->ndim && lacks; i++) {
    if (!dims_are_roles(l, have->dim[i], lacks) || dims_have(p->must, p->nmust, have->dim[i])) continue;
    lower_note(l, "rename[%s -> %s](%s)?", dim_word(l, have->dim[i]), dim_word(l, lacks), words);
    return;
  }
  if (lacks || !extra) return;
  if (p->star)
    lower_note(l, "%s works along %s, so it may not be one of the other dims: rename it first", def->name,
               dim_word(l, extra));
  else lower_note(l, "[*, …] in the header of %s would allow other dims", def->name);
}

// The argument `as` of a call against the type of the callee's header; l->frame is the callee's.
static bool argument_ok(Lower *l, Val v, const Ast *type, const char *formal, const Arg *a, Span place) {
  Frame *callee = l->frame;
  Pattern p;
  if (!pattern_read(l, &p, type)) return false;
  const char *want = pattern_show(l, type);
  const Def *def = callee->def;
  if (!v.tensor) {
    if (number_fits(v.number, dtype_find(type->text))) return true;
    l->frame = callee->up;
    lower_error(l, place, "MT0217", "%s wants %s: %s, got %s", def->name, formal, want, val_show(l, v));
    l->frame = callee;
    return false;
  }
  const Type *have = val_shape(l, v);
  DimId lacks = pattern_lacks(&p, have), extra = pattern_extra(&p, have);
  bool dtype = pattern_dtype(&p, have);
  if (!lacks && !extra && dtype) return true;
  const char *words = a ? expr_words(l, a->ast) : formal;
  l->frame = callee->up;  // an argument's mistake is the caller's
  if (lacks)
    lower_error(l, place, "MT0206", "%s wants %s: %s, got %s, which lacks %s", def->name, formal, want,
                val_show(l, v), dim_word(l, lacks));
  else if (extra)
    lower_error(l, place, "MT0207", "%s wants %s: %s, got %s, which also has %s", def->name, formal, want,
                val_show(l, v), dim_word(l, extra));
  else
    lower_error(l, place, "MT0217", "%s wants %s: %s%s, got %s", def->name, formal,
                dtype_is_float(dtype_find(type->text)) && !strcmp(type->text, "float") ? "float" : "", want,
                val_show(l, v));
  if (lacks || extra) argument_hint(l, &p, def, v, lacks, extra, words);
  else if (dtype_is_float(dtype_find(type->text))) lower_note(l, "write float(%s)", words);
  else if (have->dtype != DT_bool || dtype_find(type->text) != DT_bool)
    lower_note(l, "write %s(%s)", type->text, words);
  l->frame = callee;
  return false;
}

// A result against the header; l->frame is the callee's.
static bool result_ok(Lower *l, Val v, const Ast *type, Span place) {
  Pattern p;
  if (!pattern_read(l, &p, type)) return false;
  const Def *def = l->frame->def;
  const char *want = pattern_show(l, type);
  if (!v.tensor) {
    if (number_fits(v.number, dtype_find(type->text))) return true;
    lower_error(l, place, "MT0217", "%s promises %s%s, returns %s", def->name,
                strcmp(type->text, "float") ? "" : "float", want, val_show(l, v));
    lower_note_at(l, type->span, "the header");
    return false;
  }
  const Type *have = val_shape(l, v);
  if (pattern_lacks(&p, have) || pattern_extra(&p, have))
    lower_error(l, place, "MT0208", "%s promises %s, returns %s", def->name, want, val_show(l, v));
  else if (!pattern_dtype(&p, have))
    lower_error(l, place, "MT0217", "%s promises %s%s, returns %s", def->name,
                strcmp(type->text, "float") ? "" : "float", want, val_show(l, v));
  else return true;
  lower_note_at(l, type->span, "the header");
  return false;
}

// float to float: to the dtype that the pattern's word means here
static Val convert_float(Lower *l, Val v, const Ast *t, DType flt, bool widen_only, Span at) {
  if (!v.tensor || !type_is_float(val_shape(l, v))) {
    DType dt = dtype_find(t->text);
    return v.tensor && dtype_is_int(dt) ? to_dtype(l, v, dt, at) : v;
  }
  DType have = val_shape(l, v)->dtype, want = dtype_find(t->text);
  if (want == DT_float) want = flt;
  if (widen_only && strcmp(t->text, "float") == 0 && dtype_wider(have, want) == have) return v;
  return to_dtype(l, v, want, at);
}

// ---- composites -------------------------------------------------------------------------------------------
typedef struct { Str name; Val val; const Ast *type; } Bound;          // a formal; type 0: a number

static bool is_composite(const Lower *l, const Def *def, const Frame *f, const Bound *bound, uint32_t n) {
  Op op = op_find(def->name);
  if (def->scope != &l->p->prelude || op == OP_none || !op_has(op, OPF_COMPOSITE)) return false;
  for (uint32_t i = 0; i < f->dim.n; i++)
    if (f->dim.at[i].n != 1) return false;                             // a group: the brackets would not tell
  int tensors = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!bound[i].val.tensor && bound[i].val.number.kind == NUM_string) return false;
    tensors += bound[i].val.tensor;
  }
  return op_info[op].nin < 0 || tensors >= op_info[op].nin;  // a number for an operand: the definition, in line
}

// Random numbers belong to the instance: it has a body of its own, which gets the step and the sample as its
// last arguments.
static bool draws(const Lower *l, const Bound *bound, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (l->training && !strcmp(bound[i].name, "dropout") && !bound[i].val.tensor &&
        bound[i].val.number.num > 0)
      return true;
  return false;
}

static uint64_t signature(const Lower *l, const Frame *f, const Bound *bound, uint32_t n, const Attr *at) {
  uint64_t h = hash_mix(key_of(f->def), hash_bytes(at->dims, at->ndims * sizeof *at->dims, f->flt));
  for (uint32_t i = 0; i < n; i++)
    h = hash_mix(h, bound[i].val.tensor ? l->fn->val.at[bound[i].val.v].type
                                        : hash_bytes(&bound[i].val.number.num, sizeof(double), 7));
  return h;
}

static FnId body_of(Lower *l, Frame *f, const Bound *bound, uint32_t n, const Attr *at) {
  const Def *def = f->def;
  uint64_t h = signature(l, f, bound, n, at);
  bool own = draws(l, bound, n);
  const uint64_t *known = own ? 0 : map_get(&l->body, h);
  if (known) return (FnId)*known;
  Fn *outer = l->fn, *body;
  const uint64_t *made = map_get(&l->bodies, key_of(def));
  uint64_t k = made ? *made + 1 : 1;
  map_put(&l->bodies, key_of(def), k);
  body = fn_create(l->m, intern_printf(l->p->in, "%s.%llu", def->name, (unsigned long long)k));
  body->is_body = true, body->body_of = op_find(def->name);
  for (uint32_t i = 0; i < n; i++) {
    Val v = bound[i].val;
    if (v.tensor) v.v = ir_arg(body, outer->val.at[v.v].type, bound[i].name);
    named_add(l, f, bound[i].name, v, (Span){0});
  }
  Str path = f->path;
  uint32_t layer = l->layer;
  ValId step = l->step, sample = l->sample;
  l->step = l->sample = 0;
  if (own) {
    TypeId i64 = type_make(l->m, DT_i64, 0, 0);
    l->step = ir_arg(body, i64, intern(l->p->in, "step")),
    l->sample = ir_arg(body, i64, intern(l->p->in, "sample"));
  } else f->path = "";
  f->why = intern_printf(l->p->in, "prelude: %s", def->name);
  l->fn = body, l->layer = 0;
  Vals out = {0};
  const Ast *t = def->ast->kid[2]->kid[0];
  if (stmts_run(l, def->ast->kid[3], &out) && out.n == 1 && out.at[0].tensor)
    ir_return(body, convert_float(l, out.at[0], t, f->flt, false, def->ast->span).v, "");
  l->fn = outer, l->layer = layer, f->path = path, l->step = step, l->sample = sample;
  FnId id = body->ret.n && !l->stop ? fn_id(body) : 0;
  l->nodes += body->node.n;
  if (id && !own) map_put(&l->body, h, id);
  return id;
}

static Val composite(Lower *l, Frame *f, const Bound *bound, uint32_t n, Span at) {
  Attr attr = {0};
  ValId in[MAX_DIMS + 2];
  uint32_t nin = 0;
  NamedNum *args = NEW_N(l->a, NamedNum, n + 1);
  for (uint32_t i = 0; i < f->dim.n; i++) attr.dims[attr.ndims++] = f->dim.at[i].dim[0];
  for (uint32_t i = 0; i < n; i++) {
    if (bound[i].val.tensor) in[nin++] = bound[i].val.v;
    else args[attr.nargs++] = (NamedNum){bound[i].name, bound[i].val.number.num};
  }
  attr.args = args;
  Op op = op_find(f->def->name);
  if (op == OP_dispatch || op == OP_combine)
    l->m->dim.at[attr.dims[3]].ragged = true;  // places: as many as tokens came
  FnId body = body_of(l, f, bound, n, &attr);
  if (!body) return val_error();
  const Fn *fn = l->m->fn.at[body];
  TypeId type = fn->val.at[fn->ret.at[0]].type;
  f->why = f->up->why;
  l->frame = f->up;
  Build b = at_span(l, at);
  l->frame = f;
  if (draws(l, bound, n)) draw_place(l, &b, in + nin), nin += 2;
  return val_tensor(l, ir_add_typed(&b, op, in, nin, attr, &type, 1, body), at);
}

// ---- binding ----------------------------------------------------------------------------------------------
static const Def *def_find(const Lower *l, Str name) {
  for (const Scope *s = l->frame->scope; s; s = s->up) {
    const uint64_t *at = map_get(&s->def_by_name, key_of(name));
    if (at) return &s->def.at[*at];
  }
  return 0;
}

static void fail_call(Lower *l, const Def *def, Vals *out) {
  uint32_t n = def->ast->kind == N_model ? 1 : def->ast->kid[2]->n;
  for (uint32_t i = 0; i < n; i++) vec_push(l->a, out, val_error());
}

static bool bind_dims(Lower *l, Frame *f, const Ast *e) {              // evaluated in the caller
  const Ast *params = f->def->ast->kid[0], *given = e->kid[0];
  if (params->n != given->n || e->kid[1]->n) {
    if (e->kid[1]->n)
      lower_error(l, name_span(e), "MT0240", "%s takes no '->' in its brackets", f->def->name);
    else if (!params->n) lower_error(l, name_span(e), "MT0240", "%s takes no dims in brackets", f->def->name);
    else
      lower_error(l, name_span(e), "MT0240", "%s takes %u dim%s, got %s", f->def->name, params->n,
                  params->n == 1 ? "" : "s", given->n ? arena_printf(l->a, "%u", given->n) : "none");
    lower_note(l, "write %s", form_of(l, f->def));
    return false;
  }
  for (uint32_t i = 0; i < given->n; i++) {
    DimId few[MAX_DIMS];
    uint32_t n = 0;
    Ast one = {.kind = N_list, .n = 1, .kid = &((Ast *)given)->kid[i]};
    if (!dims_eval(l, &one, few, &n)) return false;
    DimId *dim = NEW_N(l->a, DimId, n + 1);
    memcpy(dim, few, n * sizeof *few);
    vec_push(l->a, &f->dim, (DimBind){params->kid[i]->text, n, dim});
    map_put(&f->dim_by_name, key_of(params->kid[i]->text), f->dim.n);
  }
  return true;
}

typedef struct {                             // the arguments of a call
  const Arg *arg;
  uint32_t n, pos;
  bool *used;
  Map label;                                 // -> index of the argument; the first of several
} Given;

static Given given_of(Lower *l, const Arg *arg, uint32_t n) {
  Given g = {.arg = arg, .n = n, .used = NEW_N(l->a, bool, n + 1)};
  for (uint32_t k = 0; k < n; k++) {
    if (!*arg[k].label) continue;
    if (!g.label.arena) map_init(&g.label, l->a);
    if (!map_get(&g.label, key_of(arg[k].label))) map_put(&g.label, key_of(arg[k].label), k);
  }
  return g;
}

// The argument for a formal: the next positional one, or the one with its label; 0 when there is none.
static const Arg *given_for(Lower *l, Given *g, const Def *def, const Ast *formal, bool *ok) {
  const Arg *a = 0;
  while (g->pos < g->n && *g->arg[g->pos].label) g->pos++;
  if (g->pos < g->n) a = &g->arg[g->pos], g->used[g->pos++] = true;
  const uint64_t *k = g->label.arena ? map_get(&g->label, key_of(formal->text)) : 0;
  if (!k) return a;
  if (a)
    lower_error(l, g->arg[*k].at, "MT0242", "'%s' of %s is given twice", formal->text, def->name),
      *ok = false;
  return g->used[*k] = true, &g->arg[*k];
}

// A label that the function does not have; false: there is none.
static bool label_unknown(Lower *l, const Def *def, const Given *g) {
  const Ast *formals = def->ast->kid[1];
  if (!g->label.arena) return false;
  Map known;
  map_init(&known, l->a);
  for (uint32_t i = 0; i < formals->n; i++) map_put(&known, key_of(formals->kid[i]->text), 1);
  for (uint32_t k = 0; k < g->n; k++) {
    const Arg *a = &g->arg[k];
    if (!*a->label || map_get(&known, key_of(a->label))) continue;
    VEC(Str) names = {0};
    for (uint32_t i = 0; i < formals->n; i++) vec_push(l->a, &names, formals->kid[i]->text);
    lower_error(l, a->at, "MT0242", "%s has no argument '%s'", def->name, a->label);
    lower_suggest(l, a->label, names.at, names.n);
    lower_note(l, "write %s", form_of(l, def));
    return true;
  }
  return false;
}

static void surplus(Lower *l, const Def *def, const Arg *a) {
  uint32_t n = def->ast->kid[1]->n;
  if (*a->label) lower_error(l, a->at, "MT0242", "'%s' of %s is given twice", a->label, def->name);
  else lower_error(l, a->at, "MT0242", "%s takes %u argument%s", def->name, n, n == 1 ? "" : "s");
  lower_note(l, "write %s", form_of(l, def));
}

// Formals from arguments: positional first, then by label; a default sees the callee's dims and the formals
// before it.
static bool bind_args(Lower *l, Frame *f, const Ast *e, const Arg *arg, uint32_t nargs, Bound *bound) {
  const Ast *formals = f->def->ast->kid[1];
  Given given = given_of(l, arg, nargs);
  bool ok = !label_unknown(l, f->def, &given);
  Frame *caller = l->frame;
  for (uint32_t i = 0; i < formals->n && ok; i++) {
    const Ast *fm = formals->kid[i], *type = fm->kid[0]->kind == N_type ? fm->kid[0] : 0;
    const Arg *a = given_for(l, &given, f->def, fm, &ok);
    if (!a && fm->kid[1]->kind == N_none) {
      lower_error(l, name_span(e), "MT0241", "%s needs '%s'", f->def->name, fm->text);
      lower_note(l, "write %s", form_of(l, f->def));
      return false;
    }
    l->frame = f;
    Val v = a ? a->val : expr_eval(l, fm->kid[1]);
    Span place = a ? a->at : name_span(e);
    if (val_is_error(v)) ok = false;
    else if (type) ok &= argument_ok(l, v, type, fm->text, a, place);
    else if (v.tensor) {
      l->frame = caller;
      lower_error(l, place, "MT0245", "'%s' of %s is a number, got %s", fm->text, f->def->name,
                  val_show(l, v));
      lower_note(l, "write %s", form_of(l, f->def));
      ok = false;
    }
    if (ok && type) v = convert_float(l, v, type, f->flt, true, place);
    bound[i] = (Bound){fm->text, v, type};
    l->frame = caller;
    Span at = a && a->ast->kind == N_name ? a->ast->span : fm->span;
    named_add(l, f, fm->text, v, at);
  }
  for (uint32_t k = 0; k < nargs && ok; k++)
    if (!given.used[k]) surplus(l, f->def, &arg[k]), ok = false;
  return ok;
}

// ---- results ----------------------------------------------------------------------------------------------
static Span result_span(const Frame *f, uint32_t i,
                        uint32_t n) {  // of the i-th of n values that were returned
  const Ast *r = f->returned;
  if (!r) return f->def->ast->span;
  return r->kid[0]->n == n ? r->kid[0]->kid[i]->span : r->span;
}

static bool local_escapes(Lower *l, const Frame *f, Val v, Span place) {
  const Type *have = val_shape(l, v);
  for (int k = 0; k < have->ndim; k++) {
    if (!dims_have(f->local.at, f->local.n, have->dim[k])) continue;
    lower_error(l, place, "MT0209", "the result is %s, and '%s' exists only inside %s", val_show(l, v),
                dim_word(l, have->dim[k]), f->def->name);
    lower_note(l, "merge or reduce it, or make it a dim parameter of %s", f->def->name);
    return true;
  }
  return false;
}

static bool results(Lower *l, Frame *f, Vals *got, Vals *out) {        // in the callee's frame
  const Ast *types = f->def->ast->kid[2];
  for (uint32_t i = 0; i < got->n; i++)
    if (val_is_error(got->at[i])) return false;
  if (got->n != types->n) {
    return lower_error(l, result_span(f, 0, 0), "MT0246", "%s promises %u value%s, returns %u", f->def->name,
                       types->n, types->n == 1 ? "" : "s", got->n);
  }
  for (uint32_t i = 0; i < got->n; i++) {
    Val v = got->at[i];
    const Ast *t = types->kid[i];
    Span place = result_span(f, i, got->n);
    if (v.tensor && local_escapes(l, f, v, place)) return false;
    if (!result_ok(l, v, t, place)) return false;
    if (v.tensor) v = convert_float(l, v, t, f->up->flt, false, f->call->span);
    else if (t->kid[0]->n == 0 && v.number.kind == NUM_number)
      v = to_dtype(l, v, !strcmp(t->text, "float") ? f->up->flt : dtype_find(t->text), t->span);
    vec_push(l->a, out, v);
  }
  return true;
}

// ---- calls ------------------------------------------------------------------------------------------------
static Str call_path(Lower *l, const Frame *caller,
                     const Ast *e) {  // the caller's path, then the call's `as`; 0: an error
  const Ast *as = e->kid[3];
  if (as->kind != N_as) return caller->path;
  Str word = path_fill(l, as, as->text);
  return !word ? 0 : *caller->path ? intern_printf(l->p->in, "%s.%s", caller->path, word) : word;
}

static bool nests(Lower *l, const Def *def, const Ast *e) {
  for (const Frame *f = l->frame; f; f = f->up) {
    if (f->def != def) continue;
    const char *chain = def->name;
    uint32_t n = 0;
    for (const Frame *g = l->frame;; g = g->up) {
      if (++n <= 6 || g == f)
        chain = arena_printf(l->a, "%s → %s",
                             n <= 6 ? g->def->name : arena_printf(l->a, "%s → …", g->def->name), chain);
      if (g == f) break;
    }
    return lower_error(l, name_span(e), "MT0227", "%s calls itself: %s", def->name, chain);
  }
  if (l->frame->depth + def->ast->height <= HEIGHT_LIMIT) return true;
  lower_error(l, name_span(e), "MT0229", "calls nest too deeply");
  return l->stop = true, false;
}

static bool run_body(Lower *l, Frame *f, const Ast *e, const Bound *bound, Vals *got) {
  const Def *def = f->def;
  uint32_t n = def->ast->kid[1]->n, errors = l->p->diag->errors;
  if (is_composite(l, def, f, bound, n)) {
    f->val.n = 0;
    map_init(&f->val_by_name, l->a);
    Val v = composite(l, f, bound, n, e->span);
    vec_push(l->a, got, v);
    return true;
  }
  if (def->scope == &l->p->prelude && f->up->scope != def->scope)
    f->why = intern_printf(l->p->in, "prelude: %s", def->name);
  if (stmts_run(l, def->ast->kid[3], got)) return true;
  if (!l->stop && l->p->diag->errors == errors)
    lower_error(l, def->ast->span, "MT0251", "%s does not return on this path", def->name);
  return false;
}

static bool instantiate(Lower *l, const Def *def, const Ast *e, const Arg *arg, uint32_t nargs, Vals *out) {
  Frame *caller = l->frame, *f = NEW(l->a, Frame);
  if (def->ast->kind == N_model)
    return lower_error(l, name_span(e), "MT0222", "%s is a model and cannot be called", def->name);
  if (def->ast->kind == N_fn && e->kid[3]->kind == N_as)
    return lower_error(l, e->kid[3]->span, "MT0243", "%s is a fn and has no parameters; remove 'as %s'",
                       def->name, e->kid[3]->text);
  *f = (Frame){.up = caller,
               .def = def,
               .call = e,
               .scope = def->scope,
               .path = call_path(l, caller, e),
               .why = caller->why,
               .depth = caller->depth + def->ast->height};
  if (!f->path) return false;
  f->flt = def->keep != DT_none ? dtype_wider(caller->flt, def->keep) : caller->flt;
  map_init(&f->dim_by_name, l->a), map_init(&f->val_by_name, l->a), map_init(&f->ended, l->a);
  Bound *bound = NEW_N(l->a, Bound, def->ast->kid[1]->n + 1);
  if (!nests(l, def, e) || !bind_dims(l, f, e) || !bind_args(l, f, e, arg, nargs, bound)) return false;
  Vals got = {0};
  uint32_t before = out->n;
  l->frame = f;
  bool ok = run_body(l, f, e, bound, &got) && results(l, f, &got, out);
  l->frame = caller;
  if (!ok) out->n = before;
  return ok;
}

// What others call it.
static const char *foreign(Str name) {
  static const struct { const char *names, *here;
  } table[] = {{" where masked_fill if_else ", "select(condition, a, b)"},
               {" matmul mm bmm dot ", "a @ b"},
               {" einsum tensordot ", "a @[d, e] b"},
               {" transpose permute contiguous swapaxes ", "nothing: the order of dims is no part of a type"},
               {" reshape view flatten unflatten rearrange ", "split[d -> a, b](x) or merge[a, b -> d](x)"},
               {" unsqueeze broadcast repeat_interleave tile ", "expand[d](x)"},
               {" squeeze ", "sum[d](x)"},
               {" arange iota range ", "index(d)"},
               {" pow ", "x ^ y"},
               {" cat concat concatenate ", "stack[d](x, y)"},
               {" chunk ", "unstack[d](x)"},
               {" size shape len dim numel ", "extent(d)"},
               {" roll ", "shift[d](x, by)"},
               {" layer_norm ", "layernorm[d](x, g, b)"},
               {" rms_norm ", "rmsnorm[d](x, g)"},
               {" rand uniform ", "random(x)"},
               {" stop_gradient no_grad ", "detach(x)"},
               {" take embedding index_select ", "gather[d](x, i)"},
               {" clamp clip ", "min(max(x, lo), hi)"},
               {" square ", "x ^ 2"},
               {" argmax ", "topk[d](x, 1)"}};
  if (strlen(name) > 20) return 0;
  char word[24];
  snprintf(word, sizeof word, " %s ", name);
  for (size_t i = 0; i < COUNT(table); i++)
    if (strstr(table[i].names, word)) return table[i].here;
  return 0;
}

static void no_function(Lower *l, const Ast *e) {
  VEC(Str) names = {0};
  for (const Scope *s = l->frame->scope; s; s = s->up)
    for (uint32_t i = 0; i < s->def.n; i++) vec_push(l->a, &names, s->def.at[i].name);
  for (size_t i = 0; prim_name(i); i++) vec_push(l->a, &names, prim_name(i));
  lower_error(l, name_span(e), "MT0222", "no function '%s'", e->text);
  if (foreign(e->text)) lower_note(l, "here that is %s", foreign(e->text));
  else lower_suggest(l, e->text, names.at, names.n);
}

void call_eval(Lower *l, const Ast *e, Vals *out) {
  const Def *def = def_find(l, e->text);
  const Ast *args = e->kid[2];
  uint32_t before = out->n;
  if (!budget(l, e->span, 1)) { vec_push(l->a, out, val_error()); return; }
  if (!def && !prim_known(e->text)) {
    no_function(l, e);
    vec_push(l->a, out, val_error());
    return;
  }
  bool dims_only = !def && prim_takes_dims(e->text);
  Arg *arg = NEW_N(l->a, Arg, args->n + 1);
  for (uint32_t i = 0; i < args->n; i++) {
    const Ast *x = args->kid[i];
    bool plain = x->kind == N_arg;                                     // else something with an error
    arg[i] = (Arg){plain ? x->text : "", plain ? x->kid[0] : x, x->span,
                   dims_only || !plain ? val_error() : expr_eval(l, x->kid[0])};
  }
  if (def) {
    if (!instantiate(l, def, e, arg, args->n, out)) fail_call(l, def, out);
  } else if (e->kid[3]->kind == N_as) {
    lower_error(l, e->kid[3]->span, "MT0243", "%s has no parameters; remove 'as %s'", e->text,
                e->kid[3]->text);
    vec_push(l->a, out, val_error());
  } else if (!prim_eval(l, e, arg, args->n, out) && out->n == before)
    vec_push(l->a, out, val_error());
}
