// interp.h -- the reference interpreter: what every pass and every kernel is compared with. It runs a function on all
// ranks of the mesh in one process, with plain loops: values are computed in double and rounded to their dtype after
// every op (`float`, not yet resolved, is f64); each rank holds its own part of every value.
//
// A whole array, as callers give and get them: the logical value, its dims in the type's order, entries in their order
// (no zigzag), without padding; one double per entry, whatever the dtype (bools are 0 and 1).
//
// After every node the ranks that hold the same entries of a value are compared bit by bit. What is not as the types
// promise stops the run: interp_fault says which node, which ranks.
#ifndef MT_INTERP_H
#define MT_INTERP_H
#include "compiler/ir.h"

typedef struct Interp Interp;

// variables are 0; of the module as it is from here on
Interp *interp_create(Arena *a, const Module *m);
int64_t interp_count(const Module *m, TypeId t);                  // entries of the whole array
void    interp_set(Interp *it, VarId v, const double *whole);     // on every rank that holds a part
bool    interp_get(Interp *it, VarId v, double *whole);           // pending sums are summed; false: replicas differ
void    interp_seed(Interp *it, uint64_t seed);                   // of random; train.seed, or 0, when not called
// the next run is a step's first microbatch (at the start: yes)
void    interp_first(Interp *it, bool first);
// in: an array per argument; out: room for an array per result (0: not wanted). False: see interp_fault.
bool    interp_run(Interp *it, const Fn *f, const double *const *in, double *const *out);
const char *interp_fault(const Interp *it);                       // why the last call was false


// ---- training: a step as mtrun makes it ---------------------------------------------------------------------------
// For each microbatch `prologue`, then for each `micro`, then `update`; before them the host's scalars are set.
typedef struct { Str name; const double *at; } Feed;              // an input's values of one step: samples first

typedef struct {
  // grad_norm: before clipping; NaN when nothing measures it
  double lr, grad_norm;
  double loss_scale;                                              // that this step used; 1: none
  bool   updated;                                                 // false: the update was skipped
  const double *output;                                           // beside Module.output; valid until the next step
} StepLog;

typedef struct Training Training;
// settings read and checked; parameters are to be set yet
Status  training_create(Arena *a, Interp *it, Training **out);
int64_t training_samples(const Training *t);                      // of a step
// before_update (0: nothing) is called when the gradients are complete: the variables NAME:grad.
Status  training_step(Training *t, const Feed *feed, uint32_t nfeed, void (*before_update)(void *), void *arg,
                      StepLog *log);
Status  training_draw(Training *t);                                // the parameters as a run without --init begins
// the parameters from a checkpoint, whose names must be theirs
Status  training_load(Training *t, const char *path);
// of VAR_param, or VAR_grad: under the parameters' names
Status  training_save(Training *t, const char *path, VarKind kind);

typedef struct { const char *init, *batches, *grads, *final, *log_json; int64_t steps; } InterpOptions; // 0: not given
Status interp_command(Arena *a, const Module *m, const InterpOptions *o); // mtc interp
#endif
