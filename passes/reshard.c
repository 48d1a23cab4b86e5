// reshard.c -- collectives in place of `reshard` nodes: what a value is, against what it is asked to be.
//
//   pending -> whole   all_reduce          split -> whole   all_gather        whole -> split   take_shard (local)
//   pending -> split   reduce_scatter      split -> split   all_to_all
//
// Shards are taken first and gathers come last, so that as little as possible moves. The fastest axes of a dim
// come and go first; an order that this does not reach goes over the part that both have. Steps that two
// reshards of one value share are made once. A value that some ask for split and others whole is reduced once,
// whole.
//
// A parameter that is stored in parts (parallel.zero = 3) is gathered where it is first used by an iteration of the
// outermost repeat, or by what stands before or behind them, and again in the backward pass: it is whole for no longer
// than one of these.
//
// A gather over an axis that a weak rule gave (sequence parallelism) is made again in the backward pass, since
// its result is what that rule saves the memory of; parallel.gather = once keeps the first. Other gathers are
// made once.
#include "passes/layout.h"
#include "passes/pass.h"
#include <string.h>

typedef struct {
  Rules r;
  Module *m;
  const Fn *from;
  Fn *to;
  ValId *now;                                // by value of from
  ValId *again;                              // beside it: gathered again in the backward pass
  NodeId *node;
  uint8_t *whole; // by value of from: axes over which not all ask for the same part of the sum
  NodeId backward;                           // the first node of the backward pass
  uint32_t *unit;                            // by node: which iteration, or what is before (0) or behind them; see units
  bool gather_again;
  Map made;                                  // step (value of to, op, axes, dims, pass) -> value of to
  Map whole_in;                              // (parameter's gather, unit) -> value of to
} Reshard;

static uint32_t depth(Split s) { return s > 0xfff ? 4 : s > 0xff ? 3 : s > 0xf ? 2 : s > 0; }
static uint32_t nth(Split s, uint32_t i) { return (s >> 4 * i & 15u) - 1; }
static uint8_t bit(uint32_t axis) { return (uint8_t)(1u << axis); }

// how many of the slowest axes two splits have in common
static uint32_t common(Split a, Split b) {
  uint32_t n = 0;
  while (n < depth(a) && n < depth(b) && nth(a, n) == nth(b, n)) n++;
  return n;
}

// every dim of `less` is split by as many or fewer of the same axes
static bool split_within(const Type *less, const Type *more) {
  for (int k = 0; k < less->ndim; k++)
    if (common(less->split[k], more->split[type_pos(more, less->dim[k])]) < depth(less->split[k])) return false;
  return true;
}

// ---- one value, from its layout to another ----------------------------------------------------------------
typedef struct { Reshard *p; Build b; ValId v; const Type *t; Type want; bool backward; uint32_t unit; } Way;

static ValId emit(Way *w, Op op, uint8_t axes, DimId d, DimId to) {
  Reshard *p = w->p;
  bool weak = false;
  for (uint32_t a = 0; op == OP_all_gather && a < p->m->axis.n; a++) weak |= axes >> a & 1 && axis_is_weak(&p->r, d, a);
  uint64_t key = hash_mix(hash_mix(w->v, op),
                          hash_mix(hash_mix(d, to), axes + 256u * (weak && p->gather_again && w->backward) + 512u * w->unit));
  const uint64_t *had = map_get(&p->made, key);
  if (!had) {
    Attr at = {.axes = axes, .ndims = d != 0, .nto = to != 0, .dims = {d}, .to = {to}};
    w->v = ir_add(&w->b, op, &w->v, 1, at);
    map_put(&p->made, key, w->v);
  } else w->v = (ValId)*had;
  w->t = val_type(p->to, w->v);
  return w->v;
}

static Split wanted(const Way *w, int k) { return w->want.split[type_pos(&w->want, w->t->dim[k])]; }

// the next axis that dim k takes on its way, or -1: it has what it should, or must lose some first
static int next_axis(const Way *w, int k) {
  Split have = w->t->split[k], want = wanted(w, k);
  uint32_t n = common(have, want);
  return n == depth(have) && n < depth(want) ? (int)nth(want, n) : -1;
}

// axes in one step go from the slowest to the fastest in the mesh's order
static uint8_t run_of(const Way *w, int k, uint8_t among) {
  Split want = wanted(w, k);
  uint8_t axes = 0;
  int last = -1;
  for (uint32_t i = depth(w->t->split[k]); i < depth(want); i++) {
    uint32_t a = nth(want, i);
    if (!(among >> a & 1) || (int)a <= last) break;
    axes |= bit(a), last = (int)a;
  }
  return axes;
}

static bool take_shards(Way *w) {
  for (int k = 0; k < w->t->ndim; k++) {
    int a = next_axis(w, k);
    if (a < 0 || type_axes(w->t) >> a & 1) continue;
    emit(w, OP_take_shard, run_of(w, k, (uint8_t)~type_axes(w->t)), w->t->dim[k], 0);
    return true;
  }
  return false;
}

static bool scatter(Way *w, uint8_t whole) {
  uint8_t sums = w->t->pending_axes & (uint8_t)~(w->want.pending_axes | whole);
  if (w->t->pending == PENDING_max) return false; // a reduce_scatter is of sums
  for (int k = 0; sums && k < w->t->ndim; k++) {
    int a = next_axis(w, k);
    if (a < 0 || !(sums >> a & 1)) continue;
    emit(w, OP_reduce_scatter, run_of(w, k, sums), w->t->dim[k], 0);
    return true;
  }
  return false;
}

static bool exchange(Way *w) {
  for (int k = 0; k < w->t->ndim; k++) {
    Split have = w->t->split[k];
    uint32_t n = depth(have);
    if (!n || common(have, wanted(w, k)) == n) continue;
    uint32_t a = nth(have, n - 1);
    for (int j = 0; j < w->t->ndim; j++)
      if (j != k && next_axis(w, j) == (int)a) return emit(w, OP_all_to_all, bit(a), w->t->dim[k], w->t->dim[j]), true;
  }
  return false;
}

static bool gather(Way *w) {
  for (int k = 0; k < w->t->ndim; k++) {
    Split have = w->t->split[k];
    uint32_t n = depth(have), stay = common(have, wanted(w, k));
    if (n == stay) continue;
    uint8_t axes = bit(nth(have, n - 1));
    for (uint32_t i = n - 1; i-- > stay && nth(have, i) < nth(have, i + 1);) axes |= bit(nth(have, i));
    emit(w, OP_all_gather, axes, w->t->dim[k], 0);
    return true;
  }
  return false;
}

// a reshard that puts together the parts of a parameter
static bool gathers_parameter(const Reshard *p, const Node *n) {
  if (n->op != OP_reshard || p->from->val.at[n->out].type == p->from->val.at[node_in(p->from, n)[0]].type) return false;
  NodeId def = p->from->val.at[node_in(p->from, n)[0]].def;
  if (!def || fn_node(p->from, def)->op != OP_read) return false;
  VarKind kind = p->m->var.at[fn_node(p->from, def)->attr.var].kind;
  return (kind == VAR_param || kind == VAR_copy) && split_within(val_type(p->from, n->out), val_type(p->from, node_in(p->from, n)[0]));
}

static ValId operand(Reshard *p, ValId v, NodeId user);

static ValId lower(Reshard *p, NodeId id, bool backward, NodeId user) {
  const Node *n = fn_node(p->from, id);
  ValId x = node_in(p->from, n)[0];
  Build b = build_like(p->to, p->from, id);
  b.fwd = p->node[fn_node(p->from, user ? user : id)->fwd];
  b.why = !strncmp(b.why, "layout:", 7) ? intern_printf(p->m->in, "reshard:%s", b.why + 7) : b.why;
  ValId now = operand(p, x, user ? user : id);
  Way w = {.p = p,
           .b = b,
           .v = now,
           .t = val_type(p->to, now),
           .want = *val_type(p->from, n->out),
           .backward = backward,
           .unit = gathers_parameter(p, n) ? 1 + p->unit[user] : 0};
  while (take_shards(&w)) {}
  while (scatter(&w, p->whole[x])) {}
  uint8_t sums = w.t->pending_axes & (uint8_t)~w.want.pending_axes;
  if (sums) emit(&w, OP_all_reduce, sums, 0, 0);
  while (take_shards(&w) || exchange(&w) || gather(&w)) {}
  return w.v;
}

// ---- functions --------------------------------------------------------------------------------------------
// the dim that reshard n scatters x's sum over axis a into; 0: it wants it whole
static DimId scattered(const Reshard *p, const Node *n, uint32_t a) {
  const Type *want = val_type(p->from, n->out), *have = val_type(p->from, node_in(p->from, n)[0]);
  for (int k = 0; k < want->ndim; k++)
    if (split_mask(want->split[k]) >> a & 1 && have->pending_axes >> a & 1) return want->dim[k];
  return 0;
}

static void disagreements(Reshard *p) {
  NodeId *first = NEW_N(p->m->arena, NodeId, p->from->val.n);
  for (NodeId id = 1; id < p->from->node.n; id++) {
    const Node *n = fn_node(p->from, id);
    if (n->op != OP_reshard) continue;
    ValId x = node_in(p->from, n)[0];
    uint8_t sums = val_type(p->from, x)->pending_axes & (uint8_t)~val_type(p->from, n->out)->pending_axes;
    if (!sums) continue;
    if (!first[x]) first[x] = id;
    for (uint32_t a = 0; a < p->m->axis.n; a++)
      if (sums >> a & 1 && scattered(p, n, a) != scattered(p, fn_node(p->from, first[x]), a)) p->whole[x] |= bit(a);
  }
}

// a reshard that gathers over a weak rule's axis
static bool gathers_weak(const Reshard *p, const Node *n) {
  if (n->op != OP_reshard) return false;
  const Type *have = val_type(p->from, node_in(p->from, n)[0]), *want = val_type(p->from, n->out);
  uint8_t stay = type_axes(want);
  for (int k = 0; k < have->ndim; k++)
    for (uint32_t i = 0; i < depth(have->split[k]); i++)
      if (!(stay >> nth(have->split[k], i) & 1) && axis_is_weak(&p->r, have->dim[k], nth(have->split[k], i)))
        return true;
  return false;
}

// By node: 2 · layer, or for those of no layer 0 before the first and a number above all behind it; 1 more backward.
static void units(Reshard *p) {
  const Fn *f = p->from;
  uint32_t most = 0;
  for (NodeId id = 1; id < f->node.n; id++) most = MAX(most, fn_node(f, id)->layer);
  bool begun = false;
  for (NodeId id = 1; id < f->node.n; id++) {
    uint32_t layer = fn_node(f, id)->layer;
    begun |= layer != 0;
    p->unit[id] = 2 * (layer ? layer : begun ? most + 1 : 0) + (id >= p->backward);
  }
}

static ValId operand(Reshard *p, ValId v, NodeId user) {
  NodeId def = p->from->val.at[v].def;
  if (def && gathers_parameter(p, fn_node(p->from, def))) {
    uint64_t key = hash_mix(v, p->unit[user]);
    const uint64_t *had = map_get(&p->whole_in, key);
    if (had) return (ValId)*had;
    ValId whole = lower(p, def, user >= p->backward, user);
    map_put(&p->whole_in, key, whole);
    return whole;
  }
  bool again = p->gather_again && user >= p->backward && def && def < p->backward &&
               gathers_weak(p, fn_node(p->from, def));
  if (!again) return p->now[v];
  if (!p->again[v]) p->again[v] = lower(p, def, true, user);
  return p->again[v];
}

static void function(Reshard *p, Fn *f) {
  Module *m = p->m;
  p->from = f, p->to = fn_like(m, f, intern_printf(m->in, "%s.reshard", f->name));
  p->now = NEW_N(m->arena, ValId, f->val.n), p->again = NEW_N(m->arena, ValId, f->val.n);
  p->node = NEW_N(m->arena, NodeId, f->node.n), p->whole = NEW_N(m->arena, uint8_t, f->val.n);
  p->unit = NEW_N(m->arena, uint32_t, f->node.n);
  map_init(&p->made, m->arena), map_init(&p->whole_in, m->arena);
  for (p->backward = 1; p->backward < f->node.n && !fn_node(f, p->backward)->fwd;) p->backward++;
  units(p);
  disagreements(p);
  ir_args(p->to, f, p->now);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    if (gathers_parameter(p, n)) continue;   // see operand
    if (n->op == OP_reshard) {
      p->now[n->out] = lower(p, id, id >= p->backward, 0);
      continue;
    }
    ValId few[16], *in = n->nin > COUNT(few) ? NEW_N(m->arena, ValId, n->nin) : few;
    for (uint32_t i = 0; i < n->nin; i++) in[i] = operand(p, node_in(f, n)[i], id);
    Build b = {.fn = p->to, .fwd = p->node[n->fwd]};
    ir_results(n, ir_copy(&b, f, id, in), p->now);
    p->node[id] = p->to->node.n - 1;
  }
  for (uint32_t i = 0; i < f->ret.n; i++) ir_return(p->to, operand(p, f->ret.at[i], 0), f->ret_name.at[i]);
  fn_replace(m, f, p->to);
}

bool pass_reshard(Module *m) {
  Reshard p = {.m = m, .gather_again = !strcmp(setting_word(m, "parallel.gather", "again"), "again")};
  if (!rules_init(&p.r, m, false)) return false;
  if (!p.r.live) return true;
  FnId n = m->fn.n;
  for (FnId i = 1; i < n; i++)
    if (!m->fn.at[i]->is_body) function(&p, m->fn.at[i]);
  return true;
}
