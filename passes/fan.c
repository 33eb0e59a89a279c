/*
 * fan.c: a value fans out from its producer to its readers. What the readers
 * want that differs from how the producer leaves it must be converted: what
 * is received is paid once for each distribution wanted, however many readers
 * want it, so one table covers all readers that may share.
 */
#include <string.h>

#include "passes/passes.h"

enum { MAX_TOGETHER = 16 };	/* readers in one table */

/* The distributions that readers may want, and what they cost. */
struct wants {
	const struct fan *w;
	int ntargets;
	int *target;			/* dist ids */
	Cost *receive, *copy;		/* by row of from, target */
	int **at;			/* by port: row, slot -> target */
};

static int target_index(struct wants *t, int dist, int *seen)
{
	if (!seen[dist]) {
		t->target[t->ntargets++] = dist;
		seen[dist] = t->ntargets;
	}
	return seen[dist] - 1;
}

static void find_targets(struct space *s, struct arena *a, struct wants *t)
{
	int *seen = NEW_N(a, int, s->dists.n + 1);

	t->target = NEW_N(a, int, s->dists.n + 1);
	t->at = NEW_N(a, int *, t->w->nports + 1);
	for (int i = 0; i < t->w->nports; i++) {
		const struct port *p = &t->w->port[i];
		const struct candidates *c = t->w->to[i];
		int *at = NEW_N(a, int, c->n * p->nslots + 1);

		t->at[i] = at;
		for (int row = 0; row < c->n; row++)
			for (int k = 0; k < p->nslots; k++)
				*at++ = target_index(
					t, c->in[row * c->nin + p->slot[k]],
					seen);
	}
}

static void find_costs(struct space *s, struct arena *a, struct wants *t)
{
	const struct fan *w = t->w;
	size_t n = (size_t)w->from->n * (size_t)t->ntargets + 1;

	t->receive = NEW_N(a, Cost, n);
	t->copy = NEW_N(a, Cost, n);
	for (int i = 0; i < w->from->n; i++) {
		int from = w->from->out[i * w->from->nout + w->out];

		for (int k = 0; k < t->ntargets; k++) {
			int at = i * t->ntargets + k, to = t->target[k];

			t->receive[at] = space_receive(s, w->type, from, to);
			t->copy[at] = space_copy(s, w->type, from, to);
		}
	}
}

/* Whether two readers may want the same distribution at a price. */
static bool sharing_matters(struct arena *a, const struct wants *t)
{
	const struct fan *w = t->w;
	int *last = NEW_N(a, int, t->ntargets + 1);
	bool *shared = NEW_N(a, bool, t->ntargets + 1);

	for (int i = 0; i < w->nports; i++)
		for (int k = 0; k < w->to[i]->n * w->port[i].nslots; k++) {
			int to = t->at[i][k];

			shared[to] |= last[to] && last[to] != i + 1;
			last[to] = i + 1;
		}
	for (int i = 0; i < w->from->n; i++)
		for (int to = 0; to < t->ntargets; to++)
			if (shared[to] && t->receive[i * t->ntargets + to])
				return true;
	return false;
}

/* One entry: what the readers FIRST .. FIRST + N want, each its row. SEEN
 * holds the last entry, from 1, in which a target was wanted. */
static Cost entry(const struct wants *t, int first, int n, const int *row,
		  int from, size_t *seen, size_t number)
{
	const Cost *receive = t->receive + from * t->ntargets;
	const Cost *copy = t->copy + from * t->ntargets;
	Cost sum = 0;

	for (int i = 0; i < n; i++) {
		int nslots = t->w->port[first + i].nslots;
		const int *to = t->at[first + i] + row[i] * nslots;

		for (int k = 0; k < nslots; k++) {
			sum += copy[to[k]];
			if (seen[to[k]] != number)
				sum += receive[to[k]];
			seen[to[k]] = number;
		}
	}
	return sum;
}

static void next_row(const struct wants *t, int first, int n, int *row)
{
	for (int i = n - 1; i >= 0; i--) {
		if (++row[i] < t->w->to[first + i]->n)
			return;
		row[i] = 0;
	}
}

static Cost *fill_table(struct space *s, struct arena *a,
			const struct wants *t, int first, int n, size_t size)
{
	Cost *table = NEW_N(s->a, Cost, size);
	int *row = NEW_N(a, int, n + 1);
	size_t *seen = NEW_N(a, size_t, t->ntargets + 1);
	size_t inner = size / (size_t)t->w->from->n;

	for (size_t e = 0; e < size; e++) {
		table[e] = entry(t, first, n, row, (int)(e / inner), seen,
				 e + 1);
		next_row(t, first, n, row);
	}
	return table;
}

/* Readers that may share go together as far as tables stay small. */
static void fill_tables(struct space *s, struct arena *a,
			const struct wants *t, size_t limit,
			struct fan_tables *r)
{
	const struct fan *w = t->w;
	bool together = w->nports > 1 && sharing_matters(a, t);
	int first = 0;

	r->at = NEW_N(s->a, struct fan_table, w->nports);
	while (first < w->nports) {
		size_t size = (size_t)w->from->n * (size_t)w->to[first]->n;
		int n = 1;

		while (together && first + n < w->nports && n < MAX_TOGETHER &&
		       size * (size_t)w->to[first + n]->n <= limit)
			size *= (size_t)w->to[first + n++]->n;
		r->at[r->n++] = (struct fan_table){
			n, fill_table(s, a, t, first, n, size)};
		first += n;
	}
	r->exact = !together || r->n == 1;
	r->ready = true;
}

static void make_key(struct text *t, const struct fan *w)
{
	int head[4] = {w->type, w->out, w->from->id, w->nports};

	t->n = 0;
	text_add_n(t, (const char *)head, sizeof head);
	for (int i = 0; i < w->nports; i++) {
		const struct port *p = &w->port[i];

		text_add_n(t, (const char *)&w->to[i]->id, sizeof(int));
		text_add_n(t, (const char *)&p->nslots, sizeof(int));
		text_add_n(t, (const char *)p->slot,
			   sizeof(int) * (size_t)p->nslots);
	}
}

const struct fan_tables *fan_find(struct space *s, const struct fan *w,
				  size_t limit)
{
	struct wants t = {.w = w};
	struct fan_tables *r;
	struct arena *a;
	void **at;

	make_key(&s->key, w);
	at = bytemap_at(s->a, &s->table, s->key.at, s->key.n);
	if (*at)
		return *at;
	*at = r = NEW(s->a, struct fan_tables);
	a = arena_new();
	find_targets(s, a, &t);
	find_costs(s, a, &t);
	fill_tables(s, a, &t, limit, r);
	arena_free(a);
	return r;
}

/* Whether the reader before slot K of port P, of which it is the row, wants
 * DIST already. */
static bool wanted_before(const struct fan *w, const int *to, int port, int k,
			  int dist)
{
	for (int i = 0; i <= port; i++) {
		const struct candidates *c = w->to[i];
		int n = i == port ? k : w->port[i].nslots;

		for (int j = 0; j < n; j++)
			if (c->in[to[i] * c->nin + w->port[i].slot[j]] == dist)
				return true;
	}
	return false;
}

Cost fan_cost(struct space *s, const struct fan *w, int from, const int *to)
{
	int have = w->from->out[from * w->from->nout + w->out];
	Cost sum = 0;

	for (int i = 0; i < w->nports; i++) {
		const struct candidates *c = w->to[i];

		for (int k = 0; k < w->port[i].nslots; k++) {
			int want = c->in[to[i] * c->nin + w->port[i].slot[k]];

			sum += space_copy(s, w->type, have, want);
			if (!wanted_before(w, to, i, k, want))
				sum += space_receive(s, w->type, have, want);
		}
	}
	return sum;
}
