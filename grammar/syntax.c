// syntax.c -- runs while building: writes how an editor colours a model text, from the table of reserved words.
//
//   syntax vim > mt.vim      syntax textmate > mt.tmLanguage.json
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct { const char *word, *class; } words[] = {
#define X(token, word, class, form) {word, #class},
#include "grammar/keywords.def"
#undef X
};

static const struct { const char *class, *vim, *like, *scope; } classes[] = {    // a Vim group, what it looks like
  {"item", "mtItem", "Structure", "keyword.control.item.mt"},
  {"top", "mtTop", "Structure", "keyword.control.item.mt"},
  {"statement", "mtStatement", "Keyword", "keyword.control.mt"},
  {"clause", "mtClause", "Keyword", "keyword.other.mt"},
  {"operator", "mtOperator", "Operator", "keyword.operator.word.mt"},
  {"constant", "mtConstant", "Boolean", "constant.language.mt"},
  {"dtype", "mtType", "Type", "storage.type.mt"},
};

static void put_words(const char *class, const char *between) {
  const char *before = "";
  for (size_t i = 0; i < COUNT(words); i++)
    if (!strcmp(words[i].class, class)) printf("%s%s", before, words[i].word), before = between;
}

// A word of class top is an ordinary name elsewhere: it has its colour only where it opens a block.
static void vim(void) {
  printf("\" mt.vim -- colours for model texts of mt, written while it was built; the words come from keywords.def.\n"
         "if exists('b:current_syntax')\n  finish\nendif\n\n"
         "syn case match\n");
  for (size_t i = 0; i < COUNT(classes); i++) {
    if (!strcmp(classes[i].class, "top")) {
      printf("syn match mtTop /^\\s*\\zs\\<\\(");
      put_words("top", "\\|");
      printf("\\)\\>\\ze\\s*{/\n");
    } else {
      printf("syn keyword %s ", classes[i].vim);
      put_words(classes[i].class, " ");
      printf("\n");
    }
  }
  printf("syn match mtNumber /\\<\\d\\+\\(\\.\\d\\+\\)\\=\\([eE][-+]\\=\\d\\+\\)\\=\\(\\s*[KMGT]iB\\)\\=\\>/\n"
         "syn match mtName /\\(\\<\\(fn\\|block\\|model\\)\\s\\+\\)\\@<=\\h\\w*/\n"
         "syn match mtSetting /\\<\\h\\w*\\(\\.\\h\\w*\\)\\+/\n"
         "syn match mtPlace /{[^{}\"]*}/ contained\n"
         "syn region mtString start=/\"/ end=/\"/ oneline contains=mtPlace\n"
         "syn keyword mtTodo TODO FIXME XXX contained\n"
         "syn match mtComment /#.*/ contains=mtTodo,@Spell\n\n");
  for (size_t i = 0; i < COUNT(classes); i++) printf("hi def link %s %s\n", classes[i].vim, classes[i].like);
  printf("hi def link mtNumber Number\nhi def link mtName Function\nhi def link mtSetting Identifier\n"
         "hi def link mtPlace Special\nhi def link mtString String\n"
         "hi def link mtTodo Todo\nhi def link mtComment Comment\n\n"
         "let b:current_syntax = 'mt'\n");
}

static void textmate(void) {
  printf("{\n  \"name\": \"mt\",\n  \"scopeName\": \"source.mt\",\n  \"fileTypes\": [\"mt\", \"mtp\"],\n"
         "  \"patterns\": [\n"
         "    {\"name\": \"comment.line.number-sign.mt\", \"match\": \"#.*$\"},\n"
         "    {\"name\": \"string.quoted.double.mt\", \"begin\": \"\\\"\", \"end\": \"\\\"|$\", \"patterns\": [\n"
         "      {\"name\": \"constant.other.placeholder.mt\", \"match\": \"\\\\{[^{}\\\"]*\\\\}\"}]},\n"
         "    {\"match\": \"\\\\b(fn|block|model)\\\\s+([A-Za-z_]\\\\w*)\", \"captures\": {\n"
         "      \"1\": {\"name\": \"keyword.control.item.mt\"}, \"2\": {\"name\": \"entity.name.function.mt\"}}},\n"
         "    {\"name\": \"variable.other.setting.mt\", "
         "\"match\": \"\\\\b[A-Za-z_]\\\\w*(\\\\.[A-Za-z_]\\\\w*)+\"},\n");
  for (size_t i = 0; i < COUNT(classes); i++) {
    int top = !strcmp(classes[i].class, "top");
    printf("    {\"name\": \"%s\", \"match\": \"%s\\\\b(?:", classes[i].scope, top ? "^\\\\s*" : "");
    put_words(classes[i].class, "|");
    printf(")\\\\b%s\"},\n", top ? "(?=\\\\s*\\\\{)" : "");
  }
  printf("    {\"name\": \"constant.numeric.mt\", "
         "\"match\": \"\\\\b\\\\d+(?:\\\\.\\\\d+)?(?:[eE][-+]?\\\\d+)?(?:\\\\s*[KMGT]iB)?\\\\b\"},\n"
         "    {\"name\": \"keyword.operator.mt\", \"match\": \"->|==|!=|<=|>=|[-+*/%%^@<>=?~]\"}\n  ]\n}\n");
}

int main(int argc, char **argv) {
  for (size_t i = 0; i < COUNT(words); i++) {
    size_t k = 0;
    while (k < COUNT(classes) && strcmp(classes[k].class, words[i].class)) k++;
    if (k == COUNT(classes)) return fprintf(stderr, "syntax: the class %s has no colour\n", words[i].class), 70;
  }
  if (argc == 2 && !strcmp(argv[1], "vim")) vim();
  else if (argc == 2 && !strcmp(argv[1], "textmate")) textmate();
  else return 64;
  return fflush(stdout) ? 74 : 0;
}
