/*
 * tables.c: what the runtime reads of a program: placements, pieces, moves,
 * tensors, data sources.
 */
#include <string.h>

#include "codegen/emit.h"

/* ---- placements ---- */

static bool consecutive(const struct placement *p)
{
	for (int i = 0; i < p->nranks; i++)
		if (p->rank[i] != p->rank[0] + i)
			return false;
	return true;
}

static void add_ranks(const struct placement *p, const char *name,
		      struct text *out)
{
	struct text row = {0};

	for (int i = 0; i < p->nranks; i++)
		text_add(&row, "%s%d", i > 0 ? ", " : "", p->rank[i]);
	text_add(out, "static const int %s_ranks[] = {\n", name);
	text_list(out, row.at);
	text_add(out, "};\n");
	text_free(&row);
}

static void add_placement(const struct placement *p, const char *name,
			  struct text *out)
{
	bool run = consecutive(p);

	if (!run)
		add_ranks(p, name, out);
	text_add(out, "static const sbp_placement %s = {\n\t", name);
	text_string(out, p->name ? p->name : "");
	text_add(out, ", %d, {", p->naxes);
	for (int i = 0; i < p->naxes; i++)
		text_add(out, "%s%d", i > 0 ? ", " : "", p->extent[i]);
	if (run)
		text_add(out, "}, NULL, %d,\n};\n\n", p->rank[0]);
	else
		text_add(out, "}, %s_ranks, 0,\n};\n\n", name);
}

/* The C name of P, which is defined when first used. */
static const char *placement_name(struct tables *t, const struct placement *p)
{
	struct arena *a = t->e->arena;
	const char *name = t->placement[p->id];

	if (name != NULL)
		return name;
	name = c_name(a, p->name ? p->name : "placement");
	name = name_unique(t->names, arena_text(a, "on_%s", name));
	t->placement[p->id] = name;
	add_placement(p, name, &t->placements);
	return name;
}

/* ---- distributions ---- */

/* "grid_B_S0", and "_by10" where the inner axis splits first. */
static const char *dist_id(struct tables *t, Dist d)
{
	struct arena *a = t->e->arena;
	const char *s = placement_name(t, d.on) + strlen("on_");
	bool nested = false;

	for (int i = 0; i < d.on->naxes; i++) {
		Sbp term = d.t[i];

		if (term.kind == SBP_S)
			s = arena_text(a, "%s_S%d", s, term.axis);
		else if (term.kind == SBP_P && term.red != RED_SUM)
			s = arena_text(a, "%s_P%s", s,
				       term.red == RED_MAX ? "max" : "min");
		else
			s = arena_text(a, "%s_%c", s, "_BSP"[term.kind]);
		nested = nested || d.order[i] != i;
	}
	for (int i = 0; nested && i < d.on->naxes; i++)
		s = arena_text(a, "%s%s%d", s, i == 0 ? "_by" : "", d.order[i]);
	return s;
}

static void add_terms(Dist d, struct text *t)
{
	for (int i = 0; i < d.on->naxes; i++) {
		Sbp term = d.t[i];

		text_add(t, "%s{'%c', %d, ", i > 0 ? ", " : "",
			 "_BSP"[term.kind], term.kind == SBP_S ? term.axis : 0);
		if (term.kind == SBP_P)
			text_add(t, "'%c'}", "+xn"[term.red]);
		else
			text_add(t, "0}");
	}
}

static void add_dist(struct tables *t, Dist d, const char *name,
		     struct text *out)
{
	struct text row = {0};

	text_add(&row, "{&%s, {", placement_name(t, d.on));
	add_terms(d, &row);
	text_add(&row, "}, {");
	for (int i = 0; i < d.on->naxes; i++)
		text_add(&row, "%s%d", i > 0 ? ", " : "", d.order[i]);
	text_add(&row, "}}");
	text_add(out, "#define %s %s%s\n", name,
		 strlen(name) + row.n > 70 ? "\\\n\t" : "", row.at);
	text_free(&row);
}

const char *dist_macro(struct tables *t, Dist d, struct text *out)
{
	struct arena *a = t->e->arena;
	const char *id = dist_id(t, d);
	const char *key = arena_text(a, "%d %s", d.on->id, id);
	void **slot = bytemap_at(a, &t->dists, key, strlen(key));
	const char *name = *slot;

	if (name != NULL)
		return name;
	name = name_unique(t->names, arena_text(a, "ON_%s", id));
	*slot = (void *)name;
	t->ndists++;
	add_dist(t, d, name, out);
	return name;
}

/* ---- extents ---- */

static void add_extents(struct tables *t)
{
	const struct program *p = t->e->p;

	if (p->extents.n == 0)
		return;
	text_add(t->out, "/* Pieces that depend on the rank: m->own[]. */\n"
			 "static const sbp_extent extents[] = {\n");
	for (int i = 0; i < p->extents.n; i++) {
		const struct extent *x = p->extents.at[i];

		text_add(t->out, "\t{%lld, &%s, %d, {", (long long)x->n,
			 placement_name(t, x->on), x->naxes);
		for (int k = 0; k < x->naxes; k++)
			text_add(t->out, "%s%d", k > 0 ? ", " : "", x->axes[k]);
		text_add(t->out, "}},\n");
	}
	text_add(t->out, "};\n\n");
}

/* ---- offsets ---- */

/* V's offset in each class; by name where NAMED and there is one class. */
static void add_offset(struct tables *t, const struct value *v, bool named,
		       struct text *out)
{
	struct emitter *e = t->e;
	const int64_t *at = e->p->local[v->id].at;

	named = named && !e->target->tables_apart;
	if (e->p->nclasses == 1 && named && at[0] >= 0) {
		e->named[v->id] = true;
		text_add(out, "AT_%s", e->name[v->id]);
		return;
	}
	for (int c = 0; c < e->p->nclasses; c++)
		text_add(out, "%s%lld", c > 0 ? ", " : "", (long long)at[c]);
}

void add_offsets(struct tables *t, const char *name, const struct value **v,
		 int n, int each)
{
	struct program *p = t->e->p;
	struct text row = {0};

	text_add(t->out, "/* Offsets%s. */\nstatic const int64_t %s[] = {\n",
		 p->nclasses > 1 ? ", one for each rank class" : "", name);
	for (int i = 0; i < n; i++) {
		text_add(&row, "%s", row.n > 0 ? " " : "");
		add_offset(t, v[i], n <= MOST_NAMES, &row);
		text_add(&row, ",");
		if (n <= MOST_NAMES && (i + 1) % each == 0) {
			text_list(t->out, row.at);
			row.n = 0;
		}
	}
	if (row.n > 0)
		text_list(t->out, row.at);
	text_add(t->out, "};\n\n");
	text_free(&row);
}

/* ---- moves ---- */

const char *dtype_constant(struct arena *a, enum dtype type)
{
	char *s = arena_text(a, "SBP_%s", dtype_name(type));

	for (char *c = s; *c != '\0'; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return s;
}

void add_shape(struct text *t, Shape s)
{
	text_add(t, "%d, {", s.rank);
	for (int i = 0; i < s.rank; i++)
		text_add(t, "%s%lld", i > 0 ? ", " : "", (long long)s.d[i]);
	text_add(t, "%s}", s.rank == 0 ? "0" : "");
}

/* What the pattern of N is, in order of its members without the name. */
static const char *pattern_text(struct tables *t, const struct node *n)
{
	Type type = n->in[0]->type;
	struct text row = {0};
	const char *copy;

	text_add(&row, "{%s, ", dtype_constant(t->e->arena, type.dtype));
	add_shape(&row, type.shape);
	text_add(&row, ", %s, ",
		 dist_macro(t, dist_plain(n->in[0]->dist), t->out));
	text_add(&row, "%s, ",
		 dist_macro(t, dist_plain(n->out[0]->dist), t->out));
	copy = arena_text(t->e->arena, "%s", row.at);
	text_free(&row);
	return copy;
}

/* The index of N's pattern among those so far, N's own if it is new. */
static int add_pattern(struct tables *t, const struct node *n)
{
	struct arena *a = t->e->arena;
	const char *text = pattern_text(t, n);
	void **slot = bytemap_at(a, &t->known, text, strlen(text));

	if (*slot != NULL)
		return (int)((intptr_t)*slot - 1);
	PUSH(a, t->patterns,
	     arena_text(a, "%s\"%s\"},", text, move_title(a, n)));
	*slot = (void *)(intptr_t)t->patterns.n;
	return t->patterns.n - 1;
}

static void add_patterns(struct tables *t)
{
	text_add(t->out, "\nstatic const sbp_pattern patterns[] = {\n");
	for (int i = 0; i < t->patterns.n; i++)
		text_statement(t->out, 1, t->patterns.at[i]);
	text_add(t->out, "};\n\n");
}

static void add_move(struct tables *t, const struct node *n, int id,
		     int pattern)
{
	struct emitter *e = t->e;
	struct text row = {0};
	int nc = e->p->nclasses;
	const char *value = n->boxing ? n->boxing->value : NULL;

	text_add(&row, "{&patterns[%d], ", pattern);
	text_string(&row, value ? value : e->name[n->in[0]->id]);
	text_add(&row, ", %d, %d, moves_at + %d, moves_at + %d},",
		 place_of(n->boxing ? n->boxing->span : n->span).line, id,
		 2 * id * nc, (2 * id + 1) * nc);
	text_statement(t->out, 1, row.at);
	text_free(&row);
}

static void add_moves(struct tables *t)
{
	struct emitter *e = t->e;
	const struct graph *g = e->p->g;
	int n = move_count(e->p), id = 0;
	const struct value **ends =
		NEW_N(e->arena, const struct value *, 2 * n + 1);
	int *pattern = NEW_N(e->arena, int, n + 1);

	if (n == 0)
		return;
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *node = g->nodes.at[i];

		if (!move_runs(e->p, node))
			continue;
		ends[2 * id] = node->in[0];
		ends[2 * id + 1] = node->out[0];
		pattern[id++] = add_pattern(t, node);
	}
	add_patterns(t);
	add_offsets(t, "moves_at", ends, 2 * n, 2);
	if (e->target->tables_apart)
		text_add(t->out, "extern const sbp_move %s[%d];\n", e->moves,
			 n);
	text_add(t->out, "%sconst sbp_move %s[] = {\n",
		 strcmp(e->moves, "moves") == 0 ? "static " : "", e->moves);
	id = 0;
	for (int i = 0; i < g->nodes.n; i++)
		if (move_runs(e->p, g->nodes.at[i])) {
			add_move(t, g->nodes.at[i], id, pattern[id]);
			id++;
		}
	text_add(t->out, "};\n\n");
}

/* ---- sources ---- */

static void add_file(struct text *t, const char *file)
{
	if (file == NULL)
		text_add(t, "NULL");
	else
		text_string(t, file);
}

static void add_sources(struct tables *t)
{
	const struct graph *g = t->e->p->g;

	if (g->sources.n == 0)
		return;
	text_add(t->out, "static const sbp_source sources[] = {\n");
	for (int i = 0; i < g->sources.n; i++) {
		const struct data_source *s = g->sources.at[i];

		text_add(t->out, "\t{");
		text_string(t->out, s->name);
		text_add(t->out, ", %s, {",
			 s->kind == DATA_IDX ? "SBP_DATA_IDX" : "SBP_DATA_NPY");
		add_file(t->out, s->file[0]);
		text_add(t->out, ", ");
		add_file(t->out, s->file[1]);
		text_add(t->out, "}},\n");
	}
	text_add(t->out, "};\n\n");
}

/* ---- the program ---- */

static void add_classes(struct tables *t)
{
	const struct program *p = t->e->p;
	struct text row = {0};

	text_add(t->out, "static const int64_t arena_bytes[] = {");
	for (int c = 0; c < p->nclasses; c++)
		text_add(t->out, "%s%lld", c > 0 ? ", " : "",
			 (long long)p->arena_bytes[c]);
	text_add(t->out, "};\n\n");
	if (p->nclasses == 1)
		return;
	for (int r = 0; r < p->g->world; r++)
		text_add(&row, "%s%d", r > 0 ? ", " : "", p->class_of[r]);
	text_add(t->out, "static const unsigned short class_of[] = {\n");
	text_list(t->out, row.at);
	text_add(t->out, "};\n\n");
	text_free(&row);
}

static void add_steps(struct tables *t)
{
	const struct program *p = t->e->p;
	const char *prefix = t->e->prefix;

	if (t->e->target->tables_apart)
		text_add(t->out, "sbp_status %s_step(sbp_model *m);\n", prefix);
	for (int c = 1; c < p->nclasses; c++)
		text_add(t->out, "sbp_status %s_class%d_step(sbp_model *m);\n",
			 prefix, c);
	text_add(t->out,
		 "%sstatic sbp_status (*const steps[])(sbp_model *m) = {\n"
		 "\t%s_step,\n",
		 p->nclasses > 1 || t->e->target->tables_apart ? "\n" : "",
		 prefix);
	for (int c = 1; c < p->nclasses; c++)
		text_add(t->out, "\t%s_class%d_step,\n", prefix, c);
	text_add(t->out, "};\n\n");
}

static void add_program(struct tables *t, int ntensors)
{
	const struct program *p = t->e->p;
	const struct graph *g = p->g;

	text_add(t->out,
		 "const sbp_program %s_program = {\n"
		 "\t.abi = SBP_ABI,\n\t.name = ",
		 t->e->prefix);
	text_string(t->out, g->name);
	text_add(t->out, ",\n\t.file = ");
	text_string(t->out, path_base(g->path));
	text_add(t->out, ",\n\t.plan_hash = UINT64_C(0x%016llx),\n",
		 (unsigned long long)p->plan_hash);
	text_add(t->out,
		 "\t.world = %d,\n\t.isa = SBP_ISA,\n"
		 "\t.nclasses = %d,\n",
		 g->world, p->nclasses);
	if (p->nclasses > 1)
		text_add(t->out, "\t.class_of = class_of,\n");
	text_add(t->out, "\t.arena_bytes = arena_bytes,\n\t.step = steps,\n");
	if (p->extents.n > 0)
		text_add(t->out, "\t.nextents = %d,\n\t.extents = extents,\n",
			 p->extents.n);
	if (ntensors > 0)
		text_add(t->out, "\t.ntensors = %d,\n\t.tensors = tensors,\n",
			 ntensors);
	if (g->sources.n > 0)
		text_add(t->out, "\t.nsources = %d,\n\t.sources = sources,\n",
			 g->sources.n);
	text_add(t->out, "\t.nmoves = %d,\n", move_count(p));
	text_add(t->out, "\t.recv_busiest = %lld,\n\t.recv_total = %lld,\n",
		 (long long)p->recv_busiest, (long long)p->recv_total);
	if (p->reproducible)
		text_add(t->out, "\t.reproducible = 1,\n");
	text_add(t->out, "\t.kernels = %d,\n\t.collectives = %d,\n};\n",
		 p->kernels, p->collectives);
}

void emit_tables(struct emitter *e, struct text *out)
{
	const struct graph *g = e->p->g;
	struct text rest = {0};
	struct tables t = {.e = e, .out = &rest};
	int ntensors;

	t.names = name_set_new(e->arena);
	t.placement = NEW_N(e->arena, const char *, g->placements.n + 1);
	add_extents(&t);
	add_moves(&t);
	ntensors = add_tensors(&t);
	add_sources(&t);
	add_classes(&t);
	add_steps(&t);
	add_program(&t, ntensors);
	text_add(out, "%s%s", t.placements.at ? t.placements.at : "", rest.at);
	text_free(&t.placements);
	text_free(&rest);
}
