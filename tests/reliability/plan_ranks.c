// plan_ranks.c -- what must hold between ranks, broken in plans of meshes, at each collective and each variable: the verifier
// refuses it, and says why.
//
// usage: plan_ranks PLAN…
#include "runtime/plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static char **plans;
static int nplans;

static void refused(const Plan *p, const char *what, const char *words) {
  Arena *a = arena_create();
  const char *why = plan_verify(p, a), *at = 0;
  for (const char *w = words; why && !at && *w; w += strcspn(w, "|"), w += *w == '|')
    at = strstr(why, arena_strndup(a, w, strcspn(w, "|")));
  if (!at) fail_msg("%s: wanted '%s', got '%s'", what, words, why ? why : "nothing wrong");
  arena_destroy(a);
}

#define BREAK(what, words, place, value) do { \
    __typeof__(place) was_ = place; \
    place = value; \
    refused(p, what, words); \
    place = was_; \
  } while (0)

// words: what may be said, one of them; `|` between
static uint32_t collectives(Plan *p) {
  uint32_t n = 0;
  for (uint32_t f = 1; f < p->fn.n; f++)
    for (uint32_t i = 0; i < p->fn.at[f].ins.n; i++) {
      PlanIns *in = &p->fn.at[f].ins.at[i];
      if (in->op != PI_coll) continue;
      PlanColl *x = &p->coll.at[in->what];
      PlanArg *to = &p->arg.at[in->arg];
      n++;
      // ranks could come to it before or behind another one of the same group
      BREAK("on another stream", "the stream comm is for collectives", in->stream, STREAM_compute);
      BREAK("axes of no mesh", "is not right", x->axes, (uint8_t)(1u << 7));
      BREAK("without a group", "is not right", x->axes, 0);
      BREAK("more than there is", "is not inside buffer|is not right", x->inner, x->inner + (INT64_C(1) << 40));
      BREAK("outside", "is not inside buffer|is not of its meeting", to->at, p->buffer.at[to->buffer].bytes + 64);
      BREAK("of no kind of number", "is not right", x->dtype, DT_none);
      BREAK("no collective", "no collective|is not of its meeting", in->what, p->coll.n);
      if (x->kind == COLL_all_gather || x->kind == COLL_all_to_all)
        BREAK("over what the others still read", "writes what it reads|is not inside buffer|share bytes|without an order", to[1], to[0]);
    }
  return n;
}

static void variables(Plan *p) {
  for (uint32_t i = 1; i < p->var.n; i++) {
    PlanVar *v = &p->var.at[i];
    BREAK("a sum over no axis", "is a sum over axes that are not there", v->partial, (uint8_t)(v->partial | 1u << 7));
    for (uint32_t k = 0; k < v->ndim; k++) {
      const PlanDim *d = &p->dim.at[v->dim[k]];
      if (d->ncut)
        BREAK("a sum over what cuts it", "is cut by an axis over which it is a sum", v->partial, (uint8_t)(v->partial | 1u << d->cut[0]));
    }
  }
}

static uint32_t parts(Plan *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->slot.n; i++) {
    if (strncmp(p->slot.at[i].name, "$at:", 4)) continue;
    n++;
    BREAK("the first entry of no part", "is not right", p->slot.at[i].name, plan_str(p, "$at:nothing|tp"));
  }
  for (uint32_t i = 1; i < p->dim.n; i++) {
    PlanDim *d = &p->dim.at[i];
    if (!d->ncut) continue;
    BREAK("cut by no axis", "is cut by axes that are not there", d->cut[0], 7);
    BREAK("not all of it", "is no part of", d->size, d->size + 1);
  }
  for (uint32_t i = 0; i < p->axis.n; i++)
    if (p->axis.at[i].size > 1) BREAK("ranks that are not there", "is no part of|is not inside buffer", p->axis.at[i].size, p->axis.at[i].size + 1);
  return n;
}

static void plans_test(void **state) {
  (void)state;
  uint32_t colls = 0, slots = 0;
  for (int i = 0; i < nplans; i++) {
    Arena *a = arena_create();
    Plan *p;
    assert_int_equal(plan_load(a, plans[i], &p), 0);
    colls += collectives(p), variables(p), slots += parts(p);
    const char *why = plan_verify(p, a);
    if (why) fail_msg("what was broken is not whole again: %s", why);
    arena_destroy(a);
  }
  assert_true(colls > 50 && slots > 5);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_test)};
  plans = argv + 1, nplans = argc - 1;
  return cmocka_run_group_tests(tests, 0, 0);
}
