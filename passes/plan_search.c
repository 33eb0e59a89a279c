/*
 * plan_search.c: the cheapest path of moves from one distribution to another.
 * Every move is legal, so a path is correct whatever it passes; the search is
 * over the distributions in between, on both placements, in any nested order.
 *
 * A path costs the bytes that its busiest rank receives, summed for each rank
 * over the moves; then its moves; then all bytes. With a topology it costs
 * the predicted seconds instead of the first. Both are sums of vectors, one
 * for each move, of which the greatest entry counts: a number for each rank,
 * or one number alone.
 *
 * On a mesh of two axes all paths of up to three moves are compared. With more
 * axes, or very many ranks, the distributions in between are those that keep
 * near to the ends, and of paths of three moves those that begin and end best.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum {
	MANY_SUMS = 12000,  /* entries of vectors for one end's moves */
	MANY_PAIRS = 20000, /* ... and for moves between the ends */
	FEW_MIDDLES = 24,
	MANY_MIDDLES = 300,
};

/* What a move costs: n entries, and after them the bytes in all. */
typedef int64_t *Vector;

struct middle {
	Dist d;
	Vector first, last; /* of the moves from the source, to the target;
			     * NULL: none that could be of use */
	int64_t first_cost, last_cost;
};

struct search {
	struct arena *a;
	Type t;
	Dist from, to;
	const struct sites *s;
	int n; /* entries of vectors */
	bool by_seconds;
	int64_t bound; /* no path costs less bytes */
	LIST(struct middle) middle;
	int64_t *local;
	struct route *best;
	int64_t cost, total; /* of best */
};

static int64_t sum(const int64_t *v, int n)
{
	int64_t all = 0;

	for (int i = 0; i < n; i++)
		all += v[i];
	return all;
}

static int64_t femtoseconds(double seconds)
{
	double f = seconds * 1e15;

	return f < 4e18 ? (int64_t)f : INT64_MAX / 4;
}

/* What the move FROM -> TO costs. */
static Vector move_vector(struct search *s, Dist from, Dist to)
{
	Vector v = NEW_N(s->a, int64_t, s->s->n + 2);

	move_bytes(s->t, from, to, s->s, v, s->local);
	v[s->s->n] = sum(v, s->s->n);
	if (s->by_seconds) {
		int64_t all = v[s->s->n];

		v[0] = femtoseconds(
			move_seconds_of(s->t, from, to, s->s, v, s->local));
		v[1] = all;
	}
	return v;
}

/* ---- paths ---- */

/* Takes the path through MIDDLE if it is cheaper. A path of more moves must
 * cost less; one of as many may receive less in all. */
static void take(struct search *s, int nmiddle, const struct middle *const *m,
		 int64_t cost, int64_t total)
{
	struct route *best = s->best;
	int n = nmiddle + 1;

	if (best->n && cost >= s->cost &&
	    (cost > s->cost || n > best->n || total >= s->total))
		return;
	best->n = n;
	for (int i = 0; i < nmiddle; i++)
		best->step[i] = m[i]->d;
	best->step[nmiddle] = s->to;
	s->cost = cost;
	s->total = total;
}

static void try_one(struct search *s)
{
	Vector v = move_vector(s, s->from, s->to);

	take(s, 0, NULL, greatest(v, s->n), v[s->n]);
}

static bool goes_back(const struct search *s, Dist from, Dist to)
{
	return from.on != to.on && from.on == s->to.on;
}

/* The cost of N vectors in sequence. */
static int64_t cost_of(const struct search *s, int n, const Vector *v,
		       int64_t *total)
{
	int64_t most = 0;

	for (int i = 0; i < s->n; i++) {
		int64_t all = 0;

		for (int k = 0; k < n; k++)
			all += v[k][i];
		if (all > most)
			most = all;
	}
	*total = 0;
	for (int k = 0; k < n; k++)
		*total += v[k][s->n];
	return most;
}

static void try_two(struct search *s)
{
	for (int i = 0; i < s->middle.n; i++) {
		struct middle *m = &s->middle.at[i];
		const struct middle *path[] = {m};
		Vector move[2];
		int64_t total, cost;

		m->first = move_vector(s, s->from, m->d);
		m->first_cost = greatest(m->first, s->n);
		if (m->first_cost > s->cost)
			continue;
		m->last = move_vector(s, m->d, s->to);
		m->last_cost = greatest(m->last, s->n);
		move[0] = m->first;
		move[1] = m->last;
		cost = cost_of(s, 2, move, &total);
		take(s, 1, path, cost, total);
	}
}

/* The middles that may be the first, or last, of a cheaper path: those that
 * begin, or end, at the least cost. */
struct ends {
	int n;
	struct middle **at;
};

static int by_first(const void *x, const void *y)
{
	const struct middle *const *a = x, *const *b = y;

	if ((*a)->first_cost != (*b)->first_cost)
		return (*a)->first_cost < (*b)->first_cost ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

static int by_last(const void *x, const void *y)
{
	const struct middle *const *a = x, *const *b = y;

	if ((*a)->last_cost != (*b)->last_cost)
		return (*a)->last_cost < (*b)->last_cost ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

static struct ends find_ends(struct search *s, bool first)
{
	struct ends e = {0, NEW_N(s->a, struct middle *, s->middle.n + 1)};

	for (int i = 0; i < s->middle.n; i++) {
		struct middle *m = &s->middle.at[i];

		if (!first && !m->last) {
			m->last = move_vector(s, m->d, s->to);
			m->last_cost = greatest(m->last, s->n);
		}
		if ((first ? m->first_cost : m->last_cost) < s->cost)
			e.at[e.n++] = m;
	}
	qsort(e.at, (size_t)e.n, sizeof *e.at, first ? by_first : by_last);
	return e;
}

static void try_pair(struct search *s, const struct middle *x,
		     const struct middle *y, int *sums)
{
	Vector v[3] = {x->first, y->last, NULL};
	const struct middle *path[] = {x, y};
	int64_t total, cost = cost_of(s, 2, v, &total);

	if (x == y || goes_back(s, x->d, y->d) || cost > s->cost ||
	    (cost == s->cost && (s->best->n < 3 || total >= s->total)))
		return;
	v[2] = move_vector(s, x->d, y->d);
	*sums += s->s->n;
	cost = cost_of(s, 3, v, &total);
	take(s, 2, path, cost, total);
}

/* Pairs in the order of their rank among the ends, the most hopeful first. */
static void try_three(struct search *s)
{
	struct ends first = find_ends(s, true), last = find_ends(s, false);
	int sums = 0;

	for (int k = 0; k <= first.n + last.n - 2; k++) {
		int i = k < last.n ? 0 : k - last.n + 1;

		for (; i <= k && i < first.n; i++) {
			try_pair(s, first.at[i], last.at[k - i], &sums);
			if (sums > MANY_PAIRS)
				return;
		}
	}
}

/* ---- distributions in between ---- */

static void add_middle(struct search *s, Dist d)
{
	if (dist_eq(d, s->from) || dist_eq(d, s->to))
		return;
	for (int i = s->middle.n - 1; i >= 0; i--)
		if (dist_eq(s->middle.at[i].d, d))
			return;
	PUSH(s->a, s->middle, (struct middle){.d = d});
}

/* Puts the mesh axes that MODEL splits outside, or inside, of the others. */
static void order_as(Dist *d, Dist model, bool outside)
{
	int n = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < d->on->naxes; i++) {
			int k = dist_nth(model, i);
			bool split = model.t[k].kind == SBP_S;

			if ((split == outside) == (pass == 0))
				d->order[n++] = (uint8_t)k;
		}
}

static bool nested(Dist d)
{
	for (int k = 0; k < d.on->naxes; k++)
		for (int j = 0; j < k; j++)
			if (d.t[k].kind == SBP_S && sbp_eq(d.t[k], d.t[j]))
				return true;
	return false;
}

static void add_orders(struct search *s, Dist d)
{
	const Dist model[2] = {s->from, s->to};
	int n = d.on->naxes;

	for (int k = 0; k < MAX_MESH; k++)
		d.order[k] = (uint8_t)k;
	add_middle(s, d);
	if (!nested(d))
		return;
	for (int i = 0; i < 2 && n > 2; i++) {
		if (model[i].on != d.on)
			continue;
		order_as(&d, model[i], true);
		add_middle(s, d);
		order_as(&d, model[i], false);
		add_middle(s, d);
	}
	for (int k = 0; k < n; k++)
		d.order[k] = (uint8_t)(n - 1 - k);
	add_middle(s, d);
}

struct choices {
	Sbp t[MAX_RANK + 5];
	int n;
};

static void add_choice(struct choices *c, Sbp t)
{
	for (int i = 0; i < c->n; i++)
		if (sbp_eq(c->t[i], t))
			return;
	c->t[c->n++] = t;
}

static void add_split(const struct search *s, struct choices *c, int axis)
{
	if (s->t.shape.d[axis] > 1)
		add_choice(c, sbp_s(axis));
}

/* An axis of extent 1: the first device alone takes part. */
static void add_root(const struct search *s, struct choices *c)
{
	for (int axis = 0; axis < s->t.shape.rank; axis++)
		if (s->t.shape.d[axis] == 1) {
			add_choice(c, sbp_s(axis));
			return;
		}
}

/* Parts in between are one more way to let a device alone take part. */
static void add_part(const struct search *s, struct choices *c)
{
	for (int k = 0; k < s->from.on->naxes; k++)
		if (s->from.t[k].kind == SBP_P) {
			add_choice(c, s->from.t[k]);
			return;
		}
}

static bool splits(Dist d, int axis)
{
	int chain[MAX_MESH];

	return dist_chain(d, axis, chain) > 0;
}

/* What mesh axis K of ON may be in between, those near to the ends first. */
static struct choices choices_of(const struct search *s,
				 const struct placement *on, int k)
{
	struct choices c = {.n = 0};
	const Dist end[2] = {s->from, s->to};
	int rank = s->t.shape.rank;

	if (on->extent[k] == 1) {
		add_choice(&c, s->to.on == on ? s->to.t[k] : sbp_b());
		return c;
	}
	for (int i = 0; i < 2; i++)
		if (end[i].on == on)
			add_choice(&c, end[i].t[k]);
	for (int axis = 0; axis < rank; axis++)
		if (splits(s->from, axis) || splits(s->to, axis))
			add_split(s, &c, axis);
	add_choice(&c, sbp_b());
	for (int axis = 0; axis < rank; axis++)
		add_split(s, &c, axis);
	add_root(s, &c);
	add_part(s, &c);
	return c;
}

/* Drops the last choices of the longest lists until few enough combine. */
static void limit_choices(struct choices *c, int n, int64_t most)
{
	for (;;) {
		int64_t product = 1;
		int longest = 0;

		for (int k = 0; k < n; k++) {
			product *= c[k].n;
			if (c[k].n > c[longest].n)
				longest = k;
		}
		if (product <= most || c[longest].n == 1)
			return;
		c[longest].n--;
	}
}

/* Splits come first, by tensor axis; then B; then P. */
static int choice_rank(Sbp t)
{
	return t.kind == SBP_S ? t.axis : MAX_RANK + t.kind * 4 + t.red;
}

static int by_rank(const void *x, const void *y)
{
	const Sbp *a = x, *b = y;

	return choice_rank(*a) - choice_rank(*b);
}

static int64_t most_middles(const struct search *s)
{
	int64_t n = MANY_SUMS / (s->s->n + 1);

	return n < FEW_MIDDLES    ? FEW_MIDDLES
	       : n > MANY_MIDDLES ? MANY_MIDDLES
				  : n;
}

static void add_middles(struct search *s, const struct placement *on)
{
	struct choices c[MAX_MESH];
	int at[MAX_MESH] = {0}, k;

	for (k = 0; k < on->naxes; k++)
		c[k] = choices_of(s, on, k);
	limit_choices(c, on->naxes, most_middles(s));
	for (k = 0; k < on->naxes; k++)
		qsort(c[k].t, (size_t)c[k].n, sizeof *c[k].t, by_rank);
	for (;;) {
		Dist d = dist_on(on, sbp_b());

		for (k = 0; k < on->naxes; k++)
			d.t[k] = c[k].t[at[k]];
		add_orders(s, d);
		for (k = on->naxes - 1; k >= 0 && ++at[k] == c[k].n; k--)
			at[k] = 0;
		if (k < 0)
			return;
	}
}

/* ---- the search ---- */

/* Without P, direct receipts of what is missing are the bound itself. */
static bool good_enough(const struct search *s)
{
	if (s->by_seconds)
		return false;
	return s->cost <= s->bound ||
	       (!dist_has(s->from, SBP_P) && !dist_has(s->to, SBP_P));
}

static void search(struct search *s, int most)
{
	try_one(s);
	if (good_enough(s) || most < 2)
		return;
	add_middles(s, s->from.on);
	if (s->from.on != s->to.on)
		add_middles(s, s->to.on);
	try_two(s);
	if (!good_enough(s) && most > 2)
		try_three(s);
}

void route_find(Type t, Dist from, Dist to, int ranks, int most, int64_t bound,
		bool seconds, struct route *r)
{
	struct search s = {.a = arena_new(),
			   .t = t,
			   .from = from,
			   .to = to,
			   .bound = bound,
			   .best = r,
			   .by_seconds = seconds};

	*r = (struct route){.n = 0};
	s.s = sites_of(from.on, to.on, ranks);
	s.n = seconds ? 1 : s.s->n;
	s.local = NEW_N(s.a, int64_t, s.s->n + 1);
	search(&s, most);
	arena_free(s.a);
}
