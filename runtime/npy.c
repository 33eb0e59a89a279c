/*
 * npy.c: NumPy's array files. The header is a Python dictionary of three
 * known keys; anything else in it is refused. The format is described in
 * numpy/lib/format.py.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
enum { MAX_HEADER = 10000 };	/* as NumPy reads by default */

/* ---- the dictionary ---- */

struct parser {
	const char *at, *end, *begin;
	uint64_t offset;	/* of BEGIN in the file */
	sbp_npy *f;
	sbp_message *e;
	bool has[3];		/* which keys were seen */
};
enum key { DESCR, FORTRAN_ORDER, SHAPE };

static sbp_status refuse(const struct parser *p, const char *what)
{
	unsigned long long at = p->offset + (unsigned)(p->at - p->begin);

	return message_set(p->e, SBP_USAGE, "%s: byte %llu: header: %s",
			   p->f->file.path, at, what);
}

static void blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\n'))
		p->at++;
}

static bool eat(struct parser *p, char c)
{
	blanks(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* A quoted word without escapes. */
static sbp_status word(struct parser *p, char *to, size_t size)
{
	char quote;
	size_t n = 0;

	blanks(p);
	if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
		return refuse(p, "expected a quoted word");
	quote = *p->at++;
	while (p->at < p->end && *p->at != quote) {
		if (n + 1 == size || *p->at == '\\')
			return refuse(p, "word not known");
		to[n++] = *p->at++;
	}
	to[n] = '\0';
	return eat(p, quote) ? SBP_OK : refuse(p, "quote is not closed");
}

static sbp_status extent(struct parser *p, int64_t *out)
{
	int64_t n = 0;

	blanks(p);
	if (p->at == p->end || !isdigit((unsigned char)*p->at))
		return refuse(p, "shape: expected an integer that is not "
				 "negative");
	for (; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, *p->at - '0', &n))
			return refuse(p, "shape: number too large");
	if (p->at < p->end && *p->at == 'L')
		p->at++;		/* Python 2's long */
	*out = n;
	return SBP_OK;
}

static sbp_status shape(struct parser *p)
{
	bool comma = true;

	if (!eat(p, '('))
		return refuse(p, "shape: expected a tuple");
	while (!eat(p, ')')) {
		if (!comma)
			return refuse(p, "shape: expected ',' or ')'");
		if (p->f->rank == SBP_MAX_RANK)
			return refuse(p, "shape: more than 8 axes");
		SBP_TRY(extent(p, &p->f->shape[p->f->rank++]));
		comma = eat(p, ',');
	}
	if (p->f->rank == 1 && !comma)
		return refuse(p, "shape: expected a tuple");
	return SBP_OK;
}

static const struct {
	const char *code;	/* without the byte order */
	sbp_dtype dtype;
	const char *written;
} codes[] = {
	{"b1", SBP_BOOL, "|b1"}, {"u1", SBP_U8, "|u1"}, {"i1", SBP_I8, "|i1"},
	{"i4", SBP_I32, "<i4"},	 {"i8", SBP_I64, "<i8"},
	{"f2", SBP_F16, "<f2"},	 {"V2", SBP_BF16, "|V2"},
	{"f4", SBP_F32, "<f4"},	 {"f8", SBP_F64, "<f8"},
};
enum { NCODES = sizeof codes / sizeof *codes };

static sbp_status descr(struct parser *p)
{
	char text[16];

	if (eat(p, '['))
		return refuse(p, "descr: structured types are not supported");
	SBP_TRY(word(p, text, sizeof text));
	if (strchr(text, 'O'))
		return refuse(p, "descr: Python objects are not supported");
	for (int i = 0; i < NCODES; i++) {
		bool wide = dtype_bytes(codes[i].dtype) > 1;

		if (!strchr("<>|", text[0]) || !text[0] ||
		    strcmp(text + 1, codes[i].code))
			continue;
		if (text[0] == '|' && wide && codes[i].dtype != SBP_BF16)
			break;
		p->f->dtype = codes[i].dtype;
		p->f->swap = text[0] == '>' && wide;
		return SBP_OK;
	}
	return message_set(p->e, SBP_USAGE,
			   "%s: header: descr: type '%s' is not supported",
			   p->f->file.path, text);
}

static bool eat_word(struct parser *p, const char *text)
{
	size_t n = strlen(text);

	blanks(p);
	if ((size_t)(p->end - p->at) < n || strncmp(p->at, text, n))
		return false;
	p->at += n;
	return true;
}

static sbp_status fortran_order(struct parser *p)
{
	if (eat_word(p, "True"))
		p->f->fortran = true;
	else if (!eat_word(p, "False"))
		return refuse(p, "fortran_order: expected True or False");
	return SBP_OK;
}

static sbp_status entry(struct parser *p)
{
	static const char *const keys[] = {"descr", "fortran_order", "shape"};
	static sbp_status (*const read[])(struct parser *) = {
		descr, fortran_order, shape};
	char text[16];
	int key = 0;

	SBP_TRY(word(p, text, sizeof text));
	while (key < 3 && strcmp(text, keys[key]))
		key++;
	if (key == 3)
		return refuse(p, "a key other than descr, fortran_order, "
				 "shape");
	if (p->has[key])
		return refuse(p, "the same key twice");
	p->has[key] = true;
	if (!eat(p, ':'))
		return refuse(p, "expected ':'");
	return read[key](p);
}

static sbp_status dictionary(struct parser *p)
{
	bool comma = true;

	if (!eat(p, '{'))
		return refuse(p, "expected '{'");
	while (!eat(p, '}')) {
		if (!comma)
			return refuse(p, "expected ',' or '}'");
		SBP_TRY(entry(p));
		comma = eat(p, ',');
	}
	if (!p->has[DESCR] || !p->has[FORTRAN_ORDER] || !p->has[SHAPE])
		return refuse(p, "descr, fortran_order or shape is missing");
	blanks(p);
	return p->at == p->end ? SBP_OK : refuse(p, "text after the '}'");
}

/* ---- opening ---- */

static sbp_status check_size(sbp_npy *f, sbp_message *e)
{
	uint64_t have = f->file.size - f->data, bytes;
	uint64_t product = (uint64_t)dtype_bytes(f->dtype);
	bool empty = false;

	for (int i = 0; i < f->rank; i++) {
		if (!f->shape[i])
			empty = true;
		else if (__builtin_mul_overflow(product, f->shape[i],
						&product) ||
			 product > INT64_MAX)
			return message_set(e, SBP_USAGE,
					   "%s: header: shape: the product of "
					   "the extents is too large",
					   f->file.path);
	}
	bytes = empty ? 0 : product;
	if (bytes == have)
		return SBP_OK;
	return message_set(e, SBP_USAGE,
			   "%s: byte %llu: %s: shape asks for %llu bytes, "
			   "the file has %llu",
			   f->file.path, (unsigned long long)f->data,
			   have < bytes ? "data is short" : "trailing bytes",
			   (unsigned long long)bytes,
			   (unsigned long long)have);
}

/* The length of the header, and where it starts. */
static sbp_status prologue(sbp_npy *f, uint32_t *length, uint64_t *at,
			   sbp_message *e)
{
	unsigned char b[12] = {0};
	size_t n = f->file.size < sizeof b ? f->file.size : sizeof b;

	SBP_TRY(file_read(&f->file, 0, b, n, e));
	if (n < 10 || memcmp(b, magic, sizeof magic))
		return message_set(e, SBP_USAGE, "%s: byte 0: not an npy file",
				   f->file.path);
	if (b[6] < 1 || b[6] > 3 || b[7])
		return message_set(e, SBP_USAGE,
				   "%s: byte 6: version %d.%d is not known: "
				   "1.0, 2.0 or 3.0 are",
				   f->file.path, b[6], b[7]);
	*at = b[6] == 1 ? 10 : 12;
	*length = b[8] | (uint32_t)b[9] << 8;
	if (b[6] > 1)
		*length |= (uint32_t)b[10] << 16 | (uint32_t)b[11] << 24;
	if (*at + *length > f->file.size || *length > MAX_HEADER)
		return message_set(e, SBP_USAGE,
				   "%s: byte 8: header_len %u: more than the "
				   "file or than %d bytes",
				   f->file.path, *length, MAX_HEADER);
	return SBP_OK;
}

static sbp_status open_file(sbp_npy *f, sbp_message *e)
{
	char header[MAX_HEADER];
	struct parser p = {.f = f, .e = e, .at = header, .begin = header};
	uint32_t length = 0;

	SBP_TRY(prologue(f, &length, &p.offset, e));
	SBP_TRY(file_read(&f->file, p.offset, header, length, e));
	p.end = header + length;
	SBP_TRY(dictionary(&p));
	if (p.end == header || p.end[-1] != '\n')
		return refuse(&p, "it does not end with a newline");
	f->data = p.offset + length;
	return check_size(f, e);
}

sbp_status npy_open(sbp_npy *f, const char *path, sbp_message *e)
{
	sbp_status status;

	*f = (sbp_npy){.file = {.fd = -1}};
	SBP_TRY(file_open(&f->file, path, e));
	status = open_file(f, e);
	if (status != SBP_OK)
		npy_close(f);
	return status;
}

void npy_close(sbp_npy *f)
{
	file_close(&f->file);
}

/* ---- elements ---- */

/* TO in C order from FROM, whose axes run the other way. */
static void transpose(char *to, const char *from, const sbp_box *box,
		      int width)
{
	int64_t index[SBP_MAX_RANK] = {0}, n = box_count(box);

	for (int64_t k = 0; k < n; k++) {
		int64_t at = 0;

		for (int i = box->rank - 1; i >= 0; i--)
			at = at * box->n[i] + index[i];
		memcpy(to + k * width, from + at * width, (size_t)width);
		for (int i = box->rank - 1; i >= 0; i--) {
			if (++index[i] < box->n[i])
				break;
			index[i] = 0;
		}
	}
}

/* A column-major array is the row-major one of the reversed shape. */
static sbp_status read_fortran(const sbp_npy *f, const sbp_box *box, void *to,
			       sbp_message *e)
{
	int width = dtype_bytes(f->dtype), r = box->rank;
	int64_t n = box_count(box), shape[SBP_MAX_RANK];
	sbp_box back = {.rank = r};
	sbp_status status;
	char *part;

	for (int i = 0; i < r; i++) {
		shape[i] = f->shape[r - 1 - i];
		back.lo[i] = box->lo[r - 1 - i];
		back.n[i] = box->n[r - 1 - i];
	}
	part = malloc((size_t)(n * width) + 1);
	if (!part)
		return message_set(e, SBP_FAILED, "%s: out of memory",
				   f->file.path);
	status = file_read_box(&f->file, f->data, width, shape, &back, part,
			       e);
	if (status == SBP_OK)
		transpose(to, part, box, width);
	free(part);
	return status;
}

sbp_status npy_read(const sbp_npy *f, const sbp_box *box, void *to,
		    sbp_message *e)
{
	int width = dtype_bytes(f->dtype);
	int64_t n = box_count(box);

	if (f->fortran)
		SBP_TRY(read_fortran(f, box, to, e));
	else
		SBP_TRY(file_read_box(&f->file, f->data, width, f->shape, box,
				      to, e));
	if (f->swap)
		swap_bytes(to, width, n);
	if (f->dtype == SBP_BOOL)	/* any byte but 0 is true */
		convert(to, SBP_BOOL, to, SBP_BOOL, n);
	return SBP_OK;
}

/* ---- writing ---- */

/* The dictionary, padded so that the elements begin at a multiple of 64. */
static int header_text(char *to, size_t size, sbp_dtype t, int rank,
		       const int64_t *shape)
{
	const char *code = "";
	size_t n;

	for (int i = 0; i < NCODES; i++)
		if (codes[i].dtype == t)
			code = codes[i].written;
	n = (size_t)snprintf(to, size,
			     "{'descr': '%s', 'fortran_order': False, "
			     "'shape': (",
			     code);
	for (int i = 0; i < rank; i++)
		n += (size_t)snprintf(to + n, size - n, "%s%lld",
				      i ? ", " : "", (long long)shape[i]);
	n += (size_t)snprintf(to + n, size - n, "%s), }",
			      rank == 1 ? "," : "");
	while ((10 + n + 1) % 64)
		to[n++] = ' ';
	to[n++] = '\n';
	return (int)n;
}

sbp_status npy_create(sbp_writer *w, const char *path, sbp_dtype t, int rank,
		      const int64_t *shape, uint64_t *data, sbp_message *e)
{
	char text[512];
	int n = header_text(text, sizeof text - 64, t, rank, shape);
	unsigned char b[10] = {0, 0, 0, 0, 0, 0, 1, 0, (unsigned char)n,
			       (unsigned char)(n >> 8)};
	sbp_status status;

	memcpy(b, magic, sizeof magic);
	*data = sizeof b + (uint64_t)n;
	SBP_TRY(writer_open(w, path, e));
	status = writer_put(w, 0, b, sizeof b, e);
	if (status == SBP_OK)
		status = writer_put(w, sizeof b, text, (size_t)n, e);
	if (status != SBP_OK)
		writer_abort(w);
	return status;
}

sbp_status npy_write(const char *path, sbp_dtype t, int rank,
		     const int64_t *shape, const void *from, sbp_message *e)
{
	size_t bytes = (size_t)dtype_bytes(t);
	sbp_status status;
	sbp_writer w;
	uint64_t at;

	for (int i = 0; i < rank; i++)
		bytes *= (size_t)shape[i];
	SBP_TRY(npy_create(&w, path, t, rank, shape, &at, e));
	status = writer_put(&w, at, from, bytes, e);
	if (status == SBP_OK)
		return writer_commit(&w, e);
	writer_abort(&w);
	return status;
}
