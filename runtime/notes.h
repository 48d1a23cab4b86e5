// notes.h -- what the ranks of a run tell each other about the run itself: a few numbers of each, beside the plan's memory.
#ifndef MT_NOTES_H
#define MT_NOTES_H
#include "runtime/comm.h"

// mine[n]: all may read them where a rank has written. mail: room for notes_collect, 0: one rank
typedef struct { Comm *comm; uint64_t *mine; size_t n; char *mail; } Notes;

size_t notes_bytes(const Plan *p);                                 // of a rank's memory, behind the device's
void   notes_open(Arena *a, const Plan *p, Comm *c, size_t behind, Notes *n);
// Between the two, which all ranks call, nothing moves and rank 0 may read what the others have written.
Status notes_hold(const Notes *n);
Status notes_release(const Notes *n);
Status notes_of(const Notes *n, int64_t rank, const uint64_t **there); // valid until the next of the same rank
// Rank 0 gets what each has in `mine` as of[rank]. All ranks call it.
Status notes_collect(Notes *n, const Text *mine, Text *of);
Status notes_least(Notes *n, int64_t *v);                          // all take the least of all
#endif
