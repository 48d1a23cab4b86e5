// main.c -- mtc: the commands, and the way from a model text to a plan (function `compile`).
#include "compiler/interp.h"
#include "compiler/program.h"
#include "grammar/errors.h"
#include "passes/emit.h"
#include "passes/explain.h"
#include "passes/group.h"
#include "passes/pass.h"
#include "runtime/cost.h"
#include "runtime/doctor.h"
#include "runtime/metrics.h"
#include "runtime/options.h"
#include "runtime/work.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- what every command on a model takes ------------------------------------------------------------------
typedef struct {
  Words say;  // -D, --preset, --set, --mesh, --map, --no-map, --parallel, in order
  const char *skip, *color;
  const char *after, *fn;                    // dump, explain
  bool dot, unfold, params, steps;
  int64_t layer;
  const char *output, *device;               // compile
  bool no_objects, no_fuse;
  bool json;                                 // doctor
  InterpOptions interp;
} Settings;

#define COLOR_ROW                                                                                            \
  OPTION(Settings, color, 0, "color", "WHEN", "colours: auto (on a terminal, without NO_COLOR), always, never")
#define MODEL_ROWS                                                                                           \
  OPTION(Settings, say, 'D', 0, "NAME=VALUE", "give a config another value"),                                \
    OPTION(Settings, say, 0, "preset", "NAME", "the values of a preset of the model"),                       \
    OPTION(Settings, say, 0, "set", "PATH=VALUE",                                                            \
           "change a setting: train.steps=9, train.optimizer.lr=1e-3, precision.compute=f64"),               \
    OPTION(Settings, say, 0, "mesh", "AXES", "ranks along each axis: dp=2,tp=2 (others are 1)"),             \
    OPTION(Settings, say, 0, "map", "RULE", "split a dim over an axis: \"seq -> cp\", \"weak seq -> tp\""),  \
    OPTION(Settings, say, 0, "no-map", "DIM", "drop all rules of a dim"),                                    \
    OPTION(Settings, say, 0, "parallel", "FILE",                                                             \
           "precision, parallel and train blocks of another file (.mtp)"),                                   \
    OPTION(Settings, skip, 0, "skip", "PASSES", "leave out optional passes (mtc --list-passes)"), COLOR_ROW

static const Option check_rows[] = {MODEL_ROWS};
static const Option dump_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, after, 0, "after", "PASS", "the module after this pass (default: after lowering)"),
  OPTION(Settings, fn, 0, "fn", "NAME", "only this function: forward, micro, update, …"),
  OPTION(Settings, dot, 0, "dot", 0, "graphviz text instead of IR"),
  OPTION(Settings, unfold, 0, "unfold", 0, "with --dot: every layer, not one for all"),
  OPTION_FROM(Settings, layer, 0, "layer", "N", "with --dot: only layer N (from 0)", 0),
  OPTION(Settings, steps, 0, "steps", 0,
         "the steps of each function: kernels and products, what they make, why it is stored"),
  OPTION(Settings, params, 0, "params", 0, "the parameters: names, dims, checkpoint tensors, decay"),
};
static const Option explain_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, after, 0, "after", "PASS", "in the module after this pass (default: the last)"),
};
static const Option interp_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, interp.init, 0, "init", "FILE", "initial parameters: safetensors (default: drawn)"),
  OPTION(Settings, interp.batches, 0, "batches", "FILE", "inputs by name: [steps, microbatches, batch, …]"),
  OPTION_FROM(Settings, interp.steps, 0, "steps", "N", "steps to run (default: train.steps)", 0),
  OPTION(Settings, interp.grads, 0, "grads", "FILE", "write the first step's gradients"),
  OPTION(Settings, interp.final, 0, "final", "FILE", "write the parameters after the last step"),
  OPTION(Settings, interp.log_json, 0, "log-json", "FILE", "a line of JSON per step; - is standard output"),
};
static const Option compile_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, output, 'o', "output", "PLAN", "the plan's file (default: the model's name with .plan)"),
  OPTION(Settings, device, 0, "device", "cpu", "what the plan runs on"),
  OPTION(Settings, no_fuse, 0, "no-fuse", 0,
         "every value in memory and every op its own kernel: slow, to find a fault"),
  OPTION(Settings, no_objects, 0, "no-objects", 0,
         "leave the kernels as sources; mtrun compiles them when it starts"),
};
static const Option doctor_rows[] = {
  OPTION(Settings, json, 0, "json", 0, "print JSON"),
  COLOR_ROW,
};
static const Option verify_rows[] = {COLOR_ROW};
static const Option opt_rows[] = {
  COLOR_ROW,
  OPTION(Settings, after, 0, "pass", "A,B", "the passes to run, in this order"),
};

static const Command commands[] = {
  {"mtc compile", "MODEL.mt", "Compiles a model text to a plan that mtrun executes.", compile_rows,
   COUNT(compile_rows),
   "Later options win. A first run:\n"
   "  mtc compile models/gpt2.mt --preset demo -o demo.plan\n"
   "  mtrun demo.plan --data DATA\n\n"
   "  mtc compile models/llama.mt -D layers=4 --set train.steps=100 --set precision.compute=f32\n"},
  {"mtc check", "MODEL.mt",
   "Checks a model text: names, dims, dtypes, sizes, layout over the mesh.\n"
   "MODEL.mt is - for standard input.",
   check_rows, COUNT(check_rows),
   "  mtc check models/gpt2.mt\n"
   "  mtc check models/gpt2.mt -D hidden=770\n"
   "  mtc check models/gpt2.mt --preset xl --mesh dp=4,tp=5\n\n"
   "mtc explain MT0203 says more about a message.\n"},
  {"mtc dump", "MODEL.mt", "Prints the model's graph, as text that reads back or for graphviz.", dump_rows,
   COUNT(dump_rows),
   "  mtc dump gpt2.mt --preset demo --fn forward\n"
   "  mtc dump gpt2.mt --after=reshard --mesh tp=2\n"
   "  mtc dump gpt2.mt --params\n"
   "  mtc dump gpt2.mt --preset demo --dot --fn forward | dot -Tsvg -o gpt2.svg\n"},
  {"mtc explain", "MODEL.mt [WHAT] | MT0203",
   "Says what a program is: its parameters, loss, mesh, and each collective with the line that causes it.\n"
   "With WHAT: an output, a parameter, dim, config, setting or function by its name, or the operations of a\n"
   "line (45), a value (%12) or a path (h.0.attn).\n"
   "With a code: what a message means, and how to mend the text.",
   explain_rows, COUNT(explain_rows),
   "  mtc explain models/gpt2.mt --preset demo --mesh tp=2\n"
   "  mtc explain models/gpt2.mt loss\n"
   "  mtc explain models/gpt2.mt attention\n"
   "  mtc explain MT0203\n"},
  {"mtc interp", "MODEL.mt",
   "Trains with the reference interpreter: slow, plain, all ranks of the mesh in one process.", interp_rows,
   COUNT(interp_rows),
   "  mtc interp models/gpt2.mt --preset demo --batches batches.safetensors --steps 2\n"
   "  mtc interp tiny.mt --batches b.safetensors --mesh dp=2,tp=2 --final params.safetensors --log-json -\n"},
  {"mtc opt", "FILE.ir", "Reads a graph's text, runs passes on it and prints what comes out.", opt_rows,
   COUNT(opt_rows),
   "  mtc dump gpt2.mt --preset demo > gpt2.ir\n  mtc opt gpt2.ir --pass=simplify,precision,autodiff\n"
   "  mtc opt gpt2.ir --pass=simplify | diff gpt2.ir -\n"},
  {"mtc verify", "PLAN",
   "Says whether a plan is safe to run: whole, every access inside its memory, every order kept.\n"
   "mtrun looks at the same before it runs one. Exit code 0: it is; 65: it is not, with the reason.",
   verify_rows, COUNT(verify_rows),
   "  mtc verify gpt2.plan\n"
   "  mtc verify gpt2.plan && mtrun gpt2.plan --data book\n"},
  {"mtc doctor", "",
   "Says whether this machine can train, what is missing, and how to get it.\n"
   "Looks at the C compiler, the libraries for products, CPU, memory, huge pages, the cache of kernels.\n"
   "Exit code 0: it can; 69: something that is required is missing.",
   doctor_rows, COUNT(doctor_rows),
   "  mtc doctor\n"
   "  mtc doctor --json\n"
   "  MTRUN_OPENBLAS=/opt/lib/libopenblas.so mtc doctor      would that library do?\n"},
};

static Override override_of(Word w) {
  static const struct { const char *name; OverrideKind kind;
  } table[] = {{"preset", OVERRIDE_preset}, {"set", OVERRIDE_set},       {"mesh", OVERRIDE_mesh},
               {"map", OVERRIDE_map},       {"no-map", OVERRIDE_no_map}, {"parallel", OVERRIDE_parallel}};
  for (size_t i = 0; i < COUNT(table); i++)
    if (w.by->name && !strcmp(w.by->name, table[i].name)) return (Override){table[i].kind, w.text};
  return (Override){OVERRIDE_config, w.text};
}

// ---- what is not there yet --------------------------------------------------------------------------------
static bool said_by_set(const Module *m, const Setting *s) {           // it, or one of its arguments
  bool said = s->loc.line && !strcmp(m->diag->source.at[s->loc.file].path, "(--set)");
  for (uint32_t i = 0; i < s->narg; i++) said |= said_by_set(m, &s->arg[i]);
  return said;
}

// An error where the result would differ from what was asked. Settings without effect are told of those who ask for
// them here; of what the text says, `mtc explain` does.
static Status refuse_unmade(const Module *m) {
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (!strcmp(m->axis.at[i].name, "pp") && m->axis.at[i].size > 1)
      return fail(EXIT_UNAVAILABLE, "mesh pp=%d: not yet; a model is one stage", m->axis.at[i].size);
  for (uint32_t i = 0; i < m->set.n; i++)
    if (setting_unmade(m->set.at[i].path) && said_by_set(m, &m->set.at[i]))
      fprintf(stderr, "mtc: note: %s has no effect yet\n", m->set.at[i].path);
  return 0;
}

// ---- the way ----------------------------------------------------------------------------------------------
static Status color_of(const char *when, int fd, bool *on) {
  static const char *const name[] = {"auto", "always", "never"};       // as in Color
  for (size_t i = 0; i < COUNT(name); i++)
    if (!when || !strcmp(when, name[i])) return *on = color_shows((Color)i, fd), 0;
  return fail(EXIT_USAGE, "--color is auto, always or never, not '%s'", when);
}

// Text to program, its module through the passes up to `upto` (PASS_none: lowering only).
static Status build(Arena *a, const char *path, const Settings *s, Pass upto, Program **out) {
  Diag *diag = NEW(a, Diag);
  Intern *in = intern_create(a);
  Override *o = NEW_N(a, Override, s->say.n + 1);
  RunOptions run = {0};
  Status status;
  diag_init(diag, a);
  TRY(color_of(s->color, 2, &diag->color));
  for (uint32_t i = 0; i < s->say.n; i++) o[i] = override_of(s->say.at[i]);
  if (s->skip) TRY(pass_list(s->skip, &run.skip, 0, 0));
  TRY(pass_skippable(run.skip));
  Program *p = *out = sema(a, in, diag, path, o, s->say.n, &status);
  if (!p) return status;
  TRY(refuse_unmade(p->module));
  if (!lower(p)) return EXIT_COMPILE;
  if (upto && !passes_run(p->module, upto, run)) return EXIT_COMPILE;
  return 0;
}

static Status after_pass(const char *name, Pass otherwise, Pass *out) {
  *out = otherwise;
  if (!name || !strcmp(name, "lower")) {
    if (name) *out = PASS_none;
    return 0;
  }
  uint32_t n;
  Pass list[PASS_COUNT];
  TRY(pass_list(name, 0, list, &n));
  if (n != 1) return fail(EXIT_USAGE, "--after names one pass");
  *out = list[0];
  return 0;
}

static Status print(const Text *t) {
  fwrite(t->s, 1, t->n, stdout);
  return fflush(stdout) ? fail(EXIT_IO, "standard output cannot be written") : 0;
}

// ---- commands ---------------------------------------------------------------------------------------------
static Status run_check(Arena *a, const char *path, const Settings *s) {
  Program *p;
  TRY(build(a, path, s, PASS_reshard, &p));
  uint32_t params = 0;
  for (VarId v = 1; v < p->module->var.n; v++) params += p->module->var.at[v].kind == VAR_param;
  Text t;
  text_init(&t, a);
  text_printf(&t, "%s: %u parameters, %u functions, no errors\n", path, params, p->module->fn.n - 1);
  return print(&t);
}

static Str model_name(Arena *a, const char *path) {  // the file's name without folder and .mt
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  return arena_strndup(a, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
}

static Status run_compile(Arena *a, const char *path, const Settings *s) {
  Program *program;
  if (s->device && strcmp(s->device, "cpu"))
    return fail(EXIT_UNAVAILABLE, "--device %s: not yet; plans are made for cpu", s->device);
  Str name = model_name(a, path);
  const char *to = s->output ? s->output : arena_printf(a, "%s.plan", name);
  if (same_file(path, to))
    return fail(EXIT_USAGE, "%s is the model's own file; give the plan another name with -o", to);
  TRY(build(a, path, s, PASS_last, &program));
  Module *m = program->module;
  TRY(emit_possible(m, path));
  Plan *p = emit(m, (EmitOptions){.model = name, .tool = MT_VERSION, .apart = s->no_fuse});
  if (!s->no_objects) TRY(compile_objects(p));
  return plan_save(p, to);
}

static void print_steps(Text *t, Module *m, const Fn *only) {
  Earlies early = early_sums(m, m->arena);
  for (FnId i = 1; i < m->fn.n; i++) {
    if (m->fn.at[i]->is_body || (only && only != m->fn.at[i])) continue;
    Groups *g = fuse(m, m->fn.at[i], m->arena, false);
    overlap(g, &early);
    memory_plan(g, 0, 0);
    steps_print(t, g);
  }
}

static Status no_name(const char *kind, const char *name, const Str *names, uint32_t n) {
  Str near = nearest(name, names, n);
  return fail(EXIT_USAGE, "no %s '%s'%s%s%s", kind, name, near ? "; did you mean '" : "", near ? near : "",
              near ? "'?" : "");
}

static Status run_dump(Arena *a, const char *path, const Settings *s) {
  Program *p;
  Pass upto;
  Text t;
  TRY(after_pass(s->after, s->steps ? PASS_last : PASS_none, &upto));
  if (s->steps && upto != PASS_last) return fail(EXIT_USAGE, "--steps are those after the last pass");
  if (!s->dot && (s->unfold || s->layer >= 0)) return fail(EXIT_USAGE, "--unfold and --layer go with --dot");
  if (s->steps + s->params + s->dot > 1) return fail(EXIT_USAGE, "one of --steps, --params and --dot");
  TRY(build(a, path, s, upto, &p));
  Module *m = p->module;
  text_init(&t, a);
  const Fn *f = s->fn ? fn_find(m, intern(m->in, s->fn)) : 0;
  if (s->fn && !f) {
    Names names = {0};
    for (FnId i = 1; i < m->fn.n; i++) vec_push(a, &names, m->fn.at[i]->name);
    return no_name("function", s->fn, names.at, names.n);
  }
  if (s->steps) print_steps(&t, m, f);
  else if (s->params) params_print(&t, m);
  else if (s->dot)
    ir_dot_print(&t, m,
                 (DotOptions){.fn = s->fn, .layer = (int)MIN(s->layer, INT32_MAX - 1), .unfold = s->unfold});
  else if (f) ir_print_fn(&t, f);
  else ir_print(&t, m);
  return print(&t);
}

// The entry of ERRORS.md for a code.
static Status explain_code(Arena *a, const char *code) {
  Text t;
  text_init(&t, a);
  const char *at = strstr(errors_text, arena_printf(a, "\n### %s\n", code)),
             *end = at ? strstr(at + 4, "\n##") : 0;
  if (!at) return fail(EXIT_USAGE, "no message '%s'; grammar/ERRORS.md lists them", code);
  if (!end) end = errors_text + errors_size;
  text_add(&t, at + 5, (size_t)(end - at - 5));
  while (t.n > 1 && t.s[t.n - 1] == '\n' && t.s[t.n - 2] == '\n') t.s[--t.n] = 0;
  if (t.s[t.n - 1] != '\n') text_puts(&t, "\n");
  return print(&t);
}

static bool is_code(const char *word) {
  return !strncmp(word, "MT", 2) && strspn(word + 2, "0123456789") == 4 && !word[6];
}

// How long a step of it takes here, when this machine's rates are known and a plan can be made of it. The module is
// after reshard, and not afterwards.
static Status explain_estimate(Arena *a, Text *t, Program *p, const char *path, const Settings *s) {
  Module *m = p->module;
  RunOptions rest = {.from = PASS_reshard};
  Rates rates;
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (m->axis.at[i].size > 1) return 0;
  if (!rates_find(a, work_cpus(), "", &rates) || emit_possible(m, path)) return 0;
  if (s->skip) TRY(pass_list(s->skip, &rest.skip, 0, 0));
  if (!passes_run(m, PASS_last, rest)) return EXIT_COMPILE;
  Str said = step_estimate(a, emit(m, (EmitOptions){.model = path, .tool = MT_VERSION}), &rates);
  if (said) text_printf(t, "  %-12s %s\n", "estimate", said);
  return 0;
}

static Status run_explain(Arena *a, const char *path, const char *what, const Settings *s) {
  Program *p;
  Pass upto;
  Text t;
  if (is_code(path) && access(path, F_OK)) return explain_code(a, path);
  if (what && is_code(what)) return explain_code(a, what);
  TRY(after_pass(s->after, PASS_reshard, &upto));
  TRY(build(a, path, s, upto, &p));
  text_init(&t, a);
  if (!what) {
    explain_all(&t, p);
    if (!s->after) TRY(explain_estimate(a, &t, p, path, s));
    return print(&t);
  }
  if (explain_name(&t, p, what)) return print(&t);
  const char *called = setting_called(p, what);
  if (called) return fail(EXIT_USAGE, "no name '%s'; did you mean '%s'?", what, called);
  Names names = {0};
  explain_names(p, &names);
  Str near = nearest(what, names.at, names.n);
  if (near) return no_name("name", what, names.at, names.n);
  return fail(EXIT_USAGE,
              "nothing is called '%s' in %s; a line is 45, a value %%12, others go by their names: loss, "
              "wte.weight, seq, train.clip, attention",
              what, path);
}

static Status run_interp(Arena *a, const char *path, const Settings *s) {
  Program *p;
  TRY(build(a, path, s, PASS_reshard, &p));
  return interp_command(a, p->module, &s->interp);
}

static Status run_opt(Arena *a, const char *path, const Settings *s) {
  Diag d;
  diag_init(&d, a);
  TRY(color_of(s->color, 2, &d.color));
  return s->after ? passes_opt(&d, path, s->after, stdout)
                  : fail(EXIT_USAGE, "mtc opt wants --pass=A,B (mtc --list-passes)");
}

static Status run_verify(Arena *a, const char *path) {
  Plan *p;
  Text t;
  int64_t bytes = 0, instructions = 0, collectives = 0;
  TRY(plan_load(a, path, &p));
  for (int i = 0; i < MEM_COUNT; i++) bytes += p->memory[i];
  for (uint32_t i = 1; i < p->fn.n; i++) {
    instructions += p->fn.at[i].ins.n;
    for (uint32_t k = 0; k < p->fn.at[i].ins.n; k++) collectives += p->fn.at[i].ins.at[k].op == PI_coll;
  }
  text_init(&t, a);
  text_printf(&t, "%s: a plan of %s, hash %s: %s, %u buffers, %lld instructions", path, p->model,
              p->hash, bytes_text(a, (double)bytes), p->buffer.n - 1, (long long)instructions);
  if (plan_ranks(p) > 1)
    text_printf(&t, "; %lld ranks, %lld collectives in one order on all of them", (long long)plan_ranks(p),
                (long long)collectives);
  text_puts(&t, "; nothing wrong\n");
  return print(&t);
}

static Status run_doctor(Arena *a, const Words *words, const Settings *s) {
  DoctorOptions o = {.json = s->json};
  if (words->n) return fail(EXIT_USAGE, "mtc doctor takes no '%.100s' (see mtc doctor --help)", words->at[0].text);
  TRY(color_of(s->color, 1, &o.color));
  return doctor(a, &o, stdout);
}

// ---- main -------------------------------------------------------------------------------------------------
static void usage(FILE *to) {
  fprintf(to, "usage: mtc COMMAND …\n\n"
              "A compiler of models for training: from a model text to a plan that mtrun executes.\n\n");
  for (size_t i = 0; i < COUNT(commands); i++)
    fprintf(to, "  %-12s %.*s\n", commands[i].name, (int)strcspn(commands[i].about, "\n"), commands[i].about);
  fprintf(
    to,
    "\n"
    "  mtc COMMAND --help    the options of a command\n"
    "  mtc --list-ops        the primitives of the language, and the operations of the graph\n"
    "  mtc --list-passes     what happens between text and plan\n"
    "  mtc --list-settings   every setting of precision, parallel and train, for --set\n"
    "  mtc --version\n\n"
    "A model text is checked first, and mistakes are told with their line:\n\n"
    "  mtc check models/gpt2.mt -D hidden=770\n"
    "  mtc explain MT0303\n\n"
    "The language is described in grammar/LANGUAGE.md.\n\n");
  exits_help(to);
}

static Status command(Arena *a, const Command *c, int argc, char **argv) {
  const Settings defaults = {.layer = -1};
  Settings s = defaults;
  Words words = {0};
  bool help = false;
  TRY(options_parse(a, c, argc, argv, &s, &words, &help));
  if (help) return options_help(c, &defaults, stdout), 0;
  if (!strcmp(c->name, "mtc doctor")) return run_doctor(a, &words, &s);
  bool explain = !strcmp(c->name, "mtc explain");
  if (words.n < 1 || words.n > (explain ? 2u : 1u))
    return fail(EXIT_USAGE, "usage: %s %s (see %s --help)", c->name, c->words, c->name);
  const char *path = words.at[0].text;
  if (!strcmp(c->name, "mtc compile")) return run_compile(a, path, &s);
  if (!strcmp(c->name, "mtc check")) return run_check(a, path, &s);
  if (!strcmp(c->name, "mtc dump")) return run_dump(a, path, &s);
  if (!strcmp(c->name, "mtc interp")) return run_interp(a, path, &s);
  if (!strcmp(c->name, "mtc opt")) return run_opt(a, path, &s);
  if (!strcmp(c->name, "mtc verify")) return run_verify(a, path);
  return run_explain(a, path, words.n == 2 ? words.at[1].text : 0, &s);
}

// What the build puts into mtc(1). Commands on a model begin with the same rows, told once.
static void print_man(void) {
  const Settings defaults = {.layer = -1};
  puts(".SH OPTIONS ON A MODEL\nThe commands that take \\fIMODEL.mt\\fR share these. Later ones win.");
  options_man_rows(check_rows, COUNT(check_rows), &defaults, stdout);
  puts(".SH COMMANDS");
  for (size_t i = 0; i < COUNT(commands); i++) {
    const Command *c = &commands[i];
    bool shares = c->n >= COUNT(check_rows) && !strcmp(c->row[0].help, check_rows[0].help);
    options_man(c, shares ? COUNT(check_rows) : 0, &defaults, stdout);
  }
  exits_man(stdout);
}

static Status list(void (*what)(Text *t)) {
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  what(&t);
  Status status = print(&t);
  arena_destroy(a);
  return status;
}

static Status no_command(const char *word) {
  Str names[COUNT(commands)];
  for (size_t i = 0; i < COUNT(commands); i++) names[i] = commands[i].name + 4;
  Str near = nearest(word, names, COUNT(names));
  if (ends_with(word, ".mt"))
    return fail(EXIT_USAGE, "'%s' is no command; did you mean mtc check %s?", word, word);
  if (is_code(word)) return fail(EXIT_USAGE, "'%s' is no command; did you mean mtc explain %s?", word, word);
  return fail(EXIT_USAGE, "no command '%.100s'%s%s%s", word, near ? "; did you mean '" : "", near ? near : "",
              near ? "'?" : "; see mtc --help");
}

static bool is_help(const char *word) {
  return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static Status run(int argc, char **argv) {
  char ask[] = "--help", *help[] = {argv[0], ask, 0};
  if (argc < 2) return usage(stderr), EXIT_USAGE;
  if (is_help(argv[1]) && argc == 2) return usage(stdout), 0;
  if (!strcmp(argv[1], "--version")) return puts("mtc " MT_VERSION), 0;
  if (!strcmp(argv[1], "--man")) return print_man(), 0;
  if (!strcmp(argv[1], "--list-ops")) return list(ops_list);
  if (!strcmp(argv[1], "--list-passes")) return list(passes_list);
  if (!strcmp(argv[1], "--list-settings")) return list(settings_list);
  bool helps = is_help(argv[1]);                                       // mtc help dump
  for (size_t i = 0; i < COUNT(commands); i++) {
    if (strcmp(argv[1 + helps], commands[i].name + 4)) continue;
    Arena *a = arena_create();
    Status status = helps ? command(a, &commands[i], 2, help) : command(a, &commands[i], argc - 1, argv + 1);
    arena_destroy(a);
    return status;
  }
  return no_command(argv[1 + helps]);
}

int main(int argc, char **argv) {
  program_start("mtc");
  Status status = run(argc, argv);
  bool written = !fflush(stdout) && !ferror(stdout);
  return status ? status : written ? 0 : fail(EXIT_IO, "standard output cannot be written");
}
