// cases.c -- reads IR texts. `# !` lines of a file are the messages that must come out; `# >` lines what the module
// prints as; a file with neither prints as it is. A line `# pass simplify precision` runs these passes on what was
// read, with the verifier after each. See tests/marked.h.
#include "passes/pass.h"
#include "tests/marked.h"
#include <string.h>

static Module *read_text(Arena *a, Text *said, const char *name, const char *text) {
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  d->to = said;
  return ir_parse(a, intern_create(a), d, diag_source(d, name, text, strlen(text)));
}

static const char *print_text(Arena *a, const Module *m) {
  Text t;
  text_init(&t, a);
  ir_print(&t, m);
  return t.s;
}

// the words after "# pass" in the text; false after an error (printed)
static bool run_passes(Arena *a, Module *m, const char *text) {
  const char *at = strstr(text, "# pass ");
  if (!at) return true;
  char *words = arena_strndup(a, at + 7, strcspn(at + 7, "\n")), *rest = 0;
  for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(0, " ", &rest)) {
    Pass p = pass_find(w);
    if (!p) bug("there is no pass %s", w);
    if (!pass_info[p].run(m) || !ir_verify(m, w)) return false;
  }
  return true;
}

static bool run(Marked *t) {
  Module *m = read_text(t->arena, &t->said, t->name, t->text), *again;
  if (!*t->want_said && !*t->want) t->want = t->plain;
  if (!m || !run_passes(t->arena, m, t->text)) return true;
  ir_print(&t->got, m);
  Text said;
  text_init(&said, t->arena);
  text_puts(&said, "");
  again = read_text(t->arena, &said, t->name, t->got.s);          // what was printed reads back to the same bytes
  if (again && !strcmp(print_text(t->arena, again), t->got.s)) return true;
  printf("%s: is not read back:\n%s%s\n", t->name, t->got.s, said.s);
  return false;
}

int main(int argc, char **argv) { return marked_main(argc, argv, run); }
