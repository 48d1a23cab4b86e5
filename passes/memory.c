// memory.c -- where stored values lie: each has a range of a block for as long as a step still reads it.
//
// Steps in order; a value's bytes are taken when it is made, and given back after the last step that reads it; what the
// function returns stays. What a step reads and what it makes never share bytes. A value lies among the gradients that
// are still to be made, where there is room for as long as it is needed, else at the lowest free place of the
// function's own block: the backward pass needs ever fewer of the forward pass's values and makes ever more gradients.
#include "passes/group.h"
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t at, end; uint32_t last; } Live;
typedef VEC(Live) Lives;                     // by place
typedef struct { uint32_t first; ValId v; } Birth;
typedef struct { int64_t at; uint32_t where, until; } Place; // before live value `where`

static int by_birth(const void *a, const void *b) {
  const Birth *x = a, *y = b;
  return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->v < y->v ? -1 : 1;
}

static void let_go(Lives *l, uint32_t now) { // what no step from now on reads
  uint32_t n = 0;
  for (uint32_t k = 0; k < l->n; k++)
    if (l->at[k].last >= now) l->at[n++] = l->at[k];
  l->n = n;
}

static void take(Arena *a, Lives *l, uint32_t where, Live x) {
  vec_push(a, l, (Live){0});
  memmove(l->at + where + 1, l->at + where, (l->n - 1 - where) * sizeof *l->at);
  l->at[where] = x;
}

static Place lowest(const Lives *l, int64_t begin, int64_t bytes) {
  Place p = {.at = begin};
  for (; p.where < l->n && l->at[p.where].at - p.at < bytes; p.where++) p.at = l->at[p.where].end;
  return p;
}

// When the gradients are wanted that have bytes [at, at + bytes), from range i on; 0: by `last` already, or not all are
// there.
static uint32_t free_until(const Lent *lent, uint32_t n, uint32_t i, int64_t at, int64_t bytes, uint32_t last) {
  uint32_t until = 0;
  for (; i < n && lent[i].until > last; i++) {
    until = MAX(until, lent[i].until);
    if (lent[i].at + lent[i].bytes >= at + bytes) return until;
  }
  return 0;
}

// Among the gradients: where those are wanted soonest after `last`, so that room stays for what is needed longer. A
// value begins where one of them does, or behind another value.
static bool among(const Lives *l, const Lent *lent, uint32_t n, int64_t bytes, uint32_t last, Place *best) {
  uint32_t k = 0;
  *best = (Place){0};
  for (uint32_t i = 0; i < n; i++) {
    int64_t end = lent[i].at + lent[i].bytes, at = lent[i].at;
    if (lent[i].until <= last) continue;
    while (k && l->at[k - 1].end > at) k--;
    for (; at < end; at = l->at[k++].end) {
      while (k < l->n && l->at[k].end <= at) k++;
      uint32_t until = k < l->n && l->at[k].at - at < bytes ? 0 : free_until(lent, n, i, at, bytes, last);
      if (until && (!best->until || until < best->until)) *best = (Place){at, k, until};
      if (k == l->n) break;
    }
  }
  return best->until;
}

void memory_plan(Groups *g, const Lent *lent, uint32_t nlent) {
  const Fn *f = g->f;
  VEC(Birth) birth = {0};
  for (ValId v = 1; v < f->val.n; v++)
    if (g->stored[v] == STORED_small && !g->moved[v] && !g->returned[v]) g->at[v] = g->small_count++;
  find_over(g);
  for (ValId v = 1; v < f->val.n; v++)
    if (g->stored[v] == STORED_temp && !g->moved[v] && !g->over[v])
      vec_push(g->arena, &birth, (Birth){g->born[v], v});
  int64_t block = (g->small_count * 8 + 63) & ~(int64_t)63;            // the values without dims come first, for good
  g->temp_bytes = block;
  if (birth.n) qsort(birth.at, birth.n, sizeof *birth.at, by_birth);
  Lives own = {0}, guests = {0};
  for (uint32_t i = 0; i < birth.n; i++) {
    ValId v = birth.at[i].v;
    int64_t bytes = (type_bytes(g->m, val_type(f, v)) + 63) & ~(int64_t)63;
    uint32_t now = birth.at[i].first, last = g->returned[v] ? UINT32_MAX : MAX(MAX(g->last[v], g->flight[v]), now);
    Place p;
    let_go(&own, now), let_go(&guests, now);
    g->lent[v] = bytes && !g->returned[v] && among(&guests, lent, nlent, bytes, last, &p);
    if (!g->lent[v]) p = lowest(&own, block, bytes), g->temp_bytes = MAX(g->temp_bytes, p.at + bytes);
    g->at[v] = p.at;
    take(g->arena, g->lent[v] ? &guests : &own, p.where, (Live){p.at, p.at + bytes, last});
  }
}
