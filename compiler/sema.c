// sema.c -- a model text to a Program: files, names, config and presets, the mesh and its rules, dims.
//
// Overrides are applied in the command line's order; a preset is a list of overrides at its place. Config values are
// evaluated in the text's order, each seeing those before it; `require` is checked after all.
#include "compiler/program.h"
#include "grammar/prelude.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct { Str name; const Ast *value; const char *from; } ConfigOverride;
typedef struct { const Ast *set; } SettingOverride;
typedef VEC(const Ast *) Items;

typedef struct {
  Program *p;
  Module *m;
  Status status;                             // of a file that cannot be read
  Items item;                                // the user's files, imports first
  VEC(Str) loaded;                           // real paths
  VEC(ConfigOverride) config;
  VEC(SettingOverride) setting;
  VEC(const Ast *) map, no_map;
  const Ast *mesh;                           // the last --mesh; 0: as written
} Sema;

enum { TEXT_LIMIT = 1 << 28, IMPORT_DEPTH = 64 };

#define ERR(at, code, ...) diag_error(s->p->diag, at, code, __VA_ARGS__)

static void suggest(Sema *s, const char *word, const Str *words, size_t n) { word_suggest(s->p->diag, word, words, n); }

// ---- files --------------------------------------------------------------------------------------------------------
static void collect(Sema *s, Scope *scope, const Ast *item) {
  Program *p = s->p;
  if (item->kind != N_fn && item->kind != N_block && item->kind != N_model) return;
  const uint64_t *was = map_get(&scope->def_by_name, key_of(item->text));
  if (was) {
    ERR(item->span, "MT0224", "'%s' is already defined at %s", item->text, span_text(p->diag, p->arena, scope->def.at[*was].ast->span));
    return;
  }
  vec_push(p->arena, &scope->def, (Def){.name = item->text, .ast = item, .scope = scope});
  map_put(&scope->def_by_name, key_of(item->text), scope->def.n - 1);
}

static void load(Sema *s, const char *path, const Ast *from, int depth);

static void load_import(Sema *s, const char *importer, const Ast *import, int depth) {
  const char *slash = strrchr(importer, '/');
  const char *path = *import->text == '/' || !slash ? import->text
                   : arena_printf(s->p->arena, "%.*s/%s", (int)(slash - importer), importer, import->text);
  if (depth >= IMPORT_DEPTH) { ERR(import->span, "MT0340", "imports nest deeper than %d", IMPORT_DEPTH); return; }
  load(s, path, import, depth + 1);
}

static const Ast *read_text(Sema *s, const char *path, Status *status) {
  char *text;
  size_t n;
  Program *p = s->p;
  *status = file_read(p->arena, path, TEXT_LIMIT, &text, &n);
  return *status ? 0 : parse(p->arena, p->in, p->diag, diag_source(p->diag, intern(p->in, path), text, n));
}

static void load(Sema *s, const char *path, const Ast *from, int depth) {
  Program *p = s->p;
  char *real = realpath(path, 0);
  Str id = intern(p->in, real ? real : path);
  free(real);
  for (uint32_t i = 0; i < s->loaded.n; i++)
    if (s->loaded.at[i] == id) return;                                 // once is enough
  vec_push(p->arena, &s->loaded, id);
  Status status;
  const Ast *root = read_text(s, path, &status);
  if (!root) {
    s->status = status;
    if (from) ERR(from->span, "MT0341", "'%s' cannot be imported", from->text);
    return;
  }
  for (uint32_t i = 0; i < root->n; i++)
    if (root->kid[i]->kind == N_import) load_import(s, path, root->kid[i], depth);
  for (uint32_t i = 0; i < root->n; i++) vec_push(p->arena, &s->item, root->kid[i]);
}

// ---- overrides ------------------------------------------------------------------------------------------------------
static void override_set(Sema *s, const Ast *set, const char *from) {
  Arena *a = s->p->arena;
  if (strchr(set->text, '.')) vec_push(a, &s->setting, (SettingOverride){set});
  else if (set->kid[0]->n == 1) vec_push(a, &s->config, (ConfigOverride){set->text, set->kid[0]->kid[0], from});
  else ERR(set->span, "MT0249", "a config has one value");
}

static void override_preset(Sema *s, const char *name, Span at) {
  Program *p = s->p;
  VEC(Str) names = {0};
  bool found = false;
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    if (it->kind != N_preset) continue;
    vec_push(p->arena, &names, it->text);
    if (strcmp(it->text, name)) continue;
    found = true;
    for (uint32_t k = 0; k < it->kid[0]->n; k++)
      if (it->kid[0]->kid[k]->kind == N_set) override_set(s, it->kid[0]->kid[k], arena_printf(p->arena, "preset %s", name));
  }
  if (found) return;
  Text list;
  text_init(&list, p->arena);
  for (uint32_t i = 0; i < names.n; i++) text_printf(&list, "%s%s", i ? ", " : "", names.at[i]);
  ERR(at, "MT0302", "no preset '%s'; %s%s", name, names.n ? "there are " : "the model has none", names.n ? list.s : "");
  suggest(s, name, names.at, names.n);
}

static void override_parallel(Sema *s, const char *path) {
  const Ast *root = read_text(s, path, &s->status);
  for (uint32_t i = 0; root && i < root->n; i++) {
    const Ast *it = root->kid[i];
    if (it->kind != N_precision && it->kind != N_parallel && it->kind != N_train) {
      if (it->kind != N_none) ERR(it->span, "MT0342", "a parallel file holds precision, parallel and train only");
      continue;
    }
    for (uint32_t k = 0; k < it->kid[0]->n; k++) {
      const Ast *x = it->kid[0]->kid[k];
      if (x->kind == N_mesh) s->mesh = x;
      else if (x->kind == N_map) vec_push(s->p->arena, &s->map, x);
      else vec_push(s->p->arena, &s->item, it);                        // settings: as a block of the text, later than it
      if (x->kind != N_mesh && x->kind != N_map) break;
    }
  }
}

static void overrides(Sema *s, const Override *o, size_t n) {
  static const char *const flag[] = {"-D", "--preset", "--set", "--mesh", "--map", "--no-map", "--parallel"};
  Program *p = s->p;
  for (size_t i = 0; i < n; i++) {
    uint16_t src = diag_source(p->diag, intern_printf(p->in, "(%s)", flag[o[i].kind]), o[i].text, strlen(o[i].text));
    Span at = {.file = src, .line = 1, .end_line = 1, .col = 1, .end_col = (uint16_t)MIN(strlen(o[i].text), 200)};
    switch (o[i].kind) {
    case OVERRIDE_config: case OVERRIDE_set: {
      const Ast *set = parse_setting(p->arena, p->in, p->diag, src);
      if (!set) break;
      bool dotted = strchr(set->text, '.') != 0;
      if (o[i].kind == OVERRIDE_config && dotted) ERR(set->span, "MT0301", "'%s' is a setting, not a config; use --set", set->text);
      else if (o[i].kind == OVERRIDE_set && !dotted) ERR(set->span, "MT0330", "'%s' is no setting; a config is set by -D", set->text);
      else override_set(s, set, "-D");
      break;
    }
    case OVERRIDE_preset: override_preset(s, o[i].text, at); break;
    case OVERRIDE_mesh: {
      const Ast *mesh = parse_mesh(p->arena, p->in, p->diag, src);
      if (mesh) s->mesh = mesh;
      break;
    }
    case OVERRIDE_map: case OVERRIDE_no_map: {
      const Ast *map = o[i].kind == OVERRIDE_map ? parse_map(p->arena, p->in, p->diag, src) : ast_node(p->arena, N_name, at, intern(p->in, o[i].text));
      if (map) vec_push(p->arena, &s->map, map);                       // in order: a later --map counts after a --no-map
      break;
    }
    case OVERRIDE_parallel: override_parallel(s, o[i].text); break;
    }
  }
}

// ---- config -------------------------------------------------------------------------------------------------------
static void config_set(Sema *s, const Ast *set) {
  Program *p = s->p;
  Scope *u = &p->user;
  const uint64_t *was = map_get(&u->config_by_name, key_of(set->text));
  if (was) {
    ERR(set->span, "MT0224", "'%s' is already defined at %s", set->text, span_text(p->diag, p->arena, u->config.at[*was].loc));
    return;
  }
  Config c = {.name = set->text, .loc = set->span};
  const Ast *value = set->kid[0]->n ? set->kid[0]->kid[0] : 0;
  for (uint32_t i = s->config.n; i-- && !c.from;)
    if (s->config.at[i].name == c.name) value = s->config.at[i].value, c.from = s->config.at[i].from;
  c.value = value ? number_eval(p, u, value) : (Number){.kind = NUM_error};
  vec_push(p->arena, &u->config, c);
  map_put(&u->config_by_name, key_of(c.name), u->config.n - 1);
}

static void explain_config(Sema *s, const Ast *e, Text *t) {           // "hidden is 770 (-D), nheads is 12"
  Program *p = s->p;
  if (e->kind == N_name) {
    const uint64_t *i = map_get(&p->user.config_by_name, key_of(e->text));
    if (!i) return;
    const Config *c = &p->user.config.at[*i];
    text_printf(t, "%s%s is %s%s%s%s", t->n ? ", " : "", c->name, number_text(p->arena, c->value), c->from ? " (" : "",
                c->from ? c->from : "", c->from ? ")" : "");
    return;
  }
  for (uint32_t i = 0; i < e->n; i++) explain_config(s, e->kid[i], t);
}

static void configs(Sema *s) {
  Program *p = s->p;
  for (uint32_t i = 0; i < s->item.n; i++)
    if (s->item.at[i]->kind == N_config)
      for (uint32_t k = 0; k < s->item.at[i]->kid[0]->n; k++)
        if (s->item.at[i]->kid[0]->kid[k]->kind == N_set) config_set(s, s->item.at[i]->kid[0]->kid[k]);
  for (uint32_t i = 0; i < s->config.n; i++) {
    const ConfigOverride *o = &s->config.at[i];
    if (map_get(&p->user.config_by_name, key_of(o->name))) continue;
    ERR(o->value->span, "MT0301", "no config '%s'", o->name);
    VEC(Str) names = {0};
    for (uint32_t k = 0; k < p->user.config.n; k++) vec_push(p->arena, &names, p->user.config.at[k].name);
    suggest(s, o->name, names.at, names.n);
  }
  if (p->diag->errors) return;
  for (uint32_t i = 0; i < s->item.n; i++)
    if (s->item.at[i]->kind == N_config)
      for (uint32_t k = 0; k < s->item.at[i]->kid[0]->n; k++) {
        const Ast *r = s->item.at[i]->kid[0]->kid[k];
        if (r->kind != N_require) continue;
        Number ok = number_eval(p, &p->user, r->kid[0]);
        Text names;
        text_init(&names, p->arena);
        if (ok.kind == NUM_number || ok.kind == NUM_string) ERR(r->kid[0]->span, "MT0250", "require wants a condition, got %s", number_text(p->arena, ok));
        if (ok.kind != NUM_bool || ok.num != 0) continue;
        explain_config(s, r->kid[0], &names);
        ERR(r->kid[0]->span, "MT0303", "require %s fails%s%s", span_words(p->diag, p->arena, r->kid[0]->span, "this"), names.n ? ": " : "", names.n ? names.s : "");
      }
}

// ---- the mesh and its rules ---------------------------------------------------------------------------------------
static bool whole(Number n, double least, double most) {
  return n.kind == NUM_number && n.num >= least && n.num <= most && n.num == floor(n.num);
}

static void no_axis(Sema *s, Span at, Str name) {
  Text list;
  text_init(&list, s->p->arena);
  for (uint32_t k = 0; k < s->m->axis.n; k++) text_printf(&list, "%s%s", k ? ", " : "", s->m->axis.at[k].name);
  ERR(at, "MT0310", "no mesh axis '%s'; axes: %s", name, s->m->axis.n ? list.s : "none");
}

static void axes(Sema *s, const Ast *mesh, bool declare) {
  Program *p = s->p;
  for (uint32_t i = 0; i < mesh->kid[0]->n; i++) {
    const Ast *set = mesh->kid[0]->kid[i];
    int at = axis_find(s->m, set->text);
    Number n = number_eval(p, &p->user, set->kid[0]->kid[0]);
    if (n.kind != NUM_error && !whole(n, 1, 1 << 20)) ERR(set->span, "MT0305", "mesh %s is %s; it must be whole and positive", set->text, number_text(p->arena, n));
    if (!whole(n, 1, 1 << 20)) n = number_of(1);
    if (declare && at >= 0) ERR(set->span, "MT0224", "axis '%s' is already defined", set->text);
    else if (declare && s->m->axis.n == MAX_AXES) ERR(set->span, "MT0314", "a mesh has at most %d axes", MAX_AXES);
    else if (declare) vec_push(p->arena, &s->m->axis, (Axis){set->text, (int32_t)n.num});
    else if (at < 0) no_axis(s, set->span, set->text);
    else s->m->axis.at[at].size = (int32_t)n.num;
  }
}

static bool rule_of(const Module *m, Str dim, bool weak, uint32_t *at) {
  for (*at = 0; *at < m->rule.n; (*at)++)
    if (m->rule.at[*at].dim == dim && m->rule.at[*at].weak == weak) return true;
  return false;
}

static void drop_rule(Module *m, uint32_t at) {
  memmove(m->rule.at + at, m->rule.at + at + 1, (m->rule.n - at - 1) * sizeof *m->rule.at);
  m->rule.n--;
}

static void map_add(Sema *s, const Ast *map, bool replaces) {
  bool weak = *map->text == 'w';
  for (uint32_t i = 0; i < map->kid[0]->n; i++) {
    const Ast *d = map->kid[0]->kid[i];
    MapRule r = {.dim = d->text, .weak = weak, .loc = map->span};
    uint32_t at;
    if (rule_of(s->m, r.dim, weak, &at)) {
      if (replaces) drop_rule(s->m, at);
      else { ERR(d->span, "MT0224", "'%s' already has a%s rule", d->text, weak ? " weak" : ""); continue; }
    }
    for (uint32_t k = 0; k < map->kid[1]->n; k++) {
      const Ast *axis = map->kid[1]->kid[k];
      int id = axis_find(s->m, axis->text);
      bool twice = false;
      for (uint32_t j = 0; j < r.naxis; j++) twice |= r.axis[j] == id;
      if (id < 0) no_axis(s, axis->span, axis->text);
      else if (twice) ERR(axis->span, "MT0224", "axis '%s' is named twice", axis->text);
      else if (r.naxis == MAX_SPLIT) ERR(axis->span, "MT0314", "a dim is split by at most %d axes", MAX_SPLIT);
      else r.axis[r.naxis++] = (uint8_t)id;
    }
    vec_push(s->p->arena, &s->m->rule, r);
  }
}

static void map_remove(Sema *s, const Ast *name) {
  uint32_t at, n = s->m->rule.n;
  for (int weak = 0; weak < 2; weak++)
    while (rule_of(s->m, name->text, weak, &at)) drop_rule(s->m, at);
  if (n != s->m->rule.n) return;
  VEC(Str) names = {0};
  for (uint32_t k = 0; k < n; k++) vec_push(s->p->arena, &names, s->m->rule.at[k].dim);
  ERR(name->span, "MT0315", "no rule maps '%s'", name->text);
  suggest(s, name->text, names.at, names.n);
}

static void mesh(Sema *s) {
  const Ast *declared = 0;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < s->item.n; i++) {
      if (s->item.at[i]->kind != N_parallel) continue;
      for (uint32_t k = 0; k < s->item.at[i]->kid[0]->n; k++) {
        const Ast *x = s->item.at[i]->kid[0]->kid[k];
        if (x->kind == N_mesh && !pass && declared) ERR(x->span, "MT0224", "the mesh is already defined");
        else if (x->kind == N_mesh && !pass) axes(s, declared = x, true);
        else if (x->kind == N_map && pass) map_add(s, x, false);
      }
    }
  if (s->mesh) {
    for (uint32_t i = 0; i < s->m->axis.n; i++) s->m->axis.at[i].size = 1;
    axes(s, s->mesh, false);
  }
  for (uint32_t i = 0; i < s->map.n; i++) {
    if (s->map.at[i]->kind == N_map) map_add(s, s->map.at[i], true);
    else map_remove(s, s->map.at[i]);
  }
}

// rules name dims that exist; an axis above 1 has a rule (the pipeline's is used by its cut)
static void check_rules(Sema *s) {
  Program *p = s->p;
  VEC(Str) names = {0};
  for (uint32_t i = 1; i < s->m->dim.n; i++) vec_push(p->arena, &names, s->m->dim.at[i].name);
  for (uint32_t i = 0; i < s->m->rule.n; i++) {
    const MapRule *r = &s->m->rule.at[i];
    if (map_get(&p->user.dim_by_name, key_of(r->dim))) continue;
    ERR(r->loc, "MT0220", "no dim '%s'", r->dim);
    suggest(s, r->dim, names.at, names.n);
  }
  for (uint32_t a = 0; a < s->m->axis.n; a++) {
    bool used = s->m->axis.at[a].size == 1 || !strcmp(s->m->axis.at[a].name, "pp");
    for (uint32_t i = 0; i < s->m->rule.n && !used; i++)
      for (uint32_t k = 0; k < s->m->rule.at[i].naxis; k++) used |= s->m->rule.at[i].axis[k] == a;
    if (!used) ERR((Span){0}, "MT0313", "axis %s is %d and no rule maps a dim to it", s->m->axis.at[a].name, s->m->axis.at[a].size);
  }
}

// ---- dims ---------------------------------------------------------------------------------------------------------
static int64_t ways(const Sema *s, Str dim, bool strong_only) {        // product of the axes that dim is mapped to, each once
  int64_t n = 1;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < s->m->rule.n; i++) {
    const MapRule *r = &s->m->rule.at[i];
    if (r->dim != dim || (strong_only && r->weak)) continue;
    for (uint32_t k = 0; k < r->naxis; k++)
      if (!(seen >> r->axis[k] & 1)) seen |= 1u << r->axis[k], n *= s->m->axis.at[r->axis[k]].size;
  }
  return n;
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

static void dim_declare(Sema *s, const Ast *it) {
  Program *p = s->p;
  Scope *u = &p->user;
  const Ast *e = it->kid[0], *pad = it->kid[1];
  Dim d = {.name = it->text};
  if (map_get(&u->dim_by_name, key_of(it->text))) { ERR(it->span, "MT0224", "dim '%s' is already defined", it->text); return; }
  const uint64_t *role = e->kind == N_name ? map_get(&u->dim_by_name, key_of(e->text)) : 0;
  if (role && pad->kind == N_none) {
    d = *dim_of(s->m, (DimId)*role);
    d.name = it->text, d.sample = false, d.ragged = false;
  } else if (e->kind == N_none) {                                      // from the run: samples of a microbatch on all ranks
    d.sample = true;
    if (!mul_ok(p->micro_batch, ways(s, it->text, false), &d.extent)) d.extent = 0;
    d.size = d.extent;
  } else {
    Number n = number_eval(p, u, e);
    if (n.kind != NUM_error && !whole(n, 1, 0x1p53)) {
      Text names;
      text_init(&names, p->arena);
      explain_config(s, e, &names);
      ERR(it->span, "MT0305", "dim %s = %s is %s%s%s%s; it must be whole and positive", it->text, span_words(p->diag, p->arena, e->span, "…"), number_text(p->arena, n),
          names.n ? " (" : "", names.n ? names.s : "", names.n ? ")" : "");
    }
    d.extent = d.size = whole(n, 1, 0x1p53) ? (int64_t)n.num : 1;
    if (pad->kind != N_none) {
      Number k = number_eval(p, u, pad);
      if (k.kind != NUM_error && !whole(k, 1, 1 << 30)) ERR(pad->span, "MT0305", "pad %s must be whole and positive", number_text(p->arena, k));
      int64_t to = whole(k, 1, 1 << 30) ? (int64_t)k.num : 1, w = ways(s, it->text, true);
      to = to / gcd(to, w) * w;
      d.size = (d.extent + to - 1) / to * to;
    }
  }
  map_put(&u->dim_by_name, key_of(it->text), dim_add(s->m, d));
}

// ---- the batch ----------------------------------------------------------------------------------------------------
static int64_t whole_setting(Sema *s, const char *path) {
  const Setting *v = setting_find(s->m, path);
  Number n = v && v->kind == SET_num ? number_of(v->num) : (Number){.kind = NUM_error};
  if (whole(n, 1, 0x1p40)) return (int64_t)n.num;
  if (n.kind != NUM_error) ERR(v->loc, "MT0335", "%s is %s; it must be whole and positive", path, number_text(s->p->arena, n));
  return 1;
}

static void check_batch(Sema *s) {
  for (uint32_t i = 1; i < s->m->dim.n; i++) {
    const Dim *d = &s->m->dim.at[i];
    if (!d->sample || s->p->global_batch % MAX(d->extent, 1) == 0) continue;
    const Setting *g = setting_find(s->m, "train.global_batch");
    ERR(g ? g->loc : (Span){0}, "MT0334", "train.global_batch is %lld, a microbatch over all ranks has %lld samples (train.micro_batch %lld × %lld); it must divide",
        (long long)s->p->global_batch, (long long)d->extent, (long long)s->p->micro_batch, (long long)(d->extent / MAX(s->p->micro_batch, 1)));
  }
}

// ---- the objective --------------------------------------------------------------------------------------------------
static void term_add(Sema *s, Str name, double coef, Span at) {
  Program *p = s->p;
  for (uint32_t i = 0; i < p->minimize.n; i++)
    if (p->minimize.at[i].name == name) { p->minimize.at[i].coef += coef; return; }
  vec_push(p->arena, &p->minimize, (Term){name, coef, at});
}

static void minimize(Sema *s, const Ast *e, double coef) {
  Program *p = s->p;
  if (e->kind == N_name && !map_get(&p->user.config_by_name, key_of(e->text))) { term_add(s, e->text, coef, e->span); return; }
  if (e->kind == N_unary && *e->text == '-') { minimize(s, e->kid[0], -coef); return; }
  if (e->kind == N_binary && (*e->text == '+' || *e->text == '-')) {
    minimize(s, e->kid[0], coef);
    minimize(s, e->kid[1], *e->text == '-' ? -coef : coef);
    return;
  }
  if (e->kind == N_binary && (*e->text == '*' || *e->text == '/')) {
    for (int side = 0; side < (*e->text == '*' ? 2 : 1); side++) {
      const Ast *f = e->kid[1 - side];
      if (f->kind != N_num && !(f->kind == N_name && map_get(&p->user.config_by_name, key_of(f->text)))) continue;
      Number n = number_eval(p, &p->user, f);
      if (n.kind == NUM_number) minimize(s, e->kid[side], *e->text == '*' ? coef * n.num : coef / n.num);
      return;
    }
  }
  if (e->kind != N_none) ERR(e->span, "MT0322", "minimize wants a linear combination of outputs, such as loss + 0.01 * aux_loss");
}

// ---- keep ---------------------------------------------------------------------------------------------------------
static void keeps(Sema *s) {
  Program *p = s->p;
  for (uint32_t i = 0; i < s->item.n; i++) {
    if (s->item.at[i]->kind != N_precision) continue;
    for (uint32_t k = 0; k < s->item.at[i]->kid[0]->n; k++) {
      const Ast *keep = s->item.at[i]->kid[0]->kid[k];
      if (keep->kind != N_keep) continue;
      DType dtype = dtype_find(keep->text);
      if (!dtype_is_float(dtype) || dtype == DT_float) ERR(keep->span, "MT0320", "keep wants a float dtype, such as f32");
      for (uint32_t j = 0; j < keep->kid[0]->n; j++) {
        const Ast *name = keep->kid[0]->kid[j];
        Scope *scopes[] = {&p->user, &p->prelude};
        Def *def = 0;
        VEC(Str) names = {0};
        for (uint32_t q = 0; q < 2 && !def; q++) {
          const uint64_t *at = map_get(&scopes[q]->def_by_name, key_of(name->text));
          if (at) def = &scopes[q]->def.at[*at];
          for (uint32_t d = 0; d < scopes[q]->def.n; d++) vec_push(p->arena, &names, scopes[q]->def.at[d].name);
        }
        if (def) { def->keep = dtype; continue; }
        ERR(name->span, "MT0320", "keep %s: '%s' is no function", keep->text, name->text);
        suggest(s, name->text, names.at, names.n);
      }
    }
  }
}

// -------------------------------------------------------------------------------------------------------------------
static void scope_init(Scope *s, Arena *a, Scope *up) {
  s->up = up;
  map_init(&s->def_by_name, a), map_init(&s->config_by_name, a), map_init(&s->dim_by_name, a);
}

static void settings(Sema *s) {
  Program *p = s->p;
  static const struct { NodeKind kind; const char *prefix; } block[] = {{N_precision, "precision"}, {N_parallel, "parallel"}, {N_train, "train"}};
  for (uint32_t i = 0; i < s->item.n; i++)
    for (uint32_t b = 0; b < COUNT(block); b++) {
      if (s->item.at[i]->kind != block[b].kind) continue;
      for (uint32_t k = 0; k < s->item.at[i]->kid[0]->n; k++) {
        const Ast *set = s->item.at[i]->kid[0]->kid[k];
        if (set->kind == N_set) setting_apply(p, intern_printf(p->in, "%s.%s", block[b].prefix, set->text), set);
      }
    }
  for (uint32_t i = 0; i < s->setting.n; i++) setting_apply(p, s->setting.at[i].set->text, s->setting.at[i].set);
  settings_complete(p);
}

Program *sema(Arena *a, Intern *in, Diag *d, const char *path, const Override *o, size_t n, Status *status) {
  Program *p = NEW(a, Program);
  Sema sema_state = {.p = p}, *s = &sema_state;
  *status = EXIT_COMPILE;
  p->arena = a, p->in = in, p->diag = d;
  p->module = s->m = module_create(a, in, d);
  scope_init(&p->prelude, a, 0), scope_init(&p->user, a, &p->prelude);

  const Ast *prelude = parse(a, in, d, diag_source(d, intern(in, "prelude.mt"), prelude_text, prelude_size));
  for (uint32_t i = 0; i < prelude->n; i++) collect(s, &p->prelude, prelude->kid[i]);
  load(s, path, 0, 0);
  if (s->status) *status = s->status;
  for (uint32_t i = 0; i < s->item.n; i++) collect(s, &p->user, s->item.at[i]);
  if (d->errors || s->status) return 0;
  for (uint32_t i = 0; i < p->user.def.n; i++) {
    const Def *def = &p->user.def.at[i];
    if (def->ast->kind != N_model) continue;
    if (p->model) ERR(def->ast->span, "MT0343", "a second model; the first is '%s' at %s", p->model->name, span_text(d, a, p->model->ast->span));
    else p->model = def;
  }
  if (!p->model) ERR((Span){.file = (uint16_t)(d->source.n - 1)}, "MT0343", "the text has no model");

  overrides(s, o, n);
  if (s->status) *status = s->status;
  if (d->errors || s->status) return 0;
  configs(s);
  if (d->errors) return 0;
  settings(s);
  mesh(s);
  if (d->errors) return 0;
  p->micro_batch = whole_setting(s, "train.micro_batch"), p->global_batch = whole_setting(s, "train.global_batch");
  for (uint32_t i = 0; i < s->item.n; i++)
    if (s->item.at[i]->kind == N_dim) dim_declare(s, s->item.at[i]);
  check_rules(s);
  check_batch(s);
  keeps(s);
  if (p->objective) minimize(s, p->objective, 1);
  else term_add(s, intern(in, "loss"), 1, (Span){0});
  if (d->errors) return 0;
  *status = 0;
  return p;
}
