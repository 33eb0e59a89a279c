/*
 * plan.c: the plan of each conversion, its exact bytes on all ranks, and what
 * inference predicts of it. Equal conversions are planned once.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum {
	FEW_RANKS = 16,		/* all of them are looked at in a prediction */
	MANY_RANKS = 256,	/* ... and in a plan, */
	MORE_AXES = 64,		/* with more than two mesh axes */
};

/* How many ranks a search looks at, all or a sample. */
static int ranks_of(Dist from, Dist to)
{
	return from.on->naxes > 2 || to.on->naxes > 2 ? MORE_AXES : MANY_RANKS;
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
	/* with a topology */
	int64_t least_busiest;
	double seconds, least_seconds;
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

static double route_seconds(Type t, Dist from, const struct route *r,
			    int ranks)
{
	double seconds = 0;

	for (int i = 0; i < r->n; i++) {
		const struct sites *s = sites_of(from.on, r->step[i].on,
						 ranks);

		seconds += move_seconds(t, from, r->step[i], s);
		from = r->step[i];
	}
	return seconds;
}

static double predict(Type t, Dist from, Dist to)
{
	struct route r;

	route_find(t, from, to, FEW_RANKS, 2, 0, predict_has_topology(), &r);
	return route_seconds(t, from, &r, FEW_RANKS);
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
	from = dist_plain(from);
	to = dist_plain(to);
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

/* What the plan costs beside that of the fewest bytes. */
static void plan_compare(struct plan *p, Type t, Dist from, Dist to,
			 const struct route *r)
{
	struct route least;
	struct plan other = {.nsteps = 0};

	route_find(t, from, to, ranks_of(from, to), MAX_STEPS, p->bound, false,
		   &least);
	other.nsteps = least.n;
	other.step = least.step;
	plan_finish(&other, t, from);
	p->least_busiest = other.busiest;
	p->seconds = route_seconds(t, from, r, MANY_RANKS);
	p->least_seconds = route_seconds(t, from, &least, MANY_RANKS);
}

static struct plan *plan_make(Type t, Dist from, Dist to)
{
	struct plan *p = NEW(memory, struct plan);
	const Dist spelt = to;
	struct route r;

	from = dist_plain(from);
	to = dist_plain(to);
	same_address(from, &to);
	p->bound = boxing_bound(t, from, to);
	p->algorithm = "";
	if (dist_eq(from, to))
		return p;
	route_find(t, from, to, ranks_of(from, to), MAX_STEPS, p->bound,
		   predict_has_topology(), &r);
	p->nsteps = r.n;
	p->step = NEW_N(memory, Dist, p->nsteps);
	memcpy(p->step, r.step, sizeof *p->step * (size_t)p->nsteps);
	plan_finish(p, t, from);
	if (predict_has_topology())
		plan_compare(p, t, from, to, &r);
	p->step[p->nsteps - 1] = spelt;
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
	b->least_busiest = p->least_busiest;
	b->seconds = p->seconds;
	b->least_seconds = p->least_seconds;
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
