/*
 * target_c.c: the targets' table, and C for the cpu: a kernel is a function,
 * a move is the runtime's, and the step is what the runtime calls.
 */
#include "codegen/codegen.h"

bool c_kernel(struct emitter *e, const struct node *n, struct call *c)
{
	return kernel_call(e, n, c);
}

void c_move(struct emitter *e, const struct node *n, int id, struct call *c)
{
	(void)n;
	c->function = name_of("sbp_move_run");
	c->status = true;
	call_arg(e, c, (struct arg){.kind = ARG_TEXT, .text = name_of("m")});
	call_arg(e, c, (struct arg){.kind = ARG_MOVE, .i = id});
}

void c_call(struct emitter *e, const struct call *c, const char *args,
	    struct text *out)
{
	(void)e;
	if (c->status)
		text_add(out, "SBP_TRY(%s(%s));", c->function, args);
	else
		text_add(out, "%s(%s);", c->function, args);
}

const char *c_entry(struct emitter *e, const char *name, bool external,
		    struct text *after)
{
	(void)after;
	if (external)
		return arena_text(e->arena,
				  "sbp_status %s(sbp_model *m);\n\n"
				  "sbp_status %s",
				  name, name);
	return arena_text(e->arena, "static sbp_status %s", name);
}

static const struct target targets[] = {
#define TARGET(name, ...)                         \
	{#name,       __VA_ARGS__, name##_kernel, \
	 name##_move, name##_call, name##_entry},
#include "codegen/target.def"
#undef TARGET
};

const struct target *target_of(const struct program *p)
{
	const struct graph *g = p->g;
	const struct placement *on = g->on;

	if (on == NULL && g->placements.n > 0)
		on = g->placements.at[0];
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
		if (on == NULL || targets[i].device == on->device)
			return &targets[i];
	bug("no target for device %d", on->device);
}
