/*
 * proof.c: that communication is matched, proved on what the passes left.
 *
 * A rank meets its moves in the one order of the graph. At each it waits for
 * the ranks that it reads and then for those that read it; all of them wait at
 * the same move or have passed it, so no wait is for ever if every rank that
 * takes part has the move in its list. What is read is complete and read once
 * if the pieces on both sides tile the tensor. And what peers read stays as it
 * is if a move does not write where it reads.
 */
#include "passes/passes.h"

enum { MANY_RANKS = 64 };	/* lists are compared up to here */

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

static const char *pattern_why_not(Shape s, Dist from, Dist to)
{
	struct flow f;

	flow_of(from, to, &f);
	if (!tiles(s, from))
		return "the source's pieces do not tile the tensor";
	if (!tiles(s, to))
		return "the target's pieces do not tile the tensor";
	if (!tiles(s, f.keep))
		return "the shards that remain do not tile the tensor";
	return NULL;
}

static const char *lists_why_not(const struct program *p, const struct node *n)
{
	const struct placement *from = n->in[0]->dist.on;
	const struct placement *to = n->out[0]->dist.on;
	int world = p->g->world;

	for (int r = 0; r < world && world <= MANY_RANKS; r++) {
		bool part = mesh_index(from, r) >= 0 || mesh_index(to, r) >= 0;

		if (class_runs(p, p->class_of[r], n) != part)
			return part ? "a rank that takes part lacks it" :
				      "a rank has it that takes no part";
	}
	return NULL;
}

static const char *buffers_why_not(const struct program *p,
				   const struct node *n)
{
	const struct local *from = &p->local[n->in[0]->id];
	const struct local *to = &p->local[n->out[0]->id];

	for (int c = 0; c < p->nclasses; c++) {
		if (class_holds(p, c, n->in[0]) && from->at[c] < 0)
			return "its source has no place";
		if (class_holds(p, c, n->out[0]) && to->at[c] < 0)
			return "its target has no place";
		if (from->bytes && to->bytes && from->at[c] >= 0 &&
		    to->at[c] >= 0 &&
		    from->at[c] < to->at[c] + to->bytes &&
		    to->at[c] < from->at[c] + from->bytes)
			return "it writes where it reads";
	}
	return NULL;
}

/* Patterns are proved once. */
struct pattern {
	int64_t rank, d[MAX_RANK];
	Dist from, to;
};

static const char *prove_pattern(struct arena *a, struct bytemap *known,
				 const struct node *n)
{
	Shape s = n->in[0]->type.shape;
	struct pattern key = {.rank = s.rank,
			      .from = n->in[0]->dist,
			      .to = n->out[0]->dist};
	void **slot;

	for (int i = 0; i < s.rank; i++)
		key.d[i] = s.d[i];
	slot = bytemap_at(a, known, &key, sizeof key);
	if (*slot)
		return NULL;
	*slot = known;
	return pattern_why_not(s, key.from, key.to);
}

const char *proof_why_not(const struct program *p, const struct node **at)
{
	struct arena *a = arena_new();
	struct bytemap known = {0};
	const char *why = NULL;

	for (int i = 0; i < p->g->nodes.n && !why; i++) {
		const struct node *n = p->g->nodes.at[i];

		if (n->op != OP_move)
			continue;
		*at = n;
		why = prove_pattern(a, &known, n);
		if (!why)
			why = lists_why_not(p, n);
		if (!why)
			why = buffers_why_not(p, n);
	}
	arena_free(a);
	return why;
}

void pass_proof(struct program *p)
{
	const struct node *n = NULL;
	const char *why = proof_why_not(p, &n);

	if (why)
		bug("node %d: %s of %s: %s", n->id,
		    n->boxing ? n->boxing->algorithm : "move",
		    n->boxing ? n->boxing->value : "a value", why);
}
