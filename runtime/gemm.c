/*
 * gemm.c: products of matrices. Large ones of f32 go to oneDNN, which is
 * loaded when the first comes; tiny ones, and the types that oneDNN lacks, are
 * loops over tiles. The result depends on the extents and, in oneDNN, on the
 * number of threads, never on the number of ranks. In reproducible programs
 * gemm_fixed.c takes the place of both for f32; the other types' tiles add in
 * the order of the inner index, whatever the extents.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "runtime/formats.h"
#include "runtime/parallel.h"
#include "runtime/private.h"

/* ---- oneDNN ---- */

typedef int sgemm(char ta, char tb, int64_t rows, int64_t cols, int64_t inner,
		  float alpha, const float *a, int64_t lda, const float *b,
		  int64_t ldb, float beta, float *c, int64_t ldc);

static struct {
	pthread_once_t once;
	sgemm *sgemm;
	const char *error;
} dnnl = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
	void *lib;

	sbp_threads_environment();
	lib = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (lib != NULL)
		*(void **)&dnnl.sgemm = dlsym(lib, "dnnl_sgemm");
	if (dnnl.sgemm == NULL) {
		dnnl.error = dlerror();
		if (dnnl.error == NULL)
			dnnl.error = "it lacks dnnl_sgemm";
		else
			dnnl.error = strdup(dnnl.error);
	}
}

/* Leading dimensions are of row-major matrices, at least 1. */
static int64_t leading(int64_t n)
{
	return n < 1 ? 1 : n;
}

static sbp_status gemm_dnnl(sbp_model *m, int ta, int tb, int64_t rows,
			    int64_t cols, int64_t inner, const float *a,
			    int64_t lda, const float *b, int64_t ldb, float *c)
{
	int status;

	pthread_once(&dnnl.once, load);
	if (dnnl.sgemm == NULL)
		return sbp_fail(m, 0, "matmul",
				"cannot load oneDNN (libdnnl.so.2): %s",
				dnnl.error);
	sbp_threads_use(m->threads);
	status = dnnl.sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', rows, cols, inner,
			    1, a, leading(lda), b, leading(ldb), 0, c,
			    leading(cols));
	if (status != 0)
		return sbp_fail(m, 0, "matmul",
				"oneDNN's sgemm answers status %d for "
				"%lld x %lld x %lld",
				status, (long long)rows, (long long)cols,
				(long long)inner);
	return SBP_OK;
}

/* ---- tiles ---- */

enum { TR = 16, TC = 32, TK = 64 };	/* rows, columns, inner of a tile */
enum { TINY = 32 * 32 * 32 };		/* products below are not oneDNN's */

struct product {
	int ta, tb;
	int64_t rows, cols, inner, across;	/* tiles in a row of tiles */
	const void *a, *b;
	int64_t lda, ldb;
	void *c;
};

/*
 * TYPE in memory, WIDE in sums; GET and PUT convert. A tile's sums are added
 * in the order of the inner index.
 */
#define TILES(name, type, wide, GET, PUT)                                     \
	static void name##_tile(const struct product *p, int64_t r0,          \
				int64_t c0)                                   \
	{                                                                     \
		const type *a = p->a, *b = p->b;                              \
		type *c = p->c;                                               \
		int64_t nr = least(TR, p->rows - r0);                         \
		int64_t nc = least(TC, p->cols - c0);                         \
		wide sum[TR][TC] = {{0}}, x[TR][TK], y[TK][TC] = {{0}};       \
		for (int64_t k0 = 0; k0 < p->inner; k0 += TK) {               \
			int64_t nk = least(TK, p->inner - k0);                \
			int64_t as = p->ta ? p->lda : 1;                      \
			int64_t ar = p->ta ? 1 : p->lda;                      \
			int64_t bs = p->tb ? 1 : p->ldb;                      \
			int64_t bc = p->tb ? p->ldb : 1;                      \
			for (int64_t i = 0; i < nr; i++)                      \
				for (int64_t k = 0; k < nk; k++)              \
					x[i][k] = GET(a[(r0 + i) * ar +       \
							(k0 + k) * as]);      \
			for (int64_t k = 0; k < nk; k++)                      \
				for (int64_t j = 0; j < nc; j++)              \
					y[k][j] = GET(b[(k0 + k) * bs +       \
							(c0 + j) * bc]);      \
			for (int64_t i = 0; i < nr; i++)                      \
				for (int64_t k = 0; k < nk; k++)              \
					for (int j = 0; j < TC; j++)          \
						sum[i][j] +=                  \
							x[i][k] * y[k][j];    \
		}                                                             \
		for (int64_t i = 0; i < nr; i++)                              \
			for (int64_t j = 0; j < nc; j++)                      \
				c[(r0 + i) * p->cols + c0 + j] =              \
					PUT(sum[i][j]);                       \
	}                                                                     \
	static void name(void *context, int64_t lo, int64_t hi)               \
	{                                                                     \
		const struct product *p = context;                            \
		for (int64_t t = lo; t < hi; t++)                             \
			name##_tile(p, t / p->across * TR,                    \
				    t % p->across * TC);                      \
	}

#define SAME(x) (x)
/* Integers wrap: sums are of unsigned numbers, whose low bits are right. */
#define I32(x) ((uint32_t)(x))
#define I64(x) ((uint64_t)(x))

TILES(tiles_u8, uint8_t, uint32_t, I32, (uint8_t))
TILES(tiles_i8, int8_t, uint32_t, I32, (int8_t))
TILES(tiles_i32, int32_t, uint32_t, I32, (int32_t))
TILES(tiles_i64, int64_t, uint64_t, I64, (int64_t))
TILES(tiles_f16, uint16_t, float, f16_to_f32, f32_to_f16)
TILES(tiles_bf16, uint16_t, float, bf16_to_f32, f32_to_bf16)
TILES(tiles_f32, float, float, SAME, SAME)
TILES(tiles_f64, double, double, SAME, SAME)

static void (*const tiles[])(void *, int64_t, int64_t) = {
	[SBP_U8] = tiles_u8,   [SBP_I8] = tiles_i8,     [SBP_I32] = tiles_i32,
	[SBP_I64] = tiles_i64, [SBP_F16] = tiles_f16,   [SBP_BF16] = tiles_bf16,
	[SBP_F32] = tiles_f32, [SBP_F64] = tiles_f64,
};

/* rows * cols * inner < TINY, without overflow. */
static int is_tiny(int64_t rows, int64_t cols, int64_t inner)
{
	if (rows == 0 || cols == 0 || inner == 0)
		return 1;
	return rows < TINY && cols < TINY && inner < TINY &&
	       rows * cols < TINY && rows * cols * inner < TINY;
}

static int is_reproducible(const sbp_model *m)
{
	return m->private_ != NULL && m->private_->p->reproducible;
}

sbp_status sbp_gemm(sbp_model *m, sbp_dtype dtype, int ta, int tb,
		    int64_t rows, int64_t cols, int64_t inner, const void *a,
		    int64_t lda, const void *b, int64_t ldb, void *c)
{
	struct product p = {ta, tb, rows, cols, inner, 0, a, b, lda, ldb, c};

	if (dtype == SBP_F32 && is_reproducible(m)) {
		gemm_fixed(m, ta, tb, rows, cols, inner, a, lda, b, ldb, c);
		return SBP_OK;
	}
	if (dtype == SBP_F32 && !is_tiny(rows, cols, inner))
		return gemm_dnnl(m, ta, tb, rows, cols, inner, a, lda, b, ldb,
				 c);
	if (dtype == SBP_BOOL)
		return sbp_fail(m, 0, "matmul", "of bool is not defined");
	p.across = (cols + TC - 1) / TC;
	sbp_parallel(m, (rows + TR - 1) / TR * p.across, 4, tiles[dtype], &p);
	return SBP_OK;
}
