// philox.h -- random numbers by place: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011; as in Random123).
//
// A draw is a function of the seed, the step, a 32-bit hash of the op's or parameter's path, and the global index of
// the element. No state, so it depends on no layout, order or thread. Also part of every generated C file.
#ifndef MT_PHILOX_H
#define MT_PHILOX_H
#include "runtime/kernel_math.h"

typedef struct { uint32_t w[4]; } Philox;

MT_FN Philox philox(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t k, uint32_t l) { // counter a b c d, key k l
#define MT_ROUND do { \
    uint64_t x = (uint64_t)a * 0xd2511f53u, y = (uint64_t)c * 0xcd9e8d57u; \
    uint32_t a_ = (uint32_t)(y >> 32) ^ b ^ k, c_ = (uint32_t)(x >> 32) ^ d ^ l; \
    a = a_, b = (uint32_t)y, c = c_, d = (uint32_t)x, k += 0x9e3779b9u, l += 0xbb67ae85u; \
  } while (0)
  MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND; MT_ROUND;
#undef MT_ROUND
  return (Philox){{a, b, c, d}};
}

MT_FN Philox philox_at(uint64_t seed, uint32_t step, uint32_t hash, uint64_t index) {
  return philox((uint32_t)index, (uint32_t)(index >> 32), hash, step, (uint32_t)seed, (uint32_t)(seed >> 32));
}

MT_FN float philox_uniform(uint64_t seed, uint32_t step, uint32_t hash, uint64_t index) {    // [0, 1), a multiple of 2^-24
  return (float)(int32_t)(philox_at(seed, step, hash, index).w[0] >> 8) * 0x1p-24f;
}

MT_FN float philox_normal(uint64_t seed, uint32_t step, uint32_t hash, uint64_t index) {     // mean 0, deviation 1; |x| < 5.8
  Philox p = philox_at(seed, step, hash, index);
  float u = ((float)(int32_t)(p.w[0] >> 8) + 1.0f) * 0x1p-24f, v = (float)(int32_t)(p.w[1] >> 8) * 0x1p-24f;
  return sqrt_f32(-2.0f * log_f32(u)) * cos_near_f32(6.2831853071795865f * v);
}
#endif
