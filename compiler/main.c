// main.c -- mtc: the commands, and the way from a model text to a plan (function `compile`).
#include "compiler/interp.h"
#include "compiler/program.h"
#include "passes/emit.h"
#include "passes/group.h"
#include "passes/layout.h"
#include "passes/pass.h"
#include "runtime/options.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- what every command on a model takes --------------------------------------------------------------------------
typedef struct {
  Words say;                                 // -D, --preset, --set, --mesh, --map, --no-map, --parallel, in order
  const char *skip;
  const char *after, *fn;                    // dump, explain
  bool dot, unfold, params, steps;
  int64_t layer;
  const char *output, *device;               // compile
  bool no_objects, no_fuse;
  InterpOptions interp;
} Settings;

#define MODEL_ROWS \
  OPTION(Settings, say, 'D', 0, "NAME=VALUE", "give a config another value"), \
  OPTION(Settings, say, 0, "preset", "NAME", "the values of a preset of the model"), \
  OPTION(Settings, say, 0, "set", "PATH=VALUE", "change a setting: train.steps=9, train.optimizer.lr=1e-3, precision.compute=f64"), \
  OPTION(Settings, say, 0, "mesh", "AXES", "ranks along each axis: dp=2,tp=2 (others are 1)"), \
  OPTION(Settings, say, 0, "map", "RULE", "split a dim over an axis: \"seq -> cp\", \"weak seq -> tp\""), \
  OPTION(Settings, say, 0, "no-map", "DIM", "drop all rules of a dim"), \
  OPTION(Settings, say, 0, "parallel", "FILE", "precision, parallel and train blocks of another file (.mtp)"), \
  OPTION(Settings, skip, 0, "skip", "PASSES", "leave out optimisation passes: simplify,…")

static const Option check_rows[] = {MODEL_ROWS};
static const Option dump_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, after, 0, "after", "PASS", "the module after this pass (default: after lowering)"),
  OPTION(Settings, fn, 0, "fn", "NAME", "only this function: forward, micro, update, …"),
  OPTION(Settings, dot, 0, "dot", 0, "graphviz text instead of IR"),
  OPTION(Settings, unfold, 0, "unfold", 0, "with --dot: every layer, not one for all"),
  OPTION(Settings, layer, 0, "layer", "N", "with --dot: only layer N (from 0)"),
  OPTION(Settings, steps, 0, "steps", 0, "the steps of each function: kernels and products, what they make, why it is stored"),
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
  OPTION(Settings, interp.steps, 0, "steps", "N", "steps to run (default: train.steps)"),
  OPTION(Settings, interp.grads, 0, "grads", "FILE", "write the first step's gradients"),
  OPTION(Settings, interp.final, 0, "final", "FILE", "write the parameters after the last step"),
  OPTION(Settings, interp.log_json, 0, "log-json", "FILE", "a line of JSON per step"),
};
static const Option compile_rows[] = {
  MODEL_ROWS,
  OPTION(Settings, output, 'o', "output", "PLAN", "the plan's file (default: the model's name with .plan)"),
  OPTION(Settings, device, 0, "device", "cpu", "what the plan runs on"),
  OPTION(Settings, no_fuse, 0, "no-fuse", 0, "every value in memory and every op its own kernel: slow, to find a fault"),
  OPTION(Settings, no_objects, 0, "no-objects", 0, "leave the kernels as sources; mtrun compiles them when it starts"),
};
static const Option opt_rows[] = {
  OPTION(Settings, after, 0, "pass", "A,B", "the passes to run, in this order"),
};

static const Command commands[] = {
  {"mtc compile", "MODEL.mt", "Compiles a model text to a plan that mtrun executes.", compile_rows, COUNT(compile_rows),
   "  mtc compile models/gpt2.mt --preset demo -o demo.plan\n  mtc compile models/llama.mt -D layers=4 --set train.steps=100 --set precision.compute=f32\n"},
  {"mtc check", "MODEL.mt", "Checks a model text: names, dims, dtypes, sizes, layout over the mesh.", check_rows, COUNT(check_rows), 0},
  {"mtc dump", "MODEL.mt", "Prints the model's graph, as text that reads back or for graphviz.", dump_rows, COUNT(dump_rows),
   "  mtc dump gpt2.mt --preset demo --fn forward\n  mtc dump gpt2.mt --after=reshard --mesh tp=2\n  mtc dump gpt2.mt --preset demo --dot --fn forward | dot -Tsvg -o gpt2.svg\n"},
  {"mtc explain", "MODEL.mt [%N|LINE|NAME]", "Says why each node, cast and collective exists, and which line causes it.", explain_rows, COUNT(explain_rows), 0},
  {"mtc interp", "MODEL.mt", "Trains with the reference interpreter: slow, plain, all ranks of the mesh in one process.", interp_rows, COUNT(interp_rows), 0},
  {"mtc opt", "FILE.ir", "Reads a graph's text, runs passes on it and prints what comes out.", opt_rows, COUNT(opt_rows), 0},
};

static Override override_of(Word w) {
  static const struct { const char *name; OverrideKind kind; } table[] = {
    {"preset", OVERRIDE_preset}, {"set", OVERRIDE_set}, {"mesh", OVERRIDE_mesh}, {"map", OVERRIDE_map}, {"no-map", OVERRIDE_no_map}, {"parallel", OVERRIDE_parallel}};
  for (size_t i = 0; i < COUNT(table); i++)
    if (w.by->name && !strcmp(w.by->name, table[i].name)) return (Override){table[i].kind, w.text};
  return (Override){OVERRIDE_config, w.text};
}

// ---- the way ------------------------------------------------------------------------------------------------------
// Text to module, through the passes up to `upto` (PASS_none: lowering only).
static Status build(Arena *a, const char *path, const Settings *s, Pass upto, Module **out) {
  Diag *diag = NEW(a, Diag);
  Intern *in = intern_create(a);
  Override *o = NEW_N(a, Override, s->say.n + 1);
  RunOptions run = {0};
  Status status;
  diag_init(diag, a);
  for (uint32_t i = 0; i < s->say.n; i++) o[i] = override_of(s->say.at[i]);
  if (s->skip) TRY(pass_list(s->skip, &run.skip, 0, 0));
  TRY(pass_skippable(run.skip));
  Program *p = sema(a, in, diag, path, o, s->say.n, &status);
  if (!p) return status;
  Module *m = lower(p);
  if (!m) return EXIT_COMPILE;
  if (upto && !passes_run(m, upto, run)) return EXIT_COMPILE;
  *out = m;
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
  fwrite(t->s ? t->s : "", 1, t->n, stdout);
  return fflush(stdout) ? fail(EXIT_IO, "standard output cannot be written") : 0;
}

// ---- commands -----------------------------------------------------------------------------------------------------
static Status run_check(Arena *a, const char *path, const Settings *s) {
  Module *m;
  TRY(build(a, path, s, PASS_reshard, &m));
  uint32_t params = 0;
  for (VarId v = 1; v < m->var.n; v++) params += m->var.at[v].kind == VAR_param;
  printf("%s: %u parameters, %u functions, no errors\n", path, params, m->fn.n - 1);
  return 0;
}

static Str model_name(Arena *a, const char *path) {                    // the file's name without folder and .mt
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  return arena_strndup(a, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

static Status run_compile(Arena *a, const char *path, const Settings *s) {
  Module *m;
  if (s->device && strcmp(s->device, "cpu")) return fail(EXIT_UNAVAILABLE, "--device %s: not yet; plans are made for cpu", s->device);
  TRY(build(a, path, s, PASS_select, &m));
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (m->axis.at[i].size > 1)
      return fail(EXIT_UNAVAILABLE, "mesh %s=%d: not yet; plans are made for one rank (mtc interp runs any mesh)", m->axis.at[i].name, m->axis.at[i].size);
  Str name = model_name(a, path);
  Plan *p = emit(m, (EmitOptions){.model = name, .tool = MT_VERSION, .apart = s->no_fuse});
  if (!s->no_objects) TRY(compile_objects(p));
  return plan_save(p, s->output ? s->output : arena_printf(a, "%s.plan", name));
}

static void print_params(Text *t, const Module *m) {
  for (VarId v = 1; v < m->var.n; v++) {
    const Var *p = &m->var.at[v];
    if (p->kind != VAR_param) continue;
    text_printf(t, "%-48s ", p->name);
    ir_print_type(t, m, p->type);
    const Type *type = &m->type.at[p->type];
    text_puts(t, "  stored [");
    for (int i = 0; i < type->ndim; i++)
      text_printf(t, "%s%s %lld", !i ? "" : p->axis[i] == p->axis[i - 1] ? "·" : ", ", dim_of(m, type->dim[i])->name, (long long)dim_of(m, type->dim[i])->extent);
    text_printf(t, "]%s\n", p->decay ? "" : "  no decay");
  }
}

static void print_steps(Text *t, Module *m, const Fn *only) {
  for (FnId i = 1; i < m->fn.n; i++)
    if (!m->fn.at[i]->is_body && (!only || only == m->fn.at[i])) steps_print(t, fuse(m, m->fn.at[i], m->arena, false));
}

static Status run_dump(Arena *a, const char *path, const Settings *s) {
  Module *m;
  Pass upto;
  Text t;
  TRY(after_pass(s->after, s->steps ? PASS_select : PASS_none, &upto));
  if (s->steps && upto != PASS_select) return fail(EXIT_USAGE, "--steps are those after the last pass");
  TRY(build(a, path, s, upto, &m));
  text_init(&t, a);
  const Fn *f = s->fn ? fn_find(m, intern(m->in, s->fn)) : 0;
  if (s->fn && !f) {
    VEC(Str) names = {0};
    for (FnId i = 1; i < m->fn.n; i++) vec_push(a, &names, m->fn.at[i]->name);
    Str near = nearest(s->fn, names.at, names.n);
    return fail(EXIT_USAGE, "no function '%s'%s%s%s", s->fn, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  if (s->steps) print_steps(&t, m, f);
  else if (s->params) print_params(&t, m);
  else if (s->dot) ir_dot_print(&t, m, (DotOptions){.fn = s->fn, .layer = (int)MIN(s->layer, INT32_MAX - 1), .unfold = s->unfold});
  else if (f) ir_print_fn(&t, f);
  else ir_print(&t, m);
  return print(&t);
}

static bool asked(const Module *m, const Fn *f, NodeId n, const char *what) { // a node: by %value, line, or part of its path
  const Node *node = fn_node(f, n);
  char *end;
  if (!what) return true;
  if (*what == '%') {
    unsigned long v = strtoul(what + 1, &end, 10);
    return !*end && node->nout && v >= node->out && v < node->out + node->nout;
  }
  unsigned long line = strtoul(what, &end, 10);
  if (!*end) return node->loc.line == line && strcmp(m->diag->source.at[node->loc.file].path, "prelude.mt");
  if (strstr(node->path, what)) return true;
  for (uint32_t i = 0; i < node->nout; i++)
    if (f->val.at[node->out + i].name && !strcmp(f->val.at[node->out + i].name, what)) return true;
  return (node->op == OP_read || node->op == OP_write || node->op == OP_accumulate) && strstr(m->var.at[node->attr.var].name, what);
}

static Status run_explain(Arena *a, const char *path, const char *what, const Settings *s) {
  Module *m;
  Pass upto;
  Text t;
  TRY(after_pass(s->after, PASS_reshard, &upto));
  TRY(build(a, path, s, upto, &m));
  text_init(&t, a);
  uint32_t found = 0;
  for (uint32_t i = 0; i < m->output.n; i++) {
    const Output *o = &m->output.at[i];
    if (what && strcmp(what, o->name)) continue;
    text_printf(&t, "output %s: %s, factor %g in the objective\n", o->name, o->per_step ? "one mean over the whole step" : "averaged over the step's microbatches", o->coef);
    found += what != 0;
  }
  if (!what) layout_report(m, 65536, &t);
  for (FnId i = 1; what && i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    bool head = false;
    for (NodeId n = 1; n < f->node.n; n++) {
      if (!asked(m, f, n, what)) continue;
      if (!head) text_printf(&t, "%s:\n", f->name), head = true;
      ir_print_node(&t, f, n);
      text_puts(&t, "\n");
      found++;
    }
  }
  if (what && !found) return fail(EXIT_USAGE, "%s: nothing is called '%s': a value is %%12, a line 45, a name h.0.attn or wte", path, what);
  return print(&t);
}

static Status run_interp(Arena *a, const char *path, const Settings *s) {
  Module *m;
  TRY(build(a, path, s, PASS_reshard, &m));
  return interp_command(a, m, &s->interp);
}

// ---- main ---------------------------------------------------------------------------------------------------------
static void usage(FILE *to) {
  fprintf(to, "usage: mtc COMMAND …\n\nA compiler of models for training: from a model text to a plan that mtrun executes.\n\n");
  for (size_t i = 0; i < COUNT(commands); i++) fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].about);
  fprintf(to, "\n`mtc COMMAND --help` says more; the language is described in grammar/LANGUAGE.md, messages in grammar/ERRORS.md.\n");
}

static Status command(Arena *a, const Command *c, int argc, char **argv) {
  Settings s = {.layer = -1};
  Words words = {0};
  bool help = false;
  TRY(options_parse(a, c, argc, argv, &s, &words, &help));
  if (help) return options_help(c, &s, stdout), 0;
  bool explain = !strcmp(c->name, "mtc explain");
  if (words.n < 1 || words.n > (explain ? 2u : 1u)) return fail(EXIT_USAGE, "usage: %s %s (see %s --help)", c->name, c->words, c->name);
  const char *path = words.at[0].text;
  if (!strcmp(c->name, "mtc compile")) return run_compile(a, path, &s);
  if (!strcmp(c->name, "mtc check")) return run_check(a, path, &s);
  if (!strcmp(c->name, "mtc dump")) return run_dump(a, path, &s);
  if (!strcmp(c->name, "mtc interp")) return run_interp(a, path, &s);
  if (!strcmp(c->name, "mtc opt")) return s.after ? passes_opt(path, s.after, (RunOptions){0}) : fail(EXIT_USAGE, "mtc opt wants --pass=A,B");
  return run_explain(a, path, words.n == 2 ? words.at[1].text : 0, &s);
}

int main(int argc, char **argv) {
  program_name = "mtc";
  if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))) return usage(stdout), 0;
  if (argc > 1 && !strcmp(argv[1], "--version")) return puts("mtc " MT_VERSION), 0;
  if (argc < 2) return usage(stderr), EXIT_USAGE;
  Str names[COUNT(commands)];
  for (size_t i = 0; i < COUNT(commands); i++) {
    names[i] = commands[i].name + 4;
    if (strcmp(argv[1], names[i])) continue;
    Arena *a = arena_create();
    Status status = command(a, &commands[i], argc - 1, argv + 1);
    arena_destroy(a);
    return status;
  }
  Str near = nearest(argv[1], names, COUNT(names));
  return fail(EXIT_USAGE, "no command '%s'%s%s%s", argv[1], near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "; see mtc --help");
}
