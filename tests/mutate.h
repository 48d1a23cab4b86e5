// mutate.h -- broken texts from whole ones, and a program that runs something on many: for fuzzers.
#ifndef MT_TEST_MUTATE_H
#define MT_TEST_MUTATE_H
#include "runtime/base.h"

typedef struct { char *s; size_t n; } Bytes;

// A file of the corpus after 1 to 6 edits: bits, bytes, words of the language, lines, pieces of other files.
Bytes mutate(Arena *a, uint64_t seed, const Bytes *corpus, size_t files, const char *const *words, size_t n);

// A file of the corpus with 1 to 4 of its words (names, numbers) exchanged for other words of the corpus: most are still texts of
// the language, with other mistakes.
Bytes mutate_words(Arena *a, uint64_t seed, const Bytes *corpus, size_t files);

// main of a fuzzer: N FIRST_SEED FILE…: runs `check` on N mutations of the files, 50 times as many where the
// environment has MT_LONG. check says what is wrong, or 0; a run that dies or takes more than 20 s is told by its seed.
typedef const char *(*FuzzCheck)(Arena *a, const char *text, size_t n);
int fuzz(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check);
int fuzz_words(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check);   // three of four runs on mutate_words
#endif
