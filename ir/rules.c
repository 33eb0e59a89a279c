/*
 * rules.c: what no index expression can say: the functions behind '@name' in
 * ops.def.
 */
#include <math.h>
#include <string.h>

#include "ir/ir.h"

static const int64_t *ints(const struct node *n, const char *key, int *count)
{
	const struct attr *a = node_attr(n, key);

	*count = a->n;
	return a->ints;
}

static int rank_of(const struct node *n, int input)
{
	return n->in[input]->type.shape.rank;
}

/* A letter at axis I of input 0 and axis J of the result. */
static void pair(struct arena *a, struct letters *l, int i, int j)
{
	int8_t *axis = letter_add(a, l);

	axis[0] = (int8_t)i;
	axis[l->ntensors - 1] = (int8_t)j;
}

static void free_letter(struct arena *a, struct letters *l, int j)
{
	letter_add(a, l)[l->ntensors - 1] = (int8_t)j;
}

/* The attribute `shape`; false after reporting. */
static bool read_shape(const struct node *n, Shape *s)
{
	int count, i;
	const int64_t *d = ints(n, "shape", &count);

	*s = (Shape){0};
	if (count > MAX_RANK)
		return node_fail(n, "a shape of %d axes, more than %d", count,
				 MAX_RANK);
	s->rank = count;
	for (i = 0; i < count; i++) {
		s->d[i] = d[i];
		if (d[i] < -1)
			return node_fail(n, "extent %lld in %s",
					 (long long)d[i], shape_text(*s));
	}
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
		free_letter(a, l, i);
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

	if (!read_shape(n, &s))
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

	for (i = 0; axis && i < rank_of(n, 0); i++)
		if (i != axis->i)
			pair(a, l, i, to++);
		else
			to += keep;
}

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
		return node_fail(n, "%lld elements leave no extent for the -1 "
				 "of %s", (long long)count, shape_text(*s));
	s->d[at] = count / known;
	return true;
}

static bool reshape_infer(struct graph *g, struct node *n)
{
	int64_t count;
	Shape s;

	if (!read_shape(n, &s) || !resolve_rest(n, &s))
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
	int in, out;		/* the first axes */
	int64_t n_in, n_out;	/* their extents */
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
		pair(a, l, group[i].in, group[i].out);
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
			return text_brief("the pieces of axis %d of %s are "
				"not those of axis %d of %s", group[i].in,
				type_text(n->in[0]->type), group[i].out,
				type_text(n->out[0]->type));
	return NULL;
}

/* ---- @permute ---- */

static bool permute_infer(struct graph *g, struct node *n)
{
	Shape x = n->in[0]->type.shape, s = x;
	int64_t dims[MAX_RANK];
	bool seen[MAX_RANK] = {false};
	int count, i;
	const int64_t *d = ints(n, "dims", &count);

	if (count != x.rank)
		return node_fail(n, "%d axes named, but %s has %d", count,
				 type_text(n->in[0]->type), x.rank);
	for (i = 0; i < count; i++) {
		dims[i] = d[i] < 0 ? d[i] + x.rank : d[i];
		if (dims[i] < 0 || dims[i] >= x.rank || seen[dims[i]])
			return node_fail(n, "axis %lld of %s %s",
				(long long)d[i], type_text(n->in[0]->type),
				dims[i] < 0 || dims[i] >= x.rank ?
				"does not exist" : "is named twice");
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
	const int64_t *d = ints(n, "dims", &count);

	for (i = 0; i < count; i++)
		pair(a, l, (int)d[i], i);
}

/* ---- @expand ---- */

static bool expand_infer(struct graph *g, struct node *n)
{
	Shape x = n->in[0]->type.shape, s;
	int i, from;

	if (!read_shape(n, &s))
		return false;
	if (s.rank < x.rank)
		return node_fail(n, "%s has more axes than %s",
				 type_text(n->in[0]->type), shape_text(s));
	for (i = 0; i < s.rank; i++) {
		from = i - (s.rank - x.rank);
		if (s.d[i] < 0 && from >= 0)
			s.d[i] = x.d[from];
		if (s.d[i] < 0 || (from >= 0 && x.d[from] != s.d[i] &&
				   x.d[from] != 1))
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
			pair(a, l, from, i);
		else
			free_letter(a, l, i);
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

	for (i = 0; i < rank_of(n, 0); i++) {
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
		if (__builtin_add_overflow(s.d[axis], t.d[axis],
					   &s.d[axis]))
			return node_fail(n, "the result is too large");
	}
	node_type(g, n, op_result(n), s);
	return true;
}

/* ---- @pad ---- */

static bool pad_infer(struct graph *g, struct node *n)
{
	Shape s = n->in[0]->type.shape;
	int count, i, axis;
	const int64_t *pad = ints(n, "pad", &count);

	if (count % 2 || count > 2 * s.rank)
		return node_fail(n, "%d numbers, expected a pair for each of "
				 "at most %d axes", count, s.rank);
	for (i = 0; i < count; i++) {
		axis = s.rank - 1 - i / 2;
		if (pad[i] < 0)
			return node_fail(n, "%lld elements of padding",
					 (long long)pad[i]);
		if (__builtin_add_overflow(s.d[axis], pad[i], &s.d[axis]))
			return node_fail(n, "the result is too large");
	}
	node_type(g, n, op_result(n), s);
	return true;
}

static void pad_letters(struct arena *a, const struct node *n,
			struct letters *l)
{
	int i;

	for (i = 0; i < rank_of(n, 0); i++)
		if (n->in[0]->type.shape.d[i] == n->out[0]->type.shape.d[i])
			pair(a, l, i, i);
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
			return node_fail(n, "index %s reaches beyond %s on "
					 "axis %d", type_text(index->type),
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
			ok = node_fail(n, "index %s reaches beyond src %s on "
				       "axis %d", type_text(n->in[1]->type),
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
	int i, ids = rank_of(n, 1);
	int8_t *at;

	for (i = 0; i < ids; i++) {
		at = letter_add(a, l);
		at[1] = at[2] = (int8_t)i;
	}
	for (i = 1; i < rank_of(n, 0); i++)
		pair(a, l, i, ids + i - 1);
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

	for (i = 0; i < rank_of(n, 0); i++)
		pair(a, l, i, i);
	free_letter(a, l, i);	/* each device makes its own columns */
}

/* ---- the table ---- */

static const struct rule rules[] = {
	{"@leaf", given, leaf_letters, leaf_more, NULL},
	{"@any", given, NULL, NULL, NULL},
	{"@create", create_infer, leaf_letters, NULL, NULL},
	{"@argmax", argmax_infer, argmax_letters, NULL, NULL},
	{"@reshape", reshape_infer, reshape_letters, NULL, reshape_why_not},
	{"@permute", permute_infer, permute_letters, NULL, NULL},
	{"@expand", expand_infer, expand_letters, NULL, NULL},
	{"@slice", slice_infer, other_letters, NULL, NULL},
	{"@concat", concat_infer, other_letters, NULL, NULL},
	{"@pad", pad_infer, pad_letters, NULL, NULL},
	{"@gather", gather_infer, gather_letters, gather_more, NULL},
	{"@scatter_add", scatter_add_infer, scatter_add_letters,
	 scatter_add_more, NULL},
	{"@take", take_infer, take_letters, take_more, NULL},
	{"@one_hot", one_hot_infer, one_hot_letters, NULL, NULL},
};

const struct rule *rule_find(const char *at_name)
{
	size_t i;

	for (i = 0; i < sizeof rules / sizeof *rules; i++)
		if (!strcmp(rules[i].name, at_name))
			return &rules[i];
	bug("ops.def: there is no rule '%s'", at_name);
}

/* ---- '@name' in the columns sum and max ---- */

/* The number that all elements of V are known to be, a factor that keeps or
 * turns the order: 0 times the identity, an infinity, would be nan. */
static bool known_factor(const struct value *v, double *d)
{
	const struct node *n = v->def;

	while (n && (n->op == OP_to || n->op == OP_move ||
		     n->op == OP_expand || n->op == OP_reshape))
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
						  "axis", sbp_text(in[i].t[k]));
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
