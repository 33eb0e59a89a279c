/*
 * inplace.c: which output of a kernel may be written in the place of an
 * input. Each element must be read before its own is written, and read
 * nowhere else: an elementwise kernel in vectors, where the input runs along
 * all axes as the output does.
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

/* Every reader of IN reads the element that it computes, and none comes after
 * node LAST, which writes. */
static bool reads_alike(const struct domain *d, struct node *const *body, int n,
			const struct value *in, int last)
{
	int8_t axis[MAX_RANK];

	for (int k = 0; k < n; k++)
		for (int i = 0; i < body[k]->nin; i++) {
			if (body[k]->in[i] != in)
				continue;
			if (k > last)
				return false;
			domain_input(d, body, k, i, axis);
			if (!runs_along(d, in->type.shape, axis))
				return false;
		}
	return true;
}

/* The node that writes OUT as it computes; -1 where it runs otherwise. */
static int writer_of(const struct domain *d, struct node *const *body, int n,
		     const struct value *out)
{
	for (int k = 0; k < n; k++)
		if (body[k]->out[0] == out)
			return runs_along(d, out->type.shape, d->axis[k]) ? k
									  : -1;
	return -1;
}

bool may_overwrite(struct arena *a, const struct node *n,
		   const struct value *out, const struct value *in)
{
	struct node *const *body;
	int count = body_of(&n, &body);
	struct domain d;

	return in->type.dtype == out->type.dtype &&
	       shape_eq(in->type.shape, out->type.shape) &&
	       is_elementwise(body, count) && domain_of(a, body, count, &d) &&
	       d.reduced == 0 &&
	       reads_alike(&d, body, count, in,
			   writer_of(&d, body, count, out));
}
