/*
 * exchange.c: moves that no collective does. Every rank packs what its peers
 * read of it, one group of sends and receives carries all, and what came is
 * reduced in the order of the mesh coordinates and unpacked.
 */
#include <stdlib.h>

#include "runtime/cuda/device.h"

/* A dense run of bytes in staging that comes from or goes to a peer. */
struct cargo {
	int peer;
	int64_t at, bytes;
};

struct shipment {
	sbp_cuda *m;
	const struct exchange *x;
	const sbp_move *move;
	int width;              /* of an element */
	struct cargo *out, *in; /* in: by cell and part */
	int nout, nin;
	int64_t bytes; /* staging so far */
};

static int64_t cell_bytes(const struct shipment *s, const struct cell *c)
{
	return box_count(&c->box) * s->width;
}

/* ---- packing: a strided box of a piece to or from a dense one ---- */

/* The last two axes of a cell, as rows for a copy in two dimensions. */
static sbp_status copy_rows(const struct shipment *s, const struct cell *c,
			    unsigned char *piece, const int64_t *stride,
			    unsigned char *dense, bool pack)
{
	sbp_cuda *m = s->m;
	int last = c->rank - 1;
	int64_t run = c->rank ? c->n[last] : 1, rows = 1, pitch;
	int64_t step = c->rank ? stride[last] : 1;

	pitch = run * s->width;
	if (c->rank && step != 1) {
		rows = run;
		run = 1;
		pitch = step * s->width;
	} else if (c->rank > 1) {
		rows = c->n[last - 1];
		pitch = stride[last - 1] * s->width;
	}
	SBP_CUDA(cudaMemcpy2DAsync(
		pack ? dense : piece, (size_t)(pack ? run * s->width : pitch),
		pack ? piece : dense, (size_t)(pack ? pitch : run * s->width),
		(size_t)(run * s->width), (size_t)rows,
		cudaMemcpyDeviceToDevice, m->stream));
	return SBP_OK;
}

static sbp_status copy_cell(const struct shipment *s, const struct cell *c,
			    unsigned char *piece, const int64_t *stride,
			    unsigned char *dense, bool pack)
{
	int64_t index[SBP_MAX_RANK] = {0}, at = 0;
	int outer = c->rank - 1, a;
	int64_t bytes = c->rank ? c->n[c->rank - 1] * s->width : s->width;

	if (c->rank > 1 && stride[c->rank - 1] == 1) {
		outer--;
		bytes *= c->n[c->rank - 2];
	}
	do {
		SBP_TRY(copy_rows(s, c, piece + at * s->width, stride, dense,
				  pack));
		dense += bytes;
		for (a = outer - 1; a >= 0; a--) {
			at += stride[a];
			if (++index[a] < c->n[a])
				break;
			at -= c->n[a] * stride[a];
			index[a] = 0;
		}
	} while (a >= 0);
	return SBP_OK;
}

/* ---- what goes out ---- */

static struct cargo *cargo_add(struct shipment *s, struct cargo **list, int *n,
			       int peer, int64_t bytes)
{
	struct cargo *more = realloc(*list, ((size_t)*n + 1) * sizeof **list);

	if (!more)
		return NULL;
	*list = more;
	more[*n] = (struct cargo){peer, s->bytes, bytes};
	s->bytes += bytes;
	return &more[(*n)++];
}

/* Lays out, or packs, what the reader of X reads of this rank. */
static sbp_status load_reader(struct shipment *s, const struct exchange *x,
			      int reader, int *next, bool pack)
{
	unsigned char *from = s->m->arena + s->move->from_at[s->m->class_];

	for (int i = 0; i < x->ncells; i++) {
		const struct cell *c = &x->cell[i];

		for (int k = 0; k < x->nparts; k++) {
			if (x->peer[c->first + k] != s->m->rank)
				continue;
			if (!pack && !cargo_add(s, &s->out, &s->nout, reader,
						cell_bytes(s, c)))
				return sbp_fail(s->m->host, s->move->line,
						"move", "out of memory");
			if (pack)
				SBP_TRY(copy_cell(s, c,
						  from + c->from * s->width,
						  c->from_stride,
						  s->m->private_->staging +
							  s->out[(*next)++].at,
						  true));
		}
	}
	return SBP_OK;
}

static sbp_status load_readers(struct shipment *s, bool pack)
{
	int next = 0;

	for (int i = 0; i < s->x->nreaders; i++) {
		int reader = s->x->reader[i];
		struct exchange *x = exchange_new(s->move->how, reader);
		sbp_status status;

		if (!x)
			return sbp_fail(s->m->host, s->move->line, "move",
					"out of memory");
		status = load_reader(s, x, reader, &next, pack);
		exchange_free(x);
		SBP_TRY(status);
	}
	return SBP_OK;
}

/* ---- what comes in ---- */

static sbp_status place_parts(struct shipment *s)
{
	const struct exchange *x = s->x;

	for (int i = 0; i < x->ncells; i++)
		for (int k = 0; k < x->nparts; k++)
			if (!cargo_add(s, &s->in, &s->nin,
				       x->peer[x->cell[i].first + k],
				       cell_bytes(s, &x->cell[i])))
				return sbp_fail(s->m->host, s->move->line,
						"move", "out of memory");
	return SBP_OK;
}

/* The innermost level first; each group's result lies in its first part. */
static sbp_status reduce_cell(struct shipment *s, int i)
{
	const struct exchange *x = s->x;
	unsigned char *staging = s->m->private_->staging;
	const struct cargo *part = &s->in[i * x->nparts];
	int64_t n = box_count(&x->cell[i].box);
	int apart = 1;
	sbp_cuda *m = s->m;

	for (int l = x->nlevels - 1; l >= 0; l--) {
		int span = apart * x->parts[l];

		for (int k = 0; k < x->nparts; k += span)
			for (int j = apart; j < span; j += apart)
				SBP_CUDA(sbp_cuda_combine(
					m->stream, staging + part[k].at,
					staging + part[k + j].at, x->how->dtype,
					x->reduce[l], n));
		apart = span;
	}
	return SBP_OK;
}

static sbp_status unload(struct shipment *s)
{
	const struct exchange *x = s->x;
	unsigned char *to = s->m->arena + s->move->to_at[s->m->class_];
	unsigned char *staging = s->m->private_->staging;

	for (int i = 0; i < x->ncells; i++) {
		const struct cell *c = &x->cell[i];

		SBP_TRY(reduce_cell(s, i));
		SBP_TRY(copy_cell(s, c, to + c->to * s->width, c->to_stride,
				  staging + s->in[i * x->nparts].at, false));
	}
	return SBP_OK;
}

/* A rank's own parts are packed straight to where they are reduced. */
static sbp_status pack_own(struct shipment *s)
{
	const struct exchange *x = s->x;

	for (int i = 0; i < s->nin; i++) {
		const struct cell *c = &x->cell[i / x->nparts];

		if (s->in[i].peer == s->m->rank)
			SBP_TRY(copy_cell(
				s, c,
				s->m->arena + s->move->from_at[s->m->class_] +
					c->from * s->width,
				c->from_stride,
				s->m->private_->staging + s->in[i].at, true));
	}
	return SBP_OK;
}

/* ---- the whole ---- */

static sbp_status carry(struct shipment *s)
{
	sbp_cuda *m = s->m;
	unsigned char *staging = m->private_->staging;

	SBP_NCCL(ncclGroupStart());
	for (int i = 0; i < s->nout; i++)
		SBP_NCCL(ncclSend(staging + s->out[i].at,
				  (size_t)s->out[i].bytes, ncclUint8,
				  s->out[i].peer, m->private_->all, m->stream));
	for (int i = 0; i < s->nin; i++)
		if (s->in[i].peer != m->rank)
			SBP_NCCL(ncclRecv(staging + s->in[i].at,
					  (size_t)s->in[i].bytes, ncclUint8,
					  s->in[i].peer, m->private_->all,
					  m->stream));
	SBP_NCCL(ncclGroupEnd());
	return SBP_OK;
}

static sbp_status make_staging(struct shipment *s)
{
	struct sbp_cuda_private *p = s->m->private_;
	sbp_cuda *m = s->m;

	if ((size_t)s->bytes <= p->staging_bytes)
		return SBP_OK;
	SBP_CUDA(cudaStreamSynchronize(m->stream));
	cudaFree(p->staging);
	p->staging = NULL;
	p->staging_bytes = 0;
	SBP_CUDA(cudaMalloc((void **)&p->staging, (size_t)s->bytes));
	p->staging_bytes = (size_t)s->bytes;
	return SBP_OK;
}

/* What the target holds beside the cells: identities, made on the host. */
static sbp_status fill(struct shipment *s)
{
	const struct exchange *x = s->x;
	size_t bytes = (size_t)(x->count * s->width);
	void *room;
	cudaError_t e;

	if (!x->fills || bytes == 0)
		return SBP_OK;
	room = malloc(bytes);
	if (!room)
		return sbp_fail(s->m->host, s->move->line, "move",
				"out of memory");
	fill_identity(room, x->how->dtype, x->fill, x->count);
	e = cudaMemcpyAsync(s->m->arena + s->move->to_at[s->m->class_], room,
			    bytes, cudaMemcpyHostToDevice, s->m->stream);
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(s->m->stream);
	free(room);
	return sbp_cuda_check(s->m, e, "cudaMemcpyAsync");
}

static sbp_status ship(struct shipment *s)
{
	SBP_TRY(load_readers(s, false));
	SBP_TRY(place_parts(s));
	SBP_TRY(make_staging(s));
	SBP_TRY(fill(s));
	SBP_TRY(load_readers(s, true));
	SBP_TRY(pack_own(s));
	SBP_TRY(carry(s));
	return unload(s);
}

sbp_status sbp_cuda_exchange(sbp_cuda *m, const sbp_move *move)
{
	struct exchange *x = exchange_new(move->how, m->rank);
	struct shipment s = {.m = m, .x = x, .move = move};
	sbp_status status;

	if (!x)
		return sbp_fail(m->host, move->line, "move", "out of memory");
	s.width = dtype_bytes(move->how->dtype);
	status = ship(&s);
	free(s.out);
	free(s.in);
	exchange_free(x);
	return status;
}
