// lower.c -- tree to graph: every call is instantiated, every value gets its dims and dtype, what is known is folded.
//
// The model is elaborated twice, training and not. From the first come `forward` and `prologue` (the denominators of
// the stepmeans), from the second `eval` and `logits`. A number stays a number until it meets a tensor.
#include "compiler/lower.h"
#include <fnmatch.h>
#include <math.h>
#include <string.h>

enum { WORK_LIMIT = 50000000, DEPTH_LIMIT = 200 };

// ---- values -------------------------------------------------------------------------------------------------------
Val val_error(void) { return (Val){.number = {.kind = NUM_error}}; }
bool val_is_error(Val v) { return !v.tensor && v.number.kind == NUM_error; }
Val val_number(Number n) { return (Val){.number = n}; }
const Type *val_shape(const Lower *l, Val v) { return val_type(l->fn, v.v); }

Val val_tensor(Lower *l, ValId v, Span at) {
  if (type_bytes(l->m, val_type(l->fn, v)) >= 0 && type_count(l->m, val_type(l->fn, v)) >= 0) return (Val){.tensor = true, .v = v};
  lower_error(l, at, "MT0306", "this value has more than 2^62 entries: %s", val_show(l, (Val){.tensor = true, .v = v}));
  return val_error();
}

const char *dims_show(const Lower *l, const DimId *dim, uint32_t n) {
  Text t;
  text_init(&t, l->a);
  for (uint32_t i = 0; i < n; i++) text_printf(&t, "%s%s", i ? ", " : "", dim_of(l->m, dim[i])->name);
  return n ? t.s : "";
}

const char *val_show(const Lower *l, Val v) {
  if (!v.tensor) return number_text(l->a, v.number);
  const Type *t = val_shape(l, v);
  return arena_printf(l->a, "%s[%s]", dtype_name(t->dtype), dims_show(l, t->dim, t->ndim));
}

const char *expr_words(const Lower *l, const Ast *e) { return span_words(l->p->diag, l->a, e->span, "the value"); }

Build at_span(const Lower *l, Span at) {
  return (Build){.fn = l->fn, .loc = at, .why = l->frame->why, .path = l->frame->path, .layer = l->layer};
}

void lower_error(Lower *l, Span at, const char *code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  diag_error(l->p->diag, at, code, "%s", arena_vprintf(l->a, fmt, args));
  va_end(args);
  uint32_t shown = 0;
  for (const Frame *f = l->frame; f && f->call; f = f->up)
    if (shown++ < 4) diag_note_at(l->p->diag, f->call->span, "in %s, called here", f->def->name);
  if (l->p->diag->errors >= 20) l->stop = true;
}

// ---- dims ---------------------------------------------------------------------------------------------------------
bool dim_find_here(const Lower *l, Str name, DimBind *out) {
  const uint64_t *at = map_get(&l->frame->dim_by_name, key_of(name));
  if (at) return *out = l->frame->dim.at[*at], true;
  const uint64_t *id = map_get(&l->frame->scope->dim_by_name, key_of(name));
  if (!id) return false;
  DimId *d = NEW(l->a, DimId);
  *d = (DimId)*id;
  return *out = (DimBind){name, 1, d}, true;
}

static void no_dim(Lower *l, Span at, Str name) {
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < l->frame->dim.n; i++) vec_push(l->a, &names, l->frame->dim.at[i].name);
  for (uint32_t i = 1; i < l->m->dim.n; i++)
    if (map_get(&l->frame->scope->dim_by_name, key_of(l->m->dim.at[i].name))) vec_push(l->a, &names, l->m->dim.at[i].name);
  lower_error(l, at, "MT0220", "no dim '%s'", name);
  word_suggest(l->p->diag, name, names.at, names.n);
}

bool dims_eval(Lower *l, const Ast *list, DimId *out, uint32_t *n) {
  for (uint32_t i = 0; i < list->n; i++) {
    const Ast *e = list->kid[i];
    DimBind b;
    if (e->kind == N_group) {
      if (!dims_eval(l, e, out, n)) return false;
      continue;
    }
    if (!dim_find_here(l, e->text, &b)) return no_dim(l, e->span, e->text), false;
    for (uint32_t k = 0; k < b.n; k++) {
      for (uint32_t j = 0; j < *n; j++)
        if (out[j] == b.dim[k]) {
          lower_error(l, e->span, "MT0214", "%s occurs twice; declare a role: dim k%s = %s", dim_of(l->m, b.dim[k])->name, dim_of(l->m, b.dim[k])->name,
                      dim_of(l->m, b.dim[k])->name);
          return false;
        }
      if (*n == MAX_DIMS) return lower_error(l, e->span, "MT0215", "more than %d dims", MAX_DIMS), false;
      out[(*n)++] = b.dim[k];
    }
  }
  return true;
}

static bool whole(Number n, double least) { return n.kind == NUM_number && n.num >= least && n.num <= 0x1p53 && n.num == floor(n.num); }

// A local dim. Calls of one function share it when it is alike: it cannot leave the call, so it meets no other.
static void dim_statement(Lower *l, const Ast *s) {
  Frame *f = l->frame;
  Dim d = {0};
  DimBind role, was;
  if (map_get(&f->dim_by_name, key_of(s->text))) { lower_error(l, s->span, "MT0224", "dim '%s' is already defined here", s->text); return; }
  if (s->kid[0]->kind == N_none) { lower_error(l, s->span, "MT0307", "a local dim has an extent: dim %s = …", s->text); return; }
  if (s->kid[0]->kind == N_name && dim_find_here(l, s->kid[0]->text, &role)) {
    d.extent = d.size = 1;
    for (uint32_t i = 0; i < role.n; i++)
      if (!mul_ok(d.extent, dim_of(l->m, role.dim[i])->extent, &d.extent) || !mul_ok(d.size, dim_of(l->m, role.dim[i])->size, &d.size)) d.extent = d.size = 0;
    if (role.n == 1) d.root = dim_of(l->m, role.dim[0])->root, d.zigzag = 0;
  } else {
    Val v = expr_eval(l, s->kid[0]);
    if (val_is_error(v)) return;
    if (v.tensor || !whole(v.number, 1)) {
      lower_error(l, s->span, "MT0305", "dim %s = %s is %s; it must be whole and positive", s->text, expr_words(l, s->kid[0]), val_show(l, v));
      return;
    }
    d.extent = d.size = (int64_t)v.number.num;
  }
  if (s->kid[1]->kind != N_none) {
    Val pad = expr_eval(l, s->kid[1]);
    if (val_is_error(pad)) return;
    if (pad.tensor || !whole(pad.number, 1)) { lower_error(l, s->kid[1]->span, "MT0305", "pad %s must be whole and positive", val_show(l, pad)); return; }
    int64_t to = (int64_t)pad.number.num;
    d.size = (d.extent + to - 1) / to * to;
  }
  if (d.extent < 1) { lower_error(l, s->span, "MT0306", "dim %s has more than 2^62 entries", s->text); return; }
  DimId id = 0;
  for (uint32_t k = 1; !id; k++) {
    d.name = k == 1 ? intern_printf(l->p->in, "%s.%s", f->def->name, s->text) : intern_printf(l->p->in, "%s.%s.%u", f->def->name, s->text, k);
    id = dim_find(l->m, d.name);
    if (id) {
      const Dim *other = dim_of(l->m, id);
      if (other->extent != d.extent || other->size != d.size || other->root != (d.root ? d.root : id)) id = 0;
    } else
      id = dim_add(l->m, d);
  }
  DimId *one = NEW(l->a, DimId);
  *one = id;
  was = (DimBind){s->text, 1, one};
  vec_push(l->a, &f->dim, was);
  map_put(&f->dim_by_name, key_of(s->text), f->dim.n - 1);
  vec_push(l->a, &f->local, id);
}

// ---- names --------------------------------------------------------------------------------------------------------
static Named *named(Lower *l, Str name) {
  const uint64_t *at = map_get(&l->frame->val_by_name, key_of(name));
  return at && *at ? &l->frame->val.at[*at - 1] : 0;
}

static void assign(Lower *l, const Ast *name, Val v) {
  Frame *f = l->frame;
  DimBind dim;
  for (uint32_t i = 0; i < f->index.n; i++)
    if (f->index.at[i].name == name->text) { lower_error(l, name->span, "MT0223", "'%s' is a repeat index and cannot be assigned; choose another name", name->text); return; }
  Named *old = named(l, name->text);
  if (!old) {
    const uint64_t *c = map_get(&f->scope->config_by_name, key_of(name->text));
    if (c) {
      lower_error(l, name->span, "MT0223", "'%s' is a config (%s) and cannot be assigned; choose another name", name->text,
                  span_text(l->p->diag, l->a, f->scope->config.at[*c].loc));
      return;
    }
    if (dim_find_here(l, name->text, &dim)) { lower_error(l, name->span, "MT0223", "'%s' is a dim and cannot be assigned; choose another name", name->text); return; }
  }
  if (v.tensor && !l->fn->val.at[v.v].name) l->fn->val.at[v.v].name = name->text;
  if (old) { old->val = v; return; }
  vec_push(l->a, &f->val, (Named){.name = name->text, .val = v});
  map_put(&f->val_by_name, key_of(name->text), f->val.n);
}

static Val name_eval(Lower *l, const Ast *e) {
  Frame *f = l->frame;
  Named *n = named(l, e->text);
  if (n) return n->val;
  for (uint32_t i = f->index.n; i--;)
    if (f->index.at[i].name == e->text) return f->index.at[i].val;
  const uint64_t *c = map_get(&f->scope->config_by_name, key_of(e->text));
  if (c) return val_number(f->scope->config.at[*c].value);
  if (!strcmp(e->text, "training")) return val_number(bool_of(l->training));
  if (!strcmp(e->text, "pi")) return val_number(number_of(3.14159265358979323846));
  if (!strcmp(e->text, "inf")) return val_number(number_of(INFINITY));
  for (uint32_t i = 0; i < f->val.n; i++)
    if (f->val.at[i].name == e->text && f->val.at[i].end.line) {
      lower_error(l, e->span, "MT0225", "'%s' is first assigned inside repeat (line %u) and ends there; give it a value before", e->text, f->val.at[i].end.line);
      return val_error();
    }
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < f->val.n; i++)
    if (!f->val.at[i].end.line) vec_push(l->a, &names, f->val.at[i].name);
  for (uint32_t i = 0; i < f->scope->config.n; i++) vec_push(l->a, &names, f->scope->config.at[i].name);
  lower_error(l, e->span, "MT0221", "no value '%s' here", e->text);
  word_suggest(l->p->diag, e->text, names.at, names.n);
  if (f->call) diag_note(l->p->diag, "bodies do not see their caller's values: pass it");
  return val_error();
}

// ---- dtypes -------------------------------------------------------------------------------------------------------
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

Val to_dtype(Lower *l, Val v, DType dtype, Span at) {
  if (val_is_error(v)) return v;
  Build b = at_span(l, at);
  if (v.tensor) return (Val){.tensor = true, .v = ir_cast(&b, v.v, dtype)};
  return (Val){.tensor = true, .v = ir_const(&b, v.number.num, dtype)};
}

static const char *kind_word(DType t) { return t == DT_bool ? "bool" : dtype_is_int(t) ? "integer" : "float"; }

// ---- alignment ----------------------------------------------------------------------------------------------------
static const Dim *missing(const Lower *l, const Type *small, const Type *big) { // the first dim of small that big lacks
  for (int i = 0; i < small->ndim; i++)
    if (type_pos(big, small->dim[i]) < 0) return dim_of(l->m, small->dim[i]);
  return 0;
}

static void misfit(Lower *l, Span at, Val a, Val b, const Ast *ea, const Ast *eb) {
  const Type *ta = val_shape(l, a), *tb = val_shape(l, b);
  if (ta->ndim < tb->ndim) {
    misfit(l, at, b, a, eb, ea);
    return;
  }
  const Dim *not_in_a = missing(l, tb, ta), *not_in_b = missing(l, ta, tb);
  if (ta->ndim == tb->ndim && not_in_b) {
    lower_error(l, at, "MT0202", "neither operand has all dims: %s is %s, %s is %s", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b));
    diag_note(l->p->diag, "expand[%s](%s) or expand[%s](%s) gives one all dims", not_in_a->name, expr_words(l, ea), not_in_b->name, expr_words(l, eb));
    return;
  }
  lower_error(l, at, "MT0201", "dims do not fit: %s is %s, %s is %s; %s is not in %s", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b),
              not_in_a->name, expr_words(l, ea));
  for (int i = 0; i < ta->ndim; i++) {
    const Dim *d = dim_of(l->m, ta->dim[i]);
    if (type_pos(tb, ta->dim[i]) >= 0 || d->extent > not_in_a->extent) continue;
    if (d->extent == not_in_a->extent) diag_note(l->p->diag, "rename[%s -> %s](%s)?", not_in_a->name, d->name, expr_words(l, eb));
    else if (!d->sample) diag_note(l->p->diag, "slice[%s -> %s](%s)?", not_in_a->name, d->name, expr_words(l, eb));
    else continue;
    return;
  }
}

static bool fits(Lower *l, Span at, const Val *in, const Ast *const *as, uint32_t n) {
  uint32_t big = 0;
  while (big < n && !in[big].tensor) big++;
  for (uint32_t i = big; i < n; i++)
    if (in[i].tensor && val_shape(l, in[i])->ndim > val_shape(l, in[big])->ndim) big = i;
  for (uint32_t i = 0; i < n; i++)
    if (in[i].tensor && missing(l, val_shape(l, in[i]), val_shape(l, in[big]))) {
      if (i < big) misfit(l, at, in[i], in[big], as[i], as[big]);
      else misfit(l, at, in[big], in[i], as[big], as[i]);
      return false;
    }
  return true;
}

Val elementwise(Lower *l, Span at, Op op, const Val *in, const Ast *const *as, uint32_t n) {
  Val v[4] = {0};
  ValId id[4];
  DType dtype = DT_none;
  uint32_t from = op == OP_select;
  bool logic = op == OP_and || op == OP_or || op == OP_not, compare = op >= OP_eq && op <= OP_ge;
  if (n > COUNT(v)) bug("an elementwise op of %u operands", n);
  for (uint32_t i = 0; i < n; i++) {
    v[i] = in[i];
    if (val_is_error(in[i])) return val_error();
    if (!in[i].tensor && in[i].number.kind == NUM_string) return lower_error(l, as[i]->span, "MT0247", "%s does not take %s", op_info[op].name, val_show(l, in[i])), val_error();
  }
  const char *name = op_info[op].name;
  for (uint32_t i = from; i < n; i++) {
    if (!v[i].tensor) continue;
    DType t = val_shape(l, v[i])->dtype;
    if (dtype != DT_none && t != dtype && strcmp(kind_word(t), kind_word(dtype))) {
      lower_error(l, at, t == DT_bool || dtype == DT_bool ? "MT0212" : "MT0210", "%s and %s do not mix: %s is %s, %s is %s", kind_word(dtype), kind_word(t),
                  expr_words(l, as[from]), val_show(l, in[from]), expr_words(l, as[i]), val_show(l, in[i]));
      diag_note(l->p->diag, t == DT_bool || dtype == DT_bool ? "write select(mask, x, 0)" : "write float(…)");
      return val_error();
    }
    dtype = dtype == DT_none ? t : dtype_wider(dtype, t);
  }
  if (from && v[0].tensor && val_shape(l, v[0])->dtype != DT_bool)
    return lower_error(l, as[0]->span, "MT0212", "select wants a bool first, got %s", val_show(l, v[0])), val_error();
  if (from && !v[0].tensor && v[0].number.kind != NUM_bool) return lower_error(l, as[0]->span, "MT0212", "select wants a bool first, got %s", val_show(l, v[0])), val_error();
  if (dtype == DT_none) dtype = v[from].number.kind == NUM_bool ? DT_bool : l->frame->flt; // select(mask, 1, 0)
  if (logic && dtype != DT_bool) {
    lower_error(l, at, "MT0212", "'%s' wants bool, got %s", name, val_show(l, v[from].tensor || n == 1 ? v[from] : v[n - 1]));
    return val_error();
  }
  if (!logic && !compare && !from && op != OP_detach && dtype == DT_bool) {
    lower_error(l, at, "MT0212", "arithmetic on %s", val_show(l, v[v[0].tensor ? 0 : n - 1]));
    diag_note(l->p->diag, "write select(mask, x, 0), float(mask) or i32(mask)");
    return val_error();
  }
  if (compare && dtype == DT_bool && op != OP_eq && op != OP_ne) return lower_error(l, at, "MT0212", "bools are not ordered: %s", val_show(l, v[0].tensor ? v[0] : v[1])), val_error();
  for (uint32_t i = from; i < n; i++)
    if (!v[i].tensor) {
      if ((v[i].number.kind == NUM_bool) != (dtype == DT_bool)) {
        lower_error(l, as[i]->span, "MT0212", "%s does not mix with %s", val_show(l, v[i]), dtype == DT_bool ? "bool" : kind_word(dtype));
        return val_error();
      }
      double x = v[i].number.num;
      if (dtype_is_int(dtype) && (x != floor(x) || fabs(x) > (dtype == DT_i64 ? 0x1p53 : 0x1p31 - 1))) {
        lower_error(l, as[i]->span, "MT0211", "%s is not an %s integer and %s is %s", val_show(l, v[i]), dtype_name(dtype), expr_words(l, as[i == from && n > from + 1 ? from + 1 : from]),
                    val_show(l, in[i == from && n > from + 1 ? from + 1 : from]));
        diag_note(l->p->diag, "write float(…) first");
        return val_error();
      }
    }
  if (op == OP_div && dtype_is_int(dtype)) {
    lower_error(l, at, "MT0211", "integers have no '/': %s is %s; write float(…) / …, or floor(float(…) / …)", expr_words(l, as[0]), val_show(l, v[0]));
    return val_error();
  }
  if (!fits(l, at, v, as, n)) return val_error();
  for (uint32_t i = from; i < n; i++) v[i] = to_dtype(l, v[i], dtype, as[i]->span);
  if (from && !v[0].tensor) v[0] = to_dtype(l, v[0], DT_bool, as[0]->span);
  for (uint32_t i = 0; i < n; i++) id[i] = v[i].v;
  Build b = at_span(l, at);
  return val_tensor(l, ir_add(&b, op, id, n, (Attr){0}), at);
}

Val contract(Lower *l, Span at, Val a, Val b, const Ast *ea, const Ast *eb, const Ast *dims) {
  if (val_is_error(a) || val_is_error(b)) return val_error();
  if (!a.tensor || !b.tensor) return lower_error(l, at, "MT0216", "'@' wants two tensors: %s is %s, %s is %s", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b)), val_error();
  DimId in[MAX_DIMS], shared[MAX_DIMS];
  uint32_t n = 0, ns = 0;
  const Type *ta = val_shape(l, a), *tb = val_shape(l, b);
  for (int i = 0; i < ta->ndim; i++)
    if (type_pos(tb, ta->dim[i]) >= 0) shared[ns++] = ta->dim[i];
  if (!type_is_float(ta) || !type_is_float(tb)) {
    lower_error(l, at, "MT0210", "'@' multiplies floats: %s is %s, %s is %s; write float(…)", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b));
    return val_error();
  }
  if (dims->kind == N_none) {
    if (ns == 1) in[n++] = shared[0];
    else if (ns) {
      lower_error(l, at, "MT0203", "'%s @ %s' is ambiguous: the operands share %s", expr_words(l, ea), expr_words(l, eb), dims_show(l, shared, ns));
      diag_note(l->p->diag, "%s is %s, %s is %s", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b));
      diag_note(l->p->diag, "write %s @[%s] %s to contract all, or name fewer, or rename one of the dims", expr_words(l, ea), dims_show(l, shared, ns), expr_words(l, eb));
      return val_error();
    } else {
      lower_error(l, at, "MT0204", "nothing to contract: %s is %s, %s is %s; @[] is the outer product", expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b));
      return val_error();
    }
  } else {
    if (!dims_eval(l, dims, in, &n)) return val_error();
    for (uint32_t i = 0; i < n; i++)
      if (type_pos(ta, in[i]) < 0 || type_pos(tb, in[i]) < 0) {
        lower_error(l, dims->span, "MT0204", "%s is not in both: %s is %s, %s is %s", dim_of(l->m, in[i])->name, expr_words(l, ea), val_show(l, a), expr_words(l, eb), val_show(l, b));
        return val_error();
      }
  }
  if (ta->ndim + tb->ndim - (int)(ns + n) > MAX_DIMS) return lower_error(l, at, "MT0215", "the product would have more than %d dims", MAX_DIMS), val_error();
  DType dtype = dtype_wider(ta->dtype, tb->dtype);
  a = to_dtype(l, a, dtype, at), b = to_dtype(l, b, dtype, at);
  Build build = at_span(l, at);
  return val_tensor(l, ir_dot(&build, a.v, b.v, in, n), at);
}

// ---- expressions ----------------------------------------------------------------------------------------------------
static Op operator_of(Str s) {
  static const struct { const char *word; Op op; } table[] = {
    {"+", OP_add}, {"-", OP_sub}, {"*", OP_mul}, {"/", OP_div}, {"%", OP_mod}, {"^", OP_pow}, {"==", OP_eq}, {"!=", OP_ne},
    {"<", OP_lt}, {"<=", OP_le}, {">", OP_gt}, {">=", OP_ge}, {"and", OP_and}, {"or", OP_or}};
  for (size_t i = 0; i < COUNT(table); i++)
    if (!strcmp(table[i].word, s)) return table[i].op;
  bug("operator %s is unknown", s);
}

static Val binary(Lower *l, const Ast *e) {
  Val in[2] = {expr_eval(l, e->kid[0]), expr_eval(l, e->kid[1])};
  if (val_is_error(in[0]) || val_is_error(in[1])) return val_error();
  if (!in[0].tensor && !in[1].tensor) return val_number(fold_binary(l->p->diag, e->span, e->text, in[0].number, in[1].number));
  Op op = operator_of(e->text);
  if (op == OP_and || op == OP_or)                                     // a known side is folded: optional masks cost nothing
    for (int i = 0; i < 2; i++)
      if (!in[i].tensor && in[i].number.kind == NUM_bool && val_shape(l, in[1 - i])->dtype == DT_bool)
        return (in[i].number.num != 0) == (op == OP_and) ? in[1 - i] : in[i];
  return elementwise(l, e->span, op, in, (const Ast *const *)e->kid, 2);
}

static Val unary(Lower *l, const Ast *e) {
  Val v = expr_eval(l, e->kid[0]);
  if (val_is_error(v)) return v;
  if (!v.tensor) return val_number(fold_unary(l->p->diag, e->span, e->text, v.number));
  return elementwise(l, e->span, *e->text == '-' ? OP_neg : OP_not, &v, (const Ast *const *)e->kid, 1);
}

static Val convert(Lower *l, const Ast *e) {
  Val v = expr_eval(l, e->kid[0]);
  DType to = dtype_find(e->text);
  if (to == DT_float) to = l->frame->flt;
  if (val_is_error(v)) return v;
  if (v.tensor) return to_dtype(l, v, to, e->span);
  if (v.number.kind == NUM_string) return lower_error(l, e->span, "MT0247", "%s does not take %s", e->text, val_show(l, v)), val_error();
  if (to == DT_bool) return val_number(bool_of(v.number.num != 0));
  return val_number(number_of(dtype_is_int(to) ? trunc(v.number.num) : v.number.num));
}

void exprs_eval(Lower *l, const Ast *e, Vals *out) {
  if (l->stop) vec_push(l->a, out, val_error());
  else if (e->kind == N_call) call_eval(l, e, out);
  else vec_push(l->a, out, expr_eval(l, e));
}

Val expr_eval(Lower *l, const Ast *e) {
  if (l->stop) return val_error();
  switch (e->kind) {
  case N_num: return val_number(number_of(e->num));
  case N_str: return val_number((Number){.kind = NUM_string, .str = e->text});
  case N_bool: return val_number(bool_of(*e->text == 't'));
  case N_name: return name_eval(l, e);
  case N_unary: return unary(l, e);
  case N_binary: return binary(l, e);
  case N_convert: return convert(l, e);
  case N_contract: {
    Val a = expr_eval(l, e->kid[0]);
    return contract(l, e->span, a, expr_eval(l, e->kid[1]), e->kid[0], e->kid[1], e->kid[2]);
  }
  case N_call: {
    Vals vals = {0};
    call_eval(l, e, &vals);
    if (vals.n == 1) return vals.at[0];
    lower_error(l, e->span, "MT0246", "one value is wanted, %s gives %u", e->text, vals.n);
    return val_error();
  }
  default: return val_error();                                         // something with an error, which was reported
  }
}

// ---- parameters -----------------------------------------------------------------------------------------------------
static bool init_of(Lower *l, const Ast *e, Var *v) {
  static const char *const name[] = {"zeros", "ones", "normal", "uniform"};
  static const uint32_t takes[] = {0, 0, 1, 2};
  if (e->kind == N_none) return false;
  for (uint32_t i = 0; i < COUNT(name); i++) {
    if ((e->kind != N_name && e->kind != N_call) || strcmp(e->text, name[i])) continue;
    uint32_t n = e->kind == N_call ? e->kid[2]->n : 0;
    double x[2] = {0};
    if (n != takes[i]) return lower_error(l, e->span, "MT0264", "%s takes %u numbers, got %u", name[i], takes[i], n), false;
    for (uint32_t k = 0; k < n; k++) {
      Val a = expr_eval(l, e->kid[2]->kid[k]->kid[0]);
      if (val_is_error(a)) return false;
      if (a.tensor || a.number.kind != NUM_number) return lower_error(l, e->span, "MT0264", "%s takes numbers, got %s", name[i], val_show(l, a)), false;
      x[k] = a.number.num;
    }
    v->init = (InitKind)i;
    v->a = x[0], v->b = x[1];
    return true;
  }
  return lower_error(l, e->span, "MT0264", "a parameter starts as zeros, ones, normal(std) or uniform(lo, hi), not %s", expr_words(l, e)), false;
}

// Every {hole} of the template is a dim of the parameter, with as many names as it has entries.
static bool check_template(Lower *l, const Ast *s, Str path, const Type *t) {
  for (const char *c = path; (c = strchr(c, '{')); c++) {
    const char *end = strchr(c, '}'), *colon = memchr(c, ':', end ? (size_t)(end - c) : 0);
    if (!end) return lower_error(l, s->span, "MT0260", "\"%s\": '{' is not closed", path), false;
    Str name = intern_n(l->p->in, c + 1, (size_t)((colon ? colon : end) - c - 1));
    DimBind b;
    bool known = dim_find_here(l, name, &b) && b.n == 1 && type_pos(t, b.dim[0]) >= 0;
    if (!known) {                                                      // a dim parameter's own dim: by the dim's name
      DimId d = dim_find(l->m, name);
      known = d && type_pos(t, d) >= 0;
      if (known) b = (DimBind){name, 1, &t->dim[type_pos(t, d)]};
    }
    if (!known) {
      lower_error(l, s->span, "MT0260", "\"%s\": %s is neither a dim of %s [%s] nor a repeat index", path, name, s->text, dims_show(l, t->dim, t->ndim));
      return false;
    }
    int64_t n = 1, extent = dim_of(l->m, b.dim[0])->extent;
    for (const char *k = colon; k && k < end; k++) n += *k == ',';
    if (colon && n != extent) {
      lower_error(l, s->span, "MT0261", "\"%s\" names %lld, %s is %lld", path, (long long)n, name, (long long)extent);
      return false;
    }
  }
  return true;
}

static void param_statement(Lower *l, const Ast *s) {
  Frame *f = l->frame;
  if (f->def->ast->kind == N_fn) { lower_error(l, s->span, "MT0244", "%s is a fn and has no parameters; make it a block", f->def->name); return; }
  Str word = s->kid[0]->kind == N_as ? s->kid[0]->text : s->text;
  Str path = *f->path ? intern_printf(l->p->in, "%s.%s", f->path, word) : word;
  Var v = {.name = path, .kind = VAR_param, .loc = s->span, .why = intern_printf(l->p->in, "param %s", s->text)};
  Type t = {.dtype = dtype_find(s->kid[1]->text)};
  const Ast *list = s->kid[1]->kid[0];
  for (uint32_t i = 0; i < list->n; i++) {
    uint32_t n = t.ndim, was = n;
    if (list->kid[i]->kind != N_name) { lower_error(l, list->kid[i]->span, "MT0265", "a parameter's type names its dims, without * and ?"); return; }
    Ast one = {.kind = N_list, .n = 1, .kid = &((Ast *)list)->kid[i]};
    if (!dims_eval(l, &one, t.dim, &n)) return;
    t.ndim = (uint8_t)n;
    for (uint32_t k = was; k < n; k++) v.axis[k] = (uint8_t)i;
  }
  if (!dtype_is_float(t.dtype)) { lower_error(l, s->kid[1]->span, "MT0265", "a parameter is a float, not %s", s->kid[1]->text); return; }
  if (!init_of(l, s->kid[2], &v) || !check_template(l, s, path, &t)) return;
  v.decay = v.init == INIT_normal || v.init == INIT_uniform;
  v.type = type_intern(l->m, t);
  if (type_bytes(l->m, &t) < 0) { lower_error(l, s->span, "MT0306", "%s has more than 2^62 entries", s->text); return; }
  const uint64_t *was = map_get(&l->declared, key_of(path));
  if (was) {
    lower_error(l, s->span, "MT0262", "two parameters are called %s; give the calls different 'as'", path);
    diag_note_at(l->p->diag, l->declared_at.at[*was], "the first");
    return;
  }
  vec_push(l->a, &l->declared_at, s->span);
  map_put(&l->declared, key_of(path), l->declared_at.n - 1);
  VarId id = var_find(l->m, path);
  if (id && l->m->var.at[id].type != v.type) { lower_error(l, s->span, "MT0266", "%s has another type when training", path); return; }
  if (!id) id = var_add(l->m, v);
  Build b = at_span(l, s->span);
  ValId x = ir_read_var(&b, id);
  Ast name = {.kind = N_name, .text = s->text, .span = s->span};
  assign(l, &name, (Val){.tensor = true, .v = x});
}

// ---- statements -----------------------------------------------------------------------------------------------------
static bool budget(Lower *l, Span at, uint64_t more) {
  l->work += more;
  if (l->work <= WORK_LIMIT || l->stop) return !l->stop;
  lower_error(l, at, "MT0254", "unrolled, this is more than %d statements", WORK_LIMIT);
  return l->stop = true, false;
}

static bool carried_ok(Lower *l, const Ast *s, const Named *was, const Named *now) {
  Val a = was->val, b = now->val;
  if (val_is_error(a) || val_is_error(b) || (!a.tensor && !b.tensor)) return true;
  if (!a.tensor && !val_shape(l, b)->ndim) return true;                // a number becomes f32[]
  if (a.tensor && b.tensor) {
    const Type *x = val_shape(l, a), *y = val_shape(l, b);
    bool same = x->dtype == y->dtype && x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++) same = type_pos(y, x->dim[i]) >= 0;
    if (same) return true;
  }
  lower_error(l, s->span, "MT0226", "'%s' enters repeat as %s and leaves as %s", was->name, val_show(l, a), val_show(l, b));
  return false;
}

static bool repeat_statement(Lower *l, const Ast *s, Vals *out) {
  Frame *f = l->frame;
  Val n = expr_eval(l, s->kid[0]);
  if (val_is_error(n)) return false;
  if (n.tensor || !whole(n.number, 0)) {
    lower_error(l, s->kid[0]->span, "MT0305", "repeat %s is %s; it must be whole", expr_words(l, s->kid[0]), val_show(l, n));
    return false;
  }
  if (named(l, s->text) || map_get(&f->scope->config_by_name, key_of(s->text))) {
    lower_error(l, s->span, "MT0224", "'%s' is already a value here; choose another index", s->text);
    return false;
  }
  uint32_t before = f->val.n, layer = l->layer;
  Named *was = NEW_N(l->a, Named, before + 1);
  bool returned = false;
  for (int64_t i = 0; i < (int64_t)n.number.num && !returned && budget(l, s->span, before + 1); i++) {
    uint32_t errors = l->p->diag->errors;
    if (before) memcpy(was, f->val.at, before * sizeof *was);
    vec_push(l->a, &f->index, (Named){.name = s->text, .val = val_number(number_of((double)i))});
    if (!layer) l->layer = (uint32_t)i + 1;
    returned = stmts_run(l, s->kid[1], out);
    l->layer = layer, f->index.n--;
    for (uint32_t k = before; k < f->val.n; k++)                       // names first assigned inside end with the iteration
      if (!f->val.at[k].end.line) {
        f->val.at[k].end = s->span;
        map_put(&f->val_by_name, key_of(f->val.at[k].name), 0);
      }
    if (f->val.n > before + 64) f->val.n = before + 64;                // enough of them for MT0225
    for (uint32_t k = 0; k < before && !returned; k++)
      if (!was[k].end.line && !carried_ok(l, s, &was[k], &f->val.at[k])) return false;
    if (l->p->diag->errors > errors) break;                            // the others would say the same
  }
  return returned;
}

static void assign_statement(Lower *l, const Ast *s) {
  Vals vals = {0};
  for (uint32_t i = 0; i < s->kid[1]->n; i++) exprs_eval(l, s->kid[1]->kid[i], &vals);
  if (vals.n != s->kid[0]->n) {
    bool error = false;
    for (uint32_t i = 0; i < vals.n; i++) error |= val_is_error(vals.at[i]);
    if (!error) lower_error(l, s->span, "MT0246", "%u name%s, %u value%s", s->kid[0]->n, s->kid[0]->n == 1 ? "" : "s", vals.n, vals.n == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->kid[0]->n; i++) assign(l, s->kid[0]->kid[i], val_error());
    return;
  }
  for (uint32_t i = 0; i < vals.n; i++) assign(l, s->kid[0]->kid[i], vals.at[i]);
}

bool stmts_run(Lower *l, const Ast *stmts, Vals *out) {
  for (uint32_t i = 0; i < stmts->n; i++) {
    const Ast *s = stmts->kid[i];
    if (!budget(l, s->span, 1)) return false;
    switch (s->kind) {
    case N_param: param_statement(l, s); break;
    case N_dim: dim_statement(l, s); break;
    case N_assign: assign_statement(l, s); break;
    case N_repeat:
      if (repeat_statement(l, s, out)) return true;
      break;
    case N_return:
      for (uint32_t k = 0; k < s->kid[0]->n; k++) exprs_eval(l, s->kid[0]->kid[k], out);
      return true;
    case N_if: {
      Val c = expr_eval(l, s->kid[0]);
      if (val_is_error(c)) break;
      if (c.tensor || c.number.kind != NUM_bool) {
        lower_error(l, s->kid[0]->span, "MT0250", "a condition must be known at compile time, got %s; use select(…)", val_show(l, c));
        break;
      }
      if (stmts_run(l, s->kid[c.number.num != 0 ? 1 : 2], out)) return true;
      break;
    }
    default: break;
    }
  }
  return false;
}
