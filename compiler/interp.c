// interp.c -- runs functions: the values' lives, bodies of composites, variables, whole arrays in and out.
#include "compiler/local.h"
#include <string.h>

bool interp_set_fault(Interp *it, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  it->fault = arena_vprintf(it->arena, fmt, args);
  va_end(args);
  return false;
}

const char *interp_fault(const Interp *it) { return it->fault; }
void interp_seed(Interp *it, uint64_t seed) { it->seed = seed; }
void interp_first(Interp *it, bool first) { it->first = first; }

Interp *interp_create(Arena *a, const Module *m) {
  Interp *it = NEW(a, Interp);
  *it = (Interp){.arena = a, .m = m, .ranks = 1, .first = true, .fault = "",
                 .seed = (uint64_t)(int64_t)setting_num(m, "train.seed", 0)};
  map_init(&it->order, a);
  if (m->axis.n > MAX_AXES) bug("interpreter: a mesh with %u axes", m->axis.n);
  for (uint32_t i = m->axis.n; i-- > 0;) it->coord_step[i] = it->ranks, it->ranks *= (uint32_t)m->axis.at[i].size;
  for (uint32_t v = 0; v < m->var.n; v++) 
    vec_push(a, &it->var, v ? local_create(it, &m->type.at[m->var.at[v].type]) : (Local){0});
  return it;
}

// ---- whole arrays: a value on a mesh of one rank, without padding ------------------------------------------------
int64_t interp_count(const Module *m, TypeId t) {
  int64_t n = 1;
  for (int i = 0; i < m->type.at[t].ndim; i++)
    if (!mul_ok(n, dim_of(m, m->type.at[t].dim[i])->extent, &n)) bug("interpreter: a value of more than 2^63 entries");
  return n;
}

// pairs between a rank's part (to) and the whole array (from), or the other way round
static int64_t move_whole(Interp *it, const Local *l, uint32_t rank, void *whole, Move how, bool in) {
  Pairs p[MAX_DIMS];
  int64_t step = 1;
  for (int i = l->type.ndim; i-- > 0;) {
    int64_t extent = dim_of(it->m, l->type.dim[i])->extent;
    Order all = {.n = extent, .extent = extent};
    const Order *here = local_order(it, l, i, rank);
    p[i] = in ? pairs_match(it, here, l->stride[i], &all, step, 0) : pairs_match(it, &all, step, here, l->stride[i], 0);
    step *= extent;
  }
  return cells_move(l->type.dtype, in ? l->rank[rank] : whole, in ? whole : l->rank[rank], p, l->type.ndim, how);
}

static int64_t whole_count(Interp *it, const Type *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= dim_of(it->m, t->dim[i])->extent;
  return n;
}

static void scatter_whole(Interp *it, Local *l, const double *whole) {
  int64_t n = whole_count(it, &l->type);
  bool flt = cells_float(l->type.dtype);
  double *cells = scratch_get(it, (size_t)n * 8);
  if (flt && n) memcpy(cells, whole, (size_t)n * 8);
  else {
    int64_t *ints = (int64_t *)(void *)cells;
    for (int64_t i = 0; i < n; i++) ints[i] = int_of(l->type.dtype, whole[i]);
  }
  for (uint32_t r = 0; r < it->ranks; r++) {
    memset(l->rank[r], 0, (size_t)l->count * 8);
    // a sum: all of it on the first
    if (l->type.pending == PENDING_max || rank_alike(it, r, l->type.pending_axes) == 0)
      move_whole(it, l, r, cells, MOVE_copy, true);
    local_finish(it, l, r);
  }
  scratch_free(it);
}

static bool gather_whole(Interp *it, const Local *l, const char *name, const char *of, double *whole) {
  uint32_t a, b;
  if (!local_replicas(it, l, &a, &b))
    return interp_set_fault(it, "%s of %s differs on ranks %u and %u", name, of, a, b);
  int64_t n = whole_count(it, &l->type), found = 0;
  bool flt = cells_float(l->type.dtype);
  double *cells = scratch_get(it, (size_t)n * 8);
  memset(cells, 0, (size_t)n * 8);
  uint8_t axes = type_axes(&l->type), parts = 0;
  for (int i = 0; i < l->type.ndim; i++) parts |= split_mask(l->type.split[i]);
  for (uint32_t r = 0; r < it->ranks; r++) {
    if (rank_alike(it, r, axes) != r) continue;         // a replica
    bool fresh = rank_alike(it, r, parts) == r;         // the first of those whose sum the value is
    Move how = fresh ? MOVE_copy : l->type.pending == PENDING_max ? MOVE_max : MOVE_add;
    int64_t moved = move_whole(it, l, r, cells, how, false);
    if (fresh) found += moved;
  }
  if (flt) {
    if (n) memcpy(whole, cells, (size_t)n * 8);
  } else {
    const int64_t *ints = (const int64_t *)(const void *)cells;
    for (int64_t i = 0; i < n; i++) whole[i] = (double)ints[i];
  }
  if (flt && l->type.pending && l->type.dtype != DT_float)
    for (int64_t i = 0; i < n; i++) whole[i] = dtype_round(l->type.dtype, whole[i]);
  scratch_free(it);
  return found == n || interp_set_fault(it, "%s of %s: the ranks hold %lld of %lld entries", name, of,
                                        (long long)found, (long long)n);
}

void interp_set(Interp *it, VarId v, const double *whole) { scatter_whole(it, &it->var.at[v], whole); }
bool interp_get(Interp *it, VarId v, double *whole) {
  return gather_whole(it, &it->var.at[v], it->m->var.at[v].name, "the variables", whole);
}

// ---- functions ----------------------------------------------------------------------------------------------------
// pending: axes over which all of a body is a part of a sum
typedef struct { Interp *it; uint32_t depth; uint8_t pending; } Run;

// the node after which a value is dead; results live on
static uint32_t *last_uses(Interp *it, const Fn *f) {
  uint32_t *last = pool_get(it, f->val.n * sizeof *last);
  for (ValId v = 0; v < f->val.n; v++) last[v] = f->val.at[v].def;
  for (NodeId n = 1; n < f->node.n; n++)
    for (uint32_t i = 0; i < fn_node(f, n)->nin; i++) last[node_in(f, fn_node(f, n))[i]] = n;
  for (uint32_t i = 0; i < f->ret.n; i++) last[f->ret.at[i]] = UINT32_MAX;
  return last;
}

static bool node_fault(Run *r, const Fn *f, const Node *n, const char *what) {
  const Module *m = r->it->m;
  return interp_set_fault(r->it, "%s in %s (%s, %s): %s", op_info[n->op].name, f->name,
                          span_text(m->diag, r->it->arena, n->loc), n->why ? n->why : "", what);
}

static bool run_fn(Run *r, const Fn *f, Local *val, Split *split);

// The body's types are whole: a dim is split in it as in the node's operands. Renamed and cut dims pass their split on.
static bool run_body(Run *r, const OpCall *w) {
  Interp *it = r->it;
  const Fn *body = it->m->fn.at[w->node->body];
  if (++r->depth > 32) bug("interpreter: bodies in bodies in %s", body->name);
  Local *val = pool_get(it, body->val.n * sizeof *val);
  Split *split = pool_get(it, it->m->dim.n * sizeof *split);
  memset(val, 0, body->val.n * sizeof *val), memset(split, 0, it->m->dim.n * sizeof *split);
  for (uint32_t i = 0; i < w->node->nin; i++) {
    Local *arg = &val[body->arg.at[i]];
    *arg = *w->in[i], arg->borrowed = true;
    for (int k = 0; k < arg->type.ndim; k++) split[arg->type.dim[k]] = arg->type.split[k];
  }
  uint8_t outside = r->pending;
  for (uint32_t i = 0; i < w->node->nin; i++) r->pending |= w->in[i]->type.pending_axes;
  bool ok = run_fn(r, body, val, split);
  r->pending = outside;
  for (uint32_t i = 0; ok && i < body->ret.n; i++)
    for (uint32_t rank = 0; rank < it->ranks; rank++)
      if (local_move(it, &w->out[i], rank, &val[body->ret.at[i]], rank, MOVE_copy) != local_real(it, &w->out[i], rank))
        ok = node_fault(r, w->fn, w->node, "the body's result is split otherwise");
  for (ValId v = 1; v < body->val.n; v++) local_free(it, &val[v]);
  pool_put(it, val), pool_put(it, split);
  r->depth--;
  return ok;
}

static Type local_type(const Module *m, const Fn *f, ValId v, const Split *split) {
  Type t = m->type.at[f->val.at[v].type];
  if (split)
    for (int i = 0; i < t.ndim; i++) t.split[i] = split[t.dim[i]];
  return t;
}

static bool run_store(Run *r, const OpCall *w) {
  Interp *it = r->it;
  Store s = {.var = w->node->attr.var, .add = w->node->op == OP_accumulate,
             .x = local_create(it, &it->var.at[w->node->attr.var].type)};
  bool ok = true;
  for (uint32_t rank = 0; rank < it->ranks; rank++)
    ok &= local_move(it, &s.x, rank, w->in[0], rank, MOVE_copy) == local_real(it, &s.x, rank);
  vec_push(it->arena, &it->store, s);
  return ok || node_fault(r, w->fn, w->node, "the variable is split otherwise");
}

// Within a body: the axes over which a node's results are parts of sums, as its operands are, or as a dim that it sums over is split.
static uint8_t sums_of(const Node *n, const Local *const *in) {
  uint8_t axes = 0;
  for (uint32_t i = 0; i < n->nin; i++) {
    axes |= in[i]->type.pending_axes;
    for (uint32_t k = 0; k < n->attr.ndims; k++) {
      int at = op_split(n->op, k) == SPLIT_sum ? type_pos(&in[i]->type, n->attr.dims[k]) : -1;
      if (at >= 0) axes |= split_mask(in[i]->type.split[at]);
    }
  }
  return axes;
}

static bool run_node(Run *r, const Fn *f, NodeId id, Local *val, Split *split) {
  Interp *it = r->it;
  const Node *n = fn_node(f, id);
  const Local *few[8], **in = n->nin > COUNT(few) ? pool_get(it, n->nin * sizeof *in) : few;
  for (uint32_t i = 0; i < n->nin; i++) in[i] = &val[node_in(f, n)[i]];
  if (split)                                            // within a body
    for (uint32_t i = 0; n->nin && i < n->attr.nto; i++) {
      DimId from = n->attr.dims[n->op == OP_rename ? i : 0];
      bool passes = n->op == OP_rename || ((n->op == OP_split || n->op == OP_merge) && !i);
      if (passes && !split[n->attr.to[i]]) split[n->attr.to[i]] = split[from];
    }
  const Local *var = n->op == OP_read ? &it->var.at[n->attr.var] : 0;
  bool ok = true;
  if (var && f->val.at[n->out].type == it->m->var.at[n->attr.var].type) {
    val[n->out] = *var, val[n->out].borrowed = true;
  } else {
    OpCall w = {.fn = f, .node = n, .in = var ? &var : in, .out = &val[n->out]};
    uint8_t sums = split ? sums_of(n, in) : 0;
    for (uint32_t i = 0; i < n->nout; i++) {
      Type t = local_type(it->m, f, n->out + i, split);
      if (split && (r->pending | sums)) t.pending = PENDING_sum, t.pending_axes = r->pending | sums;
      val[n->out + i] = local_create(it, &t);
    }
    if (n->op == OP_write || n->op == OP_accumulate) ok = run_store(r, &w);
    else ok = op_has(n->op, OPF_COMPOSITE) ? run_body(r, &w) : op_run(it, &w);
    for (uint32_t i = 0; ok && i < n->nout; i++) {
      uint32_t a, b;
      for (uint32_t rank = 0; rank < it->ranks; rank++) local_finish(it, &val[n->out + i], rank);
      if (!local_replicas(it, &val[n->out + i], &a, &b))
        ok = node_fault(r, f, n, arena_printf(it->arena, "ranks %u and %u should hold the same", a, b));
    }
    if (!ok && !it->fault[0]) node_fault(r, f, n, "failed");
  }
  if (n->nin > COUNT(few)) pool_put(it, in);
  scratch_free(it);
  return ok;
}

static bool run_fn(Run *r, const Fn *f, Local *val, Split *split) {
  uint32_t *last = last_uses(r->it, f);
  bool ok = true;
  for (NodeId id = 1; ok && id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    ok = run_node(r, f, id, val, split);
    for (uint32_t i = 0; i < n->nin; i++)
      if (last[node_in(f, n)[i]] == id) local_free(r->it, &val[node_in(f, n)[i]]);
    for (uint32_t i = 0; i < n->nout; i++)
      if (last[n->out + i] == id) local_free(r->it, &val[n->out + i]);
  }
  pool_put(r->it, last);
  return ok;
}

// variables change when the function is over
static void run_stores(Interp *it, bool keep) {
  for (uint32_t i = 0; i < it->store.n; i++) {
    Store *s = &it->store.at[i];
    bool again = !it->first;                            // a second one in this run adds in any case
    for (uint32_t j = 0; j < i; j++) again |= it->store.at[j].var == s->var;
    Local *v = &it->var.at[s->var];
    for (uint32_t rank = 0; keep && rank < it->ranks; rank++) {
      if (!s->add || !again) memcpy(v->rank[rank], s->x.rank[rank], (size_t)v->count * 8);
      else {
        local_move(it, v, rank, &s->x, rank, MOVE_add);
        local_finish(it, v, rank);
      }
      scratch_free(it);
    }
    local_free(it, &s->x);
  }
  it->store.n = 0;
}

bool interp_run(Interp *it, const Fn *f, const double *const *in, double *const *out) {
  Run r = {.it = it};
  it->fault = "";
  Local *val = pool_get(it, f->val.n * sizeof *val);
  memset(val, 0, f->val.n * sizeof *val);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    Type t = local_type(it->m, f, f->arg.at[i], 0);
    val[f->arg.at[i]] = local_create(it, &t);
    scatter_whole(it, &val[f->arg.at[i]], in[i]);
  }
  bool ok = run_fn(&r, f, val, 0);
  for (uint32_t i = 0; ok && i < f->ret.n; i++)
    if (out && out[i]) ok = gather_whole(it, &val[f->ret.at[i]], f->ret_name.at[i], f->name, out[i]);
  run_stores(it, ok);
  for (ValId v = 1; v < f->val.n; v++) local_free(it, &val[v]);
  pool_put(it, val);
  return ok;
}
