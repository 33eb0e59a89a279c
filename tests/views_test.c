/*
 * views_test.c: what slice_readers promises of a slice, on every device,
 * element by element: that the piece lies in the device's own piece of the
 * source, and how its elements lie there for each way of reading.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum { TRIALS = 40000, MOST = 4096 };

static unsigned seed = 1;
static int failed, slices, runs, copies;

static int draw(int n)
{
	seed = seed * 1103515245 + 12345;
	return (int)(seed >> 8) % n;
}

/* ---- a slice on one device ---- */

/* TO's piece in FROM's, dense and row-major. */
struct slice {
	Piece from, to;
	int64_t at[MOST]; /* of its elements, in their order */
	int64_t n;
};

static bool is_within(const struct slice *s)
{
	for (int i = 0; i < s->to.rank; i++) {
		int64_t lo = s->to.d[i].lo - s->from.d[i].lo;

		if (s->to.d[i].n &&
		    (lo < 0 || lo + s->to.d[i].n > s->from.d[i].n))
			return false;
	}
	return true;
}

/* Where element E of the piece lies. */
static int64_t place_of_element(const struct slice *s, int64_t e)
{
	int64_t at = 0, stride = 1;

	for (int i = s->to.rank - 1; i >= 0; i--) {
		at += stride *
		      (e % s->to.d[i].n + s->to.d[i].lo - s->from.d[i].lo);
		e /= s->to.d[i].n;
		stride *= s->from.d[i].n;
	}
	return at;
}

static void fill(struct slice *s)
{
	s->n = piece_count(s->to);
	for (int64_t e = 0; e < s->n; e++)
		s->at[e] = place_of_element(s, e);
}

/* The product of the extents of axes [FROM, TO). */
static int64_t count(const Piece *p, int from, int to)
{
	int64_t n = 1;

	for (int i = from; i < to; i++)
		n *= p->d[i].n;
	return n;
}

/* Rows of N elements, each a run, begin APART from each other. */
static bool are_rows(const struct slice *s, int64_t n, int64_t apart)
{
	for (int64_t e = 1; e < s->n; e++) {
		int64_t back = e % n ? 1 : n;
		int64_t step = e % n ? 1 : apart;

		if (s->at[e] - s->at[e - back] != step)
			return false;
	}
	return true;
}

/* The last axis that is longer than 1 on some device is dense. */
static bool ends_dense(const struct slice *s, Shape most)
{
	int last = most.rank - 1;

	while (last >= 0 && most.d[last] == 1)
		last--;
	return last < 0 || s->to.d[last].n < 2 ||
	       count(&s->from, last + 1, most.rank) == 1;
}

static bool keeps(const struct slice *s, unsigned can, Shape most)
{
	int rank = s->to.rank;
	int64_t row = count(&s->to, rank - 1, rank);
	int64_t table = count(&s->to, 1, rank);

	if (!is_within(s))
		return false;
	if (!s->n)
		return true;
	if ((can >> READS_RUN & 1) && !are_rows(s, s->n, 0))
		return false;
	if ((can >> READS_ROWS & 1) &&
	    !are_rows(s, row, count(&s->from, rank - 1, rank)))
		return false;
	if ((can >> READS_TABLE & 1) &&
	    !are_rows(s, table, count(&s->from, 1, rank)))
		return false;
	return !(can >> READS_LANES & 1) || ends_dense(s, most);
}

/* ---- random slices ---- */

static struct placement *new_mesh(struct arena *a, int naxes, int p, int q)
{
	struct placement *on = NEW(a, struct placement);
	int *rank = NEW_N(a, int, p *q);

	*on = (struct placement){.name = "grid",
				 .naxes = naxes,
				 .extent = {p, q},
				 .nranks = p * q,
				 .rank = rank};
	for (int i = 0; i < p * q; i++)
		rank[i] = i;
	return on;
}

static Sbp random_term(int rank)
{
	int kind = draw(8);

	if (kind == 0)
		return sbp_p(draw(2) ? RED_SUM : RED_MAX);
	return kind < 5 ? sbp_b() : sbp_s(draw(rank));
}

static Dist random_dist(const struct placement *on, int rank)
{
	Dist d = dist_on(on, sbp_b());

	for (int k = 0; k < on->naxes; k++)
		d.t[k] = random_term(rank);
	if (on->naxes == 2 && draw(3) == 0) {
		d.order[0] = 1;
		d.order[1] = 0;
	}
	return d;
}

/* Mostly finer than D. */
static Dist random_target(Dist d, int rank)
{
	if (draw(4) == 0)
		return random_dist(d.on, rank);
	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == SBP_B)
			d.t[k] = random_term(rank);
	return d;
}

static void check_devices(Type t, Dist from, Dist to, unsigned can)
{
	Shape most = piece_max(t.shape, to);

	for (int i = 0; i < to.on->nranks; i++) {
		static struct slice s;
		int coord[MAX_MESH];

		mesh_coords(to.on, i, coord);
		s.from = piece_of(t.shape, from, coord);
		s.to = piece_of(t.shape, to, coord);
		fill(&s);
		if (keeps(&s, can, most) || failed++ > 10)
			continue;
		printf("views_test: %s: %s -> %s: device %d, %x\n",
		       type_text(t), dist_text(from), dist_text(to), i, can);
	}
}

static void try(const struct placement *on)
{
	static const int64_t extents[] = {1, 2, 3, 4, 5, 6};
	Type t = {DT_F32, {1 + draw(4), {0}}};
	Dist from, to;
	unsigned can;

	for (int i = 0; i < t.shape.rank; i++)
		t.shape.d[i] = extents[draw(6)];
	from = random_dist(on, t.shape.rank);
	to = random_target(from, t.shape.rank);
	can = slice_readers(t, from, to);
	if (!can || dist_eq(from, to)) {
		copies++;
		return;
	}
	slices++;
	runs += can >> READS_RUN & 1;
	check_devices(t, from, to, can);
	if (can & 1u << READS_NOT || !(can >> READS_ANY & 1))
		failed++;
}

int main(void)
{
	struct arena *a = arena_new();
	struct placement *mesh[] = {new_mesh(a, 1, 3, 1), new_mesh(a, 2, 2, 3),
				    new_mesh(a, 2, 3, 2), new_mesh(a, 2, 1, 4)};

	for (int i = 0; i < TRIALS; i++)
		try(mesh[i % 4]);
	if (slices < TRIALS / 8 || runs < slices / 8 || runs > slices * 7 / 8)
		failed++;
	printf("%d slices, %d of them runs, %d others; %d failed\n", slices,
	       runs, copies, failed);
	arena_free(a);
	return failed != 0;
}
