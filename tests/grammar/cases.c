// cases.c -- runs texts that say in comments what must come out: `# >` lines are the tree, `# !` lines the messages.
// See tests/marked.h.
#include "grammar/ast.h"
#include "tests/marked.h"

static bool run(Marked *t) {
  Diag d;
  diag_init(&d, t->arena);
  d.to = &t->said;
  Ast *root = parse(t->arena, intern_create(t->arena), &d, diag_source(&d, t->name, t->text, t->n));
  if (!d.errors && (*t->want || !t->said.n)) ast_print(&t->got, root);       // beside warnings a text may leave it out
  return true;
}

int main(int argc, char **argv) { return marked_main(argc, argv, run); }
