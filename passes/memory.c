// memory.c -- where stored values lie: each has a range of the function's block for as long as a step still reads it.
//
// Steps in order; a value's bytes are taken at the lowest place that is free when it is made, and given back after the
// last step that reads it; what the function returns stays. What a step reads and what it makes never share bytes.
#include "passes/group.h"
#include <stdlib.h>
#include <string.h>

typedef struct { int64_t at, bytes; uint32_t last; } Live;
typedef struct { uint32_t first; ValId v; } Birth;

static int by_birth(const void *a, const void *b) {
  const Birth *x = a, *y = b;
  return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->v < y->v ? -1 : 1;
}

void memory_plan(Groups *g) {
  const Fn *f = g->f;
  VEC(Birth) birth = {0};
  for (ValId v = 1; v < f->val.n; v++) {
    if (g->stored[v] == STORED_small && !g->moved[v] && !g->returned[v]) g->at[v] = g->small_count++;
    if (g->stored[v] == STORED_temp && !g->moved[v]) vec_push(g->arena, &birth, (Birth){g->born[v], v});
  }
  int64_t block = (g->small_count * 8 + 63) & ~(int64_t)63;            // the values without dims come first, for good
  g->temp_bytes = block;
  if (birth.n) qsort(birth.at, birth.n, sizeof *birth.at, by_birth);
  VEC(Live) live = {0};                      // by place
  for (uint32_t i = 0; i < birth.n; i++) {
    ValId v = birth.at[i].v;
    int64_t bytes = (type_bytes(g->m, val_type(f, v)) + 63) & ~(int64_t)63, at = block;
    uint32_t n = 0, where;
    for (uint32_t k = 0; k < live.n; k++)
      if (live.at[k].last >= birth.at[i].first) live.at[n++] = live.at[k];
    live.n = n;
    for (where = 0; where < live.n && live.at[where].at - at < bytes; where++) at = live.at[where].at + live.at[where].bytes;
    g->at[v] = at;
    g->temp_bytes = MAX(g->temp_bytes, at + bytes);
    vec_push(g->arena, &live, (Live){0});
    memmove(live.at + where + 1, live.at + where, (live.n - 1 - where) * sizeof *live.at);
    live.at[where] = (Live){at, bytes, g->returned[v] ? UINT32_MAX : MAX(g->last[v], birth.at[i].first)};
  }
}
