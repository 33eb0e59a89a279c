/*
 * boxing.c: inserts moves wherever a value does not lie as its reader wants
 * it. A value is converted once for each distribution that is wanted of it,
 * just before its first reader. Requests (`to`) become what they convert to.
 */
#include "passes/passes.h"

/* The conversions of one value so far. */
struct copies {
	LIST(struct value *) at;
};

struct state {
	struct program *p;
	struct graph *g;
	LIST(struct copies) copies;	/* by value id */
	struct value **stands_for;	/* what replaces a `to`, by value id */
	bool *updates;			/* by value id: a state's new value */
	int nvalues;			/* before the pass */
};

/* Who asks for a conversion. */
struct asker {
	Span span;
	const struct trail *trail;
	const char *phase;
	struct value *to;	/* the request's result, or NULL */
};

static struct value *resolve(const struct state *s, struct value *v)
{
	while (v->id < s->nvalues && s->stands_for[v->id])
		v = s->stands_for[v->id];
	return v;
}

const char *value_label(const struct value *v)
{
	const struct node *n = v->def;

	if (n->op == OP_kernel)
		n = n->body[n->nbody - 1];
	if (v->name)
		return v->name;
	return n->call ? n->call : op_info(n->op)->name;
}

static const char *shown_name(const struct value *v, const struct asker *who,
			      const char *other)
{
	if (v->name)
		return v->name;
	return who->to && who->to->name ? who->to->name : other;
}

static struct value *add_move(struct state *s, struct boxing *b,
			      struct value *v, Dist to,
			      const struct asker *who)
{
	struct node *n = node_make(s->g, OP_move, who->span, 1, &v, 1,
				   &v->type);

	n->on = to.on;
	n->trail = who->trail;
	n->boxing = b;
	n->in_dist = NEW(s->g->arena, Dist);
	n->in_dist[0] = v->dist;
	n->out[0]->dist = to;
	n->out[0]->name = v->name;
	n->out[0]->span = v->span;
	return n->out[0];
}

static struct value *add_moves(struct state *s, struct value *v, Dist to,
			       const struct asker *who)
{
	struct boxing *b = NEW(s->p->arena, struct boxing);
	const char *op = op_info(v->def->op)->name;

	*b = (struct boxing){
		.id = s->p->boxings.n,
		.value = shown_name(v, who, op),
		.label = shown_name(v, who, value_label(v)),
		.span = who->span,
		.trail = who->trail,
		.type = v->type,
		.from = v->dist,
		.to = to,
		.phase = who->phase,
	};
	plan_boxing(b);
	PUSH(s->p->arena, s->p->boxings, b);
	for (int i = 0; i < b->nsteps; i++)
		v = add_move(s, b, v, b->step[i], who);
	return v;
}

static struct copies *copies_of(struct state *s, const struct value *v)
{
	while (s->copies.n <= v->id)
		PUSH(s->p->arena, s->copies, (struct copies){{NULL, 0, 0}});
	return &s->copies.at[v->id];
}

/* V as it lies on TO: itself, an earlier conversion or a new one. */
static struct value *convert(struct state *s, struct value *v, Dist to,
			     const struct asker *who)
{
	struct copies *c;
	struct value *w;

	if (dist_eq(v->dist, to))
		return v;
	c = copies_of(s, v);
	for (int i = 0; i < c->at.n; i++)
		if (dist_eq(c->at.at[i]->dist, to))
			return c->at.at[i];
	w = add_moves(s, v, to, who);
	PUSH(s->p->arena, c->at, w);
	return w;
}

/* Whether OLD may be known by the name of NAMED from now on. */
static bool may_rename(const struct value *old, const struct value *named)
{
	if (!named->name || old->name == named->name)
		return true;
	return !named->keep || (!old->name && !old->keep) ||
	       (old->def->op == OP_move && !old->keep);
}

/* A request: what it asks for takes its name. Only a kept name that would be
 * a second one of the same value keeps its node. */
static void replace_request(struct state *s, struct node *n)
{
	struct value *out = n->out[0], *v = resolve(s, n->in[0]), *w;
	struct asker who = {n->span, n->trail, "forward", out};

	if (s->updates[out->id])
		who.phase = "update";
	w = convert(s, v, out->dist, &who);
	if (!may_rename(w, out)) {
		n->in[0] = w;
		n->in_dist[0] = w->dist;
		PUSH(s->g->arena, s->g->nodes, n);
		return;
	}
	if (out->name &&
	    (!w->name || (w->def->op == OP_move && !w->keep))) {
		w->name = out->name;
		w->span = out->span;
	}
	w->keep |= out->keep;
	s->stands_for[out->id] = w;
}

static void box_inputs(struct state *s, struct node *n)
{
	struct asker who = {n->span, n->trail, "forward", NULL};

	for (int i = 0; i < n->nin; i++)
		n->in[i] = convert(s, resolve(s, n->in[i]), n->in_dist[i],
				   &who);
	PUSH(s->g->arena, s->g->nodes, n);
}

static void box_update(struct state *s, struct update *u)
{
	struct asker who = {u->span, NULL, "update", NULL};

	u->v = convert(s, resolve(s, u->v), u->state->dist, &who);
}

void pass_boxing(struct program *p)
{
	struct graph *g = p->g;
	struct node **old = g->nodes.at;
	int nnodes = g->nodes.n;
	struct state s = {.p = p, .g = g, .nvalues = g->values.n};

	s.stands_for = NEW_N(p->arena, struct value *, s.nvalues);
	s.updates = NEW_N(p->arena, bool, s.nvalues);
	for (int i = 0; i < g->updates.n; i++)
		s.updates[g->updates.at[i].v->id] = true;
	g->nodes.at = NULL;
	g->nodes.n = g->nodes.room = 0;
	for (int i = 0; i < nnodes; i++) {
		if (old[i]->op == OP_to)
			replace_request(&s, old[i]);
		else
			box_inputs(&s, old[i]);
	}
	for (int i = 0; i < g->outputs.n; i++)
		g->outputs.at[i].v = resolve(&s, g->outputs.at[i].v);
	for (int i = 0; i < g->updates.n; i++)
		box_update(&s, &g->updates.at[i]);
	graph_unify_placements(g);
	graph_renumber(g);
	plan_totals(p);
	p->plan_hash = plan_hash(p);
}
