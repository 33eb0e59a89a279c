/*
 * read.c: reads what print.c prints. White space and comments only separate,
 * so the text may be laid out and cut down by hand.
 */
#include <string.h>

#include "ir/read.h"

/* ---- nodes ---- */

/* "%3"; ids are at most as many as the text has bytes. */
static int value_id(struct reader *r)
{
	int id, last = r->source->size > INT32_MAX - 1 ? INT32_MAX - 1
						       : (int)r->source->size;

	read_expect(r, "%");
	id = read_small(r, 0, last, "the number of a value");
	while (r->by_id.n <= id)
		PUSH(r->a, r->by_id, NULL);
	return id;
}

static struct value *known_value(struct reader *r)
{
	int id = value_id(r);

	if (!r->failed && !r->by_id.at[id])
		read_fail(r, text_brief("%%%d is not defined yet", id));
	return r->failed ? NULL : r->by_id.at[id];
}

/* Whether V is made by a node of the graph, not only of a kernel's body. */
static bool made_outside(const struct value *v)
{
	return v && v->def && v->def->id >= 0;
}

/* Kernels hand on values of their bodies, and bodies share nodes: a value may
 * be defined again where one of the two is a body. */
static struct value *new_value(struct reader *r, bool in_body)
{
	int id = value_id(r);
	struct value *v = r->failed ? NULL : r->by_id.at[id];
	Type t;

	if (made_outside(v) && !in_body)
		read_fail(r, text_brief("%%%d is defined twice", id));
	if (!v)
		v = NEW(r->a, struct value);
	v->id = id;
	if (!read_next_is(r, ":"))
		v->name = read_name(r);
	read_expect(r, ":");
	t = read_type(r);
	if (v->def && !type_eq(t, v->type))
		read_fail(r, text_brief("%%%d was %s before", id,
					type_text(v->type)));
	v->type = t;
	if (!read_next_is(r, ",") && !read_next_is(r, "=") &&
	    !read_next_is(r, "keep"))
		v->dist = read_distribution(r);
	v->keep = read_take(r, "keep");
	if (!r->failed)
		r->by_id.at[id] = v;
	return v;
}

static const struct data_source *data_source(struct reader *r, Name which)
{
	int i;

	for (i = 0; i < r->g->sources.n; i++)
		if (r->g->sources.at[i]->name == which)
			return r->g->sources.at[i];
	read_fail(r, text_brief("there is no data source '%s'", which));
	return NULL;
}

static void read_wants(struct reader *r, struct node *n)
{
	int i;

	n->in_dist = NEW_N(r->a, Dist, n->nin);
	read_expect(r, "[");
	for (i = 0; i < n->nin && !r->failed; i++) {
		if (i)
			read_expect(r, ",");
		if (!read_take(r, "-"))
			n->in_dist[i] = read_distribution(r);
	}
	read_expect(r, "]");
}

static void read_clauses(struct reader *r, struct node *n)
{
	read_attrs(r, n);
	if (read_take(r, "on"))
		n->on = read_placement(r);
	if (read_take(r, "wants"))
		read_wants(r, n);
	if (read_take(r, "init") && n->nout)
		n->init = read_init(r, n->out[0]);
	if (read_take(r, "from")) {
		n->source = data_source(r, read_name(r));
		read_expect(r, ":");
		n->field = read_name(r);
	}
}

static struct node *read_call(struct reader *r, Span span)
{
	LIST(struct value *) in = {0};
	enum op op = OP_input;
	const char *start;

	read_blank(r);
	start = r->s;
	if (!op_find(read_word(r), &op) && !r->failed) {
		r->s = start;
		read_fail(r, "an operator expected");
	}
	read_expect(r, "(");
	while (!r->failed && !read_take(r, ")")) {
		if (in.n)
			read_expect(r, ",");
		PUSH(r->a, in, known_value(r));
	}
	return node_new(r->g, op, span, in.n, in.at);
}

static void check_dists(struct reader *r, const struct node *n)
{
	const char *why;
	bool known = n->in_dist || !n->nin;
	int i;

	for (i = 0; i < n->nout; i++) {
		known = known && dist_known(n->out[i]->dist);
		why = n->out[i]->dist.on
			      ? dist_why_not(n->out[i]->dist, n->out[i]->type)
			      : NULL;
		if (why)
			read_fail(r, why);
	}
	for (i = 0; i < n->nin; i++)
		known = known && dist_known(n->in_dist[i]);
	if (r->failed || !known || n->op == OP_to || n->op == OP_move ||
	    n->op == OP_kernel)
		return;
	why = op_why_not(n, n->in_dist, &n->out[0]->dist);
	if (why)
		read_fail(r, why);
}

/* Whether N has the type that its operator gives. */
static void check_type(struct reader *r, struct node *n)
{
	Type t;

	if (r->failed || n->op == OP_kernel || n->op == OP_move)
		return;
	if (n->nout != 1) {
		read_fail(r, "one result expected");
		return;
	}
	t = n->out[0]->type;
	if (!op_infer(r->g, n)) {
		r->failed = true; /* reported */
		return;
	}
	if (!type_eq(t, n->out[0]->type))
		read_fail(r,
			  text_brief("%s gives %s, not %s",
				     op_info(n->op)->name,
				     type_text(n->out[0]->type), type_text(t)));
}

static struct node *read_node(struct reader *r, bool in_body)
{
	LIST(struct value *) out = {0};
	struct node *n;
	Span span;
	int i;

	span.lo = r->source->base + (uint32_t)(r->s - r->source->text);
	do
		PUSH(r->a, out, new_value(r, in_body));
	while (!r->failed && read_take(r, ","));
	read_expect(r, "=");
	n = read_call(r, span);
	n->nout = out.n;
	n->out = out.at;
	n->id = in_body ? -1 : r->g->nodes.n;
	for (i = 0; i < out.n; i++) {
		if (in_body && out.at[i]->def)
			continue; /* the kernel's, or another's */
		out.at[i]->def = n;
		out.at[i]->index = i;
	}
	read_clauses(r, n);
	n->span.hi = r->source->base + (uint32_t)(r->s - r->source->text);
	for (i = 0; i < out.n; i++)
		out.at[i]->span = n->span;
	check_type(r, n);
	if (!r->failed)
		check_dists(r, n);
	return n;
}

static void read_body(struct reader *r, struct node *n)
{
	LIST(struct node *) body = {0};

	while (!r->failed && !read_take(r, "end")) {
		read_blank(r);
		PUSH(r->a, body, read_node(r, true));
	}
	n->body = body.at;
	n->nbody = body.n;
}

static void read_source(struct reader *r)
{
	struct data_source *d = NEW(r->a, struct data_source);

	d->name = read_name(r);
	d->id = r->g->sources.n;
	read_expect(r, "=");
	if (read_take(r, "npy"))
		d->kind = DATA_NPY;
	else
		read_expect(r, "idx");
	read_expect(r, "(");
	d->file[0] = read_quoted(r);
	if (d->kind == DATA_IDX) {
		read_expect(r, ",");
		d->file[1] = read_quoted(r);
	}
	read_expect(r, ")");
	PUSH(r->a, r->g->sources, d);
}

static void read_output(struct reader *r)
{
	struct output o = {.name = read_name(r)};

	read_expect(r, "=");
	o.v = known_value(r);
	PUSH(r->a, r->g->outputs, o);
}

static void read_update(struct reader *r)
{
	struct update u = {.state = known_value(r)};

	read_expect(r, "=");
	u.v = known_value(r);
	if (!r->failed && u.state->def->op != OP_state)
		read_fail(r, "the value that is updated is no state");
	if (!r->failed && !type_eq(u.state->type, u.v->type))
		read_fail(r,
			  text_brief("%s becomes %s", type_text(u.state->type),
				     type_text(u.v->type)));
	PUSH(r->a, r->g->updates, u);
}

static void read_statement(struct reader *r)
{
	struct node *n;

	if (read_take(r, "placement")) {
		read_placement_line(r);
	} else if (read_take(r, "on")) {
		r->g->on = (struct placement *)read_placement(r);
	} else if (read_take(r, "data")) {
		read_source(r);
	} else if (read_take(r, "output")) {
		read_output(r);
	} else if (read_take(r, "update")) {
		read_update(r);
	} else {
		n = read_node(r, false);
		PUSH(r->a, r->g->nodes, n);
		if (read_take(r, "do"))
			read_body(r, n);
	}
}

/* Values get their numbers back where those were 0, 1, 2, ... */
static void number_values(struct reader *r)
{
	int i;

	for (i = 0; i < r->by_id.n && r->by_id.at[i]; i++)
		PUSH(r->a, r->g->values, r->by_id.at[i]);
	if (i < r->by_id.n)
		graph_renumber(r->g);
}

struct graph *graph_read(struct arena *a, const struct source *s)
{
	struct reader r = {.a = a, .source = s, .s = s->text};

	r.end = s->text + s->size;
	r.g = graph_new(a);
	read_expect(&r, "graph");
	r.g->name = read_name(&r);
	r.g->path = read_quoted(&r);
	read_expect(&r, "{");
	while (!r.failed && !read_take(&r, "}")) {
		read_blank(&r);
		if (r.s == r.end)
			read_fail(&r, "'}' expected");
		else
			read_statement(&r);
	}
	read_blank(&r);
	if (!r.failed && r.s != r.end)
		read_fail(&r, "text after the graph");
	number_values(&r);
	return r.failed ? NULL : r.g;
}
