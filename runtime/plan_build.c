// plan_build.c -- makes a plan: tables that grow, equal rows that share an id, instructions.
#include "runtime/plan.h"

Plan *plan_create(Arena *a) {
  Plan *p = NEW(a, Plan);
  p->arena = a, p->in = intern_create(a);
  p->tool = p->target = p->model = p->data = intern(p->in, "none");
  map_init(&p->line_by, a), map_init(&p->gemm_by, a), map_init(&p->coll_by, a), map_init(&p->slot_by, a), map_init(&p->fn_by, a);
  vec_push(a, &p->dim, (PlanDim){.name = ""});             // row 0 of each table is no row
  vec_push(a, &p->line, (PlanLine){.path = "", .what = ""});
  vec_push(a, &p->buffer, (PlanBuffer){.name = ""});
  vec_push(a, &p->var, (PlanVar){.name = ""});
  vec_push(a, &p->input, (PlanInput){.name = ""});
  vec_push(a, &p->kernel, (PlanKernel){.symbol = "", .class = ""});
  vec_push(a, &p->gemm, (PlanGemm){.alpha = 0});
  vec_push(a, &p->coll, (PlanColl){.inner = 0});
  vec_push(a, &p->event, (PlanEvent){.name = ""});
  vec_push(a, &p->fn, (PlanFn){.name = ""});
  vec_push(a, &p->source, (PlanSource){.name = ""});
  vec_push(a, &p->object, (PlanObject){.target = ""});
  return p;
}

Str plan_str(Plan *p, const char *s) { return intern(p->in, s); }

uint32_t plan_dim(Plan *p, PlanDim d) {
  d.name = intern(p->in, d.name);
  vec_push(p->arena, &p->dim, d);
  return p->dim.n - 1;
}

uint32_t plan_line(Plan *p, const char *path, uint32_t line, uint32_t col, const char *what) {
  PlanLine row = {intern(p->in, path), line, col, intern(p->in, what)};
  uint64_t key = hash_mix(hash_mix(key_of(row.path), (uint64_t)line << 32 | col), key_of(row.what));
  for (uint64_t *at; (at = map_get(&p->line_by, key)); key = hash_mix(key, 1)) {
    const PlanLine *had = &p->line.at[*at];
    if (had->path == row.path && had->what == row.what && had->line == line && had->col == col)
      return (uint32_t)*at;
  }
  map_put(&p->line_by, key, p->line.n);
  vec_push(p->arena, &p->line, row);
  return p->line.n - 1;
}

uint32_t plan_buffer(Plan *p, const char *name, PlanMem mem, int64_t at, int64_t bytes, DType t) {
  if (at < 0) at = (p->memory[mem] + 63) / 64 * 64;
  p->memory[mem] = MAX(p->memory[mem], at + bytes);
  vec_push(p->arena, &p->buffer, (PlanBuffer){.name = intern(p->in, name), .mem = mem, .at = at, .bytes = bytes, .dtype = t});
  return p->buffer.n - 1;
}

uint32_t plan_buffer_part(Plan *p, const char *name, uint32_t of, uint32_t whole, uint32_t part, int64_t bytes) {
  PlanBuffer b = p->buffer.at[of];
  b.name = intern(p->in, name), b.of = of, b.whole = whole, b.part = part, b.bytes = bytes;
  vec_push(p->arena, &p->buffer, b);
  return p->buffer.n - 1;
}

uint32_t plan_find_slot(const Plan *p, const char *name) {
  Str s = intern_find(p->in, name);          // threads look things up at the same time
  const uint64_t *at = s ? map_get(&p->slot_by, key_of(s)) : 0;
  return at ? (uint32_t)*at : 0;
}

uint32_t plan_slot(Plan *p, const char *name, DType t) {
  uint32_t had = plan_find_slot(p, name);
  if (had) return had;
  if (!p->memory[MEM_scalars]) plan_buffer(p, "scalars", MEM_scalars, 0, SCALAR_BLOCK, DT_u8);
  int64_t at = p->slot.n ? p->slot.at[p->slot.n - 1].at + 8 : 0;
  if (at + 8 > SCALAR_BLOCK) bug("plan: the scalar block has no room for '%s'", name);
  Str s = intern(p->in, name);
  vec_push(p->arena, &p->slot, (PlanSlot){s, t, at});
  map_put(&p->slot_by, key_of(s), p->slot.n);
  return p->slot.n;
}

PlanArg plan_slot_arg(Plan *p, uint32_t slot) {
  for (uint32_t b = 1; b < p->buffer.n; b++)
    if (p->buffer.at[b].mem == MEM_scalars) return (PlanArg){b, p->slot.at[slot - 1].at};
  bug("plan: no scalar block");
}

static uint64_t gemm_key(const PlanGemm *g) {
  int64_t w[] = {g->lib, g->a,  g->b,  g->c,  g->m,  g->n,  g->k,     g->am,
                 g->ak, g->bk, g->bn, g->cm, g->cn, g->nloop, g->accumulate, g->ragged};
  uint64_t h = hash_bytes(w, sizeof w, 0);
  h = hash_bytes(g->loop, g->nloop * sizeof *g->loop, h);
  return hash_bytes(&g->alpha, sizeof g->alpha, h);
}

static bool gemm_same(const PlanGemm *x, const PlanGemm *y) {
  for (uint32_t i = 0; i < x->nloop && x->nloop == y->nloop; i++) {
    const GemmLoop *u = &x->loop[i], *v = &y->loop[i];
    if (u->n != v->n || u->a != v->a || u->b != v->b || u->c != v->c) return false;
  }
  return x->lib == y->lib && x->nloop == y->nloop && x->a == y->a && x->b == y->b && x->c == y->c && x->m == y->m &&
         x->n == y->n && x->k == y->k && x->am == y->am && x->ak == y->ak && x->bk == y->bk &&
         x->bn == y->bn && x->cm == y->cm && x->cn == y->cn && x->alpha == y->alpha &&
         x->accumulate == y->accumulate && x->ragged == y->ragged;
}

uint32_t plan_gemm(Plan *p, PlanGemm g) {
  uint64_t key = gemm_key(&g);
  for (uint64_t *at; (at = map_get(&p->gemm_by, key)); key = hash_mix(key, 1))
    if (gemm_same(&p->gemm.at[*at], &g)) return (uint32_t)*at;
  map_put(&p->gemm_by, key, p->gemm.n);
  vec_push(p->arena, &p->gemm, g);
  return p->gemm.n - 1;
}

uint32_t plan_coll(Plan *p, PlanColl c) {
  int64_t field[] = {(int64_t)c.kind, (int64_t)c.dtype, c.axes, c.outer, c.gather, c.mid, c.scatter, c.inner, c.turned, (int64_t)c.sent};
  uint64_t key = hash_bytes(field, sizeof field, 0);
  const uint64_t *at = map_get(&p->coll_by, key);
  if (at) return (uint32_t)*at;
  map_put(&p->coll_by, key, p->coll.n);
  vec_push(p->arena, &p->coll, c);
  return p->coll.n - 1;
}

uint32_t plan_event(Plan *p, const char *name, uint32_t initial) {
  vec_push(p->arena, &p->event, (PlanEvent){intern(p->in, name), initial});
  return p->event.n - 1;
}

uint32_t plan_fn(Plan *p, const char *name) {
  Str s = intern(p->in, name);
  if (map_get(&p->fn_by, key_of(s))) bug("plan: two functions '%s'", name);
  map_put(&p->fn_by, key_of(s), p->fn.n);
  vec_push(p->arena, &p->fn, (PlanFn){.name = s});
  return p->fn.n - 1;
}

// ---- instructions -------------------------------------------------------------------------------------------------
static void ins_add(PlanAt at, PlanOp op, uint32_t what, int64_t bytes, const PlanArg *arg, uint32_t narg) {
  Plan *p = at.plan;
  PlanIns ins = {op, at.stream, at.when, what, at.line, p->arg.n, narg, bytes, false};
  for (uint32_t i = 0; i < narg; i++) vec_push(p->arena, &p->arg, arg[i]);
  vec_push(p->arena, &p->fn.at[at.fn].ins, ins);
}

void ins_kernel(PlanAt at, uint32_t kernel, const PlanArg *arg, uint32_t narg) {
  ins_add(at, PI_kernel, kernel, 0, arg, narg);
}
void ins_gemm(PlanAt at, uint32_t gemm, PlanArg c, PlanArg a, PlanArg b) {
  ins_add(at, PI_gemm, gemm, 0, (PlanArg[]){c, a, b}, 3);
}
void ins_copy(PlanAt at, PlanArg to, PlanArg from, int64_t bytes) {
  ins_add(at, PI_copy, 0, bytes, (PlanArg[]){to, from}, 2);
}
void ins_zero(PlanAt at, PlanArg to, int64_t bytes) { ins_add(at, PI_zero, 0, bytes, &to, 1); }
void ins_record(PlanAt at, uint32_t event) { ins_add(at, PI_record, event, 0, 0, 0); }
void ins_wait(PlanAt at, uint32_t event) { ins_add(at, PI_wait, event, 0, 0, 0); }
void ins_load(PlanAt at, uint32_t input, PlanArg to) { ins_add(at, PI_load, input, 0, &to, 1); }

void ins_coll(PlanAt at, uint32_t coll, PlanArg to, PlanArg from) {
  ins_add(at, PI_coll, coll, 0, (PlanArg[]){to, from}, 2);
}

void ins_and(PlanAt at) {
  PlanFn *f = &at.plan->fn.at[at.fn];
  f->ins.at[f->ins.n - 1].and = true;
}

// ---- reading ------------------------------------------------------------------------------------------------------
uint32_t plan_find_fn(const Plan *p, const char *name) {
  Str s = intern_find(p->in, name);
  const uint64_t *at = s ? map_get(&p->fn_by, key_of(s)) : 0;
  return at ? (uint32_t)*at : 0;
}

double plan_num(const PlanCall *c, const char *name, double otherwise) {
  for (uint32_t i = 0; i < c->num.n; i++)
    if (!strcmp(c->num.at[i].name, name)) return c->num.at[i].value;
  return otherwise;
}

Storage plan_storage(const Plan *p, const PlanVar *v) {
  Storage s = {.name = v->name, .dtype = v->dtype, .ndim = (int)v->ndim};
  for (uint32_t i = 0; i < v->ndim; i++) {
    const PlanDim *d = plan_whole(p, v->dim[i]);
    s.dim[i] = (StorageDim){.name = d->name, .extent = d->extent, .size = d->size, .axis = v->axis[i], .chunks = d->chunks};
  }
  return s;
}

const PlanDim *plan_whole(const Plan *p, uint32_t dim) {
  const PlanDim *d = &p->dim.at[dim];
  return d->whole ? &p->dim.at[d->whole] : d;
}

int64_t plan_coord(const Plan *p, int64_t rank, uint32_t axis) {
  for (uint32_t i = p->axis.n; i-- > axis + 1;) rank /= p->axis.at[i].size;
  return rank % p->axis.at[axis].size;
}

void plan_cut(const Plan *p, const PlanDim *d, int64_t rank, int64_t *first, int64_t *n) {
  int64_t place = 0;
  for (uint32_t k = 0; k < d->ncut; k++) place = place * p->axis.at[d->cut[k]].size + plan_coord(p, rank, d->cut[k]);
  *first = place * d->size, *n = d->size;
}

int64_t plan_part_at(const Plan *p, const PlanBuffer *b, int64_t rank) {
  int64_t first, n, before = 0;
  if (!b->of) return 0;
  plan_cut(p, &p->dim.at[b->part], rank, &first, &n);
  if (p->dim.at[b->whole].whole) plan_cut(p, &p->dim.at[b->whole], rank, &before, &(int64_t){0});
  return (first - before) / n * b->bytes;
}

Storage plan_part(const Plan *p, const PlanVar *v, int64_t rank) {
  Storage s = plan_storage(p, v);
  for (uint32_t i = 0; i < v->ndim; i++) {
    const PlanDim *d = &p->dim.at[v->dim[i]];
    if (d->whole) plan_cut(p, d, rank, &s.dim[i].first, &s.dim[i].part);
  }
  return s;
}

bool plan_owns(const Plan *p, const PlanVar *v, int64_t rank, bool *added) {
  uint32_t cut = 0;
  for (uint32_t i = 0; i < v->ndim; i++)
    for (uint32_t k = 0; k < p->dim.at[v->dim[i]].ncut; k++) cut |= 1u << p->dim.at[v->dim[i]].cut[k];
  *added = false;
  for (uint32_t a = 0; a < p->axis.n; a++) {
    if (cut >> a & 1 || !plan_coord(p, rank, a)) continue;
    if (!(v->partial >> a & 1)) return false;
    *added = true;
  }
  return true;
}

int64_t plan_count(const Plan *p, const uint32_t *dim, uint32_t ndim, bool padded) {
  int64_t n = 1;
  for (uint32_t i = 0; i < ndim; i++) n *= padded ? p->dim.at[dim[i]].size : p->dim.at[dim[i]].extent;
  return n;
}

int64_t plan_ranks(const Plan *p) {
  int64_t n = 1;
  for (uint32_t i = 0; i < p->axis.n; i++) n *= p->axis.at[i].size;
  return n;
}

int64_t coll_members(const Plan *p, const PlanColl *c) {
  int64_t n = 1;
  for (uint32_t i = 0; i < p->axis.n; i++)
    if (c->axes >> i & 1) n *= p->axis.at[i].size;
  return n;
}

int64_t coll_count(const Plan *p, const PlanColl *c, bool result) {
  bool many = c->kind == COLL_all_to_all || c->kind == (result ? COLL_all_gather : COLL_reduce_scatter);
  return c->outer * c->gather * c->mid * c->scatter * c->inner * (many ? coll_members(p, c) : 1);
}

bool ins_begins(const PlanFn *f, uint32_t i) { return !i || !f->ins.at[i - 1].and; }

int64_t gemm_flops(const PlanGemm *g) {
  int64_t n = 2 * g->m * g->n * g->k;
  for (uint32_t i = 0; i < g->nloop; i++) n *= g->loop[i].n;
  return n;
}

const char *plan_place(const Plan *p, Arena *a, uint32_t line) {
  const PlanLine *l = &p->line.at[line];
  return line ? arena_printf(a, "%s:%u:%u", l->path, l->line, l->col) : "?";
}
