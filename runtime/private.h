/*
 * private.h: what the files of the runtime share. m is the model's handle, p
 * its program, c its ranks, x an exchange, e where a message goes.
 */
#ifndef SBP_PRIVATE_H
#define SBP_PRIVATE_H

#include <stdio.h>
#include <sys/socket.h>

#include "runtime/comm.h"

/* ---- status.c ---- */

/* Writes a message; returns STATUS. */
sbp_status message_set(sbp_message *e, sbp_status status, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));
/* Makes E the last error of a model that can go on. Returns STATUS. */
sbp_status model_refuse(sbp_model *m, sbp_status status,
			const sbp_message *e);
/* The same for a model that cannot, and tells the peers. */
sbp_status model_fail(sbp_model *m, sbp_status status, const sbp_message *e);
/* The same with a step, an operator and a line before it. */
sbp_status model_fail_at(sbp_model *m, int line, const char *op,
			 const char *value, const sbp_message *e);

/* ---- env.c ---- */

struct env {
	int rank, world, local_rank, local_world;
	char address[256];	/* of rank 0; "" when world is 1 */
	int port;
	char job[128], token[128];
	double timeout;		/* seconds */
};
/* Reads who this process is, for a program of WORLD ranks. After an error
 * env->rank is -1 where it is not known. */
sbp_status env_read(struct env *env, int world, sbp_message *e);
/* For ranks that are threads: the time limit alone. */
sbp_status env_group(struct env *env, sbp_message *e);
/* OMP_NUM_THREADS, or the cores that fall to one of LOCAL ranks. */
sbp_status env_threads(int local, int *threads, sbp_message *e);

/* ---- address.c ---- */

struct address {
	struct sockaddr_storage at;
	socklen_t size;
};
/* Of rank 0; within a second. */
sbp_status address_resolve(const struct env *env, struct address *a,
			   sbp_message *e);
bool address_is_local(const struct address *a);	/* on the loopback */

/* ---- store.c: where ranks meet ---- */

struct store_record {	/* what each rank tells the others */
	int32_t rank, pid, memory;
	int64_t arena_bytes;
	char host[128];		/* equal where /proc is shared */
	char name[64];		/* of the host, for people */
};
/* Gives MINE, returns everybody's in ALL, by rank. */
sbp_status store_meet(const struct env *env, uint64_t plan_hash,
		      const struct store_record *mine,
		      struct store_record *all, sbp_message *e);

/* ---- isa.c ---- */

/* Whether this processor has everything in LIST ("avx512f,fma"). */
sbp_status isa_check(const char *list, sbp_message *e);

/* ---- gemm.c, gemm_fixed.c ---- */

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* C = A B in f32, as sbp_gemm has it; each element's bits depend on its row
 * and column alone. */
void gemm_fixed(sbp_model *m, int ta, int tb, int64_t rows, int64_t cols,
		int64_t inner, const float *a, int64_t lda, const float *b,
		int64_t ldb, float *c);

/* ---- piece.c: pieces by formula ---- */

int mesh_size(const sbp_placement *on);
int mesh_rank(const sbp_placement *on, int index);
int mesh_index(const sbp_placement *on, int rank);	/* -1: not in it */
void mesh_coords(const sbp_placement *on, int index, int *coord);
int mesh_at(const sbp_placement *on, const int *coord);
bool mesh_equal(const sbp_placement *a, const sbp_placement *b);
int split_order(const sbp_dist *d, int i);
/* What the device at COORD holds of SHAPE: all of it along B and P. */
sbp_box piece_at(const sbp_dist *d, int rank, const int64_t *shape,
		 const int *coord);
sbp_box piece_and(const sbp_box *a, const sbp_box *b);
/* "(B, S(0))" */
void dist_describe(char *to, size_t size, const sbp_dist *d);

/* ---- exchange.c: who reads what of whom in a move ---- */

/* A box of the target piece whose elements have the same sources. Axes that
 * are contiguous on both sides are merged; strides are in elements. */
struct cell {
	int rank;
	int64_t n[SBP_MAX_RANK];
	int64_t from_stride[SBP_MAX_RANK], to_stride[SBP_MAX_RANK];
	int64_t from, to;	/* of the first element, in the pieces */
	int first;		/* in exchange.peer; nparts of them */
	sbp_box box;		/* in the logical tensor */
};

struct exchange {
	const sbp_pattern *how;
	int64_t count;		/* elements of the target piece, if held */
	bool holds;		/* this rank has a target piece */
	bool fills;		/* ... which starts as identity, of FILL */
	char fill;
	int ncells;
	struct cell *cell;
	int *peer;		/* whom each part of a cell is read from */
	/* Reductions from the outermost level to the innermost. */
	int nparts, nlevels;
	int parts[SBP_MAX_MESH];
	char reduce[SBP_MAX_MESH];
	int nwriters, nreaders;	/* other ranks read here, that read me */
	int *writer, *reader;
	bool pairs;			/* an all-reduce of two ranks */
	/* Of this rank's source piece, or 0; of the largest. */
	int64_t source_bytes, most_bytes;
	int64_t recv_bytes;
	struct exchange *next;
};
/* The copy of BOX from a dense PIECE that has it to a dense TARGET. */
void cell_init(struct cell *c, const sbp_box *piece, const sbp_box *target,
	       const sbp_box *box);
/* NULL when out of memory. */
struct exchange *exchange_new(const sbp_pattern *how, int me);
void exchange_free(struct exchange *x);

/* ---- reduce.c: elements ---- */

/* N elements of the reduction's identity: -0.0 or 0, least, greatest. */
void fill_identity(void *to, sbp_dtype t, char reduce, int64_t n);
/* acc = acc REDUCE from, or acc = a REDUCE b; no 16-bit floats, no bools. */
void combine(void *to, const void *a, const void *b, sbp_dtype t, char reduce,
	     int64_t n);
/* The same into TO and MATE; any of the four may be the same. */
void combine_both(void *to, void *mate, const void *a, const void *b,
		  sbp_dtype t, char reduce, int64_t n);
/* The same past the caches, into TO and, unless it is NULL, MATE. */
void combine_past(void *to, void *mate, const void *a, const void *b,
		  sbp_dtype t, char reduce, int64_t n);

/* ---- stream.c: copies of much memory ---- */

/* As memcpy, but past the caches: for what is not read again soon. */
void stream_copy(void *to, const void *from, int64_t bytes);
/* After the last of them: other ranks see what was written. */
void stream_end(void);

/* ---- cell.c: copies and reduces cells ---- */

/* Where a cell's elements go. */
struct sink {
	unsigned char *to;	/* the target piece */
	unsigned char *mate;	/* another rank's, which gets the same */
	bool stream;		/* past the caches */
};
/* The elements LO to HI of axis 0 of cell C; the parts are in the pieces at
 * BASE[part[0]], BASE[part[1]], ... */
void cell_run(const struct exchange *x, const struct cell *c, int64_t lo,
	      int64_t hi, const unsigned char *const *base, const int *part,
	      const struct sink *to);
/* Of axis 0; the elements behind one of them. */
int64_t cell_rows(const struct cell *c);
int64_t cell_row_elements(const struct cell *c);
/* Copies a box between two dense arrays that have it. */
void copy_box(void *to, const sbp_box *to_box, const void *from,
	      const sbp_box *from_box, const sbp_box *box, int width);

/* ---- move.c ---- */

/* Pieces of at most MAIL bytes are sent as mail; targets of at least STREAM
 * bytes are written past the caches. Tests set them. */
extern struct move_limits {
	int64_t mail, stream;
} move_limits;
/* Runs X from the arenas at FROM_AT (by rank class) to TO, once, in
 * LANE_HOST. */
sbp_status exchange_run(sbp_model *m, const struct exchange *x,
			const int64_t *from_at, void *to, uint64_t n,
			sbp_message *e);
/* Frees a route; see move.c. NULL is fine. */
struct route;
void route_free(struct route *r);

/* ---- simulate*.c: hooks, where c->simulation is set ---- */

/* comm_watch, in which other ranks run. PEER is -1 before ranks know one
 * another. */
sbp_status simulate_watch(struct comm *c, int peer, const struct watch *w,
			  sbp_message *e);
/* This rank has posted a flag; has sent message N; waits for PEER's; has
 * failed. */
void simulate_post(struct comm *c, enum lane lane, enum flag flag, uint64_t n);
void simulate_send(struct comm *c, uint64_t n);
sbp_status simulate_receive(struct comm *c, int peer, uint64_t n,
			    sbp_message *e);
void simulate_failed(struct comm *c);
/* Whether all was right that this rank did so far. */
sbp_status simulate_check(struct comm *c, sbp_message *e);
/* This rank reads or writes BYTES at AT in OWNER's memory; nothing, if it is
 * not there. */
void simulate_access(struct comm *c, int owner, const void *at, int64_t bytes,
		     bool write);
/* The same of RANK's piece of T; what follows is about T. */
void simulate_tensor(const sbp_model *m, const sbp_tensor *t, int rank,
		     bool write);
void simulate_about(const sbp_model *m, const sbp_tensor *t);
/* The same of what cell_run does. */
void simulate_cell(struct comm *c, const struct exchange *x,
		   const struct cell *cell, int64_t lo, int64_t hi,
		   const unsigned char *const *base, const int *part,
		   const struct sink *to);
/* X begins, from OWN to TO (or NULL); it has ended. */
void simulate_exchange(struct comm *c, const struct exchange *x,
		       const unsigned char *own, const unsigned char *to);
void simulate_exchanged(struct comm *c);
/* Calls of a step begin to run, up to the next move or the end of the step. */
void simulate_calls(sbp_model *m);
/* A step meets MOVE; it is done. */
sbp_status simulate_move(sbp_model *m, const sbp_move *move, sbp_message *e);
sbp_status simulate_step(sbp_model *m, sbp_message *e);
/* Fills fresh memory of RANK with what no program should read. */
void simulate_litter(struct simulation *s, int rank, unsigned char *at,
		     int64_t bytes);

/* ---- model.c, tensor.c ---- */

struct sbp_private {
	const sbp_program *p;
	struct comm comm;
	struct env env;
	sbp_piece *own;
	_Atomic int failed;
	sbp_message error;
	struct route **move;		/* by move id, filled when first run */
	struct exchange *patterns;	/* all of them */
	bool *given;			/* by tensor: has a value */
	bool ready;			/* all tensors have been given */
	uint64_t steps;
	int64_t recv_bytes;		/* since the model was opened */
	uint64_t comm_ticks;		/* in moves with other ranks */
	uint64_t looked;		/* ticks when, at the peers */
	int patience;			/* moves until it is thought of */
	int impatience;			/* what it is set to */
	/* Of programs for cuda: what runtime/cuda keeps of this rank. */
	void *device;
	void (*device_close)(void *device);
};

/* Lookup in a role set, a bit mask of 1 << enum sbp_role; -1: none. */
enum {
	ROLES_FED = 1 << SBP_INPUT | 1 << SBP_PARAM | 1 << SBP_STATE,
	ROLES_SAVED = 1 << SBP_PARAM | 1 << SBP_STATE,
	ROLES_ALL = 63,
};
int tensor_find(const sbp_program *p, const char *name, unsigned roles);
/* This rank's piece; false when it has none. */
bool tensor_piece(const sbp_model *m, const sbp_tensor *t, sbp_box *box);
bool tensor_piece_of(const sbp_tensor *t, int rank, sbp_box *box);
void *tensor_at(const sbp_model *m, const sbp_tensor *t);
int tensor_class(const sbp_program *p, int rank);
/* Initial values: of consts; of params and states that have no value yet. */
void tensors_begin(sbp_model *m);
void tensors_fill(sbp_model *m);
/* Gathers T on rank 0 only (TO is not used elsewhere), or everywhere. */
sbp_status tensor_gather(sbp_model *m, const sbp_tensor *t, bool everywhere,
			 void *to, sbp_message *e);
/* Whether this rank holds T with coordinate 0 on all P axes; if not, fills
 * its piece with identities. */
bool tensor_keeps(sbp_model *m, const sbp_tensor *t);
/* sbp_load; calls WARN for tensors of the file that the program lacks. */
sbp_status model_load(sbp_model *m, const char *path,
		      void (*warn)(void *context, const char *text),
		      void *context, sbp_message *e);
sbp_status model_save(sbp_model *m, const char *path, sbp_message *e);
/* Every input, param and state has a value. */
sbp_status model_ready(sbp_model *m, sbp_message *e);

/* ---- show.c: numbers and tensors as text ---- */

/* One element in the fewest digits that read back to the same bits. Returns
 * the length; ROOM is at least 32. */
int show_element(char *to, sbp_dtype t, const void *element);
int show_double(char *to, double d);
double element_double(sbp_dtype t, const void *from);
int64_t element_int(sbp_dtype t, const void *from);	/* not of floats */
/* All pieces of T in the order of the ranks, from rank 0; all ranks call. */
sbp_status show_tensor(sbp_model *m, const sbp_tensor *t, sbp_message *e);
void show_summary(const sbp_model *m);

/* ---- options.c, feed.c, main.c ---- */

struct pair {			/* NAME=VALUE */
	const char *name, *value;
};
struct pairs {
	struct pair *at;
	int n;
};
struct options {
	struct pairs input, output, local_input, local_output, data;
	const char *load, *save, *log;
	char **show;
	int nshow;
	bool eval, summary, quiet, help, has_seed;
	bool runs;		/* not --summary alone */
	int64_t steps, bench;
	uint64_t seed;
};
sbp_status options_read(struct options *o, int argc, char **argv,
			sbp_message *e);
void options_help(const char *program);
void options_free(struct options *o);

/* What main feeds and takes: files, data sets. */
struct feed {
	struct data_set **set;		/* by source, NULL where not used */
	bool *fixed;			/* by tensor: fed by --input */
	int64_t batch, samples;		/* of the inputs from data sets; 0 */
};
/* All names on the command line exist. */
sbp_status feed_check(const sbp_program *p, const struct options *o,
		      sbp_message *e);
sbp_status feed_open(struct feed *f, sbp_model *m, const struct options *o,
		     sbp_message *e);
/* Batch NUMBER of every data set into the inputs. */
sbp_status feed_batch(struct feed *f, sbp_model *m, int64_t number,
		      sbp_message *e);
void feed_close(struct feed *f, const sbp_program *p);
sbp_status feed_outputs(sbp_model *m, const struct options *o,
			sbp_message *e);
/* Whether this rank could write what it will have to after the steps. */
sbp_status feed_check_outputs(sbp_model *m, const struct options *o,
			      sbp_message *e);

/* ---- bench.c ---- */

struct bench {
	int64_t steps, recv_bytes;	/* received by this rank, a step */
	double *ms, *comm_ms;		/* of each step */
};
sbp_status bench_run(sbp_model *m, struct bench *b, sbp_message *e);
void bench_free(struct bench *b);
/* Rank 0's line of JSON. */
sbp_status bench_report(sbp_model *m, struct bench *b, sbp_message *e);

/* ---- report.c: scalar outputs, --log and --eval ---- */

struct report {
	FILE *log;			/* of rank 0 */
	bool eval;
	double *sum;			/* by tensor: of --eval */
	int64_t *count;			/* the same for integers */
	double start;
};
sbp_status report_open(struct report *r, sbp_model *m,
		       const struct options *o, sbp_message *e);
/* After step STEP (from 1) of batches as F's. */
sbp_status report_step(struct report *r, sbp_model *m, const struct feed *f,
		       int64_t step, sbp_message *e);
void report_eval(const struct report *r, const sbp_model *m,
		 const struct feed *f);
sbp_status report_close(struct report *r, sbp_message *e);

#endif
