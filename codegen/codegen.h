/*
 * codegen.h: from a program whose buffers are placed to text and objects.
 * e is the emitter, everywhere.
 */
#ifndef SBPC_CODEGEN_H
#define SBPC_CODEGEN_H

#include "passes/passes.h"

/* ---- program.c: a step: buffers, kernels, calls, communication ---- */

/* One emitted file: its name is OUT + suffix. */
struct emitted {
	const char *suffix;	/* ".c", ".h", "_class1.c", ".cu" */
	struct text text;
};
struct emitted_files {
	LIST(struct emitted) at;
};
/* BASE is the basename of OUT, as #include and the head comments name it. */
void emit_program(struct program *p, const char *base,
		  struct emitted_files *out);
/* NAME_main.c; RANK is -1, or the only rank that the program may serve. */
void emit_main(const struct program *p, const char *base, int rank,
	       struct text *out);
/* What external symbols begin with: the model's name. "sbp" is taken by the
 * runtime. */
const char *program_prefix(const struct program *p);
void emit_header(struct program *p, const char *base, struct text *out);
void emit_dot(const struct program *p, struct text *out);

/* ---- kernel.c: the bodies of kernels, and how they are called ---- */

/* A call in a step. Calls that differ only in values and numbers and repeat
 * with a period become a loop over a table. */
enum arg_kind { ARG_VALUE, ARG_INT, ARG_TEXT, ARG_MOVE };
struct arg {
	enum arg_kind kind;
	const struct value *v;	/* address of its buffer ... */
	const char *ctype;	/* ... cast to a pointer to this */
	int64_t i;		/* of ARG_MOVE: its index in the moves */
	/* Interned. Of ARG_VALUE: the bytes in its buffer before what is
	 * meant, as C, or NULL. */
	const char *text;
};
struct call {
	const char *function;	/* interned */
	LIST(struct arg) args;
	const struct node *n;
	bool status;		/* returns sbp_status: wrapped in SBP_TRY */
};

/* The emitter of one translation unit: that of one rank class. */
struct emitter {
	struct arena *arena;
	struct program *p;
	const struct target *target;
	struct text kernels;	/* definitions of functions, each once */
	Name prefix;		/* the model's */
	/* kernel.c's own: functions by their text, names taken. */
	void *functions;
	/* program.c's own */
	const char *base;
	int class;
	struct comm_lists *comm;	/* the moves that the classes run */
	const char *const *name;	/* by value id: AT_name is its offset */
	bool *named;			/* by value id: the text uses that */
	const char *moves;		/* name of the table of moves */
	bool addresses;			/* the step has addresses */
	struct text step;		/* the functions of the step */
	struct text *trace;		/* what it does, if that is asked for */
};
/* Defines the function of node N in e->kernels unless an equal one is there,
 * and fills the call. Nodes of kind K_VIEW give no call: returns false. */
bool kernel_call(struct emitter *e, const struct node *n, struct call *c);

/* ---- target.def, target_c.c, target_cuda.c: all that differs ---- */

struct target {
	const char *name;
	enum device device;
	const char *suffix;	/* of translation units */
	const char *include;	/* what they include first, lines */
	const char *handle;	/* the parameter m of a step's functions */
	const char *at;		/* how an address begins; %s: element type */
	const char *at_text;	/* the definition of what that calls */
	const char *copy;	/* the function that copies bytes */
	bool tables_apart;	/* NAME_tables.c has the tables */
	/* Defines the function of N and fills its call; false: nothing runs. */
	bool (*kernel)(struct emitter *e, const struct node *n, struct call *c);
	/* Fills the call of move N, the ID-th of the program. */
	void (*move)(struct emitter *e, const struct node *n, int id,
		     struct call *c);
	/* The statement that makes a call; ARGS has the arguments' text. */
	void (*call)(struct emitter *e, const struct call *c, const char *args,
		     struct text *out);
	/* The function NAME that the runtime calls, after those of the step,
	 * whose definition begins with the text that it returns. */
	const char *(*entry)(struct emitter *e, const char *name,
			     bool external, struct text *after);
};
#define TARGET(name, ...)                                                     \
	bool name##_kernel(struct emitter *e, const struct node *n,           \
			   struct call *c);                                   \
	void name##_move(struct emitter *e, const struct node *n, int id,     \
			 struct call *c);                                     \
	void name##_call(struct emitter *e, const struct call *c,             \
			 const char *args, struct text *out);                 \
	const char *name##_entry(struct emitter *e, const char *function,     \
				 bool external, struct text *after);
#include "codegen/target.def"
#undef TARGET
/* That of the model's placement. */
const struct target *target_of(const struct program *p);

/* ---- calls.c: calls that repeat with a period ---- */

/* COUNT turns of PERIOD calls, from call AT on; count is 1 where nothing
 * repeats. */
struct turn {
	int at, period, count;
};
struct turns {
	LIST(struct turn) at;
};
/* Cuts N calls into turns, in order. Calls of equal function and texts may
 * be one; values, numbers and moves may differ. */
void find_turns(struct arena *a, const struct call *calls, int n,
		struct turns *out);

/* ---- step.c: the functions of a step ---- */

/* The step of e->class, in e->step. HEAD begins its definition, up to the
 * name. */
void emit_step(struct emitter *e, const char *head);
void call_arg(struct emitter *e, struct call *c, struct arg arg);
/* The moves of a program, in plan order. */
int move_count(const struct program *p);
const char *move_title(struct arena *a, const struct node *n); /* "slice" */

/* ---- trace.c: what a simulation checks ---- */

/* Adds to e->trace what the N calls of e->class do. */
void emit_trace(struct emitter *e, const struct call *calls, int n);
/* NAME_main.c of a program that simulates its ranks. */
void emit_simulation(const struct program *p, const char *base,
		     const struct text *traces, struct text *out);

/* ---- tables.c, literal.c: what the runtime reads ---- */

void emit_tables(struct emitter *e, struct text *out);
/* Defines what INIT points at, as names that begin with NAME. */
void emit_data(struct emitter *e, const struct value *v,
	       const struct init *init, const char *name, struct text *out);

/* ---- text.c: names, numbers, comments, lines ---- */

/* NAME as a part of a C identifier. */
const char *c_name(struct arena *a, const char *name);
/* Names that were given out, to make each different. */
struct name_set;
struct name_set *name_set_new(struct arena *a);
const char *name_unique(struct name_set *s, const char *name);
/* The offset name of each value, by value id. */
const char **value_names(struct program *p);
void text_double(struct text *t, double d);	/* a C constant */
void text_string(struct text *t, const char *s);	/* a C string */
void text_comment(struct text *t, const char *s, size_t n);	/* inside one */
void text_line(struct text *t, Span at);		/* "m.sbp:6  " */
/* "m.sbp:6  h = relu(x)": the line that holds AT. */
void text_source(struct text *t, Span at);
/* "relu", where the span is one call "relu(...)"; else NULL. */
const char *text_call(struct arena *a, Span at);
/* "f32[64, 8] of [64, 16] (S(1))" */
void text_local(struct text *t, const struct program *p,
		const struct value *v);
/* "grid = cpu[[0, 1], [2, 3]]" */
void text_placement(struct text *t, const struct placement *p);
/* Tabs that bring what follows LINE to COLUMN, or one space. */
void text_tabs_to(struct text *t, const char *line, int column);
/* Lines of S, each filled to 80 columns after PREFIX. */
void text_paragraphs(struct text *t, const char *prefix, const char *s);
/* A statement, indented and cut at commas into lines of 80 columns. */
void text_statement(struct text *t, int indent, const char *s);
void text_list(struct text *t, const char *s);	/* elements, in braces */
const char *path_base(const char *path);

/* ---- compile.c, clang.cc: compiler and linker in this process ---- */

struct compile_job {
	const char *const *name;	/* for messages: m.c; m.h is included */
	const char *const *text;	/* C sources in memory */
	int n;
	const char *include_dir;	/* of sbp.h */
	const char *const *libraries;	/* archives to link, in order */
	int nlibraries;
	const char *arch;		/* "native", or clang's name */
	int opt;			/* 0..3 */
};
/* A path below the prefix that holds the running executable, PREFIX/bin/sbpc:
 * "lib/sbpc/prelude.sbp". malloc'ed. */
char *prefix_path(const char *below);
/* Written to PATH. False with a message in *error (malloc'ed): a file or a
 * library is missing. That Clang refuses what was emitted is a bug(). These
 * live in a module that is loaded on first use. */
bool compile_executable(const struct compile_job *job, const char *path,
			char **error);
bool compile_object(const struct compile_job *job, const char *path,
		    char **error);
/* The same by an external compiler, --cc=CC. */
bool compile_with_cc(const char *cc, const struct compile_job *job,
		     bool object, const char *path, char **error);

#endif
