// plan_fuzz.c -- loads mutated plans; with what is believed it does all that mtrun does short of running kernels: memory,
// schedule, parameters and their files, inputs, the start block.
//
//   plan_fuzz N FIRST_SEED PLAN…     N runs; of the plans the text is mutated, their sources and objects are left out
//
// Seven of eight runs get a hash that fits what they became, so that the reader and the verifier are reached.
#include "runtime/cost.h"
#include "runtime/feed.h"
#include "runtime/metrics.h"
#include "runtime/state.h"
#include "runtime/trace.h"
#include "tests/data/check.h"
#include "tests/mutate.h"
#include <xxhash.h>

static const char *const words[] = {
#define X(word) #word,
  PLAN_MEMORY(X) PLAN_VARS(X) PLAN_INITS(X) PLAN_OPS(X) PLAN_WHENS(X) PLAN_STREAMS(X) PLAN_CELLS(X) PLAN_NUMBERS(X)
#undef X
  "optimizer", "schedule", "axis", "dim", "line", "memory", "buffer", "slot", "var", "input", "output", "gemm", "event", "fn", "cell", "source", "object", "binary",
  "f32", "f64", "bf16", "i32", "i64", "u8", "bool", "0", "1", "-1", "2", "63", "64", "4096", "2147483647", "2147483648", "4294967296", "4611686018427387904",
  "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e308", "1e-320", "nan", "inf", "-0", "0x10", "1.5", "\n", " ", "\"", "\\", "\"a b\"", "\0", "@0",
  "@99", "sample", "cosine", "wsd", "style", "warmup 5", "min 0", "adamw", "lr", "{expert}", "{gate:w1,w3}", "NAME:exp_avg", "below 3",
};

static void seal(char *s, size_t n) {
  size_t at = strlen("mt plan 1\nhash ");
  char hash[33];
  if (n < at + 33) return;
  XXH128_hash_t h = XXH3_128bits(s + at + 33, n - at - 33);
  snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
  memcpy(s + at, hash, 32);
}

static int64_t memory_of(const Plan *p) {
  int64_t total = 0;
  for (int i = 0; i < MEM_COUNT; i++) total += p->memory[i];
  return total;
}

static Status train_nothing(Arena *a, Plan *p, Dev *d) {
  Exec x;
  State state;
  Feed feed = {0};
  Rates rates = {.threads = 1, .day = "", .copy = 1, .update = 1};
  FILE *nowhere = fopen("/dev/null", "w");
  TRY(exec_init(&x, p, d));
  for (int64_t i = 0; p->cell.n && i < 4; i++) schedule_lr(&x.schedule, i * MAX(p->steps, 1) / 3);
  state_init(a, p, d, &state);
  state_draw(&state);
  state_write(&state, VIEW_params, "params"), state_write(&state, VIEW_moments, "moments");
  Safetensors file;
  Status e = safetensors_open(a, "params", &file);
  if (!e) e = state_load(&state, VIEW_params, &file, true), safetensors_close(&file);
  start_print(nowhere, p, 0, "", 0, 0), profile_print(nowhere, p, d, 1, &rates), step_estimate(a, p, &rates), fclose(nowhere);
  if (e) return e;
  if (!feed_open(a, p, &(FeedOptions){.batches = "batches", .steps = 1}, &feed))
    for (uint32_t f = 1; f < p->fn.n; f++)
      for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
        const PlanIns *in = &p->fn.at[f].ins.at[i];
        if (in->op == PI_load) feed_input(&feed, in->what, 0, dev_at(d, p->arg.at[in->arg]));
      }
  feed_close(&feed);
  return 0;
}

static void use(Arena *a, Plan *p) {
  Dev *d = 0;
  p->source.n = p->object.n = 1;             // no kernel will run
  if (memory_of(p) < 1 << 26 && !dev_open(a, p, (DevOptions){.threads = 1, .times = true}, &d)) train_nothing(a, p, d);
  dev_close(d);
}

static const char *check(Arena *a, const char *text, size_t n) {
  char *s = arena_strndup(a, text, n);
  Plan *p = plan_create(a), *q;
  if (hash_bytes(s, n, 0) % 8) seal(s, n);
  const char *why = plan_parse(p, s, n);
  if (!why) why = plan_verify(p, a);
  if (why && !*why) return "refused without a reason";
  if (why && strlen(why) > 2000) return "a reason without end";
  FILE *f = fopen("plan", "w");
  if (!f || fwrite(s, 1, n, f) != n || fclose(f)) return "the plan is not written";
  catch_begin();
  Status status = plan_load(a, "plan", &q);
  if (!status) use(a, q);
  const char *said = catch_end();
  if (why ? status != EXIT_INPUT : status) return arena_printf(a, "'%s', but plan_load gives %d", why ? why : "", status);
  if (why && !strstr(said, "plan: ")) return "the refusal does not name the file";
  return said_wrong(said, strlen(said), true);        // fail() lets tabs through
}

// The plans' texts without what is binary, and inputs that fit them.
static int prepare(Arena *a, int argc, char **argv) {
  for (int i = 3; i < argc; i++) {
    Plan *p;
    if (plan_load(a, argv[i], &p)) return 66;
    for (uint32_t k = 1; k < p->source.n; k++) p->source.at[k].text = "", p->source.at[k].bytes = 0;
    p->object.n = 1;
    argv[i] = arena_printf(a, "corpus%d", i);
    if (plan_save(p, argv[i])) return 74;
  }
  int64_t shape[] = {1, 2, 2, 8};
  Tensor t[] = {{.name = "tokens", .dtype = DT_i32, .ndim = 4, .shape = shape, .data = NEW_N(a, int32_t, 32)},
                {.name = "labels", .dtype = DT_i32, .ndim = 4, .shape = shape, .data = NEW_N(a, int32_t, 32)}};
  return safetensors_write(a, "batches", t, 2, 0, 0, 0);
}

int main(int argc, char **argv) {
  char folder[64];
  Arena *a = arena_create();
  if (argc < 4) return 64;
  for (int i = 3; i < argc; i++) {
    char *path = realpath(argv[i], 0);
    if (!path) return 66;
    argv[i] = arena_strndup(a, path, strlen(path));
    free(path);
  }
  folder_enter(folder);
  int bad = prepare(a, argc, argv);
  if (!bad) bad = fuzz_words(argc, argv, words, COUNT(words), check);
  folder_leave(folder);
  arena_destroy(a);
  return bad;
}
