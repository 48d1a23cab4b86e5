// cases.c -- reads IR texts. `# !` lines of a file are the messages that must come out; `# >` lines what the module
// prints as; a file with neither prints as it is. A line `# pass simplify precision` runs these passes on what was read,
// with the verifier after each.
//
//   cases FILE…            compares
//   cases --update FILE…   writes what came out into the files, for a person to read
#include "passes/pass.h"
#include <stdlib.h>
#include <string.h>

// The lines that begin with "# " and the mark, without them; mark 0: the lines that begin with no "# !" or "# >".
static const char *lines_of(Arena *a, const char *s, char mark) {
  Text to;
  text_init(&to, a);
  text_puts(&to, "");
  for (const char *next; *s; s = next) {
    next = strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s);
    bool marked = !strncmp(s, "# !", 3) || !strncmp(s, "# >", 3);
    if (!mark && !marked) text_add(&to, s, (size_t)(next - s));
    if (mark && marked && s[2] == mark) s += 3 + (s[3] == ' '), text_add(&to, s, (size_t)(next - s));
  }
  return to.s;
}

static void mark_lines(Text *to, const char *s, char mark) {
  for (const char *next; *s; s = next) {
    next = strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s);
    text_printf(to, "# %c%s%.*s", mark, *s == '\n' ? "" : " ", (int)(next - s), s);
  }
}

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
  return t.s ? t.s : "";
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

static bool check(const char *path, bool update) {
  Arena *a = arena_create();
  char *text;
  size_t n;
  if (file_read(a, path, 1 << 24, &text, &n)) exit(1);
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  const char *want_said = lines_of(a, text, '!'), *want_text = lines_of(a, text, '>'), *plain = lines_of(a, text, 0);
  Text said;
  text_init(&said, a);
  text_puts(&said, "");
  Module *m = read_text(a, &said, name, text);
  if (m && !run_passes(a, m, text)) m = 0;
  const char *got = m ? print_text(a, m) : "";
  bool itself = !*want_said && !*want_text;
  bool ok = !strcmp(said.s, want_said) && (m ? !strcmp(got, itself ? plain : want_text) : *want_said != 0);
  if (update && !ok) {
    Text fresh;
    text_init(&fresh, a);
    text_puts(&fresh, plain);
    mark_lines(&fresh, said.s, '!');
    mark_lines(&fresh, got, '>');
    if (file_write(path, fresh.s, fresh.n)) exit(1);
    ok = true;
  } else if (!ok) printf("%s: wanted\n%s%sgot\n%s%s\n", path, want_said, itself ? plain : want_text, said.s, got);
  if (m && ok) {                                        // what was printed reads back to the same bytes
    Module *again = read_text(a, &said, name, got);
    if (!again || strcmp(print_text(a, again), got)) printf("%s: is not read back:\n%s%s\n", path, got, said.s), ok = false;
  }
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  bool update = argc > 1 && !strcmp(argv[1], "--update"), ok = argc > 1 + update;
  for (int i = 1 + update; i < argc; i++) ok &= check(argv[i], update);
  return !ok;
}
