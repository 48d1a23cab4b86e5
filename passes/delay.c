// delay.c -- where pending sums are reduced: the cheapest places, the earliest of equals.
//
// A product over a split dim leaves a sum pending over its axes. Ops that are linear in that operand (and need the axis
// for no dim of theirs) can pass it on, others ask for it reduced. For one axis this is a minimal cut: what a value is
// when it is made ("in") and what its uses see ("out") are each pending or reduced,
//   a value whose op makes the sum      in is pending
//   an op that cannot pass it on        out of its operand is reduced
//   an op that passes it on             in of its result is as out of every operand
//   in reduced                          out is, too
//   in pending, out reduced             costs the collective: its bytes, twice for an all-reduce
//   out pending                         costs a quarter of its bytes: weak rules cannot split what is pending
// So two products that are added are reduced once, sums over other dims come first, and a gradient that is only
// accumulated is not reduced at all: its variable stays pending, and `update` reduces it once a step.
#include "passes/layout.h"
#include <string.h>

typedef struct {
  uint8_t axes;                              // of its splits, by the rule alone
  uint8_t made;                              // axes over which its own op leaves a sum
  uint8_t open;                              // axes over which it may be pending
  uint8_t scatter;                           // axes over which all uses want it split
  double  bytes;                             // on a rank, by the rule alone
} Sum;

typedef struct {
  const Rules *r;
  const Fn *f;
  bool weak;
  const NodeId *sums;
  Sum *sum;                                  // by value
  uint8_t *passes;                           // by node: axes over which it passes a sum on
  uint8_t *takes;                            // by node: axes over which it takes one that ends there (a gradient)
  uint8_t *held[2]; // by node, of products: axes over which both could pass and this one is reduced
  uint8_t *cut;                              // by value: the result
  Arena *arena;
} Delay;

static bool is_zero(const Fn *f, ValId v) {
  NodeId def = f->val.at[v].def;
  return def && fn_node(f, def)->op == OP_const && fn_node(f, def)->attr.num == 0;
}

static bool op_merges(Op op) { return op == OP_add || op == OP_sub || op == OP_select || op == OP_stack; }

// n is linear in operand i while the others are fixed
static bool linear_in(const Fn *f, const Node *n, uint32_t i) {
  const ValId *in = node_in(f, n);
  switch (n->op) {
  case OP_neg: case OP_detach: case OP_expand: case OP_rename: case OP_split: case OP_merge: case OP_sum: case OP_cumsum:
  case OP_slice: case OP_unslice: case OP_add: case OP_sub: case OP_stack: return true;
  case OP_cast: return type_is_float(val_type(f, in[0])) == type_is_float(val_type(f, n->out)) && val_type(f, n->out)->dtype != DT_bool;
  case OP_select: return i > 0;
  case OP_mul: case OP_dot: return in[0] != in[1];
  case OP_div: case OP_gather: case OP_scatter: case OP_dispatch: case OP_combine: return i == 0 && in[0] != in[1];
  default: return false;
  }
}

bool sum_passes(const Fn *f, const Node *n, const uint8_t *pending, uint32_t a) {
  const ValId *in = node_in(f, n);
  uint32_t some = 0, others = 0;
  for (uint32_t i = 0; i < n->nin; i++) {
    bool zero = (n->op == OP_select && i == 0) ||
                ((n->op == OP_select || n->op == OP_add || n->op == OP_sub) && is_zero(f, in[i]));
    if (pending[i] >> a & 1) {
      if (!linear_in(f, n, i)) return false;
      some++;
    } else if (!zero) others++;
  }
  return some && n->nout == 1 && (op_merges(n->op) ? !others : some == 1);
}

// Of two pending factors, the one that costs more may stay so; of equals, the older.
static void hold_one(Delay *d, NodeId id, uint8_t *pending) {
  const Node *n = fn_node(d->f, id);
  if (n->op != OP_mul && n->op != OP_dot) return;
  const Sum *x = &d->sum[node_in(d->f, n)[0]], *y = &d->sum[node_in(d->f, n)[1]];
  bool second = x->bytes != y->bytes ? x->bytes > y->bytes : x < y;
  d->held[second][id] = pending[0] & pending[1];
  pending[second] &= (uint8_t)~d->held[second][id];
}

// ---- what may be pending ----------------------------------------------------------------------------------
static void value_init(Delay *d, const Space *s, const Node *n, ValId v) {
  const Type *t = val_type(d->f, v);
  Sum *sum = &d->sum[v];
  sum->scatter = 0xff;
  if (n && op_keeps(n->op)) {
    sum->bytes = d->sum[node_in(d->f, n)[0]].bytes, sum->axes = d->sum[node_in(d->f, n)[0]].axes;
    return;
  }
  sum->bytes = (double)dtype_bytes(t->dtype);
  for (int k = 0; k < t->ndim; k++) {
    Split split = s ? space_split(s, t->dim[k]) : d->r->strong[t->dim[k]];
    sum->bytes *= (double)(dim_of(d->r->m, t->dim[k])->size / split_ways(d->r->m, split));
    sum->axes |= split_mask(split);
  }
}

// axes over which an accumulate into v may leave the sum pending
static uint8_t var_pends(const Delay *d, VarId v) {
  const Var *var = &d->r->m->var.at[v];
  uint8_t axes = d->r->live;
  if (var->kind != VAR_grad) return 0;
  const Type *t = &d->r->m->type.at[var->type];
  for (int k = 0; k < t->ndim; k++) axes &= (uint8_t)~split_mask(d->r->strong[t->dim[k]]);
  return axes;
}

static void visit(Delay *d, NodeId id) {
  const Node *n = fn_node(d->f, id);
  const ValId *in = node_in(d->f, n);
  Space s;
  DimId clash[2];
  space_of(&s, d->f, n);
  if (!space_assign(d->r, &s, d->weak, 0, clash)) return;
  for (uint32_t i = 0; i < n->nout; i++) value_init(d, &s, n, n->out + i);
  for (uint32_t i = 0; i < n->nin; i++) {
    uint8_t split = 0;
    for (int k = 0; d->sum[in[i]].open && k < val_type(d->f, in[i])->ndim; k++)
      split |= split_mask(space_split(&s, val_type(d->f, in[i])->dim[k]));
    d->sum[in[i]].scatter &= split;
  }
  if (n->op == OP_accumulate) d->takes[id] = var_pends(d, n->attr.var);
  if (d->sums[id]) d->takes[id] = d->r->live;
  if (d->sums[id]) return;
  for (uint32_t i = 0; n->nout > 1 && i < n->nout; i++)
    d->sum[n->out + i].open = d->sum[n->out + i].made = space_created(&s, d->f, n, i) & d->r->live;
  if (n->nout != 1) return;
  Sum *out = &d->sum[n->out];
  uint8_t made = space_created(&s, d->f, n, 0);
  if (n->op == OP_reduce_max) {
    d->cut[n->out] = made;
    return;
  }
  if (n->op == OP_read) made = d->r->m->type.at[d->r->m->var.at[n->attr.var].type].pending_axes;
  uint8_t few[16], *pending = n->nin > COUNT(few) ? NEW_N(d->arena, uint8_t, n->nin) : few;
  uint8_t taken = op_keeps(n->op) ? 0 : s.strong;
  for (uint32_t i = 0; i < n->nin; i++) pending[i] = d->sum[in[i]].open & (uint8_t)~taken;
  hold_one(d, id, pending);
  for (uint32_t a = 0; a < d->r->m->axis.n; a++)
    if (sum_passes(d->f, n, pending, a)) d->passes[id] |= (uint8_t)(1u << a);
  out->made = made & d->r->live;
  out->open = out->made | d->passes[id];
}

// ---- the cut ----------------------------------------------------------------------------------------------
typedef struct { uint32_t to; int64_t room; } Pipe;       // pipes come in pairs: i and i ^ 1 are opposite
typedef struct {
  VEC(Pipe) pipe;
  uint32_t n, *first, *next, *level, *at;                // by place; by pipe; by place, of a search
} Flow;

enum { SOURCE, SINK };                                   // the places that are pending, and reduced, for certain
static const int64_t endless = (int64_t)1 << 60;

static void flow_add(Arena *a, Flow *w, uint32_t from, uint32_t to, int64_t room, int64_t back) {
  if (from == to) return;
  vec_push(a, &w->pipe, (Pipe){to, room});
  vec_push(a, &w->pipe, (Pipe){from, back});
}

static void flow_link(Arena *a, Flow *w) {               // lists of the pipes that leave a place; 0 ends one: pipe + 1
  w->first = NEW_N(a, uint32_t, w->n), w->level = NEW_N(a, uint32_t, w->n), w->at = NEW_N(a, uint32_t, w->n);
  w->next = NEW_N(a, uint32_t, w->pipe.n + 1);
  for (uint32_t i = w->pipe.n; i-- > 0;) {
    uint32_t from = w->pipe.at[i ^ 1].to;
    w->next[i] = w->first[from], w->first[from] = i + 1;
  }
}

// distance + 1 from the source along pipes with room; 0: not reached
static bool flow_levels(Flow *w, uint32_t *queue) {
  uint32_t head = 0, tail = 0;
  memset(w->level, 0, w->n * sizeof *w->level);
  w->level[SOURCE] = 1, queue[tail++] = SOURCE;
  while (head < tail) {
    uint32_t x = queue[head++];
    for (uint32_t i = w->first[x]; i; i = w->next[i - 1]) {
      const Pipe *p = &w->pipe.at[i - 1];
      if (p->room && !w->level[p->to]) w->level[p->to] = w->level[x] + 1, queue[tail++] = p->to;
    }
  }
  return w->level[SINK] != 0;
}

// Dinic 1970: along the levels, path after path; `path` holds the pipes of the one being followed
static void flow_push(Flow *w, uint32_t *path) {
  memcpy(w->at, w->first, w->n * sizeof *w->at);
  uint32_t x = SOURCE, n = 0;
  for (;;) {
    if (x == SINK) {
      int64_t least = INT64_MAX;
      for (uint32_t i = 0; i < n; i++) least = MIN(least, w->pipe.at[path[i]].room);
      uint32_t back = n;
      for (uint32_t i = n; i-- > 0;) {
        w->pipe.at[path[i]].room -= least, w->pipe.at[path[i] ^ 1].room += least;
        if (!w->pipe.at[path[i]].room) back = i;
      }
      n = back, x = w->pipe.at[path[n] ^ 1].to;
    }
    uint32_t i = w->at[x];
    while (i && !(w->pipe.at[i - 1].room && w->level[w->pipe.at[i - 1].to] == w->level[x] + 1)) i = w->next[i - 1];
    w->at[x] = i;
    if (i) path[n++] = i - 1, x = w->pipe.at[i - 1].to;
    else if (!n) return;
    else {
      w->level[x] = 0;                                  // leads nowhere
      x = w->pipe.at[path[--n] ^ 1].to;
    }
  }
}

static uint32_t find(uint32_t *up, uint32_t x) {
  while (up[x] != x) x = up[x] = up[up[x]];
  return x;
}
static void join(uint32_t *up, uint32_t x, uint32_t y) {
  x = find(up, x), y = find(up, y);
  up[MAX(x, y)] = MIN(x, y);                             // source and sink stay the smallest
}
static uint32_t place_in(ValId v) { return 2 * v; }
static uint32_t place_out(ValId v) { return 2 * v + 1; }

static void join_places(const Delay *d, uint32_t a, uint32_t *up) {
  const Fn *f = d->f;
  for (uint32_t i = 0; i < 2 * f->val.n; i++) up[i] = i;  // value 0 is none: its places are source and sink
  for (ValId v = 1; v < f->val.n; v++)
    if (d->sum[v].made >> a & 1) join(up, place_in(v), SOURCE);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    for (uint32_t i = 0; i < n->nin; i++) {
      ValId x = node_in(f, n)[i];
      if (!(d->sum[x].open >> a & 1) || d->takes[id] >> a & 1) continue;
      bool held = i < 2 && d->held[i][id] >> a & 1;
      if (held || !(d->passes[id] >> a & 1)) join(up, place_out(x), SINK);
      else if (!(d->sum[n->out].made >> a & 1))
        join(up, place_out(x), place_in(n->out)); // what is made is pending anyhow
    }
  }
  for (uint32_t i = 0; i < f->ret.n; i++) join(up, place_out(f->ret.at[i]), SINK);
}

static void cut_axis(Delay *d, uint32_t a, uint32_t *up, uint32_t *place) {
  const Fn *f = d->f;
  bool choice = false;
  Flow w = {.n = 2};
  join_places(d, a, up);
  memset(place, 0, 2 * f->val.n * sizeof *place);
  place[SOURCE] = SOURCE, place[SINK] = SINK;
  for (ValId v = 1; v < f->val.n; v++) {
    Sum *s = &d->sum[v];
    if (!(s->open >> a & 1)) continue;
    uint32_t in = find(up, place_in(v)), out = find(up, place_out(v));
    if (in == SINK && out == SINK) continue;
    if (in == SOURCE && out == SINK) {
      d->cut[v] |= (uint8_t)(1u << a);
      continue;
    }
    choice = true;
    if (in > SINK && !place[in]) place[in] = w.n++;
    if (out > SINK && !place[out]) place[out] = w.n++;
    int32_t whole = s->axes >> a & 1 ? d->r->m->axis.at[a].size : 1; // pending over a, it is not split by it
    double bytes = MIN(s->bytes * whole, 0x1p50);
    flow_add(d->arena, &w, place[in], place[out], (int64_t)bytes * (s->scatter >> a & 1 ? 4 : 8), endless);
    flow_add(d->arena, &w, place[out], SINK, (int64_t)bytes, 0);
  }
  if (!choice) return;
  flow_link(d->arena, &w);
  uint32_t *queue = NEW_N(d->arena, uint32_t, w.n + 1);
  while (flow_levels(&w, queue)) flow_push(&w, queue);
  for (ValId v = 1; v < f->val.n; v++) {
    if (!(d->sum[v].open >> a & 1)) continue;
    uint32_t in = find(up, place_in(v)), out = find(up, place_out(v));
    if (w.level[place[in]] && !w.level[place[out]]) d->cut[v] |= (uint8_t)(1u << a);
  }
}

const NodeId *scalar_sums(const Fn *f, Arena *a) {
  NodeId *root = NEW_N(a, NodeId, f->node.n), *user = NEW_N(a, NodeId, f->val.n);
  uint32_t *adds = NEW_N(a, uint32_t, f->node.n), *nuse = NEW_N(a, uint32_t, f->val.n);
  for (NodeId id = 1; id < f->node.n; id++)
    for (uint32_t i = 0; i < fn_node(f, id)->nin; i++)
      nuse[node_in(f, fn_node(f, id))[i]]++, user[node_in(f, fn_node(f, id))[i]] = id;
  for (uint32_t i = 0; i < f->ret.n; i++) nuse[f->ret.at[i]] += 2;
  for (NodeId id = f->node.n - 1; id; id--) {
    const Node *n = fn_node(f, id);
    if (n->op != OP_add || val_type(f, n->out)->ndim || node_in(f, n)[0] == node_in(f, n)[1]) continue;
    NodeId up = nuse[n->out] == 1 ? root[user[n->out]] : 0;
    root[id] = up ? up : id;
    adds[root[id]]++;
  }
  for (NodeId id = 1; id < f->node.n; id++)
    if (adds[root[id]] < 3) root[id] = 0;
  return root;
}

const uint8_t *delay_sums(const Rules *r, const Fn *f, bool weak, const NodeId *sums, Arena *a) {
  Delay d = {.r = r, .f = f, .weak = weak, .sums = sums, .arena = a};
  d.sum = NEW_N(a, Sum, f->val.n), d.cut = NEW_N(a, uint8_t, f->val.n);
  d.passes = NEW_N(a, uint8_t, f->node.n), d.takes = NEW_N(a, uint8_t, f->node.n);
  d.held[0] = NEW_N(a, uint8_t, f->node.n), d.held[1] = NEW_N(a, uint8_t, f->node.n);
  uint32_t *up = NEW_N(a, uint32_t, 2 * f->val.n), *place = NEW_N(a, uint32_t, 2 * f->val.n);
  for (uint32_t i = 0; i < f->arg.n; i++) value_init(&d, 0, 0, f->arg.at[i]);
  for (NodeId id = 1; id < f->node.n; id++) visit(&d, id);
  uint8_t made = 0;
  for (ValId v = 1; v < f->val.n; v++) made |= d.sum[v].made;
  for (uint32_t i = 0; i < r->m->axis.n; i++)
    if (made >> i & 1) cut_axis(&d, i, up, place);
  return d.cut;
}
