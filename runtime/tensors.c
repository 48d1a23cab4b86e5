// tensors.c -- see tensors.h.
#include "runtime/tensors.h"

enum { MAX_PIECES = 1 << 20 };

int64_t storage_count(const Storage *s) {
  int64_t n = 1;
  for (int i = 0; i < s->ndim; i++)
    if (s->dim[i].size < 0 || !mul_ok(n, s->dim[i].size, &n) || n > INT64_C(1) << 62) return -1;
  return n;
}

int64_t storage_valid(const Storage *s) {
  int64_t n = 1;
  for (int i = 0; i < s->ndim; i++) n *= s->dim[i].extent;
  return n;
}

// ---- the template -------------------------------------------------------------------------------------------------
// One hole, "{expert}" or "{gate:w1,w3}": its dim, and its list of names or 0.
typedef struct { const char *open, *end; int dim; const char *names; } Hole;

static int dim_named(const Storage *s, const char *name, size_t n) {
  for (int i = 0; i < s->ndim; i++)
    if (strlen(s->dim[i].name) == n && !memcmp(s->dim[i].name, name, n)) return i;
  return -1;
}

// The next hole at or after p; false: there is none. *why is set when it is wrong.
static bool hole_next(Arena *a, const Storage *s, const char *p, Hole *h, const char **why) {
  const char *open = strpbrk(p, "{}");
  if (!open) return false;
  const char *end = *open == '{' ? strpbrk(open + 1, "{}") : 0;
  if (!end || *end != '}') {
    *why = arena_printf(a, "'%s': '%c' without its partner", s->name, *open);
    return false;
  }
  size_t n = strcspn(open + 1, ":}");
  *h = (Hole){open, end + 1, dim_named(s, open + 1, n), open[1 + n] == ':' ? open + 2 + n : 0};
  if (h->dim < 0) {
    *why = arena_printf(a, "'%s': '%.*s' is no dim of the variable", s->name, (int)n, open + 1);
    return false;
  }
  int64_t names = 1;
  for (const char *c = h->names; c && c < end; c++) names += *c == ',';
  if (h->names && names != s->dim[h->dim].extent) {
    *why = arena_printf(a, "'%s' names %lld, %s is %lld", s->name, (long long)names, s->dim[h->dim].name,
                        (long long)s->dim[h->dim].extent);
    return false;
  }
  return true;
}

static void hole_fill(Text *t, const Hole *h, int64_t index) {
  if (!h->names) { text_printf(t, "%lld", (long long)index); return; }
  const char *word = h->names;
  while (index--) word = strchr(word, ',') + 1;
  text_add(t, word, strcspn(word, ",}"));
}

static Str name_of(Arena *a, const Storage *s, const int64_t *index) {
  Text t;
  text_init(&t, a);
  const char *p = s->name, *why = 0;
  for (Hole h; hole_next(a, s, p, &h, &why); p = h.end) {
    text_add(&t, p, (size_t)(h.open - p));
    hole_fill(&t, &h, index[h.dim]);
  }
  text_puts(&t, p);
  return t.s;
}

// ---- the pieces ---------------------------------------------------------------------------------------------------
static const char *storage_check(Arena *a, const Storage *s) {
  if (s->ndim < 0 || s->ndim > STORAGE_DIMS)
    return arena_printf(a, "%d dims, at most %d are possible", s->ndim, STORAGE_DIMS);
  for (int i = 0; i < s->ndim; i++) {
    const StorageDim *d = &s->dim[i];
    if (d->extent < 0 || d->size < d->extent)
      return arena_printf(a, "dim %s has %lld entries in %lld", d->name, (long long)d->extent,
                          (long long)d->size);
    if (d->axis < (i ? d[-1].axis : 0) || d->axis > i)
      return arena_printf(a, "dim %s is on axis %d, out of order", d->name, d->axis);
  }
  return storage_count(s) < 0 ? "too many entries" : 0;
}

// The loops over the dims outside the holes, merged where they are one stretch, and the shape by axis.
static void piece_shape(const Storage *s, const bool *holed, const int64_t *stride, Piece *p) {
  int axis = -1;
  p->count = 1;
  for (int i = 0; i < s->ndim; i++) {
    if (holed[i]) continue;
    int64_t n = s->dim[i].extent;
    if (s->dim[i].axis != axis) p->shape[p->ndim++] = n;
    else p->shape[p->ndim - 1] *= n;
    axis = s->dim[i].axis, p->count *= n;
    if (n == 1) continue;
    bool joins = p->nloop && p->loop[p->nloop - 1].stride == n * stride[i];
    if (joins) p->loop[p->nloop - 1].n *= n, p->loop[p->nloop - 1].stride = stride[i];
    else p->loop[p->nloop].n = n, p->loop[p->nloop++].stride = stride[i];
  }
}

const char *storage_pieces(Arena *a, const Storage *s, Pieces *out) {
  const char *why = storage_check(a, s), *p = s->name;
  if (why) return why;
  bool holed[STORAGE_DIMS] = {0};
  for (Hole h; hole_next(a, s, p, &h, &why); p = h.end) holed[h.dim] = true;
  if (why) return why;
  int64_t stride[STORAGE_DIMS] = {0}, step = 1, total = 1;
  for (int i = s->ndim; i-- > 0; step *= s->dim[i].size) stride[i] = step;
  for (int i = 0; i < s->ndim; i++)
    if (holed[i] && (!mul_ok(total, s->dim[i].extent, &total) || total > MAX_PIECES))
      return arena_printf(a, "'%s' stands for more than %d tensors", s->name, MAX_PIECES);
  int64_t index[STORAGE_DIMS] = {0};
  for (int64_t k = 0; k < total; k++) {
    Piece piece = {.name = name_of(a, s, index)};
    piece_shape(s, holed, stride, &piece);
    for (int i = 0; i < s->ndim; i++) piece.at += index[i] * stride[i];
    vec_push(a, out, piece);
    for (int i = s->ndim; i-- > 0;)                        // the next index, the last hole dim fastest
      if (holed[i]) {
        if (++index[i] < s->dim[i].extent) break;
        index[i] = 0;
      }
  }
  return 0;
}

// ---- values -------------------------------------------------------------------------------------------------------
int64_t piece_run(const Piece *p, int64_t value, int64_t *at) {
  if (value < 0 || value >= p->count) return 0;
  *at = p->at;
  if (!p->nloop) return 1;
  int64_t left = value, last = p->loop[p->nloop - 1].n, in = 0;
  for (int i = p->nloop; i-- > 0; left /= p->loop[i].n) {
    int64_t k = left % p->loop[i].n;
    *at += k * p->loop[i].stride;
    if (i == p->nloop - 1) in = k;
  }
  return p->loop[p->nloop - 1].stride == 1 ? last - in : 1;
}

int64_t storage_here(const Storage *s) {
  int64_t n = 1;
  for (int i = 0; i < s->ndim; i++) n *= s->dim[i].part ? s->dim[i].part : s->dim[i].size;
  return n;
}

// Where element `at` of the whole storage lies here, -1: it does not. *n: so many from it on are alike, at most `most`,
// and none of another row of the last dim.
static int64_t element_here(const Storage *s, int64_t at, int64_t most, int64_t *n) {
  int64_t here = 0, step = 1;
  bool all = true, in = true;
  for (int i = 0; i < s->ndim; i++) all &= !s->dim[i].part && !s->dim[i].chunks;
  *n = most;
  if (all) return at;
  for (int i = s->ndim; i-- > 0; at /= s->dim[i].size) {
    const StorageDim *d = &s->dim[i];
    int64_t k = at % d->size, end = d->part ? d->first + d->part : d->size, row = d->size;
    if (d->chunks) {
      int64_t length = d->size / d->chunks, chunk = k / length, in_chunk = k % length;
      chunk = chunk < d->chunks / 2 ? 2 * chunk : 2 * (d->chunks - 1 - chunk) + 1;
      k = chunk * length + in_chunk, row = (chunk + 1) * length;
    }
    if (i == s->ndim - 1) *n = MIN(most, MIN(k < d->first ? d->first : k < end ? end : d->size, row) - k);
    in &= k >= d->first && k < end;
    here += (k - d->first) * step, step *= end - d->first;
  }
  return in ? here : -1;
}

void piece_get(const Piece *p, const Storage *s, const void *storage, int64_t first, int64_t n, DType to, void *dst) {
  size_t from_bytes = dtype_bytes(s->dtype), to_bytes = dtype_bytes(to);
  char *d = dst;
  for (int64_t at, run; n > 0 && (run = piece_run(p, first, &at));
       first += run, n -= run, d += (size_t)run * to_bytes) {
    int64_t here = element_here(s, at, MIN(run, n), &run);
    if (here >= 0) dtype_convert(to, d, s->dtype, (const char *)storage + (size_t)here * from_bytes, (size_t)run);
  }
}

void piece_put(const Piece *p, const Storage *s, void *storage, int64_t first, int64_t n, DType from, const void *src) {
  size_t to_bytes = dtype_bytes(s->dtype), from_bytes = dtype_bytes(from);
  const char *d = src;
  for (int64_t at, run; n > 0 && (run = piece_run(p, first, &at));
       first += run, n -= run, d += (size_t)run * from_bytes) {
    int64_t here = element_here(s, at, MIN(run, n), &run);
    if (here >= 0) dtype_convert(s->dtype, (char *)storage + (size_t)here * to_bytes, from, d, (size_t)run);
  }
}

// ---- shapes -------------------------------------------------------------------------------------------------------
static void holes_of(Arena *a, const Storage *s, bool *holed) {
  const char *p = s->name, *why = 0;
  for (Hole h; hole_next(a, s, p, &h, &why); p = h.end) holed[h.dim] = true;
}

bool piece_fits(const Storage *s, const Piece *p, int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; i++)
    if (shape[i] < 0 || !mul_ok(n, shape[i], &n)) return false;
  if (n != p->count) return false;
  if (n == 0) return true;
  Arena *a = arena_create();
  bool holed[STORAGE_DIMS] = {0};
  holes_of(a, s, holed);
  arena_destroy(a);
  int next = 0;
  for (int i = 0; i < ndim; i++) { // each entry of the shape is a product of the next dims
    int64_t group = 1;
    while (group < shape[i] && next < s->ndim) {
      if (!holed[next]) group *= s->dim[next].extent;
      next++;
    }
    if (group != shape[i]) return false;
  }
  return true;                                             // the products agree, so what is left has extent 1
}

static void shape_print(Text *t, int ndim, const int64_t *shape) {
  text_puts(t, "[");
  for (int i = 0; i < ndim; i++) text_printf(t, "%s%lld", i ? ", " : "", (long long)shape[i]);
  text_puts(t, "]");
}

Str piece_mismatch(Arena *a, const Storage *s, const Piece *p, const char *file, int ndim, const int64_t *shape) {
  Text t;
  text_init(&t, a);
  bool holed[STORAGE_DIMS] = {0}, first = true;
  holes_of(a, s, holed);
  text_printf(&t, "%s is ", p->name);
  shape_print(&t, ndim, shape);
  text_printf(&t, " in %s; [", file);
  for (int i = 0; i < s->ndim; i++)
    if (!holed[i]) {
      text_printf(&t, "%s%s %lld", first ? "" : ", ", s->dim[i].name, (long long)s->dim[i].extent);
      first = false;
    }
  text_puts(&t, "] groups to ");
  shape_print(&t, p->ndim, p->shape);
  return t.s;
}

// ---- names --------------------------------------------------------------------------------------------------------

Str tensor_alias(Arena *a, const char *name, int i) {
  static const char prefix[] = "transformer.";
  size_t skip = sizeof prefix - 1;
  bool gain = ends_with(name, "LayerNorm.weight"), bias = ends_with(name, "LayerNorm.bias");
  switch (i) {
    case 0: return name;
    case 1: return strncmp(name, prefix, skip) ? arena_printf(a, "%s%s", prefix, name) : name + skip;
    case 2:
      if (!gain && !bias) return 0;
      return arena_printf(a, "%.*s%s", (int)(strrchr(name, '.') + 1 - name), name, gain ? "gamma" : "beta");
    default: return 0;
  }
}

bool tensor_ignored(const char *name) {
  static const char *const tail[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", ".position_ids"};
  for (size_t i = 0; i < COUNT(tail); i++)
    if (ends_with(name, tail[i])) return true;
  return false;
}

Str tensor_tied(const char *name, int i) {
  static const struct { Str name, of; } pair[] = {
    {"lm_head.weight", "wte.weight"}, {"lm_head.weight", "model.embed_tokens.weight"},
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
  };
  for (size_t k = 0; k < COUNT(pair); k++)
    if (!strcmp(name, pair[k].name) && !i--) return pair[k].of;
  return 0;
}
