/*
 * nccl.h: the parts of NCCL that are used, between processes of one host.
 */
#ifndef CUDA_HOST_NCCL_H
#define CUDA_HOST_NCCL_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclConfig_v21700 ncclConfig_t;
typedef struct {
	char internal[128];
} ncclUniqueId;
typedef enum { ncclSuccess, ncclSystemError = 2 } ncclResult_t;
typedef enum {
	ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64,
	ncclFloat16, ncclFloat32, ncclFloat64
} ncclDataType_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
enum { NCCL_SPLIT_NOCOLOR = -1 };

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id,
			      int rank);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
			   ncclComm_t *out, ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
const char *ncclGetErrorString(ncclResult_t e);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t t, int peer,
		      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t t, int peer,
		      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t n,
			   ncclDataType_t t, ncclRedOp_t op, ncclComm_t comm,
			   cudaStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t n,
			   ncclDataType_t t, ncclComm_t comm,
			   cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t n,
			       ncclDataType_t t, ncclRedOp_t op,
			       ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
