/*
 * candidates.c: what an operator may do with its tensors, and what each
 * choice costs. Everything is found by a structural key, so that a thousand
 * equal layers cost as much as one, and nothing grows with the number of
 * ranks.
 *
 * A candidate picks one 1-D signature for each mesh axis; it stands if all
 * distributions are legal for their types and the operator accepts them
 * together. On large meshes the product is too long to list; a list then
 * holds the neighbourhood of one candidate.
 */
#include <math.h>
#include <string.h>

#include "passes/passes.h"

#define ELEMENT 2e-11		/* seconds for an element in registers */
#define MEMORY 1e-15		/* seconds a byte held: breaks ties only */

enum { LIST_MAX = 64 };		/* above: neighbourhoods */

/* ---- what makes lists: 1-D signatures, axis by axis ---- */

struct maker {
	int id;
	struct request r;	/* of the first that asked */
	const struct placement *on;
	int nin, nout;
	int *in_type, *out_type;
	enum reading *reading;
	struct sigs sigs;
	int naxes, n[MAX_MESH];
	uint16_t *pick[MAX_MESH];	/* the signatures allowed there */
	unsigned reach;
};

static void key_add(struct space *s, const void *p, size_t n)
{
	text_add_n(&s->key, p, n);
}

static void key_int(struct space *s, int64_t i)
{
	key_add(s, &i, sizeof i);
}

static void key_attr(struct space *s, const struct attr *t)
{
	key_add(s, &t->key, sizeof t->key);
	key_int(s, t->kind);
	key_int(s, t->i);
	key_add(s, &t->f, sizeof t->f);
	key_int(s, t->n);
	if (t->kind == ATTR_INTS)
		key_add(s, t->ints, sizeof *t->ints * (size_t)t->n);
	if (t->kind == ATTR_TEXT && t->text)
		key_add(s, t->text, strlen(t->text) + 1);
}

/* Which inputs may be partial, where that depends on a factor's sign. */
static void key_sets(struct space *s, const char *sets, const struct node *n)
{
	if (sets[0] != '@')
		return;
	sets = rule_sets(sets, n);
	key_add(s, sets, strlen(sets) + 1);
}

static void key_node(struct space *s, const struct node *n)
{
	key_sets(s, op_info(n->op)->sum, n);
	key_sets(s, op_info(n->op)->max, n);
	key_int(s, n->op);
	key_add(s, &n->on, sizeof n->on);
	key_int(s, n->nin);
	key_int(s, n->nout);
	for (int i = 0; i < n->nin; i++)
		key_int(s, space_type(s, n->in[i]->type));
	for (int i = 0; i < n->nout; i++)
		key_int(s, space_type(s, n->out[i]->type));
	for (int i = 0; i < n->nattr; i++)
		key_attr(s, &n->attr[i]);
}

static void make_key(struct space *s, const struct request *r)
{
	s->key.n = 0;
	if (r->n)
		key_node(s, r->n);
	else
		key_int(s, -1 - space_type(s, r->type));
	key_int(s, r->want.on ? space_dist(s, r->want) : -1);
	key_int(s, r->reach);
	key_int(s, r->inner);
	key_int(s, r->fixed);
}

static void pass_on(struct arena *a, struct maker *m, Sbp t)
{
	struct sig *x = &m->sigs.at[m->sigs.n++];

	x->in = NEW_N(a, Sbp, m->nin + 1);
	x->out = NEW_N(a, Sbp, m->nout + 1);
	for (int i = 0; i < m->nin; i++)
		x->in[i] = t;
	for (int i = 0; i < m->nout; i++)
		x->out[i] = t;
}

/* Of what only passes a tensor on: a leaf, a conversion, a reader. Partial
 * values come from conversions alone, or where the request names them. */
static void sigs_by_hand(struct arena *a, struct maker *m, int rank)
{
	bool partial = m->r.n && m->r.n->op == OP_to;

	m->sigs.at = NEW_N(a, struct sig, rank + 4 + MAX_MESH);
	pass_on(a, m, sbp_b());
	for (int i = 0; i < rank; i++)
		pass_on(a, m, sbp_s(i));
	for (int red = RED_SUM; red <= RED_MIN; red++) {
		bool wanted = partial && (red == RED_SUM ||
					  m->r.reach & 1u << (red - 1));

		for (int k = 0; m->r.want.on && k < m->naxes; k++)
			wanted |= sbp_eq(m->r.want.t[k],
					 sbp_p((enum red)red));
		if (wanted)
			pass_on(a, m, sbp_p((enum red)red));
	}
}

static unsigned extremal(const Sbp *t, int n)
{
	unsigned kinds = 0;

	for (int i = 0; i < n; i++)
		if (t[i].kind == SBP_P && t[i].red != RED_SUM)
			kinds |= 1u << (t[i].red - 1);
	return kinds;
}

/* P(max) and P(min) matter only where an input can be one: to make one out
 * of a whole value just to reduce it later never pays. */
static bool sig_allowed(const struct maker *m, const struct sig *x, int axis)
{
	unsigned in = extremal(x->in, m->nin);
	Dist want = m->r.want;

	if (in && !(in & m->r.reach) && m->r.n && m->r.n->op != OP_to)
		return false;
	if (!want.on || want.t[axis].kind == SBP_ANY)
		return true;
	return sbp_eq(want.t[axis], m->nout ? x->out[0] : x->in[0]);
}

/* Of what is looked up one part is the element, all others are -0. */
static bool looks_up(const struct node *n)
{
	return n && (n->op == OP_take || n->op == OP_gather);
}

/* Whether a tensor of floats lies in parts, whose sum depends on how many
 * there are; so does the sign of the greatest of 0 and -0. */
static bool in_parts(struct space *s, const struct maker *m,
		     const struct sig *x)
{
	int n = looks_up(m->r.n) ? m->nin : m->nin + m->nout;

	for (int i = 0; i < n; i++) {
		bool out = i >= m->nin;
		int type = out ? m->out_type[i - m->nin] : m->in_type[i];
		Sbp t = out ? x->out[i - m->nin] : x->in[i];

		if (t.kind == SBP_P && dtype_is_float(s->types.at[type].dtype))
			return true;
	}
	return false;
}

/* In a reproducible program floats lie in parts only where it says so. */
static bool sig_repeats(struct space *s, const struct maker *m,
			const struct sig *x, int axis)
{
	if (!s->reproducible)
		return true;
	if (m->r.want.on && m->r.want.t[axis].kind == SBP_P)
		return true;
	return !in_parts(s, m, x);
}

static void allow(struct space *s, struct maker *m)
{
	m->naxes = m->on->naxes;
	for (int k = 0; k < m->naxes; k++) {
		m->pick[k] = NEW_N(s->a, uint16_t, m->sigs.n + 1);
		for (int i = 0; i < m->sigs.n; i++) {
			if (!sig_allowed(m, &m->sigs.at[i], k) ||
			    !sig_repeats(s, m, &m->sigs.at[i], k))
				continue;
			m->pick[k][m->n[k]++] = (uint16_t)i;
			m->reach |= extremal(m->sigs.at[i].out, m->nout);
		}
	}
}

static bool takes_parts(const struct maker *m, const struct sig *x)
{
	for (int i = 0; i < m->nin; i++)
		if (x->in[i].kind == SBP_P)
			return true;
	return false;
}

struct sigs candidates_withheld(struct space *s, struct arena *a,
				const struct candidates *c, bool parts)
{
	const struct maker *m = c->maker;
	struct sigs out = {NEW_N(a, struct sig, m->sigs.n + 1), 0};

	for (int i = 0; i < m->sigs.n; i++) {
		const struct sig *x = &m->sigs.at[i];
		int k = 0;

		while (k < m->naxes &&
		       (!sig_allowed(m, x, k) || sig_repeats(s, m, x, k)))
			k++;
		if (k < m->naxes && (parts || !takes_parts(m, x)))
			out.at[out.n++] = *x;
	}
	return out;
}

static void type_ids(struct space *s, struct maker *m)
{
	const struct node *n = m->r.n;

	m->nin = n ? n->nin : 1;
	m->nout = n ? n->nout : 0;
	m->in_type = NEW_N(s->a, int, m->nin + 1);
	m->reading = NEW_N(s->a, enum reading, m->nin + 1);
	m->out_type = NEW_N(s->a, int, m->nout + 1);
	if (!n)
		m->in_type[0] = space_type(s, m->r.type);
	for (int i = 0; n && i < m->nin; i++)
		m->in_type[i] = space_type(s, n->in[i]->type);
	for (int i = 0; n && i < m->nin; i++)
		m->reading[i] = node_reading(n, i);
	for (int i = 0; i < m->nout; i++)
		m->out_type[i] = space_type(s, n->out[i]->type);
}

static struct maker *make(struct space *s, struct request r)
{
	struct maker *m = NEW(s->a, struct maker);
	Type t = r.n && r.n->nout ? r.n->out[0]->type : r.type;

	m->id = s->nmakers++;
	m->r = r;
	m->on = r.want.on ? r.want.on : r.n->on;
	m->naxes = m->on->naxes;
	type_ids(s, m);
	if (!r.n || r.n->op == OP_to || op_is_leaf(r.n->op))
		sigs_by_hand(s->a, m, t.shape.rank);
	else
		m->sigs = op_signatures(s->a, r.n);
	allow(s, m);
	return m;
}

/* ---- the cost of computing one candidate ---- */

static int64_t local_count(struct space *s, int type, int dist)
{
	return space_bytes(s, type, dist) /
	       dtype_size(s->types.at[type].dtype);
}

static double gemm_seconds(struct space *s, const struct candidates *c,
			   const int *in, const int *out)
{
	Shape x = piece_max(s->types.at[c->in_type[0]].shape,
			    s->dists.at[in[0]]);

	return 2.0 * (double)x.d[x.rank - 1] *
	       (double)local_count(s, c->out_type[0], out[0]) / GEMM_FLOPS;
}

static bool inner_in(const struct request *r, int i)
{
	return i < 15 && r->inner >> i & 1;
}

static bool inner_out(const struct request *r, int i)
{
	return i < 15 && r->inner >> (16 + i) & 1;
}

/* Of passing over a tensor once. */
static double pass_seconds(int64_t bytes)
{
	double b = (double)bytes, fast = b < CACHE ? b : CACHE;

	return fast / CACHE_RATE + (b - fast) / MEMORY_RATE;
}

/* Of what passes through memory. Rows are looked up, so a table counts as
 * much as what is taken from it. */
static double memory_seconds(struct space *s, const struct candidates *c,
			   const int *in, const int *out)
{
	const struct request *r = &c->maker->r;
	bool look_up = looks_up(r->n);
	double sum = 0;

	for (int i = look_up; i < c->nin; i++)
		if (!inner_in(r, i))
			sum += pass_seconds(
				space_bytes(s, c->in_type[i], in[i]));
	for (int i = 0; i < c->nout; i++)
		if (!inner_out(r, i))
			sum += pass_seconds(space_bytes(s, c->out_type[i],
							out[i])) *
			       (look_up ? 2 : 1);
	return sum;
}

static double element_seconds(struct space *s, const struct candidates *c,
			      const int *in, const int *out)
{
	int64_t most = 0, n;

	for (int i = looks_up(c->maker->r.n); i < c->nin; i++)
		if ((n = local_count(s, c->in_type[i], in[i])) > most)
			most = n;
	for (int i = 0; i < c->nout; i++)
		if ((n = local_count(s, c->out_type[i], out[i])) > most)
			most = n;
	return (double)most * ELEMENT;
}

/* Whether a product reads transposed what would else be permuted. */
static bool read_through(const struct request *r)
{
	return r->n && r->n->op == OP_permute && inner_out(r, 0);
}

static Cost computing(struct space *s, const struct candidates *c,
		      const int *in, const int *out)
{
	const struct node *n = c->maker->r.n;
	enum kernel_kind kind = n ? op_info(n->op)->kernel : K_NONE;
	double t = 0;

	if (read_through(&c->maker->r))
		return 0;
	if (kind != K_NONE && kind != K_VIEW)
		t = memory_seconds(s, c, in, out);
	if (n && n->op == OP_matmul)	/* reads while it multiplies */
		t = fmax(t, gemm_seconds(s, c, in, out));
	else if (t > 0)
		t += element_seconds(s, c, in, out);
	for (int i = 0; n && i < c->nout; i++)
		if (!inner_out(&c->maker->r, i))
			t += MEMORY *
			     (double)space_bytes(s, c->out_type[i], out[i]);
	return space_units(s, t);
}

/* ---- lists ---- */

/* The distributions of tensor I (inputs, then outputs) under PICK. */
static Dist picked(const struct maker *m, const uint16_t *pick, int i)
{
	Dist d = dist_on(m->on, sbp_b());

	for (int k = 0; k < m->naxes; k++) {
		const struct sig *x = &m->sigs.at[m->pick[k][pick[k]]];

		d.t[k] = i < m->nin ? x->in[i] : x->out[i - m->nin];
	}
	return d;
}

static bool row_legal(struct space *s, const struct maker *m, const Dist *d,
		      int *id)
{
	const struct node *n = m->r.n;
	int total = m->nin + m->nout;

	for (int i = 0; i < total; i++) {
		int type = i < m->nin ? m->in_type[i] : m->out_type[i - m->nin];

		id[i] = space_dist(s, d[i]);
		if (!space_legal(s, type, id[i]))
			return false;
	}
	if (!n || n->op == OP_to || op_is_leaf(n->op))
		return true;
	return op_legal(n, d, d + m->nin);
}

/* Adds the row that PICK makes if it is legal; C has room for it. */
static void row_add(struct space *s, struct candidates *c, const uint16_t *pick)
{
	struct maker *m = c->maker;
	int total = m->nin + m->nout;
	Dist few[8], *d = total <= 8 ? few : NEW_N(s->a, Dist, total);
	int few_id[8], *id = total <= 8 ? few_id : NEW_N(s->a, int, total);
	int row = c->n;

	for (int i = 0; i < total; i++)
		d[i] = picked(m, pick, i);
	if (!row_legal(s, m, d, id))
		return;
	for (int i = 0; i < m->nin; i++)
		c->in[row * m->nin + i] = id[i];
	for (int i = 0; i < m->nout; i++)
		c->out[row * m->nout + i] = id[m->nin + i];
	memcpy(c->pick + row * m->naxes, pick,
	       sizeof *pick * (size_t)m->naxes);
	c->cost[row] = computing(s, c, id, id + m->nin);
	c->n++;
}

static struct candidates *list_new(struct space *s, struct maker *m, int room)
{
	struct candidates *c = NEW(s->a, struct candidates);

	c->maker = m;
	c->id = s->nlists++;
	c->rows = ++s->nrows;
	c->nin = m->nin;
	c->nout = m->nout;
	c->naxes = m->naxes;
	c->in_type = m->in_type;
	c->reading = m->reading;
	c->out_type = m->out_type;
	c->reach = m->reach;
	c->in = NEW_N(s->a, int, room * m->nin + 1);
	c->out = NEW_N(s->a, int, room * m->nout + 1);
	c->cost = NEW_N(s->a, Cost, room + 1);
	c->pick = NEW_N(s->a, uint16_t, room * m->naxes + 1);
	return c;
}

/* The product of the axes' signatures, the last axis fastest. */
static struct candidates *list_all(struct space *s, struct maker *m, int size)
{
	struct candidates *c = list_new(s, m, size);

	c->whole = true;
	for (int i = 0; i < size; i++) {
		uint16_t pick[MAX_MESH];
		int rest = i;

		for (int k = m->naxes - 1; k >= 0; k--) {
			pick[k] = (uint16_t)(rest % m->n[k]);
			rest /= m->n[k];
		}
		row_add(s, c, pick);
	}
	return c;
}

static struct candidates *list_near(struct space *s, struct maker *m,
				    const uint16_t *centre)
{
	int room = 1;
	struct candidates *c;

	for (int k = 0; k < m->naxes; k++)
		room += m->n[k];
	c = list_new(s, m, room);
	row_add(s, c, centre);
	for (int k = 0; k < m->naxes; k++) {
		uint16_t pick[MAX_MESH];

		memcpy(pick, centre, sizeof pick);
		for (int i = 0; i < m->n[k]; i++) {
			pick[k] = (uint16_t)i;
			if (i != centre[k])
				row_add(s, c, pick);
		}
	}
	return c;
}

static struct candidates *near(struct space *s, struct maker *m,
			       const uint16_t *centre)
{
	struct {
		int id;
		uint16_t pick[MAX_MESH];
	} key;
	void **at;

	memset(&key, 0, sizeof key);
	key.id = m->id;
	memcpy(key.pick, centre, sizeof(uint16_t) * (size_t)m->naxes);
	at = bytemap_at(s->a, &s->list, &key, sizeof key);
	if (!*at) {
		struct candidates *c = list_near(s, m, key.pick);

		*bytemap_at(s->a, &s->list, &key, sizeof key) = c;
		return c;
	}
	return *at;
}

/* All-B, or what the request leaves in its place, may be illegal only where
 * the request is; then the list is empty. */
static struct candidates *first_list(struct space *s, struct maker *m)
{
	uint16_t first[MAX_MESH] = {0};
	int size = 1;

	for (int k = 0; k < m->naxes; k++)
		size = size > LIST_MAX ? size : size * m->n[k];
	if (!size)
		return list_new(s, m, 0);
	return size <= LIST_MAX ? list_all(s, m, size) : near(s, m, first);
}

struct candidates *candidates_of(struct space *s, struct request r)
{
	struct candidates *c;
	struct text key;
	void **at;

	make_key(s, &r);
	at = bytemap_at(s->a, &s->maker, s->key.at, s->key.n);
	if (*at)
		return *at;
	key = s->key;
	s->key = (struct text){0};
	c = first_list(s, make(s, r));
	*bytemap_at(s->a, &s->maker, key.at, key.n) = c;
	text_free(&s->key);
	s->key = key;
	return c;
}

struct candidates *candidates_near(struct space *s, struct candidates *c,
				   int row)
{
	if (c->whole || !c->n)
		return c;
	return near(s, c->maker, c->pick + row * c->naxes);
}

struct price candidates_price(struct space *s, const struct candidates *c,
			      int out, int row, int to)
{
	struct price p = space_price(s, c->out_type[out],
				     c->out[row * c->nout + out], to);

	if (c->maker->r.fixed)
		p.receive *= WEIGHT;
	if (read_through(&c->maker->r) && c->out[row] != to)
		p.receive += space_units(
			s, 2 * pass_seconds(space_bytes(s, c->out_type[0],
							c->out[row])));
	return p;
}

/* The number of these rows of the rows numbered FROM. */
static int rows_id(struct space *s, int from, const int *row, int n)
{
	void **at;

	s->key.n = 0;
	text_add_n(&s->key, (const char *)&from, sizeof from);
	text_add_n(&s->key, (const char *)row, sizeof *row * (size_t)n);
	at = bytemap_at(s->a, &s->rows, s->key.at, s->key.n);
	if (!*at)
		*at = (void *)(intptr_t)++s->nrows;
	return (int)(intptr_t)*at;
}

struct candidates *candidates_dearer(struct space *s, struct candidates *c,
				     const Cost *more)
{
	struct candidates *r;
	void **at;

	s->key.n = 0;
	text_add_n(&s->key, (const char *)&c->id, sizeof c->id);
	text_add_n(&s->key, (const char *)more, sizeof *more * (size_t)c->n);
	at = bytemap_at(s->a, &s->dearer, s->key.at, s->key.n);
	if (*at)
		return *at;
	*at = r = NEW(s->a, struct candidates);
	*r = *c;
	r->id = s->nlists++;
	r->cost = NEW_N(s->a, Cost, c->n + 1);
	for (int i = 0; i < c->n; i++)
		r->cost[i] = c->cost[i] + more[i];
	return r;
}

static void copy_row(struct candidates *r, int to, const struct candidates *c,
		     int row)
{
	memcpy(r->in + to * c->nin, c->in + row * c->nin,
	       sizeof(int) * (size_t)c->nin);
	memcpy(r->out + to * c->nout, c->out + row * c->nout,
	       sizeof(int) * (size_t)c->nout);
	memcpy(r->pick + to * c->naxes, c->pick + row * c->naxes,
	       sizeof(uint16_t) * (size_t)c->naxes);
	r->cost[to] = c->cost[row];
	r->row[to] = c->row ? c->row[row] : row;
}

struct candidates *candidates_some(struct space *s, struct candidates *c,
				   const int *row, int n)
{
	struct candidates *r;
	void **at;

	s->key.n = 0;
	text_add_n(&s->key, (const char *)&c->id, sizeof c->id);
	text_add_n(&s->key, (const char *)row, sizeof *row * (size_t)n);
	at = bytemap_at(s->a, &s->some, s->key.at, s->key.n);
	if (*at)
		return *at;
	*at = r = list_new(s, c->maker, n);
	r->rows = rows_id(s, c->rows, row, n);
	r->row = NEW_N(s->a, int, n + 1);
	r->n = n;
	for (int i = 0; i < n; i++)
		copy_row(r, i, c, row[i]);
	return r;
}
