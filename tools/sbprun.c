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
#include <sys/sendfile.h>
#include <sys/stat.h>
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

/* The names after the program's --show: they are kept. */
static const char *shown(struct arena *a, const struct options *o)
{
	const char *names = "";

	for (int i = 1; i < o->words.n; i++) {
		const char *word = o->words.at[i], *value = NULL;

		if (!strncmp(word, "--show=", 7))
			value = word + 7;
		else if (!strcmp(word, "--show") && i + 1 < o->words.n)
			value = o->words.at[++i];
		if (value)
			names = arena_text(a, "%s,%s", names, value);
	}
	return *names ? names : NULL;
}

/* Copies the file PATH to the descriptor TO. */
static bool copy_to(const char *path, int to)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat s;
	off_t left;

	if (from < 0 || fstat(from, &s))
		return false;
	for (left = s.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			break;
		left -= n;
	}
	close(from);
	return left == 0;
}

/* "dir/net.sbp" gives "net". */
static const char *base_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return base_clean(a, arena_text(a, "%.*s", (int)strlen(name) - 4,
					name));
}

/* The linker writes to a directory of its own; the result goes to TO. */
static enum exit_code link_to(struct build *b, const char *base, int to)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = arena_text(b->a, "%s/sbprun-XXXXXX",
			       tmp && *tmp ? tmp : "/tmp");
	enum exit_code code;
	char *path;

	if (!mkdtemp(dir))
		return (enum exit_code)usage_error(SBPRUN,
						   "cannot make '%s': %s", dir,
						   strerror(errno));
	path = arena_text(b->a, "%s/program", dir);
	code = build_executable(b, base, -1, path);
	if (!code && !copy_to(path, to))
		code = (enum exit_code)usage_error(
			SBPRUN, "cannot copy '%s': %s", path, strerror(errno));
	unlink(path);
	rmdir(dir);
	return code;
}

struct model_job {
	struct arena *a;
	const struct options *o;
	int n;			/* -n, or 0 */
};

static enum exit_code compile(const struct model_job *r, int program, int *world)
{
	const char *path = r->o->words.at[0];
	const char *base = base_of(r->a, path);
	struct build b;
	bool stopped = false;
	enum exit_code code = build_start(&b, r->a, r->o);

	if (!code)
		code = build_read(&b, path, shown(r->a, r->o));
	if (code)
		return code;
	*world = b.g->world;
	if (r->n && r->n != *world)
		return (enum exit_code)usage_error(
			SBPRUN, "'%s' is for %d rank%s, but -n is %d", path,
			*world, *world == 1 ? "" : "s", r->n);
	if (!build_one_device(&b))
		return ERRORS;
	if (!build_on_device(&b, DEV_CPU))
		return (enum exit_code)usage_error(
			SBPRUN, "'%s' is for cuda: sbpc --emit=cuda writes "
				"it, nvcc compiles that", path);
	code = build_passes(&b, &stopped);
	if (!code)
		code = build_emit(&b, base);
	if (!code)
		code = link_to(&b, base, program);
	return code;
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
	static const enum option_id id[] = {
		OPT_define, OPT_include,     OPT_model, OPT_keep,
		OPT_arch,   OPT_optimize,    OPT_cc,    OPT_auto,
		OPT_memory, OPT_reproducible};
	static const char *const name[] = {
		"-D", "-I",   "--model", "--keep",   "--arch",
		"-O", "--cc", "--auto",  "--memory", "--reproducible"};

	for (size_t i = 0; i < sizeof id / sizeof *id; i++)
		if (option_given(o, id[i]))
			return usage_error(SBPRUN,
					   "%s is for a .sbp file, and "
					   "'%s' is a program",
					   name[i], o->words.at[0]);
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
