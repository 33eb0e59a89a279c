/*
 * passes.h: from a graph on logical tensors to what each rank runs.
 * Each pass is one row of passes.def and one file with one exported function.
 */
#ifndef SBPC_PASSES_H
#define SBPC_PASSES_H

#include <stdio.h>

#include "ir/ir.h"

/* ---- the state of one compilation ---- */

/* One conversion of one value from a distribution to another, and the moves
 * that do it. boxing.c finds where, plan.c how. */
struct boxing {
	int id;
	const char *value;	/* name shown to the user */
	Span span;		/* the statement that asks for it */
	Type type;
	Dist from, to;
	const char *algorithm;	/* "reduce-scatter(0), all-gather(0,1)" */
	int nsteps;
	Dist *step;		/* the distribution after each move */
	int64_t recv_busiest, recv_total, lower_bound;
};

/* The extent of one tensor axis on a rank, where it differs from rank to
 * rank: axis extent N split by these mesh axes, outermost first. */
struct extent {
	int64_t n;
	const struct placement *on;
	int naxes;
	int axes[MAX_MESH];
	int id;			/* own[id] in generated code */
};

/* How a value lies on a rank, by value id; filled by localize. */
struct local {
	Shape max;		/* the largest piece: sizes buffers */
	/* NULL where every rank has max.d[i]; else its formula. */
	const struct extent *extent[MAX_RANK];
	/* The same for the first index, NULL where that is always 0. Set
	 * wherever the axis is split. */
	const struct extent *first[MAX_RANK];
	int64_t bytes;		/* of the largest piece */
	/* memory: a value that shares another's bytes (views), or NULL. */
	const struct value *same_as;
	/* memory: offset in the arena of each rank class; -1: not there. */
	int64_t *at;
};

struct program {
	struct arena *arena;
	struct graph *g;

	/* options */
	bool reproducible;
	FILE *explain;		/* --explain: where to, or NULL */

	/* boxing */
	LIST(struct boxing *) boxings;
	/* localize */
	struct local *local;		/* by value id */
	LIST(struct extent *) extents;
	int nclasses;
	int *class_of;			/* by rank */
	int *class_rank;		/* by class: its first rank */
	bool *class_on;			/* by class * placements + placement */
	/* memory */
	int64_t *arena_bytes;		/* by class */
	/* What a step runs: calls that compute, moves that communicate. */
	int kernels, collectives;
	/* plan */
	uint64_t plan_hash;
};

/* ---- localize.c: what a rank holds, and which ranks are alike ---- */

/* Whether the ranks of CLASS run N, or hold V. */
bool class_runs(const struct program *p, int class, const struct node *n);
bool class_holds(const struct program *p, int class, const struct value *v);

/* ---- manager.c ---- */

enum fact {		/* what holds of the graph; passes need and keep them */
	FACT_DIST = 1,		/* every value has a distribution */
	FACT_BOXED = 2,		/* inputs lie as their nodes want them */
	FACT_LOCAL = 4,
	FACT_FUSED = 8,
	FACT_ORDERED = 16,
	FACT_PLACED = 32,	/* buffers have offsets */
};

struct pass {
	const char *name;
	void (*run)(struct program *p);
	unsigned needs, gives, keeps;
	const char *help;
};
extern const struct pass passes[];
extern const int npasses;

struct pass_options {
	const char *dump_before, *dump_after, *diff, *stop_after;
	const char *only;	/* --passes=P,Q */
	bool time, stats;
	FILE *out;		/* dumps go here */
};
/* Runs them in order, verifying after each. False once errors were reported;
 * *stopped is set when --stop-after or --passes ended it before codegen. */
bool passes_run(struct program *p, const struct pass_options *o,
		bool *stopped);
bool pass_exists(const char *name);
void passes_list(FILE *out);

/* ---- plan.c: the cheapest sequence of moves ---- */

/* Bytes that one move FROM -> TO receives: by the rank that receives most,
 * and by all. */
struct traffic {
	int64_t busiest, total;
};
struct traffic move_traffic(Type t, Dist from, Dist to);
/* A lower bound for the busiest rank of any plan. */
int64_t boxing_bound(Type t, Dist from, Dist to);
/* Fills steps, algorithm and bytes. Cached by pattern. */
void plan_boxing(struct arena *a, struct boxing *b);
/* Predicted seconds of converting; 0 when FROM and TO agree. Cached; for
 * inference. */
double boxing_seconds(Type t, Dist from, Dist to);
/* --emit=plan, --emit=plan-json */
void plan_print(const struct program *p, FILE *out);
void plan_print_json(const struct program *p, FILE *out);

/* ---- the passes, in the order of passes.def ---- */

void pass_sbp(struct program *p);
void pass_boxing(struct program *p);
void pass_fuse(struct program *p);
void pass_localize(struct program *p);
void pass_schedule(struct program *p);
void pass_memory(struct program *p);

#endif
