/*
 * simulate_step.c: what the ranks do, as the simulation sees it: which moves
 * they run, which bytes their calls and moves access, and that no source
 * changes while it is read.
 */
#include <string.h>

#include "runtime/simulate.h"

/* ---- accesses ---- */

void simulate_access(struct comm *c, int owner, const void *at, int64_t bytes,
		     bool write)
{
	const unsigned char *base = (const unsigned char *)c->control[owner];
	int64_t lo = (const unsigned char *)at - base;

	/* What was gathered goes to memory of the rank's own. */
	if (lo < 0 || lo >= CONTROL_BYTES + c->arena_bytes[owner])
		return;
	shadow_access(actor_of(c), &c->simulation->actor[owner], lo, lo + bytes,
		      write);
}

void simulate_about(const sbp_model *m, const sbp_tensor *t)
{
	actor_of(&m->private_->comm)->act = (struct act){ACT_TENSOR, t};
}

void simulate_tensor(const sbp_model *m, const sbp_tensor *t, int rank,
		     bool write)
{
	struct sbp_private *v = m->private_;
	sbp_box box;

	simulate_about(m, t);
	if (tensor_piece_of(t, rank, &box))
		simulate_access(&v->comm, rank,
				v->comm.arena[rank] +
					t->at[tensor_class(v->p, rank)],
				box_count(&box) * dtype_bytes(t->dtype), write);
}

/* The bytes from the first to the last element of rows LO to HI, of which
 * STRIDE are from one to the next along each axis. */
static void rows_span(const struct cell *c, const int64_t *stride,
		      int64_t first, int64_t lo, int64_t hi, int width,
		      int64_t *from, int64_t *bytes)
{
	int64_t last = 0;

	for (int k = 1; k < c->rank; k++)
		last += (c->n[k] - 1) * stride[k];
	if (c->rank > 0) {
		first += lo * stride[0];
		last += (hi - lo - 1) * stride[0];
	}
	*from = first * width;
	*bytes = (last + 1) * width;
}

void simulate_cell(struct comm *c, const struct exchange *x,
		   const struct cell *cell, int64_t lo, int64_t hi,
		   const unsigned char *const *base, const int *part,
		   const struct sink *to)
{
	int width = dtype_bytes(x->how->dtype);
	int64_t from, bytes;

	if (lo >= hi)
		return;
	rows_span(cell, cell->from_stride, cell->from, lo, hi, width, &from,
		  &bytes);
	for (int i = 0; i < x->nparts; i++)
		simulate_access(c, x->peer[cell->first + i],
				base[part[i]] + from, bytes, false);
	rows_span(cell, cell->to_stride, cell->to, lo, hi, width, &from,
		  &bytes);
	simulate_access(c, c->rank, to->to + from, bytes, true);
	if (to->mate)
		simulate_access(c, x->writer[0], to->mate + from, bytes, true);
}

/* ---- calls write what the trace says ---- */

/* No other rank runs until simulate_move or simulate_step. Of an arena that is
 * too large a part is drawn, another one each time. */
void simulate_calls(sbp_model *m)
{
	struct simulation *s = m->private_->comm.simulation;
	int64_t bytes = s->p->arena_bytes[m->class_];
	uint64_t places =
		bytes > KEPT_BYTES ? (uint64_t)(bytes - KEPT_BYTES) + 1 : 1;

	s->kept_at = (int64_t)(simulation_draw(s) % places);
	s->kept_bytes = bytes < KEPT_BYTES ? bytes : KEPT_BYTES;
	memcpy(s->kept, m->arena + s->kept_at, (size_t)s->kept_bytes);
}

/* What X wrote is as it should be. */
static void keep_written(struct simulation *s, const sbp_model *m,
			 const sbp_access *x)
{
	int64_t lo = x->at > s->kept_at ? x->at : s->kept_at;
	int64_t hi = x->at + x->bytes, end = s->kept_at + s->kept_bytes;

	hi = hi < end ? hi : end;
	if (lo < hi)
		memcpy(s->kept + (lo - s->kept_at), m->arena + lo,
		       (size_t)(hi - lo));
}

static void compare_kept(const sbp_model *m, struct actor *a)
{
	const struct simulation *s = a->s;
	const unsigned char *now = m->arena + s->kept_at;
	int64_t i = 0;

	if (!memcmp(s->kept, now, (size_t)s->kept_bytes))
		return;
	while (s->kept[i] == now[i])
		i++;
	actor_blame(a,
		    "wrong write: byte %lld of rank %d's arena has changed "
		    "since the move before this one, and no call in between "
		    "should write there",
		    (long long)(s->kept_at + i), m->rank);
}

/* The calls in front of move K of the list, or after the last one. */
static void access_calls(sbp_model *m, const sbp_trace *t, int k)
{
	struct comm *c = &m->private_->comm;
	struct actor *a = actor_of(c);

	for (int i = k ? t->until[k - 1] : 0; i < t->until[k]; i++) {
		const sbp_access *x = &t->access[i];

		a->act = (struct act){ACT_CALL, x};
		simulate_access(c, c->rank, m->arena + x->at, x->bytes,
				x->write);
		if (x->write)
			keep_written(a->s, m, x);
	}
	compare_kept(m, a);
}

/* ---- the order of moves ---- */

sbp_status simulate_move(sbp_model *m, const sbp_move *move, sbp_message *e)
{
	struct comm *c = &m->private_->comm;
	struct actor *a = actor_of(c);
	const sbp_trace *t = &a->s->trace[m->class_];
	int k = a->moves++;

	if (k >= t->nmoves)
		return message_set(e, SBP_FAILED,
				   "wrong order: after the last of %d moves of "
				   "this rank",
				   t->nmoves);
	if (t->move[k] != move->id)
		return message_set(e, SBP_FAILED,
				   "wrong order: this is move %d of the plan, "
				   "and move %d is next for this rank",
				   move->id, t->move[k]);
	access_calls(m, t, k);
	a->act = (struct act){ACT_MOVE, move};
	return simulate_check(c, e);
}

static void end_step(sbp_model *m, struct actor *a)
{
	const sbp_trace *t = &a->s->trace[m->class_];

	if (a->moves < t->nmoves)
		actor_blame(a,
			    "wrong order: the step has ended, and move %d "
			    "of the plan is next for this rank",
			    t->move[a->moves]);
	else
		access_calls(m, t, t->nmoves);
}

sbp_status simulate_step(sbp_model *m, sbp_message *e)
{
	struct actor *a = actor_of(&m->private_->comm);

	end_step(m, a);
	a->moves = 0;
	a->act = (struct act){ACT_OUTSIDE, NULL};
	if (a->s->steps <= m->step)
		a->s->steps = m->step + 1;
	if (!a->wrong)
		return SBP_OK;
	return message_set(e, SBP_FAILED, "rank %d, step %llu: %.500s", m->rank,
			   (unsigned long long)m->step + 1, a->error.text);
}

/* ---- sources stay while they are read ---- */

void simulate_exchange(struct comm *c, const struct exchange *x,
		       const unsigned char *own, const unsigned char *to)
{
	struct actor *a = actor_of(c);
	int64_t bytes = x->count * dtype_bytes(x->how->dtype);
	bool apart = !to || to + bytes <= own || own + x->source_bytes <= to;

	a->x = x;
	a->source = apart ? own : NULL;
}

void simulate_exchanged(struct comm *c)
{
	struct actor *a = actor_of(c);

	a->x = NULL;
	a->source = NULL;
}

static uint64_t hash_bytes(const unsigned char *at, int64_t n)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15), x;

	for (; n >= 8; n -= 8, at += 8) {
		memcpy(&x, at, 8);
		h = (h ^ x) * UINT64_C(0xd6e8feb86659fd93);
		h ^= h >> 32;
	}
	for (; n > 0; n--)
		h = (h ^ *at++) * UINT64_C(0xd6e8feb86659fd93);
	return h;
}

void seal_source(struct actor *a, enum lane lane, uint64_t n)
{
	const struct exchange *x = a->x;

	if (!x || !a->source || !x->nreaders)
		return;
	a->seal = (struct seal){.lane = lane,
				.n = n,
				.at = a->source,
				.bytes = x->source_bytes,
				.left = x->nreaders};
	a->seal.hash = hash_bytes(a->seal.at, a->seal.bytes);
}

static void unseal(struct actor *a, struct actor *of)
{
	struct seal *seal = &of->seal;
	char doing[200];

	if (--seal->left || hash_bytes(seal->at, seal->bytes) == seal->hash)
		return;
	act_text(a->s, a->act, doing, sizeof doing);
	actor_blame(a,
		    "race: the data that rank %d gave has changed before "
		    "rank %d had read it in %s",
		    of->rank, a->rank, doing);
}

void unseal_sources(struct actor *a, enum lane lane, uint64_t n)
{
	const struct exchange *x = a->x;

	for (int i = 0; x && i < x->nwriters; i++) {
		struct actor *of = &a->s->actor[x->writer[i]];

		if (of->seal.left && of->seal.lane == lane && of->seal.n == n)
			unseal(a, of);
	}
}
