// state.c -- see state.h.
#include "runtime/state.h"
#include "runtime/init.h"
#include <math.h>
#include <stdatomic.h>

static void *var_at(const State *s, uint32_t var) {
  return dev_at(s->dev, (PlanArg){s->plan->var.at[var].buffer, 0});
}

// How rank r has a variable; a copy, gradient or moment is described as its parameter and has its own format.
static Storage storage_at(const State *s, uint32_t var, int64_t rank) {
  const PlanVar *v = &s->plan->var.at[var];
  return plan_part(s->plan, v, rank);
}

static void view_add(Arena *a, State *s, View view, uint32_t var) {
  const Plan *p = s->plan;
  const PlanVar *v = &p->var.at[var], *param = v->kind == PVAR_param ? v : &p->var.at[v->of];
  Storage storage = plan_storage(p, param);
  Pieces pieces = {0};
  const char *why = storage_pieces(a, &storage, &pieces), *kind = strrchr(v->name, ':');
  if (why) bug("%s: %s", v->name, why);
  for (uint32_t i = 0; i < pieces.n; i++) {
    const Piece *q = &pieces.at[i];
    Str name = view == VIEW_moments ? arena_printf(a, "%s.%s", q->name, kind ? kind + 1 : "moment")
                                    : arena_printf(a, "%s", q->name);
    int64_t *shape = NEW_N(a, int64_t, q->ndim + 1);
    memcpy(shape, q->shape, sizeof *shape * (size_t)q->ndim);
    Tensor t = {.name = name,
                .dtype = v->dtype == DT_f64 ? DT_f64 : DT_f32,
                .ndim = q->ndim,
                .shape = shape,
                .count = q->count};
    map_put(&s->by_name, key_of(name), (uint64_t)view << 32 | s->view[view].tensor.n);
    vec_push(a, &s->view[view].tensor, t);
    vec_push(a, &s->view[view].stored, (Stored){var, *q});
  }
}

void state_init(Arena *a, const Plan *p, Dev *d, State *s) {
  *s = (State){.plan = p, .dev = d, .loss_scale = 1};
  map_init(&s->by_name, a);
  for (uint32_t i = 1; i < p->var.n; i++) {
    PlanVarKind k = p->var.at[i].kind;
    if (k == PVAR_param) view_add(a, s, VIEW_params, i);
    if (k == PVAR_moment) view_add(a, s, VIEW_moments, i);
    if (k == PVAR_grad) view_add(a, s, VIEW_grads, i);
  }
}

static void piece_add(const Piece *p, const Storage *s, const void *at, int64_t first, int64_t n, DType t, void *dst) {
  enum { SOME = 512 };
  _Alignas(8) char room[SOME * 8];
  for (int64_t i = 0; i < n; i += SOME) {
    int64_t some = MIN(SOME, n - i);
    memset(room, 0, sizeof room);            // what is not of this part stays
    piece_get(p, s, at, first + i, some, t, room);
    char *to = (char *)dst + (size_t)i * dtype_bytes(t);
    if (t == DT_f64) for (int64_t k = 0; k < some; k++) ((double *)(void *)to)[k] += ((double *)(void *)room)[k];
    else for (int64_t k = 0; k < some; k++) ((float *)(void *)to)[k] += ((float *)(void *)room)[k];
  }
}

// Tensors of files are F64 or F32.
static void divide(DType t, void *dst, int64_t n, double by) {
  if (t == DT_f64) for (int64_t i = 0; i < n; i++) ((double *)dst)[i] /= by;
  else for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = (float)((double)((float *)dst)[i] / by);
}

static double sum_of_squares(DType t, const void *at, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = t == DT_f64 ? ((const double *)at)[i] : (double)((const float *)at)[i];
    sum += x * x;
  }
  return sum;
}

static Status state_get(void *user, const Tensor *t, int64_t first, int64_t n, void *dst) {
  State *s = user;
  const uint64_t *at = map_get(&s->by_name, key_of(t->name));
  if (!at) bug("state: no tensor %s", t->name);
  const Stored *st = &s->view[*at >> 32].stored.at[*at & UINT32_MAX];
  Comm *comm = dev_comm(s->dev);
  for (int64_t r = 0; r < comm_ranks(comm); r++) {         // each part from the first rank that has it
    Storage storage = storage_at(s, st->var, r);
    bool added;
    if (!plan_owns(s->plan, &s->plan->var.at[st->var], r, &added)) continue;
    const void *there;
    const PlanBuffer *b = &s->plan->buffer.at[s->plan->var.at[st->var].buffer];
    uint32_t whole = b->of ? b->of : s->plan->var.at[st->var].buffer;  // a part lies elsewhere on another rank
    size_t bytes = (size_t)s->plan->buffer.at[whole].bytes;
    TRY(comm_fetch(comm, r, dev_at(s->dev, (PlanArg){whole, 0}), bytes, &there));
    there = (const char *)there + plan_part_at(s->plan, b, r);
    if (!added) piece_get(&st->piece, &storage, there, first, n, t->dtype, dst);
    else piece_add(&st->piece, &storage, there, first, n, t->dtype, dst);
  }
  if (*at >> 32 == VIEW_grads && s->loss_scale != 1) divide(t->dtype, dst, n, s->loss_scale);
  return 0;
}

TensorSource state_source(State *s) { return (TensorSource){s, state_get}; }

Status state_write(State *s, View v, const char *path) {
  Arena *a = arena_create();
  TensorSource from = state_source(s);
  Status e = safetensors_write(a, path, s->view[v].tensor.at, s->view[v].tensor.n, 0, 0, &from);
  arena_destroy(a);
  return e;
}

Status state_norms(State *s, View v, double *norm) {
  enum { SOME = 4096 };
  double room[SOME];
  for (uint32_t i = 0; i < s->view[v].tensor.n; i++) {
    const Tensor *t = &s->view[v].tensor.at[i];
    double sum = 0;
    for (int64_t first = 0; first < t->count; first += SOME) {
      int64_t n = MIN(SOME, t->count - first);
      TRY(state_get(s, t, first, n, room));
      sum += sum_of_squares(t->dtype, room, n);
    }
    norm[i] = sqrt(sum);
  }
  return 0;
}

void state_draw(State *s) {
  const Plan *p = s->plan;
  for (uint32_t i = 1; i < p->var.n; i++) {
    const PlanVar *v = &p->var.at[i];
    Storage storage = storage_at(s, i, comm_rank(dev_comm(s->dev)));
    if (v->kind == PVAR_param)
      init_values(dev_work(s->dev), &storage, v->init, v->a, v->b, p->seed, var_at(s, i));
  }
}

// ---- loading -----------------------------------------------------------------------------------------------------
typedef struct {
  State *s;
  View view;
  const Safetensors *file;
  const Tensor **from;                       // beside view.tensor
  _Atomic Status failed;
} Load;

static const Tensor *find(Arena *a, const Safetensors *file, const char *name, bool strict) {
  const Tensor *t = safetensors_find(file, name);
  Str alias;
  for (int i = 1; !t && !strict && (alias = tensor_alias(a, name, i)); i++) t = safetensors_find(file, alias);
  return t;
}

static Status match(Arena *a, Load *l, bool strict, bool *used) {
  const Tensors *v = &l->s->view[l->view];
  for (uint32_t i = 0; i < v->tensor.n; i++) {
    const Stored *st = &v->stored.at[i];
    const Tensor *t = l->from[i] = find(a, l->file, v->tensor.at[i].name, strict);
    if (!t) return fail(EXIT_INPUT, "%s: the tensor %s is missing", l->file->path, v->tensor.at[i].name);
    Storage storage = plan_storage(l->s->plan, &l->s->plan->var.at[st->var]);
    if (l->view == VIEW_moments) storage.name = l->s->plan->var.at[l->s->plan->var.at[st->var].of].name;
    if (!piece_fits(&storage, &st->piece, t->ndim, t->shape))
      return fail(EXIT_INPUT, "error MT0263: %s",
                  piece_mismatch(a, &storage, &st->piece, l->file->path, t->ndim, t->shape));
    if (!dtype_is_float(t->dtype))
      return fail(EXIT_INPUT, "%s: the tensor %s is %s, a float is needed", l->file->path, t->name,
                  t->format);
    used[t - l->file->tensor.at] = true;
  }
  return 0;
}

// Do two tensors of the file hold the same values?
static Status same_values(const Safetensors *file, const Tensor *x, const Tensor *y, bool *same) {
  enum { CHUNK = 4096 };
  double a[CHUNK], b[CHUNK];
  *same = x->count == y->count && dtype_is_float(x->dtype) && dtype_is_float(y->dtype);
  for (int64_t i = 0; *same && i < x->count; i += CHUNK) {
    int64_t n = MIN(CHUNK, x->count - i);
    TRY(tensor_read(file, x, i, n, DT_f64, a));
    TRY(tensor_read(file, y, i, n, DT_f64, b));
    *same = !memcmp(a, b, (size_t)n * sizeof *a);
  }
  return 0;
}

// Tensors of the file that nobody asked for: buffers and copies of tied tensors are passed over.
static Status leftover(Arena *a, const Safetensors *file, const bool *used, bool strict) {
  Text names;
  text_init(&names, a);
  int unknown = 0;
  for (uint32_t i = 0; i < file->tensor.n; i++) {
    const Tensor *t = &file->tensor.at[i], *of;
    if (used[i] || (!strict && tensor_ignored(t->name))) continue;
    bool tied = false;
    Str name;
    for (int k = 0; !tied && !strict && (name = tensor_tied(t->name, k)); k++)
      if ((of = find(a, file, name, false))) TRY(same_values(file, t, of, &tied));
    if (tied) continue;
    if (unknown++ < 5) text_printf(&names, "%s%s", unknown > 1 ? ", " : "", t->name);
  }
  if (!unknown) return 0;
  return fail(EXIT_INPUT, "%s: %d tensor%s the model does not have: %s%s", file->path, unknown,
              unknown == 1 ? "" : "s", names.s, unknown > 5 ? ", …" : "");
}

static void load_task(void *with, int64_t lo, int64_t hi, int worker) {
  enum { CHUNK = 1 << 15 };
  Load *l = with;
  const Tensors *v = &l->s->view[l->view];
  _Alignas(8) char room[CHUNK];
  (void)worker;
  for (int64_t i = lo; i < hi; i++) {
    const Stored *st = &v->stored.at[i];
    DType t = l->s->plan->var.at[st->var].dtype;
    Storage storage = storage_at(l->s, st->var, comm_rank(dev_comm(l->s->dev)));
    int64_t step = CHUNK / (int64_t)dtype_bytes(t);
    for (int64_t at = 0; at < st->piece.count && !l->failed; at += step) {
      int64_t n = MIN(step, st->piece.count - at);
      Status e = tensor_read(l->file, l->from[i], at, n, t, room);
      if (e) l->failed = e;
      else piece_put(&st->piece, &storage, var_at(l->s, st->var), at, n, t, room);
    }
  }
}

Status state_load(State *s, View view, const Safetensors *file, bool strict) {
  Arena *a = arena_create();
  uint32_t n = s->view[view].tensor.n;
  Load l = {.s = s, .view = view, .file = file, .from = NEW_N(a, const Tensor *, n + 1)};
  bool *used = NEW_N(a, bool, file->tensor.n + 1);
  Status e = match(a, &l, strict, used);
  if (!e) e = leftover(a, file, used, strict);
  if (!e) work_run(dev_work(s->dev), load_task, &l, n, 1), e = l.failed;
  arena_destroy(a);
  return e;
}
