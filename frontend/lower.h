/*
 * lower.h: from trees to a graph, private to frontend/. Sections are titled
 * by file. Fixed locals: l the lowering, e an expression, s a statement.
 */
#ifndef SBPC_LOWER_H
#define SBPC_LOWER_H

#include "frontend/frontend.h"
#include "frontend/tree.h"

struct low;

/* ---- value.c: what an expression gives ---- */

enum val_kind {
	V_BAD,  /* after an error; every use of it is silent */
	V_NONE, /* of an argument that was left out */
	V_INT,
	V_FLOAT,
	V_BOOL,
	V_TEXT,
	V_LIST,
	V_RANGE,
	V_DTYPE,
	V_PLACEMENT,
	V_DIST,
	V_DATA,
	V_TENSOR, /* all others are known at compile time */
};

typedef struct Val {
	enum val_kind kind;
	union {
		int64_t i; /* int, bool, dtype */
		double f;
		const char *text;
		const struct vals *list;
		const struct range *range;
		const struct placement *placement;
		const struct request *request;
		const struct data_source *data;
		struct value *tensor;
	};
} Val;

struct vals {
	int64_t n;
	Val *at;
};

struct range {
	int64_t lo, step, n;
};

#define MAX_LIST (1 << 20) /* elements of a computed list */
#define MAX_TEXT (1 << 16) /* bytes of a computed text */

static inline Val val_bad(void)
{
	return (Val){.kind = V_BAD};
}
static inline Val val_int(int64_t i)
{
	return (Val){V_INT, {.i = i}};
}
static inline Val val_float(double f)
{
	return (Val){V_FLOAT, {.f = f}};
}
static inline Val val_bool(bool b)
{
	return (Val){V_BOOL, {.i = b}};
}
static inline Val val_text(const char *s)
{
	return (Val){V_TEXT, {.text = s}};
}
static inline Val val_tensor(struct value *v)
{
	return (Val){V_TENSOR, {.tensor = v}};
}
Val val_ints(struct low *l, const int64_t *i, int n);

bool val_is_list(Val v);   /* list or range */
bool val_is_number(Val v); /* int, float, bool */
int64_t val_count(Val v);  /* of a list or range */
Val val_nth(Val v, int64_t i);
double val_double(Val v); /* of a number */
bool val_equal(Val a, Val b);
bool val_has_tensor(Val v);
bool val_truth(struct low *l, Val v, Span at, bool *out);
const char *val_what(Val v);           /* "an integer", "f32[2, 3]", ... */
void val_print(struct text *t, Val v); /* as "{v}" shows it */
const char *val_show(struct low *l, Val v);
Val val_binary(struct low *l, enum oper op, Val a, Val b, Span at);
Val val_unary(struct low *l, enum oper op, Val a, Span at);
/* Reports it. */
Val val_overflow(struct low *l, Span at);
bool int_fits(enum dtype t, int64_t i);
/* V as an integer, a list of integers, ...; false after an error that begins
 * with WHAT. V_BAD fails silently. */
bool want_int(struct low *l, Val v, Span at, const char *what, int64_t *i);
bool want_ints(struct low *l, Val v, Span at, const char *what,
	       const int64_t **at_out, int *n);
bool want_double(struct low *l, Val v, Span at, const char *what, double *f);
bool want_dtype(struct low *l, Val v, Span at, const char *what, enum dtype *t);

/* ---- scope.c: names ---- */

/* From names to pointers; NULL where there is none. The entries stand in the
 * order of their coming, so that nothing depends on addresses. */
struct map {
	LIST(struct entry {
		Name key;
		void *p;
	})
	l;
	int *slot; /* hash table of indices into l, plus 1 */
	int nslots;
};
void *map_get(const struct map *m, Name key);
void map_set(struct arena *a, struct map *m, Name key, void *p);

/* Where values are bound. */
struct scope {
	struct map names; /* to struct var */
	struct scope *up;
	bool file; /* belongs to a file */
};
struct var {
	Val v;
	Span at;
};
struct scope *scope_new(struct low *l, struct scope *up);
struct var *scope_find(const struct scope *s, Name name);
void scope_bind(struct low *l, struct scope *s, Name name, Val v, Span at);
/* Rebinds a visible name where it was introduced, else binds it here. */
void scope_assign(struct low *l, Name name, Val v, Span at);
/* The value of NAME, or an error with the nearest name. */
Val scope_value(struct low *l, Name name, Span at);

/* Candidates for "did you mean". */
struct names {
	LIST(Name) l;
};
void names_of_map(struct low *l, struct names *n, const struct map *m);
void hint_near(struct low *l, Name wanted, const struct names *n);

/* A naming scope: what stands before the names of params. */
struct naming {
	const char *prefix; /* "" or "h.0.attn" */
	bool open;          /* its values have names, too */
};
const char *full_name(struct low *l, const char *name);
/* False after an error if the full name is taken. */
bool take_name(struct low *l, Name full, Span at);
/* NAME, NAME_1, ...: the first that is free, taken. */
Name take_free_name(struct low *l, const char *name, Span at);

/* ---- import.c: files ---- */

struct def {
	Name name;
	const struct stmt *s;
	struct unit *unit;
	bool scanned;  /* the next two are known */
	bool declares; /* params or states, itself */
	LIST(Name) calls;
	enum { OPENS_UNKNOWN, OPENS_NO, OPENS_YES } opens;
	bool failed; /* an error has been reported in its body */
};

/* One source file and what it declares. */
struct unit {
	const char *path; /* as opened */
	const struct source *source;
	struct stmts *tree;
	struct scope *scope;     /* its lets and placements */
	struct map defs, models; /* to struct def, struct stmt */
	struct map imported;     /* defs of the files it imports */
	struct map from;         /* imported name to its struct unit */
	struct scope *imports;   /* imported values */
	LIST(const struct placement *) placements;
	bool prelude, loading;
};

/* Reads, parses and runs the file-level statements; NULL after reporting. */
struct unit *unit_load(struct low *l, const char *path, Span at);
void unit_import(struct low *l, const struct stmt *s);
/* PATH relative to the directory of the unit that names it. */
const char *beside(struct low *l, const char *path);

/* ---- dist.c: placements and distributions ---- */

/* A distribution as it was written. */
struct request {
	const struct placement *on; /* NULL: the enclosing one */
	int n;                      /* terms; 0: only the placement */
	bool named;                 /* by axis name */
	struct term {
		Name axis;
		enum sbp_kind kind;
		int64_t i; /* of S, may be negative */
		enum red red;
		Span at;
	} term[MAX_MESH];
};
void lower_placement(struct low *l, const struct stmt *s);
bool is_term_list(const struct expr *e);
/* The Val of a term list, V_DIST. */
Val eval_terms(struct low *l, const struct expr *e);
/* The distribution that stands after `on`; NULL after reporting. */
const struct request *eval_request(struct low *l, const struct expr *e);
/* What it means for a tensor of type T whose enclosing placement is ON. */
bool resolve(struct low *l, const struct request *r, const struct placement *on,
	     Type t, Span at, Dist *out);
/* The same placement, registered as used by the graph. */
const struct placement *placed(struct low *l, const struct placement *p);

/* ---- eval.c: expressions ---- */

Val eval(struct low *l, const struct expr *e);
const char *eval_text(struct low *l, const struct expr *e);
/* The same for a name, which is printed in lines. */
const char *eval_name(struct low *l, const struct expr *e);
bool eval_type(struct low *l, const struct expr *e, Type *t);

/* ---- tensor.c: operators on tensors ---- */

/* V as a tensor; a number becomes a scalar, and *WEAK true. NULL after an
 * error. */
struct value *tensor_of(struct low *l, Val v, Span at, bool *weak);
/* Whether tensors can be made here, or an error. */
bool in_model(struct low *l, Span at);
/* Notes the calls that led to N. */
void led_to(const struct low *l, struct node *n);
/* To make an operator: begin, set attributes, finish. Operands meet on one
 * placement and get the dtypes that the operator needs. begin gives NULL
 * after an error. */
struct node *begin(struct low *l, enum op op, Span at, int nin,
		   struct value **in, const bool *weak);
Val finish(struct low *l, struct node *n);
Val tensor_binary(struct low *l, enum oper op, Val a, Val b, Span at);
Val tensor_unary(struct low *l, enum oper op, Val a, Span at);
Val tensor_on(struct low *l, Val v, const struct request *r, Span at,
	      Span dist_at, const char *grad);
Val tensor_index(struct low *l, struct value *v, const struct expr *e);
Val tensor_matmul(struct low *l, Val a, Val b, Span at);
Val tensor_reshape(struct low *l, struct value *v, Shape s, Span at);
Val tensor_cast(struct low *l, Val v, enum dtype t, Span at);

/* ---- call.c: functions ---- */

Val eval_call(struct low *l, const struct expr *e);
/* Whether a call of NAME would find a function here. */
bool is_function(struct low *l, Name name);

/* What stands between the parentheses of a call, evaluated. */
struct given {
	Name key; /* NULL: by position */
	Span key_at, at;
	Val v;
};
struct args {
	int n;
	struct given *at;
};
bool eval_args(struct low *l, struct expr *const *kid, int n, struct args *out);

/* The parameters of a function, and what they are bound to. */
struct param {
	Name name;
	bool optional;
	bool given;
	Val v;
	Span at;
};
bool bind_args(struct low *l, const struct expr *e, const struct args *args,
	       struct param *p, int n);

/* ---- builtin.c: functions of compile-time values ---- */

/* Whether NAME is one, for these arguments. */
bool is_builtin(const struct low *l, Name name, const struct args *args);
Val call_builtin(struct low *l, const struct expr *e, const struct args *args);
void names_of_builtins(struct low *l, struct names *n);

/* ---- init.c: what params, states and consts begin with ---- */

/* The initial contents of a tensor of type T that lies as DIST; NULL after
 * reporting. */
const struct init *eval_init(struct low *l, const struct expr *e, Type t,
			     Dist dist);

/* ---- npy.c ---- */

/* Reads a .npy file of type T into new memory, converted to no other dtype;
 * NULL after storing why in *WHY. */
const void *npy_read(struct arena *a, const char *path, Type t,
		     const char **why);

/* ---- leaf.c: where values come from and go to ---- */

void lower_leaf(struct low *l, const struct stmt *s, enum op op);
void lower_data(struct low *l, const struct stmt *s);
void lower_distribute(struct low *l, const struct stmt *s);
void lower_output(struct low *l, const struct stmt *s);
void lower_update(struct low *l, const struct stmt *s);

/* ---- lower.c: statements ---- */

#define MAX_CALLS 1000     /* defs within defs */
#define MAX_NESTING 100000 /* expressions and blocks in evaluation */
#define MAX_IMPORTS 200    /* files; they may nest */
#define MAX_STEPS 20000000 /* statements and elements of loops */
#define MAX_NODES 4000000
#define MAX_ERRORS 20

struct frame {
	struct unit *unit;
	struct scope *scope;
	struct naming naming;
	const struct placement *on;
	const struct placement *near; /* in the prelude: its argument's */
	const struct trail *trail;
	Span user; /* in the prelude: the user's call */
	Name call; /* ... and the function that it names */
	bool def;  /* inside a def */
	bool returned;
	Val result;
};

struct low {
	struct arena *a;
	struct graph *g;
	const struct front_options *o;
	struct front_files *files;
	struct unit *main, *prelude;
	struct map units; /* by path */
	struct frame f;
	int calls, imports, depth;
	int64_t steps;
	bool stop;             /* too much, or too many errors */
	bool torn;             /* an import is not there: names are missing */
	bool usage;            /* the command line is at fault */
	int with_place;        /* nodes below this have their placement */
	int keys;              /* of random operators */
	const char *hint;      /* for the next error */
	struct map taken;      /* full names of scopes, params, states */
	struct map values;     /* full names of values, the last binding */
	struct map leaf_names; /* of inputs, params and states, to values */
	bool *defined;         /* which -D have been used */
	LIST(struct rule_of {
		const char *pattern;
		const struct request *request;
		Span at, pattern_at;
		bool used;
	})
	rules; /* distribute */
	LIST(struct leaf {
		struct value *v;
		int rules;  /* that were there when it was declared */
		bool fixed; /* has an `on` of its own */
	})
	leaves;
	LIST(struct { const struct placement *decl, *used; }) placed;
};

/* An error: where, what, the pending hint, the calls that led here. */
Val fail(struct low *l, Span at, const char *format, ...) PRINTF(3, 4);
void hint(struct low *l, const char *format, ...) PRINTF(2, 3);
/* AT, or in the prelude the user's call. */
Span place(const struct low *l, Span at);
void lower_stmts(struct low *l, const struct stmts *s);
void lower_file(struct low *l, struct unit *u);
/* Gives V the name NAME of this scope. */
void name_value(struct low *l, Val v, Name name, Span at);
/* False, after an error, when the program grows without end. */
bool count_steps(struct low *l, int64_t n, Span at);
/* One level deeper, if the stack bears it; else false after an error. */
bool deeper(struct low *l, Span at);

#endif
