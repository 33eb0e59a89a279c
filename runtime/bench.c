/*
 * bench.c: --bench. The first steps warm caches and are not counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "runtime/private.h"

enum { WARM_UP = 3 };

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, int64_t n)
{
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static const char *number(char *to, double d)
{
	char rounded[32];

	snprintf(rounded, sizeof rounded, "%.6g", d);
	show_double(to, strtod(rounded, NULL));
	return to;
}

/* recv_bytes is that of the rank which receives most, a step; times are those
 * of rank 0. */
sbp_status bench_report(sbp_model *m, struct bench *b, sbp_message *e)
{
	char med[48], min[48], comm[48];
	int64_t greatest[2] = {b->recv_bytes, 0};
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	greatest[1] = (usage.ru_maxrss + 512) / 1024;
	SBP_TRY(comm_greatest(&m->private_->comm, 2, greatest, e));
	qsort(b->ms, (size_t)b->steps, sizeof *b->ms, by_size);
	qsort(b->comm_ms, (size_t)b->steps, sizeof *b->comm_ms, by_size);
	if (m->rank != 0)
		return SBP_OK;
	printf("{\"steps\": %lld, \"median_ms\": %s, \"min_ms\": %s, "
	       "\"comm_ms\": %s, \"peak_rss_mib\": %lld, \"recv_bytes\": "
	       "%lld, \"ranks\": %d, \"threads\": %d}\n",
	       (long long)b->steps, number(med, median(b->ms, b->steps)),
	       number(min, b->ms[0]),
	       number(comm, median(b->comm_ms, b->steps)),
	       (long long)greatest[1], (long long)greatest[0], m->world,
	       m->threads);
	return SBP_OK;
}

static sbp_status timed_steps(sbp_model *m, struct bench *b)
{
	struct sbp_private *v = m->private_;
	double tick;

	for (int64_t i = 0; i < b->steps; i++) {
		double start = comm_seconds();
		uint64_t comm = v->comm_ticks;

		SBP_TRY(sbp_step(m));
		b->ms[i] = (comm_seconds() - start) * 1e3;
		b->comm_ms[i] = (double)(v->comm_ticks - comm);
	}
	tick = comm_tick(&v->comm);
	for (int64_t i = 0; i < b->steps; i++)
		b->comm_ms[i] *= tick * 1e3;
	return SBP_OK;
}

sbp_status bench_run(sbp_model *m, struct bench *b, sbp_message *e)
{
	struct sbp_private *v = m->private_;

	b->ms = calloc((size_t)b->steps, sizeof *b->ms);
	b->comm_ms = calloc((size_t)b->steps, sizeof *b->comm_ms);
	if (!b->ms || !b->comm_ms)
		return message_set(e, SBP_FAILED, "out of memory");
	for (int i = 0; i < WARM_UP; i++)
		SBP_TRY(sbp_step(m));
	SBP_TRY(comm_barrier(&v->comm, e));
	v->recv_bytes = 0;
	SBP_TRY(timed_steps(m, b));
	b->recv_bytes = v->recv_bytes / b->steps;
	return SBP_OK;
}

void bench_free(struct bench *b)
{
	free(b->ms);
	free(b->comm_ms);
}
