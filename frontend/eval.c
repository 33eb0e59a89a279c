/*
 * eval.c: expressions to values: names, operators, indexing, texts, types.
 */
#include <string.h>

#include "frontend/lower.h"

/* ---- texts ---- */

const char *eval_text(struct low *l, const struct expr *e)
{
	struct text t = {0};
	const char *s = NULL;
	bool ok = true;

	if (e->kind != E_TEXT)
		return NULL;
	text_add(&t, "%s", "");
	for (int i = 0; i < e->nkid && ok; i++) {
		Val v;

		if (e->kid[i]->kind == E_CHARS) {
			text_add(&t, "%s", e->kid[i]->name);
			continue;
		}
		v = eval(l, e->kid[i]);
		ok = v.kind != V_BAD;
		if (v.kind == V_TENSOR) {
			fail(l, e->kid[i]->span,
			     "a text holds compile-time "
			     "values, this is %s",
			     val_what(v));
			ok = false;
		}
		val_print(&t, v);
	}
	if (ok && t.n > MAX_TEXT) {
		fail(l, e->span, "the text is longer than %d bytes", MAX_TEXT);
		ok = false;
	}
	if (ok)
		s = arena_text(l->a, "%s", t.at);
	text_free(&t);
	return s;
}

const char *eval_name(struct low *l, const struct expr *e)
{
	const char *s = eval_text(l, e);

	for (const char *c = s; c && *c; c++) {
		if ((unsigned char)*c >= ' ')
			continue;
		fail(l, e->span, "a name of byte 0x%02x, which does not print",
		     (unsigned)*c);
		return NULL;
	}
	return s;
}

/* ---- operators ---- */

/* Python's: the operand that decides. */
static Val eval_logic(struct low *l, const struct expr *e)
{
	Val a = eval(l, e->kid[0]);
	bool truth;

	if (!val_truth(l, a, e->kid[0]->span, &truth))
		return val_bad();
	if (truth == (e->op == O_OR))
		return a;
	a = eval(l, e->kid[1]);
	return val_truth(l, a, e->kid[1]->span, &truth) ? a : val_bad();
}

static Val eval_binary(struct low *l, const struct expr *e)
{
	Val a, b;

	if (e->op == O_AND || e->op == O_OR)
		return eval_logic(l, e);
	a = eval(l, e->kid[0]);
	b = eval(l, e->kid[1]);
	if (a.kind == V_BAD || b.kind == V_BAD)
		return val_bad();
	if (a.kind == V_NONE || b.kind == V_NONE)
		return val_binary(l, e->op, a, b, e->span);
	if (a.kind == V_TENSOR || b.kind == V_TENSOR)
		return tensor_binary(l, e->op, a, b, e->span);
	return val_binary(l, e->op, a, b, e->span);
}

/* The number 2^63, which only '-' brings into 64 bits. */
static bool is_limit(const struct expr *e)
{
	return e->kind == E_INT && e->i == INT64_MIN;
}

static Val eval_unary(struct low *l, const struct expr *e)
{
	Val a;

	if (e->op == O_NEG && is_limit(e->kid[0]))
		return val_int(INT64_MIN);
	a = eval(l, e->kid[0]);
	if (a.kind == V_TENSOR && e->op == O_NEG)
		return tensor_unary(l, e->op, a, e->span);
	return val_unary(l, e->op, a, e->span);
}

/* ---- x.name ---- */

static Val no_field(struct low *l, const struct expr *e, Val x,
		    const char *const *fields)
{
	struct names near = {0};

	for (int i = 0; fields[i]; i++)
		PUSH(l->a, near.l, name_of(fields[i]));
	hint_near(l, e->name, &near);
	if (!l->hint && near.l.n == 3)
		hint(l, "it has %s, %s and %s", fields[0], fields[1],
		     fields[2]);
	return fail(l, e->name_at, "%s has no '%s'", val_what(x), e->name);
}

static Val tensor_field(struct low *l, const struct expr *e, Val x)
{
	static const char *const fields[] = {"shape", "rank", "dtype", NULL};
	Type t = x.tensor->type;

	if (!strcmp(e->name, "shape"))
		return val_ints(l, t.shape.d, t.shape.rank);
	if (!strcmp(e->name, "rank"))
		return val_int(t.shape.rank);
	if (!strcmp(e->name, "dtype"))
		return (Val){V_DTYPE, {.i = t.dtype}};
	return no_field(l, e, x, fields);
}

static Val placement_field(struct low *l, const struct expr *e, Val x)
{
	static const char *const fields[] = {"shape", "rank", "size", NULL};
	const struct placement *p = x.placement;
	int64_t d[MAX_MESH];

	for (int i = 0; i < p->naxes; i++)
		d[i] = p->extent[i];
	if (!strcmp(e->name, "shape"))
		return val_ints(l, d, p->naxes);
	if (!strcmp(e->name, "rank"))
		return val_int(p->naxes);
	if (!strcmp(e->name, "size"))
		return val_int(p->nranks);
	return no_field(l, e, x, fields);
}

static Val eval_dot(struct low *l, const struct expr *e)
{
	Val x = eval(l, e->kid[0]);

	if (x.kind == V_TENSOR)
		return tensor_field(l, e, x);
	if (x.kind == V_PLACEMENT)
		return placement_field(l, e, x);
	if (x.kind == V_BAD)
		return x;
	if (x.kind == V_DATA) {
		hint(l, "input x: f32[..] = %s.%s", x.data->name, e->name);
		return fail(l, e->span,
			    "a field of a data set stands only "
			    "after the '=' of an input");
	}
	return fail(l, e->name_at, "%s has no '%s'", val_what(x), e->name);
}

/* ---- lists ---- */

static Val eval_list(struct low *l, const struct expr *e)
{
	struct vals *list = NEW(l->a, struct vals);

	if (!count_steps(l, e->nkid, e->span))
		return val_bad();
	list->at = NEW_N(l->a, Val, e->nkid);
	for (int i = 0; i < e->nkid; i++) {
		Val v = eval(l, e->kid[i]);

		if (v.kind == V_BAD)
			return v;
		list->at[list->n++] = v;
	}
	return (Val){V_LIST, {.list = list}};
}

static Val eval_group(struct low *l, const struct expr *e)
{
	if (e->nkid == 1 && e->kid[0]->kind != E_KEY)
		return eval(l, e->kid[0]);
	hint(l, "a list is written [a, b]; a distribution stands after 'on' "
		"or is all of a let");
	return fail(l, e->span, "a group in parentheses holds one expression");
}

static bool bound(struct low *l, const struct expr *e, int64_t n,
		  int64_t initial, int64_t *out)
{
	int64_t i = initial;

	if (e && !want_int(l, eval(l, e), e->span, "the bound of a slice", &i))
		return false;
	if (e && i < 0)
		i += n;
	*out = i < 0 ? 0 : i > n ? n : i;
	return true;
}

static Val slice_list(struct low *l, Val x, const struct expr *s)
{
	struct vals *list = NEW(l->a, struct vals);
	int64_t n = val_count(x), lo, hi, step = 1;

	if (!bound(l, s->kid[0], n, 0, &lo) || !bound(l, s->kid[1], n, n, &hi))
		return val_bad();
	if (s->kid[2] && !want_int(l, eval(l, s->kid[2]), s->kid[2]->span,
				   "the step of a slice", &step))
		return val_bad();
	if (step < 1)
		return fail(l, s->kid[2]->span,
			    "the step of a slice is at "
			    "least 1, found %lld",
			    (long long)step);
	if (hi - lo > MAX_LIST || !count_steps(l, hi - lo, s->span))
		return val_bad();
	list->at = NEW_N(l->a, Val, hi > lo ? hi - lo : 0);
	for (int64_t i = lo; i < hi; i += step < hi - i ? step : hi - i)
		list->at[list->n++] = val_nth(x, i);
	return (Val){V_LIST, {.list = list}};
}

static Val index_list(struct low *l, Val x, const struct expr *e)
{
	const struct expr *sub = e->kid[1];
	int64_t n = val_count(x), i;

	if (e->nkid != 2 || sub->kind == E_ELLIPSIS)
		return fail(l, e->span, "a list has one axis");
	if (sub->kind == E_SLICE)
		return slice_list(l, x, sub);
	if (!want_int(l, eval(l, sub), sub->span, "an index", &i))
		return val_bad();
	if (i < -n || i >= n)
		return fail(l, sub->span, "index %lld of a list of %lld",
			    (long long)i, (long long)n);
	return val_nth(x, i < 0 ? i + n : i);
}

static Val eval_index(struct low *l, const struct expr *e)
{
	Val x = eval(l, e->kid[0]);

	if (x.kind == V_TENSOR)
		return tensor_index(l, x.tensor, e);
	if (val_is_list(x))
		return index_list(l, x, e);
	if (x.kind == V_BAD)
		return x;
	return fail(l, e->span, "%s has no elements", val_what(x));
}

/* ---- x on D ---- */

static const char *source_of_span(struct low *l, Span at)
{
	const struct source *s = source_of(at);

	if (!s)
		return "";
	return arena_text(l->a, "%.*s", (int)(at.hi - at.lo),
			  s->text + (at.lo - s->base));
}

static Val eval_on(struct low *l, const struct expr *e)
{
	Val x = eval(l, e->kid[0]);
	const struct request *r = eval_request(l, e->kid[1]);
	const struct request *grad = NULL;
	const char *text = NULL;
	Dist d;

	if (e->kid[2])
		grad = eval_request(l, e->kid[2]);
	if (x.kind == V_BAD || !r || (e->kid[2] && !grad))
		return val_bad();
	if (grad && x.kind == V_TENSOR) {
		if (!resolve(l, grad, r->on ? r->on : l->f.on, x.tensor->type,
			     e->kid[2]->span, &d))
			return val_bad();
		text = source_of_span(l, e->kid[2]->span);
	}
	return tensor_on(l, x, r, e->span, e->kid[1]->span, text);
}

/* ---- all of it ---- */

static Val eval_method(struct low *l, const struct expr *e)
{
	hint(l, "write %s(x, ...)", e->name);
	return fail(l, e->name_at,
		    "functions are called by name, values "
		    "have no methods");
}

static Val eval_kind(struct low *l, const struct expr *e)
{
	const char *s;

	switch (e->kind) {
	case E_INT:
		return is_limit(e) ? val_overflow(l, e->span) : val_int(e->i);
	case E_FLOAT:
		return val_float(e->f);
	case E_BOOL:
		return val_bool(e->i);
	case E_TEXT:
		s = eval_text(l, e);
		return s ? val_text(s) : val_bad();
	case E_NAME:
		return scope_value(l, e->name, e->span);
	case E_UNARY:
		return eval_unary(l, e);
	case E_BINARY:
		return eval_binary(l, e);
	case E_CALL:
		return eval_call(l, e);
	case E_METHOD:
		return eval_method(l, e);
	case E_DOT:
		return eval_dot(l, e);
	case E_INDEX:
		return eval_index(l, e);
	case E_LIST:
		return eval_list(l, e);
	case E_GROUP:
		return eval_group(l, e);
	case E_ON:
		return eval_on(l, e);
	default:
		return val_bad();
	}
}

Val eval(struct low *l, const struct expr *e)
{
	Val v;

	if (!deeper(l, e->span))
		return val_bad();
	v = eval_kind(l, e);
	l->depth--;
	return v;
}

/* ---- types ---- */

static bool eval_dtype(struct low *l, const struct expr *e, enum dtype *t)
{
	struct var *var = scope_find(l->f.scope, e->name);
	struct names near = {0};

	if (!var && dtype_read(e->name, t))
		return true;
	if (var)
		return want_dtype(l, var->v, e->span,
				  "what stands before '[' in a type", t);
	for (int i = 0; i < DT_N; i++)
		PUSH(l->a, near.l, name_of(dtype_name((enum dtype)i)));
	hint_near(l, e->name, &near);
	fail(l, e->span, "unknown dtype '%s'", e->name);
	return false;
}

bool eval_type(struct low *l, const struct expr *e, Type *t)
{
	int64_t count;

	*t = (Type){0};
	if (e->kind != E_INDEX || !eval_dtype(l, e->kid[0], &t->dtype))
		return false;
	if (e->nkid - 1 > MAX_RANK) {
		fail(l, e->span, "a tensor has at most %d axes", MAX_RANK);
		return false;
	}
	for (int i = 1; i < e->nkid; i++) {
		int64_t d;

		if (!want_int(l, eval(l, e->kid[i]), e->kid[i]->span,
			      "an extent", &d))
			return false;
		if (d < 0) {
			fail(l, e->kid[i]->span, "an extent of %lld",
			     (long long)d);
			return false;
		}
		t->shape.d[t->shape.rank++] = d;
	}
	if (shape_count_fits(t->shape, &count) && count < INT64_MAX / 16)
		return true;
	fail(l, e->span, "the tensor has too many elements");
	return false;
}
