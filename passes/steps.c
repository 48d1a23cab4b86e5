// steps.c -- prints what fuse made of a function: its steps in order, what each reads and makes, and why that is stored.
#include "passes/group.h"

static const char *const why_text[] = {
#define X(word, text) text,
  STORED_WHYS(X)
#undef X
};

static void put_dims(Text *t, const Module *m, const DimId *d, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) text_printf(t, "%s%s", i ? ", " : "", dim_of(m, d[i])->name);
}

static void put_made(Text *t, const Groups *g, ValId v, VarId var, bool accumulate) {
  if (var) text_printf(t, "    %s @%s\n", accumulate ? "adds to" : "writes", g->m->var.at[var].name);
  if (!v || g->moved[v]) return;
  const char *name = g->f->val.at[v].name;
  text_printf(t, "    makes %%%u%s%s ", v, name ? " " : "", name ? name : "");
  ir_print_type(t, g->m, g->f->val.at[v].type);
  text_printf(t, ": %s\n", why_text[g->why[v]]);
  if (g->over[v]) text_printf(t, "      in the place of %%%u\n", g->over[v]);
}

// Collectives end in the order in which they start: the ones from *from on that are waited for before this step.
static void put_waits(Text *t, const Groups *g, uint32_t *from, uint32_t step) {
  for (; *from < step; ++*from) {
    const Group *x = &g->group.at[*from];
    bool flies = x->collective && !x->and && !(x->early && x->early->f == g->f);
    if (flies && x->wait > step) return;
    if (flies) text_printf(t, "  wait for %u\n", *from + 1);
  }
}

void steps_print(Text *t, const Groups *g) {
  static const char *const class[LOOP_COUNT] = {"product", "map", "row", "col", "scatter"};
  text_printf(t, "%s: %u steps\n", g->f->name, g->group.n);
  uint32_t waited = 0;
  for (uint32_t i = 0; i < g->group.n; i++) {
    const Group *x = &g->group.at[i];
    put_waits(t, g, &waited, i);
    const Fn *f = x->early ? x->early->f : g->f;
    const Node *n = fn_node(f, x->node);
    if (x->early && f == g->f) {
      text_printf(t, "  %u is done: %s of @%s\n", i + 1, op_info[n->op].name, g->m->var.at[x->early->var].name);
      continue;
    }
    text_printf(t, "  %u %s", i + 1, x->tile ? "attention" : x->collective ? "start" : class[x->class]);
    if (x->class != LOOP_auto) {
      text_puts(t, " over [");
      put_dims(t, g->m, x->p, x->np);
      text_puts(t, "]");
      if (x->nr) text_puts(t, " reduces ["), put_dims(t, g->m, x->r, x->nr), text_puts(t, "]");
    }
    if (x->collective) text_printf(t, " %s", op_info[n->op].name);
    if (x->early) text_printf(t, " of @%s in the last microbatch%s", g->m->var.at[x->early->var].name, x->and ? ", with the next" : "");
    text_printf(t, " ; %s%s%s\n", span_text(g->m->diag, t->arena, n->loc), *n->path ? " in " : "", n->path);
    for (uint32_t k = 0; k < x->root.n; k++) {
      const Root *r = &x->root.at[k];
      put_made(t, g, g->group_of[r->v] == i + 1 ? r->v : 0, r->var, r->accumulate);
    }
    for (uint32_t k = 0; x->class == LOOP_auto && !x->early && k < n->nout; k++) put_made(t, g, n->out + k, x->var, x->accumulate);
  }
  put_waits(t, g, &waited, g->group.n);
}
