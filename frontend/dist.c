/*
 * dist.c: placements and distributions as a program spells them.
 */
#include <string.h>

#include "frontend/lower.h"

#define MAX_RANKS (1 << 20)

/* ---- placements ---- */

/* The ranks of a placement, with the extents of nested lists. */
struct ranks {
	struct placement *p;
	LIST(int) rank;
	int extent[MAX_MESH]; /* 0: not known yet */
	int depth;            /* of the lists; 0: not known yet */
	Span at;
};

static bool add_rank(struct low *l, struct ranks *r, int64_t i)
{
	if (i < 0 || i >= MAX_RANKS) {
		fail(l, r->at, "rank %lld is not in 0..%d", (long long)i,
		     MAX_RANKS);
		return false;
	}
	PUSH(l->a, r->rank, (int)i);
	return true;
}

static int64_t items(Val v)
{
	int64_t n = 0;

	if (v.kind == V_RANGE)
		return v.range->n;
	for (int64_t i = 0; i < v.list->n; i++)
		n += v.list->at[i].kind == V_RANGE ? v.list->at[i].range->n : 1;
	return n;
}

static bool add_items(struct low *l, struct ranks *r, Val v, int level);

static bool add_item(struct low *l, struct ranks *r, Val v, int level)
{
	int64_t i;

	if (v.kind == V_RANGE) /* its ranks stand side by side */
		return add_items(l, r, v, level - 1);
	if (v.kind == V_LIST)
		return add_items(l, r, v, level);
	if (r->depth && r->depth != level) {
		fail(l, r->at, "the mesh has ranks beside lists of ranks");
		return false;
	}
	r->depth = level;
	return want_int(l, v, r->at, "a rank", &i) && add_rank(l, r, i);
}

/* All of V, which is a list at nesting LEVEL. */
static bool add_items(struct low *l, struct ranks *r, Val v, int level)
{
	int64_t n = items(v);

	if (n > MAX_RANKS) {
		fail(l, r->at, "a mesh has at most %d ranks, found %lld",
		     MAX_RANKS, (long long)n);
		return false;
	}
	if (level == MAX_MESH || n == 0) {
		fail(l, r->at,
		     n ? "a mesh has 1 to %d axes"
		       : "a mesh has at least one rank",
		     MAX_MESH);
		return false;
	}
	if (v.kind == V_LIST) {
		if (r->extent[level] && r->extent[level] != n) {
			fail(l, r->at,
			     "the rows of a mesh have equal lengths, found "
			     "%d and %d",
			     r->extent[level], (int)n);
			return false;
		}
		r->extent[level] = (int)n;
	}
	for (int64_t i = 0; i < val_count(v); i++)
		if (!add_item(l, r, val_nth(v, i), level + 1))
			return false;
	return true;
}

static bool check_unique(struct low *l, const struct ranks *r)
{
	struct arena *scratch = arena_new();
	bool *seen = NEW_N(scratch, bool, MAX_RANKS);
	int twice = -1;

	for (int i = 0; i < r->rank.n && twice < 0; i++) {
		if (seen[r->rank.at[i]])
			twice = r->rank.at[i];
		seen[r->rank.at[i]] = true;
	}
	arena_free(scratch);
	if (twice >= 0)
		fail(l, r->at, "rank %d stands twice in placement '%s'", twice,
		     r->p->name);
	return twice < 0;
}

/* The extents after `as [..]`. */
static bool reshape_mesh(struct low *l, struct ranks *r, const struct expr *as)
{
	const int64_t *d;
	int n;
	int64_t count = 1;

	if (!want_ints(l, eval(l, as), as->span, "the extent of a mesh axis",
		       &d, &n))
		return false;
	if (n < 1 || n > MAX_MESH) {
		fail(l, as->span, "a mesh has 1 to %d axes, found %d", MAX_MESH,
		     n);
		return false;
	}
	for (int i = 0; i < n; i++) {
		if (d[i] < 1 || d[i] > MAX_RANKS) {
			fail(l, as->span, "a mesh axis of extent %lld",
			     (long long)d[i]);
			return false;
		}
		count *= d[i];
		r->extent[i] = (int)d[i];
		if (count > MAX_RANKS)
			break;
	}
	r->depth = n;
	if (count == r->rank.n)
		return true;
	fail(l, as->span, "%d ranks do not fill a mesh of %lld", r->rank.n,
	     (long long)count);
	return false;
}

static bool name_axes(struct low *l, struct placement *p, const struct stmt *s)
{
	const struct expr *e;

	if (!s->list)
		return true;
	if (s->list->l.n != p->naxes) {
		fail(l, s->name_at, "%d axis names for a mesh of %d axes",
		     s->list->l.n, p->naxes);
		return false;
	}
	for (int i = 0; i < p->naxes; i++) {
		e = s->list->l.at[i];
		if (e->kind != E_NAME) {
			fail(l, e->span, "expected the name of a mesh axis");
			return false;
		}
		for (int k = 0; k < i; k++)
			if (p->axis[k] == e->name) {
				fail(l, e->span, "two axes are named '%s'",
				     e->name);
				return false;
			}
		p->axis[i] = e->name;
	}
	return true;
}

static bool eval_device(struct low *l, struct placement *p,
			const struct expr *e)
{
	Name name = e->kind == E_INDEX ? e->kid[0]->name : NULL;

	if (!name)
		return false;
	if (!strcmp(name, "cpu") || !strcmp(name, "cuda")) {
		p->device = name[1] == 'p' ? DEV_CPU : DEV_CUDA;
		return true;
	}
	fail(l, e->kid[0]->span,
	     "unknown device kind '%s', expected cpu or "
	     "cuda",
	     name);
	return false;
}

static bool eval_ranks(struct low *l, struct ranks *r, const struct stmt *s)
{
	struct vals list = {.n = s->e->nkid - 1};

	list.at = NEW_N(l->a, Val, list.n);
	for (int i = 0; i < list.n; i++) {
		list.at[i] = eval(l, s->e->kid[i + 1]);
		if (list.at[i].kind == V_BAD)
			return false;
	}
	if (list.n == 1 && list.at[0].kind == V_LIST &&
	    s->e->kid[1]->kind != E_LIST) /* cpu[ranks] */
		list = *list.at[0].list;
	if (!add_items(l, r, (Val){V_LIST, {.list = &list}}, 0))
		return false;
	if (s->as)
		return reshape_mesh(l, r, s->as);
	return true;
}

static bool eval_placement(struct low *l, struct placement *p,
			   const struct stmt *s)
{
	struct ranks r = {.p = p, .at = s->e->span};

	if (!eval_device(l, p, s->e) || !eval_ranks(l, &r, s) ||
	    !check_unique(l, &r))
		return false;
	p->naxes = r.depth;
	memcpy(p->extent, r.extent, sizeof p->extent);
	p->nranks = r.rank.n;
	p->rank = r.rank.at;
	return name_axes(l, p, s);
}

void lower_placement(struct low *l, const struct stmt *s)
{
	struct placement *p = NEW(l->a, struct placement);
	Val v = val_bad();
	struct var *old = map_get(&l->f.unit->scope->names, s->name);

	p->name = s->name;
	p->span = s->name_at;
	if (old && old->v.kind == V_PLACEMENT) {
		fail(l, s->name_at, "a second placement '%s'", s->name);
		diag_note(old->at, "the first one is here");
		return;
	}
	if (eval_placement(l, p, s)) {
		v = (Val){V_PLACEMENT, {.placement = p}};
		PUSH(l->a, l->f.unit->placements, p);
	}
	scope_bind(l, l->f.scope, s->name, v, s->name_at);
}

const struct placement *placed(struct low *l, const struct placement *p)
{
	const struct placement *used;

	for (int i = 0; i < l->placed.n; i++)
		if (l->placed.at[i].decl == p || l->placed.at[i].used == p)
			return l->placed.at[i].used;
	used = graph_placement(l->g, *p);
	list_room(l->a, (void **)&l->placed.at, l->placed.n, &l->placed.room,
		  sizeof *l->placed.at);
	l->placed.at[l->placed.n].decl = p;
	l->placed.at[l->placed.n++].used = used;
	return used;
}

/* ---- terms ---- */

static const struct spelling {
	const char *word;
	enum sbp_kind kind;
	enum red red;
} spellings[] = {
	{"B", SBP_B, RED_SUM},           {"broadcast", SBP_B, RED_SUM},
	{"S", SBP_S, RED_SUM},           {"split", SBP_S, RED_SUM},
	{"P", SBP_P, RED_SUM},           {"partial_sum", SBP_P, RED_SUM},
	{"partial_max", SBP_P, RED_MAX}, {"partial_min", SBP_P, RED_MIN},
	{"_", SBP_ANY, RED_SUM},
};

static const struct spelling *spelling_of(const struct expr *e)
{
	if (e->kind != E_NAME && e->kind != E_CALL)
		return NULL;
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		if (!strcmp(e->name, spellings[i].word))
			return &spellings[i];
	return NULL;
}

static bool is_term(const struct expr *e)
{
	const struct spelling *s;

	if (e->kind == E_KEY)
		e = e->kid[0];
	s = spelling_of(e);
	return s && (e->kind == E_CALL) ==
			    (s->kind == SBP_S ||
			     (e->kind == E_CALL && !strcmp(s->word, "P")));
}

bool is_term_list(const struct expr *e)
{
	if (e->kind != E_GROUP || !e->nkid)
		return false;
	for (int i = 0; i < e->nkid; i++)
		if (!is_term(e->kid[i]))
			return false;
	return true;
}

/* The word inside P(...). */
static bool reduction(const struct expr *e, enum red *red)
{
	static const char *const words[] = {"sum", "max", "min"};

	for (int i = 0; e->kind == E_NAME && i < 3; i++)
		if (!strcmp(e->name, words[i])) {
			*red = (enum red)i;
			return true;
		}
	return false;
}

static bool term_argument(struct low *l, const struct expr *e,
			  const struct spelling *s, struct term *t)
{
	const struct expr *arg = e->nkid == 1 ? e->kid[0] : NULL;

	if (s->kind == SBP_S) {
		if (arg && arg->kind != E_KEY)
			return want_int(l, eval(l, arg), arg->span,
					"the axis of S", &t->i);
		fail(l, e->span, "S takes one tensor axis, as in S(0)");
		return false;
	}
	if (!strcmp(s->word, "P") && arg) {
		if (reduction(arg, &t->red))
			return true;
		fail(l, arg->span, "a partial value is a sum, max or min");
		return false;
	}
	fail(l, e->span, "'%s' takes no argument", s->word);
	return false;
}

static bool eval_term(struct low *l, const struct expr *e, struct term *t)
{
	const struct spelling *s;

	t->at = e->span;
	if (e->kind == E_KEY) {
		t->axis = e->name;
		e = e->kid[0];
	}
	s = spelling_of(e);
	if (!s) {
		hint(l, "the terms are B, S(axis), P, P(max), P(min) and _");
		fail(l, e->span, "expected a term of a distribution");
		return false;
	}
	t->kind = s->kind;
	t->red = s->red;
	if (e->kind == E_CALL)
		return term_argument(l, e, s, t);
	if (s->kind == SBP_S) {
		fail(l, e->span, "S takes one tensor axis, as in S(0)");
		return false;
	}
	return true;
}

static const struct request *eval_term_list(struct low *l,
					    const struct placement *on,
					    struct expr *const *kid, int n,
					    Span at)
{
	struct request *r = NEW(l->a, struct request);

	r->on = on;
	if (n < 1 || n > MAX_MESH) {
		fail(l, at,
		     "a distribution has 1 to %d terms, one for each "
		     "mesh axis; found %d",
		     MAX_MESH, n);
		return NULL;
	}
	for (r->n = 0; r->n < n; r->n++) {
		struct term *t = &r->term[r->n];

		if (!eval_term(l, kid[r->n], t))
			return NULL;
		if (r->n && (t->axis != NULL) != r->named) {
			fail(l, t->at,
			     "terms are all by axis name or all by "
			     "position");
			return NULL;
		}
		r->named = t->axis != NULL;
	}
	return r;
}

Val eval_terms(struct low *l, const struct expr *e)
{
	const struct request *r =
		eval_term_list(l, NULL, e->kid, e->nkid, e->span);

	return r ? (Val){V_DIST, {.request = r}} : val_bad();
}

static const struct request *named_request(struct low *l, const struct expr *e)
{
	Val v;
	struct request *r;

	if (spelling_of(e) && !scope_find(l->f.scope, e->name)) {
		hint(l, "write on (%s)", e->name);
		fail(l, e->span, "terms stand in parentheses");
		return NULL;
	}
	v = scope_value(l, e->name, e->span);
	if (v.kind == V_DIST)
		return v.request;
	if (v.kind == V_PLACEMENT) {
		r = NEW(l->a, struct request);
		r->on = v.placement;
		return r;
	}
	if (v.kind != V_BAD)
		fail(l, e->span,
		     "'%s' is %s, expected a placement or a "
		     "distribution",
		     e->name, val_what(v));
	return NULL;
}

static const struct request *placed_request(struct low *l, const struct expr *e)
{
	Val v = scope_value(l, e->name, e->name_at);

	if (v.kind == V_PLACEMENT)
		return eval_term_list(l, v.placement, e->kid, e->nkid, e->span);
	if (v.kind != V_BAD)
		fail(l, e->name_at, "'%s' is %s, expected a placement", e->name,
		     val_what(v));
	return NULL;
}

const struct request *eval_request(struct low *l, const struct expr *e)
{
	if (e->kind == E_GROUP && e->nkid == 1 && e->kid[0]->kind == E_NAME &&
	    !is_term(e->kid[0]))
		e = e->kid[0];
	if (e->kind == E_NAME)
		return named_request(l, e);
	if (e->kind == E_CALL)
		return placed_request(l, e);
	if (e->kind == E_GROUP)
		return eval_term_list(l, NULL, e->kid, e->nkid, e->span);
	return NULL;
}

/* ---- what a request means for a tensor ---- */

static int axis_index(struct low *l, const struct placement *on,
		      const struct term *t)
{
	struct names near = {0};

	for (int i = 0; i < on->naxes; i++) {
		if (!on->axis[i])
			continue;
		if (on->axis[i] == t->axis)
			return i;
		PUSH(l->a, near.l, on->axis[i]);
	}
	hint_near(l, t->axis, &near);
	fail(l, t->at, "placement '%s' has no axis '%s'", on->name, t->axis);
	return -1;
}

static bool term_of(struct low *l, const struct term *t, Type type, Sbp *out)
{
	int64_t i = t->i < 0 ? t->i + type.shape.rank : t->i;

	*out = (Sbp){(uint8_t)t->kind, 0, (uint8_t)t->red};
	if (t->kind != SBP_S)
		return true;
	if (i < 0 || i >= type.shape.rank) {
		fail(l, t->at, "S(%lld) of %s, which has %d %s",
		     (long long)t->i, type_text(type), type.shape.rank,
		     type.shape.rank == 1 ? "axis" : "axes");
		return false;
	}
	out->axis = (int8_t)i;
	return true;
}

static bool terms_of(struct low *l, const struct request *r, Type type,
		     Dist *out)
{
	for (int i = 0; i < r->n; i++) {
		int k = r->named ? axis_index(l, out->on, &r->term[i]) : i;
		Sbp term;

		if (k < 0 || !term_of(l, &r->term[i], type, &term))
			return false;
		for (int j = 0; r->named && j < i; j++)
			if (r->term[j].axis == r->term[i].axis) {
				fail(l, r->term[i].at, "axis '%s' twice",
				     r->term[i].axis);
				return false;
			}
		out->t[k] = term;
	}
	return true;
}

bool resolve(struct low *l, const struct request *r, const struct placement *on,
	     Type t, Span at, Dist *out)
{
	const struct placement *p = r->on ? r->on : on;
	const char *why;

	if (!p) {
		fail(l, at, "no placement here");
		return false;
	}
	*out = dist_on(placed(l, p), r->named ? sbp_b() : sbp_any());
	if (r->n && !r->named && r->n != p->naxes) {
		fail(l, at, "%d %s for placement '%s', whose mesh has %d %s",
		     r->n, r->n == 1 ? "term" : "terms", p->name, p->naxes,
		     p->naxes == 1 ? "axis" : "axes");
		return false;
	}
	if (!terms_of(l, r, t, out))
		return false;
	why = dist_why_not(*out, t);
	if (why)
		fail(l, at, "%s cannot lie as %s: %s", type_text(t),
		     dist_terms(*out), why);
	return !why;
}
