/*
 * sbp_cuda.c: a rank's device, its groups and what travels between it and the
 * host's arena.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/device.h"

/* ---- errors ---- */

sbp_status sbp_cuda_check(sbp_cuda *m, cudaError_t e, const char *call)
{
	if (e == cudaSuccess)
		return SBP_OK;
	return sbp_fail(m->host, 0, "cuda", "%s: %s", call,
			cudaGetErrorString(e));
}

sbp_status sbp_cublas_check(sbp_cuda *m, cublasStatus_t e, const char *call)
{
	if (e == CUBLAS_STATUS_SUCCESS)
		return SBP_OK;
	return sbp_fail(m->host, 0, "cublas", "%s: %s", call,
			cublasGetStatusString(e));
}

sbp_status sbp_nccl_check(sbp_cuda *m, ncclResult_t e, const char *call)
{
	if (e == ncclSuccess)
		return SBP_OK;
	return sbp_fail(m->host, 0, "nccl", "%s: %s", call,
			ncclGetErrorString(e));
}

/* ---- groups ---- */

/* Rank 0's id reaches all as the greatest of numbers, since all others give
 * the least. */
static sbp_status share_id(sbp_cuda *m, ncclUniqueId *id)
{
	struct comm *c = &m->host->private_->comm;
	int64_t number[sizeof *id / sizeof(int64_t)];
	int n = (int)(sizeof number / sizeof *number);
	sbp_message e;

	if (m->rank == 0)
		memcpy(number, id, sizeof number);
	for (int i = 0; i < n; i += 4) {
		for (int k = i; m->rank != 0 && k < i + 4; k++)
			number[k] = INT64_MIN;
		if (comm_greatest(c, 4, &number[i], &e) != SBP_OK)
			return sbp_fail(m->host, 0, "nccl", "%s", e.text);
	}
	memcpy(id, number, sizeof number);
	return SBP_OK;
}

/* The mesh axes along which a move changes the distribution. */
static unsigned changed_axes(const sbp_pattern *how)
{
	const sbp_dist *a = &how->from, *b = &how->to;
	unsigned axes = 0;

	for (int k = 0; k < a->on->naxes; k++)
		if (a->term[k].kind != b->term[k].kind ||
		    a->term[k].axis != b->term[k].axis)
			axes |= 1u << k;
	return axes;
}

/* Ranks whose coordinates agree except on AXES have one colour. */
static int colour_of(const sbp_placement *on, unsigned axes, int rank)
{
	int index = mesh_index(on, rank), coord[SBP_MAX_MESH], colour = 0;

	if (index < 0)
		return NCCL_SPLIT_NOCOLOR;
	mesh_coords(on, index, coord);
	for (int k = 0; k < on->naxes; k++)
		colour =
			colour * on->extent[k] + (axes >> k & 1 ? 0 : coord[k]);
	return colour;
}

static struct group *group_find(const struct sbp_cuda_private *p,
				const sbp_pattern *how)
{
	for (struct group *g = p->groups; g; g = g->next)
		if (g->on == how->from.on && g->axes == changed_axes(how))
			return g;
	return NULL;
}

/* All ranks meet all patterns in one order, so they split alike. */
static sbp_status group_add(sbp_cuda *m, const sbp_pattern *how)
{
	struct sbp_cuda_private *p = m->private_;
	struct group *g;

	if (how->from.on != how->to.on || group_find(p, how))
		return SBP_OK;
	g = calloc(1, sizeof *g);
	if (!g)
		return sbp_fail(m->host, 0, "nccl", "out of memory");
	g->on = how->from.on;
	g->axes = changed_axes(how);
	g->next = p->groups;
	p->groups = g;
	SBP_NCCL(ncclCommSplit(p->all, colour_of(g->on, g->axes, m->rank),
			       m->rank, &g->comm, NULL));
	return SBP_OK;
}

ncclComm_t sbp_cuda_group(const sbp_cuda *m, const sbp_move *move)
{
	struct group *g = group_find(m->private_, move->how);

	return g ? g->comm : NULL;
}

static sbp_status open_groups(sbp_cuda *m, const sbp_move *moves, int nmoves)
{
	struct sbp_cuda_private *p = m->private_;
	ncclUniqueId id;

	if (nmoves == 0)
		return SBP_OK;
	if (m->rank == 0)
		SBP_NCCL(ncclGetUniqueId(&id));
	SBP_TRY(share_id(m, &id));
	SBP_NCCL(ncclCommInitRank(&p->all, m->world, id, m->rank));
	for (int i = 0; i < nmoves; i++)
		SBP_TRY(group_add(m, moves[i].how));
	return SBP_OK;
}

/* ---- the device ---- */

static void device_close(void *device)
{
	sbp_cuda *m = device;
	struct sbp_cuda_private *p = m->private_;
	struct group *next;

	for (struct group *g = p->groups; g; g = next) {
		next = g->next;
		if (g->comm)
			ncclCommDestroy(g->comm);
		free(g);
	}
	if (p->all)
		ncclCommDestroy(p->all);
	if (m->blas)
		cublasDestroy(m->blas);
	cudaFree(p->staging);
	cudaFree(m->arena);
	if (m->stream)
		cudaStreamDestroy(m->stream);
	free(p);
	free(m);
}

static sbp_status open_device(sbp_cuda *m, const sbp_program *p)
{
	struct cudaDeviceProp is;
	int n, device;

	SBP_CUDA(cudaGetDeviceCount(&n));
	if (n == 0)
		return sbp_fail(m->host, 0, "cuda", "there is no device");
	device = m->host->private_->env.local_rank % n;
	SBP_CUDA(cudaSetDevice(device));
	SBP_CUDA(cudaGetDeviceProperties(&is, device));
	m->blocks = 4 * is.multiProcessorCount;
	SBP_CUDA(cudaStreamCreate(&m->stream));
	SBP_CUDA(cudaMalloc((void **)&m->arena,
			    (size_t)p->arena_bytes[m->class_]));
	SBP_CUBLAS(cublasCreate(&m->blas));
	SBP_CUBLAS(cublasSetStream(m->blas, m->stream));
	return SBP_OK;
}

static sbp_cuda *device_new(sbp_model *host)
{
	sbp_cuda *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->private_ = calloc(1, sizeof *m->private_);
	if (!m->private_) {
		free(m);
		return NULL;
	}
	m->host = host;
	m->own = host->own;
	m->seed = host->seed;
	m->rank = host->rank;
	m->world = host->world;
	m->class_ = host->class_;
	m->one = 1;
	host->private_->device = m;
	host->private_->device_close = device_close;
	return m;
}

/* ---- between host and device ---- */

static int64_t tensor_bytes(const sbp_model *host, const sbp_tensor *t)
{
	sbp_box box;

	if (!tensor_piece(host, t, &box))
		return 0;
	return box_count(&box) * dtype_bytes(t->dtype);
}

/* The tensors with these roles, to the device or from it. */
static sbp_status copy_tensors(sbp_cuda *m, unsigned roles,
			       enum cudaMemcpyKind way)
{
	const sbp_program *p = m->host->private_->p;

	for (int i = 0; i < p->ntensors; i++) {
		const sbp_tensor *t = &p->tensors[i];
		int64_t bytes = tensor_bytes(m->host, t);
		int64_t at = t->at[m->class_];
		bool up = way == cudaMemcpyHostToDevice;
		unsigned char *host = m->host->arena + at;
		unsigned char *device = m->arena + at;

		if (!(roles >> t->role & 1) || bytes == 0)
			continue;
		SBP_CUDA(cudaMemcpyAsync(up ? device : host, up ? host : device,
					 (size_t)bytes, way, m->stream));
	}
	return SBP_OK;
}

sbp_status sbp_cuda_begin(sbp_model *host, const sbp_move *moves, int nmoves,
			  sbp_cuda **out)
{
	sbp_cuda *m = host->private_->device;

	if (!m) {
		m = device_new(host);
		if (!m)
			return sbp_fail(host, 0, "cuda", "out of memory");
		SBP_TRY(open_device(m, host->private_->p));
		SBP_TRY(open_groups(m, moves, nmoves));
	}
	*out = m;
	m->step = host->step;
	return copy_tensors(m, ROLES_FED | 1 << SBP_CONST,
			    cudaMemcpyHostToDevice);
}

sbp_status sbp_cuda_end(sbp_cuda *m)
{
	SBP_CUDA(cudaGetLastError());
	SBP_TRY(copy_tensors(m,
			     1 << SBP_OUTPUT | 1 << SBP_KEPT | 1 << SBP_STATE,
			     cudaMemcpyDeviceToHost));
	SBP_CUDA(cudaStreamSynchronize(m->stream));
	return SBP_OK;
}
