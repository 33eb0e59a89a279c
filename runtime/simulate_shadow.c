/*
 * simulate_shadow.c: who accessed each byte of a rank's memory last, as
 * intervals, and races. Intervals are cut, never joined: their bounds are
 * those of buffers and pieces, of which a program has so many and no more.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/simulate.h"

bool shadow_init(struct shadow *w, int64_t bytes)
{
	w->room = 16;
	w->at = calloc((size_t)w->room, sizeof *w->at);
	if (!w->at)
		return false;
	w->at[0] = (struct interval){.hi = bytes, .write.rank = -1};
	w->n = 1;
	return true;
}

void shadow_free(struct shadow *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->at[i].read);
	free(w->at);
}

/* ---- intervals ---- */

static int interval_at(const struct shadow *w, int64_t at)
{
	int lo = 0, hi = w->n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (w->at[mid].hi <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool copy_reads(struct interval *to, const struct interval *from)
{
	to->read = NULL;
	to->room = to->nreads;
	if (!to->nreads)
		return true;
	to->read = malloc((size_t)to->nreads * sizeof *to->read);
	if (to->read)
		memcpy(to->read, from->read,
		       (size_t)to->nreads * sizeof *to->read);
	return to->read != NULL;
}

/* Cuts interval I at byte AT, which is inside. */
static bool cut(struct shadow *w, int i, int64_t at)
{
	struct interval *x;

	if (w->n == w->room) {
		x = realloc(w->at, 2 * (size_t)w->room * sizeof *x);
		if (!x)
			return false;
		w->at = x;
		w->room *= 2;
	}
	x = &w->at[i];
	memmove(x + 1, x, (size_t)(w->n - i) * sizeof *x);
	w->n++;
	x[0].hi = x[1].lo = at;
	if (copy_reads(&x[1], &x[0]))
		return true;
	x[1].nreads = x[1].room = 0;
	return false;
}

/* The index of the interval that begins at AT; -1: out of memory. */
static int interval_from(struct shadow *w, int64_t at)
{
	int i = interval_at(w, at);

	if (i == w->n || w->at[i].lo == at)
		return i;
	return cut(w, i, at) ? i + 1 : -1;
}

/* ---- readers ---- */

/* Keeps the latest of each rank. */
static void compact(struct interval *x, int *seen)
{
	int n = 0;

	for (int i = 0; i < x->nreads; i++)
		seen[x->read[i].rank] = i;
	for (int i = 0; i < x->nreads; i++)
		if (seen[x->read[i].rank] == i)
			x->read[n++] = x->read[i];
	x->nreads = n;
}

static bool make_room(struct interval *x, int *seen)
{
	int room = x->room ? 2 * x->room : 2;
	struct visit *read;

	if (x->nreads < x->room)
		return true;
	compact(x, seen);
	if (x->nreads < x->room - x->room / 4)
		return true;
	read = realloc(x->read, (size_t)room * sizeof *read);
	if (!read)
		return false;
	x->read = read;
	x->room = room;
	return true;
}

static bool add_read(struct interval *x, const struct visit *v, int *seen)
{
	enum { LOOK_BACK = 4 };

	for (int i = x->nreads; i-- > 0 && i >= x->nreads - LOOK_BACK;)
		if (x->read[i].rank == v->rank) {
			x->read[i] = *v;
			return true;
		}
	if (!make_room(x, seen))
		return false;
	x->read[x->nreads++] = *v;
	return true;
}

/* ---- races ---- */

struct access {
	struct actor *a, *owner;
	int64_t lo, hi;
	bool write;
};

static void tell_race(const struct access *x, const struct visit *before,
		      const struct interval *at, bool wrote)
{
	const struct simulation *s = x->a->s;
	int64_t lo = at->lo > x->lo ? at->lo : x->lo;
	int64_t hi = at->hi < x->hi ? at->hi : x->hi;
	bool mail = lo < CONTROL_BYTES;
	char now[200], then[200];

	act_text(s, x->a->act, now, sizeof now);
	act_text(s, before->act, then, sizeof then);
	lo -= mail ? 0 : CONTROL_BYTES;
	hi -= mail ? 0 : CONTROL_BYTES;
	actor_blame(x->a,
		    "race: rank %d %s bytes %lld to %lld of rank %d's "
		    "%s in %s; rank %d has %s them in %s, and nothing orders "
		    "the two",
		    x->a->rank, x->write ? "writes" : "reads", (long long)lo,
		    (long long)hi, x->owner->rank, mail ? "mail" : "arena", now,
		    before->rank, wrote ? "written" : "read", then);
}

static void check(const struct access *x, const struct interval *at)
{
	const struct visit *w = &at->write;

	if (w->rank >= 0 && !order_knows(x->a, w->rank, w->epoch))
		tell_race(x, w, at, true);
	for (int i = 0; x->write && i < at->nreads; i++) {
		const struct visit *r = &at->read[i];

		if (!order_knows(x->a, r->rank, r->epoch))
			tell_race(x, r, at, false);
	}
}

/* False when out of memory. */
static bool visit(const struct access *x, struct interval *at)
{
	struct visit v = {x->a->act, x->a->rank, x->a->clock[x->a->rank]};

	check(x, at);
	if (!x->write)
		return add_read(at, &v, x->a->s->seen);
	at->write = v;
	at->nreads = 0;
	return true;
}

void shadow_access(struct actor *a, struct actor *owner, int64_t lo, int64_t hi,
		   bool write)
{
	struct access x = {a, owner, lo, hi, write};
	struct shadow *w = &owner->shadow;
	bool good;
	int i;

	if (lo >= hi || a->wrong)
		return;
	i = interval_from(w, lo);
	good = i >= 0 && interval_from(w, hi) >= 0;
	for (; good && i < w->n && w->at[i].lo < hi; i++)
		good = visit(&x, &w->at[i]);
	if (!good)
		actor_blame(a, "out of memory");
}
