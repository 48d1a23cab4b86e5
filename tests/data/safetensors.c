// safetensors: what must be read, what must be refused and how, and the bytes that are written.
#include "runtime/safetensors.h"
#include "tests/data/scratch.h"

static void put_header(const char *path, const char *json, size_t bytes) {
  size_t n = strlen(json);
  char *all = calloc(1, 8 + n + bytes);
  memcpy(all, &(uint64_t){n}, 8);
  memcpy(all + 8, json, n);
  for (size_t i = 0; i < bytes; i++) all[8 + n + i] = (char)i;
  put_file(path, all, 8 + n + bytes);
  free(all);
}

static Status try_open(const char *path) {
  Safetensors s;
  Status status = safetensors_open(arena, path, &s);
  if (!status) safetensors_close(&s);
  return status;
}

#define T(name, dtype, shape, b, e) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #b "," #e "]}"

static void accepted_test(void **state) {
  (void)state;
  struct { const char *json; size_t bytes; } rows[] = {
    {"{}", 0},
    {"{}      ", 0},
    {"{" T("a", "F32", "[]", 0, 4) "}", 4},
    {"{" T("a", "F32", "[0]", 0, 0) "}", 0},
    {"{" T("a", "F32", "[3,0,5]", 0, 0) "," T("b", "U8", "[3]", 0, 3) "}", 3},
    {"{" T("b", "U8", "[3]", 3, 6) "," T("a", "BF16", "[1]", 1, 3) "," T("c", "BOOL", "[1]", 0, 1) "}", 6},
    {"{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}," T("a", "I64", "[1,1]", 0, 8) "}", 8},
    {"{" T("a", "F8_E4M3", "[5]", 0, 5) "," T("b", "F4", "[4]", 5, 7) "," T("c", "C64", "[1]", 7, 15) "}", 15},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,4],\"dtype\":\"I16\",\"more\":{}}}", 4},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    put_header("x.safetensors", rows[i].json, rows[i].bytes);
    assert_done(try_open("x.safetensors"));
  }
}

static void refused_test(void **state) {
  (void)state;
  struct { const char *json; size_t bytes; const char *message; } rows[] = {
    {"", 0, "not a JSON object"},
    {" {}", 0, "first byte"},
    {"[]", 0, "first byte"},
    {"{\"a\":", 0, "JSON, line 1"},
    {"{} x", 0, "end of file expected"},
    {"{" T("a", "F32", "[1]", 0, 4) "," T("a", "F32", "[1]", 0, 4) "}", 4, "duplicate object key"},
    {"{\"a\":7}", 0, "tensor 'a': its entry is not an object"},
    {"{\"a\":{}}", 0, "tensor 'a': no dtype"},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, "no data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 0, "no data_offsets"},
    {"{" T("a", "F33", "[1]", 0, 4) "}", 4, "unknown dtype 'F33'"},
    {"{" T("a", "float", "[1]", 0, 4) "}", 4, "unknown dtype 'float'"},
    {"{" T("a", "", "[1]", 0, 4) "}", 4, "unknown dtype ''"},
    {"{" T("a", "F32", "[-1]", 0, 4) "}", 4, "dim 0 is not a size"},
    {"{" T("a", "F32", "[1.0]", 0, 4) "}", 4, "dim 0 is not a size"},
    {"{" T("a", "F32", "[2,\"2\"]", 0, 4) "}", 4, "dim 1 is not a size"},
    {"{" T("a", "F32", "[99999999999999999999]", 0, 4) "}", 4, "too big integer"},
    {"{" T("a", "F32", "[1e400]", 0, 4) "}", 4, "real number overflow"},
    // a product that wraps to 0, or fits and overflows times the width
    {"{" T("a", "F32", "[4294967296,4294967296]", 0, 0) "}", 0, "tensor 'a': element count overflow"},
    {"{" T("a", "F32", "[4294967296,4294967296,0]", 0, 0) "}", 0, "element count overflow"},
    {"{" T("a", "F64", "[2305843009213693952]", 0, 0) "}", 0, "byte count overflow"},
    {"{" T("a", "F32", "[4398046511105]", 0, 4) "}", 4, "4 bytes are declared"},
    {"{" T("a", "F32", "[2,2]", 0, 12) "}", 12, "12 bytes are declared, its shape [2, 2] and dtype F32 make 16"},
    {"{" T("a", "F4", "[3]", 0, 2) "}", 2, "end inside a byte"},
    {"{" T("a", "F32", "[1]", 4, 0) "}", 4, "begin <= end"},
    {"{" T("a", "F32", "[1]", -4, 0) "}", 4, "begin <= end"},
    {"{" T("a", "F32", "[1]", 9223372036854775803, 9223372036854775807) "}", 4, "belong to no tensor"},
    // overlap, holes, tail
    {"{" T("k", "F32", "[2]", 0, 8) "," T("v", "F32", "[2]", 0, 8) "}", 8,
     "tensor 'v': its bytes overlap those of 'k'"},
    {"{" T("k", "F32", "[2]", 0, 8) "," T("v", "F32", "[2]", 4, 12) "}", 12, "overlap"},
    {"{" T("k", "F32", "[1]", 0, 4) "," T("v", "F32", "[1]", 8, 12) "}", 12,
     "tensor 'v': bytes 4 to 8 before it belong to no tensor"},
    {"{" T("k", "F32", "[1]", 4, 8) "}", 8, "bytes 0 to 4"},
    {"{" T("k", "F32", "[1]", 0, 4) "}", 7, "3 bytes behind the last tensor"},
    {"{" T("k", "F32", "[2]", 0, 8) "}", 7, "its bytes end at 8, the file holds 7"},
    {"{}", 1, "1 bytes behind"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ 'a' is not a string"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"a\\u0000b\":{}}", 0, "NUL"},
    {"{\"a\xff\":{}}", 0, "unable to decode byte 0xff"},
    {"{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]}", 0, "nested more than 8 deep"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    put_header("x.safetensors", rows[i].json, rows[i].bytes);
    assert_fails(try_open("x.safetensors"), EXIT_INPUT, rows[i].message);
    assert_non_null(strstr(caught, "x.safetensors: "));
  }
}

static void length_test(void **state) {
  (void)state;
  put_file("x", "", 0);
  assert_fails(try_open("x"), EXIT_INPUT, "x: 0 bytes, too short");
  put_file("x", "\2\0\0\0\0\0\0", 7);
  assert_fails(try_open("x"), EXIT_INPUT, "too short");
  uint64_t lengths[] = {UINT64_C(1) << 63, UINT64_MAX, 100000001, 3};
  for (size_t i = 0; i < COUNT(lengths); i++) {
    char b[10] = {0};
    memcpy(b, &lengths[i], 8), memcpy(b + 8, "{}", 2);
    put_file("x", b, 10);
    assert_fails(try_open("x"), EXIT_INPUT, "x: header length ");
  }
  char big[10] = {0};                                       // a sparse file long enough for a header of 2^27
  memcpy(big, &(uint64_t){1 << 27}, 8);
  put_file("x", big, 10);
  assert_int_equal(truncate("x", (1 << 27) + 8), 0);
  assert_fails(try_open("x"), EXIT_INPUT, "at most 100000000 is possible");
  assert_fails(try_open("absent"), EXIT_MISSING, "absent: No such file");
  assert_int_equal(mkfifo("pipe", 0600), 0);
  assert_fails(try_open("pipe"), EXIT_INPUT, "pipe: not a regular file");
  put_header("x", "{\"a\x1b[31m\":{}}", 0);                // no control byte of a file reaches the terminal
  catch_begin();
  assert_int_equal(try_open("x"), EXIT_INPUT);
  assert_null(strchr(catch_end(), '\x1b'));
}

static void shards_test(void **state) {
  (void)state;
  mkdir("m", 0777);
  assert_fails(try_open("m"), EXIT_MISSING, "m: neither model.safetensors nor model.safetensors.index.json");
  put_file("m/pytorch_model.bin", "", 0);
  assert_fails(try_open("m"), EXIT_INPUT, "m: pickled weights (pytorch_model.bin) are not read");
  put_file("m/latest_checkpointed_iteration.txt", "100\n", 4);
  assert_fails(try_open("m"), EXIT_INPUT, "with Megatron Bridge");
  put_header("m/one", "{" T("a", "U8", "[2]", 0, 2) "}", 2);
  put_header("m/two", "{" T("b", "U8", "[3]", 0, 3) "," T("c", "U8", "[1]", 3, 4) "}", 4);
  const char *index = "m/model.safetensors.index.json";
#define INDEX(text) put_file(index, text, strlen(text))
  INDEX("{\"metadata\":{\"total_size\":6},\"weight_map\":{\"a\":\"one\",\"b\":\"two\",\"c\":\"two\"}}");
  Safetensors s;
  assert_int_equal(safetensors_open(arena, "m", &s), 0);
  assert_int_equal(s.file.n, 2);
  assert_int_equal(s.tensor.n, 3);
  uint8_t v[3];
  assert_int_equal(tensor_read(&s, safetensors_find(&s, "c"), 0, 1, DT_u8, v), 0);
  assert_int_equal(v[0], 3);
  safetensors_close(&s);

  const char *bad[] = {"../one", "/etc/passwd", "a/../../x", "", ".", "..", "m/one"};
  put_header("one", "{}", 0);
  for (size_t i = 0; i < COUNT(bad); i++) {
    INDEX(arena_printf(arena, "{\"weight_map\":{\"a\":\"%s\"}}", bad[i]));
    assert_fails(try_open("m"), EXIT_INPUT, arena_printf(arena,
                                                         "m: '%s' is not the name of a file in this folder",
                                                         bad[i]));
  }
  assert_int_equal(symlink("../one", "m/link"), 0);
  INDEX("{\"weight_map\":{\"a\":\"link\"}}");
  assert_fails(try_open("m"), EXIT_INPUT, "m/link: a symbolic link");
  INDEX("{\"weight_map\":{\"a\":\"one\\u0000\"}}");
  assert_fails(try_open("m"), EXIT_INPUT, "NUL");
  INDEX("{\"weight_map\":{\"a\":\"one\",\"b\":\"three\"}}");
  assert_fails(try_open("m"), EXIT_MISSING, "m/three: No such file");
  INDEX("{\"weight_map\":{\"a\":\"two\",\"b\":\"one\",\"c\":\"two\"}}");
  assert_fails(try_open("m"), EXIT_INPUT, "tensor 'a' is not in m/two");
  INDEX("{\"weight_map\":{\"a\":\"one\",\"b\":\"two\"}}");
  assert_fails(try_open("m"), EXIT_INPUT, "tensor 'c': not in the index");
  put_header("m/one", "{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[0]", 2, 2) "}", 2);
  INDEX("{\"weight_map\":{\"a\":\"one\",\"b\":\"two\",\"c\":\"two\"}}");
  assert_fails(try_open("m"), EXIT_INPUT, "m/two: tensor 'b': also in m/one");
  INDEX("{\"weight_map\":[]}");
  assert_fails(try_open("m"), EXIT_INPUT, "no weight_map");
  put_header("m/model.safetensors", "{" T("z", "U8", "[]", 0, 1) "}", 1);
  assert_int_equal(safetensors_open(arena, "m", &s), 0);   // the whole file before the index
  assert_non_null(safetensors_find(&s, "z"));
  assert_null(safetensors_find(&s, "a"));
  safetensors_close(&s);
}

static void write_test(void **state) {
  (void)state;
  double d[6] = {1, -2, 3.5, 0, 1e300, 6};
  uint16_t b[2] = {f32_to_bf16(1.5f), f32_to_bf16(-2)};
  uint8_t u[3] = {7, 0, 255};
  int64_t six[] = {2, 3}, two[] = {2}, three[] = {3}, none[] = {0, 4};
  Tensor t[] = {
    {.name = "u", .dtype = DT_u8, .ndim = 1, .shape = three, .data = u},
    {.name = "h.0.\"q\"", .dtype = DT_bf16, .ndim = 1, .shape = two, .data = b},
    {.name = "z", .dtype = DT_f64, .ndim = 2, .shape = six, .data = d},
    {.name = "e", .dtype = DT_f64, .ndim = 2, .shape = none},
    {.name = "s", .dtype = DT_bool, .ndim = 0, .data = u},
  };
  Metadata m[] = {{"step", "7"}};
  assert_int_equal(safetensors_write(arena, "w.safetensors", t, COUNT(t), m, 1, 0), 0);
  size_t n;
  char *bytes = get_file(arena, "w.safetensors", &n);
  uint64_t header;
  memcpy(&header, bytes, 8);
  assert_int_equal((header + 8) % 64, 0);
  const char *want = "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"7\"},"
    "\"e\":{\"dtype\":\"F64\",\"shape\":[0,4],\"data_offsets\":[0,0]},\"z\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
    "\"h.0.\\\"q\\\"\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[48,52]},"
    "\"s\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[52,53]},\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[53,56]}}";
  assert_memory_equal(bytes + 8, want, strlen(want));
  assert_int_equal(n, header + 8 + 56);

  Safetensors s;
  assert_int_equal(safetensors_open(arena, "w.safetensors", &s), 0);
  for (size_t i = 0; i < COUNT(t); i++) {
    const Tensor *r = safetensors_find(&s, t[i].name);
    assert_non_null(r);
    assert_int_equal(r->dtype, t[i].dtype);
    char got[64];
    assert_int_equal(tensor_read(&s, r, 0, r->count, r->dtype, got), 0);
    if (r->bytes) assert_memory_equal(got, t[i].data, (size_t)r->bytes);
  }
  float f[3];
  assert_int_equal(tensor_read(&s, safetensors_find(&s, "z"), 1, 3, DT_f32, f), 0);
  assert_true(f[0] == -2 && f[1] == 3.5f && f[2] == 0);
  assert_fails(tensor_read(&s, safetensors_find(&s, "z"), 4, 3, DT_f32, f), EXIT_INPUT, "3 values from 4 of 6");
  assert_fails(tensor_read(&s, safetensors_find(&s, "z"), INT64_MAX, INT64_MAX, DT_f32, f), EXIT_INPUT, "of 6");
  assert_int_equal(s.metadata.n, 2);
  assert_string_equal(s.metadata.at[1].key, "step");
  // a file that shrinks is a message, not a signal
  assert_int_equal(truncate("w.safetensors", (off_t)n - 30), 0);
  assert_fails(tensor_read(&s, safetensors_find(&s, "u"), 0, 3, DT_u8, u), EXIT_IO, "w.safetensors: ends at byte");
  safetensors_close(&s);

  // any order of pieces gives the same bytes
  SafetensorsPlan p;
  int fd;
  assert_int_equal(safetensors_plan(arena, t, COUNT(t), m, 1, &p), 0);
  assert_int_equal(safetensors_create(&p, "p.safetensors", &fd), 0);
  for (uint32_t i = p.tensor.n; i--;) {
    const Tensor *r = &p.tensor.at[i];
    int64_t cut = r->bytes / 2;
    assert_int_equal(safetensors_put(&p, fd, "p", r, cut, (const char *)r->data + cut, r->bytes - cut), 0);
    assert_int_equal(safetensors_put(&p, fd, "p", r, 0, r->data, cut), 0);
  }
  close(fd);
  size_t again;
  char *other = get_file(arena, "p.safetensors", &again);
  assert_int_equal(again, n);
  assert_memory_equal(other, bytes, n);
  assert_fails(safetensors_write(arena, "no/such/folder", t, 1, 0, 0, 0), EXIT_CREATE, "cannot write no/such/folder");
}

static void many_names_test(void **state) {
  (void)state;
  enum { MANY = 20000 };
  Tensor *t = NEW_N(arena, Tensor, MANY);
  static float v = 3;
  for (int i = 0; i < MANY; i++)
    t[i] = (Tensor){.name = arena_printf(arena, "layer.%d.weight", i), .dtype = DT_f32, .data = &v};
  assert_int_equal(safetensors_write(arena, "many", t, MANY, 0, 0, 0), 0);
  Safetensors s;
  assert_int_equal(safetensors_open(arena, "many", &s), 0);
  for (int i = 0; i < MANY; i++) assert_string_equal(safetensors_find(&s, t[i].name)->name, t[i].name);
  safetensors_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_SCRATCH(accepted_test), IN_SCRATCH(refused_test),
                                     IN_SCRATCH(length_test), IN_SCRATCH(shards_test),
                                     IN_SCRATCH(write_test), IN_SCRATCH(many_names_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
