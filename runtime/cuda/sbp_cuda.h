/*
 * sbp_cuda.h: what emitted CUDA code is made of. The host's runtime feeds,
 * shows and saves tensors in the host's arena; a step runs on a copy of that
 * arena in the memory of a device. Moves are NCCL's, products cuBLAS's.
 *
 * The first part is C, and shared with sbp_cuda.c; the second is for nvcc.
 */
#ifndef SBP_CUDA_H
#define SBP_CUDA_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sbp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A rank's device. Functions of a step take it as m. */
typedef struct sbp_cuda {
	unsigned char *arena;		/* in the device's memory */
	const sbp_piece *own;
	uint64_t seed, step;
	int rank, world, class_;
	int blocks;			/* of a launch */
	cudaStream_t stream;
	cublasHandle_t blas;
	float one, zero;		/* factors of products */
	sbp_model *host;
	struct sbp_cuda_private *private_;
} sbp_cuda;

/* Brings inputs, params, states and constants to the device; sets it up
 * first. MOVES are all of the program's. */
sbp_status sbp_cuda_begin(sbp_model *host, const sbp_move *moves, int nmoves,
			  sbp_cuda **m);
/* Waits for the step, and brings outputs, kept values and states back. */
sbp_status sbp_cuda_end(sbp_cuda *m);

/* The ranks that MOVE joins this one with, for a collective of NCCL. */
ncclComm_t sbp_cuda_group(const sbp_cuda *m, const sbp_move *move);
/* A move that no collective does: sends and receives of intersections. */
sbp_status sbp_cuda_exchange(sbp_cuda *m, const sbp_move *move);

/* Pass on errors of the three libraries. */
sbp_status sbp_cuda_check(sbp_cuda *m, cudaError_t e, const char *call);
sbp_status sbp_cublas_check(sbp_cuda *m, cublasStatus_t e, const char *call);
sbp_status sbp_nccl_check(sbp_cuda *m, ncclResult_t e, const char *call);
#define SBP_CUDA(call) SBP_TRY(sbp_cuda_check(m, call, #call))
#define SBP_CUBLAS(call) SBP_TRY(sbp_cublas_check(m, call, #call))
#define SBP_NCCL(call) SBP_TRY(sbp_nccl_check(m, call, #call))
/* A collective among the ranks that MOVE joins. */
#define SBP_COLLECTIVE(call, move, ...)                                       \
	SBP_NCCL(call(__VA_ARGS__, sbp_cuda_group(m, move), m->stream))

/* kernels.cu: acc = acc REDUCE from, N elements. */
cudaError_t sbp_cuda_combine(cudaStream_t stream, void *acc, const void *from,
			     sbp_dtype t, char reduce, int64_t n);

#ifdef __cplusplus
}
#endif

#if defined(__CUDACC__) || defined(SBP_CUDA_HOST)

enum { SBP_THREADS = 256 };	/* of a block */

/* tests/cuda_host has another one, which runs kernels on the host. */
#ifndef SBP_START
#define SBP_START(kernel, blocks, stream, ...)                                \
	kernel<<<blocks, SBP_THREADS, 0, stream>>>(__VA_ARGS__)
#endif
#define SBP_LAUNCH(kernel, m, ...)                                            \
	SBP_START(kernel, (m)->blocks, (m)->stream, __VA_ARGS__)

/* Runs over [0, n) with all threads of a launch. */
#define SBP_EACH(i, n)                                                        \
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;      \
	     i < (n); i += (int64_t)gridDim.x * blockDim.x)

template <typename T> static inline T *at(const sbp_cuda *m, int64_t offset)
{
	return (T *)(m->arena + offset);
}

/* The elementwise functions of the compiler's table: s_ of floats, d_ of
 * doubles. Comparisons are such that nan stays nan. */
#define SBP_MATH(name, expression)                                            \
	__device__ static inline float s_##name(float x)                      \
	{                                                                     \
		return expression;                                            \
	}                                                                     \
	__device__ static inline double d_##name(double x)                    \
	{                                                                     \
		return expression;                                            \
	}
#define SBP_MATH2(name, expression)                                           \
	__device__ static inline float s_##name(float x, float y)             \
	{                                                                     \
		return expression;                                            \
	}                                                                     \
	__device__ static inline double d_##name(double x, double y)          \
	{                                                                     \
		return expression;                                            \
	}

SBP_MATH(abs, fabs(x))
SBP_MATH(exp, exp(x))
SBP_MATH(log, log(x))
SBP_MATH(log1p, log1p(x))
SBP_MATH(sqrt, sqrt(x))
SBP_MATH(sin, sin(x))
SBP_MATH(cos, cos(x))
SBP_MATH(tanh, tanh(x))
SBP_MATH(erf, erf(x))
SBP_MATH(floor, floor(x))
SBP_MATH(ceil, ceil(x))
SBP_MATH(round, rint(x))
SBP_MATH(sigmoid, 1 / (1 + exp(-x)))
SBP_MATH(relu, x < 0 ? 0 : x)
SBP_MATH(sign, x > 0 ? 1 : x < 0 ? -1 : x)
SBP_MATH2(pow, pow(x, y))
SBP_MATH2(max, x > y || x != x ? x : y)
SBP_MATH2(min, x < y || x != x ? x : y)

/* Float to integer truncates and saturates, nan gives 0. */
#define SBP_CAST(name, type, least, greatest)                                 \
	__device__ static inline type name(double x)                          \
	{                                                                     \
		if (x != x)                                                   \
			return 0;                                             \
		if (x <= (double)(least))                                     \
			return least;                                         \
		return x >= (double)(greatest) ? (greatest) : (type)x;        \
	}
SBP_CAST(u8_cast, uint8_t, 0, UINT8_MAX)
SBP_CAST(i8_cast, int8_t, INT8_MIN, INT8_MAX)
SBP_CAST(i32_cast, int32_t, INT32_MIN, INT32_MAX)
SBP_CAST(i64_cast, int64_t, INT64_MIN, INT64_MAX)

#endif
#endif
