// kernels.c -- from a group to its kernel: each root's value is computed from what lies in memory, op by op, at the
// place along every dim that the loops or the views in between say.
#include "passes/group.h"
#include <string.h>

// one dim may be cut into several, the slowest first
typedef struct { DimId dim; int64_t n, valid; uint32_t range; } Loop;

typedef struct {
  const Groups *g;
  const Group *group;
  const Module *m;
  const Fn *f;
  Kernel *k;
  bool first, block;                         // block: values without dims are found in their common block
  uint32_t nloop; Loop loop[KERNEL_RANGES];
  int64_t range[KERNEL_RANGES];
  Env all;                                   // every dim of the group at its loops
  Map known;                                 // value and place -> kernel value
  Operand *operand;
  Cut cut;                                   // n > 0: start again with this loop cut
} Gen;

static uint32_t gen(Gen *c, ValId v, const Env *env);

static DType work_dtype(DType t) { return value_dtype(t); }
static int64_t extent(const Gen *c, DimId d) { return dim_of(c->m, d)->extent; }

uint32_t scalar_slot(const Module *m, VarId v) {
  uint32_t slot = 0;
  for (VarId i = 1; i < m->var.n && i != v; i++) slot += m->var.at[i].kind == VAR_scalar;
  return slot;
}


bool group_accumulates(const Group *g) {
  for (uint32_t i = 0; i < g->root.n; i++)
    if (g->root.at[i].accumulate && !g->root.at[i].more) return true;
  return g->accumulate && !g->more;
}

// ---- places ------------------------------------------------------------------------------------------------------
static Access affine(const Pos *p) {
  Access at = {.base = p->base};
  memcpy(at.stride, p->coef, sizeof at.stride);
  return at;
}

static uint32_t alu(Gen *c, Alu op, uint32_t a, uint32_t b) { return kernel_alu(c->k, op, a, b, 0); }
static uint32_t const_i64(Gen *c, int64_t v) { return kernel_const_int(c->k, DT_i64, v); }

static uint32_t position(Gen *c, const Pos *p) {                       // as an i64 value
  uint32_t v = kernel_index(c->k, DT_i64, affine(p));
  if (!p->index) return v;
  uint32_t i = kernel_cast(c->k, DT_i64, p->index);
  if (p->icoef != 1) i = alu(c, ALU_mul, i, const_i64(c, p->icoef));
  return alu(c, ALU_add, v, i);
}

// The number of this rank's first entry of a part, an i64; 0: d is whole.
static uint32_t first_of(Gen *c, DimId d) {
  VarId v = part_first(c->m, d);
  return v ? kernel_scalar(c->k, DT_i64, scalar_slot(c->m, v)) : 0;
}

static uint32_t inside(Gen *c, uint32_t i, int64_t n) {                // 0 <= i < n, of an i64
  return alu(c, ALU_and, alu(c, ALU_ge, i, const_i64(c, 0)), alu(c, ALU_lt, i, const_i64(c, n)));
}

static int64_t chunks_of(const Gen *c, DimId d) { return dim_zigzag(c->m, d); }
static int64_t chunk_length(const Gen *c, DimId d) { return dim_of(c->m, dim_whole(c->m, d))->size / chunks_of(c, d); }

// From where an entry of d lies to its number in the whole, and back (i64 values; -1: there is none).
static uint32_t number_of(Gen *c, DimId d, uint32_t place) {
  uint32_t first = first_of(c, d);
  int64_t n = chunks_of(c, d);
  if (first) place = alu(c, ALU_add, place, first);
  if (!n) return place;
  uint32_t length = const_i64(c, chunk_length(c, d)), two = const_i64(c, 2);
  uint32_t chunk = alu(c, ALU_div, place, length), half = alu(c, ALU_div, chunk, two);
  uint32_t odd = alu(c, ALU_eq, alu(c, ALU_mod, chunk, two), const_i64(c, 1));
  chunk = kernel_alu(c->k, ALU_select, odd, alu(c, ALU_sub, const_i64(c, n - 1), half), half);
  return alu(c, ALU_add, alu(c, ALU_mul, chunk, length), alu(c, ALU_mod, place, length));
}

static uint32_t place_of_number(Gen *c, DimId d, uint32_t number) {
  uint32_t first = first_of(c, d);
  int64_t n = chunks_of(c, d);
  if (first || n) number = kernel_cast(c->k, DT_i64, number);
  if (!n) return first ? alu(c, ALU_sub, number, first) : number;
  uint32_t length = const_i64(c, chunk_length(c, d)), two = const_i64(c, 2), chunk = alu(c, ALU_div, number, length);
  uint32_t late = alu(c, ALU_add, alu(c, ALU_mul, two, alu(c, ALU_sub, const_i64(c, n - 1), chunk)), const_i64(c, 1));
  uint32_t early = alu(c, ALU_lt, chunk, const_i64(c, n / 2)), there = inside(c, number, n * chunk_length(c, d));
  chunk = kernel_alu(c->k, ALU_select, early, alu(c, ALU_mul, two, chunk), late);
  uint32_t place = alu(c, ALU_add, alu(c, ALU_mul, chunk, length), alu(c, ALU_mod, number, length));
  if (first) place = alu(c, ALU_sub, place, first);
  return kernel_alu(c->k, ALU_select, there, place, const_i64(c, -1));
}

// Where element env of a tensor of type t lies. Two positions that are values become one
// address, -1 when either is outside.
static Access address(Gen *c, const Type *t, const Env *env) {
  Access at = {0};
  int64_t walk = 1;
  uint32_t values = 0;
  for (int i = 0; i < t->ndim; i++) values += env_find((Env *)env, t->dim[i])->index != 0;
  uint32_t sum = 0, ok = 0;
  for (int i = t->ndim; i--;) {
    const Pos *p = env_find((Env *)env, t->dim[i]);
    at.base += walk * p->base;
    for (uint32_t r = 0; r < KERNEL_RANGES; r++) at.stride[r] += walk * p->coef[r];
    if (p->index && values == 1) at.index = p->index, at.index_stride = walk * p->icoef, at.index_extent = p->iextent;
    if (p->index && values > 1) {
      uint32_t j = kernel_cast(c->k, DT_i64, p->index), in = inside(c, j, p->iextent);
      j = alu(c, ALU_mul, j, const_i64(c, walk * p->icoef));
      sum = sum ? alu(c, ALU_add, sum, j) : j, ok = ok ? alu(c, ALU_and, ok, in) : in;
    }
    walk *= type_local(c->m, t, (uint32_t)i);
  }
  if (values > 1) {
    uint32_t here = alu(c, ALU_add, kernel_index(c->k, DT_i64, at), sum);
    at = (Access){
        .index = kernel_alu(c->k, ALU_select, ok, here, const_i64(c, -1)), .index_stride = 1, .index_extent = walk};
  }
  return at;
}

static uint32_t buffer(Gen *c, Operand o, DType t, int64_t count) {
  o.v = place_of(c->g, o.v);
  for (uint32_t i = 0; i < c->k->nbuf; i++)
    if (c->operand[i].v == o.v && c->operand[i].var == o.var && c->operand[i].t == o.t &&
        c->operand[i].random == o.random)
      return i;
  if (c->k->nbuf == KERNEL_BUFFERS) bug("kernels: a group of more than %d buffers", KERNEL_BUFFERS);
  c->operand[c->k->nbuf] = o;
  return kernel_buffer(c->k, t, count);
}

static uint32_t block(Gen *c, DType t) {
  return buffer(c, (Operand){.t = t}, t, c->g->small_count * 8 / (int64_t)dtype_bytes(t));
}

static uint32_t load(Gen *c, ValId v, const Env *env) {
  const Type *t = val_type(c->f, v);
  const Node *n = c->f->val.at[v].def ? fn_node(c->f, c->f->val.at[v].def) : 0;
  switch (c->g->stored[v]) {
  case STORED_slot: return kernel_scalar(c->k, t->dtype, scalar_slot(c->m, n->attr.var));
  case STORED_var: {
    const Type *vt = &c->m->type.at[c->m->var.at[n->attr.var].type];
    return kernel_load(c->k, buffer(c, (Operand){.var = n->attr.var}, t->dtype, type_count(c->m, vt)),
                       address(c, vt, env));
  }
  case STORED_small:
    if (c->block && !c->g->returned[v])
      return kernel_load(c->k, block(c, t->dtype),
                         (Access){.base = c->g->at[v] * 8 / (int64_t)dtype_bytes(t->dtype)});
    return kernel_load(c->k, buffer(c, (Operand){.v = v}, t->dtype, 1), (Access){0});
  default: return kernel_load(c->k, buffer(c, (Operand){.v = v}, t->dtype, type_count(c->m, t)), address(c, t, env));
  }
}

// ---- ops ---------------------------------------------------------------------------------------------------------
static Alu alu_of(Op op) {
  switch (op) {
#define SAME(X) X(neg) X(add) X(sub) X(mul) X(div) X(mod) X(pow) X(min) X(max) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) \
  X(and) X(or) X(not) X(exp) X(log) X(sqrt) X(rsqrt) X(tanh) X(sin) X(cos) X(erf) X(abs) X(floor) X(ceil) X(select)
#define X(word) case OP_##word: return ALU_##word;
  SAME(X)
#undef X
#undef SAME
  default: return ALU_none;
  }
}

// Whether a load checks the position along d: v is what lies in memory, looked at through views that keep d as it is.
static bool checked(const Gen *c, ValId v, DimId d) {
  while (!c->g->stored[v]) {
    const Node *n = fn_node(c->f, c->f->val.at[v].def);
    if (!op_is_view(n->op) || n->op == OP_merge || n->op == OP_split) return false;
    for (uint32_t i = 0; i < n->attr.ndims && n->op == OP_expand; i++)
      if (n->attr.dims[i] == d) return false;
    for (uint32_t i = 0; i < n->attr.nto; i++)
      if (n->attr.to[i] == d) { d = n->attr.dims[i]; break; }
    v = node_in(c->f, n)[0];
  }
  return c->g->stored[v] != STORED_slot;
}

// element `i` (an i64 value) of dim d of v, and `other` outside
static uint32_t picked(Gen *c, ValId v, const Env *env, DimId d, uint32_t i, double other) {
  Env at = *env;
  env_set(&at, d, (Pos){.index = i, .icoef = 1, .iextent = extent(c, d)});
  uint32_t x = gen(c, v, &at);
  if (c->cut.n || (other == 0 && checked(c, v, d))) return x;           // loads outside give 0
  DType t = work_dtype(val_type(c->f, v)->dtype);
  return kernel_alu(c->k, ALU_select, inside(c, kernel_cast(c->k, DT_i64, i), extent(c, d)), x,
                    kernel_const(c->k, t, other));
}

static uint32_t gen_stack(Gen *c, const Node *n, const Env *env) {
  const Pos *p = env_find((Env *)env, n->attr.dims[0]);
  bool known = !p->index;
  for (uint32_t r = 0; r < KERNEL_RANGES; r++) known &= !p->coef[r];
  if (known) return gen(c, node_in(c->f, n)[p->base], env);
  uint32_t i = position(c, p), x = gen(c, node_in(c->f, n)[n->nin - 1], env);
  for (uint32_t k = n->nin - 1u; k-- > 0 && !c->cut.n;) {
    uint32_t y = gen(c, node_in(c->f, n)[k], env);
    if (!c->cut.n) x = kernel_alu(c->k, ALU_select, alu(c, ALU_eq, i, const_i64(c, k)), y, x);
  }
  return x;
}

// The entry's number: over the entries that exist, row-major in the type's order but the dim of samples first, counted
// in the step; so no microbatch size changes it.
static uint32_t gen_random(Gen *c, const Node *n, const Env *env) {
  const Type *t = val_type(c->f, n->out);
  uint32_t step = gen(c, node_in(c->f, n)[0], env), sample = gen(c, node_in(c->f, n)[1], env), more = 0;
  int64_t weight[MAX_DIMS], rows = 1;
  int batch = -1;
  for (int i = t->ndim; i--;) {
    weight[i] = rows;
    if (dim_of(c->m, t->dim[i])->sample && batch < 0) batch = i;
    else rows *= extent(c, dim_whole(c->m, t->dim[i]));
  }
  if (batch >= 0) weight[batch] = rows, more = alu(c, ALU_mul, sample, const_i64(c, rows));
  Pos sum = {0};
  for (int i = 0; i < t->ndim; i++) {
    const Pos *p = env_find((Env *)env, t->dim[i]);
    if (chunks_of(c, t->dim[i])) {           // its numbers do not follow its places
      uint32_t number = alu(c, ALU_mul, number_of(c, t->dim[i], position(c, p)), const_i64(c, weight[i]));
      more = more ? alu(c, ALU_add, more, number) : number;
      continue;
    }
    uint32_t first = first_of(c, t->dim[i]);
    sum.base += weight[i] * p->base;
    for (uint32_t r = 0; r < KERNEL_RANGES; r++) sum.coef[r] += weight[i] * p->coef[r];
    if (first) first = alu(c, ALU_mul, first, const_i64(c, weight[i])), more = more ? alu(c, ALU_add, more, first) : first;
    if (!p->index) continue;
    uint32_t at = alu(c, ALU_mul, kernel_cast(c->k, DT_i64, p->index), const_i64(c, weight[i] * p->icoef));
    more = more ? alu(c, ALU_add, more, at) : at;
  }
  uint32_t here = kernel_index(c->k, DT_i64, affine(&sum)), index = more ? alu(c, ALU_add, here, more) : here;
  uint32_t hash;
  if (c->g->bake) hash = const_i64(c, path_hash(n->attr.path));
  else hash = kernel_load(c->k, buffer(c, (Operand){.random = n->attr.path}, DT_i64, 1), (Access){0});
  uint32_t place = alu(c, ALU_add, alu(c, ALU_mul, hash, const_i64(c, (int64_t)1 << 32)), step);
  return kernel_random(c->k, kernel_scalar(c->k, DT_i64, scalar_slot(c->m, 0)), place, index);
}

static uint32_t gen_merge(Gen *c, const Node *n, const Env *env) {     // digits of a position that no loop gives
  const Attr *at = &n->attr;
  Env parts = *env;
  uint32_t rest = position(c, env_find((Env *)env, at->to[0]));
  for (uint32_t i = at->ndims; i-- > 0;) {
    int64_t e = extent(c, at->dims[i]);
    uint32_t digit = i ? alu(c, ALU_mod, rest, const_i64(c, e)) : rest;
    env_set(&parts, at->dims[i], (Pos){.index = digit, .icoef = 1, .iextent = e});
    if (i) rest = alu(c, ALU_div, rest, const_i64(c, e));
  }
  return gen(c, node_in(c->f, n)[0], &parts);
}

static uint32_t gen_split(Gen *c, const Node *n, const Env *env) {     // more than one of the parts is at a value
  const Attr *at = &n->attr;
  Env whole = *env;
  uint32_t i = 0;
  for (uint32_t k = 0; k < at->nto; k++) {
    uint32_t p = position(c, env_find((Env *)env, at->to[k]));
    i = k ? alu(c, ALU_add, alu(c, ALU_mul, i, const_i64(c, extent(c, at->to[k]))), p) : p;
  }
  env_set(&whole, at->dims[0], (Pos){.index = i, .icoef = 1, .iextent = extent(c, at->dims[0])});
  return gen(c, node_in(c->f, n)[0], &whole);
}

// Between dims that lie in different orders
static uint32_t gen_slice(Gen *c, const Node *n, const Env *env) {
  DimId from = n->attr.dims[0], to = n->attr.to[0];
  uint32_t i = number_of(c, to, position(c, env_find((Env *)env, to)));
  if (n->attr.at) i = alu(c, ALU_add, i, const_i64(c, n->attr.at));
  return picked(c, node_in(c->f, n)[0], env, from, place_of_number(c, from, i), 0);
}

static uint32_t gen_rename(Gen *c, const Node *n, const Env *env) {    // the same: by the entries' numbers
  const Attr *at = &n->attr;
  Env through = *env;
  for (uint32_t i = 0; i < at->ndims; i++) {
    Pos p = *env_find((Env *)env, at->to[i]);
    if (chunks_of(c, at->dims[i]) != chunks_of(c, at->to[i])) {
      uint32_t number = number_of(c, at->to[i], position(c, &p));
      p = (Pos){.index = place_of_number(c, at->dims[i], number), .icoef = 1, .iextent = extent(c, at->dims[i])};
    }
    env_set(&through, at->dims[i], p);
  }
  return gen(c, node_in(c->f, n)[0], &through);
}

static uint32_t gen_node(Gen *c, ValId v, const Env *env) {
  const Node *n = fn_node(c->f, c->f->val.at[v].def);
  const ValId *in = node_in(c->f, n);
  const Attr *at = &n->attr;
  DType t = work_dtype(val_type(c->f, v)->dtype);
  uint32_t x[3] = {0};
  Alu op = alu_of(n->op);
  if (op_is_view(n->op)) {
    Env through = *env;
    ValId operand;
    Cut cut = {0};
    ViewStep step = view_step(c->f, v, &through, c->range, &operand, &cut);
    if (step == VIEW_passed) return gen(c, operand, &through);
    if (n->op == OP_split) return gen_split(c, n, env);
    if (n->op == OP_slice) return gen_slice(c, n, env);
    if (n->op == OP_rename) return gen_rename(c, n, env);
    bool padded = cut.n && c->loop[cut.range].valid != c->loop[cut.range].n;
    if (cut.n && c->nloop < KERNEL_RANGES && !padded && c->group->class != LOOP_scatter) return c->cut = cut, 0;
    return gen_merge(c, n, env);
  }
  switch (n->op) {
  case OP_const: return t == DT_bool ? kernel_const_int(c->k, DT_bool, at->num != 0) : kernel_const(c->k, t, at->num);
  case OP_index: {
    const Pos *p = env_find((Env *)env, at->dims[0]);
    bool known = !p->index && !dim_of(c->m, at->dims[0])->whole && !chunks_of(c, at->dims[0]);
    return known ? kernel_index(c->k, t, affine(p)) : kernel_cast(c->k, t, number_of(c, at->dims[0], position(c, p)));
  }
  case OP_random: return gen_random(c, n, env);
  case OP_cast: {
    uint32_t a = gen(c, in[0], env);
    return c->cut.n ? 0 : work_dtype(val_type(c->f, in[0])->dtype) == t ? a : kernel_cast(c->k, t, a);
  }
  case OP_stack: return gen_stack(c, n, env);
  case OP_gather: {
    uint32_t i = gen(c, in[1], env);
    return c->cut.n ? 0 : picked(c, in[0], env, at->dims[0], place_of_number(c, at->dims[0], i), 0);
  }
  case OP_shift: {
    Pos p = *env_find((Env *)env, at->dims[0]);
    if (!chunks_of(c, at->dims[0])) p.base -= at->at;
    uint32_t i = position(c, &p);
    if (chunks_of(c, at->dims[0]))
      i = place_of_number(c, at->dims[0], alu(c, ALU_sub, number_of(c, at->dims[0], i), const_i64(c, at->at)));
    return picked(c, in[0], env, at->dims[0], i, at->num);
  }
  case OP_take_shard: {                      // from this rank's first entry on
    Env whole = *env;
    Pos p = *env_find((Env *)env, at->to[0]);
    uint32_t from = first_of(c, at->to[0]), before = first_of(c, at->dims[0]);
    if (before) from = alu(c, ALU_sub, from, before);
    int64_t many = dim_of(c->m, at->dims[0])->size;
    if (p.index) p = (Pos){.index = alu(c, ALU_add, position(c, &p), from), .icoef = 1, .iextent = many};
    else p.index = from, p.icoef = 1, p.iextent = many - dim_of(c->m, at->to[0])->size + 1;
    env_set(&whole, at->dims[0], p);
    return gen(c, in[0], &whole);
  }
  case OP_unslice: {
    uint32_t i = number_of(c, at->to[0], position(c, env_find((Env *)env, at->to[0])));
    if (at->at) i = alu(c, ALU_sub, i, const_i64(c, at->at));
    return picked(c, in[0], env, at->dims[0], place_of_number(c, at->dims[0], i), 0);
  }
  case OP_sum: case OP_reduce_max: {
    uint32_t a = gen(c, in[0], &c->all);
    return c->cut.n ? 0 : kernel_reduce(c->k, n->op == OP_sum ? RED_sum : RED_max, a);
  }
  case OP_cumsum: {
    uint32_t a = gen(c, in[0], &c->all);
    return c->cut.n ? 0 : kernel_cumsum(c->k, a, at->at != 0);
  }
  case OP_scatter: {
    uint32_t a = gen(c, in[0], &c->all), i = c->cut.n ? 0 : gen(c, in[1], &c->all), to = 0;
    for (uint32_t k = 0; k < c->nloop; k++)
      if (c->loop[k].dim == at->dims[0]) to = c->loop[k].range;
    if (c->cut.n) return 0;
    i = place_of_number(c, at->dims[0], i);
    if (c->group->class == LOOP_scatter) return kernel_reduce_where(c->k, RED_sum, a, i, to);
    uint32_t here = alu(c, ALU_eq, position(c, env_find(&c->all, at->dims[0])), kernel_cast(c->k, DT_i64, i));
    return kernel_alu(c->k, ALU_select, here, a, kernel_const(c->k, t, 0));
  }
  default: break;
  }
  if (!op) bug("kernels: %s has no kernel", op_info[n->op].name);
  bool order = n->op == OP_lt || n->op == OP_le || n->op == OP_gt || n->op == OP_ge;
  for (uint32_t k = 0; k < n->nin && !c->cut.n; k++) {
    x[k] = gen(c, in[k], env);
    // false before true
    if (order && !c->cut.n && val_type(c->f, in[k])->dtype == DT_bool) x[k] = kernel_cast(c->k, DT_i32, x[k]);
  }
  return c->cut.n ? 0 : kernel_alu(c->k, op, x[0], x[1], x[2]);
}

static bool own(const Gen *c, ValId v) {                               // computed in this group
  uint32_t by = c->g->group_of[v];
  return by && &c->g->group.at[by - 1] == c->group;
}

static uint32_t gen(Gen *c, ValId v, const Env *env) {
  if (c->cut.n) return 0;
  const Type *t = val_type(c->f, v);
  uint64_t key = v;
  bool straight = true;
  for (int i = 0; i < t->ndim; i++) {
    const Pos *p = env_find((Env *)env, t->dim[i]), *q = env_find(&c->all, t->dim[i]);
    if (!p) bug("kernels: %s of a value has no place", dim_of(c->m, t->dim[i])->name);
    key = hash_mix(key, hash_bytes(p, sizeof *p, t->dim[i]));
    straight &= q && !memcmp(p, q, sizeof *p);
  }
  const uint64_t *known = map_get(&c->known, key);
  if (known) return (uint32_t)*known;
  uint32_t x;
  if (c->g->stored[v] && !own(c, v)) x = load(c, v, env);
  else if (own(c, v) && !straight) bug("kernels: a value is used out of place in the kernel that makes it");
  else x = gen_node(c, v, env);
  if (!c->cut.n) map_put(&c->known, key, x);
  return x;
}

// ---- the group ---------------------------------------------------------------------------------------------------
static void loops(Gen *c, const Cut *cuts, uint32_t ncuts) {
  const Group *g = c->group;
  c->nloop = 0;
  for (uint32_t i = 0; i < g->np + g->nr; i++) {
    DimId d = i < g->np ? g->p[i] : g->r[i - g->np];
    const Dim *dim = dim_of(c->m, d);
    if (c->nloop == KERNEL_RANGES) bug("kernels: more than %d loops", KERNEL_RANGES);
    c->loop[c->nloop++] = (Loop){d, dim->size, dim->extent, 0};
  }
  for (uint32_t k = 0; k < ncuts; k++) {                               // in the order in which they were asked for
    uint32_t at = cuts[k].range;
    Loop whole = c->loop[at];
    memmove(c->loop + at + 1, c->loop + at, (c->nloop - at) * sizeof *c->loop);
    c->nloop++;
    c->loop[at].n = c->loop[at].valid = whole.n / cuts[k].n;
    c->loop[at + 1].n = c->loop[at + 1].valid = cuts[k].n;
  }
  c->all.n = 0;
  memset(c->range, 0, sizeof c->range);
  for (uint32_t i = 0; i < c->nloop; i++) {
    Loop *l = &c->loop[i];
    bool reduced = false;
    for (uint32_t k = 0; k < g->nr; k++) reduced |= g->r[k] == l->dim;
    l->range = kernel_range(c->k, l->n, l->valid, reduced);
    c->range[l->range] = l->n;
    Pos *p = env_find(&c->all, l->dim);
    if (!p) env_set(&c->all, l->dim, (Pos){0}), p = env_find(&c->all, l->dim);
    for (uint32_t r = 0; r < KERNEL_RANGES; r++) p->coef[r] *= l->n;
    p->coef[l->range] = 1;
  }
}

static void store(Gen *c, const Root *r) {
  const Type *t = val_type(c->f, r->v);
  uint32_t x = gen(c, r->v, &c->all);
  if (c->cut.n) return;
  Access at = {0};
  if (r->var) t = &c->m->type.at[c->m->var.at[r->var].type];
  if (t->ndim) at = address(c, t, &c->all);
  uint32_t b = buffer(c, r->var ? (Operand){.var = r->var} : (Operand){.v = r->v}, t->dtype, type_count(c->m, t));
  if (r->accumulate && (r->more || !c->first)) kernel_accumulate(c->k, b, at, x);
  else kernel_store(c->k, b, at, x);
}

Kernel *kernel_of(const Groups *g, uint32_t group, bool first, Arena *a, Operand operand[KERNEL_BUFFERS]) {
  Gen gen_state = {.g = g, .group = &g->group.at[group], .m = g->m, .f = g->f, .first = first, .operand = operand},
      *c = &gen_state;
  Cut cuts[KERNEL_RANGES];
  uint32_t ncuts = 0;
  c->block = c->group->nsmall > 16;                                    // one buffer for all instead of one each
  for (;;) {
    c->k = kernel_begin(a, c->group->class);
    c->cut.n = 0;
    map_init(&c->known, g->arena);
    loops(c, cuts, ncuts);
    for (uint32_t i = 0; i < c->group->root.n && !c->cut.n; i++) store(c, &c->group->root.at[i]);
    if (!c->cut.n) break;
    cuts[ncuts++] = c->cut;
  }
  for (uint32_t i = 0; i < c->k->nbuf; i++) operand[i].at = kernel_rebase(c->k, i);
  return c->k;
}
