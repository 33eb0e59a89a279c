/*
 * collectives.c: the runtime's moves inside one process a rank, by tables as
 * emitted programs have them: a step is one collective of one size. An
 * all-reduce of more than two ranks is planned as a reduce-scatter and an
 * all-gather. Its result lies where the operand was, which is of no further
 * use: so the compiler places it.
 *
 *     collectives LARGEST SECONDS
 */
#include <unistd.h>

#include "collectives.h"
#include "sbp.h"

/* Moves: OPS for each size, then the second halves of all-reduces. */
enum { MOVES = OPS * SIZES + SIZES };

/* The operand, the result, and the shards between the halves. */
static const int64_t from_at[] = {0}, to_at[] = {LARGEST};
static const int64_t shard_at[] = {2ll * LARGEST};
static const int64_t arena_bytes[] = {2ll * LARGEST + LARGEST / 2};
static sbp_placement all = {.name = "all", .naxes = 1};
static sbp_pattern pattern[MOVES];
static sbp_move moves[MOVES];
static sbp_model *m;
static enum op op_now;
static int size_now;

static sbp_status step(sbp_model *model)
{
	SBP_TRY(sbp_move_run(model, &moves[op_now * SIZES + size_now]));
	if (op_now == ALL_REDUCE && all.extent[0] > 2)
		return sbp_move_run(model, &moves[OPS * SIZES + size_now]);
	return SBP_OK;
}

static sbp_term term(const char *text)
{
	sbp_term t = {.kind = text[0]};

	if (text[0] == 'S')
		t.axis = (signed char)(text[1] - '0');
	if (text[0] == 'P')
		t.reduce = '+';
	return t;
}

static void set(int i, sbp_dtype dtype, const char *from, const char *to,
		const int64_t *shape, int rank)
{
	sbp_pattern *p = &pattern[i];

	p->dtype = dtype;
	p->rank = rank;
	memcpy(p->shape, shape, (size_t)rank * sizeof *shape);
	p->from.on = p->to.on = &all;
	p->from.term[0] = term(from);
	p->to.term[0] = term(to);
	p->name = "collective";
	moves[i] = (sbp_move){.how = p, .value = "x", .line = 1, .id = i,
			      .from_at = from_at, .to_at = to_at};
}

static void set_all(int ranks)
{
	all.extent[0] = ranks;
	for (int s = 0; s < SIZES; s++) {
		int64_t n = size_of[s] / (long)sizeof(float);
		int64_t square[] = {ranks, size_of[s]};

		set(ALL_REDUCE * SIZES + s, SBP_F32, "P",
		    ranks > 2 ? "S0" : "B", &n, 1);
		set(ALL_GATHER * SIZES + s, SBP_U8, "S0", "B",
		    (const int64_t[]){size_of[s]}, 1);
		set(REDUCE_SCATTER * SIZES + s, SBP_F32, "P", "S0", &n, 1);
		set(ALL_TO_ALL * SIZES + s, SBP_U8, "S0", "S1", square, 2);
		set(OPS * SIZES + s, SBP_F32, "S0", "B", &n, 1);
		moves[ALL_REDUCE * SIZES + s].to_at =
			ranks > 2 ? shard_at : from_at;
		moves[OPS * SIZES + s].from_at = shard_at;
		moves[OPS * SIZES + s].to_at = from_at;
	}
}

static void run(enum op op, int s)
{
	op_now = op;
	size_now = s;
	if (sbp_step(m) == SBP_OK)
		return;
	fprintf(stderr, "%s\n", sbp_error(m));
	exit(1);
}

int main(int argc, char **argv)
{
	static sbp_status (*const steps[])(sbp_model *) = {step};
	const char *world = getenv("WORLD_SIZE");
	sbp_program p = {.abi = SBP_ABI, .name = "collectives",
			 .file = "collectives", .isa = "", .nclasses = 1,
			 .arena_bytes = arena_bytes, .step = steps,
			 .nmoves = MOVES};

	alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	p.world = world ? atoi(world) : 1;
	set_all(p.world);
	if (sbp_open(&p, NULL, &m) != SBP_OK) {
		fprintf(stderr, "%s\n", sbp_error(m));
		return 1;
	}
	pin(m->rank, p.world);
	take_figures(m->rank, p.world, argc > 1 ? atol(argv[1]) : LARGEST,
		     run);
	sbp_close(m);
	return 0;
}
