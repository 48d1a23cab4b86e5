// The runner of the passes: finds, lists, refuses, stops, prints; `opt` reads a file and prints what the passes make.
#include "passes/pass.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char text[] =
  "dim seq = 8\n\nfn eval(%1 x: f32[seq]) -> (y: %4) {\n"
  "  %2 = const 2 : f32[] ; t.mt:1:1 \"text\"\n"
  "  %3 = mul(%1, %2) : f32[seq] ; t.mt:1:1 \"text\"\n"
  "  %4 = sum[seq](%3) : f32[] ; t.mt:1:1 \"text\"\n"
  "  %5 = neg(%3) : f32[seq] ; t.mt:1:1 \"text\"\n}\n";

static void names_test(void **state) {
  (void)state;
  PassSet set;
  Pass list[PASS_COUNT];
  uint32_t n;
  for (Pass p = PASS_none + 1; p < PASS_COUNT; p++) assert_int_equal(pass_find(pass_info[p].name), p);
  assert_int_equal(pass_find("simplfy"), PASS_none);
  assert_int_equal(pass_list("autodiff,simplify,autodiff", &set, list, &n), 0);
  assert_int_equal(n, 3);
  assert_int_equal(list[2], PASS_autodiff);
  assert_int_equal(set, (PassSet)1 << PASS_autodiff | (PassSet)1 << PASS_simplify);
  assert_int_equal(pass_list("", &set, list, &n), 0);
  assert_true(!n && !set);
  assert_int_equal(pass_list("simplify,simplfy", 0, list, &n), EXIT_USAGE);
}

static char *slurp(FILE *f, char *s, size_t room) {
  rewind(f);
  s[fread(s, 1, room - 1, f)] = 0;
  fclose(f);
  return s;
}

static void upto_test(void **state) {
  (void)state;
  char got[4096];
  Arena *a = arena_create();
  Diag d;
  diag_init(&d, a);
  Module *m = ir_parse(a, intern_create(a), &d, diag_source(&d, "t", text, strlen(text)));
  assert_non_null(m);
  RunOptions o = {.print = (PassSet)1 << PASS_simplify, .to = tmpfile()};
  assert_true(passes_run(m, PASS_simplify, o));
  slurp(o.to, got, sizeof got);
  assert_true(!strncmp(got, "# after simplify\n", 17));
  assert_null(strstr(got, "neg"));                      // was dead
  assert_int_equal(pass_skippable((PassSet)1 << PASS_simplify), 0);
  assert_int_equal(pass_skippable((PassSet)1 << PASS_precision | (PassSet)1 << PASS_simplify), EXIT_USAGE);
  arena_destroy(a);
}

static void opt_test(void **state) {
  (void)state;
  char got[4096], path[] = "/tmp/mt-run-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && !close(fd) && !file_write(path, text, strlen(text)));
  Arena *a = arena_create();
  Diag d;
  diag_init(&d, a);
  FILE *to = tmpfile();
  assert_int_equal(passes_opt(&d, path, "", to), 0);
  assert_string_equal(slurp(to, got, sizeof got), text);
  to = tmpfile();
  assert_int_equal(passes_opt(&d, path, "simplify", to), 0);
  assert_null(strstr(slurp(to, got, sizeof got), "neg"));
  assert_int_equal(passes_opt(&d, path, "none", stdout), EXIT_USAGE);
  assert_true(!file_write(path, "fn", 2));
  assert_int_equal(passes_opt(&d, path, "simplify", stdout), EXIT_COMPILE);
  unlink(path);
  assert_int_equal(passes_opt(&d, path, "simplify", stdout), EXIT_MISSING);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_test), cmocka_unit_test(upto_test), cmocka_unit_test(opt_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
