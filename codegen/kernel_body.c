/*
 * kernel_body.c: what a fused kernel computes: its loops over rows, and in
 * each row the phases, which are loops over the elements.
 */

#include <string.h>

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

static const char *access_term(const struct nest *k, const struct access *x,
			       int i)
{
	if (x->stride == NULL)
		return index_term(k, x->loops, i);
	return arena_text(k->a, "%s%s", x->stride[i], k->loop[i].index);
}

/* "" for the first element. */
static const char *index_text(const struct nest *k, const struct access *x)
{
	const char *s = "";

	for (int i = 0; i < k->nloops; i++)
		if ((x->loops >> i & 1) && !k->loop[i].straight)
			s = arena_text(k->a, "%s%s%s", s, *s ? " + " : "",
				       access_term(k, x, i));
	return s;
}

static const char *pointer_text(const struct nest *k, const struct access *x)
{
	const char *at = index_text(k, x);

	return *at ? arena_text(k->a, "%s + %s", x->param, at) : x->param;
}

static const char *element_text(const struct nest *k, const struct access *x)
{
	const char *at = index_text(k, x);

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

static void store(struct writer *w, const struct access *x, const char *value)
{
	const struct nest *k = w->k;
	enum dtype t = x->v->type.dtype;
	const char *lanes;

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

/* Whether the running phase finds element I in memory, where an earlier one
 * left it. */
static bool is_at_home(const struct writer *w, int i)
{
	return w->open && w->k->home[i] != NULL && w->k->phase[i] < w->phase;
}

static const char *operand(const struct writer *w, const struct shared *s,
			   int i, int j)
{
	const struct nest *k = w->k;
	const struct access *x = &k->in[i][j];
	int from = k->from[i][j];

	if (x->ramp != NULL)
		return iota_text(k->a, x->ramp, x->index);
	if (from >= 0 && !is_at_home(w, from))
		return k->name[from];
	if (from >= 0)
		x = k->home[from];
	for (int l = 0; l < s->at.n; l++)
		if (s->at.at[l]->v == x->v && s->at.at[l]->loops == x->loops)
			return s->name.at[l];
	return load_text(k, x);
}

static const char *map_text(const struct writer *w, const struct shared *s,
			    int i)
{
	const struct nest *k = w->k;
	const struct node *n = k->body[i];
	const char *x[3] = {NULL};

	for (int j = 0; j < n->nin && j < 3; j++)
		x[j] = operand(w, s, i, j);
	return arena_text(k->a, "const %s %s = %s;",
			  expr_type(n->out[0]->type.dtype, k->vectors),
			  k->name[i], expr_map(k->a, n, k->vectors, x));
}

/* What operand J of node I is loaded from, or NULL. */
static const struct access *loaded(const struct writer *w, int i, int j)
{
	const struct nest *k = w->k;
	int from = k->from[i][j];

	if (from < 0)
		return &k->in[i][j];
	return is_at_home(w, from) ? k->home[from] : NULL;
}

static bool is_shared(const struct shared *s, const struct access *x)
{
	for (int l = 0; l < s->at.n; l++)
		if (s->at.at[l]->v == x->v && s->at.at[l]->loops == x->loops)
			return true;
	return false;
}

static void share(struct writer *w, const struct access *x)
{
	struct nest *k = w->k;
	struct shared *s = &w->shared;
	const char *name = arena_text(k->a, "%s_%d", x->param, s->at.n);

	line(w, "const %s %s = %s;", expr_type(x->v->type.dtype, k->vectors),
	     name, load_text(k, x));
	PUSH(k->a, s->at, x);
	PUSH(k->a, s->name, name);
}

/* A statement that would be too long loads its operands before. */
static void map_statement(struct writer *w, int i)
{
	const char *text;

	if (node_is_number(w->k->body[i]))
		return;
	text = map_text(w, &w->shared, i);
	for (int j = 0; strlen(text) + 8 * (size_t)w->l.indent > 79 &&
			j < w->k->body[i]->nin; j++) {
		const struct access *x = loaded(w, i, j);

		if (x != NULL && !is_shared(&w->shared, x))
			share(w, x);
		text = map_text(w, &w->shared, i);
	}
	line(w, "%s", text);
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
static bool find_needed(const struct writer *w, int phase, bool *needed)
{
	const struct nest *k = w->k;
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

			if (from >= 0 && is_element(k, from) &&
			    !is_at_home(w, from))
				needed[from] = true;
		}
	}
	return any;
}

static bool same_access(const struct access *a, const struct access *b)
{
	return a != NULL && a->v == b->v && a->loops == b->loops;
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
			uses += same_access(loaded(w, i, j), x);
	}
	return uses;
}

static void share_loads(struct writer *w, int phase, const bool *needed)
{
	const struct nest *k = w->k;

	for (int i = 0; i < k->nbody; i++) {
		if (!needed[i] && !folds_in(k, i, phase))
			continue;
		for (int j = 0; j < k->body[i]->nin; j++) {
			const struct access *x = loaded(w, i, j);

			if (x != NULL && !is_shared(&w->shared, x) &&
			    uses_of(w, x, phase, needed) >= 2)
				share(w, x);
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
			     operand(w, s, i, 0), lanes));
}

/* Where it belongs, or where later phases find it. */
static void store_element(struct writer *w, int i)
{
	const struct nest *k = w->k;

	if (k->out[i].v != NULL)
		store(w, &k->out[i], k->name[i]);
	else if (w->open && k->home[i] != NULL)
		store(w, k->home[i], k->name[i]);
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
			map_statement(w, i);
		w->done[i] = true;
		if (k->phase[i] == phase)
			store_element(w, i);
	}
}

/* ---- loops ---- */

static void open_loop(struct writer *w, int i)
{
	const struct nest *k = w->k;
	const struct loop *l = &k->loop[i];
	bool part = i == k->parallel, vector = i == k->lane && k->vectors;
	const char *end = part ? "hi" : l->extent;
	const char *start = part ? "lo" : "0";

	if (l->straight)
		return;
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

/* Whether a loop over the elements of a row is written. */
static bool has_loop(const struct nest *k)
{
	for (int i = 0; i < k->nloops; i++)
		if (k->loop[i].reduced && !k->loop[i].straight)
			return true;
	return false;
}

/* The loop of phase over the elements of a row. */
static void phase_loop(struct writer *w, int phase)
{
	const struct nest *k = w->k;
	bool *needed = NEW_N(k->a, bool, k->nbody);
	int indent = w->l.indent;

	w->phase = phase;
	w->open = has_loop(k);
	if (!find_needed(w, phase, needed))
		return;
	if (phase > 0 && w->open)
		text_add(&w->l.t, "\n");
	for (int i = 0; i < k->nbody; i++)
		if (folds_in(k, i, phase))
			start_fold(w, i);
	for (int i = 0; i < k->nloops; i++)
		if (k->loop[i].reduced)
			open_loop(w, i);
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

	if (w->open)
		w->shared = (struct shared){0};
	for (int i = 0; i < k->nbody; i++) {
		if (!k->d.row[i] || k->phase[i] != phase)
			continue;
		if (node_is_fold(k->body[i]))
			finish_fold(w, i);
		else
			map_statement(w, i);
		if (k->out[i].v != NULL)
			store(w, &k->out[i], k->name[i]);
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
