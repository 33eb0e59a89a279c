/*
 * leaf.c: where values come from and go to: input, param, state, const, data
 * sets, distribute, output and update.
 */
#include <string.h>

#include "frontend/lower.h"

/* ---- input, param, state, const ---- */

static const struct rule_of *last_rule(struct low *l, const char *name,
				       int from)
{
	for (int i = l->rules.n - 1; i >= from; i--)
		if (name_match(l->rules.at[i].pattern, name))
			return &l->rules.at[i];
	return NULL;
}

static bool check_partial(struct low *l, Span at, enum op op, Dist d)
{
	if (!dist_has(d, SBP_P) || (op != OP_param && op != OP_state))
		return true;
	fail(l, at, "a %s cannot be P", op_info(op)->name);
	return false;
}

/* The distribution of a leaf; a zeroed one after an error. */
static Dist leaf_dist(struct low *l, const struct stmt *s, enum op op, Type t,
		      Name full)
{
	const struct rule_of *rule = NULL;
	const struct request *r = NULL;
	Dist d = {0};

	if (s->on) {
		r = eval_request(l, s->on);
		if (!r || !resolve(l, r, l->f.on, t, s->on->span, &d) ||
		    !check_partial(l, s->on->span, op, d))
			return (Dist){0};
		return d;
	}
	if (op == OP_param || op == OP_state)
		rule = last_rule(l, full, 0);
	if (!rule && l->o->automatic && (op == OP_param || op == OP_input))
		return dist_on(placed(l, l->f.on), sbp_any());
	if (!rule)
		return dist_on(placed(l, l->f.on), sbp_b());
	if (!resolve(l, rule->request, l->f.on, t, rule->at, &d) ||
	    !check_partial(l, rule->at, op, d))
		return (Dist){0};
	return d;
}

static struct value *leaf(struct low *l, const struct stmt *s, enum op op,
			  Type t, Dist d)
{
	struct node *n = node_make(l->g, op, place(l, s->span), 0, NULL, 1, &t);
	struct value *v = n->out[0];

	n->on = d.on;
	led_to(l, n);
	v->dist = d;
	v->span = place(l, s->name_at);
	return v;
}

static bool leaf_init(struct low *l, const struct stmt *s, enum op op, Type t,
		      Dist d, struct value *v)
{
	if (!s->e) {
		if (op == OP_param || op == OP_input)
			return true;
		fail(l, s->name_at, "%s '%s' needs '= ...'", op_info(op)->name,
		     s->name);
		return false;
	}
	v->def->init = eval_init(l, s->e, t, d);
	return v->def->init != NULL;
}

/* ---- data ---- */

static bool source_of_input(struct low *l, const struct stmt *s,
			    struct value *v)
{
	static const char *const fields[2][3] = {{"image", "label"}, {"data"}};
	const struct expr *e = s->e;
	struct names near = {0};
	Val d;

	if (!e)
		return true;
	if (e->kind != E_DOT) {
		hint(l, "data d = idx(...), then = d.image");
		fail(l, e->span, "expected a field of a data set");
		return false;
	}
	d = eval(l, e->kid[0]);
	if (d.kind != V_DATA) {
		if (d.kind != V_BAD)
			fail(l, e->span,
			     "expected a field of a data set, "
			     "found %s",
			     val_what(d));
		return false;
	}
	for (int i = 0; i < 3 && fields[d.data->kind][i]; i++) {
		v->def->field = name_of(fields[d.data->kind][i]);
		PUSH(l->a, near.l, v->def->field);
		if (v->def->field == e->name) {
			v->def->source = d.data;
			return true;
		}
	}
	hint_near(l, e->name, &near);
	fail(l, e->name_at, "data set '%s' has no field '%s'", d.data->name,
	     e->name);
	return false;
}

static void use_source(struct low *l, const struct node *n)
{
	for (int i = 0; i < l->g->sources.n; i++)
		if (l->g->sources.at[i] == n->source)
			return;
	((struct data_source *)n->source)->id = l->g->sources.n;
	PUSH(l->a, l->g->sources, (struct data_source *)n->source);
}

static bool data_file(struct low *l, const struct given *g,
		      struct data_source *d, int *n)
{
	int most = d->kind == DATA_IDX ? 2 : 1;

	if (*n == most || g->v.kind != V_TEXT) {
		fail(l, g->at,
		     *n == most ? "a file too many"
				: "expected the name of a file");
		return false;
	}
	d->file[(*n)++] = g->v.text;
	return true;
}

static bool data_option(struct low *l, const struct given *g)
{
	static const struct {
		const char *key;
		Val only;
	} known[] = {
		{"shuffle", {V_BOOL, {.i = false}}},
		{"drop_last", {V_BOOL, {.i = true}}},
		{"sampler", {V_TEXT, {.text = "global"}}},
	};
	struct names near = {0};
	int64_t seed;

	if (!strcmp(g->key, "seed"))
		return want_int(l, g->v, g->at, "argument 'seed'", &seed);
	for (int i = 0; i < 3; i++) {
		PUSH(l->a, near.l, name_of(known[i].key));
		if (strcmp(g->key, known[i].key))
			continue;
		if (val_equal(g->v, known[i].only))
			return true;
		fail(l, g->at, "not part of this version: %s = %s", g->key,
		     val_show(l, g->v));
		return false;
	}
	hint_near(l, g->key, &near);
	fail(l, g->key_at, "a data set has no argument '%s'", g->key);
	return false;
}

static bool eval_data(struct low *l, const struct expr *e,
		      struct data_source *d)
{
	static const char *const later[] = {"cifar10", "npz", "tokens"};
	struct args args;
	int n = 0;

	if (e->kind != E_CALL) {
		fail(l, e->span, "expected a data source: idx(...), npy(...)");
		return false;
	}
	for (int i = 0; i < 3; i++)
		if (!strcmp(e->name, later[i])) {
			fail(l, e->name_at,
			     "not part of this version: data "
			     "source %s",
			     e->name);
			return false;
		}
	if (strcmp(e->name, "idx") && strcmp(e->name, "npy")) {
		fail(l, e->name_at,
		     "unknown data source '%s', expected idx "
		     "or npy",
		     e->name);
		return false;
	}
	d->kind = e->name[0] == 'i' ? DATA_IDX : DATA_NPY;
	if (!eval_args(l, e->kid, e->nkid, &args))
		return false;
	for (int i = 0; i < args.n; i++)
		if (args.at[i].key ? !data_option(l, &args.at[i])
				   : !data_file(l, &args.at[i], d, &n))
			return false;
	if (n == (d->kind == DATA_IDX ? 2 : 1))
		return true;
	fail(l, e->span,
	     d->kind == DATA_IDX ? "idx takes a file of images and one of "
				   "labels"
				 : "npy takes one file");
	return false;
}

void lower_data(struct low *l, const struct stmt *s)
{
	struct data_source *d = NEW(l->a, struct data_source);
	Val v = {V_DATA, {.data = d}};

	d->name = s->name;
	d->span = s->name_at;
	if (!eval_data(l, s->e, d))
		v = val_bad();
	scope_bind(l, l->f.scope, s->name, v, s->name_at);
}

/* ---- declarations ---- */

/* Inputs, params and states are known by their full names outside. False
 * after an error. */
static bool name_leaf(struct low *l, const struct stmt *s, enum op op,
		      Name full)
{
	const struct value *old = map_get(&l->leaf_names, full);

	if (op == OP_constant)
		return true;
	if (old) {
		fail(l, s->name_at, "the name '%s' is taken", full);
		diag_note(old->span, "it was given here");
		return false;
	}
	return op == OP_input || take_name(l, full, s->name_at);
}

static Val declare(struct low *l, const struct stmt *s, enum op op)
{
	Name full = full_name(l, s->name);
	struct value *v;
	Type t;
	Dist d;
	bool named;

	if (!in_model(l, s->span) || !eval_type(l, s->type, &t))
		return val_bad();
	named = name_leaf(l, s, op, full);
	d = leaf_dist(l, s, op, t, full);
	if (!d.on)
		return val_bad();
	v = leaf(l, s, op, t, d);
	v->name = full;
	map_set(l->a, &l->values, full, v);
	if (named && op != OP_constant)
		map_set(l->a, &l->leaf_names, full, v);
	if (op == OP_input ? !source_of_input(l, s, v)
			   : !leaf_init(l, s, op, t, d, v))
		return val_bad();
	if (v->def->source)
		use_source(l, v->def);
	if (op == OP_param || op == OP_state)
		PUSH(l->a, l->leaves,
		     (struct leaf){v, l->rules.n, s->on != NULL});
	return val_tensor(v);
}

void lower_leaf(struct low *l, const struct stmt *s, enum op op)
{
	scope_bind(l, l->f.scope, s->name, declare(l, s, op), s->name_at);
}

void lower_distribute(struct low *l, const struct stmt *s)
{
	const char *pattern = eval_text(l, s->e);
	const struct request *r = eval_request(l, s->on);

	if (s->e->kind != E_TEXT)
		fail(l, s->e->span, "expected a pattern of names in quotes");
	else if (pattern && r)
		PUSH(l->a, l->rules,
		     (struct rule_of){pattern, r, s->on->span, s->e->span,
				      false});
}

/* ---- output, update ---- */

void lower_output(struct low *l, const struct stmt *s)
{
	Val v = scope_value(l, s->name, s->name_at);
	const struct request *r = NULL;
	const char *as = s->name;
	struct output o = {.span = place(l, s->span)};
	bool weak;

	if (!in_model(l, s->span) || v.kind == V_BAD ||
	    (s->as && !(as = eval_name(l, s->as))))
		return;
	if (s->on && !(r = eval_request(l, s->on)))
		return;
	if (val_is_number(v))
		v = tensor_cast(l, v,
				v.kind == V_FLOAT  ? DT_F32
				: v.kind == V_BOOL ? DT_BOOL
						   : DT_I64,
				s->name_at);
	if (r)
		v = tensor_on(l, v, r, s->span, s->on->span, NULL);
	o.name = full_name(l, as);
	o.v = tensor_of(l, v, s->name_at, &weak);
	if (!o.v)
		return;
	for (int i = 0; i < l->g->outputs.n; i++)
		if (l->g->outputs.at[i].name == o.name) {
			fail(l, s->name_at, "a second output '%s'", o.name);
			diag_note(l->g->outputs.at[i].span,
				  "the first one is here");
			return;
		}
	PUSH(l->a, l->g->outputs, o);
}

static struct value *find_state(struct low *l, const struct stmt *s)
{
	Val v = scope_value(l, s->name, s->name_at);

	if (v.kind == V_TENSOR && v.tensor->def->op == OP_state)
		return v.tensor;
	if (v.kind != V_BAD)
		fail(l, s->name_at,
		     "'%s' is no state; only states are "
		     "updated",
		     s->name);
	return NULL;
}

/* A number as a tensor of the state's type. */
static Val filled(struct low *l, Val v, Type t, Span at)
{
	struct node *n;

	if (v.kind == V_FLOAT && !dtype_is_float(t.dtype))
		return fail(l, at, "a decimal number for %s", type_text(t));
	n = begin(l, OP_fill, at, 0, NULL, NULL);
	if (!n)
		return val_bad();
	node_ints(l->g, n, "shape", t.shape.d, t.shape.rank);
	if (dtype_is_float(t.dtype))
		node_float(l->g, n, "value", val_double(v));
	else
		node_int(l->g, n, "int", v.i);
	node_dtype(l->g, n, "dtype", t.dtype);
	return finish(l, n);
}

void lower_update(struct low *l, const struct stmt *s)
{
	struct value *state = find_state(l, s);
	Val v = eval(l, s->e);
	bool weak;
	struct value *x;

	if (state && val_is_number(v))
		v = filled(l, v, state->type, s->e->span);
	if (!state || !(x = tensor_of(l, v, s->e->span, &weak)))
		return;
	if (!type_eq(state->type, x->type)) {
		if (shape_eq(state->type.shape, x->type.shape))
			hint(l, "cast(..., %s)", dtype_name(state->type.dtype));
		fail(l, s->e->span, "state '%s' is %s, but its update is %s",
		     state->name, type_text(state->type), type_text(x->type));
		return;
	}
	for (int i = 0; i < l->g->updates.n; i++)
		if (l->g->updates.at[i].state == state) {
			fail(l, s->span, "a second update of '%s'",
			     state->name);
			diag_note(l->g->updates.at[i].span,
				  "the first one is here");
			return;
		}
	PUSH(l->a, l->g->updates, (struct update){state, x, place(l, s->span)});
}
