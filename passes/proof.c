/*
 * proof.c: that communication is matched, proved on what ranks really run:
 * for each rank class the list of its moves, in order, with the buffers that
 * they read and write. The pass looks at what the passes left; code generation
 * asks again about the calls that it emits.
 *
 * At a move a rank waits for the ranks that it reads and for those that read
 * it. All classes are run side by side: a move is over once every class that
 * takes part has come to it, and then these go on. If all lists end, no wait
 * is for ever. That what is read is what is sent, and all of it, is proved for
 * each pattern of a move (proof_reads.c).
 *
 * A move returns when all peers have read, so what follows it may overwrite
 * its source. Then two things are left to prove: that a move does not write
 * where it reads, unless it is one of those that may, and that at each move
 * the source still has its value, and so has the source of each slice that is
 * read in place. The step is run over a map of the arena that knows who wrote
 * last.
 *
 * All this takes time linear in the lists, but for the map's logarithm.
 */
#include <stdlib.h>

#include "passes/passes.h"

/* ---- the lists ---- */

struct comm_lists *comm_lists_new(struct arena *a, const struct program *p)
{
	struct comm_lists *l = NEW(a, struct comm_lists);

	l->of = arena_alloc(a, sizeof *l->of * (size_t)p->nclasses);
	return l;
}

struct comm_lists *comm_lists_of(struct arena *a, const struct program *p)
{
	struct comm_lists *l = comm_lists_new(a, p);
	int id = 0;

	for (int i = 0; i < p->g->nodes.n; i++) {
		const struct node *n = p->g->nodes.at[i];

		if (!move_runs(p, n))
			continue;
		for (int c = 0; c < p->nclasses; c++)
			if (class_runs(p, c, n))
				comm_add(a, l, p, c, id, n);
		id++;
	}
	return l;
}

void comm_add(struct arena *a, struct comm_lists *l, const struct program *p,
	      int class, int id, const struct node *n)
{
	const struct local *from = &p->local[n->in[0]->id];
	const struct local *to = &p->local[n->out[0]->id];

	PUSH(a, l->of[class],
	     (struct comm){id, n, from->at ? from->at[class] : -1,
			   to->at ? to->at[class] : -1});
}

/* ---- the state of a proof ---- */

struct proof {
	const struct program *p;
	const struct comm_lists *l;
	struct arena *a;
	const struct node **move; /* by plan order */
	int nmoves;
	signed char *on; /* by placement, class: 1 all of its ranks are in
			  * it, 0 none, -1 some; 2 not known yet */
	const char *why;
	const struct node *at;
};

static bool refuse(struct proof *f, const struct node *n, const char *why)
{
	f->why = why;
	f->at = n;
	return false;
}

static const char *title(const struct node *n)
{
	return text_brief("%s of '%s'",
			  n->boxing ? n->boxing->algorithm : "move",
			  n->boxing ? n->boxing->value : "a value");
}

/* Whether the ranks of CLASS are in placement PL: by their numbers, not by
 * what localize found. */
static int membership(struct proof *f, const struct placement *pl, int class)
{
	const struct program *p = f->p;
	signed char *on = &f->on[pl->id * p->nclasses];
	bool *in;

	if (on[class] != 2)
		return on[class];
	in = NEW_N(f->a, bool, p->g->world);
	for (int i = 0; i < pl->nranks; i++)
		in[pl->rank[i]] = true;
	for (int r = 0; r < p->g->world; r++) {
		signed char *known = &on[p->class_of[r]];

		if (*known == 2)
			*known = in[r];
		else if (*known != (signed char)in[r])
			*known = -1;
	}
	return on[class];
}

static bool takes_part(struct proof *f, const struct node *n, int class)
{
	return membership(f, n->in[0]->dist.on, class) ||
	       membership(f, n->out[0]->dist.on, class);
}

static bool start(struct proof *f)
{
	const struct graph *g = f->p->g;
	size_t n = (size_t)g->placements.n * (size_t)f->p->nclasses;

	f->move = NEW_N(f->a, const struct node *, g->nodes.n + 1);
	for (int i = 0; i < g->nodes.n; i++)
		if (move_runs(f->p, g->nodes.at[i]))
			f->move[f->nmoves++] = g->nodes.at[i];
	f->on = NEW_N(f->a, signed char, n + 1);
	for (size_t i = 0; i < n; i++)
		f->on[i] = 2;
	for (int i = 0; i < g->placements.n; i++)
		for (int c = 0; c < f->p->nclasses; c++)
			if (membership(f, g->placements.at[i], c) < 0)
				return refuse(f, NULL,
					      "ranks of one class are on other "
					      "placements");
	return true;
}

/* ---- the classes side by side ---- */

struct meeting {
	int wanted, come; /* classes */
	int *who;         /* that have come */
};

struct run {
	struct proof *f;
	struct meeting *at; /* by plan order */
	int *next;          /* by class: place in its list */
	LIST(int) ready;    /* moves at which all have come */
};

static const struct comm *head(const struct run *r, int class)
{
	return r->next[class] < r->f->l->of[class].n
		       ? &r->f->l->of[class].at[r->next[class]]
		       : NULL;
}

/* CLASS has come to the next move of its list. */
static bool arrive(struct run *r, int class)
{
	const struct comm *c = head(r, class);
	struct meeting *m;

	if (!c)
		return true;
	if (c->id < 0 || c->id >= r->f->nmoves)
		return refuse(r->f, c->n, "a move that the plan does not have");
	m = &r->at[c->id];
	if (!takes_part(r->f, r->f->move[c->id], class))
		return refuse(
			r->f, r->f->move[c->id],
			text_brief("extra communication: rank %d has it, but "
				   "takes no part",
				   r->f->p->class_rank[class]));
	if (m->come == m->wanted)
		return refuse(r->f, r->f->move[c->id],
			      text_brief("extra communication: rank %d has it "
					 "twice",
					 r->f->p->class_rank[class]));
	m->who[m->come++] = class;
	if (m->come == m->wanted)
		PUSH(r->f->a, r->ready, c->id);
	return true;
}

static bool depart(struct run *r, const struct meeting *m)
{
	for (int i = 0; i < m->come; i++) {
		r->next[m->who[i]]++;
		if (!arrive(r, m->who[i]))
			return false;
	}
	return true;
}

static int times_in_list(const struct run *r, int class, int id)
{
	int n = 0;

	for (int i = 0; i < r->f->l->of[class].n; i++)
		n += r->f->l->of[class].at[i].id == id;
	return n;
}

/* Why nobody goes on: CLASS waits at a move that another class lacks, or
 * stands elsewhere. */
static bool explain(struct run *r, int class)
{
	struct proof *f = r->f;
	const struct comm *c = head(r, class);
	int rank = f->p->class_rank[class];

	for (int other = 0; other < f->p->nclasses; other++) {
		const struct comm *d = head(r, other);
		int peer = f->p->class_rank[other];

		if (!takes_part(f, f->move[c->id], other) ||
		    (d && d->id == c->id))
			continue;
		if (!times_in_list(r, other, c->id))
			return refuse(f, f->move[c->id],
				      text_brief("missing communication: rank "
						 "%d lacks it, rank %d waits",
						 peer, rank));
		return refuse(
			f, f->move[c->id],
			text_brief("deadlock: rank %d waits here, rank %d at "
				   "%s",
				   rank, peer,
				   d ? title(f->move[d->id]) : "the end"));
	}
	return refuse(f, f->move[c->id], "deadlock");
}

/* A move that all classes lack is no deadlock, but its value is not there. */
static bool all_met(struct run *r)
{
	for (int c = 0; c < r->f->p->nclasses; c++)
		if (head(r, c))
			return explain(r, c);
	for (int i = 0; i < r->f->nmoves; i++)
		if (r->at[i].come != r->at[i].wanted || !r->at[i].wanted)
			return refuse(r->f, r->f->move[i],
				      "missing communication: no rank has it");
	return true;
}

/* All that takes part in a move meets there; nobody else does. */
static bool run_classes(struct proof *f)
{
	int nclasses = f->p->nclasses;
	struct run r = {.f = f};

	r.at = NEW_N(f->a, struct meeting, f->nmoves + 1);
	r.next = NEW_N(f->a, int, nclasses);
	for (int i = 0; i < f->nmoves; i++) {
		for (int c = 0; c < nclasses; c++)
			r.at[i].wanted += takes_part(f, f->move[i], c);
		r.at[i].who = NEW_N(f->a, int, r.at[i].wanted + 1);
	}
	for (int c = 0; c < nclasses; c++)
		if (!arrive(&r, c))
			return false;
	for (int i = 0; i < r.ready.n; i++)
		if (!depart(&r, &r.at[r.ready.at[i]]))
			return false;
	return all_met(&r);
}

/* Flags of moves count up in the order of the plan; a list that does not
 * would take one for another. */
static bool in_plan_order(struct proof *f)
{
	for (int c = 0; c < f->p->nclasses; c++)
		for (int i = 1; i < f->l->of[c].n; i++) {
			const struct comm *x = &f->l->of[c].at[i - 1];
			const struct comm *y = x + 1;

			if (x->id >= y->id)
				return refuse(
					f, y->n,
					text_brief("swapped communication: "
						   "rank %d has it after %s",
						   f->p->class_rank[c],
						   title(x->n)));
		}
	return true;
}

/* ---- buffers ---- */

static bool overlap(int64_t a, int64_t na, int64_t b, int64_t nb)
{
	return na && nb && a < b + nb && b < a + na;
}

static bool check_buffers(struct proof *f, int class, const struct comm *c)
{
	const struct local *from = &f->p->local[c->n->in[0]->id];
	const struct local *to = &f->p->local[c->n->out[0]->id];
	int rank = f->p->class_rank[class];
	bool reads = membership(f, c->n->in[0]->dist.on, class);
	bool writes = membership(f, c->n->out[0]->dist.on, class);

	if (reads && (c->from_at < 0 || c->from_at != from->at[class]))
		return refuse(
			f, c->n,
			text_brief("wrong buffer: rank %d sends from %lld, "
				   "its value is at %lld",
				   rank, (long long)c->from_at,
				   (long long)from->at[class]));
	if (writes && (c->to_at < 0 || c->to_at != to->at[class]))
		return refuse(f, c->n,
			      text_brief("wrong buffer: rank %d receives at "
					 "%lld, its value is at %lld",
					 rank, (long long)c->to_at,
					 (long long)to->at[class]));
	if (reads && writes &&
	    overlap(c->from_at, from->bytes, c->to_at, to->bytes) &&
	    !(c->from_at == c->to_at && move_in_place(c->n)))
		return refuse(
			f, c->n,
			text_brief("rank %d writes where peers read", rank));
	return true;
}

static const struct value *root_of(const struct program *p,
				   const struct value *v)
{
	const struct value *same = p->local[v->id].same_as;

	return same ? same : v;
}

/* Marks what node N leaves in the arena of CLASS. */
static void write_outputs(const struct program *p, struct owners *o,
			  const struct node *n, int class)
{
	for (int k = 0; k < n->nout; k++) {
		const struct value *v = n->out[k];
		const struct local *own = &p->local[v->id];

		if (root_of(p, v) == v && class_holds(p, class, v) && own->at)
			owners_set(o, own->at[class], own->bytes, v->id);
	}
}

static bool reads_whole(struct proof *f, struct owners *o, const struct comm *c,
			int class)
{
	const struct value *v = root_of(f->p, c->n->in[0]);

	if (!class_holds(f->p, class, v) ||
	    owners_have(o, c->from_at, f->p->local[v->id].bytes, v->id))
		return true;
	return refuse(f, c->n,
		      text_brief("rank %d sends what has been overwritten",
				 f->p->class_rank[class]));
}

/* Whether what N reads of slices in place is still there. */
static bool reads_slices(struct proof *f, struct owners *o,
			 const struct node *n, int class)
{
	for (int i = 0; i < n->nin; i++) {
		const struct local *own = &f->p->local[n->in[i]->id];
		const struct value *v = root_of(f->p, n->in[i]);

		if (own->slice_of == NULL || !class_holds(f->p, class, v) ||
		    owners_have(o, own->at[class], f->p->local[v->id].bytes,
				v->id))
			continue;
		return refuse(f, n,
			      text_brief("rank %d reads a slice of what has "
					 "been overwritten",
					 f->p->class_rank[class]));
	}
	return true;
}

/* The step of one class over its arena. The list is in plan order, and so are
 * the nodes. */
static bool run_buffers(struct proof *f, int class)
{
	const struct graph *g = f->p->g;
	const struct comm *c = f->l->of[class].at;
	const struct comm *end = c + f->l->of[class].n;
	struct owners *o = owners_new(f->a, f->p, class);

	for (int i = 0; i < g->nodes.n; i++)
		if (op_info(g->nodes.at[i]->op)->kernel == K_NONE)
			write_outputs(f->p, o, g->nodes.at[i], class);
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op == OP_move && c < end && c->n == n) {
			if (!check_buffers(f, class, c) ||
			    !reads_whole(f, o, c, class))
				return false;
			c++;
		}
		if (!reads_slices(f, o, n, class))
			return false;
		if (op_info(n->op)->kernel != K_NONE)
			write_outputs(f->p, o, n, class);
	}
	return c == end || refuse(f, c->n, "it is in no order of the plan");
}

/* ---- patterns ---- */

/* Patterns are proved once. */
struct pattern {
	int64_t dtype, rank, d[MAX_RANK];
	Dist from, to;
};

static bool prove_pattern(struct proof *f, struct bytemap *known,
			  const struct node *n)
{
	Type t = n->in[0]->type;
	struct pattern key = {.dtype = t.dtype,
			      .rank = t.shape.rank,
			      .from = n->in[0]->dist,
			      .to = n->out[0]->dist};
	const char *why;
	void **slot;

	for (int i = 0; i < t.shape.rank; i++)
		key.d[i] = t.shape.d[i];
	slot = bytemap_at(f->a, known, &key, sizeof key);
	if (*slot)
		return true;
	*slot = known;
	why = reads_why_not(t, key.from, key.to);
	return !why || refuse(f, n, why);
}

static bool prove(struct proof *f)
{
	struct bytemap known = {0};

	if (!start(f))
		return false;
	for (int i = 0; i < f->nmoves; i++)
		if (!prove_pattern(f, &known, f->move[i]))
			return false;
	if (!run_classes(f) || !in_plan_order(f))
		return false;
	for (int c = 0; c < f->p->nclasses; c++)
		if (!run_buffers(f, c))
			return false;
	return true;
}

const char *comm_why_not(const struct program *p, const struct comm_lists *l,
			 const struct node **at)
{
	struct proof f = {.p = p, .l = l, .a = arena_new()};

	prove(&f);
	*at = f.at;
	arena_free(f.a);
	return f.why;
}

const char *proof_why_not(const struct program *p, const struct node **at)
{
	struct arena *a = arena_new();
	const char *why = comm_why_not(p, comm_lists_of(a, p), at);

	arena_free(a);
	return why;
}

void proof_demand(const struct program *p, const struct comm_lists *l)
{
	const struct node *n = NULL;
	const char *why = comm_why_not(p, l, &n);
	struct place at;

	if (!why)
		return;
	if (!n)
		bug("communication: %s", why);
	at = place_of(n->span);
	bug("%s:%d: node %d: %s: %s", at.path, at.line, n->id, title(n), why);
}

void pass_proof(struct program *p)
{
	struct arena *a = arena_new();

	proof_demand(p, comm_lists_of(a, p));
	arena_free(a);
}
