/*
 * print.c: a graph as text. One line a node:
 *
 *     %3 h: f32[64, 16] pair(S(1)) keep = relu(%2) on pair wants [pair(S(1))]
 *
 * read.c reads what this prints; a comment tells the place in the source.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static void put_quoted(struct text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_add(t, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || *s == 127)
			text_add(t, "\\x%02x", (unsigned char)*s);
		else
			text_add_n(t, s, 1);
	}
	text_add(t, "\"");
}

static bool plain_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return *s && !s[n];
}

static void put_name(struct text *t, const char *s)
{
	if (plain_name(s))
		text_add(t, "%s", s);
	else
		put_quoted(t, s);
}

/* With a point, an exponent, inf or nan: never like an integer. */
static void put_double(struct text *t, double d)
{
	size_t n = t->n;

	text_add_double(t, d);
	if (!strpbrk(t->at + n, ".ein"))
		text_add(t, ".0");
}

/* ---- placements, distributions ---- */

/* Its name; with its number where another placement has the same. */
static void put_placement(struct text *t, const struct graph *g,
			  const struct placement *p)
{
	const struct placement *q;
	int i, id = p->id;
	bool twice = !p->name;

	for (i = 0; i < g->placements.n; i++) {
		q = g->placements.at[i];
		twice = twice || (q->name == p->name && q != p);
	}
	text_add(t, "%s", p->name ? p->name : "");
	if (twice)
		text_add(t, "#%d", id);
}

static void put_dist(struct text *t, const struct graph *g, Dist d)
{
	const char *terms;
	int k;
	bool plain = true;

	put_placement(t, g, d.on);
	terms = dist_terms(d);
	text_add_n(t, terms, strlen(terms) - 1);
	for (k = 0; k < MAX_MESH; k++)
		plain = plain && dist_nth(d, k) == k;
	for (k = 0; !plain && k < MAX_MESH; k++)
		text_add(t, "%s%d", k ? ", " : " order ", d.order[k]);
	text_add(t, ")");
}

static void put_placement_line(struct text *t, const struct graph *g,
			       const struct placement *p)
{
	int i, named = 0;

	text_add(t, "  placement ");
	put_placement(t, g, p);
	for (i = 0; i < p->naxes; i++)
		named += p->axis[i] != NULL;
	for (i = 0; named && i < p->naxes; i++)
		text_add(t, "%s%s", i ? ", " : "(",
			 p->axis[i] ? p->axis[i] : "_");
	text_add(t, "%s = %s[", named ? ")" : "",
		 p->device == DEV_CUDA ? "cuda" : "cpu");
	for (i = 0; i < p->nranks; i++)
		text_add(t, "%s%d", i ? ", " : "", p->rank[i]);
	text_add(t, "] as [");
	for (i = 0; i < p->naxes; i++)
		text_add(t, "%s%d", i ? ", " : "", p->extent[i]);
	text_add(t, "]\n");
}

/* ---- attributes and initial values ---- */

static void put_attr(struct text *t, const struct attr *a)
{
	int i;

	text_add(t, "%s = ", a->key);
	switch (a->kind) {
	case ATTR_INT:
		text_add(t, "%lld", (long long)a->i);
		break;
	case ATTR_FLOAT:
		put_double(t, a->f);
		break;
	case ATTR_BOOL:
		text_add(t, a->i ? "true" : "false");
		break;
	case ATTR_DTYPE:
		text_add(t, "%s", dtype_name((enum dtype)a->i));
		break;
	case ATTR_INTS:
		text_add(t, "[");
		for (i = 0; i < a->n; i++)
			text_add(t, "%s%lld", i ? ", " : "",
				 (long long)a->ints[i]);
		text_add(t, "]");
		break;
	case ATTR_TEXT:
		put_quoted(t, a->text);
	}
}

static void put_attrs(struct text *t, const struct node *n)
{
	int i;

	for (i = 0; i < n->nattr; i++) {
		text_add(t, i ? ", " : " {");
		put_attr(t, &n->attr[i]);
	}
	if (n->nattr)
		text_add(t, "}");
}

/* Floats that have no short text as their bits. */
static void put_float(struct text *t, const void *p, enum dtype dtype)
{
	uint32_t bits;
	uint64_t wide;
	uint16_t half;

	memcpy(&bits, p, dtype == DT_F32 ? 4 : 0);
	memcpy(&wide, p, dtype == DT_F64 ? 8 : 0);
	memcpy(&half, p, dtype_size(dtype) == 2 ? 2 : 0);
	if (dtype == DT_F32 && !isnan(*(const float *)p))
		text_add_float(t, *(const float *)p);
	else if (dtype == DT_F32)
		text_add(t, "0x%08x", bits);
	else if (dtype == DT_F64 && !isnan(*(const double *)p))
		text_add_double(t, *(const double *)p);
	else if (dtype == DT_F64)
		text_add(t, "0x%016llx", (unsigned long long)wide);
	else
		text_add(t, "0x%04x", half);
}

static void put_element(struct text *t, const void *data, int64_t i,
			enum dtype dtype)
{
	const char *p = (const char *)data + i * dtype_size(dtype);

	switch (dtype) {
	case DT_BOOL:
	case DT_U8:
		text_add(t, "%d", *(const uint8_t *)p);
		break;
	case DT_I8:
		text_add(t, "%d", *(const int8_t *)p);
		break;
	case DT_I32:
		text_add(t, "%d", *(const int32_t *)p);
		break;
	case DT_I64:
		text_add(t, "%lld", (long long)*(const int64_t *)p);
		break;
	default:
		put_float(t, p, dtype);
	}
}

static void put_data(struct text *t, const void *data, int64_t count,
		     enum dtype dtype)
{
	int64_t i;

	text_add(t, "[");
	for (i = 0; i < count; i++) {
		text_add(t, i ? ", " : "");
		put_element(t, data, i, dtype);
	}
	text_add(t, "]");
}

static void put_local(struct text *t, const struct value *v,
		      const void **local)
{
	int coord[MAX_MESH], i;
	Piece p;

	text_add(t, " local(");
	for (i = 0; i < v->dist.on->nranks; i++) {
		mesh_coords(v->dist.on, i, coord);
		p = piece_of(v->type.shape, v->dist, coord);
		text_add(t, i ? ", " : "");
		put_data(t, local[i], piece_count(p), v->type.dtype);
	}
	text_add(t, ")");
}

static void put_init(struct text *t, const struct value *v,
		     const struct init *init)
{
	static const char *const kinds[] = {
		"none", "constant", "uniform", "normal", "trunc_normal",
		"data"
	};
	const double number[] = {init->a, init->b, init->c, init->d};
	int i;

	text_add(t, " init %s", kinds[init->kind]);
	if (init->kind != INIT_NONE && init->kind != INIT_DATA) {
		for (i = 0; i < 4; i++) {
			text_add(t, i ? ", " : "(");
			put_double(t, number[i]);
		}
		text_add(t, ")");
	}
	if (init->data) {
		text_add(t, " ");
		put_data(t, init->data, shape_count(v->type.shape),
			 v->type.dtype);
	}
	if (init->local && v->dist.on)
		put_local(t, v, init->local);
}

/* ---- nodes ---- */

static void put_value(struct text *t, const struct graph *g,
		      const struct value *v)
{
	text_add(t, "%%%d", v->id);
	if (v->name) {
		text_add(t, " ");
		put_name(t, v->name);
	}
	text_add(t, ": %s", type_text(v->type));
	if (v->dist.on) {
		text_add(t, " ");
		put_dist(t, g, v->dist);
	}
	if (v->keep)
		text_add(t, " keep");
}

static void put_wants(struct text *t, const struct graph *g,
		      const struct node *n)
{
	int i;

	text_add(t, " wants [");
	for (i = 0; i < n->nin; i++) {
		text_add(t, i ? ", " : "");
		if (n->in_dist[i].on)
			put_dist(t, g, n->in_dist[i]);
		else
			text_add(t, "-");
	}
	text_add(t, "]");
}

static void put_head(struct text *t, const struct graph *g,
		     const struct node *n)
{
	int i;

	for (i = 0; i < n->nout; i++) {
		text_add(t, i ? ", " : "");
		put_value(t, g, n->out[i]);
	}
	text_add(t, "%s%s(", n->nout ? " = " : "", op_info(n->op)->name);
	for (i = 0; i < n->nin; i++)
		text_add(t, "%s%%%d", i ? ", " : "", n->in[i]->id);
	text_add(t, ")");
	put_attrs(t, n);
	if (n->on) {
		text_add(t, " on ");
		put_placement(t, g, n->on);
	}
	if (n->in_dist)
		put_wants(t, g, n);
	if (n->init)
		put_init(t, n->out[0], n->init);
	if (n->source) {
		text_add(t, " from ");
		put_name(t, n->source->name);
		text_add(t, " : ");
		put_name(t, n->field);
	}
}

static void put_node(struct text *t, const struct graph *g,
		     const struct node *n, const char *indent)
{
	struct place p = place_of(n->span);
	int i;

	text_add(t, "%s", indent);
	put_head(t, g, n);
	if (n->nbody)
		text_add(t, " do");
	if (p.line)
		text_add(t, "  # %s:%d", p.path, p.line);
	text_add(t, "\n");
	for (i = 0; i < n->nbody; i++)
		put_node(t, g, n->body[i], "    ");
	if (n->nbody)
		text_add(t, "%send\n", indent);
}

static void put_source(struct text *t, const struct data_source *s)
{
	text_add(t, "  data ");
	put_name(t, s->name);
	text_add(t, " = %s(", s->kind == DATA_IDX ? "idx" : "npy");
	put_quoted(t, s->file[0] ? s->file[0] : "");
	if (s->kind == DATA_IDX) {
		text_add(t, ", ");
		put_quoted(t, s->file[1] ? s->file[1] : "");
	}
	text_add(t, ")\n");
}

static void put_ends(struct text *t, const struct graph *g)
{
	int i;

	for (i = 0; i < g->outputs.n; i++) {
		text_add(t, "  output ");
		put_name(t, g->outputs.at[i].name);
		text_add(t, " = %%%d\n", g->outputs.at[i].v->id);
	}
	for (i = 0; i < g->updates.n; i++)
		text_add(t, "  update %%%d = %%%d\n",
			 g->updates.at[i].state->id,
			 g->updates.at[i].v->id);
}

void graph_print(const struct graph *g, struct text *t)
{
	int i;

	text_add(t, "graph ");
	put_name(t, g->name ? g->name : "");
	text_add(t, " ");
	put_quoted(t, g->path ? g->path : "");
	text_add(t, " {\n");
	for (i = 0; i < g->placements.n; i++)
		put_placement_line(t, g, g->placements.at[i]);
	if (g->on) {
		text_add(t, "  on ");
		put_placement(t, g, g->on);
		text_add(t, "\n");
	}
	for (i = 0; i < g->sources.n; i++)
		put_source(t, g->sources.at[i]);
	for (i = 0; i < g->nodes.n; i++)
		put_node(t, g, g->nodes.at[i], "  ");
	put_ends(t, g);
	text_add(t, "}\n");
}
