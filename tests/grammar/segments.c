// segments.c -- the prelude's attention over packed documents: each position sees its own document, as if it were alone.
#include "compiler/interp.h"
#include "compiler/program.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { S = 9, D = 4, END = 7 };
static const char model[] =
    "dim batch\n"
    "dim s = 9\n"
    "dim t = s\n"
    "dim d = 4\n"
    "model M(tokens: i32[batch, s], x: [batch, s, d]) -> (loss: f32[], y: [batch, s, d], seg: i32[batch, s]) {\n"
    "  k    = rename[s -> t](x)\n"
    "  seg  = segments[s](tokens, 7)\n"
    "  y    = attention[s, t, d](x, k, k, causal = true, where = same_segment[s, t](seg))\n"
    "  loss = mean[batch, s, d](y)\n"
    "}\n";

static Module *module_of(Arena *a, const char *text) {
  char path[] = "/tmp/segments.XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  close(fd);
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  Status status;
  Program *p = sema(a, intern_create(a), d, path, 0, 0, &status);
  unlink(path);
  assert_non_null(p);
  Module *m = lower(p);
  assert_non_null(m);
  return m;
}

// Attention of position i over the positions of its document, up to itself: from the formula.
static void attend(const double *x, const double *seg, int i, double *y) {
  double weight[S], sum = 0;
  for (int j = 0; j <= i; j++) {
    double score = 0;
    for (int e = 0; e < D; e++) score += x[i * D + e] * x[j * D + e];
    sum += weight[j] = seg[i] == seg[j] ? exp(score / sqrt(D)) : 0;
  }
  for (int e = 0; e < D; e++) {
    y[e] = 0;
    for (int j = 0; j <= i; j++) y[e] += weight[j] / sum * x[j * D + e];
  }
}

static void test_documents_are_apart(void **state) {
  (void)state;
  Arena *a = arena_create();
  Module *m = module_of(a, model);
  const double tokens[S] = {3, 1, END, 4, END, END, 5, 2, END}, want_seg[S] = {1, 1, 1, 2, 2, 3, 4, 4, 4};
  double x[S * D], y[S * D], seg[S], want[D];
  for (int i = 0; i < S * D; i++) x[i] = sin(1 + 3 * i);
  const Fn *f = fn_find(m, intern(m->in, "logits"));
  assert_int_equal(f->arg.n, 2);
  assert_int_equal(f->ret.n, 2);
  const double *in[2] = {tokens, x};
  double *out[2] = {y, seg};
  Interp *it = interp_create(a, m);
  if (!interp_run(it, f, in, out)) fail_msg("%s", interp_fault(it));
  for (int i = 0; i < S; i++) {
    assert_true(seg[i] == want_seg[i]);
    attend(x, want_seg, i, want);
    for (int e = 0; e < D; e++) assert_true(fabs(y[i * D + e] - want[e]) < 1e-12);
  }
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents_are_apart)};
  return cmocka_run_group_tests(tests, 0, 0);
}
