// base.h -- what everything stands on: arenas, interned strings, hash tables, growing arrays, text, checked
// arithmetic, files, and how the world's failures travel (Status).
#ifndef MT_BASE_H
#define MT_BASE_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

// ---- arena: lifetimes, not frees ------------------------------------------------------------------------------
typedef struct Arena Arena;
Arena *arena_create(void);
void   arena_destroy(Arena *a);                                   // 0 is allowed
void  *arena_alloc(Arena *a, size_t bytes);                       // zeroed, aligned to 16; never 0
char  *arena_strndup(Arena *a, const char *s, size_t n);
char  *arena_printf(Arena *a, const char *fmt, ...) PRINTF(2, 3);
char  *arena_vprintf(Arena *a, const char *fmt, va_list args) PRINTF(2, 0);
#define NEW(arena, T) ((T *)arena_alloc(arena, sizeof(T)))
#define NEW_N(arena, T, n) ((T *)arena_alloc(arena, sizeof(T) * (size_t)(n)))

// ---- growing arrays in an arena: typedef VEC(int) Ints; vec_push(arena, &v, 3) --------------------------------
#define VEC(T) struct { T *at; uint32_t n, room; }
#define vec_push(arena, v, ...) (vec_grow(arena, (void **)&(v)->at, &(v)->room, (v)->n, sizeof *(v)->at), \
                                 (void)((v)->at[(v)->n++] = (__VA_ARGS__)))
void vec_grow(Arena *a, void **at, uint32_t *room, uint32_t n, size_t item);
#define vec_reserve(arena, v, most) vec_room(arena, (void **)&(v)->at, &(v)->room, (v)->n, most, sizeof *(v)->at)
void vec_room(Arena *a, void **at, uint32_t *room, uint32_t n, uint32_t most, size_t item); // room for `most` in all

// ---- hashing --------------------------------------------------------------------------------------------------
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);      // XXH3
uint64_t hash_mix(uint64_t a, uint64_t b);                        // order matters
// of a parameter or a random op: its draws depend on it
uint32_t path_hash(const char *path);

// u64 -> u64
typedef struct { Arena *arena; uint64_t *key, *val; uint8_t *used; uint32_t n, room; } Map;
void      map_init(Map *m, Arena *a);
uint64_t *map_get(const Map *m, uint64_t key);                    // 0 when absent
uint64_t *map_put(Map *m, uint64_t key, uint64_t val);            // overwrites
static inline uint64_t key_of(const void *p) { return (uint64_t)(uintptr_t)p; }

// ---- interned strings: equal text, equal pointer --------------------------------------------------------------
typedef const char *Str;
typedef struct Intern Intern;
Intern *intern_create(Arena *a);
Str     intern(Intern *in, const char *s);
Str     intern_find(const Intern *in, const char *s);             // 0 when it is not there
Str     intern_n(Intern *in, const char *s, size_t n);
Str     intern_printf(Intern *in, const char *fmt, ...) PRINTF(2, 3);

// ---- text: a string that grows in an arena; s is always terminated ------------------------------------------------
typedef struct { Arena *arena; char *s; size_t n, room; } Text;
void text_init(Text *t, Arena *a);
void text_add(Text *t, const char *s, size_t n);
void text_puts(Text *t, const char *s);
void text_printf(Text *t, const char *fmt, ...) PRINTF(2, 3);

// ---- characters -------------------------------------------------------------------------------------------------
static inline int hex_digit(char c) {                             // as plans and the IR's text have them; -1: none
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
bool ends_with(const char *s, const char *end);
// The bytes of the UTF-8 character at s, of which n follow or a 0 ends them; 0 when it is none.
size_t utf8_length(const unsigned char *s, size_t n);

// ---- "1, 5, 25": what divides n, the first dozen -----------------------------------------------------------------
Str divisors_text(Arena *a, int64_t n);

// ---- nearest word, for "did you mean": 0 when nothing is near ---------------------------------------------------
Str nearest(const char *word, const Str *words, size_t n);

// ---- checked arithmetic: false on overflow ----------------------------------------------------------------------
static inline bool mul_ok(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }
static inline bool add_ok(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }

// ---- the world's failures ---------------------------------------------------------------------------------------
// A Status is 0 or the process's exit code. The first place that knows writes the message (fail), callers pass it up.
typedef int Status;
#define EXITS(X) \
  X(OK,           0, "done") \
  X(COMPILE,      1, "an error in the model text") \
  X(USAGE,       64, "a mistake on the command line") \
  X(INPUT,       65, "a file that is not right: plan, data, checkpoint") \
  X(MISSING,     66, "a file that is not there") \
  X(UNAVAILABLE, 69, "a device, compiler, library or memory that is not there; mtc doctor says how to get it") \
  X(INTERNAL,    70, "a fault of the program") \
  X(CREATE,      73, "no place to write to") \
  X(IO,          74, "reading or writing failed") \
  X(AGAIN,       75, "stopped, and saved where asked to: run it again") \
  X(PEER,        76, "another rank is lost") \
  X(PERMISSION,  77, "not permitted")
enum {
#define X(name, code, what) EXIT_##name = code,
  EXITS(X)
#undef X
};
#define TRY(e) do { Status try_ = (e); if (try_) return try_; } while (0)
extern const char *program_name;                                  // set by program_start; opens every message
void program_start(const char *name);                             // in main: a file too large is an errno, no signal
Status fail(Status code, const char *fmt, ...) PRINTF(2, 3);      // "program: message" on stderr; returns code
// How a process speaks that is one of several which share standard error.
typedef struct {
  char who[32];                                                   // "rank 1: "; not where a message begins with a rank
  bool (*holds)(void *with, const char *message);                 // 0, or: not to be written, another one has said it
  void (*said)(void *with, const char *message);                  // 0, or: told of each that is written
  void *with;
} Voice;
extern Voice voice;                                               // set by comm_launch, while there are several
// Ends a message that memory was refused: how large this process may be (ulimit -v); "" when there is no limit.
const char *space_limit(void);
_Noreturn void bug(const char *fmt, ...) PRINTF(1, 2);            // a promise of ours is broken: says so, exits 70

// ---- files ------------------------------------------------------------------------------------------------------
Status file_read(Arena *a, const char *path, size_t limit, char **data, size_t *n); // whole; one byte 0 is appended
// path is replaced at once or not at all: a temporary beside it, fsync, rename, fsync of the
// folder; a device or a pipe is written to
Status file_write(const char *path, const void *data, size_t n);
bool is_terminal(int fd);                                         // one that shows more than lines: TERM is set, not dumb
double now_seconds(void);                                         // CLOCK_MONOTONIC
int64_t peak_bytes(void);                                         // most memory that this process has had; 0: unknown
#endif
