/*
 * program.c: a model that is compiled to be run at once. The first of the
 * command line's words names it, the others are the program's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/build.h"

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

enum exit_code program_read(struct build *b, struct arena *a,
			    const struct options *o)
{
	const char *path = o->words.at[0];
	enum exit_code code = build_start(b, a, o);

	if (!code)
		code = build_read(b, path, shown(a, o));
	if (code)
		return code;
	if (!build_one_device(b))
		return ERRORS;
	if (build_on_device(b, DEV_CPU))
		return DONE;
	return (enum exit_code)usage_error(
		o->tool,
		"'%s' is for cuda: sbpc --emit=cuda writes it, nvcc "
		"compiles that",
		path);
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
	const char *name = path_base(path);
	const char *dot = strrchr(name, '.');
	int n = (int)(dot && dot > name ? dot - name : (long)strlen(name));

	return base_clean(a, arena_text(a, "%.*s", n, name));
}

/* The linker writes to a directory of its own; the result goes to TO. */
static enum exit_code link_to(struct build *b, const char *base, int to)
{
	const char *tmp = getenv("TMPDIR");
	char *dir =
		arena_text(b->a, "%s/sbpc-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	enum exit_code code;
	char *path;

	if (!mkdtemp(dir))
		return (enum exit_code)usage_error(b->o->tool,
						   "cannot make '%s': %s", dir,
						   strerror(errno));
	path = arena_text(b->a, "%s/program", dir);
	code = build_executable(b, base, -1, path);
	if (!code && !copy_to(path, to))
		code = (enum exit_code)usage_error(b->o->tool,
						   "cannot copy '%s': %s", path,
						   strerror(errno));
	unlink(path);
	rmdir(dir);
	return code;
}

enum exit_code program_make(struct build *b, int to)
{
	const char *base = base_of(b->a, b->path);
	bool stopped = false;
	enum exit_code code = build_passes(b, &stopped);

	if (!code)
		code = plan_check(b);
	if (!code)
		code = build_emit(b, base);
	if (!code)
		code = link_to(b, base, to);
	build_end(b);
	return code;
}
