// sema.c -- a model text to a Program: names, config and presets, the mesh and its rules, settings, dims.
//
// Overrides are applied in the command line's order; a preset is a list of overrides at its place. `require`
// is checked after all. Bodies are not looked at here: lowering does that, call by call.
#include "compiler/sema.h"
#include "grammar/prelude.h"
#include <math.h>
#include <string.h>

// ---- names of functions -----------------------------------------------------------------------------------
// The names of a list are all different.
static void names_differ(Sema *s, const Ast *list, const char *what) {
  Map seen;
  if (list->n < 2) return;
  map_init(&seen, s->p->arena);
  for (uint32_t i = 0; i < list->n; i++) {
    const Ast *n = list->kid[i];
    if (!n->text || !*n->text) continue;
    if (map_get(&seen, key_of(n->text))) ERR(n->span, "MT0224", "%s '%s' is named twice", what, n->text);
    map_put(&seen, key_of(n->text), 1);
  }
}

static void header_check(Sema *s, const Ast *def) {
  bool model = def->kind == N_model;
  if (!model) names_differ(s, def->kid[0], "dim parameter");
  names_differ(s, def->kid[!model], model ? "input" : "argument");
  if (model) names_differ(s, def->kid[1], "output");
  if (!model) return;
  Map inputs;
  map_init(&inputs, s->p->arena);
  for (uint32_t i = 0; i < def->kid[0]->n; i++)
    if (def->kid[0]->kid[i]->text) map_put(&inputs, key_of(def->kid[0]->kid[i]->text), 1);
  for (uint32_t i = 0; i < def->kid[1]->n; i++) {
    const Ast *o = def->kid[1]->kid[i];
    if (o->text && map_get(&inputs, key_of(o->text)))
      ERR(o->span, "MT0224", "output '%s' is an input, too", o->text);
  }
}

static void collect(Sema *s, Scope *scope, const Ast *item) {
  Program *p = s->p;
  if (item->kind != N_fn && item->kind != N_block && item->kind != N_model) return;
  const uint64_t *was = map_get(&scope->def_by_name, key_of(item->text));
  header_check(s, item);
  if (was) {
    ERR(item->span, "MT0224", "'%s' is already defined at %s", item->text,
        span_text(p->diag, p->arena, scope->def.at[*was].ast->span));
    return;
  }
  vec_push(p->arena, &scope->def, (Def){.name = item->text, .ast = item, .scope = scope});
  map_put(&scope->def_by_name, key_of(item->text), scope->def.n - 1);
}

static void find_model(Sema *s) {
  Program *p = s->p;
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->user.def.n; i++) {
    const Ast *ast = p->user.def.at[i].ast;
    if (ast->kind != N_model) continue;
    if (p->model)
      ERR(ast->span, "MT0343", "a second model; the first is '%s' at %s", p->model->name,
          span_text(p->diag, p->arena, p->model->ast->span));
    else p->model = &p->user.def.at[at = i];
  }
  if (p->model) return;
  ERR((Span){.file = s->main}, "MT0343", "the text has no model");
  diag_note(p->diag, "a model is written: model NAME(tokens: i32[batch, seq], …) -> (loss: f32[]) { … }");
}

static void presets_check(Sema *s) {
  Map seen;
  map_init(&seen, s->p->arena);
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    if (it->kind != N_preset) continue;
    if (map_get(&seen, key_of(it->text))) ERR(it->span, "MT0224", "preset '%s' is already defined", it->text);
    map_put(&seen, key_of(it->text), 1);
  }
}

// ---- config -----------------------------------------------------------------------------------------------
static void config_add(Sema *s, const Ast *set) {
  Program *p = s->p;
  Scope *u = &p->user;
  const uint64_t *was = map_get(&u->config_by_name, key_of(set->text));
  if (was) {
    ERR(set->span, "MT0224", "'%s' is already defined at %s", set->text,
        span_text(p->diag, p->arena, u->config.at[*was].loc));
    return;
  }
  if (number_predefined(set->text)) {
    ERR(set->span, "MT0224", "'%s' is predefined; choose another name", set->text);
    return;
  }
  if (set->kid[0]->n != 1) return;                                     // an error, which was reported
  vec_push(p->arena, &u->config, (Config){.name = set->text, .loc = set->span, .ast = set->kid[0]->kid[0]});
  map_put(&u->config_by_name, key_of(set->text), u->config.n - 1);
}

static const char *number_kind(NumberKind k) {
  return k == NUM_bool ? "true or false" : k == NUM_string ? "a string" : "a number";
}

// The value that a config is given is of the kind that it has in the text.
static bool config_known(Sema *s, Str name, Span at) {
  Program *p = s->p;
  const char *setting = setting_called(s->p, name);
  if (map_get(&p->user.config_by_name, key_of(name))) return true;
  VEC(Str) names = {0};
  for (uint32_t k = 0; k < p->user.config.n && !diag_is_full(p->diag); k++)
    vec_push(p->arena, &names, p->user.config.at[k].name);
  ERR(at, "MT0301", "no config '%s'", name);
  if (setting) diag_note(p->diag, "%s is a setting: --set %s=…", setting, setting);
  else word_suggest(p->diag, name, names.at, names.n);
  return false;
}

// What a preset names exists, also where it is not asked for.
static void preset_names_check(Sema *s) {
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    for (uint32_t k = 0; it->kind == N_preset && k < it->kid[0]->n; k++) {
      const Ast *set = it->kid[0]->kid[k];
      bool dotted = set->kind == N_set && strchr(set->text, '.');
      if (dotted && !setting_doc(set->text)) setting_unknown(s->p, set->text, set->span);
      else if (set->kind == N_set && !dotted) config_known(s, set->text, set->span);
    }
  }
}

static void config_override(Sema *s, const ConfigOverride *o) {
  Program *p = s->p;
  if (!config_known(s, o->name, o->at)) return;
  const uint64_t *at = map_get(&p->user.config_by_name, key_of(o->name));
  Config *c = &p->user.config.at[*at];
  bool word = o->value->kind == N_name && !map_get(&p->user.config_by_name, key_of(o->value->text));
  if (c->ast->kind == N_str && word) {
    ERR(o->value->span, "MT0304", "%s is a string (%s), got %s", c->name,
        span_text(p->diag, p->arena, c->loc), o->value->text);
    diag_note(p->diag, "strings are quoted: -D '%s=\"%s\"'", c->name, o->value->text);
    return;
  }
  c->ast = o->value, c->from = o->from;
}

static void config_kind(Sema *s, const Config *c, const Ast *written) {
  Program *p = s->p;
  uint32_t errors = p->diag->errors;
  Number was = number_eval(p, &p->user, written);
  if (p->diag->errors > errors || c->value.kind == NUM_error || was.kind == c->value.kind) return;
  ERR(c->ast->span, "MT0304", "%s is %s (%s), got %s", c->name, number_kind(was.kind),
      span_text(p->diag, p->arena, c->loc), number_text(p->arena, c->value));
}

static void require_check(Sema *s, const Ast *r) {
  Program *p = s->p;
  Number ok = number_eval(p, &p->user, r->kid[0]);
  Text names;
  text_init(&names, p->arena);
  if (ok.kind == NUM_number || ok.kind == NUM_string)
    ERR(r->kid[0]->span, "MT0250", "a condition is true or false, got %s", number_text(p->arena, ok));
  if (ok.kind != NUM_bool || ok.num != 0) return;
  values_explain(p, r->kid[0], &names);
  ERR(r->kid[0]->span, "MT0303", "require %s fails", span_words(p->diag, p->arena, r->kid[0]->span, "this"));
  if (names.n) diag_note(p->diag, "%s", names.s);
}

static void configs(Sema *s) {
  Program *p = s->p;
  for (uint32_t i = 0; i < s->item.n; i++)
    for (uint32_t k = 0; s->item.at[i]->kind == N_config && k < s->item.at[i]->kid[0]->n; k++)
      if (s->item.at[i]->kid[0]->kid[k]->kind == N_set) config_add(s, s->item.at[i]->kid[0]->kid[k]);
  preset_names_check(s);
  if (p->diag->errors) return;
  const Ast **written = NEW_N(p->arena, const Ast *, p->user.config.n + 1);
  for (uint32_t i = 0; i < p->user.config.n; i++) written[i] = p->user.config.at[i].ast;
  for (uint32_t i = 0; i < s->config.n && !diag_is_full(p->diag); i++) config_override(s, &s->config.at[i]);
  for (uint32_t i = 0; i < p->user.config.n; i++) config_value(p, &p->user.config.at[i]);
  for (uint32_t i = 0; i < p->user.config.n; i++)
    if (p->user.config.at[i].from) config_kind(s, &p->user.config.at[i], written[i]);
  if (p->diag->errors) return;
  for (uint32_t i = 0; i < s->item.n; i++)
    for (uint32_t k = 0; s->item.at[i]->kind == N_config && k < s->item.at[i]->kid[0]->n; k++)
      if (s->item.at[i]->kid[0]->kid[k]->kind == N_require) require_check(s, s->item.at[i]->kid[0]->kid[k]);
}

// ---- dims -------------------------------------------------------------------------------------------------
static void dims_collect(Sema *s) {
  Program *p = s->p;
  const Ast *sample = 0;
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    if (it->kind != N_dim) continue;
    const uint64_t *was = map_get(&p->dim_item, key_of(it->text));
    if (was) {
      ERR(it->span, "MT0224", "dim '%s' is already defined at %s", it->text,
          span_text(p->diag, p->arena, p->dim.at[*was].ast->span));
      continue;
    }
    if (it->kid[0]->kind == N_none && sample) {
      ERR(it->span, "MT0308", "dim %s has no extent, and the run gives one only: that of '%s' (%s)", it->text,
          sample->text, span_text(p->diag, p->arena, sample->span));
      continue;
    }
    if (it->kid[0]->kind == N_none) sample = it;
    vec_push(p->arena, &p->dim, (DimItem){.ast = it});
    map_put(&p->dim_item, key_of(it->text), p->dim.n - 1);
  }
}

static int64_t whole_setting(Sema *s, const char *path) { return (int64_t)setting_num(s->m, path, 1); }

static void check_batch(Sema *s) {
  for (uint32_t i = 1; i < s->m->dim.n; i++) {
    const Dim *d = &s->m->dim.at[i];
    if (!d->sample || s->p->global_batch % MAX(d->extent, 1) == 0) continue;
    const Setting *g = setting_find(s->m, "train.global_batch");
    ERR(g->loc.line ? g->loc : s->p->model->ast->span, "MT0334",
        "train.global_batch is %lld and must be a multiple of %lld, the samples of a microbatch on all ranks",
        (long long)s->p->global_batch, (long long)d->extent);
    diag_note(s->p->diag, "train.micro_batch is %lld, the axes that %s is mapped to make %lld; their product may be %s",
              (long long)s->p->micro_batch, d->name, (long long)(d->extent / MAX(s->p->micro_batch, 1)),
              divisors_text(s->p->arena, s->p->global_batch));
  }
}

// ---- the objective ----------------------------------------------------------------------------------------
static void term_add(Sema *s, Str name, double coef, Span at) {
  Program *p = s->p;
  for (uint32_t i = 0; i < p->minimize.n; i++)
    if (p->minimize.at[i].name == name) { p->minimize.at[i].coef += coef; return; }
  vec_push(p->arena, &p->minimize, (Term){name, coef, at});
}

static bool is_number(const Sema *s, const Ast *e) {                  // names nothing but configs and dims
  if (e->kind == N_name)
    return map_get(&s->p->user.config_by_name, key_of(e->text)) || number_predefined(e->text);
  if (e->kind == N_call && !strcmp(e->text, "extent")) return true;
  for (uint32_t i = 0; i < e->n; i++)
    if (!is_number(s, e->kid[i])) return false;
  return e->kind != N_none;
}

static void minimize(Sema *s, const Ast *e, double coef) {
  Program *p = s->p;
  char op = e->kind == N_binary || e->kind == N_unary ? *e->text : 0;
  if (e->kind == N_name && !is_number(s, e)) { term_add(s, e->text, coef, e->span); return; }
  if (e->kind == N_unary && op == '-') { minimize(s, e->kid[0], -coef); return; }
  if (e->kind == N_binary && (op == '+' || op == '-')) {
    minimize(s, e->kid[0], coef);
    minimize(s, e->kid[1], op == '-' ? -coef : coef);
    return;
  }
  int factor = op == '/' ? 1 : op == '*' && is_number(s, e->kid[0]) ? 0 : 1;
  if ((op == '*' || op == '/') && is_number(s, e->kid[factor])) {
    Number n = number_eval(p, &p->user, e->kid[factor]);
    double c = op == '*' ? coef * n.num : coef / n.num;
    if (n.kind == NUM_number && !isfinite(c))
      ERR(e->kid[factor]->span, "MT0322", "a factor of %s in minimize", number_text(p->arena, number_of(c)));
    else if (n.kind == NUM_number) minimize(s, e->kid[1 - factor], c);
    else if (n.kind != NUM_error)
      ERR(e->kid[factor]->span, "MT0322", "minimize: %s is no number", number_text(p->arena, n));
    return;
  }
  if (e->kind == N_none) return;
  ERR(e->span, "MT0322", "minimize wants a linear combination of outputs");
  diag_note(p->diag,
            "such as loss + 0.01 * aux_loss; anything else is computed in the model and named as an output");
}

// ---- keep -------------------------------------------------------------------------------------------------
static Def *kept_function(Sema *s, Str name) {
  Scope *scopes[] = {&s->p->user, &s->p->prelude};
  for (uint32_t i = 0; i < 2; i++) {
    const uint64_t *at = map_get(&scopes[i]->def_by_name, key_of(name));
    if (at) return &scopes[i]->def.at[*at];
  }
  return 0;
}

static void keep_apply(Sema *s, const Ast *keep) {
  Program *p = s->p;
  DType dtype = dtype_find(keep->text);
  if (!dtype_is_float(dtype) || dtype == DT_float)
    ERR(keep->span, "MT0320", "keep wants a float dtype, such as f32, not %s", keep->text);
  for (uint32_t j = 0; j < keep->kid[0]->n; j++) {
    const Ast *name = keep->kid[0]->kid[j];
    if (name->kind != N_name) continue;
    Def *def = kept_function(s, name->text);
    if (def) { def->keep = dtype; continue; }
    VEC(Str) names = {0};
    for (uint32_t d = 0; d < p->user.def.n; d++) vec_push(p->arena, &names, p->user.def.at[d].name);
    for (uint32_t d = 0; d < p->prelude.def.n; d++) vec_push(p->arena, &names, p->prelude.def.at[d].name);
    ERR(name->span, "MT0320", "keep %s: '%s' is no function of the text or the prelude", keep->text,
        name->text);
    word_suggest(p->diag, name->text, names.at, names.n);
  }
}

// ---- settings ---------------------------------------------------------------------------------------------
static void settings(Sema *s) {
  Program *p = s->p;
  Map seen;                                                            // path and file: once in a text
  map_init(&seen, p->arena);
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    const char *block = setting_block(it->kind);
    for (uint32_t k = 0; block && k < it->kid[0]->n; k++) {
      const Ast *set = it->kid[0]->kid[k];
      if (set->kind == N_keep) vec_push(p->arena, &s->keep, set);
      if (set->kind != N_set) continue;
      Str path = intern_printf(p->in, "%s.%s", block, set->text);
      uint64_t key = hash_mix(key_of(path), set->span.file);
      if (map_get(&seen, key)) ERR(set->span, "MT0224", "%s is already set in this text", path);
      map_put(&seen, key, 1);
      setting_apply(p, path, set);
    }
  }
  for (uint32_t i = 0; i < s->setting.n; i++) setting_apply(p, s->setting.at[i].path, s->setting.at[i].set);
  settings_complete(p);
}

// -----------------------------------------------------------------------------------------------------------
static void scope_init(Scope *s, Arena *a, Scope *up) {
  s->up = up;
  map_init(&s->def_by_name, a), map_init(&s->config_by_name, a), map_init(&s->dim_by_name, a);
}

static Sema *start(Arena *a, Intern *in, Diag *d) {
  Program *p = NEW(a, Program);
  Sema *s = NEW(a, Sema);
  s->p = p;
  p->arena = a, p->in = in, p->diag = d;
  p->module = s->m = module_create(a, in, d);
  map_init(&p->dim_item, a), map_init(&p->rule_by_dim, a), map_init(&s->loaded, a);
  scope_init(&p->prelude, a, 0), scope_init(&p->user, a, &p->prelude);
  const Ast *prelude = parse(a, in, d, diag_source(d, intern(in, "prelude.mt"), prelude_text, prelude_size));
  for (uint32_t i = 0; i < prelude->n; i++) collect(s, &p->prelude, prelude->kid[i]);
  return s;
}

static bool good(const Sema *s) { return !s->p->diag->errors && !s->status; }

Program *sema(Arena *a, Intern *in, Diag *d, const char *path, const Override *o, size_t n, Status *status) {
  Sema *s = start(a, in, d);
  Program *p = s->p;
  load_text(s, path);
  for (uint32_t i = 0; i < s->item.n; i++) collect(s, &p->user, s->item.at[i]);
  presets_check(s);
  dims_collect(s);
  if (good(s)) find_model(s);
  if (good(s)) overrides_read(s, o, n);
  if (good(s)) configs(s);
  if (good(s)) settings(s), mesh_read(s);
  if (good(s)) {
    p->micro_batch = whole_setting(s, "train.micro_batch"),
    p->global_batch = whole_setting(s, "train.global_batch");
    p->dims_known = true;
    for (uint32_t i = 0; i < p->dim.n; i++) dim_value(p, p->dim.at[i].ast->text);
    mesh_check(s);
    for (uint32_t i = 0; i < s->keep.n; i++) keep_apply(s, s->keep.at[i]);
  }
  if (good(s)) {
    check_batch(s);
    if (p->objective) minimize(s, p->objective, 1);
    else term_add(s, intern(in, "loss"), 1, (Span){0});
  }
  *status = s->status ? s->status : d->errors ? EXIT_COMPILE : 0;
  return good(s) ? p : 0;
}
