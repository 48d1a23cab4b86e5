// tokenize.c -- see tokenize.h.
#include "runtime/tokenize.h"

void bytes_to_tokens(const char *text, size_t n, int32_t *tokens) {
  for (size_t i = 0; i < n; i++) tokens[i] = (unsigned char)text[i];
}

size_t tokens_to_bytes(const int32_t *tokens, size_t n, char *text) {
  size_t k = 0;
  for (size_t i = 0; i < n; i++)
    if (tokens[i] >= 0 && tokens[i] < BYTE_END) text[k++] = (char)tokens[i];
  return k;
}
