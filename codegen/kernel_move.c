/*
 * kernel_move.c: routines that move elements or make them from their index:
 * permute, slice, concat, pad, iota, argmax, random numbers.
 */
#include <string.h>

#include "codegen/kernel.h"

/* ---- permute ---- */

enum { STRIP = 32 };

/* Loops over axes of Y, axis STRIPPED last and in strips: a strip reads whole
 * cache lines, and the lines that it writes stay in the cache. */
static void strip_loops(struct routine *r, const struct value *y, int stripped,
			const char **at)
{
	int last = rank_of(y) - 1;
	const char *n = param_axis(r->e, &r->p, y, stripped), *end;

	routine_loops(r, y, 0, stripped, at);
	routine_loops(r, y, stripped + 1, last, at);
	put_open(&r->l, "for (int64_t x = 0; x < %s; x += %d)", n, STRIP);
	routine_loops(r, y, last, last + 1, at);
	end = arena_text(r->a, "%s && %c < x + %d", n, "ijklpqrs"[stripped],
			 STRIP);
	put_open(&r->l, "for (int64_t %c = x; %c < %s; %c++)",
		 "ijklpqrs"[stripped], "ijklpqrs"[stripped], end,
		 "ijklpqrs"[stripped]);
	at[stripped] = arena_text(r->a, "%c", "ijklpqrs"[stripped]);
}

/* Where the last axis of the input goes. */
static int last_goes_to(const int64_t *dims, int rank)
{
	int i = 0;

	while (dims[i] != rank - 1)
		i++;
	return i;
}

/* Axes at the end that stay in place move as runs. */
static void write_permute(struct routine *r)
{
	const struct value *x = r->n->in[0], *y = r->n->out[0];
	const int64_t *dims = node_attr(r->n, "dims")->ints;
	const char *out[MAX_RANK], *in[MAX_RANK], *a = routine_input(r, 0);
	const char *to, *from;
	int run = rank_of(y), to_last;

	while (run > 0 && dims[run - 1] == run - 1)
		run--;
	for (int i = 0; i < rank_of(y); i++)
		out[i] = "0";
	to_last = run == rank_of(y) && run > 0 ? last_goes_to(dims, run) : 0;
	if (run == rank_of(y) && run > 1 &&
	    r->e->p->local[y->id].max.d[to_last] > STRIP)
		strip_loops(r, y, to_last, out);
	else
		routine_loops(r, y, 0, run, out);
	for (int i = 0; i < rank_of(y); i++)
		in[dims[i]] = out[i];
	to = routine_offset(r, y, out);
	from = routine_offset(r, x, in);
	if (run < rank_of(y))
		routine_copy(r, to, a, from,
			     routine_count(r, y, run, rank_of(y)));
	else
		put(&r->l, "%s = %s;", routine_element(r, "y", to),
		    routine_element(r, a, from));
}

/* ---- slice, concat ---- */

/* Opens a loop over all axes before AXIS as one; its index, or "0". */
static const char *outer_loop(struct routine *r, const struct value *v,
			      int axis)
{
	const char *n = routine_count(r, v, 0, axis);

	if (!strcmp(n, "1"))
		return "0";
	put_open(&r->l, "for (int64_t i = 0; i < %s; i++)", n);
	return "i";
}

/* The offset of (i, AT, 0) in V as [outer, axis, inner]. */
static const char *middle(struct routine *r, const struct value *v, int axis,
			  const char *i, const char *at)
{
	const char *n = param_axis(r->e, &r->p, v, axis);
	const char *inner = routine_count(r, v, axis + 1, rank_of(v));
	const char *s = routine_plus(r, routine_times(r, i, n), at);

	return routine_times(r, s, inner);
}

static void write_slice(struct routine *r)
{
	const struct value *x = r->n->in[0], *y = r->n->out[0];
	int axis = (int)attr_int(r->n, "axis");
	int64_t step = attr_int(r->n, "step");
	const char *start = arena_text(r->a, "%lld",
				       (long long)attr_int(r->n, "start"));
	const char *a = routine_input(r, 0), *i = outer_loop(r, y, axis);
	const char *n = routine_count(r, y, axis, rank_of(y));

	if (step == 1) {
		routine_copy(r, middle(r, y, axis, i, "0"), a,
			     middle(r, x, axis, i, start), n);
		return;
	}
	put_open(&r->l, "for (int64_t j = 0; j < %s; j++)",
		 param_axis(r->e, &r->p, y, axis));
	start = routine_plus(r, start, arena_text(r->a, "%lld * j",
						  (long long)step));
	routine_copy(r, middle(r, y, axis, i, "j"), a,
		     middle(r, x, axis, i, start),
		     routine_count(r, y, axis + 1, rank_of(y)));
}

static void write_concat(struct routine *r)
{
	const struct value *y = r->n->out[0];
	int axis = (int)attr_int(r->n, "axis");
	int64_t start = 0;
	const char *i;

	for (int k = 0; k < r->n->nin; k++)
		if (r->n->in[k]->type.shape.d[axis] != 0)
			routine_input(r, k);
	i = outer_loop(r, y, axis);
	for (int k = 0; k < r->n->nin; k++) {
		const struct value *x = r->n->in[k];
		const char *at = arena_text(r->a, "%lld", (long long)start);

		start += x->type.shape.d[axis];
		if (x->type.shape.d[axis] == 0)
			continue;
		routine_copy(r, middle(r, y, axis, i, at), routine_input(r, k),
			     middle(r, x, axis, i, "0"),
			     routine_count(r, x, axis, rank_of(x)));
	}
}

/* ---- pad ---- */

/* The attribute lists pairs, the last axis first: what is added before (SIDE
 * 0) or after axis AXIS, and where negative taken away. */
static int64_t pad_of(const struct routine *r, int axis, int side)
{
	const struct attr *pad = node_attr(r->n, "pad");
	int i = 2 * (rank_of(r->n->out[0]) - 1 - axis);

	return i < pad->n ? pad->ints[i + side] : 0;
}

static int64_t cropped(const struct routine *r, int axis, int side)
{
	int64_t n = pad_of(r, axis, side);

	return n < 0 ? -n : 0;
}

/* How many elements of axis AXIS of X go to Y. */
static const char *pad_kept(struct routine *r, const struct value *x, int axis)
{
	int64_t less = cropped(r, axis, 0) + cropped(r, axis, 1);

	if (!less)
		return param_axis(r->e, &r->p, x, axis);
	return arena_text(r->a, "%lld",
			  (long long)(x->type.shape.d[axis] - less));
}

/* INDEX and N more. */
static const char *pad_shift(struct routine *r, const char *index, int64_t n)
{
	return routine_plus(r, index, arena_text(r->a, "%lld", (long long)n));
}

static void write_pad(struct routine *r)
{
	const struct value *x = r->n->in[0], *y = r->n->out[0];
	enum dtype t = y->type.dtype;
	double d = attr_float(r->n, "value");
	const char *in[MAX_RANK], *out[MAX_RANK], *a = routine_input(r, 0);
	int last = rank_of(y) - 1;
	const char *value = expr_literal(r->a, t, d, (int64_t)d);

	put_open(&r->l, "for (int64_t i = 0; i < %s; i++)",
		 routine_count(r, y, 0, last + 1));
	put(&r->l, "y[i] = %s;", expr_put(r->a, t, value));
	put_close(&r->l, 1);
	if (last < 0) {
		put(&r->l, "*y = *%s;", a);
		return;
	}
	for (int i = 0; i <= last; i++) {
		const char *at = "0";

		if (i < last)
			at = routine_loop(r, i, pad_kept(r, x, i));
		in[i] = pad_shift(r, at, cropped(r, i, 0));
		out[i] = pad_shift(r, at, pad_of(r, i, 0) + cropped(r, i, 0));
	}
	routine_copy(r, routine_offset(r, y, out), a, routine_offset(r, x, in),
		     pad_kept(r, x, last));
}

/* ---- argmax ---- */

static const char *is_better(struct routine *r, enum dtype t)
{
	if (!dtype_is_float(t))
		return "x > best";
	(void)r;
	return "x > best || (x != x && best == best)";
}

/* As [outer, axis, inner]: the lowest index wins, the first nan before all. */
static void write_argmax(struct routine *r)
{
	const struct value *v = r->n->in[0], *y = r->n->out[0];
	const struct attr *axis = node_attr(r->n, "axis");
	int from = axis ? (int)axis->i : 0;
	int to = axis ? from + 1 : rank_of(v);
	enum dtype t = v->type.dtype, to_type = y->type.dtype;
	const char *a = routine_input(r, 0), *n = routine_count(r, v, from, to);
	const char *inner = routine_count(r, v, to, rank_of(v));
	const char *i = outer_loop(r, v, from), *j = "0", *first, *x, *at;

	if (strcmp(inner, "1")) {
		put_open(&r->l, "for (int64_t j = 0; j < %s; j++)", inner);
		j = "j";
	}
	first = routine_plus(r, routine_times(r, routine_times(r, i, n),
					      inner), j);
	put(&r->l, "%s best = %s;", expr_type(t, false),
	    expr_get(r->a, t, routine_element(r, a, first)));
	put(&r->l, "int64_t at = 0;");
	text_add(&r->l.t, "\n");
	put_open(&r->l, "for (int64_t k = 1; k < %s; k++)", n);
	x = routine_plus(r, first, routine_times(r, inner, "k"));
	put(&r->l, "%s x = %s;", expr_type(t, false),
	    expr_get(r->a, t, routine_element(r, a, x)));
	text_add(&r->l.t, "\n");
	put_open(&r->l, "if (%s)", is_better(r, t));
	put(&r->l, "best = x;");
	put(&r->l, "at = k;");
	put_close(&r->l, r->l.indent - 2);
	at = expr_cast(r->a, DT_I64, to_type, "at");
	put(&r->l, "%s = %s;",
	    routine_element(r, "y", routine_plus(r, routine_times(r, i, inner), j)),
	    expr_put(r->a, to_type, at));
}

/* ---- elements of their global index ---- */

/* The place of the element at AT in the whole tensor. */
static const char *global_offset(struct routine *r, const struct value *v,
				 const char *const *at)
{
	const char *s = "0";

	for (int i = 0; i < rank_of(v); i++) {
		const char *first = param_first(r->e, &r->p, v, i);
		const char *n = arena_text(r->a, "%lld",
					   (long long)v->type.shape.d[i]);

		s = routine_plus(r, routine_times(r, s, n),
				 routine_plus(r, first, at[i]));
	}
	return s;
}

/* X in parentheses where it has an operator. */
static const char *grouped(struct arena *a, const char *x)
{
	return strchr(x, ' ') ? arena_text(a, "(%s)", x) : x;
}

const char *iota_text(struct arena *a, const struct node *n, const char *k)
{
	enum dtype t = n->out[0]->type.dtype;
	double start = attr_float(n, "start"), step = attr_float(n, "step");
	const char *x = k;

	if (dtype_is_float(t)) {
		x = arena_text(a, "(%s + %s * (double)%s)",
			       expr_literal(a, DT_F64, start, 0),
			       expr_literal(a, DT_F64, step, 0),
			       grouped(a, k));
		return expr_cast(a, DT_F64, t, x);
	}
	if (step != 1)
		x = arena_text(a, "%lld * %s", (long long)step, grouped(a, x));
	if (start != 0)
		x = arena_text(a, "%lld + %s", (long long)start, x);
	return expr_cast(a, DT_I64, t, grouped(a, x));
}

static void write_iota(struct routine *r)
{
	const struct value *y = r->n->out[0];
	int axis = (int)attr_int(r->n, "axis");
	enum dtype t = y->type.dtype;
	const char *at[MAX_RANK], *k;

	routine_loops(r, y, 0, rank_of(y), at);
	k = routine_plus(r, param_first(r->e, &r->p, y, axis), at[axis]);
	put(&r->l, "%s = %s;", routine_element(r, "y", routine_offset(r, y, at)),
	    expr_put(r->a, t, iota_text(r->a, r->n, k)));
}

static const char *random_call(struct routine *r, bool wide)
{
	const char *f = wide ? "f64" : "f32";

	switch (r->n->op) {
	case OP_uniform:
		return arena_text(r->a, "sbp_uniform_%s(stream, at, step, %s, "
					"%s)", f,
				  expr_literal(r->a, DT_F64,
					       attr_float(r->n, "low"), 0),
				  expr_literal(r->a, DT_F64,
					       attr_float(r->n, "high"), 0));
	case OP_normal:
		return arena_text(r->a, "sbp_normal(stream, at, step, %s, %s)",
				  expr_literal(r->a, DT_F64,
					       attr_float(r->n, "mean"), 0),
				  expr_literal(r->a, DT_F64,
					       attr_float(r->n, "std"), 0));
	default:
		return arena_text(r->a, "sbp_bernoulli(stream, at, step, %s)",
				  expr_literal(r->a, DT_F64,
					       attr_float(r->n, "p"), 0));
	}
}

static void write_random(struct routine *r)
{
	const struct value *y = r->n->out[0];
	enum dtype t = y->type.dtype, from = DT_F64;
	const char *at[MAX_RANK], *x = random_call(r, t == DT_F64);

	r->p.model = true;
	param_text(r->e, &r->p, "uint64_t key",
		   arena_text(r->a, "%lld",
			      (long long)attr_int(r->n, "key")));
	put(&r->l, "const uint64_t stream = sbp_stream(m->seed, key);");
	put(&r->l, "const uint32_t step = (uint32_t)m->step;");
	text_add(&r->l.t, "\n");
	routine_loops(r, y, 0, rank_of(y), at);
	put(&r->l, "const uint64_t at = (uint64_t)(%s);",
	    global_offset(r, y, at));
	text_add(&r->l.t, "\n");
	if (r->n->op == OP_uniform && t != DT_F64)
		from = DT_F32;
	else if (r->n->op == OP_bernoulli)
		from = DT_I32;
	x = t == DT_F32 && from == DT_F32 ? x : expr_cast(r->a, from, t, x);
	put(&r->l, "%s = %s;", routine_element(r, "y", routine_offset(r, y, at)),
	    expr_put(r->a, t, x));
}

Writer move_writer(enum op op)
{
	switch (op) {
	case OP_permute:
		return write_permute;
	case OP_slice:
		return write_slice;
	case OP_concat:
		return write_concat;
	case OP_pad:
		return write_pad;
	case OP_argmax:
		return write_argmax;
	case OP_iota:
		return write_iota;
	case OP_uniform:
	case OP_normal:
	case OP_bernoulli:
		return write_random;
	default:
		return NULL;
	}
}
