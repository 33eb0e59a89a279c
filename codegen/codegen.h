/*
 * codegen.h: from a program whose buffers are placed to text and objects.
 * e is the emitter, everywhere.
 */
#ifndef SBPC_CODEGEN_H
#define SBPC_CODEGEN_H

#include "passes/passes.h"

/* ---- target.def, target_c.c, target_cuda.c: all that differs ---- */

struct target;
const struct target *target_of(const struct program *p);

/* ---- program.c: a step: buffers, kernels, calls, communication ---- */

/* One emitted file: its name is OUT + suffix. */
struct emitted {
	const char *suffix;	/* ".c", ".h", "_class1.c", ".cu" */
	struct text text;
};
struct emitted_files {
	LIST(struct emitted) at;
};
/* BASE is the basename of OUT, as #include and the head comments name it. */
void emit_program(struct program *p, const char *base,
		  struct emitted_files *out);
void emit_header(struct program *p, const char *base, struct text *out);
void emit_dot(const struct program *p, struct text *out);

/* ---- kernel.c: the bodies of kernels, and how they are called ---- */

/* A call in a step. Calls that differ only in values and numbers and repeat
 * with a period become a loop over a table. */
enum arg_kind { ARG_VALUE, ARG_INT, ARG_TEXT };
struct arg {
	enum arg_kind kind;
	const struct value *v;	/* address of its buffer ... */
	const char *ctype;	/* ... cast to a pointer to this */
	int64_t i;
	const char *text;	/* interned */
};
struct call {
	const char *function;	/* interned */
	LIST(struct arg) args;
	const struct node *n;
	bool status;		/* returns sbp_status: wrapped in SBP_TRY */
};

struct emitter {
	struct arena *arena;
	struct program *p;
	const struct target *target;
	struct text kernels;	/* definitions of functions, each once */
	Name prefix;		/* the model's */
	/* kernel.c's own: functions by their text, names taken. */
	void *functions;
};
/* Defines the function of node N in e->kernels unless an equal one is there,
 * and fills the call. Nodes of kind K_VIEW give no call: returns false. */
bool kernel_call(struct emitter *e, const struct node *n, struct call *c);

/* ---- clang.cc: compiler and linker in this process ---- */

struct compile_job {
	const char *const *name;	/* for messages: m.c */
	const char *const *text;	/* C sources in memory */
	int n;
	const char *include_dir;	/* of sbp.h */
	const char *const *libraries;	/* archives to link, in order */
	int nlibraries;
	const char *arch;		/* "native", or clang's name */
	int opt;			/* 0..3 */
	const char *main_object;	/* NULL, or an object that has main */
};
/* Written to PATH. False with a message in *error (malloc'ed). These live in
 * a module that is loaded on first use: see compile.c. */
bool compile_executable(const struct compile_job *job, const char *path,
			char **error);
bool compile_object(const struct compile_job *job, const char *path,
		    char **error);
/* The same by an external compiler, --cc=CC. */
bool compile_with_cc(const char *cc, const struct compile_job *job,
		     bool object, const char *path, char **error);

#endif
