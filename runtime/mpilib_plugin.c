// mpilib_plugin.c -- see mpilib.h. Built once with each MPI; the only file that includes mpi.h of one.
#include <mpi.h>
#include "runtime/mpilib.h"
#include <string.h>

static const char *library(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (MPI_Get_library_version(text, &n)) return "an MPI without a version";
  text[strcspn(text, "\n")] = 0;
  for (char *t = text; (t = strchr(t, 0x09)); t++) *t = 0x20;
  return text;
}

static int start(int *rank, int *ranks) {
  int got, e = MPI_Init_thread(0, 0, MPI_THREAD_SERIALIZED, &got);
  if (!e) e = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!e && got < MPI_THREAD_SERIALIZED) e = MPI_ERR_UNSUPPORTED_OPERATION;
  if (!e) e = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return e ? e : MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

static MPI_Request request(const MpiTask *t) {
  MPI_Request r;
  memcpy(&r, &t->bits, sizeof r);
  return r;
}

static int keep(MpiTask *t, MPI_Request r, int e) {
  _Static_assert(sizeof r <= sizeof t->bits, "a request fits");
  memcpy(&t->bits, &r, sizeof r);
  return e;
}

static int send_bytes(const void *at, int64_t bytes, int to, int tag, MpiTask *t) {
  MPI_Request r = MPI_REQUEST_NULL;
  int e = MPI_Isend(at, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &r);
  return keep(t, r, e);
}

static int receive(void *at, int64_t bytes, int from, int tag, MpiTask *t) {
  MPI_Request r = MPI_REQUEST_NULL;
  int e = MPI_Irecv(at, (int)bytes, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &r);
  return keep(t, r, e);
}

static int done(MpiTask *t, int *yes) {
  MPI_Request r = request(t);
  int e = MPI_Test(&r, yes, MPI_STATUS_IGNORE);
  return keep(t, r, e);
}

static int forget(MpiTask *t) {
  MPI_Request r = request(t);
  int e = MPI_Cancel(&r);
  if (!e) e = MPI_Request_free(&r);
  return keep(t, r, e);
}

static int finish(void) { return MPI_Finalize(); }
static void end_all(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

static void why(int code, char *text, size_t room) {
  char said[MPI_MAX_ERROR_STRING];
  int n;
  if (MPI_Error_string(code, said, &n)) n = 0;
  snprintf(text, room, "%.*s", n, said);
}

extern const MpiTable mt_mpi;
const MpiTable mt_mpi = {MPILIB_VERSION, library, start, send_bytes, receive, done, forget, finish, end_all, why};
