/*
 * pbqp.h: between pbqp.c, which orders the eliminations, and pbqp_message.c,
 * which computes what each leaves.
 */
#ifndef SBPC_PBQP_H
#define SBPC_PBQP_H

#include "passes/passes.h"

enum { MAX_SCOPE = 24, WIDE = 96 };

/* Equal tables have the same number, so that what was computed from them is
 * found again: a layer that repeats is eliminated once. */
struct table {
	int id;
	size_t size;
	const Cost *at;
	Cost *made;		/* at, when it was made here */
	int uses;		/* factors and memories that hold it */
};

struct factor {
	int n;
	int *var;		/* ascending */
	size_t *stride;
	struct table *table;
	bool message;		/* made here, so its axes are in order */
	bool dead;
};

/* What eliminating a variable left: a table whose least entry is 0, what was
 * taken off, and the best values. */
struct message {
	struct table *table;
	Cost shift;
	uint16_t *best;
};

struct variable {
	int domain;
	LIST(struct factor *) factors;
	Cost *unary;
	bool done;
	size_t key;		/* entries of the table that it would leave */
	int heap;		/* its place in the heap */
};

/* How to choose a variable once those of the scope are chosen. */
struct step {
	int var, n;
	int *scope;
	uint16_t *best;			/* row-major over scope; or ... */
	LIST(struct factor *) factors;	/* ... by trying */
};

struct pbqp {
	struct arena *a;
	int n, room, nheap;
	struct variable *var;
	int *heap;
	LIST(struct factor *) all;	/* as given */
	LIST(struct step) steps;
	Cost constant;
	int *mark, stamp;
	struct bytemap given;	/* addresses of tables -> struct table */
	struct bytemap values;	/* the contents of unary costs -> a number */
	struct bytemap memory;	/* eliminations -> struct message, and sums of
				 * two tables -> struct table */
	LIST(struct table *) made;
	int ntables, nvalues;
	size_t kept;		/* entries that the memory holds */
	struct text key;
};

/* Some factors of X, and the other variables that they read. */
struct bucket {
	int x, nf, n;
	struct factor **f;
	int scope[MAX_SCOPE];
	size_t size;		/* product of the scope's domains */
};

/* ---- pbqp_message.c ---- */

/* The table at this address, SIZE entries. */
struct table *table_given(struct pbqp *q, const Cost *at, size_t size);
/* A factor that held T does not any more. */
void table_drop(struct table *t);
/* What is left of a bucket once x takes its best value everywhere. */
struct message *message_of(struct pbqp *q, struct bucket *b,
			   const Cost *unary);
/* X and Y have the same axes. */
struct table *sum_of(struct pbqp *q, const struct table *x,
		     const struct table *y);
/* Takes the least of N entries off all. */
Cost normalise(Cost *at, size_t n);
/* Frees all tables that were made. */
void tables_free(struct pbqp *q);

#endif
