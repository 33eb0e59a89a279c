/*
 * topology.c: reads what the links of a mesh cost. A line of a topology file
 * is `PLACEMENT AXIS LATENCY BANDWIDTH`, or `between LATENCY BANDWIDTH` for
 * moves from one placement to another; `*` is any placement, or axis.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

/* Along what no line speaks of: ranks of one host. */
static const struct mesh_link usual = {1e-6, 10e9};

/* ---- one line ---- */

struct word {
	const char *at;
	int n;
	Span span;
};

struct scan {
	struct arena *a;
	const struct source *s;
	struct topology *t;
	struct word word[5]; /* of the line; one more than it may have */
	int n;
	Span line;
	bool good;
};

static bool wrong(struct scan *r, Span at, const char *what)
{
	diag_error(at, "topology: %s", what);
	r->good = false;
	return false;
}

/* Words up to the end of the line or a comment; returns what follows. */
static const char *read_words(struct scan *r, const char *at)
{
	const char *start = at, *end = at + strcspn(at, "\n");
	const char *stop = at + strcspn(at, "#\n");
	uint32_t base = r->s->base;

	r->n = 0;
	while (r->n < 5) {
		struct word *w = &r->word[r->n];

		at += strspn(at, " \t\r");
		if (at >= stop)
			break;
		w->at = at;
		w->n = (int)strcspn(at, " \t\r#\n");
		at += w->n;
		w->span = (Span){base + (uint32_t)(w->at - r->s->text),
				 base + (uint32_t)(at - r->s->text)};
		r->n++;
	}
	if (r->n)
		r->line = (Span){r->word[0].span.lo, r->word[r->n - 1].span.hi};
	else
		r->line = (Span){base + (uint32_t)(start - r->s->text),
				 base + (uint32_t)(end - r->s->text)};
	return *end ? end + 1 : end;
}

static bool is_word(const struct word *w, const char *s)
{
	return (size_t)w->n == strlen(s) && !memcmp(w->at, s, (size_t)w->n);
}

struct unit {
	const char *name;
	double factor;
};
static const struct unit times[] = {
	{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const struct unit rates[] = {
	{"B/s", 1},         {"kB/s", 1e3},         {"MB/s", 1e6},
	{"GB/s", 1e9},      {"TB/s", 1e12},        {"KiB/s", 1024},
	{"MiB/s", 1048576}, {"GiB/s", 1073741824}, {"TiB/s", 1099511627776},
	{NULL, 0}};

/* "2.5us": a number and one of UNITS. */
static bool read_measure(const struct word *w, const struct unit *units,
			 double *out)
{
	char text[64];
	char *end;
	double value;

	if (w->n >= (int)sizeof text || !strchr("0123456789.", w->at[0]))
		return false;
	memcpy(text, w->at, (size_t)w->n);
	text[w->n] = '\0';
	value = strtod(text, &end);
	for (; units->name; units++) {
		if (strcmp(end, units->name))
			continue;
		*out = value * units->factor;
		return value < 1e30;
	}
	return false;
}

static bool read_link(struct scan *r, const struct word *w, struct mesh_link *l)
{
	if (!read_measure(&w[0], times, &l->latency))
		return wrong(r, w[0].span,
			     "a latency is a number and ns, us, ms or s: "
			     "2.5us");
	if (!read_measure(&w[1], rates, &l->rate) || l->rate <= 0)
		return wrong(r, w[1].span,
			     "a bandwidth is a number above 0 and B/s, kB/s, "
			     "MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s or "
			     "TiB/s: 12.5GB/s");
	return true;
}

static bool read_axis(struct scan *r, const struct word *w,
		      struct topology_line *l)
{
	l->axis_span = w->span;
	l->axis = -1;
	if (is_word(w, "*"))
		return true;
	if (strspn(w->at, "0123456789") < (size_t)w->n) {
		l->axis_name = name_n(w->at, (size_t)w->n);
		return true;
	}
	if (w->n > 1 || w->at[0] - '0' >= MAX_MESH)
		return wrong(r, w->span, "a mesh has at most 4 axes, 0 to 3");
	l->axis = w->at[0] - '0';
	return true;
}

static void read_line(struct scan *r)
{
	struct topology_line l = {.axis = -1, .span = r->line};
	const struct word *w = r->word;

	l.between = is_word(&w[0], "between") && r->n == 3;
	if (r->n != 4 && !l.between) {
		wrong(r, r->line,
		      "a line is PLACEMENT AXIS LATENCY BANDWIDTH, or "
		      "between LATENCY BANDWIDTH");
		return;
	}
	if (!l.between) {
		l.placement_span = w[0].span;
		if (!is_word(&w[0], "*"))
			l.placement = name_n(w[0].at, (size_t)w[0].n);
		if (!read_axis(r, &w[1], &l))
			return;
	}
	if (read_link(r, &w[l.between ? 1 : 2], &l.link))
		PUSH(r->a, r->t->lines, l);
}

bool topology_read(struct arena *a, const char *path, struct topology *t,
		   bool *cannot)
{
	struct scan r = {.a = a, .t = t, .good = true};
	const char *at;

	*t = (struct topology){{NULL, 0, 0}};
	r.s = source_read(path);
	*cannot = !r.s;
	if (!r.s)
		return false;
	for (at = r.s->text; *at;) {
		at = read_words(&r, at);
		if (r.n)
			read_line(&r);
	}
	if ((size_t)(at - r.s->text) < r.s->size) {
		r.line.lo = r.s->base + (uint32_t)(at - r.s->text);
		r.line.hi = r.line.lo + 1;
		wrong(&r, r.line, "a byte 0 is no text");
	}
	return r.good;
}

/* ---- the model that it is for ---- */

static const struct placement *find_placement(const struct graph *g, Name name)
{
	for (int i = 0; i < g->placements.n; i++)
		if (name_of(g->placements.at[i]->name) == name)
			return g->placements.at[i];
	return NULL;
}

static bool has_axis(const struct placement *p, const struct topology_line *l)
{
	for (int k = 0; k < p->naxes && l->axis_name; k++)
		if (p->axis[k] == l->axis_name)
			return true;
	return !l->axis_name && l->axis < p->naxes;
}

static bool no_placement(const struct graph *g, const struct topology_line *l)
{
	const char *names = "";

	for (int i = 0; i < g->placements.n; i++)
		names = text_brief("%s%s'%s'", names, i ? ", " : "",
				   g->placements.at[i]->name);
	diag_error(l->placement_span, "topology: no placement '%s'",
		   l->placement);
	diag_hint("model '%s' is on %s", g->name, names);
	return false;
}

static bool no_such_axis(const struct topology_line *l)
{
	diag_error(l->axis_span, "topology: no placement has an axis '%s'",
		   l->axis_name ? l->axis_name : text_brief("%d", l->axis));
	return false;
}

static bool some_has_axis(const struct graph *g, const struct topology_line *l)
{
	for (int i = 0; i < g->placements.n; i++)
		if (has_axis(g->placements.at[i], l))
			return true;
	return false;
}

static bool no_axis(const struct placement *p, const struct topology_line *l)
{
	const char *name =
		l->axis_name ? l->axis_name : text_brief("%d", l->axis);

	diag_error(l->axis_span, "topology: placement '%s' has no axis '%s'",
		   p->name, name);
	diag_hint("it has %d %s", p->naxes, p->naxes == 1 ? "axis" : "axes");
	return false;
}

bool topology_fits(const struct topology *t, const struct graph *g)
{
	bool good = true;

	for (int i = 0; i < t->lines.n; i++) {
		const struct topology_line *l = &t->lines.at[i];
		const struct placement *p;

		if (l->between)
			continue;
		p = l->placement ? find_placement(g, l->placement) : NULL;
		if (!l->placement && !some_has_axis(g, l))
			good = no_such_axis(l);
		if (!l->placement)
			continue;
		if (!p)
			good = no_placement(g, l);
		else if (!has_axis(p, l))
			good = no_axis(p, l);
	}
	return good;
}

struct mesh_link topology_link(const struct topology *t,
			       const struct placement *on, int axis)
{
	for (int i = t->lines.n - 1; i >= 0; i--) {
		const struct topology_line *l = &t->lines.at[i];

		if (l->between ||
		    (l->placement && l->placement != name_of(on->name)))
			continue;
		if (l->axis_name ? l->axis_name == on->axis[axis]
				 : l->axis < 0 || l->axis == axis)
			return l->link;
	}
	return usual;
}

struct mesh_link topology_between(const struct topology *t)
{
	for (int i = t->lines.n - 1; i >= 0; i--)
		if (t->lines.at[i].between)
			return t->lines.at[i].link;
	return usual;
}
