// load.c -- reads a model text and what it imports, each file once.
#include "compiler/sema.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_LIMIT = 1 << 28, IMPORT_DEPTH = 64 };

static Status read_input(Arena *a, char **text, size_t *n) {          // standard input
  Text t;
  char few[4096];
  text_init(&t, a);
  for (ssize_t k; (k = read(0, few, sizeof few)) != 0;) {
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) return fail(EXIT_IO, "standard input: %s", strerror(errno));
    if (t.n + (size_t)k > TEXT_LIMIT)
      return fail(EXIT_INPUT, "standard input: more than %d bytes", TEXT_LIMIT);
    text_add(&t, few, (size_t)k);
  }
  return *text = t.s, *n = t.n, 0;
}

static const Ast *read_text(Sema *s, const char *path, uint16_t *source) {
  char *text;
  size_t n;
  Program *p = s->p;
  bool input = !strcmp(path, "-");
  Status status = input ? read_input(p->arena, &text, &n) : file_read(p->arena, path, TEXT_LIMIT, &text, &n);
  if (!status && !strncmp(text, "mt plan ", 8))
    status = fail(EXIT_INPUT, "%s: it is a plan; mtrun takes it, mtc the model text it was made of", path);
  if (status) return s->status = status, (const Ast *)0;
  *source = diag_source(p->diag, intern(p->in, input ? "(standard input)" : path), text, n);
  return parse(p->arena, p->in, p->diag, *source);
}

static void load(Sema *s, const char *path, int depth);

// What keeps a path from being read, before file_read says it without the import's place; 0: nothing.
static const char *unreadable(const char *path) {
  struct stat st;
  if (stat(path, &st)) return strerror(errno);
  if (S_ISDIR(st.st_mode)) return "it is a folder";
  if (!S_ISREG(st.st_mode)) return "it is no file";
  return access(path, R_OK) ? strerror(errno) : st.st_size > TEXT_LIMIT ? "it is too large" : 0;
}

static void load_import(Sema *s, const char *importer, const Ast *import, int depth) {
  Program *p = s->p;
  const char *slash = strrchr(importer, '/');
  const char *path = *import->text == '/' || !slash
                       ? import->text
                       : arena_printf(p->arena, "%.*s/%s", (int)(slash - importer), importer, import->text);
  const char *why = !*import->text ? "the name is empty" : unreadable(path);
  if (depth >= IMPORT_DEPTH) ERR(import->span, "MT0340", "imports nest deeper than %d", IMPORT_DEPTH);
  else if (p->diag->source.n >= UINT16_MAX / 2)
    ERR(import->span, "MT0340", "more than %d files", UINT16_MAX / 2);
  else if (why) ERR(import->span, "MT0341", "'%s' cannot be imported: %s", path, why);
  else load(s, path, depth + 1);
}

static void load(Sema *s, const char *path, int depth) {
  Program *p = s->p;
  char *real = realpath(path, 0);
  Str id = intern(p->in, real ? real : path);
  free(real);
  if (map_get(&s->loaded, key_of(id))) return;                         // once is enough, also in a cycle
  map_put(&s->loaded, key_of(id), 1);
  uint16_t source = 0;
  const Ast *root = read_text(s, path, &source);
  if (!depth) s->main = source;
  for (uint32_t i = 0; root && i < root->n; i++)
    if (root->kid[i]->kind == N_import) load_import(s, path, root->kid[i], depth);
  for (uint32_t i = 0; root && i < root->n; i++)
    if (root->kid[i]->kind != N_import) vec_push(p->arena, &s->item, root->kid[i]);
}

void load_text(Sema *s, const char *path) { load(s, path, 0); }

const Ast *load_parallel(Sema *s, const char *path) {
  uint16_t source;
  return read_text(s, path, &source);
}
