/*
 * main.c: the main() of a program: options, feeding, steps, output. Errors are
 * one line on stderr. What all ranks see alike (options, environment) is said
 * by rank 0 alone where a launcher started them; what one rank meets while
 * reading files stops all, and the lowest rank that failed says why.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/simulate.h"

struct session {
	const sbp_program *p;
	struct simulation *simulation;	/* that it is a rank of, or NULL */
	struct options o;
	struct feed feed;
	struct report report;
	struct bench bench;
	sbp_model *m;
	bool warned;
};

/* RANK -1: not known. */
static void complain(const struct session *s, int rank, const sbp_message *e)
{
	char prefix[32], own[32];

	/* One failure follows from another, and all have one stderr. */
	if (s->simulation && s->simulation->complained)
		return;
	if (s->simulation)
		s->simulation->complained = true;
	snprintf(own, sizeof own, "rank %d, ", rank);
	snprintf(prefix, sizeof prefix, "rank %d: ", rank);
	if (s->p->world == 1 || rank < 0 ||
	    strncmp(e->text, own, strlen(own)) == 0)
		prefix[0] = 0;
	fflush(stdout);
	fprintf(stderr, "%s: %s%s\n", s->p->name, prefix, e->text);
}

/* Under a launcher the other ranks leave rank 0 the time to speak. */
static void complain_once(const struct session *s, int rank,
			  const sbp_message *e)
{
	struct timespec while_ = {0, 300000000};

	if (rank > 0 && getenv("SBP_TOKEN"))
		nanosleep(&while_, NULL);
	else
		complain(s, rank, e);
}

static sbp_status check_rank(int only, int rank, sbp_message *e)
{
	if (only < 0 || only == rank)
		return SBP_OK;
	return message_set(e, SBP_USAGE,
			   "this executable serves rank %d, and RANK is %d",
			   only, rank);
}

/* What needs no other rank. */
static sbp_status read_all(struct session *s, int only, int argc, char **argv,
			   int *rank)
{
	struct env env;
	sbp_message e;
	sbp_status status = env_read(&env, s->p->world, &e);
	int threads;

	*rank = env.rank;
	if (options_read(&s->o, argc, argv, &e) != SBP_OK)
		status = SBP_USAGE;
	if (s->o.help)
		return SBP_OK;
	if (status == SBP_OK)
		status = feed_check(s->p, &s->o, &e);
	if (status == SBP_OK)
		status = check_rank(only, *rank, &e);
	if (status == SBP_OK)
		status = env_threads(env.local_world, &threads, &e);
	if (status != SBP_OK)
		complain_once(s, *rank, &e);
	return status;
}

/* All ranks go on, or all stop: the lowest that failed says why, and nobody
 * leaves before it has. */
static sbp_status agree(struct session *s, sbp_status mine,
			const sbp_message *e)
{
	struct comm *c = &s->m->private_->comm;
	sbp_message other;
	sbp_status status;
	int worst;

	if (comm_vote(c, mine, &worst, &status, &other) != SBP_OK) {
		complain(s, s->m->rank, mine == SBP_OK ? &other : e);
		return mine == SBP_OK ? SBP_FAILED : mine;
	}
	if (worst == s->m->rank)
		complain(s, s->m->rank, e);
	if (worst >= 0)
		comm_barrier(c, &other);
	return status;
}

static void warn(void *context, const char *text)
{
	struct session *s = context;

	if (s->m->rank == 0 && !s->o.quiet)
		fprintf(stderr, "%s: warning: %s\n", s->p->name, text);
}

static sbp_status prepare(struct session *s, sbp_message *e)
{
	SBP_TRY(feed_check_outputs(s->m, &s->o, e));
	if (s->o.load)
		SBP_TRY(model_load(s->m, s->o.load, warn, s, e));
	SBP_TRY(feed_open(&s->feed, s->m, &s->o, e));
	SBP_TRY(report_open(&s->report, s->m, &s->o, e));
	return model_ready(s->m, e);
}

/* The model itself knows best, if it failed. */
static sbp_status step_failed(const struct session *s, sbp_message *e)
{
	if (sbp_error(s->m)[0])
		message_set(e, SBP_FAILED, "%s", sbp_error(s->m));
	return SBP_FAILED;
}

static sbp_status one_step(struct session *s, int64_t step, sbp_message *e)
{
	const sbp_program *p = s->p;

	if (s->feed.batch)
		SBP_TRY(feed_batch(&s->feed, s->m, step, e));
	if (sbp_step(s->m) != SBP_OK)
		return step_failed(s, e);
	for (int i = 0; i < s->o.nshow; i++) {
		int t = tensor_find(p, s->o.show[i], ROLES_ALL);

		SBP_TRY(show_tensor(s->m, &p->tensors[t], e));
	}
	if (s->o.eval || s->o.log)
		return report_step(&s->report, s->m, &s->feed, step + 1, e);
	return SBP_OK;
}

static sbp_status run_bench(struct session *s, sbp_message *e)
{
	if (s->feed.batch)
		SBP_TRY(feed_batch(&s->feed, s->m, 0, e));
	s->bench.steps = s->o.bench;
	if (bench_run(s->m, &s->bench, e) != SBP_OK)
		return step_failed(s, e);
	return SBP_OK;
}

static sbp_status run_steps(struct session *s, sbp_message *e)
{
	int64_t n = s->o.steps ? s->o.steps : 1;

	if (s->o.bench)
		return run_bench(s, e);
	if (s->o.eval)
		n = s->feed.samples / s->feed.batch;
	for (int64_t i = 0; i < n; i++)
		SBP_TRY(one_step(s, i, e));
	return SBP_OK;
}

static sbp_status flush_output(sbp_message *e)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return message_set(e, SBP_FAILED, "stdout cannot be written");
	return SBP_OK;
}

static sbp_status run(struct session *s, sbp_message *e)
{
	SBP_TRY(run_steps(s, e));
	report_eval(&s->report, s->m, &s->feed);
	SBP_TRY(feed_outputs(s->m, &s->o, e));
	if (s->o.save)
		SBP_TRY(model_save(s->m, s->o.save, e));
	SBP_TRY(report_close(&s->report, e));
	SBP_TRY(comm_barrier(&s->m->private_->comm, e));
	if (s->o.bench)
		SBP_TRY(bench_report(s->m, &s->bench, e));
	return flush_output(e);
}

/* A step says itself where it failed; for the rest that is after a step. */
static sbp_status lose(struct session *s, const sbp_message *e)
{
	unsigned long long steps = s->m->step;
	sbp_message full = *e;

	if (!sbp_error(s->m)[0])
		message_set(&full, SBP_FAILED, "rank %d, after step %llu: "
			    "%.500s", s->m->rank, steps, e->text);
	complain(s, s->m->rank, &full);
	return model_fail(s->m, SBP_FAILED, &full);
}

static sbp_status summary_alone(struct session *s)
{
	sbp_message e;

	if (s->m->rank != 0)
		return SBP_OK;
	show_summary(s->m);
	if (flush_output(&e) == SBP_OK)
		return SBP_OK;
	return lose(s, &e);
}

static sbp_status serve(struct session *s)
{
	sbp_message e = {""};

	if (!s->o.runs && s->o.summary)
		return summary_alone(s);
	SBP_TRY(agree(s, prepare(s, &e), &e));
	if (s->o.summary && s->m->rank == 0)
		show_summary(s->m);
	if (run(s, &e) == SBP_OK)
		return SBP_OK;
	return lose(s, &e);
}

static sbp_status open_and_serve(struct session *s, int rank)
{
	sbp_options o = {.seed = s->o.seed, .has_seed = s->o.has_seed,
			 .rank = rank};
	sbp_status status;
	sbp_message e;

	if (s->simulation)
		o.group = s->simulation->group;
	status = sbp_open(s->p, &o, &s->m);
	if (status == SBP_OK)
		return serve(s);
	message_set(&e, status, "%s", sbp_error(s->m));
	complain(s, rank, &e);
	return status;
}

static void session_close(struct session *s)
{
	sbp_message e;

	feed_close(&s->feed, s->p);
	report_close(&s->report, &e);
	bench_free(&s->bench);
	sbp_close(s->m);
}

/* A closed stdin, stdout or stderr must not become the number of a file that
 * is opened later; what is written to such a stdout is an error still. So is
 * the write by which a file grows too large. */
static bool prepare_process(void)
{
	signal(SIGXFSZ, SIG_IGN);
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

int sbp_main(const sbp_program *p, int rank, int argc, char **argv)
{
	struct session s = {.p = p};
	sbp_status status;
	int me = 0;

	if (!prepare_process())
		return SBP_FAILED;
	status = read_all(&s, rank, argc, argv, &me);
	if (status == SBP_OK && s.o.help) {
		if (me <= 0)
			options_help(argc > 0 ? argv[0] : p->name);
	} else if (status == SBP_OK) {
		status = open_and_serve(&s, me);
	}
	session_close(&s);
	options_free(&s.o);
	return status;
}

/* ---- all ranks in one process ---- */

/* The options are those of all ranks. */
static void simulate_rank(struct actor *a, void *context)
{
	const struct session *all = context;
	struct session s = {.p = all->p, .o = all->o, .simulation = a->s};

	a->status = open_and_serve(&s, a->rank);
	session_close(&s);
}

/* What a simulation cannot do, and where it looks for the ranks: nowhere. */
static sbp_status read_simulated(struct session *s, int argc, char **argv,
				 sbp_message *e)
{
	if (options_read(&s->o, argc, argv, e) != SBP_OK)
		return SBP_USAGE;
	if (s->o.help)
		return SBP_OK;
	SBP_TRY(feed_check(s->p, &s->o, e));
	if (s->o.bench)
		return message_set(e, SBP_USAGE,
				   "--bench: a simulation takes other times "
				   "than a run");
	return SBP_OK;
}

static sbp_status verdict(const struct session *s,
			  const struct simulation *sim)
{
	int world = s->p->world, moves = s->p->nmoves;
	uint64_t steps = sim->steps;

	for (int r = 0; r < world; r++)
		if (sim->actor[r].status != SBP_OK)
			return sim->actor[r].status;
	fprintf(stderr, "%s: simulated %d rank%s, %llu step%s of %d move%s: "
		"every rank in order, no race\n", s->p->name, world,
		world == 1 ? "" : "s", (unsigned long long)steps,
		steps == 1 ? "" : "s", moves, moves == 1 ? "" : "s");
	return SBP_OK;
}

static sbp_status simulate_all(struct session *s, const sbp_trace *trace,
			       uint64_t seed, sbp_message *e)
{
	struct simulation *sim = simulation_new(s->p, trace, seed);
	sbp_status status;

	if (!sim)
		return message_set(e, SBP_FAILED, "out of memory");
	status = simulation_run(sim, simulate_rank, s, e);
	if (status == SBP_OK)
		status = verdict(s, sim);
	simulation_free(sim);
	return status;
}

/* Each rank has files open. */
static void allow_files(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) != 0)
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

int sbp_simulate(const sbp_program *p, const sbp_trace *trace, uint64_t seed,
		 int argc, char **argv)
{
	struct session s = {.p = p};
	sbp_message e = {""};
	sbp_status status;

	if (!prepare_process())
		return SBP_FAILED;
	allow_files();
	status = read_simulated(&s, argc, argv, &e);
	if (status == SBP_OK && s.o.help)
		options_help(argc > 0 ? argv[0] : p->name);
	else if (status == SBP_OK)
		status = simulate_all(&s, trace, seed, &e);
	if (e.text[0])
		fprintf(stderr, "%s: %s\n", p->name, e.text);
	options_free(&s.o);
	return status;
}
