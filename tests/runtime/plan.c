// The plan's file: the same bytes there and back, damage refused, and every promise of the verifier broken once.
#include "bigram.h"
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include <xxhash.h>

static Text written(Plan *p) {
  Text t;
  text_init(&t, p->arena);
  plan_write(p, &t);
  return t;
}

static void there_and_back_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Plan *p = bigram_plan(a, &bigram_small), *q = plan_create(a);
  p->model = plan_str(p, "a \"name\"\\ with\nall");
  vec_push(a, &p->schedule.num, (PlanNum){plan_str(p, "shape"), 0, plan_str(p, "minus_sqrt")});
  vec_push(a, &p->schedule.num, (PlanNum){plan_str(p, "min"), 1e-5, 0});
  p->loss_scale.word = plan_str(p, "dynamic");
  vec_push(a, &p->loss_scale.num, (PlanNum){plan_str(p, "window"), 500, 0});
  Text t = written(p);
  const char *why = plan_parse(q, t.s, t.n);
  if (why) fail_msg("%s", why);
  why = plan_verify(q, a);
  if (why) fail_msg("%s", why);
  Text u = written(q);
  assert_int_equal(t.n, u.n);
  assert_memory_equal(t.s, u.s, t.n);
  assert_string_equal(p->hash, q->hash);
  assert_string_equal(q->model, p->model);
  assert_string_equal(q->schedule.num.at[0].word, "minus_sqrt");
  assert_true(plan_num(&q->schedule, "min", 0) == 1e-5);
  assert_true(!strcmp(q->loss_scale.word, "dynamic") && plan_num(&q->loss_scale, "window", 0) == 500);
  assert_int_equal(plan_find_fn(q, "micro"), plan_find_fn(p, "micro"));
  assert_int_equal(plan_find_slot(q, "$grad_norm"), plan_find_slot(p, "$grad_norm"));
  Text v = written(bigram_plan(a, &bigram_small)), w = written(bigram_plan(a, &bigram_small));
  assert_memory_equal(v.s, w.s, v.n);                      // the same input, the same bytes
  arena_destroy(a);
}

// puts the right hash into a damaged text, so that the reader and the verifier are reached
static void seal(char *s, size_t n) {
  char hash[33];
  size_t at = strlen("mt plan 1\nhash ");
  XXH128_hash_t h = XXH3_128bits(s + at + 33, n - at - 33);
  snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
  memcpy(s + at, hash, 32);
}

static void damaged_test(void **state) {
  (void)state;
  uint64_t seed = 1;
  uint32_t refused = 0, accepted = 0;
  Arena *a = arena_create();
  Text t = written(bigram_plan(a, &bigram_small));
  for (size_t n = 0; n < t.n; n += 1 + n / 40) {           // cut short
    Arena *b = arena_create();
    char *s = arena_strndup(b, t.s, n);
    assert_non_null(plan_parse(plan_create(b), s, n));
    if (n > 60) seal(s, n), assert_non_null(plan_parse(plan_create(b), s, n));
    arena_destroy(b);
  }
  for (int round = 0; round < 3000; round++) {
    Arena *b = arena_create();
    char *s = arena_strndup(b, t.s, t.n);
    for (int k = 0; k <= round % 3; k++) {
      seed = hash_mix(seed, 1);
      size_t at = 50 + seed % (t.n - 50);
      if (seed >> 40 & 1) s[at] ^= (char)(1 << (seed >> 32 & 7));
      else s[at] = "0123456789 \n-\"x"[(seed >> 32) % 15];
    }
    if (memcmp(s, t.s, t.n)) assert_non_null(plan_parse(plan_create(b), s, t.n));
    seal(s, t.n);
    Plan *p = plan_create(b);
    const char *why = plan_parse(p, s, t.n);
    if (!why) why = plan_verify(p, b);
    if (why) refused++;
    else {
      Text u = written(p);                                 // what is accepted can be written and read again
      Plan *q = plan_create(b);
      accepted++;
      if (plan_parse(q, u.s, u.n) || plan_verify(q, b)) fail_msg("round %d: written again it is refused", round);
    }
    arena_destroy(b);
  }
  assert_true(refused > 1000 && accepted > 0);
  arena_destroy(a);
}

#define EXPECT(text, ...) do { \
    Arena *a = arena_create(); \
    Plan *p = bigram_plan(a, &bigram_small); \
    __VA_ARGS__; \
    const char *why = plan_verify(p, a); \
    if (!why || !strstr(why, text)) fail_msg("'%s' expected, '%s' found", text, why ? why : "nothing wrong"); \
    arena_destroy(a); \
  } while (0)
#define FN(name) (&p->fn.at[plan_find_fn(p, name)])

static void refused_test(void **state) {
  (void)state;
  EXPECT("dim vocab has 9 entries in 8", p->dim.at[3].extent = 9);
  EXPECT("too much memory", p->memory[MEM_grads] = INT64_MAX);
  EXPECT("block of scalars has 8192", p->memory[MEM_scalars] = 8192);
  EXPECT("buffer 2 (wte) is not inside", p->memory[MEM_params] = 64);
  EXPECT("buffer 2 (wte) is not inside", p->buffer.at[2].at = 32);
  EXPECT("slot $sample is not right", p->slot.at[1].at = 0);
  EXPECT("does not fit into its buffer", p->var.at[1].buffer = 20);
  EXPECT("wte.weight and head.{embed}.weight overlap", p->var.at[2].buffer = 2);
  EXPECT("two variables are called", p->var.at[2].name = p->var.at[1].name);
  EXPECT("'heads' is no dim of the variable", p->var.at[2].name = plan_str(p, "a.{heads}"));
  EXPECT("is of no parameter", p->var.at[3].of = 4);
  EXPECT("microbatches of 2 samples are not 5", p->global_batch = 5);
  EXPECT("does not begin with the dim of samples", p->input.at[1].dim[0] = 2);
  EXPECT("output logits is not right", p->output.at[1].buffer = 2);
  EXPECT("is no symbol", p->kernel.at[1].symbol = "system(\"ls\")");
  EXPECT("has no source", p->kernel.at[1].source = 7);
  EXPECT("argument 1 of kernel gather", p->kernel.at[3].param.at[1].count = 1000);
  EXPECT("the work buffer of kernel norm", p->kernel.at[9].work = 1 << 20);
  EXPECT("buffers for kernel", FN("micro")->ins.at[8].narg = 2);
  EXPECT("operand 0 of gemm 1", p->gemm.at[1].m = 1000);
  EXPECT("gemm 1 writes an element twice", p->gemm.at[1].nloop = 1,
         p->gemm.at[1].loop[0] = (GemmLoop){2, 0, 0, 1});
  EXPECT("its extents or strides", p->gemm.at[1].ak = 2, p->gemm.at[1].am = 2);
  EXPECT("no product of these formats", p->gemm.at[1].a = DT_f32);
  EXPECT("gemm 1 is too large", p->gemm.at[1].nloop = 1,
         p->gemm.at[1].loop[0] = (GemmLoop){3, INT64_MAX / 2, 0, 0});
  EXPECT("unequally often", FN("micro")->ins.at[7].op = PI_zero, FN("micro")->ins.at[7].narg = 1,
         FN("micro")->ins.at[7].arg = 0);
  EXPECT("used by two streams at one end", FN("eval")->ins.at[0].stream = STREAM_compute);
  EXPECT("without an order", p->event.at[2].initial = 2);  // the next load would overtake this copy
  EXPECT("waits for ever", p->event.at[2].initial = 0);
  EXPECT("cell 1 is out of order", p->cell.at[1].microbatch = 0);
  EXPECT("not one for each microbatch", p->cell.n = 0, vec_push(a, &p->cell, (PlanCell){CELL_U, 0, 3}));
  EXPECT("the update is the last cell", p->cell.n--);
  EXPECT("a denominator after the first backward", p->cell.at[1].kind = CELL_FB, p->cell.at[1].microbatch = 0,
         p->cell.at[2] = p->cell.at[0], p->cell.at[2].microbatch = 1);
  EXPECT("x and rowloss share bytes while both are needed", p->buffer.at[13].at = p->buffer.at[10].at);
  EXPECT("arguments 1 and 2 of kernel gather share bytes", p->buffer.at[10].mem = MEM_params, p->buffer.at[10].at = 0);
  EXPECT("head and rowloss share bytes", p->buffer.at[13].mem = MEM_params, p->buffer.at[13].at = p->buffer.at[3].at);
  EXPECT("tokens and labels share bytes", p->buffer.at[9].at = p->buffer.at[8].at);
  EXPECT("dwte and rowloss share bytes", p->buffer.at[13].mem = MEM_grads, p->buffer.at[13].at = 0);
  EXPECT("reads x, which nothing has written", p->arg.at[FN("micro")->ins.at[8].arg + 2] = (PlanArg){11, 0});
  EXPECT("a copy onto itself", p->arg.at[FN("micro")->ins.at[5].arg] = p->arg.at[FN("micro")->ins.at[5].arg + 1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back_test), cmocka_unit_test(damaged_test),
                                     cmocka_unit_test(refused_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
