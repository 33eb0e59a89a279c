/*
 * feed.c: what main puts into inputs and takes out of tensors: npy files and
 * data sets. A rank reads only its piece.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

/* ---- names ---- */

static sbp_status unknown(const sbp_program *p, const char *option,
			  const char *name, unsigned roles, sbp_message *e)
{
	char list[320] = "";
	size_t n = 0;

	for (int i = 0; i < p->ntensors && n + 8 < sizeof list; i++)
		if (roles & 1u << p->tensors[i].role)
			n += (size_t)snprintf(list + n, sizeof list - n,
					      "%s%s", n ? ", " : "",
					      p->tensors[i].name);
	if (n >= sizeof list)
		memcpy(list + sizeof list - 4, "...", 4);
	return message_set(e, SBP_USAGE, "%s: '%s' is not one of: %s", option,
			   name, n ? list : "(there are none)");
}

static sbp_status check_names(const sbp_program *p, const char *option,
			      const struct pairs *pairs, unsigned roles,
			      sbp_message *e)
{
	for (int i = 0; i < pairs->n; i++)
		if (tensor_find(p, pairs->at[i].name, roles) < 0)
			return unknown(p, option, pairs->at[i].name, roles, e);
	return SBP_OK;
}

static int find_source(const sbp_program *p, const char *name)
{
	for (int i = 0; i < p->nsources; i++)
		if (strcmp(p->sources[i].name, name) == 0)
			return i;
	return -1;
}

static sbp_status check_sources(const sbp_program *p, const struct pairs *data,
				sbp_message *e)
{
	char list[320] = "";
	size_t n = 0;

	for (int i = 0; i < p->nsources && n + 8 < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
				      n ? ", " : "", p->sources[i].name);
	for (int i = 0; i < data->n; i++)
		if (find_source(p, data->at[i].name) < 0)
			return message_set(e, SBP_USAGE,
					   "--data: '%s' is not one of: %s",
					   data->at[i].name,
					   n ? list : "(there are none)");
	return SBP_OK;
}

/* Files of several ranks must differ. */
static sbp_status check_local(const sbp_program *p, const char *option,
			      const struct pairs *pairs, sbp_message *e)
{
	for (int i = 0; i < pairs->n; i++) {
		const struct pair *x = &pairs->at[i];
		int t = tensor_find(p, x->name, ROLES_ALL);

		if (mesh_size(p->tensors[t].dist.on) > 1 &&
		    !strstr(x->value, "{rank}"))
			return message_set(e, SBP_USAGE,
					   "%s: '%s' needs {rank} in the "
					   "file's name", option, x->value);
	}
	return SBP_OK;
}

static int times_fed(const struct options *o, const char *name)
{
	int n = 0;

	for (int i = 0; i < o->input.n; i++)
		n += strcmp(o->input.at[i].name, name) == 0;
	for (int i = 0; i < o->local_input.n; i++)
		n += strcmp(o->local_input.at[i].name, name) == 0;
	return n;
}

static sbp_status check_fed_once(const sbp_program *p,
				 const struct options *o, sbp_message *e)
{
	for (int i = 0; i < p->ntensors; i++)
		if (times_fed(o, p->tensors[i].name) > 1)
			return message_set(e, SBP_USAGE,
					   "input '%s' is fed twice",
					   p->tensors[i].name);
	return SBP_OK;
}

/* The Nth file that a program writes, NULL behind the last. */
static const char *nth_written(const struct options *o, int n)
{
	if (n < o->output.n)
		return o->output.at[n].value;
	n -= o->output.n;
	if (n < o->local_output.n)
		return o->local_output.at[n].value;
	n -= o->local_output.n;
	if (n == 0 && o->save)
		return o->save;
	return n == (o->save != NULL) ? o->log : NULL;
}

static sbp_status check_written_once(const struct options *o, sbp_message *e)
{
	const char *path;

	for (int i = 0; (path = nth_written(o, i)); i++)
		for (int k = 0; k < i; k++)
			if (file_same(nth_written(o, k), path))
				return message_set(e, SBP_USAGE,
						   "'%s' would be written "
						   "twice",
						   path);
	return SBP_OK;
}

sbp_status feed_check(const sbp_program *p, const struct options *o,
		      sbp_message *e)
{
	const unsigned inputs = 1 << SBP_INPUT;

	SBP_TRY(check_names(p, "--input", &o->input, inputs, e));
	SBP_TRY(check_names(p, "--local-input", &o->local_input, inputs, e));
	SBP_TRY(check_names(p, "--output", &o->output, ROLES_ALL, e));
	SBP_TRY(check_names(p, "--local-output", &o->local_output, ROLES_ALL,
			    e));
	SBP_TRY(check_fed_once(p, o, e));
	SBP_TRY(check_local(p, "--local-input", &o->local_input, e));
	SBP_TRY(check_local(p, "--local-output", &o->local_output, e));
	SBP_TRY(check_written_once(o, e));
	for (int i = 0; i < o->nshow; i++)
		if (tensor_find(p, o->show[i], ROLES_ALL) < 0)
			return unknown(p, "--show", o->show[i], ROLES_ALL, e);
	return check_sources(p, &o->data, e);
}

/* ---- npy files in ---- */

static sbp_status check_type(const sbp_npy *f, const sbp_tensor *t,
			     const int64_t *shape, const char *what,
			     sbp_message *e)
{
	char want[200], got[200];

	if (f->dtype == t->dtype && f->rank == t->rank &&
	    memcmp(f->shape, shape, (size_t)t->rank * sizeof *shape) == 0)
		return SBP_OK;
	type_describe(want, sizeof want, t->dtype, t->rank, shape);
	type_describe(got, sizeof got, f->dtype, f->rank, f->shape);
	return message_set(e, SBP_USAGE, "%s: %s, but %s '%s' is %s",
			   f->file.path, got, what, t->name, want);
}

static sbp_status read_input(sbp_model *m, const sbp_tensor *t,
			     const char *path, sbp_message *e)
{
	sbp_npy f;
	sbp_box box;
	sbp_status status;

	SBP_TRY(npy_open(&f, path, e));
	status = check_type(&f, t, t->shape, "input", e);
	if (status == SBP_OK && tensor_keeps(m, t) && tensor_piece(m, t, &box))
		status = npy_read(&f, &box, tensor_at(m, t), e);
	npy_close(&f);
	return status;
}

/* The name of this rank's file; to be freed. */
static char *rank_path(const char *pattern, int rank)
{
	const char *at = strstr(pattern, "{rank}");
	char *path;

	if (!at)
		return strdup(pattern);
	if (asprintf(&path, "%.*s%d%s", (int)(at - pattern), pattern, rank,
		     at + strlen("{rank}")) < 0)
		return NULL;
	return path;
}

static sbp_status read_piece(sbp_model *m, const sbp_tensor *t,
			     const char *path, const sbp_box *box,
			     sbp_message *e)
{
	sbp_box all = *box;
	sbp_npy f;
	sbp_status status;

	memset(all.lo, 0, sizeof all.lo);
	SBP_TRY(npy_open(&f, path, e));
	status = check_type(&f, t, box->n, "this rank's piece of", e);
	if (status == SBP_OK)
		status = npy_read(&f, &all, tensor_at(m, t), e);
	npy_close(&f);
	return status;
}

static sbp_status write_piece(sbp_model *m, const sbp_tensor *t,
			      const char *path, const sbp_box *box,
			      sbp_message *e)
{
	return npy_write(path, t->dtype, t->rank, box->n, tensor_at(m, t), e);
}

/* Reads or writes this rank's own file, where it has a piece of T. */
static sbp_status each_piece(sbp_model *m, const sbp_tensor *t,
			     const char *pattern, sbp_message *e,
			     sbp_status (*piece)(sbp_model *m,
						 const sbp_tensor *t,
						 const char *path,
						 const sbp_box *box,
						 sbp_message *e))
{
	sbp_box box;
	sbp_status status;
	char *path;

	if (!tensor_piece(m, t, &box))
		return SBP_OK;
	path = rank_path(pattern, m->rank);
	if (!path)
		return message_set(e, SBP_FAILED, "out of memory");
	status = piece(m, t, path, &box, e);
	free(path);
	return status;
}

static sbp_status read_local_input(sbp_model *m, const sbp_tensor *t,
				   const char *pattern, sbp_message *e)
{
	return each_piece(m, t, pattern, e, read_piece);
}

static sbp_status read_files(struct feed *f, sbp_model *m,
			     const struct pairs *pairs, bool local,
			     sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	for (int k = 0; k < pairs->n; k++) {
		const struct pair *x = &pairs->at[k];
		int i = tensor_find(p, x->name, 1 << SBP_INPUT);

		SBP_TRY((local ? read_local_input : read_input)(
			m, &p->tensors[i], x->value, e));
		f->fixed[i] = true;
		m->private_->given[i] = true;
	}
	return SBP_OK;
}

/* ---- data sets ---- */

static const char *data_dir(const struct options *o, const char *name)
{
	for (int i = o->data.n - 1; i >= 0; i--)
		if (strcmp(o->data.at[i].name, name) == 0)
			return o->data.at[i].value;
	return NULL;
}

static sbp_status open_source(struct data_set **out, const sbp_source *source,
			      const char *dir, sbp_message *e)
{
	sbp_source there = *source;
	char *path[2] = {NULL, NULL};
	sbp_status status = SBP_OK;

	for (int i = 0; dir && i < 2; i++) {
		if (!source->file[i])
			continue;
		if (asprintf(&path[i], "%s/%s", dir, source->file[i]) < 0) {
			path[i] = NULL;
			status = message_set(e, SBP_FAILED, "out of memory");
		}
		there.file[i] = path[i];
	}
	if (status == SBP_OK)
		status = data_open(out, &there, e);
	free(path[0]);
	free(path[1]);
	return status;
}

/* All inputs from data sets advance together. */
static sbp_status check_batch(struct feed *f, const sbp_program *p,
			      const sbp_tensor *t, sbp_message *e)
{
	const char *name = p->sources[t->source].name;
	int64_t batch = t->rank ? t->shape[0] : 0;
	int64_t samples = data_samples(f->set[t->source]);

	SBP_TRY(data_check(f->set[t->source], t->field, t->dtype, t->rank,
			   t->shape, e));
	if (samples < batch)
		return message_set(e, SBP_USAGE,
				   "data '%s' has %lld samples, fewer than a "
				   "batch of '%s': %lld", name,
				   (long long)samples, t->name,
				   (long long)batch);
	if (f->batch && (f->batch != batch || f->samples != samples))
		return message_set(e, SBP_USAGE,
				   "data '%s' gives input '%s' %lld of %lld "
				   "samples a step, another input %lld of "
				   "%lld", name, t->name, (long long)batch,
				   (long long)samples, (long long)f->batch,
				   (long long)f->samples);
	f->batch = batch;
	f->samples = samples;
	return SBP_OK;
}

static bool from_data(const struct feed *f, const sbp_program *p, int i)
{
	return p->tensors[i].role == SBP_INPUT && p->tensors[i].source >= 0 &&
	       !f->fixed[i];
}

static sbp_status open_sources(struct feed *f, sbp_model *m,
			       const struct options *o, sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];
		const sbp_source *s;

		if (!from_data(f, p, i))
			continue;
		s = &p->sources[t->source];
		if (!f->set[t->source])
			SBP_TRY(open_source(&f->set[t->source], s,
					    data_dir(o, s->name), e));
		SBP_TRY(check_batch(f, p, t, e));
		m->private_->given[i] = true;
	}
	return SBP_OK;
}

sbp_status feed_batch(struct feed *f, sbp_model *m, int64_t number,
		      sbp_message *e)
{
	const sbp_program *p = m->private_->p;
	sbp_box box;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (!from_data(f, p, i) || !tensor_keeps(m, t) ||
		    !tensor_piece(m, t, &box))
			continue;
		SBP_TRY(data_read(f->set[t->source], t->field,
				  number * f->batch % f->samples, &box,
				  t->dtype, tensor_at(m, t), e));
	}
	return SBP_OK;
}

sbp_status feed_open(struct feed *f, sbp_model *m, const struct options *o,
		     sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	memset(f, 0, sizeof *f);
	f->set = calloc((size_t)p->nsources + 1, sizeof *f->set);
	f->fixed = calloc((size_t)p->ntensors + 1, sizeof *f->fixed);
	if (!f->set || !f->fixed)
		return message_set(e, SBP_FAILED, "out of memory");
	SBP_TRY(read_files(f, m, &o->input, false, e));
	SBP_TRY(read_files(f, m, &o->local_input, true, e));
	SBP_TRY(open_sources(f, m, o, e));
	if (o->eval && !f->batch)
		return message_set(e, SBP_USAGE,
				   "--eval needs an input from a data source");
	if (o->eval && f->samples % f->batch)
		return message_set(e, SBP_USAGE,
				   "--eval: %lld samples are no multiple of "
				   "the batch of %lld", (long long)f->samples,
				   (long long)f->batch);
	return SBP_OK;
}

void feed_close(struct feed *f, const sbp_program *p)
{
	for (int i = 0; f->set && i < p->nsources; i++)
		if (f->set[i])
			data_close(f->set[i]);
	free(f->set);
	free(f->fixed);
}

/* ---- npy files out ---- */

static sbp_status write_output(sbp_model *m, const sbp_tensor *t,
			       const char *path, sbp_message *e)
{
	sbp_box all = {.rank = t->rank};
	sbp_status status;
	void *whole = NULL;

	memcpy(all.n, t->shape, sizeof all.n);
	if (m->rank == 0) {
		int64_t bytes = box_count(&all) * dtype_bytes(t->dtype);

		whole = malloc((size_t)bytes + 1);
		if (!whole)
			return message_set(e, SBP_FAILED, "out of memory");
	}
	status = tensor_gather(m, t, false, whole, e);
	if (status == SBP_OK && m->rank == 0)
		status = npy_write(path, t->dtype, t->rank, t->shape, whole,
				   e);
	free(whole);
	return status;
}

static sbp_status write_local(sbp_model *m, const sbp_tensor *t,
			      const char *pattern, sbp_message *e)
{
	return each_piece(m, t, pattern, e, write_piece);
}

static sbp_status check_piece(sbp_model *m, const sbp_tensor *t,
			      const char *path, const sbp_box *box,
			      sbp_message *e)
{
	(void)m, (void)t, (void)box;
	return writer_check(path, e);
}

sbp_status feed_check_outputs(sbp_model *m, const struct options *o,
			      sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < o->output.n && m->rank == 0; i++)
		SBP_TRY(writer_check(o->output.at[i].value, e));
	if (o->save && m->rank == 0)
		SBP_TRY(writer_check(o->save, e));
	for (int i = 0; i < o->local_output.n; i++) {
		const struct pair *x = &o->local_output.at[i];
		int t = tensor_find(p, x->name, ROLES_ALL);

		SBP_TRY(each_piece(m, &p->tensors[t], x->value, e,
				   check_piece));
	}
	return SBP_OK;
}

sbp_status feed_outputs(sbp_model *m, const struct options *o, sbp_message *e)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; i < o->output.n; i++) {
		const struct pair *x = &o->output.at[i];
		int t = tensor_find(p, x->name, ROLES_ALL);

		SBP_TRY(write_output(m, &p->tensors[t], x->value, e));
	}
	for (int i = 0; i < o->local_output.n; i++) {
		const struct pair *x = &o->local_output.at[i];
		int t = tensor_find(p, x->name, ROLES_ALL);

		SBP_TRY(write_local(m, &p->tensors[t], x->value, e));
	}
	return SBP_OK;
}
