// state.h -- the variables of a running plan as tensors of files: parameters, the optimizer's moments, gradients.
#ifndef MT_STATE_H
#define MT_STATE_H
#include "runtime/dev.h"
#include "runtime/safetensors.h"

typedef enum { VIEW_params, VIEW_moments, VIEW_grads, VIEW_COUNT } View;

typedef struct { uint32_t var; Piece piece; } Stored;              // which variable a tensor is a piece of
// beside each other; F64 for f64 variables, else F32
typedef struct { VEC(Tensor) tensor; VEC(Stored) stored; } Tensors;

// All is still while these run.
typedef struct State {
  const Plan *plan;
  Dev *dev;
  double loss_scale;                         // what the gradients are multiplied by; tensors of files are not
  Tensors view[VIEW_COUNT];                  // NAME · NAME.exp_avg · NAME
  Map by_name;                               // key_of(Tensor.name) -> View << 32 | index
} State;
void   state_init(Arena *a, const Plan *p, Dev *d, State *s);
TensorSource state_source(State *s);                               // for safetensors_write, ckpt_save

void   state_draw(State *s);                                       // initial values of the parameters; a fresh device has the moments, 0
// Every tensor of a view from a file. strict: exactly these. Else names with and without "transformer." and the other
// aliases of tensors.h, buffers and tied copies are passed over; anything missing, unknown or of
// another shape is refused.
Status state_load(State *s, View v, const Safetensors *file, bool strict);
Status state_write(State *s, View v, const char *path);            // one safetensors file
// The norm of each tensor of a view, beside it; of a gradient, without the loss scale. As state_source, rank 0 only.
Status state_norms(State *s, View v, double *norm);
#endif
