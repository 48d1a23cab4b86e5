// report.c -- every collective of the program as a line of text, for `mtc explain` and the tests.
#include "passes/layout.h"

void layout_report(const Module *m, int64_t small, Text *t) {
  for (FnId i = 1; i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    for (NodeId id = 1; id < f->node.n && !f->is_body; id++) {
      const Node *n = fn_node(f, id);
      if (!op_has(n->op, OPF_COLL)) continue;
      int64_t in = type_bytes(m, val_type(f, node_in(f, n)[0])), out = type_bytes(m, val_type(f, n->out));
      text_printf(t, "%-8s %-14s %-8s %12lld %-5s  %s  %s\n", f->name, op_info[n->op].name,
                  axes_text(m, t->arena, n->attr.axes, ","), (long long)MAX(in, out),
                  MAX(in, out) <= small ? "small" : "", span_text(m->diag, t->arena, n->loc), n->why);
    }
  }
}
