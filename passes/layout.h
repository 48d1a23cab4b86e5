// layout.h -- how the mesh splits what an op works on: the rule that passes layout and reshard share.
//
// For one op, its space is the set of dims of its operands and results; frozen ones must be whole and are left out. Each
// dim takes the mesh axes of its strong rules, then those of its weak ones that are still free in this op and divide it.
// Operands and results are split as the space is.
#ifndef MT_LAYOUT_H
#define MT_LAYOUT_H
#include "compiler/ir.h"

typedef struct { DimId dim; uint8_t axis; } Weak;

typedef struct {
  Module *m;
  uint8_t live;                              // axes of more than one rank; the others do nothing
  Split *strong;                             // beside Module.dim
  VEC(Weak) weak;                            // in the order of the rules
  Map said;                                  // pairs of dims whose clash is reported
  int zero;                                  // parallel.zero
  TypeId *part;                              // by parameter: split as the ranks' parts of its update are; 0: not known
} Rules;

// False after errors (printed): a strong rule that does not divide. say: warn of weak ones, too.
bool rules_init(Rules *r, Module *m, bool say);
bool axis_is_weak(const Rules *r, DimId d, uint32_t axis);        // d, or another role of its root, has a weak rule for it

enum { MAX_SPACE = 64 };
typedef struct { DimId dim; Split split; bool frozen; } Side;     // one dim of a space
typedef struct { uint32_t n; uint8_t strong, used; Side side[MAX_SPACE]; } Space; // axes taken by strong rules; by any

void  space_of(Space *s, const Fn *f, const Node *n);
void  space_add(Space *s, DimId d);
// Splits the space, weak rules not over the axes in `without`. False: clash[0] and clash[1] have strong rules for one axis.
bool  space_assign(const Rules *r, Space *s, bool weak, uint8_t without, DimId clash[2]);
Split space_split(const Space *s, DimId d);  // 0 when it is not in it, or frozen
uint8_t space_created(const Space *s, const Fn *f, const Node *n, uint32_t i); // axes over which result i is a pending sum or maximum
bool  op_keeps(Op op);                       // rename, split, merge: the data stay where they are

// Sums of scalars (a global norm): trees of adds over values without dims. By node of f: its tree's last add, where all
// its terms are reduced together; 0 for others, and for trees of fewer than three adds.
const NodeId *scalar_sums(const Fn *f, Arena *a);

// Whether node n of f passes on sums that are pending over axis a; pending: the axes of each operand.
bool sum_passes(const Fn *f, const Node *n, const uint8_t *pending, uint32_t a);

// By value of f, the axes over which it is reduced before any use; its other pending sums are passed on by that use.
const uint8_t *delay_sums(const Rules *r, const Fn *f, bool weak, const NodeId *sums, Arena *a);

// ---- zero.c --------------------------------------------------------------------------------------------------------
Type  zero_part(const Module *m, Type t, uint8_t axes);           // t cut by these axes, too, as far as they divide
void  zero_lay_out(const Rules *r);          // variables as r->zero says, once the parts are known, and their reads
VarId *zero_owners(const Fn *f, Arena *a);   // by value of an update: the parameter that it belongs to

// Every collective: function, kind, axes, bytes on a rank, model line, why; those up to `small` bytes are marked.
void layout_report(const Module *m, int64_t small, Text *t);
#endif
