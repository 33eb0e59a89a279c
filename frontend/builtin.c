/*
 * builtin.c: the functions of compile-time values, and those that only the
 * prelude sees (their names begin with '_').
 */
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

static Val one_number(struct low *l, const struct expr *e,
		      const struct args *args, double *x)
{
	if (args->n != 1 || args->at[0].key)
		return fail(l, e->span, "%s takes one number", e->name);
	if (!want_double(l, args->at[0].v, args->at[0].at,
			 text_brief("the argument of %s", e->name), x))
		return val_bad();
	return val_bool(true);
}

/* ---- numbers ---- */

static Val call_sqrt(struct low *l, const struct expr *e,
		     const struct args *args)
{
	double x;
	Val ok = one_number(l, e, args, &x);

	if (ok.kind == V_BAD)
		return ok;
	if (x < 0)
		return fail(l, e->span, "sqrt of a negative number");
	return val_float(sqrt(x));
}

static Val call_log(struct low *l, const struct expr *e,
		    const struct args *args)
{
	double x;
	Val ok = one_number(l, e, args, &x);

	if (ok.kind == V_BAD)
		return ok;
	if (x <= 0)
		return fail(l, e->span,
			    "log of a number that is not "
			    "positive");
	return val_float(log(x));
}

static Val to_int(struct low *l, const struct expr *e, double x)
{
	if (x >= -9.2e18 && x <= 9.2e18)
		return val_int((int64_t)x);
	return fail(l, e->span, "the integer does not fit 64 bits");
}

/* An integer is itself; another number is brought to one by TO. */
static Val rounded(struct low *l, const struct expr *e,
		   const struct args *args, double (*to)(double))
{
	double x;
	Val ok;

	if (args->n == 1 && args->at[0].v.kind == V_INT)
		return args->at[0].v;
	ok = one_number(l, e, args, &x);
	return ok.kind == V_BAD ? ok : to_int(l, e, to(x));
}

static Val call_floor(struct low *l, const struct expr *e,
		      const struct args *args)
{
	return rounded(l, e, args, floor);
}

static Val call_ceil(struct low *l, const struct expr *e,
		     const struct args *args)
{
	return rounded(l, e, args, ceil);
}

static Val extreme(struct low *l, const struct expr *e, const struct args *args,
		   enum oper op)
{
	Val list = args->n == 1 ? args->at[0].v : val_bad(), best, c;
	bool whole = val_is_list(list);
	int64_t n = whole ? val_count(list) : args->n;

	if (!n)
		return fail(l, e->span, "%s of nothing", e->name);
	best = whole ? val_nth(list, 0) : args->at[0].v;
	if (!val_is_number(best))
		return fail(l, e->span, "%s is of numbers, found %s", e->name,
			    val_what(best));
	for (int64_t i = 1; i < n; i++) {
		Val v = whole ? val_nth(list, i) : args->at[i].v;

		c = val_binary(l, op, v, best, e->span);
		if (c.kind == V_BAD)
			return c;
		if (c.i)
			best = v;
	}
	return best;
}

static Val call_min(struct low *l, const struct expr *e,
		    const struct args *args)
{
	return extreme(l, e, args, O_LT);
}

static Val call_max(struct low *l, const struct expr *e,
		    const struct args *args)
{
	return extreme(l, e, args, O_GT);
}

/* ---- lists ---- */

static Val call_len(struct low *l, const struct expr *e,
		    const struct args *args)
{
	Val v = args->n == 1 ? args->at[0].v : val_bad();

	if (val_is_list(v))
		return val_int(val_count(v));
	if (v.kind == V_TEXT)
		return val_int((int64_t)strlen(v.text));
	return fail(l, e->span, "len takes one list or text");
}

static Val call_range(struct low *l, const struct expr *e,
		      const struct args *args)
{
	struct range *r = NEW(l->a, struct range);
	int64_t part[3] = {0, 0, 1}, span;

	if (args->n < 1 || args->n > 3)
		return fail(l, e->span,
			    "range takes (stop), (start, stop) or "
			    "(start, stop, step)");
	for (int i = 0; i < args->n; i++)
		if (!want_int(l, args->at[i].v, args->at[i].at,
			      "an argument of range",
			      &part[args->n == 1 ? 1 : i]))
			return val_bad();
	if (!part[2])
		return fail(l, args->at[2].at, "the step of range is 0");
	if (part[2] == INT64_MIN ||
	    __builtin_sub_overflow(part[1], part[0], &span) ||
	    span == INT64_MIN)
		return fail(l, e->span, "the range does not fit 64 bits");
	r->lo = part[0];
	r->step = part[2];
	if ((span > 0) == (part[2] > 0) && span)
		r->n = (span > 0 ? span - 1 : -1 - span) /
			       (part[2] > 0 ? part[2] : -part[2]) +
		       1;
	return (Val){V_RANGE, {.range = r}};
}

/* ---- for the prelude ---- */

static Val call_is_float(struct low *l, const struct expr *e,
			 const struct args *args)
{
	(void)l, (void)e;
	return val_bool(args->at[0].v.kind == V_DTYPE &&
			dtype_is_float((enum dtype)args->at[0].v.i));
}

static Val call_is_list(struct low *l, const struct expr *e,
			const struct args *args)
{
	(void)l, (void)e;
	return val_bool(val_is_list(args->at[0].v));
}

static Val call_is_tensor(struct low *l, const struct expr *e,
			  const struct args *args)
{
	(void)l, (void)e;
	return val_bool(args->at[0].v.kind == V_TENSOR);
}

/* Axis I of a tensor of RANK axes, counted from 0. */
static bool one_axis(struct low *l, int64_t i, int rank, Span at, int64_t *out)
{
	*out = i < 0 ? i + rank : i;
	if (*out >= 0 && *out < rank)
		return true;
	fail(l, at, "axis %lld of a tensor of %d %s", (long long)i, rank,
	     rank == 1 ? "axis" : "axes");
	return false;
}

/* _axes(x, axis): a list of axes from 0; none are all. */
static Val call_axes(struct low *l, const struct expr *e,
		     const struct args *args)
{
	Val x = args->at[0].v, axis = args->at[1].v;
	int64_t all[MAX_RANK] = {0};
	const int64_t *ints;
	int n, rank;

	if (x.kind != V_TENSOR)
		return fail(l, e->span, "expected a tensor, found %s",
			    val_what(x));
	rank = x.tensor->type.shape.rank;
	for (n = 0; n < rank; n++)
		all[n] = n;
	if (axis.kind == V_NONE)
		return val_ints(l, all, n);
	if (!want_ints(l, axis, e->span, "argument 'axis'", &ints, &n))
		return val_bad();
	if (n > rank)
		return fail(l, e->span, "%d axes of a tensor of %d", n, rank);
	for (int i = 0; i < n; i++) {
		if (!one_axis(l, ints[i], rank, e->span, &all[i]))
			return val_bad();
		for (int k = 0; k < i; k++)
			if (all[k] == all[i])
				return fail(l, e->span, "axis %lld twice",
					    (long long)ints[i]);
	}
	return val_ints(l, all, n);
}

/* _axis(i, rank): one axis from 0. */
static Val call_axis(struct low *l, const struct expr *e,
		     const struct args *args)
{
	int64_t i, out;

	if (!want_int(l, args->at[0].v, e->span, "an axis", &i) ||
	    !one_axis(l, i, (int)args->at[1].v.i, e->span, &out))
		return val_bad();
	return val_int(out);
}

static const struct builtin {
	const char *name;
	Val (*call)(struct low *l, const struct expr *e,
		    const struct args *args);
	int nargs; /* of those for the prelude */
} builtins[] = {
	{"sqrt", call_sqrt, 0},
	{"log", call_log, 0},
	{"floor", call_floor, 0},
	{"ceil", call_ceil, 0},
	{"min", call_min, 0},
	{"max", call_max, 0},
	{"len", call_len, 0},
	{"range", call_range, 0},
	{"_is_float", call_is_float, 1},
	{"_is_list", call_is_list, 1},
	{"_is_tensor", call_is_tensor, 1},
	{"_axes", call_axes, 2},
	{"_axis", call_axis, 2},
};

static const struct builtin *find(Name name)
{
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (!strcmp(name, builtins[i].name))
			return &builtins[i];
	return NULL;
}

bool is_builtin(const struct low *l, Name name, const struct args *args)
{
	const struct builtin *b = find(name);

	if (!b)
		return false;
	if (name[0] == '_')
		return l->f.unit->prelude;
	for (int i = 0; i < args->n; i++)
		if (val_has_tensor(args->at[i].v))
			return !strcmp(name, "len");
	return true;
}

Val call_builtin(struct low *l, const struct expr *e, const struct args *args)
{
	const struct builtin *b = find(e->name);

	for (int i = 0; i < args->n; i++)
		if (args->at[i].key)
			return fail(l, args->at[i].key_at,
				    "%s takes no keywords for compile-time "
				    "values",
				    e->name);
	if (b->nargs && args->n != b->nargs)
		return fail(l, e->span, "%s takes %d arguments", e->name,
			    b->nargs);
	return b->call(l, e, args);
}

void names_of_builtins(struct low *l, struct names *n)
{
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (builtins[i].name[0] != '_')
			PUSH(l->a, n->l, name_of(builtins[i].name));
}
