/*
 * options.h: the command lines of the tools: options.def, read.
 */
#ifndef SBPC_OPTIONS_H
#define SBPC_OPTIONS_H

#include <stdio.h>

#include "ir/ir.h"

enum tool { SBPC = 1, SBPRUN = 2 };

enum option_id {	/* two spellings of one option have one id */
	OPT_output, OPT_emit, OPT_per_rank, OPT_define, OPT_include, OPT_model,
	OPT_keep, OPT_arch, OPT_optimize, OPT_cc, OPT_auto, OPT_memory,
	OPT_reproducible, OPT_simulate, OPT_explain, OPT_topology,
	OPT_plan_check, OPT_max_boxing_bytes, OPT_deny, OPT_depend,
	OPT_depend_file, OPT_depend_target, OPT_include_dir, OPT_list_passes,
	OPT_list_signatures, OPT_dump_before, OPT_dump_after, OPT_stop_after,
	OPT_passes, OPT_diff_pass, OPT_time_passes, OPT_stats, OPT_nproc,
	OPT_nnodes, OPT_master_addr, OPT_master_port, OPT_label, OPT_help,
	OPT_help_dev, OPT_version,
};

struct option {
	enum option_id id;
	const char *value;	/* "" where it has none */
};

struct options {
	enum tool tool;
	LIST(struct option) given;
	/* What is no option. sbprun's end at the program: the rest is for
	 * it. */
	LIST(char *) words;
	int before;		/* of the words: in front of "--" */
};

/* False after printing what is wrong with the command line. */
bool options_read(struct arena *a, enum tool tool, int argc, char **argv,
		  struct options *out);
bool option_given(const struct options *o, enum option_id id);
/* The last one's value; NULL if it was not given. */
const char *option_value(const struct options *o, enum option_id id);
void options_help(enum tool tool, bool dev, FILE *out);
/* "sbpc: error: ..." on stderr; returns 2. */
int usage_error(enum tool tool, const char *format, ...) PRINTF(2, 3);

#endif
