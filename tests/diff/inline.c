// A composite's body in place of its node: the same values, in whole functions and with split operands on all ranks; the
// nodes carry the call's line, path and layer; inner composites stay or go as asked.
#include "compiler/inline.h"
#include "tests/interp/fd.h"
#include "tests/interp/world.h"
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

// softmax over d, a body with an index and an expand of its own, and one around it
static FnId bodies(World *w, FnId *outer) {
  begin(w, "softmax.1");
  Fn *f = w->b.fn;
  f->is_body = true, f->body_of = OP_softmax;
  ValId x = arg(w, "f64[d, b]"), top = op(w, OP_reduce_max, "[d]", OPS(x));
  ValId e = op(w, OP_exp, "", OPS(op(w, OP_sub, "", OPS(x, top)))), n = op(w, OP_sum, "[d]", OPS(e));
  ValId i = ir_cast(&w->b, op(w, OP_index, "[b]", 0, 0), DT_f64), wide = op(w, OP_expand, "[d]", OPS(i));
  ir_return(f, opt(w, OP_add, "", "f64[b, d]", OPS(op(w, OP_div, "", OPS(e, n)), wide)), "");
  FnId inner = fn_id(f);
  begin(w, "softmax.2");
  f = w->b.fn;
  f->is_body = true, f->body_of = OP_softmax;
  x = arg(w, "f64[b, d]");
  TypeId t = type(w, "f64[b, d]");
  ValId y = ir_add_typed(&w->b, OP_softmax, (ValId[]){op(w, OP_neg, "", OPS(x))}, 1, attr(w, "[d]"), &t, 1, inner);
  ir_return(f, op(w, OP_mul, "", OPS(y, x)), "");
  *outer = fn_id(f);
  return inner;
}

typedef struct { const char *mesh, *x; bool (*deeper)(const Fn *f, NodeId n); uint32_t left; } Case;

static void one(const Case *c) {
  World w = world(c->mesh, "b 4, d 5");
  FnId outer;
  bodies(&w, &outer);
  begin(&w, "f");
  Fn *f = w.b.fn;
  ValId x = arg(&w, c->x);
  TypeId t = type(&w, strstr(c->x, "|") ? "f64[b|dp, d]" : "f64[b, d]");
  w.b.path = "h.3", w.b.layer = 4, w.b.loc.line = 77;
  ir_return(f, ir_add_typed(&w.b, OP_softmax, &x, 1, attr(&w, "[d]"), &t, 1, outer), "y");
  NodeId call = f->node.n - 1;
  begin(&w, "g");
  Fn *g = w.b.fn;
  x = arg(&w, c->x);
  ValId y;
  inline_body(&w.b, f, call, &x, c->deeper, &y);
  ir_return(g, y, "y");
  assert_true(ir_verify(w.m, "inline"));
  uint32_t left = 0;
  for (NodeId n = 1; n < g->node.n; n++) {
    const Node *node = fn_node(g, n);
    left += node->op == OP_softmax;
    assert_true(node->loc.line == 77 && node->layer == 4 && !strcmp(node->path, "h.3"));
    assert_string_equal(node->why, "inline: body of softmax");
  }
  assert_int_equal(left, c->left);
  assert_int_equal(g->val.at[g->ret.at[0]].type, t);
  double in[20], was[20], now[20], *out[] = {was}, *again[] = {now};
  const double *arg0[] = {in};
  uint64_t seed = 1;
  fd_fill(in, 20, &seed, -2, 2);
  Interp *it = interp_create(w.arena, w.m);
  assert_true(interp_run(it, f, arg0, out) && interp_run(it, g, arg0, again));
  assert_memory_equal(was, now, sizeof was);
  world_end(&w);
}

static void inline_test(void **state) {
  (void)state;
  static const Case cases[] = {{"", "f64[b, d]", 0, 1}, {"", "f64[d, b]", inline_always, 0}, {"dp=2", "f64[b|dp, d]", 0, 1}, {"dp=2", "f64[d, b|dp]", inline_always, 0}};
  for (size_t i = 0; i < COUNT(cases); i++) one(&cases[i]);
}

// what a value depends on, and no more, with values given for some of it
static void value_test(void **state) {
  (void)state;
  World w = world("", "b 4");
  begin(&w, "f");
  Fn *f = w.b.fn;
  ValId x = arg(&w, "f64[b]"), y = arg(&w, "f64[b]"), s = op(&w, OP_exp, "", OPS(x)), t = op(&w, OP_neg, "", OPS(y)), u = op(&w, OP_mul, "", OPS(s, x));
  ir_return(f, op(&w, OP_add, "", OPS(u, t)), "z");
  begin(&w, "g");
  ValId *map = NEW_N(w.arena, ValId, f->val.n);
  map[x] = arg(&w, "f64[b]"), map[s] = arg(&w, "f64[b]");
  ir_return(w.b.fn, inline_value(&w.b, f, u, map), "u");
  assert_int_equal(w.b.fn->node.n, 2);                  // the product only
  assert_int_equal(fn_node(w.b.fn, 1)->op, OP_mul);
  assert_true(!map[t] && ir_verify(w.m, "inline_value"));
  world_end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(inline_test), cmocka_unit_test(value_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
