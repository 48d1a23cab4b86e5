// complain.c -- one readable message per mistake. What the parser did not expect is seldom what is wrong, so the usual
// mistakes are told by name; ERRORS.md explains each code.
#include "grammar/parse.h"
#include "grammar/mt.tab.h"
#include <string.h>

const char *parse_excerpt(Parse *p, const char *s, size_t n) {
  enum { LONG = 40 };
  size_t k = MIN(n, (size_t)LONG);
  while (k < n && k && ((unsigned char)s[k] & 0xc0) == 0x80) k--;
  char *copy = arena_printf(p->arena, "%.*s%s", (int)k, s, k < n ? "…" : "");
  for (size_t i = 0; i < k; i++)
    if ((unsigned char)copy[i] < 32 || copy[i] == 127) copy[i] = '?';
  return copy;
}

void scan_error(Parse *p, Span at, const char *code, const char *fmt, ...) {
  if (p->bad_line == at.line) return;
  p->bad_line = at.line;
  va_list args;
  va_start(args, fmt);
  diag_error(p->diag, at, code, "%s", arena_vprintf(p->arena, fmt, args));
  va_end(args);
}

void nest_error(Parse *p, Span at) {
  Span in = p->deep;
  if (in.line && (at.line < in.line || (at.line == in.line && at.col <= in.col))) return;      // around the one said
  p->deep = at;
  diag_error(p->diag, at, "MT0109", "nested too deeply (%d levels); give parts of it names", AST_HEIGHT);
}

// ---- brackets ---------------------------------------------------------------------------------------------------
static bool may_say(Parse *p) {                                   // the statement has no error yet
  p->said = true;
  return !p->quiet && p->errors_before == p->diag->errors;
}

void brackets_lose(Parse *p) {
  uint32_t n = p->open.n;
  while (n && p->open.at[n - 1].bracket != '{') n--;
  Open lost = p->open.at[n];
  if (may_say(p)) diag_error(p->diag, lost.span, "MT0102", "'%c' is not closed", lost.bracket);
  p->open.n = n;
}

void bracket_close(Parse *p, const Token *t) {
  char c = (char)t->kind, opener = c == ')' ? '(' : c == ']' ? '[' : '{';
  if (p->open.n && p->open.at[p->open.n - 1].bracket == opener) {
    p->open.n--;
    return;
  }
  if (!p->open.n || !bracket_is_open(p)) {
    if (may_say(p)) diag_error(p->diag, t->span, "MT0107", "'%c' closes nothing", c);
    if (!p->open.n) p->quiet = true;
    return;
  }
  Open other = p->open.at[--p->open.n];
  if (may_say(p))
    diag_error(p->diag, other.span, "MT0102", "'%c' is not closed before the '%c' of %u:%u", other.bracket, c,
               t->span.line, t->span.col);
  if (bracket_is_open(p)) p->open.n--;                                 // the one it was meant for
}

// ---- what the parser refuses ---------------------------------------------------------------------------------------
typedef struct { const char *const *name; int n; } Wants;

static bool wants(Wants w, const char *name) {
  for (int i = 0; i < w.n; i++)
    if (!strcmp(w.name[i], name)) return true;
  return false;
}

static bool is_among(const char *name, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(name, list[i])) return true;
  return false;
}

static const char *const value_starts[] = {"a name", "a number", "a string", "a dtype", "true or false",
                                           "'not'",  "'-'",      "'('"};
static const char *const after_value[] = {"'and'", "'or'", "'=='", "'!='", "'<'", "'>'", "'<='", "'>='", "'+'", "'-'", "'*'",
                                          "'/'", "'%'", "'^'", "'@'", "'@['", "'as'", "'('", "'['"};

static bool is_comparison(int token) {
  return token == EQ || token == NE || token == LE || token == GE || token == '<' || token == '>';
}

// The last token, as a message names it.
static const char *found(Parse *p) {
  const Token *t = &p->last;
  if (!t->n) return p->start != START_text ? "end" : t->kind ? "end of the line" : "end of the text";
  return arena_printf(p->arena, "'%s'", parse_excerpt(p, p->text.text + t->at, t->n));
}

// The first byte behind the last token that is no blank.
static char next_char(const Parse *p) {
  size_t i = p->last.at + p->last.n;
  while (i < p->text.n && (p->text.text[i] == ' ' || p->text.text[i] == '\t')) i++;
  return i < p->text.n ? p->text.text[i] : 0;
}

// The word of ours that a name stands for: a misspelt one, or one of another language. 0: none.
static Str word_meant(Str name, bool (*fits)(WordClass)) {
  static const struct { Str theirs, ours; } other[] = {
    {"def", "fn"}, {"function", "fn"}, {"func", "fn"}, {"class", "block"}, {"layer", "block"},
    {"include", "import"}, {"use", "import"}, {"for", "repeat"}, {"while", "repeat"}, {"loop", "repeat"},
    {"elif", "else if"}, {"elsif", "else if"},
  };
  for (size_t i = 0; i < COUNT(other); i++)
    if (!strcmp(name, other[i].theirs)) return other[i].ours;
  Str list[KEYWORD_COUNT];
  size_t n = 0;
  for (size_t i = 0; i < KEYWORD_COUNT; i++)
    if (fits(keywords[i].class)) list[n++] = keywords[i].word;
  return nearest(name, list, n);
}

static bool is_item_word(WordClass c) { return c == WORD_item || c == WORD_top; }
static bool is_dtype_word(WordClass c) { return c == WORD_dtype; }
static bool is_statement_word(WordClass c) { return c == WORD_statement; }

static void item_error(Parse *p, Span at) {
  Str meant = p->last.kind == NAME ? word_meant(p->last.value.text, is_item_word) : 0;
  diag_error(p->diag, at, "MT0108",
             "expected import, config, preset, dim, fn, block, model, precision, parallel or train here%s",
             meant ? arena_printf(p->arena, " (did you mean '%s'?)", meant) : "");
}

static bool note_meant(Parse *p, const Token *t, bool (*fits)(WordClass)) {
  Str meant = t->kind == NAME ? word_meant(t->value.text, fits) : 0;
  if (meant) diag_note(p->diag, "did you mean '%s'?", meant);
  return meant;
}

// What may help, under a message.
static void note_help(Parse *p, Wants w, bool value, bool ops) {
  const Token *t = &p->last, *first = &p->first;
  const Keyword *word = keyword_of(first->kind);
  if (t->kind == '?') diag_note(p->diag, "a choice is written if c { … } else { … }, or select(c, a, b) for tensors");
  else if (t->kind == ARROW && wants(w, "')'"))
    diag_note(p->diag, "dims are named in brackets before the arguments: rename[seq -> kseq](x)");
  else if (t->kind == DOTTED)
    diag_note(p->diag, "only settings have dots in their names; a path is a string: as \"h.{i}\"");
  else if (t->kind == ',' && wants(w, "the end of the line")) diag_note(p->diag, "on one line, ';' stands between");
  else if (wants(w, "a dtype") && !value && note_meant(p, t, is_dtype_word)) return;
  else if (wants(w, "the end of the line") && note_meant(p, t, is_statement_word)) return;
  else if (word && *word->form && !value && (!ops || wants(w, "'{'")))
    diag_note(p->diag, "it is written like this: %s", word->form);
  else if (first->kind == NAME && wants(w, "'='") && wants(w, "','") && !note_meant(p, first, is_statement_word))
    diag_note(p->diag, "a statement names what it computes: y = …");
}

static void plain_error(Parse *p, Span at, Wants w, bool value, bool ops) {
  Text list;
  text_init(&list, p->arena);
  text_puts(&list, value ? "a value" : "");
  int n = value;
  for (int i = 0; i < w.n; i++) {
    const char *name = w.name[i];
    if (value && is_among(name, value_starts, COUNT(value_starts))) continue;
    if (ops && is_among(name, after_value, COUNT(after_value))) continue;
    bool end = !strcmp(name, "the end of the line");
    if (end && wants(w, "'}'")) continue;                         // an empty statement, no help
    text_printf(&list, "%s%s", n++ ? " or " : "", end && p->start != START_text ? "the end" : name);
  }
  if (n && n <= 6) diag_error(p->diag, at, "MT0100", "unexpected %s, expected %s", found(p), list.s);
  else diag_error(p->diag, at, "MT0100", "unexpected %s", found(p));
  note_help(p, w, value, ops);
}

// A word of the language that was meant as a name.
static bool is_used_as_name(const Parse *p, Wants w, bool value) {
  const Keyword *word = keyword_of(p->last.kind);
  if (!word || !wants(w, "a name")) return false;
  char next = next_char(p);
  switch (word->class) {
  case WORD_dtype: return next != '[' && next != '(';
  case WORD_clause: case WORD_operator: return !value;
  default: return p->last.at != p->first.at || next == '=' || next == ',';
  }
}

void syntax_error(Parse *p, Span at, const char *const *expected, int n) {
  if (p->said || p->quiet || p->bad_line == at.line) return;
  Wants w = {expected, n};
  const Token *t = &p->last;
  bool value = wants(w, "a number") && wants(w, "'not'"), ops = wants(w, "'and'") && wants(w, "'or'");
  bool items = wants(w, "'config'") && wants(w, "'train'"), closer = wants(w, "')'") || wants(w, "']'");
  bool behind = (t->fresh && t->span.col <= p->first.span.col) || (t->kind == ARROW && p->in_item);
  if (bracket_is_open(p) && closer && behind)
    brackets_lose(p);                                             // this belongs behind the bracket
  else if (t->kind == ELSE && !value) diag_error(p->diag, at, "MT0103", "'else' follows no if");
  else if (items) item_error(p, at);
  else if (is_used_as_name(p, w, value))
    diag_error(p->diag, at, "MT0104", "%s is a word of the language; choose another name", found(p));
  else if (t->kind == EQ && wants(w, "'='")) diag_error(p->diag, at, "MT0105", "'==' compares; '=' names a value");
  else if (t->kind == '=' && ops) diag_error(p->diag, at, "MT0105", "'=' names a value; '==' compares");
  else if (is_comparison(t->kind) && ops)
    diag_error(p->diag, at, "MT0106", "comparisons do not chain; write 'a < b and b < c'");
  else plain_error(p, at, w, value, ops);
  if (!p->open.n) p->quiet = true;
}
