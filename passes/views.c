/*
 * views.c: local slices that are read where they lie.
 *
 * A move whose target piece is, on every rank, a part of the rank's own source
 * piece need not copy it if all that read the slice can do so with an offset
 * and the strides of the source. What a reader can do is its kind of reading;
 * what a slice asks for follows from its shape and the axes that it cuts.
 * Inference asks the same (candidates.c), so that such a slice costs nothing.
 */
#include "passes/passes.h"

/* ---- what readers can do ---- */

static bool is_single(Shape s)
{
	for (int i = 0; i < s.rank - 2; i++)
		if (s.d[i] != 1)
			return false;
	return true;
}

/* With one matrix B and a batch of A, all rows are those of one product. */
static bool joins_rows(const struct node *product)
{
	Shape a = product->in[0]->type.shape, b = product->in[1]->type.shape;
	Shape y = product->out[0]->type.shape;

	return !is_single(y) && is_single(b) && a.rank == y.rank;
}

/* How many axes at the end stay in place and move as runs. */
static int run_of(const struct node *permute)
{
	const struct attr *dims = node_attr(permute, "dims");
	int n = dims->n;

	while (n > 0 && dims->ints[n - 1] == n - 1)
		n--;
	return dims->n - n;
}

static enum reading call_reading(const struct node *n, int i)
{
	switch (n->op) {
	case OP_matmul:
		return i == 0 && joins_rows(n) ? READS_ROWS : READS_ANY;
	case OP_permute:
		return run_of(n) < 2 ? READS_ANY : READS_RUN;
	case OP_take:
		return i == 0 ? READS_TABLE : READS_RUN;
	case OP_gather:
	case OP_pad:
		return READS_ANY;
	case OP_scatter_add:
		return i == 0 ? READS_RUN : READS_ANY;
	case OP_move:
		return READS_NOT;
	default:
		return READS_RUN;
	}
}

enum reading node_reading(const struct node *n, int i)
{
	switch (op_info(n->op)->kernel) {
	case K_MAP:
	case K_FOLD:
		return READS_LANES;
	case K_CALL:
		return call_reading(n, i);
	default:
		return READS_NOT;
	}
}

/* ---- what a slice asks for ---- */

enum { ALL = (1 << (READS_ANY + 1)) - 1 };

/* Whether a rank's piece of TO is of its own of FROM. *CUT has the axes along
 * which it is smaller, a bit each. */
static bool is_slice(Dist from, Dist to, int rank, unsigned *cut)
{
	int chain[MAX_MESH];

	if (!placement_eq(from.on, to.on))
		return false;
	from = dist_plain(from);
	to = dist_plain(to);
	for (int k = 0; k < from.on->naxes; k++)
		if ((from.t[k].kind == SBP_P || to.t[k].kind == SBP_P) &&
		    !sbp_eq(from.t[k], to.t[k]))
			return false;
	*cut = 0;
	for (int i = 0; i < rank; i++) {
		if (!nest_grows(from, to, i))
			return false;
		if (dist_chain(from, i, chain) < dist_chain(to, i, chain))
			*cut |= 1u << i;
	}
	return true;
}

/* Whether some axis before AXIS is longer than 1 in S. */
static bool follows_long(Shape s, int axis)
{
	for (int i = 0; i < axis; i++)
		if (s.d[i] > 1)
			return true;
	return false;
}

/* The loops of a kernel leave out an axis of extent 1, and take what is then
 * the last one to be dense. */
static bool hides_stride(Shape piece, unsigned cut)
{
	for (int i = 0; i < piece.rank; i++)
		if ((cut >> i & 1) && piece.d[i] == 1 && follows_long(piece, i))
			return true;
	return false;
}

static bool is_run(Shape piece, unsigned cut)
{
	for (int i = 0; i < piece.rank; i++)
		if ((cut >> i & 1) && follows_long(piece, i))
			return false;
	return true;
}

unsigned slice_readers(Type t, Dist from, Dist to)
{
	unsigned cut, can = 1u << READS_ANY;
	Shape piece;

	/* The kernels of other devices read what is dense. */
	if (to.on->device != DEV_CPU || !is_slice(from, to, t.shape.rank, &cut))
		return 0;
	piece = piece_max(t.shape, to);
	if (is_run(piece, cut))
		return ALL & ~(1u << READS_NOT);
	if (!hides_stride(piece, cut))
		can |= 1u << READS_LANES;
	if (!(cut & ~3u))
		can |= 1u << READS_TABLE;
	if (!(cut & ~(1u | 1u << (t.shape.rank - 1))))
		can |= 1u << READS_ROWS;
	return can;
}

/* ---- the pass ---- */

struct views {
	struct program *p;
	unsigned *can; /* by value id: how it may be read as a slice; 0:
			* it is none */
};

static bool is_body_view(const struct node *n)
{
	return op_info(n->op)->kernel == K_VIEW;
}

/* Takes away what N cannot read as a slice. */
static void look_at(struct views *w, const struct node *n, bool inside)
{
	for (int i = 0; i < n->nin; i++) {
		unsigned *can = &w->can[n->in[i]->id];
		enum reading how = node_reading(n, i);

		if (inside && is_body_view(n))
			how = READS_LANES;
		if (!(*can >> how & 1))
			*can = 0;
	}
}

static void find_slices(struct views *w)
{
	const struct graph *g = w->p->g;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op == OP_move && !n->out[0]->keep)
			w->can[n->out[0]->id] =
				slice_readers(n->in[0]->type, n->in[0]->dist,
					      n->out[0]->dist);
	}
	for (int i = 0; i < g->outputs.n; i++)
		w->can[g->outputs.at[i].v->id] = 0;
	for (int i = 0; i < g->updates.n; i++)
		w->can[g->updates.at[i].v->id] = 0;
}

void pass_views(struct program *p)
{
	struct graph *g = p->g;
	struct views w = {p, NEW_N(p->arena, unsigned, g->values.n + 1)};

	find_slices(&w);
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op != OP_kernel)
			look_at(&w, n, false);
		for (int k = 0; n->op == OP_kernel && k < n->nbody; k++)
			look_at(&w, n->body[k], true);
	}
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op == OP_move && w.can[n->out[0]->id])
			p->local[n->out[0]->id].slice_of = n->in[0];
	}
}

bool move_runs(const struct program *p, const struct node *n)
{
	return n->op == OP_move && !p->local[n->out[0]->id].slice_of;
}

const struct value *lies_in(const struct program *p, const struct value *v)
{
	const struct value *whole = p->local[v->id].slice_of;

	return whole != NULL ? whole : v;
}
