/*
 * options.c: reads a command line by the table options.def.
 */
#include "tools/options.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum level { USER, DEV };

static const struct row {
	int tools;
	enum option_id id;
	const char *spelling, *argument;
	enum level level;
	const char *help;
} rows[] = {
#define OPTION(tools, id, spelling, argument, level, help)                    \
	{tools, OPT_##id, spelling, argument, level, help},
#include "tools/options.def"
#undef OPTION
};
enum { NROWS = sizeof rows / sizeof *rows };

static const char *tool_name(enum tool tool)
{
	return tool == SBPC ? "sbpc" : "sbprun";
}

int usage_error(enum tool tool, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "%s: error: ", tool_name(tool));
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	return 2;
}

/* ---- finding a row ---- */

/* The first N bytes of WORD spell NAME; - and _ are equal but the first two
 * dashes. */
static bool same_name(const char *word, size_t n, const char *name)
{
	if (strlen(name) != n || strncmp(word, "--", 2))
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = i > 1 && word[i] == '_' ? '-' : word[i];

		if (c != name[i])
			return false;
	}
	return true;
}

static bool is_long(const struct row *r)
{
	return r->spelling[1] == '-';
}

static const struct row *find_long(enum tool tool, const char *word, size_t n)
{
	for (int i = 0; i < NROWS; i++)
		if (rows[i].tools & tool && is_long(&rows[i]) &&
		    same_name(word, n, rows[i].spelling))
			return &rows[i];
	return NULL;
}

/* "-MF" exactly, or "-Dn=3" with the argument glued. */
static const struct row *find_short(enum tool tool, const char *word)
{
	const struct row *found = NULL;

	for (int i = 0; i < NROWS; i++) {
		const struct row *r = &rows[i];
		size_t n = strlen(r->spelling);

		if (!(r->tools & tool) || is_long(r))
			continue;
		if (!strcmp(word, r->spelling))
			return r;
		if (r->argument && !strncmp(word, r->spelling, n))
			found = r;
	}
	return found;
}

/* ---- reading ---- */

struct reader {
	struct arena *a;
	struct options *o;
	int argc, i;
	char **argv;
};

static bool unknown(const struct reader *r, const char *word, size_t n)
{
	const char *names[NROWS];
	char *spelled = arena_text(r->a, "%.*s", (int)n, word);
	Name near;
	int count = 0;

	for (int i = 0; i < NROWS; i++)
		if (rows[i].tools & r->o->tool)
			names[count++] = name_of(rows[i].spelling);
	near = name_nearest(name_of(spelled), names, count);
	for (int i = 0; i < count && !near && n > 3; i++)
		if (!strncmp(names[i], spelled, n))
			near = names[i];
	usage_error(r->o->tool, "unknown option '%s'", spelled);
	if (near)
		fprintf(stderr, "        = hint: did you mean '%s'?\n", near);
	return false;
}

static bool take(struct reader *r, const struct row *row, const char *glued)
{
	struct option option = {row->id, ""};
	const char *argument = row->argument;

	if (glued && !argument) {
		usage_error(r->o->tool, "option '%s' takes no argument",
			    row->spelling);
		return false;
	}
	if (glued) {
		option.value = glued;
	} else if (argument && *argument == '=') {
		usage_error(r->o->tool, "option '%s' wants %s after it",
			    row->spelling, argument + 1);
		return false;
	} else if (argument && *argument != '[') {
		if (r->i + 1 >= r->argc) {
			usage_error(r->o->tool, "option '%s' wants %s",
				    row->spelling, argument);
			return false;
		}
		option.value = r->argv[++r->i];
	}
	PUSH(r->a, r->o->given, option);
	return true;
}

static bool read_long(struct reader *r, const char *word)
{
	size_t n = strcspn(word, "=");
	const struct row *row = find_long(r->o->tool, word, n);

	if (!row)
		return unknown(r, word, n);
	return take(r, row, word[n] ? word + n + 1 : NULL);
}

static bool read_short(struct reader *r, const char *word)
{
	const struct row *row = find_short(r->o->tool, word);
	size_t n;

	if (!row)
		return unknown(r, word, strcspn(word, "="));
	n = strlen(row->spelling);
	return take(r, row, word[n] ? word + n : NULL);
}

/* A closed stdin, stdout or stderr must not become the number of a file that
 * is opened later. What is written to such a stdout is an error still. */
static void reserve_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd)
			exit(2);
}

bool options_read(struct arena *a, enum tool tool, int argc, char **argv,
		  struct options *out)
{
	struct reader r = {a, out, argc, 1, argv};
	bool options = true, good = true;

	reserve_streams();
	out->tool = tool;
	for (; r.i < argc; r.i++) {
		char *word = argv[r.i];

		if (options && !strcmp(word, "--")) {
			options = false;
			out->before = out->words.n;
		} else if (options && word[0] == '-' && word[1]) {
			good &= word[1] == '-' ? read_long(&r, word) :
						 read_short(&r, word);
		} else {
			PUSH(a, out->words, word);
			if (tool == SBPRUN)
				options = false;
		}
	}
	if (options)
		out->before = out->words.n;
	return good;
}

bool option_given(const struct options *o, enum option_id id)
{
	return option_value(o, id) != NULL;
}

const char *option_value(const struct options *o, enum option_id id)
{
	for (int i = o->given.n - 1; i >= 0; i--)
		if (o->given.at[i].id == id)
			return o->given.at[i].value;
	return NULL;
}

/* ---- help ---- */

/* Words of TEXT in lines of at most 78 columns, from column 28 on. */
static void print_wrapped(const char *text, int column, FILE *out)
{
	while (*text) {
		int n = (int)strcspn(text, " ");

		if (column > 28 && column + 1 + n > 78) {
			fprintf(out, "\n%*s", 28, "");
			column = 28;
		}
		column += fprintf(out, "%s%.*s", column > 28 ? " " : "", n,
				  text);
		text += n + (text[n] == ' ');
	}
	fprintf(out, "\n");
}

static void print_row(const struct row *r, FILE *out)
{
	const char *argument = r->argument ? r->argument : "";
	const char *between = "";
	int column;

	if (*argument == '=')
		argument++;
	else if (*argument == '[')
		between = "[=";
	else if (*argument)
		between = is_long(r) ? "=" : " ";
	if (*argument == '[')
		argument++;
	column = fprintf(out, "  %s%s%s", r->spelling, between, argument);
	if (column > 26) {
		fprintf(out, "\n");
		column = 0;
	}
	fprintf(out, "%*s", 28 - column, "");
	print_wrapped(r->help, 28, out);
}

void options_help(enum tool tool, bool dev, FILE *out)
{
	if (tool == SBPC)
		fprintf(out, "usage: sbpc [OPTION]... MODEL.sbp\n"
			     "Compiles a distributed model to an executable "
			     "that serves every rank.\n\n");
	else
		fprintf(out, "usage: sbprun [OPTION]... PROGRAM [ARGUMENT]...\n"
			     "Starts the ranks of a program; one that ends in "
			     ".sbp is compiled first.\n\n");
	for (int i = 0; i < NROWS; i++)
		if (rows[i].tools & tool && (dev || rows[i].level == USER))
			print_row(&rows[i], out);
}
