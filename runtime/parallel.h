/*
 * parallel.h: the threads of a rank, shared by kernels and oneDNN.
 */
#ifndef SBP_PARALLEL_H
#define SBP_PARALLEL_H

#include "runtime/sbp.h"

/* What libgomp must find in the environment when it is loaded. */
void sbp_threads_environment(void);

/* The number of threads of the parallel regions that the calling thread
 * starts, oneDNN's included. */
void sbp_threads_use(int threads);

#endif
