// program.h -- a model text with its imports and the prelude, after every override: who is called what, the
// numbers known before anything is lowered, and the settings.
#ifndef MT_PROGRAM_H
#define MT_PROGRAM_H
#include "compiler/ir.h"
#include "grammar/ast.h"

// What the command line says, in its order: later ones win.
typedef enum {
  OVERRIDE_config, OVERRIDE_preset, OVERRIDE_set, OVERRIDE_mesh, OVERRIDE_map, OVERRIDE_no_map, OVERRIDE_parallel
} OverrideKind;
// "hidden=64" "demo" "train.steps=9" "dp=2,tp=2" "seq -> cp" "seq" FILE
typedef struct { OverrideKind kind; const char *text; } Override;

typedef struct Scope Scope;
// a fn, block or model; keep: what float means inside, or DT_none
typedef struct { Str name; const Ast *ast; Scope *scope; DType keep; } Def;

typedef enum { NUM_error, NUM_number, NUM_bool, NUM_string } NumberKind;
typedef struct { NumberKind kind; double num; Str str; } Number;  // a value known at compile time

typedef enum { STATE_new, STATE_busy, STATE_done } State;  // of what is worked out when it is first asked for
typedef struct {
  Str name;
  Number value;  // when state is done
  Span loc;
  const char *from;  // "-D", "preset demo", or 0: as written
  const Ast *ast;    // the value's expression, after overrides
  State state;
} Config;

typedef struct { const Ast *ast; State state; DimId id; } DimItem;  // a dim of the user's text

struct Scope {                             // one for the prelude, one for the user's files
  VEC(Def) def;       Map def_by_name;     // Str -> index
  VEC(Config) config; Map config_by_name;  // Str -> index
  Map dim_by_name;                         // Str -> DimId; the user's: when Program.dims_known
  Scope *up;                               // where functions are looked up next: the prelude, or 0
};

typedef struct { Str name; double coef; Span loc; } Term;  // one term of train.minimize

typedef struct {
  Module *module;  // with axes, rules, dims and settings; no functions yet
  Arena *arena; Intern *in; Diag *diag;
  Scope prelude, user;
  const Def *model;
  const Ast *objective;  // train.minimize as written, or 0
  VEC(Term) minimize;
  VEC(Str) no_decay, decay;  // patterns of parameter names
  Span no_decay_at, decay_at;
  Map rule_by_dim;            // dim and weakness (rule_key) -> index + 1 into Module.rule, 0: dropped
  VEC(const Ast *) said_map;  // the rules that --map added: their dims must have a use
  int64_t micro_batch, global_batch;
  VEC(DimItem) dim; Map dim_item;  // Str -> index into dim
  bool dims_known;                 // extents may be asked for: settings and mesh are complete
  uint32_t depth;                  // of configs and dims that need others
} Program;

// Reads path ("-": standard input) and what it imports; applies the overrides. 0 after errors (printed).
// *status: the exit code then (a text error is EXIT_COMPILE, a missing file EXIT_MISSING, …).
Program *sema(Arena *a, Intern *in, Diag *d, const char *path, const Override *o, size_t n, Status *status);

// Settings (settings.c): one `path = value` of the text or the command line; then the defaults of what was
// not said.
void setting_apply(Program *p, Str path, const Ast *set);
void settings_complete(Program *p);
const char *setting_doc(const char *path);     // also of an argument: train.optimizer.lr; 0: no such setting
// "train.steps" for "steps", "train.optimizer.lr" for "lr"; 0: there is none
const char *setting_called(Program *p, const char *word);
bool setting_suggest(Program *p, const char *path);  // a note that names one whose last word is the path's
bool setting_unmade(const char *path);         // it, or an argument of it, is understood and has no effect yet
void setting_unknown(Program *p, Str path, Span at);  // MT0330
void settings_list(Text *t);                          // every path, its default and what it is
const char *prim_form(size_t i);                      // how the i-th primitive is called; 0 past the end

// Folding of what is known at compile time (expr.c); the operator's and function's words as in the language.
typedef struct { Arena *arena; const char *code, *why; } Fold;  // why: what is wrong with the operands, or 0
Number number_of(double v);
Number bool_of(bool v);
Number fold_unary(Fold *f, Str op, Number a);
Number fold_binary(Fold *f, Str op, Number a, Number b);
// false: no such function of numbers
bool   fold_call(Fold *f, Str fn, const Number *arg, uint32_t n, Number *out);
const char *number_text(Arena *a, Number n);
const Number *number_predefined(const char *name);                 // pi, inf, training; 0 for other names
Number number_eval(Program *p, const Scope *scope, const Ast *e);  // reports what is no number
// "did you mean 'x'?" when one is near
void   word_suggest(Diag *d, const char *word, const Str *words, size_t n);

// Configs and dims (declare.c), worked out in whatever order they are needed.
Number config_value(Program *p, Config *c);
static inline uint64_t rule_key(Str dim, bool weak) { return key_of(dim) * 2 + weak; }
DimId  dim_value(Program *p, Str name);        // a dim of the user's text; 0: there is none, or an error
const char *dim_configs(Program *p, DimId d);  // "ctx and maxpos": those that its extent comes from
void   values_explain(Program *p, const Ast *e, Text *t);  // "hidden is 770 (-D), nheads is 12 (m.mt:8:3)"

// The program as a module: variables, functions forward prologue eval logits, bodies of composites. 0 after
// errors.
Module *lower(Program *p);
#endif
