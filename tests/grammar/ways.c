// ways.c -- the ways into the grammar: whole texts, and the pieces a command line holds.
#include "check.h"
#include "grammar/prelude.h"
#include "runtime/dtype.h"
#include "tests/said.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef Ast *Way(Arena *a, Intern *in, Diag *d, uint16_t source);
typedef struct { Arena *a; Diag d; Text said; uint16_t source; Ast *root; } Run;

static Run run(Way *way, const char *text, size_t n) {
  Run r = {.a = arena_create()};
  diag_said(&r.d, r.a, &r.said);
  r.source = diag_source(&r.d, "t", text, n);
  r.root = way(r.a, intern_create(r.a), &r.d, r.source);
  return r;
}

static void expect_tree(Way *way, const char *text, const char *want) {
  Run r = run(way, text, strlen(text));
  assert_string_equal(r.said.s, "");
  assert_int_equal(r.d.errors, 0);
  assert_non_null(r.root);
  Text t;
  text_init(&t, r.a);
  ast_print(&t, r.root);
  t.s[--t.n] = 0;
  assert_string_equal(t.s, want);
  arena_destroy(r.a);
}

// The first line of the message.
static void expect_error(Way *way, const char *text, const char *want) {
  Run r = run(way, text, strlen(text));
  assert_true(r.d.errors > 0);
  assert_null(r.root);
  r.said.s[strcspn(r.said.s, "\n")] = 0;
  assert_string_equal(r.said.s, want);
  arena_destroy(r.a);
}

static void test_setting(void **state) {
  (void)state;
  expect_tree(parse_setting, "hidden=64", "(set hidden ((num 64)))");
  expect_tree(parse_setting, "train.optimizer.lr=3e-3", "(set train.optimizer.lr ((num 0.0030000000000000001)))");
  expect_tree(parse_setting, "precision.compute = f64\n", "(set precision.compute ((dtype f64)))");
  expect_tree(parse_setting, "parallel.pipeline=1f1b", "(set parallel.pipeline ((name 1f1b)))");
  expect_tree(parse_setting, "train.no_decay=\"*.bias\", \"ln_*\"", "(set train.no_decay ((str \"*.bias\") (str \"ln_*\")))");
  expect_tree(parse_setting, "train=3", "(set train ((num 3)))");
  expect_error(parse_setting, "train.optimizer.lr", "t:1:19: error MT0100: unexpected end, expected '='");
  expect_error(parse_setting, "=3", "t:1:1: error MT0100: unexpected '=', expected a name or a dotted name");
  expect_error(parse_setting, "dim=3", "t:1:1: error MT0104: 'dim' is a word of the language; choose another name");
  expect_error(parse_setting, "a=1 b=2", "t:1:5: error MT0100: unexpected 'b', expected the end or ','");
  expect_error(parse_setting, "a=(1", "t:1:3: error MT0102: '(' is not closed");
  expect_error(parse_setting, "", "t:1:1: error MT0100: unexpected end, expected a name or a dotted name");
}

static void test_values(void **state) {
  (void)state;
  expect_tree(parse_values, "f64", "((dtype f64))");
  expect_tree(parse_values, "off", "((name off))");
  expect_tree(parse_values, "1f1b", "((name 1f1b))");
  expect_tree(parse_values, "true", "((bool true))");
  expect_tree(parse_values, "-1", "((unary - (num 1)))");
  expect_tree(parse_values, "25 MiB", "((num 26214400))");
  expect_tree(parse_values, "adamw(lr = 1e-3)", "((call adamw () () ((arg lr (num 0.001))) _))");
  expect_tree(parse_values, "auto(budget = 2 GiB)", "((call auto () () ((arg budget (num 2147483648))) _))");
  expect_tree(parse_values, "\"0:12,12:24\"", "((str \"0:12,12:24\"))");
  expect_tree(parse_values, "4 * 64, 3;", "((binary * (num 4) (num 64)) (num 3))");
  expect_error(parse_values, "", "t:1:1: error MT0100: unexpected end, expected a value");
  expect_error(parse_values, "adamw(lr = )", "t:1:12: error MT0100: unexpected ')', expected a value");
  expect_error(parse_values, "1e999", "t:1:1: error MT0006: 1e999 is too large; a number is at most 1.8e308");
  expect_error(parse_values, "0:12", "t:1:2: error MT0100: unexpected ':', expected the end or ','");
}

static void test_map(void **state) {
  (void)state;
  expect_tree(parse_map, "seq -> cp", "(map \"\" ((name seq)) ((name cp)))");
  expect_tree(parse_map, "weak seq -> tp", "(map weak ((name seq)) ((name tp)))");
  expect_tree(parse_map, "heads, ff -> dp, ep", "(map \"\" ((name heads) (name ff)) ((name dp) (name ep)))");
  expect_error(parse_map, "seq", "t:1:4: error MT0100: unexpected end, expected '->' or ','");
  expect_error(parse_map, "seq -> ", "t:1:7: error MT0100: unexpected end, expected a name");
  expect_error(parse_map, "seq -> 3", "t:1:8: error MT0100: unexpected '3', expected a name");
}

static void test_mesh(void **state) {
  (void)state;
  expect_tree(parse_mesh, "dp=2,tp=2", "(mesh (\n  (set dp ((num 2)))\n  (set tp ((num 2)))))");
  expect_error(parse_mesh, "dp:2", "t:1:3: error MT0100: unexpected ':', expected '='");
  expect_error(parse_mesh, "dp=2 tp=2", "t:1:6: error MT0100: unexpected 'tp', expected the end or ','");
  expect_error(parse_mesh, "dp", "t:1:3: error MT0100: unexpected end, expected '='");
}

static void test_prelude(void **state) {
  (void)state;
  assert_int_equal(strlen(prelude_text), prelude_size);
  Run r = run(parse, prelude_text, prelude_size);
  assert_string_equal(r.said.s, "");
  assert_null(tree_check(r.a, r.root, r.source, false));
  assert_int_equal(tree_count(r.root, N_param), 6);
  const Ast *f = tree_find(r.root, N_fn, "attention");
  assert_non_null(f);
  assert_int_equal(f->kid[0]->n, 3);                              // [s, t, d]
  assert_string_equal(f->kid[1]->kid[0]->text, "q");
  assert_string_equal(f->kid[1]->kid[0]->kid[0]->text, "float");
  assert_non_null(tree_find(f->kid[1], N_formal, "where"));
  assert_non_null(tree_find(r.root, N_fn, "same_segment"));
  arena_destroy(r.a);
}

static void test_models(void **state) {
  (void)state;
  const char *const names[] = {"gpt2", "llama", "bert", "moe"};
  for (size_t i = 0; i < COUNT(names); i++) {
    Arena *a = arena_create();
    char *text;
    size_t n;
    assert_int_equal(file_read(a, arena_printf(a, "%s/%s.mt", getenv("MODELS"), names[i]), 1 << 20, &text, &n), 0);
    Run r = run(parse, text, n);
    assert_string_equal(r.said.s, "");
    assert_null(tree_check(r.a, r.root, r.source, false));
    const Ast *model = tree_find(r.root, N_model, 0);
    assert_non_null(model);
    assert_non_null(tree_find(model->kid[0], N_formal, "tokens"));
    assert_non_null(tree_find(model->kid[1], N_formal, "loss"));
    assert_non_null(tree_find(model->kid[2], N_repeat, "i"));
    const Ast *demo = tree_find(r.root, N_preset, "demo");
    assert_non_null(demo);
    assert_non_null(tree_find(demo->kid[0], N_set, "train.steps"));
    const Ast *parallel = tree_find(r.root, N_parallel, 0);
    assert_non_null(parallel);
    assert_non_null(tree_find(parallel->kid[0], N_map, "weak"));
    assert_int_equal(tree_find(parallel->kid[0], N_mesh, 0)->kid[0]->n, 5);
    arena_destroy(r.a);
    arena_destroy(a);
  }
}

static const char tour[] = "config { a = 1; b = 2 }\n\nfn f(x: [*]) -> [*] {\n  # a comment\n  y = x +\n    a\n  return y\n}\n";

static void test_line_ends(void **state) {
  (void)state;
  Run lf = run(parse, tour, strlen(tour));
  assert_int_equal(lf.d.errors, 0);
  Text crlf, want, got;
  text_init(&crlf, lf.a), text_init(&want, lf.a), text_init(&got, lf.a);
  text_puts(&crlf, "\xef\xbb\xbf");                               // a byte order mark is no part of the text
  for (const char *s = tour; *s; s++) text_puts(&crlf, *s == '\n' ? "\r\n" : (char[]){*s, 0});
  Run cr = run(parse, crlf.s, crlf.n);
  assert_string_equal(cr.said.s, "");
  ast_print(&want, lf.root), ast_print(&got, cr.root);
  assert_string_equal(got.s, want.s);
  assert_int_equal(cr.root->kid[0]->span.col, 1);
  arena_destroy(cr.a);
  arena_destroy(lf.a);
}

static void test_bom_error_column(void **state) {
  (void)state;
  const char text[] = "\xef\xbb\xbf" "dim 2d";
  Run r = run(parse, text, sizeof text - 1);
  assert_string_equal(r.said.s, "t:1:5: error MT0003: '2d' is neither a number nor a name; a name starts with a letter\n"
                                "     1 | dim 2d\n       |     ^~\n");
  arena_destroy(r.a);
}

static void test_empty(void **state) {
  (void)state;
  const char *const texts[] = {"", "\n", "  ", "# only a comment", "\xef\xbb\xbf", ";;\n;"};
  for (size_t i = 0; i < COUNT(texts); i++) {
    Run r = run(parse, texts[i], strlen(texts[i]));
    assert_int_equal(r.d.errors, 0);
    assert_non_null(r.root);
    assert_int_equal(r.root->n, 0);
    arena_destroy(r.a);
  }
}

static void test_no_text(void **state) {
  (void)state;
  static const struct { const char *text; size_t n; const char *want; } bad[] = {
    {"dim a\0 = 3", 10, "t:1:6: error MT0008: byte 0x00: a text does not hold a byte 0"},
    {"# é\0", 5, "t:1:4: error MT0008: byte 0x00: a text does not hold a byte 0"},
    {"dim a\n# caf\xe9\n", 13, "t:2:6: error MT0008: byte 0xe9: this is not UTF-8"},
    {"# \xc3", 3, "t:1:3: error MT0008: byte 0xc3: this is not UTF-8"},
    {"# \xc0\xaf", 4, "t:1:3: error MT0008: byte 0xc0: this is not UTF-8"},
    {"# \xe0\x80\x80", 5, "t:1:3: error MT0008: byte 0xe0: this is not UTF-8"},
    {"# \xed\xa0\x80", 5, "t:1:3: error MT0008: byte 0xed: this is not UTF-8"},
    {"# \xf4\x90\x80\x80", 6, "t:1:3: error MT0008: byte 0xf4: this is not UTF-8"},
    {"# \xf8\x88\x80\x80\x80", 7, "t:1:3: error MT0008: byte 0xf8: this is not UTF-8"},
    {"dim a\rdim b\r", 12, "t:1:6: error MT0008: byte 0x0d: a lone carriage return; lines end with LF or CR LF"},
    {"", (size_t)1 << 40, "t: error MT0008: 1099511627776 bytes; a text has at most 268435456"},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    Run r = run(parse, bad[i].text, bad[i].n);
    assert_int_equal(r.d.errors, 1);
    assert_non_null(r.root);
    assert_int_equal(r.root->n, 0);
    r.said.s[strcspn(r.said.s, "\n")] = 0;
    assert_string_equal(r.said.s, bad[i].want);
    arena_destroy(r.a);
  }
}

// What follows an error is still understood.
static void test_goes_on(void **state) {
  (void)state;
  const char text[] = "dim =\ndim a = 3\nblok B { x }\nfn f(x: [*]) { return x }\nfn g(x: [*]) -> [*] {\n  y = *\n  return x\n}\ndim b\n";
  Run r = run(parse, text, strlen(text));
  assert_int_equal(r.d.errors, 4);
  assert_non_null(tree_find(r.root, N_dim, "a"));
  assert_non_null(tree_find(r.root, N_dim, "b"));
  const Ast *g = tree_find(r.root, N_fn, "g");
  assert_non_null(g);
  assert_int_equal(g->kid[3]->n, 1);
  assert_null(tree_check(r.a, r.root, r.source, true));
  arena_destroy(r.a);
}

// The dtypes of the language are number formats of the runtime.
static void test_dtypes(void **state) {
  (void)state;
#define X(token, word, class, form) if (!strcmp(#class, "dtype")) assert_string_equal(dtype_name(dtype_find(word)), word);
#include "grammar/keywords.def"
#undef X
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_setting), cmocka_unit_test(test_values), cmocka_unit_test(test_map),
    cmocka_unit_test(test_mesh), cmocka_unit_test(test_prelude), cmocka_unit_test(test_models),
    cmocka_unit_test(test_line_ends), cmocka_unit_test(test_bom_error_column), cmocka_unit_test(test_empty),
    cmocka_unit_test(test_no_text), cmocka_unit_test(test_goes_on), cmocka_unit_test(test_dtypes),
  };
  return cmocka_run_group_tests(tests, 0, 0);
}
