/*
 * exchange.c: who reads what of whom in a move from one distribution to
 * another, by formula. Every rank works out its own list and finds the ranks
 * that read from it; nothing is negotiated.
 *
 * A target piece is cut into cells by the split axes of the source. The parts
 * of a cell are the partial values to reduce, in the order of the mesh
 * coordinates; among equal copies a rank takes its own, else that with its own
 * coordinates, else they share the work.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

/* A move as seen by one target. */
struct view {
	const sbp_pattern *how;
	const sbp_dist *from, *to;
	bool stays[SBP_MAX_MESH];	/* P that the target has too */
	bool reduces[SBP_MAX_MESH];
	bool places[SBP_MAX_MESH];	/* S that becomes P: shards remain */
	bool placed;			/* any of them */
	sbp_dist keep;			/* the splits that shards remain of */
	int target;			/* index in to->on */
	int at[SBP_MAX_MESH];		/* its coordinates */
	bool in_source;
	int own[SBP_MAX_MESH];		/* coordinates in from->on */
};

/* P terms that both sides have stay, unless an outer one of another kind is
 * reduced: that would change the order. */
static void view_kinds(struct view *v)
{
	bool same = mesh_equal(v->from->on, v->to->on);

	for (int k = 0; k < v->from->on->naxes; k++) {
		sbp_term a = v->from->term[k], b = v->to->term[k];
		bool stays = same && a.kind == 'P' && b.kind == 'P' &&
			     a.reduce == b.reduce;

		for (int j = 0; j < k; j++)
			if (v->reduces[j] &&
			    v->from->term[j].reduce != a.reduce)
				stays = false;
		v->stays[k] = stays;
		v->reduces[k] = a.kind == 'P' && !stays;
	}
}

static int split_chain(const sbp_dist *d, int axis, int *chain)
{
	int n = 0;

	for (int i = 0; i < d->on->naxes; i++) {
		int k = split_order(d, i);

		if (d->term[k].kind == 'S' && d->term[k].axis == axis)
			chain[n++] = k;
	}
	return n;
}

/* The split axes of one tensor axis that become P: from outside, after those
 * in which both nests agree. */
static void view_place(struct view *v, int axis)
{
	int from[SBP_MAX_MESH], to[SBP_MAX_MESH], i = 0, end;
	int nfrom = split_chain(v->from, axis, from);
	int nto = split_chain(v->to, axis, to);

	while (i < nfrom && i < nto && from[i] == to[i])
		i++;
	for (end = i; end < nfrom && v->to->term[from[end]].kind == 'P'; end++)
		v->places[from[end]] = v->placed = true;
	for (int j = 0; end > i && j < end; j++)
		v->keep.term[from[j]] = v->from->term[from[j]];
}

/* Shards remain where they lie if one identity fills the rest. */
static void view_places(struct view *v)
{
	char reduce = 0;

	v->keep = *v->from;
	for (int k = 0; k < v->keep.on->naxes; k++)
		v->keep.term[k] = (sbp_term){'B', 0, 0};
	if (!mesh_equal(v->from->on, v->to->on))
		return;
	for (int k = 0; k < v->to->on->naxes; k++) {
		sbp_term t = v->to->term[k];

		if (t.kind == 'P' && reduce && t.reduce != reduce)
			return;
		if (t.kind == 'P')
			reduce = t.reduce;
	}
	for (int axis = 0; axis < v->how->rank; axis++)
		view_place(v, axis);
}

static void view_init(struct view *v, const sbp_pattern *how, int target)
{
	int rank = mesh_rank(how->to.on, target), own;

	memset(v, 0, sizeof *v);
	v->how = how;
	v->from = &how->from;
	v->to = &how->to;
	v->target = target;
	mesh_coords(how->to.on, target, v->at);
	own = mesh_index(how->from.on, rank);
	v->in_source = own >= 0;
	if (v->in_source)
		mesh_coords(how->from.on, own, v->own);
	view_kinds(v);
	view_places(v);
}

/* Whether the target holds identities alone, and of which reduction: that of
 * the innermost P axis where its coordinate is not 0, else of any. */
static bool view_fills(const struct view *v, char *reduce)
{
	bool fills = false;

	for (int k = 0; k < v->to->on->naxes; k++) {
		if (v->to->term[k].kind != 'P')
			continue;
		if (v->at[k] || !*reduce)
			*reduce = v->to->term[k].reduce;
		if (v->at[k] && !v->stays[k] && !v->places[k])
			fills = true;
	}
	return fills;
}

/* What the target keeps: of its piece, what lies in shards that remain. */
static sbp_box view_region(const struct view *v, const sbp_box *target)
{
	sbp_box shard;

	if (!v->placed)
		return *target;
	shard = piece_at(&v->keep, v->how->rank, v->how->shape, v->at);
	return piece_and(target, &shard);
}

/* Sets the coordinates of the copies to read: along B axes. */
static void view_copies(const struct view *v, int *coord)
{
	int share = v->target;

	for (int k = v->from->on->naxes - 1; k >= 0; k--) {
		int n = v->from->on->extent[k];

		if (v->stays[k]) {
			coord[k] = v->at[k];
		} else if (v->from->term[k].kind == 'B') {
			coord[k] = v->in_source ? v->own[k] : share % n;
			share /= n;
		}
	}
}

/* Steps the coordinates of the axes in PICK like an odometer, axis 0
 * outermost; false after the last. */
static bool next_coord(const sbp_placement *on, const bool *pick, int *coord)
{
	for (int k = on->naxes - 1; k >= 0; k--) {
		if (!pick[k])
			continue;
		if (++coord[k] < on->extent[k])
			return true;
		coord[k] = 0;
	}
	return false;
}

static void split_axes(const sbp_dist *d, bool *split)
{
	for (int k = 0; k < d->on->naxes; k++)
		split[k] = d->term[k].kind == 'S';
}

/* Walks the source pieces that meet TARGET; false after the last. *COORD
 * starts with the copies set and zeros elsewhere, *started false. */
static bool next_cell(const struct view *v, const sbp_box *target, int *coord,
		      bool *started, sbp_box *piece, sbp_box *cell)
{
	bool split[SBP_MAX_MESH] = {false};

	split_axes(v->from, split);
	for (;;) {
		if (*started && !next_coord(v->from->on, split, coord))
			return false;
		*started = true;
		*piece = piece_at(v->from, v->how->rank, v->how->shape, coord);
		*cell = piece_and(piece, target);
		if (box_count(cell) > 0)
			return true;
	}
}

static bool in_list(const int *list, int n, int rank)
{
	for (int i = 0; i < n; i++)
		if (list[i] == rank)
			return true;
	return false;
}

/* Whether the target of V reads from the source with coordinates ME. */
static bool view_reads(const struct view *v, const int *me)
{
	int coord[SBP_MAX_MESH] = {0};
	sbp_box target, piece, cell;
	char reduce = 0;

	if (view_fills(v, &reduce))
		return false;
	view_copies(v, coord);
	for (int k = 0; k < v->from->on->naxes; k++)
		if ((v->from->term[k].kind == 'B' || v->stays[k]) &&
		    coord[k] != me[k])
			return false;
	target = piece_at(v->to, v->how->rank, v->how->shape, v->at);
	target = view_region(v, &target);
	piece = piece_at(v->from, v->how->rank, v->how->shape, me);
	cell = piece_and(&piece, &target);
	return box_count(&cell) > 0;
}

static bool find_readers(struct exchange *x, int me)
{
	int n = mesh_size(x->how->to.on), coord[SBP_MAX_MESH];
	int self = mesh_index(x->how->from.on, me);
	struct view v;

	x->reader = calloc((size_t)n, sizeof *x->reader);
	if (!x->reader)
		return false;
	if (self < 0)
		return true;
	mesh_coords(x->how->from.on, self, coord);
	for (int i = 0; i < n; i++) {
		int rank = mesh_rank(x->how->to.on, i);

		view_init(&v, x->how, i);
		if (rank != me && view_reads(&v, coord))
			x->reader[x->nreaders++] = rank;
	}
	return true;
}

/* Pieces at coordinates 0 are the largest. */
static void find_source(struct exchange *x, int me)
{
	const sbp_pattern *how = x->how;
	int coord[SBP_MAX_MESH] = {0}, self = mesh_index(how->from.on, me);
	int width = dtype_bytes(how->dtype);
	sbp_box piece = piece_at(&how->from, how->rank, how->shape, coord);

	x->most_bytes = box_count(&piece) * width;
	if (self < 0)
		return;
	mesh_coords(how->from.on, self, coord);
	piece = piece_at(&how->from, how->rank, how->shape, coord);
	x->source_bytes = box_count(&piece) * width;
}

/* An all-reduce between two ranks: each reduces half of it for both, which
 * are as many bytes as if each read all of the other's. ORDER pairs: the
 * compiler places source and target of these in one place
 * (passes/inplace.c). */
static bool is_pair(const struct exchange *x, const struct view *v)
{
	const sbp_dist *from = v->from, *to = v->to;

	if (x->nparts != 2 || !mesh_equal(from->on, to->on))
		return false;
	for (int k = 0; k < from->on->naxes; k++) {
		sbp_term a = from->term[k], b = to->term[k];

		if (split_order(from, k) != split_order(to, k))
			return false;
		if (v->reduces[k] ? b.kind != 'B'
				  : a.kind != b.kind || a.axis != b.axis)
			return false;
	}
	return x->ncells == 1;
}

/* Adjacent reductions of one kind are one level. */
static void find_levels(struct exchange *x, const struct view *v)
{
	x->nparts = 1;
	for (int k = 0; k < v->from->on->naxes; k++) {
		int n = v->from->on->extent[k];
		char reduce = v->from->term[k].reduce;

		if (!v->reduces[k])
			continue;
		x->nparts *= n;
		if (x->nlevels && x->reduce[x->nlevels - 1] == reduce) {
			x->parts[x->nlevels - 1] *= n;
		} else {
			x->parts[x->nlevels] = n;
			x->reduce[x->nlevels++] = reduce;
		}
	}
}

/* Element strides of a dense box, and the offset of INNER's first element. */
static int64_t dense(const sbp_box *outer, const sbp_box *inner,
		     int64_t *stride)
{
	int64_t step = 1, offset = 0;

	for (int a = outer->rank - 1; a >= 0; a--) {
		stride[a] = step;
		offset += (inner->lo[a] - outer->lo[a]) * step;
		step *= outer->n[a];
	}
	return offset;
}

/* Drops axes of extent 1 and merges those that are contiguous in both. */
static void cell_merge(struct cell *c)
{
	int to = -1;

	for (int a = 0; a < c->rank; a++) {
		if (c->n[a] == 1)
			continue;
		if (to >= 0 &&
		    c->from_stride[to] == c->n[a] * c->from_stride[a] &&
		    c->to_stride[to] == c->n[a] * c->to_stride[a]) {
			c->n[to] *= c->n[a];
		} else {
			c->n[++to] = c->n[a];
		}
		c->from_stride[to] = c->from_stride[a];
		c->to_stride[to] = c->to_stride[a];
	}
	c->rank = to + 1;
}

void cell_init(struct cell *c, const sbp_box *piece, const sbp_box *target,
	       const sbp_box *box)
{
	c->rank = box->rank;
	c->box = *box;
	memcpy(c->n, box->n, sizeof c->n);
	c->from = dense(piece, box, c->from_stride);
	c->to = dense(target, box, c->to_stride);
	cell_merge(c);
}

/* Appends the parts of cell I, whose source has the split axes' COORD. */
static void cell_parts(struct exchange *x, int i, const struct view *v,
		       int *coord, int me)
{
	int width = dtype_bytes(x->how->dtype);
	int64_t bytes = box_count(&x->cell[i].box) * width;

	x->cell[i].first = i * x->nparts;
	for (int part = 0; part < x->nparts; part++) {
		int rank = mesh_rank(v->from->on, mesh_at(v->from->on, coord));

		x->peer[i * x->nparts + part] = rank;
		if (rank != me) {
			x->recv_bytes += bytes;
			if (!in_list(x->writer, x->nwriters, rank))
				x->writer[x->nwriters++] = rank;
		}
		next_coord(v->from->on, v->reduces, coord);
	}
}

static int count_cells(const struct view *v, const sbp_box *target)
{
	int coord[SBP_MAX_MESH] = {0}, n = 0;
	bool started = false;
	sbp_box piece, box;

	while (next_cell(v, target, coord, &started, &piece, &box))
		n++;
	return n;
}

static bool find_cells(struct exchange *x, const struct view *v, int me)
{
	int coord[SBP_MAX_MESH] = {0}, room;
	bool started = false;
	sbp_box target, region, piece, box;

	target = piece_at(v->to, v->how->rank, v->how->shape, v->at);
	x->count = box_count(&target);
	x->fills = view_fills(v, &x->fill);
	if (x->fills)
		return true;
	x->fills = v->placed;
	region = view_region(v, &target);
	find_levels(x, v);
	room = x->count ? count_cells(v, &region) : 0;
	x->cell = calloc((size_t)room + 1, sizeof *x->cell);
	x->peer = calloc((size_t)room * (size_t)x->nparts + 1, sizeof(int));
	x->writer = calloc((size_t)mesh_size(v->from->on), sizeof(int));
	if (!x->cell || !x->peer || !x->writer)
		return false;
	view_copies(v, coord);
	while (x->ncells < room &&
	       next_cell(v, &region, coord, &started, &piece, &box)) {
		cell_init(&x->cell[x->ncells], &piece, &target, &box);
		cell_parts(x, x->ncells++, v, coord, me);
	}
	x->pairs = is_pair(x, v);
	return true;
}

struct exchange *exchange_new(const sbp_pattern *how, int me)
{
	struct exchange *x = calloc(1, sizeof *x);
	int target = mesh_index(how->to.on, me);
	struct view v;
	bool done;

	if (!x)
		return NULL;
	x->how = how;
	x->holds = target >= 0;
	find_source(x, me);
	done = find_readers(x, me);
	if (done && x->holds) {
		view_init(&v, how, target);
		done = find_cells(x, &v, me);
	}
	if (!done) {
		exchange_free(x);
		return NULL;
	}
	return x;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	free(x->cell);
	free(x->peer);
	free(x->writer);
	free(x->reader);
	free(x);
}
