/*
 * manager.c: runs the passes of passes.def in order, checks what they need,
 * verifies the graph after each, and shows what they did on request.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "passes/passes.h"

enum { NONE = 0 };

const struct pass passes[] = {
#define DIST FACT_DIST
#define BOXED FACT_BOXED
#define LOCAL FACT_LOCAL
#define FUSED FACT_FUSED
#define ORDERED FACT_ORDERED
#define PLACED FACT_PLACED
#define PASS(name, needs, gives, keeps, help)                                 \
	{#name, pass_##name, needs, gives, keeps, help},
#include "passes/passes.def"
#undef PASS
};
const int npasses = (int)(sizeof passes / sizeof *passes);

static bool is_pass(const char *name, size_t n)
{
	for (int i = 0; i < npasses; i++)
		if (strlen(passes[i].name) == n &&
		    !strncmp(passes[i].name, name, n))
			return true;
	return n == 3 && !strncmp(name, "all", n);
}

bool pass_exists(const char *list)
{
	size_t n;

	do {
		n = strcspn(list, ",");
		if (!is_pass(list, n))
			return false;
		list += n;
	} while (*list++);
	return true;
}

static void print_facts(unsigned facts, FILE *out)
{
	static const char *const name[] = {"dist", "boxed", "local", "fused",
					   "ordered", "placed"};
	const char *comma = "";

	for (unsigned i = 0; i < sizeof name / sizeof *name; i++) {
		if (!(facts & 1u << i))
			continue;
		fprintf(out, "%s%s", comma, name[i]);
		comma = ", ";
	}
	if (!facts)
		fprintf(out, "nothing");
}

void passes_list(FILE *out)
{
	for (int i = 0; i < npasses; i++) {
		fprintf(out, "%-10s%s\n", passes[i].name, passes[i].help);
		fprintf(out, "          needs ");
		print_facts(passes[i].needs, out);
		fprintf(out, "; gives ");
		print_facts(passes[i].gives, out);
		fprintf(out, "; keeps ");
		print_facts(passes[i].keeps, out);
		fprintf(out, "\n");
	}
}

/* Whether NAME stands in the comma-separated LIST. */
static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (list && *list) {
		size_t len = strcspn(list, ",");

		if (len == n && !strncmp(list, name, n))
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* A dump is asked for by name, or of all passes. */
static bool asked(const char *list, const char *name)
{
	return listed(list, name) || listed(list, "all");
}

static void dump(const struct graph *g, const char *when, const char *name,
		 bool title, FILE *out)
{
	struct text t = {0};

	graph_print(g, &t);
	if (title)
		fprintf(out, "# %s %s\n", when, name);
	fputs(t.at ? t.at : "", out);
	text_free(&t);
}

/* The values before a pass, and how they were numbered. */
struct numbers {
	int n;
	struct value **v;
};

static struct numbers numbers_of(const struct graph *g, struct arena *a)
{
	struct numbers r = {g->values.n, NULL};

	r.v = NEW_N(a, struct value *, r.n + 1);
	for (int i = 0; i < r.n; i++)
		r.v[i] = g->values.at[i];
	return r;
}

/* Prints G with old values under their old numbers and new ones after them,
 * so that a diff shows what a pass did and not what it renumbered. */
static void print_as_before(struct graph *g, const struct numbers *old,
			    struct text *t)
{
	int next = old->n;

	for (int i = 0; i < g->values.n; i++)
		g->values.at[i]->id = -1;
	for (int i = 0; i < old->n; i++)
		old->v[i]->id = i;
	for (int i = 0; i < g->values.n; i++)
		if (g->values.at[i]->id < 0)
			g->values.at[i]->id = next++;
	graph_print(g, t);
	for (int i = 0; i < g->values.n; i++)
		g->values.at[i]->id = i;
}

/* What holds before the first pass: a graph that was read back may have been
 * through some. */
static unsigned facts_of(const struct graph *g)
{
	unsigned facts = FACT_DIST | FACT_BOXED;

	for (int i = 0; i < g->values.n; i++)
		if (!g->values.at[i]->dist.on ||
		    !dist_known(g->values.at[i]->dist))
			return 0;
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];

		if (n->op == OP_kernel)
			facts |= FACT_FUSED;
		if (n->op == OP_to)
			facts &= ~(unsigned)FACT_BOXED;
		for (int k = 0; k < n->nin; k++) {
			if (!n->in_dist)
				return 0;
			if (n->op != OP_move &&
			    !dist_eq(n->in_dist[k], n->in[k]->dist))
				facts &= ~(unsigned)FACT_BOXED;
		}
	}
	return facts;
}

static const char *fact_giver(unsigned fact)
{
	for (int i = 0; i < npasses; i++)
		if (passes[i].gives & fact)
			return passes[i].name;
	return "?";
}

/* An error unless FACTS has all that PASS needs. */
static bool check_needs(const struct program *p, const struct pass *pass,
			unsigned facts)
{
	unsigned missing = pass->needs & ~facts;

	if (!missing)
		return true;
	diag_error(p->g->span, "pass '%s' needs what pass '%s' gives, which "
		   "did not run", pass->name,
		   fact_giver(missing & -missing));
	return false;
}

/* Nodes that compute and nodes that communicate, before memory counts calls:
 * moves that receive something. */
static void count(const struct graph *g, int *kernels, int *collectives,
		  int64_t *bytes)
{
	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		enum kernel_kind k = op_info(n->op)->kernel;
		struct traffic t;

		if (n->op != OP_move) {
			*kernels += k != K_NONE && k != K_VIEW;
			continue;
		}
		t = move_traffic(n->in[0]->type, n->in[0]->dist,
				 n->out[0]->dist);
		*collectives += t.total > 0;
		*bytes += t.busiest;
	}
}

static void print_stats(const struct graph *g, const char *name, bool first,
			FILE *out)
{
	int kernels = 0, collectives = 0, moves = 0;
	int64_t bytes = 0;

	if (first)
		fprintf(out, "%-10s%8s%8s%8s%9s%13s%12s\n", "pass", "nodes",
			"values", "moves", "kernels", "collectives", "bytes");
	for (int i = 0; i < g->nodes.n; i++)
		moves += g->nodes.at[i]->op == OP_move;
	count(g, &kernels, &collectives, &bytes);
	fprintf(out, "%-10s%8d%8d%8d%9d%13d%12lld\n", name, g->nodes.n,
		g->values.n, moves, kernels, collectives, (long long)bytes);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(struct program *p, const struct pass *pass,
		const struct pass_options *o)
{
	double start = now();

	diag_pass(pass->name);
	pass->run(p);
	if (o->time)
		fprintf(o->out, "%-10s%10.3f ms\n", pass->name,
			(now() - start) * 1e3);
	if (!diag_errors())
		graph_verify(p->g);
	diag_pass(NULL);
}

static void run_diff(struct program *p, const struct pass *pass,
		     const struct pass_options *o)
{
	struct arena *a = arena_new();
	struct numbers before = numbers_of(p->g, a);
	struct text old = {0}, new = {0};

	graph_print(p->g, &old);
	run(p, pass, o);
	if (!diag_errors()) {
		print_as_before(p->g, &before, &new);
		diff_print(old.at, new.at, o->out);
	}
	text_free(&old);
	text_free(&new);
	arena_free(a);
}

/* Runs one pass and shows what was asked for; SHOWN counts lines of the
 * table so far. */
static void run_pass(struct program *p, const struct pass *pass,
		     const struct pass_options *o, int *shown)
{
	bool title = listed(o->dump_after, "all") ||
		     listed(o->dump_before, "all");

	if (asked(o->dump_before, pass->name))
		dump(p->g, "before", pass->name, title, o->out);
	if (asked(o->diff, pass->name))
		run_diff(p, pass, o);
	else
		run(p, pass, o);
	if (diag_errors())
		return;
	if (asked(o->dump_after, pass->name))
		dump(p->g, "after", pass->name, title, o->out);
	if (o->stats)
		print_stats(p->g, pass->name, !(*shown)++, o->out);
}

bool passes_run(struct program *p, const struct pass_options *o, bool *stopped)
{
	unsigned facts = facts_of(p->g);
	int shown = 0;

	*stopped = o->only != NULL;
	for (int i = 0; i < npasses; i++) {
		const struct pass *pass = &passes[i];

		if (o->only && !asked(o->only, pass->name))
			continue;
		if (!check_needs(p, pass, facts))
			return false;
		run_pass(p, pass, o, &shown);
		if (diag_errors())
			return false;
		facts = (facts & pass->keeps) | pass->gives;
		if (o->stop_after && !strcmp(o->stop_after, pass->name)) {
			*stopped = true;
			break;
		}
	}
	if (o->only)
		dump(p->g, "after", o->only, false, o->out);
	return true;
}
