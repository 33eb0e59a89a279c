/*
 * parallel.c: a loop over parts on the threads of a rank.
 *
 * The threads are libgomp's, which oneDNN brings with it: one pool serves
 * kernels and products, so they never compete for a core. It is loaded when
 * the first large loop runs; a rank of one thread never needs it, and where
 * it is missing loops run on the caller.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/parallel.h"

enum { MAX_PARTS = 64 };

static struct {
	pthread_once_t once;
	void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
	void (*set_threads)(int);
} gomp = {.once = PTHREAD_ONCE_INIT};

void sbp_threads_environment(void)
{
	/* A short spin: long enough to meet the next loop of a step, short
	 * enough to leave the core to another process. */
	setenv("GOMP_SPINCOUNT", "20000", 0);
}

static void load(void)
{
	void *lib;

	sbp_threads_environment();
	lib = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (lib == NULL)
		return;
	*(void **)&gomp.parallel = dlsym(lib, "GOMP_parallel");
	*(void **)&gomp.set_threads = dlsym(lib, "omp_set_num_threads");
}

void sbp_threads_use(int threads)
{
	pthread_once(&gomp.once, load);
	if (gomp.set_threads != NULL)
		gomp.set_threads(threads < 1 ? 1 : threads);
}

struct job {
	int64_t n, step;
	void (*body)(void *context, int64_t lo, int64_t hi);
	void *context;
	_Atomic int64_t next;
};

/* Takes parts until none is left; each thread runs it. */
static void work(void *job)
{
	struct job *j = job;

	for (;;) {
		int64_t lo = atomic_fetch_add(&j->next, j->step);

		if (lo >= j->n)
			return;
		j->body(j->context, lo,
			j->n - lo < j->step ? j->n : lo + j->step);
	}
}

/* The cut depends on N and GRAIN alone; parts are whole grains. */
static int64_t part_size(int64_t n, int64_t grain)
{
	int64_t grains = (n + grain - 1) / grain;

	return (grains + MAX_PARTS - 1) / MAX_PARTS * grain;
}

void sbp_parallel(sbp_model *m, int64_t n, int64_t grain,
		  void (*body)(void *context, int64_t lo, int64_t hi),
		  void *context)
{
	struct job j = {.n = n, .body = body, .context = context};

	if (n <= 0)
		return;
	j.step = part_size(n, grain < 1 ? 1 : grain);
	if (m->threads > 1 && j.step < n) {
		pthread_once(&gomp.once, load);
		if (gomp.parallel != NULL) {
			gomp.parallel(work, &j, (unsigned)m->threads, 0);
			return;
		}
	}
	work(&j);
}
