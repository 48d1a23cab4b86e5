// examples.c -- the examples of ERRORS.md for dims, types, names and settings: each gives its message.
//
//   examples FILE     below `### MT02NN` and later, each ```mt example, completed to a whole text, says that
// code
//
// `body` examples stand in a block that has what the page promises (dims, x, tokens, …); other texts get the
// dims they lack and a model, which calls what they define.
#include "tests/lower/text.h"
#include <stdlib.h>
#include <string.h>

static const char *const dims[] = {"batch",     "seq = 4", "kseq = seq", "pos = 8",    "embed = 6",
                                   "heads = 2", "hd = 4",  "ff = 8",     "expert = 2", "gate = 2",
                                   "vocab = 5", "qkv = 3", "two = 2",    "half = 3"};

static const char *const block =
  "block Example(x: [batch, seq, embed], tokens: i32[batch, seq], mask: bool[batch, seq], valid: bool[batch, "
  "kseq], causal: bool[seq, kseq], a: [batch, seq, heads, hd],\n"
  "              doc: [batch, seq], qkvs: [batch, qkv], freq: [seq], p: [batch, expert], by_head: [batch, "
  "heads, embed]) -> [*] {\n"
  "  param wpe_: [pos, embed] ~ zeros\n  param wo_: [heads, hd, embed] ~ zeros\n  param wte_: [vocab, embed] "
  "~ zeros\n  param g_: [embed] ~ ones\n"
  "  wpe = wpe_; wo = wo_; wte = wte_; g = g_; q = a; k = a; v = a; y = x\n%s\n  return x\n}\n";
static const char *const model =
  "model Examples(x: [batch, seq, embed], tokens: i32[batch, seq], mask: bool[batch, seq], valid: "
  "bool[batch, kseq], causal: bool[seq, kseq], a: [batch, seq, heads, hd],\n"
  "               doc: [batch, seq], qkvs: [batch, qkv], freq: [seq], p: [batch, expert], by_head: [batch, "
  "heads, embed], e: [embed]) -> (loss: f32[]) {\n"
  "  %s\n  loss = mean[batch](doc_mean(doc))\n}\nfn doc_mean(x: [*, seq]) -> [*] { return mean[seq](x) }\n";
static const char *const body_call =
  "z = Example(x, tokens, mask, valid, causal, a, doc, qkvs, freq, p, by_head) as ex";

static const struct { const char *code, *call;
} calls[] = {  // what a text defines is used so
  {"MT0208", "z = Layer(x) as l"}, {"MT0209", "z = halves[hd](a)"}, {"MT0214", "z = square(x)"},
  {"MT0223", "z = f(x)"},          {"MT0227", "z = f(x)"},          {"MT0244", "z = scale[embed](x)"},
  {"MT0251", "z = f(x)"}};

// Found by passes behind lowering, with a mesh or a file.
static const char *const later[] = {"MT0228", "MT0311", "MT0312", "MT0316",
                                    "MT0317", "MT0336", "MT0337"};

static const char *completed(Arena *a, const char *example, bool body, const char *code) {
  Text t;
  text_init(&t, a);
  const char *call = body ? body_call : "z = 0";
  for (size_t i = 0; i < COUNT(calls) && !body; i++)
    if (!strcmp(calls[i].code, code)) call = calls[i].call;
  for (size_t i = 0; i < COUNT(dims); i++) {
    const char *name = arena_printf(a, "dim %.*s", (int)strcspn(dims[i], " "), dims[i]);
    if (body || !strstr(example, name)) text_printf(&t, "dim %s\n", dims[i]);
  }
  if (body) text_printf(&t, "config { layers = 2 }\n");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  if (body) text_printf(&t, block, example);
  else text_puts(&t, example);
  if (!strstr(example, "model ") && strcmp(code, "MT0343")) text_printf(&t, model, call);
#pragma GCC diagnostic pop
  return t.s;
}

static bool check(const char *path, int line, const char *example, bool body, const char *code) {
  for (size_t i = 0; i < COUNT(later); i++)
    if (!strcmp(later[i], code)) return true;
  Arena *a = arena_create();
  Lowered t;
  const char *text = completed(a, example, body, code);
  lowered_text(&t, a, text, strlen(text), 0);
  bool ok = strstr(t.said.s, arena_printf(a, "error %s", code)) != 0;
  if (!ok) printf("%s:%d: an example wants %s, got\n%s", path, line, code, t.said.s);
  arena_destroy(a);
  return ok;
}

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

int main(int argc, char **argv) {
  Arena *a = arena_create();
  char *text, code[8] = "";
  size_t n;
  bool inside = false, body = false, ok = true;
  int line = 0, examples = 0;
  Text example;
  if (argc != 2 || file_read(a, argv[1], 1 << 24, &text, &n)) return 66;
  for (const char *s = text, *next; *s; s = next) {
    next = strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s);
    line++;
    if (!inside && starts(s, "### MT")) snprintf(code, sizeof code, "%.6s", s + 4);
    else if (!inside && starts(s, "```mt")) {
      inside = true, body = starts(s, "```mt body");
      text_init(&example, a), text_puts(&example, "");
    } else if (inside && starts(s, "```")) {
      inside = false;
      if (strcmp(code, "MT02") >= 0) examples++, ok &= check(argv[1], line, example.s, body, code);
    } else if (inside) text_add(&example, s, (size_t)(next - s));
  }
  if (examples < 60) printf("%d examples\n", examples), ok = false;
  arena_destroy(a);
  return !ok;
}
