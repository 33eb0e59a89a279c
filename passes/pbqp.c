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

#include "passes/pbqp.h"

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
	tables_free(q);
	r.bound = q->constant;
	r.cost = cost_of(q, unary, choice);
	return r;
}
