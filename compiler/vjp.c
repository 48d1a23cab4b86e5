// vjp.c -- one rule per word of ops.def's vjp column, and the reverse sweep.
//
// A rule gets the gradients of a node's results (dout, 0: none) and sets those of its operands (din, 0: none). What it
// sets may have more dims than the operand (grad_give sums over them, in the gradient's dtype) and another float dtype.
// A value and its gradient have the same dims; the order is the operand's where it costs nothing to choose (products,
// sums). Padding needs no care: the padding of every value is 0, gradients' too.
//
// Nodes come in the order of the calls that make them, so no call has two arguments that make nodes:
// C leaves open which is evaluated first.
//
// Gradients are selected, never multiplied by 0, so an inf or NaN in a branch that was not taken does not leak.
#include "compiler/vjp.h"
#include "compiler/inline.h"
#include <math.h>
#include <string.h>

// ---- helpers ------------------------------------------------------------------------------------------------------
static ValId in(const Grad *g, NodeId n, uint32_t i) { return node_in(g->b.fn, fn_node(g->b.fn, n))[i]; }
static ValId out(const Grad *g, NodeId n) { return fn_node(g->b.fn, n)->out; }
static const Type *type(const Grad *g, ValId v) { return val_type(g->b.fn, v); }
static DType dtype(const Grad *g, ValId v) { return type(g, v)->dtype; }
static const Attr *attr(const Grad *g, NodeId n) { return &fn_node(g->b.fn, n)->attr; }

static bool needs(const Grad *g, NodeId n, uint32_t i) { return g->varied[in(g, n, i)]; }

// dtype of the gradient of a forward value
static DType grad_dtype(const Grad *g, ValId v) { return g->want[v] != DT_none ? g->want[v] : dtype(g, v); }

static ValId num(Grad *g, double x, ValId like) { return ir_const(&g->b, x, dtype(g, like)); }
static ValId neg(Grad *g, ValId a) { return ir_unary(&g->b, OP_neg, a); }
static ValId add(Grad *g, ValId a, ValId b) { return ir_binary(&g->b, OP_add, a, b); }
static ValId sub(Grad *g, ValId a, ValId b) { return ir_binary(&g->b, OP_sub, a, b); }
static ValId mul(Grad *g, ValId a, ValId b) { return ir_binary(&g->b, OP_mul, a, b); }
static ValId quo(Grad *g, ValId a, ValId b) { return ir_binary(&g->b, OP_div, a, b); }
static ValId scaled(Grad *g, ValId a, double k) { return mul(g, a, num(g, k, a)); }
static ValId where(Grad *g, ValId c, ValId a) { return ir_select(&g->b, c, a, num(g, 0, a)); }
static ValId unless(Grad *g, ValId c, ValId a) { return ir_select(&g->b, c, num(g, 0, a), a); }

static double width(DType t) { return t == DT_float ? 4.5 : (double)dtype_bytes(t); }
static DType wider(DType a, DType b) { return width(b) > width(a) ? b : a; }

// the dims of `like`, in its order, with a dtype
static TypeId type_like(const Grad *g, ValId like, DType dt) {
  Type t = *type(g, like);
  t.dtype = dt;
  return type_intern(g->m, t);
}

// c summed over the dims that v lacks, in v's order and its gradient's dtype
static ValId reduced(Grad *g, ValId c, ValId v) {
  const Type *tc = type(g, c), *tv = type(g, v);
  Attr at = {0};
  for (int i = 0; i < tc->ndim; i++)
    if (type_pos(tv, tc->dim[i]) < 0) at.dims[at.ndims++] = tc->dim[i];
  c = ir_cast(&g->b, c, grad_dtype(g, v));
  if (!at.ndims) return c;
  TypeId t = type_like(g, v, grad_dtype(g, v));
  return ir_add_typed(&g->b, OP_sum, &c, 1, at, &t, 1, 0);
}

// ---- elementwise --------------------------------------------------------------------------------------------------
#define RULE(word) static void vjp_##word(Grad *g, NodeId n, const ValId *dout, ValId *din)

RULE(none) { (void)g, (void)n, (void)dout, (void)din; }
RULE(zero) { (void)g, (void)n, (void)dout, (void)din; }
RULE(body) {
  (void)dout, (void)din;
  bug("autodiff: %s in %s is not inlined", op_info[fn_node(g->b.fn, n)->op].name, g->b.fn->name);
}

RULE(neg) { (void)n; din[0] = neg(g, dout[0]); }
RULE(add) { (void)g, (void)n; din[0] = din[1] = dout[0]; }
RULE(sub) {
  din[0] = dout[0];
  if (needs(g, n, 1)) din[1] = neg(g, reduced(g, dout[0], in(g, n, 1)));
}
RULE(mul) {
  if (needs(g, n, 0)) din[0] = mul(g, dout[0], in(g, n, 1));
  if (needs(g, n, 1)) din[1] = mul(g, dout[0], in(g, n, 0));
}
RULE(div) {                                             // y = a / b: g / b and -g·y / b
  ValId b = in(g, n, 1);
  if (needs(g, n, 0)) din[0] = quo(g, dout[0], b);
  if (needs(g, n, 1)) din[1] = neg(g, quo(g, mul(g, dout[0], out(g, n)), b));
}

// y = x ^ p: g·p·x^(p-1), which at x = 0 must not become 0·inf for p = 0; and g·y·log(x), which is 0 at x = 0
RULE(pow) {
  Fn *f = g->b.fn;
  ValId x = in(g, n, 0), p = in(g, n, 1);
  NodeId pdef = f->val.at[p].def;
  bool known = pdef && fn_node(f, pdef)->op == OP_const;
  double k = known ? fn_node(f, pdef)->attr.num : NAN;
  if (needs(g, n, 0) && k == 1) din[0] = dout[0];
  else if (needs(g, n, 0) && k == 2) din[0] = mul(g, dout[0], scaled(g, x, 2));
  else if (needs(g, n, 0) && k == 3) din[0] = mul(g, dout[0], scaled(g, mul(g, x, x), 3));
  else if (needs(g, n, 0) && known && k != 0)
    din[0] = mul(g, dout[0], scaled(g, ir_binary(&g->b, OP_pow, x, num(g, k - 1, x)), k));
  else if (needs(g, n, 0) && !known) {
    ValId zero = ir_binary(&g->b, OP_eq, p, num(g, 0, p));
    ValId d = mul(g, dout[0], mul(g, p, ir_binary(&g->b, OP_pow, x, sub(g, p, num(g, 1, p)))));
    din[0] = unless(g, zero, d);
  }
  if (needs(g, n, 1)) {
    ValId zero = ir_binary(&g->b, OP_eq, x, num(g, 0, x));
    ValId log = ir_unary(&g->b, OP_log, ir_select(&g->b, zero, num(g, 1, x), x));
    din[1] = unless(g, zero, mul(g, mul(g, dout[0], out(g, n)), log));
  }
}

// ties go to a; where either is NaN, to b
static void extremum(Grad *g, NodeId n, Op a_wins, const ValId *dout, ValId *din) {
  ValId first = ir_binary(&g->b, a_wins, in(g, n, 0), in(g, n, 1));
  if (needs(g, n, 0)) din[0] = where(g, first, dout[0]);
  if (needs(g, n, 1)) din[1] = unless(g, first, dout[0]);
}
RULE(max) { extremum(g, n, OP_ge, dout, din); }
RULE(min) { extremum(g, n, OP_le, dout, din); }

RULE(exp)  { din[0] = mul(g, dout[0], out(g, n)); }
RULE(log)  { din[0] = quo(g, dout[0], in(g, n, 0)); }
RULE(sqrt) { din[0] = quo(g, scaled(g, dout[0], 0.5), out(g, n)); }
RULE(rsqrt) {                                           // -1/2 · y^3
  ValId y = out(g, n), square = mul(g, y, y);
  din[0] = mul(g, mul(g, scaled(g, dout[0], -0.5), y), square);
}
RULE(tanh) {                                            // 1 - y^2
  ValId y = out(g, n), one = num(g, 1, y);
  din[0] = mul(g, dout[0], sub(g, one, mul(g, y, y)));
}
RULE(sin) { din[0] = mul(g, dout[0], ir_unary(&g->b, OP_cos, in(g, n, 0))); }
RULE(cos) { din[0] = neg(g, mul(g, dout[0], ir_unary(&g->b, OP_sin, in(g, n, 0)))); }
RULE(erf) {                                             // 2/sqrt(pi) · exp(-x^2)
  ValId x = in(g, n, 0), e = ir_unary(&g->b, OP_exp, neg(g, mul(g, x, x)));
  din[0] = mul(g, dout[0], scaled(g, e, 2 / sqrt(acos(-1.0))));
}
RULE(abs) {                                             // 0 at 0
  ValId x = in(g, n, 0), zero = num(g, 0, x);
  ValId below = ir_binary(&g->b, OP_lt, x, zero), down = where(g, below, neg(g, dout[0]));
  din[0] = ir_select(&g->b, ir_binary(&g->b, OP_gt, x, zero), dout[0], down);
}
RULE(select) {
  ValId c = in(g, n, 0);
  if (needs(g, n, 1)) din[1] = where(g, c, dout[0]);
  if (needs(g, n, 2)) din[2] = unless(g, c, dout[0]);
}
RULE(cast) { (void)g, (void)n; din[0] = dout[0]; }      // grad_give casts back

// ---- products and reductions --------------------------------------------------------------------------------------
// The gradient of x in dot(x, y): contracts g with y over the dims that y alone brought into the result. What is shared
// by all three is a batch dim. dtypes that differ (half operands, f32 result) meet in the wider one.
static ValId dot_gradient(Grad *g, ValId x, ValId y, ValId dy, bool x_first) {
  const Type *tx = type(g, x), *ty = type(g, y), *td = type(g, dy);
  Attr at = {0};
  for (int i = 0; i < ty->ndim; i++)
    if (type_pos(tx, ty->dim[i]) < 0 && type_pos(td, ty->dim[i]) >= 0) at.dims[at.ndims++] = ty->dim[i];
  DType both = wider(ty->dtype, td->dtype);
  bool sums = at.ndims || (td->ndim != tx->ndim && ty->ndim != tx->ndim);
  if (!sums) both = wider(both, grad_dtype(g, x));
  ValId a = ir_cast(&g->b, dy, both), b = ir_cast(&g->b, y, both);
  if (!sums) return x_first ? mul(g, a, b) : mul(g, b, a);
  TypeId t = type_like(g, x, wider(both, grad_dtype(g, x)));
  return ir_add_typed(&g->b, OP_dot, x_first ? (ValId[]){a, b} : (ValId[]){b, a}, 2, at, &t, 1, 0);
}
RULE(dot) {
  ValId a = in(g, n, 0), b = in(g, n, 1);
  if (needs(g, n, 0)) din[0] = dot_gradient(g, a, b, dout[0], true);
  if (needs(g, n, 1)) din[1] = dot_gradient(g, b, a, dout[0], false);
}

// c with the dims of v that it lacks
static ValId expanded(Grad *g, ValId c, ValId v) {
  const Type *tc = type(g, c), *tv = type(g, v);
  Attr at = {0};
  for (int i = 0; i < tv->ndim; i++)
    if (type_pos(tc, tv->dim[i]) < 0) at.dims[at.ndims++] = tv->dim[i];
  if (!at.ndims) return c;
  TypeId t = type_like(g, v, dtype(g, c));
  return ir_add_typed(&g->b, OP_expand, &c, 1, at, &t, 1, 0);
}
RULE(sum) { din[0] = expanded(g, dout[0], in(g, n, 0)); }

// to the first entry that is the maximum, in row-major order over the dims as listed: the one where the running count
// of maxima is 1
RULE(reduce_max) {
  Attr at = {.ndims = attr(g, n)->ndims};
  memcpy(at.dims, attr(g, n)->dims, sizeof at.dims);
  ValId top = ir_binary(&g->b, OP_eq, in(g, n, 0), out(g, n));
  ValId top_num = ir_cast(&g->b, top, DT_i32);
  ValId count = ir_add(&g->b, OP_cumsum, &top_num, 1, at);
  ValId first = ir_binary(&g->b, OP_and, top, ir_binary(&g->b, OP_eq, count, ir_const(&g->b, 1, DT_i32)));
  din[0] = where(g, first, dout[0]);
}
RULE(cumsum) {
  Attr at = *attr(g, n);
  at.at = !at.at;
  din[0] = ir_add(&g->b, OP_cumsum, dout, 1, at);
}

// ---- dims ---------------------------------------------------------------------------------------------------------
static Attr turned(const Attr *a) {                     // dims and to exchanged
  Attr t = {.ndims = a->nto, .nto = a->ndims, .at = a->at};
  memcpy(t.dims, a->to, sizeof t.dims), memcpy(t.to, a->dims, sizeof t.to);
  return t;
}
static ValId back(Grad *g, NodeId n, Op op, ValId dy) {  // the inverse view, in the operand's order
  TypeId t = type_like(g, in(g, n, 0), dtype(g, dy));
  return ir_add_typed(&g->b, op, &dy, 1, turned(attr(g, n)), &t, 1, 0);
}
RULE(expand)  { (void)g, (void)n; din[0] = dout[0]; }   // grad_give sums
RULE(rename)  { din[0] = back(g, n, OP_rename, dout[0]); }
RULE(split)   { din[0] = back(g, n, OP_merge, dout[0]); }
RULE(merge)   { din[0] = back(g, n, OP_split, dout[0]); }
RULE(slice)   { din[0] = back(g, n, OP_unslice, dout[0]); }
RULE(unslice) { din[0] = back(g, n, OP_slice, dout[0]); }
RULE(shift) {                                           // y[i] = x[i - by]
  Attr at = {.ndims = 1, .at = -attr(g, n)->at};
  at.dims[0] = attr(g, n)->dims[0];
  din[0] = ir_add(&g->b, OP_shift, dout, 1, at);
}
RULE(stack) {
  Attr at = {.ndims = 1};
  at.dims[0] = attr(g, n)->dims[0];
  ValId part = ir_add(&g->b, OP_unstack, dout, 1, at);
  for (uint32_t i = 0; i < fn_node(g->b.fn, n)->nin; i++) din[i] = part + i;
}
RULE(unstack) {                                         // results without a gradient count as 0
  uint32_t k = fn_node(g->b.fn, n)->nout;
  ValId *part = NEW_N(g->m->arena, ValId, k);
  uint32_t one = 0;
  while (!dout[one]) one++;
  ValId zero = 0;
  for (uint32_t i = 0; i < k; i++) {
    if (!dout[i] && !zero) zero = num(g, 0, dout[one]);
    part[i] = dout[i] ? dout[i] : zero;
  }
  Attr at = {.ndims = 1};
  at.dims[0] = attr(g, n)->dims[0];
  TypeId t = type_like(g, in(g, n, 0), dtype(g, dout[one]));
  din[0] = ir_add_typed(&g->b, OP_stack, part, k, at, &t, 1, 0);
}

// gather and scatter are each other's transpose; the dims that rows and index share beside the
// indexed one are batch dims
RULE(gather) {
  ValId x = in(g, n, 0), i = in(g, n, 1);
  Attr at = {.ndims = 1};
  at.dims[0] = attr(g, n)->dims[0];
  for (int k = 0; k < type(g, i)->ndim; k++)
    if (type_pos(type(g, x), type(g, i)->dim[k]) >= 0) at.to[at.nto++] = type(g, i)->dim[k];
  ValId rows = ir_cast(&g->b, dout[0], grad_dtype(g, x));
  TypeId t = type_like(g, x, grad_dtype(g, x));
  din[0] = ir_add_typed(&g->b, OP_scatter, (ValId[]){rows, i}, 2, at, &t, 1, 0);
}
RULE(scatter) {
  Attr at = {.ndims = 1};
  at.dims[0] = attr(g, n)->dims[0];
  TypeId t = type_like(g, in(g, n, 0), dtype(g, dout[0]));
  din[0] = ir_add_typed(&g->b, OP_gather, (ValId[]){dout[0], in(g, n, 1)}, 2, at, &t, 1, 0);
}

// ---- composites with a short rule ---------------------------------------------------------------------------------
// They compute in the widest float of the body, at least f32, and round once.
static DType inner_dtype(const Grad *g, NodeId n) {
  const Fn *body = g->m->fn.at[fn_node(g->b.fn, n)->body];
  DType t = dtype(g, in(g, n, 0));
  for (ValId v = 1; v < body->val.n; v++)
    if (type_is_float(val_type(body, v))) t = wider(t, val_type(body, v)->dtype);
  return wider(t, DT_f32);
}

static ValId sum_here(Grad *g, NodeId n, ValId x) {
  return ir_dims(&g->b, OP_sum, x, attr(g, n)->dims, attr(g, n)->ndims);
}

static double count_here(const Grad *g, NodeId n) {     // entries of the composite's dims
  double c = 1;
  for (uint32_t i = 0; i < attr(g, n)->ndims; i++) c *= (double)dim_of(g->m, attr(g, n)->dims[i])->extent;
  return c;
}
static ValId mean_here(Grad *g, NodeId n, ValId x) {    // as `mean` in the definition, so that the two are one value
  ValId s = sum_here(g, n, x);
  return mul(g, s, num(g, 1 / fmax(count_here(g, n), 1), s));
}

// y = softmax(x): y·(g - Σ g·y). A row without a true entry has y = 0, so 0.
RULE(softmax) {
  DType t = inner_dtype(g, n);
  ValId y = ir_cast(&g->b, out(g, n), t), dy = ir_cast(&g->b, dout[0], t);
  din[0] = mul(g, y, sub(g, dy, sum_here(g, n, mul(g, dy, y))));
}

// What layernorm and rmsnorm share: y = xhat·gain [+ b] with xhat = c·r, r = 1 / sqrt(mean(c²) + eps), h = g·gain:
//   dgain = Σ g·xhat    dc = r·(h - xhat·mean(h·xhat))
// (layernorm: c = x - mean(x), so dx = dc - mean(dc) = r·(h - mean(h) - xhat·mean(h·xhat)), since mean(xhat) = 0.)
// Ba, Kiros, Hinton 2016, and Zhang, Sennrich 2019. The statistics are computed again, as the definition does it: two
// passes over a row (one pass cancels), and centred twice (a large mean is rounded).
static void norm(Grad *g, NodeId n, bool centred, ValId dout, ValId *din) {
  DType t = inner_dtype(g, n);
  ValId c = ir_cast(&g->b, in(g, n, 0), t), gain = ir_cast(&g->b, in(g, n, 1), t), dy = ir_cast(&g->b, dout, t);
  if (centred) c = sub(g, c, mean_here(g, n, c)), c = sub(g, c, mean_here(g, n, c));
  ValId var = mean_here(g, n, mul(g, c, c));
  ValId r = ir_unary(&g->b, OP_rsqrt, add(g, var, num(g, attr_arg(attr(g, n), "eps", 1e-5), var)));
  ValId xhat = mul(g, c, r);
  if (needs(g, n, 0)) {
    ValId h = mul(g, dy, gain);
    ValId inner = centred ? sub(g, h, mean_here(g, n, h)) : h;
    din[0] = mul(g, sub(g, inner, mul(g, xhat, mean_here(g, n, mul(g, h, xhat)))), r);
  }
  if (needs(g, n, 1)) din[1] = mul(g, dy, xhat);
  if (centred && needs(g, n, 2)) din[2] = dy;
}
RULE(layernorm) { norm(g, n, true, dout[0], din); }
RULE(rmsnorm)   { norm(g, n, false, dout[0], din); }

// loss = (1-s)·(lse - z[label]) + s·(lse - mean(z)): g·(softmax(z) - (1-s)·[v = label] - s/V); nothing for `ignore`
RULE(cross_entropy) {
  DType t = inner_dtype(g, n);
  double ignore = attr_arg(attr(g, n), "ignore", -100), smooth = attr_arg(attr(g, n), "smooth", 0);
  Attr at = {.ndims = 1};
  at.dims[0] = attr(g, n)->dims[0];
  ValId x = ir_cast(&g->b, in(g, n, 0), t), label = in(g, n, 1), dy = ir_cast(&g->b, dout[0], t);
  ValId e = ir_unary(&g->b, OP_exp, sub(g, x, ir_dims(&g->b, OP_reduce_max, x, at.dims, 1)));
  ValId p = quo(g, e, sum_here(g, n, e));
  ValId index = ir_cast(&g->b, ir_add(&g->b, OP_index, 0, 0, at), dtype(g, label));
  ValId hit = ir_binary(&g->b, OP_eq, ir_dims(&g->b, OP_expand, label, at.dims, 1), index);
  ValId target = num(g, 1 - smooth, p), q = sub(g, p, where(g, hit, target));
  if (smooth > 0) q = sub(g, q, num(g, smooth / count_here(g, n), q));
  ValId counts = ir_binary(&g->b, OP_ne, label, num(g, ignore, label));
  din[0] = where(g, counts, mul(g, q, dy));
}

// dispatch[t, r, e, c](x, chosen) and combine[t, r, e, c](y, chosen) are each other's transpose in their first operand,
// when x has no r. The gradient is that other composite; its body is the derivative of this one's body.
static Fn *transpose_body(Module *m, FnId body);
static void grad_all(Grad *g, NodeId last);

static void transpose(Grad *g, NodeId n, Op op, ValId dout, ValId *din) {
  const Node *c = fn_node(g->b.fn, n);
  Fn *body = transpose_body(g->m, c->body);
  Attr at = {.ndims = c->attr.ndims};
  memcpy(at.dims, c->attr.dims, sizeof at.dims);
  TypeId t = body->val.at[body->ret.at[0]].type;
  din[0] = ir_add_typed(&g->b, op, (ValId[]){dout, in(g, n, 1)}, 2, at, &t, 1, fn_id(body));
}
RULE(dispatch) { transpose(g, n, OP_combine, dout[0], din); }
RULE(combine)  { transpose(g, n, OP_dispatch, dout[0], din); }

// Attention's rule works on the rows' statistics, a second result; its gradient is an op, whose body is the derivative
// of attention's: what computes it may use the results and the statistics, the body computes from the operands.
static NodeId softmax_along(const Fn *body, DimId t) {  // 0: there is none
  for (NodeId id = 1; id < body->node.n; id++)
    if (fn_node(body, id)->op == OP_softmax && fn_node(body, id)->attr.dims[0] == t) return id;
  return 0;
}

static Fn *stats_body(Module *m, const Node *c) {
  Fn *body = m->fn.at[c->body];
  if (body->ret.n > 1) return body;
  Str name = intern_printf(m->in, "%s.stats", body->name);
  Fn *was = fn_find(m, name);
  if (was) return was;
  Fn *t = fn_create(m, name);
  t->is_body = true, t->body_of = OP_attention;
  ValId *map = NEW_N(m->arena, ValId, body->val.n);
  ir_args(t, body, map);
  NodeId id = softmax_along(body, c->attr.dims[1]);
  const Node *soft = fn_node(body, id);
  Build b = {.fn = t};
  ir_return(t, inline_value(&b, body, body->ret.at[0], map), "");
  Grad g = {.m = m, .b = build_like(t, body, id)};
  g.b.why = intern(m->in, "autodiff: statistics of softmax");
  ValId x = map[node_in(body, soft)[0]];
  x = ir_cast(&g.b, x, wider(dtype(&g, x), DT_f32));
  if (soft->nin > 1) x = ir_select(&g.b, map[node_in(body, soft)[1]], x, num(&g, -INFINITY, x));
  ValId top = ir_dims(&g.b, OP_reduce_max, x, soft->attr.dims, 1);
  top = ir_binary(&g.b, OP_max, top, num(&g, -1e30, top));
  ValId n = ir_dims(&g.b, OP_sum, ir_unary(&g.b, OP_exp, sub(&g, x, top)), soft->attr.dims, 1);
  ValId any = ir_binary(&g.b, OP_gt, n, num(&g, 0, n));
  ValId log = ir_unary(&g.b, OP_log, ir_select(&g.b, any, n, num(&g, 1, n)));
  ValId lse = add(&g, top, log);
  ir_return(t, ir_select(&g.b, any, lse, num(&g, INFINITY, lse)), "");
  return t;
}

// A function that is never in the module: the body with its n first arguments' gradients, which g then holds. Its
// arguments are the body's, then the gradient of the result, which is returned.
static ValId grad_work(Grad *g, Module *m, const Fn *body, Str name, uint32_t n) {
  Fn *work = NEW(m->arena, Fn);
  work->module = m, work->name = name;
  vec_push(m->arena, &work->node, (Node){.op = OP_none});
  vec_push(m->arena, &work->val, (Value){.type = 0});
  ValId *map = NEW_N(m->arena, ValId, body->val.n);
  ir_args(work, body, map);
  ValId seed = ir_arg(work, body->val.at[body->ret.at[0]].type, 0);
  Build b = {.fn = work};
  ValId y = inline_value(&b, body, body->ret.at[0], map);
  NodeId last = work->node.n - 1;
  grad_init(g, work);
  for (uint32_t i = 0; i < n; i++) grad_wrt(g, work->arg.at[i], DT_none);
  grad_mark(g);
  grad_give(g, y, seed);
  grad_all(g, last);
  for (uint32_t i = 0; i < n; i++)
    if (!grad_of(g, work->arg.at[i])) bug("autodiff: %s does not depend on operand %u", body->name, i + 1);
  return seed;
}

static void args_from(Fn *t, const Fn *work, uint32_t first, uint32_t n, ValId *kept) {
  for (uint32_t i = first; i < first + n; i++) {
    ValId v = work->arg.at[i];
    kept[v] = ir_arg(t, work->val.at[v].type, work->val.at[v].name);
  }
}

static Fn *grad_body(Module *m, const Fn *body) {       // body: with both results
  Str name = intern_printf(m->in, "%s.grad", body->name);
  Fn *was = fn_find(m, name);
  if (was) return was;
  Grad g;
  ValId seed = grad_work(&g, m, body, name, 3);
  const Fn *work = g.b.fn;
  Fn *t = fn_create(m, name);                           // q, k, v, dout, out, statistics, mask
  t->is_body = true, t->body_of = OP_attention_grad;
  ValId *kept = NEW_N(m->arena, ValId, work->val.n);
  args_from(t, work, 0, 3, kept);
  kept[seed] = ir_arg(t, work->val.at[seed].type, 0);
  for (uint32_t i = 0; i < 2; i++) ir_arg(t, body->val.at[body->ret.at[i]].type, 0);
  args_from(t, work, 3, body->arg.n - 3, kept);
  Build tb = {.fn = t};
  for (uint32_t i = 0; i < 3; i++) ir_return(t, inline_value(&tb, work, grad_of(&g, work->arg.at[i]), kept), "");
  return t;
}

static bool short_attention(const Module *m, const Node *c) {
  return softmax_along(m->fn.at[c->body], c->attr.dims[1]) != 0;
}

RULE(attention) {
  const Node c = *fn_node(g->b.fn, n);
  const ValId *x = node_in(g->b.fn, &c);
  ValId in[2 * MAX_DIMS] = {x[0], x[1], x[2], 0, c.out, c.out + 1};
  uint32_t nin = 6;
  for (uint32_t i = 3; i < c.nin; i++) in[nin++] = x[i];
  if (!dout[0]) return;
  in[3] = ir_cast(&g->b, dout[0], dtype(g, c.out));
  Attr at = c.attr;
  const Type *q = type(g, in[0]), *k = type(g, in[1]);
  for (int i = 0; i < q->ndim; i++)
    if (q->dim[i] != at.dims[0] && type_pos(k, q->dim[i]) < 0) at.dims[at.ndims++] = q->dim[i];
  TypeId types[3];
  for (uint32_t i = 0; i < 3; i++) types[i] = g->b.fn->val.at[in[i]].type;
  ValId d = ir_add_typed(&g->b, OP_attention_grad, in, nin, at, types, 3, fn_id(grad_body(g->m, g->m->fn.at[c.body])));
  for (uint32_t i = 0; i < 3; i++) din[i] = d + i;
}

// ---- the sweep ----------------------------------------------------------------------------------------------------
typedef void (*Rule)(Grad *g, NodeId n, const ValId *dout, ValId *din);
static const Rule rules[OP_COUNT] = {
#define OP(name, nin, nout, flags, attrs, shape, vjp, split, kernel) [OP_##name] = vjp_##vjp,
#include "compiler/ops.def"
#undef OP
};

bool vjp_passes(Op op) { return rules[op] && rules[op] != vjp_none && rules[op] != vjp_zero; }

bool vjp_inlines(const Fn *f, NodeId n) {
  const Node *c = fn_node(f, n);
  if (rules[c->op] == vjp_body) return true;
  if (c->op == OP_attention) return !short_attention(f->module, c);
  if (c->op != OP_dispatch && c->op != OP_combine) return false;
  return c->attr.ndims != 4 || (c->op == OP_dispatch && type_pos(val_type(f, node_in(f, c)[0]), c->attr.dims[1]) >= 0);
}

void vjp_prepare(Module *m, const Fn *f, NodeId n) {
  const Node *c = fn_node(f, n);
  if ((c->op == OP_dispatch || c->op == OP_combine) && !vjp_inlines(f, n)) transpose_body(m, c->body);
  if (c->op == OP_attention && !vjp_inlines(f, n)) grad_body(m, stats_body(m, c));
}

ValId vjp_copy(Build *b, const Fn *f, NodeId id, const ValId *in) {
  const Node *n = fn_node(f, id);
  if (n->op != OP_attention || n->nout > 1 || vjp_inlines(f, id)) return ir_copy(b, f, id, in);
  Fn *body = stats_body(f->module, n);
  Build like = build_like(b->fn, f, id);
  like.fwd = b->fwd;
  TypeId types[2] = {f->val.at[n->out].type, body->val.at[body->ret.at[1]].type};
  ValId v = ir_add_typed(&like, OP_attention, in, n->nin, n->attr, types, 2, fn_id(body));
  b->fn->val.at[v].name = f->val.at[n->out].name;
  return v;
}

void grad_init(Grad *g, Fn *f) {
  Module *m = f->module;
  *g = (Grad){.m = m, .b.fn = f, .nval = f->val.n};
  g->varied = NEW_N(m->arena, bool, g->nval);
  g->want = NEW_N(m->arena, DType, g->nval);
  g->d = NEW_N(m->arena, ValId, g->nval);
}

void grad_wrt(Grad *g, ValId v, DType as) { g->varied[v] = true, g->want[v] = as; }

static bool keeps_want(Op op) {                         // a view of a parameter wants what the parameter wants
  return op == OP_rename || op == OP_split || op == OP_merge || op == OP_slice || op == OP_unstack || op == OP_expand;
}

void grad_mark(Grad *g) {
  const Fn *f = g->b.fn;
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (!vjp_passes(n->op)) continue;
    bool any = false;
    for (uint32_t i = 0; i < n->nin; i++) any |= g->varied[node_in(f, n)[i]];
    for (uint32_t i = 0; any && i < n->nout; i++) {
      if (!type_is_float(val_type(f, n->out + i))) continue;
      g->varied[n->out + i] = true;
      if (keeps_want(n->op)) g->want[n->out + i] = g->want[node_in(f, n)[0]];
    }
  }
}

void grad_give(Grad *g, ValId v, ValId dv) {
  dv = reduced(g, dv, v);
  if (!g->d[v]) { g->d[v] = dv; return; }
  Str why = g->b.why;
  g->b.why = intern(g->m->in, "autodiff: gradients added");
  g->d[v] = add(g, g->d[v], dv);
  g->b.why = why;
}

void grad_node(Grad *g, NodeId id) {
  Fn *f = g->b.fn;
  const Node n = *fn_node(f, id);
  if (!vjp_passes(n.op)) return;
  bool given = false, wanted = false;
  for (uint32_t i = 0; i < n.nout; i++) given |= g->d[n.out + i] != 0;
  for (uint32_t i = 0; i < n.nin; i++) wanted |= g->varied[node_in(f, &n)[i]];
  if (!given || !wanted || !g->varied[n.out]) return;
  ValId few[8] = {0}, *din = few;
  if (n.nin > COUNT(few)) din = NEW_N(g->m->arena, ValId, n.nin);
  g->b = build_like(f, f, id);
  g->b.fwd = id;
  g->b.why = intern_printf(g->m->in, "autodiff: gradient of %s", op_info[n.op].name);
  rules[n.op](g, id, g->d + n.out, din);
  for (uint32_t i = 0; i < n.nin; i++) {
    ValId v = f->operand.at[n.in + i];
    if (g->varied[v] && din[i]) grad_give(g, v, din[i]);
  }
}

// ---- whole functions ----------------------------------------------------------------------------------------------
static void grad_all(Grad *g, NodeId last) {
  for (NodeId n = last; n; n--) grad_node(g, n);
}

// The derivative of a body that is linear in its first argument, as a body of its own: seed, other arguments -> dx.
static Fn *transpose_body(Module *m, FnId id) {
  Fn *body = m->fn.at[id];
  Str name = intern_printf(m->in, "%s.transposed", body->name);
  Fn *was = fn_find(m, name);
  if (was) return was;
  Grad g;
  ValId seed = grad_work(&g, m, body, name, 1);
  const Fn *work = g.b.fn;
  Fn *t = fn_create(m, name);
  t->is_body = true, t->body_of = body->body_of == OP_dispatch ? OP_combine : OP_dispatch;
  ValId *kept = NEW_N(m->arena, ValId, work->val.n);
  kept[seed] = ir_arg(t, work->val.at[seed].type, 0);
  args_from(t, work, 1, body->arg.n - 1, kept);
  Build tb = {.fn = t};
  ir_return(t, inline_value(&tb, work, grad_of(&g, work->arg.at[0]), kept), "");
  return t;
}

Fn *vjp_function(Module *m, const Fn *f, Str name, bool inlined) {
  for (NodeId n = 1; n < f->node.n; n++) vjp_prepare(m, f, n);
  Fn *t = fn_create(m, name);
  ValId *map = NEW_N(m->arena, ValId, f->val.n);
  ir_args(t, f, map);
  ValId *seed = NEW_N(m->arena, ValId, f->ret.n + 1);
  for (uint32_t i = 0; i < f->ret.n; i++)
    if (type_is_float(val_type(f, f->ret.at[i]))) seed[i] = ir_arg(t, f->val.at[f->ret.at[i]].type, 0);
  Build b = {.fn = t};
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    const ValId *mapped = ir_operands(f, n, map);
    bool opened = op_has(n->op, OPF_COMPOSITE) && (inlined || vjp_inlines(f, id));
    if (opened) inline_body(&b, f, id, mapped, inlined ? inline_always : vjp_inlines, map + n->out);
    else {
      ValId v = inlined ? ir_copy(&b, f, id, mapped) : vjp_copy(&b, f, id, mapped);
      ir_results(n, v, map);
    }
  }
  NodeId last = t->node.n - 1;
  Grad g;
  grad_init(&g, t);
  for (uint32_t i = 0; i < f->arg.n; i++)
    if (type_is_float(val_type(t, t->arg.at[i]))) grad_wrt(&g, t->arg.at[i], DT_none);
  grad_mark(&g);
  for (uint32_t i = 0; i < f->ret.n; i++) {
    if (!seed[i] || !g.varied[map[f->ret.at[i]]]) continue;
    NodeId def = t->val.at[map[f->ret.at[i]]].def;
    if (def) g.b = build_like(t, t, def), g.b.fwd = def;
    grad_give(&g, map[f->ret.at[i]], seed[i]);
  }
  grad_all(&g, last);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    ValId x = t->arg.at[i];
    if (!type_is_float(val_type(t, x))) continue;
    if (!grad_of(&g, x)) {
      if (last) g.b = build_like(t, t, last), g.b.fwd = last;
      g.b.why = intern(m->in, "autodiff: no gradient reaches this");
      g.d[x] = expanded(&g, ir_const(&g.b, 0, dtype(&g, x)), x);
    }
    ValId dx = grad_of(&g, x);
    TypeId as = t->val.at[x].type;                      // in the argument's order
    if (t->val.at[dx].type != as) dx = ir_add_typed(&g.b, OP_cast, &dx, 1, (Attr){0}, &as, 1, 0);
    ir_return(t, dx, f->val.at[x].name);
  }
  return t;
}
