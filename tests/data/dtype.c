// Number formats: every 16-bit float there and back, rounding against a search among all of them, edges of integers.
#include "runtime/dtype.h"
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

static uint64_t random_bits(uint64_t *s) { return *s = hash_mix(*s, 7); }

static void names_test(void **state) {
  (void)state;
  assert_int_equal(dtype_find("bf16"), DT_bf16);
  assert_int_equal(dtype_find("float"), DT_float);
  assert_int_equal(dtype_find("F32"), DT_none);
  assert_int_equal(dtype_find_file("BOOL"), DT_bool);
  assert_int_equal(dtype_find_file(""), DT_none);
  assert_int_equal(DT_none, 0);
  assert_int_equal(dtype_bytes(DT_float), 0);
  assert_string_equal(dtype_c_name(DT_bool), "uint8_t");
  for (DType t = DT_f64; t < DT_COUNT; t++) {
    assert_int_equal(dtype_find(dtype_name(t)), t);
    assert_int_equal(dtype_find_file(dtype_file_name(t)), t);
  }
}

static void there_and_back_test(void **state) {
  (void)state;
  for (uint32_t b = 0; b < 65536; b++) {
    uint16_t h = (uint16_t)b;
    bool nan16 = (h & 0x7fff) > 0x7c00, nanb = (h & 0x7fff) > 0x7f80;
    uint16_t back = f32_to_f16(f16_to_f32(h));
    assert_int_equal(back, nan16 ? h | 0x200 : h);
    back = f32_to_bf16(bf16_to_f32(h));
    assert_int_equal(back, nanb ? h | 0x40 : h);
    assert_int_equal(f64_to_f16((double)f16_to_f32(h)), nan16 ? h | 0x200 : h);
    if (nan16) assert_true(isnan(dtype_load(DT_f16, &h)));
    if (nanb) assert_true(isnan(dtype_load(DT_bf16, &h)));
  }
}

// the nearest of all finite values of a 16-bit format by halving, ties to the even bits; the first value past the
// largest counts as infinity
static uint16_t nearest_bits(DType t, double v) {
  uint16_t sign = signbit(v) ? 0x8000 : 0, top = t == DT_f16 ? 0x7c00 : 0x7f80, lo = 0, hi = top;
  double past = t == DT_f16 ? 65536.0 : 0x1p128;
  v = fabs(v);
  while (hi - lo > 1) {
    uint16_t mid = (uint16_t)((lo + hi) / 2);
    if (dtype_load(t, &mid) <= v) lo = mid;
    else hi = mid;
  }
  double a = dtype_load(t, &lo), b = hi == top ? past : dtype_load(t, &hi);
  double below = v - a, above = b - v;                     // exact: v, a and b are within a factor of 2, or a is 0
  return sign | (below < above || (below == above && !(lo & 1)) ? lo : hi);
}

static void rounding_test(void **state) {
  (void)state;
  uint64_t s = 1;
  for (int i = 0; i < 200000; i++) {
    DType t = i & 1 ? DT_f16 : DT_bf16;
    uint16_t near = (uint16_t)random_bits(&s), got;
    double v = dtype_load(t, &near);
    if (!isfinite(v)) continue;
    uint16_t next = (uint16_t)(near + 1);
    double w = dtype_load(t, &next);
    if (isfinite(w)) {
      // halfway and a hair beside it, where double rounding fails
      switch (random_bits(&s) % 4) {
        case 0: v = v / 2 + w / 2; break;
        case 1: v = nextafter(v / 2 + w / 2, w); break;
        case 2: v = nextafter(v / 2 + w / 2, v); break;
        default: v += (w - v) * (double)(random_bits(&s) >> 11) * 0x1p-53;
      }
    } else {
      v *= 1 + (double)(random_bits(&s) >> 11) * 0x1p-61;
    }
    dtype_store(t, &got, v);
    if (got != nearest_bits(t, v))
      fail_msg("step %d: %s of %a is %04x, nearest is %04x", i, dtype_name(t), v, got, nearest_bits(t, v));
    float f = (float)v;
    got = t == DT_f16 ? f32_to_f16(f) : f32_to_bf16(f);
    if (got != nearest_bits(t, (double)f)) fail_msg("step %d: %s of float %a", i, dtype_name(t), (double)f);
  }
}

static void integers_test(void **state) {
  (void)state;
  struct { DType t; double v, want; } rows[] = {
    {DT_i8, 127.9, 127}, {DT_i8, -1e9, -128}, {DT_u8, -0.5, 0}, {DT_u8, 300, 255}, {DT_u16, 65536, 65535},
    {DT_i32, (double)NAN, 0}, {DT_i32, 1e300, 2147483647}, {DT_i64, -1e300, -0x1p63}, {DT_u64, 1e300, 0x1p64},
    {DT_u64, -3, 0}, {DT_bool, 0.25, 1}, {DT_bool, 0, 0}, {DT_bool, (double)NAN, 1},
    {DT_f16, 65519.9, 65504}, {DT_f16, 65520, (double)INFINITY},
    {DT_bf16, 1e39, (double)INFINITY}, {DT_f16, 0x1p-25, 0}, {DT_f16, 0x1.00001p-25, 0x1p-24},
    {DT_f32, 1e39, (double)INFINITY},
  };
  for (size_t i = 0; i < COUNT(rows); i++)
    if (dtype_round(rows[i].t, rows[i].v) != rows[i].want)
      fail_msg("%s of %g is %g", dtype_name(rows[i].t), rows[i].v, dtype_round(rows[i].t, rows[i].v));
  int64_t big = (INT64_C(1) << 53) + 1, out;
  dtype_convert(DT_u64, &out, DT_i64, &big, 1);
  assert_true(out == big);
  uint64_t huge = UINT64_MAX;
  double d;
  dtype_convert(DT_f64, &d, DT_u64, &huge, 1);
  assert_true(d == 0x1p64);
  char odd[9];                                             // unaligned
  dtype_store(DT_f64, odd + 1, 2.5);
  assert_true(dtype_load(DT_f64, odd + 1) == 2.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_test), cmocka_unit_test(there_and_back_test),
                                     cmocka_unit_test(rounding_test), cmocka_unit_test(integers_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
