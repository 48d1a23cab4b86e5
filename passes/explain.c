// explain.c -- see explain.h.
#include "passes/explain.h"
#include "passes/layout.h"
#include "passes/pass.h"
#include <stdlib.h>
#include <string.h>

// ---- words ------------------------------------------------------------------------------------------------
static const char *thousands(Arena *a, int64_t n) {                   // 124,439,808
  char digits[32], *out = arena_alloc(a, 48), *o = out;
  int k = snprintf(digits, sizeof digits, "%lld", (long long)n);
  for (int i = 0; i < k; i++) {
    *o++ = digits[i];
    if ((k - i - 1) % 3 == 0 && i + 1 < k && digits[i] != '-') *o++ = ',';
  }
  return out;
}

static const char *bytes_text(Arena *a, double n) {
  static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t u = 0;
  while (n >= 1024 && u + 1 < COUNT(unit)) n /= 1024, u++;
  return arena_printf(a, u && n < 100 ? "%.1f %s" : "%.0f %s", n, unit[u]);
}

static const char *place(const Program *p, Span at) { return span_text(p->diag, p->arena, at); }

static void setting_text(Text *t, const Program *p, const Setting *s) {
  switch (s->kind) {
  case SET_num: text_puts(t, number_text(p->arena, number_of(s->num))); break;
  case SET_bool: text_puts(t, s->num != 0 ? "on" : "off"); break;
  case SET_word: text_puts(t, s->word); break;
  case SET_call:
    text_puts(t, s->word);
    for (uint32_t i = 0; i < s->narg; i++) {
      text_printf(t, "%s%s%s", i ? ", " : "(", s->arg[i].path, *s->arg[i].path ? " = " : "");
      setting_text(t, p, &s->arg[i]);
    }
    if (s->narg) text_puts(t, ")");
  }
}

static void setting_of(Text *t, const Program *p, const char *path,
                       const char *before) {  // "compute bf16"; nothing when it is not set
  const Setting *s = setting_find(p->module, path);
  if (!s) return;
  text_puts(t, before);
  setting_text(t, p, s);
}

// ---- parameters -------------------------------------------------------------------------------------------
static void shape_text(Text *t, const Piece *piece) {
  text_puts(t, "[");
  for (int i = 0; i < piece->ndim; i++) text_printf(t, "%s%lld", i ? ", " : "", (long long)piece->shape[i]);
  text_puts(t, "]");
}

static void dims_text(Text *t, const Module *m, const Var *v) {       // "[embed 64, (qkv 3, heads 4, hd 16)]"
  const Type *type = &m->type.at[v->type];
  text_puts(t, "[");
  for (int i = 0; i < type->ndim; i++) {
    const Dim *d = dim_of(m, type->dim[i]);
    bool with_last = i && v->axis[i] == v->axis[i - 1],
         with_next = i + 1 < type->ndim && v->axis[i] == v->axis[i + 1];
    text_printf(t, "%s%s%s %lld%s", i ? ", " : "", with_next && !with_last ? "(" : "", d->name,
                (long long)d->extent, with_last && !with_next ? ")" : "");
  }
  text_puts(t, "]");
}

static void param_text(Text *t, const Module *m, const Var *v) {
  Pieces tensors = {0};
  Storage s = var_storage(m, v);
  if (storage_pieces(t->arena, &s, &tensors)) return;
  bool holes = strchr(v->name, '{') != 0;
  text_printf(t, "%-44s ", v->name);
  if (!holes) shape_text(t, &tensors.at[0]), text_puts(t, " ");
  text_puts(t, "= ");
  dims_text(t, m, v);
  text_printf(t, " ~ %s", init_kind_name[v->init]);
  if (v->init == INIT_normal) text_printf(t, "(%g)", v->a);
  if (v->init == INIT_uniform) text_printf(t, "(%g, %g)", v->a, v->b);
  text_puts(t, v->decay ? ", decays\n" : "\n");
  for (uint32_t i = 0; i < tensors.n && holes; i++) {
    text_printf(t, "  %-42s ", tensors.at[i].name);
    shape_text(t, &tensors.at[i]);
    text_puts(t, "\n");
  }
}

void params_print(Text *t, const Module *m) {
  for (VarId v = 1; v < m->var.n; v++)
    if (m->var.at[v].kind == VAR_param) param_text(t, m, &m->var.at[v]);
}

// ---- the whole program ------------------------------------------------------------------------------------
static void parameters(Text *t, const Program *p) {
  const Module *m = p->module;
  int64_t all = 0, decayed = 0;
  uint32_t n = 0, ndecayed = 0, tensors = 0;
  for (VarId v = 1; v < m->var.n; v++) {
    const Var *var = &m->var.at[v];
    if (var->kind != VAR_param) continue;
    Storage s = var_storage(m, var);
    Pieces pieces = {0};
    if (!storage_pieces(t->arena, &s, &pieces)) tensors += pieces.n;
    int64_t count = storage_valid(&s);
    n++, all += count;
    if (var->decay) ndecayed++, decayed += count;
  }
  text_printf(t, "  parameters   %s in %u tensors; weight decay on %s, in %u of %u\n",
              thousands(t->arena, all), tensors, thousands(t->arena, decayed), ndecayed, n);
}

static void type_text(Text *t, const Program *p, const Ast *type) {   // "i32[batch 4, seq 128]"
  text_printf(t, "%s[", type->text);
  for (uint32_t i = 0; i < type->kid[0]->n; i++) {
    const uint64_t *d = map_get(&p->user.dim_by_name, key_of(type->kid[0]->kid[i]->text));
    text_printf(t, "%s%s", i ? ", " : "", type->kid[0]->kid[i]->text);
    if (d) text_printf(t, " %lld", (long long)dim_of(p->module, (DimId)*d)->extent);
  }
  text_puts(t, "]");
}

static void output_text(Text *t, const Program *p, const Ast *formal) {
  const Output *o = output_find(p->module, formal->text);
  text_printf(t, "%s ", formal->text);
  type_text(t, p, formal->kid[0]);
  if (o)
    text_puts(t, o->per_step ? ", one mean over the whole step" : ", averaged over the step's microbatches");
  if (o && o->coef != 0) text_printf(t, "; in the objective times %g", o->coef);
  else if (o) text_puts(t, "; logged only");
  else text_puts(t, ", where logits are asked for");
}

static void in_and_out(Text *t, const Program *p) {
  const Ast *in = p->model->ast->kid[0], *out = p->model->ast->kid[1];
  for (uint32_t i = 0; i < in->n; i++) {
    text_printf(t, "  %-12s %s ", i ? "" : "inputs", in->kid[i]->text);
    type_text(t, p, in->kid[i]->kid[0]);
    text_puts(t, "\n");
  }
  for (uint32_t i = 0; i < out->n; i++) {
    text_printf(t, "  %-12s ", i ? "" : "outputs");
    output_text(t, p, out->kid[i]);
    text_puts(t, "\n");
  }
}

static void training(Text *t, const Program *p) {
  const Module *m = p->module;
  for (DimId d = 1; d < m->dim.n; d++) {
    long long samples = (long long)m->dim.at[d].extent, n = (long long)p->global_batch / samples;
    if (m->dim.at[d].sample)
      text_printf(t, "  %-12s %lld samples: %lld microbatch%s of %lld\n", "step", (long long)p->global_batch,
                  n, n == 1 ? "" : "es", samples);
  }
  text_printf(t, "  %-12s ", "optimizer");
  setting_of(t, p, "train.optimizer", ""), setting_of(t, p, "train.clip", ", clip ");
  setting_of(t, p, "train.schedule", ", schedule "), setting_of(t, p, "train.steps", ", steps ");
  text_printf(t, "\n  %-12s ", "precision");
  setting_of(t, p, "precision.compute", "compute "), setting_of(t, p, "precision.params", ", params "),
    setting_of(t, p, "precision.grads", ", grads "), setting_of(t, p, "precision.loss_scale", ", loss scale ");
  const Scope *scopes[] = {&p->user, &p->prelude};
  uint32_t n = 0;
  for (uint32_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < scopes[s]->def.n; i++)
      if (scopes[s]->def.at[i].keep != DT_none)
        text_printf(t, "%s%s %s", n++ ? ", " : "; at least ", dtype_name(scopes[s]->def.at[i].keep),
                    scopes[s]->def.at[i].name);
  text_puts(t, "\n");
}

// What the text says and nothing heeds.
static void unheeded(Text *t, const Program *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->module->set.n; i++) {
    const Setting *s = &p->module->set.at[i];
    if (!s->loc.line || !setting_unmade(s->path)) continue;
    if (n++) text_puts(t, ", ");
    else text_printf(t, "  %-12s ", "not yet");
    text_printf(t, "%s = ", s->path);
    setting_text(t, p, s);
  }
  if (n) text_printf(t, ": no effect yet\n");
}

static void rule_text(Text *t, const Module *m, const MapRule *r) {
  text_printf(t, "%s%s ->", r->weak ? "weak " : "", r->dim);
  for (uint32_t k = 0; k < r->naxis; k++) text_printf(t, "%s %s", k ? "," : "", m->axis.at[r->axis[k]].name);
}

static int64_t ranks_of(const Module *m) {
  int64_t n = 1;
  for (uint32_t i = 0; i < m->axis.n; i++) n *= m->axis.at[i].size;
  return n;
}

static void the_mesh(Text *t, const Program *p) {
  const Module *m = p->module;
  text_printf(t, "  %-12s ", "mesh");
  for (uint32_t i = 0; i < m->axis.n; i++)
    text_printf(t, "%s%s = %d", i ? ", " : "", m->axis.at[i].name, m->axis.at[i].size);
  text_printf(t, ": %lld rank%s\n", (long long)ranks_of(m), ranks_of(m) == 1 ? "" : "s");
  for (uint32_t i = 0; i < m->rule.n; i++) {
    text_printf(t, "%s", i ? "; " : "  rules        ");
    rule_text(t, m, &m->rule.at[i]);
  }
  if (m->rule.n) text_puts(t, "\n");
}

// What a rank stores of the variables, and what it would if none were shared out.
static void shared_out(Text *t, const Program *p) {
  static const struct { VarKind kind; const char *name; } kinds[] = {
      {VAR_param, "parameters"}, {VAR_copy, "compute copies"}, {VAR_grad, "gradients"}, {VAR_moment, "moments"}};
  Module *m = p->module;
  if (ranks_of(m) == 1) return;
  text_printf(t, "  %-12s %d, bucket %s; on a rank", "zero", (int)setting_num(m, "parallel.zero", 0),
              bytes_text(p->arena, setting_num(m, "parallel.bucket", 25 << 20)));
  Rules r;
  bool known = rules_init(&r, m, false);
  for (size_t k = 0, n = 0; k < COUNT(kinds) && known; k++) {
    int64_t here = 0, whole = 0;
    for (VarId v = 1; v < m->var.n; v++) {
      Type x = m->type.at[m->var.at[v].type];
      if (m->var.at[v].kind != kinds[k].kind) continue;
      here += type_bytes(m, &x);
      for (int i = 0; i < x.ndim; i++) x.split[i] = r.strong[x.dim[i]];
      whole += type_bytes(m, &x);
    }
    if (whole) text_printf(t, "%s%s %s", n++ ? ", " : " ", kinds[k].name, bytes_text(p->arena, (double)here));
    if (whole != here) text_printf(t, " of %s", bytes_text(p->arena, (double)whole));
  }
  text_puts(t, "\n");
}

static void functions(Text *t, const Module *m) {
  text_printf(t, "  %-12s ", "functions");
  uint32_t n = 0, bodies = 0;
  for (FnId i = 1; i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    bodies += f->is_body;
    if (!f->is_body) text_printf(t, "%s%s %u", n++ ? ", " : "", f->name, f->node.n - 1);
  }
  text_printf(t, " operations; %u bod%s of the prelude's functions\n", bodies, bodies == 1 ? "y" : "ies");
}

// ---- collectives ------------------------------------------------------------------------------------------
typedef struct {
  const Fn *fn;
  NodeId node;
  Str why;
  uint32_t n;
  int64_t bytes;
} Coll;  // n alike: the same function, kind, axes, line and reason
typedef VEC(Coll) Colls;

// The reason with * for the numbers in paths: h.*.attn.c_attn.weight
static Str folded_why(const Module *m, Arena *a, Str why) {
  Text t;
  text_init(&t, a);
  for (const char *c = why; *c; c++) {
    size_t n = strspn(c, "0123456789");
    if (n && c > why && c[-1] == '.' && c[n] == '.') text_puts(&t, "*"), c += n - 1;
    else text_add(&t, c, 1);
  }
  return intern(m->in, t.s);
}

static Colls collectives_of(const Module *m, Arena *a) {
  Colls all = {0};
  Map seen;
  map_init(&seen, a);
  for (FnId i = 1; i < m->fn.n; i++)
    for (NodeId id = 1; id < m->fn.at[i]->node.n && !m->fn.at[i]->is_body; id++) {
      const Fn *f = m->fn.at[i];
      const Node *n = fn_node(f, id);
      if (!op_has(n->op, OPF_COLL)) continue;
      int64_t in = type_bytes(m, val_type(f, node_in(f, n)[0])), out = type_bytes(m, val_type(f, n->out)),
              bytes = MAX(in, out);
      Str why = folded_why(m, a, n->why);
      uint64_t key = hash_mix(
        hash_mix(hash_mix(i, (uint64_t)n->op), hash_mix(n->attr.axes, hash_mix(n->loc.file, n->loc.line))),
        hash_mix(n->loc.col, hash_mix(key_of(why), (uint64_t)bytes)));
      const uint64_t *at = map_get(&seen, key);
      if (at) { all.at[*at].n++; continue; }
      map_put(&seen, key, all.n);
      vec_push(a, &all, (Coll){f, id, why, 1, bytes});
    }
  return all;
}

static int64_t microbatches_of(const Program *p) {
  const Module *m = p->module;
  for (DimId d = 1; d < m->dim.n; d++)
    if (m->dim.at[d].sample && !m->dim.at[d].whole) return p->global_batch / MAX(m->dim.at[d].extent, 1);
  return 1;
}

// How often a step runs f: once for each microbatch, once, or not at all.
static int64_t runs_of(const Program *p, const Fn *f) {
  if (!strcmp(f->name, "micro") || !strcmp(f->name, "prologue")) return microbatches_of(p);
  return !strcmp(f->name, "update");
}

// What a step sends, by axes and kind.
static void coll_totals(Text *t, const Program *p, const Colls *all) {
  const Module *m = p->module;
  double most = 0;
  text_printf(t, "\nin a step of %lld microbatch%s, on a rank: axes, kind, times, bytes\n",
              (long long)microbatches_of(p), microbatches_of(p) == 1 ? "" : "es");
  for (uint32_t axes = 1; axes < 1u << m->axis.n; axes++)
    for (Op op = OP_none + 1; op < OP_COUNT; op++) {
      int64_t times = 0;
      double bytes = 0;
      for (uint32_t i = 0; i < all->n; i++) {
        const Coll *c = &all->at[i];
        const Node *n = fn_node(c->fn, c->node);
        if (n->op != op || n->attr.axes != axes) continue;
        times += c->n * runs_of(p, c->fn), bytes += (double)c->n * (double)runs_of(p, c->fn) * (double)c->bytes;
      }
      most += bytes;
      if (times)
        text_printf(t, "  %-9s %-14s %6lld   %s\n", axes_text(m, t->arena, (uint8_t)axes, ","), op_info[op].name,
                    (long long)times, bytes_text(t->arena, bytes));
    }
  text_printf(t, "  %-33s %s\n", "all", bytes_text(t->arena, most));
}

static void collectives(Text *t, const Program *p) {
  const Module *m = p->module;
  Colls all = collectives_of(m, t->arena);
  if (ranks_of(m) == 1) return;
  text_printf(t, "\n%s; micro runs once for each microbatch. axes and members, times, bytes on a rank, line, reason:\n",
              all.n ? "collectives" : "no collectives");
  for (uint32_t i = 0; i < all.n; i++) {
    const Node *n = fn_node(all.at[i].fn, all.at[i].node);
    text_printf(t, "  %-8s %-14s %-6s of %-2lld %4u x %-9s %s  %s\n", all.at[i].fn->name, op_info[n->op].name,
                axes_text(m, t->arena, n->attr.axes, ","), (long long)axes_ways(m, n->attr.axes), all.at[i].n,
                bytes_text(t->arena, (double)all.at[i].bytes), place(p, n->loc), all.at[i].why);
  }
  if (all.n) coll_totals(t, p, &all);
}

void explain_all(Text *t, const Program *p) {
  text_printf(t, "%s (%s)\n", p->model->name, place(p, p->model->ast->span));
  parameters(t, p);
  in_and_out(t, p);
  training(t, p);
  the_mesh(t, p);
  unheeded(t, p);
  shared_out(t, p);
  functions(t, p->module);
  collectives(t, p);
}

// ---- one name ---------------------------------------------------------------------------------------------
static bool name_output(Text *t, const Program *p, const char *what) {
  const Ast *out = p->model->ast->kid[1];
  for (uint32_t i = 0; i < out->n; i++) {
    if (strcmp(out->kid[i]->text, what)) continue;
    text_printf(t, "output at %s: ", place(p, out->kid[i]->span));
    output_text(t, p, out->kid[i]);
    text_puts(t, "\n");
    return true;
  }
  return false;
}

static bool name_dim(Text *t, const Program *p, const char *what) {
  const Module *m = p->module;
  const uint64_t *at = map_get(&p->user.dim_by_name, key_of(intern(p->in, what)));
  if (!at) return false;
  DimId id = (DimId)*at;
  const Dim *d = dim_of(m, id);
  const uint64_t *item = map_get(&p->dim_item, key_of(d->name));
  text_printf(t, "dim %s, at %s: %lld", d->name, place(p, p->dim.at[*item].ast->span), (long long)d->extent);
  if (d->size != d->extent) text_printf(t, ", stored as %lld", (long long)d->size);
  if (d->sample) text_puts(t, ", the samples of a microbatch on all ranks");
  if (d->root != id) text_printf(t, ", a role of %s", dim_of(m, d->root)->name);
  if (d->zigzag) text_printf(t, ", in %u chunks in zigzag order", d->zigzag);
  text_puts(t, "\n");
  for (DimId k = 1; k < m->dim.n; k++)
    if (k != id && dim_of(m, k)->root == id) text_printf(t, "  its role: %s\n", dim_of(m, k)->name);
  for (uint32_t i = 0; i < m->rule.n; i++) {
    if (strcmp(m->rule.at[i].dim, what)) continue;
    text_puts(t, "  rule: ");
    rule_text(t, m, &m->rule.at[i]);
    text_printf(t, "  (%s)\n", place(p, m->rule.at[i].loc));
  }
  return true;
}

static bool name_config(Text *t, const Program *p, const char *what) {
  const uint64_t *at = map_get(&p->user.config_by_name, key_of(intern(p->in, what)));
  if (!at) return false;
  const Config *c = &p->user.config.at[*at];
  text_printf(t, "config %s = %s, from %s", c->name, number_text(p->arena, c->value),
              c->from ? c->from : "the text");
  text_printf(t, " (%s)\n", place(p, c->loc));
  return true;
}

static bool name_setting(Text *t, const Program *p, const char *what) {
  const char *doc = setting_doc(what);
  if (!doc) return false;
  text_printf(t, "setting %s: %s%s\n", what, doc, setting_unmade(what) ? "; no effect yet" : "");
  const Setting *s = setting_find(p->module, what);
  const char *dot = strrchr(what, '.');
  if (!s && dot) {                                                     // one argument of a call
    const Setting *call = setting_find(p->module, arena_strndup(p->arena, what, (size_t)(dot - what)));
    s = call ? setting_arg(call, dot + 1) : 0;
  }
  if (!s) return true;
  text_puts(t, "  here: ");
  setting_text(t, p, s);
  text_printf(t, "%s%s%s\n", s->loc.line ? "  (" : "", s->loc.line ? place(p, s->loc) : "",
              s->loc.line ? ")" : "");
  return true;
}

static bool name_param(Text *t, const Program *p, const char *what) {
  const Module *m = p->module;
  bool found = false;
  for (VarId v = 1; v < m->var.n; v++) {
    const Var *var = &m->var.at[v];
    if (var->kind != VAR_param || strcmp(var->name, what)) continue;
    found = true;
    text_printf(t, "parameter, at %s: ", place(p, var->loc));
    param_text(t, m, var);
    for (FnId i = 1; i < m->fn.n; i++)
      for (NodeId n = 1; n < m->fn.at[i]->node.n; n++) {
        const Node *node = fn_node(m->fn.at[i], n);
        VarId used = op_has(node->op, OPF_STATE) ? node->attr.var : 0;
        if (used && (used == v || m->var.at[used].of == v))
          text_printf(t, "  %s in %s: %s\n", op_info[node->op].name, m->fn.at[i]->name, m->var.at[used].name);
      }
  }
  return found;
}

// Lines first to last of a source.
static void source_lines(Text *t, const Source *s, uint32_t first, uint32_t last) {
  const char *c = s->text, *end = s->text + s->n;
  for (uint32_t line = 1; c < end && line <= last; line++) {
    const char *nl = memchr(c, '\n', (size_t)(end - c)), *next = nl ? nl + 1 : end;
    if (line >= first) text_printf(t, "  %.*s\n", (int)((nl ? nl : end) - c), c);
    c = next;
  }
}

static bool name_function(Text *t, const Program *p, const char *what) {
  const Scope *scopes[] = {&p->user, &p->prelude};
  for (uint32_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < scopes[s]->def.n; i++) {
      const Def *d = &scopes[s]->def.at[i];
      if (strcmp(d->name, what)) continue;
      text_printf(t, "%s, at %s",
                  d->ast->kind == N_fn      ? "function"
                  : d->ast->kind == N_block ? "block"
                                            : "model",
                  place(p, d->ast->span));
      if (d->keep != DT_none) text_printf(t, "; at least %s inside", dtype_name(d->keep));
      text_puts(t, "\n");
      source_lines(t, &p->diag->source.at[d->ast->span.file], d->ast->span.line, d->ast->span.end_line);
      return true;
    }
  for (size_t i = 0; prim_form(i); i++) {
    size_t n = strlen(what);
    if (strncmp(prim_form(i), what, n) || (prim_form(i)[n] != '(' && prim_form(i)[n] != '[')) continue;
    text_printf(t, "primitive: %s\n", prim_form(i));
    return true;
  }
  return false;
}

static bool node_asked(const Program *p, const Fn *f, NodeId n,
                       const char *what) {  // by %value, line, or part of its path
  const Node *node = fn_node(f, n);
  char *end;
  if (*what == '%') {
    unsigned long v = strtoul(what + 1, &end, 10);
    return !*end && node->nout && v >= node->out && v < (unsigned long)node->out + node->nout;
  }
  unsigned long line = strtoul(what, &end, 10);
  if (!*end) return node->loc.line == line && strcmp(p->diag->source.at[node->loc.file].path, "prelude.mt");
  if (*node->path && strstr(node->path, what)) return true;
  for (uint32_t i = 0; i < node->nout; i++)
    if (f->val.at[node->out + i].name && !strcmp(f->val.at[node->out + i].name, what)) return true;
  return op_has(node->op, OPF_STATE) && strstr(p->module->var.at[node->attr.var].name, what);
}

static bool name_nodes(Text *t, const Program *p, const char *what) {
  const Module *m = p->module;
  bool found = false;
  for (FnId i = 1; i < m->fn.n; i++) {
    const Fn *f = m->fn.at[i];
    bool head = false;
    for (NodeId n = 1; n < f->node.n; n++) {
      if (!node_asked(p, f, n, what)) continue;
      if (!head) text_printf(t, "%s:\n", f->name), head = true;
      ir_print_node(t, f, n);
      text_puts(t, "\n");
      found = true;
    }
  }
  return found;
}

bool explain_name(Text *t, const Program *p, const char *what) {
  if (!*what) return false;
  bool (*const kind[])(Text *, const Program *, const char *) = {name_output, name_param,   name_dim,
                                                                 name_config, name_setting, name_function};
  bool named = false;
  for (size_t i = 0; i < COUNT(kind); i++)
    named = kind[i](t, p, what) || named;  // one word may name several things
  return named || name_nodes(t, p, what);
}

void explain_names(const Program *p, Names *out) {
  const Module *m = p->module;
  const Scope *scopes[] = {&p->user, &p->prelude};
  for (uint32_t i = 0; i < m->output.n; i++) vec_push(p->arena, out, m->output.at[i].name);
  for (VarId v = 1; v < m->var.n; v++)
    if (m->var.at[v].kind == VAR_param) vec_push(p->arena, out, m->var.at[v].name);
  for (uint32_t i = 0; i < p->dim.n; i++) vec_push(p->arena, out, p->dim.at[i].ast->text);
  for (uint32_t i = 0; i < p->user.config.n; i++) vec_push(p->arena, out, p->user.config.at[i].name);
  for (uint32_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < scopes[s]->def.n; i++) vec_push(p->arena, out, scopes[s]->def.at[i].name);
  for (uint32_t i = 0; i < m->set.n; i++) vec_push(p->arena, out, m->set.at[i].path);
}

// ---- lists ------------------------------------------------------------------------------------------------
void ops_list(Text *t) {
  static const char *const split[] = {
    [SPLIT_free] = "free", [SPLIT_sum] = "sum", [SPLIT_max] = "max",
    [SPLIT_internal] = "internal", [SPLIT_frozen] = "frozen",
  };
  static const char *const kernel[KC_COUNT] = {
    [KC_none] = "-", [KC_map] = "map", [KC_row] = "row",
    [KC_gemm] = "gemm", [KC_scatter] = "scatter", [KC_tile] = "tile", [KC_coll] = "coll",
  };
  text_puts(t, "primitives of the language\n");
  for (size_t i = 0; prim_form(i); i++) text_printf(t, "  %s\n", prim_form(i));
  text_puts(
    t, "\noperations of the graph: operands, results, kernel, what a split of the dims in brackets means\n");
  for (Op o = OP_none + 1; o < OP_COUNT; o++) {
    const OpInfo *info = &op_info[o];
    const char *in = info->nin < 0 ? "any" : arena_printf(t->arena, "%d", info->nin),
               *out = info->nout < 0 ? "any" : arena_printf(t->arena, "%d", info->nout);
    text_printf(t, "  %-16s %-4s %-4s %-8s", info->name, in, out, kernel[info->kernel]);
    for (uint32_t i = 0; i < info->nsplit; i++) text_printf(t, " %s", split[info->split[i]]);
    text_puts(t, "\n");
  }
}

void passes_list(Text *t) {
  for (Pass p = PASS_none + 1; p < PASS_COUNT; p++)
    text_printf(t, "  %-12s %s%s\n", pass_info[p].name, pass_info[p].required ? "" : "(optional) ",
                pass_info[p].doc);
}
