/*
 * model_test.c: the embedding interface, with ranks that are threads: setting,
 * stepping, getting, saving on one mesh and loading on another, and what goes
 * wrong. The program is written by hand: y = x on (B, B), summed into s.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/private.h"
#include "tests/checks.h"

/* ---- the program ---- */

enum { ROWS = 5, COLUMNS = 3, COUNT = ROWS * COLUMNS };
static const int64_t x_at[] = {0}, y_at[] = {256}, w_at[] = {512},
		     p_at[] = {768}, s_at[] = {1024}, bytes[] = {1280};

static const sbp_placement square = {"square", 2, {2, 2}, NULL, 0};
static const sbp_placement line = {"line", 1, {3}, NULL, 0};

#define TWO(a, b) {.on = &square, .term = {a, b}, .order = {0, 1, 2, 3}}
#define ONE(a) {.on = &line, .term = {a}, .order = {0, 1, 2, 3}}
#define B {'B', 0, 0}
#define S0 {'S', 0, 0}
#define S1 {'S', 1, 0}
#define P {'P', 0, '+'}
#define MATRIX SBP_F32, 2, {ROWS, COLUMNS}

static const sbp_pattern patterns[] = {
	{MATRIX, TWO(S0, S1), TWO(B, B), "all-gather(0,1)"},
	{MATRIX, ONE(S0), ONE(B), "all-gather(0)"},
};
static const sbp_move moves[] = {{&patterns[0], "x", 4, 0, x_at, y_at},
				 {&patterns[1], "x", 4, 0, x_at, y_at}};

/* The rank that fails in its third step, or -1. */
static int failing = -1;

static sbp_status step(sbp_model *m, const sbp_move *move)
{
	float *y = (float *)(m->arena + y_at[0]), s = 0;

	if (m->rank == failing && m->step == 2)
		return sbp_fail(m, 5, "gather", "index %d is outside", 7);
	SBP_TRY(sbp_move_run(m, move));
	for (int i = 0; i < COUNT; i++)
		s += y[i];
	memcpy(m->arena + s_at[0], &s, sizeof s);
	return SBP_OK;
}

static sbp_status step_square(sbp_model *m)
{
	return step(m, &moves[0]);
}

static sbp_status step_line(sbp_model *m)
{
	return step(m, &moves[1]);
}

static sbp_status (*const step_of_square[])(sbp_model *) = {step_square};
static sbp_status (*const step_of_line[])(sbp_model *) = {step_line};

#define NORMAL {.kind = SBP_INIT_NORMAL, .a = 0, .b = 1}
static const sbp_tensor square_tensors[] = {
	{"x", SBP_INPUT, MATRIX, TWO(S0, S1), x_at, {0}, -1, NULL, 1},
	{"w", SBP_PARAM, MATRIX, TWO(S1, S0), w_at, NORMAL, -1, NULL, 2},
	{"p", SBP_INPUT, MATRIX, TWO(P, S0), p_at, {0}, -1, NULL, 3},
	{"y", SBP_OUTPUT, MATRIX, TWO(B, B), y_at, {0}, -1, NULL, 4},
	{"s", SBP_OUTPUT, SBP_F32, 0, {0}, TWO(B, B), s_at, {0}, -1, NULL, 5},
};
static const sbp_tensor line_tensors[] = {
	{"x", SBP_INPUT, MATRIX, ONE(S0), x_at, {0}, -1, NULL, 1},
	{"w", SBP_PARAM, MATRIX, ONE(S1), w_at, {0}, -1, NULL, 2},
};

static const sbp_program on_square = {
	.abi = SBP_ABI, .name = "two", .file = "two.sbp", .plan_hash = 2,
	.world = 4, .isa = "", .nclasses = 1, .arena_bytes = bytes,
	.step = step_of_square, .ntensors = 5, .tensors = square_tensors,
	.nmoves = 1};
static const sbp_program on_line = {
	.abi = SBP_ABI, .name = "one", .file = "one.sbp", .plan_hash = 1,
	.world = 3, .isa = "", .nclasses = 1, .arena_bytes = bytes,
	.step = step_of_line, .ntensors = 2, .tensors = line_tensors,
	.nmoves = 1};

/* ---- ranks ---- */

static char path[] = "/tmp/model_test_XXXXXX";

struct rank {
	const sbp_program *p;
	struct sbp_group *group;
	int rank;
	void (*body)(sbp_model *m);
	float w[COUNT];
};
static struct rank ranks[4];

static void *run_rank(void *context)
{
	struct rank *r = context;
	sbp_options o = {.group = r->group, .rank = r->rank, .threads = 1,
			 .seed = 7, .has_seed = 1};
	sbp_model *m;
	sbp_status status = sbp_open(r->p, &o, &m);

	check_at(status == SBP_OK, __LINE__, sbp_error(m));
	if (status == SBP_OK)
		r->body(m);
	sbp_close(m);
	return NULL;
}

static void run(const sbp_program *p, void (*body)(sbp_model *m))
{
	struct sbp_group *g = sbp_group_new(p->world);
	pthread_t thread[4];

	for (int i = 0; i < p->world; i++) {
		ranks[i] = (struct rank){p, g, i, body, {0}};
		pthread_create(&thread[i], NULL, run_rank, &ranks[i]);
	}
	for (int i = 0; i < p->world; i++)
		pthread_join(thread[i], NULL);
	sbp_group_free(g);
}

static void feed(sbp_model *m, float *x)
{
	for (int i = 0; i < COUNT; i++)
		x[i] = (float)i - 2.5f;
	CHECK(sbp_set(m, "x", x) == SBP_OK);
	CHECK(sbp_set(m, "p", x) == SBP_OK);
}

/* ---- what works ---- */

static void set_step_get(sbp_model *m)
{
	float x[COUNT], y[COUNT], p[COUNT], s, sum = 0;
	int64_t shape[2] = {0, 0};

	feed(m, x);
	for (int i = 0; i < COUNT; i++)
		sum += x[i];
	for (int i = 0; i < 3; i++)
		CHECK(sbp_step(m) == SBP_OK);
	CHECK(m->step == 3);
	CHECK(sbp_get(m, "y", y) == SBP_OK);
	CHECK(memcmp(x, y, sizeof x) == 0);
	CHECK(sbp_get(m, "x", y) == SBP_OK);
	CHECK(memcmp(x, y, sizeof x) == 0);
	CHECK(sbp_get(m, "p", p) == SBP_OK);
	CHECK(memcmp(x, p, sizeof x) == 0);
	CHECK(sbp_get(m, "s", &s) == SBP_OK);
	CHECK(s == sum);
	CHECK(sbp_local(m, "x", shape) != NULL);
	CHECK(shape[0] == (m->rank < 2 ? 3 : 2));
	CHECK(shape[1] == (m->rank % 2 ? 1 : 2));
}

static void save(sbp_model *m)
{
	float x[COUNT];

	feed(m, x);
	CHECK(sbp_step(m) == SBP_OK);
	CHECK(sbp_save(m, path) == SBP_OK);
	CHECK(sbp_save(m, "/no/such/directory/f") != SBP_OK);
	CHECK(strstr(sbp_error(m), "/no/such/directory/f") != NULL);
	CHECK(sbp_get(m, "w", ranks[m->rank].w) == SBP_OK);
}

static float saved[COUNT];

static void load(sbp_model *m)
{
	float w[COUNT];

	CHECK(sbp_set(m, "x", saved) == SBP_OK);
	CHECK(sbp_step(m) == SBP_USAGE);
	CHECK(strstr(sbp_error(m), "'w' (one.sbp:2) has no initial") != NULL);
	CHECK(sbp_load(m, path) == SBP_OK);
	CHECK(sbp_step(m) == SBP_OK);
	CHECK(sbp_get(m, "w", w) == SBP_OK);
	CHECK(memcmp(w, saved, sizeof w) == 0);
}

static void test_save_load(void)
{
	run(&on_square, save);
	memcpy(saved, ranks[0].w, sizeof saved);
	for (int r = 1; r < 4; r++)
		CHECK(memcmp(saved, ranks[r].w, sizeof saved) == 0);
	run(&on_line, load);
}

/* ---- what goes wrong ---- */

static void wrong_use(sbp_model *m)
{
	float x[COUNT] = {0};

	CHECK(sbp_step(m) == SBP_USAGE);
	CHECK(strstr(sbp_error(m), "input 'x' (two.sbp:1) has no data"));
	CHECK(sbp_set(m, "q", x) == SBP_USAGE);
	CHECK(strstr(sbp_error(m), "no input, param or state 'q'"));
	CHECK(sbp_set(m, "y", x) == SBP_USAGE);
	CHECK(sbp_get(m, "q", x) == SBP_USAGE);
	CHECK(sbp_local(m, "q", NULL) == NULL);
	CHECK(sbp_load(m, "/no/such/file") == SBP_USAGE);
	feed(m, x);
	CHECK(sbp_step(m) == SBP_OK);
}

static void one_fails(sbp_model *m)
{
	float x[COUNT];
	sbp_status status = SBP_OK;

	feed(m, x);
	for (int i = 0; i < 4 && status == SBP_OK; i++)
		status = sbp_step(m);
	CHECK(status == SBP_FAILED);
	CHECK(strstr(sbp_error(m), "step 3, gather, two.sbp:5: index 7"));
	CHECK(sbp_step(m) == SBP_FAILED);
	CHECK(sbp_get(m, "x", x) == SBP_FAILED);
	CHECK(strstr(sbp_error(m), m->rank == 2 ? "rank 2, step 3"
						: "rank 2 has failed"));
}

static void test_failure(void)
{
	failing = 2;
	run(&on_square, one_fails);
	failing = -1;
}

/* An open that must fail with TEXT. */
static void refuse(sbp_program p, const sbp_options *o, const char *text)
{
	sbp_model *m;

	CHECK(sbp_open(&p, o, &m) != SBP_OK);
	check_at(strstr(sbp_error(m), text) != NULL, __LINE__, sbp_error(m));
	sbp_close(m);
}

static void test_refusals(void)
{
	struct sbp_group *g = sbp_group_new(2);
	sbp_options o = {.group = g, .rank = 0};
	sbp_program p = on_square;

	refuse(p, &o, "for 4 ranks, but the group has 2");
	p.abi = 99;
	refuse(p, &o, "version 99");
	p = on_square;
	p.isa = "sse3,avx9000,fma9";
	refuse(p, &o, "avx9000, fma9");
	p.isa = "";
	o.rank = 4;
	refuse(p, &o, "rank 4 is not one of 4");
	setenv("SBP_TIMEOUT", "0.2", 1);
	o.rank = 1;
	p.world = 2;
	refuse(p, &o, "only 1 of 2 ranks");
	setenv("SBP_TIMEOUT", "soon", 1);
	refuse(p, &o, "SBP_TIMEOUT is 'soon'");
	unsetenv("SBP_TIMEOUT");
	sbp_group_free(g);
	unsetenv("RANK");
	unsetenv("WORLD_SIZE");
	refuse(on_square, NULL, "4 ranks and RANK and WORLD_SIZE are not set");
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	run(&on_square, set_step_get);
	test_save_load();
	run(&on_square, wrong_use);
	test_failure();
	test_refusals();
	unlink(path);
	printf("model_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
