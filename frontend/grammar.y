/*
 * grammar.y: tokens to a tree. Each action calls one constructor; meaning is
 * checked when the tree is lowered. After a syntax error the parser goes on
 * at the next statement, or at the block that the broken one opens.
 */
%code top {
#include <stdio.h>
#include <string.h>
}
%code requires {
#include "ir/ir.h"
#include "frontend/tree.h"
}
%code provides {
int grammar_lex(GRAMMAR_STYPE *value, GRAMMAR_LTYPE *at, void *scanner);
int grammar_lex_init_extra(struct parse *p, void **scanner);
struct yy_buffer_state *grammar__scan_bytes(const char *s, int n,
					    void *scanner);
int grammar_lex_destroy(void *scanner);
}
%code {
#define YYLLOC_DEFAULT(here, rhs, n)                                          \
	((n) ? (void)((here).lo = YYRHSLOC(rhs, 1).lo,                        \
		      (here).hi = YYRHSLOC(rhs, n).hi)                        \
	     : (void)((here).lo = (here).hi = YYRHSLOC(rhs, 0).hi))
static void yyerror(Span *at, struct parse *p, void *scanner,
		    const char *message);
}

%define api.pure full
%define api.value.type union
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%define api.prefix {grammar_}
%parse-param {struct parse *p} {void *scanner}
%lex-param {void *scanner}
%locations
%expect 0

%token TERM "the end of the statement"
%token INT "number" FLOAT "decimal number" TEXT "text"
%token <Name> NAME "name"
%token TRUE "true" FALSE "false" NOT "not" AND "and" OR "or"
%token PLACEMENT "placement" LET "let" DEF "def" MODEL "model"
%token INPUT "input" PARAM "param" STATE "state" CONST "const"
%token OUTPUT "output" UPDATE "update" TRAIN "train" DATA "data"
%token DISTRIBUTE "distribute" ASSERT "assert" REPORT "report"
%token FOR "for" IF "if" ELSE "else" RETURN "return" IMPORT "import"
%token IN "in" ON "on" AS "as" FROM "from" GRAD "grad" EVERY "every"
%token POW "**" FLOORDIV "//" EQ "==" NE "!=" LE "<=" GE ">="
%token RANGE ".." ELLIPSIS "..."
%token FILE_START EXPR_START

%left OR
%left AND
%precedence NOT
%nonassoc EQ NE LE GE '<' '>'
%nonassoc RANGE
%left '+' '-'
%left '*' '/' FLOORDIV '%' '@'
%precedence NEG
%right POW

%type <struct stmts *> lines block
%type <struct stmt *> line stmt branch
%type <struct exprs *> targets axes args args1 items subs exprs report
%type <struct expr *> value expr atom postfix call arg sub opt type device
%type <struct expr *> on as init dist message list

%%

start
: FILE_START lines		{ p->file = $lines; }
| EXPR_START value		{ p->expr = $value; }
;

lines
: line				{ $$ = tree_stmts(p, NULL, $line); }
| lines[l] end line		{ $$ = tree_stmts(p, $l, $line); }
;

end
: TERM				{ yyerrok; }
;

line
: %empty			{ $$ = NULL; }
| stmt
| error				{ $$ = NULL; }
| error block			{ $$ = NULL; }
;

block
: '{' lines '}'			{ $$ = $lines; }
;

stmt
: targets '=' value
  { $$ = tree_stmt(p, S_ASSIGN, @$); $$->list = $targets; $$->e = $value; }
| LET NAME '=' value
  { $$ = tree_named(p, S_LET, @$, $NAME, @NAME); $$->e = $value; }
| PLACEMENT NAME axes '=' device
  { $$ = tree_named(p, S_PLACEMENT, @$, $NAME, @NAME); $$->list = $axes;
    $$->e = $device; }
| PLACEMENT NAME axes '=' device AS list
  { $$ = tree_named(p, S_PLACEMENT, @$, $NAME, @NAME); $$->list = $axes;
    $$->e = $device; $$->as = $list; }
| DEF NAME '(' args ')' block
  { $$ = tree_named(p, S_DEF, @$, $NAME, @NAME); $$->list = $args;
    $$->body = $block; }
| MODEL NAME on block
  { $$ = tree_named(p, S_MODEL, @$, $NAME, @NAME); $$->on = $on;
    $$->body = $block; }
| INPUT NAME ':' type on init
  { $$ = tree_named(p, S_INPUT, @$, $NAME, @NAME); $$->type = $type;
    $$->on = $on; $$->e = $init; }
| PARAM NAME ':' type on init
  { $$ = tree_named(p, S_PARAM, @$, $NAME, @NAME); $$->type = $type;
    $$->on = $on; $$->e = $init; }
| STATE NAME ':' type on init
  { $$ = tree_named(p, S_STATE, @$, $NAME, @NAME); $$->type = $type;
    $$->on = $on; $$->e = $init; }
| CONST NAME ':' type on init
  { $$ = tree_named(p, S_CONST, @$, $NAME, @NAME); $$->type = $type;
    $$->on = $on; $$->e = $init; }
| OUTPUT NAME as on
  { $$ = tree_named(p, S_OUTPUT, @$, $NAME, @NAME); $$->as = $as;
    $$->on = $on; }
| UPDATE NAME '=' value
  { $$ = tree_named(p, S_UPDATE, @$, $NAME, @NAME); $$->e = $value; }
| TRAIN NAME block
  { $$ = tree_named(p, S_TRAIN, @$, $NAME, @NAME); $$->body = $block; }
| DATA NAME '=' value
  { $$ = tree_named(p, S_DATA, @$, $NAME, @NAME); $$->e = $value; }
| DISTRIBUTE expr ON dist
  { $$ = tree_stmt(p, S_DISTRIBUTE, @$); $$->e = $expr; $$->on = $dist; }
| ASSERT expr message
  { $$ = tree_stmt(p, S_ASSERT, @$); $$->e = $expr; $$->as = $message; }
| REPORT TEXT report
  { $$ = tree_stmt(p, S_REPORT, @$); $$->e = tree_chars(p, @TEXT);
    $$->list = $report; }
| FOR NAME IN expr block
  { $$ = tree_named(p, S_FOR, @$, $NAME, @NAME); $$->e = $expr;
    $$->body = $block; }
| branch
| ON dist block
  { $$ = tree_stmt(p, S_ON, @$); $$->on = $dist; $$->body = $block; }
| RETURN exprs
  { $$ = tree_stmt(p, S_RETURN, @$); $$->list = $exprs; }
| IMPORT TEXT
  { $$ = tree_stmt(p, S_IMPORT, @$); $$->e = tree_text(p, @TEXT); }
;

branch
: IF expr block
  { $$ = tree_stmt(p, S_IF, @$); $$->e = $expr; $$->body = $block; }
| IF expr block[then] ELSE block[other]
  { $$ = tree_stmt(p, S_IF, @$); $$->e = $expr; $$->body = $then;
    $$->other = $other; }
| IF expr block ELSE branch[next]
  { $$ = tree_stmt(p, S_IF, @$); $$->e = $expr; $$->body = $block;
    $$->other = tree_stmts(p, NULL, $next); }
;

targets
: NAME		{ $$ = tree_exprs(p, NULL, tree_name(p, $NAME, @NAME)); }
| targets[l] ',' NAME
		{ $$ = tree_exprs(p, $l, tree_name(p, $NAME, @NAME)); }
;

axes
: %empty			{ $$ = NULL; }
| '(' args ')'			{ $$ = $args; }
;

device
: NAME '[' items ']'
  { $$ = tree_index(p, @$, tree_name(p, $NAME, @NAME), $items); }
;

type
: NAME '[' items ']'
  { $$ = tree_index(p, @$, tree_name(p, $NAME, @NAME), $items); }
;

on
: %empty			{ $$ = NULL; }
| ON dist			{ $$ = $dist; }
;

as
: %empty			{ $$ = NULL; }
| AS TEXT			{ $$ = tree_text(p, @TEXT); }
;

init
: %empty			{ $$ = NULL; }
| '=' expr			{ $$ = $expr; }
;

message
: %empty			{ $$ = NULL; }
| ',' expr			{ $$ = $expr; }
;

report
: %empty			{ $$ = NULL; }
| report[l] EVERY expr
  { $$ = tree_exprs(p, $l, tree_key(p, @$, name_of("every"), @EVERY, $expr)); }
| report[l] ON NAME
  { $$ = tree_exprs(p, $l, tree_key(p, @$, name_of("on"), @ON,
				    tree_name(p, $NAME, @NAME))); }
| report[l] FROM NAME
  { $$ = tree_exprs(p, $l, tree_key(p, @$, name_of("from"), @FROM,
				    tree_name(p, $NAME, @NAME))); }
;

dist
: NAME				{ $$ = tree_name(p, $NAME, @NAME); }
| NAME '(' args ')'	{ $$ = tree_call(p, @$, $NAME, @NAME, $args); }
| '(' args1 ')'		{ $$ = tree_list(p, E_GROUP, @$, $args1); }
| '(' args1 ',' ')'	{ $$ = tree_list(p, E_GROUP, @$, $args1); }
;

value
: expr
| value[x] ON dist		{ $$ = tree_on(p, @$, $x, $dist, NULL); }
| value[x] ON dist[d] GRAD dist[g]	{ $$ = tree_on(p, @$, $x, $d, $g); }
;

expr
: postfix
| expr[x] '+' expr[y]	{ $$ = tree_binary(p, O_ADD, @$, $x, $y); }
| expr[x] '-' expr[y]	{ $$ = tree_binary(p, O_SUB, @$, $x, $y); }
| expr[x] '*' expr[y]	{ $$ = tree_binary(p, O_MUL, @$, $x, $y); }
| expr[x] '/' expr[y]	{ $$ = tree_binary(p, O_DIV, @$, $x, $y); }
| expr[x] FLOORDIV expr[y]	{ $$ = tree_binary(p, O_FLOORDIV, @$, $x, $y); }
| expr[x] '%' expr[y]	{ $$ = tree_binary(p, O_MOD, @$, $x, $y); }
| expr[x] '@' expr[y]	{ $$ = tree_binary(p, O_MATMUL, @$, $x, $y); }
| expr[x] POW expr[y]	{ $$ = tree_binary(p, O_POW, @$, $x, $y); }
| expr[x] EQ expr[y]	{ $$ = tree_binary(p, O_EQ, @$, $x, $y); }
| expr[x] NE expr[y]	{ $$ = tree_binary(p, O_NE, @$, $x, $y); }
| expr[x] '<' expr[y]	{ $$ = tree_binary(p, O_LT, @$, $x, $y); }
| expr[x] LE expr[y]	{ $$ = tree_binary(p, O_LE, @$, $x, $y); }
| expr[x] '>' expr[y]	{ $$ = tree_binary(p, O_GT, @$, $x, $y); }
| expr[x] GE expr[y]	{ $$ = tree_binary(p, O_GE, @$, $x, $y); }
| expr[x] AND expr[y]	{ $$ = tree_binary(p, O_AND, @$, $x, $y); }
| expr[x] OR expr[y]	{ $$ = tree_binary(p, O_OR, @$, $x, $y); }
| expr[x] RANGE expr[y]	{ $$ = tree_binary(p, O_RANGE, @$, $x, $y); }
| '-' expr[x] %prec NEG	{ $$ = tree_unary(p, O_NEG, @$, $x); }
| NOT expr[x]		{ $$ = tree_unary(p, O_NOT, @$, $x); }
;

postfix
: atom
| call
| postfix[x] '.' NAME	{ $$ = tree_dot(p, @$, $x, $NAME, @NAME); }
| postfix[x] '.' NAME '(' args ')'
			{ $$ = tree_method(p, @$, $x, $NAME, @NAME, $args); }
| postfix[x] '[' subs ']'	{ $$ = tree_index(p, @$, $x, $subs); }
;

call
: NAME '(' args ')'	{ $$ = tree_call(p, @$, $NAME, @NAME, $args); }
| call[c] AS TEXT
  { $$ = tree_as(p, @$, $c, tree_text(p, @TEXT)); }
;

atom
: INT			{ $$ = tree_int(p, @$); }
| FLOAT			{ $$ = tree_float(p, @$); }
| TEXT			{ $$ = tree_text(p, @$); }
| TRUE			{ $$ = tree_bool(p, @$, true); }
| FALSE			{ $$ = tree_bool(p, @$, false); }
| NAME			{ $$ = tree_name(p, $NAME, @NAME); }
| '(' args1 ')'		{ $$ = tree_list(p, E_GROUP, @$, $args1); }
| '(' args1 ',' ')'	{ $$ = tree_list(p, E_GROUP, @$, $args1); }
| list
;

list
: '[' items ']'		{ $$ = tree_list(p, E_LIST, @$, $items); }
;

items
: %empty		{ $$ = NULL; }
| exprs
| exprs ','
;

exprs
: value			{ $$ = tree_exprs(p, NULL, $value); }
| exprs[l] ',' value	{ $$ = tree_exprs(p, $l, $value); }
;

args
: %empty		{ $$ = NULL; }
| args1
| args1 ','
;

args1
: arg			{ $$ = tree_exprs(p, NULL, $arg); }
| args1[l] ',' arg	{ $$ = tree_exprs(p, $l, $arg); }
;

arg
: value
| NAME '=' value	{ $$ = tree_key(p, @$, $NAME, @NAME, $value); }
;

subs
: sub			{ $$ = tree_exprs(p, NULL, $sub); }
| subs[l] ',' sub	{ $$ = tree_exprs(p, $l, $sub); }
;

sub
: expr
| ELLIPSIS		{ $$ = tree_expr(p, E_ELLIPSIS, @$); }
| opt[lo] ':' opt[hi]	{ $$ = tree_slice(p, @$, $lo, $hi, NULL); }
| opt[lo] ':' opt[hi] ':' opt[step]
			{ $$ = tree_slice(p, @$, $lo, $hi, $step); }
;

opt
: %empty		{ $$ = NULL; }
| expr
;

%%

/* For messages that are not about one token: the stack is full. */
static void yyerror(Span *at, struct parse *p, void *scanner,
		    const char *message)
{
	(void)scanner;
	if (!p->errors++)
		diag_error(*at, "nested too deeply (%s)", message);
}

static bool expects(const yysymbol_kind_t *want, int n, yysymbol_kind_t s)
{
	for (int i = 0; i < n; i++)
		if (want[i] == s)
			return true;
	return false;
}

/* What was expected, in few words; "" where the list would not help. */
static const char *expected(const yypcontext_t *c, char *buffer, size_t size)
{
	yysymbol_kind_t want[YYNTOKENS];
	int n = yypcontext_expected_tokens(c, want, YYNTOKENS);
	size_t used = 0;

	if (expects(want, n, YYSYMBOL_LET))
		return ", expected a statement";
	if (expects(want, n, YYSYMBOL_INT))
		return ", expected an expression";
	if (n < 1 || n > 6)
		return expects(want, n, YYSYMBOL_TERM)
			       ? ", expected the end of the statement"
			       : "";
	for (int i = 0; i < n && used < size; i++) {
		const char *name = yysymbol_name(want[i]);
		const char *join = !i ? ", expected " : i + 1 < n ? ", "
								  : " or ";
		bool plain = name[0] == '\'' || want[i] == YYSYMBOL_NAME ||
			     want[i] == YYSYMBOL_TEXT ||
			     want[i] == YYSYMBOL_TERM;

		used += (size_t)snprintf(buffer + used, size - used,
					 plain ? "%s%s" : "%s'%s'", join,
					 name);
	}
	return buffer;
}

static void say_found(const yypcontext_t *c, struct parse *p,
		      const char *want)
{
	Span at = *yypcontext_location(c);
	yysymbol_kind_t s = yypcontext_token(c);
	uint32_t n = at.hi - at.lo < 40 ? at.hi - at.lo : 40;

	if (s == YYSYMBOL_YYEOF)
		diag_error(at, "unexpected end of %s%s",
			   p->source->text[p->end - p->source->base] ? "text"
								     : "file",
			   want);
	else if (s == YYSYMBOL_TERM)
		diag_error(at, "unexpected end of the statement%s", want);
	else
		diag_error(at, "unexpected '%.*s'%s", (int)n,
			   p->source->text + (at.lo - p->source->base), want);
}

static void hint_syntax(yysymbol_kind_t found, struct parse *p)
{
	static const char reserved[] = "a word that starts a statement is no "
				       "name there; give it another name";

	Name near = p->began ? nearest_statement(p->began) : NULL;

	if (near && (found == YYSYMBOL_NAME || found == YYSYMBOL_TEXT))
		diag_hint("did you mean '%s'?", near);
	else if (!strcmp(yysymbol_name(found), "'='") && p->before >= PLACEMENT &&
	    p->before <= IMPORT)
		diag_hint("%s", reserved);
	else if (found == YYSYMBOL_AS)
		diag_hint("'as' names a call and stands directly after it");
	else if (found == YYSYMBOL_ELSE)
		diag_hint("'else' follows the '}' of an 'if'");
}

/* The bracket whose end is missing. */
static void note_open(yysymbol_kind_t found, struct parse *p)
{
	char c = p->nopen ? p->open[p->nopen - 1].c : 0;

	if (found == YYSYMBOL_TERM && p->unclosed.lo)
		diag_note(p->unclosed, "this bracket is not closed");
	else if (c && (found == YYSYMBOL_YYEOF || (c != '{' && p->new_line)))
		diag_note(p->open[p->nopen - 1].at, "'%c' is opened here", c);
	p->unclosed = (Span){0, 0};
	while (p->nopen && p->new_line && p->open[p->nopen - 1].c != '{')
		p->nopen--;
}

static int yyreport_syntax_error(const yypcontext_t *c, struct parse *p,
				 void *scanner)
{
	char buffer[200];
	yysymbol_kind_t found = yypcontext_token(c);

	(void)scanner;
	if (p->errors++ >= MAX_SYNTAX_ERRORS)
		return 0;	/* the lexer ended the file for this */
	say_found(c, p, expected(c, buffer, sizeof buffer));
	hint_syntax(found, p);
	note_open(found, p);
	return 0;
}

static void run(struct arena *a, const struct source *s, Span part,
		int start, struct parse *p)
{
	void *scanner;
	const char *text = s->text + (part.lo - s->base);

	p->a = a;
	p->source = s;
	p->at = part.lo;
	p->end = part.hi;
	p->start = start;
	if (start == EXPR_START)
		p->last = '(';
	if (grammar_lex_init_extra(p, &scanner))
		bug("no memory for the lexer");
	grammar__scan_bytes(text, (int)(part.hi - part.lo), scanner);
	if (grammar_parse(p, scanner) && !p->errors)
		p->errors++;
	grammar_lex_destroy(scanner);
}

struct stmts *parse_file(struct arena *a, const struct source *s, int *errors)
{
	struct parse p = {0};

	run(a, s, (Span){s->base, s->base + s->size}, FILE_START, &p);
	*errors += p.errors;
	return p.file;
}

struct expr *parse_expr(struct arena *a, const struct source *s, uint32_t lo,
			uint32_t hi, int *errors)
{
	struct parse p = {0};

	run(a, s, (Span){lo, hi}, EXPR_START, &p);
	*errors += p.errors;
	return p.errors ? NULL : p.expr;
}
