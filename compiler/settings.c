// settings.c -- what precision, parallel and train say: known paths, kinds, callees and arguments
// (settings.def).
#include "compiler/program.h"
#include "runtime/scale.h"
#include "runtime/schedule.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { ROW_whole, ROW_num, ROW_word, ROW_flag, ROW_call, ROW_list, ROW_expr, ROW_names } RowKind;
typedef struct {
  const char *path;
  RowKind kind;
  const char *otherwise;
  double least, most;
  const char *words, *doc;
} Row;
typedef struct {
  const char *path, *callee, *arg;
  RowKind kind;
  double otherwise;
  const char *words, *doc;
} CallRow;

static const Row rows[] = {
#define SETTING(path, kind, otherwise, least, most, words, doc)                                              \
  {path, ROW_##kind, otherwise, least, most, words, doc},
#define CALL(path, callee, arg, kind, otherwise, words, doc)
#define UNMADE(path)
#include "compiler/settings.def"
#undef SETTING
#undef CALL
#undef UNMADE
};
static const CallRow calls[] = {
#define SETTING(path, kind, otherwise, least, most, words, doc)
#define CALL(path, callee, arg, kind, otherwise, words, doc)                                                 \
  {path, callee, arg, ROW_##kind, otherwise, words, doc},
#define UNMADE(path)
#include "compiler/settings.def"
#undef SETTING
#undef CALL
#undef UNMADE
};
static const char *const unmade[] = {
#define SETTING(path, kind, otherwise, least, most, words, doc)
#define CALL(path, callee, arg, kind, otherwise, words, doc)
#define UNMADE(path) path,
#include "compiler/settings.def"
#undef SETTING
#undef CALL
#undef UNMADE
};

static const Row *row_of(const char *path) {
  for (size_t i = 0; i < COUNT(rows); i++)
    if (!strcmp(rows[i].path, path)) return &rows[i];
  return 0;
}

static const CallRow *call_row(const char *path, const char *callee,
                               const char *arg) {  // arg 0: the callee's first row
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].path, path) && !strcmp(calls[i].callee, callee) &&
        (!arg || !strcmp(calls[i].arg, arg)))
      return &calls[i];
  return 0;
}

typedef VEC(Str) Names;
static const char *names_listed(Program *p, const Names *names) {
  Text t;
  text_init(&t, p->arena);
  for (uint32_t i = 0; i < names->n; i++) text_printf(&t, "%s%s", i ? ", " : "", names->at[i]);
  return t.s;
}

static Names words_of(Program *p, const char *words) {                 // "a b c"
  Names names = {0};
  for (size_t n; (n = strcspn(words, " ")); words += n, words += strspn(words, " "))
    vec_push(p->arena, &names, intern_n(p->in, words, n));
  return names;
}

// ---- values -----------------------------------------------------------------------------------------------
static Setting value_of(Program *p, Str path, const Ast *e, bool call);

// The n characters of a span from the one after `skip`: a name in it.
static Span span_part(Span all, size_t skip, size_t n) {
  all.col += (uint32_t)skip, all.end_line = all.line;
  all.end_col = (uint16_t)MIN(all.col + n - 1, UINT16_MAX);
  return all;
}

static void call_arguments(Program *p, Setting *v, const Ast *e) {
  enum { MOST = 64 };
  const Ast *args = e->kid[2];
  if (args->n > MOST) {
    diag_error(p->diag, e->span, "MT0333", "%s has more than %d arguments", e->text, MOST);
    return;
  }
  v->arg = NEW_N(p->arena, Setting, args->n + 1);
  for (uint32_t i = 0; i < args->n; i++) {
    const Ast *a = args->kid[i];
    if (a->kind != N_arg) continue;
    if (*a->text && setting_arg(v, a->text))
      diag_error(p->diag, a->span, "MT0224", "'%s' is given twice", a->text);
    else {
      Setting *arg = &v->arg[v->narg++];
      *arg = value_of(p, a->text, a->kid[0], false);
      if (*a->text) arg->name = span_part(a->span, 0, strlen(a->text));
    }
  }
}

// call: a call is a callee with arguments, else it is computed
static Setting value_of(Program *p, Str path, const Ast *e, bool call) {
  Setting v = {.path = path, .loc = e->span};
  bool config = e->kind == N_name &&
                (map_get(&p->user.config_by_name, key_of(e->text)) || number_predefined(e->text));
  if (e->kind == N_name && !config) {
    bool on = !strcmp(e->text, "on");
    if (on || !strcmp(e->text, "off")) v.kind = SET_bool, v.num = on;
    else v.kind = SET_word, v.word = e->text;
  } else if (e->kind == N_dtype || e->kind == N_str) {
    v.kind = SET_word, v.word = e->text;
  } else if (e->kind == N_call && call && (e->kid[0]->n || e->kid[1]->n || e->kid[3]->kind == N_as)) {
    diag_error(p->diag, e->span, "MT0331", "%s is written %s(…), without brackets and 'as'", path, e->text);
  } else if (e->kind == N_call && call) {
    v.kind = SET_call, v.word = e->text;
    call_arguments(p, &v, e);
  } else {
    Number n = number_eval(p, &p->user, e);
    v.kind = n.kind == NUM_bool ? SET_bool : n.kind == NUM_string ? SET_word : SET_num;
    v.num = n.num, v.word = n.str;
  }
  return v;
}

static const char *value_text(Program *p, const Setting *v) {
  return v->kind == SET_num    ? number_text(p->arena, number_of(v->num))
         : v->kind == SET_bool ? (v->num != 0 ? "on" : "off")
                               : v->word;
}

static void word_check(Program *p, const Setting *v, const char *path, const char *words) {
  Names known = words_of(p, words);
  for (uint32_t i = 0; i < known.n; i++)
    if (v->kind == SET_word && !strcmp(known.at[i], v->word)) return;
  diag_error(p->diag, v->loc, "MT0331", "%s is one of %s; got %s", path, names_listed(p, &known),
             value_text(p, v));
  if (v->kind == SET_word) word_suggest(p->diag, v->word, known.at, known.n);
}

static void number_check(Program *p, const Setting *v, const Row *row) {
  bool whole = row->kind == ROW_whole;
  if (v->kind != SET_num)
    diag_error(p->diag, v->loc, "MT0331", "%s is a number, got %s", row->path, value_text(p, v));
  else if (whole && v->num != floor(v->num))
    diag_error(p->diag, v->loc, "MT0335", "%s is a whole number, got %s", row->path, value_text(p, v));
  else if (!(v->num >= row->least))
    diag_error(p->diag, v->loc, "MT0335", "%s is at least %s, got %s", row->path,
               number_text(p->arena, number_of(row->least)), value_text(p, v));
  else if (v->num > row->most)
    diag_error(p->diag, v->loc, "MT0335", "%s is at most %s, got %s", row->path,
               number_text(p->arena, number_of(row->most)), value_text(p, v));
}

// ---- calls ------------------------------------------------------------------------------------------------
// A call of this path that has the argument: "write precision.loss_scale = dynamic(initial = 4)".
static void suggest_call(Program *p, const char *path, const Setting *arg) {
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].path, path) && !strcmp(calls[i].arg, arg->path)) {
      diag_note(p->diag, "write %s=%s(%s = %s)", path, calls[i].callee, arg->path,
                span_words(p->diag, p->arena, arg->loc, "…"));
      return;
    }
}

static void argument_check(Program *p, const Setting *v, const Setting *arg) {
  const CallRow *row = call_row(v->path, v->word, arg->path);
  if (!row) {
    Names args = {0};
    for (size_t i = 0; i < COUNT(calls); i++)
      if (!strcmp(calls[i].path, v->path) && !strcmp(calls[i].callee, v->word) &&
          isalpha((unsigned char)*calls[i].arg))
        vec_push(p->arena, &args, calls[i].arg);
    Span at = arg->name.line ? arg->name : arg->loc;
    if (!args.n) {
      diag_error(p->diag, at, "MT0333", "%s takes no arguments by name", v->word);
      if (*arg->path) suggest_call(p, v->path, arg);
    } else if (*arg->path)
      diag_error(p->diag, at, "MT0333", "%s has no argument '%s'; there are %s", v->word, arg->path,
                 names_listed(p, &args));
    else
      diag_error(p->diag, arg->loc, "MT0333", "%s wants its arguments by name, such as %s = …", v->word,
                 args.at[0]);
    if (*arg->path) word_suggest(p->diag, arg->path, args.at, args.n);
    return;
  }
  const char *name = *row->arg ? row->arg : v->word;
  bool flag = arg->kind == SET_bool || (arg->kind == SET_num && (arg->num == 0 || arg->num == 1));
  if (row->kind == ROW_flag && !flag)
    diag_error(p->diag, arg->loc, "MT0331", "%s of %s is on or off, got %s", name, v->path,
               value_text(p, arg));
  else if (row->kind == ROW_flag) return;
  else if (row->kind == ROW_num && arg->kind != SET_num)
    diag_error(p->diag, arg->loc, "MT0331", "%s of %s is a number, got %s", name, v->path,
               value_text(p, arg));
  else if (row->kind != ROW_num && arg->kind != SET_word)
    diag_error(p->diag, arg->loc, "MT0331", "%s of %s is a word, got %s", name, v->path, value_text(p, arg));
  else if (*row->words) word_check(p, arg, arena_printf(p->arena, "%s.%s", v->path, name), row->words);
}

static void no_callee(Program *p, const Setting *v) {
  Names names = {0};
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].path, v->path) && (!i || strcmp(calls[i - 1].callee, calls[i].callee)))
      vec_push(p->arena, &names, calls[i].callee);
  diag_error(p->diag, v->loc, "MT0332", "%s: there is no '%s'; there are %s", v->path, v->word,
             names_listed(p, &names));
  word_suggest(p->diag, v->word, names.at, names.n);
}

static void call_check(Program *p, Setting *v, const Row *row) {
  if (v->kind == SET_word) v->kind = SET_call;  // a bare word is a call without arguments
  if (v->kind == SET_num && *row->words) { number_check(p, v, row); return; }
  if (v->kind != SET_call) {
    diag_error(p->diag, v->loc, "MT0331", "%s is a word, with arguments or without, got %s", v->path,
               value_text(p, v));
    return;
  }
  if (!call_row(v->path, v->word, 0)) { no_callee(p, v); return; }
  uint32_t plain = 0;
  for (uint32_t k = 0; k < v->narg; k++) {
    const CallRow *a = call_row(v->path, v->word, "");
    plain += !*v->arg[k].path;
    if (a && a->kind != ROW_names && plain > 1 && !*v->arg[k].path)
      diag_error(p->diag, v->arg[k].loc, "MT0333", "%s takes one argument", v->word);
    else argument_check(p, v, &v->arg[k]);
  }
}

static void default_scale(Program *p);

// One argument of a call that is already set: train.optimizer.lr. False: the path is none of that kind.
static bool set_argument(Program *p, Str path, const Ast *set) {
  Module *m = p->module;
  const char *dot = strrchr(path, '.');
  if (!dot || dot == strchr(path, '.')) return false;
  Str parent = intern_n(p->in, path, (size_t)(dot - path)), arg = intern(p->in, dot + 1);
  const Row *row = row_of(parent);
  if (!row || row->kind != ROW_call) return false;
  const Ast *value = set->kid[0]->kid[0];
  Setting v = value_of(p, arg, value, false);
  v.name = span_part(set->span, strlen(set->text) - strlen(arg), strlen(arg));
  if (!strcmp(parent, "precision.loss_scale")) default_scale(p);       // f16 has one
  if (!setting_find(m, parent)) {
    if (!*row->otherwise) {
      diag_error(p->diag, v.name, "MT0333", "%s is not set, so it has no argument '%s'", parent, arg);
      suggest_call(p, parent, &v);
      return true;
    }
    vec_push(
      p->arena, &m->set,
      (Setting){.path = parent, .kind = SET_call, .word = intern(p->in, row->otherwise), .loc = value->span});
  }
  for (uint32_t i = 0; i < m->set.n; i++) {
    Setting *call = &m->set.at[i];
    if (call->path != parent) continue;
    if (call->kind != SET_call) {
      diag_error(p->diag, v.name, "MT0333", "%s is %s and has no argument '%s'", parent,
                 value_text(p, call), arg);
      suggest_call(p, parent, &v);
      return true;
    }
    Setting *old = (Setting *)(uintptr_t)setting_arg(call, arg);
    Setting *more = NEW_N(p->arena, Setting, call->narg + 1);          // the old ones may be shared
    if (call->narg) memcpy(more, call->arg, call->narg * sizeof *more);
    if (old) more[old - call->arg] = v;
    else more[call->narg++] = v;
    call->arg = more;
    argument_check(p, call, &v);
  }
  return true;
}

// ---- applying ---------------------------------------------------------------------------------------------
static const char *last_word(const char *path) { return strrchr(path, '.') ? strrchr(path, '.') + 1 : path; }

const char *setting_called(Program *p, const char *word) {
  for (size_t i = 0; i < COUNT(rows); i++)
    if (!strcmp(last_word(rows[i].path), word)) return rows[i].path;
  for (size_t i = 0; i < COUNT(calls); i++)
    if (!strcmp(calls[i].arg, word) && isalpha((unsigned char)*word))
      return arena_printf(p->arena, "%s.%s", calls[i].path, word);
  return 0;
}

bool setting_suggest(Program *p, const char *path) {
  static const struct { const char *word, *how; } others[] = {         // said in these blocks, and no settings
    {"mesh", "the mesh is given by --mesh, as in --mesh dp=2,tp=2"},
    {"map", "a rule is given by --map, as in --map 'seq -> cp'"},
    {"keep", "keep is said in the text or in a file for --parallel: precision { keep f32: softmax }"}};
  const char *word = last_word(path), *called = setting_called(p, word);
  for (size_t i = 0; i < COUNT(others); i++)
    if (!strcmp(others[i].word, word)) return diag_note(p->diag, "%s", others[i].how), true;
  if (called) diag_note(p->diag, "did you mean '%s'?", called);
  return called;
}

void setting_unknown(Program *p, Str path, Span at) {
  Names names = {0};
  if (diag_is_full(p->diag)) { diag_error(p->diag, at, "MT0330", "no setting"); return; }
  for (size_t i = 0; i < COUNT(rows); i++) vec_push(p->arena, &names, rows[i].path);
  for (size_t i = 0; i < COUNT(calls); i++)
    if (*calls[i].arg)
      vec_push(p->arena, &names, arena_printf(p->arena, "%s.%s", calls[i].path, calls[i].arg));
  diag_error(p->diag, at, "MT0330", "no setting '%s'", path);
  if (setting_suggest(p, path)) return;
  if (nearest(path, names.at, names.n)) { word_suggest(p->diag, path, names.at, names.n); return; }
  size_t block = strcspn(path, ".") + 1;                               // none is near: those of the block
  Names here = {0};
  for (size_t i = 0; i < COUNT(rows); i++)
    if (!strncmp(rows[i].path, path, block)) vec_push(p->arena, &here, rows[i].path + block);
  if (here.n) diag_note(p->diag, "%.*s has %s", (int)block - 1, path, names_listed(p, &here));
  else diag_note(p->diag, "settings begin with precision, parallel or train");
}

static void apply_list(Program *p, Str path, const Ast *set) {        // replaces what was said before
  enum { MOST = 256 };
  bool no = !strcmp(path, "train.no_decay");
  const Ast *values = set->kid[0];
  if (values->n > MOST) {
    diag_error(p->diag, set->span, "MT0331", "%s has more than %d patterns", path, MOST);
    return;
  }
  if (no) p->no_decay.n = 0, p->no_decay_at = set->span;
  else p->decay.n = 0, p->decay_at = set->span;
  for (uint32_t i = 0; i < values->n; i++) {
    if (values->kid[i]->kind != N_str)
      diag_error(p->diag, values->kid[i]->span, "MT0331", "%s wants patterns in quotes, such as \"*.bias\"",
                 path);
    else if (no) vec_push(p->arena, &p->no_decay, values->kid[i]->text);
    else vec_push(p->arena, &p->decay, values->kid[i]->text);
  }
}

static void value_check(Program *p, Setting *v, const Row *row) {
  switch (row->kind) {
  case ROW_whole: case ROW_num: number_check(p, v, row); break;
  case ROW_word: word_check(p, v, row->path, row->words); break;
  case ROW_call: call_check(p, v, row); break;
  case ROW_flag:
    if (v->kind != SET_bool)
      diag_error(p->diag, v->loc, "MT0331", "%s is on or off, got %s", row->path, value_text(p, v));
    break;
  default: break;
  }
}

void setting_apply(Program *p, Str path, const Ast *set) {
  Module *m = p->module;
  const Row *row = row_of(path);
  const Ast *values = set->kid[0];
  uint32_t errors = p->diag->errors;
  if (!values->n) return;
  if (!row) {
    if (values->n != 1 || !set_argument(p, path, set)) setting_unknown(p, path, set->span);
    return;
  }
  if (row->kind == ROW_list) { apply_list(p, path, set); return; }
  if (values->n != 1) { diag_error(p->diag, set->span, "MT0331", "%s has one value", path); return; }
  if (row->kind == ROW_expr) { p->objective = values->kid[0]; return; }
  Setting v = value_of(p, path, values->kid[0], row->kind == ROW_call);
  if (p->diag->errors == errors) value_check(p, &v, row);
  if (p->diag->errors > errors) return;
  for (uint32_t i = 0; i < m->set.n; i++)
    if (m->set.at[i].path == path) { m->set.at[i] = v; return; }
  vec_push(p->arena, &m->set, v);
}

// ---- defaults ---------------------------------------------------------------------------------------------
static void complete_call(Program *p, Setting *call) {
  for (size_t i = 0; i < COUNT(calls); i++) {
    const CallRow *c = &calls[i];
    if (strcmp(c->path, call->path) || strcmp(c->callee, call->word) || !isalpha((unsigned char)*c->arg) ||
        setting_arg(call, c->arg))
      continue;
    if (c->kind != ROW_num && c->kind != ROW_flag)
      continue;  // words: their readers know what is meant without
    Setting *more = NEW_N(p->arena, Setting, call->narg + 1);
    if (call->narg) memcpy(more, call->arg, call->narg * sizeof *more);
    more[call->narg++] = (Setting){
      .path = intern(p->in, c->arg), .kind = SET_num, .num = c->otherwise, .loc = call->loc};
    call->arg = more;
  }
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const Setting *)a)->path, ((const Setting *)b)->path);
}

// What a message of schedule_make or scale_make is about: it begins with the argument's name.
static const Setting *blamed(const Setting *call, const char *why) {
  for (uint32_t i = 0; i < call->narg; i++) {
    size_t n = strlen(call->arg[i].path);
    if (n && !strncmp(why, call->arg[i].path, n) && why[n] == ' ') return &call->arg[i];
  }
  return call;
}

// "train.steps is 6 (--set)", each of the settings that a limit comes from
static void origins_note(Program *p, const char *const *path, size_t n) {
  Text t;
  text_init(&t, p->arena);
  for (size_t i = 0; i < n && path[i]; i++) {
    const Setting *s = setting_find(p->module, path[i]);
    if (!s) continue;
    Str from = s->loc.line ? p->diag->source.at[s->loc.file].path : "(default)";
    bool place = s->loc.line && strcmp(from, "(--set)");
    text_printf(&t, "%s%s is %s ", t.n ? ", " : "", path[i], value_text(p, s));
    if (place) text_printf(&t, "(%s)", span_text(p->diag, p->arena, s->loc));
    else text_puts(&t, from);
  }
  if (t.n) diag_note(p->diag, "%s", t.s);
}

static void refuse_schedule(Program *p, const Setting *s, const char *why) {
  static const char *const limits[][3] = {                             // an argument, and what it is held against
    {"train.schedule.warmup", "train.steps"},
    {"train.schedule.decay", "train.schedule.warmup", "train.steps"},
    {"train.schedule.min", "train.optimizer.lr"}};
  const Setting *of = blamed(s, why);
  diag_error(p->diag, of->loc, "MT0339", "train.schedule: %s", why);
  for (size_t i = 0; i < COUNT(limits) && of != s; i++) {
    if (strcmp(strrchr(limits[i][0], '.') + 1, of->path)) continue;
    origins_note(p, limits[i], COUNT(limits[i]));
    diag_note(p->diag, "--set %s=… gives it another value", limits[i][0]);
  }
}

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
  double lr = setting_num(m, "train.optimizer.lr", 0);
  if (!(lr >= 0 && lr <= 1e300)) return;                               // told elsewhere
  int64_t steps = (int64_t)setting_num(m, "train.steps", 1);
  if (!schedule_make(&made, s->word, arg, s->narg, lr, steps, &why))
    refuse_schedule(p, s, why.s);
}

static void check_scale(Program *p) {
  const Setting *s = setting_find(p->module, "precision.loss_scale");
  if (!s) return;
  ScaleArg *arg = NEW_N(p->arena, ScaleArg, s->narg + 1);
  for (uint32_t i = 0; i < s->narg; i++) arg[i] = (ScaleArg){s->arg[i].path, s->arg[i].num};
  Scale made;
  Text why;
  text_init(&why, p->arena);
  if (!scale_make(&made, s->kind == SET_num ? 0 : s->word, s->num, arg, s->narg, &why))
    diag_error(p->diag, blamed(s, why.s)->loc, "MT0338", "precision.loss_scale: %s", why.s);
}

// f16 has a scale unless one is refused; other formats have the range of f32 and none unless one is asked for
static void default_scale(Program *p) {
  Module *m = p->module;
  if (setting_find(m, "precision.loss_scale") || strcmp(setting_word(m, "precision.compute", ""), "f16")) return;
  vec_push(p->arena, &m->set,
           (Setting){.path = intern(p->in, "precision.loss_scale"), .kind = SET_call, .word = intern(p->in, "dynamic"),
                     .loc = setting_find(m, "precision.compute")->loc});
}

static Setting default_of(Program *p, const Row *r) {
  Str word = intern(p->in, r->otherwise);
  Setting v = {.path = intern(p->in, r->path)};
  switch (r->kind) {
  case ROW_call: v.kind = SET_call, v.word = word; break;
  case ROW_word: v.kind = SET_word, v.word = word; break;
  case ROW_flag: v.kind = SET_bool, v.num = !strcmp(word, "on"); break;
  default:
    v.kind = SET_num;
    if (sscanf(word, "%lf", &v.num) != 1) bug("settings.def: %s = %s", r->path, word);
  }
  return v;
}

void settings_complete(Program *p) {
  Module *m = p->module;
  for (size_t i = 0; i < COUNT(rows); i++) {
    const Row *r = &rows[i];
    if (!*r->otherwise || r->kind == ROW_list || r->kind == ROW_expr || setting_find(m, r->path)) continue;
    vec_push(p->arena, &m->set, default_of(p, r));
  }
  default_scale(p);
  for (uint32_t i = 0; i < m->set.n; i++)
    if (m->set.at[i].kind == SET_call) complete_call(p, &m->set.at[i]);
  if (m->set.n) qsort(m->set.at, m->set.n, sizeof *m->set.at, by_path);
  if (!p->diag->errors) check_schedule(p), check_scale(p);
}

bool setting_unmade(const char *path) {
  for (size_t i = 0; i < COUNT(unmade); i++) {
    size_t n = strlen(unmade[i]);
    if (!strncmp(path, unmade[i], n) && (!path[n] || path[n] == '.')) return true;
  }
  return false;
}

// ---- lists ------------------------------------------------------------------------------------------------
const char *setting_doc(const char *path) {
  const Row *row = row_of(path);
  const char *dot = strrchr(path, '.');
  if (row) return row->doc;
  for (size_t i = 0; dot && i < COUNT(calls); i++)
    if (strlen(calls[i].path) == (size_t)(dot - path) &&
        !strncmp(calls[i].path, path, (size_t)(dot - path)) && !strcmp(calls[i].arg, dot + 1))
      return calls[i].doc;
  return 0;
}

void settings_list(Text *t) {
  for (size_t i = 0; i < COUNT(rows); i++) {
    const Row *r = &rows[i];
    text_printf(t, "  %-24s %-9s %s%s%s%s\n", r->path, *r->otherwise ? r->otherwise : "-", r->doc,
                r->kind == ROW_word ? ": " : "", r->kind == ROW_word ? r->words : "",
                setting_unmade(r->path) ? "; no effect yet" : "");
    for (size_t k = 0; k < COUNT(calls); k++) {
      const CallRow *c = &calls[k];
      if (strcmp(c->path, r->path)) continue;
      bool first = !k || strcmp(calls[k - 1].callee, c->callee) || strcmp(calls[k - 1].path, c->path);
      if (first) text_printf(t, "    %s\n", c->callee);
      if (*c->arg == '-') continue;
      text_printf(t, "      %-18s ", *c->arg ? c->arg : "(…)");
      if (c->kind == ROW_num) text_printf(t, "%-9g ", c->otherwise);
      else text_printf(t, "%-9s ", c->kind == ROW_flag ? "off" : "-");
      text_printf(t, "%s%s%s\n", c->doc, *c->words ? ": " : "", c->words);
    }
  }
}
