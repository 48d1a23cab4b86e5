// trace.c -- see trace.h.
#include "runtime/trace.h"
#include "runtime/cost.h"
#include "runtime/json_text.h"
#include <stdlib.h>

static const Str op_name[] = {
#define X(word) #word,
  PLAN_OPS(X)
};
static const Str stream_name[] = { PLAN_STREAMS(X) };
#undef X

static Str ins_name(const Plan *p, Arena *a, const PlanIns *in) {
  const PlanGemm *g = &p->gemm.at[in->op == PI_gemm ? in->what : 0];
  switch (in->op) {
    case PI_kernel: return p->kernel.at[in->what].symbol;
    case PI_record: case PI_wait: return p->event.at[in->what].name;
    case PI_load: return p->input.at[in->what].name;
    case PI_gemm: return arena_printf(a, "%lldx%lldx%lld", (long long)g->m, (long long)g->n, (long long)g->k);
    case PI_copy: case PI_zero: case PI_coll: case PI_COUNT: break;
  }
  return op_name[in->op];
}

// ---- the trace ---------------------------------------------------------------------------------------------------
static void put_thread(Text *t, int tid, const char *name) {
  text_printf(t, "{\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", tid);
  text_json(t, name);
  text_printf(t,
              "}},\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_"
              "index\":%d}},\n",
              tid, tid);
}

static void put_time(Text *t, double begin, double end, double zero) { // µs, to the nanosecond
  text_printf(t, "\"ts\":%.3f,\"dur\":%.3f", (begin - zero) * 1e6, (end - begin) * 1e6);
}

static void put_span(Text *t, Arena *a, const Plan *p, const DevSpan *s, int tid, double zero) {
  const PlanIns *in = &p->fn.at[s->fn].ins.at[s->ins];
  text_printf(t, "{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"cat\":\"%s\",", tid, op_name[in->op]);
  put_time(t, s->begin, s->end, zero);
  text_puts(t, ",\"name\":"), text_json(t, in->line ? p->line.at[in->line].what : ins_name(p, a, in));
  text_puts(t, ",\"args\":{\"function\":"), text_json(t, p->fn.at[s->fn].name);
  text_puts(t, ",\"kernel\":"), text_json(t, ins_name(p, a, in));
  text_puts(t, ",\"line\":"), text_json(t, plan_place(p, a, in->line));
  if (in->when == WHEN_last) text_puts(t, ",\"gradient\":true");          // its sum over ranks
  text_printf(t, ",\"microbatch\":%lld}},\n", (long long)s->microbatch);
}

Status trace_write(const char *path, const Plan *p, const Dev *d, const StepSpans *steps) {
  enum { STEPS = STREAM_COUNT };
  Arena *a = arena_create();
  Text t;
  text_init(&t, a);
  double zero = steps->n ? steps->at[0].begin : 0;
  text_puts(&t, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":"), text_json(&t, p->hash);
  text_puts(&t, ",\"model\":"), text_json(&t, p->model);
  text_puts(&t, "},\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
                "\"rank 0\"}},\n");
  for (int s = 0; s < STREAM_COUNT; s++) put_thread(&t, s, stream_name[s]);
  put_thread(&t, STEPS, "steps");
  for (int s = 0; s < STREAM_COUNT; s++) {
    int64_t n;
    const DevSpan *span = dev_spans(d, (PlanStream)s, &n);
    for (int64_t i = 0; i < n; i++) put_span(&t, a, p, &span[i], s, zero);
    if (n == TRACE_SPANS)
      fprintf(stderr, "%s: --trace: the first %d instructions of stream %s are kept\n", program_name,
              TRACE_SPANS, stream_name[s]);
  }
  for (uint32_t i = 0; i < steps->n; i++) {
    text_printf(&t, "{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"cat\":\"step\",\"name\":\"step %lld\",", STEPS,
                (long long)steps->at[i].step);
    put_time(&t, steps->at[i].begin, steps->at[i].end, zero);
    text_puts(&t, "},\n");
  }
  t.n -= 2;                                                // the last comma
  text_puts(&t, "\n]}\n");
  Status e = file_write(path, t.s, t.n);
  arena_destroy(a);
  return e;
}

// ---- the table ---------------------------------------------------------------------------------------------------
// limit: seconds that it would take at the rates of the machine; 0: not known
typedef struct { const PlanIns *in; Str what; double seconds, flops, bytes, limit; int64_t runs; } Row;

// "h.3.attn" of many layers is one row: "h.*.attn"
static Str fold_numbers(Arena *a, const char *what) {
  Text t;
  text_init(&t, a);
  for (const char *p = what; *p;) {
    size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
    if (n && digits == n) text_puts(&t, "*");
    else text_add(&t, p, n);
    p += n;
    if (*p) text_add(&t, p++, 1);
  }
  return t.s;
}

static int by_time(const void *x, const void *y) {
  const Row *a = x, *b = y;
  return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

typedef struct { VEC(Row) row; double counted; } Profile; // by time; counted: seconds of the compute stream
static Profile profile_of(Arena *a, const Plan *p, const Dev *d, const Rates *rates) {
  Profile all = {0};
  Map by;                                                  // op, what, folded place -> index into row
  map_init(&by, a);
  Intern *in_a = intern_create(a);
  for (uint32_t f = 1; f < p->fn.n; f++)
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
      const PlanIns *in = &p->fn.at[f].ins.at[i];
      DevTime t = dev_time(d, f, i);
      if (!t.runs || in->op == PI_record || in->op == PI_wait) continue;
      const PlanLine *l = &p->line.at[in->line];
      Str what = intern(in_a, fold_numbers(a, l->what));
      uint64_t key = hash_mix(hash_mix(hash_mix((uint64_t)in->op, in->what), key_of(what)),
                              hash_mix(key_of(l->path), (uint64_t)l->line << 32 | l->col));
      uint64_t *at = map_get(&by, key);
      if (!at) {
        at = map_put(&by, key, all.row.n);
        vec_push(a, &all.row, (Row){.in = in, .what = what});
      }
      Row *r = &all.row.at[*at];
      double flops, bytes;
      ins_cost(p, in, &flops, &bytes);
      r->seconds += t.seconds, r->runs += t.runs, r->flops += flops * (double)t.runs,
          r->bytes += bytes * (double)t.runs;
      if (rates) r->limit += ins_limit(p, f, in, rates) * (double)t.runs;
      if (in->stream == STREAM_compute) all.counted += t.seconds;
    }
  if (all.row.n) qsort(all.row.at, all.row.n, sizeof *all.row.at, by_time);
  return all;
}

static double share(const Row *r) { return r->limit / MAX(r->seconds, 1e-9); }

void profile_print(FILE *to, const Plan *p, const Dev *d, double seconds, const Rates *rates) {
  enum { MOST = 40 };
  Arena *a = arena_create();
  Profile all = profile_of(a, p, d, rates);
  double whole = MAX(MAX(seconds, all.counted), 1e-9);
  fprintf(to, "%9s %6s %8s %9s %8s %8s%s  %-7s %-24s %-16s %s\n", "seconds", "share", "runs", "each us",
          "GFLOP/s", "GB/s", rates ? "  limit" : "", "kind", "name", "what", "line");
  for (uint32_t i = 0; i < MIN(all.row.n, (uint32_t)MOST); i++) {
    const Row *r = &all.row.at[i];
    Str limit = !rates ? "" : r->limit > 0 ? arena_printf(a, " %5.0f%%", 100 * share(r)) : "      -";
    fprintf(to, "%9.3f %5.1f%% %8lld %9.1f %8.2f %8.2f%s  %-7s %-24s %-16s %s\n", r->seconds,
            100 * r->seconds / whole, (long long)r->runs, r->seconds / (double)r->runs * 1e6,
            r->flops / MAX(r->seconds, 1e-9) * 1e-9, r->bytes / MAX(r->seconds, 1e-9) * 1e-9, limit,
            op_name[r->in->op], ins_name(p, a, r->in), r->what, plan_place(p, a, r->in->line));
  }
  if (all.row.n > MOST) fprintf(to, "%9s and %u more\n", "", all.row.n - MOST);
  fprintf(to, "%9.3f %5.1f%% of %.3f s of steps, in instructions of the compute stream\n", all.counted,
          100 * all.counted / whole, seconds);
  if (rates)
    fprintf(to, "%9s limit: the share that is reached of the rates of %s; more than 100%% in a cache\n", "", rates->day);
  arena_destroy(a);
}

static void put_product(Text *t, const PlanGemm *g) {
  static const Str lib[] = {
#define X(word) #word,
    PLAN_LIBS(X)
#undef X
  };
  int64_t loops = 1;
  for (uint32_t i = 0; i < g->nloop; i++) loops *= g->loop[i].n;
  bool turned = g->n > 1 && g->cn != 1;                    // rows of c are strided: the product of the transposes
  text_printf(t, ",\"library\":\"%s\",\"formats\":[\"%s\",\"%s\",\"%s\"]", lib[g->lib], dtype_name(g->a),
              dtype_name(g->b), dtype_name(g->c));
  text_printf(t, ",\"m\":%lld,\"n\":%lld,\"k\":%lld,\"loops\":%lld", (long long)g->m, (long long)g->n, (long long)g->k,
              (long long)loops);
  text_printf(t, ",\"strided\":[%s,%s,%s]", g->ak != 1 && g->k > 1 ? "true" : "false",
              g->bn != 1 && g->n > 1 ? "true" : "false", turned ? "true" : "false");
}

Status profile_write(const char *path, const Plan *p, const Dev *d, double seconds, int64_t steps, const Rates *rates) {
  Arena *a = arena_create();
  Profile all = profile_of(a, p, d, rates);
  Text t;
  text_init(&t, a);
  text_puts(&t, "{\"plan\":"), text_json(&t, p->hash), text_puts(&t, ",\"model\":"), text_json(&t, p->model);
  text_printf(&t, ",\"steps\":%lld,\"seconds\":%.9f,\"counted\":%.9f", (long long)steps, seconds,
              all.counted);
  if (rates) text_puts(&t, ",\"rates\":"), text_json(&t, rates->day);
  text_puts(&t, ",\"rows\":[");
  for (uint32_t i = 0; i < all.row.n; i++) {
    const Row *r = &all.row.at[i];
    text_printf(&t, "%s\n{\"kind\":\"%s\",\"name\":", i ? "," : "", op_name[r->in->op]);
    text_json(&t, ins_name(p, a, r->in));
    text_puts(&t, ",\"what\":"), text_json(&t, r->what);
    text_puts(&t, ",\"line\":"), text_json(&t, plan_place(p, a, r->in->line));
    text_printf(&t, ",\"stream\":\"%s\",\"runs\":%lld,\"seconds\":%.9f", stream_name[r->in->stream], (long long)r->runs,
                r->seconds);
    text_printf(&t, ",\"flops\":%.0f,\"bytes\":%.0f", r->flops, r->bytes);
    if (r->limit > 0) text_printf(&t, ",\"limit\":%.6f", share(r));
    if (r->in->op == PI_kernel) text_puts(&t, ",\"class\":"), text_json(&t, p->kernel.at[r->in->what].class);
    if (r->in->op == PI_gemm) put_product(&t, &p->gemm.at[r->in->what]);
    text_puts(&t, "}");
  }
  text_puts(&t, "]}\n");
  Status e = file_write(path, t.s, t.n);
  arena_destroy(a);
  return e;
}
