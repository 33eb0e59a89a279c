/*
 * limit.c: the least cost within so many bytes a rank.
 *
 * Each byte gets a price, which goes into the costs of candidates; the least
 * sum under a price, less what the limit is worth at that price, is a bound
 * for every choice that fits (Lagrange). Between a choice that is too large
 * and one that fits the next price to try is the one at which both cost the
 * same; when that finds nothing new, the front of the graph is taken from one
 * and the rest from the other, where equal layers would all change at once.
 *
 * What a choice needs is estimated as memory.c will place it: weights, inputs
 * and constants always, another value while it is read, a converted copy
 * between its readers. What fused kernels keep in registers takes nothing, nor
 * do slices that are read in place.
 */
#include <string.h>

#include "passes/passes.h"

enum { PRICES = 8, TRIES = 400, ALIGN = 64 };
enum { MARGIN = 64 }; /* one part: holes that buffers leave */
#define NEAR_PEAK 0.9 /* of the most: times that weigh on a value */

/* ---- what a choice needs ---- */

struct lives {
	int end;                   /* after the last node */
	const struct value **root; /* by value id: whose bytes it uses */
	int *last;                 /* by value id of a root: its last reader */
	int *until;                /* by node id: when its inputs may go */
	bool *held;                /* by value id: has bytes of its own */
	int nplaces;
	const struct placement **place; /* that nodes run on */
	bool *meet;                     /* by two of them: they share ranks */
	int *of;                        /* by node id: its place */
};

static bool is_view(const struct infer *f, const struct node *n)
{
	return op_info(n->op)->kernel == K_VIEW ||
	       (n->op == OP_permute && f->inner[n->id] >> 16 & 1);
}

static bool stays_inside(const struct infer *f, const struct value *v)
{
	return v->index < 15 && f->inner[v->def->id] >> (16 + v->index) & 1;
}

/* A kernel that reduces may still read its inputs when its outputs are there;
 * one that does not writes in their place. */
static void find_kernels(struct infer *f, struct arena *a, struct lives *l)
{
	bool *reduces = NEW_N(a, bool, l->end + 1);

	l->until = NEW_N(a, int, l->end + 1);
	for (int i = l->end - 1; i >= 0; i--) {
		const struct node *n = f->g->nodes.at[i];

		reduces[i] |= op_info(n->op)->kernel == K_FOLD;
		l->until[i] = reduces[i] && l->until[i] > i ? l->until[i] : i;
		for (int k = 0; k < n->nin; k++) {
			int def = n->in[k]->def->id;

			if (!stays_inside(f, n->in[k]) || is_view(f, n) ||
			    is_view(f, n->in[k]->def))
				continue;
			reduces[def] |= reduces[i];
			if (l->until[i] > l->until[def])
				l->until[def] = l->until[i];
		}
	}
}

static void find_roots(struct infer *f, struct lives *l)
{
	for (int i = 0; i < f->g->nodes.n; i++) {
		const struct node *n = f->g->nodes.at[i];

		for (int k = 0; k < n->nout; k++) {
			const struct value *v = n->out[k];
			l->root[v->id] = n->nin && is_view(f, n)
						 ? l->root[n->in[0]->id]
						 : v;
			l->held[v->id] =
				!stays_inside(f, v) && l->root[v->id] == v;
			if (l->last[l->root[v->id]->id] < i)
				l->last[l->root[v->id]->id] = i;
		}
		for (int k = 0; k < n->nin; k++) {
			int root = l->root[n->in[k]->id]->id;

			if (l->last[root] < l->until[i])
				l->last[root] = l->until[i];
		}
	}
	for (int i = 0; i < f->readers.n; i++)
		l->last[l->root[f->readers.at[i].v->id]->id] = l->end;
}

static bool share_ranks(const struct placement *a, const struct placement *b)
{
	for (int i = 0; i < a->nranks; i++)
		if (mesh_index(b, a->rank[i]) >= 0)
			return true;
	return false;
}

static void find_places(struct infer *f, struct arena *a, struct lives *l)
{
	for (int i = 0; i < f->g->nodes.n; i++) {
		const struct placement *on = f->g->nodes.at[i]->on;

		while (l->of[i] < l->nplaces && l->place[l->of[i]] != on)
			l->of[i]++;
		if (l->of[i] == l->nplaces)
			l->place[l->nplaces++] = on;
	}
	l->meet = NEW_N(a, bool, l->nplaces * l->nplaces + 1);
	for (int i = 0; i < l->nplaces; i++)
		for (int k = 0; k < l->nplaces; k++)
			l->meet[i * l->nplaces + k] =
				share_ranks(l->place[i], l->place[k]);
}

static struct lives lives_of(struct infer *f, struct arena *a)
{
	int nnodes = f->g->nodes.n, nvalues = f->g->values.n;
	struct lives l = {.end = nnodes};

	l.root = NEW_N(a, const struct value *, nvalues + 1);
	l.last = NEW_N(a, int, nvalues + 1);
	l.held = NEW_N(a, bool, nvalues + 1);
	l.place = NEW_N(a, const struct placement *, nnodes + 1);
	l.of = NEW_N(a, int, nnodes + 1);
	find_kernels(f, a, &l);
	find_roots(f, &l);
	find_places(f, a, &l);
	return l;
}

/* Bytes by node while it runs, as differences, at one place. */
struct line {
	int64_t *at, fixed;
};

static int64_t rounded(int64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* When port P of a value need not have it any more. */
static int port_end(const struct infer *f, const struct lives *l,
		    const struct port *p)
{
	const struct node *n;

	if (p->var >= l->end)
		return l->end;
	n = f->g->nodes.at[p->var];
	return is_view(f, n) ? l->last[l->root[n->out[0]->id]->id]
			     : l->until[p->var];
}

/* The copies of V that are converted to TO, from port FIRST on: one, between
 * its readers. */
static void add_copy(struct infer *f, const struct lives *l, const int *row,
		     const struct value *v, int first, int to,
		     struct line *line)
{
	const struct port *p = f->port + f->first[v->id];
	const struct port *end = f->port + f->first[v->id + 1];
	int64_t bytes =
		rounded(space_bytes(&f->s, space_type(&f->s, v->type), to));
	int from = p[first].var < l->end ? p[first].var : l->end, last = from;

	for (p += first; p < end && p->nslots; p++)
		for (int k = 0; k < p->nslots; k++) {
			const struct candidates *c = f->list[p->var];
			int want = c->in[row[p->var] * c->nin + p->slot[k]];
			int at = port_end(f, l, p);

			if (want == to && at > last)
				last = at;
		}
	line->at[from] += bytes;
	line->at[last + 1] -= bytes;
}

/* A port before (PORT, SLOT) wants TO. */
static bool wanted_before(const struct infer *f, const int *row,
			  const struct value *v, int port, int slot, int to)
{
	const struct port *p = f->port + f->first[v->id];

	for (int i = 0; i <= port; i++) {
		const struct candidates *c = f->list[p[i].var];

		for (int k = 0; k < (i < port ? p[i].nslots : slot); k++)
			if (c->in[row[p[i].var] * c->nin + p[i].slot[k]] == to)
				return true;
	}
	return false;
}

/* Whether all readers that want V as TO find it in what lies as HAVE. */
static bool is_in_place(const struct infer *f, const int *row,
			const struct value *v, struct price price, int to)
{
	const struct port *p = f->port + f->first[v->id];
	const struct port *end = f->port + f->first[v->id + 1];

	for (; p < end && p->nslots; p++)
		for (int k = 0; k < p->nslots; k++) {
			const struct candidates *c = f->list[p->var];
			int slot = p->slot[k];

			if (c->in[row[p->var] * c->nin + slot] == to &&
			    !(price.in_place >> c->reading[slot] & 1))
				return false;
		}
	return true;
}

static void add_copies(struct infer *f, const struct lives *l, const int *row,
		       const struct value *v, int have, int place,
		       struct line *line)
{
	const struct port *p = f->port + f->first[v->id];
	int n = f->first[v->id + 1] - f->first[v->id];
	int type = space_type(&f->s, v->type);

	for (int i = 0; i < n && p[i].nslots; i++)
		for (int k = 0; k < p[i].nslots; k++) {
			const struct candidates *c = f->list[p[i].var];
			int to = c->in[row[p[i].var] * c->nin + p[i].slot[k]];
			int at = p[i].var < l->end ? l->of[p[i].var] : place;

			if (to != have && l->meet[place * l->nplaces + at] &&
			    !wanted_before(f, row, v, i, k, to) &&
			    !is_in_place(f, row, v,
					 space_price(&f->s, type, have, to),
					 to))
				add_copy(f, l, row, v, i, to, line);
		}
}

static void add_value(struct infer *f, const struct lives *l, const int *row,
		      const struct value *v, int place, struct line *line)
{
	int x = v->def->id;
	const struct candidates *c = f->list[x];
	int have = c->out[row[x] * c->nout + v->index];
	int64_t bytes =
		rounded(space_bytes(&f->s, c->out_type[v->index], have));

	add_copies(f, l, row, v, have, place, line);
	if (!l->held[v->id] || !l->meet[place * l->nplaces + l->of[x]])
		return;
	if (op_is_leaf(v->def->op)) {
		line->fixed += bytes;
		return;
	}
	line->at[x] += bytes;
	line->at[l->last[v->id] + 1] -= bytes;
}

static int64_t line_top(struct line *line, int n)
{
	for (int i = 1; i < n; i++)
		line->at[i] += line->at[i - 1];
	return line->fixed + greatest(line->at, n);
}

/* Bytes on the rank that needs most. WORST, if not NULL, gets its line. */
static int64_t measure(struct infer *f, const struct lives *l, const int *row,
		       struct line *worst)
{
	struct arena *a = arena_new();
	int64_t most = -1;

	for (int place = 0; place < l->nplaces; place++) {
		struct line line = {NEW_N(a, int64_t, l->end + 3), 0};
		int64_t top;

		for (int i = 0; i < f->g->values.n; i++)
			add_value(f, l, row, f->g->values.at[i], place, &line);
		top = line_top(&line, l->end + 1);
		if (top > most && worst) {
			memcpy(worst->at, line.at,
			       sizeof *line.at * (size_t)(l->end + 1));
			worst->fixed = line.fixed;
		}
		most = top > most ? top : most;
	}
	arena_free(a);
	return most;
}

int64_t infer_bytes(struct infer *f, const int *row)
{
	struct arena *a = arena_new();
	struct lives l = lives_of(f, a);
	int64_t bytes = measure(f, &l, row, NULL);

	arena_free(a);
	return bytes;
}

/* ---- prices ---- */

struct choice {
	int *row;
	Cost cost;
	int64_t bytes;
};

struct within {
	struct infer *f;
	struct arena *a;
	struct lives l;
	struct candidates **list;  /* of all prices */
	bool whole;                /* all choices are rows of these lists */
	int64_t limit;             /* to search for, not above f->limit */
	struct choice large, fits; /* row is NULL: none yet */
	struct choice least;       /* of memory */
	Cost bound;
};

/* A value that is not always there weighs as many of the times near the peak
 * as it lives through; so the weighted sum is never above the peak. */
static void set_weights(struct within *w, const struct line *line)
{
	struct infer *f = w->f;
	int *times = NEW_N(w->a, int, w->l.end + 2);
	int64_t top = greatest(line->at, w->l.end + 1);

	for (int i = 0; i <= w->l.end; i++)
		times[i + 1] =
			times[i] + (line->at[i] >= NEAR_PEAK * (double)top);
	for (int i = 0; i < f->g->values.n; i++) {
		const struct value *v = f->g->values.at[i];
		int from = v->def->id, to = w->l.last[v->id];

		if (!w->l.held[v->id])
			f->weight[i] = 0;
		else if (op_is_leaf(v->def->op))
			f->weight[i] = 1;
		else
			f->weight[i] = (double)(times[to + 1] - times[from]) /
				       times[w->l.end + 1];
	}
}

static void note(struct within *w, struct choice c)
{
	if (!w->least.row || c.bytes < w->least.bytes)
		w->least = c;
	if (c.bytes > w->limit) {
		if (!w->large.row || c.bytes < w->large.bytes)
			w->large = c;
	} else if (!w->fits.row || c.cost < w->fits.cost) {
		w->fits = c;
	}
}

/* Solves with this price of a byte. */
static struct choice solve_at(struct within *w, double price, struct line *line)
{
	struct infer *f = w->f;
	double bound;
	struct choice c;

	f->list = w->list;
	f->row = NULL;
	f->byte_price = price;
	infer_choose(f);
	bound = (double)f->bound - price * (double)f->limit;
	if (w->whole && f->bound && bound > (double)w->bound)
		w->bound = (Cost)bound;
	c.row = f->row;
	c.cost = infer_cost(f, f->list, f->row);
	c.bytes = measure(f, &w->l, f->row, line);
	note(w, c);
	return c;
}

/* A price above all that a byte can be worth, and far from overflow. */
static double highest_price(struct within *w)
{
	struct infer *f = w->f;
	double bytes = 1;

	for (int i = 0; i < f->g->values.n; i++)
		bytes += (double)type_bytes(f->g->values.at[i]->type);
	return 0x1p58 / (4 * bytes);
}

static void search(struct within *w)
{
	double last = 0;

	for (int i = 0; i < PRICES && w->large.row && w->fits.row; i++) {
		double more = (double)(w->fits.cost - w->large.cost);
		double price = more / (double)(w->large.bytes - w->fits.bytes);
		struct choice large = w->large, fits = w->fits;

		if (price <= 0 || price == last)
			break;
		last = price;
		solve_at(w, price, NULL);
		if (w->large.row == large.row && w->fits.row == fits.row)
			break;
	}
}

/* The rows of X before node CUT, those of Y from there on. */
static struct choice mix(struct within *w, const int *x, const int *y, int cut)
{
	struct infer *f = w->f;
	struct choice c = {.row = NEW_N(f->a, int, f->nvars + 1)};

	for (int i = 0; i < f->nvars; i++)
		c.row[i] = i < cut ? x[i] : y[i];
	c.cost = infer_cost(f, f->list, c.row);
	c.bytes = measure(f, &w->l, c.row, NULL);
	note(w, c);
	return c;
}

/* Where between the two the limit is met. */
static void search_cuts(struct within *w)
{
	const int *large = w->large.row, *fits = w->fits.row;
	int nnodes = w->f->g->nodes.n;

	for (int side = 0; side < 2; side++) {
		int lo = 0, hi = nnodes; /* nodes as in `large` */

		while (lo < hi) {
			int mid = (lo + hi + 1) / 2;
			struct choice c =
				side ? mix(w, fits, large, nnodes - mid)
				     : mix(w, large, fits, mid);

			if (c.bytes > w->limit)
				hi = mid - 1;
			else
				lo = mid;
		}
	}
}

/* The best row of X, all else being as in ROW: the first that fits at the
 * least cost, or else that needs least bytes. */
static bool better_row(struct within *w, int *row, int x, int *tries)
{
	struct infer *f = w->f;
	int best = row[x];
	struct choice now = {row, infer_cost(f, f->list, row),
			     measure(f, &w->l, row, NULL)};
	bool better = false;

	for (int i = 0; i < f->list[x]->n && --*tries > 0; i++) {
		struct choice c = now;
		bool fits;

		row[x] = i;
		c.bytes = measure(f, &w->l, row, NULL);
		fits = c.bytes <= w->limit;
		if (!fits && c.bytes >= now.bytes)
			continue;
		c.cost = infer_cost(f, f->list, row);
		if (fits && now.bytes <= w->limit && c.cost >= now.cost)
			continue;
		now = c;
		best = i;
		better = true;
	}
	row[x] = best;
	return better;
}

/* From the least that was found, node by node, while tries are left. */
static void squeeze(struct within *w, int *tries)
{
	struct infer *f = w->f;
	struct choice from = w->fits.row ? w->fits : w->least, c = from;
	bool better = true;

	c.row = NEW_N(f->a, int, f->nvars + 1);
	memcpy(c.row, from.row, sizeof *c.row * (size_t)f->nvars);
	while (better && *tries > 0) {
		better = false;
		for (int x = 0; x < f->nvars && *tries > 0; x++)
			if (f->list[x] && f->list[x]->n > 1)
				better |= better_row(w, c.row, x, tries);
	}
	c.cost = infer_cost(f, f->list, c.row);
	c.bytes = measure(f, &w->l, c.row, NULL);
	note(w, c);
}

static void settle(struct within *w)
{
	struct infer *f = w->f;
	struct choice c = w->fits.row ? w->fits : w->least;

	f->byte_price = 0;
	f->row = c.row;
	f->cost = c.cost;
	f->bytes = c.bytes;
	f->bound = w->bound < c.cost ? w->bound : c.cost;
	f->exact = f->bound == f->cost;
}

void infer_within(struct infer *f)
{
	struct within w = {.f = f,
			   .a = arena_new(),
			   .list = f->list,
			   .whole = true,
			   .limit = f->limit};
	struct line line;
	struct choice c;
	int tries = TRIES;

	w.l = lives_of(f, w.a);
	line.at = NEW_N(w.a, int64_t, w.l.end + 3);
	for (int x = 0; x < f->nvars; x++)
		w.whole &= !f->list[x] || f->list[x]->whole;
	f->weight = NEW_N(f->a, double, f->g->values.n + 1);
	c = solve_at(&w, 0, &line);
	if (!w.fits.row) {
		w.limit -= w.limit / MARGIN;
		set_weights(&w, &line);
		c = solve_at(&w, highest_price(&w), &line);
		if (c.bytes > w.limit) {
			set_weights(&w, &line);
			solve_at(&w, highest_price(&w), &line);
		}
		search(&w);
		if (w.whole && w.fits.row && w.large.row)
			search_cuts(&w);
		if (w.whole)
			squeeze(&w, &tries);
	}
	settle(&w);
	arena_free(w.a);
}
