// Checkpoints: what is saved is loaded; no kill, error or short write at any call of a save costs more than
// that save; nothing damaged is believed.
//
// The linker hands the calls below to us (--wrap), so the n-th of them can fail or be the last thing the
// process does.
#include "runtime/ckpt.h"
#include "runtime/file.h"
#include "tests/data/scratch.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

// ---- faults -------------------------------------------------------------------------------------------------------
// torn: half of the bytes, then the end
enum { FAULT_none, FAULT_kill, FAULT_torn, FAULT_full, FAULT_broken, FAULTS };
static int fault, fault_at, calls;
static bool fired;

static int faulty(void) {
  if (!fault || ++calls != fault_at) return FAULT_none;
  fired = true;
  if (fault == FAULT_kill) raise(SIGKILL);
  errno = fault == FAULT_full ? ENOSPC : EIO;
  return fault;
}

#define WRAP(result, name, params, args) \
  result __real_##name params; \
  result __wrap_##name params; \
  result __wrap_##name params { \
    int f = faulty(); \
    if (f == FAULT_torn) raise(SIGKILL); \
    return f ? -1 : __real_##name args; \
  }
#define WRAP_WRITE(name, params, args, half) \
  ssize_t __real_##name params; \
  ssize_t __wrap_##name params; \
  ssize_t __wrap_##name params { \
    int f = faulty(); \
    if (f == FAULT_torn) { \
      if (__real_##name half < 0) abort(); \
      raise(SIGKILL); \
    } \
    return f ? -1 : __real_##name args; \
  }
WRAP_WRITE(write, (int fd, const void *p, size_t n), (fd, p, n), (fd, p, n / 2))
WRAP_WRITE(pwrite64, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), (fd, p, n / 2, at))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
WRAP(int, fallocate64, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n))
WRAP(int, rmdir, (const char *path), (path))
WRAP(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
int __wrap_fsync(int fd);
// the disk is spared: the order of the calls is what is tested
int __wrap_fsync(int fd) {
  int f = faulty();
  if (f == FAULT_torn) raise(SIGKILL);
  return f || fd < 0 ? -1 : 0;
}

// ---- a state whose every value tells the step ---------------------------------------------------------------------
enum { WIDE = 300000 };                                    // values of the tensor that comes in pieces
static int64_t wide_shape[1] = {WIDE}, small_shape[2] = {2, 3};

static Status wide_get(void *user, const Tensor *t, int64_t first, int64_t n, void *dst) {
  (void)t;
  for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = (double)(first + i + *(int64_t *)user);
  return 0;
}

static CkptState state_of(int64_t step) {
  return (CkptState){.step = step, .update = step - 1, .samples = 8 * step, .seed = 1234, .loss_scale = 65536.0 / 3,
                     .scale_good = step, .scale_bad = step - 1, .data_rule = "seq 8, \"quoted\"\n, 0.3 A"};
}

static Status save(const char *dir, int64_t step, int64_t keep, bool big) {
  float w[6];
  double v[6];
  CkptState s = state_of(step);
  for (int i = 0; i < 6; i++) w[i] = (float)(step * 10 + i), v[i] = (double)step / (i + 1);
  Tensor model[] = {{.name = "wte.weight", .dtype = DT_f32, .ndim = 2, .shape = small_shape, .data = w},
                    {.name = "big", .dtype = DT_f64, .ndim = 1, .shape = wide_shape}};
  Tensor optimizer[] = {{.name = "wte.weight.exp_avg", .dtype = DT_f64, .ndim = 2, .shape = small_shape, .data = v}};
  Arena *a = arena_create();
  Status status = ckpt_save(a, dir, &s, model, big ? 2 : 1, optimizer, 1, &(TensorSource){&step, wide_get},
                            "{\"mesh\": \"dp=1\"}\n", keep);
  arena_destroy(a);
  return status;
}

static void check_values(const Ckpt *c, int64_t step, bool big) {
  CkptState s = state_of(step);
  assert_true(c->state.step == s.step && c->state.update == s.update && c->state.samples == s.samples &&
              c->state.seed == s.seed);
  assert_true(c->state.loss_scale == s.loss_scale && c->state.scale_good == s.scale_good && c->state.scale_bad == s.scale_bad);
  assert_string_equal(c->state.data_rule, s.data_rule);
  float w[6];
  double v[6];
  const Tensor *t = safetensors_find(&c->model, "wte.weight"),
      *e = safetensors_find(&c->optimizer, "wte.weight.exp_avg");
  assert_int_equal(tensor_read(&c->model, t, 0, 6, DT_f32, w), 0);
  assert_int_equal(tensor_read(&c->optimizer, e, 0, 6, DT_f64, v), 0);
  for (int i = 0; i < 6; i++) assert_true(w[i] == (float)(step * 10 + i) && v[i] == (double)step / (i + 1));
  if (!big) return;
  double *all = malloc(WIDE * sizeof *all);
  assert_int_equal(tensor_read(&c->model, safetensors_find(&c->model, "big"), 0, WIDE, DT_f64, all), 0);
  for (int i = 0; i < WIDE; i++) assert_true(all[i] == (double)(i + step));
  free(all);
}

// the step that resume finds, -1 for none; its values are right
static int64_t resumed(const char *dir, bool big) {
  Ckpt c;
  bool found;
  Arena *a = arena_create();
  assert_done(ckpt_resume(a, dir, &c, &found));
  int64_t step = found ? c.state.step : -1;
  if (found) check_values(&c, step, big), ckpt_close(&c);
  arena_destroy(a);
  return step;
}

static int count_tmp(const char *dir) {
  int n = 0;
  DIR *d = opendir(dir);
  for (struct dirent *e; (e = readdir(d));) n += strstr(e->d_name, ".tmp") != 0;
  closedir(d);
  return n;
}

// ---- tests --------------------------------------------------------------------------------------------------------
static void save_load_test(void **state) {
  (void)state;
  size_t n, m;
  assert_int_equal(resumed("run", true), -1);              // no folder: a fresh start
  assert_done(save("run/deep", 100, 0, true));
  assert_int_equal(resumed("run/deep", true), 100);
  assert_int_equal(resumed("run", true), -1);
  assert_string_equal(get_file(arena, "run/deep/latest", &n), "step_00000100\n");
  assert_string_equal(get_file(arena, "run/deep/step_00000100/provenance.json", &n), "{\"mesh\": \"dp=1\"}\n");
  assert_done(save("run/deep", 123456789, 0, true));
  assert_int_equal(resumed("run/deep", true), 123456789);
  // the same state gives the same bytes
  char *a = get_file(arena, "run/deep/step_00000100/MANIFEST", &n);
  assert_done(save("other", 100, 0, true));
  char *b = get_file(arena, "other/step_00000100/MANIFEST", &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n);
  // the same step again takes the place of the first
  assert_done(save("other", 100, 0, false));
  assert_int_equal(resumed("other", false), 100);
  assert_int_equal(count_tmp("other"), 0);
  put_file("file", "", 0);
  assert_fails(save("file", 1, 0, false), EXIT_CREATE, "file");
  Ckpt c;
  assert_fails(ckpt_open(arena, "run", &c), EXIT_MISSING, "run/MANIFEST: No such file");
}

static void keep_test(void **state) {
  (void)state;
  for (int64_t step = 5; step <= 25; step += 5) assert_done(save("run", step, 3, false));
  for (int64_t step = 5; step <= 25; step += 5)
    assert_int_equal(access(arena_printf(arena, "run/step_%08d", (int)step), F_OK), step < 15 ? -1 : 0);
  mkdir("run/step_00000030", 0777);                        // torn: it is no checkpoint and does not count as one
  mkdir("run/step_30.tmp", 0777), mkdir("run/mine.tmp", 0777);       // not ours: stay
  assert_done(save("run", 26, 3, false));
  assert_int_equal(access("run/step_00000015", F_OK), -1);
  assert_int_equal(access("run/step_00000020", F_OK), 0);
  assert_int_equal(access("run/mine.tmp", F_OK), 0);
  assert_done(save("run", 2, 2, false));                   // an older number than all: stays, it was just written
  assert_int_equal(access("run/step_00000002", F_OK), 0);
  assert_int_equal(access("run/step_00000025", F_OK), 0);
  assert_int_equal(access("run/step_00000020", F_OK), -1);
}

// the n-th call of a save ends the process or fails, for every n
static void fault_test(void **state) {
  (void)state;
  for (int kind = FAULT_kill; kind < FAULTS; kind++) {
    bool more = true;
    for (int n = 1; more; n++) {
      assert_done(save("run", 1, 0, true));
      bool again = n % 2;                                  // every other time the step is there already
      if (again) assert_done(save("run", 2, 0, true));
      fflush(0);
      pid_t child = fork();
      if (!child) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        fault = kind, fault_at = n;
        Status s = save("run", 2, 0, true);
        _exit(!fired ? 100 : s);
      }
      int how;
      assert_int_equal(waitpid(child, &how, 0), child);
      more = !(WIFEXITED(how) && WEXITSTATUS(how) == 100);
      if (more && kind >= FAULT_full && !(WIFEXITED(how) && WEXITSTATUS(how)))
        fail_msg("fault %d at call %d went unnoticed", kind, n);
      int64_t step = resumed("run", true);
      if (step != 2 && (again || step != 1))
        fail_msg("fault %d at call %d: resumed from step %lld", kind, n, (long long)step);
      assert_done(save("run", 3, 0, true));                // the next save works and leaves nothing lying around
      assert_int_equal(count_tmp("run"), 0);
      assert_int_equal(resumed("run", true), 3);
      folder_delete("run");
      if (n > 200) fail_msg("a save of more than 200 calls");
    }
  }
}

static void full_disk_test(void **state) {
  (void)state;
  assert_done(save("run", 1, 1, true));
  struct rlimit old, small = {1 << 20, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  catch_begin();
  Status s = save("run", 2, 1, true);
  const char *message = catch_end();
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(s, EXIT_IO);
  if (!strstr(message, "run/step_00000002.tmp/model.safetensors (24")) fail_msg("%s", message);
  assert_int_equal(count_tmp("run"), 0);
  assert_int_equal(access("run/step_00000002", F_OK), -1);
  assert_int_equal(resumed("run", true), 1);
  catch_begin();
  fault = FAULT_full, fault_at = 3, calls = 0;             // mkdir, mkdir; the room for the model is refused
  s = save("run", 2, 1, true);
  message = catch_end();
  fault = 0;
  assert_int_equal(s, EXIT_IO);
  if (!strstr(message, "model.safetensors: No space left on device: 24") || !strstr(message, " bytes are needed, "))
    fail_msg("%s", message);
}

static void damage_test(void **state) {
  (void)state;
  const char *files[] = {"model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST"};
  Ckpt c;
  bool found;
  assert_done(save("run", 1, 0, false));
  assert_done(save("run", 2, 0, false));
  for (size_t f = 0; f < COUNT(files); f++) {
    char *path = arena_printf(arena, "run/step_00000002/%s", files[f]);
    size_t n;
    char *good = get_file(arena, path, &n);
    for (size_t k = 0; k < n; k++) {                       // any bit
      char was = good[k];
      good[k] = (char)(was ^ 1 << k % 8);
      put_file(path, good, n);
      good[k] = was;
      catch_begin();
      Status s = ckpt_open(arena, "run/step_00000002", &c);
      catch_end();
      if (s != EXIT_INPUT) fail_msg("%s with bit %zu of byte %zu flipped: %d", files[f], k % 8, k, s);
    }
    for (size_t k = 0; k < n; k++) {                       // any length
      put_file(path, good, k);
      catch_begin();
      Status s = ckpt_open(arena, "run/step_00000002", &c);
      catch_end();
      if (s != EXIT_INPUT) fail_msg("%s cut to %zu bytes: %d", files[f], k, s);
    }
    catch_begin();
    Status s = ckpt_resume(arena, "run", &c, &found);
    const char *message = catch_end();
    assert_true(!s && found && c.state.step == 1);
    assert_non_null(strstr(message, files[f]));
    assert_non_null(strstr(message, "run/step_00000002: incomplete or damaged, passed over"));
    ckpt_close(&c);
    unlink(path);
    assert_fails(ckpt_open(arena, "run/step_00000002", &c), EXIT_MISSING, files[f]);
    assert_int_equal(symlink(arena_printf(arena, "../step_00000001/%s", files[f]), path), 0);
    if (strcmp(files[f], "MANIFEST"))
      assert_fails(ckpt_open(arena, "run/step_00000002", &c), EXIT_INPUT, "symbolic link");
    unlink(path);
    put_file(path, good, n);
    assert_done(ckpt_open(arena, "run/step_00000002", &c));
    ckpt_close(&c);
  }
  // files of two steps never mix
  size_t n;
  char *old = get_file(arena, "run/step_00000001/model.safetensors", &n);
  put_file("run/step_00000002/model.safetensors", old, n);
  assert_fails(ckpt_open(arena, "run/step_00000002", &c), EXIT_INPUT, "model.safetensors: damaged: its hash is");
  rename("run/step_00000001", "run/step_00000007");
  catch_begin();
  Status s = ckpt_resume(arena, "run", &c, &found);        // all are damaged: that is no fresh start
  const char *message = catch_end();
  assert_int_equal(s, EXIT_INPUT);
  assert_non_null(strstr(message, "run/step_00000007: holds step 1"));
  assert_non_null(strstr(message, "run: none of its 2 checkpoints is complete"));
}

static void lock_test(void **state) {
  (void)state;
  assert_done(save("run", 1, 0, false));
  int fd = open("run", O_RDONLY | O_DIRECTORY);
  assert_int_equal(flock(fd, LOCK_EX), 0);
  assert_fails(save("run", 2, 0, false), EXIT_IO, "run: another process is saving a checkpoint there");
  close(fd);
  assert_done(save("run", 2, 0, false));
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_SCRATCH(save_load_test), IN_SCRATCH(keep_test),
                                     IN_SCRATCH(fault_test), IN_SCRATCH(full_disk_test),
                                     IN_SCRATCH(damage_test), IN_SCRATCH(lock_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
