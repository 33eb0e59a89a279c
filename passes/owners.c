/*
 * owners.c: who wrote each byte of an arena last. Offsets at which some buffer
 * begins or ends cut the arena into segments; a tree over these marks ranges
 * in logarithmic time.
 */
#include <stdlib.h>

#include "passes/passes.h"

enum { NOBODY = -1, SEVERAL = -2 };

struct owners {
	int64_t *cut;      /* ascending, ncuts of them */
	int ncuts, leaves; /* a power of two */
	int *mark;         /* by node of the tree: the root is 1 */
};

static int by_value(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return a < b ? -1 : a > b;
}

static void find_cuts(struct owners *o, const struct program *p, int class)
{
	int n = 0;

	for (int i = 0; i < p->g->values.n; i++) {
		const struct local *own = &p->local[i];

		if (!own->at || own->at[class] < 0)
			continue;
		o->cut[n++] = own->at[class];
		o->cut[n++] = own->at[class] + own->bytes;
	}
	qsort(o->cut, (size_t)n, sizeof *o->cut, by_value);
	for (int i = 0; i < n; i++)
		if (!i || o->cut[i] != o->cut[i - 1])
			o->cut[o->ncuts++] = o->cut[i];
}

struct owners *owners_new(struct arena *a, const struct program *p, int class)
{
	struct owners *o = NEW(a, struct owners);

	o->cut = NEW_N(a, int64_t, 2 * p->g->values.n + 1);
	find_cuts(o, p, class);
	for (o->leaves = 1; o->leaves < o->ncuts;)
		o->leaves *= 2;
	o->mark = NEW_N(a, int, 2 * o->leaves);
	for (int i = 0; i < 2 * o->leaves; i++)
		o->mark[i] = NOBODY;
	return o;
}

/* The segment that begins at BYTE; -1: none does. */
static int segment(const struct owners *o, int64_t byte)
{
	const int64_t *at = bsearch(&byte, o->cut, (size_t)o->ncuts,
				    sizeof *o->cut, by_value);

	return at ? (int)(at - o->cut) : -1;
}

/* Node I covers segments [lo, hi). The depth is that of the tree. */
static void mark(struct owners *o, int i, int lo, int hi, int from, int to,
		 int id)
{
	int mid = lo + (hi - lo) / 2, *m = &o->mark[i];

	if (from >= hi || to <= lo)
		return;
	if (from <= lo && to >= hi) {
		*m = id;
		return;
	}
	if (*m != SEVERAL)
		o->mark[2 * i] = o->mark[2 * i + 1] = *m;
	mark(o, 2 * i, lo, mid, from, to, id);
	mark(o, 2 * i + 1, mid, hi, from, to, id);
	*m = o->mark[2 * i] == o->mark[2 * i + 1] ? o->mark[2 * i] : SEVERAL;
}

static bool marked(const struct owners *o, int i, int lo, int hi, int from,
		   int to, int id)
{
	int mid = lo + (hi - lo) / 2;

	if (from >= hi || to <= lo)
		return true;
	if (o->mark[i] != SEVERAL)
		return o->mark[i] == id;
	return marked(o, 2 * i, lo, mid, from, to, id) &&
	       marked(o, 2 * i + 1, mid, hi, from, to, id);
}

void owners_set(struct owners *o, int64_t at, int64_t bytes, int id)
{
	int from = segment(o, at), to = segment(o, at + bytes);

	if (bytes && from >= 0 && to >= 0)
		mark(o, 1, 0, o->leaves, from, to, id);
}

bool owners_have(const struct owners *o, int64_t at, int64_t bytes, int id)
{
	int from = segment(o, at), to = segment(o, at + bytes);

	if (!bytes)
		return true;
	return from >= 0 && to >= 0 && marked(o, 1, 0, o->leaves, from, to, id);
}
