/*
 * pbqp_test.c: the solver of sums of cost tables against trying everything.
 * With room for its tables the answer is the least; without, its bound is
 * never above the least and its choice costs what it says.
 */
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"
#include "passes/passes.h"

enum { NVARS = 7, DOMAIN = 3, NTABLES = 11 };

static uint64_t state;

static int pick(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

struct table {
	int n, var[3];
	Cost at[DOMAIN * DOMAIN * DOMAIN];
};

/* Variable 0 has one value only. */
static int values_of(int var)
{
	return var ? DOMAIN : 1;
}

static void random_table(struct table *t)
{
	t->n = 1 + pick(3);
	for (int i = 0; i < t->n; i++) {
		bool again = true;

		while (again) {
			t->var[i] = pick(NVARS);
			again = false;
			for (int k = 0; k < i; k++)
				again |= t->var[k] == t->var[i];
		}
	}
	for (int i = 0; i < DOMAIN * DOMAIN * DOMAIN; i++)
		t->at[i] = pick(100);
}

static Cost cost_of(const struct table *t, const int *choice)
{
	Cost sum = 0;

	for (int i = 0; i < NTABLES; i++) {
		int at = 0;

		for (int k = 0; k < t[i].n; k++)
			at = at * values_of(t[i].var[k]) +
			     choice[t[i].var[k]];
		sum += t[i].at[at];
	}
	return sum;
}

static Cost least_of(const struct table *t)
{
	int choice[NVARS] = {0}, k;
	Cost least = INT64_MAX;

	do {
		Cost c = cost_of(t, choice);

		if (c < least)
			least = c;
		for (k = 0; k < NVARS; k++) {
			if (++choice[k] < values_of(k))
				break;
			choice[k] = 0;
		}
	} while (k < NVARS);
	return least;
}

static struct pbqp_result solve(const struct table *t, size_t limit,
				int *choice)
{
	struct arena *a = arena_new();
	int domain[NVARS];
	struct pbqp_result r;
	struct pbqp *q;

	for (int i = 0; i < NVARS; i++)
		domain[i] = values_of(i);
	q = pbqp_new(a, NVARS, domain);
	for (int i = 0; i < NTABLES; i++)
		pbqp_add(q, t[i].n, t[i].var, t[i].at);
	r = pbqp_solve(q, limit, choice);
	arena_free(a);
	return r;
}

int main(void)
{
	static const size_t limits[] = {1000000, 27, 9, 3, 1};
	int passed = 0, failed = 0;

	for (int i = 0; i < 400; i++) {
		struct table t[NTABLES];
		Cost least;

		state = (uint64_t)i;
		for (int k = 0; k < NTABLES; k++)
			random_table(&t[k]);
		least = least_of(t);
		for (int k = 0; k < 5; k++) {
			int choice[NVARS];
			struct pbqp_result r = solve(t, limits[k], choice);
			bool good = r.cost == cost_of(t, choice) &&
				    r.bound <= least && r.cost >= least &&
				    (k || r.cost == least);

			passed += good;
			failed += !good;
			if (!good)
				printf("problem %d, limit %zu: cost %lld, "
				       "bound %lld, least %lld\n", i,
				       limits[k], (long long)r.cost,
				       (long long)r.bound, (long long)least);
		}
	}
	printf("pbqp_test: %d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
