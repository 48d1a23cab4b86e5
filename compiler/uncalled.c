// uncalled.c -- functions and blocks that the model never calls. Lowering checks a body call by call, with the types
// of its arguments; of these it sees nothing. What can be told without a call is told here: names, and what calls are
// given.
#include "compiler/lower.h"
#include <string.h>

typedef struct {                             // one body
  Program *p;
  const Ast *def;
  Map dim, value;                            // names that stand for something anywhere in it
  VEC(Str) dims, values;
} Body;

static const Def *def_of(const Program *p, Str name) {
  for (const Scope *s = &p->user; s; s = s->up) {
    const uint64_t *at = map_get(&s->def_by_name, key_of(name));
    if (at) return &s->def.at[*at];
  }
  return 0;
}

// ---- which ------------------------------------------------------------------------------------------------
typedef struct { bool *called; VEC(uint32_t) todo; } Reach;  // by index of the definition; in any branch
static void reach_calls(const Program *p, const Ast *e, Reach *r) {
  const uint64_t *at = e->kind == N_call ? map_get(&p->user.def_by_name, key_of(e->text)) : 0;
  if (at && !r->called[*at]) r->called[*at] = true, vec_push(p->arena, &r->todo, (uint32_t)*at);
  for (uint32_t i = 0; i < e->n; i++) reach_calls(p, e->kid[i], r);
}

// ---- names ------------------------------------------------------------------------------------------------
static void know(Body *b, bool dim, Str name) {
  Map *m = dim ? &b->dim : &b->value;
  if (!name || map_get(m, key_of(name))) return;
  map_put(m, key_of(name), 1);
  if (dim) vec_push(b->p->arena, &b->dims, name);
  else vec_push(b->p->arena, &b->values, name);
}

static void know_statements(Body *b, const Ast *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    const Ast *s = list->kid[i];
    if (s->kind == N_dim || s->kind == N_param || s->kind == N_repeat) know(b, s->kind == N_dim, s->text);
    if (s->kind == N_assign)
      for (uint32_t k = 0; k < s->kid[0]->n; k++) know(b, false, s->kid[0]->kid[k]->text);
    if (s->kind == N_repeat || s->kind == N_if) know_statements(b, s->kid[1]);
    if (s->kind == N_if) know_statements(b, s->kid[2]);
  }
}

static void know_header(Body *b) {
  Program *p = b->p;
  for (uint32_t i = 0; i < b->def->kid[0]->n; i++) know(b, true, b->def->kid[0]->kid[i]->text);
  for (uint32_t i = 0; i < b->def->kid[1]->n; i++) know(b, false, b->def->kid[1]->kid[i]->text);
  for (uint32_t i = 0; i < p->dim.n; i++) know(b, true, p->dim.at[i].ast->text);
  for (uint32_t i = 0; i < p->user.config.n; i++) know(b, false, p->user.config.at[i].name);
}

static void dims_check(Body *b, const Ast *e) {              // a name, a group, or a list of them
  if (e->kind == N_name || e->kind == N_maybe) {
    if (map_get(&b->dim, key_of(e->text))) return;
    diag_error(b->p->diag, e->span, "MT0220", "no dim '%s'", e->text);
    word_suggest(b->p->diag, e->text, b->dims.at, b->dims.n);
    return;
  }
  for (uint32_t i = 0; i < e->n; i++) dims_check(b, e->kid[i]);
}

static void value_check(Body *b, const Ast *e) {
  if (map_get(&b->value, key_of(e->text)) || number_predefined(e->text)) return;
  diag_error(b->p->diag, e->span, "MT0221", "no value '%s' here", e->text);
  word_suggest(b->p->diag, e->text, b->values.at, b->values.n);
}

// ---- calls ------------------------------------------------------------------------------------------------
static void no_function(Body *b, const Ast *e, Span at) {
  VEC(Str) names = {0};
  for (const Scope *s = &b->p->user; s; s = s->up)
    for (uint32_t i = 0; i < s->def.n; i++) vec_push(b->p->arena, &names, s->def.at[i].name);
  for (size_t i = 0; prim_name(i); i++) vec_push(b->p->arena, &names, prim_name(i));
  diag_error(b->p->diag, at, "MT0222", "no function '%s'", e->text);
  word_suggest(b->p->diag, e->text, names.at, names.n);
}

static void arguments_check(Body *b, const Ast *e, const Ast *def, Span at) {
  const Ast *formals = def->kid[1], *args = e->kid[2];
  uint32_t plain = 0;
  Map given, known;
  map_init(&given, b->p->arena), map_init(&known, b->p->arena);
  for (uint32_t i = 0; i < formals->n; i++) map_put(&known, key_of(formals->kid[i]->text), 1);
  for (uint32_t i = 0; i < args->n; i++) {
    const Ast *a = args->kid[i];
    if (a->kind != N_arg || !*a->text) plain++;
    else if (map_get(&known, key_of(a->text))) map_put(&given, key_of(a->text), 1);
    else diag_error(b->p->diag, a->span, "MT0242", "%s has no argument '%s'", def->text, a->text);
  }
  if (plain > formals->n)
    diag_error(b->p->diag, at, "MT0242", "%s takes %u argument%s", def->text, formals->n, formals->n == 1 ? "" : "s");
  for (uint32_t i = plain; i < formals->n; i++)
    if (formals->kid[i]->kid[1]->kind == N_none && !map_get(&given, key_of(formals->kid[i]->text)))
      diag_error(b->p->diag, at, "MT0241", "%s needs '%s'", def->text, formals->kid[i]->text);
}

static void call_check(Body *b, const Ast *e) {
  const Def *def = def_of(b->p, e->text);
  Span at = name_span(e);
  dims_check(b, e->kid[0]), dims_check(b, e->kid[1]);
  if (!def && !prim_known(e->text)) no_function(b, e, at);
  if (!def) return;
  uint32_t want = def->ast->kind == N_model ? 0 : def->ast->kid[0]->n, got = e->kid[0]->n;
  if (def->ast->kind == N_model)
    diag_error(b->p->diag, at, "MT0222", "%s is a model and cannot be called", e->text);
  else if (want != got || e->kid[1]->n)
    diag_error(b->p->diag, at, "MT0240", "%s takes %u dim%s, got %u", e->text, want, want == 1 ? "" : "s",
               got + e->kid[1]->n);
  else arguments_check(b, e, def->ast, at);
}

// ---- a body -----------------------------------------------------------------------------------------------
static void walk(Body *b, const Ast *e) {
  bool dims_only = e->kind == N_call && !def_of(b->p, e->text) && prim_takes_dims(e->text);
  switch (e->kind) {
  case N_name: value_check(b, e); return;
  case N_type: dims_check(b, e->kid[0]); return;
  case N_as: return;
  case N_assign: walk(b, e->kid[1]); return;                 // what it names is known
  case N_dim:                                                // a number, or the dim that it is a role of
    for (uint32_t i = 0; i < e->n; i++)
      if (e->kid[i]->kind != N_name || !map_get(&b->dim, key_of(e->kid[i]->text))) walk(b, e->kid[i]);
    return;
  case N_param:                                              // its init is no call of ours: normal(0.02), zeros
    walk(b, e->kid[1]);
    if (e->kid[2]->kind == N_call) walk(b, e->kid[2]->kid[2]);
    return;
  case N_contract:
    walk(b, e->kid[0]), walk(b, e->kid[1]), dims_check(b, e->kid[2]);
    return;
  case N_call:
    call_check(b, e);
    for (uint32_t i = 0; i < e->kid[2]->n; i++)
      if (dims_only) dims_check(b, e->kid[2]->kid[i]);
      else walk(b, e->kid[2]->kid[i]);
    return;
  default:
    for (uint32_t i = 0; i < e->n; i++) walk(b, e->kid[i]);
  }
}

void uncalled_check(Program *p) {
  Reach r = {.called = NEW_N(p->arena, bool, p->user.def.n + 1)};
  reach_calls(p, p->model->ast, &r);
  while (r.todo.n) reach_calls(p, p->user.def.at[r.todo.at[--r.todo.n]].ast, &r);
  for (uint32_t i = 0; i < p->user.def.n && !diag_is_full(p->diag); i++) {
    Body b = {.p = p, .def = p->user.def.at[i].ast};
    if (r.called[i] || b.def->kind == N_model) continue;
    map_init(&b.dim, p->arena), map_init(&b.value, p->arena);
    know_header(&b), know_statements(&b, b.def->kid[3]);
    walk(&b, b.def->kid[1]), walk(&b, b.def->kid[2]), walk(&b, b.def->kid[3]);
  }
}
