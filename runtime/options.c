// options.c -- see options.h.
#include "runtime/options.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Status options_int(const char *what, const char *text, int64_t *v) {
  char *end;
  errno = 0;
  long long got = strtoll(text, &end, 10);
  if (end == text || *end || text[0] == ' ' || errno == ERANGE)
    return fail(EXIT_USAGE, "%s: '%.100s' is not a whole number%s", what, text,
                errno == ERANGE ? " that fits in 64 bits" : "");
  *v = got;
  return 0;
}

Status options_real(const char *what, const char *text, double *v) {
  char *end;
  double got = strtod(text, &end);
  if (end == text || *end || text[0] == ' ' || !isfinite(got))
    return fail(EXIT_USAGE, "%s: '%.100s' is not a number", what, text);
  *v = got;
  return 0;
}

static const char *shown(const Option *o, char buffer[64]) {      // "--seq" or "-n"
  if (o->name) snprintf(buffer, 64, "--%s", o->name);
  else snprintf(buffer, 64, "-%c", o->letter);
  return buffer;
}

static Status option_count(const Option *o, const char *value, int64_t *v) {
  char name[64];
  int64_t got;
  TRY(options_int(shown(o, name), value, &got));
  if (got < o->least)
    return fail(EXIT_USAGE, "%s %lld is too small: at least %lld", name, (long long)got, (long long)o->least);
  *v = got;
  return 0;
}

// A command line as it is read: into where the values go.
// open: the option just read, which may have a value and was given none.
typedef struct {
  Arena *arena;
  const Command *c;
  char **argv;
  int argc;
  void *into;
  Words *given;
  const Option *open;
} Line;

static Status option_set(Line *l, const Option *o, const char *value) {
  char name[64];
  char *field = (char *)l->into + o->at;
  if (l->given) vec_push(l->arena, l->given, (Word){value, o});
  switch (o->kind) {
    case OPT_flag: *(bool *)(void *)field = true; return 0;
    case OPT_int: return option_count(o, value, (int64_t *)(void *)field);
    case OPT_real: return options_real(shown(o, name), value, (double *)(void *)field);
    case OPT_text: *(const char **)(void *)field = value; return 0;
    case OPT_words: vec_push(l->arena, (Words *)(void *)field, (Word){value, o}); return 0;
  }
  return 0;
}

static const Option *option_find(const Command *c, const char *name, size_t n) {
  for (size_t i = 0; i < c->n; i++)
    if (c->row[i].name && strlen(c->row[i].name) == n && !strncmp(c->row[i].name, name, n)) return &c->row[i];
  return 0;
}

// The option nearest to what was given, without its hyphens; 0: none is near.
static Str near_option(const Command *c, const char *given, size_t n) {
  enum { MOST = 128 };
  Str names[MOST + 1] = {"help"};
  size_t count = 1;
  char word[64];
  for (size_t i = 0; i < c->n && count <= MOST; i++)
    if (c->row[i].name) names[count++] = c->row[i].name;
  snprintf(word, sizeof word, "%.*s", (int)MIN(n, 63), given);
  return nearest(word, names, count);
}

static Status unknown(const Command *c, const char *given, size_t n) {
  Str near = near_option(c, given, n);
  return fail(EXIT_USAGE, "unknown option --%.*s%s%s%s (%s --help lists them)", (int)MIN(n, 100), given,
              near ? ", did you mean --" : "", near ? near : "", near ? "?" : "", c->name);
}

static Status long_option(Line *l, int *i) {
  const char *name = l->argv[*i] + 2, *equals = strchr(name, '=');
  size_t n = equals ? (size_t)(equals - name) : strlen(name);
  const Option *o = option_find(l->c, name, n);
  if (!o) return unknown(l->c, name, n);
  if (o->kind == OPT_flag) {
    if (equals) return fail(EXIT_USAGE, "--%s takes no value", o->name);
    return option_set(l, o, 0);
  }
  if (equals && !equals[1] && *o->value == '[')            // "" is what it has without a value
    return fail(EXIT_USAGE, "--%s= has no value: --%s%s", o->name, o->name, o->value);
  if (equals) return option_set(l, o, equals + 1);
  if (*o->value == '[') return l->open = o, option_set(l, o, "");
  if (*i + 1 >= l->argc || !strncmp(l->argv[*i + 1], "--", 2))
    return fail(EXIT_USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->value);
  return option_set(l, o, l->argv[++*i]);
}

static Status unknown_letter(const Command *c, char letter, const char *given) {
  Str near = near_option(c, given + 1, strcspn(given + 1, "="));  // -steps for --steps
  return fail(EXIT_USAGE, "unknown option -%c in '%.100s'%s%s%s (%s --help lists them)", letter, given,
              near ? ", did you mean --" : "", near ? near : "", near ? "?" : "", c->name);
}

static Status short_option(Line *l, int *i) {
  for (const char *p = l->argv[*i] + 1; *p; p++) {
    const Option *o = 0;
    for (size_t k = 0; k < l->c->n && !o; k++)
      if (l->c->row[k].letter == *p) o = &l->c->row[k];
    if (!o) return unknown_letter(l->c, *p, l->argv[*i]);
    if (o->kind == OPT_flag) {
      TRY(option_set(l, o, 0));
      continue;
    }
    if (p[1]) return option_set(l, o, p + 1);
    if (*i + 1 >= l->argc || !strncmp(l->argv[*i + 1], "--", 2))
      return fail(EXIT_USAGE, "-%c needs a value: -%c %s", o->letter, o->letter, o->value);
    return option_set(l, o, l->argv[++*i]);
  }
  return 0;
}

Status options_parse_given(Arena *a, const Command *c, int argc, char **argv, void *into, Words *words, Words *given,
                           bool *help) {
  Line l = {a, c, argv, argc, into, given, 0};
  *help = false;
  for (int i = 1; i < argc; i++) {
    const Option *before = l.open;
    l.open = 0;
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      *help = true;
      return 0;
    }
    if (!strcmp(argv[i], "--")) {
      while (++i < argc) vec_push(a, words, (Word){argv[i], 0});
      return 0;
    }
    if (!strncmp(argv[i], "--", 2)) TRY(long_option(&l, &i));
    else if (argv[i][0] == '-' && argv[i][1]) TRY(short_option(&l, &i));
    else vec_push(a, words, (Word){argv[i], before});
  }
  return 0;
}

Status options_parse(Arena *a, const Command *c, int argc, char **argv, void *into, Words *words, bool *help) {
  return options_parse_given(a, c, argc, argv, into, words, 0, help);
}

Str options_meant(Arena *a, const Words *words) {
  char name[64];
  for (uint32_t i = 0; i < words->n; i++) {
    const Word *w = &words->at[i];
    if (w->by && access(w->text, F_OK))
      return arena_printf(a, "; did you mean %s=%.100s?", shown(w->by, name), w->text);
  }
  return "";
}

Status options_beside(const Words *given, const char *option, const Str *fine, size_t n) {
  char name[64];
  for (uint32_t i = 0; i < given->n; i++) {
    bool goes = !strcmp(shown(given->at[i].by, name), option);
    for (size_t k = 0; k < n && !goes; k++) goes = !strcmp(name, fine[k]);
    if (!goes) return fail(EXIT_USAGE, "%s has no meaning beside %s", name, option);
  }
  return 0;
}

// ---- help -------------------------------------------------------------------------------------------------------
static int left_column(const Option *o, char *to, size_t n) {
  char letter[8] = "    ";
  if (o->letter) snprintf(letter, sizeof letter, "-%c%s", o->letter, o->name ? ", " : "");
  return snprintf(to, n, "  %s%s%s%s%s", letter, o->name ? "--" : "", o->name ? o->name : "",
                  o->value && *o->value != '[' ? " " : "",
                  o->value ? o->value : "");
}

static void put_default(const Option *o, const void *defaults, FILE *to) {
  if (!defaults) return;
  const char *field = (const char *)defaults + o->at;
  if (o->kind == OPT_int && *(const int64_t *)(const void *)field > 0)
    fprintf(to, " (default %lld)", (long long)*(const int64_t *)(const void *)field);
  if (o->kind == OPT_real && *(const double *)(const void *)field != 0)
    fprintf(to, " (default %g)", *(const double *)(const void *)field);
  if (o->kind == OPT_text && *(const char *const *)(const void *)field)
    fprintf(to, " (default %s)", *(const char *const *)(const void *)field);
}

// A text from column `left` on: its lines, and where one is too long more of them, stay in that column.
static void put_wrapped(const char *s, int left, FILE *to) {
  enum { WIDE = 110 };
  int at = left;
  while (*s) {
    int n = (int)strcspn(s, " \n"), columns = 0;
    for (int i = 0; i < n; i++) columns += (s[i] & 0xc0) != 0x80;   // UTF-8
    if (at > left && at + 1 + columns > WIDE) fprintf(to, "\n%*s", left, ""), at = left;
    else if (at > left) putc(' ', to), at++;
    fwrite(s, 1, (size_t)n, to), at += columns, s += n;
    if (*s == '\n') fprintf(to, "\n%*s", left, ""), at = left;
    s += *s != 0;
  }
}

void options_help(const Command *c, const void *defaults, FILE *to) {
  static const Option help = {'h', "help", 0, "print this", OPT_flag, 0, 0};
  char column[128];
  int wide = 0;
  for (size_t i = 0; i <= c->n; i++) {
    int n = left_column(i < c->n ? &c->row[i] : &help, column, sizeof column);
    if (n <= 32) wide = MAX(wide, n);
  }
  fprintf(to, "usage: %s [OPTION]... %s\n\n%s\n\n", c->name, c->words, c->about);
  for (size_t i = 0; i <= c->n; i++) {
    const Option *o = i < c->n ? &c->row[i] : &help;
    int n = left_column(o, column, sizeof column);
    if (n <= wide) fprintf(to, "%-*s  ", wide, column);
    else fprintf(to, "%s\n%*s  ", column, wide, "");
    put_wrapped(o->help, wide + 2, to);
    if (i < c->n) put_default(o, defaults, to);
    putc('\n', to);
  }
  if (c->more) fprintf(to, "\n%s\n", c->more);
}

static const struct { int code; Str what; } exits[] = {
#define X(name, code, what) {code, what},
  EXITS(X)
#undef X
};

void exits_help(FILE *to) {
  fputs("Exit codes:\n", to);
  for (size_t i = 0; i < COUNT(exits); i++) fprintf(to, "  %2d  %s\n", exits[i].code, exits[i].what);
}

// ---- man --------------------------------------------------------------------------------------------------------
// A text that groff shows as it is. `lines`: its lines stay lines; else they are filled.
static void man_text(const char *s, bool lines, FILE *to) {
  static const struct { const char *text, *roff; } change[] = {
    {"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}, {"^", "\\(ha"}, {"~", "\\(ti"}, {"…", "\\[u2026]"}};
  fputs("\\&", to);                                               // a dot at the start is no request
  while (*s) {
    size_t i = 0;
    while (i < COUNT(change) && strncmp(s, change[i].text, strlen(change[i].text))) i++;
    if (i < COUNT(change)) fputs(change[i].roff, to), s += strlen(change[i].text);
    else if (*s == '\n' && s[1]) fputs(lines ? "\n\\&" : " ", to), s++;
    else putc(*s++, to);
  }
}

static void man_option(const Option *o, const void *defaults, FILE *to) {
  fputs(".TP\n\\fB", to);
  if (o->letter) fprintf(to, "\\-%c%s", o->letter, o->name ? "\\fR, \\fB" : "");
  if (o->name) fputs("\\-\\-", to), man_text(o->name, false, to);
  fputs("\\fR", to);
  if (o->value) fputs(*o->value == '[' ? "\\fI" : " \\fI", to), man_text(o->value, false, to), fputs("\\fR", to);
  putc('\n', to);
  man_text(o->help, false, to);
  put_default(o, defaults, to);
  putc('\n', to);
}

void options_man_rows(const Option *row, size_t n, const void *defaults, FILE *to) {
  for (size_t i = 0; i < n; i++) man_option(&row[i], defaults, to);
}

void options_man(const Command *c, size_t skip, const void *defaults, FILE *to) {
  fputs(".SS ", to), man_text(c->name, false, to), fputs(" [\\fIOPTION\\fR]... ", to), man_text(c->words, false, to);
  putc('\n', to), man_text(c->about, false, to), putc('\n', to);
  options_man_rows(c->row + skip, c->n - skip, defaults, to);
  if (c->more) fputs(".PP\n.nf\n", to), man_text(c->more, true, to), fputs("\n.fi\n", to);
}

void exits_man(FILE *to) {
  fputs(".SH EXIT STATUS\n", to);
  for (size_t i = 0; i < COUNT(exits); i++) {
    fprintf(to, ".TP\n.B %d\n", exits[i].code);
    man_text(exits[i].what, false, to), putc('\n', to);
  }
}
