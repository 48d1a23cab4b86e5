// Workers: every unit once, whatever the threads; many small jobs after one another.
#include "runtime/work.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct { _Atomic int *hit; _Atomic int *busy; int threads; _Atomic int wrong; } Marks;

static void mark(void *with, int64_t lo, int64_t hi, int worker) {
  Marks *m = with;
  if (worker < 0 || worker >= m->threads || atomic_fetch_add(&m->busy[worker], 1)) m->wrong = 1;
  for (int64_t i = lo; i < hi; i++) atomic_fetch_add(&m->hit[i], 1);
  atomic_fetch_sub(&m->busy[worker], 1);
}

static void every_unit_test(void **state) {
  (void)state;
  for (int threads = 1; threads <= 5; threads += 2) {
    Arena *a = arena_create();
    Work *w;
    assert_int_equal(work_create(a, threads, &w), 0);
    assert_int_equal(work_threads(w), threads);
    enum { MOST = 300 };
    Marks m = {.hit = NEW_N(a, _Atomic int, MOST), .busy = NEW_N(a, _Atomic int, threads), .threads = threads};
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
      seed = hash_mix(seed, 1);
      int64_t n = (int64_t)(seed % MOST), grain = (int64_t)(seed >> 20 & 7);
      work_run(w, mark, &m, n, grain);
      for (int64_t i = 0; i < MOST; i++) {
        int want = i < n;
        if (m.hit[i] != want)
          fail_msg("threads %d round %d: unit %lld computed %d times", threads, round, (long long)i,
                   m.hit[i]);
        m.hit[i] = 0;
      }
    }
    assert_int_equal(m.wrong, 0);
    work_destroy(w);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_unit_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
