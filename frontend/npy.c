/*
 * npy.c: reads the arrays that a program names by npy("file"). Strict: the
 * header is the dictionary that NumPy writes, the file ends with the data.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/lower.h"

struct npy {
	struct arena *a;
	const unsigned char *bytes;
	size_t size, data;   /* the file's size; where the data begins */
	const char *s, *end; /* the header that is left to read */
	enum dtype dtype;
	bool big, fortran;
	Shape shape;
	const char *why;
};

static bool wrong(struct npy *n, const char *why)
{
	if (!n->why)
		n->why = why;
	return false;
}

static bool read_all(struct npy *n, int fd)
{
	struct stat st;
	unsigned char *to;
	size_t have = 0;
	ssize_t got;

	if (fstat(fd, &st))
		return wrong(n, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return wrong(n, "not a regular file");
	n->size = (size_t)st.st_size;
	to = arena_alloc(n->a, n->size + 1);
	n->bytes = to;
	while (have < n->size) {
		got = read(fd, to + have, n->size - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return wrong(n, got ? strerror(errno)
					    : "the file shrinks");
		have += (size_t)got;
	}
	return true;
}

static bool read_file(struct npy *n, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ok;

	if (fd < 0)
		return wrong(n, strerror(errno));
	ok = read_all(n, fd);
	close(fd);
	return ok;
}

/* ---- the header ---- */

static void blanks(struct npy *n)
{
	while (n->s < n->end && (*n->s == ' ' || *n->s == '\n'))
		n->s++;
}

static bool skip(struct npy *n, const char *word)
{
	size_t size = strlen(word);

	blanks(n);
	if ((size_t)(n->end - n->s) < size || memcmp(n->s, word, size))
		return false;
	n->s += size;
	return true;
}

static bool read_descr(struct npy *n)
{
	static const struct {
		const char *code;
		enum dtype t;
	} codes[] = {
		{"b1", DT_BOOL}, {"u1", DT_U8},  {"i1", DT_I8},
		{"i4", DT_I32},  {"i8", DT_I64}, {"f2", DT_F16},
		{"f4", DT_F32},  {"f8", DT_F64}, {"V2", DT_BF16},
	};
	char order;

	if (!skip(n, "'") || n->end - n->s < 4)
		return wrong(n, "'descr' is no plain dtype");
	order = *n->s++;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (strchr("<>|=", order) && !memcmp(n->s, codes[i].code, 2) &&
		    n->s[2] == '\'') {
			n->dtype = codes[i].t;
			n->big = order == '>';
			n->s += 3;
			return true;
		}
	return wrong(n, "a dtype that sbpc does not know");
}

static bool read_extent(struct npy *n, int64_t *d)
{
	blanks(n);
	if (n->s == n->end || *n->s < '0' || *n->s > '9')
		return wrong(n, "'shape' is no tuple of extents");
	for (*d = 0; n->s < n->end && *n->s >= '0' && *n->s <= '9'; n->s++)
		if (__builtin_mul_overflow(*d, 10, d) ||
		    __builtin_add_overflow(*d, *n->s - '0', d))
			return wrong(n, "an extent does not fit 64 bits");
	if (n->s < n->end && *n->s == 'L')
		n->s++;
	return true;
}

static bool read_shape(struct npy *n)
{
	int64_t d;

	if (!skip(n, "("))
		return wrong(n, "'shape' is no tuple of extents");
	for (;;) {
		if (skip(n, ")"))
			return true;
		if (!read_extent(n, &d))
			return false;
		if (n->shape.rank == MAX_RANK)
			return wrong(n, "more than 8 axes");
		n->shape.d[n->shape.rank++] = d;
		if (!skip(n, ",") && (n->shape.rank == 1 || !skip(n, ")")))
			return wrong(n, "'shape' is no tuple of extents");
		else if (n->s[-1] == ')')
			return true;
	}
}

static bool read_key(struct npy *n, int *seen)
{
	int key = skip(n, "'descr'")           ? 1
		  : skip(n, "'fortran_order'") ? 2
		  : skip(n, "'shape'")         ? 4
					       : 0;

	if (!key || !skip(n, ":"))
		return wrong(n, "a key that is not 'descr', 'fortran_order' "
				"or 'shape'");
	if (*seen & key)
		return wrong(n, "a key stands twice");
	*seen |= key;
	if (key == 1)
		return read_descr(n);
	if (key == 4)
		return read_shape(n);
	n->fortran = skip(n, "True");
	return n->fortran || skip(n, "False") ||
	       wrong(n, "'fortran_order' is not True or False");
}

static bool read_dictionary(struct npy *n)
{
	int seen = 0;

	if (!skip(n, "{"))
		return wrong(n, "the header is no dictionary");
	while (!skip(n, "}")) {
		if (!read_key(n, &seen))
			return false;
		if (!skip(n, ",") && (n->s == n->end || *n->s != '}'))
			return wrong(n, "the header is no dictionary");
	}
	blanks(n);
	if (n->s != n->end)
		return wrong(n, "text after the header's dictionary");
	return seen == 7 || wrong(n, "a key is missing");
}

static bool read_header(struct npy *n)
{
	const unsigned char *b = n->bytes;
	size_t at, length;

	if (n->size < 10 || memcmp(b, "\x93NUMPY", 6))
		return wrong(n, "not a .npy file");
	if (b[6] < 1 || b[6] > 3 || b[7])
		return wrong(n, "a version of the format other than 1.0, "
				"2.0 and 3.0");
	at = b[6] == 1 ? 10 : 12;
	if (n->size < at)
		return wrong(n, "the header is cut short");
	length = (size_t)b[8] | (size_t)b[9] << 8;
	if (b[6] > 1)
		length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (length > n->size - at)
		return wrong(n, "the header is cut short");
	if (length > 10000)
		return wrong(n, "the header is longer than 10000 bytes");
	n->s = (const char *)b + at;
	n->end = n->s + length;
	n->data = at + length;
	return read_dictionary(n);
}

/* ---- the data ---- */

/* Copies element TO of the C order from where the file has it. */
static int64_t column_major(Shape s, int64_t to)
{
	int64_t at[MAX_RANK], from = 0;

	for (int i = s.rank - 1; i >= 0; i--) {
		at[i] = to % s.d[i];
		to /= s.d[i];
	}
	for (int i = s.rank - 1; i >= 0; i--)
		from = from * s.d[i] + at[i];
	return from;
}

static const void *ordered_data(struct npy *n)
{
	int64_t count = shape_count(n->shape);
	size_t size = (size_t)dtype_size(n->dtype);
	const unsigned char *from = n->bytes + n->data;
	unsigned char *to = arena_alloc(n->a, (size_t)count * size + 1);

	for (int64_t i = 0; i < count; i++) {
		int64_t k = n->fortran ? column_major(n->shape, i) : i;

		for (size_t b = 0; b < size; b++)
			to[(size_t)i * size + b] =
				from[(size_t)k * size +
				     (n->big ? size - 1 - b : b)];
	}
	return to;
}

static bool check_type(struct npy *n, Type t)
{
	Type is = {n->dtype, n->shape};
	int64_t count;

	if (!type_eq(is, t))
		return wrong(n, arena_text(n->a, "it holds %s, not %s",
					   type_text(is), type_text(t)));
	if (!shape_count_fits(n->shape, &count) || (uint64_t)count > n->size ||
	    (size_t)count * (size_t)dtype_size(t.dtype) != n->size - n->data)
		return wrong(n, "the data is not as long as the shape says");
	return true;
}

const void *npy_read(struct arena *a, const char *path, Type t,
		     const char **why)
{
	struct npy n = {.a = a};
	const void *data = NULL;

	if (read_file(&n, path) && read_header(&n) && check_type(&n, t))
		data = ordered_data(&n);
	*why = n.why;
	return data;
}
