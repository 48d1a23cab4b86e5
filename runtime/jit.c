// jit.c -- see jit.h.
#include "runtime/jit.h"
#include "runtime/file.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

#ifdef __SANITIZE_THREAD__
#define SANITIZED "-tsan"                    // kernels are watched as the rest is
#else
#define SANITIZED ""
#endif
static const char *const flags[] = {"-std=gnu17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
                                    "-fno-strict-aliasing", "-fPIC", "-shared", "-s", "-w",
#ifdef __SANITIZE_THREAD__
                                    "-fsanitize=thread",
#endif
#ifdef __x86_64__
                                    "-mprefer-vector-width=512", // where there are such; half of the core sleeps at 256
#endif
};
static const char *const levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

void jit_hash(const void *p, size_t n, uint64_t hash[2]) {
  XXH128_hash_t h = XXH3_128bits(p, n);
  hash[0] = h.high64, hash[1] = h.low64;
}

// ---- the CPU: what it is, and "-tiles" where this process may multiply bf16 by tiles (AMX) ---------------------------
#define TILES "-tiles"
static bool tiles;
static void ask_for_tiles(void) {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  enum { REQUEST = 0x1023, TILE_DATA = 18 };                         // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  unsigned r[4] = {0};
  const char *wanted = getenv("MTRUN_TILES");
  if (wanted && !strcmp(wanted, "0")) return;
  __get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]);
  tiles = (r[3] >> 22 & 1) && (r[3] >> 24 & 1) && !syscall(SYS_arch_prctl, REQUEST, TILE_DATA);
#endif
}
bool jit_tiles(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ask_for_tiles);
  return tiles;
}
static bool has_tiles(const char *target) {
  size_t n = strlen(target), k = sizeof TILES - 1;
  return n > k && !strcmp(target + n - k, TILES);
}

const char *jit_cpu(Arena *a) {
  struct utsname u;
  Text t;
  text_init(&t, a);
  text_puts(&t, uname(&u) ? "unknown" : u.machine);
#if defined(__x86_64__)
  static const unsigned leaf[][2] = {{1, 0}, {7, 0}, {7, 1}, {0x80000001u, 0}};
  for (size_t i = 0; i < COUNT(leaf); i++) {
    unsigned r[4] = {0};
    __get_cpuid_count(leaf[i][0], leaf[i][1], &r[0], &r[1], &r[2], &r[3]);
    if (leaf[i][0] == 1) r[1] = 0, r[2] &= ~(1u << 27);              // not: which core this is; whether the system saves vectors
    text_printf(&t, "-%x.%x.%x.%x", r[0], r[1], r[2], r[3]);
  }
#else
  text_printf(&t, "-%lx.%lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#endif
  text_puts(&t, SANITIZED);
  if (jit_tiles()) text_puts(&t, TILES);
  return t.s;
}

#if defined(__x86_64__)
static int level_here(void) {
  __builtin_cpu_init();
#define HAS(x) (__builtin_cpu_supports(x) != 0)
  bool v2 = HAS("sse4.2") && HAS("ssse3") && HAS("popcnt"), v3 = v2 && HAS("avx2") && HAS("fma") && HAS("bmi") && HAS("bmi2");
  bool v4 = v3 && HAS("avx512f") && HAS("avx512bw") && HAS("avx512cd") && HAS("avx512dq") && HAS("avx512vl");
#undef HAS
  return v4 ? 3 : v3 ? 2 : v2 ? 1 : 0;
}
#else
static int level_here(void) { return -1; }
#endif

static int level_of(const char *target) {
  for (int i = 0; i < (int)COUNT(levels); i++)
    if (!strcmp(target, levels[i])) return i;
  return -1;
}

bool jit_runs_here(const char *target) {
  if (level_of(target) >= 0) return !*SANITIZED && level_of(target) <= level_here();
  Arena *a = arena_create();
  bool same = !strcmp(target, jit_cpu(a));
  arena_destroy(a);
  return same;
}

// ---- the compiler -----------------------------------------------------------------------------------------------------
static const char *find_program(Arena *a, const char *name) {
  const char *path = getenv("PATH");
  if (!path || !*path) path = "/usr/local/bin:/usr/bin:/bin";
  for (const char *s = path; *s;) {
    size_t n = strcspn(s, ":");
    const char *p = arena_printf(a, "%.*s/%s", (int)MIN(n, (size_t)PATH_MAX), s, name);
    if (n && *s == '/' && !access(p, X_OK)) return p;                // a relative entry of PATH is not trusted
    s += n + (s[n] == ':');
  }
  return 0;
}

static void find_compiler(Jit *j) {
  static const char *const names[] = {"cc", "gcc", "clang"};
  const char *own = getenv("MT_CC");
  struct stat st;
  if (own && *own) j->cc = strchr(own, '/') ? arena_strndup(j->arena, own, strlen(own)) : find_program(j->arena, own);
  for (size_t i = 0; i < COUNT(names) && !(own && *own) && !j->cc; i++) j->cc = find_program(j->arena, names[i]);
  if (!j->cc) return;
  char real[PATH_MAX];
  if (!realpath(j->cc, real) || stat(real, &st) || access(real, X_OK)) { j->cc = 0; return; }
  j->cc_id = arena_printf(j->arena, "%s %lld %lld.%09ld", real, (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static Status no_compiler(void) {
  const char *own = getenv("MT_CC");
  if (own && *own) return fail(EXIT_UNAVAILABLE, "kernels need a C compiler, and MT_CC names '%s', which is no program; it takes one path without arguments", own);
  return fail(EXIT_UNAVAILABLE, "kernels need a C compiler, and there is no cc, gcc or clang in PATH; install one (Debian: apt install gcc) or set MT_CC to its path");
}

// ---- the cache's folder -------------------------------------------------------------------------------------------------
static Status private_folder(Jit *j) {
  char *p;
  TRY(folder_temporary(j->arena, "mt-kernels", &p));
  j->folder = p, j->private_folder = true;
  return 0;
}

// A process that was killed leaves its temporaries: KEY.PID.N.c, .so and .log, what the C compiler and file_write name
// after them, KEY.so.PID.tmp, load.PID.XXXXXX, and the C compiler's own ccXXXXXX.s or .o. The process of a name: 0
// when it has none, -1 when this is no temporary.
static long leftover_of(const char *name) {
  enum { KEY = 32 };
  if (!strncmp(name, "cc", 2) && strcspn(name, ".") == 8) return 0;
  if (!strncmp(name, "load.", 5)) return atol(name + 5);
  if (strspn(name, "0123456789abcdef") != KEY || name[KEY] != '.') return -1;
  const char *rest = name + KEY + 1;
  if (!strncmp(rest, "so.", 3)) rest += 3;                            // KEY.so itself has no process, and stays
  return *rest >= '0' && *rest <= '9' ? atol(rest) : -1;
}

// They go when they are old and their process is no more: by age alone one could be hit that was stopped for a while,
// by its process alone one on another machine or in another container. Two who do this at once do the same.
static void remove_leftovers(const char *folder) {
  enum { OLD = 3600 };                                                // seconds; compiling takes few
  DIR *d = opendir(folder);
  struct stat st;
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    long pid = leftover_of(e->d_name);
    if (pid < 0 || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) continue;
    bool gone = !pid || (kill((pid_t)pid, 0) && errno == ESRCH);
    if (gone && time(0) - st.st_mtime > OLD) unlinkat(dirfd(d), e->d_name, 0);
  }
  closedir(d);
}

static Status find_folder(Jit *j) {
  const char *wrong, *folder = cache_folder(j->arena, "kernels", true, &wrong);
  if (wrong && folder) fail(0, "the kernel cache %s is not used, a private folder is for this run: %s", folder, wrong);
  if (wrong) return private_folder(j);
  remove_leftovers(folder);
  j->folder = folder;
  return 0;
}

Status jit_open(Jit *j, Arena *a, const char *target) {
  *j = (Jit){.arena = a, .target = target ? target : jit_cpu(a)};
  if (target && level_of(target) < 0 && strcmp(target, jit_cpu(a))) return fail(EXIT_USAGE, "kernels cannot be compiled for '%s' here", target);
  find_compiler(j);
  return find_folder(j);
}

void jit_close(Jit *j) {
  if (j->private_folder) rmdir(j->folder);                            // empty: objects are kept in no private folder
  j->folder = 0;
}

// ---- cached objects -----------------------------------------------------------------------------------------------------
// A cache file is the object, then this.
typedef struct { char magic[8]; uint64_t size, hash[2]; } Trailer;
static const char magic[8] = "mtobj01";

static bool object_right(const JitObject *o) {
  uint64_t h[2];
  jit_hash(o->bytes, o->n, h);
  return h[0] == o->hash[0] && h[1] == o->hash[1];
}

// The cached object, when it is ours and whole; anything else counts as absent.
static bool cache_read(Jit *j, const char *path, JitObject *o) {
  struct stat st;
  Trailer end;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) && st.st_size > (off_t)sizeof end && st.st_size < 1 << 30;
  size_t size = ok ? (size_t)st.st_size : 0, got = 0;
  char *p = ok ? arena_alloc(j->arena, size) : 0;
  while (got < size) {
    ssize_t k = read(fd, p + got, size - got);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) break;
    got += (size_t)k;
  }
  close(fd);
  if (!ok || got != size) return false;
  memcpy(&end, p + size - sizeof end, sizeof end);
  *o = (JitObject){p, size - sizeof end, {end.hash[0], end.hash[1]}, true};
  return !memcmp(end.magic, magic, sizeof magic) && end.size == o->n && object_right(o);
}

static Status cache_write(Jit *j, const char *path, const JitObject *o) {
  Trailer end = {.size = o->n, .hash = {o->hash[0], o->hash[1]}};
  memcpy(end.magic, magic, sizeof magic);
  char *p = arena_alloc(j->arena, o->n + sizeof end);
  struct stat st;
  if (!lstat(path, &st) && !S_ISREG(st.st_mode)) unlink(path);        // a pipe or link that was planted
  memcpy(p, o->bytes, o->n);
  memcpy(p + o->n, &end, sizeof end);
  mode_t was = umask(077);
  unlink(path);                                                       // it counts as absent, whatever it is
  Status s = file_write(path, p, o->n + sizeof end);
  umask(was);
  return s;
}

// ---- compiling ----------------------------------------------------------------------------------------------------------
typedef struct { pid_t pid; const char *key, *source, *object, *log; } Job;

static Status job_start(Jit *j, Job *job, const JitSource *src, uint32_t number) {
  const char *stem = arena_printf(j->arena, "%s/%s.%ld.%u", j->folder, job->key, (long)getpid(), number);
  job->source = arena_printf(j->arena, "%s.c", stem), job->object = arena_printf(j->arena, "%s.so", stem), job->log = arena_printf(j->arena, "%s.log", stem);
  TRY(file_write(job->source, src->text, src->n));
  const char *argv[COUNT(flags) + 10], *path = getenv("PATH");
  int n = 0;
  argv[n++] = j->cc;
  for (size_t i = 0; i < COUNT(flags); i++) argv[n++] = flags[i];
  argv[n++] = level_of(j->target) >= 0 ? arena_printf(j->arena, "-march=%s", j->target) : "-march=native";
  if (has_tiles(j->target)) argv[n++] = "-DMT_TILES";
  argv[n++] = "-x", argv[n++] = "c", argv[n++] = job->source, argv[n++] = "-o", argv[n++] = job->object, argv[n++] = "-lm", argv[n] = 0;
  char *env[] = {arena_printf(j->arena, "PATH=%s", path && *path ? path : "/usr/local/bin:/usr/bin:/bin"), arena_strndup(j->arena, "LC_ALL=C", 8),
                 arena_printf(j->arena, "TMPDIR=%s", j->folder), 0};
  posix_spawn_file_actions_t act;
  posix_spawn_file_actions_init(&act);
  posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&act, 1, job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&act, 1, 2);
  int e = posix_spawn(&job->pid, j->cc, &act, 0, (char **)(uintptr_t)argv, env);
  posix_spawn_file_actions_destroy(&act);
  return e ? fail(EXIT_UNAVAILABLE, "the C compiler %s cannot be run: %s%s", j->cc, strerror(e), space_limit()) : 0;
}

static void keep(Jit *j, const Job *job, const JitSource *src, const JitObject *o) {
  const char *folder = getenv("MT_KEEP_KERNELS");
  if (!folder || !*folder) return;
  file_write(arena_printf(j->arena, "%s/%s.c", folder, job->key), src->text, src->n);
  if (o->n) file_write(arena_printf(j->arena, "%s/%s.so", folder, job->key), o->bytes, o->n);
}

static void job_remove(const Job *job) { unlink(job->source), unlink(job->object), unlink(job->log); }

static Status job_finish(Jit *j, Job *job, JitObject *o) {
  int status = 0;
  while (waitpid(job->pid, &status, 0) < 0)
    if (errno != EINTR) return fail(EXIT_INTERNAL, "waiting for the C compiler: %s", strerror(errno));
  char *bytes = 0;
  size_t n = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status)) {
    char *said = arena_strndup(j->arena, "", 0);
    if (!file_read(j->arena, job->log, 1 << 20, &said, &n) && n > 2000) said[2000] = 0;
    static const int full[] = {EFBIG, ENOSPC, EDQUOT};                // of the disk, not of the code
    for (size_t i = 0; i < COUNT(full); i++)
      if (strstr(said, strerror(full[i])))
        return fail(EXIT_IO, "the C compiler cannot write %s: %s", job->object, strerror(full[i]));
    return fail(EXIT_UNAVAILABLE,
                "the C compiler %s failed on generated code (%s %d; MT_KEEP_KERNELS=DIR keeps it)%s:\n%s", j->cc,
                WIFEXITED(status) ? "status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), space_limit(), said);
  }
  TRY(file_read(j->arena, job->object, 1 << 30, &bytes, &n));
  *o = (JitObject){.bytes = bytes, .n = n};
  jit_hash(bytes, n, o->hash);
  return 0;
}

static const char *source_key(Jit *j, const JitSource *src) {
  Text t;
  uint64_t h[2];
  text_init(&t, j->arena);
  for (size_t i = 0; i < COUNT(flags); i++) text_printf(&t, "%s ", flags[i]);
  text_printf(&t, "\n%s\n%s\n", j->target, j->cc_id ? j->cc_id : "");
  text_add(&t, src->text, src->n);
  jit_hash(t.s, t.n, h);
  return arena_printf(j->arena, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

Status jit_compile(Jit *j, const JitSource *src, uint32_t n, JitObject *out) {
  Job *job = NEW_N(j->arena, Job, n);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t most = cores > 1 ? (uint32_t)cores : 1, started = 0, finished = 0, *todo = NEW_N(j->arena, uint32_t, n), ntodo = 0;
  Status s = 0;
  for (uint32_t i = 0; i < n; i++) {
    job[i].key = source_key(j, &src[i]);
    out[i] = (JitObject){0};
    if (!cache_read(j, arena_printf(j->arena, "%s/%s.so", j->folder, job[i].key), &out[i])) todo[ntodo++] = i;
    else keep(j, &job[i], &src[i], &out[i]);
  }
  if (ntodo && !j->cc) return no_compiler();
  while (finished < started || (started < ntodo && !s)) {
    if (started < ntodo && started - finished < most && !s) {
      Job *b = &job[todo[started]];
      Status bad = job_start(j, b, &src[todo[started]], started);
      started++;
      if (bad) s = bad, b->pid = 0;
      continue;
    }
    uint32_t i = todo[finished++];
    Status bad = job[i].pid ? job_finish(j, &job[i], &out[i]) : 0;
    if (job[i].pid) keep(j, &job[i], &src[i], &out[i]);
    job_remove(&job[i]);
    if (bad && !s) s = bad;
    if (!bad && job[i].pid && !j->private_folder) bad = cache_write(j, arena_printf(j->arena, "%s/%s.so", j->folder, job[i].key), &out[i]);
    // a cache that cannot be written costs time, not the run: file_write has said why
  }
  return s;
}

// ---- loading ------------------------------------------------------------------------------------------------------------
static bool write_all(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t k = write(fd, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k, n -= (size_t)k;
  }
  return true;
}

// From a file that only this process has: what was checked is what is loaded. The descriptor stays open, since the loader knows
// libraries by name, and the name is the descriptor's.
static bool load_memory(const JitObject *o, JitCode *code) {
  int fd = memfd_create("mt-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return false;
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (write_all(fd, o->bytes, o->n) && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    code->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (code->library) code->fd = fd;
  else close(fd);
  return code->library;
}

Status jit_load(Jit *j, const JitObject *o, JitCode *code) {
  *code = (JitCode){0, -1};
  if (!object_right(o)) return fail(EXIT_INPUT, "a kernel object does not have its hash");
  if (load_memory(o, code)) return 0;
  const char *path = arena_printf(j->arena, "%s/load.%ld.XXXXXX", j->folder, (long)getpid());
  int fd = mkostemp((char *)(uintptr_t)path, O_CLOEXEC);
  if (fd < 0) return fail(EXIT_CREATE, "cannot write a kernel object to %s: %s", path, strerror(errno));
  int e = write_all(fd, o->bytes, o->n) ? 0 : errno ? errno : ENOSPC;
  close(fd);
  if (!e) code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *why = e || code->library ? 0 : dlerror();
  unlink(path);
  if (code->library) return 0;
  if (e) return fail(EXIT_IO, "writing a kernel object to %s: %s", path, strerror(e));
  return fail(EXIT_UNAVAILABLE, "kernel objects cannot be loaded from %s: %s; if that file system is mounted noexec, "
              "set XDG_CACHE_HOME to one that is not%s", j->folder, why, space_limit());
}

void jit_unload(JitCode *code) {
  if (code->library) dlclose(code->library);
  if (code->fd >= 0) close(code->fd);
  *code = (JitCode){0, -1};
}

void *jit_symbol(const JitCode *code, const char *name) { return dlsym(code->library, name); }
