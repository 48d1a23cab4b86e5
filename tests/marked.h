// marked.h -- a program that runs texts which say in comments what must come out: `# !` lines are the messages, `# >`
// lines the rest.
#ifndef MT_TEST_MARKED_H
#define MT_TEST_MARKED_H
#include "runtime/base.h"

typedef struct {
  Arena *arena;
  const char *name, *text, *plain;        // of a file in the current folder; plain: without the marked lines
  size_t n;                               // bytes of text
  const char *want_said, *want;           // the marked lines, without their marks
  Text said, got;                         // what came out
} Marked;

// The main of such a program. `run` makes said and got of the text; it may change what is wanted. false: it has said
// what else is wrong.
//
//   FILE…            compares
//   --update FILE…   writes what came out into the files where it differs, for a person to read
int marked_main(int argc, char **argv, bool (*run)(Marked *t));
#endif
