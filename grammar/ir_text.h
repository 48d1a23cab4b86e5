// ir_text.h -- the IR's text form: its tree, the function that reads a text into one, and how its words are written.
//
//   mesh dp=2, tp=2
//   dim seq = 64 zigzag 4
//   var param @wte.weight : f32[vocab|tp, embed] = normal(0.02) decay ; gpt2.mt:12:3-44 "gpt2.mt: param"
//   fn forward(%1 tokens : i32[batch|dp, seq]) -> (loss: %40) {
//     %2 = read @wte.weight : f32[vocab|tp, embed] ; gpt2.mt:57:12-16 in h.0.mlp layer 1 "lower: parameter"
//     %3 x = gather[vocab](%2, %1) : f32[batch|dp, seq, embed] sum(tp) ; gpt2.mt:57:8-27 "lower: call" fwd %2
//   }
//
// One item or node a line; # starts a comment. compiler/print.c writes it, compiler/read.c makes a module of the tree.
#ifndef MT_IR_TEXT_H
#define MT_IR_TEXT_H
#include "runtime/base.h"
#include "runtime/diag.h"

// kind      text; num or place; kids in order (all of a kind may be absent)
#define IR_TREES(X) \
  X(module)   /* the items */ \
  X(mesh)     /* size */ \
  X(size)     /* text axis; num */ \
  X(map)      /* text dim; num 1: weak; axis, notes */ \
  X(dim)      /* text name; num extent, attr, notes */ \
  X(attr)     /* text: size of zigzag sample ragged = decay stored coef per_step; its values */ \
  X(set)      /* text path; one value, notes */ \
  X(output)   /* text name; attr, notes */ \
  X(variable) /* text name; word kind, type, attr, notes */ \
  X(fn)       /* text name; formal, ret, node */ \
  X(body)     /* the same, after a name: the composite */ \
  X(formal)   /* num; text name or 0; type */ \
  X(ret)      /* text name or ""; value */ \
  X(node)     /* text op; result, in, to, value, var, num, arg, bodyname, type, notes */ \
  X(result)   /* num; text name or 0 */ \
  X(in)       /* text: a dim in brackets */ \
  X(to)       /* text: a dim after the arrow */ \
  X(value)    /* num: %num */ \
  X(var)      /* text: @text */ \
  X(arg)      /* text name or ""; one num, str, word, bool, call, or axis */ \
  X(bodyname) /* text */ \
  X(type)     /* text dtype; along, pending */ \
  X(along)    /* text dim; axis: those that split it */ \
  X(pending)  /* text: sum or max; axis */ \
  X(axis)     /* text */ \
  X(num)      /* num; text as written */ \
  X(bool)     /* num */ \
  X(word)     /* text */ \
  X(str)      /* text */ \
  X(call)     /* text callee; arg */ \
  X(name)     /* text */ \
  X(loc)      /* notes are loc path layer fwd why. text file; place */ \
  X(path)     /* text */ \
  X(layer)    /* num */ \
  X(fwd)      /* num: a value */ \
  X(why)      /* text */

typedef enum {
#define X(kind) IR_##kind,
  IR_TREES(X)
#undef X
  IR_COUNT
} IrKind;

typedef struct IrTree IrTree;
struct IrTree {
  IrKind kind;
  uint32_t height;                  // 1 for a leaf; at most IR_HEIGHT
  Span span;                        // in the IR text
  Str text;                         // interned
  union { double num; Span place; };
  IrTree *kid, *next;
};

enum { IR_HEIGHT = 64 };

// Reads diag->source.at[source] whole; lives in a, names in `in`. Errors are reported there, a line with one is left out.
IrTree *ir_text_parse(Arena *a, Intern *in, Diag *d, uint16_t source);

// What the scanner reads back as one token with this meaning.
void ir_text_name(Text *t, const char *name);                     // h.0.mlp, or in quotes
void ir_text_var(Text *t, const char *name);                      // @wte.weight:grad, @"experts.{expert}.w2.weight"
void ir_text_string(Text *t, const char *s);                      // "…", with \" \\ \n \t \xHH
void ir_text_num(Text *t, double v);                              // the shortest of 15, 16, 17 digits that is exact; inf -inf nan
void ir_text_place(Text *t, const char *file, Span at);           // gpt2.mt:57:12-20 or gpt2.mt:57:12-58:3
#endif
