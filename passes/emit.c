// emit.c -- a module to a plan: variables and inputs get their buffers, functions become instructions, the kernels that
// are equal become one.
#include "passes/emit.h"
#include "compiler/kernel_source.h"
#include "runtime/gemm.h"
#include "runtime/jit.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SOURCES = 2 };                        // files that the kernels are compiled in, side by side

// buffers: where the host puts it, where kernels read it
typedef struct { Str name; uint32_t input, next, here; int64_t bytes; } Input;

typedef struct {
  Module *m;
  Plan *p;
  Arena *a;
  uint32_t *dim;                             // by DimId
  uint32_t *var;                             // by VarId: buffer, or slot of a scalar
  VEC(Input) input;
  uint32_t full, taken;                      // events of the input stream
  uint32_t ready, done;                      // of the stream comm: a collective may start, it has ended
  Earlies early;
  uint32_t *sum;                             // by number: where an early sum lies, a buffer; 0: not made yet
  uint32_t work;                             // buffer of the kernels' work, made at the end
  int64_t work_bytes;
  Map kernel, text;                          // hash, hash of the C -> PlanKernel
  Text source[SOURCES];
  size_t more[SOURCES];                      // beside its text: what is slow to compile
  bool attention[DT_COUNT];                  // the last source has the text for this format
  bool apart, keep, bake;                    // nothing is fused; the kernels are wanted; see Groups
  VEC(const Kernel *) kept;                  // beside Plan.kernel
  VEC(const Tile *) kept_tile;
} Emit;

static uint32_t line_of(Emit *e, Span at, const char *what) {
  const Diag *d = e->m->diag;
  const char *path = at.file < d->source.n ? d->source.at[at.file].path : "?";
  return plan_line(e->p, path, at.line, at.col, what);
}

static bool sample_dim(const Module *m, DimId d) { return dim_of(m, dim_of(m, d)->root)->sample; }

// ---- tables ------------------------------------------------------------------------------------------------------
static void emit_head(Emit *e, const EmitOptions *o) {
  Plan *p = e->p;
  Module *m = e->m;
  p->model = plan_str(p, o->model), p->target = plan_str(p, "cpu"), p->tool = plan_str(p, o->tool ? o->tool : "?");
  for (uint32_t i = 0; i < m->axis.n; i++)
    vec_push(p->arena, &p->axis, (PlanAxis){plan_str(p, m->axis.at[i].name), m->axis.at[i].size});
  int64_t batch = 1;
  for (DimId d = 1; d < m->dim.n; d++) {
    const Dim *x = dim_of(m, d);
    PlanDim pd = {.name = plan_str(p, x->name), .extent = x->extent, .size = x->size, .sample = sample_dim(m, d),
                  .whole = x->whole ? e->dim[x->whole] : 0, .chunks = x->whole ? 0 : dim_of(m, x->root)->zigzag};
    for (Split s = x->cut; s; s >>= 4) pd.cut[pd.ncut++] = (uint8_t)((s & 15u) - 1);
    e->dim[d] = plan_dim(p, pd);
    if (x->sample && !x->whole) batch = x->extent;
  }
  p->steps = (int64_t)setting_num(m, "train.steps", 1), p->seed = (int64_t)setting_num(m, "train.seed", 1234);
  p->micro_batch = (int64_t)setting_num(m, "train.micro_batch", 1),
  p->global_batch = (int64_t)setting_num(m, "train.global_batch", 1);
  p->microbatches = p->global_batch / MAX(batch, 1);
  static const char *const path[] = {"train.optimizer", "train.schedule", "precision.loss_scale"};
  PlanCall *call[] = {&p->optimizer, &p->schedule, &p->loss_scale};
  for (size_t i = 0; i < COUNT(path); i++) {
    const Setting *s = setting_find(m, path[i]);
    if (s && s->kind == SET_num) {                         // a scale that is a number
      call[i]->word = plan_str(p, "constant");
      vec_push(p->arena, &call[i]->num, (PlanNum){plan_str(p, "value"), s->num, 0});
    }
    if (!s || s->kind != SET_call || !strcmp(s->word, "none")) continue;
    call[i]->word = plan_str(p, s->word);
    for (uint32_t k = 0; k < s->narg; k++)
      vec_push(p->arena, &call[i]->num,
               (PlanNum){plan_str(p, s->arg[k].path), s->arg[k].num,
                         s->arg[k].kind == SET_word ? plan_str(p, s->arg[k].word) : 0});
  }
}

// A part that lies in one piece in its variable.
static uint32_t part_buffer(Emit *e, const char *name, VarId v, const Type *part) {
  const Type *of = &e->m->type.at[e->m->var.at[v].type];
  int k = 0;
  if (!is_part_in_place(e->m, of, part, &k)) bug("emit: %s is no part of a variable", name);
  return plan_buffer_part(e->p, name, e->var[v], e->dim[of->dim[k]], e->dim[part->dim[k]], type_bytes(e->m, part));
}

// What a gradient is once a step's microbatches are done: a sum over these axes, or this rank's part of it.
static void emit_sum(Emit *e, VarId v, PlanVar *pv) {
  for (uint32_t i = 0; i < e->early.n; i++) {
    const Fn *f = e->early.at[i].f;
    const Node *n = fn_node(f, e->early.at[i].node);
    const Type *t = val_type(f, n->out), *whole = &e->m->type.at[e->m->var.at[v].type];
    int k;
    if (e->early.at[i].var != v || (n->op != OP_all_reduce && !is_part_in_place(e->m, whole, t, &k))) continue;
    pv->partial &= (uint8_t)~n->attr.axes;
    if (n->op == OP_all_reduce) continue;
    for (int d = 0; d < t->ndim; d++) pv->dim[d] = e->dim[t->dim[d]];
    pv->buffer = e->sum[e->early.at[i].number] = part_buffer(e, e->m->var.at[v].name, v, t);
  }
}

static void emit_vars(Emit *e) {
  static const PlanMem mem[VAR_COUNT] = {
      [VAR_param] = MEM_params, [VAR_copy] = MEM_copies, [VAR_grad] = MEM_grads, [VAR_moment] = MEM_moments};
  static const PlanVarKind kind[VAR_COUNT] = {
      [VAR_param] = PVAR_param, [VAR_copy] = PVAR_copy, [VAR_grad] = PVAR_grad, [VAR_moment] = PVAR_moment};
  static const PlanInit init[INIT_COUNT] = {
      [INIT_zeros] = PINIT_zeros, [INIT_ones] = PINIT_ones, [INIT_normal] = PINIT_normal,
      [INIT_uniform] = PINIT_uniform};
  Plan *p = e->p;
  Module *m = e->m;
  uint32_t *row = NEW_N(e->a, uint32_t, m->var.n);
  for (VarId v = 1; v < m->var.n; v++)
    if (m->var.at[v].kind == VAR_scalar)
      e->var[v] = plan_slot(p, m->var.at[v].name, m->type.at[m->var.at[v].type].dtype);
  plan_slot(p, "$seed", DT_i64);                                       // scalar_slot of 0: behind the others
  for (int k = 0; k < VAR_COUNT; k++)
    for (VarId v = 1; v < m->var.n; v++) {
      const Var *x = &m->var.at[v];
      const Type *t = &m->type.at[x->type];
      if ((int)x->kind != k || x->kind == VAR_scalar) continue;
      PlanVar pv = {.name = plan_str(p, x->name), .kind = kind[k], .dtype = t->dtype, .ndim = t->ndim,
                    .of = x->of ? row[x->of] : 0, .init = init[x->init], .a = x->a, .b = x->b, .decay = x->decay,
                    .partial = x->partial,
                    .line = line_of(e, x->loc, "param")};
      for (int i = 0; i < t->ndim; i++) pv.dim[i] = e->dim[t->dim[i]], pv.axis[i] = x->axis[i];
      pv.buffer = e->var[v] = plan_buffer(p, x->name, mem[k], -1, type_bytes(m, t), t->dtype);
      if (x->kind == VAR_grad) emit_sum(e, v, &pv);
      row[v] = p->var.n;
      vec_push(p->arena, &p->var, pv);
    }
}

// The node that makes what v is a view of, and of what (casts: a cast counts as a view); 0: an argument.
static const Node *behind_views(const Fn *f, ValId *v, bool casts) {
  for (;; *v = node_in(f, fn_node(f, f->val.at[*v].def))[0]) {
    NodeId d = f->val.at[*v].def;
    if (!d) return 0;
    Op op = fn_node(f, d)->op;
    if (!op_is_view(op) && op != OP_take_shard && !(casts && op == OP_cast)) return fn_node(f, d);
  }
}

// Is v an input of this name, as it came or through views?
static bool is_input(const Fn *f, ValId v, Str name) {
  return !behind_views(f, &v, false) && f->val.at[v].name == name;
}

static const Node *constant(const Fn *f, ValId v) {                    // the node of a number, or 0
  const Node *n = behind_views(f, &v, true);
  return n && n->op == OP_const ? n : 0;
}

// A number that stands for no label: a negative one that an input is compared with, or else one that it must differ
// from.
static bool ignored(const Module *m, Str name, int64_t *number) {
  bool found = false;
  for (FnId k = 1; k < m->fn.n; k++) {
    const Fn *f = m->fn.at[k];
    for (NodeId i = 1; i < f->node.n && !f->is_body; i++) {
      const Node *n = fn_node(f, i), *c;
      if (n->op != OP_eq && n->op != OP_ne) continue;
      for (int side = 0; side < 2; side++) {
        if (!is_input(f, node_in(f, n)[side], name) || !(c = constant(f, node_in(f, n)[!side]))) continue;
        if (!(fabs(c->attr.num) <= INT32_MAX) || (c->attr.num >= 0 && (n->op == OP_eq || found))) continue;
        if (c->attr.num >= 0 || !found || *number >= 0) *number = (int64_t)c->attr.num;
        found = true;
      }
    }
  }
  return found;
}

// A value >= the extent of a dim that an input indexes is refused before the step.
static int64_t below(const Module *m, Str name) {
  int64_t least = 0;
  for (FnId k = 1; k < m->fn.n; k++) {
    const Fn *f = m->fn.at[k];
    for (NodeId i = 1; i < f->node.n && !f->is_body; i++) {
      const Node *n = fn_node(f, i);
      if (n->op != OP_gather && n->op != OP_scatter) continue;
      if (!is_input(f, node_in(f, n)[1], name)) continue;
      int64_t extent = dim_of(m, dim_whole(m, n->attr.dims[0]))->extent;
      least = least ? MIN(least, extent) : extent;
    }
  }
  return least;
}

static void emit_inputs(Emit *e) {
  Plan *p = e->p;
  Module *m = e->m;
  for (FnId k = 1; k < m->fn.n; k++) {
    const Fn *f = m->fn.at[k];
    for (uint32_t i = 0; i < f->arg.n && !f->is_body; i++) {
      Str name = f->val.at[f->arg.at[i]].name;
      const Type *t = val_type(f, f->arg.at[i]);
      bool known = false;
      for (uint32_t j = 0; j < e->input.n; j++) known |= e->input.at[j].name == name;
      if (known) continue;
      PlanInput in = {.name = plan_str(p, name), .dtype = t->dtype, .ndim = t->ndim, .below = below(m, name),
                      .line = line_of(e, (Span){0}, "input")};
      for (int d = 0; d < t->ndim; d++) in.dim[d] = e->dim[t->dim[d]];
      if (dtype_is_int(t->dtype)) in.ignores = ignored(m, name, &in.ignored);
      vec_push(p->arena, &p->input, in);
      int64_t bytes = type_bytes(m, t);
      uint32_t next = plan_buffer(p, arena_printf(e->a, "%s.next", name), MEM_inputs, -1, bytes, t->dtype);
      uint32_t here = plan_buffer(p, name, MEM_inputs, -1, bytes, t->dtype);
      vec_push(e->a, &e->input, (Input){name, p->input.n - 1, next, here, bytes});
    }
  }
  if (!e->input.n) return;
  e->full = plan_event(p, "inputs.full", 0), e->taken = plan_event(p, "inputs.taken", 1);
}

static const Input *input_of(const Emit *e, const Fn *f, ValId v) {
  for (uint32_t i = 0; i < e->input.n; i++)
    if (e->input.at[i].name == f->val.at[v].name) return &e->input.at[i];
  bug("emit: an argument of %s is no input", f->name);
}

// ---- kernels -----------------------------------------------------------------------------------------------------
static uint32_t kernel_known(const Emit *e, uint64_t hash) {
  const uint64_t *known = map_get(&e->kernel, hash);
  return known ? (uint32_t)*known : 0;
}

// A row with its symbol, hash, class, source and parameters; k or t is what it is made from.
static uint32_t kernel_add(Emit *e, PlanKernel row, Launch l, KernelCost cost, const Kernel *k, const Tile *t) {
  Plan *p = e->p;
  row.stages = (uint32_t)l.stages, row.work = l.work, row.flops = cost.flops, row.bytes = cost.bytes;
  for (int i = 0; i < 2; i++) row.units[i] = l.units[i], row.grain[i] = l.grain[i];
  vec_push(p->arena, &p->kernel, row);
  map_put(&e->kernel, row.hash, p->kernel.n - 1);
  if (e->keep) vec_push(e->a, &e->kept, k), vec_push(e->a, &e->kept_tile, t);
  e->work_bytes = MAX(e->work_bytes, l.work);
  return p->kernel.n - 1;
}

// The kernel's C, in the source that is shortest so far; its number. Kernels that differ in the sizes of their buffers
// only (pieces of a chunked head) have one text: the later ones are other names for the first.
static uint32_t emit_text(Emit *e, const Kernel *k, const char *symbol, int stages) {
  Text c;
  text_init(&c, e->a);
  emit_c(&c, k, "k");
  uint64_t h = hash_bytes(c.s, c.n, 0);
  const uint64_t *first = map_get(&e->text, h);
  if (first) {
    const PlanKernel *as = &e->p->kernel.at[*first];
    for (int i = 0; i < stages; i++)
      text_printf(&e->source[as->source - 1],
                  "void %s%s(void *const *, const void *, i64, i64) __attribute__((alias(\"%s%s\")));\n", symbol,
                  i ? "_combine" : "", as->symbol, i ? "_combine" : "");
    return as->source;
  }
  uint32_t file = 0;
  for (uint32_t i = 1; i < SOURCES; i++)
    if (e->source[i].n + e->more[i] < e->source[file].n + e->more[file]) file = i;
  emit_c(&e->source[file], k, symbol);
  map_put(&e->text, h, e->p->kernel.n);
  return file + 1;
}

static uint32_t emit_kernel(Emit *e, Kernel *k) {
  static const char *const class[LOOP_COUNT] = {"auto", "map", "row", "col", "scatter"};
  Plan *p = e->p;
  kernel_finish(k);
  uint64_t h = kernel_hash(k);
  uint32_t known = kernel_known(e, h);
  if (known) return known;
  PlanKernel row = {.symbol = plan_str(p, kernel_symbol(e->a, k)),
                    .hash = h,
                    .class = plan_str(p, class[k->class])};
  for (uint32_t i = 0; i < k->nbuf; i++)
    vec_push(p->arena, &row.param, (PlanParam){k->buf[i].dtype, k->buf[i].count, k->buf[i].read, k->buf[i].written});
  Launch l = kernel_launch(k);
  row.source = emit_text(e, k, row.symbol, l.stages);
  return kernel_add(e, row, l, kernel_cost(k), k, 0);
}

static uint32_t emit_tile_kernel(Emit *e, const Tile *t) {
  Plan *p = e->p;
  uint64_t h = tile_hash(t);
  uint32_t known = kernel_known(e, h);
  if (known) return known;
  Text *to = &e->source[SOURCES - 1];
  PlanKernel row = {.symbol = plan_str(p, arena_printf(e->a, "k_%016llx", (unsigned long long)h)),
                    .hash = h,
                    .class = plan_str(p, "tile"),
                    .source = SOURCES};
  for (uint32_t i = 0; i < t->narg; i++)
    vec_push(p->arena, &row.param, (PlanParam){t->arg[i].t, t->arg[i].count, !t->arg[i].written, t->arg[i].written});
  if (!e->attention[t->work]) {
    size_t n = to->n;
    text_printf(to, "#define W %s\n", dtype_name(t->work));
    emit_c_text(to, kernel_attention_parts_text), emit_c_text(to, kernel_attention_text);
    e->more[SOURCES - 1] += (to->n - n) / 2;
    text_puts(to, "#undef W\n");
  }
  e->attention[t->work] = true;
  tile_text(to, t, row.symbol);
  Tile *copy = NEW(e->a, Tile);
  *copy = *t;
  return kernel_add(e, row, tile_launch(t), tile_cost(e->m, t), 0, copy);
}

// ---- functions ---------------------------------------------------------------------------------------------------
// by value: its buffer; of the values without dims
typedef struct { const Groups *g; uint32_t *buffer; uint32_t block; } Where;

static uint32_t make_buffer(Emit *e, const Where *w, ValId v) {
  const Groups *g = w->g;
  const Type *t = val_type(g->f, v);
  const Node *n = g->f->val.at[v].def ? fn_node(g->f, g->f->val.at[v].def) : 0;
  const char *name = arena_printf(e->a, "%s.%u", g->f->name, v);
  switch (g->stored[v]) {
  case STORED_arg: return input_of(e, g->f, v)->here;
  case STORED_var: return e->var[n->attr.var];
  case STORED_part: return part_buffer(e, name, g->part_of[v], t);
  case STORED_temp:
    return plan_buffer(e->p, name, g->lent[v] ? MEM_grads : MEM_activations, g->at[v], type_bytes(e->m, t), t->dtype);
  default: bug("emit: a value of %s has no place", g->f->name);
  }
}

static PlanArg value_place(Emit *e, Where *w, ValId v) {
  v = place_of(w->g, v);
  bool small = !v || (w->g->stored[v] == STORED_small && !w->buffer[v]);
  if (small && !w->block)
    w->block = plan_buffer(e->p, arena_printf(e->a, "%s.scalars", w->g->f->name), MEM_activations, 0,
                           w->g->small_count * 8, DT_f64);
  if (small) return (PlanArg){w->block, v ? w->g->at[v] * 8 : 0};
  if (!w->buffer[v]) w->buffer[v] = make_buffer(e, w, v);
  return (PlanArg){w->buffer[v], 0};
}

static PlanArg var_place(const Emit *e, VarId v) {
  if (e->m->var.at[v].kind == VAR_scalar) return plan_slot_arg(e->p, e->var[v]);
  return (PlanArg){e->var[v], 0};
}

static const char *what_of(const Fn *f, const Group *g) {              // the path of the group's first root, or its op
  const Node *n = fn_node(f, g->node);
  return *n->path ? n->path : op_info[n->op].name;
}

static void emit_product(Emit *e, Where *w, const Group *g, PlanAt at) {
  const Fn *f = w->g->f;
  const Node *n = fn_node(f, g->node);
  const Type *out = g->var ? &e->m->type.at[e->m->var.at[g->var].type] : val_type(f, n->out);
  PlanGemm gemm;
  ValId base[2];
  int64_t off[2];
  ValId made = n->out;
  int64_t made_off = 0, stride[MAX_DIMS];
  if (!g->var) made_at(w->g, f, n->out, &made, &made_off, stride);
  product_of(f, node_in(f, n)[0], node_in(f, n)[1], n->attr.dims, n->attr.ndims, out, g->var ? 0 : stride, &gemm, base, off);
  PlanArg in[2], to = g->var ? var_place(e, g->var) : value_place(e, w, made);
  to.at += made_off * (int64_t)dtype_bytes(out->dtype);
  for (int i = 0; i < 2; i++) {
    in[i] = value_place(e, w, base[i]);
    in[i].at += off[i] * (int64_t)dtype_bytes(val_type(f, base[i])->dtype);
  }
  if (g->accumulate && !g->more) at.when = WHEN_first;
  gemm.accumulate = g->more;
  gemm.lib = gemm_choose(&gemm);
  if (!gemm.m) {                                                       // a sum over nothing
    if (type_bytes(e->m, out) && !g->more) ins_zero(at, to, type_bytes(e->m, out));
    return;
  }
  ins_gemm(at, plan_gemm(e->p, gemm), to, in[0], in[1]);
  if (!g->accumulate || g->more) return;
  at.when = WHEN_later, gemm.accumulate = true;
  ins_gemm(at, plan_gemm(e->p, gemm), to, in[0], in[1]);
}

static PlanArg coll_place(Emit *e, Where *w, ValId v) {
  if (w->g->stored[v] == STORED_slot) return var_place(e, fn_node(w->g->f, w->g->f->val.at[v].def)->attr.var);
  return value_place(e, w, v);
}

// Extents in front of dim i of t, and behind it
static int64_t before(const Module *m, const Type *t, int i) {
  int64_t n = 1;
  for (int k = 0; k < i; k++) n *= type_local(m, t, (uint32_t)k);
  return n;
}
static int64_t behind(const Module *m, const Type *t, int i) {
  int64_t n = 1;
  for (int k = i + 1; k < t->ndim; k++) n *= type_local(m, t, (uint32_t)k);
  return n;
}

static PlanColl coll_of(const Emit *e, const Fn *f, const Node *n) {
  static const struct { Op op; PlanCollKind kind; } kinds[] = {
      {OP_all_reduce, COLL_all_reduce}, {OP_all_max, COLL_all_max}, {OP_reduce_scatter, COLL_reduce_scatter},
      {OP_all_gather, COLL_all_gather}, {OP_all_to_all, COLL_all_to_all}};
  const Module *m = e->m;
  const Type *from = val_type(f, node_in(f, n)[0]), *to = val_type(f, n->out);
  PlanColl c = {.dtype = from->dtype, .sent = sum_format(f, (NodeId)(n - f->node.at)), .axes = n->attr.axes, .outer = 1, .gather = 1, .mid = 1, .scatter = 1};
  for (size_t i = 0; i < COUNT(kinds); i++)
    if (kinds[i].op == n->op) c.kind = kinds[i].kind;
  int a = n->attr.ndims ? type_pos(from, n->attr.dims[0]) : -1, b = c.kind == COLL_all_to_all ? type_pos(to, n->attr.to[1]) : -1;
  if (a < 0) return c.inner = type_count(m, from), c;
  if (b < 0) {
    const Type *less = c.kind == COLL_all_gather ? from : to;
    return c.outer = before(m, less, a), c.inner = type_local(m, less, (uint32_t)a) * behind(m, less, a), c;
  }
  c.turned = b < a;
  int first = MIN(a, b), last = MAX(a, b);
  c.outer = before(m, from, first), c.inner = behind(m, from, last);
  c.gather = type_local(m, from, (uint32_t)a), c.scatter = type_local(m, to, (uint32_t)b);
  for (int k = first + 1; k < last; k++) c.mid *= type_local(m, from, (uint32_t)k);
  return c;
}

// Where a gradient's early sum lies.
static uint32_t sum_place(Emit *e, const Early *early) {
  const Node *n = fn_node(early->f, early->node);
  uint32_t *at = &e->sum[early->number];
  const Type *t = val_type(early->f, n->out);
  if (n->op == OP_all_reduce) return e->var[early->var];
  if (!*at)
    *at = plan_buffer(e->p, arena_printf(e->a, "%s:sum", e->m->var.at[early->var].name), MEM_outputs, -1,
                      type_bytes(e->m, t), t->dtype);
  return *at;
}

// On the stream comm once all before it has been computed; goes_on: in the meeting of the one before. False: there is
// nothing to wait for, or there will be.
static bool emit_coll(Emit *e, Where *w, const Group *g, bool goes_on, PlanAt at) {
  const Fn *f = g->early ? g->early->f : w->g->f;
  const Node *n = fn_node(f, g->node);
  const Type *from = val_type(f, node_in(f, n)[0]), *to = val_type(f, n->out);
  for (int i = 0; i < from->ndim; i++)
    if (from->dim[i] != to->dim[i] && !dims_have(n->attr.dims, n->attr.ndims, from->dim[i]))
      bug("emit: a collective at line %u changes the order of dims", n->loc.line);
  if (!type_count(e->m, from) && !type_count(e->m, to)) return false;
  if (g->early && f == w->g->f) return false;
  if (!e->ready) e->ready = plan_event(e->p, "comm.ready", 0), e->done = plan_event(e->p, "comm.done", 0);
  if (!goes_on) ins_record(at, e->ready);
  at.stream = STREAM_comm;
  if (!goes_on) ins_wait(at, e->ready);
  PlanAt when = at;
  if (g->early) when.when = WHEN_last;
  PlanArg there = g->early ? (PlanArg){sum_place(e, g->early), 0} : g->var ? var_place(e, g->var) : coll_place(e, w, n->out);
  PlanArg here = g->early ? var_place(e, g->early->var) : coll_place(e, w, node_in(f, n)[0]);
  ins_coll(when, plan_coll(e->p, coll_of(e, f, n)), there, here);
  if (g->and) return ins_and(when), false;
  ins_record(at, e->done);
  return true;
}

// Started collectives in order, of which the first `n` have been waited for.
typedef struct { VEC(Group) at; VEC(uint32_t) line; uint32_t n; } Started;
static void emit_waits(Emit *e, Started *s, uint32_t step, PlanAt at) {
  for (; s->n < s->at.n && s->at.at[s->n].wait <= step; s->n++) {
    at.line = s->line.at[s->n], at.when = WHEN_always;
    ins_wait(at, e->done);
  }
}

static PlanArg random_place(const Emit *e, Str path) {                 // where the hash of a random op's path is
  return plan_slot_arg(e->p, plan_slot(e->p, arena_printf(e->a, "$random:%s", path), DT_i64));
}

static void emit_loops(Emit *e, Where *w, uint32_t group, bool first, PlanAt at) {
  Operand operand[KERNEL_BUFFERS] = {0};
  Kernel *k = kernel_of(w->g, group, first, e->keep ? e->a : w->g->arena, operand);
  uint32_t id = emit_kernel(e, k);
  PlanArg arg[KERNEL_BUFFERS + 1];
  uint32_t n = 0;
  for (; n < k->nbuf; n++) {
    const Operand *o = &operand[n];
    arg[n] = o->random ? random_place(e, o->random) : o->var ? var_place(e, o->var) : value_place(e, w, o->v);
    arg[n].at += o->at * (int64_t)dtype_bytes(k->buf[n].dtype);
  }
  if (e->p->kernel.at[id].work) arg[n++] = (PlanArg){e->work, 0};
  ins_kernel(at, id, arg, n);
}

static void emit_tile(Emit *e, Where *w, const Group *g, PlanAt at) {
  Tile tile;
  PlanArg arg[ATTN_OPERANDS + 2];
  tile_of(w->g, w->g->f, g->node, &tile);
  if (e->bake) tile_bake(&tile);
  uint32_t id = emit_tile_kernel(e, &tile), n = 0;
  for (; n < tile.narg; n++) {
    arg[n] = tile.arg[n].random ? random_place(e, tile.arg[n].random) : value_place(e, w, tile.arg[n].base);
    arg[n].at += tile.arg[n].at * (int64_t)dtype_bytes(tile.arg[n].t);
  }
  if (e->p->kernel.at[id].work) arg[n++] = (PlanArg){e->work, 0};
  ins_kernel(at, id, arg, n);
}

// The rows of f's results. kept[v]: the buffer where v is made; copied[i]: where result i is copied at the end, as it
// lies elsewhere already.
static void emit_outputs(Emit *e, const Groups *g, uint32_t *kept, uint32_t *copied) {
  const Fn *f = g->f;
  for (uint32_t i = 0; i < f->ret.n; i++) {
    ValId v = f->ret.at[i];
    const Type *t = val_type(f, v);
    Stored as = (Stored)g->stored[v];
    uint32_t *buffer = as == STORED_arg || as == STORED_var || as == STORED_slot ? &copied[i] : &kept[v];
    bool here = as == STORED_temp;           // made in the function's block, where it stays
    if (!*buffer)
      *buffer = plan_buffer(e->p, f->ret_name.at[i], here ? MEM_activations : MEM_outputs, here ? g->at[v] : -1,
                            type_bytes(e->m, t), t->dtype);
    PlanOutput o = {.name = plan_str(e->p, f->ret_name.at[i]), .dtype = t->dtype, .ndim = t->ndim, .buffer = *buffer};
    for (int d = 0; d < t->ndim; d++) o.dim[d] = e->dim[t->dim[d]];
    vec_push(e->p->arena, &e->p->output, o);
  }
}

// The inputs: loaded on their stream while the microbatch before is computed, then copied.
static void emit_loads(Emit *e, const Fn *f, PlanAt at) {
  PlanAt in = at;
  in.stream = STREAM_input;
  if (!f->arg.n) return;
  ins_wait(in, e->taken);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    const Input *x = input_of(e, f, f->arg.at[i]);
    ins_load(in, x->input, (PlanArg){x->next, 0});
  }
  ins_record(in, e->full), ins_wait(at, e->full);
  for (uint32_t i = 0; i < f->arg.n; i++) {
    const Input *x = input_of(e, f, f->arg.at[i]);
    ins_copy(at, (PlanArg){x->here, 0}, (PlanArg){x->next, 0}, x->bytes);
  }
  ins_record(at, e->taken);
}

// When this function first writes each gradient. It may have their bytes until then when it begins them afresh, for good
// when it does not touch them: they are complete between the steps, but only a step's update wants them.
static uint32_t lent_bytes(const Emit *e, const Groups *g, Lent *lent) {
  const Module *m = e->m;
  uint32_t *begun = NEW_N(g->arena, uint32_t, m->var.n), n = 0;
  bool writes = false;
  for (NodeId i = 1; i < g->f->node.n; i++)
    if (fn_node(g->f, i)->op == OP_read && m->var.at[fn_node(g->f, i)->attr.var].kind == VAR_grad) return 0;
  for (uint32_t i = g->group.n; i--;) {
    const Group *x = &g->group.at[i];
    begun[x->var] = i + 1;
    for (uint32_t k = 0; k < x->root.n; k++) begun[x->root.at[k].var] = i + 1;
  }
  for (VarId v = 1; v < m->var.n; v++) writes |= m->var.at[v].kind == VAR_grad && begun[v];
  if (writes && e->p->microbatches != 1) return 0;
  for (VarId v = 1; v < m->var.n; v++) {
    if (m->var.at[v].kind != VAR_grad) continue;
    const PlanBuffer *b = &e->p->buffer.at[e->var[v]];
    int64_t bytes = (b->bytes + 63) & ~(int64_t)63;
    if (bytes) lent[n++] = (Lent){b->at, bytes, begun[v] ? begun[v] : writes ? 0 : UINT32_MAX};
  }
  return n;
}

static void emit_fn(Emit *e, const Fn *f) {
  Arena *a = arena_create();
  Groups *g = fuse(e->m, f, a, e->apart);
  overlap(g, &e->early);
  Lent *lent = NEW_N(a, Lent, e->m->var.n);
  memory_plan(g, lent, lent_bytes(e, g, lent));
  g->bake = e->bake;
  Where w = {g, NEW_N(a, uint32_t, f->val.n), 0};
  for (uint32_t i = 0; i < e->early.n; i++)
    if (e->early.at[i].f == f) w.buffer[fn_node(f, e->early.at[i].node)->out] = sum_place(e, &e->early.at[i]);
  uint32_t *copied = NEW_N(a, uint32_t, f->ret.n + 1);
  emit_outputs(e, g, w.buffer, copied);
  PlanAt at = {e->p, plan_fn(e->p, f->name), STREAM_compute, WHEN_always, line_of(e, (Span){0}, "input")};
  emit_loads(e, f, at);
  Started started = {0};
  for (uint32_t i = 0; i < g->group.n; i++) {
    const Group *x = &g->group.at[i];
    emit_waits(e, &started, i, at);
    const Fn *of = x->early ? x->early->f : f;
    at.line = line_of(e, fn_node(of, x->node)->loc, what_of(of, x));
    at.when = WHEN_always;
    if (x->collective) {
      if (emit_coll(e, &w, x, i && x[-1].and, at)) vec_push(a, &started.at, *x), vec_push(a, &started.line, at.line);
    } else if (x->tile) emit_tile(e, &w, x, at);
    else if (x->class == LOOP_auto) emit_product(e, &w, x, at);
    else if (!group_accumulates(x)) emit_loops(e, &w, i, false, at);
    else {
      at.when = WHEN_first, emit_loops(e, &w, i, true, at);
      at.when = WHEN_later, emit_loops(e, &w, i, false, at);
    }
  }
  emit_waits(e, &started, g->group.n, at);
  at.when = WHEN_always;
  for (uint32_t i = 0; i < f->ret.n; i++) {
    ValId v = f->ret.at[i];
    if (!copied[i]) continue;
    PlanArg from =
        g->stored[v] == STORED_slot ? var_place(e, fn_node(f, f->val.at[v].def)->attr.var) : value_place(e, &w, v);
    ins_copy(at, (PlanArg){copied[i], 0}, from, type_bytes(e->m, val_type(f, v)));
  }
  arena_destroy(a);
}

static bool many_randoms(const Module *m, Arena *a) {                  // more paths than the scalar block has room for
  enum { ROOM = SCALAR_BLOCK / 8 - 64 };
  Map seen;
  map_init(&seen, a);
  uint32_t scalars = 0;
  for (VarId v = 1; v < m->var.n; v++) scalars += m->var.at[v].kind == VAR_scalar;
  for (FnId k = 1; k < m->fn.n; k++)
    for (NodeId i = 1; i < m->fn.at[k]->node.n; i++)
      if (fn_node(m->fn.at[k], i)->op == OP_random) map_put(&seen, key_of(fn_node(m->fn.at[k], i)->attr.path), 1);
  return seen.n + scalars > ROOM;
}

static void emit_cells(Emit *e) {
  Plan *p = e->p;
  uint32_t prologue = plan_find_fn(p, "prologue"), micro = plan_find_fn(p, "micro"), update = plan_find_fn(p, "update");
  for (int64_t j = 0; prologue && j < p->microbatches; j++)
    vec_push(p->arena, &p->cell, (PlanCell){CELL_P, (uint32_t)j, prologue});
  for (int64_t j = 0; micro && j < p->microbatches; j++)
    vec_push(p->arena, &p->cell, (PlanCell){CELL_FB, (uint32_t)j, micro});
  if (update) vec_push(p->arena, &p->cell, (PlanCell){CELL_U, 0, update});
}

static bool takes_text(const Emit *e) {                                // tokens and labels, and nothing more
  bool tokens = false, labels = false;
  for (uint32_t i = 0; i < e->input.n; i++) {
    tokens |= !strcmp(e->input.at[i].name, "tokens"), labels |= !strcmp(e->input.at[i].name, "labels");
    if (strcmp(e->input.at[i].name, "tokens") && strcmp(e->input.at[i].name, "labels")) return false;
  }
  return tokens && labels;
}

Status emit_possible(const Module *m, const char *path) {
  enum { MICROBATCHES = 1 << 20 };
  uint32_t params = 0;
  int64_t batch = 1;
  for (VarId v = 1; v < m->var.n; v++) params += m->var.at[v].kind == VAR_param;
  if (!params) return fail(EXIT_COMPILE, "%s: the model has no parameters; there is nothing to train", path);
  for (DimId d = 1; d < m->dim.n; d++) {
    const Dim *x = dim_of(m, d);
    if (x->size > INT32_MAX)
      return fail(EXIT_COMPILE, "%s: dim %s has %lld entries; a plan holds dims of at most %d", path, x->name,
                  (long long)x->size, INT32_MAX);
    if (x->sample && !x->whole) batch = MAX(x->extent, 1);
  }
  double micro = setting_num(m, "train.global_batch", 1) / (double)batch;
  if (micro > MICROBATCHES)
    return fail(EXIT_COMPILE, "%s: train.global_batch makes a step of %.0f microbatches; at most %d are possible",
                path, micro, MICROBATCHES);
  bool inputs = false;
  for (FnId k = 1; k < m->fn.n; k++)
    for (uint32_t i = 0; i < m->fn.at[k]->arg.n && !m->fn.at[k]->is_body; i++) {
      const Value *v = &m->fn.at[k]->val.at[m->fn.at[k]->arg.at[i]];
      const Type *t = &m->type.at[v->type];
      inputs = true;
      if (!t->ndim || !sample_dim(m, t->dim[0]))
        return fail(
            EXIT_COMPILE,
            "%s: input %s is fed sample by sample, so the dim of samples (the one without an extent) is its first",
            path, v->name);
    }
  return inputs ? 0 : fail(EXIT_COMPILE, "%s: no input reaches the outputs; there is nothing to train on", path);
}

Plan *emit(Module *m, EmitOptions o) {
  Plan *p = plan_create(m->arena);
  Emit emit_state = {.m = m, .p = p, .a = m->arena}, *e = &emit_state;
  e->dim = NEW_N(e->a, uint32_t, m->dim.n), e->var = NEW_N(e->a, uint32_t, m->var.n);
  map_init(&e->kernel, e->a), map_init(&e->text, e->a);
  e->keep = o.kernels != 0, e->apart = o.apart, e->bake = many_randoms(m, e->a);
  vec_push(e->a, &e->kept, 0), vec_push(e->a, &e->kept_tile, 0);
  for (int i = 0; i < SOURCES; i++) text_init(&e->source[i], e->a), emit_c_prelude(&e->source[i]);
  if (!o.apart) e->early = early_sums(m, e->a);
  e->sum = NEW_N(e->a, uint32_t, e->early.n + 1);
  emit_head(e, &o);
  emit_vars(e);
  emit_inputs(e);
  p->data = plan_str(p, takes_text(e) ? "gpt" : "none");
  for (uint32_t i = 0; i < m->output.n; i++) {
    const Output *out = &m->output.at[i];
    VarId slot = var_find(m, intern_printf(m->in, "$out.%s", out->name));
    vec_push(p->arena, &p->output,
             (PlanOutput){.name = plan_str(p, out->name), .coef = out->coef, .per_step = out->per_step,
                          .slot = slot ? e->var[slot] : 0, .dtype = DT_f64});
  }
  e->work = plan_buffer(p, "work", MEM_workspace, 0, 0, DT_u8);
  for (FnId i = 1; i < m->fn.n; i++)
    if (!m->fn.at[i]->is_body) emit_fn(e, m->fn.at[i]);
  p->buffer.at[e->work].bytes = p->memory[MEM_workspace] = e->work_bytes;
  emit_cells(e);
  for (int i = 0; i < SOURCES; i++)
    vec_push(p->arena, &p->source,
             (PlanSource){plan_str(p, arena_printf(e->a, "kernels%d.c", i + 1)), e->source[i].s,
                          (int64_t)e->source[i].n});
  if (o.kernels) *o.kernels = e->kept.at;
  if (o.tiles) *o.tiles = e->kept_tile.at;
  return p;
}

Status compile_objects(Plan *p) {
  Jit jit;
  JitSource src[SOURCES];
  JitObject out[SOURCES];
  uint32_t n = 0;
  TRY(jit_open(&jit, p->arena, 0));
  for (uint32_t i = 1; i < p->source.n && n < SOURCES; i++)
    src[n++] = (JitSource){p->source.at[i].text, (size_t)p->source.at[i].bytes};
  Status s = jit_compile(&jit, src, n, out);
  for (uint32_t i = 0; i < n && !s; i++)
    vec_push(p->arena, &p->object,
             (PlanObject){i + 1, plan_str(p, jit.target), plan_str(p, jit.cc_id ? "cc" : "?"), out[i].bytes,
                          (int64_t)out[i].n});
  jit_close(&jit);
  return s;
}
