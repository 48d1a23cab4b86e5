// ir.y -- the IR's text form: text to tree. Actions only build trees.
%code requires {
#include "grammar/ir_parse.h"
}
%code {
#include <stdlib.h>
#include <string.h>
#define YYLLOC_DEFAULT(to, rhs, n) ((to) = (n) ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : YYRHSLOC(rhs, 0))
#define TREE(kind, at, text, kids) tree(p, IR_##kind, at, text, kids)
#define LEAF(kind, at, text) tree(p, IR_##kind, at, text, NONE)
#define WITH_NUM(kind, at, text, num, kids) with_num(tree(p, IR_##kind, at, text, kids), num)
#define NUMBER(at, text) WITH_NUM(num, at, text, strtod(text, 0), NONE)
#define NONE ((IrChain){0})
static IrTree *tree(IrParse *p, IrKind kind, Span at, Str text, IrChain kids);
static IrTree *with_num(IrTree *t, double num) { return t->num = num, t; }
static IrChain one(IrTree *t) { return (IrChain){t, t}; }
static IrChain add(IrChain a, IrTree *t);
static IrChain cat(IrChain a, IrChain b);
static void irt_error(const Span *at, IrParse *p, const char *message);
}
%define api.prefix {irt_}
%define api.pure full
%define api.value.type {IrValue}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%param { IrParse *p }
%expect 0
%initial-action { @$ = (Span){.file = p->source, .line = 1, .end_line = 1, .col = 1}; }

%token YYEOF 0 "the end of the text"
%token NL "the end of the line" ARROW "'->'"
%token <text> NAME "a name" STRING "a string" NUM "a number" VAR "a variable"
%token <num>  VALUE "a value" BOOL "true or false"
%token <tree> PLACE "a place"
%token <text> W_mesh "mesh" W_map "map" W_weak "weak" W_dim "dim" W_size "size" W_of "of" W_zigzag "zigzag" W_part "part"
%token <text> W_sample "sample" W_ragged "ragged" W_set "set" W_output "output" W_coef "coef" W_per_step "per_step"
%token <text> W_var "var" W_decay "decay" W_stored "stored" W_partial "partial" W_fn "fn" W_body "body" W_in "in" W_layer "layer" W_fwd "fwd"

%type <tree> item dim_attr var_attr size value bare arg formal ret node result type along note along_axis
%type <chain> lines nodes sizes axes dim_attrs var_attrs out_attrs values value_list args formals formal_list rets ret_list
%type <chain> results dims in_dims to_dims node_args bare_list node_arg_list body types type_list alongs along_list splits pending notes note_list
%type <chain> nums mapped call_args
%type <text> name word
%%
text: lines                           { p->root = TREE(module, @$, 0, $1); } ;
lines: %empty                         { $$ = NONE; }
     | lines NL
     | lines item NL                  { $$ = add($1, $2); }
     | lines error NL                 { yyerrok; }
     | lines error '{' NL nodes '}' NL  { yyerrok; } ;

item: W_mesh sizes                    { $$ = TREE(mesh, @$, 0, $2); }
    | W_map name mapped notes         { $$ = TREE(map, @$, $2, cat($3, $4)); }
    | W_map W_weak name mapped notes  { $$ = WITH_NUM(map, @$, $3, 1, cat($4, $5)); }
    | W_dim name '=' NUM dim_attrs    { $$ = TREE(dim, @$, $2, cat(one(NUMBER(@4, $4)), $5)); }
    | W_set name '=' value notes      { $$ = TREE(set, @$, $2, cat(one($4), $5)); }
    | W_output name out_attrs notes   { $$ = TREE(output, @$, $2, cat($3, $4)); }
    | W_var name VAR ':' type var_attrs notes
                                      { $$ = TREE(variable, @$, $3, cat(add(add(NONE, LEAF(word, @2, $2)), $5), cat($6, $7))); }
    | W_fn name '(' formals ')' ARROW '(' rets ')' '{' NL nodes '}'
                                      { $$ = TREE(fn, span_join(@1, @10), $2, cat(cat($4, $8), $12)); }
    | W_body name W_of name '(' formals ')' ARROW '(' rets ')' '{' NL nodes '}'
                                      { $$ = TREE(body, span_join(@1, @12), $2, cat(one(LEAF(name, @4, $4)), cat(cat($6, $10), $14))); } ;

sizes: size                           { $$ = one($1); }
     | sizes ',' size                 { $$ = add($1, $3); } ;
size: name '=' NUM                    { $$ = TREE(size, @$, $1, one(NUMBER(@3, $3))); } ;
mapped: ARROW axes                    { $$ = $2; } ;
axes: name                            { $$ = one(LEAF(axis, @1, $1)); }
    | axes ',' name                   { $$ = add($1, LEAF(axis, @3, $3)); } ;

dim_attrs: %empty                     { $$ = NONE; }
         | dim_attrs dim_attr         { $$ = add($1, $2); } ;
dim_attr: W_size NUM                  { $$ = TREE(attr, @1, $1, one(NUMBER(@2, $2))); }
        | W_of name                   { $$ = TREE(attr, @1, $1, one(LEAF(name, @2, $2))); }
        | W_zigzag NUM                { $$ = TREE(attr, @1, $1, one(NUMBER(@2, $2))); }
        | W_part name '(' axes ')'    { $$ = TREE(attr, @1, $1, cat(one(LEAF(name, @2, $2)), $4)); }
        | W_sample                    { $$ = TREE(attr, @1, $1, NONE); }
        | W_ragged                    { $$ = TREE(attr, @1, $1, NONE); } ;
out_attrs: %empty                     { $$ = NONE; }
         | W_coef NUM                 { $$ = one(TREE(attr, @1, $1, one(NUMBER(@2, $2)))); }
         | W_coef NUM W_per_step      { $$ = add(one(TREE(attr, @1, $1, one(NUMBER(@2, $2)))), TREE(attr, @3, $3, NONE)); } ;
var_attrs: %empty                     { $$ = NONE; }
         | var_attrs var_attr         { $$ = add($1, $2); } ;
var_attr: '=' NAME                    { $$ = TREE(attr, @1, "=", one(LEAF(call, @2, $2))); }
        | '=' NAME '(' nums ')'       { $$ = TREE(attr, @1, "=", one(TREE(call, @2, $2, $4))); }
        | W_of VAR                    { $$ = TREE(attr, @1, $1, one(LEAF(var, @2, $2))); }
        | W_decay                     { $$ = TREE(attr, @1, $1, NONE); }
        | W_partial '(' axes ')'      { $$ = TREE(attr, @1, $1, $3); }
        | W_stored '(' nums ')'       { $$ = TREE(attr, @1, $1, $3); } ;
nums: NUM                             { $$ = one(NUMBER(@1, $1)); }
    | nums ',' NUM                    { $$ = add($1, NUMBER(@3, $3)); } ;

value: NUM                            { $$ = NUMBER(@1, $1); }
     | BOOL                           { $$ = WITH_NUM(bool, @1, 0, $1, NONE); }
     | word                           { $$ = LEAF(word, @1, $1); }
     | STRING                         { $$ = LEAF(word, @1, $1); }
     | word '(' call_args ')'         { $$ = TREE(call, @$, $1, $3); }
     | STRING '(' call_args ')'       { $$ = TREE(call, @$, $1, $3); } ;
call_args: %empty                     { $$ = NONE; }
         | value_list ;
value_list: values                    { $$ = $1; }
          | value_list ',' values     { $$ = cat($1, $3); } ;
values: value                         { $$ = one(TREE(arg, @$, "", one($1))); }
      | name '=' value                { $$ = one(TREE(arg, @$, $1, one($3))); } ;

formals: %empty                       { $$ = NONE; }
       | formal_list ;
formal_list: formal                   { $$ = one($1); }
           | formal_list ',' formal   { $$ = add($1, $3); } ;
formal: VALUE ':' type                { $$ = WITH_NUM(formal, @1, 0, $1, one($3)); }
      | VALUE name ':' type           { $$ = WITH_NUM(formal, @1, $2, $1, one($4)); } ;
rets: %empty                          { $$ = NONE; }
    | ret_list ;
ret_list: ret                         { $$ = one($1); }
        | ret_list ',' ret            { $$ = add($1, $3); } ;
ret: VALUE                            { $$ = WITH_NUM(ret, @1, "", $1, NONE); }
   | name ':' VALUE                   { $$ = WITH_NUM(ret, @3, $1, $3, NONE); } ;

nodes: %empty                         { $$ = NONE; }
     | nodes NL
     | nodes node NL                  { $$ = add($1, $2); }
     | nodes error NL                 { yyerrok; } ;
node: results '=' NAME dims node_args body types notes
                                      { $$ = TREE(node, @3, $3, cat(cat(cat($1, $4), cat($5, $6)), cat($7, $8))); }
    | NAME dims node_args body types notes
                                      { $$ = TREE(node, @1, $1, cat(cat($2, $3), cat($4, cat($5, $6)))); } ;
results: result                       { $$ = one($1); }
       | results ',' result           { $$ = add($1, $3); } ;
result: VALUE                         { $$ = WITH_NUM(result, @1, 0, $1, NONE); }
      | VALUE name                    { $$ = WITH_NUM(result, @1, $2, $1, NONE); } ;
dims: %empty                          { $$ = NONE; }
    | '[' in_dims ']'                 { $$ = $2; }
    | '[' in_dims ARROW to_dims ']'   { $$ = cat($2, $4); } ;
in_dims: name                         { $$ = one(LEAF(in, @1, $1)); }
       | in_dims ',' name             { $$ = add($1, LEAF(in, @3, $3)); } ;
to_dims: name                         { $$ = one(LEAF(to, @1, $1)); }
       | to_dims ',' name             { $$ = add($1, LEAF(to, @3, $3)); } ;
node_args: '(' args ')'               { $$ = $2; }
         | bare_list
         | %empty                     { $$ = NONE; } ;
bare_list: bare                       { $$ = one($1); }
         | bare_list ',' bare         { $$ = add($1, $3); } ;
args: %empty                          { $$ = NONE; }
    | node_arg_list ;
node_arg_list: arg                    { $$ = one($1); }
             | node_arg_list ',' arg  { $$ = add($1, $3); } ;
bare: VALUE                           { $$ = WITH_NUM(value, @1, 0, $1, NONE); }
    | VAR                             { $$ = LEAF(var, @1, $1); }
    | NUM                             { $$ = NUMBER(@1, $1); } ;
arg: bare
   | name '=' NUM                     { $$ = TREE(arg, @1, $1, one(NUMBER(@3, $3))); }
   | name '=' alongs                  { $$ = TREE(arg, @1, $1, $3); } ;
alongs: along_axis                    { $$ = one($1); }
      | alongs '|' along_axis         { $$ = add($1, $3); } ;
along_axis: name                      { $$ = LEAF(axis, @1, $1); } ;
body: %empty                          { $$ = NONE; }
    | W_body name                     { $$ = one(LEAF(bodyname, @2, $2)); } ;

types: %empty                         { $$ = NONE; }
     | ':' type_list                  { $$ = $2; } ;
type_list: type                       { $$ = one($1); }
         | type_list ',' type         { $$ = add($1, $3); } ;
type: NAME '[' along_list ']' pending { $$ = TREE(type, @$, $1, cat($3, $5)); }
    | NAME '[' ']' pending            { $$ = TREE(type, @$, $1, $4); } ;
along_list: along                     { $$ = one($1); }
          | along_list ',' along      { $$ = add($1, $3); } ;
along: name splits                    { $$ = TREE(along, @$, $1, $2); } ;
splits: %empty                        { $$ = NONE; }
      | splits '|' along_axis         { $$ = add($1, $3); } ;
pending: %empty                       { $$ = NONE; }
       | NAME '(' axes ')'            { $$ = one(TREE(pending, @$, $1, $3)); } ;

notes: %empty                         { $$ = NONE; }
     | ';' note_list                  { $$ = $2; } ;
note_list: note                       { $$ = one($1); }
         | note_list note             { $$ = add($1, $2); } ;
note: PLACE
    | W_in name                       { $$ = LEAF(path, @2, $2); }
    | W_layer NUM                     { $$ = TREE(layer, @2, 0, one(NUMBER(@2, $2))); }
    | W_fwd VALUE                     { $$ = WITH_NUM(fwd, @2, 0, $2, NONE); }
    | STRING                          { $$ = LEAF(why, @1, $1); } ;

name: word | STRING ;
word: NAME | W_mesh | W_map | W_weak | W_dim | W_size | W_of | W_zigzag | W_part | W_sample | W_ragged | W_set | W_output | W_coef
    | W_per_step | W_var | W_decay | W_stored | W_partial | W_fn | W_body | W_in | W_layer | W_fwd ;
%%
static IrChain add(IrChain a, IrTree *t) { return cat(a, one(t)); }

static IrChain cat(IrChain a, IrChain b) {
  if (!a.first || !b.first) return a.first ? a : b;
  a.last->next = b.first;
  return (IrChain){a.first, b.last};
}

static IrTree *tree(IrParse *p, IrKind kind, Span at, Str text, IrChain kids) {
  IrTree *t = NEW(p->arena, IrTree);
  *t = (IrTree){.kind = kind, .height = 1, .span = at, .text = text, .kid = kids.first};
  for (IrTree *k = kids.first; k; k = k->next) t->height = MAX(t->height, k->height + 1);
  if (t->height <= IR_HEIGHT) return t;
  diag_error(p->diag, at, "IR02", "nested deeper than %d", IR_HEIGHT);
  t->kid = 0, t->height = 1;
  return t;
}

// ---- messages -----------------------------------------------------------------------------------------------------
static const char *excerpt(IrParse *p) {                // the last token, short
  return arena_printf(p->arena, "'%.*s%s'", (int)MIN(p->token_n, (size_t)40), p->text + p->token_at, p->token_n > 40 ? "…" : "");
}

static int yyreport_syntax_error(const yypcontext_t *c, IrParse *p) {
  enum { FEW = 4 };
  Span at = *yypcontext_location(c);
  yysymbol_kind_t token = yypcontext_token(c), expected[YYNTOKENS];
  if (p->bad_line == at.line) return 0;
  Text t;
  text_init(&t, p->arena);
  bool end = token == YYSYMBOL_NL || token == YYSYMBOL_YYEOF || token == YYSYMBOL_YYEMPTY;
  text_printf(&t, "unexpected %s", end ? yysymbol_name(token) : excerpt(p));
  int n = yypcontext_expected_tokens(c, expected, YYNTOKENS), said = 0;
  bool names = false;                                   // any word may stand for a name
  for (int i = 0; i < n; i++) names |= expected[i] == YYSYMBOL_NAME;
  for (int i = 0; i < n && said <= FEW; i++) {
    bool word = expected[i] >= YYSYMBOL_W_mesh && expected[i] <= YYSYMBOL_W_fwd;
    if (expected[i] == YYSYMBOL_STRING && names) continue;
    if (expected[i] != YYSYMBOL_YYerror && !(word && names)) expected[said++] = expected[i];
  }
  if (said <= FEW)
    for (int i = 0; i < said; i++) text_printf(&t, "%s%s", !i ? ", expected " : i + 1 == said ? " or " : ", ", yysymbol_name(expected[i]));
  diag_error(p->diag, at, "IR02", "%s", t.s);
  return 0;
}

static void irt_error(const Span *at, IrParse *p, const char *message) {        // the parser's stack is full
  (void)message;
  diag_error(p->diag, *at, "IR02", "nested deeper than %d", IR_HEIGHT);
}
