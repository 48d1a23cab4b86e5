// mutate.c -- see mutate.h.
#include "tests/mutate.h"
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { uint64_t state; } Random;

static uint64_t draw(Random *r, uint64_t below) { return (r->state = hash_mix(r->state, 1)) % below; }

static size_t line_at(Bytes b, size_t i) {                        // where i's line begins
  while (i && b.s[i - 1] != '\n') i--;
  return i;
}

static size_t line_after(Bytes b, size_t i) {
  while (i < b.n && b.s[i] != '\n') i++;
  return MIN(i + 1, b.n);
}

// Replaces b[from, to) by n bytes of s.
static void splice(Arena *a, Bytes *b, size_t from, size_t to, const char *s, size_t n) {
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
  case 1: splice(a, b, at, at, &byte, 1); break;
  case 2: splice(a, b, at, to, "", 0); break;
  case 3: splice(a, b, line, next, "", 0); break;
  case 4: splice(a, b, line, line, arena_strndup(a, b->s + line, next - line), next - line); break;
  case 5: splice(a, b, at, at, other.s + from, end - from); break;
  case 6: splice(a, b, at, b->n, "", 0); break;
  case 7: splice(a, b, 0, at, "", 0); break;
  case 8: splice(a, b, at, to, word, strlen(word)); break;
  default: splice(a, b, at, at, word, strlen(word)); break;
  }
}

Bytes mutate(Arena *a, uint64_t seed, const Bytes *corpus, size_t files, const char *const *words, size_t n) {
  Random r = {seed};
  Bytes b = corpus[draw(&r, files)];
  b.s = arena_strndup(a, b.s, b.n);
  for (uint64_t edits = 1 + draw(&r, 6); edits; edits--) edit(a, &r, &b, corpus[draw(&r, files)], words[draw(&r, n)]);
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

Bytes mutate_words(Arena *a, uint64_t seed, const Bytes *corpus, size_t files) {
  Random r = {seed};
  size_t from, to, with, end;
  Bytes b = corpus[draw(&r, files)];
  b.s = arena_strndup(a, b.s, b.n);
  for (uint64_t edits = 1 + draw(&r, 4); edits; edits--) {
    Bytes other = draw(&r, 4) ? b : corpus[draw(&r, files)];
    if (word_near(&r, b, &from, &to) && word_near(&r, other, &with, &end)) splice(a, &b, from, to, arena_strndup(a, other.s + with, end - with), end - with);
  }
  return b;
}

// ---- the fuzzer ---------------------------------------------------------------------------------------------------
static volatile sig_atomic_t seed_low, seed_high;                 // of this run, for the handler

static void died(int sig) {
  char s[64] = "fuzz: the seed was ";
  size_t n = strlen(s);
  unsigned long long seed = (unsigned long long)(uint32_t)seed_high << 32 | (uint32_t)seed_low, ten = 1;
  while (seed / ten > 9) ten *= 10;
  for (; ten; ten /= 10) s[n++] = (char)('0' + seed / ten % 10);
  s[n++] = '\n';
  if (write(2, s, n) < 0) _exit(2);
  signal(sig, SIG_DFL);
  raise(sig);
}

static int run(int argc, char **argv, const char *const *words, size_t nwords, bool exchange, FuzzCheck check) {
  if (argc < 4) return 64;
  uint64_t n = strtoull(argv[1], 0, 10), first = strtoull(argv[2], 0, 10), failed = 0;
  size_t files = (size_t)argc - 3;
  if (getenv("MT_LONG")) n *= 50;
  Arena *a = arena_create();
  Bytes *corpus = NEW_N(a, Bytes, files);
  for (size_t i = 0; i < files; i++)
    if (file_read(a, argv[3 + i], 1 << 20, &corpus[i].s, &corpus[i].n)) return 66;
  signal(SIGSEGV, died), signal(SIGABRT, died), signal(SIGBUS, died), signal(SIGFPE, died), signal(SIGALRM, died);
  for (uint64_t seed = first; seed < first + n; seed++) {
    seed_low = (sig_atomic_t)(uint32_t)seed, seed_high = (sig_atomic_t)(uint32_t)(seed >> 32);
    alarm(20);
    Arena *temp = arena_create();
    Bytes b = exchange && seed % 4 ? mutate_words(temp, seed, corpus, files) : mutate(temp, seed, corpus, files, words, nwords);
    const char *why = check(temp, b.s, b.n);
    if (why) printf("fuzz: seed %llu: %s\n", (unsigned long long)seed, why), failed++;
    arena_destroy(temp);
  }
  arena_destroy(a);
  return failed > 0;
}

int fuzz(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check) { return run(argc, argv, words, n, false, check); }
int fuzz_words(int argc, char **argv, const char *const *words, size_t n, FuzzCheck check) { return run(argc, argv, words, n, true, check); }
