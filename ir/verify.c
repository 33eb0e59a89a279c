/*
 * verify.c: what must hold of every graph between passes.
 *
 * Types and distributions are checked once for each distinct node: a deep
 * model repeats few of them, and passes leave most as they were.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

/* ---- what was found right: a set of hashes ---- */

static struct {
	uint64_t *at;
	size_t room, used;
} seen;

static bool seen_put(uint64_t h)
{
	size_t i = h & (seen.room - 1);

	for (; seen.at[i]; i = (i + 1) & (seen.room - 1))
		if (seen.at[i] == h)
			return true;
	seen.at[i] = h;
	seen.used++;
	return false;
}

/* Whether H was there; it is afterwards. */
static bool seen_before(uint64_t h)
{
	uint64_t *old = seen.at;
	size_t i, room = seen.room;

	h += !h;	/* 0 marks free places */
	if (2 * seen.used >= seen.room) {
		seen.room = room ? 2 * room : 1024;
		seen.at = calloc(seen.room, sizeof *seen.at);
		if (!seen.at)
			bug("out of memory");
		seen.used = 0;
		for (i = 0; i < room; i++)
			if (old[i])
				seen_put(old[i]);
		free(old);
	}
	return seen_put(h);
}

static uint64_t hash_type(uint64_t h, const Type *t)
{
	h = hash_bytes(h, &t->dtype, sizeof t->dtype);
	return hash_bytes(h, t->shape.d,
			  sizeof *t->shape.d * (size_t)t->shape.rank);
}

static uint64_t hash_attr(uint64_t h, const struct attr *a)
{
	h = hash_bytes(h, &a->key, sizeof a->key);
	h = hash_bytes(h, &a->kind, sizeof a->kind);
	h = hash_bytes(h, &a->i, sizeof a->i);
	h = hash_bytes(h, &a->f, sizeof a->f);
	if (a->n)
		h = hash_bytes(h, a->ints, sizeof *a->ints * (size_t)a->n);
	return h;
}

static uint64_t hash_node(const struct node *n)
{
	uint64_t h = hash_bytes(0, &n->op, sizeof n->op);
	int i;

	h = hash_bytes(h, &n->nin, sizeof n->nin);
	for (i = 0; i < n->nin; i++)
		h = hash_type(h, &n->in[i]->type);
	for (i = 0; i < n->nout; i++)
		h = hash_type(h, &n->out[i]->type);
	for (i = 0; i < n->nattr; i++)
		h = hash_attr(h, &n->attr[i]);
	return h;
}

static uint64_t hash_dist(uint64_t h, const Dist *d)
{
	h = hash_bytes(h, &d->on, sizeof d->on);
	h = hash_bytes(h, d->order, sizeof d->order);
	return hash_bytes(h, d->t, sizeof *d->t * (size_t)d->on->naxes);
}

/* ---- nodes ---- */

static const char *label(const struct node *n)
{
	struct place p = place_of(n->span);

	return text_brief("node %d: %s at %s:%d", n->id,
			  op_info(n->op)->name, p.path, p.line);
}

/* Whether passes give the types: nothing to infer. */
static bool opaque(const struct node *n)
{
	return n->op == OP_move || n->op == OP_kernel;
}

static void check_values(const struct graph *g, const struct node *n)
{
	const struct value *v;
	int i;

	for (i = 0; i < n->nin; i++) {
		v = n->in[i];
		if (!v || v->id < 0 || v->id >= g->values.n ||
		    g->values.at[v->id] != v)
			bug("%s: input %d is no value of the graph",
			    label(n), i);
	}
	for (i = 0; i < n->nout; i++) {
		v = n->out[i];
		if (!v || v->id < 0 || v->id >= g->values.n ||
		    g->values.at[v->id] != v)
			bug("%s: output %d is no value of the graph",
			    label(n), i);
		if (v->def != n && n->op != OP_kernel)
			bug("%s: its output has another definition",
			    label(n));
	}
}

static void check_types(const struct node *n)
{
	struct arena *a;
	struct graph *scratch;
	struct node copy = *n;

	if (opaque(n) || !strcmp(op_info(n->op)->index, "@leaf"))
		return;
	if (seen_before(hash_node(n)))
		return;
	a = arena_new();
	scratch = graph_new(a);
	copy.nout = 0;
	copy.out = NULL;
	copy.attr = NEW_N(a, struct attr, n->nattr);
	if (n->nattr)
		memcpy(copy.attr, n->attr,
		       sizeof *n->attr * (size_t)n->nattr);
	if (!op_infer(scratch, &copy))
		bug("%s: its inputs do not fit", label(n));
	if (n->nout != 1 || !type_eq(copy.out[0]->type, n->out[0]->type))
		bug("%s: it has type %s, not %s", label(n),
		    n->nout ? type_text(n->out[0]->type) : "none",
		    type_text(copy.out[0]->type));
	arena_free(a);
}

static void check_one_dist(const struct node *n, Dist d, Type t)
{
	const char *why;

	if (!dist_known(d))
		return;
	why = dist_why_not(d, t);
	if (why)
		bug("%s: %s as %s: %s", label(n), type_text(t),
		    dist_text(d), why);
	if ((n->op == OP_param || n->op == OP_state) && dist_has(d, SBP_P))
		bug("%s: it is partial: %s", label(n), dist_text(d));
}

static bool all_known(const struct node *n)
{
	int i;

	if (n->nin && !n->in_dist)
		return false;
	for (i = 0; i < n->nin; i++)
		if (!dist_known(n->in_dist[i]))
			return false;
	for (i = 0; i < n->nout; i++)
		if (!dist_known(n->out[i]->dist))
			return false;
	return true;
}

static void check_dists(const struct node *n)
{
	Dist out[1];
	const char *why;
	uint64_t h;
	int i;

	for (i = 0; i < n->nout; i++)
		check_one_dist(n, n->out[i]->dist, n->out[i]->type);
	if (opaque(n) || n->op == OP_to || n->nout != 1 || !all_known(n))
		return;
	out[0] = n->out[0]->dist;
	h = hash_dist(hash_node(n), out);
	for (i = 0; i < n->nin; i++)
		h = hash_dist(h, &n->in_dist[i]);
	/* What a factor is decides on the signatures of mul. */
	if (*op_info(n->op)->max == '@')
		h = hash_bytes(h, n, sizeof *n);
	if (seen_before(h))
		return;
	why = op_why_not(n, n->in_dist, out);
	if (why)
		bug("%s: %s", label(n), why);
}

/* Inputs are defined before they are read. */
static void check_order(const struct graph *g)
{
	struct arena *a = arena_new();
	bool *defined = NEW_N(a, bool, g->values.n);
	const struct node *n;
	int i, k;

	for (i = 0; i < g->nodes.n; i++) {
		n = g->nodes.at[i];
		if (n->id != i)
			bug("%s: it stands at %d", label(n), i);
		check_values(g, n);
		for (k = 0; k < n->nin; k++)
			if (!defined[n->in[k]->id])
				bug("%s: %%%d is read before it is made",
				    label(n), n->in[k]->id);
		for (k = 0; k < n->nout; k++)
			defined[n->out[k]->id] = true;
	}
	arena_free(a);
}

static bool in_graph(const struct graph *g, const struct value *v)
{
	return v && v->id >= 0 && v->id < g->values.n &&
	       g->values.at[v->id] == v;
}

static void check_ends(const struct graph *g)
{
	const struct update *u;
	int i;

	for (i = 0; i < g->outputs.n; i++)
		if (!in_graph(g, g->outputs.at[i].v))
			bug("output '%s' is no value of the graph",
			    g->outputs.at[i].name);
	for (i = 0; i < g->updates.n; i++) {
		u = &g->updates.at[i];
		if (!in_graph(g, u->state) || !in_graph(g, u->v))
			bug("update %d is of no value of the graph", i);
		if (!type_eq(u->state->type, u->v->type))
			bug("update %d: %s becomes %s", i,
			    type_text(u->state->type),
			    type_text(u->v->type));
	}
}

void graph_verify(const struct graph *g)
{
	const struct node *n;
	int i, k;

	for (i = 0; i < g->values.n; i++)
		if (g->values.at[i]->id != i)
			bug("value %%%d stands at %d", g->values.at[i]->id, i);
	check_order(g);
	check_ends(g);
	for (i = 0; i < g->nodes.n; i++) {
		n = g->nodes.at[i];
		check_types(n);
		check_dists(n);
		for (k = 0; k < n->nbody; k++) {
			check_types(n->body[k]);
			check_dists(n->body[k]);
		}
	}
}
