// ir_text.c -- the way into the IR's grammar, and the writing of its words.
#include "grammar/ir_parse.h"
#include "grammar/ir.tab.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef void *yyscan_t;
typedef struct yy_buffer_state *Buffer;
int irt_scan_lex_init_extra(IrParse *p, yyscan_t *scanner);
Buffer irt_scan__scan_bytes(const char *bytes, int n, yyscan_t scanner);
int irt_scan_lex_destroy(yyscan_t scanner);

IrTree *ir_text_parse(Arena *a, Intern *in, Diag *d, uint16_t source) {
  enum { LIMIT = 1 << 30 };
  if (!source || source >= d->source.n) bug("ir_text_parse: there is no source %u", source);
  Source s = d->source.at[source];
  if (s.n > LIMIT) {
    diag_error(d, (Span){.file = source}, "IR01", "%zu bytes; a text has at most %d", s.n, LIMIT);
    return 0;
  }
  IrParse p = {.arena = a, .in = in, .diag = d, .source = source, .text = s.text, .n = s.n, .line = 1, .col = 1};
  map_init(&p.words, a);
#define X(word) map_put(&p.words, key_of(intern(in, #word)), W_##word);
  IR_WORDS(X)
#undef X
  if (irt_scan_lex_init_extra(&p, &p.scanner)) bug("ir_text_parse: the scanner cannot start");
  irt_scan__scan_bytes(p.text ? p.text : "", (int)p.n, p.scanner);
  irt_parse(&p);
  irt_scan_lex_destroy(p.scanner);
  return p.root;
}

// ---- words --------------------------------------------------------------------------------------------------------
static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

static bool plain_name(const char *s) {                 // {W} of ir.l
  static const char *const taken[] = {"inf", "nan", "true", "false"};
  for (size_t i = 0; i < COUNT(taken); i++)
    if (!strcmp(s, taken[i])) return false;
  if (!letter(*s)) return false;
  for (; *s; s++)
    if (!letter(*s) && !digit(*s) && !(*s == '.' && (letter(s[1]) || digit(s[1])))) return false;
  return true;
}

static bool plain_var(const char *s) {                  // {V}
  for (bool fresh = true;; s++) {
    if (letter(*s) || digit(*s) || *s == '.' || *s == '$') fresh = false;
    else if (*s == ':' && !fresh) fresh = true;
    else return !*s && !fresh;
  }
}

static bool plain_file(const char *s) {                 // {F}
  if (!*s) return false;
  for (; *s; s++)
    if (!letter(*s) && !digit(*s) && !strchr("./+-", *s)) return false;
  return true;
}

void ir_text_string(Text *t, const char *s) {
  text_puts(t, "\"");
  for (size_t n; *s; s += n) {
    n = strcspn(s, "\"\\\1\2\3\4\5\6\7\10\t\n\13\14\r\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37\177");
    if (n) text_add(t, s, n);
    else if (n = 1, *s == '"' || *s == '\\') text_printf(t, "\\%c", *s);
    else if (*s == '\n' || *s == '\t') text_puts(t, *s == '\n' ? "\\n" : "\\t");
    else text_printf(t, "\\x%02x", (unsigned char)*s);
  }
  text_puts(t, "\"");
}

void ir_text_name(Text *t, const char *name) {
  if (plain_name(name)) text_puts(t, name);
  else ir_text_string(t, name);
}

void ir_text_var(Text *t, const char *name) {
  text_puts(t, "@");
  if (plain_var(name)) text_puts(t, name);
  else ir_text_string(t, name);
}

void ir_text_num(Text *t, double v) {
  char s[40];
  if (isnan(v)) text_puts(t, "nan");
  else if (isinf(v)) text_puts(t, v < 0 ? "-inf" : "inf");
  else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(s, sizeof s, "%.*g", digits, v);
      if (strtod(s, 0) == v) break;
    }
    text_puts(t, s);
  }
}

void ir_text_place(Text *t, const char *file, Span at) {
  if (plain_file(file)) text_puts(t, file);
  else ir_text_string(t, file);
  text_printf(t, ":%u:%u", at.line, at.col);
  if (at.end_line != at.line) text_printf(t, "-%u:%u", at.end_line, at.end_col);
  else if (at.end_col != MIN(at.col, UINT16_MAX)) text_printf(t, "-%u", at.end_col);
}
