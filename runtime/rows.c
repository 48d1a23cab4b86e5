// rows.c -- see rows.h.
#include "runtime/rows.h"
#include "runtime/vector.h"
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

MT_FN void row_f32(float *to, const float *from, int64_t n, bool add) {
  if (add)
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
  else
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

MT_FN void row_bf16(uint16_t *to, const float *from, int64_t n, bool add) {
  if (add)
    for (int64_t i = 0; i < n; i++) to[i] = bf16_f32(f32_bf16(to[i]) + from[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = bf16_f32(from[i]);
}

MT_FN void row_wide(float *to, const uint16_t *from, int64_t n, bool add) {
  if (add)
    for (int64_t i = 0; i < n; i++) to[i] += f32_bf16(from[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = f32_bf16(from[i]);
}

VECTORS(void, row_wide, (float *to, const uint16_t *from, int64_t n, bool add), (to, from, n, add))
VECTORS(void, row_f32, (float *to, const float *from, int64_t n, bool add), (to, from, n, add))
VECTORS(void, row_bf16, (uint16_t *to, const float *from, int64_t n, bool add), (to, from, n, add))

void row_take(float *to, DType t, const char *from, int64_t n, bool add) {
  if (t == DT_f32) row_f32_here(to, (const float *)(const void *)from, n, add);
  else row_wide_here(to, (const uint16_t *)(const void *)from, n, add);
}

void row_put(char *to, DType t, const float *from, int64_t n, bool add) {
  if (t == DT_f32) row_f32_here((float *)(void *)to, from, n, add);
  else if (t == DT_bf16) row_bf16_here((uint16_t *)(void *)to, from, n, add);
  else
    for (int64_t i = 0; i < n; i++) {
      uint16_t *h = (uint16_t *)(void *)to + i;
      *h = f32_to_f16(add ? f16_to_f32(*h) + from[i] : from[i]);
    }
}

#ifdef __x86_64__
MT_FOR("avx512f") static void stream_avx512(float *to, const float *from, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
}

void row_stream(float *to, const float *from, int64_t n) {
  int64_t head = MIN((int64_t)(-(uintptr_t)to % 64 / 4), n), whole = (n - head) / 16 * 16;
  bool fast = (uintptr_t)to % 4 == 0 && __builtin_cpu_supports("avx512f");
  if (!fast) head = n, whole = 0;
  memcpy(to, from, (size_t)head * 4);
  if (whole) stream_avx512(to + head, from + head, whole);
  memcpy(to + head + whole, from + head + whole, (size_t)(n - head - whole) * 4);
}

void rows_done(void) { _mm_sfence(); }
#else
void row_stream(float *to, const float *from, int64_t n) { memcpy(to, from, (size_t)n * 4); }
void rows_done(void) {}
#endif
