/*
 * collectives.h: what both sides of the bench of collectives run: the sizes,
 * how often, and how a figure is taken. SIZE is the bytes of the largest
 * buffer of a rank: the tensor of an all-reduce, the result of an all-gather,
 * the input of a reduce-scatter, either buffer of an all-to-all.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 64 << 20, BATCHES = 11, SETTLING = 1000 };
enum op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, OPS };
enum { SIZES = 5 };

static const char *const op_name[] = {"all-reduce", "all-gather",
				      "reduce-scatter", "all-to-all"};
static const long size_of[] = {4, 1 << 10, 1 << 16, 1 << 20, LARGEST};
/* Operations in a batch: about a millisecond. */
static const int times_of[] = {1000, 1000, 100, 20, 1};

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Ranks on the cores in turn. */
static inline void pin(int rank)
{
	cpu_set_t all, own;
	int n, core = 0;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	for (n = rank % CPU_COUNT(&all); !CPU_ISSET(core, &all) || n-- > 0;)
		core++;
	CPU_ZERO(&own);
	CPU_SET(core, &own);
	sched_setaffinity(0, sizeof own, &own);
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Calls RUN for every operation and size; rank 0 prints
 * "OP SIZE MEDIAN MIN" in microseconds. MOST is the largest size wanted. */
static inline void take_figures(int rank, int ranks, long most,
				void (*run)(enum op op, int size))
{
	/* until the system has found where each rank runs */
	for (int i = 0; i < SETTLING; i++)
		run(ALL_REDUCE, 0);
	for (int op = 0; op < OPS; op++)
		for (int s = 0; s < SIZES && size_of[s] <= most; s++) {
			int times = ranks > 2 ? (times_of[s] + 9) / 10
					      : times_of[s];
			double us[BATCHES], start;

			for (int i = 0; i < (times + 3) / 4; i++)
				run((enum op)op, s);
			for (int b = 0; b < BATCHES; b++) {
				start = seconds();
				for (int i = 0; i < times; i++)
					run((enum op)op, s);
				us[b] = (seconds() - start) * 1e6 / times;
			}
			qsort(us, BATCHES, sizeof *us, by_size);
			if (rank != 0)
				continue;
			printf("%s %ld %.4f %.4f\n", op_name[op], size_of[s],
			       us[BATCHES / 2], us[0]);
			fflush(stdout);
		}
}
