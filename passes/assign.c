// assign.c -- the layout rule: from map rules to the splits of one op. See layout.h.
#include "passes/layout.h"
#include <string.h>

// ---- rules ------------------------------------------------------------------------------------------------
static bool split_has(Split s, uint32_t axis) { return split_mask(s) >> axis & 1; }

static const char *ways_text(Module *m, Split s) {
  Text t;
  text_init(&t, m->arena);
  for (; s; s >>= 4) text_printf(&t, "%s%s", t.n ? " · " : "", m->axis.at[(s & 15) - 1].name);
  return t.s;
}

// Padding makes every extent divide, at the price of what it adds: said where that is less than the dim itself.
static void suggest_pad(Module *m, const Dim *dim, int64_t ways) {
  enum { ROUND = 128 };                                                // what a large one, a vocabulary, is padded to
  int64_t to = ROUND % ways == 0 && dim->extent >= 8 * ROUND ? ROUND : ways;
  int64_t stored = dim->extent + (to - dim->extent % to) % to;
  const char *name = dim_of(m, dim->root)->name;
  if (dim->sample || dim->whole || dim->size != dim->extent || stored >= 2 * dim->extent) return;
  diag_note(m->diag, "or pad it: dim %s = … pad %lld stores %lld entries, and no result depends on those past %lld", name,
            (long long)to, (long long)stored, (long long)dim->extent);
}

static bool strong_divides(Rules *r, DimId d, Span loc) {
  const Dim *dim = dim_of(r->m, d);
  Split s = r->strong[d];
  int64_t ways = split_ways(r->m, s);
  if (dim->size % ways == 0) return true;
  const char *axes = ways_text(r->m, s);
  diag_error(r->m->diag, loc, "MT0312", "%s = %lld is not divisible by %s = %lld; legal %s: %s", dim->name,
             (long long)dim->size, axes, (long long)ways, axes, divisors_text(r->m->arena, dim->size));
  suggest_pad(r->m, dim, ways);
  return false;
}

static void rule_add(Rules *r, const MapRule *rule, DimId d, bool weak, bool say) {
  Module *m = r->m;
  for (uint32_t k = 0; k < rule->naxis; k++) {
    uint32_t a = rule->axis[k];
    if (!(r->live >> a & 1) || split_has(r->strong[d], a) || r->strong[d] >> 4 * (MAX_SPLIT - 1)) continue;
    if (!weak) r->strong[d] = split_push(r->strong[d], a);
    else if (dim_of(m, d)->size % (split_ways(m, r->strong[d]) * m->axis.at[a].size) == 0)
      vec_push(m->arena, &r->weak, (Weak){d, (uint8_t)a});
    else if (say)
      diag_warning(m->diag, rule->loc, "MT0316",
                   "'%s' is %lld, which %s = %d does not divide further; this weak rule does nothing",
                   dim_of(m, d)->name, (long long)dim_of(m, d)->size, m->axis.at[a].name, m->axis.at[a].size);
  }
}

bool rules_init(Rules *r, Module *m, bool say) {
  *r = (Rules){.m = m, .strong = NEW_N(m->arena, Split, m->dim.n), .part = NEW_N(m->arena, TypeId, m->var.n)};
  r->zero = (int)setting_num(m, "parallel.zero", 0);
  map_init(&r->said, m->arena);
  for (uint32_t i = 0; i < m->axis.n; i++)
    if (m->axis.at[i].size > 1) r->live |= (uint8_t)(1u << i);
  bool ok = true;
  for (int weak = 0; weak < 2; weak++)
    for (uint32_t i = 0; i < m->rule.n; i++) {
      const MapRule *rule = &m->rule.at[i];
      DimId d = dim_find(m, rule->dim);
      if (!d || rule->weak != weak) continue;
      rule_add(r, rule, d, weak, say);
      if (!weak && !strong_divides(r, d, rule->loc)) r->strong[d] = 0, ok = false;
    }
  return ok;
}

bool axis_is_weak(const Rules *r, DimId d, uint32_t axis) {
  for (uint32_t i = 0; i < r->weak.n; i++)
    if (r->weak.at[i].axis == axis && dim_of(r->m, r->weak.at[i].dim)->root == dim_of(r->m, d)->root) return true;
  return false;
}

// ---- one op -----------------------------------------------------------------------------------------------
static Side *side_of(const Space *s, DimId d) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->side[i].dim == d) return (Side *)(uintptr_t)&s->side[i];
  return 0;
}

void space_add(Space *s, DimId d) {
  if (side_of(s, d) || s->n == MAX_SPACE) return;       // no op of a model has so many; one more is whole
  s->side[s->n++] = (Side){.dim = d};
}

bool op_keeps(Op op) { return op == OP_rename || op == OP_split || op == OP_merge; }

void space_of(Space *s, const Fn *f, const Node *n) {
  s->n = 0, s->strong = s->used = 0;
  for (uint32_t i = 0; i < n->nin; i++)
    for (int k = 0; k < val_type(f, node_in(f, n)[i])->ndim; k++) space_add(s, val_type(f, node_in(f, n)[i])->dim[k]);
  if (op_keeps(n->op)) return;
  for (uint32_t i = 0; i < n->nout; i++)
    for (int k = 0; k < val_type(f, n->out + i)->ndim; k++) space_add(s, val_type(f, n->out + i)->dim[k]);
  for (uint32_t i = 0; i < (uint32_t)n->attr.ndims + n->attr.nto; i++) {
    Side *d = side_of(s, i < n->attr.ndims ? n->attr.dims[i] : n->attr.to[i - n->attr.ndims]);
    if (d && op_split(n->op, i) == SPLIT_frozen) d->frozen = true;
  }
}

bool space_assign(const Rules *r, Space *s, bool weak, uint8_t without, DimId clash[2]) {
  s->strong = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    Side *d = &s->side[i];
    d->split = d->frozen ? 0 : r->strong[d->dim];
    uint8_t mask = split_mask(d->split);
    if (mask & s->strong) {
      for (uint32_t j = 0; j < i; j++)
        if (split_mask(s->side[j].split) & mask) clash[0] = s->side[j].dim;
      return clash[1] = d->dim, false;
    }
    s->strong |= mask;
  }
  s->used = s->strong;
  for (uint32_t i = 0; weak && i < r->weak.n; i++) {
    const Weak *w = &r->weak.at[i];
    if ((s->used | without) >> w->axis & 1) continue;
    Side *d = side_of(s, w->dim);
    if (!d || d->frozen || d->split >> (4 * (MAX_SPLIT - 1))) continue;
    if (dim_of(r->m, w->dim)->size % (split_ways(r->m, d->split) * r->m->axis.at[w->axis].size)) continue;
    d->split = split_push(d->split, w->axis);
    s->used |= (uint8_t)(1u << w->axis);
  }
  return true;
}

Split space_split(const Space *s, DimId d) {
  const Side *side = side_of(s, d);
  return side ? side->split : 0;
}

uint8_t space_created(const Space *s, const Fn *f, const Node *n, uint32_t result) {
  uint8_t axes = 0;
  const Attr *at = &n->attr;
  switch (n->op) {
  case OP_dot: case OP_sum: case OP_reduce_max: case OP_gather: case OP_unslice:
    for (uint32_t i = 0; i < at->ndims; i++) axes |= split_mask(space_split(s, at->dims[i]));
    return axes;
  case OP_scatter: {
    const Type *index = val_type(f, node_in(f, n)[1]);
    for (int k = 0; k < index->ndim; k++)
      if (type_pos(val_type(f, n->out), index->dim[k]) < 0) axes |= split_mask(space_split(s, index->dim[k]));
    return axes;
  }
  default:
    for (uint32_t i = 0; op_has(n->op, OPF_COMPOSITE) && i < at->ndims; i++)
      if (op_split(n->op, i) == SPLIT_sum && type_pos(val_type(f, n->out + result), at->dims[i]) < 0)
        axes |= split_mask(space_split(s, at->dims[i]));
    return axes;
  }
}
