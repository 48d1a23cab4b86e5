// metrics.c -- see metrics.h.
#include "runtime/metrics.h"
#include "runtime/json_text.h"
#include "runtime/cost.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const Str mem_name[] = {
#define X(word) #word,
  PLAN_MEMORY(X)
#undef X
};

Str bytes_text(Arena *a, double bytes) {
  static const Str unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t u = 0;
  while (bytes >= 1024 && u + 1 < COUNT(unit)) bytes /= 1024, u++;
  return arena_printf(a, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

static Str count_text(Arena *a, int64_t n) {
  char s[32], t[48];
  int k = snprintf(s, sizeof s, "%lld", (long long)n), out = 0;
  for (int i = 0; i < k; i++) {
    t[out++] = s[i];
    if (s[i] != '-' && i + 1 < k && (k - 1 - i) % 3 == 0) t[out++] = ',';
  }
  return arena_strndup(a, t, (size_t)out);
}

static Str flops_text(Arena *a, double f) {
  static const Str unit[] = {"", " k", " M", " G", " T", " P"};
  size_t u = 0;
  while (f >= 1000 && u + 1 < COUNT(unit)) f /= 1000, u++;
  return arena_printf(a, "%.4g%s%s", f, unit[u], u ? "FLOP" : " FLOP");
}

// ---- the start block ---------------------------------------------------------------------------------------------
static double tokens_of(const Plan *p) { // of a step: entries of the first input of two dims, else samples
  for (uint32_t i = 1; i < p->input.n; i++)
    if (p->input.at[i].ndim >= 2) {
      return (double)(plan_whole(p, p->input.at[i].dim[1])->extent * p->global_batch);
    }
  return (double)p->global_batch;
}

// The first line of what each rank has is called so.
static void put_memory(FILE *to, Arena *a, const Plan *p, int64_t rooms) {
  Str label = plan_ranks(p) > 1 ? "memory of a rank" : "memory";
  double total = (double)rooms;
  for (int i = 0; i < MEM_COUNT; i++) {
    total += (double)p->memory[i];
    if (p->memory[i])
      fprintf(to, "  %-16s %-14s %12s\n", i ? "" : label, mem_name[i],
              bytes_text(a, (double)p->memory[i]));
  }
  if (rooms) fprintf(to, "  %-16s %-14s %12s\n", "", "rooms", bytes_text(a, (double)rooms));
  fprintf(to, "  %-16s %-14s %12s\n", "", "total", bytes_text(a, total));
}

static void put_mesh(FILE *to, Arena *a, const Plan *p) {
  long long ranks = plan_ranks(p);
  if (ranks > 1) fprintf(to, "  %-16s %s: %lld ranks\n", "mesh", launch_mesh(p, a), ranks);
}

static int64_t whole_count(const Plan *p, const PlanVar *v) {     // of all ranks
  int64_t n = 1;
  for (uint32_t i = 0; i < v->ndim; i++) n *= plan_whole(p, v->dim[i])->extent;
  return n;
}

static void put_params(FILE *to, Arena *a, const Plan *p) {
  int64_t whole = 0, here = 0;               // here: what this rank has of them
  Text formats;
  text_init(&formats, a);
  for (uint32_t i = 1; i < p->var.n; i++) {
    const PlanVar *v = &p->var.at[i];
    if (v->kind != PVAR_param) continue;
    whole += whole_count(p, v), here += plan_count(p, v->dim, v->ndim, false);
    if (!strstr(formats.s, dtype_name(v->dtype)))
      text_printf(&formats, "%s%s", formats.n ? ", " : "", dtype_name(v->dtype));
  }
  fprintf(to, "  %-16s %s in %s%s%s%s\n", "parameters", count_text(a, whole), formats.s, here < whole ? ", " : "",
          here < whole ? count_text(a, here) : "", here < whole ? " on a rank" : "");
}

void start_print(FILE *to, const Plan *p, int64_t rooms, const char *version, const About *about, size_t n) {
  Arena *a = arena_create();
  fprintf(to, "mtrun %s\n  %-16s %s, hash %s, made by %s for %s\n", version, "plan", p->model, p->hash,
          p->tool, p->target);
  put_mesh(to, a, p);
  put_params(to, a, p);
  if (p->cell.n) {
    fprintf(to, "  %-16s %s tokens: %lld samples in %lld microbatch%s\n", "step",
            count_text(a, (int64_t)tokens_of(p)), (long long)p->global_batch, (long long)p->microbatches,
            p->microbatches == 1 ? "" : "es");
    fprintf(to, "  %-16s %s%s\n", "work of a step", flops_text(a, plan_step_flops(p)),
            plan_ranks(p) > 1 ? " on a rank" : "");
  }
  put_memory(to, a, p, rooms);
  for (size_t i = 0; i < n; i++)
    if (about[i].text) fprintf(to, "  %-16s %s\n", about[i].label, about[i].text);
  fputc('\n', to), fflush(to);
  arena_destroy(a);
}

// ---- the JSON log ------------------------------------------------------------------------------------------------
static void put_key(Text *t, const char *key) {
  text_puts(t, t->n ? "," : "{"), text_json(t, key), text_puts(t, ":");
}
static void put_whole(Text *t, const char *key, int64_t v) {
  put_key(t, key), text_printf(t, "%lld", (long long)v);
}
static void put_flag(Text *t, const char *key, bool v) { put_key(t, key), text_puts(t, v ? "true" : "false"); }
static void put_real(Text *t, const char *key, double v) {
  put_key(t, key), text_json_number(t, v);                 // NaN is not JSON: null, and its state beside it
  if (isfinite(v)) return;
  Arena *a = arena_create();
  put_key(t, arena_printf(a, "%s_state", key)), text_json(t, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
  arena_destroy(a);
}

static void put_outputs(Text *t, const Exec *x, const StepResult *r, const char *before) {
  for (uint32_t i = 0; i < x->nout; i++) {
    char key[256];
    snprintf(key, sizeof key, "%s%s", before, x->plan->output.at[x->out[i]].name);
    put_real(t, key, r->out[i]);
  }
}

static void put_step(Text *t, const Exec *x, const MetricsStep *m) {
#define METRIC(key, kind, value, what) put_##kind(t, #key, value);
#include "runtime/metrics.def"
#undef METRIC
  put_outputs(t, x, m->result, "");
  if (m->valid) put_outputs(t, x, m->valid, "valid_");
}

static void put_norms(Text *t, Arena *a, const Norms *n) {
  for (uint32_t i = 0; i < n->n; i++) put_real(t, arena_printf(a, "%s/%s", n->key, n->tensor[i].name), n->norm[i]);
}

// A run that was killed has logged steps that the checkpoint does not have; they are made and logged again.
static bool goes_on(const char *line, ssize_t n, int64_t first) { // false: such a step's, or not written to its end
  long long step;
  if (line[0] != '{') return true;
  return line[n - 1] == '\n' && (sscanf(line, "{\"step\":%lld,", &step) != 1 || step < first);
}

// Copies the lines that stay; *dropped: how many do not. to 0: only counts. False: see errno.
static bool copy_lines(FILE *from, FILE *to, int64_t first, int64_t *dropped) {
  char *line = 0;
  size_t room = 0;
  bool right = true;
  *dropped = 0;
  rewind(from);
  for (ssize_t n; right && (n = getline(&line, &room, from)) > 0;) {
    bool stays = goes_on(line, n, first);
    *dropped += !stays || line[n - 1] != '\n';             // the next line would be glued to it
    if (stays && to) right = fwrite(line, 1, (size_t)n, to) == (size_t)n;
    if (stays && to && line[n - 1] != '\n') right = right && putc('\n', to) == '\n';
  }
  free(line);
  return right && !ferror(from);
}

// The log is replaced as a whole, so that whenever this is killed one of the two is there.
static Status log_replace(FILE *from, const char *path, int64_t first) {
  char part[PATH_MAX + 32];
  struct stat st;
  int64_t dropped;
  snprintf(part, sizeof part, "%s.%ld.tmp", path, (long)getpid());
  FILE *to = fopen(part, "we");
  bool right = to && copy_lines(from, to, first, &dropped) && !fstat(fileno(from), &st) &&
               !fchmod(fileno(to), st.st_mode & 07777) && !fflush(to) && !fsync(fileno(to));
  int e = right ? 0 : errno;
  if (to && fclose(to) && !e) e = errno;
  if (!e && rename(part, path)) e = errno;
  if (!e) return 0;
  unlink(part);
  return fail(e == EACCES || e == EPERM ? EXIT_PERMISSION : EXIT_IO, "writing %s: %s", path, strerror(e));
}

static Status log_rewind(const char *path, int64_t first) {
  char real[PATH_MAX];
  struct stat st;
  int64_t dropped = 0;
  FILE *from = stat(path, &st) || !S_ISREG(st.st_mode) || !realpath(path, real) ? 0 : fopen(real, "re");
  if (!from) return 0;                                     // there is none yet, or a pipe; or fopen will say why
  Status e = copy_lines(from, 0, first, &dropped) ? 0 : fail(EXIT_IO, "reading %s: %s", path, strerror(errno));
  if (!e && dropped) e = log_replace(from, real, first);
  fclose(from);
  return e;
}

// ---- the console -------------------------------------------------------------------------------------------------
static int digits(int64_t n) { return snprintf(0, 0, "%lld", (long long)n); }

static void eta_text(char to[32], double seconds) {
  long long s = (long long)(seconds + 0.5);
  if (!(seconds >= 0) || seconds > 1e9) snprintf(to, 32, "?");
  else if (s >= 3600) snprintf(to, 32, "%lldh%02lldm", s / 3600, s / 60 % 60);
  else if (s >= 60) snprintf(to, 32, "%lldm%02llds", s / 60, s % 60);
  else snprintf(to, 32, "%llds", s);
}

static void clear_bar(Metrics *m) {
  if (m->bar && m->shown > 0) fputs("\r\033[K", stderr), fflush(stderr);
}

static void draw_bar(Metrics *m, int64_t done, double now) {
  enum { WIDE = 40 };
  if (!m->bar || (now - m->shown < 0.1 && done < m->options.last)) return;
  char bar[WIDE + 1], eta[32];
  int full = m->options.last ? (int)(done * WIDE / m->options.last) : WIDE;
  for (int i = 0; i < WIDE; i++) bar[i] = i < full ? '#' : '.';
  bar[WIDE] = 0;
  eta_text(eta, m->pace * (double)(m->options.last - done));
  fprintf(stderr, "\r[%s] %lld/%lld  eta %s\033[K", bar, (long long)done, (long long)m->options.last, eta),
      fflush(stderr);
  m->shown = now;
}

static double unsigned_nan(double x) { return isnan(x) ? NAN : x; }        // which processors make with a sign

static void print_line(Metrics *m, const MetricsStep *s, const char *loss_name, double loss) {
  const StepResult *r = s->result;
  char eta[32];
  eta_text(eta, m->pace * (double)(m->options.last - r->step - 1));
  fprintf(m->console, "step %*lld/%lld  %s %9.5f  grad_norm %9.4f  lr %.3e  %9.0f tok/s  %8.1f ms  eta %s",
          digits(m->options.last), (long long)r->step, (long long)m->options.last, loss_name,
          unsigned_nan(loss), unsigned_nan(r->grad_norm), r->lr, s->tokens / r->seconds, r->seconds * 1e3, eta);
  if (m->exec->scale.kind != SCALE_none) fprintf(m->console, "  loss_scale %.10g", r->loss_scale);
  for (uint32_t i = 0; i < m->exec->nout; i++) {
    Str name = m->exec->plan->output.at[m->exec->out[i]].name;
    if (strcmp(name, loss_name)) fprintf(m->console, "  %s %.5g", name, r->out[i]);
  }
  if (!r->updated)
    fprintf(m->console, "  (no update: %s; %lld so far)", r->empty ? "no label counts" : "not finite",
            (long long)s->skipped);
  fputc('\n', m->console);
}

void eval_print(FILE *to, const Exec *x, const StepResult *valid) {
  for (uint32_t i = 0; i < x->nout; i++)
    fprintf(to, "%svalid_%s %9.5f", i ? " " : "", x->plan->output.at[x->out[i]].name, valid->out[i]);
  fprintf(to, "  %8.1f ms\n", valid->seconds * 1e3);
}

static void print_valid(Metrics *m, const MetricsStep *s) {
  fprintf(m->console, "step %*lld/%lld  ", digits(m->options.last), (long long)s->result->step,
          (long long)m->options.last);
  eval_print(m->console, m->exec, s->valid);
}

// ---- a step ------------------------------------------------------------------------------------------------------
Status metrics_open(Metrics *m, const Exec *x, const MetricsOptions *o) {
  *m = (Metrics){.exec = x,
                 .options = *o,
                 .console = o->out,
                 .tokens = tokens_of(x->plan),
                 .flops = plan_step_flops(x->plan)};
  m->bar = is_terminal(STDERR_FILENO) && !comm_rank(dev_comm(x->dev));
  m->arena = arena_create(), text_init(&m->line, m->arena);
  if (!o->json) return 0;
  if (!strcmp(o->json, "-")) m->json = stdout, m->console = stderr;
  else {
    if (o->append) TRY(log_rewind(o->json, o->first));
    m->json = fopen(o->json, o->append ? "a" : "w");
  }
  if (!m->json)
    return fail(errno == EACCES || errno == EPERM ? EXIT_PERMISSION : EXIT_CREATE, "cannot write %s: %s",
                o->json, strerror(errno));
  return 0;
}

Status metrics_step(Metrics *m, const StepResult *r, const StepResult *valid, const Norms *norms, size_t nnorms) {
  const Exec *x = m->exec;
  const Plan *p = x->plan;
  MetricsStep s = {r, m->tokens, m->flops, (r->step + 1) * p->global_batch, x->update, x->skipped,
                   dev_before(x->dev), dev_planned(x->dev), valid};
  int64_t done = r->step + 1;
  double loss = NAN;
  Str loss_name = "loss";
  for (uint32_t i = 0; i < x->nout; i++)
    if (!i || !strcmp(p->output.at[x->out[i]].name, "loss"))
      loss = r->out[i], loss_name = p->output.at[x->out[i]].name;
  m->pace = m->pace > 0 ? 0.9 * m->pace + 0.1 * r->seconds : r->seconds;
  bool line =
      r->step == m->options.first || done == m->options.last || done % m->options.every == 0 || !r->updated;
  if (line || valid) clear_bar(m);
  if (line) print_line(m, &s, loss_name, loss);
  if (valid) print_valid(m, &s);
  if (line || valid) fflush(m->console);
  draw_bar(m, done, now_seconds());
  if (!m->json) return 0;
  Text *t = &m->line;
  t->n = 0;
  put_step(t, x, &s);
  Arena *a = arena_create();
  for (size_t i = 0; i < nnorms; i++) put_norms(t, a, &norms[i]);
  arena_destroy(a);
  text_puts(t, "}\n");
  bool wrong = fwrite(t->s, 1, t->n, m->json) != t->n || fflush(m->json);
  return wrong ? fail(EXIT_IO, "writing %s: %s", m->options.json, strerror(errno)) : 0;
}

Status metrics_close(Metrics *m) {
  if (!m->exec) return 0;
  clear_bar(m);
  arena_destroy(m->arena);
  m->exec = 0;
  if (m->json && m->json != stdout && fclose(m->json))
    return fail(EXIT_IO, "writing %s: %s", m->options.json, strerror(errno));
  return 0;
}
