// Random graphs on random meshes under random rules, forward and backward: all ranks equal one.
//
//   graphs [FIRST [COUNT]]     seeds; MT_LONG=1 takes 5,000
#include "compiler/interp.h"
#include "compiler/vjp.h"
#include "passes/pass.h"
#include "tests/graphs/random_graph.h"
#include "tests/seeds.h"
#include <math.h>
#include <string.h>

typedef struct { uint64_t seed; uint32_t split, clashes; } Test;

static bool wrong(Arena *a, const Test *t, const char *what, const Module *m) {
  Text s;
  text_init(&s, a);
  ir_print(&s, m);
  printf("seed %llu: %s\n%s", (unsigned long long)t->seed, what, s.s);
  return false;
}

static bool run(Arena *a, const Test *t, Module *m, double **out) {
  static const char *const fns[] = {"forward", "backward"};
  uint32_t n = 0;
  Interp *it = interp_create(a, m);
  for (int k = 0; k < 2; k++) {
    const Fn *f = fn_find(m, intern(m->in, fns[k]));
    double **in = random_inputs(a, f, t->seed), **to = out + n;
    for (uint32_t i = 0; i < f->ret.n; i++)
      out[n++] = NEW_N(a, double, random_count(m, f->val.at[f->ret.at[i]].type) + 1);
    if (!interp_run(it, f, (const double *const *)in, to)) return wrong(a, t, interp_fault(it), m);
  }
  return true;
}

static bool check(Test *t) {
  Arena *a = arena_create();
  RandomGraph o = {.smooth = t->seed % 2, .empty = t->seed % 4 == 2, .draws = t->seed % 8 == 4};
  double *one[64], *all[64];
  Text said;
  text_init(&said, a);
  Module *m = random_graph(a, t->seed, o), *split = random_graph(a, t->seed, o);
  vjp_function(m, fn_find(m, intern(m->in, "forward")), intern(m->in, "backward"), true);
  vjp_function(split, fn_find(split, intern(split->in, "forward")), intern(split->in, "backward"), true);
  random_rules(split, t->seed, 27);
  split->diag->to = &said;
  bool ok = run(a, t, m, one);
  if (!pass_layout(split)) {
    t->clashes++;
    ok = ok && (strstr(said.s, "MT0311") || wrong(a, t, said.s, split));
  } else {
    t->split++;
    ok = ok && (ir_verify(split, "layout") || wrong(a, t, "layout", split));
    pass_reshard(split);
    ok = ok && (ir_verify(split, "reshard") || wrong(a, t, "reshard", split)) && run(a, t, split, all);
    const Fn *back = fn_find(m, intern(m->in, "backward")), *f = fn_find(m, intern(m->in, "forward"));
    for (uint32_t i = 0; ok && i < 1 + back->ret.n; i++) {
      const Fn *of = i ? back : f;
      int64_t n = random_count(m, of->val.at[of->ret.at[i ? i - 1 : 0]].type);
      double scale = 0;
      for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs(one[i][k]));
      for (int64_t k = 0; ok && k < n; k++)
        if (!(fabs(one[i][k] - all[i][k]) <= 1e-11 * (scale + 1)))
          ok = wrong(a, t,
                     arena_printf(a, "result %u, entry %lld: %.17g on one rank, %.17g on all", i,
                                  (long long)k, one[i][k], all[i][k]),
                     split);
    }
  }
  arena_destroy(a);
  return ok;
}

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 300, 5000);
  Test t = {.seed = s.first};
  bool ok = true;
  for (; ok && t.seed < s.end; t.seed++) ok = check(&t);
  if (s.count >= 100 && ok && t.split < s.count / 4)
    printf("only %u of %llu graphs could be split\n", t.split, (unsigned long long)s.count), ok = false;
  return !ok;
}
