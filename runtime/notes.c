// notes.c -- see notes.h.
#include "runtime/notes.h"

// a number for each variable and each scalar, and some of the host's
static size_t notes_count(const Plan *p) { return (size_t)p->var.n + p->slot.n + 16; }
size_t notes_bytes(const Plan *p) { return (notes_count(p) * sizeof(uint64_t) + 63) / 64 * 64; }

void notes_open(Arena *a, const Plan *p, Comm *c, size_t behind, Notes *n) {
  char *memory = comm_memory(c);
  *n = (Notes){.comm = c, .n = notes_count(p)};
  n->mine = memory ? (uint64_t *)(void *)(memory + behind) : NEW_N(a, uint64_t, n->n);
}

Status notes_hold(const Notes *n) { return comm_hold(n->comm); }
Status notes_release(const Notes *n) { return comm_release(n->comm); }

Status notes_of(const Notes *n, int64_t rank, const uint64_t **there) {
  const void *at;
  TRY(comm_fetch(n->comm, rank, n->mine, n->n * sizeof *n->mine, &at));
  *there = at;
  return 0;
}

Status notes_least(Notes *n, int64_t *v) {
  int64_t least = *v;
  n->mine[0] = (uint64_t)*v;
  TRY(notes_hold(n));
  for (int64_t r = 1; r < comm_ranks(n->comm) && !comm_rank(n->comm); r++) {
    const uint64_t *there;
    TRY(notes_of(n, r, &there));
    least = MIN(least, (int64_t)there[0]);
  }
  TRY(notes_release(n));
  *v = least;
  return comm_agree(n->comm, v);
}
