// settings.c -- what precision, parallel and train say: known paths, kinds, callees and arguments (settings.def).
#include "compiler/program.h"
#include "runtime/schedule.h"
#include <stdlib.h>
#include <string.h>

typedef enum { KIND_SETTING_num, KIND_SETTING_word, KIND_SETTING_flag, KIND_SETTING_call, KIND_SETTING_list, KIND_SETTING_expr } SettingRow;

typedef struct { const char *path; SettingRow kind; const char *otherwise; } Row;
typedef struct { const char *path, *callee, *arg; double otherwise; } CallRow;

static const Row rows[] = {
#define SETTING(path, kind, otherwise, doc) {path, KIND_SETTING_##kind, otherwise},
#define CALL(path, callee, arg, otherwise, doc)
#include "compiler/settings.def"
#undef SETTING
#undef CALL
};
static const CallRow calls[] = {
#define SETTING(path, kind, otherwise, doc)
#define CALL(path, callee, arg, otherwise, doc) {path, callee, arg, otherwise},
#include "compiler/settings.def"
#undef SETTING
#undef CALL
};

static const Row *row_of(const char *path) {
  for (size_t i = 0; i < COUNT(rows); i++)
    if (!strcmp(rows[i].path, path)) return &rows[i];
  return 0;
}

static bool callee_known(const char *path, const char *callee) {
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].path, path) && !strcmp(calls[i].callee, callee)) return true;
  return false;
}

static bool arg_known(const char *path, const char *callee, const char *arg) {
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].path, path) && !strcmp(calls[i].callee, callee) && !strcmp(calls[i].arg, arg)) return true;
  return false;
}

// ---- values -------------------------------------------------------------------------------------------------------
static Setting value_of(Program *p, Str path, const Ast *e) {
  Setting v = {.path = path, .loc = e->span};
  bool config = e->kind == N_name && map_get(&p->user.config_by_name, key_of(e->text));
  if (e->kind == N_name && !config) {
    bool on = !strcmp(e->text, "on");
    if (on || !strcmp(e->text, "off")) v.kind = SET_bool, v.num = on;
    else v.kind = SET_word, v.word = e->text;
  } else if (e->kind == N_dtype || e->kind == N_str) {
    v.kind = SET_word, v.word = e->text;
  } else if (e->kind == N_call && row_of(path) && row_of(path)->kind == KIND_SETTING_call) {
    v.kind = SET_call, v.word = e->text;
    const Ast *args = e->kid[2];
    v.arg = NEW_N(p->arena, Setting, args->n + 1);
    for (uint32_t i = 0; i < args->n; i++) {
      Str name = args->kid[i]->text;
      if (*name && setting_arg(&v, name)) diag_error(p->diag, args->kid[i]->span, "MT0224", "'%s' is given twice", name);
      else v.arg[v.narg++] = value_of(p, name, args->kid[i]->kid[0]);
    }
  } else {
    Number n = number_eval(p, &p->user, e);
    v.kind = n.kind == NUM_bool ? SET_bool : n.kind == NUM_string ? SET_word : SET_num;
    v.num = n.num, v.word = n.str;
  }
  return v;
}

static const char *value_text(Program *p, const Setting *v) {
  return v->kind == SET_num ? number_text(p->arena, number_of(v->num)) : v->kind == SET_bool ? (v->num != 0 ? "on" : "off") : v->word;
}

static void check_call(Program *p, Setting *v) {
  if (v->kind == SET_word) v->kind = SET_call;                         // a bare word is a call without arguments
  if (v->kind == SET_num && !strcmp(v->path, "precision.loss_scale")) return;
  if (v->kind != SET_call) {
    diag_error(p->diag, v->loc, "MT0331", "%s is one of a few words, got %s", v->path, value_text(p, v));
    return;
  }
  VEC(Str) names = {0};
  if (!callee_known(v->path, v->word)) {
    Text list;
    text_init(&list, p->arena);
    for (size_t i = 0; i < COUNT(calls); i++)
      if (!strcmp(calls[i].path, v->path) && (!i || strcmp(calls[i - 1].callee, calls[i].callee))) {
        vec_push(p->arena, &names, calls[i].callee);
        text_printf(&list, "%s%s", list.n ? ", " : "", calls[i].callee);
      }
    diag_error(p->diag, v->loc, "MT0332", "%s: there is no '%s'; there are %s", v->path, v->word, list.s);
    word_suggest(p->diag, v->word, names.at, names.n);
    return;
  }
  for (uint32_t k = 0; k < v->narg; k++) {
    if (arg_known(v->path, v->word, v->arg[k].path)) continue;
    VEC(Str) args = {0};
    for (size_t i = 0; i < COUNT(calls); i++)
      if (!strcmp(calls[i].path, v->path) && !strcmp(calls[i].callee, v->word)) vec_push(p->arena, &args, calls[i].arg);
    if (*v->arg[k].path) diag_error(p->diag, v->arg[k].loc, "MT0333", "%s has no argument '%s'", v->word, v->arg[k].path);
    else diag_error(p->diag, v->arg[k].loc, "MT0333", "%s wants its arguments by name, such as %s = …", v->word, args.n ? args.at[0] : "x");
    word_suggest(p->diag, v->arg[k].path, args.at, args.n);
  }
}

// one argument of a call that is already set: train.optimizer.lr
static bool set_argument(Program *p, Str path, const Ast *value) {
  Module *m = p->module;
  const char *dot = strrchr(path, '.');
  if (!dot || dot == strchr(path, '.')) return false;
  Str parent = intern_n(p->in, path, (size_t)(dot - path)), arg = intern(p->in, dot + 1);
  const Row *row = row_of(parent);
  if (!row || row->kind != KIND_SETTING_call) return false;
  if (!setting_find(m, parent)) vec_push(p->arena, &m->set, (Setting){.path = parent, .kind = SET_call, .word = intern(p->in, row->otherwise), .loc = value->span});
  for (uint32_t i = 0; i < m->set.n; i++) {
    Setting *call = &m->set.at[i];
    if (call->path != parent) continue;
    Setting v = value_of(p, arg, value), *old = (Setting *)setting_arg(call, arg);
    if (old) *old = v;
    else {
      Setting *more = NEW_N(p->arena, Setting, call->narg + 1);
      if (call->narg) memcpy(more, call->arg, call->narg * sizeof *more);
      more[call->narg++] = v, call->arg = more;
    }
    check_call(p, call);
  }
  return true;
}

static Str bare(Str path) { return strchr(path, '.') ? strchr(path, '.') + 1 : path; }

void setting_apply(Program *p, Str path, const Ast *set) {
  Module *m = p->module;
  const Row *row = row_of(path);
  const Ast *values = set->kid[0];
  if (!values->n) return;
  if (!row && values->n == 1 && set_argument(p, path, values->kid[0])) return;
  if (!row) {
    VEC(Str) names = {0};
    for (size_t i = 0; i < COUNT(rows); i++) vec_push(p->arena, &names, rows[i].path);
    diag_error(p->diag, set->span, "MT0330", "no setting '%s'", path);
    word_suggest(p->diag, path, names.at, names.n);
    return;
  }
  if (row->kind == KIND_SETTING_list) {
    bool no = !strcmp(bare(path), "no_decay");
    for (uint32_t i = 0; i < values->n; i++) {
      if (values->kid[i]->kind != N_str) diag_error(p->diag, values->kid[i]->span, "MT0331", "%s wants patterns in quotes, such as \"*.bias\"", path);
      else if (no) vec_push(p->arena, &p->no_decay, values->kid[i]->text);
      else vec_push(p->arena, &p->decay, values->kid[i]->text);
    }
    *(no ? &p->no_decay_at : &p->decay_at) = set->span;
    return;
  }
  if (values->n != 1) { diag_error(p->diag, set->span, "MT0331", "%s has one value", path); return; }
  if (row->kind == KIND_SETTING_expr) { p->objective = values->kid[0]; return; }
  uint32_t errors = p->diag->errors;
  Setting v = value_of(p, path, values->kid[0]);
  if (p->diag->errors > errors) return;
  bool ok = row->kind == KIND_SETTING_num ? v.kind == SET_num : row->kind == KIND_SETTING_word ? v.kind == SET_word
          : row->kind == KIND_SETTING_flag ? v.kind == SET_bool : true;
  if (!ok) {
    diag_error(p->diag, v.loc, "MT0331", "%s is %s, got %s", path, row->kind == KIND_SETTING_num ? "a number" : row->kind == KIND_SETTING_flag ? "on or off" : "a word",
               value_text(p, &v));
    return;
  }
  if (row->kind == KIND_SETTING_call) check_call(p, &v);
  for (uint32_t i = 0; i < m->set.n; i++)
    if (m->set.at[i].path == path) { m->set.at[i] = v; return; }
  vec_push(p->arena, &m->set, v);
}

// ---- defaults -------------------------------------------------------------------------------------------------------
static void complete_call(Program *p, Setting *call) {
  for (size_t i = 0; i < COUNT(calls); i++) {
    const CallRow *c = &calls[i];
    if (strcmp(c->path, call->path) || strcmp(c->callee, call->word) || !*c->arg || setting_arg(call, c->arg)) continue;
    if (!strcmp(c->arg, "cut") || !strcmp(c->arg, "style")) continue;  // words: their readers know what is meant without
    Setting *more = NEW_N(p->arena, Setting, call->narg + 1);
    if (call->narg) memcpy(more, call->arg, call->narg * sizeof *more);
    more[call->narg++] = (Setting){.path = intern(p->in, c->arg), .kind = SET_num, .num = c->otherwise, .loc = call->loc};
    call->arg = more;
  }
}

static int by_path(const void *a, const void *b) { return strcmp(((const Setting *)a)->path, ((const Setting *)b)->path); }

// as the runtime will make it, so that what it would refuse is refused here
static void check_schedule(Program *p) {
  const Module *m = p->module;
  const Setting *s = setting_find(m, "train.schedule");
  ScheduleArg *arg = NEW_N(p->arena, ScheduleArg, s->narg + 1);
  for (uint32_t i = 0; i < s->narg; i++)
    arg[i] = (ScheduleArg){s->arg[i].path, s->arg[i].num, s->arg[i].kind == SET_word ? s->arg[i].word : 0};
  Schedule made;
  Text why;
  text_init(&why, p->arena);
  double lr = setting_num(m, "train.optimizer.lr", 0), steps = setting_num(m, "train.steps", 1);
  if (s->kind != SET_call || !(lr >= 0 && lr <= 1e300) || !(steps >= 0 && steps <= 0x1p53)) return; // told elsewhere
  if (!schedule_make(&made, s->word, arg, s->narg, lr, (int64_t)steps, &why)) diag_error(p->diag, s->loc, "MT0339", "train.schedule: %s", why.s);
}

void settings_complete(Program *p) {
  Module *m = p->module;
  for (size_t i = 0; i < COUNT(rows); i++) {
    const Row *r = &rows[i];
    Str path = intern(p->in, r->path), word = intern(p->in, r->otherwise);
    Setting v = {.path = path, .word = word};
    if (!*word || setting_find(m, path) || r->kind == KIND_SETTING_list || r->kind == KIND_SETTING_expr) continue;
    v.kind = r->kind == KIND_SETTING_call ? SET_call : r->kind == KIND_SETTING_word ? SET_word : r->kind == KIND_SETTING_flag ? SET_bool : SET_num;
    if (v.kind == SET_bool) v.num = !strcmp(word, "on");
    if (v.kind == SET_num && sscanf(word, "%lf", &v.num) != 1) bug("settings.def: %s = %s", path, word);
    if (v.kind == SET_num || v.kind == SET_bool) v.word = 0;
    vec_push(p->arena, &m->set, v);
  }
  for (uint32_t i = 0; i < m->set.n; i++)
    if (m->set.at[i].kind == SET_call) complete_call(p, &m->set.at[i]);
  if (m->set.n) qsort(m->set.at, m->set.n, sizeof *m->set.at, by_path);
  if (!p->diag->errors) check_schedule(p);
}
