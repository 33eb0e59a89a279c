/*
 * mesh.c: where a rank stands in a mesh. Meshes are row-major: the last axis
 * varies fastest.
 */
#include "ir/ir.h"

int mesh_index(const struct placement *p, int rank)
{
	int i;

	/* Most placements are runs: try that before looking everywhere. */
	i = p->nranks ? rank - p->rank[0] : 0;
	if (i >= 0 && i < p->nranks && p->rank[i] == rank)
		return i;
	for (i = 0; i < p->nranks; i++)
		if (p->rank[i] == rank)
			return i;
	return -1;
}

void mesh_coords(const struct placement *p, int index, int coord[MAX_MESH])
{
	int k;

	for (k = p->naxes; k < MAX_MESH; k++)
		coord[k] = 0;
	for (k = p->naxes - 1; k >= 0; k--) {
		coord[k] = index % p->extent[k];
		index /= p->extent[k];
	}
}

int mesh_at(const struct placement *p, const int coord[MAX_MESH])
{
	int k, index = 0;

	for (k = 0; k < p->naxes; k++)
		index = index * p->extent[k] + coord[k];
	return index;
}

bool placement_eq(const struct placement *a, const struct placement *b)
{
	int i;

	if (a == b)
		return true;
	if (!a || !b || a->device != b->device || a->naxes != b->naxes ||
	    a->nranks != b->nranks)
		return false;
	for (i = 0; i < a->naxes; i++)
		if (a->extent[i] != b->extent[i])
			return false;
	for (i = 0; i < a->nranks; i++)
		if (a->rank[i] != b->rank[i])
			return false;
	return true;
}
