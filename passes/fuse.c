// fuse.c -- cuts a function into steps: which values lie in memory, and which kernel computes which.
//
// A value lies in memory when a product takes or makes it, when it is reduced, written, returned, or when computing it
// again wherever it is used would cost more than storing it. All others exist only inside kernels: a chain of
// elementwise ops costs no memory traffic, and a backward kernel computes what the forward one knew from the stored
// values both read. Right, because every op but the stateful ones is a function of its operands (random ones too: they
// count by place).
//
// Stored values are then made in order. One joins the youngest step it depends on when their loops agree; steps are
// numbered in the order of their making, and everything a step reads is made by lower numbers, so the order is right.
#include "passes/group.h"
#include <string.h>

enum { OPS_AGAIN = 100, OPS_MOST = 400, LOADS_MOST = 24, ROOTS_MOST = 12, READS_MOST = 40, DEPTH_MOST = 200 };
#define MANY UINT32_MAX

typedef struct {
  Groups *g;
  const Fn *f;
  Module *m;
  Arena *a;
  uint8_t  *stored;                          // by value: StoredWhy, or 0
  uint32_t *reach;                           // by value: the one stored value (or 2^31 + parameter) it ends in, or MANY
  ValId    *source;                          // by value: the one stored value of its size it is made from, or MANY
  uint16_t *loads, *ops, *depth;             // by value, to compute it from what is stored
  bool *picks;                               // by value: it picks a few numbers out of a large value that is made here
  uint32_t *uses;                            // by value
  NodeId   *sink;                            // by value: the write or accumulate that is its only use
  VarId    *tail;                            // by value: only a collective has it, whose result is only written to this
  bool     *read;                            // by variable
  bool apart;
  bool *begun;                               // by variable: a step accumulates in it already
  uint32_t *written;                         // by variable: 1 + the step that writes it, of those that are read, too
  uint32_t *written_of;                      // by parameter: 1 + the step that writes such ones of it
  Map recent;                                // loops and a shared operand -> 1 + youngest group
} Fuse;

static const Node *def(const Fuse *u, ValId v) { return u->f->val.at[v].def ? fn_node(u->f, u->f->val.at[v].def) : 0; }
static bool is_sink(Op op) { return op == OP_write || op == OP_accumulate; }
static bool is_leaf(const Node *n) { return !n || n->op == OP_read; }
static bool always_stored(Op op) {
  return op == OP_dot || op == OP_sum || op == OP_reduce_max || op == OP_cumsum || op == OP_scatter || op_has(op, OPF_COLL);
}

// ---- which values lie in memory -------------------------------------------------------------------------------------
static uint32_t weight(Op op) {
  switch (op) {
  case OP_exp: case OP_log: case OP_tanh: case OP_erf: case OP_pow: case OP_div: return 8;
  case OP_sin: case OP_cos: case OP_random: return 24;
  case OP_const: case OP_index: case OP_expand: case OP_rename: case OP_detach: case OP_unstack: case OP_slice:
  case OP_merge: case OP_split: return 0;
  default: return 1;
  }
}

static bool is_tile(Op op) { return op == OP_attention || op == OP_attention_grad; }

static void product_bases(const Fuse *u, const Node *n, ValId base[2]) { // the stored values that a product takes
  PlanGemm gemm;
  int64_t at[2];
  if (!product_of(u->f, node_in(u->f, n)[0], node_in(u->f, n)[1], n->attr.dims, n->attr.ndims,
                  val_type(u->f, n->out), 0, &gemm, base, at))
    bug("fuse: the product at line %u cannot be addressed", n->loc.line);
}

static void required(Fuse *u) {
  const Fn *f = u->f;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    if (is_tile(n->op)) {
      Tile tile;
      if (!tile_of(0, f, i, &tile)) bug("fuse: the attention at line %u has no kernel", n->loc.line);
      for (uint32_t k = 0; k < tile.narg; k++)
        if (!tile.arg[k].random) u->stored[tile.arg[k].base] = WHY_operand;
      for (uint32_t k = 0; k < n->nout; k++) u->stored[n->out + k] = WHY_made;
    }
    if (always_stored(n->op)) u->stored[n->out] = WHY_made;
    if (op_has(n->op, OPF_COLL)) u->stored[node_in(f, n)[0]] = WHY_operand;
    if (n->op == OP_dot) {
      ValId base[2];
      product_bases(u, n, base);
      for (int k = 0; k < 2; k++) u->stored[base[k]] = WHY_operand;
    }
  }
  for (uint32_t i = 0; i < f->ret.n; i++) u->stored[f->ret.at[i]] = WHY_returned;
  for (uint32_t i = 0; i < f->arg.n; i++) u->stored[f->arg.at[i]] = WHY_given;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i), *from = n->op == OP_take_shard ? def(u, node_in(f, n)[0]) : 0;
    int dim;
    if (n->op == OP_read) u->stored[n->out] = WHY_given;
    if (!from || from->op != OP_read || !is_part_in_place(u->m, val_type(f, from->out), val_type(f, n->out), &dim)) continue;
    u->stored[n->out] = WHY_given, u->g->part_of[n->out] = from->attr.var;
  }
}

static bool never_stored(const Node *n) { return is_leaf(n) || op_is_view(n->op) || n->op == OP_const; }

// A value that is small beside what uses it, and dear: computed once. Its loops would run again for every element.
static bool broadcast_dear(const Fuse *u, ValId v, ValId user) {
  int64_t few = type_count(u->m, val_type(u->f, v)), many = type_count(u->m, val_type(u->f, user));
  return u->ops[v] >= 8 && few < many / 8;
}

// A parameter's gradient, moments and copy are written by one kernel: for what they share they count as one use.
static VarId owner(const Module *m, VarId v) { return m->var.at[v].of ? m->var.at[v].of : v; }

static VarId ends_in(const Fuse *u, ValId v) { return u->tail[v] ? owner(u->m, u->tail[v]) : 0; }

// Where each value ends up, from the uses down. What is gathered into a parameter counts as what is written of it.
static void find_reach(Fuse *u) {
  const Fn *f = u->f;
  memset(u->reach, 0, f->val.n * sizeof *u->reach);
  for (NodeId i = f->node.n; i-- > 1;) {
    const Node *n = fn_node(f, i);
    uint32_t to = is_sink(n->op) ? 0x80000000u + owner(u->m, n->attr.var) : 0;
    for (uint32_t k = 0; k < n->nout; k++) {
      uint32_t r = u->stored[n->out + k] ? n->out + k : u->reach[n->out + k];
      if (ends_in(u, n->out + k)) r = 0x80000000u + ends_in(u, n->out + k);
      to = !to || !r || to == r ? to | r : MANY;
    }
    for (uint32_t k = 0; k < n->nin && to; k++) {
      ValId v = node_in(f, n)[k];
      u->reach[v] = !u->reach[v] || u->reach[v] == to ? to : MANY;
    }
  }
}

// A gather from a value that dies is made early, while that value is at hand: what is summed up of it is stored.
static bool picks(const Fuse *u, const Node *n) {
  ValId from = node_in(u->f, n)[0];
  if (n->op == OP_gather && !is_leaf(def(u, from)))
    return type_count(u->m, val_type(u->f, n->out)) <= type_count(u->m, val_type(u->f, from)) / 8;
  for (uint32_t k = 0; k < n->nin; k++)
    if (u->picks[node_in(u->f, n)[k]] && !u->stored[node_in(u->f, n)[k]]) return true;
  return false;
}

// Loads and ops of each value from the stored ones up; stores what would be computed more than once at a price.
static void decide(Fuse *u) {
  const Fn *f = u->f;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    uint32_t loads = 0, ops = weight(n->op), depth = 0;
    ValId source = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
      ValId v = node_in(f, n)[k];
      const Node *d = def(u, v);
      if (n->nout && d && !u->stored[v] && !never_stored(d) && broadcast_dear(u, v, n->out)) u->stored[v] = WHY_small;
      if (n->op == OP_sum && d && u->picks[v] && !u->stored[v] && !never_stored(d)) u->stored[v] = WHY_picked;
      bool big = n->nout && val_type(f, v)->ndim &&
                 4 * type_count(u->m, val_type(f, v)) >= type_count(u->m, val_type(f, n->out));
      loads += u->stored[v] ? big : u->loads[v];
      ValId from = !big ? 0 : u->stored[v] ? v : u->source[v];
      source = !from || from == source ? source : !source ? from : MANY;
      ops += u->stored[v] ? 0 : u->ops[v];
      if (!u->stored[v]) depth = MAX(depth, u->depth[v] + 1u);
    }
    if (n->op == OP_stack) ops *= 2;
    bool few = n->nout == 1 && !u->apart && picks(u, n);
    for (uint32_t k = 0; k < n->nout; k++) {
      ValId v = n->out + k;
      u->picks[v] = few, u->source[v] = source, u->loads[v] = (uint16_t)MIN(loads, 1000u),
      u->ops[v] = (uint16_t)MIN(ops, 10000u), u->depth[v] = (uint16_t)depth;
      if (u->stored[v] || is_leaf(n)) continue;
      if (depth > DEPTH_MOST) u->stored[v] = WHY_large;
      else if (never_stored(n)) continue;
      else if (u->apart) u->stored[v] = WHY_apart;
      else if (u->reach[v] == MANY && (source == MANY || ops > OPS_AGAIN)) u->stored[v] = WHY_shared;
      else if (loads > LOADS_MOST || ops > OPS_MOST) u->stored[v] = WHY_large;
    }
  }
}

// Twice: what the first round stores ends the reach of what it is made from.
static void worth_storing(Fuse *u) {
  uint8_t *needed = NEW_N(u->a, uint8_t, u->f->val.n);
  memcpy(needed, u->stored, u->f->val.n * sizeof *needed);
  for (int round = 0; round < 2; round++) {
    find_reach(u);
    memcpy(u->stored, needed, u->f->val.n * sizeof *needed);
    decide(u);
  }
}

// ---- what a step reads ----------------------------------------------------------------------------------------------
typedef VEC(ValId) Reads;
// By value, the number of the last walk that met it; bent: through a view, gather or shift; how: along which dim.
typedef struct { Reads reads; uint32_t walk, *straight, *bent, *how; } Walk;

static bool bends(Op op) {
  switch (op) {
  case OP_expand: case OP_detach: return false;
  case OP_gather: case OP_shift: case OP_stack: case OP_unslice: case OP_scatter: case OP_take_shard: return true;
  default: return op_is_view(op);
  }
}

// Along which dim operand k of n is looked at elsewhere than n is; MANY: more than one, or through a view. A gather
// does so along the dim that it picks from.
static uint32_t bends_operand(const Node *n, uint32_t k) {
  if (n->op == OP_gather) return k ? 0 : n->attr.dims[0];
  return bends(n->op) ? MANY : 0;
}

static void reads_of(Fuse *u, ValId v, uint32_t bent, Walk *w) {       // the stored values that computing v loads
  if (bent && bent != MANY && type_pos(val_type(u->f, v), bent) < 0) bent = 0;
  bool before = bent && w->bent[v] == w->walk, known = before || w->straight[v] == w->walk || w->bent[v] == w->walk;
  if (before && w->how[v] != bent && w->how[v] != MANY) bent = MANY;
  else if ((bent ? w->bent : w->straight)[v] == w->walk) return;
  (bent ? w->bent : w->straight)[v] = w->walk;
  if (bent) w->how[v] = bent;
  if (u->stored[v]) {
    if (!known) vec_push(u->a, &w->reads, v);
    return;
  }
  const Node *n = def(u, v);
  if (!n) return;
  for (uint32_t k = 0; k < n->nin; k++) {
    uint32_t more = bends_operand(n, k);
    reads_of(u, node_in(u->f, n)[k], !bent || bent == more ? more : more ? MANY : bent, w);
  }
}

static void note_read(Fuse *u, ValId v, uint32_t group) {               // group: 1 + its number
  u->g->last[v] = MAX(u->g->last[v], group);
  vec_push(u->a, &u->g->reading, (Reading){v, group});
}

// ---- loops -------------------------------------------------------------------------------------------------------
static bool same_set(const DimId *a, uint32_t na, const DimId *b, uint32_t nb) {
  bool same = na == nb;
  for (uint32_t i = 0; same && i < na; i++) same = dims_have(b, nb, a[i]);
  return same;
}

// Rows when the reduced dims are the innermost of what is read, and there are rows enough; else columns.
static LoopClass reduction_class(Fuse *u, const Node *n, const Group *g) {
  if (n->op == OP_cumsum) return LOOP_row;
  const Type *t = val_type(u->f, node_in(u->f, n)[0]);
  int64_t rows = 1, cols = 1;
  for (uint32_t i = 0; i < g->np; i++) rows *= dim_of(u->m, g->p[i])->size;
  for (uint32_t i = 0; i < g->nr; i++) cols *= dim_of(u->m, g->r[i])->size;
  bool inner = true;
  for (int i = t->ndim - (int)g->nr; i >= 0 && i < t->ndim; i++) inner &= dims_have(g->r, g->nr, t->dim[i]);
  bool side_by_side = t->ndim && !dims_have(g->r, g->nr, t->dim[t->ndim - 1]); // results lie as what is read does
  return rows >= 8 && (inner || (rows >= 64 * cols && !side_by_side)) ? LOOP_row : LOOP_col;
}

static void loops_of(Fuse *u, const Node *n, Group *g) {
  const Attr *at = &n->attr;
  const Type *t = val_type(u->f, n->nout ? n->out : node_in(u->f, n)[0]);
  g->class = LOOP_map;
  for (int i = 0; i < t->ndim; i++)
    if (n->op != OP_cumsum || !dims_have(at->dims, at->ndims, t->dim[i])) g->p[g->np++] = t->dim[i];
  if (n->op == OP_sum || n->op == OP_reduce_max) {
    const Type *x = val_type(u->f, node_in(u->f, n)[0]);               // in the order in which they lie
    for (int i = 0; i < x->ndim; i++)
      if (dims_have(at->dims, at->ndims, x->dim[i])) g->r[g->nr++] = x->dim[i];
    g->class = reduction_class(u, n, g);
  } else if (n->op == OP_cumsum) {
    for (uint32_t i = 0; i < at->ndims; i++) g->r[g->nr++] = at->dims[i];
    g->class = LOOP_row, g->scan = at->at ? 2 : 1;
  } else if (n->op == OP_scatter) {
    const Type *i = val_type(u->f, node_in(u->f, n)[1]);
    for (int k = 0; k < i->ndim; k++)
      if (!dims_have(at->to, at->nto, i->dim[k])) g->r[g->nr++] = i->dim[k];
    if (g->nr) g->class = LOOP_scatter;                                // each place has one source: elementwise
  }
}

static bool all_dims_are(const Group *big, const Group *g) {           // g's dims = big's parallel and reduced ones
  DimId all[2 * MAX_DIMS], own[2 * MAX_DIMS];
  memcpy(all, big->p, big->np * sizeof *all), memcpy(all + big->np, big->r, big->nr * sizeof *all);
  memcpy(own, g->p, g->np * sizeof *own), memcpy(own + g->np, g->r, g->nr * sizeof *own);
  return same_set(all, big->np + big->nr, own, g->np + g->nr);
}

// Whether g (one root) may run in the loops of `into`; the loops that both then have are put into *into.
static bool joins(Group *into, const Group *g, bool depends) {
  bool same_p = same_set(into->p, into->np, g->p, g->np), same_r = same_set(into->r, into->nr, g->r, g->nr);
  if (into->root.n >= ROOTS_MOST || into->nread + g->nread - into->nsmall - g->nsmall > READS_MOST) return false;
  if (into->scan && g->scan && into->scan != g->scan) return false;
  if (into->class == LOOP_col) return g->class == LOOP_col && !depends && same_p && same_r;
  if (into->class == LOOP_map && g->class == LOOP_map) return same_p;
  if (into->class == LOOP_map && g->class == LOOP_row && all_dims_are(into, g)) {
    memcpy(into->p, g->p, sizeof g->p), memcpy(into->r, g->r, sizeof g->r);
    into->np = g->np, into->nr = g->nr, into->class = LOOP_row;
    return true;
  }
  if (into->class != LOOP_row) return false;
  if (g->class == LOOP_row && g->scan && same_p && same_r) {           // sums along a row have its order
    if (into->scan && memcmp(into->r, g->r, g->nr * sizeof *g->r)) return false;
    memcpy(into->r, g->r, sizeof g->r);
  }
  if (g->class == LOOP_row) return same_p && same_r;
  return g->class == LOOP_map && (same_p || all_dims_are(into, g));
}

// ---- steps -------------------------------------------------------------------------------------------------------
static uint64_t loops_key(const Group *g, ValId shared) {
  uint64_t h = hash_mix(g->class == LOOP_col, shared);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < g->np; i++) sum += hash_mix(g->p[i], g->class == LOOP_col ? 1 : 2);
  for (uint32_t i = 0; i < g->nr; i++) sum += hash_mix(g->r[i], g->class == LOOP_col ? 3 : 2);
  return hash_mix(h, sum);
}

// Variables that a function reads are written at its end. What one of them becomes is made from what it and its
// parameter's others were; so all of these are written by one step, whatever else there is in it.
static VarId written_for(const Fuse *u, const Root *root) {
  if (!root->var) return ends_in(u, root->v);
  return !root->accumulate && u->read[root->var] ? owner(u->m, root->var) : 0;
}

static uint32_t written_with(const Fuse *u, const Root *root, const Group *g, uint32_t youngest) {
  uint32_t with = u->written_of[written_for(u, root)];
  if (!with) return 0;
  const Group *into = &u->g->group.at[with - 1];
  if (with < youngest) bug("fuse: what is written of a parameter at line %u is made late", fn_node(u->f, g->node)->loc.line);
  return into->class == g->class && same_set(into->p, into->np, g->p, g->np) && !into->nr && !g->nr ? with : 0;
}

static void note_written(Fuse *u, const Root *root, const Reads *reads, uint32_t into) {
  for (uint32_t i = 0; i < reads->n; i++) {
    const Node *n = def(u, reads->at[i]);
    if (!n || n->op != OP_read || !u->written[n->attr.var] || u->written[n->attr.var] == into) continue;
    bug("fuse: %s is read after it is written, at line %u", u->m->var.at[n->attr.var].name, n->loc.line);
  }
  if (!written_for(u, root)) return;
  u->written_of[written_for(u, root)] = into;
  if (root->var) u->written[root->var] = into;
}

static void place_root(Fuse *u, NodeId id, Root root, ValId value, const Walk *w) {
  const Reads *reads = &w->reads;
  const uint32_t *made_by = u->g->group_of;
  const Node *n = fn_node(u->f, id);
  Group g = {.node = id};
  loops_of(u, n, &g);
  g.nread = reads->n;
  for (uint32_t i = 0; i < reads->n; i++) g.nsmall += !val_type(u->f, reads->at[i])->ndim;
  uint32_t youngest = 0, into = 0;
  bool direct = true;
  for (uint32_t i = 0; i < reads->n; i++) youngest = MAX(youngest, made_by[reads->at[i]]);
  for (uint32_t i = 0; i < reads->n; i++)
    if (made_by[reads->at[i]] == youngest && w->bent[reads->at[i]] == w->walk) direct = false;
  Group *young = youngest ? &u->g->group.at[youngest - 1] : 0;
  if (young && !u->apart && young->class != LOOP_auto && direct && joins(young, &g, true)) into = youngest;
  // a sibling: the same loops over the same operand
  for (uint32_t i = 0; i < reads->n && !into && !u->apart; i++) {
    if (!val_type(u->f, reads->at[i])->ndim) continue;
    const uint64_t *at = map_get(&u->recent, loops_key(&g, reads->at[i]));
    if (!at || *at < youngest || (*at == youngest && !direct)) continue;
    bool depends = false, crooked = false;
    for (uint32_t k = 0; k < reads->n; k++)
      if (made_by[reads->at[k]] == *at) depends = true, crooked |= w->bent[reads->at[k]] == w->walk;
    if (!crooked && joins(&u->g->group.at[*at - 1], &g, depends)) into = (uint32_t)*at;
  }
  uint32_t with = written_with(u, &root, &g, youngest);
  if (with) into = with;
  if (root.accumulate && (root.more = u->begun[root.var])) into = 0; // behind the step that begins the sum: its own
  if (root.accumulate) u->begun[root.var] = true;
  if (into) {
    Group *wide = &u->g->group.at[into - 1];
    wide->nread += g.nread, wide->nsmall += g.nsmall, wide->scan |= g.scan;
  } else {
    vec_push(u->a, &u->g->group, g);
    into = u->g->group.n;
  }
  note_written(u, &root, reads, into);
  Group *group = &u->g->group.at[into - 1];
  vec_push(u->a, &group->root, root);
  if (value) u->g->group_of[value] = into;
  for (uint32_t i = 0; i < reads->n; i++) {
    note_read(u, reads->at[i], into);
    if (val_type(u->f, reads->at[i])->ndim) map_put(&u->recent, loops_key(&g, reads->at[i]), into);
  }
}

static void place_kernel(Fuse *u, NodeId id, Root root, ValId value, Walk *w) {
  const Node *n = fn_node(u->f, id);
  w->reads.n = 0, w->walk++;
  for (uint32_t k = 0; k < n->nin; k++) reads_of(u, node_in(u->f, n)[k], bends_operand(n, k), w);
  place_root(u, id, root, value, w);
}

static void place_product(Fuse *u, NodeId id) {
  const Node *n = fn_node(u->f, id);
  ValId base[2];
  product_bases(u, n, base);
  vec_push(u->a, &u->g->group, (Group){.class = LOOP_auto, .node = id});
  u->g->group_of[n->out] = u->g->group.n;
  for (int k = 0; k < 2; k++) note_read(u, base[k], u->g->group.n);
}

static bool lies_alike(const Type *a, const Type *b) {
  return a->ndim == b->ndim && a->dtype == b->dtype && !memcmp(a->dim, b->dim, a->ndim * sizeof *a->dim);
}

static void place_collective(Fuse *u, NodeId id) {
  const Node *n = fn_node(u->f, id);
  ValId from = node_in(u->f, n)[0];
  Group g = {.class = LOOP_auto, .collective = true, .node = id};
  if (u->tail[from]) {
    g.var = u->tail[from], u->g->moved[n->out] = true;
    if (u->read[g.var]) u->written[g.var] = u->g->group.n + 1;
  }
  vec_push(u->a, &u->g->group, g);
  u->g->group_of[n->out] = u->g->group.n;
  note_read(u, node_in(u->f, n)[0], u->g->group.n);
}

static void place_tile(Fuse *u, NodeId id) {
  const Node *n = fn_node(u->f, id);
  Tile tile;
  tile_of(0, u->f, id, &tile);
  vec_push(u->a, &u->g->group, (Group){.class = LOOP_auto, .tile = true, .node = id});
  for (uint32_t k = 0; k < n->nout; k++) u->g->group_of[n->out + k] = u->g->group.n;
  for (uint32_t k = 0; k < tile.narg; k++)
    if (!tile.arg[k].written && !tile.arg[k].random)
      note_read(u, tile.arg[k].base, u->g->group.n);
}

// The node that makes stored value v. Where its one use is a write or accumulation, its maker does that.
static void place_value(Fuse *u, NodeId id, ValId v, Walk *w) {
  const Node *n = fn_node(u->f, id);
  if (op_has(n->op, OPF_COLL)) { place_collective(u, id); return; }
  NodeId to = u->sink[v];
  const Node *s = to ? fn_node(u->f, to) : 0;
  VarId var = 0;
  if (s && !(s->op == OP_write && u->read[s->attr.var])) {
    bool same_order = lies_alike(&u->m->type.at[u->m->var.at[s->attr.var].type], val_type(u->f, v));
    if (n->op != OP_dot || same_order) var = s->attr.var, u->g->moved[v] = true;
  }
  bool accumulate = var && s->op == OP_accumulate;
  if (n->op != OP_dot) {
    place_kernel(u, id, (Root){.v = v, .var = var, .accumulate = accumulate, .node = var ? to : id}, v, w);
    return;
  }
  place_product(u, id);
  Group *last = &u->g->group.at[u->g->group.n - 1];
  last->var = var, last->accumulate = accumulate;
  if (accumulate) last->more = u->begun[var], u->begun[var] = true;
}

// A value whose parts have all been made, each in its place
static void place_whole(Fuse *u, ValId host) {
  Groups *g = u->g;
  g->born[host] = UINT32_MAX;
  for (ValId v = 1; v < host; v++)
    if (g->within[v].in == host) {
      g->born[host] = MIN(g->born[host], g->group_of[v]);
      g->group_of[host] = MAX(g->group_of[host], g->group_of[v]);
    }
}

static Stored stored_as(const Fuse *u, ValId v) {
  const Node *n = def(u, v);
  if (!n) return STORED_arg;
  if (u->g->within[v].in) return STORED_within;
  if (u->g->part_of[v]) return STORED_part;
  if (n->op == OP_read) return u->m->var.at[n->attr.var].kind == VAR_scalar ? STORED_slot : STORED_var;
  return val_type(u->f, v)->ndim ? STORED_temp : STORED_small;
}

static void find_uses(Fuse *u) {
  const Fn *f = u->f;
  u->uses = fn_uses(f, u->a);
  u->sink = NEW_N(u->a, NodeId, f->val.n), u->read = NEW_N(u->a, bool, u->m->var.n);
  for (uint32_t i = 0; i < f->ret.n; i++) u->g->returned[f->ret.at[i]] = true;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    if (n->op == OP_read) u->read[n->attr.var] = true;
    if (is_sink(n->op) && u->uses[node_in(f, n)[0]] == 1) u->sink[node_in(f, n)[0]] = i;
  }
}

static void find_tails(Fuse *u) {
  for (NodeId i = 1; i < u->f->node.n; i++) {
    const Node *n = fn_node(u->f, i);
    NodeId to = n->nout == 1 && op_has(n->op, OPF_COLL) ? u->sink[n->out] : 0;
    if (!to || fn_node(u->f, to)->op != OP_write || u->uses[node_in(u->f, n)[0]] != 1) continue;
    VarId var = fn_node(u->f, to)->attr.var;
    if (lies_alike(&u->m->type.at[u->m->var.at[var].type], val_type(u->f, n->out))) u->tail[node_in(u->f, n)[0]] = var;
  }
}

// Writes of what is read come when all has been read, and so do collectives that write.
static bool is_late(const Fuse *u, const Node *n) {
  const Node *of = n->op == OP_write ? def(u, node_in(u->f, n)[0]) : n;
  if (n->op == OP_write && u->read[n->attr.var]) return true;
  if (!of || of->op == OP_read || of->nout != 1) return false;
  return (n == of && u->tail[n->out]) || (op_has(of->op, OPF_COLL) && u->tail[node_in(u->f, of)[0]]);
}

Groups *fuse(Module *m, const Fn *f, Arena *a, bool apart) {
  Groups *g = NEW(a, Groups);
  Fuse fuse_state = {.g = g, .f = f, .m = m, .a = a, .apart = apart}, *u = &fuse_state;
  uint32_t n = f->val.n;
  *g = (Groups){.m = m, .f = f, .arena = a};
  g->stored = NEW_N(a, uint8_t, n), g->moved = NEW_N(a, bool, n), g->returned = NEW_N(a, bool, n);
  g->group_of = NEW_N(a, uint32_t, n), g->last = NEW_N(a, uint32_t, n), g->at = NEW_N(a, int64_t, n);
  g->flight = NEW_N(a, uint32_t, n), g->part_of = NEW_N(a, VarId, n);
  g->lent = NEW_N(a, bool, n), g->over = NEW_N(a, ValId, n);
  g->born = NEW_N(a, uint32_t, n), g->within = NEW_N(a, Within, n), g->made_of_parts = NEW_N(a, bool, n);
  u->stored = g->why = NEW_N(a, uint8_t, n), u->reach = NEW_N(a, uint32_t, n);
  u->source = NEW_N(a, ValId, n), u->loads = NEW_N(a, uint16_t, n), u->ops = NEW_N(a, uint16_t, n),
  u->depth = NEW_N(a, uint16_t, n), u->picks = NEW_N(a, bool, n), u->begun = NEW_N(a, bool, m->var.n);
  u->written = NEW_N(a, uint32_t, m->var.n), u->written_of = NEW_N(a, uint32_t, m->var.n);
  map_init(&u->recent, a);
  u->tail = NEW_N(a, VarId, n);
  find_uses(u);
  find_tails(u);
  required(u);
  worth_storing(u);
  if (!apart) find_within(g, u->uses);
  Walk w = {.straight = NEW_N(a, uint32_t, n), .bent = NEW_N(a, uint32_t, n), .how = NEW_N(a, uint32_t, n)};
  for (int late = 0; late < 2; late++)
    for (NodeId i = 1; i < f->node.n; i++) {
      const Node *node = fn_node(f, i);
      if (is_sink(node->op)) {
        ValId v = node_in(f, node)[0];
        if (!g->moved[v] && late == is_late(u, node))
          place_kernel(u, i, (Root){v, node->attr.var, node->op == OP_accumulate, .node = i}, 0, &w);
        continue;
      }
      if (is_tile(node->op) && !late) place_tile(u, i);
      for (uint32_t k = 0; k < node->nout && late == is_late(u, node) && !is_tile(node->op); k++) {
        ValId v = node->out + k;
        if (g->made_of_parts[v]) place_whole(u, v);
        else if (u->stored[v] && node->op != OP_read && !g->part_of[v]) place_value(u, i, v, &w);
      }
    }
  for (ValId v = 1; v < n; v++) {
    if (!g->born[v]) g->born[v] = g->group_of[v];
    g->stored[v] = u->stored[v] ? (uint8_t)stored_as(u, v) : STORED_no;
  }
  return g;
}
