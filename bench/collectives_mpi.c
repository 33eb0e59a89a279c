/*
 * collectives_mpi.c: the collectives of MPI, as collectives.c has sbpc's; in
 * place if asked for, where that is possible. After SECONDS it ends, wherever
 * it is: not every launcher ends ranks that wait busily.
 *
 *     collectives_mpi LARGEST SECONDS [in-place]
 */
#include <mpi.h>
#include <stdbool.h>
#include <unistd.h>

#include "collectives.h"

static int rank, ranks;
static char *from, *to;
static bool in_place;

/* Rank R's share of N, as sbpc splits. */
static int share(long n, int r)
{
	return (int)(n / ranks + (r < n % ranks));
}

static void shares(long n, int *count, int *start)
{
	for (int r = 0, at = 0; r < ranks; at += count[r++]) {
		count[r] = share(n, r);
		start[r] = at;
	}
}

static void all_gather(long size)
{
	int count[ranks], start[ranks];

	if (size % ranks == 0) {
		MPI_Allgather(in_place ? MPI_IN_PLACE : from,
			      (int)(size / ranks), MPI_BYTE, to,
			      (int)(size / ranks), MPI_BYTE, MPI_COMM_WORLD);
		return;
	}
	shares(size, count, start);
	MPI_Allgatherv(in_place ? MPI_IN_PLACE : from, count[rank], MPI_BYTE,
		       to, count, start, MPI_BYTE, MPI_COMM_WORLD);
}

static void reduce_scatter(long n)
{
	int count[ranks], start[ranks];

	if (n % ranks == 0) {
		MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : from, to,
					 (int)(n / ranks), MPI_FLOAT, MPI_SUM,
					 MPI_COMM_WORLD);
		return;
	}
	shares(n, count, start);
	MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : from, to, count, MPI_FLOAT,
			   MPI_SUM, MPI_COMM_WORLD);
}

static void all_to_all(long size)
{
	int count[ranks], start[ranks], back[ranks], at[ranks];

	if (size % ranks == 0) {
		MPI_Alltoall(in_place ? MPI_IN_PLACE : from,
			     (int)(size / ranks), MPI_BYTE, to,
			     (int)(size / ranks), MPI_BYTE, MPI_COMM_WORLD);
		return;
	}
	shares(size, count, start);
	for (int r = 0; r < ranks; r++) {
		back[r] = count[rank];
		at[r] = r * count[rank];
	}
	MPI_Alltoallv(from, count, start, MPI_BYTE, to, back, at, MPI_BYTE,
		      MPI_COMM_WORLD);
}

static void run(enum op op, int s)
{
	long size = size_of[s], n = size / (long)sizeof(float);

	switch (op) {
	case ALL_REDUCE:
		MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, (int)n,
			      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		return;
	case ALL_GATHER:
		all_gather(size);
		return;
	case REDUCE_SCATTER:
		reduce_scatter(n);
		return;
	default:
		all_to_all(size);
	}
}

static char *buffer(void)
{
	char *at = aligned_alloc(1 << 21, LARGEST);

	if (!at) {
		fprintf(stderr, "out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(at, 0, LARGEST);
	return at;
}

int main(int argc, char **argv)
{
	alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	pin(rank, ranks);
	in_place = argc > 3;
	from = buffer();
	to = buffer();
	take_figures(rank, ranks, argc > 1 ? atol(argv[1]) : LARGEST, run);
	MPI_Finalize();
	free(from);
	free(to);
	return 0;
}
