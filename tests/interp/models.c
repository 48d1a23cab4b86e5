// The shipped models, small and odd-sized, trained two steps in f64 on meshes of up to eight ranks in the interpreter:
// outputs, norms, every gradient and every parameter equal those of one rank to 1e-10. The argument is the models' folder.
#include "compiler/interp.h"
#include "compiler/program.h"
#include "passes/pass.h"
#include "tests/interp/fd.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 2, MAX_OPTIONS = 40, MAX_FEEDS = 4 };

typedef struct {
  const char *model, *config;                           // -D …, blank between
  int ctx, vocab, samples;                              // samples of half a step
  const char *mesh[8];
} Row;

static const Row rows[] = {
  {"gpt2", "hidden=24 layers=2 nheads=4 ctx=8 maxpos=9 nvocab=37 pdrop=0", 8, 37, 4,
   {"tp=2", "dp=2", "cp=2", "dp=2,tp=2", "cp=2,tp=2", "dp=2,ep=2,tp=2"}},
  {"gpt2", "hidden=18 layers=1 nheads=3 ctx=7 maxpos=7 nvocab=131 pdrop=0", 7, 131, 2, {"dp=2"}},
  {"llama", "hidden=20 inter=28 layers=2 nheads=4 nkv=2 headdim=6 ctx=8 nvocab=131 theta=100 eps=0.00001", 8, 131, 2,
   {"tp=2", "dp=2", "cp=2", "dp=2,cp=2,tp=2"}},
  {"llama", "hidden=15 inter=12 layers=1 nheads=5 nkv=1 headdim=4 ctx=12 nvocab=29 theta=100 eps=0.00001", 12, 29, 2, {"cp=2", "dp=2,cp=3"}},
  {"bert", "hidden=24 inter=20 layers=2 nheads=4 ctx=8 maxpos=8 nvocab=41 pdrop=0", 8, 41, 4, {"tp=2", "dp=2", "cp=2", "dp=2,tp=4"}},
  {"moe", "hidden=16 inter=12 layers=2 nheads=2 nkv=2 headdim=8 ctx=8 nvocab=29 theta=100 eps=0.00001 nexp=4 topk=2 auxw=0.1", 8, 29, 4,
   {"tp=2", "dp=2", "ep=2", "cp=2", "ep=4", "dp=2,ep=2,tp=2", "ep=2,cp=2"}},
  {"moe", "hidden=16 inter=12 layers=1 nheads=3 nkv=1 headdim=8 ctx=8 nvocab=29 theta=100 eps=0.00001 nexp=8 topk=1 auxw=0.1 capacity=0.5", 8, 29, 2,
   {"dp=2", "ep=2"}},
};

typedef struct { Arena *arena; Module *m; Interp *it; double *output[STEPS], norm[STEPS]; double **grad, **param; } Outcome;

static void option(Override *o, size_t *n, OverrideKind kind, const char *text) {
  if (*n == MAX_OPTIONS) bug("too many options");
  o[(*n)++] = (Override){kind, text};
}

static int ways(const char *mesh, const char *axis) {
  const char *at = strstr(mesh, axis);
  return at ? at[3] - '0' : 1;
}

static Module *compiled(Arena *a, const Row *row, const char *folder, const char *mesh, int parts) {
  Intern *in = intern_create(a);
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  Override o[MAX_OPTIONS];
  size_t n = 0;
  char *words = arena_strndup(a, row->config, strlen(row->config)), *rest = 0;
  for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(0, " ", &rest)) option(o, &n, OVERRIDE_config, w);
  static const char *const set[] = {"precision.compute=f64", "precision.params=f64", "precision.grads=f64", "train.steps=9", "train.clip=0.5",
                                    "train.optimizer.lr=0.01", "train.schedule.warmup=0", "train.schedule.min=0"};
  for (size_t i = 0; i < COUNT(set); i++) option(o, &n, OVERRIDE_set, set[i]);
  int micro = row->samples / parts / ways(mesh, "dp=") / ways(mesh, "ep=");
  option(o, &n, OVERRIDE_set, arena_printf(a, "train.micro_batch=%d", micro));
  option(o, &n, OVERRIDE_set, arena_printf(a, "train.global_batch=%d", 2 * row->samples));
  if (*mesh) option(o, &n, OVERRIDE_mesh, mesh);
  Status status = 0;
  Program *p = sema(a, in, d, arena_printf(a, "%s/%s.mt", folder, row->model), o, n, &status);
  Module *m = p ? lower(p) : 0;
  if (!m) fail_msg("%s on %s is refused", row->model, mesh);
  Pass last = *mesh ? PASS_reshard : PASS_none; // then a module is the program of one rank
  if (!passes_run(m, last, (RunOptions){0})) fail_msg("%s on %s: a pass fails", row->model, mesh);
  return m;
}

static uint64_t seed_of(const char *name, uint64_t k) { return hash_bytes(name, strlen(name), k); }

// labels are ignored now and then, more so in a step's second microbatch
static double input(const Row *row, const char *name, int64_t i, int64_t n, uint64_t *seed) {
  double u = fd_random(seed, 0, 1);
  if (!strcmp(name, "segments")) return u < 0.5;
  if (!strcmp(name, "lengths")) return 1 + floor(u * row->ctx);
  double token = floor(fd_random(seed, 0, row->vocab));
  return !strcmp(name, "labels") && u < (2 * i < n ? 0.2 : 0.6) ? -100 : token;
}

static void copy_vars(Outcome *r, VarKind kind, double **to) {
  for (VarId v = 1; v < r->m->var.n; v++) {
    const Var *var = &r->m->var.at[v];
    if (var->kind != kind) continue;
    VarId of = kind == VAR_param ? v : var->of;
    to[of] = NEW_N(r->arena, double, interp_count(r->m, var->type));
    if (!interp_get(r->it, v, to[of])) fail_msg("%s", interp_fault(r->it));
  }
}
static void keep_grads(void *arg) { copy_vars(arg, VAR_grad, ((Outcome *)arg)->grad); }

// parts: microbatches of half a step
static Outcome train(const Row *row, const char *folder, const char *mesh, int parts) {
  Outcome r = {.arena = arena_create()};
  Arena *a = r.arena;
  r.m = compiled(a, row, folder, mesh, parts), r.it = interp_create(a, r.m);
  r.grad = NEW_N(a, double *, r.m->var.n), r.param = NEW_N(a, double *, r.m->var.n);
  for (VarId v = 1; v < r.m->var.n; v++) {
    const Var *var = &r.m->var.at[v];
    if (var->kind != VAR_param) continue;
    int64_t n = interp_count(r.m, var->type);
    double *x = NEW_N(a, double, n);
    uint64_t seed = seed_of(var->name, 1);
    fd_fill(x, n, &seed, var->init == INIT_ones ? 0.7 : -0.3, var->init == INIT_ones ? 1.3 : 0.3);
    interp_set(r.it, v, x);
  }
  Training *t;
  if (training_create(a, r.it, &t)) fail_msg("%s on %s", row->model, mesh);
  const Fn *f = fn_find(r.m, intern(r.m->in, "micro"));
  for (int s = 0; s < STEPS; s++) {
    Feed feed[MAX_FEEDS];
    StepLog log;
    for (uint32_t i = 0; i < f->arg.n; i++) {
      const Value *v = &f->val.at[f->arg.at[i]];
      int64_t n = 2 * parts * interp_count(r.m, v->type);
      double *x = NEW_N(a, double, n);
      uint64_t seed = seed_of(v->name, (uint64_t)s);
      for (int64_t k = 0; k < n; k++) x[k] = input(row, v->name, k, n, &seed);
      feed[i] = (Feed){v->name, x};
    }
    if (training_step(t, feed, f->arg.n, s == STEPS - 1 ? keep_grads : 0, &r, &log)) fail_msg("%s on %s", row->model, mesh);
    r.norm[s] = log.grad_norm, r.output[s] = NEW_N(a, double, r.m->output.n + 1);
    memcpy(r.output[s], log.output, r.m->output.n * sizeof(double));
  }
  copy_vars(&r, VAR_param, r.param);
  return r;
}

static void near(const Row *row, const char *mesh, const char *what, double got, double want, double floor_) {
  if (!(fabs(got - want) <= 1e-10 * (fabs(want) + floor_))) fail_msg("%s on %s: %s is %.17g, on one rank %.17g", row->model, mesh, what, got, want);
}

static double length(const double *x, const double *y, int64_t n) {           // of x - y, of x when y is 0
  double s = 0;
  for (int64_t i = 0; i < n; i++) s += (x[i] - (y ? y[i] : 0)) * (x[i] - (y ? y[i] : 0));
  return sqrt(s);
}

static void compare(const Row *row, const char *mesh, const Outcome *one, const Outcome *all) {
  for (int s = 0; s < STEPS; s++) {
    for (uint32_t i = 0; i < one->m->output.n; i++)
      if (!isnan(one->output[s][i])) near(row, mesh, one->m->output.at[i].name, all->output[s][i], one->output[s][i], 0);
    near(row, mesh, "the norm", all->norm[s], one->norm[s], 0);
    assert_true(one->norm[s] > 1e-3 && one->output[s][0] > 0.1);
  }
  for (VarId v = 1; v < one->m->var.n; v++) {
    const Var *var = &one->m->var.at[v];
    if (var->kind != VAR_param) continue;
    VarId w = var_find(all->m, intern(all->m->in, var->name));
    int64_t n = interp_count(one->m, var->type);
    if (!w || interp_count(all->m, all->m->var.at[w].type) != n) fail_msg("%s on %s: %s is another parameter", row->model, mesh, var->name);
    near(row, mesh, var->name, length(all->param[w], one->param[v], n), 0, length(one->param[v], 0, n));
    if (one->grad[v]) near(row, mesh, var->name, length(all->grad[w], one->grad[v], n), 0, length(one->grad[v], 0, n) + 1e-6 * one->norm[STEPS - 1]);
  }
}

static void models_test(void **state) {
  const char *folder = *state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    Outcome one = train(&rows[i], folder, "", 1);
    for (const char *const *mesh = rows[i].mesh; mesh < rows[i].mesh + COUNT(rows[i].mesh) && *mesh; mesh++) {
      Outcome all = train(&rows[i], folder, *mesh, 1);
      compare(&rows[i], *mesh, &one, &all);
      arena_destroy(all.arena);
    }
    arena_destroy(one.arena);
  }
}

// dropout is drawn by sample and position: the same on every mesh and for every grouping of a step's samples
static void dropout_test(void **state) {
  static const Row row = {"gpt2", "hidden=24 layers=2 nheads=4 ctx=8 maxpos=9 nvocab=37 pdrop=0.3", 8, 37, 4, {0}};
  Outcome one = train(&row, *state, "", 1), plain = train(&(Row){row.model, "hidden=24 layers=2 nheads=4 ctx=8 maxpos=9 nvocab=37 pdrop=0", 8, 37, 4, {0}}, *state, "", 1);
  assert_true(fabs(one.output[0][0] - plain.output[0][0]) > 1e-4);
  for (int parts = 1; parts <= 4; parts *= 2)
    for (int mesh = 0; mesh < 4; mesh++) {
      static const char *const names[] = {"", "dp=2", "cp=2", "cp=2,tp=2"};
      if (mesh == 1 && parts == 4) continue;
      Outcome all = train(&row, *state, names[mesh], parts);
      compare(&row, names[mesh], &one, &all);
      arena_destroy(all.arena);
    }
  arena_destroy(one.arena), arena_destroy(plain.arena);
}

// parameters are drawn with the deviation that the text says
static void drawn_test(void **state) {
  static const Row row = {"gpt2", "hidden=24 layers=2 nheads=4 ctx=8 maxpos=9 nvocab=37 pdrop=0", 8, 37, 4, {0}};
  Arena *a = arena_create();
  Module *m = compiled(a, &row, *state, "tp=2", 1);
  Interp *it = interp_create(a, m);
  Training *t;
  assert_false(training_create(a, it, &t) || training_draw(t));
  VarId v = var_find(m, intern(m->in, "wte.weight"));
  int64_t n = interp_count(m, m->var.at[v].type);
  double *x = NEW_N(a, double, n);
  assert_true(interp_get(it, v, x));
  double deviation = length(x, 0, n) / sqrt((double)n);
  if (!(fabs(deviation - 0.02) < 0.002)) fail_msg("wte is drawn with deviation %g, not 0.02", deviation);
  arena_destroy(a);
}

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(models_test, argv[1]), cmocka_unit_test_prestate(dropout_test, argv[1]),
                                     cmocka_unit_test_prestate(drawn_test, argv[1])};
  return cmocka_run_group_tests(tests, 0, 0);
}
