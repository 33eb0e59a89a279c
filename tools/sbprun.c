/*
 * sbprun.c: the launcher's main. A model is compiled by a child, so that the
 * launcher itself never holds the compiler's libraries.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/build.h"
#include "tools/launch.h"

enum { MAX_RANKS = 4096 };

/* ---- the command line ---- */

static bool read_number(const char *text, long lo, long hi, int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < lo || n > hi)
		return false;
	*out = (int)n;
	return true;
}

/* 0 where nobody says how many ranks. */
static int read_options(const struct options *o, struct launch *l)
{
	const char *n = option_value(o, OPT_nproc);
	const char *nodes = option_value(o, OPT_nnodes);
	const char *port = option_value(o, OPT_master_port);
	const char *address = option_value(o, OPT_master_addr);

	if (n && !read_number(n, 1, MAX_RANKS, &l->n))
		return usage_error(SBPRUN, "-n wants a number of ranks, 1 to "
					   "%d, not '%s'", MAX_RANKS, n);
	if (nodes && strcmp(nodes, "1"))
		return usage_error(SBPRUN, "--nnodes %s: only one host is "
					   "supported", nodes);
	if (port && !read_number(port, 1, 65535, &l->port))
		return usage_error(SBPRUN, "--master-port wants 1 to 65535, "
					   "not '%s'", port);
	if (!o->words.n)
		return usage_error(SBPRUN, "which program? see --help");
	l->address = address ? address : "127.0.0.1";
	l->label = option_given(o, OPT_label);
	return 0;
}

/* ---- a .sbp file ---- */

struct model_job {
	struct arena *a;
	const struct options *o;
	int n;			/* -n, or 0 */
};

static enum exit_code compile(const struct model_job *r, int program, int *world)
{
	struct build b;
	enum exit_code code = program_read(&b, r->a, r->o);

	if (code)
		return code;
	*world = b.g->world;
	if (r->n && r->n != *world)
		return (enum exit_code)usage_error(
			SBPRUN, "'%s' is for %d rank%s, but -n is %d", b.path,
			*world, *world == 1 ? "" : "s", r->n);
	return program_make(&b, program);
}

/* In a child. Sets *program and *world. */
static int compile_model(const struct model_job *r, int *program, int *world)
{
	int channel[2], status = 0, w = 0;
	pid_t pid;

	*program = memfd_create("sbprun", MFD_CLOEXEC);
	if (*program < 0 || pipe2(channel, O_CLOEXEC))
		return usage_error(SBPRUN, "%s", strerror(errno));
	pid = fork_bound();
	if (pid < 0)
		return usage_error(SBPRUN, "cannot fork: %s", strerror(errno));
	if (!pid) {
		int code = (int)compile(r, *program, &w);

		fflush(NULL);
		_exit(write(channel[1], &w, sizeof w) == sizeof w ? code : 3);
	}
	close(channel[1]);
	if (read(channel[0], world, sizeof *world) != sizeof *world)
		*world = 0;
	close(channel[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static bool is_model(const char *path)
{
	size_t n = strlen(path);

	return n > 4 && !strcmp(path + n - 4, ".sbp");
}

/* A program has been compiled already. */
static int check_program(const struct options *o)
{
	static const struct {
		enum option_id id;
		const char *name;
	} idle[] = {
		{OPT_define, "-D"},	    {OPT_include, "-I"},
		{OPT_model, "--model"},	    {OPT_keep, "--keep"},
		{OPT_arch, "--arch"},	    {OPT_optimize, "-O"},
		{OPT_cc, "--cc"},	    {OPT_auto, "--auto"},
		{OPT_memory, "--memory"},   {OPT_reproducible, "--reproducible"},
		{OPT_topology, "--topology"},
	};

	for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
		if (option_given(o, idle[i].id))
			return usage_error(SBPRUN,
					   "%s is for a .sbp file, and "
					   "'%s' is a program",
					   idle[i].name, o->words.at[0]);
	return 0;
}

static int run(struct arena *a, const struct options *o)
{
	struct launch l = {.program = -1};
	struct model_job r = {.a = a, .o = o};
	int code = read_options(o, &l), world = 1;
	char **argv = NEW_N(a, char *, o->words.n + 1);

	if (code)
		return code;
	r.n = l.n;
	memcpy(argv, o->words.at, sizeof *argv * (size_t)o->words.n);
	l.argv = argv;
	if (is_model(argv[0])) {
		code = compile_model(&r, &l.program, &world);
	} else {
		code = check_program(o);
	}
	if (code)
		return code;
	if (!l.n)
		l.n = world;
	return launch(&l);
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct options o = {0};
	bool dev;
	int code = 0;

	if (!options_read(a, SBPRUN, argc, argv, &o)) {
		arena_free(a);
		return 2;
	}
	dev = option_given(&o, OPT_help_dev);
	if (dev || option_given(&o, OPT_help))
		options_help(SBPRUN, dev, stdout);
	else if (option_given(&o, OPT_version))
		printf("sbprun %s\n", SBPC_VERSION);
	else
		code = run(a, &o);
	arena_free(a);
	return code;
}
