/*
 * nccl.cc: NCCL between processes of one host. A file that all map has a
 * mailbox for each pair of ranks; operations of a group advance in turn until
 * all are done, so their order among peers does not matter.
 */
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

enum { MOST_RANKS = 16, ROOM = 4096 };

/* Holds a part of a message while `sent` is one ahead of `taken`. */
struct mailbox {
	std::atomic<unsigned> sent, taken;
	unsigned n;
	char data[ROOM];
};

struct mailboxes {
	mailbox to[MOST_RANKS][MOST_RANKS];	/* from, to */
};

struct operation {
	mailbox *box;
	char *at;
	size_t left;
	bool sends;
};

thread_local std::vector<operation> pending;
thread_local int depth;

bool advance(operation *o)
{
	mailbox *b = o->box;
	bool full = b->sent.load() != b->taken.load();

	if (o->sends == full)
		return false;
	if (o->sends) {
		b->n = (unsigned)std::min<size_t>(o->left, ROOM);
		memcpy(b->data, o->at, b->n);
	} else {
		memcpy(o->at, b->data, b->n);
	}
	o->at += b->n;
	o->left -= b->n;
	if (o->sends)
		b->sent++;
	else
		b->taken++;
	return true;
}

/* Messages of one mailbox go in the order in which they were asked for. */
bool is_first(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (pending[k].box == pending[i].box && pending[k].left > 0)
			return false;
	return true;
}

void finish()
{
	for (bool busy = true; busy;) {
		bool moved = false;

		busy = false;
		for (size_t i = 0; i < pending.size(); i++) {
			if (pending[i].left == 0)
				continue;
			busy = true;
			moved |= is_first(i) && advance(&pending[i]);
		}
		if (!moved)
			sched_yield();
	}
	pending.clear();
}

size_t width(ncclDataType_t t)
{
	static const size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};

	return widths[t];
}

template <typename T>
void reduce(void *acc, const void *from, size_t n, ncclRedOp_t op)
{
	T *a = static_cast<T *>(acc);
	const T *b = static_cast<const T *>(from);

	for (size_t i = 0; i < n; i++)
		a[i] = op == ncclSum   ? a[i] + b[i]
		       : op == ncclMax ? (a[i] > b[i] ? a[i] : b[i])
				       : (a[i] < b[i] ? a[i] : b[i]);
}

void reduce_any(void *acc, const void *from, size_t n, ncclDataType_t t,
		ncclRedOp_t op)
{
	switch (t) {
	case ncclInt8:
		return reduce<int8_t>(acc, from, n, op);
	case ncclUint8:
		return reduce<uint8_t>(acc, from, n, op);
	case ncclInt32:
		return reduce<int32_t>(acc, from, n, op);
	case ncclInt64:
		return reduce<int64_t>(acc, from, n, op);
	case ncclFloat32:
		return reduce<float>(acc, from, n, op);
	default:
		return reduce<double>(acc, from, n, op);
	}
}

} /* namespace */

struct ncclComm {
	mailboxes *all;
	int rank;			/* among the members */
	std::vector<int> member;	/* by rank: in the mailboxes */
};

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	int fd;

	memset(id, 0, sizeof *id);
	snprintf(id->internal, sizeof id->internal, "/cuda_host.%ld",
		 (long)getpid());
	fd = shm_open(id->internal, O_CREAT | O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(mailboxes)) != 0)
		return ncclSystemError;
	close(fd);
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id,
			      int rank)
{
	int fd = shm_open(id.internal, O_RDWR, 0600);
	char token = 0;
	void *at;

	if (fd < 0 || n > MOST_RANKS)
		return ncclSystemError;
	at = mmap(nullptr, sizeof(mailboxes), PROT_READ | PROT_WRITE,
		  MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return ncclSystemError;
	*comm = new ncclComm{static_cast<mailboxes *>(at), rank, {}};
	for (int i = 0; i < n; i++)
		(*comm)->member.push_back(i);
	/* Once all have mapped the file its name can go. */
	std::vector<char> tokens((size_t)n);
	ncclAllGather(&token, tokens.data(), 1, ncclInt8, *comm, nullptr);
	if (rank == 0)
		shm_unlink(id.internal);
	return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
			   ncclComm_t *out, ncclConfig_t *)
{
	int mine[2] = {color, key};
	size_t n = comm->member.size();
	std::vector<int> all(2 * n);
	ncclComm *split = new ncclComm{comm->all, -1, {}};

	ncclAllGather(mine, all.data(), 2, ncclInt32, comm, nullptr);
	*out = nullptr;
	for (size_t i = 0; i < n; i++) {
		if (all[2 * i] != color)
			continue;
		if ((int)i == comm->rank)
			split->rank = (int)split->member.size();
		split->member.push_back(comm->member[i]);
	}
	if (color == NCCL_SPLIT_NOCOLOR)
		delete split;
	else
		*out = split;
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	delete comm;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t e)
{
	return e == ncclSuccess ? "no error" : "system error";
}

ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	if (--depth == 0)
		finish();
	return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t t, int peer,
		      ncclComm_t comm, cudaStream_t)
{
	int me = comm->member[(size_t)comm->rank];
	int to = comm->member[(size_t)peer];

	pending.push_back({&comm->all->to[me][to],
			   static_cast<char *>(const_cast<void *>(from)),
			   n * width(t), true});
	if (depth == 0)
		finish();
	return ncclSuccess;
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t t, int peer,
		      ncclComm_t comm, cudaStream_t)
{
	int me = comm->member[(size_t)comm->rank];
	int from = comm->member[(size_t)peer];

	pending.push_back({&comm->all->to[from][me], static_cast<char *>(to),
			   n * width(t), false});
	if (depth == 0)
		finish();
	return ncclSuccess;
}

/* ---- collectives ---- */

ncclResult_t ncclAllGather(const void *from, void *to, size_t n,
			   ncclDataType_t t, ncclComm_t comm, cudaStream_t)
{
	size_t bytes = n * width(t);
	int size = (int)comm->member.size();
	std::vector<char> mine(bytes);

	memcpy(mine.data(), from, bytes);
	ncclGroupStart();
	for (int i = 0; i < size; i++) {
		char *at = static_cast<char *>(to) + (size_t)i * bytes;

		if (i == comm->rank) {
			memcpy(at, mine.data(), bytes);
			continue;
		}
		ncclSend(mine.data(), n, t, i, comm, nullptr);
		ncclRecv(at, n, t, i, comm, nullptr);
	}
	return ncclGroupEnd();
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t n,
			       ncclDataType_t t, ncclRedOp_t op,
			       ncclComm_t comm, cudaStream_t)
{
	size_t bytes = n * width(t);
	int size = (int)comm->member.size();
	std::vector<char> parts(bytes * (size_t)size);

	ncclGroupStart();
	for (int i = 0; i < size; i++) {
		const char *mine =
			static_cast<const char *>(from) + (size_t)i * bytes;
		char *at = parts.data() + (size_t)i * bytes;

		if (i == comm->rank) {
			memcpy(at, mine, bytes);
			continue;
		}
		ncclSend(mine, n, t, i, comm, nullptr);
		ncclRecv(at, n, t, i, comm, nullptr);
	}
	ncclGroupEnd();
	for (int i = 1; i < size; i++)
		reduce_any(parts.data(), parts.data() + (size_t)i * bytes, n,
			   t, op);
	memcpy(to, parts.data(), bytes);
	return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n,
			   ncclDataType_t t, ncclRedOp_t op, ncclComm_t comm,
			   cudaStream_t)
{
	size_t bytes = n * width(t);
	size_t size = comm->member.size();
	std::vector<char> parts(bytes * size);

	ncclAllGather(from, parts.data(), n, t, comm, nullptr);
	for (size_t i = 1; i < size; i++)
		reduce_any(parts.data(), parts.data() + i * bytes, n, t, op);
	memcpy(to, parts.data(), bytes);
	return ncclSuccess;
}
