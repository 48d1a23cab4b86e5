// onednn.c -- see onednn.h. The functions are those of oneDNN 2's C interface.
#include "runtime/onednn.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef MT_ONEDNN
#include <dnnl.h>

#define API(X)                                                                                                       \
  X(version)                                                                                                         \
  X(get_effective_cpu_isa) X(set_primitive_cache_capacity) X(engine_create) X(engine_destroy) X(stream_create)       \
      X(stream_destroy) X(memory_create) X(memory_destroy) X(memory_set_data_handle) X(memory_desc_init_by_strides)  \
          X(memory_desc_get_size) X(matmul_desc_init) X(primitive_attr_create) X(primitive_attr_destroy)             \
              X(primitive_attr_set_scratchpad_mode) X(primitive_attr_set_post_ops) X(post_ops_create)                \
                  X(post_ops_destroy) X(post_ops_append_sum) X(post_ops_append_eltwise) X(primitive_desc_create)     \
                      X(primitive_desc_destroy) X(primitive_desc_query_md) X(primitive_create) X(primitive_destroy)  \
                          X(primitive_execute)
static struct {
#define X(name) __typeof__(dnnl_##name) *name;
  API(X)
#undef X
} api;
static const char *no_api; // why it is not there, or 0

static void load_api(void) {
  const char *path = getenv("MTRUN_ONEDNN");
  path = path && *path ? path : "libdnnl.so.2";
  setenv("OMP_NUM_THREADS", "1", 1); // read when its thread library is loaded
  static char message[400];
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    snprintf(message, sizeof message, "%s%s", dlerror(), space_limit());
    no_api = message;
    return;
  }
#define X(name)                                                                                                      \
  *(void **)&api.name = dlsym(lib, "dnnl_" #name);                                                                   \
  if (!api.name) no_api = "it has no dnnl_" #name;
  API(X)
#undef X
  if (!no_api && api.version()->major != DNNL_VERSION_MAJOR) no_api = "it is of another major version";
}

static bool has_api(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_api);
  return !no_api;
}

typedef struct {
  dnnl_memory_t a, b, c, scratch;
} Operands; // of one worker: only the addresses change
struct Matmul {
  OneDnn *lib;
  MatmulShape shape;
  dnnl_primitive_t primitive;
  Operands *at; // by worker
};
struct OneDnn {
  Arena *arena;
  int threads;
  Str name;
  dnnl_engine_t engine;
  dnnl_stream_t *stream; // by worker
  void **scratch;        // by worker: work space of the greediest product
  size_t scratch_bytes;
  VEC(Matmul *) matmul;
};

static dnnl_data_type_t type_of(DType t) { return t == DT_bf16 ? dnnl_bf16 : dnnl_f32; }

// A matrix of rows × cols; one of the strides is 1, or its extent is
static dnnl_status_t describe(dnnl_memory_desc_t *d, DType t, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  bool plain = cols <= 1 || col == 1;
  dnnl_dims_t dims = {rows, cols}, strides = {plain ? MAX(row, cols) : 1, plain ? 1 : MAX(col, rows)};
  if (plain && rows <= 1) strides[0] = cols;
  return api.memory_desc_init_by_strides(d, 2, dims, type_of(t), strides);
}

// alpha · a · b, then the sum with c, all in f32 before the one rounding
static dnnl_status_t primitive_of(dnnl_engine_t engine, const MatmulShape *s, dnnl_primitive_desc_t *desc,
                                  dnnl_primitive_t *out) {
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t d;
  dnnl_primitive_attr_t attr = 0;
  dnnl_post_ops_t ops = 0;
  dnnl_status_t e = describe(&a, s->a, s->m, s->k, s->am, s->ak);
  if (!e) e = describe(&b, s->b, s->k, s->n, s->bk, s->bn);
  if (!e) e = describe(&c, s->c, s->m, s->n, s->cm, 1);
  if (!e) e = api.matmul_desc_init(&d, &a, &b, 0, &c);
  if (!e) e = api.primitive_attr_create(&attr);
  if (!e) e = api.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (!e) e = api.post_ops_create(&ops);
  if (!e && s->alpha != 1) e = api.post_ops_append_eltwise(ops, 1, dnnl_eltwise_linear, (float)s->alpha, 0);
  if (!e && s->accumulate) e = api.post_ops_append_sum(ops, 1);
  if (!e) e = api.primitive_attr_set_post_ops(attr, ops);
  if (!e) e = api.primitive_desc_create(desc, &d, attr, engine, 0);
  if (!e && (e = api.primitive_create(out, *desc))) api.primitive_desc_destroy(*desc);
  if (ops) api.post_ops_destroy(ops);
  if (attr) api.primitive_attr_destroy(attr);
  return e;
}

bool onednn_has(DType t) {
  if ((t != DT_f32 && t != DT_bf16) || !has_api()) return false;
  dnnl_engine_t engine;
  if (api.engine_create(&engine, dnnl_cpu, 0)) return false;
  MatmulShape s = {t, t, DT_f32, 16, 16, 16, 16, 1, 16, 1, 16, 1, true};
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t p;
  bool has = !primitive_of(engine, &s, &desc, &p);
  if (has) api.primitive_destroy(p), api.primitive_desc_destroy(desc);
  api.engine_destroy(engine);
  return has;
}

static const char *isa_name(void) {
  switch ((int)api.get_effective_cpu_isa()) {
  case dnnl_cpu_isa_avx2:
    return "avx2";
  case dnnl_cpu_isa_avx512_core:
    return "avx512_core";
  case dnnl_cpu_isa_avx512_core_vnni:
    return "avx512_core_vnni";
  case dnnl_cpu_isa_avx512_core_bf16:
    return "avx512_core_bf16";
  case dnnl_cpu_isa_avx512_core_amx:
    return "avx512_core_amx";
  default:
    return "";
  }
}

Status onednn_open(Arena *a, int threads, OneDnn **out) {
  if (!has_api()) {
    const char *own = getenv("MTRUN_ONEDNN");
    if (own && *own)
      return fail(EXIT_UNAVAILABLE,
                  "matrix products need oneDNN 2, and MTRUN_ONEDNN names '%s': %s\n  unset it, or set it to the library's path",
                  own, no_api);
    return fail(EXIT_UNAVAILABLE,
                "matrix products need oneDNN 2: %s\n  install it: apt-get install libdnnl2, or compile the plan here", no_api);
  }
  OneDnn *o = *out = NEW(a, OneDnn);
  o->arena = a, o->threads = threads;
  const dnnl_version_t *v = api.version();
  o->name = arena_printf(a, "oneDNN %d.%d.%d %s", v->major, v->minor, v->patch, isa_name());
  o->stream = NEW_N(a, dnnl_stream_t, threads), o->scratch = NEW_N(a, void *, threads);
  dnnl_status_t e = api.engine_create(&o->engine, dnnl_cpu, 0);
  for (int i = 0; i < threads && !e; i++) e = api.stream_create(&o->stream[i], o->engine, dnnl_stream_default_flags);
  return e ? fail(EXIT_UNAVAILABLE, "oneDNN does not start: error %d", (int)e) : 0;
}

static bool grow_scratch(OneDnn *o, size_t bytes) {
  if (bytes <= o->scratch_bytes) return true;
  bytes = (bytes + 4095) / 4096 * 4096;
  for (int i = 0; i < o->threads; i++) {
    free(o->scratch[i]);
    if (!(o->scratch[i] = aligned_alloc(4096, bytes))) return false;
  }
  o->scratch_bytes = bytes;
  return true;
}

static bool same(const MatmulShape *x, const MatmulShape *y) {
  return x->a == y->a && x->b == y->b && x->c == y->c && x->m == y->m && x->n == y->n && x->k == y->k &&
         x->am == y->am && x->ak == y->ak && x->bk == y->bk && x->bn == y->bn && x->cm == y->cm &&
         x->alpha == y->alpha && x->accumulate == y->accumulate;
}

Status onednn_matmul(OneDnn *o, const MatmulShape *s, Matmul **out) {
  for (uint32_t i = 0; i < o->matmul.n; i++)
    if (same(&o->matmul.at[i]->shape, s)) return *out = o->matmul.at[i], (Status)0;
  Matmul *m = *out = NEW(o->arena, Matmul);
  m->lib = o, m->shape = *s;
  dnnl_primitive_desc_t desc;
  dnnl_status_t e = primitive_of(o->engine, s, &desc, &m->primitive);
  if (e)
    return fail(EXIT_UNAVAILABLE,
                "oneDNN has no product of %s and %s into %s on this CPU (error %d): compile the plan here",
                dtype_name(s->a), dtype_name(s->b), dtype_name(s->c), (int)e);
  vec_push(o->arena, &o->matmul, m);
  m->at = NEW_N(o->arena, Operands, o->threads);
  const dnnl_memory_desc_t *scratch = api.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  if (!grow_scratch(o, api.memory_desc_get_size(scratch))) e = dnnl_out_of_memory;
  for (int i = 0; i < o->threads && !e; i++) {
    Operands *at = &m->at[i];
    e = api.memory_create(&at->a, api.primitive_desc_query_md(desc, dnnl_query_src_md, 0), o->engine,
                          DNNL_MEMORY_NONE);
    if (!e)
      e = api.memory_create(&at->b, api.primitive_desc_query_md(desc, dnnl_query_weights_md, 0), o->engine,
                            DNNL_MEMORY_NONE);
    if (!e)
      e = api.memory_create(&at->c, api.primitive_desc_query_md(desc, dnnl_query_dst_md, 0), o->engine,
                            DNNL_MEMORY_NONE);
    if (!e) e = api.memory_create(&at->scratch, scratch, o->engine, DNNL_MEMORY_NONE);
  }
  api.primitive_desc_destroy(desc);
  return e ? fail(EXIT_UNAVAILABLE, "oneDNN has no memory for its products%s", space_limit()) : 0;
}

void onednn_run(const Matmul *m, int worker, void *c, const void *a, const void *b) {
  const OneDnn *o = m->lib;
  const Operands *at = &m->at[worker];
  api.memory_set_data_handle(at->a, (void *)(uintptr_t)a), api.memory_set_data_handle(at->b, (void *)(uintptr_t)b);
  api.memory_set_data_handle(at->c, c), api.memory_set_data_handle(at->scratch, o->scratch[worker]);
  dnnl_exec_arg_t arg[] = {
      {DNNL_ARG_SRC, at->a}, {DNNL_ARG_WEIGHTS, at->b}, {DNNL_ARG_DST, at->c}, {DNNL_ARG_SCRATCHPAD, at->scratch}};
  dnnl_status_t e = api.primitive_execute(m->primitive, o->stream[worker], COUNT(arg), arg);
  if (e) bug("oneDNN: a product failed with %d", (int)e);
}

void onednn_close(OneDnn *o) {
  if (!o) return;
  for (uint32_t i = 0; i < o->matmul.n; i++) {
    Matmul *m = o->matmul.at[i];
    for (int k = 0; k < o->threads; k++) {
      dnnl_memory_t all[] = {m->at[k].a, m->at[k].b, m->at[k].c, m->at[k].scratch};
      for (size_t j = 0; j < COUNT(all); j++)
        if (all[j]) api.memory_destroy(all[j]);
    }
    api.primitive_destroy(m->primitive);
  }
  for (int i = 0; i < o->threads; i++) {
    if (o->stream[i]) api.stream_destroy(o->stream[i]);
    free(o->scratch[i]);
  }
  if (o->engine) api.engine_destroy(o->engine);
}

Str onednn_name(const OneDnn *o) { return o->name; }

#else // built without its header
struct OneDnn {
  Str name;
};
bool onednn_has(DType t) { return (void)t, false; }
Status onednn_open(Arena *a, int threads, OneDnn **o) {
  (void)a, (void)threads, (void)o;
  return fail(EXIT_UNAVAILABLE, "the plan's matrix products need oneDNN, and this mtrun was built without it: "
                                "compile the plan with this build's mtc");
}
void onednn_close(OneDnn *o) { (void)o; }
Str onednn_name(const OneDnn *o) { return o->name; }
Status onednn_matmul(OneDnn *o, const MatmulShape *s, Matmul **m) {
  return (void)o, (void)s, (void)m, fail(EXIT_UNAVAILABLE, "no oneDNN");
}
void onednn_run(const Matmul *m, int worker, void *c, const void *a, const void *b) {
  (void)m, (void)worker, (void)c, (void)a, (void)b;
}
#endif
