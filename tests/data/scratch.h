// scratch.h -- for cmocka's tests: each in a fresh folder, with an arena that ends with it.
#ifndef MT_TESTS_SCRATCH_H
#define MT_TESTS_SCRATCH_H
#include "tests/data/check.h"

static Arena *arena;
static char folder[64];

static int enter(void **state) {
  (void)state;
  arena = arena_create();
  folder_enter(folder);
  return 0;
}
static int leave(void **state) {
  (void)state;
  folder_leave(folder);
  arena_destroy(arena);
  return 0;
}
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter, leave)
#endif
