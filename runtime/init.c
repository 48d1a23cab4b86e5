// init.c -- see init.h.
#include "runtime/init.h"
#include "runtime/philox.h"
#include "runtime/vector.h"

enum { BLOCK = 512 };                        // values drawn at once
typedef struct Fill Fill;
struct Fill {
  const Storage *s;
  PlanInit init;
  float a, b;
  uint64_t seed;
  uint32_t hash;
  char *storage;
  int64_t row;                               // stored entries of the last dim
};


// n values, numbered from `first`. The same bits on every CPU: the arithmetic is spelled out, only its width differs.
MT_FN void draw(const Fill *f, uint64_t first, int64_t n, float *to) {
  switch (f->init) {
    case PINIT_normal:
      for (int64_t i = 0; i < n; i++) to[i] = f->a * philox_normal(f->seed, 0, f->hash, first + (uint64_t)i);
      return;
    case PINIT_uniform:
      for (int64_t i = 0; i < n; i++) to[i] = f->a + (f->b - f->a) * philox_uniform(f->seed, 0, f->hash, first + (uint64_t)i);
      return;
    case PINIT_ones: case PINIT_zeros: case PINIT_COUNT:
      for (int64_t i = 0; i < n; i++) to[i] = f->init == PINIT_ones ? 1 : 0;
  }
}

VECTORS(void, draw, (const Fill *f, uint64_t first, int64_t n, float *to), (f, first, n, to))

static int64_t here(const StorageDim *d) { return d->part ? d->part : d->size; }

// The number of the first entry of the whole row that a row of the storage is a part of, or -1 for a row of padding.
static int64_t row_number(const Storage *s, int64_t row) {
  int64_t number = 0, step = 1;
  for (int i = s->ndim - 1; i-- > 0;) {
    int64_t k = s->dim[i].first + row % here(&s->dim[i]);
    if (k >= s->dim[i].extent) return -1;
    row /= here(&s->dim[i]), number += k * step, step *= s->dim[i].extent;
  }
  return s->ndim ? number * s->dim[s->ndim - 1].extent : number;
}

static void fill_task(void *with, int64_t lo, int64_t hi, int worker) {
  const Fill *f = with;
  (void)worker;
  size_t width = dtype_bytes(f->s->dtype);
  const StorageDim *last = f->s->ndim ? &f->s->dim[f->s->ndim - 1] : 0;
  int64_t valid = last ? MAX(MIN(last->extent - last->first, f->row), 0) : 1;
  for (int64_t r = lo; r < hi; r++) {
    int64_t first = row_number(f->s, r), n = first < 0 ? 0 : valid;
    char *to = f->storage + (size_t)(r * f->row) * width;
    if (last) first += last->first;
    for (int64_t j = 0; j < n; j += BLOCK) {
      float v[BLOCK];
      int64_t some = MIN(BLOCK, n - j);
      draw_here(f, (uint64_t)(first + j), some, v);
      if (f->s->dtype == DT_f32) memcpy(to + (size_t)j * 4, v, (size_t)some * 4);
      else
        for (int64_t k = 0; k < some; k++) dtype_store(f->s->dtype, to + (size_t)(j + k) * width, (double)v[k]);
    }
    memset(to + (size_t)n * width, 0, (size_t)(f->row - n) * width);
  }
}

void init_values(Work *w, const Storage *s, PlanInit init, double a, double b, int64_t seed, void *storage) {
  Fill f = {s,
            init,
            (float)a,
            (float)b,
            (uint64_t)seed,
            path_hash(s->name),
            storage,
            s->ndim ? here(&s->dim[s->ndim - 1]) : 1};
  int64_t total = storage_here(s);
  if (total > 0) work_run(w, fill_task, &f, total / f.row, 4096 / f.row + 1);
}
