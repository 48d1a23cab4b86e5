// Random graphs: gradients against central differences, and gradient functions before and after simplify, bit for bit.
//
//   random [first seed] [graphs]
#include "compiler/vjp.h"
#include "passes/pass.h"
#include "tests/graphs/random_graph.h"
#include "tests/seeds.h"
#include "tests/interp/fd.h"
#include <string.h>

static bool differences(uint64_t seed) {
  Arena *a = arena_create();
  Module *m = random_graph(a, seed, (RandomGraph){.nodes = 4 + seed % 16, .smooth = true, .empty = seed % 5 == 0});
  Fn *f = fn_find(m, intern(m->in, "forward")), *g = vjp_function(m, f, intern(m->in, "gradient"), false);
  Interp *it = interp_create(a, m);
  Text why;
  text_init(&why, a);
  bool ok = ir_verify(m, "vjp_function") && fd_check(it, f, g, random_inputs(a, f, seed), seed, &why);
  if (!ok) {
    Text t;
    text_init(&t, a);
    ir_print(&t, m);
    printf("seed %llu: %s\n%s", (unsigned long long)seed, why.s, t.s);
  }
  arena_destroy(a);
  return ok;
}

static double **run(Arena *a, const Module *m, const Fn *g, double **x) {
  Interp *it = interp_create(a, m);
  double **y = NEW_N(a, double *, g->ret.n + 1);
  for (uint32_t i = 0; i < g->ret.n; i++) y[i] = NEW_N(a, double, random_count(m, g->val.at[g->ret.at[i]].type) + 1);
  if (!interp_run(it, g, (const double *const *)x, y)) bug("%s", interp_fault(it));
  return y;
}

// the same bits, or NaN in both
static bool simplified(uint64_t seed) {
  Arena *a = arena_create();
  Module *m = random_graph(a, seed, (RandomGraph){.nodes = 10 + seed % 60, .dtype = seed % 2 ? DT_f32 : DT_f64, .narrow = true, .empty = seed % 7 == 0});
  Fn *f = fn_find(m, intern(m->in, "forward"));
  Str name = intern(m->in, "gradient");
  Fn *g = vjp_function(m, f, name, false);
  double **x = random_inputs(a, g, seed), **was = run(a, m, g, x);
  uint32_t nodes = g->node.n;
  bool ok = pass_simplify(m) && ir_verify(m, "simplify");
  g = fn_find(m, name);
  double **now = run(a, m, g, x);
  ok &= g->node.n <= nodes;
  for (uint32_t i = 0; ok && i < g->ret.n; i++)
    for (int64_t k = 0; k < random_count(m, g->val.at[g->ret.at[i]].type); k++) {
      double p = was[i][k], q = now[i][k];
      if (!memcmp(&p, &q, sizeof p) || (p != p && q != q)) continue;
      printf("seed %llu: gradient %u, entry %lld was %.17g, is %.17g\n", (unsigned long long)seed, i + 1, (long long)k, p, q);
      ok = false;
      break;
    }
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 100, 100);
  bool ok = true;
  for (uint64_t seed = s.first; seed < s.end; seed++) {
    ok &= differences(seed);
    ok &= simplified(seed);
  }
  return !ok;
}
