/*
 * plan_check.c: what a plan may not do: cost more than a committed one
 * (--plan-check), receive too much (--max-boxing-bytes), use what is denied
 * (--deny). Errors stand at the statement that asks for the conversion.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/build.h"

static const char *from_to(const struct boxing *b)
{
	return text_brief("%s -> %s", dist_text(b->from), dist_text(b->to));
}

static enum exit_code check_bytes(const struct program *p, const char *limit)
{
	int64_t most;

	if (!size_read(limit, &most))
		return (enum exit_code)usage_error(
			SBPC,
			"--max-boxing-bytes wants bytes, as 4096 or "
			"64KiB, not '%s'",
			limit);
	for (int i = 0; i < p->boxings.n; i++) {
		const struct boxing *b = p->boxings.at[i];

		if (b->recv_busiest <= most)
			continue;
		diag_error(b->span,
			   "boxing: %s of '%s' receives %lld bytes on its "
			   "busiest rank, more than --max-boxing-bytes=%s",
			   from_to(b), b->label, (long long)b->recv_busiest,
			   limit);
		diag_trail(b->trail);
	}
	return diag_errors() ? ERRORS : DONE;
}

/* ---- patterns ---- */

/* S without spaces. */
static const char *packed(struct arena *a, const char *s)
{
	char *to = arena_alloc(a, strlen(s) + 1);
	size_t n = 0;

	for (; *s; s++)
		if (*s != ' ' && *s != '\t')
			to[n++] = *s;
	return to;
}

/* "FROM->TO" against whole distributions, with and without the placement's
 * name, and against the terms of each mesh axis. */
static bool conversion_matches(struct arena *a, const char *pattern,
			       const struct boxing *b)
{
	bool axes = dist_same_place(b->from, b->to) ||
		    (b->from.on->naxes == 1 && b->to.on->naxes == 1);

	if (name_match(pattern, packed(a, from_to(b))) ||
	    name_match(pattern,
		       packed(a, text_brief("%s->%s", dist_terms(b->from),
					    dist_terms(b->to)))))
		return true;
	for (int k = 0; axes && k < b->to.on->naxes; k++)
		if (b->to.on->extent[k] > 1 &&
		    name_match(pattern,
			       text_brief("%s->%s", sbp_text(b->from.t[k]),
					  sbp_text(b->to.t[k]))))
			return true;
	return false;
}

/* Against the algorithm, each of its moves, and their bare names. */
static bool algorithm_matches(struct arena *a, const char *pattern,
			      const char *algorithm)
{
	const char *at = packed(a, algorithm);

	if (name_match(pattern, at))
		return true;
	while (*at) {
		size_t name = strcspn(at, "(,");
		size_t all = at[name] == '(' ? strcspn(at, ")") + 1 : name;

		if (name_match(pattern, arena_text(a, "%.*s", (int)all, at)) ||
		    name_match(pattern, arena_text(a, "%.*s", (int)name, at)))
			return true;
		at += all + (at[all] == ',');
	}
	return false;
}

static enum exit_code check_denied(const struct build *b, const char *given)
{
	const char *pattern = packed(b->a, given);
	const struct program *p = &b->p;

	if (!*pattern)
		return (enum exit_code)usage_error(
			SBPC, "--deny wants a pattern: 'S(*) -> B', "
			      "'all-gather*'");
	for (int i = 0; i < p->boxings.n; i++) {
		const struct boxing *x = p->boxings.at[i];
		bool denied = strstr(pattern, "->")
				      ? conversion_matches(b->a, pattern, x)
				      : algorithm_matches(b->a, pattern,
							  x->algorithm);

		if (!denied)
			continue;
		diag_error(x->span,
			   "boxing: %s of '%s' by %s is denied by "
			   "--deny='%s'",
			   from_to(x), x->label, x->algorithm, given);
		diag_trail(x->trail);
	}
	return diag_errors() ? ERRORS : DONE;
}

/* ---- a committed plan ---- */

struct committed {
	const char *path;
	json_t *root;
	json_t *boxing; /* array */
	bool *used;     /* by index in it */
};

static enum exit_code malformed(const struct committed *c, const char *what)
{
	return (enum exit_code)usage_error(
		SBPC, "'%s' is not what --emit=plan-json writes: %s", c->path,
		what);
}

/* What is compared of a boxing is all there. */
static bool well_formed(const json_t *o)
{
	static const char *const texts[] = {"value", "phase", "from", "to"};

	for (int i = 0; i < 4; i++)
		if (!json_is_string(json_object_get(o, texts[i])))
			return false;
	return json_is_integer(json_object_get(o, "recv_busiest")) &&
	       json_is_integer(json_object_get(o, "recv_total"));
}

static enum exit_code check_form(const struct committed *c)
{
	static const char *const numbers[] = {"world", "recv_busiest"};
	const json_t *peak = json_object_get(c->root, "peak_memory");
	size_t n = json_array_size(c->boxing);

	if (!json_is_array(c->boxing))
		return malformed(c, "no list 'boxing'");
	for (int i = 0; i < 2; i++)
		if (!json_is_integer(json_object_get(c->root, numbers[i])))
			return malformed(
				c, text_brief("no number '%s'", numbers[i]));
	if (!json_is_integer(json_object_get(peak, "bytes")))
		return malformed(c, "no number 'bytes' in 'peak_memory'");
	for (size_t i = 0; i < n; i++)
		if (!well_formed(json_array_get(c->boxing, i)))
			return malformed(c, text_brief("boxing %zu lacks a "
						       "field",
						       i + 1));
	return DONE;
}

static enum exit_code load(struct committed *c)
{
	json_error_t e;
	FILE *f = fopen(c->path, "r");
	int unread;

	if (!f)
		return (enum exit_code)usage_error(SBPC, "cannot read '%s': %s",
						   c->path, strerror(errno));
	c->root = json_loadf(f, 0, &e);
	unread = ferror(f) ? errno : 0;
	fclose(f);
	if (unread)
		return (enum exit_code)usage_error(SBPC, "cannot read '%s': %s",
						   c->path, strerror(unread));
	if (!c->root)
		return (enum exit_code)usage_error(SBPC, "%s:%d:%d: %s",
						   c->path, e.line, e.column,
						   e.text);
	c->boxing = json_object_get(c->root, "boxing");
	c->used = calloc(json_array_size(c->boxing) + 1, sizeof *c->used);
	if (!c->used)
		bug("out of memory");
	return check_form(c);
}

static bool same_text(const json_t *o, const char *key, const char *s)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t && !strcmp(t, s);
}

static int64_t number(const json_t *o, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(o, key));
}

/* The committed conversion that B is: of the same value between the same
 * distributions, the first one that no other took. */
static const json_t *find_boxing(struct committed *c, const struct boxing *b)
{
	size_t n = json_array_size(c->boxing);

	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(c->boxing, i);

		if (c->used[i] || !same_text(o, "value", b->value) ||
		    !same_text(o, "phase", b->phase) ||
		    !same_text(o, "from", dist_text(b->from)) ||
		    !same_text(o, "to", dist_text(b->to)))
			continue;
		c->used[i] = true;
		return o;
	}
	return NULL;
}

static void report_new(const struct committed *c, const struct boxing *b)
{
	if (!b->recv_total)
		return;
	diag_error(b->span,
		   "plan: %s of '%s' is not in '%s': %lld bytes on the "
		   "busiest rank, %lld in all",
		   from_to(b), b->label, c->path, (long long)b->recv_busiest,
		   (long long)b->recv_total);
	diag_trail(b->trail);
}

static void compare_boxing(struct committed *c, const struct boxing *b)
{
	static const char *const key[] = {"recv_busiest", "recv_total"};
	static const char *const where[] = {"on the busiest rank", "in all"};
	const int64_t now[] = {b->recv_busiest, b->recv_total};
	const json_t *old = find_boxing(c, b);

	if (!old) {
		report_new(c, b);
		return;
	}
	for (int i = 0; i < 2; i++) {
		int64_t was = number(old, key[i]);

		if (now[i] <= was)
			continue;
		diag_error(b->span,
			   "plan: %s of '%s' receives %lld bytes %s; in '%s' "
			   "it is %lld",
			   from_to(b), b->label, (long long)now[i], where[i],
			   c->path, (long long)was);
		diag_trail(b->trail);
		return;
	}
}

static void compare_totals(struct committed *c, const struct program *p)
{
	int64_t was = number(c->root, "recv_busiest");
	int rank;
	int64_t peak = plan_peak_memory(p, &rank);
	int64_t old = number(json_object_get(c->root, "peak_memory"), "bytes");

	if (p->recv_busiest > was && !diag_errors())
		diag_error(p->g->span,
			   "plan: a step receives %lld bytes on its busiest "
			   "rank; in '%s' it is %lld",
			   (long long)p->recv_busiest, c->path, (long long)was);
	if (peak > old)
		diag_error(p->g->span,
			   "plan: peak memory is %lld bytes on rank %d; in "
			   "'%s' it is %lld",
			   (long long)peak, rank, c->path, (long long)old);
}

static enum exit_code compare_plans(struct committed *c,
				    const struct program *p)
{
	int64_t world = number(c->root, "world");

	if (world != p->g->world) {
		diag_error(p->g->span,
			   "plan: the model is for %d ranks; '%s' is for %lld",
			   p->g->world, c->path, (long long)world);
		return ERRORS;
	}
	for (int i = 0; i < p->boxings.n; i++)
		compare_boxing(c, p->boxings.at[i]);
	compare_totals(c, p);
	return diag_errors() ? ERRORS : DONE;
}

static enum exit_code check_committed(const struct program *p, const char *path)
{
	struct committed c = {.path = path};
	enum exit_code code = load(&c);

	if (!code)
		code = compare_plans(&c, p);
	free(c.used);
	json_decref(c.root);
	return code;
}

/* ---- all of them ---- */

static enum exit_code worse(enum exit_code a, enum exit_code b)
{
	return a > b ? a : b;
}

enum exit_code plan_check(const struct build *b)
{
	const char *path = option_value(b->o, OPT_plan_check);
	const char *most = option_value(b->o, OPT_max_boxing_bytes);
	enum exit_code code = DONE;

	if (most)
		code = check_bytes(&b->p, most);
	for (int i = 0; i < b->o->given.n; i++)
		if (b->o->given.at[i].id == OPT_deny)
			code = worse(code,
				     check_denied(b, b->o->given.at[i].value));
	if (path)
		code = worse(code, check_committed(&b->p, path));
	return code;
}
