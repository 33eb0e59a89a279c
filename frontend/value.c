/*
 * value.c: compile-time values: arithmetic as Python's, but exact division
 * of integers and no silent overflow.
 */
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

Val val_ints(struct low *l, const int64_t *i, int n)
{
	struct vals *list = NEW(l->a, struct vals);

	list->n = n;
	list->at = NEW_N(l->a, Val, n);
	for (int k = 0; k < n; k++)
		list->at[k] = val_int(i[k]);
	return (Val){V_LIST, {.list = list}};
}

bool val_is_list(Val v)
{
	return v.kind == V_LIST || v.kind == V_RANGE;
}

bool val_is_number(Val v)
{
	return v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
}

int64_t val_count(Val v)
{
	return v.kind == V_RANGE ? v.range->n : v.list->n;
}

Val val_nth(Val v, int64_t i)
{
	if (v.kind == V_RANGE)
		return val_int(v.range->lo + i * v.range->step);
	return v.list->at[i];
}

double val_double(Val v)
{
	return v.kind == V_FLOAT ? v.f : (double)v.i;
}

bool val_has_tensor(Val v)
{
	if (v.kind == V_LIST)
		for (int64_t i = 0; i < v.list->n; i++)
			if (val_has_tensor(v.list->at[i]))
				return true;
	return v.kind == V_TENSOR;
}

static bool lists_equal(Val a, Val b)
{
	if (val_count(a) != val_count(b))
		return false;
	for (int64_t i = 0; i < val_count(a); i++)
		if (!val_equal(val_nth(a, i), val_nth(b, i)))
			return false;
	return true;
}

bool val_equal(Val a, Val b)
{
	if (val_is_number(a) && val_is_number(b)) {
		if (a.kind == V_FLOAT || b.kind == V_FLOAT)
			return val_double(a) == val_double(b);
		return a.i == b.i;
	}
	if (val_is_list(a) && val_is_list(b))
		return lists_equal(a, b);
	if (a.kind != b.kind)
		return false;
	switch (a.kind) {
	case V_NONE:
		return true;
	case V_TEXT:
		return !strcmp(a.text, b.text);
	case V_DTYPE:
		return a.i == b.i;
	default:
		return a.tensor == b.tensor;
	}
}

bool val_truth(struct low *l, Val v, Span at, bool *out)
{
	switch (v.kind) {
	case V_BOOL:
	case V_INT:
		*out = v.i != 0;
		return true;
	case V_FLOAT:
		*out = v.f != 0;
		return true;
	case V_TENSOR:
		hint(l, "for tensors there are where(c, a, b), logical_and, "
			"logical_or and logical_not");
		fail(l, at,
		     "a condition is known at compile time, but this "
		     "is a tensor, %s",
		     val_what(v));
		return false;
	default:
		if (v.kind != V_BAD)
			fail(l, at, "expected true or false, found %s",
			     val_what(v));
		return false;
	}
}

const char *val_what(Val v)
{
	static const char *const kinds[] = {
		"nothing",          "none",           "an integer",
		"a decimal number", "true or false",  "a text",
		"a list",           "a range",        "a dtype",
		"a placement",      "a distribution", "a data set",
		"a tensor",
	};

	if (v.kind == V_TENSOR)
		return type_text(v.tensor->type);
	return kinds[v.kind];
}

static void print_items(struct text *t, Val v)
{
	int64_t n = val_count(v);

	text_add(t, "[");
	for (int64_t i = 0; i < n && t->n < MAX_TEXT; i++) {
		if (i)
			text_add(t, ", ");
		val_print(t, val_nth(v, i));
	}
	text_add(t, "]");
}

void val_print(struct text *t, Val v)
{
	switch (v.kind) {
	case V_INT:
		text_add(t, "%lld", (long long)v.i);
		break;
	case V_FLOAT:
		text_add_double(t, v.f);
		break;
	case V_BOOL:
		text_add(t, v.i ? "true" : "false");
		break;
	case V_TEXT:
		text_add(t, "%s", v.text);
		break;
	case V_LIST:
	case V_RANGE:
		print_items(t, v);
		break;
	case V_DTYPE:
		text_add(t, "%s", dtype_name((enum dtype)v.i));
		break;
	case V_PLACEMENT:
		text_add(t, "%s", v.placement->name);
		break;
	default:
		text_add(t, "%s", val_what(v));
	}
}

const char *val_show(struct low *l, Val v)
{
	struct text t = {0};
	const char *s;

	val_print(&t, v);
	s = arena_text(l->a, "%s", t.at);
	text_free(&t);
	return s;
}

/* ---- arithmetic ---- */

Val val_overflow(struct low *l, Span at)
{
	return fail(l, at, "the integer does not fit 64 bits");
}

static int64_t floor_div(int64_t a, int64_t b)
{
	int64_t q = a / b;

	return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}

static Val int_power(struct low *l, int64_t a, int64_t n, Span at)
{
	int64_t r = 1;

	if (n < 0)
		return val_float(pow((double)a, (double)n));
	for (; n; n >>= 1) {
		if ((n & 1) && __builtin_mul_overflow(r, a, &r))
			return val_overflow(l, at);
		if (n > 1 && __builtin_mul_overflow(a, a, &a))
			return val_overflow(l, at);
	}
	return val_int(r);
}

static Val int_divide(struct low *l, enum oper op, int64_t a, int64_t b,
		      Span at)
{
	if (!b)
		return fail(l, at, "division by zero");
	if (a == INT64_MIN && b == -1)
		return op == O_MOD ? val_int(0) : val_overflow(l, at);
	if (op == O_FLOORDIV)
		return val_int(floor_div(a, b));
	if (op == O_MOD)
		return val_int(a - floor_div(a, b) * b);
	if (!(a % b))
		return val_int(a / b);
	hint(l, "'//' rounds down; '%lld.0 / ...' gives a decimal number",
	     (long long)a);
	return fail(l, at, "%lld does not divide by %lld without a remainder",
		    (long long)a, (long long)b);
}

static Val int_binary(struct low *l, enum oper op, int64_t a, int64_t b,
		      Span at)
{
	int64_t r;
	bool over;

	switch (op) {
	case O_ADD:
		over = __builtin_add_overflow(a, b, &r);
		break;
	case O_SUB:
		over = __builtin_sub_overflow(a, b, &r);
		break;
	case O_MUL:
		over = __builtin_mul_overflow(a, b, &r);
		break;
	case O_POW:
		return int_power(l, a, b, at);
	default:
		return int_divide(l, op, a, b, at);
	}
	return over ? val_overflow(l, at) : val_int(r);
}

static Val float_binary(struct low *l, enum oper op, double a, double b,
			Span at)
{
	double r;

	switch (op) {
	case O_ADD:
		return val_float(a + b);
	case O_SUB:
		return val_float(a - b);
	case O_MUL:
		return val_float(a * b);
	case O_POW:
		return val_float(pow(a, b));
	default:
		break;
	}
	if (b == 0)
		return fail(l, at, "division by zero");
	if (op == O_DIV)
		return val_float(a / b);
	if (op == O_FLOORDIV)
		return val_float(floor(a / b));
	r = fmod(a, b);
	return val_float(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}

/* ---- comparison ---- */

static Val ordered(enum oper op, bool less, bool greater, bool equal)
{
	switch (op) {
	case O_LT:
		return val_bool(less);
	case O_LE:
		return val_bool(less || equal);
	case O_GT:
		return val_bool(greater);
	default:
		return val_bool(greater || equal);
	}
}

static Val compare(struct low *l, enum oper op, Val a, Val b, Span at)
{
	int c;

	if (op == O_EQ || op == O_NE)
		return val_bool(val_equal(a, b) == (op == O_EQ));
	if (a.kind == V_TEXT && b.kind == V_TEXT) {
		c = strcmp(a.text, b.text);
		return ordered(op, c<0, c> 0, !c);
	}
	if (!val_is_number(a) || !val_is_number(b))
		return fail(l, at, "'%s' does not order %s and %s",
			    operator_text(op), val_what(a), val_what(b));
	if (a.kind == V_FLOAT || b.kind == V_FLOAT)
		return ordered(op, val_double(a) < val_double(b),
			       val_double(a) > val_double(b),
			       val_double(a) == val_double(b));
	return ordered(op, a.i<b.i, a.i> b.i, a.i == b.i);
}

/* ---- lists and texts ---- */

static Val join_lists(struct low *l, Val a, Val b, int64_t times, Span at)
{
	int64_t na = val_count(a), nb = val_count(b);
	struct vals *list = NEW(l->a, struct vals);

	if (na + nb > MAX_LIST || (nb && times > (MAX_LIST - na) / nb))
		return fail(l, at, "the list has more than %d elements",
			    MAX_LIST);
	if (times < 0)
		times = 0;
	if (!count_steps(l, na + nb * times, at))
		return val_bad();
	list->at = NEW_N(l->a, Val, na + nb * times);
	for (int64_t i = 0; i < na; i++)
		list->at[list->n++] = val_nth(a, i);
	for (int64_t k = 0; k < times; k++)
		for (int64_t i = 0; i < nb; i++)
			list->at[list->n++] = val_nth(b, i);
	return (Val){V_LIST, {.list = list}};
}

static Val join_texts(struct low *l, const char *a, const char *b, Span at)
{
	if (strlen(a) + strlen(b) > MAX_TEXT)
		return fail(l, at, "the text is longer than %d bytes",
			    MAX_TEXT);
	if (!count_steps(l, (int64_t)(strlen(a) + strlen(b)) / 16, at))
		return val_bad();
	return val_text(arena_text(l->a, "%s%s", a, b));
}

static Val make_range(struct low *l, Val a, Val b, Span at)
{
	struct range *r = NEW(l->a, struct range);
	int64_t hi, n;

	if (!want_int(l, a, at, "the start of a range", &r->lo) ||
	    !want_int(l, b, at, "the end of a range", &hi))
		return val_bad();
	if (__builtin_sub_overflow(hi, r->lo, &n))
		return val_overflow(l, at);
	r->step = 1;
	r->n = n > 0 ? n : 0;
	return (Val){V_RANGE, {.range = r}};
}

static bool is_comparison(enum oper op)
{
	return op >= O_EQ && op <= O_GE;
}

Val val_binary(struct low *l, enum oper op, Val a, Val b, Span at)
{
	static const struct vals none;
	Val empty = {V_LIST, {.list = &none}};

	if (a.kind == V_BAD || b.kind == V_BAD)
		return val_bad();
	if (op == O_RANGE)
		return make_range(l, a, b, at);
	if (is_comparison(op))
		return compare(l, op, a, b, at);
	if (op == O_ADD && a.kind == V_TEXT && b.kind == V_TEXT)
		return join_texts(l, a.text, b.text, at);
	if (op == O_ADD && val_is_list(a) && val_is_list(b))
		return join_lists(l, a, b, 1, at);
	if (op == O_MUL && val_is_list(a) && b.kind == V_INT)
		return join_lists(l, empty, a, b.i, at);
	if (op == O_MUL && val_is_list(b) && a.kind == V_INT)
		return join_lists(l, empty, b, a.i, at);
	if (!val_is_number(a) || !val_is_number(b) || op == O_MATMUL)
		return fail(l, at, "'%s' has no meaning for %s and %s",
			    operator_text(op), val_what(a), val_what(b));
	if (a.kind == V_FLOAT || b.kind == V_FLOAT)
		return float_binary(l, op, val_double(a), val_double(b), at);
	return int_binary(l, op, a.i, b.i, at);
}

Val val_unary(struct low *l, enum oper op, Val a, Span at)
{
	bool b;

	if (a.kind == V_BAD)
		return a;
	if (op == O_NOT)
		return val_truth(l, a, at, &b) ? val_bool(!b) : val_bad();
	if (a.kind == V_FLOAT)
		return val_float(-a.f);
	if (!val_is_number(a))
		return fail(l, at, "'-' has no meaning for %s", val_what(a));
	return a.i == INT64_MIN ? val_overflow(l, at) : val_int(-a.i);
}

bool int_fits(enum dtype t, int64_t i)
{
	switch (t) {
	case DT_BOOL:
		return i == 0 || i == 1;
	case DT_U8:
		return i >= 0 && i <= UINT8_MAX;
	case DT_I8:
		return i >= INT8_MIN && i <= INT8_MAX;
	case DT_I32:
		return i >= INT32_MIN && i <= INT32_MAX;
	default:
		return true;
	}
}

/* ---- wanted kinds ---- */

bool want_int(struct low *l, Val v, Span at, const char *what, int64_t *i)
{
	if (v.kind == V_INT) {
		*i = v.i;
		return true;
	}
	if (v.kind == V_FLOAT && v.f == floor(v.f))
		hint(l, "floor(x) makes an integer of a decimal number");
	if (v.kind != V_BAD)
		fail(l, at, "%s is an integer, found %s", what, val_what(v));
	l->hint = NULL;
	return false;
}

bool want_ints(struct low *l, Val v, Span at, const char *what,
	       const int64_t **out, int *n)
{
	int64_t *to;

	if (!val_is_list(v)) {
		to = NEW(l->a, int64_t);
		*n = 1;
		*out = to;
		return want_int(l, v, at, what, to);
	}
	if (val_count(v) > MAX_LIST) {
		fail(l, at, "%s: the list is too long", what);
		return false;
	}
	*n = (int)val_count(v);
	to = NEW_N(l->a, int64_t, *n);
	*out = to;
	for (int k = 0; k < *n; k++)
		if (!want_int(l, val_nth(v, k), at, what, &to[k]))
			return false;
	return true;
}

bool want_double(struct low *l, Val v, Span at, const char *what, double *f)
{
	if (v.kind == V_FLOAT || v.kind == V_INT) {
		*f = val_double(v);
		return true;
	}
	if (v.kind != V_BAD)
		fail(l, at, "%s is a number known at compile time, found %s",
		     what, val_what(v));
	return false;
}

bool want_dtype(struct low *l, Val v, Span at, const char *what, enum dtype *t)
{
	if (v.kind == V_DTYPE) {
		*t = (enum dtype)v.i;
		return true;
	}
	if (v.kind != V_BAD)
		fail(l, at, "%s is a dtype, found %s", what, val_what(v));
	return false;
}
