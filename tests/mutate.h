// mutate.h -- broken texts from whole ones, and a program that runs something on many: for fuzzers.
#ifndef MT_TEST_MUTATE_H
#define MT_TEST_MUTATE_H
#include "runtime/base.h"

typedef struct { char *s; size_t n; } Bytes;

// Replaces b[from, to) by n bytes of s.
void bytes_splice(Arena *a, Bytes *b, size_t from, size_t to, const char *s, size_t n);

// What is wrong with messages, or 0: there is no control byte in them but line ends and, where tabs may be, tabs.
const char *said_wrong(const char *said, size_t n, bool tabs);

// Runs N seeds, from FIRST on, each in an arena of its own. `run` says what is wrong, or 0; that is printed. The number
// of those that failed. One that dies, leaves the program or takes more than 20 s is told by its seed on stderr.
typedef const char *(*FuzzRun)(Arena *a, uint64_t seed, void *more);
uint64_t fuzz_seeds(uint64_t n, uint64_t first, FuzzRun run, void *more);

// main of a fuzzer of texts: N FIRST_SEED FILE…: runs `check` on N mutations of the files, 50 times as many where the
// environment has MT_LONG=1. Of a file bits, bytes, lines, words of the language and pieces of other files are changed.
typedef const char *(*FuzzCheck)(Arena *a, const char *text, size_t n);
int fuzz(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check);
// The same, but in three of four runs only names and numbers are exchanged for others of the files.
int fuzz_words(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check);
#endif
