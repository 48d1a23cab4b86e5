// said.h -- messages in a text instead of on stderr, for tests.
#ifndef MT_TEST_SAID_H
#define MT_TEST_SAID_H
#include "runtime/diag.h"

// Makes a Diag whose messages go to said, which is empty.
static inline void diag_said(Diag *d, Arena *a, Text *said) {
  text_init(said, a);
  text_puts(said, "");
  diag_init(d, a);
  d->to = said;
}
#endif
