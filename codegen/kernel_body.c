/*
 * kernel_body.c: what a fused kernel computes: its loops over rows, and in
 * each row the phases, which are loops over the elements.
 */

#include "codegen/kernel.h"

#define line(w, ...) put(&(w)->l, __VA_ARGS__)

/* ---- tensors in memory ---- */

/* "n0 * 64 * i": loop I with its stride in a tensor along LOOPS. */
static const char *index_term(const struct nest *k, unsigned loops, int i)
{
	int64_t number = 1;
	const char *stride = "";

	for (int l = i + 1; l < k->nloops; l++) {
		if (!(loops >> l & 1))
			continue;
		if (k->loop[l].fixed)
			number *= k->loop[l].max;
		else
			stride = arena_text(k->a, "%s%s * ", stride,
					    k->loop[l].extent);
	}
	if (number != 1)
		stride = arena_text(k->a, "%s%lld * ", stride,
				    (long long)number);
	return arena_text(k->a, "%s%s", stride, k->loop[i].index);
}

/* "" for the first element. */
static const char *index_text(const struct nest *k, unsigned loops)
{
	const char *s = "";

	for (int i = 0; i < k->nloops; i++)
		if ((loops >> i & 1) && !k->loop[i].straight)
			s = arena_text(k->a, "%s%s%s", s, *s ? " + " : "",
				       index_term(k, loops, i));
	return s;
}

static const char *pointer_text(const struct nest *k, const struct access *x)
{
	const char *at = index_text(k, x->loops);

	return *at ? arena_text(k->a, "%s + %s", x->param, at) : x->param;
}

static const char *element_text(const struct nest *k, const struct access *x)
{
	const char *at = index_text(k, x->loops);

	return *at ? arena_text(k->a, "%s[%s]", x->param, at)
		   : arena_text(k->a, "*%s", x->param);
}

/* How many lanes count; NULL: all. */
static const char *lanes_text(const struct nest *k)
{
	const struct loop *l = &k->loop[k->lane];

	if (!l->fixed)
		return "n";
	if (l->max % LANES == 0 && l->max > 0)
		return NULL;
	return l->straight ? arena_text(k->a, "%lld", (long long)l->max) : "n";
}

static bool in_lanes(const struct nest *k, const struct access *x)
{
	return k->vectors && k->lane >= 0 && (x->loops >> k->lane & 1);
}

/* "v_load", "m_store", "v_load_f16" */
static const char *memory_name(const struct nest *k, enum dtype t,
			       const char *verb)
{
	if (t == DT_BOOL)
		return arena_text(k->a, "m_%s", verb);
	if (t == DT_F32)
		return arena_text(k->a, "v_%s", verb);
	return arena_text(k->a, "v_%s_%s", verb, dtype_name(t));
}

static const char *load_text(const struct nest *k, const struct access *x)
{
	enum dtype t = x->v->type.dtype;
	const char *get, *lanes;

	if (!in_lanes(k, x)) {
		get = expr_get(k->a, t, element_text(k, x));
		if (!k->vectors)
			return get;
		return arena_text(k->a, t == DT_BOOL ? "m_set(%s)"
						     : "v_set(%s)", get);
	}
	lanes = lanes_text(k);
	if (lanes == NULL)
		return arena_text(k->a, "%s(%s)", memory_name(k, t, "load"),
				  pointer_text(k, x));
	return arena_text(k->a, "%s_n(%s, %s)", memory_name(k, t, "load"),
			  pointer_text(k, x), lanes);
}

static void store(struct writer *w, int i)
{
	const struct nest *k = w->k;
	const struct access *x = &k->out[i];
	enum dtype t;
	const char *value = k->name[i], *lanes;

	if (x->v == NULL)
		return;
	t = x->v->type.dtype;
	if (!in_lanes(k, x)) {
		if (k->vectors)
			value = arena_text(k->a, t == DT_BOOL ? "%s[0] != 0"
							      : "%s[0]", value);
		line(w, "%s = %s;", element_text(k, x),
		     expr_put(k->a, t, value));
		return;
	}
	lanes = lanes_text(k);
	if (lanes == NULL)
		line(w, "%s(%s, %s);", memory_name(k, t, "store"),
		     pointer_text(k, x), value);
	else
		line(w, "%s_n(%s, %s, %s);", memory_name(k, t, "store"),
		     pointer_text(k, x), value, lanes);
}

/* ---- one node ---- */

static const char *operand(const struct nest *k, const struct shared *s, int i,
			   int j)
{
	const struct access *x = &k->in[i][j];

	if (k->from[i][j] >= 0)
		return k->name[k->from[i][j]];
	for (int l = 0; l < s->at.n; l++)
		if (s->at.at[l]->v == x->v && s->at.at[l]->loops == x->loops)
			return s->name.at[l];
	return load_text(k, x);
}

static void map_statement(struct writer *w, const struct shared *s, int i)
{
	const struct nest *k = w->k;
	const struct node *n = k->body[i];
	const char *x[3] = {NULL};

	if (node_is_number(n))
		return;
	for (int j = 0; j < n->nin && j < 3; j++)
		x[j] = operand(k, s, i, j);
	line(w, "const %s %s = %s;",
	     expr_type(n->out[0]->type.dtype, k->vectors), k->name[i],
	     expr_map(k->a, n, k->vectors, x));
}

/* ---- what a phase computes for each element ---- */

static bool is_element(const struct nest *k, int i)
{
	return !k->d.row[i] && (k->nbody == 1 || !node_is_number(k->body[i]));
}

static bool folds_in(const struct nest *k, int i, int phase)
{
	return node_is_fold(k->body[i]) && k->phase[i] == phase + 1;
}

/* Marks the elements that phase needs; false if there is nothing to do. */
static bool find_needed(const struct nest *k, int phase, bool *needed)
{
	bool any = false;

	for (int i = k->nbody - 1; i >= 0; i--) {
		bool stored = is_element(k, i) && k->phase[i] == phase &&
			      k->out[i].v != NULL;

		needed[i] = needed[i] || stored;
		if (!needed[i] && !folds_in(k, i, phase))
			continue;
		any = true;
		for (int j = 0; j < k->body[i]->nin; j++) {
			int from = k->from[i][j];

			if (from >= 0 && is_element(k, from))
				needed[from] = true;
		}
	}
	return any;
}

/* How often what is now computed reads X. */
static int uses_of(const struct writer *w, const struct access *x, int phase,
		   const bool *needed)
{
	const struct nest *k = w->k;
	int uses = 0;

	for (int i = 0; i < k->nbody; i++) {
		bool now = needed[i] && (w->open || !w->done[i]);

		if (!now && !folds_in(k, i, phase))
			continue;
		for (int j = 0; j < k->body[i]->nin; j++)
			uses += k->in[i][j].v == x->v &&
				k->in[i][j].loops == x->loops;
	}
	return uses;
}

static bool is_shared(const struct shared *s, const struct access *x)
{
	for (int l = 0; l < s->at.n; l++)
		if (s->at.at[l]->v == x->v && s->at.at[l]->loops == x->loops)
			return true;
	return false;
}

static void share_loads(struct writer *w, int phase, const bool *needed)
{
	struct nest *k = w->k;
	struct shared *s = &w->shared;

	for (int i = 0; i < k->nbody; i++) {
		if (!needed[i] && !folds_in(k, i, phase))
			continue;
		for (int j = 0; j < k->body[i]->nin; j++) {
			const struct access *x = &k->in[i][j];
			const char *name;

			if (x->v == NULL || is_shared(s, x) ||
			    uses_of(w, x, phase, needed) < 2)
				continue;
			name = arena_text(k->a, "%s%d", x->param, s->at.n);
			line(w, "const %s %s = %s;",
			     expr_type(x->v->type.dtype, k->vectors), name,
			     load_text(k, x));
			PUSH(k->a, s->at, x);
			PUSH(k->a, s->name, name);
		}
	}
}

static void accumulate(struct writer *w, const struct shared *s, int i)
{
	const struct nest *k = w->k;
	const char *lanes = NULL;

	if (k->vectors && k->lane >= 0 && k->loop[k->lane].reduced)
		lanes = lanes_text(k);
	line(w, "%s",
	     expr_accumulate(k->a, k->body[i], k->vectors, k->name[i],
			     operand(k, s, i, 0), lanes));
}

static void element_block(struct writer *w, int phase, const bool *needed)
{
	const struct nest *k = w->k;

	if (w->open)
		w->shared = (struct shared){0};
	share_loads(w, phase, needed);
	for (int i = 0; i < k->nbody; i++) {
		if (folds_in(k, i, phase))
			accumulate(w, &w->shared, i);
		if (!needed[i])
			continue;
		if (w->open || !w->done[i])
			map_statement(w, &w->shared, i);
		w->done[i] = true;
		if (k->phase[i] == phase)
			store(w, i);
	}
}

/* ---- loops ---- */

static bool open_loop(struct writer *w, int i)
{
	const struct nest *k = w->k;
	const struct loop *l = &k->loop[i];
	bool part = i == k->parallel, vector = i == k->lane && k->vectors;
	const char *end = part ? "hi" : l->extent;
	const char *start = part ? "lo" : "0";

	if (l->straight)
		return false;
	if (i == k->cut) {
		start = "start";
		end = "end";
	}
	line(w, "for (int64_t %s = %s; %s < %s; %s) {", l->index, start,
	     l->index, end,
	     vector ? arena_text(k->a, "%s += 16", l->index)
		    : arena_text(k->a, "%s++", l->index));
	w->l.indent++;
	if (vector && lanes_text(k) != NULL)
		line(w, "const int n = sbp_lanes(%s - %s);", end, l->index);
	return true;
}

static void close_loops(struct writer *w, int indent)
{
	put_close(&w->l, indent);
}

static void start_fold(struct writer *w, int i)
{
	const struct nest *k = w->k;
	const struct node *n = k->body[i];

	line(w, "%s %s = %s;", expr_type(n->out[0]->type.dtype, k->vectors),
	     k->name[i], expr_identity(k->a, n, k->vectors));
}

/* The loop of phase over the elements of a row. */
static void phase_loop(struct writer *w, int phase)
{
	const struct nest *k = w->k;
	bool *needed = NEW_N(k->a, bool, k->nbody);
	int indent = w->l.indent;

	if (!find_needed(k, phase, needed))
		return;
	if (phase > 0 && w->open)
		text_add(&w->l.t, "\n");
	for (int i = 0; i < k->nbody; i++)
		if (folds_in(k, i, phase))
			start_fold(w, i);
	w->open = false;
	for (int i = 0; i < k->nloops; i++)
		if (k->loop[i].reduced && open_loop(w, i))
			w->open = true;
	element_block(w, phase, needed);
	close_loops(w, indent);
}

/* What is computed once in a row, before phase's loop. */
static void finish_fold(struct writer *w, int i)
{
	const struct nest *k = w->k;
	const struct node *n = k->body[i];
	const char *x = k->name[i];

	if (k->vectors && k->lane >= 0 && k->loop[k->lane].reduced)
		x = expr_across(k->a, n, x);
	x = expr_round(k->a, n->out[0]->type.dtype, k->vectors, x);
	if (x != k->name[i])
		line(w, "%s = %s;", k->name[i], x);
}

static void row_block(struct writer *w, int phase)
{
	const struct nest *k = w->k;
	const struct shared none = {0};

	for (int i = 0; i < k->nbody; i++) {
		if (!k->d.row[i] || k->phase[i] != phase)
			continue;
		if (node_is_fold(k->body[i]))
			finish_fold(w, i);
		else
			map_statement(w, &none, i);
		store(w, i);
	}
}

void body_loops(struct writer *w)
{
	const struct nest *k = w->k;
	int indent = w->l.indent;

	if (k->parallel >= 0)
		open_loop(w, k->parallel);
	for (int i = 0; i < k->nloops; i++)
		if (!k->loop[i].reduced && i != k->parallel)
			open_loop(w, i);
	for (int phase = 0; phase < k->nphases; phase++) {
		row_block(w, phase);
		phase_loop(w, phase);
	}
	close_loops(w, indent);
}

/* ---- one row in parts ---- */

void body_parts(struct writer *w)
{
	const struct nest *k = w->k;
	const char *all = k->loop[k->cut].extent;
	long long n = (long long)k->grain;

	line(w, "for (int64_t part = lo; part < hi; part++) {");
	w->l.indent++;
	line(w, "const int64_t start = %lld * part;", n);
	line(w, "const int64_t end = %s - start < %lld ? %s : start + %lld;",
	     all, n, all, n);
	text_add(&w->l.t, "\n");
	phase_loop(w, 0);
	for (int i = 0; i < k->nbody; i++)
		if (node_is_fold(k->body[i]))
			line(w, "args->%s[part] = %s;", k->name[i],
			     k->name[i]);
	put_close(&w->l, w->l.indent - 1);
}

void body_whole(struct writer *w, const char *parts)
{
	const struct nest *k = w->k;

	for (int i = 0; i < k->nbody; i++)
		if (node_is_fold(k->body[i]))
			start_fold(w, i);
	line(w, "for (int64_t i = 0; i < %s; i++) {", parts);
	w->l.indent++;
	for (int i = 0; i < k->nbody; i++)
		if (node_is_fold(k->body[i]))
			line(w, "%s",
			     expr_accumulate(k->a, k->body[i], k->vectors,
					     k->name[i],
					     arena_text(k->a, "%s_parts[i]",
							k->name[i]), NULL));
	put_close(&w->l, w->l.indent - 1);
	row_block(w, 1);
}
