/*
 * sbp.h: the public header of sbpc's runtime, for emitted code and for the
 * programs that embed it. No function here aborts, exits or prints, sbp_main
 * excepted: errors come back as a status, with a text from sbp_error().
 */
#ifndef SBP_H
#define SBP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SBP_ABI 1

typedef enum sbp_status {	/* also the exit codes of a program */
	SBP_OK = 0,
	SBP_FAILED = 1,		/* while running */
	SBP_USAGE = 2,		/* options, input files, world size */
} sbp_status;

/* Passes an error on to the caller. */
#define SBP_TRY(call)                                                         \
	do {                                                                  \
		sbp_status sbp_try_ = (call);                                 \
		if (sbp_try_ != SBP_OK)                                       \
			return sbp_try_;                                      \
	} while (0)

/* ---- what a program is: tables that emitted code fills ---- */

typedef enum sbp_dtype {	/* ORDER dtype: ir/ir.h has the same */
	SBP_BOOL, SBP_U8, SBP_I8, SBP_I32, SBP_I64,
	SBP_F16, SBP_BF16, SBP_F32, SBP_F64
} sbp_dtype;

enum { SBP_MAX_RANK = 8, SBP_MAX_MESH = 4 };

typedef struct sbp_placement {
	const char *name;
	int naxes;
	int extent[SBP_MAX_MESH];
	const int *ranks;	/* row-major; NULL: first, first + 1, ... */
	int first;
} sbp_placement;

typedef struct sbp_term {
	char kind;		/* 'B' broadcast, 'S' split, 'P' partial */
	signed char axis;	/* of S */
	char reduce;		/* of P: '+', 'x' greatest, 'n' least */
} sbp_term;

typedef struct sbp_dist {
	const sbp_placement *on;
	sbp_term term[SBP_MAX_MESH];
	/* which mesh axis splits first; order[0] is outermost */
	unsigned char order[SBP_MAX_MESH];
} sbp_dist;

/* A run of indices of one tensor axis. */
typedef struct sbp_piece {
	int64_t lo, n;
} sbp_piece;

/* Part I of N elements over PARTS: the first n mod parts have one more. */
static inline sbp_piece sbp_split(int64_t n, int parts, int i)
{
	int64_t q = n / parts, r = n % parts;
	sbp_piece p = {q * i + (i < r ? i : r), q + (i < r)};

	return p;
}

/* A piece that differs from rank to rank: N elements split by mesh axes,
 * outermost first. m->own[] has this rank's. */
typedef struct sbp_extent {
	int64_t n;
	const sbp_placement *on;
	int naxes;
	unsigned char axes[SBP_MAX_MESH];
} sbp_extent;

/* One move of a conversion: every rank of TO fetches the parts of its piece
 * that it lacks from ranks of FROM, reducing partial values in the order of
 * the mesh coordinates. */
typedef struct sbp_pattern {
	sbp_dtype dtype;
	int rank;
	int64_t shape[SBP_MAX_RANK];
	sbp_dist from, to;
	const char *name;	/* "all-gather(0)" */
} sbp_pattern;

typedef struct sbp_move {
	const sbp_pattern *how;
	const char *value;	/* name in the source */
	int line;
	int id;			/* the same on all ranks, in plan order */
	/* Offsets in the arena, by rank class; -1 where a class lacks it. */
	const int64_t *from_at, *to_at;
} sbp_move;

typedef enum sbp_role {
	SBP_INPUT, SBP_PARAM, SBP_STATE, SBP_CONST, SBP_OUTPUT, SBP_KEPT
} sbp_role;

typedef enum sbp_init_kind {	/* ORDER init: ir/ir.h has the same */
	SBP_INIT_NONE, SBP_INIT_CONSTANT, SBP_INIT_UNIFORM, SBP_INIT_NORMAL,
	SBP_INIT_TRUNC_NORMAL, SBP_INIT_DATA
} sbp_init_kind;

typedef struct sbp_init {
	sbp_init_kind kind;
	double a, b, c, d;
	const void *data;		/* logical, row-major */
	const void *const *local;	/* or a piece for each rank of the
					 * placement */
} sbp_init;

typedef struct sbp_tensor {
	const char *name;
	sbp_role role;
	sbp_dtype dtype;
	int rank;
	int64_t shape[SBP_MAX_RANK];	/* logical */
	sbp_dist dist;
	const int64_t *at;	/* offset in the arena, by class; -1: none */
	sbp_init init;		/* of params, states, consts */
	int source;		/* of inputs: index in sources, or -1 */
	const char *field;	/* of that source */
	int line;
} sbp_tensor;

typedef enum sbp_data_kind { SBP_DATA_IDX, SBP_DATA_NPY } sbp_data_kind;
typedef struct sbp_source {
	const char *name;
	sbp_data_kind kind;
	const char *file[2];
} sbp_source;

typedef struct sbp_model sbp_model;

typedef struct sbp_program {
	int abi;			/* SBP_ABI */
	const char *name, *file;	/* the model, its source */
	uint64_t plan_hash;
	int world;
	const char *isa;		/* "avx512f,fma": needed to run */
	int nclasses;
	const unsigned short *class_of;	/* by rank; NULL: all 0 */
	const int64_t *arena_bytes;	/* by class */
	sbp_status (*const *step)(sbp_model *m);	/* by class */
	int nextents, ntensors, nsources, nmoves;
	const sbp_extent *extents;
	const sbp_tensor *tensors;
	const sbp_source *sources;
	int64_t recv_busiest, recv_total;	/* bytes a step */
	int kernels, collectives;
	int reproducible;		/* the same bits on any mesh */
} sbp_program;

/* What a call of a step does to the arena. */
typedef struct sbp_access {
	int64_t at, bytes;
	const char *op, *value;
	int line;
	int write;
} sbp_access;

/* What the ranks of a class do in a step: the moves in their order, and the
 * accesses of the calls between them. */
typedef struct sbp_trace {
	int nmoves;
	const int *move;	/* their ids */
	/* Those in front of move i end in front of access[until[i]], those
	 * after the last move in front of access[until[nmoves]]. */
	const int *until;
	const sbp_access *access;
} sbp_trace;

/* ---- what emitted code reads and calls ---- */

/* The handle. Emitted code uses these members; the rest is the runtime's. */
struct sbp_model {
	unsigned char *arena;
	const sbp_piece *own;	/* one for each of the program's extents */
	uint64_t seed, step;
	int threads;
	int rank, world, class_;
	struct sbp_private *private_;
};

/* Straight runs of calls, which to optimise takes long and gains nothing. */
#if defined(__clang__)
#define SBP_CALLS __attribute__((noinline, optnone))
#else
#define SBP_CALLS __attribute__((noinline))
#endif

/* The instruction sets that this translation unit is compiled for, as far as
 * sbp_open can ask the processor for them. */
#if defined(__AVX512F__) && defined(__AVX512VL__)
#define SBP_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#elif defined(__AVX2__) && defined(__FMA__)
#define SBP_ISA "avx2,fma"
#elif defined(__AVX__)
#define SBP_ISA "avx"
#else
#define SBP_ISA ""
#endif

sbp_status sbp_move_run(sbp_model *m, const sbp_move *move);

/* Records an error of this rank at LINE of the model's file; returns
 * SBP_FAILED. */
sbp_status sbp_fail(sbp_model *m, int line, const char *op,
		    const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Calls body(context, lo, hi) over parts of [0, n), each of at least GRAIN,
 * on the threads of this rank; returns when all are done. The cut does not
 * depend on the number of threads. */
void sbp_parallel(sbp_model *m, int64_t n, int64_t grain,
		  void (*body)(void *context, int64_t lo, int64_t hi),
		  void *context);

/*
 * c = a b for row-major matrices, a of [rows, inner] (or [inner, rows] where
 * TA), b of [inner, cols] (or [cols, inner] where TB), all of DTYPE. LDA and
 * LDB are the elements from a row of a and of b to the next, as many as the
 * row has or more; c is dense. Sums are kept in f32 for f16 and bf16; integers
 * wrap.
 */
sbp_status sbp_gemm(sbp_model *m, sbp_dtype dtype, int ta, int tb,
		    int64_t rows, int64_t cols, int64_t inner, const void *a,
		    int64_t lda, const void *b, int64_t ldb, void *c);

/* ---- embedding ---- */

typedef struct sbp_options {
	int threads;		/* 0: OMP_NUM_THREADS, or cores / local ranks */
	uint64_t seed;
	int has_seed;
	/* Ranks as threads of this process: see sbp_group_new. NULL: one
	 * rank, or the environment's (RANK, WORLD_SIZE, ...). */
	struct sbp_group *group;
	int rank;		/* in the group */
} sbp_options;

/* Joins the other ranks and lays out the arena. On an error *out is still
 * set where possible, for sbp_error; close it. */
sbp_status sbp_open(const sbp_program *p, const sbp_options *o,
		    sbp_model **out);
void sbp_close(sbp_model *m);
/* The last error: rank, step, operator, source line. "" if there was none. */
const char *sbp_error(const sbp_model *m);

sbp_status sbp_step(sbp_model *m);

/* Logical tensors by name. Every rank calls with the same; DATA is the whole
 * tensor in its dtype, row-major. */
sbp_status sbp_set(sbp_model *m, const char *name, const void *data);
sbp_status sbp_get(sbp_model *m, const char *name, void *data);
/* This rank's piece, in place; NULL if it has none. SHAPE may be NULL. */
void *sbp_local(sbp_model *m, const char *name, int64_t *shape);
sbp_status sbp_load(sbp_model *m, const char *path);	/* safetensors */
sbp_status sbp_save(sbp_model *m, const char *path);

struct sbp_group *sbp_group_new(int world);
void sbp_group_free(struct sbp_group *g);

/* The main() of a program. RANK is -1, or the only rank it may serve. */
int sbp_main(const sbp_program *p, int rank, int argc, char **argv);
/* The main() of one that runs all ranks in this process, one at a time, and
 * checks what they do. TRACE is by rank class. SEED 0: they take turns, else
 * their order is drawn from it. */
int sbp_simulate(const sbp_program *p, const sbp_trace *trace, uint64_t seed,
		 int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
