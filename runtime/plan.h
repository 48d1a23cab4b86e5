// plan.h -- what mtrun executes: data only, the same file on every rank.
//
// A step is a list of cells; a cell runs a function for one microbatch; a function is a list of instructions, each on a
// stream, and every stream runs its own in order. Memory is one block per kind, of a size given here; a buffer is a range
// of a block; instructions name buffers. What varies from step to step lies in the scalar block, never in an instruction.
//
// The file: a text part that people read, compare and that parses back to the same plan, then the kernels' sources and
// objects. Ids are indexes into the tables, from 1 (0: none); the text writes them in that order.
#ifndef MT_PLAN_H
#define MT_PLAN_H
#include "runtime/base.h"
#include "runtime/dtype.h"
#include "runtime/tensors.h"

enum { PLAN_VERSION = 1, SCALAR_BLOCK = 4096, GEMM_LOOPS = 6, PLAN_DIMS = STORAGE_DIMS, KERNEL_ARGS = 65 };

// ---- memory -------------------------------------------------------------------------------------------------------
#define PLAN_MEMORY(X) \
  X(scalars)      /* the scalar block, SCALAR_BLOCK bytes */ \
  X(params)       /* master parameters */ \
  X(copies)       /* parameters in the compute format */ \
  X(grads)        /* gradient accumulators */ \
  X(moments)      /* the optimizer's state */ \
  X(inputs)       /* this microbatch's inputs, and where the next one's are put */ \
  X(activations)  /* values inside functions */ \
  X(outputs)      /* what a function returns and has not made, or leaves for the update */ \
  X(workspace)    /* the kernels' work buffers */
typedef enum {
#define X(word) MEM_##word,
  PLAN_MEMORY(X)
#undef X
  MEM_COUNT
} PlanMem;

// at: multiple of 64. of: this rank's part of that buffer, a parameter's or gradient's: its storage is cut along its
// first dim, from entries of dim `whole` to those of its part `part`, and the parts lie side by side; 0: no part
typedef struct { Str name; PlanMem mem; int64_t at, bytes; DType dtype; uint32_t of, whole, part; } PlanBuffer;
typedef struct { uint32_t buffer; int64_t at; } PlanArg;           // at: byte offset in the buffer
typedef struct { Str name; DType dtype; int64_t at; } PlanSlot;    // of the scalar block: f64 or i64, at a multiple of 8

// ---- what the model said --------------------------------------------------------------------------------------------
// sample: counts samples (batch). chunks: it lies in zigzag order, see StorageDim. A rank's part of dim `whole` (0: none), cut by these axes, the first the slowest.
enum { PLAN_CUTS = 4 };
typedef struct { Str name; int64_t extent, size; bool sample; uint32_t whole, ncut; uint8_t cut[PLAN_CUTS]; int64_t chunks; } PlanDim;
typedef struct { Str name; int64_t size; } PlanAxis;
typedef struct { Str path; uint32_t line, col; Str what; } PlanLine;                // a model line; what: "attention", "dot"
typedef struct { Str name; double value; Str word; } PlanNum;      // word: 0 when the value is a number
typedef struct { Str word; VEC(PlanNum) num; } PlanCall;           // adamw(lr = 1e-3, …), wsd(decay = 10, shape = linear); word 0: not set

#define PLAN_VARS(X) X(param) X(copy) X(grad) X(moment)
typedef enum {
#define X(word) PVAR_##word,
  PLAN_VARS(X)
#undef X
  PVAR_COUNT
} PlanVarKind;
#define PLAN_INITS(X) X(zeros) X(ones) X(normal) X(uniform)
typedef enum {
#define X(word) PINIT_##word,
  PLAN_INITS(X)
#undef X
  PINIT_COUNT
} PlanInit;

typedef struct {
  Str  name;                                 // a parameter's path with holes; NAME:copy NAME:grad NAME:exp_avg …
  PlanVarKind kind;
  DType dtype;
  uint32_t ndim, dim[PLAN_DIMS];
  uint8_t axis[PLAN_DIMS];                   // see StorageDim
  uint32_t buffer, of, line;                 // of: the parameter (copies, gradients, moments)
  PlanInit init; double a, b;                // normal(0, a) · uniform(a, b)
  bool decay;
  uint8_t partial;                           // its value is the sum of the ranks' over these axes (a mask)
} PlanVar;

typedef struct {
  Str   name;                                // "tokens"
  DType dtype;
  uint32_t ndim, dim[PLAN_DIMS];             // the first is the sample dim
  int64_t below;                             // a value >= below is refused before the step; 0: any value
  bool ignores; int64_t ignored;             // a value that the model compares with: possible, and what "no label" is
  uint32_t line;
} PlanInput;

typedef struct {
  Str  name;
  double coef;                               // its factor in the objective
  bool per_step;                             // adds up over microbatches; else averaged over them
  uint32_t slot;                             // a scalar: 1 + index of its slot "$out.NAME"; 0: a tensor
  uint32_t buffer; DType dtype;              // a tensor: where the function `logits` leaves it
  uint32_t ndim, dim[PLAN_DIMS];
} PlanOutput;

// ---- kernels and products -------------------------------------------------------------------------------------------
typedef struct { DType dtype; int64_t count; bool read, written; } PlanParam;       // count: elements the caller owns

typedef struct {
  Str symbol;                                // of stage 0; stage 1 is SYMBOL_combine
  uint64_t hash;
  Str class;                                 // map row col scatter tile
  uint32_t source;
  uint32_t stages; int64_t units[2], grain[2];
  int64_t work;                              // bytes of the work buffer, one argument more than param; 0: none
  int64_t flops, bytes;                      // of one run
  VEC(PlanParam) param;
} PlanKernel;

// c[m, n] = alpha · sum over k of a[m, k] · b[k, n], or c + that; once for each index of the loops. Strides in elements.
// A loop with c 0 is summed over. Of am and ak, of bk and bn, of cm and cn one is 1, or its extent is 1. Computed in f32,
// in f64 when the formats are f64; rounded once.
typedef struct { int64_t n, a, b, c; } GemmLoop;
#define PLAN_LIBS(X) X(openblas) X(onednn) X(panels)               // the last two: of f32, or of bf16 into bf16 or f32
typedef enum {
#define X(word) LIB_##word,
  PLAN_LIBS(X)
#undef X
  LIB_COUNT
} PlanLib;
// ragged: along this extent the last entries of a (of b, for n) may all be 0, in each loop as many as there are: places of
// experts that no token came to. They are looked for, and not multiplied.
#define PLAN_RAGGED(X) X(none) X(m) X(n) X(k)
typedef enum {
#define X(word) RAGGED_##word,
  PLAN_RAGGED(X)
#undef X
  RAGGED_COUNT
} PlanRagged;
typedef struct {
  PlanLib lib;
  DType a, b, c;                             // f64 f64 f64, or any of f32 bf16 f16
  int64_t m, n, k, am, ak, bk, bn, cm, cn;
  uint32_t nloop; GemmLoop loop[GEMM_LOOPS];
  double alpha;
  bool accumulate;
  PlanRagged ragged;
} PlanGemm;

// A collective among the ranks that differ along the axes of a mask (bit i: Plan.axis i). A member's place among them:
// its coordinates, the last axis the fastest. Sizes are in elements.
//   all_reduce, all_max  [inner] each, in place of each: the members' sum in their order, or maximum; of bools, whether
//                        one of them is true
//   reduce_scatter       from [outer, members, inner] to [outer, inner]: the sum of everybody's piece `place`
//   all_gather           from [outer, inner] to [outer, members, inner]
//                        of these two, with outer 1, the smaller may be the rank's part of the larger, in its place
//   all_to_all           from [outer, gather, mid, members · scatter, inner] to [outer, members · gather, mid, scatter,
//                        inner]; turned: the other way round, the dim that is scattered is the slower one
#define PLAN_COLLS(X) X(all_reduce) X(all_max) X(reduce_scatter) X(all_gather) X(all_to_all)
typedef enum {
#define X(word) COLL_##word,
  PLAN_COLLS(X)
#undef X
  COLL_COUNT
} PlanCollKind;
typedef struct {
  PlanCollKind kind;
  DType dtype;
  DType sent;                                // sums: in what members send terms and sums, each rounded once; DT_none: dtype
  uint8_t axes;
  int64_t outer, gather, mid, scatter, inner;      // those that the kind has none of are 1
  bool turned;
} PlanColl;

// ---- instructions -----------------------------------------------------------------------------------------------------
//   kernel  what: kernel; args: its parameters in order, then the work buffer
//   gemm    what: gemm; args: c a b
//   copy    args: to from; bytes          zero  args: to; bytes
//   record  what: event                   wait  what: event
//   coll    what: collective; args: to from; and: it and the next instruction, a collective over the same axes, take
//           place in one meeting of the ranks
//   load    what: input; args: to. The host puts the next microbatch's values there
#define PLAN_OPS(X) X(kernel) X(gemm) X(copy) X(zero) X(record) X(wait) X(load) X(coll)
typedef enum {
#define X(word) PI_##word,
  PLAN_OPS(X)
#undef X
  PI_COUNT
} PlanOp;
#define PLAN_WHENS(X) X(always) X(first) X(later) X(last)          // in which microbatches of a step: all, the first, the others, the last
typedef enum {
#define X(word) WHEN_##word,
  PLAN_WHENS(X)
#undef X
  WHEN_COUNT
} PlanWhen;
// Each stream runs its own instructions in the order of the list. comm has the collectives and nothing else that touches
// memory: they are issued one after the other, on every rank in this order.
#define PLAN_STREAMS(X) X(compute) X(input) X(comm)
typedef enum {
#define X(word) STREAM_##word,
  PLAN_STREAMS(X)
#undef X
  STREAM_COUNT
} PlanStream;

typedef struct {
  PlanOp op;
  PlanStream stream;
  PlanWhen when;
  uint32_t what, line;
  uint32_t arg, narg;                        // in Plan.arg
  int64_t bytes;
  bool and;                                  // coll
} PlanIns;

// A counter between two streams: record adds one, wait takes one and blocks while there is none. `initial` are there at
// the start. Every function records and waits equally often, so each cell finds the counter at `initial` again.
typedef struct { Str name; uint32_t initial; } PlanEvent;

typedef struct { Str name; VEC(PlanIns) ins; } PlanFn;             // prologue micro update refresh eval logits

#define PLAN_CELLS(X) \
  X(P)            /* the denominators of one microbatch */ \
  X(FB)           /* forward and backward of one microbatch */ \
  X(U)            /* the update */
typedef enum {
#define X(word) CELL_##word,
  PLAN_CELLS(X)
#undef X
  CELL_COUNT
} PlanCellKind;
typedef struct { PlanCellKind kind; uint32_t microbatch, fn; } PlanCell;

// ---- the plan -----------------------------------------------------------------------------------------------------------
#define PLAN_NUMBERS(X) X(steps) X(global_batch) X(micro_batch) X(microbatches) X(seed)
typedef struct { Str name; const char *text; int64_t bytes; } PlanSource;           // C text; name: of its file in messages
typedef struct { uint32_t source; Str target, toolchain; const char *data; int64_t bytes; } PlanObject;

typedef struct Plan {
  Arena *arena;
  Intern *in;
  char hash[33];                             // of the file it came from, or was written to
  Str  tool, target, model;                  // "0.1.0"; "cpu"; "gpt2"
#define X(word) int64_t word;
  PLAN_NUMBERS(X)
#undef X
  PlanCall optimizer, schedule, loss_scale;          // the last: dynamic(…), or constant(value)
  Str data;                                  // the rule of the data: "gpt": labels are tokens shifted by one; "none": --batches only
  int64_t memory[MEM_COUNT];                 // bytes of each block
  VEC(PlanAxis)   axis;                      // [0] is used in axis, slot, output, cell; unused in the others
  VEC(PlanDim)    dim;
  VEC(PlanLine)   line;
  VEC(PlanBuffer) buffer;
  VEC(PlanSlot)   slot;
  VEC(PlanVar)    var;
  VEC(PlanInput)  input;
  VEC(PlanOutput) output;
  VEC(PlanKernel) kernel;
  VEC(PlanGemm)   gemm;
  VEC(PlanColl)   coll;
  VEC(PlanEvent)  event;
  VEC(PlanFn)     fn;
  VEC(PlanCell)   cell;                      // of one step
  VEC(PlanSource) source;
  VEC(PlanObject) object;
  VEC(PlanArg)    arg;                       // of all instructions
  Map line_by, gemm_by, coll_by, slot_by, fn_by;      // hash -> id
} Plan;

// ---- building -------------------------------------------------------------------------------------------------------
Plan    *plan_create(Arena *a);
uint32_t plan_dim(Plan *p, PlanDim d);
uint32_t plan_line(Plan *p, const char *path, uint32_t line, uint32_t col, const char *what);   // equal ones have one id
// Reserves the next bytes of a block (at a multiple of 64), or names a range that a memory pass chose (at >= 0).
uint32_t plan_buffer(Plan *p, const char *name, PlanMem mem, int64_t at, int64_t bytes, DType t); // at -1: the next; the block grows
uint32_t plan_buffer_part(Plan *p, const char *name, uint32_t of, uint32_t whole, uint32_t part, int64_t bytes);
uint32_t plan_slot(Plan *p, const char *name, DType t);            // 1 + index; the next free 8 bytes; an old name gives its slot
PlanArg  plan_slot_arg(Plan *p, uint32_t slot);                    // as a kernel's argument
uint32_t plan_gemm(Plan *p, PlanGemm g);                           // equal ones have one id
uint32_t plan_coll(Plan *p, PlanColl c);                           // equal ones have one id
uint32_t plan_event(Plan *p, const char *name, uint32_t initial);
uint32_t plan_fn(Plan *p, const char *name);
// The other tables: vec_push(p->arena, &p->var, (PlanVar){…}), strings by plan_str.
Str      plan_str(Plan *p, const char *s);

// Where new instructions go and what they carry; copied freely.
typedef struct { Plan *plan; uint32_t fn; PlanStream stream; PlanWhen when; uint32_t line; } PlanAt;
void ins_kernel(PlanAt at, uint32_t kernel, const PlanArg *arg, uint32_t narg);
void ins_gemm(PlanAt at, uint32_t gemm, PlanArg c, PlanArg a, PlanArg b);
void ins_copy(PlanAt at, PlanArg to, PlanArg from, int64_t bytes);
void ins_zero(PlanAt at, PlanArg to, int64_t bytes);
void ins_record(PlanAt at, uint32_t event);
void ins_wait(PlanAt at, uint32_t event);
void ins_coll(PlanAt at, uint32_t coll, PlanArg to, PlanArg from);
void ins_and(PlanAt at);                     // the last one, a coll, is followed by another of its meeting
void ins_load(PlanAt at, uint32_t input, PlanArg to);

// ---- reading ----------------------------------------------------------------------------------------------------------
uint32_t plan_find_fn(const Plan *p, const char *name);            // 0: there is none
uint32_t plan_find_slot(const Plan *p, const char *name);          // 1 + index; 0: there is none
double   plan_num(const PlanCall *c, const char *name, double otherwise);
const PlanDim *plan_whole(const Plan *p, uint32_t dim);            // the dim, or the one that it is a part of
// Entries first … first+n-1 of a dim's whole are rank's part; of a whole dim all.
void     plan_cut(const Plan *p, const PlanDim *d, int64_t rank, int64_t *first, int64_t *n);
int64_t  plan_coord(const Plan *p, int64_t rank, uint32_t axis);
int64_t  plan_part_at(const Plan *p, const PlanBuffer *b, int64_t rank);   // bytes in front of a part in its buffer; else 0
Storage  plan_part(const Plan *p, const PlanVar *v, int64_t rank);   // of rank's part of the variable
// It is the first rank with this part, or this share of a sum; added: it is not the first with a share.
bool     plan_owns(const Plan *p, const PlanVar *v, int64_t rank, bool *added);
Storage  plan_storage(const Plan *p, const PlanVar *v);           // of the whole variable, not of a rank's part
int64_t  plan_count(const Plan *p, const uint32_t *dim, uint32_t ndim, bool padded);            // product of sizes or extents
int64_t  plan_ranks(const Plan *p);
int64_t  coll_members(const Plan *p, const PlanColl *c);
int64_t  coll_count(const Plan *p, const PlanColl *c, bool result);   // elements that a rank gives, or gets
int64_t  gemm_flops(const PlanGemm *g);
// Whether a coll begins the meeting it is of, and ends it.
bool     ins_begins(const PlanFn *f, uint32_t i);
static inline bool ins_ends(const PlanFn *f, uint32_t i) { return !f->ins.at[i].and; }
const char *plan_place(const Plan *p, Arena *a, uint32_t line);    // "gpt2.mt:45:10"

// ---- text, file, verifier -----------------------------------------------------------------------------------------------
void        plan_write(Plan *p, Text *out);                        // the whole file; sets p->hash
const char *plan_parse(Plan *p, const char *data, size_t n);       // into a fresh plan; 0, or what is wrong ("line 12: …")
const char *plan_verify(const Plan *p, Arena *a);                  // 0, or what is wrong
Status      plan_load(Arena *a, const char *path, Plan **p);       // read, parse, verify; refused with file and reason
Status      plan_save(Plan *p, const char *path);
#endif
