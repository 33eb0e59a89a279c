/*
 * plan_optimum_test.c: plans against a search that shares nothing with the
 * planner. What a device holds is a set of rows and a set of columns, filled
 * one element at a time; a move costs what is not in the receiver's own set.
 * All paths of up to three moves are tried, of four on up to 16 ranks, through
 * every distribution of a 2-D mesh in both nested orders, where an axis is
 * partial only as long as it has not been reduced. Longer paths, and what no
 * distribution of the mesh can name, are not.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "passes/passes.h"
#include "tests/optimum.h"

static int passed, failed;

static void check(bool ok, const char *what, Type t, Dist from, Dist to)
{
	if (ok) {
		passed++;
		return;
	}
	if (failed++ < 20)
		printf("plan_optimum_test: %s: %dx%d %s: %s -> %s\n", what,
		       from.on->extent[0], from.on->extent[1], type_text(t),
		       dist_text(from), dist_text(to));
}

/* ---- sets of elements ---- */

enum { MAX_N = 128, MAX_RANKS = 128 };

typedef struct {
	uint64_t w[MAX_N / 64];
} Set;

static int size(Set s)
{
	return __builtin_popcountll(s.w[0]) + __builtin_popcountll(s.w[1]);
}

static Set both(Set a, Set b)
{
	return (Set){{a.w[0] & b.w[0], a.w[1] & b.w[1]}};
}

/* Which of PARTS the element at AT of N is in; its place in there. */
static int part_of(int *n, int parts, int *at)
{
	for (int i = 0, lo = 0;; i++) {
		int part = *n / parts + (i < *n % parts);

		if (*at < lo + part) {
			*at -= lo;
			*n = part;
			return i;
		}
		lo += part;
	}
}

/* ---- distributions, by number ---- */

/* 16 pairs of terms, then both nested ones with axis 1 outside. */
enum { B, S0, S1, P, NSTATES = 18 };

struct state {
	int term[2];
	bool inside_out;
};

static struct state state_of(int i)
{
	if (i >= 16)
		return (struct state){{i - 15, i - 15}, true};
	return (struct state){{i / 4, i % 4}, false};
}

static bool is_partial(int i)
{
	return i < 16 && (i / 4 == P || i % 4 == P);
}

static Sbp sbp_of(int term)
{
	return term == B ? sbp_b() : term == P ? sbp_p(RED_SUM) :
						 sbp_s(term - S0);
}

static Dist dist_of(const struct placement *on, int i)
{
	struct state s = state_of(i);
	Dist d = dist_on(on, sbp_b());

	for (int k = 0; k < 2; k++) {
		d.t[k] = sbp_of(s.term[k]);
		d.order[k] = (uint8_t)(s.inside_out ? 1 - k : k);
	}
	return d;
}

/* ---- a mesh and a tensor, and all moves on them ---- */

struct board {
	const struct placement *on;
	int p, q, n[2];
	Set has[NSTATES][MAX_RANKS][2];		/* rows, columns */
	/* elements that a rank receives; -1: no such move */
	int64_t move[NSTATES][NSTATES][MAX_RANKS];
};

static bool owns(const struct board *b, struct state s, int axis, int at,
		 const int *coord)
{
	int n = b->n[axis];

	for (int i = 0; i < 2; i++) {
		int k = s.inside_out ? 1 - i : i;

		if (s.term[k] == S0 + axis &&
		    part_of(&n, k ? b->q : b->p, &at) != coord[k])
			return false;
	}
	return true;
}

static void fill_sets(struct board *b)
{
	for (int i = 0; i < NSTATES; i++)
		for (int r = 0; r < b->p * b->q; r++)
			for (int axis = 0; axis < 2; axis++) {
				Set *s = &b->has[i][r][axis];
				int coord[2] = {r / b->q, r % b->q};

				*s = (Set){{0, 0}};
				for (int at = 0; at < b->n[axis]; at++)
					if (owns(b, state_of(i), axis, at,
						 coord))
						s->w[at / 64] |= UINT64_C(1)
								 << at % 64;
			}
}

static int64_t elements(const Set s[2])
{
	return (int64_t)size(s[0]) * size(s[1]);
}

static int64_t common(const Set a[2], const Set b[2])
{
	Set s[2] = {both(a[0], b[0]), both(a[1], b[1])};

	return elements(s);
}

/* How many parts a move combines; 0 if it would make an axis partial. */
static int parts_of(const struct board *b, int from, int to)
{
	struct state x = state_of(from), y = state_of(to);
	int parts = 1;

	for (int k = 0; k < 2; k++) {
		if (y.term[k] == P && x.term[k] != P)
			return 0;
		if (x.term[k] == P && y.term[k] != P)
			parts *= k ? b->q : b->p;
	}
	return parts;
}

static void fill_moves(struct board *b)
{
	for (int i = 0; i < NSTATES; i++)
		for (int j = 0; j < NSTATES; j++) {
			int parts = parts_of(b, i, j);

			for (int r = 0; r < b->p * b->q; r++)
				b->move[i][j][r] =
					!parts ? -1 :
						 parts * elements(b->has[j][r]) -
							 common(b->has[i][r],
								b->has[j][r]);
		}
}

static void new_board(struct board *b, struct arena *a, const int mesh[2],
		      const int n[2])
{
	struct placement *on = NEW(a, struct placement);
	int *rank = NEW_N(a, int, mesh[0] * mesh[1]);

	b->p = on->extent[0] = mesh[0];
	b->q = on->extent[1] = mesh[1];
	on->name = "grid";
	on->naxes = 2;
	on->nranks = b->p * b->q;
	on->rank = rank;
	for (int r = 0; r < on->nranks; r++)
		rank[r] = r;
	b->on = on;
	memcpy(b->n, n, sizeof b->n);
	fill_sets(b);
	fill_moves(b);
}

/* ---- all paths ---- */

static void add_path(const struct board *b, const int *at, int moves,
		     struct optimum *best)
{
	struct optimum o = {0, 0, moves};

	for (int r = 0; r < b->p * b->q; r++) {
		int64_t sum = 0;

		for (int i = 0; i < moves; i++) {
			int64_t n = b->move[at[i]][at[i + 1]][r];

			if (n < 0)
				return;
			sum += n;
		}
		o.total += sum;
		if (sum > o.busiest)
			o.busiest = sum;
	}
	compare(best, o);
}

enum { MOST_MOVES = 4, SMALL = 16 };

/* All ways to TO after MOVES moves that led to at[MOVES]. */
static void extend(const struct board *b, int *at, int moves, int to,
		   struct optimum *best)
{
	int most = b->p * b->q > SMALL ? 3 : MOST_MOVES;

	at[moves + 1] = to;
	add_path(b, at, moves + 1, best);
	for (int i = 0; i < NSTATES && moves + 1 < most; i++) {
		at[moves + 1] = i;
		if (b->move[at[moves]][i][0] >= 0)
			extend(b, at, moves + 1, to, best);
	}
}

static struct optimum search(const struct board *b, int from, int to)
{
	struct optimum best = {INT64_MAX, 0, 0};
	int at[MOST_MOVES + 1] = {from};

	extend(b, at, 0, to, &best);
	return best;
}

/* ---- the lower bound, element by element ---- */

static bool holds(const Set s[2], int row, int column)
{
	return s[0].w[row / 64] >> row % 64 & 1 &&
	       s[1].w[column / 64] >> column % 64 & 1;
}

/* Receipts that element (ROW, COLUMN) needs at least. */
static int64_t receipts(const struct board *b, int from, int to, int row,
			int column)
{
	int have = 0, holders = 0, met = 0, copies = 1;
	struct state x = state_of(from);

	for (int r = 0; r < b->p * b->q; r++) {
		bool has = holds(b->has[from][r], row, column);
		bool wants = holds(b->has[to][r], row, column);

		have += has;
		holders += wants;
		met += has && wants;
	}
	for (int k = 0; k < 2; k++)
		if (x.term[k] == B)
			copies *= k ? b->q : b->p;
	return have / copies - 1 + holders - 1 + (met == 0);
}

static int64_t lower_bound(const struct board *b, int from, int to)
{
	int64_t all = 0, least = 0, ranks = b->p * b->q;
	bool partial = is_partial(from);

	for (int r = 0; r < ranks; r++) {
		int64_t piece = elements(b->has[to][r]);
		int64_t need = partial ? piece :
					 piece - common(b->has[from][r],
							b->has[to][r]);

		least = need > least ? need : least;
	}
	if (!partial)
		return least;
	for (int row = 0; row < b->n[0]; row++)
		for (int column = 0; column < b->n[1]; column++)
			all += receipts(b, from, to, row, column);
	all = (all + ranks - 1) / ranks;
	return all > least ? all : least;
}

/* ---- plans ---- */

static void check_pair(const struct board *b, int from, int to)
{
	Type t = {DT_F32, {2, {b->n[0], b->n[1]}}};
	struct boxing x = {.type = t,
			   .from = dist_of(b->on, from),
			   .to = dist_of(b->on, to)};
	struct optimum best = search(b, from, to);
	int64_t bound = 4 * lower_bound(b, from, to);

	plan_boxing(&x);
	check(x.recv_busiest == 4 * best.busiest, "not the fewest bytes", t,
	      x.from, x.to);
	check(x.nsteps == best.moves || from == to, "not the fewest moves", t,
	      x.from, x.to);
	check(x.recv_total == 4 * best.total, "not the fewest bytes in all",
	      t, x.from, x.to);
	check(x.lower_bound == bound, "not the bound", t, x.from, x.to);
	check(x.recv_busiest >= bound, "less than the bound", t, x.from, x.to);
	check(is_partial(from) || x.recv_busiest == bound, "above the bound",
	      t, x.from, x.to);
}

static int above_bound(const struct board *b, int from, int to)
{
	struct optimum best = search(b, from, to);

	return best.busiest > lower_bound(b, from, to);
}

static struct board board;

/* The bound is not met by these alone: a reduction along one mesh axis, with
 * a split that moves from the other to it. */
static void check_board(struct arena *a, const int mesh[2], const int n[2],
			bool even)
{
	int above = 0;
	Type t = {DT_F32, {2, {n[0], n[1]}}};

	new_board(&board, a, mesh, n);
	for (int from = 0; from < 16; from++)
		for (int to = 0; to < 16; to++) {
			if (is_partial(to))
				continue;
			check_pair(&board, from, to);
			above += even && above_bound(&board, from, to);
		}
	check(!even || above == 10, "pairs above the bound", t,
	      dist_of(board.on, 0), dist_of(board.on, 0));
	plan_reset();
}

static void check_boards(struct arena *a)
{
	static const int mesh[][2] = {{2, 2}, {2, 4}, {4, 2},
				      {4, 4}, {8, 8}, {16, 8}};
	static const int even[][2] = {{8, 8},	{8, 16},  {16, 8},
				      {16, 32}, {64, 64}, {128, 128}};
	static const int uneven[][2] = {{5, 7}, {1, 6}, {3, 2}, {9, 17}};

	for (int i = 0; i < 6; i++) {
		check_board(a, mesh[i], even[i], true);
		for (int k = 0; k < 4; k++)
			check_board(a, mesh[i], uneven[k], false);
	}
}

/* ---- bytes and seconds along the links of a mesh ---- */

/* Elements of TO's piece on rank R that come from devices with its coordinates
 * on the axes in NEAR. */
static int64_t from_near(const struct board *b, int from, int to, int r,
			 unsigned near)
{
	struct state x = state_of(from), y = state_of(to);
	int64_t n = 0;

	for (int peer = 0; peer < b->p * b->q; peer++) {
		int mine[2] = {r / b->q, r % b->q};
		int its[2] = {peer / b->q, peer % b->q};
		bool reads = true;

		for (int k = 0; k < 2; k++)
			if (mine[k] != its[k] &&
			    (near >> k & 1 || x.term[k] == B ||
			     (x.term[k] == P && y.term[k] == P)))
				reads = false;
		if (reads)
			n += common(b->has[from][peer], b->has[to][r]);
	}
	return n;
}

static void check_near(const struct board *b, int from, int to)
{
	Type t = {DT_F32, {2, {b->n[0], b->n[1]}}};
	const struct sites *s = sites_of(b->on, b->on, MAX_RANKS);
	Dist x = dist_of(b->on, from), y = dist_of(b->on, to);
	int64_t bytes[MAX_RANKS];

	if (!parts_of(b, from, to))
		return;
	for (unsigned near = 0; near < 4; near++) {
		bool same = true;

		move_bytes_near(t, x, y, s, near, bytes);
		for (int r = 0; r < s->n; r++)
			same &= bytes[r] ==
				4 * from_near(b, from, to, r, near);
		check(same, "bytes of near devices", t, x, y);
	}
}

static double least_seconds(const struct board *b, Type t, int from, int to)
{
	static double move[NSTATES][NSTATES];
	const struct sites *s = sites_of(b->on, b->on, MAX_RANKS);
	double best;

	for (int i = 0; i < NSTATES; i++)
		for (int j = 0; j < NSTATES; j++) {
			move[i][j] = i == j ? 0 : 1e9;
			if (i != j && parts_of(b, i, j))
				move[i][j] = move_seconds(
					t, dist_of(b->on, i),
					dist_of(b->on, j), s);
		}
	best = move[from][to];
	for (int i = 0; i < NSTATES; i++)
		for (int j = 0; j < NSTATES; j++) {
			double way = move[from][i] + move[i][j] + move[j][to];

			best = way < best ? way : best;
		}
	return best;
}

static void check_seconds(struct arena *a, const int mesh[2], const int n[2],
			  const struct mesh_link link[2])
{
	struct topology topology = {{NULL, 0, 0}};
	int cheaper = 0;
	Type t = {DT_F32, {2, {n[0], n[1]}}};

	for (int k = 0; k < 2; k++)
		PUSH(a, topology.lines,
		     (struct topology_line){.axis = k, .link = link[k]});
	new_board(&board, a, mesh, n);
	predict_along(&topology);
	for (int from = 0; from < 16; from++)
		for (int to = 0; to < 16; to++) {
			struct boxing x = {.type = t};
			double least = least_seconds(&board, t, from, to);

			check_near(&board, from, to);
			if (is_partial(to) || from == to)
				continue;
			x.from = dist_of(board.on, from);
			x.to = dist_of(board.on, to);
			plan_boxing(&x);
			check(x.seconds <= least * (1 + 1e-6), "seconds", t,
			      x.from, x.to);
			check(x.seconds <= x.least_seconds &&
				      x.recv_busiest >= x.least_busiest,
			      "beside the fewest bytes", t, x.from, x.to);
			cheaper += x.seconds < x.least_seconds;
		}
	check(cheaper > 0, "a topology changes nothing", t,
	      dist_of(board.on, 0), dist_of(board.on, 0));
	predict_along(NULL);
	plan_reset();
}

static void check_topologies(struct arena *a)
{
	static const struct mesh_link slow = {10e-6, 1e9}, fast = {1e-6, 100e9};
	const struct mesh_link outer[2] = {slow, fast}, inner[2] = {fast, slow};
	static const int mesh[3][2] = {{2, 2}, {2, 4}, {4, 4}};
	static const int n[2] = {128, 96}, few[2] = {5, 7};

	for (int i = 0; i < 3; i++) {
		check_seconds(a, mesh[i], n, outer);
		check_seconds(a, mesh[i], n, inner);
		check_seconds(a, mesh[i], few, outer);
	}
}

/* ---- meshes of many axes ---- */

static Sbp any_term(uint32_t *chance)
{
	*chance = *chance * 1664525u + 1013904223u;
	switch (*chance >> 24 & 7) {
	case 0:
	case 1:
		return sbp_p(RED_SUM);
	case 2:
	case 3:
		return sbp_b();
	default:
		return sbp_s((int)(*chance >> 16 & 3));
	}
}

/* A plan looks at a bounded number of moves, however many axes there are. */
static void check_time(struct arena *a)
{
	struct placement *on = NEW(a, struct placement);
	int *rank = NEW_N(a, int, 4096);
	uint32_t chance = 7;
	Type t = {DT_F32, {4, {64, 32, 128, 16}}};
	clock_t start = clock();

	*on = (struct placement){.name = "four", .naxes = 4,
				 .extent = {8, 8, 8, 8}, .nranks = 4096,
				 .rank = rank};
	for (int r = 0; r < 4096; r++)
		rank[r] = r;
	for (int i = 0; i < 50; i++) {
		struct boxing x = {.type = t, .from = dist_on(on, sbp_b())};

		x.to = x.from;
		for (int k = 0; k < 4; k++) {
			x.from.t[k] = any_term(&chance);
			x.to.t[k] = any_term(&chance);
		}
		plan_boxing(&x);
		check(x.recv_busiest >= x.lower_bound, "below the bound", t,
		      x.from, x.to);
	}
	check(clock() - start < 5 * CLOCKS_PER_SEC, "50 plans take too long",
	      t, dist_on(on, sbp_b()), dist_on(on, sbp_b()));
	plan_reset();
}

int main(void)
{
	struct arena *a = arena_new();

	check_boards(a);
	check_topologies(a);
	check_time(a);
	arena_free(a);
	printf("plan_optimum_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
