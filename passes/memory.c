/*
 * memory: an offset in the static arena of each rank class for every buffer.
 *
 * Inputs, params, states and constants have a place of their own. The rest
 * is placed by walking the step in order: a value takes the smallest hole
 * that fits when it is made and leaves it after its last reader, outputs,
 * kept values and new values of states excepted, which stay to the end. The
 * output of a view and a slice that is read in place are their input's bytes,
 * that of an elementwise kernel or of an all-reduce between two ranks may be,
 * and the new value of a state may take the old one's. Other outputs of a node
 * are placed before its inputs leave, so nothing is written where a peer may
 * still read: a move returns when all have read.
 */
#include <string.h>

#include "passes/passes.h"

enum { ALIGN = 64 };

/* Holes below the top, in order of address, none touching another. */
struct hole {
	int64_t lo, hi;
};
struct heap {
	struct arena *arena;
	LIST(struct hole) holes;
	int64_t top, peak;
};

static void hole_remove(struct heap *h, int i)
{
	memmove(&h->holes.at[i], &h->holes.at[i + 1],
		sizeof(struct hole) * (size_t)(h->holes.n - i - 1));
	h->holes.n--;
}

static void hole_insert(struct heap *h, int i, struct hole hole)
{
	PUSH(h->arena, h->holes, hole);
	memmove(&h->holes.at[i + 1], &h->holes.at[i],
		sizeof(struct hole) * (size_t)(h->holes.n - 1 - i));
	h->holes.at[i] = hole;
}

static int64_t rounded(int64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* The smallest hole that fits, the lowest of equal ones; -1: none. */
static int best_hole(const struct heap *h, int64_t size)
{
	int best = -1;
	int64_t least = INT64_MAX;

	for (int i = 0; i < h->holes.n; i++) {
		int64_t n = h->holes.at[i].hi - h->holes.at[i].lo;

		if (n >= size && n < least) {
			best = i;
			least = n;
		}
	}
	return best;
}

static int64_t heap_take(struct heap *h, int64_t bytes)
{
	int64_t size = rounded(bytes), at;
	int i = size > 0 ? best_hole(h, size) : -1;

	if (i >= 0) {
		at = h->holes.at[i].lo;
		h->holes.at[i].lo += size;
		if (h->holes.at[i].lo == h->holes.at[i].hi)
			hole_remove(h, i);
		return at;
	}
	at = h->top;
	i = h->holes.n - 1;
	if (size > 0 && i >= 0 && h->holes.at[i].hi == h->top) {
		at = h->holes.at[i].lo;
		hole_remove(h, i);
	}
	h->top = at + size;
	if (h->top > h->peak)
		h->peak = h->top;
	return at;
}

static void heap_leave(struct heap *h, int64_t at, int64_t bytes)
{
	struct hole hole = {at, at + rounded(bytes)};
	int lo = 0, hi = h->holes.n;

	if (hole.lo == hole.hi)
		return;
	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (h->holes.at[mid].lo < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < h->holes.n && h->holes.at[lo].lo == hole.hi) {
		hole.hi = h->holes.at[lo].hi;
		hole_remove(h, lo);
	}
	if (lo > 0 && h->holes.at[lo - 1].hi == hole.lo)
		h->holes.at[lo - 1].hi = hole.hi;
	else
		hole_insert(h, lo, hole);
}

/* ---- lifetimes ---- */

enum { NEVER = -1, ALWAYS = INT32_MAX };

struct memory {
	struct program *p;
	const struct value **root; /* by value id: whose bytes it uses */
	int *last;     /* by root: position of its last reader; ALWAYS */
	bool *updated; /* by value id: a state that the step overwrites */
	bool *ends;    /* by value id: read when the step is done */
	bool *gone;    /* by root: a later value has its bytes */
	int *read;     /* by root: position of its last reader, or NEVER */
	const struct value **state; /* by value id: the state it becomes */
};

static void fill_ends(struct memory *m)
{
	struct graph *g = m->p->g;

	for (int i = 0; i < g->values.n; i++)
		m->ends[i] = g->values.at[i]->keep;
	for (int i = 0; i < g->outputs.n; i++)
		m->ends[g->outputs.at[i].v->id] = true;
	for (int i = 0; i < g->updates.n; i++) {
		struct update u = g->updates.at[i];

		m->ends[u.v->id] = true;
		m->updated[u.state->id] = true;
		m->state[u.v->id] = u.state;
	}
}

/* A view of a state that is overwritten before the view is read has bytes of
 * its own. */
static void fill_root(struct memory *m, const struct node *n)
{
	const struct value *v = n->out[0];

	for (int k = 0; k < n->nout; k++)
		m->root[n->out[k]->id] = n->out[k];
	if (m->p->local[v->id].slice_of == NULL &&
	    (op_info(n->op)->kernel != K_VIEW || n->nin != 1))
		return;
	if (!dist_eq(n->in[0]->dist, v->dist) && n->op == OP_to)
		bug("node %d: a conversion is left", n->id);
	if (m->ends[v->id] && m->updated[m->root[n->in[0]->id]->id])
		return;
	m->root[v->id] = m->root[n->in[0]->id];
	m->p->local[v->id].same_as = m->root[v->id];
}

static void fill_last(struct memory *m)
{
	struct graph *g = m->p->g;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		fill_root(m, n);
		for (int k = 0; k < n->nin; k++) {
			int *last = &m->last[m->root[n->in[k]->id]->id];

			if (*last < i)
				*last = i;
			m->read[m->root[n->in[k]->id]->id] = i;
		}
		for (int k = 0; k < n->nout; k++) {
			const struct value *v = n->out[k];
			int *last = &m->last[m->root[v->id]->id];

			if (op_is_leaf(n->op) || m->ends[v->id])
				*last = ALWAYS;
			else if (*last < i)
				*last = i;
		}
	}
}

/* All inputs of N with the bytes of ROOT, which N is the last to read. */
static bool may_take(struct memory *m, struct arena *a, const struct node *n,
		     const struct value *out, const struct value *root)
{
	for (int k = 0; k < n->nin; k++)
		if (m->root[n->in[k]->id] == root &&
		    (m->p->local[n->in[k]->id].slice_of != NULL ||
		     !may_overwrite(a, n, out, n->in[k])))
			return false;
	return true;
}

/* Whether N may write OUT, the new value of a state, where the old one is: all
 * others have read that. */
static bool may_update(struct memory *m, struct arena *a, const struct node *n,
		       const struct value *out, int now)
{
	const struct value *state = m->state[out->id];

	if (state == NULL || m->gone[state->id] || m->read[state->id] > now ||
	    !dist_eq(state->dist, out->dist))
		return false;
	return m->read[state->id] < now || may_take(m, a, n, out, state);
}

/* The buffer of an input that nobody else needs any more, or NULL. */
static const struct value *dead_input(struct memory *m, struct arena *a,
				      const struct node *n,
				      const struct value *out, int now)
{
	const struct local *local = m->p->local;

	for (int k = 0; k < n->nin; k++) {
		const struct value *root = m->root[n->in[k]->id];

		if (m->last[root->id] == now && !m->gone[root->id] &&
		    local[root->id].bytes == local[out->id].bytes &&
		    may_take(m, a, n, out, root))
			return root;
	}
	return NULL;
}

static void fill_over(struct memory *m, struct arena *a, const struct node *n,
		      int now)
{
	for (int o = 0; o < n->nout; o++) {
		const struct value *out = n->out[o], *over;

		if (m->root[out->id] != out)
			continue;
		if (may_update(m, a, n, out, now))
			over = m->state[out->id];
		else
			over = dead_input(m, a, n, out, now);
		if (over == NULL)
			continue;
		m->p->local[out->id].over = over;
		m->gone[over->id] = true;
	}
}

static void fill_overs(struct memory *m)
{
	struct graph *g = m->p->g;
	struct arena *a = arena_new();

	for (int i = 0; i < g->nodes.n; i++)
		if (!op_is_leaf(g->nodes.at[i]->op))
			fill_over(m, a, g->nodes.at[i], i);
	arena_free(a);
}

/* ---- offsets ---- */

static int64_t *place_of_value(struct memory *m, const struct value *v, int c)
{
	struct local *own = &m->p->local[v->id];

	if (own->at == NULL) {
		own->at = NEW_N(m->p->arena, int64_t, m->p->nclasses);
		for (int i = 0; i < m->p->nclasses; i++)
			own->at[i] = -1;
	}
	return &own->at[c];
}

static void take(struct memory *m, struct heap *h, const struct node *n, int c)
{
	for (int k = 0; k < n->nout; k++) {
		const struct value *v = n->out[k], *root = m->root[v->id];
		const struct value *over = m->p->local[v->id].over;
		int64_t *at = place_of_value(m, v, c);

		if (!class_holds(m->p, c, v))
			continue;
		if (root != v)
			*at = m->p->local[root->id].at[c];
		else if (over != NULL)
			*at = m->p->local[over->id].at[c];
		else
			*at = heap_take(h, m->p->local[v->id].bytes);
	}
}

static void leave(struct memory *m, struct heap *h, const struct value *v,
		  int c, int now)
{
	const struct value *root = m->root[v->id];
	const struct local *own = &m->p->local[root->id];

	if (m->last[root->id] != now || m->gone[root->id] ||
	    !class_holds(m->p, c, v))
		return;
	heap_leave(h, own->at[c], own->bytes);
}

/* Whether operand K of N has the bytes of an earlier one of N. */
static bool repeated(const struct memory *m, const struct node *n, int k)
{
	for (int i = 0; i < k; i++)
		if (m->root[n->in[i]->id] == m->root[n->in[k]->id])
			return true;
	return false;
}

static bool is_input_root(const struct memory *m, const struct node *n,
			  const struct value *v)
{
	for (int k = 0; k < n->nin; k++)
		if (m->root[n->in[k]->id] == m->root[v->id])
			return true;
	return false;
}

static void place_class(struct memory *m, int c)
{
	struct graph *g = m->p->g;
	struct heap h = {.arena = m->p->arena};

	for (int i = 0; i < g->nodes.n; i++)
		if (op_is_leaf(g->nodes.at[i]->op))
			take(m, &h, g->nodes.at[i], c);
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (op_is_leaf(n->op))
			continue;
		take(m, &h, n, c);
		for (int k = 0; k < n->nin; k++)
			if (!repeated(m, n, k))
				leave(m, &h, n->in[k], c, i);
		for (int k = 0; k < n->nout; k++)
			if (!is_input_root(m, n, n->out[k]))
				leave(m, &h, n->out[k], c, i);
	}
	m->p->arena_bytes[c] = h.peak > 0 ? h.peak : ALIGN;
}

/* ---- what a step runs ---- */

static void count_calls(struct program *p)
{
	for (int i = 0; i < p->g->nodes.n; i++) {
		const struct node *n = p->g->nodes.at[i];
		enum kernel_kind kind = op_info(n->op)->kernel;

		if (n->op == OP_move)
			p->collectives +=
				move_traffic(n->in[0]->type, n->in[0]->dist,
					     n->out[0]->dist)
					.total > 0;
		else if (kind != K_NONE && kind != K_VIEW)
			p->kernels++;
	}
}

void pass_memory(struct program *p)
{
	int n = p->g->values.n;
	struct memory m = {
		.p = p,
		.root = NEW_N(p->arena, const struct value *, n),
		.last = NEW_N(p->arena, int, n),
		.updated = NEW_N(p->arena, bool, n),
		.ends = NEW_N(p->arena, bool, n),
		.gone = NEW_N(p->arena, bool, n),
		.read = NEW_N(p->arena, int, n),
		.state = NEW_N(p->arena, const struct value *, n),
	};

	memset(m.last, NEVER, sizeof(int) * (size_t)n);
	memset(m.read, NEVER, sizeof(int) * (size_t)n);
	fill_ends(&m);
	fill_last(&m);
	fill_overs(&m);
	p->arena_bytes = NEW_N(p->arena, int64_t, p->nclasses);
	for (int c = 0; c < p->nclasses; c++)
		place_class(&m, c);
	count_calls(p);
}
