// world.c -- see world.h. A wrong text is a bug().
#include "tests/interp/world.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool word(const char **s, char *to) {
  while (**s == ' ' || **s == ',') (*s)++;
  size_t n = 0;
  while (isalnum((unsigned char)**s) || **s == '_' || **s == '.') {
    if (n == 63) bug("a long word");
    to[n++] = *(*s)++;
  }
  to[n] = 0;
  return n > 0;
}
static bool sign(const char **s, char c) {
  while (**s == ' ') (*s)++;
  return **s == c ? ++*s, true : false;
}

World world(const char *mesh, const char *dims) {
  World w = {.arena = arena_create()};
  Intern *in = intern_create(w.arena);
  Diag *d = NEW(w.arena, Diag);
  diag_init(d, w.arena);
  w.m = module_create(w.arena, in, d);
  uint16_t src = diag_source(d, "test", "", 0);
  w.b = (Build){.loc = {.file = src, .line = 1, .end_line = 1, .col = 1, .end_col = 1}, .why = "test", .path = ""};
  char name[64];
  while (word(&mesh, name)) {
    char size[64];
    if (!sign(&mesh, '=') || !word(&mesh, size)) bug("a mesh is dp=2 tp=2");
    vec_push(w.arena, &w.m->axis, (Axis){.name = intern(in, name), .size = atoi(size)});
  }
  while (word(&dims, name)) {
    Dim dim = {.name = intern(in, name)};
    char v[64];
    if (sign(&dims, '=')) {
      if (!word(&dims, v)) bug("dims: a role names its root");
      dim.root = dim_find(w.m, intern(in, v));
      dim.extent = dim_of(w.m, dim.root)->extent, dim.size = dim_of(w.m, dim.root)->size;
    } else {
      if (!word(&dims, v)) bug("dims: an extent is missing");
      dim.extent = dim.size = atoll(v);
      if (sign(&dims, ':') && word(&dims, v)) dim.size = atoll(v);
    }
    while (*dims == ' ') dims++;
    if (isalpha((unsigned char)*dims)) {
      if (!word(&dims, v)) bug("dims");
      if (!strcmp(v, "sample")) dim.sample = true;
      else if (strcmp(v, "zigzag") || !sign(&dims, '=') || !word(&dims, v)) bug("dims: zigzag=N");
      else dim.zigzag = (uint32_t)atoi(v);
    }
    dim_add(w.m, dim);
  }
  return w;
}

Module *module_text(Arena *a, const char *text) {
  Diag *d = NEW(a, Diag);
  diag_init(d, a);
  Module *m = ir_parse(a, intern_create(a), d, diag_source(d, "text", text, strlen(text)));
  if (!m) bug("the text is refused");
  return m;
}

void world_end(World *w) { arena_destroy(w->arena); }

static uint32_t axis(World *w, const char *name) {
  int i = axis_find(w->m, intern(w->m->in, name));
  if (i < 0) bug("no axis %s", name);
  return (uint32_t)i;
}
static DimId dim(World *w, const char *name) {
  DimId d = dim_find(w->m, intern(w->m->in, name));
  if (!d) bug("no dim %s", name);
  return d;
}

TypeId type(World *w, const char *text) {
  Type t = {.ndim = 0};
  char v[64];
  word(&text, v);
  t.dtype = dtype_find(v);
  if (sign(&text, '['))
    while (!sign(&text, ']')) {
      if (!word(&text, v)) bug("a type is f64[a|dp, b] sum(tp)");
      t.dim[t.ndim] = dim(w, v);
      if (sign(&text, '|'))
        do {
          word(&text, v);
          if (!v[0]) break;
          if (axis_find(w->m, intern(w->m->in, v)) < 0) { text -= strlen(v); break; }
          t.split[t.ndim] = split_push(t.split[t.ndim], axis(w, v));
        } while (*text == '+' && text++);
      t.ndim++;
    }
  if (word(&text, v)) {
    t.pending = !strcmp(v, "sum") ? PENDING_sum : PENDING_max;
    sign(&text, '(');
    while (!sign(&text, ')') && word(&text, v)) t.pending_axes |= (uint8_t)(1u << axis(w, v));
  }
  return type_intern(w->m, t);
}

Attr attr(World *w, const char *s) {
  Attr at = {.num = 0};
  char v[64], x[64];
  if (sign(&s, '[')) {
    bool to = false;
    while (!sign(&s, ']')) {
      if (sign(&s, '-') && sign(&s, '>')) to = true;
      if (!word(&s, v)) bug("attributes are [a -> b] at=1");
      if (to) at.to[at.nto++] = dim(w, v);
      else at.dims[at.ndims++] = dim(w, v);
    }
  }
  while (word(&s, v)) {
    if (!sign(&s, '=')) bug("attributes are [a -> b] at=1");
    bool minus = sign(&s, '-');
    word(&s, x);
    double num = minus ? -atof(x) : atof(x);
    if (!strcmp(v, "at")) at.at = (int64_t)num;
    else if (!strcmp(v, "num")) at.num = num;
    else if (!strcmp(v, "path")) at.path = intern(w->m->in, x);
    else if (!strcmp(v, "var")) at.var = var_find(w->m, intern(w->m->in, x));
    else if (!strcmp(v, "axes")) {
      at.axes |= (uint8_t)(1u << axis(w, x));
      while (sign(&s, '+') && word(&s, x)) at.axes |= (uint8_t)(1u << axis(w, x));
    } else bug("no attribute %s", v);
  }
  return at;
}

void begin(World *w, const char *fn) { w->b.fn = fn_create(w->m, intern(w->m->in, fn)); }
ValId arg(World *w, const char *text) { return ir_arg(w->b.fn, type(w, text), intern(w->m->in, "x")); }
ValId op(World *w, Op o, const char *at, const ValId *in, uint32_t n) { return ir_add(&w->b, o, in, n, attr(w, at)); }
ValId opt(World *w, Op o, const char *at, const char *result, const ValId *in, uint32_t n) {
  TypeId t = type(w, result);
  return ir_add_typed(&w->b, o, in, n, attr(w, at), &t, 1, 0);
}
ValId op_of(World *w, Op o, const char *at, const char *const in[3], const char *result) {
  ValId x[3];
  uint32_t n = 0;
  for (; n < 3 && in[n]; n++) x[n] = arg(w, in[n]);
  Fn *f = w->b.fn;
  ValId y = *result ? opt(w, o, at, result, x, n) : op(w, o, at, x, n);
  for (uint32_t i = 0; i < fn_node(f, f->node.n - 1)->nout; i++) ir_return(f, y + i, "y");
  return y;
}
