/*
 * choose.c: the least sum over all variables of inference, by pbqp.c.
 *
 * On meshes whose lists would be too long a list is the neighbourhood of one
 * candidate. The graph is then solved again around the last solution until
 * nothing gets better.
 */
#include <string.h>

#include "passes/passes.h"

enum {
	TABLE_MAX = 3000000,	/* entries of one table */
	ROUNDS = 16,		/* of moving neighbourhoods, at most */
	PRUNE = 4,		/* rounds of pruning */
	POLISH = 3,		/* rounds of improving node by node */
	CROWD = 64,		/* readers */
};

/* ---- fans ---- */

static struct fan fan_of(struct infer *f, struct candidates **list,
			 const struct value *v, struct arena *a)
{
	struct fan w = {0};
	const struct port *end = f->port + f->first[v->id + 1];

	w.type = space_type(&f->s, v->type);
	w.out = v->index;
	w.from = list[v->def->id];
	w.port = f->port + f->first[v->id];
	while (w.port + w.nports < end && w.port[w.nports].nslots)
		w.nports++;
	w.to = NEW_N(a, const struct candidates *, w.nports + 1);
	for (int i = 0; i < w.nports; i++)
		w.to[i] = list[w.port[i].var];
	return w;
}

/* Whether nothing that its readers share is counted twice. */
static bool add_value(struct infer *f, struct arena *a, struct pbqp *q,
		      struct candidates **list, const struct value *v)
{
	struct fan w = fan_of(f, list, v, a);
	const struct fan_tables *t;
	int set;

	if (!w.nports)
		return true;
	t = fan_find(&f->s, &w);
	set = t->sets ? pbqp_variable(q, t->sets) : -1;
	for (int i = 0; i < t->n; i++) {
		const struct fan_table *b = &t->at[i];
		int *var = NEW_N(a, int, b->nports + 2), n = 0;

		var[n++] = v->def->id;
		if (b->set)
			var[n++] = set;
		for (int k = 0; k < b->nports; k++)
			var[n++] = w.port[b->first + k].var;
		pbqp_add(q, n, var, b->at);
	}
	return t->exact;
}

/* ---- the price of memory ---- */

/* What row ROW of C, a list of variable X, costs beyond its own. */
static Cost memory_cost(struct infer *f, int x, const struct candidates *c,
			int row)
{
	double sum = 0;

	if (f->byte_price == 0 || x >= f->g->nodes.n)
		return 0;
	for (int i = 0; i < c->nout; i++) {
		int id = f->g->nodes.at[x]->out[i]->id;

		if (f->weight[id] > 0)
			sum += f->weight[id] * (double)space_bytes(
				&f->s, c->out_type[i],
				c->out[row * c->nout + i]);
	}
	return (Cost)(f->byte_price * sum + 0.5);
}

static struct candidates *priced(struct infer *f, struct arena *a, int x,
				 struct candidates *c)
{
	Cost *more, any = 0;

	if (f->byte_price == 0 || !c)
		return c;
	more = NEW_N(a, Cost, c->n + 1);
	for (int i = 0; i < c->n; i++)
		any |= more[i] = memory_cost(f, x, c, i);
	return any ? candidates_dearer(&f->s, c, more) : c;
}

/* ---- pruning ---- */

/* By variable: what each of its inputs, then outputs, may cost. */
static void place_gaps(struct infer *f, struct arena *a,
		       struct candidates **list, struct gap ***gap)
{
	for (int i = 0; i < f->g->values.n; i++) {
		const struct value *v = f->g->values.at[i];
		struct fan w = fan_of(f, list, v, a);
		struct gap *g = fan_gaps(&f->s, &w);

		gap[v->def->id][v->def->nin + v->index] = g++;
		for (int k = 0; k < w.nports; k++)
			for (int j = 0; j < w.port[k].nslots; j++)
				gap[w.port[k].var][w.port[k].slot[j]] = g++;
	}
}

static bool prune_all(struct infer *f, struct candidates **list)
{
	struct arena *a = arena_new();
	struct gap ***gap = NEW_N(a, struct gap **, f->nvars + 1);
	bool pruned = false;

	for (int x = 0; x < f->nvars; x++)
		if (list[x])
			gap[x] = NEW_N(a, struct gap *,
				       list[x]->nin + list[x]->nout + 1);
	place_gaps(f, a, list, gap);
	for (int x = 0; x < f->nvars; x++) {
		struct candidates *c = list[x];

		if (!c)
			continue;
		list[x] = candidates_pruned(&f->s, c, gap[x],
					    c->nin + c->nout);
		pruned |= list[x] != c;
	}
	arena_free(a);
	return pruned;
}

/* ---- solving ---- */

static void solve_pruned(struct infer *f, struct candidates **list, int *row)
{
	struct arena *a = arena_new();
	int *domain = NEW_N(a, int, f->nvars + 1), *choice;
	struct pbqp_result r;
	struct pbqp *q;
	bool counted = true;

	for (int i = 0; i < f->nvars; i++)
		domain[i] = list[i] ? list[i]->n : 1;
	q = pbqp_new(a, f->nvars, domain);
	for (int i = 0; i < f->nvars; i++)
		if (list[i])
			pbqp_add(q, 1, &i, list[i]->cost);
	for (int i = 0; i < f->g->values.n; i++)
		counted &= add_value(f, a, q, list, f->g->values.at[i]);
	choice = NEW_N(a, int, f->nvars + f->g->values.n + 1);
	r = pbqp_solve(q, TABLE_MAX, choice);
	memcpy(row, choice, sizeof *row * (size_t)f->nvars);
	f->exact &= counted && r.cost == r.bound;
	f->bound = counted ? r.bound : 0;
	arena_free(a);
}

/* The row of ALL that is row ROW of its selection SOME. */
static int row_in(const struct candidates *all, const struct candidates *some,
		  int row)
{
	int i = 0;

	if (!all->row)
		return some->row[row];
	while (all->row[i] != some->row[row])
		i++;
	return i;
}

/* Solves over LIST and leaves the rows in ROW. */
static void solve(struct infer *f, struct candidates **list, int *row)
{
	struct arena *a = arena_new();
	struct candidates **some = NEW_N(a, struct candidates *, f->nvars + 1);
	struct candidates **all = NEW_N(a, struct candidates *, f->nvars + 1);

	for (int x = 0; x < f->nvars; x++)
		some[x] = all[x] = priced(f, a, x, list[x]);
	for (int round = 0; round < PRUNE && prune_all(f, some); round++)
		;
	solve_pruned(f, some, row);
	for (int x = 0; x < f->nvars; x++)
		if (some[x] != all[x])
			row[x] = row_in(all[x], some[x], row[x]);
	arena_free(a);
}

static Cost value_cost(struct infer *f, struct arena *a,
		       struct candidates **list, const int *row,
		       const struct value *v)
{
	struct fan w = fan_of(f, list, v, a);
	int *to = NEW_N(a, int, w.nports + 1);

	for (int i = 0; i < w.nports; i++)
		to[i] = row[w.port[i].var];
	return fan_cost(&f->s, &w, row[v->def->id], to);
}

Cost infer_cost(struct infer *f, struct candidates **list, const int *row)
{
	struct arena *a = arena_new();
	Cost sum = 0;

	for (int i = 0; i < f->nvars; i++)
		if (list[i])
			sum += list[i]->cost[row[i]];
	for (int i = 0; i < f->g->values.n; i++)
		sum += value_cost(f, a, list, row, f->g->values.at[i]);
	arena_free(a);
	return sum;
}

static Cost total_cost(struct infer *f, struct candidates **list,
		       const int *row)
{
	Cost sum = infer_cost(f, list, row);

	for (int x = 0; x < f->nvars; x++)
		if (list[x])
			sum += memory_cost(f, x, list[x], row[x]);
	return sum;
}

Cost infer_cost_around(struct infer *f, struct arena *a, int x)
{
	Cost sum = f->list[x]->cost[f->row[x]] +
		   memory_cost(f, x, f->list[x], f->row[x]);
	struct node *n;

	if (x >= f->g->nodes.n)
		return sum + value_cost(f, a, f->list, f->row,
					f->readers.at[x - f->g->nodes.n].v);
	n = f->g->nodes.at[x];
	for (int i = 0; i < n->nout; i++)
		sum += value_cost(f, a, f->list, f->row, n->out[i]);
	for (int i = 0; i < n->nin; i++)
		sum += value_cost(f, a, f->list, f->row, n->in[i]);
	return sum;
}

static bool improve(struct infer *f, int x)
{
	struct arena *a = arena_new();
	int best = f->row[x];
	Cost least = infer_cost_around(f, a, x);
	bool better = false;

	for (int i = 0; i < f->list[x]->n; i++) {
		Cost c;

		f->row[x] = i;
		c = infer_cost_around(f, a, x);
		if (c >= least)
			continue;
		least = c;
		best = i;
		better = true;
	}
	f->row[x] = best;
	arena_free(a);
	return better;
}

/* A node that reads a value with very many readers costs too much to price. */
static bool is_crowded(struct infer *f, int x)
{
	const struct node *n;

	if (x >= f->g->nodes.n)
		return false;
	n = f->g->nodes.at[x];
	for (int i = 0; i < n->nin + n->nout; i++) {
		const struct value *v = i < n->nin ? n->in[i] :
					n->out[i - n->nin];

		if (f->first[v->id + 1] - f->first[v->id] > CROWD)
			return true;
	}
	return false;
}

/* Where the solution is not known to be the best: node by node. */
static void polish(struct infer *f)
{
	bool better = true;

	for (int round = 0; round < POLISH && better; round++) {
		better = false;
		for (int x = 0; x < f->nvars; x++)
			if (f->list[x] && f->list[x]->n > 1 &&
			    !is_crowded(f, x))
				better |= improve(f, x);
	}
}

/* Solves over LIST; takes the solution if it is better than the last. */
static bool take(struct infer *f, struct candidates **list)
{
	int *row = NEW_N(f->a, int, f->nvars + 1);
	Cost c;

	solve(f, list, row);
	c = total_cost(f, list, row);
	if (f->row && c >= f->cost)
		return false;
	f->list = list;
	f->row = row;
	f->cost = c;
	return true;
}

/* Solves around the last solution; false when nothing gets better. */
static bool move_on(struct infer *f)
{
	struct candidates **near = NEW_N(f->a, struct candidates *, f->nvars);

	for (int i = 0; i < f->nvars; i++)
		if (f->list[i])
			near[i] = candidates_near(&f->s, f->list[i], f->row[i]);
	return take(f, near);
}

/* The producers of values with very many readers keep what they have; then
 * what readers share can be counted. */
static void settle_wide(struct infer *f)
{
	struct candidates **list = NEW_N(f->a, struct candidates *, f->nvars);
	struct candidates **all = f->list;
	struct arena *a = arena_new();
	int *row = f->row;
	bool any = false;

	memcpy(list, all, sizeof *list * (size_t)f->nvars);
	for (int i = 0; i < f->g->values.n; i++) {
		const struct value *v = f->g->values.at[i];
		struct fan w = fan_of(f, list, v, a);
		int x = v->def->id;

		if (!fan_is_wide(&w))
			continue;
		list[x] = candidates_some(&f->s, all[x], &row[x], 1);
		any = true;
	}
	arena_free(a);
	if (!any || !take(f, list))
		return;
	for (int x = 0; x < f->nvars; x++)
		if (list[x] != all[x])
			f->row[x] = row[x];
	f->list = all;
}

void infer_choose(struct infer *f)
{
	bool whole = true;
	Cost bound;

	f->exact = true;
	for (int i = 0; i < f->nvars; i++)
		whole &= !f->list[i] || f->list[i]->whole;
	take(f, f->list);
	bound = whole ? f->bound : 0;
	f->exact &= whole;
	for (int round = 0; !whole && round < ROUNDS && move_on(f); round++)
		;
	if (!f->exact) {
		settle_wide(f);
		polish(f);
		f->cost = total_cost(f, f->list, f->row);
	}
	f->bound = f->exact ? f->cost : bound;
}
