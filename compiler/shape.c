// shape.c -- the type of every op's results, one rule a row of ops.def. The same rules check types that a builder, a
// text or the layout pass gives (ir_verify).
//
// A dim has one split throughout an op: where it occurs twice, the splits agree. A reduced or contracted dim that is
// split leaves a pending sum (or maximum) over its axes. Ops that are not linear refuse pending operands.
#include "compiler/ir.h"
#include <string.h>

typedef struct { Module *m; const Fn *f; const Node *n; TypeId *out; Text *why; } Rule;

static bool no(const Rule *r, const char *fmt, ...) PRINTF(2, 3);
static bool no(const Rule *r, const char *fmt, ...) {
  if (!r->why) return false;
  va_list args;
  va_start(args, fmt);
  text_puts(r->why, arena_vprintf(r->why->arena, fmt, args));
  va_end(args);
  return false;
}

static const Type *operand(const Rule *r, uint32_t i) { return val_type(r->f, node_in(r->f, r->n)[i]); }
static Str dim_name(const Rule *r, DimId d) { return dim_of(r->m, d)->name; }
static bool give(const Rule *r, uint32_t i, Type t) { return r->out[i] = type_intern(r->m, t), true; }

static bool push(const Rule *r, Type *t, DimId d, Split s) {
  if (type_pos(t, d) >= 0) return no(r, "the result would have %s twice", dim_name(r, d));
  if (t->ndim == MAX_DIMS) return no(r, "the result would have more than %d dims", MAX_DIMS);
  t->dim[t->ndim] = d, t->split[t->ndim++] = s;
  return true;
}

// every dim that two operands share is split alike in both
static bool splits_agree(const Rule *r) {
  for (uint32_t i = 1; i < r->n->nin; i++)
    for (uint32_t j = 0; j < i; j++) {
      const Type *a = operand(r, j), *b = operand(r, i);
      for (int k = 0; k < a->ndim; k++) {
        int at = type_pos(b, a->dim[k]);
        if (at >= 0 && a->split[k] != b->split[at])
          return no(r, "operands %u and %u are split differently along %s", j + 1, i + 1, dim_name(r, a->dim[k]));
      }
    }
  return true;
}

static bool not_pending(const Rule *r) {
  for (uint32_t i = 0; i < r->n->nin; i++)
    if (operand(r, i)->pending)
      return no(r, "operand %u is a pending %s", i + 1, operand(r, i)->pending == PENDING_sum ? "sum" : "maximum");
  return true;
}

static bool has_dims(const Rule *r, const Type *t) {
  for (uint32_t i = 0; i < r->n->attr.ndims; i++) {
    DimId d = r->n->attr.dims[i];
    if (type_pos(t, d) < 0) return no(r, "the operand has no %s", dim_name(r, d));
    if (dims_have(r->n->attr.dims, i, d)) return no(r, "%s is named twice", dim_name(r, d));
  }
  return true;
}

static bool whole(const Rule *r, const Type *t, DimId d) {
  int at = type_pos(t, d);
  return at < 0 || !t->split[at] || no(r, "%s must be whole", dim_name(r, d));
}

static bool add_pending(const Rule *r, Type *t, Split s, Pending kind) {
  uint8_t axes = split_mask(s);
  if (!axes) return true;
  if (t->pending && t->pending != kind) return no(r, "a pending sum meets a pending maximum");
  if (t->pending_axes & axes) return no(r, "two sums are pending over one axis");
  t->pending = kind, t->pending_axes |= axes;
  return true;
}

// ---- elementwise --------------------------------------------------------------------------------------------------
// operands from..: the one with all dims of the others (the leftmost of several); -1 and a message when there is none
static int largest(const Rule *r, uint32_t from) {
  uint32_t big = from;
  for (uint32_t i = from; i < r->n->nin; i++)
    if (operand(r, i)->ndim > operand(r, big)->ndim) big = i;
  for (uint32_t i = from; i < r->n->nin; i++)
    for (int k = 0; k < operand(r, i)->ndim; k++)
      if (type_pos(operand(r, big), operand(r, i)->dim[k]) < 0) {
        no(r, "operand %u has %s, which operand %u lacks", i + 1, dim_name(r, operand(r, i)->dim[k]), big + 1);
        return -1;
      }
  return (int)big;
}

static bool is_zero(const Rule *r, uint32_t i) {
  NodeId def = r->f->val.at[node_in(r->f, r->n)[i]].def;
  return def && fn_node(r->f, def)->op == OP_const && fn_node(r->f, def)->attr.num == 0;
}

// pending sums through an elementwise op: linear ops when all operands have the same, products with one such factor,
// quotients of one, selections among such and zeros
static bool elementwise_pending(const Rule *r, Type *t) {
  Op op = r->n->op;
  uint32_t np = 0, first = 0;
  for (uint32_t i = r->n->nin; i--;)
    if (operand(r, i)->pending) np++, first = i;
  t->pending = PENDING_none, t->pending_axes = 0;
  if (!np) return true;
  const Type *p = operand(r, first);
  bool ok = (op == OP_mul && np == 1) || (op == OP_div && np == 1 && first == 0);
  if (op_has(op, OPF_LINEAR) || op == OP_select) {
    ok = true;
    for (uint32_t i = op == OP_select; i < r->n->nin; i++) {
      const Type *o = operand(r, i);
      bool same = o->pending == p->pending && o->pending_axes == p->pending_axes;
      if (!same && !(!o->pending && is_zero(r, i))) ok = false;
    }
    if (op == OP_select && operand(r, 0)->pending) ok = false;
  }
  if (p->pending == PENDING_max && !(r->n->nin == 1 && op_has(op, OPF_LINEAR) && op != OP_neg)) ok = false;
  if (!ok) return no(r, "the op does not pass on a pending %s", p->pending == PENDING_sum ? "sum" : "maximum");
  t->pending = p->pending, t->pending_axes = p->pending_axes;
  return true;
}

static bool elementwise(const Rule *r, DType dtype) {
  int big = largest(r, 0);
  if (big < 0 || !splits_agree(r)) return false;
  Type t = *operand(r, (uint32_t)big);
  t.dtype = dtype;
  return elementwise_pending(r, &t) && give(r, 0, t);
}

static bool one_dtype(const Rule *r, uint32_t from) {
  for (uint32_t i = from + 1; i < r->n->nin; i++)
    if (operand(r, i)->dtype != operand(r, from)->dtype)
      return no(r, "operand %u is %s, operand %u is %s", from + 1, dtype_name(operand(r, from)->dtype), i + 1,
                dtype_name(operand(r, i)->dtype));
  return true;
}

static bool shape_bcast(const Rule *r) {
  if (r->n->op != OP_detach && operand(r, 0)->dtype == DT_bool) return no(r, "arithmetic on bool");
  return one_dtype(r, 0) && elementwise(r, operand(r, 0)->dtype);
}
static bool shape_compare(const Rule *r) { return one_dtype(r, 0) && not_pending(r) && elementwise(r, DT_bool); }
static bool shape_logic(const Rule *r) {
  for (uint32_t i = 0; i < r->n->nin; i++)
    if (operand(r, i)->dtype != DT_bool)
      return no(r, "operand %u is %s, not bool", i + 1, dtype_name(operand(r, i)->dtype));
  return elementwise(r, DT_bool);
}
static bool shape_unary(const Rule *r) {
  if (!type_is_float(operand(r, 0))) return no(r, "the operand is %s, not a float", dtype_name(operand(r, 0)->dtype));
  return not_pending(r) && elementwise(r, operand(r, 0)->dtype);
}
static bool shape_select(const Rule *r) {
  if (operand(r, 0)->dtype != DT_bool) return no(r, "the condition is %s, not bool", dtype_name(operand(r, 0)->dtype));
  return one_dtype(r, 1) && elementwise(r, operand(r, 1)->dtype);
}
static bool shape_cast(const Rule *r) { return elementwise(r, operand(r, 0)->dtype); } // the dtype is the given type's

// ---- leaves and state ---------------------------------------------------------------------------------------------
static bool shape_const(const Rule *r) { return give(r, 0, (Type){.dtype = DT_float}); }
static bool shape_random(const Rule *r) {
  for (uint32_t i = 0; i < 2; i++)
    if (operand(r, i)->ndim || !dtype_is_int(operand(r, i)->dtype))
      return no(r, "operand %u is no integer scalar", i + 1);
  return give(r, 0, (Type){.dtype = DT_f32});           // the dims are the given type's
}
static bool shape_index(const Rule *r) {
  Type t = {.dtype = DT_i32};
  return r->n->attr.ndims == 1 ? push(r, &t, r->n->attr.dims[0], 0) && give(r, 0, t) : no(r, "index takes one dim");
}
static bool shape_read(const Rule *r) { return give(r, 0, r->m->type.at[r->m->var.at[r->n->attr.var].type]); }
static bool shape_write(const Rule *r) {
  const Type *v = &r->m->type.at[r->m->var.at[r->n->attr.var].type], *x = operand(r, 0);
  if (v->dtype != x->dtype || v->ndim != x->ndim) return no(r, "the variable has another type");
  if (v->pending_axes != x->pending_axes || v->pending != x->pending)
    return no(r, "the variable has another pending sum");
  for (int i = 0; i < v->ndim; i++) {
    int at = type_pos(x, v->dim[i]);
    if (at < 0 || x->split[at] != v->split[i])
      return no(r, "the variable has another type along %s", dim_name(r, v->dim[i]));
  }
  return true;
}

// ---- products and reductions --------------------------------------------------------------------------------------
static bool shape_dot(const Rule *r) {
  const Type *a = operand(r, 0), *b = operand(r, 1);
  if (!type_is_float(a)) return no(r, "a product of %s", dtype_name(a->dtype));
  if (!one_dtype(r, 0) || !splits_agree(r) || !has_dims(r, a) || !has_dims(r, b)) return false;
  if (a->pending && b->pending) return no(r, "both operands are pending");
  const Type *p = a->pending ? a : b;
  if (p->pending == PENDING_max) return no(r, "an operand is a pending maximum");
  Type t = {.dtype = a->dtype, .pending = p->pending, .pending_axes = p->pending_axes};
  for (int i = 0; i < a->ndim; i++) {
    bool inner = dims_have(r->n->attr.dims, r->n->attr.ndims, a->dim[i]);
    if (inner ? !add_pending(r, &t, a->split[i], PENDING_sum) : !push(r, &t, a->dim[i], a->split[i])) return false;
  }
  for (int i = 0; i < b->ndim; i++)
    if (type_pos(a, b->dim[i]) < 0 && !push(r, &t, b->dim[i], b->split[i])) return false;
  return give(r, 0, t);
}

static bool shape_reduce(const Rule *r) {
  const Type *a = operand(r, 0);
  Pending kind = r->n->op == OP_sum ? PENDING_sum : PENDING_max;
  if (a->dtype == DT_bool) return no(r, "a reduction of bool");
  if (!has_dims(r, a)) return false;
  if (a->pending && a->pending != kind) return no(r, "the operand is pending");
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (int i = 0; i < a->ndim; i++) {
    bool inner = dims_have(r->n->attr.dims, r->n->attr.ndims, a->dim[i]);
    if (inner ? !add_pending(r, &t, a->split[i], kind) : !push(r, &t, a->dim[i], a->split[i])) return false;
  }
  return give(r, 0, t);
}

static bool shape_same(const Rule *r) {                 // cumsum, shift
  const Type *a = operand(r, 0);
  if (r->n->op == OP_cumsum && a->dtype == DT_bool) return no(r, "cumsum of bool");
  if (r->n->op == OP_shift && (r->n->attr.ndims != 1 || a->pending))
    return no(r, a->pending ? "the operand is pending" : "shift takes one dim");
  if (!has_dims(r, a)) return false;
  for (uint32_t i = 0; i < r->n->attr.ndims; i++)
    if (!whole(r, a, r->n->attr.dims[i])) return false;
  return give(r, 0, *a);
}

// ---- dims ---------------------------------------------------------------------------------------------------------
static bool shape_expand(const Rule *r) {
  const Type *a = operand(r, 0);
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (uint32_t i = 0; i < r->n->attr.ndims; i++) {
    if (type_pos(a, r->n->attr.dims[i]) >= 0)
      return no(r, "the operand already has %s", dim_name(r, r->n->attr.dims[i]));
    if (!push(r, &t, r->n->attr.dims[i], 0)) return false;
  }
  for (int i = 0; i < a->ndim; i++)
    if (!push(r, &t, a->dim[i], a->split[i])) return false;
  return give(r, 0, t);
}

// a dim whose order another dim does not have cannot be split while it turns into that
static bool ordered_alike(const Rule *r, const Type *t, DimId a, DimId b) {
  return dim_of(r->m, dim_of(r->m, a)->root)->zigzag == dim_of(r->m, dim_of(r->m, b)->root)->zigzag || whole(r, t, a);
}

static bool shape_rename(const Rule *r) {
  const Attr *at = &r->n->attr;
  Type t = *operand(r, 0);
  if (at->ndims != at->nto) return no(r, "%d names for %d dims", at->nto, at->ndims);
  if (!has_dims(r, &t)) return false;
  for (uint32_t i = 0; i < at->ndims; i++) {
    const Dim *a = dim_of(r->m, at->dims[i]), *b = dim_of(r->m, at->to[i]);
    if (a->extent != b->extent || a->size != b->size)
      return no(r, "%s is %lld, %s is %lld", a->name, (long long)a->extent, b->name, (long long)b->extent);
    if (!ordered_alike(r, operand(r, 0), at->dims[i], at->to[i])) return false;
    t.dim[type_pos(operand(r, 0), at->dims[i])] = at->to[i];
  }
  for (int i = 0; i < t.ndim; i++)
    if (dims_have(t.dim, (uint32_t)i, t.dim[i])) return no(r, "the operand already has %s", dim_name(r, t.dim[i]));
  return give(r, 0, t);
}

static bool factors(const Rule *r, DimId d, const DimId *parts, uint32_t n) {
  int64_t p = 1, q = 1;
  for (uint32_t i = 0; i < n; i++)
    if (!mul_ok(p, dim_of(r->m, parts[i])->extent, &p) || !mul_ok(q, dim_of(r->m, parts[i])->size, &q)) p = -1;
  if (p != dim_of(r->m, d)->extent || q != p || dim_of(r->m, d)->size != p)
    return no(r, "%s is %lld, its parts make %lld (padded dims have no parts)", dim_name(r, d),
              (long long)dim_of(r->m, d)->extent, (long long)p);
  return true;
}

static bool shape_split(const Rule *r) {
  const Attr *at = &r->n->attr;
  const Type *a = operand(r, 0);
  if (at->ndims != 1 || !at->nto) return no(r, "split takes one dim and its parts");
  if (!has_dims(r, a) || !factors(r, at->dims[0], at->to, at->nto) || !ordered_alike(r, a, at->dims[0], at->to[0]))
    return false;
  int split = type_pos(a, at->dims[0]);
  if (dim_of(r->m, at->to[0])->size % split_ways(r->m, a->split[split]))
    return no(r, "%s is split into more pieces than %s has", dim_name(r, at->dims[0]), dim_name(r, at->to[0]));
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] != at->dims[0]) {
      if (!push(r, &t, a->dim[i], a->split[i])) return false;
    } else
      for (uint32_t j = 0; j < at->nto; j++)
        if (!push(r, &t, at->to[j], j ? 0 : a->split[i])) return false;
  return give(r, 0, t);
}

static bool shape_merge(const Rule *r) {
  const Attr *at = &r->n->attr;
  const Type *a = operand(r, 0);
  if (at->nto != 1 || !at->ndims) return no(r, "merge takes the parts and one dim");
  if (!has_dims(r, a) || !factors(r, at->to[0], at->dims, at->ndims) ||
      !ordered_alike(r, a, at->dims[0], at->to[0]))
    return false;
  for (uint32_t i = 1; i < at->ndims; i++)
    if (!whole(r, a, at->dims[i])) return false;
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] == at->dims[0] ? !push(r, &t, at->to[0], a->split[i])
                                 : !dims_have(at->dims, at->ndims, a->dim[i]) && !push(r, &t, a->dim[i], a->split[i]))
      return false;
  return give(r, 0, t);
}

static bool shape_stack(const Rule *r) {
  DimId d = r->n->attr.dims[0];
  if (r->n->attr.ndims != 1 || !r->n->nin) return no(r, "stack takes one dim and its values");
  if (dim_of(r->m, d)->extent != r->n->nin)
    return no(r, "%d values, %s is %lld", r->n->nin, dim_name(r, d), (long long)dim_of(r->m, d)->extent);
  int big = largest(r, 0);
  if (big < 0 || !one_dtype(r, 0) || !splits_agree(r)) return false;
  const Type *a = operand(r, (uint32_t)big);
  for (uint32_t i = 0; i < r->n->nin; i++)
    if (operand(r, i)->pending_axes != a->pending_axes || operand(r, i)->pending != a->pending)
      return no(r, "not all operands have the same pending sum");
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  if (!push(r, &t, d, 0)) return false;
  for (int i = 0; i < a->ndim; i++)
    if (!push(r, &t, a->dim[i], a->split[i])) return false;
  return give(r, 0, t);
}

static bool shape_unstack(const Rule *r) {
  const Type *a = operand(r, 0);
  DimId d = r->n->attr.dims[0];
  if (r->n->attr.ndims != 1) return no(r, "unstack takes one dim");
  if (!has_dims(r, a) || !whole(r, a, d)) return false;
  if (dim_of(r->m, d)->extent != r->n->nout)
    return no(r, "%d results, %s is %lld", r->n->nout, dim_name(r, d), (long long)dim_of(r->m, d)->extent);
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] != d && !push(r, &t, a->dim[i], a->split[i])) return false;
  for (uint32_t i = 0; i < r->n->nout; i++) give(r, i, t);
  return true;
}

// slice and unslice: one dim replaced, entries at … at + small - 1 of the large one
static bool window(const Rule *r, DimId large, DimId small) {
  int64_t end;
  DimId all = dim_of(r->m, large)->whole ? small : dim_whole(r->m, small); // parts of what is padded may reach past its end
  if (r->n->attr.at < 0 || !add_ok(r->n->attr.at, dim_of(r->m, all)->extent, &end) ||
      end > dim_of(r->m, large)->extent)
    return no(r, "%lld + %s (%lld) is past %s (%lld)", (long long)r->n->attr.at, dim_name(r, small),
              (long long)dim_of(r->m, small)->extent, dim_name(r, large), (long long)dim_of(r->m, large)->extent);
  return true;
}

static bool replace(const Rule *r, bool slices) {
  const Attr *at = &r->n->attr;
  const Type *a = operand(r, 0);
  if (at->ndims != 1 || at->nto != 1) return no(r, "one dim and its replacement are named");
  DimId from = at->dims[0], to = at->to[0];
  if (!has_dims(r, a) || !window(r, slices ? from : to, slices ? to : from)) return false;
  if (slices && !whole(r, a, from)) return false;
  Type t = {.dtype = a->dtype, .pending = a->pending, .pending_axes = a->pending_axes};
  for (int i = 0; i < a->ndim; i++) {
    if (a->dim[i] != from) {
      if (!push(r, &t, a->dim[i], a->split[i])) return false;
    } else if (!push(r, &t, to, 0) || !add_pending(r, &t, slices ? 0 : a->split[i], PENDING_sum)) return false;
  }
  return give(r, 0, t);
}
static bool shape_slice(const Rule *r) { return replace(r, true); }
static bool shape_unslice(const Rule *r) { return replace(r, false); }

// gather[d](x, i): i's dims, then x's without d; shared dims are batch dims
static bool shape_gather(const Rule *r) {
  const Type *x = operand(r, 0), *i = operand(r, 1);
  DimId d = r->n->attr.dims[0];
  if (r->n->attr.ndims != 1) return no(r, "gather takes one dim");
  if (!has_dims(r, x) || !splits_agree(r)) return false;
  if (!dtype_is_int(i->dtype)) return no(r, "the index is %s, not an integer", dtype_name(i->dtype));
  if (type_pos(i, d) >= 0) return no(r, "the index has %s", dim_name(r, d));
  if (i->pending) return no(r, "the index is pending");
  Type t = {.dtype = x->dtype, .pending = x->pending, .pending_axes = x->pending_axes};
  for (int k = 0; k < i->ndim; k++)
    if (!push(r, &t, i->dim[k], i->split[k])) return false;
  for (int k = 0; k < x->ndim; k++) {
    if (x->dim[k] == d) {
      if (!add_pending(r, &t, x->split[k], PENDING_sum)) return false;
    } else if (type_pos(i, x->dim[k]) < 0 && !push(r, &t, x->dim[k], x->split[k])) return false;
  }
  return give(r, 0, t);
}

// scatter[d -> batch…](g, i): the transpose of gather[d]: adds g's rows into d, summing over i's
// dims but the batch ones
static bool shape_scatter(const Rule *r) {
  const Type *g = operand(r, 0), *i = operand(r, 1);
  const Attr *at = &r->n->attr;
  if (at->ndims != 1) return no(r, "scatter takes one dim");
  if (!splits_agree(r)) return false;
  if (!dtype_is_int(i->dtype)) return no(r, "the index is %s, not an integer", dtype_name(i->dtype));
  Type t = {.dtype = g->dtype, .pending = g->pending, .pending_axes = g->pending_axes};
  if (!push(r, &t, at->dims[0], 0)) return false;
  for (int k = 0; k < i->ndim; k++)
    if (type_pos(g, i->dim[k]) < 0) return no(r, "the index has %s, which the rows lack", dim_name(r, i->dim[k]));
  for (uint32_t k = 0; k < at->nto; k++)
    if (type_pos(i, at->to[k]) < 0) return no(r, "%s is no dim of the index", dim_name(r, at->to[k]));
  for (int k = 0; k < g->ndim; k++) {
    bool summed = type_pos(i, g->dim[k]) >= 0 && !dims_have(at->to, at->nto, g->dim[k]);
    if (summed ? !add_pending(r, &t, g->split[k], PENDING_sum) : !push(r, &t, g->dim[k], g->split[k])) return false;
  }
  return give(r, 0, t);
}

// ---- composites: the body's result, split as the operands are ----------------------------------------------------
// a result of a body without a dim that the body sums over: what ranks hold are parts of it
static bool sums_made(const Rule *r, Type *t) {
  for (uint32_t d = 0; d < r->n->attr.ndims; d++)
    for (uint32_t i = 0; op_split(r->n->op, d) == SPLIT_sum && i < r->n->nin; i++) {
      int at = type_pos(operand(r, i), r->n->attr.dims[d]);
      if (at < 0 || type_pos(t, r->n->attr.dims[d]) >= 0) continue;
      if (!add_pending(r, t, operand(r, i)->split[at], PENDING_sum)) return false;
      break;
    }
  return true;
}

static bool shape_body(const Rule *r) {
  if (!r->n->body || r->n->body >= r->m->fn.n) return no(r, "no body");
  const Fn *body = r->m->fn.at[r->n->body];
  if (body->arg.n != r->n->nin) return no(r, "the body takes %u operands", body->arg.n);
  if (body->ret.n != r->n->nout) return no(r, "the body gives %u results", body->ret.n);
  if (!splits_agree(r)) return false;
  for (uint32_t i = op_has(r->n->op, OPF_LINEAR); i < r->n->nin; i++)
    if (operand(r, i)->pending) return no(r, "operand %u is pending", i + 1);
  for (uint32_t i = 0; i < r->n->nin; i++) {
    const Type *a = operand(r, i), *want = val_type(body, body->arg.at[i]);
    if (a->dtype != want->dtype || a->ndim != want->ndim) return no(r, "operand %u is not of the body's type", i + 1);
    for (int k = 0; k < a->ndim; k++)
      if (type_pos(want, a->dim[k]) < 0) return no(r, "operand %u is not of the body's type", i + 1);
  }
  for (uint32_t j = 0; j < r->n->nout; j++) {
    Type t = *val_type(body, body->ret.at[j]);
    if (op_has(r->n->op, OPF_LINEAR)) t.pending = operand(r, 0)->pending, t.pending_axes = operand(r, 0)->pending_axes;
    for (uint32_t i = 0; i < r->n->nin; i++)
      for (int k = 0; k < operand(r, i)->ndim; k++) {
        int at = type_pos(&t, operand(r, i)->dim[k]);
        if (at >= 0) t.split[at] = operand(r, i)->split[k];
      }
    if (!sums_made(r, &t)) return false;
    give(r, j, t);
  }
  return true;
}

// ---- collectives --------------------------------------------------------------------------------------------------
// s without its fastest axes, which are `axes`; false when those are not its fastest
static bool split_drop(Split *s, uint8_t axes) {
  Split left = 0;
  for (uint8_t rest = split_mask(*s); rest != axes && *s; *s >>= 4)
    left = split_push(left, (*s & 15u) - 1), rest &= (uint8_t)~(1u << ((*s & 15) - 1));
  bool ok = split_mask(*s) == axes && axes;
  *s = left;
  return ok;
}
static Split split_with(Split s, uint8_t axes) {
  for (uint32_t i = 0; i < MAX_AXES; i++)
    if (axes >> i & 1) s = split_push(s, i);
  return s;
}
static bool pending_over(const Rule *r, const Type *t) {
  return (t->pending_axes & r->n->attr.axes) == r->n->attr.axes || no(r, "nothing is pending over these axes");
}
static bool one_dim(const Rule *r, const Type *t, int *at) {
  *at = r->n->attr.ndims ? type_pos(t, r->n->attr.dims[0]) : -1;
  return *at >= 0 || no(r, "the operand lacks the dim");
}

// In a rank's own program: the i-th dim in brackets becomes the one after the arrow, which is as many times as long
// (grows), or as short, as the axes have ranks.
static bool becomes(const Rule *r, Type *t, uint32_t i, bool grows) {
  const Attr *at = &r->n->attr;
  if (at->ndims <= i || at->nto <= i) return no(r, "the dim and what it becomes are not named");
  const Dim *a = dim_of(r->m, at->dims[i]), *b = dim_of(r->m, at->to[i]), *less = grows ? a : b, *more = grows ? b : a;
  int where = type_pos(t, at->dims[i]);
  if (where < 0) return no(r, "the operand lacks the dim");
  bool same = (a->whole ? a->whole : at->dims[i]) == (b->whole ? b->whole : at->to[i]);
  if (!same || less->size * axes_ways(r->m, at->axes) != more->size)
    return no(r, "%s is no part of %s over these axes", less->name, more->name);
  if (at->dims[i] != at->to[i] && type_pos(t, at->to[i]) >= 0) return no(r, "the operand already has %s", b->name);
  t->dim[where] = at->to[i];
  return true;
}

static bool shape_all_reduce(const Rule *r) {
  Type t = *operand(r, 0);
  if (is_sharded(r->m)) return give(r, 0, t);
  if (!pending_over(r, &t)) return false;
  t.pending_axes &= (uint8_t)~r->n->attr.axes;
  return give(r, 0, t);
}
static bool shape_reduce_scatter(const Rule *r) {
  Type t = *operand(r, 0);
  int at;
  if (is_sharded(r->m)) return becomes(r, &t, 0, false) && give(r, 0, t);
  if (!pending_over(r, &t) || !one_dim(r, &t, &at)) return false;
  t.pending_axes &= (uint8_t)~r->n->attr.axes;
  t.split[at] = split_with(t.split[at], r->n->attr.axes);
  return give(r, 0, t);
}
static bool shape_all_gather(const Rule *r) {
  Type t = *operand(r, 0);
  int at;
  if (is_sharded(r->m)) return becomes(r, &t, 0, true) && give(r, 0, t);
  if (!one_dim(r, &t, &at)) return false;
  return split_drop(&t.split[at], r->n->attr.axes) ? give(r, 0, t)
                                                   : no(r, "these axes are not the last that split the dim");
}
static bool shape_all_to_all(const Rule *r) {
  Type t = *operand(r, 0);
  int at;
  if (is_sharded(r->m)) return becomes(r, &t, 0, true) && becomes(r, &t, 1, false) && give(r, 0, t);
  if (!one_dim(r, &t, &at)) return false;
  int to = r->n->attr.nto ? type_pos(&t, r->n->attr.to[0]) : -1;
  if (to < 0) return no(r, "the operand lacks the dim");
  if (to == at || !split_drop(&t.split[at], r->n->attr.axes))
    return no(r, "these axes are not the last that split the dim");
  t.split[to] = split_with(t.split[to], r->n->attr.axes);
  return give(r, 0, t);
}
static bool shape_take_shard(const Rule *r) {
  Type t = *operand(r, 0);
  int at;
  if (is_sharded(r->m)) return becomes(r, &t, 0, false) && give(r, 0, t);
  if (!one_dim(r, &t, &at)) return false;
  for (int i = 0; i < t.ndim; i++)
    if (split_mask(t.split[i]) & r->n->attr.axes)
      return no(r, "%s is already split by this axis", dim_name(r, t.dim[i]));
  t.split[at] = split_with(t.split[at], r->n->attr.axes);
  return give(r, 0, t);
}

static bool shape_reshard(const Rule *r) { return give(r, 0, *operand(r, 0)); } // the layout is the given type's

// -------------------------------------------------------------------------------------------------------------------
static bool makes_dim(const Node *n, DimId d) {
  const Attr *at = &n->attr;
  return n->op == OP_random ||
         ((n->op == OP_index || n->op == OP_expand || n->op == OP_scatter) && dims_have(at->dims, at->ndims, d));
}

bool type_fits(const Module *m, const Node *n, TypeId found, TypeId given, Text *why) {
  const Type *a = &m->type.at[found], *b = &m->type.at[given];
  Rule r = {.m = (Module *)(uintptr_t)m, .n = n, .why = why};
  bool layout = n->op == OP_reshard;
  uint8_t axes = b->pending_axes;
  bool open = n->op == OP_const || n->op == OP_cast || n->op == OP_random;
  bool wider = n->op == OP_dot && dtype_is_float(b->dtype) && b->dtype != DT_float &&
               dtype_bytes(b->dtype) >= dtype_bytes(a->dtype);
  if (!open && !wider && a->dtype != b->dtype)
    return no(&r, "it is %s, not %s", dtype_name(a->dtype), dtype_name(b->dtype));
  if (n->op != OP_random && a->ndim != b->ndim) return no(&r, "it has %d dims, not %d", a->ndim, b->ndim);
  if (layout ? (b->pending_axes & ~a->pending_axes) != 0
             : a->pending != b->pending || a->pending_axes != b->pending_axes)
    return no(&r, layout ? "a value cannot become a pending sum" : "another sum is pending");
  for (int i = 0; i < b->ndim; i++) {
    int at = type_pos(a, b->dim[i]);
    if (at < 0 && n->op != OP_random) return no(&r, "it has no %s", dim_name(&r, b->dim[i]));
    if (split_mask(b->split[i]) & axes) return no(&r, "an axis is used twice");
    axes |= split_mask(b->split[i]);
    if (dim_of(m, b->dim[i])->size % split_ways(m, b->split[i]))
      return no(&r, "%s does not divide by the axes that split it", dim_name(&r, b->dim[i]));
    if (!layout && !makes_dim(n, b->dim[i]) && a->split[at] != b->split[i])
      return no(&r, "%s is split differently", dim_name(&r, b->dim[i]));
  }
  return true;
}

bool shape_infer(Module *m, const Fn *f, const Node *n, TypeId *out, Text *why) {
  Rule r = {m, f, n, out, why};
  switch (n->op) {
#define OP(name, in, outs, flags, attrs, shape, vjp, split, kernel) case OP_##name: return shape_##shape(&r);
#include "compiler/ops.def"
#undef OP
  default: return no(&r, "no such op");
  }
}
