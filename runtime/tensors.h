// tensors.h -- how a variable lies in memory, and as which tensors it lies in a checkpoint.
//
// In memory it is one array over its dims, slowest first; each dim stores `size` entries of which the first `extent`
// exist, the rest is padding and 0. In a file it is one tensor for each index of the dims that the holes of its name
// mention, made of the other dims in order, grouped by axis, without padding:
//
//   experts.{expert}.{gate:w1,w3}.weight   [expert, gate, ff, embed]
//     is experts.0.w1.weight [ff, embed], experts.0.w3.weight [ff, embed], experts.1.w1.weight …
#ifndef MT_TENSORS_H
#define MT_TENSORS_H
#include "runtime/base.h"
#include "runtime/dtype.h"

enum { STORAGE_DIMS = 8 };

typedef struct {
  Str     name;                              // "heads"
  int64_t extent, size;
  int     axis;                              // the axis of the tensor it belongs to: from 0, ascending
  int64_t first, part;                       // only places first … first+part-1 lie here; part 0: all of them
  int64_t chunks;                            // entries lie in zigzag order of so many chunks: 0, n-1, 1, n-2, …; 0: in order
} StorageDim;

typedef struct {
  Str   name;                                // with holes: {dim} counts 0, 1, …; {dim:a,b} names the entries
  DType dtype;                               // in memory
  int   ndim;
  StorageDim dim[STORAGE_DIMS];
} Storage;

typedef struct {                             // one tensor of a checkpoint
  Str     name;                              // without holes
  int     ndim;
  int64_t shape[STORAGE_DIMS];
  int64_t count;                             // values
  int64_t at;                                // element of the storage where its first value lies
  int     nloop;                             // its values in order: loops over the storage, slowest first
  struct { int64_t n, stride; } loop[STORAGE_DIMS];
} Piece;
typedef VEC(Piece) Pieces;

// The tensors of a variable, in the order of its hole dims. 0 when right, else what is wrong with the description.
const char *storage_pieces(Arena *a, const Storage *s, Pieces *out);
int64_t storage_count(const Storage *s);     // stored entries with padding; -1 when past 2^62
int64_t storage_here(const Storage *s);      // of those, the ones that lie here
int64_t storage_valid(const Storage *s);     // entries that exist

// How many values from number `value` on lie contiguous, and at which element of the storage; 0 past the end.
int64_t piece_run(const Piece *p, int64_t value, int64_t *at);
// Values first … first+n-1 of the tensor, from and to the storage s (`storage`); padding and values that do not lie
// here are not touched.
void piece_get(const Piece *p, const Storage *s, const void *storage, int64_t first, int64_t n, DType to, void *dst);
void piece_put(const Piece *p, const Storage *s, void *storage, int64_t first, int64_t n, DType from, const void *src);

// A file's shape is right when it groups the tensor's dims in order: [64, 192], [64, 3, 64], [64, 3, 4, 16] are one.
bool piece_fits(const Storage *s, const Piece *p, int ndim, const int64_t *shape);
// "h.0.attn.c_attn.weight is [64, 192] in FILE; [embed 64, qkv 3, heads 4, hd 8] groups to [64, 96]"
Str  piece_mismatch(Arena *a, const Storage *s, const Piece *p, const char *file, int ndim, const int64_t *shape);

// The i-th name that a file may have for this one: itself, with "transformer." put before or taken away, LayerNorm.gamma
// and .beta of old BERT files. 0 when there is no i-th.
Str  tensor_alias(Arena *a, const char *name, int i);
bool tensor_ignored(const char *name);       // buffers that are no parameters: causal masks, rotary tables, position_ids
Str  tensor_tied(const char *name, int i);   // the i-th tensor that this one may repeat in files with a tied head, or 0
#endif
