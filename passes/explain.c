/*
 * explain.c: --explain. For each operator what inference chose, how its
 * operands get there, which other signatures were next and by how much they
 * cost more with all else as it is, and why operands could not be taken as
 * they lie.
 */
#include <math.h>
#include <string.h>

#include "passes/passes.h"

enum { SHOWN = 3 };		/* rejected alternatives of an operator */

static const char *tensor_name(const struct value *v)
{
	return v->name ? v->name : op_info(v->def->op)->name;
}

static Dist row_in(const struct decision *d, const struct candidates *c,
		   int row, int i)
{
	return d->space->dists.at[c->in[row * c->nin + i]];
}

static Dist row_out(const struct decision *d, const struct candidates *c,
		    int row, int i)
{
	return d->space->dists.at[c->out[row * c->nout + i]];
}

static Dist lies_as(const struct decision *d, const struct value *v)
{
	int id = v->def->id;

	return row_out(d, d->list[id], d->row[id], v->index);
}

static void print_seconds(double s, FILE *out)
{
	if (fabs(s) < 1e-3)
		fprintf(out, "%.2f us", s * 1e6);
	else if (fabs(s) < 1)
		fprintf(out, "%.2f ms", s * 1e3);
	else
		fprintf(out, "%.2f s", s);
}

/* "(B, S(0)), (B, B) -> (B, S(0))" */
static void print_row(const struct decision *d, const struct candidates *c,
		      int row, FILE *out)
{
	for (int i = 0; i < c->nin; i++)
		fprintf(out, "%s%s", i ? ", " : "",
			dist_terms(row_in(d, c, row, i)));
	for (int i = 0; i < c->nout; i++)
		fprintf(out, "%s%s", i ? ", " : c->nin ? " -> " : "",
			dist_terms(row_out(d, c, row, i)));
}

/* How operand I gets to what row ROW wants. */
static void print_operand(const struct decision *d, const struct node *n,
			  int row, int i, FILE *out)
{
	Dist from = lies_as(d, n->in[i]);
	Dist to = row_in(d, d->list[n->id], row, i);
	struct boxing b = {.type = n->in[i]->type, .from = from, .to = to,
			   .value = tensor_name(n->in[i]), .span = n->span};

	fprintf(out, "    %-10s%s: %s", i ? "" : "operands",
		tensor_name(n->in[i]), type_text(n->in[i]->type));
	if (dist_eq(from, to)) {
		fprintf(out, " %s, as it lies\n", dist_terms(from));
		return;
	}
	plan_boxing(&b);
	fprintf(out, " %s -> ", placement_eq(from.on, to.on) ?
		dist_terms(from) : dist_text(from));
	fprintf(out, "%s by %s, %lld bytes on the busiest rank\n",
		placement_eq(from.on, to.on) ? dist_terms(to) : dist_text(to),
		b.algorithm && *b.algorithm ? b.algorithm : "a local copy",
		(long long)b.recv_busiest);
}

/* The row that takes all operands as they lie, or -1. */
static int row_as_they_lie(const struct decision *d, const struct node *n)
{
	const struct candidates *c = d->list[n->id];

	for (int row = 0; row < c->n; row++) {
		int i = 0;

		while (i < c->nin && dist_eq(row_in(d, c, row, i),
					     lies_as(d, n->in[i])))
			i++;
		if (i == c->nin)
			return row;
	}
	return -1;
}

static void print_illegal(const struct decision *d, const struct node *n,
			  FILE *out)
{
	const struct candidates *c = d->list[n->id];
	Dist *in, *to;
	struct arena *a;
	const char *why;

	if (!c->nin || !c->whole || n->op == OP_to ||
	    row_as_they_lie(d, n) >= 0)
		return;
	a = arena_new();
	in = NEW_N(a, Dist, c->nin);
	to = NEW_N(a, Dist, c->nout + 1);
	for (int i = 0; i < c->nin; i++)
		in[i] = lies_as(d, n->in[i]);
	for (int i = 0; i < c->nout; i++)
		to[i] = row_out(d, c, d->row[n->id], i);
	why = op_why_not(n, in, to);
	fprintf(out, "    illegal   ");
	for (int i = 0; i < c->nin; i++)
		fprintf(out, "%s%s", i ? ", " : "", dist_terms(in[i]));
	fprintf(out, ": %s\n", why ? why : "nothing takes all as they lie");
	arena_free(a);
}

/* The cheapest rows that were not chosen, by price and then by number. */
static void print_rejected(const struct decision *d, const struct node *n,
			   FILE *out)
{
	const struct candidates *c = d->list[n->id];
	int chosen = d->row[n->id], shown = 0, after = -1;
	Cost own = d->price(d->data, n->id, chosen), last = INT64_MIN;
	Cost *price;
	struct arena *a = arena_new();

	price = NEW_N(a, Cost, c->n + 1);
	for (int i = 0; i < c->n; i++)
		price[i] = i == chosen ? 0 : d->price(d->data, n->id, i) - own;
	for (; shown < SHOWN; shown++) {
		int best = -1;

		for (int i = 0; i < c->n; i++)
			if (i != chosen &&
			    (price[i] > last || (price[i] == last &&
						 i > after)) &&
			    (best < 0 || price[i] < price[best]))
				best = i;
		if (best < 0)
			break;
		last = price[best];
		after = best;
		fprintf(out, "    %-10s", shown ? "" : "rejected");
		print_row(d, c, best, out);
		fprintf(out, ": %s", last < 0 ? "" : "+");
		print_seconds((double)last / d->space->units, out);
		fprintf(out, "%s\n", last < 0 ? ", but more memory" : "");
	}
	arena_free(a);
}

/* An input before input I is the same value, wanted alike. */
static bool told_before(const struct decision *d, const struct node *n, int i)
{
	const struct candidates *c = d->list[n->id];
	const int *in = c->in + d->row[n->id] * c->nin;

	for (int k = 0; k < i; k++)
		if (n->in[k] == n->in[i] && in[k] == in[i])
			return true;
	return false;
}

/* What --reproducible rules out, unless it is out of reach anyway. */
static void print_withheld(const struct decision *d, const struct node *n,
			   FILE *out)
{
	struct arena *a = arena_new();
	bool parts = false;
	struct sigs w;

	for (int i = 0; i < n->nin; i++)
		parts |= dist_has(lies_as(d, n->in[i]), SBP_P);
	w = candidates_withheld(d->space, a, d->list[n->id], parts);
	for (int i = 0; i < w.n; i++)
		fprintf(out, "    %-10s%s: --reproducible\n",
			i ? "" : "withheld",
			sig_text(n, w.at[i].in, w.at[i].out));
	arena_free(a);
}

static void print_node(const struct decision *d, const struct node *n,
		       FILE *out)
{
	const struct candidates *c = d->list[n->id];
	struct place at = place_of(n->span);
	int row = d->row[n->id];

	fprintf(out, "%s:%d: %s", at.path, at.line, op_info(n->op)->name);
	if (n->nout && n->out[0]->name)
		fprintf(out, " '%s'", n->out[0]->name);
	if (n->nout)
		fprintf(out, ": %s on %s", type_text(n->out[0]->type),
			row_out(d, c, row, 0).on->name);
	fprintf(out, "\n    chosen    ");
	print_row(d, c, row, out);
	if (c->n == 1)
		fprintf(out, ", the only one");
	fprintf(out, "\n");
	for (int i = 0; i < n->nin; i++)
		if (!told_before(d, n, i))
			print_operand(d, n, row, i, out);
	print_illegal(d, n, out);
	print_withheld(d, n, out);
	print_rejected(d, n, out);
}

/* How good the choice is known to be. */
static void print_certificate(const struct decision *d, FILE *out)
{
	double gap = (double)(d->cost - d->bound);

	if (d->exact) {
		fprintf(out, "no choice is better\n");
	} else if (d->bound <= 0) {
		fprintf(out, "better choices were not ruled out\n");
	} else {
		fprintf(out, "no choice takes less than ");
		print_seconds((double)d->bound / d->space->units, out);
		fprintf(out, " (%.2g %% less)\n",
			100 * gap / (double)d->cost);
	}
}

static void print_total(const struct decision *d, FILE *out)
{
	fprintf(out, "# %s: a step is predicted to take ",
		d->g->name ? d->g->name : "model");
	print_seconds((double)d->cost / d->space->units, out);
	fprintf(out, "; ");
	print_certificate(d, out);
	if (d->space->reproducible)
		fprintf(out, "# reproducible: floats lie in parts only where "
			     "the program asks\n");
	if (d->limit)
		fprintf(out, "# memory: a rank is estimated to need %lld "
			"bytes, the limit was %lld\n",
			(long long)d->bytes, (long long)d->limit);
}

void explain_print(const struct decision *d, FILE *out)
{
	print_total(d, out);
	for (int i = 0; i < d->g->nodes.n; i++)
		print_node(d, d->g->nodes.at[i], out);
}
