/*
 * formats_test.c: what the readers of npy, idx and safetensors refuse, and
 * that what they write reads back. Each refusal is one row: bytes, and a part
 * of the message.
 */
#include "runtime/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/sbp_random.h"

static char path[64];
static int failures;

static void fail(const char *test, const char *why)
{
	printf("%s: %s\n", test, why);
	failures++;
}

static void put_file(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void expect(const char *test, sbp_status status, const sbp_message *e,
		   const char *part)
{
	if (status == SBP_OK)
		fail(test, "not refused");
	else if (!strstr(e->text, part) || !strstr(e->text, path))
		fail(test, e->text);
}

static sbp_box box_of(int rank, const int64_t *shape)
{
	sbp_box box = {.rank = rank};

	for (int i = 0; i < rank; i++)
		box.n[i] = shape[i];
	return box;
}

/* ---- npy ---- */

struct npy_case {
	const char *test, *header;
	int data;		/* bytes after it */
	const char *part;	/* of the message; NULL: read */
};
#define D(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape "}\n"
static const struct npy_case npy_cases[] = {
	{"npy plain", D("(2, 3)"), 24, NULL},
	{"npy comma at the end",
	 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
	 24, NULL},
	{"npy scalar", D("()"), 4, NULL},
	{"npy one axis", D("(6,)"), 24, NULL},
	{"npy python 2", D("(3L,)"), 12, NULL},
	{"npy zero extent", D("(0, 3)"), 0, NULL},
	{"npy fortran",
	 "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3)}\n", 24,
	 NULL},
	{"npy bf16", "{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}\n",
	 4, NULL},
	{"npy missing key", "{'descr': '<f4', 'shape': (2,)}\n", 8,
	 "is missing"},
	{"npy extra key",
	 "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}\n",
	 8, "a key other than"},
	{"npy duplicate key",
	 "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': "
	 "(2,)}\n",
	 8, "same key twice"},
	{"npy shape is a list", D("[2, 3]"), 24, "expected a tuple"},
	{"npy shape is a number", D("6"), 24, "expected a tuple"},
	{"npy shape in parentheses", D("(6)"), 24, "expected a tuple"},
	{"npy negative", D("(-2, 3)"), 24, "not negative"},
	{"npy large number", D("(99999999999999999999, 3)"), 24, "too large"},
	{"npy overflow", D("(4294967296, 4294967296)"), 24, "too large"},
	{"npy overflow behind a zero", D("(0, 9223372036854775807, 4)"), 0,
	 "too large"},
	{"npy many axes", D("(1,1,1,1,1,1,1,1,1)"), 4, "more than 8 axes"},
	{"npy objects",
	 "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}\n", 16,
	 "Python objects"},
	{"npy structured",
	 "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}\n",
	 8, "structured"},
	{"npy unknown type",
	 "{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}\n", 16,
	 "'<c8' is not supported"},
	{"npy short", D("(2, 3)"), 23, "data is short"},
	{"npy trailing", D("(2, 3)"), 25, "trailing bytes"},
	{"npy order is a number",
	 "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}\n", 8,
	 "True or False"},
	{"npy digit grouping", D("(2,621)"), 4 * 2621, "trailing bytes"},
	{"npy expression", D("(10**9,)"), 4, "expected ',' or ')'"},
	{"npy text after it",
	 "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x\n", 4,
	 "after the '}'"},
	{"npy no newline",
	 "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4,
	 "newline"},
	{"npy garbage", "import os\n", 4, "expected '{'"},
};

static void put_npy(const char *header, int data)
{
	char bytes[16384] = "\x93NUMPY\x01";
	size_t n = strlen(header);

	bytes[8] = (char)n;
	bytes[9] = (char)(n >> 8);
	memcpy(bytes + 10, header, n);
	put_file(bytes, 10 + n + (size_t)data);
}

static void npy_refusals(void)
{
	for (size_t i = 0; i < sizeof npy_cases / sizeof *npy_cases; i++) {
		const struct npy_case *c = &npy_cases[i];
		sbp_message e = {""};
		sbp_status status;
		sbp_npy f;

		put_npy(c->header, c->data);
		status = npy_open(&f, path, &e);
		if (c->part)
			expect(c->test, status, &e, c->part);
		else if (status != SBP_OK)
			fail(c->test, e.text);
		npy_close(&f);
	}
}

static void npy_prologue(const char *test, const char *bytes, size_t n,
			 const char *part)
{
	sbp_message e = {""};
	sbp_npy f;

	put_file(bytes, n);
	expect(test, npy_open(&f, path, &e), &e, part);
}

static void npy_prologues(void)
{
	npy_prologue("npy empty", "", 0, "not an npy file");
	npy_prologue("npy magic", "\x93NUMPX\x01\0\x02\0{}", 12,
		     "not an npy file");
	npy_prologue("npy version", "\x93NUMPY\x04\0\x02\0{}", 12,
		     "version 4.0");
	npy_prologue("npy header beyond the file", "\x93NUMPY\x01\0\xff\x20{}",
		     12, "header_len");
	npy_prologue("npy 4 GB header",
		     "\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14, "header_len");
}

static void npy_special_files(void)
{
	sbp_message e = {""};
	sbp_npy f;

	unlink(path);
	expect("npy absent", npy_open(&f, path, &e), &e, "cannot open");
	if (mkfifo(path, 0600))
		perror(path);
	expect("npy fifo", npy_open(&f, path, &e), &e, "not a regular");
	unlink(path);
	if (mkdir(path, 0700))
		perror(path);
	expect("npy directory", npy_open(&f, path, &e), &e, "not a regular");
	rmdir(path);
}

static void npy_round_trip(void)
{
	static const int64_t shape[] = {3, 4, 5};
	sbp_box part = {.rank = 3, .lo = {1, 2, 1}, .n = {2, 2, 3}};
	float all[60], got[12];
	sbp_message e = {""};
	sbp_npy f;

	for (int i = 0; i < 60; i++)
		all[i] = (float)i;
	if (npy_write(path, SBP_F32, 3, shape, all, &e) != SBP_OK ||
	    npy_open(&f, path, &e) != SBP_OK) {
		fail("npy round trip", e.text);
		return;
	}
	if (f.data % 64 || npy_read(&f, &part, got, &e) != SBP_OK)
		fail("npy round trip", "not read");
	for (int i = 0; i < 12; i++) {
		int a = i / 6, b = i / 3 % 2, c = i % 3;
		float want = all[(1 + a) * 20 + (2 + b) * 5 + 1 + c];

		if (got[i] != want)
			fail("npy round trip", "element differs");
	}
	npy_close(&f);
}

/* [[1, 2, 3], [4, 5, 6]] by columns, big-endian. */
static void npy_fortran(void)
{
	static const int64_t shape[] = {2, 3};
	const char *header =
		"{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3)}\n";
	static const char column[] = {1, 4, 2, 5, 3, 6};
	unsigned char bytes[128] = "\x93NUMPY\x01";
	sbp_box box = box_of(2, shape);
	int32_t got[6];
	sbp_message e = {""};
	size_t n = strlen(header);
	sbp_npy f;

	bytes[8] = (unsigned char)n;
	memcpy(bytes + 10, header, n);
	for (int i = 0; i < 6; i++)
		bytes[10 + n + 4 * (size_t)i + 3] = (unsigned char)column[i];
	put_file(bytes, 10 + n + 24);
	if (npy_open(&f, path, &e) != SBP_OK ||
	    npy_read(&f, &box, got, &e) != SBP_OK) {
		fail("npy fortran", e.text);
		return;
	}
	for (int i = 0; i < 6; i++)
		if (got[i] != i + 1)
			fail("npy fortran", "element differs");
	npy_close(&f);
}

/* ---- idx ---- */

struct idx_case {
	const char *test, *bytes;
	size_t n;
	const char *part;
};
#define B(s) s, sizeof s - 1
static const struct idx_case idx_cases[] = {
	{"idx u8", B("\0\0\x08\x02\0\0\0\x02\0\0\0\x03" "abcdef"), NULL},
	{"idx i16", B("\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\x02"), NULL},
	{"idx f64", B("\0\0\x0e\x01\0\0\0\x01\x3f\xf0\0\0\0\0\0\0"), NULL},
	{"idx empty", B(""), "ends early"},
	{"idx first bytes", B("\x01\0\x08\x01\0\0\0\x01" "a"),
	 "first two bytes must be 0"},
	{"idx type 0x0a", B("\0\0\x0a\x01\0\0\0\x01" "a"), "element type"},
	{"idx type unknown", B("\0\0\x77\x01\0\0\0\x01" "a"), "element type"},
	{"idx no axes", B("\0\0\x08\0a"), "rank"},
	{"idx nine axes", B("\0\0\x08\x09\0\0\0\x01" "a"), "rank"},
	{"idx overflow",
	 B("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
	 "too large"},
	{"idx short", B("\0\0\x08\x01\0\0\0\x03" "ab"), "ends early"},
	{"idx trailing", B("\0\0\x08\x01\0\0\0\x03" "abcd"), "trailing bytes"},
	{"idx header short", B("\0\0\x08\x03\0\0\0\x03"), "ends early"},
	{"idx little-endian", B("\x03\x08\0\0\x03\0\0\0"), "little-endian"},
	{"idx 4 GB", B("\0\0\x08\x01\xff\xff\xff\xff" "abcd"), "ends early"},
};

static void check_idx(const char *test, const char *part)
{
	sbp_message e = {""};
	sbp_idx f;
	sbp_status status = idx_open(&f, path, &e);

	if (part)
		expect(test, status, &e, part);
	else if (status != SBP_OK)
		fail(test, e.text);
	idx_close(&f);
}

static void put_gz(const char *bytes, size_t n)
{
	gzFile f = gzopen(path, "wb");

	if (!f || gzwrite(f, bytes, (unsigned)n) != (int)n ||
	    gzclose(f) != Z_OK)
		fail(path, "cannot write");
}

/* Plain and gzipped alike; nothing has two meanings. */
static void idx_refusals(void)
{
	for (size_t i = 0; i < sizeof idx_cases / sizeof *idx_cases; i++) {
		const struct idx_case *c = &idx_cases[i];
		const char *part = c->part;

		put_file(c->bytes, c->n);
		check_idx(c->test, part);
		if (!c->n)
			continue;
		put_gz(c->bytes, c->n);
		if (!strcmp(c->test, "idx 4 GB"))
			part = "more than the file can hold";
		check_idx(c->test, part);
	}
}

static void idx_damaged_gz(void)
{
	char bytes[4096] = "\0\0\x08\x01\0\0\x0f";
	struct stat s;

	for (int i = 8; i < 8 + 0xf00; i++)
		bytes[i] = (char)(i * i * 31);
	put_gz(bytes, 8 + 0xf00);
	if (stat(path, &s) || truncate(path, s.st_size / 2))
		perror(path);
	check_idx("idx gz cut", "ends early");
	put_gz(bytes, 8 + 0xf00);
	if (stat(path, &s) || truncate(path, s.st_size - 1))
		perror(path);
	check_idx("idx gz without its last byte", "ends early");
}

static void idx_values(void)
{
	static const char bytes[] = "\0\0\x0b\x01\0\0\0\x03\xff\xfe\x01\x02\0\x05";
	static const int64_t shape[] = {3};
	sbp_box box = box_of(1, shape);
	sbp_message e = {""};
	int32_t got[3];
	sbp_idx f;

	put_file(bytes, sizeof bytes - 1);
	if (idx_open(&f, path, &e) != SBP_OK ||
	    idx_read(&f, &box, got, &e) != SBP_OK)
		fail("idx values", e.text);
	else if (got[0] != -2 || got[1] != 258 || got[2] != 5)
		fail("idx values", "element differs");
	idx_close(&f);
}

/* Images and labels that do not go together. */
static void idx_pair(const char *test, const char *image, size_t n,
		     const char *label, size_t k, const char *part)
{
	char other[80];
	sbp_source s = {"train", SBP_DATA_IDX, {path, other}};
	struct data_set *d;
	sbp_message e = {""};

	put_file(label, k);
	snprintf(other, sizeof other, "%s.label", path);
	rename(path, other);
	put_file(image, n);
	if (data_open(&d, &s, &e) == SBP_OK)
		fail(test, "not refused");
	else if (!strstr(e.text, part))
		fail(test, e.text);
	data_close(d);
	unlink(other);
}

static void idx_pairs(void)
{
	static const char image[] = "\0\0\x08\x02\0\0\0\x02\0\0\0\x01" "ab";
	static const char two[] = "\0\0\x08\x01\0\0\0\x02" "ab";
	static const char three[] = "\0\0\x08\x01\0\0\0\x03" "abc";

	idx_pair("idx swapped", B(two), B(image), "swapped");
	idx_pair("idx counts", B(image), B(three), "3 labels");
	idx_pair("idx two label files", B(two), B(two), "no images");
	idx_pair("idx two image files", B(image), B(image), "labels have 1");
}

/* ---- safetensors ---- */

struct st_case {
	const char *test, *header;
	size_t data;
	const char *part;
};
#define T(name, dtype, shape, lo, hi)                                         \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape              \
	",\"data_offsets\":[" lo "," hi "]}"
static const struct st_case st_cases[] = {
	{"st plain", "{" T("a", "F32", "[2]", "0", "8") "}", 8, NULL},
	{"st none", "{}", 0, NULL},
	{"st padded", "{" T("a", "F32", "[2]", "0", "8") "}    ", 8, NULL},
	{"st scalar", "{" T("a", "F32", "[]", "0", "4") "}", 4, NULL},
	{"st zero extent", "{" T("a", "F32", "[0, 3]", "0", "0") "}", 0, NULL},
	{"st metadata",
	 "{\"__metadata__\":{\"format\":\"pt\"}," T("a", "F32", "[2]", "0",
						    "8") "}",
	 8, NULL},
	{"st other types", "{" T("a", "F8_E4M3", "[4]", "0", "4") "}", 4,
	 NULL},
	{"st half bytes", "{" T("a", "F4", "[4]", "0", "2") "}", 2, NULL},
	{"st order",
	 "{" T("b", "F32", "[1]", "4", "8") "," T("a", "F32", "[1]", "0",
						  "4") "}",
	 8, NULL},
	{"st not utf-8", "{" T("\xff", "F32", "[2]", "0", "8") "}", 8,
	 "header"},
	{"st open brace", "{ ", 0, "header"},
	{"st garbage", "{hello}", 0, "header"},
	{"st list", "[1]", 0, "expected '{'"},
	{"st blank first", " {}", 0, "expected '{'"},
	{"st trailing bytes", "{" T("a", "F32", "[2]", "0", "8") "}", 9,
	 "trailing bytes"},
	{"st short", "{" T("a", "F32", "[2]", "0", "8") "}", 6,
	 "beyond the end"},
	{"st size", "{" T("a", "F32", "[2]", "0", "4") "}", 4,
	 "not as many bytes"},
	{"st product wraps",
	 "{" T("a", "F32", "[2, 9223372036854775807]", "0", "8") "}", 8,
	 "too large"},
	{"st extent above 2^63",
	 "{" T("a", "F32", "[2, 18446744073709551614]", "0", "8") "}", 8,
	 "header"},
	{"st bits wrap", "{" T("a", "F32", "[576460752303423488]", "0",
			       "0") "}",
	 0, "too large"},
	{"st wraps to zero",
	 "{" T("a", "F32", "[4294967296, 4294967296]", "0", "0") "}", 0,
	 "too large"},
	{"st zero hides overflow",
	 "{" T("a", "U8", "[0, 4611686018427387904, 4]", "0", "0") "}", 0,
	 "too large"},
	{"st overlap",
	 "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4",
						  "8") "}",
	 8, "overlap"},
	{"st gap",
	 "{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "8",
						  "12") "}",
	 12, "a gap"},
	{"st not at 0", "{" T("a", "F32", "[1]", "4", "8") "}", 8,
	 "begin at 0"},
	{"st reversed", "{" T("a", "F32", "[2]", "8", "0") "}", 8,
	 "before the begin"},
	{"st negative", "{" T("a", "F32", "[2]", "-8", "0") "}", 8,
	 "not negative"},
	{"st float offsets", "{" T("a", "F32", "[2]", "0", "8.0") "}", 8,
	 "not negative"},
	{"st exponent", "{" T("a", "F32", "[250]", "0", "1e3") "}", 1000,
	 "not negative"},
	{"st float shape", "{" T("a", "F32", "[2.0]", "0", "8") "}", 8,
	 "not negative"},
	{"st unknown type", "{" T("a", "F33", "[2]", "0", "8") "}", 8,
	 "'F33' is not known"},
	{"st half byte left", "{" T("a", "F4", "[3]", "0", "2") "}", 2,
	 "whole number of bytes"},
	{"st duplicate",
	 "{" T("a", "F32", "[1]", "0", "4") "," T("a", "F32", "[1]", "4",
						  "8") "}",
	 8, "header"},
	{"st duplicate by escape",
	 "{" T("a", "F32", "[1]", "0", "4") "," T("\\u0061", "F32", "[1]",
						  "4", "8") "}",
	 8, "header"},
	{"st nested metadata", "{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0,
	 "expected strings"},
	{"st metadata number", "{\"__metadata__\":{\"a\":1}}", 0,
	 "expected strings"},
	{"st metadata list", "{\"__metadata__\":[]}", 0, "expected an object"},
	{"st lone surrogate", "{" T("\\ud800", "F32", "[2]", "0", "8") "}", 8,
	 "header"},
	{"st nul in a name", "{" T("a\\u0000b", "F32", "[2]", "0", "8") "}",
	 8, "header"},
	{"st extra key",
	 "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],"
	 "\"x\":1}}",
	 8, "and no more"},
	{"st missing key", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8,
	 "expected dtype"},
	{"st nine axes",
	 "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1,
	 "more than 8 axes"},
};

static void put_st(uint64_t length, const char *header, size_t n, size_t data)
{
	char *bytes = calloc(1, 8 + n + data);

	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, header, n);
	put_file(bytes, 8 + n + data);
	free(bytes);
}

static void check_st(const char *test, const char *part)
{
	sbp_message e = {""};
	sbp_tensors f;
	sbp_status status = tensors_open(&f, path, &e);

	if (part)
		expect(test, status, &e, part);
	else if (status != SBP_OK)
		fail(test, e.text);
	tensors_close(&f);
}

static void st_refusals(void)
{
	for (size_t i = 0; i < sizeof st_cases / sizeof *st_cases; i++) {
		const struct st_case *c = &st_cases[i];
		size_t n = strlen(c->header);

		put_st(n, c->header, n, c->data);
		check_st(c->test, c->part);
	}
}

static void st_lengths(void)
{
	char *deep;

	put_file("", 0);
	check_st("st empty", "ends here");
	put_file("\1\0\0\0\0\0\0", 7);
	check_st("st seven bytes", "ends here");
	put_st(UINT64_MAX, "{}", 2, 0);
	check_st("st length -1", "header length");
	put_st(100000001, "{}", 2, 0);
	check_st("st length above the cap", "header length");
	put_st(3, "{}", 2, 0);
	check_st("st length beyond the file", "header length");
	put_st(0, "", 0, 0);
	check_st("st length 0", "header length");
	deep = malloc(200000);
	memset(deep, '[', 200000);
	memcpy(deep, "{\"a\":", 5);
	put_st(200000, deep, 200000, 0);
	check_st("st deep nesting", "header");
	free(deep);
}

static void st_round_trip(void)
{
	float w[6] = {1, 2, 3, 4, 5, 6}, row[3];
	uint16_t half[3];
	sbp_entry out[] = {
		{.name = "w \"x\"", .dtype = SBP_F32, .rank = 2,
		 .shape = {2, 3}},
		{.name = "s", .dtype = SBP_I64, .rank = 0},
	};
	sbp_box all = box_of(2, out[0].shape), scalar = {0};
	sbp_box second = {.rank = 2, .lo = {1, 0}, .n = {1, 3}};
	const sbp_entry *t;
	int64_t s = 42, got = 0;
	sbp_message e = {""};
	sbp_tensors f = {.file.fd = -1};
	sbp_writer o;

	if (tensors_create(&o, path, 2, out, &e) != SBP_OK ||
	    writer_put_box(&o, out[0].at, 4, out[0].shape, &all, w, &e) ||
	    writer_put_box(&o, out[1].at, 8, NULL, &scalar, &s, &e) ||
	    writer_commit(&o, &e) || tensors_open(&f, path, &e)) {
		fail("st round trip", e.text);
		return;
	}
	t = tensors_find(&f, "w \"x\"");
	if (!t || tensors_read(&f, t, &second, SBP_F32, row, &e) ||
	    row[2] != 6 || tensors_read(&f, t, &second, SBP_F16, half, &e) ||
	    f16_to_f32(half[0]) != 4)
		fail("st round trip", e.text);
	t = tensors_find(&f, "s");
	if (!t || tensors_read(&f, t, &scalar, SBP_I64, &got, &e) ||
	    got != 42)
		fail("st round trip", e.text);
	expect("st other type", tensors_read(&f, t, &scalar, SBP_F32, row, &e),
	       &e, "is I64, expected f32");
	tensors_close(&f);
}

/* An abandoned file leaves nothing. */
static void writer_leaves_nothing(void)
{
	char other[96];
	sbp_message e;
	sbp_writer w;

	unlink(path);
	if (writer_open(&w, path, &e) != SBP_OK ||
	    writer_put(&w, 0, "x", 1, &e) != SBP_OK)
		fail("writer", e.text);
	snprintf(other, sizeof other, "%s", w.temporary);
	writer_abort(&w);
	if (!access(other, F_OK) || !access(path, F_OK))
		fail("writer", "a file is left");
	if (writer_open(&w, "/dev/null", &e) == SBP_OK)
		fail("writer", "would replace a device");
}

/* ---- conversions and numbers ---- */

static void halves(void)
{
	for (unsigned h = 0; h < 65536; h++) {
		float f = f16_to_f32((uint16_t)h), b = bf16_to_f32((uint16_t)h);

		if (!isnan(f) && f32_to_f16(f) != h)
			fail("f16", "does not come back");
		if (!isnan(b) && f32_to_bf16(b) != h)
			fail("bf16", "does not come back");
		if (isnan(f) && !isnan(f16_to_f32(f32_to_f16(f))))
			fail("f16", "nan is lost");
	}
	if (f32_to_f16(65519) != 0x7bff || f32_to_f16(65520) != 0x7c00 ||
	    f32_to_f16(0x1p-25f) != 0 || f32_to_f16(0x1.000002p-25f) != 1 ||
	    f32_to_f16(2049) != 0x6800 || f32_to_bf16(0x1.01p0f) != 0x3f80)
		fail("f16", "rounding");
}

static void conversions(void)
{
	static const double from[] = {NAN, 3e9, -3e9, 2.9, -2.9, 300};
	static const int32_t want[] = {0, INT32_MAX, INT32_MIN, 2, -2, 300};
	double d = 1 + 0x1p-11 + 0x1p-40;
	int32_t got[6];
	uint8_t small[6];
	uint16_t h;

	convert(got, SBP_I32, from, SBP_F64, 6);
	convert(small, SBP_U8, want, SBP_I32, 6);
	for (int i = 0; i < 6; i++)
		if (got[i] != want[i] || small[i] != (uint8_t)want[i])
			fail("convert", "wrong integer");
	convert(&h, SBP_F16, &d, SBP_F64, 1);
	if (h != 0x3c01)
		fail("convert", "f64 to f16 rounds twice");
}

/* Known answers of Random123's kat_vectors for philox4x32-10. */
static void philox(void)
{
	sbp_random4 r = sbp_philox(0, 0, 0, 0);
	static const uint32_t zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
					0x9b00dbd8};
	static const uint32_t pi[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420,
				      0x24126ea1};

	if (memcmp(r.w, zero, sizeof zero))
		fail("philox", "first vector");
	r = sbp_philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x13198a2e,
		       0x03707344);
	if (memcmp(r.w, pi, sizeof pi))
		fail("philox", "third vector");
}

/* A piece has the same numbers as the whole. */
static void pieces_of_init(void)
{
	static const sbp_init init = {.kind = SBP_INIT_NORMAL, .b = 1};
	static const int64_t shape[] = {40, 50};
	sbp_box all = box_of(2, shape);
	sbp_box part = {.rank = 2, .lo = {7, 11}, .n = {20, 3}};
	static float whole[2000], piece[60];
	double sum = 0, squares = 0;

	init_fill(&init, "w", 1, SBP_F32, shape, &all, whole);
	init_fill(&init, "w", 1, SBP_F32, shape, &part, piece);
	for (int i = 0; i < 60; i++)
		if (piece[i] != whole[(7 + i / 3) * 50 + 11 + i % 3])
			fail("init", "a piece differs");
	for (int i = 0; i < 2000; i++) {
		sum += whole[i];
		squares += whole[i] * whole[i];
	}
	if (fabs(sum / 2000) > 0.1 || fabs(squares / 2000 - 1) > 0.15)
		fail("init", "not normal");
}

int main(void)
{
	snprintf(path, sizeof path, "formats_test.%d", (int)getpid());
	npy_refusals();
	npy_prologues();
	npy_special_files();
	npy_round_trip();
	npy_fortran();
	idx_refusals();
	idx_damaged_gz();
	idx_values();
	idx_pairs();
	st_refusals();
	st_lengths();
	st_round_trip();
	writer_leaves_nothing();
	halves();
	conversions();
	philox();
	pieces_of_init();
	unlink(path);
	return failures > 0;
}
