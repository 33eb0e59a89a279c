/*
 * build.h: one compilation, as sbpc and sbprun both do it; and files that
 * are written together.
 */
#ifndef SBPC_BUILD_H
#define SBPC_BUILD_H

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "tools/options.h"

/* ---- build.c ---- */

enum exit_code { DONE = 0, ERRORS = 1, USAGE = 2 };

struct build {
	struct arena *a;
	const struct options *o;
	struct front_options front;
	const char *path;
	struct front_files files;	/* that were read */
	struct graph *g;
	struct topology topology;	/* --topology */
	struct program p;
	struct emitted_files emitted;
};

/* Checks the options that both tools have. */
enum exit_code build_start(struct build *b, struct arena *a,
			   const struct options *o);
/* Reads PATH; KEEP are more names to keep, or NULL. */
enum exit_code build_read(struct build *b, const char *path,
			  const char *keep);
/* Whether PATH is a file that was read: a source, a const's data. */
bool build_reads(const struct build *b, const char *path);
/* All placements are of this kind. */
bool build_on_device(const struct build *b, enum device d);
/* False, and an error, if they are of both: nothing compiles that. */
bool build_one_device(const struct build *b);
/* Runs the passes; *stopped when an option ended them early. */
enum exit_code build_passes(struct build *b, bool *stopped);
/* BASE with '_' for what no name in an #include can have. */
const char *base_clean(struct arena *a, const char *base);
/* Prints C. BASE begins the names of the files, as they include each other. */
enum exit_code build_emit(struct build *b, const char *base);
/* Frees what was emitted. */
void build_end(struct build *b);
/* Compiles what was emitted: to an executable for all ranks (RANK -1) or for
 * one; or to an object without main. */
enum exit_code build_executable(struct build *b, const char *base, int rank,
				const char *path);
enum exit_code build_object(struct build *b, const char *base,
			    const char *path);

/* ---- program.c: a model that is run at once ---- */

/* Reads the model that O's first word names, for cpu. */
enum exit_code program_read(struct build *b, struct arena *a,
			    const struct options *o);
/* Compiles it to the descriptor TO, and ends the build. */
enum exit_code program_make(struct build *b, int to);

/* ---- simulate.c ---- */

/* The seed of --simulate, 0 where none is given. */
bool seed_read(const struct options *o, uint64_t *seed);
/* Compiles and runs what O asks for; returns only what went wrong. */
enum exit_code simulate(struct arena *a, const struct options *o);

/* ---- plan_check.c ---- */

/* Whether the plan keeps to --plan-check, --max-boxing-bytes and --deny. */
enum exit_code plan_check(const struct build *b);

/* ---- memory.c ---- */

/* "4096", "64KiB". */
bool size_read(const char *s, int64_t *size);
/* --memory; 0: not given. */
enum exit_code memory_read(const struct options *o, int64_t *limit);
/* By how much a compiled step is above the limit. */
int64_t memory_over(const struct program *p);
/* Sets a lower aim for another try; false if that is no use. */
bool memory_lower(struct program *p);
void memory_complain(const struct build *b);

/* ---- archive.c ---- */

/* Writes a static library of OBJECT and the members of the runtime's. */
bool archive_write(const char *path, const char *object, const char *runtime,
		   char **error);

/* ---- output.c: files that appear together, or not at all ---- */

struct outputs {
	struct arena *a;
	LIST(char *) path;
	LIST(char *) temporary;
};
/* A temporary name for PATH, in its directory. */
const char *outputs_add(struct outputs *o, const char *path);
/* The same, with its text. False after an error, which is reported. */
bool outputs_text(struct outputs *o, const char *path, const char *text,
		  size_t n);
bool outputs_commit(struct outputs *o);
void outputs_abort(struct outputs *o);

#endif
