/*
 * move.c: runs moves. Every rank reads what it lacks straight from the arenas
 * of its peers. A rank that is read posts READY and waits for the DONE of its
 * readers, so what it does next may reuse the buffer. All ranks meet the moves
 * in the order of the plan and a rank that is read by another waits for it, so
 * counters suffice and nothing can deadlock.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

enum { CHUNK = 1024 };		/* elements reduced at a time */
#define LOOK_SECONDS 0.02

typedef struct chunk {		/* of one level of a reduction */
	_Alignas(CACHE_LINE) unsigned char at[CHUNK * 8];
} chunk;

/* Where a cell's parts are read: the peers' buffers. */
struct sources {
	const sbp_model *m;
	const struct exchange *x;
	const int64_t *from_at;
};

static const unsigned char *source_of(const struct sources *s, int rank)
{
	int class_ = tensor_class(s->m->private_->p, rank);

	return s->m->private_->comm.arena[rank] + s->from_at[class_];
}

/* Copies N elements with strides in elements. */
static void copy_run(unsigned char *to, int64_t to_stride,
		     const unsigned char *from, int64_t from_stride, int64_t n,
		     int width)
{
	if (to_stride == 1 && from_stride == 1) {
		memcpy(to, from, (size_t)(n * width));
		return;
	}
	for (int64_t i = 0; i < n; i++)
		memcpy(to + i * to_stride * width,
		       from + i * from_stride * width, (size_t)width);
}

/* A walk over the runs of a cell: all its axes but the last. */
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

static void cell_copy(unsigned char *to, const unsigned char *from,
		      const struct cell *c, int width)
{
	struct runs r = runs_begin(c);

	do {
		copy_run(to + r.to * width, r.to_stride,
			 from + r.from * width, r.from_stride, r.n, width);
	} while (runs_next(&r, c));
}

/* 16-bit floats are reduced as f32 and rounded once. */
static bool is_half(sbp_dtype t)
{
	return t == SBP_F16 || t == SBP_BF16;
}

/* N elements of a part from FROM on, as the type that is reduced; in place
 * where they lie right. */
static const void *load_part(const struct sources *s, const unsigned char *at,
			     int64_t stride, int64_t n, chunk *room)
{
	sbp_dtype t = s->x->how->dtype;
	int width = dtype_bytes(t);
	chunk packed;

	if (stride == 1 && !is_half(t))
		return at;
	if (!is_half(t)) {
		copy_run(room->at, 1, at, stride, n, width);
		return room->at;
	}
	copy_run(packed.at, 1, at, stride, n, width);
	convert(room->at, SBP_F32, packed.at, t, n);
	return room->at;
}

struct part_run {
	const int *peer;		/* the parts of the cell */
	int64_t from, stride, n;	/* elements from the piece's start */
};

/* Reduces the parts from *PART on that belong to LEVEL and below into a
 * result in ROOM[level], or in place of a part. */
static const void *reduce_level(const struct sources *s,
				const struct part_run *r, int level, int *part,
				chunk *room)
{
	const struct exchange *x = s->x;
	sbp_dtype t = is_half(x->how->dtype) ? SBP_F32 : x->how->dtype;
	const void *sum = NULL, *next;
	chunk scratch;

	if (level == SBP_MAX_MESH || level == x->nlevels) {
		int width = dtype_bytes(x->how->dtype);
		const unsigned char *at = source_of(s, r->peer[(*part)++]);

		return load_part(s, at + r->from * width, r->stride, r->n,
				 room);
	}
	for (int i = 0; i < x->parts[level]; i++) {
		next = reduce_level(s, r, level + 1, part,
				    i ? &scratch : room);
		if (i)
			combine(room->at, sum, next, t, x->reduce[level],
				r->n);
		sum = i ? room->at : next;
	}
	return sum;
}

static void store_result(unsigned char *to, int64_t stride, const void *from,
			 sbp_dtype t, int64_t n)
{
	int width = dtype_bytes(t);
	chunk packed;

	if (is_half(t)) {
		convert(packed.at, t, from, SBP_F32, n);
		from = packed.at;
	}
	copy_run(to, stride, from, 1, n, width);
}

/* One level of a type that needs no conversion, contiguous: in place. */
static void reduce_flat(const struct sources *s, const struct part_run *r,
			unsigned char *to)
{
	const struct exchange *x = s->x;
	int64_t skip = r->from * dtype_bytes(x->how->dtype);
	const void *first = source_of(s, r->peer[0]) + skip;

	for (int i = 1; i < x->nparts; i++) {
		combine(to, first, source_of(s, r->peer[i]) + skip,
			x->how->dtype, x->reduce[0], r->n);
		first = to;
	}
}

static void reduce_run(const struct sources *s, const struct part_run *r,
		       unsigned char *to, int64_t to_stride)
{
	sbp_dtype t = s->x->how->dtype;
	int part = 0;
	chunk room;

	if (s->x->nlevels == 1 && s->x->nparts > 1 && to_stride == 1 &&
	    r->stride == 1 && !is_half(t)) {
		reduce_flat(s, r, to);
		return;
	}
	store_result(to, to_stride, reduce_level(s, r, 0, &part, &room), t,
		     r->n);
}

static void cell_reduce(const struct sources *s, const struct cell *c,
			unsigned char *to)
{
	int width = dtype_bytes(s->x->how->dtype);
	struct runs r = runs_begin(c);

	do {
		for (int64_t i = 0; i < r.n; i += CHUNK) {
			struct part_run run = {
				s->x->peer + c->first,
				r.from + i * r.from_stride, r.from_stride,
				r.n - i < CHUNK ? r.n - i : CHUNK};

			reduce_run(s, &run,
				   to + (r.to + i * r.to_stride) * width,
				   r.to_stride);
		}
	} while (runs_next(&r, c));
}

static void cell_run(const struct sources *s, const struct cell *c, void *to)
{
	const unsigned char *from;
	int width = dtype_bytes(s->x->how->dtype);

	if (s->x->nparts > 1) {
		cell_reduce(s, c, to);
		return;
	}
	from = source_of(s, s->x->peer[c->first]);
	if (from + c->from * width != (unsigned char *)to + c->to * width)
		cell_copy(to, from, c, width);
}

/* Waits for those that write cell C, unless they have been awaited. */
static sbp_status cell_await(sbp_model *m, const struct exchange *x,
			     const struct cell *c, enum lane lane, uint64_t n,
			     sbp_message *e)
{
	for (int i = 0; i < x->nparts; i++) {
		int peer = x->peer[c->first + i];

		if (peer != m->rank)
			SBP_TRY(comm_wait(&m->private_->comm, peer, lane,
					  FLAG_READY, n, e));
	}
	return SBP_OK;
}

sbp_status exchange_run(sbp_model *m, const struct exchange *x,
			const int64_t *from_at, void *to, enum lane lane,
			uint64_t n, sbp_message *e)
{
	struct comm *comm = &m->private_->comm;
	struct sources s = {m, x, from_at};

	if (x->nreaders)
		comm_post(comm, lane, FLAG_READY, n);
	if (x->fills)
		fill_identity(to, x->how->dtype, x->fill, x->count);
	for (int i = 0; i < x->ncells; i++) {
		SBP_TRY(cell_await(m, x, &x->cell[i], lane, n, e));
		cell_run(&s, &x->cell[i], to);
	}
	m->private_->recv_bytes += x->recv_bytes;
	if (x->nwriters)
		comm_post(comm, lane, FLAG_DONE, n);
	for (int i = 0; i < x->nreaders; i++)
		SBP_TRY(comm_wait(comm, x->reader[i], lane, FLAG_DONE, n, e));
	return SBP_OK;
}

/* Patterns are shared by moves, and looked up once a move. */
static struct exchange *exchange_of(sbp_model *m, const sbp_move *move)
{
	struct sbp_private *p = m->private_;
	struct exchange *x = p->move[move->id];

	if (x)
		return x;
	for (x = p->patterns; x; x = x->next)
		if (x->how == move->how)
			break;
	if (!x) {
		x = exchange_new(move->how, m->rank);
		if (!x)
			return NULL;
		x->next = p->patterns;
		p->patterns = x;
	}
	return p->move[move->id] = x;
}

/* Ranks that this one has no dealings with are looked at now and then. */
static sbp_status look_around(struct sbp_private *p, double now,
			      sbp_message *e)
{
	if (now - p->looked < LOOK_SECONDS)
		return SBP_OK;
	p->looked = now;
	return comm_look(&p->comm, e);
}

static sbp_status run_timed(sbp_model *m, const sbp_move *move,
			    const struct exchange *x, void *to, sbp_message *e)
{
	struct sbp_private *p = m->private_;
	uint64_t n = p->steps * (uint64_t)p->p->nmoves + (uint64_t)move->id;
	double start = comm_seconds();
	sbp_status status = look_around(p, start, e);

	if (status == SBP_OK)
		status = exchange_run(m, x, move->from_at, to, LANE_MOVE,
				      n + 1, e);
	p->comm_seconds += comm_seconds() - start;
	return status;
}

sbp_status sbp_move_run(sbp_model *m, const sbp_move *move)
{
	struct exchange *x = exchange_of(m, move);
	sbp_status status;
	sbp_message e;
	void *to;

	if (!x) {
		message_set(&e, SBP_FAILED, "out of memory");
		return model_fail_at(m, move->line, move->how->name,
				     move->value, &e);
	}
	to = x->holds ? m->arena + move->to_at[m->class_] : NULL;
	if (!x->nreaders && !x->nwriters)
		return exchange_run(m, x, move->from_at, to, LANE_MOVE, 0, &e);
	status = run_timed(m, move, x, to, &e);
	if (status != SBP_OK)
		return model_fail_at(m, move->line, move->how->name,
				     move->value, &e);
	return SBP_OK;
}

void copy_box(void *to, const sbp_box *to_box, const void *from,
	      const sbp_box *from_box, const sbp_box *box, int width)
{
	struct cell c;

	if (box_count(box) == 0)
		return;
	cell_init(&c, from_box, to_box, box);
	cell_copy(to, from, &c, width);
}
