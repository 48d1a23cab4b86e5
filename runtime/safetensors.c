// safetensors.c -- see safetensors.h.
#include "runtime/safetensors.h"
#include "runtime/file.h"
#include "runtime/json_text.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are little endian, and so are we"
#endif

enum { HEADER_LIMIT = 100000000, INDEX_LIMIT = 100000000, NEST_LIMIT = 8 };

// Formats that the files may have and we do not compute with, by their width in bits.
static const struct { Str name; int bits; } foreign[] = {
  {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
  {"F8_E5M2FNUZ", 8}, {"C64", 64},
};

Str shape_text(Arena *a, int ndim, const int64_t *shape) {
  Text t;
  text_init(&t, a);
  text_puts(&t, "[");
  for (int i = 0; i < ndim; i++) text_printf(&t, "%s%lld", i ? ", " : "", (long long)shape[i]);
  text_puts(&t, "]");
  return t.s;
}

// ---- reading ----------------------------------------------------------------------------------------------------
static Status PRINTF(3, 4) refuse(Str path, Str name, const char *fmt, ...) {
  char why[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(why, sizeof why, fmt, args);
  va_end(args);
  return fail(EXIT_INPUT, "%s: tensor '%.200s'%s: %s", path, name, strlen(name) > 200 ? "…" : "", why);
}

// Fills the value counts and the byte count that format and shape make; checks that nothing overflows.
static Status tensor_measure(Str path, Tensor *t) {
  int bits = (int)dtype_bytes(t->dtype) * 8;
  for (size_t i = 0; i < COUNT(foreign) && !bits; i++)
    if (!strcmp(foreign[i].name, t->format)) bits = foreign[i].bits;
  if (!bits) return refuse(path, t->name, "unknown dtype '%.40s'", t->format);
  int64_t all = 0;
  t->count = 1;
  for (int i = 0; i < t->ndim; i++)
    if (!mul_ok(t->count, t->shape[i], &t->count)) return refuse(path, t->name, "element count overflow");
  if (!mul_ok(t->count, bits, &all)) return refuse(path, t->name, "byte count overflow");
  if (all % 8) return refuse(path, t->name, "%lld values of %s end inside a byte", (long long)t->count, t->format);
  t->bytes = all / 8;
  return 0;
}

static bool json_size(const json_t *j, int64_t *v) {
  return json_is_integer(j) && (*v = json_integer_value(j)) >= 0;
}

// One entry of the header. Offsets are left relative in at.
static Status tensor_parse(Arena *a, Str path, Str name, json_t *entry, Tensor *t) {
  json_t *dtype = json_object_get(entry, "dtype"), *shape = json_object_get(entry, "shape");
  json_t *range = json_object_get(entry, "data_offsets"), *extent;
  size_t i;
  int64_t end;
  *t = (Tensor){.name = arena_strndup(a, name, strlen(name))};
  if (!json_is_string(dtype)) return refuse(path, name, "no dtype");
  if (!json_is_array(shape)) return refuse(path, name, "no shape");
  if (json_array_size(range) != 2) return refuse(path, name, "no data_offsets [begin, end]");
  t->format = arena_strndup(a, json_string_value(dtype), json_string_length(dtype));
  t->dtype = dtype_find_file(t->format);
  if (json_array_size(shape) > INT32_MAX) return refuse(path, name, "too many dims");
  int64_t *dims = NEW_N(a, int64_t, json_array_size(shape));
  json_array_foreach(shape, i, extent)
    if (!json_size(extent, &dims[i])) return refuse(path, name, "dim %zu is not a size", i);
  t->ndim = (int)json_array_size(shape), t->shape = dims;
  if (!json_size(json_array_get(range, 0), &t->at) || !json_size(json_array_get(range, 1), &end) || end < t->at)
    return refuse(path, name, "data_offsets are not [begin, end] with 0 <= begin <= end");
  TRY(tensor_measure(path, t));
  if (end - t->at != t->bytes)
    return refuse(path, name, "%lld bytes are declared, its shape %s and dtype %s make %lld",
                  (long long)(end - t->at), shape_text(a, t->ndim, t->shape), t->format, (long long)t->bytes);
  return 0;
}

static int by_place(const void *x, const void *y) {
  const Tensor *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  return strcmp(a->name, b->name);
}

// Names that differ have, as good as always, hashes that differ; where not, the next free number is taken.
static uint64_t name_key(const char *name) { return hash_bytes(name, strlen(name), 0); }

Status safetensors_hash(const Safetensors *s, uint64_t *hash) {
  *hash = s->tensor.n;
  for (uint32_t i = 0; i < s->tensor.n; i++) {
    const Tensor *t = &s->tensor.at[i];
    uint64_t values;
    *hash = hash_bytes(t->name, strlen(t->name), *hash);
    *hash = hash_bytes(t->format, strlen(t->format), *hash);
    *hash = hash_bytes(t->shape, (size_t)t->ndim * sizeof *t->shape, *hash);
    TRY(file_sample(s->file.at[t->file].fd, s->file.at[t->file].path, t->at, t->bytes, &values));
    *hash = hash_mix(*hash, values);
  }
  return 0;
}

const Tensor *safetensors_find(const Safetensors *s, const char *name) {
  for (uint64_t key = name_key(name);; key++) {
    const uint64_t *i = map_get(&s->index, key);
    if (!i) return 0;
    if (!strcmp(s->tensor.at[*i].name, name)) return &s->tensor.at[*i];
  }
}

static Status tensor_add(Arena *a, Safetensors *s, Tensor t) {
  const Tensor *other = safetensors_find(s, t.name);
  if (other)
    return refuse(s->file.at[t.file].path, t.name, "also in %s", s->file.at[other->file].path);
  uint64_t key = name_key(t.name);
  while (map_get(&s->index, key)) key++;
  map_put(&s->index, key, s->tensor.n);
  vec_push(a, &s->tensor, t);
  return 0;
}

static Status metadata_parse(Arena *a, Safetensors *s, Str path, json_t *meta) {
  const char *key;
  json_t *v;
  if (!json_is_object(meta)) return fail(EXIT_INPUT, "%s: __metadata__ is not an object", path);
  json_object_foreach(meta, key, v) {
    if (!json_is_string(v)) return fail(EXIT_INPUT, "%s: __metadata__ '%.200s' is not a string", path, key);
    if (s->file.n == 1)
      vec_push(a, &s->metadata, (Metadata){arena_strndup(a, key, strlen(key)),
                                           arena_strndup(a, json_string_value(v), json_string_length(v))});
  }
  return 0;
}

// The entries of one file's header; they must tile the bytes behind it.
static Status header_parse(Arena *a, Safetensors *s, json_t *header, int64_t head, int64_t size) {
  Str path = s->file.at[s->file.n - 1].path;
  size_t n = 0;
  const char *name;
  json_t *entry;
  Tensor *t = NEW_N(a, Tensor, json_object_size(header));
  json_object_foreach(header, name, entry) {
    if (!strcmp(name, "__metadata__")) {
      TRY(metadata_parse(a, s, path, entry));
      continue;
    }
    if (!json_is_object(entry)) return refuse(path, name, "its entry is not an object");
    TRY(tensor_parse(a, path, name, entry, &t[n++]));
  }
  qsort(t, n, sizeof *t, by_place);
  int64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    if (t[i].at > at)
      return refuse(path, t[i].name, "bytes %lld to %lld before it belong to no tensor", (long long)at,
                    (long long)t[i].at);
    if (t[i].at < at) return refuse(path, t[i].name, "its bytes overlap those of '%.100s'", t[i - 1].name);
    if (!add_ok(at, t[i].bytes, &at) || at > size - head)
      return refuse(path, t[i].name, "its bytes end at %lld, the file holds %lld", (long long)at,
                    (long long)(size - head));
    t[i].at += head, t[i].file = s->file.n - 1;
    TRY(tensor_add(a, s, t[i]));
  }
  if (at != size - head)
    return fail(EXIT_INPUT, "%s: %lld bytes behind the last tensor", path, (long long)(size - head - at));
  return 0;
}

static Status file_add(Arena *a, Safetensors *s, Str path, int fd, int64_t size) {
  uint64_t n;
  vec_push(a, &s->file, (__typeof__(*s->file.at)){path, fd});
  if (size < 8) return fail(EXIT_INPUT, "%s: %lld bytes, too short for a safetensors file", path, (long long)size);
  TRY(file_pread(fd, path, 0, &n, 8));
  if (n > HEADER_LIMIT || n > (uint64_t)size - 8)
    return fail(EXIT_INPUT, "%s: header length %llu, at most %lld is possible", path, (unsigned long long)n,
                (long long)MIN(size - 8, HEADER_LIMIT));
  char *text = malloc((size_t)n + 1);
  if (!text)
    return fail(EXIT_UNAVAILABLE, "%s: no memory for its header of %llu bytes%s", path, (unsigned long long)n,
                space_limit());
  json_t *header = 0;
  Status status = file_pread(fd, path, 8, text, (size_t)n);
  if (!status) status = json_read(path, text, (size_t)n, NEST_LIMIT, &header);
  if (!status) status = header_parse(a, s, header, 8 + (int64_t)n, size);
  json_decref(header);
  free(text);
  return status;
}

// {"weight_map": {tensor: shard}}: shards are opened once each; map and shards must agree on where each tensor is.
static Status index_parse(Arena *a, Safetensors *s, Str index, json_t *j) {
  json_t *map = json_object_get(j, "weight_map"), *shard;
  const char *name;
  Intern *names = intern_create(a);
  Map opened;                                               // shard -> index into file
  map_init(&opened, a);
  if (!json_is_object(map)) return fail(EXIT_INPUT, "%s: no weight_map", index);
  json_object_foreach(map, name, shard) {
    if (!json_is_string(shard)) return fail(EXIT_INPUT, "%s: weight_map '%.200s' is not a file name", index, name);
    Str file = intern_n(names, json_string_value(shard), json_string_length(shard));
    if (map_get(&opened, key_of(file))) continue;
    int fd;
    int64_t size;
    TRY(file_open_in(s->path, file, &fd, &size));
    map_put(&opened, key_of(file), s->file.n);
    TRY(file_add(a, s, arena_printf(a, "%s/%s", s->path, file), fd, size));
  }
  json_object_foreach(map, name, shard) {
    const Tensor *t = safetensors_find(s, name);
    uint32_t file = (uint32_t)*map_get(&opened, key_of(intern(names, json_string_value(shard))));
    if (!t || t->file != file)
      return fail(EXIT_INPUT, "%s: tensor '%.200s' is not in %s", index, name, s->file.at[file].path);
  }
  for (uint32_t i = 0; i < s->tensor.n; i++)
    if (!json_object_get(map, s->tensor.at[i].name))
      return refuse(s->file.at[s->tensor.at[i].file].path, s->tensor.at[i].name, "not in the index %s", index);
  return 0;
}

// Folders that hold weights of other kinds: those are pickles, programs that we never run.
static Status other_kind(Arena *a, Str folder) {
  static const Str pickled[] = {"latest_checkpointed_iteration.txt", "pytorch_model.bin", "pytorch_model.bin.index.json",
                                "consolidated.00.pth"};
  for (size_t i = 0; i < COUNT(pickled); i++)
    if (!access(arena_printf(a, "%s/%s", folder, pickled[i]), F_OK))
      return fail(EXIT_INPUT, "%s: pickled weights (%s) are not read; convert them to safetensors%s", folder, pickled[i],
                  i ? "" : ", with Megatron Bridge");
  return fail(EXIT_MISSING, "%s: neither model.safetensors nor model.safetensors.index.json is there", folder);
}

static Status folder_open(Arena *a, Safetensors *s) {
  Str whole = arena_printf(a, "%s/model.safetensors", s->path), index = arena_printf(a, "%s.index.json", whole);
  if (!access(whole, F_OK)) {
    int fd;
    int64_t size;
    TRY(file_open(whole, &fd, &size));
    return file_add(a, s, whole, fd, size);
  }
  if (access(index, F_OK)) return other_kind(a, s->path);
  Arena *temp = arena_create();
  char *text;
  size_t n;
  json_t *j = 0;
  Status status = file_read(temp, index, INDEX_LIMIT, &text, &n);
  if (!status) status = json_read(index, text, n, NEST_LIMIT, &j);
  if (!status) status = index_parse(a, s, index, j);
  json_decref(j);
  arena_destroy(temp);
  return status;
}

Status safetensors_open(Arena *a, const char *path, Safetensors *s) {
  struct stat st;
  int fd;
  int64_t size;
  *s = (Safetensors){.path = arena_strndup(a, path, strlen(path))};
  map_init(&s->index, a);
  Status status;
  if (!stat(path, &st) && S_ISDIR(st.st_mode)) status = folder_open(a, s);
  else if (!(status = file_open(path, &fd, &size))) status = file_add(a, s, s->path, fd, size);
  if (status) safetensors_close(s);
  return status;
}

void safetensors_close(Safetensors *s) {
  for (uint32_t i = 0; i < s->file.n; i++) close(s->file.at[i].fd);
  s->file.n = 0;
}

Status tensor_read(const Safetensors *s, const Tensor *t, int64_t first, int64_t n, DType to, void *dst) {
  int fd = s->file.at[t->file].fd;
  Str path = s->file.at[t->file].path;
  if (t->dtype == DT_none) return refuse(path, t->name, "values of dtype %s cannot be read", t->format);
  int64_t width = (int64_t)dtype_bytes(t->dtype), wide = (int64_t)dtype_bytes(to);
  if (first < 0 || n < 0 || first > t->count - n)
    return refuse(path, t->name, "%lld values from %lld of %lld", (long long)n, (long long)first,
                  (long long)t->count);
  if (to == t->dtype) return file_pread(fd, path, t->at + first * width, dst, (size_t)(n * width));
  char part[1 << 15];
  int64_t step = (int64_t)sizeof part / width;
  for (int64_t i = 0; i < n; i += step) {
    int64_t k = MIN(step, n - i);
    TRY(file_pread(fd, path, t->at + (first + i) * width, part, (size_t)(k * width)));
    dtype_convert(to, (char *)dst + i * wide, t->dtype, part, (size_t)k);
  }
  return 0;
}

// ---- writing ----------------------------------------------------------------------------------------------------
static int by_alignment(const void *x, const void *y) {
  const Tensor *a = x, *b = y;
  size_t i = dtype_bytes(a->dtype), j = dtype_bytes(b->dtype);
  return i != j ? (i > j ? -1 : 1) : strcmp(a->name, b->name);
}

Status safetensors_plan(Arena *a, const Tensor *t, size_t n, const Metadata *m, size_t nm, SafetensorsPlan *p) {
  *p = (SafetensorsPlan){.size = 0};
  Text *h = &p->header;
  text_init(h, a);
  text_add(h, "\0\0\0\0\0\0\0\0", 8);
  text_puts(h, "{\"__metadata__\":{\"format\":\"pt\"");
  for (size_t i = 0; i < nm; i++)
    text_puts(h, ","), text_json(h, m[i].key), text_puts(h, ":"), text_json(h, m[i].value);
  text_puts(h, "}");
  for (size_t i = 0; i < n; i++) vec_push(a, &p->tensor, t[i]);
  if (n) qsort(p->tensor.at, n, sizeof *t, by_alignment);
  int64_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    Tensor *e = &p->tensor.at[i];
    if (i && !strcmp(e->name, e[-1].name)) bug("two tensors to write are named '%s'", e->name);
    e->format = dtype_file_name(e->dtype), e->at = at;
    TRY(tensor_measure("writing", e));
    if (!add_ok(at, e->bytes, &at)) return refuse("writing", e->name, "byte count overflow");
    text_puts(h, ","), text_json(h, e->name);
    text_printf(h, ":{\"dtype\":\"%s\",\"shape\":[", e->format);
    for (int d = 0; d < e->ndim; d++) text_printf(h, "%s%lld", d ? "," : "", (long long)e->shape[d]);
    text_printf(h, "],\"data_offsets\":[%lld,%lld]}", (long long)e->at, (long long)at);
  }
  text_puts(h, "}");
  while (h->n % 64) text_add(h, " ", 1);
  uint64_t length = h->n - 8;
  if (length > HEADER_LIMIT)
    return fail(EXIT_INPUT, "a header of %llu bytes is too long", (unsigned long long)length);
  memcpy(h->s, &length, 8);
  for (uint32_t i = 0; i < n; i++) p->tensor.at[i].at += (int64_t)h->n;
  if (!add_ok(at, (int64_t)h->n, &p->size))
    return fail(EXIT_INPUT, "%lld bytes of tensors are too many", (long long)at);
  return 0;
}

Status safetensors_create(const SafetensorsPlan *p, const char *path, int *fd) {
  TRY(file_create(path, fd));
  Status s = file_reserve(*fd, path, p->size);
  if (!s) s = file_pwrite(*fd, path, 0, p->header.s, p->header.n);
  if (s) close(*fd), unlink(path);
  return s;
}

Status safetensors_put(const SafetensorsPlan *p, int fd, const char *path, const Tensor *t, int64_t byte,
                       const void *data, int64_t n) {
  if (t < p->tensor.at || t >= p->tensor.at + p->tensor.n || byte < 0 || n < 0 || byte > t->bytes - n)
    bug("bytes %lld to %lld do not lie in tensor '%s'", (long long)byte, (long long)(byte + n), t->name);
  return file_pwrite(fd, path, t->at + byte, data, (size_t)n);
}

static Status tensor_fill(const SafetensorsPlan *p, int fd, const char *path, const Tensor *t,
                          const TensorSource *from, char *part, int64_t room) {
  if (t->data || !t->count) return safetensors_put(p, fd, path, t, 0, t->data, t->bytes);
  if (!from) bug("tensor '%s' has no values to write", t->name);
  int64_t width = (int64_t)dtype_bytes(t->dtype), step = room / width;
  for (int64_t i = 0; i < t->count; i += step) {
    int64_t n = MIN(step, t->count - i);
    TRY(from->get(from->user, t, i, n, part));
    TRY(safetensors_put(p, fd, path, t, i * width, part, n * width));
  }
  return 0;
}

Status safetensors_fill(const SafetensorsPlan *p, int fd, const char *path, const TensorSource *from) {
  enum { ROOM = 1 << 20 };
  Arena *temp = arena_create();
  char *part = arena_alloc(temp, ROOM);
  Status s = 0;
  for (uint32_t i = 0; i < p->tensor.n && !s; i++) s = tensor_fill(p, fd, path, &p->tensor.at[i], from, part, ROOM);
  arena_destroy(temp);
  return s;
}

Status safetensors_write(Arena *a, const char *path, const Tensor *t, size_t n, const Metadata *m, size_t nm,
                         const TensorSource *from) {
  SafetensorsPlan p;
  int fd;
  Str part = arena_printf(a, "%s.%ld.tmp", path, (long)getpid());
  TRY(safetensors_plan(a, t, n, m, nm, &p));
  TRY(safetensors_create(&p, part, &fd));
  Status s = safetensors_fill(&p, fd, part, from);
  if (s) close(fd);
  else s = file_finish(fd, part);
  if (!s && rename(part, path)) s = file_fail(errno, "writing", path);
  if (s) {
    unlink(part);
    return s;
  }
  return folder_sync_of(path);
}
