// declare.c -- configs and dims of the user's text, worked out in whatever order they need each other.
#include "compiler/program.h"
#include <math.h>
#include <string.h>

enum { DEPTH_LIMIT = 5000 };                 // heights of the expressions being worked out, together

static bool whole(Number n, double least, double most) {
  return n.kind == NUM_number && n.num >= least && n.num <= most && n.num == floor(n.num);
}

// Steps into something that may need others; false: it needs itself, or too many.
static bool enter(Program *p, const char *what, Str name, Span at, const Ast *e, State *state) {
  if (*state == STATE_busy) diag_error(p->diag, at, "MT0309", "%s '%s' needs itself", what, name);
  else if (p->depth + e->height > DEPTH_LIMIT)
    diag_error(p->diag, at, "MT0309", "%s '%s' needs too many others, one after the other", what, name);
  else return *state = STATE_busy, p->depth += e->height, true;
  return false;
}

static void leave(Program *p, const Ast *e, State *state) { *state = STATE_done, p->depth -= e->height; }

// ---- configs ----------------------------------------------------------------------------------------------
Number config_value(Program *p, Config *c) {
  if (c->state == STATE_done) return c->value;
  if (!enter(p, "config", c->name, c->loc, c->ast, &c->state)) return (Number){.kind = NUM_error};
  c->value = number_eval(p, &p->user, c->ast);
  leave(p, c->ast, &c->state);
  return c->value;
}

static bool is_said(const Text *t, const char *words) { return t->n && strstr(t->s, words); }

void values_explain(Program *p, const Ast *e, Text *t) {
  for (uint32_t i = 0; e->kind != N_name && i < e->n; i++) values_explain(p, e->kid[i], t);
  if (e->kind != N_name) return;
  const uint64_t *i = map_get(&p->user.config_by_name, key_of(e->text));
  if (!i) return;
  Config *c = &p->user.config.at[*i];
  const char *words = arena_printf(p->arena, "%s is %s (%s)", c->name,
                                   number_text(p->arena, config_value(p, c)),
                                   c->from ? c->from : span_text(p->diag, p->arena, c->loc));
  if (!is_said(t, words)) text_printf(t, "%s%s", t->n ? ", " : "", words);
}

// ---- dims -------------------------------------------------------------------------------------------------
static int64_t ways(const Program *p, Str dim,
                    bool strong_only) {  // product of the axes that dim is mapped to, each once
  int64_t n = 1;
  uint32_t seen = 0;
  const Module *m = p->module;
  for (int weak = 0; weak < (strong_only ? 1 : 2); weak++) {
    const uint64_t *at = map_get(&p->rule_by_dim, rule_key(dim, weak));
    const MapRule *r = at && *at ? &m->rule.at[*at - 1] : 0;
    for (uint32_t k = 0; r && k < r->naxis; k++)
      if (!(seen >> r->axis[k] & 1)) seen |= 1u << r->axis[k], n *= m->axis.at[r->axis[k]].size;
  }
  return n;
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

static bool extent_of(Program *p, const Ast *it, Dim *d) {
  const Ast *e = it->kid[0];
  uint32_t errors = p->diag->errors;
  DimId role = e->kind == N_name ? dim_value(p, e->text) : 0;
  if (role) {
    d->extent = dim_of(p->module, role)->extent, d->size = dim_of(p->module, role)->size,
    d->root = dim_of(p->module, role)->root;
    return true;
  }
  if (p->diag->errors > errors) return false;
  if (e->kind == N_none) {  // from the run: samples of a microbatch on all ranks
    d->sample = true;
    if (!mul_ok(p->micro_batch, ways(p, it->text, false), &d->extent)) d->extent = 0;
    d->size = d->extent;
    return d->extent > 0 ||
           (diag_error(p->diag, it->span, "MT0306", "dim %s has more than 2^62 entries", it->text), false);
  }
  Number n = number_eval(p, &p->user, e);
  if (n.kind == NUM_error) return false;
  d->extent = d->size = whole(n, 1, 0x1p53) ? (int64_t)n.num : 0;
  if (d->extent) return true;
  Text names;
  text_init(&names, p->arena);
  values_explain(p, e, &names);
  diag_error(p->diag, e->span, "MT0305", "dim %s = %s is %s; it must be whole and positive", it->text,
             span_words(p->diag, p->arena, e->span, "…"), number_text(p->arena, n));
  if (names.n) diag_note(p->diag, "%s", names.s);
  return false;
}

// Storage: a multiple of the pad and of the axes that split the dim.
static bool size_of(Program *p, const Ast *it, Dim *d) {
  const Ast *pad = it->kid[1];
  if (pad->kind == N_none) return true;
  Number k = number_eval(p, &p->user, pad);
  if (k.kind == NUM_error) return false;
  if (!whole(k, 1, 0x1p53))
    return diag_error(p->diag, pad->span, "MT0305", "pad %s must be whole and positive",
                      number_text(p->arena, k)),
           false;
  int64_t to = (int64_t)k.num, w = ways(p, it->text, true);
  if (mul_ok(to / gcd(to, w), w, &to) && add_ok(d->extent, to - 1, &d->size) && d->size <= INT64_C(1) << 62)
    return d->size = d->size / to * to, true;
  diag_error(p->diag, pad->span, "MT0306", "dim %s would be stored as more than 2^62 entries", it->text);
  return false;
}

DimId dim_value(Program *p, Str name) {
  const uint64_t *at = map_get(&p->dim_item, key_of(name));
  if (!at) return 0;
  DimItem *item = &p->dim.at[*at];
  if (item->state == STATE_done) return item->id;
  if (!enter(p, "dim", name, item->ast->span, item->ast, &item->state)) return 0;
  Dim d = {.name = name};
  if (!extent_of(p, item->ast, &d) || !size_of(p, item->ast, &d))
    d = (Dim){.name = name, .extent = 1, .size = 1};
  item = &p->dim.at[*at];
  item->id = dim_add(p->module, d);
  map_put(&p->user.dim_by_name, key_of(name), item->id);
  leave(p, item->ast, &item->state);
  return item->id;
}

static void configs_in(Program *p, const Ast *e, Text *t) {
  for (uint32_t i = 0; e->kind != N_name && i < e->n; i++) configs_in(p, e->kid[i], t);
  if (e->kind != N_name) return;
  const uint64_t *item = map_get(&p->dim_item, key_of(e->text));
  if (item) configs_in(p, p->dim.at[*item].ast->kid[0], t);
  else if (map_get(&p->user.config_by_name, key_of(e->text)) && !is_said(t, e->text))
    text_printf(t, "%s%s", t->n ? " or " : "", e->text);
}

const char *dim_configs(Program *p, DimId d) {
  Text t;
  text_init(&t, p->arena);
  const uint64_t *item = map_get(&p->dim_item, key_of(dim_of(p->module, d)->name));
  if (item) configs_in(p, p->dim.at[*item].ast->kid[0], &t);
  return t.s;
}
