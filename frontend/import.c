/*
 * import.c: files: reading, importing, and what stands at file level.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/lower.h"

/* ---- paths ---- */

const char *beside(struct low *l, const char *path)
{
	const char *own = l->f.unit->path;
	const char *slash = strrchr(own, '/');

	if (path[0] == '/' || !slash)
		return path;
	return arena_text(l->a, "%.*s/%s", (int)(slash - own), own, path);
}

/* The file that an import names: beside the importing file, else in a
 * directory of -I. */
static const char *find_import(struct low *l, const char *path)
{
	const char *at = beside(l, path);

	for (int i = 0; i < l->o->ninclude && access(at, R_OK); i++)
		at = arena_text(l->a, "%s/%s", l->o->include[i], path);
	return access(at, R_OK) ? beside(l, path) : at;
}

/* One name for a file, however it was reached. */
static Name identity(const char *path)
{
	char full[PATH_MAX];

	return name_of(realpath(path, full) ? full : path);
}

/* ---- declarations ---- */

static void declare_def(struct low *l, struct unit *u, const struct stmt *s)
{
	struct def *d = map_get(&u->defs, s->name);

	if (d) {
		fail(l, s->name_at, "a second def '%s'", s->name);
		diag_note(d->s->name_at, "the first one is here");
		return;
	}
	d = NEW(l->a, struct def);
	d->name = s->name;
	d->s = s;
	d->unit = u;
	map_set(l->a, &u->defs, s->name, d);
	for (int i = 0; s->list && i < s->list->l.n; i++) {
		const struct expr *p = s->list->l.at[i];

		if (p->kind != E_NAME && p->kind != E_KEY) {
			fail(l, p->span, "expected the name of a parameter");
			d->failed = true;
			continue;
		}
		for (int k = 0; k < i; k++)
			if (s->list->l.at[k]->name == p->name)
				fail(l, p->span, "a second parameter '%s'",
				     p->name);
	}
}

static void declare_model(struct low *l, struct unit *u, struct stmt *s)
{
	struct stmt *old = map_get(&u->models, s->name);

	if (!old) {
		map_set(l->a, &u->models, s->name, s);
		return;
	}
	fail(l, s->name_at, "a second model '%s'", s->name);
	diag_note(old->name_at, "the first one is here");
}

/* ---- importing ---- */

static void bring(struct low *l, struct unit *u, struct unit *from, Name name,
		  Span at)
{
	struct unit *other = map_get(&u->from, name);

	if (other && other != from)
		fail(l, at, "'%s' comes from two imports, '%s' and '%s'", name,
		     other->path, from->path);
	map_set(l->a, &u->from, name, from);
}

static void bring_all(struct low *l, struct unit *u, struct unit *from, Span at)
{
	const struct map *m = &from->defs;

	for (int i = 0; i < m->l.n; i++) {
		bring(l, u, from, m->l.at[i].key, at);
		map_set(l->a, &u->imported, m->l.at[i].key, m->l.at[i].p);
	}
	m = &from->scope->names;
	for (int i = 0; i < m->l.n; i++) {
		const struct var *var = m->l.at[i].p;

		if (var->v.kind == V_DATA)
			continue;
		bring(l, u, from, m->l.at[i].key, at);
		scope_bind(l, u->imports, m->l.at[i].key, var->v, var->at);
	}
}

void unit_import(struct low *l, const struct stmt *s)
{
	const char *path = eval_text(l, s->e);
	struct unit *u = l->f.unit, *from;

	if (!path)
		return;
	from = unit_load(l, find_import(l, path), s->e->span);
	if (from)
		bring_all(l, u, from, s->e->span);
	else
		l->torn = true;
}

static struct unit *unit_new(struct low *l, const struct source *s)
{
	struct unit *u = NEW(l->a, struct unit);

	u->path = s->path;
	u->source = s;
	u->imports = scope_new(l, NULL);
	u->scope = scope_new(l, u->imports);
	u->imports->file = u->scope->file = true;
	return u;
}

/* Parses U and runs what stands at its file level. */
static struct unit *unit_run(struct low *l, struct unit *u)
{
	int errors = 0;

	u->loading = true;
	u->tree = parse_file(l->a, u->source, &errors);
	for (int i = 0; u->tree && i < u->tree->l.n; i++) {
		struct stmt *s = u->tree->l.at[i];

		if (s->kind == S_DEF)
			declare_def(l, u, s);
		else if (s->kind == S_MODEL)
			declare_model(l, u, s);
	}
	if (errors)
		l->stop = true;
	else
		lower_file(l, u);
	u->loading = false;
	return u;
}

struct unit *unit_load(struct low *l, const char *path, Span at)
{
	Name id = identity(path);
	struct unit *u = map_get(&l->units, id);
	const struct source *s;

	if (u && u->loading) {
		fail(l, at, "cyclic import of '%s'", path);
		return NULL;
	}
	if (u)
		return u;
	if (++l->imports > MAX_IMPORTS) {
		fail(l, at, "more than %d imports", MAX_IMPORTS);
		return NULL;
	}
	s = source_read(path);
	if (!s) {
		fail(l, at, "cannot read '%s': %s", path, strerror(errno));
		return NULL;
	}
	u = unit_new(l, s);
	u->prelude =
		l->o->prelude && !strcmp(path, l->o->prelude) && !l->prelude;
	map_set(l->a, &l->units, id, u);
	return unit_run(l, u);
}
