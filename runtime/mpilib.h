// mpilib.h -- an MPI as we use it: it begins to move bytes and says when it has; nothing waits. One caller at a time.
//
// Open MPI and MPICH are different binaries with one C interface, so mpilib_plugin.c is built with each, and mpilib_open loads
// the one that the launcher belongs to: mtrun itself needs neither.
#ifndef MT_MPILIB_H
#define MT_MPILIB_H
#include "runtime/launch.h"

enum { MPILIB_VERSION = 1 };                      // changes with MpiTable: an older plugin is not used
typedef struct { uint64_t bits; } MpiTask;   // a transfer that was begun

// Each returns 0, or a code that why() puts into words.
typedef struct {
  int version;                               // MPILIB_VERSION
  const char *(*library)(void);              // "Open MPI v4.1.4, …": its first line; also before start
  int  (*start)(int *rank, int *ranks);      // once in a process
  // at most 2^31 - 1 bytes
  int  (*send)(const void *at, int64_t bytes, int to, int tag, MpiTask *t);
  int  (*receive)(void *at, int64_t bytes, int from, int tag, MpiTask *t);   // from -1: any
  int  (*done)(MpiTask *t, int *yes);        // asked until it is
  int  (*forget)(MpiTask *t);                // a receive that nobody answers any more
  int  (*finish)(void);                      // all ranks call it
  void (*abort)(int status);                 // ends all ranks; does not return
  void (*why)(int code, char *text, size_t room);
} MpiTable;

#define MPILIBS(X) \
  X(openmpi, "Open MPI", "libopenmpi-dev openmpi-bin") \
  X(mpich,   "MPICH",    "libmpich-dev mpich")
typedef enum {
#define X(word, name, packages) MPILIB_##word,
  MPILIBS(X)
#undef X
  MPILIB_COUNT
} MpiLib;

Str    mpilib_name(MpiLib which);
Str    mpilib_packages(MpiLib which);       // of Debian, for the build
Status mpilib_of(const Launcher *l, MpiLib *which);                 // that the launcher's processes find one another by
// Loads it: beside the program, or where it was installed.
Status mpilib_open(Arena *a, MpiLib which, const MpiTable **mpi);
#endif
