// cases.c -- an IR text through layout and reshard. Its `# !` lines are the messages that must come out, its `# >` lines
// the program after. With `# report` in it, the list of its collectives follows.
//
//   cases FILE…            compares
//   cases --update FILE…   writes what came out into the files, for a person to read
#include "passes/layout.h"
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

static bool check(const char *path, bool update) {
  Arena *a = arena_create();
  char *whole;
  size_t n;
  if (file_read(a, path, 1 << 20, &whole, &n)) exit(1);
  const char *plain = lines_of(a, whole, 0), *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  Text said, got;
  text_init(&said, a), text_init(&got, a);
  text_puts(&said, ""), text_puts(&got, "");
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  d->to = &said;
  Module *m = ir_parse(a, intern_create(a), d, diag_source(d, name, plain, strlen(plain)));
  bool ok = m && ir_verify(m, "reading") && pass_layout(m) && ir_verify(m, "layout");
  ok = ok && pass_reshard(m) && ir_verify(m, "reshard");
  if (ok) ir_print(&got, m);
  if (ok && strstr(plain, "# report")) layout_report(m, 64, &got);
  ok = !strcmp(said.s, lines_of(a, whole, '!')) && !strcmp(got.s, lines_of(a, whole, '>'));
  if (update) {
    Text fresh;
    text_init(&fresh, a);
    text_puts(&fresh, plain);
    mark_lines(&fresh, said.s, '!');
    mark_lines(&fresh, got.s, '>');
    if (file_write(path, fresh.s, fresh.n)) exit(1);
    ok = true;
  } else if (!ok) printf("%s: wanted\n%s%sgot\n%s%s\n", path, lines_of(a, whole, '!'), lines_of(a, whole, '>'), said.s, got.s);
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  bool update = argc > 1 && !strcmp(argv[1], "--update"), ok = argc > 1 + update;
  for (int i = 1 + update; i < argc; i++) ok &= check(argv[i], update);
  return !ok;
}
