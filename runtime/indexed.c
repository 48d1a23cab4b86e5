// indexed.c -- see indexed.h.
#include "runtime/indexed.h"
#include "runtime/file.h"
#include <errno.h>
#include <unistd.h>

enum { HEAD = 34, PART = 1 << 16 };                       // bytes before the lengths; entries read at a time
static const char magic[9] = "MMIDIDX\0";

// Megatron-LM's numbers for the formats, by number.
static const DType formats[] = {DT_none, DT_u8, DT_i8, DT_i16, DT_i32, DT_i64, DT_f64, DT_f32, DT_u16};

// ---- reading ----------------------------------------------------------------------------------------------------
static Status head_read(Indexed *x, int64_t size) {
  char head[HEAD];
  uint64_t version, n, m;
  if (size < HEAD) return fail(EXIT_INPUT, "%s: %lld bytes, too short for an index", x->idx, (long long)size);
  TRY(file_pread(x->idx_fd, x->idx, 0, head, HEAD));
  memcpy(&version, head + 9, 8), memcpy(&n, head + 18, 8), memcpy(&m, head + 26, 8);
  if (memcmp(head, magic, 9)) return fail(EXIT_INPUT, "%s: not an index: it does not start with MMIDIDX", x->idx);
  if (version != 1) return fail(EXIT_INPUT, "%s: version %llu, 1 is known", x->idx, (unsigned long long)version);
  uint8_t code = (uint8_t)head[17];
  x->dtype = code < COUNT(formats) ? formats[code] : DT_none;
  if (x->dtype == DT_none) return fail(EXIT_INPUT, "%s: unknown number format %d", x->idx, code);
  if (!dtype_is_int(x->dtype))
    return fail(EXIT_INPUT, "%s: tokens are %s, integers are needed", x->idx, dtype_name(x->dtype));
  // n and m are bounded by the size before they are multiplied
  uint64_t room = (uint64_t)(size - HEAD);
  if (n > room / 12 || m > (room - 12 * n) / 8 || (room - 12 * n - 8 * m != 0 && room - 12 * n - 8 * m != n))
    return fail(EXIT_INPUT, "%s: %llu sequences and %llu document entries do not make a file of %lld bytes", x->idx,
                (unsigned long long)n, (unsigned long long)m, (long long)size);
  x->n = (int64_t)n, x->m = (int64_t)m;
  return 0;
}

static Status lengths_read(Arena *a, Indexed *x) {
  int32_t *length = NEW_N(a, int32_t, x->n);
  TRY(file_pread(x->idx_fd, x->idx, HEAD, length, (size_t)x->n * 4));
  for (int64_t i = 0; i < x->n; i++) {
    if (length[i] < 0) return fail(EXIT_INPUT, "%s: sequence %lld has length %d", x->idx, (long long)i, length[i]);
    if (!add_ok(x->tokens, length[i], &x->tokens)) return fail(EXIT_INPUT, "%s: token count overflow", x->idx);
  }
  x->length = length;
  return 0;
}

// Sequences follow each other in .bin: each starts where the one before it ends, or later.
static Status offsets_check(Indexed *x, int64_t *part) {
  int64_t width = (int64_t)dtype_bytes(x->dtype), end = 0;
  for (int64_t i = 0; i < x->n; i++) {
    if (i % PART == 0)
      TRY(file_pread(x->idx_fd, x->idx, HEAD + 4 * x->n + 8 * i, part, (size_t)MIN(x->n - i, PART) * 8));
    int64_t at = part[i % PART];
    if (at < end)
      return fail(EXIT_INPUT,
                  "%s: sequence %lld starts at byte %lld, before byte %lld where the one before it ends",
                  x->idx, (long long)i, (long long)at, (long long)end);
    if (!add_ok(at, x->length[i] * width, &end) || end > x->bin_bytes)
      return fail(EXIT_INPUT,
                  "%s: sequence %lld starts at byte %lld and has %d tokens of %s, %s has %lld bytes", x->idx,
                  (long long)i, (long long)at, x->length[i], dtype_name(x->dtype), x->bin,
                  (long long)x->bin_bytes);
  }
  return 0;
}

static Status documents_check(Indexed *x, int64_t *part) {
  int64_t last = 0;
  if (!x->m) return fail(EXIT_INPUT, "%s: the document table is empty, it must start with 0", x->idx);
  for (int64_t i = 0; i < x->m; i++) {
    if (i % PART == 0) TRY(indexed_documents(x, i, MIN(x->m - i, PART), part));
    int64_t entry = part[i % PART];
    if (entry < last || (!i && entry))
      return fail(EXIT_INPUT, "%s: document entry %lld is %lld, %lld or more is needed", x->idx,
                  (long long)i, (long long)entry, (long long)last);
    last = entry;
  }
  if (last != x->n)
    return fail(EXIT_INPUT, "%s: the document table ends with %lld, there are %lld sequences", x->idx,
                (long long)last, (long long)x->n);
  return 0;
}

static Str without_ending(Arena *a, const char *path) {              // "data/book.txt": "data/book"
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  return arena_strndup(a, path, dot && dot > name ? (size_t)(dot - path) : strlen(path));
}

// Token files are named without what they end in. A text instead of them is named, that is what they are made of.
static Status absent(Arena *a, const char *prefix) {
  size_t n = strlen(prefix);
  const char *end = n > 4 ? prefix + n - 4 : "";
  const char *less = arena_strndup(a, prefix, n - MIN(n, (size_t)4));
  if ((!strcmp(end, ".idx") || !strcmp(end, ".bin")) && !access(arena_printf(a, "%s.idx", less), F_OK))
    return fail(EXIT_MISSING, "%s.idx: No such file or directory; did you mean '%s'?", prefix, less);
  bool text = strcmp(end, ".idx") && strcmp(end, ".bin") && file_is_regular(prefix);
  return fail(EXIT_MISSING, "%s.idx: No such file or directory; mtdata prepare makes token files: "
              "mtdata prepare %s -o %s", prefix, text ? prefix : "TEXT", text ? without_ending(a, prefix) : prefix);
}

Status indexed_open(Arena *a, const char *prefix, Indexed *x) {
  int64_t size;
  *x = (Indexed){.prefix = arena_strndup(a, prefix, strlen(prefix)), .idx = arena_printf(a, "%s.idx", prefix),
                 .bin = arena_printf(a, "%s.bin", prefix), .idx_fd = -1, .bin_fd = -1};
  if (access(x->idx, F_OK) && errno == ENOENT) return absent(a, prefix);
  Status s = file_open(x->idx, &x->idx_fd, &size);
  if (!s) s = file_open(x->bin, &x->bin_fd, &x->bin_bytes);
  if (!s) s = head_read(x, size);
  if (!s) s = lengths_read(a, x);
  Arena *temp = arena_create();
  int64_t *part = NEW_N(temp, int64_t, PART);
  if (!s) s = offsets_check(x, part);
  if (!s) s = documents_check(x, part);
  arena_destroy(temp);
  if (s) indexed_close(x);
  return s;
}

void indexed_close(Indexed *x) {
  if (x->idx_fd >= 0) close(x->idx_fd);
  if (x->bin_fd >= 0) close(x->bin_fd);
  x->idx_fd = x->bin_fd = -1;
}

Status indexed_documents(const Indexed *x, int64_t from, int64_t n, int64_t *entries) {
  return file_pread(x->idx_fd, x->idx, HEAD + 12 * x->n + 8 * from, entries, (size_t)n * 8);
}

static Status indexed_offset(const Indexed *x, int64_t sequence, int64_t *byte) {
  TRY(file_pread(x->idx_fd, x->idx, HEAD + 4 * x->n + 8 * sequence, byte, 8));
  int64_t end;
  if (*byte < 0 || !add_ok(*byte, x->length[sequence] * (int64_t)dtype_bytes(x->dtype), &end) || end > x->bin_bytes)
    return fail(EXIT_IO, "%s: changed while in use: sequence %lld is at byte %lld", x->idx,
                (long long)sequence, (long long)*byte);
  return 0;
}

Status indexed_read(const Indexed *x, int64_t sequence, int64_t from, int64_t n, int32_t *tokens) {
  if (sequence < 0 || sequence >= x->n || from < 0 || n < 0 || from > x->length[sequence] - n)
    bug("%s: %lld tokens from %lld of sequence %lld", x->prefix, (long long)n, (long long)from, (long long)sequence);
  int64_t byte, width = (int64_t)dtype_bytes(x->dtype);
  char part[1 << 13];
  if (!n) return 0;
  TRY(indexed_offset(x, sequence, &byte));
  int64_t step = (int64_t)sizeof part / width;
  for (int64_t i = 0; i < n; i += step) {
    int64_t k = MIN(step, n - i);
    TRY(file_pread(x->bin_fd, x->bin, byte + (from + i) * width, part, (size_t)(k * width)));
    if (x->dtype == DT_u16) {                             // nearly all files
      for (int64_t j = 0; j < k; j++) {
        uint16_t v;
        memcpy(&v, part + 2 * j, 2);
        tokens[i + j] = v;
      }
      continue;
    }
    for (int64_t j = 0; j < k; j++) {
      int64_t v = dtype_load_int(x->dtype, part + j * width);
      if (v > INT32_MAX || v < INT32_MIN)
        return fail(EXIT_INPUT, "%s: token %lld of sequence %lld is %lld", x->bin, (long long)(from + i + j),
                    (long long)sequence, (long long)v);
      tokens[i + j] = (int32_t)v;
    }
  }
  return 0;
}

Status indexed_hash(const Indexed *x, uint64_t *hash) {
  enum { SOME = 4096 };
  int64_t entry[SOME];
  uint64_t tokens, all = hash_bytes(x->length, (size_t)x->n * sizeof *x->length, (uint64_t)x->dtype);
  for (int64_t at = 0; at < x->m; at += SOME) {
    int64_t n = MIN(SOME, x->m - at);
    TRY(indexed_documents(x, at, n, entry));
    all = hash_bytes(entry, (size_t)n * sizeof *entry, all);
  }
  TRY(file_sample(x->bin_fd, x->bin, 0, x->bin_bytes, &tokens));
  *hash = hash_mix(all, tokens);
  return 0;
}

// ---- writing ----------------------------------------------------------------------------------------------------
struct IndexedWriter {
  Arena *arena;
  Str bin, idx, bin_part;                                 // final paths; where .bin grows
  DType dtype;
  FILE *bin_file;
  int64_t open, bytes;                                    // tokens in the open sequence; bytes in .bin
  VEC(int32_t) length;
  VEC(int64_t) document;
};

Status indexed_create(Arena *a, const char *prefix, DType dtype, IndexedWriter **out) {
  IndexedWriter *w = *out = NEW(a, IndexedWriter);
  if (!dtype_is_int(dtype) || dtype == DT_u32 || dtype == DT_u64)
    bug("an index has no number for %s", dtype_name(dtype));
  w->arena = a, w->dtype = dtype;
  w->bin = arena_printf(a, "%s.bin", prefix), w->idx = arena_printf(a, "%s.idx", prefix);
  w->bin_part = arena_printf(a, "%s.%ld.tmp", w->bin, (long)getpid());
  int fd;
  TRY(file_create(w->bin_part, &fd));
  w->bin_file = fdopen(fd, "wb");
  if (!w->bin_file) bug("fdopen of %s", w->bin_part);
  vec_push(a, &w->document, 0);
  return 0;
}

static Status bin_failed(IndexedWriter *w) {
  return fail(EXIT_IO, "writing %s at byte %lld: %s", w->bin, (long long)w->bytes, strerror(errno));
}

Status indexed_add(IndexedWriter *w, const int32_t *tokens, int64_t n) {
  int64_t width = (int64_t)dtype_bytes(w->dtype);
  char part[1 << 13];
  int64_t step = (int64_t)sizeof part / width;
  if (n > INT32_MAX - w->open)
    return fail(EXIT_INPUT, "%s: sequence %u has more than 2147483647 tokens", w->bin, w->length.n);
  for (int64_t i = 0; i < n; i += step) {
    int64_t k = MIN(step, n - i);
    for (int64_t j = 0; j < k; j++) {
      dtype_store_int(w->dtype, part + j * width, tokens[i + j]);
      if (dtype_load_int(w->dtype, part + j * width) != tokens[i + j])
        return fail(EXIT_INPUT, "%s: token %lld of sequence %u is %d, too big for %s", w->bin,
                    (long long)(w->open + i + j), w->length.n, tokens[i + j], dtype_name(w->dtype));
    }
    if (fwrite(part, (size_t)width, (size_t)k, w->bin_file) != (size_t)k) return bin_failed(w);
    w->bytes += k * width;
  }
  w->open += n;
  return 0;
}

Status indexed_end_sequence(IndexedWriter *w) {
  if (w->length.n == 1u << 30) return fail(EXIT_INPUT, "%s: too many sequences", w->bin);
  vec_push(w->arena, &w->length, (int32_t)w->open);
  w->open = 0;
  return 0;
}

Status indexed_end_document(IndexedWriter *w) {
  if (w->open) TRY(indexed_end_sequence(w));
  vec_push(w->arena, &w->document, w->length.n);
  return 0;
}

void indexed_abandon(IndexedWriter *w) {
  if (w->bin_file) fclose(w->bin_file);
  w->bin_file = 0;
  unlink(w->bin_part);
}

static Status idx_write(IndexedWriter *w, Str part) {
  int fd;
  char head[HEAD];
  uint64_t version = 1, n = w->length.n, m = w->document.n;
  TRY(file_create(part, &fd));
  FILE *f = fdopen(fd, "wb");
  memcpy(head, magic, 9), memcpy(head + 9, &version, 8), memcpy(head + 18, &n, 8), memcpy(head + 26, &m, 8);
  for (size_t i = 0; i < COUNT(formats); i++)
    if (formats[i] == w->dtype) head[17] = (char)i;
  fwrite(head, HEAD, 1, f);
  if (n) fwrite(w->length.at, 4, n, f);
  for (int64_t i = 0, at = 0; i < (int64_t)n; i++) {
    fwrite(&at, 8, 1, f);
    at += w->length.at[i] * (int64_t)dtype_bytes(w->dtype);
  }
  fwrite(w->document.at, 8, m, f);
  bool bad = ferror(f) || fflush(f) || fsync(fd);
  int e = errno;
  if (fclose(f) && !bad) bad = true, e = errno;
  return bad ? fail(EXIT_IO, "writing %s: %s", w->idx, strerror(e)) : 0;
}

// Both files are whole before one takes its place. An old .idx with a new .bin must never be there together: the old
// index goes first, the new one comes last.
Status indexed_finish(IndexedWriter *w) {
  Str part = arena_printf(w->arena, "%s.%ld.tmp", w->idx, (long)getpid());
  Status s = 0;
  if (w->open || (int64_t)w->length.n != w->document.at[w->document.n - 1]) s = indexed_end_document(w);
  if (!s && (fflush(w->bin_file) || fsync(fileno(w->bin_file)))) s = bin_failed(w);
  if (fclose(w->bin_file) && !s) s = bin_failed(w);
  w->bin_file = 0;
  if (!s) s = idx_write(w, part);
  if (!s && unlink(w->idx) && errno != ENOENT) s = file_fail(errno, "removing", w->idx);
  if (!s && rename(w->bin_part, w->bin)) s = file_fail(errno, "writing", w->bin);
  if (!s && rename(part, w->idx)) s = file_fail(errno, "writing", w->idx);
  if (!s) return folder_sync_of(w->idx);
  unlink(part);
  indexed_abandon(w);
  return s;
}
