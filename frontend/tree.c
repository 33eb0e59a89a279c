/*
 * tree.c: the constructors that the parser's actions call, and the printer
 * that gives the tree back as source.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/tree.h"

static const struct { /* ORDER oper */
	const char *text;
	bool spaced;
} operators[] = {
	{"+", true},  {"-", true},   {"*", true},  {"/", true},   {"//", true},
	{"%", true},  {"**", true},  {"@", true},  {"==", true},  {"!=", true},
	{"<", true},  {"<=", true},  {">", true},  {">=", true},  {"and", true},
	{"or", true}, {"..", false}, {"-", false}, {"not", true},
};

const char *operator_text(enum oper op)
{
	return operators[op].text;
}

struct expr *tree_expr(struct parse *p, enum expr_kind kind, Span at)
{
	struct expr *e = NEW(p->a, struct expr);

	e->kind = kind;
	e->span = e->name_at = at;
	e->depth = 1;
	return e;
}

/* E with its kids' depth counted; a tree that is too deep becomes E_BAD, so
 * that nothing that walks it can run out of stack. */
static struct expr *grown(struct parse *p, struct expr *e)
{
	int deepest = 0;
	struct expr *bad;

	for (int i = 0; i < e->nkid; i++)
		if (e->kid[i] && e->kid[i]->depth > deepest)
			deepest = e->kid[i]->depth;
	if (e->as && e->as->depth > deepest)
		deepest = e->as->depth;
	e->depth = deepest + 1;
	if (e->depth <= MAX_DEPTH)
		return e;
	if (deepest == MAX_DEPTH) { /* else that has been said */
		p->errors++;
		diag_error(e->span, "the expression is nested deeper than %d",
			   MAX_DEPTH);
		diag_hint("give parts of it a name");
	}
	bad = tree_expr(p, E_BAD, e->span);
	bad->depth = MAX_DEPTH + 1;
	return bad;
}

static struct expr *with_kids(struct parse *p, enum expr_kind kind, Span at,
			      int n, struct expr *const *kid)
{
	struct expr *e = tree_expr(p, kind, at);

	e->kid = NEW_N(p->a, struct expr *, n);
	e->nkid = n;
	for (int i = 0; i < n; i++)
		e->kid[i] = kid[i];
	return e;
}

/* The digits at AT without their underscores. */
static char *digits(struct parse *p, Span at)
{
	const char *s = p->source->text + (at.lo - p->source->base);
	char *out = arena_alloc(p->a, at.hi - at.lo + 1);
	char *to = out;

	for (uint32_t i = 0; i < at.hi - at.lo; i++)
		if (s[i] != '_')
			*to++ = s[i];
	return out;
}

struct expr *tree_int(struct parse *p, Span at)
{
	struct expr *e = tree_expr(p, E_INT, at);
	unsigned long long i;

	errno = 0;
	i = strtoull(digits(p, at), NULL, 10);
	e->i = (int64_t)i;
	if (errno || i > (unsigned long long)INT64_MAX + 1) {
		p->errors++;
		diag_error(at, "the number does not fit 64 bits");
	}
	return e;
}

struct expr *tree_float(struct parse *p, Span at)
{
	struct expr *e = tree_expr(p, E_FLOAT, at);

	e->f = strtod(digits(p, at), NULL);
	return e;
}

struct expr *tree_bool(struct parse *p, Span at, bool b)
{
	struct expr *e = tree_expr(p, E_BOOL, at);

	e->i = b;
	return e;
}

struct expr *tree_name(struct parse *p, Name name, Span at)
{
	struct expr *e = tree_expr(p, E_NAME, at);

	e->name = name;
	return e;
}

/* ---- texts ---- */

/* One text that is being cut into parts: from..i of S are characters that
 * wait in CHARS. */
struct cut {
	struct parse *p;
	const char *s;
	uint32_t base, i, n; /* base: the offset of s[0] */
	char *chars;
	size_t nchars;
	struct exprs *parts;
};

static Span cut_span(const struct cut *c, uint32_t lo, uint32_t hi)
{
	return (Span){c->base + lo, c->base + hi};
}

static void flush(struct cut *c, uint32_t hi)
{
	struct expr *e;

	if (!c->nchars)
		return;
	e = tree_expr(c->p, E_CHARS, cut_span(c, 0, hi));
	e->name = name_n(c->chars, c->nchars);
	c->parts = tree_exprs(c->p, c->parts, e);
	c->nchars = 0;
}

static char escaped(struct cut *c, char e)
{
	switch (e) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case '"':
	case '\\':
		return e;
	default:
		c->p->errors++;
		diag_error(cut_span(c, c->i, c->i + 2), "unknown escape '\\%c'",
			   e);
		diag_hint("a text knows \\\" \\\\ \\n \\t");
		return e;
	}
}

static void brace_error(struct cut *c, const char *message, const char *hint)
{
	c->p->errors++;
	diag_error(cut_span(c, c->i, c->i + 1), "%s", message);
	diag_hint("%s", hint);
}

/* At '{': the expression up to its '}'. */
static void cut_value(struct cut *c)
{
	const char *end = memchr(c->s + c->i, '}', c->n - c->i);
	uint32_t hi;
	struct expr *e;

	if (!end) {
		brace_error(c, "'{' without a '}'", "write '{{' for a brace");
		c->i = c->n;
		return;
	}
	hi = (uint32_t)(end - c->s);
	flush(c, c->i);
	e = parse_expr(c->p->a, c->p->source, c->base + c->i + 1, c->base + hi,
		       &c->p->errors);
	if (e)
		c->parts = tree_exprs(c->p, c->parts, e);
	c->i = hi + 1;
}

static void cut_next(struct cut *c, bool braces)
{
	char here = c->s[c->i], next = c->s[c->i + 1];

	if (here == '\\') {
		c->chars[c->nchars++] = escaped(c, next);
		c->i += 2;
	} else if (braces && (here == '{' || here == '}') && next == here) {
		c->chars[c->nchars++] = here;
		c->i += 2;
	} else if (braces && here == '{') {
		cut_value(c);
	} else {
		if (braces && here == '}')
			brace_error(c, "'}' without a '{'",
				    "write '}}' for a brace");
		c->chars[c->nchars++] = here;
		c->i++;
	}
}

static struct expr *text(struct parse *p, Span at, bool braces)
{
	struct cut c = {.p = p, .base = at.lo};
	struct expr *e;

	c.s = p->source->text + (at.lo - p->source->base);
	c.n = at.hi - at.lo - 1;
	c.chars = arena_alloc(p->a, c.n + 1);
	for (c.i = 1; c.i < c.n;)
		cut_next(&c, braces);
	flush(&c, c.n);
	e = with_kids(p, E_TEXT, at, c.parts ? c.parts->l.n : 0,
		      c.parts ? c.parts->l.at : NULL);
	return grown(p, e);
}

struct expr *tree_text(struct parse *p, Span at)
{
	return text(p, at, true);
}

struct expr *tree_chars(struct parse *p, Span at)
{
	return text(p, at, false);
}

/* ---- expressions ---- */

struct expr *tree_unary(struct parse *p, enum oper op, Span at, struct expr *x)
{
	struct expr *e = with_kids(p, E_UNARY, at, 1, &x);

	e->op = op;
	return grown(p, e);
}

struct expr *tree_binary(struct parse *p, enum oper op, Span at, struct expr *x,
			 struct expr *y)
{
	struct expr *kid[] = {x, y};
	struct expr *e = with_kids(p, E_BINARY, at, 2, kid);

	e->op = op;
	return grown(p, e);
}

struct expr *tree_list(struct parse *p, enum expr_kind kind, Span at,
		       struct exprs *l)
{
	return grown(
		p, with_kids(p, kind, at, l ? l->l.n : 0, l ? l->l.at : NULL));
}

struct expr *tree_call(struct parse *p, Span at, Name name, Span name_at,
		       struct exprs *args)
{
	struct expr *e = tree_list(p, E_CALL, at, args);

	e->name = name;
	e->name_at = name_at;
	return e;
}

/* The list ARGS with X before it. */
static struct expr *preceded(struct parse *p, enum expr_kind kind, Span at,
			     struct expr *x, struct exprs *args)
{
	struct exprs *all = tree_exprs(p, NULL, x);

	for (int i = 0; args && i < args->l.n; i++)
		all = tree_exprs(p, all, args->l.at[i]);
	return tree_list(p, kind, at, all);
}

struct expr *tree_method(struct parse *p, Span at, struct expr *x, Name name,
			 Span name_at, struct exprs *args)
{
	struct expr *e = preceded(p, E_METHOD, at, x, args);

	e->name = name;
	e->name_at = name_at;
	return e;
}

struct expr *tree_as(struct parse *p, Span at, struct expr *call,
		     struct expr *as)
{
	if (call->as) {
		p->errors++;
		diag_error(as->span, "the call has a name already");
	}
	call->as = as;
	call->span = at;
	return grown(p, call);
}

struct expr *tree_dot(struct parse *p, Span at, struct expr *x, Name name,
		      Span name_at)
{
	struct expr *e = with_kids(p, E_DOT, at, 1, &x);

	e->name = name;
	e->name_at = name_at;
	return grown(p, e);
}

struct expr *tree_index(struct parse *p, Span at, struct expr *x,
			struct exprs *subs)
{
	return preceded(p, E_INDEX, at, x, subs);
}

struct expr *tree_slice(struct parse *p, Span at, struct expr *lo,
			struct expr *hi, struct expr *step)
{
	struct expr *kid[] = {lo, hi, step};

	return grown(p, with_kids(p, E_SLICE, at, 3, kid));
}

struct expr *tree_key(struct parse *p, Span at, Name name, Span name_at,
		      struct expr *value)
{
	struct expr *e = with_kids(p, E_KEY, at, 1, &value);

	e->name = name;
	e->name_at = name_at;
	return grown(p, e);
}

struct expr *tree_on(struct parse *p, Span at, struct expr *x,
		     struct expr *dist, struct expr *grad)
{
	struct expr *kid[] = {x, dist, grad};

	return grown(p, with_kids(p, E_ON, at, 3, kid));
}

struct exprs *tree_exprs(struct parse *p, struct exprs *l, struct expr *e)
{
	if (!l)
		l = NEW(p->a, struct exprs);
	PUSH(p->a, l->l, e);
	return l;
}

/* ---- statements ---- */

struct stmt *tree_stmt(struct parse *p, enum stmt_kind kind, Span at)
{
	struct stmt *s = NEW(p->a, struct stmt);

	s->kind = kind;
	s->span = s->name_at = at;
	return s;
}

struct stmt *tree_named(struct parse *p, enum stmt_kind kind, Span at,
			Name name, Span name_at)
{
	struct stmt *s = tree_stmt(p, kind, at);

	s->name = name;
	s->name_at = name_at;
	return s;
}

struct stmts *tree_stmts(struct parse *p, struct stmts *l, struct stmt *s)
{
	if (!l)
		l = NEW(p->a, struct stmts);
	if (s)
		PUSH(p->a, l->l, s);
	return l;
}
