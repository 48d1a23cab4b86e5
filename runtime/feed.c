// feed.c -- see feed.h.
#include "runtime/feed.h"

static int input_find(const Plan *p, const char *name) {
  for (uint32_t i = 1; i < p->input.n; i++)
    if (!strcmp(p->input.at[i].name, name)) return (int)i;
  return 0;
}

// One sample of an input as the recorded batches have it, and where its values lie in the padded storage.
static Status describe(Arena *a, Feed *f, const FeedOptions *o) {
  const Plan *p = f->plan;
  int64_t most = 1;
  f->input = NEW_N(a, BatchInput, p->input.n), f->piece = NEW_N(a, Pieces, p->input.n);
  f->storage = NEW_N(a, Storage, p->input.n);
  for (uint32_t i = 1; i < p->input.n; i++) {
    const PlanInput *in = &p->input.at[i];
    int64_t *shape = NEW_N(a, int64_t, in->ndim);
    Storage s = {.name = "input", .dtype = in->dtype, .ndim = (int)in->ndim};
    int64_t count = 1;
    for (uint32_t d = 0; d < in->ndim; d++) {
      const PlanDim *dim = &p->dim.at[in->dim[d]];
      const PlanDim *whole = plan_whole(p, in->dim[d]);
      s.dim[d] = (StorageDim){.name = whole->name, .extent = whole->extent, .size = whole->size, .axis = (int)d, .chunks = whole->chunks};
      if (dim->whole) plan_cut(p, dim, o->rank, &s.dim[d].first, &s.dim[d].part);
      if (d) shape[d - 1] = whole->extent, count *= whole->extent;
    }
    f->input[i - 1] =
        (BatchInput){in->name, in->dtype, (int)in->ndim - 1, shape, in->below, in->ignores, in->ignored};
    const char *why = storage_pieces(a, &s, &f->piece[i]);
    if (why) return fail(EXIT_INPUT, "the plan's input %s: %s", in->name, why);
    f->storage[i] = s;
    most = MAX(most, count * (int64_t)dtype_bytes(in->dtype));
  }
  f->room = arena_alloc(a, (size_t)most);
  return 0;
}

static Status open_batches(Arena *a, Feed *f, const FeedOptions *o) {
  const Plan *p = f->plan;
  TRY(batches_open(a, o->batches, f->input, p->input.n - 1, &f->batches));
  if (f->batches.samples != p->global_batch)
    return fail(EXIT_INPUT, "%s has %lld samples per step, the plan's global_batch is %lld", o->batches,
                (long long)f->batches.samples, (long long)p->global_batch);
  if (f->batches.steps < o->steps)
    return fail(EXIT_INPUT, "%s has %lld steps, the run has %lld; --steps %lld runs those", o->batches,
                (long long)f->batches.steps, (long long)o->steps, (long long)f->batches.steps);
  return 0;
}

static Status open_data(Arena *a, Feed *f, const FeedOptions *o) {
  static const Str known[] = {"tokens", "labels", "positions", "segments"};
  const Plan *p = f->plan;
  int tokens = input_find(p, "tokens");
  if (!tokens || p->input.at[tokens].ndim != 2)
    return fail(EXIT_USAGE, "--data: the model has no input tokens[batch, seq]; use --batches");
  int64_t seq = plan_whole(p, p->input.at[tokens].dim[1])->extent;
  for (uint32_t i = 1; i < p->input.n; i++) {
    const PlanInput *in = &p->input.at[i];
    bool right = in->dtype == DT_i32 && in->ndim == 2 && plan_whole(p, in->dim[1])->extent == seq, found = false;
    for (size_t k = 0; k < COUNT(known); k++) found |= !strcmp(in->name, known[k]);
    if (!found || !right)
      return fail(EXIT_USAGE,
                  "--data gives tokens, labels, positions and segments as i32[batch, seq]; the model's input "
                  "%s is another: use --batches",
                  in->name);
  }
  DataRule r;
  data_defaults(&r);
  r.order.seq = seq, r.order.seed = p->seed, r.order.extra = input_find(p, "labels") ? 1 : 0;
  if (!mul_ok(MAX(p->steps, o->steps), p->global_batch, &r.order.size[TRAIN]))
    return fail(EXIT_USAGE, "%lld steps of %lld samples are more than can be counted", (long long)MAX(p->steps, o->steps), (long long)p->global_batch);
  r.order.split = o->split ? o->split : o->valid ? "990,10,0" : "1,0,0";
  r.order.skip[TRAIN] = !o->train, r.order.skip[VALID] = !o->valid, r.order.skip[TEST] = true;
  r.nvocab = p->input.at[tokens].below;
  TRY(data_sources(a, o->data, &r.order.all));
  f->tokens = NEW_N(a, int32_t, seq);
  return data_open(a, &r, &f->data);
}

Status feed_open(Arena *a, const Plan *p, const FeedOptions *o, Feed *f) {
  *f = (Feed){.plan = p, .recorded = o->batches != 0};
  TRY(describe(a, f, o));
  if (f->recorded) return open_batches(a, f, o);
  TRY(open_data(a, f, o));
  if (o->train && !data_samples(&f->data, TRAIN))
    return fail(EXIT_INPUT, "--data: the split leaves no sample to train on");
  if (o->valid && !data_samples(&f->data, VALID))
    return fail(EXIT_INPUT, "%s: the split leaves no sample to evaluate on",
                o->train ? "--eval-every" : "--eval-only");
  return 0;
}

void feed_close(Feed *f) {
  if (!f->plan) return;
  if (f->recorded) batches_close(&f->batches);
  else data_close(&f->data);
}

int64_t feed_valid(const Feed *f) { return f->recorded ? 0 : data_samples(&f->data, VALID); }
Str feed_rule(Arena *a, const Feed *f) { return f->recorded ? "recorded batches" : data_rule_text(a, &f->data); }

Status feed_hash(const Feed *f, uint64_t *hash) {
  *hash = 0;
  if (f->recorded) return safetensors_hash(&f->batches.file, hash);
  for (uint32_t i = 0; i < f->data.order.file.n; i++) {
    uint64_t one;
    TRY(indexed_hash(f->data.order.file.at[i], &one));
    *hash = hash_mix(*hash, one);
  }
  return 0;
}

DataChange feed_change(const Feed *f, Str was) {
  if (!f->recorded) return data_change(&f->data, was);
  return strcmp(was, "recorded batches") ? DATA_other : DATA_same;
}

Str feed_about(Arena *a, const Feed *f) {
  if (f->recorded)
    return arena_printf(a, "%s: %lld steps of %lld samples", f->batches.file.path,
                        (long long)f->batches.steps, (long long)f->batches.samples);
  Text t;
  text_init(&t, a);
  const Sources *s = &f->data.rule.order.all;
  for (uint32_t i = 0; i < s->at.n; i++) text_printf(&t, "%s%s", i ? " " : "", s->at.at[i].prefix);
  const Split *train = &f->data.order.split[TRAIN];
  if (f->data.rule.order.skip[TRAIN]) {
    text_printf(&t, ": held out %lld", (long long)feed_valid(f));
    return t.s;
  }
  text_printf(&t, ": %lld samples", (long long)train->samples);
  if (train->source.n == 1)
    text_printf(&t, " in %lld epoch%s", (long long)train->source.at[0].epochs,
                train->source.at[0].epochs == 1 ? "" : "s");
  if (feed_valid(f)) text_printf(&t, "; held out %lld", (long long)feed_valid(f));
  return t.s;
}

static Status one_sample(Feed *f, uint32_t input,
                         int64_t number) { // into f->room; number: in the step or the valid split
  const Plan *p = f->plan;
  if (f->recorded) return batches_read(&f->batches, &f->input[input - 1], f->step, number, f->room);
  Str name = p->input.at[input].name;
  int64_t seq = f->data.rule.order.seq;
  int32_t *to = (int32_t *)(void *)f->room;
  int32_t ignored = p->input.at[input].ignores ? (int32_t)p->input.at[input].ignored : LABEL_IGNORED;
  if (f->valid && number >= data_samples(&f->data, VALID)) {
    for (int64_t i = 0; i < seq; i++) to[i] = !strcmp(name, "labels") ? ignored : 0;
    return 0;
  }
  Sample s = {.tokens = !strcmp(name, "tokens") ? to : f->tokens};
  if (!strcmp(name, "labels")) s.labels = to;
  if (!strcmp(name, "positions")) s.positions = to;
  if (!strcmp(name, "segments")) s.segments = to;
  TRY(data_sample(&f->data, f->valid ? VALID : TRAIN,
                  f->valid ? number : f->step * p->global_batch + number, &s));
  for (int64_t i = 0; s.labels && i < seq; i++)
    if (to[i] == LABEL_IGNORED) to[i] = ignored;
  return 0;
}

Status feed_input(void *feed, uint32_t input, int64_t microbatch, void *to) {
  Feed *f = feed;
  DType t = f->plan->input.at[input].dtype;
  const Storage *s = &f->storage[input];
  int64_t batch = s->dim[0].extent, first = s->dim[0].first, here = s->dim[0].part ? s->dim[0].part : batch;
  const Piece *q = &f->piece[input].at[0];
  int64_t each = batch ? q->count / batch : 0;
  for (int64_t b = first; b < first + here; b++) {
    TRY(one_sample(f, input, microbatch * batch + b));
    piece_put(q, s, to, b * each, each, t, f->room);
  }
  return 0;
}
