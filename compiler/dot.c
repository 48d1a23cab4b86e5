// dot.c -- functions as graphviz pictures. Iterations of the outermost repeat that hold the same ops in the same order
// are drawn once ("layers 1–12 ×12"): dot's time grows faster than the number of nodes. What flows from one iteration
// to the next is dashed. Constants stand inside the nodes that use them.
#include "compiler/ir.h"
#include "grammar/ir_text.h"

typedef struct {
  uint32_t number;                           // Node.layer
  NodeId *node; uint32_t n;                  // in order, without the constants
  uint64_t hash;                             // of the ops
  uint32_t shown;                            // the first layer with the same ops; it is drawn for all of them:
  uint32_t members, second, last;            // how many, the index of the second one, the number of the last
} Layer;

typedef struct {
  Text *t;
  const Fn *f;
  DotOptions o;
  Arena *temp;
  VEC(Layer) layer;                          // [0]: the nodes outside of all
  uint32_t *of, *place;                      // by node: the index of its layer, its place there
  // by value: drawn as one that comes from elsewhere; its type stands at an edge
  bool *noted, *typed;
} Dot;

static const struct { const char *name, *fill; } look[KC_COUNT] = {
  [KC_none] = {"no kernel", "white"}, [KC_map] = {"map", "#eef3dc"}, [KC_row] = {"row", "#d3e8f8"},
  [KC_gemm] = {"gemm", "#fbe0b4"}, [KC_scatter] = {"scatter", "#ead6ef"},
  [KC_tile] = {"attention", "#e9d3b4"}, [KC_coll] = {"collective", "#f6c9c1"},
};

static void escape(Text *t, const char *s) {            // inside of quotes
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') text_printf(t, "\\%c", *s);
    else if (*s == '\n') text_puts(t, "\\n");
    else text_add(t, (unsigned char)*s < 32 || *s == 127 ? "?" : s, 1);
  }
}

// ---- which layers are alike ---------------------------------------------------------------------------------------
static uint64_t node_hash(const Fn *f, const Node *n) {
  uint64_t h = hash_mix(n->op + 1000u * n->nin, n->attr.axes * 2u + (n->fwd != 0));
  h = hash_bytes(n->attr.dims, n->attr.ndims * sizeof *n->attr.dims, h);
  return n->nout ? hash_mix(h, f->val.at[n->out].type) : h;
}

static void find_layers(Dot *d) {
  const Fn *f = d->f;
  Map by_number, by_hash;
  map_init(&by_number, d->temp), map_init(&by_hash, d->temp);
  d->of = NEW_N(d->temp, uint32_t, f->node.n), d->place = NEW_N(d->temp, uint32_t, f->node.n);
  vec_push(d->temp, &d->layer, (Layer){.number = 0});
  map_put(&by_number, 0, 0);
  for (NodeId id = 1; id < f->node.n; id++) {
    const Node *n = fn_node(f, id);
    const uint64_t *at = map_get(&by_number, n->layer);
    d->of[id] = at ? (uint32_t)*at : d->layer.n;
    if (!at) map_put(&by_number, n->layer, d->layer.n), vec_push(d->temp, &d->layer, (Layer){.number = n->layer});
    Layer *l = &d->layer.at[d->of[id]];
    if (n->op == OP_const) continue;
    d->place[id] = l->n++;
    l->hash = hash_mix(l->hash, node_hash(f, n));
  }
  for (uint32_t i = 0; i < d->layer.n; i++) d->layer.at[i].node = NEW_N(d->temp, NodeId, d->layer.at[i].n);
  for (NodeId id = 1; id < f->node.n; id++)
    if (fn_node(f, id)->op != OP_const) d->layer.at[d->of[id]].node[d->place[id]] = id;
  for (uint32_t i = 0; i < d->layer.n; i++) {
    Layer *l = &d->layer.at[i];
    uint64_t key = hash_mix(l->hash, l->n);
    const uint64_t *same = i && !d->o.unfold && d->o.layer < 0 ? map_get(&by_hash, key) : 0;
    l->shown = same ? (uint32_t)*same : i;
    if (!same && i) map_put(&by_hash, key, i);
    Layer *s = &d->layer.at[l->shown];
    if (++s->members == 2) s->second = i;
    s->last = l->number;
  }
}

static NodeId drawn(const Dot *d, NodeId id) {          // the node that is drawn for this one, no constant
  return d->layer.at[d->layer.at[d->of[id]].shown].node[d->place[id]];
}

// ---- nodes --------------------------------------------------------------------------------------------------------
static bool inlined(const Dot *d, ValId v) {            // constants
  NodeId def = d->f->val.at[v].def;
  return def && fn_node(d->f, def)->op == OP_const;
}

static void put_dims(Text *t, const Module *m, const DimId *dims, uint32_t n, const char *before) {
  for (uint32_t i = 0; i < n; i++) text_printf(t, "%s%s", i ? ", " : before, dim_of(m, dims[i])->name);
}

static void label(const Dot *d, Text *t, const Node *n) {
  const Module *m = d->f->module;
  const Attr *at = &n->attr;
  unsigned has = op_info[n->op].attrs;
  text_puts(t, op_info[n->op].name);
  if (has & AT_DIMS && at->ndims) {
    text_puts(t, "[");
    put_dims(t, m, at->dims, at->ndims, "");
    if (has & AT_TO) put_dims(t, m, at->to, at->nto, " -> ");
    text_puts(t, "]");
  }
  if (has & AT_AXES)
    for (uint32_t i = 0; i < m->axis.n; i++)
      if (at->axes >> i & 1) text_printf(t, " %s", m->axis.at[i].name);
  if (has & AT_VAR) text_printf(t, "\n%s", m->var.at[at->var].name);
  for (uint32_t i = 0; i < n->nin; i++)
    if (inlined(d, node_in(d->f, n)[i])) {
      text_puts(t, i ? " , " : " ");
      ir_text_num(t, fn_node(d->f, d->f->val.at[node_in(d->f, n)[i]].def)->attr.num);
    }
  if (n->nout && d->f->val.at[n->out].name) text_printf(t, "\n%s", d->f->val.at[n->out].name);
}

static const char *shape(const Node *n) {
  return op_has(n->op, OPF_COLL) ? "hexagon" : op_has(n->op, OPF_STATE) ? "cylinder" : n->body ? "component" : "box";
}

static void put_node(Dot *d, NodeId id) {
  const Node *n = fn_node(d->f, id);
  KernelClass k = op_info[n->op].kernel;
  Text text, tip;
  text_init(&text, d->temp), text_init(&tip, d->temp);
  label(d, &text, n);
  text_printf(&tip, "%s %s", span_text(d->f->module->diag, d->temp, n->loc), look[k].name);
  if (*n->path) text_printf(&tip, " %s", n->path);
  text_printf(&tip, "\n%s\n", n->why ? n->why : "");
  ir_print_node(&tip, d->f, id);
  text_printf(d->t, "    n%u_%u [id=\"op%u_%u\", shape=%s, fillcolor=\"%s\"%s, label=\"", fn_id(d->f), id,
              fn_id(d->f), id, shape(n), look[k].fill, n->fwd ? ", color=\"#a04040\"" : "");
  escape(d->t, text.s);
  text_puts(d->t, "\", tooltip=\"");
  escape(d->t, tip.s);
  text_puts(d->t, "\"];\n");
}

// an argument, a result, or a value of another layer
static void put_note(Dot *d, const char *id, uint32_t number, const char *name, TypeId type) {
  text_printf(d->t, "    %s%u_%u [shape=note, fillcolor=\"#f4f4f4\", label=\"", id, fn_id(d->f), number);
  escape(d->t, name);
  if (type) {
    Text t;
    text_init(&t, d->temp);
    ir_print_type(&t, d->f->module, type);
    text_puts(d->t, "\\n");
    escape(d->t, t.s);
  }
  text_puts(d->t, "\"];\n");
}

static const char *value_name(const Dot *d, ValId v) {
  Str name = d->f->val.at[v].name;
  return name ? arena_printf(d->temp, "%%%u %s", v, name) : arena_printf(d->temp, "%%%u", v);
}

// ---- edges --------------------------------------------------------------------------------------------------------
static bool visible(const Dot *d, NodeId id) {
  if (d->o.layer >= 0) return d->layer.at[d->of[id]].number == (uint32_t)d->o.layer + 1;
  return drawn(d, id) == id;
}

static void put_source(Dot *d, ValId v) {               // the node or note that v comes from
  NodeId def = d->f->val.at[v].def;
  if (def && visible(d, drawn(d, def))) text_printf(d->t, "    n%u_%u", fn_id(d->f), drawn(d, def));
  else text_printf(d->t, "    v%u_%u", fn_id(d->f), v);
}

// The first edge of a value has its type, as an xlabel: those are placed when all else is, at no cost.
static void put_label(Dot *d, ValId v, const char *style) {
  Text t;
  text_init(&t, d->temp);
  ir_print_type(&t, d->f->module, d->f->val.at[v].type);
  text_puts(d->t, d->typed[v] ? " [edgetooltip=\"" : " [xlabel=\"");
  escape(d->t, t.s);
  text_printf(d->t, "\"%s];\n", style);
  d->typed[v] = true;
}

static void put_edges(Dot *d, NodeId id) {
  const Node *n = fn_node(d->f, id);
  for (uint32_t i = 0; i < n->nin; i++) {
    ValId v = node_in(d->f, n)[i];
    NodeId def = d->f->val.at[v].def;
    if (inlined(d, v)) continue;
    if ((!def || !visible(d, drawn(d, def))) && !d->noted[v]) {
      d->noted[v] = true;
      put_note(d, "v", v, value_name(d, v), 0);
    }
    put_source(d, v);
    text_printf(d->t, " -> n%u_%u", fn_id(d->f), id);
    put_label(d, v, "");
  }
}

// from one iteration to the next: what the second of a group takes from another of it
static void put_loop_edges(Dot *d, const Layer *l) {
  if (l->members < 2) return;
  const Layer *second = &d->layer.at[l->second];
  for (uint32_t k = 0; k < second->n; k++) {
    const Node *n = fn_node(d->f, second->node[k]);
    for (uint32_t i = 0; i < n->nin; i++) {
      ValId v = node_in(d->f, n)[i];
      NodeId def = d->f->val.at[v].def;
      if (!def || d->of[def] == l->second || d->layer.at[d->of[def]].shown != second->shown || inlined(d, v)) continue;
      put_source(d, v);
      text_printf(d->t, " -> n%u_%u", fn_id(d->f), drawn(d, second->node[k]));
      put_label(d, v, ", style=dashed, constraint=false");
    }
  }
}

// ---- functions ----------------------------------------------------------------------------------------------------
static void put_layer(Dot *d, uint32_t i) {
  const Layer *l = &d->layer.at[i];
  if (l->shown != i || (d->o.layer >= 0 && l->number != (uint32_t)d->o.layer + 1)) return;
  if (i) {
    text_printf(d->t, "    subgraph cluster_%u_%u { style=\"rounded,dashed\"; label=\"", fn_id(d->f), i);
    if (l->members > 1) text_printf(d->t, "layers %u–%u ×%u\";\n", l->number - 1, l->last - 1, l->members);
    else text_printf(d->t, "layer %u\";\n", l->number - 1);
  }
  for (uint32_t k = 0; k < l->n; k++) put_node(d, l->node[k]);
  if (i) text_puts(d->t, "    }\n");
}

static void put_fn(Text *t, const Fn *f, DotOptions o) {
  Arena *temp = arena_create();
  Dot d = {.t = t, .f = f, .o = o, .temp = temp};
  d.noted = NEW_N(temp, bool, f->val.n), d.typed = NEW_N(temp, bool, f->val.n);
  find_layers(&d);
  text_printf(t, "  subgraph cluster_%u { label=\"", fn_id(f));
  escape(t, f->name);
  text_puts(t, "\";\n");
  for (uint32_t i = 0; i < f->arg.n && o.layer < 0; i++) {
    d.noted[f->arg.at[i]] = true;
    put_note(&d, "v", f->arg.at[i], value_name(&d, f->arg.at[i]), f->val.at[f->arg.at[i]].type);
  }
  for (uint32_t i = 0; i < d.layer.n; i++) put_layer(&d, i);
  for (NodeId id = 1; id < f->node.n; id++)
    if (fn_node(f, id)->op != OP_const && visible(&d, id)) put_edges(&d, id);
  for (uint32_t i = 0; i < d.layer.n && o.layer < 0; i++) put_loop_edges(&d, &d.layer.at[i]);
  for (uint32_t i = 0; i < f->ret.n; i++) {
    NodeId def = f->val.at[f->ret.at[i]].def;
    if (def && (fn_node(f, def)->op == OP_const || !visible(&d, drawn(&d, def)))) continue;
    if (!def && o.layer >= 0) continue;
    put_note(&d, "r", i, *f->ret_name.at[i] ? f->ret_name.at[i] : "result", 0);
    put_source(&d, f->ret.at[i]);
    text_printf(t, " -> r%u_%u", fn_id(f), i);
    put_label(&d, f->ret.at[i], "");
  }
  text_puts(t, "  }\n");
  arena_destroy(temp);
}

void ir_dot_print(Text *t, const Module *m, DotOptions o) {
  text_puts(t, "digraph mt {\n  graph [rankdir=TB, compound=true, nslimit=2, nslimit1=2, fontname=\"Helvetica\"];\n"
               "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, color=\"#505050\"];\n"
               "  edge [fontname=\"Helvetica\", fontsize=8, color=\"#707070\"];\n");
  Str one = o.fn ? intern(m->in, o.fn) : 0;
  for (FnId i = 1; i < m->fn.n; i++)
    if (one ? m->fn.at[i]->name == one : !m->fn.at[i]->is_body) put_fn(t, m->fn.at[i], o);
  text_puts(t, "}\n");
}
