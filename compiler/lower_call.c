// lower_call.c -- calls of fns and blocks: arguments against patterns, instantiation, results; composites stay one node
// with the body beside it.
#include "compiler/lower.h"
#include <string.h>

enum { DEPTH_LIMIT = 200 };

static const char *type_pattern(const Lower *l, const Ast *t) {        // "i32[*, d?]" as written, "[…]" for float
  Text s;
  text_init(&s, l->a);
  text_printf(&s, "%s[", strcmp(t->text, "float") ? t->text : "");
  for (uint32_t i = 0; i < t->kid[0]->n; i++) {
    const Ast *d = t->kid[0]->kid[i];
    text_printf(&s, "%s%s", i ? ", " : "", d->kind == N_star ? "*" : arena_printf(l->a, "%s%s", d->text, d->kind == N_maybe ? "?" : ""));
  }
  text_puts(&s, "]");
  return s.s;
}

static bool in_set(const DimId *set, uint32_t n, DimId d) {
  for (uint32_t i = 0; i < n; i++)
    if (set[i] == d) return true;
  return false;
}

// ---- patterns -----------------------------------------------------------------------------------------------------
// The tensor v against pattern t, whose dims are those of l->frame. what: "attention wants k", "Layer promises".
// place: where the message points; as: the value's expression or 0.
static bool pattern_ok(Lower *l, Val v, const Ast *t, bool result, const char *what, Span place, const Ast *as) {
  DimId must[64], may[64], own[64];
  uint32_t nmust = 0, nmay = 0, nown = 0;
  bool star = false;
  const Type *have = val_shape(l, v);
  for (uint32_t i = 0; i < t->kid[0]->n; i++) {
    const Ast *d = t->kid[0]->kid[i];
    DimBind b;
    if (d->kind == N_star) { star = true; continue; }
    if (!dim_find_here(l, d->text, &b)) {
      lower_error(l, d->span, "MT0220", "no dim '%s'", d->text);
      return false;
    }
    for (uint32_t k = 0; k < b.n; k++) {
      if (d->kind == N_maybe ? nmay == COUNT(may) : nmust == COUNT(must)) return lower_error(l, d->span, "MT0215", "more than %d dims", MAX_DIMS), false;
      if (d->kind == N_maybe) may[nmay++] = b.dim[k];
      else must[nmust++] = b.dim[k];
    }
  }
  const Ast *params = l->frame->def->ast->kind == N_model ? 0 : l->frame->def->ast->kid[0];
  for (uint32_t i = 0; params && i < params->n; i++) {
    DimBind b;
    if (dim_find_here(l, params->kid[i]->text, &b))
      for (uint32_t k = 0; k < b.n && nown < COUNT(own); k++) own[nown++] = b.dim[k];
  }
  const char *want = type_pattern(l, t), *code = 0;
  const Dim *lacks = 0, *extra = 0;
  for (uint32_t i = 0; i < nmust && !lacks; i++)
    if (type_pos(have, must[i]) < 0) lacks = dim_of(l->m, must[i]), code = "MT0206";
  for (int i = 0; i < have->ndim && !extra; i++)
    if (!in_set(must, nmust, have->dim[i]) && !in_set(may, nmay, have->dim[i]) && (!star || in_set(own, nown, have->dim[i])))
      extra = dim_of(l->m, have->dim[i]), code = lacks ? code : "MT0207";
  DType dt = dtype_find(t->text);
  bool dtype_ok = dtype_is_float(dt) ? type_is_float(have) : dt == have->dtype || (dtype_is_int(dt) && dtype_is_int(have->dtype) && dtype_wider(dt, have->dtype) == dt);
  Frame *callee = l->frame;
  if (!code && dtype_ok) return true;
  if (!result) l->frame = callee->up;                                  // an argument's mistake is the caller's
  if (result && code)
    lower_error(l, place, "MT0208", "%s %s, returns %s", what, want, val_show(l, v));
  else if (!code)
    lower_error(l, place, "MT0217", "%s: %s, got %s", what, want, val_show(l, v));
  else
    lower_error(l, place, code, "%s: %s, got %s, which %s %s", what, want, val_show(l, v), lacks ? "lacks" : "also has", lacks ? lacks->name : extra->name);
  if (lacks && !result)
    for (int i = 0; i < have->ndim; i++) {
      const Dim *d = dim_of(l->m, have->dim[i]);
      if (d->extent == lacks->extent && !in_set(must, nmust, have->dim[i]) ) {
        diag_note(l->p->diag, "rename[%s -> %s](%s)?", d->name, lacks->name, as ? expr_words(l, as) : "…");
        break;
      }
    }
  else if (extra && !lacks && !result && in_set(own, nown, (DimId)(extra - l->m->dim.at)))
    diag_note(l->p->diag, "%s would be a batch dim of the product; rename it first", extra->name);
  l->frame = callee;
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

// ---- composites ---------------------------------------------------------------------------------------------------
typedef struct { Str name; Val val; const Ast *type; } Bound;          // a formal; type 0: a number

static bool is_composite(const Lower *l, const Def *def, const Frame *f, const Bound *bound, uint32_t n) {
  Op op = op_find(def->name);
  if (def->scope != &l->p->prelude || op == OP_none || !op_has(op, OPF_COMPOSITE)) return false;
  for (uint32_t i = 0; i < f->dim.n; i++)
    if (f->dim.at[i].n != 1) return false;                             // a group: the brackets would not tell
  for (uint32_t i = 0; i < n; i++)                                     // random numbers belong to the instance, a body to all
    if (l->training && !strcmp(bound[i].name, "dropout") && !bound[i].val.tensor && bound[i].val.number.num > 0) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!bound[i].val.tensor && bound[i].val.number.kind == NUM_string) return false;
  return true;
}

static FnId body_of(Lower *l, Frame *f, const Bound *bound, uint32_t n, const Attr *at) {
  const Def *def = f->def;
  uint64_t h = hash_mix(key_of(def), hash_bytes(at->dims, at->ndims * sizeof *at->dims, f->flt));
  for (uint32_t i = 0; i < n; i++)
    h = hash_mix(h, bound[i].val.tensor ? l->fn->val.at[bound[i].val.v].type : hash_bytes(&bound[i].val.number.num, sizeof(double), 7));
  const uint64_t *known = map_get(&l->body, h);
  if (known) return (FnId)*known;
  Fn *outer = l->fn, *body = 0;
  for (uint32_t k = 1; !body; k++) {
    Str name = intern_printf(l->p->in, "%s.%u", def->name, k);
    if (!fn_find(l->m, name)) body = fn_create(l->m, name);
  }
  body->is_body = true, body->body_of = op_find(def->name);
  for (uint32_t i = 0; i < n; i++) {
    Val v = bound[i].val;
    if (v.tensor) v.v = ir_arg(body, outer->val.at[v.v].type, bound[i].name);
    vec_push(l->a, &f->val, (Named){.name = bound[i].name, .val = v});
    map_put(&f->val_by_name, key_of(bound[i].name), f->val.n);
  }
  Str path = f->path;
  uint32_t layer = l->layer;
  f->path = "", f->why = intern_printf(l->p->in, "prelude: %s", def->name);
  l->fn = body, l->layer = 0;
  Vals out = {0};
  const Ast *t = def->ast->kid[2]->kid[0];
  if (stmts_run(l, def->ast->kid[3], &out) && out.n == 1 && out.at[0].tensor)
    ir_return(body, convert_float(l, out.at[0], t, f->flt, false, def->ast->span).v, "");
  l->fn = outer, l->layer = layer, f->path = path;
  FnId id = body->ret.n ? fn_id(body) : 0;
  if (id) map_put(&l->body, h, id);
  return id;
}

static Val composite(Lower *l, Frame *f, const Bound *bound, uint32_t n, Span at) {
  Attr attr = {0};
  ValId in[MAX_DIMS];
  uint32_t nin = 0;
  NamedNum *args = NEW_N(l->a, NamedNum, n + 1);
  for (uint32_t i = 0; i < f->dim.n; i++) attr.dims[attr.ndims++] = f->dim.at[i].dim[0];
  for (uint32_t i = 0; i < n; i++) {
    if (bound[i].val.tensor) in[nin++] = bound[i].val.v;
    else args[attr.nargs++] = (NamedNum){bound[i].name, bound[i].val.number.num};
  }
  attr.args = args;
  FnId body = body_of(l, f, bound, n, &attr);
  if (!body) return val_error();
  const Fn *fn = l->m->fn.at[body];
  TypeId type = fn->val.at[fn->ret.at[0]].type;
  f->why = f->up->why;
  l->frame = f->up;
  Build b = at_span(l, at);
  l->frame = f;
  return val_tensor(l, ir_add_typed(&b, op_find(f->def->name), in, nin, attr, &type, 1, body), at);
}

// ---- calls --------------------------------------------------------------------------------------------------------
static Str join_path(Lower *l, const Frame *caller, const Ast *e) {    // the caller's path, then the call's `as`
  const Ast *as = e->kid[3];
  if (as->kind != N_as) return caller->path;
  Text t;
  text_init(&t, l->a);
  text_printf(&t, "%s%s", caller->path, *caller->path ? "." : "");
  for (const char *c = as->text; *c;) {
    const char *end = *c == '{' ? strchr(c, '}') : 0;
    const Named *index = 0;
    if (end)
      for (uint32_t i = caller->index.n; i-- && !index;)
        if (strlen(caller->index.at[i].name) == (size_t)(end - c - 1) && !strncmp(caller->index.at[i].name, c + 1, (size_t)(end - c - 1))) index = &caller->index.at[i];
    if (index) text_printf(&t, "%.0f", index->val.number.num), c = end + 1;
    else text_add(&t, c++, 1);
  }
  return intern(l->p->in, t.s ? t.s : "");
}

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
    Text t;
    text_init(&t, l->a);
    for (uint32_t i = 0; i < params->n; i++) text_printf(&t, "%s%s", i ? ", " : "", params->kid[i]->text);
    lower_error(l, e->span, "MT0240", "%s takes %u dim%s%s%s%s, got %u", f->def->name, params->n, params->n == 1 ? "" : "s", params->n ? " [" : "", params->n ? t.s : "",
                params->n ? "]" : "", given->n);
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
    if (map_get(&f->dim_by_name, key_of(params->kid[i]->text))) return lower_error(l, params->kid[i]->span, "MT0224", "dim '%s' is named twice", params->kid[i]->text), false;
    map_put(&f->dim_by_name, key_of(params->kid[i]->text), f->dim.n - 1);
  }
  return true;
}

// Formals from arguments: positional first, then by label; a default sees the callee's dims and the formals before it.
static bool bind_args(Lower *l, Frame *f, const Ast *e, const Arg *arg, uint32_t nargs, Bound *bound) {
  const Ast *formals = f->def->ast->kid[1];
  bool *used = NEW_N(l->a, bool, nargs + 1), ok = true;
  uint32_t pos = 0;
  Frame *caller = l->frame;
  for (uint32_t i = 0; i < formals->n; i++) {
    const Ast *fm = formals->kid[i], *type = fm->kid[0]->kind == N_type ? fm->kid[0] : 0;
    const Arg *a = 0;
    for (; pos < nargs && *arg[pos].label; pos++) {}
    if (pos < nargs) a = &arg[pos], used[pos++] = true;
    for (uint32_t k = 0; k < nargs; k++)
      if (arg[k].label == fm->text) {
        if (a) { lower_error(l, arg[k].ast->span, "MT0242", "'%s' of %s is given twice", fm->text, f->def->name); ok = false; }
        a = &arg[k], used[k] = true;
      }
    Val v = a ? a->val : val_error();
    l->frame = f;
    if (!a && fm->kid[1]->kind == N_none) {
      l->frame = caller;
      lower_error(l, e->span, "MT0241", "%s needs '%s'", f->def->name, fm->text);
      return false;
    }
    if (!a) v = expr_eval(l, fm->kid[1]);
    Span place = a ? a->ast->span : e->span;
    if (val_is_error(v)) ok = false;
    else if (type && v.tensor) {
      if (!pattern_ok(l, v, type, false, arena_printf(l->a, "%s wants %s", f->def->name, fm->text), place, a ? a->ast : 0)) ok = false;
      else v = convert_float(l, v, type, f->flt, true, place);
    } else if (!type && v.tensor) {
      l->frame = caller;
      lower_error(l, place, "MT0245", "'%s' of %s is a number, got %s", fm->text, f->def->name, val_show(l, v));
      ok = false;
    }
    bound[i] = (Bound){fm->text, v, type};
    vec_push(l->a, &f->val, (Named){.name = fm->text, .val = v});
    map_put(&f->val_by_name, key_of(fm->text), f->val.n);
    l->frame = caller;
  }
  for (uint32_t k = 0; k < nargs; k++) {
    if (used[k]) continue;
    ok = false;
    if (!*arg[k].label) { lower_error(l, arg[k].ast->span, "MT0242", "%s takes %u argument%s", f->def->name, formals->n, formals->n == 1 ? "" : "s"); continue; }
    VEC(Str) names = {0};
    for (uint32_t i = 0; i < formals->n; i++) vec_push(l->a, &names, formals->kid[i]->text);
    lower_error(l, arg[k].ast->span, "MT0242", "%s has no argument '%s'", f->def->name, arg[k].label);
    word_suggest(l->p->diag, arg[k].label, names.at, names.n);
  }
  return ok;
}

static bool results(Lower *l, Frame *f, Vals *got, Vals *out) {        // in the callee's frame
  const Ast *types = f->def->ast->kid[2];
  if (got->n != types->n) {
    bool error = false;
    for (uint32_t i = 0; i < got->n; i++) error |= val_is_error(got->at[i]);
    if (!error) lower_error(l, f->def->ast->span, "MT0246", "%s promises %u value%s, returns %u", f->def->name, types->n, types->n == 1 ? "" : "s", got->n);
    return false;
  }
  for (uint32_t i = 0; i < got->n; i++) {
    Val v = got->at[i];
    const Ast *t = types->kid[i];
    if (val_is_error(v)) return false;
    if (v.tensor) {
      const Type *have = val_shape(l, v);
      for (int k = 0; k < have->ndim; k++)
        if (in_set(f->local.at, f->local.n, have->dim[k])) {
          const char *name = strrchr(dim_of(l->m, have->dim[k])->name, '.');
          lower_error(l, t->span, "MT0209", "the result has '%s', which exists only inside %s; merge or reduce it", name ? name + 1 : "?", f->def->name);
          return false;
        }
      if (!pattern_ok(l, v, t, true, arena_printf(l->a, "%s promises", f->def->name), t->span, 0)) return false;
      v = convert_float(l, v, t, f->up->flt, false, f->call->span);
    } else if (t->kid[0]->n == 0 && v.number.kind == NUM_number)
      v = to_dtype(l, v, !strcmp(t->text, "float") ? f->up->flt : dtype_find(t->text), t->span);
    vec_push(l->a, out, v);
  }
  return true;
}

static bool nests(Lower *l, const Def *def, const Ast *e) {
  for (const Frame *f = l->frame; f; f = f->up) {
    if (f->def != def) continue;
    const char *chain = def->name;
    for (const Frame *g = l->frame;; g = g->up) {
      chain = arena_printf(l->a, "%s → %s", g->def->name, chain);
      if (g == f) break;
    }
    lower_error(l, e->span, "MT0227", "%s calls itself: %s", def->name, chain);
    return false;
  }
  if (l->frame->depth < DEPTH_LIMIT) return true;
  lower_error(l, e->span, "MT0229", "calls nest deeper than %d", DEPTH_LIMIT);
  return l->stop = true, false;
}

static void invoke(Lower *l, const Def *def, const Ast *e, const Arg *arg, uint32_t nargs, Vals *out) {
  Frame *caller = l->frame, *f = NEW(l->a, Frame);
  if (def->ast->kind == N_model) { lower_error(l, e->span, "MT0222", "%s is a model and cannot be called", def->name); fail_call(l, def, out); return; }
  if (def->ast->kind == N_fn && e->kid[3]->kind == N_as)
    lower_error(l, e->kid[3]->span, "MT0243", "%s is a fn and has no parameters; remove 'as %s'", def->name, e->kid[3]->text);
  *f = (Frame){.up = caller, .def = def, .call = e, .scope = def->scope, .path = join_path(l, caller, e), .why = caller->why, .depth = caller->depth + 1};
  f->flt = def->keep != DT_none ? dtype_wider(caller->flt, def->keep) : caller->flt;
  map_init(&f->dim_by_name, l->a), map_init(&f->val_by_name, l->a);
  Bound *bound = NEW_N(l->a, Bound, def->ast->kid[1]->n + 1);
  if (!nests(l, def, e) || !bind_dims(l, f, e) || !bind_args(l, f, e, arg, nargs, bound)) { fail_call(l, def, out); return; }
  uint32_t n = def->ast->kid[1]->n;
  Vals got = {0};
  l->frame = f;
  bool ok;
  if (is_composite(l, def, f, bound, n)) {
    f->val.n = 0;
    map_init(&f->val_by_name, l->a);
    vec_push(l->a, &got, composite(l, f, bound, n, e->span));
    ok = true;
  } else {
    if (def->scope == &l->p->prelude && caller->scope != def->scope) f->why = intern_printf(l->p->in, "prelude: %s", def->name);
    ok = stmts_run(l, def->ast->kid[3], &got);
    if (!ok && !l->stop && !l->p->diag->errors) lower_error(l, def->ast->span, "MT0251", "%s does not return on this path", def->name);
    else if (!ok && !l->stop) ok = false;
  }
  uint32_t before = out->n;
  if (!ok || !results(l, f, &got, out)) {
    out->n = before;
    fail_call(l, def, out);
  }
  l->frame = caller;
}

void call_eval(Lower *l, const Ast *e, Vals *out) {
  const Def *def = def_find(l, e->text);
  const Ast *args = e->kid[2];
  if (++l->work > 50000000 || l->stop) { vec_push(l->a, out, val_error()); return; }
  if (!def && !prim_known(e->text)) {
    VEC(Str) names = {0};
    for (const Scope *s = l->frame->scope; s; s = s->up)
      for (uint32_t i = 0; i < s->def.n; i++) vec_push(l->a, &names, s->def.at[i].name);
    for (size_t i = 0; prim_name(i); i++) vec_push(l->a, &names, prim_name(i));
    lower_error(l, e->span, "MT0222", "no function '%s'", e->text);
    word_suggest(l->p->diag, e->text, names.at, names.n);
    vec_push(l->a, out, val_error());
    return;
  }
  bool dims_only = !def && (!strcmp(e->text, "index") || !strcmp(e->text, "extent")); // their arguments are dims
  Arg *arg = NEW_N(l->a, Arg, args->n + 1);
  for (uint32_t i = 0; i < args->n; i++)
    arg[i] = (Arg){args->kid[i]->text, args->kid[i]->kid[0], dims_only ? val_error() : expr_eval(l, args->kid[i]->kid[0])};
  if (def) { invoke(l, def, e, arg, args->n, out); return; }
  if (e->kid[3]->kind == N_as) lower_error(l, e->kid[3]->span, "MT0243", "%s has no parameters; remove 'as %s'", e->text, e->kid[3]->text);
  uint32_t before = out->n;
  if (!prim_eval(l, e, arg, args->n, out) && out->n == before) vec_push(l->a, out, val_error());
}
