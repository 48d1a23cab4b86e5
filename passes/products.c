// products.c -- a contraction over named dims as one library product: C[m, n] (+)= A[m, k] · B[k, n] in a few loops.
//
// Operands are looked at through their views. Dims fall into four kinds: in A and C (m), in B and C (n), in A and B
// (k), in all three (loops). Neighbours of one kind that walk on from one to the other merge. One of each kind becomes m, n
// and k so that the library's stride conditions hold and the call is as large as possible; the others become loops.
#include "passes/group.h"
#include <string.h>

typedef enum { DIM_m, DIM_n, DIM_k, DIM_loop, DIM_KINDS } DimKind;
typedef struct { int64_t n, a, b, c; bool ragged; } Walk;              // extent and strides, in elements
typedef struct { uint32_t n; Walk at[MAX_DIMS]; } Walks;

// A view that would show something in its padding, which is 0: the products run over it.
static bool shows_padding(const Fn *f, ValId v) {
  const Node *n = f->val.at[v].def ? fn_node(f, f->val.at[v].def) : 0;
  if (!n || (n->op != OP_expand && n->op != OP_slice)) return false;
  const DimId *made = n->op == OP_expand ? n->attr.dims : n->attr.to;
  for (uint32_t i = 0; i < (n->op == OP_expand ? n->attr.ndims : n->attr.nto); i++)
    if (dim_of(f->module, made[i])->size != dim_of(f->module, made[i])->extent) return true;
  return false;
}

void locate(const Fn *f, ValId v, bool through, ValId *base, int64_t *at, int64_t stride[MAX_DIMS]) {
  const Module *m = f->module;
  const Type *t = val_type(f, v);
  Env env = {0};
  int64_t range[KERNEL_RANGES] = {0};
  Cut cut;
  for (int i = 0; i < t->ndim; i++) {
    Pos p = {0};
    p.coef[i] = 1, range[i] = dim_of(m, t->dim[i])->size;
    env_set(&env, t->dim[i], p);
  }
  ValId next;
  // blocked: this view is made in memory
  while (through && !shows_padding(f, v) && view_step(f, v, &env, range, &next, &cut) == VIEW_passed) v = next;
  const Type *u = val_type(f, v);
  int64_t walk = 1;
  *base = v, *at = 0;
  memset(stride, 0, MAX_DIMS * sizeof *stride);
  for (int i = u->ndim; i--;) {
    const Pos *p = env_find(&env, u->dim[i]);
    *at += walk * p->base;
    for (int r = 0; r < t->ndim; r++) stride[r] += walk * p->coef[r];
    walk *= type_local(m, u, (uint32_t)i);
  }
}

static bool merges(const Walk *outer, const Walk *inner) {             // outer walks on where inner ends
  if (outer->ragged || inner->ragged) return false;                    // it ends elsewhere each time
  return outer->a == inner->a * inner->n && outer->b == inner->b * inner->n && outer->c == inner->c * inner->n;
}

static void merge_walks(Walks *w) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < w->n && !again; i++)
      for (uint32_t j = 0; j < w->n && !again; j++)
        if (i != j && (w->at[i].n == 1 || merges(&w->at[i], &w->at[j]))) {
          w->at[j].n *= w->at[i].n;                                    // extent 1: its strides do not matter
          w->at[i] = w->at[--w->n];
          again = true;
        }
  }
}

// A matrix that a library addresses: one stride is 1, the other passes over a whole line.
static bool matrix(int64_t s, int64_t ns, int64_t t, int64_t nt) {
  return ((s == 1 || ns == 1) && (t >= ns || nt == 1)) || ((t == 1 || nt == 1) && (s >= nt || ns == 1));
}

// through: bit 0: x is looked at through its views, bit 1: y; else the view itself is made in memory
static bool product_as(const Fn *f, ValId x, ValId y, const DimId *dims, uint32_t ndims, const Type *out,
                       const int64_t *stride, unsigned through, PlanGemm *g, ValId base[2], int64_t at[2]) {
  const Module *m = f->module;
  const Type *tx = val_type(f, x), *ty = val_type(f, y);
  int64_t sx[MAX_DIMS], sy[MAX_DIMS], sc[MAX_DIMS], walk = 1;
  Walks kind[DIM_KINDS] = {0};
  locate(f, x, through & 1, &base[0], &at[0], sx), locate(f, y, through & 2, &base[1], &at[1], sy);
  for (int i = out->ndim; i--; walk *= type_local(m, out, (uint32_t)i)) sc[i] = stride ? stride[i] : walk;
  for (uint32_t i = 0; i < ndims; i++) {
    int px = type_pos(tx, dims[i]), py = type_pos(ty, dims[i]);
    Walks *k = &kind[DIM_k];
    k->at[k->n++] = (Walk){type_local(m, tx, (uint32_t)px), sx[px], sy[py], 0, dim_of(m, dims[i])->ragged};
  }
  for (int i = 0; i < out->ndim; i++) {
    int px = type_pos(tx, out->dim[i]), py = type_pos(ty, out->dim[i]);
    Walks *k = &kind[px >= 0 && py >= 0 ? DIM_loop : px >= 0 ? DIM_m : DIM_n];
    k->at[k->n++] = (Walk){type_local(m, out, (uint32_t)i), px >= 0 ? sx[px] : 0, py >= 0 ? sy[py] : 0, sc[i],
                           dim_of(m, out->dim[i])->ragged};
  }
  *g = (PlanGemm){.a = tx->dtype, .b = ty->dtype, .c = out->dtype, .alpha = 1};
  for (int i = 0; i < DIM_KINDS; i++)
    for (uint32_t j = 0; j < kind[i].n; j++)
      if (!kind[i].at[j].n) return true;                               // nothing to multiply: m, n and k stay 0
  for (int i = 0; i < DIM_KINDS; i++) merge_walks(&kind[i]);
  for (int i = 0; i < 3; i++)
    if (!kind[i].n) kind[i].at[kind[i].n++] = (Walk){.n = 1};
  int best[3] = {-1, -1, -1};
  double size = -1;
  for (uint32_t i = 0; i < kind[DIM_m].n; i++)
    for (uint32_t j = 0; j < kind[DIM_n].n; j++)
      for (uint32_t k = 0; k < kind[DIM_k].n; k++) {
        const Walk *wm = &kind[DIM_m].at[i], *wn = &kind[DIM_n].at[j], *wk = &kind[DIM_k].at[k];
        bool ok = matrix(wm->a, wm->n, wk->a, wk->n) && matrix(wk->b, wk->n, wn->b, wn->n) &&
                  matrix(wm->c, wm->n, wn->c, wn->n);
        double s = (double)wm->n * (double)wn->n * (double)wk->n;
        if (ok && s > size) size = s, best[DIM_m] = (int)i, best[DIM_n] = (int)j, best[DIM_k] = (int)k;
      }
  if (size < 0) return false;
  const Walk *wm = &kind[DIM_m].at[best[DIM_m]], *wn = &kind[DIM_n].at[best[DIM_n]], *wk = &kind[DIM_k].at[best[DIM_k]];
  *g = (PlanGemm){.a = tx->dtype, .b = ty->dtype, .c = out->dtype, .m = wm->n, .n = wn->n, .k = wk->n,
                  .am = wm->a, .ak = wk->a, .bk = wk->b, .bn = wn->b, .cm = wm->c, .cn = wn->c, .alpha = 1,
                  .ragged = wm->ragged ? RAGGED_m : wk->ragged ? RAGGED_k : wn->ragged ? RAGGED_n : RAGGED_none};
  for (int i = 0; i < DIM_KINDS; i++)
    for (uint32_t j = 0; j < kind[i].n; j++) {
      const Walk *w = &kind[i].at[j];
      if (i < 3 && (int)j == best[i]) continue;
      if (w->n == 1) continue;
      if (g->nloop == GEMM_LOOPS) return false;
      g->loop[g->nloop++] = (GemmLoop){w->n, w->a, w->b, w->c};
    }
  return true;
}

bool product_of(const Fn *f, ValId x, ValId y, const DimId *dims, uint32_t ndims, const Type *out,
                const int64_t *stride, PlanGemm *g, ValId base[2], int64_t at[2]) {
  static const unsigned through[] = {3, 2, 1, 0};
  for (size_t i = 0; i < COUNT(through); i++)
    if (product_as(f, x, y, dims, ndims, out, stride, through[i], g, base, at)) return true;
  return false;
}
