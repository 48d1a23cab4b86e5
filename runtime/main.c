// main.c -- mtrun: reads the command line, opens a plan, its device, its data and its state, and makes the steps.
#include "runtime/ckpt.h"
#include "runtime/compare.h"
#include "runtime/cost.h"
#include "runtime/feed.h"
#include "runtime/file.h"
#include "runtime/json_text.h"
#include "runtime/launch.h"
#include "runtime/metrics.h"
#include "runtime/nonfinite.h"
#include "runtime/options.h"
#include "runtime/replicas.h"
#include "runtime/sample.h"
#include "runtime/state.h"
#include "runtime/terms.h"
#include "runtime/trace.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

// ---- the command line --------------------------------------------------------------------------------------------
typedef struct {
  const char *data, *batches, *split, *init, *save, *resume, *grads, *final, *log_json, *trace, *profile_json, *sample;
  const char *device, *calibrate, *launcher, *ranks_as, *link;
  int64_t ranks, threads, steps, eval_every, eval_samples, save_every, keep, log_every, tokens, seed;
  int64_t max_skips, check_replicas;
  const char *log_params;
  double tolerance, temperature, timeout;
  bool compare, eval_only, profile, version;
} Settings;

static const char launcher_help[] = "who started the ranks, or auto: as the environment says. WORD is one of"
#define LAUNCHER(word, ...) " " #word
#include "runtime/launch.def"
#undef LAUNCHER
  "; none: mtrun starts them itself";

static const Option rows[] = {
  OPTION_FROM(Settings, ranks, 'n', 0, "N", "ranks; the plan's when not given", 1),
  OPTION(Settings, launcher,     0,  "launcher",    "WORD", launcher_help),
  OPTION_FROM(Settings, threads, 0, "threads", "T",
         "threads that compute; the CPUs of this process when not given", 1),
  OPTION(Settings, ranks_as,     0,  "ranks",       "AS",
         "processes; or threads of one, for debuggers and sanitizers: the same bits"),
  OPTION(Settings, timeout,      0,  "timeout",     "SECONDS",
         "how long a rank waits for a silent one before all end (76);\n"
         "more than the longest that one works alone: saves a checkpoint"),
  OPTION(Settings, link,         0,  "link",        "RATE,LATENCY",
         "a test aid: each collective takes at least as long as over such a link (1GB/s,1ms),\n"
         "waiting, not computing"),
  OPTION(Settings, device,       0,  "device",      "KIND",   "cpu"),
  OPTION(Settings, data,         0,  "data",        "PREFIX", "token files: PREFIX, or \"0.3 A 0.7 B\""),
  OPTION(Settings, batches,      0,  "batches",     "FILE",
         "inputs by name from a safetensors file, [steps, microbatches, batch, …]"),
  OPTION(Settings, split,        0,  "split",       "T,V,E",
         "shares of the data to train on, hold out, leave; 990,10,0 with --eval-every, else all"),
  OPTION(Settings, init,         0,  "init",        "PATH",
         "parameters from a safetensors file or a folder; drawn from the seed when not given"),
  OPTION_FROM(Settings, steps, 0, "steps", "N", "steps in all; the plan's when not given", 0),
  OPTION_FROM(Settings, eval_every, 0, "eval-every", "K", "the held-out loss after every K steps and at the end", 0),
  OPTION_FROM(Settings, eval_samples, 0, "eval-samples", "N",
         "held-out samples to use; all of them, at most those of 100 steps, when not given", 1),
  OPTION(Settings, eval_only,    0,  "eval-only",   0,
         "no steps: the held-out loss of --init or --resume as it is; nothing is written"),
  OPTION(Settings, save,         0,  "save",        "DIR",
         "checkpoints: at the end, when stopped, and as --save-every says"),
  OPTION_FROM(Settings, save_every, 0, "save-every", "K", "a checkpoint after every K steps", 0),
  OPTION_FROM(Settings, keep, 0, "keep", "N", "how many checkpoints stay; all when not given", 0),
  OPTION(Settings, resume,       0,  "resume",      "auto",
         "go on from the newest whole checkpoint in --save DIR, if there is one; or from the given one"),
  OPTION(Settings, grads,        0,  "grads",       "FILE",   "the gradients of the run's first step, before clipping"),
  OPTION(Settings, final,        0,  "final",       "FILE",   "the parameters after the last step"),
  OPTION(Settings, log_json,     0,  "log-json",    "FILE",
         "one JSON object for each step; - is standard output;\n"
         "resumed, the file goes on after the checkpoint's step"),
  OPTION_FROM(Settings, log_every, 0, "log-every", "K", "steps from one printed line to the next", 1),
  OPTION(Settings, log_params,   0,  "log-params",  "[=K]",
         "in the JSON log, of every K-th step, the norm of each parameter and of\n"
         "its gradient before clipping; K is 1 when not given"),
  OPTION_FROM(Settings, max_skips, 0, "max-skips", "N",
         "stop after N steps in a row without an update; 0: never. Those\n"
         "that a lower loss scale may answer do not count", 0),
  OPTION_FROM(Settings, check_replicas, 0, "check-replicas", "K",
         "after every K steps, compare what several ranks hold the same of; a\ndifference ends the run (70)", 0),
  OPTION(Settings, trace,        0,  "trace",       "FILE",
         "a Chrome trace of the steps (Perfetto, chrome://tracing), of all ranks"),
  OPTION(Settings, profile,      0,  "profile",     0,
         "time by kernel after the first step, with model line, GFLOP/s and GB/s"),
  OPTION(Settings, profile_json, 0,  "profile-json", "FILE",  "the same as JSON, whole"),
  OPTION(Settings, compare,      0,  "compare",     0,
         "two plans, as of two meshes or precisions, from the same state and samples: the first\n"
         "output, gradient or parameter that differs; exit code 0: none does, 1: one does"),
  OPTION(Settings, tolerance,    0,  "tolerance",   "X",
         "of --compare: how far apart numbers may be, relative to their size"),
  OPTION(Settings, calibrate,    0,  "calibrate",   "[=again]",
         "measure this machine once, without a plan: then runs say what share of its rates they reach"),
  OPTION(Settings, sample,       0,  "sample",      "TEXT",
         "print TEXT and what the model makes of it, byte by byte"),
  OPTION_FROM(Settings, tokens, 0, "tokens", "N", "bytes to generate", 0),
  OPTION(Settings, temperature,  0,  "temperature", "X",      "of the choice; 0 takes the likeliest"),
  OPTION_FROM(Settings, seed, 0, "seed", "S", "of the choice", 0),
  OPTION(Settings, version,      0,  "version",     0,        "print the version"),
};

static const Command command = {
  "mtrun", "PLAN", "Runs a plan that mtc compiled: trains, evaluates, saves, samples.", rows, COUNT(rows),
  "  mtrun gpt2.plan --data book --eval-every 100                    train, and look at what was held out\n"
  "  mtrun gpt2.plan --data book --split 990,10,0 --save ckpt --save-every 100 --resume auto\n"
  "                                                                  save; run again, it goes on from there\n"
  "  mtrun gpt2.plan --data book --save ckpt --resume auto --eval-only\n"
  "                                                                  the held-out loss of the newest checkpoint\n"
  "  mtrun gpt2.plan --init model.safetensors --sample 'Once'        let the model write\n"
  "  mtrun gpt2.plan --data book --steps 20 --profile                where the time goes, kernel by kernel\n"
  "  mtrun --compare a.plan b.plan --data book --steps 3             what differs first, on two meshes or in two formats\n"
  "  mtrun --calibrate                                               what this machine reaches, for --profile\n\n"
  "SIGINT and SIGTERM stop a run after the step it is in, and save; SIGUSR2 saves.\n"
  "Plans come from mtc compile, data from mtdata prepare."};

static Status check_threads(const Settings *s) {
  return s->threads > 4096 ? fail(EXIT_USAGE, "--threads %lld: at most 4096", (long long)s->threads) : 0;
}

static Status check_eval_only(const Settings *s, const Words *given) {
  static const Str fine[] = {"-n", "--launcher", "--ranks", "--timeout", "--link", "--threads", "--device", "--data",
                             "--split", "--eval-samples", "--init", "--resume", "--save", "--sample", "--tokens", "--temperature",
                             "--seed"};
  TRY(options_beside(given, "--eval-only", fine, COUNT(fine)));
  if (!s->data) return fail(EXIT_USAGE, "--eval-only needs --data, of which it holds a part out");
  if (!s->init && !s->resume) return fail(EXIT_USAGE, "--eval-only needs parameters: --init PATH or --resume");
  if (s->save && (!s->resume || strcmp(s->resume, "auto")))
    return fail(EXIT_USAGE, "--save has no meaning beside --eval-only without --resume auto, which looks there");
  return 0;
}

static Status read_log_params(const Settings *s, int64_t *every) {
  *every = 0;
  if (!s->log_params) return 0;
  *every = 1;
  if (*s->log_params) TRY(options_int("--log-params", s->log_params, every));
  if (*every < 1)
    return fail(EXIT_USAGE, "--log-params=%s: K is a number of steps, at least 1", s->log_params);
  return s->log_json ? 0 : fail(EXIT_USAGE, "--log-params writes to the JSON log: it needs --log-json FILE");
}

static Status check_settings(const Settings *s, const Words *given) {
  TRY(check_threads(s));
  if (strcmp(s->ranks_as, "processes") && strcmp(s->ranks_as, "threads"))
    return fail(EXIT_USAGE, "--ranks is processes or threads, not '%s'", s->ranks_as);
  if (s->link) TRY(link_read(s->link, &(Link){0, 0}));
  if (!(s->timeout > 0)) return fail(EXIT_USAGE, "--timeout %g: more than 0 seconds", s->timeout);
  if (s->eval_only) TRY(check_eval_only(s, given));
  if (s->data && s->batches) return fail(EXIT_USAGE, "--data and --batches exclude each other");
  if (!s->data && !s->batches && !s->sample)
    return fail(EXIT_USAGE, "nothing to do: give --data or --batches to train, or --sample");
  if (s->eval_every && !s->data)
    return fail(EXIT_USAGE, "--eval-every needs --data, of which it holds a part out");
  if (s->split && !s->data) return fail(EXIT_USAGE, "--split divides what --data names");
  int64_t k;
  TRY(read_log_params(s, &k));
  if (s->save_every && !s->save) return fail(EXIT_USAGE, "--save-every needs --save DIR");
  if (s->resume && !strcmp(s->resume, "auto") && !s->save)
    return fail(EXIT_USAGE, "--resume auto looks in --save DIR");
  if (s->resume && s->init && strcmp(s->resume, "auto"))
    return fail(EXIT_USAGE, "--init and --resume both give the parameters");
  if (s->temperature < 0) return fail(EXIT_USAGE, "--temperature must not be negative");
  if (s->device && !strcmp(s->device, "cuda"))
    return fail(EXIT_UNAVAILABLE, "not yet: --device cuda; this build runs on cpu");
  if (s->device && strcmp(s->device, "cpu"))
    return fail(EXIT_USAGE, "--device is cpu or cuda, not '%s'", s->device);
  return 0;
}

typedef struct { Str option, path; } Named;

// Nothing is written over what the run reads, or twice.
static Status check_apart(Arena *a, const Named *written, size_t n, Str plan, const Settings *s) {
  Named read[] = {{"the plan", plan},
                  {"--data", s->data ? arena_printf(a, "%s.bin", s->data) : 0},
                  {"--data", s->data ? arena_printf(a, "%s.idx", s->data) : 0},
                  {"--batches", s->batches},
                  {"--init", s->init},
                  {"--init", s->init ? arena_printf(a, "%s/model.safetensors", s->init) : 0}};
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; written[i].path && k < COUNT(read); k++)
      if (read[k].path && file_same(written[i].path, read[k].path))
        return fail(EXIT_USAGE, "%s %s would overwrite %s", written[i].option, written[i].path,
                    k ? arena_printf(a, "what %s reads", read[k].option) : read[k].option);
    for (size_t k = 0; written[i].path && k < i; k++)
      if (written[k].path && file_same(written[i].path, written[k].path))
        return fail(EXIT_USAGE, "%s and %s write the same file, %s", written[k].option, written[i].option, written[i].path);
  }
  return 0;
}

// What is written at the end is known to have a place at the start.
static Status check_targets(Arena *a, Str plan, const Settings *s) {
  bool log = s->log_json && strcmp(s->log_json, "-");
  Named to[] = {{"--final", s->final}, {"--grads", s->grads}, {"--trace", s->trace}, {"--profile-json", s->profile_json},
                {"--log-json", log ? s->log_json : 0}};
  for (size_t i = 0; i + 1 < COUNT(to); i++)               // the log may go to a pipe
    if (to[i].path) TRY(file_target(to[i].path));
  TRY(check_apart(a, to, COUNT(to), plan, s));
  if (s->save && !s->eval_only && !access(s->save, F_OK) && !file_is_folder(s->save))
    return fail(EXIT_CREATE, "--save %s: not a folder", s->save);
  char latest[PATH_MAX];
  if (s->save && !s->resume && !s->eval_only && snprintf(latest, sizeof latest, "%s/latest", s->save) < PATH_MAX &&
      !access(latest, F_OK))
    return fail(EXIT_CREATE, "%s holds checkpoints of a run: --resume auto goes on with it, another folder begins anew",
                s->save);
  return s->save && !s->eval_only && !access(s->save, F_OK) && access(s->save, W_OK | X_OK) ? file_fail(errno, "saving in", s->save) : 0;
}

static Status check_ranks(const Plan *p, const Settings *s) {
  int64_t ranks = plan_ranks(p);
  Str mesh = launch_mesh(p, p->arena);
  if (s->ranks && s->ranks != ranks)
    return fail(EXIT_USAGE, "-n %lld: the plan is for %lld rank%s%s%s%s; mtc compile --mesh makes one for another number",
                (long long)s->ranks, (long long)ranks, ranks == 1 ? "" : "s", *mesh ? " (" : "", mesh, *mesh ? ")" : "");
  if (ranks > 1 && s->sample)
    return fail(EXIT_UNAVAILABLE, "--sample: the plan is for %lld ranks (%s); compile one for a single rank and give it "
                "the checkpoint", (long long)ranks, mesh);
  return 0;
}

// ---- signals -----------------------------------------------------------------------------------------------------
// A handler may only set a flag; this is the one place that has no argument to reach it by.
static volatile sig_atomic_t stop_asked, save_asked;

static void on_stop(int sig) {
  static const char said[] = "\nmtrun: stopping after this step; asked again, at once\n";
  if (stop_asked) _exit(128 + sig);                        // asked twice: at once
  stop_asked = 1;
  if (write(2, said, sizeof said - 1) < 0) return;         // nobody listens: it stops all the same
}
static void on_save(int sig) { (void)sig, save_asked = 1; }

static void leave_signals(void) {              // rank 0 decides for all when to stop and when to save
  signal(SIGTERM, SIG_IGN), signal(SIGINT, SIG_IGN), signal(SIGUSR1, SIG_IGN), signal(SIGUSR2, SIG_IGN);
}

static void catch_signals(void) {
  struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART},
                   save = {.sa_handler = on_save, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &stop, 0), sigaction(SIGINT, &stop, 0), sigaction(SIGUSR1, &stop, 0),
      sigaction(SIGUSR2, &save, 0);
  signal(SIGPIPE, SIG_IGN);                                // nobody reads what is printed: the run goes on
}

// ---- a run -------------------------------------------------------------------------------------------------------
typedef struct {
  Arena *arena;
  Settings set;
  const char *path;                          // of the plan
  Plan *plan;
  Launcher launch;
  bool joins;                                // the others are told when it ends
  Comm *comm;
  Notes notes;
  FILE *out;                                 // standard output, on rank 0
  Dev *dev;
  Exec exec;
  const Rates *rates;                        // of this machine; 0: not known
  State state;
  Str from;                                  // where the parameters are from: files by their hash
  Feed feed;
  Metrics metrics;
  int64_t log_params;                        // steps from one with the norms of parameters to the next, 0: never
  Norms norms[2]; double *norm[2];           // of parameters, of gradients
  int64_t total, saved;                      // steps in all; step of the newest checkpoint, -1: none
  StepSpans spans;
  double seconds;                            // of the measured steps and evaluations
  int64_t timed;                             // measured steps
  StepResult last;                           // of the last step, once there is one
} Run;

static Str count(Run *r, int64_t n) { return arena_printf(r->arena, "%lld", (long long)n); }
static Str whether(bool given) { return given ? "it" : "it not"; }

// What the ranks meet for; where rank 0 writes a file to is its own affair.
static Status same_options(Run *r) {
  const Settings *s = &r->set;
  const Term t[] = {
    {"--eval-only", whether(s->eval_only), 0},
    {"--steps", count(r, r->total), 0},
    {"--eval-every", count(r, s->eval_every), 0},
    {"--eval-samples", count(r, s->eval_samples), 0},
    {"--max-skips", count(r, s->max_skips), 0},
    {"--check-replicas", count(r, s->check_replicas), 0},
    {"--save", whether(s->save), 0},
    {"--save-every", count(r, s->save_every), 0},
    {"--log-params", count(r, r->log_params), 0},
    {"--grads", whether(s->grads), 0},
    {"--final", whether(s->final), 0},
    {"--trace", whether(s->trace), 0},
  };
  return terms_check(&r->notes, t, COUNT(t));
}

static Status load_init(Run *r) {
  Safetensors file;
  TRY(safetensors_open(r->arena, r->set.init, &file));
  uint64_t hash = 0;
  Status e = state_load(&r->state, VIEW_params, &file, false);
  if (!e) e = safetensors_hash(&file, &hash);
  r->from = arena_printf(r->arena, "the parameters %016llx of --init", (unsigned long long)hash);
  safetensors_close(&file);
  return e;
}

static Status take_checkpoint(Run *r, const Ckpt *c) {
  const CkptState *s = &c->state;
  if (s->seed != r->plan->seed)
    return fail(EXIT_INPUT, "%s was made with seed %lld, the plan has %lld", c->path, (long long)s->seed,
                (long long)r->plan->seed);
  if (r->feed.plan) {
    Str rule = feed_rule(r->arena, &r->feed);
    DataChange change = feed_change(&r->feed, s->data_rule);
    if (change == DATA_reordered && !r->set.eval_only)
      return fail(EXIT_INPUT,
                  "%s was made with the data in another order:\n  then %s\n  now  %s\n"
                  "  another number of steps needs other epochs of the data, which are shuffled together:\n"
                  "  keep --steps as it was, or begin anew from its parameters with --init %s",
                  c->path, s->data_rule, rule, c->path);
    if (change == DATA_other && r->set.eval_only)
      return fail(EXIT_INPUT, "%s was made with other data:\n  then %s\n  now  %s\n"
                  "  what is held out now it may have been trained on; if that is meant, give it by --init %s",
                  c->path, s->data_rule, rule, c->path);
    if (change == DATA_other)
      return fail(EXIT_INPUT,
                  "%s was made with other data:\n  then %s\n  now  %s\n"
                  "  the split (--split, --eval-every) and the samples of a step (global_batch) are part of it:\n"
                  "  keep them as they were, or begin anew from its parameters with --init %s",
                  c->path, s->data_rule, rule, c->path);
    int64_t seen;
    if (!mul_ok(s->step, r->plan->global_batch, &seen) || s->samples != seen)
      return fail(EXIT_INPUT, "%s has seen %lld samples in %lld steps, the plan takes %lld a step", c->path,
                  (long long)s->samples, (long long)s->step, (long long)r->plan->global_batch);
  }
  TRY(state_load(&r->state, VIEW_params, &c->model, true));
  TRY(state_load(&r->state, VIEW_moments, &c->optimizer, true));
  r->exec.step = s->step, r->exec.update = s->update, r->saved = s->step;
  r->from = arena_printf(r->arena, "checkpoint %016llx", (unsigned long long)c->hash);
  if (r->exec.scale.kind == SCALE_dynamic && s->loss_scale > 0)          // else it was not scaled: from the initial one
    r->exec.scale.value = s->loss_scale, r->exec.scale.good = s->scale_good, r->exec.scale.bad = s->scale_bad;
  return 0;
}

static Status load_checkpoint(Run *r, bool *found) {
  Ckpt c;
  *found = true;
  if (!strcmp(r->set.resume, "auto")) TRY(ckpt_resume(r->arena, r->set.save, &c, found));
  else TRY(ckpt_open(r->arena, r->set.resume, &c));
  if (!*found) return 0;
  Status e = take_checkpoint(r, &c);
  ckpt_close(&c);
  return e;
}

// Each rank reads for itself: all must have found the same.
static Status same_start(Run *r) {
  uint64_t data = 0;
  if (r->feed.plan && comm_ranks(r->comm) > 1) TRY(feed_hash(&r->feed, &data));
  const Term t[] = {
    {"data", r->feed.plan ? feed_rule(r->arena, &r->feed) : "none", 0},
    {"what the data's files hold", arena_printf(r->arena, "%016llx", (unsigned long long)data), 0},
    {"where they begin", arena_printf(r->arena, "step %lld with %s", (long long)r->exec.step, r->from),
     r->set.resume ? "checkpoints must lie where all ranks can read them" : 0},
  };
  return terms_check(&r->notes, t, COUNT(t));
}

static Status open_state(Run *r) {
  bool found = false;
  state_init(r->arena, r->plan, r->dev, &r->state);
  r->saved = -1;
  if (r->set.resume) TRY(load_checkpoint(r, &found));
  if (!found && r->set.init) TRY(load_init(r));            // all parameters or none: nothing has to be drawn before
  if (!found && !r->set.init && r->set.eval_only)
    return fail(EXIT_MISSING, "%s: no checkpoint to evaluate", r->set.save);
  if (!found && !r->set.init) state_draw(&r->state);
  if (!r->from) r->from = "parameters drawn from the seed";
  TRY(same_start(r));
  return exec_refresh(&r->exec);
}

// What one rank does for all, with everybody's memory, while nothing moves.
static Status by_first(Run *r, Status (*act)(Run *r)) {
  TRY(comm_hold(r->comm));
  if (!comm_rank(r->comm)) TRY(act(r));
  return comm_release(r->comm);
}

static Status save_all(Run *r) {
  Arena *a = arena_create();
  const Tensors *model = &r->state.view[VIEW_params], *optimizer = &r->state.view[VIEW_moments];
  CkptState s = {.step = r->exec.step,
                 .update = r->exec.update,
                 .samples = r->exec.step * r->plan->global_batch,
                 .seed = r->plan->seed,
                 .loss_scale = r->exec.scale.kind == SCALE_none ? 0 : r->exec.scale.value,
                 .scale_good = r->exec.scale.good,
                 .scale_bad = r->exec.scale.bad,
                 .data_rule = feed_rule(a, &r->feed)};
  TensorSource from = state_source(&r->state);
  Text t;
  text_init(&t, a);
  text_puts(&t, "{\"plan\":"), text_json(&t, r->plan->hash), text_puts(&t, ",\"mtrun\":"),
      text_json(&t, MT_VERSION);
  text_printf(&t, ",\"ranks\":%lld}", (long long)comm_ranks(r->comm));
  Status e = ckpt_save(a, r->set.save, &s, model->tensor.at, model->tensor.n, optimizer->tensor.at,
                       optimizer->tensor.n, &from, t.s, r->set.keep);
  arena_destroy(a);
  return e;
}

static Status save(Run *r) {
  TRY(by_first(r, save_all));
  r->saved = r->exec.step;
  return 0;
}

// Of the gradients before they are clipped and of the parameters that they are gradients of.
static Status find_norms(Run *r) {
  static const struct { Str key; View view; } what[] = {{"param_norm", VIEW_params}, {"grad_norm", VIEW_grads}};
  for (size_t i = 0; i < COUNT(what); i++) {
    const Tensors *t = &r->state.view[what[i].view];
    if (!r->norm[i]) r->norm[i] = NEW_N(r->arena, double, t->tensor.n + 1);
    r->norms[i] = (Norms){what[i].key, t->tensor.at, t->tensor.n, r->norm[i]};
    TRY(state_norms(&r->state, what[i].view, r->norm[i]));
  }
  return 0;
}

static Status write_grads(Run *r) { return state_write(&r->state, VIEW_grads, r->set.grads); }
static Status write_final(Run *r) { return state_write(&r->state, VIEW_params, r->set.final); }

enum { ASKED_stop = 1, ASKED_save = 2 };
static Status asked(Run *r, int64_t *what) {
  bool first = !comm_rank(r->comm);
  *what = (first && stop_asked ? ASKED_stop : 0) | (first && save_asked ? ASKED_save : 0);
  return comm_agree(r->comm, what);
}

static Status evaluate(Run *r, StepResult *out) {
  const Plan *p = r->plan;
  int64_t micro = p->global_batch / p->microbatches, have = feed_valid(&r->feed);
  int64_t want = r->set.eval_samples ? r->set.eval_samples : 100 * p->global_batch;
  r->feed.valid = true;
  Status e = exec_eval(&r->exec, (MIN(have, want) + micro - 1) / micro, out);
  r->feed.valid = false;
  return e;
}

// Why the step just made had no update, and where it comes from.
static Status find_why(Run *r, const StepResult *s, Str *why, Text *where) {
  text_init(where, r->arena), text_puts(where, "");
  *why = s->empty ? "no label counts: the loss has a denominator of 0" : "the gradient is not finite";
  return s->empty ? 0 : nonfinite_find(&r->exec, s, &r->notes, where);
}

static Status stop_stuck(Run *r, const StepResult *s) {
  Str why;
  Text where;
  TRY(find_why(r, s, &why, &where));
  if (comm_rank(r->comm)) return EXIT_INPUT;               // said once
  return fail(EXIT_INPUT, "step %lld: no update in %lld steps in a row (%s), training stops%s", (long long)s->step,
              (long long)r->set.max_skips, why, where.s);
}

// A run that comes to its end while steps make no update has not trained to there. Makes its last step once more.
static Status warn_stuck(Run *r) {
  long long n = r->exec.in_a_row;
  Str why;
  Text where;
  if (!n) return 0;
  TRY(find_why(r, &r->last, &why, &where));
  if (comm_rank(r->comm)) return 0;
  if (n > 1) return fail(0, "warning: the last %lld steps made no update (%s)%s", n, why, where.s);
  return fail(0, "warning: the last step made no update (%s)%s", why, where.s);
}

static Status step(Run *r, int64_t *what) {
  StepResult result, valid;
  Exec *x = &r->exec;
  double begin = now_seconds();
  bool first = x->step == r->metrics.options.first;
  r->feed.step = x->step;
  TRY(exec_backward(x, &result));
  r->state.loss_scale = result.loss_scale;
  if (first && r->set.grads) TRY(by_first(r, write_grads));
  bool norms = r->log_params && x->step % r->log_params == 0;
  if (norms) TRY(by_first(r, find_norms));
  TRY(exec_update(x, &result));
  r->last = result;
  r->seconds += result.seconds, r->timed++;
  if (first && x->step < r->total) dev_time_reset(r->dev), r->seconds = 0, r->timed = 0;   // it touched memory first
  if (r->set.trace) vec_push(r->arena, &r->spans, (StepSpan){result.step, begin, now_seconds()});
  bool eval = r->set.eval_every && (x->step % r->set.eval_every == 0 || x->step == r->total);
  if (eval) {
    TRY(evaluate(r, &valid));
    r->seconds += valid.seconds;
  }
  TRY(metrics_step(&r->metrics, &result, eval ? &valid : 0, r->norms, norms ? COUNT(r->norms) : 0));
  if (exec_stuck(x, r->set.max_skips)) return stop_stuck(r, &result);
  if (r->set.check_replicas && x->step % r->set.check_replicas == 0) TRY(replicas_check(x, &r->notes));
  bool due = r->set.save_every && x->step % r->set.save_every == 0;
  TRY(asked(r, what));
  if (r->set.save && (due || *what & ASKED_save)) TRY(save(r));
  if (*what & ASKED_save && !comm_rank(r->comm)) save_asked = 0;
  if (first && r->set.profile && x->step < r->total) dev_time_reset(r->dev), r->seconds = 0; // it had to warm up
  return 0;
}

static Status train(Run *r) {
  MetricsOptions o = {r->set.log_json, r->exec.step > 0, r->set.log_every, r->exec.step, r->total, r->out};
  TRY(metrics_open(&r->metrics, &r->exec, &o));
  if (r->set.save && !comm_rank(r->comm)) TRY(folder_make(r->set.save));          // not only when the steps are done
  dev_feed(r->dev, feed_input, &r->feed);
  int64_t what;
  TRY(asked(r, &what));
  while (r->exec.step < r->total && !(what & ASKED_stop)) TRY(step(r, &what));
  if (r->set.save && r->saved != r->exec.step) TRY(save(r));
  TRY(metrics_close(&r->metrics));
  if (r->exec.step < r->total && comm_rank(r->comm)) return EXIT_AGAIN;  // said once
  if (r->exec.step < r->total)
    return fail(EXIT_AGAIN, "stopped after step %lld of %lld%s", (long long)r->exec.step, (long long)r->total,
                r->set.save ? ", saved: run it again with --resume auto" : "; nothing is saved without --save DIR");
  if (r->set.final) TRY(by_first(r, write_final));
  return warn_stuck(r);
}

static Status only_evaluate(Run *r) {
  StepResult valid;
  dev_feed(r->dev, feed_input, &r->feed);
  TRY(evaluate(r, &valid));
  eval_print(r->out, &r->exec, &valid);
  return 0;
}

// e: how the steps ended. Where all ranks have come to the end together, the trace is of all.
static Status measurements(Run *r, Status e) {
  if (r->set.profile) profile_print(r->out, r->plan, r->dev, r->seconds, r->rates);
  if (r->set.profile_json) TRY(profile_write(r->set.profile_json, r->plan, r->dev, r->seconds, r->timed,
                                             r->rates));
  bool all = !e || e == EXIT_AGAIN;
  if (!r->set.trace || (!all && comm_rank(r->comm))) return 0;
  return trace_write(r->set.trace, r->plan, r->dev, &r->spans, all ? &r->notes : 0);
}

static void find_rates(Run *r) {
  Rates *here = NEW(r->arena, Rates);
  if (rates_find(r->arena, work_threads(dev_work(r->dev)), dev_libraries(r->dev), here)) r->rates = here;
}

// Steps beyond the plan's have the rate that its schedule ends with, which may be none at all.
static Str steps_about(Run *r) {
  const Plan *p = r->plan;
  Text t;
  if (!r->feed.plan || r->set.eval_only) return 0;
  text_init(&t, r->arena);
  text_printf(&t, "%lld to %lld", (long long)r->exec.step, (long long)r->total);
  if (r->exec.step >= r->total) text_puts(&t, ": nothing is left to do, --steps N with a larger N goes on");
  else if (r->total > p->steps && r->exec.schedule.kind != SCHEDULE_constant)
    text_printf(&t, "; the plan's schedule ends at %lld, then the learning rate is %g\n%*s"
                    "mtc compile --set train.steps=%lld makes a plan with a longer one",
                (long long)p->steps, schedule_lr(&r->exec.schedule, p->steps + 1), 19, "", (long long)r->total);
  return t.s;
}

static Str ranks_about(Run *r) {
  if (r->launch.kind == LAUNCH_none) return 0;
  return arena_printf(r->arena, "%lld, rank %lld by %s", (long long)r->launch.size, (long long)r->launch.rank,
                      launch_name(&r->launch));
}

static void start_block(Run *r) {
  Arena *a = r->arena;
  const Settings *s = &r->set;
  const char *from = r->exec.step ? arena_printf(a, "checkpoint, step %lld", (long long)r->exec.step)
                     : s->init    ? s->init
                                  : arena_printf(a, "seed %lld", (long long)r->plan->seed);
  About about[] = {
    {"ranks", ranks_about(r)},
    {"device", dev_name(r->dev)},
    {"link", s->link ? arena_printf(a, "%s: collectives wait, as a test", s->link) : 0},
    {"estimate", r->rates ? step_estimate(a, r->plan, r->rates) : 0},
    {"data", r->feed.plan ? feed_about(a, &r->feed) : 0},
    {"parameters from", from},
    {"steps", steps_about(r)},
    {"checkpoints", s->eval_only ? 0 : s->save}, {"log", s->log_json},
  };
  start_print(s->log_json && !strcmp(s->log_json, "-") ? stderr : r->out, r->plan,
              dev_rooms(r->dev), MT_VERSION, about, COUNT(about));
}

// What all ranks say and measure, rank 0 does, which decides for all when to stop and when to save.
static Status be_rank(Run *r) {
  r->out = stdout;
  if (!comm_rank(r->comm)) return 0;
  if (!strcmp(r->set.ranks_as, "processes")) leave_signals();
  r->set.log_json = r->set.profile_json = 0, r->set.profile = false;
  r->out = fopen("/dev/null", "w");
  return r->out ? 0 : fail(EXIT_IO, "/dev/null: %s", strerror(errno));
}

// The way: device, data, state, steps, sample.
static Status run(Run *r) {
  Settings *s = &r->set;
  bool training = s->data || s->batches;
  TRY(read_log_params(s, &r->log_params));
  TRY(be_rank(r));
  r->total = s->steps >= 0 ? s->steps : r->plan->steps;
  notes_open(r->arena, r->plan, r->comm, dev_bytes(r->plan, 0), &r->notes);
  TRY(same_options(r));
  if (training && !r->plan->cell.n) return fail(EXIT_INPUT, "%s has no training step", r->path);
  if (training)
    TRY(feed_open(r->arena, r->plan,
                  &(FeedOptions){s->data, s->batches, s->split, r->total, !s->eval_only,
                                 s->eval_every || s->eval_only, comm_rank(r->comm)},
                  &r->feed));
  int threads = s->threads ? (int)s->threads : (int)MAX(1, work_cpus() / comm_here(r->comm));
  DevOptions o = {threads, s->profile || s->profile_json, s->trace ? TRACE_SPANS : 0, r->comm};
  TRY(dev_open(r->arena, r->plan, o, &r->dev));
  TRY(exec_init(&r->exec, r->plan, r->dev));
  if (training && !s->eval_only) TRY(dev_touch(r->dev));
  TRY(open_state(r));
  if (training) find_rates(r);
  start_block(r);
  if (s->eval_only) TRY(only_evaluate(r));
  else if (training) {
    Status e = train(r), again = measurements(r, e);
    if (e || again) return e ? e : again;
  }
  return s->sample ? sample_print(r->arena, &r->exec,
                                  &(SampleRule){s->sample, s->tokens, s->temperature, s->seed}, r->out)
                   : 0;
}

// One rank's life: in a process of its own, or beside the others in one.
static Status rank_main(void *with, Comm *c) {
  const Run *all = with;
  Run r = {.arena = arena_create(), .set = all->set, .path = all->path, .plan = all->plan,
           .launch = all->launch, .comm = c};
  Status e = run(&r);
  if (metrics_close(&r.metrics) && !e) e = EXIT_IO;
  dev_close(r.dev);
  feed_close(&r.feed);
  if (r.out && r.out != stdout) fclose(r.out);
  arena_destroy(r.arena);
  return e;
}

static Status run_plan(Run *r, const char *path) {
  r->path = path;
  TRY(plan_load(r->arena, path, &r->plan));
  TRY(check_ranks(r->plan, &r->set));
  TRY(launch_find(r->set.launcher, &r->launch));
  TRY(launch_fits(&r->launch, r->plan));
  bool threads = !strcmp(r->set.ranks_as, "threads");
  size_t bytes = dev_bytes(r->plan, 0) + notes_bytes(r->plan);
  CommOptions o = {threads ? RANKS_threads : RANKS_processes, r->set.timeout, {0, 0}};
  if (r->set.link) TRY(link_read(r->set.link, &o.link));
  if (r->launch.size == 1) return comm_launch(r->arena, r->plan, bytes, o, rank_main, r);
  if (threads)
    return fail(EXIT_USAGE, "--ranks=threads: %s has started the ranks, as processes", launch_name(&r->launch));
  char *program;
  size_t n;
  TRY(file_read(r->arena, "/proc/self/exe", SIZE_MAX, &program, &n));
  Str build = arena_printf(r->arena, "%s %016llx", MT_VERSION, (unsigned long long)hash_bytes(program, n, 0));
  r->joins = true;
  return comm_join(r->arena, r->plan, bytes, o, &r->launch, build, rank_main, r);
}

// A rank that ends before it joins.
static void forsake(Run *r, Status e) {
  if (r->joins || r->set.calibrate || r->set.compare) return;
  if (r->launch.size || !launch_find(r->set.launcher, &r->launch)) comm_forsake(r->arena, &r->launch, r->set.timeout, e);
}

// Without a plan: the rates of this machine, measured when they are not known or are to be measured again.
static Status calibrate(Arena *a, const Settings *s, const Words *words, const Words *given) {
  int threads = s->threads ? (int)s->threads : work_cpus();
  Rates r;
  static const Str fine[] = {"--threads"};
  TRY(options_beside(given, "--calibrate", fine, COUNT(fine)));
  TRY(check_threads(s));
  if (words->n)
    return fail(EXIT_USAGE, "--calibrate measures this machine, and takes no plan%s", options_meant(a, words));
  if (*s->calibrate && strcmp(s->calibrate, "again"))
    return fail(EXIT_USAGE, "--calibrate or --calibrate=again, not --calibrate=%s", s->calibrate);
  bool some = !*s->calibrate && rates_find(a, threads, "", &r);
  if (some && rates_find(a, threads, rates_libraries(a, threads), &r)) {
    printf("measured before; mtrun --calibrate=again measures anew\n");
    rates_print(stdout, &r);
    return 0;
  }
  TRY(rates_target(a));
  fprintf(stderr, "%s: measuring, for some seconds; other programs that compute disturb it\n", program_name);
  TRY(rates_measure(a, threads, &r));
  rates_print(stdout, &r);
  return rates_keep(a, &r);
}

static Status compare(Arena *a, const Settings *s, const Words *words, const Words *given) {
  static const Str fine[] = {"--tolerance", "--threads", "--data", "--batches", "--split", "--init", "--steps", "--timeout",
                             "--ranks"};
  TRY(options_beside(given, "--compare", fine, COUNT(fine)));
  if (words->n != 2)
    return fail(EXIT_USAGE, "--compare takes two plans, %u %s given", words->n, words->n == 1 ? "is" : "are");
  if (!(s->tolerance >= 0)) return fail(EXIT_USAGE, "--tolerance must not be negative");
  if (!s->data == !s->batches) return fail(EXIT_USAGE, "--compare needs --data or --batches, which both plans train on");
  return compare_plans(a, (const char *const[]){words->at[0].text, words->at[1].text}, given, s->tolerance);
}

static void print_man(const Settings *defaults) {          // what the build puts into mtrun(1)
  puts(".SH OPTIONS");
  options_man(&command, 0, defaults, stdout), puts(".SH LAUNCHERS"), launch_man(stdout), exits_man(stdout);
}

int main(int argc, char **argv) {
  Run r = {.set = {.steps = -1, .log_every = 10, .max_skips = 10, .tokens = 200, .tolerance = 1e-5, .temperature = 0.8, .seed = 1,
                   .launcher = "auto", .ranks_as = "processes", .timeout = 600}};
  Words words = {0}, given = {0};
  bool help;
  program_start("mtrun");
  if (argc == 2 && !strcmp(argv[1], "--man")) return print_man(&r.set), 0;
  r.arena = arena_create();
  const Settings defaults = r.set;
  Status e = options_parse_given(r.arena, &command, argc, argv, &r.set, &words, &given, &help);
  if (!e && help) options_help(&command, &defaults, stdout), putchar('\n'), exits_help(stdout);
  else if (!e && r.set.version) printf("mtrun %s\n", MT_VERSION);
  else if (!e && r.set.calibrate) e = calibrate(r.arena, &r.set, &words, &given);
  else if (!e && r.set.compare) e = compare(r.arena, &r.set, &words, &given);
  else if (!e && !words.n) e = fail(EXIT_USAGE, "which plan? usage: mtrun PLAN [OPTION]...");
  else if (!e && words.n > 1)
    e = fail(EXIT_USAGE, "one plan is run, %u are given%s", words.n, options_meant(r.arena, &words));
  else if (!e && !(e = check_settings(&r.set, &given))) {
    catch_signals();
    if (!(e = check_targets(r.arena, words.at[0].text, &r.set))) e = run_plan(&r, words.at[0].text);
  }
  if (e) forsake(&r, e);
  arena_destroy(r.arena);
  if ((fflush(stdout) || ferror(stdout)) && !e)        // what a line before could not write has no errno any more
    e = fail(EXIT_IO, "writing the output: %s", errno ? strerror(errno) : "some of it is lost");
  return e;
}
