// openblas.c -- see openblas.h.
#include "runtime/openblas.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static void one_thread(void) { setenv("OPENBLAS_NUM_THREADS", "1", 1); } // read when it is loaded

Status openblas_open(Arena *a, OpenBlas *b) {
  const char *path = getenv("MTRUN_OPENBLAS");
  path = path && *path ? path : "libopenblas.so.0";
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, one_thread);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  bool own = getenv("MTRUN_OPENBLAS") && *getenv("MTRUN_OPENBLAS");
  const char *mend = own ? "MTRUN_OPENBLAS names it: unset it, or set it to the library's path"
                         : "install it: apt-get install libopenblas0-pthread";
  if (!lib) return fail(EXIT_UNAVAILABLE, "matrix products need OpenBLAS: %s%s\n  %s", dlerror(), space_limit(), mend);
  void (*set_threads)(int);
  char *(*config)(void), *(*core)(void);
  *(void **)&b->sgemm = dlsym(lib, "cblas_sgemm"), *(void **)&b->dgemm = dlsym(lib, "cblas_dgemm");
  *(void **)&set_threads = dlsym(lib, "openblas_set_num_threads");
  *(void **)&config = dlsym(lib, "openblas_get_config"), *(void **)&core = dlsym(lib, "openblas_get_corename");
  if (!b->sgemm || !b->dgemm || !set_threads)
    return fail(EXIT_UNAVAILABLE,
                "%s is no OpenBLAS: cblas_sgemm, cblas_dgemm or openblas_set_num_threads is missing\n  %s", path, mend);
  set_threads(1);
  const char *c = config ? config() : "OpenBLAS";
  int words = 0;
  size_t n = 0;
  while (c[n] && !(c[n] == ' ' && ++words == 2)) n++;              // "OpenBLAS 0.3.21"
  b->name = arena_printf(a, "%.*s %s", (int)n, c, core ? core() : "");
  return 0;
}
