/*
 * loop.c: equal turns of calls as a loop. An argument that grows evenly is a
 * stride; what does not is an array with a number for each turn.
 */
#include <string.h>

#include "codegen/emit.h"

/* The argument values of one loop that no stride gives: an array each. */
struct column {
	const char *name;
	const int64_t *value; /* one a turn */
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

	*stride = 0;
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
		s->e->addresses = true;
		text_add(t, s->e->target->at, arg->ctype);
		text_add(t, "%s[i]", column);
		end_address(arg, t);
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
		value[i] = arg_number(s->e, turn_arg(s, k->turn, call, arg, i));
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
			 k->id, parts + 1, s->e->target->handle,
			 body.at + (body.at[0] == '\n'));
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
void loop_calls(struct stepper *s, struct turn turn)
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
