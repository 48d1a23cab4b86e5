// lower_param.c -- parameters: their paths, their dims in the order of storage, how they begin.
#include "compiler/lower.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { PATH_LIMIT = 512 };

// ---- paths ------------------------------------------------------------------------------------------------
// Outside of holes a path is words joined by dots. '$' and ':' would meet the names that the compiler gives.
static bool path_ok(Lower *l, Span at, Str path) {
  size_t n = strlen(path);
  const char *why = !n ? "is empty" : n > PATH_LIMIT ? "is too long" : 0;
  if (!strcmp(path, "__metadata__")) why = "is what a safetensors file calls its notes";
  bool hole = false;
  for (size_t i = 0; i < n && !why; i++) {
    unsigned char c = (unsigned char)path[i];
    bool open = !hole && c == '{', close = hole && c == '}';
    bool end = c == '.' && (!i || path[i - 1] == '.' || !path[i + 1]);
    if (open || close) hole = open;
    else if (end) why = "has an empty word";
    else if (!isalnum(c) && !strchr(hole ? "_-.:," : "_-.", c))
      why = arena_printf(l->a, c > 32 && c < 127 ? "has a '%c' in it" : "has a blank in it", c);
  }
  if (hole && !why) why = "does not close its '{'";
  if (!why) return true;
  lower_error(l, at, "MT0269", "the path \"%.*s\"%s %s", (int)MIN(n, 60), path, n > 60 ? "…" : "", why);
  lower_note(
    l, "a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}");
  return false;
}

static const Named *index_named(const Frame *f, const char *s, size_t n) {
  for (uint32_t i = f->index.n; i--;)
    if (strlen(f->index.at[i].name) == n && !strncmp(f->index.at[i].name, s, n)) return &f->index.at[i];
  return 0;
}

Str path_fill(Lower *l, const Ast *at, Str path) {
  if (!path_ok(l, at->span, path)) return 0;
  Text t;
  text_init(&t, l->a);
  for (const char *c = path; *c;) {
    size_t n = strcspn(c, "{");
    text_add(&t, c, n);
    if (!*(c += n)) break;
    n = strcspn(c + 1, ":}");
    const Named *index = index_named(l->frame, c + 1, n);
    Str name = intern_n(l->p->in, c + 1, n);
    DimBind dim = {0};
    if (index && c[1 + n] == '}') text_printf(&t, "%.0f", index->val.number.num), c += n + 2;
    else if (dim_find_here(l, name, &dim) && !dim.n) return 0;
    else if (dim.n == 1)
      text_printf(&t, "{%s", dim_of(l->m, dim.dim[0])->name), c += n + 1;
    else {
      lower_error(l, at->span, "MT0260", "\"%s\": '%s' is neither a dim here nor a repeat index", path, name);
      return 0;
    }
    n = strcspn(c, "}");
    if (c[-1] != '}') text_add(&t, c, n + 1), c += n + 1;              // of a dim: its names
  }
  return intern(l->p->in, t.s);
}

// Every {dim} of the path is a dim of the parameter, with as many names as it has entries.
static bool holes_ok(Lower *l, const Ast *s, const Ast *at, Str path, const Type *t) {
  for (const char *c = path; (c = strchr(c, '{')); c++) {
    size_t n = strcspn(c + 1, ":}"), all = strcspn(c, "}");
    DimId d = dim_find(l->m, intern_n(l->p->in, c + 1, n));
    if (!d || type_pos(t, d) < 0) {
      return lower_error(l, at->span, "MT0260", "\"%s\": %.*s is no dim of %s [%s]", path, (int)n, c + 1,
                         s->text, dims_show(l, t->dim, t->ndim));
    }
    int64_t names = 1;
    for (size_t k = n + 1; k < all; k++) names += c[k] == ',';
    if (c[1 + n] == ':' && names != dim_of(l->m, d)->extent) {
      return lower_error(l, at->span, "MT0261", "{%.*s} names %lld, %s is %lld", (int)all - 1, c + 1,
                         (long long)names, dim_word(l, d), (long long)dim_of(l->m, d)->extent);
    }
  }
  return true;
}

// ---- how it begins ----------------------------------------------------------------------------------------
static bool init_of(Lower *l, const Ast *e, Var *v) {
  static const char *const name[] = {"zeros", "ones", "normal", "uniform"};
  static const char *const form[] = {"zeros", "ones", "normal(std)", "uniform(lo, hi)"};
  static const uint32_t takes[] = {0, 0, 1, 2};
  uint32_t i = 0, n = e->kind == N_call ? e->kid[2]->n : 0;
  double x[2] = {0};
  if (e->kind == N_none) return false;
  while (i < COUNT(name) && ((e->kind != N_name && e->kind != N_call) || strcmp(e->text, name[i]))) i++;
  if (i == COUNT(name)) {
    lower_error(l, e->span, "MT0264",
                "a parameter begins as zeros, ones, normal(std) or uniform(lo, hi), not as %s",
                expr_words(l, e));
    if (e->kind == N_name || e->kind == N_call) lower_suggest(l, e->text, name, COUNT(name));
    return false;
  }
  if (n != takes[i] || (e->kind == N_call && (e->kid[0]->n || e->kid[1]->n))) {
    return lower_error(l, e->span, "MT0264", "%s takes %u number%s: %s", name[i], takes[i],
                       takes[i] == 1 ? "" : "s", form[i]);
  }
  for (uint32_t k = 0; k < n; k++) {
    const Ast *arg = e->kid[2]->kid[k];
    Val a = expr_eval(l, arg->kid[0]);
    if (val_is_error(a)) return false;
    if (a.tensor || a.number.kind != NUM_number || !isfinite(a.number.num) || *arg->text) {
      return lower_error(l, arg->span, "MT0264", "%s takes numbers: %s; got %s%s%s", name[i], form[i],
                         arg->text, *arg->text ? " = " : "", val_show(l, a));
    }
    x[k] = a.number.num;
  }
  v->init = (InitKind)i;
  v->a = x[0], v->b = x[1];
  return true;
}

// ---- the statement ----------------------------------------------------------------------------------------
static bool param_type(Lower *l, const Ast *s, Type *t, Var *v) {
  const Ast *list = s->kid[1]->kid[0];
  t->dtype = dtype_find(s->kid[1]->text);
  for (uint32_t i = 0; i < list->n; i++) {
    uint32_t n = t->ndim, was = n;
    if (list->kid[i]->kind != N_name)
      return lower_error(l, list->kid[i]->span, "MT0265",
                         "a parameter's type names its dims, without * and ?");
    Ast one = {.kind = N_list, .n = 1, .kid = &((Ast *)list)->kid[i]};
    if (!dims_eval(l, &one, t->dim, &n)) return false;
    t->ndim = (uint8_t)n;
    for (uint32_t k = was; k < n; k++) v->axis[k] = (uint8_t)i;
  }
  if (!dtype_is_float(t->dtype))
    return lower_error(l, s->kid[1]->span, "MT0265", "a parameter is a float, not %s", s->kid[1]->text);
  for (uint32_t i = 0; i < t->ndim; i++)
    if (dim_of(l->m, t->dim[i])->sample) {
      return lower_error(l, s->kid[1]->span, "MT0265",
                         "a parameter has no %s: its size would depend on the number of samples",
                         dim_word(l, t->dim[i]));
    }
  if (type_is_small(l, t)) return true;
  return lower_error(l, s->span, "MT0306", "%s has more than 2^59 entries", s->text);
}

static Span users_line(const Lower *l, const Ast *s) {  // the call that made it, when it is the prelude's
  const Frame *f = l->frame;
  if (f->scope != &l->p->prelude) return s->span;
  while (f->up->scope == &l->p->prelude) f = f->up;
  return name_span(f->call);
}

static bool path_is_new(Lower *l, const Ast *s, Str path) {
  const uint64_t *was = map_get(&l->declared, key_of(path));
  Span here = users_line(l, s);
  if (!was) {
    vec_push(l->a, &l->declared_at, here);
    map_put(&l->declared, key_of(path), l->declared_at.n);
    return true;
  }
  if (l->frame->collides) return false;  // the call's other parameters say the same
  l->frame->collides = true;
  Span first = l->declared_at.at[*was - 1];
  bool same = first.file == here.file && first.line == here.line && first.col == here.col;
  lower_error(l, s->span, "MT0262", "two parameters are called %s", path);
  if (same)
    lower_note(l,
               "this place is reached twice: in a repeat, the path of a call holds the index: as \"h.{i}\"");
  else lower_note_at(l, first, "the first; give the calls different 'as'");
  return false;
}

static bool param_declare(Lower *l, const Ast *s) {
  Frame *f = l->frame;
  if (f->def->ast->kind == N_fn)
    return lower_error(l, s->span, "MT0244", "%s is a fn and has no parameters; make it a block",
                       f->def->name);
  const uint64_t *was = map_get(&f->val_by_name, key_of(s->text));
  if (was && *was) return lower_error(l, s->span, "MT0224", "'%s' is already a value here", s->text);
  const Ast *at = s->kid[0]->kind == N_as ? s->kid[0] : s;
  Str word = path_fill(l, at, at->text);
  if (!word) return false;
  Str path = *f->path ? intern_printf(l->p->in, "%s.%s", f->path, word) : word;
  Var v = {.name = path,
           .kind = VAR_param,
           .loc = users_line(l, s),
           .why = intern_printf(l->p->in, "param %s", s->text)};
  Type t = {0};
  if (strlen(path) > 2 * PATH_LIMIT)
    return lower_error(l, at->span, "MT0269", "the path of %s is too long", s->text);
  if (!param_type(l, s, &t, &v) || !init_of(l, s->kid[2], &v) || !holes_ok(l, s, at, path, &t)) return false;
  v.decay = v.init == INIT_normal || v.init == INIT_uniform;
  v.type = type_intern(l->m, t);
  if (!path_is_new(l, s, path)) return false;
  VarId id = var_find(l->m, path);
  if (id && l->m->var.at[id].type != v.type)
    return lower_error(l, s->span, "MT0266", "%s has another type when training", path);
  if (!id && !l->training)
    return lower_error(l, s->span, "MT0266", "%s does not exist when training, so it would never be trained",
                       path);
  if (!id) id = var_add(l->m, v);
  Build b = at_span(l, s->span);
  Ast name = {.kind = N_name, .text = s->text, .span = s->span};
  named_assign(l, &name, (Val){.tensor = true, .v = ir_read_var(&b, id)});
  return true;
}

void param_statement(Lower *l, const Ast *s) {
  Ast name = {.kind = N_name, .text = s->text, .span = s->span};
  if (!param_declare(l, s)) named_assign(l, &name, val_error());
}
