/*
 * rules_index.c: shapes, letters and signatures of operators that take or
 * give indices.
 */
#include <string.h>

#include "ir/rules.h"

/* ---- @argmax ---- */

static bool argmax_infer(struct graph *g, struct node *n)
{
	const struct attr *axis = node_attr(n, "axis");
	bool keep = attr_bool(n, "keepdim");
	Shape x = n->in[0]->type.shape, s = {0};
	int64_t reduced = 1;
	int i;

	for (i = 0; i < x.rank; i++) {
		if (axis && axis->i != i) {
			s.d[s.rank++] = x.d[i];
			continue;
		}
		reduced = reduced && x.d[i];
		if (keep)
			s.d[s.rank++] = 1;
	}
	if (!reduced)
		return node_fail(n, "there is nothing to choose from in %s",
				 type_text(n->in[0]->type));
	node_type(g, n, op_result(n), s);
	return true;
}

static void argmax_letters(struct arena *a, const struct node *n,
			   struct letters *l)
{
	const struct attr *axis = node_attr(n, "axis");
	bool keep = attr_bool(n, "keepdim");
	int i, to = 0;

	for (i = 0; axis && i < rule_rank(n, 0); i++)
		if (i != axis->i)
			rule_pair(a, l, i, to++);
		else
			to += keep;
}

/* ---- @gather: along `axis`, x and index of one rank ---- */

/* Axes of INDEX other than `axis` reach no further than those of X. */
static bool index_within(const struct node *n, const struct value *x,
			 const struct value *index)
{
	int axis = (int)attr_int(n, "axis"), i;
	Shape s = x->type.shape, t = index->type.shape;

	if (s.rank != t.rank)
		return node_fail(n, "index %s has not the rank of %s",
				 type_text(index->type), type_text(x->type));
	for (i = 0; i < s.rank; i++)
		if (i != axis && t.d[i] > s.d[i])
			return node_fail(n,
					 "index %s reaches beyond %s on "
					 "axis %d",
					 type_text(index->type),
					 type_text(x->type), i);
	return true;
}

static bool gather_infer(struct graph *g, struct node *n)
{
	if (!index_within(n, n->in[0], n->in[1])) {
		node_note(n, 0, "");
		node_note(n, 1, "");
		return false;
	}
	node_type(g, n, op_result(n), n->in[1]->type.shape);
	return true;
}

/* An axis along which x and index go in step; `axis` itself is index's. */
static void gather_letters(struct arena *a, const struct node *n,
			   struct letters *l)
{
	Shape x = n->in[0]->type.shape, index = n->in[1]->type.shape;
	int i, axis = (int)attr_int(n, "axis");
	int8_t *at;

	for (i = 0; i < x.rank; i++) {
		if (i != axis && x.d[i] != index.d[i])
			continue;
		at = letter_add(a, l);
		if (i != axis)
			at[0] = (int8_t)i;
		at[1] = at[2] = (int8_t)i;
	}
}

/* x split along `axis`: what a device does not own counts as 0. */
static void owned_rows(struct arena *a, const struct node *n, int axis,
		       struct sigs *s)
{
	struct sig sig = sig_b(a, n);

	if (n->out[0]->type.dtype == DT_BOOL)
		return;
	sig.in[0] = sbp_s(axis);
	sig.out[0] = sbp_p(RED_SUM);
	sig_add(a, s, sig);
}

static void gather_more(struct arena *a, const struct node *n, struct sigs *s)
{
	owned_rows(a, n, (int)attr_int(n, "axis"), s);
}

/* ---- @scatter_add ---- */

static bool scatter_add_infer(struct graph *g, struct node *n)
{
	Shape index = n->in[1]->type.shape, src = n->in[2]->type.shape;
	bool ok = index_within(n, n->in[0], n->in[1]);
	int i;

	if (ok && index.rank != src.rank)
		ok = node_fail(n, "src %s has not the rank of the index %s",
			       type_text(n->in[2]->type),
			       type_text(n->in[1]->type));
	for (i = 0; ok && i < index.rank; i++)
		if (index.d[i] > src.d[i])
			ok = node_fail(n,
				       "index %s reaches beyond src %s on "
				       "axis %d",
				       type_text(n->in[1]->type),
				       type_text(n->in[2]->type), i);
	if (!ok) {
		for (i = 0; i < 3; i++)
			node_note(n, i, "");
		return false;
	}
	node_type(g, n, op_result(n), n->in[0]->type.shape);
	return true;
}

static void scatter_add_letters(struct arena *a, const struct node *n,
				struct letters *l)
{
	int i, t, axis = (int)attr_int(n, "axis");
	Shape x = n->in[0]->type.shape, index = n->in[1]->type.shape;
	Shape src = n->in[2]->type.shape;
	int8_t *at;

	for (i = 0; i < x.rank; i++) {
		if (i == axis || x.d[i] != index.d[i] || x.d[i] != src.d[i])
			continue;
		at = letter_add(a, l);
		for (t = 0; t < l->ntensors; t++)
			at[t] = (int8_t)i;
	}
}

static void scatter_add_more(struct arena *a, const struct node *n,
			     struct sigs *s)
{
	int axis = (int)attr_int(n, "axis");
	struct sig sig = sig_b(a, n);

	/* Each device adds what falls into its own piece. */
	sig.in[0] = sig.out[0] = sbp_s(axis);
	sig_add(a, s, sig);
	if (n->in[1]->type.shape.d[axis] != n->in[2]->type.shape.d[axis])
		return;
	/* Each device adds its own share of src. */
	sig = sig_b(a, n);
	sig.in[1] = sig.in[2] = sbp_s(axis);
	sig.in[0] = sig.out[0] = sbp_p(RED_SUM);
	sig_add(a, s, sig);
}

/* ---- @take: rows of a table ---- */

static bool take_infer(struct graph *g, struct node *n)
{
	Shape table = n->in[0]->type.shape, s = n->in[1]->type.shape;
	int i;

	if (!table.rank)
		return node_fail(n, "a scalar has no rows");
	if (s.rank + table.rank - 1 > MAX_RANK)
		return node_fail(n, "the result has %d axes, more than %d",
				 s.rank + table.rank - 1, MAX_RANK);
	for (i = 1; i < table.rank; i++)
		s.d[s.rank++] = table.d[i];
	node_type(g, n, op_result(n), s);
	return true;
}

static void take_letters(struct arena *a, const struct node *n,
			 struct letters *l)
{
	int i, ids = rule_rank(n, 1);
	int8_t *at;

	for (i = 0; i < ids; i++) {
		at = letter_add(a, l);
		at[1] = at[2] = (int8_t)i;
	}
	for (i = 1; i < rule_rank(n, 0); i++)
		rule_pair(a, l, i, ids + i - 1);
}

static void take_more(struct arena *a, const struct node *n, struct sigs *s)
{
	owned_rows(a, n, 0, s);
}

/* ---- @one_hot ---- */

static bool one_hot_infer(struct graph *g, struct node *n)
{
	Shape s = n->in[0]->type.shape;
	int64_t classes = attr_int(n, "n");

	if (classes < 1)
		return node_fail(n, "%lld classes", (long long)classes);
	if (s.rank == MAX_RANK)
		return node_fail(n, "the result has %d axes, more than %d",
				 s.rank + 1, MAX_RANK);
	s.d[s.rank++] = classes;
	node_type(g, n, op_result(n), s);
	return true;
}

static void one_hot_letters(struct arena *a, const struct node *n,
			    struct letters *l)
{
	int i;

	for (i = 0; i < rule_rank(n, 0); i++)
		rule_pair(a, l, i, i);
	rule_free(a, l, i); /* each device makes its own columns */
}

/* ---- the table ---- */

const struct rule rules_index[] = {
	{"@argmax", argmax_infer, argmax_letters, NULL, NULL},
	{"@gather", gather_infer, gather_letters, gather_more, NULL},
	{"@scatter_add", scatter_add_infer, scatter_add_letters,
	 scatter_add_more, NULL},
	{"@take", take_infer, take_letters, take_more, NULL},
	{"@one_hot", one_hot_infer, one_hot_letters, NULL, NULL},
	{0},
};
