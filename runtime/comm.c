/*
 * comm.c: flags between ranks. A waiting rank spins a little, then sleeps on
 * a futex; while it sleeps it looks now and then whether its peers still live.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/private.h"

enum {
	LEAST_SPINS = 8,	/* a fraction of 1 us */
	MOST_SPINS = 2048,	/* 50 to 90 us */
	YIELDS = 40,		/* then: the peer may wait for this core */
	NAP_MS = 10,		/* between looks at the peers */
};

void comm_start(struct comm *c)
{
	cpu_set_t *own = &c->control[c->rank]->cores;

	if (sched_getaffinity(0, sizeof *own, own) != 0)
		CPU_ZERO(own);
	c->spins = c->most_spins = LEAST_SPINS;
	c->start_ticks = comm_ticks();
	c->start_seconds = comm_seconds();
}

/* A launcher may have bound each rank to a core of its own, so only all of
 * them together tell how many there are. */
void comm_begin(struct comm *c)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (int r = 0; r < c->world; r++)
		CPU_OR(&all, &all, &c->control[r]->cores);
	if (c->world <= CPU_COUNT(&all))
		c->spins = c->most_spins = MOST_SPINS;
}

double comm_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t comm_ticks(void)
{
#if defined __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return (uint64_t)(comm_seconds() * 1e9);
#endif
}

double comm_tick(const struct comm *c)
{
	uint64_t ticks = comm_ticks() - c->start_ticks;

	return ticks ? (comm_seconds() - c->start_seconds) / (double)ticks : 0;
}

int comm_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return (int)sysconf(_SC_NPROCESSORS_ONLN);
	return CPU_COUNT(&set);
}

static void pause_cpu(void)
{
#if defined __x86_64__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

/* Not FUTEX_PRIVATE: the word may be shared by processes. */
static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
	struct timespec nap = {0, NAP_MS * 1000000};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &nap, NULL, 0);
}

/* A sleeper counts itself before its last look at the flag; so either this
 * sees the sleeper, or the sleeper the flag. */
static void wake_sleepers(struct control *own)
{
	if (atomic_load(&own->sleepers) == 0)
		return;
	atomic_fetch_add(&own->wake, 1);
	syscall(SYS_futex, &own->wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The thread sanitizer knows no fences. */
static void fence(struct control *own)
{
#if defined __SANITIZE_THREAD__
	atomic_fetch_add(&own->wake, 0);
#else
	(void)own;
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void comm_wake(struct comm *c)
{
	struct control *own = c->control[c->rank];

	fence(own);
	wake_sleepers(own);
}

void comm_mark(struct comm *c, enum lane lane, enum flag flag, uint64_t n)
{
	atomic_store_explicit(&c->control[c->rank]->flag[lane][flag].at, n,
			      memory_order_release);
	if (c->simulation)
		simulate_post(c, lane, flag, n);
}

void comm_post(struct comm *c, enum lane lane, enum flag flag, uint64_t n)
{
	struct control *own = c->control[c->rank];

	atomic_store(&own->flag[lane][flag].at, n);
	if (c->simulation)
		simulate_post(c, lane, flag, n);
	wake_sleepers(own);
}

static void stand(struct comm *c, enum standing s)
{
	struct control *own = c->control[c->rank];

	atomic_store(&own->standing, s);
	if (c->simulation && s == STANDING_FAILED)
		simulate_failed(c);
	wake_sleepers(own);
}

static struct control *own_control(const struct comm *c)
{
	return c->control ? c->control[c->rank] : NULL;
}

void comm_fail(struct comm *c, const char *why)
{
	struct control *own = own_control(c);

	if (!own)
		return;
	strncpy(own->why, why, sizeof own->why - 1);
	own->follows = c->follows;
	stand(c, STANDING_FAILED);
}

void comm_end(struct comm *c)
{
	struct control *own = own_control(c);

	if (own && atomic_load(&own->standing) == STANDING_RUNS)
		stand(c, STANDING_CLOSED);
}

static bool has_died(const struct comm *c, int rank)
{
	struct pollfd p = {.fd = c->pidfd ? c->pidfd[rank] : -1,
			   .events = POLLIN};

	return p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

static sbp_status tell_death(const struct comm *c, sbp_message *e)
{
	for (int r = 0; r < c->world; r++)
		if (r != c->rank && has_died(c, r) &&
		    atomic_load(&c->control[r]->standing) == STANDING_RUNS)
			return message_set(e, SBP_FAILED, "rank %d has died",
					   r);
	return SBP_OK;
}

/* Of a rank that failed, and for its own reasons if FIRST. */
static sbp_status tell_failure(const struct comm *c, bool first,
			       sbp_message *e)
{
	for (int r = 0; r < c->world; r++) {
		const struct control *peer = c->control[r];
		char own[24];
		size_t skip;

		if (r == c->rank ||
		    atomic_load(&peer->standing) != STANDING_FAILED ||
		    (first && peer->follows))
			continue;
		skip = (size_t)snprintf(own, sizeof own, "rank %d, ", r);
		if (strncmp(peer->why, own, skip) != 0)
			skip = 0;
		return message_set(e, SBP_FAILED, "rank %d has failed: %.400s",
				   r, peer->why + skip);
	}
	return SBP_OK;
}

/* A rank that died comes first, then one that failed for its own reasons,
 * then any that failed. */
sbp_status comm_look(struct comm *c, sbp_message *e)
{
	c->follows = true;
	SBP_TRY(tell_death(c, e));
	SBP_TRY(tell_failure(c, true, e));
	SBP_TRY(tell_failure(c, false, e));
	c->follows = false;
	return SBP_OK;
}

/* Why waiting for PEER is in vain. A rank that ended in good order is missed
 * only where it is waited for. */
static sbp_status look_at_peers(struct comm *c, int peer, sbp_message *e)
{
	SBP_TRY(comm_look(c, e));
	if (atomic_load(&c->control[peer]->standing) == STANDING_CLOSED)
		return message_set(e, SBP_FAILED,
				   "rank %d has ended before", peer);
	return SBP_OK;
}

/* Spinning that was in vain makes the next time shorter: the peer may not
 * have a core of its own at all, whatever their number says. */
static bool spin(struct comm *c, const struct watch *w)
{
	for (int i = 0; i < c->spins; i++) {
		if (comm_arrived(w)) {
			if (c->spins < c->most_spins && i > LEAST_SPINS / 2)
				c->spins *= 2;
			return true;
		}
		if (i == LEAST_SPINS / 2)
			comm_wake(c);
		pause_cpu();
	}
	if (c->spins > LEAST_SPINS)
		c->spins /= 2;
	for (int i = YIELDS; i > 0; i--) {
		if (comm_arrived(w))
			return true;
		sched_yield();
	}
	return comm_arrived(w);
}

static void nap(struct control *peer, const struct watch *w)
{
	uint32_t seen;

	atomic_fetch_add(&peer->sleepers, 1);
	seen = atomic_load(&peer->wake);
	if (!comm_arrived(w) && atomic_load(&peer->standing) == STANDING_RUNS)
		futex_wait(&peer->wake, seen);
	atomic_fetch_sub(&peer->sleepers, 1);
}

static sbp_status watch_long(struct comm *c, int peer, const struct watch *w,
			     sbp_message *e)
{
	double end;

	if (spin(c, w))
		return SBP_OK;
	end = comm_seconds() + c->timeout;
	for (;;) {
		sbp_status status;

		nap(c->control[peer], w);
		if (comm_arrived(w))
			return SBP_OK;
		status = look_at_peers(c, peer, e);
		/* It may have posted just before it ended. */
		if (status != SBP_OK)
			return comm_arrived(w) ? SBP_OK : status;
		if (comm_seconds() > end)
			return message_set(e, SBP_FAILED,
					   "rank %d has not answered within "
					   "%g s (SBP_TIMEOUT)",
					   peer, c->timeout);
	}
}

sbp_status comm_watch(struct comm *c, int peer, const struct watch *w,
		      sbp_message *e)
{
	uint64_t start;
	sbp_status status;

	if (c->simulation)
		return simulate_watch(c, peer, w, e);
	if (comm_arrived(w))
		return SBP_OK;
	start = comm_ticks();
	status = watch_long(c, peer, w, e);
	c->wait_ticks += comm_ticks() - start;
	return status;
}

sbp_status comm_wait(struct comm *c, int peer, enum lane lane, enum flag flag,
		     uint64_t n, sbp_message *e)
{
	struct watch w = {&c->control[peer]->flag[lane][flag].at, n};

	return comm_watch(c, peer, &w, e);
}

sbp_status comm_barrier(struct comm *c, sbp_message *e)
{
	uint64_t n = ++c->host;

	comm_post(c, LANE_HOST, FLAG_READY, n);
	for (int r = 0; r < c->world; r++)
		if (r != c->rank)
			SBP_TRY(comm_wait(c, r, LANE_HOST, FLAG_READY, n, e));
	return SBP_OK;
}

/* What RANK gives is accessed: a verdict, numbers. */
static void given(struct comm *c, int rank, bool write)
{
	const struct control *own = c->control[rank];
	int64_t bytes = (int64_t)(offsetof(struct control, magic) -
				  offsetof(struct control, verdict));

	if (c->simulation)
		simulate_access(c, rank, &own->verdict, bytes, write);
}

/* What ranks give is read between two barriers. */
sbp_status comm_vote(struct comm *c, sbp_status mine, int *worst,
		     sbp_status *status, sbp_message *e)
{
	c->control[c->rank]->verdict = mine;
	given(c, c->rank, true);
	*worst = -1;
	*status = SBP_OK;
	SBP_TRY(comm_barrier(c, e));
	for (int r = c->world - 1; r >= 0; r--) {
		given(c, r, false);
		if (c->control[r]->verdict != SBP_OK) {
			*worst = r;
			*status = (sbp_status)c->control[r]->verdict;
		}
	}
	return comm_barrier(c, e);
}

sbp_status comm_greatest(struct comm *c, int n, int64_t *number,
			 sbp_message *e)
{
	memcpy(c->control[c->rank]->number, number, (size_t)n * sizeof *number);
	given(c, c->rank, true);
	SBP_TRY(comm_barrier(c, e));
	for (int r = 0; r < c->world; r++) {
		given(c, r, false);
		for (int i = 0; i < n; i++) {
			int64_t other = c->control[r]->number[i];

			number[i] = other > number[i] ? other : number[i];
		}
	}
	return comm_barrier(c, e);
}
