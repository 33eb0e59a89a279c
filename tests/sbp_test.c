/*
 * sbp_test.c: inference against brute force. Random small graphs are decided
 * by pass sbp and by trying all candidates of all nodes; the costs must be
 * equal, and what was decided must cost what it claims. On three mesh axes
 * lists are neighbourhoods: the choice must be the best around itself.
 *
 * Longer graphs, whose operators read what is near, are compared with a dynamic
 * program over what is still needed: the rows of values with readers to come,
 * and what has been received of each. Under a limit of memory the best that
 * fits must lie between the bound and what was decided.
 *
 * The cost of a whole choice is counted here by itself: computing, what each
 * reader copies, and what is received once for each value and distribution.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "passes/passes.h"

static uint64_t state;

static int pick(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

/* ---- random graphs ---- */

struct maker_state {
	struct graph *g;
	int near;		/* operators read the last so many values; 0: all */
	bool free;		/* leaves may have no request */
	LIST(struct value *) pool;
};

static Sbp any_term(Type t)
{
	int k = pick(t.shape.rank + 2);

	if (k == 0)
		return sbp_b();
	return k <= t.shape.rank ? sbp_s(k - 1) : sbp_p(RED_SUM);
}

static Dist any_dist(const struct placement *p, Type t, bool partial)
{
	Dist d = dist_on(p, sbp_b());

	for (int k = 0; k < p->naxes; k++)
		do
			d.t[k] = pick(5) ? any_term(t) : sbp_any();
		while (!partial && d.t[k].kind == SBP_P);
	return d;
}

static struct value *leaf(struct maker_state *m)
{
	static const int64_t extent[] = {1, 3, 8, 64, 1000};
	Type t = {DT_F32, {2, {extent[pick(5)], extent[pick(5)]}}};
	enum op op = pick(2) ? OP_input : OP_param;
	struct node *n = node_make(m->g, op, (Span){0, 0}, 0, NULL, 1, &t);

	n->on = m->g->on;
	n->out[0]->name = name_of("leaf");
	if (m->free)
		n->out[0]->dist = dist_on(m->g->on, sbp_any());
	else if (pick(3))
		n->out[0]->dist = any_dist(m->g->on, t, op == OP_input);
	return n->out[0];
}

static struct value *from_pool(struct maker_state *m)
{
	int n = m->near && m->near < m->pool.n ? m->near : m->pool.n;

	return m->pool.at[m->pool.n - 1 - pick(n)];
}

static bool add_node(struct maker_state *m, struct node *n)
{
	n->on = m->g->on;
	if (!node_done(m->g, n))
		return false;
	PUSH(m->g->arena, m->pool, n->out[0]);
	return true;
}

static void add_to(struct maker_state *m)
{
	struct value *x = from_pool(m);
	struct node *n = node_make(m->g, OP_to, (Span){0, 0}, 1, &x, 1,
				   &x->type);

	n->on = m->g->on;
	n->out[0]->dist = any_dist(m->g->on, x->type,
				   x->type.dtype != DT_BOOL);
	PUSH(m->g->arena, m->pool, n->out[0]);
}

static void add_unary(struct maker_state *m)
{
	static const enum op ops[] = {OP_relu, OP_neg, OP_exp, OP_abs};
	struct value *x = from_pool(m);

	add_node(m, node_new(m->g, ops[pick(4)], (Span){0, 0}, 1, &x));
}

static void add_fold(struct maker_state *m)
{
	static const enum op ops[] = {OP_sum, OP_max, OP_min};
	struct value *x = from_pool(m);
	struct node *n = node_new(m->g, ops[pick(3)], (Span){0, 0}, 1, &x);
	int64_t axis = x->type.shape.rank ? pick(x->type.shape.rank) : 0;

	if (!x->type.shape.rank || !x->type.shape.d[axis])
		return;
	node_ints(m->g, n, "axis", &axis, 1);
	node_bool(m->g, n, "keepdim", true);
	add_node(m, n);
}

static void add_binary(struct maker_state *m)
{
	static const enum op ops[] = {OP_add, OP_mul, OP_sub, OP_maximum};
	struct value *in[2] = {from_pool(m), from_pool(m)};
	Shape s;

	if (shape_broadcast(in[0]->type.shape, in[1]->type.shape, &s))
		add_node(m, node_new(m->g, ops[pick(4)], (Span){0, 0}, 2, in));
}

static void add_matmul(struct maker_state *m)
{
	struct value *in[2] = {from_pool(m), NULL};
	Shape a = in[0]->type.shape;

	for (int tries = 0; tries < 8; tries++) {
		in[1] = from_pool(m);
		if (a.rank == 2 && in[1]->type.shape.rank == 2 &&
		    in[1]->type.shape.d[0] == a.d[1]) {
			add_node(m, node_new(m->g, OP_matmul, (Span){0, 0}, 2,
					     in));
			return;
		}
	}
}

static void random_graph(struct maker_state *m, int nodes)
{
	struct value *v;

	for (int i = 0; i < 2; i++) {
		v = leaf(m);
		PUSH(m->g->arena, m->pool, v);
	}
	for (int tries = 0; m->g->nodes.n < nodes && tries < 50; tries++)
		switch (pick(5)) {
		case 0: add_to(m); break;
		case 1: add_unary(m); break;
		case 2: add_fold(m); break;
		case 3: add_binary(m); break;
		default: add_matmul(m);
		}
	for (int i = 0; i < 2; i++) {
		v = m->pool.at[m->pool.n - 1 - pick(2)];
		PUSH(m->g->arena, m->g->outputs,
		     (struct output){name_of("y"), v, {0, 0}});
	}
}

/* ---- brute force ---- */

struct brute {
	const struct decision *d;
	int *row;
	Cost best;
};

static const struct node *node_of(const struct brute *b, int x)
{
	int nnodes = b->d->nvars - b->d->nreaders;

	return x < nnodes ? b->d->g->nodes.at[x] : NULL;
}

static struct value *read_by(const struct brute *b, int x, int slot)
{
	const struct node *n = node_of(b, x);
	int nnodes = b->d->nvars - b->d->nreaders;

	return n ? n->in[slot] : b->d->reader[x - nnodes].v;
}

static int wants(const struct brute *b, int x, int slot)
{
	const struct candidates *c = b->d->list[x];

	return c->in[b->row[x] * c->nin + slot];
}

/* Whether a slot before (X, SLOT) reads V as DIST. */
static bool paid(const struct brute *b, int x, int slot,
		 const struct value *v, int dist)
{
	for (int y = 0; y <= x; y++) {
		if (!b->d->list[y])
			continue;
		for (int i = 0; i < (y == x ? slot : b->d->list[y]->nin); i++)
			if (read_by(b, y, i) == v && wants(b, y, i) == dist)
				return true;
	}
	return false;
}

/* What variable X adds when those before it have their rows. */
static Cost adds(const struct brute *b, int x)
{
	const struct candidates *c = b->d->list[x];
	Cost sum = c->cost[b->row[x]];

	for (int i = 0; i < c->nin; i++) {
		struct value *v = read_by(b, x, i);
		const struct candidates *from = b->d->list[v->def->id];
		int want = wants(b, x, i);
		struct price p = candidates_price(b->d->space, from, v->index,
						  b->row[v->def->id], want);

		sum += price_copy(p, c->reading[i]);
		sum += paid(b, x, i, v, want) ? 0 : p.receive;
	}
	return sum;
}

static bool is_within(const struct brute *b)
{
	return !b->d->limit ||
	       b->d->weigh(b->d->data, b->row) <= b->d->limit;
}

static void try(struct brute *b, int x, Cost sum)
{
	if (sum >= b->best)
		return;
	while (x < b->d->nvars && !b->d->list[x])
		x++;
	if (x == b->d->nvars) {
		if (is_within(b))
			b->best = sum;
		return;
	}
	for (int i = 0; i < b->d->list[x]->n; i++) {
		b->row[x] = i;
		try(b, x + 1, sum + adds(b, x));
	}
}

/* ---- a dynamic program ---- */

/* All choices of the variables so far that matter alike to those to come. */
struct state {
	int *row;
	Cost cost;
};
struct states {
	struct arena *a;
	struct bytemap map;
	LIST(struct state) at;
};

static bool reads_later(const struct brute *b, const struct value *v, int x)
{
	for (int y = x + 1; y < b->d->nvars; y++)
		for (int i = 0; b->d->list[y] && i < b->d->list[y]->nin; i++)
			if (read_by(b, y, i) == v)
				return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* What was received of V up to X, each once. */
static void key_received(const struct brute *b, const struct value *v, int x,
			 struct text *key)
{
	int want[64], n = 0, kept = 0;

	for (int y = 0; y <= x; y++)
		for (int i = 0; b->d->list[y] && i < b->d->list[y]->nin; i++)
			if (read_by(b, y, i) == v && n < 64)
				want[n++] = wants(b, y, i);
	qsort(want, (size_t)n, sizeof *want, by_number);
	for (int i = 0; i < n; i++)
		if (!i || want[i] != want[i - 1])
			want[kept++] = want[i];
	text_add_n(key, (const char *)&kept, sizeof kept);
	text_add_n(key, (const char *)want, sizeof *want * (size_t)kept);
}

static void key_of(const struct brute *b, int x, struct text *key)
{
	key->n = 0;
	text_add_n(key, (const char *)&x, sizeof x);
	for (int i = 0; i < b->d->g->values.n; i++) {
		const struct value *v = b->d->g->values.at[i];
		const struct candidates *c = b->d->list[v->def->id];
		int id = v->def->id;

		if (id > x || !reads_later(b, v, x))
			continue;
		text_add_n(key,
			   (const char *)&c->out[b->row[id] * c->nout +
						 v->index],
			   sizeof *c->out);
		key_received(b, v, x, key);
	}
}

/* Adds b->row up to X to TO, unless a cheaper one is like it. */
static void keep_state(struct brute *b, struct states *to, int x, Cost cost,
		       struct text *key)
{
	size_t size = sizeof(int) * (size_t)(b->d->nvars + 1);
	void **slot;
	int *row;

	key_of(b, x, key);
	slot = bytemap_at(to->a, &to->map, key->at, key->n);
	if (*slot && to->at.at[(intptr_t)*slot - 1].cost <= cost)
		return;
	row = arena_alloc(to->a, size);
	memcpy(row, b->row, size);
	if (!*slot) {
		PUSH(to->a, to->at, ((struct state){row, cost}));
		*slot = (void *)(intptr_t)to->at.n;
		return;
	}
	to->at.at[(intptr_t)*slot - 1] = (struct state){row, cost};
}

/* The least cost, or -1 where there are too many states. */
static Cost least_by_states(struct brute *b)
{
	enum { MOST = 40000 };
	struct states now = {.a = arena_new()};
	struct text key = {0};
	Cost least = INT64_MAX;

	PUSH(now.a, now.at, ((struct state){b->row, 0}));
	for (int x = 0; x < b->d->nvars && now.at.n <= MOST; x++) {
		struct states next = {.a = arena_new()};
		int *own = b->row;

		for (int i = 0; i < now.at.n && b->d->list[x]; i++)
			for (int r = 0; r < b->d->list[x]->n; r++) {
				memcpy(own, now.at.at[i].row,
				       sizeof(int) * (size_t)b->d->nvars);
				own[x] = r;
				keep_state(b, &next, x,
					   now.at.at[i].cost + adds(b, x),
					   &key);
			}
		if (!b->d->list[x]) {
			arena_free(next.a);
			continue;
		}
		arena_free(now.a);
		now = next;
	}
	for (int i = 0; i < now.at.n; i++)
		if (now.at.at[i].cost < least)
			least = now.at.at[i].cost;
	if (now.at.n > MOST)
		least = -1;
	arena_free(now.a);
	text_free(&key);
	return least;
}

/* ---- checking one graph ---- */

struct tally {
	int passed, failed, exact, skipped, fits, missed;
	const char *what;
	int64_t most;		/* bytes of the choice without a limit */
};

static Cost cost_of_rows(struct brute *b, const int *row)
{
	Cost sum = 0;

	memcpy(b->row, row, sizeof(int) * (size_t)b->d->nvars);
	for (int x = 0; x < b->d->nvars; x++)
		if (b->d->list[x])
			sum += adds(b, x);
	return sum;
}

static void compare(const struct decision *d, void *data)
{
	struct tally *t = data;
	struct brute b = {.d = d, .best = INT64_MAX};
	Cost claimed;

	b.row = calloc((size_t)d->nvars + 1, sizeof(int));
	claimed = cost_of_rows(&b, d->row);
	b.best = claimed + 1;	/* prunes; the least is found all the same */
	try(&b, 0, 0);
	t->exact += d->exact;
	if (claimed == d->cost && b.best == claimed) {
		t->passed++;
	} else {
		t->failed++;
		printf("%s: decided %lld, counted %lld, least %lld%s\n",
		       t->what, (long long)d->cost, (long long)claimed,
		       (long long)b.best, d->exact ? ", said exact" : "");
	}
	free(b.row);
}

static void compare_states(const struct decision *d, void *data)
{
	struct tally *t = data;
	struct brute b = {.d = d};
	Cost claimed, least;

	b.row = calloc((size_t)d->nvars + 1, sizeof(int));
	claimed = cost_of_rows(&b, d->row);
	least = least_by_states(&b);
	t->exact += d->exact;
	if (least < 0)
		t->skipped++;
	else if (claimed == d->cost && d->bound <= least && least <= claimed &&
		 (least == claimed || !d->exact))
		t->passed++;
	else {
		t->failed++;
		printf("%s: decided %lld, counted %lld, least %lld, bound "
		       "%lld%s\n", t->what, (long long)d->cost,
		       (long long)claimed, (long long)least,
		       (long long)d->bound, d->exact ? ", said exact" : "");
	}
	free(b.row);
}

static void note_bytes(const struct decision *d, void *data)
{
	struct tally *t = data;

	t->most = d->weigh(d->data, d->row);
}

/* What fits is never above the limit, and the best that does lies between the
 * bound and what was decided. */
static void compare_within(const struct decision *d, void *data)
{
	struct tally *t = data;
	struct brute b = {.d = d, .best = INT64_MAX};
	bool fits = d->bytes <= d->limit;

	b.row = calloc((size_t)d->nvars + 1, sizeof(int));
	try(&b, 0, 0);
	t->fits += fits;
	t->missed += !fits && b.best < INT64_MAX;
	t->exact += fits && b.best == d->cost;
	if (d->bytes == d->weigh(d->data, d->row) &&
	    (!fits || (d->bound <= b.best && b.best <= d->cost &&
		       cost_of_rows(&b, d->row) == d->cost)))
		t->passed++;
	else {
		t->failed++;
		printf("%s: %lld bytes within %lld, cost %lld, least %lld, "
		       "bound %lld\n", t->what, (long long)d->bytes,
		       (long long)d->limit, (long long)d->cost,
		       (long long)b.best, (long long)d->bound);
	}
	free(b.row);
}

/* How a graph is made, and what is done with the decision. */
struct kind {
	int naxes, nodes, near;
	int limit;		/* percent of what is needed without; 0: none */
	void (*look)(const struct decision *d, void *data);
};

static void one(struct tally *t, int number, const int *extent, struct kind k)
{
	int naxes = k.naxes;
	static int rank[64];
	struct arena *a = arena_new();
	struct maker_state m = {.g = graph_new(a), .near = k.near,
				.free = k.limit > 0};
	int64_t limit = 0;
	struct placement p = {.name = name_of("mesh"), .naxes = naxes,
			      .nranks = 1, .rank = rank};
	char what[64];

	for (int k = 0; k < naxes; k++)
		p.nranks *= p.extent[k] = extent[k];
	for (int i = 0; i < p.nranks; i++)
		rank[i] = i;
	state = (uint64_t)number;
	m.g->on = graph_placement(m.g, p);
	random_graph(&m, k.nodes);
	snprintf(what, sizeof what, "graph %d, %d mesh axes", number, naxes);
	t->what = what;
	if (k.limit) {
		sbp_decide(m.g, 0, note_bytes, t);
		limit = t->most * k.limit / 100 + 1;
	}
	sbp_decide(m.g, limit, k.look, t);
	plan_reset();
	arena_free(a);
}

int main(void)
{
	static const int line[] = {4}, three[] = {3}, square[] = {2, 2};
	static const int oblong[] = {3, 2}, cube[] = {2, 2, 2};
	struct tally t = {0}, within = {0};

	for (int i = 0; i < 150; i++)
		one(&t, i, i % 2 ? line : three, (struct kind){1, 10, 0, 0,
							       compare});
	for (int i = 0; i < 60; i++)
		one(&t, 1000 + i, i % 2 ? square : oblong,
		    (struct kind){2, 6, 0, 0, compare});
	for (int i = 0; i < 20; i++)
		one(&t, 2000 + i, cube, (struct kind){3, 5, 0, 0, compare});
	for (int i = 0; i < 60; i++)
		one(&t, 3000 + i, line, (struct kind){1, 40, 3, 0,
						      compare_states});
	for (int i = 0; i < 20; i++)
		one(&t, 4000 + i, square, (struct kind){2, 12, 2, 0,
							compare_states});
	printf("sbp_test: %d passed, %d failed, %d skipped; %d proved exact\n",
	       t.passed, t.failed, t.skipped, t.exact);
	for (int i = 0; i < 60; i++)
		one(&within, 5000 + i, line,
		    (struct kind){1, 7, 0, 70 + 6 * (i % 6), compare_within});
	printf("within a limit: %d passed, %d failed; %d fit, %d at the least "
	       "cost; %d that fit were missed\n", within.passed,
	       within.failed, within.fits, within.exact, within.missed);
	return t.failed || within.failed || within.missed > 1 || diag_errors() ? 1 : 0;
}
