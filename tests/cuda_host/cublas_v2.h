/*
 * cublas_v2.h: the products of cuBLAS that are used, on the host.
 */
#ifndef CUDA_HOST_CUBLAS_H
#define CUDA_HOST_CUBLAS_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasContext *cublasHandle_t;
typedef enum {
	CUBLAS_STATUS_SUCCESS,
	CUBLAS_STATUS_INVALID_VALUE = 7
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
const char *cublasGetStatusString(cublasStatus_t e);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t ta,
			   cublasOperation_t tb, int m, int n, int k,
			   const float *alpha, const float *a, int lda,
			   const float *b, int ldb, const float *beta,
			   float *c, int ldc);
cublasStatus_t cublasSgemmStridedBatched(
	cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
	int m, int n, int k, const float *alpha, const float *a, int lda,
	long long stride_a, const float *b, int ldb, long long stride_b,
	const float *beta, float *c, int ldc, long long stride_c, int count);

#ifdef __cplusplus
}
#endif
#endif
