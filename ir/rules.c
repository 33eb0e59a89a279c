/*
 * rules.c: what no index expression can say: the functions behind '@name' in
 * ops.def. Here leaves, operators that create, and the columns sum and max;
 * rules_move.c and rules_index.c have the rest.
 */
#include <math.h>
#include <string.h>

#include "ir/rules.h"

const int64_t *rule_ints(const struct node *n, const char *key, int *count)
{
	const struct attr *a = node_attr(n, key);

	*count = a->n;
	return a->ints;
}

int rule_rank(const struct node *n, int input)
{
	return n->in[input]->type.shape.rank;
}

void rule_pair(struct arena *a, struct letters *l, int i, int j)
{
	int8_t *axis = letter_add(a, l);

	axis[0] = (int8_t)i;
	axis[l->ntensors - 1] = (int8_t)j;
}

void rule_free(struct arena *a, struct letters *l, int j)
{
	letter_add(a, l)[l->ntensors - 1] = (int8_t)j;
}

bool rule_shape(const struct node *n, Shape *s)
{
	int count, i;
	const int64_t *d = rule_ints(n, "shape", &count);

	*s = (Shape){0};
	if (count > MAX_RANK)
		return node_fail(n, "a shape of %d axes, more than %d", count,
				 MAX_RANK);
	s->rank = count;
	for (i = 0; i < count; i++)
		s->d[i] = d[i];
	for (i = 0; i < count; i++)
		if (d[i] < -1)
			return node_fail(n, "extent %lld in %s",
					 (long long)d[i], shape_text(*s));
	return true;
}

/* ---- @leaf, @any: types are given ---- */

static bool given(struct graph *g, struct node *n)
{
	(void)g;
	if (!n->nout)
		bug("node %d: the types of %s are not inferred", n->id,
		    op_info(n->op)->name);
	return true;
}

static void leaf_letters(struct arena *a, const struct node *n,
			 struct letters *l)
{
	int i;

	for (i = 0; n->nout && i < n->out[0]->type.shape.rank; i++)
		rule_free(a, l, i);
}

/* What a program may be fed, or have written down, may be partial. */
static void leaf_more(struct arena *a, const struct node *n, struct sigs *s)
{
	static const enum red reds[] = {RED_SUM, RED_MAX, RED_MIN};
	struct sig sig;
	int i;

	if (n->op == OP_param || n->op == OP_state ||
	    n->out[0]->type.dtype == DT_BOOL)
		return;
	for (i = 0; i < 3; i++) {
		sig = sig_b(a, n);
		sig.out[0] = sbp_p(reds[i]);
		sig_add(a, s, sig);
	}
}

/* ---- @create: elements are functions of their global index ---- */

/* Both attributes of a fill are there, and agree. */
static bool complete_fill(struct graph *g, struct node *n, enum dtype t)
{
	const struct attr *value = node_attr(n, "value");
	const struct attr *exact = node_attr(n, "int");
	double d = value ? value->f : 0;

	if (!value && !exact)
		return node_fail(n, "argument 'value' is missing");
	if (exact && dtype_wrap(t, exact->i) != exact->i) {
		diag_error(n->span, "%lld does not fit %s",
			   (long long)exact->i, dtype_name(t));
		return false;
	}
	if (exact) {
		node_float(g, n, "value", (double)exact->i);
		return true;
	}
	if (dtype_is_float(t))
		return true;
	if (!(d >= -0x1p63 && d < 0x1p63))
		return node_fail(n, "%g is no %s", d, dtype_name(t));
	node_int(g, n, "int", t == DT_BOOL ? d != 0 : (int64_t)d);
	return true;
}

static bool create_infer(struct graph *g, struct node *n)
{
	Shape s;
	int i;

	if (!rule_shape(n, &s))
		return false;
	for (i = 0; i < s.rank; i++)
		if (s.d[i] < 0)
			return node_fail(n, "extent %lld in %s",
					 (long long)s.d[i], shape_text(s));
	if (n->op == OP_fill && !complete_fill(g, n, op_result(n)))
		return false;
	node_type(g, n, op_result(n), s);
	return true;
}

/* ---- the tables ---- */

static const struct rule rules[] = {
	{"@leaf", given, leaf_letters, leaf_more, NULL},
	{"@any", given, NULL, NULL, NULL},
	{"@create", create_infer, leaf_letters, NULL, NULL},
	{0},
};

const struct rule *rule_find(const char *at_name)
{
	static const struct rule *const tables[] = {rules, rules_move,
						    rules_index};
	const struct rule *r;
	int i;

	for (i = 0; i < 3; i++)
		for (r = tables[i]; r->name; r++)
			if (!strcmp(r->name, at_name))
				return r;
	bug("ops.def: there is no rule '%s'", at_name);
}

/* ---- '@name' in the columns sum and max ---- */

/* The number that all elements of V are known to be, a factor that keeps or
 * turns the order: 0 times the identity, an infinity, would be nan. */
static bool known_factor(const struct value *v, double *d)
{
	const struct node *n = v->def;

	while (n && (n->op == OP_to || n->op == OP_move || n->op == OP_expand ||
		     n->op == OP_reshape))
		n = n->in[0]->def;
	if (!n || n->op != OP_fill)
		return false;
	*d = attr_float(n, "value");
	/* Neither 0 nor infinite in the narrowest float either. */
	return fabs(*d) >= 0x1p-24 && fabs(*d) <= 65504;
}

static const char *mul_sets(const struct node *n)
{
	double d;

	if (known_factor(n->in[1], &d))
		return d > 0 ? "{0} float" : "{0}swap float";
	if (known_factor(n->in[0], &d))
		return d > 0 ? "{1} float" : "{1}swap float";
	return "";
}

/* The parts of a factor are not the number that the factor is. */
static const char *mul_why_not(const Dist *in)
{
	int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < in[i].on->naxes; k++)
			if (in[i].t[k].kind == SBP_P &&
			    in[i].t[k].red != RED_SUM &&
			    dist_has(in[1 - i], SBP_P))
				return text_brief("%s times a factor that is "
						  "partial on another mesh "
						  "axis",
						  sbp_text(in[i].t[k]));
	return NULL;
}

/* Padding with other than 0 would be counted once a device. */
static const char *pad_sets(const struct node *n)
{
	return attr_float(n, "value") == 0 ? "{0}" : "";
}

static const struct sets {
	const char *name;
	const char *(*of)(const struct node *n);
	const char *(*why_not)(const Dist *in);
} sets[] = {{"@mul", mul_sets, mul_why_not}, {"@pad", pad_sets, NULL}};

static const struct sets *sets_find(const char *at_name)
{
	size_t i;

	for (i = 0; i < sizeof sets / sizeof *sets; i++)
		if (!strcmp(sets[i].name, at_name))
			return &sets[i];
	bug("ops.def: there is no rule '%s'", at_name);
}

const char *rule_sets(const char *at_name, const struct node *n)
{
	const struct sets *s = sets_find(at_name);

	return n ? s->of(n) : "";
}

const char *rule_sets_why_not(const char *at_name, const Dist *in)
{
	const struct sets *s = sets_find(at_name);

	return s->why_not ? s->why_not(in) : NULL;
}
