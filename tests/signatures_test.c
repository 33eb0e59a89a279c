/*
 * signatures_test.c: every signature of every operator, by brute force.
 *
 * Each node of signatures.h runs on meshes of one and two axes, on each pair
 * of its signatures that op_legal lets pass. A device computes its piece of
 * the result from its pieces of the inputs alone; the pieces, put together,
 * must be the logical result. Partial inputs have parts of different sign.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/signatures.h"

static int passed, failed;
static struct arena *a;

/* One tensor on one device: values of the whole, of which PIECE is there. */
struct tensor {
	Shape shape;
	Piece piece;
	const double *at;
};

static bool strayed;	/* a device read what it does not hold */

static bool holds(const struct tensor *t, const int64_t *index)
{
	int i;

	for (i = 0; i < t->shape.rank; i++)
		if (index[i] < t->piece.d[i].lo ||
		    index[i] >= t->piece.d[i].lo + t->piece.d[i].n)
			return false;
	return true;
}

static int64_t flat(Shape s, const int64_t *index)
{
	int64_t at = 0;
	int i;

	for (i = 0; i < s.rank; i++)
		at = at * s.d[i] + index[i];
	return at;
}

static void unflat(Shape s, int64_t at, int64_t *index)
{
	int i;

	for (i = s.rank - 1; i >= 0; i--) {
		index[i] = at % s.d[i];
		at /= s.d[i];
	}
}

static double get(const struct tensor *t, const int64_t *index)
{
	if (!holds(t, index)) {
		strayed = true;
		return 0;
	}
	return t->at[flat(t->shape, index)];
}

/* Element INDEX of a result of RANK axes, as operand T broadcasts. */
static double get_broadcast(const struct tensor *t, const int64_t *index,
			    int rank)
{
	int64_t own[MAX_RANK];
	int i;

	for (i = 0; i < t->shape.rank; i++) {
		own[i] = index[rank - t->shape.rank + i];
		if (t->shape.d[i] == 1)
			own[i] = 0;
	}
	return get(t, own);
}

/* ---- what operators do to one element ---- */

static double greater(double x, double y)
{
	return isnan(x) || x > y ? x : y;
}

static double map(const struct node *n, double x, double y, double z)
{
	switch (n->op) {
	case OP_neg: return -x;
	case OP_abs: return fabs(x);
	case OP_exp: return exp(x);
	case OP_log: return log(x);
	case OP_log1p: return log1p(x);
	case OP_sqrt: return sqrt(x);
	case OP_rsqrt: return 1 / sqrt(x);
	case OP_reciprocal: return 1 / x;
	case OP_divisor: return x;
	case OP_sin: return sin(x);
	case OP_cos: return cos(x);
	case OP_tanh: return tanh(x);
	case OP_sigmoid: return 1 / (1 + exp(-x));
	case OP_erf: return erf(x);
	case OP_relu: return x < 0 ? 0 : x;
	case OP_floor: return floor(x / 2);	/* so that it does something */
	case OP_ceil: return ceil(x / 2);
	case OP_round: return nearbyint(x / 2);
	case OP_sign: return (x > 0) - (x < 0);
	case OP_isnan: return isnan(x);
	case OP_logical_not: return !x;
	case OP_cast: return n->out[0]->type.dtype == DT_BOOL ? x != 0 : x;
	case OP_add: return x + y;
	case OP_sub: return x - y;
	case OP_mul: return x * y;
	case OP_div: return x / y;
	case OP_pow: return pow(x, y);
	case OP_maximum: return greater(x, y);
	case OP_minimum: return -greater(-x, -y);
	case OP_eq: return x == y;
	case OP_ne: return x != y;
	case OP_lt: return x < y;
	case OP_le: return x <= y;
	case OP_gt: return x > y;
	case OP_ge: return x >= y;
	case OP_logical_and: return x && y;
	case OP_logical_or: return x || y;
	case OP_where: return x ? y : z;
	default: return x;	/* to, stop_gradient, expand */
	}
}

static double map_at(const struct node *n, const struct tensor *in,
		     const int64_t *index)
{
	int rank = n->out[0]->type.shape.rank, i;
	double x[3] = {0};

	for (i = 0; i < n->nin; i++)
		x[i] = get_broadcast(&in[i], index, rank);
	return map(n, x[0], x[1], x[2]);
}

static double fold(enum op op, double x, double y)
{
	switch (op) {
	case OP_prod: return x * y;
	case OP_max: return greater(x, y);
	case OP_min: return -greater(-x, -y);
	case OP_any: return x || y;
	case OP_all: return x && y;
	default: return x + y;
	}
}

static double fold_start(enum op op)
{
	switch (op) {
	case OP_prod:
	case OP_all: return 1;
	case OP_max: return -INFINITY;
	case OP_min: return INFINITY;
	default: return 0;
	}
}

/* The first index that is reduced, from the index of the result; *AXES says
 * which axes are. */
static void reduced_from(const struct node *n, const int64_t *index,
			 int64_t *x, bool *axes)
{
	const struct attr *axis = node_attr(n, "axis");
	bool keep = attr_bool(n, "keepdim");
	int i, k, to = 0;

	for (i = 0; i < n->in[0]->type.shape.rank; i++) {
		axes[i] = !axis || (axis->kind == ATTR_INT && axis->i == i);
		for (k = 0; axis && k < axis->n; k++)
			axes[i] = axes[i] || axis->ints[k] == i;
		x[i] = axes[i] ? 0 : index[to];
		to += !axes[i] || keep;
	}
}

static double fold_at(const struct node *n, const struct tensor *in,
		      const int64_t *index)
{
	int64_t x[MAX_RANK], at, k[MAX_RANK];
	bool axes[MAX_RANK];
	double best = fold_start(n->op), v;
	int64_t where = -1;
	int i;

	reduced_from(n, index, x, axes);
	for (at = 0; at < shape_count(in->shape); at++) {
		unflat(in->shape, at, k);
		for (i = 0; i < in->shape.rank; i++)
			if (axes[i] ? k[i] < in->piece.d[i].lo ||
			    k[i] >= in->piece.d[i].lo + in->piece.d[i].n :
			    k[i] != x[i])
				break;
		if (i < in->shape.rank)
			continue;
		v = get(in, k);
		if (n->op != OP_argmax) {
			best = fold(n->op, best, v);
		} else if (where < 0 || v > best) {
			best = v;
			where = attr_bool(n, "keepdim") || in->shape.rank < 2 ?
				k[1] : node_attr(n, "axis") ?
				k[node_attr(n, "axis")->i] : at;
		}
	}
	return n->op == OP_argmax ? (double)where : best;
}

static double matmul_at(const struct node *n, const struct tensor *in,
			const int64_t *index)
{
	int rank = n->out[0]->type.shape.rank;
	Interval k = in[0].piece.d[in[0].shape.rank - 1];
	int64_t x[MAX_RANK], y[MAX_RANK], i;
	double sum = 0;

	memcpy(x, index, sizeof x);
	memcpy(y, index, sizeof y);
	for (i = k.lo; i < k.lo + k.n; i++) {
		x[rank - 1] = i;
		y[rank - 2] = i;
		sum += get_broadcast(&in[0], x, rank) *
		       get_broadcast(&in[1], y, rank);
	}
	return sum;
}

/* ---- movement and indexing ---- */

static double move_at(const struct node *n, const struct tensor *in,
		      const int64_t *index)
{
	Shape out = n->out[0]->type.shape;
	int64_t x[MAX_RANK];
	const int64_t *list;
	int i, axis;

	memcpy(x, index, sizeof x);
	switch (n->op) {
	case OP_reshape:
		unflat(in->shape, flat(out, index), x);
		return get(in, x);
	case OP_permute:
		list = node_attr(n, "dims")->ints;
		for (i = 0; i < out.rank; i++)
			x[list[i]] = index[i];
		return get(in, x);
	case OP_slice:
		axis = (int)attr_int(n, "axis");
		x[axis] = attr_int(n, "start") +
			  index[axis] * attr_int(n, "step");
		return get(in, x);
	case OP_concat:
		axis = (int)attr_int(n, "axis");
		for (i = 0; x[axis] >= in[i].shape.d[axis]; i++)
			x[axis] -= in[i].shape.d[axis];
		return get(&in[i], x);
	default:	/* pad */
		list = node_attr(n, "pad")->ints;
		for (i = 0; i < out.rank; i++) {
			axis = 2 * (out.rank - 1 - i);
			if (axis < node_attr(n, "pad")->n)
				x[i] -= list[axis];
			if (x[i] < 0 || x[i] >= in->shape.d[i])
				return attr_float(n, "value");
		}
		return get(in, x);
	}
}

/* A row that another device owns counts as 0, where rows are split. */
static double owned(const struct tensor *t, const int64_t *x, int axis)
{
	Interval own = t->piece.d[axis];

	if (own.n < t->shape.d[axis] &&
	    (x[axis] < own.lo || x[axis] >= own.lo + own.n))
		return 0;
	return get(t, x);
}

static double scatter_at(const struct node *n, const struct tensor *in,
			 const int64_t *index)
{
	int axis = (int)attr_int(n, "axis");
	double sum = get(&in[0], index);
	int64_t k[MAX_RANK], x[MAX_RANK], at;

	for (at = 0; at < shape_count(in[1].shape); at++) {
		unflat(in[1].shape, at, k);
		if (!holds(&in[1], k))
			continue;
		memcpy(x, k, sizeof x);
		x[axis] = (int64_t)get(&in[1], k);
		if (!memcmp(x, index, sizeof *x *
			    (size_t)in[0].shape.rank))
			sum += get(&in[2], k);
	}
	return sum;
}

static double index_at(const struct node *n, const struct tensor *in,
		       const int64_t *index)
{
	int64_t x[MAX_RANK];
	int i, ids;

	memcpy(x, index, sizeof x);
	switch (n->op) {
	case OP_gather:
		i = (int)attr_int(n, "axis");
		x[i] = (int64_t)get(&in[1], index);
		return owned(&in[0], x, i);
	case OP_take:
		ids = in[1].shape.rank;
		x[0] = (int64_t)get(&in[1], index);
		for (i = 1; i < in[0].shape.rank; i++)
			x[i] = index[ids + i - 1];
		return owned(&in[0], x, 0);
	case OP_one_hot:
		return get(&in[0], index) == index[in[0].shape.rank];
	default:
		return scatter_at(n, in, index);
	}
}

static double create_at(const struct node *n, const int64_t *index)
{
	if (n->op == OP_fill)
		return attr_float(n, "value");
	return (double)flat(n->out[0]->type.shape, index);
}

static double element(const struct node *n, const struct tensor *in,
		      const int64_t *index)
{
	const char *rule = op_info(n->op)->index;

	if (!n->nin)
		return create_at(n, index);
	if (op_info(n->op)->kernel == K_FOLD || n->op == OP_argmax)
		return fold_at(n, in, index);
	if (n->op == OP_matmul)
		return matmul_at(n, in, index);
	if (*rule == '*' || n->op == OP_expand)
		return map_at(n, in, index);
	if (n->op == OP_gather || n->op == OP_take || n->op == OP_one_hot ||
	    n->op == OP_scatter_add)
		return index_at(n, in, index);
	return move_at(n, in, index);
}

/* Fills OUT in PIECE. */
static void run(const struct node *n, const struct tensor *in, Piece piece,
		double *out)
{
	struct tensor all = {n->out[0]->type.shape, piece, out};
	int64_t index[MAX_RANK], at;

	for (at = 0; at < shape_count(all.shape); at++) {
		unflat(all.shape, at, index);
		if (holds(&all, index))
			out[at] = element(n, in, index);
	}
}

/* ---- inputs ---- */

static uint32_t seed = 12345;

static int noise(int lo, int hi)
{
	seed = seed * 1664525 + 1013904223;
	return lo + (int)((seed >> 8) % (uint32_t)(hi - lo + 1));
}

/* Logical values; indices stay below 2, the least extent indexed. */
static double *logical(const struct node *n, int i)
{
	const struct value *v = n->in[i];
	int64_t count = shape_count(v->type.shape), k;
	double *x = NEW_N(a, double, count);
	bool index = (n->op == OP_gather || n->op == OP_take ||
		      n->op == OP_scatter_add) && i == 1;

	for (k = 0; k < count; k++) {
		if (v->def->op == OP_fill)
			x[k] = attr_float(v->def, "value");
		else if (v->type.dtype == DT_BOOL)
			x[k] = noise(0, 1);
		else if (index || n->op == OP_one_hot)
			x[k] = noise(0, 3);
		else
			x[k] = noise(-5, 5);
		if (v->type.shape.rank == 0 && x[k] == 0)
			x[k] = 3;
	}
	return x;
}

/* Part I of the P parts of V. All calls for one V take the same seed. */
static double part(double v, enum red red, int p, int i, uint32_t key)
{
	uint32_t old = seed;
	double rest = v, x = 0;
	int k, holder;

	seed = key;
	holder = noise(0, p - 1);
	for (k = 0; k <= i; k++) {
		if (red == RED_SUM) {
			x = k == p - 1 ? rest : noise(-9, 9);
			rest -= x;
		} else {
			x = noise(0, 9);
			x = k == holder ? v : red == RED_MAX ? v - x : v + x;
		}
	}
	seed = old;
	return x;
}

/* What the device at COORD has of the values X under D. */
static double *local(const double *x, int64_t count, Dist d, const int *coord,
		     uint32_t key)
{
	double *own = NEW_N(a, double, count);
	int64_t i;
	int k;

	for (i = 0; i < count; i++) {
		own[i] = x[i];
		for (k = 0; k < d.on->naxes; k++)
			if (d.t[k].kind == SBP_P)
				own[i] = part(own[i], (enum red)d.t[k].red,
					d.on->extent[k], coord[k],
					key + (uint32_t)(31 * i + 1009 * k +
					(k ? 7919 * coord[0] : 0)));
	}
	return own;
}

/* ---- a node on a mesh ---- */

static double combine(enum red red, double x, double y)
{
	if (red == RED_SUM)
		return x + y;
	return red == RED_MAX ? greater(x, y) : -greater(-x, -y);
}

static bool near(double x, double y)
{
	return x == y || (isnan(x) && isnan(y)) ||
	       fabs(x - y) <= 1e-9 * (1 + fabs(x));
}

/* Element AT as the devices that differ from COORD on the axes from K on
 * make it: the last axis first. */
static double assembled(const struct placement *p, Dist d, double **out,
			int *coord, int k, int64_t at)
{
	double x, y;
	int i, first = coord[k];

	if (k == p->naxes)
		return out[mesh_at(p, coord)][at];
	if (d.t[k].kind != SBP_P)
		return assembled(p, d, out, coord, k + 1, at);
	for (x = 0, i = 0; i < p->extent[k]; i++) {
		coord[k] = i;
		y = assembled(p, d, out, coord, k + 1, at);
		x = i ? combine((enum red)d.t[k].red, x, y) : y;
	}
	coord[k] = first;
	return x;
}

/* Every device that holds an element has the right one. */
static bool agrees(const struct placement *p, const struct node *n, Dist d,
		   double **out, const double *right)
{
	Shape s = n->out[0]->type.shape;
	int coord[MAX_MESH + 1] = {0}, r;
	int64_t index[MAX_RANK], at;
	struct tensor t = {s, {0, {{0}}}, NULL};

	for (r = 0; r < p->nranks; r++) {
		mesh_coords(p, r, coord);
		t.piece = piece_of(s, d, coord);
		for (at = 0; at < shape_count(s); at++) {
			unflat(s, at, index);
			if (holds(&t, index) &&
			    !near(assembled(p, d, out, coord, 0, at),
				  right[at]))
				return false;
		}
	}
	return true;
}

static bool works(const struct placement *p, const struct node *n,
		  const Dist *din, Dist dout, double **x,
		  const double *right)
{
	double **out = NEW_N(a, double *, p->nranks);
	struct tensor *in = NEW_N(a, struct tensor, n->nin);
	Shape s = n->out[0]->type.shape, si;
	int coord[MAX_MESH], r, i;

	strayed = false;
	for (r = 0; r < p->nranks; r++) {
		mesh_coords(p, r, coord);
		for (i = 0; i < n->nin; i++) {
			si = n->in[i]->type.shape;
			in[i].shape = si;
			in[i].piece = piece_of(si, din[i], coord);
			in[i].at = local(x[i], shape_count(si), din[i],
					 coord, (uint32_t)(77 + 1000003 * i));
		}
		out[r] = NEW_N(a, double, shape_count(s));
		run(n, in, piece_of(s, dout, coord), out[r]);
	}
	return !strayed && agrees(p, n, dout, out, right);
}

static void complain(const struct node *n, const Dist *in, Dist out,
		     const char *text)
{
	int i;

	printf("FAILED: %s:", text);
	for (i = 0; i < n->nin; i++)
		printf(" %s", dist_terms(in[i]));
	printf(" -> %s of %dx%d%s\n", dist_terms(out), out.on->extent[0],
	       out.on->naxes > 1 ? out.on->extent[1] : 1,
	       strayed ? ", reads what is not there" : "");
}

static void test_pair(const struct placement *p, const struct node *n,
		      const struct sig *s, const struct sig *t,
		      const char *text, double **x, const double *right)
{
	Dist *in = NEW_N(a, Dist, n->nin), out = dist_on(p, s->out[0]);
	int i;

	for (i = 0; i < n->nin; i++) {
		in[i] = dist_on(p, s->in[i]);
		if (p->naxes > 1)
			in[i].t[1] = t->in[i];
	}
	if (p->naxes > 1)
		out.t[1] = t->out[0];
	if (!op_legal(n, in, &out))
		return;
	if (works(p, n, in, out, x, right)) {
		passed++;
		return;
	}
	failed++;
	complain(n, in, out, text);
}

static void test_node(const struct placement *p, const struct node *n,
		      const char *text)
{
	struct sigs s = op_signatures(a, n);
	double **x = NEW_N(a, double *, n->nin);
	struct tensor *in = NEW_N(a, struct tensor, n->nin);
	Shape shape = n->out[0]->type.shape;
	double *right = NEW_N(a, double, shape_count(shape));
	int alone[MAX_MESH] = {0}, i, k;
	struct placement one = {.naxes = 1, .extent = {1}, .nranks = 1};
	Dist whole = dist_on(&one, sbp_b());

	for (i = 0; i < n->nin; i++) {
		x[i] = logical(n, i);
		in[i] = (struct tensor){n->in[i]->type.shape,
			piece_of(n->in[i]->type.shape, whole, alone), x[i]};
	}
	run(n, in, piece_of(shape, whole, alone), right);
	for (i = 0; i < s.n; i++)
		for (k = 0; k < (p->naxes > 1 ? s.n : 1); k++)
			test_pair(p, n, &s.at[i], &s.at[k], text, x, right);
}

static const struct node *read_node(const char *text)
{
	struct text t = {0};
	struct graph *g;

	text_add(&t, "graph t \"t.sbp\" {\n%s%%20: %s\n}\n", leaves, text);
	g = graph_read(a, source_text("t.ir", t.at, t.n));
	text_free(&t);
	return g ? g->nodes.at[g->nodes.n - 1] : NULL;
}

/* Nothing to compute, or not by this test. */
static bool skipped(const struct node *n)
{
	const char *rule = op_info(n->op)->index;

	return !strcmp(rule, "@leaf") || n->op == OP_uniform ||
	       n->op == OP_normal || n->op == OP_bernoulli;
}

int main(void)
{
	static const int extents[][2] = {{2, 0}, {3, 0}, {5, 0}, {2, 2},
					 {2, 3}, {3, 2}, {3, 1}};
	static const int ranks[] = {0, 1, 2, 3, 4, 5};
	const struct node *n;
	struct placement p;
	size_t e, i;

	for (i = 0; i < sizeof goldens / sizeof *goldens; i++)
		for (e = 0; e < sizeof extents / sizeof *extents; e++) {
			a = arena_new();
			p = (struct placement){
				.naxes = extents[e][1] ? 2 : 1,
				.extent = {extents[e][0], extents[e][1]},
				.rank = ranks};
			p.nranks = p.extent[0] *
				   (p.naxes > 1 ? p.extent[1] : 1);
			n = read_node(goldens[i].node);
			if (n && !skipped(n))
				test_node(&p, n, goldens[i].node);
			failed += !n;
			arena_free(a);
		}
	printf("signatures_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
