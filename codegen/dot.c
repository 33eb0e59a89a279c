/*
 * dot.c: the graph for Graphviz: a box for each node, an arrow for each value
 * with its type and distribution. Moves are drawn apart.
 */
#include <string.h>

#include "codegen/codegen.h"

/* A label: no quote or backslash ends it. */
static void add_label(struct text *t, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			text_add(t, "\\");
		text_add_n(t, s, 1);
	}
}

static const char *node_shape(const struct node *n)
{
	if (n->op == OP_move)
		return "cds";
	return op_info(n->op)->kernel == K_NONE ? "ellipse" : "box";
}

static void add_body(struct text *t, const struct node *n)
{
	for (int i = 0; i < n->nbody; i++)
		text_add(t, "%s%s", i > 0 ? " " : "",
			 op_info(n->body[i]->op)->name);
}

static void add_node(struct text *t, const struct node *n)
{
	struct place at = place_of(n->span);

	text_add(t, "\tn%d [shape=%s, label=\"", n->id, node_shape(n));
	if (n->op == OP_kernel)
		add_body(t, n);
	else
		text_add(t, "%s", op_info(n->op)->name);
	if (n->nout > 0 && n->out[0]->name != NULL) {
		text_add(t, "\\n");
		add_label(t, n->out[0]->name);
	}
	if (at.line > 0)
		text_add(t, "\\nline %d", at.line);
	text_add(t, "\"];\n");
}

static void add_type(struct text *t, const struct value *v)
{
	text_add(t, "%s", type_text(v->type));
	if (v->dist.on != NULL)
		text_add(t, "\\n%s", dist_text(v->dist));
}

static void add_arrows(struct text *t, const struct node *n)
{
	for (int k = 0; k < n->nin; k++) {
		text_add(t, "\tn%d -> n%d [label=\"", n->in[k]->def->id, n->id);
		add_type(t, n->in[k]);
		text_add(t, "\"];\n");
	}
}

void emit_dot(const struct program *p, struct text *out)
{
	const struct graph *g = p->g;

	text_add(out, "digraph \"");
	add_label(out, g->name);
	text_add(out, "\" {\n\tnode [fontname=\"monospace\"];\n"
		      "\tedge [fontname=\"monospace\"];\n");
	for (int i = 0; i < g->nodes.n; i++)
		add_node(out, g->nodes.at[i]);
	for (int i = 0; i < g->nodes.n; i++)
		add_arrows(out, g->nodes.at[i]);
	for (int i = 0; i < g->outputs.n; i++) {
		const struct output *o = &g->outputs.at[i];

		text_add(out, "\to%d [shape=ellipse, label=\"output ", i);
		add_label(out, o->name);
		text_add(out, "\"];\n\tn%d -> o%d [label=\"", o->v->def->id, i);
		add_type(out, o->v);
		text_add(out, "\"];\n");
	}
	text_add(out, "}\n");
}
