// program.h -- a model text with its imports and the prelude, after every override: who is called what, the numbers
// known before anything is lowered, and the settings.
#ifndef MT_PROGRAM_H
#define MT_PROGRAM_H
#include "compiler/ir.h"
#include "grammar/ast.h"

// What the command line says, in its order: later ones win.
typedef enum { OVERRIDE_config, OVERRIDE_preset, OVERRIDE_set, OVERRIDE_mesh, OVERRIDE_map, OVERRIDE_no_map, OVERRIDE_parallel } OverrideKind;
typedef struct { OverrideKind kind; const char *text; } Override;      // "hidden=64" "demo" "train.steps=9" "dp=2,tp=2" "seq -> cp" "seq" FILE

typedef struct Scope Scope;
typedef struct { Str name; const Ast *ast; Scope *scope; DType keep; } Def;  // a fn, block or model; keep: what float means inside, or DT_none

typedef enum { NUM_error, NUM_number, NUM_bool, NUM_string } NumberKind;
typedef struct { NumberKind kind; double num; Str str; } Number;       // a value known at compile time

typedef struct { Str name; Number value; Span loc; const char *from; } Config; // from: "-D", "--preset", or 0: as written

struct Scope {                               // one for the prelude, one for the user's files
  VEC(Def) def;       Map def_by_name;       // Str -> index + 1
  VEC(Config) config; Map config_by_name;
  Map dim_by_name;                           // Str -> DimId
  Scope *up;                                 // where functions are looked up next: the prelude, or 0
};

typedef struct { Str name; double coef; Span loc; } Term;              // one term of train.minimize

typedef struct {
  Module *module;                            // with axes, rules, dims and settings; no functions yet
  Arena *arena; Intern *in; Diag *diag;
  Scope prelude, user;
  const Def *model;
  const Ast *objective;                      // train.minimize as written, or 0
  VEC(Term) minimize;
  VEC(Str) no_decay, decay;                  // patterns of parameter names
  Span no_decay_at, decay_at;
  int64_t micro_batch, global_batch;
} Program;

// Reads path ("-": standard input) and what it imports; applies the overrides. 0 after errors (printed).
// *status: the exit code then (a text error is EXIT_COMPILE, a missing file EXIT_MISSING, …).
Program *sema(Arena *a, Intern *in, Diag *d, const char *path, const Override *o, size_t n, Status *status);

// Settings (settings.c): one `path = value` of the text or the command line; then the defaults of what was not said.
void setting_apply(Program *p, Str path, const Ast *set);
void settings_complete(Program *p);

// Folding of what is known at compile time (expr.c); the operator's and function's words as in the language.
Number number_of(double v);
Number bool_of(bool v);
Number fold_unary(Diag *d, Span at, Str op, Number a);
Number fold_binary(Diag *d, Span at, Str op, Number a, Number b);
bool   fold_call(Diag *d, Span at, Str fn, const Number *arg, uint32_t n, Number *out); // false: no such function of numbers
const char *number_text(Arena *a, Number n);
Number number_eval(Program *p, const Scope *scope, const Ast *e);      // reports what is no number
void   word_suggest(Diag *d, const char *word, const Str *words, size_t n); // "did you mean 'x'?" when one is near

// The program as a module: variables, functions forward prologue eval logits, bodies of composites. 0 after errors.
Module *lower(Program *p);
#endif
