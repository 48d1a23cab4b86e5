// chunk.c -- the head and the loss in pieces of the tokens, so that the logits are never stored whole.
//
// A product whose result is much wider than its operand (logits: vocab beside embed), and all that has that width
// with it, runs a chunk of one dim of its rows at a time, forward and backward together: a chunk's logits give its
// part of the loss, of the gradient of the hidden state (a part of a stack, made in its place) and of the head's
// weight (added up). What is summed over the chunks is a sum of as many terms. Only where nothing of that width is
// wanted outside. A small number of rows is one chunk, which brings together what works on the logits.
#include "passes/pass.h"
#include <string.h>

enum { LEAST = 64, WIDER = 8, CHUNKS = 16 }; // rows of a chunk; how many times wider than the operand
#define PIECE ((int64_t)64 << 20)            // bytes of the logits of a chunk: with more rows the weight is read less often
#define LARGE ((int64_t)32 << 20)            // bytes from which it pays

typedef struct {
  Module *m;
  const Fn *f;
  Arena *arena;
  DimId d, part, chunk; // the dim that is cut; a chunk of it; which chunk
  int64_t chunks;
  double width;           // how many times as many entries as come in
  DimId wide[MAX_DIMS], row[MAX_DIMS];
  uint32_t nwide, nrow;   // the product's dims: those that make it wide; its rows
  bool *depends, *inside; // by value: on the product; by node: runs in chunks
  uint8_t *kind;          // by value made inside: see PartKind
} Chunk;
// has the dim; needs none of it; is summed over it
typedef enum { PART_none, PART_rows, PART_same, PART_sum } PartKind;

static bool is_wide(const Chunk *c, ValId v) {
  const Type *t = val_type(c->f, v);
  bool wide = false;
  for (int i = 0; i < t->ndim; i++) wide |= dims_have(c->wide, c->nwide, t->dim[i]);
  return wide && type_pos(t, c->d) >= 0;
}

// Whether a node outside goes on with a number for each row (a token's loss), up to the sum over the rows.
static bool goes_on(const Chunk *c, const Node *n) {
  const Fn *f = c->f;
  bool takes = false;
  if (n->nout != 1 || (!op_has(n->op, OPF_EW) && n->op != OP_cast && n->op != OP_select && n->op != OP_sum))
    return false;
  for (uint32_t k = 0; k < n->nin; k++) {
    ValId v = node_in(f, n)[k];
    if (!c->depends[v]) continue;
    if (!c->inside[f->val.at[v].def] || type_pos(val_type(f, v), c->d) < 0) return false;
    takes = true;
  }
  const Type *t = val_type(f, n->out);
  for (int i = 0; i < t->ndim; i++)
    if (!dims_have(c->row, c->nrow, t->dim[i])) return false;
  return takes;
}

// What runs in chunks: all that is wide, and what leads from the product to something wide, or takes something wide.
static void find_inside(Chunk *c, NodeId from) {
  const Fn *f = c->f;
  bool *leads = NEW_N(c->arena, bool, f->val.n);
  for (NodeId i = from; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    bool depends = i == from;
    for (uint32_t k = 0; k < n->nin; k++) depends |= c->depends[node_in(f, n)[k]];
    for (uint32_t k = 0; k < n->nout; k++) c->depends[n->out + k] = depends;
  }
  for (NodeId i = f->node.n; i-- > 1;) {
    const Node *n = fn_node(f, i);
    bool makes = false, takes = false;       // something wide, or what leads to it; something wide
    for (uint32_t k = 0; k < n->nout; k++) makes |= is_wide(c, n->out + k) || leads[n->out + k];
    for (uint32_t k = 0; k < n->nin; k++) {
      ValId v = node_in(f, n)[k];
      takes |= is_wide(c, v);
      if (makes) leads[v] |= c->depends[v];
    }
    c->inside[i] = makes || takes;
  }
  for (NodeId i = from; i < f->node.n; i++) c->inside[i] |= goes_on(c, fn_node(f, i));
}

// How node n of the inside treats the dim; false: it cannot run in chunks.
static bool treat(Chunk *c, const Node *n) {
  const Fn *f = c->f;
  const Attr *at = &n->attr;
  bool over = dims_have(at->dims, at->ndims, c->d);
  if (!n->nout || n->body || op_has(n->op, OPF_COLL | OPF_STATE | OPF_RANDOM | OPF_COMPOSITE)) return false;
  if (dims_have(at->to, at->nto, c->d)) return false;
  for (uint32_t k = 0; k < n->nin; k++)
    if (c->kind[node_in(f, n)[k]] == PART_sum) return false;
  if (over && n->op != OP_dot && n->op != OP_sum) return false;
  for (uint32_t k = 0; k < n->nout; k++)
    c->kind[n->out + k] = over ? PART_sum : type_pos(val_type(f, n->out + k), c->d) >= 0 ? PART_rows : PART_same;
  return true;
}

static bool may_chunk(Chunk *c) {
  const Fn *f = c->f;
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    if (c->inside[i]) {
      if (!treat(c, n)) return false;
      continue;
    }
    bool after = false, takes = false; // it runs behind the chunks
    for (uint32_t k = 0; k < n->nin; k++) {
      ValId v = node_in(f, n)[k];
      if (is_wide(c, v)) return false;
      after |= c->depends[v], takes |= f->val.at[v].def && c->inside[f->val.at[v].def];
    }
    if (takes && !after) return false;
  }
  for (uint32_t i = 0; i < f->ret.n; i++)
    if (is_wide(c, f->ret.at[i])) return false;
  return true;
}

// ---- the new function -------------------------------------------------------------------------------------------
typedef VEC(ValId) Parts;
typedef struct {
  Chunk *c;
  Fn *s;
  ValId *now; // by value of f: what it is outside
  NodeId *node_now;
  ValId *here, *sliced; // in this chunk
  NodeId *node_here;
  Parts *parts; // by value: of each chunk
  NodeId *sink; // by value: the accumulate that is its only use
} Make;

static const char *why_of(const Chunk *c) {
  return intern_printf(c->m->in, "chunk: %lld pieces of %s", (long long)c->chunks, dim_of(c->m, c->d)->name);
}

static void copy_outside(Make *k, NodeId id) {
  const Fn *f = k->c->f;
  const Node *n = fn_node(f, id);
  Build b = build_like(k->s, f, id);
  b.fwd = n->fwd ? k->node_now[n->fwd] : 0;
  ir_results(n, ir_copy(&b, f, id, ir_operands(f, n, k->now)), k->now);
  k->node_now[id] = k->s->node.n - 1;
}

static Type type_here(const Chunk *c, const Type *t) {
  Type u = *t;
  for (int i = 0; i < u.ndim; i++)
    if (u.dim[i] == c->d) u.dim[i] = c->part;
  return u;
}

static ValId operand_here(Make *k, Build *b, ValId v, int64_t chunk) {
  Chunk *c = k->c;
  if (k->here[v]) return k->here[v];
  if (type_pos(val_type(c->f, v), c->d) < 0) return k->now[v];
  if (!k->sliced[v]) {
    Build at = *b;
    at.why = why_of(c), at.fwd = 0;
    k->sliced[v] = ir_add(
        &at, OP_slice, &k->now[v], 1,
        (Attr){.at = chunk * dim_of(c->m, c->part)->extent, .ndims = 1, .nto = 1, .dims = {c->d}, .to = {c->part}});
  }
  return k->sliced[v];
}

static void copy_inside(Make *k, NodeId id, int64_t chunk) {
  Chunk *c = k->c;
  const Fn *f = c->f;
  const Node *n = fn_node(f, id);
  Build b = build_like(k->s, f, id);
  ValId few[MAX_DIMS], *in = n->nin > COUNT(few) ? NEW_N(c->arena, ValId, n->nin) : few;
  TypeId *type = NEW_N(c->arena, TypeId, n->nout);
  for (uint32_t i = 0; i < n->nin; i++) in[i] = operand_here(k, &b, node_in(f, n)[i], chunk);
  for (uint32_t i = 0; i < n->nout; i++) type[i] = type_intern(c->m, type_here(c, val_type(f, n->out + i)));
  Attr at = n->attr;
  for (uint32_t i = 0; i < at.ndims; i++)
    if (at.dims[i] == c->d) at.dims[i] = c->part;
  b.fwd = n->fwd ? k->node_here[n->fwd] ? k->node_here[n->fwd] : k->node_now[n->fwd] : 0;
  ValId v = ir_add_typed(&b, n->op, in, n->nin, at, type, n->nout, 0);
  k->node_here[id] = k->s->node.n - 1;
  ir_results(n, v, k->here);
  for (uint32_t i = 0; i < n->nout; i++) vec_push(c->arena, &k->parts[n->out + i], v + i);
  NodeId sink = n->nout == 1 && c->kind[n->out] == PART_sum ? k->sink[n->out] : 0;
  if (!sink) return;
  Build add = build_like(k->s, f, sink);
  add.why = why_of(c);
  ir_add(&add, OP_accumulate, &v, 1, fn_node(f, sink)->attr);
}

// What value v of the inside is outside: its chunks side by side, or their sum.
static ValId whole(Make *k, ValId v) {
  Chunk *c = k->c;
  const Type *t = val_type(c->f, v);
  Build b = build_like(k->s, c->f, c->f->val.at[v].def);
  b.why = why_of(c);
  const ValId *part = k->parts[v].at;
  if (c->kind[v] == PART_same) return part[0];
  if (c->kind[v] == PART_sum) {
    ValId sum = part[0];
    for (uint32_t i = 1; i < k->parts[v].n; i++)
      sum = ir_add_typed(&b, OP_add, (ValId[]){sum, part[i]}, 2, (Attr){0}, &c->f->val.at[v].type, 1, 0);
    return sum;
  }
  ValId stack = ir_add(&b, OP_stack, part, k->parts[v].n, (Attr){.ndims = 1, .dims = {c->chunk}});
  Type u = *t; // the chunks where the dim was
  int at = type_pos(t, c->d);
  u.ndim++;
  memmove(u.dim + at + 1, u.dim + at, (size_t)(t->ndim - at) * sizeof *u.dim),
      memmove(u.split + at + 1, u.split + at, (size_t)(t->ndim - at) * sizeof *u.split);
  u.dim[at] = c->chunk, u.dim[at + 1] = c->part, u.split[at] = u.split[at + 1] = 0;
  TypeId id = type_intern(c->m, u);
  if (id != k->s->val.at[stack].type) stack = ir_add_typed(&b, OP_cast, &stack, 1, (Attr){0}, &id, 1, 0);
  return ir_add_typed(&b, OP_merge, &stack, 1,
                      (Attr){.ndims = 2, .nto = 1, .dims = {c->chunk, c->part}, .to = {c->d}}, &c->f->val.at[v].type,
                      1, 0);
}

static void make(Chunk *c) {
  const Fn *f = c->f;
  Make make_state = {.c = c,
                     .s = fn_like(c->m, f, intern_printf(c->m->in, "%s:chunk", f->name)),
                     .now = NEW_N(c->arena, ValId, f->val.n)},
       *k = &make_state;
  const uint32_t *uses = fn_uses(f, c->arena);
  k->node_now = NEW_N(c->arena, NodeId, f->node.n), k->sink = NEW_N(c->arena, NodeId, f->val.n);
  k->parts = NEW_N(c->arena, Parts, f->val.n);
  for (NodeId i = 1; i < f->node.n; i++)
    if (fn_node(f, i)->op == OP_accumulate && uses[node_in(f, fn_node(f, i))[0]] == 1)
      k->sink[node_in(f, fn_node(f, i))[0]] = i;
  ir_args(k->s, f, k->now);
  bool *after = NEW_N(c->arena, bool, f->node.n); // it depends on the product, and runs after the chunks
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    for (uint32_t j = 0; j < n->nin; j++) after[i] |= c->depends[node_in(f, n)[j]];
    if (!after[i] && !c->inside[i]) copy_outside(k, i);
  }
  for (int64_t chunk = 0; chunk < c->chunks; chunk++) {
    k->here = NEW_N(c->arena, ValId, f->val.n), k->sliced = NEW_N(c->arena, ValId, f->val.n),
    k->node_here = NEW_N(c->arena, NodeId, f->node.n);
    for (NodeId i = 1; i < f->node.n; i++)
      if (c->inside[i]) copy_inside(k, i, chunk);
  }
  for (NodeId i = 1; i < f->node.n; i++) {
    const Node *n = fn_node(f, i);
    bool gone = !n->nout && k->sink[node_in(f, n)[0]] == i && c->kind[node_in(f, n)[0]] == PART_sum;
    if (!after[i] || c->inside[i] || gone) continue;
    for (uint32_t j = 0; j < n->nin; j++) {
      ValId v = node_in(f, n)[j];
      if (!k->now[v]) k->now[v] = whole(k, v);
    }
    copy_outside(k, i);
  }
  for (uint32_t i = 0; i < f->ret.n; i++) {
    ValId v = f->ret.at[i];
    if (!k->now[v]) k->now[v] = whole(k, v);
    ir_return(k->s, k->now[v], f->ret_name.at[i]);
  }
  fn_replace(c->m, (Fn *)(uintptr_t)f, k->s);
}

// ---- which, and into how many -----------------------------------------------------------------------------------
static DimId new_dim(Module *m, DimId of, const char *what, int64_t n) {
  const Dim *d = dim_of(m, of);
  Str name = intern_printf(m->in, "%s.%s", d->name, what);
  for (int i = 2; dim_find(m, name); i++) name = intern_printf(m->in, "%s.%s%d", d->name, what, i);
  return dim_add(m, (Dim){.name = name, .extent = n, .size = n});
}

// Into at least `want` equal pieces, at most CHUNKS, or else into as many as are possible below; 0: it cannot be cut.
static int64_t pieces(const Dim *d, int64_t want) {
  if (d->extent != d->size || d->zigzag || d->ragged) return 0;
  for (int64_t n = want; n <= CHUNKS && n <= d->extent; n++)
    if (d->extent % n == 0) return n;
  for (int64_t n = MIN(want, d->extent); n > 1; n--)
    if (d->extent % n == 0) return n;
  return 1;
}

static bool is_weight(const Chunk *c, ValId v) {
  const Node *n = c->f->val.at[v].def ? fn_node(c->f, c->f->val.at[v].def) : 0;
  while (n && n->nin == 1 && (n->op == OP_cast || op_has(n->op, OPF_VIEW | OPF_COLL))) {
    v = node_in(c->f, n)[0];
    n = c->f->val.at[v].def ? fn_node(c->f, c->f->val.at[v].def) : 0;
  }
  return n && n->op == OP_read && c->m->var.at[n->attr.var].kind != VAR_scalar;
}

// A product of the forward pass with a weight, wider than what comes in; the chunk's wide dims and rows.
static bool widens(Chunk *c, NodeId id) {
  const Node *n = fn_node(c->f, id);
  if (n->op != OP_dot || n->fwd) return false;
  ValId x = node_in(c->f, n)[0], y = node_in(c->f, n)[1];
  if (is_weight(c, x) == is_weight(c, y)) return false;
  const Type *t = val_type(c->f, n->out), *in = val_type(c->f, is_weight(c, x) ? y : x);
  if (type_count(c->m, t) <= type_count(c->m, in)) return false;
  c->nwide = c->nrow = 0, c->width = (double)type_count(c->m, t) / (double)MAX(type_count(c->m, in), 1);
  for (int i = 0; i < t->ndim; i++)
    if (type_pos(in, t->dim[i]) < 0) c->wide[c->nwide++] = t->dim[i];
    else c->row[c->nrow++] = t->dim[i];
  return c->nwide && c->nrow;
}

// Which of the rows' dims is cut, and into how many: all that is wanted of one, or the most that one gives.
static void choose_dim(Chunk *c, const Type *t, int64_t want) {
  c->chunks = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (!dims_have(c->row, c->nrow, t->dim[i]) || t->split[i]) continue;
    int64_t n = pieces(dim_of(c->m, t->dim[i]), want);
    if (n > c->chunks && c->chunks < want) c->d = t->dim[i], c->chunks = n;
  }
}

static bool try_product(Module *m, const Fn *f, NodeId id, int64_t rows_of_chunk) {
  Arena *a = arena_create();
  Chunk c = {.m = m, .f = f, .arena = a};
  const Type *t = val_type(f, fn_node(f, id)->out);
  bool done = widens(&c, id) && (rows_of_chunk || (c.width >= WIDER && type_bytes(m, t) >= LARGE));
  if (done) {
    int64_t rows = 1;
    for (uint32_t i = 0; i < c.nrow; i++) rows *= dim_of(m, c.row[i])->size;
    int64_t most = rows_of_chunk ? rows_of_chunk : MAX(LEAST, PIECE / MAX(type_bytes(m, t) / MAX(rows, 1), 1));
    choose_dim(&c, t, MIN((rows + most - 1) / most, CHUNKS));
    c.depends = NEW_N(a, bool, f->val.n), c.inside = NEW_N(a, bool, f->node.n), c.kind = NEW_N(a, uint8_t, f->val.n);
    if (c.chunks) find_inside(&c, id);
    done = c.chunks && may_chunk(&c);
  }
  if (done) {
    int64_t extent = dim_of(m, c.d)->extent;
    c.part = new_dim(m, c.d, "part", extent / c.chunks), c.chunk = new_dim(m, c.d, "chunk", c.chunks);
    make(&c);
  }
  arena_destroy(a);
  return done;
}

// The last product that can be: the head.
bool pass_chunk(Module *m) {
  int64_t rows = (int64_t)setting_num(m, "train.chunk", 0);
  for (FnId i = 1; i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    if (f->is_body) continue;
    Chunk look = {.m = m, .f = f};
    bool done = false;
    for (NodeId n = f->node.n; n-- > 1 && !done;) {
      if (!widens(&look, n)) continue;
      done = try_product(m, f, n, rows);
      if (rows) break;                                     // asked for: of the last one, or not at all
    }
  }
  return true;
}
