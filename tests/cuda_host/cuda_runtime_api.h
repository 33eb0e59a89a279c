/*
 * cuda_runtime_api.h: the CUDA runtime as far as it is used, on the host.
 */
#ifndef CUDA_HOST_RUNTIME_H
#define CUDA_HOST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError { cudaSuccess, cudaErrorInvalidValue = 1 } cudaError_t;
enum cudaMemcpyKind {
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice
};
typedef struct CUstream_st *cudaStream_t;
struct cudaDeviceProp {
	int multiProcessorCount;
};

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void **p, size_t n);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n,
			    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
			      size_t from_pitch, size_t width, size_t height,
			      enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t e);

#ifdef __cplusplus
}

#include <cmath>
using std::abs;

#define SBP_CUDA_HOST 1
#define __global__
#define __device__

struct cuda_host_index {
	unsigned x;
};
extern cuda_host_index blockIdx, threadIdx, blockDim, gridDim;

/* All threads of all blocks, one after another. */
template <typename Body>
void cuda_host_run(unsigned blocks, unsigned threads, Body body)
{
	gridDim.x = blocks;
	blockDim.x = threads;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
			body();
}

#define SBP_START(kernel, blocks, stream, ...)                                \
	((void)(stream), cuda_host_run((unsigned)(blocks), SBP_THREADS,       \
				       [=] { kernel(__VA_ARGS__); }))
#endif
#endif
