/*
 * clang.h: between compile.c and the module that holds Clang and LLD.
 * Plain C that is also C++.
 */
#ifndef SBPC_CLANG_H
#define SBPC_CLANG_H

#ifdef __cplusplus
extern "C" {
#endif

struct clang_source {
	const char *name, *text;	/* "m.c"; "m.h" can be included */
};

struct clang_job {
	const struct clang_source *sources;
	int nsources;
	const char *include_dir;
	const char *arch;	/* "native", or clang's name of a cpu */
	int opt;		/* 0..3 */
	int pic;		/* position-independent */
	const char *path;	/* what is written */
	/* After the linker's name and "-o PATH"; "%objects" stands for what
	 * was compiled. */
	const char *const *link;
	int nlink;
};

/* Compiles the sources, then links. 0, or an error's text in *error
 * (malloc'ed): 1 the linker's or about ARCH, 2 the compiler's. */
typedef int clang_run_fn(const struct clang_job *job, char **error);
#define CLANG_RUN "sbpc_clang_run"

#ifdef __cplusplus
}
#endif
#endif
