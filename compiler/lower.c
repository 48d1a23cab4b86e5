// lower.c -- tree to graph: every call is instantiated, every value gets its dims and dtype, what is known is
// folded.
//
// The model is elaborated twice, training and not (lower_model.c). A number stays a number until it meets a
// tensor. This file has what all parts stand on (values, messages, names) and the statements; the others:
// expressions (lower_expr.c), parameters (lower_param.c), calls (lower_call.c), primitives (lower_prim.c).
#include "compiler/lower.h"
#include <math.h>
#include <string.h>

enum { WORK_LIMIT = 4000000, NODE_LIMIT = 300000 };

// ---- values -----------------------------------------------------------------------------------------------
Val val_error(void) { return (Val){.number = {.kind = NUM_error}}; }
bool val_is_error(Val v) { return !v.tensor && v.number.kind == NUM_error; }
Val val_number(Number n) { return (Val){.number = n}; }
const Type *val_shape(const Lower *l, Val v) { return val_type(l->fn, v.v); }

bool type_is_small(const Lower *l, const Type *t) {
  int64_t n = type_count(l->m, t);
  return n >= 0 && n <= INT64_C(1) << 59;
}

Val val_tensor(Lower *l, ValId v, Span at) {
  if (type_is_small(l, val_type(l->fn, v))) return (Val){.tensor = true, .v = v};
  lower_error(l, at, "MT0306", "this value has more than 2^59 entries: %s",
              val_show(l, (Val){.tensor = true, .v = v}));
  return val_error();
}

bool dims_are_roles(const Lower *l, DimId a, DimId b) {
  return dim_of(l->m, a)->root == dim_of(l->m, b)->root;
}

Str dim_word(const Lower *l, DimId d) {  // local dims are called f.name in the module
  Str name = dim_of(l->m, d)->name;
  return strchr(name, '.') ? strchr(name, '.') + 1 : name;
}

static const char *dims_listed(const Lower *l, const DimId *dim, uint32_t n, const char *last) {
  Text t;
  text_init(&t, l->a);
  for (uint32_t i = 0; i < n; i++)
    text_printf(&t, "%s%s", !i ? "" : i + 1 == n ? last : ", ", dim_word(l, dim[i]));
  return t.s;
}
const char *dims_show(const Lower *l, const DimId *dim, uint32_t n) { return dims_listed(l, dim, n, ", "); }
const char *dims_and(const Lower *l, const DimId *dim, uint32_t n) { return dims_listed(l, dim, n, " and "); }

const char *val_show(const Lower *l, Val v) {
  if (!v.tensor) return number_text(l->a, v.number);
  const Type *t = val_shape(l, v);
  return arena_printf(l->a, "%s[%s]", dtype_name(t->dtype), dims_show(l, t->dim, t->ndim));
}

const char *expr_words(const Lower *l, const Ast *e) {
  return span_words(l->p->diag, l->a, e->span, "the value");
}

Span name_span(const Ast *e) {
  Span s = e->span;
  size_t n = strlen(e->text);
  if (s.col + n - 1 > UINT16_MAX) return s;
  s.end_line = s.line, s.end_col = (uint16_t)(s.col + n - 1);
  return s;
}


// ---- messages ---------------------------------------------------------------------------------------------
static void trace_add(Lower *l, Span at, Str text) {
  vec_push(l->a, &l->trace, at);
  vec_push(l->a, &l->trace_text, text);
}

void lower_finish(Lower *l) {
  for (uint32_t i = 0; i < l->trace.n; i++)
    diag_note_at(l->p->diag, l->trace.at[i], "%s", l->trace_text.at[i]);
  l->trace.n = l->trace_text.n = 0;
}

// The frame whose call stands in the user's text, from where the prelude was entered; the frame itself in
// user's text.
static const Frame *outside(const Lower *l) {
  const Frame *f = l->frame, *last = 0;
  for (; f && f->scope == &l->p->prelude; f = f->up) last = f;
  return last;
}

// Nodes of the prelude's functions carry the user's call. A composite's body serves many calls: it keeps its own lines.
Build at_span(const Lower *l, Span at) {
  const Frame *f = l->frame, *entered = l->fn->is_body ? 0 : outside(l);
  Span loc = entered ? entered->call->span : at;
  return (Build){.fn = l->fn, .loc = loc, .why = f->why, .path = f->path, .layer = l->layer};
}

bool lower_error(Lower *l, Span at, const char *code, const char *fmt, ...) {
  enum { CALLERS = 4 };
  const Frame *entered = outside(l);
  Span place = entered ? name_span(entered->call) : at;
  uint64_t what = entered ? 0 : hash_bytes(code, strlen(code), 0);  // a call of the prelude has one mistake
  uint64_t key = hash_mix(hash_mix(what, place.file), hash_mix(place.line, place.col));
  lower_finish(l);
  l->muted = map_get(&l->reported, key) != 0;
  if (l->muted) return false;
  map_put(&l->reported, key, 1);
  va_list args;
  va_start(args, fmt);
  const char *text = arena_vprintf(l->a, fmt, args);
  va_end(args);
  if (entered) diag_error(l->p->diag, place, code, "in %s: %s", entered->def->name, text);
  else diag_error(l->p->diag, place, code, "%s", text);
  if (entered) trace_add(l, at, "here");
  const Frame *f = entered ? entered->up : l->frame;
  for (int n = 0; f && f->call && n < CALLERS; f = f->up, n++)
    trace_add(l, f->call->span, arena_printf(l->a, "in %s, called here", f->def->name));
  if (l->p->diag->errors > 20) l->stop = true;
  return false;
}

void lower_note(Lower *l, const char *fmt, ...) {
  if (l->muted) return;
  va_list args;
  va_start(args, fmt);
  diag_note(l->p->diag, "%s", arena_vprintf(l->a, fmt, args));
  va_end(args);
}

void lower_note_at(Lower *l, Span at, const char *fmt, ...) {
  if (l->muted) return;
  va_list args;
  va_start(args, fmt);
  diag_note_at(l->p->diag, at, "%s", arena_vprintf(l->a, fmt, args));
  va_end(args);
}

static const char *origin(const Lower *l, Val v,
                          const Ast *e) {  // "(line 43)": where a named value comes from
  if (!v.tensor || e->kind != N_name) return "";
  NodeId def = l->fn->val.at[v.v].def;
  if (!def) return l->fn->is_body ? "" : "  (input)";
  const Node *n = fn_node(l->fn, def);
  const char *what = n->op == OP_read && l->m->var.at[n->attr.var].kind == VAR_param ? "param, " : "";
  Span at = n->loc;
  for (const Frame *f = l->frame; f && l->frame->scope != &l->p->prelude;
       f = f->up) {  // where its name was given
    const uint64_t *k = map_get(&f->val_by_name, key_of(e->text));
    if (f == l->frame && k && *k && f->val.at[*k - 1].at.line) at = f->val.at[*k - 1].at;
  }
  if (at.file == e->span.file) return arena_printf(l->a, "  (%sline %u)", what, at.line);
  return *what ? "  (param)" : "";
}

void lower_types(Lower *l, const Val *v, const Ast *const *as, uint32_t n) {
  size_t wide = 0;
  for (uint32_t i = 0; i < n; i++) wide = MAX(wide, strlen(expr_words(l, as[i])));
  for (uint32_t i = 0; i < n; i++)
    if (v[i].tensor)
      lower_note(l, "%-*s is %s%s", (int)wide, expr_words(l, as[i]), val_show(l, v[i]),
                 origin(l, v[i], as[i]));
}

void lower_suggest(Lower *l, const char *word, const Str *words, size_t n) {
  if (!l->muted) word_suggest(l->p->diag, word, words, n);
}

void lower_fold_error(Lower *l, Span at, const Fold *f) {
  if (f->why) lower_error(l, at, f->code, "%s", f->why);
}

bool budget(Lower *l, Span at, uint64_t more) {
  l->work += more;
  if (l->stop) return false;
  if (l->work <= WORK_LIMIT && l->nodes + l->fn->node.n <= NODE_LIMIT) return true;
  if (l->work > WORK_LIMIT)
    lower_error(l, at, "MT0254", "unrolled, this is more than %d statements and calls", WORK_LIMIT);
  else lower_error(l, at, "MT0254", "unrolled, this is more than %d operations", NODE_LIMIT);
  l->stop = true;
  return false;
}

// ---- dims -------------------------------------------------------------------------------------------------
bool dim_find_here(const Lower *l, Str name, DimBind *out) {
  const uint64_t *at = map_get(&l->frame->dim_by_name, key_of(name));
  if (at && *at) return *out = l->frame->dim.at[*at - 1], true;
  const uint64_t *id = map_get(&l->frame->scope->dim_by_name, key_of(name));
  if (!id) return false;
  DimId *d = NEW(l->a, DimId);
  *d = (DimId)*id;
  return *out = (DimBind){name, 1, d}, true;
}

void no_dim(Lower *l, Span at, Str name) {
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < l->frame->dim.n; i++) vec_push(l->a, &names, l->frame->dim.at[i].name);
  for (uint32_t i = 1; i < l->m->dim.n; i++)
    if (map_get(&l->frame->scope->dim_by_name, key_of(l->m->dim.at[i].name)))
      vec_push(l->a, &names, l->m->dim.at[i].name);
  lower_error(l, at, "MT0220", "no dim '%s'", name);
  lower_suggest(l, name, names.at, names.n);
}

static bool dim_push(Lower *l, Span at, DimId d, DimId *out, uint32_t *n) {
  for (uint32_t j = 0; j < *n; j++)
    if (out[j] == d) {
      lower_error(l, at, "MT0214", "%s occurs twice", dim_word(l, d));
      lower_note(l, "declare a role, a second dim of the same extent: dim k%s = %s", dim_word(l, d),
                 dim_word(l, d));
      return false;
    }
  if (*n == MAX_DIMS) return lower_error(l, at, "MT0215", "more than %d dims", MAX_DIMS);
  out[(*n)++] = d;
  return true;
}

bool dims_eval(Lower *l, const Ast *list, DimId *out, uint32_t *n) {
  for (uint32_t i = 0; i < list->n; i++) {
    const Ast *e = list->kid[i];
    DimBind b;
    if (e->kind == N_group) {
      if (!dims_eval(l, e, out, n)) return false;
      continue;
    }
    if (e->kind != N_name) return false;  // something with an error, which was reported
    if (!dim_find_here(l, e->text, &b)) return no_dim(l, e->span, e->text), false;
    if (!b.n) return false;
    for (uint32_t k = 0; k < b.n; k++)
      if (!dim_push(l, e->span, b.dim[k], out, n)) return false;
  }
  return true;
}

bool whole_number(Number n, double least) {
  return n.kind == NUM_number && n.num >= least && n.num <= 0x1p53 && n.num == floor(n.num);
}

// A whole number of at least 1 that the expression e stands for; 0 after an error.
static int64_t whole_eval(Lower *l, const Ast *e, const char *what) {
  Val v = expr_eval(l, e);
  if (val_is_error(v)) return 0;
  if (!v.tensor && whole_number(v.number, 1)) return (int64_t)v.number.num;
  lower_error(l, e->span, "MT0305", "%s%s is %s; it must be whole and positive", what, expr_words(l, e),
              val_show(l, v));
  return 0;
}

// The extent, storage and root of a local dim; false after an error.
static bool dim_describe(Lower *l, const Ast *s, Dim *d) {
  DimBind role;
  const Ast *e = s->kid[0], *pad = s->kid[1];
  if (e->kind == N_none)
    return lower_error(l, s->span, "MT0307", "a local dim has an extent: dim %s = …", s->text);
  if (e->kind == N_name && dim_find_here(l, e->text, &role)) {
    if (!role.n) return false;
    d->extent = d->size = 1;
    for (uint32_t i = 0; i < role.n; i++) {
      const Dim *part = dim_of(l->m, role.dim[i]);
      if (!mul_ok(d->extent, part->extent, &d->extent) ||
          !mul_ok(d->size, role.n == 1 ? part->size : part->extent, &d->size))
        d->extent = d->size = 0;
    }
    if (role.n == 1) d->root = dim_of(l->m, role.dim[0])->root;
  } else if (!(d->extent = d->size = whole_eval(l, e, arena_printf(l->a, "dim %s = ", s->text))))
    return false;
  if (pad->kind != N_none) {
    int64_t to = whole_eval(l, pad, "pad ");
    if (!to) return false;
    if (!add_ok(d->extent, to - 1, &d->size)) d->extent = 0;
    else d->size = d->size / to * to;
  }
  if (d->extent >= 1 && d->size <= INT64_C(1) << 62) return true;
  return lower_error(l, s->span, "MT0306", "dim %s has more than 2^62 entries", s->text);
}

// Calls of one function share a local dim when it is alike: it cannot leave the call, so it meets no other.
static DimId local_dim(Lower *l, Str name, Dim d) {
  const Def *def = l->frame->def;
  uint64_t kind = hash_mix(key_of(def), key_of(name));
  uint64_t all = hash_mix(hash_mix(kind, (uint64_t)d.extent), hash_mix((uint64_t)d.size, d.root));
  const uint64_t *known = map_get(&l->local, all), *count = map_get(&l->locals, kind);
  if (known) return (DimId)*known;
  uint64_t k = count ? *count + 1 : 1;
  d.name = intern_printf(l->p->in, "%s.%s", def->name, name);
  if (k > 1) d.name = intern_printf(l->p->in, "%s.%llu", d.name, (unsigned long long)k);
  DimId id = dim_add(l->m, d);
  map_put(&l->locals, kind, k), map_put(&l->local, all, id);
  return id;
}

static void dim_statement(Lower *l, const Ast *s) {
  Frame *f = l->frame;
  Dim d = {0};
  const uint64_t *was = map_get(&f->dim_by_name, key_of(s->text));
  if (was && *was && f->dim.at[*was - 1].n) {
    lower_error(l, s->span, "MT0224", "dim '%s' is already defined here", s->text);
    return;
  }
  bool ok = dim_describe(l, s, &d);
  DimId *one = NEW(l->a, DimId);
  if (ok) *one = local_dim(l, s->text, d);
  vec_push(l->a, &f->dim, (DimBind){s->text, ok, one});
  map_put(&f->dim_by_name, key_of(s->text), f->dim.n);
  if (ok) vec_push(l->a, &f->local, *one);
}

// ---- names ------------------------------------------------------------------------------------------------
static Named *named(Lower *l, Str name) {
  const uint64_t *at = map_get(&l->frame->val_by_name, key_of(name));
  return at && *at ? &l->frame->val.at[*at - 1] : 0;
}

void named_add(Lower *l, Frame *f, Str name, Val v, Span at) {
  vec_push(l->a, &f->val, (Named){.name = name, .val = v, .at = at});
  map_put(&f->val_by_name, key_of(name), f->val.n);
}

static const Named *index_find(const Frame *f, Str name) {            // the innermost repeat's first
  for (uint32_t i = f->index.n; i--;)
    if (f->index.at[i].name == name) return &f->index.at[i];
  return 0;
}

static const char *not_assignable(Lower *l, Str name,
                                  const Named *old) {  // "a config (m.mt:3:4)"; 0: it may be assigned
  Frame *f = l->frame;
  DimBind dim;
  if (index_find(f, name)) return "a repeat index";
  if (old) return 0;                                                   // a formal may hide a config
  const uint64_t *c = map_get(&f->scope->config_by_name, key_of(name));
  if (c) return arena_printf(l->a, "a config (%s)", span_text(l->p->diag, l->a, f->scope->config.at[*c].loc));
  if (number_predefined(name)) return "predefined";
  return dim_find_here(l, name, &dim) ? "a dim" : 0;
}

void named_assign(Lower *l, const Ast *name, Val v) {
  Frame *f = l->frame;
  Named *old = named(l, name->text);
  const char *what = not_assignable(l, name->text, old);
  if (what) {
    lower_error(l, name->span, "MT0223", "'%s' is %s and cannot be assigned; choose another name", name->text,
                what);
    return;
  }
  if (v.tensor && !l->fn->val.at[v.v].name) l->fn->val.at[v.v].name = name->text;
  if (!old) { named_add(l, f, name->text, v, name->span); return; }
  if (f->index.n) vec_push(l->a, &f->assigned, (Assigned){(uint32_t)(old - f->val.at), old->val});
  old->val = v, old->at = name->span;
}

static void no_value(Lower *l, const Ast *e) {
  Frame *f = l->frame;
  DimBind dim;
  const uint64_t *ended = map_get(&f->ended, key_of(e->text));
  if (ended) {
    const Ast *repeat = (const Ast *)(uintptr_t)*ended;
    lower_error(l, e->span, "MT0225",
                "'%s' is first assigned inside repeat (line %u) and ends there; give it a value before",
                e->text, repeat->span.line);
    return;
  }
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < f->val.n; i++) vec_push(l->a, &names, f->val.at[i].name);
  for (uint32_t i = 0; i < f->index.n; i++) vec_push(l->a, &names, f->index.at[i].name);
  for (uint32_t i = 0; i < f->scope->config.n; i++) vec_push(l->a, &names, f->scope->config.at[i].name);
  lower_error(l, e->span, "MT0221", "no value '%s' here", e->text);
  if (dim_find_here(l, e->text, &dim))
    lower_note(l, "%s is a dim; its length is extent(%s), its positions are index(%s)", e->text, e->text,
               e->text);
  else lower_suggest(l, e->text, names.at, names.n);
  for (const Frame *up = f->up; up; up = up->up) {
    const uint64_t *at = map_get(&up->val_by_name, key_of(e->text));
    if (!at || !*at || val_is_error(up->val.at[*at - 1].val)) continue;
    lower_note(l, "bodies do not see their caller's values: pass it");
    break;
  }
  named_add(l, f, e->text, val_error(), e->span);                      // said once
}

Val named_eval(Lower *l, const Ast *e) {
  Frame *f = l->frame;
  const Named *n = named(l, e->text);
  if (n) return n->val;
  if ((n = index_find(f, e->text))) return n->val;
  const uint64_t *c = map_get(&f->scope->config_by_name, key_of(e->text));
  if (c) return val_number(f->scope->config.at[*c].value);
  if (!strcmp(e->text, "training")) return val_number(bool_of(l->training));
  const Number *known = number_predefined(e->text);
  if (known) return val_number(*known);
  no_value(l, e);
  return val_error();
}

// ---- repeat -----------------------------------------------------------------------------------------------
static bool type_same(const Type *x, const Type *y) {                  // as sets of dims
  bool same = x->dtype == y->dtype && x->ndim == y->ndim;
  for (int i = 0; same && i < x->ndim; i++) same = type_pos(y, x->dim[i]) >= 0;
  return same;
}

static bool carried_ok(Lower *l, const Ast *s, Val a, const Named *now) {
  Val b = now->val;
  if (val_is_error(a) || val_is_error(b) || (!a.tensor && !b.tensor)) return true;
  if (!a.tensor && !val_shape(l, b)->ndim) return true;                // a number becomes f32[]
  if (a.tensor && b.tensor && type_same(val_shape(l, a), val_shape(l, b))) return true;
  lower_error(l, now->at, "MT0226", "'%s' enters repeat as %s and leaves as %s", now->name, val_show(l, a),
              val_show(l, b));
  if (b.tensor && !a.tensor)
    lower_note(l, "give it dims before: %s = expand[%s](%s)", now->name,
               dims_show(l, val_shape(l, b)->dim, val_shape(l, b)->ndim), val_show(l, a));
  lower_note_at(l, s->span, "the repeat");
  return false;
}

// Compares what was assigned since `mark` with what it was; the first of each name counts.
static bool carried_all_ok(Lower *l, const Ast *s, uint32_t mark, uint32_t before) {
  Frame *f = l->frame;
  uint64_t now = ++l->iteration;
  for (uint32_t i = mark; i < f->assigned.n; i++) {
    Assigned a = f->assigned.at[i];
    if (a.name >= before) continue;                                    // it ends with this iteration
    Named *n = &f->val.at[a.name];
    if (n->seen == now) continue;
    n->seen = now;
    if (!carried_ok(l, s, a.was, n)) return false;
  }
  return true;
}

// Names and dims first given inside an iteration end with it.
static void names_end(Lower *l, const Ast *s, uint32_t vals, uint32_t dims) {
  Frame *f = l->frame;
  uint32_t kept = vals;
  for (uint32_t k = vals; k < f->val.n; k++) {
    if (val_is_error(f->val.at[k].val)) {  // its mistake is said: no more about it
      f->val.at[kept++] = f->val.at[k];
      map_put(&f->val_by_name, key_of(f->val.at[kept - 1].name), kept);
      continue;
    }
    map_put(&f->val_by_name, key_of(f->val.at[k].name), 0);
    map_put(&f->ended, key_of(f->val.at[k].name), (uint64_t)(uintptr_t)s);
  }
  for (uint32_t k = dims; k < f->dim.n; k++) map_put(&f->dim_by_name, key_of(f->dim.at[k].name), 0);
  f->val.n = kept, f->dim.n = dims;
}

static bool repeat_count(Lower *l, const Ast *s, int64_t *count) {
  Val n = expr_eval(l, s->kid[0]);
  if (val_is_error(n)) return false;
  if (n.tensor || !whole_number(n.number, 0)) {
    return lower_error(l, s->kid[0]->span, "MT0305",
                       "repeat %s is %s; it must be a whole number of at least 0, known when compiling",
                       expr_words(l, s->kid[0]), val_show(l, n));
  }
  if (named(l, s->text) || index_find(l->frame, s->text) ||
      map_get(&l->frame->scope->config_by_name, key_of(s->text))) {
    return lower_error(l, s->span, "MT0224", "'%s' is already a value here; choose another index", s->text);
  }
  *count = (int64_t)n.number.num;
  return true;
}

static bool repeat_statement(Lower *l, const Ast *s, Vals *out) {
  Frame *f = l->frame;
  int64_t count = 0;
  if (!repeat_count(l, s, &count)) return false;
  uint32_t vals = f->val.n, dims = f->dim.n, layer = l->layer;
  bool returned = false;
  for (int64_t i = 0; i < count && !returned && budget(l, s->span, 1); i++) {
    uint32_t errors = l->p->diag->errors, mark = f->assigned.n;
    vec_push(l->a, &f->index, (Named){.name = s->text, .val = val_number(number_of((double)i))});
    if (!layer) l->layer = (uint32_t)i + 1;
    returned = stmts_run(l, s->kid[1], out);
    l->layer = layer, f->index.n--;
    bool ok = returned || carried_all_ok(l, s, mark, vals);
    names_end(l, s, vals, dims);
    if (!f->index.n) f->assigned.n = 0;
    if (!ok || l->p->diag->errors > errors) break;                     // the others would say the same
  }
  return returned;
}

// ---- statements -------------------------------------------------------------------------------------------
// What statements that are not run would have named: unknown, without a message for each use.
static void names_unknown(Lower *l, const Ast *stmts) {
  for (uint32_t i = 0; i < stmts->n; i++) {
    const Ast *s = stmts->kid[i];
    if (s->kind == N_assign)
      for (uint32_t k = 0; k < s->kid[0]->n; k++)
        if (s->kid[0]->kid[k]->kind == N_name) named_assign(l, s->kid[0]->kid[k], val_error());
    if (s->kind == N_repeat) names_unknown(l, s->kid[1]);
    if (s->kind == N_if) names_unknown(l, s->kid[1]), names_unknown(l, s->kid[2]);
  }
}

static void wrong_count(Lower *l, const Ast *s, uint32_t got) {
  uint32_t want = s->kid[0]->n;
  const Ast *e = s->kid[1]->n == 1 ? s->kid[1]->kid[0] : 0;
  const char *names = want == 1 ? "name" : "names", *values = got == 1 ? "value" : "values";
  if (!e || e->kind != N_call) lower_error(l, s->span, "MT0246", "%u %s, %u %s", want, names, got, values);
  else if (strcmp(e->text, "unstack"))
    lower_error(l, s->span, "MT0246", "%u %s, and %s gives %u %s", want, names, e->text, got, values);
  else
    lower_error(l, s->span, "MT0234", "%u %s for %s, which gives %u %s", want, names, expr_words(l, e), got,
                values);
}

static void assign_statement(Lower *l, const Ast *s) {
  Vals vals = {0};
  for (uint32_t i = 0; i < s->kid[1]->n; i++) exprs_eval(l, s->kid[1]->kid[i], &vals);
  bool error = false, fits = vals.n == s->kid[0]->n;
  for (uint32_t i = 0; i < vals.n; i++) error |= val_is_error(vals.at[i]);
  if (!fits && !error) wrong_count(l, s, vals.n);
  for (uint32_t i = 0; i < s->kid[0]->n; i++)
    if (s->kid[0]->kid[i]->kind == N_name)
      named_assign(l, s->kid[0]->kid[i], fits ? vals.at[i] : val_error());
}

static bool if_statement(Lower *l, const Ast *s, Vals *out) {
  Val c = expr_eval(l, s->kid[0]);
  if (!c.tensor && c.number.kind == NUM_bool) return stmts_run(l, s->kid[c.number.num != 0 ? 1 : 2], out);
  names_unknown(l, s->kid[1]), names_unknown(l, s->kid[2]);
  if (val_is_error(c)) return false;
  if (!c.tensor)
    return lower_error(l, s->kid[0]->span, "MT0250", "a condition is true or false, got %s", val_show(l, c));
  lower_error(l, s->kid[0]->span, "MT0250", "a condition must be known at compile time, got %s",
              val_show(l, c));
  lower_note(l, "to choose entry by entry, write select(%s, …, …)", expr_words(l, s->kid[0]));
  return false;
}

bool stmts_run(Lower *l, const Ast *stmts, Vals *out) {
  for (uint32_t i = 0; i < stmts->n; i++) {
    const Ast *s = stmts->kid[i];
    if (!budget(l, s->span, 1)) return false;
    switch (s->kind) {
    case N_param: param_statement(l, s); break;
    case N_dim: dim_statement(l, s); break;
    case N_assign: assign_statement(l, s); break;
    case N_repeat:
      if (repeat_statement(l, s, out)) return true;
      break;
    case N_if:
      if (if_statement(l, s, out)) return true;
      break;
    case N_return:
      l->frame->returned = s;
      for (uint32_t k = 0; k < s->kid[0]->n; k++) exprs_eval(l, s->kid[0]->kid[k], out);
      return true;
    default: break;
    }
  }
  return false;
}
