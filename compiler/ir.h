// ir.h -- the graph: flat SSA over named dims. A module holds functions; a function is a list of nodes in order.
//
// No regions and no control flow: `repeat` is unrolled, microbatches are never. State is module-level variables that
// nodes read and write. One global view throughout: a type names whole dims and says how a mesh splits them; what a
// rank holds is computed from that (type_local).
#ifndef MT_IR_H
#define MT_IR_H
#include "runtime/base.h"
#include "runtime/diag.h"
#include "runtime/dtype.h"
#include "runtime/tensors.h"

typedef uint32_t DimId, TypeId, ValId, NodeId, FnId, VarId;       // index into a table; 0: none
enum { MAX_DIMS = 8, MAX_AXES = 8, MAX_SPLIT = 4 };

// ---- dims and the mesh --------------------------------------------------------------------------------------------
typedef struct {
  Str name;                                  // unique in the module
  int64_t extent, size;                      // entries that exist; entries stored (size >= extent, the rest is padding)
  DimId root;                                // the dim it is a role of, or itself; roles share the order
  // order, on the root: 0 identity, else chunks (2·cp): rank r owns r and n-1-r
  uint32_t zigzag;
  bool sample;                               // counts the samples of a step (the dim declared without an extent)
  bool ragged;                               // an upper bound: the counts are an operand (places of an expert)
  // a rank's part of another dim, cut by these axes: its entries keep their numbers there. 0: no part
  DimId whole; uint16_t cut;
} Dim;

typedef struct { Str name; int32_t size; } Axis;                  // rank = tp + TP·(cp + CP·(ep + EP·(dp + DP·pp)))
// axis: index into Module.axis
typedef struct { Str dim; bool weak; uint8_t naxis; uint8_t axis[MAX_SPLIT]; Span loc; } MapRule;

// The axes that split one dim, the first the slowest: 4 bits each, axis index + 1, first in the lowest bits. 0: whole.
typedef uint16_t Split;

typedef enum { PENDING_none, PENDING_sum, PENDING_max } Pending;

typedef struct {                             // interned: equal types have equal ids
  DType   dtype;
  uint8_t ndim;
  // over the axes in pending_axes (bit i: axis i): the value is the sum of the ranks'
  Pending pending;
  uint8_t pending_axes;
  DimId   dim[MAX_DIMS];                     // storage order, slowest first
  Split   split[MAX_DIMS];
} Type;

// ---- ops ----------------------------------------------------------------------------------------------------------
typedef enum {
  OP_none,
#define OP(name, in, out, flags, attrs, shape, vjp, split, kernel) OP_##name,
#include "compiler/ops.def"
#undef OP
  OP_COUNT
} Op;

enum {
  OPF_0 = 0, OPF_EW = 1, OPF_LINEAR = 2, OPF_VIEW = 4, OPF_STATE = 8, OPF_RANDOM = 16, OPF_COLL = 32,
  OPF_COMPOSITE = 64, OPF_CHEAP = 128
};
enum {
  AT_NONE = 0, AT_NUM = 1, AT_AT = 2, AT_VAR = 4, AT_PATH = 8, AT_DIMS = 16, AT_TO = 32, AT_AXES = 64, AT_ARGS = 128
};
typedef enum { SPLIT_free, SPLIT_sum, SPLIT_max, SPLIT_internal, SPLIT_frozen } SplitKind;
typedef enum { KC_none, KC_map, KC_row, KC_gemm, KC_scatter, KC_tile, KC_coll, KC_COUNT } KernelClass;

typedef struct { Str name; double num; } NamedNum;

typedef struct {                             // which fields count is the op's row
  double  num;                               // const: the value · shift: the fill
  int64_t at;                                // slice, unslice: first entry · shift: by · cumsum: 1 = from the end
  VarId   var;
  // random: the op's source path; the low 32 bits of hash_bytes(path, 0) are in the counter
  Str     path;
  uint8_t ndims, nto, nargs, axes;           // axes: mask of mesh axes
  DimId   dims[MAX_DIMS];                    // the dims in brackets
  DimId   to[MAX_DIMS];                      // the dims after the arrow
  const NamedNum *args;                      // a composite's numbers, in the prelude's order; bools are 0 and 1
} Attr;

typedef struct Module Module;
typedef struct Fn Fn;
typedef struct Node Node;

typedef struct {
  const char *name;
  int8_t nin, nout;
  uint16_t flags, attrs;
  uint8_t nsplit; SplitKind split[4];
  KernelClass kernel;
} OpInfo;
extern const OpInfo op_info[OP_COUNT];
Op op_find(const char *name);                                     // OP_none when there is none
SplitKind op_split(Op op, uint32_t i);                            // of the i-th dim in brackets (dims, then to)

struct Node {
  Op       op;
  uint16_t nin, nout;
  uint32_t in;                               // first operand in Fn.operand
  ValId    out;                              // results are out, out+1, …
  Attr     attr;
  FnId     body;                             // composites
  Span     loc;                              // the model line; never 0
  NodeId   fwd;                              // backward and recompute nodes: the forward node, in the same function
  Str      why;                              // pass and reason: "autodiff: gradient of gelu"; never 0
  Str      path;                             // instance path, as its parameters' names begin: "h.3.attn"; "" at the top
  uint32_t layer;                            // 1 + index of the outermost repeat's iteration; 0: outside
};

typedef struct { TypeId type; NodeId def; Str name; } Value;      // def 0: an argument; name: the user's, or 0

// A function. Ids of values and nodes begin with 1 and are dense, in the order of definition: arguments first.
struct Fn {
  Module *module;
  Str name;                                  // forward eval logits prologue micro update, or "layernorm.3" (a body)
  bool is_body;
  Op   body_of;                              // bodies: the composite
  VEC(Node)  node;                           // [0] is unused
  VEC(Value) val;                            // [0] is unused
  VEC(ValId) operand;                        // pool of all nodes' operands
  VEC(ValId) arg, ret;
  VEC(Str)   ret_name;                       // beside ret; a body's are ""
};

// ---- state --------------------------------------------------------------------------------------------------------
#define VAR_KINDS(X) X(param) X(copy) X(grad) X(moment) X(scalar)
#define INIT_KINDS(X) X(zeros) X(ones) X(normal) X(uniform)
#define X(kind) VAR_##kind,
typedef enum { VAR_KINDS(X) VAR_COUNT } VarKind;
#undef X
#define X(kind) INIT_##kind,
typedef enum { INIT_KINDS(X) INIT_COUNT } InitKind;
#undef X
extern const char *const var_kind_name[VAR_COUNT], *const init_kind_name[INIT_COUNT];

typedef struct {
  Str     name;                              // a parameter's path, with holes: "experts.{expert}.w2.weight"
                                             // others: NAME:copy NAME:grad NAME:exp_avg NAME:exp_avg_sq, scalars "$lr"
  TypeId  type;
  VarKind kind;
  VarId   of;                                // copies, gradients, moments: the parameter
  InitKind init; double a, b;                // normal(0, a) · uniform(a, b)
  bool    decay;                             // parameters: weight decay applies
  uint8_t axis[MAX_DIMS];                    // parameters: the axis of the checkpoint tensor of each dim, from 0,
                                             // ascending: [embed, (qkv, heads, hd)], stored [embed, 3·heads·hd], has
                                             // 0 1 1 1
  uint8_t partial;                           // of a rank's own program: the sum over these axes is the variable's value
  Span    loc;
  Str     why;                               // "gpt2.mt: param" or the pass that made it
} Var;

// ---- settings: what precision, parallel and train say, after every override -----------------------------------------
typedef enum { SET_num, SET_word, SET_bool, SET_call } SettingKind;
typedef struct Setting Setting;
struct Setting {
  Str path;                                  // "train.optimizer"; an argument of a call: its name ("" when positional)
  SettingKind kind;
  double num;                                // SET_num, SET_bool
  Str word;                                  // SET_word, and the callee of SET_call
  uint32_t narg; Setting *arg;               // SET_call
  Span loc, name;                            // of the value; of an argument's name, line 0 where none is written
};

typedef struct {                             // an output of the model
  Str    name;
  double coef;                               // its factor in the objective; 0: not in it
  bool   per_step;                           // linear in stepmeans: adds up over microbatches; else averaged over them
  Span   loc;
} Output;

struct Module {
  Arena  *arena;
  Intern *in;
  Diag   *diag;
  VEC(Dim)     dim;                          // [0] of each table is unused, but for axis and rule
  VEC(Type)    type;
  VEC(Var)     var;
  VEC(Fn *)    fn;
  VEC(Axis)    axis;                         // pp dp ep cp tp
  VEC(MapRule) rule;
  VEC(Setting) set;
  VEC(Output)  output;
  Map dim_by_name, var_by_name, fn_by_name, type_by_hash; // Str or hash -> id
};

// ---- building -----------------------------------------------------------------------------------------------------
Module *module_create(Arena *a, Intern *in, Diag *d);             // a mesh without axes, empty tables
DimId   dim_add(Module *m, Dim d);                                // name must be new (dim_find); root 0: itself
DimId   dim_find(const Module *m, Str name);
int     axis_find(const Module *m, Str name);                     // -1 when there is none
TypeId  type_intern(Module *m, Type t);
TypeId  type_make(Module *m, DType dtype, const DimId *dims, uint32_t n);          // whole on every rank
VarId   var_add(Module *m, Var v);                                // name must be new
VarId   var_find(const Module *m, Str name);
const Output *output_find(const Module *m, Str name);              // 0 when there is none
Storage var_storage(const Module *m, const Var *param);           // whole, without padding: as checkpoints have it
Fn     *fn_create(Module *m, Str name);                           // appended; name must be new (fn_replace to exchange)
Fn     *fn_like(Module *m, const Fn *f, Str name);                // the same, with room for about as much as f has
void    fn_reserve(Fn *f, const Fn *like);                         // that room, for a function that is in no module yet
Fn     *fn_find(const Module *m, Str name);
uint32_t *fn_uses(const Fn *f, Arena *a);                        // by value: how many operands and results it is
uint32_t *fn_touches(const Fn *f, Arena *a);                     // by variable: how many nodes read or write it
VarId     fn_read_of(const Fn *f, ValId v);                      // the variable that v is as it was at entry, or 0
void    fn_replace(Module *m, Fn *was, Fn *now);                  // now takes was's place, id and name
FnId    fn_id(const Fn *f);
// no node may have it as its body; ids behind it move down
void    fn_remove(Module *m, Fn *f);
// A new function with what vals (n of them) need of f: its nodes in order, and only those
// arguments. got[i]: vals[i] there.
Fn     *fn_slice(Module *m, const Fn *f, const ValId *vals, uint32_t n, Str name, ValId *got);

// Where new nodes go and what they carry; copied freely.
typedef struct { Fn *fn; Span loc; Str why, path; NodeId fwd; uint32_t layer; } Build;
ValId ir_arg(Fn *f, TypeId t, Str name);                          // before the first node
void  ir_return(Fn *f, ValId v, Str name);
// Adds a node; result types from the op's shape rule. Returns the first result, or 0 for an op without results.
// A violated rule is a bug(): check user text before.
ValId ir_add(Build *b, Op op, const ValId *in, uint32_t nin, Attr at);
// The same with the results' types given: any order of the dims the rule finds, and the dtype
// where the op leaves it open.
ValId ir_add_typed(Build *b, Op op, const ValId *in, uint32_t nin, Attr at, const TypeId *types, uint32_t nout,
                   FnId body);
// Copies node n of function `from` into b->fn with operands in[]; keeps its attributes, line,
// why, path, layer and body.
ValId ir_copy(Build *b, const Fn *from, NodeId n, const ValId *in);
// For functions made from others. map, by value of the other function, says what became of each.
void   ir_args(Fn *f, const Fn *from, ValId *map);                // f gets from's arguments
ValId *ir_operands(const Fn *from, const Node *n, const ValId *map);
void   ir_results(const Node *n, ValId first, ValId *map);        // n's results became first, first + 1, …
Build build_like(Fn *f, const Fn *from, NodeId n);                // a Build that carries what node n of from carries

// Common shapes of node, for rules and passes.
ValId ir_const(Build *b, double num, DType dtype);
ValId ir_unary(Build *b, Op op, ValId a);
ValId ir_binary(Build *b, Op op, ValId x, ValId y);
ValId ir_select(Build *b, ValId c, ValId x, ValId y);
ValId ir_cast(Build *b, ValId a, DType dtype);                    // a itself when it has that dtype
ValId ir_read_var(Build *b, VarId v);
void  ir_write_var(Build *b, VarId v, ValId x);
// sum, reduce_max, expand, …; a itself when n = 0
ValId ir_dims(Build *b, Op op, ValId a, const DimId *dims, uint32_t n);
ValId ir_dot(Build *b, ValId x, ValId y, const DimId *dims, uint32_t n);

// ---- reading ------------------------------------------------------------------------------------------------------
static inline const Node *fn_node(const Fn *f, NodeId n) { return &f->node.at[n]; }
static inline const ValId *node_in(const Fn *f, const Node *n) { return f->operand.at + n->in; }
static inline const Type *val_type(const Fn *f, ValId v) { return &f->module->type.at[f->val.at[v].type]; }
static inline const Dim *dim_of(const Module *m, DimId d) { return &m->dim.at[d]; }
static inline bool op_has(Op op, unsigned flag) { return (op_info[op].flags & flag) != 0; }

int     type_pos(const Type *t, DimId d);                         // position of d, or -1
bool    dims_have(const DimId *dims, uint32_t n, DimId d);
bool    type_is_float(const Type *t);                             // with DT_float
static inline DimId dim_whole(const Module *m, DimId d) { return dim_of(m, d)->whole ? dim_of(m, d)->whole : d; }
static inline uint32_t dim_zigzag(const Module *m, DimId d) {     // chunks of its order, or its whole's; 0: in order
  return dim_of(m, dim_of(m, dim_whole(m, d))->root)->zigzag;
}
// What the terms and the sum of a collective are rounded to: for gradients precision.grad_reduce, if that is narrower than
// their format; DT_none: to nothing else.
DType   sum_format(const Fn *f, NodeId n);
Str     part_first_name(const Module *m, DimId part);             // the scalar with the number of its first entry
VarId   part_first(const Module *m, DimId d);                     // that scalar; 0: d is whole
bool    is_sharded(const Module *m);                              // types are what one rank holds: see pass shard
bool    type_is_whole(const Type *t);                             // no dim is split, no sum is pending
uint8_t type_axes(const Type *t);                                 // that split it or that a sum is pending over
double  attr_arg(const Attr *at, const char *name, double otherwise); // a composite's number
int64_t split_ways(const Module *m, Split s);                     // product of its axes' sizes
int64_t axes_ways(const Module *m, uint8_t axes);                 // of a mask of axes
const char *axes_text(const Module *m, Arena *a, uint8_t axes, const char *between); // their names
int64_t type_local(const Module *m, const Type *t, uint32_t i);   // stored entries of dim i on one rank
int64_t type_count(const Module *m, const Type *t);               // stored entries on one rank; -1 when past 2^62
int64_t type_bytes(const Module *m, const Type *t);               // of those, in storage; -1 when past 2^62
uint8_t split_mask(Split s);                                      // the axes in it
Split   split_push(Split s, uint32_t axis);                       // one axis more, the fastest
const Setting *setting_find(const Module *m, const char *path);   // 0 when it is not set
const Setting *setting_arg(const Setting *call, const char *name);// of a SET_call; 0 when absent
double  setting_num(const Module *m, const char *path, double otherwise); // also "train.optimizer.lr"
Str     setting_word(const Module *m, const char *path, const char *otherwise); // of a call: the callee

// The type the op's rule gives its results. False: why says what is wrong ("operand 2 has kseq, which …").
// Types given by a builder or a text must have the same set of dims; see shape.c for the dtypes an op leaves open.
bool shape_infer(Module *m, const Fn *f, const Node *n, TypeId *out, Text *why);
// Whether a result may have type `given` where the rule finds `found`: any order of the dims, the dtype that
// const, cast and random leave open, a dot's wider one, random's dims, any split of dims that the op makes (index,
// random, expand, scatter; reshard: all).
bool type_fits(const Module *m, const Node *n, TypeId found, TypeId given, Text *why);

// ---- text (print.c, read.c), verifier, graphviz ------------------------------------------------------------------
void    ir_print(Text *t, const Module *m);                       // parses back to the same bytes
void    ir_print_fn(Text *t, const Fn *f);
void    ir_print_node(Text *t, const Fn *f, NodeId n);
void    ir_print_type(Text *t, const Module *m, TypeId type);     // bf16[batch|dp, seq|tp, embed] sum(tp)
Module *ir_parse(Arena *a, Intern *in, Diag *d, uint16_t source);  // 0 after errors (printed)
const char *attr_at_name(Op op);                                  // what the text calls Attr.at of it: at, by, reverse
// after: the pass; prints what is wrong; never changes m
bool    ir_verify(const Module *m, const char *after);
// What ir_verify asks of each thing; false: why says what is wrong. The two of nodes intern types into m; their
// operands' types must be right. node_infer asks all of a node but that its types are those the op gives, rule[].
bool    dim_check(const Module *m, DimId d, Text *why);
bool    type_check(const Module *m, const Type *t, Text *why);
bool    var_check(const Module *m, VarId v, Text *why);
bool    node_infer(Module *m, const Fn *f, NodeId n, TypeId *rule, Text *why);
bool    node_check(Module *m, const Fn *f, NodeId n, Text *why);
typedef struct { const char *fn; int layer; bool unfold; } DotOptions; // fn 0: all; layer -1: all, repeated ones folded
void    ir_dot_print(Text *t, const Module *m, DotOptions o);
#endif
