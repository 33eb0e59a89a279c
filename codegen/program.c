/*
 * program.c: the files of a program. One translation unit for each rank
 * class: offsets, kernels and the step; the first also has the tables that
 * the runtime reads.
 */
#include <limits.h>
#include <string.h>

#include "codegen/codegen.h"

/* ---- the head ---- */

static void add_placements(struct text *t, const struct program *p, int class)
{
	int np = p->g->placements.n;
	const char *comma = "";

	for (int i = 0; i < np; i++) {
		if (!p->class_on[class * np + i])
			continue;
		text_add(t, "%s", comma);
		text_placement(t, p->g->placements.at[i]);
		comma = ", ";
	}
}

static int class_size(const struct program *p, int class)
{
	int n = 0;

	for (int r = 0; r < p->g->world; r++)
		n += p->class_of[r] == class;
	return n;
}

static void add_class(struct text *t, const struct program *p, int class)
{
	int n = class_size(p, class), first = p->class_rank[class];

	if (p->nclasses == 1)
		text_add(t, "One rank class, %d rank%s of ", n,
			 n == 1 ? "" : "s");
	else if (n == 1)
		text_add(t, "Rank class %d of %d: rank %d of ", class,
			 p->nclasses, first);
	else
		text_add(t, "Rank class %d of %d: %d ranks from %d on of ",
			 class, p->nclasses, n, first);
	add_placements(t, p, class);
	text_add(t, ".");
}

static void add_head(struct text *t, const struct program *p, int class)
{
	struct text s = {0};

	text_add(&s, "%s: emitted by sbpc from %s. ", p->g->name,
		 path_base(p->g->path));
	add_class(&s, p, class);
	text_add(&s,
		 "\nA step receives %lld bytes on the busiest rank; the "
		 "arena takes %lld.",
		 (long long)p->recv_busiest, (long long)p->arena_bytes[class]);
	text_add(t, "/*\n");
	text_paragraphs(t, " * ", s.at);
	text_add(t, " */\n");
	text_free(&s);
}

/* ---- offsets ---- */

/* "f32[2, 3] (B); where h was", where that makes no long line. */
static void add_meaning(struct emitter *e, const struct value *v,
			const struct value *before, struct text *t)
{
	const struct value *same = e->p->local[v->id].same_as;
	struct text note = {0};
	size_t start = t->n;

	text_local(t, e->p, v);
	if (same != NULL)
		text_add(&note, "; the bytes of %s", e->name[same->id]);
	else if (before != NULL)
		text_add(&note, "; where %s was", e->name[before->id]);
	if (note.at != NULL && t->n - start + note.n < 60)
		text_add(t, "%s", note.at);
	text_free(&note);
}

/* A line of the enum. */
static void add_offset(struct emitter *e, const struct value *v, bool wide,
		       const struct value *before, struct text *t)
{
	struct text line = {0};
	const char *form =
		wide ? "#define AT_%s INT64_C(%lld)" : "\tAT_%s = %lld,";

	text_add(&line, form, e->name[v->id],
		 (long long)e->p->local[v->id].at[e->class]);
	text_add(t, "%s", line.at);
	text_tabs_to(t, line.at, 32);
	text_free(&line);
	text_add(t, "/* ");
	add_meaning(e, v, before, t);
	text_add(t, " */\n");
}

struct offsets {
	struct emitter *e;
	struct bytemap owner; /* the last value at an offset */
	bool wide;
	struct text text;
};

static void add_named(struct offsets *o, const struct value *v)
{
	struct emitter *e = o->e;
	const struct local *own = &e->p->local[v->id];
	int64_t at;
	void **slot;

	if (own->at == NULL || own->at[e->class] < 0 || own->slice_of != NULL)
		return;
	at = own->at[e->class];
	slot = bytemap_at(e->arena, &o->owner, &at, sizeof at);
	if (e->named[v->id])
		add_offset(e, v, o->wide, own->bytes > 0 ? *slot : NULL,
			   &o->text);
	if (own->bytes > 0)
		*slot = e->named[v->id] ? (void *)v : NULL;
}

static void add_offsets(struct emitter *e, struct text *t)
{
	const struct graph *g = e->p->g;
	struct offsets o = {.e = e};

	o.wide = e->p->arena_bytes[e->class] > INT_MAX;
	for (int i = 0; i < g->nodes.n; i++)
		for (int k = 0; k < g->nodes.at[i]->nout; k++)
			add_named(&o, g->nodes.at[i]->out[k]);
	if (o.text.n == 0)
		return;
	text_add(t, "/* Offsets in the arena, in bytes. */\n");
	text_add(t, o.wide ? "%s\n" : "enum {\n%s};\n\n", o.text.at);
	text_free(&o.text);
}

/* ---- units ---- */

static const char *unit_suffix(const struct emitter *e)
{
	if (e->class == 0)
		return e->target->suffix;
	return arena_text(e->arena, "_class%d%s", e->class, e->target->suffix);
}

/* Valid until the next file is added. */
static struct text *add_file(struct program *p, struct emitted_files *out,
			     const char *suffix)
{
	PUSH(p->arena, out->at, (struct emitted){.suffix = suffix});
	return &out->at.at[out->at.n - 1].text;
}

static bool moves_shared(const struct emitter *e)
{
	return e->p->nclasses > 1 || e->target->tables_apart;
}

static void add_declarations(struct emitter *e, struct text *t)
{
	int moves = move_count(e->p);

	if (moves > 0)
		text_add(t, "%sconst sbp_move %s[%d];\n\n",
			 moves_shared(e) ? "extern " : "static ", e->moves,
			 moves);
	if (e->addresses)
		text_add(t, "%s", e->target->at_text);
}

static void add_tables(struct emitter *e, struct emitted_files *out,
		       struct text *t)
{
	struct text *own = t;

	if (e->class > 0)
		return;
	if (e->target->tables_apart) {
		own = add_file(e->p, out, "_tables.c");
		text_add(own,
			 "/*\n * %s: what the runtime reads.\n */\n"
			 "#include \"%s.h\"\n\n",
			 e->p->g->name, e->base);
	}
	emit_tables(e, own);
}

static void emit_unit(struct emitter *e, struct emitted_files *out)
{
	struct text tables = {0}, after = {0}, *t;
	const char *name, *head;

	name = e->class == 0 ? arena_text(e->arena, "%s_step", e->prefix)
			     : arena_text(e->arena, "%s_class%d_step",
					  e->prefix, e->class);
	head = e->target->entry(e, name, e->class > 0, &after);
	emit_step(e, head);
	add_tables(e, out, &tables);
	t = add_file(e->p, out, unit_suffix(e));
	add_head(t, e->p, e->class);
	text_add(t, "%s#include \"%s.h\"\n\n", e->target->include, e->base);
	add_offsets(e, t);
	add_declarations(e, t);
	text_add(t, "%s%s%s%s", e->kernels.at ? e->kernels.at : "", e->step.at,
		 after.at ? after.at : "", tables.at ? tables.at : "");
	text_free(&e->kernels);
	text_free(&e->step);
	text_free(&tables);
	text_free(&after);
}

const char *program_prefix(const struct program *p)
{
	if (strcmp(p->g->name, "sbp") == 0)
		return "sbp_model_sbp";
	return c_name(p->arena, p->g->name);
}

void emit_main(const struct program *p, const char *base, int rank,
	       struct text *out)
{
	text_add(out,
		 "#include \"%s.h\"\n\n"
		 "int main(int argc, char **argv)\n{\n"
		 "\treturn sbp_main(&%s_program, %d, argc, argv);\n}\n",
		 base, program_prefix(p), rank);
}

void emit_program(struct program *p, const char *base,
		  struct emitted_files *out)
{
	const char **names = value_names(p);
	const char *prefix = program_prefix(p);
	struct comm_lists *comm = comm_lists_new(p->arena, p);
	struct text traces = {0};

	emit_header(p, base, add_file(p, out, ".h"));
	for (int c = 0; c < p->nclasses; c++) {
		struct emitter e = {
			.arena = p->arena,
			.p = p,
			.target = target_of(p),
			.prefix = prefix,
			.base = base,
			.class = c,
			.comm = comm,
			.name = names,
			.named = NEW_N(p->arena, bool, p->g->values.n + 1),
			.moves = "moves",
			.trace = p->simulate ? &traces : NULL,
		};

		if (moves_shared(&e))
			e.moves = arena_text(p->arena, "%s_moves", prefix);
		emit_unit(&e, out);
	}
	proof_demand(p, comm);
	if (p->simulate)
		emit_simulation(p, base, &traces,
				add_file(p, out, "_main.c"));
	else
		emit_main(p, base, -1, add_file(p, out, "_main.c"));
	text_free(&traces);
}
