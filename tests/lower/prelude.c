// prelude.c -- the prelude's functions by the interpreter, against their definitions computed here.
#include "passes/pass.h"
#include "tests/lower/text.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

enum { B = 2, S = 5, D = 4, V = 7, E = 3 };

// Values of one output of a model with these dims, inputs and statements.
typedef struct { Arena *a; Lowered t; } Model;

static Model model(const char *header, const char *body, const char *options) {
  Model m = {.a = arena_create()};
  const char *text = arena_printf(
    m.a, "dim batch\ndim s = 5\ndim t = s\ndim d = 4\ndim v = 7 pad 8\ndim e = 3\ndim r = e\n%s {\n%s\n}\n",
    header, body);
  lowered_text(
    &m.t, m.a, text, strlen(text),
    arena_printf(m.a, "--set train.micro_batch=2 --set train.global_batch=2 %s", options ? options : ""));
  if (!m.t.module) fail_msg("%s", m.t.said.s);
  return m;
}

static double *value(Model *m, const char *name, int64_t want, const double *const *in) {
  int64_t n;
  double *v = output_values(&m->t, name, in, &n);
  assert_non_null(v);
  assert_int_equal(n, want);
  return v;
}

static void near_to(double tol, const char *what, const double *got, const double *want, int n) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))))
      fail_msg("%s: entry %d is %.17g, want %.17g", what, i, got[i], want[i]);
}

static void near(const char *what, const double *got, const double *want, int n) {
  near_to(1e-12, what, got, want, n);
}

static double wave(int i) { return sin(1 + 3.7 * i) * 2; }         // some numbers

// ---- softmax ----------------------------------------------------------------------------------------------
static void softmax_row(const double *x, const bool *where, int n, double *y) {
  double top = -INFINITY, sum = 0;
  for (int i = 0; i < n; i++)
    if (where[i]) top = fmax(top, x[i]);
  for (int i = 0; i < n; i++) sum += where[i] ? exp(x[i] - top) : 0;
  for (int i = 0; i < n; i++) y[i] = where[i] ? exp(x[i] - top) / sum : 0;
}

static void test_softmax(void **state) {
  (void)state;
  Model m = model("model M(x: [batch, s], lengths: i32[batch]) -> (loss: f32[], y: [batch, s], all: [batch, "
                  "s], big: [batch, s])",
                  "  y = softmax[s](x, where = expand[batch](index(s)) < lengths)\n"
                  "  all = softmax[s](x)\n"
                  "  big = softmax[s](x * 10000)\n"
                  "  loss = sum[batch, s](y)",
                  0);
  double x[B * S], want[B * S], lengths[B] = {3, 0};
  bool some[S] = {true, true, true}, none[S] = {false}, all[S] = {true, true, true, true, true};
  for (int i = 0; i < B * S; i++) x[i] = wave(i);
  const double *in[] = {x, lengths};
  softmax_row(x, some, S, want), softmax_row(x + S, none, S, want + S);
  near("masked, and nothing left", value(&m, "y", B * S, in), want, B * S);
  for (int b = 0; b < B; b++) softmax_row(x + b * S, all, S, want + b * S);
  near("all", value(&m, "all", B * S, in), want, B * S);
  double *big = value(&m, "big", B * S, in);
  for (int b = 0; b < B; b++) {
    double sum = 0;
    for (int i = 0; i < S; i++) sum += big[b * S + i];
    assert_true(fabs(sum - 1) < 1e-12);
  }
  arena_destroy(m.a);
}

// ---- norms ------------------------------------------------------------------------------------------------
static void norm_row(const double *x, const double *g, const double *b, int n, double eps, bool rms,
                     double *y) {
  double mean = 0, square = 0;
  for (int i = 0; i < n; i++) mean += rms ? 0 : x[i] / n;
  for (int i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / n;
  for (int i = 0; i < n; i++) y[i] = (x[i] - mean) / sqrt(square + eps) * g[i] + (b ? b[i] : 0);
}

static void test_norms(void **state) {
  (void)state;
  Model m = model(
    "model M(x: [s, d], g: [d], b: [d]) -> (loss: f32[], l: [s, d], l2: [s, d], rms: [s, d], far: [s, d])",
    "  l = layernorm[d](x, g, b)\n"
    "  l2 = layernorm[d](x, g, b, eps = 0.5)\n"
    "  rms = rmsnorm[d](x, g, 0.25)\n"
    "  far = layernorm[d](x + 100000000, g, b)\n"
    "  loss = sum[s, d](l)",
    0);
  double x[S * D], g[D] = {1, 2, -1, 0.5}, b[D] = {0, 1, 2, 3}, l[S * D], l2[S * D], r[S * D];
  for (int i = 0; i < S * D; i++) x[i] = wave(i);
  for (int i = 0; i < S; i++) {
    norm_row(x + i * D, g, b, D, 1e-5, false, l + i * D);
    norm_row(x + i * D, g, b, D, 0.5, false, l2 + i * D);
    norm_row(x + i * D, g, 0, D, 0.25, true, r + i * D);
  }
  const double *in[] = {x, g, b};
  near("layernorm", value(&m, "l", S * D, in), l, S * D);
  near("layernorm, eps", value(&m, "l2", S * D, in), l2, S * D);
  near("rmsnorm", value(&m, "rms", S * D, in), r, S * D);
  double *far = value(&m, "far", S * D, in);                       // the mean does not drown the entries
  for (int i = 0; i < S * D; i++) assert_true(fabs(far[i] - l[i]) < 1e-6);
  arena_destroy(m.a);
}

// ---- attention --------------------------------------------------------------------------------------------
static void attend(const double *q, const double *k, const double *v, bool (*sees)(int s, int t),
                   double scale, double *y) {
  for (int i = 0; i < S; i++) {
    double score[S], weight[S];
    bool where[S];
    for (int j = 0; j < S; j++) {
      score[j] = 0, where[j] = sees(i, j);
      for (int c = 0; c < D; c++) score[j] += scale * q[i * D + c] * k[j * D + c];
    }
    softmax_row(score, where, S, weight);
    for (int c = 0; c < D; c++) {
      y[i * D + c] = 0;
      for (int j = 0; j < S; j++) y[i * D + c] += weight[j] * v[j * D + c];
    }
  }
}
static bool sees_all(int s, int t) { return (void)s, (void)t, true; }
static bool sees_past(int s, int t) { return t <= s; }
static bool sees_near(int s, int t) { return t <= s && s - t < 2; }
static bool sees_some(int s, int t) { return t <= s && t != 1; }

static void test_attention(void **state) {
  (void)state;
  Model m = model(
    "model M(q: [s, d], k: [s, d], v: [s, d], some: bool[t]) -> (loss: f32[], all: [s, d], past: [s, d], "
    "near: [s, d], masked: [s, d], scaled: [s, d])",
    "  k, v = rename[s -> t](k, v)\n"
    "  all = attention[s, t, d](q, k, v)\n"
    "  past = attention[s, t, d](q, k, v, causal = true)\n"
    "  near = attention[s, t, d](q, k, v, causal = true, window = 2)\n"
    "  masked = attention[s, t, d](q, k, v, causal = true, where = some)\n"
    "  scaled = attention[s, t, d](q, k, v, scale = 0.1, causal = true)\n  loss = sum[s, d](all)",
    0);
  double q[S * D], k[S * D], v[S * D], some[S] = {1, 0, 1, 1, 1}, want[S * D];
  for (int i = 0; i < S * D; i++) q[i] = wave(i), k[i] = wave(i + 50), v[i] = wave(i + 100);
  const double *in[] = {q, k, v, some};
  static const struct { const char *name; bool (*sees)(int s, int t); double scale;
  } cases[] = {{"all", sees_all, 0.5},
               {"past", sees_past, 0.5},
               {"near", sees_near, 0.5},
               {"masked", sees_some, 0.5},
               {"scaled", sees_past, 0.1}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    attend(q, k, v, cases[i].sees, cases[i].scale, want);
    near(cases[i].name, value(&m, cases[i].name, S * D, in), want, S * D);
  }
  arena_destroy(m.a);
}

static void test_rope(void **state) {
  (void)state;
  Model m = model("model M(x: [s, d]) -> (loss: f32[], y: [s, d], z: [s, d])",
                  "  y = rope[s, d](x)\n  z = rope[s, d](x, theta = 100)\n  loss = sum[s, d](y)", 0);
  double x[S * D], y[S * D], z[S * D];
  for (int i = 0; i < S * D; i++) x[i] = wave(i);
  for (int i = 0; i < S; i++)
    for (int c = 0; c < D / 2; c++) {
      double a = x[i * D + c], b = x[i * D + c + D / 2], u = i * pow(10000, -2.0 * c / D),
             w = i * pow(100, -2.0 * c / D);
      y[i * D + c] = a * cos(u) - b * sin(u), y[i * D + c + D / 2] = b * cos(u) + a * sin(u);
      z[i * D + c] = a * cos(w) - b * sin(w), z[i * D + c + D / 2] = b * cos(w) + a * sin(w);
    }
  const double *in[] = {x};
  near("rope", value(&m, "y", S * D, in), y, S * D);
  near("rope, theta", value(&m, "z", S * D, in), z, S * D);
  arena_destroy(m.a);
}

// ---- the loss ---------------------------------------------------------------------------------------------
static double entropy(const double *z, int label, double smooth) {
  double top = -INFINITY, sum = 0, mean = 0;
  for (int i = 0; i < V; i++) top = fmax(top, z[i]), mean += z[i] / V;
  for (int i = 0; i < V; i++) sum += exp(z[i] - top);
  double lse = top + log(sum);
  return (1 - smooth) * (lse - z[label]) + smooth * (lse - mean);
}

static void test_cross_entropy(void **state) {
  (void)state;
  Model m = model(
    "model M(z: [batch, s, v], labels: i32[batch, s]) -> (loss: f32[], ce: [batch, s], smooth: [batch, s], "
    "other: [batch, s], big: [batch, s], hot: bool[batch, s, v])",
    "  ce = cross_entropy[v](z, labels)\n"
    "  smooth = cross_entropy[v](z, labels, smooth = 0.1)\n"
    "  other = cross_entropy[v](z, labels, ignore = 3)\n"
    "  big = cross_entropy[v](z * 10000, labels)\n  hot = one_hot[v](labels)\n  loss = sum[batch, s](ce)",
    0);
  double z[B * S * V], labels[B * S] = {0, -100, 6, 3, -100, -100, -100, -100, -100, -100}, ce[B * S],
                                  smooth[B * S];
  for (int i = 0; i < B * S * V; i++) z[i] = wave(i);
  for (int i = 0; i < B * S; i++) {
    bool counts = labels[i] >= 0;
    ce[i] = counts ? entropy(z + i * V, (int)labels[i], 0) : 0;
    smooth[i] = counts ? entropy(z + i * V, (int)labels[i], 0.1) : 0;
  }
  const double *in[] = {z, labels};
  near_to(1e-7, "cross_entropy", value(&m, "ce", B * S, in), ce, B * S);
  near_to(1e-7, "smoothed", value(&m, "smooth", B * S, in), smooth, B * S);
  double *other = value(&m, "other", B * S, in), *big = value(&m, "big", B * S, in),
         *hot = value(&m, "hot", B * S * V, in);
  assert_true(other[3] == 0 && fabs(other[0] - ce[0]) < 1e-6);
  for (int i = 0; i < B * S; i++) assert_true(isfinite(big[i]) && (labels[i] >= 0 || big[i] == 0));
  for (int i = 0; i < B * S * V; i++) assert_true(hot[i] == (labels[i / V] == i % V));
  arena_destroy(m.a);
}

// ---- routing ----------------------------------------------------------------------------------------------
#define ROUTER                                                                                               \
  "model M(x: [batch, s, d], r: [batch, s, r]) -> (loss: f32[], one: bool[batch, s, r], two: bool[batch, "   \
  "s, r], back: [batch, s, d], sent: [batch, e, place, d])"
static const char *const routing =
  "  one = topk[r](r, 1)\n"
  "  two = topk[r](r, 2)\n"
  "  sent = dispatch[s, r, e, place](x, one)\n"
  "  back = combine[s, r, e, place](sent, one)\n"
  "  loss = sum[batch, s, d](back)";

static void test_topk(void **state) {
  (void)state;
  Model m = model("dim place = 5\n" ROUTER, routing, 0);
  double x[B * S * D], r[B * S * E];
  for (int i = 0; i < B * S * D; i++) x[i] = wave(i);
  for (int i = 0; i < B * S * E; i++) r[i] = i * 7 % 3;             // with ties
  r[0] = r[1] = r[2] = 1;
  const double *in[] = {x, r};
  double *one = value(&m, "one", B * S * E, in), *two = value(&m, "two", B * S * E, in);
  for (int i = 0; i < B * S; i++)
    for (int j = 0; j < E; j++) {
      int before = 0;  // entries that come before: larger, or equal and further left
      for (int k = 0; k < E; k++)
        before += r[i * E + k] > r[i * E + j] || (r[i * E + k] == r[i * E + j] && k < j);
      assert_true(one[i * E + j] == (before < 1) && two[i * E + j] == (before < 2));
    }
  near("combine(dispatch(x))", value(&m, "back", B * S * D, in), x, B * S * D);
  arena_destroy(m.a);
}

// With 2 places an expert keeps the first two tokens of each sample that chose it, in their order.
static void test_capacity(void **state) {
  (void)state;
  Model m = model("dim place = 2\n" ROUTER, routing, 0);
  double x[B * S * D], r[B * S * E] = {0}, sent[B * E * 2 * D] = {0}, back[B * S * D] = {0};
  static const int chosen[B * S] = {1, 1, 0, 1, 2, 0, 0, 0, 0, 1};
  for (int i = 0; i < B * S * D; i++) x[i] = wave(i);
  for (int i = 0; i < B * S; i++) r[i * E + chosen[i]] = 1;
  for (int i = 0; i < B * S; i++) {
    int nth = 0;
    for (int k = i / S * S; k < i; k++) nth += chosen[k] == chosen[i];
    for (int c = 0; c < D && nth < 2; c++)
      back[i * D + c] = sent[((i / S * E + chosen[i]) * 2 + nth) * D + c] = x[i * D + c];
  }
  const double *in[] = {x, r};
  near("dispatch", value(&m, "sent", B * E * 2 * D, in), sent, B * E * 2 * D);
  near("combine", value(&m, "back", B * S * D, in), back, B * S * D);
  arena_destroy(m.a);
}

// ---- blocks -----------------------------------------------------------------------------------------------
static void test_blocks(void **state) {
  (void)state;
  Model m = model(
    "model M(x: [s, d], i: i32[s]) -> (loss: f32[], y: [s, e], z: [s, v], w: [s, d], n: [s, d], rms: [s, d])",
    "  y = Linear[d, e](x) as l\n"
    "  z = Linear[d, v](x, bias = false) as m\n"
    "  w = Embedding[v, d](i) as table\n"
    "  n = LayerNorm[d](x) as n\n"
    "  rms = RMSNorm[d](x, eps = 0.5) as r\n"
    "  loss = sum[s, e](y)",
    0);
  static const char *const params[] = {"l.weight", "l.bias", "m.weight", "table.weight",
                                       "n.weight", "n.bias", "r.weight"};
  const Module *mod = m.t.module;
  uint32_t found = 0;
  for (VarId v = 1; v < mod->var.n; v++)
    if (mod->var.at[v].kind == VAR_param) {
      assert_true(found < COUNT(params));
      assert_string_equal(mod->var.at[v].name, params[found++]);
      assert_true(mod->var.at[v].decay ==
                  (strstr(mod->var.at[v].name, "weight") && !strchr("nr", *mod->var.at[v].name)));
    }
  assert_int_equal(found, COUNT(params));
  double x[S * D], index[S] = {0, 6, -1, 3, 3};
  for (int i = 0; i < S * D; i++) x[i] = wave(i);
  const double *in[] = {x, index};
  double *y = value(&m, "y", S * E, in),
         *w = value(&m, "w", S * D, in);  // parameters are 0 in a new interpreter
  for (int i = 0; i < S * E; i++) assert_true(y[i] == 0);
  for (int i = 0; i < S * D; i++) assert_true(w[i] == 0);
  arena_destroy(m.a);
}

// ---- gradients at the edge --------------------------------------------------------------------------------
// d loss / d p of a model with the parameter p: [batch.., …] that is set to x
static double *gradient(Model *m, const double *x, const double *const *in, int64_t *n) {
  Module *mod = m->t.module;
  if (!passes_run(mod, PASS_autodiff, (RunOptions){0})) fail_msg("%s", m->t.said.s);
  VarId p = var_find(mod, intern(mod->in, "p")), g = var_find(mod, intern(mod->in, "p:grad"));
  const Fn *f = fn_find(mod, intern(mod->in, "micro"));
  assert_true(p && g && f);
  Interp *it = interp_create(m->a, mod);
  interp_set(it, p, x);
  const double **arg = NEW_N(m->a, const double *, f->arg.n + 1);
  const Ast *formals = m->t.program->model->ast->kid[0];
  for (uint32_t i = 0; i < f->arg.n; i++)
    for (uint32_t j = 0; j < formals->n; j++)
      if (formals->kid[j]->text == f->val.at[f->arg.at[i]].name) arg[i] = in[j];
  interp_first(it, true);
  VarId micro = var_find(mod, intern(mod->in, "$inv_micro"));
  if (micro) interp_set(it, micro, &(double){1});
  if (!interp_run(it, f, arg, NEW_N(m->a, double *, f->ret.n + 1))) fail_msg("%s", interp_fault(it));
  *n = interp_count(mod, mod->var.at[g].type);
  double *got = NEW_N(m->a, double, *n);
  assert_true(interp_get(it, g, got));
  return got;
}

// No gradient where a row is masked as a whole, or a label is ignored; none is NaN with huge logits and
// padding.
static void test_gradients(void **state) {
  (void)state;
  int64_t n;
  double x[S * V], lengths[S] = {3, 0, 5, 1, 0}, labels[S] = {0, -100, 6, 3, -100};
  for (int i = 0; i < S * V; i++) x[i] = wave(i) * 10000;
  const double *in[] = {lengths, labels};
  Model m = model(
    "model M(lengths: i32[s], labels: i32[s]) -> (loss: f32[])",
    "  param p: [s, v] ~ zeros\n"
    "  y = softmax[v](p / 10000, where = expand[s](index(v)) < lengths)\n"
    "  loss = sum[s, v](y ^ 2)",
    "--set precision.compute=f64");
  double *g = gradient(&m, x, in, &n);
  assert_int_equal(n, S * V);
  double most = 0;
  for (int i = 0; i < n; i++) {
    assert_true(isfinite(g[i]) && (i % V < lengths[i / V] || g[i] == 0));
    most = fmax(most, fabs(g[i]));
  }
  assert_true(most > 0);
  arena_destroy(m.a);
  m = model("model M(lengths: i32[s], labels: i32[s]) -> (loss: f32[])",
            "  param p: [s, v] ~ zeros\n  loss = sum[s](cross_entropy[v](p, labels))",
            "--set precision.compute=f64");
  g = gradient(&m, x, in, &n);
  for (int i = 0; i < n; i++) assert_true(isfinite(g[i]) && (labels[i / V] >= 0 || g[i] == 0));
  assert_true(g[0] != 0 || g[2 * V + 6] != 0);
  arena_destroy(m.a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_softmax),  cmocka_unit_test(test_norms),         cmocka_unit_test(test_attention),
    cmocka_unit_test(test_rope),     cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_topk),
    cmocka_unit_test(test_capacity), cmocka_unit_test(test_blocks),        cmocka_unit_test(test_gradients)};
  return cmocka_run_group_tests(tests, 0, 0);
}
