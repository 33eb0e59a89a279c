/*
 * emit.h: what the files of a step, and those of the tables, share.
 */
#ifndef SBPC_CODEGEN_EMIT_H
#define SBPC_CODEGEN_EMIT_H

#include "codegen/codegen.h"

/* ---- step.c, call_text.c, loop.c: the functions of a step ---- */

enum { MOST_CALLS = 64 };

/* A piece of a function's body. Its label is the naming scope it is in. */
struct item {
	const char *text;
	int calls;
	const char *label;
};

struct stepper {
	struct emitter *e;
	LIST(struct call) calls;
	LIST(struct item) items;
	struct name_set *functions;
	struct text tables;	/* offsets that loops use */
	int loops;
	int line;		/* of the last comment */
	const struct node **reader;	/* by value id: the first one */
};

/* ---- call_text.c: one call as text ---- */

/* The argument at turn i of a loop, where it grows by STRIDE each turn. */
void add_argument(struct emitter *e, const struct arg *arg, int64_t stride,
		  struct text *t);
/* What follows the offset of an address. */
void end_address(const struct arg *arg, struct text *t);
int64_t arg_number(const struct emitter *e, const struct arg *arg);
/* The comment over N's call, unless the last one said the same. */
void add_comment(struct stepper *s, const struct node *n, int indent,
		 struct text *t);
void add_statement(struct stepper *s, const struct call *c, const char *args,
		   int indent, struct text *t);
/* The naming scope that N is in, from the param that it reads, or NULL. */
const char *label_of(struct stepper *s, const struct node *n);
void fill_readers(struct stepper *s);
void add_item(struct stepper *s, struct text *t, int calls, const char *label);
void single_call(struct stepper *s, const struct call *c);

/* ---- loop.c ---- */

/* The turns as a loop, as items of S. */
void loop_calls(struct stepper *s, struct turn turn);

/* ---- tables.c, tensors.c: what the runtime reads ---- */

enum { MOST_NAMES = 64 };	/* offsets by name, of more by number */

struct tables {
	struct emitter *e;
	struct text *out;
	struct text placements;		/* definitions of those that are used */
	const char **placement;		/* by id: its C name */
	struct name_set *names;
	struct bytemap dists;		/* macros that are defined */
	int ndists;
	LIST(const char *) patterns;	/* their text */
	struct bytemap known;		/* patterns: index + 1 by text */
};

/* The name of a macro that is D's initializer; defined in OUT when new. */
const char *dist_macro(struct tables *t, Dist d, struct text *out);
/* The offsets of N values, few of them in rows of EACH. */
void add_offsets(struct tables *t, const char *name, const struct value **v,
		 int n, int each);
const char *dtype_constant(struct arena *a, enum dtype type);
/* "2, {3, 4}" */
void add_shape(struct text *t, Shape s);
/* The table of tensors; returns how many there are. */
int add_tensors(struct tables *t);

#endif
