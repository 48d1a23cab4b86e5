// ast.c -- see ast.h.
#include "grammar/ast.h"
#include <string.h>

const char *const node_kind_name[N_COUNT] = {
#define X(kind) #kind,
  NODES(X)
#undef X
};

Ast *ast_node(Arena *a, NodeKind kind, Span span, Str text) {
  Ast *n = NEW(a, Ast);
  n->kind = kind, n->span = span, n->text = text, n->height = 1;
  return n;
}

Ast *ast_push(Arena *a, Ast *parent, Ast *kid) {
  vec_grow(a, (void **)&parent->kid, &parent->room, parent->n, sizeof *parent->kid);
  parent->kid[parent->n++] = kid;
  parent->height = MAX(parent->height, kid->height + 1);
  return parent;
}

// ---- printing -----------------------------------------------------------------------------------------------
//   (fn relu () ((formal x (type float ((star))) _)) ((type float ((star))))
//     ((return ((call max () () ((arg "" (name x)) (arg "" (num 0))) _)))))
// A list is bare parentheses, an absent part is _.

static bool has_own_line(NodeKind k) {
  switch (k) {
  case N_import: case N_config: case N_preset: case N_dim: case N_fn: case N_block: case N_model: case N_precision:
  case N_parallel: case N_train: case N_set: case N_require: case N_keep: case N_mesh: case N_map: case N_param:
  case N_assign: case N_return: case N_repeat: case N_if: return true;
  default: return false;
  }
}

static bool is_bare(const char *s) {
  if (!*s || !strcmp(s, "_")) return false;
  for (; *s; s++)
    if (*s <= ' ' || *s > '~' || strchr("\"()\\", *s)) return false;
  return true;
}

static void print_text(Text *t, const Ast *n) {
  if (n->kind == N_num) text_printf(t, " %.17g", n->num);
  if (!n->text) return;
  if (n->kind != N_str && is_bare(n->text)) {
    text_printf(t, " %s", n->text);
    return;
  }
  text_puts(t, " \"");
  for (const char *s = n->text; *s; s++) {
    if (*s == '"' || *s == '\\') text_add(t, "\\", 1);
    text_add(t, s, 1);
  }
  text_puts(t, "\"");
}

typedef struct { const Ast *node; uint32_t next; int indent; } Visit;

void ast_print(Text *t, const Ast *root) {
  VEC(Visit) open = {0};
  vec_push(t->arena, &open, (Visit){.node = root});
  while (open.n) {
    Visit *v = &open.at[open.n - 1];
    const Ast *n = v->node;
    if (n->kind == N_none) text_puts(t, "_");
    else if (!v->next) {
      text_printf(t, "(%s", n->kind == N_list ? "" : node_kind_name[n->kind]);
      print_text(t, n);
    }
    if (v->next == n->n) {
      if (n->kind != N_none) text_puts(t, ")");
      open.n--;
      continue;
    }
    const Ast *kid = n->kid[v->next++];
    int indent = v->indent;
    if (has_own_line(kid->kind)) text_printf(t, "\n%*s", indent += 2, "");
    else if (n->kind != N_list || v->next > 1) text_puts(t, " ");
    vec_push(t->arena, &open, (Visit){.node = kid, .indent = indent});
  }
  text_puts(t, "\n");
}
