/*
 * sbpc.c: the compiler's main: what is asked for, from which file, to where.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/build.h"

enum kind {
	EXECUTABLE, C, CUDA, OBJECT, LIBRARY, HEADER, IR, PLAN, PLAN_JSON, DOT,
	NKINDS
};
static const char *const kind_names[NKINDS] = {
	"executable", "c", "cuda", "obj", "lib", "header", "ir", "plan",
	"plan-json", "dot",
};

struct job {
	struct options o;
	struct build b;
	struct outputs outputs;
	const char *path;	/* the model's file */
	const char *out;	/* -o, or made from PATH */
	const char *base;	/* the last part of OUT */
	enum kind kind;
	bool to_stdout;
};

/* ---- the command line ---- */

static bool read_kind(struct job *j)
{
	const char *text = option_value(&j->o, OPT_emit);

	if (!text)
		return true;
	for (int i = C; i < NKINDS; i++) {
		if (!strcmp(text, kind_names[i])) {
			j->kind = (enum kind)i;
			return true;
		}
	}
	usage_error(SBPC,
		    "--emit wants c, cuda, obj, lib, header, ir, plan, "
		    "plan-json or dot, not '%s'",
		    text);
	return false;
}

/* PATH without the ending. */
static const char *strip(struct arena *a, const char *path, const char *end)
{
	size_t n = strlen(path), k = strlen(end);

	if (n <= k || strcmp(path + n - k, end) || path[n - k - 1] == '/')
		return path;
	return arena_text(a, "%.*s", (int)(n - k), path);
}

/* Asked before the work, and before the linker says it in its words. */
static enum exit_code check_folder(struct arena *a, const char *out)
{
	int n = (int)(path_base(out) - out);
	char *folder = n ? arena_text(a, "%.*s", n, out) : ".";

	if (!access(folder, W_OK))
		return DONE;
	return (enum exit_code)usage_error(SBPC, "cannot write '%s': %s", out,
					   strerror(errno));
}

/* OUT begins the names of what is written; "-o m.c" means the same as "-o m"
 * where several files come out. */
static enum exit_code name_output(struct job *j, struct arena *a)
{
	const char *out = option_value(&j->o, OPT_output), *base;

	j->to_stdout = !out && j->kind != EXECUTABLE && j->kind != OBJECT &&
		       j->kind != LIBRARY;
	if (!out) {
		out = strip(a, path_base(j->path), ".sbp");
		out = strip(a, out, ".ir");
		if (!strcmp(out, j->path))
			out = arena_text(a, "%s.out", out);
	}
	if (j->kind == C)
		out = strip(a, out, ".c");
	if (j->kind == CUDA)
		out = strip(a, out, ".cu");
	j->out = out;
	base = strip(a, strip(a, path_base(out), ".h"), ".o");
	j->base = base_clean(a, base);
	if ((j->kind == C || j->kind == CUDA) && !j->to_stdout &&
	    strcmp(base, j->base))
		return (enum exit_code)usage_error(
			SBPC, "no #include can name '%s.h': choose another "
			      "name with -o", base);
	if (j->kind == EXECUTABLE || j->kind == OBJECT || j->kind == LIBRARY)
		return check_folder(a, out);
	return DONE;
}

/* ---- what comes out ---- */

static bool write_text(struct job *j, const char *path, const struct text *t)
{
	const char *at = t->at ? t->at : "";

	if (!j->to_stdout)
		return outputs_text(&j->outputs, path, at, t->n);
	return fwrite(at, 1, t->n, stdout) == t->n;
}

static enum exit_code write_all(struct job *j, struct text *t)
{
	bool good = write_text(j, j->out, t);

	text_free(t);
	return good ? DONE : USAGE;
}

static enum exit_code write_sources(struct job *j)
{
	const struct emitted_files *e = &j->b.emitted;

	for (int i = 0; i < e->at.n; i++) {
		const struct emitted *f = &e->at.at[i];
		char *path = arena_text(j->b.a, "%s%s", j->out, f->suffix);

		if (j->to_stdout)
			printf("%s/* ---- %s%s ---- */\n\n", i ? "\n" : "",
			       j->base, f->suffix);
		if (!write_text(j, path, &f->text))
			return USAGE;
	}
	return DONE;
}

static enum exit_code write_executables(struct job *j)
{
	if (!option_given(&j->o, OPT_per_rank))
		return build_executable(&j->b, j->base, -1,
					outputs_add(&j->outputs, j->out));
	for (int rank = 0; rank < j->b.g->world; rank++) {
		char *path = arena_text(j->b.a, "%s%d", j->out, rank);
		enum exit_code code =
			build_executable(&j->b, j->base, rank,
					 outputs_add(&j->outputs, path));

		if (code)
			return code;
	}
	return DONE;
}

static enum exit_code write_library(struct job *j)
{
	char *error = NULL, *runtime = prefix_path("lib/sbpc/libsbp.a");
	char *object = arena_text(j->b.a, "%s.o", outputs_add(&j->outputs,
							      j->out));
	const char *path = j->outputs.temporary.at[j->outputs.path.n - 1];
	enum exit_code code = build_object(&j->b, j->base, object);

	if (!code && !archive_write(path, object, runtime, &error))
		code = (enum exit_code)usage_error(SBPC, "%s", error);
	remove(object);
	free(runtime);
	return code;
}

/* plan.c prints to a FILE. */
static enum exit_code write_plan(struct job *j)
{
	struct text t = {0};
	FILE *f = open_memstream(&t.at, &t.n);

	if (!f)
		bug("out of memory");
	if (j->kind == PLAN)
		plan_print(&j->b.p, f);
	else
		plan_print_json(&j->b.p, f);
	fclose(f);
	return write_all(j, &t);
}

static enum exit_code write_kind(struct job *j)
{
	struct text t = {0};

	switch (j->kind) {
	case EXECUTABLE:
		return write_executables(j);
	case C:
	case CUDA:
		return write_sources(j);
	case OBJECT:
		return build_object(&j->b, j->base,
				    outputs_add(&j->outputs, j->out));
	case LIBRARY:
		return write_library(j);
	case PLAN:
	case PLAN_JSON:
		return write_plan(j);
	case HEADER:
		emit_header(&j->b.p, j->base, &t);
		break;
	case DOT:
		emit_dot(&j->b.p, &t);
		break;
	case IR:
	case NKINDS:
		graph_print(j->b.g, &t);
		break;
	}
	return write_all(j, &t);
}

/* ---- the depfile ---- */

static void add_path(struct text *t, const char *path)
{
	text_add(t, " \\\n  ");
	for (; *path; path++) {
		if (*path == ' ' || *path == '#')
			text_add(t, "\\");
		text_add(t, *path == '$' ? "$$" : "%c", *path);
	}
}

static bool write_depfile(struct job *j)
{
	const char *target = option_value(&j->o, OPT_depend_target);
	const char *path = option_value(&j->o, OPT_depend_file);
	struct text t = {0};
	bool good;

	if (!path && !option_given(&j->o, OPT_depend))
		return true;
	text_add(&t, "%s:", target ? target : j->out);
	for (int i = 0; i < source_count(); i++)
		if (source_nth(i)->file)
			add_path(&t, source_nth(i)->path);
	for (int i = 0; i < j->b.files.at.n; i++)
		add_path(&t, j->b.files.at.at[i]);
	text_add(&t, "\n");
	if (!path)
		path = arena_text(j->b.a, "%s.d", j->out);
	good = outputs_text(&j->outputs, path, t.at, t.n);
	text_free(&t);
	return good;
}

/* ---- the stations ---- */

/* "3 add: S(0), B -> S(0)": a line for each node and signature. */
static void list_signatures(struct job *j)
{
	const struct graph *g = j->b.g;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		struct sigs s = op_signatures(j->b.a, n);

		for (int k = 0; k < s.n; k++) {
			printf("%d %s:", n->id, op_info(n->op)->name);
			for (int t = 0; t < n->nin; t++)
				printf("%s %s", t ? "," : "",
				       sbp_text(s.at[k].in[t]));
			printf(" ->");
			for (int t = 0; t < n->nout; t++)
				printf("%s %s", t ? "," : "",
				       sbp_text(s.at[k].out[t]));
			printf("\n");
		}
	}
}

/* C is for cpu, CUDA for cuda. */
static enum exit_code check_device(const struct job *j)
{
	bool cuda = j->kind == CUDA;
	bool compiles = j->kind == EXECUTABLE || j->kind == OBJECT ||
			j->kind == LIBRARY || j->kind == C || cuda;

	if (compiles && !build_one_device(&j->b))
		return ERRORS;
	if (!compiles || build_on_device(&j->b, cuda ? DEV_CUDA : DEV_CPU))
		return DONE;
	if (cuda)
		return (enum exit_code)usage_error(
			SBPC, "--emit=cuda: model '%s' is on cpu; "
			      "its placements would have to be cuda[...]",
			j->b.g->name);
	return (enum exit_code)usage_error(
		SBPC, "model '%s' is on cuda: use --emit=cuda, and compile "
		      "that with nvcc",
		j->b.g->name);
}

/* Everything before the passes. *done: nothing is left to do. */
static enum exit_code read_model(struct job *j, bool *done)
{
	const char *dump = option_value(&j->o, OPT_dump_after);
	struct text t = {0};
	enum exit_code code;

	*done = true;
	if (dump && !strcmp(dump, "parse")) {
		switch (front_print_tree(j->b.a, j->path, &t)) {
		case FRONT_OK:
			fwrite(t.at, 1, t.n, stdout);
			text_free(&t);
			return DONE;
		case FRONT_ERRORS:
			return ERRORS;
		case FRONT_USAGE:
			return USAGE;
		}
	}
	code = build_read(&j->b, j->path, NULL);
	if (code)
		return code;
	*done = option_given(&j->o, OPT_list_signatures);
	if (*done)
		list_signatures(j);
	return check_device(j);
}

/* The graph alone has no plan that could be checked, and nvcc, which compiles
 * emitted CUDA, has its own architectures. */
static enum exit_code check_kind(const struct job *j)
{
	static const enum option_id id[] = {OPT_plan_check, OPT_deny,
					    OPT_max_boxing_bytes,
					    OPT_topology, OPT_explain};
	static const char *const name[] = {"plan-check", "deny",
					   "max-boxing-bytes", "topology",
					   "explain"};

	for (int i = 0; i < 5 && j->kind == IR; i++)
		if (option_given(&j->o, id[i]))
			return (enum exit_code)usage_error(
				SBPC, "--emit=ir makes no plan for --%s",
				name[i]);
	if (j->kind == CUDA && option_given(&j->o, OPT_arch))
		return (enum exit_code)usage_error(
			SBPC, "--arch is for cpu code: give nvcc its -arch "
			      "when it compiles what --emit=cuda writes");
	if (j->kind != EXECUTABLE && option_given(&j->o, OPT_per_rank))
		return (enum exit_code)usage_error(
			SBPC,
			"--per-rank is for executables, not for "
			"--emit=%s",
			kind_names[j->kind]);
	if (option_given(&j->o, OPT_depend_target) &&
	    !option_given(&j->o, OPT_depend) &&
	    !option_given(&j->o, OPT_depend_file))
		return (enum exit_code)usage_error(
			SBPC, "-MT names the target of -MD or -MF");
	return DONE;
}

static enum exit_code compile(struct job *j)
{
	bool done = false;
	enum exit_code code = check_kind(j);

	if (!code)
		code = read_model(j, &done);

	if (code || done)
		return code;
	if (j->kind != IR) {
		code = build_passes(&j->b, &done);
		if (!code && !done)
			code = plan_check(&j->b);
		if (code || done)
			return code;
	}
	if (j->kind <= LIBRARY)
		code = build_emit(&j->b, j->base);
	if (!code)
		code = write_kind(j);
	if (!code && !write_depfile(j))
		code = USAGE;
	return code;
}

static enum exit_code written_twice(const char *path)
{
	return (enum exit_code)usage_error(SBPC, "'%s' would be written twice",
					   path);
}

/* Nothing that is written replaces what was read, or another output. */
static enum exit_code check_outputs(const struct job *j)
{
	const char *explain = option_value(&j->o, OPT_explain);

	for (int i = 0; i < j->outputs.path.n; i++) {
		const char *path = j->outputs.path.at[i];

		if (build_reads(&j->b, path))
			return (enum exit_code)usage_error(
				SBPC,
				"'%s' was read, and would be "
				"overwritten",
				path);
		for (int k = 0; k < i; k++)
			if (!strcmp(j->outputs.path.at[k], path))
				return written_twice(path);
		if (explain && !strcmp(explain, path))
			return written_twice(path);
	}
	return DONE;
}

static enum exit_code check_words(const struct options *o)
{
	int n = o->words.n;

	if (n == 1)
		return DONE;
	if (o->before == 1)
		return (enum exit_code)usage_error(
			SBPC, "what follows '--' is for the program: use "
			      "--simulate, or sbprun");
	return (enum exit_code)usage_error(SBPC,
					   n ? "one model file a run, not %d"
					     : "which model file? see --help",
					   n);
}

static enum exit_code run(struct job *j, struct arena *a)
{
	enum exit_code code = check_words(&j->o);

	if (code)
		return code;
	j->path = j->o.words.at[0];
	j->outputs.a = a;
	code = build_start(&j->b, a, &j->o);
	if (code || !read_kind(j))
		return USAGE;
	code = name_output(j, a);
	if (!code)
		code = compile(j);
	build_end(&j->b);
	if (!code)
		code = check_outputs(j);
	if (code)
		outputs_abort(&j->outputs);
	else if (!outputs_commit(&j->outputs))
		code = USAGE;
	return code;
}

/* Options that need no model. */
static bool answers(const struct options *o)
{
	if (option_given(o, OPT_help) || option_given(o, OPT_help_dev))
		options_help(SBPC, option_given(o, OPT_help_dev), stdout);
	else if (option_given(o, OPT_version))
		printf("sbpc %s\n", SBPC_VERSION);
	else if (option_given(o, OPT_list_passes))
		passes_list(stdout);
	else if (option_given(o, OPT_include_dir))
		printf("%s\n", prefix_path("include/sbpc"));
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct job j = {0};
	enum exit_code code = DONE;

	if (!options_read(a, SBPC, argc, argv, &j.o))
		code = USAGE;
	else if (answers(&j.o))
		code = DONE;
	else if (option_given(&j.o, OPT_simulate))
		code = simulate(a, &j.o);
	else
		code = run(&j, a);
	if (fflush(stdout) || ferror(stdout))
		code = code ? code : USAGE;
	arena_free(a);
	return (int)code;
}
