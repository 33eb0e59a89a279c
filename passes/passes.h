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
	const char *value;      /* its name, or the operator that makes it */
	const char *label;      /* its name, or the function that was called */
	Span span;		/* the statement that asks for it */
	Type type;
	Dist from, to;
	const struct trail *trail;	/* the calls that led to it */
	const char *algorithm;	/* "reduce-scatter(0), all-gather(0,1)" */
	const char *phase;	/* "forward" or "update" */
	int nsteps;
	const Dist *step;	/* the distribution after each move */
	int64_t recv_busiest, recv_total, lower_bound;
	/* With a topology: the bytes of the busiest rank by the plan that
	 * receives least, and what both take. */
	int64_t least_busiest;
	double seconds, least_seconds;
	struct plan *plan;	/* plan.c's own */
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
	/* views: what it is a slice of that readers find there, in the place
	 * and with the strides of that value's piece; or NULL. */
	const struct value *slice_of;
	/* memory: a value that shares another's bytes (views), or NULL. */
	const struct value *same_as;
	/* memory: the buffer in whose place it is written: an input's of its
	 * kernel, or the old value's of the state that it becomes; or NULL. */
	const struct value *over;
	/* memory: offset in the arena of each rank class; -1: not there. */
	int64_t *at;
};

struct program {
	struct arena *arena;
	struct graph *g;

	/* options */
	bool reproducible;
	bool simulate;		/* all ranks in one process ... */
	uint64_t seed;		/* ... in an order drawn from this */
	FILE *explain;		/* --explain: where to, or NULL */
	int64_t memory_limit;	/* --memory: bytes of a rank; 0: any */
	int64_t memory_aim;	/* what inference keeps to; 0: to that */
	int64_t memory_estimate;	/* of what it chose */
	int memory_tries;	/* of aims below the limit */

	/* boxing */
	LIST(struct boxing *) boxings;
	int64_t recv_busiest, recv_total;	/* bytes a step, all boxings */
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

/* Its name, else the function that the program calls for it, else the
 * operator. */
const char *value_label(const struct value *v);

/* ---- localize.c: what a rank holds, and which ranks are alike ---- */

/* Whether the ranks of CLASS run N, or hold V. */
bool class_runs(const struct program *p, int class, const struct node *n);
bool class_holds(const struct program *p, int class, const struct value *v);

/* ---- domain.c: the loops that the nodes of one kernel share ---- */

/* Mesh axes that split one axis of a domain, outermost first. */
struct chain {
	int n;
	uint8_t axes[MAX_MESH];
};

/*
 * A kernel runs over one logical shape, some of whose axes it may reduce. A
 * node of it is computed for each element, or ("row") once for all elements
 * that differ on reduced axes alone. `axis[k][i]` is the axis of the domain
 * that axis i of node k's output runs along.
 */
struct domain {
	Shape shape;
	unsigned reduced;	/* a bit for each axis */
	const struct placement *on;
	struct chain chain[MAX_RANK];
	bool *row;		/* by node */
	int8_t (*axis)[MAX_RANK];
};
/* Whether a kernel may hold N: elementwise, broadcast, reduction. */
bool kernel_may_hold(const struct node *n);
/* Whether N is written wherever it is used: a number, or a ramp of integers. */
bool kernel_copies(const struct node *n);
/* Whether N computes in vectors of f32 and bool; a kernel is of one kind. */
bool kernel_in_vectors(const struct node *n);
/* The domain of a kernel of these nodes, in order; false if they have none in
 * common. A single node always has one. */
bool domain_of(struct arena *a, struct node *const *body, int n,
	       struct domain *out);
/* The axes of the domain that input I of node K runs along, -1 where it is
 * broadcast. */
void domain_input(const struct domain *d, struct node *const *body, int k,
		  int i, int8_t axis[MAX_RANK]);

/* ---- fuse.c ---- */

/* Whether N permutes its last two axes alone. */
bool swaps_last_two(const struct node *n);

/* ---- views.c: local slices that are read where they lie ---- */

/* How a reader goes over a tensor, from what takes it only as a dense buffer
 * of its own to what takes any offset and strides. */
enum reading {
	READS_NOT,
	READS_RUN,	/* a run of bytes */
	READS_ROWS,	/* rows of the last axis, evenly apart */
	READS_TABLE,	/* rows of all axes but the first, evenly apart */
	READS_LANES,	/* vectors of the last axis that is longer than 1 */
	READS_ANY,
};
/* How N, which is no kernel, reads input I. */
enum reading node_reading(const struct node *n, int i);
/* A bit for each reading that may be of the source's piece where FROM -> TO is
 * a slice of it; 0: it is none. */
unsigned slice_readers(Type t, Dist from, Dist to);
/* Whether N is a move that a step runs: no slice that is read in place. */
bool move_runs(const struct program *p, const struct node *n);
/* Whose piece V is read in: its own, or that of what it is a slice of. */
const struct value *lies_in(const struct program *p, const struct value *v);

/* ---- inplace.c: outputs in the place of inputs ---- */

/* Whether N may write its output OUT where its input IN lies. */
bool may_overwrite(struct arena *a, const struct node *n,
		   const struct value *out, const struct value *in);
/* Whether a move may have its source and its target in one place. */
bool move_in_place(const struct node *n);

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
	const char *only;	/* --passes=P,Q: these, then print the graph */
	bool time, stats;
	FILE *out;		/* dumps go here */
};
/* Runs them in order, verifying after each. False once errors were reported;
 * *stopped is set when --stop-after or --passes ended it before codegen. */
bool passes_run(struct program *p, const struct pass_options *o,
		bool *stopped);
/* Every name of a comma-separated list is that of a pass, or "all". */
bool pass_exists(const char *list);
void passes_list(FILE *out);

/* ---- traffic.c: one move, and the bytes that it makes ranks receive ---- */

/*
 * What a move does on each mesh axis. A device of TO ends with its piece, in
 * which it keeps some elements (all, unless TO has P) and holds the identity
 * elsewhere. For each element that it keeps it combines the parts of FROM in
 * the order of the mesh coordinates, the last axis first where kinds differ:
 * one part for each coordinate on the axes in `reduce`; on those in `stay` its
 * own coordinate. A term of P in TO is one of three:
 *   stay   P of the same kind in FROM, on an equal placement, and no axis
 *          before it in `reduce` is of another kind: parts stay where they are
 *   place  a split axis of FROM, on an equal placement, and all P of TO are of
 *          one kind: a device keeps its shard. For each tensor axis these are
 *          the axes of FROM's nest, from outside, after those in which both
 *          nests agree
 *   fresh  else: devices of coordinate 0 keep
 * The identity is that of the last axis of P on which the device's coordinate
 * is not 0, or of TO's only kind. Mesh axes of one device count as B, whatever
 * their terms are.
 */
struct flow {
	bool same;		/* both placements are equal */
	bool stay[MAX_MESH], reduce[MAX_MESH];
	bool place[MAX_MESH], fresh[MAX_MESH];
	Dist keep;		/* FROM's splits down to those in `place` */
	int64_t parts;		/* how many are combined */
};
void flow_of(Dist from, Dist to, struct flow *f);
/* Of N numbers, or 0. */
int64_t greatest(const int64_t *v, int n);
bool dist_same_place(Dist a, Dist b);

/* Ranks of two placements and where they are in each. */
struct site {
	int rank;
	bool in[2];
	int coord[2][MAX_MESH];
};
struct sites {
	const struct placement *on[2];
	int world;		/* ranks of both together */
	int n;			/* of them here: all, or a sample */
	struct site *at;	/* by rank, ascending */
};
/* All ranks if there are at most LIMIT, else a sample that has the extremes.
 * Remembered by the addresses of the placements until sites_reset. */
const struct sites *sites_of(const struct placement *a,
			     const struct placement *b, int limit);
void sites_reset(void);
/* Bytes that each site receives by a move, and that it copies of its own.
 * FROM and TO lie on the placements of S, by address. */
void move_bytes(Type t, Dist from, Dist to, const struct sites *s,
		int64_t *recv, int64_t *local);

/* On equal placements: bytes that each site combines or copies of devices
 * that have its coordinates on the mesh axes in NEAR, a bit each; of itself
 * where these are all. */
void move_bytes_near(Type t, Dist from, Dist to, const struct sites *s,
		     unsigned near, int64_t *bytes);

/* Bytes that one move FROM -> TO receives: by the rank that receives most,
 * and by all. */
struct traffic {
	int64_t busiest, total;
};
struct traffic move_traffic_of(Type t, Dist from, Dist to);
struct traffic move_traffic(Type t, Dist from, Dist to);	/* cached */
/* A lower bound for the busiest rank of any plan. */
int64_t boxing_bound(Type t, Dist from, Dist to);

/* ---- topology.c: what links of a mesh cost ---- */

struct mesh_link {
	double latency;		/* seconds until the first byte */
	double rate;		/* bytes a second */
};

/* Lines of a topology file. Later ones go before earlier ones. */
struct topology_line {
	Name placement;		/* NULL: all */
	Name axis_name;		/* NULL: axis is meant */
	int axis;		/* -1: all */
	bool between;		/* not along an axis: between placements */
	struct mesh_link link;
	Span span, placement_span, axis_span;
};
struct topology {
	LIST(struct topology_line) lines;
};
/* False after reporting errors at the file's lines; if PATH cannot be read
 * *cannot is set, and errno tells why. */
bool topology_read(struct arena *a, const char *path, struct topology *t,
		   bool *cannot);
/* Whether what T names is in G; reports what is not. */
bool topology_fits(const struct topology *t, const struct graph *g);
struct mesh_link topology_link(const struct topology *t, const struct placement *on,
			  int axis);
struct mesh_link topology_between(const struct topology *t);

/* ---- predict.c: the seconds of a move ---- */

/* From now on along the links of T; NULL: among ranks of one host. T must
 * live until plan_reset. */
void predict_along(const struct topology *t);
bool predict_has_topology(void);
double move_seconds(Type t, Dist from, Dist to, const struct sites *s);
/* The same where move_bytes has been asked. */
double move_seconds_of(Type t, Dist from, Dist to, const struct sites *s,
		       const int64_t *recv, const int64_t *local);

/* ---- plan_search.c: the cheapest path of moves ---- */

enum { MAX_STEPS = 3 };
struct route {
	int n;
	Dist step[MAX_STEPS];	/* after each move */
};
/* Of at most MOST moves, by the bytes of the busiest rank, or by predicted
 * SECONDS; looks at all ranks if they are at most RANKS. No path receives
 * less than BOUND. */
void route_find(Type t, Dist from, Dist to, int ranks, int most,
		int64_t bound, bool seconds, struct route *r);

/* ---- plan.c: the cheapest sequence of moves ---- */

/* Fills steps, algorithm, bytes and bound. Cached by pattern. */
void plan_boxing(struct boxing *b);
/* Predicted seconds of converting; 0 when FROM and TO agree. Cached; for
 * inference. */
double boxing_seconds(Type t, Dist from, Dist to);
/* Fills recv_busiest and recv_total of P. */
void plan_totals(struct program *p);
/* Forgets all plans: their placements are about to go. */
void plan_reset(void);

/* ---- plan_name.c: what people call a move ---- */

/* "reduce-scatter(0)", "slice"; RECEIVES: it communicates. */
const char *move_name(struct arena *a, Dist from, Dist to, bool receives);

/* ---- plan_print.c ---- */

/* A hash of all that ranks must agree on: nodes, types, distributions,
 * moves. */
uint64_t plan_hash(const struct program *p);
/* Bytes of the largest arena, and the lowest rank that has it; 0 before
 * buffers are placed. */
int64_t plan_peak_memory(const struct program *p, int *rank);
/* --emit=plan, --emit=plan-json */
void plan_print(const struct program *p, FILE *out);
void plan_print_json(const struct program *p, FILE *out);

/* ---- the passes, in the order of passes.def ---- */

void pass_sbp(struct program *p);
void pass_boxing(struct program *p);
void pass_fuse(struct program *p);
void pass_localize(struct program *p);
void pass_views(struct program *p);
void pass_schedule(struct program *p);
void pass_memory(struct program *p);
void pass_proof(struct program *p);

/* ---- proof.c: that communication is matched ---- */

/* A move as the ranks of one class run it. */
struct comm {
	int id;			/* in the order of the plan */
	const struct node *n;
	int64_t from_at, to_at;	/* in their arena; -1: they have none */
};
struct comm_lists {
	LIST(struct comm) *of;	/* by rank class, in the order of the step */
};
struct comm_lists *comm_lists_new(struct arena *a, const struct program *p);
/* What the passes left. */
struct comm_lists *comm_lists_of(struct arena *a, const struct program *p);
/* Appends N, the move ID of the plan, to the list of CLASS. */
void comm_add(struct arena *a, struct comm_lists *l, const struct program *p,
	      int class, int id, const struct node *n);
/* Why ranks that run L may hang or go wrong, and at which node; NULL if they
 * cannot. Buffers are placed. */
const char *comm_why_not(const struct program *p, const struct comm_lists *l,
			 const struct node **at);
/* That they cannot, or else bug. */
void proof_demand(const struct program *p, const struct comm_lists *l);

/* Why the moves of P, whose buffers are placed, may hang or go wrong, and at
 * which node; NULL if they cannot. */
const char *proof_why_not(const struct program *p, const struct node **at);

/* ---- proof_reads.c ---- */

/* Why a move FROM -> TO is not one that all its ranks agree on, or NULL. */
const char *reads_why_not(Type t, Dist from, Dist to);

/* ---- owners.c: who wrote each byte of an arena last ---- */

struct owners;
struct owners *owners_new(struct arena *a, const struct program *p, int class);
/* Value ID writes BYTES bytes at AT, where a buffer lies. */
void owners_set(struct owners *o, int64_t at, int64_t bytes, int id);
/* Whether all of them are still what it wrote. */
bool owners_have(const struct owners *o, int64_t at, int64_t bytes, int id);

/* ---- bytemap.c: from byte strings to pointers ---- */

struct byteslot;
struct bytemap {		/* zeroed: empty */
	struct byteslot *at;
	size_t n, room;
};
/* The pointer that belongs to KEY, NULL at first; valid until the next call. */
void **bytemap_at(struct arena *a, struct bytemap *m, const void *key,
		  size_t n);

/* ---- pbqp.c: the least sum of cost tables ---- */

typedef int64_t Cost;		/* in units that candidates.c chooses */

/* Variables with small domains, and tables over few of them. */
struct pbqp;
struct pbqp *pbqp_new(struct arena *a, int nvars, const int *domain);
int pbqp_variable(struct pbqp *q, int domain);	/* one more; its number */
/* TABLE is row-major over VARS, all different, and must outlive the problem. */
void pbqp_add(struct pbqp *q, int nvars, const int *vars, const Cost *table);

struct pbqp_result {
	Cost cost;	/* of the choice */
	Cost bound;	/* no choice costs less; equal to cost if exact */
};
/* Fills choice, by variable. Eliminates variables exactly while tables have at most
 * LIMIT entries; above it splits them, which gives a bound. */
struct pbqp_result pbqp_solve(struct pbqp *q, size_t limit, int *choice);

/* ---- space.c: distributions and types by number, and prices ---- */

/* A model of a rank of the machine; only ratios matter. */
#define GEMM_FLOPS 5e10		/* of a matrix product, a second */
#define MEMORY_RATE 2e10		/* bytes a second of main memory */
#define CACHE_RATE 1e11		/* of what is small enough to be in a cache */
#define CACHE 0x1p19
#define WAIT 1e-5		/* seconds until the last has come to a meeting */
/* Weights stay where they are: one that is received counts as often as a step
 * that trains would move it (forward, backward, its gradient), and once for the
 * copy that is held. */
#define WEIGHT 4

struct space {
	struct arena *a;
	double units;		/* of Cost in a second */
	LIST(Dist) dists;
	LIST(Type) types;
	struct bytemap dist_id, type_id, maker, list, some, bytes, convert,
		table, gaps, pruned, rows, dearer;
	int nmakers, nlists, nrows;
	bool reproducible;	/* floats lie in parts only where asked */
	struct text key;	/* scratch */
	LIST(int64_t) seen;	/* by dist: the last fan_cost that met it */
	int64_t stamp;
};
void space_init(struct space *s, struct arena *a, const struct graph *g);
void space_done(struct space *s);
int space_dist(struct space *s, Dist d);
int space_type(struct space *s, Type t);
bool space_legal(struct space *s, int type, int dist);
Cost space_units(struct space *s, double seconds);
/* Bytes on the rank that holds most; dist is legal for type. */
int64_t space_bytes(struct space *s, int type, int dist);
/* Of converting, from the predicted seconds. One that receives is paid once
 * for each target, one that copies locally by each reader, the other is 0.
 * Readers that find a slice where it lies pay `stay` instead of a copy. */
struct price {
	Cost receive, copy, stay;
	unsigned in_place;	/* as slice_readers has it */
};
/* What a reader of its own pays. */
static inline Cost price_copy(struct price p, enum reading how)
{
	return p.in_place >> how & 1 ? p.stay : p.copy;
}
struct price space_price(struct space *s, int type, int from, int to);
/* Whether the splits of TO along tensor AXIS begin with those of FROM, or
 * have all become P. */
bool nest_grows(Dist from, Dist to, int axis);

/* ---- inside.c: what stays in registers ---- */

/* By node id. Bit i: input i is not read from memory; bit 16 + i: output i is
 * not written there. From input or output 15 on they always are. */
unsigned *inside_bits(struct graph *g, struct arena *a);

/* ---- candidates.c: what an operator may do, and what it costs ---- */

enum { REACH_MAX = 1, REACH_MIN = 2 };	/* P(max), P(min) may occur */

/* What decides which distributions a node may take. Two nodes with equal
 * requests share their lists. */
struct request {
	const struct node *n;	/* NULL: a reader of TYPE outside all nodes */
	Type type;		/* then */
	Dist want;		/* what TYPE, or the one output, must lie as */
	unsigned reach;		/* of all inputs */
	unsigned inner;		/* as inside_bits has it */
	bool fixed;		/* no input of the model reaches it */
};

/*
 * Legal distributions of a node's inputs and outputs. Row i is
 * in[i * nin ...], out[i * nout ...], indices into the space's dists.
 */
struct maker;
struct candidates {
	struct maker *maker;	/* equal requests have the same */
	int id, n, nin, nout, naxes;
	int rows;		/* equal for lists of the same rows */
	bool whole;		/* all that are legal; else a neighbourhood */
	int *in, *out;
	int *in_type, *out_type;
	const enum reading *reading;	/* by input */
	Cost *cost;		/* of computing */
	uint16_t *pick;		/* i * naxes: the 1-D signature on each axis */
	unsigned reach;		/* of the outputs */
	int *row;		/* of a selection: its rows in the whole */
};

/* All legal rows if they are few, else those near the first. n == 0: none. */
struct candidates *candidates_of(struct space *s, struct request r);
/* Those that differ from row ROW on one mesh axis at most. */
struct candidates *candidates_near(struct space *s, struct candidates *c,
				   int row);
/* 1-D signatures that a reproducible program does without on some mesh axis;
 * those that take a tensor in parts only if PARTS. */
struct sigs candidates_withheld(struct space *s, struct arena *a,
				const struct candidates *c, bool parts);
/* Of converting output OUT of row ROW to TO. */
struct price candidates_price(struct space *s, const struct candidates *c,
			      int out, int row, int to);
/* The same rows, each with MORE added to its cost. */
struct candidates *candidates_dearer(struct space *s, struct candidates *c,
				     const Cost *more);
/* N rows of C. */
struct candidates *candidates_some(struct space *s, struct candidates *c,
				   const int *row, int n);

/* ---- fan.c: what the conversions of one value cost ---- */

/* All inputs of one node, or one reader outside, that read one value. */
struct port {
	int var, nslots;
	int *slot;
};
/* A value's producer and readers. */
struct fan {
	int type, out;			/* which output of the producer */
	const struct candidates *from;
	int nports;
	const struct port *port;
	const struct candidates **to;	/* by port */
};
/* The distributions that its readers may want, and what they cost. */
struct wants {
	int ntargets;
	int *target;			/* dist ids */
	struct price *price;		/* by row of from, target */
	int **at;			/* by port: row, slot -> target */
	bool *shared;			/* by target: two inputs may want it */
};
/* How the reader of a port's slot reads. */
enum reading fan_reading(const struct fan *w, int port, int slot);
void fan_wants(struct space *s, struct arena *a, const struct fan *w,
	       struct wants *t);
void fan_key(struct text *key, const struct fan *w);

/* A table over the producer, the fan's set if it has one, and NPORTS readers
 * from FIRST on; row-major. */
struct fan_table {
	bool set;
	int first, nports;
	Cost *at;
};
/*
 * A set, where there is one, is a variable of its own: which distributions
 * are converted to once for all readers. It has `sets` values.
 */
struct fan_tables {
	bool ready;
	bool exact;	/* nothing that two readers share is counted twice */
	int sets;	/* 0: no such variable */
	int n;
	struct fan_table *at;
};
/* Equal fans share their tables. */
const struct fan_tables *fan_find(struct space *s, const struct fan *w);
/* Sharing is modelled once the producer has one candidate only. */
bool fan_is_wide(const struct fan *w);
/* What the value costs if its producer takes row FROM and port i to[i]. */
Cost fan_cost(struct space *s, const struct fan *w, int from, const int *to);

/* ---- prune.c: candidates that others of the same node always beat ---- */

/*
 * Rows grouped by what they have in one place (an input, an output). at[i * n
 * + j] is the most that group i can cost there beyond group j, whatever the
 * other nodes do.
 */
struct gap {
	int n;
	int *group;		/* by row */
	Cost *at;
};
/* Of a fan: the producer's, then those of each port's slots. */
struct gap *fan_gaps(struct space *s, const struct fan *w);
/* C without the rows that another row is never worse than. */
struct candidates *candidates_pruned(struct space *s, struct candidates *c,
				     struct gap *const *gap, int ngaps);

/* ---- choose.c: the least sum ---- */

/* An output (else -1) or update (else -1) that reads V. */
struct reader {
	struct value *v;
	int output, update;
};

/* The state of inference. */
struct infer {
	struct graph *g;
	struct arena *a;		/* of the pass */
	struct space s;
	int nvars;			/* nodes by id, then readers */
	struct candidates **list;
	int *row;			/* the choice */
	LIST(struct reader) readers;
	int *first;			/* by value id: where its ports start */
	struct port *port;
	bool *fixed;			/* by node id */
	unsigned char *reach;		/* by value id */
	unsigned *inner;		/* by node id, as inside_bits has it */
	bool exact;
	Cost cost;
	Cost bound;			/* no choice costs less */
	/* What a byte of each value costs while memory is limited. */
	double byte_price;
	double *weight;			/* by value id */
	int64_t limit, bytes;		/* of a rank; 0: none, not estimated */
};
/* Fills row, cost, bound and exact; row must be NULL. */
void infer_choose(struct infer *f);
/* What all rows cost, without the price of memory. */
Cost infer_cost(struct infer *f, struct candidates **list, const int *row);
/* What depends on the row of variable X. */
Cost infer_cost_around(struct infer *f, struct arena *a, int x);

/* ---- limit.c: within so many bytes a rank ---- */

/* As infer_choose, under f->limit; fills bytes too. If nothing fits, what
 * needs least. */
void infer_within(struct infer *f);
/* The bytes that a rank is estimated to need for ROW. */
int64_t infer_bytes(struct infer *f, const int *row);

/* ---- sbp.c: what inference decided ---- */

/* A candidate for each variable: the nodes by id, then the readers. */
struct decision {
	struct graph *g;
	struct space *space;
	int nvars, nreaders;
	const struct reader *reader;
	struct candidates **list;	/* NULL: a reader of anything */
	int *row;
	Cost cost, bound;	/* no choice costs less than bound */
	bool exact;		/* proved: no choice costs less */
	int64_t limit, bytes;	/* of memory: allowed (0: all), estimated */
	/* What variable X would cost by row ROW, with its conversions and all
	 * else as decided. */
	Cost (*price)(void *data, int x, int row);
	/* The bytes that a rank is estimated to need for these rows. */
	int64_t (*weigh)(void *data, const int *row);
	void *data;
};
/* Decides within LIMIT bytes a rank, if that is not 0, and calls LOOK before
 * anything is written to the graph; not after errors. */
void sbp_decide(struct graph *g, int64_t limit,
		void (*look)(const struct decision *d, void *data),
		void *data);

/* ---- explain.c ---- */

void explain_print(const struct decision *d, FILE *out);

/* ---- diff.c ---- */

/* Lines of OLD and NEW that differ, as a unified diff without context. */
void diff_print(const char *old, const char *new, FILE *out);

#endif
