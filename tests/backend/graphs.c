// graphs.c -- random graphs through the backend: what the kernels and products compute is what the interpreter computes.
//
//   graphs [FIRST [COUNT]]     seeds; MT_LONG=1 takes 20,000
#include "compiler/interp.h"
#include "passes/emit.h"
#include "passes/pass.h"
#include "tests/backend/replay.h"
#include "tests/graphs/random_graph.h"
#include "tests/seeds.h"
#include <math.h>
#include <string.h>

typedef struct { uint64_t seed; Arena *a; Module *m; double tolerance; ValId only; bool quiet; } Test; // only: return this value alone

static bool wrong(const Test *t, const char *what) {
  Text s;
  if (t->quiet) return false;
  text_init(&s, t->a);
  ir_print(&s, t->m);
  printf("seed %llu: %s\n%s", (unsigned long long)t->seed, what, s.s);
  return false;
}

// A few more values than the loss leave the graph, so that not only its end is compared.
static void return_more(Fn *f, uint64_t seed) {
  for (uint64_t k = 0; k < 3; k++) {
    ValId v = 1 + (ValId)(hash_mix(seed, k) % (f->val.n - 1));
    bool twice = false;
    for (uint32_t i = 0; i < f->ret.n; i++) twice |= f->ret.at[i] == v;
    if (!twice && f->val.at[v].def) ir_return(f, v, arena_printf(f->module->arena, "more%d", (int)k));
  }
}

#define CANCELLED 1e-4                        // of numbers up to 10^5, what is left of a difference that should be 0

static bool same(const Test *t, const double *want, const double *got, int64_t n, const char *name) {
  double square = 0;
  for (int64_t i = 0; i < n; i++) square += want[i] * want[i];
  double rms = n ? sqrt(square / (double)n) : 0;
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= t->tolerance * (fabs(want[i]) + rms + CANCELLED)) && want[i] != got[i])
      return wrong(t, arena_printf(t->a, "%s[%lld] is %.17g, the interpreter says %.17g", name, (long long)i, got[i], want[i]));
  return true;
}

static bool check(Test *t, RandomGraph o, bool simplify) {
  Module *m = t->m = random_graph(t->a, t->seed, o);
  Fn *f = m->fn.at[1];
  if (t->only) f->ret.n = f->ret_name.n = 0, ir_return(f, t->only, "only");
  else return_more(f, t->seed);
  uint32_t n = f->ret.n;
  double **in = random_inputs(t->a, f, t->seed), **want = NEW_N(t->a, double *, n);
  Str *name = NEW_N(t->a, Str, n);
  Interp *it = interp_create(t->a, m);
  for (uint32_t i = 0; i < n; i++) want[i] = NEW_N(t->a, double, interp_count(m, f->val.at[f->ret.at[i]].type) + 1), name[i] = f->ret_name.at[i];
  if (!interp_run(it, f, (const double *const *)in, want)) return wrong(t, interp_fault(it));
  uint32_t nargs = f->arg.n;
  if ((simplify && !pass_simplify(m)) || !pass_select(m) || (simplify && !pass_simplify(m))) return wrong(t, "a pass fails");
  if (!ir_verify(m, "select")) return wrong(t, "does not verify");
  const Kernel *const *kernels;
  const Tile *const *tiles;
  Plan *p = emit(m, (EmitOptions){.model = "random", .apart = t->seed % 5 == 4, .kernels = &kernels, .tiles = &tiles});
  Text file;
  text_init(&file, t->a);
  plan_write(p, &file);
  const char *bad = plan_verify(p, t->a);
  if (bad && !strstr(bad, "the dim of samples")) return wrong(t, bad); // these inputs are no samples
  Replay r;
  replay_init(&r, t->a, p, kernels, tiles);
  const double **feed = NEW_N(t->a, const double *, nargs + 1);
  const Fn *now = m->fn.at[1];
  for (uint32_t i = 0; i < now->arg.n; i++)                            // plan inputs are in the order of the arguments
    feed[i] = in[i];
  replay_run(&r, now->name, true, feed);
  for (uint32_t i = 0; i < n; i++) {
    const PlanOutput *out = &p->output.at[i + m->output.n];            // behind the module's own
    int64_t count = plan_count(p, out->dim, out->ndim, false);
    double *got = NEW_N(t->a, double, count + 1);
    replay_values(p, out->dim, out->ndim, out->dtype, replay_at(&r, (PlanArg){out->buffer, 0}), got);
    if (!same(t, want[i], got, count, name[i])) return false;
  }
  return true;
}

// The first value that alone comes out wrong: its node.
static void narrow(Test *t, RandomGraph o, bool simplify) {
  Arena *a = t->a = arena_create();
  Module *m = random_graph(a, t->seed, o);
  const Fn *f = m->fn.at[1];
  for (ValId v = 1; v < f->val.n; v++) {
    if (!f->val.at[v].def) continue;
    Test one = {.seed = t->seed, .a = arena_create(), .tolerance = t->tolerance, .only = v, .quiet = true};
    bool ok = check(&one, o, simplify);
    one.quiet = false;
    if (!ok) check(&one, o, simplify);
    arena_destroy(one.a);
    if (!ok) break;
  }
  arena_destroy(a);
}

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 500, 20000);
  Test t = {.seed = s.first};
  bool ok = true;
  for (; t.seed < s.end && ok; t.seed++) {
    RandomGraph o = {.empty = t.seed % 5 == 0};
    t.tolerance = 1e-9;
    if (t.seed % 4 == 2) o = (RandomGraph){.dtype = DT_f32, .smooth = true}, t.tolerance = 1e-4;
    if (t.seed % 4 == 3) o.draws = true;
    t.a = arena_create();
    ok = check(&t, o, t.seed % 3 != 0);
    arena_destroy(t.a);
    if (!ok) narrow(&t, o, t.seed % 3 != 0);
  }
  return !ok;
}
