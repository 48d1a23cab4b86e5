// vjp.h -- gradients: the rules of ops.def's vjp column, and the sweep that applies them (reverse mode).
//
//   Grad g;
//   grad_init(&g, f);                         // f holds the forward nodes; the gradient's are appended to it
//   grad_wrt(&g, w, DT_f32);                  // by w, and give it in f32
//   grad_mark(&g);
//   grad_give(&g, loss, seed);
//   for (NodeId n = last; n; n--) grad_node(&g, n);
//   … grad_of(&g, w)                          // 0: w does not reach the loss
//
// All types are whole: gradients are made before the layout.
#ifndef MT_VJP_H
#define MT_VJP_H
#include "compiler/ir.h"

typedef struct {
  Module *m;
  Build   b;
  uint32_t nval;                             // values of the forward; one entry of the tables each
  bool   *varied;                            // depends on what is differentiated by
  DType  *want;                              // dtype of its gradient; DT_none: its own
  ValId  *d;                                 // its gradient so far: contributions are added in the order they come
} Grad;

void  grad_init(Grad *g, Fn *f);
void  grad_wrt(Grad *g, ValId v, DType as);                       // as: the gradient's dtype; DT_none: v's own
void  grad_mark(Grad *g);                                         // after the last grad_wrt
void  grad_give(Grad *g, ValId v, ValId dv);                      // adds dv, summed over the dims that v lacks
void  grad_node(Grad *g, NodeId n);                               // hands the gradient of n's results on to its operands
static inline ValId grad_of(const Grad *g, ValId v) { return g->d[v]; }

bool  vjp_passes(Op op);                                          // gradients go through it; false: none, zero
// A composite without a short rule (for these operands): its body has to stand in its place before the sweep.
bool  vjp_inlines(const Fn *f, NodeId n);
// Makes the functions that the rule of n needs (the body of combine for the gradient of dispatch), if they are not there.
void  vjp_prepare(Module *m, const Fn *f, NodeId n);
// Copies node n of f as ir_copy does, in the form that its rule needs: attention with its second result.
ValId vjp_copy(Build *b, const Fn *f, NodeId n, const ValId *in);
// A function `name`: f's arguments, then a seed for each float result of f; it gives the gradients of Σ seed · result
// by the float arguments. inlined: composites by their bodies, not by their short rules.
Fn   *vjp_function(Module *m, const Fn *f, Str name, bool inlined);
#endif
