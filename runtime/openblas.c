// openblas.c -- see openblas.h.
#include "runtime/openblas.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// OpenBLAS maps 128 MiB for each thread that calls it, and tries for ever when the system refuses. A thread's stack and
// heap map some more until then: 192 for each, and once more for the streams.
static Status has_room(Arena *a, int threads) {
  const size_t each = (size_t)192 << 20;
  void **at = NEW_N(a, void *, threads + 1);
  int n = 0, e = 0;
  for (; n <= threads && !e; n += !e) {
    at[n] = mmap(0, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at[n] == MAP_FAILED) e = errno;
  }
  for (int i = 0; i < n; i++) munmap(at[i], each);
  if (!e) return 0;
  return fail(EXIT_UNAVAILABLE, "matrix products on %d thread%s need %lld MiB more of address space, the system refused: %s", threads,
              threads == 1 ? "" : "s", (long long)(threads + 1) * 192, strerror(e));
}

Status openblas_open(Arena *a, int threads, OpenBlas *b) {
  const char *path = getenv("MTRUN_OPENBLAS");
  path = path && *path ? path : "libopenblas.so.0";
  setenv("OPENBLAS_NUM_THREADS", "1", 1);                          // read when it is loaded
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    return fail(EXIT_UNAVAILABLE, "matrix products need OpenBLAS: %s\n  install it: apt-get install libopenblas0-pthread", dlerror());
  void (*set_threads)(int);
  char *(*config)(void), *(*core)(void);
  *(void **)&b->sgemm = dlsym(lib, "cblas_sgemm"), *(void **)&b->dgemm = dlsym(lib, "cblas_dgemm");
  *(void **)&set_threads = dlsym(lib, "openblas_set_num_threads");
  *(void **)&config = dlsym(lib, "openblas_get_config"), *(void **)&core = dlsym(lib, "openblas_get_corename");
  if (!b->sgemm || !b->dgemm || !set_threads)
    return fail(EXIT_UNAVAILABLE, "%s is no OpenBLAS: cblas_sgemm, cblas_dgemm or openblas_set_num_threads is missing", path);
  set_threads(1);
  TRY(has_room(a, threads));
  const char *c = config ? config() : "OpenBLAS";
  int words = 0;
  size_t n = 0;
  while (c[n] && !(c[n] == ' ' && ++words == 2)) n++;              // "OpenBLAS 0.3.21"
  b->name = arena_printf(a, "%.*s %s", (int)n, c, core ? core() : "");
  return 0;
}
