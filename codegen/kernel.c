/*
 * kernel.c: functions of kernels, each once, and the calls of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/kernel.h"

bool node_is_fold(const struct node *n)
{
	return op_info(n->op)->kernel == K_FOLD;
}

bool node_is_number(const struct node *n)
{
	return kernel_copies(n);
}

const char *taken_text(struct arena *a, struct text *t)
{
	const char *s = arena_text(a, "%s", t->at ? t->at : "");

	text_free(t);
	return s;
}

/* ---- lines: those with the function's name are broken when it is known ---- */

static void put_text(struct lines *l, const char *end, const char *format,
		     va_list args)
{
	struct text s = {0};
	va_list again;
	size_t n;
	char *at;

	va_copy(again, args);
	n = (size_t)vsnprintf(NULL, 0, format, again);
	va_end(again);
	at = malloc(n + 1);
	if (at == NULL)
		bug("no memory for a line of %zu bytes", n);
	vsnprintf(at, n + 1, format, args);
	text_add(&s, "%s%s", at, end);
	free(at);
	if (strchr(s.at, '@') == NULL)
		text_statement(&l->t, l->indent, s.at);
	else
		text_add(&l->t, "\1%d %s\n", l->indent, s.at);
	text_free(&s);
}

void put(struct lines *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_text(l, "", format, args);
	va_end(args);
}

void put_open(struct lines *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_text(l, " {", format, args);
	va_end(args);
	l->indent++;
}

void put_close(struct lines *l, int indent)
{
	while (l->indent > indent) {
		l->indent--;
		put(l, "}");
	}
}

/* ---- parameters ---- */

/* Names of inputs: a, b, ..., aa, ab, ... without the letters of loops, lanes
 * and local variables. */
static const char *input_name(struct arena *a, int i)
{
	static const char letters[] = "abcdefghtuvwz";
	int n = (int)sizeof letters - 1;
	const char *last = arena_text(a, "%c", letters[i % n]);

	if (i < n)
		return last;
	return arena_text(a, "%s%s", input_name(a, i / n - 1), last);
}

const char *param_value(struct emitter *e, struct params *p,
			const struct value *v, bool output)
{
	const char *name;

	for (int i = 0; i < p->values.n; i++)
		if (p->values.at[i] == v)
			return p->names.at[i];
	if (output)
		name = p->nout == 0 ? "y"
				    : arena_text(e->arena, "y%d", p->nout);
	else
		name = input_name(e->arena, p->values.n - p->nout);
	p->nout += output;
	p->local = e->p->local;
	PUSH(e->arena, p->values, v);
	PUSH(e->arena, p->names, name);
	return name;
}

void param_text(struct emitter *e, struct params *p, const char *decl,
		const char *text)
{
	struct arg arg = {.kind = ARG_TEXT, .text = name_of(text)};

	PUSH(e->arena, p->more, arg);
	PUSH(e->arena, p->more_decls, decl);
}

const char *param_extent(struct emitter *e, struct params *p,
			 const struct extent *x, const char *member)
{
	const char *text = name_of(arena_text(e->arena, "m->own[%d].%s", x->id,
					      member));
	const char *name, *decl;
	int same = 0;

	for (int i = 0; i < p->more.n; i++) {
		const char *d = p->more_decls.at[i];

		if (p->more.at[i].kind == ARG_TEXT && p->more.at[i].text == text)
			return strrchr(d, ' ') + 1;
		same += !strncmp(d, "int64_t ", 8) &&
			!strncmp(d + 8, member, strlen(member));
	}
	name = arena_text(e->arena, "%s%d", member, same);
	decl = arena_text(e->arena, "int64_t %s", name);
	param_text(e, p, decl, text);
	return name;
}

const char *param_axis(struct emitter *e, struct params *p,
		       const struct value *v, int axis)
{
	const struct local *own = &e->p->local[v->id];

	if (own->extent[axis] != NULL)
		return param_extent(e, p, own->extent[axis], "n");
	return arena_text(e->arena, "%lld", (long long)own->max.d[axis]);
}

const char *param_first(struct emitter *e, struct params *p,
			const struct value *v, int axis)
{
	const struct local *own = &e->p->local[v->id];

	if (own->first[axis] != NULL)
		return param_extent(e, p, own->first[axis], "lo");
	return "0";
}

static const struct value *buffer_of(const struct params *p, int i)
{
	const struct value *v = p->values.at[i];
	const struct local *own = &p->local[v->id];

	if (i < p->nout && own->over != NULL)
		return own->over;
	return own->same_as != NULL ? own->same_as : v;
}

const char *param_restrict(const struct params *p, int i)
{
	for (int k = 0; k < p->values.n; k++)
		if (k != i && (k < p->nout || i < p->nout) &&
		    buffer_of(p, k) == buffer_of(p, i))
			return "";
	return "restrict ";
}

void add_signature(struct text *t, const struct params *p, bool restricted)
{
	const char *comma = "";

	text_add(t, "(");
	if (p->model) {
		text_add(t, "sbp_model *m");
		comma = ", ";
	}
	for (int i = 0; i < p->values.n; i++) {
		text_add(t, "%s%s%s *%s%s", comma, i < p->nout ? "" : "const ",
			 dtype_c(p->values.at[i]->type.dtype),
			 restricted ? param_restrict(p, i) : "",
			 p->names.at[i]);
		comma = ", ";
	}
	for (int i = 0; i < p->more_decls.n; i++) {
		text_add(t, "%s%s", comma, p->more_decls.at[i]);
		comma = ", ";
	}
	text_add(t, ")");
}

/* ---- the functions so far ---- */

enum { BUCKETS = 1024, MOST_LINES = 8 };

struct function {
	struct function *next;	/* of the bucket */
	Name text;
	const char *name;
	size_t comment;		/* where its comment ends, in e->kernels */
	const char *path;
	int lines[MOST_LINES], nlines;
};

struct functions {
	struct function *bucket[BUCKETS];
	struct name_set *names;
	LIST(struct function *) all;
};

static struct functions *functions_of(struct emitter *e)
{
	if (e->functions == NULL) {
		struct functions *f = NEW(e->arena, struct functions);

		f->names = name_set_new(e->arena);
		e->functions = f;
	}
	return e->functions;
}

/* Inserts S at offset AT of the kernels' text. */
static void insert_text(struct emitter *e, size_t at, const char *s)
{
	struct functions *f = e->functions;
	struct text *t = &e->kernels;
	size_t n = strlen(s), old = t->n;

	text_add(t, "%s", s);
	memmove(t->at + at + n, t->at + at, old - at);
	memcpy(t->at + at, s, n);
	for (int i = 0; i < f->all.n; i++)
		if (f->all.at[i]->comment >= at)
			f->all.at[i]->comment += n;
}

/* Says in the comment of F that N needs it too. */
static void add_line(struct emitter *e, struct function *f,
		     const struct node *n)
{
	struct place p = place_of(n->span);
	const char *s;

	if (p.line == 0)
		return;
	for (int i = 0; i < f->nlines; i++)
		if (f->lines[i] == p.line)
			return;
	if (f->nlines == MOST_LINES || p.path != f->path)
		return;
	s = f->nlines == 1 ? "; also" : ",";
	f->lines[f->nlines++] = p.line;
	insert_text(e, f->comment,
		    arena_text(e->arena, "%s %d%s", s, p.line,
			       f->nlines == MOST_LINES ? ", ..." : ""));
}

/* A name that the emitter's own functions, PREFIX_..., cannot have. */
static const char *function_name(struct emitter *e, const char *stem,
				 Shape shape)
{
	struct text t = {0};
	size_t n = strlen(e->prefix);
	const char *name;

	stem = c_name(e->arena, stem);
	if (!strncmp(stem, e->prefix, n) || !strncmp(stem, "loop", 4))
		text_add(&t, "k_");
	text_add(&t, "%s_", stem);
	for (int i = 0; i < shape.rank; i++)
		text_add(&t, "%s%lld", i > 0 ? "x" : "",
			 (long long)shape.d[i]);
	if (shape.rank == 0)
		text_add(&t, "1");
	name = name_unique(functions_of(e)->names, t.at);
	text_free(&t);
	return name;
}

/* A line of a function's text, with NAME for '@'. "\1" and an indent before it
 * ask for breaks. */
static void add_line_text(struct text *t, const char *s, size_t n,
			  const char *name)
{
	struct text named = {0};
	const char *end = s + n;
	char *from = (char *)s;
	long indent = *s == '\1' ? strtol(s + 1, &from, 10) : 0;

	for (const char *c = from + (*s == '\1'); c < end; c++)
		if (*c == '@')
			text_add(&named, "%s", name);
		else
			text_add_n(&named, c, 1);
	if (*s == '\1')
		text_statement(t, (int)indent, named.at);
	else
		text_add(t, "%s\n", named.at ? named.at : "");
	text_free(&named);
}

static void add_function(struct emitter *e, struct function *f,
			 const struct node *n)
{
	struct text *t = &e->kernels;
	struct place p = place_of(n->span);

	text_add(t, "/* ");
	text_source(t, n->span);
	if (p.line == 0)
		text_add(t, "%s", op_info(n->op)->name);
	f->comment = t->n;
	f->path = p.path;
	f->lines[f->nlines++] = p.line;
	text_add(t, " */\n");
	for (const char *s = f->text; *s != '\0'; s += strcspn(s, "\n") + 1)
		add_line_text(t, s, strcspn(s, "\n"), f->name);
	text_add(t, "\n");
}

static void add_arguments(struct emitter *e, const struct params *p,
			  struct call *c)
{
	struct arg m = {.kind = ARG_TEXT, .text = name_of("m")};

	if (p->model)
		PUSH(e->arena, c->args, m);
	for (int i = 0; i < p->values.n; i++)
		call_arg(e, c, buffer_arg(e, p->values.at[i]));
	for (int i = 0; i < p->more.n; i++)
		PUSH(e->arena, c->args, p->more.at[i]);
	c->status = p->status;
}

void define_function(struct emitter *e, const struct node *n,
		     const struct params *p, const char *stem, Shape shape,
		     const char *text, struct call *c)
{
	struct functions *all = functions_of(e);
	size_t size = strlen(text);
	struct function **at = &all->bucket[hash_bytes(0, text, size) %
					    BUCKETS];
	struct function *f = *at;
	Name key = name_of(text);

	while (f != NULL && f->text != key)
		f = f->next;
	if (f == NULL) {
		f = NEW(e->arena, struct function);
		f->text = key;
		f->name = name_of(function_name(e, stem, shape));
		f->next = *at;
		*at = f;
		PUSH(e->arena, all->all, f);
		add_function(e, f, n);
	} else {
		add_line(e, f, n);
	}
	c->function = f->name;
	c->n = n;
	add_arguments(e, p, c);
}

/* ---- fused kernels ---- */

/* The def of the program or of the prelude that all nodes are in, or NULL. */
static Name common_def(const struct nest *k)
{
	Name def = NULL;

	for (int i = 0; i < k->nbody; i++) {
		const struct trail *t = k->body[i]->trail;

		if (node_is_number(k->body[i]))
			continue;
		if (t == NULL || (def != NULL && t->def != def))
			return NULL;
		def = t->def;
	}
	return def;
}

/* "bias_relu", "softmax": what the kernel does. */
static const char *stem_of(const struct nest *k)
{
	Name def = k->nbody > 2 ? common_def(k) : NULL;
	struct text t = {0};
	int n = 0;

	if (def != NULL)
		return def;
	for (int i = 0; i < k->nbody; i++)
		n += !node_is_number(k->body[i]);
	for (int i = 0, at = 0; i < k->nbody; i++) {
		if (node_is_number(k->body[i]) && n > 0)
			continue;
		if (at < 2 || at >= n - 1)
			text_add(&t, "%s%s", at > 0 ? "_" : "",
				 op_info(k->body[i]->op)->name);
		at++;
	}
	return taken_text(k->a, &t);
}

static void call_nest(struct emitter *e, const struct node *n, struct call *c)
{
	struct nest k = {0};
	const char *text;
	Shape local = {0};

	nest_find(&k, e, n);
	text = nest_text(&k);
	for (int i = 0; i < k.nloops; i++)
		local.d[local.rank++] = k.loop[i].max;
	define_function(e, n, &k.p, stem_of(&k), local, text, c);
}

bool kernel_call(struct emitter *e, const struct node *n, struct call *c)
{
	const struct node *last = n->op == OP_kernel ? n->body[n->nbody - 1]
						     : n;

	switch (op_info(last->op)->kernel) {
	case K_NONE:
		return false;
	case K_VIEW:
		if (n->op != OP_kernel)
			return false;
		call_nest(e, n, c);
		return true;
	case K_MAP:
	case K_FOLD:
		call_nest(e, n, c);
		return true;
	case K_CALL:
		if (last->op == OP_matmul)
			call_gemm(e, n, c);
		else if (!call_routine(e, n, c))
			bug("node %d: no kernel for %s", n->id,
			    op_info(last->op)->name);
		return true;
	}
	return false;
}
