// link.c -- see link.h.
#include "runtime/link.h"
#include <stdlib.h>
#include <string.h>

typedef struct { Str word; double is; } Unit;
enum { LONGEST = 3600 };                       // seconds of latency
static const Unit rates[] = {{"GB/s", 1e9},      {"MB/s", 1e6},      {"KB/s", 1e3},
                             {"GiB/s", 0x1p30}, {"MiB/s", 0x1p20}, {"B/s", 1}};
static const Unit times[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

// A number above or from 0 and its unit, up to `end`.
static bool quantity(const char *s, const char *end, const Unit *unit, size_t n, double *v) {
  char *rest;
  *v = strtod(s, &rest);
  if (rest == s || !(*v >= 0) || *v > 1e18) return false;
  for (size_t i = 0; i < n; i++)
    if ((size_t)(end - rest) == strlen(unit[i].word) && !strncmp(rest, unit[i].word, strlen(unit[i].word)))
      return *v *= unit[i].is, true;
  return false;
}

Status link_read(const char *text, Link *l) {
  const char *comma = strchr(text, ',');
  bool right = comma && quantity(text, comma, rates, COUNT(rates), &l->rate) && l->rate >= 1 &&
               quantity(comma + 1, text + strlen(text), times, COUNT(times), &l->latency) && l->latency <= LONGEST;
  return right ? 0 : fail(EXIT_USAGE, "--link '%s': RATE,LATENCY as in 1GB/s,1ms; rates in B/s to GB/s, 1B/s and more; times in us to s, up to an hour",
                          text);
}

double link_seconds(const Link *l, double bytes) { return l->rate > 0 ? l->latency + bytes / l->rate : 0; }
