// kernel_text.c -- the kernel's text form, both ways. See the example in kernel.h.
//
//   kernel CLASS
//   range N [of STORED] [reduce]
//   buffer DTYPE COUNT
//   %V = load BUF ADDRESS · const DTYPE X · OP %A … · cast DTYPE %A · index DTYPE ADDRESS · scalar DTYPE SLOT
//      · random %SEED %PLACE %INDEX · reduce sum|max|min %A [where %I rR] · cumsum %A [from_end]
//   store BUF ADDRESS %A · accumulate BUF ADDRESS %A
//   end
//
// ADDRESS is [BASE + STRIDE*rR … + STRIDE*%I of EXTENT]. %V counts every instruction, stores too. Floats are hexadecimal.
#include "compiler/kernel.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const char *const class_words[LOOP_COUNT] = {"auto", "map", "row", "col", "scatter"};
static const char *const red_words[RED_COUNT] = {"none", "sum", "max", "min"};
static const char *const alu_words[ALU_COUNT] = {
  "none",
#define ALU(word, operands, takes, gives, text, f, i) #word,
#include "compiler/alu.def"
#undef ALU
};
static const uint8_t alu_operands[ALU_COUNT] = {
#define ALU(word, operands, takes, gives, text, f, i) [ALU_##word] = operands,
#include "compiler/alu.def"
#undef ALU
};

// ---- writing ----------------------------------------------------------------------------------------------------
static void print_access(Text *t, const Access *at) {
  text_printf(t, "[%lld", (long long)at->base);
  for (int r = 0; r < KERNEL_RANGES; r++)
    if (at->stride[r]) text_printf(t, " + %lld*r%d", (long long)at->stride[r], r);
  if (at->index) text_printf(t, " + %lld*%%%u of %lld", (long long)at->index_stride, at->index, (long long)at->index_extent);
  text_puts(t, "]");
}

static void print_ins(Text *t, const Ins *x, uint32_t v) {
  if (x->op != KI_store && x->op != KI_accumulate) text_printf(t, "%%%u = ", v);
  switch ((KIns)x->op) {
    case KI_load: text_printf(t, "load %d ", x->buf), print_access(t, &x->at); break;
    case KI_store: case KI_accumulate:
      text_printf(t, "%s %d ", x->op == KI_store ? "store" : "accumulate", x->buf), print_access(t, &x->at);
      text_printf(t, " %%%u", x->a);
      break;
    case KI_const:
      text_printf(t, "const %s ", dtype_name((DType)x->dtype));
      if (!dtype_is_float((DType)x->dtype)) text_printf(t, "%lld", (long long)x->i);
      else if (isnan(x->f)) text_puts(t, "nan");
      else text_printf(t, "%a", x->f);
      break;
    case KI_alu:
      text_puts(t, alu_words[x->what]);
      for (int j = 0; j < alu_operands[x->what]; j++) text_printf(t, " %%%u", j == 0 ? x->a : j == 1 ? x->b : x->c);
      break;
    case KI_cast: text_printf(t, "cast %s %%%u", dtype_name((DType)x->dtype), x->a); break;
    case KI_index: text_printf(t, "index %s ", dtype_name((DType)x->dtype)), print_access(t, &x->at); break;
    case KI_scalar: text_printf(t, "scalar %s %lld", dtype_name((DType)x->dtype), (long long)x->i); break;
    case KI_random: text_printf(t, "random %%%u %%%u %%%u", x->a, x->b, x->c); break;
    case KI_reduce:
      text_printf(t, "reduce %s %%%u", red_words[x->what], x->a);
      if (x->b) text_printf(t, " where %%%u r%d", x->b, x->range);
      break;
    case KI_cumsum: text_printf(t, "cumsum %%%u%s", x->a, x->what ? " from_end" : ""); break;
    case KI_none: break;
  }
  text_puts(t, "\n");
}

void kernel_print(Text *t, const Kernel *k) {
  text_printf(t, "kernel %s\n", class_words[k->class]);
  for (uint32_t r = 0; r < k->nrange; r++) {
    text_printf(t, "range %lld", (long long)k->range[r].valid);
    if (k->range[r].n != k->range[r].valid) text_printf(t, " of %lld", (long long)k->range[r].n);
    text_puts(t, k->range[r].reduced ? " reduce\n" : "\n");
  }
  for (uint32_t b = 0; b < k->nbuf; b++) text_printf(t, "buffer %s %lld\n", dtype_name(k->buf[b].dtype), (long long)k->buf[b].count);
  for (uint32_t v = 1; v < k->ins.n; v++) print_ins(t, kernel_ins(k, v), v);
  text_puts(t, "end\n");
}

// ---- reading ----------------------------------------------------------------------------------------------------
typedef struct { Kernel *k; const char *s, *end; uint32_t line; Text *why; bool bad; } Reader;

static void wrong(Reader *r, const char *what) {
  if (!r->bad) text_printf(r->why, "line %u: %s", r->line, what);
  r->bad = true;
}

static void spaces(Reader *r) { while (r->s < r->end && *r->s == ' ') r->s++; }

static bool accept(Reader *r, const char *word) {
  spaces(r);
  size_t n = strlen(word);
  if ((size_t)(r->end - r->s) < n || memcmp(r->s, word, n)) return false;
  if (isalnum((unsigned char)word[n - 1]) && r->s + n < r->end && (isalnum((unsigned char)r->s[n]) || r->s[n] == '_')) return false;
  r->s += n;
  return true;
}

static void expect(Reader *r, const char *word) {
  if (r->bad || accept(r, word)) return;
  wrong(r, "");
  text_printf(r->why, "expected '%s'", word);
}

static void newline(Reader *r) {
  spaces(r);
  if (r->s < r->end && *r->s != '\n') wrong(r, "something is left at the end of the line");
  else if (r->s < r->end) r->s++, r->line++;
}

static const char *word(Reader *r) {                   // letters, digits, _ . + -; "" when there is none
  spaces(r);
  const char *s = r->s;
  while (r->s < r->end && (isalnum((unsigned char)*r->s) || strchr("_.+-", *r->s)) && *r->s) r->s++;
  return arena_strndup(r->k->arena, s, (size_t)(r->s - s));
}

static int64_t integer(Reader *r) {
  const char *w = word(r);
  char *end;
  errno = 0;
  long long x = strtoll(w, &end, !strncmp(w, "0x", 2) ? 16 : 10);
  if (!*w || *end || errno) wrong(r, "expected a whole number");
  return r->bad ? 0 : x;
}

static uint32_t value(Reader *r) {
  expect(r, "%");
  int64_t v = integer(r);
  if (!r->bad && (v < 1 || v >= r->k->ins.n)) wrong(r, "this value does not exist yet");
  return r->bad ? 0 : (uint32_t)v;
}

static uint8_t range(Reader *r) {                      // r3
  spaces(r);
  if (r->s < r->end && *r->s == 'r') r->s++;
  else wrong(r, "expected a range");
  int64_t n = integer(r);
  if (!r->bad && (n < 0 || n >= r->k->nrange)) wrong(r, "this range does not exist");
  return r->bad ? 0 : (uint8_t)n;
}

static DType dtype(Reader *r) {
  DType t = dtype_find(word(r));
  if (!dtype_bytes(t)) wrong(r, "expected a number format");
  return t;
}

static uint8_t find(Reader *r, const char *w, const char *const *words, int n, const char *what) {
  for (int j = 0; j < n; j++)
    if (!strcmp(w, words[j])) return (uint8_t)j;
  wrong(r, what);
  return 0;
}

static Access address(Reader *r) {
  Access at = {0};
  expect(r, "[");
  at.base = integer(r);
  while (!r->bad && !accept(r, "]")) {
    expect(r, "+");
    int64_t step = integer(r);
    expect(r, "*");
    spaces(r);
    if (r->s < r->end && *r->s == '%') {
      if (at.index) wrong(r, "a second index");
      at.index = value(r), at.index_stride = step;
      expect(r, "of");
      at.index_extent = integer(r);
    } else {
      at.stride[range(r)] = step;
    }
  }
  return at;
}

static uint8_t buffer(Reader *r) {
  int64_t b = integer(r);
  if (b < 0 || b >= r->k->nbuf) wrong(r, "this buffer does not exist");
  return r->bad ? 0 : (uint8_t)b;
}

static Ins instruction(Reader *r) {
  Ins x = {0};
  Kernel *k = r->k;
  const char *w = word(r);
  if (!strcmp(w, "load")) {
    x.op = KI_load, x.buf = buffer(r), x.at = address(r), x.dtype = (uint8_t)value_dtype(k->buf[x.buf].dtype);
  } else if (!strcmp(w, "const")) {
    x.op = KI_const, x.dtype = (uint8_t)dtype(r);
    if (!r->bad && dtype_is_float((DType)x.dtype)) {
      const char *number = word(r);
      char *end;
      x.f = strtod(number, &end);
      if (!*number || *end) wrong(r, "expected a number");
      if (isnan(x.f)) x.f = (double)NAN;
      if (x.dtype == DT_f32) x.f = (double)(float)x.f;
    } else {
      x.i = integer(r);
      if (x.dtype == DT_i32) x.i = (int32_t)x.i;
      if (x.dtype == DT_bool) x.i = x.i != 0;
    }
  } else if (!strcmp(w, "cast")) {
    x.op = KI_cast, x.dtype = (uint8_t)dtype(r), x.a = value(r);
  } else if (!strcmp(w, "index")) {
    x.op = KI_index, x.dtype = (uint8_t)dtype(r), x.at = address(r);
  } else if (!strcmp(w, "scalar")) {
    x.op = KI_scalar, x.dtype = (uint8_t)dtype(r), x.i = integer(r);
  } else if (!strcmp(w, "random")) {
    x.op = KI_random, x.dtype = DT_f32, x.a = value(r), x.b = value(r), x.c = value(r);
  } else if (!strcmp(w, "reduce")) {
    x.op = KI_reduce, x.what = find(r, word(r), red_words, RED_COUNT, "expected sum, max or min"), x.a = value(r);
    if (accept(r, "where")) {
      x.b = value(r), x.range = range(r);
    }
    x.dtype = k->ins.at[x.a].dtype;
  } else if (!strcmp(w, "cumsum")) {
    x.op = KI_cumsum, x.a = value(r), x.what = accept(r, "from_end"), x.dtype = k->ins.at[x.a].dtype;
  } else {
    x.op = KI_alu, x.what = find(r, w, alu_words, ALU_COUNT, "no such instruction");
    uint32_t *to[] = {&x.a, &x.b, &x.c};
    for (int j = 0; j < alu_operands[x.what] && !r->bad; j++) *to[j] = value(r);
    bool compares = x.what >= ALU_eq && x.what <= ALU_ge;
    x.dtype = compares ? DT_bool : k->ins.at[x.what == ALU_select ? x.b : x.a].dtype;
  }
  return x;
}

Kernel *kernel_read(Arena *a, const char *text, size_t n, Text *why) {
  Kernel *k = kernel_begin(a, LOOP_auto);
  Reader rd = {k, text, text + n, 1, why, false}, *r = &rd;
  expect(r, "kernel");
  k->class = (LoopClass)find(r, word(r), class_words, LOOP_COUNT, "no such class");
  newline(r);
  while (!r->bad && accept(r, "range")) {
    int64_t valid = integer(r), whole = accept(r, "of") ? integer(r) : valid;
    bool reduced = accept(r, "reduce");
    if (k->nrange == KERNEL_RANGES) wrong(r, "too many ranges");
    else kernel_range(k, whole, valid, reduced);
    newline(r);
  }
  while (!r->bad && accept(r, "buffer")) {
    DType t = dtype(r);
    int64_t count = integer(r);
    if (k->nbuf == KERNEL_BUFFERS) wrong(r, "too many buffers");
    else kernel_buffer(k, t, count);
    newline(r);
  }
  while (!r->bad && !accept(r, "end")) {
    if (k->ins.n > KERNEL_INS) { wrong(r, "too many instructions"); break; }
    Ins x = {0};
    bool store = accept(r, "store");
    if (store || accept(r, "accumulate")) {
      x.op = store ? KI_store : KI_accumulate, x.buf = buffer(r), x.at = address(r), x.a = value(r);
    } else {
      expect(r, "%");
      if (integer(r) != k->ins.n) wrong(r, "instructions are numbered one after another");
      expect(r, "=");
      x = instruction(r);
    }
    newline(r);
    if (!r->bad) vec_push(a, &k->ins, x);
  }
  if (!r->bad && (newline(r), r->s != r->end)) wrong(r, "text after 'end'");
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    if (x->op == KI_load || x->op == KI_accumulate) k->buf[x->buf].read = true;
    if (x->op == KI_store || x->op == KI_accumulate) k->buf[x->buf].written = true;
  }
  const char *bad = r->bad ? 0 : kernel_check(k, a);
  if (bad) text_puts(why, bad);
  if (r->bad || bad) return 0;
  k->finished = k->class != LOOP_auto;
  return k;
}
