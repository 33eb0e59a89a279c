/*
 * memory.c: --memory. Inference keeps to an estimate of what a rank needs;
 * what memory.c of the passes then places is checked here, and where it is
 * more the model is compiled again with a lower aim.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/build.h"

enum {
	SHOWN = 3, /* of the largest tensors */
	TRIES = 4, /* of lower aims */
};

bool size_read(const char *s, int64_t *size)
{
	static const struct {
		const char *unit;
		int shift;
	} units[] = {{"", 0},     {"B", 0},    {"KiB", 10},
		     {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	char *end;
	long long n;

	errno = 0;
	n = strtoll(s, &end, 10);
	if (end == s || *s < '0' || *s > '9' || errno)
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].unit) ||
		    n > INT64_MAX >> units[i].shift)
			continue;
		*size = (int64_t)n << units[i].shift;
		return true;
	}
	return false;
}

enum exit_code memory_read(const struct options *o, int64_t *limit)
{
	const char *text = option_value(o, OPT_memory);

	*limit = 0;
	if (!text || (size_read(text, limit) && *limit > 0))
		return DONE;
	return (enum exit_code)usage_error(
		o->tool,
		"--memory wants bytes a rank, as 800MiB or 8GiB, "
		"not '%s'",
		text);
}

int64_t memory_over(const struct program *p)
{
	int rank;

	if (!p->memory_limit)
		return 0;
	return plan_peak_memory(p, &rank) - p->memory_limit;
}

bool memory_lower(struct program *p)
{
	int64_t aim = p->memory_aim ? p->memory_aim : p->memory_limit;
	int64_t over = memory_over(p);
	int64_t error = over + p->memory_limit - p->memory_estimate;
	int64_t next = p->memory_limit - error - error / 16;

	if (p->memory_estimate > aim || ++p->memory_tries > TRIES)
		return false; /* nothing less was found */
	p->memory_aim = next < aim - over ? next : aim - over;
	return p->memory_aim > 0;
}

static bool takes_bytes(const struct program *p, const struct value *v,
			int rank)
{
	const struct local *l = &p->local[v->id];
	int class = p->class_of ? p->class_of[rank] : 0;

	return !l->same_as && !l->over && l->at && l->at[class] >= 0;
}

/* The largest that is smaller than LAST, or as large and behind it. */
static const struct value *next_largest(const struct program *p, int rank,
					const struct value *last)
{
	const struct value *best = NULL;

	for (int i = 0; i < p->g->values.n; i++) {
		const struct value *v = p->g->values.at[i];
		int64_t bytes = p->local[i].bytes;

		if (!takes_bytes(p, v, rank))
			continue;
		if (last &&
		    (bytes > p->local[last->id].bytes ||
		     (bytes == p->local[last->id].bytes && i <= last->id)))
			continue;
		if (!best || bytes > p->local[best->id].bytes)
			best = v;
	}
	return best;
}

static Span span_of(const struct value *v)
{
	return v->span.hi ? v->span : v->def->span;
}

void memory_complain(const struct build *b)
{
	const struct program *p = &b->p;
	int rank;
	int64_t peak = plan_peak_memory(p, &rank);
	const struct value *v = next_largest(p, rank, NULL);

	diag_error(v ? span_of(v) : (Span){0, 0},
		   "a step needs %lld bytes on rank %d, more than "
		   "--memory=%s; nothing less was found",
		   (long long)peak, rank, option_value(b->o, OPT_memory));
	for (int i = 0; v && i < SHOWN; i++) {
		diag_note(span_of(v), "'%s' is %s on %s: %lld bytes",
			  value_label(v), type_text(v->type),
			  dist_text(v->dist), (long long)p->local[v->id].bytes);
		v = next_largest(p, rank, v);
	}
	if (!b->front.automatic)
		diag_hint("--auto may split inputs and params that have no "
			  "distribution");
}
