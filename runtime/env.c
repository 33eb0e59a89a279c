/*
 * env.c: who this process is. torchrun's and oneflow's names come first, then
 * Open MPI's, PMI's and Slurm's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

/* The names that one launcher gives. */
struct launcher {
	const char *rank, *world, *local_rank, *local_world, *job;
};
static const struct launcher launchers[] = {
	{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
	 "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
	 "PMIX_NAMESPACE"},
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
	 "PMI_JOBID"},
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL,
	 "SLURM_JOB_ID"},
};
enum { NLAUNCHERS = sizeof launchers / sizeof *launchers };

static sbp_status read_int(const char *name, long lo, long hi, int *out,
			   sbp_message *e)
{
	const char *s = getenv(name);
	char *end;
	long v;

	if (!s)
		return message_set(e, SBP_USAGE, "%s is not set", name);
	errno = 0;
	v = strtol(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno || v < lo || v > hi)
		return message_set(e, SBP_USAGE,
				   "%s is '%.40s', not a number from %ld to "
				   "%ld", name, s, lo, hi);
	*out = (int)v;
	return SBP_OK;
}

static sbp_status read_text(const char *name, char *to, size_t size,
			    sbp_message *e)
{
	const char *s = getenv(name);

	if (s && strlen(s) >= size)
		return message_set(e, SBP_USAGE,
				   "%s is longer than %zu characters", name,
				   size - 1);
	strcpy(to, s ? s : "");
	return SBP_OK;
}

static sbp_status read_timeout(double *seconds, sbp_message *e)
{
	const char *s = getenv("SBP_TIMEOUT");
	char *end;

	*seconds = 300;
	if (!s)
		return SBP_OK;
	*seconds = strtod(s, &end);
	if (end == s || *end || !(*seconds > 0 && *seconds <= 1e6))
		return message_set(e, SBP_USAGE,
				   "SBP_TIMEOUT is '%.40s', not a number of "
				   "seconds", s);
	return SBP_OK;
}

static const struct launcher *find_launcher(void)
{
	if (getenv("WORLD_SIZE"))
		return launchers;
	for (int i = 0; i < NLAUNCHERS; i++)
		if (getenv(launchers[i].rank))
			return &launchers[i];
	return NULL;
}

static sbp_status check_world(const char *name, int got, int world,
			      sbp_message *e)
{
	if (got == world)
		return SBP_OK;
	return message_set(e, SBP_USAGE,
			   "this program is for %d rank%s, but %s is %d: "
			   "start it with sbprun -n %d",
			   world, world == 1 ? "" : "s", name, got, world);
}

/* Launchers without MASTER_PORT: a port that other jobs hardly have. */
static int job_port(const char *job)
{
	uint32_t h = 2166136261u;

	for (; *job; job++)
		h = (h ^ (unsigned char)*job) * 16777619u;
	return 20000 + (int)(h % 10000);
}

static sbp_status read_address(struct env *env, const struct launcher *l,
			       sbp_message *e)
{
	const char *job = l->job ? getenv(l->job) : NULL;

	SBP_TRY(read_text("MASTER_ADDR", env->address, sizeof env->address,
			  e));
	if (!env->address[0]) {
		if (l == launchers)
			return message_set(e, SBP_USAGE,
					   "MASTER_ADDR is not set: it names "
					   "the host of rank 0");
		strcpy(env->address, "127.0.0.1");
	}
	if (!getenv("MASTER_PORT") && l != launchers && job) {
		env->port = job_port(job);
		return SBP_OK;
	}
	return read_int("MASTER_PORT", 1, 65535, &env->port, e);
}

static sbp_status read_ranks(struct env *env, const struct launcher *l,
			     int world, sbp_message *e)
{
	env->rank = -1;
	SBP_TRY(read_int(l->world, 1, 1 << 20, &env->world, e));
	SBP_TRY(read_int(l->rank, 0, env->world - 1, &env->rank, e));
	SBP_TRY(check_world(l->world, env->world, world, e));
	env->local_rank = env->rank;
	env->local_world = env->world;
	if (getenv(l->local_rank))
		SBP_TRY(read_int(l->local_rank, 0, env->world - 1,
				 &env->local_rank, e));
	if (l->local_world && getenv(l->local_world))
		SBP_TRY(read_int(l->local_world, 1, env->world,
				 &env->local_world, e));
	return SBP_OK;
}

static sbp_status no_launcher(struct env *env, int world, sbp_message *e)
{
	env->rank = -1;
	return message_set(e, SBP_USAGE,
			   "this program is for %d ranks and RANK and "
			   "WORLD_SIZE are not set: start it with "
			   "sbprun -n %d",
			   world, world);
}

sbp_status env_read(struct env *env, int world, sbp_message *e)
{
	const struct launcher *l = find_launcher();

	memset(env, 0, sizeof *env);
	env->world = env->local_world = 1;
	if (l)
		SBP_TRY(read_ranks(env, l, world, e));
	else if (world > 1)
		SBP_TRY(no_launcher(env, world, e));
	SBP_TRY(read_timeout(&env->timeout, e));
	SBP_TRY(read_text("SBP_JOB", env->job, sizeof env->job, e));
	SBP_TRY(read_text("SBP_TOKEN", env->token, sizeof env->token, e));
	return env->world == 1 ? SBP_OK : read_address(env, l, e);
}

sbp_status env_group(struct env *env, sbp_message *e)
{
	memset(env, 0, sizeof *env);
	return read_timeout(&env->timeout, e);
}

sbp_status env_threads(int local, int *threads, sbp_message *e)
{
	const char *s = getenv("OMP_NUM_THREADS");
	int n = comm_cores() / (local > 0 ? local : 1);

	*threads = n > 0 ? n : 1;
	if (!s || !*s)
		return SBP_OK;
	return read_int("OMP_NUM_THREADS", 1, 1024, threads, e);
}
