/*
 * kernel_slice.c: operands that are slices of what lies elsewhere and are read
 * there: where in its piece a rank's part begins, and how far its elements are
 * from each other.
 */
#include <ctype.h>
#include <stdlib.h>

#include "codegen/kernel.h"

/* ---- addresses ---- */

const char *param_pitch(struct emitter *e, struct params *p,
			const struct value *v, int axis)
{
	return param_axis(e, p, lies_in(e->p, v), axis);
}

bool is_cut(const struct emitter *e, const struct value *v, int axis)
{
	const struct local *local = e->p->local;

	return local[v->id].first[axis] !=
	       local[lies_in(e->p, v)->id].first[axis];
}

/* The first index of slice V along AXIS in what it lies in. */
static const char *first_in(const struct emitter *e, const struct value *v,
			    int axis)
{
	const struct local *local = e->p->local;
	const struct extent *own = local[v->id].first[axis];
	const struct extent *whole = local[lies_in(e->p, v)->id].first[axis];

	if (whole == NULL)
		return arena_text(e->arena, "m->own[%d].lo", own->id);
	return arena_text(e->arena, "(m->own[%d].lo - m->own[%d].lo)", own->id,
			  whole->id);
}

/* The bytes from an element of V to the next one along AXIS, as a factor. */
static const char *bytes_apart(const struct emitter *e, const struct value *v,
			       int axis)
{
	const struct local *own = &e->p->local[v->id];
	int64_t number = dtype_size(v->type.dtype);
	const char *s = "";

	for (int i = axis + 1; i < v->type.shape.rank; i++)
		if (own->extent[i] == NULL)
			number *= own->max.d[i];
		else
			s = arena_text(e->arena, "%sm->own[%d].n * ", s,
				       own->extent[i]->id);
	if (number == 1)
		return s;
	return arena_text(e->arena, "%lld * %s", (long long)number, s);
}

struct arg buffer_arg(struct emitter *e, const struct value *v)
{
	const struct value *whole = lies_in(e->p, v);
	const char *s = "";

	for (int i = 0; i < v->type.shape.rank; i++)
		if (is_cut(e, v, i))
			s = arena_text(e->arena, "%s%s%s%s", s,
				       *s != '\0' ? " + " : "",
				       bytes_apart(e, whole, i),
				       first_in(e, v, i));
	return (struct arg){.kind = ARG_VALUE,
			    .v = whole,
			    .ctype = dtype_c(v->type.dtype),
			    .text = *s != '\0' ? name_of(s) : NULL};
}

/* ---- the loops of a fused kernel ---- */

bool nest_cut_between(const struct nest *k, int i, int j, int a, int b)
{
	const struct value *v = k->body[i]->in[j];
	int8_t axis[MAX_RANK];

	if (k->in[i][j].v == NULL)
		return false;
	domain_input(&k->d, k->body, i, j, axis);
	for (int n = 0; n < v->type.shape.rank; n++)
		if (axis[n] > a && axis[n] <= b && is_cut(k->e, v, n))
			return true;
	return false;
}

/* The elements of V from one along AXIS to the next, as a factor. */
static const char *stride_text(struct nest *k, const struct value *v, int axis)
{
	int64_t number = 1;
	const char *s = "";

	for (int i = axis + 1; i < v->type.shape.rank; i++) {
		const char *n;

		if (v->type.shape.d[i] == 1)
			continue;
		n = param_pitch(k->e, &k->p, v, i);
		if (isdigit((unsigned char)n[0]))
			number *= strtoll(n, NULL, 10);
		else
			s = arena_text(k->a, "%s%s * ", s, n);
	}
	if (number == 1)
		return s;
	return arena_text(k->a, "%s%lld * ", s, (long long)number);
}

/* A loop over several axes goes along the last of them, and takes the others'
 * turns with it. */
static void find_stride(struct nest *k, int i, int j, const int *loop_of)
{
	struct access *x = &k->in[i][j];
	unsigned mask = nest_input_axes(k, i, j);
	int8_t axis[MAX_RANK];

	if (x->v == NULL || k->e->p->local[x->v->id].slice_of == NULL)
		return;
	x->stride = NEW_N(k->a, const char *, MAX_RANK);
	domain_input(&k->d, k->body, i, j, axis);
	for (int n = x->v->type.shape.rank - 1; n >= 0; n--) {
		int loop = axis[n] < 0 || !(mask >> axis[n] & 1)
				   ? -1
				   : loop_of[axis[n]];

		if (loop >= 0 && !k->loop[loop].straight && !x->stride[loop])
			x->stride[loop] = stride_text(k, x->v, n);
	}
}

void nest_strides(struct nest *k, const int *loop_of)
{
	for (int i = 0; i < k->nbody; i++)
		for (int j = 0; j < k->body[i]->nin; j++)
			find_stride(k, i, j, loop_of);
}
