/*
 * piece.c: meshes and pieces by formula: which rank is where, and which part
 * of a tensor it holds. Splits are balanced, each within its parent piece.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/private.h"

int mesh_size(const sbp_placement *on)
{
	int n = 1;

	for (int k = 0; k < on->naxes; k++)
		n *= on->extent[k];
	return n;
}

int mesh_rank(const sbp_placement *on, int index)
{
	return on->ranks ? on->ranks[index] : on->first + index;
}

int mesh_index(const sbp_placement *on, int rank)
{
	int n = mesh_size(on);

	if (!on->ranks)
		return rank >= on->first && rank < on->first + n
			       ? rank - on->first
			       : -1;
	for (int i = 0; i < n; i++)
		if (on->ranks[i] == rank)
			return i;
	return -1;
}

void mesh_coords(const sbp_placement *on, int index, int *coord)
{
	for (int k = on->naxes - 1; k >= 0; k--) {
		coord[k] = index % on->extent[k];
		index /= on->extent[k];
	}
}

int mesh_at(const sbp_placement *on, const int *coord)
{
	int index = 0;

	for (int k = 0; k < on->naxes; k++)
		index = index * on->extent[k] + coord[k];
	return index;
}

bool mesh_equal(const sbp_placement *a, const sbp_placement *b)
{
	if (a == b)
		return true;
	if (a->naxes != b->naxes)
		return false;
	for (int k = 0; k < a->naxes; k++)
		if (a->extent[k] != b->extent[k])
			return false;
	for (int i = 0, n = mesh_size(a); i < n; i++)
		if (mesh_rank(a, i) != mesh_rank(b, i))
			return false;
	return true;
}

/* The mesh axis that splits in place I. An order that names no axis twice is
 * followed; anything else (all zeros) means 0, 1, 2, 3. */
int split_order(const sbp_dist *d, int i)
{
	unsigned seen = 0;

	for (int k = 0; k < d->on->naxes; k++)
		seen |= 1u << d->order[k];
	return seen == (1u << d->on->naxes) - 1 ? d->order[i] : i;
}

sbp_box piece_at(const sbp_dist *d, int rank, const int64_t *shape,
		 const int *coord)
{
	sbp_box box = {.rank = rank};

	for (int a = 0; a < rank; a++)
		box.n[a] = shape[a];
	for (int i = 0; i < d->on->naxes; i++) {
		int k = split_order(d, i), a = d->term[k].axis;
		sbp_piece part;

		if (d->term[k].kind != 'S')
			continue;
		part = sbp_split(box.n[a], d->on->extent[k], coord[k]);
		box.lo[a] += part.lo;
		box.n[a] = part.n;
	}
	return box;
}

/* Empty boxes have some n == 0; their lo is of no use. */
sbp_box piece_and(const sbp_box *a, const sbp_box *b)
{
	sbp_box box = {.rank = a->rank};

	for (int i = 0; i < a->rank; i++) {
		int64_t end = a->lo[i] + a->n[i], other = b->lo[i] + b->n[i];
		int64_t lo = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];

		end = end < other ? end : other;
		box.lo[i] = lo;
		box.n[i] = end > lo ? end - lo : 0;
	}
	return box;
}

static void term_describe(char *to, size_t size, sbp_term t)
{
	if (t.kind == 'S')
		snprintf(to, size, "S(%d)", t.axis);
	else if (t.kind == 'P' && t.reduce == 'x')
		snprintf(to, size, "P(max)");
	else if (t.kind == 'P' && t.reduce == 'n')
		snprintf(to, size, "P(min)");
	else
		snprintf(to, size, "%c", t.kind);
}

void dist_describe(char *to, size_t size, const sbp_dist *d)
{
	size_t n = 0;
	char term[16];

	for (int k = 0; k < d->on->naxes && n < size; k++) {
		term_describe(term, sizeof term, d->term[k]);
		n += (size_t)snprintf(to + n, size - n, "%s%s",
				      k ? ", " : "(", term);
	}
	if (n < size)
		snprintf(to + n, size - n, ")");
}
