// Every op on a mesh against the same op on one rank: split dims of either order, padded dims, pending sums, collectives.
// Each case is built twice from the same text: on dp=2 cp=2 tp=2 with seq in zigzag order, and with all axes of size 1.
#include "compiler/local.h"
#include "tests/interp/world.h"
#include "tests/interp/fd.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static const char *const dims[2] = {
  "b 4 sample, b2 4, d 6, d2 6, e 5:8, h 4, k 3, two 2, hd 8, seq 7:8 zigzag=4, kseq = seq, t 8 zigzag=4, tk = t, w 12, half 3, v 11:12, "
  "q 2, r 4, qr 8, f 4, one 1, two2 2",
  "b 4 sample, b2 4, d 6, d2 6, e 5:8, h 4, k 3, two 2, hd 8, seq 7:8, kseq = seq, t 8, tk = t, w 12, half 3, v 11:12, "
  "q 2, r 4, qr 8, f 4, one 1, two2 2"};

typedef struct { Op op; const char *at, *in[3], *out; } Case;   // out "": inferred
static const Case cases[] = {
  // elementwise: every operand split its own way; pending sums through linear ops
  {OP_add, "", {"f64[b|dp, seq|cp, e|tp]", "f64[e|tp, b|dp]"}, ""},
  {OP_add, "", {"f64[b|dp, d] sum(tp)", "f64[d, b|dp] sum(tp)"}, ""},
  {OP_mul, "", {"f64[seq|cp+tp, b]", "f64[seq|cp+tp]"}, ""},
  {OP_mul, "", {"f64[d, b|dp] sum(tp, cp)", "f64[b|dp]"}, ""},
  {OP_exp, "", {"f64[seq|tp+cp, d]"}, ""},
  {OP_exp, "", {"f64[e|dp+cp+tp]"}, ""},
  {OP_select, "", {"bool[seq|cp, kseq]", "f64[b|dp, seq|cp, kseq]", "f64[kseq]"}, ""},
  {OP_cast, "", {"f64[b|dp, seq|cp]"}, "f32[seq|cp, b|dp]"},
  {OP_neg, "", {"f64[h|tp] sum(dp)"}, ""},
  // leaves
  {OP_index, "[seq]", {0}, "i32[seq|cp]"},
  {OP_index, "[seq]", {0}, "i32[seq|cp+tp]"},
  {OP_index, "[seq]", {0}, "i32[seq]"},
  {OP_index, "[v]", {0}, "i32[v|tp]"},
  {OP_index, "[e]", {0}, "i32[e|tp+dp]"},
  // reductions: of split dims (pending), of others, of padded ones
  {OP_sum, "[seq]", {"f64[b|dp, seq|cp, d]"}, ""},
  {OP_sum, "[d]", {"f64[b|dp, seq|cp, d]"}, ""},
  {OP_sum, "[b, seq]", {"f64[b|dp, seq|cp, e|tp]"}, ""},
  {OP_sum, "[e]", {"f64[e|tp, b|dp] sum(cp)"}, ""},
  {OP_reduce_max, "[v]", {"f64[b|dp, v|tp]"}, ""},
  {OP_reduce_max, "[e]", {"f64[b|dp, e|tp+cp]"}, ""},
  {OP_reduce_max, "[seq]", {"i32[seq|cp, d]"}, ""},
  {OP_cumsum, "[seq]", {"f64[b|dp, seq, d|tp]"}, ""},
  {OP_cumsum, "[seq] at=1", {"i32[b|dp, seq, d|tp]"}, ""},
  {OP_cumsum, "[seq, d]", {"f64[b|dp, seq, d]"}, ""},
  // products: contracted, batch and free dims split
  {OP_dot, "[d]", {"f64[b|dp, seq|cp, d]", "f64[h|tp, d]"}, ""},
  {OP_dot, "[d]", {"f64[b|dp, seq|cp, d|tp]", "f64[h, d|tp]"}, ""},
  {OP_dot, "[e]", {"f64[b|dp, e|tp+cp]", "f64[e|tp+cp, v]"}, ""},
  {OP_dot, "[hd]", {"f64[b|dp, h|tp, seq|cp, hd]", "f64[b|dp, kseq, h|tp, hd]"}, ""},
  {OP_dot, "[kseq]", {"f64[b|dp, h|tp, seq|cp, kseq]", "f64[b|dp, kseq, h|tp, hd]"}, ""},
  {OP_dot, "[b, seq]", {"f64[b|dp, seq|cp, d]", "f64[b|dp, seq|cp, h|tp]"}, ""},
  {OP_dot, "[d]", {"f64[b|dp, d] sum(tp)", "f64[h, d]"}, ""},
  {OP_dot, "", {"f64[b|dp]", "f64[h|tp, seq|cp]"}, "f64[seq|cp, b|dp, h|tp]"},
  // dims
  {OP_expand, "[seq, e]", {"f64[b|dp]"}, "f64[b|dp, e|tp, seq|cp]"},
  {OP_expand, "[d]", {"f64[b|dp] sum(tp)"}, ""},
  {OP_rename, "[seq -> kseq]", {"f64[b|dp, seq|cp, d]"}, ""},
  {OP_rename, "[t -> tk]", {"f64[t, d|tp]"}, "f64[d|tp, tk]"},
  {OP_split, "[qr -> q, r]", {"f64[b|dp, qr|tp]"}, ""},
  {OP_split, "[qr -> r, q]", {"f64[qr|tp+cp, b|dp]"}, ""},
  {OP_split, "[t -> q, r]", {"f64[t, b|dp]"}, ""},
  {OP_merge, "[q, r -> qr]", {"f64[r, b|dp, q|tp]"}, ""},
  {OP_merge, "[r, q -> t]", {"f64[r, b|dp, q]"}, ""},
  {OP_stack, "[two]", {"f64[b|dp, seq|cp]", "f64[seq|cp]"}, ""},
  {OP_stack, "[two]", {"f64[b|dp, seq|cp] sum(tp)", "f64[seq|cp, b|dp] sum(tp)"}, ""},
  {OP_slice, "[w -> d] at=3", {"f64[b|dp, w]"}, ""},
  {OP_slice, "[w -> t] at=1", {"f64[b|dp, w]"}, "f64[b|dp, t|cp]"},
  {OP_slice, "[w -> seq] at=5", {"f64[w, h|tp]"}, "f64[seq|cp, h|tp]"},
  {OP_slice, "[w -> d] at=2", {"f64[w] sum(tp)"}, "f64[d|dp] sum(tp)"},
  {OP_unslice, "[d -> w] at=3", {"f64[b|dp, d]"}, ""},
  {OP_unslice, "[seq -> w] at=2", {"f64[b|dp, seq|cp]"}, ""},
  {OP_shift, "[seq] at=1 num=-100", {"i32[b|dp, seq]"}, ""},
  {OP_shift, "[seq] at=-2", {"f64[b|dp, seq, d|tp]"}, ""},
  {OP_shift, "[seq] at=20 num=3", {"f64[b|dp, seq]"}, ""},
  {OP_gather, "[v]", {"f64[v|tp, d]", "i32[b|dp, seq|cp]"}, ""},
  {OP_gather, "[v]", {"f64[d|tp, v]", "i32[b|dp, seq|cp]"}, ""},
  {OP_gather, "[v]", {"f64[b|dp, seq|cp, v|tp]", "i32[b|dp, seq|cp]"}, ""},
  {OP_gather, "[seq]", {"f64[b|dp, seq|cp, d]", "i64[b|dp, k]"}, ""},
  {OP_scatter, "[v]", {"f64[b|dp, seq|cp, d|tp]", "i32[b|dp, seq|cp]"}, ""},
  {OP_scatter, "[v]", {"f64[b, seq, d]", "i32[b, seq]"}, "f64[v|tp, d]"},
  {OP_scatter, "[v -> b, seq]", {"f64[b|dp, seq|cp]", "i32[b|dp, seq|cp]"}, "f64[b|dp, seq|cp, v|tp]"},
  {OP_scatter, "[seq -> b]", {"f64[b|dp, k, d]", "i32[b|dp, k]"}, "f64[b|dp, seq|cp, d]"},
  // collectives
  {OP_all_reduce, "axes=tp", {"f64[b|dp, d] sum(tp)"}, ""},
  {OP_all_reduce, "axes=tp", {"f64[b, d] sum(tp, dp, cp)"}, ""},
  {OP_all_reduce, "axes=tp+cp", {"f64[b|dp, seq] max(tp, cp)"}, ""},
  {OP_all_reduce, "axes=dp", {"f64 sum(dp)"}, ""},
  {OP_reduce_scatter, "[seq] axes=tp", {"f64[b|dp, seq|cp, d] sum(tp)"}, ""},
  {OP_reduce_scatter, "[seq] axes=cp", {"f64[b|dp, seq, d] sum(cp, tp)"}, ""},
  {OP_reduce_scatter, "[e] axes=dp+tp", {"f64[b, e] sum(dp, tp)"}, ""},
  {OP_all_gather, "[seq] axes=cp", {"f64[b|dp, seq|cp, h|tp]"}, ""},
  {OP_all_gather, "[seq] axes=tp", {"f64[b|dp, seq|cp+tp]"}, ""},
  {OP_all_gather, "[e] axes=cp+tp", {"i32[e|cp+tp]"}, ""},
  {OP_all_gather, "[h] axes=tp", {"f64[h|tp] sum(dp)"}, ""},
  {OP_all_to_all, "[seq -> h] axes=cp", {"f64[b|dp, seq|cp, h|tp]"}, ""},
  {OP_all_to_all, "[e -> seq] axes=tp", {"f64[b|dp, seq|cp, e|tp]"}, ""},
  {OP_all_to_all, "[b -> h] axes=dp", {"f64[b|dp, h|tp, d]"}, ""},
  {OP_take_shard, "[seq] axes=cp", {"f64[b|dp, seq]"}, ""},
  {OP_take_shard, "[seq] axes=tp", {"f64[b|dp, seq|cp]"}, ""},
  {OP_take_shard, "[e] axes=cp+tp", {"f64[b|dp, e]"}, ""},
  {OP_reshard, "", {"f64[b|dp, seq|cp, d] sum(tp)"}, "f64[seq|cp+tp, d, b|dp]"},
  {OP_reshard, "", {"f64[b|dp, seq|cp, d] sum(tp)"}, "f64[b, seq, d]"},
  {OP_reshard, "", {"f64[b, seq, d] sum(tp, cp, dp)"}, "f64[b|dp, seq, d] sum(cp)"},
  {OP_reshard, "", {"f64[b|dp, seq|cp, d|tp]"}, "f64[b|tp, seq, d|cp]"},
  {OP_reshard, "", {"f64[b|dp, v|tp] max(cp)"}, "f64[b, v|tp]"},
  {OP_reshard, "", {"i32[e]"}, "i32[e|dp+tp]"},
  {OP_random, "path=h.0.drop", {"i64", "i64"}, "f32[b|dp, seq|cp, d]"},
  {OP_random, "path=h.0.drop", {"i64", "i64"}, "f32[h|tp, b|dp, seq|cp, kseq]"},
};

static double *outcome(const Case *k, int mesh, uint64_t seed, int64_t *count, Arena *keep) {
  World w = world(mesh ? "dp=2 cp=2 tp=2" : "dp=1 cp=1 tp=1", dims[!mesh]);
  begin(&w, "f");
  ValId y = op_of(&w, k->op, k->at, k->in, k->out);
  double **data = fd_inputs(w.arena, w.b.fn, (Range){-2, 8, -2, 8, seed});
  *count = interp_count(w.m, w.b.fn->val.at[y].type);
  double *out = NEW_N(keep, double, *count);
  Interp *it = interp_create(w.arena, w.m);
  if (!interp_run(it, w.b.fn, (const double *const *)data, &out))
    fail_msg("%s %s %s: %s", op_info[k->op].name, k->at, k->in[0] ? k->in[0] : "", interp_fault(it));
  world_end(&w);
  return out;
}

static void mesh_test(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(cases); k++) {
    const Case *c = &cases[k];
    for (uint64_t seed = 1; seed <= 3; seed++) {
      Arena *a = arena_create();
      int64_t n, m;
      double *one = outcome(c, 0, seed, &n, a), *all = outcome(c, 1, seed, &m, a);
      assert_int_equal(n, m);
      for (int64_t i = 0; i < n; i++)
        if (!(one[i] == all[i] || fabs(one[i] - all[i]) <= 1e-13 * (fabs(one[i]) + 1)))
          fail_msg("case %zu, %s %s %s, seed %llu: entry %lld is %.17g on the mesh, %.17g on one rank", k, op_info[c->op].name, c->at,
                   c->in[0] ? c->in[0] : "", (unsigned long long)seed, (long long)i, all[i], one[i]);
      arena_destroy(a);
    }
  }
}

// n = 2·cp chunks: rank r of cp holds chunks r and n-1-r; a further axis cuts what they hold; the others' own nothing
static void order_test(void **state) {
  (void)state;
  World w = world("dp=2 cp=3 tp=2", "seq 22:24 zigzag=6, kseq=seq, d 8");
  Interp *it = interp_create(w.arena, w.m);
  for (uint32_t rank = 0; rank < 12; rank++) {
    uint32_t tp = rank % 2, cp = rank / 2 % 3;
    const Type *split = &w.m->type.at[type(&w, "f64[kseq|cp, seq|cp+tp, d|tp+dp]")];
    const Order *k = order_of(it, split->dim[0], split->split[0], rank), *q = order_of(it, split->dim[1], split->split[1], rank);
    assert_int_equal(k->n, 8);
    assert_int_equal(q->n, 4);
    for (int64_t p = 0; p < 8; p++) {
      int64_t want = p < 4 ? 4 * cp + p : 4 * (5 - cp) + p - 4;
      assert_int_equal(order_global(k, p), want);
      assert_int_equal(order_place(k, want), want < 22 ? p : -1);
      if (p / 4 == tp) assert_int_equal(order_global(q, p % 4), want);
    }
    assert_int_equal(order_place(k, 4 * ((cp + 1) % 3)), -1);
    const Order *d = order_of(it, split->dim[2], split->split[2], rank);       // the first axis is the slowest
    assert_int_equal(order_global(d, 1), 4 * tp + 2 * (rank / 6) + 1);
  }
  world_end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mesh_test), cmocka_unit_test(order_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
