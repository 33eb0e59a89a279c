/*
 * plan_paths_test.c: plans to distributions with P, and between placements,
 * against all paths of up to three moves. The moves are computed anew, from
 * the rules that passes.h gives for `struct flow`, with sets of rows and
 * columns that are filled one element at a time. Paths go through every
 * distribution of both placements, in both nested orders, with P(sum) and
 * P(max) wherever they can stand.
 */
#include <stdio.h>
#include <string.h>

#include "passes/passes.h"
#include "tests/optimum.h"

static int passed, failed;

static void check(bool ok, const char *what, const struct boxing *b,
		  int64_t got, int64_t want)
{
	if (ok) {
		passed++;
		return;
	}
	if (failed++ < 20)
		printf("plan_paths_test: %s: %s: %s -> %s by %s: %lld, not "
		       "%lld\n",
		       what, type_text(b->type), dist_text(b->from),
		       dist_text(b->to), b->algorithm, (long long)got,
		       (long long)want);
}

/* ---- distributions, by number ---- */

enum term { B, S0, S1, P, M, NTERMS };
enum { MOST_STATES = 2 * (NTERMS * NTERMS + 2), MOST_RANKS = 12 };

struct state {
	int place;
	int naxes;
	enum term term[2];
	bool inside_out;
};

/* A tensor on two placements, or on one of them twice. */
struct board {
	int nplaces, world, n[2];
	const struct placement *on[2];
	int nstates;
	struct state state[MOST_STATES];
	Dist dist[MOST_STATES];
	int coord[2][MOST_RANKS][2]; /* of rank: -1 where it is not in it */
	int64_t move[MOST_STATES][MOST_STATES][MOST_RANKS];
};
static struct board board;

static Sbp sbp_of(enum term t)
{
	return t == B   ? sbp_b()
	       : t == P ? sbp_p(RED_SUM)
	       : t == M ? sbp_p(RED_MAX)
			: sbp_s(t == S1);
}

static void add_state(struct board *b, struct state s)
{
	Dist d = dist_on(b->on[s.place], sbp_b());

	for (int k = 0; k < s.naxes; k++) {
		d.t[k] = sbp_of(s.term[k]);
		if (s.naxes == 2)
			d.order[k] = (uint8_t)(s.inside_out ? 1 - k : k);
	}
	b->dist[b->nstates] = d;
	b->state[b->nstates++] = s;
}

static void add_states(struct board *b, int place)
{
	int naxes = b->on[place]->naxes;

	for (int x = 0; x < NTERMS; x++) {
		if (naxes == 1)
			add_state(b, (struct state){place, 1, {x, B}, false});
		for (int y = 0; y < NTERMS && naxes == 2; y++)
			add_state(b, (struct state){place, 2, {x, y}, false});
	}
	for (int x = S0; x <= S1 && naxes == 2; x++)
		add_state(b, (struct state){place, 2, {x, x}, true});
}

/* Along a mesh axis of one device everything is whole. */
static void make_plain(const struct board *b, struct state *s)
{
	for (int k = 0; k < s->naxes; k++)
		if (b->on[s->place]->extent[k] == 1)
			s->term[k] = B;
}

static bool is_partial(enum term t)
{
	return t == P || t == M;
}

static bool has_parts(const struct state *s)
{
	return is_partial(s->term[0]) || is_partial(s->term[1]);
}

/* ---- what a device holds ---- */

/* The mesh axes that split tensor axis AXIS, outermost first. */
static int chain_of(const struct state *s, int axis, int *chain)
{
	int n = 0;

	for (int i = 0; i < s->naxes; i++) {
		int k = s->inside_out ? 1 - i : i;

		if (s->term[k] == (axis ? S1 : S0))
			chain[n++] = k;
	}
	return n;
}

/* Whether element AT of N is in the piece at COORD after these splits. */
static bool owns(const struct placement *on, int n, int at, int nchain,
		 const int *chain, const int *coord)
{
	for (int i = 0; i < nchain; i++) {
		int parts = on->extent[chain[i]], lo = 0, part, k = 0;

		for (;; k++) {
			part = n / parts + (k < n % parts);
			if (at < lo + part)
				break;
			lo += part;
		}
		if (k != coord[chain[i]])
			return false;
		at -= lo;
		n = part;
	}
	return true;
}

/* Bits of the elements along tensor axis AXIS. */
static uint32_t piece(const struct board *b, const struct state *s, int axis,
		      int nchain, const int *coord)
{
	int chain[2], n = chain_of(s, axis, chain);
	uint32_t set = 0;

	for (int at = 0; at < b->n[axis]; at++)
		if (owns(b->on[s->place], b->n[axis], at,
			 nchain < 0 ? n : nchain, chain, coord))
			set |= UINT32_C(1) << at;
	return set;
}

/* ---- one move ---- */

struct rules {
	int64_t parts;
	bool stay[2], place[2];
	int keep[2]; /* by tensor axis: how much of the source's chain */
};

static void rule_parts(const struct board *b, const struct state *x,
		       const struct state *y, struct rules *r)
{
	bool reduced[NTERMS] = {false};

	r->parts = 1;
	for (int k = 0; k < x->naxes; k++) {
		enum term t = x->term[k], other = t == P ? M : P;

		if (!is_partial(t))
			continue;
		if (x->place == y->place && y->term[k] == t &&
		    !reduced[other]) {
			r->stay[k] = true;
			continue;
		}
		reduced[t] = true;
		r->parts *= b->on[x->place]->extent[k];
	}
}

/* Shards of the source that become parts where they lie. */
static void rule_places(const struct state *x, const struct state *y, int axis,
			struct rules *r)
{
	int from[2], to[2], i = 0, last;
	int nfrom = chain_of(x, axis, from), nto = chain_of(y, axis, to);

	while (i < nfrom && i < nto && from[i] == to[i])
		i++;
	for (last = i; last < nfrom && is_partial(y->term[from[last]]); last++)
		r->place[from[last]] = true;
	r->keep[axis] = last > i ? last : 0;
}

static void rules_of(const struct board *b, const struct state *x,
		     const struct state *y, struct rules *r)
{
	bool both = (y->term[0] == P && y->term[1] == M) ||
		    (y->term[0] == M && y->term[1] == P);

	*r = (struct rules){0};
	rule_parts(b, x, y, r);
	for (int axis = 0; axis < 2; axis++)
		if (x->place == y->place && !both)
			rule_places(x, y, axis, r);
}

static int size(uint32_t set)
{
	return __builtin_popcount(set);
}

/* Elements that RANK receives. */
static int64_t receipts(const struct board *b, const struct state *x,
			const struct state *y, const struct rules *r, int rank)
{
	const int *from = b->coord[x->place][rank];
	const int *to = b->coord[y->place][rank];
	int64_t all = r->parts, own = 1;

	if (to[0] < 0)
		return 0;
	for (int k = 0; k < y->naxes; k++)
		if (is_partial(y->term[k]) && !r->stay[k] && !r->place[k] &&
		    to[k] > 0)
			return 0;
	for (int axis = 0; axis < 2; axis++) {
		uint32_t kept = piece(b, y, axis, -1, to);

		if (r->keep[axis])
			kept &= piece(b, x, axis, r->keep[axis], from);
		all *= size(kept);
		own *= from[0] < 0 ? 0
				   : size(kept & piece(b, x, axis, -1, from));
	}
	return all - own;
}

static void fill_moves(struct board *b)
{
	for (int i = 0; i < b->nstates; i++)
		for (int j = 0; j < b->nstates; j++) {
			struct state x = b->state[i], y = b->state[j];
			struct rules r;

			make_plain(b, &x);
			make_plain(b, &y);
			rules_of(b, &x, &y, &r);
			for (int k = 0; k < b->world; k++)
				b->move[i][j][k] = receipts(b, &x, &y, &r, k);
		}
}

/* ---- all paths ---- */

/* All ways on from state AT, which MOVES moves led to: SUM by rank. */
static void extend(const struct board *b, int at, int to, int moves,
		   const int64_t *sum, struct optimum *best)
{
	struct optimum o = {.moves = moves + 1};
	int64_t next[MOST_RANKS];

	for (int k = 0; k < b->world; k++) {
		next[k] = sum[k] + b->move[at][to][k];
		o.total += next[k];
		if (next[k] > o.busiest)
			o.busiest = next[k];
	}
	compare(best, o);
	for (int i = 0; i < b->nstates && moves < 2; i++) {
		bool worse = false;

		for (int k = 0; k < b->world; k++) {
			next[k] = sum[k] + b->move[at][i][k];
			worse |= next[k] > best->busiest;
		}
		if (!worse)
			extend(b, i, to, moves + 1, next, best);
	}
}

/* ---- plans ---- */

static void check_pair(const struct board *b, int from, int to)
{
	struct optimum best = {INT64_MAX, 0, 0};
	int64_t none[MOST_RANKS] = {0};
	struct boxing x = {.type = {DT_F32, {2, {b->n[0], b->n[1]}}},
			   .from = b->dist[from],
			   .to = b->dist[to]};

	extend(b, from, to, 0, none, &best);
	plan_boxing(&x);
	check(x.recv_busiest == 4 * best.busiest, "not the fewest bytes", &x,
	      x.recv_busiest, 4 * best.busiest);
	check(x.nsteps == best.moves, "not the fewest moves", &x, x.nsteps,
	      best.moves);
	check(x.recv_total == 4 * best.total, "not the fewest bytes in all", &x,
	      x.recv_total, 4 * best.total);
	check(x.lower_bound <= 4 * best.busiest, "above what is possible", &x,
	      x.lower_bound, 4 * best.busiest);
	if (!has_parts(&b->state[from]) && !has_parts(&b->state[to]))
		check(x.lower_bound == x.recv_busiest, "not the bound", &x,
		      x.recv_busiest, x.lower_bound);
}

static void new_board(struct board *b, int nplaces,
		      const struct placement *const *on, const int n[2])
{
	b->nplaces = nplaces;
	b->world = b->nstates = 0;
	memcpy(b->n, n, sizeof b->n);
	memset(b->coord, -1, sizeof b->coord);
	for (int i = 0; i < nplaces; i++) {
		b->on[i] = on[i];
		for (int k = 0; k < on[i]->nranks; k++) {
			int rank = on[i]->rank[k], last = on[i]->naxes - 1;
			int inner = last ? on[i]->extent[1] : 1;

			b->coord[i][rank][0] = k / inner;
			b->coord[i][rank][1] = k % inner;
			if (rank >= b->world)
				b->world = rank + 1;
		}
		add_states(b, i);
	}
	fill_moves(b);
}

/* On one placement what is new are targets with P; else all pairs across. */
static void check_board(int nplaces, const struct placement *const *on,
			const int n[2])
{
	struct board *b = &board;

	new_board(b, nplaces, on, n);
	for (int i = 0; i < b->nstates; i++)
		for (int k = 0; k < b->nstates; k++)
			if (nplaces == 1
				    ? has_parts(&b->state[k]) &&
					      !dist_eq(b->dist[i], b->dist[k])
				    : b->state[i].place != b->state[k].place)
				check_pair(b, i, k);
	plan_reset();
}

/* ---- placements ---- */

static const int natural[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const int turned[] = {0, 2, 1, 3};
#define MESH1(name_, n, ranks)                                         \
	{                                                              \
		.name = name_, .naxes = 1, .extent = {n}, .nranks = n, \
		.rank = ranks                                          \
	}
#define MESH2(name_, p, q, ranks)                                             \
	{                                                                     \
		.name = name_, .naxes = 2, .extent = {p, q}, .nranks = p * q, \
		.rank = ranks                                                 \
	}

static const struct placement two_by_two = MESH2("square", 2, 2, natural);
static const struct placement two_by_three = MESH2("wide", 2, 3, natural);
static const struct placement four_by_two = MESH2("tall", 4, 2, natural);
static const struct placement other_square = MESH2("other", 2, 2, natural + 4);
static const struct placement shifted = MESH2("shifted", 2, 2, natural + 2);
static const struct placement transposed = MESH2("turned", 2, 2, turned);
static const struct placement flat = MESH2("flat", 1, 4, natural);
static const struct placement line2 = MESH1("pair", 2, natural);
static const struct placement line3 = MESH1("three", 3, natural + 1);
static const struct placement line4 = MESH1("line", 4, natural);
static const struct placement single = MESH1("single", 1, natural + 5);

static const int sizes[][2] = {{4, 4}, {8, 8}, {5, 7}, {1, 6}, {3, 2}};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static void check_partial_targets(void)
{
	const struct placement *const on[] = {&two_by_two, &two_by_three,
					      &four_by_two, &flat, &line3};

	for (size_t i = 0; i < sizeof on / sizeof *on; i++)
		for (int k = 0; k < NSIZES; k++)
			check_board(1, &on[i], sizes[k]);
}

static void check_placements(void)
{
	static const struct placement *const pairs[][2] = {
		{&two_by_two, &other_square},
		{&two_by_two, &shifted},
		{&two_by_two, &transposed},
		{&two_by_two, &line4},
		{&two_by_two, &line2},
		{&two_by_two, &line3},
		{&two_by_two, &single},
		{&line2, &line3},
		{&line4, &line3},
		{&flat, &line2},
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		for (int k = 0; k < NSIZES; k++)
			check_board(2, pairs[i], sizes[k]);
}

int main(void)
{
	check_partial_targets();
	check_placements();
	printf("plan_paths_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
