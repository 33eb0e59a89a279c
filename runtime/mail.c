/*
 * mail.c: small messages. What a rank sends in a move it copies beside its
 * flags, in two places by turns; so a message is one look for its reader, and
 * the sender need not wait until it has been read.
 */
#include <string.h>

#include "runtime/private.h"

enum { FETCHED_BYTES = 2048 };

/* What fits on the line of the number lies there. */
static bool is_note(int64_t most)
{
	return most <= NOTE_BYTES;
}

/* A place is free when all readers of what is there have finished that move.
 * Most often they are known to have, by a message of theirs that came since. */
static sbp_status free_place(struct comm *c, int place, sbp_message *e)
{
	uint64_t n = c->out.sent[place].n;
	const struct letter *l = c->out.sent[place].letter;

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
	int place = c->out.next;
	struct mail *mail = &c->control[c->rank]->mail[place];
	unsigned char *to;

	SBP_TRY(free_place(c, place, e));
	to = is_note(l->most) ? mail->note : mail->at;
	if (c->simulation) {
		simulate_access(c, c->rank, l->from, l->bytes, false);
		simulate_access(c, c->rank, to, l->bytes, true);
	}
	memcpy(to, l->from, (size_t)l->bytes);
	atomic_store_explicit(&mail->n, n, memory_order_release);
	if (c->simulation)
		simulate_send(c, n);
	c->out.sent[place].n = n;
	c->out.sent[place].letter = l;
	c->out.next = !place;
	return SBP_OK;
}

/* The lines of a message are fetched side by side. */
static void fetch_lines(const unsigned char *at, int64_t bytes)
{
	for (int64_t i = 0; i < bytes && i < FETCHED_BYTES; i += CACHE_LINE)
		__builtin_prefetch(at + i);
}

/* A peer may have sent messages to others, so the place is only likely. */
sbp_status mail_get(struct comm *c, int peer, int64_t most, uint64_t n,
		    const unsigned char **at, sbp_message *e)
{
	struct mail *mail = c->control[peer]->mail;
	int place = c->peer[peer].next;
	struct watch w = {&mail[place].n, &mail[!place].n, n};

	if (c->simulation)
		SBP_TRY(simulate_receive(c, peer, n, e));
	SBP_TRY(comm_watch(c, peer, &w, e));
	if (atomic_load_explicit(&mail[place].n, memory_order_acquire) != n)
		place = !place;
	*at = is_note(most) ? mail[place].note : mail[place].at;
	if (!is_note(most))
		fetch_lines(*at, most);
	c->peer[peer].next = !place;
	if (c->peer[peer].finished < n - 1)
		c->peer[peer].finished = n - 1;
	return SBP_OK;
}
