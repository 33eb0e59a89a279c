/*
 * domain.c: the loops that the nodes of one kernel share. Fusion asks whether
 * nodes fit together, code generation how their axes correspond.
 */
#include <string.h>

#include "passes/passes.h"

static bool is_fold(const struct node *n)
{
	return op_info(n->op)->kernel == K_FOLD;
}

bool kernel_may_hold(const struct node *n)
{
	enum kernel_kind kind = op_info(n->op)->kernel;

	return kind == K_MAP || kind == K_FOLD || n->op == OP_stop_gradient;
}

static bool vector_type(enum dtype t)
{
	return t == DT_F32 || t == DT_F16 || t == DT_BF16 || t == DT_BOOL;
}

/* Bools in vectors are masks, which have no order and no arithmetic. */
static bool mask_op(const struct node *n)
{
	switch (n->op) {
	case OP_where:
	case OP_logical_not:
	case OP_logical_and:
	case OP_logical_or:
	case OP_any:
	case OP_all:
	case OP_cast:
	case OP_expand:
	case OP_fill:
	case OP_stop_gradient:
		return true;
	default:
		return false;
	}
}

bool kernel_in_vectors(const struct node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (!vector_type(n->out[i]->type.dtype))
			return false;
	for (int i = 0; i < n->nin; i++) {
		enum dtype t = n->in[i]->type.dtype;

		if (!vector_type(t) || (t == DT_BOOL && !mask_op(n)))
			return false;
	}
	return true;
}

/* The graphics processor's kernels know no ramps. */
bool kernel_copies(const struct node *n)
{
	if (n->op == OP_fill)
		return true;
	return n->op == OP_iota && !vector_type(n->out[0]->type.dtype) &&
	       n->on != NULL && n->on->device == DEV_CPU;
}

/* ---- shapes ---- */

static unsigned reduced_axes(const struct node *n)
{
	const struct attr *axis = node_attr(n, "axis");
	int rank = n->in[0]->type.shape.rank;
	unsigned mask = 0;

	if (axis == NULL)
		return (1u << rank) - 1;
	for (int i = 0; i < axis->n; i++)
		mask |= 1u << axis->ints[i];
	return mask;
}

/* The shape of the loops: what is reduced, else what is computed. */
static bool find_shape(struct node *const *body, int n, struct domain *d)
{
	const struct node *first = NULL, *fold = NULL;

	for (int k = 0; k < n; k++) {
		if (is_fold(body[k])) {
			Shape s = body[k]->in[0]->type.shape;
			unsigned mask = reduced_axes(body[k]);

			if (fold != NULL && (mask != d->reduced ||
					     !shape_eq(s, d->shape)))
				return false;
			fold = body[k];
			d->shape = s;
			d->reduced = mask;
		} else if (first == NULL && !kernel_copies(body[k])) {
			first = body[k];
		}
	}
	if (fold == NULL)
		d->shape = (first ? first : body[n - 1])->out[0]->type.shape;
	return true;
}

static void all_axes(int8_t axis[MAX_RANK])
{
	for (int i = 0; i < MAX_RANK; i++)
		axis[i] = (int8_t)i;
}

/* A row with its reduced axes kept as extents of 1. */
static bool is_kept_row(const struct domain *d, Shape s)
{
	if (s.rank != d->shape.rank)
		return false;
	for (int i = 0; i < s.rank; i++)
		if (s.d[i] != (d->reduced >> i & 1 ? 1 : d->shape.d[i]))
			return false;
	return true;
}

/* A row without its reduced axes; fills the axes that are left. */
static bool is_bare_row(const struct domain *d, Shape s, int8_t axis[MAX_RANK])
{
	int at = 0;

	for (int i = 0; i < d->shape.rank; i++) {
		if (d->reduced >> i & 1)
			continue;
		if (at == s.rank || s.d[at] != d->shape.d[i])
			return false;
		axis[at++] = (int8_t)i;
	}
	return at == s.rank;
}

static bool place_node(struct domain *d, const struct node *n, int k)
{
	Shape s = n->out[0]->type.shape;

	all_axes(d->axis[k]);
	if (kernel_copies(n))
		return true;
	if (!is_fold(n) && shape_eq(s, d->shape))
		return true;
	d->row[k] = true;
	if (is_kept_row(d, s)) /* a fold may reduce no axis */
		return d->reduced != 0 || is_fold(n);
	return d->reduced != 0 && is_bare_row(d, s, d->axis[k]);
}

void domain_input(const struct domain *d, struct node *const *body, int k,
		  int i, int8_t axis[MAX_RANK])
{
	const struct node *n = body[k];
	Shape in = n->in[i]->type.shape, out = n->out[0]->type.shape;

	all_axes(axis);
	for (int j = 0; j < in.rank; j++) {
		if (!is_fold(n))
			axis[j] = d->axis[k][j + out.rank - in.rank];
		if (in.d[j] == 1 && d->shape.d[axis[j]] != 1)
			axis[j] = -1;
	}
}

/* ---- agreement of producers and consumers, and of distributions ---- */

static int producer(struct node *const *body, int n, const struct value *v)
{
	for (int k = 0; k < n; k++)
		for (int o = 0; o < body[k]->nout; o++)
			if (body[k]->out[o] == v)
				return k;
	return -1;
}

/* Input I of node K means the same elements as the node in the body that
 * makes it. */
static bool edge_fits(const struct domain *d, struct node *const *body, int k,
		      int i)
{
	const struct value *v = body[k]->in[i];
	int from = producer(body, k, v);
	int8_t axis[MAX_RANK];

	if (from < 0 || kernel_copies(body[from]))
		return true;
	domain_input(d, body, k, i, axis);
	for (int j = 0; j < v->type.shape.rank; j++)
		if (axis[j] >= 0 && v->type.shape.d[j] != 1 &&
		    axis[j] != d->axis[from][j])
			return false;
	return true;
}

static struct chain chain_of(Dist dist, int axis)
{
	struct chain c = {0};

	for (int i = 0; i < dist.on->naxes; i++) {
		int a = dist.order[i];

		if (dist.t[a].kind == SBP_S && dist.t[a].axis == axis &&
		    dist.on->extent[a] > 1)
			c.axes[c.n++] = (uint8_t)a;
	}
	return c;
}

static bool chain_eq(struct chain a, struct chain b)
{
	return a.n == b.n && !memcmp(a.axes, b.axes, (size_t)a.n);
}

/* Enters the splits of V; false if they are not those of the domain. SEEN
 * are the axes that have some. */
static bool add_chains(struct domain *d, const struct value *v,
		       const int8_t axis[MAX_RANK], bool row, unsigned *seen)
{
	if (v->dist.on == NULL)
		return true;
	if (d->on == NULL)
		d->on = v->dist.on;
	if (d->on != v->dist.on)
		return false;
	for (int j = 0; j < v->type.shape.rank; j++) {
		struct chain c = chain_of(v->dist, j);
		int at = axis[j];

		if (at < 0 || v->type.shape.d[j] != d->shape.d[at]) {
			if (c.n != 0)
				return false;
			continue;
		}
		if (row && d->reduced >> at & 1)
			continue;
		if ((*seen >> at & 1) && !chain_eq(c, d->chain[at]))
			return false;
		d->chain[at] = c;
		*seen |= 1u << at;
	}
	return true;
}

static bool find_chains(struct domain *d, struct node *const *body, int n)
{
	unsigned seen = 0;
	int8_t axis[MAX_RANK];

	for (int k = 0; k < n; k++) {
		if (kernel_copies(body[k]) && n > 1)
			continue;
		for (int i = 0; i < body[k]->nin; i++) {
			int from = producer(body, k, body[k]->in[i]);

			if (from >= 0 && kernel_copies(body[from]))
				continue;
			domain_input(d, body, k, i, axis);
			if (!add_chains(d, body[k]->in[i], axis,
					d->row[k] && !is_fold(body[k]), &seen))
				return false;
		}
		if (!add_chains(d, body[k]->out[0], d->axis[k], d->row[k],
				&seen))
			return false;
	}
	return true;
}

bool domain_of(struct arena *a, struct node *const *body, int n,
	       struct domain *out)
{
	bool fits;

	*out = (struct domain){0};
	out->row = NEW_N(a, bool, n);
	out->axis = arena_alloc(a, sizeof *out->axis * (size_t)n);
	fits = find_shape(body, n, out);
	for (int k = 0; fits && k < n; k++) {
		fits = place_node(out, body[k], k);
		for (int i = 0; fits && i < body[k]->nin; i++)
			fits = edge_fits(out, body, k, i);
	}
	return fits && find_chains(out, body, n);
}
