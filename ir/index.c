/*
 * index.c: what an index expression says about distributions.
 *
 * Each letter is one logical axis. Split over a mesh axis it is S(position)
 * in the tensors that have it and B in those that lack it; the result is S
 * too, or a partial value where the letter is reduced away. The columns sum
 * and max add which inputs may be partial together.
 */
#include <ctype.h>
#include <string.h>

#include "ir/ir.h"

/* ---- letters ---- */

const char *term_read(const char *s, struct index_term *t)
{
	*t = (struct index_term){0};
	for (; *s && *s != ',' && *s != '-'; s++) {
		if (*s == '*')
			t->star = true;
		else if (*s == '@')
			t->at = true;
		else if (t->n < MAX_RANK)
			t->letter[t->n++] = *s;
	}
	if (*s == '-')
		s++;
	return *s ? s + 1 : s;
}

static const struct value *tensor(const struct node *n, int t)
{
	return t < n->nin ? n->in[t] : n->out[t - n->nin];
}

int8_t *letter_add(struct arena *a, struct letters *l)
{
	int8_t *axis;

	if (l->n == 2 * MAX_RANK)
		bug("more than %d letters", l->n);
	axis = NEW_N(a, int8_t, l->ntensors);
	memset(axis, -1, (size_t)l->ntensors);
	l->at[l->n].whole = false;
	l->at[l->n++].axis = axis;
	return axis;
}

/* The axes of the attribute `axis` are reduced away. */
static void reduction_letters(struct arena *a, const struct node *n,
			      struct letters *l)
{
	const struct attr *reduced = node_attr(n, "axis");
	bool keep = attr_bool(n, "keepdim");
	int8_t *axis;
	int i, k, to = 0;

	for (i = 0; i < n->in[0]->type.shape.rank; i++) {
		axis = letter_add(a, l);
		axis[0] = (int8_t)i;
		for (k = 0; k < reduced->n && reduced->ints[k] != i; k++)
			;
		if (k == reduced->n)
			axis[1] = (int8_t)to++;
		else
			to += keep;
	}
}

/* The axes of '*': aligned from the right, extent 1 lacks the letter where
 * the result is wider. */
static void star_letters(struct arena *a, const struct node *n,
			 const struct index_term *term, struct letters *l)
{
	const struct value *out = n->out[0];
	const struct index_term *last = &term[n->nin];
	int rank = out->type.shape.rank - last->n, i, t, at;
	int8_t *axis;
	Shape s;

	for (i = 0; i < rank; i++) {
		axis = letter_add(a, l);
		for (t = 0; t < l->ntensors; t++) {
			s = tensor(n, t)->type.shape;
			at = s.rank - term[t].n - rank + i;
			if (!term[t].star || at < 0 ||
			    s.d[at] != out->type.shape.d[i])
				continue;
			axis[t] = (int8_t)at;
		}
	}
}

/* The letter C in all terms. */
static void one_letter(struct arena *a, const struct node *n, char c,
		       const struct index_term *term, struct letters *l)
{
	int8_t *axis = letter_add(a, l);
	int t, k;

	for (t = 0; t < l->ntensors; t++)
		for (k = 0; k < term[t].n; k++)
			if (term[t].letter[k] == c)
				axis[t] = (int8_t)(tensor(n, t)->type.shape
						   .rank - term[t].n + k);
	l->at[l->n - 1].whole = isupper((unsigned char)c) != 0;
}

static void plain_letters(struct arena *a, const struct node *n,
			  const struct index_term *term, struct letters *l)
{
	char seen[4 * MAX_RANK] = "";
	int order[4], t, k, i;

	/* The result's letters first, then those that it lacks. */
	for (i = 0; i < l->ntensors; i++)
		order[i] = i ? i - 1 : l->ntensors - 1;
	for (i = 0; i < l->ntensors; i++) {
		t = order[i];
		for (k = 0; k < term[t].n; k++) {
			if (strchr(seen, term[t].letter[k]))
				continue;
			seen[strlen(seen)] = term[t].letter[k];
			one_letter(a, n, term[t].letter[k], term, l);
		}
	}
}

void op_letters(struct arena *a, const struct node *n, struct letters *l)
{
	const struct op_info *info = op_info(n->op);
	const struct rule *rule;
	const char *s = info->index;
	struct index_term term[4];
	int t;

	*l = (struct letters){.ntensors = n->nin + n->nout};
	if (*s == '@') {
		rule = rule_find(s);
		if (rule->letters)
			rule->letters(a, n, l);
		return;
	}
	for (t = 0; t < l->ntensors && t < 4; t++)
		s = term_read(s, &term[t]);
	if (term[0].at) {
		reduction_letters(a, n, l);
		return;
	}
	if (term[n->nin].star)
		star_letters(a, n, term, l);
	plain_letters(a, n, term, l);
}

/* ---- signatures ---- */

void sig_add(struct arena *a, struct sigs *s, struct sig sig)
{
	struct sig *more;

	if ((s->n & (s->n - 1)) == 0) {	/* full at 0, 1, 2, 4, ... */
		more = NEW_N(a, struct sig, s->n ? 2 * s->n : 1);
		if (s->n)
			memcpy(more, s->at, sizeof *more * (size_t)s->n);
		s->at = more;
	}
	s->at[s->n++] = sig;
}

struct sig sig_b(struct arena *a, const struct node *n)
{
	struct sig sig = {NEW_N(a, Sbp, n->nin), NEW_N(a, Sbp, n->nout)};
	int i;

	for (i = 0; i < n->nin; i++)
		sig.in[i] = sbp_b();
	for (i = 0; i < n->nout; i++)
		sig.out[i] = sbp_b();
	return sig;
}

/* Which reduction combines the parts of a result whose operator reduces. */
static bool reduces_by(const struct op_info *info, enum red *red)
{
	*red = RED_SUM;
	if (info->kernel == K_CALL || !strcmp(info->c, "+"))
		return true;
	*red = !strcmp(info->c, "max") ? RED_MAX : RED_MIN;
	return !strcmp(info->c, "max") || !strcmp(info->c, "min");
}

static void letter_sig(struct arena *a, const struct node *n,
		       const struct letter *letter, struct sigs *s)
{
	struct sig sig = sig_b(a, n);
	bool in_result = false;
	enum red red;
	int t, at;

	for (t = 0; t < n->nin + n->nout; t++) {
		at = letter->axis[t];
		if (at < 0)
			continue;
		if (t < n->nin) {
			sig.in[t] = sbp_s(at);
		} else {
			sig.out[t - n->nin] = sbp_s(at);
			in_result = true;
		}
	}
	if (!in_result) {
		if (!reduces_by(op_info(n->op), &red) ||
		    n->out[0]->type.dtype == DT_BOOL)
			return;
		sig.out[0] = sbp_p(red);
	}
	sig_add(a, s, sig);
}

/* Letters in the order of the result's axes, then those reduced away. */
static void letter_sigs(struct arena *a, const struct node *n, struct sigs *s)
{
	struct letters l;
	int axis, i, rank = n->nout ? n->out[0]->type.shape.rank : 0;

	op_letters(a, n, &l);
	for (axis = 0; axis < rank; axis++)
		for (i = 0; i < l.n; i++)
			if (l.at[i].axis[n->nin] == axis && !l.at[i].whole)
				letter_sig(a, n, &l.at[i], s);
	for (i = 0; i < l.n; i++)
		if (l.at[i].axis[n->nin] < 0 && !l.at[i].whole)
			letter_sig(a, n, &l.at[i], s);
}

/* One set of `sum` or `max`, with the words after it. */
struct set {
	bool all;
	uint32_t inputs;	/* bits */
	bool max, min, swap;
};

static const char *set_read(const char *s, struct set *set)
{
	*set = (struct set){.max = true, .min = true};
	for (s++; *s != '}'; s++) {
		if (*s == '*')
			set->all = true;
		else
			set->inputs |= 1u << (*s - '0');
	}
	s++;
	if (!strncmp(s, "swap", 4)) {
		set->swap = true;
		s += 4;
	}
	if (!strncmp(s, "max", 3) || !strncmp(s, "min", 3)) {
		set->max = s[1] == 'a';
		set->min = !set->max;
		s += 3;
	}
	while (*s == ' ')
		s++;
	return s;
}

/* Integer FROM's values are all in TO. */
static bool int_fits(enum dtype from, enum dtype to)
{
	if (from == to)
		return true;
	return from != DT_I64 && to != DT_U8 && to != DT_I8 &&
	       dtype_size(from) < dtype_size(to);
}

/*
 * Whether parts of dtype FROM that become TO one by one combine to the same
 * value. Sums: where nothing is rounded or wraps differently. Max, min: where
 * the conversion never decreases.
 */
static bool parts_convert(enum dtype from, enum dtype to, enum red red)
{
	if (from == DT_BOOL || to == DT_BOOL)
		return false;
	if (from == to)
		return true;
	if (red == RED_SUM)
		return dtype_is_float(from) && dtype_is_float(to) &&
		       dtype_promote(from, to) == to;
	if (dtype_is_float(to))
		return true;
	return dtype_is_int(from) && int_fits(from, to);
}

static void set_sig(struct arena *a, const struct node *n,
		    const struct set *set, enum red red, struct sigs *s)
{
	struct sig sig = sig_b(a, n);
	enum red result = red;
	int i;

	if (set->swap && red != RED_SUM)
		result = red == RED_MAX ? RED_MIN : RED_MAX;
	for (i = 0; i < n->nin; i++) {
		if (!set->all && (i >= 32 || !(set->inputs >> i & 1)))
			continue;
		if (!parts_convert(n->in[i]->type.dtype,
				   n->out[0]->type.dtype, red))
			return;
		sig.in[i] = sbp_p(red);
	}
	sig.out[0] = sbp_p(result);
	sig_add(a, s, sig);
}

static void set_sigs(struct arena *a, const struct node *n, const char *sets,
		     enum red red, struct sigs *s)
{
	struct set set;

	if (*sets == '@')
		sets = rule_sets(sets, n);
	if (strstr(sets, "float") && !dtype_is_float(n->out[0]->type.dtype))
		return;
	while (*sets == '{') {
		sets = set_read(sets, &set);
		if (red == RED_SUM || (red == RED_MAX ? set.max : set.min))
			set_sig(a, n, &set, red, s);
	}
}

struct sigs op_signatures(struct arena *a, const struct node *n)
{
	const struct op_info *info = op_info(n->op);
	const struct rule *rule;
	struct sigs s = {0};

	sig_add(a, &s, sig_b(a, n));
	letter_sigs(a, n, &s);
	set_sigs(a, n, info->sum, RED_SUM, &s);
	set_sigs(a, n, info->max, RED_MAX, &s);
	set_sigs(a, n, info->max, RED_MIN, &s);
	if (*info->index == '@') {
		rule = rule_find(info->index);
		if (rule->more)
			rule->more(a, n, &s);
	}
	return s;
}

/* ---- meshes of several axes ---- */

/* What op_why_not needs for a moment. */
static struct arena *scratch;

static bool plain_order(const struct node *n, const Dist *in, const Dist *out)
{
	int t, k;
	Dist d;

	for (t = 0; t < n->nin + n->nout; t++) {
		d = t < n->nin ? in[t] : out[t - n->nin];
		for (k = 0; k < MAX_MESH; k++)
			if (dist_nth(d, k) != k)
				return false;
	}
	return true;
}

/* A letter that several mesh axes split must be split in the same order
 * everywhere, or the tensors' pieces differ. */
static const char *orders_differ(const struct node *n, const Dist *in,
				 const Dist *out)
{
	int chain[2][MAX_MESH], i, t, count, first;
	struct letters l;
	Dist d;

	if (plain_order(n, in, out))
		return NULL;
	op_letters(scratch, n, &l);
	for (i = 0; i < l.n; i++) {
		first = -1;
		for (t = 0; t < l.ntensors; t++) {
			if (l.at[i].axis[t] < 0)
				continue;
			d = t < n->nin ? in[t] : out[t - n->nin];
			count = dist_chain(d, l.at[i].axis[t],
					   chain[first >= 0]);
			if (first >= 0 && memcmp(chain[0], chain[1],
						 sizeof(int) * (size_t)count))
				return "nested splits in different orders";
			first = t;
		}
	}
	return NULL;
}

static const char *together(const struct node *n, const Dist *in,
			    const Dist *out)
{
	const struct op_info *info = op_info(n->op);
	const struct rule *rule;
	const char *why = NULL;

	if (*info->index == '@') {
		rule = rule_find(info->index);
		if (rule->why_not)
			why = rule->why_not(n, in, out);
	}
	if (!why && *info->max == '@')
		why = rule_sets_why_not(info->max, in);
	return why ? why : orders_differ(n, in, out);
}

static void scratch_begin(void)
{
	arena_free(scratch);
	scratch = arena_new();
}

bool op_legal(const struct node *n, const Dist *in, const Dist *out)
{
	scratch_begin();
	return !together(n, in, out);
}

/* ---- why not ---- */

static int matches(const struct node *n, const struct sig *sig,
		   const Dist *in, const Dist *out, int k)
{
	int i, count = 0;

	for (i = 0; i < n->nin; i++)
		count += sbp_eq(sig->in[i], in[i].t[k]);
	for (i = 0; i < n->nout; i++)
		count += sbp_eq(sig->out[i], out[i].t[k]);
	return count;
}

const char *sig_text(const struct node *n, const Sbp *in, const Sbp *out)
{
	const char *t = "";
	int i;

	for (i = 0; i < n->nin; i++)
		t = text_brief("%s%s%s", t, i ? ", " : "", sbp_text(in[i]));
	for (i = 0; i < n->nout; i++)
		t = text_brief("%s%s%s", t, i ? ", " : " -> ",
			       sbp_text(out[i]));
	return t;
}

static const char *axis_text(const struct placement *p, int k)
{
	if (p->axis[k])
		return text_brief("mesh axis %d (%s)", k, p->axis[k]);
	return text_brief("mesh axis %d", k);
}

/* What is wrong with the terms of mesh axis K. */
static const char *no_signature(const struct node *n, const struct sigs *s,
				const Dist *in, const Dist *out, int k)
{
	const char *name = op_info(n->op)->name;
	const struct sig *nearest = s->at;
	Sbp ti[8], to[8];
	int i, j, best = -1, count;

	for (i = 0; i < s->n; i++) {
		count = matches(n, &s->at[i], in, out, k);
		if (count > best) {
			best = count;
			nearest = &s->at[i];
		}
	}
	for (i = 0; i < n->nin; i++) {
		for (j = 0; j < s->n; j++)
			if (sbp_eq(s->at[j].in[i], in[i].t[k]))
				break;
		if (j < s->n)
			continue;
		return text_brief("%s takes no %s as operand %d, on %s; "
				  "nearest: %s", name, sbp_text(in[i].t[k]),
				  i + 1, axis_text(in[i].on, k),
				  sig_text(n, nearest->in, nearest->out));
	}
	if (n->nin > 8 || n->nout > 8)
		return text_brief("%s has no such signature on mesh axis %d",
				  name, k);
	for (i = 0; i < n->nin; i++)
		ti[i] = in[i].t[k];
	for (i = 0; i < n->nout; i++)
		to[i] = out[i].t[k];
	return text_brief("%s has no signature %s, on %s; nearest: %s", name,
			  sig_text(n, ti, to),
			  axis_text(n->nin ? in[0].on : out[0].on, k),
			  sig_text(n, nearest->in, nearest->out));
}

static const char *value_why_not(const struct node *n, const Dist *in,
				 const Dist *out)
{
	const struct placement *on = n->nout ? out[0].on : NULL;
	const char *why;
	Dist d;
	int t;

	for (t = 0; t < n->nin + n->nout; t++) {
		d = t < n->nin ? in[t] : out[t - n->nin];
		why = dist_why_not(d, tensor(n, t)->type);
		if (why)
			return why;
		if (on && !placement_eq(on, d.on))
			return text_brief("operands lie on %s and %s",
					  on->name ? on->name : "?",
					  d.on->name ? d.on->name : "?");
	}
	return NULL;
}

const char *op_why_not(const struct node *n, const Dist *in, const Dist *out)
{
	const char *why = value_why_not(n, in, out);
	struct sigs s;
	int k, i;

	if (why || !n->nout)
		return why;
	scratch_begin();
	s = op_signatures(scratch, n);
	for (k = 0; k < out[0].on->naxes; k++) {
		for (i = 0; i < s.n; i++)
			if (matches(n, &s.at[i], in, out, k) ==
			    n->nin + n->nout)
				break;
		if (i == s.n)
			return no_signature(n, &s, in, out, k);
	}
	return together(n, in, out);
}
