// errors.h -- the text of ERRORS.md: an entry for every message about a model text.
#ifndef MT_ERRORS_H
#define MT_ERRORS_H
#include <stddef.h>

extern const char errors_text[];            // closed by a 0
extern const size_t errors_size;            // without it
#endif
