// launch.c -- see launch.h. An empty variable is one that is not set.
#include "runtime/launch.h"
#include "runtime/options.h"
#include <stdlib.h>
#include <string.h>

typedef struct { Str word, name, here, rank, size, local_rank, local_size, again; } Row;
static const Row rows[] = {
#define LAUNCHER(word, ...) {#word, __VA_ARGS__},
#include "runtime/launch.def"
#undef LAUNCHER
};

static Str value(Str variable) {
  Str v = *variable ? getenv(variable) : 0;
  return v && *v ? v : 0;
}

// A variable alone, which other tools set too, is no launcher.
static bool is_here(const Row *w) { return value(w->here) && (value(w->rank) || value(w->size)); }

static Status number(const Row *w, Str variable, int64_t *v) {
  Str text = value(variable);
  if (!text) return fail(EXIT_USAGE, "%s=%s is set, as by %s, and %s is not", w->here, value(w->here), w->name, variable);
  return options_int(variable, text, v);
}

// "2(x3),1": tasks of each node of a step, node after node. 0: it does not say.
static int64_t tasks_of(Str text, int64_t node) {
  char *end;
  for (int64_t n, times; text && *text; text = *end == ',' ? end + 1 : "") {
    n = strtoll(text, &end, 10), times = 1;
    if (end == text) return 0;
    if (!strncmp(end, "(x", 2)) times = strtoll(end + 2, &end, 10), end += *end == ')';
    if (node < times) return n;
    node -= times;
  }
  return 0;
}

// Row slurm has no variable that holds it alone.
static Str local_name(const Row *w) { return *w->local_size ? w->local_size : "SLURM_STEP_TASKS_PER_NODE"; }

static Status local_size(const Row *w, Launcher *l) {
  l->local_size = 0;
  if (*w->local_size) {
    if (!value(w->local_size)) return 0;
    TRY(number(w, w->local_size, &l->local_size));
    return l->local_size > 0 ? 0 : fail(EXIT_USAGE, "%s=%lld: at least 1", w->local_size, (long long)l->local_size);
  }
  int64_t node = 0;
  Str tasks = value(local_name(w));
  if (!tasks || !value("SLURM_NODEID")) return 0;
  TRY(number(w, "SLURM_NODEID", &node));
  l->local_size = node < 0 ? 0 : tasks_of(tasks, node);
  if (l->local_size > 0) return 0;
  return fail(EXIT_USAGE, "SLURM_NODEID=%lld is no node of %s=%s", (long long)node, local_name(w), tasks);
}

static Status below(Str rank, int64_t r, Str size, int64_t n) {
  if (r >= 0 && r < n) return 0;
  return fail(EXIT_USAGE, "%s=%lld does not go with %s=%lld: ranks are 0 to %lld", rank, (long long)r, size, (long long)n,
              (long long)n - 1);
}

static Status read_row(LaunchKind k, Launcher *l) {
  const Row *w = &rows[k];
  *l = (Launcher){.kind = k, .local_rank = -1};
  TRY(number(w, w->rank, &l->rank));
  TRY(number(w, w->size, &l->size));
  if (l->size < 1) return fail(EXIT_USAGE, "%s=%lld: at least 1", w->size, (long long)l->size);
  TRY(below(w->rank, l->rank, w->size, l->size));
  if (value(w->local_rank)) TRY(number(w, w->local_rank, &l->local_rank));
  TRY(local_size(w, l));
  if (l->local_size > l->size)
    return fail(EXIT_USAGE, "%s=%lld does not go with %s=%lld: a machine has 1 to %lld of them",
                local_name(w), (long long)l->local_size, w->size, (long long)l->size, (long long)l->size);
  if (!value(w->local_rank)) return 0;
  if (!l->local_size) return below(w->local_rank, l->local_rank, w->size, l->size);
  return below(w->local_rank, l->local_rank, local_name(w), l->local_size);
}

// Two launchers, one inside the other: right when the outer one has a process on each machine, which carries the inner.
static Status agree(const Launcher *l, const Launcher *other) {
  const Row *a = &rows[l->kind], *b = &rows[other->kind];
  if ((l->rank == other->rank && l->size == other->size) || other->local_size == 1) return 0;
  bool sizes = l->size != other->size;
  return fail(EXIT_USAGE,
              "%s says %s=%lld, and %s says %s=%lld: one launcher inside another; use one of them, or say which counts "
              "with --launcher=%s or --launcher=%s",
              a->name, sizes ? a->size : a->rank, (long long)(sizes ? l->size : l->rank), b->name,
              sizes ? b->size : b->rank, (long long)(sizes ? other->size : other->rank), a->word, b->word);
}

// Variables of a launcher of several machines that says too little to be followed: not silently one machine's run.
static Status half(void) {
  Str size = value("WORLD_SIZE"), nodes = value("SLURM_NNODES");
  if (size && value("RANK") && strcmp(size, "1"))
    return fail(EXIT_USAGE, "RANK=%s and WORLD_SIZE=%s are set, and LOCAL_RANK is not: torchrun sets all three; without "
                "a launcher unset them, or say --launcher=none", value("RANK"), size);
  if (nodes && value("SLURM_NTASKS") && strcmp(nodes, "1"))
    fprintf(stderr, "%s: SLURM_NNODES=%s, and this is no step: all ranks start on this machine; srun mtrun uses all\n",
            program_name, nodes);
  return 0;
}

static Status asked_kind(const char *asked, LaunchKind *k) {
  static const char all[] = "auto"
#define LAUNCHER(word, ...) ", " #word
#include "runtime/launch.def"
#undef LAUNCHER
  ;
  Str words[LAUNCH_COUNT + 1] = {"auto"};
  for (int i = 0; i < LAUNCH_COUNT; i++) words[i + 1] = rows[i].word;
  for (*k = 0; *k < LAUNCH_COUNT; ++*k)
    if (!strcmp(rows[*k].word, asked)) return 0;
  Str near = nearest(asked, words, COUNT(words));
  return fail(EXIT_USAGE, "--launcher is one of %s, not '%.40s'%s%s%s", all, asked, near ? "; did you mean " : "",
              near ? near : "", near ? "?" : "");
}

static Status not_here(const Row *w) {
  bool own = strcmp(w->here, w->rank) && strcmp(w->here, w->size);
  return fail(EXIT_USAGE, "--launcher=%s: %s%s%s and %s are not set, so %s has not started this process", w->word,
              own ? w->here : "", own ? ", " : "", w->rank, w->size, w->name);
}

Status launch_find(const char *asked, Launcher *l) {
  bool any = !strcmp(asked, "auto");
  LaunchKind only = LAUNCH_none;
  *l = (Launcher){LAUNCH_none, 0, 1, 0, 1};
  if (!any) TRY(asked_kind(asked, &only));
  if (!any && only == LAUNCH_none) return 0;
  if (!any && !is_here(&rows[only])) return not_here(&rows[only]);
  if (!any) return read_row(only, l);
  for (int k = 0; k < LAUNCH_none; k++) {
    Launcher found;
    if (!is_here(&rows[k])) continue;
    TRY(read_row((LaunchKind)k, &found));
    if (l->kind == LAUNCH_none) *l = found;
    else TRY(agree(l, &found));
  }
  return l->kind == LAUNCH_none ? half() : 0;
}

Str launch_name(const Launcher *l) { return rows[l->kind].name; }

Str launch_mesh(const Plan *p, Arena *a) {
  Text mesh;
  text_init(&mesh, a);
  text_puts(&mesh, "");
  for (uint32_t i = 0; i < p->axis.n; i++)
    if (p->axis.at[i].size > 1)
      text_printf(&mesh, "%s%s=%lld", mesh.n ? ", " : "", p->axis.at[i].name, (long long)p->axis.at[i].size);
  return mesh.s;
}

Status launch_fits(const Launcher *l, const Plan *p) {
  const Row *w = &rows[l->kind];
  int64_t ranks = plan_ranks(p);
  if (l->kind == LAUNCH_none || l->size == ranks) return 0;
  Arena *a = arena_create();
  Str mesh = launch_mesh(p, a);
  Status e = fail(EXIT_USAGE, "%s has started %lld (%s=%lld), and the plan is for %lld rank%s%s%s%s: %s with N = %lld; or "
                  "mtc compile --mesh for %lld; or --launcher=none, and mtrun starts the ranks itself",
                  w->name, (long long)l->size, w->size, (long long)l->size, (long long)ranks, ranks == 1 ? "" : "s",
                  *mesh ? " (" : "", mesh, *mesh ? ")" : "", w->again, (long long)ranks, (long long)l->size);
  arena_destroy(a);
  return e;
}

void launch_man(FILE *to) {
  fputs("The first of these counts, unless \\fB\\-\\-launcher\\fR says another. A second one must agree, or have a process on each "
        "machine, which started the first. An empty variable is not set.\n", to);
  for (int k = 0; k < LAUNCH_none; k++) {
    const Row *w = &rows[k];
    fprintf(to, ".TP\n.B %s\n%s, when %s is set: rank %s of %s", w->word, w->name, w->here, w->rank, w->size);
    if (*w->local_size) fprintf(to, ", on its machine %s of %s", w->local_rank, w->local_size);
    else fprintf(to, ", on its machine %s", w->local_rank);
    putc('\n', to);
  }
}
