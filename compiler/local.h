// local.h -- what the ranks of a mesh hold of a value, all in one process, and how entries move between parts.
//
// Floats are stored as double, integers and bools as int64_t, on each rank in the type's dim order, stored entries
// (with padding) without gaps. The padding is 0.
#ifndef MT_LOCAL_H
#define MT_LOCAL_H
#include "compiler/interp.h"

// ---- one rank's places along a dim: place p holds entry global[p] (0: base + p); place[g]: the inverse, -1: not here
typedef struct {
  int64_t n, base, extent;                   // places; entries that exist in all
  const int64_t *global, *place;
} Order;

static inline int64_t order_global(const Order *o, int64_t p) { return o->global ? o->global[p] : o->base + p; }
static inline int64_t order_place(const Order *o, int64_t g) {
  if (o->place) return g >= 0 && g < o->extent ? o->place[g] : -1;
  return g >= o->base && g < o->base + o->n && g < o->extent ? g - o->base : -1;
}

typedef struct {
  Type    type;                              // as in the module; in a body: split as the node's operands are
  int64_t n[MAX_DIMS], stride[MAX_DIMS], count; // on each rank
  void  **rank;                              // one array a rank
  bool    borrowed;                          // a variable's own storage
} Local;

typedef struct { VarId var; bool add; Local x; } Store; // a write or accumulate, done when the function is over

struct Interp {
  Arena *arena;
  const Module *m;
  uint32_t ranks;
  uint32_t coord_step[MAX_AXES];             // ranks between neighbours along an axis
  Map   order;                               // dim, pieces, piece -> Order
  void *free[64];                            // arrays of 2^i bytes to use again
  VEC(void *) scratch;                       // given back after each node
  VEC(Local) var;
  VEC(Store) store;
  uint64_t seed;
  bool  first;
  const char *fault;
};

static inline bool cells_float(DType t) { return dtype_is_float(t); }
// the first with the same coordinates on these axes
uint32_t rank_alike(const Interp *it, uint32_t rank, uint8_t axes);
const Order *order_of(Interp *it, DimId d, Split s, uint32_t rank);
static inline const Order *local_order(Interp *it, const Local *l, int i, uint32_t rank) {
  return order_of(it, l->type.dim[i], l->type.split[i], rank);
}

void *pool_get(Interp *it, size_t bytes);                              // not zeroed
void  pool_put(Interp *it, void *p);
void *scratch_get(Interp *it, size_t bytes);
void  scratch_free(Interp *it);

Local local_create(Interp *it, const Type *t);                         // all 0
void  local_free(Interp *it, Local *l);
int64_t local_real(Interp *it, const Local *l, uint32_t rank);         // entries that are no padding
void  local_finish(Interp *it, Local *l, uint32_t rank);               // rounded to the dtype, padding 0
// false: ranks a and b should hold the same
bool  local_replicas(Interp *it, const Local *l, uint32_t *a, uint32_t *b);

int64_t int_of(DType t, double v);                                     // as a cast

// ---- moving entries: places to[i] <- from[i] along each of a few dims --------------------------------------------
typedef struct { int64_t n, to, from, dto, dfrom, *tos, *froms; } Pairs;  // to + i·dto, or tos[i]
typedef enum { MOVE_copy, MOVE_add, MOVE_max } Move;

// the entries of `to` whose number plus `shift` is one of `from`; steps are the places' strides
Pairs pairs_match(Interp *it, const Order *to, int64_t to_step, const Order *from, int64_t from_step, int64_t shift);
// the entries that exist, alike on both sides
Pairs pairs_real(Interp *it, const Order *o, int64_t to_step, int64_t from_step);
Pairs pairs_table(Interp *it, int64_t room);                                        // to be filled: tos, froms, n
// how many entries moved
int64_t cells_move(DType t, void *to, const void *from, const Pairs *p, uint32_t n, Move how);
// Every entry of `to` that `from` (another order of the same dims) has, on one rank each.
int64_t local_move(Interp *it, Local *to, uint32_t to_rank, const Local *from, uint32_t from_rank, Move how);

// ---- one node on all ranks ----------------------------------------------------------------------------------------
typedef struct { const Fn *fn; const Node *node; const Local **in; Local *out; } OpCall; // out: created, 0
bool op_run(Interp *it, const OpCall *w);                                // false: fault set
bool interp_set_fault(Interp *it, const char *fmt, ...) PRINTF(2, 3);  // false
#endif
