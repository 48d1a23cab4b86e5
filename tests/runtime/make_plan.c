// make_plan.c -- writes the plan of bigram.h: make_plan OUT [name=value …], with tp=N for a mesh that is refused.
#include "bigram.h"
#include <stdlib.h>

int main(int argc, char **argv) {
  Bigram b = bigram_small;
  int64_t tp = 1;
  struct {
    const char *name;
    int64_t *at;
  } field[] = {{"batch", &b.batch}, {"seq", &b.seq},     {"vocab", &b.vocab},
               {"size", &b.size},   {"embed", &b.embed}, {"microbatches", &b.microbatches},
               {"steps", &b.steps}, {"tp", &tp}};
  for (int i = 2; i < argc; i++) {
    const char *value = strchr(argv[i], '=');
    if (!value) return 1;
    if (!strcmp(argv[i], "dtype=f32")) b.dtype = DT_f32;
    if (!strncmp(argv[i], "lr=", 3)) b.lr = atof(value + 1);
    for (size_t k = 0; k < COUNT(field); k++)
      if (!strncmp(argv[i], field[k].name, strlen(field[k].name)) && argv[i] + strlen(field[k].name) == value)
        *field[k].at = atoll(value + 1);
  }
  Arena *a = arena_create();
  Plan *p = bigram_plan(a, &b);
  p->axis.at[4].size = tp;
  Status s = argc > 1 ? plan_save(p, argv[1]) : EXIT_USAGE;
  arena_destroy(a);
  return s;
}
