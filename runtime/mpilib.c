// mpilib.c -- see mpilib.h.
#include "runtime/mpilib.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct { Str word, name, packages; } libraries[] = {
#define X(word, name, packages) {#word, name, packages},
  MPILIBS(X)
#undef X
};

Str mpilib_name(MpiLib which) { return libraries[which].name; }
Str mpilib_packages(MpiLib which) { return libraries[which].packages; }

static bool is_set(const char *variable) { return getenv(variable) && *getenv(variable); }

Status mpilib_of(const Launcher *l, MpiLib *which) {
  switch (l->kind) {
    case LAUNCH_openmpi: *which = MPILIB_openmpi; return 0;
    case LAUNCH_mpich: *which = MPILIB_mpich; return 0;
    case LAUNCH_slurm: break;
    case LAUNCH_torchrun:
      return fail(EXIT_UNAVAILABLE, "torchrun has started %lld ranks, which on CPUs have no way to one another: mpirun or srun "
                  "start them with MPI, and on one machine mtrun itself does, without torchrun or with --launcher=none",
                  (long long)l->size);
    case LAUNCH_none: case LAUNCH_COUNT: bug("mpi: no launcher");
  }
  *which = is_set("PMIX_RANK") ? MPILIB_openmpi : MPILIB_mpich;
  if (is_set("PMIX_RANK") || is_set("PMI_RANK")) return 0;
  return fail(EXIT_UNAVAILABLE, "srun has started %lld ranks without a way to one another: srun --mpi=pmix for Open MPI, or "
              "srun --mpi=pmi2 for MPICH", (long long)l->size);
}

// Beside mtrun, as built, or where it was installed.
static void *load(Arena *a, MpiLib which, Str *tried) {
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  while (n > 0 && self[n - 1] != '/') n--;
  Str here = arena_strndup(a, self, (size_t)MAX(n, 0)), folder[] = {here, arena_printf(a, "%sruntime/", here), MT_PLUGINS "/"};
  Text t;
  text_init(&t, a);
  text_puts(&t, "");
  for (size_t i = 0; i < COUNT(folder); i++) {
    Str path = arena_printf(a, "%slibmt_%s.so", folder[i], libraries[which].word);
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);       // its own parts, loaded later, look for it
    if (lib) return lib;
    text_printf(&t, "\n  %s", dlerror());
  }
  *tried = t.s;
  return 0;
}

Status mpilib_open(Arena *a, MpiLib which, const MpiTable **mpi) {
  Str tried = "";
  void *lib = load(a, which, &tried);
  if (!lib)
    return fail(EXIT_UNAVAILABLE, "%s is not in this build, or its library is not here:%s\n  apt-get install %s, and build "
                "again", libraries[which].name, tried, libraries[which].packages);
  *mpi = dlsym(lib, "mt_mpi");
  if (*mpi && (*mpi)->version == MPILIB_VERSION) return 0;
  return fail(EXIT_UNAVAILABLE, "libmt_%s.so is of another version of mtrun: build it again", libraries[which].word);
}
