/*
 * scope.c: names: what they are bound to, what is near a wrong one, and the
 * full names of params.
 */
#include <string.h>

#include "frontend/lower.h"

/* ---- maps ---- */

static int *slot_of(const struct map *m, Name key)
{
	uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
	size_t mask = (size_t)m->nslots - 1, i = (size_t)(h >> 20) & mask;

	while (m->slot[i] && m->l.at[m->slot[i] - 1].key != key)
		i = (i + 1) & mask;
	return &m->slot[i];
}

void *map_get(const struct map *m, Name key)
{
	int i = m->nslots ? *slot_of(m, key) : 0;

	return i ? m->l.at[i - 1].p : NULL;
}

static void grow(struct arena *a, struct map *m)
{
	m->nslots = m->nslots ? 2 * m->nslots : 8;
	m->slot = NEW_N(a, int, m->nslots);
	for (int i = 0; i < m->l.n; i++)
		*slot_of(m, m->l.at[i].key) = i + 1;
}

void map_set(struct arena *a, struct map *m, Name key, void *p)
{
	int *slot;

	if (2 * m->l.n >= m->nslots)
		grow(a, m);
	slot = slot_of(m, key);
	if (*slot) {
		m->l.at[*slot - 1].p = p;
		return;
	}
	PUSH(a, m->l, (struct entry){key, p});
	*slot = m->l.n;
}

/* ---- scopes ---- */

struct scope *scope_new(struct low *l, struct scope *up)
{
	struct scope *s = NEW(l->a, struct scope);

	s->up = up;
	return s;
}

struct var *scope_find(const struct scope *s, Name name)
{
	struct var *v = NULL;

	for (; s && !v; s = s->up)
		v = map_get(&s->names, name);
	return v;
}

void scope_bind(struct low *l, struct scope *s, Name name, Val v, Span at)
{
	struct var *var = map_get(&s->names, name);

	if (!var) {
		var = NEW(l->a, struct var);
		map_set(l->a, &s->names, name, var);
	}
	var->v = v;
	var->at = at;
}

void scope_assign(struct low *l, Name name, Val v, Span at)
{
	struct scope *s;

	for (s = l->f.scope; s; s = s->up) {
		if (s->file && (l->f.def || s != l->f.unit->scope))
			break;
		if (map_get(&s->names, name)) {
			scope_bind(l, s, name, v, at);
			return;
		}
	}
	scope_bind(l, l->f.scope, name, v, at);
}

/* Names that every program knows: dtypes and `none`. */
static bool built_in(Name name, Val *v)
{
	enum dtype t;

	if (!strcmp(name, "none")) {
		*v = (Val){.kind = V_NONE};
		return true;
	}
	if (!dtype_read(name, &t))
		return false;
	*v = (Val){V_DTYPE, {.i = t}};
	return true;
}

void names_of_map(struct low *l, struct names *n, const struct map *m)
{
	for (int i = 0; i < m->l.n; i++)
		PUSH(l->a, n->l, m->l.at[i].key);
}

void hint_near(struct low *l, Name wanted, const struct names *n)
{
	Name near = name_nearest(wanted, n->l.at, n->l.n);

	if (near)
		hint(l, "did you mean '%s'?", near);
}

Val scope_value(struct low *l, Name name, Span at)
{
	struct var *var = scope_find(l->f.scope, name);
	struct names near = {0};
	Val v;

	if (var)
		return var->v;
	if (built_in(name, &v))
		return v;
	for (const struct scope *s = l->f.scope; s; s = s->up)
		names_of_map(l, &near, &s->names);
	for (int t = 0; t < DT_N; t++)
		PUSH(l->a, near.l, name_of(dtype_name((enum dtype)t)));
	hint_near(l, name, &near);
	if (is_function(l, name))
		hint(l, "'%s' is a function; functions are called: %s(...)",
		     name, name);
	return fail(l, at, "unknown name '%s'", name);
}

/* ---- full names ---- */

struct taken {
	Span at;
	int next; /* the number to try for NAME_n */
};

const char *full_name(struct low *l, const char *name)
{
	const char *prefix = l->f.naming.prefix;

	if (!*prefix || !*name)
		return name_of(*prefix ? prefix : name);
	return name_of(arena_text(l->a, "%s.%s", prefix, name));
}

static void take(struct low *l, Name full, Span at)
{
	struct taken *t = NEW(l->a, struct taken);

	t->at = at;
	t->next = 1;
	map_set(l->a, &l->taken, full, t);
}

bool take_name(struct low *l, Name full, Span at)
{
	const struct taken *t = map_get(&l->taken, full);

	if (!t) {
		take(l, full, at);
		return true;
	}
	fail(l, at, "the name '%s' is taken", full);
	diag_note(t->at, "it was given here");
	return false;
}

Name take_free_name(struct low *l, const char *name, Span at)
{
	Name first = full_name(l, name), full = first;
	struct taken *t = map_get(&l->taken, first);

	while (t && map_get(&l->taken, full))
		full = name_of(arena_text(l->a, "%s_%d", first, t->next++));
	take(l, full, at);
	return full;
}
