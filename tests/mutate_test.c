// A fuzzer's run that dies is told by its seed, on the stderr that the program began with; so is what it said while
// that was caught.
#include "tests/data/check.h"
#include "tests/mutate.h"
#include <signal.h>
#include <sys/wait.h>

enum { FIRST = 1000000007, BAD = FIRST + 3 };

static const char *die(Arena *a, uint64_t seed, void *more) {
  const char *way = more;
  (void)a;
  if (seed != BAD) return 0;
  if (!strcmp(way, "wrong")) return "it is wrong";
  catch_begin();
  if (!strcmp(way, "bug")) bug("it is a bug");
  if (!strcmp(way, "exit")) exit(0);
  raise(!strcmp(way, "abort") ? SIGABRT : !strcmp(way, "fault") ? SIGSEGV : SIGALRM);
  catch_end();
  return 0;
}

// What a program prints that dies so.
static char *said_by(Arena *a, const char *way) {
  int end[2];
  if (pipe(end)) abort();
  fflush(0);
  pid_t child = fork();
  if (!child) {
    dup2(end[1], 1), dup2(end[1], 2), close(end[0]), close(end[1]);
    exit((int)fuzz_seeds(9, FIRST, die, (void *)(uintptr_t)way));
  }
  close(end[1]);
  Text t;
  text_init(&t, a);
  text_puts(&t, "");
  char s[512];
  for (ssize_t n; (n = read(end[0], s, sizeof s)) > 0;) text_add(&t, s, (size_t)n);
  close(end[0]);
  if (waitpid(child, 0, 0) != child) abort();
  return t.s;
}

int main(void) {
  static const char *const rows[][2] = {                  // the way, what is said
    {"bug", "the seed was 1000000010\n"}, {"bug", "it is a bug\n"}, {"exit", "the seed was 1000000010\n"},
    {"abort", "the seed was 1000000010\n"}, {"fault", "the seed was 1000000010\n"},
    {"time", "the seed was 1000000010\n"}, {"wrong", "fuzz: seed 1000000010: it is wrong\n"}};
  bool ok = true;
  for (size_t i = 0; i < COUNT(rows); i++) {
    Arena *a = arena_create();
    const char *said = said_by(a, rows[i][0]);
    if (!strstr(said, rows[i][1])) printf("%s: '%s' is missing in\n%s", rows[i][0], rows[i][1], said), ok = false;
    arena_destroy(a);
  }
  return !ok;
}
