// compare.c -- see compare.h. What runs write (--log-json, --grads, --final) holds whole tensors under checkpoint names on
// any mesh, so that is what is compared, in the order in which a run comes to it.
#include "runtime/compare.h"
#include "runtime/file.h"
#include "runtime/json_text.h"
#include "runtime/plan.h"
#include "runtime/safetensors.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <fcntl.h>

extern char **environ;

typedef struct {
  Arena *a;
  const char *const *plan;
  const Plan *first;                         // of which the lines are
  double tolerance;
  char *folder;                              // of what the runs write
  int64_t steps, gradients, parameters;      // that are alike
  Safetensors gradient;                      // of the first plan's first step
  double floor;                              // size below which a gradient does not count: a key bias's is 0 in truth
  double moved;                              // the sum of the steps' lr: as far as adamw moves a parameter, about
} Compare;

static const char *path_of(const Compare *c, int which, const char *what) {
  return arena_printf(c->a, "%s/%s.%d", c->folder, what, which);
}

// ---- runs ---------------------------------------------------------------------------------------------------------
static Status run_one(Compare *c, int which, const Words *given) {
  VEC(const char *) argv = {0};
  const char *more[] = {"--log-json", path_of(c, which, "log"), "--grads", path_of(c, which, "grads"), "--final",
                        path_of(c, which, "final")};
  vec_push(c->a, &argv, "mtrun"), vec_push(c->a, &argv, c->plan[which]);
  for (uint32_t i = 0; i < given->n; i++) {
    const Option *o = given->at[i].by;
    if (o->name && (!strcmp(o->name, "compare") || !strcmp(o->name, "tolerance"))) continue;
    vec_push(c->a, &argv, o->name ? arena_printf(c->a, "--%s", o->name) : arena_printf(c->a, "-%c", o->letter));
    if (given->at[i].text) vec_push(c->a, &argv, given->at[i].text);
  }
  for (size_t i = 0; i < COUNT(more); i++) vec_push(c->a, &argv, more[i]);
  vec_push(c->a, &argv, (const char *)0);
  posix_spawn_file_actions_t act;
  posix_spawn_file_actions_init(&act);
  posix_spawn_file_actions_addopen(&act, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid;
  int status, e = posix_spawn(&pid, "/proc/self/exe", &act, 0, (char **)(uintptr_t)argv.at, environ);
  posix_spawn_file_actions_destroy(&act);
  if (e) return fail(EXIT_UNAVAILABLE, "a run of %s cannot be started: %s", c->plan[which], strerror(e));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && !WEXITSTATUS(status)) return 0;
  return fail(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_INTERNAL, "the run of %s did not end well", c->plan[which]);
}

// ---- outputs ------------------------------------------------------------------------------------------------------
static bool apart(double x, double y, double size, double tolerance) {
  if (isnan(x) || isnan(y)) return isnan(x) != isnan(y);
  return x != y && !(fabs(x - y) <= tolerance * size);
}

static bool is_result(const Compare *c, const char *key) { // not a measurement of the run
  bool is = c->gradients && (!strcmp(key, "grad_norm") || !strcmp(key, "lr")); // which comes behind the gradients
  for (uint32_t i = 0; i < c->first->output.n; i++) is |= !strcmp(key, c->first->output.at[i].name);
  return is;
}

// A line of each log. *same: false when they differ, which is said.
static Status line_alike(Compare *c, char *const line[2], int64_t step, bool *same) {
  json_t *j[2] = {0};
  Status e = 0;
  for (int i = 0; i < 2 && !e; i++) e = json_read(c->plan[i], line[i], strlen(line[i]), 3, &j[i]);
  const char *key;
  json_t *x;
  if (!e)
    json_object_foreach(j[0], key, x) {
      const json_t *y = json_object_get(j[1], key);
      double v = json_is_number(x) ? json_number_value(x) : (double)NAN, w = json_is_number(y) ? json_number_value(y) : (double)NAN;
      if (!*same || !is_result(c, key) || !apart(v, w, fmax(fabs(v), fabs(w)), c->tolerance)) continue;
      *same = false;
      printf("step %lld: %s is %.17g in %s, %.17g in %s\n", (long long)step, key, v, c->plan[0], w, c->plan[1]);
    }
  c->moved += j[0] && c->gradients ? json_number_value(json_object_get(j[0], "lr")) : 0;
  for (int i = 0; i < 2; i++) json_decref(j[i]);
  return e;
}

static Status logs(Compare *c, int64_t to, bool *same) {             // steps 0 … to-1
  char *text[2];
  for (int i = 0; i < 2; i++) {
    size_t n;
    TRY(file_read(c->a, path_of(c, i, "log"), 1 << 30, &text[i], &n));
  }
  for (int64_t step = 0; *same && step < to; step++) {
    char *line[2] = {text[0], text[1]};
    if (!*line[0] && !*line[1]) return 0;
    for (int i = 0; i < 2; i++) {
      text[i] += strcspn(text[i], "\n");
      if (*text[i]) *text[i]++ = 0;
    }
    if (!*line[0] != !*line[1]) {
      printf("%s makes %lld steps, the other more\n", c->plan[*line[0] != 0], (long long)step);
      return *same = false, 0;
    }
    TRY(line_alike(c, line, step, same));
    c->steps = step + 1;
  }
  return 0;
}

// ---- tensors ------------------------------------------------------------------------------------------------------
static const char *line_of(const Compare *c, const char *tensor) {
  for (uint32_t i = 1; i < c->first->var.n; i++) {
    const PlanVar *v = &c->first->var.at[i];
    Storage s = plan_storage(c->first, v);
    Pieces pieces = {0};
    if (v->kind != PVAR_param || storage_pieces(c->a, &s, &pieces)) continue;
    for (uint32_t k = 0; k < pieces.n; k++)
      if (!strcmp(pieces.at[k].name, tensor)) return plan_place(c->first, c->a, v->line);
  }
  return "?";
}

static Status values(Arena *a, const Safetensors *f, const Tensor *t, double **out, double *rms) {
  double square = 0;
  *out = NEW_N(a, double, t->count + 1);
  TRY(tensor_read(f, t, 0, t->count, DT_f64, *out));
  for (int64_t i = 0; i < t->count; i++) square += (*out)[i] * (*out)[i];
  *rms = sqrt(square / (double)MAX(t->count, 1));
  return 0;
}

static Status rms_of(const Safetensors *f, const Tensor *t, double *rms) {
  Arena *a = arena_create();
  double *x;
  Status e = values(a, f, t, &x, rms);
  arena_destroy(a);
  return e;
}

typedef struct { const char *what; bool gradients; } Kind;          // else parameters

// How far apart parameters may be for each number besides: adamw divides gradients by their size, so what is rounding in a
// gradient that is nearly 0 (as that of a bias of keys, which is 0 in truth) is a step of any length. 0: gradients.
static Status slack_of(const Compare *c, Arena *a, const Kind *k, const Tensor *t, double **out) {
  const Tensor *g = k->gradients ? 0 : safetensors_find(&c->gradient, t->name);
  *out = NEW_N(a, double, t->count + 1);
  if (!g || g->count != t->count) return 0;
  double *x, rms;
  TRY(values(a, &c->gradient, g, &x, &rms));
  for (int64_t i = 0; i < t->count; i++)
    (*out)[i] = 2 * c->moved * fmin(1, c->tolerance * (fmax(rms, c->floor) + fabs(x[i])) / fabs(x[i]));
  return 0;
}

// Two tensors of as many numbers
static Status numbers_alike(const Compare *c, Arena *a, const Safetensors f[2], const Tensor *const t[2], const Kind *k,
                            bool *same) {
  double *x, *y, *slack, rms, other;
  TRY(values(a, &f[0], t[0], &x, &rms));
  TRY(values(a, &f[1], t[1], &y, &other));
  TRY(slack_of(c, a, k, t[0], &slack));
  double size = fmax(fmax(rms, other), k->gradients ? c->floor : 0);
  for (int64_t i = 0; *same && i < t[0]->count; i++) {
    double against = size + fmax(fabs(x[i]), fabs(y[i]));
    if (!apart(x[i], y[i], against, c->tolerance) || fabs(x[i] - y[i]) <= slack[i]) continue;
    *same = false;
    printf("%s: after step %lld %s %s[%lld] is %.17g in %s, %.17g in %s: %.1e apart, %.1e is allowed\n",
           line_of(c, t[0]->name), (long long)(k->gradients ? 0 : c->steps - 1), k->what, t[0]->name, (long long)i, x[i],
           c->plan[0], y[i], c->plan[1], fabs(x[i] - y[i]), c->tolerance * against + slack[i]);
  }
  return 0;
}

static Status tensor_alike(const Compare *c, const Safetensors f[2], const Tensor *t, const Kind *k, bool *same) {
  const Tensor *u = safetensors_find(&f[1], t->name);
  if (!u || u->count != t->count) {
    printf("%s has %s %s, %s has none of that shape\n", c->plan[0], k->what, t->name, c->plan[1]);
    return *same = false, 0;
  }
  Arena *a = arena_create();                 // for one tensor: a model's would be many times its size
  Status e = numbers_alike(c, a, f, (const Tensor *const[]){t, u}, k, same);
  arena_destroy(a);
  return e;
}

static Status open_gradient(Compare *c) {
  double most = 0, rms;
  TRY(safetensors_open(c->a, path_of(c, 0, "grads"), &c->gradient));
  for (uint32_t i = 0; i < c->gradient.tensor.n; i++) {
    TRY(rms_of(&c->gradient, &c->gradient.tensor.at[i], &rms));
    most = fmax(most, rms);
  }
  return c->floor = 1e-6 * most, 0;
}

static Status tensors_alike(const Compare *c, const Safetensors f[2], const Kind *k, int64_t *count, bool *same) {
  for (uint32_t i = 0; i < f[0].tensor.n && *same; i++) {
    TRY(tensor_alike(c, f, &f[0].tensor.at[i], k, same));
    *count += *same;
  }
  if (*same && f[1].tensor.n != f[0].tensor.n) printf("%s has more of %s\n", c->plan[1], k->what), *same = false;
  return 0;
}

static Status tensors(Compare *c, const char *file, Kind k, int64_t *count, bool *same) {
  Safetensors f[2];
  TRY(safetensors_open(c->a, path_of(c, 0, file), &f[0]));
  Status e = safetensors_open(c->a, path_of(c, 1, file), &f[1]);
  if (!e) {
    e = tensors_alike(c, f, &k, count, same);
    safetensors_close(&f[1]);
  }
  safetensors_close(&f[0]);
  return e;
}

// ---- the way --------------------------------------------------------------------------------------------------------
static Status all(Compare *c, const Words *given) {
  bool same = true;
  for (int i = 0; i < 2; i++) TRY(run_one(c, i, given));
  TRY(logs(c, 1, &same));
  TRY(open_gradient(c));
  if (same) TRY(tensors(c, "grads", (Kind){"the gradient of", true}, &c->gradients, &same));
  if (same) TRY(logs(c, INT64_MAX, &same));
  if (same) TRY(tensors(c, "final", (Kind){"the parameter", false}, &c->parameters, &same));
  if (!same) return COMPARE_DIFFERS;
  printf("equal within %g: %lld steps, %lld gradients, %lld parameters\n", c->tolerance, (long long)c->steps,
         (long long)c->gradients, (long long)c->parameters);
  return 0;
}

Status compare_plans(Arena *a, const char *const plan[2], const Words *given, double tolerance) {
  Compare c = {.a = a, .plan = plan, .tolerance = tolerance};
  Plan *p[2];
  for (int i = 0; i < 2; i++) TRY(plan_load(a, plan[i], &p[i]));
  c.first = p[0];
  TRY(folder_temporary(a, "mt-compare", &c.folder));
  Status e = all(&c, given), gone = folder_remove(c.folder);
  safetensors_close(&c.gradient);
  return e ? e : gone;
}
