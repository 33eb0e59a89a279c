/*
 * frontend.h: from text to a graph on logical tensors.
 */
#ifndef SBPC_FRONTEND_H
#define SBPC_FRONTEND_H

#include "ir/ir.h"

struct define { /* -D name=value */
	const char *name, *value;
};

struct front_options {
	const struct define *defines;
	int ndefines;
	const char *const *include; /* -I, for imports */
	int ninclude;
	const char *model;       /* --model, or NULL: the only one */
	const char *const *keep; /* --keep: full names, last binding */
	int nkeep;
	int nshown; /* the last of them: only where no tensor has the name */
	const char *prelude; /* path of prelude.sbp */
	bool automatic; /* --auto: inputs and params that have no
			 * distribution get '_', not B */
};

enum front_status {
	FRONT_OK,
	FRONT_ERRORS, /* in the program; reported */
	FRONT_USAGE,  /* file of the command line, -D or --model that
		       * names nothing; reported */
};

/* Files read on the way, for -MD: source_nth(0 ..) and the npy files in
 * FILES. */
struct front_files {
	LIST(const char *) at;
};

/* Reads PATH and all that it imports and lowers one model. */
enum front_status front_compile(struct arena *a, const char *path,
				const struct front_options *o,
				struct front_files *files, struct graph **out);
/* The tree, printed back as source: --dump-after=parse. */
enum front_status front_print_tree(struct arena *a, const char *path,
				   struct text *out);

#endif
