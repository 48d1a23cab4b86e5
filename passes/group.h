// group.h -- a function cut into steps in the order in which they run: kernels and library products. Some values lie in
// memory (stored), the others exist only inside the kernels that use them and are computed there, each time again.
#ifndef MT_GROUP_H
#define MT_GROUP_H
#include "compiler/ir.h"
#include "compiler/kernel.h"
#include "runtime/kernel_attention.h"
#include "runtime/plan.h"

// ---- where along a dim: an affine function of the loops of a kernel, plus at most one value ----------------------
typedef struct {
  int64_t  base, coef[KERNEL_RANGES];
  uint32_t index;                            // kernel value, 0: none; icoef times it is added
  int64_t  icoef, iextent;                   // it counts as existing in 0 … iextent-1
} Pos;
enum { ENV_DIMS = 12 };
typedef struct { uint32_t n; DimId dim[ENV_DIMS]; Pos pos[ENV_DIMS]; } Env;

Pos *env_find(Env *e, DimId d);              // 0: not bound
void env_set(Env *e, DimId d, Pos p);
// One step through a view: v's own dims are bound in env; afterwards its operand's are, and *operand is that.
// none: v is no view; blocked: this env cannot be expressed
typedef enum { VIEW_none, VIEW_passed, VIEW_blocked } ViewStep;
// n > 0: with loop `range` cut into two, the inner of n points, it can
typedef struct { int64_t n; uint32_t range; } Cut;
ViewStep view_step(const Fn *f, ValId v, Env *env, const int64_t *range, ValId *operand, Cut *cut);
bool op_is_view(Op op);

// ---- groups ---------------------------------------------------------------------------------------------------------
// Why a value lies in memory.
#define STORED_WHYS(X) \
  X(nothing,  "") \
  X(given,    "an input or a variable") \
  X(operand,  "a product, an attention or a collective reads it") \
  X(made,     "a product, an attention, a collective, a reduction or a scatter makes it") \
  X(returned, "the function returns it") \
  X(shared,   "several steps use it, and making it again would cost more than storing it") \
  X(small,    "it is small beside what uses it, and dear") \
  X(picked,   "it is picked out of a large value, which then is no longer needed") \
  X(large,    "the expression behind it is large") \
  X(apart,    "nothing is fused")
typedef enum {
#define X(word, text) WHY_##word,
  STORED_WHYS(X)
#undef X
} StoredWhy;

// small: no dims; slot: of the scalar block; within: a part of another value; part: the rank's part of a variable
typedef enum {
  STORED_no, STORED_temp, STORED_small, STORED_var, STORED_arg, STORED_slot, STORED_within, STORED_part
} Stored;
// in 0: its own place; else elements from the start of `in`, and along v's dims
typedef struct { ValId in; int64_t at, stride[MAX_DIMS]; } Within;

typedef struct {                             // something a kernel computes and keeps
  ValId v;
  VarId var;                                 // written there instead of to v's own place; 0: none
  bool  accumulate;
  bool  more;                                // accumulate: an earlier step has begun the sum, also in the first microbatch
  NodeId node;                               // what asked for it
} Root;

typedef struct {
  LoopClass class;                           // kernels; LOOP_auto: a product, or (tile) an attention or its gradient
  bool tile, collective;                     // of LOOP_auto
  NodeId node;                               // products, attentions: the op; kernels: the first root's node (line, why)
  VEC(Root) root;
  uint32_t np, nr;
  DimId p[MAX_DIMS], r[MAX_DIMS];            // parallel and reduced dims; of a map all are parallel
  uint8_t scan;                              // it sums up along a row: 1 from the start, 2 from the end; not both
  uint32_t nread, nsmall;                    // kernels: values read from memory, at most; of them without dims
  VarId var; bool accumulate, more;          // products: as of a root
  uint32_t wait;                             // collectives: the step before which it is waited for; see overlap
  bool and;                                  // early sums: the next step is another, in the same meeting
  const struct Early *early;                 // collectives: this one, made where its gradient is, or (in early->f) left out
} Group;
typedef struct { ValId v; uint32_t group; } Reading;

typedef struct {
  Module *m;
  const Fn *f;
  Arena *arena;
  uint8_t  *stored, *why;                    // by value: Stored, StoredWhy
  // by value: 1 + group that computes it, 0: none (arguments, reads, values inside)
  uint32_t *group_of;
  bool     *returned;                        // by value: it lies where the function's result is kept
  bool     *moved;                           // by value: its only place is a variable (Root.var, Group.var)
  uint32_t *last;                            // by value: 1 + last group that reads it from memory
  VEC(Reading) reading;                      // each of them, 1 + its group
  uint32_t *flight;                          // by value: the first step when no collective is at work on it; see overlap
  uint32_t *born;                            // by value: group_of, but of a value made of parts the first part's
  Within   *within;                          // by value
  bool     *made_of_parts;                   // by value: nothing makes it but its parts, each in its place
  VarId    *part_of;                         // by value: it is this rank's part of what lies there (STORED_part)
  ValId    *over;                            // by value: where it lies instead of in a place of its own; see find_over
  // by value: byte offset in its block (temps), index (small); made by memory_plan
  int64_t  *at;
  bool     *lent;                            // by value: its block is that of the gradients; made by memory_plan
  VEC(Group) group;
  int64_t temp_bytes, small_count;
  // the hashes of random ops are part of the kernels: there are too many for slots
  bool bake;
} Groups;

// apart: every value in memory and every op its own kernel
Groups *fuse(Module *m, const Fn *f, Arena *a, bool apart);
// A sum of a gradient over ranks that the update asks for, made in a step's last microbatch as soon as it is whole there:
// in the gradient's place, or a reduce_scatter to a part that does not lie in one piece in one of its own. node: of f, the
// update.
typedef struct Early { VarId var; const Fn *f; NodeId node; uint32_t number; } Early;
typedef VEC(Early) Earlies;
Earlies early_sums(const Module *m, Arena *a);
// Puts collectives where they are started, and says when they are waited for. Before memory_plan.
void overlap(Groups *g, const Earlies *early);
// `part` has the entries of one of the parts that `whole` is cut into along its first dim (of those longer than 1), which
// is *dim.
bool is_part_in_place(const Module *m, const Type *whole, const Type *part, int *dim);
void find_within(Groups *g, const uint32_t *uses);               // once g->why says what is stored; uses: by value
// Results take the places of operands that nothing reads after their step. Where v lies: itself, or that operand.
void find_over(Groups *g);
ValId place_of(const Groups *g, ValId v);
// Bytes of the gradients' block that nobody needs before step `until` (1 + group) writes them.
typedef struct { int64_t at, bytes; uint32_t until; } Lent;
void memory_plan(Groups *g, const Lent *lent, uint32_t nlent);   // lent: by place, without gaps
// What buffer i of a kernel is: a variable (a scalar's slot among them), or a stored value's own place, or (both 0)
// the block of all values without dims, 8 bytes each, seen as an array of t.
// random: the hash of this op's path, in a slot of the scalar block, so that the layers share a kernel.
// at: the buffer begins that many elements behind the start of the value.
typedef struct { ValId v; VarId var; DType t; Str random; int64_t at; } Operand;
// first: the variant for a step's first microbatch, where accumulating stores are plain ones.
Kernel *kernel_of(const Groups *g, uint32_t group, bool first, Arena *a, Operand operand[KERNEL_BUFFERS]);
bool    group_accumulates(const Group *g);                            // its first variant differs
// its 8-byte slot in the scalar block; v 0: of the seed
uint32_t scalar_slot(const Module *m, VarId v);
// Strides of v's dims (stride[i] beside its type) in the value that lies in memory: v itself, or what it is a view of.
void    locate(const Fn *f, ValId v, bool through, ValId *base, int64_t *at, int64_t stride[MAX_DIMS]);
// Where the op that makes v puts it: its own place, or (g given) its place within another value.
void    made_at(const Groups *g, const Fn *f, ValId v, ValId *base, int64_t *at, int64_t stride[MAX_DIMS]);

// An attention or its gradient as a kernel. False: the op is no such, or there is no kernel for these operands.
// Of a value that lies in memory, from element `at`; or (random) the hash of that path, an i64, as the last one.
typedef struct { ValId base; int64_t at, count; DType t; bool written; Str random; } TileArg;
typedef struct {
  Attention a;
  bool backward;
  DType work;                                // the kernel's W
  uint32_t narg; TileArg arg[ATTN_OPERANDS + 1];
} Tile;
bool    tile_of(const Groups *g, const Fn *f, NodeId n, Tile *t);      // g: where results lie, see made_at
void    tile_bake(Tile *t);                  // makes the hash a number of the kernel
Launch  tile_launch(const Tile *t);
KernelCost tile_cost(const Module *m, const Tile *t);
uint64_t tile_hash(const Tile *t);
void    tile_text(Text *out, const Tile *t, const char *symbol);       // behind kernel_attention.h's text for t->work

// x · y over dims as one library product into a result of type `out`, its dims stride[i] apart (0: in its storage
// order); base[]: the values that lie in memory, at[]: offsets in them, in elements. False: no such call can address
// them.
bool    product_of(const Fn *f, ValId x, ValId y, const DimId *dims, uint32_t ndims, const Type *out,
                   const int64_t *stride, PlanGemm *g, ValId base[2], int64_t at[2]);
// the steps, what each reads and makes, and why that is stored
void    steps_print(Text *t, const Groups *g);
#endif
