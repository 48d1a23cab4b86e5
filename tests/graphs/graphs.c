// graphs.c -- random graphs are what they promise, and come back from their text as they were.
//
//   graphs [FIRST [COUNT]]     seeds; MT_LONG=1 takes 20,000
#include "passes/pass.h"
#include "compiler/interp.h"
#include "tests/graphs/random_graph.h"
#include "tests/seeds.h"
#include <math.h>
#include <string.h>

typedef struct { uint64_t seed; Arena *a; uint64_t ops[OP_COUNT]; } Test;

static bool wrong(const Test *t, const char *what, const Module *m) {
  Text s;
  text_init(&s, t->a);
  ir_print(&s, m);
  printf("seed %llu: %s\n%s", (unsigned long long)t->seed, what, s.s);
  return false;
}

static const char *print(Arena *a, const Module *m) {
  Text s;
  text_init(&s, a);
  ir_print(&s, m);
  return s.s;
}

static bool text_same(const Test *t, const Module *m) {
  Diag *d = NEW(t->a, Diag);
  diag_init(d, t->a);
  const char *s = print(t->a, m);
  Module *again = ir_parse(t->a, intern_create(t->a), d, diag_source(d, "again", s, strlen(s)));
  if (!again) return wrong(t, "its text does not parse", m);
  return !strcmp(print(t->a, again), s) || wrong(t, "its text comes back otherwise", m);
}

static bool run(const Test *t, Module *m, double *loss) {
  const Fn *f = fn_find(m, intern(m->in, "forward"));
  Interp *it = interp_create(t->a, m);
  double **in = random_inputs(t->a, f, t->seed);
  if (!interp_run(it, f, (const double *const *)in, (double *[]){loss})) return wrong(t, interp_fault(it), m);
  return isfinite(*loss) || wrong(t, "the loss is not finite", m);
}

static bool simplified_same(const Test *t, Module *m) {
  double was, now;
  if (!run(t, m, &was)) return false;
  if (!passes_run(m, PASS_simplify, (RunOptions){0})) return wrong(t, "simplify fails", m);
  if (!run(t, m, &now)) return false;
  return !memcmp(&was, &now, sizeof was) || wrong(t, arena_printf(t->a, "simplify: %.17g became %.17g", was, now), m);
}

static bool check(Test *t, RandomGraph o) {
  t->a = arena_create();
  Module *m = random_graph(t->a, t->seed, o);
  const Fn *f = m->fn.at[1];
  for (NodeId n = 1; n < f->node.n; n++) t->ops[fn_node(f, n)->op]++;
  bool ok = ir_verify(m, "random") || wrong(t, "does not verify", m);
  ok = ok && text_same(t, m);
  ok = ok && simplified_same(t, m) && text_same(t, m);
  arena_destroy(t->a);
  return ok;
}

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 500, 20000);
  Test t = {.seed = s.first};
  bool ok = true;
  for (; t.seed < s.end; t.seed++) {
    RandomGraph o = {.narrow = true, .empty = true};
    if (t.seed % 4 == 1) o = (RandomGraph){.smooth = true};
    if (t.seed % 4 == 2) o.dtype = DT_f32;
    if (t.seed % 4 == 3) o.dtype = DT_float, o.narrow = false;
    o.draws = t.seed % 2;
    ok &= check(&t, o);
  }
  for (Op op = OP_none + 1; op < OP_COUNT && s.count >= 500; op++)
    if (random_makes(op) && t.ops[op] < s.count / 20)
      printf("only %llu times %s\n", (unsigned long long)t.ops[op], op_info[op].name), ok = false;
  return !ok;
}
