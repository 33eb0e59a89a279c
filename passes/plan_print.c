/*
 * plan_print.c: the plan for people (--emit=plan), for programs
 * (--emit=plan-json), and its hash.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

/* ---- the hash ---- */

static uint64_t hash_int(uint64_t h, int64_t i)
{
	return hash_bytes(h, &i, sizeof i);
}

static uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s) + 1);
}

static uint64_t hash_double(uint64_t h, double d)
{
	return hash_bytes(h, &d, sizeof d);
}

static uint64_t hash_value(uint64_t h, const struct value *v)
{
	Shape shape = v->type.shape;

	h = hash_int(h, v->id);
	h = hash_int(h, v->type.dtype);
	for (int i = 0; i < shape.rank; i++)
		h = hash_int(h, shape.d[i]);
	for (int k = 0; v->dist.on && k < v->dist.on->naxes; k++) {
		h = hash_text(h, sbp_text(v->dist.t[k]));
		h = hash_int(h, dist_nth(v->dist, k));
	}
	return hash_int(h, v->dist.on ? v->dist.on->id : -1);
}

static uint64_t hash_attr(uint64_t h, const struct attr *a)
{
	h = hash_text(h, a->key);
	h = hash_int(h, a->i);
	h = hash_double(h, a->f);
	for (int i = 0; i < a->n; i++)
		h = hash_int(h, a->ints[i]);
	return a->text ? hash_text(h, a->text) : h;
}

static uint64_t hash_node(uint64_t h, const struct node *n)
{
	h = hash_text(h, op_info(n->op)->name);
	for (int i = 0; i < n->nin; i++)
		h = hash_int(h, n->in[i]->id);
	for (int i = 0; i < n->nout; i++)
		h = hash_value(h, n->out[i]);
	for (int i = 0; i < n->nattr; i++)
		h = hash_attr(h, &n->attr[i]);
	return n->boxing ? hash_int(h, n->boxing->id) : h;
}

static uint64_t hash_placement(uint64_t h, const struct placement *p)
{
	h = hash_int(h, p->device);
	for (int k = 0; k < p->naxes; k++)
		h = hash_int(h, p->extent[k]);
	for (int i = 0; i < p->nranks; i++)
		h = hash_int(h, p->rank[i]);
	return h;
}

uint64_t plan_hash(const struct program *p)
{
	const struct graph *g = p->g;
	uint64_t h = hash_text(0, p->reproducible ? "fixed plan" : "plan");

	for (int i = 0; i < g->placements.n; i++)
		h = hash_placement(h, g->placements.at[i]);
	for (int i = 0; i < g->nodes.n; i++)
		h = hash_node(h, g->nodes.at[i]);
	for (int i = 0; i < g->outputs.n; i++)
		h = hash_int(h, g->outputs.at[i].v->id);
	for (int i = 0; i < g->updates.n; i++) {
		h = hash_int(h, g->updates.at[i].state->id);
		h = hash_int(h, g->updates.at[i].v->id);
	}
	return h;
}

/* ---- facts of both forms ---- */

int64_t plan_peak_memory(const struct program *p, int *rank)
{
	int most = 0;

	*rank = 0;
	if (!p->arena_bytes)
		return 0;
	for (int c = 1; c < p->nclasses; c++)
		if (p->arena_bytes[c] > p->arena_bytes[most])
			most = c;
	while (p->class_of && *rank < p->g->world - 1 &&
	       p->class_of[*rank] != most)
		++*rank;
	return p->arena_bytes[most];
}

static int rank_classes(const struct program *p)
{
	return p->nclasses ? p->nclasses : 1;
}

/* ---- for programs ---- */

static void json_text(struct text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			text_add(t, "\\%c", c);
		else if (c < 0x20)
			text_add(t, "\\u%04x", c);
		else
			text_add_n(t, s, 1);
	}
	text_add(t, "\"");
}

static void json_field(struct text *t, const char *key, const char *s)
{
	text_add(t, "\"%s\": ", key);
	json_text(t, s);
	text_add(t, ", ");
}

static void json_boxing(struct text *t, const struct boxing *b)
{
	struct place at = place_of(b->span);
	const char *separator = "";

	text_add(t, "{");
	json_field(t, "value", b->value);
	json_field(t, "file", at.path);
	text_add(t, "\"line\": %d, \"shape\": [", at.line);
	for (int i = 0; i < b->type.shape.rank; i++) {
		text_add(t, "%s%lld", separator,
			 (long long)b->type.shape.d[i]);
		separator = ", ";
	}
	text_add(t, "], ");
	json_field(t, "dtype", dtype_name(b->type.dtype));
	json_field(t, "from", dist_text(b->from));
	json_field(t, "to", dist_text(b->to));
	json_field(t, "algorithm", b->algorithm);
	json_field(t, "phase", b->phase);
	text_add(t, "\"recv_busiest\": %lld, \"recv_total\": %lld, "
		    "\"lower_bound\": %lld",
		 (long long)b->recv_busiest, (long long)b->recv_total,
		 (long long)b->lower_bound);
	if (predict_has_topology()) {
		text_add(t, ", \"fewest_bytes\": %lld, \"predicted_us\": ",
			 (long long)b->least_busiest);
		text_add_double(t, b->seconds * 1e6);
		text_add(t, ", \"fewest_bytes_us\": ");
		text_add_double(t, b->least_seconds * 1e6);
	}
	text_add(t, "}");
}

static void put(struct text *t, FILE *out)
{
	fwrite(t->at, 1, t->n, out);
	text_free(t);
}

void plan_print_json(const struct program *p, FILE *out)
{
	struct text t = {NULL, 0, 0};
	int rank;
	int64_t peak = plan_peak_memory(p, &rank);

	text_add(&t, "{");
	json_field(&t, "model", p->g->name);
	text_add(&t, "\"plan_hash\": \"%016llx\", \"world\": %d, "
		     "\"rank_classes\": %d,\n \"boxing\": [",
		 (unsigned long long)p->plan_hash, p->g->world,
		 rank_classes(p));
	for (int i = 0; i < p->boxings.n; i++) {
		text_add(&t, i ? ",\n   " : "\n   ");
		json_boxing(&t, p->boxings.at[i]);
	}
	text_add(&t,
		 "],\n \"recv_busiest\": %lld, \"recv_total\": %lld, "
		 "\"peak_memory\": {\"rank\": %d, \"bytes\": %lld}, "
		 "\"kernels\": %d, \"collectives\": %d, "
		 "\"reproducible\": %s}\n",
		 (long long)p->recv_busiest, (long long)p->recv_total, rank,
		 (long long)peak, p->kernels, p->collectives,
		 p->reproducible ? "true" : "false");
	put(&t, out);
}

/* ---- for people ---- */

enum { COLUMNS = 9 };

/* Cells of a table; all columns but the last few are texts. */
struct table {
	struct arena *a;
	int rows;
	const char **cell;
	int width[COLUMNS];
};

static const char *const heads[COLUMNS] = {
	"line", "value", "type", "from -> to", "moves",
	"busiest", "total", "bound", "ratio"
};
enum { FIRST_NUMBER = 5 };

static void set_cell(struct table *t, int row, int column, const char *s)
{
	int n = (int)strlen(s);

	t->cell[row * COLUMNS + column] = s;
	if (n > t->width[column])
		t->width[column] = n;
}

static const char *bytes_text(struct arena *a, int64_t n)
{
	return arena_text(a, "%lld", (long long)n);
}

static const char *ratio_text(struct arena *a, const struct boxing *b)
{
	if (!b->recv_busiest)
		return "free";
	if (!b->lower_bound)
		return "-";
	return arena_text(a, "%.2f",
			  (double)b->recv_busiest / (double)b->lower_bound);
}

/* Where the model asks for it: inside a def, the call that led there. */
static const char *line_text(struct arena *a, const struct boxing *b)
{
	const struct trail *up = b->trail;
	struct place at;

	while (up && up->up)
		up = up->up;
	at = place_of(up ? up->at : b->span);
	return arena_text(a, "%s:%d", at.path, at.line);
}

/* The value, and its line where that is in a def. */
static const char *label_text(struct arena *a, const struct boxing *b)
{
	struct place at = place_of(b->span);

	if (!b->trail)
		return b->label;
	if (strcmp(at.path, place_of(b->trail->at).path))
		return arena_text(a, "%s, %s:%d", b->label, at.path, at.line);
	return arena_text(a, "%s, line %d", b->label, at.line);
}

static void set_row(struct table *t, int row, const struct boxing *b)
{
	struct arena *a = t->a;

	set_cell(t, row, 0, line_text(a, b));
	set_cell(t, row, 1, label_text(a, b));
	set_cell(t, row, 2, arena_text(a, "%s", type_text(b->type)));
	set_cell(t, row, 3, arena_text(a, "%s -> %s", dist_text(b->from),
				       dist_text(b->to)));
	set_cell(t, row, 4, b->algorithm);
	set_cell(t, row, 5, bytes_text(a, b->recv_busiest));
	set_cell(t, row, 6, bytes_text(a, b->recv_total));
	set_cell(t, row, 7, bytes_text(a, b->lower_bound));
	set_cell(t, row, 8, ratio_text(a, b));
}

static void print_table(const struct table *t, struct text *out)
{
	for (int i = 0; i < t->rows; i++) {
		text_add(out, " ");
		for (int c = 0; c < COLUMNS; c++)
			text_add(out, c < FIRST_NUMBER ? " %-*s" : " %*s",
				 t->width[c] + (c == FIRST_NUMBER),
				 t->cell[i * COLUMNS + c]);
		while (out->at[out->n - 1] == ' ')
			out->n--;
		text_add(out, "\n");
	}
}

static void print_boxings(const struct program *p, struct text *out)
{
	struct table t = {.a = arena_new(), .rows = p->boxings.n + 1};

	t.cell = NEW_N(t.a, const char *, t.rows * COLUMNS);
	for (int c = 0; c < COLUMNS; c++)
		set_cell(&t, 0, c, heads[c]);
	for (int i = 0; i < p->boxings.n; i++)
		set_row(&t, i + 1, p->boxings.at[i]);
	print_table(&t, out);
	arena_free(t.a);
}

static void print_price(const struct boxing *b, struct text *out)
{
	struct arena *a = arena_new();

	text_add(out, "  %s %s: ", line_text(a, b), label_text(a, b));
	arena_free(a);
	if (b->least_busiest)
		text_add(out, "%.2f times the fewest bytes",
			 (double)b->recv_busiest / (double)b->least_busiest);
	else
		text_add(out, "%lld bytes where none need be received",
			 (long long)b->recv_busiest);
	text_add(out, ", to take %.2f us instead of %.2f us\n",
		 b->seconds * 1e6, b->least_seconds * 1e6);
}

/* Along a topology: where bytes are spent to save time. */
static void print_prices(const struct program *p, struct text *out)
{
	for (int i = 0; i < p->boxings.n; i++)
		if (predict_has_topology() &&
		    p->boxings.at[i]->recv_busiest >
			    p->boxings.at[i]->least_busiest)
			print_price(p->boxings.at[i], out);
}

/* Ranks of one class have arenas of one size. */
static void print_classes(const struct program *p, struct text *out)
{
	enum { MOST = 16 };

	for (int c = 0; c < p->nclasses && c < MOST; c++)
		text_add(out, "%s%lld from rank %d on",
			 c ? ", " : "  bytes of memory by rank class: ",
			 (long long)p->arena_bytes[c], p->class_rank[c]);
	text_add(out, p->nclasses > MOST ? ", ...\n" : "\n");
}

static void print_totals(const struct program *p, struct text *out)
{
	int rank;
	int64_t peak = plan_peak_memory(p, &rank);

	if (p->recv_total)
		text_add(out, "%s: a step receives %lld bytes on its busiest "
			      "rank, %lld on all\n",
			 p->g->name, (long long)p->recv_busiest,
			 (long long)p->recv_total);
	else
		text_add(out, "%s: the forward pass communicates nothing\n",
			 p->g->name);
	if (peak)
		text_add(out, "%s: %lld bytes of memory on rank %d, kernels: "
			      "%d, collectives: %d\n",
			 p->g->name, (long long)peak, rank, p->kernels,
			 p->collectives);
	if (peak && p->nclasses > 1)
		print_classes(p, out);
}

void plan_print(const struct program *p, FILE *out)
{
	struct text t = {NULL, 0, 0};
	int n = rank_classes(p);

	text_add(&t, "%s: plan %016llx for %d %s in %d %s\n", p->g->name,
		 (unsigned long long)p->plan_hash, p->g->world,
		 p->g->world == 1 ? "rank" : "ranks", n,
		 n == 1 ? "class" : "classes");
	if (p->boxings.n)
		print_boxings(p, &t);
	print_prices(p, &t);
	if (p->reproducible)
		text_add(&t, "%s: reproducible: the same bits on any mesh\n",
			 p->g->name);
	print_totals(p, &t);
	put(&t, out);
}
