// read.c -- the tree of an IR text (grammar/ir_text.h) to a module. Tables stand above what names them; a function may
// call a body that stands below it, but then its result's type is written. A node without a place gets its own in this
// text, one without a reason "text", one without a type the type its op gives.
#include "compiler/ir.h"
#include "grammar/ir_text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  Module *m;
  Diag *d;
  Arena *temp;
  Map op, dtype, file;                       // interned name -> Op, DType, index of Diag.source
  Map var_kind, init_kind;
  uint32_t errors;                           // Diag.errors at the start
  // a line has an error: what it would have defined is unknown, and that was said
  bool echo;
  Fn *f;
  Map value;                                 // of f: the text's number -> ValId; 0: its line has an error
  VEC(Span) place;                           // of f's nodes, from 1
} Reader;

static bool err(Reader *r, Span at, const char *code, const char *fmt, ...) PRINTF(4, 5);
static bool err(Reader *r, Span at, const char *code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  diag_error(r->d, at, code, "%s", arena_vprintf(r->temp, fmt, args));
  va_end(args);
  return false;
}
static bool unknown(Reader *r, const IrTree *t, const char *what) {
  return err(r, t->span, "IR03", "no %s '%s'", what, t->text);
}
static bool twice(Reader *r, const IrTree *t, const char *what) {
  return err(r, t->span, "IR03", "%s '%s' is defined twice", what, t->text);
}
static bool bad(Reader *r, Span at, const char *what) { return err(r, at, "IR04", "%s", what); }

// ---- words --------------------------------------------------------------------------------------------------------
static bool look(const Map *map, Str word, uint32_t *id) {
  const uint64_t *at = map_get(map, key_of(word));
  return at && (*id = (uint32_t)*at, true);
}

static bool whole(Reader *r, const IrTree *t, int64_t lo, int64_t hi, int64_t *v) {
  char *end;
  errno = 0;
  *v = t->text ? strtoll(t->text, &end, 10) : 0;
  if (!t->text || errno || *end)
    return err(r, t->span, "IR04", "a whole number is wanted, not %s", t->text ? t->text : "this");
  if (*v < lo || *v > hi)
    return err(r, t->span, "IR04", "%s is not from %lld to %lld", t->text, (long long)lo, (long long)hi);
  return true;
}

static bool read_dim(Reader *r, const IrTree *t, DimId *d) {
  return (*d = dim_find(r->m, t->text)) || unknown(r, t, "dim");
}
static bool read_var(Reader *r, const IrTree *t, VarId *v) {
  return (*v = var_find(r->m, t->text)) || unknown(r, t, "variable");
}

static bool read_axis(Reader *r, const IrTree *t, uint32_t *axis) {
  int i = axis_find(r->m, t->text);
  *axis = (uint32_t)i;
  return i >= 0 || unknown(r, t, "mesh axis");
}

static bool read_axes(Reader *r, const IrTree *t, uint8_t *mask) {
  uint32_t axis;
  for (const IrTree *k = t->kid; k; k = k->next) {
    if (k->kind != IR_axis) return bad(r, k->span, "a mesh axis is wanted");
    if (!read_axis(r, k, &axis)) return false;
    if (*mask >> axis & 1) return err(r, k->span, "IR04", "the axis %s is named twice", k->text);
    *mask |= (uint8_t)(1u << axis);
  }
  return true;
}

static bool read_type(Reader *r, const IrTree *t, TypeId *id) {
  Type y = {0};
  uint32_t word, axis;
  if (!look(&r->dtype, t->text, &word)) return unknown(r, t, "dtype");
  y.dtype = (DType)word;
  for (const IrTree *k = t->kid; k; k = k->next) {
    if (k->kind == IR_pending) {
      if (!strcmp(k->text, "sum")) y.pending = PENDING_sum;
      else if (!strcmp(k->text, "max")) y.pending = PENDING_max;
      else return err(r, k->span, "IR04", "what is pending is a sum or a max, not '%s'", k->text);
      if (!read_axes(r, k, &y.pending_axes)) return false;
      continue;
    }
    uint32_t n = 0;
    if (y.ndim == MAX_DIMS) return err(r, k->span, "IR04", "a type has at most %d dims", MAX_DIMS);
    if (!read_dim(r, k, &y.dim[y.ndim])) return false;
    for (const IrTree *a = k->kid; a; a = a->next) {
      if (!read_axis(r, a, &axis)) return false;
      if (n++ == MAX_SPLIT) return err(r, a->span, "IR04", "at most %d axes split a dim", MAX_SPLIT);
      y.split[y.ndim] = split_push(y.split[y.ndim], axis);
    }
    y.ndim++;
  }
  Text why;
  text_init(&why, r->temp);
  if (!type_check(r->m, &y, &why)) return bad(r, t->span, why.s);
  *id = type_intern(r->m, y);
  return true;
}

static bool read_place(Reader *r, const IrTree *t, Span *at) {
  enum { FILES = 4096 };
  uint32_t file;
  if (!look(&r->file, t->text, &file)) {
    if (r->file.n == FILES) return err(r, t->span, "IR04", "places in more than %d files", FILES);
    file = diag_source(r->d, t->text, "", 0);           // its text is not here
    map_put(&r->file, key_of(t->text), file);
  }
  *at = t->place;
  at->file = (uint16_t)file;
  return true;
}

// the notes of an item: a place and, where why is not 0, a reason
static bool read_notes(Reader *r, const IrTree *t, Span *loc, Str *why) {
  for (const IrTree *k = t->kid; k; k = k->next)
    if (k->kind == IR_loc) {
      if (!read_place(r, k, loc)) return false;
    } else if (k->kind == IR_why && why) *why = k->text;
    else if (k->kind == IR_path || k->kind == IR_layer || k->kind == IR_fwd || k->kind == IR_why)
      return bad(r, k->span, "this note belongs to nodes");
  return true;
}

// ---- the tables ---------------------------------------------------------------------------------------------------
static bool read_mesh(Reader *r, const IrTree *t) {
  int64_t size, ranks = 1;
  for (uint32_t i = 0; i < r->m->axis.n; i++) ranks *= r->m->axis.at[i].size;
  for (const IrTree *k = t->kid; k; k = k->next) {
    if (axis_find(r->m, k->text) >= 0) twice(r, k, "mesh axis");
    else if (r->m->axis.n == MAX_AXES) err(r, k->span, "IR04", "a mesh has at most %d axes", MAX_AXES);
    else if (!whole(r, k->kid, 1, INT32_MAX, &size)) continue;
    else if ((ranks *= size) > INT32_MAX) return bad(r, k->span, "the mesh has 2^31 ranks or more");
    else vec_push(r->m->arena, &r->m->axis, (Axis){k->text, (int32_t)size});
  }
  return true;
}

static bool read_map(Reader *r, const IrTree *t) {
  MapRule rule = {.dim = t->text, .weak = t->num != 0};
  uint32_t axis;
  for (const IrTree *k = t->kid; k; k = k->next) {
    if (k->kind != IR_axis) continue;
    if (!read_axis(r, k, &axis)) return false;
    if (rule.naxis == MAX_SPLIT) return err(r, k->span, "IR04", "at most %d axes split a dim", MAX_SPLIT);
    rule.axis[rule.naxis++] = (uint8_t)axis;
  }
  if (!read_notes(r, t, &rule.loc, 0)) return false;
  vec_push(r->m->arena, &r->m->rule, rule);
  return true;
}

static bool read_dim_decl(Reader *r, const IrTree *t) {
  Dim d = {.name = t->text};
  int64_t v;
  if (dim_find(r->m, t->text)) return twice(r, t, "dim");
  if (!whole(r, t->kid, 0, INT64_MAX, &d.extent)) return false;
  d.size = d.extent;
  for (const IrTree *k = t->kid->next; k; k = k->next) {
    if (!strcmp(k->text, "size")) {
      if (!whole(r, k->kid, d.extent, INT64_MAX, &d.size)) return false;
    } else if (!strcmp(k->text, "of")) {
      if (!read_dim(r, k->kid, &d.root)) return false;
    } else if (!strcmp(k->text, "zigzag")) {
      if (!whole(r, k->kid, 1, UINT32_MAX, &v)) return false;
      d.zigzag = (uint32_t)v;
    } else if (!strcmp(k->text, "part")) {
      uint32_t axis;
      if (!read_dim(r, k->kid, &d.whole)) return false;
      for (const IrTree *a = k->kid->next; a; a = a->next) {
        if (!read_axis(r, a, &axis)) return false;
        if (d.cut >> 4 * (MAX_SPLIT - 1)) return err(r, a->span, "IR04", "at most %d axes split a dim", MAX_SPLIT);
        d.cut = split_push(d.cut, axis);
      }
    } else if (!strcmp(k->text, "sample")) d.sample = true;
    else d.ragged = true;
  }
  Text why;
  text_init(&why, r->temp);
  DimId id = dim_add(r->m, d);
  return dim_check(r->m, id, &why) || bad(r, t->span, why.s);
}

static bool read_setting(Reader *r, const IrTree *t, Span loc, Setting *s) {
  s->loc = loc;                                         // an argument's place is its call's
  switch (t->kind) {
  case IR_num: s->kind = SET_num, s->num = t->num; return true;
  case IR_bool: s->kind = SET_bool, s->num = t->num; return true;
  case IR_word: s->kind = SET_word, s->word = t->text; return true;
  default: s->kind = SET_call, s->word = t->text;
  }
  for (const IrTree *k = t->kid; k; k = k->next) s->narg++;
  s->arg = NEW_N(r->m->arena, Setting, s->narg);
  uint32_t i = 0;
  for (const IrTree *k = t->kid; k; k = k->next, i++) {
    s->arg[i].path = k->text;
    if (!read_setting(r, k->kid, loc, &s->arg[i])) return false;
  }
  return true;
}

static bool read_set(Reader *r, const IrTree *t) {
  Setting s = {.path = t->text};
  if (!read_notes(r, t, &s.loc, 0) || !read_setting(r, t->kid, s.loc, &s)) return false;
  vec_push(r->m->arena, &r->m->set, s);
  return true;
}

static bool read_output(Reader *r, const IrTree *t) {
  Output o = {.name = t->text};
  for (const IrTree *k = t->kid; k; k = k->next)
    if (k->kind == IR_attr && k->kid) o.coef = k->kid->num;
    else if (k->kind == IR_attr) o.per_step = true;
  if (!read_notes(r, t, &o.loc, 0)) return false;
  vec_push(r->m->arena, &r->m->output, o);
  return true;
}

static bool read_init(Reader *r, const IrTree *t, Var *v) {
  uint32_t kind;
  if (!look(&r->init_kind, t->text, &kind)) return unknown(r, t, "initial value");
  v->init = (InitKind)kind;
  if (t->kid) v->a = t->kid->num;
  if (t->kid && t->kid->next) v->b = t->kid->next->num;
  return !(t->kid && t->kid->next && t->kid->next->next) || bad(r, t->span, "an initial value has at most 2 numbers");
}

static bool read_stored(Reader *r, const IrTree *t, Var *v) {
  uint32_t n = 0;
  int64_t axis;
  for (const IrTree *k = t->kid; k; k = k->next) {
    if (n == r->m->type.at[v->type].ndim) return bad(r, k->span, "more axes than the variable has dims");
    if (!whole(r, k, 0, MAX_DIMS, &axis)) return false;
    v->axis[n++] = (uint8_t)axis;
  }
  return true;
}

static bool read_variable(Reader *r, const IrTree *t) {
  Var v = {.name = t->text};
  uint32_t kind;
  if (var_find(r->m, t->text)) return twice(r, t, "variable");
  if (!look(&r->var_kind, t->kid->text, &kind)) return unknown(r, t->kid, "kind of variable");
  v.kind = (VarKind)kind;
  if (!read_type(r, t->kid->next, &v.type)) return false;
  for (uint32_t i = 0; v.kind == VAR_param && i < r->m->type.at[v.type].ndim; i++) v.axis[i] = (uint8_t)i;
  for (const IrTree *k = t->kid->next->next; k; k = k->next) {
    if (k->kind != IR_attr) continue;
    bool ok = true;
    if (*k->text == '=') ok = read_init(r, k->kid, &v);
    else if (*k->text == 'o') ok = read_var(r, k->kid, &v.of);
    else if (*k->text == 's') ok = read_stored(r, k, &v);
    else if (*k->text == 'p') ok = read_axes(r, k, &v.partial);
    else v.decay = true;
    if (!ok) return false;
  }
  if (!read_notes(r, t, &v.loc, &v.why)) return false;
  Text why;
  text_init(&why, r->temp);
  VarId id = var_add(r->m, v);
  return var_check(r->m, id, &why) || bad(r, t->span, why.s);
}

// ---- nodes --------------------------------------------------------------------------------------------------------
typedef struct {                                        // one node's line
  Reader *r;
  const IrTree *t;
  Op op;
  Attr at;
  VEC(ValId) in;
  VEC(TypeId) type;
  uint32_t nout, nnum;
  VEC(NamedNum) args;
  FnId body;
  Build b;
  bool poison;                                          // it uses what a line with an error would have defined
} Line;

static bool read_value(Reader *r, const IrTree *t, ValId *v, bool *poison) {
  const uint64_t *id = map_get(&r->value, (uint64_t)t->num);
  *v = id ? (ValId)*id : 0;
  if (!*v && (id || r->echo)) return *poison = true, false;
  return *v || err(r, t->span, "IR03", "no value %%%u above this", (uint32_t)t->num);
}

static bool push_dim(Line *l, const IrTree *t, DimId *to, uint8_t *n, unsigned kind) {
  if (!(op_info[l->op].attrs & kind))
    return err(l->r, t->span, "IR04", "%s names no dims %s", op_info[l->op].name,
               kind == AT_TO ? "after an arrow" : "in brackets");
  if (*n == MAX_DIMS) return err(l->r, t->span, "IR04", "at most %d dims are named", MAX_DIMS);
  return read_dim(l->r, t, &to[(*n)++]);
}

static bool read_arg(Line *l, const IrTree *t) {
  Reader *r = l->r;
  unsigned has = op_info[l->op].attrs;
  const IrTree *v = t->kid;
  if (has & AT_AT && !strcmp(t->text, attr_at_name(l->op)))
    return whole(r, v, INT64_MIN, INT64_MAX, &l->at.at);
  if (has & AT_AXES && !strcmp(t->text, "over")) return read_axes(r, t, &l->at.axes);
  if (has & AT_PATH && !strcmp(t->text, "path") && v->kind == IR_axis && !v->next)
    return l->at.path = v->text, true;
  if (v->kind != IR_num)
    return err(r, v->span, "IR04", "'%s' of %s is no number", t->text, op_info[l->op].name);
  if (l->op == OP_shift && !strcmp(t->text, "fill")) return l->at.num = v->num, true;
  if (!(has & AT_ARGS)) return err(r, t->span, "IR04", "%s has no '%s'", op_info[l->op].name, t->text);
  if (l->args.n == UINT8_MAX) return bad(r, t->span, "too many numbers");
  vec_push(r->m->arena, &l->args, (NamedNum){t->text, v->num});
  return true;
}

static bool read_kid(Line *l, const IrTree *t) {
  Reader *r = l->r;
  const char *op = op_info[l->op].name;
  ValId v;
  TypeId type;
  int64_t num;
  switch (t->kind) {
  case IR_result: return ++l->nout <= UINT16_MAX || bad(r, t->span, "too many results");
  case IR_in: return push_dim(l, t, l->at.dims, &l->at.ndims, AT_DIMS);
  case IR_to: return push_dim(l, t, l->at.to, &l->at.nto, AT_TO);
  case IR_value:
    if (!read_value(r, t, &v, &l->poison)) return false;
    if (l->in.n == UINT16_MAX) return bad(r, t->span, "too many operands");
    vec_push(r->temp, &l->in, v);
    return true;
  case IR_var:
    if (!(op_info[l->op].attrs & AT_VAR) || l->at.var)
      return err(r, t->span, "IR04", "%s names %s variable", op, l->at.var ? "one" : "no");
    return read_var(r, t, &l->at.var);
  case IR_num:
    if (l->op != OP_const || l->nnum++)
      return err(r, t->span, "IR04", "%s takes %s", op, l->op == OP_const ? "one number" : "no bare number");
    return l->at.num = t->num, true;
  case IR_arg: return read_arg(l, t);
  case IR_bodyname:
    if (!fn_find(r->m, t->text)) return unknown(r, t, "body");
    return l->body = fn_id(fn_find(r->m, t->text)), true;
  case IR_type:
    if (!read_type(r, t, &type)) return false;
    vec_push(r->temp, &l->type, type);
    return true;
  case IR_loc: return read_place(r, t, &l->b.loc);
  case IR_path: return l->b.path = t->text, true;
  case IR_layer: return whole(r, t->kid, 1, UINT32_MAX, &num) && (l->b.layer = (uint32_t)num, true);
  case IR_fwd:
    if (!read_value(r, t, &v, &l->poison)) return false;
    l->b.fwd = r->f->val.at[v].def;
    return l->b.fwd || err(r, t->span, "IR04", "%%%u is an argument; fwd names a node by its result", (uint32_t)t->num);
  case IR_why: return l->b.why = t->text, true;
  default: return bad(r, t->span, "this does not belong to a node");
  }
}

static bool read_line(Line *l) {
  Reader *r = l->r;
  Module *m = r->m;
  uint32_t op;
  if (!look(&r->op, l->t->text, &op)) return unknown(r, l->t, "op");
  const OpInfo *o = &op_info[l->op = (Op)op];
  for (const IrTree *k = l->t->kid; k; k = k->next)
    if (!read_kid(l, k)) return false;
  if (o->nin >= 0 && l->in.n != (uint32_t)o->nin)
    return err(r, l->t->span, "IR04", "%s takes %d operands, not %u", o->name, o->nin, l->in.n);
  if (o->nout >= 0 && l->nout != (uint32_t)o->nout)
    return err(r, l->t->span, "IR04", "%s gives %d results, not %u", o->name, o->nout, l->nout);
  if (l->op == OP_const && !l->nnum) return bad(r, l->t->span, "const takes a number");
  if (l->type.n > 1 && l->type.n != l->nout)
    return err(r, l->t->span, "IR04", "%u results and %u types", l->nout, l->type.n);
  if (l->type.n && !l->nout)
    return err(r, l->t->span, "IR04", "%s gives no result, and a type is written", o->name);
  if (!l->b.loc.line) l->b.loc = l->t->span;
  if (!l->b.why) l->b.why = intern(m->in, "text");
  l->at.args = l->args.at, l->at.nargs = (uint8_t)l->args.n;

  TypeId few[8] = {0}, *types = l->nout > COUNT(few) ? NEW_N(r->temp, TypeId, l->nout) : few;
  for (uint32_t i = 0; i < l->nout && l->type.n; i++) types[i] = l->type.at[l->type.n == 1 ? 0 : i];
  ir_add_typed(&l->b, l->op, l->in.at, l->in.n, l->at, types, l->nout, l->body);
  vec_push(r->temp, &r->place, l->t->span);
  NodeId id = r->f->node.n - 1;
  Text why;
  text_init(&why, r->temp);
  if (l->type.n || !l->nout) return true;
  if (l->body && !m->fn.at[l->body]->ret.n)
    return bad(r, l->t->span, "its body stands below: its result's type must be written");
  if (!node_infer(m, r->f, id, types, &why)) return err(r, l->t->span, "IR04", "%s: %s", o->name, why.s);
  for (uint32_t i = 0; i < l->nout; i++) r->f->val.at[fn_node(r->f, id)->out + i].type = types[i];
  return true;
}

static void read_node(Reader *r, const IrTree *t) {
  Line l = {.r = r, .t = t, .b = {.fn = r->f, .path = ""}};
  uint32_t before = r->f->node.n;
  bool ok = read_line(&l);
  if (!ok) r->echo = r->echo || !l.poison;
  ValId v = ok ? fn_node(r->f, before)->out : 0;
  for (const IrTree *k = t->kid; k && k->kind == IR_result; k = k->next) {
    uint64_t key = (uint64_t)k->num;
    if (map_get(&r->value, key)) err(r, k->span, "IR03", "value %%%u is defined twice", (uint32_t)key);
    map_put(&r->value, key, v);
    if (ok) r->f->val.at[v++].name = k->text;
  }
}

// ---- functions ----------------------------------------------------------------------------------------------------
static Fn *read_head(Reader *r, const IrTree *t) {
  if (fn_find(r->m, t->text)) return twice(r, t, "function"), (Fn *)0;
  Fn *f = fn_create(r->m, t->text);
  uint32_t op;
  for (const IrTree *k = t->kid; k; k = k->next) {
    TypeId type;
    if (k->kind == IR_formal && read_type(r, k->kid, &type)) ir_arg(f, type, k->text);
    if (k->kind != IR_name) continue;
    if (!look(&r->op, k->text, &op)) unknown(r, k, "op");
    else f->is_body = true, f->body_of = (Op)op;
  }
  return f;
}

static void read_fn(Reader *r, const IrTree *t, Fn *f) {
  r->f = f, r->place.n = 0;
  map_init(&r->value, r->temp);
  vec_push(r->temp, &r->place, t->span);
  ValId v = 1;
  for (const IrTree *k = t->kid; k; k = k->next)
    if (k->kind == IR_formal) {
      if (map_get(&r->value, (uint64_t)k->num))
        err(r, k->span, "IR03", "value %%%u is defined twice", (uint32_t)k->num);
      map_put(&r->value, (uint64_t)k->num, v++);
    }
  for (const IrTree *k = t->kid; k; k = k->next)
    if (k->kind == IR_node) read_node(r, k);
  for (const IrTree *k = t->kid; k; k = k->next) {
    bool poison = false;
    if (k->kind == IR_ret && read_value(r, k, &v, &poison)) ir_return(f, v, k->text);
  }
}

// once all functions are there: each node against its op's rule
static void check_fn(Reader *r, const Fn *f, const Span *place) {
  Text why;
  text_init(&why, r->temp);
  for (NodeId id = 1; id < f->node.n; id++) {
    why.n = 0;
    if (!node_check(r->m, f, id, &why))
      err(r, place[id], "IR04", "%s: %s", op_info[fn_node(f, id)->op].name, why.s);
  }
}

static void read_functions(Reader *r, const IrTree *t) {
  typedef struct { const IrTree *t; Fn *f; const Span *place; } Head;
  VEC(Head) head = {0};
  for (const IrTree *k = t->kid; k; k = k->next)
    if (k->kind == IR_fn || k->kind == IR_body) vec_push(r->temp, &head, (Head){k, read_head(r, k), 0});
  if (r->d->errors != r->errors) return;
  for (uint32_t i = 0; i < head.n; i++) {
    r->place.at = 0, r->place.room = 0;
    read_fn(r, head.at[i].t, head.at[i].f);
    head.at[i].place = r->place.at;
  }
  for (uint32_t i = 0; i < head.n && r->d->errors == r->errors; i++) check_fn(r, head.at[i].f, head.at[i].place);
}

// ---- the module -----------------------------------------------------------------------------------------------------
static void read_item(Reader *r, const IrTree *t) {
  switch (t->kind) {
  case IR_mesh: read_mesh(r, t); break;
  case IR_map: read_map(r, t); break;
  case IR_dim: read_dim_decl(r, t); break;
  case IR_set: read_set(r, t); break;
  case IR_output: read_output(r, t); break;
  case IR_variable: read_variable(r, t); break;
  default: break;                                       // functions follow
  }
}

static void init_words(Reader *r) {
  Intern *in = r->m->in;
  map_init(&r->op, r->temp), map_init(&r->dtype, r->temp), map_init(&r->file, r->temp);
  map_init(&r->var_kind, r->temp), map_init(&r->init_kind, r->temp);
  for (Op o = OP_none + 1; o < OP_COUNT; o++) map_put(&r->op, key_of(intern(in, op_info[o].name)), o);
  for (DType t = DT_none + 1; t < DT_COUNT; t++) map_put(&r->dtype, key_of(intern(in, dtype_name(t))), t);
  for (uint32_t i = 0; i < VAR_COUNT; i++) map_put(&r->var_kind, key_of(intern(in, var_kind_name[i])), i);
  for (uint32_t i = 0; i < INIT_COUNT; i++) map_put(&r->init_kind, key_of(intern(in, init_kind_name[i])), i);
}

Module *ir_parse(Arena *a, Intern *in, Diag *d, uint16_t source) {
  Arena *temp = arena_create();
  Module *m = module_create(a, in, d);
  Reader r = {.m = m, .d = d, .temp = temp, .errors = d->errors};
  IrTree *t = ir_text_parse(temp, in, d, source);
  init_words(&r);
  for (const IrTree *k = t ? t->kid : 0; k; k = k->next) read_item(&r, k);
  if (t && d->errors == r.errors) read_functions(&r, t);
  bool ok = t && d->errors == r.errors && ir_verify(m, 0);
  arena_destroy(temp);
  return ok ? m : 0;
}
