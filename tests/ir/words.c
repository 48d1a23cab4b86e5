// Every name, string, number and place that is written is read back as it was: the writer's rules for what needs quotes
// are the scanner's.
#include "grammar/ir_text.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t draw(uint64_t *s, uint64_t below) { return (*s = hash_mix(*s, 3)) % below; }

static const char *random_word(Arena *a, uint64_t *s) {
  static const char *const pieces[] = {"a", "B", "_", "0", "9", ".", ":", "$", "-", "+", "/", " ", "\"", "\\", "\n", "\t", "\r", "\1", "\177", "é", "\xff", "{", "}", ",", "#", ";", "%",
                                       "@", "|", "inf", "nan", "true", "false", "dim", "in", "1e5", "x0", "n", "->"};
  Text t;
  text_init(&t, a);
  text_puts(&t, "");
  for (uint64_t n = draw(s, 6); n; n--) text_puts(&t, pieces[draw(s, COUNT(pieces))]);
  return t.s;
}

static double random_double(uint64_t *s) {
  uint64_t bits = hash_mix(*s, 5);
  double v;
  memcpy(&v, &bits, sizeof v);
  return draw(s, 4) ? v : (double)(int64_t)draw(s, 2000) / 100;
}

static void words_test(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20000; seed++) {
    Arena *a = arena_create();
    uint64_t s = seed;
    Diag d;
    diag_init(&d, a);
    const char *name = random_word(a, &s), *word = random_word(a, &s), *file = random_word(a, &s), *why = random_word(a, &s), *var = random_word(a, &s);
    double v = random_double(&s);
    Span at = {.line = (uint32_t)draw(&s, 5), .col = (uint32_t)draw(&s, 70000), .end_line = (uint32_t)draw(&s, 5), .end_col = (uint16_t)draw(&s, 65536)};
    if (draw(&s, 2)) at.end_line = at.line;
    if (draw(&s, 2)) at.end_col = (uint16_t)MIN(at.col, UINT16_MAX);
    Text t;
    text_init(&t, a);
    text_puts(&t, "set ");
    ir_text_name(&t, name);
    text_puts(&t, " = ");
    ir_text_name(&t, word);
    text_puts(&t, " ; ");
    ir_text_place(&t, file, at);
    text_puts(&t, " ");
    ir_text_string(&t, why);
    text_puts(&t, "\nvar grad ");
    ir_text_var(&t, var);
    text_puts(&t, " : f32[] = normal(");
    ir_text_num(&t, v);
    text_puts(&t, ")");
    IrTree *m = ir_text_parse(a, intern_create(a), &d, diag_source(&d, "t", t.s, t.n));
    if (!m || d.errors) fail_msg("seed %llu: %s", (unsigned long long)seed, t.s);
    const IrTree *set = m->kid, *value = set->kid, *loc = value->next, *reason = loc->next, *decl = set->next;
    bool ok = set->kind == IR_set && !strcmp(set->text, name) && value->kind == IR_word && !strcmp(value->text, word);
    ok = ok && loc->kind == IR_loc && !strcmp(loc->text, file) && loc->place.line == at.line && loc->place.col == at.col && loc->place.end_line == at.end_line;
    ok = ok && loc->place.end_col == at.end_col && reason->kind == IR_why && !strcmp(reason->text, why);
    const IrTree *num = decl->kid->next->next->kid->kid;
    ok = ok && !strcmp(decl->text, var) && num->kind == IR_num && (isnan(v) ? isnan(num->num) : num->num == v && signbit(num->num) == signbit(v));
    if (!ok) fail_msg("seed %llu: read otherwise: %s", (unsigned long long)seed, t.s);
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(words_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
