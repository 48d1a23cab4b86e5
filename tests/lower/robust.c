// robust.c -- model texts no person writes, through sema and lowering: a message or a module, soon, in
// bounded memory.
#include "tests/lower/text.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MEGA = 1 << 20, LAKH = 100000, SECONDS = 20 };  // of processor time, with sanitizers on a slow machine

// A text is `before`, then `unit` n times, then `after`. A '$' in the unit is its number.
// code 0: no error
typedef struct { const char *name, *before, *unit; size_t n; const char *after, *code, *options; } Big;

#define MODEL "dim batch\nmodel M(x: [batch]) -> (loss: f32[]) {\n"
#define END "\n  loss = mean[batch](x)\n}\n"
#define SMALL "dim batch\nmodel M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }\n"
static const Big big[] = {
  {"statements", MODEL, "x = x + 1\n", LAKH, END, 0, 0},
  {"calls", MODEL, "x = gelu(x + 1)\n", LAKH / 10, END, 0, 0},
  {"numbers", MODEL "n = 1\n", "n = n + 1\n", LAKH, END, 0, 0},
  {"names", MODEL, "a$ = x\n", LAKH, END, 0, 0},
  {"too many statements", MODEL, "x = x + 1\n", 4 * LAKH, END, "MT0254", 0},
  {"repeats of nothing", MODEL, "repeat 1000000000 as i { repeat 1000000000 as j { } }\n", 1, END, "MT0254",
   0},
  {"repeats", MODEL, "repeat 1000000000 as i { x = x * 2 }\n", 1, END, "MT0254", 0},
  {"names and repeats", MODEL, "a$ = x\n", LAKH / 2, "repeat 100000 as i { x = x * 2 }\n" END, 0, 0},
  {"names in repeats", MODEL, "repeat 1000 as i { repeat 1000 as j { a$ = j; b$ = i } }\n", 1, END, "MT0254",
   0},
  {"carried names", MODEL "repeat 3 as i {\n", "x = x + $\n", LAKH / 4, "}\n" END, 0, 0},
  {"blocks", "", "block B$[d](x: [*, d]) -> [*, d] { return x }\n", LAKH, SMALL, 0, 0},
  {"calls of blocks", MODEL, "x = LayerNorm[batch](x) as \"a.$\"\n", 1, END, "MT0265", 0},
  {"parameters", MODEL, "param a$: [] ~ ones\n", LAKH, END, 0, 0},
  {"parameters of blocks",
   "dim d = 2\nblock B(x: [*]) -> [*] { param w: [d] ~ ones; return x + sum[d](w) }\n" MODEL,
   "x = B(x) as b$\n", LAKH / 4, END, 0, 0},
  {"tensors", "dim e = 1000000\n" MODEL, "param a$ as \"a$.{e}\": [e] ~ ones\n", 100, END, "MT0269", 0},
  {"deep calls", "fn g_0(x: [*]) -> [*] { return x }\n", "fn g_$.(x: [*]) -> [*] { return g_$(x) }\n", 3000,
   MODEL "x = g_3000(x)\n" END, "MT0229", 0},
  {"recursion", "", "fn g_$.(x: [*]) -> [*] { return g_$(x) }\n", 100,
   "fn g_0(x: [*]) -> [*] { return g_100(x) }\n" MODEL "x = g_100(x)\n" END, "MT0227", 0},
  {"deep expressions", "fn g_0(x: [*]) -> [*] { return x }\n",
   "fn g_$.(x: [*]) -> [*] { return -(((((((-(((((x+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+g_$(x)) }\n", 1000,
   MODEL "x = g_1000(x)\n" END, "MT0229", 0},
  {"fans", "fn g_0(x: [*]) -> [*] { return x + 1 }\n", "fn g_$.(x: [*]) -> [*] { return g_$(x) * g_$(x) }\n",
   60, MODEL "x = g_60(x)\n" END, "MT0254", 0},
  {"bodies", "dim d = 4\nmodel M(x: [d]) -> (loss: f32[]) {\nrepeat 10000 as i {\n",
   "x = softmax[d](x * i)\nx = rmsnorm[d](x, x, eps = i)\n", 1, "}\nloss = mean[d](x)\n}\n", 0, 0},
  {"bodies that draw",
   "dim s = 4\ndim t = s\ndim d = 2\nmodel M(x: [s, d]) -> (loss: f32[]) {\nk = rename[s -> t](x)\nrepeat "
   "1000000 as i {\n",
   "x = attention[s, t, d](x, k, k, dropout = 0.1)\n", 1, "}\nloss = mean[s, d](x)\n}\n", "MT0254", 0},
  {"local dims",
   "dim d = 4\nfn f(x: [*], n) -> [*] { dim k = n + 1; return x + sum[k](expand[k](x)) }\n" MODEL
   "repeat 10000 as i {\n",
   "x = f(x, i)\n", 1, "}\n" END, 0, 0},
  {"unstack", "dim u = 1000000000\nmodel M(x: [u]) -> (loss: f32[]) {\na = unstack[u](x)\n", "", 0,
   "loss = 0.0\n}\n", "MT0234", 0},
  {"stack", "dim u = 70001\n" MODEL "a = stack[u](x", ", x", 70000, ")\n" END, "MT0234", 0},
  {"arguments", MODEL "a = gelu(x", ", x", LAKH, ")\n" END, "MT0242", 0},
  {"labels", "fn f(x: [*]", ", a$ = 1", LAKH / 4, ") -> [*] { return x }\n" MODEL "x = f(x, a = 3)\n" END,
   "MT0242", 0},
  {"labelled arguments", MODEL "a = sum[batch](x", ", a$ = 1", LAKH, ")\n" END, "MT0242", 0},
  {"dims in brackets", MODEL "a = sum[batch", ", b$", LAKH, "](x)\n" END, "MT0220", 0},
  {"dims of a type", "dim batch\nmodel M(x: [batch", ", b$", LAKH,
   "]) -> (loss: f32[]) { loss = mean[batch](x) }\n", "MT0220", 0},
  {"pads",
   "dim a = 5 pad 1099511627776\ndim b = 1099511627776 pad 1099511627775\ndim c = a pad 4398046511104\n", "",
   0, SMALL, 0, 0},
  {"padded values",
   "dim a = 5 pad 1099511627776\ndim b = 5 pad 1099511627776\nmodel M(x: [a]) -> (loss: f32[]) { y = "
   "expand[b](x); loss = sum[a, b](y) }\n",
   "", 0, "", "MT0306", 0},
  {"sizes",
   "dim a = 2147483648\ndim b = 2147483648\nmodel M(x: bool[a]) -> (loss: f32[]) { loss = sum[a, "
   "b](expand[b](float(x))) }\n",
   "", 0, "", "MT0306", 0},
  {"large samples", SMALL, "", 0, "train { micro_batch = 1099511627776; global_batch = 1099511627776 }\n", 0,
   0},
  {"overflow", "config { a = 2 ^ 4000 - 2 ^ 4000 }\ndim n = a\n", "", 0, SMALL, "MT0305", 0},
  {"dims", "", "dim d$ = 3\n", LAKH, SMALL, 0, 0},
  {"dims in a chain", "dim c_0 = 3\n", "dim c_$. = c_$\n", LAKH, SMALL, 0, 0},
  {"dims in a chain back", "dim c_0 = c_1\n", "dim c_$. = c_$..\n", LAKH, "dim c_100001 = 2\n" SMALL,
   "MT0309", 0},
  {"configs", "config {\n", "c$ = 3\n", LAKH, "}\n" SMALL, 0, 0},
  {"configs in a chain", "config {\nc_0 = c_1\n", "c_$. = c_$..\n", LAKH, "}\n" SMALL, "MT0309", 0},
  {"configs of no name", "config { a = 1 }\npreset p {\n", "c$ = 3\n", LAKH, "}\n" SMALL, "MT0301",
   "--preset p"},
  {"settings of no name", "train {\n", "c$ = 3\n", LAKH, "}\n" SMALL, "MT0330", 0},
  {"setting's arguments", "train { optimizer = adamw(lr = 1", ", a$ = 1", LAKH, ") }\n" SMALL, "MT0333", 0},
  {"patterns", "train { no_decay = \"a\"", ", \"*a*b*c*d*e*f*g*h*i*j*k*$\"", LAKH, " }\n" SMALL, "MT0331", 0},
  {"pattern", "train { no_decay = \"", "*a", LAKH,
   "\" }\n" MODEL "param w as aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: [] ~ ones\n" END,
   "MT0321", 0},
  {"presets", "", "preset p$ { }\n", LAKH, SMALL, 0, 0},
  {"rules", "", "dim d$ = 3\n", LAKH / 2, "parallel {\nmap d0 -> tp\n}\n" SMALL, 0, 0},
  {"rules of no dim", "parallel {\n", "map d$ -> tp\n", LAKH, "}\n" SMALL, "MT0220", 0},
  {"rules dropped", "dim a = 2\nparallel {\n map a -> tp\n", "map a$ -> tp\n", 1000, "}\n" SMALL, "MT0220",
   "--no-map a"},
  {"inputs", "dim batch\nmodel M(x: [batch]", ", x$: [batch]", LAKH,
   ") -> (loss: f32[]) { loss = mean[batch](x) }\n", 0, 0},
  {"outputs", "dim batch\nmodel M(x: [batch]) -> (loss: f32[]", ", y$: f32[]", LAKH / 4,
   ") { loss = mean[batch](x) }\n", "MT0252", 0},
  {"stepmeans", MODEL, "a$ = stepmean[batch](x)\n", LAKH / 10, END, 0, 0},
  {"keeps", "precision { keep f32: gelu", ", gelu", LAKH, " }\n" SMALL, 0, 0},
  {"keeps of no function", "precision { keep f32: gelu", ", g$", LAKH, " }\n" SMALL, "MT0320", 0},
  {"models", "", "model M$(x: []) -> (loss: f32[]) { loss = x }\n", LAKH, "", "MT0343", 0},
  {"functions twice", "", "fn f(x: [*]) -> [*] { return x }\n", LAKH, SMALL, "MT0224", 0},
  {"wrong calls", MODEL, "y$ = nothing(x)\n", LAKH, END, "MT0222", 0},
  {"wrong names", MODEL, "y$ = nothing$ + 1\n", LAKH, END, "MT0221", 0},
  {"long value", MODEL "y = ", "v", MEGA, "\n" END, "MT0221", 0},
  {"long function", MODEL "y = ", "f", MEGA, "(x)\n" END, "MT0222", 0},
  {"long dim", MODEL "y = index(", "d", MEGA, ")\n" END, "MT0220", 0},
  {"long type", "dim batch\nmodel M(x: [batch, ", "d", MEGA, "]) -> (loss: f32[]) { loss = 0.0 }\n", "MT0220",
   0},
  {"long parameter", MODEL "param ", "p", MEGA, ": [] ~ ones\n" END, "MT0269", 0},
  {"long path", MODEL "param p as \"", "p", MEGA, "\": [] ~ ones\n" END, "MT0269", 0},
  {"long index", MODEL "repeat 2 as ", "i", MEGA, " { y = 1 }\n" END, 0, 0},
  {"long label", MODEL "y = gelu(x, ", "l", MEGA, " = x)\n" END, "MT0242", 0},
  {"long string", MODEL "y = \"", "s", MEGA, "\" + 1\n" END, "MT0247", 0},
  {"long init", MODEL "param p: [] ~ ", "n", MEGA, "\n" END, "MT0264", 0},
  {"long local dim", MODEL "  dim ", "d", MEGA, " = 0.5\n" END, "MT0305", 0},
  {"long config", "config { ", "c", MEGA, " = true + 1 }\n" SMALL, "MT0247", 0},
  {"long setting", "train { ", "s", MEGA, " = 1 }\n" SMALL, "MT0330", 0},
  {"long word", "train { optimizer = ", "o", MEGA, " }\n" SMALL, "MT0332", 0},
  {"long pattern", "train { no_decay = \"", "p", MEGA, "\" }\n" SMALL, "MT0321", 0},
  {"long axis", "parallel { mesh ", "a", MEGA, " = 2 }\n" SMALL, "MT0310", 0},
  {"long keep", "precision { keep f32: ", "k", MEGA, " }\n" SMALL, "MT0320", 0},
  {"long output", "dim batch\nmodel M(x: [batch]) -> (", "o", MEGA, ": f32[]) { }\n", "MT0252", 0},
  {"long model", "dim batch\nmodel ", "M", MEGA, "(x: [batch]) -> (loss: f32[]) { y = x }\n", "MT0252", 0},
  {"long names that are right", "dim ", "d", MEGA, " = 3\n" SMALL, 0, 0},
  {"long import", "import \"", "i", MEGA, "\"\n" SMALL, "MT0341", 0},
};

// $ is the number, $. the next, $.. the one after that
static void unit_add(Text *t, const char *unit, size_t number) {
  for (const char *c = unit; *c; c++) {
    if (*c != '$') { text_add(t, c, 1); continue; }
    size_t dots = strspn(c + 1, ".");
    text_printf(t, "%zu", number + dots);
    c += dots;
  }
}

static const char *run(Arena *a, const Text *text, const char *code, const char *options) {
  Lowered t;
  clock_t start = clock();
  lowered_text(&t, a, text->s, text->n, options);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (getenv("TIMES")) printf("%6.2f s ", seconds);
  if (seconds > SECONDS) return arena_printf(a, "%.1f s", seconds);
  if (!code && t.diag.errors) return t.said.s;
  if (code && !strstr(t.said.s, code))
    return arena_printf(a, "%u errors, no %s\n%s", t.diag.errors, code, t.said.s);
  if (!code != !!t.module) return "a module beside errors";
  if (t.said.n > 100000) return arena_printf(a, "%zu bytes of messages", t.said.n);
  return 0;
}

static const char *run_big(Arena *a, const Big *b) {
  Text t;
  text_init(&t, a);
  text_puts(&t, b->before);
  for (size_t i = 0; i < b->n; i++) unit_add(&t, b->unit, i);
  text_puts(&t, b->after);
  return run(a, &t, b->code, b->options);
}

// A chain of files, each importing the next; the last imports the first, or there are too many.
static const char *run_imports(Arena *a, int files, const char *code) {
  char folder[] = "/tmp/imports.XXXXXX";
  if (!mkdtemp(folder)) bug("mkdtemp");
  for (int i = 0; i < files; i++) {
    const char *text = arena_printf(a, "import \"%d.mt\"\nfn g%d(x: [*]) -> [*] { return x }\n%s",
                                    (i + 1) % files, i, i ? "" : SMALL);
    if (file_write(arena_printf(a, "%s/%d.mt", folder, i), text, strlen(text))) bug("file_write");
  }
  Lowered t;
  lowered_init(&t, a, arena_printf(a, "%s/0.mt", folder), 0);
  for (int i = 0; i < files; i++) unlink(arena_printf(a, "%s/%d.mt", folder, i));
  rmdir(folder);
  bool said = code && strstr(t.said.s, code);
  return code ? (said ? 0 : t.said.s) : t.module ? 0 : t.said.s;
}

static bool report(const char *name, const char *why) {
  if (getenv("TIMES")) printf("%s\n", name);
  if (why) printf("%s: %.2000s\n", name, why);
  return !why;
}

int main(int argc, char **argv) {  // the names of the texts to run; all when there is none
  bool ok = true;
  for (size_t i = 0; i < COUNT(big); i++) {
    if (argc > 1 && strcmp(argv[1], big[i].name)) continue;
    Arena *a = arena_create();
    ok &= report(big[i].name, run_big(a, &big[i]));
    arena_destroy(a);
  }
  Arena *a = arena_create();
  ok &= report("imports in a circle", run_imports(a, 20, 0));
  ok &= report("imports in a chain", run_imports(a, 70, "MT0340"));
  ok &= report("an import of itself", run_imports(a, 1, 0));
  arena_destroy(a);
  return !ok;
}
