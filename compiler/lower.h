// lower.h -- what the parts of lowering share: the call being instantiated, its values, and how a value is made.
#ifndef MT_LOWER_H
#define MT_LOWER_H
#include "compiler/program.h"

// A value of the language: a number known now, or a tensor of the function being built.
typedef struct { bool tensor; Number number; ValId v; } Val;

typedef struct { Str name; uint32_t n; const DimId *dim; } DimBind;   // a dim parameter: one dim or a group
typedef struct { Str name; Val val; Span end; } Named;                // end: the repeat that its iteration-local value ended with
typedef struct { Str label; const Ast *ast; Val val; } Arg;           // label "": positional

typedef struct Frame Frame;
struct Frame {                               // one call of a fn, block or model
  Frame *up;
  const Def *def;
  const Ast *call;                           // 0: the model
  Scope *scope;
  VEC(DimBind) dim; Map dim_by_name;         // parameters and local dims
  VEC(DimId) local;                          // dims declared here: no result has them
  VEC(Named) val; Map val_by_name;           // index + 1
  VEC(Named) index;                          // repeat indices
  Str path;                                  // instance path; may hold {dim} holes
  DType flt;                                 // what `float` means: DT_float, or wider inside keep
  const char *why;
  uint32_t depth;
};

typedef struct { VarId var; ValId count; Span loc; } Den;             // a stepmean's denominator

typedef struct {
  Program *p;
  Module *m;
  Arena *a;
  Fn *fn;                                    // where nodes go
  Frame *frame;
  bool training, stop;                       // stop: enough errors, or too large
  uint32_t layer;
  uint64_t work;                             // statements and calls so far
  Map declared;                              // this elaboration's parameters: path -> index + 1 into declared_at
  VEC(Span) declared_at;
  Map random;                                // path -> random ops so far
  Map body;                                  // hash of a composite's signature -> FnId
  VEC(Den) den;
  VEC(ValId) stepmean;                       // results of stepmeans in fn
} Lower;

typedef VEC(Val) Vals;

Val  val_error(void);
bool val_is_error(Val v);
Val  val_number(Number n);
Val  val_tensor(Lower *l, ValId v, Span at);                          // checks its size
const Type *val_shape(const Lower *l, Val v);                         // of a tensor
const char *val_show(const Lower *l, Val v);                          // "float[batch, seq]", "0.5"
const char *expr_words(const Lower *l, const Ast *e);                      // the expression as written, or "the value"
const char *dims_show(const Lower *l, const DimId *dim, uint32_t n);

Build at_span(const Lower *l, Span at);
void  lower_error(Lower *l, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5); // with the callers' places

bool dim_find_here(const Lower *l, Str name, DimBind *out);
bool dims_eval(Lower *l, const Ast *list, DimId *out, uint32_t *n);   // names and groups, flat; false after an error
Val  expr_eval(Lower *l, const Ast *e);
void exprs_eval(Lower *l, const Ast *e, Vals *out);                   // a call may give several

DType dtype_wider(DType a, DType b);
Val  to_dtype(Lower *l, Val v, DType dtype, Span at);                 // a number becomes a constant
Val  elementwise(Lower *l, Span at, Op op, const Val *in, const Ast *const *as, uint32_t n); // aligned, dtypes made equal
Val  contract(Lower *l, Span at, Val a, Val b, const Ast *ea, const Ast *eb, const Ast *dims);

// lower_call.c
void call_eval(Lower *l, const Ast *e, Vals *out);
// lower_prim.c: a primitive of the language; false when there is none of that name
bool prim_eval(Lower *l, const Ast *e, const Arg *arg, uint32_t n, Vals *out);
bool prim_known(Str name);
Str  prim_name(size_t i);                                             // 0 past the end

// Statements of a body; true when it returned (into out).
bool stmts_run(Lower *l, const Ast *stmts, Vals *out);
#endif
