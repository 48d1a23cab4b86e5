// check.h -- for the tests here: messages on stderr caught, files in a folder of one's own, seeded random numbers.
#ifndef MT_TESTS_CHECK_H
#define MT_TESTS_CHECK_H
#include "runtime/base.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

static int caught_fd = -1, caught_old = -1;
static char caught[1 << 16];

static inline const char *catch_end(void);
static inline void catch_lost(void) {
  if (caught_old >= 0) fputs(catch_end(), stderr);
}
// from here to catch_end stderr is kept; catch_end gives it, or the end of the program shows it
static inline void catch_begin(void) {
  if (caught_fd < 0) atexit(catch_lost);
  fflush(stderr);
  if (caught_fd < 0) caught_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (caught_fd < 0) {
    FILE *f = tmpfile();
    caught_fd = f ? fileno(f) : -1;
  }
  if (ftruncate(caught_fd, 0) || lseek(caught_fd, 0, SEEK_SET)) abort();
  caught_old = dup(2), dup2(caught_fd, 2);
}
static inline const char *catch_end(void) {
  fflush(stderr);
  dup2(caught_old, 2), close(caught_old), caught_old = -1;
  ssize_t n = pread(caught_fd, caught, sizeof caught - 1, 0);
  caught[n < 0 ? 0 : n] = 0;
  return caught;
}

// status and a part of the message that e must give
#define assert_fails(e, status, part) do { \
    catch_begin(); \
    Status got_ = (e); \
    const char *text_ = catch_end(); \
    if (got_ != (status) || !strstr(text_, part)) \
      fail_msg("%s gave %d \"%s\", wanted %d \"…%s…\"", #e, got_, text_, status, part); \
  } while (0)
#define assert_done(e) do { \
    catch_begin(); \
    Status got_ = (e); \
    const char *text_ = catch_end(); \
    if (got_) fail_msg("%s gave %d \"%s\"", #e, got_, text_); \
  } while (0)

static inline int delete_entry(const char *path, const struct stat *st, int kind, struct FTW *at) {
  (void)st, (void)kind, (void)at;
  return remove(path);
}
static inline void folder_delete(const char *path) { nftw(path, delete_entry, 16, FTW_DEPTH | FTW_PHYS); }
// a fresh folder; the current one is changed to it
static inline void folder_enter(char path[64]) {
  snprintf(path, 64, "/dev/shm/mt-test-XXXXXX");           // in memory where there is such a folder
  if (!mkdtemp(path)) snprintf(path, 64, "/tmp/mt-test-XXXXXX");
  if (strstr(path, "XXXXXX") && !mkdtemp(path)) abort();
  if (chdir(path)) abort();
}
static inline void folder_leave(const char *path) {
  if (chdir("/")) abort();
  folder_delete(path);
}
static inline void put_file(const char *path, const void *data, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, data, n) != (ssize_t)n || close(fd)) abort();
}
static inline char *get_file(Arena *a, const char *path, size_t *n) {
  char *data;
  if (file_read(a, path, (size_t)1 << 30, &data, n)) abort();
  return data;
}

static inline uint64_t draw(uint64_t *seed) { return *seed = hash_mix(*seed, 0x5eed); }
static inline uint64_t draw_below(uint64_t *seed, uint64_t n) { return draw(seed) % n; }
#endif
