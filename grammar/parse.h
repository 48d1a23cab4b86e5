// parse.h -- one parse: what the scanner (mt.l), the rule for the end of statements (statement.c), the grammar
// (mt.y) and the messages (complain.c) share. Private to the grammar; everyone else includes ast.h.
#ifndef MT_PARSE_H
#define MT_PARSE_H
#include "grammar/ast.h"

typedef union { Str text; double num; Ast *node; } Value;      // of a token or a rule

typedef struct {
  int kind;                         // mt_token_kind_t; 0: none yet
  Span span;
  Value value;
  size_t at, n;                     // its bytes in the source; n = 0: not in the text
  bool fresh;                       // the first of its line
} Token;

typedef struct { char bracket; bool contract; Span span; } Open;        // one of ( [ {; contract: the [ of @[

// A construct's word, from keywords.def.
typedef enum {
  WORD_none, WORD_item, WORD_top, WORD_statement, WORD_clause, WORD_operator, WORD_constant, WORD_dtype
} WordClass;
typedef struct { int token; const char *word; WordClass class; const char *form; } Keyword;
enum {
  KEYWORD_COUNT = 0
#define X(token, word, class, form) + 1
#include "grammar/keywords.def"
#undef X
};
extern const Keyword keywords[KEYWORD_COUNT];
const Keyword *keyword_of(int token);     // 0 when the token is no word

typedef struct Parse {
  Arena *arena;
  Intern *in;
  Diag *diag;
  uint16_t source;
  Source text;
  int start;                        // START_…; the parser's first token
  bool started;
  Ast *root;

  void *scanner;
  Map keywords;                        // interned word -> its index in keywords
  uint32_t line, col;               // of the next character
  size_t at, token;                 // bytes: the next one; where the token began

  Token ahead, last, first;         // scanned and not handed out; handed out; the first of this statement
  bool have_ahead;
  VEC(Open) open;
  bool contracts;                   // last closes an @[, so a value must follow
  bool in_item;                     // between an item's word and its `{`
  bool cutting;                     // closing what a top-level word found open; said so

  // So that one mistake gives one message:
  bool said;                        // a syntax error at the last token is the echo of a message
  bool quiet;                       // no item here; until the next word that opens one
  uint32_t bad_line;                // line of the last lexical error
  uint32_t errors_before;           // Diag.errors when this statement began
  Span deep;                        // the last nest that was refused
} Parse;

int mt_scan(Value *v, Span *at, void *scanner);                 // mt.l: the next token of the text
void scan_start(Parse *p);                                      // mt.l
void scan_finish(Parse *p);
int mt_lex(Value *v, Span *at, Parse *p);                       // statement.c: the same, and where statements end
int mt_parse(Parse *p);                                         // mt.y

// parse.c: building, with the height bounded
Ast *parse_tree(Parse *p, NodeKind kind, Span span, Str text, int n, ...);     // n kids
Ast *parse_push(Parse *p, Ast *list, Ast *kid);

// complain.c
void scan_error(Parse *p, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);    // one message a line
void syntax_error(Parse *p, Span at, const char *const *expected, int n);         // at p->last
void nest_error(Parse *p, Span at);
void bracket_close(Parse *p, const Token *t);                    // takes t's partner from p->open, if it is there
void brackets_lose(Parse *p);       // open ( and [ cannot be closed any more: said, and forgotten
const char *parse_excerpt(Parse *p, const char *s, size_t n);   // for a message: short, one line, no control bytes
bool bracket_is_open(const Parse *p);    // the innermost open one is ( or [

static inline Span span_here(const Parse *p) {                  // the next character
  return (Span){p->source, (uint16_t)MIN(p->col, (uint32_t)UINT16_MAX), p->line, p->line, p->col};
}
static inline Span span_after(Span a) {                         // the place behind it
  uint16_t col = a.end_col == UINT16_MAX ? a.end_col : (uint16_t)(a.end_col + 1);
  return (Span){a.file, col, a.end_line, a.end_line, col};
}
#endif
