// trace.c -- see trace.h.
#include "runtime/trace.h"
#include "runtime/coll.h"
#include "runtime/cost.h"
#include "runtime/json_text.h"
#include <stdlib.h>
#include <string.h>

static const Str op_name[] = {
#define X(word) #word,
  PLAN_OPS(X)
};
static const Str stream_name[] = { PLAN_STREAMS(X) };
static const Str coll_name[] = { PLAN_COLLS(X) };
#undef X

static Str ins_name(const Plan *p, Arena *a, const PlanIns *in) {
  const PlanGemm *g = &p->gemm.at[in->op == PI_gemm ? in->what : 0];
  switch (in->op) {
    case PI_kernel: return p->kernel.at[in->what].symbol;
    case PI_record: case PI_wait: return p->event.at[in->what].name;
    case PI_load: return p->input.at[in->what].name;
    case PI_gemm: return arena_printf(a, "%lldx%lldx%lld", (long long)g->m, (long long)g->n, (long long)g->k);
    case PI_coll: return coll_name[p->coll.at[in->what].kind];
    case PI_copy: case PI_zero: case PI_COUNT: break;
  }
  return op_name[in->op];
}

// ---- the spans of a rank -------------------------------------------------------------------------------------------
enum { MEETINGS = 16, LANES = 100, STEPS = STREAM_COUNT };   // lanes of a rank: its streams, its steps
typedef struct { double came, left; } Meeting;               // of all ranks, by the clock of this one
typedef struct {
  int64_t n[STREAM_COUNT + 1];                               // spans of a stream; steps
  const DevSpan *span[STREAM_COUNT];
  const StepSpan *step;
  const Meeting *met;                                        // [MEETINGS]; 0: one rank
  double ahead;                                              // of this rank's clock before that of rank 0
} RankSpans;

static RankSpans spans_of(const Dev *d, const StepSpans *steps) {
  RankSpans s = {.step = steps->at};
  for (int i = 0; i < STREAM_COUNT; i++) s.span[i] = dev_spans(d, (PlanStream)i, &s.n[i]);
  s.n[STEPS] = steps->n;
  return s;
}

static void spans_put(const RankSpans *s, Text *t) {
  text_add(t, (const char *)s->n, sizeof s->n);
  for (int i = 0; i < STREAM_COUNT; i++) text_add(t, (const char *)s->span[i], (size_t)s->n[i] * sizeof *s->span[i]);
  text_add(t, (const char *)s->step, (size_t)s->n[STEPS] * sizeof *s->step);
  text_add(t, (const char *)s->met, MEETINGS * sizeof *s->met);
}

static const void *take(const char **at, size_t bytes) { return *at += bytes, *at - bytes; }

static RankSpans spans_take(const Text *t) {
  RankSpans s;
  const char *at = t->s;
  memcpy(s.n, take(&at, sizeof s.n), sizeof s.n);
  for (int i = 0; i < STREAM_COUNT; i++) s.span[i] = take(&at, (size_t)s.n[i] * sizeof *s.span[i]);
  s.step = take(&at, (size_t)s.n[STEPS] * sizeof *s.step);
  s.met = take(&at, MEETINGS * sizeof *s.met);
  return s;
}

// Nobody leaves a meeting before all have come. Each bounds how far a clock can be ahead; the ranks of one machine have
// one clock, and 0 is in the bounds.
static double clock_ahead(const Meeting *first, const Meeting *other) {
  double low = -1e300, high = 1e300;
  for (int i = 0; i < MEETINGS; i++)
    low = MAX(low, other[i].came - first[i].left), high = MIN(high, other[i].left - first[i].came);
  return low <= 0 && high >= 0 ? 0 : (low + high) / 2;
}

static Status collect(Arena *a, Notes *notes, RankSpans *mine, RankSpans *all) {
  int64_t ranks = comm_ranks(notes->comm);
  Meeting met[MEETINGS];
  Text t, *of = NEW_N(a, Text, ranks);
  for (int i = 0; i < MEETINGS; i++) {
    met[i].came = now_seconds();
    TRY(comm_barrier(notes->comm));
    met[i].left = now_seconds();
  }
  mine->met = met;
  text_init(&t, a), spans_put(mine, &t);
  for (int64_t r = 0; r < ranks; r++) text_init(&of[r], a);
  TRY(notes_collect(notes, &t, of));
  for (int64_t r = 0; r < ranks && !comm_rank(notes->comm); r++) {
    all[r] = spans_take(&of[r]);
    all[r].ahead = clock_ahead(all[0].met, all[r].met);
  }
  return 0;
}

// ---- the trace ---------------------------------------------------------------------------------------------------
typedef struct {
  Arena *arena;
  Text text;
  const Plan *plan;
  int64_t ranks;
  const RankSpans *of;                       // [ranks]
  double zero;                               // by the clock of rank 0
} Trace;

static void put_name(Text *t, int64_t pid, int64_t tid, const char *what, const char *name, int64_t order) {
  text_printf(t, "{\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"name\":\"%s_name\",\"args\":{\"name\":", (long long)pid,
              (long long)tid, what);
  text_json(t, name);
  text_printf(t, "}},\n{\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%lld}},\n",
              (long long)pid, (long long)tid, what, (long long)order);
}

static void put_place(Trace *t, const char *phase, int64_t rank, int lane) {
  text_printf(&t->text, "{\"ph\":\"%s\",\"pid\":%lld,\"tid\":%lld,", phase, (long long)rank,
              (long long)rank * LANES + lane);
}

static double since(const Trace *t, int64_t rank, double when) { return (when - t->of[rank].ahead - t->zero) * 1e6; }

static void put_time(Trace *t, int64_t rank, double begin, double end) {      // us, to the nanosecond
  text_printf(&t->text, "\"ts\":%.3f,\"dur\":%.3f", since(t, rank, begin), (end - begin) * 1e6);
}

// "dp tp": along which axes the members of a collective differ
static void put_axes(Text *t, const Plan *p, uint8_t axes) {
  for (uint32_t i = 0, n = 0; i < p->axis.n; i++)
    if (axes >> i & 1) text_printf(t, "%s%s", n++ ? " " : "", p->axis.at[i].name);
}

static void put_span(Trace *t, int64_t rank, int stream, const DevSpan *s) {
  const Plan *p = t->plan;
  const PlanIns *in = &p->fn.at[s->fn].ins.at[s->ins];
  Text *to = &t->text;
  put_place(t, "X", rank, stream);
  text_printf(to, "\"cat\":\"%s\",", op_name[in->op]), put_time(t, rank, s->begin, s->end);
  text_puts(to, ",\"name\":"), text_json(to, in->line ? p->line.at[in->line].what : ins_name(p, t->arena, in));
  text_puts(to, ",\"args\":{\"function\":"), text_json(to, p->fn.at[s->fn].name);
  text_puts(to, ",\"kernel\":"), text_json(to, ins_name(p, t->arena, in));
  text_puts(to, ",\"line\":"), text_json(to, plan_place(p, t->arena, in->line));
  if (in->op == PI_coll) {
    text_puts(to, ",\"over\":\""), put_axes(to, p, p->coll.at[in->what].axes);
    text_printf(to, "\",\"bytes\":%.0f", coll_bytes(p, &p->coll.at[in->what]));
  }
  if (in->when == WHEN_last) text_puts(to, ",\"gradient\":true");          // its sum over ranks
  text_printf(to, ",\"microbatch\":%lld}},\n", (long long)s->microbatch);
}

static Str rank_name(Trace *t, int64_t rank) {
  const Plan *p = t->plan;
  Text name;
  text_init(&name, t->arena);
  text_printf(&name, "rank %lld", (long long)rank);
  for (uint32_t i = 0, n = 0; i < p->axis.n; i++)
    if (p->axis.at[i].size > 1)
      text_printf(&name, "%s%s%lld", n++ ? " " : " (", p->axis.at[i].name, (long long)plan_coord(p, rank, i));
  if (plan_ranks(p) > 1) text_puts(&name, ")");
  return name.s;
}

static void put_rank(Trace *t, int64_t rank) {
  const RankSpans *s = &t->of[rank];
  put_name(&t->text, rank, rank * LANES, "process", rank_name(t, rank), rank);
  for (int i = 0; i <= STREAM_COUNT; i++)
    put_name(&t->text, rank, rank * LANES + i, "thread", i == STEPS ? "steps" : stream_name[i], i);
  for (int k = 0; k < STREAM_COUNT; k++) {
    for (int64_t i = 0; i < s->n[k]; i++) put_span(t, rank, k, &s->span[k][i]);
    if (s->n[k] == TRACE_SPANS)
      fprintf(stderr, "%s: --trace: the first %d instructions of stream %s are kept\n", program_name, TRACE_SPANS,
              stream_name[k]);
  }
  for (int64_t i = 0; i < s->n[STEPS]; i++) {
    put_place(t, "X", rank, STEPS);
    text_printf(&t->text, "\"cat\":\"step\",\"name\":\"step %lld\",", (long long)s->step[i].step);
    put_time(t, rank, s->step[i].begin, s->step[i].end), text_puts(&t->text, "},\n");
  }
}

// ---- what joins the members of a collective ---------------------------------------------------------------------------
// All members are in it from when the last has come: there the flow goes through all of them.
typedef struct { double come; int64_t members, told; } Flow;
typedef VEC(Flow) Flows;
typedef struct { int64_t first, n; } Met;    // of a rank along some axes: the first member; how often so far

static int64_t first_member(const Plan *p, int64_t rank, uint8_t axes) {
  for (int64_t r = 0;; r++) {
    bool in = true;
    for (uint32_t i = 0; i < p->axis.n && in; i++) in = axes >> i & 1 || plan_coord(p, r, i) == plan_coord(p, rank, i);
    if (in) return r;
  }
}

// The flow that a rank's next collective along the axes belongs to: the n-th one of its group.
static uint32_t flow_of(Trace *t, Map *by, Flows *flows, Met *met, int64_t rank, uint8_t axes) {
  if (!met[axes].n) met[axes].first = first_member(t->plan, rank, axes);
  uint64_t key = hash_mix(hash_mix((uint64_t)met[axes].first, axes), (uint64_t)met[axes].n++);
  uint64_t *at = map_get(by, key);
  if (at) return (uint32_t)*at;
  map_put(by, key, flows->n);
  vec_push(t->arena, flows, (Flow){-1e300, 0, 0});
  return flows->n - 1;
}

static void put_flow(Trace *t, uint32_t id, Flow *f, int64_t rank, int stream, const DevSpan *s) {
  const PlanIns *in = &t->plan->fn.at[s->fn].ins.at[s->ins];
  double when = MAX(since(t, rank, s->begin), MIN(since(t, rank, s->end), f->come));
  f->told++;
  if (f->members < 2) return;
  put_place(t, f->told == 1 ? "s" : f->told == f->members ? "f\",\"bp\":\"e" : "t", rank, stream);
  text_printf(&t->text, "\"cat\":\"collective\",\"name\":\"%s\",\"id\":%u,\"ts\":%.3f},\n", ins_name(t->plan, t->arena, in),
              id + 1, when);
}

static void put_flows(Trace *t) {
  enum { GROUPS = 256 };
  Flows flows = {0};
  Map by;
  map_init(&by, t->arena);
  for (int pass = 0; pass < 2; pass++)       // when all have come; then the flows
    for (int64_t r = 0; r < t->ranks; r++) {
      Met met[GROUPS] = {0};
      for (int k = 0; k < STREAM_COUNT; k++)
        for (int64_t i = 0; i < t->of[r].n[k]; i++) {
          const DevSpan *s = &t->of[r].span[k][i];
          const PlanIns *in = &t->plan->fn.at[s->fn].ins.at[s->ins];
          if (in->op != PI_coll) continue;
          uint32_t id = flow_of(t, &by, &flows, met, r, t->plan->coll.at[in->what].axes);
          Flow *f = &flows.at[id];
          if (pass) put_flow(t, id, f, r, k, s);
          else f->members++, f->come = MAX(f->come, since(t, r, s->begin));
        }
    }
}

static Status write_trace(Trace *t, const char *path) {
  Text *to = &t->text;
  text_init(to, t->arena);
  t->zero = 1e300;
  for (int64_t r = 0; r < t->ranks; r++)
    if (t->of[r].n[STEPS]) t->zero = MIN(t->zero, t->of[r].step[0].begin - t->of[r].ahead);
  if (t->zero > 1e299) t->zero = 0;
  text_puts(to, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":"), text_json(to, t->plan->hash);
  text_puts(to, ",\"model\":"), text_json(to, t->plan->model), text_puts(to, "},\"traceEvents\":[\n");
  for (int64_t r = 0; r < t->ranks; r++) put_rank(t, r);
  put_flows(t);
  to->n -= 2;                                // the last comma
  text_puts(to, "\n]}\n");
  return file_write(path, to->s, to->n);
}

Status trace_write(const char *path, const Plan *p, const Dev *d, const StepSpans *steps, Notes *notes) {
  Arena *a = arena_create();
  bool alone = !notes || comm_ranks(notes->comm) == 1;
  RankSpans mine = spans_of(d, steps), *all = alone ? &mine : NEW_N(a, RankSpans, comm_ranks(notes->comm));
  Trace t = {.arena = a, .plan = p, .ranks = alone ? 1 : comm_ranks(notes->comm), .of = all};
  Status e = alone ? 0 : collect(a, notes, &mine, all);
  if (!e && !comm_rank(dev_comm(d))) e = write_trace(&t, path);
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
      r->seconds += t.seconds, r->runs += t.runs, r->flops += flops * (double)t.runs - t.left_out,
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
