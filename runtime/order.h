// order.h -- which tokens are sample i: Megatron-LM's order of training samples for a seed, index by index.
//
// A *source* is one token file. One source, one split: its sequences repeated for as many epochs as are wanted,
// shuffled (the document index D), cut into windows of seq tokens that overlap by `extra` (the sample index S), and
// the windows permuted (the shuffle index P). Sample i is window P[i]. A *blend* interleaves several sources by
// weight, without randomness. Everything draws from MT19937 started with the same seed.
#ifndef MT_ORDER_H
#define MT_ORDER_H
#include "runtime/indexed.h"

// ---- the generator ----------------------------------------------------------------------------------------------
typedef struct { uint32_t state[624]; int next; } Mt19937;
void     mt_seed(Mt19937 *g, uint32_t seed);
uint32_t mt_draw(Mt19937 *g);
uint64_t mt_upto(Mt19937 *g, uint64_t most);              // 0..most, each as likely; most >= 1

// ---- the rule ---------------------------------------------------------------------------------------------------
enum { TRAIN, VALID, TEST, SPLITS };
extern const Str split_names[SPLITS];

typedef struct { Str prefix; double weight; } Source;
typedef struct { VEC(Source) at; bool weighted; } Sources; // at.n = 0: none
typedef struct {
  int64_t seq;                // tokens per sample
  int64_t seed;               // 0..2^32-1
  int64_t size[SPLITS];       // samples wanted; -1: one epoch of everything
  Sources all, per_split[SPLITS];                         // either all, cut by split; or each split its own
  bool own;                   // per_split counts
  const char *split;          // "990,10,0": shares of the sequences of each source
  bool skip[SPLITS];          // not to be built
  int64_t extra;              // 1: a sample has seq + 1 tokens, the labels are the tokens shifted; 0: seq tokens
  bool keep_partial_valid;    // the last, short sample of valid counts
  double surplus;             // how much more than its share a source of a blend prepares
} OrderRule;
void order_defaults(OrderRule *r);                        // extra 1, surplus 0.005, sizes -1, split "1,0,0"

// "PREFIX", "A B C" (one epoch of all) or "0.3 A 0.7 B", as words.
Status sources_parse(Arena *a, const Str *word, size_t n, Sources *s);
// The shares of a split text: split k is edge[k] .. edge[k + 1] of everything, absent when that is nothing.
Status split_edges(const char *text, double edge[SPLITS + 1]);

// ---- what it gives ----------------------------------------------------------------------------------------------
// A big array of counts: 32 bits each where all of them fit.
typedef struct { void *at; int64_t n; bool wide; } Counts;
static inline int64_t counts_get(const Counts *c, int64_t i) {
  return c->wide ? ((const int64_t *)c->at)[i] : ((const int32_t *)c->at)[i];
}
static inline void counts_set(Counts *c, int64_t i, int64_t v) {
  if (c->wide) ((int64_t *)c->at)[i] = v;
  else ((int32_t *)c->at)[i] = (int32_t)v;
}

typedef struct {              // one source, one split
  const Indexed *source;
  int64_t seq, extra, want;   // want: samples asked for, -1 when none were
  int64_t begin, end;         // its sequences
  int64_t tokens;             // in them
  int64_t epochs, samples;
  bool separate;              // the last epoch is shuffled apart
  Counts document;            // D: sequence numbers
  Counts sample;              // S: (position in D, token in it), samples + 1 pairs; the token is -1 at the end of
                              // an empty last document
  Counts shuffle;             // P
} Order;

typedef struct {              // one split
  bool present;
  int64_t samples;
  VEC(Order) source;
  bool blend;                 // else source.at[0] alone
  double *weight;             // as used for the order; lengths of the sources when exhaustive
  bool exhaustive;
  int16_t *id;                // [samples] the source
  int64_t *sample;            // [samples] its sample
} Split;

typedef struct {
  OrderRule rule;
  VEC(Indexed *) file;        // each prefix once
  Split split[SPLITS];
} SampleOrder;

Status order_open(Arena *a, const OrderRule *r, SampleOrder *o);
void   order_close(SampleOrder *o);

// Tokens [from, from + n) of a sample, which has seq + extra of them; *got is less than n only in the last sample of
// a valid split that keeps it. piece (or 0): for each token the number of the sequence it is from, counted within the
// sample. From any thread.
Status order_read(const SampleOrder *o, int split, int64_t i, int64_t from, int64_t n, int32_t *token, int32_t *piece,
                  int64_t *got);
// Where a token of the sample lies, as text for a message: "C.bin, sequence 7, token 12".
Str    order_place(Arena *a, const SampleOrder *o, int split, int64_t i, int64_t token);
#endif
