// overlap.c -- collectives beside computation: each is started as soon as what it sends is there, and waited for before
// the first step that reads what it makes, or overwrites what it sends.
//
// A rank issues its collectives one after the other, in the order of their starts, which is the same on every rank: all
// run the same steps. So one that is waited for has all before it behind it, and a collective that sends what another one
// has made needs no wait between them. Until it is waited for nobody gets the bytes of what it sends or makes (flight):
// memory_plan and inplace look there.
//
// The update begins with the sums of gradients over ranks. They are made in the step's last microbatch instead, each as
// soon as its gradient is whole, behind the backward pass that goes on (early_sums).
//
// What lies ready long before it is needed (parameters to gather, activations for the backward pass) is not fetched at
// once, which would hold all of it at a time: at most AHEAD results wait for their first use. A sum that is made where its
// terms lie holds nothing, and starts at once. Values without dims share a block that kernels see whole: their collectives
// stay where they are and are waited for there, as all are with parallel.overlap = off.
#include "passes/group.h"
#include <string.h>

enum { AHEAD = 2 };

typedef struct {
  Groups *g;
  const Fn *f;
  uint32_t *begin, *reader;                  // by value: its readers are reader[begin[v] … begin[v + 1] - 1]
} Overlap;

static void find_readers(Overlap *o) {
  Groups *g = o->g;
  o->begin = NEW_N(g->arena, uint32_t, o->f->val.n + 2), o->reader = NEW_N(g->arena, uint32_t, g->reading.n + 1);
  for (uint32_t i = 0; i < g->reading.n; i++) o->begin[g->reading.at[i].v + 2]++;
  for (ValId v = 2; v <= o->f->val.n + 1; v++) o->begin[v] += o->begin[v - 1];
  for (uint32_t i = 0; i < g->reading.n; i++)
    o->reader[o->begin[g->reading.at[i].v + 1]++] = g->reading.at[i].group - 1;
}

// A sum that is made early has no place among the steps of the update, which find it done.
static bool is_done(const Groups *g, const Group *x) { return x->early && x->early->f == g->f; }

static ValId sent(const Overlap *o, const Group *x) { return node_in(o->f, fn_node(o->f, x->node))[0]; }
static ValId made(const Overlap *o, const Group *x) { return fn_node(o->f, x->node)->out; }

static bool has_place(const Groups *g, ValId v) { return g->stored[v] != STORED_small && g->stored[v] != STORED_slot; }
static bool stays(const Overlap *o, const Group *x) {
  return !has_place(o->g, sent(o, x)) || !has_place(o->g, made(o, x));
}

// The first step that reads v, collectives aside; all steps: none does.
static uint32_t first_reader(const Overlap *o, ValId v) {
  uint32_t first = o->g->group.n;
  for (uint32_t i = o->begin[v]; i < o->begin[v + 1]; i++)
    if (!o->g->group.at[o->reader[i]].collective) first = MIN(first, o->reader[i]);
  return first;
}

static uint32_t last_reader_before(const Overlap *o, ValId v, uint32_t step) {   // 1 + that step; 0: none
  uint32_t last = 0;
  for (uint32_t i = o->begin[v]; i < o->begin[v + 1]; i++)
    if (o->reader[i] < step) last = MAX(last, o->reader[i] + 1);
  return last;
}

static bool sums_in_place(const Overlap *o, const Group *x, uint32_t step) {
  Op op = fn_node(o->f, x->node)->op;
  return (op == OP_all_reduce || op == OP_all_max) && o->g->last[sent(o, x)] == step + 1;
}

// By step: before which one it starts, collectives; the others stay.
static uint32_t *find_starts(const Overlap *o) {
  const Groups *g = o->g;
  uint32_t *start = NEW_N(g->arena, uint32_t, g->group.n), used[AHEAD] = {0}, n = 0;
  for (uint32_t i = 0; i < g->group.n; i++) {
    const Group *x = &g->group.at[i];
    start[i] = i;
    if (!x->collective || is_done(g, x) || stays(o, x)) continue;
    ValId v = sent(o, x);
    uint32_t from = g->group_of[v];
    if (from && g->group.at[from - 1].collective) from = start[from - 1];   // it comes behind that one
    if (sums_in_place(o, x, i)) from = MAX(from, last_reader_before(o, v, i));
    else from = MAX(from, used[n % AHEAD]), used[n++ % AHEAD] = MIN(first_reader(o, made(o, x)), i + 1);
    start[i] = MIN(from, i);
  }
  return start;
}

static void renumber(Groups *g, const uint32_t *now) {     // by 1 + old number
  for (ValId v = 1; v < g->f->val.n; v++) {
    g->group_of[v] = now[g->group_of[v]];
    g->born[v] = now[g->born[v]];
    g->last[v] = 0;
  }
  for (uint32_t i = 0; i < g->reading.n; i++) {
    Reading *r = &g->reading.at[i];
    r->group = now[r->group];
    g->last[r->v] = MAX(g->last[r->v], r->group);
  }
}

static const Group *steps_now(const Groups *g) {           // as they are before they change places
  Group *was = NEW_N(g->arena, Group, g->group.n + 1);
  if (g->group.n) memcpy(was, g->group.at, g->group.n * sizeof *was);
  return was;
}

// Steps that begin or go on with a variable: 1 + the last.
static uint32_t last_write(const Groups *g, VarId var) {
  for (uint32_t i = g->group.n; i-- > 0;) {
    const Group *x = &g->group.at[i];
    if (x->var == var) return i + 1;
    for (uint32_t k = 0; k < x->root.n; k++)
      if (x->root.at[k].var == var) return i + 1;
  }
  return 0;
}

static uint8_t axes_of(const Early *e) { return fn_node(e->f, e->node)->attr.axes; }

static double bytes_of(const Module *m, const Early *e) { return (double)type_bytes(m, &m->type.at[m->var.at[e->var].type]); }

// parallel.bucket, but a small part of all, as the last bucket has no computation to hide behind; not so small that what a
// meeting itself costs counts.
static double bucket_most(const Groups *g, const Earlies *early, const uint32_t *behind) {
  enum { BUCKETS = 16, LEAST = 1 << 20 };
  double all = 0;
  for (uint32_t i = 0; i < early->n; i++) all += behind[i] ? bytes_of(g->m, &early->at[i]) : 0;
  return MIN(setting_num(g->m, "parallel.bucket", 25 << 20), MAX(all / BUCKETS, LEAST));
}

// Sums in the order in which their gradients are whole (behind[i]: 1 + the step; 0: none), and next to each other those
// of a bucket: over the same axes, and of no more than bucket_most bytes but for the last one. A bucket is ready when
// its last gradient is. order[k]: the k-th; and[k]: the one behind it is of the same bucket. Returns how many there are.
static uint32_t fill_buckets(const Groups *g, const Earlies *early, uint32_t *behind, uint32_t *order, bool *and) {
  const Module *m = g->m;
  double most = bucket_most(g, early, behind);
  uint32_t n = 0, made = 0, *ready = NEW_N(g->arena, uint32_t, early->n + 1);
  bool *taken = NEW_N(g->arena, bool, early->n + 1);
  for (uint32_t i = 0; i < early->n; i++) {  // by step; of equals the earlier
    if (!behind[i]) continue;
    uint32_t at = n++;
    for (; at && behind[ready[at - 1]] > behind[i]; at--) ready[at] = ready[at - 1];
    ready[at] = i;
  }
  for (uint32_t k = 0; k < n; k++) {
    double bytes = 0;
    uint32_t first = made, last = behind[ready[k]];
    for (uint32_t i = k; i < n && bytes < most; i++) {
      const Early *e = &early->at[ready[i]];
      if (taken[i] || axes_of(e) != axes_of(&early->at[ready[k]])) continue;
      bytes += bytes_of(m, e);
      taken[i] = true, last = behind[ready[i]], order[made++] = ready[i];
    }
    for (uint32_t i = first; i < made; i++) behind[order[i]] = last, and[i] = i + 1 < made;
  }
  return made;
}

// Puts the early sums behind the steps that complete their gradients.
static void insert(Groups *g, const Earlies *early) {
  uint32_t n = g->group.n, k = 0, *now = NEW_N(g->arena, uint32_t, n + 1);
  uint32_t *behind = NEW_N(g->arena, uint32_t, early->n + 1);
  uint32_t *head = NEW_N(g->arena, uint32_t, n + 1), *next = NEW_N(g->arena, uint32_t, early->n + 1);
  uint32_t *order = NEW_N(g->arena, uint32_t, early->n + 1), all;
  bool *and = NEW_N(g->arena, bool, early->n + 1);
  const Group *was = steps_now(g);
  for (uint32_t i = 0; i < early->n; i++) behind[i] = last_write(g, early->at[i].var);
  all = fill_buckets(g, early, behind, order, and);
  for (uint32_t i = all; i-- > 0;) next[i] = head[behind[order[i]]], head[behind[order[i]]] = i + 1;
  g->group.n = 0;
  for (uint32_t i = 1; i <= n; i++) {
    vec_push(g->arena, &g->group, was[i - 1]);
    now[i] = ++k;
    for (uint32_t e = head[i]; e; e = next[e - 1], k++) {
      const Early *sum = &early->at[order[e - 1]];
      vec_push(g->arena, &g->group, (Group){.class = LOOP_auto, .collective = true, .early = sum, .node = sum->node,
                                            .and = and[e - 1]});
    }
  }
  renumber(g, now);
}

// The update finds the sums where they have been made.
static void take(Groups *g, const Earlies *early) {
  uint8_t *is = NEW_N(g->arena, uint8_t, g->f->node.n);
  const Early **of = NEW_N(g->arena, const Early *, g->f->node.n);
  for (uint32_t i = 0; i < early->n; i++)
    if (early->at[i].f == g->f) is[early->at[i].node] = 1, of[early->at[i].node] = &early->at[i];
  for (uint32_t i = 0; i < g->group.n; i++) {
    Group *x = &g->group.at[i];
    if (!x->collective || !is[x->node]) continue;
    x->early = of[x->node];
    g->stored[fn_node(g->f, x->node)->out] = STORED_arg;
  }
}

static void reorder(Groups *g, const uint32_t *start) {
  uint32_t n = g->group.n, k = 0, *now = NEW_N(g->arena, uint32_t, n + 1), *next = NEW_N(g->arena, uint32_t, n + 1);
  uint32_t *head = NEW_N(g->arena, uint32_t, n + 1);       // collectives by start, 1 + step, in order
  const Group *was = steps_now(g);
  for (uint32_t i = n; i-- > 0;)
    if (was[i].collective) next[i + 1] = head[start[i]], head[start[i]] = i + 1;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t c = head[i]; c; c = next[c]) g->group.at[k] = was[c - 1], now[c] = ++k;
    if (!was[i].collective) g->group.at[k] = was[i], now[i + 1] = ++k;
  }
  renumber(g, now);
}

static uint32_t first_write(const Overlap *o, ValId v, uint32_t after) {         // of the variable that v is
  const Groups *g = o->g;
  VarId var = fn_read_of(o->f, v);
  for (uint32_t i = after + 1; var && i < g->group.n; i++) {
    const Group *x = &g->group.at[i];
    bool writes = x->var == var;
    for (uint32_t k = 0; k < x->root.n; k++) writes |= x->root.at[k].var == var;
    if (writes) return i;
  }
  return g->group.n;
}

static void find_waits(const Overlap *o, bool on) {
  Groups *g = o->g;
  uint32_t next = g->group.n;
  for (uint32_t i = g->group.n; i-- > 0;) {
    Group *x = &g->group.at[i];
    if (!x->collective || is_done(g, x)) continue;
    if (x->early) {                          // of a variable, complete from here on: until the end
      next = x->wait = MIN(g->group.n, next);
      continue;
    }
    ValId v = sent(o, x), r = made(o, x);
    x->wait = !on || stays(o, x) ? i + 1 : MIN(first_reader(o, r), first_write(o, v, i));
    next = x->wait = MIN(x->wait, next);
    g->flight[v] = MAX(g->flight[v], x->wait), g->flight[r] = MAX(g->flight[r], x->wait);
  }
}

static bool is_on(const Module *m) {
  const Setting *s = setting_find(m, "parallel.overlap");
  return !s || s->num != 0;
}

static bool *added_to(const Fn *f, Arena *a) {             // by variable
  bool *is = NEW_N(a, bool, f->module->var.n);
  for (NodeId i = 1; i < f->node.n; i++)
    if (fn_node(f, i)->op == OP_accumulate) is[fn_node(f, i)->attr.var] = true;
  return is;
}

Earlies early_sums(const Module *m, Arena *a) {
  Earlies all = {0};
  const Fn *micro = fn_find(m, intern(m->in, "micro")), *update = fn_find(m, intern(m->in, "update"));
  if (!is_on(m) || !micro || !update) return all;
  const bool *adds = added_to(micro, a);
  const uint32_t *touches = fn_touches(update, a), *uses = fn_uses(update, a);
  for (NodeId i = 1; i < update->node.n; i++) {
    const Node *n = fn_node(update, i);
    if (n->op != OP_all_reduce && n->op != OP_reduce_scatter) continue;
    ValId v = node_in(update, n)[0];
    VarId var = fn_read_of(update, v);
    bool spent = var && m->var.at[var].kind == VAR_grad && touches[var] == 1 && uses[v] == 1;
    if (spent && adds[var] && val_type(update, n->out)->ndim && type_count(m, val_type(update, v)))
      vec_push(a, &all, (Early){var, update, i, all.n});
  }
  return all;
}

void overlap(Groups *g, const Earlies *early) {
  Overlap o = {.g = g, .f = g->f};
  bool on = is_on(g->m), any = false, takes = early->n && early->at[0].f == g->f;
  if (takes) take(g, early);
  for (uint32_t i = 0; i < g->group.n; i++) any |= g->group.at[i].collective;
  if (any) find_readers(&o);
  if (any && on) reorder(g, find_starts(&o));
  if (early->n && !takes) insert(g, early);
  if (any || early->n) find_readers(&o), find_waits(&o, on);
}
