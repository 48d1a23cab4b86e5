// ckpt.h -- checkpoints that survive anything: a save is seen whole or not at all, a load believes what it checked.
//
//   DIR/step_00000100/model.safetensors        masters under checkpoint names, whole tensors, no padding
//                     optimizer.safetensors    NAME.exp_avg, NAME.exp_avg_sq
//                     state.json               CkptState
//                     provenance.json          mesh, plan …: for people; not part of the state, so not in MANIFEST
//                     MANIFEST                 size and hash of each file of the state; written last
//   DIR/latest                                 the name of the newest, for people and tools; we do not read it
//
// A save grows in step_00000100.tmp, which is made durable and then renamed. The bytes depend on no layout.
#ifndef MT_CKPT_H
#define MT_CKPT_H
#include "runtime/safetensors.h"

typedef struct {
  int64_t step;               // steps done; the next one has this number
  int64_t update;             // of them with an update
  int64_t samples;            // consumed
  int64_t seed;
  double  loss_scale;                                     // of the next step; 0: it is not scaled
  int64_t scale_good, scale_bad;                          // see Scale
  Str data_rule;              // data_rule_text
} CkptState;

// ---- saving: begin, put every value of both files (any order, any thread), commit ---------------------------------
enum { CKPT_model, CKPT_optimizer, CKPT_FILES };
typedef struct {
  Arena *arena;
  Str dir, name, temp;        // "DIR", "step_00000100", "DIR/step_00000100.tmp"
  SafetensorsPlan plan[CKPT_FILES];
  Str path[CKPT_FILES];
  int fd[CKPT_FILES], lock;
} CkptWriter;
// Removes what an interrupted save left behind. Refuses while another process saves into dir.
Status ckpt_begin(Arena *a, const char *dir, int64_t step, const Tensor *model, size_t nmodel,
                  const Tensor *optimizer, size_t noptimizer, CkptWriter *w);
// provenance: a JSON object, or 0. keep: how many of the newest checkpoints stay; 0: all.
Status ckpt_commit(CkptWriter *w, const CkptState *s, const char *provenance, int64_t keep);
void   ckpt_abandon(CkptWriter *w);                       // leaves the folder as it was before begin
// All three. A failure leaves older checkpoints untouched and nothing of this one.
Status ckpt_save(Arena *a, const char *dir, const CkptState *s, const Tensor *model, size_t nmodel,
                 const Tensor *optimizer, size_t noptimizer, const TensorSource *from, const char *provenance, int64_t keep);

// ---- loading ------------------------------------------------------------------------------------------------------
typedef struct {
  Str path;
  CkptState state;
  uint64_t hash;                                          // of MANIFEST, which has those of the files
  Safetensors model, optimizer;
} Ckpt;
Status ckpt_open(Arena *a, const char *path, Ckpt *c);    // one step folder; sizes and hashes are verified
// The newest complete one in dir; says which ones it passed over and why. *found is false when there is none at all;
// if there are some and all are damaged, that is an error.
Status ckpt_resume(Arena *a, const char *dir, Ckpt *c, bool *found);
void   ckpt_close(Ckpt *c);
#endif
