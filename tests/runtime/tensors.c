// A variable and its checkpoint tensors: names, shapes, and every value there and back, against plain index arithmetic.
#include "runtime/tensors.h"
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#define DIM(name_, extent_, size_, axis_) {.name = name_, .extent = extent_, .size = size_, .axis = axis_}

static Storage experts(void) {
  return (Storage){"experts.{expert}.{gate:w1,w3}.weight", DT_f32, 4,
                   {DIM("expert", 2, 2, 0), DIM("gate", 2, 2, 1), DIM("ff", 3, 4, 2), DIM("embed", 5, 5, 3)}};
}

static void names_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Storage s = experts();
  Pieces p = {0};
  assert_null(storage_pieces(a, &s, &p));
  assert_int_equal(p.n, 4);
  const char *want[] = {"experts.0.w1.weight", "experts.0.w3.weight", "experts.1.w1.weight", "experts.1.w3.weight"};
  for (uint32_t i = 0; i < p.n; i++) {
    assert_string_equal(p.at[i].name, want[i]);
    assert_int_equal(p.at[i].ndim, 2);
    assert_int_equal(p.at[i].shape[0], 3);
    assert_int_equal(p.at[i].shape[1], 5);
    assert_int_equal(p.at[i].at, i * 20);
  }
  Storage attn = {"h.0.attn.c_attn.weight", DT_f32, 4, {DIM("embed", 64, 64, 0), DIM("qkv", 3, 3, 1), DIM("heads", 4, 4, 1), DIM("hd", 8, 8, 1)}};
  Pieces q = {0};
  assert_null(storage_pieces(a, &attn, &q));
  assert_int_equal(q.at[0].ndim, 2);
  assert_int_equal(q.at[0].shape[1], 96);
  assert_int_equal(q.at[0].nloop, 1);                      // one stretch
  Storage scalar = {"temperature", DT_f64, 0, {{0}}};
  Pieces r = {0};
  assert_null(storage_pieces(a, &scalar, &r));
  assert_int_equal(r.at[0].ndim, 0);
  assert_int_equal(r.at[0].count, 1);
  arena_destroy(a);
}

static void refused_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  struct { Str name, why; } rows[] = {
    {"a.{exp}.w", "'a.{exp}.w': 'exp' is no dim of the variable"},
    {"a.{gate:w1,w3,w2}", "'a.{gate:w1,w3,w2}' names 3, gate is 2"},
    {"a.{gate", "'a.{gate': '{' without its partner"},
    {"a.gate}", "'a.gate}': '}' without its partner"},
    {"a.{{gate}}", "'a.{{gate}}': '{' without its partner"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    Storage s = experts();
    s.name = rows[i].name;
    Pieces p = {0};
    assert_string_equal(storage_pieces(a, &s, &p), rows[i].why);
  }
  Storage big = {"{a}.{b}", DT_f32, 2, {DIM("a", 1 << 11, 1 << 11, 0), DIM("b", 1 << 11, 1 << 11, 1)}};
  Pieces p = {0};
  assert_non_null(storage_pieces(a, &big, &p));
  big.dim[0].size = big.dim[1].size = INT64_C(1) << 40;
  assert_string_equal(storage_pieces(a, &big, &p), "too many entries");
  arena_destroy(a);
}

// a random variable; every piece read in random stretches and compared with indexes computed the long way
static void values_test(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int round = 0; round < 300; round++) {
    Arena *a = arena_create();
    Storage s = {.dtype = round & 1 ? DT_f32 : DT_f64, .ndim = (int)((seed = hash_mix(seed, 1)) % 5)};
    Text name;
    text_init(&name, a), text_puts(&name, "v");
    bool holed[STORAGE_DIMS] = {0};
    for (int i = 0; i < s.ndim; i++) {
      seed = hash_mix(seed, 2);
      int64_t n = (int64_t)(seed % 4) + 1;
      s.dim[i] = (StorageDim)DIM(arena_printf(a, "d%d", i), n, n + (int64_t)(seed >> 8) % 3, i && seed >> 16 & 1 ? s.dim[i - 1].axis : i);
      holed[i] = (seed >> 20) % 3 == 0;
      if (holed[i]) text_printf(&name, ".{d%d}", i);
    }
    s.name = name.s;
    int64_t total = storage_count(&s);
    double *store = NEW_N(a, double, total + 1), *back = NEW_N(a, double, total + 1), got[8];
    for (int64_t i = 0; i < total; i++) dtype_store(s.dtype, (char *)store + (size_t)i * dtype_bytes(s.dtype), (double)i);
    Pieces p = {0};
    assert_null(storage_pieces(a, &s, &p));
    int64_t values = 0;
    for (uint32_t k = 0; k < p.n; k++) {
      values += p.at[k].count;
      for (int64_t v = 0, n; v < p.at[k].count; v += n) {
        n = (int64_t)((seed = hash_mix(seed, 3)) % 8) + 1;
        n = n > p.at[k].count - v ? p.at[k].count - v : n;
        piece_get(&p.at[k], &s, store, v, n, DT_f64, got);
        piece_put(&p.at[k], &s, back, v, n, DT_f64, got);
        for (int64_t j = v; j < v + n; j++) {              // the index of each dim: of the piece in the holes, of j in the rest
          int64_t of_piece = k, of_value = j, at = 0, step = 1;
          for (int i = s.ndim; i-- > 0; step *= s.dim[i].size) {
            int64_t *from = holed[i] ? &of_piece : &of_value;
            at += *from % s.dim[i].extent * step, *from /= s.dim[i].extent;
          }
          if (got[j - v] != (double)at) fail_msg("round %d, %s value %lld: element %g, not %lld", round, p.at[k].name, (long long)j, got[j - v], (long long)at);
        }
      }
    }
    assert_int_equal(values, storage_valid(&s));
    int64_t kept = 0;
    for (int64_t i = 0; i < total; i++) {
      double v = dtype_load(s.dtype, (char *)back + (size_t)i * dtype_bytes(s.dtype));
      assert_true(v == 0 || v == (double)i);
      kept += v != 0;
    }
    assert_int_equal(kept, values - 1);                    // element 0 holds 0
    arena_destroy(a);
  }
}

static void shapes_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  Storage s = {"h.0.attn.c_attn.weight", DT_f32, 4, {DIM("embed", 64, 64, 0), DIM("qkv", 3, 3, 1), DIM("heads", 4, 4, 1), DIM("hd", 8, 8, 1)}};
  Pieces p = {0};
  assert_null(storage_pieces(a, &s, &p));
  struct { int n; int64_t shape[6]; bool fits; } rows[] = {
    {2, {64, 96}, true}, {4, {64, 3, 4, 8}, true}, {3, {64, 3, 32}, true}, {3, {64, 12, 8}, true}, {1, {6144}, true},
    {2, {192, 32}, true}, {2, {64, 192}, false}, {2, {96, 64}, false}, {2, {32, 192}, false}, {4, {1, 64, 1, 96}, true},
    {3, {64, 4, 24}, false}, {2, {-64, -96}, false}, {2, {INT64_MAX, INT64_MAX}, false}, {0, {0}, false},
  };
  for (size_t i = 0; i < COUNT(rows); i++)
    if (piece_fits(&s, &p.at[0], rows[i].n, rows[i].shape) != rows[i].fits) fail_msg("row %zu", i);
  assert_string_equal(piece_mismatch(a, &s, &p.at[0], "model.safetensors", 2, (int64_t[]){64, 192}),
                      "h.0.attn.c_attn.weight is [64, 192] in model.safetensors; [embed 64, qkv 3, heads 4, hd 8] groups to [64, 96]");
  arena_destroy(a);
}

static void aliases_test(void **state) {
  (void)state;
  Arena *a = arena_create();
  assert_string_equal(tensor_alias(a, "wte.weight", 1), "transformer.wte.weight");
  assert_string_equal(tensor_alias(a, "transformer.wte.weight", 1), "wte.weight");
  assert_string_equal(tensor_alias(a, "bert.embeddings.LayerNorm.bias", 2), "bert.embeddings.LayerNorm.beta");
  assert_null(tensor_alias(a, "wte.weight", 2));
  assert_true(tensor_ignored("h.3.attn.bias") && tensor_ignored("model.layers.0.self_attn.rotary_emb.inv_freq"));
  assert_false(tensor_ignored("h.3.attn.c_attn.bias"));
  assert_string_equal(tensor_tied("lm_head.weight", 1), "model.embed_tokens.weight");
  assert_null(tensor_tied("lm_head.weight", 2));
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_test), cmocka_unit_test(refused_test), cmocka_unit_test(values_test),
                                     cmocka_unit_test(shapes_test), cmocka_unit_test(aliases_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
