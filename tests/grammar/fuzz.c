// fuzz.c -- parses mutated texts. Each run has its own seed, printed when it fails.
//
//   fuzz N FIRST_SEED FILE…     N runs on mutations of the files
#include "check.h"
#include "tests/mutate.h"
#include "tests/said.h"
#include <string.h>

static const char *const words[] = {
#define X(token, word, class, form) word,
#include "grammar/keywords.def"
#undef X
  "(", ")", "[", "]", "{", "}", "=", "==", "->", "@", "@[", ",", ":", ";", "~", "?", "*", "-", "^", "\n", "#", "\"", "x", "1", "1e999",
  "0.5", "2d", "25 MiB", "a.b.c", "1f1b", "as \"h.{i}\"", "$", "é", "\r\n", "\t", "//", "**", "+=", "!", "&&",
};

static const char *run(Arena *a, const char *text, size_t n) {
  Diag d;
  Text said, printed;
  diag_said(&d, a, &said);
  text_init(&printed, a);
  uint16_t source = diag_source(&d, "t", text, n);
  Ast *root = parse(a, intern_create(a), &d, source);
  if (!root) return "no tree";
  if (!d.errors != !said.n) return arena_printf(a, "%u errors and %zu bytes of messages", d.errors, said.n);
  if (d.errors && !strstr(said.s, "error MT0")) return arena_printf(a, "no code: %s", said.s);
  const char *wrong = said_wrong(said.s, said.n, false);
  if (wrong) return wrong;
  ast_print(&printed, root);
  return tree_check(a, root, source, d.errors > 0);
}

int main(int argc, char **argv) { return fuzz(argc, argv, words, COUNT(words), run); }
