// parse.c -- the ways into the grammar: sees that the source is a text, runs the parser, hands out the tree.
#include "grammar/parse.h"
#include "grammar/mt.tab.h"
#include <string.h>

// ---- building -------------------------------------------------------------------------------------------------
Ast *parse_push(Parse *p, Ast *list, Ast *kid) {
  if (kid->height >= AST_HEIGHT) {
    nest_error(p, kid->span);
    kid = ast_node(p->arena, N_none, kid->span, 0);
  }
  return ast_push(p->arena, list, kid);
}

Ast *parse_tree(Parse *p, NodeKind kind, Span span, Str text, int n, ...) {
  Ast *node = ast_node(p->arena, kind, span, text);
  va_list kids;
  va_start(kids, n);
  for (int i = 0; i < n; i++) parse_push(p, node, va_arg(kids, Ast *));
  va_end(kids);
  return node;
}

// ---- is it a text? ----------------------------------------------------------------------------------------------
static bool is_text(Parse *p) {
  enum { LIMIT = 1 << 28 };
  Source *text = &p->diag->source.at[p->source];
  Span at = {.file = p->source};
  if (text->n > LIMIT) {
    diag_error(p->diag, at, "MT0008", "%zu bytes; a text has at most %d", text->n, LIMIT);
    return false;
  }
  bool bom = text->n >= 3 && !memcmp(text->text, "\xef\xbb\xbf", 3);
  if (bom && !text->line) text->text += 3, text->n -= 3;          // a byte order mark is no part of the text
  at.line = at.end_line = at.col = 1;
  const unsigned char *s = (const unsigned char *)text->text;
  for (size_t i = 0, k; i < text->n; i += k, at.col++) {
    const char *what = 0;
    k = utf8_length(s + i, text->n - i);
    if (!k) what = "this is not UTF-8";
    else if (!s[i]) what = "a text does not hold a byte 0";
    else if (s[i] == '\r' && (i + 1 == text->n || s[i + 1] != '\n'))
      what = "a lone carriage return; lines end with LF or CR LF";
    if (what) {
      at.end_col = (uint16_t)MIN(at.col, UINT16_MAX);
      diag_error(p->diag, at, "MT0008", "byte 0x%02x: %s", s[i], what);
      return false;
    }
    if (s[i] == '\n') at.line++, at.end_line++, at.col = 0;
  }
  return true;
}

// ---- the ways in --------------------------------------------------------------------------------------------------
static Ast *run(Arena *a, Intern *in, Diag *d, uint16_t source, int start) {
  if (!source || source >= d->source.n) bug("parse: there is no source %u", source);
  Parse p = {.arena = a, .in = in, .diag = d, .source = source, .start = start, .line = 1, .col = 1};
  if (!is_text(&p)) return 0;
  p.text = d->source.at[source];
  map_init(&p.keywords, a);
  for (size_t i = 0; i < KEYWORD_COUNT; i++) map_put(&p.keywords, key_of(intern(in, keywords[i].word)), i);
  scan_start(&p);
  mt_parse(&p);
  scan_finish(&p);
  return p.root;
}

static Ast *run_whole(Arena *a, Intern *in, Diag *d, uint16_t source, int start) {
  uint32_t before = d->errors;
  Ast *root = run(a, in, d, source, start);
  return d->errors > before ? 0 : root;
}

Ast *parse(Arena *a, Intern *in, Diag *d, uint16_t source) {
  Ast *root = run(a, in, d, source, START_text);
  return root ? root : ast_node(a, N_list, (Span){.file = source}, 0);
}

Ast *parse_setting(Arena *a, Intern *in, Diag *d, uint16_t source) {
  return run_whole(a, in, d, source, START_setting);
}

Ast *parse_values(Arena *a, Intern *in, Diag *d, uint16_t source) { return run_whole(a, in, d, source, START_values); }

Ast *parse_map(Arena *a, Intern *in, Diag *d, uint16_t source) { return run_whole(a, in, d, source, START_map); }

Ast *parse_mesh(Arena *a, Intern *in, Diag *d, uint16_t source) { return run_whole(a, in, d, source, START_mesh); }
