/*
 * pbqp.c: the least sum of cost tables, by elimination of variables (Bertele
 * and Brioschi; Dechter's buckets). The variable whose elimination leaves the
 * smallest table goes first, so that trees and ladders, which is what models
 * are, take time linear in their length. With one or two neighbours this is
 * the R1 and R2 reduction of register allocators.
 *
 * A table that would be too large is split: each part is then minimised by
 * itself, which gives a lower bound; the choice comes from the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum { MAX_SCOPE = 24, WIDE = 96 };
static const size_t KEPT_MAX = 64 << 20;	/* entries that are remembered */

/* Equal tables have the same number, so that what was computed from them is
 * found again: a layer that repeats is eliminated once. */
struct table {
	int id;
	size_t size;
	const Cost *at;
	Cost *made;		/* at, when it was made here */
	int uses;		/* factors and memories that hold it */
};

struct factor {
	int n;
	int *var;		/* ascending */
	size_t *stride;
	struct table *table;
	bool message;		/* made here, so its axes are in order */
	bool dead;
};

/* What eliminating a variable left: a table whose least entry is 0, what was
 * taken off, and the best values. */
struct message {
	struct table *table;
	Cost shift;
	uint16_t *best;
};

struct variable {
	int domain;
	LIST(struct factor *) factors;
	Cost *unary;
	bool done;
	size_t key;		/* entries of the table that it would leave */
	int heap;		/* its place in the heap */
};

/* How to choose a variable once those of the scope are chosen. */
struct step {
	int var, n;
	int *scope;
	uint16_t *best;			/* row-major over scope; or ... */
	LIST(struct factor *) factors;	/* ... by trying */
};

struct pbqp {
	struct arena *a;
	int n, room, nheap;
	struct variable *var;
	int *heap;
	LIST(struct factor *) all;	/* as given */
	LIST(struct step) steps;
	Cost constant;
	int *mark, stamp;
	struct bytemap given;	/* addresses of tables -> struct table */
	struct bytemap values;	/* the contents of unary costs -> a number */
	struct bytemap memory;	/* eliminations -> struct message, and sums of
				 * two tables -> struct table */
	LIST(struct table *) made;
	int ntables, nvalues;
	size_t kept;		/* entries that the memory holds */
	struct text key;
};

int pbqp_variable(struct pbqp *q, int domain)
{
	list_room(q->a, (void **)&q->var, q->n, &q->room, sizeof *q->var);
	q->var[q->n] = (struct variable){
		.domain = domain, .unary = NEW_N(q->a, Cost, domain)};
	return q->n++;
}

struct pbqp *pbqp_new(struct arena *a, int nvars, const int *domain)
{
	struct pbqp *q = NEW(a, struct pbqp);

	q->a = a;
	for (int i = 0; i < nvars; i++)
		pbqp_variable(q, domain[i]);
	return q;
}

static void attach(struct pbqp *q, struct factor *f)
{
	for (int i = 0; i < f->n; i++)
		PUSH(q->a, q->var[f->var[i]].factors, f);
}

static struct table *table_new(struct pbqp *q, const Cost *at, size_t size)
{
	struct table *t = NEW(q->a, struct table);

	t->id = q->ntables++;
	t->size = size;
	t->at = at;
	return t;
}

static struct table *table_given(struct pbqp *q, const Cost *at, size_t size)
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

static void table_drop(struct table *t)
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

/* Sorts the axes of F by variable; the strides go with them. */
static void sort_scope(struct factor *f)
{
	for (int i = 1; i < f->n; i++)
		for (int j = i; j && f->var[j] < f->var[j - 1]; j--) {
			int v = f->var[j];
			size_t s = f->stride[j];

			f->var[j] = f->var[j - 1];
			f->stride[j] = f->stride[j - 1];
			f->var[j - 1] = v;
			f->stride[j - 1] = s;
		}
}

/* Variables with one value only do not matter to any table. */
void pbqp_add(struct pbqp *q, int nvars, const int *vars, const Cost *table)
{
	struct factor *f = NEW(q->a, struct factor);
	size_t stride = 1;

	f->var = NEW_N(q->a, int, nvars);
	f->stride = NEW_N(q->a, size_t, nvars);
	for (int i = nvars - 1; i >= 0; i--) {
		if (q->var[vars[i]].domain == 1)
			continue;
		f->var[f->n] = vars[i];
		f->stride[f->n++] = stride;
		stride *= (size_t)q->var[vars[i]].domain;
	}
	sort_scope(f);
	if (f->n > MAX_SCOPE)
		bug("a table over %d variables", f->n);
	if (!f->n) {
		q->var[vars[0]].unary[0] += table[0];
	} else if (f->n == 1) {
		struct variable *v = &q->var[f->var[0]];

		for (int i = 0; i < v->domain; i++)
			v->unary[i] += table[i];
	} else {
		f->table = table_given(q, table, stride);
		attach(q, f);
		PUSH(q->a, q->all, f);
	}
}

/* ---- the heap: the cheapest variable first, then the first ---- */

static bool cheaper(const struct pbqp *q, int x, int y)
{
	if (q->var[x].key != q->var[y].key)
		return q->var[x].key < q->var[y].key;
	return x < y;
}

static void heap_put(struct pbqp *q, int at, int x)
{
	q->heap[at] = x;
	q->var[x].heap = at;
}

static void heap_up(struct pbqp *q, int at)
{
	int x = q->heap[at];

	for (; at && cheaper(q, x, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(q, at, q->heap[(at - 1) / 2]);
	heap_put(q, at, x);
}

static void heap_down(struct pbqp *q, int at)
{
	int x = q->heap[at];

	for (;;) {
		int child = 2 * at + 1;

		if (child >= q->nheap)
			break;
		if (child + 1 < q->nheap &&
		    cheaper(q, q->heap[child + 1], q->heap[child]))
			child++;
		if (!cheaper(q, q->heap[child], x))
			break;
		heap_put(q, at, q->heap[child]);
		at = child;
	}
	heap_put(q, at, x);
}

static int heap_pop(struct pbqp *q)
{
	int x = q->heap[0], last = q->heap[--q->nheap];

	if (q->nheap) {
		heap_put(q, 0, last);
		heap_down(q, 0);
	}
	return x;
}

/* ---- scopes ---- */

static void drop_dead(struct variable *v)
{
	int kept = 0;

	for (int i = 0; i < v->factors.n; i++)
		if (!v->factors.at[i]->dead)
			v->factors.at[kept++] = v->factors.at[i];
	v->factors.n = kept;
}

static size_t times(size_t a, size_t b)
{
	return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

/* The entries of the table that eliminating X leaves. A variable with very
 * many neighbours waits until they are gone. */
static size_t left_by(struct pbqp *q, int x)
{
	struct variable *v = &q->var[x];
	size_t size = 1;

	drop_dead(v);
	if (v->factors.n > WIDE)
		return SIZE_MAX;
	q->mark[x] = ++q->stamp;
	for (int i = 0; i < v->factors.n; i++) {
		struct factor *f = v->factors.at[i];

		for (int j = 0; j < f->n; j++) {
			if (q->mark[f->var[j]] == q->stamp)
				continue;
			q->mark[f->var[j]] = q->stamp;
			size = times(size, (size_t)q->var[f->var[j]].domain);
		}
	}
	return size;
}

static void update_key(struct pbqp *q, int x)
{
	q->var[x].key = left_by(q, x);
	heap_up(q, q->var[x].heap);
	heap_down(q, q->var[x].heap);
}

/* ---- eliminating one variable ---- */

/* Some factors of X, and the other variables that they read. */
struct bucket {
	int x, nf, n;
	struct factor **f;
	int scope[MAX_SCOPE];
	size_t size;		/* product of the scope's domains */
};

/* Adds the variables of F; false if the scope would be too long. */
static bool widen(struct pbqp *q, struct bucket *b, const struct factor *f)
{
	for (int i = 0; i < f->n; i++) {
		int y = f->var[i], at = b->n;

		if (y == b->x)
			continue;
		for (at = 0; at < b->n && b->scope[at] != y; at++)
			;
		if (at < b->n)
			continue;
		if (b->n == MAX_SCOPE)
			return false;
		b->scope[b->n++] = y;
		b->size = times(b->size, (size_t)q->var[y].domain);
	}
	return true;
}

static void sort_ints(int *at, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j && at[j] < at[j - 1]; j--) {
			int t = at[j];

			at[j] = at[j - 1];
			at[j - 1] = t;
		}
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
	const Cost **p;		/* by factor: its entry at x = 0 */
	size_t *sx;		/* by factor: stride of x */
	size_t *s;		/* by factor, scope: stride */
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
	void **slot = bytemap_at(q->a, &q->values, at,
				 sizeof *at * (size_t)n);

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
static Cost normalise(Cost *at, size_t n)
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

static struct message *message_of(struct pbqp *q, struct bucket *b,
				  const Cost *unary)
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

static struct factor *factor_of(struct pbqp *q, const struct bucket *b,
				struct table *t)
{
	struct factor *f = NEW(q->a, struct factor);
	size_t stride = 1;

	f->n = b->n;
	f->message = true;
	f->table = t;
	t->uses++;
	f->var = NEW_N(q->a, int, b->n + 1);
	f->stride = NEW_N(q->a, size_t, b->n + 1);
	memcpy(f->var, b->scope, sizeof(int) * (size_t)b->n);
	for (int i = b->n - 1; i >= 0; i--) {
		f->stride[i] = stride;
		stride *= (size_t)q->var[f->var[i]].domain;
	}
	return f;
}

static struct factor *same_scope(struct pbqp *q, const struct factor *f)
{
	struct variable *v = &q->var[f->var[0]];

	for (int i = 0; i < v->factors.n; i++) {
		struct factor *o = v->factors.at[i];

		if (o->message && !o->dead && o->n == f->n &&
		    !memcmp(o->var, f->var, sizeof(int) * (size_t)f->n))
			return o;
	}
	return NULL;
}

static struct table *sum_of(struct pbqp *q, const struct table *x,
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

/* Puts a message in its place: into the constant, a variable, another
 * message over the same variables, or among the factors. */
static void deliver(struct pbqp *q, struct factor *f, Cost shift)
{
	struct factor *old = f->n > 1 ? same_scope(q, f) : NULL;

	q->constant += shift;
	if (f->n == 1) {
		Cost *into = q->var[f->var[0]].unary;

		for (size_t i = 0; i < f->table->size; i++)
			into[i] += f->table->at[i];
	} else if (old) {
		struct table *t = sum_of(q, old->table, f->table);

		t->uses++;
		table_drop(old->table);
		old->table = t;
	} else if (f->n) {
		attach(q, f);
		return;
	}
	table_drop(f->table);
}

/* Takes as many of the factors from FIRST on as fit LIMIT together, one at
 * least. */
static int fill_bucket(struct pbqp *q, struct bucket *b, size_t limit,
		       struct factor **f, int nf)
{
	b->f = f;
	b->n = b->nf = 0;
	b->size = 1;
	while (b->nf < nf) {
		struct bucket wider = *b;

		if ((!widen(q, &wider, f[b->nf]) || wider.size > limit) &&
		    b->nf)
			break;
		wider.nf++;
		*b = wider;
	}
	sort_ints(b->scope, b->n);
	return b->nf;
}

/* The step keeps all factors: they are tried when the others are chosen. */
static void keep_factors(struct pbqp *q, struct step *s, struct variable *v)
{
	for (int i = 0; i < v->factors.n; i++)
		PUSH(q->a, s->factors, v->factors.at[i]);
}

static void eliminate(struct pbqp *q, int x, size_t limit)
{
	struct variable *v = &q->var[x];
	struct step s = {.var = x};
	const Cost *unary = v->unary;
	int done = 0;

	drop_dead(v);
	q->constant += normalise(v->unary, (size_t)v->domain);
	do {
		struct bucket b = {.x = x};
		struct message *m;
		struct factor *f;

		done += fill_bucket(q, &b, limit, v->factors.at + done,
				    v->factors.n - done);
		m = message_of(q, &b, unary);
		f = factor_of(q, &b, m->table);
		s.best = m->best;
		s.n = b.n;
		s.scope = f->var;
		if (done < v->factors.n || unary != v->unary)
			s.n = -1;
		unary = NEW_N(q->a, Cost, v->domain);
		deliver(q, f, m->shift);
	} while (done < v->factors.n);
	if (s.n < 0)
		keep_factors(q, &s, v);
	for (int i = 0; i < v->factors.n; i++) {
		v->factors.at[i]->dead = true;
		if (s.n >= 0)
			table_drop(v->factors.at[i]->table);
	}
	v->done = true;
	PUSH(q->a, q->steps, s);
}

/* ---- the order, and the way back ---- */

/* The variables that shared a factor with X have other tables now. */
static void refresh(struct pbqp *q, struct variable *v)
{
	for (int i = 0; i < v->factors.n; i++) {
		struct factor *f = v->factors.at[i];

		for (int j = 0; j < f->n; j++)
			if (!q->var[f->var[j]].done)
				update_key(q, f->var[j]);
	}
}

/* The entry of F for CHOICE, but with X for variable VAR (-1: none). */
static Cost entry(const struct factor *f, const int *choice, int var, int x)
{
	size_t at = 0;

	for (int j = 0; j < f->n; j++) {
		int c = f->var[j] == var ? x : choice[f->var[j]];

		at += f->stride[j] * (size_t)c;
	}
	return f->table->at[at];
}

static int by_trying(struct pbqp *q, const struct step *s, const int *choice)
{
	struct variable *v = &q->var[s->var];
	Cost least_cost = 0;
	int best = -1;

	for (int x = 0; x < v->domain; x++) {
		Cost c = v->unary[x];

		for (int i = 0; i < s->factors.n; i++)
			c += entry(s->factors.at[i], choice, s->var, x);
		if (best >= 0 && c >= least_cost)
			continue;
		least_cost = c;
		best = x;
	}
	return best;
}

static int by_table(struct pbqp *q, const struct step *s, const int *choice)
{
	size_t at = 0;

	for (int i = 0; i < s->n; i++)
		at = at * (size_t)q->var[s->scope[i]].domain +
		     (size_t)choice[s->scope[i]];
	return s->best[at];
}

/* Chooses in reverse order, and frees the tables that were kept for it. */
static void choose(struct pbqp *q, int *choice)
{
	for (int i = q->steps.n - 1; i >= 0; i--) {
		struct step *s = &q->steps.at[i];

		if (s->n >= 0) {
			choice[s->var] = by_table(q, s, choice);
			continue;
		}
		choice[s->var] = by_trying(q, s, choice);
		for (int j = 0; j < s->factors.n; j++)
			table_drop(s->factors.at[j]->table);
	}
}

static void forget(struct pbqp *q)
{
	for (int i = 0; i < q->made.n; i++)
		free(q->made.at[i]->made);
	text_free(&q->key);
}

static Cost cost_of(struct pbqp *q, Cost **unary, const int *choice)
{
	Cost c = 0;

	for (int i = 0; i < q->n; i++)
		c += unary[i][choice[i]];
	for (int i = 0; i < q->all.n; i++)
		c += entry(q->all.at[i], choice, -1, 0);
	return c;
}

/* Messages are added into the unary costs; the result is told from these. */
static Cost **copy_unary(struct pbqp *q)
{
	Cost **u = NEW_N(q->a, Cost *, q->n);

	for (int i = 0; i < q->n; i++) {
		size_t size = sizeof(Cost) * (size_t)q->var[i].domain;

		u[i] = arena_alloc(q->a, size);
		memcpy(u[i], q->var[i].unary, size);
	}
	return u;
}

struct pbqp_result pbqp_solve(struct pbqp *q, size_t limit, int *choice)
{
	struct pbqp_result r;
	Cost **unary = copy_unary(q);

	q->heap = NEW_N(q->a, int, q->n);
	q->mark = NEW_N(q->a, int, q->n);
	for (int i = 0; i < q->n; i++)
		q->var[i].key = left_by(q, i);
	for (int i = 0; i < q->n; i++) {
		heap_put(q, q->nheap++, i);
		heap_up(q, i);
	}
	while (q->nheap) {
		int x = heap_pop(q);

		eliminate(q, x, limit);
		refresh(q, &q->var[x]);
	}
	choose(q, choice);
	forget(q);
	r.bound = q->constant;
	r.cost = cost_of(q, unary, choice);
	return r;
}
