/*
 * random.c: initial values. An element depends on seed, name and its global
 * index alone, so ranks agree whatever part they hold.
 */
#include <string.h>

#include "runtime/private.h"
#include "runtime/sbp_random.h"

/* Which stream a name has: FNV-1a. */
static uint64_t purpose(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return h;
}

static double element(const sbp_init *init, sbp_dtype t, uint64_t stream,
		      uint64_t index)
{
	switch (init->kind) {
	case SBP_INIT_UNIFORM:
		if (t == SBP_F64)
			return sbp_uniform_f64(stream, index, 0, init->a,
					       init->b);
		return sbp_uniform_f32(stream, index, 0, init->a, init->b);
	case SBP_INIT_NORMAL:
		return sbp_normal(stream, index, 0, init->a, init->b);
	case SBP_INIT_TRUNC_NORMAL:
		return sbp_trunc_normal(stream, index, 0, init->a, init->b,
					init->c, init->d);
	case SBP_INIT_CONSTANT:
	case SBP_INIT_NONE:
	case SBP_INIT_DATA:
		break;
	}
	return init->a;
}

/* COUNT elements whose global indices follow INDEX. */
static void fill_run(const sbp_init *init, sbp_dtype t, uint64_t stream,
		     uint64_t index, int64_t count, char *to)
{
	for (int64_t i = 0; i < count; i++) {
		double x = element(init, t, stream, index + (uint64_t)i);

		convert(to + i * dtype_bytes(t), t, &x, SBP_F64, 1);
	}
}

static void fill_random(const sbp_init *init, sbp_dtype t, uint64_t stream,
			const int64_t *shape, const sbp_box *box, char *to)
{
	int last = box->rank - 1;
	int64_t run = box->rank ? box->n[last] : 1;
	int64_t index[SBP_MAX_RANK] = {0}, n = box_count(box);

	for (; n > 0; n -= run, to += run * dtype_bytes(t)) {
		int64_t at = 0;

		for (int i = 0; i <= last; i++)
			at = at * shape[i] + box->lo[i] + index[i];
		fill_run(init, t, stream, (uint64_t)at, run, to);
		for (int i = last - 1; i >= 0; i--) {
			if (++index[i] < box->n[i])
				break;
			index[i] = 0;
		}
	}
}

void init_fill(const sbp_init *init, const char *name, uint64_t seed,
	       sbp_dtype t, const int64_t *shape, const sbp_box *box,
	       void *to)
{
	sbp_box all = {.rank = box->rank};

	if (init->kind == SBP_INIT_DATA) {
		memcpy(all.n, shape, sizeof *shape * (size_t)box->rank);
		copy_box(to, box, init->data, &all, box, dtype_bytes(t));
		return;
	}
	fill_random(init, t, sbp_stream(seed, purpose(name)), shape, box, to);
}
