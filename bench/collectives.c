// collectives.c -- how fast the ranks of one machine add up what they have: against copying by as many threads at once,
// in the same kind of memory, in the same run.
//
// An all-reduce of n bytes on two ranks reads and writes n on each: 4 n in all. So its floor is 4 n by the rate of
// copying, where read and written bytes both count.
#include "runtime/comm.h"
#include "runtime/options.h"
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t ranks, mib, rounds, threads; bool in_place, json; } Settings;
static const Option rows[] = {
  OPTION_FROM(Settings, ranks,  'n', 0,      "N",   "ranks", 2),
  OPTION_FROM(Settings, mib,     0,  "size", "MIB", "of an all-reduce in f32", 1),
  OPTION_FROM(Settings, rounds,  0,  "rounds", "N", "of copying and all-reduce in turns; the medians count", 1),
  OPTION_FROM(Settings, threads, 0,  "threads", "T", "of each rank", 1),
  OPTION(Settings, in_place,     0,  "in-place", 0, "the sum takes the place of its terms"),
  OPTION(Settings, json,         0,  "json", 0,     "as JSON"),
};
static const Command command = {"collectives", "", "Measures an all-reduce of the ranks of one machine.", rows,
                                COUNT(rows), 0};

enum { MOST = 1000 };
typedef struct { const Settings *set; Plan *plan; } Bench;

static int by_value(const void *x, const void *y) {
  const double *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}
static double median(double *v, int64_t n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return v[n / 2];
}

typedef struct { char *to; const char *from; } Copy;
static void copy_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Copy *c = with;
  (void)worker;
  memcpy(c->to + lo, c->from + lo, (size_t)(hi - lo));
}

static Status measure(void *with, Comm *c) {
  const Bench *b = with;
  int64_t bytes = b->set->mib << 20, rounds = MIN(b->set->rounds, MOST), ranks = comm_ranks(c);
  char *from = comm_memory(c), *to = b->set->in_place ? from : from + bytes, *other = from + bytes;
  double copy[MOST], sum[MOST], check = 0;
  Arena *a = arena_create();
  Work *w;
  TRY(work_create(a, (int)b->set->threads, &w));
  for (int64_t i = 0; i < bytes / 4; i++) ((float *)(void *)from)[i] = b->set->in_place ? 0 : 1;
  for (int64_t i = 0; i < bytes / 4; i++) check += ((float *)(void *)from)[i];
  memset(other, 0, (size_t)bytes);
  for (int64_t i = -1; i < rounds; i++) {    // the first touches memory
    TRY(comm_barrier(c));
    double begin = now_seconds();
    work_run(w, copy_task, &(Copy){other, from}, bytes, bytes / b->set->threads);   // large: past the caches
    TRY(comm_barrier(c));
    if (i >= 0) copy[i] = now_seconds() - begin;
    begin = now_seconds();
    TRY(comm_run(c, w, &b->plan->coll.at[1], to, from, 0, (CommMeeting){true, true}));
    TRY(comm_barrier(c));
    if (i >= 0) sum[i] = now_seconds() - begin;
  }
  float want = b->set->in_place ? 0 : (float)ranks;
  for (int64_t i = 0; i < bytes / 4; i++)
    if (((float *)(void *)to)[i] != want) return fail(EXIT_INTERNAL, "element %lld is wrong", (long long)i);
  double rate = 2e-9 * (double)(bytes * ranks) / median(copy, rounds), time = median(sum, rounds);
  double floor = 2e-9 * (double)(bytes * ranks) / rate;
  if (!comm_rank(c) && b->set->json)
    printf("{\"ranks\": %lld, \"mib\": %lld, \"copy\": %.3f, \"seconds\": %.6f, \"share\": %.4f}\n", (long long)ranks,
           (long long)b->set->mib, rate, time, floor / time);
  else if (!comm_rank(c))
    printf("copying by %lld ranks %.2f GB/s; all-reduce of %lld MiB %.2f ms, %.0f %% of that rate\n", (long long)ranks,
           rate, (long long)b->set->mib, time * 1e3, 100 * floor / time);
  work_destroy(w);
  arena_destroy(a);
  return check < 0 ? EXIT_INTERNAL : 0;
}

int main(int argc, char **argv) {
  Settings s = {.ranks = 2, .mib = 64, .rounds = 11, .threads = 1};
  Words words = {0};
  bool help;
  program_start("collectives");
  Arena *a = arena_create();
  const Settings defaults = s;
  Status e = options_parse(a, &command, argc, argv, &s, &words, &help);
  if (!e && help) return options_help(&command, &defaults, stdout), 0;
  if (!e) {
    Bench b = {&s, plan_create(a)};
    vec_push(a, &b.plan->axis, (PlanAxis){"dp", s.ranks});
    plan_coll(b.plan, (PlanColl){.kind = COLL_all_reduce, .dtype = DT_f32, .axes = 1, .outer = 1, .gather = 1, .mid = 1,
                                 .scatter = 1, .inner = s.mib << 18});
    e = comm_launch(a, b.plan, (size_t)s.mib << 21, (CommOptions){RANKS_processes, 60, {0, 0}}, measure, &b);
  }
  arena_destroy(a);
  return e;
}
