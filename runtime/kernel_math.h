// kernel_math.h -- what generated kernels call. This text opens every generated C file (so: no includes), and the runtime
// includes it where it needs the same bits.
//
// f32 functions are our own: branch-free, only + - * /, fma where it is written (elsewhere a * b + c is two roundings) and
// integer operations, so that loops over them vectorise and the bits do not depend on the C library, the compiler or the
// CPU. Errors at most 2 ulp over the whole range, tested. f64 functions are the C library's.
#ifndef MT_KERNEL_MATH_H
#define MT_KERNEL_MATH_H
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
#define MT_FN static inline __attribute__((always_inline, unused))
#define MT_INF_F32 __builtin_inff()
#define MT_NAN_F32 __builtin_nanf("")
#define MT_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define MT_FMA64(a, b, c) __builtin_fma(a, b, c)

MT_FN uint32_t bits_f32(float x) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u; }
MT_FN float f32_bits(uint32_t u) { float x; __builtin_memcpy(&x, &u, 4); return x; }
MT_FN uint64_t bits_f64(double x) { uint64_t u; __builtin_memcpy(&u, &x, 8); return u; }
MT_FN double f64_bits(uint64_t u) { double x; __builtin_memcpy(&x, &u, 8); return x; }

// ---- simple ones: div mod min max abs sqrt rsqrt floor ceil --------------------------------------------------------
double fmod(double, double); float fmodf(float, float); double pow(double, double); double exp(double); double log(double);
double tanh(double); double erf(double); double sin(double); double cos(double);

MT_FN float div_f32(float a, float b) { return a / b; }
MT_FN double div_f64(double a, double b) { return a / b; }
// s such that a / b is a * (1 / (b * s)) * s without overflow on the way: what loops over a use, at 1.5 ulp.
MT_FN float near_f32(float b) {
  float m = __builtin_fabsf(b);
  return m < 0x1p-100f ? 0x1p64f : m > 0x1p100f ? 0x1p-64f : 1.0f;
}
MT_FN int32_t div_i32(int32_t a, int32_t b) {          // rounds down; by 0: 0
  if (b == 0) return 0;
  int64_t q = (int64_t)a / b, r = (int64_t)a % b;
  return (int32_t)(q - (r != 0 && (r < 0) != (b < 0)));
}
MT_FN int64_t div_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  int64_t q = a / b, r = a % b;
  return q - (r != 0 && (r < 0) != (b < 0));
}
MT_FN float mod_f32(float a, float b) { float r = fmodf(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
MT_FN double mod_f64(double a, double b) { double r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
MT_FN int32_t mod_i32(int32_t a, int32_t b) { return b == 0 ? 0 : (int32_t)((uint32_t)a - (uint32_t)div_i32(a, b) * (uint32_t)b); }
MT_FN int64_t mod_i64(int64_t a, int64_t b) { return b == 0 ? 0 : (int64_t)((uint64_t)a - (uint64_t)div_i64(a, b) * (uint64_t)b); }
MT_FN float max_f32(float a, float b) { return ((a >= b) | (a != a)) ? a : b; }
MT_FN float min_f32(float a, float b) { return ((a <= b) | (a != a)) ? a : b; }
MT_FN double max_f64(double a, double b) { return ((a >= b) | (a != a)) ? a : b; }
MT_FN double min_f64(double a, double b) { return ((a <= b) | (a != a)) ? a : b; }
MT_FN int32_t max_i32(int32_t a, int32_t b) { return a >= b ? a : b; }
MT_FN int32_t min_i32(int32_t a, int32_t b) { return a <= b ? a : b; }
MT_FN int64_t max_i64(int64_t a, int64_t b) { return a >= b ? a : b; }
MT_FN int64_t min_i64(int64_t a, int64_t b) { return a <= b ? a : b; }
MT_FN float abs_f32(float a) { return __builtin_fabsf(a); }
MT_FN double abs_f64(double a) { return __builtin_fabs(a); }
MT_FN int32_t abs_i32(int32_t a) { return a < 0 ? (int32_t)(0 - (uint32_t)a) : a; }
MT_FN int64_t abs_i64(int64_t a) { return a < 0 ? (int64_t)(0 - (uint64_t)a) : a; }
MT_FN float sqrt_f32(float a) { return __builtin_sqrtf(a); }
MT_FN double sqrt_f64(double a) { return __builtin_sqrt(a); }
MT_FN float rsqrt_f32(float a) { return 1.0f / __builtin_sqrtf(a); }
MT_FN double rsqrt_f64(double a) { return 1.0 / __builtin_sqrt(a); }
MT_FN float floor_f32(float a) { return __builtin_floorf(a); }
MT_FN double floor_f64(double a) { return __builtin_floor(a); }
MT_FN float ceil_f32(float a) { return __builtin_ceilf(a); }
MT_FN double ceil_f64(double a) { return __builtin_ceil(a); }

// ---- conversions ----------------------------------------------------------------------------------------------------
// to integers: towards zero, held at the ends, NaN is 0
MT_FN int32_t i32_f64(double x) { return x >= 0x1p31 ? 2147483647 : x <= -0x1p31 ? -2147483647 - 1 : x != x ? 0 : (int32_t)x; }
MT_FN int32_t i32_f32(float x) { return x >= 0x1p31f ? 2147483647 : x <= -0x1p31f ? -2147483647 - 1 : x != x ? 0 : (int32_t)x; }
MT_FN int64_t i64_f64(double x) { return x >= 0x1p63 ? 9223372036854775807 : x <= -0x1p63 ? -9223372036854775807 - 1 : x != x ? 0 : (int64_t)x; }
MT_FN int64_t i64_f32(float x) { return x >= 0x1p63f ? 9223372036854775807 : x <= -0x1p63f ? -9223372036854775807 - 1 : x != x ? 0 : (int64_t)x; }
#define MT_HOLD(lo, hi, x) ((x) < (lo) ? (lo) : (x) > (hi) ? (hi) : (x))
MT_FN int32_t i32_i64(int64_t x) { return x > 2147483647 ? 2147483647 : x < -2147483647 - 1 ? -2147483647 - 1 : (int32_t)x; }

MT_FN float f32_bf16(uint16_t b) { return f32_bits((uint32_t)b << 16); }
MT_FN uint16_t bf16_f32(float x) {                     // to nearest, ties to even; NaN stays a quiet NaN
  uint32_t u = bits_f32(x);
  uint32_t r = u + 0x7fffu + (u >> 16 & 1u);
  return (uint16_t)((x != x ? u | 0x400000u : r) >> 16);
}
MT_FN float f32_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
  float small = (float)(int32_t)m * 0x1p-24f;
  uint32_t u = e == 31 ? 0x7f800000u | m << 13 : e ? (e + 112) << 23 | m << 13 : bits_f32(small);
  return f32_bits(u | sign);
}
MT_FN uint16_t f16_f32(float x) {
  uint32_t u = bits_f32(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  uint32_t small = bits_f32(f32_bits(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;   // 0.5's unit is 2^-24
  uint32_t r = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x1ffu) : a >= 0x477ff000u ? 0x7c00u : a >= 0x38800000u ? normal : small;
  return (uint16_t)(sign | r);
}
MT_FN float round_bf16(float x) { return f32_bf16(bf16_f32(x)); }
MT_FN float round_f16(float x) { return f32_f16(f16_f32(x)); }

// ---- exp log tanh erf: Cephes' polynomials (S. Moshier), erf's N. Juffa's ------------------------------------------
// Chains are kept short: terms in pairs, and selects that do not depend on one another. A processor looks about 100
// instructions ahead, which is one element's chain of them.
MT_FN float exp_rest(float x, float *t) {              // e^r of x = n ln 2 + r, |r| <= ln 2 / 2; the low bits of t are n
  *t = MT_FMA(x, 1.44269504f, 0x1.8p23f);
  float n = *t - 0x1.8p23f;
  float r = MT_FMA(n, -0.693359375f, x);
  r = MT_FMA(n, 2.12194440e-4f, r);
  float z = r * r;
  float p = MT_FMA(1.9875691500e-4f, r, 1.3981999507e-3f);
  p = MT_FMA(p, z, MT_FMA(8.3334519073e-3f, r, 4.1665795894e-2f));
  p = MT_FMA(p, z, MT_FMA(1.6666665459e-1f, r, 5.0000001201e-1f));
  return MT_FMA(p, z, r) + 1.0f;
}
MT_FN float exp_f32(float x) {
  float t, p = exp_rest(x < -104.0f ? -104.0f : x, &t);                 // a NaN passes
  int32_t i = (int32_t)(bits_f32(t) - 0x4b400000u), h = i >> 1;         // in two factors: n is -150 to 128
  p = p * f32_bits((uint32_t)(h + 127) << 23) * f32_bits((uint32_t)(i - h + 127) << 23);
  return x > 88.722839f ? MT_INF_F32 : p;
}

MT_FN float log_f32(float x) {                         // x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
  int32_t tiny = x < 0x1p-126f;
  float y = tiny ? x * 0x1p23f : x;
  uint32_t u = bits_f32(y);
  int32_t k = (int32_t)(u - 0x3f3504f3u) >> 23;
  float f = f32_bits(u - ((uint32_t)k << 23)) - 1.0f, e = (float)(k - (tiny ? 23 : 0)), z = f * f;
  float p = 7.0376836292e-2f;
  p = MT_FMA(p, f, -1.1514610310e-1f);
  p = MT_FMA(p, f, 1.1676998740e-1f);
  p = MT_FMA(p, f, -1.2420140846e-1f);
  p = MT_FMA(p, f, 1.4249322787e-1f);
  p = MT_FMA(p, f, -1.6668057665e-1f);
  p = MT_FMA(p, f, 2.0000714765e-1f);
  p = MT_FMA(p, f, -2.4999993993e-1f);
  p = MT_FMA(p, f, 3.3333331174e-1f);
  p = p * f * z;
  p = MT_FMA(e, -2.12194440e-4f, p);
  p = MT_FMA(z, -0.5f, p);
  float r = MT_FMA(e, 0.693359375f, f + p);
  r = x == 0 ? -MT_INF_F32 : r;
  r = x < 0 ? MT_NAN_F32 : r;
  return x == MT_INF_F32 || x != x ? x : r;
}

MT_FN float tanh_f32(float x) {                        // e / (e + 2), e = e^2|x| - 1; from 0 a polynomial
  float a = abs_f32(x), y = x * x;
  float c = a > 10.0f ? 10.0f : a;                     // tanh(10) is 1
  float t = MT_FMA(c, 2.88539008f, 0x1.8p23f);         // 2c = n ln 2 + 2r, as in exp
  float n = t - 0x1.8p23f;
  float r = MT_FMA(n, -0.346573591f, c), z = r * r;
  float e = MT_FMA(0x1.120c68p-2f, r, 0x1.5554e8p-1f);
  e = MT_FMA(0x1.6d444ep-4f, z, e);
  e = MT_FMA(e, z, MT_FMA(0x1.5554dcp+0f, r, 2.0f));
  e = MT_FMA(e, z, r + r);                             // e^2r - 1
  float s = f32_bits((bits_f32(t) << 23) + 0x3f800000u);               // 2^n
  e = MT_FMA(s, e, s - 1.0f);
  float p = MT_FMA(0x1.4b32e4p-6f, y, -0x1.b949a6p-5f);
  p = MT_FMA(p, y, 0x1.11100ap-3f);
  p = MT_FMA(p, y, -0x1.555554p-2f);
  p = MT_FMA(p * y, x, x);
  return a < 0.3125f ? p : __builtin_copysignf(e / (e + 2.0f), x);
}

// 1 + tanh(x) = 2 / (1 + e^-2x): no small x apart, and no digits lost where it is near 0 (6 ulp at most). Below -43, where
// it is less than 2^-123, it is 0.
MT_FN float tanh1_f32(float x) {
  float c = x > 10.0f ? 10.0f : x;                     // e^-20 is lost beside 1; a NaN passes
  float t = MT_FMA(c, -2.88539008f, 0x1.8p23f);        // -2c = n ln 2 - 2r
  float n = t - 0x1.8p23f;
  float r = MT_FMA(n, 0.346573591f, c), z = r * r;
  float p = MT_FMA(-0x1.120c68p-2f, r, 0x1.5554e8p-1f);
  p = MT_FMA(0x1.6d444ep-4f, z, p);
  p = MT_FMA(p, z, MT_FMA(-0x1.5554dcp+0f, r, 2.0f));
  p = MT_FMA(p, z, MT_FMA(-2.0f, r, 1.0f));            // e^-2r
  float e = p * f32_bits((bits_f32(t) << 23) + 0x3f800000u);
  e = x < -43.0f ? MT_INF_F32 : e;
  return 2.0f / (1.0f + e);
}
MT_FN float sech2_f32(float x) {                       // 1 - tanh^2
  float y = tanh1_f32(x);
  return y * (2.0f - y);
}
MT_FN float exp0_f32(float x) {                        // e^x of x <= 0; below 2^-126 it is 0
  float t, p = exp_rest(x, &t);
  return x < -87.336544f ? 0.0f : p * f32_bits((bits_f32(t) << 23) + 0x3f800000u);
}

MT_FN float erf_f32(float x) {
  float a = abs_f32(x) > 4.0f ? 4.0f : abs_f32(x), s = a * a;           // erf(4) is 1
  float r = MT_FMA(-1.72853470e-5f, a, 3.83197126e-4f);
  float u = MT_FMA(-3.88396438e-3f, a, 2.42546219e-2f);
  r = MT_FMA(r, s, u);
  r = MT_FMA(r, a, -1.06777877e-1f);
  r = MT_FMA(r, a, -6.34846687e-1f);
  r = MT_FMA(r, a, -1.28717512e-1f);
  r = MT_FMA(r, a, -a);
  float big = 1.0f - exp_f32(r);
  float p = -5.96761703e-4f;
  p = MT_FMA(p, s, 4.99119423e-3f);
  p = MT_FMA(p, s, -2.67681349e-2f);
  p = MT_FMA(p, s, 1.12819925e-1f);
  p = MT_FMA(p, s, -3.76125336e-1f);
  p = MT_FMA(p, s, 1.28379166e-1f);
  p = MT_FMA(p, x, x);
  return a <= 0.921875f ? p : __builtin_copysignf(big, x);
}

// ---- sin cos: x = q pi/2 + r in f64, exact enough for every float ------------------------------------------------------
// 2/pi as a fixed-point number: word i holds bits 8i-24 to 8i+7 after the point (all shifted by bytes).
static const uint32_t mt_two_over_pi[24] __attribute__((unused)) = {
  0x000000a2, 0x0000a2f9, 0x00a2f983, 0xa2f9836e, 0xf9836e4e, 0x836e4e44, 0x6e4e4415, 0x4e441529,
  0x441529fc, 0x1529fc27, 0x29fc2757, 0xfc2757d1, 0x2757d1f5, 0x57d1f534, 0xd1f534dd, 0xf534ddc0,
  0x34ddc0db, 0xddc0db62, 0xc0db6295, 0xdb629599, 0x6295993c, 0x95993c43, 0x993c4390, 0x3c439041};

MT_FN double reduce_near_f32(float x, int64_t *q) {     // |x| < 2^20
  double d = (double)x, t = MT_FMA64(d, 0.63661977236758138, 0x1.8p52), n = t - 0x1.8p52;
  double r = MT_FMA64(n, -1.57079632673412561417e+00, d);              // pi/2 in parts of 33, 33 and 53 bits
  r = MT_FMA64(n, -6.07710050630396597660e-11, r);
  *q = (int64_t)bits_f64(t);
  return MT_FMA64(n, -2.02226624879595063154e-21, r);
}

MT_FN double reduce_f32(float x, int64_t *q) {
  int64_t near;
  double r = reduce_near_f32(x, &near);
  // From 2^20 on: mantissa times the 96 bits of 2/pi that matter (Payne and Hanek; as in ARM's optimized routines).
  uint32_t u = bits_f32(x), m = ((u & 0xffffffu) | 0x800000u) << (u >> 23 & 7u), at = u >> 26 & 15u;
  uint64_t p = (uint64_t)(uint32_t)(m * mt_two_over_pi[at]) << 32 | (uint64_t)m * mt_two_over_pi[at + 8] >> 32;
  p += (uint64_t)m * mt_two_over_pi[at + 4];
  int64_t k = (int64_t)((p + (1ull << 61)) >> 62);
  double far = (double)(int64_t)(p - ((uint64_t)k << 62)) * 0x1.921fb54442d18p-62;    // pi/2 over 2^62
  int32_t is_far = (u & 0x7fffffffu) >= 0x49800000u, negative = (int32_t)(u >> 31);
  *q = is_far ? (negative ? -k : k) : near;
  r = is_far ? (negative ? -far : far) : r;
  return (u & 0x7f800000u) == 0x7f800000u ? (double)MT_NAN_F32 : r;     // no sine of infinity
}

MT_FN float circle_f32(double r, int64_t q) {          // sin(r + q pi/2), |r| <= pi/4
  double z = r * r;
  double s = -2.5052108385441719e-8;
  s = MT_FMA64(s, z, 2.7557319223985893e-6);
  s = MT_FMA64(s, z, -1.9841269841269841e-4);
  s = MT_FMA64(s, z, 8.3333333333333333e-3);
  s = MT_FMA64(s, z, -1.6666666666666667e-1);
  s = MT_FMA64(s * z, r, r);
  double c = 2.0876756987868099e-9;
  c = MT_FMA64(c, z, -2.7557319223985888e-7);
  c = MT_FMA64(c, z, 2.4801587301587302e-5);
  c = MT_FMA64(c, z, -1.3888888888888889e-3);
  c = MT_FMA64(c, z, 4.1666666666666664e-2);
  c = MT_FMA64(c, z, -0.5);
  c = MT_FMA64(c, z, 1.0);
  double y = q & 1 ? c : s;
  return (float)(q & 2 ? -y : y);
}
MT_FN float sin_f32(float x) { int64_t q; double r = reduce_f32(x, &q); return circle_f32(r, q); }
MT_FN float cos_near_f32(float x) { int64_t q; double r = reduce_near_f32(x, &q); return circle_f32(r, q + 1); } // |x| < 2^20
MT_FN float cos_f32(float x) { int64_t q; double r = reduce_f32(x, &q); return circle_f32(r, q + 1); }

// ---- pow: 2^(y log2 |x|) in f64, the sign and the corners of C ---------------------------------------------------------
MT_FN float pow_f32(float x, float y) {
  double a = (double)abs_f32(x);                       // subnormal floats are normal here
  uint64_t u = bits_f64(a);
  int64_t k = (int64_t)(u - 0x3fe6a09e667f3bcdull) >> 52;
  double m = f64_bits(u - ((uint64_t)k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
  double l = 1.0 / 19;                                 // log m = 2 (s + s^3/3 + …), |s| <= 0.1716
  l = MT_FMA64(l, z, 1.0 / 17);
  l = MT_FMA64(l, z, 1.0 / 15);
  l = MT_FMA64(l, z, 1.0 / 13);
  l = MT_FMA64(l, z, 1.0 / 11);
  l = MT_FMA64(l, z, 1.0 / 9);
  l = MT_FMA64(l, z, 1.0 / 7);
  l = MT_FMA64(l, z, 1.0 / 5);
  l = MT_FMA64(l, z, 1.0 / 3);
  l = MT_FMA64(MT_FMA64(l * z, s, s), 2.8853900817779268, (double)(int32_t)k);
  l = a == 0 ? -(double)MT_INF_F32 : a > 0x1p200 ? (double)MT_INF_F32 : l;
  double e = (double)y * l;
  e = e < -300.0 ? -300.0 : e;                         // a NaN passes
  e = e > 300.0 ? 300.0 : e;
  double t = e + 0x1.8p52, n = t - 0x1.8p52, r = (e - n) * 0.69314718055994531;
  double p = 1.0 / 39916800;
  p = MT_FMA64(p, r, 1.0 / 3628800);
  p = MT_FMA64(p, r, 1.0 / 362880);
  p = MT_FMA64(p, r, 1.0 / 40320);
  p = MT_FMA64(p, r, 1.0 / 5040);
  p = MT_FMA64(p, r, 1.0 / 720);
  p = MT_FMA64(p, r, 1.0 / 120);
  p = MT_FMA64(p, r, 1.0 / 24);
  p = MT_FMA64(p, r, 1.0 / 6);
  p = MT_FMA64(p, r, 0.5);
  p = MT_FMA64(p, r, 1.0);
  p = MT_FMA64(p, r, 1.0);
  float v = (float)(p * f64_bits((bits_f64(t) - 0x4338000000000000ull + 1023) << 52));
  float ya = abs_f32(y), half = ya * 0.5f;
  int32_t whole = ya >= 0x1p23f || floor_f32(ya) == ya, odd = ya < 0x1p24f && whole && floor_f32(half) != half;
  v = x < 0 && !whole && ya < MT_INF_F32 && x > -MT_INF_F32 ? MT_NAN_F32 : v;
  v = (int32_t)(bits_f32(x) >> 31) & odd ? -v : v;
  v = x != x || y != y ? x + y : v;
  v = abs_f32(x) == 1.0f && ya == MT_INF_F32 ? 1.0f : v;
  return y == 0 || x == 1.0f ? 1.0f : v;
}

// ---- f64: the C library ----------------------------------------------------------------------------------------------
MT_FN double exp_f64(double x) { return exp(x); }
MT_FN double log_f64(double x) { return log(x); }
MT_FN double tanh_f64(double x) { return tanh(x); }
MT_FN double erf_f64(double x) { return erf(x); }
MT_FN double sin_f64(double x) { return sin(x); }
MT_FN double cos_f64(double x) { return cos(x); }
MT_FN double pow_f64(double x, double y) { return pow(x, y); }

// Loops whose iterations touch different elements (the compiler cannot know).
#if defined(__clang__)
#define MT_FREE _Pragma("clang loop vectorize(assume_safety)")
#else
#define MT_FREE _Pragma("GCC ivdep")
#endif

// ---- memory ---------------------------------------------------------------------------------------------------------
// n bytes past the caches: a line that is stored whole is not read first, and nothing needed soon makes room for it.
#if defined(__clang__)
#define MT_PAST(to, v) __builtin_nontemporal_store(v, to)
#elif defined(__AVX512F__)
#define MT_PAST(to, v) __builtin_ia32_movntps512((float *)(to), v)
#elif defined(__AVX__)
#define MT_PAST(to, v) __builtin_ia32_movntps256((float *)(to), v)
#elif defined(__SSE2__)
#define MT_PAST(to, v) __builtin_ia32_movntps((float *)(to), v)
#else
#define MT_PAST(to, v) *(to) = (v)
#endif
#if defined(__AVX512F__)
typedef float MtVector __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float MtVector __attribute__((vector_size(32)));
#else
typedef float MtVector __attribute__((vector_size(16)));
#endif
MT_FN void stream(void *to, const void *from, int64_t n) {
  char *t = to;
  const char *f = from;
  int64_t odd = (int64_t)(-(uintptr_t)t % 64);
  if (odd > n) odd = n;
  if (odd) __builtin_memcpy(t, f, (size_t)odd), t += odd, f += odd, n -= odd;
  for (; n >= 64; n -= 64, t += 64, f += 64)
    for (unsigned i = 0; i < 64; i += sizeof(MtVector)) {
      MtVector v;
      __builtin_memcpy(&v, f + i, sizeof v);
      MT_PAST((MtVector *)(t + i), v);
    }
  if (n) __builtin_memcpy(t, f, (size_t)n);
}
// Before others may read what was streamed.
#if defined(__x86_64__)
#define MT_STREAMED __builtin_ia32_sfence()
#else
#define MT_STREAMED
#endif
// n bytes that are read next.
MT_FN void ahead(const void *p, int64_t n) {
  for (int64_t i = 0; i < n; i += 64) __builtin_prefetch((const char *)p + i);
}

// ---- reductions: 16 lanes, element i in lane i % 16, then a tree ------------------------------------------------------
// Up to 1024 elements are added up in their own format, 64 to a lane, then in f64: the error of a long sum is that of a
// short one. t has room for 1024.
typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef int64_t i64;
enum { MT_LANES = 16, MT_BLOCK = 1024 };
#define MT_SUM(W, a, b) ((a) + (b))
#define MT_MAX(W, a, b) max_##W(a, b)
#define MT_MIN(W, a, b) min_##W(a, b)
#define MT_TREE(word, OP, T, W) \
  MT_FN W tree_##word##_##T(const W *acc) { \
    W a[MT_LANES]; \
    for (int l = 0; l < MT_LANES; l++) a[l] = acc[l]; \
    for (int h = MT_LANES / 2; h; h /= 2) \
      for (int l = 0; l < h; l++) a[l] = OP(W, a[l], a[l + h]); \
    return a[0]; \
  }
// The same tree of sums, as vectors: compilers make 15 single additions, or loops, of the above.
#define MT_HALVES(V, half, whole) V half##0, half##1; \
  __builtin_memcpy(&half##0, whole, sizeof(V)); \
  __builtin_memcpy(&half##1, (const char *)(whole) + sizeof(V), sizeof(V));
#define MT_SUM_TREE(T, W) \
  MT_FN W tree_sum_##T(const W *acc) { \
    typedef W V8 __attribute__((vector_size(64))); \
    typedef W V4 __attribute__((vector_size(32))); \
    typedef W V2 __attribute__((vector_size(16))); \
    MT_HALVES(V8, a, acc) a0 += a1; \
    MT_HALVES(V4, b, &a0) b0 += b1; \
    MT_HALVES(V2, c, &b0) c0 += c1; \
    return c0[0] + c0[1]; \
  }
// A block's quarters are added up side by side: one after another, each addition would wait for the one before.
#define MT_SUMS(T, W) \
  MT_FN void lanes_sum_##T(W *acc, T *t, i64 n) { \
    typedef T V __attribute__((vector_size(MT_LANES * sizeof(T)))); \
    V a = {0}, b = {0}, c = {0}, d = {0}, v; \
    i64 q = (n + 4 * MT_LANES - 1) / (4 * MT_LANES) * MT_LANES; \
    for (i64 i = n; i < 4 * q; i++) t[i] = 0; \
    for (i64 i = 0; i < q; i += MT_LANES) { \
      __builtin_memcpy(&v, t + i, sizeof v), a += v; \
      __builtin_memcpy(&v, t + i + q, sizeof v), b += v; \
      __builtin_memcpy(&v, t + i + 2 * q, sizeof v), c += v; \
      __builtin_memcpy(&v, t + i + 3 * q, sizeof v), d += v; \
    } \
    T s[MT_LANES]; \
    v = (a + b) + (c + d); \
    __builtin_memcpy(s, &v, sizeof v); \
    for (int l = 0; l < MT_LANES; l++) acc[l] += (W)s[l]; \
  } \
  MT_SUM_TREE(T, W)
// The largest or smallest: the block is folded in halves, which compilers vectorise where they do not see 16 maxima as one.
#define MT_EXTREME(word, OP, T, W, none) \
  MT_FN void lanes_##word##_##T(W *acc, T *t, i64 n) { \
    if (n == 0) return; \
    for (; n & (MT_LANES - 1); n++) t[n] = none; \
    while (n > MT_LANES) { \
      i64 h = (n / 2 + MT_LANES - 1) & ~(i64)(MT_LANES - 1), m = n - h; \
      MT_FREE for (i64 i = 0; i < m; i++) t[i] = OP(T, t[i], t[i + h]); \
      n = h; \
    } \
    for (int l = 0; l < MT_LANES; l++) acc[l] = OP(W, acc[l], (W)t[l]); \
  } \
  MT_TREE(word, OP, T, W)
MT_SUMS(f32, f64)
MT_SUMS(f64, f64)
MT_SUMS(i32, i64)
MT_SUMS(i64, i64)
MT_EXTREME(max, MT_MAX, f32, f64, -MT_INF_F32)
MT_EXTREME(max, MT_MAX, f64, f64, -MT_INF_F32)
MT_EXTREME(max, MT_MAX, i32, i64, (-2147483647 - 1))
MT_EXTREME(max, MT_MAX, i64, i64, (-9223372036854775807 - 1))
MT_EXTREME(min, MT_MIN, f32, f64, MT_INF_F32)
MT_EXTREME(min, MT_MIN, f64, f64, MT_INF_F32)
MT_EXTREME(min, MT_MIN, i32, i64, 2147483647)
MT_EXTREME(min, MT_MIN, i64, i64, 9223372036854775807)

#endif
