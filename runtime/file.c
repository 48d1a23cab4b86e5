// file.c -- see file.h.
#include "runtime/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

Status file_fail(int e, const char *doing, const char *path) {
  Status code = e == ENOENT || e == ENOTDIR ? EXIT_MISSING : e == EACCES || e == EPERM ? EXIT_PERMISSION : EXIT_IO;
  return fail(code, "%s%s%s: %s", doing, *doing ? " " : "", path, strerror(e));
}

static Status regular(int fd, const char *path, int64_t *size) {
  struct stat st;
  if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
    *size = st.st_size;
    return 0;
  }
  close(fd);
  return fail(EXIT_INPUT, "%s: not a regular file", path);
}

Status file_open(const char *path, int *fd, int64_t *size) {
  *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);             // a FIFO must not hang us
  if (*fd < 0) return file_fail(errno, "", path);
  return regular(*fd, path, size);
}

Status file_open_in(const char *folder, const char *name, int *fd, int64_t *size) {
  if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
    return fail(EXIT_INPUT, "%s: '%.200s' is not the name of a file in this folder", folder, name);
  int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return file_fail(errno, "", folder);
  *fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  int e = errno;
  close(dir);
  Arena *a = arena_create();
  char *path = arena_printf(a, "%s/%s", folder, name);
  Status s = 0;
  if (*fd >= 0) s = regular(*fd, path, size);
  else if (e == ELOOP) s = fail(EXIT_INPUT, "%s: a symbolic link; it may lead out of the folder", path);
  else s = file_fail(e, "", path);
  arena_destroy(a);
  return s;
}

Status file_pread(int fd, const char *path, int64_t at, void *p, size_t n) {
  for (size_t got = 0; got < n;) {
    ssize_t k = pread(fd, (char *)p + got, n - got, at + (int64_t)got);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0)
      return fail(EXIT_IO, "reading %s at byte %lld: %s", path, (long long)(at + (int64_t)got),
                  strerror(errno));
    if (!k) {
      struct stat st;
      int64_t end = fstat(fd, &st) ? at + (int64_t)got : (int64_t)st.st_size;
      return fail(EXIT_IO, "%s: ends at byte %lld, bytes up to %lld are needed", path, (long long)end,
                  (long long)(at + (int64_t)n));
    }
    got += (size_t)k;
  }
  return 0;
}

Status file_sample(int fd, const char *path, int64_t at, int64_t bytes, uint64_t *hash) {
  enum { PIECES = 8, PIECE = 4096 };
  char piece[PIECE];
  bool all = bytes <= PIECES * PIECE;
  *hash = hash_bytes(&bytes, sizeof bytes, 0);
  for (int64_t i = 0; i < PIECES; i++) {
    int64_t from = all ? i * PIECE : (bytes - PIECE) / (PIECES - 1) * i, n = MIN(PIECE, bytes - from);
    if (n <= 0) break;
    TRY(file_pread(fd, path, at + from, piece, (size_t)n));
    *hash = hash_bytes(piece, (size_t)n, *hash);
  }
  return 0;
}

Status file_create(const char *path, int *fd) {
  *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (*fd >= 0) return 0;
  return fail(errno == EACCES || errno == EPERM ? EXIT_PERMISSION : EXIT_CREATE, "cannot write %s: %s", path,
              strerror(errno));
}

bool file_same(const char *a, const char *b) {
  struct stat x, y;
  if (stat(a, &x) || stat(b, &y)) return !strcmp(a, b);
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
}

bool file_is_folder(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool file_is_regular(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISREG(st.st_mode);
}

Status file_target(const char *path) {
  Arena *a = arena_create();
  char *folder = arena_strndup(a, path, strlen(path)), *slash = strrchr(folder, '/');
  struct stat st;
  if (slash) slash[slash == folder] = 0;
  Status s = 0;
  if (!*path) s = fail(EXIT_CREATE, "cannot write a file without a name");
  else if (!stat(path, &st) && !S_ISREG(st.st_mode)) s = fail(EXIT_CREATE, "cannot write %s: not a regular file", path);
  else if (access(slash ? folder : ".", W_OK | X_OK))
    s = fail(errno == EACCES || errno == EROFS ? EXIT_PERMISSION : EXIT_CREATE, "cannot write %s: %s", path, strerror(errno));
  arena_destroy(a);
  return s;
}

static Status write_failed(int fd, const char *path, int e, int64_t need) {
  struct statvfs v;
  if ((e == ENOSPC || e == EDQUOT) && !fstatvfs(fd, &v))
    return fail(EXIT_IO, "writing %s: %s: %lld bytes are needed, %llu are free", path, strerror(e), (long long)need,
                (unsigned long long)v.f_bavail * v.f_frsize);
  return fail(EXIT_IO, "writing %s (%lld bytes): %s", path, (long long)need, strerror(e));
}

Status file_reserve(int fd, const char *path, int64_t size) {
  if (size > 0 && fallocate(fd, 0, 0, size) && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
    return write_failed(fd, path, errno, size);
  if (ftruncate(fd, size)) return write_failed(fd, path, errno, size);
  return 0;
}

Status file_pwrite(int fd, const char *path, int64_t at, const void *p, size_t n) {
  for (size_t put = 0; put < n;) {
    ssize_t k = pwrite(fd, (const char *)p + put, n - put, at + (int64_t)put);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return write_failed(fd, path, k ? errno : ENOSPC, at + (int64_t)n);
    put += (size_t)k;
  }
  return 0;
}

Status file_finish(int fd, const char *path) {
  int e = fsync(fd) ? errno : 0;
  if (close(fd) && !e) e = errno;
  return e ? fail(EXIT_IO, "writing %s: %s", path, strerror(e)) : 0;
}

Status folder_make(const char *path) {
  Arena *a = arena_create();
  char *p = arena_strndup(a, path, strlen(path));
  Status s = 0;
  for (char *at = p; *at && !s;) {
    at += strspn(at, "/");
    at += strcspn(at, "/");
    char slash = *at;
    *at = 0;
    if (*p && mkdir(p, 0777) && errno != EEXIST && errno != EISDIR)
      s = fail(errno == EACCES || errno == EPERM ? EXIT_PERMISSION : EXIT_CREATE,
               "cannot make folder %s: %s", p, strerror(errno));
    *at = slash;
  }
  if (!s && !file_is_folder(path)) s = fail(EXIT_CREATE, "%s: not a folder", path);
  arena_destroy(a);
  return s;
}

Status folder_sync(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return file_fail(errno, "", path);
  int e = fsync(fd) ? errno : 0;
  close(fd);
  // some file systems have no fsync of folders; their renames last on their own
  return e && e != EINVAL ? fail(EXIT_IO, "writing folder %s: %s", path, strerror(e)) : 0;
}

Status folder_sync_of(const char *path) {
  Arena *a = arena_create();
  char *folder = arena_strndup(a, path, strlen(path)), *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  Status s = folder_sync(slash ? folder : ".");
  arena_destroy(a);
  return s;
}

Status folder_temporary(Arena *a, const char *name, char **path) {
  const char *tmp = getenv("TMPDIR");
  *path = arena_printf(a, "%s/%s-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp", name);
  return mkdtemp(*path) ? 0 : fail(EXIT_CREATE, "cannot make the folder %s: %s", *path, strerror(errno));
}

Status folder_remove(const char *path) {
  DIR *d = opendir(path);
  if (!d) return errno == ENOENT ? 0 : file_fail(errno, "removing", path);
  Status s = 0;
  for (struct dirent *e; !s && (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    if (unlinkat(dirfd(d), e->d_name, 0) && errno != ENOENT) s = file_fail(errno, "removing a file in", path);
  }
  closedir(d);
  if (!s && rmdir(path) && errno != ENOENT) s = file_fail(errno, "removing", path);
  return s;
}

// ---- the user's cache ------------------------------------------------------------------------------------------------
// Makes path and what leads to it; 0, or an errno.
static int make_folders(Arena *a, const char *path) {
  char *p = arena_strndup(a, path, strlen(path));
  for (char *s = p + 1;; s++) {
    if (*s && *s != '/') continue;
    char c = *s;
    *s = 0;
    if (mkdir(p, 0700) && errno != EEXIST) return errno;
    if (!(*s = c)) return 0;
  }
}

// Why the folder must not be used, or 0: it is ours, no link, and nobody else can write it.
static Str folder_wrong(const char *path) {
  struct stat st;
  if (lstat(path, &st)) return strerror(errno);
  if (S_ISLNK(st.st_mode)) return "it is a link";
  if (!S_ISDIR(st.st_mode)) return "it is no folder";
  if (st.st_uid != geteuid()) return "it belongs to another user";
  if (st.st_mode & 022) return "others can write it (chmod 700 it)";
  if (access(path, W_OK | X_OK)) return strerror(errno);
  return 0;
}

Str cache_folder(Arena *a, const char *name, bool make, Str *wrong) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (base && *base == '/') base = arena_strndup(a, base, strlen(base));
  else if (home && *home == '/') base = arena_printf(a, "%s/.cache", home);
  else return *wrong = "neither XDG_CACHE_HOME nor HOME is a path from the root", (Str)0;
  Str mt = arena_printf(a, "%s/mt", base), folder = *name ? arena_printf(a, "%s/%s", mt, name) : mt;
  int e = make ? make_folders(a, folder) : 0;
  if ((*wrong = e ? strerror(e) : folder_wrong(mt)) || !*name) return mt;
  *wrong = folder_wrong(folder);
  return folder;
}
