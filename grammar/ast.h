// ast.h -- the tree of a model text, and the functions that read a text into one.
//
// The tree is as written: nothing is looked up, folded or checked beyond the syntax. Every node has its span. Its
// height is bounded, so later stages may walk it recursively.
#ifndef MT_AST_H
#define MT_AST_H
#include "runtime/base.h"
#include "runtime/diag.h"

// kind      text; kids in order. (x | y) is a kid of kind list that holds any number of x and y.
#define NODES(X) \
  X(list)      /* any kids */ \
  X(none)      /* an optional part that is absent; in a list: something with an error, which was reported */ \
  X(import)    /* text path */ \
  X(config)    /* (set | require) */ \
  X(preset)    /* text name; (set) */ \
  X(dim)       /* text name; extent expr | none, pad expr | none */ \
  X(fn)        /* text name; (name) dim parameters, (formal), (type) results, (statement) */ \
  X(block)     /* the same */ \
  X(model)     /* text name; (formal), (formal) outputs, (statement) */ \
  X(precision) /* (set | keep) */ \
  X(parallel)  /* (set | mesh | map) */ \
  X(train)     /* (set) */ \
  X(set)       /* text dotted name; (expr | dtype) values */ \
  X(require)   /* expr */ \
  X(keep)      /* text dtype; (name) */ \
  X(mesh)      /* (set) */ \
  X(map)       /* text "weak" or ""; (name) dims, (name) axes */ \
  X(formal)    /* text name; type | none, default expr | none */ \
  X(type)      /* text dtype, "float" where none is written; (name | maybe | star) */ \
  X(name)      /* text: a value, or in a list of dims a dim */ \
  X(maybe)     /* text: the dim of `d?` */ \
  X(star)      /* the `*` of a type */ \
  X(group)     /* name kids: the dims of `(a, b)` */ \
  X(param)     /* text name; as | none, type, init expr */ \
  X(assign)    /* (name), (expr) */ \
  X(return)    /* (expr) */ \
  X(repeat)    /* text index; count expr, (statement) */ \
  X(if)        /* condition expr, (statement) then, (statement) else: empty, or one `if` for `else if` */ \
  X(as)        /* text path */ \
  X(call)      /* text callee; (name | group) dims, (name | group) dims after `->`, (arg), as | none */ \
  X(arg)       /* text label or ""; expr */ \
  X(convert)   /* text dtype; expr */ \
  X(binary)    /* text operator: or and == != < > <= >= + - * / % ^; left, right */ \
  X(contract)  /* left, right, (name) dims; none instead of the list where `@` has no brackets */ \
  X(unary)     /* text operator: - not; expr */ \
  X(num)       /* num */ \
  X(str)       /* text */ \
  X(bool)      /* text "true" or "false" */ \
  X(dtype)     /* text; only as a value of a set */

// statement: param dim assign return repeat if, or none
// expr:      name num str bool call convert binary contract unary, or none

typedef enum {
#define X(kind) N_##kind,
  NODES(X)
#undef X
  N_COUNT
} NodeKind;
extern const char *const node_kind_name[N_COUNT];

typedef struct Ast Ast;
struct Ast {
  NodeKind kind;
  uint32_t n, room;                 // kids
  Ast **kid;
  Span span;
  Str text;                         // interned; 0 for kinds without a text
  double num;
  uint32_t height;                  // 1 for a leaf; at most AST_HEIGHT in a parsed tree
};

enum { AST_HEIGHT = 1000 };

Ast *ast_node(Arena *a, NodeKind kind, Span span, Str text);
Ast *ast_push(Arena *a, Ast *parent, Ast *kid);        // appends; returns parent
void  ast_print(Text *t, const Ast *n);                  // S-expression; items and statements on lines of their own

// Each reads diag->source.at[source] whole and reports errors there. `parse` always returns the list of items
// (import config preset dim fn block model precision parallel train), as far as it was understood; the others
// return 0 after an error.
Ast *parse(Arena *a, Intern *in, Diag *d, uint16_t source);
Ast *parse_setting(Arena *a, Intern *in, Diag *d, uint16_t source);  // "train.optimizer.lr=3e-3": a set
Ast *parse_values(Arena *a, Intern *in, Diag *d, uint16_t source);   // "adamw(lr = 1e-3)": a list, as in a set
Ast *parse_map(Arena *a, Intern *in, Diag *d, uint16_t source);      // "weak seq -> tp": a map
Ast *parse_mesh(Arena *a, Intern *in, Diag *d, uint16_t source);     // "dp=2,tp=2": a mesh
#endif
