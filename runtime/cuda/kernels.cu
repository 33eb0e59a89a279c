/*
 * kernels.cu: reductions of partial values, for sbp_cuda.c.
 */
#include "runtime/cuda/sbp_cuda.h"

enum { BLOCKS = 256 };

/* As the host reduces: sums of integers wrap, a nan stays. */
template <typename T> __device__ static inline T reduced(T a, T b, char how)
{
	if (how == 'x')
		return a > b || a != a ? a : b;
	if (how == 'n')
		return a < b || a != a ? a : b;
	return a + b;
}

template <typename T>
__global__ static void combine(T *acc, const T *from, char how, int64_t n)
{
	SBP_EACH(i, n)
		acc[i] = reduced(acc[i], from[i], how);
}

/* Signed integers are added as unsigned ones. */
template <typename T, typename Sum>
static void launch(cudaStream_t stream, void *acc, const void *from, char how,
		   int64_t n)
{
	if (how == '+')
		SBP_START(combine, BLOCKS, stream, (Sum *)acc,
			  (const Sum *)from, how, n);
	else
		SBP_START(combine, BLOCKS, stream, (T *)acc, (const T *)from,
			  how, n);
}

cudaError_t sbp_cuda_combine(cudaStream_t stream, void *acc, const void *from,
			     sbp_dtype t, char reduce, int64_t n)
{
	switch (t) {
	case SBP_U8:
		launch<uint8_t, uint8_t>(stream, acc, from, reduce, n);
		break;
	case SBP_I8:
		launch<int8_t, uint8_t>(stream, acc, from, reduce, n);
		break;
	case SBP_I32:
		launch<int32_t, uint32_t>(stream, acc, from, reduce, n);
		break;
	case SBP_I64:
		launch<int64_t, uint64_t>(stream, acc, from, reduce, n);
		break;
	case SBP_F32:
		launch<float, float>(stream, acc, from, reduce, n);
		break;
	case SBP_F64:
		launch<double, double>(stream, acc, from, reduce, n);
		break;
	default:
		return cudaErrorInvalidValue;
	}
	return cudaGetLastError();
}
