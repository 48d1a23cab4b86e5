// mesh.c -- the axes of the mesh and the rules that map dims to them, from the text, then from the command
// line.
//
// There are five axes, in the order of rank = tp + TP·(cp + CP·(ep + EP·(dp + DP·pp))); those that nobody
// gives an extent have 1.
#include "compiler/sema.h"
#include <math.h>
#include <string.h>

enum { RANKS_LIMIT = 1 << 20 };
static const char *const axis_names[] = {"pp", "dp", "ep", "cp", "tp"};

static void no_axis(Sema *s, Span at, Str name) {
  ERR(at, "MT0310", "no mesh axis '%s'; axes: pp, dp, ep, cp, tp", name);
  word_suggest(s->p->diag, name, axis_names, COUNT(axis_names));
}

static void axes_set(Sema *s, const Ast *mesh) {
  Program *p = s->p;
  uint32_t seen = 0;
  int64_t ranks = 1;
  for (uint32_t i = 0; i < s->m->axis.n; i++) s->m->axis.at[i].size = 1;
  for (uint32_t i = 0; i < mesh->kid[0]->n; i++) {
    const Ast *set = mesh->kid[0]->kid[i];
    if (set->kind != N_set || set->kid[0]->n != 1) continue;
    int at = axis_find(s->m, set->text);
    if (at < 0) { no_axis(s, set->span, set->text); continue; }
    if (seen >> at & 1) ERR(set->span, "MT0224", "axis '%s' is given twice", set->text);
    seen |= 1u << at;
    Number n = number_eval(p, &p->user, set->kid[0]->kid[0]);
    if (n.kind == NUM_error) continue;
    if (n.kind != NUM_number || n.num < 1 || n.num > RANKS_LIMIT || n.num != floor(n.num))
      ERR(set->span, "MT0305", "mesh %s is %s; it must be whole, positive and at most %d", set->text,
          number_text(p->arena, n), RANKS_LIMIT);
    else
      s->m->axis.at[at].size = (int32_t)n.num, ranks *= (int64_t)n.num;
    if (ranks <= RANKS_LIMIT) continue;
    ERR(mesh->span, "MT0314", "a mesh of more than %d ranks", RANKS_LIMIT);
    return;
  }
}

// ---- rules ------------------------------------------------------------------------------------------------
static bool rule_find(const Program *p, Str dim, bool weak, uint32_t *at) {
  const uint64_t *i = map_get(&p->rule_by_dim, rule_key(dim, weak));
  if (!i || !*i) return false;
  *at = (uint32_t)*i - 1;
  return true;
}

static void rule_push(Program *p, MapRule r) {
  vec_push(p->arena, &p->module->rule, r);
  map_put(&p->rule_by_dim, rule_key(r.dim, r.weak), p->module->rule.n);
}

static void rule_drop(Program *p, uint32_t at) {
  Module *m = p->module;
  map_put(&p->rule_by_dim, rule_key(m->rule.at[at].dim, m->rule.at[at].weak), 0);
  memmove(m->rule.at + at, m->rule.at + at + 1, (m->rule.n - at - 1) * sizeof *m->rule.at);
  m->rule.n--;
  for (uint32_t i = at; i < m->rule.n; i++)
    map_put(&p->rule_by_dim, rule_key(m->rule.at[i].dim, m->rule.at[i].weak), i + 1);
}

static bool rule_axes(Sema *s, const Ast *axes, MapRule *r) {
  bool ok = true;
  for (uint32_t k = 0; k < axes->n; k++) {
    const Ast *axis = axes->kid[k];
    if (axis->kind != N_name) continue;
    int id = axis_find(s->m, axis->text);
    bool twice = false;
    for (uint32_t j = 0; j < r->naxis; j++) twice |= r->axis[j] == id;
    if (id < 0) no_axis(s, axis->span, axis->text), ok = false;
    else if (twice) ERR(axis->span, "MT0224", "axis '%s' is named twice", axis->text), ok = false;
    else if (r->naxis == MAX_SPLIT)
      ERR(axis->span, "MT0314", "a dim is split by at most %d axes", MAX_SPLIT), ok = false;
    else r->axis[r->naxis++] = (uint8_t)id;
  }
  return ok;
}

static void rule_add(Sema *s, const Ast *map, bool replaces) {
  bool weak = *map->text == 'w';
  MapRule r = {.weak = weak, .loc = map->span};
  if (!rule_axes(s, map->kid[1], &r)) return;
  for (uint32_t i = 0; i < map->kid[0]->n; i++) {
    const Ast *d = map->kid[0]->kid[i];
    uint32_t at;
    if (d->kind != N_name) continue;
    r.dim = d->text;
    bool known = rule_find(s->p, r.dim, weak, &at);
    if (known && !replaces) {
      ERR(d->span, "MT0224", "'%s' already has a%s rule (%s)", d->text, weak ? " weak" : "",
          span_text(s->p->diag, s->p->arena, s->m->rule.at[at].loc));
      continue;
    }
    if (known) rule_drop(s->p, at);
    rule_push(s->p, r);
  }
}

static void rules_remove(Sema *s, const Ast *name) {
  uint32_t at, n = s->m->rule.n;
  for (int weak = 0; weak < 2; weak++)
    while (rule_find(s->p, name->text, weak, &at)) rule_drop(s->p, at);
  if (n != s->m->rule.n) return;
  VEC(Str) names = {0};
  for (uint32_t k = 0; k < n; k++) vec_push(s->p->arena, &names, s->m->rule.at[k].dim);
  ERR(name->span, "MT0315", "no rule maps '%s'", name->text);
  word_suggest(s->p->diag, name->text, names.at, names.n);
}

void mesh_read(Sema *s) {
  const Ast *declared = 0;
  for (size_t i = 0; i < COUNT(axis_names); i++)
    vec_push(s->p->arena, &s->m->axis, (Axis){intern(s->p->in, axis_names[i]), 1});
  for (uint32_t i = 0; i < s->item.n; i++) {
    const Ast *it = s->item.at[i];
    for (uint32_t k = 0; it->kind == N_parallel && k < it->kid[0]->n; k++) {
      const Ast *x = it->kid[0]->kid[k];
      if (x->kind == N_map) rule_add(s, x, false);
      if (x->kind != N_mesh) continue;
      if (declared)
        ERR(x->span, "MT0224", "the mesh is already given at %s",
            span_text(s->p->diag, s->p->arena, declared->span));
      declared = x;
    }
  }
  if (!s->mesh) s->mesh = declared;
  if (s->mesh) axes_set(s, s->mesh);
  for (uint32_t i = 0; i < s->rule.n; i++) {
    if (s->rule.at[i]->kind == N_map) rule_add(s, s->rule.at[i], true);
    else rules_remove(s, s->rule.at[i]);
  }
}

void mesh_check(Sema *s) {
  Program *p = s->p;
  VEC(Str) names = {0};
  for (uint32_t i = 0; i < p->dim.n; i++) vec_push(p->arena, &names, p->dim.at[i].ast->text);
  for (uint32_t i = 0; i < s->m->rule.n; i++) {
    const MapRule *r = &s->m->rule.at[i];
    if (map_get(&p->dim_item, key_of(r->dim))) continue;
    ERR(r->loc, "MT0220", "no dim '%s'", r->dim);
    word_suggest(p->diag, r->dim, names.at, names.n);
  }
  for (uint32_t a = 0; a < s->m->axis.n; a++) {
    bool used = s->m->axis.at[a].size == 1 ||
                !strcmp(s->m->axis.at[a].name, "pp");  // pp: the pipeline's cut uses it
    for (uint32_t i = 0; i < s->m->rule.n && !used; i++)
      for (uint32_t k = 0; k < s->m->rule.at[i].naxis; k++) used |= s->m->rule.at[i].axis[k] == a;
    if (used) continue;
    ERR(s->mesh->span, "MT0313", "axis %s is %d and no rule maps a dim to it", s->m->axis.at[a].name,
        s->m->axis.at[a].size);
    diag_note(p->diag, "write map DIM -> %s, or --map \"DIM -> %s\"", s->m->axis.at[a].name,
              s->m->axis.at[a].name);
  }
}
