/*
 * call_text.c: one call of a step as text: its arguments, the comment over it
 * and the statement.
 */
#include <string.h>

#include "codegen/emit.h"

/* ---- arguments ---- */

int64_t arg_number(const struct emitter *e, const struct arg *arg)
{
	if (arg->kind == ARG_VALUE)
		return e->p->local[arg->v->id].at[e->class];
	return arg->i;
}

static void add_value(struct emitter *e, const struct arg *arg, struct text *t)
{
	e->named[arg->v->id] = true;
	e->addresses = true;
	text_add(t, e->target->at, arg->ctype);
	text_add(t, "AT_%s", e->name[arg->v->id]);
}

/* What follows the first of an argument's values: " + 64 * i", or nothing. */
static void add_stride(int64_t stride, struct text *t)
{
	long long size = stride < 0 ? -stride : stride;

	if (stride != 0)
		text_add(t, " %c ", stride < 0 ? '-' : '+');
	if (size > 1)
		text_add(t, "%lld * i", size);
	else if (size == 1)
		text_add(t, "i");
}

void end_address(const struct arg *arg, struct text *t)
{
	if (arg->text != NULL)
		text_add(t, " + %s", arg->text);
	text_add(t, ")");
}

void add_argument(struct emitter *e, const struct arg *arg, int64_t stride,
		  struct text *t)
{
	switch (arg->kind) {
	case ARG_TEXT:
		text_add(t, "%s", arg->text);
		return;
	case ARG_INT:
		text_add(t, "%lld", (long long)arg->i);
		add_stride(stride, t);
		return;
	case ARG_MOVE:
		text_add(t, "&%s[%lld", e->moves, (long long)arg->i);
		add_stride(stride, t);
		text_add(t, "]");
		return;
	case ARG_VALUE:
		add_value(e, arg, t);
		add_stride(stride, t);
		end_address(arg, t);
	}
}

/* ---- comments ---- */

void fill_readers(struct stepper *s)
{
	const struct graph *g = s->e->p->g;

	s->reader = NEW_N(s->e->arena, const struct node *, g->values.n + 1);
	for (int i = g->nodes.n - 1; i >= 0; i--) {
		const struct node *n = g->nodes.at[i];

		for (int k = 0; k < n->nin; k++)
			s->reader[n->in[k]->id] = n;
	}
}

/* What the user wrote for N: the function, where its span is one call (a def
 * of the prelude, say), else N's operator. */
static const char *operator_name(const struct stepper *s, const struct node *n)
{
	const char *call = text_call(s->e->arena, n->span);

	return call != NULL ? call : op_info(n->op)->name;
}

/* Which operator wants the value that the move N makes: one in a kernel's
 * body where it is fused. */
static const char *wanted_by(const struct stepper *s, const struct node *n)
{
	const struct value *v = n->out[0];
	const struct node *reader = s->reader[v->id];

	if (reader == NULL)
		return "the output";
	if (reader->op == OP_move)
		return "the next step";
	for (int i = 0; reader->op == OP_kernel && i < reader->nbody; i++)
		for (int k = 0; k < reader->body[i]->nin; k++)
			if (reader->body[i]->in[k] == v)
				return operator_name(s, reader->body[i]);
	return operator_name(s, reader);
}

/* "linear wants h: (S(1)) -> (B), all-gather(0)" for the move N. */
static void add_conversion(const struct stepper *s, const struct node *n,
			   struct text *t)
{
	Dist from = n->in[0]->dist, to = n->out[0]->dist;
	bool same = placement_eq(from.on, to.on);
	const char *name = n->boxing ? n->boxing->value : NULL;

	text_add(t, "%s wants %s: ", wanted_by(s, n),
		 name ? name : s->e->name[n->in[0]->id]);
	text_add(t, "%s -> ", same ? dist_terms(from) : dist_text(from));
	text_add(t, "%s, %s", same ? dist_terms(to) : dist_text(to),
		 move_title(s->e->arena, n));
}

/* The slices that N is the first to read where they lie. */
static void add_slices(const struct stepper *s, const struct node *n,
		       int indent, struct text *t)
{
	for (int k = 0; k < n->nin; k++) {
		const struct value *v = n->in[k], *whole = lies_in(s->e->p, v);

		if (whole == v || s->reader[v->id] != n)
			continue;
		text_add(t, "%.*s/* %s is read in place: ", indent, "\t\t\t",
			 s->e->name[whole->id]);
		text_add(t, "%s -> ", dist_terms(whole->dist));
		text_add(t, "%s */\n", dist_terms(v->dist));
	}
}

static void add_source(struct stepper *s, const struct node *n, int indent,
		       struct text *t)
{
	int line = place_of(n->span).line;

	if (line == 0 || (line == s->line && n->op != OP_move))
		return;
	text_add(t, "\n");
	s->line = n->op == OP_move ? 0 : line;
	text_add(t, "%.*s/* ", indent, "\t\t\t");
	if (n->op == OP_move) {
		text_line(t, n->span);
		add_conversion(s, n, t);
	} else {
		text_source(t, n->span);
	}
	text_add(t, " */\n");
}

void add_comment(struct stepper *s, const struct node *n, int indent,
		 struct text *t)
{
	add_source(s, n, indent, t);
	add_slices(s, n, indent, t);
}

const char *label_of(struct stepper *s, const struct node *n)
{
	for (int k = 0; k < n->nin; k++) {
		const struct value *v = lies_in(s->e->p, n->in[k]);
		const char *dot;

		if (v->def->op != OP_param || v->name == NULL)
			continue;
		dot = strrchr(v->name, '.');
		if (dot == NULL)
			continue;
		return arena_text(s->e->arena, "%.*s", (int)(dot - v->name),
				  v->name);
	}
	return NULL;
}

void add_statement(struct stepper *s, const struct call *c, const char *args,
		   int indent, struct text *t)
{
	struct text line = {0};

	s->e->target->call(s->e, c, args, &line);
	text_statement(t, indent, line.at);
	text_free(&line);
}

static const char *kept_text(struct stepper *s, struct text *t)
{
	const char *copy = arena_text(s->e->arena, "%s", t->at ? t->at : "");

	text_free(t);
	return copy;
}

void add_item(struct stepper *s, struct text *t, int calls, const char *label)
{
	struct item item = {kept_text(s, t), calls, label};

	PUSH(s->e->arena, s->items, item);
}

void single_call(struct stepper *s, const struct call *c)
{
	struct text t = {0}, args = {0};

	for (int i = 0; i < c->args.n; i++) {
		text_add(&args, "%s", i > 0 ? ", " : "");
		add_argument(s->e, &c->args.at[i], 0, &args);
	}
	add_comment(s, c->n, 1, &t);
	add_statement(s, c, args.at ? args.at : "", 1, &t);
	text_free(&args);
	add_item(s, &t, 1, label_of(s, c->n));
}
