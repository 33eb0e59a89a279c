/*
 * rules_move.c: shapes and letters of operators that move elements.
 */
#include <string.h>

#include "ir/rules.h"

/* ---- @reshape ---- */

/* Puts the extent that is left at the -1 of S. */
static bool resolve_rest(struct node *n, Shape *s)
{
	int64_t count = shape_count(n->in[0]->type.shape), known;
	Shape rest = *s;
	int i, at = -1;

	for (i = 0; i < s->rank; i++) {
		if (s->d[i] >= 0)
			continue;
		if (at >= 0)
			return node_fail(n, "more than one -1 in %s",
					 shape_text(*s));
		at = i;
		rest.d[i] = 1;
	}
	if (at < 0)
		return true;
	if (!shape_count_fits(rest, &known) || !known || count % known)
		return node_fail(n,
				 "%lld elements leave no extent for the -1 "
				 "of %s",
				 (long long)count, shape_text(*s));
	s->d[at] = count / known;
	return true;
}

static bool reshape_infer(struct graph *g, struct node *n)
{
	int64_t count;
	Shape s;

	if (!rule_shape(n, &s) || !resolve_rest(n, &s))
		return false;
	if (!shape_count_fits(s, &count) ||
	    count != shape_count(n->in[0]->type.shape)) {
		node_fail(n, "%lld elements do not fill %s",
			  (long long)shape_count(n->in[0]->type.shape),
			  shape_text(s));
		node_note(n, 0, "");
		return false;
	}
	node_ints(g, n, "shape", s.d, s.rank);
	node_type(g, n, op_result(n), s);
	return true;
}

/* Runs of axes with equal products, extents of 1 left out: the first axis of
 * each is where both sides may be split. */
struct group {
	int in, out;         /* the first axes */
	int64_t n_in, n_out; /* their extents */
};

static int first_wide(Shape s, int i)
{
	while (i < s.rank && s.d[i] == 1)
		i++;
	return i;
}

static int factor_groups(const struct node *n, struct group *group)
{
	Shape x = n->in[0]->type.shape, y = n->out[0]->type.shape;
	int i = first_wide(x, 0), j = first_wide(y, 0), count = 0;
	int64_t px, py;

	if (!shape_count(x))
		return 0;
	while (i < x.rank && j < y.rank) {
		px = x.d[i];
		py = y.d[j];
		group[count++] = (struct group){i++, j++, px, py};
		while (px != py)
			if (px < py)
				px *= x.d[i++];
			else
				py *= y.d[j++];
		i = first_wide(x, i);
		j = first_wide(y, j);
	}
	return count;
}

static void reshape_letters(struct arena *a, const struct node *n,
			    struct letters *l)
{
	struct group group[MAX_RANK];
	int i, count = factor_groups(n, group);

	for (i = 0; i < count; i++)
		rule_pair(a, l, group[i].in, group[i].out);
}

/*
 * Pieces of a split group are the same elements on both sides where the first
 * axes have one extent, else where every split divides both evenly: parts of
 * k and k + 1 rows of different lengths never agree.
 */
static bool group_splits(const struct group *q, Dist d)
{
	int64_t n = q->n_in, m = q->n_out;
	int chain[MAX_MESH], k, count = dist_chain(d, q->in, chain);

	if (n == m)
		return true;
	for (k = 0; k < count; k++) {
		if (n % d.on->extent[chain[k]] || m % d.on->extent[chain[k]])
			return false;
		n /= d.on->extent[chain[k]];
		m /= d.on->extent[chain[k]];
	}
	return true;
}

static const char *reshape_why_not(const struct node *n, const Dist *in,
				   const Dist *out)
{
	struct group group[MAX_RANK];
	int i, count = factor_groups(n, group);

	(void)out;
	for (i = 0; i < count; i++)
		if (!group_splits(&group[i], in[0]))
			return text_brief(
				"the pieces of axis %d of %s are "
				"not those of axis %d of %s",
				group[i].in, type_text(n->in[0]->type),
				group[i].out, type_text(n->out[0]->type));
	return NULL;
}

/* ---- @permute ---- */

static bool permute_infer(struct graph *g, struct node *n)
{
	Shape x = n->in[0]->type.shape, s = x;
	int64_t dims[MAX_RANK];
	bool seen[MAX_RANK] = {false};
	int count, i;
	const int64_t *d = rule_ints(n, "dims", &count);

	if (count != x.rank)
		return node_fail(n, "%d axes named, but %s has %d", count,
				 type_text(n->in[0]->type), x.rank);
	for (i = 0; i < count; i++) {
		dims[i] = d[i] < 0 ? d[i] + x.rank : d[i];
		if (dims[i] < 0 || dims[i] >= x.rank || seen[dims[i]])
			return node_fail(n, "axis %lld of %s %s",
					 (long long)d[i],
					 type_text(n->in[0]->type),
					 dims[i] < 0 || dims[i] >= x.rank
						 ? "does not exist"
						 : "is named twice");
		seen[dims[i]] = true;
		s.d[i] = x.d[dims[i]];
	}
	node_ints(g, n, "dims", dims, count);
	node_type(g, n, op_result(n), s);
	return true;
}

static void permute_letters(struct arena *a, const struct node *n,
			    struct letters *l)
{
	int count, i;
	const int64_t *d = rule_ints(n, "dims", &count);

	for (i = 0; i < count; i++)
		rule_pair(a, l, (int)d[i], i);
}

/* ---- @expand ---- */

static bool expand_infer(struct graph *g, struct node *n)
{
	Shape x = n->in[0]->type.shape, s;
	int i, from;

	if (!rule_shape(n, &s))
		return false;
	if (s.rank < x.rank)
		return node_fail(n, "%s has more axes than %s",
				 type_text(n->in[0]->type), shape_text(s));
	for (i = 0; i < s.rank; i++) {
		from = i - (s.rank - x.rank);
		if (s.d[i] < 0 && from >= 0)
			s.d[i] = x.d[from];
		if (s.d[i] < 0 ||
		    (from >= 0 && x.d[from] != s.d[i] && x.d[from] != 1))
			return node_fail(n, "%s does not expand to %s",
					 type_text(n->in[0]->type),
					 shape_text(s));
	}
	node_ints(g, n, "shape", s.d, s.rank);
	node_type(g, n, op_result(n), s);
	return true;
}

static void expand_letters(struct arena *a, const struct node *n,
			   struct letters *l)
{
	Shape x = n->in[0]->type.shape, s = n->out[0]->type.shape;
	int i, from;

	for (i = 0; i < s.rank; i++) {
		from = i - (s.rank - x.rank);
		if (from >= 0 && x.d[from] == s.d[i])
			rule_pair(a, l, from, i);
		else
			rule_free(a, l, i);
	}
}

/* ---- @slice ---- */

static int64_t clip(int64_t i, int64_t n)
{
	if (i < 0)
		i += n;
	return i < 0 ? 0 : i > n ? n : i;
}

static bool slice_infer(struct graph *g, struct node *n)
{
	int axis = (int)attr_int(n, "axis");
	Shape s = n->in[0]->type.shape;
	int64_t start = clip(attr_int(n, "start"), s.d[axis]);
	int64_t stop = clip(attr_int(n, "stop"), s.d[axis]);
	int64_t step = attr_int(n, "step");

	if (step < 1)
		return node_fail(n, "step %lld, expected at least 1",
				 (long long)step);
	if (stop < start)
		stop = start;
	s.d[axis] = stop == start ? 0 : (stop - start - 1) / step + 1;
	node_int(g, n, "start", start);
	node_int(g, n, "stop", stop);
	node_type(g, n, op_result(n), s);
	return true;
}

/* All axes but the attribute `axis`, which keeps its place. */
static void other_letters(struct arena *a, const struct node *n,
			  struct letters *l)
{
	int i, t, axis = (int)attr_int(n, "axis");
	int8_t *at;

	for (i = 0; i < rule_rank(n, 0); i++) {
		if (i == axis)
			continue;
		at = letter_add(a, l);
		for (t = 0; t < l->ntensors; t++)
			at[t] = (int8_t)i;
	}
}

/* ---- @concat ---- */

static bool concat_infer(struct graph *g, struct node *n)
{
	int axis = (int)attr_int(n, "axis"), i, k;
	Shape s = n->in[0]->type.shape, t;

	for (i = 1; i < n->nin; i++) {
		t = n->in[i]->type.shape;
		for (k = 0; k < s.rank && t.rank == s.rank; k++)
			if (k != axis && t.d[k] != s.d[k])
				break;
		if (t.rank != s.rank || k < s.rank) {
			node_fail(n, "%s does not go with %s along axis %d",
				  type_text(n->in[i]->type),
				  type_text(n->in[0]->type), axis);
			node_note(n, 0, "");
			node_note(n, i, "");
			return false;
		}
		if (__builtin_add_overflow(s.d[axis], t.d[axis], &s.d[axis]))
			return node_fail(n, "the result is too large");
	}
	node_type(g, n, op_result(n), s);
	return true;
}

/* ---- @pad ---- */

/* Negative numbers crop, at most all that there is. */
static bool pad_fits(const struct node *n, int axis, int64_t lo, int64_t hi)
{
	int64_t left = n->in[0]->type.shape.d[axis];

	if (lo >= 0 ? hi >= -left
		    : lo >= -left && (hi >= 0 || hi >= -(left + lo)))
		return true;
	return node_fail(n, "%lld and %lld crop more than axis %d of %s has",
			 (long long)lo, (long long)hi, axis,
			 type_text(n->in[0]->type));
}

static bool pad_infer(struct graph *g, struct node *n)
{
	Shape s = n->in[0]->type.shape;
	int count, i, axis;
	const int64_t *pad = rule_ints(n, "pad", &count);

	if (count % 2 || count > 2 * s.rank)
		return node_fail(n,
				 "%d numbers, expected a pair for each of "
				 "at most %d axes",
				 count, s.rank);
	for (i = 0; i < count; i++) {
		axis = s.rank - 1 - i / 2;
		if (!pad_fits(n, axis, pad[i & ~1], pad[i | 1]))
			return false;
		if (__builtin_add_overflow(s.d[axis], pad[i], &s.d[axis]))
			return node_fail(n, "the result is too large");
	}
	node_type(g, n, op_result(n), s);
	return true;
}

/* An axis that is neither padded nor cropped. */
static void pad_letters(struct arena *a, const struct node *n,
			struct letters *l)
{
	int i, at, count;
	const int64_t *pad = rule_ints(n, "pad", &count);

	for (i = 0; i < rule_rank(n, 0); i++) {
		at = 2 * (rule_rank(n, 0) - 1 - i);
		if (at >= count || (!pad[at] && !pad[at + 1]))
			rule_pair(a, l, i, i);
	}
}

/* ---- the table ---- */

const struct rule rules_move[] = {
	{"@reshape", reshape_infer, reshape_letters, NULL, reshape_why_not},
	{"@permute", permute_infer, permute_letters, NULL, NULL},
	{"@expand", expand_infer, expand_letters, NULL, NULL},
	{"@slice", slice_infer, other_letters, NULL, NULL},
	{"@concat", concat_infer, other_letters, NULL, NULL},
	{"@pad", pad_infer, pad_letters, NULL, NULL},
	{0},
};
