/*
 * read_part.c: placements, distributions, types, attributes and initial
 * values of a graph's text.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/read.h"

/* ---- placements, distributions, types ---- */

static void read_axes(struct reader *r, struct placement *p)
{
	int i = 0;

	if (!read_take(r, "("))
		return;
	do {
		if (i == MAX_MESH)
			read_fail(r, "more than 4 mesh axes");
		else if (!read_take(r, "_"))
			p->axis[i] = read_word(r);
		i++;
	} while (!r->failed && read_take(r, ","));
	read_expect(r, ")");
}

static void read_ranks(struct reader *r, struct placement *p)
{
	LIST(int) ranks = {0};

	read_expect(r, "[");
	do
		PUSH(r->a, ranks, read_small(r, 0, 1 << 20, "a rank"));
	while (!r->failed && read_take(r, ","));
	read_expect(r, "]");
	p->rank = ranks.at;
	p->nranks = ranks.n;
}

static void read_mesh(struct reader *r, struct placement *p)
{
	int64_t count = 1;

	read_expect(r, "as");
	read_expect(r, "[");
	do {
		if (p->naxes == MAX_MESH) {
			read_fail(r, "more than 4 mesh axes");
			return;
		}
		p->extent[p->naxes] = read_small(r, 1, 1 << 20, "an extent");
		count *= p->extent[p->naxes++];
	} while (!r->failed && read_take(r, ","));
	read_expect(r, "]");
	if (!r->failed && count != p->nranks)
		read_fail(r, "the mesh does not hold as many ranks");
}

/* The name of a placement, "#2" where two have the same. */
static Name placement_name(struct reader *r, int *id)
{
	const char *start;
	Name n = NULL;

	read_blank(r);
	*id = -1;
	start = r->s;
	while (read_word_char(*r->s))
		r->s++;
	if (r->s > start)
		n = name_n(start, (size_t)(r->s - start));
	if (*r->s == '#') {
		r->s++;
		*id = read_small(r, 0, 1 << 20, "the number of a placement");
	} else if (!n) {
		read_fail(r, "a placement expected");
	}
	return n;
}

/* '#' begins a comment elsewhere: read_blank must not see it. */
const struct placement *read_placement(struct reader *r)
{
	struct placement *p;
	int i, id;
	Name n = placement_name(r, &id);

	for (i = 0; !r->failed && i < r->g->placements.n; i++) {
		p = r->g->placements.at[i];
		if (p->name == n && (id < 0 || p->id == id))
			return p;
	}
	read_fail(r, text_brief("there is no placement '%s'", n ? n : ""));
	return NULL;
}

void read_placement_line(struct reader *r)
{
	struct placement p = {0};
	int id;

	p.name = placement_name(r, &id);
	read_axes(r, &p);
	read_expect(r, "=");
	if (read_take(r, "cuda"))
		p.device = DEV_CUDA;
	else
		read_expect(r, "cpu");
	read_ranks(r, &p);
	read_mesh(r, &p);
	if (!r->failed)
		graph_placement(r->g, p);
}

static Sbp term(struct reader *r)
{
	Sbp s = sbp_any();

	if (read_take(r, "_"))
		return s;
	if (read_take(r, "B"))
		return sbp_b();
	if (read_take(r, "S")) {
		read_expect(r, "(");
		s = sbp_s(read_small(r, 0, MAX_RANK - 1, "an axis"));
		read_expect(r, ")");
		return s;
	}
	read_expect(r, "P");
	s = sbp_p(RED_SUM);
	if (!read_take(r, "("))
		return s;
	if (read_take(r, "max"))
		s.red = RED_MAX;
	else if (read_take(r, "min"))
		s.red = RED_MIN;
	else
		read_expect(r, "sum");
	read_expect(r, ")");
	return s;
}

static void read_order(struct reader *r, Dist *d)
{
	bool has[MAX_MESH] = {false};
	int k, m;

	for (k = 0; k < MAX_MESH && !r->failed; k++) {
		if (k)
			read_expect(r, ",");
		m = read_small(r, 0, MAX_MESH - 1, "a mesh axis");
		if (has[m])
			read_fail(r, "a mesh axis is named twice");
		has[m] = true;
		d->order[k] = (uint8_t)m;
	}
}

Dist read_distribution(struct reader *r)
{
	Dist d = dist_on(read_placement(r), sbp_any());
	int k;

	read_expect(r, "(");
	for (k = 0; !r->failed && k < d.on->naxes; k++) {
		if (k)
			read_expect(r, ",");
		d.t[k] = term(r);
	}
	if (read_take(r, "order"))
		read_order(r, &d);
	read_expect(r, ")");
	return d;
}

static enum dtype dtype(struct reader *r)
{
	enum dtype t = DT_F32;
	const char *start;

	read_blank(r);
	start = r->s;
	if (!dtype_read(read_word(r), &t) && !r->failed) {
		r->s = start;
		read_fail(r, "a dtype expected");
	}
	return t;
}

Type read_type(struct reader *r)
{
	Type t = {dtype(r), {0}};
	int64_t count;

	read_expect(r, "[");
	while (!r->failed && !read_take(r, "]")) {
		if (t.shape.rank == MAX_RANK) {
			read_fail(r, "more than 8 axes");
			break;
		}
		if (t.shape.rank)
			read_expect(r, ",");
		t.shape.d[t.shape.rank] = read_integer(r);
		if (t.shape.d[t.shape.rank++] < 0)
			read_fail(r, "a negative extent");
	}
	if (!shape_count_fits(t.shape, &count) || count > INT64_MAX / 64)
		read_fail(r, "too many elements");
	return t;
}

/* ---- attributes ---- */

static void read_ints(struct reader *r, struct node *n, Name key)
{
	LIST(int64_t) l = {0};

	while (!r->failed && !read_take(r, "]")) {
		if (l.n)
			read_expect(r, ",");
		PUSH(r->a, l, read_integer(r));
	}
	node_ints(r->g, n, key, l.at, l.n);
}

/* Whether the number that comes is written as a float. */
static bool float_next(struct reader *r)
{
	const char *s;

	read_blank(r);
	for (s = r->s; read_word_char(*s) || *s == '-' || *s == '+'; s++)
		if (strchr(".ein", *s))
			return true;
	return false;
}

static void read_attr(struct reader *r, struct node *n)
{
	Name key = read_word(r);
	enum dtype t;

	read_expect(r, "=");
	if (read_take(r, "["))
		read_ints(r, n, key);
	else if (read_next_is(r, "\""))
		node_text(r->g, n, key, read_quoted(r));
	else if (read_take(r, "true"))
		node_bool(r->g, n, key, true);
	else if (read_take(r, "false"))
		node_bool(r->g, n, key, false);
	else if (read_take(r, "inf"))
		node_float(r->g, n, key, strtod("inf", NULL));
	else if (read_take(r, "nan"))
		node_float(r->g, n, key, strtod("nan", NULL));
	else if (isalpha((unsigned char)*r->s)) {
		t = dtype(r);
		node_dtype(r->g, n, key, t);
	} else if (float_next(r))
		node_float(r->g, n, key, read_number(r));
	else
		node_int(r->g, n, key, read_integer(r));
}

void read_attrs(struct reader *r, struct node *n)
{
	if (!read_take(r, "{"))
		return;
	do
		read_attr(r, n);
	while (!r->failed && read_take(r, ","));
	read_expect(r, "}");
}

/* ---- initial values ---- */

static void put_bits(char *p, enum dtype t, uint64_t bits)
{
	memcpy(p, &bits, (size_t)dtype_size(t)); /* little-endian */
}

static void put_number(struct reader *r, char *p, enum dtype t)
{
	float f;
	double d;
	int64_t i;

	if (read_next_is(r, "0x")) {
		put_bits(p, t, strtoull(r->s, (char **)&r->s, 16));
	} else if (t == DT_F32) {
		f = strtof(r->s, (char **)&r->s);
		memcpy(p, &f, sizeof f);
	} else if (t == DT_F64) {
		d = read_number(r);
		memcpy(p, &d, sizeof d);
	} else {
		i = read_integer(r);
		put_bits(p, t, (uint64_t)i);
	}
}

static const void *read_data(struct reader *r, int64_t count, enum dtype t)
{
	int size = dtype_size(t);
	const char *before;
	int64_t i;
	char *data;

	/* Each element takes two bytes of text at least. */
	if (count > (int64_t)r->source->size) {
		read_fail(r, "not as many elements as the type has");
		return NULL;
	}
	data = arena_alloc(r->a, (size_t)(count * size + 1));
	read_expect(r, "[");
	for (i = 0; i < count && !r->failed; i++) {
		if (i)
			read_expect(r, ",");
		read_blank(r);
		before = r->s;
		put_number(r, data + i * size, t);
		if (r->s == before)
			read_fail(r, "a number expected");
	}
	read_expect(r, "]");
	return data;
}

static const void **read_local(struct reader *r, const struct value *v)
{
	int coord[MAX_MESH], i;
	const void **local;
	Piece p;

	read_expect(r, "(");
	if (!dist_known(v->dist) || dist_why_not(v->dist, v->type)) {
		read_fail(r, "pieces need a legal distribution");
		return NULL;
	}
	local = NEW_N(r->a, const void *, v->dist.on->nranks);
	for (i = 0; i < v->dist.on->nranks && !r->failed; i++) {
		if (i)
			read_expect(r, ",");
		mesh_coords(v->dist.on, i, coord);
		p = piece_of(v->type.shape, v->dist, coord);
		local[i] = read_data(r, piece_count(p), v->type.dtype);
	}
	read_expect(r, ")");
	return local;
}

static void read_numbers(struct reader *r, struct init *init)
{
	double *const to[] = {&init->a, &init->b, &init->c, &init->d};
	int i;

	for (i = 0; i < 4; i++) {
		read_expect(r, i ? "," : "(");
		*to[i] = read_number(r);
	}
	read_expect(r, ")");
}

const struct init *read_init(struct reader *r, const struct value *v)
{
	static const char *const kinds[] = {"none",   "constant",     "uniform",
					    "normal", "trunc_normal", "data"};
	struct init *init = NEW(r->a, struct init);
	Name kind = read_word(r);
	int k;

	for (k = 0; k < 6 && strcmp(kinds[k], kind); k++)
		;
	if (k == 6) {
		read_fail(r, text_brief("there is no initialiser '%s'", kind));
		return NULL;
	}
	init->kind = (enum init_kind)k;
	if (init->kind != INIT_NONE && init->kind != INIT_DATA)
		read_numbers(r, init);
	if (read_next_is(r, "["))
		init->data =
			read_data(r, shape_count(v->type.shape), v->type.dtype);
	if (read_take(r, "local"))
		init->local = read_local(r, v);
	return init;
}
