// expr.c -- arithmetic on what is known at compile time: doubles, bools, strings.
#include "compiler/program.h"
#include <math.h>
#include <string.h>

Number number_of(double v) { return (Number){.kind = NUM_number, .num = v}; }
Number bool_of(bool v) { return (Number){.kind = NUM_bool, .num = v}; }

const char *number_text(Arena *a, Number n) {
  switch (n.kind) {
  case NUM_bool: return n.num != 0 ? "true" : "false";
  case NUM_string: return arena_printf(a, "\"%s\"", n.str);
  case NUM_error: return "?";
  case NUM_number: break;
  }
  if (isinf(n.num)) return n.num < 0 ? "-inf" : "inf";
  for (int digits = 6; digits <= 17; digits++) {                       // the shortest text that reads back
    const char *s = arena_printf(a, "%.*g", digits, n.num);
    double back = 0;
    if (sscanf(s, "%lf", &back) == 1 && back == n.num) return s;
  }
  return "nan";
}

static Number wrong(Diag *d, Span at, const char *op, Number a) {
  if (a.kind != NUM_error) diag_error(d, at, "MT0247", "%s does not take %s", op, number_text(d->arena, a));
  return (Number){.kind = NUM_error};
}

Number fold_unary(Diag *d, Span at, Str op, Number a) {
  if (!strcmp(op, "not")) return a.kind == NUM_bool ? bool_of(a.num == 0) : wrong(d, at, "'not'", a);
  return a.kind == NUM_number ? number_of(-a.num) : wrong(d, at, "'-'", a);
}

static double floored(double a, double b) {                            // the sign of the divisor
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Number fold_binary(Diag *d, Span at, Str op, Number a, Number b) {
  if (a.kind == NUM_error || b.kind == NUM_error) return (Number){.kind = NUM_error};
  const char *quoted = arena_printf(d->arena, "'%s'", op);
  bool eq = !strcmp(op, "=="), ne = !strcmp(op, "!=");
  if (!strcmp(op, "and") || !strcmp(op, "or")) {
    if (a.kind != NUM_bool) return wrong(d, at, quoted, a);
    if (b.kind != NUM_bool) return wrong(d, at, quoted, b);
    return bool_of(*op == 'a' ? a.num != 0 && b.num != 0 : a.num != 0 || b.num != 0);
  }
  if ((eq || ne) && a.kind == b.kind) {
    bool same = a.kind == NUM_string ? a.str == b.str : a.num == b.num;
    return bool_of(eq ? same : !same);
  }
  if (a.kind != NUM_number) return wrong(d, at, quoted, a);
  if (b.kind != NUM_number) return wrong(d, at, quoted, b);
  double x = a.num, y = b.num;
  switch (*op) {
  case '+': return number_of(x + y);
  case '-': return number_of(x - y);
  case '*': return number_of(x * y);
  case '/': return number_of(x / y);
  case '%': return number_of(floored(x, y));
  case '^': return number_of(pow(x, y));
  case '<': return bool_of(op[1] ? x <= y : x < y);
  case '>': return bool_of(op[1] ? x >= y : x > y);
  default: bug("operator %s is not folded", op);
  }
}

static double math(const char *fn, double x) {
  return !strcmp(fn, "exp") ? exp(x) : !strcmp(fn, "log") ? log(x) : !strcmp(fn, "sqrt") ? sqrt(x) : !strcmp(fn, "rsqrt") ? 1 / sqrt(x)
       : !strcmp(fn, "tanh") ? tanh(x) : !strcmp(fn, "sin") ? sin(x) : !strcmp(fn, "cos") ? cos(x) : !strcmp(fn, "erf") ? erf(x)
       : !strcmp(fn, "abs") ? fabs(x) : !strcmp(fn, "floor") ? floor(x) : ceil(x);
}

bool fold_call(Diag *d, Span at, Str fn, const Number *arg, uint32_t n, Number *out) {
  static const char *const unary[] = {"exp", "log", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf", "abs", "floor", "ceil"};
  *out = (Number){.kind = NUM_error};
  for (uint32_t i = 0; i < n; i++)
    if (arg[i].kind == NUM_error) return true;
  bool is_select = !strcmp(fn, "select"), is_max = !strcmp(fn, "max");
  if (is_select || is_max || !strcmp(fn, "min")) {
    uint32_t want = is_select ? 3 : 2;
    if (n != want) return diag_error(d, at, "MT0241", "%s takes %u arguments, got %u", fn, want, n), true;
    if (is_select && arg[0].kind != NUM_bool) return wrong(d, at, "select", arg[0]), true;
    if (is_select) return *out = arg[0].num != 0 ? arg[1] : arg[2], true;
    for (uint32_t i = 0; i < 2; i++)
      if (arg[i].kind != NUM_number) return wrong(d, at, fn, arg[i]), true;
    return *out = number_of(is_max ? fmax(arg[0].num, arg[1].num) : fmin(arg[0].num, arg[1].num)), true;
  }
  for (size_t i = 0; i < COUNT(unary); i++)
    if (!strcmp(fn, unary[i])) {
      if (n != 1) return diag_error(d, at, "MT0241", "%s takes 1 argument, got %u", fn, n), true;
      if (arg[0].kind != NUM_number) return wrong(d, at, fn, arg[0]), true;
      return *out = number_of(math(fn, arg[0].num)), true;
    }
  return false;
}

void word_suggest(Diag *d, const char *word, const Str *words, size_t n) {
  Str near = nearest(word, words, n);
  if (near) diag_note(d, "did you mean '%s'?", near);
}

// ---- numbers ------------------------------------------------------------------------------------------------------
Number number_eval(Program *p, const Scope *scope, const Ast *e) {
  switch (e->kind) {
  case N_num: return number_of(e->num);
  case N_str: return (Number){.kind = NUM_string, .str = e->text};
  case N_bool: return bool_of(*e->text == 't');
  case N_unary: return fold_unary(p->diag, e->span, e->text, number_eval(p, scope, e->kid[0]));
  case N_binary: {
    Number a = number_eval(p, scope, e->kid[0]);
    return fold_binary(p->diag, e->span, e->text, a, number_eval(p, scope, e->kid[1]));
  }
  case N_name: {
    const uint64_t *i = map_get(&scope->config_by_name, key_of(e->text));
    if (i) return scope->config.at[*i].value;
    if (!strcmp(e->text, "pi")) return number_of(3.14159265358979323846);
    if (!strcmp(e->text, "inf")) return number_of(INFINITY);
    diag_error(p->diag, e->span, "MT0221", "no value '%s' here", e->text);
    VEC(Str) names = {0};
    for (uint32_t k = 0; k < scope->config.n; k++) vec_push(p->arena, &names, scope->config.at[k].name);
    word_suggest(p->diag, e->text, names.at, names.n);
    return (Number){.kind = NUM_error};
  }
  case N_call: {
    Number arg[8];
    const Ast *args = e->kid[2];
    if (!strcmp(e->text, "extent")) {
      double n = 1;
      for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i]->kid[0];
        const uint64_t *d = a->kind == N_name ? map_get(&scope->dim_by_name, key_of(a->text)) : 0;
        if (!d) return diag_error(p->diag, a->span, "MT0220", "no dim '%s' here", a->kind == N_name ? a->text : "?"), (Number){.kind = NUM_error};
        n *= (double)dim_of(p->module, (DimId)*d)->extent;
      }
      return number_of(n);
    }
    if (args->n > COUNT(arg)) return diag_error(p->diag, e->span, "MT0241", "%s takes fewer arguments", e->text), (Number){.kind = NUM_error};
    for (uint32_t i = 0; i < args->n; i++) arg[i] = number_eval(p, scope, args->kid[i]->kid[0]);
    Number r;
    if (fold_call(p->diag, e->span, e->text, arg, args->n, &r)) return r;
    return diag_error(p->diag, e->span, "MT0222", "no function '%s' of numbers", e->text), (Number){.kind = NUM_error};
  }
  case N_none: return (Number){.kind = NUM_error};
  default: return diag_error(p->diag, e->span, "MT0248", "a number is wanted here"), (Number){.kind = NUM_error};
  }
}
