// dtype.c -- see dtype.h.
#include "runtime/dtype.h"
#include <math.h>

typedef struct { Str name, file, ctype; uint8_t bytes, kind; } Row;
static const Row rows[DT_COUNT] = {
#define DT(word, bytes, kind, ctype, file) {#word, file, #ctype, bytes, KIND_##kind},
#include "runtime/dtype.def"
#undef DT
};

static const Row *row_of(DType t) {
  if ((unsigned)t >= DT_COUNT) bug("no number format %d", (int)t);
  return &rows[t];
}

Str    dtype_name(DType t) { return row_of(t)->name; }
Str    dtype_file_name(DType t) { return row_of(t)->file; }
Str    dtype_c_name(DType t) { return row_of(t)->ctype; }
size_t dtype_bytes(DType t) { return row_of(t)->bytes; }
DKind  dtype_kind(DType t) { return (DKind)row_of(t)->kind; }

DType dtype_find(const char *name) {
  for (DType t = DT_none + 1; t < DT_COUNT; t++)
    if (!strcmp(rows[t].name, name)) return t;
  return DT_none;
}

DType dtype_find_file(const char *name) {
  for (DType t = DT_none + 1; t < DT_COUNT; t++)
    if (rows[t].bytes && !strcmp(rows[t].file, name)) return t;
  return DT_none;
}

// ---- 16-bit floats --------------------------------------------------------------------------------------------
float f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, u;
  float f;
  if (e == 31) u = sign | 0x7f800000 | m << 13;
  else if (e) u = sign | (e + 112) << 23 | m << 13;
  else {                                                   // subnormal: m * 2^-24, exact in f32
    f = (float)m * 0x1p-24f;
    return sign ? -f : f;
  }
  memcpy(&f, &u, 4);
  return f;
}

uint16_t f32_to_f16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
  if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00);   // from 65520 on: infinity
  if (a >= 0x38800000) {                                   // normal: from 2^-14 on
    a -= 0x38000000;
    return (uint16_t)(sign | (a + 0xfff + (a >> 13 & 1)) >> 13);
  }
  if (a < 0x33000000) return (uint16_t)sign;               // below 2^-25: zero
  uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffff) | 0x800000;
  uint32_t kept = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
}

// To f32 with the last bit set when anything was lost: a second rounding to fewer bits is then as good as one.
static float f64_to_odd_f32(double v) {
  float f = (float)v;
  if (isnan(v) || (double)f == v) return f;
  if (isinf(f)) return f;                                  // beyond both 16-bit ranges too
  uint32_t u;
  memcpy(&u, &f, 4);
  if (fabs((double)f) > fabs(v)) u--;                      // towards zero
  u |= 1;
  memcpy(&f, &u, 4);
  return f;
}
uint16_t f64_to_bf16(double v) { return f32_to_bf16(f64_to_odd_f32(v)); }
uint16_t f64_to_f16(double v) { return f32_to_f16(f64_to_odd_f32(v)); }

// ---- one value ------------------------------------------------------------------------------------------------
double dtype_load(DType t, const void *p) {
  switch (t) {
    case DT_f64: { double v; memcpy(&v, p, 8); return v; }
    case DT_f32: { float v; memcpy(&v, p, 4); return v; }
    case DT_f16: { uint16_t v; memcpy(&v, p, 2); return f16_to_f32(v); }
    case DT_bf16: { uint16_t v; memcpy(&v, p, 2); return bf16_to_f32(v); }
    case DT_u64: { uint64_t v; memcpy(&v, p, 8); return (double)v; }
    default: return (double)dtype_load_int(t, p);
  }
}

// towards zero; NaN is 0; lo and hi are the ends, hi + 1 is exact in double
static int64_t to_int(double v, int64_t lo, int64_t hi) {
  if (isnan(v)) return 0;
  if (v <= (double)lo) return lo;
  if (v >= (double)hi) return hi;
  return (int64_t)v;
}

void dtype_store(DType t, void *p, double v) {
  switch (t) {
    case DT_f64: memcpy(p, &v, 8); return;
    case DT_f32: { float x = (float)v; memcpy(p, &x, 4); return; }
    case DT_f16: { uint16_t x = f64_to_f16(v); memcpy(p, &x, 2); return; }
    case DT_bf16: { uint16_t x = f64_to_bf16(v); memcpy(p, &x, 2); return; }
    case DT_u64: { uint64_t x = !(v > 0) ? 0 : v >= 0x1p64 ? UINT64_MAX : (uint64_t)v; memcpy(p, &x, 8); return; }
    case DT_bool: *(uint8_t *)p = v != 0; return;
    default: dtype_store_int(t, p, to_int(v, INT64_MIN, INT64_MAX)); return;
  }
}

int64_t dtype_load_int(DType t, const void *p) {
  switch (t) {
    case DT_i64: { int64_t v; memcpy(&v, p, 8); return v; }
    case DT_i32: { int32_t v; memcpy(&v, p, 4); return v; }
    case DT_i16: { int16_t v; memcpy(&v, p, 2); return v; }
    case DT_i8: return *(const int8_t *)p;
    case DT_u64: { uint64_t v; memcpy(&v, p, 8); return v > INT64_MAX ? INT64_MAX : (int64_t)v; }
    case DT_u32: { uint32_t v; memcpy(&v, p, 4); return v; }
    case DT_u16: { uint16_t v; memcpy(&v, p, 2); return v; }
    case DT_u8: return *(const uint8_t *)p;
    case DT_bool: return *(const uint8_t *)p != 0;
    case DT_f64: case DT_f32: case DT_f16: case DT_bf16: return to_int(dtype_load(t, p), INT64_MIN, INT64_MAX);
    case DT_none: case DT_float: case DT_COUNT: break;
  }
  bug("%s has no storage", dtype_name(t));
}

#define PUT(T, lo, hi) do { \
    T x = (T)(v < (lo) ? (lo) : v > (hi) ? (hi) : v); \
    memcpy(p, &x, sizeof x); \
    return; \
  } while (0)
void dtype_store_int(DType t, void *p, int64_t v) {
  switch (t) {
    case DT_i64: memcpy(p, &v, 8); return;
    case DT_i32: PUT(int32_t, INT32_MIN, INT32_MAX);
    case DT_i16: PUT(int16_t, INT16_MIN, INT16_MAX);
    case DT_i8: PUT(int8_t, INT8_MIN, INT8_MAX);
    case DT_u64: PUT(uint64_t, 0, INT64_MAX);
    case DT_u32: PUT(uint32_t, 0, UINT32_MAX);
    case DT_u16: PUT(uint16_t, 0, UINT16_MAX);
    case DT_u8: PUT(uint8_t, 0, UINT8_MAX);
    case DT_bool: *(uint8_t *)p = v != 0; return;
    case DT_f32: { float x = (float)v; memcpy(p, &x, 4); return; }
    case DT_f64: case DT_f16: case DT_bf16: dtype_store(t, p, (double)v); return;
    case DT_none: case DT_float: case DT_COUNT: break;
  }
  bug("%s has no storage", dtype_name(t));
}
#undef PUT

double dtype_round(DType t, double v) {
  uint64_t store = 0;
  dtype_store(t, &store, v);
  return dtype_load(t, &store);
}

void dtype_convert(DType to, void *dst, DType from, const void *src, size_t n) {
  size_t a = dtype_bytes(to), b = dtype_bytes(from);
  const char *s = src;
  char *d = dst;
  bool whole = !dtype_is_float(from) && !(from == DT_u64 && dtype_is_float(to));
  if (to == from) {
    if (n) memcpy(d, s, n * a);
  } else if (whole) {
    for (size_t i = 0; i < n; i++) dtype_store_int(to, d + i * a, dtype_load_int(from, s + i * b));
  } else {
    for (size_t i = 0; i < n; i++) dtype_store(to, d + i * a, dtype_load(from, s + i * b));
  }
}
