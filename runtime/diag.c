// diag.c -- see diag.h.
#include "runtime/diag.h"
#include <stdlib.h>
#include <string.h>

bool color_shows(Color c, int fd) {
  const char *no = getenv("NO_COLOR");
  return c == COLOR_always || (c == COLOR_auto && is_terminal(fd) && !(no && *no));
}

void diag_init(Diag *d, Arena *a) {
  *d = (Diag){.arena = a, .limit = 20};
  d->color = color_shows(COLOR_auto, 2);
  vec_push(a, &d->source, (Source){.path = "?"});
}

uint16_t diag_source(Diag *d, Str path, const char *text, size_t n) {
  if (d->source.n == UINT16_MAX) bug("more than %d source texts", UINT16_MAX);
  vec_push(d->arena, &d->source, (Source){.path = path, .text = text, .n = n});
  return (uint16_t)(d->source.n - 1);
}

static void source_index(Diag *d, Source *s) {
  VEC(size_t) line = {0};
  vec_push(d->arena, &line, 0);
  for (size_t i = 0; i < s->n; i++)
    if (s->text[i] == '\n') vec_push(d->arena, &line, i + 1);
  s->line = line.at, s->nline = line.n;
}

static void say(Diag *d, const char *s) {
  if (d->to) text_puts(d->to, s);
  else fputs(s, stderr);
}

static const char *paint(const Diag *d, const char *on) { return d->color && !d->to ? on : ""; }

// One line of the text, at most `wide` bytes around the span, tabs as blanks, other control bytes as '?'.
static void say_line(Diag *d, Source *s, Span at, const char *tint) {
  enum { wide = 100 };
  if (!s->line) source_index(d, s);
  if (!s->n || at.line > s->nline) return;
  size_t beg = s->line[at.line - 1], end = at.line < s->nline ? s->line[at.line] - 1 : s->n;
  if (end > beg && s->text[end - 1] == '\r') end--;
  size_t from = beg;                                    // byte where the span starts
  for (uint32_t col = 1; from < end && col < at.col; col++) {
    from++;
    while (from < end && (s->text[from] & 0xc0) == 0x80) from++;
  }
  size_t cut = from - beg > wide * 2 / 3 ? from - wide / 3 : beg, stop = MIN(end, cut + wide);
  while (cut > beg && (s->text[cut] & 0xc0) == 0x80) cut--;
  while (stop < end && (s->text[stop] & 0xc0) == 0x80) stop++;
  Text t;
  text_init(&t, d->arena);
  text_printf(&t, "%6u | %s", at.line, cut > beg ? "…" : "");
  for (size_t i = cut; i < stop; i++) {
    char c = s->text[i] == '\t' ? ' ' : (unsigned char)s->text[i] < 32 || s->text[i] == 127 ? '?' : s->text[i];
    text_add(&t, &c, 1);
  }
  text_printf(&t, "%s\n       | %s%s", stop < end ? "…" : "", cut > beg ? " " : "", paint(d, tint));
  for (size_t i = cut; i < from; i++)
    if ((s->text[i] & 0xc0) != 0x80) text_puts(&t, " ");
  text_puts(&t, "^");
  if (at.end_line == at.line)
    for (uint32_t c = at.col + 1; c <= at.end_col && c < at.col + wide; c++) text_puts(&t, "~");
  text_printf(&t, "%s\n", paint(d, "\33[0m"));
  say(d, t.s);
}

// No control bytes of the user's reach a terminal.
static char *clean(char *s) {
  for (char *c = s; *c; c++)
    if (((unsigned char)*c < 32 && *c != '\n') || *c == 127) *c = '?';
  return s;
}

// A message with the user's names in it, which may be long.
PRINTF(2, 0)
static const char *worded(Diag *d, const char *fmt, va_list args) {
  enum { LONG = 1000 };
  char *s = arena_vprintf(d->arena, fmt, args);
  size_t cut = strnlen(s, LONG);
  if (cut < LONG) return clean(s);
  while (cut && (s[cut] & 0xc0) == 0x80) cut--;
  return clean(arena_printf(d->arena, "%.*s…", (int)cut, s));
}

PRINTF(6, 0)
static void message(Diag *d, Span at, const char *kind, const char *code, const char *tint, const char *fmt, va_list args) {
  Text t;
  text_init(&t, d->arena);
  text_printf(&t, "%s%s%s: %s%s%s%s%s: ", paint(d, "\33[1m"), span_text(d, d->arena, at), paint(d, "\33[0m"),
              paint(d, tint), kind, *code ? " " : "", code, paint(d, "\33[0m"));
  text_puts(&t, worded(d, fmt, args));
  text_puts(&t, "\n");
  say(d, t.s);
  if (at.line && at.file && at.file < d->source.n) say_line(d, &d->source.at[at.file], at, tint);
}

void diag_error(Diag *d, Span at, const char *code, const char *fmt, ...) {
  d->errors++;
  if (d->limit && d->errors > d->limit) {
    if (d->errors == d->limit + 1) say(d, "more errors follow; mend these first\n");
    return;
  }
  va_list args;
  va_start(args, fmt);
  message(d, at, "error", code, "\33[1;31m", fmt, args);
  va_end(args);
}

void diag_warning(Diag *d, Span at, const char *code, const char *fmt, ...) {
  d->warnings++;
  va_list args;
  va_start(args, fmt);
  message(d, at, "warning", code, "\33[1;35m", fmt, args);
  va_end(args);
}

bool diag_is_full(const Diag *d) { return d->limit && d->errors > d->limit; }

void diag_note(Diag *d, const char *fmt, ...) {
  if (diag_is_full(d)) return;
  va_list args;
  va_start(args, fmt);
  say(d, arena_printf(d->arena, "         %s\n", worded(d, fmt, args)));
  va_end(args);
}

void diag_note_at(Diag *d, Span at, const char *fmt, ...) {
  if (diag_is_full(d)) return;
  va_list args;
  va_start(args, fmt);
  say(d, arena_printf(d->arena, "%s: note: %s\n", span_text(d, d->arena, at), worded(d, fmt, args)));
  va_end(args);
}

const char *span_text(const Diag *d, Arena *a, Span at) {
  const char *path = at.file < d->source.n ? d->source.at[at.file].path : "?";
  return at.line ? clean(arena_printf(a, "%s:%u:%u", path, at.line, at.col)) : path;
}

static size_t byte_of(const Source *s, uint32_t line, uint32_t col) {    // where a column (characters from 1) begins
  size_t at = s->line[line - 1];
  for (; at < s->n && col > 1; col--) {
    at++;
    while (at < s->n && (s->text[at] & 0xc0) == 0x80) at++;
  }
  return at;
}

const char *span_words(Diag *d, Arena *a, Span at, const char *otherwise) {
  enum { LONG = 60 };
  if (!at.line || at.line != at.end_line || at.file >= d->source.n || !at.file || at.end_col < at.col || at.end_col - at.col >= LONG) return otherwise;
  Source *s = &d->source.at[at.file];
  if (!s->line) source_index(d, s);
  if (at.line > s->nline) return otherwise;
  size_t from = byte_of(s, at.line, at.col), to = byte_of(s, at.line, at.end_col + 1u);
  return arena_strndup(a, s->text + from, to - from);
}
