// world.h -- small modules for tests of the interpreter, written down shortly.
//
//   World w = world("dp=2 tp=2", "a 3, b 4:8, seq 8 zigzag=4, kseq=seq");
//   begin(&w, "forward");
//   ValId x = arg(&w, "f64[a, b|tp]");
//   ValId y = op(&w, OP_sum, "[a]", OPS(x));                         result inferred
//   ValId z = opt(&w, OP_cumsum, "[a] at=1", "f64[a, b]", OPS(x));   result given
//   ir_return(w.b.fn, z, "z")
#ifndef MT_TEST_WORLD_H
#define MT_TEST_WORLD_H
#include "compiler/interp.h"

typedef struct { Arena *arena; Module *m; Diag diag; Build b; } World;

World  world(const char *mesh, const char *dims);
void   world_end(World *w);
Module *module_text(Arena *a, const char *text);        // an IR text
TypeId type(World *w, const char *text);               // f64[a|dp, b] sum(tp)
Attr   attr(World *w, const char *text);               // [a, b -> c] at=2 num=0.5 axes=dp,tp var=NAME path=h.0
void   begin(World *w, const char *fn);                // what follows goes to this function
ValId  arg(World *w, const char *text);
#define OPS(...) (const ValId[]){__VA_ARGS__}, sizeof((ValId[]){__VA_ARGS__}) / sizeof(ValId)
ValId  op(World *w, Op o, const char *at, const ValId *in, uint32_t n);
ValId  opt(World *w, Op o, const char *at, const char *result, const ValId *in, uint32_t n);
// An op of new arguments of these types, up to the first 0; its results are returned. result "": inferred.
ValId  op_of(World *w, Op o, const char *at, const char *const in[3], const char *result);
#endif
