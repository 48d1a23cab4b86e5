// bigram.c -- see bigram.h.
#include "bigram.h"

static const char kernels[] =
  "#include <stdint.h>\n"
  "#include <math.h>\n"
  "#define UNITS(name) void name(void *const *buf, const void *scalars, int64_t lo, int64_t hi); \\\n"
  "  void name(void *const *buf, const void *scalars, int64_t lo, int64_t hi)\n"
  "static double count(const int32_t *label) { double n = 0; for (int r = 0; r < ROWS; r++) n += label[r] != -100; return n; }\n"
  "UNITS(count_first) { (void)scalars, (void)lo, (void)hi; *(double *)buf[1] = count(buf[0]); }\n"
  "UNITS(count_later) { (void)scalars, (void)lo, (void)hi; *(double *)buf[1] += count(buf[0]); }\n"
  "UNITS(gather) {\n"
  "  const int32_t *token = buf[0]; const T *wte = buf[1]; T *x = buf[2]; (void)scalars;\n"
  "  for (int64_t r = lo; r < hi; r++) for (int e = 0; e < EMBED; e++) x[r * EMBED + e] = wte[token[r] * EMBED + e];\n"
  "}\n"
  "UNITS(loss) {\n"
  "  const T *logits = buf[0]; const int32_t *label = buf[1]; T *d = buf[2]; double *row = buf[3];\n"
  "  double den = *(const double *)((const char *)scalars + DEN), each = den > 0 ? 1 / den : 0;\n"
  "  for (int64_t r = lo; r < hi; r++) {\n"
  "    const T *z = logits + r * SIZE; double top = z[0], sum = 0;\n"
  "    for (int v = 1; v < VOCAB; v++) if (z[v] > top) top = z[v];\n"
  "    for (int v = 0; v < VOCAB; v++) sum += exp(z[v] - top);\n"
  "    int on = label[r] != -100;\n"
  "    row[r] = on ? (top + log(sum) - z[label[r]]) * each : 0;\n"
  "    for (int v = 0; v < SIZE; v++) d[r * SIZE + v] = v < VOCAB && on ? (T)((exp(z[v] - top) / sum - (v == label[r])) * each) : 0;\n"
  "  }\n"
  "}\n"
  "static double total(const double *row) { double s = 0; for (int r = 0; r < ROWS; r++) s += row[r]; return s; }\n"
  "UNITS(sum_first) { (void)scalars, (void)lo, (void)hi; *(double *)buf[1] = total(buf[0]); }\n"
  "UNITS(sum_later) { (void)scalars, (void)lo, (void)hi; *(double *)buf[1] += total(buf[0]); }\n"
  "static void scatter(void *const *buf, int64_t lo, int64_t hi, int first) {\n"
  "  const int32_t *token = buf[0]; const T *dx = buf[1]; T *dwte = buf[2];\n"
  "  for (int64_t v = lo; v < hi; v++) for (int e = 0; e < EMBED; e++) {\n"
  "    T s = 0;\n"
  "    for (int r = 0; r < ROWS; r++) if (token[r] == v) s += dx[r * EMBED + e];\n"
  "    dwte[v * EMBED + e] = first ? s : dwte[v * EMBED + e] + s;\n"
  "  }\n"
  "}\n"
  "UNITS(scatter_first) { (void)scalars; scatter(buf, lo, hi, 1); }\n"
  "UNITS(scatter_later) { (void)scalars; scatter(buf, lo, hi, 0); }\n"
  "UNITS(norm) {\n"                                        // two stages, as the compiler's are
  "  const T *g = buf[0], *h = buf[1]; double *part = buf[4]; (void)scalars;\n"
  "  for (int64_t v = lo; v < hi; v++) {\n"
  "    double s = 0;\n"
  "    for (int e = 0; e < EMBED; e++) s += (double)g[v * EMBED + e] * g[v * EMBED + e] + (double)h[v * EMBED + e] * h[v * EMBED + e];\n"
  "    part[v] = s;\n"
  "  }\n"
  "}\n"
  "UNITS(norm_combine) {\n"
  "  const double *part = buf[4]; double s = 0; (void)scalars, (void)lo, (void)hi;\n"
  "  for (int v = 0; v < SIZE; v++) s += part[v];\n"
  "  *(double *)buf[2] = sqrt(s); *(double *)buf[3] = isfinite(s) ? 1 : 0;\n"
  "}\n"
  "UNITS(sgd) {\n"
  "  T *w = buf[0]; const T *g = buf[1]; double lr = *(const double *)((const char *)scalars + LR);\n"
  "  if (*(const double *)((const char *)scalars + ISOK) == 0) return;\n"
  "  for (int64_t v = lo; v < hi; v++) w[v] -= (T)lr * g[v];\n"
  "}\n";

typedef struct { const char *symbol; int64_t units, grain; int64_t work; uint32_t n; PlanParam param[4]; } Row;

static uint32_t kernel(Plan *p, Row k) {
  PlanKernel row = {.symbol = plan_str(p, k.symbol), .hash = hash_bytes(k.symbol, strlen(k.symbol), 1), .class = plan_str(p, "map"),
                    .source = 1, .stages = 1 + (k.work > 0), .units = {k.units, 1}, .grain = {k.grain, 1}, .work = k.work};
  for (uint32_t i = 0; i < k.n; i++) {
    row.bytes += k.param[i].count * (int64_t)dtype_bytes(k.param[i].dtype);
    vec_push(p->arena, &row.param, k.param[i]);
  }
  row.flops = k.units;
  vec_push(p->arena, &p->kernel, row);
  return p->kernel.n - 1;
}

static uint32_t value(Plan *p, const char *name, PlanMem mem, int64_t count, DType t) {
  return plan_buffer(p, name, mem, -1, count * (int64_t)dtype_bytes(t), t);
}

#define RUN(at, k, ...) ins_kernel(at, k, (PlanArg[]){__VA_ARGS__}, COUNT(((PlanArg[]){__VA_ARGS__})))
#define ARG(b) ((PlanArg){b, 0})

Plan *bigram_plan(Arena *a, const Bigram *b) {
  Plan *p = plan_create(a);
  int64_t rows = b->batch * b->seq, table = b->size * b->embed;
  DType T = b->dtype;
  p->tool = "test", p->target = plan_str(p, "cpu"), p->model = "bigram", p->data = plan_str(p, "gpt");
  p->steps = b->steps, p->microbatches = b->microbatches, p->micro_batch = b->batch, p->global_batch = b->batch * b->microbatches;
  p->seed = 1234;
  p->optimizer.word = plan_str(p, "sgd"), p->schedule.word = plan_str(p, "constant");
  vec_push(a, &p->optimizer.num, (PlanNum){plan_str(p, "lr"), b->lr, 0});
  const char *axes[] = {"pp", "dp", "ep", "cp", "tp"};
  for (size_t i = 0; i < COUNT(axes); i++) vec_push(a, &p->axis, (PlanAxis){plan_str(p, axes[i]), 1});
  uint32_t batch = plan_dim(p, (PlanDim){.name = "batch", .extent = b->batch, .size = b->batch, .sample = true}), seq = plan_dim(p, (PlanDim){.name = "seq", .extent = b->seq, .size = b->seq, .sample = false});
  uint32_t vocab = plan_dim(p, (PlanDim){.name = "vocab", .extent = b->vocab, .size = b->size, .sample = false}), embed = plan_dim(p, (PlanDim){.name = "embed", .extent = b->embed, .size = b->embed, .sample = false});
  uint32_t at_param = plan_line(p, "bigram.mt", 3, 5, "param"), at_gather = plan_line(p, "bigram.mt", 5, 7, "gather");
  uint32_t at_head = plan_line(p, "bigram.mt", 6, 12, "dot"), at_loss = plan_line(p, "bigram.mt", 7, 10, "cross_entropy");

  const char *slots[] = {"$lr", "$bc1", "$bc2", "$inv_micro", "$den0", "$out.loss", "$grad_norm", "$ok"};
  plan_slot(p, "$step", DT_i64), plan_slot(p, "$sample", DT_i64), plan_slot(p, "$seed", DT_i64);
  for (size_t i = 0; i < COUNT(slots); i++) plan_slot(p, slots[i], DT_f64);
  PlanArg den = plan_slot_arg(p, plan_find_slot(p, "$den0")), out = plan_slot_arg(p, plan_find_slot(p, "$out.loss"));
  PlanArg norm_to = plan_slot_arg(p, plan_find_slot(p, "$grad_norm")), ok = plan_slot_arg(p, plan_find_slot(p, "$ok"));

  uint32_t wte = value(p, "wte", MEM_params, table, T), head = value(p, "head", MEM_params, table, T);
  uint32_t dwte = value(p, "dwte", MEM_grads, table, T), dhead = value(p, "dhead", MEM_grads, table, T);
  uint32_t token_in = value(p, "tokens.next", MEM_inputs, rows, DT_i32), label_in = value(p, "labels.next", MEM_inputs, rows, DT_i32);
  uint32_t token = value(p, "tokens", MEM_inputs, rows, DT_i32), label = value(p, "labels", MEM_inputs, rows, DT_i32);
  uint32_t x = value(p, "x", MEM_activations, rows * b->embed, T), dx = value(p, "dx", MEM_activations, rows * b->embed, T);
  uint32_t d = value(p, "dlogits", MEM_activations, rows * b->size, T), row = value(p, "rowloss", MEM_activations, rows, DT_f64);
  uint32_t logits = value(p, "logits", MEM_outputs, rows * b->size, T), work = value(p, "work", MEM_workspace, b->size + 8, DT_f64);

  PlanVar v = {plan_str(p, "wte.weight"), PVAR_param, T, 2, {vocab, embed}, {0, 1}, wte, 0, at_param, PINIT_normal, 0.5, 0, true, 0};
  vec_push(a, &p->var, v);
  v.name = plan_str(p, "head.{embed}.weight"), v.buffer = head;      // one tensor for each entry of embed
  vec_push(a, &p->var, v);
  PlanVar g = {plan_str(p, "wte.weight:grad"), PVAR_grad, T, 2, {vocab, embed}, {0, 1}, dwte, 1, at_param, PINIT_zeros, 0, 0, false, 0};
  vec_push(a, &p->var, g);
  g.name = plan_str(p, "head.{embed}.weight:grad"), g.buffer = dhead, g.of = 2;
  vec_push(a, &p->var, g);
  vec_push(a, &p->input, (PlanInput){plan_str(p, "tokens"), DT_i32, 2, {batch, seq}, b->vocab, false, 0, at_param});
  vec_push(a, &p->input, (PlanInput){plan_str(p, "labels"), DT_i32, 2, {batch, seq}, b->vocab, true, -100, at_param});
  vec_push(a, &p->output, (PlanOutput){.name = plan_str(p, "loss"), .coef = 1, .per_step = true, .slot = plan_find_slot(p, "$out.loss"), .dtype = DT_f64});
  vec_push(a, &p->output, (PlanOutput){.name = plan_str(p, "logits"), .buffer = logits, .dtype = T, .ndim = 3, .dim = {batch, seq, vocab}});

  const char *text = arena_printf(a, "#define T %s\n#define ROWS %lld\n#define EMBED %lld\n#define VOCAB %lld\n#define SIZE %lld\n"
                                     "#define DEN %lld\n#define LR %lld\n#define ISOK %lld\n%s", dtype_c_name(T), (long long)rows, (long long)b->embed,
                                  (long long)b->vocab, (long long)b->size, (long long)den.at,
                                  (long long)p->slot.at[plan_find_slot(p, "$lr") - 1].at, (long long)ok.at, kernels);
  vec_push(a, &p->source, (PlanSource){plan_str(p, "bigram.c"), text, (int64_t)strlen(text)});

  PlanParam ids = {DT_i32, rows, true, false}, number = {DT_f64, 1, false, true}, sum = {DT_f64, 1, true, true};
  PlanParam big = {T, rows * b->size, true, false}, small = {T, rows * b->embed, true, false}, whole = {T, table, true, false};
  PlanParam big_out = {T, rows * b->size, false, true}, small_out = {T, rows * b->embed, false, true}, whole_out = {T, table, true, true}, whole_new = {T, table, false, true};
  PlanParam terms = {DT_f64, rows, true, false}, terms_out = {DT_f64, rows, false, true};
  uint32_t count_first = kernel(p, (Row){"count_first", 1, 1, 0, 2, {ids, number}}), count_later = kernel(p, (Row){"count_later", 1, 1, 0, 2, {ids, sum}});
  uint32_t gather = kernel(p, (Row){"gather", rows, 2, 0, 3, {ids, whole, small_out}});
  uint32_t loss = kernel(p, (Row){"loss", rows, 3, 0, 4, {big, ids, big_out, terms_out}});
  uint32_t sum_first = kernel(p, (Row){"sum_first", 1, 1, 0, 2, {terms, number}}), sum_later = kernel(p, (Row){"sum_later", 1, 1, 0, 2, {terms, sum}});
  uint32_t scatter_first = kernel(p, (Row){"scatter_first", b->size, 1, 0, 3, {ids, small, whole_new}});
  uint32_t scatter_later = kernel(p, (Row){"scatter_later", b->size, 1, 0, 3, {ids, small, whole_out}});
  uint32_t norm = kernel(p, (Row){"norm", b->size, 1, b->size * 8, 4, {whole, whole, number, number}});
  uint32_t sgd = kernel(p, (Row){"sgd", table, 4, 0, 2, {whole_out, whole}});
  // x @ head over embed; dlogits @ head; dlogits transposed @ x
  uint32_t forward = plan_gemm(p, (PlanGemm){LIB_openblas, T, T, T, rows, b->size, b->embed, b->embed, 1, 1, b->embed, b->size, 1, 0, {{0}}, 1, false, RAGGED_none});
  uint32_t to_x = plan_gemm(p, (PlanGemm){LIB_openblas, T, T, T, rows, b->embed, b->size, b->size, 1, b->embed, 1, b->embed, 1, 0, {{0}}, 1, false, RAGGED_none});
  PlanGemm to_head = {LIB_openblas, T, T, T, b->size, b->embed, rows, 1, b->size, b->embed, 1, b->embed, 1, 0, {{0}}, 1, false, RAGGED_none};
  uint32_t head_first = plan_gemm(p, to_head);
  to_head.accumulate = true;
  uint32_t head_later = plan_gemm(p, to_head);

  uint32_t filled = plan_event(p, "filled", 0), taken = plan_event(p, "taken", 1);
  const char *fns[] = {"prologue", "micro", "update", "eval", "logits"};
  uint32_t fn[5];
  for (size_t i = 0; i < COUNT(fns); i++) fn[i] = plan_fn(p, fns[i]);
  for (size_t i = 0; i < COUNT(fns); i++) {
    PlanAt at = {p, fn[i], STREAM_compute, WHEN_always, at_gather}, in = {p, fn[i], STREAM_input, WHEN_always, 0};
    PlanAt first = {p, fn[i], STREAM_compute, WHEN_first, at_loss}, later = {p, fn[i], STREAM_compute, WHEN_later, at_loss};
    if (i == 2) {
      RUN(at, norm, ARG(dwte), ARG(dhead), norm_to, ok, ARG(work));
      RUN(at, sgd, ARG(wte), ARG(dwte)), RUN(at, sgd, ARG(head), ARG(dhead));
      continue;
    }
    ins_wait(in, taken);
    if (i != 0) ins_load(in, 1, ARG(token_in));
    if (i != 4) ins_load(in, 2, ARG(label_in));
    ins_record(in, filled), ins_wait(at, filled);
    if (i != 0) ins_copy(at, ARG(token), ARG(token_in), rows * 4);
    if (i != 4) ins_copy(at, ARG(label), ARG(label_in), rows * 4);
    ins_record(at, taken);
    if (i == 0) {
      RUN(first, count_first, ARG(label), den), RUN(later, count_later, ARG(label), den);
      continue;
    }
    RUN(at, gather, ARG(token), ARG(wte), ARG(x));
    at.line = at_head;
    ins_gemm(at, forward, ARG(logits), ARG(x), ARG(head));
    if (i == 4) continue;
    at.line = at_loss;
    RUN(at, loss, ARG(logits), ARG(label), ARG(d), ARG(row));
    RUN(first, sum_first, ARG(row), out), RUN(later, sum_later, ARG(row), out);
    if (i == 3) continue;
    at.line = first.line = later.line = at_head;
    ins_gemm(first, head_first, ARG(dhead), ARG(d), ARG(x)), ins_gemm(later, head_later, ARG(dhead), ARG(d), ARG(x));
    ins_gemm(at, to_x, ARG(dx), ARG(d), ARG(head));
    first.line = later.line = at_gather;
    RUN(first, scatter_first, ARG(token), ARG(dx), ARG(dwte)), RUN(later, scatter_later, ARG(token), ARG(dx), ARG(dwte));
  }
  for (uint32_t j = 0; j < b->microbatches; j++) vec_push(a, &p->cell, (PlanCell){CELL_P, j, fn[0]});
  for (uint32_t j = 0; j < b->microbatches; j++) vec_push(a, &p->cell, (PlanCell){CELL_FB, j, fn[1]});
  vec_push(a, &p->cell, (PlanCell){CELL_U, 0, fn[2]});
  return p;
}
