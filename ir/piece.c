/*
 * piece.c: balanced intervals. What a device holds of a tensor axis follows
 * from its coordinates alone, on every machine in the same way.
 */
#include "ir/ir.h"

Interval split(int64_t n, int p, int i)
{
	int64_t q = n / p, r = n % p;

	return (Interval){i * q + (i < r ? i : r), q + (i < r)};
}

Interval interval_and(Interval a, Interval b)
{
	int64_t lo = a.lo > b.lo ? a.lo : b.lo;
	int64_t ea = a.lo + a.n, eb = b.lo + b.n;
	int64_t end = ea < eb ? ea : eb;

	return (Interval){lo, end > lo ? end - lo : 0};
}

Piece piece_of(Shape shape, Dist d, const int coord[MAX_MESH])
{
	Piece p = {shape.rank, {{0}}};
	Interval part, *own;
	int i, k, m;

	for (i = 0; i < shape.rank; i++)
		p.d[i].n = shape.d[i];
	for (k = 0; k < MAX_MESH; k++) {
		m = dist_nth(d, k);
		if (m >= d.on->naxes || d.t[m].kind != SBP_S)
			continue;
		own = &p.d[d.t[m].axis];
		part = split(own->n, d.on->extent[m], coord[m]);
		own->lo += part.lo;
		own->n = part.n;
	}
	return p;
}

Piece piece_and(Piece a, Piece b)
{
	Piece p = {a.rank, {{0}}};
	int i;

	for (i = 0; i < a.rank; i++)
		p.d[i] = interval_and(a.d[i], b.d[i]);
	return p;
}

int64_t piece_count(Piece p)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < p.rank; i++)
		n *= p.d[i].n;
	return n;
}

Shape piece_max(Shape shape, Dist d)
{
	static const int first[MAX_MESH];	/* holds the most, always */
	Piece p = piece_of(shape, d, first);
	Shape s = {shape.rank, {0}};
	int i;

	for (i = 0; i < s.rank; i++)
		s.d[i] = p.d[i].n;
	return s;
}

bool piece_even(Shape shape, Dist d, int axis)
{
	int64_t n = shape.d[axis];
	int k;

	/* Order plays no part: all divisions must leave nothing. */
	for (k = 0; k < d.on->naxes; k++) {
		if (d.t[k].kind != SBP_S || d.t[k].axis != axis)
			continue;
		if (n % d.on->extent[k])
			return false;
		n /= d.on->extent[k];
	}
	return true;
}
