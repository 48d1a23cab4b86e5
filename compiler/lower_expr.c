// lower_expr.c -- expressions: operands aligned by dim name, dtypes made equal, products, what is known
// folded.
#include "compiler/lower.h"
#include <math.h>
#include <string.h>

// ---- dtypes -----------------------------------------------------------------------------------------------
static int rank_of(DType t) {                // f16 and bf16 below the compute dtype, that below f32, f64
  switch (t) {
  case DT_bool: return 0;
  case DT_i32: return 1;
  case DT_i64: return 2;
  case DT_f16: case DT_bf16: return 3;
  case DT_float: return 4;
  case DT_f32: return 5;
  default: return 6;
  }
}

DType dtype_wider(DType a, DType b) {
  if (a != b && rank_of(a) == 3 && rank_of(b) == 3) return DT_f32;     // f16 with bf16
  return rank_of(a) >= rank_of(b) ? a : b;
}

const char *dtype_class(DType t) { return t == DT_bool ? "bool" : dtype_is_int(t) ? "integer" : "float"; }

bool number_fits(Number n, DType t) {
  if (n.kind == NUM_bool || t == DT_bool) return n.kind == NUM_bool && t == DT_bool;
  if (n.kind != NUM_number) return false;
  return !dtype_is_int(t) || (n.num == floor(n.num) && fabs(n.num) <= (t == DT_i64 ? 0x1p53 : 0x1p31 - 1));
}

Val to_dtype(Lower *l, Val v, DType dtype, Span at) {
  if (val_is_error(v)) return v;
  Build b = at_span(l, at);
  if (!v.tensor) return (Val){.tensor = true, .v = ir_const(&b, v.number.num, dtype)};
  return val_tensor(l, ir_cast(&b, v.v, dtype), at);
}

// ---- alignment --------------------------------------------------------------------------------------------
static DimId missing(const Type *small, const Type *big) {  // the first dim of small that big lacks, or 0
  for (int i = 0; i < small->ndim; i++)
    if (type_pos(big, small->dim[i]) < 0) return small->dim[i];
  return 0;
}

// rename or slice would make dim d of value `eb` fit: a dim of big that small lacks, another role or smaller
static void suggest_fit(Lower *l, const Type *big, const Type *small, DimId d, const Ast *eb) {
  const Dim *want = dim_of(l->m, d);
  for (int i = 0; i < big->ndim; i++) {
    const Dim *has = dim_of(l->m, big->dim[i]);
    bool role = dims_are_roles(l, d, big->dim[i]);
    if (type_pos(small, big->dim[i]) >= 0 || has->sample || (!role && has->extent >= want->extent)) continue;
    const char *how = role ? "rename" : "slice";
    lower_note(l, "%s[%s -> %s](%s)?", how, dim_word(l, d), dim_word(l, big->dim[i]), expr_words(l, eb));
    return;
  }
}

static const char *expanded(const Lower *l, const Type *t, const Type *other,
                            const Ast *e) {  // "expand[seq](valid)"
  DimId lacks[MAX_DIMS];
  uint32_t n = 0;
  for (int i = 0; i < other->ndim; i++)
    if (type_pos(t, other->dim[i]) < 0) lacks[n++] = other->dim[i];
  return arena_printf(l->a, "expand[%s](%s)", dims_show(l, lacks, n), expr_words(l, e));
}

static void misfit(Lower *l, Span at, const Val v[2], const Ast *const as[2]) {
  const Type *a = val_shape(l, v[0]), *b = val_shape(l, v[1]);
  if (missing(a, b) && missing(b, a) && a->ndim == b->ndim) {
    lower_error(l, at, "MT0202", "neither operand has all dims of the other");
    lower_types(l, v, as, 2);
    lower_note(l, "%s or %s gives one of them all", expanded(l, a, b, as[0]), expanded(l, b, a, as[1]));
    return;
  }
  uint32_t big = a->ndim < b->ndim;
  const Type *tb = big ? b : a, *ts = big ? a : b;
  DimId d = missing(ts, tb);
  lower_error(l, at, "MT0201", "dims do not fit: %s is not in %s", dim_word(l, d), expr_words(l, as[big]));
  lower_types(l, v, as, 2);
  suggest_fit(l, tb, ts, d, as[!big]);
}

static bool fits(Lower *l, Span at, const Val *in, const Ast *const *as, uint32_t n) {
  uint32_t big = 0;
  while (big < n && !in[big].tensor) big++;
  for (uint32_t i = big; i < n; i++)
    if (in[i].tensor && val_shape(l, in[i])->ndim > val_shape(l, in[big])->ndim) big = i;
  for (uint32_t i = 0; i < n; i++)
    if (in[i].tensor && missing(val_shape(l, in[i]), val_shape(l, in[big]))) {
      uint32_t first = MIN(i, big), second = MAX(i, big);
      misfit(l, at, (Val[]){in[first], in[second]}, (const Ast *[]){as[first], as[second]});
      return false;
    }
  return true;
}

// ---- operators --------------------------------------------------------------------------------------------
static const struct { const char *word; Op op;
} operators[] = {{"+", OP_add},   {"-", OP_sub}, {"*", OP_mul},   {"/", OP_div}, {"%", OP_mod}, {"^", OP_pow},
                 {"==", OP_eq},   {"!=", OP_ne}, {"<", OP_lt},    {"<=", OP_le}, {">", OP_gt},  {">=", OP_ge},
                 {"and", OP_and}, {"or", OP_or}, {"not", OP_not}, {"-", OP_neg}};

static Op operator_of(Str s) {
  for (size_t i = 0; i < COUNT(operators); i++)
    if (!strcmp(operators[i].word, s)) return operators[i].op;
  bug("operator %s is unknown", s);
}

static const char *op_word(Op op) {
  for (size_t i = 0; i < COUNT(operators); i++)
    if (operators[i].op == op) return operators[i].word;
  return op_info[op].name;
}

// One elementwise op while its operands are checked; select's condition is operand 0, its values are from 1
// on.
typedef struct {
  Lower *l;
  Span at;
  Op op;
  const Val *in;
  const Ast *const *as;
  uint32_t n, from;
  DType dtype;
} Align;

static bool bool_misuse(const Align *x, uint32_t mask, const char *with) {
  Lower *l = x->l;
  const char *m = expr_words(l, x->as[mask]);
  lower_error(l, x->at, "MT0212", "'%s' on bool%s", op_word(x->op), with);
  lower_types(l, x->in, x->as, x->n);
  if (x->op == OP_mul && x->n == 2)
    lower_note(l, "write select(%s, %s, 0)", m, expr_words(l, x->as[1 - mask]));
  else lower_note(l, "write float(%s), i32(%s), or select(%s, …, …)", m, m, m);
  return false;
}

static bool tensors_agree(Align *x) {        // finds the dtype of the tensors
  Lower *l = x->l;
  uint32_t first = x->n;
  for (uint32_t i = x->from; i < x->n; i++) {
    if (!x->in[i].tensor) continue;
    DType t = val_shape(l, x->in[i])->dtype;
    if (first == x->n) { first = i, x->dtype = t; continue; }
    if (dtype_class(t) == dtype_class(x->dtype)) { x->dtype = dtype_wider(x->dtype, t); continue; }
    if (t == DT_bool || x->dtype == DT_bool)
      return bool_misuse(x, t == DT_bool ? i : first,
                         t == DT_bool ? arena_printf(l->a, " and %s", dtype_class(x->dtype))
                                      : arena_printf(l->a, " and %s", dtype_class(t)));
    uint32_t whole = dtype_is_int(t) ? i : first;
    lower_error(l, x->at, "MT0210", "integers and floats do not mix");
    lower_types(l, x->in, x->as, x->n);
    lower_note(l, "write float(%s)", expr_words(l, x->as[whole]));
    return false;
  }
  return true;
}

static bool condition_ok(const Align *x) {
  if (!x->from ||
      (x->in[0].tensor ? val_shape(x->l, x->in[0])->dtype == DT_bool : x->in[0].number.kind == NUM_bool))
    return true;
  return lower_error(x->l, x->as[0]->span, "MT0212", "select wants a bool first, got %s",
                     val_show(x->l, x->in[0]));
}

// The op takes this dtype.
static bool dtype_ok(const Align *x) {
  Lower *l = x->l;
  Op op = x->op;
  uint32_t t = x->from;                                                // a tensor, to show
  while (t + 1 < x->n && !x->in[t].tensor) t++;
  bool logic = op == OP_and || op == OP_or || op == OP_not, compare = op >= OP_eq && op <= OP_ge;
  if (logic && x->dtype != DT_bool) {
    return lower_error(l, x->at, "MT0212", "'%s' wants bool, got %s", op_word(op), val_show(l, x->in[t]));
  }
  if (compare && x->dtype == DT_bool && op != OP_eq && op != OP_ne) {
    return lower_error(l, x->at, "MT0212", "bools are not ordered: %s is %s", expr_words(l, x->as[t]),
                       val_show(l, x->in[t]));
  }
  if (!logic && !compare && op != OP_select && op != OP_detach && x->dtype == DT_bool)
    return bool_misuse(x, t, "");
  if (op == OP_div && dtype_is_int(x->dtype)) {
    lower_error(l, x->at, "MT0213", "integers have no '/': %s is %s", expr_words(l, x->as[t]),
                val_show(l, x->in[t]));
    lower_note(l, "write float(%s) / …, or floor(float(%s) / …)", expr_words(l, x->as[t]),
               expr_words(l, x->as[t]));
    return false;
  }
  return true;
}

static bool numbers_fit(const Align *x) {
  Lower *l = x->l;
  for (uint32_t i = x->from; i < x->n; i++) {
    Number n = x->in[i].number;
    if (x->in[i].tensor || number_fits(n, x->dtype)) continue;
    uint32_t t = x->from;                                              // the tensor that it meets
    while (t + 1 < x->n && !x->in[t].tensor) t++;
    const char *words = expr_words(l, x->as[t]);
    if (n.kind == NUM_string)
      lower_error(l, x->as[i]->span, "MT0247", "'%s' does not take %s", op_word(x->op), number_text(l->a, n));
    else if (n.kind == NUM_bool || x->dtype == DT_bool)
      lower_error(l, x->as[i]->span, "MT0212", "%s does not mix with %s", number_text(l->a, n),
                  x->in[t].tensor ? val_show(l, x->in[t]) : "a bool");
    else if (n.num == floor(n.num))
      lower_error(l, x->as[i]->span, "MT0211", "%s does not fit in %s, and %s is %s", number_text(l->a, n),
                  dtype_name(x->dtype), words, val_show(l, x->in[t]));
    else {
      lower_error(l, x->as[i]->span, "MT0211", "%s is not an integer, and %s is %s", number_text(l->a, n),
                  words, val_show(l, x->in[t]));
      lower_note(l, "write float(%s)", words);
    }
    return false;
  }
  return true;
}

Val elementwise(Lower *l, Span at, Op op, const Val *in, const Ast *const *as, uint32_t n) {
  enum { MOST = 4 };
  if (n > MOST) bug("an elementwise op of %u operands", n);
  for (uint32_t i = 0; i < n; i++)
    if (val_is_error(in[i])) return val_error();
  Align x = {l, at, op, in, as, n, op == OP_select, DT_none};
  if (!tensors_agree(&x) || !condition_ok(&x)) return val_error();
  if (x.dtype == DT_none)
    x.dtype = in[x.from].number.kind == NUM_bool ? DT_bool : l->frame->flt;  // select(mask, 1, 0)
  if (!dtype_ok(&x) || !numbers_fit(&x) || !fits(l, at, in, as, n)) return val_error();
  ValId id[MOST];
  Val v[MOST];
  for (uint32_t i = x.from; i < n; i++) v[i] = to_dtype(l, in[i], x.dtype, as[i]->span);
  if (x.from) v[0] = to_dtype(l, in[0], DT_bool, as[0]->span);
  for (uint32_t i = 0; i < n; i++) {
    if (val_is_error(v[i])) return val_error();
    id[i] = v[i].v;
  }
  Build b = at_span(l, at);
  return val_tensor(l, ir_add(&b, op, id, n, (Attr){0}), at);
}

// ---- products ---------------------------------------------------------------------------------------------
// The dims that `a @ b` without brackets contracts: the one they share.
static bool shared_dim(Lower *l, const Ast *e, const Val v[2], DimId *in) {
  const Type *a = val_shape(l, v[0]), *b = val_shape(l, v[1]);
  const Ast *const *as = (const Ast *const *)e->kid;
  DimId shared[MAX_DIMS];
  uint32_t n = 0;
  for (int i = 0; i < a->ndim; i++)
    if (type_pos(b, a->dim[i]) >= 0) shared[n++] = a->dim[i];
  if (n == 1) return *in = shared[0], true;
  const char *left = expr_words(l, as[0]), *right = expr_words(l, as[1]);
  if (n) {
    lower_error(l, e->span, "MT0203", "'%s' is ambiguous: the operands share %s",
                span_words(l->p->diag, l->a, e->span, "@"), dims_and(l, shared, n));
    lower_types(l, v, as, 2);
    lower_note(l, "write %s @[%s] %s to contract %s, or rename one of the dims", left,
               dims_show(l, shared, n), right, n == 2 ? "both" : "all");
  } else {
    lower_error(l, e->span, "MT0204", "nothing to contract: the operands share no dim");
    lower_types(l, v, as, 2);
    for (int i = 0; i < a->ndim * b->ndim; i++) {                     // a dim that only has another name
      if (!dims_are_roles(l, a->dim[i / b->ndim], b->dim[i % b->ndim])) continue;
      lower_note(l, "rename[%s -> %s](%s)?", dim_word(l, a->dim[i / b->ndim]),
                 dim_word(l, b->dim[i % b->ndim]), left);
      break;
    }
    lower_note(l, "the outer product is %s @[] %s", left, right);
  }
  return false;
}

static bool named_dims(Lower *l, const Ast *e, const Val v[2], DimId *in, uint32_t *n) {
  if (!dims_eval(l, e->kid[2], in, n)) return false;
  for (uint32_t i = 0; i < *n; i++)
    for (int k = 0; k < 2; k++) {
      if (type_pos(val_shape(l, v[k]), in[i]) >= 0) continue;
      lower_error(l, e->kid[2]->span, "MT0204", "%s has no %s to contract", expr_words(l, e->kid[k]),
                  dim_word(l, in[i]));
      lower_types(l, v, (const Ast *const *)e->kid, 2);
      return false;
    }
  return true;
}

static Val contract(Lower *l, const Ast *e) {
  Val v[2] = {expr_eval(l, e->kid[0])};
  v[1] = expr_eval(l, e->kid[1]);
  const Ast *const *as = (const Ast *const *)e->kid;
  if (val_is_error(v[0]) || val_is_error(v[1])) return val_error();
  for (int i = 0; i < 2; i++)
    if (!v[i].tensor) {
      lower_error(l, as[i]->span, "MT0216", "'@' wants two tensors, got the number %s", val_show(l, v[i]));
      lower_note(l, "to scale, write *");
      return val_error();
    }
  for (int i = 0; i < 2; i++)
    if (!type_is_float(val_shape(l, v[i]))) {
      lower_error(l, as[i]->span, "MT0210", "'@' multiplies floats, %s is %s", expr_words(l, as[i]),
                  val_show(l, v[i]));
      lower_note(l, "write float(%s)", expr_words(l, as[i]));
      return val_error();
    }
  DimId in[MAX_DIMS];
  uint32_t n = e->kid[2]->kind == N_none;
  if (n ? !shared_dim(l, e, v, in) : !named_dims(l, e, v, in, &n)) return val_error();
  const Type *a = val_shape(l, v[0]), *b = val_shape(l, v[1]);
  int ndim = a->ndim - (int)n;
  for (int i = 0; i < b->ndim; i++) ndim += type_pos(a, b->dim[i]) < 0;
  if (ndim > MAX_DIMS) {
    lower_error(l, e->span, "MT0215", "the product would have %d dims; at most %d are possible", ndim,
                MAX_DIMS);
    lower_types(l, v, as, 2);
    return val_error();
  }
  DType dtype = dtype_wider(a->dtype, b->dtype);
  for (int i = 0; i < 2; i++)
    if (val_is_error(v[i] = to_dtype(l, v[i], dtype, e->span))) return val_error();
  Build build = at_span(l, e->span);
  return val_tensor(l, ir_dot(&build, v[0].v, v[1].v, in, n), e->span);
}

// ---- expressions ------------------------------------------------------------------------------------------
static Val folded(Lower *l, const Ast *e, Number n, const Fold *f) {
  if (f->why) return lower_fold_error(l, e->span, f), val_error();
  return val_number(n);
}

static Val binary(Lower *l, const Ast *e) {
  Val in[2] = {expr_eval(l, e->kid[0])};
  in[1] = expr_eval(l, e->kid[1]);
  Fold f = {.arena = l->a};
  if (val_is_error(in[0]) || val_is_error(in[1])) return val_error();
  if (!in[0].tensor && !in[1].tensor) {
    Number n = fold_binary(&f, e->text, in[0].number, in[1].number);
    return folded(l, e, n, &f);
  }
  Op op = operator_of(e->text);
  if (op == OP_and || op == OP_or)  // a known side is folded: optional masks cost nothing
    for (int i = 0; i < 2; i++)
      if (!in[i].tensor && in[i].number.kind == NUM_bool && val_shape(l, in[1 - i])->dtype == DT_bool)
        return (in[i].number.num != 0) == (op == OP_and) ? in[1 - i] : in[i];
  return elementwise(l, e->span, op, in, (const Ast *const *)e->kid, 2);
}

static Val unary(Lower *l, const Ast *e) {
  Val v = expr_eval(l, e->kid[0]);
  Fold f = {.arena = l->a};
  if (val_is_error(v)) return v;
  if (v.tensor)
    return elementwise(l, e->span, *e->text == '-' ? OP_neg : OP_not, &v, (const Ast *const *)e->kid, 1);
  Number n = fold_unary(&f, e->text, v.number);
  return folded(l, e, n, &f);
}

static Val convert(Lower *l, const Ast *e) {
  Val v = expr_eval(l, e->kid[0]);
  DType to = dtype_find(e->text);
  if (to == DT_float) to = l->frame->flt;
  if (val_is_error(v)) return v;
  if (v.tensor) return to_dtype(l, v, to, e->span);
  if (v.number.kind == NUM_string)
    return lower_error(l, e->span, "MT0247", "%s does not take %s", e->text, val_show(l, v)), val_error();
  if (to == DT_bool) return val_number(bool_of(v.number.num != 0));
  return val_number(number_of(dtype_is_int(to) ? trunc(v.number.num) : v.number.num));
}

void exprs_eval(Lower *l, const Ast *e, Vals *out) {
  if (l->stop) vec_push(l->a, out, val_error());
  else if (e->kind == N_call) call_eval(l, e, out);
  else vec_push(l->a, out, expr_eval(l, e));
}

static Val one_value(Lower *l, const Ast *e) {
  Vals vals = {0};
  call_eval(l, e, &vals);
  if (vals.n == 1) return vals.at[0];
  for (uint32_t i = 0; i < vals.n; i++)
    if (val_is_error(vals.at[i])) return val_error();
  lower_error(l, name_span(e), "MT0246", "one value is wanted here, and %s gives %u", e->text, vals.n);
  lower_note(l, "name them: a, b = %s(…)", e->text);
  return val_error();
}

Val expr_eval(Lower *l, const Ast *e) {
  if (l->stop) return val_error();
  switch (e->kind) {
  case N_num: return val_number(number_of(e->num));
  case N_str: return val_number((Number){.kind = NUM_string, .str = e->text});
  case N_bool: return val_number(bool_of(*e->text == 't'));
  case N_name: return named_eval(l, e);
  case N_unary: return unary(l, e);
  case N_binary: return binary(l, e);
  case N_convert: return convert(l, e);
  case N_contract: return contract(l, e);
  case N_call: return one_value(l, e);
  default: return val_error();  // something with an error, which was reported
  }
}
