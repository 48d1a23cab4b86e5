// Every composite's short rule against the gradient of its body, 1e-12 in f64, and against central differences; rows
// without a true entry, ignored labels, groups of one entry, padding, no samples at all.
#include "tests/diff/gradient.h"
#include "tests/diff/model.h"
#include "compiler/vjp.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
  const char *name, *dims, *inputs, *result, *y;        // y: the expression; result: its dims
  int ilo, ihi;                                         // of integer and bool inputs
} Case;

static const Case cases[] = {
  {"softmax", "dim d = 7", "x: [batch, d]", "batch, d", "softmax[d](x)", 0, 1},
  {"softmax, first dim", "dim d = 5", "x: [d, batch]", "batch, d", "softmax[d](x)", 0, 1},
  {"softmax of one", "dim d = 1", "x: [batch, d]", "batch, d", "softmax[d](x)", 0, 1},
  {"softmax, padded", "dim d = 5 pad 8", "x: [batch, d]", "batch, d", "softmax[d](x)", 0, 1},
  {"softmax, mask", "dim d = 3", "x: [batch, d], m: bool[batch, d]", "batch, d", "softmax[d](x, where = m)", 0, 2},
  {"softmax, mask for all samples", "dim d = 6", "x: [batch, d], m: bool[d]", "batch, d", "softmax[d](x, where = m)", 0, 2},
  {"softmax, mask with more dims", "dim d = 6\ndim e = 2", "x: [batch, d], m: bool[e, batch, d]", "e, batch, d", "softmax[d](x, where = m)", 0, 2},
  {"softmax, -inf", "dim d = 6", "x: [batch, d], m: bool[batch, d]", "batch, d", "softmax[d](select(m, x, -inf))", 0, 2},
  {"layernorm", "dim d = 33", "x: [batch, d], g: [d], b: [d]", "batch, d", "layernorm[d](x, g, b)", 0, 1},
  {"layernorm, first dim", "dim d = 5\ndim e = 3", "x: [d, batch, e], g: [d], b: [d]", "batch, e, d", "layernorm[d](x, g, b, eps = 0.1)", 0, 1},
  {"layernorm of one", "dim d = 1", "x: [batch, d], g: [d], b: [d]", "batch, d", "layernorm[d](x, g, b)", 0, 1},
  {"layernorm, padded", "dim d = 5 pad 8", "x: [batch, d], g: [d], b: [d]", "d, batch", "layernorm[d](x, g, b)", 0, 1},
  {"layernorm, a group", "dim d = 2\ndim e = 3", "x: [batch, d, e], g: [d, e], b: [d, e]", "batch, d, e", "layernorm[(d, e)](x, g, b)", 0, 1},
  {"layernorm of a vector", "dim d = 4", "x: [d], g: [d], b: [d]", "d", "layernorm[d](x, g, b)", 0, 1},
  {"rmsnorm", "dim d = 31", "x: [batch, d], g: [d]", "batch, d", "rmsnorm[d](x, g)", 0, 1},
  {"rmsnorm of one", "dim d = 1", "x: [batch, d], g: [d]", "batch, d", "rmsnorm[d](x, g, eps = 0.01)", 0, 1},
  {"rmsnorm, padded", "dim d = 7 pad 16", "x: [d, batch], g: [d]", "batch, d", "rmsnorm[d](x, g)", 0, 1},
  {"cross entropy", "dim v = 7", "x: [batch, v], l: i32[batch]", "batch", "cross_entropy[v](x, l)", 0, 7},
  {"cross entropy, smooth", "dim v = 7", "x: [v, batch], l: i32[batch]", "batch", "cross_entropy[v](x, l, smooth = 0.1)", 0, 7},
  {"cross entropy, ignored", "dim v = 3", "x: [batch, v], l: i32[batch]", "batch", "cross_entropy[v](x, l, ignore = 2)", 0, 3},
  {"cross entropy, ignored, smooth, padded", "dim v = 5 pad 8", "x: [batch, v], l: i32[batch]", "batch", "cross_entropy[v](x, l, ignore = -1, smooth = 0.2)", -1, 5},
  {"cross entropy of one", "dim v = 1", "x: [batch, v], l: i32[batch]", "batch", "cross_entropy[v](x, l)", 0, 1},
  {"dispatch", "dim t = 5\ndim r = 3\ndim e = r\ndim c = 2\ndim d = 2", "x: [batch, t, d], k: bool[batch, t, r]", "batch, e, c, d", "dispatch[t, r, e, c](x, k)", 0, 2},
  {"dispatch, weights", "dim t = 5\ndim r = 3\ndim e = r\ndim c = 5", "x: [batch, t, r], k: bool[batch, t, r]", "batch, e, c", "dispatch[t, r, e, c](x, k)", 0, 2},
  {"combine", "dim t = 5\ndim r = 3\ndim e = r\ndim c = 2\ndim d = 2", "x: [batch, e, c, d], k: bool[batch, t, r]", "batch, t, d", "combine[t, r, e, c](x, k)", 0, 2},
  {"attention", "dim s = 5\ndim t = s\ndim d = 3", "q: [batch, s, d], k: [batch, t, d], v: [batch, t, d]", "batch, s, d", "attention[s, t, d](q, k, v, causal = true)", 0, 1},
  {"attention, grouped queries, window", "dim s = 6\ndim t = s\ndim d = 2\ndim g = 2", "q: [batch, g, s, d], k: [batch, t, d], v: [batch, t, d]", "batch, s, g, d", "attention[s, t, d](q, k, v, causal = true, window = 2)", 0, 1},
  {"attention, mask", "dim s = 3\ndim t = 4\ndim d = 3", "q: [batch, s, d], k: [batch, t, d], v: [batch, t, d], m: bool[batch, t]", "batch, s, d", "attention[s, t, d](q, k, v, where = m)", 0, 2},
  {"rope", "dim s = 5\ndim d = 6", "x: [batch, s, d]", "batch, s, d", "rope[s, d](x)", 0, 1},
  {"activations", "dim d = 5\ndim g = 2", "x: [batch, d], u: [batch, g, d]", "batch, d", "gelu(x) + gelu_erf(x) * silu(x) + swiglu[g](u)", 0, 1},
};

static Module *model_of(const Case *c, Arena *a) {
  const char *text = arena_printf(a, "dim batch\n%s\nmodel T(%s) -> (loss: f32[], y: [%s]) {\n  y = %s\n  loss = f32(0.0)\n}\ntrain { minimize = loss; micro_batch = 4; global_batch = 4 }\n",
                                  c->dims, c->inputs, c->result, c->y);
  const char *const settings[] = {"precision.compute=f64", 0};
  Module *m = model_lower(a, text, settings);
  if (!m || !model_passes(m, "precision")) fail_msg("%s: the text is refused", c->name);
  return m;
}

static void rule_and_body(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(cases); k++)
    for (uint64_t seed = 0; seed < 3; seed++) {
      Arena *a = arena_create();
      World w = model_world(model_of(&cases[k], a), "logits");
      assert_true(gradient_equal(&w, (Range){-2, 2, cases[k].ilo, cases[k].ihi, 100 * k + seed}, 0, 1e-12, cases[k].name));
      arena_destroy(a);
    }
}

static void differences(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(cases); k++) {
    Arena *a = arena_create();
    World w = model_world(model_of(&cases[k], a), "logits");
    assert_true(gradient_check(&w, (Range){-2, 2, cases[k].ilo, cases[k].ihi, k}, cases[k].name));
    arena_destroy(a);
  }
}

// no samples: gradients of the gains are sums over nothing, 0
static void no_samples(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(cases); k++) {
    Arena *a = arena_create();
    Module *m = model_of(&cases[k], a);
    Dim *batch = &m->dim.at[dim_find(m, intern(m->in, "batch"))];
    batch->extent = batch->size = 0;
    World w = model_world(m, "logits");
    assert_true(gradient_equal(&w, (Range){-2, 2, cases[k].ilo, cases[k].ihi, k}, 0, 1e-12, cases[k].name));
    arena_destroy(a);
  }
}

// the short rules are there, and where the table says so a composite's gradient is one node
static void short_rules(void **state) {
  (void)state;
  static const struct { const char *name; Op op; bool opened; } rows[] = {
    {"softmax, mask", OP_softmax, false}, {"layernorm", OP_layernorm, false}, {"rmsnorm", OP_rmsnorm, false}, {"cross entropy", OP_cross_entropy, false},
    {"dispatch", OP_dispatch, false}, {"dispatch, weights", OP_dispatch, true}, {"combine", OP_combine, false}, {"attention", OP_attention, false}, {"rope", OP_rope, true}};
  for (size_t k = 0; k < COUNT(rows); k++)
    for (size_t c = 0; c < COUNT(cases); c++) {
      if (strcmp(cases[c].name, rows[k].name)) continue;
      Arena *a = arena_create();
      Module *m = model_of(&cases[c], a);
      const Fn *f = model_fn(m, "logits"), *g = vjp_function(m, f, intern(m->in, "g"), false);
      uint32_t had = 0, has = 0, transposed = 0;
      for (NodeId n = 1; n < f->node.n; n++) had += fn_node(f, n)->op == rows[k].op;
      for (NodeId n = 1; n < g->node.n; n++) {
        has += fn_node(g, n)->op == rows[k].op;
        transposed += fn_node(g, n)->op == (rows[k].op == OP_dispatch ? OP_combine : OP_dispatch);
      }
      assert_int_equal(had, 1);
      assert_int_equal(has, !rows[k].opened);
      bool moves = rows[k].op == OP_dispatch || rows[k].op == OP_combine;
      assert_int_equal(transposed, moves && !rows[k].opened);
      assert_true(ir_verify(m, "vjp_function"));
      arena_destroy(a);
    }
}

// P09: two queries, the first fully masked, scores 0, V = [[1], [3]]: output [0, 2], dV = [0.5, 0.5]·dy1, all finite
static void masked_row(void **state) {
  (void)state;
  const Case c = {"masked row", "dim s = 2\ndim t = s\ndim d = 1", "q: [s, d], k: [t, d], v: [t, d], m: bool[s, t]", "s, d", "attention[s, t, d](q, k, v, where = m)", 0, 2};
  Arena *a = arena_create();
  Module *m = model_of(&c, a);
  const Fn *f = model_fn(m, "logits"), *g = vjp_function(m, f, intern(m->in, "g"), false);
  const double q[2] = {0, 0}, v[2] = {1, 3}, mask[4] = {0, 0, 1, 1}, dy[2] = {5, 7}, *in[] = {q, q, v, mask, dy};
  double y[2], dq[2], dk[2], dv[2], *out[] = {dq, dk, dv}, *ys[] = {y};
  Interp *it = interp_create(a, m);
  assert_true(interp_run(it, f, in, ys));
  assert_true(y[0] == 0 && y[1] == 2);
  assert_true(interp_run(it, g, in, out));
  assert_true(dv[0] == 3.5 && dv[1] == 3.5);
  for (int i = 0; i < 2; i++) assert_true(dq[i] == 0 && dk[i] == 0);
  arena_destroy(a);
}

// an ignored label has no gradient even where the logits are not finite
static void ignored_label(void **state) {
  (void)state;
  const Case c = {"ignored", "dim v = 3", "x: [batch, v], l: i32[batch]", "batch", "cross_entropy[v](x, l)", 0, 3};
  Arena *a = arena_create();
  Module *m = model_of(&c, a);
  const Fn *g = vjp_function(m, model_fn(m, "logits"), intern(m->in, "g"), false);
  const double x[12] = {INFINITY, 0, -INFINITY, NAN, NAN, NAN, 0, 0, 0, 1, 2, 3}, l[4] = {-100, -100, -100, 1}, dy[4] = {1, 1, 1, 1}, *in[] = {x, l, dy};
  double dx[12], *out[] = {dx};
  assert_true(interp_run(interp_create(a, m), g, in, out));
  for (int i = 0; i < 9; i++) assert_true(dx[i] == 0);
  double sum = exp(1) + exp(2) + exp(3);
  for (int i = 0; i < 3; i++) assert_true(fabs(dx[9 + i] - (exp(i + 1) / sum - (i == 1))) < 1e-15);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rule_and_body), cmocka_unit_test(differences), cmocka_unit_test(no_samples), cmocka_unit_test(short_rules),
                                     cmocka_unit_test(masked_row), cmocka_unit_test(ignored_label)};
  return cmocka_run_group_tests(tests, 0, 0);
}
