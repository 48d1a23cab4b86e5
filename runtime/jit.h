// jit.h -- generated C to code in this process: the system's C compiler, a cache on disk, and a loader.
//
// The compiler is `cc` of PATH, or MT_CC: one path, no arguments. It is run with an argument vector and a small environment,
// never through a shell; nothing of the user's text reaches it. Objects are cached in $XDG_CACHE_HOME/mt/kernels (or
// ~/.cache/mt/kernels), mode 0700, under the hash of source, flags, compiler and CPU. A cache that others can write is not
// used: a private folder takes its place for this run. What processes that were killed left in it goes when it is
// opened. MT_KEEP_KERNELS=DIR keeps every source (and object) there.
#ifndef MT_JIT_H
#define MT_JIT_H
#include "runtime/base.h"

typedef struct {
  Arena *arena;
  const char *target;                        // "x86-64-v3", …: any such CPU; else jit_cpu: this one exactly
  const char *cc;                            // 0: none was found
  const char *cc_id;                         // path, size and time of the compiler: part of the keys
  const char *folder;                        // the cache, or the private one
  bool private_folder;                       // removed by jit_close
} Jit;

typedef struct { const char *text; size_t n; } JitSource;
typedef struct { const void *bytes; size_t n; uint64_t hash[2]; bool from_cache; } JitObject;  // hash: XXH3-128 of bytes
typedef struct { void *library; int fd; } JitCode;

Status jit_open(Jit *j, Arena *a, const char *target);            // target 0: this CPU
void   jit_close(Jit *j);
// One object per source, compiled side by side, as many as there are cores; cached ones are not compiled.
Status jit_compile(Jit *j, const JitSource *src, uint32_t n, JitObject *out);
Status jit_load(Jit *j, const JitObject *o, JitCode *code);       // refuses bytes that do not have their hash
void   jit_unload(JitCode *code);
void  *jit_symbol(const JitCode *code, const char *name);         // 0: it has none of that name
void   jit_hash(const void *p, size_t n, uint64_t hash[2]);
// Whether this process may multiply bf16 by the CPU's tiles (AMX). It asks the system, which then saves them; for all threads.
// MTRUN_TILES=0: no.
bool   jit_tiles(void);
// This CPU: architecture, model and features, one word. Tiles are named last when this process has them: an object for a
// CPU with tiles runs nowhere else, and kernels see MT_TILES.
const char *jit_cpu(Arena *a);
bool   jit_runs_here(const char *target);                         // whether an object for target runs on this CPU
#endif
