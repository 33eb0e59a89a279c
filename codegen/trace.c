/*
 * trace.c: what the ranks of each class do in a step, as the simulation of
 * --simulate reads it, and the main that runs it. It is taken from the calls
 * that the step is made of; the step itself is that of any other program.
 */
#include <string.h>

#include "codegen/emit.h"

static bool is_copy(const struct emitter *e, const struct call *c)
{
	return !strcmp(c->function, e->target->copy);
}

/* What people know the call by: its function, where that is the program's. */
static const char *call_name(const struct emitter *e, const struct call *c)
{
	if (is_copy(e, c))
		return "copy";
	if (!strncmp(c->function, "sbp_gemm", strlen("sbp_gemm")))
		return "matmul";
	return c->function;
}

/* Whether C writes its argument ARG, a value: an output of its node. A copy may
 * be to the state that the output becomes. */
static bool writes(const struct emitter *e, const struct call *c, int arg)
{
	for (int k = 0; k < c->n->nout && !is_copy(e, c); k++)
		if (c->args.at[arg].v == c->n->out[k])
			return true;
	return is_copy(e, c) && arg == 0;
}

/* A view has bytes of its root. */
static void add_access(struct emitter *e, const struct call *c, int arg,
		       struct text *t)
{
	const struct value *v = c->args.at[arg].v;
	const struct local *own = &e->p->local[v->id];
	const struct value *root = own->same_as ? own->same_as : v;
	const char *name = v->name ? v->name : e->name[v->id];
	struct text row = {0};

	own = &e->p->local[root->id];
	text_add(&row, "{%lld, %lld, ", (long long)own->at[e->class],
		 (long long)own->bytes);
	text_string(&row, call_name(e, c));
	text_add(&row, ", ");
	text_string(&row, name);
	text_add(&row, ", %d, %d},", place_of(c->n->span).line,
		 writes(e, c, arg));
	text_statement(t, 1, row.at);
	text_free(&row);
}

/* Counts the accesses of C, a call that is no move. */
static int add_accesses(struct emitter *e, const struct call *c, struct text *t)
{
	int n = 0;

	for (int i = 0; i < c->args.n; i++)
		if (c->args.at[i].kind == ARG_VALUE) {
			add_access(e, c, i, t);
			n++;
		}
	return n;
}

/* The move that C runs, or -1. */
static int move_of(const struct call *c)
{
	for (int i = 0; i < c->args.n; i++)
		if (c->args.at[i].kind == ARG_MOVE)
			return (int)c->args.at[i].i;
	return -1;
}

static void add_ints(struct text *t, const char *name, int class,
		     const char *list)
{
	text_add(t, "static const int %s%d[] = {\n", name, class);
	text_list(t, list);
	text_add(t, "};\n");
}

void emit_trace(struct emitter *e, const struct call *calls, int n)
{
	struct text access = {0}, moves = {0}, until = {0}, *t = e->trace;
	int naccesses = 0, nmoves = 0;

	for (int i = 0; i < n; i++) {
		int move = move_of(&calls[i]);

		if (move < 0) {
			naccesses += add_accesses(e, &calls[i], &access);
			continue;
		}
		text_add(&moves, "%s%d,", nmoves++ ? " " : "", move);
		text_add(&until, "%d, ", naccesses);
	}
	text_add(&until, "%d,", naccesses);
	text_add(t, "static const sbp_access access%d[] = {\n%s\t{0},\n};\n",
		 e->class, access.at ? access.at : "");
	add_ints(t, "moves", e->class, nmoves ? moves.at : "-1,");
	add_ints(t, "until", e->class, until.at);
	text_add(t, "#define TRACE%d {%d, moves%d, until%d, access%d}\n\n",
		 e->class, nmoves, e->class, e->class, e->class);
	text_free(&access);
	text_free(&moves);
	text_free(&until);
}

void emit_simulation(const struct program *p, const char *base,
		     const struct text *traces, struct text *out)
{
	text_add(out, "#include \"%s.h\"\n\n%s", base, traces->at);
	text_add(out, "static const sbp_trace trace[] = {\n");
	for (int c = 0; c < p->nclasses; c++)
		text_add(out, "\tTRACE%d,\n", c);
	text_add(out,
		 "};\n\nint main(int argc, char **argv)\n{\n"
		 "\treturn sbp_simulate(&%s_program, trace, "
		 "UINT64_C(%llu), argc,\n\t\t\t    argv);\n}\n",
		 program_prefix(p), (unsigned long long)p->seed);
}
