/*
 * show.c: numbers and tensors as text. Floats take the fewest digits that read
 * back to the same bits; the locale has no say.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

/* ---- numbers ---- */

enum { MOST_DIGITS = 17 };

/* D in N significant digits, "d.ddde+x" with whatever point the locale has. */
static double read_back(char *to, size_t size, double d, int n)
{
	snprintf(to, size, "%.*e", n - 1, d);
	return strtod(to, NULL);
}

static bool same_bits(sbp_dtype t, double want, double got)
{
	switch (t) {
	case SBP_F16:
		return f32_to_f16((float)want) == f32_to_f16((float)got);
	case SBP_BF16:
		return f32_to_bf16((float)want) == f32_to_bf16((float)got);
	case SBP_F32:
		return (float)want == (float)got;
	default:
		return want == got;
	}
}

/* The fewest digits: more of them never read back worse. */
static void shortest(char *to, size_t size, sbp_dtype t, double d)
{
	int lo = 1, hi = t == SBP_F64 ? MOST_DIGITS : t == SBP_F32 ? 9 : 5;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (same_bits(t, d, read_back(to, size, d, mid)))
			hi = mid;
		else
			lo = mid + 1;
	}
	read_back(to, size, d, lo);
}

/* Splits "-d.ddde+x" into digits without trailing zeros and the exponent. */
static int split_digits(const char *from, char *digits, int *exponent)
{
	const char *e = strchr(from, 'e');
	int n = 0;

	for (const char *c = from; c < e; c++)
		if (*c >= '0' && *c <= '9')
			digits[n++] = *c;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	digits[n] = 0;
	*exponent = atoi(e + 1);
	return n;
}

/* Plain from 0.0001 to below 1e16, else with an exponent. */
static int lay_out(char *to, const char *digits, int n, int exponent)
{
	if (exponent < -4 || exponent >= 16)
		return sprintf(to, "%.1s%s%se%c%02d", digits,
			       n > 1 ? "." : "", digits + 1,
			       exponent < 0 ? '-' : '+', abs(exponent));
	if (exponent < 0)
		return sprintf(to, "0.%.*s%s", -exponent - 1, "000", digits);
	if (n <= exponent + 1)
		return sprintf(to, "%s%.*s", digits, exponent + 1 - n,
			       "000000000000000");
	return sprintf(to, "%.*s.%s", exponent + 1, digits,
		       digits + exponent + 1);
}

static int show_float(char *to, sbp_dtype t, double d)
{
	char text[64], digits[64];
	int n, exponent;

	if (isnan(d))
		return sprintf(to, "nan");
	if (isinf(d))
		return sprintf(to, d < 0 ? "-inf" : "inf");
	if (d == 0)
		return sprintf(to, signbit(d) ? "-0" : "0");
	shortest(text, sizeof text, t, d);
	n = split_digits(text, digits, &exponent);
	if (d < 0)
		*to = '-';
	return (d < 0) + lay_out(to + (d < 0), digits, n, exponent);
}

static double load_float(sbp_dtype t, const void *from)
{
	uint16_t half;
	float f;
	double d;

	if (t == SBP_F64) {
		memcpy(&d, from, sizeof d);
		return d;
	}
	if (t == SBP_F32) {
		memcpy(&f, from, sizeof f);
		return f;
	}
	memcpy(&half, from, sizeof half);
	return t == SBP_F16 ? f16_to_f32(half) : bf16_to_f32(half);
}

int64_t element_int(sbp_dtype t, const void *from)
{
	int32_t i32;
	int64_t i64;

	switch (t) {
	case SBP_I8:
		return *(const int8_t *)from;
	case SBP_I32:
		memcpy(&i32, from, sizeof i32);
		return i32;
	case SBP_I64:
		memcpy(&i64, from, sizeof i64);
		return i64;
	default:
		return *(const uint8_t *)from;
	}
}

double element_double(sbp_dtype t, const void *from)
{
	return dtype_floats(t) ? load_float(t, from)
			       : (double)element_int(t, from);
}

int show_double(char *to, double d)
{
	return show_float(to, SBP_F64, d);
}

int show_element(char *to, sbp_dtype t, const void *element)
{
	if (dtype_floats(t))
		return show_float(to, t, load_float(t, element));
	if (t == SBP_BOOL)
		return sprintf(to, element_int(t, element) ? "true" : "false");
	return sprintf(to, "%" PRId64, element_int(t, element));
}

/* ---- tensors ---- */

static void shape_describe(char *to, size_t size, int rank,
			   const int64_t *shape)
{
	size_t n = (size_t)snprintf(to, size, "[");

	for (int a = 0; a < rank && n < size; a++)
		n += (size_t)snprintf(to + n, size - n, "%s%" PRId64,
				      a ? ", " : "", shape[a]);
	if (n < size)
		snprintf(to + n, size - n, "]");
}

static void show_rows(const sbp_box *box, sbp_dtype t,
		      const unsigned char *at)
{
	int width = dtype_bytes(t);
	int64_t row = box->rank ? box->n[box->rank - 1] : 1;
	int64_t matrix = box->rank > 1 ? row * box->n[box->rank - 2] : 0;
	int64_t n = box_count(box);
	char text[40];

	for (int64_t i = 0; i < n; i++) {
		int len = show_element(text, t, at + i * width);

		if (i && matrix && i % matrix == 0)
			putchar('\n');
		text[len] = (i + 1) % row ? ' ' : '\n';
		fwrite(text, 1, (size_t)len + 1, stdout);
	}
}

static void show_piece(const sbp_tensor *t, int rank, const sbp_box *box,
		       const unsigned char *at)
{
	char local[256], shape[256], dist[96];

	type_describe(local, sizeof local, t->dtype, box->rank, box->n);
	shape_describe(shape, sizeof shape, t->rank, t->shape);
	dist_describe(dist, sizeof dist, &t->dist);
	printf("[rank %d] %s %s of %s %s\n", rank, t->name, local, shape,
	       dist);
	show_rows(box, t->dtype, at);
}

static sbp_status show_all(sbp_model *m, const sbp_tensor *t, uint64_t n,
			   sbp_message *e)
{
	struct sbp_private *v = m->private_;

	for (int r = 0; r < m->world; r++) {
		int64_t at = t->at[tensor_class(v->p, r)];
		sbp_box box;

		if (at < 0 || !tensor_piece_of(t, r, &box))
			continue;
		if (r != m->rank)
			SBP_TRY(comm_wait(&v->comm, r, LANE_HOST, FLAG_READY,
					  n, e));
		if (v->comm.simulation)
			simulate_tensor(m, t, r, false);
		show_piece(t, r, &box, v->comm.arena[r] + at);
	}
	return SBP_OK;
}

/* Rank 0 prints straight from the arenas, the others wait. */
sbp_status show_tensor(sbp_model *m, const sbp_tensor *t, sbp_message *e)
{
	struct comm *c = &m->private_->comm;
	uint64_t n = ++c->host;

	if (m->rank != 0) {
		comm_post(c, LANE_HOST, FLAG_READY, n);
		return comm_wait(c, 0, LANE_HOST, FLAG_DONE, n, e);
	}
	SBP_TRY(show_all(m, t, n, e));
	comm_post(c, LANE_HOST, FLAG_DONE, n);
	if (fflush(stdout) != 0)
		return message_set(e, SBP_FAILED, "stdout cannot be written");
	return SBP_OK;
}

/* ---- --summary ---- */

static const char *const role_names[] = {"input",  "param", "state",
					 "const",  "output", "kept"};

/* Bytes of the largest piece. */
static int64_t piece_bytes(const sbp_tensor *t)
{
	int coord[SBP_MAX_MESH] = {0};
	sbp_box box = piece_at(&t->dist, t->rank, t->shape, coord);

	return box_count(&box) * dtype_bytes(t->dtype);
}

static int64_t tensor_count(const sbp_tensor *t)
{
	int64_t n = 1;

	for (int a = 0; a < t->rank; a++)
		n *= t->shape[a];
	return n;
}

static void summary_line(const sbp_tensor *t, int name_width, int type_width)
{
	char type[256], dist[96];

	type_describe(type, sizeof type, t->dtype, t->rank, t->shape);
	dist_describe(dist, sizeof dist, &t->dist);
	printf("%-6s  %-*s  %-*s  %s%s  %" PRId64 " bytes a rank\n",
	       role_names[t->role], name_width, t->name, type_width, type,
	       t->dist.on->name ? t->dist.on->name : "", dist,
	       piece_bytes(t));
}

static void summary_widths(const sbp_program *p, int *name, int *type)
{
	char text[256];

	*name = *type = 4;
	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];
		int n = (int)strlen(t->name);

		type_describe(text, sizeof text, t->dtype, t->rank, t->shape);
		*name = n > *name ? n : *name;
		n = (int)strlen(text);
		*type = n > *type ? n : *type;
	}
}

void show_summary(const sbp_model *m)
{
	const sbp_program *p = m->private_->p;
	int64_t params = 0, arena = 0;
	int name, type;

	summary_widths(p, &name, &type);
	printf("%s (%s): %d rank%s, %d thread%s a rank\n", p->name, p->file,
	       p->world, p->world == 1 ? "" : "s", m->threads,
	       m->threads == 1 ? "" : "s");
	for (int i = 0; i < p->ntensors; i++) {
		summary_line(&p->tensors[i], name, type);
		if (p->tensors[i].role == SBP_PARAM)
			params += tensor_count(&p->tensors[i]);
	}
	for (int c = 0; c < p->nclasses; c++)
		arena = p->arena_bytes[c] > arena ? p->arena_bytes[c] : arena;
	printf("%" PRId64 " parameters, arena of %" PRId64 " bytes, plan %016"
	       PRIx64 "\n", params, arena, p->plan_hash);
	printf("a step: %d kernels, %d collectives, receives %" PRId64
	       " bytes on the busiest rank, %" PRId64 " on all\n", p->kernels,
	       p->collectives, p->recv_busiest, p->recv_total);
}
