/*
 * sbp.c: chooses a distribution for every value and for every input of every
 * node, so that the predicted seconds of the whole graph, communication plus
 * computation, are least. Annotations are constraints.
 *
 * Each node is a variable whose domain is its list of candidates. Each value
 * gives a table over its producer and its readers: what converting costs. A
 * value that several readers want in one distribution is received once, so
 * such a table covers them together. pbqp.c finds the least sum.
 *
 * Outputs and updates are readers outside the graph: an output is never left
 * partial, the new value of a state lies as the state. Where what was chosen
 * differs, a `to` is added for them.
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
	POLISH = 3,		/* rounds of improving node by node */
	CROWD = 64,		/* readers */
};

struct infer {
	struct graph *g;
	struct arena *a;
	struct space s;
	int nvars;			/* nodes by id, then readers */
	struct candidates **list;
	int *row;			/* the choice */
	LIST(struct reader) readers;
	int *first;			/* by value id: where its ports start */
	struct port *port;
	unsigned char *reach;		/* by value id */
	bool exact;
	Cost cost;
};

/* ---- annotations ---- */

static const char *value_name(const struct value *v)
{
	return v->name ? v->name : op_info(v->def->op)->name;
}

static Span value_span(const struct value *v)
{
	return v->span.hi ? v->span : v->def->span;
}

static void check_request(const struct value *v)
{
	const char *why = dist_why_not(v->dist, v->type);

	if (why)
		diag_error(value_span(v), "'%s' cannot lie as %s: %s",
			   value_name(v), dist_text(v->dist), why);
	else if (dist_has(v->dist, SBP_P) &&
		 (v->def->op == OP_param || v->def->op == OP_state))
		diag_error(value_span(v),
			   "%s '%s' cannot lie as %s: it is stored whole, so "
			   "B or S was expected",
			   op_info(v->def->op)->name, value_name(v),
			   dist_text(v->dist));
}

static bool is_leaf(enum op op)
{
	return op == OP_input || op == OP_param || op == OP_state ||
	       op == OP_constant;
}

/* The new value of a state lies as the old one, so '_' is B there. */
static void fix_states(struct graph *g)
{
	for (int i = 0; i < g->updates.n; i++) {
		struct value *v = g->updates.at[i].state;

		for (int k = 0; v->dist.on && k < v->dist.on->naxes; k++)
			if (v->dist.t[k].kind == SBP_ANY)
				v->dist.t[k] = sbp_b();
	}
}

static void check_requests(struct graph *g)
{
	fix_states(g);
	for (int i = 0; i < g->values.n; i++) {
		struct value *v = g->values.at[i];

		if (!v->dist.on && is_leaf(v->def->op))
			v->dist = dist_on(v->def->on ? v->def->on : g->on,
					  sbp_b());
		else if (v->dist.on)
			check_request(v);
	}
}

/* ---- who reads what ---- */

static void add_readers(struct infer *f)
{
	struct graph *g = f->g;

	for (int i = 0; i < g->outputs.n; i++)
		PUSH(f->a, f->readers,
		     (struct reader){g->outputs.at[i].v, i, -1});
	for (int i = 0; i < g->updates.n; i++)
		PUSH(f->a, f->readers,
		     (struct reader){g->updates.at[i].v, -1, i});
	f->nvars = g->nodes.n + f->readers.n;
}

/* One port for each node that reads a value, with all inputs that do. */
static void port_add(struct infer *f, int *n, const struct value *v, int var,
		     int slot, int nslots)
{
	int at = f->first[v->id] + n[v->id];
	struct port *last = n[v->id] ? &f->port[at - 1] : NULL;

	if (last && last->var == var) {
		last->slot[last->nslots++] = slot;
		return;
	}
	f->port[at] = (struct port){var, 1, NEW_N(f->a, int, nslots)};
	f->port[at].slot[0] = slot;
	n[v->id]++;
}

static void count_ports(struct infer *f)
{
	struct graph *g = f->g;
	int total = 0;
	int *n = NEW_N(f->a, int, g->values.n + 1);

	for (int i = 0; i < g->nodes.n; i++)
		for (int k = 0; k < g->nodes.at[i]->nin; k++)
			n[g->nodes.at[i]->in[k]->id]++;
	for (int i = 0; i < f->readers.n; i++)
		n[f->readers.at[i].v->id]++;
	f->first = NEW_N(f->a, int, g->values.n + 1);
	for (int i = 0; i < g->values.n; i++) {
		f->first[i] = total;
		total += n[i];
	}
	f->first[g->values.n] = total;
	f->port = NEW_N(f->a, struct port, total + 1);
}

/* Readers that turn out to want nothing have no list, and no port. */
static void add_ports(struct infer *f)
{
	struct graph *g = f->g;
	int *n = NEW_N(f->a, int, g->values.n + 1);

	for (int i = 0; i < g->nodes.n; i++) {
		struct node *m = g->nodes.at[i];

		for (int k = 0; k < m->nin; k++)
			port_add(f, n, m->in[k], i, k, m->nin - k);
	}
	for (int i = 0; i < f->readers.n; i++)
		if (f->list[g->nodes.n + i])
			port_add(f, n, f->readers.at[i].v, g->nodes.n + i, 0,
				 1);
}

/* ---- lists of candidates ---- */

struct chains {
	int *uses;
	struct node **reader;	/* by value id: the last node that reads it */
};

/* A chain of elementwise operators passes over memory once: what one hands to
 * its only reader stays in registers. A product reads its operands as they
 * are permuted. */
static bool stays_inside(const struct chains *c, const struct value *v)
{
	const struct node *to = c->reader[v->id];
	enum kernel_kind kind;

	if (c->uses[v->id] != 1 || !to)
		return false;
	if (v->def->op == OP_permute)
		return to->op == OP_matmul;
	kind = op_info(to->op)->kernel;
	return op_info(v->def->op)->kernel == K_MAP &&
	       (kind == K_MAP || kind == K_FOLD);
}

static struct chains find_chains(struct infer *f)
{
	struct graph *g = f->g;
	struct chains c = {graph_uses(g, f->a),
			   NEW_N(f->a, struct node *, g->values.n + 1)};

	for (int i = 0; i < g->nodes.n; i++)
		for (int k = 0; k < g->nodes.at[i]->nin; k++)
			c.reader[g->nodes.at[i]->in[k]->id] = g->nodes.at[i];
	return c;
}

static struct request request_of(struct infer *f, const struct node *n,
				 const struct chains *c)
{
	struct request r = {.n = n};

	if (n->nout && n->out[0]->dist.on)
		r.want = n->out[0]->dist;
	for (int i = 0; i < n->nin; i++) {
		r.reach |= f->reach[n->in[i]->id];
		if (n->op != OP_matmul && stays_inside(c, n->in[i]))
			r.inner |= 1u << (i < 15 ? i : 15);
	}
	for (int i = 0; i < n->nout; i++)
		if (stays_inside(c, n->out[i]))
			r.inner |= 1u << (i < 15 ? 16 + i : 31);
	return r;
}

/* The prices of the nearest signatures, cheapest first, would tell more than
 * the first one; but only a request on an operator's own output gets here. */
static void no_candidate(struct infer *f, const struct node *n)
{
	struct request r = {.n = n};
	struct candidates *c = candidates_of(&f->s, r);
	Dist want = n->out[0]->dist;
	int to = space_dist(&f->s, want), best = 0;
	Cost least = -1;

	diag_error(n->span, "%s: no legal distribution of the operands gives "
		   "%s", op_info(n->op)->name, dist_text(want));
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]->dist.on)
			node_note(n, i, dist_text(n->in[i]->dist));
	if (!dist_known(want) || dist_why_not(want, n->out[0]->type))
		return;
	for (int i = 0; i < c->n; i++) {
		Cost x = c->cost[i] + space_receive(&f->s, c->out_type[0],
						    c->out[i], to);

		if (least < 0 || x < least) {
			least = x;
			best = i;
		}
	}
	diag_hint("the nearest that is legal gives %s; converting it receives "
		  "%lld bytes on the busiest rank",
		  dist_text(f->s.dists.at[c->out[best]]),
		  (long long)boxing_bound(n->out[0]->type,
					  f->s.dists.at[c->out[best]], want));
}

static bool may_be_partial(struct infer *f, const struct candidates *c)
{
	for (int i = 0; i < c->n * c->nout; i++)
		if (dist_has(f->s.dists.at[c->out[i]], SBP_P))
			return true;
	return !c->whole;
}

/* NULL where any distribution will do. */
static struct candidates *reader_list(struct infer *f, const struct reader *r)
{
	struct request q = {.type = r->v->type};
	struct candidates *from = f->list[r->v->def->id];

	if (r->update >= 0) {
		q.want = f->g->updates.at[r->update].state->dist;
		return candidates_of(&f->s, q);
	}
	if (r->v->dist.on && dist_has(r->v->dist, SBP_P))
		return NULL;
	if (!may_be_partial(f, from))
		return NULL;
	q.want = dist_on(from->n ? f->s.dists.at[from->out[0]].on :
			 r->v->def->on, sbp_any());
	return candidates_of(&f->s, q);
}

static bool make_lists(struct infer *f)
{
	struct graph *g = f->g;
	struct chains chains = find_chains(f);
	bool ok = true;

	for (int i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.at[i];
		struct candidates *c;

		c = candidates_of(&f->s, request_of(f, n, &chains));
		f->list[i] = c;
		if (!c->n)
			no_candidate(f, n);
		ok &= c->n > 0;
		for (int k = 0; k < n->nout; k++)
			f->reach[n->out[k]->id] = (unsigned char)c->reach;
	}
	for (int i = 0; i < f->readers.n && ok; i++)
		f->list[g->nodes.n + i] = reader_list(f, &f->readers.at[i]);
	return ok;
}

/* ---- solving ---- */

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

static void add_value(struct infer *f, struct arena *a, struct pbqp *q,
		      struct candidates **list, const struct value *v)
{
	struct fan w = fan_of(f, list, v, a);
	const struct fan_tables *t;
	int set;

	if (!w.nports)
		return;
	t = fan_find(&f->s, &w);
	f->exact &= t->exact;
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
}

/* Solves over LIST and leaves the rows in ROW. */
static void solve(struct infer *f, struct candidates **list, int *row)
{
	struct arena *a = arena_new();
	int *domain = NEW_N(a, int, f->nvars + 1), *choice;
	struct pbqp_result r;
	struct pbqp *q;

	for (int i = 0; i < f->nvars; i++)
		domain[i] = list[i] ? list[i]->n : 1;
	q = pbqp_new(a, f->nvars, domain);
	for (int i = 0; i < f->nvars; i++)
		if (list[i])
			pbqp_add(q, 1, &i, list[i]->cost);
	for (int i = 0; i < f->g->values.n; i++)
		add_value(f, a, q, list, f->g->values.at[i]);
	choice = NEW_N(a, int, f->nvars + f->g->values.n + 1);
	r = pbqp_solve(q, TABLE_MAX, choice);
	memcpy(row, choice, sizeof *row * (size_t)f->nvars);
	f->exact &= r.cost == r.bound;
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

static Cost total_cost(struct infer *f, struct candidates **list,
		       const int *row)
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

/* What depends on the row of variable X. */
static Cost cost_around(struct infer *f, struct arena *a, int x)
{
	Cost sum = f->list[x]->cost[f->row[x]];
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
	Cost least = cost_around(f, a, x);
	bool better = false;

	for (int i = 0; i < f->list[x]->n; i++) {
		Cost c;

		f->row[x] = i;
		c = cost_around(f, a, x);
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
		list[x] = candidates_only(&f->s, all[x], row[x]);
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

static void choose(struct infer *f)
{
	bool whole = true;

	f->exact = true;
	for (int i = 0; i < f->nvars; i++)
		whole &= !f->list[i] || f->list[i]->whole;
	take(f, f->list);
	f->exact &= whole;
	for (int round = 0; !whole && round < ROUNDS && move_on(f); round++)
		;
	if (!f->exact) {
		settle_wide(f);
		polish(f);
		f->cost = total_cost(f, f->list, f->row);
	}
}

/* ---- deciding ---- */

static Cost price(void *data, int x, int row)
{
	struct infer *f = data;
	struct arena *a = arena_new();
	int chosen = f->row[x];
	Cost c;

	f->row[x] = row;
	c = cost_around(f, a, x);
	f->row[x] = chosen;
	arena_free(a);
	return c;
}

static bool decide(struct infer *f)
{
	struct graph *g = f->g;

	space_init(&f->s, f->a, g);
	add_readers(f);
	count_ports(f);
	f->list = NEW_N(f->a, struct candidates *, f->nvars + 1);
	f->reach = NEW_N(f->a, unsigned char, g->values.n + 1);
	if (!make_lists(f))
		return false;
	add_ports(f);
	choose(f);
	return true;
}

void sbp_decide(struct graph *g, void (*look)(const struct decision *d,
					      void *data), void *data)
{
	struct infer f = {.g = g, .a = arena_new()};

	check_requests(g);
	if (!diag_errors() && decide(&f)) {
		struct decision d = {
			.g = g, .space = &f.s, .nvars = f.nvars,
			.nreaders = f.readers.n, .reader = f.readers.at,
			.list = f.list, .row = f.row, .cost = f.cost,
			.exact = f.exact, .price = price, .data = &f};

		look(&d, data);
	}
	space_done(&f.s);
	arena_free(f.a);
}

/* ---- writing the choice into the graph ---- */

static Dist chosen_in(const struct decision *d, int x, int i)
{
	const struct candidates *c = d->list[x];

	return d->space->dists.at[c->in[d->row[x] * c->nin + i]];
}

static void write_node(const struct decision *d, struct node *n)
{
	const struct candidates *c = d->list[n->id];
	const int *out = c->out + d->row[n->id] * c->nout;

	if (n->nin)
		n->in_dist = NEW_N(d->g->arena, Dist, n->nin);
	for (int i = 0; i < n->nin; i++)
		n->in_dist[i] = chosen_in(d, n->id, i);
	for (int i = 0; i < n->nout; i++)
		n->out[i]->dist = d->space->dists.at[out[i]];
	if (!n->on && n->nout)
		n->on = n->out[0]->dist.on;
}

/* V as D, by a new node. */
static struct value *convert(struct graph *g, struct value *v, Dist d,
			     Span span)
{
	struct node *n = node_make(g, OP_to, span, 1, &v, 1, &v->type);

	n->on = d.on;
	n->trail = v->def->trail;
	n->in_dist = NEW(g->arena, Dist);
	n->in_dist[0] = d;
	n->out[0]->dist = d;
	n->out[0]->name = v->name;
	n->out[0]->span = v->span;
	return n->out[0];
}

static void write_reader(struct graph *g, struct reader r, Dist d)
{
	if (dist_eq(d, r.v->dist))
		return;
	if (r.output >= 0)
		g->outputs.at[r.output].v =
			convert(g, r.v, d, g->outputs.at[r.output].span);
	else
		g->updates.at[r.update].v =
			convert(g, r.v, d, g->updates.at[r.update].span);
}

static void write_choice(const struct decision *d, void *data)
{
	int nnodes = d->nvars - d->nreaders;
	const struct program *p = data;

	if (p->explain)
		explain_print(d, p->explain);
	for (int i = 0; i < nnodes; i++)
		write_node(d, d->g->nodes.at[i]);
	for (int i = 0; i < d->nreaders; i++)
		if (d->list[nnodes + i])
			write_reader(d->g, d->reader[i],
				     chosen_in(d, nnodes + i, 0));
}

void pass_sbp(struct program *p)
{
	sbp_decide(p->g, write_choice, p);
}
