/*
 * simulate_order.c: what happens before what, by vector clocks. A post keeps
 * the clock of its rank; who sees it joins that clock, of the first post that
 * could satisfy the wait, not of a later one that this run happened to show.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/simulate.h"

static size_t clock_length(const struct simulation *s)
{
	return ((size_t)s->p->world + CLOCK_LANES - 1) / CLOCK_LANES *
	       CLOCK_LANES;
}

bool order_init(struct actor *a)
{
	a->clock = calloc(clock_length(a->s), sizeof *a->clock);
	for (int i = 0; i < CHANNELS; i++) {
		a->channel[i].ring =
			calloc(a->s->history, sizeof *a->channel[i].ring);
		if (!a->channel[i].ring)
			return false;
	}
	if (a->clock)
		a->clock[a->rank] = 1;
	return a->clock != NULL;
}

void order_free(struct actor *a)
{
	for (int i = 0; i < CHANNELS; i++) {
		struct stamp *ring = a->channel[i].ring;

		for (unsigned k = 0; ring && k < a->s->history; k++)
			free(ring[k].clock);
		free(ring);
	}
	free(a->clock);
}

int channel_of(const struct control *peer, const _Atomic uint64_t *at)
{
	const struct counter *flag = &peer->flag[0][0];

	for (int i = 0; i < LANES * FLAGS; i++)
		if (at == &flag[i].at)
			return i;
	return -1;
}

void order_post(struct actor *a, int channel, uint64_t n)
{
	struct channel *to = &a->channel[channel];
	struct stamp *stamp = &to->ring[to->count % a->s->history];
	size_t bytes = clock_length(a->s) * sizeof *a->clock;

	if (!stamp->clock)
		stamp->clock = malloc(bytes);
	if (!stamp->clock) {
		actor_blame(a, "out of memory");
		return;
	}
	memcpy(stamp->clock, a->clock, bytes);
	stamp->n = n;
	to->count++;
	a->clock[a->rank]++;
}

/* The first post of N or more. What is kept no longer is at worst one that
 * came later, which may hide a race but never makes one up; *sure: it is the
 * first. */
static const struct stamp *find_stamp(const struct actor *of, int channel,
				      uint64_t n, bool *sure)
{
	const struct channel *c = &of->channel[channel];
	uint64_t history = of->s->history;
	uint64_t oldest = c->count > history ? c->count - history : 0;
	const struct stamp *found = NULL;
	uint64_t i = c->count;

	while (i > oldest && c->ring[(i - 1) % history].n >= n)
		found = &c->ring[--i % history];
	*sure = i > oldest || oldest == 0;
	return found;
}

/* In lanes that become vectors: most of the time goes here. */
static void clock_join(int32_t *restrict to, const int32_t *restrict from,
		       size_t n)
{
	for (size_t i = 0; i < n; i += CLOCK_LANES)
		for (size_t k = i; k < i + CLOCK_LANES; k++)
			to[k] = to[k] > from[k] ? to[k] : from[k];
}

void order_join(struct actor *a, int peer, int channel, uint64_t n)
{
	static const char *const what[CHANNELS] = {
		"never gives its data", "never says that it has read",
		"never comes", "never says that it has read",
		"never sends its data"};
	bool sure;
	const struct stamp *stamp =
		find_stamp(&a->s->actor[peer], channel, n, &sure);

	if (!stamp || (sure && stamp->n != n)) {
		actor_blame(a, "wrong order: rank %d %s here, it has gone on",
			    peer, what[channel]);
		return;
	}
	if (a->clock[peer] >= stamp->clock[peer])
		return; /* and so all that it knew */
	clock_join(a->clock, stamp->clock, clock_length(a->s));
}
