/*
 * compile.c: from C texts to an executable or an object: by the module that
 * holds Clang and LLD, which is loaded on first use.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/clang.h"
#include "codegen/codegen.h"
#include "codegen/compile.h"

char *prefix_path(const char *below)
{
	static char exe[4096];
	char *path = NULL;

	if (!exe[0]) {
		ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

		if (n < 0)
			bug("/proc/self/exe: %s", strerror(errno));
		for (int up = 0; up < 2; up++) {	/* bin/sbpc */
			char *slash = strrchr(exe, '/');

			if (slash)
				*slash = '\0';
		}
	}
	if (asprintf(&path, "%s/%s", exe, below) < 0)
		bug("out of memory");
	return path;
}

/* ---- libraries of the system ---- */

static const char *const library_dirs[] = {
#if defined(__x86_64__)
	"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
	"/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu",
#endif
	"/usr/lib64", "/lib64", "/usr/lib", "/lib", "/usr/local/lib",
};
enum { NDIRS = sizeof library_dirs / sizeof *library_dirs };

#if defined(__aarch64__)
static const char dynamic_linker[] = "/lib/ld-linux-aarch64.so.1";
#else
static const char dynamic_linker[] = "/lib64/ld-linux-x86-64.so.2";
#endif

char *library_find(const char *name)
{
	for (int i = 0; i < NDIRS; i++) {
		char *path = NULL;

		if (asprintf(&path, "%s/%s", library_dirs[i], name) < 0)
			bug("out of memory");
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	return NULL;
}

char *library_sleef(void)
{
	char *path = library_find("libsleef.so");

	return path ? path : library_find("libsleef.so.3");
}

/* ---- the linker's arguments ---- */

enum { MAX_LINK = 96 };
struct link_line {
	const char *at[MAX_LINK];
	int n;
	const char *missing;
};

static void add(struct link_line *l, const char *arg)
{
	if (l->n == MAX_LINK)
		bug("too many libraries");
	l->at[l->n++] = arg;
}

/* A file of the C library's development package. */
static void add_libc(struct link_line *l, const char *name)
{
	char *path = library_find(name);

	if (path)
		add(l, path);
	else if (!l->missing)
		l->missing = name;
}

static void executable_args(struct link_line *l, const struct compile_job *job)
{
	char *sleef = library_sleef();

	add(l, "-dynamic-linker");
	add(l, dynamic_linker);
	add(l, "--hash-style=gnu");
	add(l, "--eh-frame-hdr");
	add(l, "--gc-sections");
	add(l, "--as-needed");
	add(l, "-znow");
	add_libc(l, "crt1.o");
	add_libc(l, "crti.o");
	add(l, "%objects");
	for (int i = 0; i < job->nlibraries; i++)
		add(l, job->libraries[i]);
	if (sleef)
		add(l, sleef);
	for (int i = 0; i < NDIRS; i++) {
		add(l, "-L");
		add(l, library_dirs[i]);
	}
	add_libc(l, "libm.so");
	add_libc(l, "libc.so");
	add_libc(l, "crtn.o");
}

/* ---- the module ---- */

static clang_run_fn *load(char **error)
{
	static clang_run_fn *run;
	char *path;
	void *module;

	if (run)
		return run;
	path = prefix_path("lib/sbpc/sbpc_clang.so");
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		*error = strdup(dlerror());
	else if (!(*(void **)&run = dlsym(module, CLANG_RUN)))
		bug("%s lacks %s", path, CLANG_RUN);
	free(path);
	return run;
}

static bool run_module(const struct compile_job *job, const struct link_line *l,
		       bool pic, const char *path, char **error)
{
	struct clang_source *s = calloc((size_t)job->n + 1, sizeof *s);
	struct clang_job c = {
		.sources = s, .nsources = job->n,
		.include_dir = job->include_dir, .arch = job->arch,
		.opt = job->opt, .pic = pic, .path = path, .link = l->at,
		.nlink = l->n,
	};
	clang_run_fn *run = load(error);
	int status;

	if (!s)
		bug("out of memory");
	for (int i = 0; i < job->n; i++) {
		s[i].name = job->name[i];
		s[i].text = job->text[i];
	}
	status = run ? run(&c, error) : 1;
	free(s);
	if (status == 2)
		bug("the C that was emitted does not compile:\n%s", *error);
	return !status;
}

/* Kernels call SLEEF, which is not there. */
static void name_sleef(char **error)
{
	if (library_sleef() || !*error || !strstr(*error, "Sleef_"))
		return;
	free(*error);
	*error = strdup("SLEEF not found: install libsleef3");
}

bool compile_executable(const struct compile_job *job, const char *path,
			char **error)
{
	struct link_line l = {0};

	executable_args(&l, job);
	if (l.missing) {
		if (asprintf(error,
			     "%s of the C library not found: "
			     "install libc6-dev, or its like",
			     l.missing) < 0)
			bug("out of memory");
		return false;
	}
	if (run_module(job, &l, false, path, error))
		return true;
	name_sleef(error);
	return false;
}

bool compile_object(const struct compile_job *job, const char *path,
		    char **error)
{
	struct link_line l = {.at = {"-r", "%objects"}, .n = 2};

	return run_module(job, &l, true, path, error);
}
