// kernel_source.h -- the text of runtime/kernel_math.h and runtime/philox.h, which opens every generated C file, and that of
// runtime/kernel_attention_parts.h and runtime/kernel_attention.h, which follow where attention is computed.
#ifndef MT_KERNEL_SOURCE_H
#define MT_KERNEL_SOURCE_H
#include <stddef.h>

// closed by a 0; sizes are without it
extern const char kernel_math_text[], philox_text[], kernel_attention_parts_text[], kernel_attention_text[];
extern const size_t kernel_math_size, philox_size, kernel_attention_parts_size, kernel_attention_size;
#endif
