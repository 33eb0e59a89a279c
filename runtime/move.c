/*
 * move.c: runs moves. Every rank reads what it lacks straight from the arenas
 * of its peers. A rank that is read posts READY and waits for the DONE of its
 * readers, so what it does next may reuse the buffer. All ranks meet the moves
 * in the order of the plan and a rank that is read by another waits for it, so
 * counters suffice and nothing can deadlock.
 *
 * Small pieces are sent as mail instead: then nobody waits for readers. Of an
 * all-reduce between two ranks each reduces one half, and writes it to both.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

enum {
	LOOK_TICKS = 50 * 1000 * 1000,	/* between looks around: 20 ms */
	GRAIN_BYTES = 256 << 10,	/* for a thread */
	MOST_PATIENCE = 64,		/* moves between looks at the clock */
};

struct move_limits move_limits = {.mail = MAIL_BYTES, .stream = 8 << 20};

/* A move as this rank runs it: everything that is the same in each step. */
struct route {
	const struct exchange *x;
	enum lane lane;
	const unsigned char *own;	/* this rank's piece of the source */
	struct letter letter;		/* the same, if it is sent */
	struct sink to;
	/* Pieces by writer, this rank's last, and which of them each part of
	 * a cell is in. */
	const unsigned char **base;
	int *part;
	int mate;			/* of a pair, else -1 */
	bool mails;
	int first;			/* cell, so that ranks do not all read
					 * the same one at a time */
};

void route_free(struct route *r)
{
	if (!r)
		return;
	free(r->base);
	free(r->part);
	free(r);
}

static unsigned char *piece_of(const sbp_model *m, int rank, const int64_t *at)
{
	int class_ = tensor_class(m->private_->p, rank);

	return m->private_->comm.arena[rank] + at[class_];
}

static int base_of(const struct exchange *x, int rank)
{
	for (int i = 0; i < x->nwriters; i++)
		if (x->writer[i] == rank)
			return i;
	return x->nwriters;
}

static bool route_parts(struct route *r, const sbp_model *m,
			const int64_t *from_at)
{
	const struct exchange *x = r->x;
	int n = x->ncells * x->nparts;

	r->base = calloc((size_t)x->nwriters + 1, sizeof *r->base);
	r->part = calloc((size_t)n + 1, sizeof *r->part);
	if (!r->base || !r->part)
		return false;
	for (int i = 0; i < x->nwriters; i++)
		r->base[i] = piece_of(m, x->writer[i], from_at);
	r->base[x->nwriters] = r->own;
	for (int i = 0; i < n; i++)
		r->part[i] = base_of(x, x->peer[i]);
	while (r->first < x->ncells &&
	       x->peer[x->cell[r->first].first] < m->rank)
		r->first++;
	return true;
}

/* NULL when out of memory. TO is the target piece, unless there is none. */
static struct route *route_new(const sbp_model *m, const struct exchange *x,
			       enum lane lane, const int64_t *from_at,
			       void *to)
{
	struct route *r = calloc(1, sizeof *r);
	int width = dtype_bytes(x->how->dtype);

	if (!r)
		return NULL;
	r->x = x;
	r->lane = lane;
	r->to.to = to;
	r->to.stream = x->count * width >= move_limits.stream;
	r->mate = -1;
	if (mesh_index(x->how->from.on, m->rank) >= 0)
		r->own = piece_of(m, m->rank, from_at);
	if (!route_parts(r, m, from_at)) {
		route_free(r);
		return NULL;
	}
	return r;
}

/* Patterns are shared by moves, which look them up once. */
static const struct exchange *exchange_of(sbp_model *m, const sbp_pattern *how)
{
	struct sbp_private *p = m->private_;
	struct exchange *x;

	for (x = p->patterns; x; x = x->next)
		if (x->how == how)
			return x;
	x = exchange_new(how, m->rank);
	if (!x)
		return NULL;
	x->next = p->patterns;
	return p->patterns = x;
}

static struct route *route_of(sbp_model *m, const sbp_move *move)
{
	const struct exchange *x = exchange_of(m, move->how);
	struct route *r;
	void *to;

	if (!x)
		return NULL;
	to = x->holds ? m->arena + move->to_at[m->class_] : NULL;
	r = route_new(m, x, LANE_MOVE, move->from_at, to);
	if (!r)
		return NULL;
	r->mails = x->most_bytes <= move_limits.mail;
	r->letter = (struct letter){r->own, x->source_bytes, x->most_bytes,
				    x->reader, x->nreaders};
	if (x->pairs && !r->mails) {
		r->mate = x->writer[0];
		r->to.mate = piece_of(m, r->mate, move->to_at);
		/* In place what is written has been read: it is cached. */
		r->to.stream = r->to.stream && r->own != to;
	}
	return m->private_->move[move->id] = r;
}

/* ---- running one ---- */

struct slice {			/* rows of a cell, for threads to share */
	const struct route *r;
	const struct cell *c;
	int64_t lo;
};

static void run_slice(void *context, int64_t lo, int64_t hi)
{
	const struct slice *s = context;
	const struct exchange *x = s->r->x;

	cell_run(x, s->c, s->lo + lo, s->lo + hi, s->r->base,
		 s->r->part + s->c->first, &s->r->to);
	if (s->r->to.stream)
		stream_end();
}

static void watch_rows(sbp_model *m, const struct route *r,
		       const struct cell *c, int64_t lo, int64_t hi)
{
	struct comm *comm = &m->private_->comm;

	if (comm->simulation)
		simulate_cell(comm, r->x, c, lo, hi, r->base,
			      r->part + c->first, &r->to);
}

/* Rows LO to HI of a cell. */
static void run_rows(sbp_model *m, const struct route *r,
		     const struct cell *c, int64_t lo, int64_t hi)
{
	int64_t row = cell_row_elements(c) * dtype_bytes(r->x->how->dtype);
	int64_t grain = row < GRAIN_BYTES ? GRAIN_BYTES / row : 1;
	struct slice s = {r, c, lo};

	watch_rows(m, r, c, lo, hi);
	if (m->threads > 1 && hi - lo > grain)
		sbp_parallel(m, hi - lo, grain, run_slice, &s);
	else
		run_slice(&s, 0, hi - lo);
}

static void fill(sbp_model *m, const struct route *r)
{
	const struct exchange *x = r->x;
	struct comm *c = &m->private_->comm;

	if (!x->fills)
		return;
	if (c->simulation)
		simulate_access(c, m->rank, r->to.to,
				x->count * dtype_bytes(x->how->dtype), true);
	fill_identity(r->to.to, x->how->dtype, x->fill, x->count);
}

/* One flag round: the pieces lie beside the flags. */
static sbp_status run_mail(sbp_model *m, const struct route *r, uint64_t n,
			   sbp_message *e)
{
	const struct exchange *x = r->x;
	struct comm *c = &m->private_->comm;

	if (x->nreaders)
		SBP_TRY(mail_put(c, &r->letter, n, e));
	for (int i = 0; i < x->nwriters; i++)
		SBP_TRY(mail_get(c, x->writer[i], x->most_bytes, n,
				 &r->base[i], e));
	fill(m, r);
	for (int i = 0; i < x->ncells; i++) {
		watch_rows(m, r, &x->cell[i], 0, cell_rows(&x->cell[i]));
		cell_run(x, &x->cell[i], 0, cell_rows(&x->cell[i]), r->base,
			 r->part + x->cell[i].first, &r->to);
	}
	if (x->nwriters)
		comm_post(c, LANE_MOVE, FLAG_DONE, n);
	else
		comm_wake(c);
	return SBP_OK;
}

/* Waits for those that write cell C. */
static sbp_status await_cell(sbp_model *m, const struct route *r,
			     const struct cell *c, uint64_t n, sbp_message *e)
{
	for (int i = 0; i < r->x->nparts; i++) {
		int peer = r->x->peer[c->first + i];

		if (peer != m->rank)
			SBP_TRY(comm_wait(&m->private_->comm, peer, r->lane,
					  FLAG_READY, n, e));
	}
	return SBP_OK;
}

/* This rank's half of a pair's only cell, in whole lines. */
static void run_half(sbp_model *m, const struct route *r)
{
	const struct cell *c = &r->x->cell[0];
	int64_t rows = cell_rows(c), half = (rows / 2 + CACHE_LINE - 1) &
					    ~(int64_t)(CACHE_LINE - 1);
	bool first = r->x->peer[c->first] == m->rank;
	int64_t lo, hi;

	half = half < rows ? half : rows;
	lo = first ? 0 : half;
	hi = first ? half : rows;
	if (lo < hi)
		run_rows(m, r, c, lo, hi);
}

static sbp_status run_cells(sbp_model *m, const struct route *r, uint64_t n,
			    sbp_message *e)
{
	const struct exchange *x = r->x;

	for (int i = 0; i < x->ncells; i++) {
		int at = i + r->first;
		const struct cell *c = &x->cell[at % x->ncells];

		SBP_TRY(await_cell(m, r, c, n, e));
		if (r->mate >= 0)
			run_half(m, r);
		else
			run_rows(m, r, c, 0, cell_rows(c));
	}
	return SBP_OK;
}

/* In place: the pieces must stay until all have read them. */
static sbp_status run_arena(sbp_model *m, const struct route *r, uint64_t n,
			    sbp_message *e)
{
	const struct exchange *x = r->x;
	struct comm *c = &m->private_->comm;

	if (x->nreaders)
		comm_mark(c, r->lane, FLAG_READY, n);
	fill(m, r);
	SBP_TRY(run_cells(m, r, n, e));
	if (x->nwriters)
		comm_mark(c, r->lane, FLAG_DONE, n);
	if (x->nwriters || x->nreaders)
		comm_wake(c);
	for (int i = 0; i < x->nreaders; i++)
		SBP_TRY(comm_wait(c, x->reader[i], r->lane, FLAG_DONE, n, e));
	return SBP_OK;
}

static sbp_status run_either(sbp_model *m, const struct route *r, uint64_t n,
			     sbp_message *e)
{
	return r->mails ? run_mail(m, r, n, e) : run_arena(m, r, n, e);
}

static sbp_status run(sbp_model *m, const struct route *r, uint64_t n,
		      sbp_message *e)
{
	struct comm *c = &m->private_->comm;
	sbp_status status;

	m->private_->recv_bytes += r->x->recv_bytes;
	if (!c->simulation)
		return run_either(m, r, n, e);
	simulate_exchange(c, r->x, r->own, r->to.to);
	status = run_either(m, r, n, e);
	simulate_exchanged(c);
	return status == SBP_OK ? simulate_check(c, e) : status;
}

sbp_status exchange_run(sbp_model *m, const struct exchange *x,
			const int64_t *from_at, void *to, uint64_t n,
			sbp_message *e)
{
	struct route *r = route_new(m, x, LANE_HOST, from_at, to);
	sbp_status status;

	if (!r)
		return message_set(e, SBP_FAILED, "out of memory");
	status = run(m, r, n, e);
	route_free(r);
	return status;
}

/* Ranks that this one has no dealings with are looked at now and then. Where
 * moves follow fast, not even the clock is looked at each time. */
static sbp_status look_around(struct sbp_private *p, sbp_message *e)
{
	uint64_t now;

	if (--p->patience > 0)
		return SBP_OK;
	now = comm_ticks();
	if (now - p->looked < LOOK_TICKS) {
		if (p->impatience < MOST_PATIENCE)
			p->impatience = 2 * p->impatience + 1;
		p->patience = p->impatience;
		return SBP_OK;
	}
	p->patience = p->impatience /= 2;
	p->looked = now;
	return comm_look(&p->comm, e);
}

/* Of mail the waits alone are timed: the rest takes less than the clock. */
static sbp_status run_timed(sbp_model *m, const sbp_move *move,
			    const struct route *r, sbp_message *e)
{
	struct sbp_private *p = m->private_;
	uint64_t n = p->steps * (uint64_t)p->p->nmoves + (uint64_t)move->id;
	uint64_t start, waited = p->comm.wait_ticks;
	sbp_status status;

	SBP_TRY(look_around(p, e));
	if (r->mails) {
		status = run(m, r, n + 1, e);
		p->comm_ticks += p->comm.wait_ticks - waited;
		return status;
	}
	start = comm_ticks();
	status = run(m, r, n + 1, e);
	p->comm_ticks += comm_ticks() - start;
	return status;
}

sbp_status sbp_move_run(sbp_model *m, const sbp_move *move)
{
	struct route *r = m->private_->move[move->id];
	sbp_status status;
	sbp_message e;

	if (!r)
		r = route_of(m, move);
	if (!r)
		status = message_set(&e, SBP_FAILED, "out of memory");
	else if (m->private_->comm.simulation &&
		 simulate_move(m, move, &e) != SBP_OK)
		status = SBP_FAILED;
	else if (r->x->nreaders || r->x->nwriters)
		status = run_timed(m, move, r, &e);
	else
		status = run(m, r, 0, &e);
	if (status != SBP_OK)
		return model_fail_at(m, move->line, move->how->name,
				     move->value, &e);
	if (m->private_->comm.simulation)
		simulate_calls(m);
	return SBP_OK;
}
