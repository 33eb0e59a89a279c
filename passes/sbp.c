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
 */
#include <string.h>

#include "passes/passes.h"

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

		if (!v->dist.on && op_is_leaf(v->def->op))
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

/* Values that no input reaches are weights, or made of them. */
static void find_fixed(struct infer *f)
{
	struct graph *g = f->g;

	f->fixed = NEW_N(f->a, bool, g->nodes.n + 1);
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		bool fixed = n->op != OP_input;

		for (int k = 0; k < n->nin; k++)
			fixed &= f->fixed[n->in[k]->def->id];
		f->fixed[i] = fixed;
	}
}

static struct request request_of(struct infer *f, const struct node *n,
				 unsigned inner)
{
	struct request r = {.n = n, .inner = inner, .fixed = f->fixed[n->id]};

	if (n->nout && n->out[0]->dist.on)
		r.want = n->out[0]->dist;
	for (int i = 0; i < n->nin; i++)
		r.reach |= f->reach[n->in[i]->id];
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
			node_note(n, i, arena_text(f->a, " on %s",
						   dist_text(n->in[i]->dist)));
	if (!dist_known(want) || dist_why_not(want, n->out[0]->type))
		return;
	for (int i = 0; i < c->n; i++) {
		struct price p = candidates_price(&f->s, c, 0, i, to);
		Cost x = c->cost[i] + p.receive + p.copy;

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
	bool ok = true;

	f->inner = inside_bits(g, f->a);
	find_fixed(f);
	for (int i = 0; i < g->nodes.n; i++) {
		struct node *n = g->nodes.at[i];
		struct candidates *c;

		if (!n->on)
			n->on = g->on;
		c = candidates_of(&f->s, request_of(f, n, f->inner[i]));
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

/* ---- deciding ---- */

static Cost price(void *data, int x, int row)
{
	struct infer *f = data;
	struct arena *a = arena_new();
	int chosen = f->row[x];
	Cost c;

	f->row[x] = row;
	c = infer_cost_around(f, a, x);
	f->row[x] = chosen;
	arena_free(a);
	return c;
}

static int64_t weigh(void *data, const int *row)
{
	return infer_bytes(data, row);
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
	if (f->limit)
		infer_within(f);
	else
		infer_choose(f);
	return true;
}

void sbp_decide(struct graph *g, int64_t limit,
		void (*look)(const struct decision *d, void *data), void *data)
{
	struct infer f = {.g = g, .a = arena_new(), .limit = limit};

	check_requests(g);
	if (!diag_errors() && decide(&f)) {
		struct decision d = {
			.g = g, .space = &f.s, .nvars = f.nvars,
			.nreaders = f.readers.n, .reader = f.readers.at,
			.list = f.list, .row = f.row, .cost = f.cost,
			.bound = f.bound, .exact = f.exact,
			.limit = f.limit, .bytes = f.bytes,
			.price = price, .weigh = weigh, .data = &f};

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
	struct program *p = data;

	p->memory_estimate = d->bytes;
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
	int64_t aim = p->memory_aim ? p->memory_aim : p->memory_limit;

	p->g->reproducible = p->reproducible;
	sbp_decide(p->g, aim, write_choice, p);
}
