// Every op on every dim of it, forward and backward: after layout and reshard all ranks hold what one rank computes.
// Each case is built twice, on a mesh of one rank and on one with rules; both functions, f and its gradient, are run.
#include "compiler/vjp.h"
#include "passes/layout.h"
#include "passes/pass.h"
#include "tests/interp/fd.h"
#include "tests/interp/world.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static const char dims[] =
  "a 12, b 12 sample, c 12, e 10:12, ra = a, q 12, r 2, qr 24, w 15, two 2, v 11:12, s 12 zigzag=4, t = s, one 1";

typedef struct { Op op; const char *at, *in[3], *out; } Case;          // out "": inferred
#define F3 "f64[a, b, c]"
static const Case cases[] = {
  {OP_neg, "", {F3}, ""}, {OP_add, "", {F3, "f64[c, b]"}, ""}, {OP_sub, "", {"f64[b]", F3}, ""}, {OP_mul, "", {F3, "f64[c, e, b, a]"}, ""},
  {OP_div, "", {F3, "f64[b]"}, ""}, {OP_mod, "", {F3, "f64[a]"}, ""}, {OP_pow, "", {"f64[a, e]", "f64[e]"}, ""}, {OP_min, "", {F3, F3}, ""},
  {OP_max, "", {F3, "f64[a, b]"}, ""}, {OP_lt, "", {F3, "f64[a]"}, ""}, {OP_and, "", {"bool[a, b]", "bool[a]"}, ""}, {OP_not, "", {"bool[a]"}, ""},
  {OP_exp, "", {"f64[a, e]"}, ""}, {OP_log, "", {F3}, ""}, {OP_sqrt, "", {F3}, ""}, {OP_rsqrt, "", {F3}, ""}, {OP_tanh, "", {F3}, ""},
  {OP_sin, "", {F3}, ""}, {OP_cos, "", {"f64[e, b]"}, ""}, {OP_erf, "", {F3}, ""}, {OP_abs, "", {F3}, ""}, {OP_floor, "", {F3}, ""}, {OP_ceil, "", {F3}, ""},
  {OP_select, "", {"bool[c, a]", F3, "f64[b]"}, ""}, {OP_cast, "", {F3}, "f32[a, b, c]"}, {OP_cast, "", {"f32[a, b]"}, "f64[a, b]"},
  {OP_cast, "", {F3}, "i32[a, b, c]"}, {OP_detach, "", {F3}, ""}, {OP_index, "[a]", {0}, ""}, {OP_index, "[s]", {0}, ""}, {OP_index, "[e]", {0}, ""},

  {OP_random, "path=h.0", {"i64", "i64"}, "f32[a, b, s]"}, {OP_random, "path=h.1", {"i64", "i64"}, "f32[e, v]"},
  {OP_dot, "[a]", {"f64[a, b]", "f64[c, a]"}, ""}, {OP_dot, "[a, e]", {"f64[a, b, e]", "f64[e, c, a]"}, ""}, {OP_dot, "[c]", {F3, "f64[c, q, b]"}, ""},
  {OP_dot, "", {"f64[a, b]", "f64[c, s]"}, ""}, {OP_dot, "[s]", {"f64[a, s]", "f64[s, a]"}, ""}, {OP_dot, "[ra]", {"f64[a, ra]", "f64[ra, c]"}, ""},
  {OP_sum, "[a]", {F3}, ""}, {OP_sum, "[a, b, c]", {F3}, ""}, {OP_sum, "[e, s]", {"f64[e, a, s]"}, ""}, {OP_sum, "[a]", {"i32[a, b]"}, ""},
  {OP_reduce_max, "[c]", {F3}, ""}, {OP_reduce_max, "[e, a]", {"f64[e, b, a]"}, ""}, {OP_cumsum, "[a]", {F3}, ""}, {OP_cumsum, "[c, a] at=1", {F3}, ""},
  {OP_cumsum, "[s]", {"f64[s, a]"}, ""},
  {OP_expand, "[q]", {"f64[a, b]"}, ""}, {OP_expand, "[q, s]", {"f64[a, e]"}, ""}, {OP_rename, "[a -> ra]", {F3}, ""}, {OP_rename, "[s -> t]", {"f64[b, s]"}, ""},
  {OP_rename, "[a -> s]", {F3}, ""}, {OP_rename, "[s -> q]", {"f64[s, a]"}, ""}, {OP_rename, "[a, b -> c, q]", {"f64[a, b]"}, ""},
  {OP_split, "[qr -> q, r]", {"f64[a, qr]"}, ""}, {OP_split, "[qr -> r, q]", {"f64[a, qr]"}, ""}, {OP_split, "[qr -> r, s]", {"f64[a, qr]"}, ""},
  {OP_merge, "[q, r -> qr]", {"f64[r, a, q]"}, ""}, {OP_merge, "[r, q -> qr]", {"f64[r, a, q]"}, ""}, {OP_merge, "[s, r -> qr]", {"f64[r, a, s]"}, ""},
  {OP_stack, "[two]", {F3, F3}, ""}, {OP_stack, "[two]", {F3, "f64[a]"}, ""}, {OP_unstack, "[two]", {"f64[a, two, b]"}, ""},
  {OP_slice, "[w -> a] at=2", {"f64[w, b]"}, ""}, {OP_slice, "[w -> s] at=1", {"f64[w, b]"}, ""}, {OP_unslice, "[a -> w] at=1", {F3}, ""},
  {OP_unslice, "[s -> w] at=3", {"f64[a, s]"}, ""}, {OP_shift, "[a] at=2 num=7", {"f64[a, b]"}, ""}, {OP_shift, "[s] at=-1", {"f64[s, b]"}, ""},
  {OP_gather, "[v]", {"f64[v, a]", "i32[b, s]"}, ""}, {OP_gather, "[a]", {F3, "i32[b, q]"}, ""}, {OP_gather, "[s]", {"f64[s, c]", "i32[a]"}, ""},
  {OP_scatter, "[v]", {"f64[b, s, a]", "i32[b, s]"}, ""}, {OP_scatter, "[v -> b]", {"f64[b, s, a]", "i32[b, s]"}, ""}, {OP_scatter, "[s]", {"f64[a, b]", "i32[a]"}, ""},
};

// ---- a case on a mesh -------------------------------------------------------------------------------------
typedef struct { const char *dim[2]; bool weak[2]; const char *axes[2]; } Setup;  // axes: "x", "xy"

static void map(World *w, const char *d, bool weak, const char *axes) {
  MapRule r = {.dim = intern(w->m->in, d), .weak = weak, .loc = w->b.loc};
  for (; *axes; axes++) r.axis[r.naxis++] = *axes == 'y';
  vec_push(w->m->arena, &w->m->rule, r);
}

static const char *describe(World *w, const Case *c, const char *mesh, const Setup *s) {
  return arena_printf(w->arena, "%s%s(%s, %s), mesh %s, %s%s -> %s, %s%s -> %s", op_info[c->op].name, c->at, c->in[0] ? c->in[0] : "", c->in[1] ? c->in[1] : "", mesh,
                      s->weak[0] ? "weak " : "", s->dim[0] ? s->dim[0] : "", s->axes[0] ? s->axes[0] : "", s->weak[1] ? "weak " : "", s->dim[1] ? s->dim[1] : "",
                      s->axes[1] ? s->axes[1] : "");
}

static void check_types(World *w, const char *what, bool reshards) {
  for (FnId i = 1; i < w->m->fn.n; i++) {
    const Fn *f = w->m->fn.at[i];
    for (NodeId id = 1; id < f->node.n; id++) {
      const Node *n = fn_node(f, id);
      TypeId found[8] = {0};
      Text why;
      text_init(&why, w->arena);
      if (!reshards && n->op == OP_reshard) fail_msg("%s: a reshard is left", what);
      if (!shape_infer(w->m, f, n, found, &why)) fail_msg("%s: %s in %s: %s", what, op_info[n->op].name, f->name, why.s);
      for (uint32_t k = 0; k < n->nout; k++)
        if (!type_fits(w->m, n, found[k], f->val.at[n->out + k].type, &why)) fail_msg("%s: %s in %s: %s", what, op_info[n->op].name, f->name, why.s);
    }
  }
}

typedef struct { double *at[16]; int64_t n[16]; uint32_t count; } Outcome;

// false: strong rules meet, as they should
static bool outcome(const Case *c, const char *mesh, const Setup *s, Arena *keep, Outcome *o) {
  World w = world(mesh, dims);
  Text said;
  text_init(&said, w.arena);
  w.m->diag->to = &said;
  for (int i = 0; i < 2; i++)
    if (s->dim[i]) map(&w, s->dim[i], s->weak[i], s->axes[i]);
  begin(&w, "f");
  op_of(&w, c->op, c->at, c->in, c->out);
  const Fn *f = w.b.fn;
  vjp_function(w.m, f, intern(w.m->in, "g"), true);
  const char *what = describe(&w, c, mesh, s);
  bool ok = pass_layout(w.m);
  if (ok) {
    check_types(&w, what, true);
    pass_reshard(w.m);
    check_types(&w, what, false);
    const char *fn[2] = {"f", "g"};
    o->count = 0;
    for (int k = 0; k < 2; k++) {
      f = fn_find(w.m, intern(w.m->in, fn[k]));
      double **data = fd_inputs(w.arena, f, (Range){0.25, 3, -2, 14, 5}), *out[16];
      for (uint32_t i = 0; i < f->ret.n; i++) {
        o->n[o->count] = interp_count(w.m, f->val.at[f->ret.at[i]].type);
        out[i] = o->at[o->count] = NEW_N(keep, double, o->n[o->count]);
        o->count++;
      }
      Interp *it = interp_create(w.arena, w.m);
      if (!interp_run(it, f, (const double *const *)data, out)) fail_msg("%s: %s", what, interp_fault(it));
    }
  } else if (!strstr(said.s, "MT0311")) fail_msg("%s: %s", what, said.s);
  world_end(&w);
  return ok;
}

static void compare(const Case *c, const char *mesh, const Setup *s, const Outcome *one, uint32_t *clashes) {
  Arena *a = arena_create();
  Outcome all;
  if (!outcome(c, mesh, s, a, &all)) (*clashes)++;
  else {
    assert_int_equal(one->count, all.count);
    for (uint32_t i = 0; i < all.count; i++)
      for (int64_t k = 0; k < all.n[i]; k++) {
        double x = one->at[i][k], y = all.at[i][k];
        if (x == y || fabs(x - y) <= 1e-12 * (fabs(x) + 1) || (isnan(x) && isnan(y))) continue;
        World w = world(mesh, dims);
        fail_msg("%s: entry %lld of result %u is %.17g, on one rank %.17g", describe(&w, c, mesh, s), (long long)k, i, y, x);
      }
  }
  arena_destroy(a);
}

static bool has_dim(const Case *c, const char *d) {
  char word[16];
  for (int i = -2; i < 3; i++) {
    const char *text = i == -2 ? c->at : i == -1 ? c->out : c->in[i];
    for (const char *p = text; p && *p; p++) {
      size_t n = 0;
      while (((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')) && n < 15) word[n++] = *p++;
      word[n] = 0;
      if (!strcmp(word, d)) return true;
      if (!*p) break;
    }
  }
  return false;
}

static void on_every_dim(void **state) {
  (void)state;
  static const char *const names[] = {"a", "b", "c", "e", "ra", "q", "r", "qr", "v", "s", "t"};
  uint32_t clashes = 0;
  for (size_t k = 0; k < COUNT(cases); k++) {
    const Case *c = &cases[k];
    Arena *a = arena_create();
    Outcome one;
    outcome(c, "x=1 y=1", &(Setup){.dim = {0}}, a, &one);
    for (size_t i = 0; i < COUNT(names); i++) {
      if (!has_dim(c, names[i])) continue;
      for (int weak = 0; weak < 2; weak++) {
        compare(c, "x=2 y=1", &(Setup){{names[i]}, {weak}, {"x"}}, &one, &clashes);
        if (strcmp(names[i], "r")) compare(c, "x=3 y=1", &(Setup){{names[i]}, {weak}, {"x"}}, &one, &clashes);
        if (strcmp(names[i], "r")) compare(c, "x=2 y=2", &(Setup){{names[i]}, {weak}, {k & 1 ? "xy" : "yx"}}, &one, &clashes);
      }
      for (size_t j = 0; j < COUNT(names); j++) {
        if (i == j || !has_dim(c, names[j])) continue;
        compare(c, "x=2 y=1", &(Setup){{names[i], names[j]}, {false, true}, {"x", "x"}}, &one, &clashes);
        if (i > j) continue;
        compare(c, "x=2 y=1", &(Setup){{names[i], names[j]}, {false, false}, {"x", "x"}}, &one, &clashes);
        compare(c, "x=2 y=2", &(Setup){{names[i], names[j]}, {false, false}, {"x", "y"}}, &one, &clashes);
        if (strcmp(names[j], "r")) compare(c, "x=2 y=2", &(Setup){{names[j], names[i]}, {false, true}, {"xy", "x"}}, &one, &clashes);
      }
    }
    arena_destroy(a);
  }
  assert_true(clashes > 20);                            // two strong rules for one axis do meet
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_every_dim)};
  return cmocka_run_group_tests(tests, 0, 0);
}
