// doctor.c -- see doctor.h.
//
// A check is a row of `checks`: it looks, and finds in words what is there. A library may end or hang the process that
// loads it, and a compiler may fail in any way, so those are tried in a process of their own, with a time limit.
#include "runtime/doctor.h"
#include "runtime/file.h"
#include "runtime/jit.h"
#include "runtime/json_text.h"
#include "runtime/metrics.h"
#include "runtime/mpilib.h"
#include "runtime/onednn.h"
#include "runtime/openblas.h"
#include "runtime/panel.h"
#include "runtime/rates.h"
#include "runtime/work.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum { FOUND_ok, FOUND_note, FOUND_missing } State;
typedef struct {
  State state;
  Str says;                                  // what is there, or why it is not
  Str packages;                              // of Debian, that mend it; or 0
  Str mend;                                  // a command or a word of advice that does; or 0
} Finding;

static Finding ok(Str says) { return (Finding){.state = FOUND_ok, .says = says}; }

// ---- trying out ---------------------------------------------------------------------------------------------
typedef struct { bool worked; Str out, why; } Try;          // the first line that it printed, that it complained with

static Str first_line(Arena *a, int fd) {                  // with the next one where that has the reason
  char text[4096];
  ssize_t n = pread(fd, text, sizeof text - 1, 0);
  text[MAX(n, 0)] = 0;
  char *s = text, *end = strchr(s, '\n');
  size_t name = strlen(program_name);
  if (!strncmp(s, program_name, name) && !strncmp(s + name, ": ", 2)) s += name + 2;
  if (end > s && end[-1] == ':') *end = ' ';
  size_t length = strcspn(s, "\n");
  while (length && strchr(" :", s[length - 1])) length--;
  return arena_strndup(a, s, length);
}

static Try attempt(Arena *a, Status (*what)(Arena *a)) {
  enum { PATIENCE = 60 };                                   // seconds
  int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status = 0;
  fflush(stdout), fflush(stderr);
  pid_t pid = out < 0 || err < 0 ? -1 : fork();
  if (!pid) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(out, 1), dup2(err, 2);
    alarm(PATIENCE);
    Status s = what(a);
    fflush(stdout), fflush(stderr);
    _exit(s);
  }
  if (pid > 0)
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  Try t = {pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status), first_line(a, out), first_line(a, err)};
  if (pid < 0) t.why = strerror(errno);
  else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) t.why = arena_printf(a, "no answer in %d s", PATIENCE);
  else if (WIFSIGNALED(status)) t.why = arena_printf(a, "it ends the process: %s", strsignal(WTERMSIG(status)));
  close(out), close(err);
  return t;
}

// ---- compiler and libraries ---------------------------------------------------------------------------------
static Status open_jit(Arena *a, Jit *j) {                  // without the cache: what is compiled is compiled now
  unsetenv("XDG_CACHE_HOME"), unsetenv("HOME"), unsetenv("MT_KEEP_KERNELS");
  return jit_open(j, a, 0);
}

static Status try_kernel(Arena *a) {
  static const char text[] = "#include <math.h>\nfloat mt_try(float x) { return sqrtf(x); }\n";
  Jit j;
  JitObject object;
  JitCode code;
  TRY(open_jit(a, &j));
  Status s = jit_compile(&j, &(JitSource){text, sizeof text - 1}, 1, &object);
  if (!s) s = jit_load(&j, &object, &code);
  jit_close(&j);
  if (s) return s;
  float (*call)(float);
  *(void **)&call = jit_symbol(&code, "mt_try");
  if (!call || call(9) != 3) return fail(EXIT_UNAVAILABLE, "the C compiler %s makes code that is not right", j.cc);
  printf("%s\n", j.cc);
  return 0;
}

static Status try_compiler_version(Arena *a) {
  Jit j;
  TRY(open_jit(a, &j));
  jit_close(&j);
  if (j.cc) execl(j.cc, j.cc, "--version", (char *)0);
  return EXIT_UNAVAILABLE;
}

static Finding compiler(Arena *a) {
  Try kernel = attempt(a, try_kernel), version = attempt(a, try_compiler_version);
  const char *own = getenv("MT_CC");
  Str name = version.worked ? arena_printf(a, ", %s", version.out) : "";
  if (kernel.worked) return ok(arena_printf(a, "%s%s; what it compiles loads and runs", kernel.out, name));
  Finding f = {FOUND_missing, kernel.why, "gcc libc6-dev", 0};
  if (own && *own) f.packages = 0, f.mend = "unset MT_CC, or set it to the path of a C compiler";
  return f;
}

static Status try_openblas(Arena *a) {
  OpenBlas b;
  const float x[] = {1, 2, 3, 4};
  float y[4];
  TRY(openblas_open(a, &b));
  b.sgemm(ROW_MAJOR, PLAIN, PLAIN, 2, 2, 2, 1, x, 2, x, 2, 0, y, 2);
  if (y[0] != 7 || y[1] != 10 || y[2] != 15 || y[3] != 22)
    return fail(EXIT_UNAVAILABLE, "%s multiplies wrongly", b.name);
  printf("%s: products of f32 and f64\n", b.name);
  return 0;
}

static Finding library(Arena *a, Status (*what)(Arena *a), Str variable, Str packages) {
  Try t = attempt(a, what);
  const char *own = getenv(variable);
  if (t.worked) return ok(t.out);
  if (!own || !*own) return (Finding){FOUND_missing, t.why, packages, 0};
  Str advice = arena_printf(a, "unset %s, or set it to the library's path", variable);
  return (Finding){FOUND_missing, t.why, 0, advice};
}

static Finding openblas(Arena *a) { return library(a, try_openblas, "MTRUN_OPENBLAS", "libopenblas0-pthread"); }

#ifdef MT_ONEDNN
static Status try_onednn(Arena *a) {
  OneDnn *o;
  TRY(onednn_open(a, 1, &o));
  bool f32 = onednn_has(DT_f32), bf16 = onednn_has(DT_bf16);
  if (!f32) return fail(EXIT_UNAVAILABLE, "%s has no products of f32 on this CPU", onednn_name(o));
  printf("%s: products of f32%s\n", onednn_name(o), bf16 ? " and bf16" : "; of bf16 not on this CPU");
  return 0;
}

static Finding onednn(Arena *a) { return library(a, try_onednn, "MTRUN_ONEDNN", "libdnnl2"); }
#else
static Finding onednn(Arena *a) {
  (void)a;
  return (Finding){FOUND_missing, "this build is without it", "libdnnl-dev", "then build again from the start"};
}
#endif

static Status try_mpi(Arena *a, MpiLib which) {
  const MpiTable *mpi;
  TRY(mpilib_open(a, which, &mpi));
  printf("%s\n", mpi->library());
  return 0;
}
static Status try_openmpi(Arena *a) { return try_mpi(a, MPILIB_openmpi); }
static Status try_mpich(Arena *a) { return try_mpi(a, MPILIB_mpich); }

static Finding mpi(Arena *a, Status (*what)(Arena *a), MpiLib which) {
  Try t = attempt(a, what);
  if (t.worked) return ok(t.out);
  return (Finding){FOUND_note, "not here: ranks on several machines need it, those of one do not", mpilib_packages(which),
                   "then build again from the start"};
}
static Finding openmpi(Arena *a) { return mpi(a, try_openmpi, MPILIB_openmpi); }
static Finding mpich(Arena *a) { return mpi(a, try_mpich, MPILIB_mpich); }

// ---- files that the kernel shows ----------------------------------------------------------------------------
static Str slurp(Arena *a, const char *path) {              // the start of it; "" when it cannot be read
  enum { MOST = 1 << 16 };
  FILE *f = fopen(path, "re");
  char *s = arena_alloc(a, MOST);
  size_t n = f ? fread(s, 1, MOST - 1, f) : 0;
  if (f) fclose(f);
  s[n] = 0;
  return s;
}

// The rest of the line that begins with `key`, without the colon and blanks; 0: no such line.
static Str line_of(Arena *a, Str text, Str key) {
  for (const char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : 0) {
    size_t n = strlen(key);
    if (strncmp(s, key, n) || !strchr(" \t:", s[n])) continue;
    s += n + strspn(s + n, " \t:");
    return arena_strndup(a, s, strcspn(s, "\n"));
  }
  return 0;
}

static bool has_word(Str words, Str word) {
  size_t n = strlen(word);
  for (const char *s = words; (s = strstr(s, word)); s += n)
    if ((s == words || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return true;
  return false;
}

// A file of this process's control group: v2, then v1 of a controller; "" when there is none.
static Str group_file(Arena *a, Str v2, Str controller, Str v1) {
  Str groups = slurp(a, "/proc/self/cgroup"), own = "";
  for (const char *s = groups; *s; s += strcspn(s, "\n"), s += *s == '\n') {      // "4:memory:/a/b", "0::/a/b"
    const char *names = strchr(s, ':'), *path = names ? strchr(names + 1, ':') : 0;
    if (!path) break;
    Str at = arena_strndup(a, path + 1, strcspn(path + 1, "\n"));
    bool two = path == names + 1, one = strstr(arena_strndup(a, names, (size_t)(path - names)), controller);
    if (two) own = slurp(a, arena_printf(a, "/sys/fs/cgroup%s/%s", at, v2));
    else if (one) own = slurp(a, arena_printf(a, "/sys/fs/cgroup/%s%s/%s", controller, at, v1));
    if (*own) return own;
  }
  own = slurp(a, arena_printf(a, "/sys/fs/cgroup/%s", v2));                       // in a container, the root is its own
  return *own ? own : slurp(a, arena_printf(a, "/sys/fs/cgroup/%s/%s", controller, v1));
}

// ---- the machine --------------------------------------------------------------------------------------------
static Finding cpu(Arena *a) {
  static const Str features[] = {"avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "bf16"};
  Str info = slurp(a, "/proc/cpuinfo"), name = line_of(a, info, "model name"), flags = line_of(a, info, "flags");
  bool x86 = flags;
  if (!flags) flags = line_of(a, info, "Features");
  if (!flags) return (Finding){FOUND_note, "/proc/cpuinfo does not tell", 0, 0};
  Text t;
  text_init(&t, a);
  text_printf(&t, "%s:", name ? name : "a CPU without a name");
  size_t first = x86 ? 0 : 4, end = x86 ? 4 : COUNT(features);
  for (size_t i = first; i < end; i++)
    text_printf(&t, " %s%s%s", has_word(flags, features[i]) ? "" : "no ", features[i], i + 1 < end ? "," : "");
  if (panel_has(DT_f32)) text_printf(&t, "; products of f32%s by panels", panel_has(DT_bf16) ? " and bf16" : "");
  if (x86 && !has_word(flags, "avx2"))
    return (Finding){FOUND_note, t.s, 0, "without avx2 training is several times slower"};
  return ok(t.s);
}

static double quota(Arena *a) {                             // CPUs that the control group allows; 0: all
  char *end;
  Str s = group_file(a, "cpu.max", "cpu", "cpu.cfs_quota_us");
  double most = strtod(s, &end), of = strtod(end, 0);       // "200000 100000", "max 100000"; v1: two files
  if (!(of > 0)) of = strtod(group_file(a, "cpu.max", "cpu", "cpu.cfs_period_us"), 0);
  return most > 0 && of > 0 ? most / of : 0;
}

static Finding cores(Arena *a) {
  cpu_set_t set;
  long all = sysconf(_SC_NPROCESSORS_ONLN), here = sched_getaffinity(0, sizeof set, &set) ? all : CPU_COUNT(&set);
  double most = quota(a);
  if (most > 0 && most < (double)here)
    return (Finding){FOUND_note, arena_printf(a, "%ld, of which the control group allows %.3g", here, most), 0,
                     arena_printf(a, "mtrun --threads %ld", MAX((long)most, 1L))};
  if (here < all) return ok(arena_printf(a, "%ld of %ld: this process is bound to them", here, all));
  return ok(arena_printf(a, "%ld, all of them for mtrun", here));
}

static Finding memory(Arena *a) {
  Str info = slurp(a, "/proc/meminfo"), total = line_of(a, info, "MemTotal"), free = line_of(a, info, "MemAvailable");
  Str group = group_file(a, "memory.max", "memory", "memory.limit_in_bytes");
  double all = total ? strtod(total, 0) * 1024 : 0, most = strtod(group, 0);
  struct rlimit space;
  Text t;
  text_init(&t, a);
  text_printf(&t, "%s", bytes_text(a, all));
  if (free) text_printf(&t, ", %s of it free", bytes_text(a, strtod(free, 0) * 1024));
  if (most > 0 && most < all) text_printf(&t, "; the control group allows %s", bytes_text(a, most));
  if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY) return ok(t.s);
  text_printf(&t, "; %s of addresses, of which a thread with OpenBLAS takes 192 MiB",
              bytes_text(a, (double)space.rlim_cur));
  return (Finding){FOUND_note, t.s, 0, "ulimit -v unlimited"};
}

static Finding huge_pages(Arena *a) {
  static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
  Str s = slurp(a, path);
  if (strstr(s, "[always]")) return ok("always");
  if (strstr(s, "[madvise]")) return ok("where asked for, and mtrun asks");
  if (!*s) return (Finding){FOUND_note, "this kernel has none; steps are somewhat slower", 0, 0};
  Str advice = arena_printf(a, "echo madvise | sudo tee %s", path);
  return (Finding){FOUND_note, "off; steps are somewhat slower", 0, advice};
}

static Finding cache(Arena *a) {
  const char *wrong, *folder = cache_folder(a, "kernels", true, &wrong);
  if (wrong)
    return (Finding){FOUND_note,
                     arena_printf(a, "%s%snot used, so kernels are compiled every time: %s", folder ? folder : "",
                                  folder ? " is " : "", wrong),
                     0, "export XDG_CACHE_HOME=FOLDER, one of your own that others cannot write"};
  DIR *d = opendir(folder);
  int64_t n = 0, bytes = 0;
  struct stat st = {0};
  for (struct dirent *e; d && (e = readdir(d));)
    if (strstr(e->d_name, ".so") && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) n++, bytes += st.st_size;
  unsigned mode = d && !fstat(dirfd(d), &st) ? st.st_mode & 0777 : 0;
  if (d) closedir(d);
  return ok(arena_printf(a, "%s: %lld object%s, %s, mode %o", folder, (long long)n, n == 1 ? "" : "s",
                         bytes_text(a, (double)bytes), mode));
}

static Status try_rates(Arena *a) {
  Rates r;
  int threads = work_cpus();
  if (!rates_find(a, threads, "", &r)) return EXIT_MISSING;
  if (!rates_find(a, threads, rates_libraries(a, threads), &r)) printf("of other libraries, ");
  printf("measured on %s, %lld thread%s: copy %.1f GB/s, products of f32 %.0f GFLOP/s\n", r.day, (long long)r.threads,
         r.threads == 1 ? "" : "s", r.copy, r.product[RF_f32][RL_NN][RT_1024]);
  return 0;
}

static Finding rates(Arena *a) {
  static const char again[] = "mtrun --calibrate=again";
  Try t = attempt(a, try_rates);
  if (t.worked && !strncmp(t.out, "of other", 8)) return (Finding){FOUND_note, t.out, 0, again};
  if (t.worked) return ok(t.out);
  if (*t.why) return (Finding){FOUND_note, t.why, 0, again};
  return (Finding){FOUND_note, "not measured: no estimate of a step, no shares of the limit in --profile", 0,
                   "mtrun --calibrate"};
}

static Status try_dot(Arena *a) {
  (void)a;
  dup2(1, 2);                                               // its version goes to standard error
  execlp("dot", "dot", "-V", (char *)0);
  return EXIT_UNAVAILABLE;
}

static Finding graphviz(Arena *a) {
  Try t = attempt(a, try_dot);
  if (t.worked) return ok(t.out);
  return (Finding){FOUND_note, "no dot; it draws what mtc dump --dot prints", "graphviz", 0};
}

static Finding terminal(Arena *a) {
  const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
  if (no && *no) return (Finding){FOUND_note, "NO_COLOR is set: no colours", 0, 0};
  if (!isatty(1)) return (Finding){FOUND_note, "the output goes to no terminal: no colours, no bar", 0, 0};
  if (is_terminal(1)) return ok(arena_printf(a, "%s: colours, and a bar while training", term));
  return (Finding){FOUND_note, "TERM is dumb or not set: no colours, no bar", 0, "export TERM=xterm"};
}

// ---- all of it ----------------------------------------------------------------------------------------------
typedef enum { NEED_no, NEED_yes, NEED_products } Need;     // products: one of those with this word
static const struct { Str name; Need need; Finding (*look)(Arena *a); } checks[] = {
  {"C compiler", NEED_yes, compiler},
  {"OpenBLAS", NEED_products, openblas},
  {"oneDNN", NEED_products, onednn},
  {"Open MPI", NEED_no, openmpi},
  {"MPICH", NEED_no, mpich},
  {"CPU", NEED_no, cpu},
  {"cores", NEED_no, cores},
  {"memory", NEED_no, memory},
  {"huge pages", NEED_no, huge_pages},
  {"kernel cache", NEED_no, cache},
  {"rates", NEED_no, rates},
  {"graphviz", NEED_no, graphviz},
  {"terminal", NEED_no, terminal},
};
static const struct { Str name, tint; } states[] = {        // as in State
  {"ok", "\33[32m"}, {"note", "\33[33m"}, {"missing", "\33[1;31m"}};

static void print_table(const Finding *f, bool ready, bool color, Str packages, FILE *to) {
  const char *bold = color ? "\33[1m" : "", *end = color ? "\33[0m" : "";
  for (size_t i = 0; i < COUNT(checks); i++) {
    fprintf(to, "%s%-7s%s  %-12s  %s\n", color ? states[f[i].state].tint : "", states[f[i].state].name, end,
            checks[i].name, f[i].says);
    if (f[i].packages) fprintf(to, "%23s%sapt-get install %s%s\n", "", bold, f[i].packages, end);
    if (f[i].mend) fprintf(to, "%23s%s%s%s\n", "", bold, f[i].mend, end);
  }
  fprintf(to, ready ? "\nready: all that training needs is here\n"
                    : "\nnot ready: what is missing has to be mended first\n");
  if (*packages) fprintf(to, "all packages at once:  %sapt-get install%s%s\n", bold, packages, end);
}

static void put_text(Text *t, Str key, Str value) {
  text_printf(t, ",\"%s\":", key);
  if (value) text_json(t, value);
  else text_puts(t, "null");
}

static void print_json(Arena *a, const Finding *f, bool ready, Str packages, FILE *to) {
  Text t;
  text_init(&t, a);
  text_printf(&t, "{\"ready\":%s", ready ? "true" : "false");
  put_text(&t, "packages", packages + (*packages == ' '));
  text_puts(&t, ",\"checks\":[");
  for (size_t i = 0; i < COUNT(checks); i++) {
    text_printf(&t, "%s\n{\"name\":", i ? "," : ""), text_json(&t, checks[i].name);
    put_text(&t, "state", states[f[i].state].name), put_text(&t, "says", f[i].says);
    put_text(&t, "packages", f[i].packages), put_text(&t, "mend", f[i].mend);
    text_puts(&t, "}");
  }
  fprintf(to, "%s]}\n", t.s);
}

Status doctor(Arena *a, const DoctorOptions *o, FILE *to) {
  Finding found[COUNT(checks)];
  bool ready = true, products = false;
  Text packages;
  text_init(&packages, a);
  for (size_t i = 0; i < COUNT(checks); i++) {
    found[i] = checks[i].look(a);
    products |= checks[i].need == NEED_products && found[i].state == FOUND_ok;
  }
  for (size_t i = 0; i < COUNT(checks); i++) {
    Finding *f = &found[i];
    if (checks[i].need == NEED_products && products && f->state == FOUND_missing) f->state = FOUND_note;
    ready &= f->state != FOUND_missing;
    if (f->packages) text_printf(&packages, " %s", f->packages);
  }
  if (o->json) print_json(a, found, ready, packages.s, to);
  else print_table(found, ready, o->color, packages.s, to);
  return ready ? 0 : EXIT_UNAVAILABLE;
}
