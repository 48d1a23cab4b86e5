// optimizer.c -- adds `update`: gradients, parameters and moments of one step in, parameters and moments out.
//
//   g    = gradient / $loss_scale, where there is one
//   norm = sqrt(Σ over parameters, in their order, of Σ g²)      in f64; each parameter's sum in the format of its update
//   c    = min(1, clip / (norm + 1e-6)) when train.clip > 0; g becomes c·g
//   ok   = norm is finite, and every denominator of the step ($den0, …) is above 0
//
// adamw (Loshchilov, Hutter 2019; as torch.optim.AdamW), decay on decayed parameters only, eps outside the root:
//   m = beta1·m + (1 - beta1)·g       v = beta2·v + (1 - beta2)·g²
//   p = p·(1 - lr·decay) - (lr / bc1)·m / (sqrt(v / bc2) + eps)         bc1 = 1 - beta1^t, bc2 = 1 - beta2^t
// sgd (as torch.optim.SGD with dampening 0): decay is part of the gradient
//   d = g + decay·p       b = momentum·b + d       p = p - lr·(nesterov: d + momentum·b, else b)
//
// Without ok everything stays as it was, bit for bit, by selection. $grad_norm is the norm before clipping; $ok is 1 or
// 0. A compute copy is written beside its parameter. Arithmetic is in f32, f64 for f64 parameters; scalars in f64.
#include "passes/pass.h"
#include <string.h>

typedef enum { OPT_adamw, OPT_sgd, OPT_COUNT } OptKind;
typedef struct { OptKind kind; const char *name; double otherwise, low, below; const char *range; } OptArg;

static const char *const opt_names[OPT_COUNT] = {"adamw", "sgd"};
static const OptArg opt_args[] = {                      // low <= value < below
  {OPT_adamw, "lr", 1e-3, 0, 1e300, "0 or more"},
  {OPT_adamw, "beta1", 0.9, 0, 1, "in [0, 1)"},
  {OPT_adamw, "beta2", 0.999, 0, 1, "in [0, 1)"},
  {OPT_adamw, "eps", 1e-8, 0, 1e300, "0 or more"},
  {OPT_adamw, "decay", 0.01, 0, 1e300, "0 or more"},
  {OPT_sgd, "lr", 1e-2, 0, 1e300, "0 or more"},
  {OPT_sgd, "momentum", 0, 0, 1e300, "0 or more"},
  {OPT_sgd, "decay", 0, 0, 1e300, "0 or more"},
  {OPT_sgd, "nesterov", 0, 0, 2, "on or off"},
};

typedef struct {
  Module *m;
  Build b;
  OptKind kind;
  const Setting *call;                                  // 0: the default
  Span at;                                              // of the setting; line 0: not set
  ValId ok, clip;                                       // clip 0: none
  ValId lr, step, root2;                                // f64: lr, lr / bc1, sqrt(bc2)
} Optimizer;

// ---- the setting --------------------------------------------------------------------------------------------------
static double arg(const Optimizer *o, const char *name) {
  const Setting *s = setting_arg(o->call, name);
  for (uint32_t i = 0; i < COUNT(opt_args); i++)
    if (opt_args[i].kind == o->kind && !strcmp(opt_args[i].name, name)) return s ? s->num : opt_args[i].otherwise;
  bug("optimizer: no argument %s", name);
}

static void suggest(Module *m, const char *word, const Str *words, size_t n) {
  Str near = nearest(word, words, n);
  if (near) diag_note(m->diag, "did you mean '%s'?", near);
}

static void check_arg(Module *m, OptKind kind, const Setting *s) {
  Str names[COUNT(opt_args)];
  size_t n = 0;
  for (uint32_t i = 0; i < COUNT(opt_args); i++) {
    const OptArg *a = &opt_args[i];
    if (a->kind != kind) continue;
    names[n++] = a->name;
    if (strcmp(a->name, s->path)) continue;
    if (s->kind != SET_num && s->kind != SET_bool)
      diag_error(m->diag, s->loc, "MT0337", "%s of %s is a number %s, got '%s'", a->name, opt_names[kind], a->range, s->word);
    else if (!(s->num >= a->low && s->num < a->below))
      diag_error(m->diag, s->loc, "MT0337", "%s of %s is %s, got %g", a->name, opt_names[kind], a->range, s->num);
    return;
  }
  diag_error(m->diag, s->loc, "MT0333", *s->path ? "%s has no argument '%s'" : "%s wants its arguments by name, such as lr = 1e-3%s", opt_names[kind], s->path);
  suggest(m, s->path, names, n);
}

// the call with every argument, in the table's order: the host reads betas and lr there
static void complete_setting(Optimizer *o) {
  Module *m = o->m;
  Setting all = {.path = intern(m->in, "train.optimizer"), .kind = SET_call, .word = intern(m->in, opt_names[o->kind]), .loc = o->at};
  all.arg = NEW_N(m->arena, Setting, COUNT(opt_args));
  for (uint32_t i = 0; i < COUNT(opt_args); i++) {
    const OptArg *a = &opt_args[i];
    const Setting *given = setting_arg(o->call, a->name);
    if (a->kind == o->kind) all.arg[all.narg++] = given ? *given : (Setting){.path = intern(m->in, a->name), .kind = SET_num, .num = a->otherwise, .loc = o->at};
  }
  uint32_t i = 0;
  while (i < m->set.n && m->set.at[i].path != all.path) i++;
  if (i < m->set.n) m->set.at[i] = all;
  else vec_push(m->arena, &m->set, all);
  o->call = setting_find(m, "train.optimizer");
}

static bool read_setting(Optimizer *o) {
  Module *m = o->m;
  uint32_t errors = m->diag->errors;
  const Setting *s = setting_find(m, "train.optimizer");
  if (s && s->kind != SET_word && s->kind != SET_call) {
    diag_error(m->diag, s->loc, "MT0331", "train.optimizer is adamw(…) or sgd(…), got %g", s->num);
    return false;
  }
  if (s) {
    while (o->kind < OPT_COUNT && strcmp(opt_names[o->kind], s->word)) o->kind++;
    if (o->kind == OPT_COUNT) {
      diag_error(m->diag, s->loc, "MT0332", "train.optimizer: there is no '%s'; there are adamw, sgd", s->word);
      suggest(m, s->word, opt_names, OPT_COUNT);
      return false;
    }
    if (s->kind == SET_call) o->call = s;
    o->at = s->loc;
    for (uint32_t i = 0; i < s->narg && o->call; i++) check_arg(m, o->kind, &s->arg[i]);
  }
  if (m->diag->errors == errors) complete_setting(o);
  const Setting *clip = setting_find(m, "train.clip");
  if (clip && (clip->kind != SET_num || !(clip->num >= 0)))
    diag_error(m->diag, clip->loc, "MT0337", "train.clip is 0 (no clipping) or more, got %s", clip->kind == SET_num ? arena_printf(m->arena, "%g", clip->num) : "no number");
  return m->diag->errors == errors;
}

// ---- scalars ------------------------------------------------------------------------------------------------------
static ValId num(Optimizer *o, double x, ValId like) { return ir_const(&o->b, x, val_type(o->b.fn, like)->dtype); }
static ValId add(Optimizer *o, ValId x, ValId y) { return ir_binary(&o->b, OP_add, x, y); }
static ValId sub(Optimizer *o, ValId x, ValId y) { return ir_binary(&o->b, OP_sub, x, y); }
static ValId mul(Optimizer *o, ValId x, ValId y) { return ir_binary(&o->b, OP_mul, x, y); }
static ValId quo(Optimizer *o, ValId x, ValId y) { return ir_binary(&o->b, OP_div, x, y); }
static ValId scaled(Optimizer *o, double k, ValId x) { return mul(o, x, num(o, k, x)); }

static VarId scalar(Optimizer *o, const char *name, DType dtype) {
  Module *m = o->m;
  VarId v = var_find(m, intern(m->in, name));
  if (v) return v;
  return var_add(m, (Var){.name = intern(m->in, name), .type = type_make(m, dtype, 0, 0), .kind = VAR_scalar, .loc = o->b.loc, .why = o->b.why});
}
static ValId read_scalar(Optimizer *o, const char *name) { return ir_cast(&o->b, ir_read_var(&o->b, scalar(o, name, DT_f64)), DT_f64); }
static void write_scalar(Optimizer *o, const char *name, ValId v) {
  VarId to = scalar(o, name, DT_f64);
  ir_write_var(&o->b, to, ir_cast(&o->b, v, o->m->type.at[o->m->var.at[to].type].dtype));
}

// a scalar in the format of x
static ValId in_format(Optimizer *o, ValId scalar64, ValId x) { return ir_cast(&o->b, scalar64, val_type(o->b.fn, x)->dtype); }

// ---- the update ---------------------------------------------------------------------------------------------------
typedef struct { VarId var, grad; DType work; ValId p, g; } Param;     // p as stored; g in the working format

static Str suffixed(Module *m, VarId p, const char *suffix) { return intern_printf(m->in, "%s:%s", m->var.at[p].name, suffix); }

static void at_param(Optimizer *o, VarId p, const char *what) {
  o->b.loc = o->m->var.at[p].loc;
  o->b.why = intern_printf(o->m->in, "optimizer: %s", what);
}

static VarId moment(Optimizer *o, const Param *p, const char *suffix) {
  Module *m = o->m;
  Var v = m->var.at[p->var];
  Type t = m->type.at[v.type];
  t.dtype = p->work;
  return var_add(m, (Var){.name = suffixed(m, p->var, suffix), .type = type_intern(m, t), .kind = VAR_moment, .of = p->var, .loc = v.loc, .why = o->b.why});
}

static void write_if_ok(Optimizer *o, VarId var, ValId now, ValId was) { ir_write_var(&o->b, var, ir_select(&o->b, o->ok, now, was)); }

static ValId adamw(Optimizer *o, const Param *p, ValId w) {
  double beta1 = arg(o, "beta1"), beta2 = arg(o, "beta2"), decay = arg(o, "decay");
  at_param(o, p->var, "moments");
  VarId m1 = moment(o, p, "exp_avg"), m2 = moment(o, p, "exp_avg_sq");
  ValId a0 = ir_read_var(&o->b, m1), b0 = ir_read_var(&o->b, m2);
  ValId a = scaled(o, beta1, a0), b = scaled(o, beta2, b0);
  a = add(o, a, scaled(o, 1 - beta1, p->g));
  b = add(o, b, scaled(o, 1 - beta2, mul(o, p->g, p->g)));
  write_if_ok(o, m1, a, a0), write_if_ok(o, m2, b, b0);
  bool decays = o->m->var.at[p->var].decay && decay != 0;
  at_param(o, p->var, decays ? "adamw with decay" : "adamw without decay");
  if (decays) {
    ValId one = num(o, 1, o->lr), kept = sub(o, one, scaled(o, decay, o->lr));
    w = mul(o, w, in_format(o, kept, w));
  }
  ValId root = ir_unary(&o->b, OP_sqrt, b);
  root = quo(o, root, in_format(o, o->root2, b));
  ValId step = quo(o, a, add(o, root, num(o, arg(o, "eps"), root)));
  return sub(o, w, mul(o, step, in_format(o, o->step, step)));
}

static ValId sgd(Optimizer *o, const Param *p, ValId w) {
  double momentum = arg(o, "momentum"), decay = arg(o, "decay");
  bool decays = o->m->var.at[p->var].decay && decay != 0;
  at_param(o, p->var, decays ? "sgd with decay" : "sgd without decay");
  ValId d = decays ? add(o, p->g, scaled(o, decay, w)) : p->g;
  if (momentum != 0) {
    VarId mom = moment(o, p, "momentum");
    ValId b0 = ir_read_var(&o->b, mom), b = add(o, scaled(o, momentum, b0), d);
    write_if_ok(o, mom, b, b0);
    d = arg(o, "nesterov") != 0 ? add(o, d, scaled(o, momentum, b)) : b;
  }
  return sub(o, w, mul(o, d, in_format(o, o->lr, d)));
}

// The gradient of the loss itself, where it was computed times $loss_scale.
static ValId unscaled(Optimizer *o, ValId g) {
  if (!var_find(o->m, intern(o->m->in, "$loss_scale"))) return g;
  ValId scale = read_scalar(o, "$loss_scale");
  return mul(o, g, in_format(o, quo(o, num(o, 1, scale), scale), g));
}

static ValId sum_of_squares(Optimizer *o, const Param *p) {
  at_param(o, p->var, "global norm");
  const Type *t = val_type(o->b.fn, p->g);
  DimId dims[MAX_DIMS];
  uint32_t n = t->ndim;
  memcpy(dims, t->dim, sizeof dims);
  return ir_cast(&o->b, ir_dims(&o->b, OP_sum, mul(o, p->g, p->g), dims, n), DT_f64);
}

static void decide(Optimizer *o, ValId norm) {
  Module *m = o->m;
  if (o->at.line) o->b.loc = o->at;
  double clip = setting_num(m, "train.clip", 0);
  o->ok = ir_binary(&o->b, OP_lt, norm, num(o, __builtin_inf(), norm)); // false for NaN
  o->b.why = intern(m->in, "optimizer: a step without a counted entry is skipped");
  for (uint32_t k = 0;; k++) {
    VarId den = var_find(m, intern_printf(m->in, "$den%u", k));
    if (!den) break;
    ValId d = ir_read_var(&o->b, den);
    o->ok = ir_binary(&o->b, OP_and, o->ok, ir_binary(&o->b, OP_gt, d, num(o, 0, d)));
  }
  o->b.why = intern(m->in, "optimizer: clip coefficient");
  ValId one = num(o, 1, norm), zero = num(o, 0, norm);
  if (clip > 0) {
    ValId most = num(o, clip, norm), past = add(o, norm, num(o, 1e-6, norm));
    o->clip = ir_binary(&o->b, OP_min, one, quo(o, most, past));
  }
  o->b.why = intern(m->in, "optimizer: step size");
  o->lr = read_scalar(o, "$lr");
  if (o->kind == OPT_adamw) {
    o->step = quo(o, o->lr, read_scalar(o, "$bc1"));
    o->root2 = ir_unary(&o->b, OP_sqrt, read_scalar(o, "$bc2"));
  }
  o->b.why = intern(m->in, "optimizer: outcome of the step");
  write_scalar(o, "$grad_norm", norm);
  write_scalar(o, "$ok", ir_select(&o->b, o->ok, one, zero));
}

bool pass_optimizer(Module *m) {
  Optimizer o = {.m = m};
  if (!read_setting(&o)) return false;
  VEC(Param) param = {0};
  for (VarId v = 1; v < m->var.n; v++) {
    if (m->var.at[v].kind != VAR_param) continue;
    Param p = {.var = v, .grad = var_find(m, suffixed(m, v, "grad")), .work = DT_f32};
    if (!p.grad) bug("optimizer: %s has no gradient", m->var.at[v].name);
    if (m->type.at[m->var.at[v].type].dtype == DT_f64) p.work = DT_f64;
    vec_push(m->arena, &param, p);
  }
  if (!param.n) return true;
  o.b.fn = fn_create(m, intern(m->in, "update"));
  ValId norm = 0;
  for (uint32_t i = 0; i < param.n; i++) {
    Param *p = &param.at[i];
    at_param(&o, p->var, "update of a parameter");
    p->p = ir_read_var(&o.b, p->var);
    p->g = unscaled(&o, ir_cast(&o.b, ir_read_var(&o.b, p->grad), p->work));
    ValId s = sum_of_squares(&o, p);
    norm = norm ? add(&o, norm, s) : s;
  }
  decide(&o, ir_unary(&o.b, OP_sqrt, norm));
  for (uint32_t i = 0; i < param.n; i++) {
    Param *p = &param.at[i];
    at_param(&o, p->var, "clipping");
    if (o.clip) p->g = mul(&o, p->g, in_format(&o, o.clip, p->g));
    at_param(&o, p->var, "update of a parameter");
    ValId w = ir_cast(&o.b, p->p, p->work);
    w = o.kind == OPT_adamw ? adamw(&o, p, w) : sgd(&o, p, w);
    w = ir_select(&o.b, o.ok, ir_cast(&o.b, w, m->type.at[m->var.at[p->var].type].dtype), p->p);
    ir_write_var(&o.b, p->var, w);
    VarId copy = var_find(m, suffixed(m, p->var, "copy"));
    if (!copy) continue;
    at_param(&o, p->var, "compute copy");
    ir_write_var(&o.b, copy, ir_cast(&o.b, w, m->type.at[m->var.at[copy].type].dtype));
  }
  return true;
}
