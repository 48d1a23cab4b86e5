// lower.h -- what the parts of lowering share: the call being instantiated, its values, and how a value is
// made.
#ifndef MT_LOWER_H
#define MT_LOWER_H
#include "compiler/program.h"

// A value of the language: a number known now, or a tensor of the function being built.
typedef struct { bool tensor; Number number; ValId v; } Val;
typedef VEC(Val) Vals;

// a dim parameter: one dim or a group; n = 0: a local dim whose mistake is said
typedef struct { Str name; uint32_t n; const DimId *dim; } DimBind;
typedef struct {
  Str name;
  Val val;
  Span at;        // where it was last assigned
  uint64_t seen;  // the last iteration whose carried values were compared
} Named;
// label "": positional; ast: the expression
typedef struct { Str label; const Ast *ast; Span at; Val val; } Arg;
typedef struct { uint32_t name; Val was; } Assigned;  // inside repeat: Frame.val[name] was this

typedef struct Frame Frame;
struct Frame {  // one call of a fn, block or model
  Frame *up;
  const Def *def;
  const Ast *call;  // 0: the model
  Scope *scope;
  VEC(DimBind) dim; Map dim_by_name;  // parameters and local dims; index + 1, 0: ended with its iteration
  VEC(DimId) local;                   // dims declared here: no result has them
  VEC(Named) val; Map val_by_name;    // index + 1, 0: ended with its iteration
  Map ended;                          // name -> the repeat (Ast *) with which it ended
  VEC(Named) index;                   // repeat indices
  VEC(Assigned) assigned;             // inside repeat: what was assigned, in order
  const Ast *returned;                // the return statement that was reached
  Str path;                           // instance path; may hold {dim} holes
  DType flt;                          // what `float` means: DT_float, or wider inside keep
  const char *why;
  uint32_t depth;
  bool collides;  // one of its parameters was refused: the others are, too
};

typedef struct { VarId var; ValId count; Span loc; } Den;  // a stepmean's denominator

typedef struct {
  Program *p;
  Module *m;
  Arena *a;
  Fn *fn;  // where nodes go
  Frame *frame;
  bool training, stop;  // stop: enough errors, or too large
  uint32_t layer;
  uint64_t work, iteration;  // statements, calls and iterations so far; the current iteration's number
  uint64_t nodes;            // in functions that are complete
  Map declared;              // this elaboration's parameters: path -> index + 1 into declared_at
  VEC(Span) declared_at;     // the user's line of each
  Map random;                // path -> random ops so far
  ValId step, sample;        // in a body that draws: its arguments; 0: the variables are read
  Map body, bodies;          // hash of a composite's signature -> FnId; Def -> how many it has
  Map local, locals;         // hash of a local dim -> DimId; of its function and name -> how many there are
  VEC(Den) den;
  Map den_var, den_seen;                 // hash of a stepmean's place -> VarId; -> how often it was reached
  VEC(ValId) stepmean;                   // results of stepmeans in fn
  Map reported;                          // hash of code and place of each error: one mistake, one message
  VEC(Span) trace; VEC(Str) trace_text;  // notes for below the last error's: the callers
  bool muted;                            // the last error was a repetition: its notes are, too
} Lower;

// ---- lower.c: values, messages, names, statements ---------------------------------------------------------
Val  val_error(void);
bool val_is_error(Val v);
Val  val_number(Number n);
Val  val_tensor(Lower *l, ValId v, Span at);           // an error when it is too large
bool type_is_small(const Lower *l, const Type *t);     // so that no count of bytes overflows
const Type *val_shape(const Lower *l, Val v);          // of a tensor
const char *val_show(const Lower *l, Val v);           // "float[batch, seq]", "0.5"
const char *expr_words(const Lower *l, const Ast *e);  // the expression as written, or "the value"
const char *dims_show(const Lower *l, const DimId *dim, uint32_t n);  // "batch, seq"
const char *dims_and(const Lower *l, const DimId *dim, uint32_t n);   // "batch, seq and heads"
Str   dim_word(const Lower *l, DimId d);                              // its name as the user wrote it
bool  dims_are_roles(const Lower *l, DimId a, DimId b);               // of one dim, so that a rename is meant
Build at_span(const Lower *l, Span at);
Span  name_span(const Ast *e);  // of a call's name, without its arguments

// An error of the user's text. Where the place is in the prelude, the user's call is shown and the place is a
// note. The callers come last, behind the notes. The same code at the same place is said once. Returns false.
bool lower_error(Lower *l, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);
void lower_note(Lower *l, const char *fmt, ...) PRINTF(2, 3);
void lower_note_at(Lower *l, Span at, const char *fmt, ...) PRINTF(3, 4);
// a note for each: "x is float[batch]"
void lower_types(Lower *l, const Val *v, const Ast *const *as, uint32_t n);
void lower_suggest(Lower *l, const char *word, const Str *words, size_t n);
void lower_fold_error(Lower *l, Span at, const Fold *f);
void lower_finish(Lower *l);  // the last error's callers

bool budget(Lower *l, Span at, uint64_t more);  // false: the program is too large, or stopped
bool whole_number(Number n, double least);
void no_dim(Lower *l, Span at, Str name);  // MT0220
bool dim_find_here(const Lower *l, Str name, DimBind *out);
// names and groups, flat; false after an error
bool dims_eval(Lower *l, const Ast *list, DimId *out, uint32_t *n);
void named_assign(Lower *l, const Ast *name, Val v);
void named_add(Lower *l, Frame *f, Str name, Val v, Span at);  // a formal or input
Val  named_eval(Lower *l, const Ast *e);
bool stmts_run(Lower *l, const Ast *stmts, Vals *out);  // true when they returned (into out)

// ---- lower_expr.c: dtypes, alignment, contraction, operators ----------------------------------------------
Val   expr_eval(Lower *l, const Ast *e);
void  exprs_eval(Lower *l, const Ast *e, Vals *out);  // a call may give several
DType dtype_wider(DType a, DType b);
const char *dtype_class(DType t);                       // "bool", "integer", "float"
bool  number_fits(Number n, DType t);                   // bool to bool, whole numbers in range to integers
Val   to_dtype(Lower *l, Val v, DType dtype, Span at);  // a number becomes a constant
// aligned, dtypes made equal
Val   elementwise(Lower *l, Span at, Op op, const Val *in, const Ast *const *as, uint32_t n);

// ---- lower_param.c: parameters and their paths ------------------------------------------------------------
void param_statement(Lower *l, const Ast *s);
// A path of the text, repeat indices filled in and dims under their own names; 0 after an error.
Str  path_fill(Lower *l, const Ast *at, Str path);

// ---- lower_call.c, lower_prim.c ---------------------------------------------------------------------------
void call_eval(Lower *l, const Ast *e, Vals *out);
// A primitive of the language; false after an error.
bool prim_eval(Lower *l, const Ast *e, const Arg *arg, uint32_t n, Vals *out);
bool prim_known(Str name);
void draw_place(Lower *l, Build *b, ValId in[2]);  // the step and the first sample, from which random counts
bool prim_takes_dims(Str name);                    // its arguments are dims: index(d), extent(d)
Str  prim_name(size_t i);                          // 0 past the end

// ---- uncalled.c: names and calls in bodies that were not lowered ------------------------------------------
void uncalled_check(Program *p);
#endif
