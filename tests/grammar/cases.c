// cases.c -- runs texts that say in comments what must come out: `# >` lines are the tree, `# !` lines the messages.
//
//   cases FILE…            compares
//   cases --update FILE…   writes what came out into the files, for a person to read
#include "grammar/ast.h"
#include <stdlib.h>
#include <string.h>

static bool is_marked(const char *line, const char *end) {
  return end - line >= 3 && line[0] == '#' && line[1] == ' ' && (line[2] == '>' || line[2] == '!');
}

static const char *line_end(const char *s, const char *end) {
  const char *nl = memchr(s, '\n', (size_t)(end - s));
  return nl ? nl + 1 : end;
}

// The marked lines of a text, without their mark, or the others.
static void lines_of(Text *to, const char *s, size_t n, char mark) {
  text_puts(to, "");
  for (const char *end = s + n, *next; s < end; s = next) {
    next = line_end(s, end);
    bool marked = is_marked(s, next);
    if (!mark && !marked) text_add(to, s, (size_t)(next - s));
    if (mark && marked && s[2] == mark) {
      const char *from = s + 3 + (s[3] == ' ');
      text_add(to, from, (size_t)(next - from));
    }
  }
}

static void mark_lines(Text *to, const char *s, char mark) {
  for (const char *end = s + strlen(s), *next; s < end; s = next) {
    next = line_end(s, end);
    text_printf(to, "# %c%s%.*s", mark, *s == '\n' ? "" : " ", (int)(next - s), s);
  }
}

static bool check(const char *path, bool update) {
  Arena *a = arena_create();
  char *text;
  size_t n;
  if (file_read(a, path, 1 << 24, &text, &n)) exit(1);
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  Text said, tree, want_said, want_tree;
  text_init(&said, a), text_init(&tree, a), text_init(&want_said, a), text_init(&want_tree, a);
  text_puts(&said, "");
  lines_of(&want_said, text, n, '!'), lines_of(&want_tree, text, n, '>');
  Diag d;
  diag_init(&d, a);
  d.to = &said;
  Ast *root = parse(a, intern_create(a), &d, diag_source(&d, name, text, n));
  if (d.errors) text_puts(&tree, "");
  else ast_print(&tree, root);
  bool ok = !strcmp(said.s, want_said.s) && (want_tree.n == 0 || !strcmp(tree.s, want_tree.s));
  if (update) {
    Text fresh;
    text_init(&fresh, a);
    lines_of(&fresh, text, n, 0);
    mark_lines(&fresh, said.s, '!');
    if (want_tree.n || !said.n) mark_lines(&fresh, tree.s, '>');
    if (file_write(path, fresh.s, fresh.n)) exit(1);
  } else if (!ok) {
    printf("%s: wanted\n%s%sgot\n%s%s\n", path, want_said.s, want_tree.s, said.s, want_tree.n ? tree.s : "");
  } else if (!want_said.n && !want_tree.n) {
    printf("%s: expects nothing\n", path);
    ok = false;
  }
  arena_destroy(a);
  return ok || update;
}

int main(int argc, char **argv) {
  bool update = argc > 1 && !strcmp(argv[1], "--update"), ok = argc > 1 + update;
  for (int i = 1 + update; i < argc; i++) ok &= check(argv[i], update);
  return !ok;
}
