/*
 * spawn.c: processes that do not outlive the launcher, and what they are told
 * about themselves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch.h"

extern char **environ;

pid_t fork_bound(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	/* The launcher may have died before the first line took effect. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(128 + SIGKILL);
	return 0;
}

void token_make(char *to, size_t size)
{
	unsigned char bytes[16] = {0};

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		memset(bytes, (int)getpid(), sizeof bytes);
	for (size_t i = 0; i < sizeof bytes && 2 * i + 2 < size; i++)
		snprintf(to + 2 * i, size - 2 * i, "%02x", bytes[i]);
}

/* The socket stays bound but does not listen: with SO_REUSEADDR rank 0 may
 * bind to it too, while the system gives the port to nobody else. */
int port_reserve(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
	    getsockname(fd, (struct sockaddr *)&at, &size))
		return -1;
	return ntohs(at.sin_port);
}

static void set_number(const char *name, int i)
{
	char text[16];

	snprintf(text, sizeof text, "%d", i);
	setenv(name, text, 1);
}

static void set_environment(const struct launch *l, int rank)
{
	setenv("MASTER_ADDR", l->address, 1);
	set_number("MASTER_PORT", l->port);
	set_number("RANK", rank);
	set_number("LOCAL_RANK", rank);
	set_number("WORLD_SIZE", l->n);
	set_number("LOCAL_WORLD_SIZE", l->n);
}

/* The N-th core of a set, from 0. */
static int core_at(const cpu_set_t *set, int n)
{
	int core = 0;

	while (!CPU_ISSET(core, set) || n-- > 0)
		core++;
	return core;
}

/* Where there are more ranks than cores, each core is given as many. Ranks
 * that wait for one another yield so often that the system would leave them
 * all on the core where they happen to be. */
static void bind_core(const struct launch *l, int rank)
{
	cpu_set_t all, one;
	int cores;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	cores = CPU_COUNT(&all);
	if (l->n <= cores)
		return;
	CPU_ZERO(&one);
	CPU_SET(core_at(&all, rank % cores), &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* In the child: never returns. */
static void become(const struct launch *l, int rank, int out, int err,
		   int fault)
{
	sigset_t none;
	int null, error;

	dup2(out, 1);
	dup2(err, 2);
	if (rank > 0 && (null = open("/dev/null", O_RDONLY)) >= 0)
		dup2(null, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	set_environment(l, rank);
	bind_core(l, rank);
	if (l->program >= 0)
		fexecve(l->program, l->argv, environ);
	else
		execvp(l->argv[0], l->argv);
	if (errno == ENOENT)		/* not in PATH: here */
		execv(l->argv[0], l->argv);
	error = errno;
	while (write(fault, &error, sizeof error) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Whether the child reached its program: FAULT closes by itself then. */
static int wait_exec(int fault)
{
	int error = 0;

	while (read(fault, &error, sizeof error) < 0 && errno == EINTR)
		;
	return error;
}

pid_t spawn_rank(const struct launch *l, int rank, int *out, int *err)
{
	int o[2], e[2], fault[2], error;
	pid_t pid;

	if (pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC) ||
	    pipe2(fault, O_CLOEXEC))
		return -1;
	pid = fork_bound();
	if (!pid)
		become(l, rank, o[1], e[1], fault[1]);
	close(o[1]);
	close(e[1]);
	close(fault[1]);
	*out = o[0];
	*err = e[0];
	fcntl(o[0], F_SETFL, O_NONBLOCK);
	fcntl(e[0], F_SETFL, O_NONBLOCK);
	error = pid < 0 ? errno : wait_exec(fault[0]);
	close(fault[0]);
	if (pid > 0 && error)
		waitpid(pid, NULL, 0);
	errno = error;
	return error ? -1 : pid;
}

/* Orphans of ranks become this process's children: it is their subreaper. */
void kill_descendants(void)
{
	char path[64];
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children",
		 (int)getpid());
	for (int round = 0; round < 100; round++) {
		FILE *f = fopen(path, "r");
		int n = 0;

		while (f && fscanf(f, "%d", &pid) == 1) {
			kill(pid, SIGKILL);
			n++;
		}
		if (f)
			fclose(f);
		if (!n)
			return;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(1000);
	}
}
