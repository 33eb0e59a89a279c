/*
 * output.c: every file is written under a temporary name beside its own; when
 * all are complete they are renamed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/build.h"

static bool failed(const char *path)
{
	usage_error(SBPC, "cannot write '%s': %s", path, strerror(errno));
	return false;
}

/* What a signal removes. */
static struct outputs *unfinished;

static void remove_and_die(int number)
{
	outputs_abort(unfinished);
	signal(number, SIG_DFL);
	raise(number);
}

/* A file that grows too large is an error of its write. */
static void watch_signals(struct outputs *o)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};

	if (unfinished == o)
		return;
	unfinished = o;
	for (int i = 0; i < 3; i++)
		if (signal(numbers[i], remove_and_die) == SIG_IGN)
			signal(numbers[i], SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

const char *outputs_add(struct outputs *o, const char *path)
{
	char *temporary = arena_text(o->a, "%s.%d.tmp", path, (int)getpid());

	PUSH(o->a, o->path, arena_text(o->a, "%s", path));
	PUSH(o->a, o->temporary, temporary);
	watch_signals(o);
	return temporary;
}

/* A device or a pipe, which renaming would replace. */
static bool is_special(const char *path)
{
	struct stat s;

	return !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

bool outputs_text(struct outputs *o, const char *path, const char *text,
		  size_t n)
{
	FILE *f = fopen(is_special(path) ? path : outputs_add(o, path), "wb");
	bool good;

	if (!f)
		return failed(path);
	good = fwrite(text, 1, n, f) == n;
	if (fclose(f) || !good)
		return failed(path);
	return true;
}

static bool replace(const char *temporary, const char *path)
{
	if (is_special(path)) {
		usage_error(SBPC, "'%s' is not a regular file", path);
		return false;
	}
	return !rename(temporary, path) || failed(path);
}

bool outputs_commit(struct outputs *o)
{
	for (int i = 0; i < o->path.n; i++) {
		if (!replace(o->temporary.at[i], o->path.at[i])) {
			outputs_abort(o);
			return false;
		}
	}
	return true;
}

void outputs_abort(struct outputs *o)
{
	for (int i = 0; i < o->temporary.n; i++)
		unlink(o->temporary.at[i]);
}
