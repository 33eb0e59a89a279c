/*
 * fan.c: a value fans out from its producer to its readers. What the readers
 * want that differs from how the producer leaves it must be converted: what
 * is received is paid once for each distribution wanted, however many readers
 * want it.
 *
 * Where readers may share, either one table covers them all, or a variable of
 * the fan's own says which set of distributions is paid by the fan; a reader
 * that wants another pays itself. Sets of half as many distributions as there
 * are inputs that read the value lose nothing, since one that is wanted once
 * need not be in the set.
 */
#include <string.h>

#include "passes/passes.h"

enum {
	SMALL = 100000,		/* entries of a table over all readers */
	LARGE = 3000000,	/* of one over producer, set and reader */
	WIDE = 8,		/* readers: above, see fan_is_wide */
	MAX_SETS = 400,
};

static int target_index(struct wants *t, int dist, int *seen)
{
	if (!seen[dist]) {
		t->target[t->ntargets++] = dist;
		seen[dist] = t->ntargets;
	}
	return seen[dist] - 1;
}

static void find_targets(struct space *s, struct arena *a,
			 const struct fan *w, struct wants *t)
{
	int *seen = NEW_N(a, int, s->dists.n + 1);

	t->target = NEW_N(a, int, s->dists.n + 1);
	t->at = NEW_N(a, int *, w->nports + 1);
	for (int i = 0; i < w->nports; i++) {
		const struct port *p = &w->port[i];
		const struct candidates *c = w->to[i];
		int *at = NEW_N(a, int, c->n * p->nslots + 1);

		t->at[i] = at;
		for (int row = 0; row < c->n; row++)
			for (int k = 0; k < p->nslots; k++)
				*at++ = target_index(
					t, c->in[row * c->nin + p->slot[k]],
					seen);
	}
}

static void find_prices(struct space *s, struct arena *a, const struct fan *w,
			struct wants *t)
{
	struct price *at = NEW_N(a, struct price,
				 w->from->n * t->ntargets + 1);

	t->price = at;
	for (int i = 0; i < w->from->n; i++)
		for (int k = 0; k < t->ntargets; k++)
			*at++ = candidates_price(s, w->from, w->out, i,
						 t->target[k]);
}

/* An input is a port's slot; LAST is the last, from 1, that may want a
 * target. */
static void find_shared(struct arena *a, const struct fan *w, struct wants *t)
{
	int *last = NEW_N(a, int, t->ntargets + 1), input = 0;

	t->shared = NEW_N(a, bool, t->ntargets + 1);
	for (int i = 0; i < w->nports; i++)
		for (int k = 0; k < w->port[i].nslots; k++) {
			input++;
			for (int row = 0; row < w->to[i]->n; row++) {
				int to = t->at[i][row * w->port[i].nslots + k];

				t->shared[to] |= last[to] && last[to] != input;
				last[to] = input;
			}
		}
}

void fan_wants(struct space *s, struct arena *a, const struct fan *w,
	       struct wants *t)
{
	*t = (struct wants){0};
	find_targets(s, a, w, t);
	find_prices(s, a, w, t);
	find_shared(a, w, t);
}

/* The shared targets that are not free: their numbers in AT; how many. */
static int list_shared(const struct fan *w, const struct wants *t, int *at)
{
	int n = 0;

	for (int to = 0; to < t->ntargets; to++) {
		bool paid = false;

		for (int i = 0; i < w->from->n; i++)
			paid |= t->price[i * t->ntargets + to].receive > 0;
		if (t->shared[to] && paid)
			at[n++] = to;
	}
	return n;
}

enum reading fan_reading(const struct fan *w, int port, int slot)
{
	return w->to[port]->reading[w->port[port].slot[slot]];
}

/* One entry: what the readers FIRST .. FIRST + N want, each its row. SEEN
 * holds the last entry, from 1, in which a target was wanted. */
static Cost entry(const struct fan *w, const struct wants *t, int first, int n,
		  const int *row, int from, size_t *seen, size_t number)
{
	const struct price *price = t->price + from * t->ntargets;
	Cost sum = 0;

	for (int i = 0; i < n; i++) {
		int nslots = w->port[first + i].nslots;
		const int *to = t->at[first + i] + row[i] * nslots;

		for (int k = 0; k < nslots; k++) {
			sum += price_copy(price[to[k]],
					  fan_reading(w, first + i, k));
			if (seen[to[k]] != number)
				sum += price[to[k]].receive;
			seen[to[k]] = number;
		}
	}
	return sum;
}

static void next_row(const struct fan *w, int first, int n, int *row)
{
	for (int i = n - 1; i >= 0; i--) {
		if (++row[i] < w->to[first + i]->n)
			return;
		row[i] = 0;
	}
}

static Cost *fill_table(struct space *s, struct arena *a, const struct fan *w,
			const struct wants *t, int first, int n, size_t size)
{
	Cost *table = NEW_N(s->a, Cost, size);
	int *row = NEW_N(a, int, n + 1);
	size_t *seen = NEW_N(a, size_t, t->ntargets + 1);
	size_t inner = size / (size_t)w->from->n;

	for (size_t e = 0; e < size; e++) {
		table[e] = entry(w, t, first, n, row, (int)(e / inner), seen,
				 e + 1);
		next_row(w, first, n, row);
	}
	return table;
}

static void add_table(struct space *s, struct arena *a, const struct fan *w,
		      const struct wants *t, int first, int n,
		      struct fan_tables *r)
{
	size_t size = (size_t)w->from->n;

	for (int i = 0; i < n; i++)
		size *= (size_t)w->to[first + i]->n;
	r->at[r->n++] = (struct fan_table){
		.first = first, .nports = n,
		.at = fill_table(s, a, w, t, first, n, size)};
}

/* ---- sets ---- */

/* At most two of the shared distributions; -1: none. */
struct pair {
	int target[2];
};
struct sets {
	int n;
	struct pair *at;
};

static struct sets make_sets(struct arena *a, const int *shared, int n,
			     bool pairs)
{
	struct sets r = {0};

	r.at = NEW_N(a, struct pair, 1 + n + (pairs ? n * n : 0));
	for (int i = -1; i < n; i++)
		for (int j = -1; j < i || j < 0; j++) {
			if (j >= 0 && !pairs)
				break;
			r.at[r.n++] = (struct pair){
				{i < 0 ? -1 : shared[i],
				 j < 0 ? -1 : shared[j]}};
		}
	return r;
}

static bool in_set(const struct pair *p, int target)
{
	return p->target[0] == target || p->target[1] == target;
}

/* What the fan pays: by producer and set. */
static Cost *set_table(struct space *s, const struct fan *w,
		       const struct wants *t, const struct sets *sets)
{
	Cost *table = NEW_N(s->a, Cost, w->from->n * sets->n), *at = table;

	for (int from = 0; from < w->from->n; from++) {
		const struct price *price = t->price + from * t->ntargets;

		for (int i = 0; i < sets->n; i++, at++)
			for (int k = 0; k < 2; k++) {
				int to = sets->at[i].target[k];

				*at += to < 0 ? 0 : price[to].receive;
			}
	}
	return table;
}

/* What port READER pays by one row: SLOT are its targets. */
static Cost reader_pays(const struct fan *w, int reader,
			const struct price *price, const struct pair *pair,
			const int *slot)
{
	Cost sum = 0;

	for (int k = 0; k < w->port[reader].nslots; k++) {
		bool again = in_set(pair, slot[k]);

		for (int j = 0; j < k; j++)
			again |= slot[j] == slot[k];
		sum += price_copy(price[slot[k]], fan_reading(w, reader, k));
		sum += again ? 0 : price[slot[k]].receive;
	}
	return sum;
}

/* By producer, set and reader. */
static Cost *reader_table(struct space *s, const struct fan *w,
			  const struct wants *t, const struct sets *sets,
			  int reader)
{
	int n = w->to[reader]->n, nslots = w->port[reader].nslots;
	Cost *table = NEW_N(s->a, Cost, w->from->n * sets->n * n);
	Cost *at = table;

	for (int from = 0; from < w->from->n; from++)
		for (int i = 0; i < sets->n; i++)
			for (int row = 0; row < n; row++)
				*at++ = reader_pays(
					w, reader,
					t->price + from * t->ntargets,
					&sets->at[i],
					t->at[reader] + row * nslots);
	return table;
}

static int count_slots(const struct fan *w)
{
	int n = 0;

	for (int i = 0; i < w->nports; i++)
		n += w->port[i].nslots;
	return n;
}

static void share_by_sets(struct space *s, struct arena *a,
			  const struct fan *w, const struct wants *t,
			  const int *shared, int n, struct fan_tables *r)
{
	int nports = w->nports, nslots = count_slots(w);
	bool pairs = nslots > 3 && 1 + n + n * (n - 1) / 2 <= MAX_SETS;
	struct sets sets = make_sets(a, shared, n, pairs);

	r->sets = sets.n;
	r->exact = nslots <= (pairs ? 5 : 3) || n <= (pairs ? 2 : 1);
	r->at[r->n++] = (struct fan_table){
		.set = true, .at = set_table(s, w, t, &sets)};
	for (int i = 0; i < nports; i++)
		r->at[r->n++] = (struct fan_table){
			.set = true, .first = i, .nports = 1,
			.at = reader_table(s, w, t, &sets, i)};
}

/* ---- the tables of a fan ---- */

bool fan_is_wide(const struct fan *w)
{
	return w->nports > WIDE && w->from->n > 1;
}

/* Whether one table over all readers has at most SMALL entries, and one for
 * each of them with the set at most LARGE. */
static bool all_small(const struct fan *w)
{
	size_t size = (size_t)w->from->n;

	for (int i = 0; i < w->nports && size <= SMALL; i++)
		size *= (size_t)w->to[i]->n;
	return size <= SMALL;
}

static bool sets_fit(const struct fan *w, int nshared)
{
	for (int i = 0; i < w->nports; i++)
		if ((size_t)w->from->n * (size_t)(1 + nshared) *
			    (size_t)w->to[i]->n > LARGE)
			return false;
	return !fan_is_wide(w);
}

static void fill_tables(struct space *s, struct arena *a, const struct fan *w,
			const struct wants *t, struct fan_tables *r)
{
	int *shared = NEW_N(a, int, t->ntargets + 1);
	int n = w->nports > 1 ? list_shared(w, t, shared) : 0;

	r->at = NEW_N(s->a, struct fan_table, w->nports + 1);
	r->exact = true;
	r->ready = true;
	if (n && all_small(w)) {
		add_table(s, a, w, t, 0, w->nports, r);
		return;
	}
	if (n && sets_fit(w, n)) {
		share_by_sets(s, a, w, t, shared, n, r);
		return;
	}
	for (int i = 0; i < w->nports; i++)
		add_table(s, a, w, t, i, 1, r);
	r->exact = !n;
}

void fan_key(struct text *t, const struct fan *w)
{
	int head[4] = {w->type, w->out, w->from->rows, w->nports};

	t->n = 0;
	text_add_n(t, (const char *)head, sizeof head);
	for (int i = 0; i < w->nports; i++) {
		const struct port *p = &w->port[i];

		text_add_n(t, (const char *)&w->to[i]->rows, sizeof(int));
		text_add_n(t, (const char *)&p->nslots, sizeof(int));
		text_add_n(t, (const char *)p->slot,
			   sizeof(int) * (size_t)p->nslots);
	}
}

const struct fan_tables *fan_find(struct space *s, const struct fan *w)
{
	struct wants t;
	struct fan_tables *r;
	struct arena *a;
	void **at;

	fan_key(&s->key, w);
	at = bytemap_at(s->a, &s->table, s->key.at, s->key.n);
	if (*at)
		return *at;
	*at = r = NEW(s->a, struct fan_tables);
	a = arena_new();
	fan_wants(s, a, w, &t);
	fill_tables(s, a, w, &t, r);
	arena_free(a);
	return r;
}

/* Whether this is the first time that a reader of the fan wants DIST. */
static bool first_wanted(struct space *s, int dist)
{
	bool first;

	while (s->seen.n <= dist)
		PUSH(s->a, s->seen, 0);
	first = s->seen.at[dist] != s->stamp;
	s->seen.at[dist] = s->stamp;
	return first;
}

Cost fan_cost(struct space *s, const struct fan *w, int from, const int *to)
{
	Cost sum = 0;

	s->stamp++;
	for (int i = 0; i < w->nports; i++) {
		const struct candidates *c = w->to[i];

		for (int k = 0; k < w->port[i].nslots; k++) {
			int want = c->in[to[i] * c->nin + w->port[i].slot[k]];
			struct price p = candidates_price(s, w->from, w->out,
							  from, want);

			sum += price_copy(p, fan_reading(w, i, k));
			if (first_wanted(s, want))
				sum += p.receive;
		}
	}
	return sum;
}
