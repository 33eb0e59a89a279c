/*
 * lower.c: statements to a graph. Defs are inlined, loops unrolled and
 * compile-time values evaluated on the way.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frontend/lower.h"

/* ---- errors ---- */

Span place(const struct low *l, Span at)
{
	return l->f.user.lo ? l->f.user : at;
}

void hint(struct low *l, const char *format, ...)
{
	char s[400];
	va_list args;

	va_start(args, format);
	vsnprintf(s, sizeof s, format, args);
	va_end(args);
	l->hint = arena_text(l->a, "%s", s);
}

Val fail(struct low *l, Span at, const char *format, ...)
{
	char s[600];
	va_list args;

	va_start(args, format);
	vsnprintf(s, sizeof s, format, args);
	va_end(args);
	diag_error(place(l, at), "%s", s);
	if (l->hint)
		diag_hint("%s", l->hint);
	l->hint = NULL;
	diag_trail(l->f.trail);
	return val_bad();
}

bool count_steps(struct low *l, int64_t n, Span at)
{
	if (l->stop)
		return false;
	l->steps += n > 0 ? n : 0;
	if (l->steps <= MAX_STEPS)
		return true;
	fail(l, at, "the program unrolls to more than %d steps", MAX_STEPS);
	l->stop = true;
	return false;
}

bool deeper(struct low *l, Span at)
{
	if (++l->depth <= MAX_NESTING)
		return true;
	l->depth--;
	fail(l, at, "calls, blocks and expressions are nested too deeply");
	l->stop = true;
	return false;
}

/* ---- names of values ---- */

void name_value(struct low *l, Val v, Name name, Span at)
{
	Name full;

	if (v.kind != V_TENSOR || !l->f.naming.open)
		return;
	full = full_name(l, name);
	map_set(l->a, &l->values, full, v.tensor);
	if (v.tensor->name)
		return;
	v.tensor->name = full;
	v.tensor->span = at;
}

/* ---- let and assignment ---- */

static bool is_placed_terms(struct low *l, const struct expr *e)
{
	struct var *var;

	if (e->kind != E_CALL)
		return false;
	var = scope_find(l->f.scope, e->name);
	return var && var->v.kind == V_PLACEMENT;
}

static Val eval_let(struct low *l, const struct expr *e)
{
	const struct request *r;

	if (is_term_list(e))
		return eval_terms(l, e);
	if (is_placed_terms(l, e)) {
		r = eval_request(l, e);
		return r ? (Val){V_DIST, {.request = r}} : val_bad();
	}
	return eval(l, e);
}

static void lower_let(struct low *l, const struct stmt *s)
{
	Val v = eval_let(l, s->e);

	if (v.kind == V_TENSOR) {
		hint(l, "%s = ... names a tensor", s->name);
		v = fail(l, s->e->span,
			 "a let binds a value known at compile "
			 "time, this is %s",
			 val_what(v));
	}
	scope_bind(l, l->f.scope, s->name, v, s->name_at);
}

static void assign(struct low *l, const struct expr *target, Val v)
{
	scope_assign(l, target->name, v, target->span);
	name_value(l, v, target->name, target->span);
}

static void lower_assign(struct low *l, const struct stmt *s)
{
	Val v = eval(l, s->e);
	int n = s->list->l.n;

	if (n == 1) {
		assign(l, s->list->l.at[0], v);
		return;
	}
	if (v.kind != V_BAD && (!val_is_list(v) || val_count(v) != n))
		v = fail(l, s->span, "%d names for %s%s", n, val_what(v),
			 val_is_list(v) ? text_brief(" of %lld",
						     (long long)val_count(v))
					: "");
	for (int i = 0; i < n; i++)
		assign(l, s->list->l.at[i],
		       v.kind == V_BAD ? v : val_nth(v, i));
}

/* ---- for, if, assert, on, return ---- */

static void lower_for(struct low *l, const struct stmt *s)
{
	Val list = eval(l, s->e);
	int errors = diag_errors();

	if (list.kind == V_BAD)
		return;
	if (!val_is_list(list)) {
		if (list.kind == V_INT)
			hint(l, "0..%lld counts", (long long)list.i);
		fail(l, s->e->span, "for goes over a range or list, found %s",
		     val_what(list));
		return;
	}
	for (int64_t i = 0; i < val_count(list); i++) {
		if (!count_steps(l, 1, s->span))
			return;
		scope_bind(l, l->f.scope, s->name, val_nth(list, i),
			   s->name_at);
		lower_stmts(l, s->body);
		if (diag_errors() > errors || l->f.returned)
			return;
	}
}

static void lower_if(struct low *l, const struct stmt *s)
{
	bool truth;

	if (val_truth(l, eval(l, s->e), s->e->span, &truth))
		lower_stmts(l, truth ? s->body : s->other);
}

static void lower_assert(struct low *l, const struct stmt *s)
{
	bool truth;
	Val message = {.kind = V_NONE};

	if (!val_truth(l, eval(l, s->e), s->e->span, &truth) || truth)
		return;
	if (s->as)
		message = eval(l, s->as);
	fail(l, s->e->span, "%s",
	     message.kind == V_TEXT ? message.text : "the assertion fails");
	if (l->f.def)
		l->f.returned = true;
}

static void lower_on(struct low *l, const struct stmt *s)
{
	const struct request *r = eval_request(l, s->on);
	const struct placement *saved = l->f.on;

	if (!r)
		return;
	if (!r->on || r->n) {
		fail(l, s->on->span, "a block stands on a placement");
		return;
	}
	l->f.on = r->on;
	lower_stmts(l, s->body);
	l->f.on = saved;
}

static void lower_return(struct low *l, const struct stmt *s)
{
	struct args args;
	struct vals *list;

	if (!l->f.def) {
		fail(l, s->span, "return stands inside a def");
		return;
	}
	l->f.returned = true;
	if (!eval_args(l, s->list->l.at, s->list->l.n, &args))
		return;
	l->f.result = args.at[0].v;
	if (args.n == 1)
		return;
	list = NEW(l->a, struct vals);
	list->at = NEW_N(l->a, Val, args.n);
	for (; list->n < args.n; list->n++)
		list->at[list->n] = args.at[list->n].v;
	l->f.result = (Val){V_LIST, {.list = list}};
}

/* ---- all statements ---- */

static void misplaced(struct low *l, const struct stmt *s)
{
	static const char *const words[] = {
		[S_PLACEMENT] = "placement",
		[S_DEF] = "def",
		[S_MODEL] = "model",
		[S_IMPORT] = "import",
	};

	fail(l, s->name ? s->name_at : s->span,
	     "%s stands at file level, outside models and defs",
	     words[s->kind]);
}

static void lower_stmt(struct low *l, const struct stmt *s)
{
	switch (s->kind) {
	case S_ASSIGN:
		lower_assign(l, s);
		break;
	case S_LET:
		lower_let(l, s);
		break;
	case S_INPUT:
		lower_leaf(l, s, OP_input);
		break;
	case S_PARAM:
		lower_leaf(l, s, OP_param);
		break;
	case S_STATE:
		lower_leaf(l, s, OP_state);
		break;
	case S_CONST:
		lower_leaf(l, s, OP_constant);
		break;
	case S_OUTPUT:
		lower_output(l, s);
		break;
	case S_UPDATE:
		lower_update(l, s);
		break;
	case S_DATA:
		lower_data(l, s);
		break;
	case S_DISTRIBUTE:
		lower_distribute(l, s);
		break;
	case S_ASSERT:
		lower_assert(l, s);
		break;
	case S_FOR:
		lower_for(l, s);
		break;
	case S_IF:
		lower_if(l, s);
		break;
	case S_ON:
		lower_on(l, s);
		break;
	case S_RETURN:
		lower_return(l, s);
		break;
	case S_TRAIN:
	case S_REPORT:
		fail(l, s->span, "not part of this version: %s",
		     s->kind == S_TRAIN ? "train" : "report");
		break;
	default:
		misplaced(l, s);
	}
}

void lower_stmts(struct low *l, const struct stmts *s)
{
	int errors = diag_errors();

	if (!s || !s->l.n || !deeper(l, s->l.at[0]->span))
		return;
	for (int i = 0; i < s->l.n && !l->f.returned && !l->stop; i++) {
		if (!count_steps(l, 1, s->l.at[i]->span))
			break;
		lower_stmt(l, s->l.at[i]);
		/* One error a call is enough inside the prelude. */
		if (l->f.user.lo && diag_errors() > errors)
			l->f.returned = true;
		if (diag_errors() >= MAX_ERRORS && !l->stop) {
			l->stop = true;
			diag_note((Span){0, 0}, "%d errors are enough",
				  MAX_ERRORS);
		}
	}
	l->depth--;
}
