// plan.c -- the plan's file: one writer, one reader.
//
//   mt plan 1
//   hash 0f3c…                       XXH3-128 of all that follows this line
//   dim 1 batch 8 8 sample           rows: a word, then what it has, one row a line
//   …
//   fn 3 micro                       its instructions follow, indented
//     kernel 4 first @7 12 13+128    op, what, [first|later|last], [on STREAM], [and], @line, buffers with byte offsets
//   …
//   binary 4711                      then so many bytes: the sources' texts, the objects, as their rows say
//
// A word is written bare when it is made of letters, digits and _ . : / $ { } , - +, else in quotes. A row's writer
// and its reader stand together. The reader believes nothing: every id is checked by the verifier, every size here.
#include "runtime/plan.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

static const Str mem_name[] = {
#define X(word) #word,
  PLAN_MEMORY(X)
};
static const Str var_name[] = { PLAN_VARS(X) };
static const Str init_name[] = { PLAN_INITS(X) };
static const Str lib_name[] = { PLAN_LIBS(X) };
static const Str ragged_name[] = { PLAN_RAGGED(X) };
static const Str op_name[] = { PLAN_OPS(X) };
static const Str coll_name[] = { PLAN_COLLS(X) };
static const Str when_name[] = { PLAN_WHENS(X) };
static const Str stream_name[] = { PLAN_STREAMS(X) };
static const Str cell_name[] = { PLAN_CELLS(X) };
#undef X

// ---- writing words --------------------------------------------------------------------------------------------------
static bool is_bare(char c) { return isalnum((unsigned char)c) || (c && strchr("_.:/${},-+", c)); }

static void put_word(Text *t, const char *s) {
  bool bare = *s != 0;
  for (const char *c = s; *c; c++) bare &= is_bare(*c);
  text_puts(t, " ");
  if (bare) { text_puts(t, s); return; }
  text_puts(t, "\"");
  for (const char *c = s; *c; c++) {
    if (*c == '"' || *c == '\\' || (unsigned char)*c < 32 || *c == 127)
      text_printf(t, "\\%02x", (unsigned char)*c);
    else text_add(t, c, 1);
  }
  text_puts(t, "\"");
}

static void put_int(Text *t, int64_t v) { text_printf(t, " %lld", (long long)v); }

static void put_real(Text *t, double v) {                  // the shortest text that reads back the same
  char s[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(s, sizeof s, " %.*g", digits, v);
    if (strtod(s, 0) == v) break;
  }
  text_puts(t, s);
}

// ---- reading words --------------------------------------------------------------------------------------------------
typedef struct {
  Plan *plan;
  const char *p, *end;                       // what is left
  uint32_t line;                             // of the row being read, from 1
  const char *why;                           // the first thing wrong; after that every read gives 0
  int64_t binary;                            // bytes of the binary part, -1: its row is not yet read
} Reader;

static void wrong(Reader *r, const char *fmt, ...) PRINTF(2, 3);
static void wrong(Reader *r, const char *fmt, ...) {
  if (r->why) return;
  va_list args;
  va_start(args, fmt);
  r->why = arena_printf(r->plan->arena, "line %u: %s", r->line, arena_vprintf(r->plan->arena, fmt, args));
  va_end(args);
}

static bool at_end(Reader *r) { return r->why || r->p == r->end || *r->p == '\n'; }

static void end_row(Reader *r) {
  if (!r->why && (r->p == r->end || *r->p != '\n')) wrong(r, "the row does not end where it should");
  if (!r->why) r->p++, r->line++;
}

static bool next_is(Reader *r, const char *s) {            // takes s when it comes next
  size_t n = strlen(s);
  if (r->why || (size_t)(r->end - r->p) < n || memcmp(r->p, s, n)) return false;
  r->p += n;
  return true;
}

static void space(Reader *r) {
  if (!next_is(r, " ")) wrong(r, "a field is missing");
}

static Str quoted(Reader *r) {
  char *s = arena_alloc(r->plan->arena, (size_t)(r->end - r->p) < 4096 ? (size_t)(r->end - r->p) : 4096);
  size_t n = 0;
  while (!r->why && r->p < r->end && *r->p != '"') {
    int c = (unsigned char)*r->p++;
    if (c == '\\') {
      int hi = r->end - r->p >= 2 ? hex_digit(r->p[0]) : -1, lo = hi >= 0 ? hex_digit(r->p[1]) : -1;
      if (lo < 0) { wrong(r, "a backslash without two hexadecimal digits"); break; }
      c = hi << 4 | lo, r->p += 2;
    }
    if (!c || n == 4094) { wrong(r, c ? "a text is too long" : "a zero byte in a text"); break; }
    s[n++] = (char)c;
  }
  if (!next_is(r, "\"")) wrong(r, "a text does not end");
  return intern_n(r->plan->in, s, n);
}

static Str get_word(Reader *r) {
  space(r);
  if (r->why) return "";
  if (next_is(r, "\"")) return quoted(r);
  const char *from = r->p;
  while (r->p < r->end && is_bare(*r->p)) r->p++;
  if (r->p == from || r->p - from > 4096) wrong(r, r->p == from ? "a word is missing" : "a word is too long");
  return r->why ? "" : intern_n(r->plan->in, from, (size_t)(r->p - from));
}

static int64_t digits(Reader *r, int64_t lo, int64_t hi) { // a number that comes next
  bool minus = next_is(r, "-");
  int64_t v = 0;
  const char *from = r->p;
  while (!r->why && r->p < r->end && isdigit((unsigned char)*r->p))
    if (!mul_ok(v, 10, &v) || !add_ok(v, minus ? '0' - *r->p : *r->p - '0', &v))
      wrong(r, "a number is too large");
    else r->p++;
  if (!r->why && (r->p == from || (*from == '0' && r->p - from > 1) || (minus && !v)))
    wrong(r, "a number is missing");
  if (!r->why && (v < lo || v > hi))
    wrong(r, "%lld is not within %lld to %lld", (long long)v, (long long)lo, (long long)hi);
  return r->why ? 0 : v;
}

static int64_t get_int(Reader *r, int64_t lo, int64_t hi) { space(r); return digits(r, lo, hi); }
static int64_t get_size(Reader *r) { return get_int(r, 0, INT64_C(1) << 60); }
static uint32_t get_id(Reader *r) { return (uint32_t)get_int(r, 0, UINT32_MAX >> 1); }

static double get_real(Reader *r) {
  char s[40];
  size_t n = 0;
  space(r);
  while (!r->why && r->p < r->end && n < sizeof s - 1 &&
         (isalnum((unsigned char)*r->p) || strchr("+-.", *r->p)) && *r->p)
    s[n++] = *r->p++;
  s[n] = 0;
  char *end = s;
  double v = n && !isspace((unsigned char)*s) ? strtod(s, &end) : 0;
  if (!n || *end || !isfinite(v)) wrong(r, "a number is missing");
  return r->why ? 0 : v;
}

// A word of a list gives its index.
static int get_choice(Reader *r, const Str *names, size_t n, const char *what) {
  Str s = get_word(r);
  for (size_t i = 0; i < n && !r->why; i++)
    if (!strcmp(s, names[i])) return (int)i;
  wrong(r, "no %s '%.40s'", what, s);
  return 0;
}
#define GET(r, list, what) get_choice(r, list, COUNT(list), what)

static DType get_dtype(Reader *r) {
  Str s = get_word(r);
  DType t = r->why ? DT_none : dtype_find(s);
  if (!dtype_bytes(t)) wrong(r, "no number format '%.40s'", s);
  return t;
}

static bool get_flag(Reader *r, const char *word) {        // " word", when it comes next
  const char *was = r->p;
  if (next_is(r, " ") && next_is(r, word) && (r->p == r->end || !is_bare(*r->p))) return true;
  r->p = was;
  return false;
}

static void get_key(Reader *r, const char *word) {
  if (!get_flag(r, word)) wrong(r, "'%s' is missing", word);
}

static void row_id(Reader *r, uint32_t n) {                // rows are numbered; n: the next
  uint32_t id = get_id(r);
  if (!r->why && id != n) wrong(r, "row %u comes where row %u should", id, n);
}

// ---- rows: the model ---------------------------------------------------------------------------------------------
static void write_heads(const Plan *p, Text *t) {
  text_puts(t, "tool"), put_word(t, p->tool);
  text_puts(t, "\ntarget"), put_word(t, p->target);
  text_puts(t, "\nmodel"), put_word(t, p->model);
  text_puts(t, "\ndata"), put_word(t, p->data);
#define X(word) text_puts(t, "\n" #word), put_int(t, p->word);
  PLAN_NUMBERS(X)
#undef X
  text_puts(t, "\n");
}
static void read_tool(Reader *r) { r->plan->tool = get_word(r); }
static void read_target(Reader *r) { r->plan->target = get_word(r); }
static void read_model(Reader *r) { r->plan->model = get_word(r); }
static void read_data(Reader *r) { r->plan->data = get_word(r); }
#define X(word) static void read_##word(Reader *r) { r->plan->word = get_size(r); }
PLAN_NUMBERS(X)
#undef X

static void write_call(Text *t, const char *row, const PlanCall *c) {
  if (!c->word) return;
  text_puts(t, row), put_word(t, c->word);
  for (uint32_t i = 0; i < c->num.n; i++) {
    const PlanNum *n = &c->num.at[i];
    put_word(t, n->name);
    if (n->word) text_puts(t, " ="), put_word(t, n->word);
    else put_real(t, n->value);
  }
  text_puts(t, "\n");
}
static void read_call(Reader *r, PlanCall *c) {
  *c = (PlanCall){.word = get_word(r)};
  while (!at_end(r)) {
    PlanNum n = {.name = get_word(r)};
    if (next_is(r, " =")) n.word = get_word(r);
    else n.value = get_real(r);
    vec_push(r->plan->arena, &c->num, n);
  }
}
static void read_optimizer(Reader *r) { read_call(r, &r->plan->optimizer); }
static void read_schedule(Reader *r) { read_call(r, &r->plan->schedule); }
static void read_loss_scale(Reader *r) { read_call(r, &r->plan->loss_scale); }

static void write_axes(const Plan *p, Text *t) {
  for (uint32_t i = 0; i < p->axis.n; i++)
    text_puts(t, "axis"), put_word(t, p->axis.at[i].name), put_int(t, p->axis.at[i].size), text_puts(t, "\n");
}
static void read_axis(Reader *r) {
  Str name = get_word(r);
  vec_push(r->plan->arena, &r->plan->axis, (PlanAxis){name, get_int(r, 1, 1 << 24)});
}

static void write_dims(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->dim.n; i++) {
    const PlanDim *d = &p->dim.at[i];
    text_puts(t, "dim"), put_int(t, i), put_word(t, d->name), put_int(t, d->extent), put_int(t, d->size);
    text_puts(t, d->sample ? " sample" : "");
    if (d->whole) text_puts(t, " part"), put_int(t, d->whole);
    for (uint32_t k = 0; k < d->ncut; k++) put_word(t, p->axis.at[d->cut[k]].name);
    if (d->chunks) text_puts(t, " zigzag"), put_int(t, d->chunks);
    text_puts(t, "\n");
  }
}
static void read_dim(Reader *r) {
  row_id(r, r->plan->dim.n);
  PlanDim d = {.name = get_word(r)};
  d.extent = get_size(r), d.size = get_size(r), d.sample = get_flag(r, "sample");
  if (get_flag(r, "part")) d.whole = get_id(r);
  for (bool more = d.whole; more && d.ncut < PLAN_CUTS;) {
    uint32_t a = 0;
    while (a < r->plan->axis.n && a < 8 && !get_flag(r, r->plan->axis.at[a].name)) a++;
    more = a < r->plan->axis.n && a < 8;
    if (more) d.cut[d.ncut++] = (uint8_t)a;
  }
  if (get_flag(r, "zigzag")) d.chunks = get_size(r);
  vec_push(r->plan->arena, &r->plan->dim, d);
}

static void write_lines(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->line.n; i++) {
    const PlanLine *l = &p->line.at[i];
    text_puts(t, "line"), put_int(t, i), put_word(t, l->path), put_int(t, l->line), put_int(t, l->col),
        put_word(t, l->what);
    text_puts(t, "\n");
  }
}
static void read_line(Reader *r) {
  row_id(r, r->plan->line.n);
  PlanLine l = {.path = get_word(r)};
  l.line = (uint32_t)get_int(r, 0, UINT32_MAX), l.col = (uint32_t)get_int(r, 0, UINT32_MAX), l.what = get_word(r);
  vec_push(r->plan->arena, &r->plan->line, l);
}

// ---- rows: memory ------------------------------------------------------------------------------------------------
static void write_memory(const Plan *p, Text *t) {
  for (int i = 0; i < MEM_COUNT; i++)
    text_puts(t, "memory"), put_word(t, mem_name[i]), put_int(t, p->memory[i]), text_puts(t, "\n");
  for (uint32_t i = 1; i < p->buffer.n; i++) {
    const PlanBuffer *b = &p->buffer.at[i];
    text_puts(t, "buffer"), put_int(t, i), put_word(t, b->name), put_word(t, mem_name[b->mem]), put_int(t, b->at);
    put_int(t, b->bytes), put_word(t, dtype_name(b->dtype));
    if (b->of) text_puts(t, " part"), put_int(t, b->of), put_int(t, b->whole), put_int(t, b->part);
    text_puts(t, "\n");
  }
  for (uint32_t i = 0; i < p->slot.n; i++) {
    text_puts(t, "slot"), put_word(t, p->slot.at[i].name), put_word(t, dtype_name(p->slot.at[i].dtype));
    put_int(t, p->slot.at[i].at), text_puts(t, "\n");
  }
}
static void read_memory(Reader *r) {
  int m = GET(r, mem_name, "memory");
  r->plan->memory[m] = get_size(r);
}
static void read_buffer(Reader *r) {
  row_id(r, r->plan->buffer.n);
  PlanBuffer b = {.name = get_word(r)};
  b.mem = (PlanMem)GET(r, mem_name, "memory"), b.at = get_size(r), b.bytes = get_size(r), b.dtype = get_dtype(r);
  if (get_flag(r, "part")) b.of = get_id(r), b.whole = get_id(r), b.part = get_id(r);
  vec_push(r->plan->arena, &r->plan->buffer, b);
}
static void read_slot(Reader *r) {
  Plan *p = r->plan;
  PlanSlot s = {.name = get_word(r)};
  s.dtype = get_dtype(r), s.at = get_size(r);
  vec_push(p->arena, &p->slot, s);
  if (!r->why && map_get(&p->slot_by, key_of(s.name))) wrong(r, "a second slot '%.100s'", s.name);
  map_put(&p->slot_by, key_of(s.name), p->slot.n);
}

static void put_dims(const Plan *p, Text *t, const uint32_t *dim, uint32_t ndim, const uint8_t *axis) {
  text_puts(t, " dims");
  for (uint32_t i = 0; i < ndim; i++) {
    put_int(t, dim[i]);
    if (axis) text_printf(t, "/%u", axis[i]);
  }
  text_puts(t, " :");                                      // and their names, for people
  for (uint32_t i = 0; i < ndim; i++) put_word(t, p->dim.at[dim[i]].name);
}
static void get_dims(Reader *r, uint32_t *dim, uint32_t *ndim, uint8_t *axis) {
  get_key(r, "dims");
  for (*ndim = 0; !r->why && !next_is(r, " :"); ++*ndim) {
    if (*ndim == PLAN_DIMS) { wrong(r, "more than %d dims", PLAN_DIMS); return; }
    dim[*ndim] = get_id(r);
    if (!r->why && (dim[*ndim] == 0 || dim[*ndim] >= r->plan->dim.n)) wrong(r, "no dim %u", dim[*ndim]);
    if (axis && !next_is(r, "/")) wrong(r, "a dim without its axis");
    if (axis) axis[*ndim] = (uint8_t)digits(r, 0, PLAN_DIMS - 1);
  }
  for (uint32_t i = 0; i < *ndim && !r->why; i++)
    if (strcmp(get_word(r), r->plan->dim.at[dim[i]].name)) wrong(r, "dim %u is not called so", dim[i]);
}

static void write_vars(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->var.n; i++) {
    const PlanVar *v = &p->var.at[i];
    text_puts(t, "var"), put_int(t, i), put_word(t, var_name[v->kind]), put_word(t, v->name),
        put_word(t, dtype_name(v->dtype));
    text_puts(t, " buffer"), put_int(t, v->buffer), text_puts(t, " of"), put_int(t, v->of);
    text_puts(t, " init"), put_word(t, init_name[v->init]), put_real(t, v->a), put_real(t, v->b);
    text_puts(t, v->decay ? " decay" : "");
    for (uint32_t a = 0; a < p->axis.n; a++)
      if (v->partial >> a & 1) text_puts(t, " partial"), put_word(t, p->axis.at[a].name);
    put_dims(p, t, v->dim, v->ndim, v->axis),
        text_printf(t, " @%u\n", v->line);
  }
}
static uint32_t get_line(Reader *r) {
  if (!next_is(r, " @")) wrong(r, "its line is missing");
  return (uint32_t)digits(r, 0, UINT32_MAX >> 1);
}
static void read_var(Reader *r) {
  row_id(r, r->plan->var.n);
  PlanVar v = {.kind = (PlanVarKind)GET(r, var_name, "kind of variable")};
  v.name = get_word(r), v.dtype = get_dtype(r);
  get_key(r, "buffer"), v.buffer = get_id(r), get_key(r, "of"), v.of = get_id(r);
  get_key(r, "init"), v.init = (PlanInit)GET(r, init_name, "initial value"), v.a = get_real(r), v.b = get_real(r);
  v.decay = get_flag(r, "decay");
  while (get_flag(r, "partial")) {
    uint32_t a = 0;
    while (a < r->plan->axis.n && a < 8 && !get_flag(r, r->plan->axis.at[a].name)) a++;
    if (a == r->plan->axis.n || a == 8) { wrong(r, "an axis is missing"); return; }
    v.partial |= (uint8_t)(1u << a);
  }
  get_dims(r, v.dim, &v.ndim, v.axis), v.line = get_line(r);
  vec_push(r->plan->arena, &r->plan->var, v);
}

static void write_inputs(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->input.n; i++) {
    const PlanInput *in = &p->input.at[i];
    text_puts(t, "input"), put_int(t, i), put_word(t, in->name), put_word(t, dtype_name(in->dtype));
    text_puts(t, " below"), put_int(t, in->below);
    if (in->ignores) text_puts(t, " ignored"), put_int(t, in->ignored);
    put_dims(p, t, in->dim, in->ndim, 0), text_printf(t, " @%u\n", in->line);
  }
  for (uint32_t i = 0; i < p->output.n; i++) {
    const PlanOutput *o = &p->output.at[i];
    text_puts(t, "output"), put_word(t, o->name), put_real(t, o->coef),
        text_puts(t, o->per_step ? " per_step" : "");
    if (o->slot) text_puts(t, " slot"), put_int(t, o->slot), text_puts(t, "\n");
    else {
      text_puts(t, " buffer"), put_int(t, o->buffer), put_word(t, dtype_name(o->dtype));
      put_dims(p, t, o->dim, o->ndim, 0), text_puts(t, "\n");
    }
  }
}
static void read_input(Reader *r) {
  row_id(r, r->plan->input.n);
  PlanInput in = {.name = get_word(r)};
  in.dtype = get_dtype(r), get_key(r, "below"), in.below = get_size(r), in.ignores = get_flag(r, "ignored");
  if (in.ignores) in.ignored = get_int(r, INT64_MIN, INT64_MAX);
  get_dims(r, in.dim, &in.ndim, 0), in.line = get_line(r);
  vec_push(r->plan->arena, &r->plan->input, in);
}
static void read_output(Reader *r) {
  PlanOutput o = {.name = get_word(r)};
  o.coef = get_real(r), o.per_step = get_flag(r, "per_step");
  if (get_flag(r, "slot")) {
    o.slot = (uint32_t)get_int(r, 1, SCALAR_BLOCK / 8), o.dtype = DT_f64;
  } else {
    get_key(r, "buffer"), o.buffer = get_id(r), o.dtype = get_dtype(r), get_dims(r, o.dim, &o.ndim, 0);
  }
  vec_push(r->plan->arena, &r->plan->output, o);
}

// ---- rows: kernels and products ----------------------------------------------------------------------------------
static void write_kernels(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->kernel.n; i++) {
    const PlanKernel *k = &p->kernel.at[i];
    text_puts(t, "kernel"), put_int(t, i), put_word(t, k->symbol),
        text_printf(t, " %016llx", (unsigned long long)k->hash);
    put_word(t, k->class), text_puts(t, " source"), put_int(t, k->source), text_puts(t, " units");
    for (uint32_t s = 0; s < k->stages; s++) put_int(t, k->units[s]), put_int(t, k->grain[s]);
    text_puts(t, " work"), put_int(t, k->work), text_puts(t, " flops"), put_int(t, k->flops);
    text_puts(t, " bytes"), put_int(t, k->bytes), text_puts(t, " args");
    for (uint32_t j = 0; j < k->param.n; j++) {
      const PlanParam *a = &k->param.at[j];
      put_word(t, dtype_name(a->dtype)), put_int(t, a->count);
      text_puts(t, a->read && a->written ? " rw" : a->written ? " w" : " r");
    }
    text_puts(t, "\n");
  }
}
static uint64_t get_hash(Reader *r) {
  uint64_t h = 0;
  space(r);
  for (int i = 0; i < 16 && !r->why; i++) {
    int d = r->p < r->end ? hex_digit(*r->p) : -1;
    if (d < 0) wrong(r, "a hash of 16 hexadecimal digits is missing");
    else h = h << 4 | (uint64_t)d, r->p++;
  }
  return h;
}
static void read_kernel(Reader *r) {
  static const Str access[] = {"r", "w", "rw"};
  row_id(r, r->plan->kernel.n);
  PlanKernel k = {.symbol = get_word(r)};
  k.hash = get_hash(r), k.class = get_word(r), get_key(r, "source"), k.source = get_id(r), get_key(r, "units");
  while (!r->why && !get_flag(r, "work")) {
    if (k.stages == 2) { wrong(r, "more than 2 stages"); return; }
    k.units[k.stages] = get_size(r), k.grain[k.stages++] = get_size(r);
  }
  k.work = get_size(r), get_key(r, "flops"), k.flops = get_size(r), get_key(r, "bytes"),
  k.bytes = get_size(r), get_key(r, "args");
  while (!at_end(r)) {
    PlanParam a = {.dtype = get_dtype(r)};
    a.count = get_size(r);
    int way = GET(r, access, "access");
    a.read = way != 1, a.written = way != 0;
    vec_push(r->plan->arena, &k.param, a);
  }
  vec_push(r->plan->arena, &r->plan->kernel, k);
}

static void write_gemms(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->gemm.n; i++) {
    const PlanGemm *g = &p->gemm.at[i];
    text_puts(t, "gemm"), put_int(t, i), put_word(t, lib_name[g->lib]), put_int(t, g->m), put_int(t, g->n), put_int(t, g->k);
    text_puts(t, " a"), put_word(t, dtype_name(g->a)), put_int(t, g->am), put_int(t, g->ak);
    text_puts(t, " b"), put_word(t, dtype_name(g->b)), put_int(t, g->bk), put_int(t, g->bn);
    text_puts(t, " c"), put_word(t, dtype_name(g->c)), put_int(t, g->cm), put_int(t, g->cn);
    text_puts(t, " alpha"), put_real(t, g->alpha), text_puts(t, g->accumulate ? " accumulate" : "");
    if (g->ragged) text_puts(t, " ragged"), put_word(t, ragged_name[g->ragged]);
    for (uint32_t j = 0; j < g->nloop; j++) {
      const GemmLoop *l = &g->loop[j];
      text_puts(t, " loop"), put_int(t, l->n), put_int(t, l->a), put_int(t, l->b), put_int(t, l->c);
    }
    text_puts(t, "\n");
  }
}
static void read_gemm(Reader *r) {
  row_id(r, r->plan->gemm.n);
  PlanGemm g = {.lib = (PlanLib)GET(r, lib_name, "library")};
  g.m = get_size(r), g.n = get_size(r), g.k = get_size(r);  // in a list, C leaves open which is read first
  get_key(r, "a"), g.a = get_dtype(r), g.am = get_size(r), g.ak = get_size(r);
  get_key(r, "b"), g.b = get_dtype(r), g.bk = get_size(r), g.bn = get_size(r);
  get_key(r, "c"), g.c = get_dtype(r), g.cm = get_size(r), g.cn = get_size(r);
  get_key(r, "alpha"), g.alpha = get_real(r), g.accumulate = get_flag(r, "accumulate");
  if (get_flag(r, "ragged")) g.ragged = (PlanRagged)GET(r, ragged_name, "extent");
  while (get_flag(r, "loop")) {
    if (g.nloop == GEMM_LOOPS) { wrong(r, "more than %d loops", GEMM_LOOPS); return; }
    GemmLoop *l = &g.loop[g.nloop++];
    l->n = get_size(r), l->a = get_size(r), l->b = get_size(r), l->c = get_size(r);
  }
  vec_push(r->plan->arena, &r->plan->gemm, g);
}

static void write_colls(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->coll.n; i++) {
    const PlanColl *c = &p->coll.at[i];
    text_puts(t, "coll"), put_int(t, i), put_word(t, coll_name[c->kind]), put_word(t, dtype_name(c->dtype));
    put_int(t, c->outer), put_int(t, c->gather), put_int(t, c->mid), put_int(t, c->scatter), put_int(t, c->inner);
    if (c->sent) text_puts(t, " sent"), put_word(t, dtype_name(c->sent));
    text_puts(t, " over");
    for (uint32_t a = 0; a < p->axis.n; a++)
      if (c->axes >> a & 1) put_word(t, p->axis.at[a].name);
    text_puts(t, c->turned ? " turned\n" : "\n");
  }
}
static void read_coll(Reader *r) {
  const Plan *p = r->plan;
  row_id(r, p->coll.n);
  PlanColl c = {.kind = (PlanCollKind)GET(r, coll_name, "collective")};
  c.dtype = get_dtype(r);
  c.outer = get_size(r), c.gather = get_size(r), c.mid = get_size(r), c.scatter = get_size(r), c.inner = get_size(r);
  if (get_flag(r, "sent")) c.sent = get_dtype(r);
  get_key(r, "over");
  for (uint32_t a = 0; a < p->axis.n && a < 8; a++)
    if (get_flag(r, p->axis.at[a].name)) c.axes |= (uint8_t)(1u << a);
  c.turned = get_flag(r, "turned");
  vec_push(r->plan->arena, &r->plan->coll, c);
}

// ---- rows: instructions ------------------------------------------------------------------------------------------
static void write_events(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->event.n; i++)
    text_puts(t, "event"), put_int(t, i), put_word(t, p->event.at[i].name),
        put_int(t, p->event.at[i].initial), text_puts(t, "\n");
}
static void read_event(Reader *r) {
  row_id(r, r->plan->event.n);
  Str name = get_word(r);
  vec_push(r->plan->arena, &r->plan->event, (PlanEvent){name, (uint32_t)get_int(r, 0, 2)});
}

static bool has_bytes(PlanOp op) { return op == PI_copy || op == PI_zero; }

static void write_fns(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->fn.n; i++) {
    const PlanFn *f = &p->fn.at[i];
    text_puts(t, "fn"), put_int(t, i), put_word(t, f->name), text_puts(t, "\n");
    for (uint32_t j = 0; j < f->ins.n; j++) {
      const PlanIns *in = &f->ins.at[j];
      text_printf(t, "  %s %lld", op_name[in->op],
                  has_bytes(in->op) ? (long long)in->bytes : (long long)in->what);
      if (in->when) put_word(t, when_name[in->when]);
      if (in->stream) text_puts(t, " on"), put_word(t, stream_name[in->stream]);
      if (in->and) text_puts(t, " and");
      text_printf(t, " @%u", in->line);
      for (uint32_t k = 0; k < in->narg; k++) {
        const PlanArg *a = &p->arg.at[in->arg + k];
        put_int(t, a->buffer);
        if (a->at) text_printf(t, "+%lld", (long long)a->at);
      }
      text_puts(t, "\n");
    }
  }
}
static void read_ins(Reader *r, uint32_t fn) {             // behind the indent
  Plan *p = r->plan;
  PlanIns in = {.arg = p->arg.n};
  r->p--;                                                  // one space of the indent stands before the op
  in.op = (PlanOp)GET(r, op_name, "instruction");
  if (has_bytes(in.op)) in.bytes = get_size(r);
  else in.what = get_id(r);
  for (int w = 1; w < WHEN_COUNT && !in.when; w++)
    if (get_flag(r, when_name[w])) in.when = (PlanWhen)w;
  if (get_flag(r, "on")) in.stream = (PlanStream)GET(r, stream_name, "stream");
  in.and = in.op == PI_coll && get_flag(r, "and");
  in.line = get_line(r);
  for (; !at_end(r); in.narg++) {
    PlanArg a = {.buffer = get_id(r)};
    if (next_is(r, "+")) a.at = digits(r, 1, INT64_C(1) << 60);
    vec_push(p->arena, &p->arg, a);
  }
  end_row(r);
  if (!r->why) vec_push(p->arena, &p->fn.at[fn].ins, in);
}
static void read_fn(Reader *r) {
  Plan *p = r->plan;
  row_id(r, p->fn.n);
  Str name = get_word(r);
  if (!r->why && map_get(&p->fn_by, key_of(name))) wrong(r, "a second function '%.100s'", name);
  if (r->why) return;
  uint32_t fn = plan_fn(p, name);
  if (r->p == r->end || *r->p != '\n') return;
  while (!r->why && r->end - r->p > 3 && !memcmp(r->p, "\n  ", 3)) {
    r->p += 3, r->line++;
    read_ins(r, fn);
    r->p -= !r->why, r->line -= !r->why;                   // back to the row's end
  }
}

static void write_cells(const Plan *p, Text *t) {
  for (uint32_t i = 0; i < p->cell.n; i++) {
    const PlanCell *c = &p->cell.at[i];
    text_puts(t, "cell"), put_word(t, cell_name[c->kind]), put_int(t, c->microbatch), put_int(t, c->fn),
        text_puts(t, "\n");
  }
}
static void read_cell(Reader *r) {
  PlanCell c = {.kind = (PlanCellKind)GET(r, cell_name, "kind of cell")};
  c.microbatch = get_id(r), c.fn = get_id(r);
  vec_push(r->plan->arena, &r->plan->cell, c);
}

static void write_sources(const Plan *p, Text *t) {
  for (uint32_t i = 1; i < p->source.n; i++)
    text_puts(t, "source"), put_int(t, i), put_word(t, p->source.at[i].name),
        put_int(t, p->source.at[i].bytes), text_puts(t, "\n");
  for (uint32_t i = 1; i < p->object.n; i++) {
    const PlanObject *o = &p->object.at[i];
    text_puts(t, "object"), put_int(t, i), put_int(t, o->source), put_word(t, o->target),
        put_word(t, o->toolchain);
    put_int(t, o->bytes), text_puts(t, "\n");
  }
}
static void read_source(Reader *r) {
  row_id(r, r->plan->source.n);
  PlanSource s = {.name = get_word(r)};
  s.bytes = get_size(r);
  vec_push(r->plan->arena, &r->plan->source, s);
}
static void read_object(Reader *r) {
  row_id(r, r->plan->object.n);
  PlanObject o = {.source = get_id(r)};
  o.target = get_word(r), o.toolchain = get_word(r), o.bytes = get_size(r);
  vec_push(r->plan->arena, &r->plan->object, o);
}
static void read_binary(Reader *r) { r->binary = get_size(r); }

// ---- the file ----------------------------------------------------------------------------------------------------
static void hash_text(char out[33], const void *data, size_t n) {
  XXH128_hash_t h = XXH3_128bits(data, n);
  snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void plan_write(Plan *p, Text *out) {
  Text t;
  text_init(&t, p->arena);
  write_heads(p, &t), write_call(&t, "optimizer", &p->optimizer), write_call(&t, "schedule", &p->schedule);
  write_call(&t, "loss_scale", &p->loss_scale), write_axes(p, &t);
  write_dims(p, &t), write_lines(p, &t), write_memory(p, &t), write_vars(p, &t), write_inputs(p, &t);
  write_kernels(p, &t), write_gemms(p, &t), write_colls(p, &t), write_events(p, &t), write_fns(p, &t), write_cells(p, &t),
      write_sources(p, &t);
  int64_t binary = 0;
  for (uint32_t i = 1; i < p->source.n; i++) binary += p->source.at[i].bytes;
  for (uint32_t i = 1; i < p->object.n; i++) binary += p->object.at[i].bytes;
  text_printf(&t, "binary %lld\n", (long long)binary);
  for (uint32_t i = 1; i < p->source.n; i++) text_add(&t, p->source.at[i].text, (size_t)p->source.at[i].bytes);
  for (uint32_t i = 1; i < p->object.n; i++) text_add(&t, p->object.at[i].data, (size_t)p->object.at[i].bytes);
  hash_text(p->hash, t.s, t.n);
  text_printf(out, "mt plan %d\nhash %s\n", PLAN_VERSION, p->hash);
  text_add(out, t.s, t.n);
}

static const struct { Str word; void (*read)(Reader *r); } rows[] = {
  {"tool", read_tool}, {"target", read_target}, {"model", read_model}, {"data", read_data},
#define X(word) {#word, read_##word},
  PLAN_NUMBERS(X)
#undef X
  {"optimizer", read_optimizer}, {"schedule", read_schedule}, {"loss_scale", read_loss_scale}, {"axis", read_axis}, {"dim", read_dim},
  {"line", read_line},
  {"memory", read_memory}, {"buffer", read_buffer}, {"slot", read_slot}, {"var", read_var}, {"input", read_input},
  {"output", read_output}, {"kernel", read_kernel}, {"gemm", read_gemm}, {"coll", read_coll}, {"event", read_event}, {"fn", read_fn},
  {"cell", read_cell}, {"source", read_source}, {"object", read_object}, {"binary", read_binary},
};

static void read_row(Reader *r) {
  const char *from = r->p;
  while (r->p < r->end && is_bare(*r->p)) r->p++;
  size_t n = (size_t)(r->p - from);
  for (size_t i = 0; i < COUNT(rows); i++)
    if (strlen(rows[i].word) == n && !memcmp(rows[i].word, from, n)) {
      rows[i].read(r);
      end_row(r);
      return;
    }
  wrong(r, "no row '%.*s'", (int)MIN(n, 40), from);
}

static void take_binary(Reader *r) {
  Plan *p = r->plan;
  if (r->binary != r->end - r->p)
    wrong(r, "the file ends with %lld bytes, %lld are announced", (long long)(r->end - r->p),
          (long long)r->binary);
  for (uint32_t i = 1; i < p->source.n + p->object.n - 1 && !r->why; i++) {
    bool is_source = i < p->source.n;
    PlanSource *s = &p->source.at[is_source ? i : 0];
    PlanObject *o = &p->object.at[is_source ? 0 : i - p->source.n + 1];
    int64_t bytes = is_source ? s->bytes : o->bytes;
    if (bytes > r->end - r->p) { wrong(r, "the sources and objects have more bytes than announced"); return; }
    if (is_source) s->text = r->p;
    else o->data = r->p;
    r->p += bytes;
  }
  if (!r->why && r->p != r->end) wrong(r, "the sources and objects have fewer bytes than announced");
}

const char *plan_parse(Plan *p, const char *data, size_t n) {
  Reader r = {p, data, data + n, 1, 0, -1};
  static const char magic[] = "mt plan ";
  if (!next_is(&r, magic)) return "it is no plan; mtc compile makes one of a model text";
  if (digits(&r, 0, INT32_MAX) != PLAN_VERSION && !r.why)
    return arena_printf(p->arena,
                        "a plan of another version; this program reads version %d: compile the model again",
                        PLAN_VERSION);
  end_row(&r);
  if (!next_is(&r, "hash ") || r.end - r.p < 33) wrong(&r, "the hash is missing");
  if (r.why) return r.why;
  char hash[33];
  hash_text(hash, r.p + 33, (size_t)(r.end - r.p - 33));
  if (memcmp(hash, r.p, 32)) return "it is damaged: its hash is not the one it carries";
  memcpy(p->hash, hash, sizeof hash), r.p += 32;
  end_row(&r);
  while (!r.why && r.binary < 0) read_row(&r);
  if (!r.why) take_binary(&r);
  return r.why;
}

Status plan_load(Arena *a, const char *path, Plan **plan) {
  char *data;
  size_t n;
  if (access(path, F_OK) && errno == ENOENT)
    return fail(EXIT_MISSING, "%s: No such file or directory; mtc compile MODEL.mt -o %s makes a plan", path, path);
  TRY(file_read(a, path, (size_t)1 << 34, &data, &n));
  *plan = plan_create(a);
  const char *why = plan_parse(*plan, data, n);
  if (!why) why = plan_verify(*plan, a);
  return why ? fail(EXIT_INPUT, "%s: %s", path, why) : 0;
}

Status plan_save(Plan *p, const char *path) {
  Text t;
  text_init(&t, p->arena);
  plan_write(p, &t);
  return file_write(path, t.s, t.n);
}
