// tokenize.h -- text to tokens and back. The byte tokenizer: a byte is its own id, 256 ends a document.
#ifndef MT_TOKENIZE_H
#define MT_TOKENIZE_H
#include "runtime/dtype.h"

enum { BYTE_END = 256, BYTE_VOCAB = 257 };
#define BYTE_DTYPE DT_u16
void   bytes_to_tokens(const char *text, size_t n, int32_t *tokens);
size_t tokens_to_bytes(const int32_t *tokens, size_t n, char *text);          // ids that are no bytes are left out
#endif
