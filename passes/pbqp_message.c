/*
 * pbqp_message.c: what eliminating a variable leaves: a table over its
 * neighbours. Equal tables have one number, and what was computed from tables
 * is found again by their numbers, so that a layer that repeats costs one.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/pbqp.h"

static const size_t KEPT_MAX = 64 << 20; /* entries that are remembered */

/* ---- tables ---- */

static struct table *table_new(struct pbqp *q, const Cost *at, size_t size)
{
	struct table *t = NEW(q->a, struct table);

	t->id = q->ntables++;
	t->size = size;
	t->at = at;
	return t;
}

struct table *table_given(struct pbqp *q, const Cost *at, size_t size)
{
	void **slot = bytemap_at(q->a, &q->given, &at, sizeof at);

	if (!*slot)
		*slot = table_new(q, at, size);
	return *slot;
}

static struct table *table_make(struct pbqp *q, size_t size)
{
	Cost *at = malloc(sizeof *at * (size ? size : 1));
	struct table *t = table_new(q, at, size);

	if (!at)
		bug("out of memory for a table of %zu entries", size);
	t->made = at;
	PUSH(q->a, q->made, t);
	return t;
}

void table_drop(struct table *t)
{
	if (--t->uses > 0 || !t->made)
		return;
	free(t->made);
	t->made = NULL;
	t->at = NULL;
}

/* Whether the memory takes T. */
static bool table_keep(struct pbqp *q, struct table *t)
{
	if (q->kept + t->size > KEPT_MAX)
		return false;
	q->kept += t->size;
	t->uses++;
	return true;
}

static size_t stride_in(const struct factor *f, int var)
{
	for (int i = 0; i < f->n; i++)
		if (f->var[i] == var)
			return f->stride[i];
	return 0;
}

/* One walk over all choices of a bucket's scope: where each factor stands. */
struct walk {
	int nf, n, domain[MAX_SCOPE], at[MAX_SCOPE];
	const Cost **p; /* by factor: its entry at x = 0 */
	size_t *sx;     /* by factor: stride of x */
	size_t *s;      /* by factor, scope: stride */
};

static void walk_start(struct pbqp *q, struct walk *w, const struct bucket *b)
{
	w->nf = b->nf;
	w->n = b->n;
	w->p = NEW_N(q->a, const Cost *, b->nf + 1);
	w->sx = NEW_N(q->a, size_t, b->nf + 1);
	w->s = NEW_N(q->a, size_t, b->nf * b->n + 1);
	for (int j = 0; j < b->n; j++) {
		w->domain[j] = q->var[b->scope[j]].domain;
		w->at[j] = 0;
	}
	for (int i = 0; i < b->nf; i++) {
		w->p[i] = b->f[i]->table->at;
		w->sx[i] = stride_in(b->f[i], b->x);
		for (int j = 0; j < b->n; j++)
			w->s[i * b->n + j] = stride_in(b->f[i], b->scope[j]);
	}
}

static void walk_next(struct walk *w)
{
	for (int j = w->n - 1; j >= 0; j--) {
		bool wraps = ++w->at[j] == w->domain[j];

		for (int i = 0; i < w->nf; i++) {
			size_t s = w->s[i * w->n + j];

			w->p[i] += s;
			if (wraps)
				w->p[i] -= s * (size_t)w->domain[j];
		}
		if (!wraps)
			return;
		w->at[j] = 0;
	}
}

/* The least of SUM plus all factors, and where: the first of equals. */
static Cost least(const struct walk *w, const Cost *unary, Cost *sum,
		  int domain, uint16_t *where)
{
	int best = 0;

	memcpy(sum, unary, sizeof *sum * (size_t)domain);
	for (int i = 0; i < w->nf; i++) {
		const Cost *p = w->p[i];
		size_t s = w->sx[i];

		for (int x = 0; x < domain; x++)
			sum[x] += p[(size_t)x * s];
	}
	for (int x = 1; x < domain; x++)
		if (sum[x] < sum[best])
			best = x;
	*where = (uint16_t)best;
	return sum[best];
}

/* ---- messages ---- */

static void key_int(struct pbqp *q, size_t i)
{
	text_add_n(&q->key, (const char *)&i, sizeof i);
}

/* The number of these costs: equal ones have the same. */
static size_t values_id(struct pbqp *q, const Cost *at, int n)
{
	void **slot = bytemap_at(q->a, &q->values, at, sizeof *at * (size_t)n);

	if (!*slot)
		*slot = (void *)(intptr_t)++q->nvalues;
	return (size_t)(intptr_t)*slot;
}

/* All that a message depends on. */
static void key_of(struct pbqp *q, const struct bucket *b, const Cost *unary)
{
	size_t values = values_id(q, unary, q->var[b->x].domain);

	q->key.n = 0;
	key_int(q, values);
	key_int(q, (size_t)b->n);
	for (int j = 0; j < b->n; j++)
		key_int(q, (size_t)q->var[b->scope[j]].domain);
	for (int i = 0; i < b->nf; i++) {
		key_int(q, (size_t)b->f[i]->table->id);
		key_int(q, stride_in(b->f[i], b->x));
		for (int j = 0; j < b->n; j++)
			key_int(q, stride_in(b->f[i], b->scope[j]));
	}
}

/* Takes the least entry off all. */
Cost normalise(Cost *at, size_t n)
{
	Cost low = at[0];

	for (size_t i = 1; i < n; i++)
		if (at[i] < low)
			low = at[i];
	for (size_t i = 0; i < n; i++)
		at[i] -= low;
	return low;
}

/* What is left of a bucket once x takes its best value everywhere. */
static struct message *minimise(struct pbqp *q, struct bucket *b,
				const Cost *unary)
{
	int domain = q->var[b->x].domain;
	Cost *sum = malloc(sizeof *sum * (size_t)domain);
	struct message *m = NEW(q->a, struct message);
	struct walk w;

	m->table = table_make(q, b->size);
	m->best = NEW_N(q->a, uint16_t, b->size);
	if (!sum)
		bug("out of memory");
	walk_start(q, &w, b);
	for (size_t i = 0; i < b->size; i++) {
		m->table->made[i] = least(&w, unary, sum, domain, &m->best[i]);
		walk_next(&w);
	}
	m->shift = normalise(m->table->made, b->size);
	free(sum);
	return m;
}

struct message *message_of(struct pbqp *q, struct bucket *b, const Cost *unary)
{
	struct message *m;
	void **slot;

	key_of(q, b, unary);
	slot = bytemap_at(q->a, &q->memory, q->key.at, q->key.n);
	if (*slot)
		return *slot;
	m = minimise(q, b, unary);
	if (table_keep(q, m->table))
		*slot = m;
	return m;
}

struct table *sum_of(struct pbqp *q, const struct table *x,
		     const struct table *y)
{
	int key[2] = {x->id, y->id};
	void **slot = bytemap_at(q->a, &q->memory, key, sizeof key);
	struct table *t = *slot;

	if (t)
		return t;
	t = table_make(q, x->size);
	for (size_t i = 0; i < x->size; i++)
		t->made[i] = x->at[i] + y->at[i];
	if (table_keep(q, t))
		*slot = t;
	return t;
}

void tables_free(struct pbqp *q)
{
	for (int i = 0; i < q->made.n; i++)
		free(q->made.at[i]->made);
	text_free(&q->key);
}
