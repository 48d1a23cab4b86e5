// mutate.c -- see mutate.h.
#include "tests/mutate.h"
#include "tests/seeds.h"
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { uint64_t state; } Random;
typedef struct {
  Bytes *file; size_t files;
  const char *const *words; size_t n;
  bool exchange;                                                  // in three of four runs
  FuzzCheck check;
} Corpus;

static uint64_t draw(Random *r, uint64_t below) { return (r->state = hash_mix(r->state, 1)) % below; }

static size_t line_at(Bytes b, size_t i) {                        // where i's line begins
  while (i && b.s[i - 1] != '\n') i--;
  return i;
}

static size_t line_after(Bytes b, size_t i) {
  while (i < b.n && b.s[i] != '\n') i++;
  return MIN(i + 1, b.n);
}

void bytes_splice(Arena *a, Bytes *b, size_t from, size_t to, const char *s, size_t n) {
  char *t = arena_alloc(a, b->n - (to - from) + n + 1);
  if (from) memcpy(t, b->s, from);
  if (n) memcpy(t + from, s, n);
  if (b->n > to) memcpy(t + from + n, b->s + to, b->n - to);
  b->s = t, b->n = b->n - (to - from) + n;
}

static void edit(Arena *a, Random *r, Bytes *b, Bytes other, const char *word) {
  size_t at = (size_t)draw(r, b->n + 1), few = (size_t)draw(r, 24), to = MIN(b->n, at + few);
  size_t line = line_at(*b, at), next = line_after(*b, at);
  size_t from = (size_t)draw(r, other.n + 1), many = (size_t)draw(r, 200), end = MIN(other.n, from + many);
  char byte = (char)draw(r, 256);
  switch (draw(r, 12)) {
  case 0: if (at < b->n) b->s[at] = (char)(b->s[at] ^ 1 << draw(r, 8)); break;
  case 1: bytes_splice(a, b, at, at, &byte, 1); break;
  case 2: bytes_splice(a, b, at, to, "", 0); break;
  case 3: bytes_splice(a, b, line, next, "", 0); break;
  case 4: bytes_splice(a, b, line, line, arena_strndup(a, b->s + line, next - line), next - line); break;
  case 5: bytes_splice(a, b, at, at, other.s + from, end - from); break;
  case 6: bytes_splice(a, b, at, b->n, "", 0); break;
  case 7: bytes_splice(a, b, 0, at, "", 0); break;
  case 8: bytes_splice(a, b, at, to, word, strlen(word)); break;
  default: bytes_splice(a, b, at, at, word, strlen(word)); break;
  }
}

// A file of the corpus after 1 to 6 edits: bits, bytes, words of the language, lines, pieces of other files.
static Bytes mutate(Arena *a, uint64_t seed, const Corpus *c) {
  Random r = {seed};
  Bytes b = c->file[draw(&r, c->files)];
  b.s = arena_strndup(a, b.s, b.n);
  for (uint64_t edits = 1 + draw(&r, 6); edits; edits--)
    edit(a, &r, &b, c->file[draw(&r, c->files)], c->words[draw(&r, c->n)]);
  return b;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

// The word at or behind a random place; false: there is none.
static bool word_near(Random *r, Bytes b, size_t *from, size_t *to) {
  size_t i = (size_t)draw(r, b.n + 1);
  while (i && i < b.n && is_word(b.s[i]) && is_word(b.s[i - 1])) i--;
  while (i < b.n && !is_word(b.s[i])) i++;
  for (*from = *to = i; *to < b.n && is_word(b.s[*to]);) ++*to;
  return *to > *from;
}

// A file of the corpus with 1 to 4 of its words (names, numbers) exchanged for other words of the corpus: most are
// still texts of the language, with other mistakes.
static Bytes mutate_words(Arena *a, uint64_t seed, const Corpus *c) {
  Random r = {seed};
  size_t from, to, with, end;
  Bytes b = c->file[draw(&r, c->files)];
  b.s = arena_strndup(a, b.s, b.n);
  for (uint64_t edits = 1 + draw(&r, 4); edits; edits--) {
    Bytes other = draw(&r, 4) ? b : c->file[draw(&r, c->files)];
    if (word_near(&r, b, &from, &to) && word_near(&r, other, &with, &end))
      bytes_splice(a, &b, from, to, arena_strndup(a, other.s + with, end - with), end - with);
  }
  return b;
}

const char *said_wrong(const char *said, size_t n, bool tabs) {
  for (size_t i = 0; i < n; i++)
    if (iscntrl((unsigned char)said[i]) && said[i] != '\n' && !(tabs && said[i] == '\t'))
      return "a control byte in a message";
  return 0;
}

// ---- the fuzzer ---------------------------------------------------------------------------------------------------
static volatile sig_atomic_t seed_low, seed_high;                 // of this run, for what tells of its end
static volatile sig_atomic_t told = -1;                           // where to; -1: nothing runs

// of the sanitizers, where they are linked
__attribute__((weak)) void __sanitizer_set_death_callback(void (*f)(void));
__attribute__((weak)) void __sanitizer_set_report_fd(void *fd);

static void tell(void) {
  char s[64] = "fuzz: the seed was ";
  size_t n = strlen(s);
  unsigned long long seed = (unsigned long long)(uint32_t)seed_high << 32 | (uint32_t)seed_low, ten = 1;
  while (seed / ten > 9) ten *= 10;
  for (; ten; ten /= 10) s[n++] = (char)('0' + seed / ten % 10);
  s[n++] = '\n';
  if (told >= 0 && write(told, s, n) < 0) _exit(2);
  told = -1;
}

static void died(int sig) {
  tell();
  signal(sig, SIG_DFL);
  raise(sig);
}

static void tell_of_death(void) {
  told = dup(2);                                                  // a run may put something else there
  atexit(tell);                                                   // bug() exits
  signal(SIGABRT, died), signal(SIGALRM, died);
  if (__sanitizer_set_report_fd) __sanitizer_set_report_fd((void *)(intptr_t)dup(2));   // they may close it
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(tell);
  else signal(SIGSEGV, died), signal(SIGBUS, died), signal(SIGFPE, died);
}

uint64_t fuzz_seeds(uint64_t n, uint64_t first, FuzzRun run, void *more) {
  uint64_t failed = 0;
  tell_of_death();
  for (uint64_t seed = first; seed < first + n; seed++) {
    seed_low = (sig_atomic_t)(uint32_t)seed, seed_high = (sig_atomic_t)(uint32_t)(seed >> 32);
    alarm(20);
    Arena *a = arena_create();
    const char *why = run(a, seed, more);
    if (why) printf("fuzz: seed %llu: %s\n", (unsigned long long)seed, why), failed++;
    arena_destroy(a);
  }
  alarm(0);
  told = -1;
  return failed;
}

static const char *run_text(Arena *a, uint64_t seed, void *more) {
  const Corpus *c = more;
  Bytes b = c->exchange && seed % 4 ? mutate_words(a, seed, c) : mutate(a, seed, c);
  return c->check(a, b.s, b.n);
}

static int run(int argc, char **argv, Corpus c) {
  if (argc < 4) return 64;
  uint64_t n = strtoull(argv[1], 0, 10), first = strtoull(argv[2], 0, 10);
  if (is_long()) n *= 50;
  Arena *a = arena_create();
  c.files = (size_t)argc - 3, c.file = NEW_N(a, Bytes, c.files);
  for (size_t i = 0; i < c.files; i++)
    if (file_read(a, argv[3 + i], 1 << 20, &c.file[i].s, &c.file[i].n)) return 66;
  uint64_t failed = fuzz_seeds(n, first, run_text, &c);
  arena_destroy(a);
  return failed > 0;
}

int fuzz(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check) {
  return run(argc, argv, (Corpus){.words = words, .n = n, .check = check});
}
int fuzz_words(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check) {
  return run(argc, argv, (Corpus){.words = words, .n = n, .exchange = true, .check = check});
}
