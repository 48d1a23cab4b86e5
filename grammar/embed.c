// embed.c -- runs while building: writes a file as a C array.
//
//   embed FILE NAME HEADER > NAME.c      NAME_text, closed by a 0 that NAME_size does not count
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 4) return 64;
  FILE *f = fopen(argv[1], "rb");
  if (!f) {
    perror(argv[1]);
    return 66;
  }
  printf("#include \"%s\"\nconst char %s_text[] = {", argv[3], argv[2]);
  size_t n = 0;
  for (int c; (c = getc(f)) != EOF; n++) printf("%s%d,", n % 24 ? "" : "\n", c > 127 ? c - 256 : c);
  printf("0};\nconst size_t %s_size = %zu;\n", argv[2], n);
  int bad = ferror(f) || fflush(stdout);
  fclose(f);
  return bad ? 74 : 0;
}
