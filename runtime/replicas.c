// replicas.c -- see replicas.h.
#include "runtime/replicas.h"
#include <string.h>

// A rank's notes: these, a hash for each variable, the bits of each scalar.
enum { NOTE_step = 1, NOTE_update, NOTE_scale, NOTE_vars = 16 };
static const struct { int note; const char *name; } counts[] = {
  {NOTE_step, "the count of steps"}, {NOTE_update, "the count of updates"}, {NOTE_scale, "the loss scale"}};

static const void *var_at(const Exec *x, uint32_t v) {
  return dev_at(x->dev, (PlanArg){x->plan->var.at[v].buffer, 0});
}
static size_t var_bytes(const Plan *p, uint32_t v) { return (size_t)p->buffer.at[p->var.at[v].buffer].bytes; }

// Gradients are parts of sums, and between two steps nobody's.
static bool replicated(const PlanVar *v) { return v->kind != PVAR_grad && !v->partial; }
static bool same_everywhere(const PlanSlot *s) { return strncmp(s->name, "$at:", 4) != 0; }   // not a rank's own place

static void write_notes(const Exec *x, uint64_t *note) {
  const Plan *p = x->plan;
  note[NOTE_step] = (uint64_t)x->step, note[NOTE_update] = (uint64_t)x->update;
  memcpy(&note[NOTE_scale], &x->scale.value, sizeof *note);
  for (uint32_t v = 1; v < p->var.n; v++)
    if (replicated(&p->var.at[v])) note[NOTE_vars + v] = hash_bytes(var_at(x, v), var_bytes(p, v), 0);
  for (uint32_t i = 0; i < p->slot.n; i++) memcpy(&note[NOTE_vars + p->var.n + i], dev_slot(x->dev, i + 1), sizeof *note);
}

static bool same_part(const Plan *p, const PlanVar *v, int64_t r, int64_t s) {
  bool same = true;
  for (uint32_t i = 0; i < v->ndim && same; i++) {
    int64_t first[2], n[2];
    plan_cut(p, &p->dim.at[v->dim[i]], r, &first[0], &n[0]), plan_cut(p, &p->dim.at[v->dim[i]], s, &first[1], &n[1]);
    same = first[0] == first[1] && n[0] == n[1];
  }
  return same;
}

// The first entry that differs, in words. What notes_of gave of the two is lost.
static Str difference(const Exec *x, Comm *c, Arena *a, uint32_t var, int64_t r, int64_t s) {
  const PlanVar *v = &x->plan->var.at[var];
  const void *there[2];
  for (int i = 0; i < 2; i++)
    if (comm_fetch(c, i ? s : r, var_at(x, var), var_bytes(x->plan, var), &there[i])) return "and is lost";
  const char *at[2] = {there[0], there[1]};
  size_t width = dtype_bytes(v->dtype), n = var_bytes(x->plan, var) / width, count = 0, first = 0;
  for (size_t i = n; i-- > 0;)
    if (memcmp(at[0] + i * width, at[1] + i * width, width)) first = i, count++;
  return arena_printf(a, "%zu of %zu stored entries differ; entry %zu is %.9g, not %.9g", count, n, first,
                      dtype_load(v->dtype, at[1] + first * width), dtype_load(v->dtype, at[0] + first * width));
}

// What rank s has otherwise than rank r, which note i is of; 0: nothing.
static Str compare(const Exec *x, const Notes *n, Arena *a, int64_t s, const uint64_t *there) {
  const Plan *p = x->plan;
  for (uint32_t v = 1; v < p->var.n; v++) {
    const PlanVar *var = &p->var.at[v];
    const uint64_t *first;
    int64_t r = 0;
    while (r < s && !same_part(p, var, r, s)) r++;
    if (r == s || !replicated(var) || notes_of(n, r, &first) || first[NOTE_vars + v] == there[NOTE_vars + v]) continue;
    return arena_printf(a, "rank %lld has another '%s' than rank %lld, which holds the same of it (%s): %s", (long long)s,
                        var->name, (long long)r, plan_place(p, a, var->line), difference(x, n->comm, a, v, r, s));
  }
  for (uint32_t i = 0; i < p->slot.n; i++)
    if (same_everywhere(&p->slot.at[i]) && n->mine[NOTE_vars + p->var.n + i] != there[NOTE_vars + p->var.n + i])
      return arena_printf(a, "rank %lld has another scalar '%s' than rank 0", (long long)s, p->slot.at[i].name);
  for (size_t i = 0; i < COUNT(counts); i++)
    if (n->mine[counts[i].note] != there[counts[i].note])
      return arena_printf(a, "rank %lld has %s otherwise than rank 0", (long long)s, counts[i].name);
  return 0;
}

Status replicas_check(const Exec *x, Notes *n) {
  Arena *a = arena_create();
  Str said = 0;
  write_notes(x, n->mine);
  Status s = notes_hold(n);
  for (int64_t r = 1; r < comm_ranks(n->comm) && !comm_rank(n->comm) && !said && !s; r++) {
    const uint64_t *there;
    s = notes_of(n, r, &there);
    if (!s) said = compare(x, n, a, r, there);
  }
  int64_t differs = said != 0;
  if (!s) s = notes_release(n);
  if (!s) s = comm_agree(n->comm, &differs);
  if (!s && said) fail(EXIT_INTERNAL, "after step %lld: %s", (long long)x->step - 1, said);
  arena_destroy(a);
  return s ? s : differs ? EXIT_INTERNAL : 0;
}
