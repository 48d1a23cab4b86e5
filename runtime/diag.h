// diag.h -- messages about the user's text: place, caret, what was expected, what was found.
//
//   gpt2.mt:45:10: error MT0203: 'a @ wo' is ambiguous: the operands share heads and hd
//      45 |   return a @ wo + bo
//         |          ^~~~~~
//         a  is f32[batch, seq, heads, hd]      (attention, line 43)
#ifndef MT_DIAG_H
#define MT_DIAG_H
#include "runtime/base.h"

// 1-based; columns count characters (UTF-8), the end is included. file: index into Diag.source; line 0: no place.
typedef struct { uint16_t file; uint16_t end_col; uint32_t line, end_line; uint32_t col; } Span;
static inline Span span_join(Span a, Span b) { return (Span){a.file, b.end_col, a.line, b.end_line, a.col}; }

typedef struct {
  Str path;                                  // as the user wrote it, or a name such as "prelude"
  const char *text; size_t n;                // n may contain NUL bytes
  size_t *line; uint32_t nline;              // byte offset of each line, made on first use
} Source;

typedef enum { COLOR_auto, COLOR_always, COLOR_never } Color;
// auto: where fd is a terminal that can show colours, and NO_COLOR is not set
bool color_shows(Color c, int fd);

typedef struct Diag {
  Arena *arena;
  Text *to;                                  // 0: stderr; else messages are collected there (tests)
  bool color;
  uint32_t errors, warnings, limit;          // limit: stop printing after so many errors (0: 20)
  VEC(Source) source;                        // source 0 is "no file"
} Diag;

void diag_init(Diag *d, Arena *a);
uint16_t diag_source(Diag *d, Str path, const char *text, size_t n);        // registers a text; returns its index
// code: "MT0203". The message: lower case, no full stop, the user's names in ''.
void diag_error(Diag *d, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);
void diag_warning(Diag *d, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);
bool diag_is_full(const Diag *d);           // further errors are counted, not printed
void diag_note(Diag *d, const char *fmt, ...) PRINTF(2, 3);                 // an indented line under the last message
void diag_note_at(Diag *d, Span at, const char *fmt, ...) PRINTF(3, 4);     // the same, with "path:line:col: note: "
const char *span_text(const Diag *d, Arena *a, Span at);                    // "gpt2.mt:45:10"
// the words of a span as written, when they are short and on one line; else `otherwise`
const char *span_words(Diag *d, Arena *a, Span at, const char *otherwise);
#endif
