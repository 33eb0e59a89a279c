/*
 * mail.c: small messages. What a rank sends in a move it copies beside its
 * flags; so a message is one look for its reader, and the sender need not wait
 * until it has been read.
 *
 * The places are a ring that the sender goes round, so in it numbers rise, but
 * for the one step from the newest message to the oldest. A reader goes round
 * after the sender. It looks at the messages to others too, if they have not
 * been overwritten, to come to its own.
 */
#include <string.h>

#include "runtime/private.h"

enum { FETCHED_BYTES = 2048 };

static const int last_place[RINGS] = {NOTES - 1, MAILS - 1};

/* What fits on the line of the number lies there. */
static enum ring ring_of(int64_t most)
{
	return most <= NOTE_BYTES ? RING_NOTES : RING_MAILS;
}

static int next_place(enum ring ring, int place)
{
	return place < last_place[ring] ? place + 1 : 0;
}

static _Atomic uint64_t *number_at(struct control *c, enum ring ring, int place)
{
	return ring == RING_NOTES ? &c->note[place].n : &c->mail[place].n;
}

static unsigned char *text_at(struct control *c, enum ring ring, int place)
{
	return ring == RING_NOTES ? c->note[place].at : c->mail[place].at;
}

/* A place is free when all readers of what is there have finished that move.
 * Most often they are known to have, by a message of theirs that came since. */
static sbp_status free_place(struct comm *c, enum ring ring, int place,
			     sbp_message *e)
{
	uint64_t n = c->out[ring].sent[place].n;
	const struct letter *l = c->out[ring].sent[place].letter;

	for (int i = 0; l && i < l->nreaders; i++) {
		int r = l->reader[i];

		if (c->peer[r].finished >= n)
			continue;
		SBP_TRY(comm_wait(c, r, LANE_MOVE, FLAG_DONE, n, e));
		c->peer[r].finished = n;
	}
	return SBP_OK;
}

sbp_status mail_put(struct comm *c, const struct letter *l, uint64_t n,
		    sbp_message *e)
{
	enum ring ring = ring_of(l->most);
	struct outbox *out = &c->out[ring];
	struct control *own = c->control[c->rank];
	unsigned char *to = text_at(own, ring, out->next);

	SBP_TRY(free_place(c, ring, out->next, e));
	if (c->simulation) {
		simulate_access(c, c->rank, l->from, l->bytes, false);
		simulate_access(c, c->rank, to, l->bytes, true);
	}
	memcpy(to, l->from, (size_t)l->bytes);
	atomic_store_explicit(number_at(own, ring, out->next), n,
			      memory_order_release);
	if (c->simulation)
		simulate_send(c, n);
	out->sent[out->next].n = n;
	out->sent[out->next].letter = l;
	out->next = next_place(ring, out->next);
	return SBP_OK;
}

/* The place of PEER's message N, once it is there. Past it there may be newer
 * ones, if this rank has let the sender go round without looking. The next one
 * is fetched: a sender that runs ahead has written it. */
static sbp_status find_place(struct comm *c, int peer, enum ring ring,
			     uint64_t n, int *place, sbp_message *e)
{
	struct control *from = c->control[peer];
	uint64_t seen = c->peer[peer].in[ring].seen;
	int at = c->peer[peer].in[ring].next;

	while (seen < n) {
		struct watch w = {number_at(from, ring, at), seen + 1};

		SBP_TRY(comm_watch(c, peer, &w, e));
		seen = atomic_load_explicit(w.at, memory_order_acquire);
		*place = at;
		at = next_place(ring, at);
	}
	while (atomic_load_explicit(number_at(from, ring, *place),
				    memory_order_acquire) != n)
		*place = *place > 0 ? *place - 1 : last_place[ring];
	at = next_place(ring, *place);
	__builtin_prefetch((const void *)number_at(from, ring, at));
	c->peer[peer].in[ring].next = at;
	c->peer[peer].in[ring].seen = n;
	return SBP_OK;
}

/* The lines of a message are fetched side by side. */
static void fetch_lines(const unsigned char *at, int64_t bytes)
{
	for (int64_t i = 0; i < bytes && i < FETCHED_BYTES; i += CACHE_LINE)
		__builtin_prefetch(at + i);
}

sbp_status mail_get(struct comm *c, int peer, int64_t most, uint64_t n,
		    const unsigned char **at, sbp_message *e)
{
	enum ring ring = ring_of(most);
	int place = 0;

	if (c->simulation)
		SBP_TRY(simulate_receive(c, peer, n, e));
	SBP_TRY(find_place(c, peer, ring, n, &place, e));
	*at = text_at(c->control[peer], ring, place);
	if (ring == RING_MAILS)
		fetch_lines(*at, most);
	if (c->peer[peer].finished < n - 1)
		c->peer[peer].finished = n - 1;
	return SBP_OK;
}
