// dev_cpu.c -- the CPU as a device: a block of memory per kind, a thread per stream, workers under those that compute and
// communicate.
#include "runtime/dev.h"
#include "runtime/gemm.h"
#include "runtime/jit.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TOUCH = 32 << 20 };                   // bytes got from the system at once
enum { QUEUE = 64 };                         // cells that may wait

typedef struct {
  Dev *dev;
  PlanStream stream;
  pthread_t thread;
  pthread_cond_t moved;                      // a cell was queued, an event recorded that this stream waits for
  bool started;
  uint64_t done;                             // cells
  DevSpan *span;
  int64_t nspan;
} Stream;

typedef void KernelFn(void *const *buf, const void *scalars, int64_t lo, int64_t hi);
typedef struct { KernelFn *stage[2]; } Loaded;               // of one kernel

struct Dev {
  const Plan *plan;
  DevOptions options;
  Str name;
  char *block[MEM_COUNT];
  size_t block_bytes[MEM_COUNT];
  char *scalars;
  void **ptr;                                // [plan->arg.n]
  Loaded *kernel;                            // [plan->kernel.n]
  Jit jit;
  bool jit_is_open;
  JitCode *code;                             // [plan->source.n]; 1 … ncode are loaded
  uint32_t ncode;
  Gemms *gemms;
  Work *work, *comm_work;
  int64_t before;                            // peak_bytes before open_memory
  DevTime **time;                            // [fn][ins]
  DevFeed *feed;
  void *with;
  DevWatch *watch;
  void *watching;

  pthread_mutex_t lock;                      // of all below
  pthread_cond_t moved;                      // a cell is done
  DevCell queue[QUEUE];
  uint64_t queued;
  uint32_t *event;                           // counters
  uint8_t *waiter;                           // [event]: the stream that waits for it
  Status failed; // the first failure of the feed: what computes is skipped from then on
  bool stop;
  Stream stream[STREAM_COUNT];
};

// ---- instructions ------------------------------------------------------------------------------------------------
typedef struct { KernelFn *fn; void *const *buf; const void *scalars; } KernelRun;
static void kernel_task(void *with, int64_t lo, int64_t hi, int worker) {
  const KernelRun *r = with;
  (void)worker;
  r->fn(r->buf, r->scalars, lo, hi);
}

static void run_kernel(Dev *d, const PlanIns *in) {
  const PlanKernel *k = &d->plan->kernel.at[in->what];
  for (uint32_t s = 0; s < k->stages; s++) {
    KernelRun r = {d->kernel[in->what].stage[s], d->ptr + in->arg, d->scalars};
    work_run(d->work, kernel_task, &r, k->units[s], k->grain[s]);
  }
}

typedef struct { char *to; const char *from; } CopyRun;    // from 0: zeroes
static void copy_task(void *with, int64_t lo, int64_t hi, int worker) {
  const CopyRun *r = with;
  (void)worker;
  if (r->from) memcpy(r->to + lo, r->from + lo, (size_t)(hi - lo));
  else memset(r->to + lo, 0, (size_t)(hi - lo));
}

static void fail_with(Dev *d, Status s) {
  pthread_mutex_lock(&d->lock);
  if (!d->failed) d->failed = s;
  pthread_mutex_unlock(&d->lock);
}

static void run_coll(Dev *d, const PlanFn *f, uint32_t i) {
  const PlanIns *in = &f->ins.at[i];
  void **arg = d->ptr + in->arg;
  CommMeeting m = {ins_begins(f, i), ins_ends(f, i)};
  Status s = comm_run(d->options.comm, d->comm_work, &d->plan->coll.at[in->what], arg[0], arg[1], in->line, m);
  if (s) fail_with(d, s);
}

static double run_ins(Dev *d, const PlanIns *in) {                     // FLOP that it left out
  void **arg = d->ptr + in->arg;
  switch (in->op) {
    case PI_kernel: run_kernel(d, in); break;
    case PI_gemm: return gemm_run(d->gemms, d->work, in->what, arg[0], arg[1], arg[2]);
    case PI_copy: case PI_zero: {
      CopyRun r = {arg[0], in->op == PI_copy ? arg[1] : 0};
      if (in->stream == STREAM_compute) work_run(d->work, copy_task, &r, in->bytes, 1 << 20);
      else copy_task(&r, 0, in->bytes, 0);
      break;
    }
    case PI_record: case PI_wait: case PI_load: case PI_coll: case PI_COUNT: break;
  }
  return 0;
}

// ---- streams -----------------------------------------------------------------------------------------------------
static void event_wait(Stream *s, uint32_t e) {
  Dev *d = s->dev;
  pthread_mutex_lock(&d->lock);
  while (!d->event[e]) pthread_cond_wait(&s->moved, &d->lock);
  d->event[e]--;
  pthread_mutex_unlock(&d->lock);
}

static void event_record(Dev *d, uint32_t e) {
  pthread_mutex_lock(&d->lock);
  d->event[e]++;
  pthread_cond_signal(&d->stream[d->waiter[e]].moved);
  pthread_mutex_unlock(&d->lock);
}

static bool is_failed(Dev *d) {
  pthread_mutex_lock(&d->lock);
  bool failed = d->failed != 0;
  pthread_mutex_unlock(&d->lock);
  return failed;
}

static void load(Dev *d, const PlanIns *in, const DevCell *c) {
  Status s = d->feed(d->with, in->what, c->microbatch, d->ptr[in->arg]);
  if (s) fail_with(d, s);
}

static bool runs(const DevCell *c, const PlanIns *in) {
  return in->when != (c->first ? WHEN_later : WHEN_first) && (in->when != WHEN_last || c->last);
}

static void run_cell(Stream *s, const DevCell *c) {
  Dev *d = s->dev;
  const PlanFn *f = &d->plan->fn.at[c->fn];
  if (s->stream == STREAM_compute)
    for (uint32_t i = 0; i < c->nset; i++)
      memcpy(d->scalars + d->plan->slot.at[c->set[i].slot - 1].at, &c->set[i].bits, 8);
  bool timed = d->options.times || d->options.spans;
  bool skip = is_failed(d);
  for (uint32_t i = 0; i < f->ins.n; i++) {
    const PlanIns *in = &f->ins.at[i];
    if (in->stream != s->stream || !runs(c, in)) continue;
    double begin = timed ? now_seconds() : 0, left_out = 0;
    if (in->op == PI_wait) event_wait(s, in->what), skip = skip || is_failed(d);
    else if (in->op == PI_record) event_record(d, in->what);
    else if (skip) continue;
    else if (in->op == PI_load) load(d, in, c);
    else if (in->op == PI_coll) run_coll(d, f, i), skip = is_failed(d);
    else left_out = run_ins(d, in);
    if (d->watch && s->stream == STREAM_compute && !skip) d->watch(d->watching, c, i);
    if (!timed) continue;
    double end = now_seconds();
    DevTime *t = d->options.times ? &d->time[c->fn][i] : 0;
    if (t) t->runs++, t->seconds += end - begin, t->left_out += left_out;
    if (s->nspan < d->options.spans) s->span[s->nspan++] = (DevSpan){c->fn, i, c->microbatch, begin, end};
  }
}

static void *stream_main(void *arg) {
  Stream *s = arg;
  Dev *d = s->dev;
  pthread_mutex_lock(&d->lock);
  for (;;) {
    while (s->done == d->queued && !d->stop) pthread_cond_wait(&s->moved, &d->lock);
    if (s->done == d->queued) break;
    DevCell c = d->queue[s->done % QUEUE];
    pthread_mutex_unlock(&d->lock);
    run_cell(s, &c);
    pthread_mutex_lock(&d->lock);
    s->done++;
    pthread_cond_broadcast(&d->moved);
  }
  pthread_mutex_unlock(&d->lock);
  return 0;
}

static uint64_t slowest(const Dev *d) {
  uint64_t done = d->queued;
  for (int i = 0; i < STREAM_COUNT; i++) done = MIN(done, d->stream[i].done);
  return done;
}

void dev_feed(Dev *d, DevFeed *feed, void *with) { d->feed = feed, d->with = with; }

void dev_watch(Dev *d, DevWatch *watch, void *with) { d->watch = watch, d->watching = with; }

void dev_cell(Dev *d, const DevCell *c) {
  pthread_mutex_lock(&d->lock);
  while (d->queued - slowest(d) == QUEUE) pthread_cond_wait(&d->moved, &d->lock);
  d->queue[d->queued++ % QUEUE] = *c;
  for (int i = 0; i < STREAM_COUNT; i++) pthread_cond_signal(&d->stream[i].moved);
  pthread_mutex_unlock(&d->lock);
}

Status dev_sync(Dev *d) {
  pthread_mutex_lock(&d->lock);
  while (slowest(d) < d->queued) pthread_cond_wait(&d->moved, &d->lock);
  Status s = d->failed;
  pthread_mutex_unlock(&d->lock);
  return s;
}

// ---- opening -----------------------------------------------------------------------------------------------------
// The kernel promises more than it has and ends the process later: said before anything is touched.
static Status check_memory(const Plan *p, const Comm *comm) {
  double need = 0, have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < MEM_COUNT; i++) need += (double)p->memory[i];
  need *= (double)comm_here(comm);
  if (need <= have) return 0;
  return fail(EXIT_UNAVAILABLE, "the plan needs %.1f GiB, this machine has %.1f GiB: a smaller model, micro_batch or "
              "context, or bf16", need / 0x1p30, have / 0x1p30);
}

static Status no_memory(size_t bytes, int e) {
  return fail(EXIT_UNAVAILABLE, "the plan needs %.1f MiB more memory, the system refused: %s%s",
              (double)bytes / 0x1p20, strerror(e), space_limit());
}

size_t dev_bytes(const Plan *p, size_t at[MEM_COUNT]) {
  size_t total = 0;
  for (int i = 0; i < MEM_COUNT; i++) {
    if (at) at[i] = total;
    total += ((size_t)p->memory[i] + 4095) / 4096 * 4096;
  }
  return total;
}

static Status open_memory(Dev *d, Arena *a) {
  const Plan *p = d->plan;
  size_t place[MEM_COUNT];
  char *shared = comm_memory(d->options.comm);
  dev_bytes(p, place);
  for (int i = 0; i < MEM_COUNT; i++) {
    size_t bytes = d->block_bytes[i] = ((size_t)p->memory[i] + 4095) / 4096 * 4096;
    if (bytes && shared) d->block[i] = shared + place[i];
    if (!bytes || shared) continue;
    void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      d->block_bytes[i] = 0;
      return no_memory(bytes, errno);
    }
    madvise(at, bytes, MADV_HUGEPAGE);                     // where the system has them
    d->block[i] = at;
  }
  d->scalars = d->block[MEM_scalars];
  d->ptr = NEW_N(a, void *, p->arg.n + 1);
  for (uint32_t i = 0; i < p->arg.n; i++) d->ptr[i] = dev_at(d, p->arg.at[i]);
  d->event = NEW_N(a, uint32_t, p->event.n);
  for (uint32_t i = 1; i < p->event.n; i++) d->event[i] = p->event.at[i].initial;
  d->waiter = NEW_N(a, uint8_t, p->event.n);
  for (uint32_t f = 1; f < p->fn.n; f++)
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
      const PlanIns *in = &p->fn.at[f].ins.at[i];
      if (in->op == PI_wait) d->waiter[in->what] = (uint8_t)in->stream;
    }
  if (!d->options.times) return 0;
  d->time = NEW_N(a, DevTime *, p->fn.n);
  for (uint32_t i = 1; i < p->fn.n; i++) d->time[i] = NEW_N(a, DevTime, p->fn.at[i].ins.n + 1);
  return 0;
}

typedef struct { char *at; size_t bytes; _Atomic int error; } Touch;
static void touch_task(void *with, int64_t lo, int64_t hi, int worker) {
  Touch *t = with;
  size_t begin = (size_t)lo * TOUCH, end = MIN((size_t)hi * TOUCH, t->bytes);
  (void)worker;
#ifdef MADV_POPULATE_WRITE
  if (madvise(t->at + begin, end - begin, MADV_POPULATE_WRITE) && errno == ENOMEM) t->error = errno; // else: an older system
#else
  (void)begin, (void)end;
#endif
}

Status dev_touch(Dev *d) {
  for (int i = 0; i < MEM_COUNT; i++) {
    Touch t = {d->block[i], d->block_bytes[i], 0};
    work_run(d->work, touch_task, &t, (int64_t)((t.bytes + TOUCH - 1) / TOUCH), 1);
    if (t.error) return no_memory(t.bytes, t.error);
  }
  return 0;
}

static Status open_libraries(Dev *d, Arena *a) {
  TRY(gemm_open(a, d->plan, d->options.threads, &d->gemms));
  const char *libraries = gemm_libraries(d->gemms);
  d->name = arena_printf(a, "%d thread%s%s%s", d->options.threads, d->options.threads == 1 ? "" : "s", *libraries ? ", " : "", libraries);
  return 0;
}

// Each source's object: one of the plan's that runs on this CPU, or compiled from the source.
static Status open_objects(Dev *d, Arena *a, JitObject *object) {
  const Plan *p = d->plan;
  JitSource *source = NEW_N(a, JitSource, p->source.n);
  JitObject *made = NEW_N(a, JitObject, p->source.n);
  uint32_t *which = NEW_N(a, uint32_t, p->source.n), n = 0;
  for (uint32_t i = 1; i < p->object.n; i++) {
    const PlanObject *o = &p->object.at[i];
    if (object[o->source].n || !jit_runs_here(o->target)) continue;
    object[o->source] = (JitObject){.bytes = o->data, .n = (size_t)o->bytes};
    jit_hash(o->data, (size_t)o->bytes, object[o->source].hash);
  }
  for (uint32_t i = 1; i < p->source.n; i++)
    if (!object[i].n)
      source[n] = (JitSource){p->source.at[i].text, (size_t)p->source.at[i].bytes}, which[n++] = i;
  if (n) TRY(jit_compile(&d->jit, source, n, made));
  for (uint32_t i = 0; i < n; i++) object[which[i]] = made[i];
  return 0;
}

static Status open_kernels(Dev *d, Arena *a) {
  const Plan *p = d->plan;
  if (p->source.n == 1) return 0;
  JitObject *object = NEW_N(a, JitObject, p->source.n);
  TRY(jit_open(&d->jit, a, 0));
  d->jit_is_open = true;
  TRY(open_objects(d, a, object));
  d->code = NEW_N(a, JitCode, p->source.n);
  for (uint32_t i = 1; i < p->source.n; i++, d->ncode++) TRY(jit_load(&d->jit, &object[i], &d->code[i]));
  d->kernel = NEW_N(a, Loaded, p->kernel.n);
  for (uint32_t i = 1; i < p->kernel.n; i++) {
    const PlanKernel *k = &p->kernel.at[i];
    const char *symbol[2] = {k->symbol, arena_printf(a, "%s_combine", k->symbol)};
    for (uint32_t s = 0; s < k->stages; s++) {
      *(void **)&d->kernel[i].stage[s] = jit_symbol(&d->code[k->source], symbol[s]);
      if (!d->kernel[i].stage[s])
        return fail(EXIT_INPUT, "the plan's source %s has no %s", p->source.at[k->source].name, symbol[s]);
    }
  }
  return 0;
}

static Status open_streams(Dev *d, Arena *a) {
  enum { MOVERS = 4 };                                     // threads that copy and add up as fast as memory goes
  TRY(work_create(a, d->options.threads, &d->work));
  if (d->plan->coll.n > 1) TRY(work_create(a, MIN(d->options.threads, MOVERS), &d->comm_work));
  for (int i = 0; i < STREAM_COUNT; i++) {
    Stream *s = &d->stream[i];
    s->dev = d, s->stream = (PlanStream)i;
    s->span = d->options.spans ? NEW_N(a, DevSpan, d->options.spans) : 0;
    int e = thread_start(&s->thread, stream_main, s);
    if (e) return fail(EXIT_UNAVAILABLE, "cannot start a thread: %s%s", strerror(e), space_limit());
    s->started = true;
  }
  return 0;
}

Status dev_open(Arena *a, const Plan *p, DevOptions o, Dev **out) {
  Dev *d = *out = NEW(a, Dev);
  d->plan = p, d->options = o;
  if (!o.comm) TRY(comm_alone(a, &d->options.comm));
  pthread_mutex_init(&d->lock, 0), pthread_cond_init(&d->moved, 0);
  for (int i = 0; i < STREAM_COUNT; i++) pthread_cond_init(&d->stream[i].moved, 0);
  if (strcmp(p->target, "cpu"))
    return fail(EXIT_UNAVAILABLE, "the plan is for %s; this build has cpu", p->target);
  TRY(check_memory(p, d->options.comm));
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;  // of the ranks of a process: libraries change its environment
  pthread_mutex_lock(&one);
  Status s = open_libraries(d, a);
  if (!s) s = open_kernels(d, a);
  pthread_mutex_unlock(&one);
  TRY(s);
  d->before = peak_bytes();
  TRY(open_memory(d, a));
  return open_streams(d, a);
}

void dev_close(Dev *d) {
  if (!d) return;
  pthread_mutex_lock(&d->lock);
  d->stop = true;
  for (int i = 0; i < STREAM_COUNT; i++) pthread_cond_signal(&d->stream[i].moved);
  pthread_mutex_unlock(&d->lock);
  for (int i = 0; i < STREAM_COUNT; i++)
    if (d->stream[i].started) pthread_join(d->stream[i].thread, 0);
  work_destroy(d->work), work_destroy(d->comm_work);
  gemm_close(d->gemms);
  for (uint32_t i = 1; i <= d->ncode; i++) jit_unload(&d->code[i]);
  if (d->jit_is_open) jit_close(&d->jit);
  for (int i = 0; i < MEM_COUNT; i++)
    if (d->block_bytes[i] && !comm_memory(d->options.comm)) munmap(d->block[i], d->block_bytes[i]);
  for (int i = 0; i < STREAM_COUNT; i++) pthread_cond_destroy(&d->stream[i].moved);
  pthread_cond_destroy(&d->moved), pthread_mutex_destroy(&d->lock);
}

Str dev_name(const Dev *d) { return d->name; }
Str dev_libraries(const Dev *d) { return gemm_libraries(d->gemms); }
int64_t dev_rooms(const Dev *d) { return gemm_rooms(d->gemms); }
int64_t dev_planned(const Dev *d) {
  int64_t bytes = dev_rooms(d);
  for (int i = 0; i < MEM_COUNT; i++) bytes += d->plan->memory[i];
  return bytes;
}
int64_t dev_before(const Dev *d) { return d->before; }
Comm *dev_comm(const Dev *d) { return d->options.comm; }
Work *dev_work(Dev *d) { return d->work; }
void *dev_slot(Dev *d, uint32_t slot) { return d->scalars + d->plan->slot.at[slot - 1].at; }
void *dev_at(Dev *d, PlanArg at) {
  const PlanBuffer *b = &d->plan->buffer.at[at.buffer];
  return d->block[b->mem] + b->at + plan_part_at(d->plan, b, comm_rank(d->options.comm)) + at.at;
}

// ---- measurements ------------------------------------------------------------------------------------------------
DevTime dev_time(const Dev *d, uint32_t fn, uint32_t ins) { return d->time ? d->time[fn][ins] : (DevTime){0}; }

void dev_time_reset(Dev *d) {
  for (uint32_t i = 1; i < d->plan->fn.n && d->time; i++)
    memset(d->time[i], 0, d->plan->fn.at[i].ins.n * sizeof **d->time);
}

const DevSpan *dev_spans(const Dev *d, PlanStream s, int64_t *n) {
  *n = d->stream[s].nspan;
  return d->stream[s].span;
}
