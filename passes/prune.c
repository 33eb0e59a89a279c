/*
 * prune.c: before anything is solved, candidates go that another candidate of
 * the same node is never worse than, whatever all other nodes take (dead-end
 * elimination). Of two that are always equal the first stays.
 */
#include <string.h>

#include "passes/passes.h"

/* ---- gaps ---- */

static struct gap gap_new(struct space *s, int nrows, int ngroups)
{
	struct gap g = {.n = ngroups};

	g.group = NEW_N(s->a, int, nrows + 1);
	g.at = NEW_N(s->a, Cost, ngroups * ngroups + 1);
	return g;
}

/* The most that an input can pay more for target X than for Y, by the prices
 * of one producer's row. Where others may want X it need not be paid already;
 * where they may want Y it may be. */
static Cost reader_gap(const struct wants *t, const struct price *price,
		       enum reading how, int x, int y)
{
	return price_copy(price[x], how) - price_copy(price[y], how) +
	       price[x].receive - (t->shared[y] ? 0 : price[y].receive);
}

static Cost worst_reader_gap(const struct fan *w, const struct wants *t,
			     enum reading how, int x, int y)
{
	Cost most = 0;

	for (int from = 0; from < w->from->n; from++) {
		Cost c =
			reader_gap(t, t->price + from * t->ntargets, how, x, y);

		if (!from || c > most)
			most = c;
	}
	return most;
}

static struct gap slot_gap(struct space *s, const struct fan *w,
			   const struct wants *t, int port, int slot)
{
	int nslots = w->port[port].nslots;
	struct gap g = gap_new(s, w->to[port]->n, t->ntargets);

	for (int row = 0; row < w->to[port]->n; row++)
		g.group[row] = t->at[port][row * nslots + slot];
	for (int x = 0; x < g.n; x++)
		for (int y = 0; y < g.n; y++)
			if (x != y)
				g.at[x * g.n + y] = worst_reader_gap(
					w, t, fan_reading(w, port, slot), x, y);
	return g;
}

/* The most that one input pays more if the value comes by row X and not Y. */
static Cost input_gap(const struct fan *w, const struct wants *t, int port,
		      int slot, int x, int y)
{
	enum reading how = fan_reading(w, port, slot);
	int nslots = w->port[port].nslots;
	Cost most = 0;

	for (int row = 0; row < w->to[port]->n; row++) {
		int to = t->at[port][row * nslots + slot];
		struct price a = t->price[x * t->ntargets + to];
		struct price b = t->price[y * t->ntargets + to];
		Cost c = a.receive - b.receive;

		if (t->shared[to] && c < 0)
			c = 0;
		c += price_copy(a, how) - price_copy(b, how);
		if (!row || c > most)
			most = c;
	}
	return most;
}

/* FIRST is a row of each group. */
static int group_outputs(const struct fan *w, int *group, int *first)
{
	const struct candidates *c = w->from;
	int n = 0;

	for (int row = 0; row < c->n; row++) {
		int g = 0;

		while (g < n && c->out[first[g] * c->nout + w->out] !=
				c->out[row * c->nout + w->out])
			g++;
		if (g == n)
			first[n++] = row;
		group[row] = g;
	}
	return n;
}

static struct gap producer_gap(struct space *s, struct arena *a,
			       const struct fan *w, const struct wants *t)
{
	int *group = NEW_N(a, int, w->from->n + 1);
	int *first = NEW_N(a, int, w->from->n + 1);
	int n = group_outputs(w, group, first);
	struct gap g = gap_new(s, w->from->n, n);

	memcpy(g.group, group, sizeof *group * (size_t)w->from->n);
	for (int x = 0; x < n; x++)
		for (int y = 0; y < n; y++) {
			Cost *sum = &g.at[x * n + y];

			for (int i = 0; x != y && i < w->nports; i++)
				for (int k = 0; k < w->port[i].nslots; k++)
					*sum += input_gap(w, t, i, k, first[x],
							  first[y]);
		}
	return g;
}

struct gap *fan_gaps(struct space *s, const struct fan *w)
{
	struct wants t;
	struct arena *a;
	struct gap *g;
	void **at;
	int n = 1;

	fan_key(&s->key, w);
	at = bytemap_at(s->a, &s->gaps, s->key.at, s->key.n);
	if (*at)
		return *at;
	for (int i = 0; i < w->nports; i++)
		n += w->port[i].nslots;
	*at = g = NEW_N(s->a, struct gap, n);
	a = arena_new();
	fan_wants(s, a, w, &t);
	*g++ = producer_gap(s, a, w, &t);
	for (int i = 0; i < w->nports; i++)
		for (int k = 0; k < w->port[i].nslots; k++)
			*g++ = slot_gap(s, w, &t, i, k);
	arena_free(a);
	return g - n;
}

/* ---- pruning one list ---- */

/* Whether row X is never worse than row Y. */
static bool beats(const struct candidates *c, struct gap *const *gap,
		  int ngaps, int x, int y)
{
	Cost sum = c->cost[x] - c->cost[y];

	for (int i = 0; i < ngaps; i++) {
		const struct gap *g = gap[i];

		sum += g->at[g->group[x] * g->n + g->group[y]];
	}
	return sum < 0 || (sum == 0 && x < y);
}

static struct candidates *prune(struct space *s, struct candidates *c,
				struct gap *const *gap, int ngaps)
{
	struct arena *a = arena_new();
	int *row = NEW_N(a, int, c->n + 1), n = 0;
	struct candidates *r = c;

	for (int y = 0; y < c->n; y++) {
		int x = 0;

		while (x < c->n && (x == y || !beats(c, gap, ngaps, x, y)))
			x++;
		if (x == c->n)
			row[n++] = y;
	}
	if (n < c->n)
		r = candidates_some(s, c, row, n);
	arena_free(a);
	return r;
}

struct candidates *candidates_pruned(struct space *s, struct candidates *c,
				     struct gap *const *gap, int ngaps)
{
	struct candidates *r;
	struct text key = {0};
	void **at;

	if (c->n < 2)
		return c;
	text_add_n(&key, (const char *)&c->id, sizeof c->id);
	text_add_n(&key, (const char *)gap, sizeof *gap * (size_t)ngaps);
	at = bytemap_at(s->a, &s->pruned, key.at, key.n);
	if (!*at) {
		r = prune(s, c, gap, ngaps);
		at = bytemap_at(s->a, &s->pruned, key.at, key.n);
		*at = r;
	}
	r = *at;
	text_free(&key);
	return r;
}
