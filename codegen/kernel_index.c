/*
 * kernel_index.c: routines that follow indices: gather, scatter_add, take,
 * one_hot. An index outside the whole axis is an error at run time, also where
 * the axis is split and another rank owns the element; of what a rank does not
 * own it answers 0, the identity of the sum.
 */
#include <string.h>

#include "codegen/kernel.h"

/* As a program calls it. */
static const char *shown_name(const struct node *n)
{
	return n->op == OP_take ? "embedding" : op_info(n->op)->name;
}

/* Reads the index at OFFSET of input I into `at` and checks it against WHOLE,
 * the extent that it counts. */
static void put_index(struct routine *r, int i, const char *offset,
		      int64_t whole)
{
	put(&r->l, "int64_t at = %s;",
	    routine_element(r, routine_input(r, i), offset));
	text_add(&r->l.t, "\n");
	if (whole > 0)
		put(&r->l, "if (at < 0 || at >= %lld)", (long long)whole);
	r->l.indent += whole > 0;
	put(&r->l, "return sbp_fail(m, line, \"%s\", \"index %%lld is outside "
		   "0 .. %lld\", (long long)at);",
	    shown_name(r->n), (long long)whole - 1);
	r->l.indent -= whole > 0;
}

static void takes_model(struct routine *r)
{
	r->p.model = r->p.status = true;
	param_text(r->e, &r->p, "int line",
		   arena_text(r->a, "%d", place_of(r->n->span).line));
}

/* Makes `at` local; whether it may then lie outside. */
static bool put_local(struct routine *r, const struct value *v, int axis)
{
	const struct local *own = &r->e->p->local[v->id];

	if (own->first[axis] == NULL)
		return false;
	put(&r->l, "at -= %s;", param_first(r->e, &r->p, v, axis));
	return true;
}

/* -0.0, so that adding it to -0.0 changes nothing; as it is stored. */
static const char *zero(struct routine *r, enum dtype t)
{
	return expr_put(r->a, t, expr_literal(r->a, t, -0.0, 0));
}

static const char *owned(struct routine *r, const struct value *v, int axis)
{
	return arena_text(r->a, "at >= 0 && at < %s",
			  param_axis(r->e, &r->p, v, axis));
}

static void write_gather(struct routine *r)
{
	const struct value *x = r->n->in[0], *index = r->n->in[1];
	const struct value *y = r->n->out[0];
	int axis = (int)attr_int(r->n, "axis");
	const char *at[MAX_RANK], *to, *from, *a = routine_input(r, 0);

	takes_model(r);
	routine_loops(r, index, 0, rank_of(index), at);
	to = routine_offset(r, y, at);
	put_index(r, 1, routine_offset(r, index, at), x->type.shape.d[axis]);
	at[axis] = "at";
	from = routine_element(r, a, routine_offset(r, x, at));
	if (put_local(r, x, axis))
		from = arena_text(r->a, "%s ? %s : %s", owned(r, x, axis),
				  from, zero(r, y->type.dtype));
	put(&r->l, "%s = %s;", routine_element(r, "y", to), from);
}

/* y[...] += src[...] in the type's own arithmetic. */
static const char *sum_of(struct routine *r, enum dtype t, const char *x,
			  const char *y)
{
	const char *u = t == DT_I64 ? "uint64_t" : "uint32_t";

	if (!dtype_is_float(t))
		return arena_text(r->a, "(%s)((%s)%s + (%s)%s)", dtype_c(t), u,
				  x, u, y);
	return expr_put(r->a, t,
			arena_text(r->a, "%s + %s", expr_get(r->a, t, x),
				   expr_get(r->a, t, y)));
}

/* In the order of the index, so the sums have the same bits always. */
static void write_scatter_add(struct routine *r)
{
	const struct value *x = r->n->in[0], *index = r->n->in[1];
	const struct value *src = r->n->in[2], *y = r->n->out[0];
	int axis = (int)attr_int(r->n, "axis");
	enum dtype t = y->type.dtype;
	const char *at[MAX_RANK], *to, *from, *c;

	takes_model(r);
	routine_copy(r, "0", routine_input(r, 0), "0",
		     routine_count(r, x, 0, rank_of(x)));
	routine_input(r, 1);
	c = routine_input(r, 2);
	routine_loops(r, index, 0, rank_of(index), at);
	from = routine_element(r, c, routine_offset(r, src, at));
	put_index(r, 1, routine_offset(r, index, at), x->type.shape.d[axis]);
	at[axis] = "at";
	to = routine_element(r, "y", routine_offset(r, y, at));
	if (put_local(r, x, axis))
		put_open(&r->l, "if (%s)", owned(r, x, axis));
	put(&r->l, "%s = %s;", to, sum_of(r, t, to, from));
}

/* The elements from a row of table V to the next. */
static const char *row_pitch(struct routine *r, const struct value *v)
{
	const char *s = "1";

	for (int i = 1; i < rank_of(v); i++)
		s = routine_times(r, s, param_pitch(r->e, &r->p, v, i));
	return s;
}

static void write_take(struct routine *r)
{
	const struct value *table = r->n->in[0], *ids = r->n->in[1];
	const char *n = routine_count(r, ids, 0, rank_of(ids));
	const char *row = routine_count(r, table, 1, rank_of(table));
	const char *a = routine_input(r, 0), *to, *from, *i = "0";
	enum dtype t = table->type.dtype;

	takes_model(r);
	routine_input(r, 1);
	if (strcmp(n, "1")) {
		put_open(&r->l, "for (int64_t i = 0; i < %s; i++)", n);
		i = "i";
	}
	put_index(r, 1, i, table->type.shape.d[0]);
	to = routine_times(r, row, i);
	from = routine_times(r, row_pitch(r, table), "at");
	if (!put_local(r, table, 0)) {
		routine_copy(r, to, a, from, row);
		return;
	}
	put_open(&r->l, "if (%s)", owned(r, table, 0));
	routine_copy(r, to, a, from, row);
	r->l.indent--;
	put_open(&r->l, "} else");
	put(&r->l, "for (int64_t j = 0; j < %s; j++)", row);
	put(&r->l, "\ty[%s] = %s;", routine_plus(r, to, "j"), zero(r, t));
}

static void write_one_hot(struct routine *r)
{
	const struct value *ids = r->n->in[0], *y = r->n->out[0];
	int last = rank_of(y) - 1;
	const char *n = routine_count(r, ids, 0, rank_of(ids));
	const char *columns = param_axis(r->e, &r->p, y, last), *i = "0";
	enum dtype t = y->type.dtype;

	takes_model(r);
	routine_input(r, 0);
	put(&r->l, "for (int64_t i = 0; i < %s; i++)",
	    routine_count(r, y, 0, last + 1));
	put(&r->l, "\ty[i] = 0;");
	if (strcmp(n, "1")) {
		put_open(&r->l, "for (int64_t i = 0; i < %s; i++)", n);
		i = "i";
	}
	put_index(r, 0, i, y->type.shape.d[last]);
	if (put_local(r, y, last))
		put_open(&r->l, "if (%s)", owned(r, y, last));
	put(&r->l, "%s = %s;",
	    routine_element(r, "y",
			    routine_plus(r, routine_times(r, columns, i),
					 "at")),
	    expr_put(r->a, t, expr_literal(r->a, t, 1, 1)));
}

Writer index_writer(enum op op)
{
	switch (op) {
	case OP_gather:
		return write_gather;
	case OP_scatter_add:
		return write_scatter_add;
	case OP_take:
		return write_take;
	case OP_one_hot:
		return write_one_hot;
	default:
		return NULL;
	}
}
