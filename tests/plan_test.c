/*
 * plan_test.c: plans of conversions against a simulation that knows nothing
 * of intervals: every device has a mask and values for each element of the
 * logical tensor, and a move is done element by element. Checks the values
 * after each plan, the bytes that each rank receives, the lower bound, and the
 * fractions that are known for even sizes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

static int passed, failed;

static void check(bool ok, const char *what, Type t, Dist from, Dist to)
{
	if (ok) {
		passed++;
		return;
	}
	if (failed++ < 20)
		printf("plan_test: %s: %s: %s -> %s\n", what, type_text(t),
		       dist_text(from), dist_text(to));
}

/* ---- placements ---- */

static struct placement *new_placement(struct arena *a, const char *name,
				       int naxes, const int *extent,
				       const int *rank)
{
	struct placement *p = NEW(a, struct placement);
	int *own;

	p->name = name;
	p->naxes = naxes;
	p->nranks = 1;
	for (int k = 0; k < naxes; k++) {
		p->extent[k] = extent[k];
		p->nranks *= extent[k];
	}
	own = NEW_N(a, int, p->nranks);
	for (int i = 0; i < p->nranks; i++)
		own[i] = rank ? rank[i] : i;
	p->rank = own;
	return p;
}

static struct placement *mesh(struct arena *a, int p, int q)
{
	return new_placement(a, "grid", 2, (int[]){p, q}, NULL);
}

/* ---- which device has what, one element at a time ---- */

enum { MAX_ELEMENTS = 512, MAX_RANKS = 64 };

/* Which of P parts of N elements has the element AT; its place in there. */
static int part_of(int64_t *n, int p, int64_t *at)
{
	int64_t lo = 0;

	for (int i = 0; i < p; i++) {
		int64_t size = *n / p + (i < *n % p ? 1 : 0);

		if (*at < lo + size) {
			*at -= lo;
			*n = size;
			return i;
		}
		lo += size;
	}
	return -1;
}

/* The coordinate that has element E on each split mesh axis, else -1. */
static void owner_of(Shape s, Dist d, int64_t e, int owner[MAX_MESH])
{
	int64_t at[MAX_RANK], n[MAX_RANK];

	for (int i = s.rank - 1; i >= 0; i--) {
		at[i] = e % s.d[i];
		n[i] = s.d[i];
		e /= s.d[i];
	}
	for (int i = 0; i < d.on->naxes; i++) {
		int k = dist_nth(d, i), axis = d.t[k].axis;

		owner[k] = -1;
		if (d.t[k].kind == SBP_S)
			owner[k] = part_of(&n[axis], d.on->extent[k],
					   &at[axis]);
	}
}

static bool owns(const struct placement *p, const int *owner, const int *coord)
{
	for (int k = 0; k < p->naxes; k++)
		if (owner[k] >= 0 && owner[k] != coord[k])
			return false;
	return true;
}

/* ---- the simulation ---- */

struct tensor {
	Type t;
	Dist d;
	int64_t n;
	bool has[MAX_RANKS][MAX_ELEMENTS];	/* by index in the mesh */
	int64_t v[MAX_RANKS][MAX_ELEMENTS];
};

static int64_t combine(enum red red, int64_t a, int64_t b)
{
	if (red == RED_SUM)
		return a + b;
	if (red == RED_MAX)
		return a > b ? a : b;
	return a < b ? a : b;
}

static int64_t identity(enum red red)
{
	const int64_t far = 1000000000;

	return red == RED_SUM ? 0 : red == RED_MAX ? -far : far;
}

static int mesh_device(const struct tensor *x, const int *coord)
{
	return mesh_at(x->d.on, coord);
}

/* Element E with the coordinates of COORD from axis K on reduced where PICK
 * says so. *count is how many parts were read. */
static int64_t reduced(const struct tensor *x, int64_t e, int k,
		       const bool *pick, int *coord, int *count)
{
	int64_t sum = 0;

	while (k < x->d.on->naxes && !pick[k])
		k++;
	if (k == x->d.on->naxes) {
		int device = mesh_device(x, coord);

		if (!x->has[device][e])
			bug("simulation: element %lld is not there",
			    (long long)e);
		++*count;
		return x->v[device][e];
	}
	for (int c = 0; c < x->d.on->extent[k]; c++) {
		int64_t next;

		coord[k] = c;
		next = reduced(x, e, k + 1, pick, coord, count);
		sum = c ? combine(x->d.t[k].red, sum, next) : next;
	}
	return sum;
}

/* Whether the device at COORD keeps element E, whose owners in FROM are
 * OWNER. */
static bool keeps(const struct flow *f, Dist to, const int *owner,
		  const int *coord)
{
	for (int k = 0; k < to.on->naxes; k++) {
		if (f->fresh[k] && coord[k])
			return false;
		if (f->place[k] && owner[k] != coord[k])
			return false;
	}
	return true;
}

static enum red filler(Dist to, const int *coord)
{
	enum red red = RED_SUM;

	for (int k = 0; k < to.on->naxes; k++)
		if (to.t[k].kind == SBP_P)
			red = to.t[k].red;
	for (int k = 0; k < to.on->naxes; k++)
		if (to.t[k].kind == SBP_P && coord[k])
			red = to.t[k].red;
	return red;
}

/* What the device at COORD of TO has of E; returns how many elements it got
 * from others. */
static int move_element(const struct tensor *x, const struct flow *f, Dist to,
			const int *coord, int rank, int64_t e, int64_t *v)
{
	int owner[MAX_MESH], from[MAX_MESH], own[MAX_MESH], count = 0;
	int self = mesh_index(x->d.on, rank);

	owner_of(x->t.shape, x->d, e, owner);
	if (!keeps(f, to, owner, coord)) {
		*v = identity(filler(to, coord));
		return 0;
	}
	if (self >= 0)
		mesh_coords(x->d.on, self, own);
	for (int k = 0; k < x->d.on->naxes; k++) {
		from[k] = owner[k] >= 0 ? owner[k] : self >= 0 ? own[k] : 0;
		if (f->stay[k])
			from[k] = coord[k];
	}
	*v = reduced(x, e, 0, f->reduce, from, &count);
	return count - (self >= 0 && x->has[self][e]);
}

static void simulate(const struct tensor *x, Dist to, struct tensor *y,
		     int64_t *recv)
{
	struct flow f;
	int coord[MAX_MESH], owner[MAX_MESH];

	flow_of(x->d, to, &f);
	memset(y->has, 0, sizeof y->has);
	y->t = x->t;
	y->d = to;
	y->n = x->n;
	for (int i = 0; i < to.on->nranks; i++) {
		int rank = to.on->rank[i];

		mesh_coords(to.on, i, coord);
		for (int64_t e = 0; e < x->n; e++) {
			owner_of(x->t.shape, to, e, owner);
			if (!owns(to.on, owner, coord))
				continue;
			y->has[i][e] = true;
			recv[rank] += move_element(x, &f, dist_plain(to),
						   coord, rank, e,
						   &y->v[i][e]);
		}
	}
}

/* The logical value of E by the device that has the coordinates of INDEX on
 * all axes that are not partial. */
static int64_t logical(const struct tensor *x, int index, int64_t e)
{
	bool pick[MAX_MESH] = {false};
	int coord[MAX_MESH], owner[MAX_MESH], count = 0;

	mesh_coords(x->d.on, index, coord);
	owner_of(x->t.shape, x->d, e, owner);
	for (int k = 0; k < x->d.on->naxes; k++) {
		pick[k] = x->d.t[k].kind == SBP_P;
		if (owner[k] >= 0)
			coord[k] = owner[k];
	}
	return reduced(x, e, 0, pick, coord, &count);
}

/* Values that tell parts and elements apart, of both signs. */
static int64_t initial(Dist d, const int *coord, int64_t e)
{
	int64_t v = e * 7 % 23 - 11;

	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == SBP_P)
			v += (coord[k] * (int)(3 + e) * (k + 2)) % 13 - 5;
	return v;
}

static void fill(struct tensor *x, Type t, Dist d)
{
	int coord[MAX_MESH], owner[MAX_MESH];

	memset(x->has, 0, sizeof x->has);
	x->t = t;
	x->d = d;
	x->n = shape_count(t.shape);
	for (int i = 0; i < d.on->nranks; i++) {
		mesh_coords(d.on, i, coord);
		for (int64_t e = 0; e < x->n; e++) {
			owner_of(t.shape, d, e, owner);
			x->has[i][e] = owns(d.on, owner, coord);
			x->v[i][e] = initial(d, coord, e);
		}
	}
}

static bool same_values(const struct tensor *x, const struct tensor *y)
{
	for (int i = 0; i < y->d.on->nranks; i++)
		for (int64_t e = 0; e < x->n; e++)
			if (logical(x, 0, e) != logical(y, i, e))
				return false;
	return true;
}

/* ---- one conversion ---- */

static struct tensor buffers[3];

static void check_bytes(const struct boxing *b, const int64_t *recv)
{
	int64_t total = 0, size = dtype_size(b->type.dtype);
	bool p = dist_has(b->from, SBP_P) || dist_has(b->to, SBP_P);

	for (int i = 0; i < MAX_RANKS; i++)
		total += recv[i] * size;
	check(b->recv_busiest == greatest(recv, MAX_RANKS) * size, "busiest",
	      b->type, b->from, b->to);
	check(b->recv_total == total, "total", b->type, b->from, b->to);
	check(b->recv_busiest >= b->lower_bound, "below the bound", b->type,
	      b->from, b->to);
	if (!p)
		check(b->recv_busiest == b->lower_bound && b->nsteps <= 1,
		      "above the bound", b->type, b->from, b->to);
}

static void convert(Type t, Dist from, Dist to)
{
	struct boxing b = {.type = t, .from = from, .to = to};
	struct tensor *x = &buffers[1], *y = &buffers[2], *swap;
	int64_t recv[MAX_RANKS] = {0};

	plan_boxing(&b);
	fill(&buffers[0], t, from);
	fill(x, t, from);
	for (int i = 0; i < b.nsteps; i++) {
		int64_t each[MAX_RANKS] = {0}, total = 0;
		struct traffic traffic;

		simulate(x, b.step[i], y, each);
		traffic = move_traffic(t, x->d, b.step[i]);
		for (int r = 0; r < MAX_RANKS; r++) {
			recv[r] += each[r];
			total += each[r] * dtype_size(t.dtype);
		}
		check(traffic.total == total &&
			      traffic.busiest == greatest(each, MAX_RANKS) *
							 dtype_size(t.dtype),
		      "bytes of a move", t, x->d, b.step[i]);
		swap = x;
		x = y;
		y = swap;
	}
	check(dist_eq(x->d, to), "where it ends", t, from, to);
	check(same_values(&buffers[0], x), "values", t, from, to);
	check_bytes(&b, recv);
}

/* ---- known fractions ---- */

struct row {
	Sbp from[2], to[2];
	double fraction[3];	/* on 2x2, 4x2, 8x8 */
};

#define B {SBP_B, 0, 0}
#define S0 {SBP_S, 0, 0}
#define S1 {SBP_S, 1, 0}
#define P {SBP_P, 0, RED_SUM}
#define PMAX {SBP_P, 0, RED_MAX}
static const struct row rows[] = {
	{{B, S0}, {S1, S1}, {.125, .0625, 7. / 512}},
	{{S0, S0}, {B, S0}, {.5, .5, .125}},
	{{S0, S0}, {S0, S1}, {.125, .0625, 7. / 512}},
	{{B, S0}, {S0, S0}, {.25, .125, 1. / 64}},
	{{P, S0}, {B, B}, {1, 1.25, 70. / 64}},
	{{P, P}, {B, B}, {1.5, 1.75, 126. / 64}},
	{{P, P}, {S0, S0}, {.75, .875, 63. / 64}},
	{{P, B}, {B, B}, {1, 1.25, 70. / 64}},
};

static Dist dist2(const struct placement *p, const Sbp *terms)
{
	Dist d = dist_on(p, sbp_b());

	d.t[0] = terms[0];
	d.t[1] = terms[1];
	return d;
}

static void check_fractions(struct arena *a)
{
	const int extent[3][2] = {{2, 2}, {4, 2}, {8, 8}};
	Type t = {DT_F32, {2, {64, 128}}};

	for (int m = 0; m < 3; m++) {
		const struct placement *p = mesh(a, extent[m][0], extent[m][1]);

		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			struct boxing b = {.type = t};
			double bytes = rows[i].fraction[m] *
				       (double)type_bytes(t);

			b.from = dist2(p, rows[i].from);
			b.to = dist2(p, rows[i].to);
			plan_boxing(&b);
			check((double)b.recv_busiest == bytes, "fraction", t,
			      b.from, b.to);
			check(b.recv_busiest == b.lower_bound,
			      "fraction above the bound", t, b.from, b.to);
		}
	}
}

/* ---- all pairs of 2-D distributions, and many others by chance ---- */

static const Sbp terms[] = {B, S0, S1, P, PMAX, {SBP_P, 0, RED_MIN}};

static void check_pairs(const struct placement *p, Type t)
{
	enum { TERMS = 5 };

	for (int i = 0; i < TERMS * TERMS; i++)
		for (int j = 0; j < TERMS * TERMS; j++) {
			Sbp from[2] = {terms[i / TERMS], terms[i % TERMS]};
			Sbp to[2] = {terms[j / TERMS], terms[j % TERMS]};

			convert(t, dist2(p, from), dist2(p, to));
		}
}

static void check_all_pairs(struct arena *a)
{
	static const int extent[3][2] = {{2, 2}, {2, 3}, {3, 1}};
	static const int64_t shape[][2] = {{4, 6}, {5, 3}, {1, 7}, {0, 3},
					   {2, 1}};

	for (int m = 0; m < 3; m++) {
		struct placement *p = mesh(a, extent[m][0], extent[m][1]);

		for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
			check_pairs(p, (Type){DT_F32, {2, {shape[i][0],
							   shape[i][1]}}});
	}
}

static uint32_t chance_state = 12345;

static int chance(int n)
{
	chance_state = chance_state * 1664525u + 1013904223u;
	return (int)((chance_state >> 8) % (uint32_t)n);
}

/* A mesh of at most 16 of ranks 0..19, in any order. */
static struct placement *any_placement(struct arena *a)
{
	int extent[MAX_MESH], rank[20], naxes = 1 + chance(4), n = 1;

	for (int k = 0; k < naxes; k++) {
		extent[k] = 1 + chance(naxes > 2 ? 2 : 4);
		n *= extent[k];
	}
	for (int i = 0; i < 20; i++)
		rank[i] = i;
	for (int i = 0; i < n; i++) {
		int j = i + chance(20 - i), r = rank[i];

		rank[i] = rank[j];
		rank[j] = r;
	}
	return new_placement(a, "any", naxes, extent, chance(2) ? rank : NULL);
}

static Dist any_dist(const struct placement *p, Type t)
{
	Dist d = dist_on(p, sbp_b());

	for (int k = 0; k < p->naxes; k++) {
		int i = chance(6);

		if (i > 2)
			d.t[k] = terms[i];
		else if (i && t.shape.rank)
			d.t[k] = sbp_s(chance(t.shape.rank));
	}
	return d;
}

static Type any_type(void)
{
	Type t = {chance(2) ? DT_F32 : DT_I64, {chance(4), {0}}};

	for (int i = 0; i < t.shape.rank; i++)
		t.shape.d[i] = chance(8);
	return t;
}

static void check_chance(int n)
{
	for (int i = 0; i < n; i++) {
		struct arena *a = arena_new();
		const struct placement *p = any_placement(a);
		const struct placement *q = chance(2) ? p : any_placement(a);
		Type t = any_type();

		convert(t, any_dist(p, t), any_dist(q, t));
		plan_reset();
		arena_free(a);
	}
}

/* ---- predictions ---- */

static void check_seconds(struct arena *a)
{
	const struct placement *p = mesh(a, 64, 64);
	Type t = {DT_F32, {2, {1024, 1024}}};
	Sbp ps[2] = {P, S0}, bb[2] = {B, B}, bs[2] = {B, S0};

	check(boxing_seconds(t, dist2(p, bs), dist2(p, bs)) == 0,
	      "seconds of nothing", t, dist2(p, bs), dist2(p, bs));
	check(boxing_seconds(t, dist2(p, ps), dist2(p, bb)) >
		      boxing_seconds(t, dist2(p, ps), dist2(p, bs)),
	      "seconds of more", t, dist2(p, ps), dist2(p, bb));
}

int main(void)
{
	struct arena *a = arena_new();

	check_fractions(a);
	check_all_pairs(a);
	check_seconds(a);
	plan_reset();
	check_chance(4000);
	arena_free(a);
	printf("plan_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
