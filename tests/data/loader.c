// The order's corners that recorded cases do not reach, and the loader: short data, labels, segments,
// recorded batches.
#include "runtime/data.h"
#include "tests/data/scratch.h"

// tokens count through: 0, 1, 2 …
static void write_store(const char *prefix, DType t, const int32_t *length, int n) {
  IndexedWriter *w;
  int32_t token = 0;
  assert_int_equal(indexed_create(arena, prefix, t, &w), 0);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < length[i]; k++, token++) assert_int_equal(indexed_add(w, &token, 1), 0);
    assert_int_equal(indexed_end_sequence(w), 0);
    assert_int_equal(indexed_end_document(w), 0);
  }
  assert_int_equal(indexed_finish(w), 0);
}

static DataRule rule_of(const char *data, int64_t seq, int64_t want) {
  DataRule r;
  data_defaults(&r);
  r.order.seq = seq, r.order.seed = 1234, r.order.size[TRAIN] = want;
  assert_int_equal(data_sources(arena, data, &r.order.all), 0);
  return r;
}

static void generator_test(void **state) {
  (void)state;
  Mt19937 g;
  uint32_t want[] = {822569775, 2137449171, 2671936806, 3512589365, 1880026316, 2629000564};
  mt_seed(&g, 1234);
  for (size_t i = 0; i < COUNT(want); i++) assert_int_equal(mt_draw(&g), want[i]);
  mt_seed(&g, 1234);                                       // beyond 32 bits two draws make one, the high word first
  uint64_t two = (uint64_t)want[0] << 32 | want[1];
  assert_true(mt_upto(&g, UINT64_MAX) == two);
  mt_seed(&g, 7);
  for (uint64_t most = 1; most < 70; most++)
    for (int i = 0; i < 50; i++) assert_true(mt_upto(&g, most) <= most);
}

static void split_test(void **state) {
  (void)state;
  double e[SPLITS + 1];
  assert_int_equal(split_edges("969, 30 ; 1", e), 0);
  assert_true(e[1] == 0.969 && e[3] <= 1);
  assert_int_equal(split_edges(".5,.5", e), 0);
  assert_true(e[1] == 0.5 && e[2] == 1 && e[3] == 1);
  const char *bad[] = {"", "0,0,0", "1,1,1,1", "1.2.3,1", ".", "a,b", "-1,2", "1e9,1", "9,1,inf"};
  for (size_t i = 0; i < COUNT(bad); i++) assert_fails(split_edges(bad[i], e), EXIT_USAGE, "split '");
}

static void sources_test(void **state) {
  (void)state;
  Sources s;
  assert_int_equal(data_sources(arena, " 0.3 A  7 B ", &s), 0);
  assert_true(s.weighted && s.at.n == 2 && s.at.at[1].weight == 7);
  assert_string_equal(s.at.at[1].prefix, "B");
  assert_int_equal(data_sources(arena, "A B", &s), 0);
  assert_true(!s.weighted && s.at.n == 2);
  assert_int_equal(data_sources(arena, "A", &s), 0);
  write_store("with space", DT_u16, (int32_t[]){5}, 1);
  assert_int_equal(data_sources(arena, "with space", &s), 0);
  assert_true(s.at.n == 1);
  assert_fails(data_sources(arena, "", &s), EXIT_USAGE, "no data");
  assert_fails(data_sources(arena, "0.3 A 0.7", &s), EXIT_USAGE, "must alternate");
  assert_fails(data_sources(arena, "A B 0.5 C", &s), EXIT_USAGE, "must alternate");
  assert_fails(data_sources(arena, "0.3 A -1 B", &s), EXIT_USAGE, "weight -1 of B is not above 0");
  assert_fails(data_sources(arena, "nan A", &s), EXIT_USAGE, "weight nan of A");
  assert_fails(data_sources(arena, "inf A 1 B", &s), EXIT_USAGE, "weight inf of A");
}

// a dataset shorter than one window
static void short_test(void **state) {
  (void)state;
  Data d;
  write_store("eight", DT_u16, (int32_t[]){8}, 1);
  DataRule r = rule_of("eight", 8, 100);
  assert_fails(data_open(arena, &r, &d), EXIT_INPUT, "eight: the train split needs 9 tokens, has 8");
  r.order.size[TRAIN] = -1;
  assert_fails(data_open(arena, &r, &d), EXIT_INPUT, "needs 9 tokens, has 8");
  r.order.seq = 7;
  assert_done(data_open(arena, &r, &d));
  assert_int_equal(data_samples(&d, TRAIN), 1);
  data_close(&d);
  r.order.split = "1,1,0";                                 // one sequence cannot be cut in two
  assert_fails(data_open(arena, &r, &d), EXIT_INPUT,
               "eight: the train split (sequences 0 to 0 of 1) is empty: it needs 8 tokens, has 0");
  r.order.split = "1,0,0";
  write_store("none", DT_u16, 0, 0);
  DataRule e = rule_of("none", 8, 1);
  assert_fails(data_open(arena, &e, &d), EXIT_INPUT, "needs 9 tokens, has 0");
  DataRule gone = rule_of("gone", 8, 1);
  assert_fails(data_open(arena, &gone, &d), EXIT_MISSING, "gone.idx: No such file");
  struct { int64_t seq, seed, want, extra; double surplus; const char *message; } rows[] = {
    {1, 0, 1, 1, 0, "sequence length 1"}, {-5, 0, 1, 1, 0, "sequence length -5"}, {4, -1, 1, 1, 0, "seed -1"},
    {4, INT64_C(1) << 32, 1, 1, 0, "seed 4294967296"}, {4, 0, INT64_MAX, 1, 0, "overflow"},
    {4, 0, INT64_MAX / 8, 1, 0, "memory"},
    {4, 0, INT64_C(1) << 50, 1, 0, "memory"}, {4, 0, 1, 2, 0, "2 extra tokens"}, {4, 0, 1, 1, -1, "surplus -1"},
  };
  for (size_t i = 0; i < COUNT(rows); i++) {
    DataRule b = rule_of("eight", rows[i].seq, rows[i].want);
    b.order.seed = rows[i].seed, b.order.extra = rows[i].extra, b.order.surplus = rows[i].surplus;
    catch_begin();
    Status s = data_open(arena, &b, &d);
    const char *message = catch_end();
    if ((s != EXIT_INPUT && s != EXIT_USAGE) || !strstr(message, rows[i].message))
      fail_msg("%d, wanted %s: %s", s, rows[i].message, message);
  }
  Sources two;
  assert_int_equal(data_sources(arena, "0.5 eight 0.5 eight", &two), 0);
  r = rule_of("eight", 4, -1);
  r.order.all = two;
  assert_fails(data_open(arena, &r, &d), EXIT_USAGE, "a blend by weight needs the number of samples");
  r.order.size[TRAIN] = INT64_MAX;
  assert_fails(data_open(arena, &r, &d), EXIT_INPUT, "overflow");
}

// the number of samples of a valid split that keeps its last one is computed in float: 17 * 2^20 + 1 rounds
static void float_samples_test(void **state) {
  (void)state;
  Indexed x;
  write_store("p", DT_u8, (int32_t[]){1}, 1);
  int32_t length = 17 * (1 << 20) + 2;
  assert_int_equal(truncate("p.bin", length), 0);
  int fd = open("p.idx", O_WRONLY);
  assert_int_equal(pwrite(fd, &length, 4, 34), 4);
  close(fd);
  assert_done(indexed_open(arena, "p", &x));
  indexed_close(&x);
  DataRule r = rule_of("p", 1 << 20, 1);
  r.order.split = "0,1,0", r.order.keep_partial_valid = true;
  Data d;
  assert_done(data_open(arena, &r, &d));
  assert_int_equal(data_samples(&d, VALID), 17);           // 18 in real numbers
  data_close(&d);
}

static void labels_test(void **state) {
  (void)state;
  Data d;
  int32_t t[8], l[8], p[8], s[8];
  uint8_t m[8];
  write_store("p", DT_i32, (int32_t[]){3, 0, 4, 2}, 4);    // 0 1 2 | | 3 4 5 6 | 7 8
  DataRule r = rule_of("p", 8, -1);
  Sample to = {t, l, p, s, m};
  for (r.order.seed = 0;; r.order.seed++) {                // a seed that leaves the sequences in order
    assert_int_equal(data_open(arena, &r, &d), 0);
    const Counts *c = &d.order.split[TRAIN].source.at[0].document;
    if (counts_get(c, 0) == 0 && counts_get(c, 1) == 1 && counts_get(c, 2) == 2) break;
    data_close(&d);
  }
  assert_int_equal(data_sample(&d, TRAIN, 0, &to), 0);
  assert_memory_equal(t, ((int32_t[]){0, 1, 2, 3, 4, 5, 6, 7}), sizeof t);
  assert_memory_equal(l, ((int32_t[]){1, 2, 3, 4, 5, 6, 7, 8}), sizeof l);
  assert_memory_equal(p, ((int32_t[]){0, 1, 2, 3, 4, 5, 6, 7}), sizeof p);
  assert_memory_equal(s, ((int32_t[]){0, 0, 0, 1, 1, 1, 1, 2}), sizeof s);
  assert_memory_equal(m, ((uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1}), sizeof m);
  d.rule.eod = 2, d.rule.eod_mask = true, d.rule.reset_positions = true, d.rule.pad = 6;
  assert_int_equal(data_sample(&d, TRAIN, 0, &to), 0);
  assert_memory_equal(t, ((int32_t[]){0, 1, 2, 3, 4, 5, 0, 7}), sizeof t);
  assert_memory_equal(l, ((int32_t[]){1, 2, -100, 4, 5, -100, 7, 8}), sizeof l);
  assert_memory_equal(p, ((int32_t[]){0, 1, 2, 0, 1, 2, 3, 4}), sizeof p);
  data_close(&d);
  r.order.split = "0,1,0", r.order.keep_partial_valid = true, r.order.seq = 6;
  assert_int_equal(data_open(arena, &r, &d), 0);
  assert_int_equal(data_samples(&d, VALID), 2);
  for (int64_t i = 0; i < 2; i++) {
    assert_int_equal(data_sample(&d, VALID, i, &to), 0);
    if (t[0]) assert_memory_equal(t, ((int32_t[]){6, 7, 8, 0, 0, 0}), 24);
    if (t[0]) assert_memory_equal(l, ((int32_t[]){7, 8, -100, -100, -100, -100}), 24);
    else assert_memory_equal(l, ((int32_t[]){1, 2, 3, 4, 5, 6}), 24);
  }
  data_close(&d);
}

// every token but the last is an input once per epoch, whatever the seed; and the number of whole batches
static void epoch_test(void **state) {
  (void)state;
  int32_t lengths[20];
  int64_t total = 0;
  for (int i = 0; i < 20; i++) total += lengths[i] = 3 + i % 4;
  write_store("p", DT_u16, lengths, 20);
  DataRule r = rule_of("p", 4, -1);
  for (r.order.seed = 0; r.order.seed < 5; r.order.seed++) {
    Data d;
    int32_t t[4];
    int seen[128] = {0}, once = 0;
    assert_int_equal(data_open(arena, &r, &d), 0);
    assert_int_equal(data_samples(&d, TRAIN), (total - 1) / 4);
    for (int64_t i = 0; i < data_samples(&d, TRAIN); i++) {
      assert_int_equal(data_sample(&d, TRAIN, i, &(Sample){.tokens = t}), 0);
      for (int k = 0; k < 4; k++) once += !seen[t[k]]++;
    }
    assert_int_equal(once, data_samples(&d, TRAIN) * 4);
    data_close(&d);
  }
  struct { int tokens, samples; } rows[] = {{100, 12}, {128, 15}, {129, 16}};   // 8 a batch: 1, 1, 2 batches
  for (size_t i = 0; i < COUNT(rows); i++) {
    Data d;
    write_store("n", DT_u16, (int32_t[]){rows[i].tokens}, 1);
    DataRule b = rule_of("n", 8, -1);
    assert_int_equal(data_open(arena, &b, &d), 0);
    assert_int_equal(data_samples(&d, TRAIN), rows[i].samples);
    data_close(&d);
  }
}

static void batches_test(void **state) {
  (void)state;
  int32_t tokens[2 * 3 * 2 * 4];
  int64_t labels[COUNT(tokens)], four[] = {2, 3, 2, 4}, three[] = {2, 3, 2}, seq[] = {4};
  float weight[12];
  for (int i = 0; i < (int)COUNT(tokens); i++) tokens[i] = i, labels[i] = i % 5 ? i : -100;
  for (int i = 0; i < 12; i++) weight[i] = (float)i / 2;
  Tensor t[] = {
    {.name = "tokens", .dtype = DT_i32, .ndim = 4, .shape = four, .data = tokens},
    {.name = "labels", .dtype = DT_i64, .ndim = 4, .shape = four, .data = labels},
    {.name = "weight", .dtype = DT_f32, .ndim = 3, .shape = three, .data = weight},
  };
  BatchInput in[] = {
    {.name = "tokens", .dtype = DT_i32, .ndim = 1, .shape = seq, .below = 48},
    {.name = "labels", .dtype = DT_i32, .ndim = 1, .shape = seq, .below = 48, .ignores = true, .ignored = -100},
    {.name = "weight", .dtype = DT_f64},
  };
  Batches b;
  assert_int_equal(safetensors_write(arena, "b", t, 3, 0, 0, 0), 0);
  assert_int_equal(batches_open(arena, "b", in, 3, &b), 0);
  assert_true(b.steps == 2 && b.samples == 6);
  int32_t v[4];
  double w;
  assert_int_equal(batches_read(&b, &in[0], 1, 4, v), 0);
  assert_true(v[0] == 40 && v[3] == 43);
  assert_int_equal(batches_read(&b, &in[1], 1, 4, v), 0);
  assert_true(v[0] == -100 && v[3] == 43);
  assert_int_equal(batches_read(&b, &in[2], 1, 5, &w), 0);
  assert_true(w == 5.5);
  in[0].below = 43;
  assert_fails(batches_read(&b, &in[0], 1, 4, v), EXIT_INPUT,
               "b: input 'tokens' at step 1, sample 4, place 3 is 43, 0 to 42");
  batches_close(&b);

  catch_begin();
  Status s = batches_open(arena, "b", in, 2, &b);
  const char *said = catch_end();
  if (s || !strstr(said, "note: b: not used by the plan: weight\n")) fail_msg("%d %s", s, said);
  batches_close(&b);
  in[2].name = "weights";
  assert_fails(batches_open(arena, "b", in, 3, &b), EXIT_INPUT, "b: no input 'weights'");
  in[2].name = "weight", in[2].dtype = DT_i32;
  assert_fails(batches_open(arena, "b", in, 3, &b), EXIT_INPUT, "input 'weight' is F32, i32 is needed");
  in[2].dtype = DT_f32, in[2].ndim = 1, in[2].shape = seq;
  assert_fails(batches_open(arena, "b", in, 3, &b), EXIT_INPUT,
               "input 'weight' is [2, 3, 2], [steps, microbatches, batch] and then [4]");
  in[2].ndim = 0, three[0] = 1;
  assert_int_equal(safetensors_write(arena, "b", t, 3, 0, 0, 0), 0);
  assert_fails(batches_open(arena, "b", in, 3, &b), EXIT_INPUT,
               "input 'weight' has 1 steps of 6 samples, the inputs before it 2 of 6");
  four[1] = 0;
  assert_int_equal(safetensors_write(arena, "b", t, 2, 0, 0, 0), 0);
  assert_fails(batches_open(arena, "b", in, 2, &b), EXIT_INPUT, "there is no sample in it");
}

// A run that is made longer sees the samples that it has seen, wherever data_change says so; else it mostly does not.
static void longer_test(void **state) {
  (void)state;
  write_store("A", DT_u16, (int32_t[]){30, 17, 41, 5, 22, 9, 33}, 7);
  write_store("B", DT_i32, (int32_t[]){12, 50, 8, 19}, 4);
  static const char *const names[] = {"A", "0.3 A 0.7 B", "A B", "0.5 B"};
  int seen[2] = {0};
  for (size_t k = 0; k < COUNT(names); k++)
    for (int64_t n = 1; n < 60; n += 4)
      for (int64_t m = 1; m < 60; m += 5) {
        Data x, y;
        int32_t t[8], u[8];
        int64_t differ = 0;
        DataRule r = rule_of("A", 8, n);
        assert_done(data_sources(arena, names[k], &r.order.all));
        if (data_open(arena, &r, &x)) continue;
        r.order.size[TRAIN] = m;
        assert_done(data_open(arena, &r, &y));
        DataChange c = data_change(&y, data_rule_text(arena, &x));
        assert_int_equal(c == DATA_same, n == m);
        assert_true(c != DATA_other);
        for (int64_t i = 0; i < MIN(MIN(n, m), MIN(data_samples(&x, TRAIN), data_samples(&y, TRAIN))); i++) {
          assert_done(data_sample(&x, TRAIN, i, &(Sample){.tokens = t}));
          assert_done(data_sample(&y, TRAIN, i, &(Sample){.tokens = u}));
          differ += memcmp(t, u, sizeof t) != 0;
        }
        if (c == DATA_reordered) seen[0] += differ > 0;
        else assert_int_equal(differ, 0), seen[1] += n != m;
        r.order.seed++;
        Data z;
        assert_done(data_open(arena, &r, &z));
        assert_int_equal(data_change(&z, data_rule_text(arena, &x)), DATA_other);
        assert_int_equal(data_change(&z, ""), DATA_other);
        data_close(&x), data_close(&y), data_close(&z);
      }
  assert_true(seen[0] > 100 && seen[1] > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_SCRATCH(generator_test), IN_SCRATCH(split_test),
                                     IN_SCRATCH(sources_test), IN_SCRATCH(short_test),
                                     IN_SCRATCH(float_samples_test), IN_SCRATCH(labels_test),
                                     IN_SCRATCH(epoch_test), IN_SCRATCH(longer_test), IN_SCRATCH(batches_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
