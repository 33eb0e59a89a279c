/*
 * launch.c: one loop over the pipes of all ranks and the signals of the
 * launcher. The first rank that fails decides: it is named in one line, the
 * others may say what they saw, then they are ended.
 */
#include "tools/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds that the others have to end by themselves, and after SIGTERM. */
static const double grace = 1, term_grace = 2;

struct rank {
	pid_t pid;		/* 0: ended */
	struct lines out, err;
};

struct job {
	const struct launch *l;
	struct rank *rank;
	int started, running;
	int signals;		/* a signalfd */
	int code;		/* what to return */
	bool ending;		/* a failure or a signal was seen */
	int next;		/* signal to send at the deadline; 0: none */
	double deadline;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void signal_all(struct job *j, int signal)
{
	for (int i = 0; i < j->started; i++)
		if (j->rank[i].pid)
			kill(j->rank[i].pid, signal);
}

/* ---- how ranks end ---- */

static void report(int rank, int status)
{
	char host[256] = "?";

	gethostname(host, sizeof host - 1);
	if (WIFSIGNALED(status))
		fprintf(stderr, "sbprun: rank %d on %s was killed by signal "
				"%d (%s)\n",
			rank, host, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "sbprun: rank %d on %s exited with %d\n", rank,
			host, WEXITSTATUS(status));
}

static void end_with(struct job *j, int code, int next, double seconds)
{
	j->ending = true;
	j->code = code;
	j->next = next;
	j->deadline = now() + seconds;
}

/* Of ranks that ended at the same time, one that a signal killed is the
 * cause, else the lowest. */
static void judge(struct job *j, const int *status)
{
	int worst = -1;

	for (int i = 0; i < j->started; i++) {
		if (status[i] <= 0)
			continue;
		if (worst < 0 || (WIFSIGNALED(status[i]) &&
				  !WIFSIGNALED(status[worst])))
			worst = i;
	}
	if (worst < 0 || j->ending)
		return;
	report(worst, status[worst]);
	end_with(j,
		 WIFSIGNALED(status[worst]) ? 128 + WTERMSIG(status[worst]) :
					      WEXITSTATUS(status[worst]),
		 SIGTERM, grace);
}

static int rank_of(const struct job *j, pid_t pid)
{
	for (int i = 0; i < j->started; i++)
		if (j->rank[i].pid == pid)
			return i;
	return -1;
}

static void reap(struct job *j)
{
	int *status = malloc(sizeof *status * (size_t)j->started);
	int s, i;
	pid_t pid;

	if (!status)
		return;
	memset(status, -1, sizeof *status * (size_t)j->started);
	while ((pid = waitpid(-1, &s, WNOHANG)) > 0) {
		i = rank_of(j, pid);
		if (i < 0)
			continue;	/* an orphan of a rank */
		j->rank[i].pid = 0;
		j->running--;
		status[i] = s;
	}
	judge(j, status);
	free(status);
}

/* ---- signals and time limits ---- */

/* The second one from outside ends all at once. */
static void forward(struct job *j, int signal)
{
	bool again = j->ending && j->next == SIGKILL;

	signal_all(j, again ? SIGKILL : signal);
	end_with(j, j->ending ? j->code : 128 + signal, SIGKILL, 5);
}

static void read_signals(struct job *j)
{
	struct signalfd_siginfo s;

	while (read(j->signals, &s, sizeof s) == (ssize_t)sizeof s) {
		if (s.ssi_signo == SIGCHLD)
			reap(j);
		else
			forward(j, (int)s.ssi_signo);
	}
}

static void check_deadline(struct job *j)
{
	if (!j->next || now() < j->deadline)
		return;
	signal_all(j, j->next);
	j->next = j->next == SIGTERM ? SIGKILL : 0;
	j->deadline = now() + term_grace;
}

/* Output that is lost ends the job, as a failure of rank 0 does. */
static void check_output(struct job *j)
{
	if (!lines_error || j->ending)
		return;
	fprintf(stderr, "sbprun: error: stdout cannot be written: %s\n",
		strerror(lines_error));
	end_with(j, 1, SIGTERM, 0);
}

/* ---- the loop ---- */

static int add_poll(struct pollfd *p, int n, int fd)
{
	if (fd >= 0)
		p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return n;
}

/* True when no pipe had anything. */
static bool move_lines(struct job *j, const struct pollfd *p, int n)
{
	bool idle = true;

	for (int i = 0; i < j->started; i++) {
		struct lines *both[] = {&j->rank[i].out, &j->rank[i].err};

		for (int k = 0; k < 2; k++)
			for (int at = 0; at < n; at++) {
				if (p[at].fd != both[k]->from ||
				    !p[at].revents)
					continue;
				lines_move(both[k]);
				idle = false;
				break;
			}
	}
	return idle;
}

static int wait_ms(const struct job *j)
{
	double left = j->deadline - now();

	if (!j->running)
		return 0;
	if (!j->next)
		return -1;
	return left < 0 ? 0 : (int)(left * 1000) + 1;
}

/* Until all ranks have ended and their pipes are empty. */
static void loop(struct job *j, struct pollfd *p)
{
	bool idle = false;

	while (j->running || !idle) {
		int n = add_poll(p, 0, j->signals);
		bool ran = j->running > 0;

		for (int i = 0; i < j->started; i++) {
			n = add_poll(p, n, j->rank[i].out.from);
			n = add_poll(p, n, j->rank[i].err.from);
		}
		if (poll(p, (nfds_t)n, wait_ms(j)) < 0)
			continue;
		idle = move_lines(j, p + 1, n - 1) && !ran;
		check_output(j);
		read_signals(j);
		check_deadline(j);
	}
	for (int i = 0; i < j->started; i++) {
		lines_end(&j->rank[i].out);
		lines_end(&j->rank[i].err);
	}
	check_output(j);
}

/* ---- start ---- */

static bool start(struct job *j)
{
	const struct launch *l = j->l;

	for (int i = 0; i < l->n; i++) {
		struct rank *r = &j->rank[i];

		r->out.to = 1;
		r->err.to = 2;
		if (l->label) {
			snprintf(r->out.label, sizeof r->out.label, "[%d] ",
				 i);
			strcpy(r->err.label, r->out.label);
		}
		r->pid = spawn_rank(l, i, &r->out.from, &r->err.from);
		if (r->pid < 0) {
			fprintf(stderr, "sbprun: error: cannot start '%s': "
					"%s\n",
				l->argv[0], strerror(errno));
			return false;
		}
		j->started++;
		j->running++;
	}
	return true;
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void name_job(void)
{
	char token[40] = "", job[40];

	token_make(token, sizeof token);
	snprintf(job, sizeof job, "%d-%.8s", (int)getpid(), token);
	setenv("SBP_JOB", job, 1);
	setenv("SBP_TOKEN", token + 8, 1);
}

int launch(const struct launch *given)
{
	struct launch l = *given;
	struct job j = {.l = &l};
	struct pollfd *p = calloc(2 * (size_t)l.n + 1, sizeof *p);

	j.rank = calloc((size_t)l.n, sizeof *j.rank);
	j.signals = catch_signals();
	if (!l.port)
		l.port = port_reserve();
	if (!p || !j.rank || j.signals < 0 || l.port < 0) {
		fprintf(stderr, "sbprun: error: %s\n", strerror(errno));
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	name_job();
	if (!start(&j)) {
		signal_all(&j, SIGKILL);
		end_with(&j, 2, 0, 0);
	}
	loop(&j, p);
	if (j.ending)
		kill_descendants();
	free(j.rank);
	free(p);
	return j.code;
}
