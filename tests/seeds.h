// seeds.h -- which seeds a test of random things takes.
#ifndef MT_TEST_SEEDS_H
#define MT_TEST_SEEDS_H
#include "runtime/base.h"
#include <stdlib.h>

typedef struct { uint64_t first, count, end; } Seeds;

static inline bool is_long(void) { return getenv("MT_LONG") && *getenv("MT_LONG") == '1'; }

// From the command line: [FIRST [COUNT]]; else few from 1 on, or many with MT_LONG=1.
static inline Seeds seeds_of(int argc, char **argv, uint64_t few, uint64_t many) {
  Seeds s = {1, is_long() ? many : few, 0};
  if (argc > 1) s.first = strtoull(argv[1], 0, 10);
  if (argc > 2) s.count = strtoull(argv[2], 0, 10);
  s.end = s.first + s.count;
  return s;
}
#endif
