// Whole steps: a linear regression written as IR text, on one rank and on dp=2 cp=2, against plain loops. Denominators,
// accumulation over microbatches, the schedule, a skipped update, gradients and parameters through files; and that ranks
// which differ are found.
#include "compiler/interp.h"
#include "runtime/safetensors.h"
#include "tests/interp/fd.h"
#include "tests/interp/world.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { STEPS = 4, SAMPLES = 6, BATCH = 2, D = 3 };

// loss = Σ mask·(x·w - y)² / Σ mask over the step; w -= lr · gradient
static const char text[] =
  "dim batch = 2 sample\ndim d = 3 size 4\ndim two = 2\n"
  "set train.global_batch = 6\nset train.steps = 4\nset train.optimizer = sgd(lr = 0.5)\nset train.schedule = linear(warmup = 1)\n"
  "output loss coef 1 per_step ; t:1:1\n"
  "var param @\"lin.{two:a,b}.weight\" : f64[two, d] = zeros ; t:1:1\n"
  "var grad @\"lin.{two:a,b}.weight:grad\" : f64[two, d] sum(dp) of @\"lin.{two:a,b}.weight\" ; t:1:1 \"t\"\n"
  "var scalar @$step : i64[]\nvar scalar @$sample : i64[]\nvar scalar @$lr : f64[]\nvar scalar @$den0 : f64[]\nvar scalar @$out.loss : f64[]\n"
  "var scalar @$grad_norm : f64[]\nvar scalar @$ok : f64[]\n"
  "fn prologue(%1 mask: i32[batch|dp]) -> () {\n"
  "  %2 = sum[batch](%1) : i32[] sum(dp) ; t:2:1 \"t\"\n"
  "  %3 = all_reduce(%2, over = dp) : i32[] ; t:2:1 \"t\"\n"
  "  %4 = cast(%3) : f64[] ; t:2:1 \"t\"\n"
  "  accumulate @$den0, %4 ; t:2:1 \"t\"\n"
  "}\n"
  "fn micro(%1 x: f64[batch|dp, d], %2 y: f64[batch|dp, two], %3 mask: i32[batch|dp]) -> () {\n"
  "  %4 = read @\"lin.{two:a,b}.weight\" : f64[two, d] ; t:2:1 \"t\"\n"
  "  %5 = dot[d](%1, %4) : f64[batch|dp, two] ; t:2:1 \"t\"\n"
  "  %6 = sub(%5, %2) : f64[batch|dp, two] ; t:2:1 \"t\"\n"
  "  %7 = cast(%3) : f64[batch|dp] ; t:2:1 \"t\"\n"
  "  %8 = mul(%6, %7) : f64[batch|dp, two] ; t:2:1 \"t\"\n"
  "  %9 = mul(%8, %6) : f64[batch|dp, two] ; t:2:1 \"t\"\n"
  "  %10 = sum[batch, two](%9) : f64[] sum(dp) ; t:2:1 \"t\"\n"
  "  %11 = read @$den0 : f64[] ; t:2:1 \"t\"\n"
  "  %12 = const 0 : f64[] ; t:2:1 \"t\"\n"
  "  %13 = gt(%11, %12) : bool[] ; t:2:1 \"t\"\n"
  "  %14 = const 1 : f64[] ; t:2:1 \"t\"\n"
  "  %15 = div(%14, %11) : f64[] ; t:2:1 \"t\"\n"
  "  %16 = select(%13, %15, %12) : f64[] ; t:2:1 \"t\"\n"
  "  %17 = mul(%10, %16) : f64[] sum(dp) ; t:2:1 \"t\"\n"
  "  %18 = all_reduce(%17, over = dp) : f64[] ; t:2:1 \"t\"\n"
  "  accumulate @$out.loss, %18 ; t:2:1 \"t\"\n"
  "  %19 = const 2 : f64[] ; t:2:1 \"t\"\n"
  "  %20 = mul(%16, %19) : f64[] ; t:2:1 \"t\"\n"
  "  %21 = mul(%8, %20) : f64[batch|dp, two] ; t:2:1 \"t\"\n"
  "  %22 = dot[batch](%21, %1) : f64[two, d] sum(dp) ; t:2:1 \"t\"\n"
  "  accumulate @\"lin.{two:a,b}.weight:grad\", %22 ; t:2:1 \"t\"\n"
  "}\n"
  "fn update() -> () {\n"
  "  %1 = read @\"lin.{two:a,b}.weight:grad\" : f64[two, d] sum(dp) ; t:3:1 \"t\"\n"
  "  %2 = all_reduce(%1, over = dp) : f64[two, d] ; t:3:1 \"t\"\n"
  "  %3 = read @\"lin.{two:a,b}.weight\" : f64[two, d] ; t:3:1 \"t\"\n"
  "  %4 = read @$lr : f64[] ; t:3:1 \"t\"\n"
  "  %5 = mul(%2, %4) : f64[two, d] ; t:3:1 \"t\"\n"
  "  %6 = sub(%3, %5) : f64[two, d] ; t:3:1 \"t\"\n"
  "  write @\"lin.{two:a,b}.weight\", %6 ; t:3:1 \"t\"\n"
  "  %7 = mul(%2, %2) : f64[two, d] ; t:3:1 \"t\"\n"
  "  %8 = sum[two, d](%7) : f64[] ; t:3:1 \"t\"\n"
  "  %9 = sqrt(%8) : f64[] ; t:3:1 \"t\"\n"
  "  write @$grad_norm, %9 ; t:3:1 \"t\"\n"
  "  %10 = read @$den0 : f64[] ; t:3:1 \"t\"\n"
  "  %11 = const 0 : f64[] ; t:3:1 \"t\"\n"
  "  %12 = gt(%10, %11) : bool[] ; t:3:1 \"t\"\n"
  "  %13 = cast(%12) : f64[] ; t:3:1 \"t\"\n"
  "  write @$ok, %13 ; t:3:1 \"t\"\n"
  "}\n"
  "fn unequal(%1 x: f64[batch|dp]) -> (s: %2) {\n"
  "  %2 = sum[batch](%1) : f64[] sum(dp) ; t:9:1 \"t\"\n"
  "}\n";

static Module *parsed(Arena *a, bool mesh) {
  int n = mesh ? 2 : 1;
  return module_text(a, arena_printf(a, "mesh dp = %d, cp = %d\n%s", n, n, text));
}

static double x[STEPS][SAMPLES][D], y[STEPS][SAMPLES][2], mask[STEPS][SAMPLES];
static void draw(void) {
  uint64_t seed = 11;
  fd_fill(&x[0][0][0], STEPS * SAMPLES * D, &seed, -1, 1);
  fd_fill(&y[0][0][0], STEPS * SAMPLES * 2, &seed, -1, 1);
  for (int s = 0; s < STEPS; s++)
    for (int i = 0; i < SAMPLES; i++) mask[s][i] = s != 2 && fd_random(&seed, 0, 1) < 0.7;    // step 2 has nothing to learn from
}

static double reference(int step, const double *w, double *grad) {
  double loss = 0, den = 0;
  for (int k = 0; k < 2 * D; k++) grad[k] = 0;
  for (int i = 0; i < SAMPLES; i++) den += mask[step][i];
  for (int i = 0; i < SAMPLES && den > 0; i++)
    for (int t = 0; t < 2; t++) {
      double e = -y[step][i][t];
      for (int k = 0; k < D; k++) e += x[step][i][k] * w[t * D + k];
      loss += mask[step][i] * e * e / den;
      for (int k = 0; k < D; k++) grad[t * D + k] += 2 * mask[step][i] * e * x[step][i][k] / den;
    }
  return loss;
}

static void near(double got, double want, const char *what) {
  if (!(fabs(got - want) <= 1e-14 * (1 + fabs(want)))) fail_msg("%s is %.17g, not %.17g", what, got, want);
}

typedef struct { Interp *it; VarId var; double got[2 * D]; int calls; } Seen;
static void see(void *arg) {
  Seen *s = arg;
  assert_true(interp_get(s->it, s->var, s->got));
  s->calls++;
}

static void steps_test(void **state) {
  (void)state;
  draw();
  for (int mesh = 0; mesh < 2; mesh++) {
    Arena *a = arena_create();
    Module *m = parsed(a, mesh);
    Interp *it = interp_create(a, m);
    VarId w = var_find(m, intern(m->in, "lin.{two:a,b}.weight"));
    Training *t;
    assert_int_equal(training_create(a, it, &t), 0);
    assert_int_equal(training_samples(t), SAMPLES);
    double at[2 * D] = {1, 2, 3, 4, 5, 6}, grad[2 * D], got[2 * D];
    static const double lr[STEPS] = {0, .5, .5 * 2 / 3, .5 * 2 / 3};       // the skipped update 2 does not count
    interp_set(it, w, at);
    for (int s = 0; s < STEPS; s++) {
      Feed feed[] = {{"y", y[s][0]}, {"mask", mask[s]}, {"x", x[s][0]}};
      Seen seen = {.it = it, .var = var_find(m, intern(m->in, "lin.{two:a,b}.weight:grad"))};
      StepLog log;
      assert_int_equal(training_step(t, feed, 3, see, &seen, &log), 0);
      double loss = reference(s, at, grad), norm = 0;
      near(log.output[0], loss, "the loss");
      near(log.lr, lr[s], "lr");
      assert_int_equal(log.updated, s != 2);
      assert_int_equal(seen.calls, 1);
      assert_true(interp_get(it, w, got));
      for (int k = 0; k < 2 * D; k++) {
        near(seen.got[k], grad[k], "a gradient");
        norm += grad[k] * grad[k];
        near(got[k], at[k] -= lr[s] * grad[k], "a parameter");
      }
      near(log.grad_norm, sqrt(norm), "the norm");
    }
    arena_destroy(a);
  }
}

static void files_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  char path[] = "/tmp/interp_step_XXXXXX";
  close(mkstemp(path));
  Module *m = parsed(a, true);
  Interp *it = interp_create(a, m);
  VarId w = var_find(m, intern(m->in, "lin.{two:a,b}.weight"));
  Training *t;
  double at[2 * D] = {1, 2, 3, 4, 5, 6}, got[2 * D] = {0};
  assert_int_equal(training_create(a, it, &t), 0);
  interp_set(it, w, at);
  assert_int_equal(training_save(t, path, VAR_param), 0);
  Safetensors file;
  assert_int_equal(safetensors_open(a, path, &file), 0);
  assert_int_equal(file.tensor.n, 2);
  const Tensor *b = safetensors_find(&file, "lin.b.weight");
  assert_true(b && b->dtype == DT_f64 && b->ndim == 1 && b->shape[0] == D);
  safetensors_close(&file);
  interp_set(it, w, got);
  assert_int_equal(training_load(t, path), 0);
  assert_true(interp_get(it, w, got));
  assert_memory_equal(at, got, sizeof at);
  // a tensor that is missing, one too many, one of another shape: refused
  static const int64_t three = 3, two = 2;
  Tensor part[] = {{.name = "lin.a.weight", .dtype = DT_f64, .ndim = 1, .shape = &three, .count = 3, .bytes = 24, .data = at},
                   {.name = "lin.b.weight", .dtype = DT_f64, .ndim = 1, .shape = &three, .count = 3, .bytes = 24, .data = at},
                   {.name = "lin.c.weight", .dtype = DT_f64, .ndim = 1, .shape = &three, .count = 3, .bytes = 24, .data = at}};
  for (size_t n = 0; n <= 3; n++) {
    assert_int_equal(safetensors_write(a, path, part, n, 0, 0, 0), 0);
    assert_int_equal(training_load(t, path), n == 2 ? 0 : EXIT_INPUT);
  }
  part[1].shape = &two, part[1].count = 2, part[1].bytes = 16;
  assert_int_equal(safetensors_write(a, path, part, 2, 0, 0, 0), 0);
  assert_int_equal(training_load(t, path), EXIT_INPUT);
  unlink(path);
  arena_destroy(a);
}

// a sum that nobody made stays different on the ranks; interp_get and the check after each node say so
static void faults_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Module *m = parsed(a, true);
  const Fn *f = fn_find(m, intern(m->in, "unequal"));
  Fn *whole = (Fn *)(uintptr_t)f;
  double in[2] = {1, 2};
  Type scalar = *val_type(f, 2);
  scalar.pending = PENDING_none, scalar.pending_axes = 0;
  whole->val.at[2].type = type_intern(m, scalar);       // claimed to be whole
  Interp *it = interp_create(a, m);
  assert_false(interp_run(it, f, (const double *const[]){in}, 0));
  assert_non_null(strstr(interp_fault(it), "sum in unequal"));
  assert_non_null(strstr(interp_fault(it), "ranks 0 and 2 should hold the same"));
  in[1] = 1;                                            // by chance the same
  assert_true(interp_run(it, f, (const double *const[]){in}, 0));
  arena_destroy(a);
}

// a run without a checkpoint begins as mtrun's: zeros here, and a drawn one has its deviation, on every mesh the same
static void draw_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  double got[2][2 * D];
  for (int mesh = 0; mesh < 2; mesh++) {
    Module *m = parsed(a, mesh);
    VarId w = var_find(m, intern(m->in, "lin.{two:a,b}.weight"));
    m->var.at[w].init = INIT_normal, m->var.at[w].a = 0.02;
    Interp *it = interp_create(a, m);
    Training *t;
    assert_int_equal(training_create(a, it, &t), 0);
    assert_int_equal(training_draw(t), 0);
    assert_true(interp_get(it, w, got[mesh]));
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
  double s = 0;
  for (int k = 0; k < 2 * D; k++) s += got[0][k] * got[0][k];
  s = sqrt(s / (2 * D));
  assert_true(s > 0.005 && s < 0.05);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_test), cmocka_unit_test(files_test), cmocka_unit_test(draw_test), cmocka_unit_test(faults_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
