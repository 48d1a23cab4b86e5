// Attention and its gradient through the backend: random shapes, layouts, masks and formats. The kernels take both (nothing is
// opened), and what they give is what the interpreter says of the definition and its derivative in f64.
//
//   attention [FIRST [COUNT]]     seeds; MT_LONG=1 takes 3,000
#include "compiler/interp.h"
#include "compiler/vjp.h"
#include "passes/emit.h"
#include "passes/pass.h"
#include "tests/backend/replay.h"
#include "tests/diff/model.h"
#include "tests/seeds.h"
#include <math.h>
#include <string.h>

typedef struct { uint64_t seed, state; Arena *a; const char *text; } Test;

static uint32_t pick(Test *t, uint32_t n) { return t->state = hash_mix(t->state, 17), (uint32_t)((t->state >> 20) % n); }
static const char *one_of(Test *t, const char *const *of, uint32_t n) { return of[pick(t, n)]; }
#define ONE_OF(...) one_of(t, (const char *const[]){__VA_ARGS__}, (uint32_t)(sizeof (const char *const[]){__VA_ARGS__} / sizeof(char *)))

static bool wrong(const Test *t, const char *what) {
  printf("seed %llu: %s\n%s", (unsigned long long)t->seed, what, t->text);
  return false;
}

static const char *random_text(Test *t) {
  static const int lengths[] = {1, 3, 17, 32, 33, 64, 65, 70, 130};
  Text o;
  text_init(&o, t->a);
  int s = lengths[pick(t, COUNT(lengths))], keys = lengths[pick(t, COUNT(lengths))];
  bool stacked = pick(t, 3) == 0, group = !stacked && pick(t, 2), same = stacked || pick(t, 2);
  const char *pad = stacked || pick(t, 3) ? "" : " pad 8";
  text_printf(&o, "dim batch\ndim s = %d%s\n", s, pad);
  if (same) text_puts(&o, "dim t = s\n");
  else text_printf(&o, "dim t = %d%s\n", keys, pick(t, 3) ? "" : " pad 16");
  text_printf(&o, "dim h = %u\ndim d = %s\ndim three = 3\n", 1 + pick(t, 9), ONE_OF("1", "5", "8", "16", "32", "33", "64"));
  if (group) text_printf(&o, "dim g = %u\n", 1 + pick(t, 3));
  const char *mask = ONE_OF("", "", "batch, t", "t, batch", "s, t", "batch, s, t");
  text_puts(&o, "model T(");
  if (stacked) text_printf(&o, "x: [%s]", ONE_OF("batch, s, three, h, d", "batch, three, h, s, d", "h, batch, s, d, three"));
  else if (group) text_printf(&o, "q: [%s], k: [%s], v: [%s]", ONE_OF("batch, s, h, g, d", "batch, g, h, s, d", "g, d, batch, h, s"), ONE_OF("batch, t, h, d", "d, batch, h, t"), ONE_OF("batch, t, h, d", "batch, h, t, d"));
  else text_printf(&o, "q: [%s], k: [%s], v: [%s]", ONE_OF("batch, s, h, d", "h, s, d, batch"), ONE_OF("batch, t, h, d", "batch, h, t, d"), ONE_OF("batch, t, h, d", "t, batch, d, h"));
  if (*mask) text_printf(&o, ", m: bool[%s]", mask);
  const char *y = group ? "batch, s, h, g, d" : "batch, s, h, d";
  text_printf(&o, ", w: [%s]) -> (loss: f32[], y: [%s]) {\n", y, y);
  if (stacked) text_puts(&o, "  q, k, v = unstack[three](x)\n  k, v = rename[s -> t](k, v)\n");
  text_printf(&o, "  y = attention[s, t, d](q, k, v, causal = %s%s%s%s)\n  loss = f32(sum[%s](y * w))\n}\n", pick(t, 3) ? "true" : "false",
              ONE_OF("", "", ", window = 1", ", window = 20", ", window = 90", ", scale = 0.7"), *mask ? ", where = m" : "", ONE_OF("", "", ", dropout = 0.3"), y);
  text_printf(&o, "precision { compute = f64; keep f32: softmax }\ntrain { minimize = loss; micro_batch = %u; global_batch = 4 }\n", 1u << pick(t, 3));
  return o.s;
}

static Fn *gradient(Test *t, const char *compute, bool opened) {       // results: y, then the gradients
  char setting[64];
  snprintf(setting, sizeof setting, "precision.compute=%s", compute);
  Module *m = model_lower(t->a, t->text, (const char *const[]){setting, 0});
  if (!m || !model_passes(m, "precision")) return 0;
  Fn *f = model_fn(m, "forward"), *g = vjp_function(m, f, intern(m->in, "gradient"), opened);
  for (NodeId n = 1; n < g->node.n; n++) {                             // y, the other factor of w, beside the gradients
    const ValId *in = node_in(g, fn_node(g, n));
    if (fn_node(g, n)->op != OP_mul || fn_node(g, n)->fwd || !g->val.at[in[1]].name || strcmp(g->val.at[in[1]].name, "w")) continue;
    ir_return(g, in[0], "y");
    break;
  }
  for (uint32_t i = 0; i < g->arg.n; i++)
    if (!g->val.at[g->arg.at[i]].name) g->val.at[g->arg.at[i]].name = intern_printf(m->in, "seed%u", i);
  for (FnId i = m->fn.n; i-- > 1;)
    if (!m->fn.at[i]->is_body && m->fn.at[i] != g) fn_remove(m, m->fn.at[i]);
  return g;
}

static double **values(Test *t, const Fn *g, const Fn *like) {         // of g's arguments, as the other's formats hold them
  double **x = NEW_N(t->a, double *, g->arg.n + 1);
  for (uint32_t i = 0; i < g->arg.n; i++) {
    int64_t n = interp_count(g->module, g->val.at[g->arg.at[i]].type);
    DType to = val_type(like, like->arg.at[i])->dtype;
    x[i] = NEW_N(t->a, double, n + 1);
    for (int64_t k = 0; k < n; k++) {
      double u = (double)(hash_mix(t->seed * 31 + i, (uint64_t)k) >> 11) * 0x1p-53;
      x[i][k] = to == DT_bool ? u < 0.7 : dtype_round(to, 4 * u - 2);
    }
  }
  return x;
}

static bool check(Test *t) {
  static const char *const formats[] = {"f64", "f32", "bf16", "f16"};
  const char *compute = formats[t->seed % 4];
  // least: what should be 0 is a difference of large terms; in bf16 one of them is made from the rounded result
  static const double tolerance[] = {1e-10, 1e-4, 0x1p-4, 0x1p-7}, least_error[] = {1e-10, 5e-5, 0x1p-3, 0x1p-6};
  double tol = tolerance[t->seed % 4], least = least_error[t->seed % 4];
  t->state = t->seed, t->text = random_text(t);
  Fn *ref = gradient(t, "f64", true), *g = gradient(t, compute, false);
  if (!ref || !g) return wrong(t, "the text is refused");
  double queries = (double)dim_of(ref->module, dim_find(ref->module, intern(ref->module->in, "s")))->extent;
  if (t->seed % 4 >= 2) least = fmax(least, (t->seed % 4 == 2 ? 0x1p-6 : 0x1p-9) * sqrt(queries));   // of as many terms, each rounded
  double **in = values(t, ref, g), **want = NEW_N(t->a, double *, ref->ret.n);
  Interp *it = interp_create(t->a, ref->module);
  for (uint32_t i = 0; i < ref->ret.n; i++) want[i] = NEW_N(t->a, double, interp_count(ref->module, ref->val.at[ref->ret.at[i]].type) + 1);
  static const struct { const char *name; double at; } place[] = {{"$seed", 77}, {"$step", 5}, {"$sample", 3}};
  interp_seed(it, (uint64_t)place[0].at);
  for (int i = 1; i < 3; i++) interp_set(it, model_var(ref->module, place[i].name), &place[i].at);
  if (!interp_run(it, ref, (const double *const *)in, want)) return wrong(t, interp_fault(it));
  Module *m = g->module;
  FnId id = fn_id(g);
  if (!pass_simplify(m) || !pass_select(m) || !pass_simplify(m) || !ir_verify(m, "select")) return wrong(t, "a pass fails");
  const Fn *f = 0;
  for (id = 1; id < m->fn.n; id++)
    if (!m->fn.at[id]->is_body) f = m->fn.at[id];
  uint32_t kept = 0, n = f->ret.n;
  if (strcmp(f->ret_name.at[n - 1], "y")) return wrong(t, "y is not found");
  for (NodeId i = 1; i < f->node.n; i++) kept += fn_node(f, i)->op == OP_attention || fn_node(f, i)->op == OP_attention_grad;
  if (kept != 2) return wrong(t, "attention or its gradient is opened");
  const Kernel *const *kernels;
  const Tile *const *tiles;
  Plan *p = emit(m, (EmitOptions){.model = "attention", .kernels = &kernels, .tiles = &tiles});
  Text file;
  text_init(&file, t->a);
  plan_write(p, &file);
  const char *bad = plan_verify(p, t->a);
  if (bad && !strstr(bad, "the dim of samples")) return wrong(t, bad);
  Replay r;
  replay_init(&r, t->a, p, kernels, tiles);
  for (int i = 0; i < 3; i++) {
    uint32_t slot = plan_find_slot(p, place[i].name);
    int64_t value = (int64_t)place[i].at;
    if (slot) memcpy(r.memory[MEM_scalars] + p->slot.at[slot - 1].at, &value, 8);
  }
  const double **feed = NEW_N(t->a, const double *, f->arg.n + 1);
  for (uint32_t i = 0; i < f->arg.n; i++) feed[i] = in[i];
  replay_run(&r, f->name, true, feed);
  for (uint32_t i = 0; i < n; i++) {
    const PlanOutput *out = &p->output.at[i + m->output.n];
    int64_t count = plan_count(p, out->dim, out->ndim, false);
    double *got = NEW_N(t->a, double, count + 1), square = 0, some = 0;
    replay_values(p, out->dim, out->ndim, out->dtype, replay_at(&r, (PlanArg){out->buffer, 0}), got);
    for (int64_t k = 0; k < count; k++) square += want[i][k] * want[i][k], some += want[i][k] != 0;
    double rms = some > 0 ? sqrt(square / some) : 0;                  // of those that are not hidden
    for (int64_t k = 0; k < count; k++)
      if (!(fabs(got[k] - want[i][k]) <= tol * (fabs(want[i][k]) + rms) + least))
        return wrong(t, arena_printf(t->a, "%s: %s[%lld] is %.17g, the definition gives %.17g", compute, f->ret_name.at[i], (long long)k, got[k], want[i][k]));
  }
  return true;
}

int main(int argc, char **argv) {
  Seeds s = seeds_of(argc, argv, 80, 4000);
  Test t = {.seed = s.first};
  bool ok = true;
  for (; t.seed < s.end && ok; t.seed++) {
    t.a = arena_create();
    ok = check(&t);
    arena_destroy(t.a);
  }
  return !ok;
}
