// json_text.h -- JSON as text: what we write is escaped here, what we read is checked here.
#ifndef MT_JSON_TEXT_H
#define MT_JSON_TEXT_H
#include "runtime/base.h"
struct json_t;                                                    // jansson's

void text_json(Text *t, const char *s);                           // quoted, escaped; what is no UTF-8 becomes U+FFFD
void text_json_number(Text *t, double v);                         // 17 significant digits; null when not finite

// Parses one whole object: nothing may follow it, keys are unique, nesting is at most depth. what names the text in
// messages (a path). json_decref the result.
Status json_read(const char *what, const char *text, size_t n, int depth, struct json_t **object);
#endif
