// prelude.h -- the text of prelude.mt: the parts of models, written in the language itself.
#ifndef MT_PRELUDE_H
#define MT_PRELUDE_H
#include <stddef.h>

extern const char prelude_text[];           // closed by a 0
extern const size_t prelude_size;           // without it
#endif
