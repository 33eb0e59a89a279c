/*
 * proof_reads.c: that in one move what ranks read is what their peers let them
 * read, that it is all they need, and nothing twice.
 *
 * Up to 64 ranks every read is looked at from both sides, as the runtime does:
 * a reader goes through the pieces that meet its own, a rank that is read asks
 * of each other whether it will. Beyond, pieces are looked at by axis: those
 * of a distribution must tile the tensor.
 */
#include "passes/passes.h"

enum { MANY_RANKS = 64 };

/* ---- tiles ---- */

/* A coordinate for each mesh axis of CHAIN, the last fastest; false after the
 * last. */
static bool next_coord(Dist d, const int *chain, int n, int *coord)
{
	for (int i = n - 1; i >= 0; i--) {
		if (++coord[chain[i]] < d.on->extent[chain[i]])
			return true;
		coord[chain[i]] = 0;
	}
	return false;
}

/* Whether the pieces of tensor axis AXIS follow one another from 0 to its
 * end. */
static bool tiles_axis(Shape s, Dist d, int axis)
{
	int chain[MAX_MESH], coord[MAX_MESH] = {0};
	int n = dist_chain(d, axis, chain);
	int64_t end = 0;

	do {
		Interval i = piece_of(s, d, coord).d[axis];

		if (i.n < 0 || (i.n && i.lo != end))
			return false;
		end += i.n;
	} while (next_coord(d, chain, n, coord));
	return end == s.d[axis];
}

static bool tiles(Shape s, Dist d)
{
	for (int axis = 0; axis < s.rank; axis++)
		if (!tiles_axis(s, d, axis))
			return false;
	return true;
}

/* ---- every read ---- */

struct target {
	int at[MAX_MESH];  /* coordinates in the target's mesh */
	int own[MAX_MESH]; /* ... in the source's */
	bool in_source, fills;
	Piece region;       /* what it keeps and must read */
	int copy[MAX_MESH]; /* of the copies, the one that it reads */
};

struct reads {
	Type t;
	Dist from, to;
	struct flow flow;
	struct target target[MANY_RANKS];
	/* elements, by index in the target's and the source's mesh */
	int64_t n[MANY_RANKS][MANY_RANKS];
};

/* Whether mesh axis K of the source has copies of which one is read. */
static bool is_copied(const struct reads *r, int k)
{
	return r->flow.stay[k] || r->from.t[k].kind == SBP_B;
}

/* The nearest copy: its own, else copies share the work. */
static void choose_copy(const struct reads *r, struct target *t, int index)
{
	for (int k = r->from.on->naxes - 1; k >= 0; k--) {
		int n = r->from.on->extent[k];

		if (r->flow.stay[k]) {
			t->copy[k] = t->at[k];
		} else if (r->from.t[k].kind == SBP_B) {
			t->copy[k] = t->in_source ? t->own[k] : index % n;
			index /= n;
		}
	}
}

static void target_init(struct reads *r, int index)
{
	struct target *t = &r->target[index];
	int self = mesh_index(r->from.on, r->to.on->rank[index]);

	mesh_coords(r->to.on, index, t->at);
	t->in_source = self >= 0;
	if (t->in_source)
		mesh_coords(r->from.on, self, t->own);
	t->region = piece_and(piece_of(r->t.shape, r->to, t->at),
			      piece_of(r->t.shape, r->flow.keep, t->at));
	for (int k = 0; k < r->to.on->naxes; k++)
		if (r->flow.fresh[k] && t->at[k])
			t->fills = true;
	choose_copy(r, t, index);
}

/* Steps the coordinates that are not copied; false after the last. */
static bool next_source(const struct reads *r, int *coord)
{
	for (int k = r->from.on->naxes - 1; k >= 0; k--) {
		if (is_copied(r, k))
			continue;
		if (++coord[k] < r->from.on->extent[k])
			return true;
		coord[k] = 0;
	}
	return false;
}

static int64_t meets(const struct reads *r, const struct target *t,
		     const int *coord)
{
	return piece_count(
		piece_and(piece_of(r->t.shape, r->from, coord), t->region));
}

/* As the reader sees it; the elements that it gets. */
static int64_t read_all(struct reads *r, int index)
{
	const struct target *t = &r->target[index];
	int coord[MAX_MESH] = {0};
	int64_t all = 0;

	for (int k = 0; k < r->from.on->naxes; k++)
		if (is_copied(r, k))
			coord[k] = t->copy[k];
	if (t->fills)
		return 0;
	do {
		int64_t n = meets(r, t, coord);

		r->n[index][mesh_at(r->from.on, coord)] += n;
		all += n;
	} while (next_source(r, coord));
	return all;
}

/* As the one at SOURCE sees it: whether T will read of it. */
static bool lets_read(const struct reads *r, const struct target *t, int source)
{
	int coord[MAX_MESH];

	mesh_coords(r->from.on, source, coord);
	for (int k = 0; k < r->from.on->naxes; k++)
		if (is_copied(r, k) && coord[k] != t->copy[k])
			return false;
	return !t->fills && meets(r, t, coord) > 0;
}

static int64_t received(const struct reads *r, int index)
{
	int self = mesh_index(r->from.on, r->to.on->rank[index]);
	int64_t all = 0;

	for (int s = 0; s < r->from.on->nranks; s++)
		if (s != self)
			all += r->n[index][s];
	return all * dtype_size(r->t.dtype);
}

/* Bytes by the plan, of the ranks of the target. */
static bool as_planned(const struct reads *r)
{
	const struct sites *s = sites_of(r->from.on, r->to.on, INT32_MAX);
	int64_t recv[2 * MANY_RANKS], local[2 * MANY_RANKS];

	move_bytes(r->t, r->from, r->to, s, recv, local);
	for (int i = 0; i < s->n; i++) {
		int index = mesh_index(r->to.on, s->at[i].rank);

		if (recv[i] != (index < 0 ? 0 : received(r, index)))
			return false;
	}
	return true;
}

static const char *matrix_why_not(struct reads *r)
{
	for (int t = 0; t < r->to.on->nranks; t++) {
		const struct target *x = &r->target[t];
		int64_t want;

		target_init(r, t);
		want = x->fills ? 0 : r->flow.parts * piece_count(x->region);
		if (read_all(r, t) != want)
			return text_brief("rank %d does not read each part "
					  "of its piece once",
					  r->to.on->rank[t]);
		for (int s = 0; s < r->from.on->nranks; s++)
			if (lets_read(r, x, s) != (r->n[t][s] > 0))
				return text_brief(
					"rank %d and rank %d do not agree on "
					"what one reads of the other",
					r->to.on->rank[t], r->from.on->rank[s]);
	}
	return as_planned(r) ? NULL
			     : "ranks do not receive the bytes of the plan";
}

const char *reads_why_not(Type t, Dist from, Dist to)
{
	static struct reads r;

	if (!tiles(t.shape, from))
		return "the source's pieces do not tile the tensor";
	if (!tiles(t.shape, to))
		return "the target's pieces do not tile the tensor";
	from = dist_plain(from);
	to = dist_plain(to);
	r = (struct reads){.t = t, .from = from, .to = to};
	flow_of(from, to, &r.flow);
	if (!tiles(t.shape, r.flow.keep))
		return "the shards that remain do not tile the tensor";
	if (from.on->nranks > MANY_RANKS || to.on->nranks > MANY_RANKS)
		return NULL;
	return matrix_why_not(&r);
}
