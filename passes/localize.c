/*
 * localize: what each rank holds of every value, and which ranks are alike.
 *
 * A piece is described by its largest size, which buffers are made for, and
 * by formulas where it differs from rank to rank; so one text serves every
 * rank of a class. Ranks are of one class if they belong to the same
 * placements.
 */
#include "passes/passes.h"

/* ---- rank classes ---- */

/* Splits the classes so far by membership in PL; classes are numbered by
 * their first rank. */
static void refine(struct program *p, const struct placement *pl)
{
	int world = p->g->world, n = 0;
	bool *in = NEW_N(p->arena, bool, world);
	int *fresh = NEW_N(p->arena, int, 2 * p->nclasses);

	for (int i = 0; i < pl->nranks; i++)
		in[pl->rank[i]] = true;
	for (int r = 0; r < world; r++) {
		int *c = &fresh[2 * p->class_of[r] + in[r]];

		if (*c == 0)
			*c = ++n;
		p->class_of[r] = *c - 1;
	}
	p->nclasses = n;
}

static void fill_classes(struct program *p)
{
	struct graph *g = p->g;
	int np = g->placements.n;

	p->nclasses = 1;
	p->class_of = NEW_N(p->arena, int, g->world);
	for (int i = 0; i < np; i++)
		refine(p, g->placements.at[i]);
	p->class_rank = NEW_N(p->arena, int, p->nclasses);
	for (int r = g->world - 1; r >= 0; r--)
		p->class_rank[p->class_of[r]] = r;
	p->class_on = NEW_N(p->arena, bool, p->nclasses *np);
	for (int i = 0; i < np; i++) {
		const struct placement *pl = g->placements.at[i];

		for (int k = 0; k < pl->nranks; k++)
			p->class_on[p->class_of[pl->rank[k]] * np + i] = true;
	}
}

static bool class_on(const struct program *p, int class,
		     const struct placement *pl)
{
	return p->class_on[class * p->g->placements.n + pl->id];
}

bool class_holds(const struct program *p, int class, const struct value *v)
{
	return class_on(p, class, v->dist.on);
}

bool class_runs(const struct program *p, int class, const struct node *n)
{
	if (n->op != OP_move)
		return class_on(p, class, n->on);
	return class_holds(p, class, n->in[0]) ||
	       class_holds(p, class, n->out[0]);
}

/* ---- pieces ---- */

enum { BUCKETS = 1024 };

struct localizer {
	struct program *p;
	int *bucket, *next; /* of extents, by hash; 0 ends a chain */
	int room;
};

static bool extent_eq(const struct extent *a, const struct extent *b)
{
	if (a->n != b->n || a->on != b->on || a->naxes != b->naxes)
		return false;
	for (int i = 0; i < a->naxes; i++)
		if (a->axes[i] != b->axes[i])
			return false;
	return true;
}

static unsigned extent_hash(const struct extent *e)
{
	uint64_t h = hash_bytes(e->on->id, &e->n, sizeof e->n);

	h = hash_bytes(h, e->axes, sizeof e->axes[0] * e->naxes);
	return h % BUCKETS;
}

static void make_room(struct localizer *l)
{
	int *next = NEW_N(l->p->arena, int, 2 * l->room + 64);

	for (int i = 0; i < l->room; i++)
		next[i] = l->next[i];
	l->next = next;
	l->room = 2 * l->room + 64;
}

/* The program's one copy of E. */
static const struct extent *extent_intern(struct localizer *l,
					  const struct extent *e)
{
	struct program *p = l->p;
	unsigned h = extent_hash(e);
	struct extent *copy;

	for (int i = l->bucket[h]; i != 0; i = l->next[i - 1])
		if (extent_eq(p->extents.at[i - 1], e))
			return p->extents.at[i - 1];
	copy = NEW(p->arena, struct extent);
	*copy = *e;
	copy->id = p->extents.n;
	PUSH(p->arena, p->extents, copy);
	if (p->extents.n > l->room)
		make_room(l);
	l->next[copy->id] = l->bucket[h];
	l->bucket[h] = p->extents.n;
	return copy;
}

static int64_t ceil_div(int64_t n, int p)
{
	return n / p + (n % p != 0);
}

/* Device 0 of every split has the largest part, the last one the smallest. */
static void localize_axis(struct localizer *l, const struct value *v, int axis)
{
	struct local *own = &l->p->local[v->id];
	const struct placement *on = v->dist.on;
	int64_t n = v->type.shape.d[axis], most = n, least = n;
	struct extent e = {.n = n, .on = on};

	for (int i = 0; i < on->naxes; i++) {
		int a = v->dist.order[i];
		Sbp t = v->dist.t[a];

		if (t.kind != SBP_S || t.axis != axis || on->extent[a] == 1)
			continue;
		e.axes[e.naxes++] = a;
		most = ceil_div(most, on->extent[a]);
		least = least / on->extent[a];
	}
	own->max.d[axis] = most;
	if (e.naxes == 0)
		return;
	own->first[axis] = extent_intern(l, &e);
	if (most != least)
		own->extent[axis] = own->first[axis];
}

static void localize_value(struct localizer *l, const struct value *v)
{
	struct local *own = &l->p->local[v->id];

	own->max.rank = v->type.shape.rank;
	for (int i = 0; i < own->max.rank; i++)
		localize_axis(l, v, i);
	own->bytes = shape_count(own->max) * dtype_size(v->type.dtype);
}

/* ---- old values of states ---- */

/*
 * An update overwrites its state at the end of the step. What must still be
 * the old value then is copied first: an output that is the state itself, and
 * a state that becomes the new value of another one.
 */
static struct value *old_value(struct graph *g, struct value *v, Span span)
{
	struct node *n = node_make(g, OP_to, span, 1, &v, 1, &v->type);

	n->on = v->dist.on;
	n->in_dist = NEW(g->arena, Dist);
	n->in_dist[0] = v->dist;
	n->out[0]->dist = v->dist;
	n->out[0]->span = span;
	return n->out[0];
}

static void save_old_values(struct graph *g)
{
	bool *updated = NEW_N(g->arena, bool, g->values.n);
	int n = g->values.n;

	for (int i = 0; i < g->updates.n; i++)
		updated[g->updates.at[i].state->id] = true;
	for (int i = 0; i < g->outputs.n; i++) {
		struct output *o = &g->outputs.at[i];

		if (o->v->id < n && updated[o->v->id])
			o->v = old_value(g, o->v, o->span);
	}
	for (int i = 0; i < g->updates.n; i++) {
		struct update *u = &g->updates.at[i];

		if (u->v->id < n && updated[u->v->id] && u->v != u->state)
			u->v = old_value(g, u->v, u->span);
	}
}

void pass_localize(struct program *p)
{
	struct localizer l = {.p = p};

	save_old_values(p->g);
	fill_classes(p);
	l.bucket = NEW_N(p->arena, int, BUCKETS);
	p->local = NEW_N(p->arena, struct local, p->g->values.n);
	for (int i = 0; i < p->g->values.n; i++)
		if (p->g->values.at[i]->dist.on != NULL)
			localize_value(&l, p->g->values.at[i]);
}
