// Training steps with known right values, from model text to updated weights: reported bugs of other systems
// (optimizer, averaging, precision, randomness), and the optimizers against a loop written down here.
#include "tests/diff/model.h"
#include "tests/interp/fd.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

typedef struct { Arena *a; Module *m; Interp *it; Training *t; } Run;

static Run run_of(const char *text, const char *const *settings) {
  Run r = {.a = arena_create()};
  r.m = model_lower(r.a, text, settings);
  if (!r.m || !model_passes(r.m, "optimizer")) fail_msg("the text is refused");
  r.it = interp_create(r.a, r.m);
  assert_int_equal(training_create(r.a, r.it, &r.t), 0);
  return r;
}
static void run_end(Run *r) { arena_destroy(r->a); }

static void set(Run *r, const char *var, const double *x) { interp_set(r->it, model_var(r->m, var), x); }
static void set_all(Run *r, const char *var, double x) {
  VarId v = model_var(r->m, var);
  int64_t n = interp_count(r->m, r->m->var.at[v].type);
  double *all = NEW_N(r->a, double, n + 1);
  for (int64_t i = 0; i < n; i++) all[i] = x;
  interp_set(r->it, v, all);
}
static double *get(Run *r, const char *var) {
  VarId v = model_var(r->m, var);
  double *x = NEW_N(r->a, double, interp_count(r->m, r->m->var.at[v].type) + 1);
  assert_true(interp_get(r->it, v, x));
  return x;
}
static StepLog step(Run *r, const char *input, const double *x) {
  StepLog log;
  Feed feed = {intern(r->m->in, input), x};
  assert_int_equal(training_step(r->t, &feed, 1, 0, 0, &log), 0);
  return log;
}
static bool near(double got, double want, double tol) { return fabs(got - want) <= tol * fabs(want); }

// loss = mean of g·w: the gradient of w is the mean of g
#define LINEAR "dim batch\nmodel T(g: f32[batch]) -> (loss: f32[]) {\n  param w: [] ~ zeros\n  loss = mean[batch](g * w)\n}\n"
#define F64 "precision.compute=f64"

// O01: eps stands outside the root: one step of 0.5, not 0.0307
static void eps_outside(void **state) {
  (void)state;
  Run r = run_of(LINEAR, (const char *const[]){F64, "train.optimizer=adamw(lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0)", 0});
  assert_true(step(&r, "g", &(double){1e-8}).updated);
  assert_true(near(*get(&r, "w"), -0.5, 1e-12));
  run_end(&r);
}

// O03: zero gradients: drawn weights decay to 0.99, gains and biases stay exactly 1
static void decay_by_role(void **state) {
  (void)state;
  Run r = run_of("dim batch\ndim d = 3\nmodel T(g: f32[batch]) -> (loss: f32[]) {\n  param w: [d] ~ normal(0.02)\n  param scale7: [d] ~ ones\n  param b: [d] ~ zeros\n"
                 "  loss = mean[batch](g @[] (w + scale7 + b) @ w)\n}\n",
                 (const char *const[]){"train.optimizer=adamw(lr = 0.1, decay = 0.1)", 0});
  set_all(&r, "w", 1), set_all(&r, "scale7", 1), set_all(&r, "b", 1);
  assert_true(step(&r, "g", &(double){0}).updated);
  for (int i = 0; i < 3; i++) {
    assert_true(get(&r, "w")[i] == (float)0.99f);
    assert_true(get(&r, "scale7")[i] == 1 && get(&r, "b")[i] == 1);
  }
  run_end(&r);
}

// O05: a constant gradient moves by lr each step, the eleventh as well
static void eleventh_step(void **state) {
  (void)state;
  Run r = run_of(LINEAR, (const char *const[]){F64, "train.optimizer=adamw(lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 0, decay = 0)", "train.steps=11", 0});
  for (int i = 1; i <= 11; i++) {
    step(&r, "g", &(double){1});
    assert_true(near(*get(&r, "w"), -i, 1e-12));
  }
  run_end(&r);
}

// P02: an overflow in the second of three steps: weights and moments stay as they were, bit for bit; lr and the
// corrections follow the updates that were made
static void skipped_step(void **state) {
  (void)state;
  const char *const settings[] = {"train.optimizer=adamw(lr = 1, decay = 0.1)", "train.schedule=constant(warmup = 10)", "train.steps=20", 0};
  Run r = run_of(LINEAR, settings), clean = run_of(LINEAR, settings);
  set_all(&r, "w", 0.5), set_all(&clean, "w", 0.5);
  const double g[] = {1, INFINITY, 2, NAN, 3};
  for (int i = 0; i < 5; i++) {
    double before[3] = {*get(&r, "w"), *get(&r, "w:exp_avg"), *get(&r, "w:exp_avg_sq")};
    StepLog log = step(&r, "g", &g[i]);
    double after[3] = {*get(&r, "w"), *get(&r, "w:exp_avg"), *get(&r, "w:exp_avg_sq")};
    assert_true(log.updated == (isfinite(g[i]) != 0));
    if (!log.updated) {
      assert_memory_equal(before, after, sizeof before);
      continue;
    }
    StepLog same = step(&clean, "g", &g[i]);
    assert_true(log.lr == same.lr);
    double want[3] = {*get(&clean, "w"), *get(&clean, "w:exp_avg"), *get(&clean, "w:exp_avg_sq")};
    assert_memory_equal(after, want, sizeof want);
  }
  run_end(&r), run_end(&clean);
}

// G10 on one rank: gradients 3, 4 and 12, clip 6.5: norm 13, gradients halved (up to 1e-6 beside the norm)
static void clipping(void **state) {
  (void)state;
  Run r = run_of("dim batch\nmodel T(g: f32[batch]) -> (loss: f32[]) {\n  param a: [] ~ zeros\n  param b: [] ~ zeros\n  param c: [] ~ zeros\n"
                 "  loss = mean[batch](g * (3 * a + 4 * b + 12 * c))\n}\n",
                 (const char *const[]){F64, "train.optimizer=sgd(lr = 1)", "train.clip=6.5", "train.steps=2", 0});
  StepLog log = step(&r, "g", &(double){1});
  assert_true(near(log.grad_norm, 13, 1e-15));
  const char *const name[] = {"a", "b", "c"};
  const double g[] = {3, 4, 12};
  for (int i = 0; i < 3; i++) assert_true(near(*get(&r, name[i]), -g[i] * 6.5 / (13 + 1e-6), 1e-15));
  set_all(&r, "a", 0), set_all(&r, "b", 0), set_all(&r, "c", 0);
  log = step(&r, "g", &(double){0.25});                 // below: as it is
  assert_true(near(log.grad_norm, 3.25, 1e-15) && *get(&r, "c") == -3);
  run_end(&r);
}

// L01: two microbatches with 1 and 3 scored tokens of losses 4 and 0, 0, 0: loss 1, gradient 1, as one batch of 4
#define TOKENS "dim batch\ndim seq = 4\nmodel T(g: f32[batch, seq]) -> (loss: f32[]) {\n  param w: [] ~ ones\n" \
               "  loss = stepmean[batch, seq](g * w, where = g > -1)\n}\n"
static void mean_of_the_step(void **state) {
  (void)state;
  const double g[8] = {4, -9, -9, -9, 0, 0, 0, -9};
  for (int micro = 1; micro <= 2; micro++) {
    Run r = run_of(TOKENS, (const char *const[]){F64, micro == 1 ? "train.micro_batch=1" : "train.micro_batch=2", "train.global_batch=2", "train.optimizer=sgd(lr = 1)", 0});
    set_all(&r, "w", 1);
    StepLog log = step(&r, "g", g);
    assert_true(log.output[0] == 1 && log.grad_norm == 1 && *get(&r, "w") == 0);
    run_end(&r);
  }
}

// L04: a microbatch without a scored token adds nothing; a step without one is skipped and finite
static void nothing_scored(void **state) {
  (void)state;
  Run r = run_of(TOKENS, (const char *const[]){"train.micro_batch=1", "train.global_batch=2", "train.optimizer=adamw(lr = 1)", "train.steps=2", 0});
  set_all(&r, "w", 1);
  StepLog log = step(&r, "g", (const double[8]){-9, -9, -9, -9, -9, -9, -9, -9});
  assert_true(!log.updated && log.output[0] == 0 && log.grad_norm == 0 && *get(&r, "w") == 1 && *get(&r, "$den0") == 0);
  log = step(&r, "g", (const double[8]){-9, -9, -9, -9, 2, -9, 4, -9});
  assert_true(log.updated && log.output[0] == 3 && log.grad_norm == 3);
  run_end(&r);
}

// L06: microbatch gradients 1, 2, 3, 4 are one step of their mean
static void accumulation(void **state) {
  (void)state;
  Run r = run_of(LINEAR, (const char *const[]){F64, "train.optimizer=sgd(lr = 1)", "train.micro_batch=1", "train.global_batch=4", 0});
  step(&r, "g", (const double[4]){1, 2, 3, 4});
  assert_true(*get(&r, "w") == -2.5);
  run_end(&r);
}

// P04: bf16 weights, one gradient of 256 and 255 of 1: their sum is 511, which bf16 cannot count to
static void wide_accumulation(void **state) {
  (void)state;
  Run r = run_of(LINEAR, (const char *const[]){"precision.compute=bf16", "precision.params=bf16", "train.optimizer=sgd(lr = 1)", "train.micro_batch=1", "train.global_batch=256", 0});
  double g[256] = {65536};
  for (int i = 1; i < 256; i++) g[i] = 256;
  assert_true(step(&r, "g", g).grad_norm == 511);
  run_end(&r);
}

// P06: two-pass variance: layernorm in f32 of x_i = 1000 + 0.001·i and of a mean of 1e4
static void cancellation(void **state) {
  (void)state;
  const char *text = "dim batch\ndim d = 16\nmodel T(x: f32[batch, d]) -> (loss: f32[], y: f32[batch, d]) {\n  param g: [d] ~ ones\n  param b: [d] ~ zeros\n"
                     "  y = layernorm[d](x, g, b)\n  loss = mean[batch, d](y)\n}\n";
  const double mean[] = {1000, 10000}, want[] = {-1.3415, -1.3313}, tol[] = {0.005, 0.02};
  for (int k = 0; k < 2; k++) {
    Run r = run_of(text, (const char *const[]){"precision.compute=f32", "train.optimizer=sgd(lr = 1)", 0});
    set_all(&r, "g", 1);
    double x[16], y[16], *out[] = {y};
    const double *in[] = {x};
    for (int i = 0; i < 16; i++) x[i] = (float)(mean[k] + 0.001 * i);
    assert_true(interp_run(r.it, model_fn(r.m, "logits"), in, out));
    if (!(fabs(y[0] - want[k]) <= tol[k])) fail_msg("mean %g: %g", mean[k], y[0]);
    step(&r, "x", x);                                   // dgain is the mean of the normalised values: their sum is near 0
    double *dg = get(&r, "g:grad");
    for (int i = 0; i < 16; i++) assert_true(fabs(dg[i] - y[i] / 16) < 1e-6);
    run_end(&r);
  }
}

// R02: y = dropout(w·x): the gradient of the mean of 2^10 by w is the loss, exactly: the same mask forward and backward
static void one_mask(void **state) {
  (void)state;
  Run r = run_of("dim batch\ndim d = 1024\nmodel T(x: f32[batch, d]) -> (loss: f32[]) {\n  param w: [] ~ ones\n  loss = mean[batch, d](dropout(w * x, 0.5))\n}\n",
                 (const char *const[]){F64, "train.optimizer=sgd(lr = 0)", "train.steps=3", 0});
  set_all(&r, "w", 1);
  double x[1024], last = 0;
  for (int i = 0; i < 1024; i++) x[i] = 1;
  for (int i = 0; i < 3; i++) {
    StepLog log = step(&r, "x", x);
    assert_true(log.output[0] == *get(&r, "w:grad") && log.output[0] > 0.8 && log.output[0] < 1.2);
    assert_true(log.output[0] != last);
    last = log.output[0];
  }
  run_end(&r);
}

// A tied weight is one variable: w·(w·x), gradient 2·w·x.
static void tied(void **state) {
  (void)state;
  Run r = run_of("dim batch\nmodel T(x: f32[batch]) -> (loss: f32[]) {\n  param w: [] ~ ones\n  loss = mean[batch](w * (w * x))\n}\n", (const char *const[]){F64, "train.optimizer=sgd(lr = 1)", 0});
  set_all(&r, "w", 3);
  step(&r, "x", &(double){5});
  assert_true(*get(&r, "w:grad") == 30);
  run_end(&r);
}

// ---- optimizers against loops -------------------------------------------------------------------------------------
#define QUADRATIC "dim batch\ndim d = 5\nmodel T(x: f32[batch, d]) -> (loss: f32[]) {\n  param w: [d] ~ normal(1)\n  param b: [d] ~ zeros\n" \
                  "  y = x * w + b\n  loss = mean[batch](sum[d](y * y))\n}\n"
enum { D = 5, STEPS = 6 };

// one parameter of the loop: value, two moments; gradient of mean over 2 samples of (x·w + b)²
typedef struct { double w[D], b[D], m[2][D], v[2][D]; } State;
typedef struct { double lr, beta1, beta2, eps, decay, momentum, clip; bool nesterov, adam; } Rule;

static double loop_step(State *s, const double *x, const Rule *o, int t) {
  double g[2][D] = {{0}}, norm = 0;
  for (int n = 0; n < 2; n++)
    for (int i = 0; i < D; i++) {
      double y = x[n * D + i] * s->w[i] + s->b[i];
      g[0][i] += 2 * y * x[n * D + i] / 2, g[1][i] += 2 * y / 2;
    }
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < D; i++) norm += g[k][i] * g[k][i];
  norm = sqrt(norm);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < D; i++) {
      double *p = k ? &s->b[i] : &s->w[i], d = g[k][i] * (o->clip > 0 ? fmin(1, o->clip / (norm + 1e-6)) : 1), decay = k ? 0 : o->decay;
      double *m = &s->m[k][i], *v = &s->v[k][i];
      if (o->adam) {
        *m = o->beta1 * *m + (1 - o->beta1) * d, *v = o->beta2 * *v + (1 - o->beta2) * d * d;
        double mhat = *m / (1 - pow(o->beta1, t)), vhat = *v / (1 - pow(o->beta2, t));
        *p -= o->lr * decay * *p + o->lr * mhat / (sqrt(vhat) + o->eps);
      } else {
        d += decay * *p;
        *m = o->momentum * *m + d;
        *p -= o->lr * (o->nesterov ? d + o->momentum * *m : *m);
      }
    }
  return norm;
}

static void optimizers(void **state) {
  (void)state;
  static const struct { const char *set; Rule o; } rows[] = {
    {"train.optimizer=adamw(lr = 0.02, beta1 = 0.8, beta2 = 0.95, eps = 1e-3, decay = 0.3)", {.adam = true, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .decay = 0.3, .clip = 0.7}},
    {"train.optimizer=adamw(lr = 0.02)", {.adam = true, .lr = 0.02, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01, .clip = 0.7}},
    {"train.optimizer=sgd(lr = 0.01)", {.lr = 0.01, .clip = 0.7}},
    {"train.optimizer=sgd(lr = 0.01, momentum = 0.9, decay = 0.1)", {.lr = 0.01, .momentum = 0.9, .decay = 0.1, .clip = 0.7}},
    {"train.optimizer=sgd(lr = 0.01, momentum = 0.9, decay = 0.1, nesterov = on)", {.lr = 0.01, .momentum = 0.9, .decay = 0.1, .nesterov = true, .clip = 0.7}},
  };
  for (size_t k = 0; k < COUNT(rows); k++) {
    Run r = run_of(QUADRATIC, (const char *const[]){F64, rows[k].set, "train.clip=0.7", "train.micro_batch=1", "train.global_batch=2", "train.steps=6", 0});
    State s = {.w = {0}};
    uint64_t seed = k + 1;
    fd_fill(s.w, D, &seed, -1, 1), fd_fill(s.b, D, &seed, -1, 1);
    set(&r, "w", s.w), set(&r, "b", s.b);
    for (int t = 1; t <= STEPS; t++) {
      double x[2 * D];
      fd_fill(x, 2 * D, &seed, -0.5, 0.5);
      double norm = loop_step(&s, x, &rows[k].o, t);
      if (!near(step(&r, "x", x).grad_norm, norm, 1e-12)) fail_msg("%s: norm of step %d", rows[k].set, t);
      for (int i = 0; i < D; i++)
        if (!near(get(&r, "w")[i], s.w[i], 1e-12) || !near(get(&r, "b")[i], s.b[i], 1e-12)) fail_msg("%s: weights after step %d", rows[k].set, t);
    }
    run_end(&r);
  }
}

// bf16 copies are the masters, rounded, after load and after every update; gradients and masters are f32
static void copies(void **state) {
  (void)state;
  Run r = run_of(QUADRATIC, (const char *const[]){"precision.compute=bf16", "train.optimizer=adamw(lr = 0.02)", "train.steps=3", 0});
  double w[D], x[D];
  uint64_t seed = 3;
  fd_fill(w, D, &seed, -1, 1);
  for (int i = 0; i < D; i++) w[i] = (float)w[i];
  set(&r, "w", w);
  assert_true(interp_run(r.it, model_fn(r.m, "refresh"), 0, 0));
  for (int t = 0; t < 3; t++) {
    double *master = get(&r, "w"), *copy = get(&r, "w:copy");
    for (int i = 0; i < D; i++) assert_true(copy[i] == dtype_round(DT_bf16, master[i]));
    fd_fill(x, D, &seed, -1, 1);
    step(&r, "x", x);
  }
  assert_int_equal(r.m->type.at[r.m->var.at[model_var(r.m, "w:grad")].type].dtype, DT_f32);
  assert_int_equal(r.m->type.at[r.m->var.at[model_var(r.m, "w")].type].dtype, DT_f32);
  run_end(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(eps_outside), cmocka_unit_test(decay_by_role), cmocka_unit_test(eleventh_step), cmocka_unit_test(skipped_step), cmocka_unit_test(clipping),
    cmocka_unit_test(mean_of_the_step), cmocka_unit_test(nothing_scored), cmocka_unit_test(accumulation), cmocka_unit_test(wide_accumulation), cmocka_unit_test(cancellation),
    cmocka_unit_test(one_mask), cmocka_unit_test(tied), cmocka_unit_test(optimizers), cmocka_unit_test(copies),
  };
  return cmocka_run_group_tests(tests, 0, 0);
}
