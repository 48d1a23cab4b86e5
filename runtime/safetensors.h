// safetensors.h -- the file of named tensors: a reader that checks everything, a writer that is exact to the byte.
//
//   bytes 0..7    N, little endian
//   8..8+N        JSON: {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}}
//   8+N..         the values, C order, little endian; offsets count from here, without holes or overlap
#ifndef MT_SAFETENSORS_H
#define MT_SAFETENSORS_H
#include "runtime/dtype.h"

typedef struct {
  Str name;
  DType dtype;                // DT_none: a format that we do not compute with (F8_E4M3 …); it has bytes only
  Str format;                 // "BF16", as in the file
  int ndim;                   // 0: a scalar
  const int64_t *shape;
  int64_t count, bytes;       // values; bytes in the file
  int64_t at;                 // byte in the file
  uint32_t file;              // index into Safetensors.file
  const void *data;           // for writing: the values, or 0 when they come otherwise
} Tensor;

typedef struct { Str key, value; } Metadata;

// ---- reading ----------------------------------------------------------------------------------------------------
typedef struct {
  Str path;                                   // as the user gave it: a file, or a folder
  VEC(struct { Str path; int fd; }) file;
  VEC(Tensor) tensor;                         // in the order of the file
  VEC(Metadata) metadata;                     // of the first file
  Map index;                                  // hash of the name -> index into tensor
} Safetensors;

// path: a file, or a folder with model.safetensors or model.safetensors.index.json and its shards.
// Everything is checked here; a later read fails only if the file changes or the disk does.
Status safetensors_open(Arena *a, const char *path, Safetensors *s);
void   safetensors_close(Safetensors *s);
const Tensor *safetensors_find(const Safetensors *s, const char *name);      // 0 when absent
// Of what tensors there are and of bytes all over each: two files that differ in all values have two.
Status safetensors_hash(const Safetensors *s, uint64_t *hash);
// n values from value `first` on, converted to the format `to`. From any thread.
Status tensor_read(const Safetensors *s, const Tensor *t, int64_t first, int64_t n, DType to, void *dst);
Str    shape_text(Arena *a, int ndim, const int64_t *shape);                 // "[3, 4]"

// ---- writing ----------------------------------------------------------------------------------------------------
// The same tensors and metadata give the same bytes: sorted by alignment (widest first), then name; the values start
// at a multiple of 64. {"format": "pt"} is always there.
typedef struct {
  VEC(Tensor) tensor;                         // sorted; at and bytes are set
  Text header;                                // the first 8+N bytes
  int64_t size;                               // of the whole file
} SafetensorsPlan;
Status safetensors_plan(Arena *a, const Tensor *t, size_t n, const Metadata *m, size_t nm, SafetensorsPlan *p);
// In steps, for several threads or processes: create (header, room on disk), put (any range of any tensor, in any
// order), file_finish.
Status safetensors_create(const SafetensorsPlan *p, const char *path, int *fd);
Status safetensors_put(const SafetensorsPlan *p, int fd, const char *path, const Tensor *t, int64_t byte,
                       const void *data, int64_t n);
// Where values come from when Tensor.data is 0: puts values first … first+n-1 of t, in its format, to dst.
typedef struct {
  void *user;
  Status (*get)(void *user, const Tensor *t, int64_t first, int64_t n, void *dst);
} TensorSource;
Status safetensors_fill(const SafetensorsPlan *p, int fd, const char *path, const TensorSource *from);   // all of them
// At once: path is replaced whole or not at all. from: 0 when every tensor has data.
Status safetensors_write(Arena *a, const char *path, const Tensor *t, size_t n, const Metadata *m, size_t nm,
                         const TensorSource *from);
#endif
