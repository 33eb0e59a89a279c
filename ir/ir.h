/*
 * ir.h: what a program is. Operators on logical tensors, where the tensors
 * live (placement) and how they lie there (SBP). The one header of this
 * folder; each section is titled by the file that implements it.
 *
 * Fixed one-letter locals: g graph, n node, v value, a arena.
 */
#ifndef SBPC_IR_H
#define SBPC_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF(f, v) __attribute__((format(printf, f, v)))

/* ---- arena.c: memory that lives as long as a compilation, or a pass ---- */

/* All memory is zeroed and aligned to 16; nothing here returns NULL: running
 * out of memory ends the compiler with exit code 3. */
struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);
void *arena_alloc(struct arena *a, size_t size);
char *arena_text(struct arena *a, const char *format, ...) PRINTF(2, 3);

#define NEW(a, type) ((type *)arena_alloc(a, sizeof(type)))
#define NEW_N(a, type, n) ((type *)arena_alloc(a, sizeof(type) * (size_t)(n)))

/* A growing array in an arena: LIST(int) l = {0}; PUSH(a, l, 3); l.at[0] */
#define LIST(...) struct { __VA_ARGS__ *at; int n, room; }
#define PUSH(a, list, ...)                                                    \
	(list_room(a, (void **)&(list).at, (list).n, &(list).room,            \
		   sizeof *(list).at),                                        \
	 (list).at[(list).n++] = __VA_ARGS__)
void list_room(struct arena *a, void **at, int n, int *room, size_t size);

/* A growing text on the heap, always NUL-terminated after the first call. */
struct text {
	char *at;
	size_t n, room;
};
void text_add(struct text *t, const char *format, ...) PRINTF(2, 3);
void text_add_n(struct text *t, const char *s, size_t n);
void text_free(struct text *t);
/* The fewest digits that read back to the same double; as a float if f32. */
void text_add_double(struct text *t, double d);
void text_add_float(struct text *t, float f);

/* A short text for a message, in a ring of 64 static buffers. */
const char *text_brief(const char *format, ...) PRINTF(1, 2);

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);	/* FNV-1a 64 */

/* ---- name.c: interned names, compared with == ---- */

typedef const char *Name;
Name name_of(const char *s);
Name name_n(const char *s, size_t n);
/* The candidate nearest to WANTED by edit distance, or NULL if none is near. */
Name name_nearest(Name wanted, const Name *candidates, int n);
/* "a.*.c" against "a.b.c": * any run of characters, ? any one. */
bool name_match(const char *pattern, const char *name);

/* ---- source.c: all source files in one address space of byte offsets ---- */

typedef struct Span {
	uint32_t lo, hi;	/* lo == hi == 0: no place in any source */
} Span;

struct source {
	const char *path;	/* as shown to the user */
	const char *text;	/* NUL-terminated */
	uint32_t base, size;
	bool prelude;
	bool file;		/* source_read found it; PATH leads there */
};
/* NULL when it cannot be read (errno tells why). */
const struct source *source_read(const char *path);
const struct source *source_text(const char *path, const char *text, size_t n);
const struct source *source_of(Span at);	/* NULL for no place */
int source_count(void);
const struct source *source_nth(int i);

struct place {
	const char *path;
	int line, column;	/* from 1 */
};
struct place place_of(Span at);		/* {"?", 0, 0} for no place */

/* Which call led here: one link for each def that was entered. */
struct trail {
	Span at;		/* the call */
	Name def;		/* the def that it entered */
	const struct trail *up;
};

/* ---- diag.c: errors, warnings, notes, hints ---- */

/*
 * GNU first line, source line, carets. Start in lower case, no full stop,
 * quoted names; say what is and what was expected. A note or hint belongs to
 * the error or warning before it.
 */
void diag_error(Span at, const char *format, ...) PRINTF(2, 3);
void diag_warn(Span at, const char *format, ...) PRINTF(2, 3);
void diag_note(Span at, const char *format, ...) PRINTF(2, 3);
void diag_hint(const char *format, ...) PRINTF(1, 2);
void diag_trail(const struct trail *up);	/* a note for each call */
int diag_errors(void);
void diag_pass(const char *name);		/* named by bug() */
void diag_reset(void);				/* forget the count */
/* A mistake of sbpc itself: says pass, file, line and node; exits 3. */
_Noreturn void bug_at(const char *file, int line, const char *format, ...)
	PRINTF(3, 4);
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- type.c: dtypes, shapes, promotion ---- */

enum dtype {	/* ORDER dtype: runtime/sbp.h has the same */
	DT_BOOL, DT_U8, DT_I8, DT_I32, DT_I64, DT_F16, DT_BF16, DT_F32, DT_F64,
	DT_N
};
const char *dtype_name(enum dtype t);
bool dtype_read(const char *s, enum dtype *t);
int dtype_size(enum dtype t);			/* bytes */
bool dtype_is_float(enum dtype t);
bool dtype_is_int(enum dtype t);		/* bool is not one */
/* I as an integer of dtype T, which wraps; I itself where it fits. */
int64_t dtype_wrap(enum dtype t, int64_t i);
/* PyTorch's: bool < integers < floats, then the wider. */
enum dtype dtype_promote(enum dtype a, enum dtype b);

#define MAX_RANK 8
typedef struct Shape {
	int rank;
	int64_t d[MAX_RANK];
} Shape;

typedef struct Type {
	enum dtype dtype;
	Shape shape;
} Type;

bool shape_eq(Shape a, Shape b);
bool type_eq(Type a, Type b);
int64_t shape_count(Shape s);		/* elements; 1 for a scalar */
bool shape_count_fits(Shape s, int64_t *count);	/* false on overflow */
int64_t type_bytes(Type t);
/* NumPy's; false when they do not broadcast. */
bool shape_broadcast(Shape a, Shape b, Shape *out);
const char *shape_text(Shape s);	/* "[2, 3]"; in static ring of buffers */
const char *type_text(Type t);		/* "f32[2, 3]"; likewise */

/* ---- mesh.c: placements, mesh axes, rank <-> coordinates ---- */

#define MAX_MESH 4
enum device { DEV_CPU, DEV_CUDA };

struct placement {
	Name name;
	int id;			/* its index in the graph's placements */
	enum device device;
	int naxes;		/* 1..4 */
	int extent[MAX_MESH];
	Name axis[MAX_MESH];	/* NULL: no name */
	int nranks;
	const int *rank;	/* row-major over the mesh */
	Span span;
};
int mesh_index(const struct placement *p, int rank);	/* -1: not in it */
void mesh_coords(const struct placement *p, int index, int coord[MAX_MESH]);
int mesh_at(const struct placement *p, const int coord[MAX_MESH]); /* index */
/* Same devices in the same order and shape (the names may differ). */
bool placement_eq(const struct placement *a, const struct placement *b);

/* ---- sbp.c: distributions ---- */

enum sbp_kind { SBP_ANY, SBP_B, SBP_S, SBP_P };
enum red { RED_SUM, RED_MAX, RED_MIN };

typedef struct Sbp {
	uint8_t kind;		/* enum sbp_kind; SBP_ANY is '_' */
	int8_t axis;		/* of S, never negative */
	uint8_t red;		/* of P */
} Sbp;

/* A placement and one term for each of its mesh axes. A zeroed Dist is
 * "unknown": on == NULL. */
typedef struct Dist {
	const struct placement *on;
	Sbp t[MAX_MESH];
	/* Which mesh axis splits first where several split one tensor axis:
	 * order[0] is outermost. 0, 1, 2, 3 in the language; plans may use
	 * others in between. */
	uint8_t order[MAX_MESH];
} Dist;

static inline Sbp sbp_b(void) { return (Sbp){SBP_B, 0, 0}; }
static inline Sbp sbp_s(int axis) { return (Sbp){SBP_S, (int8_t)axis, 0}; }
static inline Sbp sbp_p(enum red r) { return (Sbp){SBP_P, 0, (uint8_t)r}; }
static inline Sbp sbp_any(void) { return (Sbp){SBP_ANY, 0, 0}; }
bool sbp_eq(Sbp a, Sbp b);
/* The mesh axis that splits as the K-th, 0 <= K < MAX_MESH (from d.order). */
int dist_nth(Dist d, int k);
/* The mesh axes that split tensor axis AXIS, outermost first; how many. */
int dist_chain(Dist d, int axis, int chain[MAX_MESH]);
Dist dist_on(const struct placement *p, Sbp all);	/* the term everywhere */
/* The same with B along mesh axes of one device, where all terms mean that. */
Dist dist_plain(Dist d);
/* Same placement (placement_eq), terms, and order where it matters. Along a
 * mesh axis of one device all terms are the same. */
bool dist_eq(Dist a, Dist b);
bool dist_has(Dist d, enum sbp_kind kind);
bool dist_known(Dist d);		/* placed and no '_' */
/* D satisfies REQUEST: same placement, equal terms except where it has '_'. */
bool dist_fits(Dist d, Dist request);
/* NULL if D is legal for T, else why not ("axis 2 of f32[2, 3]", ...). */
const char *dist_why_not(Dist d, Type t);
const char *sbp_text(Sbp s);		/* "S(0)", "P", "P(max)", "_" */
const char *dist_text(Dist d);		/* "grid(B, S(0))" */
const char *dist_terms(Dist d);		/* "(B, S(0))" */

/* ---- piece.c: balanced intervals and their intersections ---- */

typedef struct Interval {
	int64_t lo, n;
} Interval;
/* Part I of N elements over P parts: the first n mod p have one more. */
Interval split(int64_t n, int p, int i);
Interval interval_and(Interval a, Interval b);

typedef struct Piece {
	int rank;
	Interval d[MAX_RANK];
} Piece;
/* What the device at COORD holds of a logical SHAPE; B and P: all of it. */
Piece piece_of(Shape shape, Dist d, const int coord[MAX_MESH]);
Piece piece_and(Piece a, Piece b);
int64_t piece_count(Piece p);
/* The largest and whether all devices have the same, per axis. */
Shape piece_max(Shape shape, Dist d);
bool piece_even(Shape shape, Dist d, int axis);

/* ---- op.c, index.c, infer.c, rules.c: the operator table ---- */

enum op {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
#undef OP
	OP_N
};

/* What computes it on a rank; ops.def's last column. */
enum kernel_kind {
	K_NONE,		/* input, param, ...: nothing to run */
	K_VIEW,		/* the same bytes under another shape */
	K_MAP,		/* elementwise: a template of %0 %1 ... */
	K_FOLD,		/* a reduction: combining operator and identity */
	K_CALL,		/* a routine of its own, by name */
};

enum attr_kind {
	ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_INTS, ATTR_DTYPE, ATTR_TEXT
};
struct attr {
	Name key;
	enum attr_kind kind;
	int64_t i;		/* int, bool, dtype */
	double f;
	const int64_t *ints;	/* n of them */
	int n;
	const char *text;
};

/* One parameter of an operator: a tensor, or an attribute. From the column
 * `params`: "x; axis: ints = all, keepdim: bool = false". Optional without an
 * initial value (initial.key is NULL): "= none" or "= all". */
struct op_param {
	Name name;
	bool tensor, optional, many;	/* many: a list of tensors, "xs.." */
	enum attr_kind kind;
	struct attr initial;		/* of an optional attribute */
};

struct op_info {
	const char *name, *params, *types, *index, *sum, *max;
	enum kernel_kind kernel;
	const char *c;		/* template, routine or folding operator */
	const char *identity;	/* K_FOLD */
	/* filled at start from the strings: */
	bool internal;		/* made by the compiler alone */
	int nparam, ntensor;
	struct op_param *param;	/* in the order of a call */
};
const struct op_info *op_info(enum op op);
bool op_is_leaf(enum op op);	/* input, param, state or constant */
bool op_find(const char *name, enum op *op);
int op_names(const Name **names);	/* those that a program may call */

/* One 1-D signature: a term for each input and each output. */
struct sig {
	Sbp *in, *out;
};
struct sigs {
	struct sig *at;
	int n;
};
struct node;
struct graph;
struct value;
/* All legal 1-D signatures of N, all-B first, in a fixed order. */
struct sigs op_signatures(struct arena *a, const struct node *n);
/* Whether terms that are legal one mesh axis at a time are so together, on
 * the shard shapes of every rank: nested splits, reshape, ... IN and OUT have
 * one Dist a tensor, all on one placement. */
bool op_legal(const struct node *n, const Dist *in, const Dist *out);
/* "S(0), B -> S(0)": a 1-D signature of N. */
const char *sig_text(const struct node *n, const Sbp *in, const Sbp *out);
/* Why IN -> OUT is illegal: the rule that fails, on which mesh axis. */
const char *op_why_not(const struct node *n, const Dist *in, const Dist *out);
/* Walks the table; reports through bug(). */
void op_self_check(void);

/* The class of dtypes that input I of an operator takes, from `types`. */
enum dtype_class { TAKES_ANY, TAKES_NUMBER, TAKES_FLOAT, TAKES_INT,
		   TAKES_BOOL };
enum dtype_class op_takes(const struct op_info *info, int i);
bool op_shares(const struct op_info *info, int i); /* dtype with the others */
/*
 * Brings inputs to the dtype that OP needs, by `cast` nodes (a scalar `fill`
 * is made anew). Where WEAK[i], input i is a literal: it does not widen
 * inputs of its own category. WEAK may be NULL. What no cast can mend is left
 * to node_done.
 */
void op_promote(struct graph *g, enum op op, Span span, int nin,
		struct value **in, const bool *weak);

/*
 * How the axes of a node's tensors (inputs, then outputs) correspond: one
 * letter is one logical axis, axis[t] its place in tensor t, or -1. A tensor
 * whose extent 1 is broadcast lacks the letter.
 */
struct letter {
	bool whole;		/* must not be split */
	int8_t *axis;
};
struct letters {
	int n, ntensors;
	struct letter at[2 * MAX_RANK];
};
void op_letters(struct arena *a, const struct node *n, struct letters *l);
/* One tensor of an index expression: "*mk". */
struct index_term {
	bool star, at;
	int n;
	char letter[MAX_RANK];
};
/* Reads a term and the ',' or '->' after it; returns what follows. */
const char *term_read(const char *s, struct index_term *t);
int8_t *letter_add(struct arena *a, struct letters *l);	/* axis, all -1 */

/* What an '@name' of the column `index` stands for; functions may be NULL. */
struct rule {
	const char *name;
	/* Checks and calls node_type; false after reporting. */
	bool (*infer)(struct graph *g, struct node *n);
	void (*letters)(struct arena *a, const struct node *n,
			struct letters *l);
	/* Signatures beyond those of the letters and of sum and max. */
	void (*more)(struct arena *a, const struct node *n, struct sigs *s);
	/* Why terms that are legal one by one are not so together. */
	const char *(*why_not)(const struct node *n, const Dist *in,
			       const Dist *out);
};
const struct rule *rule_find(const char *at_name);	/* or bug */
/* What an '@name' of `sum` or `max` says for N. */
const char *rule_sets(const char *at_name, const struct node *n);
/* Why it forbids terms that are legal one by one, or NULL. */
const char *rule_sets_why_not(const char *at_name, const Dist *in);
void sig_add(struct arena *a, struct sigs *s, struct sig sig);
struct sig sig_b(struct arena *a, const struct node *n);	/* all B */

/* ---- graph.c: nodes and values ---- */

enum init_kind {	/* ORDER init: runtime/sbp.h has the same */
	INIT_NONE,	/* must come from --load */
	INIT_CONSTANT,	/* a */
	INIT_UNIFORM,	/* [a, b) */
	INIT_NORMAL,	/* mean a, standard deviation b */
	INIT_TRUNC_NORMAL,	/* the same, cut to [c, d] */
	INIT_DATA,	/* literal */
};
struct init {
	enum init_kind kind;
	double a, b, c, d;
	/* Logical tensor, row-major, in the value's dtype ... */
	const void *data;
	/* ... or one piece for each rank of the placement: local(...). */
	const void **local;	/* nranks pointers */
};

enum data_kind { DATA_IDX, DATA_NPY };
struct data_source {
	Name name;
	int id;
	enum data_kind kind;
	const char *file[2];	/* idx: images, labels; npy: one */
	Span span;
};

struct value {
	int id;			/* index in the graph's values */
	Name name;		/* full name, or NULL for a temporary */
	Type type;
	Dist dist;		/* fixed before inference by `on` of an input,
				 * param, ...; known after it for all */
	struct node *def;
	int index;		/* which output of def */
	Span span;		/* where it was named or made */
	bool keep;		/* --keep */
};

struct node {
	int id;			/* index in the graph's nodes */
	enum op op;
	int nin, nout;
	struct value **in, **out;
	struct attr *attr;
	int nattr;
	const struct placement *on;	/* where it runs */
	Span span;		/* the user's expression, never the prelude's */
	const struct trail *trail;
	Name call; /* of the prelude, that the user called */
	/* filled by inference: the distribution each input must have. */
	Dist *in_dist;
	/* of input, param, state, const: */
	const struct init *init;
	const struct data_source *source;	/* input = train.image */
	Name field;
	/* of kernel: the nodes it joins, in order. */
	struct node **body;
	int nbody;
	/* of move: which conversion it is a step of. */
	struct boxing *boxing;
};

struct output {
	Name name;
	struct value *v;
	Span span;
};
struct update {
	struct value *state, *v;	/* update state = v */
	Span span;
};

struct graph {
	struct arena *arena;
	Name name;			/* the model's */
	const char *path;		/* its file */
	Span span;
	LIST(struct node *) nodes;	/* in topological order */
	LIST(struct value *) values;
	LIST(struct placement *) placements;	/* those that are used */
	LIST(struct data_source *) sources;
	LIST(struct output) outputs;
	LIST(struct update) updates;
	struct placement *on;		/* the model's own */
	int world;			/* ranks 0 .. world - 1 */
	bool reproducible;		/* no float value in parts unasked */
};

struct graph *graph_new(struct arena *a);
struct placement *graph_placement(struct graph *g, struct placement p);
/* Of placements that are equal but for their names nodes and values use the
 * first alone, so that passes may compare pointers. */
void graph_unify_placements(struct graph *g);

/*
 * To add a node: node_new, attributes, then node_done, which infers the types
 * of its outputs and appends it to the graph. node_done reports an error at
 * the node's span and returns false when the inputs do not fit (the caller
 * then tells the trail); the node is not in the graph.
 */
struct node *node_new(struct graph *g, enum op op, Span span, int nin,
		      struct value **in);
void node_int(struct graph *g, struct node *n, const char *key, int64_t i);
void node_float(struct graph *g, struct node *n, const char *key, double f);
void node_bool(struct graph *g, struct node *n, const char *key, bool b);
void node_dtype(struct graph *g, struct node *n, const char *key,
		enum dtype t);
void node_ints(struct graph *g, struct node *n, const char *key,
	       const int64_t *ints, int count);
void node_text(struct graph *g, struct node *n, const char *key,
	       const char *text);
bool node_done(struct graph *g, struct node *n);
/* For passes: a node with given output types, appended without inference. */
struct node *node_make(struct graph *g, enum op op, Span span, int nin,
		       struct value **in, int nout, const Type *out);

const struct attr *node_attr(const struct node *n, const char *key);
int64_t attr_int(const struct node *n, const char *key);	/* or bug */
double attr_float(const struct node *n, const char *key);
bool attr_bool(const struct node *n, const char *key);

/* Completes the attributes, checks the inputs and fills the output types,
 * making the output where there is none yet. False after reporting. */
bool op_infer(struct graph *g, struct node *n);
void node_type(struct graph *g, struct node *n, enum dtype dtype, Shape s);
enum dtype op_result(const struct node *n);	/* what `types` says */
/* An error at N, "OP: ..."; false. */
bool node_fail(const struct node *n, const char *format, ...) PRINTF(2, 3);
/* A note at the operand: "left operand 'x' is f32[2, 3]" and MORE. */
void node_note(const struct node *n, int i, const char *more);

/* How many nodes and outputs read each value, by value id. */
int *graph_uses(const struct graph *g, struct arena *a);
/* Renumber nodes and values after a pass replaced the node list. */
void graph_renumber(struct graph *g);
/* Drop nodes that reach no output, update or kept value. Inputs and params
 * that were declared stay. */
void graph_sweep(struct graph *g);

/* ---- print.c, read.c: the graph as text, and back ---- */

void graph_print(const struct graph *g, struct text *t);
/* Reads what graph_print wrote; NULL after reporting errors. */
struct graph *graph_read(struct arena *a, const struct source *s);

/* ---- verify.c ---- */

/* Checks invariants: order, types against op_infer, distributions legal
 * (when known). Reports through bug(). */
void graph_verify(const struct graph *g);

#endif
