// ckpt.c -- see ckpt.h.
#include "runtime/ckpt.h"
#include "runtime/file.h"
#include "runtime/json_text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 24, MANIFEST_LIMIT = 1 << 16, STATE_LIMIT = 1 << 24 };
static const Str manifest_head = "mt checkpoint 1\n";

// The files of the state, in the order of the manifest.
static const Str state_files[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

// ---- names --------------------------------------------------------------------------------------------------------
static Str step_name(Arena *a, int64_t step) { return arena_printf(a, "step_%08lld", (long long)step); }

// The step of "step_00000100" (with what may follow it given as end), -1 for other names.
static int64_t step_of(const char *name, const char *end) {
  char again[64], *rest;
  if (strncmp(name, "step_", 5) || name[5] < '0' || name[5] > '9') return -1;
  errno = 0;
  long long step = strtoll(name + 5, &rest, 10);
  if (errno || strcmp(rest, end)) return -1;
  snprintf(again, sizeof again, "step_%08lld%s", step, end);
  return strcmp(again, name) ? -1 : step;
}

static int newest_first(const void *x, const void *y) {
  int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return a < b ? 1 : a > b ? -1 : 0;
}

typedef VEC(int64_t) Steps;
static Status steps_list(Arena *a, const char *dir, const char *end, Steps *steps) {
  DIR *d = opendir(dir);
  *steps = (Steps){0};
  if (!d) return file_fail(errno, "", dir);
  for (struct dirent *e; (e = readdir(d));) {
    int64_t step = step_of(e->d_name, end);
    if (step >= 0) vec_push(a, steps, step);
  }
  closedir(d);
  if (steps->n) qsort(steps->at, steps->n, sizeof *steps->at, newest_first);
  return 0;
}

// ---- the manifest -------------------------------------------------------------------------------------------------
// The hash of a file is the hash of its blocks' hashes: ranges can be hashed apart, by whoever wrote them.
static Status file_hash(int fd, const char *path, int64_t size, uint64_t *hash) {
  Arena *a = arena_create();
  int64_t n = (size + BLOCK - 1) / BLOCK;
  uint64_t *block = NEW_N(a, uint64_t, n + 1);
  char *part = arena_alloc(a, (size_t)MIN(size, BLOCK) + 1);
  Status s = 0;
  for (int64_t i = 0; i < n && !s; i++) {
    size_t k = (size_t)MIN(size - i * BLOCK, BLOCK);
    s = file_pread(fd, path, i * BLOCK, part, k);
    if (!s) block[i] = hash_bytes(part, k, 0);
  }
  *hash = hash_bytes(block, (size_t)n * 8, (uint64_t)size);
  arena_destroy(a);
  return s;
}

static Status manifest_make(const CkptWriter *w, Text *t) {
  text_init(t, w->arena);
  text_puts(t, manifest_head);
  for (size_t i = 0; i < COUNT(state_files); i++) {
    Str path = arena_printf(w->arena, "%s/%s", w->temp, state_files[i]);
    int fd;
    int64_t size;
    uint64_t hash;
    TRY(file_open(path, &fd, &size));
    Status s = file_hash(fd, path, size, &hash);
    close(fd);
    TRY(s);
    text_printf(t, "%s %lld %016llx\n", state_files[i], (long long)size, (unsigned long long)hash);
  }
  text_printf(t, "end %016llx\n", (unsigned long long)hash_bytes(t->s, t->n, 0));
  return 0;
}

// What a manifest says of file i must be true.
static Status file_verify(const char *folder, Str name, long long size, unsigned long long hash) {
  int fd;
  int64_t now;
  uint64_t found = 0;
  TRY(file_open_in(folder, name, &fd, &now));
  Status s = 0;
  if (now != size) s = fail(EXIT_INPUT, "%s/%s: %lld bytes, MANIFEST says %lld", folder, name, (long long)now, size);
  if (!s) s = file_hash(fd, name, now, &found);
  if (!s && found != hash)
    s = fail(EXIT_INPUT, "%s/%s: damaged: its hash is %016llx, MANIFEST says %016llx", folder, name,
             (unsigned long long)found, hash);
  close(fd);
  return s;
}

static Status manifest_verify(Arena *a, const char *folder, uint64_t *own) {
  Str path = arena_printf(a, "%s/MANIFEST", folder);
  char *text, *p;
  size_t n, head = strlen(manifest_head);
  TRY(file_read(a, path, MANIFEST_LIMIT, &text, &n));
  if (n < head || memcmp(text, manifest_head, head)) return fail(EXIT_INPUT, "%s: not a manifest of version 1", path);
  p = text + head;
  long long size[COUNT(state_files)];
  unsigned long long hash[COUNT(state_files)], end;
  for (size_t i = 0; i < COUNT(state_files); i++) {
    int used = 0;
    char line[128];
    if (sscanf(p, "%*31[a-z.] %18lld %16llx%n", &size[i], &hash[i], &used) != 2 || !used)
      return fail(EXIT_INPUT, "%s: damaged: no line for %s", path, state_files[i]);
    snprintf(line, sizeof line, "%s %lld %016llx\n", state_files[i], size[i], hash[i]);
    if (strncmp(p, line, strlen(line))) return fail(EXIT_INPUT, "%s: damaged: no line for %s", path, state_files[i]);
    p += strlen(line);
  }
  *own = end = hash_bytes(text, (size_t)(p - text), 0);
  if (strcmp(p, arena_printf(a, "end %016llx\n", end)) || strlen(text) != n)
    return fail(EXIT_INPUT, "%s: damaged: it does not end with its own hash", path);
  for (size_t i = 0; i < COUNT(state_files); i++) TRY(file_verify(folder, state_files[i], size[i], hash[i]));
  return 0;
}

// ---- state.json ---------------------------------------------------------------------------------------------------
// One row per field: the JSON key, the field.
#define STATE(X) X(step) X(update) X(samples) X(seed) X(scale_good) X(scale_bad)

static Str state_text(Arena *a, const CkptState *s) {
  Text t;
  text_init(&t, a);
  text_puts(&t, "{\n  \"format\": 1,\n");
#define PUT(field) text_printf(&t, "  \"" #field "\": %lld,\n", (long long)s->field);
  STATE(PUT)
#undef PUT
  text_puts(&t, "  \"loss_scale\": "), text_json_number(&t, s->loss_scale);
  text_puts(&t, ",\n  \"data_rule\": "), text_json(&t, s->data_rule ? s->data_rule : "");
  text_puts(&t, "\n}\n");
  return t.s;
}

static Status state_parse(Arena *a, const char *path, json_t *j, CkptState *s) {
  json_t *format = json_object_get(j, "format"), *scale = json_object_get(j, "loss_scale"),
      *rule = json_object_get(j, "data_rule");
  if (!json_is_integer(format) || json_integer_value(format) != 1)
    return fail(EXIT_INPUT, "%s: format 1 is needed", path);
#define GET(field) do { \
    json_t *v = json_object_get(j, #field); \
    if (!json_is_integer(v) || json_integer_value(v) < 0) return fail(EXIT_INPUT, "%s: '" #field "' is not a count", path); \
    s->field = json_integer_value(v); \
  } while (0);
  STATE(GET)
#undef GET
  if (!json_is_number(scale)) return fail(EXIT_INPUT, "%s: 'loss_scale' is not a number", path);
  if (!json_is_string(rule)) return fail(EXIT_INPUT, "%s: 'data_rule' is not a text", path);
  s->loss_scale = json_number_value(scale);
  if (!(s->loss_scale >= 0 && s->loss_scale <= 0x1p127))
    return fail(EXIT_INPUT, "%s: 'loss_scale' is %g, not from 0 to 2^127", path, s->loss_scale);
  if (s->update > s->step || s->scale_good > s->step || s->scale_bad > s->step)
    return fail(EXIT_INPUT, "%s: more updates than the %lld steps", path, (long long)s->step);
  s->data_rule = arena_strndup(a, json_string_value(rule), json_string_length(rule));
  return 0;
}

static Status state_read(Arena *a, const char *folder, CkptState *s) {
  Str path = arena_printf(a, "%s/state.json", folder);
  char *text;
  size_t n;
  json_t *j;
  TRY(file_read(a, path, STATE_LIMIT, &text, &n));
  TRY(json_read(path, text, n, 4, &j));
  Status status = state_parse(a, path, j, s);
  json_decref(j);
  return status;
}

// ---- saving -------------------------------------------------------------------------------------------------------
static void files_close(CkptWriter *w) {
  for (int i = 0; i < CKPT_FILES; i++) {
    if (w->fd[i] >= 0) close(w->fd[i]);
    w->fd[i] = -1;
  }
}

static void lock_drop(CkptWriter *w) {
  if (w->lock >= 0) close(w->lock);
  w->lock = -1;
}

static Status lock_take(CkptWriter *w) {
  w->lock = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (w->lock < 0) return file_fail(errno, "", w->dir);
  if (flock(w->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)     // file systems without locks are let through
    return fail(EXIT_IO, "%s: another process is saving a checkpoint there", w->dir);
  return 0;
}

static Status leftovers_remove(CkptWriter *w) {
  Steps steps;
  TRY(steps_list(w->arena, w->dir, ".tmp", &steps));
  for (uint32_t i = 0; i < steps.n; i++)
    TRY(folder_remove(arena_printf(w->arena, "%s/%s.tmp", w->dir, step_name(w->arena, steps.at[i]))));
  return 0;
}

void ckpt_abandon(CkptWriter *w) {
  files_close(w);
  folder_remove(w->temp);
  lock_drop(w);
}

Status ckpt_begin(Arena *a, const char *dir, int64_t step, const Tensor *model, size_t nmodel,
                  const Tensor *optimizer, size_t noptimizer, CkptWriter *w) {
  *w = (CkptWriter){.arena = a, .dir = arena_strndup(a, dir, strlen(dir)), .name = step_name(a, step),
                    .fd = {-1, -1}, .lock = -1};
  w->temp = arena_printf(a, "%s/%s.tmp", dir, w->name);
  TRY(safetensors_plan(a, model, nmodel, 0, 0, &w->plan[CKPT_model]));
  TRY(safetensors_plan(a, optimizer, noptimizer, 0, 0, &w->plan[CKPT_optimizer]));
  TRY(folder_make(dir));
  Status s = lock_take(w);
  if (!s) s = leftovers_remove(w);
  if (!s && mkdir(w->temp, 0777))
    s = fail(errno == EACCES ? EXIT_PERMISSION : errno == ENOSPC ? EXIT_IO : EXIT_CREATE,
             "cannot make folder %s: %s", w->temp, strerror(errno));
  if (s) {
    lock_drop(w);
    return s;
  }
  for (int i = 0; i < CKPT_FILES && !s; i++) {
    w->path[i] = arena_printf(a, "%s/%s", w->temp, state_files[i]);
    s = safetensors_create(&w->plan[i], w->path[i], &w->fd[i]);
    if (s) w->fd[i] = -1;
  }
  if (s) ckpt_abandon(w);
  return s;
}

static Status text_save(CkptWriter *w, Str folder, Str name, const char *text) {
  Str path = arena_printf(w->arena, "%s/%s", folder, name);
  int fd;
  TRY(file_create(path, &fd));
  Status s = file_pwrite(fd, path, 0, text, strlen(text));
  if (s) close(fd);
  return s ? s : file_finish(fd, path);
}

// Everything is durable before the folder gets its name. A checkpoint of the same step changes places with the new
// one and is then removed as a leftover.
static Status temp_finish(CkptWriter *w, const CkptState *s, const char *provenance) {
  Text manifest;
  for (int i = 0; i < CKPT_FILES; i++) {
    int fd = w->fd[i];
    w->fd[i] = -1;
    TRY(file_finish(fd, w->path[i]));
  }
  TRY(text_save(w, w->temp, "state.json", state_text(w->arena, s)));
  if (provenance) TRY(text_save(w, w->temp, "provenance.json", provenance));
  TRY(manifest_make(w, &manifest));
  TRY(text_save(w, w->temp, "MANIFEST", manifest.s));
  TRY(folder_sync(w->temp));
  Str final = arena_printf(w->arena, "%s/%s", w->dir, w->name);
  if (!access(final, F_OK)) {
    if (!renameat2(AT_FDCWD, w->temp, AT_FDCWD, final, RENAME_EXCHANGE)) {
      TRY(folder_sync(w->dir));
      return folder_remove(w->temp);
    }
    if (errno != EINVAL && errno != ENOSYS) return file_fail(errno, "renaming", w->temp);
    TRY(folder_remove(final));                            // a file system that cannot exchange
  }
  if (rename(w->temp, final)) return file_fail(errno, "renaming", w->temp);
  return folder_sync(w->dir);
}

static bool has_manifest(CkptWriter *w, int64_t step) {
  return !access(arena_printf(w->arena, "%s/%s/MANIFEST", w->dir, step_name(w->arena, step)), F_OK);
}

// The newest `keep` by number stay, and the one just written. A folder first loses its name, then its files.
static Status old_remove(CkptWriter *w, int64_t keep) {
  Steps steps;
  TRY(steps_list(w->arena, w->dir, "", &steps));
  for (uint32_t i = 0; i < steps.n; i++) {
    Str name = step_name(w->arena, steps.at[i]);
    if (keep > 0 && has_manifest(w, steps.at[i])) keep--;
    else if (keep == 0 && strcmp(name, w->name)) {
      Str from = arena_printf(w->arena, "%s/%s", w->dir, name), to = arena_printf(w->arena, "%s.tmp", from);
      if (rename(from, to)) return file_fail(errno, "removing", from);
      TRY(folder_remove(to));
    }
  }
  return 0;
}

static Status latest_save(CkptWriter *w) {
  Str part = arena_printf(w->arena, "%s/latest.tmp", w->dir), path = arena_printf(w->arena, "%s/latest", w->dir);
  TRY(text_save(w, w->dir, "latest.tmp", arena_printf(w->arena, "%s\n", w->name)));
  if (rename(part, path)) return file_fail(errno, "writing", path);
  return folder_sync(w->dir);
}

Status ckpt_commit(CkptWriter *w, const CkptState *s, const char *provenance, int64_t keep) {
  Status status = temp_finish(w, s, provenance);
  if (status) {
    ckpt_abandon(w);
    return status;
  }
  status = latest_save(w);
  if (!status && keep > 0) status = old_remove(w, keep);
  lock_drop(w);
  return status;
}

Status ckpt_save(Arena *a, const char *dir, const CkptState *s, const Tensor *model, size_t nmodel,
                 const Tensor *optimizer, size_t noptimizer, const TensorSource *from,
                 const char *provenance, int64_t keep) {
  CkptWriter w;
  TRY(ckpt_begin(a, dir, s->step, model, nmodel, optimizer, noptimizer, &w));
  Status status = 0;
  for (int i = 0; i < CKPT_FILES && !status; i++) status = safetensors_fill(&w.plan[i], w.fd[i], w.path[i], from);
  if (!status) return ckpt_commit(&w, s, provenance, keep);
  ckpt_abandon(&w);
  return status;
}

// ---- loading ------------------------------------------------------------------------------------------------------
// A folder of checkpoints, as --save has it, is none itself.
static Status one_of_them(Arena *a, const char *path) {
  Steps steps = {0};
  DIR *d = opendir(path);
  if (!d) return 0;                          // what is wrong with it its files will say
  closedir(d);
  if (!access(arena_printf(a, "%s/MANIFEST", path), F_OK)) return 0;
  TRY(steps_list(a, path, "", &steps));
  if (!steps.n) return 0;
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  return fail(EXIT_MISSING, "%.*s is no checkpoint, it holds %u: --save %.*s --resume auto, or --resume %.*s/%s",
              (int)n, path, steps.n, (int)n, path, (int)n, path, step_name(a, steps.at[0]));
}

Status ckpt_open(Arena *a, const char *path, Ckpt *c) {
  *c = (Ckpt){.path = arena_strndup(a, path, strlen(path))};
  TRY(one_of_them(a, path));
  TRY(manifest_verify(a, path, &c->hash));
  TRY(state_read(a, path, &c->state));
  TRY(safetensors_open(a, arena_printf(a, "%s/%s", path, state_files[CKPT_model]), &c->model));
  Status s = safetensors_open(a, arena_printf(a, "%s/%s", path, state_files[CKPT_optimizer]), &c->optimizer);
  if (s) safetensors_close(&c->model);
  return s;
}

void ckpt_close(Ckpt *c) {
  safetensors_close(&c->model);
  safetensors_close(&c->optimizer);
}

Status ckpt_resume(Arena *a, const char *dir, Ckpt *c, bool *found) {
  Steps steps;
  *found = false;
  if (access(dir, F_OK) && errno == ENOENT) return 0;
  TRY(steps_list(a, dir, "", &steps));
  for (uint32_t i = 0; i < steps.n; i++) {
    Str path = arena_printf(a, "%s/%s", dir, step_name(a, steps.at[i]));
    Status s = ckpt_open(a, path, c);
    if (s == EXIT_PERMISSION) return s;
    if (!s && c->state.step != steps.at[i]) {
      s = fail(EXIT_INPUT, "%s: holds step %lld", path, (long long)c->state.step);
      ckpt_close(c);
    }
    if (!s) {
      *found = true;
      return 0;
    }
    fail(s, "%s: incomplete or damaged, passed over", path);
  }
  return steps.n ? fail(EXIT_INPUT, "%s: none of its %u checkpoints is complete", dir, steps.n) : 0;
}
