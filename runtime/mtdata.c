// mtdata.c -- the program that prepares token files, looks into them and shows the order of samples.
#include "runtime/data.h"
#include "runtime/json_text.h"
#include "runtime/options.h"
#include "runtime/tokenize.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

// ---- prepare ----------------------------------------------------------------------------------------------------
typedef struct { const char *out, *tokenizer, *format, *key; bool quiet; } PrepareOptions;
static const PrepareOptions prepare_defaults = {.tokenizer = "bytes", .format = "auto", .key = "text"};
static const Option prepare_rows[] = {
  OPTION(PrepareOptions, out, 'o', "out", "PREFIX", "write PREFIX.bin and PREFIX.idx"),
  OPTION(PrepareOptions, tokenizer, 0, "tokenizer", "NAME",
         "bytes: a byte is its own id, 256 ends a document,\nnvocab = 257, u16"),
  OPTION(PrepareOptions, format, 0, "format", "NAME",
         "text: a file is one document; lines: a line is one;\njsonl: a line is an object that holds one;\n"
         "auto: jsonl for .jsonl and .ndjson, else text"),
  OPTION(PrepareOptions, key, 0, "jsonl-key", "NAME", "the key that holds the text"),
  OPTION(PrepareOptions, quiet, 'q', "quiet", 0, "no progress"),
};
static const Command prepare_command = {
  "mtdata prepare", "INPUT...", "Turns text into a token file that trains. INPUT - is the standard input.",
  prepare_rows, COUNT(prepare_rows),
  "  mtdata prepare book.txt -o data/book                       the whole file is one document\n"
  "  mtdata prepare --format lines verses.txt -o data/book      each line is one\n"
  "  mtdata prepare web-*.jsonl --jsonl-key text -o data/web    each line is an object that holds one\n"
  "  mtrun gpt2.plan --data data/book                           then train on it"};

// One sequence holds at most 2^31-1 tokens: longer documents are cut here.
enum { SEQUENCE_LIMIT = 1 << 30, PART = 1 << 16 };

typedef struct {
  IndexedWriter *out;
  const PrepareOptions *options;
  int64_t documents, tokens, bytes, total;  // bytes read of total (0: not known)
  int64_t open;                             // tokens in the open sequence
  double start, shown;
  bool progress;
} Preparation;

static Status tokens_put(Preparation *p, const int32_t *token, int64_t n) {
  if (p->open + n > SEQUENCE_LIMIT) {
    TRY(indexed_end_sequence(p->out));
    p->open = 0;
  }
  p->open += n, p->tokens += n;
  return indexed_add(p->out, token, n);
}

static Status bytes_put(Preparation *p, const char *text, size_t n) {
  int32_t token[PART];
  for (size_t i = 0; i < n; i += PART) {
    size_t k = MIN(n - i, PART);
    bytes_to_tokens(text + i, k, token);
    TRY(tokens_put(p, token, (int64_t)k));
  }
  return 0;
}

static Status document_end(Preparation *p) {
  int32_t end = BYTE_END;
  TRY(tokens_put(p, &end, 1));
  p->documents++, p->open = 0;
  return indexed_end_document(p->out);
}

static Str plural(int64_t n) { return n == 1 ? "" : "s"; }

static void rate_print(const Preparation *p, FILE *to) {
  double s = MAX(now_seconds() - p->start, 1e-9);
  fprintf(to, "%lld document%s, %.2f MB, %.0f docs/s, %.1f MB/s", (long long)p->documents, plural(p->documents),
          (double)p->bytes * 1e-6, (double)p->documents / s, (double)p->bytes * 1e-6 / s);
}

static void progress(Preparation *p) {
  if (!p->progress || now_seconds() - p->shown < 0.2) return;
  p->shown = now_seconds();
  fputs("\r", stderr);
  if (p->total) fprintf(stderr, "%3.0f %%  ", 100 * (double)p->bytes / (double)p->total);
  rate_print(p, stderr);
  fputs("\33[K", stderr);
}

static Status text_prepare(Preparation *p, FILE *f) {
  char part[PART];
  for (size_t n; (n = fread(part, 1, sizeof part, f));) {
    p->bytes += (int64_t)n;
    TRY(bytes_put(p, part, n));
    progress(p);
  }
  return document_end(p);
}

static Status jsonl_line(Preparation *p, const char *path, int64_t line, const char *text, size_t n) {
  json_error_t e;
  if (strspn(text, " \t\r\n") == n) return 0;
  json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
  if (!j) return fail(EXIT_INPUT, "%s:%lld: JSON, byte %d: %s", path, (long long)line, e.position, e.text);
  json_t *v = json_object_get(j, p->options->key);
  Status s = 0;
  if (!json_is_string(v))
    s = fail(EXIT_INPUT, "%s:%lld: no text under the key '%s'", path, (long long)line, p->options->key);
  if (!s) s = bytes_put(p, json_string_value(v), json_string_length(v));
  if (!s) s = document_end(p);
  json_decref(j);
  return s;
}

static Status lines_prepare(Preparation *p, const char *path, FILE *f, bool json) {
  char *line = 0;
  size_t room = 0;
  Status s = 0;
  int64_t number = 0;
  for (ssize_t n; !s && (n = getline(&line, &room, f)) >= 0;) {
    p->bytes += n, number++;
    if (json) {
      s = jsonl_line(p, path, number, line, (size_t)n);
    } else {
      if (n && line[n - 1] == '\n') n--;
      s = bytes_put(p, line, (size_t)n);
      if (!s) s = document_end(p);
    }
    progress(p);
  }
  free(line);
  return s;
}

static Status input_prepare(Preparation *p, const char *path) {
  const char *format = p->options->format;
  bool standard = !strcmp(path, "-");
  bool json = !strcmp(format, "jsonl") || (!strcmp(format, "auto") &&
                                           (ends_with(path, ".jsonl") || ends_with(path, ".ndjson")));
  struct stat st;
  FILE *f = standard ? stdin : fopen(path, "rbe");
  if (!f)
    return fail(errno == ENOENT ? EXIT_MISSING : errno == EACCES ? EXIT_PERMISSION : EXIT_IO, "%s: %s", path,
                strerror(errno));
  Status s = 0;
  if (!fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) s = fail(EXIT_INPUT, "%s: a folder", path);
  else if (json || !strcmp(format, "lines")) s = lines_prepare(p, path, f, json);
  else s = text_prepare(p, f);
  if (!s && ferror(f)) s = fail(EXIT_IO, "reading %s: %s", path, strerror(errno));
  if (!standard) fclose(f);
  return s;
}

static Status word_check(const char *option, const char *value, const Str *known, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(value, known[i])) return 0;
  Str near = nearest(value, known, n);
  return fail(EXIT_USAGE, "%s: '%.100s' is unknown%s%s%s", option, value, near ? ", did you mean " : "",
              near ? near : "", near ? "?" : "");
}

static Status prepare(Arena *a, int argc, char **argv) {
  static const Str tokenizers[] = {"bytes"}, formats[] = {"auto", "text", "lines", "jsonl"};
  PrepareOptions o = prepare_defaults;
  Words in = {0};
  bool help;
  TRY(options_parse(a, &prepare_command, argc, argv, &o, &in, &help));
  if (help) return options_help(&prepare_command, &prepare_defaults, stdout), 0;
  TRY(word_check("--tokenizer", o.tokenizer, tokenizers, COUNT(tokenizers)));
  TRY(word_check("--format", o.format, formats, COUNT(formats)));
  if (!in.n) return fail(EXIT_USAGE, "prepare needs an INPUT: files of text, or - (see mtdata prepare --help)");
  if (!o.out) return fail(EXIT_USAGE, "prepare needs -o PREFIX: the name of the token files, without .bin and .idx");
  Preparation p = {.options = &o, .start = now_seconds(), .progress = !o.quiet && is_terminal(2)};
  for (uint32_t i = 0; i < in.n; i++) {
    struct stat st;
    if (!stat(in.at[i].text, &st)) p.total += st.st_size;
  }
  TRY(indexed_create(a, o.out, BYTE_DTYPE, &p.out));
  Status s = 0;
  for (uint32_t i = 0; i < in.n && !s; i++) s = input_prepare(&p, in.at[i].text);
  if (p.progress) fputs("\r\33[K", stderr);
  if (!s && !p.documents) s = fail(EXIT_INPUT, "%s: no document in it", in.at[0].text);
  if (s) {
    indexed_abandon(p.out);
    return s;
  }
  TRY(indexed_finish(p.out));
  printf("%s.bin, %s.idx: %lld tokens of %s (nvocab = %d), ", o.out, o.out, (long long)p.tokens,
         dtype_name(BYTE_DTYPE), BYTE_VOCAB);
  rate_print(&p, stdout);
  printf("\n");
  return 0;
}

// ---- inspect ----------------------------------------------------------------------------------------------------
typedef struct { bool json, scan; int64_t show; } InspectOptions;
static const InspectOptions inspect_defaults = {.show = -1};
static const Option inspect_rows[] = {
  OPTION(InspectOptions, scan, 0, "scan", 0, "read every token too: smallest and largest id"),
  OPTION_FROM(InspectOptions, show, 0, "show", "N", "print the tokens of sequence N, and as bytes", 0),
  OPTION(InspectOptions, json, 0, "json", 0, "print JSON"),
};
static const Command inspect_command = {
  "mtdata inspect", "PREFIX", "Checks every entry of PREFIX.idx and says what the token file holds.", inspect_rows,
  COUNT(inspect_rows),
  "  mtdata inspect data/book                 how many tokens, in how many documents\n"
  "  mtdata inspect data/book --show 0        the first sequence, as ids and as text\n"
  "  mtdata inspect data/book --scan          the largest id: has the model's vocabulary room for it?"};

static Status tokens_scan(const Indexed *x, int32_t *least, int32_t *most) {
  int32_t token[PART];
  *least = INT32_MAX, *most = INT32_MIN;
  for (int64_t i = 0; i < x->n; i++)
    for (int64_t at = 0; at < x->length[i]; at += PART) {
      int64_t n = MIN(x->length[i] - at, PART);
      TRY(indexed_read(x, i, at, n, token));
      for (int64_t k = 0; k < n; k++) *least = MIN(*least, token[k]), *most = MAX(*most, token[k]);
    }
  return 0;
}

static Status sequence_show(Arena *a, const Indexed *x, int64_t i, bool json) {
  if (i >= x->n) return fail(EXIT_USAGE, "--show %lld: there are %lld sequences", (long long)i, (long long)x->n);
  int32_t *token = NEW_N(a, int32_t, x->length[i]);
  TRY(indexed_read(x, i, 0, x->length[i], token));
  if (!json) printf("sequence %lld:", (long long)i);
  for (int64_t k = 0; k < x->length[i]; k++) printf(json ? "%s%d" : "%s%d", !json ? " " : k ? "," : "", token[k]);
  if (json) return 0;
  char *text = NEW_N(a, char, x->length[i] + 1);
  text[tokens_to_bytes(token, (size_t)x->length[i], text)] = 0;
  Text t;
  text_init(&t, a), text_json(&t, text);
  printf("\nas bytes: %s\n", t.s);
  return 0;
}

static Status inspect(Arena *a, int argc, char **argv) {
  InspectOptions o = inspect_defaults;
  Words in = {0};
  bool help;
  TRY(options_parse(a, &inspect_command, argc, argv, &o, &in, &help));
  if (help) return options_help(&inspect_command, &inspect_defaults, stdout), 0;
  if (in.n != 1) return fail(EXIT_USAGE, "inspect needs one PREFIX (mtdata inspect --help)");
  const char *prefix = in.at[0].text;
  if (ends_with(prefix, ".idx") || ends_with(prefix, ".bin")) prefix = arena_strndup(a, prefix, strlen(prefix) - 4);
  Indexed x;
  int32_t least = 0, most = 0, shortest = 0, longest = 0;
  TRY(indexed_open(a, prefix, &x));
  for (int64_t i = 0; i < x.n; i++) {
    shortest = i ? MIN(shortest, x.length[i]) : x.length[i];
    longest = MAX(longest, x.length[i]);
  }
  double mean = x.n ? (double)x.tokens / (double)x.n : 0;
  if (o.scan) TRY(tokens_scan(&x, &least, &most));
  if (o.json) {
    Text t;
    text_init(&t, a), text_json(&t, prefix);
    printf("{\"prefix\":%s,\"dtype\":\"%s\",\"sequences\":%lld,\"documents\":%lld,\"tokens\":%lld,\"bytes\":%lld,"
           "\"shortest\":%d,"
           "\"longest\":%d,\"mean\":%.17g",
           t.s, dtype_name(x.dtype), (long long)x.n, (long long)x.m - 1, (long long)x.tokens,
           (long long)x.bin_bytes, shortest, longest, mean);
    if (o.scan && x.tokens) printf(",\"least_id\":%d,\"largest_id\":%d", least, most);
    if (o.show >= 0) {
      printf(",\"shown\":[");
      TRY(sequence_show(a, &x, o.show, true));
      printf("]");
    }
    printf("}\n");
  } else {
    printf("%s: %lld token%s of %s in %lld sequence%s, %lld document%s; %lld byte%s\n", prefix, (long long)x.tokens,
           plural(x.tokens), dtype_name(x.dtype), (long long)x.n, plural(x.n), (long long)x.m - 1, plural(x.m - 1),
           (long long)x.bin_bytes, plural(x.bin_bytes));
    printf("sequence lengths: %d to %d, mean %.1f\n", shortest, longest, mean);
    if (o.scan && x.tokens) printf("ids: %d to %d (nvocab is at least %lld)\n", least, most, (long long)most + 1);
    if (o.show >= 0) TRY(sequence_show(a, &x, o.show, false));
  }
  indexed_close(&x);
  return 0;
}

// ---- samples ----------------------------------------------------------------------------------------------------
typedef struct {
  int64_t seq, seed, extra, pad, eod, first;
  double surplus;
  const char *size, *split, *train, *valid, *test, *which;
  bool json, eod_mask, reset_positions, keep_partial_valid;
} SamplesOptions;
static const SamplesOptions samples_defaults = {
  .extra = 1, .surplus = 0.005, .split = "1,0,0", .pad = -1, .eod = -1, .first = -1};
static const Option samples_rows[] = {
  OPTION(SamplesOptions, seq, 0, "seq", "L", "tokens per sample"),
  OPTION(SamplesOptions, seed, 0, "seed", "S", "0 to 4294967295"),
  OPTION(SamplesOptions, size, 0, "size", "N[,N,N]", "samples wanted for train (and valid, test); none: one epoch"),
  OPTION(SamplesOptions, split, 0, "split", "A,B,C", "shares of the sequences for train, valid, test"),
  OPTION(SamplesOptions, train, 0, "train-data", "DATA",
         "each split from its own data instead of --split;\nDATA is one text: \"PREFIX\" or \"0.3 A 0.7 B\""),
  OPTION(SamplesOptions, valid, 0, "valid-data", "DATA", ""),
  OPTION(SamplesOptions, test, 0, "test-data", "DATA", ""),
  OPTION(SamplesOptions, which, 0, "which", "SPLIT", "only train, valid or test"),
  OPTION_FROM(SamplesOptions, first, 0, "first", "N", "print the tokens of only N samples", 0),
  OPTION(SamplesOptions, extra, 0, "extra", "0|1", "tokens that a sample has beyond L, for the labels"),
  OPTION(SamplesOptions, surplus, 0, "surplus", "X", "what a source of a blend prepares beyond its share"),
  OPTION(SamplesOptions, keep_partial_valid, 0, "keep-partial-valid", 0, "the last, short sample of valid counts"),
  OPTION_FROM(SamplesOptions, pad, 0, "pad", "ID", "the id that fills short samples up; labels of it are ignored", -1),
  OPTION_FROM(SamplesOptions, eod, 0, "eod", "ID", "the id that ends a document", -1),
  OPTION(SamplesOptions, eod_mask, 0, "eod-mask", 0, "ignore labels whose token is the eod"),
  OPTION(SamplesOptions, reset_positions, 0, "reset-positions", 0, "count positions anew after each eod"),
  OPTION(SamplesOptions, json, 0, "json", 0, "print JSON: every index and the samples' tokens"),
};
static const Command samples_command = {
  "mtdata samples", "DATA...", "Shows which samples training sees, in which order: Megatron-LM's for the same seed.\n"
  "DATA is PREFIX, several of them, or weights and prefixes: 0.3 A 0.7 B.", samples_rows, COUNT(samples_rows),
  "  mtdata samples data/book --seq 128 --first 2               the first two samples of an epoch\n"
  "  mtdata samples data/web --seq 1024 --seed 1234 --size 10000 --split 990,10,0\n"
  "  mtdata samples 0.3 data/book 0.7 data/web --seq 1024 --size 1000 --json"};

static Status sizes_parse(const char *text, int64_t size[SPLITS]) {
  for (int k = 0; text; k++) {
    char word[32];
    size_t n = strcspn(text, ",");
    if (k == SPLITS || n >= sizeof word) return fail(EXIT_USAGE, "--size: three counts at most, N,N,N");
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    if (strcmp(word, "none")) {
      TRY(options_int("--size", word, &size[k]));
      if (size[k] < 0) return fail(EXIT_USAGE, "--size: %s samples", word);
    }
    text = text[n] ? text + n + 1 : 0;
  }
  return 0;
}

static Status samples_rule(Arena *a, const SamplesOptions *o, const Words *in, DataRule *r) {
  data_defaults(r);
  r->pad = o->pad, r->eod = o->eod, r->eod_mask = o->eod_mask, r->reset_positions = o->reset_positions,
      r->plain_labels = true;
  OrderRule *order = &r->order;
  order->seq = o->seq, order->seed = o->seed, order->extra = o->extra, order->surplus = o->surplus,
      order->split = o->split;
  order->keep_partial_valid = o->keep_partial_valid;
  if (!o->seq) return fail(EXIT_USAGE, "samples needs --seq L");
  if (o->size) TRY(sizes_parse(o->size, order->size));
  const char *own[SPLITS] = {o->train, o->valid, o->test};
  for (int k = 0; k < SPLITS; k++) {
    order->own |= own[k] != 0;
    if (own[k]) TRY(data_sources(a, own[k], &order->per_split[k]));
    order->skip[k] = o->which && strcmp(o->which, split_names[k]);
  }
  if (o->which) TRY(word_check("--which", o->which, split_names, SPLITS));
  if (order->own && in->n)
    return fail(EXIT_USAGE, "'%s' and --train-data, --valid-data, --test-data do not go together",
                in->at[0].text);
  if (order->own) return 0;
  if (in->n == 1) return data_sources(a, in->at[0].text, &order->all);
  VEC(Str) word = {0};
  for (uint32_t i = 0; i < in->n; i++) vec_push(a, &word, in->at[i].text);
  return sources_parse(a, word.at, word.n, &order->all);
}

static void counts_print(const char *name, const Counts *c) {
  printf(",\"%s\":[", name);
  for (int64_t i = 0; i < c->n; i++) printf("%s%lld", i ? "," : "", (long long)counts_get(c, i));
  printf("]");
}

static void order_print(Arena *a, const Order *o, bool named) {
  Text t;
  text_init(&t, a), text_json(&t, o->source->prefix);
  printf("{\"kind\":\"gpt\",");
  if (named) printf("\"prefix\":%s,", t.s);
  if (o->want < 0) printf("\"requested\":null");
  else printf("\"requested\":%lld", (long long)o->want);
  printf(",\"documents\":[%lld,%lld],\"len\":%lld,\"epochs\":%lld,\"separate_final_epoch\":%s", (long long)o->begin,
         (long long)o->end, (long long)o->samples, (long long)o->epochs, o->separate ? "true" : "false");
  counts_print("document_index", &o->document);
  counts_print("sample_index", &o->sample);
  counts_print("shuffle_index", &o->shuffle);
}

static void split_print(Arena *a, const Split *s) {
  if (!s->blend) {
    order_print(a, &s->source.at[0], false);
    return;
  }
  printf("{\"kind\":\"blend\",\"len\":%lld,\"weights\":[", (long long)s->samples);
  for (uint32_t k = 0; k < s->source.n; k++) printf("%s%.17g", k ? "," : "", s->weight[k]);
  printf("],\"dataset_id\":[");
  for (int64_t i = 0; i < s->samples; i++) printf("%s%d", i ? "," : "", s->id[i]);
  printf("],\"sample_id\":[");
  for (int64_t i = 0; i < s->samples; i++) printf("%s%lld", i ? "," : "", (long long)s->sample[i]);
  printf("],\"mid\":[");
  for (uint32_t k = 0; k < s->source.n; k++) {
    if (k) printf(",");
    order_print(a, &s->source.at[k], true);
    printf("}");
  }
  printf("]");
}

static void ints_print(const char *name, const int32_t *v, int64_t n) {
  printf(",\"%s\":[", name);
  for (int64_t i = 0; i < n; i++) printf("%s%d", i ? "," : "", v[i]);
  printf("]");
}

static Status tokens_print(const Data *d, int split, int64_t n, const Sample *x, bool more) {
  int64_t seq = d->rule.order.seq;
  printf(",\"samples\":[");
  for (int64_t i = 0; i < n; i++) {
    TRY(data_sample(d, split, i, x));
    printf("%s\n{\"i\":%lld", i ? "," : "", (long long)i);
    ints_print("tokens", x->tokens, seq);
    ints_print("labels", x->labels, seq);
    if (more) {
      printf(",\"mask\":[");
      for (int64_t k = 0; k < seq; k++) printf("%s%d", k ? "," : "", x->mask[k]);
      printf("]");
      ints_print("positions", x->positions, seq);
    }
    printf("}");
  }
  printf("]");
  return 0;
}

static Status samples_json(Arena *a, const Data *d, const SamplesOptions *o, const Sample *x) {
  bool more = o->eod_mask || o->reset_positions || o->pad >= 0 || o->keep_partial_valid || !o->extra;
  printf("{\"seq\":%lld,\"seed\":%lld,\"pad\":%lld", (long long)o->seq, (long long)o->seed, (long long)o->pad);
  for (int k = 0; k < SPLITS; k++) {
    const Split *s = &d->order.split[k];
    if (d->rule.order.skip[k]) continue;
    printf(",\n\"%s\":", split_names[k]);
    if (!s->present) {
      printf("null");
      continue;
    }
    split_print(a, s);
    TRY(tokens_print(d, k, o->first < 0 ? s->samples : MIN(o->first, s->samples), x, more));
    printf("}");
  }
  printf("}\n");
  return 0;
}

static Status samples_table(const Data *d, const SamplesOptions *o, const Sample *x) {
  for (int k = 0; k < SPLITS; k++) {
    const Split *s = &d->order.split[k];
    if (d->rule.order.skip[k]) continue;
    if (!s->present) {
      printf("%s: absent\n", split_names[k]);
      continue;
    }
    printf("%s: %lld samples of %lld tokens\n", split_names[k], (long long)s->samples, (long long)o->seq);
    for (uint32_t i = 0; i < s->source.n; i++) {
      const Order *e = &s->source.at[i];
      printf("  %s: sequences %lld to %lld, %lld tokens, %lld epoch%s%s, %lld samples", e->source->prefix,
             (long long)e->begin, (long long)e->end, (long long)e->tokens, (long long)e->epochs,
             e->epochs == 1 ? "" : "s", e->separate ? " (the last shuffled apart)" : "",
             (long long)e->samples);
      if (s->blend) printf(", weight %.6g", s->weight[i]);
      printf("\n");
    }
    int64_t n = MIN(o->first < 0 ? 3 : o->first, s->samples);
    for (int64_t i = 0; i < n; i++) {
      TRY(data_sample(d, k, i, x));
      printf("  sample %lld:", (long long)i);
      for (int64_t j = 0; j < MIN(o->seq, 20); j++) printf(" %d", x->tokens[j]);
      printf("%s\n", o->seq > 20 ? " …" : "");
    }
  }
  return 0;
}

// Nothing to show is an error when nothing was asked for: the data is shorter than one sample.
static Status any_sample(const Data *d) {
  for (int k = 0; k < SPLITS; k++)
    if (d->order.split[k].present && (d->order.split[k].samples || d->rule.order.size[k] >= 0)) return 0;
  for (int k = 0; k < SPLITS; k++) {
    const Split *s = &d->order.split[k];
    if (s->present)
      return fail(EXIT_INPUT, "%s: the %s split needs %lld tokens, has %lld", s->source.at[0].source->prefix,
                  split_names[k], (long long)(d->rule.order.seq + d->rule.order.extra),
                  (long long)s->source.at[0].tokens);
  }
  return fail(EXIT_INPUT, "there is no such split in '%s'", d->rule.order.split);
}

static Status samples(Arena *a, int argc, char **argv) {
  SamplesOptions o = samples_defaults;
  Words in = {0};
  bool help;
  DataRule r;
  Data d = {.rule = {.pad = -1}};
  TRY(options_parse(a, &samples_command, argc, argv, &o, &in, &help));
  if (help) return options_help(&samples_command, &samples_defaults, stdout), 0;
  TRY(samples_rule(a, &o, &in, &r));
  d.rule = r;
  TRY(order_open(a, &r.order, &d.order));
  Sample x = {NEW_N(a, int32_t, o.seq), NEW_N(a, int32_t, o.seq), NEW_N(a, int32_t, o.seq), 0,
              NEW_N(a, uint8_t, o.seq)};
  Status s = any_sample(&d);
  if (!s) s = o.json ? samples_json(a, &d, &o, &x) : samples_table(&d, &o, &x);
  data_close(&d);
  return s;
}

// ---- the program ------------------------------------------------------------------------------------------------
static const struct {
  Str name;
  Status (*run)(Arena *, int, char **);
  const Command *command;
  const void *defaults;
} commands[] = {
  {"prepare", prepare, &prepare_command, &prepare_defaults},
  {"inspect", inspect, &inspect_command, &inspect_defaults},
  {"samples", samples, &samples_command, &samples_defaults},
};

static void usage(FILE *to) {
  fprintf(to, "usage: mtdata COMMAND ...\n\n"
              "Prepares data for mtrun: text to token files, in Megatron-LM's format.\n\n");
  for (size_t i = 0; i < COUNT(commands); i++) {
    Str about = commands[i].command->about;
    fprintf(to, "  mtdata %-10s %.*s\n", commands[i].name, (int)strcspn(about, "\n"), about);
  }
  fprintf(to, "\n"
              "  mtdata COMMAND --help    the options of a command\n"
              "  mtdata --version\n\n"
              "  mtdata prepare book.txt -o book\n"
              "  mtdata inspect book\n\n");
  exits_help(to);
}

static void print_man(void) {                                     // what the build puts into mtdata(1)
  puts(".SH COMMANDS");
  for (size_t i = 0; i < COUNT(commands); i++) options_man(commands[i].command, 0, commands[i].defaults, stdout);
  exits_man(stdout);
}

static Status command_run(Arena *a, int argc, char **argv) {
  Str names[COUNT(commands)];
  if (argc < 2) {
    usage(stderr);
    return EXIT_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    usage(stdout);
    return 0;
  }
  if (!strcmp(argv[1], "--version")) return puts("mtdata " MT_VERSION), 0;
  if (!strcmp(argv[1], "--man")) return print_man(), 0;
  for (size_t i = 0; i < COUNT(commands); i++) {
    if (!strcmp(argv[1], commands[i].name)) return commands[i].run(a, argc - 1, argv + 1);
    names[i] = commands[i].name;
  }
  Str near = nearest(argv[1], names, COUNT(names));
  return fail(EXIT_USAGE, "no command '%.100s'%s%s%s", argv[1], near ? "; did you mean '" : "", near ? near : "",
              near ? "'?" : "; see mtdata --help");
}

int main(int argc, char **argv) {
  program_start("mtdata");
  Arena *a = arena_create();
  Status s = command_run(a, argc, argv);
  if (fflush(stdout) || ferror(stdout)) {
    Status w = fail(EXIT_IO, "writing the standard output: %s", strerror(errno));
    if (!s) s = w;
  }
  arena_destroy(a);
  return s;
}
