// statement.c -- where statements end, and what a word that opens an item closes.
//
// A newline ends a statement when the token before it can end one, no ( or [ is open, and the token after it cannot
// continue one. No statement starts with a token that can continue one (there are no expression statements), so a
// long line may break on either side of an operator. A word in column 1 that opens an item closes all that is open.
#include "grammar/parse.h"
#include "grammar/mt.tab.h"
#include <string.h>

const Keyword keywords[KEYWORD_COUNT] = {
#define X(token, word, class, form) {token, word, WORD_##class, form},
#include "grammar/keywords.def"
#undef X
};

const Keyword *keyword_of(int token) {
  for (size_t i = 0; i < KEYWORD_COUNT; i++)
    if (keywords[i].token == token) return &keywords[i];
  return 0;
}

static WordClass class_of(int token) {
  const Keyword *w = token < 256 ? 0 : keyword_of(token);
  return w ? w->class : WORD_none;
}

static bool is_one_of(int token, const char *chars) { return token > 0 && token < 256 && strchr(chars, token); }

static bool can_end(int token) {
  switch (token) {
  case NAME: case DOTTED: case NUM: case STRING: case BOOL: case DTYPE: return true;
  default: return is_one_of(token, ")]}");
  }
}

static bool can_continue(int token) {
  switch (token) {
  case ARROW: case ELSE: case AS: case PAD: case AND: case OR: case EQ: case NE: case LE: case GE: case AT_OPEN:
    return true;
  default: return is_one_of(token, "=,:~+-*/%^@<>?)]{");
  }
}

static bool opens_statement(int token) { return class_of(token) == WORD_statement || token == DIM; }

bool bracket_is_open(const Parse *p) { return p->open.n && p->open.at[p->open.n - 1].bracket != '{'; }

// `precision`, `parallel` and `train` are ordinary names but where an item may begin.
static bool is_top_place(const Parse *p, const Token *t) {
  int last = p->last.kind;
  if (p->start != START_text) return false;
  if (t->span.col == 1) return true;
  return !p->open.n && (!last || last == END || last == CUT || last == '}' || (t->fresh && can_end(last)));
}

static bool opens_item(const Parse *p, const Token *t) {
  WordClass c = class_of(t->kind);
  return p->start == START_text && t->span.col == 1 && (c == WORD_item || c == WORD_top);
}

static void look_ahead(Parse *p) {
  if (p->have_ahead) return;
  Token *t = &p->ahead;
  *t = (Token){0};
  t->kind = mt_scan(&t->value, &t->span, p->scanner);
  t->at = p->token, t->n = p->at - p->token;
  if (!t->kind) t->span = span_here(p), t->n = 0;
  t->fresh = !t->kind || t->span.line > p->last.span.end_line;
  if (class_of(t->kind) == WORD_top && !is_top_place(p, t)) t->kind = NAME;
  if (t->kind == BLOCK && p->at < p->text.n && p->text.text[p->at] == '(') t->kind = NAME; // recompute = block(2)
  p->have_ahead = true;
}

static void note_start(Parse *p, const Token *t) {
  int last = p->last.kind;
  if (last && last != END && last != CUT && !is_one_of(last, "{}")) return;
  if (t->kind != END) p->first = *t, p->errors_before = p->diag->errors;
}

// Hands out a token that is not in the text, behind the last one.
static int insert(Parse *p, Span *at, int kind) {
  *at = span_after(p->last.span);
  if (kind == END && !p->open.n) p->in_item = false;
  p->last.kind = kind, p->last.n = 0, p->last.fresh = false;
  return kind;
}

static bool ended(const Parse *p) {                       // nothing waits for an end
  return !p->last.kind || p->last.kind == END || p->last.kind == CUT || is_one_of(p->last.kind, "{");
}

static void note_brackets(Parse *p, const Token *t) {
  switch (t->kind) {
  case '(': case '{': vec_push(p->arena, &p->open, (Open){(char)t->kind, false, t->span}); break;
  case '[': case AT_OPEN: vec_push(p->arena, &p->open, (Open){'[', t->kind == AT_OPEN, t->span}); break;
  case ')': case ']': case '}': bracket_close(p, t); break;
  }
}

static void brace_missing(Parse *p, const Token *t) {       // once for all that t closes
  Span open = p->open.at[p->open.n - 1].span;
  if (!p->cutting && t->kind)
    diag_error(p->diag, t->span, "MT0101", "'{' of %u:%u is not closed before this", open.line, open.col);
  else if (!p->cutting) diag_error(p->diag, open, "MT0101", "'{' is not closed");
  p->cutting = p->said = true;
}

// The token that must come before t though it is not in the text: END, CUT, or 0 when t can come.
static int missing_before(Parse *p, const Token *t) {
  bool closes_all = opens_item(p, t) || !t->kind;
  bool starts = t->fresh && opens_statement(t->kind);
  if (bracket_is_open(p) && (closes_all || starts || is_one_of(t->kind, "{}"))) {
    brackets_lose(p);
    return t->kind == '{' ? 0 : END;
  }
  if (closes_all && p->open.n) {
    brace_missing(p, t);
    if (!ended(p)) return END;
    p->open.n--;
    return CUT;
  }
  p->cutting = false;
  if (ended(p) || bracket_is_open(p)) return 0;
  if (closes_all) return p->last.kind == '}' ? 0 : END;
  if (starts && p->last.kind != ELSE && p->last.kind != '}') return END;
  if (t->fresh && can_end(p->last.kind) && !p->contracts && !can_continue(t->kind)) return END;
  return t->kind == '}' ? END : 0;
}

static void hand_out(Parse *p, const Token *t) {
  note_start(p, t);
  if (opens_item(p, t)) p->in_item = true, p->quiet = false;
  if (t->kind == '{' && p->in_item) p->quiet = false;
  if (t->kind == '{' || (t->kind == END && !p->open.n)) p->in_item = false;
  p->contracts = t->kind == ']' && p->open.n && p->open.at[p->open.n - 1].contract;
  note_brackets(p, t);
  p->last = *t;
}

int mt_lex(Value *v, Span *at, Parse *p) {
  p->said = false;
  if (!p->started) {
    p->started = true;
    return p->start;
  }
  look_ahead(p);
  int missing = missing_before(p, &p->ahead);
  if (missing) return insert(p, at, missing);
  hand_out(p, &p->ahead);
  p->have_ahead = false;
  *v = p->last.value, *at = p->last.span;
  return p->last.kind;
}
