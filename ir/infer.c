/*
 * infer.c: types of results, and promotion.
 *
 * op_infer completes the attributes of a node from the table, checks dtypes
 * by the column `types` and shapes by the index expression.
 */
#include <string.h>

#include "ir/ir.h"

static const char *const kinds[] = {
	[ATTR_INT] = "an integer", [ATTR_FLOAT] = "a number",
	[ATTR_BOOL] = "a bool", [ATTR_INTS] = "a list of integers",
	[ATTR_DTYPE] = "a dtype", [ATTR_TEXT] = "a string",
};

/* ---- attributes ---- */

static bool convert(struct graph *g, struct node *n,
		    const struct op_param *p, const struct attr *a)
{
	int64_t i = a->i;

	if (a->kind == p->kind)
		return true;
	if (p->kind == ATTR_FLOAT && a->kind == ATTR_INT)
		node_float(g, n, p->name, (double)i);
	else if (p->kind == ATTR_INTS && a->kind == ATTR_INT)
		node_ints(g, n, p->name, &i, 1);
	else
		return node_fail(n, "argument '%s' is %s, expected %s",
				 p->name, kinds[a->kind], kinds[p->kind]);
	return true;
}

static void set_initial(struct graph *g, struct node *n,
			const struct op_param *p)
{
	switch (p->kind) {
	case ATTR_INT:
		node_int(g, n, p->name, p->initial.i);
		break;
	case ATTR_FLOAT:
		node_float(g, n, p->name, p->initial.f);
		break;
	case ATTR_BOOL:
		node_bool(g, n, p->name, p->initial.i != 0);
		break;
	default:
		node_dtype(g, n, p->name, (enum dtype)p->initial.i);
	}
}

static bool known_attrs(const struct node *n, const struct op_info *info)
{
	int i, k;

	for (i = 0; i < n->nattr && !info->internal; i++) {
		for (k = 0; k < info->nparam; k++)
			if (info->param[k].name == n->attr[i].key &&
			    !info->param[k].tensor)
				break;
		if (k == info->nparam)
			return node_fail(n, "it has no argument '%s'",
					 n->attr[i].key);
	}
	return true;
}

/* AXIS from 0, or -1 after reporting. */
static int64_t wrap_axis(const struct node *n, int64_t axis, int rank)
{
	if (axis < -rank || axis >= rank) {
		if (n->nin)
			node_fail(n, "axis %lld of %s, which has %d",
				  (long long)axis,
				  type_text(n->in[0]->type), rank);
		else
			node_fail(n, "axis %lld of a shape of %d",
				  (long long)axis, rank);
		return -1;
	}
	return axis < 0 ? axis + rank : axis;
}

/* Sorted, from 0, each once. */
static bool wrap_axes(struct graph *g, struct node *n, const struct attr *a,
		      int rank)
{
	int64_t axes[MAX_RANK];
	bool has[MAX_RANK] = {false};
	int i, count = 0;
	int64_t axis;

	for (i = 0; i < (a ? a->n : rank); i++) {
		axis = a ? wrap_axis(n, a->ints[i], rank) : i;
		if (axis < 0)
			return false;
		if (has[axis])
			return node_fail(n, "axis %lld twice",
					 (long long)axis);
		has[axis] = true;
	}
	for (i = 0; i < rank; i++)
		if (has[i])
			axes[count++] = i;
	node_ints(g, n, "axis", axes, count);
	return true;
}

static bool fix_axis(struct graph *g, struct node *n,
		     const struct op_param *p)
{
	const struct attr *a = node_attr(n, "axis"), *shape;
	int rank;
	int64_t axis;

	if (n->nin) {
		rank = n->in[0]->type.shape.rank;
	} else {
		shape = node_attr(n, "shape");
		rank = shape ? shape->n : 0;
	}
	if (p->kind == ATTR_INTS)
		return wrap_axes(g, n, a, rank);
	if (!a)
		return true;
	axis = wrap_axis(n, a->i, rank);
	if (axis >= 0)
		node_int(g, n, "axis", axis);
	return axis >= 0;
}

static bool complete_attrs(struct graph *g, struct node *n,
			   const struct op_info *info)
{
	static Name axis;
	const struct op_param *p;
	const struct attr *a;
	int i;

	if (!axis)
		axis = name_of("axis");
	for (i = 0; i < info->nparam; i++) {
		p = &info->param[i];
		if (p->tensor)
			continue;
		a = node_attr(n, p->name);
		if (a && !convert(g, n, p, a))
			return false;
		if (!a && p->initial.key)
			set_initial(g, n, p);
		else if (!a && !p->optional)
			return node_fail(n, "argument '%s' is missing",
					 p->name);
		if (p->name == axis && !fix_axis(g, n, p))
			return false;
	}
	return known_attrs(n, info);
}

/* ---- dtypes ---- */

static bool in_class(enum dtype t, enum dtype_class c)
{
	switch (c) {
	case TAKES_NUMBER:
		return t != DT_BOOL;
	case TAKES_FLOAT:
		return dtype_is_float(t);
	case TAKES_INT:
		return dtype_is_int(t);
	case TAKES_BOOL:
		return t == DT_BOOL;
	default:
		return true;
	}
}

static bool check_dtypes(const struct node *n, const struct op_info *info)
{
	static const char *const wanted[] = {
		"", "numbers", "floats", "integers", "bools"
	};
	enum dtype_class c;
	int i, first = -1;

	for (i = 0; i < n->nin; i++) {
		c = op_takes(info, i);
		if (!in_class(n->in[i]->type.dtype, c)) {
			node_fail(n, "it takes %s, not %s", wanted[c],
				  type_text(n->in[i]->type));
			node_note(n, i, "");
			if (c == TAKES_NUMBER)
				diag_hint("cast it to a number, or use "
					  "logical_and, logical_or");
			return false;
		}
		if (!op_shares(info, i))
			continue;
		if (first >= 0 && n->in[i]->type.dtype !=
		    n->in[first]->type.dtype) {
			node_fail(n, "operands of one dtype expected, not "
				  "%s and %s",
				  dtype_name(n->in[first]->type.dtype),
				  dtype_name(n->in[i]->type.dtype));
			node_note(n, first, "");
			node_note(n, i, "");
			return false;
		}
		first = i;
	}
	return true;
}

enum dtype op_result(const struct node *n)
{
	const struct op_info *info = op_info(n->op);
	const char *result = strstr(info->types, "-> ");
	enum dtype t = DT_F32;
	int i;

	for (i = 0; i < n->nin; i++)
		if (op_shares(info, i)) {
			t = n->in[i]->type.dtype;
			break;
		}
	if (!result)
		return t;
	if (!strcmp(result, "-> bool"))
		return DT_BOOL;
	if (!strcmp(result, "-> attr"))
		return (enum dtype)attr_int(n, "dtype");
	return dtype_is_float(t) ? t : DT_I64;
}

/* ---- shapes, by index expression ---- */

static bool infer_reduction(struct graph *g, struct node *n)
{
	const struct op_info *info = op_info(n->op);
	const struct attr *axis = node_attr(n, "axis");
	bool keep = attr_bool(n, "keepdim");
	Shape x = n->in[0]->type.shape, s = {0};
	int64_t reduced = 1;
	int i, k = 0;

	for (i = 0; i < x.rank; i++) {
		if (k < axis->n && axis->ints[k] == i) {
			reduced = reduced && x.d[i];
			k++;
			if (keep)
				s.d[s.rank++] = 1;
		} else {
			s.d[s.rank++] = x.d[i];
		}
	}
	if (!reduced && (!strcmp(info->c, "max") || !strcmp(info->c, "min"))) {
		node_fail(n, "there is nothing to reduce in %s, and %s of "
			  "nothing has no value",
			  type_text(n->in[0]->type), info->name);
		return false;
	}
	node_type(g, n, op_result(n), s);
	return true;
}

/* Extents bound to letters. */
struct binding {
	char letter;
	int64_t extent;
	int operand;
};

static const char *operand_text(const struct node *n, int i)
{
	if (n->in[i]->name)
		return n->in[i]->name;
	return i ? "b" : "a";
}

static bool extents_differ(const struct node *n, const struct binding *b,
			   int operand, int64_t extent)
{
	Shape s = n->in[operand]->type.shape;

	node_fail(n, "inner extents differ: %lld and %lld",
		  (long long)b->extent, (long long)extent);
	node_note(n, b->operand, text_brief(", so %c = %lld", b->letter,
					    (long long)b->extent));
	node_note(n, operand, text_brief(", so %c = %lld", b->letter,
					 (long long)extent));
	if (n->op == OP_matmul && s.d[s.rank - 1] == b->extent &&
	    n->in[0]->name && n->in[1]->name)
		diag_hint("did you mean matmul(%s, transpose(%s))?",
			  operand_text(n, 0), operand_text(n, 1));
	return false;
}

/* Binds the letters of operand I, or checks those that are bound. */
static bool bind(const struct node *n, int i, const struct index_term *term,
		 struct binding *bound, int *nbound)
{
	Shape s = n->in[i]->type.shape;
	int64_t extent;
	int k, b;

	for (k = 0; k < term->n; k++) {
		extent = s.d[s.rank - term->n + k];
		for (b = 0; b < *nbound; b++)
			if (bound[b].letter == term->letter[k])
				break;
		if (b == *nbound)
			bound[(*nbound)++] = (struct binding){
				term->letter[k], extent, i};
		else if (bound[b].extent != extent)
			return extents_differ(n, &bound[b], i, extent);
	}
	return true;
}

static bool no_broadcast(const struct node *n)
{
	int i;

	node_fail(n, "%s and %s do not broadcast",
		  type_text(n->in[n->nin > 2 ? 1 : 0]->type),
		  type_text(n->in[n->nin - 1]->type));
	for (i = 0; i < n->nin; i++)
		node_note(n, i, "");
	return false;
}

/* Broadcasts the '*' axes of operand I into STAR. */
static bool bind_star(const struct node *n, int i,
		      const struct index_term *term, Shape *star)
{
	Shape s = n->in[i]->type.shape;

	if (s.rank < term->n) {
		node_fail(n, "an operand of at least %d axes expected, not "
			  "%s", term->n, type_text(n->in[i]->type));
		node_note(n, i, "");
		return false;
	}
	s.rank -= term->n;
	return shape_broadcast(*star, s, star) || no_broadcast(n);
}

static bool infer_letters(struct graph *g, struct node *n, const char *index)
{
	struct binding bound[2 * MAX_RANK];
	Shape star = {0};
	struct index_term term;
	int i, k, b, nbound = 0;

	for (i = 0; i < n->nin; i++) {
		index = term_read(index, &term);
		if (!bind_star(n, i, &term, &star) ||
		    !bind(n, i, &term, bound, &nbound))
			return false;
	}
	term_read(index, &term);
	if (star.rank + term.n > MAX_RANK)
		return node_fail(n, "the result has %d axes, more than %d",
				 star.rank + term.n, MAX_RANK);
	for (k = 0; k < term.n; k++) {
		for (b = 0; bound[b].letter != term.letter[k]; b++)
			;
		star.d[star.rank++] = bound[b].extent;
	}
	node_type(g, n, op_result(n), star);
	return true;
}

/* ---- the whole ---- */

static bool check_arity(const struct node *n, const struct op_info *info)
{
	bool many = false;
	int i;

	for (i = 0; i < info->nparam; i++)
		many = many || info->param[i].many;
	if (many && n->nin == 0)
		return node_fail(n, "an empty list of tensors");
	if (!many && n->nin != info->ntensor)
		return node_fail(n, "%d tensor%s given, expected %d", n->nin,
				 n->nin == 1 ? "" : "s", info->ntensor);
	return true;
}

static bool check_size(const struct node *n)
{
	int64_t count;
	Type t = n->out[0]->type;

	if (shape_count_fits(t.shape, &count) && count <= INT64_MAX / 64)
		return true;
	return node_fail(n, "the result %s has too many elements",
			 type_text(t));
}

bool op_infer(struct graph *g, struct node *n)
{
	const struct op_info *info = op_info(n->op);
	const struct rule *rule;

	if (!check_arity(n, info) || !complete_attrs(g, n, info) ||
	    !check_dtypes(n, info))
		return false;
	if (*info->index == '@') {
		rule = rule_find(info->index);
		return rule->infer(g, n) && check_size(n);
	}
	if (strchr(info->index, '@'))
		return infer_reduction(g, n);
	return infer_letters(g, n, info->index) && check_size(n);
}

/* ---- promotion ---- */

static int category(enum dtype t)
{
	return dtype_is_float(t) ? 2 : dtype_is_int(t) ? 1 : 0;
}

/* The dtype of the inputs that share one. */
static enum dtype common(const struct op_info *info, int nin,
			 struct value **in, const bool *weak)
{
	enum dtype t, strong = DT_BOOL, literal = DT_BOOL;
	bool any_strong = false;
	int i;

	for (i = 0; i < nin; i++) {
		if (!op_shares(info, i))
			continue;
		t = in[i]->type.dtype;
		if (weak && weak[i]) {
			literal = dtype_promote(literal, t);
		} else {
			strong = dtype_promote(strong, t);
			any_strong = true;
		}
	}
	if (!any_strong)
		return literal;
	if (category(literal) <= category(strong))
		return strong;
	return category(literal) == 2 ? DT_F32 : DT_I64;
}

/* Arithmetic wraps, so a literal may do so before; elsewhere it must fit. */
static bool wraps(enum op op)
{
	return op == OP_add || op == OP_sub || op == OP_mul;
}

static int64_t literal_int(enum op op, const struct node *fill, enum dtype to)
{
	int64_t i = attr_int(fill, "int"), wrapped = dtype_wrap(to, i);

	if (i != wrapped && !wraps(op))
		diag_error(fill->span, "%lld does not fit %s", (long long)i,
			   dtype_name(to));
	return wrapped;
}

static struct value *cast_fill(struct graph *g, enum op op,
			       const struct node *fill, enum dtype to)
{
	const struct attr *shape = node_attr(fill, "shape");
	struct node *n = node_new(g, OP_fill, fill->span, 0, NULL);
	enum dtype from = fill->out[0]->type.dtype;

	node_ints(g, n, "shape", shape->ints, shape->n);
	node_dtype(g, n, "dtype", to);
	if (dtype_is_float(from) || dtype_is_float(to))
		node_float(g, n, "value", attr_float(fill, "value"));
	else
		node_int(g, n, "int", literal_int(op, fill, to));
	n->on = fill->on;
	n->trail = fill->trail;
	n->call = fill->call;
	return node_done(g, n) ? n->out[0] : fill->out[0];
}

static struct value *cast_to(struct graph *g, enum op op, struct value *v,
			     enum dtype to, bool literal, Span span)
{
	struct node *n;

	if (v->type.dtype == to)
		return v;
	if (literal && v->def->op == OP_fill &&
	    category(to) >= category(v->type.dtype))
		return cast_fill(g, op, v->def, to);
	n = node_new(g, OP_cast, span, 1, &v);
	node_dtype(g, n, "dtype", to);
	n->on = v->def->on;
	return node_done(g, n) ? n->out[0] : v;
}

/* Integers are divided as floats, but not by 0. */
static struct value *divisor(struct graph *g, struct value *v, Span span)
{
	struct node *n;

	if (!dtype_is_int(v->type.dtype) ||
	    (v->def->op == OP_fill && attr_int(v->def, "int")))
		return v;
	n = node_new(g, OP_divisor, span, 1, &v);
	n->on = v->def->on;
	return node_done(g, n) ? n->out[0] : v;
}

void op_promote(struct graph *g, enum op op, Span span, int nin,
		struct value **in, const bool *weak)
{
	const struct op_info *info = op_info(op);
	enum dtype to = common(info, nin, in, weak);
	enum dtype_class c;
	int i;

	if (op == OP_div && nin == 2 && !dtype_is_float(to))
		in[1] = divisor(g, in[1], span);
	for (i = 0; i < nin; i++) {
		c = op_takes(info, i);
		if (!op_shares(info, i))
			continue;
		if (c == TAKES_FLOAT && !dtype_is_float(to))
			to = DT_F32;
		if (c == TAKES_BOOL)
			to = DT_BOOL;
		in[i] = cast_to(g, op, in[i], to, weak && weak[i],
				span);
	}
}
