// json_text.c -- see json_text.h.
#include "runtime/json_text.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

void text_json(Text *t, const char *s) {
  text_add(t, "\"", 1);
  for (const unsigned char *p = (const unsigned char *)s; *p;) {
    size_t n = utf8_length(p, SIZE_MAX);
    if (!n) text_puts(t, "\\ufffd"), n = 1;
    else if (*p == '"' || *p == '\\') text_printf(t, "\\%c", *p);
    else if (*p == '\n') text_puts(t, "\\n");
    else if (*p == '\t') text_puts(t, "\\t");
    else if (*p < 0x20 || *p == 0x7f) text_printf(t, "\\u%04x", *p);
    else text_add(t, (const char *)p, n);
    p += n;
  }
  text_add(t, "\"", 1);
}

void text_json_number(Text *t, double v) {
  if (isfinite(v)) text_printf(t, "%.17g", v);
  else text_puts(t, "null");
}

static int nesting(const char *s, size_t n) {
  int depth = 0, most = 0;
  bool quoted = false;
  for (size_t i = 0; i < n; i++) {
    if (quoted && s[i] == '\\') i++;
    else if (s[i] == '"') quoted = !quoted;
    else if (!quoted && (s[i] == '{' || s[i] == '[')) depth++, most = MAX(most, depth);
    else if (!quoted && (s[i] == '}' || s[i] == ']')) depth--;
  }
  return most;
}

Status json_read(const char *what, const char *text, size_t n, int depth, struct json_t **object) {
  json_error_t e;
  *object = 0;
  if (!n || text[0] != '{') return fail(EXIT_INPUT, "%s: not a JSON object (the first byte must be '{')", what);
  if (nesting(text, n) > depth) return fail(EXIT_INPUT, "%s: JSON nested more than %d deep", what, depth);
  json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
  if (!j && json_error_code(&e) == json_error_out_of_memory)
    return fail(EXIT_UNAVAILABLE, "%s: no memory for its JSON%s", what, space_limit());
  if (!j) return fail(EXIT_INPUT, "%s: JSON, line %d, byte %d: %s", what, e.line, e.position, e.text);
  *object = j;
  return 0;
}
