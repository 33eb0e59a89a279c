/*
 * simulate.h: all ranks of a program as threads of one process, of which one
 * runs at a time, so that a run depends on nothing but its seed. What the
 * ranks do is held against the order that their flags and messages make: two
 * accesses of the same bytes, one of them a write, which nothing orders are a
 * race, whichever came first in this run. s is the simulation, a an actor: a
 * rank in it.
 */
#ifndef SBP_SIMULATE_H
#define SBP_SIMULATE_H

#include <pthread.h>

#include "runtime/private.h"

/* ---- simulate.c: who runs ---- */

enum { MAIL_CHANNEL = LANES * FLAGS, CHANNELS };
enum { KEPT_BYTES = 1 << 20 };
enum { CLOCK_LANES = 16 };	/* clocks are a multiple of this long */

/* What a rank is doing, for people. */
struct act {
	enum { ACT_OUTSIDE, ACT_MOVE, ACT_CALL, ACT_TENSOR } kind;
	const void *of;		/* a sbp_move, sbp_access or sbp_tensor */
};

/* What was known when a flag or a message was posted. */
struct stamp {
	uint64_t n;
	int32_t *clock;	/* by rank: what of it has happened before */
};
struct channel {
	struct stamp *ring;	/* the latest */
	uint64_t count;		/* of all so far */
};

/* Somebody's latest access of an interval. */
struct visit {
	struct act act;
	int rank;		/* -1: nobody */
	int32_t epoch;
};
struct interval {
	int64_t lo, hi;		/* bytes from the control block on */
	struct visit write;
	struct visit *read;	/* since that */
	int nreads, room;
};
struct shadow {
	struct interval *at;	/* ascending, without gaps */
	int n, room;
};

/* A source that must not change while others read it. */
struct seal {
	enum lane lane;
	uint64_t n, hash;
	const unsigned char *at;
	int64_t bytes;
	int left;		/* readers that are not done */
};

struct actor {
	struct simulation *s;
	int rank;
	pthread_t thread;
	pthread_cond_t woken;
	bool started, live;
	sbp_status status;		/* of its body */
	const struct watch *watch;	/* what it waits for, or NULL */
	int peer;			/* of whom; -1: of all */
	int awaited;			/* and in which channel */
	struct act act;
	int32_t *clock;			/* by rank */
	struct channel channel[CHANNELS];
	_Atomic uint64_t sent;		/* the number of its last message */
	struct shadow shadow;		/* of its own memory */
	int moves;			/* of this step so far */
	const struct exchange *x;	/* that runs */
	const unsigned char *source;	/* NULL: may change */
	struct seal seal;
	bool wrong;
	sbp_message error;
};

struct simulation {
	const sbp_program *p;
	const sbp_trace *trace;		/* by rank class */
	struct sbp_group *group;
	struct actor *actor;		/* by rank */
	pthread_mutex_t lock;
	struct actor *turn;		/* who runs */
	bool in_turns;
	uint64_t random;
	bool failed;			/* waits are over */
	bool stuck, told;		/* a deadlock, and one rank says so */
	bool complained;		/* main has said what failed */
	unsigned history;		/* stamps of a channel that are kept */
	int *seen;			/* by rank: scratch */
	/* Part of an arena, as it was before calls that now run. */
	unsigned char *kept;
	int64_t kept_at, kept_bytes;
	uint64_t steps;			/* that a rank has done */
	void (*body)(struct actor *a, void *context);
	void *context;
};

/* NULL when out of memory. SEED 0: the ranks take turns. */
struct simulation *simulation_new(const sbp_program *p, const sbp_trace *trace,
				  uint64_t seed);
void simulation_free(struct simulation *s);
/* Runs BODY once for each rank, as threads, one at a time. It opens its model
 * with s->group. */
sbp_status simulation_run(struct simulation *s,
			  void (*body)(struct actor *a, void *context),
			  void *context, sbp_message *e);
/* The same draw of numbers on every machine. */
uint64_t simulation_draw(struct simulation *s);
/* "all-gather(0) of 'h' (m.sbp:7)" */
void act_text(const struct simulation *s, struct act act, char *to,
	      size_t size);
/* The first of what is wrong stays, until the rank can return it. */
void actor_blame(struct actor *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static inline struct actor *actor_of(const struct comm *c)
{
	return &c->simulation->actor[c->rank];
}

/* ---- simulate_order.c: what happens before what ---- */

bool order_init(struct actor *a);
/* Of one of PEER's flags; -1 for other places. */
int channel_of(const struct control *peer, const _Atomic uint64_t *at);
void order_free(struct actor *a);
void order_post(struct actor *a, int channel, uint64_t n);
/* A has seen that PEER posted N. */
void order_join(struct actor *a, int peer, int channel, uint64_t n);
/* Whether all that RANK did up to EPOCH has happened before. */
static inline bool order_knows(const struct actor *a, int rank, int32_t epoch)
{
	return rank == a->rank || a->clock[rank] >= epoch;
}

/* ---- simulate_step.c: what ranks do ---- */

/* This rank gives its source of a->x to be read as N; it has read as N what it
 * needs of others. */
void seal_source(struct actor *a, enum lane lane, uint64_t n);
void unseal_sources(struct actor *a, enum lane lane, uint64_t n);

/* ---- simulate_shadow.c: races ---- */

bool shadow_init(struct shadow *w, int64_t bytes);
void shadow_free(struct shadow *w);
/* A reads or writes bytes LO to HI of OWNER's memory. */
void shadow_access(struct actor *a, struct actor *owner, int64_t lo,
		   int64_t hi, bool write);

#endif
