// vector.h -- one loop compiled for several widths of vectors, chosen when it runs. Only for code that gives the same
// bits at every width.
//
//   MT_FN void f(…) { … }                             the loop
//   VECTORS(void, f, (int64_t n, float *x), (n, x))   f_here(…): for this CPU
#ifndef MT_VECTOR_H
#define MT_VECTOR_H
#include "runtime/kernel_math.h"
#include <stdbool.h>

#if defined __x86_64__ && defined __clang__
#define MT_FOR(isa) __attribute__((target(isa)))
#elif defined __x86_64__
#define MT_FOR(isa) __attribute__((target(isa), optimize("O3")))
#endif

#ifdef __x86_64__
#define MT_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,fma"           // what code for vectors of 16 lanes may use
MT_FN bool has_avx512(void) {
  return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#define VECTORS(type, name, parameters, arguments) \
  static type name##_plain parameters { name arguments; } \
  MT_FOR("avx2,fma") static type name##_avx2 parameters { name arguments; } \
  MT_FOR(MT_AVX512) static type name##_avx512 parameters { name arguments; } \
  static inline type name##_here parameters { \
    if (has_avx512()) name##_avx512 arguments; \
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) name##_avx2 arguments; \
    else name##_plain arguments; \
  }
#else
#define VECTORS(type, name, parameters, arguments) \
  static inline type name##_here parameters { name arguments; }
#endif
#endif
