/*
 * header.c: NAME.h, what an embedding program includes. The handle and its
 * functions are the runtime's; the header adds the program and says what its
 * tensors are.
 */
#include <ctype.h>
#include <string.h>

#include "codegen/codegen.h"

enum { MOST_LISTED = 200 }; /* lines of a list; the rest is counted */

struct lister {
	const struct program *p;
	struct text *out;
	int n;
};

static void add_line(struct lister *l, const char *role, const char *name,
		     const struct value *v)
{
	struct text line = {0};

	if (l->n++ >= MOST_LISTED)
		return;
	text_add(&line, " *   %-6s ", role);
	text_comment(&line, name, strlen(name));
	text_add(l->out, "%s", line.at);
	text_tabs_to(l->out, line.at, 32);
	text_free(&line);
	text_add(l->out, "%s on %s\n", type_text(v->type), dist_text(v->dist));
}

static void list_leaves(struct lister *l, enum op op, const char *role)
{
	const struct graph *g = l->p->g;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op == op && n->out[0]->name != NULL)
			add_line(l, role, n->out[0]->name, n->out[0]);
	}
}

static void list_tensors(struct lister *l)
{
	const struct graph *g = l->p->g;

	list_leaves(l, OP_input, "input");
	for (int i = 0; i < g->outputs.n; i++)
		add_line(l, "output", g->outputs.at[i].name,
			 g->outputs.at[i].v);
	list_leaves(l, OP_param, "param");
	list_leaves(l, OP_state, "state");
	if (l->n > MOST_LISTED)
		text_add(l->out, " *   and %d more\n", l->n - MOST_LISTED);
}

void emit_header(struct program *p, const char *base, struct text *out)
{
	char *guard = arena_text(p->arena, "%s_H", c_name(p->arena, base));
	const char *prefix = program_prefix(p);
	struct lister l = {.p = p, .out = out};
	struct text head = {0};

	for (char *c = guard; *c != '\0'; c++)
		*c = (char)toupper((unsigned char)*c);
	text_add(&head,
		 "%s.h: the model %s, emitted by sbpc from %s.\n\n"
		 "sbp_open takes %s_program; the functions that take "
		 "names take these:\n",
		 base, p->g->name, path_base(p->g->path), prefix);
	text_add(out, "/*\n");
	text_paragraphs(out, " * ", head.at);
	text_free(&head);
	list_tensors(&l);
	text_add(out,
		 " */\n#ifndef SBP_%s\n#define SBP_%s\n\n"
		 "#include <sbp.h>\n\n"
		 "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
		 "extern const sbp_program %s_program;\t/* %d rank%s */\n\n"
		 "#ifdef __cplusplus\n}\n#endif\n#endif\n",
		 guard, guard, prefix, p->g->world,
		 p->g->world == 1 ? "" : "s");
}
