/*
 * fuse: joins elementwise, broadcast and reduction operators into kernels.
 *
 * Nodes are taken in order; each is a unit, and a unit joins those that make
 * its inputs where all their nodes share one domain (domain.c). Units stay in
 * a list that is a topological order at all times, so whether a join would
 * close a cycle is a search backwards through the few units in between.
 * Numbers and ramps are copied into the kernels that use them, and transposes into the
 * products that read them.
 */
#include <string.h>

#include "passes/passes.h"

enum { MOST_NODES = 64, MOST_VISITS = 128 };

struct unit {
	struct unit *prev, *next;
	uint64_t label;		/* grows along the list */
	LIST(struct node *) nodes;
	bool fusable, vectors;
	int visited;		/* stamp of the search that met it */
};

struct fuser {
	struct arena *a;	/* the pass's */
	struct graph *g;
	struct unit first;	/* head of the list; not a unit */
	struct unit **of;	/* by node id */
	int stamp;
	LIST(struct unit *) visits;
	bool *outside;		/* by value id: needed beside its unit */
};

/* ---- the list of units, in topological order ---- */

enum { STEP = 1 << 20 };

static void relabel(struct fuser *f)
{
	uint64_t label = STEP;

	for (struct unit *u = f->first.next; u != &f->first; u = u->next) {
		u->label = label;
		label += STEP;
	}
}

static void unlink_unit(struct unit *u)
{
	u->prev->next = u->next;
	u->next->prev = u->prev;
}

static void link_before(struct fuser *f, struct unit *u, struct unit *at)
{
	struct unit *before = at->prev;

	u->prev = before;
	u->next = at;
	before->next = u;
	at->prev = u;
	if (at == &f->first)
		u->label = before->label + STEP;
	else if (at->label - before->label > 1)
		u->label = before->label + (at->label - before->label) / 2;
	else
		relabel(f);
}

static struct unit *unit_new(struct fuser *f, struct node *n)
{
	struct unit *u = NEW(f->a, struct unit);

	u->fusable = kernel_may_hold(n) && !kernel_copies(n);
	u->vectors = kernel_in_vectors(n);
	PUSH(f->a, u->nodes, n);
	f->of[n->id] = u;
	link_before(f, u, &f->first);
	return u;
}

/* ---- joining two units ---- */

static void visit_inputs(struct fuser *f, const struct unit *u,
			 const struct unit *skip, uint64_t least)
{
	for (int k = 0; k < u->nodes.n; k++)
		for (int i = 0; i < u->nodes.at[k]->nin; i++) {
			struct unit *w = f->of[u->nodes.at[k]->in[i]->def->id];

			if (w == u || w == skip || w->visited == f->stamp ||
			    w->label < least)
				continue;
			w->visited = f->stamp;
			PUSH(f->a, f->visits, w);
		}
}

/* Collects the units between U and V that V needs; false if one of them needs
 * U, or if the search grows long. */
static bool find_between(struct fuser *f, struct unit *u, struct unit *v)
{
	f->stamp++;
	f->visits.n = 0;
	visit_inputs(f, v, u, u->label);
	for (int i = 0; i < f->visits.n; i++) {
		if (f->visits.at[i] == u || f->visits.n > MOST_VISITS)
			return false;
		visit_inputs(f, f->visits.at[i], NULL, u->label);
	}
	return true;
}

/* In the order of their labels. */
static void sort_visits(struct fuser *f)
{
	for (int i = 1; i < f->visits.n; i++) {
		struct unit *u = f->visits.at[i];
		int at = i;

		for (; at > 0 && f->visits.at[at - 1]->label > u->label; at--)
			f->visits.at[at] = f->visits.at[at - 1];
		f->visits.at[at] = u;
	}
}

/* The nodes of both, by id. */
static struct node **both(struct fuser *f, const struct unit *u,
			  const struct unit *v)
{
	int n = u->nodes.n + v->nodes.n, i = 0, j = 0;
	struct node **body = NEW_N(f->a, struct node *, n);

	for (int k = 0; k < n; k++) {
		bool left = j == v->nodes.n ||
			    (i < u->nodes.n &&
			     u->nodes.at[i]->id < v->nodes.at[j]->id);

		body[k] = left ? u->nodes.at[i++] : v->nodes.at[j++];
	}
	return body;
}

static bool alike(const struct unit *u, const struct unit *v)
{
	return u != v && u->fusable && v->fusable && u->vectors == v->vectors &&
	       u->nodes.at[0]->on == v->nodes.at[0]->on &&
	       u->nodes.n + v->nodes.n <= MOST_NODES;
}

/* Joins V, the later one, to U. */
static bool join(struct fuser *f, struct unit *u, struct unit *v)
{
	struct node **body;
	struct domain d;
	int n = u->nodes.n + v->nodes.n;

	if (!alike(u, v))
		return false;
	body = both(f, u, v);
	if (!domain_of(f->a, body, n, &d) || !find_between(f, u, v))
		return false;
	sort_visits(f);
	for (int i = 0; i < f->visits.n; i++) {
		unlink_unit(f->visits.at[i]);
		link_before(f, f->visits.at[i], u);
	}
	unlink_unit(v);
	u->nodes.n = 0;
	for (int k = 0; k < n; k++) {
		PUSH(f->a, u->nodes, body[k]);
		f->of[body[k]->id] = u;
	}
	return true;
}

/* The latest unit before LABEL that makes an input of N, or NULL. */
static struct unit *latest_input(struct fuser *f, const struct node *n,
				 const struct unit *self, uint64_t label)
{
	struct unit *found = NULL;

	for (int i = 0; i < n->nin; i++) {
		struct unit *u = f->of[n->in[i]->def->id];

		if (u != self && u->label < label &&
		    (found == NULL || u->label > found->label))
			found = u;
	}
	return found;
}

static void add_node(struct fuser *f, struct node *n)
{
	struct unit *self = unit_new(f, n), *u;
	uint64_t label = UINT64_MAX;

	while (self->fusable &&
	       (u = latest_input(f, n, self, label)) != NULL) {
		label = u->label;
		if (u->label < self->label) {
			if (join(f, u, self))
				self = u;
		} else {
			join(f, self, u);
		}
	}
}

/* ---- units to nodes ---- */

static void find_outside(struct fuser *f)
{
	struct graph *g = f->g;

	f->outside = NEW_N(f->a, bool, g->values.n + 1);
	for (int i = 0; i < g->outputs.n; i++)
		f->outside[g->outputs.at[i].v->id] = true;
	for (int i = 0; i < g->updates.n; i++)
		f->outside[g->updates.at[i].v->id] = true;
	for (int i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.at[i];

		for (int k = 0; k < n->nin; k++)
			if (f->of[n->in[k]->def->id] != f->of[n->id])
				f->outside[n->in[k]->id] = true;
	}
	for (int i = 0; i < g->values.n; i++)
		f->outside[i] |= g->values.at[i]->keep;
}

typedef LIST(struct node *) Nodes;
typedef LIST(struct value *) Values;

static bool has_node(const Nodes *l, const struct node *n)
{
	for (int i = 0; i < l->n; i++)
		if (l->at[i] == n)
			return true;
	return false;
}

static bool has_value(const Values *l, const struct value *v)
{
	for (int i = 0; i < l->n; i++)
		if (l->at[i] == v)
			return true;
	return false;
}

/* Makes a kernel of BODY. OWN: its values that others need are handed on. */
static struct node *kernel_new(struct fuser *f, const Nodes *body, bool own)
{
	struct node *last = body->at[body->n - 1], *n;
	Values in = {0}, out = {0};

	for (int k = 0; k < body->n; k++) {
		struct node *b = body->at[k];

		for (int i = 0; i < b->nin; i++)
			if (!has_node(body, b->in[i]->def) &&
			    !has_value(&in, b->in[i]))
				PUSH(f->g->arena, in, b->in[i]);
		for (int i = 0; i < b->nout; i++)
			if (b == last || (own && f->outside[b->out[i]->id] &&
					  !kernel_copies(b)))
				PUSH(f->g->arena, out, b->out[i]);
	}
	n = node_new(f->g, OP_kernel, last->span, in.n, in.at);
	n->trail = last->trail;
	n->on = last->on;
	n->in_dist = NEW_N(f->g->arena, Dist, in.n);
	for (int i = 0; i < in.n; i++)
		n->in_dist[i] = in.at[i]->dist;
	n->out = out.at;
	n->nout = out.n;
	n->body = body->at;
	n->nbody = body->n;
	return n;
}

/* The values are made by the kernel from now on. Done when all kernels are
 * there, as makers of values are looked up until then. */
static void own_values(struct node *n)
{
	for (int i = 0; i < n->nout; i++) {
		n->out[i]->def = n;
		n->out[i]->index = i;
	}
}

/* A unit's nodes, after the numbers that they use. */
static Nodes with_numbers(struct fuser *f, const struct unit *u)
{
	Nodes body = {0};

	for (int k = 0; k < u->nodes.n; k++)
		for (int i = 0; i < u->nodes.at[k]->nin; i++) {
			struct node *d = u->nodes.at[k]->in[i]->def;

			if (kernel_copies(d) &&
			    !dist_has(d->out[0]->dist, SBP_P) &&
			    !has_node(&body, d))
				PUSH(f->g->arena, body, d);
		}
	for (int k = 0; k < u->nodes.n; k++)
		PUSH(f->g->arena, body, u->nodes.at[k]);
	return body;
}

bool swaps_last_two(const struct node *n)
{
	const struct attr *dims;
	int r;

	if (n->op != OP_permute)
		return false;
	dims = node_attr(n, "dims");
	r = dims->n;
	if (r < 2 || dims->ints[r - 1] != r - 2 || dims->ints[r - 2] != r - 1)
		return false;
	for (int i = 0; i < r - 2; i++)
		if (dims->ints[i] != i)
			return false;
	return true;
}

/* A product, after the transposes that it reads through; what one of them
 * reads must be in memory. */
static Nodes with_transposes(struct fuser *f, struct node *n)
{
	Nodes body = {0};

	for (int i = 0; i < n->nin; i++) {
		struct node *d = n->in[i]->def;

		if (swaps_last_two(d) && !swaps_last_two(d->in[0]->def) &&
		    !has_node(&body, d))
			PUSH(f->g->arena, body, d);
	}
	PUSH(f->g->arena, body, n);
	return body;
}

static struct node *unit_node(struct fuser *f, const struct unit *u)
{
	struct node *n = u->nodes.at[0];
	Nodes body = {0};

	if (u->fusable)
		body = with_numbers(f, u);
	else if (n->op == OP_matmul)
		body = with_transposes(f, n);
	return body.n < 2 ? n : kernel_new(f, &body, u->fusable);
}

void pass_fuse(struct program *p)
{
	struct fuser f = {.a = arena_new(), .g = p->g};
	struct graph *g = p->g;
	Nodes fused = {0};

	f.first.prev = f.first.next = &f.first;
	f.of = NEW_N(f.a, struct unit *, g->nodes.n);
	for (int i = 0; i < g->nodes.n; i++)
		add_node(&f, g->nodes.at[i]);
	find_outside(&f);
	for (struct unit *u = f.first.next; u != &f.first; u = u->next)
		PUSH(f.a, fused, unit_node(&f, u));
	g->nodes.n = 0;
	for (int i = 0; i < fused.n; i++) {
		own_values(fused.at[i]);
		PUSH(g->arena, g->nodes, fused.at[i]);
	}
	graph_renumber(g);
	graph_sweep(g);
	arena_free(f.a);
}
