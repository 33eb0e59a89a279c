/*
 * tree.h: the tree that the parser builds, private to frontend/. Lists of
 * anything (arguments, targets, parameters, subscripts) are expressions.
 */
#ifndef SBPC_TREE_H
#define SBPC_TREE_H

#include "ir/ir.h"

enum expr_kind {
	E_INT,    /* i; 2^63, which may be negated, is INT64_MIN */
	E_FLOAT,  /* f */
	E_BOOL,   /* i */
	E_CHARS,  /* name: a run of a text without braces */
	E_TEXT,   /* kids: the parts, E_CHARS or any expression */
	E_NAME,   /* name */
	E_UNARY,  /* op, kid[0] */
	E_BINARY, /* op, kid[0], kid[1] */
	E_CALL,   /* name, kids: the arguments; as: E_TEXT or NULL */
	E_METHOD, /* the same, kid[0] stands before the dot */
	E_DOT,    /* kid[0], name */
	E_INDEX,  /* kid[0], the others are subscripts */
	E_SLICE,  /* kid[0]:kid[1]:kid[2], each may be NULL */
	E_ELLIPSIS,
	E_LIST,  /* kids */
	E_GROUP, /* kids: (a) or (a, b) */
	E_KEY,   /* name = kid[0]; kid[0] is NULL for a bare parameter */
	E_ON,    /* kid[0] on kid[1] [grad kid[2]] */
	E_BAD,   /* after an error that has been reported */
};

enum oper { /* ORDER oper: tree.c, table `operators` */
	    O_ADD,
	    O_SUB,
	    O_MUL,
	    O_DIV,
	    O_FLOORDIV,
	    O_MOD,
	    O_POW,
	    O_MATMUL,
	    O_EQ,
	    O_NE,
	    O_LT,
	    O_LE,
	    O_GT,
	    O_GE,
	    O_AND,
	    O_OR,
	    O_RANGE,
	    O_NEG,
	    O_NOT,
};

struct expr {
	enum expr_kind kind;
	enum oper op;
	Span span;
	Span name_at;
	int depth; /* of this tree */
	Name name;
	int64_t i;
	double f;
	int nkid;
	struct expr **kid;
	struct expr *as;
};

struct exprs {
	LIST(struct expr *) l;
};

enum stmt_kind {
	S_ASSIGN,    /* list: targets; e */
	S_LET,       /* name, e */
	S_PLACEMENT, /* name, list: axis names, e: device[ranks], as */
	S_DEF,       /* name, list: parameters, body */
	S_MODEL,     /* name, on or NULL, body */
	S_INPUT,     /* name, type, on, e: the source */
	S_PARAM,     /* name, type, on, e: the initialiser */
	S_STATE,
	S_CONST,
	S_OUTPUT,     /* name, as, on */
	S_UPDATE,     /* name, e */
	S_TRAIN,      /* name, body */
	S_DATA,       /* name, e */
	S_DISTRIBUTE, /* e: the pattern, on */
	S_ASSERT,     /* e, as: the message or NULL */
	S_REPORT,     /* e: the text, list: every, on, from */
	S_FOR,        /* name, e, body */
	S_IF,         /* e, body, other */
	S_ON,         /* on, body */
	S_RETURN,     /* list */
	S_IMPORT,     /* e: the path */
};

struct stmts;
struct stmt {
	enum stmt_kind kind;
	Span span; /* of a block's owner: up to its brace */
	Name name;
	Span name_at;
	struct expr *e, *on, *type, *as;
	struct exprs *list;
	struct stmts *body, *other;
};

struct stmts {
	LIST(struct stmt *) l;
};

/* One parse: what lexer, parser and constructors share. */
#define MAX_OPEN 200         /* brackets and braces that may be open at once */
#define MAX_SYNTAX_ERRORS 20 /* then the rest of the file is skipped */
#define MAX_DEPTH 400        /* of an expression's tree */
struct parse {
	struct arena *a;
	const struct source *source;
	uint32_t at, end;  /* the lexer's offsets in the source */
	int start;         /* token that selects what is parsed, or 0 */
	uint32_t last_hi;  /* where the last token ends */
	Span unclosed;     /* a bracket that a declaration cut off */
	int last, before;  /* the last two tokens */
	Name first, began; /* the name that began the statement, if it
			    * is the last token, the one before */
	bool new_line;     /* the current token is the first of its line */
	int nopen;
	struct {
		char c;
		Span at;
	} open[MAX_OPEN];
	int errors;
	struct stmts *file;
	struct expr *expr;
};

/* Both report errors; what could be read comes back all the same. */
struct stmts *parse_file(struct arena *a, const struct source *s, int *errors);
struct expr *parse_expr(struct arena *a, const struct source *s, uint32_t lo,
			uint32_t hi, int *errors);

/* Constructors, for the parser's actions. */
struct expr *tree_expr(struct parse *p, enum expr_kind kind, Span at);
struct expr *tree_int(struct parse *p, Span at);
struct expr *tree_float(struct parse *p, Span at);
struct expr *tree_bool(struct parse *p, Span at, bool b);
struct expr *tree_name(struct parse *p, Name name, Span at);
struct expr *tree_text(struct parse *p, Span at);
struct expr *tree_chars(struct parse *p, Span at); /* braces are plain */
struct expr *tree_unary(struct parse *p, enum oper op, Span at, struct expr *x);
struct expr *tree_binary(struct parse *p, enum oper op, Span at, struct expr *x,
			 struct expr *y);
struct expr *tree_call(struct parse *p, Span at, Name name, Span name_at,
		       struct exprs *args);
struct expr *tree_method(struct parse *p, Span at, struct expr *x, Name name,
			 Span name_at, struct exprs *args);
struct expr *tree_as(struct parse *p, Span at, struct expr *call,
		     struct expr *as);
struct expr *tree_dot(struct parse *p, Span at, struct expr *x, Name name,
		      Span name_at);
struct expr *tree_index(struct parse *p, Span at, struct expr *x,
			struct exprs *subs);
struct expr *tree_slice(struct parse *p, Span at, struct expr *lo,
			struct expr *hi, struct expr *step);
struct expr *tree_list(struct parse *p, enum expr_kind kind, Span at,
		       struct exprs *l);
struct expr *tree_key(struct parse *p, Span at, Name name, Span name_at,
		      struct expr *e);
struct expr *tree_on(struct parse *p, Span at, struct expr *x,
		     struct expr *dist, struct expr *grad);
struct exprs *tree_exprs(struct parse *p, struct exprs *l, struct expr *e);

struct stmt *tree_stmt(struct parse *p, enum stmt_kind kind, Span at);
struct stmt *tree_named(struct parse *p, enum stmt_kind kind, Span at,
			Name name, Span name_at);
struct stmts *tree_stmts(struct parse *p, struct stmts *l, struct stmt *s);

/* The word that starts a statement and is nearest to WORD, or NULL. */
Name nearest_statement(Name word);
const char *operator_text(enum oper op);
/* The tree as source; reads back to the same tree. */
void tree_print(const struct stmts *file, struct text *t);

#endif
