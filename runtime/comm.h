/*
 * comm.h: how the ranks of a program see one another. An engine gives each
 * rank an arena that its peers can read and a control block of flags; comm.c
 * posts and awaits the flags, whatever the engine.
 */
#ifndef SBP_COMM_H
#define SBP_COMM_H

#include <sched.h>
#include <stdatomic.h>

#include "runtime/formats.h"

/* Moves of a step count in one lane, what main and embedding programs do
 * (get, save, show) in the other. */
enum lane { LANE_MOVE, LANE_HOST, LANES };
enum flag {
	FLAG_READY,		/* my data may be read */
	FLAG_DONE,		/* I have read what I need of others */
	FLAGS
};
enum { CACHE_LINE = 64, PAGE = 4096 };
/* Of a message, and of one that has room on the line of its number; places
 * for either. */
enum { MAIL_BYTES = 8192 - CACHE_LINE, NOTE_BYTES = CACHE_LINE - 8 };
enum { MAILS = 2, NOTES = 256 };
enum { CONTROL_BYTES = 5 * 4096 + MAILS * 8192 };

/* Where a rank stands; see struct control. */
enum standing { STANDING_RUNS, STANDING_FAILED, STANDING_CLOSED };

/* A counter alone on its cache line. Only its rank writes it, and it never
 * falls. */
struct counter {
	_Alignas(CACHE_LINE) _Atomic uint64_t at;
};

/* A message lies beside its number, so for a note one look brings both. It is
 * that of move N for whoever reads this rank in move N. */
struct note {
	_Alignas(CACHE_LINE) _Atomic uint64_t n;
	unsigned char at[NOTE_BYTES];
};
struct mail {
	_Alignas(CACHE_LINE) _Atomic uint64_t n;
	_Alignas(CACHE_LINE) unsigned char at[MAIL_BYTES];
};

/* One a rank, read by all. */
struct control {
	struct counter flag[LANES][FLAGS];
	/* Sleepers on this rank's flags wait on `wake`, which changes with
	 * each flag that is posted while anyone sleeps. */
	_Alignas(CACHE_LINE) _Atomic uint32_t wake;
	_Atomic uint32_t sleepers;
	_Alignas(CACHE_LINE) _Atomic uint32_t standing;
	uint32_t verdict;		/* a status, for comm_vote */
	int64_t number[4];		/* for comm_greatest */
	uint64_t magic;
	cpu_set_t cores;		/* that it may run on */
	uint32_t follows;		/* failed because another had */
	char why[sizeof(sbp_message)];	/* of STANDING_FAILED */
	struct note note[NOTES];	/* by turns: see mail.c */
	struct mail mail[MAILS];
};
_Static_assert(sizeof(struct control) <= CONTROL_BYTES, "control block");

/* The places of both kinds of messages are two rings; see mail.c. */
enum ring { RING_NOTES, RING_MAILS, RINGS };
struct letter;
/* What a rank knows of its own messages and of a peer's. */
struct outbox {
	int next;			/* the place of the next one */
	struct {
		uint64_t n;		/* the message there */
		const struct letter *letter;
	} sent[NOTES];
};
struct correspondent {
	uint64_t finished;		/* moves that it is known to have */
	struct {
		int next;		/* the first place not looked at */
		uint64_t seen;		/* the number before it */
	} in[RINGS];
};

struct comm {
	int rank, world;
	struct control **control;	/* by rank; [rank] is its own */
	unsigned char **arena;		/* by rank */
	int64_t *arena_bytes;		/* by rank; of processes */
	int *pidfd;			/* by rank, or -1 */
	double timeout;			/* seconds */
	int spins, most_spins;		/* of a wait, before it yields */
	bool follows;			/* saw that another has failed */
	uint64_t host;			/* operations in LANE_HOST so far */
	struct outbox out[RINGS];
	struct correspondent *peer;	/* by rank */
	uint64_t wait_ticks;		/* in waits that were not over at once */
	uint64_t start_ticks;		/* when it was started */
	double start_seconds;
	int memory;			/* shm: the memfd, or -1 */
	struct sbp_group *group;	/* ranks are threads */
	struct simulation *simulation;	/* ... of which one runs at a time */
};

/* ---- comm.c ---- */

/* In two halves, with the meeting of the ranks between: this rank's memory is
 * there; so are all others', and waits suit the cores that they share. */
void comm_start(struct comm *c);
void comm_begin(struct comm *c);
void comm_post(struct comm *c, enum lane lane, enum flag flag, uint64_t n);
/* The same in two halves: sleepers see the flag only after comm_wake, which
 * long waits call too. */
void comm_mark(struct comm *c, enum lane lane, enum flag flag, uint64_t n);
void comm_wake(struct comm *c);
/* Returns once PEER has posted N, or says why that will not happen: PEER has
 * died, failed or closed, or the time limit has passed. */
sbp_status comm_wait(struct comm *c, int peer, enum lane lane, enum flag flag,
		     uint64_t n, sbp_message *e);
/* The same of a counter of PEER's. */
struct watch {
	_Atomic uint64_t *at;
	uint64_t n;
};
static inline bool comm_arrived(const struct watch *w)
{
	return atomic_load_explicit(w->at, memory_order_acquire) >= w->n;
}
sbp_status comm_watch(struct comm *c, int peer, const struct watch *w,
		      sbp_message *e);
/* Says so if any other rank has died or failed. */
sbp_status comm_look(struct comm *c, sbp_message *e);
/* All ranks have come here. */
sbp_status comm_barrier(struct comm *c, sbp_message *e);
/* All ranks give a status; *worst is the lowest rank whose is not SBP_OK, or
 * -1, and *status what it gave. */
sbp_status comm_vote(struct comm *c, sbp_status mine, int *worst,
		     sbp_status *status, sbp_message *e);
/* The greatest over the ranks of each of N <= 4 numbers. */
sbp_status comm_greatest(struct comm *c, int n, int64_t *number,
			 sbp_message *e);
/* Tells the peers, if they can see this rank, that it has failed, or has ended
 * in good order. */
void comm_fail(struct comm *c, const char *why);
void comm_end(struct comm *c);
/* Cores that this process may use. */
int comm_cores(void);
double comm_seconds(void);	/* of a clock that only goes forward */
/* A clock that costs next to nothing, and the length of its tick. */
uint64_t comm_ticks(void);
double comm_tick(const struct comm *c);

/* ---- mail.c: small messages ---- */

/* What a rank sends to its readers in a move. The list must stay. */
struct letter {
	const void *from;
	int64_t bytes;
	int64_t most;		/* bytes of any rank in this move */
	const int *reader;
	int nreaders;
};
sbp_status mail_put(struct comm *c, const struct letter *l, uint64_t n,
		    sbp_message *e);
/* *at is what PEER sends in move N, where nobody sends more than MOST bytes;
 * it lies there until this rank posts FLAG_DONE for N. */
sbp_status mail_get(struct comm *c, int peer, int64_t most, uint64_t n,
		    const unsigned char **at, sbp_message *e);

/* ---- comm_shm.c: ranks of one host ---- */

struct env;
/* Gives this rank BYTES of zeroed arena, of TOTAL that all ranks take, and
 * maps those of its peers. */
sbp_status shm_open_ranks(struct comm *c, const struct env *env,
			  uint64_t plan_hash, int64_t bytes, int64_t total,
			  sbp_message *e);
/* The same for ranks that are threads of this process. */
sbp_status group_join(struct comm *c, struct sbp_group *g, int rank,
		      uint64_t plan_hash, int64_t bytes, int world,
		      sbp_message *e);
/* Of a group whose ranks S runs by turns. */
void group_simulate(struct sbp_group *g, struct simulation *s);
/* Unmaps everything; the flags must no longer be needed. */
void shm_close_ranks(struct comm *c);

#endif
