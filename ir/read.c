/*
 * read.c: reads what print.c prints. White space and comments only separate,
 * so the text may be laid out and cut down by hand.
 *
 * After the first error the reader stands still at the end of the text: loops
 * end, and functions give zeros.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

struct reader {
	struct graph *g;
	struct arena *a;
	const struct source *source;
	const char *s, *end;
	bool failed;
	LIST(struct value *) by_id;	/* NULL: not defined yet */
};

static void fail(struct reader *r, const char *what)
{
	uint32_t at = r->source->base + (uint32_t)(r->s - r->source->text);

	if (!r->failed)
		diag_error((Span){at, at + 1}, "%s", what);
	r->failed = true;
	r->s = r->end;
}

/* ---- tokens ---- */

static void blank(struct reader *r)
{
	while (r->s < r->end) {
		if (*r->s == '#')
			while (r->s < r->end && *r->s != '\n')
				r->s++;
		else if (isspace((unsigned char)*r->s))
			r->s++;
		else
			break;
	}
}

static bool next_is(struct reader *r, const char *what)
{
	blank(r);
	return !strncmp(r->s, what, strlen(what));
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Takes a sign, or a whole word. */
static bool take(struct reader *r, const char *what)
{
	size_t n = strlen(what);

	if (!next_is(r, what) || (word_char(what[0]) && word_char(r->s[n])))
		return false;
	r->s += n;
	return true;
}

static void expect(struct reader *r, const char *what)
{
	if (!r->failed && !take(r, what))
		fail(r, text_brief("'%s' expected", what));
}

static Name word(struct reader *r)
{
	const char *start;

	blank(r);
	start = r->s;
	while (word_char(*r->s))
		r->s++;
	if (r->s == start)
		fail(r, "a name expected");
	return name_n(start, (size_t)(r->s - start));
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

/* "..." as put_quoted writes it. */
static Name quoted(struct reader *r)
{
	struct text t = {0};
	Name name;
	char c;

	expect(r, "\"");
	text_add_n(&t, "", 0);
	while (!r->failed && *r->s != '"') {
		if (r->s >= r->end || *r->s == '\n') {
			fail(r, "a string is not closed");
			break;
		}
		c = *r->s++;
		if (c == '\\' && *r->s == 'x' &&
		    isxdigit((unsigned char)r->s[1]) &&
		    isxdigit((unsigned char)r->s[2])) {
			c = (char)(16 * hex_digit(r->s[1]) +
				   hex_digit(r->s[2]));
			r->s += 3;
		} else if (c == '\\' && r->s < r->end) {
			c = *r->s++;
		}
		text_add_n(&t, &c, 1);
	}
	if (!r->failed)
		r->s++;
	name = name_of(t.at);
	text_free(&t);
	return name;
}

static Name name(struct reader *r)
{
	return next_is(r, "\"") ? quoted(r) : word(r);
}

static int64_t integer(struct reader *r)
{
	char *end;
	long long i;

	blank(r);
	errno = 0;
	i = strtoll(r->s, &end, 10);
	if (end == r->s || errno)
		fail(r, "an integer expected");
	else
		r->s = end;
	return r->failed ? 0 : i;
}

static int small(struct reader *r, int lo, int hi, const char *what)
{
	int64_t i = integer(r);

	if (!r->failed && (i < lo || i > hi))
		fail(r, text_brief("%s expected", what));
	return r->failed ? lo : (int)i;
}

static double number(struct reader *r)
{
	char *end;
	double d;

	blank(r);
	d = strtod(r->s, &end);
	if (end == r->s)
		fail(r, "a number expected");
	else
		r->s = end;
	return r->failed ? 0 : d;
}

/* ---- placements, distributions, types ---- */

static void read_axes(struct reader *r, struct placement *p)
{
	int i = 0;

	if (!take(r, "("))
		return;
	do {
		if (i == MAX_MESH)
			fail(r, "more than 4 mesh axes");
		else if (!take(r, "_"))
			p->axis[i] = word(r);
		i++;
	} while (!r->failed && take(r, ","));
	expect(r, ")");
}

static void read_ranks(struct reader *r, struct placement *p)
{
	LIST(int) ranks = {0};

	expect(r, "[");
	do
		PUSH(r->a, ranks, small(r, 0, 1 << 20, "a rank"));
	while (!r->failed && take(r, ","));
	expect(r, "]");
	p->rank = ranks.at;
	p->nranks = ranks.n;
}

static void read_mesh(struct reader *r, struct placement *p)
{
	int64_t count = 1;

	expect(r, "as");
	expect(r, "[");
	do {
		if (p->naxes == MAX_MESH) {
			fail(r, "more than 4 mesh axes");
			return;
		}
		p->extent[p->naxes] = small(r, 1, 1 << 20, "an extent");
		count *= p->extent[p->naxes++];
	} while (!r->failed && take(r, ","));
	expect(r, "]");
	if (!r->failed && count != p->nranks)
		fail(r, "the mesh does not hold as many ranks");
}

/* The name of a placement, "#2" where two have the same. */
static Name placement_name(struct reader *r, int *id)
{
	const char *start;
	Name n = NULL;

	blank(r);
	*id = -1;
	start = r->s;
	while (word_char(*r->s))
		r->s++;
	if (r->s > start)
		n = name_n(start, (size_t)(r->s - start));
	if (*r->s == '#') {
		r->s++;
		*id = small(r, 0, 1 << 20, "the number of a placement");
	} else if (!n) {
		fail(r, "a placement expected");
	}
	return n;
}

/* '#' begins a comment elsewhere: blank() must not see it. */
static const struct placement *placement(struct reader *r)
{
	struct placement *p;
	int i, id;
	Name n = placement_name(r, &id);

	for (i = 0; !r->failed && i < r->g->placements.n; i++) {
		p = r->g->placements.at[i];
		if (p->name == n && (id < 0 || p->id == id))
			return p;
	}
	fail(r, text_brief("there is no placement '%s'", n ? n : ""));
	return NULL;
}

static void read_placement(struct reader *r)
{
	struct placement p = {0};
	int id;

	p.name = placement_name(r, &id);
	read_axes(r, &p);
	expect(r, "=");
	if (take(r, "cuda"))
		p.device = DEV_CUDA;
	else
		expect(r, "cpu");
	read_ranks(r, &p);
	read_mesh(r, &p);
	if (!r->failed)
		graph_placement(r->g, p);
}

static Sbp term(struct reader *r)
{
	Sbp s = sbp_any();

	if (take(r, "_"))
		return s;
	if (take(r, "B"))
		return sbp_b();
	if (take(r, "S")) {
		expect(r, "(");
		s = sbp_s(small(r, 0, MAX_RANK - 1, "an axis"));
		expect(r, ")");
		return s;
	}
	expect(r, "P");
	s = sbp_p(RED_SUM);
	if (!take(r, "("))
		return s;
	if (take(r, "max"))
		s.red = RED_MAX;
	else if (take(r, "min"))
		s.red = RED_MIN;
	else
		expect(r, "sum");
	expect(r, ")");
	return s;
}

static void read_order(struct reader *r, Dist *d)
{
	bool has[MAX_MESH] = {false};
	int k, m;

	for (k = 0; k < MAX_MESH && !r->failed; k++) {
		if (k)
			expect(r, ",");
		m = small(r, 0, MAX_MESH - 1, "a mesh axis");
		if (has[m])
			fail(r, "a mesh axis is named twice");
		has[m] = true;
		d->order[k] = (uint8_t)m;
	}
}

static Dist distribution(struct reader *r)
{
	Dist d = dist_on(placement(r), sbp_any());
	int k;

	expect(r, "(");
	for (k = 0; !r->failed && k < d.on->naxes; k++) {
		if (k)
			expect(r, ",");
		d.t[k] = term(r);
	}
	if (take(r, "order"))
		read_order(r, &d);
	expect(r, ")");
	return d;
}

static enum dtype dtype(struct reader *r)
{
	enum dtype t = DT_F32;
	const char *start;

	blank(r);
	start = r->s;
	if (!dtype_read(word(r), &t) && !r->failed) {
		r->s = start;
		fail(r, "a dtype expected");
	}
	return t;
}

static Type type(struct reader *r)
{
	Type t = {dtype(r), {0}};
	int64_t count;

	expect(r, "[");
	while (!r->failed && !take(r, "]")) {
		if (t.shape.rank == MAX_RANK) {
			fail(r, "more than 8 axes");
			break;
		}
		if (t.shape.rank)
			expect(r, ",");
		t.shape.d[t.shape.rank] = integer(r);
		if (t.shape.d[t.shape.rank++] < 0)
			fail(r, "a negative extent");
	}
	if (!shape_count_fits(t.shape, &count) || count > INT64_MAX / 64)
		fail(r, "too many elements");
	return t;
}

/* ---- attributes ---- */

static void read_ints(struct reader *r, struct node *n, Name key)
{
	LIST(int64_t) l = {0};

	while (!r->failed && !take(r, "]")) {
		if (l.n)
			expect(r, ",");
		PUSH(r->a, l, integer(r));
	}
	node_ints(r->g, n, key, l.at, l.n);
}

/* Whether the number that comes is written as a float. */
static bool float_next(struct reader *r)
{
	const char *s;

	blank(r);
	for (s = r->s; word_char(*s) || *s == '-' || *s == '+'; s++)
		if (strchr(".ein", *s))
			return true;
	return false;
}

static void read_attr(struct reader *r, struct node *n)
{
	Name key = word(r);
	enum dtype t;

	expect(r, "=");
	if (take(r, "["))
		read_ints(r, n, key);
	else if (next_is(r, "\""))
		node_text(r->g, n, key, quoted(r));
	else if (take(r, "true"))
		node_bool(r->g, n, key, true);
	else if (take(r, "false"))
		node_bool(r->g, n, key, false);
	else if (take(r, "inf"))
		node_float(r->g, n, key, strtod("inf", NULL));
	else if (take(r, "nan"))
		node_float(r->g, n, key, strtod("nan", NULL));
	else if (isalpha((unsigned char)*r->s)) {
		t = dtype(r);
		node_dtype(r->g, n, key, t);
	} else if (float_next(r))
		node_float(r->g, n, key, number(r));
	else
		node_int(r->g, n, key, integer(r));
}

static void read_attrs(struct reader *r, struct node *n)
{
	if (!take(r, "{"))
		return;
	do
		read_attr(r, n);
	while (!r->failed && take(r, ","));
	expect(r, "}");
}

/* ---- initial values ---- */

static void put_bits(char *p, enum dtype t, uint64_t bits)
{
	memcpy(p, &bits, (size_t)dtype_size(t));	/* little-endian */
}

static void put_number(struct reader *r, char *p, enum dtype t)
{
	float f;
	double d;
	int64_t i;

	if (next_is(r, "0x")) {
		put_bits(p, t, strtoull(r->s, (char **)&r->s, 16));
	} else if (t == DT_F32) {
		f = strtof(r->s, (char **)&r->s);
		memcpy(p, &f, sizeof f);
	} else if (t == DT_F64) {
		d = number(r);
		memcpy(p, &d, sizeof d);
	} else {
		i = integer(r);
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
		fail(r, "not as many elements as the type has");
		return NULL;
	}
	data = arena_alloc(r->a, (size_t)(count * size + 1));
	expect(r, "[");
	for (i = 0; i < count && !r->failed; i++) {
		if (i)
			expect(r, ",");
		blank(r);
		before = r->s;
		put_number(r, data + i * size, t);
		if (r->s == before)
			fail(r, "a number expected");
	}
	expect(r, "]");
	return data;
}

static const void **read_local(struct reader *r, const struct value *v)
{
	int coord[MAX_MESH], i;
	const void **local;
	Piece p;

	expect(r, "(");
	if (!dist_known(v->dist) || dist_why_not(v->dist, v->type)) {
		fail(r, "pieces need a legal distribution");
		return NULL;
	}
	local = NEW_N(r->a, const void *, v->dist.on->nranks);
	for (i = 0; i < v->dist.on->nranks && !r->failed; i++) {
		if (i)
			expect(r, ",");
		mesh_coords(v->dist.on, i, coord);
		p = piece_of(v->type.shape, v->dist, coord);
		local[i] = read_data(r, piece_count(p), v->type.dtype);
	}
	expect(r, ")");
	return local;
}

static void read_numbers(struct reader *r, struct init *init)
{
	double *const to[] = {&init->a, &init->b, &init->c, &init->d};
	int i;

	for (i = 0; i < 4; i++) {
		expect(r, i ? "," : "(");
		*to[i] = number(r);
	}
	expect(r, ")");
}

static const struct init *read_init(struct reader *r, const struct value *v)
{
	static const char *const kinds[] = {
		"none", "constant", "uniform", "normal", "trunc_normal",
		"data"
	};
	struct init *init = NEW(r->a, struct init);
	Name kind = word(r);
	int k;

	for (k = 0; k < 6 && strcmp(kinds[k], kind); k++)
		;
	if (k == 6) {
		fail(r, text_brief("there is no initialiser '%s'", kind));
		return NULL;
	}
	init->kind = (enum init_kind)k;
	if (init->kind != INIT_NONE && init->kind != INIT_DATA)
		read_numbers(r, init);
	if (next_is(r, "["))
		init->data = read_data(r, shape_count(v->type.shape),
				       v->type.dtype);
	if (take(r, "local"))
		init->local = read_local(r, v);
	return init;
}

/* ---- nodes ---- */

/* "%3"; ids are at most as many as the text has bytes. */
static int value_id(struct reader *r)
{
	int id, last = r->source->size > INT32_MAX - 1 ? INT32_MAX - 1 :
		       (int)r->source->size;

	expect(r, "%");
	id = small(r, 0, last, "the number of a value");
	while (r->by_id.n <= id)
		PUSH(r->a, r->by_id, NULL);
	return id;
}

static struct value *known_value(struct reader *r)
{
	int id = value_id(r);

	if (!r->failed && !r->by_id.at[id])
		fail(r, text_brief("%%%d is not defined yet", id));
	return r->failed ? NULL : r->by_id.at[id];
}

/* Whether V is made by a node of the graph, not only of a kernel's body. */
static bool made_outside(const struct value *v)
{
	return v && v->def && v->def->id >= 0;
}

/* Kernels hand on values of their bodies, and bodies share nodes: a value may
 * be defined again where one of the two is a body. */
static struct value *new_value(struct reader *r, bool in_body)
{
	int id = value_id(r);
	struct value *v = r->failed ? NULL : r->by_id.at[id];
	Type t;

	if (made_outside(v) && !in_body)
		fail(r, text_brief("%%%d is defined twice", id));
	if (!v)
		v = NEW(r->a, struct value);
	v->id = id;
	if (!next_is(r, ":"))
		v->name = name(r);
	expect(r, ":");
	t = type(r);
	if (v->def && !type_eq(t, v->type))
		fail(r, text_brief("%%%d was %s before", id,
				   type_text(v->type)));
	v->type = t;
	if (!next_is(r, ",") && !next_is(r, "=") && !next_is(r, "keep"))
		v->dist = distribution(r);
	v->keep = take(r, "keep");
	if (!r->failed)
		r->by_id.at[id] = v;
	return v;
}

static const struct data_source *data_source(struct reader *r, Name which)
{
	int i;

	for (i = 0; i < r->g->sources.n; i++)
		if (r->g->sources.at[i]->name == which)
			return r->g->sources.at[i];
	fail(r, text_brief("there is no data source '%s'", which));
	return NULL;
}

static void read_wants(struct reader *r, struct node *n)
{
	int i;

	n->in_dist = NEW_N(r->a, Dist, n->nin);
	expect(r, "[");
	for (i = 0; i < n->nin && !r->failed; i++) {
		if (i)
			expect(r, ",");
		if (!take(r, "-"))
			n->in_dist[i] = distribution(r);
	}
	expect(r, "]");
}

static void read_clauses(struct reader *r, struct node *n)
{
	read_attrs(r, n);
	if (take(r, "on"))
		n->on = placement(r);
	if (take(r, "wants"))
		read_wants(r, n);
	if (take(r, "init") && n->nout)
		n->init = read_init(r, n->out[0]);
	if (take(r, "from")) {
		n->source = data_source(r, name(r));
		expect(r, ":");
		n->field = name(r);
	}
}

static struct node *read_call(struct reader *r, Span span)
{
	LIST(struct value *) in = {0};
	enum op op = OP_input;
	const char *start;

	blank(r);
	start = r->s;
	if (!op_find(word(r), &op) && !r->failed) {
		r->s = start;
		fail(r, "an operator expected");
	}
	expect(r, "(");
	while (!r->failed && !take(r, ")")) {
		if (in.n)
			expect(r, ",");
		PUSH(r->a, in, known_value(r));
	}
	return node_new(r->g, op, span, in.n, in.at);
}

static void check_dists(struct reader *r, const struct node *n)
{
	const char *why;
	bool known = n->in_dist || !n->nin;
	int i;

	for (i = 0; i < n->nout; i++) {
		known = known && dist_known(n->out[i]->dist);
		why = n->out[i]->dist.on ?
		      dist_why_not(n->out[i]->dist, n->out[i]->type) : NULL;
		if (why)
			fail(r, why);
	}
	for (i = 0; i < n->nin; i++)
		known = known && dist_known(n->in_dist[i]);
	if (r->failed || !known || n->op == OP_to || n->op == OP_move ||
	    n->op == OP_kernel)
		return;
	why = op_why_not(n, n->in_dist, &n->out[0]->dist);
	if (why)
		fail(r, why);
}

/* Whether N has the type that its operator gives. */
static void check_type(struct reader *r, struct node *n)
{
	Type t;

	if (r->failed || n->op == OP_kernel || n->op == OP_move)
		return;
	if (n->nout != 1) {
		fail(r, "one result expected");
		return;
	}
	t = n->out[0]->type;
	if (!op_infer(r->g, n)) {
		r->failed = true;	/* reported */
		return;
	}
	if (!type_eq(t, n->out[0]->type))
		fail(r, text_brief("%s gives %s, not %s",
				   op_info(n->op)->name,
				   type_text(n->out[0]->type),
				   type_text(t)));
}

static struct node *read_node(struct reader *r, bool in_body)
{
	LIST(struct value *) out = {0};
	struct node *n;
	Span span;
	int i;

	span.lo = r->source->base + (uint32_t)(r->s - r->source->text);
	do
		PUSH(r->a, out, new_value(r, in_body));
	while (!r->failed && take(r, ","));
	expect(r, "=");
	n = read_call(r, span);
	n->nout = out.n;
	n->out = out.at;
	n->id = in_body ? -1 : r->g->nodes.n;
	for (i = 0; i < out.n; i++) {
		if (in_body && out.at[i]->def)
			continue;	/* the kernel's, or another's */
		out.at[i]->def = n;
		out.at[i]->index = i;
	}
	read_clauses(r, n);
	n->span.hi = r->source->base + (uint32_t)(r->s - r->source->text);
	for (i = 0; i < out.n; i++)
		out.at[i]->span = n->span;
	check_type(r, n);
	if (!r->failed)
		check_dists(r, n);
	return n;
}

static void read_body(struct reader *r, struct node *n)
{
	LIST(struct node *) body = {0};

	while (!r->failed && !take(r, "end")) {
		blank(r);
		PUSH(r->a, body, read_node(r, true));
	}
	n->body = body.at;
	n->nbody = body.n;
}

static void read_source(struct reader *r)
{
	struct data_source *d = NEW(r->a, struct data_source);

	d->name = name(r);
	d->id = r->g->sources.n;
	expect(r, "=");
	if (take(r, "npy"))
		d->kind = DATA_NPY;
	else
		expect(r, "idx");
	expect(r, "(");
	d->file[0] = quoted(r);
	if (d->kind == DATA_IDX) {
		expect(r, ",");
		d->file[1] = quoted(r);
	}
	expect(r, ")");
	PUSH(r->a, r->g->sources, d);
}

static void read_output(struct reader *r)
{
	struct output o = {.name = name(r)};

	expect(r, "=");
	o.v = known_value(r);
	PUSH(r->a, r->g->outputs, o);
}

static void read_update(struct reader *r)
{
	struct update u = {.state = known_value(r)};

	expect(r, "=");
	u.v = known_value(r);
	if (!r->failed && u.state->def->op != OP_state)
		fail(r, "the value that is updated is no state");
	if (!r->failed && !type_eq(u.state->type, u.v->type))
		fail(r, text_brief("%s becomes %s", type_text(u.state->type),
				   type_text(u.v->type)));
	PUSH(r->a, r->g->updates, u);
}

static void read_statement(struct reader *r)
{
	struct node *n;

	if (take(r, "placement")) {
		read_placement(r);
	} else if (take(r, "on")) {
		r->g->on = (struct placement *)placement(r);
	} else if (take(r, "data")) {
		read_source(r);
	} else if (take(r, "output")) {
		read_output(r);
	} else if (take(r, "update")) {
		read_update(r);
	} else {
		n = read_node(r, false);
		PUSH(r->a, r->g->nodes, n);
		if (take(r, "do"))
			read_body(r, n);
	}
}

/* Values get their numbers back where those were 0, 1, 2, ... */
static void number_values(struct reader *r)
{
	int i;

	for (i = 0; i < r->by_id.n && r->by_id.at[i]; i++)
		PUSH(r->a, r->g->values, r->by_id.at[i]);
	if (i < r->by_id.n)
		graph_renumber(r->g);
}

struct graph *graph_read(struct arena *a, const struct source *s)
{
	struct reader r = {.a = a, .source = s, .s = s->text};

	r.end = s->text + s->size;
	r.g = graph_new(a);
	expect(&r, "graph");
	r.g->name = name(&r);
	r.g->path = quoted(&r);
	expect(&r, "{");
	while (!r.failed && !take(&r, "}")) {
		blank(&r);
		if (r.s == r.end)
			fail(&r, "'}' expected");
		else
			read_statement(&r);
	}
	blank(&r);
	if (!r.failed && r.s != r.end)
		fail(&r, "text after the graph");
	number_values(&r);
	return r.failed ? NULL : r.g;
}
