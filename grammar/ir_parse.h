// ir_parse.h -- one parse of an IR text: what the scanner (ir.l) and the grammar (ir.y) share. Private to them.
#ifndef MT_IR_PARSE_H
#define MT_IR_PARSE_H
#include "grammar/ir_text.h"

// The words that open an item or part of one; each may still be a name.
#define IR_WORDS(X) \
  X(mesh) X(map) X(weak) X(dim) X(size) X(of) X(zigzag) X(part) X(sample) X(ragged) X(set) X(output) X(coef) X(per_step) \
  X(var) X(decay) X(stored) X(partial) X(fn) X(body) X(in) X(layer) X(fwd)

typedef struct { IrTree *first, *last; } IrChain;
typedef union { Str text; double num; IrTree *tree; IrChain chain; } IrValue;      // of a token or a rule

typedef struct {
  Arena *arena;
  Intern *in;
  Diag *diag;
  uint16_t source;
  const char *text; size_t n;
  IrTree *root;
  void *scanner;
  Map words;                        // interned word -> token
  uint32_t line, col;               // of the next character
  size_t at, token_at, token_n;     // byte offsets: of the next; of the last token
  uint32_t bad_line;                // a line with a lexical error: what the grammar says of it is an echo
  bool ended;                       // the newline that stands for the end was handed out
} IrParse;

int irt_lex(IrValue *v, Span *at, IrParse *p);                    // ir.l: the next token
int irt_parse(IrParse *p);                                        // ir.y: 0, or not when it gave up
#endif
