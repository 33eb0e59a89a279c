/*
 * step.c: the step of a rank class as C functions.
 *
 * Calls stand in the order of the schedule, each group under the source line
 * that it comes from. A long step is cut into functions of at most 64 calls,
 * which Clang compiles in linear time, and runs of equal layers are loops.
 */
#include <string.h>

#include "codegen/emit.h"

/* ---- the calls ---- */

const char *move_title(struct arena *a, const struct node *n)
{
	Dist from = n->in[0]->dist, to = n->out[0]->dist;

	return move_name(a, from, to,
			 move_traffic(n->in[0]->type, from, to).total > 0);
}

int move_count(const struct program *p)
{
	int n = 0;

	for (int i = 0; i < p->g->nodes.n; i++)
		n += move_runs(p, p->g->nodes.at[i]);
	return n;
}

void call_arg(struct emitter *e, struct call *c, struct arg arg)
{
	PUSH(e->arena, c->args, arg);
}

static void copy_call(struct stepper *s, const struct node *n,
		      const struct value *to, const struct value *from)
{
	struct emitter *e = s->e;
	struct call c = {.function = name_of(e->target->copy), .n = n};
	int64_t bytes = e->p->local[to->id].bytes;

	if (bytes == 0)
		return;
	call_arg(e, &c, (struct arg){ARG_VALUE, to, "unsigned char", 0, NULL});
	call_arg(e, &c,
		 (struct arg){ARG_VALUE, from, "unsigned char", 0, NULL});
	call_arg(e, &c, (struct arg){.kind = ARG_INT, .i = bytes});
	PUSH(e->arena, s->calls, c);
}

static void move_call(struct stepper *s, const struct node *n, int id)
{
	struct call c = {.n = n};

	s->e->target->move(s->e, n, id, &c);
	PUSH(s->e->arena, s->calls, c);
	comm_add(s->e->arena, s->e->comm, s->e->p, s->e->class, id, n);
}

static void node_call(struct stepper *s, const struct node *n)
{
	const struct program *p = s->e->p;
	struct call c = {.n = n};
	enum kernel_kind kind = op_info(n->op)->kernel;

	if (kind == K_NONE)
		return;
	if (kind == K_VIEW) {
		if (p->local[n->out[0]->id].same_as == NULL)
			copy_call(s, n, n->out[0], n->in[0]);
		return;
	}
	if (s->e->target->kernel(s->e, n, &c)) {
		c.n = n;
		PUSH(s->e->arena, s->calls, c);
	}
}

/* A new value that was written in the state's place is there already. */
static void update_call(struct stepper *s, const struct update *u)
{
	const struct program *p = s->e->p;
	int c = s->e->class;

	if (class_holds(p, c, u->state) &&
	    p->local[u->v->id].at[c] != p->local[u->state->id].at[c])
		copy_call(s, u->v->def, u->state, u->v);
}

/* A slice that nothing copies. */
static bool is_in_place(const struct program *p, const struct node *n)
{
	return n->op == OP_move && !move_runs(p, n);
}

static void collect_calls(struct stepper *s)
{
	const struct program *p = s->e->p;
	const struct graph *g = p->g;
	int moves = 0;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		int move = move_runs(p, n) ? moves++ : -1;

		if (!class_runs(p, s->e->class, n) || is_in_place(p, n))
			continue;
		if (move >= 0)
			move_call(s, n, move);
		else
			node_call(s, n);
	}
	for (int i = 0; i < g->updates.n; i++)
		update_call(s, &g->updates.at[i]);
}

/* ---- functions ---- */

static void add_function(struct stepper *s, const char *head,
			 const struct item *item, int n)
{
	struct text *t = &s->e->step;

	text_add(t, "%s(%s)\n{\n", head, s->e->target->handle);
	for (int i = 0; i < n; i++)
		text_add(t, "%s",
			 item[i].text + (i == 0 && item[i].text[0] == '\n'));
	text_add(t, "\treturn SBP_OK;\n}\n\n");
}

/* The first items that fit in a function. */
static int fill_function(const struct stepper *s, int at, int *calls)
{
	int n = 0;

	*calls = 0;
	while (at + n < s->items.n &&
	       (n == 0 || *calls + s->items.at[at + n].calls <= MOST_CALLS))
		*calls += s->items.at[at + n++].calls;
	return n;
}

/* How much of the N bytes of scope A is B in too; all if nothing. */
static size_t common_scope(const char *a, size_t n, const char *b)
{
	size_t same = 0;

	for (size_t i = 0; i <= n; i++) {
		bool ends = i == n || a[i] == '.';

		if (ends && (b[i] == '\0' || b[i] == '.'))
			same = i;
		if (i < n && a[i] != b[i])
			break;
	}
	return same == 0 ? n : same;
}

/* What N items from AT on are about: the scope of their params. */
static const char *scope_of(struct stepper *s, int at, int n)
{
	const char *scope = NULL;
	size_t size = 0;

	for (int i = at; i < at + n; i++) {
		const char *label = s->items.at[i].label;

		if (label == NULL)
			continue;
		if (scope == NULL) {
			scope = label;
			size = strlen(label);
		} else {
			size = common_scope(scope, size, label);
		}
	}
	if (scope == NULL)
		return NULL;
	return arena_text(s->e->arena, "%.*s", (int)size, scope);
}

/* Makes functions of the items, each then an item that calls one. */
static void cut(struct stepper *s)
{
	LIST(struct item) calls = {0};

	for (int at = 0, n; at < s->items.n; at += n) {
		struct item item = {.calls = 1};
		const char *name;
		int count;

		n = fill_function(s, at, &count);
		item.label = scope_of(s, at, n);
		name = item.label ? item.label : "part";
		name = arena_text(s->e->arena, "step_%s",
				  c_name(s->e->arena, name));
		name = name_unique(s->functions, name);
		add_function(s,
			     arena_text(s->e->arena,
					"SBP_CALLS static sbp_status %s", name),
			     &s->items.at[at], n);
		item.text =
			arena_text(s->e->arena, "\tSBP_TRY(%s(m));\n", name);
		PUSH(s->e->arena, calls, item);
	}
	s->items.n = 0;
	for (int i = 0; i < calls.n; i++)
		PUSH(s->e->arena, s->items, calls.at[i]);
}

static int count_items(const struct stepper *s)
{
	int n = 0;

	for (int i = 0; i < s->items.n; i++)
		n += s->items.at[i].calls;
	return n;
}

void emit_step(struct emitter *e, const char *head)
{
	struct stepper s = {.e = e, .functions = name_set_new(e->arena)};
	struct turns turns = {0};

	fill_readers(&s);
	collect_calls(&s);
	if (e->trace)
		emit_trace(e, s.calls.at, s.calls.n);
	find_turns(e->arena, s.calls.at, s.calls.n, &turns);
	for (int i = 0; i < turns.at.n; i++)
		if (turns.at.at[i].count > 1)
			loop_calls(&s, turns.at.at[i]);
		else
			single_call(&s, &s.calls.at[turns.at.at[i].at]);
	while (count_items(&s) > MOST_CALLS)
		cut(&s);
	if (s.items.n == 0)
		PUSH(e->arena, s.items, (struct item){"\t(void)m;\n", 0, NULL});
	add_function(&s, head, s.items.at, s.items.n);
	if (s.tables.n > 0) {
		text_add(&s.tables, "%s", e->step.at);
		text_free(&e->step);
		e->step = s.tables;
	}
}
