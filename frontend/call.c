/*
 * call.c: calls: which function is meant, its arguments, the inlining of
 * defs with their naming scopes, and the operators of the table.
 */
#include <string.h>

#include "frontend/lower.h"

/* ---- arguments ---- */

bool eval_args(struct low *l, struct expr *const *kid, int n, struct args *out)
{
	bool ok = true;

	out->at = NEW_N(l->a, struct given, n);
	out->n = n;
	for (int i = 0; i < n; i++) {
		const struct expr *e = kid[i];
		struct given *g = &out->at[i];

		if (e->kind == E_KEY) {
			g->key = e->name;
			g->key_at = e->name_at;
			e = e->kid[0];
		}
		g->at = e->span;
		g->v = eval(l, e);
		ok &= g->v.kind != V_BAD;
	}
	return ok;
}

static struct param *find_param(struct param *p, int n, Name name)
{
	for (int i = 0; i < n; i++)
		if (p[i].name == name)
			return &p[i];
	return NULL;
}

/* PyTorch spells the axis argument in three more ways. */
static struct param *keyword(struct param *p, int n, Name name)
{
	static const char *const same[][2] = {
		{"dim", "axis"},
		{"dims", "axis"},
		{"keepdims", "keepdim"},
	};
	struct param *found = find_param(p, n, name);

	for (size_t i = 0; !found && i < sizeof same / sizeof *same; i++)
		if (!strcmp(name, same[i][0]))
			found = find_param(p, n, name_of(same[i][1]));
	return found;
}

static void unknown_keyword(struct low *l, const struct expr *e,
			    const struct given *g, const struct param *p, int n)
{
	struct names near = {0};
	struct text t = {0};

	text_add(&t, "%s has", e->name);
	for (int i = 0; i < n; i++) {
		PUSH(l->a, near.l, p[i].name);
		text_add(&t, "%s %s", i ? "," : "", p[i].name);
	}
	hint_near(l, g->key, &near);
	if (!l->hint)
		hint(l, n ? "%s" : "%s no argument", t.at);
	text_free(&t);
	fail(l, g->key_at, "%s has no argument '%s'", e->name, g->key);
}

static bool bind_one(struct low *l, const struct expr *e, const struct given *g,
		     struct param *p, int n, int *next)
{
	struct param *to;

	if (!g->key && *next < 0) {
		fail(l, g->at, "a positional argument after a keyword");
		return false;
	}
	if (!g->key && *next >= n) {
		fail(l, g->at, "%s takes %d argument%s, found more", e->name, n,
		     n == 1 ? "" : "s");
		return false;
	}
	to = g->key ? keyword(p, n, g->key) : &p[*next];
	if (!to) {
		unknown_keyword(l, e, g, p, n);
		return false;
	}
	if (to->given) {
		fail(l, g->key_at, "%s has argument '%s' twice", e->name,
		     to->name);
		return false;
	}
	to->given = true;
	to->v = g->v;
	to->at = g->at;
	*next = g->key ? -1 : *next + 1;
	return true;
}

bool bind_args(struct low *l, const struct expr *e, const struct args *args,
	       struct param *p, int n)
{
	int next = 0;

	for (int i = 0; i < args->n; i++)
		if (!bind_one(l, e, &args->at[i], p, n, &next))
			return false;
	for (int i = 0; i < n; i++)
		if (!p[i].given && !p[i].optional) {
			fail(l, e->span, "%s lacks its argument '%s'", e->name,
			     p[i].name);
			return false;
		}
	return true;
}

/* ---- which function ---- */

static struct def *user_def(const struct unit *u, Name name)
{
	struct def *d = map_get(&u->defs, name);

	return d ? d : map_get(&u->imported, name);
}

static struct def *prelude_def(const struct low *l, Name name)
{
	if (l->f.unit->prelude || name[0] == '_' || !l->prelude)
		return NULL;
	return map_get(&l->prelude->defs, name);
}

static struct def *find_def(const struct low *l, const struct unit *u,
			    Name name)
{
	struct def *d = user_def(u, name);

	if (d || u->prelude || !l->prelude)
		return d;
	return map_get(&l->prelude->defs, name);
}

static bool find_op(const struct low *l, Name name, enum op *op)
{
	return op_find(name, op) &&
	       (!op_info(*op)->internal || l->f.unit->prelude);
}

/* Functions of the language that this version does not have. */
static bool refused(Name name)
{
	static const char *const names[] = {
		"conv2d",          "max_pool2d",      "avg_pool2d",
		"global_avg_pool", "batch_norm",      "cross_entropy",
		"mse_loss",        "bce_with_logits", "nll_loss",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static Val unknown_function(struct low *l, const struct expr *e)
{
	struct names near = {0};
	const Name *ops;
	int n = op_names(&ops);

	if (refused(e->name))
		return fail(l, e->name_at, "not part of this version: %s",
			    e->name);
	names_of_map(l, &near, &l->f.unit->defs);
	names_of_map(l, &near, &l->f.unit->imported);
	for (int i = 0; i < n; i++)
		PUSH(l->a, near.l, ops[i]);
	if (l->prelude)
		names_of_map(l, &near, &l->prelude->defs);
	names_of_builtins(l, &near);
	hint_near(l, e->name, &near);
	if (!l->hint && scope_find(l->f.scope, e->name))
		hint(l, "'%s' is a value; only functions are called", e->name);
	return fail(l, e->name_at, "unknown function '%s'", e->name);
}

/* ---- does a def open a naming scope? ---- */

static void scan_exprs(struct low *l, struct def *d, struct expr *const *e,
		       int n)
{
	for (int i = 0; i < n; i++) {
		if (!e[i])
			continue;
		if (e[i]->kind == E_CALL)
			PUSH(l->a, d->calls, e[i]->name);
		scan_exprs(l, d, e[i]->kid, e[i]->nkid);
	}
}

static void scan_stmts(struct low *l, struct def *d, const struct stmts *body)
{
	for (int i = 0; body && i < body->l.n; i++) {
		struct stmt *s = body->l.at[i];

		if (s->kind == S_PARAM || s->kind == S_STATE)
			d->declares = true;
		scan_exprs(l, d, &s->e, 1);
		if (s->list)
			scan_exprs(l, d, s->list->l.at, s->list->l.n);
		scan_stmts(l, d, s->body);
		scan_stmts(l, d, s->other);
	}
}

/* Whether D or a def that it reaches by calls declares params or states. */
static bool opens(struct low *l, struct def *d)
{
	LIST(struct def *) reached = {0};
	struct map seen = {0};

	if (d->opens != OPENS_UNKNOWN)
		return d->opens == OPENS_YES;
	d->opens = OPENS_NO;
	PUSH(l->a, reached, d);
	for (int i = 0; i < reached.n; i++) {
		struct def *r = reached.at[i];

		if (!r->scanned)
			scan_stmts(l, r, r->s->body);
		r->scanned = true;
		if (r->declares || r->opens == OPENS_YES) {
			d->opens = OPENS_YES;
			return true;
		}
		for (int k = 0; k < r->calls.n; k++) {
			struct def *c = find_def(l, r->unit, r->calls.at[k]);

			if (!c || map_get(&seen, (Name)(void *)c))
				continue;
			map_set(l->a, &seen, (Name)(void *)c, c);
			PUSH(l->a, reached, c);
		}
	}
	return false;
}

/* ---- defs ---- */

static int def_params(struct low *l, const struct def *d, struct param **out)
{
	int n = d->s->list ? d->s->list->l.n : 0;
	struct param *p = NEW_N(l->a, struct param, n);

	for (int i = 0; i < n; i++) {
		const struct expr *e = d->s->list->l.at[i];

		p[i].name = e->name;
		p[i].optional = e->kind == E_KEY;
		p[i].at = e->span;
	}
	*out = p;
	return n;
}

static bool bind_scope(struct low *l, const struct def *d,
		       const struct param *p, int n)
{
	for (int i = 0; i < n; i++) {
		Val v = p[i].v;

		if (!p[i].given)
			v = eval(l, d->s->list->l.at[i]->kid[0]);
		if (v.kind == V_BAD)
			return false;
		scope_bind(l, l->f.scope, p[i].name, v, p[i].at);
	}
	return true;
}

/* What the prelude makes beside a tensor (a mask) lies where that lies. */
static void stay_near(struct low *l, const struct param *p, int n)
{
	for (int i = 0; i < n; i++)
		if (p[i].v.kind == V_TENSOR &&
		    p[i].v.tensor->type.shape.rank) {
			l->f.near = p[i].v.tensor->def->on;
			return;
		}
}

/* The naming scope of a call of D. After an error it goes on by a name that is
 * free, so that what is inside is not taken too. */
static void open_naming(struct low *l, struct def *d, const struct expr *e,
			const char *as, struct naming *out)
{
	*out = l->f.naming;
	out->open = false;
	if (!opens(l, d))
		return;
	out->open = !d->unit->prelude;
	if (as && !*as)
		return;
	if (as && take_name(l, full_name(l, as), e->as->span))
		out->prefix = full_name(l, as);
	else
		out->prefix =
			take_free_name(l, as ? as : d->name, place(l, e->span));
}

static void enter(struct low *l, struct def *d, const struct expr *e,
		  struct naming naming)
{
	struct trail *t;

	if (d->unit->prelude) {
		if (!l->f.user.lo)
			l->f.call = d->name;
		l->f.user = place(l, e->span);
	} else {
		t = NEW(l->a, struct trail);
		*t = (struct trail){e->span, d->name, l->f.trail};
		l->f.trail = t;
	}
	l->f.unit = d->unit;
	l->f.scope = scope_new(l, d->unit->scope);
	l->f.naming = naming;
	l->f.def = true;
	l->f.returned = false;
	l->f.result = val_bad();
}

static Val run_def(struct low *l, struct def *d, const struct expr *e,
		   const struct param *p, int n)
{
	int errors = diag_errors();

	if (bind_scope(l, d, p, n)) {
		lower_stmts(l, d->s->body);
		if (!l->f.returned && diag_errors() == errors && !l->stop)
			fail(l, d->s->name_at,
			     "def '%s' ends without a 'return'", d->name);
	}
	(void)e;
	if (diag_errors() > errors && !d->unit->prelude)
		d->failed = true;
	return l->f.result;
}

static Val call_def(struct low *l, struct def *d, const struct expr *e,
		    const struct args *args, const char *as)
{
	struct frame saved = l->f;
	struct naming naming;
	struct param *p;
	int n = def_params(l, d, &p);
	Val v;

	if (d->failed || !bind_args(l, e, args, p, n))
		return val_bad();
	if (l->calls == MAX_CALLS) {
		hint(l, "a recursion ends by a compile-time if");
		return fail(l, e->span, "calls are nested deeper than %d",
			    MAX_CALLS);
	}
	if (!count_steps(l, 1, e->span))
		return val_bad();
	open_naming(l, d, e, as, &naming);
	l->calls++;
	enter(l, d, e, naming);
	if (d->unit->prelude)
		stay_near(l, p, n);
	v = run_def(l, d, e, p, n);
	l->f = saved;
	l->calls--;
	return v;
}

/* ---- operators of the table ---- */

static bool set_attr(struct low *l, struct node *n, const struct op_param *op,
		     const struct param *p)
{
	const char *what = text_brief("argument '%s'", op->name);
	const int64_t *ints;
	int64_t i;
	double f;
	enum dtype t;
	int count;

	switch (op->kind) {
	case ATTR_INT:
		if (!want_int(l, p->v, p->at, what, &i))
			return false;
		node_int(l->g, n, op->name, i);
		return true;
	case ATTR_FLOAT:
		if (!want_double(l, p->v, p->at, what, &f))
			return false;
		node_float(l->g, n, op->name, f);
		return true;
	case ATTR_INTS:
		if (!want_ints(l, p->v, p->at, what, &ints, &count))
			return false;
		node_ints(l->g, n, op->name, ints, count);
		return true;
	case ATTR_DTYPE:
		if (!want_dtype(l, p->v, p->at, what, &t))
			return false;
		node_dtype(l->g, n, op->name, t);
		return true;
	case ATTR_BOOL:
		if (p->v.kind == V_BOOL) {
			node_bool(l->g, n, op->name, p->v.i);
			return true;
		}
		fail(l, p->at, "%s is true or false, found %s", what,
		     val_what(p->v));
		return false;
	default:
		return false;
	}
}

/* Tensors of an operator's call, in order. */
struct inputs {
	LIST(struct value *) v;
	LIST(bool) weak;
};

static bool add_input(struct low *l, struct inputs *in, Val v, Span at)
{
	bool weak;
	struct value *x = tensor_of(l, v, at, &weak);

	if (!x)
		return false;
	PUSH(l->a, in->v, x);
	PUSH(l->a, in->weak, weak);
	return true;
}

static bool add_inputs(struct low *l, struct inputs *in, const struct param *p)
{
	if (!val_is_list(p->v)) {
		if (p->v.kind != V_BAD)
			fail(l, p->at,
			     "argument '%s' is a list of tensors, "
			     "found %s",
			     p->name, val_what(p->v));
		return false;
	}
	if (!val_count(p->v)) {
		fail(l, p->at, "argument '%s' is empty", p->name);
		return false;
	}
	for (int64_t i = 0; i < val_count(p->v); i++)
		if (!add_input(l, in, val_nth(p->v, i), p->at))
			return false;
	return true;
}

static bool is_random(enum op op)
{
	return op == OP_uniform || op == OP_normal || op == OP_bernoulli;
}

static Val make_op(struct low *l, enum op op, const struct expr *e,
		   const struct param *p)
{
	const struct op_info *info = op_info(op);
	struct inputs in = {0};
	struct node *n;

	for (int i = 0; i < info->nparam; i++) {
		if (!info->param[i].tensor)
			continue;
		if (info->param[i].many ? !add_inputs(l, &in, &p[i])
					: !add_input(l, &in, p[i].v, p[i].at))
			return val_bad();
	}
	n = begin(l, op, e->span, in.v.n, in.v.at, in.weak.at);
	if (!n)
		return val_bad();
	for (int i = 0; i < info->nparam; i++)
		if (!info->param[i].tensor && p[i].given &&
		    p[i].v.kind != V_NONE &&
		    !set_attr(l, n, &info->param[i], &p[i]))
			return val_bad();
	if (is_random(op) && !node_attr(n, "key"))
		node_int(l->g, n, "key", ++l->keys);
	return finish(l, n);
}

static bool are_axes(Val v)
{
	return v.kind == V_INT || v.kind == V_NONE || v.kind == V_BAD ||
	       val_is_list(v);
}

static Val call_op(struct low *l, enum op op, const struct expr *e,
		   const struct args *args)
{
	const struct op_info *info = op_info(op);
	struct param *p = NEW_N(l->a, struct param, info->nparam);
	enum dtype t;

	for (int i = 0; i < info->nparam; i++) {
		p[i].name = info->param[i].name;
		p[i].optional = info->param[i].optional;
	}
	if (!bind_args(l, e, args, p, info->nparam))
		return val_bad();
	if ((op == OP_max || op == OP_min) && p[1].given && !are_axes(p[1].v)) {
		hint(l, "%simum(a, b) compares elements", info->name);
		return fail(l, p[1].at,
			    "argument 'axis' is an integer or a list of them, "
			    "found %s",
			    val_what(p[1].v));
	}
	if (op == OP_matmul)
		return tensor_matmul(l, p[0].v, p[1].v, e->span);
	if (op != OP_cast)
		return make_op(l, op, e, p);
	if (!want_dtype(l, p[1].v, p[1].at, "argument 'dtype'", &t))
		return val_bad();
	return tensor_cast(l, p[0].v, t, e->span);
}

/* ---- all of it ---- */

static Val name_result(struct low *l, const struct expr *e, const char *as,
		       Val v)
{
	if (v.kind != V_TENSOR || !*as)
		return v;
	if (take_name(l, full_name(l, as), e->as->span))
		name_value(l, v, name_of(as), e->as->span);
	return v;
}

static Val dispatch(struct low *l, const struct expr *e, struct def *d,
		    const struct args *args, const char *as)
{
	enum op op;
	Val v;

	if (!d && is_builtin(l, e->name, args))
		return call_builtin(l, e, args);
	if (!d)
		d = prelude_def(l, e->name);
	if (d) {
		v = call_def(l, d, e, args, as);
		return as && !opens(l, d) ? name_result(l, e, as, v) : v;
	}
	if (!find_op(l, e->name, &op))
		return unknown_function(l, e);
	v = call_op(l, op, e, args);
	return as ? name_result(l, e, as, v) : v;
}

bool is_function(struct low *l, Name name)
{
	struct args none = {0};
	enum op op;

	return user_def(l->f.unit, name) || prelude_def(l, name) ||
	       find_op(l, name, &op) || is_builtin(l, name, &none);
}

Val eval_call(struct low *l, const struct expr *e)
{
	struct def *d = user_def(l->f.unit, e->name);
	struct args args;
	const char *as = NULL;

	if (l->stop)
		return val_bad();
	if (!is_function(l, e->name))
		return unknown_function(l, e);
	if (e->as && !(as = eval_name(l, e->as)))
		return val_bad();
	if (!eval_args(l, e->kid, e->nkid, &args))
		return val_bad();
	return dispatch(l, e, d, &args, as);
}
