/*
 * print.c: the tree as source text, which reads back to the same tree.
 */
#include <math.h>
#include <string.h>

#include "frontend/tree.h"

static void print_expr(struct text *t, const struct expr *e);

static void print_chars(struct text *t, const char *s, bool braces)
{
	for (; *s; s++) {
		if (*s == '\n')
			text_add(t, "\\n");
		else if (*s == '\t')
			text_add(t, "\\t");
		else if (*s == '"' || *s == '\\')
			text_add(t, "\\%c", *s);
		else if (braces && (*s == '{' || *s == '}'))
			text_add(t, "%c%c", *s, *s);
		else
			text_add(t, "%c", *s);
	}
}

static void print_text(struct text *t, const struct expr *e, bool braces)
{
	text_add(t, "\"");
	for (int i = 0; i < e->nkid; i++) {
		if (e->kid[i]->kind == E_CHARS) {
			print_chars(t, e->kid[i]->name, braces);
			continue;
		}
		text_add(t, "{");
		print_expr(t, e->kid[i]);
		text_add(t, "}");
	}
	text_add(t, "\"");
}

static void print_list(struct text *t, struct expr *const *kid, int n)
{
	for (int i = 0; i < n; i++) {
		if (i)
			text_add(t, ", ");
		print_expr(t, kid[i]);
	}
}

static void print_float(struct text *t, double f)
{
	size_t from = t->n;

	text_add_double(t, f);
	if (isfinite(f) && !strpbrk(t->at + from, ".e"))
		text_add(t, ".0");
}

static void print_slice(struct text *t, const struct expr *e)
{
	for (int i = 0; i < 3; i++) {
		if (i == 1 || (i == 2 && e->kid[2]))
			text_add(t, ":");
		if (e->kid[i])
			print_expr(t, e->kid[i]);
	}
}

static void print_call(struct text *t, const struct expr *e)
{
	int from = e->kind == E_METHOD;

	if (from) {
		print_expr(t, e->kid[0]);
		text_add(t, ".");
	}
	text_add(t, "%s(", e->name);
	print_list(t, e->kid + from, e->nkid - from);
	text_add(t, ")");
	if (e->as) {
		text_add(t, " as ");
		print_text(t, e->as, true);
	}
}

static void print_operator(struct text *t, const struct expr *e)
{
	bool spaced = e->op != O_RANGE;

	if (e->kind == E_UNARY) {
		text_add(t, e->op == O_NOT ? "not " : "-");
		print_expr(t, e->kid[0]);
		return;
	}
	print_expr(t, e->kid[0]);
	text_add(t, spaced ? " %s " : "%s", operator_text(e->op));
	print_expr(t, e->kid[1]);
}

static void print_on(struct text *t, const struct expr *e)
{
	print_expr(t, e->kid[0]);
	text_add(t, " on ");
	print_expr(t, e->kid[1]);
	if (e->kid[2]) {
		text_add(t, " grad ");
		print_expr(t, e->kid[2]);
	}
}

static void print_key(struct text *t, const struct expr *e)
{
	text_add(t, "%s = ", e->name);
	print_expr(t, e->kid[0]);
}

static void print_bracketed(struct text *t, const struct expr *e)
{
	int from = e->kind == E_INDEX;

	if (from)
		print_expr(t, e->kid[0]);
	text_add(t, e->kind == E_GROUP ? "(" : "[");
	print_list(t, e->kid + from, e->nkid - from);
	text_add(t, e->kind == E_GROUP ? ")" : "]");
}

static void print_leaf(struct text *t, const struct expr *e)
{
	if (e->kind == E_INT)
		text_add(t, "%llu", (unsigned long long)e->i);
	else if (e->kind == E_FLOAT)
		print_float(t, e->f);
	else if (e->kind == E_BOOL)
		text_add(t, e->i ? "true" : "false");
	else if (e->kind == E_ELLIPSIS)
		text_add(t, "...");
	else
		text_add(t, "%s", e->name ? e->name : "");
}

static void print_expr(struct text *t, const struct expr *e)
{
	switch (e->kind) {
	case E_TEXT:
		print_text(t, e, true);
		break;
	case E_UNARY:
	case E_BINARY:
		print_operator(t, e);
		break;
	case E_CALL:
	case E_METHOD:
		print_call(t, e);
		break;
	case E_DOT:
		print_expr(t, e->kid[0]);
		text_add(t, ".%s", e->name);
		break;
	case E_INDEX:
	case E_LIST:
	case E_GROUP:
		print_bracketed(t, e);
		break;
	case E_SLICE:
		print_slice(t, e);
		break;
	case E_KEY:
		print_key(t, e);
		break;
	case E_ON:
		print_on(t, e);
		break;
	default:
		print_leaf(t, e);
	}
}

/* ---- statements ---- */

static void print_stmts(struct text *t, const struct stmts *l, int level);

static void indent(struct text *t, int level)
{
	for (int i = 0; i < level; i++)
		text_add(t, "  ");
}

static void print_block(struct text *t, const struct stmts *l, int level)
{
	text_add(t, " {\n");
	print_stmts(t, l, level + 1);
	indent(t, level);
	text_add(t, "}");
}

static void print_part(struct text *t, const char *before, const struct expr *e)
{
	if (!e)
		return;
	text_add(t, "%s", before);
	print_expr(t, e);
}

static void print_leaf_stmt(struct text *t, const struct stmt *s,
			    const char *word)
{
	text_add(t, "%s %s", word, s->name);
	print_part(t, ": ", s->type);
	print_part(t, " as ", s->as);
	print_part(t, " on ", s->on);
	print_part(t, " = ", s->e);
}

static void print_placement(struct text *t, const struct stmt *s)
{
	text_add(t, "placement %s", s->name);
	if (s->list) {
		text_add(t, "(");
		print_list(t, s->list->l.at, s->list->l.n);
		text_add(t, ")");
	}
	print_part(t, " = ", s->e);
	print_part(t, " as ", s->as);
}

static void print_if(struct text *t, const struct stmt *s, int level)
{
	text_add(t, "if ");
	print_expr(t, s->e);
	print_block(t, s->body, level);
	if (!s->other)
		return;
	text_add(t, " else");
	print_block(t, s->other, level);
}

static void print_report(struct text *t, const struct stmt *s)
{
	text_add(t, "report ");
	print_text(t, s->e, false);
	for (int i = 0; s->list && i < s->list->l.n; i++) {
		text_add(t, " %s ", s->list->l.at[i]->name);
		print_expr(t, s->list->l.at[i]->kid[0]);
	}
}

static void print_def(struct text *t, const struct stmt *s, int level)
{
	text_add(t, "def %s(", s->name);
	if (s->list)
		print_list(t, s->list->l.at, s->list->l.n);
	text_add(t, ")");
	print_block(t, s->body, level);
}

static void print_head(struct text *t, const char *word, const struct stmt *s,
		       int level)
{
	text_add(t, "%s%s%s", word, s->name ? " " : "", s->name ? s->name : "");
	print_part(t, s->kind == S_FOR ? " in " : " ", s->e);
	print_part(t, s->kind == S_ON ? " " : " on ", s->on);
	print_block(t, s->body, level);
}

static void print_simple(struct text *t, const struct stmt *s)
{
	switch (s->kind) {
	case S_ASSIGN:
		print_list(t, s->list->l.at, s->list->l.n);
		print_part(t, " = ", s->e);
		break;
	case S_RETURN:
		text_add(t, "return ");
		print_list(t, s->list->l.at, s->list->l.n);
		break;
	case S_IMPORT:
		print_part(t, "import ", s->e);
		break;
	case S_DISTRIBUTE:
		print_part(t, "distribute ", s->e);
		print_part(t, " on ", s->on);
		break;
	default:
		print_part(t, "assert ", s->e);
		print_part(t, ", ", s->as);
	}
}

static void print_stmt(struct text *t, const struct stmt *s, int level)
{
	static const char *const words[] = {
		[S_LET] = "let",       [S_INPUT] = "input",
		[S_PARAM] = "param",   [S_STATE] = "state",
		[S_CONST] = "const",   [S_OUTPUT] = "output",
		[S_UPDATE] = "update", [S_DATA] = "data",
		[S_MODEL] = "model",   [S_TRAIN] = "train",
		[S_FOR] = "for",       [S_ON] = "on",
	};

	switch (s->kind) {
	case S_LET:
	case S_INPUT:
	case S_PARAM:
	case S_STATE:
	case S_CONST:
	case S_OUTPUT:
	case S_UPDATE:
	case S_DATA:
		print_leaf_stmt(t, s, words[s->kind]);
		break;
	case S_MODEL:
	case S_TRAIN:
	case S_FOR:
	case S_ON:
		print_head(t, words[s->kind], s, level);
		break;
	case S_PLACEMENT:
		print_placement(t, s);
		break;
	case S_DEF:
		print_def(t, s, level);
		break;
	case S_IF:
		print_if(t, s, level);
		break;
	case S_REPORT:
		print_report(t, s);
		break;
	default:
		print_simple(t, s);
	}
}

static void print_stmts(struct text *t, const struct stmts *l, int level)
{
	for (int i = 0; l && i < l->l.n; i++) {
		indent(t, level);
		print_stmt(t, l->l.at[i], level);
		text_add(t, "\n");
	}
}

void tree_print(const struct stmts *file, struct text *t)
{
	print_stmts(t, file, 0);
	text_add(t, "%s", "");
}
