// override.c -- what the command line says, and the presets and parallel files that it names, as lists in its
// order.
#include "compiler/sema.h"
#include <string.h>

static void override_set(Sema *s, const Ast *set, const char *from) { // in a preset, or of -D and --set
  Arena *a = s->p->arena;
  if (strchr(set->text, '.')) vec_push(a, &s->setting, (SettingOverride){set->text, set});
  else if (set->kid[0]->n == 1)
    vec_push(a, &s->config, (ConfigOverride){set->text, set->kid[0]->kid[0], set->span, from});
  else ERR(set->span, "MT0249", "a config has one value");
}

static void override_preset(Sema *s, const char *name, Span at) {
  Program *p = s->p;
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    if (it->kind != N_preset) continue;
    vec_push(p->arena, &names, it->text);
    if (strcmp(it->text, name)) continue;
    for (uint32_t k = 0; k < it->kid[0]->n; k++)
      if (it->kid[0]->kid[k]->kind == N_set)
        override_set(s, it->kid[0]->kid[k], arena_printf(p->arena, "preset %s", name));
    return;
  }
  Text list;
  text_init(&list, p->arena);
  for (uint32_t i = 0; i < names.n; i++) text_printf(&list, "%s%s", i ? ", " : "", names.at[i]);
  ERR(at, "MT0302", "no preset '%s'; %s%s", name, names.n ? "there are " : "the model has none", list.s);
  word_suggest(p->diag, name, names.at, names.n);
}

const char *setting_block(NodeKind kind) {
  return kind == N_precision ? "precision" : kind == N_parallel ? "parallel" : kind == N_train ? "train" : 0;
}

static void override_parallel(Sema *s, const char *path) {
  Program *p = s->p;
  const Ast *root = load_parallel(s, path);
  for (uint32_t i = 0; root && i < root->n; i++) {
    const Ast *it = root->kid[i];
    const char *block = setting_block(it->kind);
    if (!block) {
      if (it->kind != N_none)
        ERR(it->span, "MT0342", "a parallel file holds precision, parallel and train only");
      continue;
    }
    for (uint32_t k = 0; k < it->kid[0]->n; k++) {
      const Ast *x = it->kid[0]->kid[k];
      if (x->kind == N_mesh) s->mesh = x;
      else if (x->kind == N_map) vec_push(p->arena, &s->rule, x);
      else if (x->kind == N_keep) vec_push(p->arena, &s->keep, x);
      else if (x->kind == N_set)
        vec_push(p->arena, &s->setting, (SettingOverride){intern_printf(p->in, "%s.%s", block, x->text), x});
    }
  }
}

static void override_read(Sema *s, Override o, uint16_t source, Span at) {
  Program *p = s->p;
  switch (o.kind) {
  case OVERRIDE_config: case OVERRIDE_set: {
    const Ast *set = parse_setting(p->arena, p->in, p->diag, source);
    bool dotted = set && strchr(set->text, '.');
    if (set && o.kind == OVERRIDE_config && dotted)
      ERR(set->span, "MT0301", "'%s' is a setting, not a config; write --set %s", set->text, o.text);
    else if (set && o.kind == OVERRIDE_set && !dotted) {
      ERR(set->span, "MT0330", "'%s' is no setting; a config is given by -D", set->text);
      setting_suggest(p, set->text);
    } else if (set) override_set(s, set, "-D");
    break;
  }
  case OVERRIDE_preset: override_preset(s, o.text, at); break;
  case OVERRIDE_mesh: {
    const Ast *mesh = parse_mesh(p->arena, p->in, p->diag, source);
    if (mesh) s->mesh = mesh;
    break;
  }
  case OVERRIDE_map: {
    const Ast *map = parse_map(p->arena, p->in, p->diag, source);
    if (!map) break;
    vec_push(p->arena, &s->rule, map);
    vec_push(p->arena, &p->said_map, map);
    break;
  }
  case OVERRIDE_no_map:
    vec_push(p->arena, &s->rule, ast_node(p->arena, N_name, at, intern(p->in, o.text)));
    break;
  case OVERRIDE_parallel: override_parallel(s, o.text); break;
  }
}

void overrides_read(Sema *s, const Override *o, size_t n) {
  enum { MOST = 10000 };
  static const char *const flag[] = {"-D", "--preset", "--set", "--mesh", "--map", "--no-map", "--parallel"};
  Program *p = s->p;
  if (n > MOST) { s->status = fail(EXIT_USAGE, "more than %d options", MOST); return; }
  for (size_t i = 0; i < n; i++) {
    uint16_t source = diag_source(p->diag, intern_printf(p->in, "(%s)", flag[o[i].kind]), o[i].text,
                                  strlen(o[i].text));
    Span at = {.file = source,
               .line = 1,
               .end_line = 1,
               .col = 1,
               .end_col = (uint16_t)MAX(MIN(strlen(o[i].text), 200), 1)};
    override_read(s, o[i], source, at);
  }
}
