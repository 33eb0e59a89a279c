/*
 * mail.c: small messages. What a rank sends in a move it copies beside its
 * flags, in two places by turns; so a message is one look for its reader, and
 * the sender need not wait until it has been read.
 */
#include <string.h>

#include "runtime/private.h"

/* A place is free when all readers of what is there have finished that move.
 * Most often they are known to have, by a message of theirs that came since. */
static sbp_status free_place(struct comm *c, int place, sbp_message *e)
{
	uint64_t n = c->out.sent[place].n;

	for (int i = 0; i < c->out.sent[place].nreaders; i++) {
		int r = c->out.sent[place].reader[i];

		if (c->peer[r].finished >= n)
			continue;
		SBP_TRY(comm_wait(c, r, LANE_MOVE, FLAG_DONE, n, e));
		c->peer[r].finished = n;
	}
	return SBP_OK;
}

sbp_status mail_put(struct comm *c, const void *from, int64_t bytes,
		    uint64_t n, const int *reader, int nreaders,
		    sbp_message *e)
{
	int place = c->out.next;
	struct mail *mail = &c->control[c->rank]->mail[place];

	SBP_TRY(free_place(c, place, e));
	memcpy(mail->at, from, (size_t)bytes);
	atomic_store_explicit(&mail->n, n, memory_order_release);
	c->out.sent[place].n = n;
	c->out.sent[place].reader = reader;
	c->out.sent[place].nreaders = nreaders;
	c->out.next = !place;
	return SBP_OK;
}

/* A peer may have sent messages to others, so the place is only likely. */
sbp_status mail_get(struct comm *c, int peer, uint64_t n,
		    const unsigned char **at, sbp_message *e)
{
	struct mail *mail = c->control[peer]->mail;
	int place = c->peer[peer].next;
	struct watch w = {&mail[place].n, &mail[!place].n, n};

	SBP_TRY(comm_watch(c, peer, &w, e));
	if (atomic_load_explicit(&mail[place].n, memory_order_acquire) != n)
		place = !place;
	*at = mail[place].at;
	c->peer[peer].next = !place;
	if (c->peer[peer].finished < n - 1)
		c->peer[peer].finished = n - 1;
	return SBP_OK;
}
