// Every op on one rank against its definition, written with the entries' coordinates, for extents of 0, 1 and primes.
// Operand k's entry at (i, j, l) is hash(k, i, j, l) in [-2, 2); a dim that an operand lacks has coordinate 0.
#include "runtime/philox.h"
#include "tests/interp/world.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

typedef struct { int64_t a, b, c; } Ext;                // extents of dims a, b, c
typedef struct { Ext e; int64_t i, j, l; } At;          // an entry of the result: along a, b, c

static double real(int k, int64_t i, int64_t j, int64_t l) {
  uint64_t h = hash_mix(hash_mix((uint64_t)k + 1, (uint64_t)i), hash_mix((uint64_t)j, (uint64_t)l));
  return (double)(h >> 11) * 0x1p-51 - 2;
}
static double whole(int k, int64_t i, int64_t j, int64_t l) { return floor(4 * real(k, i, j, l)); }       // -8 … 7
static double truth(int k, int64_t i, int64_t j, int64_t l) { return real(k, i, j, l) > 0; }
static double value(DType t, int k, int64_t i, int64_t j, int64_t l) {
  return t == DT_bool ? truth(k, i, j, l) : dtype_is_float(t) ? dtype_round(t, real(k, i, j, l)) : whole(k, i, j, l);
}

typedef struct {
  const char *name;
  Op op;
  const char *at, *in[3], *out;                         // out "": inferred
  double (*want)(At);
} Case;

// dims: a b c of the shape; ab = a·b (the merged one); w = c + 2 (a window's), h: c - 1 or 0; k2 of 2; ra: a role of a
static World shape_world(Ext e) {
  Arena *a = arena_create();
  World w = world("", arena_printf(a, "a %lld, b %lld, c %lld, ab %lld, w %lld, h %lld, k2 2, ra = a, pad %lld:%lld", (long long)e.a,
                                   (long long)e.b, (long long)e.c, (long long)(e.a * e.b), (long long)e.c + 2, (long long)MAX(e.c - 1, 0),
                                   (long long)e.c, (long long)e.c + 3));
  arena_destroy(a);
  return w;
}

// a whole array of type t, dims in any order; the coordinates of roles and windows are those of what they replace
typedef struct { int64_t at[3]; } Coord;
static Coord coord(const World *w, const Type *t, int64_t i, Ext e) {
  Coord c = {{0, 0, 0}};
  for (int k = t->ndim; k-- > 0;) {
    const Dim *d = dim_of(w->m, t->dim[k]);
    int64_t g = i % d->extent;
    i /= d->extent;
    if (!strcmp(d->name, "a") || !strcmp(d->name, "ra")) c.at[0] = g;
    else if (!strcmp(d->name, "b") || !strcmp(d->name, "k2")) c.at[1] = g;
    else if (!strcmp(d->name, "ab")) c.at[0] = g / e.b, c.at[1] = g % e.b;
    else c.at[2] = g;
  }
  return c;
}

#define R(k, i, j, l) real(k, i, j, l)
#define UNARY(name, expr) static double want_##name(At p) { double x = R(0, p.i, p.j, p.l); return expr; }
#define BINARY(name, expr) static double want_##name(At p) { double x = R(0, p.i, p.j, p.l), y = R(1, 0, p.j, 0); return expr; }
#define BINT(name, expr) static double want_i##name(At p) { int64_t x = (int64_t)whole(0, p.i, p.j, p.l), y = (int64_t)whole(1, 0, p.j, 0); return (double)(expr); }
#define BBOOL(name, expr) static double want_##name(At p) { bool x = truth(0, p.i, p.j, p.l) != 0, y = truth(1, 0, p.j, 0) != 0; return (expr); }
UNARY(neg, -x) UNARY(exp, exp(x)) UNARY(log, log(x)) UNARY(sqrt, sqrt(x)) UNARY(rsqrt, 1 / sqrt(x)) UNARY(tanh, tanh(x)) UNARY(sin, sin(x))
UNARY(cos, cos(x)) UNARY(erf, erf(x)) UNARY(abs, fabs(x)) UNARY(floor, floor(x)) UNARY(ceil, ceil(x)) UNARY(detach, x)
BINARY(add, x + y) BINARY(sub, x - y) BINARY(mul, x * y) BINARY(div, x / y) BINARY(mod, x - floor(x / y) * y) BINARY(pow, pow(x, y))
BINARY(min, x < y ? x : y) BINARY(max, x > y ? x : y)
BINARY(eq, x == y) BINARY(ne, x != y) BINARY(lt, x < y) BINARY(le, x <= y) BINARY(gt, x > y) BINARY(ge, x >= y)
BINT(add, x + y) BINT(sub, x - y) BINT(mul, x * y) BINT(min, x < y ? x : y) BINT(max, x > y ? x : y)
BINT(div, y ? floor((double)x / (double)y) : 0) BINT(mod, y ? (double)x - floor((double)x / (double)y) * (double)y : 0)
BINT(eq, x == y) BINT(ne, x != y) BINT(lt, x < y) BINT(le, x <= y) BINT(gt, x > y) BINT(ge, x >= y)
BBOOL(and, x && y) BBOOL(or, x || y) BBOOL(not, !x && (y || !y))
static double want_ineg(At p) { return -whole(0, p.i, p.j, p.l); }
static double want_iabs(At p) { return fabs(whole(0, p.i, p.j, p.l)); }
static double want_select(At p) { return truth(0, 0, p.j, 0) ? R(1, p.i, p.j, p.l) : R(2, p.i, 0, 0); }
static double want_iselect(At p) { return truth(0, 0, p.j, 0) ? whole(1, p.i, p.j, p.l) : whole(2, p.i, 0, 0); }
static double want_f32(At p) { return (double)(float)R(0, p.i, p.j, p.l); }
static double want_bf16(At p) { return dtype_round(DT_bf16, R(0, p.i, p.j, p.l)); }
static double want_cast_int(At p) { return trunc(R(0, p.i, p.j, p.l)); }
static double want_cast_bool(At p) { return R(0, p.i, p.j, p.l) != 0; }
static double want_int_cast(At p) { return whole(0, p.i, p.j, p.l); }
static double want_int_bool(At p) { return whole(0, p.i, p.j, p.l) != 0; }
static double want_bool_cast(At p) { return truth(0, p.i, p.j, p.l); }
static double want_round16(At p) { return dtype_round(DT_f16, value(DT_f16, 0, p.i, p.j, p.l) * value(DT_f16, 1, 0, p.j, 0)); }
static double want_round32(At p) { return (double)(float)(value(DT_f32, 0, p.i, p.j, p.l) / value(DT_f32, 1, 0, p.j, 0)); }
static double want_const(At p) { (void)p; return 2.5; }
static double want_index(At p) { return (double)p.l; }

#define SUM(var, n, expr) double s = 0; for (int64_t var = 0; var < (n); var++) s += (expr); return s
static double want_sum_a(At p) { SUM(i, p.e.a, R(0, i, p.j, p.l)); }
static double want_sum_c(At p) { SUM(l, p.e.c, R(0, p.i, p.j, l)); }
static double want_sum_ac(At p) { double t = 0; for (int64_t i = 0; i < p.e.a; i++) for (int64_t l = 0; l < p.e.c; l++) t += R(0, i, p.j, l); return t; }
static double want_isum_b(At p) { SUM(j, p.e.b, whole(0, p.i, j, p.l)); }
static double want_max_c(At p) { double t = -INFINITY; for (int64_t l = 0; l < p.e.c; l++) t = fmax(t, R(0, p.i, p.j, l)); return t; }
static double want_imax_a(At p) { double t = -0x1p31; for (int64_t i = 0; i < p.e.a; i++) t = fmax(t, whole(0, i, p.j, p.l)); return t; }
static double want_cumsum_b(At p) { SUM(j, p.j + 1, R(0, p.i, j, p.l)); }
static double want_cumsum_b_end(At p) { double t = 0; for (int64_t j = p.e.b - 1; j >= p.j; j--) t += R(0, p.i, j, p.l); return t; }
static double want_cumsum_ca(At p) { double t = 0; for (int64_t k = 0; k <= p.l * p.e.a + p.i; k++) t += whole(0, k % p.e.a, p.j, k / p.e.a); return t; }
static double want_dot_c(At p) { SUM(l, p.e.c, R(0, p.i, 0, l) * R(1, 0, p.j, l)); }
static double want_dot_batch(At p) { SUM(l, p.e.c, R(0, p.i, p.j, l) * R(1, 0, p.j, l)); }
static double want_dot_two(At p) { double t = 0; for (int64_t l = 0; l < p.e.c; l++) for (int64_t i = 0; i < p.e.a; i++) t += R(0, i, p.j, l) * R(1, i, 0, l); return t; }
static double want_outer(At p) { return R(0, p.i, 0, 0) * R(1, 0, p.j, p.l); }
static double want_expand(At p) { return R(0, 0, p.j, 0); }
static double want_same(At p) { return R(0, p.i, p.j, p.l); }
static double want_stack(At p) { return p.j == 0 ? R(0, p.i, 0, p.l) : R(1, 0, 0, p.l); }
static double want_slice(At p) { return R(0, p.i, 0, p.l + 1); }
static double want_unslice(At p) { return p.l >= 1 && p.l < p.e.c + 1 ? R(0, p.i, 0, p.l - 1) : 0; }
static double want_shift(At p) { return p.l >= 2 ? R(0, p.i, 0, p.l - 2) : 7; }
static double want_shift_back(At p) { return p.l + 1 < p.e.c ? R(0, p.i, 0, p.l + 1) : 0; }
static double want_ishift(At p) { return p.l >= 2 ? whole(0, p.i, 0, p.l - 2) : 7; }
static double row(At p, int64_t index, int64_t j) { return index >= 0 && index < p.e.a ? R(0, index, j, p.l) : 0; }
static double want_gather(At p) { return row(p, (int64_t)whole(1, 0, p.j, 0), 0); }
static double want_gather_batch(At p) { return row(p, (int64_t)whole(1, 0, p.j, 0), p.j); }
static double want_scatter(At p) { SUM(j, p.e.b, whole(1, 0, j, 0) == (double)p.i ? R(0, 0, j, p.l) : 0); }
static double want_scatter_batch(At p) { return whole(1, 0, p.j, 0) == (double)p.i ? R(0, 0, p.j, p.l) : 0; }

#define EW1(o) {#o, OP_##o, "", {"f64[b, a, c]"}, "", want_##o}
#define EW2(o) {#o, OP_##o, "", {"f64[b, a, c]", "f64[b]"}, "", want_##o}
#define INT2(o) {"int " #o, OP_##o, "", {"i32[a, c, b]", "i32[b]"}, "", want_i##o}
static const Case cases[] = {
  EW1(neg), EW1(exp), EW1(log), EW1(sqrt), EW1(rsqrt), EW1(tanh), EW1(sin), EW1(cos), EW1(erf), EW1(abs), EW1(floor), EW1(ceil), EW1(detach),
  EW2(add), EW2(sub), EW2(mul), EW2(div), EW2(mod), EW2(pow), EW2(min), EW2(max), EW2(eq), EW2(ne), EW2(lt), EW2(le), EW2(gt), EW2(ge),
  INT2(add), INT2(sub), INT2(mul), INT2(div), INT2(mod), INT2(min), INT2(max), INT2(eq), INT2(ne), INT2(lt), INT2(le), INT2(gt), INT2(ge),
  {"int neg", OP_neg, "", {"i64[a, c]"}, "", want_ineg},
  {"int abs", OP_abs, "", {"i64[a, c]"}, "", want_iabs},
  {"and", OP_and, "", {"bool[c, a, b]", "bool[b]"}, "", want_and},
  {"or", OP_or, "", {"bool[c, a, b]", "bool[b]"}, "", want_or},
  {"not", OP_not, "", {"bool[c, a, b]"}, "", want_not},
  {"select", OP_select, "", {"bool[b]", "f64[b, c, a]", "f64[a]"}, "", want_select},
  {"int select", OP_select, "", {"bool[b]", "i32[b, c, a]", "i32[a]"}, "", want_iselect},
  {"cast f32", OP_cast, "", {"f64[a, b, c]"}, "f32[a, b, c]", want_f32},
  {"cast bf16", OP_cast, "", {"f64[a, b]"}, "bf16[b, a]", want_bf16},
  {"cast i32", OP_cast, "", {"f64[a, b]"}, "i32[a, b]", want_cast_int},
  {"cast to bool", OP_cast, "", {"f64[a, b]"}, "bool[a, b]", want_cast_bool},
  {"cast int", OP_cast, "", {"i32[a, b]"}, "f64[a, b]", want_int_cast},
  {"cast int to int", OP_cast, "", {"i64[a, b]"}, "i32[a, b]", want_int_cast},
  {"cast int to bool", OP_cast, "", {"i64[a, b]"}, "bool[a, b]", want_int_bool},
  {"cast bool", OP_cast, "", {"bool[a, b]"}, "f32[a, b]", want_bool_cast},
  {"rounded f16", OP_mul, "", {"f16[a, b]", "f16[b]"}, "", want_round16},
  {"rounded f32", OP_div, "", {"f32[a, b]", "f32[b]"}, "", want_round32},
  {"const", OP_const, "num=2.5", {0}, "f64", want_const},
  {"index", OP_index, "[c]", {0}, "", want_index},
  {"index padded", OP_index, "[pad]", {0}, "", want_index},
  {"sum first", OP_sum, "[a]", {"f64[a, b, c]"}, "", want_sum_a},
  {"sum last", OP_sum, "[c]", {"f64[a, b, c]"}, "f64[b, a]", want_sum_c},
  {"sum two", OP_sum, "[a, c]", {"f64[a, b, c]"}, "", want_sum_ac},
  {"sum padded", OP_sum, "[pad]", {"f64[a, pad, b]"}, "", want_sum_c},
  {"int sum", OP_sum, "[b]", {"i32[a, b, c]"}, "", want_isum_b},
  {"max", OP_reduce_max, "[c]", {"f64[a, c, b]"}, "", want_max_c},
  {"max padded", OP_reduce_max, "[pad]", {"f64[a, pad, b]"}, "", want_max_c},
  {"int max", OP_reduce_max, "[a]", {"i32[a, c, b]"}, "", want_imax_a},
  {"cumsum", OP_cumsum, "[b]", {"f64[a, b, c]"}, "", want_cumsum_b},
  {"cumsum from the end", OP_cumsum, "[b] at=1", {"f64[a, b, c]"}, "f64[c, a, b]", want_cumsum_b_end},
  {"cumsum two", OP_cumsum, "[c, a]", {"i64[a, b, c]"}, "", want_cumsum_ca},
  {"dot", OP_dot, "[c]", {"f64[a, c]", "f64[b, c]"}, "", want_dot_c},
  {"dot reordered", OP_dot, "[c]", {"f64[c, a]", "f64[c, b]"}, "f64[b, a]", want_dot_c},
  {"dot padded", OP_dot, "[pad]", {"f64[pad, a]", "f64[b, pad]"}, "f64[b, a]", want_dot_c},
  {"dot with batch", OP_dot, "[c]", {"f64[a, b, c]", "f64[c, b]"}, "", want_dot_batch},
  {"dot over two", OP_dot, "[c, a]", {"f64[a, b, c]", "f64[a, c]"}, "", want_dot_two},
  {"outer", OP_dot, "", {"f64[a]", "f64[c, b]"}, "", want_outer},
  {"expand", OP_expand, "[a, c]", {"f64[b]"}, "f64[c, b, a]", want_expand},
  {"rename", OP_rename, "[a -> ra]", {"f64[a, b]"}, "f64[b, ra]", want_same},
  {"split", OP_split, "[ab -> a, b]", {"f64[ab, c]"}, "f64[b, c, a]", want_same},
  {"merge", OP_merge, "[a, b -> ab]", {"f64[b, c, a]"}, "f64[ab, c]", want_same},
  {"stack", OP_stack, "[k2]", {"f64[a, c]", "f64[c]"}, "f64[c, k2, a]", want_stack},
  {"slice", OP_slice, "[w -> c] at=1", {"f64[a, w]"}, "", want_slice},
  {"unslice", OP_unslice, "[c -> w] at=1", {"f64[a, c]"}, "f64[w, a]", want_unslice},
  {"shift", OP_shift, "[c] at=2 num=7", {"f64[a, c]"}, "", want_shift},
  {"shift back", OP_shift, "[c] at=-1", {"f64[a, c]"}, "", want_shift_back},
  {"int shift", OP_shift, "[c] at=2 num=7", {"i32[a, c]"}, "", want_ishift},
  {"gather", OP_gather, "[a]", {"f64[c, a]", "i32[b]"}, "", want_gather},
  {"gather with batch", OP_gather, "[a]", {"f64[a, c, b]", "i64[b]"}, "f64[c, b]", want_gather_batch},
  {"scatter", OP_scatter, "[a]", {"f64[c, b]", "i32[b]"}, "", want_scatter},
  {"scatter with batch", OP_scatter, "[a -> b]", {"f64[c, b]", "i32[b]"}, "f64[b, c, a]", want_scatter_batch},
};

static bool near(DType t, double got, double want) {
  if (isnan(want)) return isnan(got);
  if (got == want) return true;
  double tol = t == DT_f64 ? 1e-13 : 0;
  return fabs(got - want) <= tol * (fabs(want) + 1);
}

static void check(const Case *k, Ext e) {
  World w = shape_world(e);
  begin(&w, "f");
  ValId y = op_of(&w, k->op, k->at, k->in, k->out);
  const Fn *f = w.b.fn;
  double *data[3] = {0};
  for (uint32_t n = 0; n < f->arg.n; n++) {
    const Type *t = val_type(f, f->arg.at[n]);
    int64_t count = interp_count(w.m, f->val.at[f->arg.at[n]].type);
    data[n] = NEW_N(w.arena, double, count);
    for (int64_t i = 0; i < count; i++) {
      Coord c = coord(&w, t, i, e);
      data[n][i] = value(t->dtype, (int)n, c.at[0], c.at[1], c.at[2]);
    }
  }
  const Type *t = val_type(f, y);
  int64_t count = interp_count(w.m, f->val.at[y].type);
  double *out = NEW_N(w.arena, double, count);
  Interp *it = interp_create(w.arena, w.m);
  if (!interp_run(it, f, (const double *const *)data, &out)) fail_msg("%s: %s", k->name, interp_fault(it));
  for (int64_t i = 0; i < count; i++) {
    Coord c = coord(&w, t, i, e);
    double want = k->want((At){e, c.at[0], c.at[1], c.at[2]});
    if (!near(t->dtype, out[i], want))
      fail_msg("%s of [%lld, %lld, %lld]: entry %lld is %.17g, not %.17g", k->name, (long long)e.a, (long long)e.b, (long long)e.c, (long long)i, out[i], want);
  }
  world_end(&w);
}

static void ops_test(void **state) {
  (void)state;
  static const Ext shapes[] = {{3, 5, 7}, {1, 1, 1}, {2, 3, 1}, {7, 1, 2}, {0, 2, 3}, {3, 0, 2}, {2, 5, 0}, {5, 2, 11}};
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t s = 0; s < COUNT(shapes); s++) check(&cases[k], shapes[s]);
}

// unstack has several results
static void unstack_test(void **state) {
  (void)state;
  World w = world("", "a 3, k2 2");
  begin(&w, "f");
  ValId x = arg(&w, "f64[a, k2]"), y = op(&w, OP_unstack, "[k2]", &x, 1);
  ir_return(w.b.fn, y, "first"), ir_return(w.b.fn, y + 1, "second");
  double in[] = {1, 2, 3, 4, 5, 6}, one[3], two[3], *out[] = {one, two};
  Interp *it = interp_create(w.arena, w.m);
  assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, out));
  for (int i = 0; i < 3; i++) assert_true(one[i] == in[2 * i] && two[i] == in[2 * i + 1]);
  world_end(&w);
}

// variables: reads see the value at entry; the first microbatch replaces, the next ones add; rounding to the variable's dtype
static void state_test(void **state) {
  (void)state;
  World w = world("", "a 2");
  VarId v = var_add(w.m, (Var){.name = intern(w.m->in, "v"), .type = type(&w, "f32[a]")});
  VarId g = var_add(w.m, (Var){.name = intern(w.m->in, "g"), .type = type(&w, "f32[a]")});
  begin(&w, "f");
  ValId x = arg(&w, "f32[a]"), y = op(&w, OP_read, "var=v", 0, 0), s = op(&w, OP_add, "", OPS(x, y));
  op(&w, OP_write, "var=v", &s, 1);
  op(&w, OP_accumulate, "var=g", &x, 1);
  ir_return(w.b.fn, op(&w, OP_read, "var=v", 0, 0), "before");
  Interp *it = interp_create(w.arena, w.m);
  double in[] = {1, 0x1p-30}, at[2] = {10, 20}, got[2], *out[] = {got};
  interp_set(it, v, at);
  assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, out));
  assert_true(got[0] == 10 && got[1] == 20);
  assert_true(interp_get(it, v, got) && got[0] == 11 && got[1] == 20);
  assert_true(interp_get(it, g, got) && got[0] == 1 && got[1] == 0x1p-30);
  interp_first(it, false);
  in[0] = 0x1p-24;
  assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, 0));
  assert_true(interp_get(it, g, got) && got[0] == 1 && got[1] == 0x1p-29);
  interp_first(it, true);
  assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, 0));
  assert_true(interp_get(it, g, got) && got[0] == 0x1p-24);
  world_end(&w);
}

// a value's padding is 0 after every op: 1/x of a padded dim, summed and maximal over it, then stacked onto another
static void padding_test(void **state) {
  (void)state;
  World w = world("", "a 3:8");
  begin(&w, "f");
  ValId x = arg(&w, "f64[a]"), one = ir_const(&w.b, 1, DT_f64), y = op(&w, OP_div, "", OPS(one, x));
  ir_return(w.b.fn, op(&w, OP_sum, "[a]", &y, 1), "sum");
  ir_return(w.b.fn, op(&w, OP_reduce_max, "[a]", OPS(op(&w, OP_neg, "", &y, 1))), "max");
  ir_return(w.b.fn, op(&w, OP_dot, "[a]", OPS(y, op(&w, OP_exp, "", &x, 1))), "dot");
  double in[] = {1, 2, 4}, sum, max, dot, *out[] = {&sum, &max, &dot};
  Interp *it = interp_create(w.arena, w.m);
  assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, out));
  assert_true(sum == 1.75 && max == -0.25);
  assert_true(fabs(dot - (exp(1) + exp(2) / 2 + exp(4) / 4)) < 1e-12);
  world_end(&w);
}

// the draws are philox's own; samples 2 and 3 drawn as a second microbatch are those of one of four; another step, path or
// seed gives others
static void random_test(void **state) {
  (void)state;
  double four[4 * 3], two[2 * 3], other[2 * 3];
  for (int k = 0; k < 5; k++) {
    World w = world("", k ? "b 2 sample, d 3:4" : "b 4 sample, d 3:4");
    begin(&w, "f");
    ValId in[] = {arg(&w, "i64"), arg(&w, "i64")};
    ir_return(w.b.fn, opt(&w, OP_random, k == 3 ? "path=h.1" : "path=h.0", "f32[d, b]", in, 2), "y");
    Interp *it = interp_create(w.arena, w.m);
    interp_seed(it, k == 4 ? 43 : 42);
    double step = k == 2 ? 8 : 7, sample = k ? 2 : 0, *out = !k ? four : k == 1 ? two : other;
    assert_true(interp_run(it, w.b.fn, (const double *const[]){&step, &sample}, &out));
    for (int i = 0; i < 6 && k == 1; i++) assert_true(two[i] == four[i / 2 * 4 + 2 + i % 2] && two[i] >= 0 && two[i] < 1);
    int same = 0;
    for (int i = 0; i < 6 && k > 1; i++) same += two[i] == other[i];
    assert_int_equal(same, 0);
    world_end(&w);
  }
  uint32_t hash = (uint32_t)hash_bytes("h.0", 3, 0);
  for (uint64_t i = 0; i < 12; i++) assert_true(four[i] == (double)philox_uniform(42, 7, hash, i % 4 * 3 + i / 4));
}

// values of narrow formats are what storing them would give: ties, subnormals, overflow, NaN
static void rounding_test(void **state) {
  (void)state;
  enum { N = 20000 };
  for (int k = 0; k < 3; k++) {
    DType t = (const DType[]){DT_f32, DT_bf16, DT_f16}[k];
    World w = world("", "n 20000");
    begin(&w, "f");
    ValId x = arg(&w, "f64[n]");
    char *to = arena_printf(w.arena, "%s[n]", dtype_name(t));
    ir_return(w.b.fn, opt(&w, OP_cast, "", to, &x, 1), "y");
    double *in = NEW_N(w.arena, double, N), *out = NEW_N(w.arena, double, N);
    uint64_t h = 5;
    for (int i = 0; i < N; i++) {
      h = hash_mix(h, 1);
      uint64_t keep = i % 3 ? ~(uint64_t)0 << (52 - (i % 12)) : ~(uint64_t)0, bits = h & keep;     // few bits: ties
      memcpy(&in[i], &bits, 8);
      if (i % 2) in[i] = ldexp(frexp(in[i], &(int){0}), (int)(h % 60) - 30);
    }
    in[0] = NAN, in[1] = INFINITY, in[2] = -0.0, in[3] = 65519.99, in[4] = 65520, in[5] = 0x1.fefp127, in[6] = 0x1p-133;
    Interp *it = interp_create(w.arena, w.m);
    assert_true(interp_run(it, w.b.fn, (const double *const[]){in}, &out));
    for (int i = 0; i < N; i++) {
      double want = dtype_round(t, in[i]);
      if (!(out[i] == want || (isnan(out[i]) && isnan(want)))) fail_msg("%s of %a is %a, not %a", dtype_name(t), in[i], out[i], want);
    }
    world_end(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ops_test), cmocka_unit_test(unstack_test), cmocka_unit_test(state_test), cmocka_unit_test(padding_test),
                                     cmocka_unit_test(random_test), cmocka_unit_test(rounding_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
