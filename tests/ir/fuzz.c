// fuzz.c -- reads mutated IR texts: what is a module prints to a text that reads back to the same bytes, and draws.
//
//   fuzz N FIRST_SEED FILE…     N runs on mutations of the files
#include "compiler/ir.h"
#include "tests/mutate.h"
#include "tests/said.h"
#include <string.h>

static const char *const words[] = {
#define OP(name, in, out, flags, attrs, shape, vjp, split, kernel) #name,
#include "compiler/ops.def"
#undef OP
  "mesh", "map", "weak", "dim", "size", "of", "zigzag", "part", "sample", "ragged", "set", "output", "coef", "per_step", "var", "decay", "stored", "partial", "fn", "body",
  "in", "layer", "fwd", "over = tp", "at = 1", "by = -1", "fill = inf", "reverse = 1", "path = \"p\"", "eps = nan", "param", "scalar", "grad", "normal(1)",
  "(", ")", "[", "]", "{", "}", "=", "->", "|", "|tp", "|dp", ",", ":", ";", " sum(tp)", " max(dp)", "\n", "#", "\"", "\"\\x01\\n\"", "%1", "%2", "%99999999999", "@w",
  "@$step", "@\"{x}\"", "0", "1", "-1", "9223372036854775807", "1e999", "0.5", "5x", "t.mt:1:2-3:4", "t.mt:99999999999:1", "f32[]", "i32[seq]", "bool", "$", "é", "\r\n", "\t",
};

static const char *text_of(Arena *a, const Module *m) {
  Text t;
  text_init(&t, a);
  ir_print(&t, m);
  return t.s;
}

static const char *check(Arena *a, const char *text, size_t n) {
  Diag d;
  Text said, picture;
  diag_said(&d, a, &said);
  text_init(&picture, a);
  Intern *in = intern_create(a);
  Module *m = ir_parse(a, in, &d, diag_source(&d, "t", text, n));
  if (!m != (d.errors > 0) || !m != (said.n > 0)) return arena_printf(a, "%s, %u errors, %zu bytes of messages", m ? "a module" : "no module", d.errors, said.n);
  const char *wrong = said_wrong(said.s, said.n, false);
  if (wrong) return wrong;
  if (!m) return 0;
  const char *s = text_of(a, m);
  Module *again = ir_parse(a, in, &d, diag_source(&d, "again", s, strlen(s)));
  if (!again) return arena_printf(a, "what was printed is not read:\n%s%s", s, said.s);
  if (strcmp(text_of(a, again), s)) return arena_printf(a, "what was printed is read otherwise:\n%s---\n%s", s, text_of(a, again));
  ir_dot_print(&picture, m, (DotOptions){.layer = -1});
  return 0;
}

int main(int argc, char **argv) { return fuzz(argc, argv, words, COUNT(words), check); }
