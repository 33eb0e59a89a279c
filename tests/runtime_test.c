/*
 * runtime_test.c: moves between all pairs of small distributions, run by ranks
 * that are threads of this process, against brute force. Each rank fills its
 * source piece by a formula of its partial coordinates and the global index;
 * what the target pieces stand for must be what the source pieces stood for.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

enum { MOST_RANKS = 8, ROOM = 4096 };

static int passed, failed, in_place;

/* ---- the program: x on `from` is moved to y on `to` ---- */

static const int64_t x_at[] = {0}, y_at[] = {ROOM}, arena_bytes[] = {2 * ROOM};
static sbp_pattern pattern;
static sbp_move move = {.how = &pattern, .value = "x", .line = 1,
			.from_at = x_at, .to_at = y_at};
static int steps = 1;
static struct move_limits usual_limits;

static sbp_status step(sbp_model *m)
{
	return sbp_move_run(m, &move);
}

static sbp_status (*const step_of[])(sbp_model *) = {step};

struct rank {
	const sbp_program *p;
	struct sbp_group *group;
	int rank;
	unsigned char source[ROOM], target[ROOM];
	int64_t received;
	char error[256];
};

static void *run_rank(void *context)
{
	struct rank *r = context;
	sbp_options o = {.group = r->group, .rank = r->rank, .threads = 1};
	sbp_model *m;

	if (sbp_open(r->p, &o, &m) == SBP_OK) {
		for (int i = 0; i < steps; i++) {
			memset(m->arena + move.to_at[0], 0x55, ROOM);
			memcpy(m->arena, r->source, ROOM);
			if (sbp_step(m) != SBP_OK)
				break;
		}
		memcpy(r->target, m->arena + move.to_at[0], ROOM);
		r->received = m->private_->recv_bytes / steps;
	}
	snprintf(r->error, sizeof r->error, "%s", sbp_error(m));
	sbp_close(m);
	return NULL;
}

static void run_ranks(struct rank *rank, int world)
{
	sbp_program p = {.abi = SBP_ABI, .name = "test", .file = "test.sbp",
			 .world = world, .nclasses = 1, .nmoves = 1,
			 .arena_bytes = arena_bytes, .step = step_of};
	struct sbp_group *g = sbp_group_new(world);
	pthread_t thread[MOST_RANKS];

	for (int r = 0; r < world; r++) {
		rank[r].p = &p;
		rank[r].group = g;
		rank[r].rank = r;
		pthread_create(&thread[r], NULL, run_rank, &rank[r]);
	}
	for (int r = 0; r < world; r++)
		pthread_join(thread[r], NULL);
	sbp_group_free(g);
}

/* ---- what pieces stand for, the slow way ---- */

typedef struct where {		/* a device's part of the two axes */
	int64_t lo[2], n[2];
} where;

static where part_of(const sbp_dist *d, const int64_t *shape, const int *coord)
{
	where w = {{0, 0}, {shape[0], shape[1]}};

	for (int i = 0; i < d->on->naxes; i++) {
		int k = d->order[i], a = d->term[k].axis;
		int64_t parts = d->on->extent[k], q, more;

		if (d->term[k].kind != 'S')
			continue;
		q = w.n[a] / parts;
		more = w.n[a] % parts;
		for (int c = 0; c < coord[k]; c++)
			w.lo[a] += q + (c < more);
		w.n[a] = q + (coord[k] < more);
	}
	return w;
}

static bool inside(where w, int64_t i, int64_t j)
{
	return i >= w.lo[0] && i < w.lo[0] + w.n[0] && j >= w.lo[1] &&
	       j < w.lo[1] + w.n[1];
}

static void store(void *piece, int64_t at, double v)
{
	double d = v;
	int64_t i = (int64_t)v;

	dtype_floats(pattern.dtype)
		? convert((char *)piece + at * dtype_bytes(pattern.dtype),
			  pattern.dtype, &d, SBP_F64, 1)
		: convert((char *)piece + at * dtype_bytes(pattern.dtype),
			  pattern.dtype, &i, SBP_I64, 1);
}

static double load(const void *piece, int64_t at)
{
	return element_double(pattern.dtype,
			      (const char *)piece +
				      at * dtype_bytes(pattern.dtype));
}

/* Partial values differ in size and, where they fit, in sign; copies are
 * equal. */
static double source_value(const sbp_dist *d, const int *coord, int64_t i,
			   int64_t j)
{
	bool narrow = dtype_bytes(pattern.dtype) == 1;
	int64_t v = 7 * i + 3 * j + 1;

	for (int k = 0; k < d->on->naxes; k++)
		if (d->term[k].kind == 'P')
			v = (v * 5 + 11 * (coord[k] + 1) * (k + 2)) % 37;
	return (double)(narrow ? v % 19 : v % 37 - 18);
}

static void fill_source(struct rank *rank, const sbp_dist *d)
{
	for (int x = 0; x < mesh_size(d->on); x++) {
		struct rank *r = &rank[mesh_rank(d->on, x)];
		int coord[SBP_MAX_MESH];
		where w;

		mesh_coords(d->on, x, coord);
		w = part_of(d, pattern.shape, coord);
		for (int64_t i = 0; i < w.n[0] * w.n[1]; i++)
			store(r->source, i,
			      source_value(d, coord, w.lo[0] + i / w.n[1],
					   w.lo[1] + i % w.n[1]));
	}
}

static double reduce(char how, double a, double b)
{
	if (how == '+')
		return a + b;
	if (a != a || b != b)
		return NAN;
	return how == 'x' ? fmax(a, b) : fmin(a, b);
}

/* The logical value at (i, j) as held from mesh axis K inward. *bad: copies
 * differ. PIECES is 0 for sources, 1 for targets. */
static double logical(const struct rank *rank, const sbp_dist *d, int pieces,
		      int k, int *coord, int64_t i, int64_t j, bool *bad)
{
	double sum = NAN;
	bool first = true;

	if (k == d->on->naxes) {
		where w = part_of(d, pattern.shape, coord);
		int r = mesh_rank(d->on, mesh_at(d->on, coord));

		if (!inside(w, i, j))
			return -12345;
		return load(pieces ? rank[r].target : rank[r].source,
			    (i - w.lo[0]) * w.n[1] + j - w.lo[1]);
	}
	for (coord[k] = 0; coord[k] < d->on->extent[k]; coord[k]++) {
		double v = logical(rank, d, pieces, k + 1, coord, i, j, bad);

		if (v == -12345)
			continue;
		if (!first && d->term[k].kind == 'P')
			v = reduce(d->term[k].reduce, sum, v);
		else if (!first && !(v == sum))
			*bad = true;
		sum = v;
		first = false;
	}
	return first ? -12345 : sum;
}

/* ---- bytes, by the formula of plans ---- */

static bool same_mesh(const sbp_placement *a, const sbp_placement *b)
{
	if (a->naxes != b->naxes || mesh_size(a) != mesh_size(b))
		return false;
	for (int k = 0; k < a->naxes; k++)
		if (a->extent[k] != b->extent[k])
			return false;
	for (int i = 0; i < mesh_size(a); i++)
		if (mesh_rank(a, i) != mesh_rank(b, i))
			return false;
	return true;
}

static bool has_mixed(const sbp_dist *d)
{
	char kind = 0;

	for (int k = 0; k < d->on->naxes; k++) {
		if (d->term[k].kind != 'P')
			continue;
		if (kind && kind != d->term[k].reduce)
			return true;
		kind = d->term[k].reduce;
	}
	return false;
}

static int64_t overlap(where a, where b)
{
	int64_t n = 1;

	for (int d = 0; d < 2; d++) {
		int64_t lo = a.lo[d] > b.lo[d] ? a.lo[d] : b.lo[d];
		int64_t x = a.lo[d] + a.n[d], y = b.lo[d] + b.n[d];
		int64_t hi = x < y ? x : y;

		n *= hi > lo ? hi - lo : 0;
	}
	return n;
}

/* On one placement an axis goes from S to P: shards may remain. */
static bool places_shards(void)
{
	if (!same_mesh(pattern.from.on, pattern.to.on))
		return false;
	for (int k = 0; k < pattern.to.on->naxes; k++)
		if (pattern.from.term[k].kind == 'S' &&
		    pattern.to.term[k].kind == 'P')
			return true;
	return false;
}

static bool stays_partial(bool same, int k)
{
	sbp_term a = pattern.from.term[k], b = pattern.to.term[k];

	return same && a.kind == 'P' && b.kind == 'P' && a.reduce == b.reduce;
}

/* What RANK receives; -1 where the formula does not say: partial values of
 * mixed kinds, shards among identities. */
static int64_t expected_bytes(int rank)
{
	const sbp_dist *from = &pattern.from, *to = &pattern.to;
	int at = mesh_index(to->on, rank), own = mesh_index(from->on, rank);
	int tc[SBP_MAX_MESH], fc[SBP_MAX_MESH];
	bool same = same_mesh(from->on, to->on), holds = own >= 0;
	int64_t parts = 1, n, mine = 0;
	where t, f;

	if (has_mixed(from) || places_shards())
		return -1;
	if (at < 0)
		return 0;
	mesh_coords(to->on, at, tc);
	for (int k = 0; k < to->on->naxes; k++)
		if (to->term[k].kind == 'P' && !stays_partial(same, k) &&
		    tc[k])
			return 0;
	for (int k = 0; k < from->on->naxes; k++)
		if (from->term[k].kind == 'P' && !stays_partial(same, k))
			parts *= from->on->extent[k];
	t = part_of(to, pattern.shape, tc);
	n = t.n[0] * t.n[1];
	if (holds) {
		mesh_coords(from->on, own, fc);
		f = part_of(from, pattern.shape, fc);
		mine = overlap(t, f);
	}
	return (parts * n - mine) * dtype_bytes(pattern.dtype);
}

/* ---- one pair ---- */

static void describe(char *to, size_t size)
{
	char a[64], b[64];

	dist_describe(a, sizeof a, &pattern.from);
	dist_describe(b, sizeof b, &pattern.to);
	snprintf(to, size, "%s [%d, %d] on %s%s -> %s%s order %d%d -> %d%d",
		 dtype_text(pattern.dtype), (int)pattern.shape[0],
		 (int)pattern.shape[1], pattern.from.on->name, a,
		 pattern.to.on->name, b, pattern.from.order[0],
		 pattern.from.order[1], pattern.to.order[0],
		 pattern.to.order[1]);
}

static void report(bool good, const char *what)
{
	char text[256];

	if (good) {
		passed++;
		return;
	}
	failed++;
	describe(text, sizeof text);
	if (failed <= 20)
		printf("FAILED %s: %s\n", text, what);
}

static const char *check_values(const struct rank *rank)
{
	for (int64_t i = 0; i < pattern.shape[0]; i++)
		for (int64_t j = 0; j < pattern.shape[1]; j++) {
			int coord[SBP_MAX_MESH];
			bool bad = false;
			double want = logical(rank, &pattern.from, 0, 0,
					      coord, i, j, &bad);
			double got = logical(rank, &pattern.to, 1, 0, coord,
					     i, j, &bad);

			if (bad)
				return "copies differ";
			if (want != got)
				return "a value differs";
		}
	return NULL;
}

/* Whether source and target may be one: an all-reduce of two parts. */
static bool may_be_in_place(void)
{
	const sbp_dist *from = &pattern.from, *to = &pattern.to;
	int parts = 1;

	if (!same_mesh(from->on, to->on))
		return false;
	for (int k = 0; k < from->on->naxes; k++) {
		sbp_term a = from->term[k], b = to->term[k];

		if (a.kind == 'P' && b.kind == 'B')
			parts *= from->on->extent[k];
		else if (a.kind != b.kind || a.axis != b.axis ||
			 a.reduce != b.reduce)
			return false;
		if (from->order[k] != to->order[k])
			return false;
	}
	return parts == 2 && !has_mixed(from);
}

static void run_once(int world)
{
	struct rank *rank = calloc((size_t)world, sizeof *rank);
	const char *why = NULL;

	fill_source(rank, &pattern.from);
	run_ranks(rank, world);
	for (int r = 0; r < world && !why; r++)
		if (rank[r].error[0])
			why = rank[r].error;
	if (!why)
		why = check_values(rank);
	for (int r = 0; r < world && !why; r++) {
		int64_t bytes = expected_bytes(r);

		if (bytes >= 0 && bytes != rank[r].received)
			why = "bytes received differ";
	}
	report(!why, why);
	free(rank);
}

static void run_pair(int world)
{
	run_once(world);
	if (!may_be_in_place())
		return;
	move.to_at = x_at;
	run_once(world);
	move.to_at = y_at;
	in_place++;
}

/* ---- all pairs ---- */

static const sbp_term terms[] = {{'B', 0, 0},	{'S', 0, 0},   {'S', 1, 0},
				 {'P', 0, '+'}, {'P', 0, 'x'}, {'P', 0, 'n'}};
enum { NTERMS = sizeof terms / sizeof *terms, MOST_DISTS = 64 };

/* All distributions on a mesh of one or two axes, both orders of nested
 * splits included. */
static int list_dists(const sbp_placement *on, int nterms, sbp_dist *list)
{
	int n = 0, count = 1;

	for (int k = 0; k < on->naxes; k++)
		count *= nterms;
	for (int i = 0; i < count; i++) {
		sbp_dist d = {.on = on, .order = {0, 1, 2, 3}};
		bool nested;

		d.term[0] = terms[i % nterms];
		if (on->naxes > 1)
			d.term[1] = terms[i / nterms];
		list[n++] = d;
		nested = on->naxes > 1 && d.term[0].kind == 'S' &&
			 d.term[1].kind == 'S' &&
			 d.term[0].axis == d.term[1].axis;
		if (!nested)
			continue;
		d.order[0] = 1;
		d.order[1] = 0;
		list[n++] = d;
	}
	return n;
}

static void run_pairs(const sbp_placement *from, const sbp_placement *to,
		      int world, int nterms, sbp_dtype t, int64_t rows,
		      int64_t columns)
{
	sbp_dist a[MOST_DISTS], b[MOST_DISTS];
	int na = list_dists(from, nterms, a), nb = list_dists(to, nterms, b);

	for (int i = 0; i < na; i++)
		for (int j = 0; j < nb; j++) {
			pattern = (sbp_pattern){.dtype = t, .rank = 2,
						.shape = {rows, columns},
						.from = a[i], .to = b[j],
						.name = "move"};
			run_pair(world);
		}
}

static const int scattered[] = {3, 0, 2, 1};
static const sbp_placement one = {"one", 1, {1}, NULL, 0};
static const sbp_placement three = {"three", 1, {3}, NULL, 0};
static const sbp_placement five = {"five", 1, {5}, NULL, 0};
static const sbp_placement upper = {"upper", 1, {2}, NULL, 2};
static const sbp_placement lower = {"lower", 1, {2}, NULL, 0};
static const sbp_placement square = {"square", 2, {2, 2}, NULL, 0};
static const sbp_placement mixed = {"mixed", 2, {2, 2}, scattered, 0};
static const sbp_placement wide = {"wide", 2, {2, 3}, NULL, 0};
static const sbp_placement tall = {"tall", 2, {3, 1}, NULL, 0};

static void run_same_placements(void)
{
	run_pairs(&one, &one, 1, NTERMS, SBP_F32, 2, 3);
	run_pairs(&three, &three, 3, NTERMS, SBP_F32, 7, 5);
	run_pairs(&five, &five, 5, NTERMS, SBP_I64, 3, 4);
	run_pairs(&square, &square, 4, NTERMS, SBP_F32, 5, 3);
	run_pairs(&square, &square, 4, 5, SBP_BF16, 4, 4);
	run_pairs(&square, &square, 4, 5, SBP_I32, 1, 2);
	run_pairs(&wide, &wide, 6, 4, SBP_F64, 7, 3);
	run_pairs(&tall, &tall, 3, 4, SBP_F16, 0, 3);
}

static void run_other_placements(void)
{
	run_pairs(&lower, &upper, 4, NTERMS, SBP_F32, 5, 3);
	run_pairs(&three, &square, 4, NTERMS, SBP_F32, 5, 3);
	run_pairs(&square, &three, 4, NTERMS, SBP_I32, 5, 3);
	run_pairs(&square, &mixed, 4, 5, SBP_F32, 5, 3);
	run_pairs(&one, &wide, 6, 4, SBP_U8, 4, 3);
	run_pairs(&wide, &one, 6, 4, SBP_I8, 4, 3);
}

/* ---- what values alone do not show ---- */

static void check(bool good, const char *what)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED %s\n", what);
}

/* -0.0 on B -> P -> B stays: the identity of sums is -0.0. */
static void test_negative_zero(void)
{
	struct rank *rank = calloc(2, sizeof *rank);
	float zero = -0.0f, sum;

	pattern = (sbp_pattern){
		.dtype = SBP_F32, .rank = 0, .name = "move",
		.from = {.on = &lower, .term = {{'B', 0, 0}}},
		.to = {.on = &lower, .term = {{'P', 0, '+'}}}};
	for (int r = 0; r < 2; r++)
		memcpy(rank[r].source, &zero, sizeof zero);
	run_ranks(rank, 2);
	for (int r = 0; r < 2; r++)
		memcpy(rank[r].source, rank[r].target, ROOM);
	pattern.from.term[0] = (sbp_term){'P', 0, '+'};
	pattern.to.term[0] = (sbp_term){'B', 0, 0};
	run_ranks(rank, 2);
	for (int r = 0; r < 2; r++) {
		memcpy(&sum, rank[r].target, sizeof sum);
		check(sum == 0 && signbit(sum), "-0.0 on B -> P -> B");
	}
	free(rank);
}

/* 16-bit floats round once: 2048 + 1 + 1 in f16 is 2050, not 2048. */
static void test_half_sum(void)
{
	static const float part[] = {2048, 1, 1};
	struct rank *rank = calloc(3, sizeof *rank);

	pattern = (sbp_pattern){
		.dtype = SBP_F16, .rank = 0, .name = "move",
		.from = {.on = &three, .term = {{'P', 0, '+'}}},
		.to = {.on = &three, .term = {{'B', 0, 0}}}};
	for (int r = 0; r < 3; r++)
		convert(rank[r].source, SBP_F16, &part[r], SBP_F32, 1);
	run_ranks(rank, 3);
	for (int r = 0; r < 3; r++)
		check(load(rank[r].target, 0) == 2050, "f16 sum rounds once");
	free(rank);
}

static void test_nan(void)
{
	struct rank *rank = calloc(3, sizeof *rank);

	pattern = (sbp_pattern){
		.dtype = SBP_F32, .rank = 0, .name = "move",
		.from = {.on = &three, .term = {{'P', 0, 'x'}}},
		.to = {.on = &three, .term = {{'B', 0, 0}}}};
	for (int odd = 0; odd < 3; odd++) {
		for (int r = 0; r < 3; r++)
			store(rank[r].source, 0, r == odd ? (double)NAN : r);
		run_ranks(rank, 3);
		for (int r = 0; r < 3; r++)
			check(isnan(load(rank[r].target, 0)),
			      "the greatest of a nan is nan");
	}
	free(rank);
}

/* Counters of many steps, and a rank that is always late or early. */
static void test_many_steps(void)
{
	steps = 200;
	pattern = (sbp_pattern){
		.dtype = SBP_F32, .rank = 2, .shape = {9, 7}, .name = "move",
		.from = {.on = &three, .term = {{'S', 0, 0}}},
		.to = {.on = &three, .term = {{'B', 0, 0}}}};
	run_pair(3);
	pattern.from.term[0] = (sbp_term){'P', 0, '+'};
	run_pair(3);
	steps = 1;
}

/* ---- the same move back to back, with other data in each step ---- */

enum { MOST = 100003, BIG = MOST * 8 + 64, ROUNDS = 12 };

static const int64_t big_y_at[] = {BIG / 64 * 64}, big_bytes[] = {2 * BIG};
static sbp_placement line = {"line", 1, {2}, NULL, 0};

struct runner {
	const sbp_program *p;
	struct sbp_group *group;
	int rank, threads;
	const char *why;
};

static int64_t value_of(int rank, int round, int64_t i)
{
	int64_t v = (rank * 7 + round * 13 + i * 3) % 31;

	return pattern.dtype == SBP_U8 ? v : v - 15;
}

/* Element I of the whole, where P parts are reduced. */
static int64_t whole_of(int world, int round, int64_t i)
{
	char how = pattern.from.term[0].reduce;
	int64_t sum = value_of(0, round, i);

	if (pattern.from.term[0].kind != 'P')
		return sum;
	for (int r = 1; r < world; r++) {
		int64_t v = value_of(r, round, i);

		if (how == '+')
			sum += v;
		else if (how == 'x' ? v > sum : v < sum)
			sum = v;
	}
	return sum;
}

static sbp_piece piece_of_rank(const sbp_dist *d, int world, int rank)
{
	return d->term[0].kind == 'S'
		       ? sbp_split(pattern.shape[0], world, rank)
		       : (sbp_piece){0, pattern.shape[0]};
}

static void write_source(const struct runner *r, sbp_model *m, int round)
{
	bool partial = pattern.from.term[0].kind == 'P';
	sbp_piece p = piece_of_rank(&pattern.from, m->world, r->rank);

	for (int64_t i = 0; i < p.n; i++)
		store(m->arena, i,
		      (double)value_of(partial ? r->rank : 0, round,
				       p.lo + i));
}

static bool target_is_right(const struct runner *r, sbp_model *m, int round)
{
	sbp_piece p = piece_of_rank(&pattern.to, m->world, r->rank);

	for (int64_t i = 0; i < p.n; i++)
		if (load(m->arena + move.to_at[0], i) !=
		    (double)whole_of(m->world, round, p.lo + i))
			return false;
	return true;
}

static void *run_rounds(void *context)
{
	struct runner *r = context;
	sbp_options o = {.group = r->group, .rank = r->rank,
			 .threads = r->threads};
	sbp_model *m;

	if (sbp_open(r->p, &o, &m) != SBP_OK)
		r->why = "cannot be opened";
	for (int i = 0; i < ROUNDS && !r->why; i++) {
		write_source(r, m, i);
		if (sbp_step(m) != SBP_OK)
			r->why = "a step failed";
		else if (!target_is_right(r, m, i))
			r->why = "a value differs, in one of many steps";
	}
	sbp_close(m);
	return NULL;
}

static void run_changing_to(const int64_t *to_at, int world, int threads)
{
	sbp_program p = {.abi = SBP_ABI, .name = "test", .file = "test.sbp",
			 .world = world, .nclasses = 1, .nmoves = 1,
			 .arena_bytes = big_bytes, .step = step_of};
	struct sbp_group *g = sbp_group_new(world);
	struct runner r[MOST_RANKS] = {{0}};
	pthread_t thread[MOST_RANKS];
	const char *why = NULL;

	line.extent[0] = world;
	move.to_at = to_at;
	for (int i = 0; i < world; i++) {
		r[i] = (struct runner){&p, g, i, threads, NULL};
		pthread_create(&thread[i], NULL, run_rounds, &r[i]);
	}
	for (int i = 0; i < world; i++) {
		pthread_join(thread[i], NULL);
		why = why ? why : r[i].why;
	}
	sbp_group_free(g);
	move.to_at = y_at;
	report(!why, why);
}

static void run_changing(int world, int threads)
{
	bool reduces = pattern.from.term[0].kind == 'P' &&
		       pattern.to.term[0].kind == 'B';

	run_changing_to(big_y_at, world, threads);
	if (world == 2 && reduces)
		run_changing_to(x_at, world, threads);
}

static void set_changing(sbp_dtype t, int64_t n, sbp_term from, sbp_term to)
{
	pattern = (sbp_pattern){.dtype = t, .rank = 1, .shape = {n},
				.from = {.on = &line, .term = {from}},
				.to = {.on = &line, .term = {to}},
				.name = "move"};
}

/* Parts of any type and reduction, whole and split results. */
static void run_reductions(int64_t n, int world, int threads)
{
	static const sbp_dtype types[] = {SBP_U8,  SBP_I8,   SBP_I32, SBP_I64,
					  SBP_F16, SBP_BF16, SBP_F32, SBP_F64};

	for (size_t t = 0; t < sizeof types / sizeof *types; t++)
		for (int how = 3; how < NTERMS; how++)
			for (int to = 0; to < 2; to++) {
				set_changing(types[t], n, terms[how],
					     terms[to]);
				run_changing(world, threads);
			}
}

static void run_gather(int64_t n, int world, int threads)
{
	set_changing(SBP_F32, n, terms[1], terms[0]);
	run_changing(world, threads);
}

static void test_changing(void)
{
	run_reductions(13, 2, 1);
	run_reductions(5, 3, 1);
	run_gather(5, 8, 1);
	run_gather(3001, 3, 1);
	run_reductions(6007, 2, 1);
	move_limits.mail = 0;
	run_reductions(1, 2, 1);
	run_reductions(777, 2, 1);
	run_reductions(777, 5, 1);
	run_gather(7, 8, 1);
	run_gather(3001, 4, 1);
	move_limits.stream = 0;
	run_reductions(1500, 2, 1);
	run_reductions(1501, 4, 1);
	run_gather(3001, 3, 1);
	move_limits = usual_limits;
}

/* What is shared by the threads of a rank; the thread sanitizer does not know
 * how libgomp's threads wait. */
static void test_threads(void)
{
#if !defined __SANITIZE_THREAD__
	set_changing(SBP_F64, MOST, terms[3], terms[0]);
	run_changing(2, 2);
	set_changing(SBP_F64, MOST, terms[1], terms[0]);
	run_changing(3, 2);
#endif
}

static void test_numbers(void)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{1, "1"}, {0.5, "0.5"}, {1e-5, "1e-05"}, {-0.0, "-0"},
		{0.1f, "0.1"}, {100, "100"}, {1234.5, "1234.5"},
		{1e16, "1e+16"}, {16777216, "16777216"}, {1e-4, "0.0001"},
		{NAN, "nan"}, {INFINITY, "inf"}, {-(double)INFINITY, "-inf"},
		{3.4028234663852886e38, "3.4028235e+38"},
		{1.401298464324817e-45, "1e-45"}, {-2.5e-7, "-2.5e-07"},
	};
	char text[40];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		float f = (float)rows[i].value;

		show_element(text, SBP_F32, &f);
		check(strcmp(text, rows[i].text) == 0, rows[i].text);
	}
}

/* Every f16 reads back, and no shorter text does. */
static void test_half_numbers(void)
{
	bool good = true;
	char text[40];

	for (unsigned h = 0; h < 0x7c00; h++) {
		uint16_t half = (uint16_t)h;

		show_element(text, SBP_F16, &half);
		good = good && f32_to_f16(strtof(text, NULL)) == half;
	}
	check(good, "f16 as text reads back");
}

/* Small pieces go as mail unless the limits say otherwise. */
static void run_all_pairs(void)
{
	run_same_placements();
	run_other_placements();
	move_limits.mail = 0;
	run_pairs(&three, &three, 3, NTERMS, SBP_F32, 7, 5);
	run_pairs(&square, &square, 4, NTERMS, SBP_F32, 5, 3);
	run_pairs(&square, &square, 4, 5, SBP_BF16, 4, 4);
	run_pairs(&lower, &upper, 4, NTERMS, SBP_F32, 5, 3);
	run_pairs(&square, &three, 4, NTERMS, SBP_I32, 5, 3);
	move_limits.stream = 0;
	run_pairs(&square, &square, 4, NTERMS, SBP_F32, 9, 7);
	run_pairs(&three, &square, 4, NTERMS, SBP_I64, 9, 7);
	move_limits = usual_limits;
}

int main(void)
{
	usual_limits = move_limits;
	test_numbers();
	test_half_numbers();
	test_negative_zero();
	test_half_sum();
	test_nan();
	test_many_steps();
	test_changing();
	test_threads();
	run_all_pairs();
	check(in_place > 30, "all-reduces in place are run");
	printf("runtime_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
