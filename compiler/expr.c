// expr.c -- arithmetic on what is known at compile time: doubles, bools, strings.
#include "compiler/program.h"
#include <math.h>
#include <string.h>

Number number_of(double v) { return (Number){.kind = NUM_number, .num = v}; }
Number bool_of(bool v) { return (Number){.kind = NUM_bool, .num = v}; }
static Number no_number(void) { return (Number){.kind = NUM_error}; }

const char *number_text(Arena *a, Number n) {
  switch (n.kind) {
  case NUM_bool: return n.num != 0 ? "true" : "false";
  case NUM_string:
    return strlen(n.str) <= 60 ? arena_printf(a, "\"%s\"", n.str) : arena_printf(a, "\"%.57s…\"", n.str);
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

const Number *number_predefined(const char *name) {
  static const struct { const char *name; Number value;
  } table[] = {{"pi", {.kind = NUM_number, .num = 3.14159265358979323846}},
               {"inf", {.kind = NUM_number, .num = INFINITY}},
               {"training", {.kind = NUM_bool, .num = 1}}};
  for (size_t i = 0; i < COUNT(table); i++)
    if (!strcmp(table[i].name, name)) return &table[i].value;
  return 0;
}

// ---- folding ----------------------------------------------------------------------------------------------
static Number wrong(Fold *f, const char *op, Number a) {
  if (a.kind != NUM_error)
    f->code = "MT0247",
    f->why = arena_printf(f->arena, "'%s' does not take %s", op, number_text(f->arena, a));
  return no_number();
}

Number fold_unary(Fold *f, Str op, Number a) {
  if (!strcmp(op, "not")) return a.kind == NUM_bool ? bool_of(a.num == 0) : wrong(f, op, a);
  return a.kind == NUM_number ? number_of(-a.num) : wrong(f, op, a);
}

static double floored(double a, double b) {                            // the sign of the divisor
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Number fold_binary(Fold *f, Str op, Number a, Number b) {
  bool eq = !strcmp(op, "=="), ne = !strcmp(op, "!="), logic = !strcmp(op, "and") || !strcmp(op, "or");
  NumberKind kind = logic ? NUM_bool : NUM_number;
  if (a.kind == NUM_error || b.kind == NUM_error) return no_number();
  if ((eq || ne) && a.kind == b.kind) {
    bool same = a.kind == NUM_string ? a.str == b.str : a.num == b.num;
    return bool_of(eq ? same : !same);
  }
  if (a.kind != kind) return wrong(f, op, a);
  if (b.kind != kind) return wrong(f, op, b);
  double x = a.num, y = b.num;
  switch (*op) {
  case 'a': return bool_of(x != 0 && y != 0);
  case 'o': return bool_of(x != 0 || y != 0);
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

typedef double Function(double x);
static double inverse_root(double x) { return 1 / sqrt(x); }
static const struct { const char *name; Function *f;
} functions[] = {{"exp", exp},   {"log", log},     {"sqrt", sqrt}, {"rsqrt", inverse_root},
                 {"tanh", tanh}, {"sin", sin},     {"cos", cos},   {"erf", erf},
                 {"abs", fabs},  {"floor", floor}, {"ceil", ceil}};

bool fold_call(Fold *f, Str fn, const Number *arg, uint32_t n, Number *out) {
  bool is_select = !strcmp(fn, "select"), is_max = !strcmp(fn, "max"), pair = is_max || !strcmp(fn, "min");
  Function *math = 0;
  for (size_t i = 0; i < COUNT(functions); i++)
    if (!strcmp(fn, functions[i].name)) math = functions[i].f;
  if (!math && !pair && !is_select) return false;
  uint32_t want = is_select ? 3 : pair ? 2 : 1;
  *out = no_number();
  for (uint32_t i = 0; i < n; i++)
    if (arg[i].kind == NUM_error) return true;
  if (n != want) {
    f->code = "MT0241",
    f->why = arena_printf(f->arena, "%s takes %u argument%s, got %u", fn, want, want == 1 ? "" : "s", n);
    return true;
  }
  for (uint32_t i = 0; i < (is_select ? 1 : n); i++)
    if (arg[i].kind != (is_select ? NUM_bool : NUM_number)) return *out = wrong(f, fn, arg[i]), true;
  if (is_select) *out = arg[0].num != 0 ? arg[1] : arg[2];
  else if (pair) *out = number_of(is_max ? fmax(arg[0].num, arg[1].num) : fmin(arg[0].num, arg[1].num));
  else *out = number_of(math(arg[0].num));
  return true;
}

void word_suggest(Diag *d, const char *word, const Str *words, size_t n) {
  Str near = diag_is_full(d) ? 0 : nearest(word, words, n);
  if (near) diag_note(d, "did you mean '%s'?", near);
}

// ---- numbers of items and settings ------------------------------------------------------------------------
static Number report(Program *p, Span at, const Fold *f, Number n) {
  if (f->why) diag_error(p->diag, at, f->code, "%s", f->why);
  return n;
}

static Number name_value(Program *p, const Scope *scope, const Ast *e) {
  const uint64_t *i = map_get(&scope->config_by_name, key_of(e->text));
  if (i) return config_value(p, &scope->config.at[*i]);
  const Number *known = number_predefined(e->text);
  if (known && known->kind == NUM_number) return *known;
  if (known)
    return diag_error(p->diag, e->span, "MT0221", "'%s' is known in bodies only", e->text), no_number();
  diag_error(p->diag, e->span, "MT0221", "no value '%s' here", e->text);
  if (map_get(&p->dim_item, key_of(e->text)))
    diag_note(p->diag, "%s is a dim; its length is extent(%s)", e->text, e->text);
  VEC(Str) names = {0};
  for (uint32_t k = 0; k < scope->config.n; k++) vec_push(p->arena, &names, scope->config.at[k].name);
  word_suggest(p->diag, e->text, names.at, names.n);
  return no_number();
}

static Number extent_value(Program *p, const Ast *args) {
  double n = 1;
  for (uint32_t i = 0; i < args->n; i++) {
    const Ast *a = args->kid[i]->kind == N_arg ? args->kid[i]->kid[0] : args->kid[i];
    if (a->kind == N_none) return no_number();
    if (a->kind != N_name)
      return diag_error(p->diag, a->span, "MT0220", "extent takes the names of dims"), no_number();
    if (!p->dims_known)
      return diag_error(p->diag, a->span, "MT0220",
                        "extents are not known here: dims are worked out after config and settings"),
             no_number();
    uint32_t errors = p->diag->errors;
    DimId d = dim_value(p, a->text);
    if (!d && p->diag->errors == errors) {
      VEC(Str) names = {0};
      for (uint32_t k = 0; k < p->dim.n; k++) vec_push(p->arena, &names, p->dim.at[k].ast->text);
      diag_error(p->diag, a->span, "MT0220", "no dim '%s'", a->text);
      word_suggest(p->diag, a->text, names.at, names.n);
    }
    if (!d) return no_number();
    n *= (double)dim_of(p->module, d)->extent;
  }
  return number_of(n);
}

static Number call_value(Program *p, const Scope *scope, const Ast *e) {
  enum { MOST = 4 };
  Number arg[MOST], r;
  const Ast *args = e->kid[2];
  Fold f = {.arena = p->arena};
  if (!strcmp(e->text, "extent")) return extent_value(p, args);
  for (uint32_t i = 0; i < args->n && i < MOST; i++)
    arg[i] = args->kid[i]->kind == N_arg ? number_eval(p, scope, args->kid[i]->kid[0]) : no_number();
  if (fold_call(&f, e->text, arg, MIN(args->n, MOST), &r)) return report(p, e->span, &f, r);
  diag_error(p->diag, e->span, "MT0222", "no function '%s' of numbers", e->text);
  return no_number();
}

Number number_eval(Program *p, const Scope *scope, const Ast *e) {
  Fold f = {.arena = p->arena};
  switch (e->kind) {
  case N_num: return number_of(e->num);
  case N_str: return (Number){.kind = NUM_string, .str = e->text};
  case N_bool: return bool_of(*e->text == 't');
  case N_name: return name_value(p, scope, e);
  case N_call: return call_value(p, scope, e);
  case N_none: return no_number();
  case N_unary: {
    Number a = number_eval(p, scope, e->kid[0]);
    a = fold_unary(&f, e->text, a);
    return report(p, e->span, &f, a);
  }
  case N_binary: {
    Number a = number_eval(p, scope, e->kid[0]), b = number_eval(p, scope, e->kid[1]);
    a = fold_binary(&f, e->text, a, b);
    return report(p, e->span, &f, a);
  }
  default: return diag_error(p->diag, e->span, "MT0248", "a number is wanted here"), no_number();
  }
}
