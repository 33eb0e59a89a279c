/*
 * model.c: from a path to the graph of one model: file level, the choice of
 * the model, and what can only be known when all of it has been lowered.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/lower.h"

/* ---- file level ---- */

/* The value that -D gives to a top-level let, or NULL. */
static const struct define *defined(struct low *l, Name name)
{
	const struct define *found = NULL;

	for (int i = 0; i < l->o->ndefines && !l->f.unit->prelude; i++)
		if (!strcmp(l->o->defines[i].name, name)) {
			l->defined[i] = true;
			found = &l->o->defines[i];
		}
	return found;
}

static void lower_define(struct low *l, const struct stmt *s,
			 const struct define *d)
{
	const char *path = arena_text(l->a, "-D %s", d->name);
	const struct source *text =
		source_text(path, d->value, strlen(d->value));
	int errors = 0, before = diag_errors();
	struct expr *e = parse_expr(l->a, text, text->base,
				    text->base + text->size, &errors);
	struct stmt let = *s;

	if (e) {
		let.e = e;
		let.span = e->span;
		lower_stmts(l,
			    &(struct stmts){{(struct stmt *[]){&let}, 1, 1}});
	}
	if (diag_errors() > before)
		l->usage = l->stop = true;
}

static void not_here(struct low *l, const struct stmt *s)
{
	if (s->kind == S_ASSIGN)
		hint(l, "let %s = ...", s->list->l.at[0]->name);
	else
		hint(l, "a file holds placement, let, def, model, import, "
			"data and assert");
	fail(l, s->name ? s->name_at : s->span,
	     "the statement stands inside a model or def");
}

static void lower_top(struct low *l, const struct stmt *s)
{
	const struct define *d;

	switch (s->kind) {
	case S_DEF:
	case S_MODEL:
		break;
	case S_PLACEMENT:
		lower_placement(l, s);
		break;
	case S_IMPORT:
		unit_import(l, s);
		break;
	case S_LET:
		d = defined(l, s->name);
		if (d) {
			lower_define(l, s, d);
			break;
		}
		/* fallthrough */
	case S_DATA:
	case S_ASSERT:
		lower_stmts(
			l, &(struct stmts){{(struct stmt *[]){(struct stmt *)s},
					    1, 1}});
		break;
	default:
		not_here(l, s);
	}
}

void lower_file(struct low *l, struct unit *u)
{
	struct frame saved = l->f;

	l->f = (struct frame){.unit = u, .scope = u->scope};
	l->f.naming.prefix = "";
	for (int i = 0; u->tree && i < u->tree->l.n && !l->stop; i++)
		lower_top(l, u->tree->l.at[i]);
	l->f = saved;
}

/* ---- the command line ---- */

static void usage(struct low *l, const char *message)
{
	diag_error((Span){0, 0}, "%s", message);
	l->usage = true;
}

/* The first names of M, as a list for a message. */
static const char *all_names(struct low *l, const struct map *m)
{
	const char *s = "";
	int n = m->l.n < 20 ? m->l.n : 20;

	for (int i = 0; i < n; i++)
		s = arena_text(l->a, "%s%s%s", s, i ? ", " : "",
			       m->l.at[i].key);
	return n < m->l.n ? arena_text(l->a, "%s, ...", s) : s;
}

/* Whether an earlier -D names the same. */
static bool defined_before(const struct front_options *o, int i)
{
	for (int k = 0; k < i; k++)
		if (!strcmp(o->defines[k].name, o->defines[i].name))
			return true;
	return false;
}

static void check_defines(struct low *l)
{
	for (int i = 0; i < l->o->ndefines; i++) {
		struct names near = {0};

		if (l->defined[i] || defined_before(l->o, i))
			continue;
		names_of_map(l, &near, &l->main->scope->names);
		usage(l,
		      arena_text(l->a,
				 "-D %s: the program has no "
				 "top-level let '%s'",
				 l->o->defines[i].name, l->o->defines[i].name));
		hint_near(l, name_of(l->o->defines[i].name), &near);
		if (l->hint)
			diag_hint("%s", l->hint);
		l->hint = NULL;
	}
}

static struct stmt *choose_model(struct low *l)
{
	const struct map *m = &l->main->models;
	struct stmt *s;

	if (l->o->model) {
		s = map_get(m, name_of(l->o->model));
		if (!s)
			usage(l, arena_text(l->a,
					    "--model %s: '%s' has the "
					    "models %s",
					    l->o->model, l->main->path,
					    m->l.n ? all_names(l, m) : "none"));
		return s;
	}
	if (m->l.n == 1)
		return m->l.at[0].p;
	if (m->l.n)
		usage(l, arena_text(l->a,
				    "'%s' has several models: %s; "
				    "--model NAME picks one",
				    l->main->path, all_names(l, m)));
	else
		fail(l, (Span){l->main->source->base, l->main->source->base},
		     "the file has no model");
	return NULL;
}

/* ---- the model ---- */

static const struct placement *named_placement(struct low *l,
					       const struct stmt *s)
{
	const struct request *r = eval_request(l, s->on);

	if (r && (!r->on || r->n)) {
		fail(l, s->on->span, "a model stands on a placement");
		return NULL;
	}
	return r ? r->on : NULL;
}

/* The only placement among the values of SCOPE; counts them all. */
static const struct placement *only_placement(const struct scope *s, int *n)
{
	const struct placement *p = NULL;

	for (int i = 0; i < s->names.l.n; i++) {
		const struct var *var = s->names.l.at[i].p;

		if (var->v.kind != V_PLACEMENT)
			continue;
		p = var->v.placement;
		++*n;
	}
	return p;
}

static const struct placement *model_placement(struct low *l,
					       const struct stmt *s)
{
	const struct placement *p;
	int n = 0;

	if (s->on)
		return named_placement(l, s);
	p = only_placement(l->main->scope, &n);
	if (!n)
		p = only_placement(l->main->imports, &n);
	if (n == 1)
		return p;
	hint(l,
	     n ? "model %s on NAME { ... }"
	       : "placement here = cpu[0], then model %s on here",
	     s->name);
	fail(l, s->name_at,
	     n ? "the file has several placements, and the "
		 "model names none"
	       : "the model has no placement");
	return NULL;
}

static void lower_model(struct low *l, const struct stmt *s)
{
	l->f = (struct frame){.unit = l->main};
	l->f.scope = l->main->scope;
	l->f.naming.prefix = "";
	l->f.naming.open = true;
	l->f.on = model_placement(l, s);
	if (!l->f.on)
		return;
	l->f.scope = scope_new(l, l->main->scope);
	l->g->name = s->name;
	l->g->path = l->main->path;
	l->g->span = s->name_at;
	l->g->on = (struct placement *)placed(l, l->f.on);
	lower_stmts(l, s->body);
}

/* ---- afterwards ---- */

/* The last rule that matches a param or state decides, also if it stands
 * behind its declaration. */
static void apply_rules(struct low *l)
{
	for (int i = 0; i < l->leaves.n; i++) {
		struct leaf *leaf = &l->leaves.at[i];
		struct value *v = leaf->v;
		struct rule_of *last = NULL;
		Dist d;

		for (int k = 0; k < l->rules.n; k++) {
			if (!name_match(l->rules.at[k].pattern, v->name))
				continue;
			l->rules.at[k].used = true;
			last = &l->rules.at[k];
		}
		if (!last || leaf->fixed || last - l->rules.at < leaf->rules)
			continue;
		if (!resolve(l, last->request, v->def->on, v->type, last->at,
			     &d))
			return;
		if (d.on != v->def->on) {
			hint(l, "put the distribute before it");
			fail(l, last->at, "'%s' is in use on '%s' already",
			     v->name, v->def->on->name);
		} else if (dist_has(d, SBP_P)) {
			fail(l, last->at, "a %s cannot be P",
			     op_info(v->def->op)->name);
		}
		v->dist = d;
	}
}

static void warn_rules(struct low *l)
{
	for (int i = 0; i < l->rules.n; i++)
		if (!l->rules.at[i].used)
			diag_warn(l->rules.at[i].pattern_at,
				  "no param or state matches '%s'",
				  l->rules.at[i].pattern);
}

static void check_world(struct low *l)
{
	struct graph *g = l->g;
	struct arena *scratch = arena_new();
	bool *used = NEW_N(scratch, bool, g->world);
	int hole = -1;

	for (int i = 0; i < g->placements.n; i++)
		for (int k = 0; k < g->placements.at[i]->nranks; k++)
			used[g->placements.at[i]->rank[k]] = true;
	for (int i = g->world - 1; i >= 0; i--)
		if (!used[i])
			hole = i;
	arena_free(scratch);
	if (hole < 0)
		return;
	hint(l, "the ranks of all placements together are 0, 1, ... without "
		"a hole");
	fail(l, g->on->span,
	     "rank %d is in no placement that the model uses, "
	     "but rank %d is",
	     hole, g->world - 1);
}

/* A value that has another name already gets one more. */
static struct value *alias(struct low *l, struct value *v, Name name)
{
	struct node *n;

	if (v->name == name)
		return v;
	n = node_make(l->g, OP_to, v->span, 1, &v, 1, &v->type);
	n->on = v->def->on;
	n->out[0]->name = name;
	n->out[0]->dist = dist_on(n->on, sbp_any());
	return n->out[0];
}

static bool is_output(const struct graph *g, Name name)
{
	for (int i = 0; i < g->outputs.n; i++)
		if (g->outputs.at[i].name == name)
			return true;
	return false;
}

static bool is_leaf_name(const struct graph *g, Name name)
{
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (op_is_leaf(n->op) && n->out[0]->name == name)
			return true;
	}
	return false;
}

/* Outputs are there anyway, and what --show names may be an input: then it is
 * that, however the program is started. */
static void keep_values(struct low *l)
{
	for (int i = 0; i < l->o->nkeep; i++) {
		Name name = name_of(l->o->keep[i]);
		struct value *v = map_get(&l->values, name);
		struct names near = {0};

		if (is_output(l->g, name) ||
		    (i >= l->o->nkeep - l->o->nshown &&
		     is_leaf_name(l->g, name)))
			continue;
		if (v) {
			alias(l, v, name)->keep = true;
			continue;
		}
		names_of_map(l, &near, &l->values);
		usage(l, arena_text(l->a,
				    "--keep %s: the model has no value "
				    "of this name",
				    name));
		hint_near(l, name, &near);
		diag_hint("%s", l->hint ? l->hint
					: arena_text(l->a, "it has %s",
						     all_names(l, &l->values)));
		l->hint = NULL;
	}
}

static void finish_model(struct low *l)
{
	apply_rules(l);
	check_world(l);
	if (diag_errors())
		return;
	warn_rules(l);
	keep_values(l);
	graph_sweep(l->g);
}

/* ---- the way in ---- */

static bool load_prelude(struct low *l)
{
	if (!l->o->prelude)
		return true;
	l->prelude = unit_load(l, l->o->prelude, (Span){0, 0});
	if (!l->prelude)
		l->usage = true;
	else
		((struct source *)l->prelude->source)->prelude = true;
	return l->prelude != NULL;
}

static void compile(struct low *l, const char *path)
{
	struct stmt *model;

	if (!load_prelude(l))
		return;
	l->main = unit_load(l, path, (Span){0, 0});
	if (!l->main) {
		l->usage = true;
		return;
	}
	if (l->stop || l->torn)
		return;
	check_defines(l);
	l->f.unit = l->main;
	model = l->usage ? NULL : choose_model(l);
	if (!model)
		return;
	lower_model(l, model);
	if (!diag_errors())
		finish_model(l);
}

struct job {
	struct low l;
	const char *path;
};

static void *run(void *p)
{
	struct job *job = p;

	compile(&job->l, job->path);
	return NULL;
}

/* On a stack of its own: programs may nest defs 1000 deep. */
static void run_deep(struct job *job)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) ||
	    pthread_attr_setstacksize(&attr, (size_t)512 << 20) ||
	    pthread_create(&thread, &attr, run, job)) {
		fprintf(stderr, "sbpc: error: out of memory\n");
		exit(3);
	}
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

enum front_status front_compile(struct arena *a, const char *path,
				const struct front_options *o,
				struct front_files *files, struct graph **out)
{
	struct job *job = NEW(a, struct job);
	int before = diag_errors();

	job->path = path;
	job->l.a = a;
	job->l.o = o;
	job->l.files = files;
	job->l.g = graph_new(a);
	job->l.defined = NEW_N(a, bool, o->ndefines + 1);
	job->l.f.naming.prefix = "";
	run_deep(job);
	if (job->l.usage)
		return FRONT_USAGE;
	if (diag_errors() > before)
		return FRONT_ERRORS;
	*out = job->l.g;
	return FRONT_OK;
}

enum front_status front_print_tree(struct arena *a, const char *path,
				   struct text *out)
{
	const struct source *s = source_read(path);
	struct stmts *tree;
	int errors = 0;

	if (!s) {
		diag_error((Span){0, 0}, "cannot read '%s': %s", path,
			   strerror(errno));
		return FRONT_USAGE;
	}
	tree = parse_file(a, s, &errors);
	if (errors)
		return FRONT_ERRORS;
	tree_print(tree, out);
	return FRONT_OK;
}
