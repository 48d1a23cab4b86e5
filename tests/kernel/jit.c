// jit.c -- the compiler and its cache: what is in the way, what was planted, several processes at once, odd names.
#include "runtime/jit.h"
#include "tests/data/check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static Arena *arena;
static char path_was[4096];

static JitSource source(int answer) {
  char *t = arena_printf(arena, "int answer(void) { return %d; }\n", answer);
  return (JitSource){t, strlen(t)};
}

// Compiles, loads and runs a source; what it says, or the status negated.
static int answer(Jit *j, JitSource src, bool *cached) {
  JitObject o;
  JitCode code;
  Status s = jit_compile(j, &src, 1, &o);
  if (s) return -s;
  if (cached) *cached = o.from_cache;
  if ((s = jit_load(j, &o, &code))) return -s;
  int (*fn)(void);
  void *symbol = jit_symbol(&code, "answer");
  assert_non_null(symbol);
  assert_null(jit_symbol(&code, "no_such_answer"));
  memcpy(&fn, &symbol, sizeof symbol);
  int r = fn();
  jit_unload(&code);
  return r;
}

static void cache_at(const char *name) {               // an empty cache under a folder of this name
  char *p = arena_printf(arena, "%s/%s", getcwd((char[4096]){0}, 4096), name);
  folder_delete(p);
  setenv("XDG_CACHE_HOME", p, 1), unsetenv("MT_CC"), unsetenv("MT_KEEP_KERNELS"), setenv("PATH", path_was, 1);
}

static int files(const char *folder, const char *end, char *first) {  // files whose names end so; the last one's path
  int n = 0;
  DIR *d = opendir(folder);
  if (!d) return 0;
  for (struct dirent *e; (e = readdir(d));) {
    size_t a = strlen(e->d_name), b = strlen(end);
    if (e->d_name[0] == '.' || a < b || strcmp(e->d_name + a - b, end)) continue;
    n++;
    if (first) snprintf(first, 4096, "%s/%s", folder, e->d_name);
  }
  closedir(d);
  return n;
}

static void cached_once(void **state) {
  (void)state;
  Jit j;
  bool cached;
  cache_at("cache");
  for (int round = 0; round < 2; round++) {
    assert_int_equal(jit_open(&j, arena, 0), 0);
    assert_int_equal(answer(&j, source(41), &cached), 41);
    assert_int_equal(cached, round);
    assert_false(j.private_folder);
    jit_close(&j);
  }
  struct stat st;
  assert_true(!stat("cache/mt/kernels", &st) && (st.st_mode & 0777) == 0700);
  assert_int_equal(files("cache/mt/kernels", "", 0), 1);  // nothing else is left behind
}

static void several(void **state) {                    // many at once, each its own; a broken one says what the compiler said
  (void)state;
  Jit j;
  cache_at("several");
  assert_int_equal(jit_open(&j, arena, 0), 0);
  JitSource src[7];
  JitObject o[7];
  JitCode code[7];
  for (int i = 0; i < 7; i++) src[i] = source(100 + i);
  assert_int_equal(jit_compile(&j, src, 7, o), 0);
  for (int i = 0; i < 7; i++) assert_int_equal(jit_load(&j, &o[i], &code[i]), 0);
  for (int i = 0; i < 7; i++) {
    int (*fn)(void);
    void *symbol = jit_symbol(&code[i], "answer");
    memcpy(&fn, &symbol, sizeof symbol);
    assert_int_equal(fn(), 100 + i);
  }
  for (int i = 0; i < 7; i++) jit_unload(&code[i]);
  src[3].text = "int answer(void) { return missing; }\n", src[3].n = strlen(src[3].text);
  src[2] = source(200);
  assert_fails(jit_compile(&j, src, 7, o), EXIT_UNAVAILABLE, "missing");
  assert_int_equal(files("several/mt/kernels", ".c", 0) + files("several/mt/kernels", ".log", 0), 0);
  o[0].hash[0] ^= 1;
  assert_fails(jit_load(&j, &o[0], &code[0]), EXIT_INPUT, "hash");
  jit_close(&j);
}

static void planted(void **state) {                    // half a file, a changed one, a link, a pipe, another's: compiled again
  (void)state;
  Jit j;
  bool cached;
  char path[4096];
  cache_at("planted");
  assert_int_equal(jit_open(&j, arena, 0), 0);
  assert_int_equal(answer(&j, source(5), 0), 5);
  assert_int_equal(files("planted/mt/kernels", ".so", path), 1);
  size_t n;
  char *right = get_file(arena, path, &n);
  for (int how = 0; how < 8; how++) {
    char *wrong = arena_strndup(arena, right, n);
    unlink(path);
    switch (how) {
      case 0: put_file(path, right, n / 2); break;
      case 1: wrong[n / 2] ^= 1, put_file(path, wrong, n); break;
      case 2: put_file(path, "", 0); break;
      case 3: wrong[n - 1] ^= 1, put_file(path, wrong, n); break;
      case 4: put_file("elsewhere.so", right, n), assert_int_equal(symlink(arena_printf(arena, "%s/elsewhere.so", getcwd((char[4096]){0}, 4096)), path), 0); break;
      case 5: assert_int_equal(mkfifo(path, 0600), 0); break;
      case 6: put_file(path, right, n), chmod(path, 0666); break;
      case 7: put_file(path, "short", 5); break;
    }
    assert_int_equal(answer(&j, source(5), &cached), 5);
    if (cached) fail_msg("planted file %d was taken", how);
    assert_int_equal(answer(&j, source(5), &cached), 5);
    if (!cached) fail_msg("after planted file %d nothing is cached", how);
  }
  jit_close(&j);
}

static void folders(void **state) {                    // a cache that others can write, a link, a file, no home
  (void)state;
  static const struct { const char *name, *said; } row[] = {{"open", "others can write it"}, {"link", "it is a link"}, {"file", "Not a directory"}, {"none", ""}};
  for (size_t i = 0; i < COUNT(row); i++) {
    Jit j;
    bool cached;
    cache_at(row[i].name);
    if (i == 0) assert_int_equal(mkdir("open", 0700) | mkdir("open/mt", 0700) | mkdir("open/mt/kernels", 0700) | chmod("open/mt/kernels", 0770), 0);
    if (i == 1) assert_int_equal(mkdir("link", 0700) | mkdir("link/mt", 0700) | mkdir("target", 0700) | symlink("../../target", "link/mt/kernels"), 0);
    if (i == 2) put_file("file", "", 0);
    if (i == 3) unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
    catch_begin();
    Status s = jit_open(&j, arena, 0);
    const char *said = catch_end();
    if (s || !strstr(said, row[i].said) || (*said && !strstr(said, "private folder"))) fail_msg("%s: %d %s", row[i].name, s, said);
    assert_true(j.private_folder);
    assert_int_equal(answer(&j, source(6), &cached), 6);
    assert_false(cached);
    char *folder = arena_strndup(arena, j.folder, strlen(j.folder));
    jit_close(&j);
    assert_true(access(folder, F_OK) != 0);
  }
  assert_int_equal(files("open/mt/kernels", "", 0) + files("target", "", 0), 0);
}

static void compilers(void **state) {
  (void)state;
  Jit j;
  cache_at("compilers");
  setenv("PATH", "/no/such/folder", 1);
  assert_int_equal(jit_open(&j, arena, 0), 0);
  assert_fails(-answer(&j, source(7), 0), EXIT_UNAVAILABLE, "apt install gcc");
  setenv("PATH", path_was, 1);
  static const char *const wrong[] = {"/no/such/cc", "cc -O2", "gcc;touch PWNED", "$(touch PWNED)", ".", "-o"};
  for (size_t i = 0; i < COUNT(wrong); i++) {
    setenv("MT_CC", wrong[i], 1);
    assert_int_equal(jit_open(&j, arena, 0), 0);
    assert_fails(-answer(&j, source(7), 0), EXIT_UNAVAILABLE, wrong[i]);
  }
  // a compiler with a name that a shell would run, and what it is given: no variable of ours but three
  const char *name = "./c c;touch PWNED", *script = "#!/bin/sh\nenv > given\necho \"$@\" > arguments\nexec cc \"$@\"\n";
  put_file(name, script, strlen(script)), chmod(name, 0755);
  setenv("MT_CC", name, 1), setenv("CPATH", "/x", 1), setenv("CFLAGS", "-DX", 1), setenv("GCC_EXEC_PREFIX", "/x", 1), setenv("LD_PRELOAD_X", "/x", 1);
  assert_int_equal(jit_open(&j, arena, 0), 0);
  assert_int_equal(answer(&j, source(7), 0), 7);
  size_t n;
  char *given = get_file(arena, "given", &n), *arguments = get_file(arena, "arguments", &n);
  assert_true(strstr(given, "PATH=") && !strstr(given, "CPATH") && !strstr(given, "CFLAGS") && !strstr(given, "GCC_EXEC") && !strstr(given, "LD_PRELOAD") && !strstr(given, "XDG"));
  assert_true(strstr(arguments, "-ffp-contract=off") && !strstr(arguments, "fast-math"));
  unsetenv("CPATH"), unsetenv("CFLAGS"), unsetenv("GCC_EXEC_PREFIX"), unsetenv("LD_PRELOAD_X");
  assert_true(access("PWNED", F_OK) != 0);
}

static void odd_names(void **state) {                  // names are names
  (void)state;
  static const char *const names[] = {"m;touch PWNED", "$(touch PWNED)", "a b\"c", "-o", "`touch PWNED`", "x\ny", "%s%n"};
  for (size_t i = 0; i < COUNT(names); i++) {
    Jit j;
    bool cached;
    cache_at(names[i]);
    setenv("MT_KEEP_KERNELS", names[i], 1);
    assert_int_equal(jit_open(&j, arena, 0), 0);
    for (int round = 0; round < 2; round++) {
      assert_int_equal(answer(&j, source(8), &cached), 8);
      assert_int_equal(cached, round);
    }
    assert_int_equal(files(names[i], ".c", 0), 1);
    jit_close(&j);
  }
  assert_true(access("PWNED", F_OK) != 0);
}

static void eight_at_once(void **state) {              // eight processes, no cache yet, the same kernels; several rounds
  (void)state;
  for (int round = 0; round < 5; round++) {
    cache_at("race");
    pid_t pid[8];
    for (int p = 0; p < 8; p++) {
      pid[p] = fork();
      assert_true(pid[p] >= 0);
      if (pid[p]) continue;
      Jit j;
      int bad = jit_open(&j, arena, 0) != 0;
      for (int i = 0; i < 2 && !bad; i++) bad = answer(&j, source(1000 + i), 0) != 1000 + i;
      _exit(bad);
    }
    for (int p = 0; p < 8; p++) {
      int status;
      assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
      assert_int_equal(status, 0);
    }
    assert_int_equal(files("race/mt/kernels", "", 0), 2);
  }
}

static void age(const char *folder, time_t seconds) {   // of all files in it
  DIR *d = opendir(folder);
  struct timespec t[2] = {{.tv_sec = time(0) - seconds}, {.tv_sec = time(0) - seconds}};
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') assert_int_equal(utimensat(dirfd(d), e->d_name, t, AT_SYMLINK_NOFOLLOW), 0);
  closedir(d);
}

static void killed(void **state) {                     // what a process leaves that its compiler kills; others' files
  (void)state;
  static const char script[] = "#!/bin/sh\ntouch $TMPDIR/ccAbC123.s $TMPDIR/load.$PPID.abcdef\nkill -9 $PPID\n";
  static const char *const folder = "killed/mt/kernels";
  Jit j;
  bool cached;
  int status;
  cache_at("killed");
  assert_int_equal(jit_open(&j, arena, 0), 0);
  assert_int_equal(answer(&j, source(11), 0), 11);
  char object[4096];
  assert_int_equal(files(folder, ".so", object), 1);
  put_file("killer", script, sizeof script - 1), chmod("killer", 0755);
  pid_t pid = fork();
  if (!pid) {
    setenv("MT_CC", "./killer", 1);
    _exit(jit_open(&j, arena, 0) || answer(&j, source(12), 0));
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const char *dead = arena_printf(arena, "%s.%ld.tmp", object, (long)pid);
  const char *mine = arena_printf(arena, "%s/0123456789abcdef0123456789abcdef.%ld.0.c", folder, (long)getpid());
  put_file(dead, "", 0), put_file(mine, "", 0);
  put_file("killed/mt/kernels/notes.txt", "", 0), assert_int_equal(mkdir("killed/mt/kernels/cc123456.d", 0700), 0);
  // KEY.so, KEY.PID.0.c, its log, ccAbC123.s, load.PID.abcdef, KEY.so.PID.tmp; mine, notes.txt, the folder
  for (int round = 0; round < 2; round++) {
    assert_int_equal(files(folder, "", 0), round ? 4 : 9);
    age(folder, round ? 1000000 : 7200);
    assert_int_equal(jit_open(&j, arena, 0), 0);
  }
  assert_int_equal(files(folder, "", 0), 4);
  assert_int_equal(access(object, F_OK) | access(mine, F_OK) | access("killed/mt/kernels/notes.txt", F_OK), 0);
  assert_int_equal(answer(&j, source(11), &cached), 11);
  assert_true(cached);
  put_file(dead, "", 0), assert_int_equal(jit_open(&j, arena, 0), 0);
  assert_int_equal(access(dead, F_OK), 0);              // it is new: a process with that number may live elsewhere
}

static void no_exec(void **state) {                    // a cache on a file system without execution still works
  (void)state;
  pid_t pid = fork();
  if (!pid) {
    Jit j;
    cache_at("noexec");
    mkdir("noexec", 0700);
    if (unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) || mount("none", "noexec", "tmpfs", MS_NOEXEC, "mode=700")) _exit(99);
    _exit(jit_open(&j, arena, 0) || answer(&j, source(9), 0) != 9 || answer(&j, source(9), 0) != 9);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 99) skip();           // needs the right to mount
  assert_int_equal(status, 0);
}

static void targets(void **state) {
  (void)state;
  Jit j;
  cache_at("targets");
  assert_true(jit_runs_here(jit_cpu(arena)));
  assert_false(jit_runs_here("x86_64-0.0.0.0"));
  assert_fails(jit_open(&j, arena, "native -DX"), EXIT_USAGE, "native -DX");
  if (!jit_runs_here("x86-64-v3")) return;
  assert_int_equal(jit_open(&j, arena, "x86-64-v3"), 0);
  assert_int_equal(answer(&j, source(10), 0), 10);
}

int main(void) {
  char folder[64];
  arena = arena_create();
  snprintf(path_was, sizeof path_was, "%s", getenv("PATH"));
  folder_enter(folder);
  const struct CMUnitTest tests[] = {cmocka_unit_test(cached_once), cmocka_unit_test(several),       cmocka_unit_test(planted), cmocka_unit_test(folders),
                                     cmocka_unit_test(compilers),   cmocka_unit_test(odd_names),     cmocka_unit_test(eight_at_once), cmocka_unit_test(no_exec),
                                     cmocka_unit_test(killed),
                                     cmocka_unit_test(targets)};
  int bad = cmocka_run_group_tests(tests, 0, 0);
  arena_destroy(arena), folder_leave(folder);
  return bad;
}
