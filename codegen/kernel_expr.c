/*
 * kernel_expr.c: operators as C. A kernel computes either in vectors of f32,
 * with masks for bool, or one element at a time in C's own types; f16 and
 * bf16 are computed in f32 and rounded after each operator.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/kernel.h"

static bool is_half(enum dtype t)
{
	return t == DT_F16 || t == DT_BF16;
}

const char *dtype_c(enum dtype t)
{
	static const char *const names[] = {
		[DT_BOOL] = "uint8_t", [DT_U8] = "uint8_t",
		[DT_I8] = "int8_t",    [DT_I32] = "int32_t",
		[DT_I64] = "int64_t",  [DT_F16] = "uint16_t",
		[DT_BF16] = "uint16_t", [DT_F32] = "float",
		[DT_F64] = "double",
	};

	return names[t];
}

const char *expr_type(enum dtype t, bool vectors)
{
	if (vectors)
		return t == DT_BOOL ? "sbp_m16" : "sbp_v16";
	return is_half(t) ? "float" : dtype_c(t);
}

/* ---- numbers ---- */

/* A constant of type float or double: with a point and the right suffix. */
static const char *float_text(struct arena *a, double d, bool single)
{
	struct text t = {0};

	if (isnan(d))
		return single ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
	if (isinf(d))
		return arena_text(a, "%s__builtin_inf%s()", d < 0 ? "-" : "",
				  single ? "f" : "");
	if (single)
		text_add_float(&t, (float)d);
	else
		text_add_double(&t, d);
	if (strpbrk(t.at, ".e") == NULL)
		text_add(&t, ".0");
	if (single)
		text_add(&t, "f");
	return taken_text(a, &t);
}

const char *expr_literal(struct arena *a, enum dtype t, double d, int64_t i)
{
	if (dtype_is_float(t))
		return float_text(a, d, t != DT_F64);
	if (t == DT_BOOL)
		return i != 0 ? "1" : "0";
	if (i == INT64_MIN)
		return "INT64_MIN";
	if (i == INT32_MIN)
		return "INT32_MIN";
	return arena_text(a, "%lld", (long long)i);
}

static const char *in_vector(struct arena *a, enum dtype t, const char *x)
{
	return arena_text(a, t == DT_BOOL ? "m_set(%s)" : "v_set(%s)", x);
}

const char *expr_number(struct arena *a, const struct node *fill, bool vectors)
{
	enum dtype t = fill->out[0]->type.dtype;
	const struct attr *whole = node_attr(fill, "int");
	double d = attr_float(fill, "value");
	int64_t i = whole ? whole->i : (int64_t)d;
	const char *x = expr_literal(a, t, d, i);

	if (vectors)
		return expr_round(a, t, true, in_vector(a, t, x));
	if (is_half(t))
		return expr_round(a, t, false, x);
	return arena_text(a, x[0] == '-' ? "(%s)" : "%s", x);
}

/* ---- rounding, memory, casts ---- */

const char *expr_round(struct arena *a, enum dtype t, bool vectors,
		       const char *x)
{
	if (!is_half(t))
		return x;
	return arena_text(a, "%s_round_%s(%s)", vectors ? "v" : "s",
			  dtype_name(t), x);
}

const char *expr_get(struct arena *a, enum dtype t, const char *x)
{
	if (!is_half(t))
		return x;
	return arena_text(a, "s_from_%s(%s)", dtype_name(t), x);
}

const char *expr_put(struct arena *a, enum dtype t, const char *x)
{
	if (!is_half(t))
		return x;
	return arena_text(a, "s_bits_%s(%s)", dtype_name(t), x);
}

const char *expr_cast(struct arena *a, enum dtype from, enum dtype to,
		      const char *x)
{
	if (from == to)
		return x;
	if (to == DT_BOOL)
		return arena_text(a, "(%s != 0)", x);
	if (dtype_is_int(to)) {
		if (dtype_is_float(from))
			return arena_text(a, "%s_cast(%s)", dtype_name(to), x);
		return arena_text(a, "(%s)%s", dtype_c(to), x);
	}
	if (to == DT_F64)
		return arena_text(a, "(double)%s", x);
	if (!is_half(to))
		return from == DT_F16 || from == DT_BF16
			       ? x
			       : arena_text(a, "(float)%s", x);
	if (from == DT_F64 || from == DT_I32 || from == DT_I64)
		x = arena_text(a, "s_odd((double)%s)", x);
	return expr_round(a, to, false, x);
}

/* ---- elementwise operators: the template of ops.def ---- */

/* What rounding cannot change. */
static bool is_exact(const struct node *n)
{
	switch (n->op) {
	case OP_neg:
	case OP_abs:
	case OP_relu:
	case OP_sign:
	case OP_floor:
	case OP_ceil:
	case OP_round:
	case OP_maximum:
	case OP_minimum:
	case OP_where:
	case OP_expand:
	case OP_stop_gradient:
		return true;
	default:
		return false;
	}
}

/* C's operators on masks. */
static const char *mask_operator(const char *c, size_t *n)
{
	if (!strncmp(c, "&&", 2) || !strncmp(c, "||", 2)) {
		*n = 2;
		return c[0] == '&' ? "&" : "|";
	}
	if (c[0] == '!' && c[1] != '=') {
		*n = 1;
		return "~";
	}
	return NULL;
}

/* PREFIX replaces '$'; VECTORS chooses the operators of masks. */
static const char *substitute(struct arena *a, const char *c,
			      const char *prefix, bool vectors,
			      const char *const *operand)
{
	struct text t = {0};
	const char *mask;
	size_t n;

	while (*c != '\0') {
		if (*c == '%' && isdigit((unsigned char)c[1])) {
			text_add(&t, "%s", operand[c[1] - '0']);
			c += 2;
		} else if (*c == '$') {
			text_add(&t, "%s", prefix);
			c++;
		} else if (vectors && (mask = mask_operator(c, &n)) != NULL) {
			text_add(&t, "%s", mask);
			c += n;
		} else if (vectors && c[0] == '1' && c[1] == ' ') {
			text_add(&t, "1.0f");
			c++;
		} else {
			text_add_n(&t, c++, 1);
		}
	}
	return taken_text(a, &t);
}

static const char *vector_cast(struct arena *a, const struct node *n,
			       const char *x)
{
	bool from = n->in[0]->type.dtype == DT_BOOL;
	bool to = n->out[0]->type.dtype == DT_BOOL;

	if (from == to)
		return x;
	return arena_text(a, to ? "%s != v_set(0)" : "v_from_m(%s)", x);
}

static const char *vector_map(struct arena *a, const struct node *n,
			      const char *const *x)
{
	if (n->op == OP_cast)
		return vector_cast(a, n, x[0]);
	if (n->op == OP_stop_gradient)
		return x[0];
	if (n->op == OP_where && n->out[0]->type.dtype == DT_BOOL)
		return arena_text(a, "m_where(%s, %s, %s)", x[0], x[1], x[2]);
	return substitute(a, op_info(n->op)->c, "v_", true, x);
}

/* Integers wrap: arithmetic is on unsigned numbers. */
static const char *wrapping(struct arena *a, enum dtype t, char op,
			    const char *x, const char *y)
{
	const char *u = t == DT_I64 ? "uint64_t" : "uint32_t";

	return arena_text(a, "(%s)((%s)%s %c (%s)%s)", dtype_c(t), u, x, op, u,
			  y);
}

/* Of X with itself; compilers warn of comparisons whose result they know. */
static const char *whole_same(struct arena *a, enum op op, const char *x)
{
	switch (op) {
	case OP_eq:
	case OP_le:
	case OP_ge:
		return arena_text(a, "0 * %s + 1", x);
	case OP_ne:
	case OP_lt:
	case OP_gt:
		return arena_text(a, "0 * %s", x);
	case OP_maximum:
	case OP_minimum:
		return x;
	default:
		return NULL;
	}
}

/* Integers and bools; NULL where the template says it. */
static const char *whole_map(struct arena *a, const struct node *n,
			     const char *const *x)
{
	enum dtype t = n->in[0]->type.dtype;
	const char *same = n->nin == 2 && !strcmp(x[0], x[1])
				   ? whole_same(a, n->op, x[0]) : NULL;

	if (same != NULL)
		return same;
	switch (n->op) {
	case OP_neg:
		return wrapping(a, t, '-', "0", x[0]);
	case OP_abs:
		if (t == DT_U8)
			return x[0];
		return arena_text(a, "%s < 0 ? %s : %s", x[0],
				  wrapping(a, t, '-', "0", x[0]), x[0]);
	case OP_relu:
		return arena_text(a, "%s > 0 ? %s : 0", x[0], x[0]);
	case OP_floor:
	case OP_ceil:
	case OP_round:
		return x[0];
	case OP_sign:
		return arena_text(a, t == DT_U8 ? "%s > 0" :
						  "(%s > 0) - (%s < 0)",
				  x[0], x[0]);
	case OP_isnan:
		return arena_text(a, "0 * %s", x[0]);
	case OP_add:
		return wrapping(a, t, '+', x[0], x[1]);
	case OP_sub:
		return wrapping(a, t, '-', x[0], x[1]);
	case OP_mul:
		return wrapping(a, t, '*', x[0], x[1]);
	case OP_pow:
		return arena_text(a, "(%s)i_pow(%s, %s, &bad)", dtype_c(t),
				  x[0], x[1]);
	case OP_divisor:
		return arena_text(a, "(%s)i_divisor(%s, &bad)", dtype_c(t),
				  x[0]);
	case OP_maximum:
	case OP_minimum:
		return arena_text(a, "%s %c %s ? %s : %s", x[0],
				  n->op == OP_maximum ? '>' : '<', x[1], x[0],
				  x[1]);
	default:
		return NULL;
	}
}

static const char *scalar_map(struct arena *a, const struct node *n,
			      const char *const *x)
{
	enum dtype from = n->in[0]->type.dtype;
	const char *s = NULL;

	if (n->op == OP_cast)
		return expr_cast(a, from, n->out[0]->type.dtype, x[0]);
	if (n->op == OP_stop_gradient || n->op == OP_expand)
		return x[0];
	if (n->op == OP_where)
		return arena_text(a, "%s ? %s : %s", x[0], x[1], x[2]);
	if (n->op == OP_isnan && dtype_is_float(from))
		return arena_text(a, "%s != %s", x[0], x[0]);
	if (!dtype_is_float(from))
		s = whole_map(a, n, x);
	if (s != NULL)
		return s;
	return substitute(a, op_info(n->op)->c,
			  from == DT_F64 ? "d_" : "s_", false, x);
}

const char *expr_map(struct arena *a, const struct node *n, bool vectors,
		     const char *const *operand)
{
	enum dtype t = n->out[0]->type.dtype;
	const char *x = vectors ? vector_map(a, n, operand)
				: scalar_map(a, n, operand);

	if (is_exact(n) || (n->op == OP_cast && !vectors))
		return x;
	return expr_round(a, t, vectors, x);
}

bool expr_fails(const struct node *n)
{
	return n->op == OP_divisor ||
	       (n->op == OP_pow && !dtype_is_float(n->in[0]->type.dtype));
}

/* ---- reductions ---- */

static const char *least(struct arena *a, enum dtype t, bool greatest)
{
	static const char *const low[] = {"0", "0", "INT8_MIN", "INT32_MIN",
					  "INT64_MIN"};
	static const char *const high[] = {"1", "UINT8_MAX", "INT8_MAX",
					   "INT32_MAX", "INT64_MAX"};

	if (dtype_is_float(t))
		return expr_literal(a, t, greatest ? INFINITY : -INFINITY, 0);
	return greatest ? high[t] : low[t];
}

const char *expr_identity(struct arena *a, const struct node *fold,
			  bool vectors)
{
	enum dtype t = fold->out[0]->type.dtype;
	const char *x = "0";

	switch (fold->op) {
	case OP_sum:
		if (dtype_is_float(t))
			x = shape_count(fold->in[0]->type.shape) == 0
				    ? expr_literal(a, t, 0.0, 0)
				    : expr_literal(a, t, -0.0, 0);
		break;
	case OP_prod:
		x = expr_literal(a, t, 1, 1);
		break;
	case OP_max:
	case OP_min:
		x = least(a, t, fold->op == OP_min);
		break;
	case OP_any:
	case OP_all:
		x = fold->op == OP_all ? "1" : "0";
		break;
	default:
		bug("%s is no reduction", op_info(fold->op)->name);
	}
	return vectors ? in_vector(a, t, x) : x;
}

/* X in the lanes that count, the identity in the others. */
static const char *masked(struct arena *a, const struct node *fold,
			  const char *x, const char *lanes)
{
	const char *which = fold->out[0]->type.dtype == DT_BOOL ? "m" : "v";

	if (lanes == NULL)
		return x;
	return arena_text(a, "%s_keep(%s, %s, %s)", which, x, lanes,
			  expr_identity(a, fold, false));
}

static const char *whole_accumulate(struct arena *a, const struct node *fold,
				    const char *name, const char *x)
{
	char op = fold->op == OP_sum ? '+' : '*';
	char than = fold->op == OP_max ? '>' : '<';

	if (fold->op == OP_max || fold->op == OP_min)
		return arena_text(a, "%s = %s %c %s ? %s : %s;", name, x, than,
				  name, x, name);
	return arena_text(a, "%s = %s;", name,
			  wrapping(a, fold->out[0]->type.dtype, op, name, x));
}

const char *expr_accumulate(struct arena *a, const struct node *fold,
			    bool vectors, const char *name, const char *x,
			    const char *lanes)
{
	enum dtype t = fold->out[0]->type.dtype;
	const char *f = op_info(fold->op)->name;

	if (vectors)
		x = masked(a, fold, x, lanes);
	if (fold->op == OP_any || fold->op == OP_all)
		return arena_text(a, "%s %c= %s;", name,
				  fold->op == OP_any ? '|' : '&', x);
	if (!dtype_is_float(t))
		return whole_accumulate(a, fold, name, x);
	if (fold->op == OP_sum || fold->op == OP_prod)
		return arena_text(a, "%s %c= %s;", name,
				  fold->op == OP_sum ? '+' : '*', x);
	return arena_text(a, "%s = %s_%s(%s, %s);", name,
			  vectors ? "v" : t == DT_F64 ? "d" : "s", f, name, x);
}

const char *expr_across(struct arena *a, const struct node *fold,
			const char *name)
{
	const char *which = fold->out[0]->type.dtype == DT_BOOL ? "m" : "v";

	return arena_text(a, "%s_across_%s(%s)", which, op_info(fold->op)->name,
			  name);
}
