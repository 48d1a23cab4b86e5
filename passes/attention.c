// attention.c -- attention and its gradient as one kernel each (runtime/kernel_attention.h): where the operands lie,
// in how many units, and the text that says so.
//
// The kernel takes one dim each for queries, keys and what is contracted; all other dims are q's, and
// k and v have the same ones of them. Everything else (other formats, a mask over more dims, padded
// dims besides) is left to the definition.
#include "passes/group.h"
#include <math.h>
#include <string.h>

enum { LEAST_UNITS = 16, WHOLE_UNITS = 8 };  // fewer heads than the second: their queries are dealt to more units
enum { PAIRS = 1 << 14 };                    // of queries and keys, worth claiming at once

typedef struct { const Groups *g; const Fn *f; const Module *m; Tile *t; DimId s, k, d, other[ATTN_DIMS]; } Make;

// The format of operand o: the kernel's own, or a half format beside f32.
static bool format(Make *c, int o, DType t) {
  Attention *a = &c->t->a;
  bool same = t == c->t->work || (o == ATTN_mask && t == DT_bool),
       half = (t == DT_bf16 || t == DT_f16) && c->t->work == DT_f32 && o != ATTN_lse && o != ATTN_mask;
  a->stored[o] = o == ATTN_mask ? ATTN_bool : !half ? ATTN_work : t == DT_bf16 ? ATTN_bf16 : ATTN_f16;
  return (same || half) && (o != ATTN_mask) == (t != DT_bool);
}

static int32_t rounded(DType t) { return t == DT_bf16 ? 1 : t == DT_f16 ? 2 : 0; }    // Attention.half

// Operand o is v: its strides by what they walk along; false: it has another dim.
static bool operand(Make *c, int o, ValId v, bool written) {
  Attention *a = &c->t->a;
  const Type *t = val_type(c->f, v);
  TileArg *arg = &c->t->arg[c->t->narg];
  int64_t stride[MAX_DIMS];
  if (!type_is_whole(t) || !format(c, o, t->dtype)) return false;
  *arg = (TileArg){.t = t->dtype, .written = written};
  if (written) made_at(c->g, c->f, v, &arg->base, &arg->at, stride);
  else locate(c->f, v, true, &arg->base, &arg->at, stride);
  arg->count = type_count(c->m, val_type(c->f, arg->base)) - arg->at;
  for (int i = 0; i < t->ndim; i++) {
    int64_t *to = t->dim[i] == c->s   ? &a->along_s[o]
                  : t->dim[i] == c->k ? &a->along_t[o]
                  : t->dim[i] == c->d ? &a->along_d[o]
                                      : 0;
    for (int32_t j = 0; !to && j < a->nshared + a->ngroup; j++)
      if (c->other[j] == t->dim[i]) to = &a->step[o][j];
    if (!to) return false;
    *to = stride[i];
  }
  a->buffer[o] = (int32_t)c->t->narg++;
  return true;
}

static bool has_all(const Type *t, const DimId *d, int n, int more) { // those dims, and `more` others
  for (int i = 0; i < n; i++)
    if (type_pos(t, d[i]) < 0) return false;
  return t->ndim == n + more;
}

// q's dims besides s and d: first those that k has, then the others
static bool other_dims(Make *c, const Type *q, const Type *k, const Type *v) {
  Attention *a = &c->t->a;
  a->shared = a->groups = 1;
  for (int group = 0; group < 2; group++)
    for (int i = 0; i < q->ndim; i++) {
      DimId d = q->dim[i];
      const Dim *dim = dim_of(c->m, d);
      if (d == c->s || d == c->d || (type_pos(k, d) < 0) != group) continue;
      if (a->nshared + a->ngroup == ATTN_DIMS || dim->size != dim->extent || !dim->size) return false;
      a->n[a->nshared + a->ngroup] = dim->size, c->other[a->nshared + a->ngroup] = d;
      *(group ? &a->ngroup : &a->nshared) += 1, *(group ? &a->groups : &a->shared) *= dim->size;
    }
  DimId keys[MAX_DIMS] = {c->k, c->d};
  memcpy(keys + 2, c->other, (size_t)MIN(a->nshared, MAX_DIMS - 2) * sizeof *keys);
  return has_all(k, keys, MIN(a->nshared, MAX_DIMS - 2) + 2, 0) &&
         has_all(v, keys, MIN(a->nshared, MAX_DIMS - 2) + 2, 0);
}

// What the body draws, if it does: the numbers of the pairs, as op random counts them. at: step and sample.
static bool dropout(Make *c, const Node *n, const Node *draw, const ValId at[2]) {
  Attention *a = &c->t->a;
  const Type *t = val_type(c->m->fn.at[n->body], draw->out);
  int64_t *slot[] = {&a->slot_step, &a->slot_sample}, rows = 1, *by_sample = 0;
  for (int k = 0; k < 2; k++) {
    NodeId def = c->f->val.at[at[k]].def;
    if (!def || fn_node(c->f, def)->op != OP_read || c->m->var.at[fn_node(c->f, def)->attr.var].kind != VAR_scalar)
      return false;
    *slot[k] = scalar_slot(c->m, fn_node(c->f, def)->attr.var);
  }
  for (int i = t->ndim; i-- > 0;) {
    const Dim *d = dim_of(c->m, t->dim[i]);
    int64_t *to = t->dim[i] == c->s ? &a->number_s : t->dim[i] == c->k ? &a->number_t : 0;
    for (int32_t j = 0; !to && j < a->nshared + a->ngroup; j++)
      if (c->other[j] == t->dim[i]) to = &a->number[j];
    if (!to) return false;
    if (d->sample && !by_sample) by_sample = to;
    else *to = rows, rows *= dim_of(c->m, dim_whole(c->m, t->dim[i]))->extent;
  }
  if (by_sample) *by_sample = a->number_sample = rows;
  double p = attr_arg(&n->attr, "dropout", 0);
  if (!(p > 0 && p < 1)) return false;
  if (c->t->work == DT_f32) p = (double)(float)p;
  a->draws = 1, a->slot_seed = scalar_slot(c->m, 0), a->least = (uint32_t)ceil(p * 0x1p24),
  a->enlarge = 1 / (1 - attr_arg(&n->attr, "dropout", 0));
  a->random = (int32_t)c->t->narg;
  c->t->arg[c->t->narg++] = (TileArg){.t = DT_i64, .count = 1, .random = draw->attr.path};
  return true;
}

void tile_bake(Tile *t) {
  if (!t->a.draws || t->a.random < 0) return;
  t->a.hash = path_hash(t->arg[--t->narg].random), t->a.random = -1, t->a.work = (int32_t)t->narg;
}

static const Node *only_draw(const Fn *body, bool *more) { // 0: it draws nothing; more: it does so more than once
  const Node *found = 0;
  for (NodeId i = 1; i < body->node.n; i++) {
    if (fn_node(body, i)->op != OP_random) continue;
    if (found && fn_node(body, i)->attr.path != found->attr.path) *more = true;
    found = fn_node(body, i);
  }
  return found;
}

static void deal(Tile *t) {                  // the gradient's units, and where dk and dv are added up
  Attention *a = &t->a;
  int64_t blocks = (a->s_size + a->block - 1) / a->block, most = a->groups * blocks;
  a->chunks = a->shared >= WHOLE_UNITS ? 1 : MIN((LEAST_UNITS + a->shared - 1) / a->shared, most);
  bool here = a->stored[ATTN_dk] == ATTN_work && a->stored[ATTN_dv] == ATTN_work &&
              a->along_d[ATTN_dk] == 1 && a->along_d[ATTN_dv] == 1;
  here &= a->along_t[ATTN_dk] == a->d && a->along_t[ATTN_dv] == a->d;   // rows far apart share few places of a cache
  a->direct = a->chunks == 1 && here && a->d % ATTN_PANEL == 0;
  int64_t width = (a->d + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL,
          rows = (a->t + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL;
  a->near = !a->direct && a->chunks == 1 && rows * width <= ATTN_SUMS;
  a->work = (int32_t)t->narg;
}

static int64_t first_slot(const Module *m, DimId d) { // 1 + its number; 0: d is whole
  VarId v = part_first(m, d);
  return v ? 1 + scalar_slot(m, v) : 0;
}

// d's chunks in zigzag order, and their length; 0: it lies in order
static int64_t chunks_of(const Module *m, DimId d, int64_t *length) {
  int64_t n = dim_zigzag(m, d);
  *length = n ? dim_of(m, dim_whole(m, d))->size / n : 0;
  return n;
}

// Where this rank's entries begin. In zigzag order every block of queries and of keys lies in one chunk.
static bool parts(Make *c) {
  Attention *a = &c->t->a;
  const Module *m = c->m;
  a->first_s = first_slot(m, c->s), a->first_t = first_slot(m, c->k);
  for (int32_t i = 0; i < a->nshared + a->ngroup; i++) a->first[i] = first_slot(m, c->other[i]);
  a->zigzag = chunks_of(m, c->s, &a->length), a->key_zigzag = chunks_of(m, c->k, &a->key_length);
  a->block = ATTN_QUERIES;
  while (a->zigzag && a->length % a->block && a->block > ATTN_STRIP) a->block -= ATTN_STRIP;
  if (a->key_zigzag && (a->key_length % ATTN_KEYS || a->t != a->t_size)) return false;
  return !a->zigzag || a->length % a->block == 0;
}

bool tile_of(const Groups *g, const Fn *f, NodeId id, Tile *t) {
  const Node *n = fn_node(f, id);
  const Attr *at = &n->attr;
  const ValId *in = node_in(f, n);
  *t = (Tile){.backward = n->op == OP_attention_grad};
  if ((n->op != OP_attention && !t->backward) || at->ndims < 3) return false;
  uint32_t given = t->backward ? 6 : 3;
  const Type *q = val_type(f, in[0]), *k = val_type(f, in[1]), *v = val_type(f, in[2]);
  const Module *m = f->module;
  Make c = {.g = g, .f = f, .m = m, .t = t, .s = at->dims[0], .k = at->dims[1], .d = at->dims[2]};
  bool more = false;
  const Node *draw = only_draw(m->fn.at[n->body], &more);
  uint32_t masks = n->nin - given - (draw ? 2 : 0);                    // one or none
  if (n->nin < given || more || masks > 1 || attr_arg(at, "where", 1) != 1) return false;
  if (type_pos(q, c.s) < 0 || type_pos(q, c.d) < 0 || type_pos(q, c.k) >= 0) return false;
  const Dim *s = dim_of(m, c.s), *keys = dim_of(m, c.k), *d = dim_of(m, c.d);
  Attention *a = &t->a;
  t->work = q->dtype == DT_f64 ? DT_f64 : DT_f32;
  if (!s->extent || !keys->extent || !d->extent || d->size > ATTN_WIDTH || !other_dims(&c, q, k, v)) return false;
  a->s = s->extent, a->s_size = s->size, a->t = keys->extent, a->t_size = keys->size, a->d = d->size;
  a->causal = attr_arg(at, "causal", 0) != 0, a->half = rounded(val_type(f, t->backward ? in[4] : n->out)->dtype);
  double window = attr_arg(at, "window", 0);
  a->window = window > 0 ? (int64_t)MIN(window, 1e15) : 0, a->scale = attr_arg(at, "scale", 1);
  if (window != (double)a->window && window > 0) return false;
  if (!parts(&c) || ((a->causal || a->window) && keys->whole)) return false;
  bool ok = operand(&c, ATTN_q, in[0], false) && operand(&c, ATTN_k, in[1], false) && operand(&c, ATTN_v, in[2], false);
  if (ok && masks) ok = operand(&c, ATTN_mask, in[given], false) && type_pos(val_type(f, in[given]), c.k) >= 0;
  if (ok && t->backward) {
    ok = operand(&c, ATTN_dout, in[3], false) && operand(&c, ATTN_out, in[4], false) &&
         operand(&c, ATTN_lse, in[5], false) && operand(&c, ATTN_dq, n->out, true) &&
         operand(&c, ATTN_dk, n->out + 1, true) && operand(&c, ATTN_dv, n->out + 2, true);
  } else if (ok) {
    ok = operand(&c, ATTN_out, n->out, true) && (n->nout < 2 || operand(&c, ATTN_lse, n->out + 1, true));
  }
  if (ok && draw) ok = dropout(&c, n, draw, in + n->nin - 2);
  if (ok && t->backward) deal(t);
  return ok;
}

// ---- what a caller needs to run it -------------------------------------------------------------------------------
Launch tile_launch(const Tile *t) {
  const Attention *a = &t->a;
  int64_t width = (a->d + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL,
          rows = (a->t + ATTN_PANEL - 1) / ATTN_PANEL * ATTN_PANEL,
          blocks = (a->s_size + a->block - 1) / a->block;
  Launch l = {.stages = 1, .grain = {1, 1}};
  l.units[0] = a->shared * (t->backward ? a->chunks : a->groups * blocks);
  // Small units come several at a time: what the next reads is asked for while one is computed.
  l.grain[0] = MAX(MIN(PAIRS / MAX(a->s * a->t, 1), l.units[0] / LEAST_UNITS), 1);
  if (!t->backward) return l;
  if (a->direct || a->near) return l;
  if (a->chunks > 1) l.stages = 2, l.units[1] = a->shared;
  l.work = (a->shared * a->chunks * 2 * rows * width * (int64_t)dtype_bytes(t->work) + 63) & ~(int64_t)63;
  return l;
}

KernelCost tile_cost(const Module *m, const Tile *t) {
  const Attention *a = &t->a;
  (void)m;
  double pairs = 0;                          // that exist, but for the mask
  int64_t all = a->zigzag ? a->zigzag * a->length : a->s;              // in zigzag order every part has as many
  for (int64_t i = 0; i < all; i++) {
    int64_t last = a->causal ? MIN(i + 1, a->t) : a->t, first = a->window > 0 ? MAX(i - a->window + 1, 0) : 0;
    pairs += (double)MAX(last - first, 0);
  }
  pairs *= (double)a->s / (double)all;
  KernelCost cost = {
      .flops = (int64_t)MIN(pairs * (double)(a->shared * a->groups) * (double)a->d * (t->backward ? 10 : 4), 9e18)};
  int64_t q = a->shared * a->groups * a->s * a->d, k = a->shared * a->t * a->d;
  for (int o = 0; o < ATTN_OPERANDS; o++) {
    bool half = a->stored[o] == ATTN_bf16 || a->stored[o] == ATTN_f16;
    int64_t size = half ? 2 : (int64_t)dtype_bytes(t->work);
    bool of_keys = o == ATTN_k || o == ATTN_v || o == ATTN_dk || o == ATTN_dv;
    if (a->stored[o] == ATTN_work || half)
      cost.bytes += size * (of_keys ? k : o == ATTN_lse ? q / a->d : q);
  }
  return cost;
}

// ---- text --------------------------------------------------------------------------------------------------------
static void put_row(Text *o, const char *name, const int64_t *x, int n) {
  text_printf(o, "  .%s = {", name);
  for (int i = 0; i < n; i++) text_printf(o, "%s%lld", i ? ", " : "", (long long)x[i]);
  text_puts(o, "},\n");
}

static void put_description(Text *o, const Attention *a) {
  int64_t stored[ATTN_OPERANDS], buffer[ATTN_OPERANDS];
  text_printf(o,
              "  .block = %lld, .s = %lld, .t = %lld, .d = %lld, .s_size = %lld, .t_size = %lld, .nshared = %d, .ngroup = %d,\n",
              (long long)a->block, (long long)a->s, (long long)a->t, (long long)a->d, (long long)a->s_size, (long long)a->t_size,
              (int)a->nshared, (int)a->ngroup);
  put_row(o, "n", a->n, ATTN_DIMS);
  text_puts(o, "  .step = {");
  for (int i = 0; i < ATTN_OPERANDS; i++)
    for (int j = 0; j < ATTN_DIMS; j++)
      text_printf(o, "%s%lld%s", j ? ", " : "{", (long long)a->step[i][j],
                  j < ATTN_DIMS - 1       ? ""
                  : i < ATTN_OPERANDS - 1 ? "}, "
                                          : "}},\n");
  put_row(o, "along_s", a->along_s, ATTN_OPERANDS), put_row(o, "along_t", a->along_t, ATTN_OPERANDS),
      put_row(o, "along_d", a->along_d, ATTN_OPERANDS);
  for (int i = 0; i < ATTN_OPERANDS; i++) stored[i] = a->stored[i], buffer[i] = a->buffer[i];
  put_row(o, "stored", stored, ATTN_OPERANDS), put_row(o, "buffer", buffer, ATTN_OPERANDS);
  if (a->draws) {
    text_printf(o,
                "  .draws = 1, .random = %d, .hash = %u, .least = %u, .enlarge = %a, .slot_seed = %lld, .slot_step "
                "= %lld, .slot_sample = %lld,\n",
                (int)a->random, (unsigned)a->hash, (unsigned)a->least, a->enlarge, (long long)a->slot_seed,
                (long long)a->slot_step, (long long)a->slot_sample);
    put_row(o, "number", a->number, ATTN_DIMS);
    text_printf(o, "  .number_s = %lld, .number_t = %lld, .number_sample = %lld,\n", (long long)a->number_s,
                (long long)a->number_t, (long long)a->number_sample);
  }
  if (a->first_s || a->zigzag || a->key_zigzag)
    text_printf(o, "  .first_s = %lld, .zigzag = %lld, .length = %lld, .key_zigzag = %lld, .key_length = %lld,\n",
                (long long)a->first_s, (long long)a->zigzag, (long long)a->length, (long long)a->key_zigzag,
                (long long)a->key_length);
  if (a->draws) put_row(o, "first", a->first, ATTN_DIMS), text_printf(o, "  .first_t = %lld,\n", (long long)a->first_t);
  text_printf(o,
              "  .causal = %d, .half = %d, .window = %lld, .scale = %a, .shared = %lld, .groups = %lld, .chunks = "
              "%lld, .direct = %d, .near = %d, .work = %d",
              (int)a->causal, (int)a->half, (long long)a->window, a->scale, (long long)a->shared,
              (long long)a->groups, (long long)a->chunks, (int)a->direct, (int)a->near, (int)a->work);
}

uint64_t tile_hash(const Tile *t) {
  Text o;
  Arena *a = arena_create();
  text_init(&o, a);
  put_description(&o, &t->a);
  for (uint32_t i = 0; i < t->narg; i++)
    text_printf(&o, " %s %lld", dtype_name(t->arg[i].t), (long long)t->arg[i].count);
  uint64_t h = hash_bytes(o.s, o.n, hash_mix(t->work, t->backward));
  arena_destroy(a);
  return h;
}

void tile_text(Text *o, const Tile *t, const char *symbol) {
  const char *w = dtype_name(t->work);
  text_printf(o, "static const Attention %s_is = {\n", symbol);
  put_description(o, &t->a);
  text_puts(o, "};\n");
  for (int stage = 0; stage < (t->backward && t->a.chunks > 1 ? 2 : 1); stage++) {
    text_printf(o, "void %s%s(void *const *buf, const void *scalars, i64 lo, i64 hi) {\n", symbol,
                stage ? "_combine" : "");
    text_printf(o, "  attention_%s_%s(&%s_is, buf, scalars, lo, hi);\n}\n",
                stage         ? "combine"
                : t->backward ? "backward"
                              : "forward",
                w, symbol);
  }
}
