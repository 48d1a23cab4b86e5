// cases.c -- compiles model texts that say in comments what must come out. The marked lines of a text:
//
//   # mtc -D a=1 --mesh tp=2     options (one line at most)
//   # pass reshard               the passes up to this one run, too
//   # in x = 1 2 3               the values of an input; then `# >` has a line for every output
//   # show dim set               `# >` has the lines of the module that begin with these words
//   # fn forward                 `# >` has this function
//   # !                          the messages
// See tests/marked.h.
#include "passes/pass.h"
#include "tests/lower/text.h"
#include "tests/marked.h"
#include <stdlib.h>
#include <string.h>

// What follows "# word " in the text, up to the line's end; 0 when there is no such line.
static const char *line_of(Arena *a, const char *text, const char *word) {
  const char *key = arena_printf(a, "\n# %s ", word);
  const char *at = strncmp(text, key + 1, strlen(key) - 1) ? strstr(text, key) : text - 1;
  return at ? arena_strndup(a, at + strlen(key), strcspn(at + strlen(key), "\n")) : 0;
}

static double *numbers(Arena *a, const char *s) {
  VEC(double) list = {0};
  char *end;
  for (double v; v = strtod(s, &end), end != s; s = end) vec_push(a, &list, v);
  if (strspn(s, " ") != strlen(s)) bug("no number: %s", s);
  return list.at;
}

static bool print_outputs(Text *to, Lowered *t, const char *text) {
  const Ast *in = t->program->model->ast->kid[0], *out = t->program->model->ast->kid[1];
  const double **values = NEW_N(t->arena, const double *, in->n + 1);
  for (uint32_t i = 0; i < in->n; i++) {
    const char *line = line_of(t->arena, text, arena_printf(t->arena, "in %s =", in->kid[i]->text));
    if (!line) bug("the input %s has no values", in->kid[i]->text);
    values[i] = numbers(t->arena, line);
  }
  for (uint32_t i = 0; i < out->n; i++) {
    int64_t n;
    double *v = output_values(t, out->kid[i]->text, values, &n);
    if (!v) return false;
    text_printf(to, "%s =", out->kid[i]->text);
    for (int64_t k = 0; k < n; k++) text_printf(to, " %.6g", v[k] == 0 ? 0 : v[k]);
    text_puts(to, "\n");
  }
  return true;
}

// the lines of the printed module that begin with one of these words, parted by blanks
static void print_lines(Text *to, const Module *m, const char *words) {
  Text all;
  text_init(&all, to->arena);
  ir_print(&all, m);
  for (const char *s = all.s, *next; *s; s = next) {
    next = strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s);
    size_t n = strcspn(s, " \n");
    for (const char *w = words; *w; w += strcspn(w, " "), w += strspn(w, " "))
      if (strcspn(w, " ") == n && !strncmp(w, s, n) && strncmp(s, "var scalar", 10))
        text_add(to, s, (size_t)(next - s));
  }
}

static bool print_asked(Text *to, Lowered *t, const char *text) {
  Module *m = t->module;
  const char *fn = line_of(t->arena, text, "fn"), *words = line_of(t->arena, text, "show");
  if (words) print_lines(to, m, words);
  if (fn) ir_print_fn(to, fn_find(m, intern(m->in, fn)));
  return !strstr(text, "# in ") || print_outputs(to, t, text);
}

static bool passes_of(Lowered *t, const char *text) {
  const char *pass = line_of(t->arena, text, "pass");
  return !pass || passes_run(t->module, pass_find(pass), (RunOptions){0});
}

static bool run(Marked *t) {
  Lowered l;
  lowered_init(&l, t->arena, t->name, line_of(t->arena, t->text, "mtc"));
  bool ok = !l.module || !passes_of(&l, t->text) || print_asked(&t->got, &l, t->text);
  t->said = l.said;
  return ok;
}

int main(int argc, char **argv) { return marked_main(argc, argv, run); }
