/*
 * status.c: the last error of a model. The first one stays: what follows it
 * is its consequence.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/private.h"

sbp_status message_set(sbp_message *e, sbp_status status, const char *format,
		       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(e->text, sizeof e->text, format, args);
	va_end(args);
	return status;
}

sbp_status model_refuse(sbp_model *m, sbp_status status,
			const sbp_message *e)
{
	if (!atomic_load(&m->private_->failed))
		m->private_->error = *e;
	return status;
}

/* Kernels may fail on several threads at once: one of them writes. */
sbp_status model_fail(sbp_model *m, sbp_status status, const sbp_message *e)
{
	struct sbp_private *p = m->private_;

	if (atomic_exchange(&p->failed, 1))
		return status;
	p->error = *e;
	comm_fail(&p->comm, p->error.text);
	return status;
}

sbp_status model_fail_at(sbp_model *m, int line, const char *op,
			 const char *value, const sbp_message *e)
{
	const char *of = value ? " of '" : "", *quote = value ? "'" : "";
	sbp_message full;

	message_set(&full, SBP_FAILED,
		    "rank %d, step %llu, %s%s%s%s, %s:%d: %s",
		    m->rank, (unsigned long long)m->step + 1, op, of,
		    value ? value : "", quote, m->private_->p->file, line,
		    e->text);
	return model_fail(m, SBP_FAILED, &full);
}

sbp_status sbp_fail(sbp_model *m, int line, const char *op,
		    const char *format, ...)
{
	sbp_message e;
	va_list args;

	va_start(args, format);
	vsnprintf(e.text, sizeof e.text, format, args);
	va_end(args);
	return model_fail_at(m, line, op, NULL, &e);
}

const char *sbp_error(const sbp_model *m)
{
	return m ? m->private_->error.text : "out of memory";
}
