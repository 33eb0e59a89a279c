/*
 * step.c: the step of a rank class as C functions.
 *
 * Calls stand in the order of the schedule, each group under the source line
 * that it comes from. A long step is cut into functions of at most 64 calls,
 * which Clang compiles in linear time, and runs of equal layers are loops.
 */
#include <string.h>

#include "codegen/codegen.h"

enum { MOST_CALLS = 64 };

/* A piece of a function's body. Its label is the naming scope it is in. */
struct item {
	const char *text;
	int calls;
	const char *label;
};

struct stepper {
	struct emitter *e;
	LIST(struct call) calls;
	LIST(struct item) items;
	struct name_set *functions;
	struct text tables;	/* offsets that loops use */
	int loops;
	int line;		/* of the last comment */
	const struct node **reader;	/* by value id: the first one */
};

static const char *kept_text(struct stepper *s, struct text *t)
{
	const char *copy = arena_text(s->e->arena, "%s", t->at ? t->at : "");

	text_free(t);
	return copy;
}

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
		n += p->g->nodes.at[i]->op == OP_move;
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

static const struct value *root_of(const struct program *p,
				   const struct value *v)
{
	const struct value *same = p->local[v->id].same_as;

	return same == NULL ? v : same;
}

static void collect_calls(struct stepper *s)
{
	const struct program *p = s->e->p;
	const struct graph *g = p->g;
	int moves = 0;

	for (int i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.at[i];
		int move = n->op == OP_move ? moves++ : -1;

		if (!class_runs(p, s->e->class, n))
			continue;
		if (move >= 0)
			move_call(s, n, move);
		else
			node_call(s, n);
	}
	for (int i = 0; i < g->updates.n; i++) {
		const struct update *u = &g->updates.at[i];

		if (class_holds(p, s->e->class, u->state) &&
		    root_of(p, u->v) != root_of(p, u->state))
			copy_call(s, u->v->def, u->state, u->v);
	}
}

/* ---- the text of one call ---- */

static int64_t arg_number(const struct emitter *e, const struct arg *arg)
{
	if (arg->kind == ARG_VALUE)
		return e->p->local[arg->v->id].at[e->class];
	return arg->i;
}

static void add_value(struct emitter *e, const struct arg *arg, struct text *t)
{
	e->named[arg->v->id] = true;
	text_add(t, e->target->at, arg->ctype);
	text_add(t, "AT_%s", e->name[arg->v->id]);
}

/* What follows the first of an argument's values: " + 64 * i", or nothing. */
static void add_stride(int64_t stride, struct text *t)
{
	long long size = stride < 0 ? -stride : stride;

	if (stride != 0)
		text_add(t, " %c ", stride < 0 ? '-' : '+');
	if (size > 1)
		text_add(t, "%lld * i", size);
	else if (size == 1)
		text_add(t, "i");
}

static void add_argument(struct emitter *e, const struct arg *arg,
			 int64_t stride, struct text *t)
{
	switch (arg->kind) {
	case ARG_TEXT:
		text_add(t, "%s", arg->text);
		return;
	case ARG_INT:
		text_add(t, "%lld", (long long)arg->i);
		add_stride(stride, t);
		return;
	case ARG_MOVE:
		text_add(t, "&%s[%lld", e->moves, (long long)arg->i);
		add_stride(stride, t);
		text_add(t, "]");
		return;
	case ARG_VALUE:
		add_value(e, arg, t);
		add_stride(stride, t);
		text_add(t, ")");
	}
}

/* ---- comments ---- */

static void fill_readers(struct stepper *s)
{
	const struct graph *g = s->e->p->g;

	s->reader = NEW_N(s->e->arena, const struct node *, g->values.n + 1);
	for (int i = g->nodes.n - 1; i >= 0; i--) {
		const struct node *n = g->nodes.at[i];

		for (int k = 0; k < n->nin; k++)
			s->reader[n->in[k]->id] = n;
	}
}

/* What the user wrote for N: the function, where its span is one call (a def
 * of the prelude, say), else N's operator. */
static const char *operator_name(const struct stepper *s, const struct node *n)
{
	const char *call = text_call(s->e->arena, n->span);

	return call != NULL ? call : op_info(n->op)->name;
}

/* Which operator wants the value that the move N makes: one in a kernel's
 * body where it is fused. */
static const char *wanted_by(const struct stepper *s, const struct node *n)
{
	const struct value *v = n->out[0];
	const struct node *reader = s->reader[v->id];

	if (reader == NULL)
		return "the output";
	if (reader->op == OP_move)
		return "the next step";
	for (int i = 0; reader->op == OP_kernel && i < reader->nbody; i++)
		for (int k = 0; k < reader->body[i]->nin; k++)
			if (reader->body[i]->in[k] == v)
				return operator_name(s, reader->body[i]);
	return operator_name(s, reader);
}

/* "linear wants h: (S(1)) -> (B), all-gather(0)" for the move N. */
static void add_conversion(const struct stepper *s, const struct node *n,
			   struct text *t)
{
	Dist from = n->in[0]->dist, to = n->out[0]->dist;
	bool same = placement_eq(from.on, to.on);
	const char *name = n->boxing ? n->boxing->value : NULL;

	text_add(t, "%s wants %s: ", wanted_by(s, n),
		 name ? name : s->e->name[n->in[0]->id]);
	text_add(t, "%s -> ", same ? dist_terms(from) : dist_text(from));
	text_add(t, "%s, %s", same ? dist_terms(to) : dist_text(to),
		 move_title(s->e->arena, n));
}

static void add_comment(struct stepper *s, const struct node *n, int indent,
			struct text *t)
{
	int line = place_of(n->span).line;

	if (line == 0 || (line == s->line && n->op != OP_move))
		return;
	text_add(t, "\n");
	s->line = n->op == OP_move ? 0 : line;
	text_add(t, "%.*s/* ", indent, "\t\t\t");
	if (n->op == OP_move) {
		text_line(t, n->span);
		add_conversion(s, n, t);
	} else {
		text_source(t, n->span);
	}
	text_add(t, " */\n");
}

/* The naming scope that N is in, from the param that it reads, or NULL. */
static const char *label_of(struct stepper *s, const struct node *n)
{
	for (int k = 0; k < n->nin; k++) {
		const struct value *v = n->in[k];
		const char *dot;

		if (v->def->op != OP_param || v->name == NULL)
			continue;
		dot = strrchr(v->name, '.');
		if (dot == NULL)
			continue;
		return arena_text(s->e->arena, "%.*s", (int)(dot - v->name),
				  v->name);
	}
	return NULL;
}

static void add_statement(struct stepper *s, const struct call *c,
			  const char *args, int indent, struct text *t)
{
	struct text line = {0};

	s->e->target->call(s->e, c, args, &line);
	text_statement(t, indent, line.at);
	text_free(&line);
}

static void add_item(struct stepper *s, struct text *t, int calls,
		     const char *label)
{
	struct item item = {kept_text(s, t), calls, label};

	PUSH(s->e->arena, s->items, item);
}

static void single_call(struct stepper *s, const struct call *c)
{
	struct text t = {0}, args = {0};

	for (int i = 0; i < c->args.n; i++) {
		text_add(&args, "%s", i > 0 ? ", " : "");
		add_argument(s->e, &c->args.at[i], 0, &args);
	}
	add_comment(s, c->n, 1, &t);
	add_statement(s, c, args.at ? args.at : "", 1, &t);
	text_free(&args);
	add_item(s, &t, 1, label_of(s, c->n));
}

/* ---- loops ---- */

/* The argument values of one loop that no stride gives: an array each. */
struct column {
	const char *name;
	const int64_t *value;	/* one a turn */
};
struct columns {
	struct turn turn;
	int id;
	LIST(struct column) at;
};

static const struct arg *turn_arg(const struct stepper *s, struct turn t,
				  int call, int arg, int i)
{
	const struct call *c = &s->calls.at[t.at + i * t.period + call];
	const struct call *first = &s->calls.at[t.at + call];

	if (c->function != first->function || c->args.n != first->args.n ||
	    c->args.at[arg].kind != first->args.at[arg].kind)
		bug("calls %s and %s taken for equal", c->function,
		    first->function);
	return &c->args.at[arg];
}

/* Whether an argument grows by the same amount from each turn to the next. */
static bool strides(const struct stepper *s, struct turn t, int call, int arg,
		    int64_t *stride)
{
	int64_t last = arg_number(s->e, turn_arg(s, t, call, arg, 0));

	for (int i = 1; i < t.count; i++) {
		int64_t now = arg_number(s->e, turn_arg(s, t, call, arg, i));

		if (i > 1 && now - last != *stride)
			return false;
		*stride = now - last;
		last = now;
	}
	return true;
}

/* How many arguments of T would need an array. */
static int count_columns(const struct stepper *s, struct turn t)
{
	int64_t stride;
	int n = 0;

	for (int call = 0; call < t.period; call++) {
		const struct call *c = &s->calls.at[t.at + call];

		for (int i = 0; i < c->args.n; i++)
			n += c->args.at[i].kind != ARG_TEXT &&
			     !strides(s, t, call, i, &stride);
	}
	return n;
}

static const char *column_of(struct stepper *s, struct columns *k,
			     const struct arg *first, const int64_t *value)
{
	size_t bytes = sizeof *value * (size_t)k->turn.count;
	struct column c = {.value = value};

	for (int i = 0; i < k->at.n; i++)
		if (memcmp(k->at.at[i].value, value, bytes) == 0)
			return k->at.at[i].name;
	if (first->kind == ARG_VALUE)
		c.name = arena_text(s->e->arena, "loop%d_%s", k->id,
				    s->e->name[first->v->id]);
	else
		c.name = arena_text(s->e->arena, "loop%d_number%d", k->id,
				    k->at.n + 1);
	PUSH(s->e->arena, k->at, c);
	return c.name;
}

static void add_column(const struct stepper *s, const char *column,
		       const struct arg *arg, struct text *t)
{
	if (arg->kind == ARG_VALUE) {
		text_add(t, s->e->target->at, arg->ctype);
		text_add(t, "%s[i])", column);
	} else if (arg->kind == ARG_MOVE) {
		text_add(t, "&%s[%s[i]]", s->e->moves, column);
	} else {
		text_add(t, "%s[i]", column);
	}
}

static void loop_argument(struct stepper *s, struct columns *k, int call,
			  int arg, struct text *t)
{
	const struct arg *first = turn_arg(s, k->turn, call, arg, 0);
	int64_t *value, stride;

	if (first->kind == ARG_TEXT) {
		add_argument(s->e, first, 0, t);
		return;
	}
	if (strides(s, k->turn, call, arg, &stride)) {
		add_argument(s->e, first, stride, t);
		return;
	}
	value = NEW_N(s->e->arena, int64_t, k->turn.count);
	for (int i = 0; i < k->turn.count; i++)
		value[i] = arg_number(s->e,
				      turn_arg(s, k->turn, call, arg, i));
	add_column(s, column_of(s, k, first, value), first, t);
}

static void add_arrays(struct stepper *s, const struct columns *k)
{
	struct text *t = &s->tables;

	for (int c = 0; c < k->at.n; c++) {
		const struct column *column = &k->at.at[c];
		struct text row = {0};

		for (int i = 0; i < k->turn.count; i++)
			text_add(&row, "%s%lld", i > 0 ? ", " : "",
				 (long long)column->value[i]);
		text_add(t, "static const int64_t %s[%d] = {\n", column->name,
			 k->turn.count);
		text_list(t, row.at);
		text_add(t, "};\n\n");
		text_free(&row);
	}
}

static void turn_call(struct stepper *s, struct columns *k, int call,
		      int indent, struct text *t)
{
	const struct call *c = &s->calls.at[k->turn.at + call];
	struct text args = {0};

	for (int i = 0; i < c->args.n; i++) {
		text_add(&args, "%s", i > 0 ? ", " : "");
		loop_argument(s, k, call, i, &args);
	}
	add_comment(s, c->n, indent, t);
	add_statement(s, c, args.at ? args.at : "", indent, t);
	text_free(&args);
}

/* A turn of more calls than a function may have: functions of (m, i). */
static int turn_parts(struct stepper *s, struct columns *k, struct text *t)
{
	int parts = 0;

	for (int at = 0; at < k->turn.period; at += MOST_CALLS, parts++) {
		struct text body = {0};
		int end = at + MOST_CALLS;

		if (end > k->turn.period)
			end = k->turn.period;
		s->line = 0;
		for (int call = at; call < end; call++)
			turn_call(s, k, call, 1, &body);
		text_add(&s->e->step,
			 "SBP_CALLS static sbp_status loop%d_%d(%s, "
			 "int64_t i)\n{\n%s\treturn SBP_OK;\n}\n\n",
			 k->id, parts + 1, s->e->target->handle, body.at + (body.at[0] == '\n'));
		text_free(&body);
		text_add(t, "\t\tSBP_TRY(loop%d_%d(m, i));\n", k->id,
			 parts + 1);
	}
	return parts;
}

static void loop_turns(struct stepper *s, struct turn turn)
{
	struct columns k = {.turn = turn, .id = ++s->loops};
	const struct call *first = &s->calls.at[turn.at];
	const char *label = label_of(s, first->n);
	struct text t = {0}, body = {0};
	int calls = turn.period;

	s->line = 0;
	if (turn.period > MOST_CALLS)
		calls = turn_parts(s, &k, &body);
	else
		for (int call = 0; call < turn.period; call++)
			turn_call(s, &k, call, 2, &body);
	add_arrays(s, &k);
	text_add(&t, "\n\t/* %d equal turns */\n", turn.count);
	text_add(&t, "\tfor (int64_t i = 0; i < %d; i++) {\n%s\t}\n",
		 turn.count, body.at + (body.at[0] == '\n'));
	text_free(&body);
	s->line = 0;
	add_item(s, &t, calls, label);
}

static void single_turn(struct stepper *s, struct turn turn)
{
	for (int i = 0; i < turn.period; i++)
		single_call(s, &s->calls.at[turn.at + i]);
}

/* The first and the last turn often have their buffers elsewhere; a loop
 * without them needs no arrays. */
static void loop_calls(struct stepper *s, struct turn turn)
{
	struct turn rest = turn, head = turn, tail = turn;
	int columns = count_columns(s, turn);

	head.count = tail.count = 0;
	rest.at += rest.period;
	rest.count--;
	if (columns > 0 && count_columns(s, rest) < columns) {
		columns = count_columns(s, rest);
		head.count = 1;
	} else {
		rest = turn;
	}
	rest.count--;
	if (columns > 0 && count_columns(s, rest) < columns) {
		tail.at = rest.at + rest.count * rest.period;
		tail.count = 1;
	} else {
		rest.count++;
	}
	if (head.count > 0)
		single_turn(s, head);
	loop_turns(s, rest);
	if (tail.count > 0)
		single_turn(s, tail);
}

/* ---- functions ---- */

static void add_function(struct stepper *s, const char *head,
			 const struct item *item, int n)
{
	struct text *t = &s->e->step;

	text_add(t, "%s(%s)\n{\n", head, s->e->target->handle);
	for (int i = 0; i < n; i++)
		text_add(t, "%s", item[i].text + (i == 0 &&
						 item[i].text[0] == '\n'));
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
		item.text = arena_text(s->e->arena, "\tSBP_TRY(%s(m));\n",
				       name);
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
