/*
 * cell.c: the elements of moves: boxes copied from one dense piece to another,
 * partial values reduced on the way in the order of the mesh coordinates.
 */
#include <string.h>

#include "runtime/private.h"

enum { CHUNK = 1024 };		/* elements reduced at a time */

typedef struct chunk {		/* of one level of a reduction */
	_Alignas(CACHE_LINE) unsigned char at[CHUNK * 8];
} chunk;

/* ---- runs: a walk over all axes of a cell but the last ---- */

struct runs {
	int64_t index[SBP_MAX_RANK];
	int64_t from, to;		/* of the run, in elements */
	int64_t n, from_stride, to_stride;
};

static struct runs runs_begin(const struct cell *c)
{
	struct runs r = {.from = c->from, .to = c->to, .n = 1,
			 .from_stride = 1, .to_stride = 1};

	if (c->rank) {
		r.n = c->n[c->rank - 1];
		r.from_stride = c->from_stride[c->rank - 1];
		r.to_stride = c->to_stride[c->rank - 1];
	}
	return r;
}

static bool runs_next(struct runs *r, const struct cell *c)
{
	for (int a = c->rank - 2; a >= 0; a--) {
		r->from += c->from_stride[a];
		r->to += c->to_stride[a];
		if (++r->index[a] < c->n[a])
			return true;
		r->from -= c->n[a] * c->from_stride[a];
		r->to -= c->n[a] * c->to_stride[a];
		r->index[a] = 0;
	}
	return false;
}

int64_t cell_rows(const struct cell *c)
{
	return c->rank ? c->n[0] : 1;
}

int64_t cell_row_elements(const struct cell *c)
{
	int64_t n = 1;

	for (int a = 1; a < c->rank; a++)
		n *= c->n[a];
	return n;
}

static struct cell cell_slice(const struct cell *c, int64_t lo, int64_t hi)
{
	struct cell part = *c;

	if (c->rank) {
		part.from += lo * c->from_stride[0];
		part.to += lo * c->to_stride[0];
		part.n[0] = hi - lo;
	}
	return part;
}

/* ---- copies ---- */

/* With a width that the compiler knows; files may be unaligned. */
#define COPY_STRIDED(NAME, WIDTH)                                             \
	static void NAME(unsigned char *to, int64_t to_stride,                \
			 const unsigned char *from, int64_t from_stride,      \
			 int64_t n)                                           \
	{                                                                     \
		for (int64_t i = 0; i < n; i++)                               \
			memcpy(to + i * to_stride * (WIDTH),                  \
			       from + i * from_stride * (WIDTH), WIDTH);      \
	}

COPY_STRIDED(copy_1, 1)
COPY_STRIDED(copy_2, 2)
COPY_STRIDED(copy_4, 4)
COPY_STRIDED(copy_8, 8)

/* Copies N elements with strides in elements. */
static void copy_run(unsigned char *to, int64_t to_stride,
		     const unsigned char *from, int64_t from_stride, int64_t n,
		     int width)
{
	if (to_stride == 1 && from_stride == 1)
		memcpy(to, from, (size_t)(n * width));
	else if (width == 4)
		copy_4(to, to_stride, from, from_stride, n);
	else if (width == 8)
		copy_8(to, to_stride, from, from_stride, n);
	else if (width == 2)
		copy_2(to, to_stride, from, from_stride, n);
	else
		copy_1(to, to_stride, from, from_stride, n);
}

static void cell_copy(const struct sink *to, const unsigned char *from,
		      const struct cell *c, int width)
{
	struct runs r = runs_begin(c);
	bool dense = r.to_stride == 1 && r.from_stride == 1;

	do {
		unsigned char *t = to->to + r.to * width;
		const unsigned char *f = from + r.from * width;

		if (to->stream && dense)
			stream_copy(t, f, r.n * width);
		else
			copy_run(t, r.to_stride, f, r.from_stride, r.n,
				 width);
	} while (runs_next(&r, c));
}

void copy_box(void *to, const sbp_box *to_box, const void *from,
	      const sbp_box *from_box, const sbp_box *box, int width)
{
	struct sink sink = {to, NULL, false};
	struct cell c;

	if (box_count(box) == 0)
		return;
	cell_init(&c, from_box, to_box, box);
	cell_copy(&sink, from, &c, width);
}

/* ---- reductions ---- */

/* 16-bit floats are reduced as f32 and rounded once. */
static bool is_half(sbp_dtype t)
{
	return t == SBP_F16 || t == SBP_BF16;
}

/* One run of at most CHUNK elements, from the start of every part. */
struct part_run {
	const struct exchange *x;
	const unsigned char *const *base;
	const int *part;
	int64_t from, stride, n;
};

static const unsigned char *part_at(const struct part_run *r, int part)
{
	return r->base[r->part[part]] +
	       r->from * dtype_bytes(r->x->how->dtype);
}

/* N elements of a part as the type that is reduced; in place where they lie
 * right. */
static const void *load_part(const struct part_run *r, int part, chunk *room)
{
	const unsigned char *at = part_at(r, part);
	sbp_dtype t = r->x->how->dtype;
	int width = dtype_bytes(t);
	chunk packed;

	if (r->stride == 1 && !is_half(t))
		return at;
	if (!is_half(t)) {
		copy_run(room->at, 1, at, r->stride, r->n, width);
		return room->at;
	}
	if (r->stride != 1) {
		copy_run(packed.at, 1, at, r->stride, r->n, width);
		at = packed.at;
	}
	convert(room->at, SBP_F32, at, t, r->n);
	return room->at;
}

/* Reduces the parts from *PART on that belong to LEVEL and below into a
 * result in ROOM, or in place of a part. */
static const void *reduce_level(const struct part_run *r, int level, int *part,
				chunk *room)
{
	const struct exchange *x = r->x;
	sbp_dtype t = is_half(x->how->dtype) ? SBP_F32 : x->how->dtype;
	const void *sum = NULL, *next;
	chunk scratch;

	if (level == SBP_MAX_MESH || level == x->nlevels)
		return load_part(r, (*part)++, room);
	for (int i = 0; i < x->parts[level]; i++) {
		next = reduce_level(r, level + 1, part, i ? &scratch : room);
		if (i)
			combine(room->at, sum, next, t, x->reduce[level],
				r->n);
		sum = i ? room->at : next;
	}
	return sum;
}

/* One level of a type that needs no conversion, contiguous: the sum of all
 * parts but the last is made in TO. */
static void reduce_flat(const struct part_run *r, void *to, void *mate,
			bool stream)
{
	const struct exchange *x = r->x;
	const void *first = part_at(r, 0);
	int last = x->nparts - 1;

	for (int i = 1; i < last; i++) {
		combine(to, first, part_at(r, i), x->how->dtype, x->reduce[0],
			r->n);
		first = to;
	}
	if (stream && first != to)
		combine_past(to, mate, first, part_at(r, last), x->how->dtype,
			     x->reduce[0], r->n);
	else if (mate)
		combine_both(to, mate, first, part_at(r, last), x->how->dtype,
			     x->reduce[0], r->n);
	else
		combine(to, first, part_at(r, last), x->how->dtype,
			x->reduce[0], r->n);
}

static bool is_flat(const struct part_run *r)
{
	return r->x->nlevels == 1 && r->stride == 1 &&
	       !is_half(r->x->how->dtype);
}

/* The reduced run in ROOM, or in place of a part, in its own type. */
static const void *reduce_run(const struct part_run *r, chunk *room,
			      chunk *packed)
{
	sbp_dtype t = r->x->how->dtype;
	const void *sum;
	int part = 0;

	if (is_flat(r)) {
		reduce_flat(r, room->at, NULL, false);
		return room->at;
	}
	sum = reduce_level(r, 0, &part, room);
	if (!is_half(t))
		return sum;
	convert(packed->at, t, sum, SBP_F32, r->n);
	return packed->at;
}

static void put_run(unsigned char *to, int64_t stride, bool stream,
		    const void *from, int64_t n, int width)
{
	if (!to)
		return;
	if (stream && stride == 1)
		stream_copy(to, from, n * width);
	else
		copy_run(to, stride, from, 1, n, width);
}

/* Reduces R to the elements from AT on. */
static void sink_run(const struct part_run *r, const struct sink *to,
		     int64_t at, int64_t stride)
{
	int width = dtype_bytes(r->x->how->dtype);
	unsigned char *own = to->to + at * width;
	unsigned char *mate = to->mate ? to->mate + at * width : NULL;
	const void *sum;
	chunk room, packed;

	if (is_flat(r) && stride == 1) {
		reduce_flat(r, own, mate, to->stream);
		return;
	}
	sum = reduce_run(r, &room, &packed);
	put_run(own, stride, to->stream, sum, r->n, width);
	put_run(mate, stride, to->stream, sum, r->n, width);
}

/* The N elements from the offsets FROM and TO on. */
static void reduce_long(struct part_run *run, const struct sink *sink,
			int64_t from, int64_t to, int64_t to_stride, int64_t n)
{
	for (int64_t i = 0; i < n; i += CHUNK) {
		run->from = from + i * run->stride;
		run->n = n - i < CHUNK ? n - i : CHUNK;
		sink_run(run, sink, to + i * to_stride, to_stride);
	}
}

static void cell_reduce(const struct exchange *x, const struct cell *c,
			const unsigned char *const *base, const int *part,
			const struct sink *to)
{
	struct runs r = runs_begin(c);
	struct part_run run = {x, base, part, 0, r.from_stride, 0};

	do {
		reduce_long(&run, to, r.from, r.to, r.to_stride, r.n);
	} while (runs_next(&r, c));
}

static void cell_run_all(const struct exchange *x, const struct cell *c,
			 const unsigned char *const *base, const int *part,
			 const struct sink *to)
{
	int width = dtype_bytes(x->how->dtype);
	const unsigned char *from = base[part[0]];

	if (x->nparts > 1)
		cell_reduce(x, c, base, part, to);
	else if (from + c->from * width != to->to + c->to * width)
		cell_copy(to, from, c, width);
}

void cell_run(const struct exchange *x, const struct cell *c, int64_t lo,
	      int64_t hi, const unsigned char *const *base, const int *part,
	      const struct sink *to)
{
	struct cell slice;

	if (hi - lo == cell_rows(c)) {
		cell_run_all(x, c, base, part, to);
		return;
	}
	slice = cell_slice(c, lo, hi);
	cell_run_all(x, &slice, base, part, to);
}
