// work.h -- threads that claim the tiles of one job after another. Who computes a tile never changes its bits, so any
// number of threads gives the same results. Nobody spins: an idle thread sleeps.
#ifndef MT_WORK_H
#define MT_WORK_H
#include "runtime/base.h"
#include <pthread.h>

typedef struct Work Work;
// Computes units lo … hi-1. worker: 0 … threads-1, no two calls at once have the same.
typedef void Task(void *with, int64_t lo, int64_t hi, int worker);

Status work_create(Arena *a, int threads, Work **w);              // threads: 1 and more, the caller of work_run is one
void   work_destroy(Work *w);                                     // 0 is allowed
int    work_threads(const Work *w);
int    work_cpus(void);                                           // that this process may run on, 1 and more
// Units 0 … n-1 in tiles of `grain`; returns when all are done. One caller at a time.
void   work_run(Work *w, Task *task, void *with, int64_t n, int64_t grain);
int    thread_start(pthread_t *t, void *(*main)(void *), void *with); // 0 or an errno; signals are the main thread's
#endif
