// Command lines: every way to write an option, the order of repeated ones, what is refused, what help says.
#include "runtime/options.h"
#include "tests/data/check.h"

typedef struct { int64_t steps; double rate; const char *out, *again; bool json, quiet; Words set; } Settings;
static const Option rows[] = {
  OPTION_FROM(Settings, steps, 'n', "steps", "N", "how many", -9),
  OPTION(Settings, rate, 0, "rate", "X", "how fast"),
  OPTION(Settings, out, 'o', 0, "FILE", "where to"),
  OPTION(Settings, json, 'j', "json", 0, "as JSON"),
  OPTION(Settings, quiet, 'q', "quiet", 0, "say nothing"),
  OPTION(Settings, set, 'D', 0, "NAME=VALUE", "set a name"),
  OPTION(Settings, set, 0, "set", "PATH=VALUE", "set a path,\nin two lines"),
  OPTION(Settings, again, 0, "again", "[=WORD]", "once more"),
};
static const Command command = {"t", "WORD...", "A test.", rows, COUNT(rows), 0};

typedef struct { Arena *arena; Settings s; Words words; bool help; } Parsed;

static Status parse(Parsed *p, const char *line) {         // words of line apart by blanks
  char *argv[32] = {0}, *save = 0;
  int argc = 0;
  *p = (Parsed){.arena = arena_create(), .s = {.steps = 7}};
  argv[argc++] = arena_strndup(p->arena, "t", 1);
  for (char *w = strtok_r(arena_strndup(p->arena, line, strlen(line)), " ", &save); w; w = strtok_r(0, " ",
      &save)) argv[argc++] = w;
  return options_parse(p->arena, &command, argc, argv, &p->s, &p->words, &p->help);
}

static void forms_test(void **state) {
  (void)state;
  const char *lines[] = {"a --steps 5 --rate=-1.5e3 -o x b -j -q", "--steps=5 a b --rate -1.5e3 -ox --json --quiet",
                         "-n5 -jqo x --rate=-1.5e3 a b", "-n 5 -jqox --rate -1.5e3 -- a b",
                         "-n 9 -n 5 a -qj -o y -o x --rate=-1.5e3 b"};
  for (size_t i = 0; i < COUNT(lines); i++) {
    Parsed p;
    assert_done(parse(&p, lines[i]));
    if (p.s.steps != 5 || p.s.rate != -1500 || strcmp(p.s.out, "x") || !p.s.json || !p.s.quiet || p.words.n != 2 ||
        strcmp(p.words.at[0].text, "a") || strcmp(p.words.at[1].text, "b"))
      fail_msg("%s", lines[i]);
    arena_destroy(p.arena);
  }
  Parsed p;
  assert_done(parse(&p, "-- --steps -x"));
  assert_int_equal(p.words.n, 2);
  assert_int_equal(p.s.steps, 7);
  arena_destroy(p.arena);
}

static void order_test(void **state) {
  (void)state;
  Parsed p;
  assert_done(parse(&p, "--set a=1 -D b=2 -Dc=3 --set=d=4 m.mt -D a=5"));
  const char *text[] = {"a=1", "b=2", "c=3", "d=4", "a=5"};
  assert_int_equal(p.s.set.n, 5);
  for (int i = 0; i < 5; i++) {
    assert_string_equal(p.s.set.at[i].text, text[i]);
    assert_ptr_equal(p.s.set.at[i].by, &rows[i == 0 || i == 3 ? 6 : 5]);
  }
  arena_destroy(p.arena);
}

static void refused_test(void **state) {
  (void)state;
  struct { const char *line, *message; } bad[] = {
    {"--step 5", "unknown option --step, did you mean --steps?"}, {"--stpes=5", "did you mean --steps?"},
    {"--hepl", "did you mean --help?"}, {"--xyzzy", "unknown option --xyzzy (t --help lists them)"},
    {"-x", "unknown option -x"}, {"-rate=2", "did you mean --rate?"},
    {"-sets a=1", "unknown option -s in '-sets', did you mean --set? (t --help lists them)"},
    {"-jx", "unknown option -x in '-jx'"}, {"--steps", "--steps needs a value: --steps N"},
    {"--steps --json", "--steps needs a value"},
    {"-o", "-o needs a value: -o FILE"}, {"--json=yes", "--json takes no value"},
    {"--steps 5.5", "--steps: '5.5' is not a whole number"},
    {"--steps=", "--steps: '' is not a whole number"}, {"--steps 0x10", "'0x10'"},
    {"--rate nan", "--rate: 'nan' is not a number"},
    {"--rate 1e999", "'1e999' is not a number"}, {"-n 99999999999999999999", "fits in 64 bits"},
    {"-D", "-D needs a value"}, {"--steps -10", "--steps -10 is too small: at least -9"},
    {"--again=", "--again= has no value: --again[=WORD]"},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    Parsed p;
    assert_fails(parse(&p, bad[i].line), EXIT_USAGE, bad[i].message);
    arena_destroy(p.arena);
  }
}

static void help_test(void **state) {
  (void)state;
  Parsed p;
  assert_done(parse(&p, "-j --help --nonsense"));
  assert_true(p.help);
  char text[2048] = {0};
  FILE *f = fmemopen(text, sizeof text, "w");
  options_help(&command, &p.s, f);
  fclose(f);
  assert_string_equal(text, "usage: t [OPTION]... WORD...\n\nA test.\n\n"
                            "  -n, --steps N         how many (default 7)\n"
                            "      --rate X          how fast\n"
                            "  -o FILE               where to\n"
                            "  -j, --json            as JSON\n"
                            "  -q, --quiet           say nothing\n"
                            "  -D NAME=VALUE         set a name\n"
                            "      --set PATH=VALUE  set a path,\n"
                            "                        in two lines\n"
                            "      --again[=WORD]    once more\n"
                            "  -h, --help            print this\n");
  arena_destroy(p.arena);
}

static void wrap_test(void **state) {
  (void)state;
  static const Option wordy[] = {OPTION(Settings, out, 'o', "out", "FILE",
    "words that go on and on, up to the column where a line has to end, and … then on the next one\ntwo")};
  const Command c = {"t", "", "A test.", wordy, COUNT(wordy), 0};
  char *text = 0;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  options_help(&c, 0, f);
  fclose(f);
  const char *want = "  -o, --out FILE  words that go on and on, up to the column where a line has to end, and … "
                     "then on the next\n                  one\n                  two\n  -h, --help      print this\n";
  assert_non_null(strstr(text, want));
  free(text);
}

static void man_test(void **state) {
  (void)state;
  static const Option odd[] = {OPTION(Settings, out, 'o', "out-to", "A|B", ".dots, 'quotes' and\n\\ back")};
  const Command c = {"t odd", "WORD…", "It's a test.", odd, COUNT(odd), "  t odd ~ -o x\n  t"};
  char *text = 0;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  const Settings defaults = {.out = "here"};
  options_man(&c, 0, &defaults, f);
  fclose(f);
  assert_string_equal(text, ".SS \\&t odd [\\fIOPTION\\fR]... \\&WORD\\[u2026]\n"
                            "\\&It\\(aqs a test.\n"
                            ".TP\n\\fB\\-o\\fR, \\fB\\-\\-\\&out\\-to\\fR \\fI\\&A|B\\fR\n"
                            "\\&.dots, \\(aqquotes\\(aq and \\e back (default here)\n"
                            ".PP\n.nf\n\\&  t odd \\(ti \\-o x\n\\&  t\n.fi\n");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms_test), cmocka_unit_test(order_test),
                                     cmocka_unit_test(refused_test), cmocka_unit_test(help_test),
                                     cmocka_unit_test(wrap_test), cmocka_unit_test(man_test)};
  return cmocka_run_group_tests(tests, 0, 0);
}
