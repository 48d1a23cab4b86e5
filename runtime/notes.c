// notes.c -- see notes.h.
#include "runtime/notes.h"
#include <string.h>

enum { MAIL = 1 << 18 };                     // bytes of what notes_collect moves at once

// a number for each variable and each scalar, and some of the host's
static size_t notes_count(const Plan *p) { return (size_t)p->var.n + p->slot.n + 16; }
static size_t notes_room(const Plan *p) { return (notes_count(p) * sizeof(uint64_t) + 63) / 64 * 64; }
size_t notes_bytes(const Plan *p) { return notes_room(p) + MAIL; }

void notes_open(Arena *a, const Plan *p, Comm *c, size_t behind, Notes *n) {
  char *memory = comm_memory(c);
  *n = (Notes){.comm = c, .n = notes_count(p)};
  n->mail = memory ? memory + behind + notes_room(p) : 0;
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

static Status take_mail(Notes *n, int64_t rank, Text *of) {
  const uint64_t *there;
  const void *mail;
  TRY(notes_of(n, rank, &there));
  size_t bytes = there[0];
  TRY(comm_fetch(n->comm, rank, n->mail, bytes, &mail));
  text_add(of, mail, bytes);
  return 0;
}

Status notes_collect(Notes *n, const Text *mine, Text *of) {
  int64_t last = -(int64_t)((mine->n + MAIL - 1) / MAIL);
  TRY(notes_least(n, &last));                // the longest decides for all
  for (size_t at = 0; at < (size_t)-last * MAIL; at += MAIL) {
    size_t bytes = at < mine->n ? MIN(MAIL, mine->n - at) : 0;
    if (bytes) memcpy(n->mail, mine->s + at, bytes);
    n->mine[0] = bytes;
    TRY(notes_hold(n));
    for (int64_t r = 0; r < comm_ranks(n->comm) && !comm_rank(n->comm); r++) TRY(take_mail(n, r, &of[r]));
    TRY(notes_release(n));
  }
  return 0;
}
