/*
 * optimum.h: what plans are compared by, for the tests that search all paths.
 */
#ifndef SBPC_TESTS_OPTIMUM_H
#define SBPC_TESTS_OPTIMUM_H

#include <stdint.h>

struct optimum {
	int64_t busiest, total;
	int moves;
};

/* The fewest elements for the busiest rank, then moves, then all elements. */
static inline void compare(struct optimum *best, struct optimum o)
{
	if (o.busiest < best->busiest ||
	    (o.busiest == best->busiest &&
	     (o.moves < best->moves ||
	      (o.moves == best->moves && o.total < best->total))))
		*best = o;
}

#endif
