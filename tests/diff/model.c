// model.c -- see model.h.
#include "tests/diff/model.h"
#include "compiler/program.h"
#include "passes/pass.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Module *model_lower(Arena *a, const char *text, const char *const *settings) {
  char path[] = "model-XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) bug("cannot write %s", path);
  close(fd);
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  Override set[32];
  size_t n = 0;
  for (; settings && settings[n]; n++) set[n] = (Override){OVERRIDE_set, settings[n]};
  Status status;
  Program *p = sema(a, intern_create(a), d, path, set, n, &status);
  unlink(path);
  return p ? lower(p) : 0;
}

bool model_passes(Module *m, const char *last) { return passes_run(m, pass_find(last), (RunOptions){0}); }

World model_world(Module *m, const char *fn) { return (World){.arena = m->arena, .m = m, .b.fn = model_fn(m, fn)}; }

Fn *model_fn(Module *m, const char *name) {
  Fn *f = fn_find(m, intern(m->in, name));
  if (!f) bug("no function %s", name);
  return f;
}

VarId model_var(Module *m, const char *name) {
  VarId v = var_find(m, intern(m->in, name));
  if (!v) bug("no variable %s", name);
  return v;
}
