// run.c -- runs the passes, and verifies and prints what they make.
#include "passes/pass.h"
#include <string.h>

enum { optional, required };

const PassInfo pass_info[PASS_COUNT] = {
  [PASS_none] = {.name = "none", .doc = ""},
#define PASS(name, need, then, doc) [PASS_##name] = {#name, doc, need, PASS_##then, pass_##name},
#include "passes/passes.def"
#undef PASS
};
_Static_assert(PASS_COUNT <= 64, "a PassSet has a bit for every pass");

Pass pass_find(const char *name) {
  for (Pass p = PASS_none + 1; p < PASS_COUNT; p++)
    if (!strcmp(pass_info[p].name, name)) return p;
  return PASS_none;
}

static Status no_pass(const char *name) {
  Str names[PASS_COUNT];
  for (Pass p = PASS_none; p < PASS_COUNT; p++) names[p] = pass_info[p].name;
  Str near = nearest(name, names + 1, PASS_COUNT - 1);
  char list[512] = "";
  for (Pass p = PASS_none + 1; p < PASS_COUNT; p++) strcat(strcat(list, p > PASS_none + 1 ? ", " : ""), names[p]);
  return fail(EXIT_USAGE, "no pass '%s'%s%s%s; passes are %s", name, near ? "; did you mean '" : "",
              near ? near : "", near ? "'?" : "", list);
}

Status pass_list(const char *names, PassSet *set, Pass *list, uint32_t *n) {
  char name[64];
  if (set) *set = 0;
  if (list) *n = 0;
  while (*names) {
    size_t k = strcspn(names, ",");
    snprintf(name, sizeof name, "%.*s", (int)MIN(k, sizeof name - 1), names);
    Pass p = pass_find(name);
    if (!p) return no_pass(name);
    if (list && *n == PASS_COUNT) return fail(EXIT_USAGE, "more than %d passes are named", PASS_COUNT);
    if (set) *set |= (PassSet)1 << p;
    if (list) list[(*n)++] = p;
    names += k + (names[k] == ',');
  }
  return 0;
}

Status pass_skippable(PassSet skip) {
  for (Pass p = PASS_none + 1; p < PASS_COUNT; p++)
    if (skip >> p & 1 && pass_info[p].required)
      return fail(EXIT_USAGE, "pass '%s' cannot be left out", pass_info[p].name);
  return 0;
}

static bool run_one(Module *m, Pass p) {
  if (!pass_info[p].run(m)) return false;
  if (!ir_verify(m, pass_info[p].name)) bug("pass %s made a module that is not right", pass_info[p].name);
  return true;
}

static void print_after(const Module *m, Pass p, const RunOptions *o) {
  if (!(o->print >> p & 1)) return;
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  text_printf(&t, "# after %s\n", pass_info[p].name);
  ir_print(&t, m);
  fwrite(t.s, 1, t.n, o->to ? o->to : stdout);
  arena_destroy(a);
}

static bool run(Module *m, Pass p, const RunOptions *o) {
  Pass then = pass_info[p].then;
  if (!run_one(m, p)) return false;
  if (then && !(o->skip >> then & 1) && !run_one(m, then)) return false;
  print_after(m, p, o);
  return true;
}

bool passes_run(Module *m, Pass upto, RunOptions o) {
  if (pass_skippable(o.skip)) bug("passes_run was not asked for what it can do");
  if (!ir_verify(m, o.from ? pass_info[o.from].name : "lower")) bug("lower made a module that is not right");
  for (Pass p = o.from + 1; p < PASS_COUNT; p++) {
    if (!(o.skip >> p & 1) && !run(m, p, &o)) return false;
    if (p == upto) break;
  }
  return true;
}

Status passes_opt(Diag *d, const char *path, const char *names, FILE *to) {
  Pass list[PASS_COUNT];
  uint32_t n;
  char *text;
  size_t size;
  TRY(pass_list(names, 0, list, &n));
  TRY(file_read(d->arena, path, (size_t)1 << 30, &text, &size));
  Intern *in = intern_create(d->arena);
  Module *m = ir_parse(d->arena, in, d, diag_source(d, intern(in, path), text, size));
  if (!m) return EXIT_COMPILE;
  for (uint32_t i = 0; i < n; i++)
    if (!run_one(m, list[i])) return EXIT_COMPILE;
  Text t;
  text_init(&t, d->arena);
  ir_print(&t, m);
  fwrite(t.s, 1, t.n, to);
  return 0;
}
