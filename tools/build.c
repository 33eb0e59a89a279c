/*
 * build.c: one compilation: read, passes, emit, compile and link.
 */
#include "tools/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- options ---- */

/* "-D n=8": NAME and VALUE. */
static bool add_define(struct arena *a, const char *text, struct define *d)
{
	const char *equal = strchr(text, '=');

	if (!equal || equal == text)
		return false;
	d->name = arena_text(a, "%.*s", (int)(equal - text), text);
	d->value = equal + 1;
	return true;
}

/* Adds the names of "a,b" to the list of kept ones. */
static void add_keep(struct build *b, const char *names)
{
	const char **keep = NEW_N(b->a, const char *,
				  (size_t)b->front.nkeep + strlen(names) + 1);

	memcpy(keep, b->front.keep,
	       sizeof *keep * (size_t)b->front.nkeep);
	b->front.keep = keep;
	while (*names) {
		size_t n = strcspn(names, ",");

		if (n)
			keep[b->front.nkeep++] =
				arena_text(b->a, "%.*s", (int)n, names);
		names += n + (names[n] == ',');
	}
}

static const char *no_names[1];

enum exit_code build_start(struct build *b, struct arena *a,
			   const struct options *o)
{
	struct define *d = NEW_N(a, struct define, o->given.n + 1);
	const char **dirs = NEW_N(a, const char *, o->given.n + 1);
	const char *opt = option_value(o, OPT_optimize);
	char *prelude;

	*b = (struct build){.a = a, .o = o};
	b->front.keep = no_names;
	for (int i = 0; i < o->given.n; i++) {
		const struct option *g = &o->given.at[i];

		if (g->id == OPT_include)
			dirs[b->front.ninclude++] = g->value;
		else if (g->id == OPT_keep && !*g->value)
			return usage_error(o->tool, "--keep wants a name");
		else if (g->id == OPT_keep)
			add_keep(b, g->value);
		else if (g->id == OPT_define &&
			 !add_define(a, g->value, &d[b->front.ndefines++]))
			return usage_error(o->tool,
					   "-D wants NAME=EXPR, not '%s'",
					   g->value);
	}
	if (opt && (opt[0] < '0' || opt[0] > '3' || opt[1]))
		return usage_error(o->tool, "-O wants 0, 1, 2 or 3, not '%s'",
				   opt);
	if (option_given(o, OPT_cc) && !*option_value(o, OPT_cc))
		return usage_error(o->tool, "--cc wants a compiler");
	b->front.defines = d;
	b->front.include = dirs;
	b->front.model = option_value(o, OPT_model);
	b->front.automatic = option_given(o, OPT_auto);
	prelude = prefix_path("lib/sbpc/prelude.sbp");
	b->front.prelude = arena_text(a, "%s", prelude);
	free(prelude);
	return DONE;
}

/* ---- stations ---- */

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && !strcmp(s + n - k, end);
}

/* A graph that a dump wrote. */
static enum exit_code read_graph(struct build *b, const char *path)
{
	static const enum option_id id[] = {OPT_define, OPT_include, OPT_model,
					    OPT_keep, OPT_auto};
	static const char *const name[] = {"-D", "-I", "--model", "--keep",
					   "--auto"};
	const struct source *s = source_read(path);

	for (int i = 0; i < 5; i++)
		if (option_given(b->o, id[i]))
			return usage_error(b->o->tool,
					   "%s is for the source "
					   "of a model, not for its graph",
					   name[i]);
	if (!s)
		return usage_error(b->o->tool, "cannot read '%s': %s", path,
				   strerror(errno));
	b->g = graph_read(b->a, s);
	return b->g ? DONE : ERRORS;
}

enum exit_code build_read(struct build *b, const char *path, const char *keep)
{
	int before = b->front.nkeep;

	if (keep)
		add_keep(b, keep);
	b->front.nshown = b->front.nkeep - before;
	b->path = path;
	if (ends_in(path, ".ir"))
		return read_graph(b, path);
	switch (front_compile(b->a, path, &b->front, &b->files, &b->g)) {
	case FRONT_OK:
		return DONE;
	case FRONT_ERRORS:
		return ERRORS;
	case FRONT_USAGE:
		break;
	}
	return USAGE;
}

static enum exit_code check_passes(const struct options *o,
				   const struct pass_options *p)
{
	const char *named[] = {p->dump_before, p->dump_after, p->diff,
			       p->stop_after, p->only};
	int n = sizeof named / sizeof *named;

	for (int i = 0; i < n; i++)
		if (named[i] && !pass_exists(named[i]))
			return usage_error(o->tool,
					   "no pass '%s'; see --list-passes",
					   named[i]);
	return DONE;
}

static bool same_file(const struct stat *a, const char *path)
{
	struct stat b;

	return !stat(path, &b) && a->st_dev == b.st_dev &&
	       a->st_ino == b.st_ino;
}

bool build_reads(const struct build *b, const char *path)
{
	struct stat s;

	if (stat(path, &s))
		return false;
	for (int i = 0; i < source_count(); i++)
		if (source_nth(i)->file && same_file(&s, source_nth(i)->path))
			return true;
	for (int i = 0; i < b->files.at.n; i++)
		if (same_file(&s, b->files.at.at[i]))
			return true;
	return false;
}

/* A new file for each try. */
static bool open_explain(struct build *b)
{
	const char *path = option_value(b->o, OPT_explain);

	if (!path)
		return true;
	if (*path && build_reads(b, path)) {
		errno = EEXIST;
		return false;
	}
	b->p.explain = *path ? fopen(path, "w") : stdout;
	return b->p.explain;
}

/* False if something could not be written. */
static bool close_explain(struct build *b)
{
	FILE *f = b->p.explain;

	b->p.explain = NULL;
	if (!f)
		return !option_given(b->o, OPT_explain);
	return f == stdout || !fclose(f);
}

static enum exit_code read_topology(struct build *b)
{
	const char *path = option_value(b->o, OPT_topology);
	bool cannot = false;

	if (!path)
		return DONE;
	if (!topology_read(b->a, path, &b->topology, &cannot))
		return cannot ? usage_error(b->o->tool, "cannot read '%s': %s",
					    path, strerror(errno)) :
				USAGE;
	if (!topology_fits(&b->topology, b->g))
		return USAGE;
	predict_along(&b->topology);
	return DONE;
}

bool build_on_device(const struct build *b, enum device d)
{
	for (int i = 0; i < b->g->placements.n; i++)
		if (b->g->placements.at[i]->device != d)
			return false;
	return true;
}

static const struct placement *first_on(const struct build *b, enum device d)
{
	for (int i = 0; i < b->g->placements.n; i++)
		if (b->g->placements.at[i]->device == d)
			return b->g->placements.at[i];
	return NULL;
}

bool build_one_device(const struct build *b)
{
	const struct placement *cpu = first_on(b, DEV_CPU);
	const struct placement *cuda = first_on(b, DEV_CUDA);

	if (!cpu || !cuda)
		return true;
	diag_error(cuda->span,
		   "model '%s' is on cuda ('%s') and on cpu "
		   "('%s'); a program is for one of them",
		   b->g->name, cuda->name, cpu->name);
	diag_note(cpu->span, "'%s' is on cpu", cpu->name);
	return false;
}

/* The products of graphics processors are not our own. */
static enum exit_code check_reproducible(const struct build *b)
{
	if (!option_given(b->o, OPT_reproducible) ||
	    build_on_device(b, DEV_CPU))
		return DONE;
	return usage_error(b->o->tool,
			   "--reproducible is for cpu, and model "
			   "'%s' is on cuda ('%s')",
			   b->g->name, first_on(b, DEV_CUDA)->name);
}

static enum exit_code run_once(struct build *b, const struct pass_options *p,
			       bool *stopped)
{
	uint64_t seed;
	bool good;

	seed_read(b->o, &seed);
	b->p = (struct program){
		.arena = b->a, .g = b->g,
		.reproducible = option_given(b->o, OPT_reproducible),
		.simulate = option_given(b->o, OPT_simulate),
		.seed = seed,
		.memory_limit = b->p.memory_limit,
		.memory_aim = b->p.memory_aim,
		.memory_tries = b->p.memory_tries};
	good = open_explain(b) && passes_run(&b->p, p, stopped);
	if (!close_explain(b))
		return (enum exit_code)usage_error(
			b->o->tool, "cannot write '%s': %s",
			option_value(b->o, OPT_explain), strerror(errno));
	return good && !diag_errors() ? DONE : ERRORS;
}

/* Whether a step is too large, and the model was read anew for a lower aim. */
static bool try_again(struct build *b, enum exit_code *code)
{
	struct front_files files = b->files;

	if (memory_over(&b->p) <= 0)
		return false;
	if (!memory_lower(&b->p)) {
		memory_complain(b);
		*code = ERRORS;
		return false;
	}
	*code = build_read(b, b->path, NULL);
	b->files = files;
	return !*code;
}

enum exit_code build_passes(struct build *b, bool *stopped)
{
	const struct options *o = b->o;
	struct pass_options p = {
		.dump_before = option_value(o, OPT_dump_before),
		.dump_after = option_value(o, OPT_dump_after),
		.diff = option_value(o, OPT_diff_pass),
		.stop_after = option_value(o, OPT_stop_after),
		.only = option_value(o, OPT_passes),
		.time = option_given(o, OPT_time_passes),
		.stats = option_given(o, OPT_stats),
		.out = stdout,
	};
	enum exit_code code = DONE;

	if (check_passes(o, &p) || check_reproducible(b) || read_topology(b) ||
	    memory_read(o, &b->p.memory_limit))
		return USAGE;
	do {
		code = run_once(b, &p, stopped);
	} while (!code && try_again(b, &code));
	return code;
}

const char *base_clean(struct arena *a, const char *base)
{
	char *s = arena_text(a, "%s", base);

	for (char *c = s; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\' ||
		    (c[0] == '?' && c[1] == '?'))
			*c = '_';
	return s;
}

enum exit_code build_emit(struct build *b, const char *base)
{
	emit_program(&b->p, base, &b->emitted);
	return diag_errors() ? ERRORS : DONE;
}

void build_end(struct build *b)
{
	for (int i = 0; i < b->emitted.at.n; i++)
		text_free(&b->emitted.at.at[i].text);
	b->emitted.at.n = 0;
}

/* ---- compiling ---- */

/* The file with main(), as it is emitted for all ranks, for RANK alone. */
static const char *main_for(struct build *b, const char *text, int rank)
{
	const char *all = "_program, -1,", *at = strstr(text, all);

	if (rank < 0)
		return text;
	if (!at)
		bug("no rank in the emitted main");
	return arena_text(b->a, "%.*s_program, %d,%s", (int)(at - text), text,
			  rank, at + strlen(all));
}

static void fill_job(struct build *b, const char *base, int rank,
		     bool with_main, struct compile_job *job)
{
	int n = b->emitted.at.n;
	const char **name = NEW_N(b->a, const char *, n);
	const char **text = NEW_N(b->a, const char *, n);
	const char *arch = option_value(b->o, OPT_arch);
	const char *opt = option_value(b->o, OPT_optimize);

	for (int i = 0; i < n; i++) {
		const struct emitted *e = &b->emitted.at.at[i];
		bool main = !strcmp(e->suffix, "_main.c");

		if (main && !with_main)
			continue;
		name[job->n] = arena_text(b->a, "%s%s", base, e->suffix);
		text[job->n++] =
			main ? main_for(b, e->text.at, rank) : e->text.at;
	}
	job->name = name;
	job->text = text;
	job->include_dir = prefix_path("include/sbpc");
	job->arch = arch ? arch : "native";
	job->opt = opt ? *opt - '0' : 2;
}

static bool compile_by(const char *cc, const struct compile_job *job,
		       bool object, const char *path, char **error)
{
	if (cc)
		return compile_with_cc(cc, job, object, path, error);
	if (object)
		return compile_object(job, path, error);
	return compile_executable(job, path, error);
}

static enum exit_code compile(struct build *b, const struct compile_job *job,
			      bool object, const char *path)
{
	char *error = NULL;

	if (compile_by(option_value(b->o, OPT_cc), job, object, path, &error))
		return DONE;
	usage_error(b->o->tool, "%s", error);
	free(error);
	return USAGE;
}

enum exit_code build_executable(struct build *b, const char *base, int rank,
				const char *path)
{
	struct compile_job job = {0};
	const char *runtime = prefix_path("lib/sbpc/libsbp.a");

	fill_job(b, base, rank, true, &job);
	job.libraries = &runtime;
	job.nlibraries = 1;
	return compile(b, &job, false, path);
}

enum exit_code build_object(struct build *b, const char *base,
			    const char *path)
{
	struct compile_job job = {0};

	fill_job(b, base, -1, false, &job);
	return compile(b, &job, true, path);
}
