/*
 * kernel.h: what the files of kernel generation share. kernel.c gives
 * functions names and keeps one of each; kernel_slice.c says where operands lie
 * that are slices; kernel_nest.c finds the loops of a fused kernel,
 * kernel_body.c and kernel_function.c write them; kernel_expr.c turns operators
 * into C; kernel_call.c, kernel_move.c and kernel_index.c write routines that
 * are no map and no reduction.
 */
#ifndef SBPC_CODEGEN_KERNEL_H
#define SBPC_CODEGEN_KERNEL_H

#include <stdarg.h>

#include "codegen/codegen.h"

enum { LANES = 16 };

/* ---- kernel.c: functions, each once ---- */

/* The parameters of a function that is being written, and their arguments. */
struct params {
	const struct local *local;		/* the program's */
	LIST(const struct value *) values;	/* outputs first */
	LIST(const char *) names;		/* of values */
	int nout;
	LIST(const struct extent *) extents;	/* n0, n1, ... */
	bool model;		/* takes m */
	bool status;		/* returns sbp_status */
	LIST(struct arg) more;	/* after the extents, ... */
	LIST(const char *) more_decls;	/* declared so: "int line" */
};
/* The name of V as a parameter, entered when new. */
const char *param_value(struct emitter *e, struct params *p,
			const struct value *v, bool output);
/* The name of an extent or first index that differs from rank to rank;
 * MEMBER is "n" or "lo". */
const char *param_extent(struct emitter *e, struct params *p,
			 const struct extent *x, const char *member);
/* "int64_t NAME" whose argument is TEXT. */
void param_text(struct emitter *e, struct params *p, const char *decl,
		const char *text);
/* The local extent of an axis of V: a number or a parameter. */
const char *param_axis(struct emitter *e, struct params *p,
		       const struct value *v, int axis);
/* Its first index: "0" or a parameter. */
const char *param_first(struct emitter *e, struct params *p,
			const struct value *v, int axis);

/*
 * Defines a function of TEXT, in which "@" stands for its name, unless an
 * equal one is there. The name is made of STEM and of SHAPE. Fills call C.
 */
void define_function(struct emitter *e, const struct node *n,
		     const struct params *p, const char *stem, Shape shape,
		     const char *text, struct call *c);
/* "restrict ", or "" for an output and the inputs in whose place it lies. */
const char *param_restrict(const struct params *p, int i);
/* "(sbp_model *m, float *restrict y, const float *restrict a, int64_t n0)" */
void add_signature(struct text *t, const struct params *p, bool restricted);
const char *dtype_c(enum dtype t);	/* in memory: f16 is uint16_t */
const char *taken_text(struct arena *a, struct text *t);	/* and frees */

/* Statements at a depth of blocks. */
struct lines {
	struct text t;
	int indent;
};
void put(struct lines *l, const char *format, ...) PRINTF(2, 3);
void put_open(struct lines *l, const char *format, ...) PRINTF(2, 3); /* { */
void put_close(struct lines *l, int indent);	/* blocks down to INDENT */

/* ---- kernel_slice.c: operands that are slices, where they lie ---- */

/* The extent of an axis of the piece that V lies in: its own, or that of what
 * it is a slice of. */
const char *param_pitch(struct emitter *e, struct params *p,
			const struct value *v, int axis);
/* Whether V is a slice that has less of an axis than what it lies in. */
bool is_cut(const struct emitter *e, const struct value *v, int axis);
/* V's buffer, or where in another's it begins. */
struct arg buffer_arg(struct emitter *e, const struct value *v);
struct nest;
/* Whether what input J of node I has along axes A and B of the domain, and all
 * between, does not follow each other as one axis. */
bool nest_cut_between(const struct nest *k, int i, int j, int a, int b);
/* Fills the strides of inputs; LOOP_OF is by axis of the domain. */
void nest_strides(struct nest *k, const int *loop_of);

/* ---- kernel_expr.c: operators as C expressions ---- */

/* Whether the kernel computes in vectors is the caller's to say. */
const char *expr_type(enum dtype t, bool vectors);	/* of a variable */
/* N applied to operands that are names or literals. */
const char *expr_map(struct arena *a, const struct node *n, bool vectors,
		     const char *const *operand);
/* A number in the type of a variable. */
const char *expr_number(struct arena *a, const struct node *fill,
			bool vectors);
const char *expr_identity(struct arena *a, const struct node *fold,
			  bool vectors);
/* The statement that adds X to the accumulator NAME; in the first N lanes
 * only, where LANES is not NULL. */
const char *expr_accumulate(struct arena *a, const struct node *fold,
			    bool vectors, const char *name, const char *x,
			    const char *lanes);
/* Brings the lanes of an accumulator together. */
const char *expr_across(struct arena *a, const struct node *fold,
			const char *name);
/* X rounded to T, where T is stored in fewer bits than it is computed in. */
const char *expr_round(struct arena *a, enum dtype t, bool vectors,
		       const char *x);
/* An element in memory as a variable's type, and back. */
const char *expr_get(struct arena *a, enum dtype t, const char *x);
const char *expr_put(struct arena *a, enum dtype t, const char *x);
/* C for the dtype conversion of X between variables of scalar kernels. */
const char *expr_cast(struct arena *a, enum dtype from, enum dtype to,
		      const char *x);
bool expr_fails(const struct node *n);	/* sets `bad` at run time */
/* A literal of type T. */
const char *expr_literal(struct arena *a, enum dtype t, double d, int64_t i);

/* ---- kernel_nest.c, kernel_body.c, kernel_function.c: a fused kernel ---- */

/* Axes of the domain that run as one loop. */
struct loop {
	int64_t max;		/* the largest extent of any rank */
	const char *extent;	/* its text */
	const char *index;	/* "i" */
	bool fixed;		/* all ranks have max */
	bool single;		/* of logical extent 1: empty elsewhere */
	bool reduced;
	bool straight;		/* at most one vector: no loop is written */
};

/* A tensor in memory, as one node reads or writes it. */
struct access {
	const struct value *v;
	const char *param;
	unsigned loops;		/* a bit for each loop that it runs along */
	/* Of a slice, by loop: the elements from one turn to the next, as a
	 * factor: "768 * "; NULL: it is dense. */
	const char **stride;
	/* Of a ramp, which is in no memory: its node and its index, as C. */
	const struct node *ramp;
	const char *index;
};

struct nest {
	struct emitter *e;
	struct arena *a;
	const struct node *n;
	struct node *const *body;
	int nbody;
	struct domain d;
	struct params p;
	bool vectors;
	int nloops, lane;	/* lane: the vector's loop, or -1 */
	struct loop loop[MAX_RANK];
	int parallel;		/* the loop that is cut into parts, or -1 */
	/* A row that is cut into parts of `grain` turns of this loop, whose
	 * results are joined in order; -1: rows are whole. */
	int cut;
	int64_t grain;
	LIST(const char *) head;	/* declarations of extents */
	/* by node of the body */
	int *phase;
	const char **name;
	struct access **in;	/* of inputs from outside, else v is NULL */
	struct access *out;	/* v NULL: not stored */
	/* Where later phases find an element again, instead of computing it
	 * anew: its own output, or one that is written later still. */
	const struct access **home;
	int **from;		/* the node that makes an input, or -1 */
	int nphases;
	bool fails;
};
void nest_find(struct nest *k, struct emitter *e, const struct node *n);
/* The axes of the domain that input J of node I runs along, a bit each. */
unsigned nest_input_axes(const struct nest *k, int i, int j);

/* Loads that a block of statements needs more than once. */
struct shared {
	LIST(const struct access *) at;
	LIST(const char *) name;
};

struct writer {
	struct nest *k;
	struct lines l;
	int phase;
	bool open;		/* in a loop over the elements of a row */
	bool *done;		/* by node: elements that are computed, if !open */
	struct shared shared;
};

/* All loops; or the parts from lo to hi of a cut row, and what makes one of
 * PARTS of them. */
void body_loops(struct writer *w);
void body_parts(struct writer *w);
void body_whole(struct writer *w, const char *parts);
/* The function's text, with "@" for its name. */
const char *nest_text(struct nest *k);

bool node_is_fold(const struct node *n);
bool node_is_number(const struct node *n);
/* The element of an iota at index K, in the type of a variable. */
const char *iota_text(struct arena *a, const struct node *n, const char *k);

/* ---- kernel_call.c, kernel_move.c, kernel_index.c: routines ---- */

static inline int rank_of(const struct value *v)
{
	return v->type.shape.rank;
}

void call_gemm(struct emitter *e, const struct node *n, struct call *c);
/* False where N has no routine. */
bool call_routine(struct emitter *e, const struct node *n, struct call *c);

/* One routine that is being written. */
struct routine {
	struct emitter *e;
	struct arena *a;
	const struct node *n;
	struct params p;
	struct lines l;
};
/* What writes the routine of an operator, or NULL. */
typedef void (*Writer)(struct routine *r);
Writer move_writer(enum op op);
Writer index_writer(enum op op);
void routine_start(struct routine *r, struct emitter *e, const struct node *n);
/* The parameter that input I of its node is. */
const char *routine_input(struct routine *r, int i);
/* NAME[OFFSET] */
const char *routine_element(struct routine *r, const char *name,
			    const char *offset);
/* Wraps what was written into a function and fills its call. */
void routine_done(struct routine *r, struct call *c);
/* The product of local extents of axes [FROM, TO) of V, as C. */
const char *routine_count(struct routine *r, const struct value *v, int from,
			  int to);
/* The offset of an element of V: AT has an index for each axis. */
const char *routine_offset(struct routine *r, const struct value *v,
			   const char *const *at);
/* Opens a loop of N turns over axis AXIS; its index, "0" for one turn. */
const char *routine_loop(struct routine *r, int axis, const char *n);
/* Opens loops over axes [FROM, TO) of V; AT gets their indices. */
void routine_loops(struct routine *r, const struct value *v, int from, int to,
		   const char **at);
/* Copies COUNT elements of FROM at AT to y at TO. */
void routine_copy(struct routine *r, const char *to, const char *from,
		  const char *at, const char *count);
const char *routine_times(struct routine *r, const char *x, const char *y);
const char *routine_plus(struct routine *r, const char *x, const char *y);

#endif
