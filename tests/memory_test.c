/*
 * memory_test.c: random programs on two placements. No two buffers of a rank
 * class that are needed at the same time may overlap; views and slices that
 * are read in place may, with what they are of, and what an elementwise node
 * writes in the place of its input. And find_turns against the plain
 * definition.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"

static unsigned seed = 1;

static int draw(int n)
{
	seed = seed * 1103515245 + 12345;
	return (int)(seed >> 8) % n;
}

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "memory_test: seed %u: %s\n", seed, what);
	exit(1);
}

/* ---- programs ---- */

static struct value *add_node(struct graph *g, enum op op, int nin,
			      struct value **in, Type t, Dist d)
{
	struct node *n = node_make(g, op, (Span){0, 0}, nin, in, 1, &t);

	n->on = d.on;
	n->out[0]->dist = d;
	n->in_dist = NEW_N(g->arena, Dist, nin + 1);
	for (int i = 0; i < nin; i++)
		n->in_dist[i] = in[i]->dist;
	return n->out[0];
}

static Type random_type(void)
{
	Type t = {DT_F32, {2, {1 + draw(9), 1 + draw(9)}}};

	return t;
}

static Dist random_dist(const struct placement *on)
{
	switch (draw(4)) {
	case 0:
		return dist_on(on, sbp_p(RED_SUM));
	case 1:
		return dist_on(on, sbp_s(draw(2)));
	default:
		return dist_on(on, sbp_b());
	}
}

static struct placement *add_placement(struct graph *g, const char *name,
				       int first, int n)
{
	struct placement p = {.name = name_of(name), .naxes = 1};
	int *rank = NEW_N(g->arena, int, n);

	for (int i = 0; i < n; i++)
		rank[i] = first + i;
	p.extent[0] = p.nranks = n;
	p.rank = rank;
	return graph_placement(g, p);
}

static struct value *random_node(struct graph *g,
				 struct placement *const *on)
{
	struct value *v = g->values.at[draw(g->values.n)];
	Dist d = random_dist(on[draw(2)]);

	switch (draw(6)) {
	case 0:
		return add_node(g, OP_fill, 0, NULL, random_type(), d);
	case 1:
		return add_node(g, OP_move, 1, &v, v->type, d);
	case 2:
		return add_node(g, OP_stop_gradient, 1, &v, v->type, v->dist);
	default:
		return add_node(g, OP_neg, 1, &v, v->type, v->dist);
	}
}

static void random_program(struct graph *g, int nodes)
{
	struct placement *on[2];

	on[0] = add_placement(g, "left", 0, 2);
	on[1] = add_placement(g, "right", 1, 2);
	g->world = 3;
	for (int i = 0; i < 4; i++)
		add_node(g, i % 2 ? OP_state : OP_input, 0, NULL,
			 random_type(), random_dist(on[i / 2]));
	for (int i = 0; i < nodes; i++)
		random_node(g, on)->keep = draw(8) == 0;
	for (int i = 0; i < 3; i++)
		PUSH(g->arena, g->outputs,
		     (struct output){name_of("y"),
				     g->values.at[draw(g->values.n)],
				     {0, 0}});
	for (int i = 1; i < 4; i += 2) {
		struct value *state = g->values.at[i], *v;

		v = add_node(g, OP_neg, 1, &state, state->type, state->dist);
		if (draw(2))
			v = add_node(g, OP_neg, 1, &v, v->type, v->dist);
		PUSH(g->arena, g->updates, (struct update){state, v, {0, 0}});
	}
}

/* ---- what must hold ---- */

struct life {
	int from, to;
};

static bool is_leaf(const struct node *n)
{
	return op_info(n->op)->kernel == K_NONE;
}

/* What a slice is read in holds as long as the slice. */
static void keep_whole(const struct program *p, struct life *l)
{
	for (int i = p->g->nodes.n - 1; i >= 0; i--) {
		const struct value *v = p->g->nodes.at[i]->out[0];
		const struct value *whole = p->local[v->id].slice_of;

		if (whole && l[whole->id].to < l[v->id].to)
			l[whole->id].to = l[v->id].to;
	}
}

/* When each value's bytes hold it, by value id; states change at the end. */
static struct life *lives(const struct program *p, struct arena *a)
{
	const struct graph *g = p->g;
	struct life *l = NEW_N(a, struct life, g->values.n);
	int end = g->nodes.n;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		const struct value *v = n->out[0];

		l[v->id] = (struct life){i, i};
		if (is_leaf(n))
			l[v->id] = (struct life){-1, end};
		if (v->keep)
			l[v->id].to = end;
		for (int k = 0; k < n->nin; k++)
			if (l[n->in[k]->id].to < i)
				l[n->in[k]->id].to = i;
	}
	for (int i = 0; i < g->outputs.n; i++)
		l[g->outputs.at[i].v->id].to = end;
	for (int i = 0; i < g->updates.n; i++)
		l[g->updates.at[i].v->id].to = end;
	keep_whole(p, l);
	return l;
}

static const struct value *root_of(const struct program *p,
				   const struct value *v)
{
	return p->local[v->id].same_as ? p->local[v->id].same_as : v;
}

/* The last reader of the bytes of V. */
static int last_read(const struct program *p, const struct value *v)
{
	const struct graph *g = p->g;
	int last = -1;

	for (int i = 0; i < g->nodes.n; i++)
		for (int k = 0; k < g->nodes.at[i]->nin; k++)
			if (root_of(p, g->nodes.at[i]->in[k]) == v)
				last = i;
	return last;
}

/* W, or V, is written in the place of the other when that is last read. */
static bool takes_over(const struct program *p, const struct life *l,
		       const struct value *v, const struct value *w)
{
	if (l[v->id].from > l[w->id].from)
		return takes_over(p, l, w, v);
	v = root_of(p, v);
	w = root_of(p, w);
	while (w != NULL && p->local[w->id].over != v)
		w = p->local[w->id].over;
	return w != NULL && last_read(p, v) <= l[w->id].from;
}

static void check_pair(const struct program *p, const struct life *l, int c,
		       const struct value *v, const struct value *w)
{
	const struct local *x = &p->local[v->id], *y = &p->local[w->id];
	bool together = l[v->id].from <= l[w->id].to &&
			l[w->id].from <= l[v->id].to;
	bool overlap = x->at[c] < y->at[c] + y->bytes &&
		       y->at[c] < x->at[c] + x->bytes;

	check(!together || !overlap || root_of(p, v) == root_of(p, w) ||
		      takes_over(p, l, v, w),
	      "two values lie in one place");
}

static void check_class(const struct program *p, const struct life *l, int c)
{
	const struct graph *g = p->g;

	for (int i = 0; i < g->values.n; i++) {
		const struct value *v = g->values.at[i];
		const struct local *own = &p->local[i];

		if (!class_holds(p, c, v)) {
			check(own->at[c] == -1, "a class has what it lacks");
			continue;
		}
		check(own->at[c] >= 0 && own->at[c] % 64 == 0 &&
			      own->at[c] + own->bytes <= p->arena_bytes[c],
		      "a value lies outside of the arena");
		for (int k = 0; k < i; k++)
			if (class_holds(p, c, g->values.at[k]))
				check_pair(p, l, c, v, g->values.at[k]);
	}
}

/* What is read at the end of the step is no view of what an update has
 * overwritten. */
static void check_states(const struct program *p)
{
	const struct graph *g = p->g;

	for (int i = 0; i < g->updates.n; i++) {
		const struct value *s = g->updates.at[i].state;

		for (int k = 0; k < g->outputs.n; k++)
			check(root_of(p, g->outputs.at[k].v) != s,
			      "an output is overwritten");
		for (int k = 0; k < g->values.n; k++)
			check(!g->values.at[k]->keep ||
				      root_of(p, g->values.at[k]) != s,
			      "a kept value is overwritten");
	}
}

/* All-reduces of two parts whose source is where the result is. */
static int count_in_place(const struct program *p)
{
	int count = 0;

	for (int i = 0; i < p->g->nodes.n; i++) {
		const struct node *n = p->g->nodes.at[i];
		const struct value *over = p->local[n->out[0]->id].over;

		if (n->op != OP_move || !over)
			continue;
		if (over != root_of(p, n->in[0]))
			continue;
		check(n->in[0]->dist.t[0].kind == SBP_P &&
			      n->out[0]->dist.t[0].kind == SBP_B,
		      "a move in place is no all-reduce");
		count++;
	}
	return count;
}

static int check_program(int nodes)
{
	struct arena *a = arena_new();
	struct graph *g = graph_new(a);
	struct program p = {.arena = a, .g = g};
	struct life *l;
	int count;

	random_program(g, nodes);
	pass_localize(&p);
	pass_views(&p);
	pass_schedule(&p);
	pass_memory(&p);
	check(p.nclasses == 3, "each rank is a class");
	l = lives(&p, a);
	for (int c = 0; c < p.nclasses; c++)
		check_class(&p, l, c);
	check_states(&p);
	count = count_in_place(&p);
	arena_free(a);
	return count;
}

/* ---- turns ---- */

static bool call_eq(const struct call *a, const struct call *b)
{
	return a->function == b->function;
}

static void check_turns(int n, int kinds, int period)
{
	struct arena *a = arena_new();
	struct call *calls = NEW_N(a, struct call, n);
	struct turns turns = {0};
	int at = 0;

	for (int i = 0; i < n; i++) {
		int kind = draw(20) == 0 || i < period ? draw(kinds) : -1;

		calls[i].function = name_of(arena_text(a, "f%d", kind));
		if (kind < 0)
			calls[i].function = calls[i - period].function;
	}
	find_turns(a, calls, n, &turns);
	for (int i = 0; i < turns.at.n; i++) {
		struct turn t = turns.at.at[i];

		check(t.at == at && t.count >= 1 && t.period >= 1,
		      "turns leave a hole");
		for (int k = t.period; k < t.period * t.count; k++)
			check(call_eq(&calls[at + k],
				      &calls[at + k - t.period]),
			      "unequal calls in a loop");
		at += t.period * t.count;
	}
	check(at == n, "turns end early");
	arena_free(a);
}

/* A thousand equal layers are one loop. */
static void check_layers(void)
{
	struct arena *a = arena_new();
	struct call *calls = NEW_N(a, struct call, 7000);
	struct turns turns = {0};

	for (int i = 0; i < 7000; i++)
		calls[i].function = name_of(arena_text(a, "f%d", i % 7 / 2));
	find_turns(a, calls, 7000, &turns);
	check(turns.at.n == 1 && turns.at.at[0].period == 7 &&
		      turns.at.at[0].count == 1000,
	      "layers are not one loop");
	arena_free(a);
}

int main(void)
{
	int in_place = 0;

	for (int i = 0; i < 300; i++)
		in_place += check_program(4 + draw(60));
	check(in_place > 0, "no all-reduce is in place");
	for (int i = 0; i < 200; i++)
		check_turns(70 + draw(900), 1 + draw(6), 1 + draw(40));
	check_layers();
	return 0;
}
