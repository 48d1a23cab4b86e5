// check.h -- is a tree as ast.h promises?
#ifndef MT_TEST_CHECK_H
#define MT_TEST_CHECK_H
#include "grammar/ast.h"

// 0, or what is wrong, in a. After errors in the text (broken), `none` may stand for an item, statement or expression.
const char *tree_check(Arena *a, const Ast *root, uint16_t source, bool broken);
uint32_t tree_count(const Ast *root, NodeKind kind);             // nodes of this kind
const Ast *tree_find(const Ast *list, NodeKind kind, const char *text);       // a kid of the list; 0 if absent
#endif
