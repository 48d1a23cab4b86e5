// marked.c -- see marked.h.
#include "tests/marked.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *line_end(const char *s, const char *end) {
  const char *nl = memchr(s, '\n', (size_t)(end - s));
  return nl ? nl + 1 : end;
}

// The lines that begin with "# " and the mark, without them; mark 0: those that begin with no mark.
static const char *lines_of(const Marked *t, char mark) {
  Text to;
  text_init(&to, t->arena);
  text_puts(&to, "");
  for (const char *s = t->text, *end = s + t->n, *next; s < end; s = next) {
    next = line_end(s, end);
    bool marked = !strncmp(s, "# !", 3) || !strncmp(s, "# >", 3);
    if (!mark && !marked) text_add(&to, s, (size_t)(next - s));
    if (mark && marked && s[2] == mark) s += 3 + (s[3] == ' '), text_add(&to, s, (size_t)(next - s));
  }
  return to.s;
}

static void mark_lines(Text *to, const char *s, char mark) {
  for (const char *end = s + strlen(s), *next; s < end; s = next) {
    next = line_end(s, end);
    text_printf(to, "# %c%s%.*s", mark, *s == '\n' ? "" : " ", (int)(next - s), s);
  }
}

static Status update(const Marked *t) {
  Text fresh;
  text_init(&fresh, t->arena);
  text_puts(&fresh, t->plain);
  mark_lines(&fresh, t->said.s, '!');
  mark_lines(&fresh, t->got.s, '>');
  return file_write(t->name, fresh.s, fresh.n);
}

static bool check(Arena *a, const char *path, const char *name, bool updates, bool (*run)(Marked *t)) {
  Marked t = {.arena = a, .name = name};
  char *text;
  if (file_read(a, name, 1 << 24, &text, &t.n)) exit(1);
  t.text = text, t.plain = lines_of(&t, 0), t.want_said = lines_of(&t, '!'), t.want = lines_of(&t, '>');
  text_init(&t.said, a), text_init(&t.got, a);
  text_puts(&t.said, ""), text_puts(&t.got, "");
  bool ok = run(&t), same = !strcmp(t.said.s, t.want_said) && !strcmp(t.got.s, t.want);
  if (!same && updates) {
    if (update(&t)) exit(1);
  } else if (!same) {
    printf("%s: wanted\n%s%sgot\n%s%s\n", path, t.want_said, t.want, t.said.s, t.got.s), ok = false;
  } else if (!*t.want_said && !*t.want) {
    printf("%s: expects nothing\n", path), ok = false;
  }
  return ok;
}

int marked_main(int argc, char **argv, bool (*run)(Marked *t)) {
  bool updates = argc > 1 && !strcmp(argv[1], "--update"), ok = argc > 1 + updates;
  for (int i = 1 + updates; i < argc; i++) {  // each from its own folder: messages name the file only
    Arena *a = arena_create();
    const char *slash = strrchr(argv[i], '/'), *folder = ".";
    if (slash) folder = arena_strndup(a, argv[i], (size_t)(slash - argv[i]));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    if (chdir(folder)) return perror(folder), 66;
    ok &= check(a, argv[i], slash ? slash + 1 : argv[i], updates, run);
    if (fchdir(here)) return 74;
    close(here);
    arena_destroy(a);
  }
  return !ok;
}
