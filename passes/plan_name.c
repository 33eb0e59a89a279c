/*
 * plan_name.c: the field's names for moves: all-gather, reduce-scatter, ...
 */
#include "passes/passes.h"

/* Mesh axes by what becomes of them; those of one device are left out. */
struct changes {
	unsigned gather;	/* S -> B, P */
	unsigned shift;		/* S(i) -> S(j) */
	unsigned slice;		/* B, P that stays -> S */
	unsigned scatter;	/* reduced, -> S */
	unsigned reduce;	/* reduced, -> B, P */
	unsigned fill;		/* -> P */
};

static void change_of(Dist from, Dist to, const struct flow *f, int k,
		      struct changes *c)
{
	unsigned bit = 1u << k;
	bool to_s = to.t[k].kind == SBP_S;

	if (f->fresh[k] || f->place[k])
		c->fill |= bit;
	if (f->stay[k] || sbp_eq(from.t[k], to.t[k]))
		return;
	if (f->reduce[k])
		*(to_s ? &c->scatter : &c->reduce) |= bit;
	else if (from.t[k].kind != SBP_S)
		c->slice |= to_s ? bit : 0;
	else if (!f->place[k])
		*(to_s ? &c->shift : &c->gather) |= bit;
}

static void add_name(struct arena *a, const char **text, const char *name,
		     unsigned axes)
{
	const char *list = "";

	if (!axes)
		return;
	for (int k = 0; k < MAX_MESH; k++)
		if (axes & 1u << k)
			list = arena_text(a, "%s%s%d", list,
					  *list ? "," : "", k);
	*text = arena_text(a, "%s%s%s(%s)", *text, **text ? ", " : "", name,
			   list);
}

static void add_plain(struct arena *a, const char **text, const char *name)
{
	*text = arena_text(a, "%s%s%s", *text, **text ? ", " : "", name);
}

/* Whether devices exchange only along the axes that change: those that split
 * a tensor axis before and after do so outside of the others. */
static bool aligned(Dist from, Dist to)
{
	for (int axis = 0; axis < MAX_RANK; axis++) {
		int x[MAX_MESH], y[MAX_MESH], common = 0, both = 0;
		int nx = dist_chain(from, axis, x);
		int ny = dist_chain(to, axis, y);

		while (common < nx && common < ny && x[common] == y[common])
			common++;
		for (int k = 0; k < to.on->naxes; k++)
			both += from.t[k].kind == SBP_S &&
				from.t[k].axis == axis &&
				sbp_eq(from.t[k], to.t[k]);
		if (common < both)
			return false;
	}
	return true;
}

/* Whether every other device gets a copy of all of it. */
static bool is_broadcast(Dist from, Dist to)
{
	return !dist_has(from, SBP_S) && !dist_has(to, SBP_S) &&
	       !dist_has(to, SBP_P);
}

static const char *name_across(struct arena *a, Dist from, Dist to,
			       bool receives)
{
	const char *text = "";

	if (dist_has(from, SBP_P))
		add_plain(a, &text, "reduce");
	else if (!receives)
		add_plain(a, &text, "slice");
	else
		add_plain(a, &text,
			  is_broadcast(from, to) ? "broadcast" : "send/recv");
	if (dist_has(to, SBP_P))
		add_plain(a, &text, "identity fill");
	return text;
}

const char *move_name(struct arena *a, Dist from, Dist to, bool receives)
{
	struct flow f;
	struct changes c = {0, 0, 0, 0, 0, 0};
	const char *text = "";

	flow_of(from, to, &f);
	if (!f.same)
		return name_across(a, from, to, receives);
	for (int k = 0; k < to.on->naxes; k++)
		if (to.on->extent[k] > 1)
			change_of(from, to, &f, k, &c);
	if (!receives)
		return c.fill ? "identity fill" : "slice";
	add_name(a, &text, "reduce-scatter", c.scatter);
	add_name(a, &text, "all-reduce", c.reduce);
	if (!aligned(from, to) ||
	    (!c.scatter && !c.reduce && (c.slice || !c.shift == !c.gather))) {
		add_plain(a, &text, "send/recv");
	} else {
		add_name(a, &text, "all-to-all", c.shift);
		add_name(a, &text, "all-gather", c.gather);
	}
	if (c.fill)
		add_plain(a, &text, "identity fill");
	return text;
}
