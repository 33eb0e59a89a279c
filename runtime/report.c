/*
 * report.c: scalar outputs of a step: a line of JSON each step, and means over
 * all samples.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

static bool is_scalar(const sbp_tensor *t)
{
	return t->role == SBP_OUTPUT && t->rank == 0;
}

static bool has_scalars(const sbp_program *p)
{
	for (int i = 0; i < p->ntensors; i++)
		if (is_scalar(&p->tensors[i]))
			return true;
	return false;
}

sbp_status report_open(struct report *r, sbp_model *m,
		       const struct options *o, sbp_message *e)
{
	size_t n = (size_t)m->private_->p->ntensors + 1;

	memset(r, 0, sizeof *r);
	r->eval = o->eval;
	r->start = comm_seconds();
	if (o->eval && !has_scalars(m->private_->p))
		return message_set(e, SBP_USAGE,
				   "--eval: the model has no scalar output");
	r->sum = calloc(n, sizeof *r->sum);
	r->count = calloc(n, sizeof *r->count);
	if (!r->sum || !r->count)
		return message_set(e, SBP_FAILED, "out of memory");
	if (!o->log || m->rank != 0)
		return SBP_OK;
	r->log = fopen(o->log, "we");
	if (!r->log)
		return message_set(e, SBP_USAGE, "%s: %s", o->log,
				   strerror(errno));
	return SBP_OK;
}

static void log_value(FILE *f, sbp_dtype t, const void *at)
{
	char text[40];

	if (dtype_floats(t) && !isfinite(element_double(t, at)))
		strcpy(text, "null");
	else
		show_element(text, t, at);
	fputs(text, f);
}

static void log_begin(FILE *f, const struct feed *feed, int64_t step)
{
	fprintf(f, "{\"step\": %lld", (long long)step);
	if (feed->batch)
		fprintf(f, ", \"epoch\": %lld",
			(long long)((step - 1) * feed->batch / feed->samples +
				    1));
}

static void log_end(FILE *f, const struct report *r, const struct feed *feed,
		    int64_t step)
{
	double seconds = comm_seconds() - r->start;
	char text[40];

	if (feed->batch && seconds > 0) {
		show_double(text, floor((double)step * (double)feed->batch /
					seconds * 10) / 10);
		fprintf(f, ", \"samples_per_s\": %s", text);
	}
	fputs("}\n", f);
}

static void add_value(struct report *r, int i, const sbp_tensor *t,
		      const void *at)
{
	if (dtype_floats(t->dtype))
		r->sum[i] += element_double(t->dtype, at);
	else
		r->count[i] += element_int(t->dtype, at);
}

sbp_status report_step(struct report *r, sbp_model *m, const struct feed *f,
		       int64_t step, sbp_message *e)
{
	const sbp_program *p = m->private_->p;
	_Alignas(8) unsigned char value[8];

	if (r->log)
		log_begin(r->log, f, step);
	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];

		if (!is_scalar(t))
			continue;
		SBP_TRY(tensor_gather(m, t, false, value, e));
		if (m->rank == 0)
			add_value(r, i, t, value);
		if (!r->log)
			continue;
		fprintf(r->log, ", \"%s\": ", t->name);
		log_value(r->log, t->dtype, value);
	}
	if (r->log)
		log_end(r->log, r, f, step);
	return SBP_OK;
}

/* Every batch has as many samples: the mean of the batches is that of all. */
static void eval_line(const struct report *r, int i, const sbp_tensor *t,
		      int64_t batches)
{
	double mean = r->sum[i] / (double)batches;
	float single = (float)mean;
	char text[40];

	if (!dtype_floats(t->dtype))
		show_element(text, SBP_I64, &r->count[i]);
	else if (t->dtype == SBP_F64)
		show_double(text, mean);
	else
		show_element(text, SBP_F32, &single);
	printf("%s: %s\n", t->name, text);
}

void report_eval(const struct report *r, const sbp_model *m,
		 const struct feed *f)
{
	const sbp_program *p = m->private_->p;

	for (int i = 0; r->eval && m->rank == 0 && i < p->ntensors; i++)
		if (is_scalar(&p->tensors[i]))
			eval_line(r, i, &p->tensors[i],
				  f->samples / f->batch);
}

sbp_status report_close(struct report *r, sbp_message *e)
{
	sbp_status status = SBP_OK;

	if (r->log && (ferror(r->log) | fclose(r->log)))
		status = message_set(e, SBP_FAILED,
				     "the log cannot be written: %s",
				     strerror(errno));
	free(r->sum);
	free(r->count);
	memset(r, 0, sizeof *r);
	return status;
}
