// check.c -- see check.h.
#include "check.h"
#include <string.h>

// What a node of each kind has: whether a text, and its kids. `x*` is a list of x, a|b is either.
typedef struct { bool text; const char *kids; } Rule;
static const Rule rule[N_COUNT] = {
  [N_none]      = {false, ""},
  [N_import]    = {true,  ""},
  [N_config]    = {false, "set|require*"},
  [N_preset]    = {true,  "set*"},
  [N_dim]       = {true,  "expr|none expr|none"},
  [N_fn]        = {true,  "name* formal* type* statement*"},
  [N_block]     = {true,  "name* formal* type* statement*"},
  [N_model]     = {true,  "formal* formal* statement*"},
  [N_precision] = {false, "set|keep*"},
  [N_parallel]  = {false, "set|mesh|map*"},
  [N_train]     = {false, "set*"},
  [N_set]       = {true,  "expr|dtype*"},
  [N_require]   = {false, "expr"},
  [N_keep]      = {true,  "name*"},
  [N_mesh]      = {false, "set*"},
  [N_map]       = {true,  "name* name*"},
  [N_formal]    = {true,  "type|none expr|none"},
  [N_type]      = {true,  "name|maybe|star*"},
  [N_name]      = {true,  ""},
  [N_maybe]     = {true,  ""},
  [N_star]      = {false, ""},
  [N_group]     = {false, "name…"},
  [N_param]     = {true,  "as|none type expr"},
  [N_assign]    = {false, "name* expr*"},
  [N_return]    = {false, "expr*"},
  [N_repeat]    = {true,  "expr statement*"},
  [N_if]        = {false, "expr statement* statement*"},
  [N_as]        = {true,  ""},
  [N_call]      = {true,  "name|group* name|group* arg* as|none"},
  [N_arg]       = {true,  "expr"},
  [N_convert]   = {true,  "expr"},
  [N_binary]    = {true,  "expr expr"},
  [N_contract]  = {false, "expr expr name*|none"},
  [N_unary]     = {true,  "expr"},
  [N_num]       = {false, ""},
  [N_str]       = {true,  ""},
  [N_bool]      = {true,  ""},
  [N_dtype]     = {true,  ""},
};

static bool is_word(const char *s, size_t n, const char *word) { return strlen(word) == n && !memcmp(s, word, n); }

static bool is_a(NodeKind k, const char *word, size_t n) {
  if (is_word(word, n, "expr"))
    return k == N_name || k == N_num || k == N_str || k == N_bool || k == N_call || k == N_convert || k == N_binary ||
           k == N_contract || k == N_unary;
  if (is_word(word, n, "statement"))
    return k == N_param || k == N_dim || k == N_assign || k == N_return || k == N_repeat || k == N_if;
  if (is_word(word, n, "item"))
    return k == N_import || k == N_config || k == N_preset || k == N_dim || k == N_fn || k == N_block || k == N_model ||
           k == N_precision || k == N_parallel || k == N_train;
  return is_word(word, n, node_kind_name[k]);
}

static bool is_one_of(NodeKind k, const char *words, size_t n) {  // a|b|c
  for (size_t i = 0, j; i <= n; i = j + 1) {
    for (j = i; j < n && words[j] != '|'; j++) {}
    if (is_a(k, words + i, j - i)) return true;
  }
  return false;
}

typedef struct { Arena *a; uint16_t source; bool broken; } Check;

static const char *check_node(const Check *c, const Ast *n);

static const char *check_kid(const Check *c, const Ast *kid, const char *want, size_t n) {
  const char *star = memchr(want, '*', n);
  if (kid->kind == N_none && (c->broken || is_one_of(N_none, want, n))) return check_node(c, kid);
  if (!star) {
    if (!is_one_of(kid->kind, want, n))
      return arena_printf(c->a, "%u:%u: a %s, wanted %.*s", kid->span.line, kid->span.col, node_kind_name[kid->kind], (int)n, want);
    return check_node(c, kid);
  }
  if (kid->kind != N_list) return arena_printf(c->a, "%u:%u: a %s, wanted a list", kid->span.line, kid->span.col, node_kind_name[kid->kind]);
  for (uint32_t i = 0; i < kid->n; i++) {
    const char *why = check_kid(c, kid->kid[i], want, (size_t)(star - want));
    if (why) return why;
  }
  return 0;
}

static const char *check_node(const Check *c, const Ast *n) {
  const char *kind = node_kind_name[n->kind];
  Rule r = rule[n->kind];
  uint32_t height = 1;
  for (uint32_t i = 0; i < n->n; i++) height = MAX(height, n->kid[i]->height + (n->kid[i]->kind == N_list ? 0 : 1));
  if (n->height > AST_HEIGHT || n->height < height) return arena_printf(c->a, "%s: height %u", kind, n->height);
  if (!n->text != !r.text) return arena_printf(c->a, "%s: text %s", kind, n->text ? n->text : "is missing");
  if (n->span.file != c->source || !n->span.line || !n->span.col || n->span.end_line < n->span.line)
    return arena_printf(c->a, "%s: span %u:%u to %u", kind, n->span.line, n->span.col, n->span.end_line);
  uint32_t i = 0;
  for (const char *s = r.kids, *e; *s; s = *e ? e + 1 : e) {
    for (e = s; *e && *e != ' '; e++) {}
    size_t len = (size_t)(e - s);
    bool many = len > 3 && !memcmp(e - 3, "…", 3);
    if (many) len -= 3;
    do {
      if (i == n->n) return arena_printf(c->a, "%u:%u: %s has %u kids", n->span.line, n->span.col, kind, i);
      const char *why = check_kid(c, n->kid[i++], s, len);
      if (why) return why;
    } while (many && i < n->n);
  }
  if (i < n->n) return arena_printf(c->a, "%u:%u: %s has %u kids", n->span.line, n->span.col, kind, n->n);
  return 0;
}

const char *tree_check(Arena *a, const Ast *root, uint16_t source, bool broken) {
  Check c = {a, source, broken};
  if (root->kind != N_list) return "the root is no list";
  return check_kid(&c, root, "item*", 5);
}

uint32_t tree_count(const Ast *n, NodeKind kind) {
  uint32_t count = n->kind == kind;
  for (uint32_t i = 0; i < n->n; i++) count += tree_count(n->kid[i], kind);
  return count;
}

const Ast *tree_find(const Ast *list, NodeKind kind, const char *text) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->kid[i]->kind == kind && (!text || !strcmp(list->kid[i]->text, text))) return list->kid[i];
  return 0;
}
