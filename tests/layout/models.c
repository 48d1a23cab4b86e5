// The four models on meshes: losses, norms, gradients and parameters after two steps on all ranks against one
// rank, in f64; and how many collectives of which kind a microbatch takes, against what their structure
// needs.
//
//   models FOLDER                                    the test
//   models FOLDER counts                             prints the collectives of every case instead
//   models FOLDER MODEL MESH seq|whole again|once f64|bf16    prints one program's collectives; with a
//   further word, the program
#include "compiler/interp.h"
#include "compiler/program.h"
#include "passes/layout.h"
#include "passes/pass.h"
#include "tests/interp/fd.h"
#include "tests/said.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static const char *models_folder;

typedef struct { const char *name, *config; } Model;
static const Model models[] = {
  {"gpt2", "hidden=32 layers=2 nheads=4 ctx=24 maxpos=32 nvocab=101 pdrop=0"},
  {"llama", "hidden=32 layers=2 nheads=4 nkv=2 headdim=8 inter=44 ctx=24 nvocab=101"},
  {"bert", "hidden=32 layers=2 nheads=4 inter=64 ctx=24 maxpos=32 nvocab=101 pdrop=0"},
  {"moe", "hidden=32 layers=2 nheads=4 nkv=2 headdim=8 inter=24 ctx=24 nvocab=101 nexp=4 topk=2"},
};

typedef struct {
  const char *mesh;
  bool whole_seq;
  const char *gather;
  int batch;
  const char *compute;
} Setup; // whole_seq: --no-map seq; batch: micro_batch; compute 0: f64

// ---- a model on a mesh ------------------------------------------------------------------------------------
typedef struct { Arena *arena; Diag diag; Module *m; Text said; } Compiled;

static const char *words(Arena *a, const char **s) {
  while (**s == ' ') (*s)++;
  const char *from = *s;
  while (**s && **s != ' ') (*s)++;
  return *s > from ? arena_strndup(a, from, (size_t)(*s - from)) : 0;
}

static bool verified(Compiled *c, const char *after) { return ir_verify(c->m, after); }

static Compiled compiled(const Model *model, const Setup *s) {
  Compiled c = {.arena = arena_create()};
  Arena *a = c.arena;
  Intern *in = intern_create(a);
  Diag *d = NEW(a, Diag);
  diag_said(d, a, &c.said);
  Override o[32];
  size_t n = 0;
  const char *config = model->config;
  for (const char *w; (w = words(a, &config));) o[n++] = (Override){OVERRIDE_config, w};
  static const char *const sets[] = {"train.global_batch=4", "train.steps=3", "train.clip=1.0",
                                     "train.optimizer.lr=3e-3", "train.schedule.warmup=1"};
  for (size_t i = 0; i < COUNT(sets); i++) o[n++] = (Override){OVERRIDE_set, sets[i]};
  o[n++] = (Override){OVERRIDE_set, arena_printf(a, "precision.compute=%s", s->compute ? s->compute : "f64")};
  o[n++] = (Override){OVERRIDE_set, arena_printf(a, "train.micro_batch=%d", s->batch)};
  o[n++] = (Override){OVERRIDE_set, arena_printf(a, "parallel.gather=%s", s->gather)};
  o[n++] = (Override){OVERRIDE_mesh, s->mesh};
  if (s->whole_seq) o[n++] = (Override){OVERRIDE_no_map, "seq"};
  Status status;
  Program *p = sema(a, in, d, arena_printf(a, "%s/%s.mt", models_folder, model->name), o, n, &status);
  if (!p || !(c.m = lower(p))) fail_msg("%s on %s: %s", model->name, s->mesh, c.said.n ? c.said.s : "failed");
  if (!verified(&c, "lower")) fail_msg("%s on %s, lower: %s", model->name, s->mesh, c.said.n ? c.said.s : "failed");
#define RUN(pass)                                                                                            \
  if (!pass_##pass(c.m) || !verified(&c, #pass))                                                             \
    fail_msg("%s on %s, " #pass ": %s", model->name, s->mesh, c.said.n ? c.said.s : "failed");
  RUN(simplify) RUN(precision) RUN(autodiff) RUN(optimizer) RUN(simplify) RUN(layout) RUN(reshard)
  return c;
}

// ---- two steps --------------------------------------------------------------------------------------------
typedef struct { Interp *it; const Module *m; Arena *keep; double **grad; } Watch;

static double *variable(Watch *w, VarId v) {
  double *x = NEW_N(w->keep, double, interp_count(w->m, w->m->var.at[v].type) + 1);
  if (!interp_get(w->it, v, x)) fail_msg("%s", interp_fault(w->it));
  return x;
}

static void keep_grads(void *arg) {
  Watch *w = arg;
  for (VarId v = 1; v < w->m->var.n; v++)
    if (w->m->var.at[v].kind == VAR_grad && !w->grad[v]) w->grad[v] = variable(w, v);
}

// what `logits` gives with the parameters as they are
static double *logits(Compiled *c, Interp *it, Arena *keep, int64_t *n) {
  const Fn *f = fn_find(c->m, intern(c->m->in, "logits"));
  double *in[8], *out = NEW_N(keep, double, *n = interp_count(c->m, f->val.at[f->ret.at[0]].type));
  uint64_t seed = 11;
  for (uint32_t i = 0; i < f->arg.n; i++) {
    int64_t count = interp_count(c->m, f->val.at[f->arg.at[i]].type);
    in[i] = NEW_N(c->arena, double, count);
    fd_fill(in[i], count, &seed, 1, strcmp(f->val.at[f->arg.at[i]].name, "segments") ? 24 : 2);
    for (int64_t k = 0; k < count; k++) in[i][k] = floor(in[i][k]);
  }
  if (!interp_run(it, f, (const double *const *)in, &out)) fail_msg("%s", interp_fault(it));
  return out;
}

enum { VARS = 512 };
typedef struct { double number[8]; uint32_t nnumber, nvar; Str name[VARS]; double *at[VARS]; int64_t n[VARS]; } Outcome;

static void outcome_add(Outcome *o, const char *name, double *at, int64_t n) {
  assert_true(o->nvar < VARS);
  o->name[o->nvar] = name, o->at[o->nvar] = at, o->n[o->nvar++] = n;
}

static void outcome(Compiled *c, Outcome *o, Arena *keep) {
  Module *m = c->m;
  Interp *it = interp_create(c->arena, m);
  uint64_t seed = 7;
  for (VarId v = 1; v < m->var.n; v++) {
    if (m->var.at[v].kind != VAR_param) continue;
    int64_t n = interp_count(m, m->var.at[v].type);
    double *x = NEW_N(c->arena, double, n + 1), at = m->var.at[v].init == INIT_ones ? 1 : 0;
    fd_fill(x, n, &seed, at - 0.3, at + 0.3);
    interp_set(it, v, x);
  }
  Training *t;
  assert_int_equal(training_create(c->arena, it, &t), 0);
  const Fn *micro = fn_find(m, intern(m->in, "micro"));
  Watch w = {it, m, keep, NEW_N(c->arena, double *, m->var.n)};
  for (int step = 0; step < 2; step++) {
    Feed feed[8];
    for (uint32_t i = 0; i < micro->arg.n; i++) {
      const Value *v = &micro->val.at[micro->arg.at[i]];
      int64_t per = 1;                                  // entries of a sample
      for (int k = 0; k < m->type.at[v->type].ndim; k++)
        if (!dim_of(m, m->type.at[v->type].dim[k])->sample) per *= dim_of(m, m->type.at[v->type].dim[k])->extent;
      int64_t n = per * training_samples(t);
      double *x = NEW_N(c->arena, double, n);
      fd_fill(x, n, &seed, 0, 1);
      for (int64_t k = 0; k < n; k++) {
        if (!strcmp(v->name, "segments")) x[k] = x[k] > 0.5;
        else if (!strcmp(v->name, "lengths")) x[k] = 12 + floor(12 * x[k]);
        else if (!strcmp(v->name, "labels") && x[k] < 0.2) x[k] = -100;
        else x[k] = floor(101 * x[k]);
      }
      feed[i] = (Feed){v->name, x};
    }
    StepLog log;
    if (training_step(t, feed, micro->arg.n, keep_grads, &w, &log)) fail_msg("%s", interp_fault(it));
    assert_true(log.updated);
    for (uint32_t i = 0; i < m->output.n; i++)
      if (!isnan(log.output[i])) o->number[o->nnumber++] = log.output[i];
    o->number[o->nnumber++] = log.grad_norm;
  }
  for (VarId v = 1; v < m->var.n; v++) {
    int64_t n = interp_count(m, m->var.at[v].type);
    if (w.grad[v]) outcome_add(o, arena_printf(keep, "%s", m->var.at[v].name), w.grad[v], n);
    if (m->var.at[v].kind == VAR_param) outcome_add(o, arena_printf(keep, "%s", m->var.at[v].name), variable(&w, v), n);
  }
  int64_t n;
  double *x = logits(c, it, keep, &n);
  outcome_add(o, "logits", x, n);
}

// Frobenius, with a floor of 1e-6 of the largest tensor: some gradients are 0 in truth
static void compare(const char *what, const Outcome *one, const Outcome *all) {
  assert_int_equal(one->nnumber, all->nnumber);
  assert_int_equal(one->nvar, all->nvar);
  for (uint32_t i = 0; i < one->nnumber; i++)
    if (!(fabs(one->number[i] - all->number[i]) <= 1e-10 * fabs(one->number[i])))
      fail_msg("%s: number %u is %.17g, on one rank %.17g", what, i, all->number[i], one->number[i]);
  double floor_norm = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < one->nvar; i++) {
      double d = 0, s = 0;
      assert_string_equal(one->name[i], all->name[i]);
      for (int64_t k = 0; k < one->n[i]; k++) {
        double e = one->at[i][k] - all->at[i][k];
        d += e * e, s += one->at[i][k] * one->at[i][k];
      }
      floor_norm = fmax(floor_norm, 1e-6 * sqrt(s));
      if (pass && !(sqrt(d) <= 1e-10 * (sqrt(s) + floor_norm)))
        fail_msg("%s: %s differs by %g of %g", what, one->name[i], sqrt(d), sqrt(s));
    }
}

// ---- collectives ------------------------------------------------------------------------------------------
// Those on rows of tokens: what counts at real sizes. The others hold a few numbers per token, or none.
typedef struct { int all_reduce, reduce_scatter, all_gather, all_to_all, small; } Count;

static bool has_rows(const Module *m, const Type *t) {
  int64_t n = 1;                                        // entries of a token, or of a place of an expert
  bool token = false;
  for (int k = 0; k < t->ndim; k++) {
    const char *name = dim_of(m, t->dim[k])->name, *root = dim_of(m, dim_of(m, t->dim[k])->root)->name;
    if (!strcmp(root, "seq") || !strcmp(name, "place")) token = true;
    else if (strcmp(name, "batch") && strcmp(root, "expert")) n *= dim_of(m, t->dim[k])->extent;
  }
  return token && n > 4;
}

static Count collectives(const Module *m, const char *fn) {
  Count c = {0};
  const Fn *f = fn_find(m, intern(m->in, fn));
  for (NodeId id = 1; f && id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (!op_has(n->op, OPF_COLL)) continue;
    if (!has_rows(m, val_type(f, n->out))) c.small++;
    else if (n->op == OP_all_reduce) c.all_reduce++;
    else if (n->op == OP_reduce_scatter) c.reduce_scatter++;
    else if (n->op == OP_all_gather) c.all_gather++;
    else c.all_to_all++;
  }
  return c;
}

typedef struct { const char *model; Setup s; Count want; } Expect;
static const Expect expected[] = {
    // L = 2: 4L+2 of them forward and backward; 6L+3 gathers, or 4L+2 once
    {"gpt2", {"dp=2", 0, "again", 1, 0}, {0}},
    {"gpt2", {"tp=2", 1, "again", 2, 0}, {.all_reduce = 10}},
    {"gpt2", {"tp=2", 0, "again", 2, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"gpt2", {"tp=2", 0, "once", 2, 0}, {.reduce_scatter = 10, .all_gather = 10}},
    {"gpt2", {"cp=2", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 4}},
    {"gpt2", {"dp=2,tp=2", 0, "again", 1, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"gpt2", {"dp=2,tp=2", 1, "again", 1, 0}, {.all_reduce = 10}},
    {"gpt2", {"cp=2,tp=2", 0, "again", 2, 0}, {.reduce_scatter = 14, .all_gather = 19}},
    {"gpt2", {"cp=3", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 4}},
    {"gpt2", {"dp=2,ep=2", 0, "again", 1, 0}, {0}},
    {"llama", {"dp=2", 0, "again", 1, 0}, {0}},
    {"llama", {"tp=2", 1, "again", 2, 0}, {.all_reduce = 10}},
    {"llama", {"tp=2", 0, "again", 2, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"llama", {"tp=2", 0, "once", 2, 0}, {.reduce_scatter = 10, .all_gather = 10}},
    {"llama", {"cp=2", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 4}},
    {"llama", {"dp=2,tp=2", 0, "again", 1, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"llama", {"cp=4", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 4}},
    {"bert", {"dp=2", 0, "again", 1, 0}, {0}},
    {"bert", {"tp=2", 1, "again", 2, 0}, {.all_reduce = 10}},
    {"bert", {"tp=2", 0, "again", 2, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"bert", {"cp=2", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 4}},
    {"bert", {"dp=2,tp=2", 0, "again", 1, 0}, {.reduce_scatter = 10, .all_gather = 15}},
    {"moe", {"dp=2", 0, "again", 1, 0}, {0}},
    {"moe", {"ep=2", 0, "again", 1, 0}, {.all_to_all = 8}},
    {"moe", {"tp=2", 1, "again", 2, 0}, {.all_reduce = 10}},
    {"moe", {"tp=2", 0, "again", 2, 0}, {.reduce_scatter = 10, .all_gather = 13}},
    {"moe", {"cp=2", 0, "again", 2, 0}, {.reduce_scatter = 4, .all_gather = 8}},
    {"moe", {"dp=2,ep=2", 0, "again", 1, 0}, {.all_to_all = 8}},
    {"moe", {"ep=2,tp=2", 0, "again", 1, 0}, {.reduce_scatter = 10, .all_gather = 13, .all_to_all = 8}},
};

static const Model *model_named(const char *name) {
  for (size_t i = 0; i < COUNT(models); i++)
    if (!strcmp(models[i].name, name)) return &models[i];
  return 0;
}

static void on_meshes(void **state) {
  (void)state;
  Arena *keep = arena_create();
  for (size_t k = 0; k < COUNT(models); k++) {
    for (int batch = 2; batch <= 4; batch += 2) {       // extent(batch) of the one rank is that of the mesh
      Outcome *one = NEW(keep, Outcome);
      Compiled c = compiled(&models[k], &(Setup){"tp=1", 0, "again", batch, 0});
      outcome(&c, one, keep);
      arena_destroy(c.arena);
      for (size_t i = 0; i < COUNT(expected); i++) {
        const Expect *e = &expected[i];
        if (strcmp(e->model, models[k].name)) continue;
        Outcome *all = NEW(keep, Outcome);
        c = compiled(&models[k], &e->s);
        int64_t extent = dim_of(c.m, dim_find(c.m, intern(c.m->in, "batch")))->extent;
        if (extent == batch) {
          const char *what = arena_printf(keep, "%s on %s%s", e->model, e->s.mesh, e->s.whole_seq ? ", seq whole" : "");
          outcome(&c, all, keep);
          compare(what, one, all);
          Count got = collectives(c.m, "micro");
          if (got.all_reduce != e->want.all_reduce || got.reduce_scatter != e->want.reduce_scatter ||
              got.all_gather != e->want.all_gather || got.all_to_all != e->want.all_to_all)
            fail_msg("%s: %d all-reduces, %d reduce-scatters, %d all-gathers, %d all-to-alls; expected %d %d "
                     "%d %d",
                     what, got.all_reduce, got.reduce_scatter, got.all_gather, got.all_to_all,
                     e->want.all_reduce, e->want.reduce_scatter, e->want.all_gather, e->want.all_to_all);
        }
        arena_destroy(c.arena);
      }
    }
  }
  arena_destroy(keep);
}

// bf16 with f32 masters: where partial sums are rounded differs, the losses hardly do
static void in_halves(void **state) {
  (void)state;
  static const char *const meshes[] = {"dp=2,tp=2", "cp=2,tp=2", "dp=2,ep=2"};
  for (size_t k = 0; k < COUNT(models); k++) {
    Arena *keep = arena_create();
    Outcome *one = NEW(keep, Outcome);
    Compiled c = compiled(&models[k], &(Setup){"tp=1", 0, "again", 4, "bf16"});
    outcome(&c, one, keep);
    arena_destroy(c.arena);
    for (size_t i = 0; i < COUNT(meshes); i++) {
      int ways = i == 0 ? 2 : i == 1 ? 1 : 4;
      Outcome *all = NEW(keep, Outcome);
      c = compiled(&models[k], &(Setup){meshes[i], 0, "again", 4 / ways, "bf16"});
      outcome(&c, all, keep);
      assert_int_equal(one->nnumber, all->nnumber);
      for (uint32_t j = 0; j < one->nnumber; j++)
        if (!(fabs(one->number[j] - all->number[j]) <= 0.03 * fabs(one->number[j])))
          fail_msg("%s on %s: number %u is %.17g, on one rank %.17g", models[k].name, meshes[i], j,
                   all->number[j], one->number[j]);
      arena_destroy(c.arena);
    }
    arena_destroy(keep);
  }
}

static int show_counts(void) {
  printf("%-6s %-10s %-6s %-6s %10s %14s %10s %10s %6s\n", "model", "mesh", "seq", "gather", "all-reduce",
         "reduce-scatter", "all-gather", "all-to-all", "small");
  for (size_t i = 0; i < COUNT(expected); i++) {
    const Expect *e = &expected[i];
    Compiled c = compiled(model_named(e->model), &e->s);
    Count n = collectives(c.m, "micro");
    printf("%-6s %-10s %-6s %-6s %10d %14d %10d %10d %6d\n", e->model, e->s.mesh,
           e->s.whole_seq ? "whole" : "", e->s.gather, n.all_reduce, n.reduce_scatter, n.all_gather,
           n.all_to_all, n.small);
    arena_destroy(c.arena);
  }
  return 0;
}

static int show(int argc, char **argv) {
  Setup s = {.mesh = argv[3],
             .whole_seq = argc > 4 && !strcmp(argv[4], "whole"),
             .gather = argc > 5 ? argv[5] : "again",
             .batch = 2,
             .compute = argc > 6 ? argv[6] : 0};
  Compiled c = compiled(model_named(argv[2]), &s);
  Text t;
  text_init(&t, c.arena);
  layout_report(c.m, 65536, &t);
  if (argc > 7) t.n = 0, ir_print(&t, c.m);
  fputs(t.n ? t.s : "", stdout);
  fputs(c.said.s, stdout);
  arena_destroy(c.arena);
  return 0;
}

int main(int argc, char **argv) {
  models_folder = argc > 1 ? argv[1] : "models";
  if (argc == 3) return show_counts();
  if (argc > 3) return show(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_meshes), cmocka_unit_test(in_halves)};
  return cmocka_run_group_tests(tests, 0, 0);
}
