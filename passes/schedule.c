/*
 * schedule: the order in which a step runs its nodes.
 *
 * Source order is kept: it is what a reader of the emitted code expects, and
 * one order for all ranks is what makes their communication match. Only nodes
 * that read nothing (constants made of numbers, random tensors) wait until
 * just before their first reader, so that their buffers live shorter.
 */
#include "passes/passes.h"

static bool waits(const struct node *n)
{
	return n->nin == 0 && op_info(n->op)->kernel != K_NONE;
}

/* By node id: the position of the first reader of any output, or -1. */
static int *first_readers(const struct graph *g, struct arena *a)
{
	int *first = NEW_N(a, int, g->nodes.n + 1);

	for (int i = 0; i < g->nodes.n; i++)
		first[g->nodes.at[i]->id] = -1;
	for (int i = g->nodes.n - 1; i >= 0; i--) {
		const struct node *n = g->nodes.at[i];

		for (int k = 0; k < n->nin; k++)
			first[n->in[k]->def->id] = i;
	}
	return first;
}

struct waiting {
	struct node *n;
	struct waiting *next;
};

void pass_schedule(struct program *p)
{
	struct graph *g = p->g;
	int count = g->nodes.n, at = 0;
	int *first = first_readers(g, p->arena);
	struct waiting **before = NEW_N(p->arena, struct waiting *, count);
	struct node **order = NEW_N(p->arena, struct node *, count);

	for (int i = count - 1; i >= 0; i--) {
		struct node *n = g->nodes.at[i];
		struct waiting *w = NEW(p->arena, struct waiting);

		if (!waits(n) || first[n->id] < 0)
			continue;
		*w = (struct waiting){n, before[first[n->id]]};
		before[first[n->id]] = w;
	}
	for (int i = 0; i < count; i++) {
		struct node *n = g->nodes.at[i];

		for (struct waiting *w = before[i]; w != NULL; w = w->next)
			order[at++] = w->n;
		if (!waits(n) || first[n->id] < 0)
			order[at++] = n;
	}
	for (int i = 0; i < count; i++) {
		g->nodes.at[i] = order[i];
		order[i]->id = i;
	}
}
