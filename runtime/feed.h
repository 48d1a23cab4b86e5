// feed.h -- what the inputs of a step are filled with: token files, or recorded batches. The samples of step s are number
// s·global_batch and on, microbatch j holds j·batch … of them, whatever the layout.
#ifndef MT_FEED_H
#define MT_FEED_H
#include "runtime/data.h"
#include "runtime/plan.h"

typedef struct {
  const char *data, *batches, *split;        // --data, --batches, --split; one of the first two
  int64_t steps;                             // the run's, for the length of the order
  bool train, valid;                         // which splits are wanted
  int64_t rank;                              // its part of every input is fed
} FeedOptions;

typedef struct Feed {
  const Plan *plan;
  bool recorded;                             // from --batches, else from --data
  Data data;
  Batches batches;
  BatchInput *input;                         // [plan->input.n - 1], without the sample dim
  Pieces *piece; Storage *storage;           // [plan->input.n] of an input
  char *room; int32_t *tokens;               // one sample of any input; of tokens
  int64_t step;                              // the step that is fed
  bool valid;                                // feeds the valid split from its sample 0 on; past its end: labels that do not count
} Feed;

Status  feed_open(Arena *a, const Plan *p, const FeedOptions *o, Feed *f);
void    feed_close(Feed *f);
int64_t feed_valid(const Feed *f);                                // samples of the valid split; 0: there is none
Str     feed_rule(Arena *a, const Feed *f);                       // what decides the samples: kept in checkpoints
DataChange feed_change(const Feed *f, Str was);                   // from such a rule to this one
Status  feed_hash(const Feed *f, uint64_t *hash);                 // of the files: of bytes all over them
Str     feed_about(Arena *a, const Feed *f);                      // for the start block
Status  feed_input(void *feed, uint32_t input, int64_t microbatch, void *to);    // a DevFeed
#endif
