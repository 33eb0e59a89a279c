/*
 * tensor.c: logical tensors of a model: initial values, feeding, gathering,
 * loading and saving. A tensor on P is fed to the devices with coordinate 0 on
 * its P axes, the others hold the identity; gathering reduces it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

int tensor_find(const sbp_program *p, const char *name, unsigned roles)
{
	/* An output's name may be that of an input or param too. */
	static const unsigned order[] = {1 << SBP_OUTPUT, 1 << SBP_KEPT, ~0u};

	for (int k = 0; k < 3; k++)
		for (int i = 0; i < p->ntensors; i++)
			if ((roles & order[k] & 1u << p->tensors[i].role) &&
			    strcmp(p->tensors[i].name, name) == 0)
				return i;
	return -1;
}

bool tensor_piece_of(const sbp_tensor *t, int rank, sbp_box *box)
{
	int at = mesh_index(t->dist.on, rank), coord[SBP_MAX_MESH];

	if (at < 0)
		return false;
	mesh_coords(t->dist.on, at, coord);
	*box = piece_at(&t->dist, t->rank, t->shape, coord);
	return true;
}

bool tensor_piece(const sbp_model *m, const sbp_tensor *t, sbp_box *box)
{
	return t->at[m->class_] >= 0 && tensor_piece_of(t, m->rank, box);
}

void *tensor_at(const sbp_model *m, const sbp_tensor *t)
{
	if (m->private_->comm.simulation)
		simulate_tensor(m, t, m->rank, true);
	return m->arena + t->at[m->class_];
}

bool tensor_keeps(sbp_model *m, const sbp_tensor *t)
{
	int coord[SBP_MAX_MESH];
	char reduce = 0;
	sbp_box box;

	if (!tensor_piece(m, t, &box))
		return false;
	mesh_coords(t->dist.on, mesh_index(t->dist.on, m->rank), coord);
	for (int k = 0; k < t->dist.on->naxes; k++)
		if (t->dist.term[k].kind == 'P' && coord[k] != 0)
			reduce = t->dist.term[k].reduce;
	if (!reduce)
		return true;
	fill_identity(tensor_at(m, t), t->dtype, reduce, box_count(&box));
	return false;
}

/* ---- initial values ---- */

static void tensor_init(sbp_model *m, const sbp_tensor *t)
{
	sbp_box box;

	if (!tensor_piece(m, t, &box))
		return;
	if (t->init.local) {
		int at = mesh_index(t->dist.on, m->rank);

		memcpy(tensor_at(m, t), t->init.local[at],
		       (size_t)(box_count(&box) * dtype_bytes(t->dtype)));
	} else if (tensor_keeps(m, t)) {
		init_fill(&t->init, t->name, m->seed, t->dtype, t->shape,
			  &box, tensor_at(m, t));
	}
}

void tensors_begin(sbp_model *m)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		m->private_->given[i] = !((1u << t->role) & ROLES_FED);
		if (t->role == SBP_CONST)
			tensor_init(m, t);
	}
}

/* Not before they are needed: a file may give them. */
void tensors_fill(sbp_model *m)
{
	const sbp_program *p = m->private_->p;
	bool *given = m->private_->given;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (given[i] || t->role == SBP_INPUT ||
		    t->init.kind == SBP_INIT_NONE)
			continue;
		tensor_init(m, t);
		given[i] = true;
	}
}

sbp_status model_ready(sbp_model *m, sbp_message *e)
{
	struct sbp_private *v = m->private_;

	if (v->ready)
		return SBP_OK;
	tensors_fill(m);
	for (int i = 0; i < v->p->ntensors; i++) {
		const sbp_tensor *t = &v->p->tensors[i];

		if (v->given[i])
			continue;
		if (t->role == SBP_INPUT)
			return message_set(e, SBP_USAGE,
					   "input '%s' (%s:%d) has no data: "
					   "--input %s=FILE", t->name,
					   v->p->file, t->line, t->name);
		return message_set(e, SBP_USAGE,
				   "'%s' (%s:%d) has no initial value: "
				   "--load FILE", t->name, v->p->file,
				   t->line);
	}
	v->ready = true;
	return SBP_OK;
}

/* ---- sbp_set, sbp_get, sbp_local ---- */

static sbp_status find(sbp_model *m, const char *name, unsigned roles, int *i)
{
	sbp_message e;

	*i = tensor_find(m->private_->p, name, roles);
	if (*i >= 0)
		return SBP_OK;
	message_set(&e, SBP_USAGE, "'%s' has no %s '%s'", m->private_->p->name,
		    roles == ROLES_FED ? "input, param or state" : "tensor",
		    name);
	return model_refuse(m, SBP_USAGE, &e);
}

static sbp_box whole(const sbp_tensor *t)
{
	sbp_box box = {.rank = t->rank};

	memcpy(box.n, t->shape, sizeof box.n);
	return box;
}

sbp_status sbp_set(sbp_model *m, const char *name, const void *data)
{
	const sbp_tensor *t;
	sbp_box box, all;
	int i;

	SBP_TRY(find(m, name, ROLES_FED, &i));
	t = &m->private_->p->tensors[i];
	m->private_->given[i] = true;
	if (!tensor_keeps(m, t) || !tensor_piece(m, t, &box))
		return SBP_OK;
	all = whole(t);
	copy_box(tensor_at(m, t), &box, data, &all, &box,
		 dtype_bytes(t->dtype));
	return SBP_OK;
}

sbp_status tensor_gather(sbp_model *m, const sbp_tensor *t, bool everywhere,
			 void *to, sbp_message *e)
{
	sbp_placement all = {.name = "all", .naxes = 1,
			     .extent = {everywhere ? m->world : 1}};
	sbp_pattern how = {.dtype = t->dtype, .rank = t->rank,
			   .from = t->dist, .name = "gather",
			   .to = {.on = &all, .term = {{'B', 0, 0}}}};
	struct exchange *x;
	int64_t received = m->private_->recv_bytes;
	sbp_status status;

	memcpy(how.shape, t->shape, sizeof how.shape);
	x = exchange_new(&how, m->rank);
	if (!x)
		return message_set(e, SBP_FAILED, "out of memory");
	if (m->private_->comm.simulation)
		simulate_about(m, t);
	status = exchange_run(m, x, t->at, to, ++m->private_->comm.host, e);
	m->private_->recv_bytes = received;
	exchange_free(x);
	return status;
}

sbp_status sbp_get(sbp_model *m, const char *name, void *data)
{
	sbp_message e;
	int i;

	if (atomic_load(&m->private_->failed))
		return SBP_FAILED;
	SBP_TRY(find(m, name, ROLES_ALL, &i));
	tensors_fill(m);
	if (tensor_gather(m, &m->private_->p->tensors[i], true, data, &e) !=
	    SBP_OK)
		return model_fail_at(m, m->private_->p->tensors[i].line, "get",
				     name, &e);
	return SBP_OK;
}

void *sbp_local(sbp_model *m, const char *name, int64_t *shape)
{
	const sbp_tensor *t;
	sbp_box box;
	int i;

	if (find(m, name, ROLES_ALL, &i) != SBP_OK)
		return NULL;
	t = &m->private_->p->tensors[i];
	tensors_fill(m);
	m->private_->given[i] = true;
	if (!tensor_piece(m, t, &box))
		return NULL;
	for (int a = 0; shape && a < t->rank; a++)
		shape[a] = box.n[a];
	return tensor_at(m, t);
}

/* ---- sbp_load ---- */

static bool is_saved(const sbp_tensor *t)
{
	return (1u << t->role) & ROLES_SAVED;
}

static bool same_shape(const sbp_tensor *t, const sbp_entry *x)
{
	return t->rank == x->rank &&
	       memcmp(t->shape, x->shape,
		      (size_t)t->rank * sizeof *t->shape) == 0;
}

/* A float type may become another. */
static bool same_type(const sbp_tensor *t, const sbp_entry *x)
{
	return x->known && (t->dtype == x->dtype || (dtype_floats(t->dtype) &&
						     dtype_floats(x->dtype)));
}

static sbp_status check_entry(const sbp_tensors *f, const sbp_tensor *t,
			      const sbp_entry *x, sbp_message *e)
{
	char want[160], got[160];

	if (same_shape(t, x) && same_type(t, x))
		return SBP_OK;
	type_describe(want, sizeof want, t->dtype, t->rank, t->shape);
	type_describe(got, sizeof got, x->known ? x->dtype : t->dtype, x->rank,
		      x->shape);
	if (!x->known)
		return message_set(e, SBP_USAGE,
				   "%s: '%s' is of type %s, the program's is "
				   "%s", f->file.path, t->name, x->dtype_name,
				   want);
	return message_set(e, SBP_USAGE,
			   "%s: '%s' is %s, the program's is %s",
			   f->file.path, t->name, got, want);
}

static sbp_status missing(const sbp_program *p, const sbp_tensors *f,
			  sbp_message *e)
{
	char list[400] = "";
	size_t n = 0;
	int left = 0;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (!is_saved(t) || tensors_find(f, t->name))
			continue;
		if (n + strlen(t->name) + 8 < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n,
					      "%s'%s'", n ? ", " : "",
					      t->name);
		else
			left++;
	}
	if (left)
		return message_set(e, SBP_USAGE,
				   "%s lacks %s and %d others", f->file.path,
				   list, left);
	return message_set(e, SBP_USAGE, "%s lacks %s", f->file.path, list);
}

/* Before anything is read, so that a refused file changes nothing. */
static sbp_status check_file(const sbp_program *p, const sbp_tensors *f,
			     sbp_message *e)
{
	for (int i = 0; i < p->ntensors; i++) {
		const sbp_entry *x;

		if (!is_saved(&p->tensors[i]))
			continue;
		x = tensors_find(f, p->tensors[i].name);
		if (!x)
			return missing(p, f, e);
		SBP_TRY(check_entry(f, &p->tensors[i], x, e));
	}
	return SBP_OK;
}

static sbp_status read_entries(sbp_model *m, const sbp_tensors *f,
			       sbp_message *e)
{
	const sbp_program *p = m->private_->p;
	sbp_box box;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (!is_saved(t))
			continue;
		m->private_->given[i] = true;
		if (tensor_piece(m, t, &box))
			SBP_TRY(tensors_read(f, tensors_find(f, t->name), &box,
					     t->dtype, tensor_at(m, t), e));
	}
	return SBP_OK;
}

static void warn_others(const sbp_program *p, const sbp_tensors *f,
			void (*warn)(void *context, const char *text),
			void *context)
{
	sbp_message text;

	for (int i = 0; i < f->n; i++) {
		if (tensor_find(p, f->entry[i].name, ROLES_SAVED) >= 0)
			continue;
		message_set(&text, SBP_OK, "%s: '%s' is not in the program",
			    f->file.path, f->entry[i].name);
		warn(context, text.text);
	}
}

sbp_status model_load(sbp_model *m, const char *path,
		      void (*warn)(void *context, const char *text),
		      void *context, sbp_message *e)
{
	const sbp_program *p = m->private_->p;
	sbp_tensors f;
	sbp_status status;

	SBP_TRY(tensors_open(&f, path, e));
	status = check_file(p, &f, e);
	if (status == SBP_OK)
		status = read_entries(m, &f, e);
	if (status == SBP_OK && warn)
		warn_others(p, &f, warn, context);
	tensors_close(&f);
	return status;
}

sbp_status sbp_load(sbp_model *m, const char *path)
{
	sbp_message e;
	sbp_status status = model_load(m, path, NULL, NULL, &e);

	return status == SBP_OK ? SBP_OK : model_refuse(m, status, &e);
}

/* ---- sbp_save ---- */

static int count_saved(const sbp_program *p)
{
	int n = 0;

	for (int i = 0; i < p->ntensors; i++)
		n += is_saved(&p->tensors[i]);
	return n;
}

/* Whether rank index AT is the first that holds its piece: coordinate 0 along
 * every axis that does not split. */
static bool is_first_copy(const sbp_tensor *t, int at)
{
	int coord[SBP_MAX_MESH];

	mesh_coords(t->dist.on, at, coord);
	for (int k = 0; k < t->dist.on->naxes; k++)
		if (t->dist.term[k].kind != 'S' && coord[k] != 0)
			return false;
	return true;
}

/* Straight from the arenas of all ranks into the file. */
static sbp_status write_tensor(sbp_model *m, sbp_writer *w,
			       const sbp_tensor *t, const sbp_entry *x,
			       sbp_message *e)
{
	struct sbp_private *v = m->private_;

	for (int i = 0, n = mesh_size(t->dist.on); i < n; i++) {
		int rank = mesh_rank(t->dist.on, i);
		int64_t at = t->at[tensor_class(v->p, rank)];
		sbp_box box;

		if (at < 0 || !is_first_copy(t, i) ||
		    !tensor_piece_of(t, rank, &box))
			continue;
		if (v->comm.simulation)
			simulate_tensor(m, t, rank, false);
		SBP_TRY(writer_put_box(w, x->at, dtype_bytes(t->dtype),
				       t->shape, &box, v->comm.arena[rank] + at,
				       e));
	}
	return SBP_OK;
}

static sbp_status write_tensors(sbp_model *m, sbp_writer *w,
				const sbp_entry *x, sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < p->ntensors; i++)
		if (is_saved(&p->tensors[i]))
			SBP_TRY(write_tensor(m, w, &p->tensors[i], x++, e));
	return SBP_OK;
}

static sbp_entry *make_entries(const sbp_program *p, int n)
{
	sbp_entry *x = calloc((size_t)n + 1, sizeof *x);

	for (int i = 0, k = 0; x && i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (!is_saved(t))
			continue;
		x[k].name = (char *)t->name;
		x[k].known = true;
		x[k].dtype = t->dtype;
		x[k].rank = t->rank;
		memcpy(x[k++].shape, t->shape, sizeof t->shape);
	}
	return x;
}

static sbp_status write_file(sbp_model *m, const char *path, sbp_message *e)
{
	const sbp_program *p = m->private_->p;
	int n = count_saved(p);
	sbp_entry *x = make_entries(p, n);
	sbp_writer w;
	sbp_status status;

	if (!x)
		return message_set(e, SBP_FAILED, "out of memory");
	status = tensors_create(&w, path, n, x, e);
	if (status == SBP_OK) {
		status = write_tensors(m, &w, x, e);
		if (status == SBP_OK)
			status = writer_commit(&w, e);
		else
			writer_abort(&w);
	}
	free(x);
	return status;
}

/* Rank 0 writes when all have come, and all hear whether it could. */
sbp_status model_save(sbp_model *m, const char *path, sbp_message *e)
{
	struct comm *c = &m->private_->comm;
	sbp_status mine = SBP_OK, status;
	sbp_message other;
	int worst;

	tensors_fill(m);
	SBP_TRY(comm_barrier(c, e));
	if (m->rank == 0)
		mine = write_file(m, path, e);
	SBP_TRY(comm_vote(c, mine, &worst, &status, &other));
	if (status != SBP_OK && m->rank != 0)
		message_set(e, status, "rank 0 could not write %s", path);
	return status;
}

sbp_status sbp_save(sbp_model *m, const char *path)
{
	sbp_message e;
	sbp_status status = model_save(m, path, &e);

	return status == SBP_OK ? SBP_OK : model_refuse(m, status, &e);
}
