// documents.c -- the examples of ERRORS.md, LANGUAGE.md and README.md are texts: each is parsed.
//
//   documents errors FILE    below `### MT0199` and before, an example gives that code; below later ones, none
//   documents texts FILE     no example gives an error; one with a model is lowered too
//
// An example is fenced by ```mt, or by ```mt body for statements.
#include "compiler/program.h"
#include "tests/said.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *line_end(const char *s, const char *end) {
  const char *nl = memchr(s, '\n', (size_t)(end - s));
  return nl ? nl + 1 : end;
}

static bool starts(const char *s, const char *end, const char *with) {
  return (size_t)(end - s) >= strlen(with) && !memcmp(s, with, strlen(with));
}

// code: what the example must show; "": nothing.
static bool check(const char *path, int line, const Text *example, const char *code) {
  Arena *a = arena_create();
  Diag d;
  Text said;
  diag_said(&d, a, &said);
  parse(a, intern_create(a), &d, diag_source(&d, "example", example->s, example->n));
  bool ok = *code ? strstr(said.s, code) != 0 : !d.errors;
  if (!ok) printf("%s:%d: an example wants '%s', got\n%s", path, line, code, said.s);
  arena_destroy(a);
  return ok;
}

static bool compiles(const char *path, int line, const Text *example) {
  char file[] = "/tmp/example.XXXXXX";
  int fd = mkstemp(file);
  if (fd < 0 || write(fd, example->s, example->n) != (ssize_t)example->n) exit(73);
  close(fd);
  Arena *a = arena_create();
  Diag d;
  diag_init(&d, a);
  Status status;
  Program *p = sema(a, intern_create(a), &d, file, 0, 0, &status);
  bool ok = p && lower(p);
  if (!ok) printf("%s:%d: an example does not compile\n", path, line);
  unlink(file);
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 3) return 64;
  Arena *a = arena_create();
  char *text;
  size_t n;
  if (file_read(a, argv[2], 1 << 24, &text, &n)) return 66;
  bool errors = !strcmp(argv[1], "errors"), inside = false, body = false, ok = true;
  char code[8] = "";
  int line = 0, examples = 0;
  Text example = {.arena = a};
  for (const char *s = text, *end = text + n, *next; s < end; s = next) {
    next = line_end(s, end);
    line++;
    if (!inside && errors && starts(s, end, "### MT")) {
      memcpy(code, s + 4, 6);
      if (memcmp(code, "MT02", 4) >= 0) code[0] = 0;
    } else if (!inside && starts(s, end, "```mt")) {
      inside = true, body = starts(s, end, "```mt body");
      text_init(&example, a);
      text_puts(&example, body ? "fn f() -> [] {\n" : "");
    } else if (inside && starts(s, end, "```")) {
      inside = false, examples++;
      if (body) text_puts(&example, "}\n");
      ok &= check(argv[2], line, &example, code);
      if (!errors && strstr(example.s, "\nmodel ")) ok &= compiles(argv[2], line, &example);
    } else if (inside) text_add(&example, s, (size_t)(next - s));
  }
  if (inside || !examples) printf("%s: %d examples\n", argv[2], examples), ok = false;
  arena_destroy(a);
  return !ok;
}
