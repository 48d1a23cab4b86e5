// options.h -- command lines as tables: a row per option gives its name, its help and where its value goes.
//
//   typedef struct { int64_t seq; const char *split; bool json; Words set; } Settings;
//   static const Option rows[] = {
//     OPTION(Settings, seq,   's', "seq",   "L",           "tokens per sample"),
//     OPTION(Settings, json,   0,  "json",  0,             "print JSON"),
//     OPTION(Settings, set,    0,  "set",   "PATH=VALUE",  "change one setting (may be repeated)"),
//   };
//
// The field's type says what the option takes: bool nothing, int64_t a whole number, double a number, const char * a
// text, Words any number of texts, in the order given. Several rows may share one Words field: each word keeps the
// row it came by, so the order between options is kept. Fields that no option sets keep what the caller put there,
// and help shows that as the default.
#ifndef MT_OPTIONS_H
#define MT_OPTIONS_H
#include "runtime/base.h"

typedef struct Option Option;
typedef struct { const char *text; const Option *by; } Word;      // by: 0 for a word that is no option's value
typedef VEC(Word) Words;

typedef enum { OPT_flag, OPT_int, OPT_real, OPT_text, OPT_words } OptionKind;
struct Option {
  char letter;                // 0: none
  const char *name;           // "seq"; 0: a letter only
  const char *value;          // what stands for the value in help; 0 for a flag; "[=WORD]": it may be left out, then ""
  const char *help;
  OptionKind kind;
  size_t at;                  // offset of the field
  int64_t least;              // of a whole number; what the caller put there may be below, for "not given"
};
#define OPTION(T, field, letter, name, value, help) OPTION_FROM(T, field, letter, name, value, help, INT64_MIN)
#define OPTION_FROM(T, field, letter, name, value, help, least) \
  {letter, name, value, help, \
   _Generic(((T *)0)->field, bool: OPT_flag, int64_t: OPT_int, double: OPT_real, const char *: OPT_text, \
            Words: OPT_words), \
   offsetof(T, field), least}

typedef struct {
  const char *name;           // "mtdata samples"
  const char *words;          // "PREFIX..."
  const char *about;          // what it does; whole sentences, wrapped by hand
  const Option *row;
  size_t n;
  const char *more;           // printed behind the table: examples; or 0
} Command;

// argv[0] is skipped. --name VALUE, --name=VALUE, -n VALUE, -nVALUE, anywhere between the words; behind "--" all are
// words. --help and -h set *help and stop. An unknown option is refused with the nearest one.
Status options_parse(Arena *a, const Command *c, int argc, char **argv, void *into, Words *words, bool *help);
// The same; the options that stood on the line are put into given, in their order, with their values (0 for a flag).
Status options_parse_given(Arena *a, const Command *c, int argc, char **argv, void *into, Words *words, Words *given,
                           bool *help);
// "; did you mean --log-params=3?": a word that is no file and follows an option whose value may be left out. Else "".
Str    options_meant(Arena *a, const Words *words);
// Refuses each given option but `option` and the n that go with it, all as help shows them: "--seq", "-n".
Status options_beside(const Words *given, const char *option, const Str *fine, size_t n);
void   options_help(const Command *c, const void *defaults, FILE *to);
void   exits_help(FILE *to);                                      // the exit codes, a line each
// The same as text for man(1). A command becomes a subsection; its first `skip` options are told elsewhere.
void   options_man(const Command *c, size_t skip, const void *defaults, FILE *to);
void   options_man_rows(const Option *row, size_t n, const void *defaults, FILE *to);
void   exits_man(FILE *to);
Status options_int(const char *what, const char *text, int64_t *v);           // the whole text is one number
Status options_real(const char *what, const char *text, double *v);
#endif
