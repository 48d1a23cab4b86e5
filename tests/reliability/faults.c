// faults.c -- preloaded into a program: its n-th call that changes something under a folder fails, tears, waits, or is its last.
//
//   FAULT_IN      part of a path: only calls on such files and folders count
//   FAULT         N:kill  N:io  N:space  N:torn  N:wait    the N-th call and, for io and space, all after it
//   FAULT_COUNT   a file that is told how many calls there were
#undef _FILE_OFFSET_BITS                     // both names of a call are met, those with and without 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long calls;                           // that counted; saves are made by one thread

static bool path_counts(const char *path) {
  const char *in = getenv("FAULT_IN");
  return in && strstr(path, in);
}

static bool file_counts(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  return path_counts(path);
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("FAULT_COUNT");
  FILE *f = path ? fopen(path, "w") : 0;
  if (!f) return;
  fprintf(f, "%ld\n", calls);
  fclose(f);
}

// 0: go on; -1: the call fails with errno; 1: write half, then die
static int fault(bool counts) {
  const char *what = getenv("FAULT");
  if (!counts || !what) return calls += counts, 0;
  char *action;
  long n = strtol(what, &action, 10);
  calls++;
  bool sticks = !strcmp(action, ":io") || !strcmp(action, ":space");
  if (calls < n || (calls > n && !sticks)) return 0;
  if (!strcmp(action, ":kill")) raise(SIGKILL);
  if (!strcmp(action, ":torn")) return 1;
  if (!strcmp(action, ":wait")) {
    fputs("waiting\n", stderr);
    sleep(120);
    return 0;
  }
  errno = !strcmp(action, ":space") ? ENOSPC : EIO;
  return -1;
}

#define REAL(result, name, types) result (*real) types; *(void **)&real = dlsym(RTLD_NEXT, name)
#define FAULTY(result, name, params, args, counts) \
  result name params; \
  result name params { \
    REAL(result, #name, params); \
    int f = fault(counts); \
    if (f > 0) raise(SIGKILL); \
    return f ? -1 : real args; \
  }

FAULTY(int, fsync, (int fd), (fd), file_counts(fd))
FAULTY(int, mkdir, (const char *path, mode_t mode), (path, mode), path_counts(path))
FAULTY(int, rename, (const char *from, const char *to), (from, to), path_counts(to))
FAULTY(int, renameat2, (int d, const char *from, int e, const char *to, unsigned flags), (d, from, e, to, flags), path_counts(to))
FAULTY(int, rmdir, (const char *path), (path), path_counts(path))
FAULTY(int, unlinkat, (int d, const char *path, int flags), (d, path, flags), file_counts(d))
FAULTY(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), file_counts(fd))
FAULTY(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), file_counts(fd))
FAULTY(int, ftruncate, (int fd, off_t n), (fd, n), file_counts(fd))
FAULTY(int, ftruncate64, (int fd, off64_t n), (fd, n), file_counts(fd))

#define FAULTY_WRITE(name, offset) \
  ssize_t name(int fd, const void *p, size_t n, offset at); \
  ssize_t name(int fd, const void *p, size_t n, offset at) { \
    REAL(ssize_t, #name, (int, const void *, size_t, offset)); \
    int f = fault(file_counts(fd)); \
    if (f < 0) return -1; \
    if (f > 0 && real(fd, p, n / 2, at) >= 0) raise(SIGKILL); \
    return real(fd, p, n, at); \
  }
FAULTY_WRITE(pwrite, off_t)
FAULTY_WRITE(pwrite64, off64_t)

#define FAULTY_OPEN(name) \
  int name(const char *path, int flags, ...); \
  int name(const char *path, int flags, ...) { \
    va_list args; \
    va_start(args, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0; \
    va_end(args); \
    REAL(int, #name, (const char *, int, ...)); \
    int f = fault((flags & O_CREAT) && path_counts(path)); \
    if (f > 0) raise(SIGKILL); \
    return f ? -1 : real(path, flags, mode); \
  }
FAULTY_OPEN(open)
FAULTY_OPEN(open64)
