// kernel_source.h -- the text of runtime/kernel_math.h and runtime/philox.h, which opens every generated C file.
#ifndef MT_KERNEL_SOURCE_H
#define MT_KERNEL_SOURCE_H
#include <stddef.h>

extern const char kernel_math_text[], philox_text[];       // closed by a 0
extern const size_t kernel_math_size, philox_size;         // without it
#endif
