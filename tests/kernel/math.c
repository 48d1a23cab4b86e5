// math.c -- the f32 functions of kernel_math.h against the C library in f64: every exponent, both signs, the corners.
// `long` as argument: 67 times as many.
#include "runtime/base.h"
#include "runtime/philox.h"
#include "runtime/dtype.h"
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static uint32_t stride = 4093;                // between the bit patterns that are tried; prime

// The error in units of the last place of the right value; subnormal results count in the smallest unit.
static double ulps(float got, double want) {
  float w = (float)want;
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf(w) || isinf(got)) return got == w || (isinf(w) && fabsf(got) == 0x1.fffffep127f) ? 0 : INFINITY;
  int e;
  frexp(want, &e);
  return fabs((double)got - want) / ldexp(1, want == 0 || e < -125 ? -149 : e - 24);
}

static const float corners[] = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f,
                                88.722839f, 88.72284f, -87.33655f, -103.97208f, -103.97209f, -104.5f, 0.625f, 0.921875f, 4, 0x1p20f, 0x1p-24f, 1.5f};

#define CHECK_ALL(name, limit) do { \
    double worst = 0; \
    float at = 0; \
    for (uint64_t u = 0; u < (uint64_t)1 << 32; u += stride) { \
      float x = u < COUNT(corners) * (uint64_t)stride ? corners[u / stride] : f32_bits((uint32_t)u); \
      double e = ulps(name##_f32(x), name((double)x)); \
      if (!(e <= worst)) worst = e, at = x; \
    } \
    if (!(worst <= limit)) fail_msg("%s(%a) = %a, not %a: %g ulp", #name, (double)at, (double)name##_f32(at), name((double)at), worst); \
  } while (0)

static double rsqrt(double x) { return 1 / sqrt(x); }

static void functions(void **state) {
  (void)state;
  CHECK_ALL(exp, 1.5);
  CHECK_ALL(log, 1.5);
  CHECK_ALL(tanh, 2);
  CHECK_ALL(erf, 2);
  CHECK_ALL(sin, 0.51);
  CHECK_ALL(cos, 0.51);
  CHECK_ALL(sqrt, 0.501);
  CHECK_ALL(rsqrt, 1.5);
  CHECK_ALL(floor, 0);
  CHECK_ALL(ceil, 0);
}

static void angles(void **state) {
  (void)state;
  assert_true(fabs((double)cos_f32(1044.2678f) - 0.30669) < 5e-5);      // a rotary angle at position 1857
  float far[] = {1e5f, 123456.79f, 1048575.9f, 1048576.0f, 1e7f, 1e9f, 1e20f, 1e30f, 3.4028235e38f};
  for (size_t i = 0; i < COUNT(far); i++)
    for (int s = -1; s <= 1; s += 2) {
      float x = far[i] * (float)s;
      assert_true(ulps(sin_f32(x), sin((double)x)) < 0.51 && ulps(cos_f32(x), cos((double)x)) < 0.51);
    }
}

static void powers(void **state) {
  (void)state;
  float corner[] = {0.0f, -0.0f, 1, -1, 2, -2, 3, -3, 0.5f, -0.5f, 2.5f, -2.5f, 1e-45f, -1e-45f, 1e38f, -1e38f, 16777215.0f, 16777216.0f,
                    8388609.5f, 8388607.5f, INFINITY, -INFINITY, NAN, 1.0000001f, 0.99999994f, 10, 127, 128, -149, -150};
  for (size_t i = 0; i < COUNT(corner); i++)
    for (size_t j = 0; j < COUNT(corner); j++) {
      float got = pow_f32(corner[i], corner[j]);
      double want = pow((double)corner[i], (double)corner[j]);
      if (!(ulps(got, want) <= 1)) fail_msg("pow(%a, %a) = %a, not %a", (double)corner[i], (double)corner[j], (double)got, want);
      if (want == 0) assert_int_equal(signbit(got) != 0, signbit(want) != 0);
    }
  for (uint64_t i = 0; i < 2000000; i++) {
    Philox p = philox_at(7, 0, 0, i);
    float x = f32_bits(p.w[0]), y = i & 1 ? f32_bits(p.w[1]) : (float)(int32_t)p.w[1] * 0x1p-27f;
    float got = pow_f32(x, y);
    double want = pow((double)x, (double)y);
    if (!(ulps(got, want) <= 1)) fail_msg("pow(%a, %a) = %a, not %a", (double)x, (double)y, (double)got, want);
  }
}

static void halves(void **state) {             // the 16-bit formats agree with dtype.h, which has tests of its own
  (void)state;
  for (uint32_t h = 0; h < 1 << 16; h++) {
    assert_true(bits_f32(f32_bf16((uint16_t)h)) == bits_f32(bf16_to_f32((uint16_t)h)));
    float a = f32_f16((uint16_t)h), b = f16_to_f32((uint16_t)h);
    assert_true(bits_f32(a) == bits_f32(b));
  }
  for (uint64_t u = 0; u < (uint64_t)1 << 32; u += stride) {
    float x = f32_bits((uint32_t)u);
    if (bf16_f32(x) != f32_to_bf16(x)) fail_msg("bf16 of %a", (double)x);
    if (f16_f32(x) != f32_to_f16(x)) fail_msg("f16 of %a: %04x, not %04x", (double)x, f16_f32(x), f32_to_f16(x));
  }
}

static void integers(void **state) {
  (void)state;
  static const int32_t v[] = {0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, INT32_MAX, INT32_MIN, INT32_MIN + 1};
  for (size_t i = 0; i < COUNT(v); i++)
    for (size_t j = 0; j < COUNT(v); j++) {
      if (!v[j]) {
        assert_true(div_i32(v[i], 0) == 0 && mod_i32(v[i], 0) == 0 && div_i64(v[i], 0) == 0 && mod_i64(v[i], 0) == 0);
        continue;
      }
      int64_t q = (int64_t)floor((double)v[i] / v[j]), r = v[i] - q * v[j];
      assert_true(div_i64(v[i], v[j]) == q && mod_i64(v[i], v[j]) == r && mod_i32(v[i], v[j]) == (int32_t)r && div_i32(v[i], v[j]) == (int32_t)(uint32_t)q);
    }
  assert_true(div_i64(INT64_MIN, -1) == INT64_MIN && mod_i64(INT64_MIN, -1) == 0);
  float f[] = {0, -0.5f, 0.9f, -0.9f, 1e9f, 3e9f, -3e9f, 1e20f, -1e20f, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < COUNT(f); i++) {
    int32_t a;
    int64_t b;
    dtype_store(DT_i32, &a, (double)f[i]), dtype_store(DT_i64, &b, (double)f[i]);
    assert_true(i32_f32(f[i]) == a && i32_f64((double)f[i]) == a && i64_f32(f[i]) == b && i64_f64((double)f[i]) == b);
  }
}

static void known_answers(void **state) {      // Random123's kat_vectors
  (void)state;
  static const uint32_t kat[3][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int i = 0; i < 3; i++) {
    const uint32_t *c = kat[i];
    Philox p = philox(c[0], c[1], c[2], c[3], c[4], c[5]);
    assert_memory_equal(p.w, c + 6, 16);
  }
}

static void draws(void **state) {              // moments of a million, within five standard errors
  (void)state;
  enum { N = 1000000 };
  double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n3 = 0, n4 = 0;
  for (uint64_t i = 0; i < N; i++) {
    double u = (double)philox_uniform(1234, 5, 0xdeadbeef, i), n = (double)philox_normal(1234, 5, 0xdeadbeef, i);
    assert_true(u >= 0 && u < 1 && fabs(n) < 6);
    u1 += u, u2 += u * u, n1 += n, n2 += n * n, n3 += n * n * n, n4 += n * n * n * n;
  }
  assert_true(fabs(u1 / N - 0.5) < 5 * 0.29e-3 && fabs(u2 / N - 1.0 / 3) < 5 * 0.3e-3);
  assert_true(fabs(n1 / N) < 5e-3 && fabs(n2 / N - 1) < 5 * 1.42e-3 && fabs(n3 / N) < 5 * 3.9e-3 && fabs(n4 / N - 3) < 5 * 9.8e-3);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "long")) stride = 61;
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(angles), cmocka_unit_test(powers), cmocka_unit_test(halves),
                                     cmocka_unit_test(integers), cmocka_unit_test(known_answers), cmocka_unit_test(draws)};
  return cmocka_run_group_tests(tests, 0, 0);
}
