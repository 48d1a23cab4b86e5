// dtype.h -- the number formats: one row each in dtype.def, and the exact conversions between them.
#ifndef MT_DTYPE_H
#define MT_DTYPE_H
#include "runtime/base.h"
#include <string.h>

typedef enum {
#define DT(word, bytes, kind, ctype, file) DT_##word,
#include "runtime/dtype.def"
#undef DT
  DT_COUNT
} DType;

typedef enum { KIND_none, KIND_float, KIND_int, KIND_uint, KIND_bool } DKind;

Str    dtype_name(DType t);                    // "f32"
Str    dtype_file_name(DType t);               // "F32", as safetensors writes it
Str    dtype_c_name(DType t);                  // "float": the C type of the storage
DType  dtype_find(const char *name);           // DT_none when there is none; "none" is none
DType  dtype_find_file(const char *name);      // by the safetensors name
size_t dtype_bytes(DType t);                   // 0 for none and float
DKind  dtype_kind(DType t);
static inline bool dtype_is_float(DType t) { return dtype_kind(t) == KIND_float; }
static inline bool dtype_is_int(DType t) { return dtype_kind(t) == KIND_int || dtype_kind(t) == KIND_uint; }

// One value, from and to storage at any alignment. To a narrower float: to nearest, ties to even, once (f64 to bf16
// does not pass through f32), NaN stays NaN. To an integer: towards zero, held at the ends of the range, NaN is 0.
// To bool: 0 is false, all else true.
double  dtype_load(DType t, const void *p);
void    dtype_store(DType t, void *p, double v);
int64_t dtype_load_int(DType t, const void *p);             // exact for every integer; u64 above 2^63-1 is held there
void    dtype_store_int(DType t, void *p, int64_t v);
double  dtype_round(DType t, double v);                     // what dtype_load finds after dtype_store
void    dtype_convert(DType to, void *dst, DType from, const void *src, size_t n);   // n values; no overlap

// The 16-bit floats, as bits.
static inline float bf16_to_f32(uint16_t b) {
  uint32_t u = (uint32_t)b << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);   // NaN: quiet, sign and payload kept
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float    f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
uint16_t f64_to_bf16(double v);
uint16_t f64_to_f16(double v);
#endif
