/*
 * proof_test.c: communication that is damaged after the passes is refused: a
 * move that is missing, extra, out of order, or on a wrong buffer, in the list
 * of one rank class or of all.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "passes/passes.h"

static int passed, failed;

static void check(bool ok, const char *what, const char *why)
{
	if (ok)
		passed++;
	else
		printf("proof_test: %s: %s\n", what, why ? why : "no refusal");
	failed += !ok;
}

/* ---- models ---- */

/* Ranks 0 and 1 are `left`, 1 and 2 `right`: three classes. */
struct model {
	struct program p;
	struct graph *g;
	struct placement *left, *right;
	Type t;
};

static struct placement *add_pair(struct model *m, const char *name,
				  const int *rank)
{
	return graph_placement(m->g, (struct placement){
					     .name = name_of(name),
					     .naxes = 1,
					     .extent = {2},
					     .nranks = 2,
					     .rank = rank});
}

static struct model *new_model(void)
{
	static const int ranks[2][2] = {{0, 1}, {1, 2}};
	struct arena *a = arena_new();
	struct model *m = NEW(a, struct model);

	m->g = graph_new(a);
	m->g->name = name_of("m");
	m->g->world = 3;
	m->left = add_pair(m, "left", ranks[0]);
	m->right = add_pair(m, "right", ranks[1]);
	m->g->on = m->left;
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

static struct value *add_input(struct model *m, const struct placement *on,
			       Sbp t)
{
	struct node *n = node_make(m->g, OP_input, (Span){0, 0}, 0, NULL, 1,
				   &m->t);

	n->on = on;
	n->out[0]->dist = dist_on(on, t);
	n->out[0]->name = name_of("x");
	return n->out[0];
}

/* exp of X as it lies on ON by T. */
static struct value *add_exp(struct model *m, struct value *x,
			     const struct placement *on, Sbp t)
{
	struct node *n = node_make(m->g, OP_exp, (Span){0, 0}, 1, &x, 1,
				   &m->t);

	n->on = on;
	n->in_dist = NEW(m->g->arena, Dist);
	n->in_dist[0] = dist_on(on, t);
	n->out[0]->dist = dist_on(on, t);
	return n->out[0];
}

static void finish_with(struct model *m, struct value *v, bool views)
{
	PUSH(m->g->arena, m->g->outputs, (struct output){"y", v, {0, 0}});
	pass_boxing(&m->p);
	pass_localize(&m->p);
	if (views)
		pass_views(&m->p);
	pass_schedule(&m->p);
	pass_memory(&m->p);
}

static void finish(struct model *m, struct value *v)
{
	finish_with(m, v, false);
}

/* Four moves: two of the left pair, one across, one of the right pair. */
static struct model *four_moves(void)
{
	struct model *m = new_model();
	struct value *x = add_input(m, m->left, sbp_s(0));

	x = add_exp(m, x, m->left, sbp_b());
	x = add_exp(m, x, m->left, sbp_s(1));
	x = add_exp(m, x, m->left, sbp_b());
	x = add_exp(m, x, m->right, sbp_s(0));
	x = add_exp(m, x, m->right, sbp_b());
	finish(m, x);
	return m;
}

/* ---- damage ---- */

/* Class 0 is rank 0, class 1 rank 1 of both pairs, class 2 rank 2. */
typedef void damage(struct model *m, struct comm_lists *l);

static void remove_at(struct comm_lists *l, int class, int i)
{
	struct comm *at = l->of[class].at;

	memmove(&at[i], &at[i + 1],
		sizeof *at * (size_t)(--l->of[class].n - i));
}

static void swap(struct comm_lists *l, int class, int i)
{
	struct comm *at = l->of[class].at, c = at[i];

	at[i] = at[i + 1];
	at[i + 1] = c;
}

static void nothing(struct model *m, struct comm_lists *l)
{
	(void)m, (void)l;
}

static void swap_one(struct model *m, struct comm_lists *l)
{
	(void)m;
	swap(l, 1, 0);
}

static void swap_all(struct model *m, struct comm_lists *l)
{
	(void)m;
	swap(l, 0, 0);
	swap(l, 1, 0);
}

static void miss_one(struct model *m, struct comm_lists *l)
{
	(void)m;
	remove_at(l, 1, 1);
}

static void miss_last(struct model *m, struct comm_lists *l)
{
	(void)m;
	remove_at(l, 2, l->of[2].n - 1);
}

static void miss_all(struct model *m, struct comm_lists *l)
{
	(void)m;
	remove_at(l, 0, 0);
	remove_at(l, 1, 0);
}

static void add_twice(struct model *m, struct comm_lists *l)
{
	struct comm c = l->of[1].at[l->of[1].n - 1];

	PUSH(m->p.arena, l->of[1], c);
}

static void add_twice_each(struct model *m, struct comm_lists *l)
{
	for (int i = 0; i < 3; i++) {
		struct comm c = l->of[i].at[l->of[i].n - 1];

		PUSH(m->p.arena, l->of[i], c);
	}
}

static void add_stranger(struct model *m, struct comm_lists *l)
{
	struct comm c = l->of[0].at[0];

	PUSH(m->p.arena, l->of[2], c);
}

static void add_unknown(struct model *m, struct comm_lists *l)
{
	struct comm c = l->of[0].at[0];

	c.id = 99;
	PUSH(m->p.arena, l->of[0], c);
}

static void other_source(struct model *m, struct comm_lists *l)
{
	(void)m;
	l->of[0].at[1].from_at += 64;
}

static void other_target(struct model *m, struct comm_lists *l)
{
	(void)m;
	l->of[2].at[1].to_at += 64;
}

static void no_target(struct model *m, struct comm_lists *l)
{
	(void)m;
	l->of[1].at[0].to_at = -1;
}

static void onto_source(struct model *m, struct comm_lists *l)
{
	struct comm *c = &l->of[0].at[0];

	c->to_at = c->from_at;
	m->p.local[c->n->out[0]->id].at[0] = c->to_at;
}

static void mixed_class(struct model *m, struct comm_lists *l)
{
	(void)l;
	m->p.class_of[2] = 0;
}

static void refuse(damage *harm, const char *want)
{
	struct model *m = four_moves();
	struct comm_lists *l = comm_lists_of(m->p.arena, &m->p);
	const struct node *at = NULL;
	const char *why;

	check(l->of[0].n > 2 && l->of[1].n > 3 && l->of[2].n > 1, "lists",
	      "too short");
	harm(m, l);
	why = comm_why_not(&m->p, l, &at);
	check(want ? why && strstr(why, want) : !why,
	      want ? want : "nothing is wrong", why);
	free_model(m);
}

static void test_damage(void)
{
	refuse(nothing, NULL);
	refuse(swap_one, "deadlock: rank");
	refuse(swap_all, "swapped communication: rank 0");
	refuse(miss_one, "missing communication: rank 1 lacks it");
	refuse(miss_last, "missing communication: rank 2 lacks it");
	refuse(miss_all, "missing communication: no rank has it");
	refuse(add_twice, "extra communication: rank 1 has it twice");
	refuse(add_twice_each, "extra communication: rank 0 has it twice");
	refuse(add_stranger, "extra communication: rank 2 has it");
	refuse(add_unknown, "a move that the plan does not have");
	refuse(other_source, "wrong buffer: rank 0 sends from");
	refuse(other_target, "wrong buffer: rank 2 receives at");
	refuse(no_target, "wrong buffer: rank 1 receives at -1");
	refuse(onto_source, "writes where peers read");
	refuse(mixed_class, "ranks of one class are on other placements");
}

/* The second move of x comes after the first copy of it was used. */
static void test_overwritten(void)
{
	struct model *m = new_model();
	struct value *x = add_input(m, m->left, sbp_s(0));
	struct value *y = add_exp(m, x, m->left, sbp_b());
	struct value *z = add_exp(m, x, m->left, sbp_s(1));
	const struct node *at = NULL;
	const char *why;

	PUSH(m->g->arena, m->g->outputs, (struct output){"y", y, {0, 0}});
	finish(m, z);
	check(!proof_why_not(&m->p, &at), "the source stays", "refused");
	m->p.local[y->id].at[1] = m->p.local[x->id].at[1];
	why = proof_why_not(&m->p, &at);
	check(why && strstr(why, "rank 1 sends what has been overwritten"),
	      "overwritten", why);
	free_model(m);
}

/* What is written before the slice is read lies in the slice's source. */
static void test_overwritten_slice(void)
{
	struct model *m = new_model();
	struct value *x = add_input(m, m->left, sbp_b());
	struct value *y = add_exp(m, x, m->left, sbp_b());
	struct value *z = add_exp(m, x, m->left, sbp_s(1));
	const struct node *at = NULL;
	const char *why;

	PUSH(m->g->arena, m->g->outputs, (struct output){"y", y, {0, 0}});
	finish_with(m, z, true);
	check(m->p.local[z->def->in[0]->id].slice_of == x, "no slice", "");
	check(!proof_why_not(&m->p, &at), "the source stays", "refused");
	m->p.local[y->id].at[1] = m->p.local[x->id].at[1];
	why = proof_why_not(&m->p, &at);
	check(why && strstr(why, "rank 1 reads a slice of what has been "
				 "overwritten"),
	      "an overwritten slice", why);
	free_model(m);
}

/* Puts the target of the first move AWAY from its source, everywhere. */
static const char *put_target(struct model *m, int64_t away)
{
	const struct node *n = NULL;
	const char *why;

	for (int i = m->g->nodes.n - 1; i >= 0; i--)
		if (m->g->nodes.at[i]->op == OP_move)
			n = m->g->nodes.at[i];
	for (int c = 0; n && c < m->p.nclasses; c++) {
		int64_t from = m->p.local[n->in[0]->id].at[c];

		if (from >= 0)
			m->p.local[n->out[0]->id].at[c] = from + away;
	}
	why = n ? proof_why_not(&m->p, &n) : "no move";
	free_model(m);
	return why;
}

/* A value of FROM on N ranks that is moved to TO, and AGAIN to S(1). */
static struct model *moved(int n, Sbp from, Sbp to, bool again)
{
	static const int ranks[] = {0, 1, 2};
	struct model *m = new_model();
	const struct placement *on = graph_placement(
		m->g, (struct placement){.name = name_of("some"),
					 .naxes = 1,
					 .extent = {n},
					 .nranks = n,
					 .rank = ranks});
	struct value *x = add_exp(m, add_input(m, on, from), on, from);
	struct value *y = add_exp(m, x, on, to);
	const struct node *at;

	PUSH(m->g->arena, m->g->outputs, (struct output){"y", y, {0, 0}});
	finish(m, again ? add_exp(m, x, on, sbp_s(1)) : y);
	check(!proof_why_not(&m->p, &at), "as it was placed", "refused");
	return m;
}

/* WANT: what the refusal says, NULL for none. */
static void check_target(struct model *m, int64_t away, const char *want,
			 const char *what)
{
	const char *why = put_target(m, away);

	check(want ? why && strstr(why, want) : !why, what, why);
}

/* Only an all-reduce of two parts may be in place, on the dot, and if its
 * source is of no further use. */
static void test_in_place(void)
{
	static const char over[] = "writes where peers read";
	Sbp p = sbp_p(RED_SUM), b = sbp_b(), s = sbp_s(0);

	check_target(moved(2, p, b, false), 0, NULL, "in place");
	check_target(moved(2, p, b, false), 64, over, "beside");
	check_target(moved(2, p, b, true), 0,
		     "sends what has been overwritten", "of further use");
	check_target(moved(2, p, s, false), 0, over, "a reduce-scatter");
	check_target(moved(2, s, b, false), 0, over, "an all-gather");
	check_target(moved(3, p, b, false), 0, over, "three parts");
}

/* A compiler whose own communication does not match ends as a bug. */
static void test_bug(void)
{
	struct model *m = four_moves();
	struct comm_lists *l = comm_lists_of(m->p.arena, &m->p);
	int status = 0;
	pid_t pid;

	proof_demand(&m->p, l);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		swap_one(m, l);
		if (freopen("/dev/null", "w", stderr))
			proof_demand(&m->p, l);
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid &&
		      WIFEXITED(status) && WEXITSTATUS(status) == 3,
	      "exit code of a bug", text_brief("status %d", status));
	free_model(m);
}

/* ---- patterns ---- */

static Sbp term(int i)
{
	switch (i) {
	case 0:
		return sbp_b();
	case 1:
	case 2:
		return sbp_s(i - 1);
	case 3:
		return sbp_p(RED_SUM);
	default:
		return sbp_p(RED_MAX);
	}
}

static void check_pairs(const struct placement *a, const struct placement *b)
{
	static const Shape shapes[] = {{2, {5, 7}}, {2, {6, 4}}, {2, {0, 3}}};

	for (int i = 0; i < 625 * 3; i++) {
		Type t = {DT_F32, shapes[i / 625]};
		Dist from = dist_on(a, sbp_b()), to = dist_on(b, sbp_b());
		const char *why;

		from.t[0] = term(i / 125 % 5);
		from.t[1] = term(i / 25 % 5);
		to.t[0] = term(i / 5 % 5);
		to.t[1] = term(i % 5);
		from.order[0] = (uint8_t)(i % 2);
		from.order[1] = (uint8_t)(1 - i % 2);
		why = reads_why_not(t, from, to);
		check(!why, text_brief("%s -> %s", dist_text(from),
				       dist_text(to)),
		      why);
	}
}

static void test_patterns(void)
{
	static const int ranks[] = {0, 1, 2, 3, 4, 5, 6, 7},
			 mixed[] = {3, 9, 0, 2};
	struct placement a = {.name = "a", .naxes = 2, .extent = {2, 3},
			      .nranks = 6, .rank = ranks};
	struct placement b = {.name = "b", .naxes = 2, .extent = {4, 2},
			      .nranks = 8, .rank = ranks};
	struct placement c = {.name = "c", .naxes = 2, .extent = {2, 2},
			      .nranks = 4, .rank = mixed};

	check_pairs(&a, &a);
	check_pairs(&b, &b);
	check_pairs(&a, &c);
	check_pairs(&c, &b);
	plan_reset();
}

/* ---- time ---- */

static double seconds_of(int moves)
{
	struct model *m = new_model();
	struct value *x = add_input(m, m->left, sbp_s(0));
	const struct node *at = NULL;
	clock_t start;
	const char *why;

	for (int i = 0; i < moves; i++)
		x = add_exp(m, x, i % 3 ? m->left : m->right,
			    i % 2 ? sbp_s(0) : sbp_b());
	finish(m, x);
	start = clock();
	why = proof_why_not(&m->p, &at);
	check(!why, "a long plan", why);
	start = clock() - start;
	free_model(m);
	return (double)start / CLOCKS_PER_SEC;
}

/* For the reader: 16 times the moves should take some 16 times as long. */
static void test_long_plans(void)
{
	double few = seconds_of(2000), many = seconds_of(32000);

	printf("2000 moves: %g s, 32000 moves: %g s\n", few, many);
}

int main(void)
{
	test_damage();
	test_overwritten();
	test_overwritten_slice();
	test_in_place();
	test_bug();
	test_patterns();
	test_long_plans();
	printf("proof_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
