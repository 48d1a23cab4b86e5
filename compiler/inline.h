// inline.h -- a composite's body in place of its node.
#ifndef MT_INLINE_H
#define MT_INLINE_H
#include "compiler/ir.h"

// Adds the nodes of the body of composite node n of `from` to b->fn, with operands in[]; out[]: the composite's results.
// They carry the node's line, path and layer, b's fwd, and say whose body they are. Splits and pending sums follow the operands.
// Composites inside are inlined as well where `deeper` (called with the body and the node there) says so; 0: nowhere.
void  inline_body(Build *b, const Fn *from, NodeId n, const ValId *in, bool (*deeper)(const Fn *f, NodeId n), ValId *out);
bool  inline_always(const Fn *f, NodeId n);                       // a `deeper`

// Adds the nodes of f that v depends on to b->fn. map: by value of f, its value in b->fn or 0; arguments that are needed
// must have one. Returns v's.
ValId inline_value(Build *b, const Fn *f, ValId v, ValId *map);
#endif
