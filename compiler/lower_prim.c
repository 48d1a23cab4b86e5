// lower_prim.c -- the primitive functions of the language (prims.def): what they ask of their arguments, and their nodes.
#include "compiler/lower.h"
#include <math.h>
#include <string.h>

typedef struct {                             // one call of a primitive
  Lower *l;
  const Ast *e;
  Op op;
  const Arg *arg; uint32_t narg;
  const Ast *as[8];                          // the arguments' expressions
  Val in[8];
  DimId dim[MAX_DIMS], to[MAX_DIMS];
  uint32_t ndim, nto;
  Vals *out;
} Prim;

typedef bool PrimRule(Prim *p);
#define PRIM(name, from, to, least, most, rule, op) static PrimRule prim_##rule;
#include "compiler/prims.def"
#undef PRIM

static const struct { const char *name; int from, to, least, most; PrimRule *rule; Op op; } prims[] = {
#define PRIM(name, from, to, least, most, rule, op) {#name, from, to, least, most, prim_##rule, OP_##op},
#include "compiler/prims.def"
#undef PRIM
};

static int find(Str name) {
  for (size_t i = 0; i < COUNT(prims); i++)
    if (!strcmp(prims[i].name, name)) return (int)i;
  return -1;
}
bool prim_known(Str name) { return find(name) >= 0; }
Str prim_name(size_t i) { return i < COUNT(prims) ? prims[i].name : 0; }

// ---- helpers ------------------------------------------------------------------------------------------------------
static bool give(Prim *p, Val v) { return vec_push(p->l->a, p->out, v), true; }
static bool give_node(Prim *p, ValId v) { return give(p, val_tensor(p->l, v, p->e->span)); }
static Build build(Prim *p) { return at_span(p->l, p->e->span); }
static Str name_of(Prim *p, DimId d) { return dim_of(p->l->m, d)->name; }

static bool refuse(Prim *p, const char *code, const char *fmt, ...) PRINTF(3, 4);
static bool refuse(Prim *p, const char *code, const char *fmt, ...) { // an error at the call; false
  va_list args;
  va_start(args, fmt);
  lower_error(p->l, p->e->span, code, "%s", arena_vprintf(p->l->a, fmt, args));
  va_end(args);
  return false;
}

static bool tensor_first(Prim *p) {
  return p->in[0].tensor || refuse(p, "MT0218", "%s wants a tensor, got %s", p->e->text, val_show(p->l, p->in[0]));
}

static bool has_dims(Prim *p) {              // of the first argument
  for (uint32_t i = 0; i < p->ndim; i++)
    if (type_pos(val_shape(p->l, p->in[0]), p->dim[i]) < 0) {
      const Type *t = val_shape(p->l, p->in[0]);
      lower_error(p->l, p->e->kid[0]->span, "MT0205", "%s is %s and has no %s; dims there: %s", expr_words(p->l, p->as[0]), val_show(p->l, p->in[0]), name_of(p, p->dim[i]),
                  dims_show(p->l, t->dim, t->ndim));
      return false;
    }
  return true;
}

static Val labelled(const Prim *p, const char *label, uint32_t position, Val otherwise, const Ast **as) {
  uint32_t pos = 0;
  for (uint32_t i = 0; i < p->narg; i++) {
    bool hit = *p->arg[i].label ? !strcmp(p->arg[i].label, label) : pos++ == position;
    if (hit) return *as = p->arg[i].ast, p->arg[i].val;
  }
  return *as = p->e, otherwise;
}

static bool labels_ok(Prim *p, const char *a, const char *b) { // only these labels
  for (uint32_t i = 0; i < p->narg; i++) {
    const char *x = p->arg[i].label;
    if (!*x || !strcmp(x, a) || !strcmp(x, b)) continue;
    lower_error(p->l, p->arg[i].ast->span, "MT0242", "%s has no argument '%s'", p->e->text, x);
    Str names[] = {a, b};
    word_suggest(p->l->p->diag, x, names, 2);
    return false;
  }
  return true;
}

static Val constant(Prim *p, double x, DType t) { return to_dtype(p->l, val_number(number_of(x)), t, p->e->span); }

static bool same_size(Prim *p, DimId a, DimId b) {
  const Dim *x = dim_of(p->l->m, a), *y = dim_of(p->l->m, b);
  if (x->extent == y->extent && x->size == y->size) return true;
  return refuse(p, "MT0230", "rename[%s -> %s]: %s is %lld, %s is %lld; extents%s must be equal", x->name, y->name, x->name, (long long)x->extent, y->name,
             (long long)y->extent, x->extent == y->extent ? " and padding" : "");
}

// ---- rules --------------------------------------------------------------------------------------------------------
static bool dim_args(Prim *p) {              // index(d), extent(d, …): the arguments are dims
  for (uint32_t i = 0; i < p->narg; i++) {
    const Ast *a = p->arg[i].ast;
    DimBind b;
    if (a->kind != N_name || !dim_find_here(p->l, a->text, &b)) {
      if (a->kind != N_none) lower_error(p->l, a->span, "MT0220", "no dim '%s'", a->kind == N_name ? a->text : expr_words(p->l, a));
      return false;
    }
    for (uint32_t k = 0; k < b.n; k++) {
      if (p->ndim == MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
      p->dim[p->ndim++] = b.dim[k];
    }
  }
  return true;
}

static bool prim_index(Prim *p) {
  if (!dim_args(p)) return false;
  if (p->ndim != 1) return refuse(p, "MT0240", "index takes one dim, %s stands for %u", p->arg[0].ast->text, p->ndim);
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_index, 0, 0, (Attr){.ndims = 1, .dims = {p->dim[0]}}));
}

static bool prim_extent(Prim *p) {
  double n = 1;
  if (!dim_args(p)) return false;
  for (uint32_t i = 0; i < p->ndim; i++) n *= (double)dim_of(p->l->m, p->dim[i])->extent;
  return give(p, val_number(number_of(n)));
}

static bool folded(Prim *p) {                // all numbers
  Number arg[8], r;
  for (uint32_t i = 0; i < p->narg; i++) {
    if (p->in[i].tensor) return false;
    arg[i] = p->in[i].number;
  }
  return fold_call(p->l->p->diag, p->e->span, p->e->text, arg, p->narg, &r) && give(p, val_number(r));
}

static bool prim_math(Prim *p) {
  if (folded(p)) return true;
  const Type *t = val_shape(p->l, p->in[0]);
  if (!type_is_float(t)) {
    refuse(p, "MT0213", "%s needs a float, %s is %s", p->e->text, expr_words(p->l, p->as[0]), val_show(p->l, p->in[0]));
    diag_note(p->l->p->diag, "write %s(float(%s))", p->e->text, expr_words(p->l, p->as[0]));
    return false;
  }
  return give(p, elementwise(p->l, p->e->span, p->op, p->in, p->as, p->narg));
}

static bool prim_aligned(Prim *p) {
  if (p->op == OP_detach && !p->in[0].tensor) return give(p, p->in[0]);
  if (folded(p)) return true;
  if (p->op == OP_select && !p->in[0].tensor && p->in[0].number.kind == NUM_bool) { // the other branch is not looked at
    Val pick = p->in[p->in[0].number.num != 0 ? 1 : 2];
    return give(p, pick);
  }
  return give(p, elementwise(p->l, p->e->span, p->op, p->in, p->as, p->narg));
}

static bool prim_random(Prim *p) {
  Lower *l = p->l;
  if (!tensor_first(p)) return false;
  Type t = *val_shape(l, p->in[0]);
  t.dtype = DT_f32;
  const uint64_t *was = map_get(&l->random, key_of(l->frame->path));
  uint64_t k = was ? *was : 0;
  map_put(&l->random, key_of(l->frame->path), k + 1);
  Build b = build(p);
  ValId in[] = {ir_read_var(&b, var_find(l->m, intern(l->p->in, "$step"))), ir_read_var(&b, var_find(l->m, intern(l->p->in, "$sample")))};
  TypeId type = type_intern(l->m, t);
  Attr at = {.path = intern_printf(l->p->in, "%s#%llu", l->frame->path, (unsigned long long)k)};
  return give_node(p, ir_add_typed(&b, OP_random, in, 2, at, &type, 1, 0));
}

// x with entries where `where` is false replaced; *mask: the condition as a tensor, or none when it is known
static bool masked(Prim *p, double other, Val *mask) {
  Lower *l = p->l;
  const Ast *as;
  *mask = labelled(p, "where", 1, val_number(bool_of(true)), &as);
  if (!labels_ok(p, "where", "x") || val_is_error(*mask)) return false;
  if (!mask->tensor && mask->number.kind != NUM_bool) return refuse(p, "MT0212", "where is a bool, got %s", val_show(l, *mask));
  if (mask->tensor && val_shape(l, *mask)->dtype != DT_bool) return refuse(p, "MT0212", "where is a bool, got %s", val_show(l, *mask));
  if (!mask->tensor && mask->number.num != 0) return true;
  DType t = val_shape(l, p->in[0])->dtype;
  if (dtype_is_int(t) && isinf(other)) other = t == DT_i64 ? -0x1p62 : -2147483648.0;
  Val sel[3] = {*mask, p->in[0], constant(p, other, t)};
  const Ast *ases[3] = {as, p->as[0], p->e};
  if (!mask->tensor) sel[0] = to_dtype(l, *mask, DT_bool, p->e->span);
  Val v = elementwise(l, p->e->span, OP_select, sel, ases, 3);
  if (val_is_error(v)) return false;
  if (val_shape(l, v)->ndim != val_shape(l, p->in[0])->ndim)
    return refuse(p, "MT0201", "where has dims that %s lacks: %s is %s", expr_words(l, p->as[0]), expr_words(l, as), val_show(l, *mask));
  p->in[0] = v;
  return true;
}

static bool no_bool(Prim *p) {
  if (!tensor_first(p)) return false;
  if (val_shape(p->l, p->in[0])->dtype != DT_bool) return has_dims(p);
  refuse(p, "MT0212", "%s of %s", p->e->text, val_show(p->l, p->in[0]));
  diag_note(p->l->p->diag, "write %s[…](i32(%s))", p->e->text, expr_words(p->l, p->as[0]));
  return false;
}

static bool prim_sum(Prim *p) {
  Val mask;
  if (!no_bool(p) || !masked(p, 0, &mask)) return false;
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_sum, p->in[0].v, p->dim, p->ndim));
}

static bool prim_max(Prim *p) {
  Val mask;
  if (!p->e->kid[0]->n) return p->narg == 2 ? prim_aligned(p) : refuse(p, "MT0240", "max of one value wants its dims: max[d](x)");
  if (!no_bool(p) || !masked(p, -INFINITY, &mask)) return false;
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_reduce_max, p->in[0].v, p->dim, p->ndim));
}

// How many entries count, as a tensor of dtype t: sum over the mask's dims, times the extents of the listed dims that
// the mask lacks.
static Val count(Prim *p, Val mask, DType t) {
  Lower *l = p->l;
  DimId in[MAX_DIMS];
  uint32_t n = 0;
  double rest = 1;
  for (uint32_t i = 0; i < p->ndim; i++)
    if (mask.tensor && type_pos(val_shape(l, mask), p->dim[i]) >= 0) in[n++] = p->dim[i];
    else rest *= (double)dim_of(l->m, p->dim[i])->extent;
  if (!mask.tensor) return constant(p, mask.number.num != 0 ? rest : 0, t);
  Build b = build(p);
  ValId one = ir_const(&b, 1, t), ones = ir_select(&b, mask.v, one, ir_const(&b, 0, t));
  ValId c = ir_dims(&b, OP_sum, ones, in, n);
  if (rest != 1) c = ir_binary(&b, OP_mul, c, ir_const(&b, rest, t));
  return (Val){.tensor = true, .v = c};
}

static bool float_first(Prim *p) {
  if (!no_bool(p)) return false;
  if (type_is_float(val_shape(p->l, p->in[0]))) return true;
  refuse(p, "MT0213", "%s needs a float, %s is %s", p->e->text, expr_words(p->l, p->as[0]), val_show(p->l, p->in[0]));
  diag_note(p->l->p->diag, "write %s[…](float(%s))", p->e->text, expr_words(p->l, p->as[0]));
  return false;
}

static bool prim_mean(Prim *p) {
  Val mask;
  if (!float_first(p) || !masked(p, 0, &mask)) return false;
  Lower *l = p->l;
  Build b = build(p);
  DType t = val_shape(l, p->in[0])->dtype;
  ValId s = ir_dims(&b, OP_sum, p->in[0].v, p->dim, p->ndim);
  if (!mask.tensor) {
    double n = mask.number.num;
    for (uint32_t i = 0; i < p->ndim; i++) n *= (double)dim_of(l->m, p->dim[i])->extent;
    return give_node(p, ir_binary(&b, OP_mul, s, ir_const(&b, n > 0 ? 1 / n : 0, t)));
  }
  ValId n = count(p, mask, t).v;                                       // 0 over nothing
  ValId least = ir_binary(&b, OP_max, n, ir_const(&b, 1, t));
  Val in[2] = {{.tensor = true, .v = s}, {.tensor = true, .v = least}};
  const Ast *as[2] = {p->as[0], p->as[0]};
  return give(p, elementwise(l, p->e->span, OP_div, in, as, 2));
}

// One numerator and one denominator for the whole step: sum · (1 / $denK), which `prologue` counts from the mask.
static bool prim_stepmean(Prim *p) {
  Val mask;
  Lower *l = p->l;
  if (l->fn->is_body || l->frame->scope == &l->p->prelude) return refuse(p, "MT0219", "stepmean belongs in the model's own text");
  if (!float_first(p) || !masked(p, 0, &mask)) return false;
  for (int i = 0; mask.tensor && i < val_shape(l, mask)->ndim; i++) {
    bool listed = false;
    for (uint32_t k = 0; k < p->ndim; k++) listed |= p->dim[k] == val_shape(l, mask)->dim[i];
    if (!listed) return refuse(p, "MT0219", "stepmean: where has %s, which is not in the brackets", name_of(p, val_shape(l, mask)->dim[i]));
  }
  Build b = build(p);
  Str name = intern_printf(l->p->in, "$den%u", l->den.n);
  VarId var = var_find(l->m, name);
  if (!var) {
    TypeId t = type_make(l->m, DT_f64, 0, 0);
    var = var_add(l->m, (Var){.name = name, .type = t, .kind = VAR_scalar, .loc = p->e->span, .why = "the denominator of a stepmean"});
  }
  vec_push(l->a, &l->den, (Den){var, count(p, mask, DT_f64).v, p->e->span});
  ValId den = ir_read_var(&b, var), zero = ir_const(&b, 0, DT_f64);
  ValId some = ir_binary(&b, OP_gt, den, zero), inverse = ir_binary(&b, OP_div, ir_const(&b, 1, DT_f64), den);
  inverse = ir_select(&b, some, inverse, zero);
  ValId s = ir_dims(&b, OP_sum, p->in[0].v, p->dim, p->ndim);
  ValId v = ir_binary(&b, OP_mul, s, ir_cast(&b, inverse, val_type(l->fn, s)->dtype));
  vec_push(l->a, &l->stepmean, v);
  return give_node(p, v);
}

static bool prim_cumsum(Prim *p) {
  if (!no_bool(p)) return false;
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_cumsum, p->in[0].v, p->dim, p->ndim));
}

static bool prim_expand(Prim *p) {
  if (!p->in[0].tensor) p->in[0] = to_dtype(p->l, p->in[0], p->in[0].number.kind == NUM_bool ? DT_bool : p->l->frame->flt, p->e->span);
  const Type *t = val_shape(p->l, p->in[0]);
  for (uint32_t i = 0; i < p->ndim; i++)
    if (type_pos(t, p->dim[i]) >= 0) return refuse(p, "MT0232", "%s is %s and already has %s", expr_words(p->l, p->as[0]), val_show(p->l, p->in[0]), name_of(p, p->dim[i]));
  if (t->ndim + p->ndim > MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_expand, p->in[0].v, p->dim, p->ndim));
}

static bool rename_one(Prim *p, Val v, const Ast *as) {
  Lower *l = p->l;
  if (!v.tensor) return give(p, v);
  const Type *t = val_shape(l, v);
  Attr at = {.ndims = (uint8_t)p->ndim, .nto = (uint8_t)p->nto};
  for (uint32_t i = 0; i < p->ndim; i++) {
    if (type_pos(t, p->dim[i]) < 0)
      return refuse(p, "MT0205", "%s is %s and has no %s; dims there: %s", expr_words(l, as), val_show(l, v), name_of(p, p->dim[i]), dims_show(l, t->dim, t->ndim));
    bool moved = false;
    for (uint32_t k = 0; k < p->ndim; k++) moved |= p->dim[k] == p->to[i];
    if (type_pos(t, p->to[i]) >= 0 && !moved)
      return refuse(p, "MT0230", "rename[%s -> %s]: %s is %s and already has %s", name_of(p, p->dim[i]), name_of(p, p->to[i]), expr_words(l, as), val_show(l, v), name_of(p, p->to[i]));
    at.dims[i] = p->dim[i], at.to[i] = p->to[i];
  }
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_rename, &v.v, 1, at));
}

static bool prim_rename(Prim *p) {
  if (p->ndim != p->nto || !p->ndim) return refuse(p, "MT0240", "rename[a -> b]: %u dims, %u names", p->ndim, p->nto);
  for (uint32_t i = 0; i < p->ndim; i++)
    if (!same_size(p, p->dim[i], p->to[i])) return false;
  for (uint32_t i = 0; i < p->narg; i++)
    if (!val_is_error(p->arg[i].val) && !rename_one(p, p->arg[i].val, p->arg[i].ast)) return false;
  return true;
}

static bool factors(Prim *p, DimId d, const DimId *part, uint32_t n) {
  Lower *l = p->l;
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++)
    if (!mul_ok(product, dim_of(l->m, part[i])->extent, &product)) product = -1;
  const Dim *w = dim_of(l->m, d);
  if (product == w->extent && w->size == w->extent) return true;
  if (w->size != w->extent) return refuse(p, "MT0233", "%s is padded (%lld of %lld) and has no parts", w->name, (long long)w->extent, (long long)w->size);
  Text t;
  text_init(&t, l->a);
  for (uint32_t i = 0; i < n; i++) text_printf(&t, "%s%s %lld", i ? " · " : "", dim_of(l->m, part[i])->name, (long long)dim_of(l->m, part[i])->extent);
  return refuse(p, "MT0233", "%s is %lld, %s is %lld", w->name, (long long)w->extent, t.s, (long long)product);
}

static bool regroup(Prim *p) {               // split and merge
  if (!tensor_first(p) || !has_dims(p)) return false;
  Attr at = {.ndims = (uint8_t)p->ndim, .nto = (uint8_t)p->nto};
  memcpy(at.dims, p->dim, sizeof at.dims), memcpy(at.to, p->to, sizeof at.to);
  for (uint32_t i = 0; i < p->nto; i++)
    if (type_pos(val_shape(p->l, p->in[0]), p->to[i]) >= 0)
      return refuse(p, "MT0230", "%s: %s is %s and already has %s", p->e->text, expr_words(p->l, p->as[0]), val_show(p->l, p->in[0]), name_of(p, p->to[i]));
  if (val_shape(p->l, p->in[0])->ndim - (int)p->ndim + (int)p->nto > MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
  Build b = build(p);
  return give_node(p, ir_add(&b, p->op, &p->in[0].v, 1, at));
}
static bool prim_split(Prim *p) {
  if (p->ndim != 1 || !p->nto) return refuse(p, "MT0240", "split[d -> a, b]: one dim and its parts");
  return factors(p, p->dim[0], p->to, p->nto) && regroup(p);
}
static bool prim_merge(Prim *p) {
  if (p->nto != 1 || !p->ndim) return refuse(p, "MT0240", "merge[a, b -> d]: the parts and one dim");
  return factors(p, p->to[0], p->dim, p->ndim) && regroup(p);
}

static bool one_dim(Prim *p) { return p->ndim == 1 || refuse(p, "MT0240", "%s takes one dim, got %u", p->e->text, p->ndim); }

static bool prim_stack(Prim *p) {
  Lower *l = p->l;
  if (!one_dim(p)) return false;
  if (dim_of(l->m, p->dim[0])->extent != p->narg) return refuse(p, "MT0234", "stack[%s] of %u values, %s is %lld", name_of(p, p->dim[0]), p->narg, name_of(p, p->dim[0]), (long long)dim_of(l->m, p->dim[0])->extent);
  ValId *in = NEW_N(l->a, ValId, p->narg);
  DType t = DT_none;
  uint32_t big = p->narg;
  for (uint32_t i = 0; i < p->narg; i++) {
    Val v = p->arg[i].val;
    if (val_is_error(v)) return false;
    if (!v.tensor) continue;
    const Type *have = val_shape(l, v);
    if (type_pos(have, p->dim[0]) >= 0) return refuse(p, "MT0232", "%s is %s and already has %s", expr_words(l, p->arg[i].ast), val_show(l, v), name_of(p, p->dim[0]));
    if (t != DT_none && (type_is_float(have) != dtype_is_float(t) || (have->dtype == DT_bool) != (t == DT_bool)))
      return refuse(p, "MT0210", "stack mixes %s and %s", dtype_name(t), dtype_name(have->dtype));
    t = t == DT_none ? have->dtype : dtype_wider(t, have->dtype);
    if (big == p->narg || have->ndim > val_shape(l, p->arg[big].val)->ndim) big = i;
  }
  if (big == p->narg) return refuse(p, "MT0218", "stack wants a tensor among its values");
  for (uint32_t i = 0; i < p->narg; i++) {
    Val v = p->arg[i].val;
    const Type *have = v.tensor ? val_shape(l, v) : 0, *all = val_shape(l, p->arg[big].val);
    for (int k = 0; have && k < have->ndim; k++)
      if (type_pos(all, have->dim[k]) < 0)
        return refuse(p, "MT0201", "dims do not fit: %s is %s, %s is %s", expr_words(l, p->arg[big].ast), val_show(l, p->arg[big].val), expr_words(l, p->arg[i].ast), val_show(l, v));
  }
  if (val_shape(l, p->arg[big].val)->ndim == MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
  for (uint32_t i = 0; i < p->narg; i++) in[i] = to_dtype(l, p->arg[i].val, t, p->arg[i].ast->span).v;
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_stack, in, p->narg, (Attr){.ndims = 1, .dims = {p->dim[0]}}));
}

static bool prim_unstack(Prim *p) {
  Lower *l = p->l;
  enum { MOST = 4096 };
  if (!one_dim(p) || !tensor_first(p) || !has_dims(p)) return false;
  int64_t n = dim_of(l->m, p->dim[0])->extent;
  if (n > MOST) return refuse(p, "MT0234", "unstack[%s] gives %lld values; at most %d", name_of(p, p->dim[0]), (long long)n, MOST);
  Build b = build(p);
  ValId v = ir_add(&b, OP_unstack, &p->in[0].v, 1, (Attr){.ndims = 1, .dims = {p->dim[0]}});
  for (int64_t i = 0; i < n; i++) give_node(p, v + (ValId)i);
  return true;
}

static bool prim_slice(Prim *p) {
  Lower *l = p->l;
  const Ast *as;
  Val at = labelled(p, "at", 1, val_number(number_of(0)), &as);
  if (p->ndim != 1 || p->nto != 1) return refuse(p, "MT0240", "slice[a -> b]: one dim and its replacement");
  if (!labels_ok(p, "at", "x") || !tensor_first(p) || !has_dims(p) || val_is_error(at)) return false;
  const Dim *a = dim_of(l->m, p->dim[0]), *s = dim_of(l->m, p->to[0]);
  if (at.tensor || at.number.kind != NUM_number || at.number.num != floor(at.number.num) || at.number.num < 0 || at.number.num > 0x1p53)
    return refuse(p, "MT0231", "slice: at is a whole number known at compile time, got %s", val_show(l, at));
  if (type_pos(val_shape(l, p->in[0]), p->to[0]) >= 0) return refuse(p, "MT0230", "slice[%s -> %s]: %s already has %s", a->name, s->name, expr_words(l, p->as[0]), s->name);
  int64_t end, from = (int64_t)at.number.num;
  if (!add_ok(from, s->extent, &end) || end > a->extent)
    return refuse(p, "MT0231", "slice[%s -> %s]: %lld + %s (%lld) is past %s (%lld)", a->name, s->name, (long long)from, s->name, (long long)s->extent, a->name, (long long)a->extent);
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_slice, &p->in[0].v, 1, (Attr){.ndims = 1, .nto = 1, .dims = {p->dim[0]}, .to = {p->to[0]}, .at = from}));
}

static bool prim_shift(Prim *p) {
  const Ast *as;
  Val by = labelled(p, "by", 1, val_error(), &as), fill = labelled(p, "fill", 2, val_number(number_of(0)), &as);
  if (!one_dim(p) || !labels_ok(p, "by", "fill") || !tensor_first(p) || !has_dims(p)) return false;
  if (by.tensor || by.number.kind != NUM_number || by.number.num != floor(by.number.num) || fabs(by.number.num) > 0x1p53)
    return refuse(p, "MT0231", "shift: by is a whole number known at compile time");
  const Type *t = val_shape(p->l, p->in[0]);
  if (fill.tensor || (fill.number.kind == NUM_bool) != (t->dtype == DT_bool) || (dtype_is_int(t->dtype) && fill.number.num != floor(fill.number.num)))
    return refuse(p, "MT0211", "shift: fill is a number that fits %s, got %s", val_show(p->l, p->in[0]), val_show(p->l, fill));
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_shift, &p->in[0].v, 1, (Attr){.ndims = 1, .dims = {p->dim[0]}, .at = (int64_t)by.number.num, .num = fill.number.num}));
}

static bool prim_gather(Prim *p) {
  Lower *l = p->l;
  if (!one_dim(p) || !tensor_first(p)) return false;
  const Type *x = val_shape(l, p->in[0]);
  if (type_pos(x, p->dim[0]) < 0) return refuse(p, "MT0235", "gather[%s]: %s is %s and has no %s", name_of(p, p->dim[0]), expr_words(l, p->as[0]), val_show(l, p->in[0]), name_of(p, p->dim[0]));
  if (!p->in[1].tensor || !dtype_is_int(val_shape(l, p->in[1])->dtype))
    return refuse(p, "MT0235", "gather: the index %s is %s; it must be an integer tensor", expr_words(l, p->as[1]), val_show(l, p->in[1]));
  const Type *i = val_shape(l, p->in[1]);
  if (type_pos(i, p->dim[0]) >= 0) return refuse(p, "MT0235", "gather[%s]: the index %s is %s and has %s too", name_of(p, p->dim[0]), expr_words(l, p->as[1]), val_show(l, p->in[1]), name_of(p, p->dim[0]));
  int more = 0;
  for (int k = 0; k < x->ndim; k++) more += x->dim[k] != p->dim[0] && type_pos(i, x->dim[k]) < 0;
  if (i->ndim + more > MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
  ValId in[] = {p->in[0].v, p->in[1].v};
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_gather, in, 2, (Attr){.ndims = 1, .dims = {p->dim[0]}}));
}

// -------------------------------------------------------------------------------------------------------------------
bool prim_eval(Lower *l, const Ast *e, const Arg *arg, uint32_t n, Vals *out) {
  int k = find(e->text);
  if (k < 0) return false;
  Prim prim = {.l = l, .e = e, .op = prims[k].op, .arg = arg, .narg = n, .out = out}, *p = &prim;
  if ((int)n < prims[k].least || (prims[k].most >= 0 && (int)n > prims[k].most))
    return refuse(p, "MT0241", "%s takes %d%s argument%s, got %u", e->text, prims[k].least, prims[k].most == prims[k].least ? "" : prims[k].most < 0 ? " or more" : arena_printf(l->a, " to %d", prims[k].most),
               prims[k].least == 1 && prims[k].most == 1 ? "" : "s", n);
  bool by_dim = p->op == OP_index || !strcmp(e->text, "extent");
  for (uint32_t i = 0; i < n && i < COUNT(p->in) && !by_dim; i++) {
    if (val_is_error(arg[i].val)) return false;
    p->in[i] = arg[i].val, p->as[i] = arg[i].ast;
  }
  uint32_t given = e->kid[0]->n, arrow = e->kid[1]->n;
  bool optional = !strcmp(e->text, "max");
  if ((prims[k].from == 0 && given) || (prims[k].from && !given && !optional) || (prims[k].to == 0 && arrow) || (prims[k].to && !arrow)) {
    const char *form = !prims[k].from ? "(…)" : prims[k].to ? "[a -> b](…)" : "[d](…)";
    return refuse(p, "MT0240", "%s is written %s%s", e->text, e->text, form);
  }
  if (!dims_eval(l, e->kid[0], p->dim, &p->ndim) || !dims_eval(l, e->kid[1], p->to, &p->nto)) return false;
  return prims[k].rule(p);
}
