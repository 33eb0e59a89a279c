/*
 * tensor.c: operators on tensors: where they run, literals beside them,
 * slices, and what the operators of the table need first.
 */
#include <string.h>

#include "frontend/lower.h"

void led_to(const struct low *l, struct node *n)
{
	n->trail = l->f.trail;
	n->call = l->f.call;
}

/* ---- numbers as tensors ---- */

static struct value *number(struct low *l, Val v, Span at)
{
	struct node *n = node_new(l->g, OP_fill, place(l, at), 0, NULL);

	node_ints(l->g, n, "shape", NULL, 0);
	if (v.kind == V_FLOAT)
		node_float(l->g, n, "value", v.f);
	else
		node_int(l->g, n, "int", v.i);
	node_dtype(l->g, n, "dtype",
		   v.kind == V_FLOAT  ? DT_F32
		   : v.kind == V_BOOL ? DT_BOOL
				      : DT_I64);
	led_to(l, n);
	return node_done(l->g, n) ? n->out[0] : NULL;
}

struct value *tensor_of(struct low *l, Val v, Span at, bool *weak)
{
	*weak = false;
	if (v.kind == V_TENSOR)
		return v.tensor;
	if (val_is_number(v)) {
		*weak = true;
		return number(l, v, at);
	}
	if (val_is_list(v))
		hint(l, "a list becomes a tensor as const c: f32[..] = [..]");
	if (v.kind != V_BAD)
		fail(l, at, "expected a tensor, found %s", val_what(v));
	l->hint = NULL;
	return NULL;
}

/* ---- where an operator runs ---- */

static bool same_place(const struct placement *a, const struct placement *b)
{
	return a == b || placement_eq(a, b);
}

/* The placement of the first operand that decides: tensors before scalars,
 * numbers never. */
static const struct placement *meeting(struct low *l, int nin,
				       struct value **in)
{
	const struct placement *on = NULL;

	for (int i = 0; i < nin; i++) {
		const struct placement *p = in[i]->def->on;

		if (p && in[i]->type.shape.rank)
			return p;
		if (p && !on)
			on = p;
	}
	if (!on && l->f.near)
		return l->f.near;
	return on ? on : placed(l, l->f.on);
}

static struct value *move_scalar(struct low *l, struct value *v,
				 const struct placement *on, Span at)
{
	struct node *n = node_new(l->g, OP_to, place(l, at), 1, &v);

	if (!node_done(l->g, n))
		return NULL;
	n->on = on;
	led_to(l, n);
	n->out[0]->dist = dist_on(on, sbp_b());
	return n->out[0];
}

/* A value as the program writes it, if it has a name or is one short line. */
static const char *operand_text(struct low *l, const struct value *v)
{
	Span at = v->def->span;
	const struct source *s = source_of(at);
	int n = (int)(at.hi - at.lo);
	const char *text = s ? s->text + (at.lo - s->base) : "";

	if (v->name)
		return v->name;
	if (!s || n > 40 || memchr(text, '\n', (size_t)n))
		return "x";
	return arena_text(l->a, v->def->nin < 2 ? "%.*s" : "(%.*s)", n, text);
}

static bool meet(struct low *l, const struct placement *on, int nin,
		 struct value **in, Span at)
{
	for (int i = 0; i < nin; i++) {
		const struct placement *p = in[i]->def->on;

		if (!p || same_place(p, on))
			continue;
		if (!in[i]->type.shape.rank) {
			in[i] = move_scalar(l, in[i], on, at);
			continue;
		}
		hint(l, "%s on %s", operand_text(l, in[i]), on->name);
		fail(l, at, "operands on different placements: '%s' and '%s'",
		     on->name, p->name);
		return false;
	}
	return true;
}

/* ---- making an operator ---- */

/* The trail and placement of all nodes that were made since the last time. */
static void settle(struct low *l, const struct placement *on)
{
	for (int i = l->with_place; i < l->g->nodes.n; i++) {
		struct node *n = l->g->nodes.at[i];

		if (n->on)
			continue;
		n->on = on;
		led_to(l, n);
	}
	l->with_place = l->g->nodes.n;
}

bool in_model(struct low *l, Span at)
{
	if (l->f.on)
		return true;
	fail(l, at, "tensors stand inside a model");
	return false;
}

struct node *begin(struct low *l, enum op op, Span at, int nin,
		   struct value **in, const bool *weak)
{
	const struct placement *on;
	struct node *n;
	int errors;

	if (!in_model(l, at))
		return NULL;
	for (int i = 0; i < nin; i++)
		if (!in[i])
			return NULL;
	if (l->g->nodes.n >= MAX_NODES) {
		if (!l->stop)
			fail(l, at, "the program has more than %d operators",
			     MAX_NODES);
		l->stop = true;
		return NULL;
	}
	on = meeting(l, nin, in);
	if (!meet(l, on, nin, in, at))
		return NULL;
	errors = diag_errors();
	op_promote(l->g, op, place(l, at), nin, in, weak);
	if (diag_errors() > errors) { /* a number that does not fit */
		diag_trail(l->f.trail);
		return NULL;
	}
	n = node_new(l->g, op, place(l, at), nin, in);
	n->on = on;
	led_to(l, n);
	return n;
}

Val finish(struct low *l, struct node *n)
{
	bool ok;

	if (!n)
		return val_bad();
	ok = node_done(l->g, n);
	settle(l, n->on);
	if (!ok)
		diag_trail(l->f.trail);
	return ok ? val_tensor(n->out[0]) : val_bad();
}

/* ---- the operators of expressions ---- */

static const enum op ops[] = {
	/* ORDER oper */
	[O_ADD] = OP_add, [O_SUB] = OP_sub, [O_MUL] = OP_mul,
	[O_DIV] = OP_div, [O_POW] = OP_pow, [O_MATMUL] = OP_matmul,
	[O_EQ] = OP_eq,   [O_NE] = OP_ne,   [O_LT] = OP_lt,
	[O_LE] = OP_le,   [O_GT] = OP_gt,   [O_GE] = OP_ge,
};

Val tensor_binary(struct low *l, enum oper op, Val a, Val b, Span at)
{
	bool weak[2];
	struct value *in[2];

	if (op == O_FLOORDIV || op == O_MOD || op == O_RANGE) {
		hint(l, "floor(a / b) divides tensors");
		if (op != O_FLOORDIV)
			l->hint = NULL;
		return fail(l, at, "'%s' is for compile-time values, found %s",
			    operator_text(op),
			    val_what(a.kind == V_TENSOR ? a : b));
	}
	if (op == O_MATMUL)
		return tensor_matmul(l, a, b, at);
	in[0] = tensor_of(l, a, at, &weak[0]);
	in[1] = tensor_of(l, b, at, &weak[1]);
	return finish(l, begin(l, ops[op], at, 2, in, weak));
}

Val tensor_unary(struct low *l, enum oper op, Val a, Span at)
{
	(void)op;
	return finish(l, begin(l, OP_neg, at, 1, &a.tensor, NULL));
}

Val tensor_reshape(struct low *l, struct value *v, Shape s, Span at)
{
	struct node *n;

	if (shape_eq(v->type.shape, s))
		return val_tensor(v);
	n = begin(l, OP_reshape, at, 1, &v, NULL);
	if (n)
		node_ints(l->g, n, "shape", s.d, s.rank);
	return finish(l, n);
}

Val tensor_cast(struct low *l, Val v, enum dtype t, Span at)
{
	bool weak;
	struct value *x = in_model(l, at) ? tensor_of(l, v, at, &weak) : NULL;
	struct node *n;

	if (!x)
		return val_bad();
	if (x->type.dtype == t) {
		settle(l, placed(l, l->f.on)); /* x may be a number */
		return val_tensor(x);
	}
	n = begin(l, OP_cast, at, 1, &x, NULL);
	if (n)
		node_dtype(l->g, n, "dtype", t);
	return finish(l, n);
}

/* ---- matmul: 1-D operands become rows and columns ---- */

static Shape without(Shape s, int axis)
{
	memmove(&s.d[axis], &s.d[axis + 1],
		sizeof *s.d * (size_t)(MAX_RANK - axis - 1));
	s.rank--;
	return s;
}

static struct value *as_matrix(struct low *l, struct value *v, bool left,
			       Span at)
{
	int64_t n = v->type.shape.d[0];
	Shape s = {2, {left ? 1 : n, left ? n : 1}};
	Val m;

	if (v->type.shape.rank != 1)
		return v;
	m = tensor_reshape(l, v, s, at);
	return m.kind == V_TENSOR ? m.tensor : NULL;
}

static bool inner_extents(struct low *l, struct value *a, struct value *b,
			  Span at)
{
	Shape s = a->type.shape, t = b->type.shape;
	int64_t k = s.rank ? s.d[s.rank - 1] : 0;
	int64_t m = t.rank ? t.d[t.rank > 1 ? t.rank - 2 : 0] : 0;

	if (!s.rank || !t.rank) {
		hint(l, "'*' multiplies by a scalar");
		fail(l, at, "matmul: an operand is a scalar: %s and %s",
		     type_text(a->type), type_text(b->type));
		return false;
	}
	if ((s.rank > 1 && t.rank > 1) || k == m)
		return true;
	fail(l, at, "matmul: inner extents differ: %lld and %lld", (long long)k,
	     (long long)m);
	diag_note(a->span, "left operand is %s", type_text(a->type));
	diag_note(b->span, "right operand is %s", type_text(b->type));
	return false;
}

Val tensor_matmul(struct low *l, Val va, Val vb, Span at)
{
	bool weak[2], row, column;
	struct value *in[2];
	Val out;

	in[0] = tensor_of(l, va, at, &weak[0]);
	in[1] = tensor_of(l, vb, at, &weak[1]);
	if (!in[0] || !in[1] || !inner_extents(l, in[0], in[1], at))
		return val_bad();
	row = in[0]->type.shape.rank == 1;
	column = in[1]->type.shape.rank == 1;
	in[0] = as_matrix(l, in[0], true, at);
	in[1] = as_matrix(l, in[1], false, at);
	out = finish(l, begin(l, OP_matmul, at, 2, in, NULL));
	if (out.kind == V_TENSOR && row)
		out = tensor_reshape(l, out.tensor,
				     without(out.tensor->type.shape,
					     out.tensor->type.shape.rank - 2),
				     at);
	if (out.kind == V_TENSOR && column)
		out = tensor_reshape(l, out.tensor,
				     without(out.tensor->type.shape,
					     out.tensor->type.shape.rank - 1),
				     at);
	return out;
}

/* ---- x on D ---- */

Val tensor_on(struct low *l, Val v, const struct request *r, Span at,
	      Span dist_at, const char *grad)
{
	bool weak;
	struct value *x = in_model(l, at) ? tensor_of(l, v, at, &weak) : NULL;
	struct node *n;
	Dist d;

	if (!x)
		return val_bad();
	settle(l, placed(l, r->on ? r->on : l->f.on));
	if (!resolve(l, r, l->f.on, x->type, dist_at, &d))
		return val_bad();
	n = node_new(l->g, OP_to, place(l, at), 1, &x);
	n->on = d.on;
	led_to(l, n);
	if (grad)
		node_text(l->g, n, "grad", grad);
	v = finish(l, n);
	if (v.kind == V_TENSOR)
		v.tensor->dist = d;
	return v;
}

/* ---- x[1:3, ::2, -1, ...] ---- */

struct cutting {
	struct value *v;
	int axis;      /* of v that is next */
	Shape dropped; /* the shape without integer subscripts */
};

static bool cut(struct low *l, struct cutting *c, int64_t lo, int64_t hi,
		int64_t step, Span at)
{
	int64_t n = c->v->type.shape.d[c->axis];
	struct node *node;
	Val out;

	if (lo == 0 && hi == n && step == 1)
		return true;
	node = begin(l, OP_slice, at, 1, &c->v, NULL);
	if (!node)
		return false;
	node_int(l->g, node, "axis", c->axis);
	node_int(l->g, node, "start", lo);
	node_int(l->g, node, "stop", hi > lo ? hi : lo);
	node_int(l->g, node, "step", step);
	out = finish(l, node);
	c->v = out.kind == V_TENSOR ? out.tensor : c->v;
	return out.kind == V_TENSOR;
}

static int64_t clip(int64_t i, int64_t n)
{
	if (i < 0)
		i += n;
	return i < 0 ? 0 : i > n ? n : i;
}

static bool cut_slice(struct low *l, struct cutting *c, const struct expr *s,
		      Span at)
{
	int64_t n = c->v->type.shape.d[c->axis];
	int64_t part[3] = {0, n, 1};

	for (int i = 0; i < 3; i++)
		if (s->kid[i] &&
		    !want_int(l, eval(l, s->kid[i]), s->kid[i]->span,
			      "the bound of a slice", &part[i]))
			return false;
	if (part[2] < 1) {
		fail(l, s->kid[2]->span,
		     "the step of a slice is at least 1, "
		     "found %lld",
		     (long long)part[2]);
		return false;
	}
	if (!cut(l, c, clip(part[0], n), clip(part[1], n), part[2], at))
		return false;
	c->dropped.d[c->dropped.rank++] = c->v->type.shape.d[c->axis++];
	return true;
}

static bool cut_index(struct low *l, struct cutting *c, const struct expr *e,
		      Span at)
{
	int64_t n = c->v->type.shape.d[c->axis], i;
	Val v = eval(l, e);

	if (v.kind == V_TENSOR) {
		hint(l, "gather(x, axis, index) and embedding(ids, weight = "
			"x) take tensors of indices");
		fail(l, e->span, "a subscript is known at compile time");
		return false;
	}
	if (!want_int(l, v, e->span, "a subscript", &i))
		return false;
	if (i < -n || i >= n) {
		fail(l, e->span, "index %lld is outside axis %d of %s",
		     (long long)i, c->axis, type_text(c->v->type));
		return false;
	}
	i = i < 0 ? i + n : i;
	if (!cut(l, c, i, i + 1, 1, at))
		return false;
	c->axis++;
	return true;
}

static void keep_axes(struct cutting *c, int upto)
{
	while (c->axis < upto)
		c->dropped.d[c->dropped.rank++] = c->v->type.shape.d[c->axis++];
}

static bool count_subscripts(struct low *l, const struct expr *e,
			     const struct value *v)
{
	int dots = 0, rank = v->type.shape.rank;

	for (int i = 1; i < e->nkid; i++)
		dots += e->kid[i]->kind == E_ELLIPSIS;
	if (dots > 1)
		fail(l, e->span, "'...' stands once");
	else if (e->nkid - 1 - dots > rank)
		fail(l, e->span, "%d subscripts for %s", e->nkid - 1 - dots,
		     type_text(v->type));
	return dots <= 1 && e->nkid - 1 - dots <= rank;
}

Val tensor_index(struct low *l, struct value *v, const struct expr *e)
{
	struct cutting c = {.v = v};
	int rank = v->type.shape.rank;
	bool ok = true;

	if (!count_subscripts(l, e, v))
		return val_bad();
	for (int i = 1; i < e->nkid && ok; i++) {
		const struct expr *s = e->kid[i];

		if (s->kind == E_ELLIPSIS)
			keep_axes(&c, rank - (e->nkid - 1 - i));
		else if (s->kind == E_SLICE)
			ok = cut_slice(l, &c, s, e->span);
		else
			ok = cut_index(l, &c, s, e->span);
	}
	if (!ok)
		return val_bad();
	keep_axes(&c, rank);
	return tensor_reshape(l, c.v, c.dropped, e->span);
}
