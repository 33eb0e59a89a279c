/*
 * sbp.c: distributions: equality, legality, text.
 */
#include <string.h>

#include "ir/ir.h"

bool sbp_eq(Sbp a, Sbp b)
{
	return a.kind == b.kind && (a.kind != SBP_S || a.axis == b.axis) &&
	       (a.kind != SBP_P || a.red == b.red);
}

Dist dist_on(const struct placement *p, Sbp all)
{
	Dist d = {p, {{0}}, {0, 1, 2, 3}};
	int k;

	for (k = 0; p && k < p->naxes; k++)
		d.t[k] = all;
	return d;
}

Dist dist_plain(Dist d)
{
	for (int k = 0; d.on && k < d.on->naxes; k++)
		if (d.on->extent[k] == 1)
			d.t[k] = sbp_b();
	return d;
}

int dist_nth(Dist d, int k)
{
	/* A Dist that was filled by hand may have left the order zeroed. */
	return d.order[0] == d.order[1] ? k : d.order[k];
}

int dist_chain(Dist d, int axis, int chain[MAX_MESH])
{
	bool plain = d.order[0] == d.order[1];	/* see dist_nth */
	int k, n = 0, mesh_axis;

	for (k = 0; k < MAX_MESH; k++) {
		mesh_axis = plain ? k : d.order[k];
		if (d.t[mesh_axis].kind == SBP_S &&
		    d.t[mesh_axis].axis == axis && mesh_axis < d.on->naxes)
			chain[n++] = mesh_axis;
	}
	return n;
}

/* Whether all axes that several mesh axes split are split in the same order. */
static bool same_order(Dist a, Dist b)
{
	int ca[MAX_MESH], cb[MAX_MESH], k, n;

	if (!memcmp(a.order, b.order, sizeof a.order))
		return true;
	for (k = 0; k < a.on->naxes; k++) {
		if (a.t[k].kind != SBP_S)
			continue;
		n = dist_chain(a, a.t[k].axis, ca);
		if (dist_chain(b, a.t[k].axis, cb) != n ||
		    memcmp(ca, cb, sizeof *ca * (size_t)n))
			return false;
	}
	return true;
}

bool dist_eq(Dist a, Dist b)
{
	int k;

	if (!a.on || !b.on)
		return a.on == b.on;
	if (!placement_eq(a.on, b.on))
		return false;
	a = dist_plain(a);
	b = dist_plain(b);
	for (k = 0; k < a.on->naxes; k++)
		if (!sbp_eq(a.t[k], b.t[k]))
			return false;
	return same_order(a, b);
}

bool dist_has(Dist d, enum sbp_kind kind)
{
	int k;

	for (k = 0; d.on && k < d.on->naxes; k++)
		if (d.t[k].kind == kind)
			return true;
	return false;
}

bool dist_known(Dist d)
{
	return d.on && !dist_has(d, SBP_ANY);
}

bool dist_fits(Dist d, Dist request)
{
	int k;

	if (!d.on || !request.on || !placement_eq(d.on, request.on))
		return false;
	for (k = 0; k < d.on->naxes; k++)
		if (request.t[k].kind != SBP_ANY &&
		    !sbp_eq(d.t[k], request.t[k]))
			return false;
	return same_order(d, request);
}

const char *dist_why_not(Dist d, Type t)
{
	int k;

	if (!d.on)
		return "it has no placement";
	for (k = 0; k < d.on->naxes; k++) {
		if (d.t[k].kind == SBP_P && t.dtype == DT_BOOL)
			return text_brief("%s of a bool tensor has no meaning",
					  sbp_text(d.t[k]));
		if (d.t[k].kind != SBP_S)
			continue;
		if (!t.shape.rank)
			return text_brief("%s of a scalar: it takes B and P "
					  "only", sbp_text(d.t[k]));
		if (d.t[k].axis < 0 || d.t[k].axis >= t.shape.rank)
			return text_brief("%s has no axis %d", type_text(t),
					  d.t[k].axis);
	}
	return NULL;
}

const char *sbp_text(Sbp s)
{
	static const char *const red[] = {"P", "P(max)", "P(min)"};

	switch (s.kind) {
	case SBP_B:
		return "B";
	case SBP_S:
		return text_brief("S(%d)", s.axis);
	case SBP_P:
		return red[s.red % 3];
	default:
		return "_";
	}
}

const char *dist_terms(Dist d)
{
	const char *t = "";
	int k;

	for (k = 0; d.on && k < d.on->naxes; k++)
		t = text_brief("%s%s%s", t, k ? ", " : "", sbp_text(d.t[k]));
	return text_brief("(%s)", t);
}

const char *dist_text(Dist d)
{
	if (!d.on)
		return "unknown";
	return text_brief("%s%s", d.on->name ? d.on->name : "",
			  dist_terms(d));
}
