// terms.c -- see terms.h.
#include "runtime/terms.h"
#include "runtime/comm_way.h"
#include <string.h>

// of: the values of each rank, one behind the other, each with its 0
static Status compare(const Comm *c, Arena *a, const Term *t, size_t count, const Text *of) {
  Str *value = NEW_N(a, Str, comm_ranks(c)), *next = NEW_N(a, Str, comm_ranks(c));
  for (int64_t r = 0; r < comm_ranks(c); r++) next[r] = of[r].s;
  for (size_t i = 0; i < count; i++) {
    for (int64_t r = 0; r < comm_ranks(c); r++) value[r] = next[r], next[r] += strlen(next[r]) + 1;
    TRY(comm_alike(c, t[i].what, value, t[i].mend));
  }
  return 0;
}

Status terms_check(Notes *n, const Term *t, size_t count) {
  Comm *c = n->comm;
  if (comm_ranks(c) == 1) return 0;
  Arena *a = arena_create();
  Text mine, *of = NEW_N(a, Text, comm_ranks(c));
  text_init(&mine, a);
  for (int64_t r = 0; r < comm_ranks(c); r++) text_init(&of[r], a);
  for (size_t i = 0; i < count; i++) text_add(&mine, t[i].value, strlen(t[i].value) + 1);
  Status s = notes_collect(n, &mine, of);
  int64_t differ = s || comm_rank(c) ? 0 : compare(c, a, t, count, of);
  if (!s) s = comm_agree(c, &differ);
  arena_destroy(a);
  return s ? s : (Status)differ;
}
