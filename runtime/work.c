// work.c -- see work.h.
//
// The job lies under a lock; tiles are claimed from one atomic counter. A thread enters a job only while it is open,
// and the caller closes it when no tile is left and waits for those inside: so a job's description never changes under
// a thread.
#include "runtime/work.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

enum { STACK = 16 << 20 };                   // of each thread: kernels keep blocks there, attention in f64 4 MiB
typedef struct { Task *task; void *with; int64_t n, grain; } Job;

struct Work {
  int threads;
  pthread_t *thread;                         // threads - 1 of them
  pthread_mutex_t lock;
  pthread_cond_t wake, done;                 // a job is open, or the end; nobody is inside any more
  Job job;
  bool open, stop;
  uint64_t number;                           // of the job
  int idle, inside;                          // sleeping threads; threads inside the job
  _Atomic int64_t next;                      // first unit not yet claimed
};

typedef struct { Work *w; int worker; } Start;

static void claim(Work *w, const Job *j, int worker) {
  for (int64_t lo; (lo = atomic_fetch_add_explicit(&w->next, j->grain, memory_order_relaxed)) < j->n;)
    j->task(j->with, lo, MIN(lo + j->grain, j->n), worker);
}

static void *worker_main(void *arg) {
  Start *s = arg;
  Work *w = s->w;
  int worker = s->worker;
  uint64_t seen = 0;
  pthread_mutex_lock(&w->lock);
  while (!w->stop) {
    if (!w->open || w->number == seen) {
      w->idle++;
      pthread_cond_wait(&w->wake, &w->lock);
      w->idle--;
      continue;
    }
    seen = w->number;
    Job job = w->job;
    w->inside++;
    pthread_mutex_unlock(&w->lock);
    claim(w, &job, worker);
    pthread_mutex_lock(&w->lock);
    if (!--w->inside) pthread_cond_signal(&w->done);
  }
  pthread_mutex_unlock(&w->lock);
  return 0;
}

int thread_start(pthread_t *t, void *(*main)(void *), void *with) {
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK);
  int e = pthread_create(t, &attr, main, with);
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &was, 0);
  return e;
}

// The caller computes too; its stack grows as far as it may.
static void own_stack(void) {
  struct rlimit l;
  if (getrlimit(RLIMIT_STACK, &l) || l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= STACK) return;
  l.rlim_cur = l.rlim_max == RLIM_INFINITY ? STACK : MIN((rlim_t)STACK, l.rlim_max);
  setrlimit(RLIMIT_STACK, &l);
}

Status work_create(Arena *a, int threads, Work **out) {
  Work *w = *out = NEW(a, Work);
  own_stack();
  w->threads = 1;
  w->thread = NEW_N(a, pthread_t, threads);
  pthread_mutex_init(&w->lock, 0), pthread_cond_init(&w->wake, 0), pthread_cond_init(&w->done, 0);
  Start *start = NEW_N(a, Start, threads);
  for (; w->threads < threads; w->threads++) {
    start[w->threads] = (Start){w, w->threads};
    int e = thread_start(&w->thread[w->threads - 1], worker_main, &start[w->threads]);
    if (e)
      return fail(EXIT_UNAVAILABLE, "cannot start thread %d of %d: %s%s", w->threads + 1, threads, strerror(e),
                  space_limit());
  }
  return 0;
}

void work_destroy(Work *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->stop = true;
  pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->lock);
  for (int i = 0; i < w->threads - 1; i++) pthread_join(w->thread[i], 0);
  pthread_cond_destroy(&w->wake), pthread_cond_destroy(&w->done), pthread_mutex_destroy(&w->lock);
}

int work_threads(const Work *w) { return w->threads; }

int work_cpus(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : MAX(CPU_COUNT(&set), 1);
}

void work_run(Work *w, Task *task, void *with, int64_t n, int64_t grain) {
  if (n <= 0) return;
  grain = MAX(grain, 1);
  if (w->threads == 1 || n <= grain) {
    for (int64_t lo = 0; lo < n; lo += grain) task(with, lo, MIN(lo + grain, n), 0);
    return;
  }
  pthread_mutex_lock(&w->lock);
  w->job = (Job){task, with, n, grain};
  Job job = w->job;
  atomic_store_explicit(&w->next, 0, memory_order_relaxed);
  w->number++, w->open = true;
  int64_t others = (n - 1) / grain;                        // tiles besides the first
  if (others >= w->idle) pthread_cond_broadcast(&w->wake);
  else
    while (others--) pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->lock);
  claim(w, &job, 0);
  pthread_mutex_lock(&w->lock);
  w->open = false;
  while (w->inside) pthread_cond_wait(&w->done, &w->lock);
  pthread_mutex_unlock(&w->lock);
}
