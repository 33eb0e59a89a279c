/*
 * boxing_test.c: where the boxing pass puts moves, on graphs made by hand.
 */
#include <stdio.h>
#include <string.h>

#include "passes/passes.h"

static int passed, failed;

static void check(bool ok, const char *what)
{
	if (ok)
		passed++;
	else
		printf("boxing_test: %s\n", what);
	failed += !ok;
}

struct model {
	struct program p;
	struct graph *g;
	struct placement *on;
	Type t;
};

static struct model *new_model(void)
{
	static const int ranks[] = {0, 1};
	struct arena *a = arena_new();
	struct model *m = NEW(a, struct model);

	m->g = graph_new(a);
	m->g->name = name_of("m");
	m->on = graph_placement(m->g, (struct placement){
		.name = name_of("pair"), .naxes = 1, .extent = {2},
		.nranks = 2, .rank = ranks});
	m->g->on = m->on;
	m->p.arena = a;
	m->p.g = m->g;
	m->t = (Type){DT_F32, {2, {4, 6}}};
	return m;
}

static void free_model(struct model *m)
{
	plan_reset();
	arena_free(m->p.arena);
}

static Dist dist(const struct model *m, Sbp t)
{
	return dist_on(m->on, t);
}

/* A node whose inputs and output have these terms. */
static struct value *add(struct model *m, enum op op, const char *name,
			 int nin, struct value **in, Sbp want, Sbp out)
{
	struct node *n = node_make(m->g, op, (Span){0, 0}, nin, in, 1, &m->t);

	n->on = m->on;
	n->in_dist = NEW_N(m->g->arena, Dist, nin + 1);
	for (int i = 0; i < nin; i++)
		n->in_dist[i] = dist(m, want);
	n->out[0]->dist = dist(m, out);
	n->out[0]->name = name ? name_of(name) : NULL;
	return n->out[0];
}

static struct value *add_one(struct model *m, enum op op, const char *name,
			     struct value *in, Sbp want, Sbp out)
{
	return add(m, op, name, 1, &in, want, out);
}

static struct value *add_input(struct model *m, const char *name, Sbp t)
{
	return add(m, OP_input, name, 0, NULL, t, t);
}

static void add_output(struct model *m, struct value *v)
{
	PUSH(m->g->arena, m->g->outputs, (struct output){v->name, v, {0, 0}});
}

static int count(const struct model *m, enum op op)
{
	int n = 0;

	for (int i = 0; i < m->g->nodes.n; i++)
		n += m->g->nodes.at[i]->op == op;
	return n;
}

static void run(struct model *m)
{
	pass_boxing(&m->p);
	graph_verify(m->g);
	for (int i = 0; i < m->g->nodes.n; i++) {
		const struct node *n = m->g->nodes.at[i];

		for (int k = 0; k < n->nin; k++)
			check(dist_eq(n->in[k]->dist, n->in_dist[k]),
			      "an input does not lie as it is wanted");
	}
}

static void test_shared(void)
{
	struct model *m = new_model();
	struct value *x = add_input(m, "x", sbp_s(0));

	add_output(m, add_one(m, OP_exp, "a", x, sbp_b(), sbp_b()));
	add_output(m, add_one(m, OP_abs, "b", x, sbp_b(), sbp_b()));
	add_output(m, add_one(m, OP_neg, "c", x, sbp_s(1), sbp_s(1)));
	add_output(m, add_one(m, OP_neg, "d", x, sbp_s(0), sbp_s(0)));
	run(m);
	check(m->p.boxings.n == 2, "one conversion for each distribution");
	check(count(m, OP_move) == 2, "one move for each");
	check(!strcmp(m->p.boxings.at[0]->algorithm, "all-gather(0)"),
	      "all-gather");
	check(!strcmp(m->p.boxings.at[1]->algorithm, "all-to-all(0)"),
	      "all-to-all");
	check(m->p.recv_busiest == 48 + 24 && m->p.recv_total == 96 + 48,
	      "bytes of all");
	free_model(m);
}

static void test_request(void)
{
	struct model *m = new_model();
	struct value *x = add_input(m, "x", sbp_b());
	struct value *t = add_one(m, OP_exp, NULL, x, sbp_b(), sbp_b());
	struct value *h = add_one(m, OP_to, "h", t, sbp_b(), sbp_s(0));
	struct value *k = add_one(m, OP_to, "k", h, sbp_s(0), sbp_s(0));

	k->keep = true;
	h->keep = true;
	add_output(m, h);
	run(m);
	check(count(m, OP_move) == 1, "a request is one move");
	check(count(m, OP_to) == 1, "a second kept name keeps its node");
	check(m->g->outputs.at[0].v->name == name_of("h") &&
		      m->g->outputs.at[0].v->keep &&
		      m->g->outputs.at[0].v->def->op == OP_move,
	      "what is asked for takes the name");
	check(!strcmp(m->p.boxings.at[0]->value, "h"), "a name for people");
	free_model(m);
}

static void test_update(void)
{
	struct model *m = new_model();
	struct value *s = add(m, OP_state, "s", 0, NULL, sbp_b(), sbp_s(0));
	struct value *v = add_one(m, OP_exp, "v", s, sbp_s(0), sbp_s(0));
	struct value *w = add_one(m, OP_to, NULL, v, sbp_s(0), sbp_b());
	struct update u = {s, w, {0, 0}};

	PUSH(m->g->arena, m->g->updates, u);
	run(m);
	check(m->p.boxings.n == 2, "there and back");
	check(dist_eq(m->g->updates.at[0].v->dist, s->dist),
	      "a state keeps its distribution");
	check(!strcmp(m->p.boxings.at[0]->phase, "update"), "phase");
	free_model(m);
}

static void test_hash(void)
{
	uint64_t hash[3];

	for (int i = 0; i < 3; i++) {
		struct model *m = new_model();
		struct value *x = add_input(m, "x", sbp_s(0));

		add_output(m, add_one(m, OP_exp, i == 1 ? "y" : "z", x,
				      i == 2 ? sbp_s(1) : sbp_b(),
				      i == 2 ? sbp_s(1) : sbp_b()));
		run(m);
		hash[i] = m->p.plan_hash;
		free_model(m);
	}
	check(hash[0] == hash[1], "equal plans have equal hashes");
	check(hash[0] != hash[2], "other plans have other hashes");
}

int main(void)
{
	test_shared();
	test_request();
	test_update();
	test_hash();
	printf("boxing_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
