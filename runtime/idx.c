/*
 * idx.c: the files of MNIST and its kin, plain or gzipped:
 *	0 0 TYPE RANK, RANK big-endian extents of 4 bytes, big-endian data.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/private.h"

/* No deflate stream unpacks to more than this times its size. */
enum { MAX_RATIO = 1032 };

/* One stream over both kinds of file. */
struct stream {
	sbp_idx *f;
	gzFile gz;		/* NULL: plain */
	uLong sum;		/* CRC-32 of what came from gz */
	uint64_t at;		/* in the unpacked file */
	sbp_message *e;
};

static sbp_status refuse(const struct stream *s, uint64_t at, const char *what)
{
	return message_set(s->e, SBP_USAGE, "%s: byte %llu: %s",
			   s->f->file.path, (unsigned long long)at, what);
}

static sbp_status gz_refuse(const struct stream *s)
{
	int code;
	const char *why = gzerror(s->gz, &code);
	const char *own = strstr(why, ": ");	/* after zlib's "<fd:6>" */

	if (own)
		why = own + 2;
	if (code == Z_OK || code == Z_BUF_ERROR)
		why = "the file ends early";
	return refuse(s, s->at, why);
}

static sbp_status take(struct stream *s, void *to, uint64_t n)
{
	if (!s->gz) {
		if (n > s->f->file.size - s->at)
			return refuse(s, s->f->file.size,
				      "the file ends early");
		SBP_TRY(file_read(&s->f->file, s->at, to, n, s->e));
		s->at += n;
		return SBP_OK;
	}
	while (n > 0) {
		unsigned part = n < 1 << 30 ? (unsigned)n : 1u << 30;
		int got = gzread(s->gz, to, part);

		if (got <= 0)
			return gz_refuse(s);
		s->sum = crc32(s->sum, to, (unsigned)got);
		to = (char *)to + got;
		n -= (unsigned)got;
		s->at += (unsigned)got;
	}
	return SBP_OK;
}

/* ---- the header ---- */

/* The width in the file; i16 has no type of ours and is widened to i32. */
static sbp_status element_type(struct stream *s, int code, int *width)
{
	switch (code) {
	case 0x08:
		s->f->dtype = SBP_U8;
		break;
	case 0x09:
		s->f->dtype = SBP_I8;
		break;
	case 0x0b:
	case 0x0c:
		s->f->dtype = SBP_I32;
		break;
	case 0x0d:
		s->f->dtype = SBP_F32;
		break;
	case 0x0e:
		s->f->dtype = SBP_F64;
		break;
	default:
		return refuse(s, 2, "element type: not one of idx's (0x08 "
				    "0x09 0x0b 0x0c 0x0d 0x0e)");
	}
	*width = code == 0x0b ? 2 : dtype_bytes(s->f->dtype);
	return SBP_OK;
}

/* Bytes of the data. */
static sbp_status extents(struct stream *s, int width, uint64_t *bytes)
{
	*bytes = (uint64_t)width;
	for (int i = 0; i < s->f->rank; i++) {
		unsigned char b[4];
		uint32_t n;

		SBP_TRY(take(s, b, sizeof b));
		n = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
		    (uint32_t)b[2] << 8 | b[3];
		s->f->shape[i] = n;
		if (__builtin_mul_overflow(*bytes, n, bytes) ||
		    *bytes > INT64_MAX)
			return refuse(s, s->at - 4, "extent: the product of "
						    "all is too large");
	}
	return SBP_OK;
}

static sbp_status header(struct stream *s, int *width, uint64_t *bytes)
{
	unsigned char b[4];

	SBP_TRY(take(s, b, sizeof b));
	if (b[0] || b[1])
		return refuse(s, 0,
			      b[2] || b[3] ? "not an idx file: the first two "
					     "bytes must be 0" :
					     "not an idx file: written with "
					     "little-endian numbers?");
	SBP_TRY(element_type(s, b[2], width));
	if (b[3] < 1 || b[3] > SBP_MAX_RANK)
		return refuse(s, 3, "rank: expected 1 to 8 axes");
	s->f->rank = b[3];
	SBP_TRY(extents(s, *width, bytes));
	s->f->data = s->at;
	return SBP_OK;
}

/* ---- the data ---- */

static sbp_status check_size(const struct stream *s, uint64_t bytes)
{
	uint64_t size = s->f->file.size;

	if (s->gz)
		return bytes / MAX_RATIO > size ?
			       refuse(s, 4, "the extents ask for more than "
					    "the file can hold") :
			       SBP_OK;
	if (bytes > size - s->at)
		return refuse(s, size, "the file ends early");
	if (bytes < size - s->at)
		return refuse(s, s->at + bytes, "trailing bytes");
	return SBP_OK;
}

static uint32_t little_endian(const unsigned char *b)
{
	return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 |
	       (uint32_t)b[1] << 8 | b[0];
}

/* A gzip file ends with the sum and the size of what it holds. zlib says
 * nothing of an end that is cut off, or of bytes behind it, so this looks. */
static sbp_status check_trailer(struct stream *s)
{
	unsigned char end[8];
	uint64_t size = s->f->file.size;

	if (size < sizeof end)
		return refuse(s, size, "the file ends early");
	SBP_TRY(file_read(&s->f->file, size - sizeof end, end, sizeof end,
			  s->e));
	if (little_endian(end) == (uint32_t)s->sum &&
	    little_endian(end + 4) == (uint32_t)s->at)
		return SBP_OK;
	return refuse(s, size, "the file ends early, or bytes follow what "
			       "gzip wrote");
}

static sbp_status check_end(struct stream *s)
{
	char c;

	if (!s->gz)
		return SBP_OK;
	if (gzread(s->gz, &c, 1) > 0)
		return refuse(s, s->at, "trailing bytes");
	return check_trailer(s);
}

static void widen(struct stream *s, int64_t n)
{
	unsigned char *at = s->f->unpacked;

	/* From the end: the wide elements overwrite the narrow ones. Both
	 * are big-endian. */
	for (int64_t i = n - 1; i >= 0; i--) {
		unsigned char hi = at[2 * i], lo = at[2 * i + 1];
		unsigned char sign = hi & 0x80 ? 0xff : 0;

		at[4 * i] = at[4 * i + 1] = sign;
		at[4 * i + 2] = hi;
		at[4 * i + 3] = lo;
	}
}

/* Whole into memory: gzipped files, and those of i16. */
static sbp_status unpack(struct stream *s, int width, uint64_t bytes)
{
	uint64_t room = width == 2 ? 2 * bytes : bytes;

	s->f->unpacked = malloc(room + 1);
	if (!s->f->unpacked)
		return message_set(s->e, SBP_FAILED, "%s: out of memory",
				   s->f->file.path);
	SBP_TRY(take(s, s->f->unpacked, bytes));
	SBP_TRY(check_end(s));
	if (width == 2)
		widen(s, (int64_t)bytes / 2);
	return SBP_OK;
}

static sbp_status open_stream(struct stream *s)
{
	unsigned char b[2] = {0, 0};
	int fd;

	if (s->f->file.size >= 2)
		SBP_TRY(file_read(&s->f->file, 0, b, 2, s->e));
	if (b[0] != 0x1f || b[1] != 0x8b)
		return SBP_OK;
	fd = dup(s->f->file.fd);
	s->gz = fd < 0 ? NULL : gzdopen(fd, "rb");
	if (s->gz)
		return SBP_OK;
	if (fd >= 0)
		close(fd);
	return message_set(s->e, SBP_FAILED, "%s: out of memory",
			   s->f->file.path);
}

static sbp_status open_file(struct stream *s)
{
	uint64_t bytes = 0;
	int width = 0;

	SBP_TRY(open_stream(s));
	SBP_TRY(header(s, &width, &bytes));
	SBP_TRY(check_size(s, bytes));
	return s->gz || width == 2 ? unpack(s, width, bytes) : SBP_OK;
}

sbp_status idx_open(sbp_idx *f, const char *path, sbp_message *e)
{
	struct stream s = {.f = f, .e = e};
	sbp_status status;

	*f = (sbp_idx){.file = {.fd = -1}};
	SBP_TRY(file_open(&f->file, path, e));
	status = open_file(&s);
	if (s.gz)
		gzclose(s.gz);
	if (status != SBP_OK)
		idx_close(f);
	return status;
}

void idx_close(sbp_idx *f)
{
	free(f->unpacked);
	f->unpacked = NULL;
	file_close(&f->file);
}

/* ---- elements ---- */

sbp_status idx_read(const sbp_idx *f, const sbp_box *box, void *to,
		    sbp_message *e)
{
	int width = dtype_bytes(f->dtype);

	if (f->unpacked) {
		sbp_box all = {.rank = f->rank}, dense = *box;

		memcpy(all.n, f->shape, sizeof all.n);
		copy_box(to, &dense, f->unpacked, &all, box, width);
	} else {
		SBP_TRY(file_read_box(&f->file, f->data, width, f->shape, box,
				      to, e));
	}
	if (width > 1)
		swap_bytes(to, width, box_count(box));
	return SBP_OK;
}
