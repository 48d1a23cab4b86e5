// fuzz.c -- mutated model texts through sema, lowering and the passes: messages with codes or a module that
// is right.
//
//   fuzz N FIRST_SEED FILE…     N runs on mutations of the files; each has its own seed, printed when it
// fails
#include "passes/pass.h"
#include "tests/lower/text.h"
#include "tests/mutate.h"
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {
#define X(token, word, class, form) word,
#include "grammar/keywords.def"
#undef X
#define PRIM(name, from, to, least, most, labels, form, rule, op) #name,
#include "compiler/prims.def"
#undef PRIM
  "(",
  ")",
  "[",
  "]",
  "{",
  "}",
  "=",
  "->",
  "@",
  "@[",
  ",",
  ";",
  "~",
  "?",
  "*",
  "-",
  "^",
  "\n",
  "x",
  "1",
  "0.5",
  "1e9",
  "as \"h.{i}\"",
  "as a",
  "gelu(",
  "softmax[",
  "LayerNorm[",
  "Linear[",
  "attention[",
  "batch",
  "seq",
  "hd",
  "embed",
  "where = ",
  "training",
  "extent(seq)"};

// for texts with presets, as the models are, and for others
static const char *const of_models[] = {
  "--preset demo", "--preset demo -D layers=1", "--preset demo -D layers=1 --mesh cp=2,tp=2",
  "-D layers=1 --mesh dp=2,tp=2",
  "--preset demo -D layers=1 --set precision.compute=bf16 --map 'embed -> tp'"};
static const char *const of_others[] = {0,
                                        0,
                                        0,
                                        "--set precision.compute=bf16",
                                        "--set precision.compute=f64",
                                        "--set train.optimizer=sgd",
                                        "--set train.clip=1"};

static const char *check(Arena *a, const char *text, size_t n) {
  Lowered t;
  uint64_t pick = hash_bytes(text, n, 5);
  lowered_text(&t, a, text, n,
               strstr(text, "preset demo") ? of_models[pick % COUNT(of_models)]
                                           : of_others[pick % COUNT(of_others)]);
  if (!t.module != (t.diag.errors > 0 || t.status))
    return arena_printf(a, "%u errors, status %d, module %p\n%s", t.diag.errors, t.status, (void *)t.module,
                        t.said.s);
  if (t.diag.errors && !strstr(t.said.s, "error MT0")) return arena_printf(a, "no code: %s", t.said.s);
  if (t.said.n > 200000) return arena_printf(a, "%zu bytes of messages", t.said.n);
  if (t.module && !ir_verify(t.module, "lower")) return "the module is not right";
  if (getenv("OUTCOMES"))
    printf("%.60s\n", t.module                        ? "module"
                      : strstr(t.said.s, "error MT0") ? strstr(t.said.s, "error MT0")
                                                      : "other");
  uint32_t errors = t.diag.errors;
  if (t.module && !passes_run(t.module, PASS_none, (RunOptions){0}) && t.diag.errors == errors)
    return "passes fail without a message";
  return said_wrong(t.said.s, t.said.n, false);
}

int main(int argc, char **argv) { return fuzz_words(argc, argv, words, COUNT(words), check); }
