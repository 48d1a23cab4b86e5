// Huge, deep and broken IR texts: read in time linear in their length, or refused with a message; and broken modules,
// which the verifier names.
#include "compiler/ir.h"
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

typedef struct { Arena *a; Diag d; Intern *in; Text said, text; } World;

static World world(void) {
  World w = {.a = arena_create()};
  text_init(&w.said, w.a), text_init(&w.text, w.a);
  text_puts(&w.said, ""), text_puts(&w.text, "");
  w.in = intern_create(w.a);
  return w;
}

static Module *read(World *w) {
  w->said.n = 0, w->said.s[0] = 0;
  diag_init(&w->d, w->a);
  w->d.to = &w->said;
  return ir_parse(w->a, w->in, &w->d, diag_source(&w->d, "t", w->text.s, w->text.n));
}

static void refused(World *w, const char *message) {
  assert_null(read(w));
  if (!strstr(w->said.s, message)) fail_msg("wanted '%s' in\n%s", message, w->said.s);
}

static void small_test(void **state) {
  (void)state;
  World w = world();
  assert_non_null(read(&w));                            // nothing is a module
  text_puts(&w.text, "\n\n# only this");
  Module *m = read(&w);
  assert_non_null(m);
  Text t;
  text_init(&t, w.a);
  text_puts(&t, "");
  ir_print(&t, m);
  assert_string_equal(t.s, "");
  text_add(&w.text, "\n\0\0\0", 4);
  refused(&w, "unexpected byte 0x00");
  arena_destroy(w.a);
}

static void deep_test(void **state) {
  (void)state;
  World w = world();
  static const int depths[] = {20, 100, 5000, 200000};
  for (size_t i = 0; i < COUNT(depths); i++) {
    w.text.n = 0;
    text_puts(&w.text, "set x = ");
    for (int k = 0; k < depths[i]; k++) text_puts(&w.text, "f(");
    for (int k = 0; k < depths[i]; k++) text_puts(&w.text, ")");
    if (i) refused(&w, "nested deeper than 64");
    else assert_non_null(read(&w));
  }
  for (uint32_t depth = 60; depth < 30000; depth = depth * 2 + 20000) {       // bodies in bodies
    w.text.n = 0;
    text_puts(&w.text, "body b0 of topk(%1: f32[]) -> (%2) {\n  %2 = exp(%1) : f32[]\n}\n");
    for (uint32_t k = 1; k < depth; k++) text_printf(&w.text, "body b%u of topk(%%1: f32[]) -> (%%2) {\n  %%2 = topk(%%1) body b%u : f32[]\n}\n", k, k - 1);
    if (depth > 100) refused(&w, "bodies nest deeper than 64");
    else assert_non_null(read(&w));
  }
  arena_destroy(w.a);
}

static void wide_test(void **state) {
  (void)state;
  enum { N = 50000 };
  World w = world();
  for (uint32_t i = 0; i < N; i++) text_printf(&w.text, "dim d%u = %u\nvar scalar @s%u : f32[d%u]\n", i, i, i, i);
  text_puts(&w.text, "fn f(%1: f32[d7]) -> (");
  for (uint32_t i = 2; i <= N; i++) text_printf(&w.text, "%s%%%u", i > 2 ? ", " : "", i);
  text_puts(&w.text, ") {\n");
  for (uint32_t i = 2; i <= N; i++) text_printf(&w.text, "  %%%u = add(%%%u, %%1) : f32[d7] ; f%u.mt:%u:1 in h.%u \"text\"\n", i, i - 1, i % 1000, i, i % 100);
  text_puts(&w.text, "}\n");
  double start = now_seconds();
  Module *m = read(&w);
  assert_non_null(m);
  assert_true(now_seconds() - start < 20);              // 0.3 s; a look-up that walks a list takes minutes
  Text t;
  text_init(&t, w.a);
  ir_print(&t, m);
  size_t skip = strspn(t.s, "\n");
  assert_true(strstr(t.s, "fn f(") && t.n > w.text.n / 2 && !skip);
  start = now_seconds();
  assert_true(ir_verify(m, 0));
  assert_true(now_seconds() - start < 5);               // 5 ms
  arena_destroy(w.a);
}

// ---- the verifier -------------------------------------------------------------------------------------------------
static const char sound[] =
  "mesh tp = 2\ndim seq = 8\nvar param @w : f32[seq] = zeros\nvar scalar @s : f32[]\n"
  "body b of topk(%1: f32[seq]) -> (%2) {\n  %2 = exp(%1) : f32[seq] ; t.mt:1:1 \"text\"\n}\n"
  "fn f(%1: f32[seq]) -> (y: %4) {\n"
  "  %2 = add(%1, %1) : f32[seq] ; t.mt:1:1 \"text\"\n"
  "  %3 = topk(%2) body b : f32[seq] ; t.mt:2:1 \"text\"\n"
  "  %4 = sum[seq](%3) : f32[] ; t.mt:3:1 \"text\"\n"
  "  write @s, %4 ; t.mt:4:1 \"text\"\n}\n";

typedef void Break(Module *m, Fn *f);
static void no_line(Module *m, Fn *f) { (void)m, f->node.at[2].loc = (Span){0}; }
static void no_why(Module *m, Fn *f) { (void)m, f->node.at[2].why = 0; }
static void no_path(Module *m, Fn *f) { (void)m, f->node.at[2].path = 0; }
static void later_operand(Module *m, Fn *f) { (void)m, f->operand.at[0] = 3; }
static void no_operand(Module *m, Fn *f) { (void)m, f->operand.at[1] = 0; }
static void own_operand(Module *m, Fn *f) { (void)m, f->operand.at[0] = 2; }
static void pool(Module *m, Fn *f) { (void)m, f->node.at[4].in = 1000; }
static void gap(Module *m, Fn *f) { (void)m, f->node.at[3].out++; }
static void def(Module *m, Fn *f) { (void)m, f->val.at[3].def = 1; }
static void extra(Module *m, Fn *f) { vec_push(m->arena, &f->val, (Value){.type = 1}); }
static void bad_op(Module *m, Fn *f) { (void)m, f->node.at[1].op = OP_COUNT; }
static void other_op(Module *m, Fn *f) { (void)m, f->node.at[1].op = OP_eq; }
static void few(Module *m, Fn *f) { (void)m, f->node.at[1].nin = 1; }
static void no_type(Module *m, Fn *f) { (void)m, f->val.at[2].type = 0; }
static void far_type(Module *m, Fn *f) { f->val.at[2].type = m->type.n; }
static void torn(Module *m, Fn *f) { f->val.at[2].type = type_intern(m, (Type){.dtype = DT_f32, .ndim = 1, .dim = {1}, .split = {0x10}}); }
static void twice(Module *m, Fn *f) { f->val.at[2].type = type_intern(m, (Type){.dtype = DT_f32, .ndim = 1, .dim = {1}, .split = {1}, .pending = PENDING_sum, .pending_axes = 1}); }
static void stray_axis(Module *m, Fn *f) { f->val.at[2].type = type_intern(m, (Type){.dtype = DT_f32, .ndim = 1, .dim = {1}, .split = {2}}); }
static void split_up(Module *m, Fn *f) { f->val.at[2].type = type_intern(m, (Type){.dtype = DT_f32, .ndim = 1, .dim = {1}, .split = {1}}); }
static void odd_dim(Module *m, Fn *f) { (void)f, m->dim.at[1].extent = 9; }
static void far_dim(Module *m, Fn *f) { (void)m, f->node.at[3].attr.dims[0] = 99; }
static void far_var(Module *m, Fn *f) { (void)m, f->node.at[4].attr.var = 99; }
static void far_body(Module *m, Fn *f) { (void)m, f->node.at[2].body = 99; }
static void no_body(Module *m, Fn *f) { (void)m, f->node.at[2].body = 0; }
static void strange_body(Module *m, Fn *f) { (void)m, f->node.at[1].body = 1; }
static void far_ret(Module *m, Fn *f) { (void)m, f->ret.at[0] = 99; }
static void no_name(Module *m, Fn *f) { (void)m, f->ret_name.n = 0; }
static void forward(Module *m, Fn *f) { (void)m, f->node.at[1].fwd = 3; }
static void body_split(Module *m, Fn *f) { (void)f, m->fn.at[1]->val.at[2].type = type_intern(m, (Type){.dtype = DT_f32, .ndim = 1, .dim = {1}, .split = {1}}); }
static void var_type(Module *m, Fn *f) { (void)f, m->var.at[1].type = 0; }
static void var_of(Module *m, Fn *f) { (void)f, m->var.at[1].of = 2; }
static void axes(Module *m, Fn *f) { (void)f, m->axis.at[0].size = 0; }
static void lost(Module *m, Fn *f) { (void)m, f->name = intern(m->in, "g"); }

static void verify_test(void **state) {
  (void)state;
  static const struct { Break *with; const char *message; } rows[] = {
    {no_line, "it has no line"}, {no_why, "t.mt:2:1: error IR10: after fuse: f, node 2, topk: it has no reason"}, {no_path, "has no path"},
    {later_operand, "operand 1 is not defined before it"}, {no_operand, "operand 2 is not defined before it"}, {own_operand, "operand 1 is not defined before it"},
    {pool, "operands past the pool"}, {gap, "its results are not values"}, {def, "value 3 is not defined by node 2"}, {extra, "f has 5 values, 4 are defined"},
    {bad_op, "node 1 has no op"}, {other_op, "its result is f32[seq], the op gives bool[seq]"}, {few, "it takes 2 operands, not 1"}, {no_type, "a value has no type"},
    {far_type, "a value has no type"}, {torn, "seq is split by no axis"}, {twice, "the axis tp is used twice"}, {stray_axis, "seq is split by no axis"},
    {split_up, "its result is f32[seq|tp], the op gives f32[seq]"}, {odd_dim, "dim seq has extent 9 and size 8"}, {far_dim, "a dim in brackets is none"},
    {far_var, "it names no variable"}, {far_body, "it has no body"}, {no_body, "it has no body"}, {strange_body, "it has a body and is no composite"},
    {far_ret, "result 1 is no value"}, {no_name, "1 results and 0 names"}, {forward, "its forward node is no earlier one"}, {body_split, "a body's types are whole"},
    {var_type, "@w has no type"}, {var_of, "@w is a param of something"}, {axes, "mesh axis tp has size 0"}, {lost, "is not found by its name"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    World w = world();
    text_puts(&w.text, sound);
    Module *m = read(&w);
    assert_non_null(m);
    Fn *f = m->fn.at[2];
    uint32_t types;
    rows[i].with(m, f);
    types = m->type.n;
    if (ir_verify(m, "fuse")) fail_msg("row %zu, '%s': nothing was found", i, rows[i].message);
    if (!strstr(w.said.s, rows[i].message)) fail_msg("row %zu: wanted '%s' in\n%s", i, rows[i].message, w.said.s);
    assert_int_equal(m->type.n, types);
    arena_destroy(w.a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_test), cmocka_unit_test(deep_test), cmocka_unit_test(wide_test), cmocka_unit_test(verify_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
