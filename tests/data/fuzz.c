// fuzz.c -- opens mutated data and state files, and uses what opened. Each run has its own seed, printed when
// it fails.
//
//   fuzz N FIRST_SEED      N runs
//
// Every refusal must be an exit code and a message that names the file; what opens must be readable to the last byte,
// or fail with a message (a file may promise more than the one beside it holds). Hashes and lengths that only guard
// the rest are often put right again, so that the checks behind them are reached.
#include "runtime/ckpt.h"
#include "runtime/data.h"
#include "tests/data/check.h"
#include "tests/mutate.h"

typedef struct { Arena *arena; uint64_t seed; } Fuzz;

static uint64_t pick(Fuzz *f, uint64_t below) { return draw_below(&f->seed, below); }

// ---- mutations ----------------------------------------------------------------------------------------------------
static const char *const words[] = {
  "{", "}", "[", "]", ",", ":", "\"", "\\u0000", "\\ud800", "null", "true", "-1", "0", "1",
  "18446744073709551615", "9223372036854775807", "4294967296", "1e400", "1.0", "{}", "[]", "\"dtype\"",
  "\"shape\"", "\"data_offsets\"", "\"F32\"", "\"F64\"", "\"F4\"", "\"BOOL\"", "__metadata__", "weight_map",
  "../x", "/etc/passwd", "\xff", " ", "\n", "end", "step", "data_rule", "format", "[[[[[[[[[[[[", };

static void edit(Fuzz *f, Bytes *b) {
  size_t at = pick(f, b->n + 1), few = pick(f, 24), from = pick(f, b->n + 1), many = pick(f, 64);
  size_t to = MIN(b->n, at + few), end = MIN(b->n, from + many);
  int64_t numbers[] = {0, 1, -1, 2, 8, 255, 1 << 16, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN,
                       (int64_t)b->n, (int64_t)b->n - 1, (int64_t)1 << 61, (int64_t)pick(f, 1000)};
  const char *word = words[pick(f, COUNT(words))];
  char byte = (char)pick(f, 256);
  size_t width = (size_t)1 << pick(f, 4);
  switch (pick(f, 11)) {
  case 0: case 1: if (at < b->n) b->s[at] = (char)(b->s[at] ^ 1 << pick(f, 8)); break;
  case 2: if (at < b->n) b->s[at] = byte; break;
  case 3: bytes_splice(f->arena, b, at, at, &byte, 1); break;
  case 4: bytes_splice(f->arena, b, at, to, "", 0); break;
  case 5: bytes_splice(f->arena, b, at, b->n, "", 0); break;
  case 6: bytes_splice(f->arena, b, at, at, arena_strndup(f->arena, b->s + from, end - from), end - from); break;
  case 7: bytes_splice(f->arena, b, at, to, word, strlen(word)); break;
  case 8: bytes_splice(f->arena, b, at, at, word, strlen(word)); break;
  default:                                                 // a number where numbers are
    if (b->n >= 90) at = pick(f, 2) ? at : pick(f, 90);
    if (at + width <= b->n) memcpy(b->s + at, &numbers[pick(f, COUNT(numbers))], width);
  }
}

static Bytes mutated(Fuzz *f, Bytes good) {
  Bytes b = {arena_strndup(f->arena, good.s, good.n), good.n};
  for (uint64_t n = 1 + pick(f, 4); n; n--) edit(f, &b);
  return b;
}

// ---- safetensors --------------------------------------------------------------------------------------------------
static void header_length_repair(Bytes b) {                // the length that ends at the last '}' of the header
  size_t end = 8;
  if (b.n < 8) return;
  for (size_t i = 8; i < b.n && i < 4000; i++)
    if (b.s[i] == '}') end = i + 1;
  memcpy(b.s, &(uint64_t){end - 8}, 8);
}

static Status tensors_use(Fuzz *f, const char *path) {
  Safetensors s;
  TRY(safetensors_open(f->arena, path, &s));
  Status status = 0;
  for (uint32_t i = 0; i < s.tensor.n && !status; i++) {
    const Tensor *t = &s.tensor.at[i];
    if (safetensors_find(&s, t->name) != t) bug("tensor '%s' is not found under its name", t->name);
    if (t->dtype == DT_none || t->bytes > 1 << 20) continue;
    double *v = NEW_N(f->arena, double, t->count);
    status = tensor_read(&s, t, 0, t->count, DT_f64, v);
    if (!status) status = tensor_read(&s, t, 0, t->count, t->dtype, v);
  }
  safetensors_close(&s);
  return status;
}

static Status safetensors_run(Fuzz *f, Bytes good) {
  Bytes b = mutated(f, good);
  if (pick(f, 2)) header_length_repair(b);
  put_file("x.safetensors", b.s, b.n);
  return tensors_use(f, "x.safetensors");
}

static Status index_run(Fuzz *f, Bytes good) {
  Bytes b = mutated(f, good);
  put_file("x/model.safetensors.index.json", b.s, b.n);
  return tensors_use(f, "x");
}

static Status batches_run(Fuzz *f, Bytes good) {
  static const int64_t shape[] = {4};
  BatchInput in[] = {{.name = "tokens", .dtype = DT_i32, .ndim = 1, .shape = shape, .below = 40}};
  Bytes b = mutated(f, good);
  int32_t v[4];
  Batches batches;
  if (pick(f, 2)) header_length_repair(b);
  put_file("x.safetensors", b.s, b.n);
  TRY(batches_open(f->arena, "x.safetensors", in, 1, &batches));
  Status s = 0;
  for (int64_t i = 0; i < MIN(batches.steps, 9) && !s; i++)
    for (int64_t k = 0; k < MIN(batches.samples, 9) && !s; k++) s = batches_read(&batches, in, i, k, v);
  batches_close(&batches);
  return s;
}

// ---- token files --------------------------------------------------------------------------------------------------
static Status idx_run(Fuzz *f, Bytes good) {
  Bytes b = mutated(f, good);
  put_file("x.idx", b.s, b.n);
  DataRule r;
  Data d;
  int32_t tokens[5], labels[5];
  data_defaults(&r);
  r.order.seq = 5, r.order.seed = (int64_t)pick(f, 1000), r.order.size[TRAIN] = (int64_t)pick(f, 60) - 1,
      r.nvocab = 257;
  r.order.split = pick(f, 2) ? "1,0,0" : "60,30,10";
  r.order.keep_partial_valid = pick(f, 2);
  TRY(data_sources(f->arena, pick(f, 3) ? "x" : "0.3 x 0.7 good", &r.order.all));
  if (r.order.all.weighted) r.order.size[TRAIN] = r.order.size[VALID] = r.order.size[TEST] = 20;
  TRY(data_open(f->arena, &r, &d));
  Status s = 0;
  for (int k = 0; k < SPLITS && !s; k++)
    for (int64_t i = 0; i < data_samples(&d, k) && !s; i++)
      s = data_sample(&d, k, i, &(Sample){.tokens = tokens, .labels = labels});
  data_close(&d);
  return s;
}

// ---- checkpoints --------------------------------------------------------------------------------------------------
static const char *const parts[] = {"model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST"};

// A manifest that fits files of these bytes: the hash of the one block's hash, seeded with the size.
static Bytes manifest_of(Fuzz *f, const Bytes file[3]) {
  Text t;
  text_init(&t, f->arena), text_puts(&t, "mt checkpoint 1\n");
  for (int i = 0; i < 3; i++) {
    uint64_t block = hash_bytes(file[i].s, file[i].n, 0);
    text_printf(&t, "%s %zu %016llx\n", parts[i], file[i].n,
                (unsigned long long)hash_bytes(&block, file[i].n ? 8 : 0, file[i].n));
  }
  text_printf(&t, "end %016llx\n", (unsigned long long)hash_bytes(t.s, t.n, 0));
  return (Bytes){t.s, t.n};
}

static Status ckpt_run(Fuzz *f, const Bytes good[4]) {
  Bytes file[4];
  memcpy(file, good, sizeof file);
  size_t which = pick(f, 4);
  file[which] = mutated(f, good[which]);
  if (which < 3 && pick(f, 4)) file[3] = manifest_of(f, file);       // so that only the file's own checks are left
  for (int i = 0; i < 4; i++) put_file(arena_printf(f->arena, "ckpt/%s", parts[i]), file[i].s, file[i].n);
  Ckpt c;
  TRY(ckpt_open(f->arena, "ckpt", &c));
  ckpt_close(&c);
  return 0;
}

// ---- the corpus, the runs -----------------------------------------------------------------------------------------
enum { SAFETENSORS, INDEX, BATCHES, IDX, TARGETS };
typedef struct { Bytes file[TARGETS], ckpt[4]; uint64_t refused; } Corpus;

static void must(Status s) {
  if (s) bug("the corpus could not be written");
}

static Bytes load(Arena *a, const char *path) {
  Bytes b;
  b.s = get_file(a, path, &b.n);
  return b;
}

static void corpus_make(Arena *a, Corpus *c) {
  static int64_t two[] = {2, 3}, none[] = {0}, four[] = {2, 1, 3, 4};
  static float f[6] = {1, 2, 3};
  static double d[6] = {1, 2, 3};
  int32_t tokens[24];
  for (int i = 0; i < 24; i++) tokens[i] = i;
  Tensor t[] = {{.name = "a.weight", .dtype = DT_f32, .ndim = 2, .shape = two, .data = f},
                {.name = "b", .dtype = DT_f64, .ndim = 2, .shape = two, .data = d},
                {.name = "e", .dtype = DT_u8, .ndim = 1, .shape = none}, {.name = "s", .dtype = DT_bool, .data = f}};
  Tensor batch = {.name = "tokens", .dtype = DT_i32, .ndim = 4, .shape = four, .data = tokens};
  must(safetensors_write(a, "good.safetensors", t, COUNT(t), &(Metadata){"k", "v"}, 1, 0));
  must(safetensors_write(a, "batches.safetensors", &batch, 1, 0, 0, 0));
  c->file[SAFETENSORS] = load(a, "good.safetensors"), c->file[BATCHES] = load(a, "batches.safetensors");
  mkdir("x", 0777);
  must(safetensors_write(a, "x/one", t, 2, 0, 0, 0));
  must(safetensors_write(a, "x/two", t + 2, 2, 0, 0, 0));
  const char *index = "{\"metadata\":{\"total_size\":73},"
                      "\"weight_map\":{\"a.weight\":\"one\",\"b\":\"one\",\"e\":\"two\",\"s\":\"two\"}}";
  c->file[INDEX] = (Bytes){arena_strndup(a, index, strlen(index)), strlen(index)};
  for (int k = 0; k < 2; k++) {
    IndexedWriter *w;
    must(indexed_create(a, k ? "x" : "good", DT_u16, &w));
    for (int i = 0; i < 7; i++) {
      must(indexed_add(w, tokens, 3 * i));
      must(indexed_end_sequence(w));
      if (i % 2) must(indexed_end_document(w));
    }
    must(indexed_finish(w));
  }
  c->file[IDX] = load(a, "x.idx");
  CkptState s = {.step = 3, .update = 3, .samples = 24, .seed = 1, .loss_scale = 2, .data_rule = "rule"};
  must(ckpt_save(a, "run", &s, t, 2, t + 2, 2, 0, 0, 0));
  for (int i = 0; i < 4; i++) c->ckpt[i] = load(a, arena_printf(a, "run/step_00000003/%s", parts[i]));
  must(rename("run/step_00000003", "ckpt"));
}

static const char *run(Arena *a, uint64_t seed, void *more) {
  Corpus *c = more;
  Fuzz f = {a, hash_mix(seed, 3)};
  Status s = 0;
  catch_begin();
  switch (pick(&f, TARGETS + 1)) {
  case SAFETENSORS: s = safetensors_run(&f, c->file[SAFETENSORS]); break;
  case INDEX: s = index_run(&f, c->file[INDEX]); break;
  case BATCHES: s = batches_run(&f, c->file[BATCHES]); break;
  case IDX: s = idx_run(&f, c->file[IDX]); break;
  default: s = ckpt_run(&f, c->ckpt);
  }
  const char *message = catch_end();
  c->refused += s != 0;
  if (!s && *message) return arena_printf(a, "done, but said %s", message);
  if (s && s != EXIT_INPUT && s != EXIT_MISSING && s != EXIT_IO)
    return arena_printf(a, "exit code %d: %s", s, message);
  if (s && !strstr(message, "x") && !strstr(message, "ckpt/"))
    return arena_printf(a, "no file in the message: %s", message);
  return said_wrong(message, strlen(message), true);       // a tab may be in a name
}

int main(int argc, char **argv) {
  if (argc != 3) return 64;
  uint64_t n = strtoull(argv[1], 0, 10);
  char folder[64];
  folder_enter(folder);
  Arena *a = arena_create();
  Corpus c = {.refused = 0};
  corpus_make(a, &c);
  uint64_t failed = fuzz_seeds(n, strtoull(argv[2], 0, 10), run, &c);
  if (n > 1000 && (c.refused < n / 3 || c.refused == n))
    printf("fuzz: %llu of %llu refused\n", (unsigned long long)c.refused, (unsigned long long)n), failed++;
  arena_destroy(a);
  folder_leave(folder);
  return failed > 0;
}
