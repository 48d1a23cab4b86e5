// Products: random extents, strides, loops and formats against plain sums, and the same bits for any number of threads.
#include "runtime/gemm.h"
#include "runtime/onednn.h"
#include "runtime/panel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static uint64_t seed = 1;
static int64_t draw(int64_t below) { return (int64_t)((seed = hash_mix(seed, 1)) % (uint64_t)below); }

typedef struct { int64_t n, stride; } Loop;

// Strides for loops in a random order of nesting, the first of `order` the fastest; returns the elements.
static int64_t lay(Loop **order, int n) {
  int64_t step = 1;
  for (int i = 0; i < n; i++) order[i]->stride = step, step *= order[i]->n ? order[i]->n : 1;
  return step;
}

static double value_at(DType t, const void *p, int64_t i) {
  return dtype_load(t, (const char *)p + (size_t)i * dtype_bytes(t));
}

typedef struct { PlanGemm g; void *a, *b, *c; int64_t na, nb, nc; } Case;

static void offsets(const PlanGemm *g, int64_t turn, int64_t *a, int64_t *b) { // of the loops
  *a = *b = 0;
  for (uint32_t i = 0; i < g->nloop; i++) {
    *a += turn % g->loop[i].n * g->loop[i].a, *b += turn % g->loop[i].n * g->loop[i].b;
    turn /= g->loop[i].n;
  }
}

// In each turn of the loops the last entries of an extent become 0.
static void make_ragged(Case *x, int64_t turns) {
  PlanGemm *g = &x->g;
  g->ragged = (PlanRagged)(1 + draw(3));
  bool of_b = g->ragged == RAGGED_n;
  DType t = of_b ? g->b : g->a;
  int64_t n = g->ragged == RAGGED_m ? g->m : of_b ? g->n : g->k, step = g->ragged == RAGGED_m ? g->am : of_b ? g->bn : g->ak;
  int64_t inner = g->ragged == RAGGED_k ? g->m : g->k, along = g->ragged == RAGGED_k ? g->am : of_b ? g->bk : g->ak;
  for (int64_t turn = 0; turn < turns; turn++) {
    int64_t ao, bo;
    offsets(g, turn, &ao, &bo);
    for (int64_t i = draw(n + 1); i < n; i++)
      for (int64_t j = 0; j < inner; j++)
        dtype_store(t, (char *)(of_b ? x->b : x->a) + (size_t)((of_b ? bo : ao) + i * step + j * along) * dtype_bytes(t), 0);
  }
}

static Case random_case(Arena *arena, int round) {
  static const DType formats[][3] = {{DT_f64, DT_f64, DT_f64},    {DT_f32, DT_f32, DT_f32},
                                     {DT_bf16, DT_bf16, DT_bf16}, {DT_bf16, DT_bf16, DT_f32},
                                     {DT_f32, DT_bf16, DT_f32},   {DT_f16, DT_f16, DT_f16}};
  bool large = round % 35 == 34;             // 35: every format
  int64_t most = large ? 150 : 40;
  Case x = {.g = {.a = formats[round % 6][0], .b = formats[round % 6][1], .c = formats[round % 6][2]}};
  PlanGemm *g = &x.g;
  g->m = draw(most), g->n = draw(most), g->k = draw(large ? 2000 : most), g->nloop = (uint32_t)draw(large ? 1 : 4);
  g->alpha = draw(3) ? 1 : -0.5, g->accumulate = draw(2);
  Loop am = {g->m, 0}, ak = {g->k, 0}, bk = {g->k, 0}, bn = {g->n, 0}, cm = {g->m, 0}, cn = {g->n, 0}, la[4],
       lb[4], lc[4];
  Loop *oa[6] = {&am, &ak}, *ob[6] = {&bk, &bn}, *oc[6] = {&cm, &cn};
  if (draw(2)) oa[0] = &ak, oa[1] = &am;
  if (draw(2)) ob[0] = &bn, ob[1] = &bk;
  if (draw(2)) oc[0] = &cn, oc[1] = &cm;
  int na = 2, nb = 2, nc = 2;
  for (uint32_t i = 0; i < g->nloop; i++) {
    int64_t n = draw(4) ? 1 + draw(4) : draw(2);
    la[i] = lb[i] = lc[i] = (Loop){n, 0};
    if (draw(4)) oa[na++] = &la[i];
    if (draw(4)) ob[nb++] = &lb[i];
    if (draw(3)) oc[nc++] = &lc[i];
  }
  x.na = lay(oa, na), x.nb = lay(ob, nb), x.nc = lay(oc, nc);
  g->am = am.stride, g->ak = ak.stride, g->bk = bk.stride, g->bn = bn.stride, g->cm = cm.stride,
  g->cn = cn.stride;
  for (uint32_t i = 0; i < g->nloop; i++)
    g->loop[i] = (GemmLoop){la[i].n, la[i].stride, lb[i].stride, lc[i].stride};
  x.a = NEW_N(arena, double, x.na), x.b = NEW_N(arena, double, x.nb), x.c = NEW_N(arena, double, x.nc);
  for (int64_t i = 0; i < x.na; i++)
    dtype_store(g->a, (char *)x.a + (size_t)i * dtype_bytes(g->a), (double)draw(17) / 8 - 1);
  for (int64_t i = 0; i < x.nb; i++)
    dtype_store(g->b, (char *)x.b + (size_t)i * dtype_bytes(g->b), (double)draw(17) / 8 - 1);
  for (int64_t i = 0; i < x.nc; i++) {
    double v = g->accumulate ? (double)draw(17) / 8 - 1 : (double)NAN;      // what is overwritten does not matter
    dtype_store(g->c, (char *)x.c + (size_t)i * dtype_bytes(g->c), v);
  }
  int64_t turns = 1;
  for (uint32_t i = 0; i < g->nloop; i++) turns *= g->loop[i].n;
  if (draw(2)) make_ragged(&x, turns);
  return x;
}

static void plain(const Case *x, double *c) {
  const PlanGemm *g = &x->g;
  int64_t total = 1;
  for (uint32_t i = 0; i < g->nloop; i++) total *= g->loop[i].n;
  for (int64_t i = 0; i < x->nc; i++) c[i] = g->accumulate ? value_at(g->c, x->c, i) : 0;
  for (int64_t t = 0; t < total; t++) {
    int64_t ao = 0, bo = 0, co = 0, left = t;
    for (uint32_t i = 0; i < g->nloop; i++) {
      int64_t k = left % g->loop[i].n;
      left /= g->loop[i].n, ao += k * g->loop[i].a, bo += k * g->loop[i].b, co += k * g->loop[i].c;
    }
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++) {
        double s = 0;
        for (int64_t k = 0; k < g->k; k++)
          s += value_at(g->a, x->a, ao + i * g->am + k * g->ak) *
               value_at(g->b, x->b, bo + k * g->bk + j * g->bn);
        c[co + i * g->cm + j * g->cn] += g->alpha * s;
      }
  }
}

static bool moves_nothing(const PlanGemm *g) {             // a loop of no turns that moves c: there is no c
  for (uint32_t i = 0; i < g->nloop; i++)
    if (!g->loop[i].n && g->loop[i].c) return true;
  return !g->m || !g->n;
}

static void product(Arena *a, const Case *x, int threads) {
  Work *work;
  Gemms *gemms;
  Plan *p = plan_create(a);
  uint32_t id = plan_gemm(p, x->g);
  assert_int_equal(work_create(a, threads, &work), 0);
  assert_int_equal(gemm_open(a, p, threads, &gemms), 0);
  static const Str name[] = {[LIB_openblas] = "OpenBLAS", [LIB_onednn] = "oneDNN", [LIB_panels] = "panels"};
  assert_non_null(strstr(gemm_libraries(gemms), name[x->g.lib]));
  gemm_run(gemms, work, id, x->c, x->a, x->b);
  work_destroy(work), gemm_close(gemms);
}

static bool has(PlanLib lib, DType t) { return lib == LIB_onednn ? onednn_has(t) : panel_has(t); }

static void random_test(PlanLib lib) {
  for (int round = 0; round < 400; round++) {
    Arena *a = arena_create();
    uint64_t from = seed;
    Case x = random_case(a, round);
    seed = from;
    Case y = random_case(a, round);
    x.g.lib = y.g.lib = lib;
    bool f32 = x.g.a == DT_f32, bf16 = x.g.a == DT_bf16;
    if (lib != LIB_openblas && (x.g.a != x.g.b || !(f32 || bf16) || !has(lib, x.g.a))) {
      arena_destroy(a);
      continue;
    }
    double *want = NEW_N(a, double, x.nc);
    plain(&x, want);
    bool nothing = moves_nothing(&x.g);
    product(a, &x, 1), product(a, &y, 3);
    assert_memory_equal(x.c, y.c, (size_t)x.nc * dtype_bytes(x.g.c));
    double eps = x.g.c == DT_f64 ? 1e-14 : x.g.c == DT_f32 ? 2e-6 : x.g.c == DT_bf16 ? 0x1p-8 : 0x1p-10;
    for (int64_t i = 0; i < x.nc && !nothing; i++) {
      double got = value_at(x.g.c, x.c, i);
      if (!(fabs(got - want[i]) <= eps * (fabs(want[i]) + sqrt((double)x.g.k) + 1)))
        fail_msg("round %d seed %llu: c[%lld] is %g, not %g (m %lld n %lld k %lld, %s)", round,
                 (unsigned long long)from, (long long)i, got, want[i], (long long)x.g.m, (long long)x.g.n,
                 (long long)x.g.k, dtype_name(x.g.a));
    }
    arena_destroy(a);
  }
}

static void openblas(void **state) { (void)state, random_test(LIB_openblas); }
static void onednn(void **state) {
  (void)state;
  if (!onednn_has(DT_f32)) skip();
  random_test(LIB_onednn);
}
static void panels(void **state) {
  (void)state;
  if (!panel_has(DT_f32)) skip();
  random_test(LIB_panels);
}

// What a product leaves behind is not in the next one.
static void leftovers(void **state) {
  (void)state;
  if (!panel_has(DT_bf16)) skip();
  Arena *a = arena_create();
  Work *work;
  Gemms *gemms;
  Plan *p = plan_create(a);
  enum { N = 80, K = 37, BIG = 400 };
  uint32_t first = plan_gemm(p, (PlanGemm){LIB_panels, DT_f32, DT_f32, DT_f32, N, N, BIG, BIG, 1, N, 1, N, 1, 0, {{0}}, 1, false, RAGGED_none});
  uint32_t second[2];
  for (int t = 0; t < 2; t++)
    second[t] = plan_gemm(p, (PlanGemm){LIB_panels, DT_bf16, DT_bf16, DT_f32, N, N, K, t ? 1 : K, t ? N : 1, t ? 1 : N, t ? K : 1, N, 1,
                                        0, {{0}}, 1, false, RAGGED_none});
  assert_int_equal(work_create(a, 1, &work), 0);
  assert_int_equal(gemm_open(a, p, 1, &gemms), 0);
  float *nan = NEW_N(a, float, N * BIG), *c = NEW_N(a, float, N * N);
  uint16_t *one = NEW_N(a, uint16_t, N * K);
  for (int i = 0; i < N * BIG; i++) memset(&nan[i], 0xff, sizeof *nan);    // each half is none, too
  for (int i = 0; i < N * K; i++) one[i] = 0x3f80;
  for (int t = 0; t < 2; t++) {
    gemm_run(gemms, work, first, c, nan, nan);
    gemm_run(gemms, work, second[t], c, one, one);
    for (int i = 0; i < N * N; i++) assert_true(c[i] == K);
  }
  work_destroy(work), gemm_close(gemms), arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(openblas), cmocka_unit_test(onednn), cmocka_unit_test(panels),
                                     cmocka_unit_test(leftovers)};
  return cmocka_run_group_tests(tests, 0, 0);
}
