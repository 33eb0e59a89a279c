/*
 * data.c: what `data` declarations name: samples along axis 0 of the fields
 * of one or two files, read in batches.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

/* One field: a file and how it is read. */
struct field {
	const char *name;
	sbp_dtype dtype;
	int rank;
	const int64_t *shape;
	sbp_idx idx;
	sbp_npy npy;
	bool is_npy;
};

struct data_set {
	const sbp_source *source;
	int64_t samples;
	int nfields;
	struct field field[2];
};

/* ---- opening ---- */

static sbp_status open_idx(struct field *f, const char *name, const char *path,
			   sbp_message *e)
{
	SBP_TRY(idx_open(&f->idx, path, e));
	f->name = name;
	f->dtype = f->idx.dtype;
	f->rank = f->idx.rank;
	f->shape = f->idx.shape;
	return SBP_OK;
}

static sbp_status open_npy(struct field *f, const char *path, sbp_message *e)
{
	SBP_TRY(npy_open(&f->npy, path, e));
	f->is_npy = true;
	f->name = "data";
	f->dtype = f->npy.dtype;
	f->rank = f->npy.rank;
	f->shape = f->npy.shape;
	return SBP_OK;
}

static sbp_status check_idx(const struct data_set *d, sbp_message *e)
{
	const struct field *image = &d->field[0], *label = &d->field[1];
	const char *const *file = d->source->file;

	if (image->rank == 1 && label->rank > 1)
		return message_set(e, SBP_USAGE,
				   "%s: holds labels and %s images: they are "
				   "swapped",
				   file[0], file[1]);
	if (image->rank < 2)
		return message_set(e, SBP_USAGE,
				   "%s: byte 3: rank 1: these are no images",
				   file[0]);
	if (label->rank != 1)
		return message_set(e, SBP_USAGE,
				   "%s: byte 3: rank %d: labels have 1 axis",
				   file[1], label->rank);
	if (image->shape[0] != label->shape[0])
		return message_set(e, SBP_USAGE,
				   "%s has %lld images, %s has %lld labels",
				   file[0], (long long)image->shape[0],
				   file[1], (long long)label->shape[0]);
	return SBP_OK;
}

static sbp_status open_fields(struct data_set *d, sbp_message *e)
{
	const sbp_source *s = d->source;

	if (s->kind == SBP_DATA_NPY) {
		d->nfields = 1;
		SBP_TRY(open_npy(&d->field[0], s->file[0], e));
		if (!d->field[0].rank)
			return message_set(e, SBP_USAGE,
					   "%s: shape: a scalar has no samples",
					   s->file[0]);
	} else {
		d->nfields = 1;
		SBP_TRY(open_idx(&d->field[0], "image", s->file[0], e));
		d->nfields = 2;
		SBP_TRY(open_idx(&d->field[1], "label", s->file[1], e));
		SBP_TRY(check_idx(d, e));
	}
	d->samples = d->field[0].shape[0];
	return SBP_OK;
}

sbp_status data_open(struct data_set **out, const sbp_source *source,
		     sbp_message *e)
{
	struct data_set *d = calloc(1, sizeof *d);
	sbp_status status;

	*out = NULL;
	if (!d)
		return message_set(e, SBP_FAILED, "data '%s': out of memory",
				   source->name);
	d->source = source;
	for (int i = 0; i < 2; i++)
		d->field[i].idx.file.fd = d->field[i].npy.file.fd = -1;
	status = open_fields(d, e);
	if (status == SBP_OK)
		*out = d;
	else
		data_close(d);
	return status;
}

void data_close(struct data_set *d)
{
	if (!d)
		return;
	for (int i = 0; i < 2; i++) {
		idx_close(&d->field[i].idx);
		npy_close(&d->field[i].npy);
	}
	free(d);
}

int64_t data_samples(const struct data_set *d)
{
	return d->samples;
}

/* ---- fields ---- */

static const struct field *find(const struct data_set *d, const char *name)
{
	for (int i = 0; i < d->nfields; i++)
		if (!strcmp(d->field[i].name, name))
			return &d->field[i];
	return NULL;
}

/* u8 pixels become floats; integers may only become wider. */
static bool readable(sbp_dtype from, sbp_dtype as)
{
	if (from == as)
		return true;
	if (from == SBP_U8 && dtype_floats(as))
		return true;
	return (from == SBP_U8 || from == SBP_I8 || from == SBP_I32) &&
	       (as == SBP_I32 || as == SBP_I64) &&
	       dtype_bytes(as) > dtype_bytes(from);
}

static bool same_sample(const struct field *f, int rank, const int64_t *shape)
{
	if (f->rank != rank)
		return false;
	for (int i = 1; i < rank; i++)
		if (f->shape[i] != shape[i])
			return false;
	return true;
}

sbp_status data_check(const struct data_set *d, const char *field,
		      sbp_dtype t, int rank, const int64_t *shape,
		      sbp_message *e)
{
	const struct field *f = find(d, field);
	char have[128], want[128];

	if (!f)
		return message_set(e, SBP_USAGE, "data '%s' has no field '%s'",
				   d->source->name, field);
	type_describe(have, sizeof have, f->dtype, f->rank, f->shape);
	type_describe(want, sizeof want, t, rank, shape);
	if (!same_sample(f, rank, shape) || !readable(f->dtype, t))
		return message_set(e, SBP_USAGE,
				   "data '%s': field '%s' is %s: its samples "
				   "cannot fill %s",
				   d->source->name, field, have, want);
	if (d->samples < shape[0])
		return message_set(e, SBP_USAGE,
				   "data '%s' has %lld samples, fewer than a "
				   "batch of %lld",
				   d->source->name, (long long)d->samples,
				   (long long)shape[0]);
	return SBP_OK;
}

/* ---- batches ---- */

static sbp_status read_part(const struct field *f, const sbp_box *box,
			    void *to, sbp_message *e)
{
	return f->is_npy ? npy_read(&f->npy, box, to, e) :
			   idx_read(&f->idx, box, to, e);
}

/* Samples FIRST, FIRST + 1, ... going round, in the file's dtype. */
static sbp_status read_round(const struct data_set *d, const struct field *f,
			     int64_t first, const sbp_box *box, char *to,
			     sbp_message *e)
{
	int64_t at = d->samples ? (first + box->lo[0]) % d->samples : 0;
	int64_t left = box->n[0];
	sbp_box part = *box;

	while (left > 0) {
		int64_t n = d->samples - at;

		part.lo[0] = at;
		part.n[0] = n < left ? n : left;
		SBP_TRY(read_part(f, &part, to, e));
		to += box_count(&part) * dtype_bytes(f->dtype);
		left -= part.n[0];
		at = 0;
	}
	return SBP_OK;
}

/* 0..255 to 0..1. */
static void to_unit(void *to, sbp_dtype as, const unsigned char *from,
		    int64_t n)
{
	float table[256], *f = to;

	for (int i = 0; i < 256; i++)
		table[i] = (float)i / 255;
	for (int64_t i = 0; i < n; i++) {
		if (as == SBP_F32)
			f[i] = table[from[i]];
		else if (as == SBP_F64)
			((double *)to)[i] = from[i] / 255.0;
		else
			convert((uint16_t *)to + i, as, &table[from[i]],
				SBP_F32, 1);
	}
}

sbp_status data_read(const struct data_set *d, const char *field,
		     int64_t first, const sbp_box *box, sbp_dtype as,
		     void *to, sbp_message *e)
{
	const struct field *f = find(d, field);
	int64_t n = box_count(box);
	sbp_status status;
	char *part;

	if (!f)
		return message_set(e, SBP_USAGE, "data '%s' has no field '%s'",
				   d->source->name, field);
	if (f->dtype == as)
		return read_round(d, f, first, box, to, e);
	part = malloc((size_t)n * (size_t)dtype_bytes(f->dtype) + 1);
	if (!part)
		return message_set(e, SBP_FAILED, "data '%s': out of memory",
				   d->source->name);
	status = read_round(d, f, first, box, part, e);
	if (status == SBP_OK && f->dtype == SBP_U8 && dtype_floats(as))
		to_unit(to, as, (unsigned char *)part, n);
	else if (status == SBP_OK)
		convert(to, as, part, f->dtype, n);
	free(part);
	return status;
}
