/*
 * inside.c: what stays in registers. Elementwise operators and reductions
 * that follow each other become one kernel, which reads each tensor once and
 * writes only what others need; inference prices them so. How they are
 * distributed is not known yet, so what is assumed here is that fusing finds
 * nothing in its way: fuse.c decides later.
 */
#include "passes/passes.h"

struct insides {
	struct graph *g;
	int *uses;
	int *depth;           /* by node id: kernels that must run before */
	int *join;            /* by node id: a node of the same kernel */
	struct node **reader; /* by value id: the last that reads it */
};

static bool fusable(const struct node *n)
{
	enum kernel_kind kind = op_info(n->op)->kernel;

	return (kind == K_MAP || kind == K_FOLD) && n->nin > 0 && n->nin <= 15;
}

static bool is_inside(const struct insides *s, const struct node *def,
		      const struct node *n)
{
	return fusable(def) && fusable(n) &&
	       s->depth[def->id] == s->depth[n->id];
}

static int kernel_of(const struct insides *s, int id)
{
	while (s->join[id] != id)
		id = s->join[id] = s->join[s->join[id]];
	return id;
}

/* A node runs after the kernels of its inputs, but may share one with them. */
static void find_depths(struct insides *s)
{
	for (int i = 0; i < s->g->nodes.n; i++) {
		const struct node *n = s->g->nodes.at[i];
		int depth = 0;

		for (int k = 0; k < n->nin; k++) {
			const struct node *def = n->in[k]->def;
			bool other = def->nin && !(fusable(def) && fusable(n));
			int d = s->depth[def->id] + other;

			depth = d > depth ? d : depth;
		}
		s->depth[i] = depth;
	}
}

static void find_kernels(struct insides *s)
{
	for (int i = 0; i < s->g->nodes.n; i++) {
		struct node *n = s->g->nodes.at[i];

		s->join[i] = i;
		for (int k = 0; k < n->nin; k++) {
			s->reader[n->in[k]->id] = n;
			if (is_inside(s, n->in[k]->def, n))
				s->join[kernel_of(s, n->in[k]->def->id)] =
					kernel_of(s, i);
		}
	}
}

/* Input I of N costs nothing: it is in a register, or the kernel has read it
 * already. LAST is, by value, the kernel that read it last. */
static bool is_read(const struct insides *s, const struct node *n, int i,
		    int *last)
{
	const struct value *v = n->in[i];
	int kernel = kernel_of(s, n->id);

	if (is_inside(s, v->def, n))
		return true;
	if (!fusable(n))
		return false;
	if (last[v->id] == kernel + 1)
		return true;
	last[v->id] = kernel + 1;
	return false;
}

/* Products read their operands transposed. */
static bool read_transposed(const struct insides *s, const struct value *v)
{
	return swaps_last_two(v->def) && s->uses[v->id] == 1 &&
	       s->reader[v->id] && s->reader[v->id]->op == OP_matmul;
}

static unsigned bits_of(const struct insides *s, const struct node *n,
			const int *within, int *last)
{
	unsigned bits = 0;

	for (int i = 0; i < n->nin; i++)
		if (is_read(s, n, i, last))
			bits |= 1u << i;
	for (int i = 0; i < n->nout && i < 15; i++) {
		const struct value *v = n->out[i];
		bool all = fusable(n) && s->uses[v->id] &&
			   within[v->id] == s->uses[v->id];

		if (all || read_transposed(s, v))
			bits |= 1u << (16 + i);
	}
	return bits;
}

unsigned *inside_bits(struct graph *g, struct arena *a)
{
	struct insides s = {g, graph_uses(g, a), NEW_N(a, int, g->nodes.n + 1),
			    NEW_N(a, int, g->nodes.n + 1),
			    NEW_N(a, struct node *, g->values.n + 1)};
	unsigned *bits = NEW_N(a, unsigned, g->nodes.n + 1);
	int *within = NEW_N(a, int, g->values.n + 1);
	int *last = NEW_N(a, int, g->values.n + 1);

	find_depths(&s);
	find_kernels(&s);
	for (int i = 0; i < g->nodes.n; i++)
		for (int k = 0; k < g->nodes.at[i]->nin; k++)
			if (is_inside(&s, g->nodes.at[i]->in[k]->def,
				      g->nodes.at[i]))
				within[g->nodes.at[i]->in[k]->id]++;
	for (int i = 0; i < g->nodes.n; i++)
		bits[i] = bits_of(&s, g->nodes.at[i], within, last);
	return bits;
}
