/*
 * options.c: the command line of a program. One table gives parsing and help;
 * - and _ in names are the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/private.h"

enum kind { FLAG, TEXT, PAIR, NAMES, COUNT, SEED };

static const struct row {
	const char *name, *value, *help;
	enum kind kind;
	size_t at;
} rows[] = {
#define ROW(name, value, kind, field, help)                                   \
	{name, value, help, kind, offsetof(struct options, field)}
	ROW("input", "NAME=FILE.npy", PAIR, input,
	    "feed an input, a logical tensor"),
	ROW("output", "NAME=FILE.npy", PAIR, output,
	    "write a logical tensor after the last step"),
	ROW("local-input", "NAME=F.{rank}.npy", PAIR, local_input,
	    "feed an input, one piece for each rank"),
	ROW("local-output", "NAME=F.{rank}.npy", PAIR, local_output,
	    "write a tensor, one piece for each rank"),
	ROW("data", "NAME=DIR", PAIR, data,
	    "where the files of a data source lie"),
	ROW("load", "FILE", TEXT, load,
	    "read params and states from a safetensors file"),
	ROW("save", "FILE", TEXT, save,
	    "write params and states after the last step"),
	ROW("steps", "N", COUNT, steps, "how many steps to run, 1 by default"),
	ROW("eval", NULL, FLAG, eval,
	    "run over all samples once and print the scalar outputs; not with "
	    "--steps"),
	ROW("show", "NAME,..", NAMES, show,
	    "print each rank's piece of these tensors after each step"),
	ROW("seed", "N", SEED, seed, "of random numbers, 0 by default"),
	ROW("bench", "N", COUNT, bench,
	    "time N steps and print a line of JSON; not with --steps, --eval, "
	    "--show or --log"),
	ROW("log", "FILE", TEXT, log,
	    "write a line of JSON with the scalar outputs for each step"),
	ROW("summary", NULL, FLAG, summary,
	    "print the tensors, their distributions and sizes; alone or with "
	    "--quiet it runs no step"),
	ROW("quiet", NULL, FLAG, quiet, "no warnings"),
	ROW("help", NULL, FLAG, help, "print this"),
#undef ROW
};
enum { NROWS = sizeof rows / sizeof *rows };

void options_help(const char *program)
{
	printf("usage: %s [OPTION]...\n", program);
	for (int i = 0; i < NROWS; i++) {
		char left[64];

		snprintf(left, sizeof left, "--%s %s", rows[i].name,
			 rows[i].value ? rows[i].value : "");
		printf("  %-32s %s\n", left, rows[i].help);
	}
}

static bool same_name(const char *row, const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((name[i] == '_' ? '-' : name[i]) != row[i])
			return false;
	return row[n] == 0;
}

static const struct row *find_row(const char *name, size_t n)
{
	for (int i = 0; i < NROWS; i++)
		if (same_name(rows[i].name, name, n))
			return &rows[i];
	return NULL;
}

static sbp_status add_pair(struct pairs *p, const struct row *row,
			   const char *value, sbp_message *e)
{
	const char *equals = strchr(value, '=');
	struct pair *at;
	char *name;

	if (!equals || equals == value || !equals[1])
		return message_set(e, SBP_USAGE,
				   "--%s takes %s, not '%s'", row->name,
				   row->value, value);
	at = realloc(p->at, (size_t)(p->n + 1) * sizeof *at);
	name = strndup(value, (size_t)(equals - value));
	if (at)
		p->at = at;
	if (!at || !name) {
		free(name);
		return message_set(e, SBP_FAILED, "out of memory");
	}
	p->at[p->n++] = (struct pair){name, equals + 1};
	return SBP_OK;
}

static sbp_status add_names(struct options *o, const struct row *row,
			    const char *value, sbp_message *e)
{
	for (;;) {
		size_t n = strcspn(value, ",");
		char **at, *name;

		if (!n)
			return message_set(e, SBP_USAGE,
					   "--%s: a name is missing",
					   row->name);
		at = realloc(o->show, (size_t)(o->nshow + 1) * sizeof *at);
		if (at)
			o->show = at;
		name = at ? strndup(value, n) : NULL;
		if (!name)
			return message_set(e, SBP_FAILED, "out of memory");
		o->show[o->nshow++] = name;
		if (!value[n])
			return SBP_OK;
		value += n + 1;
	}
}

static sbp_status read_number(const struct row *row, const char *value,
			      bool is_seed, uint64_t *out, sbp_message *e)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno ||
	    (!is_seed && (*out < 1 || *out > 1000000000000)))
		return message_set(e, SBP_USAGE,
				   "--%s takes a %s number, not '%s'",
				   row->name, is_seed ? "whole" : "positive",
				   value);
	return SBP_OK;
}

static sbp_status set_number(struct options *o, const struct row *row,
			     const char *value, sbp_message *e)
{
	uint64_t n;

	SBP_TRY(read_number(row, value, row->kind == SEED, &n, e));
	if (row->kind == SEED) {
		o->seed = n;
		o->has_seed = true;
	} else {
		*(int64_t *)((char *)o + row->at) = (int64_t)n;
	}
	return SBP_OK;
}

static sbp_status set_option(struct options *o, const struct row *row,
			     const char *value, sbp_message *e)
{
	void *at = (char *)o + row->at;

	switch (row->kind) {
	case FLAG:
		*(bool *)at = true;
		return SBP_OK;
	case TEXT:
		*(const char **)at = value;
		return SBP_OK;
	case PAIR:
		return add_pair(at, row, value, e);
	case NAMES:
		return add_names(o, row, value, e);
	default:
		return set_number(o, row, value, e);
	}
}

/* Options that would have no effect together. */
static sbp_status check_options(const struct options *o, sbp_message *e)
{
	const char *a = o->bench ? "bench" : "eval", *b = NULL;

	if (!o->bench && !o->eval)
		return SBP_OK;
	if (o->steps)
		b = "steps";
	else if (o->bench && o->eval)
		b = "eval";
	else if (o->bench && o->nshow)
		b = "show";
	else if (o->bench && o->log)
		b = "log";
	if (!b)
		return SBP_OK;
	return message_set(e, SBP_USAGE, "--%s and --%s exclude each other",
			   a, b);
}

static sbp_status read_one(struct options *o, int argc, char **argv, int *i,
			   sbp_message *e)
{
	const char *arg = argv[*i], *value = NULL;
	const struct row *row;
	size_t n;

	if (strncmp(arg, "--", 2) != 0 || !arg[2])
		return message_set(e, SBP_USAGE,
				   "unexpected argument '%s' (see --help)",
				   arg);
	n = strcspn(arg + 2, "=");
	row = find_row(arg + 2, n);
	if (!row)
		return message_set(e, SBP_USAGE,
				   "unknown option '%.*s' (see --help)",
				   (int)n + 2, arg);
	if (arg[2 + n] == '=')
		value = arg + 3 + n;
	if (!row->value && value)
		return message_set(e, SBP_USAGE, "--%s takes no value",
				   row->name);
	if (row->value && !value && ++*i < argc)
		value = argv[*i];
	if (row->value && !value)
		return message_set(e, SBP_USAGE, "--%s needs %s", row->name,
				   row->value);
	o->runs |= row->at != offsetof(struct options, summary) &&
		   row->at != offsetof(struct options, quiet);
	return set_option(o, row, value, e);
}

sbp_status options_read(struct options *o, int argc, char **argv,
			sbp_message *e)
{
	memset(o, 0, sizeof *o);
	for (int i = 1; i < argc; i++)
		SBP_TRY(read_one(o, argc, argv, &i, e));
	return check_options(o, e);
}

static void pairs_free(struct pairs *p)
{
	for (int i = 0; i < p->n; i++)
		free((char *)p->at[i].name);
	free(p->at);
}

void options_free(struct options *o)
{
	pairs_free(&o->input);
	pairs_free(&o->output);
	pairs_free(&o->local_input);
	pairs_free(&o->local_output);
	pairs_free(&o->data);
	for (int i = 0; i < o->nshow; i++)
		free(o->show[i]);
	free(o->show);
}
