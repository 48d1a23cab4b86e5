// cases.c -- compiles model texts that say in comments what must come out. The marked lines of a text:
//
//   # mtc -D a=1 --mesh tp=2     options (one line at most)
//   # pass reshard               the passes up to this one run, too
//   # in x = 1 2 3               the values of an input; then `# >` has a line for every output
//   # show dim set               `# >` has the lines of the module that begin with these words
//   # fn forward                 `# >` has this function
//   # !                          the messages
//
//   cases FILE…            compares
//   cases --update FILE…   writes what came out into the files, for a person to read
#include "passes/pass.h"
#include "tests/lower/text.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *line_end(const char *s) { return strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s); }

static bool is_mark(const char *s) { return !strncmp(s, "# !", 3) || !strncmp(s, "# >", 3); }

// The lines that begin with "# " and the mark, without them; mark 0: those that begin with no mark.
static const char *lines_of(Arena *a, const char *s, char mark) {
  Text to;
  text_init(&to, a);
  text_puts(&to, "");
  for (const char *next; *s; s = next) {
    next = line_end(s);
    bool marked = is_mark(s);
    if (!mark && !marked) text_add(&to, s, (size_t)(next - s));
    if (mark && marked && s[2] == mark) s += 3 + (s[3] == ' '), text_add(&to, s, (size_t)(next - s));
  }
  return to.s;
}

static void mark_lines(Text *to, const char *s, char mark) {
  for (const char *next; *s; s = next) {
    next = line_end(s);
    text_printf(to, "# %c%s%.*s", mark, *s == '\n' ? "" : " ", (int)(next - s), s);
  }
}

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
    next = line_end(s);
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

static bool check(const char *path, bool update) {
  Arena *a = arena_create();
  char *text;
  size_t n;
  if (file_read(a, path, 1 << 24, &text, &n)) exit(1);
  const char *want_said = lines_of(a, text, '!'), *want = lines_of(a, text, '>'),
             *plain = lines_of(a, text, 0);
  Lowered t;
  Text got;
  text_init(&got, a);
  text_puts(&got, "");
  lowered_init(&t, a, path, line_of(a, text, "mtc"));
  bool ok = !t.module || !passes_of(&t, text) || print_asked(&got, &t, text);
  if (update) {
    Text fresh;
    text_init(&fresh, a);
    text_puts(&fresh, plain);
    mark_lines(&fresh, t.said.s, '!'), mark_lines(&fresh, got.s, '>');
    if (strcmp(fresh.s, text) && file_write(path, fresh.s, fresh.n)) exit(1);
  } else if (strcmp(t.said.s, want_said) || strcmp(got.s, want)) {
    printf("%s: wanted\n%s%sgot\n%s%s\n", path, want_said, want, t.said.s, got.s);
    ok = false;
  } else if (!*want_said && !*want) {
    printf("%s: expects nothing\n", path);
    ok = false;
  }
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  bool update = argc > 1 && !strcmp(argv[1], "--update"), ok = argc > 1 + update;
  for (int i = 1 + update; i < argc; i++) {  // each from its own folder: messages name the file only
    char *slash = strrchr(argv[i], '/');
    int here = open(".", O_RDONLY | O_DIRECTORY);
    if (slash) *slash = 0;
    if (slash && chdir(argv[i])) return perror(argv[i]), 66;
    ok &= check(slash ? slash + 1 : argv[i], update);
    if (fchdir(here)) return 74;
    close(here);
  }
  return !ok;
}
