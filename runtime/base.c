// base.c -- see base.h.
#include "runtime/base.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

// ---- arena ------------------------------------------------------------------------------------------------------
typedef struct Chunk Chunk;
// mapped: its bytes when it is no malloc's
struct Chunk { Chunk *next; size_t used, size, mapped; _Alignas(16) char data[]; };
struct Arena { Chunk *chunk; };

static _Noreturn void out_of_memory(size_t bytes) {
  fprintf(stderr, "%s: out of memory: %zu bytes more were refused%s\n", program_name, bytes, space_limit());
  exit(EXIT_UNAVAILABLE);
}

Arena *arena_create(void) {
  Arena *a = calloc(1, sizeof *a);
  if (!a) out_of_memory(sizeof *a);
  return a;
}

// Large chunks are whole huge pages, by advice: a compilation touches each byte once, and page
// faults would be half its time.
enum { HUGE = 1 << 21 };

static Chunk *chunk_create(size_t size) {
  size_t whole = sizeof(Chunk) + size;
  if (whole < HUGE) {
    Chunk *c = calloc(1, whole);
    if (!c) out_of_memory(size);
    c->size = size;
    return c;
  }
  whole = (whole + HUGE - 1) & ~(size_t)(HUGE - 1);
  char *p = mmap(0, whole + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) out_of_memory(size);
  size_t skip = (HUGE - ((uintptr_t)p & (HUGE - 1))) & (HUGE - 1);
  if (skip) munmap(p, skip);
  munmap(p + skip + whole, HUGE - skip);
  madvise(p + skip, whole, MADV_HUGEPAGE);
  Chunk *c = (Chunk *)(p + skip);
  c->size = whole - sizeof(Chunk), c->mapped = whole;
  return c;
}

void arena_destroy(Arena *a) {
  if (!a) return;
  for (Chunk *c = a->chunk, *next; c; c = next) {
    next = c->next;
    if (c->mapped) munmap(c, c->mapped);
    else free(c);
  }
  free(a);
}

void *arena_alloc(Arena *a, size_t bytes) {
  if (bytes > SIZE_MAX / 2) out_of_memory(bytes);
  bytes = (bytes + 15) & ~(size_t)15;
  Chunk *c = a->chunk;
  if (!c || c->size - c->used < bytes) {
    // big requests get a chunk of their own behind the open one, so that its rest is not lost
    size_t size = MAX(bytes, (size_t)1 << 16);
    if (c && size == (size_t)1 << 16) size = MIN(c->size * 2, (size_t)1 << 24);
    if (size < bytes) size = bytes;
    Chunk *fresh = chunk_create(size);
    if (c && bytes > (size_t)1 << 16 && c->size - c->used > bytes / 8) {
      fresh->next = c->next, c->next = fresh, fresh->used = bytes;
      return fresh->data;
    }
    fresh->next = c, a->chunk = c = fresh;
  }
  void *p = c->data + c->used;
  c->used += bytes;
  return p;
}

char *arena_strndup(Arena *a, const char *s, size_t n) {
  char *d = arena_alloc(a, n + 1);
  if (n) memcpy(d, s, n);
  return d;
}

char *arena_vprintf(Arena *a, const char *fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(0, 0, fmt, again);
  va_end(again);
  if (n < 0) n = 0;
  char *d = arena_alloc(a, (size_t)n + 1);
  vsnprintf(d, (size_t)n + 1, fmt, args);
  return d;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  char *d = arena_vprintf(a, fmt, args);
  va_end(args);
  return d;
}

void vec_room(Arena *a, void **at, uint32_t *room, uint32_t n, uint32_t most, size_t item) {
  if (most <= *room) return;
  void *p = arena_alloc(a, most * item);
  if (n) memcpy(p, *at, n * item);
  *at = p, *room = most;
}

void vec_grow(Arena *a, void **at, uint32_t *room, uint32_t n, size_t item) {
  if (n < *room) return;
  if (*room > UINT32_MAX / 4) bug("an array grew past %u items", n);
  vec_room(a, at, room, n, *room ? *room * 2 : 8, item);
}

// ---- hashing ----------------------------------------------------------------------------------------------------
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(p, n, seed); }

uint32_t path_hash(const char *path) { return (uint32_t)hash_bytes(path, strlen(path), 0); }

uint64_t hash_mix(uint64_t a, uint64_t b) {                       // splitmix64 of the two, order matters
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

void map_init(Map *m, Arena *a) { *m = (Map){.arena = a}; }

static uint32_t map_slot(const Map *m, uint64_t key) {
  uint32_t i = (uint32_t)hash_mix(key, 1) & (m->room - 1);
  while (m->used[i] && m->key[i] != key) i = (i + 1) & (m->room - 1);
  return i;
}

uint64_t *map_get(const Map *m, uint64_t key) {
  if (!m->n) return 0;
  uint32_t i = map_slot(m, key);
  return m->used[i] ? &m->val[i] : 0;
}

uint64_t *map_put(Map *m, uint64_t key, uint64_t val) {
  if ((m->n + 1) * 2 > m->room) {
    Map old = *m;
    m->room = old.room ? old.room * 2 : 16;
    m->key = NEW_N(m->arena, uint64_t, m->room), m->val = NEW_N(m->arena, uint64_t, m->room);
    m->used = NEW_N(m->arena, uint8_t, m->room);
    for (uint32_t i = 0; i < old.room; i++)
      if (old.used[i]) {
        uint32_t j = map_slot(m, old.key[i]);
        m->used[j] = 1, m->key[j] = old.key[i], m->val[j] = old.val[i];
      }
  }
  uint32_t i = map_slot(m, key);
  if (!m->used[i]) m->used[i] = 1, m->key[i] = key, m->n++;
  m->val[i] = val;
  return &m->val[i];
}

// ---- interned strings -------------------------------------------------------------------------------------------
struct Intern { Arena *arena; Str *slot; uint64_t *hash; uint32_t n, room; };

Intern *intern_create(Arena *a) {
  Intern *in = NEW(a, Intern);
  in->arena = a;
  return in;
}

static uint32_t intern_slot(const Intern *in, const char *s, size_t n, uint64_t h) {
  uint32_t i = (uint32_t)h & (in->room - 1);
  while (in->slot[i] && !(in->hash[i] == h && !strncmp(in->slot[i], s, n) && !in->slot[i][n]))
    i = (i + 1) & (in->room - 1);
  return i;
}

Str intern_n(Intern *in, const char *s, size_t n) {
  n = strnlen(s, n);
  if ((in->n + 1) * 2 > in->room) {
    Intern old = *in;
    in->room = old.room ? old.room * 2 : 64;
    in->slot = NEW_N(in->arena, Str, in->room), in->hash = NEW_N(in->arena, uint64_t, in->room);
    for (uint32_t i = 0; i < old.room; i++)
      if (old.slot[i]) {
        uint32_t j = (uint32_t)old.hash[i] & (in->room - 1);
        while (in->slot[j]) j = (j + 1) & (in->room - 1);
        in->slot[j] = old.slot[i], in->hash[j] = old.hash[i];
      }
  }
  uint64_t h = hash_bytes(s, n, 0);
  uint32_t i = intern_slot(in, s, n, h);
  if (!in->slot[i]) in->slot[i] = arena_strndup(in->arena, s, n), in->hash[i] = h, in->n++;
  return in->slot[i];
}

Str intern_find(const Intern *in, const char *s) {
  size_t n = strlen(s);
  return in->room ? in->slot[intern_slot(in, s, n, hash_bytes(s, n, 0))] : 0;
}

Str intern(Intern *in, const char *s) { return intern_n(in, s, strlen(s)); }

Str intern_printf(Intern *in, const char *fmt, ...) {
  char few[256];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(few, sizeof few, fmt, args);
  va_end(args);
  if (n < (int)sizeof few) return intern(in, few);
  va_start(args, fmt);
  char *s = arena_vprintf(in->arena, fmt, args);
  va_end(args);
  return intern(in, s);
}

// ---- text -------------------------------------------------------------------------------------------------------
void text_init(Text *t, Arena *a) { *t = (Text){.arena = a, .s = (char *)(uintptr_t)""}; }  // room 0: never written to

static void text_room(Text *t, size_t more) {
  if (t->n + more + 1 <= t->room) return;
  size_t room = MAX(t->room * 2, t->n + more + 1);
  room = MAX(room, (size_t)256);
  char *s = arena_alloc(t->arena, room);
  if (t->n) memcpy(s, t->s, t->n);
  t->s = s, t->room = room;
}

void text_add(Text *t, const char *s, size_t n) {
  text_room(t, n);
  if (n) memcpy(t->s + t->n, s, n);
  t->s[t->n += n] = 0;
}

void text_puts(Text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_printf(Text *t, const char *fmt, ...) {
  text_room(t, 80);
  for (int again = 0; again < 2; again++) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->s + t->n, t->room - t->n, fmt, args);
    va_end(args);
    if (n < 0) return;
    if ((size_t)n < t->room - t->n) { t->n += (size_t)n; return; }
    text_room(t, (size_t)n);
  }
}

size_t utf8_length(const unsigned char *s, size_t n) {
  size_t k = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
  if (k > n) return 0;
  for (size_t i = 1; i < k; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90)) return 0;      // overlong
  if ((*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f)) return 0;      // surrogates; past U+10FFFF
  return k;
}

bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

// ---- divisors ---------------------------------------------------------------------------------------------------
Str divisors_text(Arena *a, int64_t n) {
  enum { MOST = 12, LIMIT = 1 << 20 };
  Text t;
  text_init(&t, a);
  uint32_t count = 0;
  for (int64_t i = 1; i <= n && i <= LIMIT; i++) {
    if (n % i) continue;
    if (count++ == MOST) return text_puts(&t, ", …"), t.s;
    text_printf(&t, "%s%lld", i > 1 ? ", " : "", (long long)i);
  }
  return t.n ? t.s : "1";
}

// ---- nearest word -----------------------------------------------------------------------------------------------
// Edit distance (a swap of neighbours counts one), at most a third of the word's length.
static size_t distance(const char *a, const char *b, size_t limit) {
  enum { LONG = 64 };
  size_t n = strlen(a), m = strlen(b);
  if (n >= LONG || m >= LONG || (n > m ? n - m : m - n) > limit) return limit + 1;
  size_t row[3][LONG + 1];
  for (size_t j = 0; j <= m; j++) row[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t d = up[j - 1] + (a[i - 1] != b[j - 1]);
      d = MIN(d, MIN(up[j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d = MIN(d, up2[j - 2] + 1);
      now[j] = d;
    }
  }
  return row[n % 3][m];
}

// The first word that begins so, for one that was not written to its end.
static Str begun(const char *word, const Str *words, size_t n) {
  size_t length = strlen(word);
  for (size_t i = 0; i < n && length >= 3; i++)
    if (!strncmp(words[i], word, length)) return words[i];
  return 0;
}

Str nearest(const char *word, const Str *words, size_t n) {
  size_t best = MAX(strlen(word) / 3, (size_t)1) + 1;
  best = MIN(best, strlen(word));                                 // of a single letter nothing would be left
  Str found = 0;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(word, words[i], best);
    // of two, the one that begins alike
    bool closer = found && d == best && words[i][0] == word[0] && found[0] != word[0];
    if (d < best || closer) best = d, found = words[i];
  }
  return found ? found : begun(word, words, n);
}

// ---- the world's failures ---------------------------------------------------------------------------------------
const char *program_name = "mt";

// Past the limit of a file's size (ulimit -f) a write would end the process, and what it was writing would stay. What
// it starts inherits this.
void program_start(const char *name) {
  program_name = name;
  signal(SIGXFSZ, SIG_IGN);
}

// Names out of files reach messages: a control byte in one must not reach the terminal.
static void put_plain(const char *s, FILE *to) {
  for (; *s; s++)
    if (((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f) fprintf(to, "\\x%02x", (unsigned char)*s);
    else putc(*s, to);
}

Voice voice;

// Written at once: other ranks have the same standard error.
static void write_message(const char *message) {
  char *line = 0;
  size_t size = 0;
  FILE *to = open_memstream(&line, &size);
  fflush(stdout);
  fprintf(to ? to : stderr, "%s: %s", program_name, strncmp(message, "rank ", 5) ? voice.who : "");
  put_plain(message, to ? to : stderr);
  fputc('\n', to ? to : stderr);
  if (to && !fclose(to)) fwrite(line, 1, size, stderr);
  free(line);
}

Status fail(Status code, const char *fmt, ...) {
  char few[512], *all = few;
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(few, sizeof few, fmt, args);
  va_end(args);
  if (n >= (int)sizeof few && (all = malloc((size_t)n + 1))) {
    va_start(args, fmt);
    vsnprintf(all, (size_t)n + 1, fmt, args);
    va_end(args);
  }
  if (!all) all = few;
  if (!voice.holds || !voice.holds(voice.with, all)) {
    write_message(all);
    if (voice.said) voice.said(voice.with, all);
  }
  if (all != few) free(all);
  return code;
}

const char *space_limit(void) {
  static _Thread_local char text[128];
  struct rlimit l;
  if (getrlimit(RLIMIT_AS, &l) || l.rlim_cur == RLIM_INFINITY) return "";
  snprintf(text, sizeof text, "; the address space of this process is limited to %llu KiB (ulimit -v)",
           (unsigned long long)l.rlim_cur >> 10);
  return text;
}

void bug(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fprintf(stderr, "%s: internal error: ", program_name);
  vfprintf(stderr, fmt, args);
  fputc('\n', stderr);
  va_end(args);
  exit(EXIT_INTERNAL);
}

// ---- files ------------------------------------------------------------------------------------------------------
static Status cannot_open(const char *path, int e) {
  Status code = e == ENOENT || e == ENOTDIR ? EXIT_MISSING : e == EACCES || e == EPERM ? EXIT_PERMISSION : EXIT_IO;
  return fail(code, "%s: %s", path, strerror(e));
}

Status file_read(Arena *a, const char *path, size_t limit, char **data, size_t *n) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);           // a FIFO must not hang us
  if (fd < 0) return cannot_open(path, errno);
  struct stat st;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
    close(fd);
    return fail(EXIT_INPUT, "%s: not a regular file", path);
  }
  if ((uint64_t)st.st_size > limit) {
    close(fd);
    return fail(EXIT_INPUT, "%s: %lld bytes, at most %zu are allowed", path, (long long)st.st_size, limit);
  }
  size_t size = (size_t)st.st_size, got = 0;
  char *p = arena_alloc(a, size + 1);
  while (got < size) {
    ssize_t k = read(fd, p + got, size - got);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) {
      int e = errno;
      close(fd);
      return fail(EXIT_IO, "%s: %s", path, strerror(e));
    }
    if (!k) break;
    got += (size_t)k;
  }
  close(fd);
  p[got] = 0;
  *data = p, *n = got;
  return 0;
}

Status file_write(const char *path, const void *data, size_t n) {
  Arena *a = arena_create();
  char *part = arena_printf(a, "%s.%ld.tmp", path, (long)getpid()), *folder = arena_strndup(a, path, strlen(path));
  Status s = 0;
  struct stat st;
  bool device = !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);    // never replaced
  int fd = open(device ? path : part, O_WRONLY | (device ? O_NONBLOCK : O_CREAT | O_TRUNC) | O_CLOEXEC, 0666);
  // a pipe that nobody reads is an error; one that is read slowly is waited for
  if (device && fd >= 0) fcntl(fd, F_SETFL, 0);
  if (fd < 0) {
    s = fail(errno == EACCES || errno == EPERM ? EXIT_PERMISSION : EXIT_CREATE, "cannot write %s: %s", path,
             strerror(errno));
    goto out;
  }
  for (size_t at = 0; at < n && !s;) {
    ssize_t k = write(fd, (const char *)data + at, n - at);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) s = fail(EXIT_IO, "writing %s: %s (byte %zu of %zu)", path, strerror(errno), at, n);
    else at += (size_t)k;
  }
  if (!s && !device && fsync(fd)) s = fail(EXIT_IO, "writing %s: %s", path, strerror(errno));
  if (close(fd) && !s) s = fail(EXIT_IO, "writing %s: %s", path, strerror(errno));
  if (device) goto out;
  if (!s && rename(part, path)) s = fail(EXIT_IO, "writing %s: %s", path, strerror(errno));
  if (s) unlink(part);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  int dir = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) fsync(dir), close(dir);
out:
  arena_destroy(a);
  return s;
}

bool is_terminal(int fd) {
  const char *term = getenv("TERM");
  return isatty(fd) && term && *term && strcmp(term, "dumb");
}

double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t peak_bytes(void) {
  char text[4096];
  long long kib = 0;
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *at = strstr(text, "VmHWM:");
  return at && sscanf(at, "VmHWM: %lld", &kib) == 1 ? kib * 1024 : 0;
}
