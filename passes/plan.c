/*
 * plan.c: the cheapest sequence of moves that does a conversion. A search
 * over the distributions in between, on both placements; every move is legal,
 * so a path is correct whatever it passes. Fewest bytes for the busiest rank
 * first, then fewest moves, then fewest bytes in all.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum {
	MAX_STEPS = 3,
	FEW_RANKS = 16,		/* all of them are looked at in a prediction */
	MANY_RANKS = 256,	/* ... and in a plan */
	MANY_EDGES = 100000,	/* paths of three moves are tried up to here */
};

/* ---- the search ---- */

struct path {
	int n;
	Dist step[MAX_STEPS];
	int64_t busiest, total;
};

struct search {
	struct arena *a;
	Type t;
	Dist from, to;
	const struct sites *s;
	LIST(Dist) middle;
	int most;		/* moves of the paths tried now */
	int64_t bound;		/* good enough */
	struct path now, best;
	int64_t *recv[MAX_STEPS + 1];	/* sums so far, by depth */
	int64_t *edge, *local;
};

static bool good_enough(const struct search *s)
{
	return s->best.n && s->best.busiest <= s->bound;
}

/* Sets the sums after one more move; false if that is no use any more. */
static bool add_move(struct search *s, int depth, Dist from, Dist to,
		     int64_t *busiest, int64_t *total)
{
	const int64_t *before = s->recv[depth];
	int64_t *after = s->recv[depth + 1];

	move_bytes(s->t, from, to, s->s, s->edge, s->local);
	*busiest = *total = 0;
	for (int i = 0; i < s->s->n; i++) {
		after[i] = before[i] + s->edge[i];
		*total += after[i];
		if (after[i] > *busiest)
			*busiest = after[i];
	}
	if (!s->best.n || *busiest < s->best.busiest)
		return true;
	return *busiest == s->best.busiest && s->best.n == s->most &&
	       *total < s->best.total;
}

static bool goes_back(const struct search *s, Dist from, Dist to)
{
	return from.on != to.on && from.on == s->to.on;
}

/* All ways to go on from AT, after DEPTH moves. */
static void extend(struct search *s, int depth, Dist at)
{
	int64_t busiest, total;

	if (depth + 1 == s->most) {
		s->now.step[depth] = s->to;
		if (!add_move(s, depth, at, s->to, &busiest, &total))
			return;
		s->best = s->now;
		s->best.n = depth + 1;
		s->best.busiest = busiest;
		s->best.total = total;
		return;
	}
	for (int i = 0; i < s->middle.n && !good_enough(s); i++) {
		Dist next = s->middle.at[i];

		if (goes_back(s, at, next) || dist_eq(at, next) ||
		    !add_move(s, depth, at, next, &busiest, &total))
			continue;
		s->now.step[depth] = next;
		extend(s, depth + 1, next);
	}
}

/* ---- distributions in between ---- */

static void add_middle(struct search *s, Dist d)
{
	if (dist_eq(d, s->from) || dist_eq(d, s->to))
		return;
	for (int i = s->middle.n - 1; i >= 0; i--)
		if (dist_eq(s->middle.at[i], d))
			return;
	PUSH(s->a, s->middle, d);
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

	for (int k = 0; k < MAX_MESH; k++)
		d.order[k] = (uint8_t)k;
	add_middle(s, d);
	if (!nested(d))
		return;
	for (int i = 0; i < 2; i++) {
		if (model[i].on != d.on)
			continue;
		order_as(&d, model[i], true);
		add_middle(s, d);
		order_as(&d, model[i], false);
		add_middle(s, d);
	}
}

struct choices {
	Sbp t[MAX_RANK + 3];
	int n;
};

static void add_choice(struct choices *c, Sbp t)
{
	for (int i = 0; i < c->n; i++)
		if (sbp_eq(c->t[i], t))
			return;
	c->t[c->n++] = t;
}

/* What mesh axis K of ON may be in between: splits first, they share work. */
static struct choices choices_of(const struct search *s,
				 const struct placement *on, int k)
{
	struct choices c = {.n = 0};

	if (on->extent[k] == 1) {
		add_choice(&c, s->to.on == on ? s->to.t[k] : sbp_b());
		return c;
	}
	for (int axis = 0; axis < s->t.shape.rank; axis++)
		if (s->t.shape.d[axis] > 1)
			add_choice(&c, sbp_s(axis));
	add_choice(&c, sbp_b());
	if (s->from.on == on && s->from.t[k].kind == SBP_P)
		add_choice(&c, s->from.t[k]);
	if (s->to.on == on && s->to.t[k].kind == SBP_P)
		add_choice(&c, s->to.t[k]);
	return c;
}

static void add_middles(struct search *s, const struct placement *on)
{
	struct choices c[MAX_MESH];
	int at[MAX_MESH] = {0}, k;

	for (k = 0; k < on->naxes; k++)
		c[k] = choices_of(s, on, k);
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

/* Without P, direct receipts of what is missing are the bound itself. */
static bool direct_is_best(Dist from, Dist to)
{
	return !dist_has(from, SBP_P) && !dist_has(to, SBP_P);
}

static void search_init(struct search *s, Type t, Dist from, Dist to,
			int limit)
{
	size_t n;

	*s = (struct search){.a = arena_new(), .t = t, .from = from, .to = to};
	s->s = sites_of(from.on, to.on, limit);
	n = (size_t)s->s->n + 1;
	for (int i = 0; i <= MAX_STEPS; i++)
		s->recv[i] = NEW_N(s->a, int64_t, n);
	s->edge = NEW_N(s->a, int64_t, n);
	s->local = NEW_N(s->a, int64_t, n);
}

static void search_run(struct search *s, int most)
{
	s->most = 1;
	extend(s, 0, s->from);
	if (direct_is_best(s->from, s->to) || good_enough(s))
		return;
	add_middles(s, s->from.on);
	if (s->from.on != s->to.on)
		add_middles(s, s->to.on);
	for (s->most = 2; s->most <= most && !good_enough(s); s->most++) {
		int64_t edges = (int64_t)s->middle.n * s->middle.n * s->s->n;

		if (s->most > 2 && edges > MANY_EDGES)
			return;
		extend(s, 0, s->from);
	}
}

/* ---- patterns seen before ---- */

struct plan {
	const char *algorithm;
	int nsteps;
	Dist *step;
	int64_t busiest, total, bound;
	int64_t *recv;		/* by rank of its placements, ascending */
	int *rank;
	int n;			/* of them */
	int64_t uses;		/* while totals are summed */
};

/* Type and distributions in a few words, equal where all bytes are. */
enum { KEY_WORDS = 5 + MAX_RANK };
struct key {
	uint64_t w[KEY_WORDS];
	int n;
};

struct memo {
	struct key key;
	bool has_seconds, has_traffic;
	double seconds;
	struct traffic traffic;
	struct plan *plan;
};

static struct arena *memory;
static struct memo **table;
static uint64_t table_size, table_used;

void plan_reset(void)
{
	if (memory)
		arena_free(memory);
	free(table);
	memory = NULL;
	table = NULL;
	table_size = table_used = 0;
	sites_reset();
}

static uint64_t dist_word(const Dist *d)
{
	uint64_t w = 0;

	for (int k = 0; k < d->on->naxes; k++) {
		Sbp t = d->t[k];
		uint64_t detail = t.kind == SBP_S   ? (uint64_t)t.axis :
				  t.kind == SBP_P ? t.red :
						      0;

		w = w << 12 | (uint64_t)t.kind << 8 | detail << 4 |
		    (uint64_t)dist_nth(*d, k);
	}
	return w;
}

static void key_of(struct key *k, const Type *t, const Dist *from,
		   const Dist *to)
{
	k->n = 0;
	k->w[k->n++] = (uint64_t)t->dtype << 8 | (uint64_t)t->shape.rank;
	k->w[k->n++] = (uintptr_t)from->on;
	k->w[k->n++] = (uintptr_t)to->on;
	k->w[k->n++] = dist_word(from);
	k->w[k->n++] = dist_word(to);
	for (int i = 0; i < t->shape.rank; i++)
		k->w[k->n++] = (uint64_t)t->shape.d[i];
}

static uint64_t key_hash(const struct key *k)
{
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (int i = 0; i < k->n; i++) {
		h = (h ^ k->w[i]) * 0xff51afd7ed558ccdu;
		h ^= h >> 29;
	}
	return h;
}

static struct memo **slot_of(const struct key *k)
{
	uint64_t i = key_hash(k) & (table_size - 1);

	while (table[i] &&
	       (table[i]->key.n != k->n ||
		memcmp(table[i]->key.w, k->w, sizeof *k->w * (size_t)k->n)))
		i = (i + 1) & (table_size - 1);
	return &table[i];
}

static void table_grow(void)
{
	struct memo **old = table;
	uint64_t n = table_size;

	table_size = n ? 2 * n : 1024;
	table = calloc(table_size, sizeof *table);
	if (!table)
		bug("out of memory");
	for (uint64_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(&old[i]->key) = old[i];
	free(old);
}

static struct memo *memo_of(Type t, Dist from, Dist to)
{
	struct key k;
	struct memo **slot;

	if (2 * table_used >= table_size)
		table_grow();
	key_of(&k, &t, &from, &to);
	slot = slot_of(&k);
	if (!*slot) {
		if (!memory)
			memory = arena_new();
		*slot = NEW(memory, struct memo);
		(*slot)->key = k;
		table_used++;
	}
	return *slot;
}

/* ---- predictions ---- */

/* Of ranks on one host: what a move costs to start, and bytes a second. */
static const double start_receive = 1e-6, start_copy = 0.3e-6;
static const double receive_rate = 10e9, copy_rate = 20e9;

static int64_t greatest(const int64_t *v, int n)
{
	int64_t most = 0;

	for (int i = 0; i < n; i++)
		if (v[i] > most)
			most = v[i];
	return most;
}

static double move_seconds(struct search *s, Dist from, Dist to)
{
	int64_t recv, local;

	move_bytes(s->t, from, to, s->s, s->edge, s->local);
	recv = greatest(s->edge, s->s->n);
	local = greatest(s->local, s->s->n);
	return (recv ? start_receive : start_copy) +
	       (double)recv / receive_rate + (double)local / copy_rate;
}

static double predict(Type t, Dist from, Dist to)
{
	struct search s;
	double seconds = 0;

	search_init(&s, t, from, to, FEW_RANKS);
	search_run(&s, 2);
	for (int i = 0; i < s.best.n; i++) {
		seconds += move_seconds(&s, from, s.best.step[i]);
		from = s.best.step[i];
	}
	arena_free(s.a);
	return seconds;
}

/* One address for each placement of a conversion, however it is spelt. */
static void same_address(Dist from, Dist *to)
{
	if (dist_same_place(from, *to))
		to->on = from.on;
}

double boxing_seconds(Type t, Dist from, Dist to)
{
	struct memo *m = memo_of(t, from, to);

	if (m->has_seconds)
		return m->seconds;
	same_address(from, &to);
	m->seconds = dist_eq(from, to) ? 0 : predict(t, from, to);
	m->has_seconds = true;
	return m->seconds;
}

/* ---- plans ---- */

struct traffic move_traffic(Type t, Dist from, Dist to)
{
	struct memo *m = memo_of(t, from, to);

	if (!m->has_traffic) {
		m->traffic = move_traffic_of(t, from, to);
		m->has_traffic = true;
	}
	return m->traffic;
}

/* Exact bytes of the path, on all ranks, and the names of its moves. */
static void plan_finish(struct plan *p, Type t, Dist from)
{
	const struct sites *s = sites_of(from.on, p->step[p->nsteps - 1].on,
					 INT32_MAX);
	int64_t *edge = NEW_N(memory, int64_t, s->n + 1);
	int64_t *local = NEW_N(memory, int64_t, s->n + 1);

	p->n = s->n;
	p->recv = NEW_N(memory, int64_t, s->n + 1);
	p->rank = NEW_N(memory, int, s->n + 1);
	p->algorithm = "";
	for (int i = 0; i < p->nsteps; i++) {
		Dist to = p->step[i];

		move_bytes(t, from, to, s, edge, local);
		p->algorithm = arena_text(
			memory, "%s%s%s", p->algorithm, i ? ", " : "",
			move_name(memory, from, to, greatest(edge, s->n) > 0));
		for (int j = 0; j < s->n; j++)
			p->recv[j] += edge[j];
		from = to;
	}
	for (int j = 0; j < s->n; j++) {
		p->rank[j] = s->at[j].rank;
		p->total += p->recv[j];
	}
	p->busiest = greatest(p->recv, s->n);
}

static struct plan *plan_make(Type t, Dist from, Dist to)
{
	struct plan *p = NEW(memory, struct plan);
	const struct placement *on = to.on;
	struct search s;

	same_address(from, &to);
	p->bound = boxing_bound(t, from, to);
	if (dist_eq(from, to)) {
		p->algorithm = "";
		return p;
	}
	search_init(&s, t, from, to, MANY_RANKS);
	s.bound = p->bound;
	search_run(&s, MAX_STEPS);
	p->nsteps = s.best.n;
	p->step = NEW_N(memory, Dist, p->nsteps);
	memcpy(p->step, s.best.step, sizeof *p->step * (size_t)p->nsteps);
	arena_free(s.a);
	plan_finish(p, t, from);
	p->step[p->nsteps - 1].on = on;
	return p;
}

void plan_boxing(struct boxing *b)
{
	struct memo *m = memo_of(b->type, b->from, b->to);
	struct plan *p;

	if (!m->plan)
		m->plan = plan_make(b->type, b->from, b->to);
	b->plan = p = m->plan;
	b->algorithm = p->algorithm;
	b->nsteps = p->nsteps;
	b->step = p->step;
	b->recv_busiest = p->busiest;
	b->recv_total = p->total;
	b->lower_bound = p->bound;
}

void plan_totals(struct program *p)
{
	int64_t *recv = NEW_N(p->arena, int64_t, p->g->world + 1);

	p->recv_total = 0;
	for (int i = 0; i < p->boxings.n; i++) {
		p->boxings.at[i]->plan->uses++;
		p->recv_total += p->boxings.at[i]->recv_total;
	}
	for (int i = 0; i < p->boxings.n; i++) {
		struct plan *plan = p->boxings.at[i]->plan;

		for (int j = 0; plan->uses && j < plan->n; j++)
			recv[plan->rank[j]] += plan->uses * plan->recv[j];
		plan->uses = 0;
	}
	p->recv_busiest = greatest(recv, p->g->world);
}
