// simplify.c -- constants, identities, common subexpressions, dead nodes, unused bodies.
//
// Every rewrite keeps every result bit for bit, in any format: nothing is reassociated, x + 0 stays (it turns -0 into
// +0), constants are folded only through operations that IEEE rounds correctly (in double, then once to the format:
// exact for f32 and narrower), and never in `float`, whose format is not known before precision. Equal nodes become
// one: same op, operands (in either order where the op commutes exactly), attributes and types; reads of one variable
// too, since reads see the value at entry; random never, nor a composite whose body draws, nor a collective: what is
// gathered twice is meant to be, see pass reshard. Roots are writes,
// accumulates and returned values. detach goes where nothing will be differentiated any more.
//
// One walk builds the new nodes, looking at each one's operands as they are after the walk so far; a second copies what
// is live. Both are linear in nodes.
#include "passes/pass.h"
#include <math.h>
#include <string.h>

typedef struct {
  Module *m;
  const Fn *from;
  Fn *to;
  Build b;
  ValId *map;                                // by value of from
  NodeId *node;                              // by node of from: the node that has its (first) result, 0: an argument
  Map seen;                                  // hash of a node of to -> its id
  bool *draws;                               // by function: the body has a random
  bool detaches;                             // detach still means something here
} Simplify;

// ---- reading ------------------------------------------------------------------------------------------------------
static const Node *def(const Fn *f, ValId v, Op op) {   // v's node, if it is an op
  NodeId d = f->val.at[v].def;
  return d && fn_node(f, d)->op == op ? fn_node(f, d) : 0;
}
static bool is_const(const Fn *f, ValId v, double *x) {
  const Node *n = def(f, v, OP_const);
  if (n && x) *x = n->attr.num;
  return n != 0;
}
static bool is_num(const Fn *f, ValId v, double x) {    // that constant; the sign of 0 counts
  double y;
  return is_const(f, v, &y) && y == x && signbit(y) == signbit(x);
}
static bool same_dims(const DimId *a, uint32_t na, const DimId *b, uint32_t nb) {
  return na == nb && !memcmp(a, b, na * sizeof *a);
}

// ---- constants ----------------------------------------------------------------------------------------------------
static bool whole_number(double x) { return fabs(x) <= 0x1p53 && x == floor(x); }

static bool held(DType t, double x) {                   // x is a value of t, exactly
  if (t == DT_float) return false;
  return isnan(x) ? dtype_is_float(t) : dtype_round(t, x) == x && (dtype_is_float(t) || whole_number(x));
}

// op on constants x of format `from`, result of format `to`; false: leave it
static bool fold(Op op, const double *x, DType from, DType to, double *r) {
  bool flt = dtype_is_float(from);
  double a = x[0], b = x[1];
  switch (op) {
  case OP_neg: *r = -a; break;
  case OP_abs: *r = fabs(a); break;
  case OP_add: *r = a + b; break;
  case OP_sub: *r = a - b; break;
  case OP_mul: *r = a * b; break;
  case OP_div: *r = a / b; if (!flt) return false; break;
  case OP_sqrt: *r = sqrt(a); break;
  case OP_floor: *r = floor(a); break;
  case OP_ceil: *r = ceil(a); break;
  case OP_eq: *r = a == b; return true;
  case OP_ne: *r = a != b; return true;
  case OP_lt: *r = a < b; return true;
  case OP_le: *r = a <= b; return true;
  case OP_gt: *r = a > b; return true;
  case OP_ge: *r = a >= b; return true;
  case OP_and: *r = a != 0 && b != 0; return true;
  case OP_or: *r = a != 0 || b != 0; return true;
  case OP_not: *r = a == 0; return true;
  default: return false;
  }
  if (isnan(*r)) return false;                          // which NaN it is stays the machine's choice
  if (flt) return *r = dtype_round(to, *r), true;
  return held(to, *r);                                  // an integer that overflows stays, too
}

static bool constants(const Simplify *s, const Node *n, const ValId *in, DType *from, double *x) {
  *from = DT_none;
  for (uint32_t i = 0; i < n->nin; i++) {
    if (i >= 3 || !is_const(s->to, in[i], &x[i])) return false;
    DType t = val_type(s->to, in[i])->dtype;
    if (n->op == OP_select && !i) continue;
    if (t == DT_float || !(held(t, x[i]) || (dtype_is_float(t) && (x[i] = dtype_round(t, x[i]), true)))) return false;
    *from = t;
  }
  return n->nin > 0;
}

// ---- identities ---------------------------------------------------------------------------------------------------
static bool widens(DType a, DType b) {                  // every value of a is a value of b
  if (a == b || a == DT_bool) return true;
  if (a == DT_float || b == DT_float) return false;
  size_t na = dtype_bytes(a), nb = dtype_bytes(b);
  if (dtype_is_float(a)) return dtype_is_float(b) && nb > na;
  if (dtype_is_float(b)) return (b == DT_f64 && na <= 4) || (b == DT_f32 && na <= 2);
  if (dtype_kind(b) == KIND_bool) return false;
  if (dtype_kind(a) == dtype_kind(b)) return nb > na;
  return dtype_kind(a) == KIND_uint && nb > na;
}

// The value that node id of `from`, with operands in[], is equal to, of the same type; 0: none.
static ValId identity(Simplify *s, const Node *n, const ValId *in, TypeId type) {
  const Fn *f = s->to;
  ValId same = 0;
  const Node *d;
  switch (n->op) {
  case OP_mul: same = is_num(f, in[1], 1) ? in[0] : is_num(f, in[0], 1) ? in[1] : 0; break;
  case OP_div: same = is_num(f, in[1], 1) ? in[0] : 0; break;
  case OP_pow: same = is_num(f, in[1], 1) ? in[0] : 0; break;
  case OP_sub: same = is_num(f, in[1], 0) ? in[0] : 0; break;           // -0 - 0 is -0
  case OP_add:
    if (is_num(f, in[1], -0.0)) same = in[0];
    else if (is_num(f, in[0], -0.0)) same = in[1];
    else if (!type_is_float(&s->m->type.at[type])) same = is_num(f, in[1], 0) ? in[0] : is_num(f, in[0], 0) ? in[1] : 0;
    break;
  case OP_neg: if ((d = def(f, in[0], OP_neg))) same = node_in(f, d)[0]; break;
  case OP_not: if ((d = def(f, in[0], OP_not))) same = node_in(f, d)[0]; break;
  case OP_and: same = is_num(f, in[1], 1) ? in[0] : is_num(f, in[0], 1) ? in[1] : in[0] == in[1] ? in[0] : 0; break;
  case OP_or: same = is_num(f, in[1], 0) ? in[0] : is_num(f, in[0], 0) ? in[1] : in[0] == in[1] ? in[0] : 0; break;
  case OP_select: {
    double c;
    same = is_const(f, in[0], &c) ? in[c != 0 ? 1 : 2] : in[1] == in[2] ? in[1] : 0;
    break;
  }
  case OP_detach: if (!s->detaches) same = in[0]; break;
  case OP_cast:
    same = in[0];                                       // taken when the types are equal
    if ((d = def(f, in[0], OP_cast)) && f->val.at[node_in(f, d)[0]].type == type &&
        widens(s->m->type.at[type].dtype, val_type(f, in[0])->dtype))
      same = node_in(f, d)[0];
    break;
  case OP_merge:
    if ((d = def(f, in[0], OP_split)) && same_dims(d->attr.to, d->attr.nto, n->attr.dims, n->attr.ndims) &&
        d->attr.dims[0] == n->attr.to[0])
      same = node_in(f, d)[0];
    break;
  case OP_split:
    if ((d = def(f, in[0], OP_merge)) && same_dims(d->attr.dims, d->attr.ndims, n->attr.to, n->attr.nto) &&
        d->attr.to[0] == n->attr.dims[0])
      same = node_in(f, d)[0];
    break;
  case OP_stack:                                        // of all parts of one unstack, in order
    if ((d = def(f, in[0], OP_unstack)) && d->attr.dims[0] == n->attr.dims[0] && d->nout == n->nin) {
      same = node_in(f, d)[0];
      for (uint32_t i = 0; i < n->nin; i++)
        if (in[i] != d->out + i) same = 0;
    }
    break;
  default: break;
  }
  return same && f->val.at[same].type == type ? same : 0;
}

// rename of a rename: one. Returns false when nothing is renamed in the end.
static bool join_renames(const Fn *f, Attr *at, ValId *x) {
  const Node *d = def(f, *x, OP_rename);
  if (!d) return true;
  Attr was = *at, both = {0};
  for (uint32_t i = 0; i < d->attr.ndims; i++) {        // first this, then perhaps again
    DimId from = d->attr.dims[i], to = d->attr.to[i];
    for (uint32_t k = 0; k < was.ndims; k++)
      if (was.dims[k] == to) { to = was.to[k], was.dims[k] = 0; break; }
    if (from != to) both.dims[both.ndims++] = from, both.to[both.nto++] = to;
  }
  for (uint32_t k = 0; k < was.ndims; k++)
    if (was.dims[k]) both.dims[both.ndims++] = was.dims[k], both.to[both.nto++] = was.to[k];
  *at = both, *x = node_in(f, d)[0];
  return both.ndims != 0;
}

// A cast of a widened value is a cast of the value. To integers only when the value fits: how a
// machine cuts is its own.
static void shorten_casts(const Fn *f, DType to, ValId *in) {
  const Node *d = def(f, in[0], OP_cast);
  if (!d || to == DT_float) return;
  ValId x = node_in(f, d)[0];
  DType from = val_type(f, x)->dtype;
  if (widens(from, val_type(f, in[0])->dtype) && (dtype_is_float(to) || widens(from, to))) in[0] = x;
}

// An operand of an elementwise op that is an expand need not be one when another operand has all dims of the result.
static void drop_expands(const Simplify *s, const Node *n, ValId *in, const Type *result) {
  const Fn *f = s->to;
  if (!type_is_whole(result)) return;
  for (uint32_t i = 0; i < n->nin; i++) {
    const Node *d = def(f, in[i], OP_expand);
    bool carried = false;
    for (uint32_t k = 0; k < n->nin && d; k++) carried |= k != i && val_type(f, in[k])->ndim == result->ndim;
    if (carried && type_is_whole(val_type(f, node_in(f, d)[0]))) in[i] = node_in(f, d)[0];
  }
}

// ---- common subexpressions ----------------------------------------------------------------------------------------
static bool commutes(Op op) {
  return op == OP_add || op == OP_mul || op == OP_and || op == OP_or || op == OP_eq || op == OP_ne;
}

static bool mergeable(const Simplify *s, const Node *n) {
  if (!n->nout || op_has(n->op, OPF_RANDOM | OPF_COLL) || (op_has(n->op, OPF_STATE) && n->op != OP_read)) return false;
  return !op_has(n->op, OPF_COMPOSITE) || !s->draws[n->body];
}

static uint64_t node_hash(const Node *n, const ValId *in, const TypeId *types) {
  const Attr *a = &n->attr;
  uint64_t num;
  memcpy(&num, &a->num, sizeof num);
  uint64_t h = hash_mix(n->op + 256u * n->nin + ((uint64_t)n->nout << 24) + ((uint64_t)n->body << 40), num);
  h = hash_mix(h, hash_mix((uint64_t)a->at, a->var + ((uint64_t)a->ndims << 32) + ((uint64_t)a->nto << 40) +
                                                ((uint64_t)a->nargs << 48) + ((uint64_t)a->axes << 56)));
  h = hash_mix(h, key_of(a->path));
  if (a->ndims) h = hash_bytes(a->dims, a->ndims * sizeof *a->dims, h);
  if (a->nto) h = hash_bytes(a->to, a->nto * sizeof *a->to, h);
  for (uint32_t i = 0; i < a->nargs; i++) {
    memcpy(&num, &a->args[i].num, sizeof num);
    h = hash_mix(h, hash_mix(key_of(a->args[i].name), num));
  }
  if (n->nin == 2 && commutes(n->op)) h = hash_mix(h, hash_mix(MIN(in[0], in[1]), MAX(in[0], in[1])));
  else if (n->nin) h = hash_bytes(in, n->nin * sizeof *in, h);
  return hash_bytes(types, n->nout * sizeof *types, h);
}

static bool node_equal(const Fn *f, const Node *a, const ValId *ain, const TypeId *types, const Node *b) {
  const Attr *x = &a->attr, *y = &b->attr;
  if (a->op != b->op || a->nin != b->nin || a->nout != b->nout || a->body != b->body) return false;
  if (memcmp(&x->num, &y->num, sizeof x->num) || x->at != y->at || x->var != y->var || x->path != y->path ||
      x->nargs != y->nargs || x->axes != y->axes)
    return false;
  if (!same_dims(x->dims, x->ndims, y->dims, y->ndims) || !same_dims(x->to, x->nto, y->to, y->nto)) return false;
  for (uint32_t i = 0; i < x->nargs; i++)
    if (x->args[i].name != y->args[i].name || memcmp(&x->args[i].num, &y->args[i].num, sizeof x->args[i].num))
      return false;
  const ValId *bin = node_in(f, b);
  bool crossed = a->nin == 2 && commutes(a->op) && ain[0] == bin[1] && ain[1] == bin[0];
  if (!crossed && a->nin && memcmp(ain, bin, a->nin * sizeof *ain)) return false;
  for (uint32_t i = 0; i < a->nout; i++)
    if (f->val.at[b->out + i].type != types[i]) return false;
  return true;
}

// ---- the walk -----------------------------------------------------------------------------------------------------
static bool type_has_rule(Op op) { return op != OP_const && op != OP_random; } // the rule knows the dims

static ValId simplify_node(Simplify *s, NodeId id, Node n, ValId *in) {
  Module *m = s->m;
  Fn *f = s->to;
  TypeId few[8], *types = n.nout > COUNT(few) ? NEW_N(m->arena, TypeId, n.nout) : few;
  for (uint32_t i = 0; i < n.nout; i++) types[i] = s->from->val.at[n.out + i].type;
  s->b = build_like(f, s->from, id);
  s->b.fwd = s->node[n.fwd];
  if (n.nout == 1) {
    const Type t = m->type.at[types[0]];
    double x[3] = {0}, r = 0;
    DType from;
    if (op_has(n.op, OPF_EW) && type_has_rule(n.op) && !t.ndim && constants(s, &n, in, &from, x)) {
      bool cast = n.op == OP_cast &&
                  (held(t.dtype, x[0]) || (dtype_is_float(t.dtype) && t.dtype != DT_float && !isnan(x[0])));
      if (cast) r = dtype_round(t.dtype, x[0]);
      if (cast || (t.dtype != DT_float && fold(n.op, x, from, t.dtype, &r))) {
        s->b.why = intern(m->in, "simplify: constant");
        n = (Node){.op = OP_const, .nout = 1, .attr.num = r};
      }
    }
    if (n.op == OP_rename) {
      Attr at = n.attr;
      ValId x0 = in[0];
      if (join_renames(f, &at, &x0)) n.attr = at, in[0] = x0;
      else if (f->val.at[x0].type == types[0]) return x0;
    }
    if (op_has(n.op, OPF_EW) && n.nin > 1) drop_expands(s, &n, in, &t);
    ValId same = n.nin ? identity(s, &n, in, types[0]) : 0;
    if (same) return same;
    if (n.op == OP_cast) shorten_casts(f, t.dtype, in);
  }
  if (mergeable(s, &n)) {
    uint64_t h = node_hash(&n, in, types);
    for (const uint64_t *at; (at = map_get(&s->seen, h)); h++)
      if (node_equal(f, &n, in, types, fn_node(f, (NodeId)*at))) return fn_node(f, (NodeId)*at)->out;
    map_put(&s->seen, h, f->node.n);
  }
  return ir_add_typed(&s->b, n.op, in, n.nin, n.attr, types, n.nout, n.body);
}

static void name_results(Fn *to, ValId v, const Fn *from, const Node *n) {
  for (uint32_t i = 0; i < n->nout; i++)
    if (!to->val.at[v + i].name) to->val.at[v + i].name = from->val.at[n->out + i].name;
}

static bool *live_nodes(Arena *a, const Fn *f) {
  bool *live = NEW_N(a, bool, f->node.n);
  for (uint32_t i = 0; i < f->ret.n; i++) live[f->val.at[f->ret.at[i]].def] = true;
  for (NodeId id = f->node.n - 1; id; id--) {
    const Node *n = fn_node(f, id);
    live[id] |= op_has(n->op, OPF_STATE) && n->op != OP_read;
    if (!live[id]) continue;
    for (uint32_t i = 0; i < n->nin; i++) live[f->val.at[node_in(f, n)[i]].def] = true;
  }
  return live;
}

static Fn *walk(Simplify *s, const Fn *f, bool rewrite) {
  Module *m = s->m;
  Arena *a = arena_create();
  s->from = f, s->to = NEW(m->arena, Fn);
  s->to->module = m, s->to->name = f->name;
  fn_reserve(s->to, f);
  s->map = NEW_N(a, ValId, f->val.n), s->node = NEW_N(a, NodeId, f->node.n);
  ir_args(s->to, f, s->map);
  if (rewrite) map_init(&s->seen, a);
  const bool *live = live_nodes(a, f);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (!live[id]) continue;
    ValId *in = ir_operands(f, n, s->map);
    Build b = {.fn = s->to, .fwd = s->node[n->fwd]};
    ValId v = rewrite ? simplify_node(s, id, *n, in) : ir_copy(&b, f, id, in);
    if (n->nout) name_results(s->to, v, f, n);
    ir_results(n, v, s->map);
    s->node[id] = n->nout ? s->to->val.at[v].def : s->to->node.n - 1;
  }
  for (uint32_t i = 0; i < f->ret.n; i++) ir_return(s->to, s->map[f->ret.at[i]], f->ret_name.at[i]);
  arena_destroy(a);
  return s->to;
}

static void simplify_fn(Simplify *s, Fn *f) {
  Module *m = s->m;
  s->detaches = f->is_body ? fn_find(m, intern(m->in, "forward")) != 0 : !strcmp(f->name, "forward");
  Fn *done = walk(s, walk(s, f, true), false);
  Fn *now = fn_create(m, intern_printf(m->in, "%s.simplify", f->name));
  Str name = now->name;
  *now = *done, now->name = name;
  fn_replace(m, f, now);
}

// ---- bodies -------------------------------------------------------------------------------------------------------
static void find_draws(Simplify *s) {
  Module *m = s->m;
  s->draws = NEW_N(m->arena, bool, m->fn.n);
  for (bool more = true; more;) {                       // bodies nest a few deep
    more = false;
    for (FnId i = 1; i < m->fn.n; i++) {
      const Fn *f = m->fn.at[i];
      for (NodeId id = 1; id < f->node.n && f->is_body && !s->draws[i]; id++) {
        const Node *n = fn_node(f, id);
        if (n->op == OP_random || (n->body && s->draws[n->body])) s->draws[i] = more = true;
      }
    }
  }
}

static void drop_unused_bodies(Module *m) {
  FnId *now = NEW_N(m->arena, FnId, m->fn.n);
  VEC(FnId) work = {0};
  for (FnId i = 1; i < m->fn.n; i++)
    if (!m->fn.at[i]->is_body) now[i] = 1, vec_push(m->arena, &work, i);
  for (uint32_t k = 0; k < work.n; k++) {
    const Fn *f = m->fn.at[work.at[k]];
    for (NodeId id = 1; id < f->node.n; id++) {
      FnId body = fn_node(f, id)->body;
      if (body && !now[body]) now[body] = 1, vec_push(m->arena, &work, body);
    }
  }
  if (work.n == m->fn.n - 1) return;
  FnId n = 1;
  for (FnId i = 1; i < m->fn.n; i++) {
    Fn *f = m->fn.at[i];
    map_put(&m->fn_by_name, key_of(f->name), now[i] ? n : 0);
    if (now[i]) m->fn.at[now[i] = n++] = f;
  }
  m->fn.n = n;
  for (FnId i = 1; i < n; i++)
    for (NodeId id = 1; id < m->fn.at[i]->node.n; id++)
      m->fn.at[i]->node.at[id].body = now[m->fn.at[i]->node.at[id].body];
}

bool pass_simplify(Module *m) {
  Simplify s = {.m = m};
  find_draws(&s);
  for (FnId f = 1, n = m->fn.n; f < n; f++) simplify_fn(&s, m->fn.at[f]);
  drop_unused_bodies(m);
  return true;
}
