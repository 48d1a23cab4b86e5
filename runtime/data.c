// data.c -- see data.h.
#include "runtime/data.h"
#include <stdlib.h>
#include <unistd.h>

// ---- token files ------------------------------------------------------------------------------------------------
void data_defaults(DataRule *r) {
  *r = (DataRule){.pad = -1, .eod = -1};
  order_defaults(&r->order);
}

Status data_sources(Arena *a, const char *text, Sources *s) {
  VEC(Str) word = {0};
  if (!access(arena_printf(a, "%s.idx", text), F_OK)) return sources_parse(a, &text, 1, s);
  for (const char *p = text;;) {
    p += strspn(p, " \t\n");
    size_t n = strcspn(p, " \t\n");
    if (!n) break;
    vec_push(a, &word, arena_strndup(a, p, n));
    p += n;
  }
  return sources_parse(a, word.at, word.n, s);
}

static Status enough(const Data *d, int split) {
  const Split *s = &d->order.split[split];
  int64_t need = d->rule.order.seq + d->rule.order.extra, have = 0;
  for (uint32_t k = 0; k < s->source.n; k++) have += s->source.at[k].tokens;
  if (!s->present || have >= need) return 0;
  return fail(EXIT_INPUT, "%s%s: the %s split needs %lld tokens, has %lld", s->source.at[0].source->prefix,
              s->source.n > 1 ? " …" : "", split_names[split], (long long)need, (long long)have);
}

Status data_open(Arena *a, const DataRule *r, Data *d) {
  *d = (Data){.rule = *r};
  TRY(order_open(a, &r->order, &d->order));
  for (int k = 0; k < SPLITS; k++) {
    Status s = enough(d, k);
    if (!s) continue;
    data_close(d);
    return s;
  }
  return 0;
}

void data_close(Data *d) { order_close(&d->order); }

int64_t data_samples(const Data *d, int split) { return d->order.split[split].samples; }

static Status ids_check(const Data *d, int split, int64_t index, const int32_t *id, int64_t first, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (id[i] >= 0 && (!d->rule.nvocab || id[i] < d->rule.nvocab)) continue;
    Arena *a = arena_create();
    Status s = fail(EXIT_INPUT, "%s: id %d, the model knows 0 to %lld",
                    order_place(a, &d->order, split, index, first + i), id[i], (long long)d->rule.nvocab - 1);
    arena_destroy(a);
    return s;
  }
  return 0;
}

// A sample that is short is filled up with pad, which stands for "no token": below it is told apart by position.
Status data_sample(const Data *d, int split, int64_t index, const Sample *to) {
  const DataRule *r = &d->rule;
  int64_t seq = r->order.seq, got = 0, more = 0, position = 0;
  int32_t *t = to->tokens, *l = to->labels, behind = 0;
  TRY(order_read(&d->order, split, index, 0, seq, t, to->segments, &got));
  TRY(ids_check(d, split, index, t, 0, got));
  if (r->order.extra && got == seq) TRY(order_read(&d->order, split, index, seq, 1, &behind, 0, &more));
  if (more) TRY(ids_check(d, split, index, &behind, seq, 1));
  for (int64_t i = got; i < seq; i++) {
    t[i] = 0;
    if (to->segments) to->segments[i] = i ? to->segments[i - 1] : 0;
  }
  for (int64_t i = 0; i < seq; i++) {
    bool there = i + 1 < got || (i + 1 == seq && more);   // a label exists
    int32_t next = !there ? 0 : i + 1 < seq ? t[i + 1] : behind;
    bool counts = there && next != r->pad && !(r->eod_mask && i < got && t[i] == r->eod);
    if (l) l[i] = r->plain_labels ? (next == r->pad ? 0 : next) : counts ? next : LABEL_IGNORED;
    if (to->mask) to->mask[i] = counts;
    if (to->positions) to->positions[i] = (int32_t)position;
    position = r->reset_positions && i < got && t[i] == r->eod ? 0 : position + 1;
  }
  for (int64_t i = 0; i < got; i++)
    if (t[i] == r->pad) t[i] = 0;
  return 0;
}

// A file is the same wherever it lies: what it is called, and below how much is in it.
static const char *base_name(const char *prefix) {
  const char *slash = strrchr(prefix, '/');
  return slash ? slash + 1 : prefix;
}

static void sources_text(Text *t, const Sources *s) {
  for (uint32_t i = 0; i < s->at.n; i++) {
    if (s->weighted) text_printf(t, " %.17g", s->at.at[i].weight);
    text_printf(t, " %s", base_name(s->at.at[i].prefix));
  }
}

Str data_rule_text(Arena *a, const Data *d) {
  const OrderRule *r = &d->rule.order;
  Text t;
  text_init(&t, a);
  text_printf(&t, "order megatron-1, seq %lld, seed %lld, extra %lld, surplus %.17g, pad %lld, eod %lld, eod_mask %d, "
              "reset_positions %d, keep_partial_valid %d", (long long)r->seq, (long long)r->seed, (long long)r->extra,
              r->surplus, (long long)d->rule.pad, (long long)d->rule.eod, d->rule.eod_mask, d->rule.reset_positions,
              r->keep_partial_valid);
  if (!r->own) text_printf(&t, ", split %s, data", r->split), sources_text(&t, &r->all);
  text_printf(&t, ", train wanted %lld", (long long)r->size[TRAIN]);
  if (r->own) text_puts(&t, ", train data"), sources_text(&t, &r->per_split[TRAIN]);
  for (uint32_t i = 0; i < d->order.file.n; i++) {
    const Indexed *x = d->order.file.at[i];
    text_printf(&t, "; %s has %lld sequences, %lld tokens %s", base_name(x->prefix), (long long)x->n, (long long)x->tokens,
                dtype_name(x->dtype));
  }
  return t.s;
}

// The order of a source for more samples begins as that for less when both have as many epochs: those are shuffled
// together. A blend takes from its sources by weight, one after the other, whatever comes later.
static bool begins_alike(const Split *x, const Split *y) {
  if (x->source.n != y->source.n) return false;
  for (uint32_t i = 0; i < x->source.n; i++)
    if (x->source.at[i].epochs != y->source.at[i].epochs || x->source.at[i].separate != y->source.at[i].separate)
      return false;
  return true;
}

DataChange data_change(const Data *d, Str was) {
  Arena *a = arena_create();
  Str now = data_rule_text(a, d);
  size_t i = 0;
  Data then = {.rule = d->rule, .order = {.file = d->order.file}};
  OrderRule *r = &then.rule.order;
  DataChange change = strcmp(now, was) ? DATA_other : DATA_same;
  while (now[i] && now[i] == was[i]) i++;                  // where they differ, the number of samples is looked for
  while (i && was[i - 1] >= '0' && was[i - 1] <= '9') i--;
  r->size[TRAIN] = strtoll(was + i, 0, 10);
  r->skip[VALID] = r->skip[TEST] = true;
  if (change == DATA_other && !strcmp(data_rule_text(a, &then), was)) {
    change = DATA_reordered;
    if (!order_open(a, r, &then.order)) {
      if (begins_alike(&then.order.split[TRAIN], &d->order.split[TRAIN])) change = DATA_longer;
      order_close(&then.order);
    }
  }
  arena_destroy(a);
  return change;
}

// ---- recorded batches -------------------------------------------------------------------------------------------
static Status input_check(Arena *a, Batches *b, Str path, const BatchInput *in, bool first) {
  const Tensor *t = safetensors_find(&b->file, in->name);
  if (!t) return fail(EXIT_INPUT, "%s: no input '%s'", path, in->name);
  Str shape = shape_text(a, t->ndim, t->shape);
  bool fits = t->ndim == in->ndim + 3;
  for (int i = 0; fits && i < in->ndim; i++) fits = t->shape[3 + i] == in->shape[i];
  if (!fits)
    return fail(EXIT_INPUT, "%s: input '%s' is %s, [steps, microbatches, batch] and then %s is needed", path,
                in->name, shape, shape_text(a, in->ndim, in->shape));
  bool same = dtype_is_int(in->dtype) ? dtype_is_int(t->dtype)
            : dtype_is_float(in->dtype) ? dtype_is_float(t->dtype) && t->dtype != DT_none : t->dtype == in->dtype;
  if (!same)
    return fail(EXIT_INPUT, "%s: input '%s' is %s, %s is needed", path, in->name, t->format,
                dtype_name(in->dtype));
  int64_t samples;
  if (!mul_ok(t->shape[1], t->shape[2], &samples) || !t->shape[0] || !samples)
    return fail(EXIT_INPUT, "%s: input '%s' is %s: there is no sample in it", path, in->name, shape);
  if (first) b->steps = t->shape[0], b->samples = samples;
  if (t->shape[0] != b->steps || samples != b->samples)
    return fail(EXIT_INPUT,
                "%s: input '%s' has %lld steps of %lld samples, the inputs before it %lld of %lld", path,
                in->name, (long long)t->shape[0], (long long)samples, (long long)b->steps,
                (long long)b->samples);
  return 0;
}

// All inputs are there, so none of the others is one that is misspelt: the model may have it and not need it.
static void unused_note(Arena *a, const Batches *b, Str path, const BatchInput *in, size_t n) {
  enum { SHOWN = 5 };
  uint32_t unused = 0;
  Text names;
  text_init(&names, a);
  for (uint32_t k = 0; k < b->file.tensor.n; k++) {
    bool known = false;
    for (size_t i = 0; i < n && !known; i++) known = !strcmp(in[i].name, b->file.tensor.at[k].name);
    if (known || unused++ >= SHOWN) continue;
    text_printf(&names, "%s%.200s", names.n ? ", " : "", b->file.tensor.at[k].name);
  }
  if (unused)
    fail(0, "note: %s: not used by the plan: %s%s", path, names.s, unused > SHOWN ? ", …" : "");
}

Status batches_open(Arena *a, const char *path, const BatchInput *in, size_t n, Batches *b) {
  *b = (Batches){.steps = 0};
  TRY(safetensors_open(a, path, &b->file));
  Status s = 0;
  for (size_t i = 0; i < n && !s; i++) s = input_check(a, b, path, &in[i], !i);
  if (s) batches_close(b);
  else unused_note(a, b, path, in, n);
  return s;
}

void batches_close(Batches *b) { safetensors_close(&b->file); }

Status batches_read(const Batches *b, const BatchInput *in, int64_t step, int64_t sample, void *to) {
  const Tensor *t = safetensors_find(&b->file, in->name);
  int64_t n = 1, width = (int64_t)dtype_bytes(in->dtype);
  for (int i = 0; i < in->ndim; i++) n *= in->shape[i];
  if (step < 0 || step >= b->steps || sample < 0 || sample >= b->samples)
    bug("batches have no step %lld, sample %lld", (long long)step, (long long)sample);
  TRY(tensor_read(&b->file, t, (step * b->samples + sample) * n, n, in->dtype, to));
  for (int64_t i = 0; i < n && in->below; i++) {
    int64_t v = dtype_load_int(in->dtype, (const char *)to + i * width);
    if ((v < 0 || v >= in->below) && !(in->ignores && v == in->ignored))
      return fail(EXIT_INPUT, "%s: input '%s' at step %lld, sample %lld, place %lld is %lld, 0 to %lld is possible",
                  b->file.path, in->name, (long long)step, (long long)sample, (long long)i, (long long)v,
                      (long long)in->below - 1);
  }
  return 0;
}
