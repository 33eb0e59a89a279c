/*
 * graph.c: nodes and values: building, attributes, renumbering, sweeping.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"

struct graph *graph_new(struct arena *a)
{
	struct graph *g = NEW(a, struct graph);

	g->arena = a;
	return g;
}

struct placement *graph_placement(struct graph *g, struct placement p)
{
	struct placement *q;
	int *rank, i;

	for (i = 0; i < g->placements.n; i++) {
		q = g->placements.at[i];
		if (q->name == p.name && placement_eq(q, &p))
			return q;
	}
	q = NEW(g->arena, struct placement);
	*q = p;
	q->id = g->placements.n;
	rank = NEW_N(g->arena, int, p.nranks);
	for (i = 0; i < p.nranks; i++) {
		rank[i] = p.rank[i];
		if (rank[i] >= g->world)
			g->world = rank[i] + 1;
	}
	q->rank = rank;
	PUSH(g->arena, g->placements, q);
	return q;
}

static const struct placement *first_equal(const struct graph *g,
					   const struct placement *p)
{
	for (int i = 0; p && i < g->placements.n; i++)
		if (placement_eq(g->placements.at[i], p))
			return g->placements.at[i];
	return p;
}

void graph_unify_placements(struct graph *g)
{
	for (int i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.at[i];

		n->on = first_equal(g, n->on);
		for (int k = 0; n->in_dist && k < n->nin; k++)
			n->in_dist[k].on = first_equal(g, n->in_dist[k].on);
		for (int k = 0; k < n->nout; k++)
			n->out[k]->dist.on =
				first_equal(g, n->out[k]->dist.on);
	}
	g->on = (struct placement *)first_equal(g, g->on);
}

/* ---- building ---- */

struct node *node_new(struct graph *g, enum op op, Span span, int nin,
		      struct value **in)
{
	struct node *n = NEW(g->arena, struct node);

	n->id = -1;
	n->op = op;
	n->span = span;
	n->nin = nin;
	n->in = NEW_N(g->arena, struct value *, nin);
	if (nin)
		memcpy(n->in, in, sizeof *in * (size_t)nin);
	return n;
}

static struct attr *attr_slot(struct graph *g, struct node *n,
			      const char *key, enum attr_kind kind)
{
	struct attr *list, *a;
	Name name = name_of(key);
	int i;

	for (i = 0; i < n->nattr && n->attr[i].key != name; i++)
		;
	if (i == n->nattr) {
		list = NEW_N(g->arena, struct attr, n->nattr + 1);
		if (n->nattr)
			memcpy(list, n->attr,
			       sizeof *list * (size_t)n->nattr);
		n->attr = list;
		n->nattr++;
	}
	a = &n->attr[i];
	*a = (struct attr){.key = name, .kind = kind};
	return a;
}

void node_int(struct graph *g, struct node *n, const char *key, int64_t i)
{
	attr_slot(g, n, key, ATTR_INT)->i = i;
}

void node_float(struct graph *g, struct node *n, const char *key, double f)
{
	attr_slot(g, n, key, ATTR_FLOAT)->f = f;
}

void node_bool(struct graph *g, struct node *n, const char *key, bool b)
{
	attr_slot(g, n, key, ATTR_BOOL)->i = b;
}

void node_dtype(struct graph *g, struct node *n, const char *key,
		enum dtype t)
{
	attr_slot(g, n, key, ATTR_DTYPE)->i = t;
}

void node_ints(struct graph *g, struct node *n, const char *key,
	       const int64_t *ints, int count)
{
	int64_t *copy = NEW_N(g->arena, int64_t, count);
	struct attr *a;

	if (count)
		memcpy(copy, ints, sizeof *ints * (size_t)count);
	a = attr_slot(g, n, key, ATTR_INTS);
	a->ints = copy;
	a->n = count;
}

void node_text(struct graph *g, struct node *n, const char *key,
	       const char *text)
{
	attr_slot(g, n, key, ATTR_TEXT)->text =
		arena_text(g->arena, "%s", text);
}

static struct value *new_value(struct graph *g, struct node *n, Type t,
			       int index)
{
	struct value *v = NEW(g->arena, struct value);

	v->id = -1;
	v->type = t;
	v->def = n;
	v->index = index;
	v->span = n->span;
	return v;
}

void node_type(struct graph *g, struct node *n, enum dtype dtype, Shape s)
{
	Type t = {dtype, s};

	if (!n->nout) {
		n->nout = 1;
		n->out = NEW(g->arena, struct value *);
		n->out[0] = new_value(g, n, t, 0);
	}
	n->out[0]->type = t;
}

static void append(struct graph *g, struct node *n)
{
	int i;

	n->id = g->nodes.n;
	PUSH(g->arena, g->nodes, n);
	for (i = 0; i < n->nout; i++) {
		n->out[i]->id = g->values.n;
		PUSH(g->arena, g->values, n->out[i]);
	}
}

bool node_done(struct graph *g, struct node *n)
{
	if (!op_infer(g, n))
		return false;
	append(g, n);
	return true;
}

struct node *node_make(struct graph *g, enum op op, Span span, int nin,
		       struct value **in, int nout, const Type *out)
{
	struct node *n = node_new(g, op, span, nin, in);
	int i;

	n->nout = nout;
	n->out = NEW_N(g->arena, struct value *, nout);
	for (i = 0; i < nout; i++)
		n->out[i] = new_value(g, n, out[i], i);
	append(g, n);
	return n;
}

/* ---- attributes ---- */

const struct attr *node_attr(const struct node *n, const char *key)
{
	int i;

	for (i = 0; i < n->nattr; i++)
		if (n->attr[i].key == key || !strcmp(n->attr[i].key, key))
			return &n->attr[i];
	return NULL;
}

static const struct attr *must_have(const struct node *n, const char *key)
{
	const struct attr *a = node_attr(n, key);

	if (!a)
		bug("node %d: %s has no attribute '%s'", n->id,
		    op_info(n->op)->name, key);
	return a;
}

int64_t attr_int(const struct node *n, const char *key)
{
	return must_have(n, key)->i;
}

double attr_float(const struct node *n, const char *key)
{
	return must_have(n, key)->f;
}

bool attr_bool(const struct node *n, const char *key)
{
	return must_have(n, key)->i != 0;
}

/* ---- messages at a node ---- */

bool node_fail(const struct node *n, const char *format, ...)
{
	char s[512];
	va_list args;

	va_start(args, format);
	vsnprintf(s, sizeof s, format, args);
	va_end(args);
	diag_error(n->span, "%s: %s", op_info(n->op)->name, s);
	return false;
}

void node_note(const struct node *n, int i, const char *more)
{
	static const char *const sides[] = {"left operand", "right operand"};
	const struct op_info *info = op_info(n->op);
	const struct value *v = n->in[i];
	const char *what;

	if (n->nin == 1)
		what = "operand";
	else if (n->nin == 2 && info->nparam == 2)
		what = sides[i];
	else
		what = text_brief("operand %d", i + 1);
	if (v->name)
		diag_note(v->span, "%s '%s' is %s%s", what, v->name,
			  type_text(v->type), more);
	else
		diag_note(v->span, "%s is %s%s", what, type_text(v->type),
			  more);
}

/* ---- the whole graph ---- */

int *graph_uses(const struct graph *g, struct arena *a)
{
	int *uses = NEW_N(a, int, g->values.n);
	const struct node *n;
	int i, k;

	for (i = 0; i < g->nodes.n; i++) {
		n = g->nodes.at[i];
		for (k = 0; k < n->nin; k++)
			uses[n->in[k]->id]++;
	}
	for (i = 0; i < g->outputs.n; i++)
		uses[g->outputs.at[i].v->id]++;
	for (i = 0; i < g->updates.n; i++)
		uses[g->updates.at[i].v->id]++;
	return uses;
}

/* Values of N that no other node of the new list has numbered yet. A kernel
 * may hand on the values of its body as its own. */
static void number_values(struct graph *g, struct node *n)
{
	int i;

	for (i = 0; i < n->nout; i++) {
		if (n->out[i]->id >= 0)
			continue;
		n->out[i]->id = g->values.n;
		PUSH(g->arena, g->values, n->out[i]);
	}
}

static void forget_values(struct node *n)
{
	int i;

	for (i = 0; i < n->nout; i++)
		n->out[i]->id = -1;
}

void graph_renumber(struct graph *g)
{
	struct node *n;
	int i, k;

	for (i = 0; i < g->nodes.n; i++) {
		n = g->nodes.at[i];
		n->id = i;
		forget_values(n);
		for (k = 0; k < n->nbody; k++)
			forget_values(n->body[k]);
	}
	g->values.n = 0;
	for (i = 0; i < g->nodes.n; i++) {
		n = g->nodes.at[i];
		for (k = 0; k < n->nbody; k++)
			number_values(g, n->body[k]);
		number_values(g, n);
	}
}

static bool declared(const struct node *n)
{
	return n->op == OP_input || n->op == OP_param || n->op == OP_state;
}

static bool reached(const struct node *n, const bool *live)
{
	int i;

	for (i = 0; i < n->nout; i++)
		if (live[n->out[i]->id] || n->out[i]->keep)
			return true;
	return declared(n);
}

void graph_sweep(struct graph *g)
{
	struct arena *scratch = arena_new();
	bool *live = NEW_N(scratch, bool, g->values.n);
	bool *stays = NEW_N(scratch, bool, g->nodes.n);
	int i, k, n = 0;

	for (i = 0; i < g->outputs.n; i++)
		live[g->outputs.at[i].v->id] = true;
	for (i = 0; i < g->updates.n; i++)
		live[g->updates.at[i].v->id] = true;
	for (i = g->nodes.n - 1; i >= 0; i--) {
		stays[i] = reached(g->nodes.at[i], live);
		for (k = 0; stays[i] && k < g->nodes.at[i]->nin; k++)
			live[g->nodes.at[i]->in[k]->id] = true;
	}
	for (i = 0; i < g->nodes.n; i++)
		if (stays[i])
			g->nodes.at[n++] = g->nodes.at[i];
	g->nodes.n = n;
	graph_renumber(g);
	arena_free(scratch);
}
