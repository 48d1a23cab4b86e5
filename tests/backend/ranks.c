// ranks.c -- random graphs under random rules, forward and backward, as compiled programs on the ranks of random meshes:
// every rank's part of every result is what the interpreter computes on one rank.
//
//   ranks [FIRST [COUNT]]     seeds
#include "compiler/interp.h"
#include "compiler/vjp.h"
#include "passes/emit.h"
#include "passes/pass.h"
#include "runtime/exec.h"
#include "tests/graphs/random_graph.h"
#include "tests/seeds.h"
#include <math.h>
#include <string.h>

enum { RANKS = 8, RESULTS = 64 };
#define TOLERANCE 1e-11
static const char *const fns[] = {"forward", "backward"};

typedef struct {
  uint64_t seed;
  Arena *a;
  Plan *plan;
  Map input, want;                           // name -> its whole array (double *)
  uint32_t ran, colls;
  Str fn; ValId only;                        // a value of this function that is its one result; 0: the loss, and its gradients
  bool quiet;
} Test;

static Status wrong(const Test *t, const char *what) {
  if (!t->quiet) printf("seed %llu: %s\n", (unsigned long long)t->seed, what);
  fflush(stdout);
  return EXIT_INTERNAL;
}

// ---- whole arrays and a rank's part of them -----------------------------------------------------------------------
static double *array_of(const Map *m, Str name) {
  const uint64_t *at = map_get(m, key_of(name));
  return at ? (double *)(uintptr_t)*at : 0;
}

typedef struct { int64_t first, n; const PlanDim *whole; } Part;  // of a dim: entries of its storage

// The number of a stored entry in the whole array; -1: it is padding.
static int64_t entry(const Part *part, int64_t k) {
  const PlanDim *d = part->whole;
  k += part->first;
  if (d->chunks) {                           // stored as 0, n-1, 1, n-2, …
    int64_t length = d->size / d->chunks, c = k / length;
    k = (c % 2 ? d->chunks - 1 - c / 2 : c / 2) * length + k % length;
  }
  return k < d->extent ? k : -1;
}

// Calls act for each stored entry of rank's part: its number here, and in the whole array or -1.
static bool each(const Plan *p, const uint32_t *dim, uint32_t ndim, int64_t rank, bool (*act)(void *, int64_t, int64_t), void *with) {
  Part part[PLAN_DIMS];
  int64_t at[PLAN_DIMS] = {0}, all = 1;
  for (uint32_t i = 0; i < ndim; i++) {
    part[i].whole = plan_whole(p, dim[i]);
    plan_cut(p, &p->dim.at[dim[i]], rank, &part[i].first, &part[i].n);
    all *= part[i].n;
  }
  for (int64_t here = 0; here < all; here++) {
    int64_t whole = 0;
    for (uint32_t i = 0; i < ndim && whole >= 0; i++) {
      int64_t k = entry(&part[i], at[i]);
      whole = k < 0 ? -1 : whole * part[i].whole->extent + k;
    }
    if (!act(with, here, whole)) return false;
    for (uint32_t i = ndim; i-- > 0 && ++at[i] == part[i].n;) at[i] = 0;
  }
  return true;
}

typedef struct { const double *whole; char *here; DType dtype; double most; int64_t bad; double got, want; } Copy;

static bool put(void *with, int64_t here, int64_t whole) {
  const Copy *c = with;
  dtype_store(c->dtype, c->here + here * (int64_t)dtype_bytes(c->dtype), whole < 0 ? 0 : c->whole[whole]);
  return true;
}

static bool compare(void *with, int64_t here, int64_t whole) {
  Copy *c = with;
  if (whole < 0) return true;
  c->got = dtype_load(c->dtype, c->here + here * (int64_t)dtype_bytes(c->dtype)), c->want = c->whole[whole], c->bad = whole;
  return fabs(c->got - c->want) <= TOLERANCE * (c->most + 1) || c->got == c->want;
}

// ---- one rank -----------------------------------------------------------------------------------------------------
typedef struct { const Test *t; Comm *comm; } Feeding;

static Status feed(void *with, uint32_t input, int64_t microbatch, void *to) {
  const Feeding *f = with;
  const PlanInput *in = &f->t->plan->input.at[input];
  Copy c = {.whole = array_of(&f->t->input, in->name), .here = to, .dtype = in->dtype};
  (void)microbatch;
  each(f->t->plan, in->dim, in->ndim, comm_rank(f->comm), put, &c);
  return 0;
}

static Status compare_result(const Test *t, Dev *d, Comm *comm, const PlanOutput *o) {
  Copy c = {.whole = array_of(&t->want, o->name), .here = dev_at(d, (PlanArg){o->buffer, 0}), .dtype = o->dtype};
  int64_t n = 1;
  for (uint32_t i = 0; i < o->ndim; i++) n *= plan_whole(t->plan, o->dim[i])->extent;
  for (int64_t i = 0; i < n; i++) c.most = fmax(c.most, fabs(c.whole[i]));
  if (each(t->plan, o->dim, o->ndim, comm_rank(comm), compare, &c)) return 0;
  char what[200];
  snprintf(what, sizeof what, "rank %lld: %s[%lld] is %.17g, the interpreter says %.17g", (long long)comm_rank(comm), o->name,
           (long long)c.bad, c.got, c.want);
  return wrong(t, what);
}

static Status compute(const Test *t, Arena *a, Comm *comm, Dev **d) {
  Exec x;
  Feeding f = {t, comm};
  TRY(dev_open(a, t->plan, (DevOptions){.threads = 1, .comm = comm}, d));
  TRY(exec_init(&x, t->plan, *d));
  dev_feed(*d, feed, &f);
  for (size_t k = 0; k < COUNT(fns) && plan_find_fn(t->plan, fns[k]); k++) {
    dev_cell(*d, &(DevCell){.fn = plan_find_fn(t->plan, fns[k]), .first = true});
    TRY(dev_sync(*d));
    for (uint32_t i = 0; i < t->plan->output.n; i++) {
      const PlanOutput *o = &t->plan->output.at[i];
      if (!strncmp(o->name, fns[k], strlen(fns[k]))) TRY(compare_result(t, *d, comm, o));
    }
  }
  return 0;
}

static Status rank_main(void *with, Comm *comm) {
  Arena *a = arena_create();
  Dev *d = 0;
  Status e = compute(with, a, comm, &d);
  dev_close(d);
  arena_destroy(a);
  return e;
}

// ---- a graph ------------------------------------------------------------------------------------------------------
// Results are named by their function, since a plan's outputs are those of all functions; gradients of results have none.
static void name_ends(Module *m) {
  for (size_t k = 0; k < COUNT(fns); k++) {
    Fn *f = fn_find(m, intern(m->in, fns[k]));
    if (!f) return;
    for (uint32_t i = 0; i < f->ret.n; i++) f->ret_name.at[i] = intern_printf(m->in, "%s.%u", fns[k], i);
    for (uint32_t i = 0; i < f->arg.n; i++)
      if (!f->val.at[f->arg.at[i]].name) f->val.at[f->arg.at[i]].name = intern_printf(m->in, "seed.%u", i);
  }
}

static Module *graph(Test *t, RandomGraph o) {
  Module *m = random_graph(t->a, t->seed, o);
  bool back = !t->only || t->fn == fns[1];
  if (back) vjp_function(m, fn_find(m, intern(m->in, "forward")), intern(m->in, "backward"), true);
  Fn *f = t->only ? fn_find(m, intern(m->in, t->fn)) : 0;
  if (f) f->ret.n = f->ret_name.n = 0, ir_return(f, t->only, "only");
  name_ends(m);
  return m;
}

static bool interpret(Test *t, const Module *m) {
  map_init(&t->input, t->a), map_init(&t->want, t->a);
  Interp *it = interp_create(t->a, m);
  for (size_t k = 0; k < COUNT(fns); k++) {
    const Fn *f = fn_find(m, intern(m->in, fns[k]));
    if (!f) return true;
    double **in = random_inputs(t->a, f, t->seed), **out = NEW_N(t->a, double *, f->ret.n);
    for (uint32_t i = 0; i < f->arg.n; i++) {
      Str name = plan_str(t->plan, f->val.at[f->arg.at[i]].name);
      double *had = array_of(&t->input, name);
      if (had) in[i] = had;
      map_put(&t->input, key_of(name), (uintptr_t)in[i]);
    }
    for (uint32_t i = 0; i < f->ret.n; i++) {
      out[i] = NEW_N(t->a, double, random_count(m, f->val.at[f->ret.at[i]].type) + 1);
      map_put(&t->want, key_of(plan_str(t->plan, f->ret_name.at[i])), (uintptr_t)out[i]);
    }
    if (!interp_run(it, f, (const double *const *)in, out)) return wrong(t, interp_fault(it)), false;
  }
  return true;
}

static bool verified(const Test *t) {
  Text file;
  text_init(&file, t->a);
  plan_write(t->plan, &file);
  const char *bad = plan_verify(t->plan, t->a);
  return !bad || strstr(bad, "the dim of samples") || wrong(t, bad) == 0; // these inputs are no samples
}

static RandomGraph options(const Test *t) {
  return (RandomGraph){.smooth = t->seed % 2, .empty = t->seed % 4 == 2, .draws = t->seed % 8 == 4};
}

static bool check(Test *t) {
  RandomGraph o = options(t);
  Module *one = graph(t, o), *m = graph(t, o);
  Text said;
  text_init(&said, t->a);
  random_rules(m, t->seed, RANKS);
  m->diag->to = &said;
  if (!pass_layout(m)) return strstr(said.s, "MT0311") || wrong(t, said.s) == 0;
  if (!pass_reshard(m) || !pass_shard(m) || !pass_simplify(m) || !pass_select(m) || !pass_simplify(m)) return wrong(t, "a pass fails") == 0;
  if (!ir_verify(m, "select")) return wrong(t, said.s) == 0;
  t->plan = emit(m, (EmitOptions){.model = "random", .apart = t->seed % 5 == 4});
  if (compile_objects(t->plan) || !verified(t) || !interpret(t, one)) return false;
  t->ran++, t->colls += t->plan->coll.n - 1;
  CommOptions how = {.as = t->seed % 3 ? RANKS_threads : RANKS_processes, .patience = 60};
  return !comm_launch(t->a, t->plan, dev_bytes(t->plan, 0), how, rank_main, t);
}

// The first value that alone comes out wrong: its function, and nothing else.
static void narrow(const Test *failed) {
  for (size_t k = 0; k < COUNT(fns); k++) {
    Test t = {.seed = failed->seed, .a = arena_create(), .quiet = true};
    Module *m = graph(&t, options(&t));        // both functions: nothing is asked for alone yet
    const Fn *f = fn_find(m, intern(m->in, fns[k]));
    t.fn = fns[k];
    for (t.only = f->arg.n + 1; t.only < f->val.n; t.only++) {
      Arena *a = t.a = arena_create();
      bool ok = check(&t);
      t.quiet = ok;
      if (!ok) {
        Text text;
        text_init(&text, a);
        check(&t), m = graph(&t, options(&t));
        random_rules(m, t.seed, RANKS), pass_simplify(m), ir_print(&text, m);
        fputs(text.s, stdout);
        return;
      }
      arena_destroy(a);
    }
  }
}

static bool one_seed(Test *t, uint64_t seed) {
  t->seed = seed, t->a = arena_create();
  bool ok = check(t);
  arena_destroy(t->a);
  if (!ok) narrow(t);
  return ok;
}

// Seeds that have found something: renames between orders, sums of bools, the padding of a part cut from what is not
// stored, a maximum of integers over a padded part, maxima that are scattered, an unslice of a padded part, a slice that
// ends near the end and whose part is taken, an unslice into a dim shorter than a part.
static const uint64_t found[] = {3, 11, 210, 111, 306, 235, 676, 945};

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 100, 5000);
  Test t = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < COUNT(found); i++) ok = one_seed(&t, found[i]);
  for (uint64_t seed = s.first; ok && seed < s.end; seed++) ok = one_seed(&t, seed);
  if (ok && s.count >= 100 && (t.ran < s.count / 4 || t.colls < s.count))
    printf("only %u of %llu graphs ran, with %u collectives\n", t.ran, (unsigned long long)s.count, t.colls), ok = false;
  return !ok;
}
