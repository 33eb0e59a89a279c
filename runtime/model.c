/*
 * model.c: the life of a model: joining the other ranks, the arena, steps.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

struct handle {
	sbp_model m;
	struct sbp_private p;
};

int tensor_class(const sbp_program *p, int rank)
{
	return p->class_of ? p->class_of[rank] : 0;
}

static sbp_status check_program(const sbp_program *p, sbp_message *e)
{
	if (p->abi != SBP_ABI)
		return message_set(e, SBP_FAILED,
				   "'%s' was compiled for version %d of the "
				   "runtime's interface, this is version %d",
				   p->name, p->abi, SBP_ABI);
	return isa_check(p->isa, e);
}

/* Who this rank is: of a group, or of the environment. */
static sbp_status find_rank(struct sbp_private *v, const sbp_options *o,
			    sbp_message *e)
{
	if (!o->group)
		return env_read(&v->env, v->p->world, e);
	SBP_TRY(env_group(&v->env, e));
	v->env.world = v->env.local_world = v->p->world;
	v->env.rank = v->env.local_rank = o->rank;
	if (o->rank < 0 || o->rank >= v->p->world)
		return message_set(e, SBP_USAGE,
				   "rank %d is not one of %d", o->rank,
				   v->p->world);
	return SBP_OK;
}

static int64_t total_bytes(const sbp_program *p)
{
	int64_t n = 0;

	for (int r = 0; r < p->world; r++)
		n += p->arena_bytes[tensor_class(p, r)];
	return n;
}

static sbp_status join(sbp_model *m, const sbp_options *o, sbp_message *e)
{
	struct sbp_private *v = m->private_;
	int64_t bytes = v->p->arena_bytes[m->class_];

	v->comm.timeout = v->env.timeout;
	if (o->group)
		SBP_TRY(group_join(&v->comm, o->group, m->rank,
				   v->p->plan_hash, bytes, v->p->world, e));
	else
		SBP_TRY(shm_open_ranks(&v->comm, &v->env, v->p->plan_hash,
				       bytes, total_bytes(v->p), e));
	m->arena = v->comm.arena[m->rank];
	return SBP_OK;
}

/* This rank's part of each extent that differs from rank to rank. */
static void find_extents(sbp_model *m)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < p->nextents; i++) {
		const sbp_extent *x = &p->extents[i];
		int at = mesh_index(x->on, m->rank), coord[SBP_MAX_MESH];
		sbp_piece own = {0, at < 0 ? 0 : x->n};

		if (at >= 0)
			mesh_coords(x->on, at, coord);
		for (int j = 0; at >= 0 && j < x->naxes; j++) {
			int k = x->axes[j];
			sbp_piece part = sbp_split(own.n, x->on->extent[k],
						   coord[k]);

			own.lo += part.lo;
			own.n = part.n;
		}
		m->private_->own[i] = own;
	}
	m->own = m->private_->own;
}

static sbp_status allocate(struct sbp_private *v, sbp_message *e)
{
	const sbp_program *p = v->p;

	v->own = calloc((size_t)p->nextents + 1, sizeof *v->own);
	v->move = calloc((size_t)p->nmoves + 1, sizeof *v->move);
	v->given = calloc((size_t)p->ntensors + 1, sizeof *v->given);
	if (!v->own || !v->move || !v->given)
		return message_set(e, SBP_FAILED, "out of memory");
	return SBP_OK;
}

static sbp_status open_model(sbp_model *m, const sbp_options *o,
			     sbp_message *e)
{
	struct sbp_private *v = m->private_;

	SBP_TRY(check_program(v->p, e));
	SBP_TRY(find_rank(v, o, e));
	m->rank = v->env.rank;
	m->world = v->p->world;
	m->class_ = tensor_class(v->p, m->rank);
	m->seed = o->has_seed ? o->seed : 0;
	m->threads = o->threads;
	if (m->threads <= 0)
		SBP_TRY(env_threads(v->env.local_world, &m->threads, e));
	SBP_TRY(allocate(v, e));
	SBP_TRY(join(m, o, e));
	find_extents(m);
	tensors_begin(m);
	return SBP_OK;
}

sbp_status sbp_open(const sbp_program *p, const sbp_options *o,
		    sbp_model **out)
{
	static const sbp_options none;
	struct handle *h = calloc(1, sizeof *h);
	sbp_message e;
	sbp_status status;

	*out = h ? &h->m : NULL;
	if (!h)
		return SBP_FAILED;
	h->m.private_ = &h->p;
	h->p.p = p;
	status = open_model(&h->m, o ? o : &none, &e);
	return status == SBP_OK ? SBP_OK : model_fail(&h->m, status, &e);
}

void sbp_close(sbp_model *m)
{
	struct sbp_private *v;
	struct exchange *next;

	if (!m)
		return;
	v = m->private_;
	if (v->device)
		v->device_close(v->device);
	comm_end(&v->comm);
	shm_close_ranks(&v->comm);
	for (int i = 0; v->move && i < v->p->nmoves; i++)
		route_free(v->move[i]);
	for (struct exchange *x = v->patterns; x; x = next) {
		next = x->next;
		exchange_free(x);
	}
	free(v->own);
	free(v->move);
	free(v->given);
	free((struct handle *)m);
}

static sbp_status has_failed(sbp_model *m)
{
	return atomic_load(&m->private_->failed) ? SBP_FAILED : SBP_OK;
}

sbp_status sbp_step(sbp_model *m)
{
	struct sbp_private *v = m->private_;
	sbp_message e;

	SBP_TRY(has_failed(m));
	if (model_ready(m, &e) != SBP_OK)
		return model_refuse(m, SBP_USAGE, &e);
	if (v->comm.simulation)
		simulate_calls(m);
	if (v->p->step[m->class_](m) != SBP_OK) {
		message_set(&e, SBP_FAILED, "rank %d: the step failed",
			    m->rank);
		return model_fail(m, SBP_FAILED, &e);
	}
	if (v->comm.simulation && simulate_step(m, &e) != SBP_OK)
		return model_fail(m, SBP_FAILED, &e);
	m->step++;
	v->steps++;
	return SBP_OK;
}
