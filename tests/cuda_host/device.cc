/*
 * device.cc: a device that is the host: memory, copies and products.
 */
#include <cstdlib>
#include <cstring>

#include "cublas_v2.h"

cuda_host_index blockIdx, threadIdx, blockDim, gridDim;

cudaError_t cudaGetDeviceCount(int *n)
{
	*n = 1;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int)
{
	p->multiProcessorCount = 1;
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	*stream = reinterpret_cast<cudaStream_t>(stream);
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t)
{
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
	return cudaSuccess;
}

/* Filled with what no program may depend on. */
cudaError_t cudaMalloc(void **p, size_t n)
{
	*p = malloc(n);
	if (*p == nullptr)
		return cudaErrorInvalidValue;
	memset(*p, 0xcd, n);
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	free(p);
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n,
			    cudaMemcpyKind, cudaStream_t)
{
	memcpy(to, from, n);
	return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
			      size_t from_pitch, size_t width, size_t height,
			      cudaMemcpyKind, cudaStream_t)
{
	if (to_pitch < width || from_pitch < width)
		return cudaErrorInvalidValue;
	for (size_t i = 0; i < height; i++)
		memcpy(static_cast<char *>(to) + i * to_pitch,
		       static_cast<const char *>(from) + i * from_pitch,
		       width);
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
	return e == cudaSuccess ? "no error" : "invalid argument";
}

/* ---- cuBLAS ---- */

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
	*handle = reinterpret_cast<cublasHandle_t>(handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t e)
{
	return e == CUBLAS_STATUS_SUCCESS ? "success" : "invalid value";
}

static bool row_fits(cublasOperation_t t, int rows, int columns, int ld)
{
	int least = t == CUBLAS_OP_N ? rows : columns;

	return ld >= 1 && ld >= least;
}

/* Columns follow one another, as in Fortran. */
cublasStatus_t cublasSgemm(cublasHandle_t, cublasOperation_t ta,
			   cublasOperation_t tb, int m, int n, int k,
			   const float *alpha, const float *a, int lda,
			   const float *b, int ldb, const float *beta,
			   float *c, int ldc)
{
	if (!row_fits(ta, m, k, lda) || !row_fits(tb, k, n, ldb) ||
	    !row_fits(CUBLAS_OP_N, m, n, ldc))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;

			for (int l = 0; l < k; l++)
				sum += (ta ? a[i * lda + l] : a[l * lda + i]) *
				       (tb ? b[l * ldb + j] : b[j * ldb + l]);
			c[j * ldc + i] =
				*alpha * sum +
				(*beta != 0 ? *beta * c[j * ldc + i] : 0);
		}
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(
	cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
	int m, int n, int k, const float *alpha, const float *a, int lda,
	long long stride_a, const float *b, int ldb, long long stride_b,
	const float *beta, float *c, int ldc, long long stride_c, int count)
{
	cublasStatus_t e = CUBLAS_STATUS_SUCCESS;

	for (int i = 0; i < count && e == CUBLAS_STATUS_SUCCESS; i++)
		e = cublasSgemm(handle, ta, tb, m, n, k, alpha,
				a + i * stride_a, lda, b + i * stride_b, ldb,
				beta, c + i * stride_c, ldc);
	return e;
}
