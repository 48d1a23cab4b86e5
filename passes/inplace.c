// inplace.c -- results that take the place of an operand: a kernel that is the last to read a value, element by
// element, writes a result of the same size over it; a collective that adds up makes its sum where the terms lie. The
// terms may be a gradient variable: nothing wants those once they are added up. A rank's part of a variable lies in it:
// the part that a gradient is scattered to, and the part that a parameter is gathered from.
#include "passes/group.h"

enum { SMALL = 1 << 10 };                    // bytes; below them nothing is gained

static bool may_move(const Groups *g, ValId v) {
  return v && g->stored[v] == STORED_temp && !g->moved[v] && !g->returned[v];
}

static ValId result_of(const Groups *g, uint32_t group, const Operand *o) { // made by this step in a place of its own
  return !o->var && may_move(g, o->v) && g->group_of[o->v] == group + 1 && !g->made_of_parts[o->v] ? o->v : 0;
}

static bool may_share(const Kernel *k, uint32_t written, uint32_t read) {
  const Buffer *x = &k->buf[written], *y = &k->buf[read];
  return x->written && y->read && x->dtype == y->dtype && x->count == y->count && kernel_in_place(k, written, read);
}

// Whether this step's buffers i and j are a result and an operand that nothing reads later.
static bool is_pair(const Groups *g, uint32_t group, const Operand *of, uint32_t i, uint32_t j) {
  ValId v = result_of(g, group, &of[i]), u = of[j].var ? 0 : of[j].v;
  if (!v || of[i].at || of[j].at || type_bytes(g->m, val_type(g->f, v)) < SMALL) return false;
  return may_move(g, u) && g->group_of[u] != group + 1 && g->last[u] == group + 1 && g->flight[u] <= group;
}

static void put_over(Groups *g, ValId v, ValId u) {
  g->over[v] = u, g->last[u] = MAX(g->last[u], g->last[v]), g->flight[u] = MAX(g->flight[u], g->flight[v]);
}

static void find_in(Groups *g, uint32_t group) {
  Operand of[KERNEL_BUFFERS] = {0};
  bool may[KERNEL_BUFFERS][KERNEL_BUFFERS], taken[KERNEL_BUFFERS] = {0};
  Kernel *k = kernel_of(g, group, false, g->arena, of);
  for (uint32_t i = 0; i < k->nbuf; i++)     // also as it is built: a range of one point is not there any more later
    for (uint32_t j = 0; j < k->nbuf; j++) may[i][j] = is_pair(g, group, of, i, j) && may_share(k, i, j);
  kernel_finish(k);
  for (uint32_t i = 0; i < k->nbuf; i++)
    for (uint32_t j = 0; j < k->nbuf; j++) {
      ValId v = of[i].v, u = of[j].v;
      if (!may[i][j] || taken[j] || g->over[v] || !may_share(k, i, j)) continue;
      taken[j] = true, put_over(g, v, u);
    }
}

// By variable: how many nodes read or write it; what reads it as a whole, and as this rank's part.
typedef struct { uint32_t *touches; ValId *whole, *part; } Vars;

static Vars look_at_variables(const Groups *g) {
  uint32_t n = g->m->var.n;
  Vars v = {fn_touches(g->f, g->arena), NEW_N(g->arena, ValId, n), NEW_N(g->arena, ValId, n)};
  for (NodeId id = 1; id < g->f->node.n; id++) {
    const Node *x = fn_node(g->f, id);
    if (x->op == OP_read) v.whole[x->attr.var] = x->out;
    if (x->op == OP_take_shard && g->part_of[x->out]) v.part[g->part_of[x->out]] = x->out;
  }
  return v;
}

// u is a gradient as it was at entry, and all that this function does with the variable is to read it there
static bool is_spent(const Groups *g, ValId u, const Vars *vars) {
  VarId var = fn_read_of(g->f, u);
  return var && g->m->var.at[var].kind == VAR_grad && vars->touches[var] == 1;
}

static void sum_in(Groups *g, uint32_t group, const Vars *vars) {
  const Node *n = fn_node(g->f, g->group.at[group].node);
  ValId v = n->out, u = place_of(g, node_in(g->f, n)[0]);
  int dim;
  if (n->op == OP_reduce_scatter && may_move(g, v) && is_spent(g, u, vars) && g->last[u] == group + 1 &&
      is_part_in_place(g->m, val_type(g->f, u), val_type(g->f, v), &dim))
    g->stored[v] = STORED_part, g->part_of[v] = fn_read_of(g->f, u);
  if (n->op != OP_all_reduce && n->op != OP_all_max) return;
  if (!may_move(g, v) || g->last[node_in(g->f, n)[0]] != group + 1) return;
  if (may_move(g, u) && g->last[u] == group + 1 && type_bytes(g->m, val_type(g->f, v)) >= SMALL) g->over[v] = u;
  else if (is_spent(g, u, vars)) g->over[v] = u;
  if (g->over[v]) put_over(g, v, u);
}

bool is_part_in_place(const Module *m, const Type *whole, const Type *part, int *dim) {
  int k = 0;
  while (k < whole->ndim && whole->dim[k] == part->dim[k] && type_local(m, whole, (uint32_t)k) == 1) k++;
  if (whole->ndim != part->ndim || whole->dtype != part->dtype || k == whole->ndim || whole->dim[k] == part->dim[k]) return false;
  for (int i = k + 1; i < whole->ndim; i++)
    if (whole->dim[i] != part->dim[i]) return false;
  return *dim = k, dim_of(m, part->dim[k])->whole && !dim_zigzag(m, part->dim[k]);
}

// What is gathered into a variable is made in this rank's part of it, if all that is read of that there has been read.
static void part_in(Groups *g, uint32_t group, const Vars *vars) {
  const Group *x = &g->group.at[group];
  ValId u = node_in(g->f, fn_node(g->f, x->node))[0];
  int dim;
  if (!x->var || !may_move(g, u) || g->last[u] != group + 1 || g->made_of_parts[u] || g->over[u]) return;
  if (!is_part_in_place(g->m, &g->m->type.at[g->m->var.at[x->var].type], val_type(g->f, u), &dim)) return;
  ValId whole = vars->whole[x->var], same = vars->part[x->var];
  if ((whole && g->last[whole]) || (same && g->last[same] > g->group_of[u])) return;
  if (same && val_type(g->f, same)->dim[dim] != val_type(g->f, u)->dim[dim]) return;
  g->stored[u] = STORED_part, g->part_of[u] = x->var, g->over[u] = same;
}

ValId place_of(const Groups *g, ValId v) { return g->over[v] ? g->over[v] : v; }

void find_over(Groups *g) {
  const Vars vars = look_at_variables(g);
  for (uint32_t i = 0; i < g->group.n; i++) {
    const Group *x = &g->group.at[i];
    bool large = false;
    if (x->collective && !x->early) sum_in(g, i, &vars), part_in(g, i, &vars);
    for (uint32_t k = 0; k < x->root.n; k++)
      large |= !x->root.at[k].var && type_bytes(g->m, val_type(g->f, x->root.at[k].v)) >= SMALL;
    if ((x->class == LOOP_map || x->class == LOOP_row) && large) find_in(g, i);
  }
}
