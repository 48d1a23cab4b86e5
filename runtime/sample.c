// sample.c -- see sample.h.
#include "runtime/sample.h"
#include "runtime/philox.h"
#include <math.h>

enum { BYTES = 256, END = 256 };             // ids 0 … 255 are bytes, 256 ends a document

typedef struct {
  const Plan *plan;
  int64_t seq, used;                         // window; tokens in it
  int32_t *window;
} Window;

static Status feed_window(void *with, uint32_t input, int64_t microbatch, void *to) {
  const Window *w = with;
  const PlanInput *in = &w->plan->input.at[input];
  (void)microbatch;
  memset(to, 0, (size_t)plan_count(w->plan, in->dim, in->ndim, true) * dtype_bytes(in->dtype));
  if (!strcmp(in->name, "tokens")) memcpy(to, w->window, (size_t)w->seq * sizeof *w->window);   // sample 0
  if (!strcmp(in->name, "lengths")) dtype_store_int(in->dtype, to, w->used);
  return 0;
}

static const PlanInput *tokens_of(const Plan *p) {
  for (uint32_t i = 1; i < p->input.n; i++)
    if (!strcmp(p->input.at[i].name, "tokens")) return &p->input.at[i];
  return 0;
}

// Where the logits of sample 0 at one position lie: over the vocabulary, as element stride.
typedef struct { const PlanOutput *out; uint32_t vocab; int64_t seq_stride, vocab_stride, nvocab; } Logits;

static Status find_logits(const Plan *p, const PlanInput *tokens, Logits *l) {
  for (uint32_t i = 0; i < p->output.n; i++) {
    const PlanOutput *o = &p->output.at[i];
    if (o->slot || o->ndim != 3) continue;
    int64_t step = 1;
    *l = (Logits){.out = o};
    for (uint32_t d = o->ndim; d-- > 0; step *= p->dim.at[o->dim[d]].size) {
      if (o->dim[d] == tokens->dim[1]) l->seq_stride = step;
      else if (o->dim[d] != tokens->dim[0])
        l->vocab = o->dim[d], l->vocab_stride = step, l->nvocab = p->dim.at[o->dim[d]].extent;
    }
    if (l->seq_stride && l->vocab) return 0;
  }
  return fail(EXIT_USAGE, "--sample: the model has no output [batch, seq, vocabulary]");
}

static int choose(const Logits *l, const char *at, const SampleRule *r, int64_t number) {
  double p[BYTES + 1], top = -INFINITY, sum = 0;
  int n = (int)MIN(l->nvocab, BYTES + 1), best = 0;
  for (int i = 0; i < n; i++) {
    p[i] = dtype_load(l->out->dtype, at + (size_t)(i * l->vocab_stride) * dtype_bytes(l->out->dtype));
    if (p[i] > top) top = p[i], best = i;
  }
  if (!(r->temperature > 0) || !isfinite(top)) return best;
  for (int i = 0; i < n; i++) sum += p[i] = exp((p[i] - top) / r->temperature);
  double left = (double)philox_uniform((uint64_t)r->seed, 0, 0, (uint64_t)number) * sum;
  for (int i = 0; i < n; i++)
    if ((left -= p[i]) < 0) return i;
  return best;
}

static void put_byte(FILE *to, int c) {                    // what would steer a terminal is shown as ?
  bool steers = (c < 32 && c != '\n' && c != '\t') || c == 127;
  putc(steers ? '?' : c, to);
}

Status sample_print(Arena *a, Exec *x, const SampleRule *r, FILE *to) {
  const Plan *p = x->plan;
  const PlanInput *tokens = tokens_of(p);
  Logits l;
  if (!tokens || tokens->ndim != 2 || tokens->dtype != DT_i32)
    return fail(EXIT_USAGE, "--sample: the model has no input tokens: i32[batch, seq]");
  TRY(find_logits(p, tokens, &l));
  if (l.nvocab < BYTES || l.nvocab > BYTES + 64)
    return fail(EXIT_USAGE, "--sample works on bytes; the model's vocabulary has %lld entries",
                (long long)l.nvocab);
  if (!*r->prompt) return fail(EXIT_USAGE, "--sample needs a text to begin with");
  Window w = {p, p->dim.at[tokens->dim[1]].extent, 0, 0};
  int32_t *all = NEW_N(a, int32_t, w.seq);
  w.window = all;
  dev_feed(x->dev, feed_window, &w);
  for (const char *s = r->prompt; *s; s++) {
    if (w.used == w.seq) memmove(all, all + 1, (size_t)--w.used * sizeof *all);
    all[w.used++] = (unsigned char)*s;
    put_byte(to, (unsigned char)*s);
  }
  for (int64_t i = 0; i < r->tokens; i++) {
    TRY(exec_logits(x));
    const char *at = dev_at(x->dev, (PlanArg){l.out->buffer, 0});
    int c = choose(&l, at + (size_t)((w.used - 1) * l.seq_stride) * dtype_bytes(l.out->dtype), r, i);
    if (c == END) break;
    put_byte(to, c), fflush(to);
    if (w.used == w.seq) memmove(all, all + 1, (size_t)--w.used * sizeof *all);
    all[w.used++] = c;
  }
  putc('\n', to);
  return 0;
}
