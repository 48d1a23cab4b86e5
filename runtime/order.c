// order.c -- see order.h. Sums and products of doubles are part of the order: this file must be compiled without
// contraction into fused multiply-adds (-ffp-contract=off).
#include "runtime/order.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

const Str split_names[SPLITS] = {"train", "valid", "test"};

// ---- the generator ----------------------------------------------------------------------------------------------
void mt_seed(Mt19937 *g, uint32_t seed) {
  g->state[0] = seed, g->next = 624;
  for (uint32_t i = 1; i < 624; i++) g->state[i] = 1812433253u * (g->state[i - 1] ^ g->state[i - 1] >> 30) + i;
}

uint32_t mt_draw(Mt19937 *g) {
  if (g->next == 624) {
    for (int i = 0; i < 624; i++) {
      uint32_t y = (g->state[i] & 0x80000000u) | (g->state[(i + 1) % 624] & 0x7fffffffu);
      g->state[i] = g->state[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    g->next = 0;
  }
  uint32_t y = g->state[g->next++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}

uint64_t mt_upto(Mt19937 *g, uint64_t most) {
  uint64_t mask = UINT64_MAX >> __builtin_clzll(most), v;
  do {
    v = mt_draw(g);
    if (most > UINT32_MAX) v = v << 32 | mt_draw(g);
  } while ((v &= mask) > most);
  return v;
}

static void counts_shuffle(Mt19937 *g, Counts *c, int64_t from, int64_t n) {
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)mt_upto(g, (uint64_t)i), v = counts_get(c, from + i);
    counts_set(c, from + i, counts_get(c, from + j));
    counts_set(c, from + j, v);
  }
}

// A request can be larger than any machine: said before the allocator does, which could only abort.
static Status counts_create(Arena *a, const char *what, int64_t n, bool wide, Counts *c) {
  int64_t bytes, have = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (!mul_ok(n, wide ? 8 : 4, &bytes) || bytes > have)
    return fail(EXIT_INPUT, "the %s has %lld entries, more than this machine's memory of %lld bytes holds",
                what, (long long)n, (long long)have);
  *c = (Counts){arena_alloc(a, (size_t)bytes), n, wide};
  return 0;
}

// ---- the rule ---------------------------------------------------------------------------------------------------
void order_defaults(OrderRule *r) {
  *r = (OrderRule){.size = {-1, -1, -1}, .split = "1,0,0", .extra = 1, .surplus = 0.005};
}

static bool number_of(const char *text, double *v) {
  char *end;
  *v = strtod(text, &end);
  return end != text && !*end;
}

Status sources_parse(Arena *a, const Str *word, size_t n, Sources *s) {
  *s = (Sources){.weighted = false};
  double v;
  size_t numbers = 0;
  for (size_t i = 0; i < n; i += 2) numbers += number_of(word[i], &v);
  if (!n) return fail(EXIT_USAGE, "no data: give PREFIX or \"WEIGHT PREFIX WEIGHT PREFIX …\"");
  s->weighted = n % 2 == 0 && numbers == n / 2;
  if (!s->weighted && n > 1 && numbers)
    return fail(EXIT_USAGE,
                "data: weights and prefixes must alternate, or there is no weight at all: \"0.3 A 0.7 B\"");
  for (size_t i = 0; i < n; i += s->weighted ? 2 : 1) {
    Source e = {.prefix = word[i]};
    if (s->weighted) {
      e.prefix = word[i + 1];
      number_of(word[i], &e.weight);
      if (!isfinite(e.weight) || e.weight <= 0)
        return fail(EXIT_USAGE, "data: weight %s of %s is not above 0", word[i], e.prefix);
    }
    vec_push(a, &s->at, e);
  }
  if (s->at.n > INT16_MAX) return fail(EXIT_USAGE, "data: %u sources, at most %d are possible", s->at.n, INT16_MAX);
  return 0;
}

// NumPy's pairwise sum: the last bit of the weights depends on it.
static double sum_of(const double *v, size_t n) {
  double t = 0;
  if (n < 8) {
    for (size_t i = 0; i < n; i++) t += v[i];
    return t;
  }
  if (n > 128) {
    size_t half = n / 2 - n / 2 % 8;
    return sum_of(v, half) + sum_of(v + half, n - half);
  }
  double r[8];
  size_t i = 8;
  memcpy(r, v, sizeof r);
  for (; i + 8 <= n; i += 8)
    for (size_t k = 0; k < 8; k++) r[k] += v[i + k];
  t = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; i++) t += v[i];
  return t;
}

static void normalize(double *to, const double *v, size_t n) {
  double t = sum_of(v, n);
  for (size_t i = 0; i < n; i++) to[i] = v[i] / t;
}

Status split_edges(const char *text, double edge[SPLITS + 1]) {
  double v[SPLITS] = {0};
  int n = 0;
  for (const char *p = text; *p; p++)                      // whatever else stands between shares parts them
    if (*p == '-' || isalpha((unsigned char)*p))
      return fail(EXIT_USAGE, "split '%.100s': '%c' is in no share; write for example 990,10,0", text, *p);
  for (const char *p = text; *p;) {
    size_t run = strspn(p, "0123456789.");
    if (!run) {
      p++;
      continue;
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)MIN(run, 63), p);
    if (n == SPLITS) return fail(EXIT_USAGE, "split '%.100s': more than three shares", text);
    if (run > 63 || !number_of(word, &v[n++]))
      return fail(EXIT_USAGE, "split '%.100s': '%.70s' is not a number", text, word);
    p += run;
  }
  if (!(sum_of(v, SPLITS) > 0) || !isfinite(sum_of(v, SPLITS)))
    return fail(EXIT_USAGE, "split '%.100s': the shares sum to 0; write for example 990,10,0", text);
  normalize(v, v, SPLITS);
  edge[0] = 0;
  for (int k = 0; k < SPLITS; k++) edge[k + 1] = edge[k] + v[k];
  return 0;
}

// ---- one source, one split --------------------------------------------------------------------------------------
static Status epochs_choose(Order *o, int64_t tokens) {
  int64_t seq = o->seq, x = o->extra, need;
  o->epochs = 1;
  if (o->want >= 0) {
    if (!mul_ok(o->want, seq, &need) || !add_ok(need, x, &need) || !add_ok(need, tokens, &need))
      return fail(EXIT_INPUT, "%s: %lld samples of %lld tokens overflow", o->source->prefix,
                  (long long)o->want, (long long)seq);
    o->epochs = MAX(1, (need - 1) / tokens);              // ceil((want*seq + x) / tokens)
  }
  int64_t all;
  if (!mul_ok(o->epochs, tokens, &all) || !mul_ok(o->epochs, o->end - o->begin, &need))
    return fail(EXIT_INPUT, "%s: %lld epochs overflow", o->source->prefix, (long long)o->epochs);
  o->samples = (all - x) / seq;
  return 0;
}

// The document index: all epochs in one shuffle, or the last one apart, appended.
static Status documents_make(Arena *a, Order *o, Mt19937 *g) {
  int64_t n = o->end - o->begin, together = n * (o->epochs - o->separate);
  TRY(counts_create(a, "document index", n * o->epochs, o->end > INT32_MAX, &o->document));
  for (int64_t i = 0; i < n * o->epochs; i++) counts_set(&o->document, i, o->begin + i % n);
  counts_shuffle(g, &o->document, 0, together);
  if (o->separate) counts_shuffle(g, &o->document, together, n);
  return 0;
}

// Where each window starts: a walk over the documents, seq + extra tokens at a time, extra of them again.
static Status samples_make(Arena *a, Order *o) {
  const int32_t *length = o->source->length;
  int64_t last = o->document.n - 1, p = 0, off = 0;
  TRY(counts_create(a, "sample index", 2 * (o->samples + 1), o->document.n > INT32_MAX, &o->sample));
  for (int64_t i = 1; i <= o->samples; i++) {
    for (int64_t left = o->seq + o->extra;;) {
      int64_t have = length[counts_get(&o->document, p)] - off;
      if (left <= have) {
        off += left - o->extra;
        break;
      }
      left -= have;
      if (p == last) {                                    // only the short last window of a valid split
        off = length[counts_get(&o->document, p)] - o->extra;
        break;
      }
      p++, off = 0;
    }
    counts_set(&o->sample, 2 * i, p);
    counts_set(&o->sample, 2 * i + 1, off);
  }
  return 0;
}

static Status shuffle_make(Arena *a, Order *o, int64_t before, Mt19937 *g) {
  TRY(counts_create(a, "shuffle index", o->samples, o->samples > INT32_MAX, &o->shuffle));
  for (int64_t i = 0; i < o->samples; i++) counts_set(&o->shuffle, i, i);
  if (!o->separate) before = 0;
  counts_shuffle(g, &o->shuffle, 0, before);
  counts_shuffle(g, &o->shuffle, before, o->samples - before);
  return 0;
}

static Status order_make(Arena *a, const OrderRule *r, int split, Order *o) {
  int64_t tokens = 0, before = 0;
  o->seq = r->seq, o->extra = r->extra;
  for (int64_t i = o->begin; i < o->end; i++) tokens += o->source->length[i];
  o->tokens = tokens;
  if (tokens < 2)
    return fail(EXIT_INPUT,
                "%s: the %s split (sequences %lld to %lld of %lld) is empty: it needs %lld tokens, has %lld; a split "
                "takes whole documents, of which mtdata prepare --format lines makes one of each line",
                o->source->prefix, split_names[split], (long long)o->begin, (long long)o->end,
                (long long)o->source->n, (long long)(o->seq + o->extra), (long long)tokens);
  TRY(epochs_choose(o, tokens));
  if (o->epochs > 1) {
    before = ((o->epochs - 1) * tokens - o->extra) / o->seq;
    int64_t per = (tokens - o->extra) / o->seq, rest = o->want - before;
    o->separate = rest < (int64_t)(0.80 * (double)per);
  }
  if (split == VALID && r->keep_partial_valid)            // in float, as the original computes it
    o->samples = (int64_t)ceilf((float)(o->epochs * tokens - o->extra) / (float)o->seq);
  Mt19937 g;
  mt_seed(&g, (uint32_t)r->seed);
  TRY(documents_make(a, o, &g));
  TRY(samples_make(a, o));
  return shuffle_make(a, o, before, &g);
}

// ---- blends -----------------------------------------------------------------------------------------------------
// Item i goes to the source that is furthest behind its share; the first one wins a tie. limit (or 0):
// samples of each.
static Status blend_make(Arena *a, const double *weight, const int64_t *limit, Split *s) {
  uint32_t n = s->source.n;
  int64_t *count = NEW_N(a, int64_t, n), bytes;
  if (!mul_ok(s->samples, 10, &bytes) || bytes > (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE))
    return fail(EXIT_INPUT, "a blend of %lld samples is more than this machine's memory holds",
                (long long)s->samples);
  s->id = NEW_N(a, int16_t, s->samples), s->sample = NEW_N(a, int64_t, s->samples);
  for (int64_t i = 0; i < s->samples; i++) {
    double f = (double)MAX(i, 1), most = 0;
    int64_t best = -1;
    for (uint32_t k = 0; k < n; k++) {
      if (limit && count[k] >= limit[k]) continue;
      double behind = weight[k] * f - (double)count[k];
      if (best < 0 || behind > most) best = k, most = behind;
    }
    s->id[i] = (int16_t)best, s->sample[i] = count[best]++;
  }
  for (uint32_t k = 0; k < n; k++)
    if (count[k] > s->source.at[k].samples)
      return fail(EXIT_INPUT, "blend: %s is asked for %lld samples and has %lld; raise the surplus",
                  s->source.at[k].source->prefix, (long long)count[k], (long long)s->source.at[k].samples);
  return 0;
}

static Status weighted_blend(Arena *a, const OrderRule *r, int split, const Sources *from, Split *s) {
  uint32_t n = s->source.n;
  double *w = NEW_N(a, double, n);
  int64_t size = r->size[split];
  s->weight = NEW_N(a, double, n);
  if (size < 0)
    return fail(EXIT_USAGE, "%s split: a blend by weight needs the number of samples wanted",
                split_names[split]);
  for (uint32_t k = 0; k < n; k++) w[k] = from->at.at[k].weight;
  normalize(w, w, n);
  for (uint32_t k = 0; k < n; k++) {
    double target = ceil((double)size * w[k]), want = ceil(target * (1.0 + r->surplus));
    if (!(want < 0x1p62))
      return fail(EXIT_INPUT, "%s split: %lld samples overflow", split_names[split], (long long)size);
    s->source.at[k].want = (int64_t)want;
    s->samples += (int64_t)target;
    TRY(order_make(a, r, split, &s->source.at[k]));
  }
  normalize(s->weight, w, n);                             // a second time: it can change the last bit
  return blend_make(a, s->weight, 0, s);
}

static Status whole_blend(Arena *a, const OrderRule *r, int split, Split *s) {
  uint32_t n = s->source.n;
  int64_t *limit = NEW_N(a, int64_t, n), size = r->size[split];
  double *w = NEW_N(a, double, n);
  s->weight = NEW_N(a, double, n);
  for (uint32_t k = 0; k < n; k++) {
    Order *o = &s->source.at[k];
    o->want = -1;
    TRY(order_make(a, r, split, o));
    if (o->samples < 1)
      return fail(EXIT_INPUT, "%s: the %s split needs %lld tokens, has %lld", o->source->prefix, split_names[split],
                  (long long)(o->seq + o->extra), (long long)o->tokens);
    limit[k] = o->samples, s->samples += o->samples;
    w[k] = (double)o->samples;
  }
  s->exhaustive = size < 0;
  if (!s->exhaustive) {
    s->samples = MIN(size, s->samples);
    normalize(s->weight, w, n);
    return blend_make(a, s->weight, 0, s);
  }
  double *share = NEW_N(a, double, n);
  for (uint32_t k = 0; k < n; k++) s->weight[k] = w[k], share[k] = w[k] / (double)s->samples;
  return blend_make(a, share, limit, s);
}

// ---- all splits -------------------------------------------------------------------------------------------------
static Status file_of(Arena *a, SampleOrder *o, Str prefix, const Indexed **x) {
  for (uint32_t i = 0; i < o->file.n; i++)
    if (!strcmp(o->file.at[i]->prefix, prefix)) {
      *x = o->file.at[i];
      return 0;
    }
  Indexed *fresh = NEW(a, Indexed);
  TRY(indexed_open(a, prefix, fresh));
  vec_push(a, &o->file, fresh);
  *x = fresh;
  return 0;
}

static Status split_make(Arena *a, SampleOrder *o, int split, const double edge[SPLITS + 1]) {
  const OrderRule *r = &o->rule;
  const Sources *from = r->own ? &r->per_split[split] : &r->all;
  Split *s = &o->split[split];
  s->present = r->own ? from->at.n > 0 : edge[split + 1] > edge[split];
  if (!s->present) return 0;
  for (uint32_t k = 0; k < from->at.n; k++) {
    Order e = {.want = r->size[split]};
    TRY(file_of(a, o, from->at.at[k].prefix, &e.source));
    e.end = e.source->n;
    if (!r->own) {                                        // to the nearest sequence, ties to even
      e.begin = (int64_t)nearbyint(edge[split] * (double)e.source->n);
      e.end = (int64_t)nearbyint(edge[split + 1] * (double)e.source->n);
    }
    vec_push(a, &s->source, e);
  }
  s->blend = from->at.n > 1 || (from->weighted && !r->own);
  if (s->blend) return from->weighted ? weighted_blend(a, r, split, from, s) : whole_blend(a, r, split, s);
  TRY(order_make(a, r, split, &s->source.at[0]));
  s->samples = s->source.at[0].samples;
  return 0;
}

static Status rule_check(const OrderRule *r) {
  if (r->seq < 2 || r->seq > INT32_MAX / 2)
    return fail(EXIT_USAGE, "sequence length %lld: 2 to %d is possible", (long long)r->seq, INT32_MAX / 2);
  if (r->seed < 0 || r->seed > UINT32_MAX)
    return fail(EXIT_USAGE, "seed %lld: 0 to 4294967295 is possible", (long long)r->seed);
  if (r->extra != 0 && r->extra != 1)
    return fail(EXIT_USAGE, "%lld extra tokens: 0 or 1 is possible", (long long)r->extra);
  if (!(r->surplus >= 0 && r->surplus <= 1e6)) return fail(EXIT_USAGE, "surplus %g: 0 or more is needed", r->surplus);
  return 0;
}

Status order_open(Arena *a, const OrderRule *r, SampleOrder *o) {
  double edge[SPLITS + 1] = {0};
  *o = (SampleOrder){.rule = *r};
  TRY(rule_check(r));
  if (!r->own) TRY(split_edges(r->split, edge));
  Status status = 0;
  for (int k = 0; k < SPLITS && !status; k++)
    if (!r->skip[k]) status = split_make(a, o, k, edge);
  if (status) order_close(o);
  return status;
}

void order_close(SampleOrder *o) {
  for (uint32_t i = 0; i < o->file.n; i++) indexed_close(o->file.at[i]);
  o->file.n = 0;
}

// ---- samples ----------------------------------------------------------------------------------------------------
// Calls for each piece of sequence in the sample, in order: tokens [from, from + n).
typedef struct { const Order *o; int64_t p, last, from, stop; } Walk;

static Walk walk_begin(const SampleOrder *o, int split, int64_t i) {
  const Split *s = &o->split[split];
  if (!s->present || i < 0 || i >= s->samples) bug("%s split has no sample %lld", split_names[split], (long long)i);
  Walk e = {.o = &s->source.at[s->blend ? s->id[i] : 0]};
  int64_t k = counts_get(&e.o->shuffle, s->blend ? s->sample[i] : i);
  e.p = counts_get(&e.o->sample, 2 * k), e.from = counts_get(&e.o->sample, 2 * k + 1);
  e.last = counts_get(&e.o->sample, 2 * k + 2), e.stop = counts_get(&e.o->sample, 2 * k + 3) + e.o->extra;
  return e;
}

static bool walk_next(Walk *e, int64_t *sequence, int64_t *from, int64_t *n) {
  if (e->p > e->last) return false;
  *sequence = counts_get(&e->o->document, e->p), *from = MAX(e->from, 0);
  *n = (e->p == e->last ? e->stop : e->o->source->length[*sequence]) - *from;
  e->p++, e->from = 0;
  return true;
}

Status order_read(const SampleOrder *o, int split, int64_t i, int64_t first, int64_t n, int32_t *token,
                  int32_t *piece, int64_t *got) {
  Walk e = walk_begin(o, split, i);
  int64_t sequence, from, k, skip = first;
  int32_t number = -1;
  *got = 0;
  while (*got < n && walk_next(&e, &sequence, &from, &k)) {
    if (k) number++;                                      // an empty sequence is no piece
    int64_t over = MIN(skip, k), some = MIN(k - over, n - *got);
    skip -= over;
    TRY(indexed_read(e.o->source, sequence, from + over, some, token + *got));
    for (int64_t j = 0; j < some && piece; j++) piece[*got + j] = number;
    *got += some;
  }
  return 0;
}

Str order_place(Arena *a, const SampleOrder *o, int split, int64_t i, int64_t token) {
  Walk e = walk_begin(o, split, i);
  int64_t sequence, from, k;
  for (int64_t at = 0; walk_next(&e, &sequence, &from, &k); at += k)
    if (token < at + k)
      return arena_printf(a, "%s, sequence %lld, token %lld", e.o->source->bin, (long long)sequence,
                          (long long)(from + token - at));
  return "";
}
