/*
 * tensors.c: the table of what has a name: inputs, params, states, constants,
 * outputs and kept values.
 */
#include "codegen/emit.h"

/* A row of the table of tensors. */
struct row {
	const char *name, *role;
	const struct value *v;
	const struct node *n; /* of init and source, or NULL */
	Span span;
};
struct rows {
	LIST(struct row) at;
};

static const char *leaf_role(const struct node *n)
{
	switch (n->op) {
	case OP_input:
		return "SBP_INPUT";
	case OP_param:
		return "SBP_PARAM";
	case OP_state:
		return "SBP_STATE";
	case OP_constant:
		return "SBP_CONST";
	default:
		return NULL;
	}
}

static void collect_rows(struct tables *t, struct rows *rows)
{
	const struct graph *g = t->e->p->g;
	struct arena *a = t->e->arena;
	bool *listed = NEW_N(a, bool, g->values.n + 1);

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		const struct value *v = n->nout > 0 ? n->out[0] : NULL;

		if (leaf_role(n) == NULL)
			continue;
		listed[v->id] = true;
		PUSH(a, rows->at,
		     (struct row){v->name ? v->name : t->e->name[v->id],
				  leaf_role(n), v, n, v->span});
	}
	for (int i = 0; i < g->outputs.n; i++) {
		const struct output *o = &g->outputs.at[i];

		if (o->v->name == o->name)
			listed[o->v->id] = true;
		PUSH(a, rows->at,
		     (struct row){o->name, "SBP_OUTPUT", o->v, NULL, o->span});
	}
	for (int i = 0; i < g->values.n; i++) {
		const struct value *v = g->values.at[i];

		if (v->keep && v->name != NULL && !listed[i] &&
		    t->e->p->local[i].at != NULL)
			PUSH(a, rows->at,
			     (struct row){v->name, "SBP_KEPT", v, NULL,
					  v->span});
	}
}

static const char *init_constant(enum init_kind kind)
{
	static const char *const names[] = {
		[INIT_NONE] = "SBP_INIT_NONE",
		[INIT_CONSTANT] = "SBP_INIT_CONSTANT",
		[INIT_UNIFORM] = "SBP_INIT_UNIFORM",
		[INIT_NORMAL] = "SBP_INIT_NORMAL",
		[INIT_TRUNC_NORMAL] = "SBP_INIT_TRUNC_NORMAL",
		[INIT_DATA] = "SBP_INIT_DATA",
	};

	return names[kind];
}

static void add_init(struct tables *t, const struct row *r, struct text *out)
{
	const struct init *init = r->n ? r->n->init : NULL;
	const char *data = t->e->name[r->v->id];

	if (init == NULL || init->kind == INIT_NONE) {
		text_add(out, "NO_INIT");
		return;
	}
	text_add(out, "{%s, ", init_constant(init->kind));
	text_double(out, init->a);
	text_add(out, ", ");
	text_double(out, init->b);
	text_add(out, ", ");
	text_double(out, init->c);
	text_add(out, ", ");
	text_double(out, init->d);
	if (init->kind != INIT_DATA)
		text_add(out, ", NULL, NULL}");
	else if (init->local != NULL)
		text_add(out, ", NULL, data_%s}", data);
	else
		text_add(out, ", data_%s, NULL}", data);
}

static void add_row(struct tables *t, const struct row *r, int i,
		    const char *dist)
{
	Type type = r->v->type;
	const struct node *n = r->n;
	struct text row = {0};

	text_add(&row, "{");
	text_string(&row, r->name);
	text_add(&row, ", %s, %s, ", r->role,
		 dtype_constant(t->e->arena, type.dtype));
	add_shape(&row, type.shape);
	text_add(&row, ", %s, tensors_at + %d, ", dist, i * t->e->p->nclasses);
	add_init(t, r, &row);
	text_add(&row, ", %d, ", n && n->source ? n->source->id : -1);
	if (n != NULL && n->source != NULL && n->field != NULL)
		text_string(&row, n->field);
	else
		text_add(&row, "NULL");
	text_add(&row, ", %d},", place_of(r->span).line);
	text_statement(t->out, 1, row.at);
	text_free(&row);
}

static void add_row_data(struct tables *t, const struct rows *rows)
{
	for (int i = 0; i < rows->at.n; i++) {
		const struct row *r = &rows->at.at[i];
		const struct init *init = r->n ? r->n->init : NULL;

		if (init != NULL && init->kind == INIT_DATA)
			emit_data(t->e, r->v, init,
				  arena_text(t->e->arena, "data_%s",
					     t->e->name[r->v->id]),
				  t->out);
	}
}

int add_tensors(struct tables *t)
{
	struct rows rows = {0};
	const struct value **v;
	const char **dist;
	int macros = t->ndists;

	collect_rows(t, &rows);
	if (rows.at.n == 0)
		return 0;
	v = NEW_N(t->e->arena, const struct value *, rows.at.n);
	dist = NEW_N(t->e->arena, const char *, rows.at.n);
	add_row_data(t, &rows);
	for (int i = 0; i < rows.at.n; i++) {
		v[i] = rows.at.at[i].v;
		dist[i] = dist_macro(t, v[i]->dist, t->out);
	}
	if (t->ndists > macros)
		text_add(t->out, "\n");
	add_offsets(t, "tensors_at", v, rows.at.n, 4);
	text_add(t->out,
		 "#define NO_INIT {SBP_INIT_NONE, 0, 0, 0, 0, NULL, NULL}\n\n"
		 "/* Name, role, dtype, shape, distribution, offset, initial "
		 "value, source. */\n"
		 "static const sbp_tensor tensors[] = {\n");
	for (int i = 0; i < rows.at.n; i++)
		add_row(t, &rows.at.at[i], i, dist[i]);
	text_add(t->out, "};\n\n");
	return rows.at.n;
}
