/*
 * space.c: the distributions and types of one inference by number, and the
 * prices of converting between them, each found once.
 */
#include <string.h>

#include "passes/passes.h"

#define ROWS 1.25		/* of moving short rows, not whole pieces */
#define IN_PLACE 3e-7		/* seconds more, where strides are not dense */

/* The same bytes for the same distribution. */
static Dist normal(Dist d)
{
	Dist r;

	memset(&r, 0, sizeof r);
	r.on = d.on;
	for (int k = 0; k < MAX_MESH; k++) {
		r.order[k] = (uint8_t)k;
		if (k >= d.on->naxes)
			continue;
		r.t[k].kind = d.t[k].kind;
		if (d.t[k].kind == SBP_S)
			r.t[k].axis = d.t[k].axis;
		if (d.t[k].kind == SBP_P)
			r.t[k].red = d.t[k].red;
	}
	return r;
}

int space_dist(struct space *s, Dist d)
{
	void **at;

	d = normal(d);
	at = bytemap_at(s->a, &s->dist_id, &d, sizeof d);
	if (!*at) {
		PUSH(s->a, s->dists, d);
		*at = (void *)(intptr_t)s->dists.n;
	}
	return (int)(intptr_t)*at - 1;
}

int space_type(struct space *s, Type t)
{
	int64_t key[MAX_RANK + 2] = {t.dtype, t.shape.rank};
	size_t n = sizeof *key * (size_t)(t.shape.rank + 2);
	void **at;

	memcpy(key + 2, t.shape.d, sizeof *key * (size_t)t.shape.rank);
	at = bytemap_at(s->a, &s->type_id, key, n);
	if (!*at) {
		PUSH(s->a, s->types, t);
		*at = (void *)(intptr_t)s->types.n;
	}
	return (int)(intptr_t)*at - 1;
}

/* Bytes of the largest piece plus 1, or -1 where the pair is illegal. */
static int64_t bytes_or_illegal(struct space *s, int type, int dist)
{
	int key[2] = {type, dist};
	void **at = bytemap_at(s->a, &s->bytes, key, sizeof key);
	Type t = s->types.at[type];

	if (!*at && dist_why_not(s->dists.at[dist], t)) {
		*at = (void *)(intptr_t)-1;
	} else if (!*at) {
		t.shape = piece_max(t.shape, s->dists.at[dist]);
		*at = (void *)(intptr_t)(type_bytes(t) + 1);
	}
	return (int64_t)(intptr_t)*at;
}

bool space_legal(struct space *s, int type, int dist)
{
	return bytes_or_illegal(s, type, dist) > 0;
}

int64_t space_bytes(struct space *s, int type, int dist)
{
	int64_t b = bytes_or_illegal(s, type, dist);

	if (b < 0)
		bug("%s for %s", dist_text(s->dists.at[dist]),
		    type_text(s->types.at[type]));
	return b - 1;
}

Cost space_units(struct space *s, double seconds)
{
	double c = seconds * s->units;

	return c < 0x1p54 ? (Cost)(c + 0.5) : (Cost)1 << 54;
}

bool nest_grows(Dist from, Dist to, int axis)
{
	int f[MAX_MESH], t[MAX_MESH];
	int nf = dist_chain(from, axis, f), nt = dist_chain(to, axis, t);

	for (int i = 0; i < nf; i++)
		if (nt ? i >= nt || t[i] != f[i] : to.t[f[i]].kind != SBP_P)
			return false;
	return true;
}

/* Whether every rank has what it needs: parts stay, splits get finer. */
static bool is_local(Dist from, Dist to, int rank)
{
	if (from.on != to.on)
		return false;
	for (int k = 0; k < from.on->naxes; k++)
		if (from.t[k].kind == SBP_P && !sbp_eq(from.t[k], to.t[k]))
			return false;
	for (int i = 0; i < rank; i++)
		if (!nest_grows(from, to, i))
			return false;
	return true;
}

/* Pieces along another axis are short rows of what is there. */
static bool turns(Dist from, Dist to)
{
	for (int k = 0; k < from.on->naxes && from.on == to.on; k++)
		if (from.on->extent[k] > 1 && from.t[k].kind == SBP_S &&
		    to.t[k].kind == SBP_S && from.t[k].axis != to.t[k].axis)
			return true;
	return false;
}

/* 256 times the price, plus 128 where it is local, and who finds it in place;
 * kept with 1 added. */
static int64_t convert_memo(struct space *s, int type, int from, int to)
{
	int key[3] = {type, from, to};
	void **at = bytemap_at(s->a, &s->convert, key, sizeof key);

	if (!*at) {
		Type t = s->types.at[type];
		Dist x = s->dists.at[from], y = s->dists.at[to];
		bool local = is_local(x, y, t.shape.rank);
		double seconds = boxing_seconds(t, x, y);

		if (!local)
			seconds = seconds * (turns(x, y) ? ROWS : 1) + WAIT;
		*at = (void *)(intptr_t)(256 * space_units(s, seconds) +
					 128 * local + slice_readers(t, x, y) +
					 1);
	}
	return (int64_t)(intptr_t)*at - 1;
}

static Cost least(Cost a, Cost b)
{
	return a < b ? a : b;
}

struct price space_price(struct space *s, int type, int from, int to)
{
	int64_t memo = from == to ? 0 : convert_memo(s, type, from, to);

	if (memo & 128)
		return (struct price){.copy = memo / 256,
				      .stay = least(memo / 256,
						    space_units(s, IN_PLACE)),
				      .in_place = memo & 127};
	return (struct price){.receive = memo / 256};
}

/*
 * A unit is a femtosecond, or as much more as keeps the sum over the whole
 * graph, computed without any split and with every tensor sent many times,
 * far from overflow.
 */
void space_init(struct space *s, struct arena *a, const struct graph *g)
{
	double worst = 0;

	*s = (struct space){.a = a, .units = 1e15,
			    .reproducible = g->reproducible};
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		double flops = 0;

		for (int k = 0; k < n->nin; k++)
			worst += 256 * (double)type_bytes(n->in[k]->type) /
				 MEMORY_RATE;
		if (n->op == OP_matmul) {
			Shape x = n->in[0]->type.shape;

			flops = 2.0 * (double)x.d[x.rank - 1] *
				(double)shape_count(n->out[0]->type.shape);
		}
		worst += flops / GEMM_FLOPS + 1e-2;
	}
	while (worst * s->units > 0x1p58)
		s->units /= 10;
}

void space_done(struct space *s)
{
	text_free(&s->key);
}
