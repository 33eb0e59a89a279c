/*
 * inplace.c: which output of a node may be written in the place of an input.
 * Each element must be read before its own is written, and read nowhere else:
 * an elementwise kernel in vectors, where the input runs along all axes as
 * the output does; and an all-reduce of two parts, where each rank reduces
 * one half and writes it to both.
 */
#include "passes/passes.h"

/* The nodes that N computes. */
static int body_of(const struct node *const *n, struct node *const **body)
{
	if ((*n)->op == OP_kernel) {
		*body = (*n)->body;
		return (*n)->nbody;
	}
	*body = (struct node *const *)n;
	return 1;
}

static bool is_elementwise(struct node *const *body, int n)
{
	for (int k = 0; k < n; k++) {
		enum kernel_kind kind = op_info(body[k]->op)->kernel;

		if (kind != K_MAP && kind != K_VIEW)
			return false;
		if (!kernel_may_hold(body[k]) || !kernel_in_vectors(body[k]))
			return false;
	}
	return true;
}

static bool runs_along(const struct domain *d, Shape s,
		       const int8_t axis[MAX_RANK])
{
	if (!shape_eq(s, d->shape))
		return false;
	for (int i = 0; i < s.rank; i++)
		if (axis[i] != i && s.d[i] != 1)
			return false;
	return true;
}

/* Which node makes OUT. */
static int maker_of(struct node *const *body, int n, const struct value *out)
{
	for (int k = 0; k < n; k++)
		if (body[k]->out[0] == out)
			return k;
	bug("a kernel does not make its output");
}

/* Every reader of IN reads the element that it computes, and none comes after
 * the node that makes the output, which is stored there and then. */
static bool reads_alike(const struct domain *d, struct node *const *body, int n,
			const struct value *in, int maker)
{
	int8_t axis[MAX_RANK];

	for (int k = 0; k < n; k++)
		for (int i = 0; i < body[k]->nin; i++) {
			if (body[k]->in[i] != in)
				continue;
			domain_input(d, body, k, i, axis);
			if (k > maker || !runs_along(d, in->type.shape, axis))
				return false;
		}
	return true;
}

/* ORDER pairs: as the runtime finds them (is_pair in runtime/exchange.c). */
bool move_in_place(const struct node *n)
{
	Dist from = n->in[0]->dist, to = n->out[0]->dist;
	struct flow f;

	flow_of(from, to, &f);
	if (!f.same || f.parts != 2)
		return false;
	for (int k = 0; k < from.on->naxes; k++) {
		if (from.order[k] != to.order[k])
			return false;
		if (f.reduce[k] ? to.t[k].kind != SBP_B
				: !sbp_eq(from.t[k], to.t[k]))
			return false;
	}
	return true;
}

static bool kernel_may_overwrite(struct arena *a, const struct node *n,
				 const struct value *out,
				 const struct value *in)
{
	struct node *const *body;
	int count = body_of(&n, &body), maker = maker_of(body, count, out);
	struct domain d;

	return in->type.dtype == out->type.dtype &&
	       shape_eq(in->type.shape, out->type.shape) &&
	       is_elementwise(body, count) && domain_of(a, body, count, &d) &&
	       d.reduced == 0 &&
	       runs_along(&d, out->type.shape, d.axis[maker]) &&
	       reads_alike(&d, body, count, in, maker);
}

bool may_overwrite(struct arena *a, const struct node *n,
		   const struct value *out, const struct value *in)
{
	return n->op == OP_move ? move_in_place(n)
				: kernel_may_overwrite(a, n, out, in);
}
