// Token files: the bytes written, every way an index can be wrong, ids that do not fit, files that shrink,
// 2^31 tokens.
#include "runtime/data.h"
#include "tests/data/scratch.h"

static void write_two(const char *prefix, DType t) {       // [1,2,3] and [4,5], a document each
  IndexedWriter *w;
  assert_int_equal(indexed_create(arena, prefix, t, &w), 0);
  assert_int_equal(indexed_add(w, (int32_t[]){1, 2, 3}, 3), 0);
  assert_int_equal(indexed_end_document(w), 0);
  assert_int_equal(indexed_add(w, (int32_t[]){4}, 1), 0);
  assert_int_equal(indexed_add(w, (int32_t[]){5}, 1), 0);
  assert_int_equal(indexed_finish(w), 0);
}

static void bytes_test(void **state) {
  (void)state;
  const char *hex = "4d4d4944494458000001000000000000000802000000000000000300000000000000030000000200000000000000000000000600"
                    "000000000000000000000000000001000000000000000200000000000000";
  size_t n;
  write_two("p", DT_u16);
  char *idx = get_file(arena, "p.idx", &n);
  assert_int_equal(n, 82);
  for (size_t i = 0; i < n; i++) {
    unsigned b;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &b), 1);
    assert_int_equal((uint8_t)idx[i], b);
  }
  char *bin = get_file(arena, "p.bin", &n);
  assert_int_equal(n, 10);
  assert_memory_equal(bin, "\1\0\2\0\3\0\4\0\5\0", 10);
  DType all[] = {DT_u8, DT_i8, DT_i16, DT_i32, DT_i64, DT_u16};
  for (size_t i = 0; i < COUNT(all); i++) {
    Indexed x;
    int32_t v[3];
    int64_t d[3];
    write_two("q", all[i]);
    assert_int_equal(indexed_open(arena, "q", &x), 0);
    assert_int_equal(x.dtype, all[i]);
    assert_true(x.n == 2 && x.m == 3 && x.tokens == 5 && x.length[0] == 3 && x.length[1] == 2);
    assert_int_equal(indexed_read(&x, 0, 1, 2, v), 0);
    assert_true(v[0] == 2 && v[1] == 3);
    assert_int_equal(indexed_read(&x, 1, 1, 1, v), 0);
    assert_int_equal(v[0], 5);
    assert_int_equal(indexed_documents(&x, 0, 3, d), 0);
    assert_true(d[0] == 0 && d[1] == 1 && d[2] == 2);
    indexed_close(&x);
  }
}

static Status try_open(void) {
  Indexed x;
  Status s = indexed_open(arena, "p", &x);
  if (!s) indexed_close(&x);
  return s;
}

static void refused_test(void **state) {
  (void)state;
  size_t n;
  write_two("p", DT_u16);
  char *good = get_file(arena, "p.idx", &n), *bad = NEW_N(arena, char, n + 8);
  struct { size_t at, width; int64_t v; const char *message; } rows[] = {
    {0, 1, 'X', "p.idx: not an index"},
    {8, 1, 1, "not an index"},
    {9, 8, 2, "p.idx: version 2"},
    {17, 1, 0, "unknown number format 0"},
    {17, 1, 9, "unknown number format 9"},
    {17, 1, 6, "tokens are f64"},
    {18, 8, 3, "do not make a file of 82 bytes"},
    {18, 8, -1, "do not make a file"},
    {18, 8, INT64_C(1) << 61, "do not make a file"},
    {26, 8, 0, "do not make a file"},
    {26, 8, INT64_MAX, "do not make a file"},
    {34, 4, -3, "sequence 0 has length -3"},
    {34, 4, 4, "sequence 1 starts at byte 6, before byte 8"},
    {38, 4, 3, "sequence 1 starts at byte 6 and has 3 tokens of u16, p.bin has 10 bytes"},
    {42, 8, -2, "sequence 0 starts at byte -2"},
    {50, 8, INT64_MAX, "sequence 1 starts at byte 9223372036854775807"},
    {50, 8, 4, "sequence 1 starts at byte 4, before byte 6"},
    {58, 8, 1, "document entry 0 is 1"},
    {66, 8, -1, "document entry 1 is -1"},
    {66, 8, 3, "document entry 2 is 2, 3 or more"},
    {74, 8, 1, "the document table ends with 1, there are 2 sequences"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    memcpy(bad, good, n);
    memcpy(bad + rows[i].at, &rows[i].v, rows[i].width);
    put_file("p.idx", bad, n);
    assert_fails(try_open(), EXIT_INPUT, rows[i].message);
  }
  for (size_t k = 0; k < n; k++) {
    put_file("p.idx", good, k);
    assert_fails(try_open(), EXIT_INPUT, "p.idx: ");
  }
  put_file("p.idx", good, n);
  put_file("p.bin", "\1\0\2\0\3\0\4\0\5", 9);
  assert_fails(try_open(), EXIT_INPUT, "p.bin has 9 bytes");
  unlink("p.bin");
  assert_fails(try_open(), EXIT_MISSING, "p.bin");
  mkdir("p.bin", 0777);
  assert_fails(try_open(), EXIT_INPUT, "p.bin: not a regular file");
  rmdir("p.bin");
  // a byte of mode per sequence is allowed, other bytes are not
  write_two("p", DT_u16);
  memcpy(bad, good, n), memset(bad + n, 0, 8);
  put_file("p.idx", bad, n + 2);
  assert_done(try_open());
  put_file("p.idx", bad, n + 1);
  assert_fails(try_open(), EXIT_INPUT, "do not make a file");
}

// ids that the format cannot hold are refused when written, ids that the model does not know when read
static void ids_test(void **state) {
  (void)state;
  IndexedWriter *w;
  int32_t big[] = {1, 2, 65541};
  assert_int_equal(indexed_create(arena, "p", DT_u16, &w), 0);
  assert_fails(indexed_add(w, big, 3), EXIT_INPUT, "token 2 of sequence 0 is 65541, too big for u16");
  indexed_abandon(w);
  assert_int_equal(access("p.bin", F_OK), -1);
  assert_int_equal(indexed_create(arena, "p", DT_u16, &w), 0);
  assert_fails(indexed_add(w, (int32_t[]){-1}, 1), EXIT_INPUT, "is -1");
  indexed_abandon(w);
  struct { DType t; int32_t id, nvocab; } rows[] = {{DT_i32, 65541, 119547}, {DT_u16, 65535, 65536}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    int32_t ids[] = {1, 2, rows[i].id, 4}, t[3], l[3];
    assert_int_equal(indexed_create(arena, "p", rows[i].t, &w), 0);
    assert_int_equal(indexed_add(w, ids, 4), 0);
    assert_int_equal(indexed_finish(w), 0);
    Data d;
    DataRule r;
    data_defaults(&r);
    r.order.seq = 3, r.nvocab = rows[i].nvocab;
    assert_int_equal(data_sources(arena, "p", &r.order.all), 0);
    assert_int_equal(data_open(arena, &r, &d), 0);
    assert_int_equal(data_sample(&d, TRAIN, 0, &(Sample){.tokens = t, .labels = l}), 0);
    assert_memory_equal(t, ids, sizeof t);
    assert_memory_equal(l, ids + 1, sizeof l);
    d.rule.nvocab = rows[i].id;
    assert_fails(data_sample(&d, TRAIN, 0, &(Sample){.tokens = t}), EXIT_INPUT,
                 arena_printf(arena, "p.bin, sequence 0, token 2: id %d, the model knows 0 to %d",
                              rows[i].id, rows[i].id - 1));
    data_close(&d);
  }
}

static void shrink_test(void **state) {
  (void)state;
  int32_t v[2];
  Indexed x;
  write_two("p", DT_u16);
  assert_int_equal(indexed_open(arena, "p", &x), 0);
  assert_int_equal(truncate("p.bin", 7), 0);
  assert_fails(indexed_read(&x, 1, 0, 2, v), EXIT_IO, "p.bin: ends at byte 7, bytes up to 10 are needed");
  assert_int_equal(truncate("p.idx", 40), 0);
  assert_fails(indexed_read(&x, 1, 0, 2, v), EXIT_IO, "p.idx: ends at byte");
  put_file("p.idx", "", 0), assert_int_equal(truncate("p.idx", 82), 0);
  int fd = open("p.idx", O_WRONLY);
  assert_int_equal(pwrite(fd, &(int64_t){-100}, 8, 50), 8);
  close(fd);
  assert_fails(indexed_read(&x, 1, 0, 2, v), EXIT_IO, "changed while in use: sequence 1 is at byte -100");
  indexed_close(&x);
}

// More than 2^31 tokens in a sparse file of zeros; those of the last window are 7, and it must be found
static void past_31_bits_test(void **state) {
  (void)state;
  enum { SEQ = 65521 };
  int64_t windows = 32777, tokens = windows * SEQ + 1, last = SEQ + 1;
  int32_t length[2] = {INT32_MAX, (int32_t)(tokens - INT32_MAX)};
  int64_t offset[2] = {0, 2 * (int64_t)INT32_MAX}, documents[2] = {0, 2};
  char idx[34 + 2 * 12 + 2 * 8] = "MMIDIDX\0";
  assert_true(tokens > INT64_C(1) << 31 && length[1] > last);
  memcpy(idx + 9, &(uint64_t){1}, 8), idx[17] = 8, memcpy(idx + 18, &(uint64_t){2}, 8),
      memcpy(idx + 26, &(uint64_t){2}, 8);
  memcpy(idx + 34, length, 8), memcpy(idx + 42, offset, 16), memcpy(idx + 58, documents, 16);
  put_file("p.idx", idx, sizeof idx);
  put_file("p.bin", "", 0);
  int fd = open("p.bin", O_WRONLY);
  uint16_t *seven = NEW_N(arena, uint16_t, last);
  for (int i = 0; i < last; i++) seven[i] = 7;
  assert_int_equal(pwrite(fd, seven, (size_t)last * 2, 2 * (tokens - last)), last * 2);
  close(fd);
  DataRule r;
  Data d;
  data_defaults(&r);
  r.order.seq = SEQ;
  assert_int_equal(data_sources(arena, "p", &r.order.all), 0);
  for (r.order.seed = 0;; r.order.seed++) {                // a seed that leaves the two sequences in order
    assert_int_equal(data_open(arena, &r, &d), 0);
    if (counts_get(&d.order.split[TRAIN].source.at[0].document, 0) == 0) break;
    data_close(&d);
  }
  int32_t *t = NEW_N(arena, int32_t, SEQ), *l = NEW_N(arena, int32_t, SEQ);
  const Order *o = &d.order.split[TRAIN].source.at[0];
  assert_int_equal(data_samples(&d, TRAIN), windows);
  for (int64_t i = 0; i < windows; i++) {
    int64_t k = counts_get(&o->shuffle, i);
    if (k < windows - 2) continue;
    assert_int_equal(data_sample(&d, TRAIN, i, &(Sample){.tokens = t, .labels = l}), 0);
    for (int j = 0; j < SEQ; j++) assert_int_equal(t[j], k == windows - 1 ? 7 : 0);
    for (int j = 0; j < SEQ; j++) assert_int_equal(l[j], k == windows - 1 || j == SEQ - 1 ? 7 : 0);
  }
  data_close(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_SCRATCH(bytes_test), IN_SCRATCH(refused_test), IN_SCRATCH(ids_test),
                                     IN_SCRATCH(shrink_test), IN_SCRATCH(past_31_bits_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
