/*
 * simulate.c: --simulate: a model is compiled as sbprun does it, with a main
 * that runs all ranks, and sbpc becomes that program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/build.h"

/* What would end before the program runs, or come out beside it. */
static enum exit_code check_alone(const struct options *o)
{
	static const struct {
		enum option_id id;
		const char *name;
	} others[] = {
		{OPT_output, "-o"},
		{OPT_emit, "--emit"},
		{OPT_per_rank, "--per-rank"},
		{OPT_depend, "-MD"},
		{OPT_depend_file, "-MF"},
		{OPT_depend_target, "-MT"},
		{OPT_list_signatures, "--list-signatures"},
		{OPT_dump_before, "--dump-before"},
		{OPT_dump_after, "--dump-after"},
		{OPT_stop_after, "--stop-after"},
		{OPT_passes, "--passes"},
		{OPT_diff_pass, "--diff-pass"},
	};
	int n = sizeof others / sizeof *others;

	for (int i = 0; i < n; i++)
		if (option_given(o, others[i].id))
			return (enum exit_code)usage_error(
				o->tool,
				"--simulate runs the model and "
				"writes nothing: it does not go with "
				"%s",
				others[i].name);
	return DONE;
}

bool seed_read(const struct options *o, uint64_t *seed)
{
	const char *text = option_value(o, OPT_simulate);
	char *end;

	*seed = 0;
	if (!text || !*text)
		return true;
	errno = 0;
	*seed = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static enum exit_code check_words(const struct options *o)
{
	uint64_t seed;

	if (!seed_read(o, &seed))
		return (enum exit_code)usage_error(
			o->tool,
			"--simulate wants a number from 0 to 2^64 - 1 "
			"as its seed, not '%s'",
			option_value(o, OPT_simulate));
	if (o->before != 1)
		return (enum exit_code)usage_error(
			o->tool,
			o->before ? "one model file a run, not %d; "
				    "options of the program follow "
				    "'--'"
				  : "which model file? see --help",
			o->before);
	return check_alone(o);
}

/* Only what goes wrong returns. */
static enum exit_code become(const struct options *o, struct arena *a,
			     int program)
{
	char **argv = NEW_N(a, char *, o->words.n + 1);

	memcpy(argv, o->words.at, sizeof *argv * (size_t)o->words.n);
	fflush(NULL);
	fexecve(program, argv, environ);
	return (enum exit_code)usage_error(o->tool, "cannot start '%s': %s",
					   argv[0], strerror(errno));
}

enum exit_code simulate(struct arena *a, const struct options *o)
{
	struct build b;
	int program;
	enum exit_code code = check_words(o);

	if (code)
		return code;
	program = memfd_create("sbpc", MFD_CLOEXEC);
	if (program < 0)
		return (enum exit_code)usage_error(o->tool, "%s",
						   strerror(errno));
	code = program_read(&b, a, o);
	if (!code)
		code = program_make(&b, program);
	return code ? code : become(o, a, program);
}
