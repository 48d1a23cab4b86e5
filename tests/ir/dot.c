// dot.c -- prints a picture of an IR text, or of random graphs, for dot.sh
//
//   dot FILE [fn F] [layer N] [unfold]        dot random SEED
#include "compiler/ir.h"
#include "tests/graphs/random_graph.h"
#include <stdlib.h>
#include <string.h>

static Module *read_file(Arena *a, const char *path) {
  char *text;
  size_t n;
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  if (file_read(a, path, 1 << 24, &text, &n)) return 0;
  return ir_parse(a, intern_create(a), d, diag_source(d, path, text, n));
}

int main(int argc, char **argv) {
  if (argc < 2) return 64;
  Arena *a = arena_create();
  DotOptions o = {.layer = -1};
  bool random = !strcmp(argv[1], "random") && argc == 3;
  for (int i = 2; i < argc && !random; i++) {
    if (!strcmp(argv[i], "unfold")) o.unfold = true;
    else if (!strcmp(argv[i], "fn") && i + 1 < argc) o.fn = argv[++i];
    else if (!strcmp(argv[i], "layer") && i + 1 < argc) o.layer = atoi(argv[++i]);
    else return 64;
  }
  Module *m = random ? random_module(a, strtoull(argv[2], 0, 10)) : read_file(a, argv[1]);
  if (!m) return 1;
  Text t;
  text_init(&t, a);
  ir_dot_print(&t, m, o);
  fputs(t.s, stdout);
  arena_destroy(a);
  return 0;
}
