// file.h -- data and state on disk: reads and writes that are whole or say why, folders, and what makes them last.
#ifndef MT_FILE_H
#define MT_FILE_H
#include "runtime/base.h"

Status file_open(const char *path, int *fd, int64_t *size);       // to read; regular files only
Status file_open_in(const char *folder, const char *name, int *fd, int64_t *size);   // name: no path, no link
Status file_pread(int fd, const char *path, int64_t at, void *p, size_t n);          // all n bytes
// Of n bytes all over the part from `at` on: all of them when it is short.
Status file_sample(int fd, const char *path, int64_t at, int64_t bytes, uint64_t *hash);
Status file_create(const char *path, int *fd);                    // to read and write; empty
Status file_reserve(int fd, const char *path, int64_t size);      // sets the size; says early that the disk is full
Status file_pwrite(int fd, const char *path, int64_t at, const void *p, size_t n);   // all n bytes
Status file_finish(int fd, const char *path);                     // fsync and close
bool   file_same(const char *a, const char *b);                    // one regular file; or one name, of none
bool   file_is_folder(const char *path);
bool   file_is_regular(const char *path);
Status file_target(const char *path);                             // a file may be put here: a folder to write in, no folder or device there
Status file_fail(int e, const char *doing, const char *path);     // errno as a message and an exit code

Status folder_make(const char *path);                             // with its parents; one that exists is right
Status folder_sync(const char *path);                             // its entries last
Status folder_sync_of(const char *path);                          // the folder that holds path
Status folder_temporary(Arena *a, const char *name, char **path);   // a new one in TMPDIR, or /tmp: NAME-xxxxxx
Status folder_remove(const char *path);                           // with the files in it, no folders in it

// $XDG_CACHE_HOME/mt/NAME or ~/.cache/mt/NAME; name "": mt itself. make: it is made when it is not there, mode 0700.
// *wrong: why it is not to be used (others can write it, it is a link, …), or 0; then the path may be of a folder that
// holds it, or 0 when no variable names one.
Str    cache_folder(Arena *a, const char *name, bool make, Str *wrong);
#endif
