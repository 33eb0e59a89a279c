/*
 * comm_shm.c: ranks of one host. A rank's memory is one memfd, its control
 * block and then its arena; peers map it by way of /proc/PID/fd, so nothing
 * has a name in /dev/shm and nothing is left behind. Ranks that are threads
 * share plain memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/private.h"

static const uint64_t magic = 0x31304d4853504253;	/* "SBPSHM01" */
enum { BIG = 64 << 20 };	/* from here on available memory is checked */
enum { HASHED = 1 << 28, SHIFTS = 64 };	/* see map_room */

/* ---- this rank's memory ---- */

static sbp_status too_little(int64_t bytes, sbp_message *e)
{
	return message_set(e, SBP_FAILED,
			   "too little memory: this rank's arena takes "
			   "%lld bytes (%.1f MiB)",
			   (long long)bytes, (double)bytes / (1 << 20));
}

/* The number after FORMAT's text in a file of the system, or -1. */
static int64_t read_number(const char *path, const char *format)
{
	FILE *f = fopen(path, "re");
	long long n = -1;
	char line[128];

	while (f && n < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, format, &n) != 1)
			n = -1;
	if (f)
		fclose(f);
	return n;
}

/* What this process may still take, by the system and its control group. */
static int64_t memory_available(void)
{
	int64_t kib = read_number("/proc/meminfo", "MemAvailable: %lld kB");
	int64_t most = read_number("/sys/fs/cgroup/memory.max", "%lld");
	int64_t used = read_number("/sys/fs/cgroup/memory.current", "%lld");
	int64_t there = kib < 0 ? INT64_MAX : kib * 1024;

	if (most >= 0 && used >= 0 && most - used < there)
		there = most > used ? most - used : 0;
	return there;
}

/* The peers may have taken theirs already, so ALL is held against all. */
static sbp_status check_memory(int64_t bytes, int64_t all, sbp_message *e)
{
	int64_t there, kib;

	if (bytes < BIG)
		return SBP_OK;
	there = memory_available();
	kib = read_number("/proc/meminfo", "MemTotal: %lld kB");
	if (kib >= 0 && all / 1024 > kib)
		return message_set(e, SBP_FAILED,
				   "too little memory: the arenas of all ranks "
				   "take %.1f MiB, and this host has %.1f MiB",
				   (double)all / (1 << 20),
				   (double)kib / 1024);
	if (bytes <= there)
		return SBP_OK;
	return message_set(e, SBP_FAILED,
			   "too little memory: this rank's arena takes "
			   "%.1f MiB, and %.1f MiB are available",
			   (double)bytes / (1 << 20),
			   (double)there / (1 << 20));
}

/* Where the memory of RANK may be mapped, or NULL. Moves go through the same
 * offsets of several arenas side by side. Some processors guess the way of a
 * cache by a hash of the address, of which bits 12 to 27 matter, and lines with
 * one hash drive each other out: so ranks differ in the lowest of these bits
 * and have the same in the rest. */
static unsigned char *map_room(size_t bytes, int rank)
{
	size_t skip = (size_t)rank % SHIFTS * PAGE;
	unsigned char *room =
		mmap(NULL, bytes + skip + HASHED, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t lead;

	if (room == MAP_FAILED)
		return NULL;
	lead = (size_t)(-(uintptr_t)room & (HASHED - 1)) + skip;
	munmap(room, lead);
	room += lead;
	munmap(room + bytes, HASHED + skip - lead);
	return room;
}

static void *map_shared(int fd, int64_t size, int rank)
{
	size_t bytes = ((size_t)size + PAGE - 1) & ~(size_t)(PAGE - 1);
	unsigned char *room = map_room(bytes, rank);
	void *at = mmap(room, bytes, PROT_READ | PROT_WRITE,
			room ? MAP_SHARED | MAP_FIXED : MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void set_memory(struct comm *c, int rank, unsigned char *at,
		       int64_t bytes)
{
	c->control[rank] = (struct control *)at;
	c->arena[rank] = at + CONTROL_BYTES;
	c->arena_bytes[rank] = bytes;
}

/* A lone rank shares with nobody. */
static sbp_status private_memory(struct comm *c, int64_t bytes,
				 sbp_message *e)
{
	size_t all = (size_t)(CONTROL_BYTES + bytes);
	void *at = mmap(NULL, all, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return too_little(bytes, e);
	madvise(at, all, MADV_HUGEPAGE);
	set_memory(c, c->rank, at, bytes);
	return SBP_OK;
}

/* Allocates every page now, so that nothing is lacking in a step. */
static sbp_status own_memory(struct comm *c, int64_t bytes, int64_t total,
			     sbp_message *e)
{
	int64_t all = CONTROL_BYTES + bytes;
	void *at;

	SBP_TRY(check_memory(bytes, total, e));
	if (c->world == 1)
		return private_memory(c, bytes, e);
	c->memory = memfd_create("sbp", MFD_CLOEXEC);
	if (c->memory < 0)
		return message_set(e, SBP_FAILED, "shared memory: %s",
				   strerror(errno));
	if (ftruncate(c->memory, all) != 0 ||
	    posix_fallocate(c->memory, 0, all) != 0)
		return too_little(bytes, e);
	at = map_shared(c->memory, all, c->rank);
	if (!at)
		return too_little(bytes, e);
	set_memory(c, c->rank, at, bytes);
	c->control[c->rank]->magic = magic;
	return SBP_OK;
}

/* ---- the peers' ---- */

/* Linux 5.3; without it a dead peer shows by the time limit alone. */
static int open_pidfd(int pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	return -1;
#endif
}

static sbp_status peer_memory(struct comm *c, const struct store_record *r,
			      sbp_message *e)
{
	int64_t all = CONTROL_BYTES + r->arena_bytes;
	char path[64];
	struct stat st;
	void *at = NULL;
	int fd;

	c->pidfd[r->rank] = open_pidfd(r->pid);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", r->pid, r->memory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return message_set(e, SBP_FAILED,
				   "the memory of rank %d (%s) cannot be "
				   "opened: %s", r->rank, path,
				   strerror(errno));
	if (fstat(fd, &st) == 0 && st.st_size == all)
		at = map_shared(fd, all, r->rank);
	close(fd);
	if (!at || ((struct control *)at)->magic != magic)
		return message_set(e, SBP_FAILED,
				   "the memory of rank %d (%s) cannot be "
				   "mapped", r->rank, path);
	set_memory(c, r->rank, at, r->arena_bytes);
	return SBP_OK;
}

/* A boot and a space of process ids: where they are equal /proc is shared. */
static void describe_host(struct store_record *r)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64] = "", *end;
	struct stat ns;

	if (f && fgets(boot, sizeof boot, f)) {
		end = strchr(boot, '\n');
		if (end)
			*end = 0;
	}
	if (f)
		fclose(f);
	if (stat("/proc/self/ns/pid", &ns) != 0)
		ns.st_ino = 0;
	snprintf(r->host, sizeof r->host, "%s %llu", boot,
		 (unsigned long long)ns.st_ino);
	if (gethostname(r->name, sizeof r->name) != 0)
		strcpy(r->name, "?");
	r->name[sizeof r->name - 1] = 0;
}

static sbp_status map_peers(struct comm *c, const struct store_record *all,
			    sbp_message *e)
{
	for (int r = 0; r < c->world; r++) {
		if (strcmp(all[r].host, all[c->rank].host) != 0)
			return message_set(e, SBP_USAGE,
					   "ranks %d and %d are on different "
					   "hosts ('%s', '%s'): all ranks "
					   "must be on one", c->rank, r,
					   all[c->rank].name, all[r].name);
		if (r != c->rank)
			SBP_TRY(peer_memory(c, &all[r], e));
	}
	return SBP_OK;
}

static bool allocate(struct comm *c)
{
	size_t n = (size_t)c->world;

	c->control = calloc(n, sizeof *c->control);
	c->arena = calloc(n, sizeof *c->arena);
	c->arena_bytes = calloc(n, sizeof *c->arena_bytes);
	c->peer = calloc(n, sizeof *c->peer);
	c->pidfd = malloc(n * sizeof *c->pidfd);
	for (size_t r = 0; c->pidfd && r < n; r++)
		c->pidfd[r] = -1;
	return c->control && c->arena && c->arena_bytes && c->peer && c->pidfd;
}

static sbp_status meet(struct comm *c, const struct env *env,
		       uint64_t plan_hash, int64_t bytes, sbp_message *e)
{
	struct store_record mine = {.rank = c->rank, .pid = getpid(),
				    .memory = c->memory,
				    .arena_bytes = bytes};
	struct store_record *all = calloc((size_t)c->world, sizeof *all);
	sbp_status status;

	if (!all)
		return message_set(e, SBP_FAILED, "out of memory");
	describe_host(&mine);
	status = store_meet(env, plan_hash, &mine, all, e);
	if (status == SBP_OK)
		status = map_peers(c, all, e);
	free(all);
	return status;
}

/* The barrier at the end: nobody leaves before all have mapped its memory. */
sbp_status shm_open_ranks(struct comm *c, const struct env *env,
			  uint64_t plan_hash, int64_t bytes, int64_t total,
			  sbp_message *e)
{
	c->rank = env->rank;
	c->world = env->world;
	c->timeout = env->timeout;
	c->memory = -1;
	if (!allocate(c))
		return message_set(e, SBP_FAILED, "out of memory");
	SBP_TRY(own_memory(c, bytes, total, e));
	comm_start(c);
	if (c->world == 1)
		return SBP_OK;
	SBP_TRY(meet(c, env, plan_hash, bytes, e));
	comm_begin(c);
	return comm_barrier(c, e);
}

/* ---- ranks as threads ---- */

struct sbp_group {
	int world;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic uint64_t joined;
	struct simulation *simulation;
	uint64_t plan_hash;
	unsigned char **memory;		/* by rank */
	int64_t *bytes;
};

struct sbp_group *sbp_group_new(int world)
{
	struct sbp_group *g = world > 0 ? calloc(1, sizeof *g) : NULL;

	if (!g)
		return NULL;
	g->world = world;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	g->memory = calloc((size_t)world, sizeof *g->memory);
	g->bytes = calloc((size_t)world, sizeof *g->bytes);
	if (!g->memory || !g->bytes) {
		sbp_group_free(g);
		return NULL;
	}
	return g;
}

void sbp_group_free(struct sbp_group *g)
{
	if (!g)
		return;
	for (int r = 0; g->memory && r < g->world; r++)
		free(g->memory[r]);
	free(g->memory);
	free(g->bytes);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* Under the lock: waits until all ranks have joined, and finds them. */
static sbp_status group_wait(struct comm *c, struct sbp_group *g,
			     sbp_message *e)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += (long)(fmod(c->timeout, 1) * 1e9);
	end.tv_sec += (time_t)c->timeout + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while (g->joined < (uint64_t)g->world)
		if (pthread_cond_timedwait(&g->changed, &g->lock, &end))
			return message_set(e, SBP_FAILED,
					   "only %d of %d ranks of the group "
					   "have joined within %g s",
					   (int)g->joined, g->world,
					   c->timeout);
	for (int r = 0; r < g->world; r++)
		set_memory(c, r, g->memory[r], g->bytes[r]);
	comm_begin(c);
	return SBP_OK;
}

static sbp_status group_add(struct comm *c, struct sbp_group *g,
			    uint64_t plan_hash, int64_t bytes, sbp_message *e)
{
	size_t all = CONTROL_BYTES + (((size_t)bytes + PAGE - 1) & ~(size_t)(PAGE - 1));

	if (g->memory[c->rank])
		return message_set(e, SBP_USAGE,
				   "rank %d of the group was opened twice",
				   c->rank);
	if (g->joined && g->plan_hash != plan_hash)
		return message_set(e, SBP_USAGE,
				   "the ranks of the group open different "
				   "programs");
	g->memory[c->rank] = aligned_alloc(PAGE, all);
	if (!g->memory[c->rank])
		return too_little(bytes, e);
	memset(g->memory[c->rank], 0, all);
	if (g->simulation)
		simulate_litter(g->simulation, c->rank,
				g->memory[c->rank] + CONTROL_BYTES, bytes);
	g->bytes[c->rank] = bytes;
	g->plan_hash = plan_hash;
	set_memory(c, c->rank, g->memory[c->rank], bytes);
	comm_start(c);
	g->joined++;
	pthread_cond_broadcast(&g->changed);
	return SBP_OK;
}

void group_simulate(struct sbp_group *g, struct simulation *s)
{
	g->simulation = s;
}

sbp_status group_join(struct comm *c, struct sbp_group *g, int rank,
		      uint64_t plan_hash, int64_t bytes, int world,
		      sbp_message *e)
{
	struct watch all = {&g->joined, (uint64_t)world};
	sbp_status status;

	if (g->world != world)
		return message_set(e, SBP_USAGE,
				   "this program is for %d ranks, but the "
				   "group has %d", world, g->world);

	c->rank = rank;
	c->world = g->world;
	c->memory = -1;
	c->group = g;
	c->simulation = g->simulation;
	if (!allocate(c))
		return message_set(e, SBP_FAILED, "out of memory");
	pthread_mutex_lock(&g->lock);
	status = group_add(c, g, plan_hash, bytes, e);
	pthread_mutex_unlock(&g->lock);
	if (status == SBP_OK && c->simulation)
		status = simulate_watch(c, -1, &all, e);
	if (status != SBP_OK)
		return status;
	pthread_mutex_lock(&g->lock);
	status = group_wait(c, g, e);
	pthread_mutex_unlock(&g->lock);
	return status;
}

/* ---- the end ---- */

static void close_rank(struct comm *c, int r)
{
	if (c->control[r] && !c->group)
		munmap(c->control[r],
		       (size_t)(CONTROL_BYTES + c->arena_bytes[r]));
	if (c->pidfd[r] >= 0)
		close(c->pidfd[r]);
}

void shm_close_ranks(struct comm *c)
{
	bool there = c->control && c->arena_bytes && c->pidfd;

	for (int r = 0; there && r < c->world; r++)
		close_rank(c, r);
	if (there && !c->group && c->memory >= 0)
		close(c->memory);
	free(c->control);
	free(c->arena);
	free(c->arena_bytes);
	free(c->peer);
	free(c->pidfd);
	memset(c, 0, sizeof *c);
	c->memory = -1;
}
