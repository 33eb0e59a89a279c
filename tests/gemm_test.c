/*
 * gemm_test.c: the products of reproducible programs: right, and with the
 * same bits whole, in pieces of rows or columns, and on any number of threads.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

static int failures;

static void check(int ok, const char *what, const int64_t *n)
{
	if (ok)
		return;
	printf("%s: %lld x %lld x %lld\n", what, (long long)n[0],
	       (long long)n[2], (long long)n[1]);
	failures++;
}

static float *numbers(int64_t n)
{
	float *p = malloc(sizeof *p * (size_t)n + 1);

	for (int64_t i = 0; p && i < n; i++)
		p[i] = (float)rand() / (float)RAND_MAX - 0.5f;
	return p;
}

static sbp_model threads(int n)
{
	return (sbp_model){.threads = n};
}

/* N has rows, columns, inner. */
struct trial {
	int64_t n[3];
	int ta, tb;
	float *a, *b, *c;
	int64_t lda, ldb;
};

static void product(const struct trial *t, int nthreads, float *c)
{
	sbp_model m = threads(nthreads);

	gemm_fixed(&m, t->ta, t->tb, t->n[0], t->n[1], t->n[2], t->a, t->lda,
		   t->b, t->ldb, c);
}

static void check_values(const struct trial *t)
{
	int64_t rows = t->n[0], cols = t->n[1], inner = t->n[2];
	int ok = 1;

	for (int64_t i = 0; i < rows * cols; i++) {
		int64_t r = i / cols, s = i % cols;
		double sum = 0;

		for (int64_t k = 0; k < inner; k++)
			sum += (double)t->a[t->ta ? k * rows + r
						  : r * inner + k] *
			       t->b[t->tb ? s * inner + k : k * cols + s];
		ok = ok && fabs(sum - t->c[i]) < 1e-4;
	}
	check(ok, "wrong", t->n);
}

static size_t bytes(const struct trial *t)
{
	return sizeof(float) * (size_t)(t->n[0] * t->n[1]);
}

/* N rows of M numbers that lie LD apart, dense; *OWN is then M. */
static float *box(const float *from, int64_t ld, int64_t n, int64_t *own,
		  int64_t m)
{
	float *p = numbers(n * m);

	for (int64_t i = 0; i < n; i++)
		memcpy(p + i * m, from + i * ld, sizeof *p * (size_t)m);
	*own = m;
	return p;
}

/* Rows of A that are not turned, in two products. */
static void check_rows(const struct trial *t, float *c)
{
	struct trial x = *t;
	int64_t cut = rand() % (t->n[0] + 1);

	x.n[0] = cut;
	product(&x, 1, c);
	x.n[0] = t->n[0] - cut;
	x.a = t->a + cut * t->n[2];
	product(&x, 1, c + cut * t->n[1]);
	check(!memcmp(c, t->c, bytes(t)), "rows differ", t->n);
}

/* Any rows, columns and inner indices, read where they lie; the same numbers
 * by themselves. */
static void check_box(const struct trial *t, float *c)
{
	struct trial x = *t, y = *t;
	int64_t rows = t->n[0], cols = t->n[1], inner = t->n[2];
	int64_t r = rand() % (rows + 1), s = rand() % (cols + 1);
	int64_t k = rand() % (inner + 1);

	y.n[0] = x.n[0] = rows - r;
	y.n[1] = x.n[1] = cols - s;
	y.n[2] = x.n[2] = inner - k;
	x.a += t->ta ? k * rows + r : r * inner + k;
	x.b += t->tb ? s * inner + k : k * cols + s;
	y.a = box(x.a, t->lda, t->ta ? y.n[2] : y.n[0], &y.lda,
		  t->ta ? y.n[0] : y.n[2]);
	y.b = box(x.b, t->ldb, t->tb ? y.n[1] : y.n[2], &y.ldb,
		  t->tb ? y.n[2] : y.n[1]);
	y.c = numbers(y.n[0] * y.n[1]);
	product(&x, 1, c);
	product(&y, 1, y.c);
	check(!memcmp(c, y.c, bytes(&y)), "boxes differ", t->n);
	free(y.a);
	free(y.b);
	free(y.c);
}

/* Columns of B that are rows in memory. */
static void check_columns(const struct trial *t, float *c)
{
	struct trial x = *t;
	int64_t cut = rand() % (t->n[1] + 1), n = t->n[1] - cut;
	int ok = 1;

	x.n[1] = n;
	x.b = t->b + cut * t->n[2];
	product(&x, 1, c);
	for (int64_t r = 0; r < t->n[0]; r++)
		ok = ok && !memcmp(c + r * n, t->c + r * t->n[1] + cut,
				   sizeof *c * (size_t)n);
	check(ok, "columns differ", t->n);
}

static void try(struct trial *t)
{
	float *c;

	t->a = numbers(t->n[0] * t->n[2]);
	t->b = numbers(t->n[1] * t->n[2]);
	t->c = numbers(t->n[0] * t->n[1]);
	c = numbers(t->n[0] * t->n[1]);
	t->lda = t->n[t->ta ? 0 : 2];
	t->ldb = t->n[t->tb ? 2 : 1];
	product(t, 1, t->c);
	check_values(t);
	for (int n = 2; n <= 3; n++) {
		product(t, n, c);
		check(!memcmp(c, t->c, bytes(t)), "threads differ", t->n);
	}
	check_box(t, c);
	if (!t->ta)
		check_rows(t, c);
	if (t->tb)
		check_columns(t, c);
	free(t->a);
	free(t->b);
	free(t->c);
	free(c);
}

int main(void)
{
	static const int64_t sizes[][3] = {
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 70, 300},
		{70, 1, 129}, {12, 32, 128}, {13, 33, 129}, {25, 64, 256},
		{500, 40, 131}, {30, 1100, 20}, {301, 530, 140}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int way = 0; way < 4; way++) {
			struct trial t = {.ta = way & 1, .tb = way >> 1};

			memcpy(t.n, sizes[i], sizeof t.n);
			try(&t);
		}
	for (int i = 0; i < 60; i++) {
		struct trial t = {{rand() % 50, rand() % 80, rand() % 300},
				  rand() & 1,
				  rand() & 1,
				  NULL,
				  NULL,
				  NULL,
				  0,
				  0};

		try(&t);
	}
	return failures != 0;
}
