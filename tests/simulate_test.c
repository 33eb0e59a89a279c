/*
 * simulate_test.c: the simulation of ranks, on a program written by hand: x
 * (S(0)) is gathered to y, p = y is reduced to q, and x becomes a part of q.
 * It must find nothing wrong there, and say what is where the moves, their
 * offsets, or what the step does are broken.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/simulate.h"
#include "tests/checks.h"

/* ---- the program ---- */

enum { WORLD = 3, ROWS = 6, COLUMNS = 32, COUNT = ROWS * COLUMNS };
enum { AT_X = 0, AT_Y = 1024, AT_P = 2048, AT_Q = 3072, ARENA = 4096 };
enum { PIECE = ROWS / WORLD * COLUMNS * 4, WHOLE = COUNT * 4 };

static const sbp_placement line = {"line", 1, {WORLD}, NULL, 0};
static const sbp_placement pair = {"pair", 1, {2}, NULL, 0};
#define ONE(t)                                                    \
	{                                                         \
		.on = &line, .term = {t}, .order = { 0, 1, 2, 3 } \
	}
#define TWO(t)                                                    \
	{                                                         \
		.on = &pair, .term = {t}, .order = { 0, 1, 2, 3 } \
	}
#define B                 \
	{                 \
		'B', 0, 0 \
	}
#define S0                \
	{                 \
		'S', 0, 0 \
	}
#define P                   \
	{                   \
		'P', 0, '+' \
	}
#define MATRIX                \
	SBP_F32, 2,           \
	{                     \
		ROWS, COLUMNS \
	}

static const sbp_pattern gather = {MATRIX, ONE(S0), ONE(B), "all-gather(0)"};
static const sbp_pattern reduce = {MATRIX, ONE(P), ONE(B), "all-reduce(0)"};
static const sbp_pattern both = {MATRIX, TWO(P), TWO(B), "all-reduce(0)"};

/* Each rank is a class of its own, so that each can be broken by itself. */
static const unsigned short class_of[WORLD] = {0, 1, 2};
static const int64_t arena_bytes[WORLD] = {ARENA, ARENA, ARENA};
static int64_t x_at[WORLD], y_at[WORLD], p_at[WORLD], q_at[WORLD];
static sbp_move moves[2];

static const sbp_tensor tensors[] = {
	{"x", SBP_INPUT, MATRIX, ONE(S0), x_at, {0}, -1, NULL, 1},
	{"q", SBP_OUTPUT, MATRIX, ONE(B), q_at, {0}, -1, NULL, 3},
};

/* What a rank does in a step, and what its trace says. */
static struct part {
	int n, list[2]; /* moves */
	sbp_trace trace;
	int said[2];
	void (*before)(sbp_model *m, int move); /* more that it does */
} part[WORLD];

static const sbp_access accesses[] = {
	{AT_Y, WHOLE, "scale", "y", 2, 0},
	{AT_P, WHOLE, "scale", "p", 2, 1},
	{AT_Q, WHOLE, "update", "q", 3, 0},
	{AT_X, PIECE, "update", "x", 3, 1},
};
static const int until[] = {0, 2, 4};

static void calls_before(sbp_model *m, int k)
{
	if (k == 1)
		memcpy(m->arena + AT_P, m->arena + AT_Y, WHOLE);
	if (k == 2)
		memcpy(m->arena + AT_X, m->arena + AT_Q + m->rank * PIECE,
		       PIECE);
}

static sbp_status step(sbp_model *m)
{
	const struct part *own = &part[m->rank];

	for (int k = 0; k < own->n; k++) {
		calls_before(m, k);
		if (own->before)
			own->before(m, own->list[k]);
		SBP_TRY(sbp_move_run(m, &moves[own->list[k]]));
	}
	calls_before(m, 2);
	return SBP_OK;
}
static sbp_status (*const steps[WORLD])(sbp_model *) = {step, step, step};

static sbp_program program = {.abi = SBP_ABI,
			      .name = "test",
			      .file = "test.sbp",
			      .plan_hash = 1,
			      .world = WORLD,
			      .isa = "",
			      .nclasses = WORLD,
			      .class_of = class_of,
			      .arena_bytes = arena_bytes,
			      .step = steps,
			      .ntensors = 2,
			      .tensors = tensors,
			      .nmoves = 2};

/* A program in which nothing is wrong. */
static void mend(void)
{
	static const int64_t at[] = {AT_X, AT_Y, AT_P, AT_Q};
	int64_t *const of[] = {x_at, y_at, p_at, q_at};

	for (int i = 0; i < 4; i++)
		for (int r = 0; r < WORLD; r++)
			of[i][r] = at[i];
	moves[0] = (sbp_move){&gather, "x", 2, 0, x_at, y_at};
	moves[1] = (sbp_move){&reduce, "p", 3, 1, p_at, q_at};
	for (int r = 0; r < WORLD; r++)
		part[r] = (struct part){
			.n = 2,
			.list = {0, 1},
			.said = {0, 1},
			.trace = {2, part[r].said, until, accesses}};
	move_limits.mail = 0;
}

/* A rank that runs one move only, and says so. */
static void run_only(int rank, int move)
{
	static const int until_one[] = {0, 4};

	part[rank] = (struct part){
		.n = 1,
		.list = {move},
		.said = {move},
		.trace = {1, part[rank].said, until_one, accesses}};
}

/* ---- running it ---- */

static float result[COUNT];
static sbp_message first; /* what the first rank that failed says */
static int nsteps = 3;

static void run_steps(struct actor *a, sbp_model *m)
{
	float x[COUNT], q[COUNT];

	for (int i = 0; i < COUNT; i++)
		x[i] = (float)(i - 7);
	a->status = sbp_set(m, "x", x);
	for (int i = 0; i < nsteps && a->status == SBP_OK; i++)
		a->status = sbp_step(m);
	if (a->status == SBP_OK)
		a->status = sbp_get(m, "q", q);
	if (a->status == SBP_OK && a->rank == 0)
		memcpy(result, q, sizeof result);
}

static void body(struct actor *a, void *context)
{
	sbp_options o = {.group = a->s->group, .rank = a->rank, .threads = 1};
	void (*run)(struct actor *, sbp_model *) =
		*(void (**)(struct actor *, sbp_model *))context;
	sbp_model *m;

	a->status = sbp_open(&program, &o, &m);
	if (a->status == SBP_OK)
		run(a, m);
	if (a->status != SBP_OK && !m->private_->comm.follows && !first.text[0])
		message_set(&first, SBP_OK, "%s", sbp_error(m));
	sbp_close(m);
}

static bool run_as(void (*run)(struct actor *, sbp_model *), uint64_t seed)
{
	sbp_trace trace[WORLD];
	struct simulation *s;
	sbp_message e = {""};
	bool good = true;

	for (int r = 0; r < WORLD; r++)
		trace[r] = part[r].trace;
	first.text[0] = 0;
	s = simulation_new(&program, trace, seed);
	good = s && simulation_run(s, body, &run, &e) == SBP_OK;
	for (int r = 0; good && r < WORLD; r++)
		good = s->actor[r].status == SBP_OK;
	simulation_free(s);
	return good;
}

static bool run_model(uint64_t seed)
{
	return run_as(run_steps, seed);
}

/* Whatever the order, one rank says TEXT. */
static void expect_at(int at, const char *text)
{
	for (uint64_t seed = 0; seed < 6; seed++) {
		bool good = run_model(seed);

		check_at(!good && strstr(first.text, text), at, text);
		if (good || !strstr(first.text, text))
			printf("  seed %d: %s\n", (int)seed,
			       good ? "nothing" : first.text);
	}
}
#define EXPECT(text) expect_at(__LINE__, text)

/* ---- what is right ---- */

static void test_right(void)
{
	static const int64_t mail[] = {0, MAIL_BYTES};

	for (int k = 0; k < 2; k++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			mend();
			move_limits.mail = mail[k];
			memset(result, 0, sizeof result);
			CHECK(run_model(seed));
			CHECK(result[0] == -7 * 27 &&
			      result[COUNT - 1] == 184 * 27);
			CHECK(!first.text[0]);
		}
}

/* The two ranks write halves of each other's target. */
static void test_pair(void)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		mend();
		moves[1].how = &both;
		run_only(2, 0);
		nsteps = 1;
		CHECK(run_model(seed));
		nsteps = 3;
		CHECK(result[0] == -7 * 2 && result[COUNT - 1] == 184 * 2);
	}
}

/* ---- wrong order ---- */

static void test_order(void)
{
	mend();
	part[1].n = 1;
	EXPECT("rank 1, step 1: wrong order: "
	       "the step has ended, and move 1 of the plan is next");
	mend();
	part[2].list[0] = 1;
	part[2].list[1] = 0;
	EXPECT("rank 2, step 1, all-reduce(0) of 'p', test.sbp:3: wrong "
	       "order: this is move 1 of the plan, and move 0 is next");
	mend();
	part[0].trace.nmoves = 1;
	EXPECT("wrong order: after the last of 1 moves of this rank");
}

/* The trace says that all is well. */
static void test_mismatch(void)
{
	mend();
	part[2].list[0] = part[2].said[0] = 1;
	part[2].list[1] = part[2].said[1] = 0;
	EXPECT("wrong order: rank 2 never gives its data here");
	mend();
	run_only(1, 1);
	EXPECT("wrong order: rank 1 never gives its data here");
	move_limits.mail = MAIL_BYTES;
	EXPECT("wrong order: rank 1 never sends its data here, it has gone on");
}

static void test_deadlock(void)
{
	mend();
	nsteps = 1;
	run_only(1, 0);
	EXPECT("deadlock: rank 0 waits for rank 1 to give its data in "
	       "all-reduce(0) of 'p' (test.sbp:3); rank 1 has ended; rank 2 "
	       "waits for rank 1");
	move_limits.mail = MAIL_BYTES;
	EXPECT("deadlock: rank 0 waits for rank 1 to send its data in "
	       "all-reduce(0) of 'p' (test.sbp:3); rank 1 has ended; rank 2 "
	       "waits for rank 1");
	nsteps = 3;
}

/* ---- races ---- */

/* y's place at rank 1 reaches into x, which the others still read. */
static void test_overlap(void)
{
	mend();
	y_at[1] = 16;
	EXPECT("race: rank ");
	CHECK(strstr(first.text, " of rank 1's arena in all-gather(0) of 'x' "
				 "(test.sbp:2); rank "));
	CHECK(strstr(first.text, ", and nothing orders the two"));
}

/* Rank 1's target is where rank 1's source is: rank 0 writes half of it. */
static void test_two_writers(void)
{
	mend();
	nsteps = 1;
	moves[1].how = &both;
	run_only(2, 0);
	q_at[1] = AT_P + WHOLE / 2;
	EXPECT("race: rank ");
	CHECK(strstr(first.text, " of rank 1's arena in all-reduce(0)"));
	nsteps = 3;
}

/* What no table says: rank 1 writes where rank 0 has its data ready. */
static void scribble(sbp_model *m, int move)
{
	if (move == 0)
		m->private_->comm.arena[0][AT_X + 5] ^= 64;
}

static void test_changed(void)
{
	mend();
	nsteps = 1;
	part[1].before = scribble;
	CHECK(!run_model(0));
	CHECK(strstr(first.text,
		     "the data that rank 0 gave has changed before rank 2 had "
		     "read it in all-gather(0) of 'x' (test.sbp:2)"));
	nsteps = 3;
}

/* What no table says of rank 1's own arena. */
static void smear(sbp_model *m, int move)
{
	m->arena[move == 1 ? AT_P - 3 : AT_Q + 3] ^= 1;
}

static void test_wrong_write(void)
{
	mend();
	part[1].before = smear;
	EXPECT("rank 1, step 1, all-gather(0) of 'x', test.sbp:2: wrong "
	       "write: byte 3075 of rank 1's arena has changed");
	run_only(1, 1);
	part[1].before = smear;
	EXPECT("rank 1, step 1, all-reduce(0) of 'p', test.sbp:3: wrong "
	       "write: byte 2045 of rank 1's arena has changed");
}

/* ---- clocks ---- */

/* Rank 0 writes between two posts; who waits for the first has no right to
 * what is written after it, even where the second has come. */
static int awaited;
static bool writes_late;

static void post_twice(struct comm *c)
{
	unsigned char *at = c->arena[0] + AT_Y;

	if (!writes_late)
		simulate_access(c, 0, at, 8, true);
	comm_post(c, LANE_MOVE, FLAG_READY, 1);
	if (writes_late)
		simulate_access(c, 0, at, 8, true);
	comm_post(c, LANE_MOVE, FLAG_READY, 2);
}

static void read_after(struct actor *a, sbp_model *m)
{
	struct comm *c = &m->private_->comm;
	sbp_message e;

	if (a->rank == 0)
		post_twice(c);
	if (a->rank == 1) {
		a->status = comm_wait(c, 0, LANE_MOVE, FLAG_READY,
				      (uint64_t)awaited, &e);
		simulate_access(c, 0, c->arena[0] + AT_Y + 4, 8, false);
	}
	if (a->status == SBP_OK)
		a->status = comm_barrier(c, &e);
	if (a->status != SBP_OK)
		model_fail(m, SBP_FAILED, &e);
}

static void test_clocks(void)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		mend();
		awaited = 1;
		writes_late = false;
		CHECK(run_as(read_after, seed));
		writes_late = true;
		CHECK(!run_as(read_after, seed));
		CHECK(strstr(first.text, "bytes 1028 to 1032 of rank 0's "
					 "arena"));
		awaited = 2;
		CHECK(run_as(read_after, seed));
	}
}

/* Rank 2 knows of rank 0 by way of rank 1 alone. */
static void relay(struct actor *a, sbp_model *m)
{
	struct comm *c = &m->private_->comm;
	unsigned char *at = c->arena[0] + AT_Y;
	sbp_message e;

	if (a->rank == 0)
		simulate_access(c, 0, at, 8, true);
	if (a->rank > 0)
		a->status =
			comm_wait(c, a->rank - 1, LANE_MOVE, FLAG_READY, 1, &e);
	if (a->rank == 2)
		simulate_access(c, 0, at, 8, true);
	comm_post(c, LANE_MOVE, FLAG_READY, 1);
	if (a->status == SBP_OK)
		a->status = comm_barrier(c, &e);
}

static void test_relay(void)
{
	for (uint64_t seed = 0; seed < 10; seed++)
		CHECK(run_as(relay, seed));
}

/* Nothing may rely on zeros. */
static void look_at_fresh(struct actor *a, sbp_model *m)
{
	int zeros = 0;

	for (int i = 0; i < ARENA; i++)
		zeros += m->arena[i] == 0;
	if (zeros)
		a->status = SBP_FAILED;
}

static void test_litter(void)
{
	CHECK(run_as(look_at_fresh, 0));
}

int main(void)
{
	test_right();
	test_pair();
	test_order();
	test_mismatch();
	test_deadlock();
	test_overlap();
	test_two_writers();
	test_changed();
	test_wrong_write();
	test_clocks();
	test_relay();
	test_litter();
	printf("simulate: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
