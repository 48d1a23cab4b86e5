// Steps of a hand-made plan against the same model in plain C: loss, gradient norm, parameters; skipped updates; eval; logits;
// a feed that fails; the same bits for any number of threads.
#include "bigram.h"
#include "runtime/exec.h"
#include "runtime/init.h"
#include "runtime/nonfinite.h"
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

enum { MOST = 64, V = 7, S = 8, E = 3, ROWS = 20 };

typedef struct { int32_t token[MOST][ROWS], label[MOST][ROWS]; int64_t step; int64_t rows; int fail_at; } Text_;

static Status feed(void *with, uint32_t input, int64_t j, void *to) {
  Text_ *t = with;
  if (t->fail_at && t->step + 1 == t->fail_at && j == 1 && input == 1) return EXIT_INPUT;
  const int32_t *from = input == 1 ? t->token[t->step] : t->label[t->step];
  memcpy(to, from + j * t->rows, (size_t)t->rows * sizeof *from);
  return 0;
}

static void fill(Text_ *t, int64_t rows) {
  uint64_t s = 3;
  *t = (Text_){.rows = rows};
  for (int i = 0; i < MOST; i++)
    for (int r = 0; r < ROWS; r++) {
      t->token[i][r] = (int32_t)((s = hash_mix(s, 1)) % V), t->label[i][r] = (int32_t)((s = hash_mix(s, 1)) % V);
      if (s >> 40 & 1) t->label[i][r] = -100;
    }
}

// one step of all 20 rows at once; w: wte then head, both [S][E]
static double plain_step(double *w, const int32_t *token, const int32_t *label, double lr, double *norm) {
  double *wte = w, *head = w + S * E, grad[2 * S * E] = {0}, loss = 0, den = 0;
  for (int r = 0; r < ROWS; r++) den += label[r] != -100;
  for (int r = 0; r < ROWS; r++) {
    double z[V], top = -INFINITY, sum = 0;
    if (label[r] == -100) continue;
    for (int v = 0; v < V; v++) {
      z[v] = 0;
      for (int e = 0; e < E; e++) z[v] += wte[token[r] * E + e] * head[v * E + e];
      top = fmax(top, z[v]);
    }
    for (int v = 0; v < V; v++) sum += exp(z[v] - top);
    loss += (top + log(sum) - z[label[r]]) / den;
    for (int v = 0; v < V; v++) {
      double d = (exp(z[v] - top) / sum - (v == label[r])) / den;
      for (int e = 0; e < E; e++)
        grad[S * E + v * E + e] += d * wte[token[r] * E + e], grad[token[r] * E + e] += d * head[v * E + e];
    }
  }
  *norm = 0;
  for (int i = 0; i < 2 * S * E; i++) *norm += grad[i] * grad[i], w[i] -= lr * grad[i];
  *norm = sqrt(*norm);
  return loss;
}

typedef struct { Arena *a; Plan *p; Dev *d; Exec x; Text_ *t; double *wte, *head; } Rig;

static Rig rig(int threads) {
  Rig r = {.a = arena_create()};
  r.p = bigram_plan(r.a, &bigram_small);
  const char *why = plan_verify(r.p, r.a);
  if (why) fail_msg("%s", why);
  assert_int_equal(dev_open(r.a, r.p, (DevOptions){.threads = threads, .times = true, .spans = 100}, &r.d), 0);
  assert_int_equal(exec_init(&r.x, r.p, r.d), 0);
  r.t = NEW(r.a, Text_);
  fill(r.t, 10);
  dev_feed(r.d, feed, r.t);
  r.wte = dev_at(r.d, (PlanArg){r.p->var.at[1].buffer, 0}),
  r.head = dev_at(r.d, (PlanArg){r.p->var.at[2].buffer, 0});
  for (uint32_t i = 1; i <= 2; i++) {
    Storage s = plan_storage(r.p, &r.p->var.at[i]);
    init_values(dev_work(r.d), &s, r.p->var.at[i].init, r.p->var.at[i].a, r.p->var.at[i].b, r.p->seed,
                i == 1 ? r.wte : r.head);
  }
  assert_int_equal(exec_refresh(&r.x), 0);
  return r;
}
static Status one_step(Exec *x, StepResult *r) {
  TRY(exec_backward(x, r));
  TRY(exec_update(x, r));
  return exec_stuck(x, 10) ? EXIT_INPUT : 0;
}
static void unrig(Rig *r) { dev_close(r->d), arena_destroy(r->a); }

static void training_test(void **state) {
  (void)state;
  Rig r = rig(2), one = rig(1);
  double w[2 * S * E];
  memcpy(w, r.wte, sizeof w / 2), memcpy(w + S * E, r.head, sizeof w / 2);
  double before = 0, after = 0;
  for (int i = 0; i < 12; i++) {
    StepResult got, same;
    double norm, want = plain_step(w, r.t->token[i], r.t->label[i], 0.5, &norm);
    r.t->step = one.t->step = i;
    assert_int_equal(one_step(&r.x, &got), 0);
    assert_int_equal(one_step(&one.x, &same), 0);
    assert_true(got.step == i && got.updated && !got.empty && got.lr == 0.5);
    if (fabs(got.out[0] - want) > 1e-13 || fabs(got.grad_norm - norm) > 1e-13)
      fail_msg("step %d: loss %.17g, not %.17g", i, got.out[0], want);
    assert_true(got.out[0] == same.out[0] && got.grad_norm == same.grad_norm);
    for (int k = 0; k < S * E; k++)
      assert_true(fabs(r.wte[k] - w[k]) < 1e-13 && fabs(r.head[k] - w[S * E + k]) < 1e-13);
    assert_memory_equal(r.wte, one.wte, sizeof w / 2);
    if (i == 0) before = got.out[0];
    after = got.out[0];
  }
  assert_true(after < before);
  assert_int_equal(r.x.update, 12);
  int64_t seed;
  memcpy(&seed, dev_slot(r.d, plan_find_slot(r.p, "$seed")), 8);
  assert_int_equal(seed, 1234);
  // eval over the same rows: the loss of the last weights, nothing changes
  StepResult e;
  double kept[2 * S * E], norm;
  memcpy(kept, w, sizeof w);
  r.t->step = 3;
  assert_int_equal(exec_eval(&r.x, 2, &e), 0);
  assert_true(fabs(e.out[0] - plain_step(kept, r.t->token[3], r.t->label[3], 0, &norm)) < 1e-13);
  for (int k = 0; k < S * E; k++) assert_true(fabs(r.wte[k] - w[k]) < 1e-13);
  // logits of microbatch 0
  assert_int_equal(exec_logits(&r.x), 0);
  const double *z = dev_at(r.d, (PlanArg){r.p->output.at[1].buffer, 0});
  for (int row = 0; row < 10; row++)
    for (int v = 0; v < S; v++) {
      double want = 0;
      for (int k = 0; k < E && v < V; k++) want += w[r.t->token[3][row] * E + k] * w[S * E + v * E + k];
      assert_true(fabs(z[row * S + v] - want) < 1e-13);
    }
  // every instruction that ran was timed
  uint32_t micro = plan_find_fn(r.p, "micro");
  for (uint32_t i = 0; i < r.p->fn.at[micro].ins.n; i++) {
    const PlanIns *in = &r.p->fn.at[micro].ins.at[i];
    if (dev_time(r.d, micro, i).runs != (in->when ? 12 : 24))
      fail_msg("instruction %u ran %lld times", i, (long long)dev_time(r.d, micro, i).runs);
  }
  int64_t n;
  const DevSpan *span = dev_spans(r.d, STREAM_compute, &n);
  assert_int_equal(n, 100);
  for (int64_t i = 1; i < n; i++) assert_true(span[i].begin >= span[i - 1].end && span[i].end >= span[i].begin);
  unrig(&r), unrig(&one);
}

static void skipped_test(void **state) {
  (void)state;
  Rig r = rig(2);
  double kept[S * E];
  StepResult got;
  for (int i = 0; i < ROWS; i++) r.t->label[1][i] = -100;
  memcpy(kept, r.wte, sizeof kept);
  r.t->step = 1;
  assert_int_equal(one_step(&r.x, &got), 0);
  assert_true(got.empty && !got.updated && got.out[0] == 0 && isnan(got.grad_norm));
  assert_memory_equal(kept, r.wte, sizeof kept);
  assert_true(r.x.step == 1 && r.x.update == 0 && r.x.skipped == 1 && r.x.empty == 1);
  r.t->step = 2;
  assert_int_equal(one_step(&r.x, &got), 0);
  assert_true(got.updated && r.x.update == 1 && r.x.in_a_row == 0);
  memcpy(kept, r.wte, sizeof kept);
  r.head[0] = (double)NAN;                                 // the gradient is not finite: $ok 0
  for (int i = 1; i <= 9; i++) {
    assert_int_equal(one_step(&r.x, &got), 0);
    assert_true(!got.updated && !got.empty && isnan(got.out[0]));
  }
  assert_memory_equal(kept, r.wte, sizeof kept);
  assert_int_equal(one_step(&r.x, &got), EXIT_INPUT);     // the tenth in a row
  unrig(&r);
}

static void nonfinite_test(void **state) {
  (void)state;
  Rig r = rig(2);
  StepResult got;
  Notes notes;
  Text said;
  notes_open(r.a, r.p, dev_comm(r.d), 0, &notes);
  text_init(&said, r.a);
  assert_int_equal(exec_backward(&r.x, &got), 0);
  assert_int_equal(nonfinite_find(&r.x, &got, &notes, &said), 0);
  assert_non_null(strstr(said.s, "made once more, all of the step is finite"));
  text_init(&said, r.a);
  r.head[E] = (double)INFINITY;
  assert_int_equal(nonfinite_find(&r.x, &got, &notes, &said), 0);
  assert_non_null(strstr(said.s, "inf in 'head.{embed}.weight' on rank 0, before the step"));
  unrig(&r);
}

// what a plan says of the scale; steps that it answers are not among those in a row
static void scale_test(void **state) {
  (void)state;
  Rig r = rig(2);
  StepResult got;
  Exec x;
  vec_push(r.a, &r.p->loss_scale.num, (PlanNum){"initial", 4, 0});
  r.p->loss_scale.word = "dynamic";
  assert_int_equal(exec_init(&x, r.p, r.d), 0);
  r.head[0] = (double)NAN;
  for (int i = 0; i < 3; i++) {              // 4 is forgiven, then 2 and 1 are tried
    assert_int_equal(one_step(&x, &got), 0);
    assert_true(got.loss_scale == (i < 2 ? 4 : 2) && x.in_a_row == 0);
  }
  assert_int_equal(one_step(&x, &got), 0);
  assert_true(got.loss_scale == 1 && x.scale.value == 1 && x.in_a_row == 1 && x.skipped == 4);
  r.p->loss_scale.num.at[0].value = 0.5;
  assert_int_equal(exec_init(&x, r.p, r.d), EXIT_INPUT);  // below min
  r.p->loss_scale.word = "constant", r.p->loss_scale.num.at[0] = (PlanNum){"value", 1024, 0};
  assert_int_equal(exec_init(&x, r.p, r.d), 0);
  assert_true(x.scale.value == 1024);
  unrig(&r);
}

static void failing_feed_test(void **state) {
  (void)state;
  Rig r = rig(2);
  double kept[S * E];
  StepResult got;
  r.t->fail_at = 3;
  for (int i = 0; i < 2; i++) {
    r.t->step = i;
    assert_int_equal(one_step(&r.x, &got), 0);
  }
  memcpy(kept, r.wte, sizeof kept);
  r.t->step = 2;
  assert_int_equal(one_step(&r.x, &got), EXIT_INPUT);
  assert_memory_equal(kept, r.wte, sizeof kept);           // no update after a bad input
  assert_int_equal(r.x.update, 2);
  unrig(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(training_test), cmocka_unit_test(skipped_test), cmocka_unit_test(scale_test), cmocka_unit_test(nonfinite_test),
                                     cmocka_unit_test(failing_feed_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
