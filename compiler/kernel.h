// kernel.h -- the kernel: one loop nest over a few ranges, its text form, its evaluator and its C.
//
// A kernel has ranges (loops), buffers (its arguments, in order) and instructions in SSA form. Ranges are parallel or
// reduced. A value depends on the ranges that its loads and indexes use; `reduce` turns a value into its sum, maximum
// or minimum over all reduced ranges, which depends on parallel ranges only and may be used elementwise again and
// reduced again. So softmax over r1 is
//
//   kernel row                            rows r0 in parallel, r1 reduced
//   range 512
//   range 128 reduce
//   buffer f32 65536
//   buffer bf16 65536
//   %1 = load 0 [0 + 128*r0 + 1*r1]
//   %2 = reduce max %1
//   %3 = sub %1 %2
//   %4 = exp %3
//   %5 = reduce sum %4
//   %6 = div %4 %5
//   store 1 [0 + 128*r0 + 1*r1] %6
//   end
//
// No phases, no loop structure: the emitter works them out. The meaning, which kernel_eval follows word by word:
//   * every load sees memory as it was before the kernel; every store happens once for each point of the ranges that
//     its address depends on.
//     A buffer that is both loaded and stored is so at one and the same address per point; a row may also pick a number
//     out of what it stores.
//   * a range has `n` points of storage of which the first `valid` exist. Loads and arithmetic happen at existing
//     points only; a store writes 0 at the others (an accumulating store leaves them), a reduction does not see them.
//   * loads of bf16 and f16 give f32, of u8 u16 u32 i8 i16 give i32 or i64, stores round once; values are f32, f64,
//     i32, i64, bool and every operation rounds to its own dtype. Sums are at least as good as pairwise in the value's
//     dtype.
//   * the bits of a result depend on the kernel only: not on the number of threads, the compiler or the CPU.
//
// What differs by rank (offset of a split dim, how much of it exists) comes from the scalar block: index + scalar, lt
// and select.
//
// The class says how it is computed:
//   map      no reduced range.
//   row      one row (point of the parallel ranges) at a time; any number of reductions after one another, cumsum.
//   col      many terms, few or contiguous results: one level of reductions, stores that depend on parallel ranges
//            only. Two stages: fixed chunks of the reduced ranges to a work buffer, then the chunks in order.
//   scatter  one `reduce … where %k r`: only the terms whose index %k equals the point of range r. Two stages: a list
//            of the terms per destination in order, then each destination on its own.
#ifndef MT_KERNEL_H
#define MT_KERNEL_H
#include "runtime/base.h"
#include "runtime/dtype.h"

enum { KERNEL_RANGES = 8, KERNEL_BUFFERS = 64, KERNEL_INS = 4096, KERNEL_REDUCES = 64, KERNEL_SLOTS = 512 };
typedef enum { LOOP_auto, LOOP_map, LOOP_row, LOOP_col, LOOP_scatter, LOOP_COUNT } LoopClass;

typedef enum {
  ALU_none,
#define ALU(word, operands, takes, gives, text, f, i) ALU_##word,
#include "compiler/alu.def"
#undef ALU
  ALU_COUNT
} Alu;

// over nothing: 0, -inf, inf (or the integer's ends)
typedef enum { RED_none, RED_sum, RED_max, RED_min, RED_COUNT } Red;

typedef struct {
  int64_t n, valid;                          // points of storage; points that exist (valid <= n)
  bool reduced;
} Range;

// Where a load or store finds its element: base + sum of stride·range, in elements. With an index: + index_stride·i
// where i is the value %index (i32 or i64); i < 0 or i >= index_extent reads 0 (stores have no index).
typedef struct {
  int64_t  base, stride[KERNEL_RANGES];      // stride 0: the range does not matter (broadcast)
  uint32_t index;                            // value, 0: none
  int64_t  index_stride, index_extent;
} Access;

typedef struct { DType dtype; int64_t count; bool read, written; } Buffer; // count: elements the caller owns there

typedef enum {
  KI_none, KI_load, KI_store, KI_accumulate, KI_const, KI_alu, KI_cast, KI_index, KI_scalar, KI_random, KI_reduce,
  KI_cumsum
} KIns;

typedef struct {
  uint8_t  op;                               // KIns
  uint8_t  what;                             // Alu, Red; cumsum: 1 from the end
  uint8_t  dtype;                            // of the value: DT_f32 f64 i32 i64 bool; stores: DT_none
  uint8_t  buf, range;                       // load, store: buffer; reduce with where: the range
  // operands: values; reduce: b is the index of where. random: seed, place, index
  uint32_t a, b, c;
  Access   at;                               // load, store; index: the value itself
  double   f;                                // const of a float
  int64_t  i;                                // const of an integer or bool; scalar: slot
} Ins;

typedef struct {
  Arena *arena;
  LoopClass class;
  uint32_t nrange, nbuf;
  Range  range[KERNEL_RANGES];
  Buffer buf[KERNEL_BUFFERS];
  VEC(Ins) ins;                              // [0] is unused: a value is the index of its instruction
  Map    same;                               // hash of an instruction -> the last with that hash
  bool   finished;
} Kernel;

// ---- building: operands are values, results are values; a broken rule is a bug() ------------------------------------
Kernel  *kernel_begin(Arena *a, LoopClass class);                 // LOOP_auto: kernel_finish chooses
uint32_t kernel_range(Kernel *k, int64_t n, int64_t valid, bool reduced);      // the slowest first; returns its number
uint32_t kernel_buffer(Kernel *k, DType t, int64_t count);        // the next argument; returns its number
// Makes the least base of the buffer's accesses 0, so that kernels that differ in it only are equal; returns it. The caller passes
// an address as many elements on, where it owns as many fewer.
int64_t  kernel_rebase(Kernel *k, uint32_t buf);
uint32_t kernel_load(Kernel *k, uint32_t buf, Access at);
// v: the buffer's value dtype (value_dtype)
void     kernel_store(Kernel *k, uint32_t buf, Access at, uint32_t v);
// old + v, in the value's dtype, rounded once
void     kernel_accumulate(Kernel *k, uint32_t buf, Access at, uint32_t v);
uint32_t kernel_const(Kernel *k, DType t, double v);              // of any dtype; exact below 2^53
uint32_t kernel_const_int(Kernel *k, DType t, int64_t v);         // i32, i64, bool
uint32_t kernel_alu(Kernel *k, Alu op, uint32_t a, uint32_t b, uint32_t c);
// as dtype_store: to integers towards zero and held; to bool: != 0
uint32_t kernel_cast(Kernel *k, DType t, uint32_t a);
uint32_t kernel_index(Kernel *k, DType t, Access at);             // i32 or i64: base + sum of stride·range
uint32_t kernel_scalar(Kernel *k, DType t, uint32_t slot);        // f64 or i64: 8-byte slot of the scalar block
// i64 values, place: hash·2^32 + step; f32 in [0, 1)
uint32_t kernel_random(Kernel *k, uint32_t seed, uint32_t place, uint32_t index);
uint32_t kernel_reduce(Kernel *k, Red r, uint32_t a);
// terms with index == range
uint32_t kernel_reduce_where(Kernel *k, Red r, uint32_t a, uint32_t index, uint32_t range);
uint32_t kernel_cumsum(Kernel *k, uint32_t a, bool from_end);     // inclusive, reduced ranges in row-major order
// drops dead and equal instructions, merges and sorts ranges, chooses the class, checks
void     kernel_finish(Kernel *k);

// what a load gives: f32 of bf16, i32 of u16, i64 of u32
DType value_dtype(DType buffer);
static inline bool is_store(const Ins *x) { return x->op == KI_store || x->op == KI_accumulate; }
static inline const Ins *kernel_ins(const Kernel *k, uint32_t v) { return &k->ins.at[v]; }

// ---- what a caller needs to run it ----------------------------------------------------------------------------------
// void KERNEL_SYMBOL(void *const *buf, const void *scalars, int64_t lo, int64_t hi) computes units lo … hi-1
// of stage 0; with two stages SYMBOL_combine does stage 1, after all of stage 0. buf[nbuf] is the work
// buffer when work > 0. Any split of the units over calls and threads gives the same bits. Buffers may
// overlap only where kernel_in_place says.
typedef struct {
  int     stages;
  int64_t units[2];
  int64_t grain[2];                          // units worth claiming at once, about 16K elements of work
  int64_t work;                              // bytes, 64-aligned
} Launch;
Launch kernel_launch(const Kernel *k);
typedef struct { int64_t bytes, flops; } KernelCost;              // memory touched once; operations, exp counts one
KernelCost kernel_cost(const Kernel *k);
// True when the buffer that is written may be the same memory as the one that is read: same
// element size, same addresses.
bool kernel_in_place(const Kernel *k, uint32_t written, uint32_t read);

// of the structure: equal kernels, equal text, equal hash
uint64_t kernel_hash(const Kernel *k);
const char *kernel_check(const Kernel *k, Arena *a);              // 0 when right, else what is wrong

// What follows from the instructions. A value is inner when it depends on a reduced range; it is known after `phase`
// passes over the reduced ranges (a reduction ends the pass its operand is in).
// by value: mask of ranges, passes before; passes; masks
// exact: what is divided is compared, as by topk, so equal quotients must be equal to the last bit wherever they are made
typedef struct { uint8_t *deps, *phase; uint8_t phases, par, red; bool exact; } Facts;
Facts kernel_facts(const Kernel *k, Arena *a);
static inline bool access_same(const Access *x, const Access *y) {
  bool same = x->base == y->base && x->index == y->index && x->index_stride == y->index_stride &&
              x->index_extent == y->index_extent;
  for (int r = 0; r < KERNEL_RANGES; r++) same &= x->stride[r] == y->stride[r];
  return same;
}

// ---- text: kernel_read of what kernel_print wrote prints to the same bytes ---------------------------------------
void    kernel_print(Text *t, const Kernel *k);
// 0: why says line and reason; finished and checked
Kernel *kernel_read(Arena *a, const char *text, size_t n, Text *why);

// ---- C --------------------------------------------------------------------------------------------------------------
void emit_c_prelude(Text *out);                                   // once per file, before the kernels
// a header's text (kernel_source.h) without its includes
void emit_c_text(Text *out, const char *header);
void emit_c(Text *out, const Kernel *k, const char *symbol);      // symbol: generated, k_0123456789abcdef
const char *kernel_symbol(Arena *a, const Kernel *k);             // "k_" and the hash

// ---- the definition of right: slow, plain, any kernel ------------------------------------------------------------
void kernel_eval(const Kernel *k, void *const *buf, const void *scalars);
#endif
