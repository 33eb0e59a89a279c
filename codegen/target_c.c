/*
 * target_c.c: the targets' table, and C for the cpu: a kernel is a function
 * and a call is a call.
 */
#include "codegen/codegen.h"

static bool c_kernel(struct emitter *e, const struct node *n, struct call *c)
{
	return kernel_call(e, n, c);
}

static void c_call(struct emitter *e, const struct call *c, const char *args,
		   struct text *out)
{
	(void)e;
	if (c->status)
		text_add(out, "SBP_TRY(%s(%s));", c->function, args);
	else
		text_add(out, "%s(%s);", c->function, args);
}

static const struct target targets[] = {
#define TARGET(name, device, suffix, include)                                 \
	{#name, device, suffix, include, name##_kernel, name##_call},
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
