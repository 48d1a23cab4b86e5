// robust.c -- texts no person writes: a message or a tree, soon, never a crash.
#include "check.h"
#include "tests/said.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEGA = 1000000, MIB = 1 << 20, SECONDS = 20 };    // of processor time, with sanitizers on a slow machine

// A text is `before`, then `unit` n times, then `after`.
typedef struct { const char *name, *before, *unit; size_t n; const char *after, *code; } Big;    // code 0: no error
static const Big big[] = {
  {"identifier",          "config { ", "a", MIB, " = 1 }", 0},
  {"dim identifier",      "dim ", "é", MIB, "", "MT0001"},
  {"number name",         "dim 2", "d", MIB, "", "MT0003"},
  {"digits",              "config { a = ", "9", MEGA, " }", "MT0006"},
  {"fraction digits",     "config { a = 0.", "3", MEGA, " }", 0},
  {"tiny",                "config { a = 0.", "0", MEGA, "1 }", "MT0006"},
  {"exponent digits",     "config { a = 1e", "9", MEGA, " }", "MT0006"},
  {"open string",         "config { a = \"", "s", MEGA, "\n}", "MT0002"},
  {"long string",         "config { a = \"", "s", MEGA, "\" }", 0},
  {"long comment",        "# ", "c", MEGA, "\ndim a", 0},
  {"comments",            "", "# c\n", MEGA, "dim a", 0},
  {"blank",               "dim a", " ", MEGA, "= 3", 0},
  {"lines",               "dim a", "\n", MEGA, "= 3", 0},
  {"carriage returns",    "dim a", "\r", MEGA, "", "MT0008"},
  {"at and blanks",       "dim a = b", "@                              ", MEGA / 10, "b", "MT0100"},
  {"dotted name",         "preset p { a", ".a", MEGA, " = 1 }", 0},
  {"broken dotted name",  "preset p { a", ". a", MEGA, " = 1 }", "MT0001"},
  {"names",               "fn f() -> [] { a", ", a", MEGA / 2, " = 1 }", 0},
  {"arguments",           "dim a = f(1", ", 1", MEGA / 2, ")", 0},
  {"statements",          "fn f(x: [*]) -> [*] {\n", "x = gelu(x + 1)\n", 100000, "return x }", 0},
  {"items",               "", "dim a = 3\n", MEGA / 2, "", 0},
  {"empty statements",    "", ";", MEGA, "", 0},
  {"sum",                 "dim a = 1", " + 1", MEGA, "", "MT0109"},
  {"minus",               "dim a = ", "- ", MEGA, "1", "MT0109"},
  {"not",                 "dim a = ", "not ", MEGA, "true", "MT0109"},
  {"powers",              "dim a = 2", " ^ 2", MEGA, "", "MT0109"},
  {"products",            "dim a = x", " @[d] x", MEGA / 2, "", "MT0109"},
  {"parentheses",         "dim a = ", "(", MEGA, "", "MT0109"},
  {"parentheses, closed", "dim a = ", "(", 3000, "1", "MT0102"},
  {"closing parentheses", "dim a = 1", ")", MEGA, "", "MT0107"},
  {"closing braces",      "", "}", MEGA, "", "MT0107"},
  {"calls",               "dim a = ", "f(", MEGA, "", "MT0109"},
  {"few calls",           "dim a = ", "f(", 600, "1", "MT0102"},
  {"named calls",         "dim a = ", "f[a -> b](1, k = 2 + ", MEGA / 10, "", "MT0109"},
  {"conversions",         "dim a = ", "f32(", MEGA, "", "MT0109"},
  {"brackets",            "fn f(x: ", "[", MEGA, "", "MT0100"},
  {"braces",              "", "{", MEGA, "", "MT0108"},
  {"braces in a body",    "fn f(x: [*]) -> [*] ", "{", MEGA, "", "MT0100"},
  {"ifs",                 "fn f(x: [*]) -> [*] {", "if true { ", MEGA / 2, "", "MT0109"},
  {"else ifs",            "fn f(x: [*]) -> [*] { if true { }", " else if true { }", MEGA / 2, "\n return x }", "MT0109"},
  {"repeats",             "fn f(x: [*]) -> [*] {", "repeat 2 as i { ", MEGA / 2, "", "MT0109"},
  {"ats",                 "", "@", MEGA, "", "MT0108"},
  {"at lines",            "", "@\n", MEGA, "", "MT0108"},
  {"wrong characters",    "", "$\n", MEGA, "", "MT0001"},
  {"quotes",              "", "\"\n", MEGA, "", "MT0002"},
  {"wrong statements",    "fn f(x: [*]) -> [*] {\n", "x = = 1\n", MEGA / 2, "return x }", "MT0100"},
  {"wrong items",         "", "dim = 1\n", MEGA / 2, "", "MT0100"},
  {"wrong headers",       "", "fn f(\n", MEGA / 2, "", "MT0102"},
  {"lost braces",         "", "fn f() -> [] {\n", MEGA / 4, "", "MT0101"},
  {"imports",             "", "import \"a.mt\"\n", MEGA / 2, "", 0},
};

static const char *run(Arena *a, const char *text, size_t n, const char *code) {
  Diag d;
  Text said;
  diag_said(&d, a, &said);
  clock_t start = clock();
  uint16_t source = diag_source(&d, "t", text, n);
  Ast *root = parse(a, intern_create(a), &d, source);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (getenv("TIMES")) printf("%6.2f s ", seconds);
  if (seconds > SECONDS) return arena_printf(a, "%.1f s", seconds);
  const char *why = tree_check(a, root, source, d.errors > 0);
  if (why) return why;
  if (!code && d.errors) return said.s;
  if (code && !strstr(said.s, code)) return arena_printf(a, "%u errors, no %s\n%s", d.errors, code, said.s);
  if (said.n > 16000) return arena_printf(a, "%zu bytes of messages", said.n);
  Text printed;
  text_init(&printed, a);
  ast_print(&printed, root);
  return 0;
}

static const char *run_big(Arena *a, const Big *b) {
  size_t k = strlen(b->unit);
  Text t;
  text_init(&t, a);
  text_puts(&t, b->before);
  char *units = arena_alloc(a, k * b->n + 1);
  for (size_t i = 0; i < b->n; i++) memcpy(units + i * k, b->unit, k);
  text_add(&t, units, k * b->n);
  text_puts(&t, b->after);
  return run(a, t.s, t.n, b->code);
}

// Random bytes, then random printable ones: a mebibyte of each.
static const char *run_random(Arena *a, bool printable) {
  char *s = arena_alloc(a, MIB);
  uint64_t x = 1;
  for (size_t i = 0; i < MIB; i++) {
    x = hash_mix(x, i);
    s[i] = printable ? (char)(x % 97 == 96 ? '\n' : 32 + x % 97 % 95) : (char)x;
  }
  return run(a, s, MIB, "error MT0");
}

int main(void) {
  bool ok = true;
  for (size_t i = 0; i < COUNT(big) + 2; i++) {
    Arena *a = arena_create();
    const char *name = i < COUNT(big) ? big[i].name : "random bytes";
    const char *why = i < COUNT(big) ? run_big(a, &big[i]) : run_random(a, i > COUNT(big));
    if (getenv("TIMES")) printf("%s\n", name);
    if (why) printf("%s: %s\n", name, why), ok = false;
    arena_destroy(a);
  }
  return !ok;
}
