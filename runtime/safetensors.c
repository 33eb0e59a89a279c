/*
 * safetensors.c: checkpoints.
 *	u64 N (little-endian), N bytes of JSON, data.
 * The header names each tensor with dtype, shape and offsets into the data.
 * Everything is checked before anything is believed: tensors must cover the
 * data without gap or overlap. The format is described in safetensors'
 * README; where the reference reader is lenient this one is strict.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

enum { MAX_HEADER = 100000000 };

/* ---- element types of files ---- */

static const struct {
	const char *name;
	int bits;
	int dtype;		/* an sbp_dtype, or -1 */
} types[] = {
	{"BOOL", 8, SBP_BOOL},	{"U8", 8, SBP_U8},	{"I8", 8, SBP_I8},
	{"I32", 32, SBP_I32},	{"I64", 64, SBP_I64},	{"F16", 16, SBP_F16},
	{"BF16", 16, SBP_BF16},	{"F32", 32, SBP_F32},	{"F64", 64, SBP_F64},
	{"I16", 16, -1},	{"U16", 16, -1},	{"U32", 32, -1},
	{"U64", 64, -1},	{"C64", 64, -1},	{"F4", 4, -1},
	{"F6_E2M3", 6, -1},	{"F6_E3M2", 6, -1},	{"F8_E5M2", 8, -1},
	{"F8_E4M3", 8, -1},	{"F8_E8M0", 8, -1},
	{"F8_E4M3FNUZ", 8, -1},	{"F8_E5M2FNUZ", 8, -1},
};
enum { NTYPES = sizeof types / sizeof *types };

/* ---- one tensor ---- */

struct reader {
	sbp_tensors *f;
	sbp_message *e;
	uint64_t data;		/* where it starts, and its size */
	uint64_t size;
};

static sbp_status refuse(const struct reader *r, const char *name,
			 const char *what)
{
	return message_set(r->e, SBP_USAGE,
			   "%s: byte 8: header: tensor '%.100s': %s",
			   r->f->file.path, name, what);
}

/* An integer that is not negative; floats like 1.0 are none. */
static bool natural(const json_t *j, uint64_t *out)
{
	if (!json_is_integer(j) || json_integer_value(j) < 0)
		return false;
	*out = (uint64_t)json_integer_value(j);
	return true;
}

static sbp_status read_type(const struct reader *r, sbp_entry *t,
			    const json_t *j, int *bits)
{
	const char *name = json_string_value(j);

	if (!name)
		return refuse(r, t->name, "dtype: expected a string");
	for (int i = 0; i < NTYPES; i++) {
		if (strcmp(types[i].name, name))
			continue;
		t->known = types[i].dtype >= 0;
		if (t->known)
			t->dtype = (sbp_dtype)types[i].dtype;
		strcpy(t->dtype_name, name);
		*bits = types[i].bits;
		return SBP_OK;
	}
	return message_set(r->e, SBP_USAGE,
			   "%s: byte 8: header: tensor '%.100s': dtype: "
			   "'%.40s' is not known",
			   r->f->file.path, t->name, name);
}

/* Extents of 0 do not hide an overflow of the others. */
static sbp_status read_shape(const struct reader *r, sbp_entry *t,
			     const json_t *j, int bits, uint64_t *bytes)
{
	uint64_t product = (uint64_t)bits, n;
	bool empty = false;

	if (!json_is_array(j))
		return refuse(r, t->name, "shape: expected a list");
	if (json_array_size(j) > SBP_MAX_RANK)
		return refuse(r, t->name, "shape: more than 8 axes");
	t->rank = (int)json_array_size(j);
	for (int i = 0; i < t->rank; i++) {
		if (!natural(json_array_get(j, (size_t)i), &n))
			return refuse(r, t->name, "shape: expected integers "
						  "that are not negative");
		t->shape[i] = (int64_t)n;
		empty = empty || !n;
		if (n && __builtin_mul_overflow(product, n, &product))
			return refuse(r, t->name, "shape: the product of the "
						  "extents is too large");
	}
	if (empty)
		product = 0;
	if (product % 8)
		return refuse(r, t->name, "shape: not a whole number of "
					  "bytes");
	*bytes = product / 8;
	return SBP_OK;
}

static sbp_status read_offsets(const struct reader *r, sbp_entry *t,
			       const json_t *j, uint64_t bytes)
{
	uint64_t lo, hi;

	if (!json_is_array(j) || json_array_size(j) != 2 ||
	    !natural(json_array_get(j, 0), &lo) ||
	    !natural(json_array_get(j, 1), &hi))
		return refuse(r, t->name, "data_offsets: expected two "
					  "integers that are not negative");
	if (hi < lo)
		return refuse(r, t->name, "data_offsets: the end lies before "
					  "the begin");
	if (hi > r->size)
		return refuse(r, t->name, "data_offsets: beyond the end of "
					  "the file");
	if (hi - lo != bytes)
		return refuse(r, t->name, "data_offsets: not as many bytes "
					  "as dtype and shape ask for");
	t->at = lo;		/* relative to the data until all are read */
	t->bytes = bytes;
	return SBP_OK;
}

static sbp_status read_entry(const struct reader *r, sbp_entry *t,
			     const char *name, const json_t *j)
{
	uint64_t bytes = 0;
	int bits = 0;

	t->name = strdup(name);
	if (!t->name)
		return refuse(r, name, "out of memory");
	if (!json_is_object(j) || json_object_size(j) != 3)
		return refuse(r, name, "expected dtype, shape and "
				       "data_offsets, and no more");
	SBP_TRY(read_type(r, t, json_object_get(j, "dtype"), &bits));
	SBP_TRY(read_shape(r, t, json_object_get(j, "shape"), bits, &bytes));
	return read_offsets(r, t, json_object_get(j, "data_offsets"), bytes);
}

/* ---- all tensors ---- */

static sbp_status check_metadata(const struct reader *r, const json_t *j)
{
	const char *key;
	json_t *value;

	if (!json_is_object(j))
		return refuse(r, "__metadata__", "expected an object");
	json_object_foreach((json_t *)j, key, value)
		if (!json_is_string(value))
			return refuse(r, "__metadata__", "expected strings");
	return SBP_OK;
}

static int by_offset(const void *a, const void *b)
{
	const sbp_entry *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* No gap, no overlap, nothing before and nothing after. */
static sbp_status check_cover(const struct reader *r)
{
	sbp_tensors *f = r->f;
	uint64_t at = 0;

	qsort(f->entry, (size_t)f->n, sizeof *f->entry, by_offset);
	for (int i = 0; i < f->n; i++) {
		sbp_entry *t = &f->entry[i];

		if (t->at != at)
			return refuse(r, t->name,
				      t->at < at ? "data_offsets: overlap "
						   "with another tensor" :
				      i ? "data_offsets: a gap before it" :
					  "data_offsets: the first does not "
					  "begin at 0");
		at += t->bytes;
		t->at += r->data;
	}
	if (at == r->size)
		return SBP_OK;
	return message_set(r->e, SBP_USAGE,
			   "%s: byte %llu: trailing bytes after the last "
			   "tensor",
			   f->file.path, (unsigned long long)(r->data + at));
}

static sbp_status read_entries(const struct reader *r, json_t *root)
{
	sbp_tensors *f = r->f;
	const char *name;
	json_t *j;

	f->entry = calloc(json_object_size(root) + 1, sizeof *f->entry);
	if (!f->entry)
		return message_set(r->e, SBP_FAILED, "%s: out of memory",
				   f->file.path);
	json_object_foreach(root, name, j) {
		if (!strcmp(name, "__metadata__"))
			SBP_TRY(check_metadata(r, j));
		else
			SBP_TRY(read_entry(r, &f->entry[f->n++], name, j));
	}
	return check_cover(r);
}

/* ---- the header ---- */

static sbp_status read_json(const struct reader *r, const char *text,
			    size_t n)
{
	json_error_t error;
	json_t *root;
	sbp_status status;

	if (text[0] != '{')
		return message_set(r->e, SBP_USAGE,
				   "%s: byte 8: header: expected '{'",
				   r->f->file.path);
	/* Refuses what is not UTF-8, lone surrogates, \u0000, deep nesting
	 * and, here, keys given twice in any spelling. */
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return message_set(r->e, SBP_USAGE,
				   "%s: byte %d: header: %s",
				   r->f->file.path, 8 + error.position,
				   error.text);
	status = read_entries(r, root);
	json_decref(root);
	return status;
}

static sbp_status open_file(sbp_tensors *f, sbp_message *e)
{
	struct reader r = {.f = f, .e = e};
	unsigned char b[8];
	uint64_t n = 0;
	sbp_status status;
	char *text;

	SBP_TRY(file_read(&f->file, 0, b, sizeof b, e));
	for (int i = 7; i >= 0; i--)
		n = n << 8 | b[i];
	if (n > MAX_HEADER || n > f->file.size - 8 || n < 2)
		return message_set(e, SBP_USAGE,
				   "%s: byte 0: header length %llu: not from "
				   "2 to what the file has, at most %d",
				   f->file.path, (unsigned long long)n,
				   MAX_HEADER);
	r.data = 8 + n;
	r.size = f->file.size - r.data;
	text = malloc(n);
	if (!text)
		return message_set(e, SBP_FAILED, "%s: out of memory",
				   f->file.path);
	status = file_read(&f->file, 8, text, n, e);
	if (status == SBP_OK)
		status = read_json(&r, text, n);
	free(text);
	return status;
}

sbp_status tensors_open(sbp_tensors *f, const char *path, sbp_message *e)
{
	sbp_status status;

	*f = (sbp_tensors){.file = {.fd = -1}};
	SBP_TRY(file_open(&f->file, path, e));
	status = open_file(f, e);
	if (status != SBP_OK)
		tensors_close(f);
	return status;
}

void tensors_close(sbp_tensors *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->entry[i].name);
	free(f->entry);
	file_close(&f->file);
	*f = (sbp_tensors){.file = {.fd = -1}};
}

const sbp_entry *tensors_find(const sbp_tensors *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (!strcmp(f->entry[i].name, name))
			return &f->entry[i];
	return NULL;
}

/* ---- elements ---- */

static sbp_status read_as(const sbp_tensors *f, const sbp_entry *t,
			  const sbp_box *box, sbp_dtype as, void *to,
			  sbp_message *e)
{
	int64_t n = box_count(box);
	int width = dtype_bytes(t->dtype);
	void *part = malloc((size_t)n * (size_t)width + 1);
	sbp_status status;

	if (!part)
		return message_set(e, SBP_FAILED, "%s: out of memory",
				   f->file.path);
	status = file_read_box(&f->file, t->at, width, t->shape, box, part, e);
	if (status == SBP_OK)
		convert(to, as, part, t->dtype, n);
	free(part);
	return status;
}

sbp_status tensors_read(const sbp_tensors *f, const sbp_entry *t,
			const sbp_box *box, sbp_dtype as, void *to,
			sbp_message *e)
{
	if (!t->known || (t->dtype != as && !(dtype_floats(t->dtype) &&
					      dtype_floats(as))))
		return message_set(e, SBP_USAGE,
				   "%s: tensor '%.100s' is %s, expected %s",
				   f->file.path, t->name, t->dtype_name,
				   dtype_text(as));
	if (t->dtype != as || as == SBP_BOOL)
		return read_as(f, t, box, as, to, e);
	return file_read_box(&f->file, t->at, dtype_bytes(as), t->shape, box,
			     to, e);
}

/* ---- writing ---- */

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static const char *type_name(sbp_dtype t)
{
	for (int i = 0; i < NTYPES; i++)
		if (types[i].dtype == (int)t)
			return types[i].name;
	return "";
}

/* Sets t->bytes, and t->at relative to the data; returns where it ends. */
static uint64_t put_entry(FILE *f, sbp_entry *t, uint64_t at)
{
	t->at = at;
	t->bytes = (uint64_t)dtype_bytes(t->dtype);
	put_string(f, t->name);
	fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", type_name(t->dtype));
	for (int i = 0; i < t->rank; i++) {
		t->bytes *= (uint64_t)t->shape[i];
		fprintf(f, "%s%lld", i ? "," : "", (long long)t->shape[i]);
	}
	fprintf(f, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
		(unsigned long long)(at + t->bytes));
	return at + t->bytes;
}

/* The header, padded so that the data begins at a multiple of 8. Returns its
 * length, 0 when out of memory. */
static size_t put_header(int n, sbp_entry *entry, char **text)
{
	size_t size = 0;
	uint64_t at = 0;
	FILE *f = open_memstream(text, &size);

	if (!f)
		return 0;
	fputc('{', f);
	for (int i = 0; i < n; i++) {
		if (i)
			fputc(',', f);
		at = put_entry(f, &entry[i], at);
	}
	fputc('}', f);
	fflush(f);
	while (size % 8) {
		fputc(' ', f);
		fflush(f);
	}
	fclose(f);
	for (int i = 0; i < n; i++)
		entry[i].at += 8 + size;
	return size;
}

sbp_status tensors_create(sbp_writer *w, const char *path, int n,
			  sbp_entry *entry, sbp_message *e)
{
	char *text = NULL;
	size_t size = put_header(n, entry, &text);
	unsigned char b[8];
	sbp_status status;

	if (!size)
		return message_set(e, SBP_FAILED, "%s: out of memory", path);
	for (int i = 0; i < 8; i++)
		b[i] = (unsigned char)((uint64_t)size >> 8 * i);
	status = writer_open(w, path, e);
	if (status == SBP_OK) {
		status = writer_put(w, 0, b, sizeof b, e);
		if (status == SBP_OK)
			status = writer_put(w, 8, text, size, e);
		if (status != SBP_OK)
			writer_abort(w);
	}
	free(text);
	return status;
}
