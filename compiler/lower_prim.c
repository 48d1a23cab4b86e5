// lower_prim.c -- the primitive functions of the language (prims.def): what they ask of their arguments, and
// their nodes.
#include "compiler/lower.h"
#include <math.h>
#include <string.h>

enum { MOST_ARGS = 8, MOST_PARTS = 4096 };   // MOST_PARTS: values of stack and unstack

typedef struct {                             // one call of a primitive
  Lower *l;
  const Ast *e;
  Op op;
  const Arg *arg; uint32_t narg;
  const Ast *as[MOST_ARGS];                  // the expressions of the arguments without a label
  Val in[MOST_ARGS];
  uint32_t nin;
  DimId dim[MAX_DIMS], to[MAX_DIMS];
  uint32_t ndim, nto;
  Vals *out;
} Prim;

typedef bool PrimRule(Prim *p);
#define PRIM(name, from, to, least, most, labels, form, rule, op) static PrimRule prim_##rule;
#include "compiler/prims.def"
#undef PRIM

typedef struct {
  const char *name;
  int from, to, least, most;
  const char *labels, *form;
  PrimRule *rule;
  Op op;
} PrimRow;
static const PrimRow prims[] = {
#define PRIM(name, from, to, least, most, labels, form, rule, op)                                            \
  {#name, from, to, least, most, labels, form, prim_##rule, OP_##op},
#include "compiler/prims.def"
#undef PRIM
};

static int find(Str name) {
  for (size_t i = 0; i < COUNT(prims); i++)
    if (!strcmp(prims[i].name, name)) return (int)i;
  return -1;
}
bool prim_known(Str name) { return find(name) >= 0; }
bool prim_takes_dims(Str name) { return !strcmp(name, "index") || !strcmp(name, "extent"); }
const char *prim_form(size_t i) { return i < COUNT(prims) ? prims[i].form : 0; }
Str prim_name(size_t i) { return i < COUNT(prims) ? prims[i].name : 0; }

// ---- helpers ----------------------------------------------------------------------------------------------
static bool give(Prim *p, Val v) { return vec_push(p->l->a, p->out, v), !val_is_error(v); }
static bool give_node(Prim *p, ValId v) { return give(p, val_tensor(p->l, v, p->e->span)); }
static Build build(Prim *p) { return at_span(p->l, p->e->span); }
static Str name_of(Prim *p, DimId d) { return dim_word(p->l, d); }
static const char *words(Prim *p, uint32_t i) { return expr_words(p->l, p->as[i]); }
static const char *show(Prim *p, uint32_t i) { return val_show(p->l, p->in[i]); }
static long long extent(Prim *p, DimId d) { return (long long)dim_of(p->l->m, d)->extent; }

static bool refuse_at(Prim *p, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);
static bool refuse_at(Prim *p, Span at, const char *code, const char *fmt, ...) { // an error; false
  va_list args;
  va_start(args, fmt);
  lower_error(p->l, at, code, "%s", arena_vprintf(p->l->a, fmt, args));
  va_end(args);
  return false;
}
#define refuse(p, code, ...) refuse_at(p, (p)->e->span, code, __VA_ARGS__)
#define refuse_arg(p, i, code, ...) refuse_at(p, (p)->as[i]->span, code, __VA_ARGS__)

static bool tensor_first(Prim *p) {
  return p->in[0].tensor || refuse_arg(p, 0, "MT0218", "%s wants a tensor, got %s", p->e->text, show(p, 0));
}

static Span dim_span(Prim *p, const Ast *list, DimId d) {              // where d is named in the brackets
  DimBind b;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->kid[i]->kind == N_name && dim_find_here(p->l, list->kid[i]->text, &b))
      for (uint32_t k = 0; k < b.n; k++)
        if (b.dim[k] == d) return list->kid[i]->span;
  return list->span;
}

static bool lacks(Prim *p, Val v, const Ast *as, DimId d) {            // MT0205
  Lower *l = p->l;
  const Type *t = val_shape(l, v);
  refuse_at(p, dim_span(p, p->e->kid[0], d), "MT0205", "%s is %s and has no %s", expr_words(l, as),
            val_show(l, v), name_of(p, d));
  for (int i = 0; i < t->ndim; i++)
    if (dim_of(l->m, t->dim[i])->root == dim_of(l->m, d)->root)
      return lower_note(l, "it has %s, another role of the same dim", name_of(p, t->dim[i])), false;
  return false;
}

static bool has_dims(Prim *p) {              // of the first argument
  for (uint32_t i = 0; i < p->ndim; i++)
    if (type_pos(val_shape(p->l, p->in[0]), p->dim[i]) < 0) return lacks(p, p->in[0], p->as[0], p->dim[i]);
  return true;
}

static bool too_many(Prim *p, int ndim) {    // MT0215
  return ndim > MAX_DIMS &&
         !refuse(p, "MT0215", "the result would have %d dims; at most %d are possible", ndim, MAX_DIMS);
}

static Val labelled(const Prim *p, const char *label, uint32_t position, Val otherwise, const Ast **as) {
  uint32_t pos = 0;
  for (uint32_t i = 0; i < p->narg; i++) {
    bool hit = *p->arg[i].label ? !strcmp(p->arg[i].label, label) : pos++ == position;
    if (hit) return *as = p->arg[i].ast, p->arg[i].val;
  }
  return *as = p->e, otherwise;
}

static Val constant(Prim *p, double x, DType t) {
  return to_dtype(p->l, val_number(number_of(x)), t, p->e->span);
}

static bool same_size(Prim *p, DimId a, DimId b) {
  const Dim *x = dim_of(p->l->m, a), *y = dim_of(p->l->m, b);
  if (x->extent == y->extent && x->size == y->size) return true;
  if (x->extent != y->extent)
    return refuse(p, "MT0230", "rename[%s -> %s]: %s is %lld, %s is %lld; extents must be equal",
                  name_of(p, a), name_of(p, b), name_of(p, a), extent(p, a), name_of(p, b), extent(p, b));
  return refuse(
    p, "MT0230", "rename[%s -> %s]: %s is stored as %lld entries, %s as %lld; give both the same pad",
    name_of(p, a), name_of(p, b), name_of(p, a), (long long)x->size, name_of(p, b), (long long)y->size);
}

// ---- dims as arguments, numbers ---------------------------------------------------------------------------
static bool dim_args(Prim *p) {              // index(d), extent(d, …)
  for (uint32_t i = 0; i < p->narg; i++) {
    const Ast *a = p->arg[i].ast;
    DimBind b;
    if (a->kind == N_none) return false;
    if (a->kind != N_name)
      return refuse_at(p, a->span, "MT0220", "%s takes the names of dims, not %s", p->e->text,
                       expr_words(p->l, a));
    if (!dim_find_here(p->l, a->text, &b)) return no_dim(p->l, a->span, a->text), false;
    if (!b.n) return false;
    for (uint32_t k = 0; k < b.n; k++) {
      if (p->ndim == MAX_DIMS) return refuse(p, "MT0215", "more than %d dims", MAX_DIMS);
      p->dim[p->ndim++] = b.dim[k];
    }
  }
  return true;
}

static bool prim_index(Prim *p) {
  if (!dim_args(p)) return false;
  if (p->ndim != 1)
    return refuse(p, "MT0240", "index takes one dim, %s stands for %u", p->arg[0].ast->text, p->ndim);
  if (extent(p, p->dim[0]) > INT32_MAX)
    return refuse(p, "MT0306", "index is an i32, and %s is %lld", name_of(p, p->dim[0]),
                  extent(p, p->dim[0]));
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_index, 0, 0, (Attr){.ndims = 1, .dims = {p->dim[0]}}));
}

static bool prim_extent(Prim *p) {
  double n = 1;
  if (!dim_args(p)) return false;
  for (uint32_t i = 0; i < p->ndim; i++) n *= (double)extent(p, p->dim[i]);
  return give(p, val_number(number_of(n)));
}

static bool all_numbers(const Prim *p) {
  for (uint32_t i = 0; i < p->narg; i++)
    if (p->in[i].tensor) return false;
  return true;
}

static bool folded(Prim *p) {
  Number arg[MOST_ARGS], r;
  Fold f = {.arena = p->l->a};
  for (uint32_t i = 0; i < p->narg; i++) arg[i] = p->in[i].number;
  if (!fold_call(&f, p->e->text, arg, p->narg, &r)) bug("%s is not folded", p->e->text);
  if (f.why) return lower_fold_error(p->l, p->e->span, &f), false;
  return give(p, val_number(r));
}

// ---- elementwise ------------------------------------------------------------------------------------------
static bool want_float(Prim *p) {
  if (type_is_float(val_shape(p->l, p->in[0]))) return true;
  refuse(p, "MT0213", "%s needs a float, %s is %s", p->e->text, words(p, 0), show(p, 0));
  lower_note(p->l, "write %s%s(float(%s))", p->e->text, p->e->kid[0]->n ? "[…]" : "", words(p, 0));
  return false;
}

static bool prim_math(Prim *p) {
  if (all_numbers(p)) return folded(p);
  return want_float(p) && give(p, elementwise(p->l, p->e->span, p->op, p->in, p->as, p->narg));
}

static bool prim_aligned(Prim *p) {
  if (p->op == OP_detach && !p->in[0].tensor) return give(p, p->in[0]);
  if (all_numbers(p)) return folded(p);
  if (p->op == OP_select && !p->in[0].tensor &&
      p->in[0].number.kind == NUM_bool)  // the other branch is not looked at
    return give(p, p->in[p->in[0].number.num != 0 ? 1 : 2]);
  return give(p, elementwise(p->l, p->e->span, p->op, p->in, p->as, p->narg));
}

void draw_place(Lower *l, Build *b, ValId in[2]) {
  in[0] = l->step ? l->step : ir_read_var(b, var_find(l->m, intern(l->p->in, "$step")));
  in[1] = l->step ? l->sample : ir_read_var(b, var_find(l->m, intern(l->p->in, "$sample")));
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
  ValId in[2];
  draw_place(l, &b, in);
  TypeId type = type_intern(l->m, t);
  Attr at = {.path = intern_printf(l->p->in, "%s#%llu", l->frame->path, (unsigned long long)k)};
  return give_node(p, ir_add_typed(&b, OP_random, in, 2, at, &type, 1, 0));
}

// ---- reductions -------------------------------------------------------------------------------------------
// x with entries where `where` is false replaced; *mask: the condition as a tensor, or none when it is known
static bool masked(Prim *p, double other, Val *mask) {
  Lower *l = p->l;
  const Ast *as;
  *mask = labelled(p, "where", 1, val_number(bool_of(true)), &as);
  bool is_bool = mask->tensor ? val_shape(l, *mask)->dtype == DT_bool : mask->number.kind == NUM_bool;
  if (!is_bool) return refuse_at(p, as->span, "MT0212", "where is a bool, got %s", val_show(l, *mask));
  if (!mask->tensor && mask->number.num != 0) return true;
  DType t = val_shape(l, p->in[0])->dtype;
  if (dtype_is_int(t) && isinf(other)) other = t == DT_i64 ? -0x1p62 : -2147483648.0;
  if (mask->tensor)
    for (int i = 0; i < val_shape(l, *mask)->ndim; i++) {
      DimId d = val_shape(l, *mask)->dim[i];
      if (type_pos(val_shape(l, p->in[0]), d) >= 0) continue;
      refuse_at(p, as->span, "MT0201", "where has %s, which is not in %s", name_of(p, d), words(p, 0));
      lower_types(l, (Val[]){p->in[0], *mask}, (const Ast *[]){p->as[0], as}, 2);
      return false;
    }
  Val sel[3] = {*mask, p->in[0], constant(p, other, t)};
  const Ast *ases[3] = {as, p->as[0], p->e};
  if (!mask->tensor) sel[0] = to_dtype(l, *mask, DT_bool, p->e->span);
  Val v = elementwise(l, p->e->span, OP_select, sel, ases, 3);
  if (val_is_error(v)) return false;
  p->in[0] = v;
  return true;
}

static bool no_bool(Prim *p) {
  if (!tensor_first(p)) return false;
  if (val_shape(p->l, p->in[0])->dtype != DT_bool) return has_dims(p);
  refuse(p, "MT0212", "%s of a bool: %s is %s", p->e->text, words(p, 0), show(p, 0));
  lower_note(p->l, "write %s[…](i32(%s))", p->e->text, words(p, 0));
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
  if (!p->e->kid[0]->n)
    return p->nin == 2 ? prim_aligned(p) : refuse(p, "MT0240", "max of one value wants its dims: max[d](x)");
  if (!no_bool(p) || !masked(p, -INFINITY, &mask)) return false;
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_reduce_max, p->in[0].v, p->dim, p->ndim));
}

// How many entries count, as a tensor of dtype t: sum over the mask's dims, times the extents of the listed
// dims that the mask lacks.
static Val count(Prim *p, Val mask, DType t) {
  Lower *l = p->l;
  DimId in[MAX_DIMS];
  uint32_t n = 0;
  double rest = 1;
  for (uint32_t i = 0; i < p->ndim; i++)
    if (mask.tensor && type_pos(val_shape(l, mask), p->dim[i]) >= 0) in[n++] = p->dim[i];
    else rest *= (double)extent(p, p->dim[i]);
  if (!mask.tensor) return constant(p, mask.number.num != 0 ? rest : 0, t);
  Build b = build(p);
  ValId one = ir_const(&b, 1, t), ones = ir_select(&b, mask.v, one, ir_const(&b, 0, t));
  ValId c = ir_dims(&b, OP_sum, ones, in, n);
  if (rest != 1) c = ir_binary(&b, OP_mul, c, ir_const(&b, rest, t));
  return (Val){.tensor = true, .v = c};
}

static bool prim_mean(Prim *p) {
  Val mask;
  if (!no_bool(p) || !want_float(p) || !masked(p, 0, &mask)) return false;
  Lower *l = p->l;
  Build b = build(p);
  DType t = val_shape(l, p->in[0])->dtype;
  ValId s = ir_dims(&b, OP_sum, p->in[0].v, p->dim, p->ndim);
  if (!mask.tensor) {
    double n = mask.number.num;
    for (uint32_t i = 0; i < p->ndim; i++) n *= (double)extent(p, p->dim[i]);
    return give_node(p, ir_binary(&b, OP_mul, s, ir_const(&b, n > 0 ? 1 / n : 0, t)));
  }
  ValId n = count(p, mask, t).v;                                       // 0 over nothing
  ValId least = ir_binary(&b, OP_max, n, ir_const(&b, 1, t));
  Val in[2] = {{.tensor = true, .v = s}, {.tensor = true, .v = least}};
  const Ast *as[2] = {p->as[0], p->as[0]};
  return give(p, elementwise(l, p->e->span, OP_div, in, as, 2));
}

static bool stepmean_ok(Prim *p, Val mask) {
  for (int i = 0; mask.tensor && i < val_shape(p->l, mask)->ndim; i++) {
    DimId d = val_shape(p->l, mask)->dim[i];
    bool listed = false;
    for (uint32_t k = 0; k < p->ndim; k++) listed |= p->dim[k] == d;
    if (!listed)
      return refuse(p, "MT0219", "stepmean has one denominator; where has %s, which is not in the brackets",
                    name_of(p, d));
  }
  return true;
}

// The variable of a denominator. Inference finds those of training again: by path, place, and which time it is reached.
static VarId denominator(Prim *p) {
  Lower *l = p->l;
  Span at = p->e->span;
  uint64_t place = hash_mix(key_of(l->frame->path), hash_mix(hash_mix(at.file, at.line), at.col));
  const uint64_t *seen = map_get(&l->den_seen, place);
  uint64_t time = seen ? *seen + 1 : 1, key = hash_mix(place, time);
  map_put(&l->den_seen, place, time);
  const uint64_t *known = map_get(&l->den_var, key);
  if (known || !l->training) return known ? (VarId)*known : 0;
  Str name = intern_printf(l->p->in, "$den%u", l->den.n), why = "the denominator of a stepmean";
  TypeId t = type_make(l->m, DT_f64, 0, 0);
  VarId var = var_add(l->m, (Var){.name = name, .type = t, .kind = VAR_scalar, .loc = at, .why = why});
  map_put(&l->den_var, key, var);
  return var;
}

// One numerator and one denominator for the whole step: sum · (1 / $denK), which `prologue` counts from the
// mask.
static bool prim_stepmean(Prim *p) {
  Val mask;
  Lower *l = p->l;
  if (l->fn->is_body || l->frame->scope == &l->p->prelude)
    return refuse(p, "MT0219", "stepmean belongs in the model's own text");
  if (!no_bool(p) || !want_float(p) || !masked(p, 0, &mask) || !stepmean_ok(p, mask)) return false;
  Build b = build(p);
  VarId var = denominator(p);
  if (!var) return refuse(p, "MT0219", "this stepmean is not there when training, so nothing counts its denominator");
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

// ---- dims -------------------------------------------------------------------------------------------------
static bool prim_expand(Prim *p) {
  if (!p->in[0].tensor && p->in[0].number.kind == NUM_string) return tensor_first(p);
  if (!p->in[0].tensor)
    p->in[0] = to_dtype(p->l, p->in[0], p->in[0].number.kind == NUM_bool ? DT_bool : p->l->frame->flt,
                        p->e->span);
  const Type *t = val_shape(p->l, p->in[0]);
  for (uint32_t i = 0; i < p->ndim; i++)
    if (type_pos(t, p->dim[i]) >= 0)
      return refuse_at(p, dim_span(p, p->e->kid[0], p->dim[i]), "MT0232", "%s is %s and already has %s",
                       words(p, 0), show(p, 0), name_of(p, p->dim[i]));
  if (too_many(p, t->ndim + (int)p->ndim)) return false;
  Build b = build(p);
  return give_node(p, ir_dims(&b, OP_expand, p->in[0].v, p->dim, p->ndim));
}

static bool rename_one(Prim *p, Val v, const Ast *as) {
  Lower *l = p->l;
  if (!v.tensor) return give(p, v);
  const Type *t = val_shape(l, v);
  Attr at = {.ndims = (uint8_t)p->ndim, .nto = (uint8_t)p->nto};
  for (uint32_t i = 0; i < p->ndim; i++) {
    if (type_pos(t, p->dim[i]) < 0) return lacks(p, v, as, p->dim[i]);
    bool moved = false;
    for (uint32_t k = 0; k < p->ndim; k++) moved |= p->dim[k] == p->to[i];
    if (type_pos(t, p->to[i]) >= 0 && !moved)
      return refuse_at(p, as->span, "MT0230", "rename[%s -> %s]: %s is %s and already has %s",
                       name_of(p, p->dim[i]), name_of(p, p->to[i]), expr_words(l, as), val_show(l, v),
                       name_of(p, p->to[i]));
    at.dims[i] = p->dim[i], at.to[i] = p->to[i];
  }
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_rename, &v.v, 1, at));
}

static bool prim_rename(Prim *p) {
  if (p->ndim != p->nto || !p->ndim)
    return refuse(p, "MT0240", "rename[a -> b] wants as many dims after -> as before, got %u and %u", p->ndim,
                  p->nto);
  for (uint32_t i = 0; i < p->ndim; i++)
    if (!same_size(p, p->dim[i], p->to[i])) return false;
  for (uint32_t i = 0; i < p->narg; i++)
    if (!rename_one(p, p->arg[i].val, p->arg[i].ast)) return false;
  return true;
}

static bool factors(Prim *p, DimId d, const DimId *part, uint32_t n) {
  Lower *l = p->l;
  int64_t product = 1;
  Text names, extents;
  text_init(&names, l->a), text_init(&extents, l->a);
  for (uint32_t i = 0; i <= n; i++) {
    const Dim *x = dim_of(l->m, i < n ? part[i] : d);
    if (x->size != x->extent)
      return refuse(p, "MT0233", "%s: %s is padded (%lld of %lld); padded dims are no parts and have none",
                    p->e->text, x->name, (long long)x->extent, (long long)x->size);
    if (i == n) break;
    if (!mul_ok(product, x->extent, &product)) product = -1;
    text_printf(&names, "%s%s", i ? " · " : "", name_of(p, part[i])),
      text_printf(&extents, "%s%lld", i ? " · " : "", (long long)x->extent);
  }
  if (product == extent(p, d)) return true;
  return refuse(p, "MT0233", "%s is %lld, %s is %s%s%s", name_of(p, d), extent(p, d), names.s, extents.s,
                n > 1 ? " = " : "",
                n < 2         ? ""
                : product < 0 ? "too many"
                              : arena_printf(l->a, "%lld", (long long)product));
}

static bool regroup(Prim *p) {               // split and merge
  if (!tensor_first(p) || !has_dims(p)) return false;
  Attr at = {.ndims = (uint8_t)p->ndim, .nto = (uint8_t)p->nto};
  memcpy(at.dims, p->dim, sizeof at.dims), memcpy(at.to, p->to, sizeof at.to);
  const Type *t = val_shape(p->l, p->in[0]);
  for (uint32_t i = 0; i < p->nto; i++)
    if (type_pos(t, p->to[i]) >= 0)
      return refuse_arg(p, 0, "MT0230", "%s: %s is %s and already has %s", p->e->text, words(p, 0),
                        show(p, 0), name_of(p, p->to[i]));
  if (too_many(p, t->ndim - (int)p->ndim + (int)p->nto)) return false;
  Build b = build(p);
  return give_node(p, ir_add(&b, p->op, &p->in[0].v, 1, at));
}
static bool prim_split(Prim *p) {
  if (p->ndim != 1 || !p->nto)
    return refuse(p, "MT0240", "split[d -> a, b] takes one dim and its parts, got %u and %u", p->ndim,
                  p->nto);
  return factors(p, p->dim[0], p->to, p->nto) && regroup(p);
}
static bool prim_merge(Prim *p) {
  if (p->nto != 1 || !p->ndim)
    return refuse(p, "MT0240", "merge[a, b -> d] takes the parts and one dim, got %u and %u", p->ndim,
                  p->nto);
  return factors(p, p->to[0], p->dim, p->ndim) && regroup(p);
}

static bool one_dim(Prim *p) {
  return p->ndim == 1 || refuse(p, "MT0240", "%s takes one dim, got %u", p->e->text, p->ndim);
}

// ---- stack and unstack ------------------------------------------------------------------------------------
static bool stack_agrees(Prim *p, Val v, const Ast *as, DType *t) {    // one more value; *t: the dtype so far
  Lower *l = p->l;
  const Type *have = val_shape(l, v);
  if (type_pos(have, p->dim[0]) >= 0)
    return refuse_at(p, as->span, "MT0232", "%s is %s and already has %s", expr_words(l, as), val_show(l, v),
                     name_of(p, p->dim[0]));
  if (*t == DT_none) return *t = have->dtype, true;
  if (strcmp(dtype_class(*t), dtype_class(have->dtype)))
    return refuse_at(p, as->span, have->dtype == DT_bool || *t == DT_bool ? "MT0212" : "MT0210",
                     "stack of %s and %s values: %s is %s", dtype_class(*t), dtype_class(have->dtype),
                     expr_words(l, as), val_show(l, v));
  return *t = dtype_wider(*t, have->dtype), true;
}

static bool prim_stack(Prim *p) {
  Lower *l = p->l;
  if (!one_dim(p)) return false;
  if (extent(p, p->dim[0]) != p->narg)
    return refuse(p, "MT0234", "stack[%s] of %u value%s, %s is %lld", name_of(p, p->dim[0]), p->narg,
                  p->narg == 1 ? "" : "s", name_of(p, p->dim[0]), extent(p, p->dim[0]));
  if (p->narg > MOST_PARTS) return refuse(p, "MT0234", "stack of %u values; at most %d", p->narg, MOST_PARTS);
  DType t = DT_none;
  uint32_t big = p->narg;
  for (uint32_t i = 0; i < p->narg; i++) {
    Val v = p->arg[i].val;
    if (v.tensor && !stack_agrees(p, v, p->arg[i].ast, &t)) return false;
    if (v.tensor && (big == p->narg || val_shape(l, v)->ndim > val_shape(l, p->arg[big].val)->ndim)) big = i;
  }
  if (big == p->narg) return refuse(p, "MT0218", "stack wants a tensor among its values");
  const Arg *all = &p->arg[big];
  for (uint32_t i = 0; i < p->narg; i++) {
    Val v = p->arg[i].val;
    if (!v.tensor && !number_fits(v.number, t))
      return refuse_at(p, p->arg[i].at, "MT0211", "%s does not go with %s", val_show(l, v),
                       val_show(l, all->val));
    for (int k = 0; v.tensor && k < val_shape(l, v)->ndim; k++) {
      if (type_pos(val_shape(l, all->val), val_shape(l, v)->dim[k]) >= 0) continue;
      refuse_at(p, p->arg[i].at, "MT0201", "dims do not fit: %s is not in %s",
                name_of(p, val_shape(l, v)->dim[k]), expr_words(l, all->ast));
      lower_types(l, (Val[]){all->val, v}, (const Ast *[]){all->ast, p->arg[i].ast}, 2);
      return false;
    }
  }
  if (too_many(p, val_shape(l, all->val)->ndim + 1)) return false;
  ValId *in = NEW_N(l->a, ValId, p->narg);
  for (uint32_t i = 0; i < p->narg; i++) {
    Val v = to_dtype(l, p->arg[i].val, t, p->arg[i].ast->span);
    if (val_is_error(v)) return false;
    in[i] = v.v;
  }
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_stack, in, p->narg, (Attr){.ndims = 1, .dims = {p->dim[0]}}));
}

static bool prim_unstack(Prim *p) {
  if (!one_dim(p) || !tensor_first(p) || !has_dims(p)) return false;
  int64_t n = extent(p, p->dim[0]);
  if (n > MOST_PARTS)
    return refuse(p, "MT0234", "unstack[%s] gives %lld values; at most %d", name_of(p, p->dim[0]),
                  (long long)n, MOST_PARTS);
  Build b = build(p);
  ValId v = ir_add(&b, OP_unstack, &p->in[0].v, 1, (Attr){.ndims = 1, .dims = {p->dim[0]}});
  for (int64_t i = 0; i < n; i++)
    if (!give_node(p, v + (ValId)i)) return false;
  return true;
}

// ---- places along a dim -----------------------------------------------------------------------------------
static void slice_hint(Prim *p) {            // the configs that the two extents come from
  Program *program = p->l->p;
  const char *long_by = dim_configs(program, p->dim[0]), *short_by = dim_configs(program, p->to[0]);
  if (*long_by && *short_by) lower_note(p->l, "raise %s, or lower %s", long_by, short_by);
}

static bool prim_slice(Prim *p) {
  Lower *l = p->l;
  const Ast *as;
  Val at = labelled(p, "at", 1, val_number(number_of(0)), &as);
  if (p->ndim != 1 || p->nto != 1)
    return refuse(p, "MT0240", "slice[a -> b] takes one dim and the one that replaces it");
  if (!tensor_first(p) || !has_dims(p)) return false;
  DimId from = p->dim[0], to = p->to[0];
  if (at.tensor || !whole_number(at.number, 0))
    return refuse_at(p, as->span, "MT0231", "'at' of slice is a whole number known at compile time, got %s",
                     val_show(l, at));
  if (type_pos(val_shape(l, p->in[0]), to) >= 0)
    return refuse_arg(p, 0, "MT0230", "slice[%s -> %s]: %s is %s and already has %s", name_of(p, from),
                      name_of(p, to), words(p, 0), show(p, 0), name_of(p, to));
  int64_t end, first = (int64_t)at.number.num;
  if (!add_ok(first, extent(p, to), &end) || end > extent(p, from)) {
    refuse(p, "MT0231", "slice[%s -> %s]: %lld + %s (%lld) is past %s (%lld)", name_of(p, from),
           name_of(p, to), (long long)first, name_of(p, to), extent(p, to), name_of(p, from),
           extent(p, from));
    slice_hint(p);
    return false;
  }
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_slice, &p->in[0].v, 1,
                             (Attr){.ndims = 1, .nto = 1, .dims = {from}, .to = {to}, .at = first}));
}

static bool prim_shift(Prim *p) {
  const Ast *by_as, *fill_as;
  Val by = labelled(p, "by", 1, val_error(), &by_as),
      fill = labelled(p, "fill", 2, val_number(number_of(0)), &fill_as);
  if (!one_dim(p) || !tensor_first(p) || !has_dims(p)) return false;
  DType t = val_shape(p->l, p->in[0])->dtype;
  if (t == DT_bool && fill_as == p->e) fill = val_number(bool_of(false));
  if (by_as == p->e) return refuse(p, "MT0241", "shift needs 'by'");
  if (by.tensor || by.number.kind != NUM_number || by.number.num != floor(by.number.num) ||
      fabs(by.number.num) > 0x1p53)
    return refuse_at(p, by_as->span, "MT0231",
                     "'by' of shift is a whole number known at compile time, got %s", val_show(p->l, by));
  if (fill.tensor || !number_fits(fill.number, t))
    return refuse_at(p, fill_as->span, "MT0211", "'fill' of shift is a number that fits %s, got %s",
                     show(p, 0), val_show(p->l, fill));
  Build b = build(p);
  return give_node(
    p, ir_add(&b, OP_shift, &p->in[0].v, 1,
              (Attr){.ndims = 1, .dims = {p->dim[0]}, .at = (int64_t)by.number.num, .num = fill.number.num}));
}

static bool prim_gather(Prim *p) {
  Lower *l = p->l;
  if (!one_dim(p) || !tensor_first(p)) return false;
  DimId d = p->dim[0];
  const Type *x = val_shape(l, p->in[0]);
  if (type_pos(x, d) < 0)
    return refuse_arg(p, 0, "MT0235", "gather[%s]: %s is %s and has no %s", name_of(p, d), words(p, 0),
                      show(p, 0), name_of(p, d));
  if (!p->in[1].tensor || !dtype_is_int(val_shape(l, p->in[1])->dtype)) {
    refuse_arg(p, 1, "MT0235", "the index of gather is an integer tensor, got %s", show(p, 1));
    if (p->in[1].tensor)
      lower_note(l, "write i32(%s), or change the places: gather[d](values, index)", words(p, 1));
    return false;
  }
  const Type *i = val_shape(l, p->in[1]);
  if (type_pos(i, d) >= 0)
    return refuse_arg(p, 1, "MT0235", "gather[%s]: the index %s is %s and has %s too", name_of(p, d),
                      words(p, 1), show(p, 1), name_of(p, d));
  int more = 0;
  for (int k = 0; k < x->ndim; k++) more += x->dim[k] != d && type_pos(i, x->dim[k]) < 0;
  if (too_many(p, i->ndim + more)) return false;
  ValId in[] = {p->in[0].v, p->in[1].v};
  Build b = build(p);
  return give_node(p, ir_add(&b, OP_gather, in, 2, (Attr){.ndims = 1, .dims = {d}}));
}

// -----------------------------------------------------------------------------------------------------------
static bool labels_ok(Prim *p, const PrimRow *row) {
  Lower *l = p->l;
  VEC(Str) known = {0};
  for (const char *s = row->labels; *s; s += strspn(s, " ")) {
    size_t n = strcspn(s, " ");
    vec_push(l->a, &known, intern_n(l->p->in, s, n));
    s += n;
  }
  for (uint32_t i = 0; i < p->narg; i++) {
    const Arg *a = &p->arg[i];
    bool ok = !*a->label, twice = false;
    for (uint32_t k = 0; k < known.n && !ok; k++) ok = known.at[k] == a->label;
    for (uint32_t k = 0; k < i && *a->label; k++) twice |= p->arg[k].label == a->label;
    if (ok && !twice) continue;
    if (twice) refuse_at(p, a->at, "MT0242", "'%s' of %s is given twice", a->label, row->name);
    else refuse_at(p, a->at, "MT0242", "%s has no argument '%s'", row->name, a->label);
    if (!twice) lower_suggest(l, a->label, known.at, known.n);
    lower_note(l, "write %s", row->form);
    return false;
  }
  return true;
}

bool prim_eval(Lower *l, const Ast *e, const Arg *arg, uint32_t n, Vals *out) {
  int k = find(e->text);
  const PrimRow *row = &prims[k];
  Prim prim = {.l = l, .e = e, .op = row->op, .arg = arg, .narg = n, .out = out}, *p = &prim;
  uint32_t given = e->kid[0]->n, arrow = e->kid[1]->n;
  bool optional = !strcmp(row->name, "max");
  if ((!row->from && given) || (row->from && !given && !optional) || (!row->to && arrow) ||
      (row->to && !arrow))
    return refuse_at(p, name_span(e), "MT0240", "%s is written %s", row->name, row->form);
  if ((int)n < row->least || (row->most >= 0 && (int)n > row->most))
    return refuse_at(p, name_span(e), (int)n < row->least ? "MT0241" : "MT0242",
                     "%s is written %s, got %u argument%s", row->name, row->form, n, n == 1 ? "" : "s");
  if (!labels_ok(p, row)) return false;
  for (uint32_t i = 0; i < n && !prim_takes_dims(row->name); i++) {
    if (val_is_error(arg[i].val)) return false;
    if (!*arg[i].label && p->nin < MOST_ARGS) p->in[p->nin] = arg[i].val, p->as[p->nin++] = arg[i].ast;
  }
  if (!p->nin && !prim_takes_dims(row->name))
    return refuse_at(p, name_span(e), "MT0241", "%s is written %s", row->name, row->form);
  if (!dims_eval(l, e->kid[0], p->dim, &p->ndim) || !dims_eval(l, e->kid[1], p->to, &p->nto)) return false;
  return row->rule(p);
}
