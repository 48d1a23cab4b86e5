// cases.c -- an IR text through layout and reshard. Its `# !` lines are the messages that must come out, its `# >`
// lines the program after. With `# report` in it, the list of its collectives follows. See tests/marked.h.
#include "passes/layout.h"
#include "passes/pass.h"
#include "tests/marked.h"
#include <string.h>

static bool run(Marked *t) {
  Diag *d = NEW(t->arena, Diag);
  diag_init(d, t->arena);
  d->to = &t->said;
  Module *m = ir_parse(t->arena, intern_create(t->arena), d, diag_source(d, t->name, t->plain, strlen(t->plain)));
  bool ok = m && ir_verify(m, "reading") && pass_layout(m) && ir_verify(m, "layout");
  ok = ok && pass_reshard(m) && ir_verify(m, "reshard");
  if (ok) ir_print(&t->got, m);
  if (ok && strstr(t->plain, "# report")) layout_report(m, 64, &t->got);
  return true;
}

int main(int argc, char **argv) { return marked_main(argc, argv, run); }
