/*
 * device.h: what the files of the cuda runtime share.
 */
#ifndef SBP_CUDA_DEVICE_H
#define SBP_CUDA_DEVICE_H

#include "runtime/cuda/sbp_cuda.h"
#include "runtime/private.h"

/* The communicator of the ranks that differ on AXES of a mesh alone. */
struct group {
	const sbp_placement *on;
	unsigned axes;
	ncclComm_t comm;
	struct group *next;
};

struct sbp_cuda_private {
	ncclComm_t all;
	struct group *groups;
	unsigned char *staging;		/* what exchanges pack and unpack */
	size_t staging_bytes;
};

#endif
