/*
 * kernel_test.c: what emitted kernels are made of, against plain arithmetic:
 * conversions of all halves, rounding, reductions across lanes, casts; loops
 * over parts; products of every type. (SLEEF's functions are tested where
 * programs are: oracle_ops_all.py, oracle_kernels.py.)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/formats.h"
#include "runtime/sbp_kernel.h"

static int passed, failed;

static void check(int ok, const char *what)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED: %s\n", what);
}

static uint32_t bits_of(float f)
{
	uint32_t b;

	memcpy(&b, &f, sizeof b);
	return b;
}

static float float_of(uint32_t b)
{
	float f;

	memcpy(&f, &b, sizeof f);
	return f;
}

/* ---- halves ---- */

/* To f32 and back, and against the runtime's own conversions. */
static void test_halves(void)
{
	int widen = 1, back = 1;

	for (uint32_t h = 0; h < 65536; h++) {
		float f = f16_to_f32((uint16_t)h), b = bf16_to_f32((uint16_t)h);
		int nan16 = isnan(f), nanb = isnan(b);

		widen = widen && (nan16 ? isnan(s_from_f16((uint16_t)h))
					: bits_of(s_from_f16((uint16_t)h)) ==
						  bits_of(f));
		widen = widen && (nanb ? isnan(s_from_bf16((uint16_t)h))
				       : bits_of(s_from_bf16((uint16_t)h)) ==
						 bits_of(b));
		back = back && (nan16 || s_bits_f16(f) == h);
		back = back && (nanb || s_bits_bf16(b) == h);
	}
	check(widen, "halves to f32");
	check(back, "halves to f32 and back");
}

/* Every 1009th float, and both sides of each midpoint. */
static void test_narrowing(void)
{
	int f16 = 1, bf16 = 1;

	for (uint64_t i = 0; i < 1ull << 32; i += 1009) {
		float f = float_of((uint32_t)i);

		if (isnan(f)) {
			f16 = f16 && isnan(s_round_f16(f));
			bf16 = bf16 && isnan(s_round_bf16(f));
			continue;
		}
		f16 = f16 && s_bits_f16(f) == f32_to_f16(f);
		bf16 = bf16 && s_bits_bf16(f) == f32_to_bf16(f);
	}
	for (uint32_t h = 0; h < 0x7bff; h++) {
		float low = f16_to_f32((uint16_t)h);
		float high = f16_to_f32((uint16_t)(h + 1));
		float middle = low + (high - low) / 2;

		f16 = f16 && s_bits_f16(nextafterf(middle, 0)) == h;
		f16 = f16 && s_bits_f16(nextafterf(middle, INFINITY)) == h + 1;
		f16 = f16 && s_bits_f16(middle) == h + (h & 1);
	}
	check(f16, "f32 to f16");
	check(bf16, "f32 to bf16");
	check(s_bits_f16(65519.99f) == 0x7bff && s_bits_f16(65520) == 0x7c00,
	      "f16 overflows halfway to the next step");
}

/* A double that lies just off a midpoint of f16 must not round twice. */
static void test_double_rounding(void)
{
	double up = 1 + 0x1p-11 + 0x1p-40, down = 1 + 3 * 0x1p-11 - 0x1p-40;

	check(s_bits_f16(s_odd(up)) == 0x3c01, "just above a midpoint");
	check(s_bits_f16(s_odd(down)) == 0x3c01, "just below a midpoint");
	check(s_bits_f16(s_odd(-up)) == 0xbc01, "and negative");
	check(s_odd(1.5) == 1.5f && isnan(s_odd(NAN)), "exact values and nan");
}

/* ---- rounding to integers, selections ---- */

static void test_rounding(void)
{
	static const float x[] = {0, -0.0f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f,
				  0.49999997f, 8388607.5f, 8388608, -1e30f,
				  INFINITY, -INFINITY, 3.2f, -3.7f, 1e-40f};
	int ok = 1;

	for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
		ok = ok && bits_of(s_floor(x[i])) == bits_of(floorf(x[i]));
		ok = ok && bits_of(s_ceil(x[i])) == bits_of(ceilf(x[i]));
		ok = ok && bits_of(s_round(x[i])) ==
				   bits_of(nearbyintf(x[i]));
		ok = ok && d_floor(x[i]) == floor(x[i]);
		ok = ok && d_ceil(x[i]) == ceil(x[i]);
		ok = ok && d_round(x[i]) == nearbyint(x[i]);
	}
	check(ok, "floor, ceil and round");
	check(isnan(s_floor(NAN)) && isnan(d_round(NAN)), "they keep nan");
	check(s_sqrt(2) == sqrtf(2) && d_sqrt(2) == sqrt(2), "sqrt");
}

static void test_nan(void)
{
	check(isnan(s_max(NAN, 1)) && isnan(s_max(1, NAN)), "max of nan");
	check(isnan(s_min(NAN, 1)) && isnan(s_min(1, NAN)), "min of nan");
	check(isnan(s_relu(NAN)) && isnan(d_relu(NAN)), "relu of nan");
	check(isnan(v_max(v_set(1), v_set(NAN))[3]), "v_max of nan");
	check(isnan(v_relu(v_set(NAN))[7]), "v_relu of nan");
	check(isnan(s_sign(NAN)) && s_sign(-2) == -1, "sign");
}

static void test_integers(void)
{
	int bad = 0;

	check(i_pow(3, 4, &bad) == 81 && i_pow(-2, 63, &bad) == INT64_MIN,
	      "integer powers wrap");
	check(i_pow(-1, -3, &bad) == -1 && i_pow(1, -5, &bad) == 1 &&
		      i_pow(2, -1, &bad) == 0 && !bad,
	      "negative powers");
	i_pow(0, -1, &bad);
	check(bad, "0 to a negative power");
	check(i32_cast(3e9) == INT32_MAX && i32_cast(-3e9) == INT32_MIN &&
		      i32_cast(NAN) == 0 && i32_cast(-2.9) == -2,
	      "casts saturate");
	check(u8_cast(-1) == 0 && u8_cast(300) == 255 && i8_cast(-200) == -128,
	      "casts to bytes");
	check(i64_cast(1e30) == INT64_MAX && i64_cast(-1e30) == INT64_MIN,
	      "casts to i64");
}

/* ---- vectors in memory ---- */

static void test_tails(void)
{
	float from[16], to[17];
	uint8_t mask[16] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1};
	uint8_t masks[17];
	int ok = 1;

	for (int i = 0; i < 16; i++)
		from[i] = (float)(i + 1);
	for (int n = 0; n <= 16; n++) {
		memset(to, 0xff, sizeof to);
		memset(masks, 9, sizeof masks);
		v_store_n(to, v_load_n(from, n), n);
		m_store_n(masks, m_load_n(mask, n), n);
		ok = ok && !memcmp(to, from, sizeof *from * (size_t)n);
		ok = ok && bits_of(to[n]) == 0xffffffff;
		ok = ok && !memcmp(masks, mask, (size_t)n) && masks[n] == 9;
		ok = ok && sbp_lanes(n) == n;
	}
	check(ok, "the first n elements");
	check(sbp_lanes(17) == 16, "lanes");
}

static void test_across(void)
{
	sbp_v16 x;
	float least = INFINITY, most = -INFINITY;

	for (int i = 0; i < 16; i++) {
		x[i] = (float)((i * 7) % 16) - 5;
		least = fminf(least, x[i]);
		most = fmaxf(most, x[i]);
	}
	check(v_across_sum(x)[9] == 40, "sum of lanes");
	check(v_across_max(x)[0] == most && v_across_min(x)[15] == least,
	      "greatest and least lane");
	x[11] = NAN;
	check(isnan(v_across_max(x)[0]) && isnan(v_across_min(x)[0]),
	      "a lane is nan");
	check(m_across_any(m_first(1))[5] == -1 &&
		      m_across_all(m_first(15))[0] == 0 &&
		      m_across_all(m_set(1))[0] == -1,
	      "any and all lanes");
}

/* ---- loops over parts ---- */

struct parts {
	int n;
	int64_t cut[256];
	unsigned char seen[100000];
};

static void mark(void *context, int64_t lo, int64_t hi)
{
	struct parts *p = context;

	p->cut[__atomic_fetch_add(&p->n, 1, __ATOMIC_RELAXED)] = lo;
	for (int64_t i = lo; i < hi; i++)
		p->seen[i]++;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void test_parallel(void)
{
	static struct parts one, many;
	int64_t sizes[] = {1, 15, 16, 17, 1000, 99999};
	int ok = 1;

	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		sbp_model serial = {.threads = 1}, threads = {.threads = 4};

		memset(&one, 0, sizeof one);
		memset(&many, 0, sizeof many);
		sbp_parallel(&serial, sizes[s], 16, mark, &one);
		sbp_parallel(&threads, sizes[s], 16, mark, &many);
		qsort(many.cut, (size_t)many.n, sizeof *many.cut, compare);
		ok = ok && one.n == many.n &&
		     !memcmp(one.cut, many.cut, sizeof one.cut);
		for (int64_t i = 0; i < sizes[s]; i++)
			ok = ok && one.seen[i] == 1 && many.seen[i] == 1;
	}
	check(ok, "parts do not depend on the threads");
	memset(&one, 0, sizeof one);
	sbp_parallel(&(sbp_model){.threads = 2}, 0, 16, mark, &one);
	check(one.n == 0, "no part of nothing");
}

/* ---- products ---- */

/* Element I as a double, whatever its type; and put there. */
static double get(const void *p, sbp_dtype t, int64_t i)
{
	switch (t) {
	case SBP_U8: return ((const uint8_t *)p)[i];
	case SBP_I8: return ((const int8_t *)p)[i];
	case SBP_I32: return ((const int32_t *)p)[i];
	case SBP_I64: return (double)((const int64_t *)p)[i];
	case SBP_F16: return f16_to_f32(((const uint16_t *)p)[i]);
	case SBP_BF16: return bf16_to_f32(((const uint16_t *)p)[i]);
	case SBP_F32: return ((const float *)p)[i];
	default: return ((const double *)p)[i];
	}
}

static void set(void *p, sbp_dtype t, int64_t i, double x)
{
	switch (t) {
	case SBP_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
	case SBP_I8: ((int8_t *)p)[i] = (int8_t)x; break;
	case SBP_I32: ((int32_t *)p)[i] = (int32_t)x; break;
	case SBP_I64: ((int64_t *)p)[i] = (int64_t)x; break;
	case SBP_F16: ((uint16_t *)p)[i] = f32_to_f16((float)x); break;
	case SBP_BF16: ((uint16_t *)p)[i] = f32_to_bf16((float)x); break;
	case SBP_F32: ((float *)p)[i] = (float)x; break;
	default: ((double *)p)[i] = x;
	}
}

/* Small integers, so that every type's result is exact. Rows of a and b lie
 * APART further from each other than they are long. */
static void test_product(sbp_dtype t, int64_t rows, int64_t cols, int64_t inner,
			 int ta, int tb, int apart)
{
	sbp_model m = {.threads = 1 + ta};
	int64_t lda = (ta ? rows : inner) + apart;
	int64_t ldb = (tb ? inner : cols) + apart;
	int64_t na = lda * (ta ? inner : rows), nb = ldb * (tb ? cols : inner);
	double *a = calloc((size_t)na + 1, sizeof *a);
	double *b = calloc((size_t)nb + 1, sizeof *b);
	double *c = calloc((size_t)(rows * cols) + 1, sizeof *c);
	int ok;

	for (int64_t i = 0; i < na; i++)
		set(a, t, i, (double)(i * 7 % 3));
	for (int64_t i = 0; i < nb; i++)
		set(b, t, i, (double)(i * 5 % 4 == 1));
	ok = sbp_gemm(&m, t, ta, tb, rows, cols, inner, a, lda, b, ldb, c) ==
	     SBP_OK;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++) {
			double sum = 0;

			for (int64_t k = 0; k < inner; k++)
				sum += get(a, t,
					   ta ? k * lda + i : i * lda + k) *
				       get(b, t,
					   tb ? j * ldb + k : k * ldb + j);
			ok = ok && get(c, t, i * cols + j) == sum;
		}
	check(ok, "product");
	if (!ok)
		printf("  type %d, %lld x %lld x %lld, %d %d, apart %d\n", t,
		       (long long)rows, (long long)cols, (long long)inner, ta,
		       tb, apart);
	free(a);
	free(b);
	free(c);
}

static void test_products(void)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {5, 3, 4}, {17, 33, 65},
					    {3, 2, 0}, {0, 4, 5}, {20, 1, 130},
					    {64, 48, 40}};

	for (int t = SBP_U8; t <= SBP_F64; t++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
			for (int form = 0; form < 8; form++)
				test_product((sbp_dtype)t, shapes[s][0],
					     shapes[s][1], shapes[s][2],
					     form & 1, form >> 1 & 1,
					     form >> 2 ? 3 : 0);
}

int main(void)
{
	test_halves();
	test_narrowing();
	test_double_rounding();
	test_rounding();
	test_nan();
	test_integers();
	test_tails();
	test_across();
	test_parallel();
	test_products();
	printf("kernel_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
