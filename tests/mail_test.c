/*
 * mail_test.c: the rings of small messages (runtime/mail.c). Rank 0 sends to
 * rank 1 and, once in a while, to rank 2, which is late: it finds its message
 * among those to rank 1, after the sender has gone round. Both send back now
 * and then. Ranks are threads of this process.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/private.h"

enum {
	WORLD = 3,
	MOVES = 8 * NOTES / 3,		/* the sender goes round in a step */
	AGAIN = 2 * NOTES / 3,		/* between messages to rank 2 */
	ONE_BACK = 25 * NOTES / 16,
	TWO_BACK = 15 * NOTES / 8,
	STEPS = 20,
	MOST = 400
};

static const int64_t from_at[] = {0}, to_at[] = {4096}, bytes[] = {8192};
static const sbp_placement on[WORLD] = {{"zero", 1, {1}, NULL, 0},
					{"one", 1, {1}, NULL, 1},
					{"two", 1, {1}, NULL, 2}};
static sbp_pattern out_one, out_two, back_one, back_two;
static sbp_move moves[MOVES];
static _Atomic int bad;

static sbp_pattern pattern(int from, int to, int64_t n)
{
	return (sbp_pattern){.dtype = SBP_I32, .rank = 1, .shape = {n},
			     .from = {.on = &on[from], .term = {{'B', 0, 0}}},
			     .to = {.on = &on[to], .term = {{'B', 0, 0}}},
			     .name = "move"};
}

/* N elements a message. */
static void set_moves(int64_t n)
{
	out_one = pattern(0, 1, n);
	out_two = pattern(0, 2, n);
	back_one = pattern(1, 0, n);
	back_two = pattern(2, 0, n);
	for (int i = 0; i < MOVES; i++) {
		moves[i] = (sbp_move){.how = &out_one, .value = "x", .line = 1,
				      .id = i, .from_at = from_at,
				      .to_at = to_at};
		if (i % AGAIN == AGAIN - 1)
			moves[i].how = &out_two;
		else if (i == ONE_BACK)
			moves[i].how = &back_one;
		else if (i == TWO_BACK)
			moves[i].how = &back_two;
	}
}

static int32_t value_of(const sbp_model *m, int move, int64_t i)
{
	return (int32_t)((int64_t)m->private_->steps * MOVES + move + i);
}

static sbp_status run_move(sbp_model *m, int move)
{
	const sbp_pattern *how = moves[move].how;
	int32_t *x = (int32_t *)m->arena, *y = (int32_t *)(m->arena + 4096);

	if (how->from.on->first == m->rank)
		for (int64_t i = 0; i < how->shape[0]; i++)
			x[i] = value_of(m, move, i);
	SBP_TRY(sbp_move_run(m, &moves[move]));
	if (how->to.on->first == m->rank)
		for (int64_t i = 0; i < how->shape[0]; i++)
			bad += y[i] != value_of(m, move, i);
	return SBP_OK;
}

static sbp_status step(sbp_model *m)
{
	if (m->rank == 2 && m->private_->steps % 4 == 0)
		usleep(2000);
	for (int i = 0; i < MOVES; i++)
		SBP_TRY(run_move(m, i));
	return SBP_OK;
}

static sbp_status (*const step_of[])(sbp_model *) = {step};
static sbp_program program = {.abi = SBP_ABI, .name = "mail",
			      .file = "mail.sbp", .world = WORLD,
			      .nclasses = 1, .nmoves = MOVES,
			      .arena_bytes = bytes, .step = step_of};

struct rank {
	struct sbp_group *group;
	int rank;
};

static void *run_rank(void *context)
{
	struct rank *r = context;
	sbp_options o = {.group = r->group, .rank = r->rank, .threads = 1};
	sbp_model *m;
	sbp_status status = sbp_open(&program, &o, &m);

	for (int i = 0; i < STEPS && status == SBP_OK; i++)
		status = sbp_step(m);
	if (status != SBP_OK) {
		printf("mail_test: %s\n", sbp_error(m));
		bad++;
	}
	sbp_close(m);
	return NULL;
}

static void run_ranks(int64_t n)
{
	struct sbp_group *g = sbp_group_new(WORLD);
	struct rank rank[WORLD];
	pthread_t thread[WORLD];

	set_moves(n);
	for (int r = 0; r < WORLD; r++) {
		rank[r] = (struct rank){g, r};
		pthread_create(&thread[r], NULL, run_rank, &rank[r]);
	}
	for (int r = 0; r < WORLD; r++)
		pthread_join(thread[r], NULL);
	sbp_group_free(g);
}

int main(void)
{
	run_ranks(1);		/* notes */
	run_ranks(MOST);	/* of the other ring */
	run_ranks(14);		/* a note that is full */
	if (bad)
		printf("mail_test: %d values differ\n", bad);
	return bad != 0;
}
