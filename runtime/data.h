// data.h -- what a training step is fed: samples of token files in the order of order.h, or recorded batches.
#ifndef MT_DATA_H
#define MT_DATA_H
#include "runtime/order.h"
#include "runtime/safetensors.h"

// ---- token files ------------------------------------------------------------------------------------------------
enum { LABEL_IGNORED = -100 };
typedef struct {
  OrderRule order;
  int64_t nvocab;             // ids are 0..nvocab-1; 0: not checked
  int64_t pad, eod;           // ids; -1: none. A label that is pad is ignored, pad itself becomes 0
  bool eod_mask;              // a label whose token is eod is ignored
  bool reset_positions;       // positions start again after each eod
  bool plain_labels;          // as Megatron-LM has them: only the mask tells what is ignored, pad is 0
} DataRule;
void data_defaults(DataRule *r);
// The text of --data: words apart by white space, one word that names a token file is taken whole.
Status data_sources(Arena *a, const char *text, Sources *s);

typedef struct { DataRule rule; SampleOrder order; } Data;
// Refuses what cannot fill one sample. Skips the splits that order.skip says.
Status data_open(Arena *a, const DataRule *r, Data *d);
void   data_close(Data *d);
int64_t data_samples(const Data *d, int split);                   // 0 when there is no such split
// One sample, [seq] each; all but tokens may be 0, not wanted. mask: 0 where the label is ignored; segments: the
// number of the sequence within the sample. Keeps nothing between calls; from any thread.
typedef struct { int32_t *tokens, *labels, *positions, *segments; uint8_t *mask; } Sample;
Status data_sample(const Data *d, int split, int64_t index, const Sample *to);
// All that decides which tokens a sample has, as text: two runs with equal text see the same data.
Str    data_rule_text(Arena *a, const Data *d);
// How what a run with the rule `was` trained on lies in the order of d. Longer: the two differ in the samples wanted
// only, and what comes first is the same; reordered: they differ in that only, but more epochs are shuffled together.
typedef enum { DATA_same, DATA_longer, DATA_reordered, DATA_other } DataChange;
DataChange data_change(const Data *d, Str was);

// ---- recorded batches -------------------------------------------------------------------------------------------
// A safetensors file with one tensor per input, [steps, microbatches, batch, …]; a step's samples are numbered
// through its microbatches.
typedef struct {
  Str name;
  DType dtype;                // as the model takes it
  int ndim;                   // of one sample
  const int64_t *shape;
  int64_t below;              // integers must be 0..below-1; 0: not checked
  bool ignores; int64_t ignored;                                       // this value is possible too
} BatchInput;
typedef struct { Safetensors file; int64_t steps, samples; } Batches;         // samples per step
// The file must hold these inputs, with shapes and formats that fit. Others are noted and passed over.
Status batches_open(Arena *a, const char *path, const BatchInput *in, size_t n, Batches *b);
void   batches_close(Batches *b);
Status batches_read(const Batches *b, const BatchInput *in, int64_t step, int64_t sample, void *to);
#endif
