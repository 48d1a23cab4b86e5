// text.c -- see text.h.
#include "tests/lower/text.h"
#include "tests/said.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The options of a line, parted at blanks, '…' kept together.
static const char *option_word(Arena *a, const char **s) {
  while (**s == ' ') ++*s;
  if (!**s) return 0;
  Text t;
  text_init(&t, a);
  text_puts(&t, "");
  for (bool quoted = false; **s && (quoted || **s != ' '); ++*s) {
    if (**s == '\'') quoted = !quoted;
    else text_add(&t, *s, 1);
  }
  return t.s;
}

static OverrideKind kind_of(const char *word) {
  static const char *const words[] = {"-D", "--preset", "--set", "--mesh", "--map", "--no-map", "--parallel"};
  for (size_t i = 0; i < COUNT(words); i++)
    if (!strcmp(word, words[i])) return (OverrideKind)i;
  bug("no option '%s'", word);
}

void lowered_init(Lowered *t, Arena *a, const char *path, const char *options) {
  VEC(Override) say = {0};
  *t = (Lowered){.arena = a};
  const char *s = options ? options : "";
  for (const char *word; (word = option_word(a, &s));) {
    const char *value = option_word(a, &s);
    if (!value) bug("'%s' has no value", word);
    vec_push(a, &say, (Override){kind_of(word), value});
  }
  diag_said(&t->diag, a, &t->said);
  t->program = sema(a, intern_create(a), &t->diag, path, say.at, say.n, &t->status);
  t->module = t->program ? lower(t->program) : 0;
}

void lowered_text(Lowered *t, Arena *a, const char *text, size_t n, const char *options) {
  int fd = memfd_create("text", 0);
  if (fd < 0 || write(fd, text, n) != (ssize_t)n) bug("memfd_create");
  lowered_init(t, a, arena_printf(a, "/proc/self/fd/%d", fd), options);
  close(fd);
}

double *output_values(Lowered *t, const char *name, const double *const *in, int64_t *n) {
  Module *m = t->module;
  Arena *a = t->arena;
  for (int which = 0; which < 2; which++) {
    const Fn *f = fn_find(m, intern(m->in, which ? "logits" : "forward"));
    double **out = NEW_N(a, double *, f->ret.n + 1);
    const double **arg = NEW_N(a, const double *, f->arg.n + 1);
    uint32_t k = 0;
    while (k < f->ret.n && strcmp(f->ret_name.at[k], name)) k++;
    if (k == f->ret.n) continue;
    const Ast *formals = t->program->model->ast->kid[0];
    for (uint32_t i = 0; i < f->arg.n; i++)
      for (uint32_t j = 0; j < formals->n; j++)
        if (formals->kid[j]->text == f->val.at[f->arg.at[i]].name) arg[i] = in[j];
    *n = interp_count(m, f->val.at[f->ret.at[k]].type);
    out[k] = NEW_N(a, double, *n + 1);
    Interp *it = interp_create(a, m);
    if (interp_run(it, f, arg, out)) return out[k];
    printf("%s: %s\n", name, interp_fault(it));
    return 0;
  }
  printf("there is no output %s\n", name);
  return 0;
}
