// mt.y -- the model language: text to tree. Actions only build nodes.
%code requires {
#include "grammar/parse.h"
}
%code {
#define TREE(kind, at, text, ...) parse_tree(p, N_##kind, at, text, __VA_ARGS__)
#define LEAF(kind, at, text) parse_tree(p, N_##kind, at, text, 0)
#define NONE(at) LEAF(none, at, 0)
#define LIST(at) LEAF(list, at, 0)
#define LIST1(at, kid) parse_push(p, LIST(at), kid)
#define WORD(s) intern(p->in, s)
#define BINARY(at, op, a, b) TREE(binary, at, WORD(op), 2, a, b)
#define YYLLOC_DEFAULT(to, rhs, n) \
  ((to) = (n) ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : span_after(YYRHSLOC(rhs, 0)))
static void mt_error(const Span *at, Parse *p, const char *message);
static Ast *num(Parse *p, Span at, double v);
static Ast *called(Parse *p, Span at, Ast *call, Ast *as);
}
%define api.prefix {mt_}
%define api.pure full
%define api.value.type {Value}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%param { Parse *p }
%expect 0
%initial-action { @$ = (Span){.file = p->source, .line = 1, .end_line = 1, .col = 1}; }

%token YYEOF 0 "the end of the text"
%token <text> NAME "a name" DOTTED "a dotted name" STRING "a string" DTYPE "a dtype" BOOL "true or false"
%token <num>  NUM "a number"
%token IMPORT "'import'" CONFIG "'config'" PRESET "'preset'" DIM "'dim'" FN "'fn'" BLOCK "'block'" MODEL "'model'"
%token PRECISION "'precision'" PARALLEL "'parallel'" TRAIN "'train'"
%token PARAM "'param'" REPEAT "'repeat'" IF "'if'" RETURN "'return'" REQUIRE "'require'" KEEP "'keep'" MESH "'mesh'" MAP "'map'"
%token AS "'as'" PAD "'pad'" ELSE "'else'" WEAK "'weak'" AND "'and'" OR "'or'" NOT "'not'"
%token ARROW "'->'" AT_OPEN "'@['" EQ "'=='" NE "'!='" LE "'<='" GE "'>='"
%token END "the end of the line"         // written `;`, or found by the rule for the end of statements
%token CUT "a lost brace"                // stands for a `}` that is missing, which was said
%token START_text "1" START_setting "2" START_values "3" START_map "4" START_mesh "5"

%type <node> items item configs config settings setting values value dimdecl dimparams names formals formal_list formal
%type <node> results type_list type dimpats dimpat outputs output_list output body stmts stmt count init_as if elsepart
%type <node> exprs expr primary call dimargs dimarg group args arg_list arg precs prec pars par mapping axes axis path
%type <text> setname

%left OR
%left AND
%precedence NOT
%nonassoc EQ NE LE GE '<' '>'
%left '+' '-'
%left '*' '/' '%'
%left '@' AT_OPEN
%precedence UMINUS
%right '^'
%%
start: START_text items
     | START_setting setting ends                { p->root = $2; }
     | START_values values ends                  { p->root = $2; }
     | START_map mapping ends                    { p->root = $2; }
     | START_mesh axes ends                      { p->root = TREE(mesh, @2, 0, 1, $2); } ;
ends: END | ends END ;

items: %empty                                    { $$ = p->root = LIST(@$); }
     | items END
     | items item                                { $$ = parse_push(p, $1, $2); } ;
item: IMPORT STRING END                          { $$ = LEAF(import, @$, $2); }
    | CONFIG '{' configs close                   { $$ = TREE(config, @$, 0, 1, $3); }
    | PRESET NAME '{' settings close             { $$ = TREE(preset, @$, $2, 1, $4); }
    | dimdecl END
    | FN NAME dimparams '(' formals ')' ARROW results body      { $$ = TREE(fn, @$, $2, 4, $3, $5, $8, $9); }
    | BLOCK NAME dimparams '(' formals ')' ARROW results body   { $$ = TREE(block, @$, $2, 4, $3, $5, $8, $9); }
    | MODEL NAME '(' formals ')' ARROW outputs body             { $$ = TREE(model, @$, $2, 3, $4, $7, $8); }
    | PRECISION '{' precs close                  { $$ = TREE(precision, @$, 0, 1, $3); }
    | PARALLEL '{' pars close                    { $$ = TREE(parallel, @$, 0, 1, $3); }
    | TRAIN '{' settings close                   { $$ = TREE(train, @$, 0, 1, $3); }
    | FN error bodyless                          { $$ = NONE(@$); yyerrok; }
    | BLOCK error bodyless                       { $$ = NONE(@$); yyerrok; }
    | MODEL error bodyless                       { $$ = NONE(@$); yyerrok; }
    | error '{' stmts close                      { $$ = NONE(@$); yyerrok; }
    | error END                                  { $$ = NONE(@$); yyerrok; } ;
close: '}' | CUT ;
bodyless: body | END ;

configs: %empty                                  { $$ = LIST(@$); }
       | configs END
       | configs config END                      { $$ = parse_push(p, $1, $2); }
       | configs broken ;
config: NAME '=' value                           { $$ = TREE(set, @$, $1, 1, LIST1(@3, $3)); }
      | REQUIRE expr                             { $$ = TREE(require, @$, 0, 1, $2); } ;
settings: %empty                                 { $$ = LIST(@$); }
        | settings END
        | settings setting END                   { $$ = parse_push(p, $1, $2); }
        | settings broken ;
broken: error END                                { yyerrok; }
      | error '{' stmts close END                { yyerrok; } ;
setting: setname '=' values                      { $$ = TREE(set, @$, $1, 1, $3); } ;
setname: NAME | DOTTED ;
values: value                                    { $$ = LIST1(@$, $1); }
      | values ',' value                         { $$ = parse_push(p, $1, $3); } ;
value: expr
     | DTYPE                                     { $$ = LEAF(dtype, @$, $1); } ;

dimdecl: DIM NAME                                { $$ = TREE(dim, @$, $2, 2, NONE(@$), NONE(@$)); }
       | DIM NAME '=' expr                       { $$ = TREE(dim, @$, $2, 2, $4, NONE(@$)); }
       | DIM NAME '=' expr PAD expr              { $$ = TREE(dim, @$, $2, 2, $4, $6); } ;

dimparams: %empty                                { $$ = LIST(@$); }
         | '[' names ']'                         { $$ = $2; } ;
names: NAME                                      { $$ = LIST1(@$, LEAF(name, @1, $1)); }
     | names ',' NAME                            { $$ = parse_push(p, $1, LEAF(name, @3, $3)); } ;
formals: %empty                                  { $$ = LIST(@$); }
       | formal_list
       | formal_list ',' ;
formal_list: formal                              { $$ = LIST1(@$, $1); }
           | formal_list ',' formal              { $$ = parse_push(p, $1, $3); } ;
formal: NAME                                     { $$ = TREE(formal, @$, $1, 2, NONE(@$), NONE(@$)); }
      | NAME '=' expr                            { $$ = TREE(formal, @$, $1, 2, NONE(@$), $3); }
      | NAME ':' type                            { $$ = TREE(formal, @$, $1, 2, $3, NONE(@$)); }
      | NAME ':' type '=' expr                   { $$ = TREE(formal, @$, $1, 2, $3, $5); } ;
results: type                                    { $$ = LIST1(@$, $1); }
       | '(' type_list ')'                       { $$ = $2; } ;
type_list: type                                  { $$ = LIST1(@$, $1); }
         | type_list ',' type                    { $$ = parse_push(p, $1, $3); } ;
type: '[' dimpats ']'                            { $$ = TREE(type, @$, WORD("float"), 1, $2); }
    | '[' ']'                                    { $$ = TREE(type, @$, WORD("float"), 1, LIST(@$)); }
    | DTYPE '[' dimpats ']'                      { $$ = TREE(type, @$, $1, 1, $3); }
    | DTYPE '[' ']'                              { $$ = TREE(type, @$, $1, 1, LIST(@$)); } ;
dimpats: dimpat                                  { $$ = LIST1(@$, $1); }
       | dimpats ',' dimpat                      { $$ = parse_push(p, $1, $3); } ;
dimpat: NAME                                     { $$ = LEAF(name, @$, $1); }
      | NAME '?'                                 { $$ = LEAF(maybe, @$, $1); }
      | '*'                                      { $$ = LEAF(star, @$, 0); } ;
outputs: output                                  { $$ = LIST1(@$, $1); }
       | '(' output_list ')'                     { $$ = $2; } ;
output_list: output                              { $$ = LIST1(@$, $1); }
           | output_list ',' output              { $$ = parse_push(p, $1, $3); } ;
output: NAME ':' type                            { $$ = TREE(formal, @$, $1, 2, $3, NONE(@$)); } ;

body: '{' stmts close                            { $$ = $2; } ;
stmts: %empty                                    { $$ = LIST(@$); }
     | stmts END
     | stmts stmt END                            { $$ = parse_push(p, $1, $2); }
     | stmts IF error END                        { yyerrok; }
     | stmts REPEAT error END                    { yyerrok; }
     | stmts broken ;
stmt: PARAM NAME init_as ':' type '~' expr       { $$ = TREE(param, @$, $2, 3, $3, $5, $7); }
    | dimdecl
    | names '=' exprs                            { $$ = TREE(assign, @$, 0, 2, $1, $3); }
    | RETURN exprs                               { $$ = TREE(return, @$, 0, 1, $2); }
    | REPEAT count AS NAME body                  { $$ = TREE(repeat, @$, $4, 2, $2, $5); }
    | REPEAT error body                          { $$ = NONE(@$); yyerrok; }
    | if
    | IF error body                              { $$ = NONE(@$); yyerrok; } ;
if: IF expr body elsepart                        { $$ = TREE(if, @$, 0, 3, $2, $3, $4); } ;
elsepart: %empty                                 { $$ = LIST(@$); }
        | ELSE body                              { $$ = $2; }
        | ELSE if                                { $$ = LIST1(@$, $2); } ;
count: NAME                                      { $$ = LEAF(name, @$, $1); }
     | NUM                                       { $$ = num(p, @$, $1); }
     | '(' expr ')'                              { $$ = $2; } ;
init_as: %empty                                  { $$ = NONE(@$); }
       | AS path                                 { $$ = $2; } ;
path: NAME                                       { $$ = LEAF(as, @$, $1); }
    | STRING                                     { $$ = LEAF(as, @$, $1); } ;

exprs: expr                                      { $$ = LIST1(@$, $1); }
     | exprs ',' expr                            { $$ = parse_push(p, $1, $3); } ;
expr: expr OR expr                               { $$ = BINARY(@$, "or", $1, $3); }
    | expr AND expr                              { $$ = BINARY(@$, "and", $1, $3); }
    | NOT expr                                   { $$ = TREE(unary, @$, WORD("not"), 1, $2); }
    | expr EQ expr                               { $$ = BINARY(@$, "==", $1, $3); }
    | expr NE expr                               { $$ = BINARY(@$, "!=", $1, $3); }
    | expr LE expr                               { $$ = BINARY(@$, "<=", $1, $3); }
    | expr GE expr                               { $$ = BINARY(@$, ">=", $1, $3); }
    | expr '<' expr                              { $$ = BINARY(@$, "<", $1, $3); }
    | expr '>' expr                              { $$ = BINARY(@$, ">", $1, $3); }
    | expr '+' expr                              { $$ = BINARY(@$, "+", $1, $3); }
    | expr '-' expr                              { $$ = BINARY(@$, "-", $1, $3); }
    | expr '*' expr                              { $$ = BINARY(@$, "*", $1, $3); }
    | expr '/' expr                              { $$ = BINARY(@$, "/", $1, $3); }
    | expr '%' expr                              { $$ = BINARY(@$, "%", $1, $3); }
    | expr '^' expr                              { $$ = BINARY(@$, "^", $1, $3); }
    | expr '@' expr                              { $$ = TREE(contract, @$, 0, 3, $1, $3, NONE(@2)); }
    | expr AT_OPEN names ']' expr %prec '@'      { $$ = TREE(contract, @$, 0, 3, $1, $5, $3); }
    | expr AT_OPEN ']' expr %prec '@'            { $$ = TREE(contract, @$, 0, 3, $1, $4, LIST(@2)); }
    | '-' expr %prec UMINUS                      { $$ = TREE(unary, @$, WORD("-"), 1, $2); }
    | primary ;
primary: call                                    { $$ = called(p, @$, $1, NONE(@$)); }
       | call AS path                            { $$ = called(p, @$, $1, $3); }
       | NAME                                    { $$ = LEAF(name, @$, $1); }
       | NUM                                     { $$ = num(p, @$, $1); }
       | STRING                                  { $$ = LEAF(str, @$, $1); }
       | BOOL                                    { $$ = LEAF(bool, @$, $1); }
       | DTYPE '(' expr ')'                      { $$ = TREE(convert, @$, $1, 1, $3); }
       | '(' expr ')'                            { $$ = $2; } ;
call: NAME '(' args ')'                          { $$ = TREE(call, @$, $1, 3, LIST(@1), LIST(@1), $3); }
    | NAME '[' dimargs ']' '(' args ')'          { $$ = TREE(call, @$, $1, 3, $3, LIST(@1), $6); }
    | NAME '[' dimargs ARROW dimargs ']' '(' args ')'   { $$ = TREE(call, @$, $1, 3, $3, $5, $8); } ;
dimargs: dimarg                                  { $$ = LIST1(@$, $1); }
       | dimargs ',' dimarg                      { $$ = parse_push(p, $1, $3); } ;
dimarg: NAME                                     { $$ = LEAF(name, @$, $1); }
      | '(' group ')'                            { $$ = $2; } ;
group: NAME                                      { $$ = TREE(group, @$, 0, 1, LEAF(name, @1, $1)); }
     | group ',' NAME                            { $$ = parse_push(p, $1, LEAF(name, @3, $3)); } ;
args: %empty                                     { $$ = LIST(@$); }
    | arg_list
    | arg_list ',' ;
arg_list: arg                                    { $$ = LIST1(@$, $1); }
        | arg_list ',' arg                       { $$ = parse_push(p, $1, $3); } ;
arg: expr                                        { $$ = TREE(arg, @$, WORD(""), 1, $1); }
   | NAME '=' expr                               { $$ = TREE(arg, @$, $1, 1, $3); } ;

precs: %empty                                    { $$ = LIST(@$); }
     | precs END
     | precs prec END                            { $$ = parse_push(p, $1, $2); }
     | precs broken ;
prec: setting
    | KEEP DTYPE ':' names                       { $$ = TREE(keep, @$, $2, 1, $4); } ;
pars: %empty                                     { $$ = LIST(@$); }
    | pars END
    | pars par END                               { $$ = parse_push(p, $1, $2); }
    | pars broken ;
par: setting
   | MESH axes                                   { $$ = TREE(mesh, @$, 0, 1, $2); }
   | MAP mapping                                 { $$ = $2; $$->span = @$; } ;
mapping: names ARROW names                       { $$ = TREE(map, @$, WORD(""), 2, $1, $3); }
       | WEAK names ARROW names                  { $$ = TREE(map, @$, WORD("weak"), 2, $2, $4); } ;
axes: axis                                       { $$ = LIST1(@$, $1); }
    | axes ',' axis                              { $$ = parse_push(p, $1, $3); } ;
axis: NAME '=' expr                              { $$ = TREE(set, @$, $1, 1, LIST1(@3, $3)); } ;
%%
static Ast *num(Parse *p, Span at, double v) {
  Ast *n = LEAF(num, at, 0);
  n->num = v;
  return n;
}

static Ast *called(Parse *p, Span at, Ast *call, Ast *as) {
  if (call->kind == N_call) parse_push(p, call, as), call->span = at;      // else it was refused: nested too deeply
  return call;
}

// The parser calls this itself only when its stack is full.
static void mt_error(const Span *at, Parse *p, const char *message) {
  (void)message;
  nest_error(p, *at);
}

static int yyreport_syntax_error(const yypcontext_t *c, Parse *p) {
  yysymbol_kind_t symbol[YYNTOKENS];
  const char *name[YYNTOKENS];
  int n = 0, all = p->said || p->quiet ? 0 : yypcontext_expected_tokens(c, symbol, YYNTOKENS);
  for (int i = 0; i < all; i++)
    if (symbol[i] != YYSYMBOL_YYerror && symbol[i] != YYSYMBOL_CUT) name[n++] = yysymbol_name(symbol[i]);
  syntax_error(p, *yypcontext_location(c), name, n);
  return 0;
}
