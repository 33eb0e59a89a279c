/*
 * traffic.c: what one move does on each mesh axis, and how many bytes each
 * rank receives by it.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

int64_t greatest(const int64_t *v, int n)
{
	int64_t most = 0;

	for (int i = 0; i < n; i++)
		if (v[i] > most)
			most = v[i];
	return most;
}

/* ---- what a move does on each mesh axis ---- */

bool dist_same_place(Dist a, Dist b)
{
	return a.on == b.on || placement_eq(a.on, b.on);
}

/* Whether all partial terms of D are of one kind. */
static bool one_kind(Dist d)
{
	int red = -1;

	for (int k = 0; k < d.on->naxes; k++) {
		if (d.t[k].kind != SBP_P)
			continue;
		if (red >= 0 && red != d.t[k].red)
			return false;
		red = d.t[k].red;
	}
	return true;
}

/* Partial axes: those that remain, and those that are reduced. A kind may
 * remain only if no other kind outside of it is reduced before it. */
static void flow_parts(Dist from, Dist to, struct flow *f)
{
	unsigned reduced = 0;

	f->parts = 1;
	for (int k = 0; k < from.on->naxes; k++) {
		unsigned red = 1u << from.t[k].red;

		if (from.t[k].kind != SBP_P)
			continue;
		f->stay[k] = f->same && sbp_eq(from.t[k], to.t[k]) &&
			     !(reduced & ~red);
		if (f->stay[k])
			continue;
		reduced |= red;
		f->reduce[k] = true;
		f->parts *= from.on->extent[k];
	}
}

/* Split axes that become partial: each shard remains where it lies, if that
 * leaves an interval of what the target holds. */
static void flow_place(Dist from, Dist to, int axis, struct flow *f)
{
	int x[MAX_MESH], y[MAX_MESH];
	int nx = dist_chain(from, axis, x), ny = dist_chain(to, axis, y);
	int i = 0, last;

	while (i < nx && i < ny && x[i] == y[i])
		i++;
	for (last = i; last < nx && to.t[x[last]].kind == SBP_P; last++)
		f->place[x[last]] = true;
	if (last == i)
		return;
	for (int j = 0; j < last; j++)
		f->keep.t[x[j]] = sbp_s(axis);
}

void flow_of(Dist from, Dist to, struct flow *f)
{
	from = dist_plain(from);
	to = dist_plain(to);
	*f = (struct flow){.same = dist_same_place(from, to)};
	f->keep = dist_on(to.on, sbp_b());
	flow_parts(from, to, f);
	if (f->same && one_kind(to)) {
		memcpy(f->keep.order, from.order, sizeof f->keep.order);
		for (int k = 0; k < from.on->naxes; k++)
			if (from.t[k].kind == SBP_S &&
			    to.t[k].kind == SBP_P)
				flow_place(from, to, from.t[k].axis, f);
	}
	for (int k = 0; k < to.on->naxes; k++)
		f->fresh[k] = to.t[k].kind == SBP_P && !f->stay[k] &&
			      !f->place[k];
}

/* ---- sites: the ranks of two placements ---- */

/* Index in P by rank, -1 where P lacks it. */
static int *index_map(const struct placement *p, int nranks)
{
	int *map = malloc(sizeof *map * (size_t)nranks);

	if (!map)
		bug("out of memory");
	for (int r = 0; r < nranks; r++)
		map[r] = -1;
	for (int i = 0; i < p->nranks; i++)
		map[p->rank[i]] = i;
	return map;
}

static int rank_limit(const struct placement *p, int least)
{
	for (int i = 0; i < p->nranks; i++)
		if (p->rank[i] >= least)
			least = p->rank[i] + 1;
	return least;
}

/* Whether a sample takes this coordinate: both ends, their neighbours and the
 * middle, less of them where there are many axes. */
static bool is_sample(const struct placement *p, int index)
{
	int coord[MAX_MESH];

	mesh_coords(p, index, coord);
	for (int k = 0; k < p->naxes; k++) {
		int c = coord[k], n = p->extent[k];

		if (c == 0 || c == n - 1)
			continue;
		if (p->naxes <= 2 && (c == 1 || c == n / 2))
			continue;
		return false;
	}
	return true;
}

struct site_list {
	struct sites s;
	const int *map[2];
	bool sampled;
};

static void add_site(struct site_list *l, int rank)
{
	struct site *s = &l->s.at[l->s.n++];

	*s = (struct site){.rank = rank};
	for (int i = 0; i < 2; i++) {
		int index = l->map[i][rank];

		s->in[i] = index >= 0;
		if (s->in[i])
			mesh_coords(l->s.on[i], index, s->coord[i]);
	}
}

static bool wanted(const struct site_list *l, int rank)
{
	for (int i = 0; i < 2; i++) {
		int index = l->map[i][rank];

		if (index >= 0 && (!l->sampled || is_sample(l->s.on[i], index)))
			return true;
	}
	return false;
}

static struct sites *build_sites(const struct placement *a,
				 const struct placement *b, int limit)
{
	int nranks = rank_limit(b, rank_limit(a, 0));
	int *map[2] = {index_map(a, nranks), index_map(b, nranks)};
	struct site_list l = {.s.on = {a, b}, .map = {map[0], map[1]}};
	struct sites *out = malloc(sizeof *out);

	for (int r = 0; r < nranks; r++)
		l.s.world += map[0][r] >= 0 || map[1][r] >= 0;
	l.sampled = l.s.world > limit;
	l.s.at = malloc(sizeof *l.s.at * (size_t)l.s.world);
	if (!out || !l.s.at)
		bug("out of memory");
	for (int r = 0; r < nranks; r++)
		if (wanted(&l, r))
			add_site(&l, r);
	free(map[0]);
	free(map[1]);
	*out = l.s;
	return out;
}

enum { SITE_LISTS = 64 };
static struct {
	struct sites *s;
	int limit;
} site_cache[SITE_LISTS];
static int nsite_cache;

const struct sites *sites_of(const struct placement *a,
			     const struct placement *b, int limit)
{
	struct sites *s;

	for (int i = 0; i < nsite_cache; i++) {
		s = site_cache[i].s;
		if (s->on[0] == a && s->on[1] == b &&
		    site_cache[i].limit == limit)
			return s;
	}
	s = build_sites(a, b, limit);
	if (nsite_cache == SITE_LISTS)
		sites_reset();
	site_cache[nsite_cache].s = s;
	site_cache[nsite_cache++].limit = limit;
	return s;
}

void sites_reset(void)
{
	while (nsite_cache > 0) {
		struct sites *s = site_cache[--nsite_cache].s;

		free(s->at);
		free(s);
	}
}

/* ---- bytes ---- */

/* How one tensor axis is cut before, after, and by shards that remain. */
struct cut {
	int64_t n;
	int nfrom, nto, nkeep;
	int from[MAX_MESH], to[MAX_MESH], keep[MAX_MESH];
};

static Interval cut_at(int64_t n, const struct placement *p, int nchain,
		       const int *chain, const int *coord)
{
	Interval i = {0, n};

	for (int j = 0; j < nchain; j++) {
		Interval part = split(i.n, p->extent[chain[j]],
				      coord[chain[j]]);

		i.lo += part.lo;
		i.n = part.n;
	}
	return i;
}

/* The axes that are cut at all; *rest is the product of the others. */
static int cuts_of(Type t, Dist from, Dist to, const struct flow *f,
		   struct cut cut[MAX_RANK], int64_t *rest)
{
	int n = 0;

	*rest = dtype_size(t.dtype);
	for (int axis = 0; axis < t.shape.rank; axis++) {
		struct cut *c = &cut[n];

		c->n = t.shape.d[axis];
		c->nfrom = dist_chain(from, axis, c->from);
		c->nto = dist_chain(to, axis, c->to);
		c->nkeep = dist_chain(f->keep, axis, c->keep);
		if (c->nfrom || c->nto)
			n++;
		else
			*rest *= c->n;
	}
	return n;
}

static bool is_filled(Dist to, const struct flow *f, const int *coord)
{
	for (int k = 0; k < to.on->naxes; k++)
		if (f->fresh[k] && coord[k])
			return true;
	return false;
}

/* A move, seen from the sites. */
struct view {
	const struct placement *from, *to;
	int from_side, to_side;		/* of the sites */
	int ncut;
	struct cut cut[MAX_RANK];
	int64_t rest;			/* bytes along axes without a cut */
};

/* Elements of Y in those pieces of the source, from axis I of its chain on,
 * that lie on devices with the coordinates of COORD on the axes in NEAR. */
static int64_t near_count(const struct view *v, const struct cut *c, int i,
			  Interval piece, Interval y, const int *coord,
			  unsigned near)
{
	int64_t n = 0;
	int k;

	for (; i < c->nfrom && near >> c->from[i] & 1; i++) {
		Interval part = split(piece.n, v->from->extent[c->from[i]],
				      coord[c->from[i]]);

		piece = (Interval){piece.lo + part.lo, part.n};
	}
	if (interval_and(piece, y).n == 0)
		return 0;
	for (k = i; k < c->nfrom && !(near >> c->from[k] & 1); k++)
		;
	if (k == c->nfrom)
		return interval_and(piece, y).n;
	for (int part = 0; part < v->from->extent[c->from[i]]; part++) {
		Interval p = split(piece.n, v->from->extent[c->from[i]], part);

		p.lo += piece.lo;
		n += near_count(v, c, i + 1, p, y, coord, near);
	}
	return n;
}

/* What the device at SITE keeps of tensor axis C. */
static Interval kept(const struct view *v, const struct cut *c,
		     const struct site *site)
{
	const int *to = site->coord[v->to_side];
	Interval y = cut_at(c->n, v->to, c->nto, c->to, to);

	if (c->nkeep)
		y = interval_and(y, cut_at(c->n, v->to, c->nkeep, c->keep,
					   to));
	return y;
}

/* What the device at SITE keeps, in bytes, and how much of it is its own. */
static void volumes(const struct view *v, const struct site *site,
		    int64_t *whole, int64_t *own)
{
	const int *from = site->coord[v->from_side];

	*whole = *own = v->rest;
	for (int j = 0; j < v->ncut; j++) {
		const struct cut *c = &v->cut[j];
		Interval y = kept(v, c, site);
		Interval x = cut_at(c->n, v->from, c->nfrom, c->from, from);

		*whole *= y.n;
		*own *= interval_and(x, y).n;
	}
	if (!site->in[v->from_side])
		*own = 0;
}

static void view_init(struct view *v, Type t, Dist from, Dist to,
		      const struct sites *s, struct flow *f)
{
	*v = (struct view){.from = from.on, .to = to.on};
	flow_of(from, to, f);
	v->from_side = from.on == s->on[0] ? 0 : 1;
	v->to_side = to.on == s->on[0] ? 0 : 1;
	v->ncut = cuts_of(t, from, to, f, v->cut, &v->rest);
}

void move_bytes(Type t, Dist from, Dist to, const struct sites *s,
		int64_t *recv, int64_t *local)
{
	struct view v;
	struct flow f;

	view_init(&v, t, from, to, s, &f);
	for (int i = 0; i < s->n; i++) {
		const struct site *at = &s->at[i];
		int64_t whole;

		recv[i] = local[i] = 0;
		if (!at->in[v.to_side] ||
		    is_filled(to, &f, at->coord[v.to_side]))
			continue;
		volumes(&v, at, &whole, &local[i]);
		recv[i] = f.parts * whole - local[i];
	}
}

void move_bytes_near(Type t, Dist from, Dist to, const struct sites *s,
		     unsigned near, int64_t *bytes)
{
	struct view v;
	struct flow f;
	int64_t parts = 1;

	view_init(&v, t, from, to, s, &f);
	for (int k = 0; k < from.on->naxes; k++)
		if (f.reduce[k] && !(near >> k & 1))
			parts *= from.on->extent[k];
	for (int i = 0; i < s->n; i++) {
		const struct site *at = &s->at[i];
		const int *coord = at->coord[v.to_side];

		bytes[i] = 0;
		if (!at->in[v.to_side] || is_filled(to, &f, coord))
			continue;
		bytes[i] = parts * v.rest;
		for (int j = 0; j < v.ncut; j++)
			bytes[i] *= near_count(
				&v, &v.cut[j], 0, (Interval){0, v.cut[j].n},
				kept(&v, &v.cut[j], at), coord, near);
	}
}

static int64_t *site_vector(const struct sites *s)
{
	int64_t *v = calloc((size_t)s->n + 1, sizeof *v);

	if (!v)
		bug("out of memory");
	return v;
}

struct traffic move_traffic_of(Type t, Dist from, Dist to)
{
	const struct sites *s = sites_of(from.on, to.on, INT32_MAX);
	int64_t *recv = site_vector(s), *local = site_vector(s);
	struct traffic sum = {0, 0};

	move_bytes(t, from, to, s, recv, local);
	for (int i = 0; i < s->n; i++) {
		sum.total += recv[i];
		if (recv[i] > sum.busiest)
			sum.busiest = recv[i];
	}
	free(recv);
	free(local);
	return sum;
}

/* ---- the lower bound ---- */

static int64_t extents(Dist d, enum sbp_kind kind)
{
	int64_t n = 1;

	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == kind)
			n *= d.on->extent[k];
	return n;
}

/* On an equal placement: over how many devices one may vary the coordinates
 * of the axes whose terms, before and after, are of these kinds. */
static int64_t alike(Dist from, Dist to, unsigned from_kinds,
		     unsigned to_kinds)
{
	int64_t n = 1;

	for (int k = 0; k < from.on->naxes; k++)
		if (from_kinds >> from.t[k].kind & 1 &&
		    to_kinds >> to.t[k].kind & 1)
			n *= from.on->extent[k];
	return n;
}

static unsigned reductions(Dist d)
{
	unsigned kinds = 0;

	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == SBP_P)
			kinds |= 1u << d.t[k].red;
	return kinds;
}

static Dist without_p(Dist d)
{
	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == SBP_P)
			d.t[k] = sbp_b();
	return d;
}

/* Bytes of the pieces of TO: the largest, the largest that must be received,
 * and those of elements that nobody of TO's holders has. */
struct need {
	int64_t piece, missing, uncovered;
};

static struct need need_of(Type t, Dist from, Dist to)
{
	const struct sites *s = sites_of(from.on, to.on, INT32_MAX);
	int64_t *recv = site_vector(s), *local = site_vector(s);
	int64_t all = type_bytes(t), held = 0;
	struct need need = {0, 0, 0};

	move_bytes(t, without_p(from), without_p(to), s, recv, local);
	for (int i = 0; i < s->n; i++) {
		held += local[i];
		if (recv[i] > need.missing)
			need.missing = recv[i];
		if (recv[i] + local[i] > need.piece)
			need.piece = recv[i] + local[i];
	}
	if (dist_same_place(from, to))
		held /= alike(from, to, 1u << SBP_B | 1u << SBP_P,
			      1u << SBP_B | 1u << SBP_P);
	need.uncovered = held < all ? all - held : 0;
	free(recv);
	free(local);
	return need;
}

/*
 * The fewest receipts of an element of a partial target that has HOLDERS in
 * each of its GROUPS, of PARTS that have COPIES in a group: some groups take
 * one part as it is, one reduces the rest, the others hold the identity.
 */
static int64_t receipts_partial(int64_t parts, int64_t groups, int64_t holders,
				int64_t copies)
{
	int64_t alone = holders > copies ? holders - copies : 0;
	int64_t together = holders - 1 + (copies == 0), least = INT64_MAX;

	for (int64_t n = 1; n <= groups && n <= parts; n++) {
		int64_t all = n == parts ? n * alone :
			      (n - 1) * alone + parts - n + together;

		if (all < least)
			least = all;
	}
	return least;
}

static int64_t partial_bound(Dist from, Dist to, bool apart)
{
	int64_t parts = extents(from, SBP_P), groups = extents(to, SBP_P);
	int64_t holders = extents(to, SBP_B), copies = holders;

	if (dist_same_place(from, to))
		copies = alike(from, to, 1u << SBP_B, 1u << SBP_B);
	else if (apart)
		copies = 0;
	/* Parts of a sum are no parts of a maximum. */
	if (!(reductions(from) & reductions(to)))
		groups = 1;
	return receipts_partial(parts, groups, holders, copies);
}

/*
 * Without P each rank needs what it does not hold. With P each element needs
 * parts - 1 receipts to be reduced and one for each further holder; these are
 * shared by all ranks at best.
 */
int64_t boxing_bound(Type t, Dist from, Dist to)
{
	int64_t parts = extents(from, SBP_P), groups = extents(to, SBP_P);
	int64_t holders = extents(to, SBP_B), size = dtype_size(t.dtype);
	int world = sites_of(from.on, to.on, INT32_MAX)->world;
	struct need need = need_of(t, from, to);
	int64_t all = type_bytes(t), receipts, least;

	if (groups > 1) {
		receipts = all * partial_bound(from, to,
					       need.uncovered == all);
		least = 0;
	} else {
		least = parts > 1 ? need.piece : need.missing;
		receipts = all * (parts + holders - 2) + need.uncovered;
	}
	if (parts == 1 && groups == 1)
		return least;
	receipts = (receipts / size + world - 1) / world * size;
	return receipts > least ? receipts : least;
}
