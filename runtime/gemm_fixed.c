/*
 * gemm_fixed.c: products of f32 matrices whose bits depend on a row of A and
 * a column of B alone: not on the other rows and columns, nor on threads.
 *
 * Each element is a chain of fused multiplications and additions over DEPTH
 * inner indices in their order, from 0; the sums of the blocks are added in
 * their order. Tiles at the edges compute full vectors, so every element goes
 * through the same instructions. A block of A stays in the second cache, a
 * strip of B in the first.
 */
#include <string.h>

#include "runtime/private.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

enum { DEPTH = 128, ROWS = 240, COLUMNS = 512, WIDEST = 32, HIGHEST = 12 };
enum { THIN = 24 };	/* rows for which B is not copied */
enum { ALONE = 1 << 16 };	/* multiplications of one thread */

typedef void tile_fn(int64_t depth, const float *a, const float *b,
		     int64_t bs, float *c, int64_t cs, int first);
struct tiles {
	int64_t width;
	int height[4];
	tile_fn *tile[4];
};

/* ---- tiles of the processor ---- */

typedef float vector __attribute__((vector_size(16)));

static inline vector load_any(const float *p)
{
	vector v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline void store_any(float *p, vector v)
{
	memcpy(p, &v, sizeof v);
}

#define GEMM_TARGET
#define GEMM_TABLE any
#define GEMM_VECTOR vector
#define GEMM_LOAD load_any
#define GEMM_STORE store_any
#define GEMM_SET(x) ((vector){0} + (x))
#define GEMM_ADD(a, b) ((a) + (b))
#define GEMM_STEP(x, y, sum) ((x) * (y) + (sum))
#define GEMM_ROWS 6
#include "runtime/gemm_loops.h"

#if defined __x86_64__

#define GEMM_TARGET __attribute__((target("avx2,fma")))
#define GEMM_TABLE avx2
#define GEMM_VECTOR __m256
#define GEMM_LOAD _mm256_loadu_ps
#define GEMM_STORE _mm256_storeu_ps
#define GEMM_SET _mm256_set1_ps
#define GEMM_ADD _mm256_add_ps
#define GEMM_STEP _mm256_fmadd_ps
#define GEMM_ROWS 6
#include "runtime/gemm_loops.h"

#define GEMM_TARGET __attribute__((target("avx512f")))
#define GEMM_TABLE avx512
#define GEMM_VECTOR __m512
#define GEMM_LOAD _mm512_loadu_ps
#define GEMM_STORE _mm512_storeu_ps
#define GEMM_SET _mm512_set1_ps
#define GEMM_ADD _mm512_add_ps
#define GEMM_STEP _mm512_fmadd_ps
#define GEMM_ROWS 12
#include "runtime/gemm_loops.h"

static const struct tiles *choose_tiles(void)
{
	sbp_message e;

	if (isa_check("avx512f", &e) == SBP_OK)
		return &avx512;
	return isa_check("avx2,fma", &e) == SBP_OK ? &avx2 : &any;
}

#else

static const struct tiles *choose_tiles(void)
{
	return &any;
}

#endif

static const struct tiles *find_tiles(void)
{
	static _Atomic(const struct tiles *) chosen;
	const struct tiles *t =
		atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!t) {
		t = choose_tiles();
		atomic_store_explicit(&chosen, t, memory_order_relaxed);
	}
	return t;
}

/* ---- one product ---- */

struct product {
	const struct tiles *t;
	int ta, tb;
	int64_t rows, cols, inner;
	int64_t part;		/* rows or columns of a part */
	int by_rows;
	const float *a, *b;
	int64_t lda, ldb;
	float *c;
};

struct range {
	int64_t lo, n;
};

/* The I-th kind of tile is the highest that N rows fill. */
static int highest(const struct tiles *t, int64_t n)
{
	int i = 0;

	while (t->height[i] > n)
		i++;
	return i;
}

#define PICK __builtin_shufflevector

/* to[j * ts + i] = from[i * fs + j] for 4 of i. */
static void turn_four(float *to, int64_t ts, const float *from, int64_t fs,
		      int64_t depth)
{
	int64_t j = 0;

	for (; j + 4 <= depth; j += 4) {
		vector a = load_any(from + j), b = load_any(from + fs + j);
		vector c = load_any(from + 2 * fs + j);
		vector d = load_any(from + 3 * fs + j);
		vector e = PICK(a, b, 0, 4, 1, 5), f = PICK(c, d, 0, 4, 1, 5);
		vector g = PICK(a, b, 2, 6, 3, 7), h = PICK(c, d, 2, 6, 3, 7);

		store_any(to + j * ts, PICK(e, f, 0, 1, 4, 5));
		store_any(to + (j + 1) * ts, PICK(e, f, 2, 3, 6, 7));
		store_any(to + (j + 2) * ts, PICK(g, h, 0, 1, 4, 5));
		store_any(to + (j + 3) * ts, PICK(g, h, 2, 3, 6, 7));
	}
	for (; j < depth; j++)
		for (int i = 0; i < 4; i++)
			to[j * ts + i] = from[i * fs + j];
}

/* The same for N. */
static void turn(float *to, int64_t ts, const float *from, int64_t fs,
		 int64_t n, int64_t depth)
{
	int64_t i = 0;

	for (; i + 4 <= n; i += 4)
		turn_four(to + i, ts, from + i * fs, fs, depth);
	for (; i < n; i++)
		for (int64_t j = 0; j < depth; j++)
			to[j * ts + i] = from[i * fs + j];
}

/* Rows R of A, tile by tile, each with the rows of one k together. */
static void pack_rows(const struct product *p, float *x, struct range r,
		      struct range k)
{
	while (r.n > 0) {
		int h = p->t->height[highest(p->t, r.n)];

		for (int64_t j = 0; p->ta && j < k.n; j++)
			memcpy(x + j * h,
			       p->a + (k.lo + j) * p->lda + r.lo,
			       sizeof *x * (size_t)h);
		if (!p->ta)
			turn(x, h, p->a + r.lo * p->lda + k.lo, p->lda, h,
			     k.n);
		x += h * k.n;
		r.lo += h;
		r.n -= h;
	}
}

/* Columns C of B, filled up with zeros. */
static void pack_columns(const struct product *p, float *y, struct range c,
			 struct range k)
{
	int64_t w = p->t->width;

	if (c.n < w)
		memset(y, 0, sizeof *y * (size_t)(w * k.n));
	for (int64_t j = 0; !p->tb && j < k.n; j++)
		memcpy(y + j * w, p->b + (k.lo + j) * p->ldb + c.lo,
		       sizeof *y * (size_t)c.n);
	if (p->tb)
		turn(y, w, p->b + c.lo * p->ldb + k.lo, p->ldb, c.n, k.n);
}

struct strip {		/* of B */
	const float *y;
	int64_t stride;
	struct range c, k;
};

/* A tile that ends beyond the matrix is computed beside it. */
static void edge_tile(const struct product *p, const struct strip *s, int i,
		      const float *x, float *c)
{
	float beside[HIGHEST * WIDEST] = {0};
	int64_t w = p->t->width, n = p->t->height[i];
	size_t bytes = sizeof *c * (size_t)s->c.n;

	for (int64_t r = 0; s->k.lo > 0 && r < n; r++)
		memcpy(beside + r * w, c + r * p->cols, bytes);
	p->t->tile[i](s->k.n, x, s->y, s->stride, beside, w, s->k.lo == 0);
	for (int64_t r = 0; r < n; r++)
		memcpy(c + r * p->cols, beside + r * w, bytes);
}

/* All rows R, packed in X, with one strip. */
static void strip_tiles(const struct product *p, const struct strip *s,
			const float *x, struct range r)
{
	while (r.n > 0) {
		int i = highest(p->t, r.n), h = p->t->height[i];
		float *c = p->c + r.lo * p->cols + s->c.lo;

		if (s->c.n < p->t->width)
			edge_tile(p, s, i, x, c);
		else
			p->t->tile[i](s->k.n, x, s->y, s->stride, c, p->cols,
				      s->k.lo == 0);
		x += h * s->k.n;
		r.lo += h;
		r.n -= h;
	}
}

/* Rows R, packed in X, with columns C. */
static void strips(const struct product *p, const float *x, struct range r,
		   struct range c, struct range k)
{
	_Alignas(64) float y[DEPTH * WIDEST];
	int64_t w = p->t->width, end = c.lo + c.n;

	for (int64_t at = c.lo; at < end; at += w) {
		struct strip s = {y, w, {at, least(w, end - at)}, k};

		if (r.n <= THIN && !p->tb && s.c.n == w) {
			s.y = p->b + k.lo * p->ldb + at;
			s.stride = p->ldb;
		} else {
			pack_columns(p, y, s.c, k);
		}
		strip_tiles(p, &s, x, r);
	}
}

/* A block of C, at most ROWS high, stays in the second cache too. */
static void block(const struct product *p, struct range r, struct range c)
{
	_Alignas(64) float x[ROWS * DEPTH];
	int64_t k = 0;

	do {
		struct range ks = {k, least(DEPTH, p->inner - k)};

		pack_rows(p, x, r, ks);
		strips(p, x, r, c, ks);
		k += DEPTH;
	} while (k < p->inner);
}

static void blocks(const struct product *p, struct range r, struct range c)
{
	int64_t high = r.lo + r.n, wide = c.lo + c.n;

	for (int64_t i = r.lo; i < high; i += ROWS) {
		struct range rs = {i, least(ROWS, high - i)};

		for (int64_t j = c.lo; j < wide; j += COLUMNS)
			block(p, rs,
			      (struct range){j, least(COLUMNS, wide - j)});
	}
}

static void parts(void *context, int64_t lo, int64_t hi)
{
	const struct product *p = context;

	for (int64_t i = lo; i < hi; i++) {
		struct range all_r = {0, p->rows}, all_c = {0, p->cols};
		struct range *r = p->by_rows ? &all_r : &all_c;

		r->lo = i * p->part;
		r->n = least(p->part, r->n - r->lo);
		blocks(p, all_r, all_c);
	}
}

/* Rounded up to multiples of STEP. */
static int64_t part_of(int64_t n, int64_t threads, int64_t step)
{
	int64_t each = (n + threads - 1) / threads;

	return (each + step - 1) / step * step;
}

void gemm_fixed(sbp_model *m, int ta, int tb, int64_t rows, int64_t cols,
		int64_t inner, const float *a, int64_t lda, const float *b,
		int64_t ldb, float *c)
{
	struct product p = {find_tiles(), ta, tb, rows, cols, inner, 0,
			    rows >= cols, a, b, lda, ldb, c};
	int64_t n = p.by_rows ? rows : cols;
	int64_t threads = m->threads < 1 ? 1 : m->threads;

	if (rows == 0 || cols == 0)
		return;
	if ((double)rows * (double)cols * (double)inner < ALONE)
		threads = 1;
	p.part = part_of(n, threads,
			 p.by_rows ? p.t->height[0] : p.t->width);
	sbp_parallel(m, (n + p.part - 1) / p.part, 1, parts, &p);
}
