/*
 * cc.c: --cc=CC: the same as compile.c by an external compiler, which must
 * take gcc's options. The texts go to a directory that is removed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/compile.h"

extern char **environ;

struct run {
	char dir[4096];			/* of temporary files */
	LIST(char *) words;		/* the command */
	struct arena *a;
	const struct compile_job *job;
};

static void word(struct run *r, const char *format, ...) PRINTF(2, 3);
static void word(struct run *r, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		bug("out of memory");
	va_end(ap);
	PUSH(r->a, r->words, arena_text(r->a, "%s", text));
	free(text);
}

static char *failure(const char *what, const char *name, int error)
{
	char *text = NULL;

	if (asprintf(&text, "%s '%s': %s", what, name, strerror(error)) < 0)
		bug("out of memory");
	return text;
}

/* ---- files ---- */

static bool make_dir(struct run *r, char **error)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(r->dir, sizeof r->dir, "%s/sbpc-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(r->dir))
		return true;
	*error = failure("cannot make", r->dir, errno);
	return false;
}

static bool write_sources(struct run *r, char **error)
{
	for (int i = 0; i < r->job->n; i++) {
		char *path = arena_text(r->a, "%s/%s", r->dir,
					r->job->name[i]);
		FILE *f = fopen(path, "w");
		bool good = f && fputs(r->job->text[i], f) >= 0;

		if (f && fclose(f))
			good = false;
		if (!good) {
			*error = failure("cannot write", path, errno);
			return false;
		}
	}
	return true;
}

static void remove_dir(struct run *r)
{
	for (int i = 0; i < r->job->n; i++)
		unlink(arena_text(r->a, "%s/%s", r->dir, r->job->name[i]));
	unlink(arena_text(r->a, "%s/messages", r->dir));
	rmdir(r->dir);
}

/* ---- the command ---- */

static bool is_header(const char *name)
{
	size_t n = strlen(name);

	return n > 2 && !strcmp(name + n - 2, ".h");
}

/* CC may hold options of its own: "gcc -m64". */
static void compiler_words(struct run *r, const char *cc)
{
	while (*cc) {
		size_t n = strcspn(cc, " ");

		if (n)
			word(r, "%.*s", (int)n, cc);
		cc += n + strspn(cc + n, " ");
	}
}

static void command(struct run *r, const char *cc, bool object,
		    const char *path)
{
	const struct compile_job *job = r->job;
	char *sleef = library_sleef();

	compiler_words(r, cc);
	word(r, "-std=c11");
	word(r, "-O%d", job->opt);
	word(r, "-ffp-contract=off");
	word(r, "-fno-math-errno");
	word(r, "-Wno-psabi");
	word(r, "-march=%s", job->arch);
	word(r, "-I%s", job->include_dir);
	word(r, "-o");
	word(r, "%s", path);
	if (object) {
		word(r, "-fPIC");
		word(r, "-r");
		word(r, "-nostdlib");
	}
	for (int i = 0; i < job->n; i++)
		if (!is_header(job->name[i]))
			word(r, "%s/%s", r->dir, job->name[i]);
	if (object)
		return;
	for (int i = 0; i < job->nlibraries; i++)
		word(r, "%s", job->libraries[i]);
	word(r, "-Wl,--as-needed");
	if (sleef)
		word(r, "%s", sleef);
	word(r, "-lm");
	word(r, "-ldl");
	word(r, "-lpthread");
	free(sleef);
}

/* What the compiler said. */
static char *messages(const char *path)
{
	FILE *f = fopen(path, "r");
	struct text t = {0};
	char part[4096];
	size_t n;

	text_add(&t, "%s", "");
	while (f && (n = fread(part, 1, sizeof part, f)) > 0)
		text_add_n(&t, part, n);
	if (f)
		fclose(f);
	return t.at;
}

static bool spawn(struct run *r, char **error)
{
	char *log = arena_text(r->a, "%s/messages", r->dir);
	posix_spawn_file_actions_t files;
	int status = 0, failed;
	pid_t pid;

	PUSH(r->a, r->words, NULL);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 2, log,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&files, 2, 1);
	failed = posix_spawnp(&pid, r->words.at[0], &files, NULL, r->words.at,
			      environ);
	posix_spawn_file_actions_destroy(&files);
	if (failed) {
		*error = failure("cannot run", r->words.at[0], failed);
		return false;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!status)
		return true;
	*error = messages(log);
	if (!**error) {
		free(*error);
		if (asprintf(error, "'%s' failed without a word",
			     r->words.at[0]) < 0)
			bug("out of memory");
	}
	return false;
}

bool compile_with_cc(const char *cc, const struct compile_job *job,
		     bool object, const char *path, char **error)
{
	struct run r = {.a = arena_new(), .job = job};
	bool good = make_dir(&r, error);

	if (good) {
		good = write_sources(&r, error);
		if (good) {
			command(&r, cc, object, path);
			good = spawn(&r, error);
		}
		remove_dir(&r);
	}
	arena_free(r.a);
	return good;
}
