/*
 * kernel_call.c: products of matrices, and what routines are written with.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/kernel.h"

/* ---- routines ---- */

const char *routine_input(struct routine *r, int i)
{
	return param_value(r->e, &r->p, r->n->in[i], false);
}

const char *routine_element(struct routine *r, const char *name,
			    const char *offset)
{
	return arena_text(r->a, "%s[%s]", name, offset);
}

void routine_start(struct routine *r, struct emitter *e, const struct node *n)
{
	*r = (struct routine){.e = e, .a = e->arena, .n = n, .l.indent = 1};
	if (n->nout == 1 && n->op != OP_kernel)
		param_value(e, &r->p, n->out[0], true);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool mentions(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = text; (s = strstr(s, name)) != NULL; s += n)
		if ((s == text || !is_word(s[-1])) && !is_word(s[n]))
			return true;
	return false;
}

/* Extents that fell out of products with 0 are no parameters. */
static void drop_unused(struct params *p, const char *text)
{
	int n = 0;

	for (int i = 0; i < p->more.n; i++) {
		if (!mentions(text, strrchr(p->more_decls.at[i], ' ') + 1))
			continue;
		p->more.at[n] = p->more.at[i];
		p->more_decls.at[n++] = p->more_decls.at[i];
	}
	p->more.n = p->more_decls.n = n;
}

/* A tensor without elements is a parameter that nothing reads or writes. */
static void name_unused(struct routine *r)
{
	for (int i = 0; i < r->p.values.n; i++)
		if (r->l.t.at == NULL ||
		    !mentions(r->l.t.at, r->p.names.at[i]))
			put(&r->l, "(void)%s;", r->p.names.at[i]);
}

void routine_done(struct routine *r, struct call *c)
{
	const struct node *n = r->n;
	struct lines l = {0};
	struct text sig = {0};
	const struct node *op = n->op == OP_kernel ? n->body[n->nbody - 1] : n;
	Shape shape = n->out[0]->type.shape;
	const struct local *own = &r->e->p->local[n->out[0]->id];

	name_unused(r);
	if (r->p.status)
		put(&r->l, "return SBP_OK;");
	drop_unused(&r->p, r->l.t.at ? r->l.t.at : "");
	text_add(&sig, "static %s @", r->p.status ? "sbp_status" : "void");
	add_signature(&sig, &r->p, true);
	put(&l, "%s", sig.at);
	text_free(&sig);
	put(&l, "{");
	text_add(&l.t, "%s", r->l.t.at ? r->l.t.at : "");
	text_free(&r->l.t);
	put(&l, "}");
	for (int i = 0; i < shape.rank; i++)
		shape.d[i] = own->max.d[i];
	define_function(r->e, n, &r->p, op_info(op->op)->name, shape,
			taken_text(r->a, &l.t), c);
}

static bool is_number_text(const char *s)
{
	return isdigit((unsigned char)s[0]) && s[strspn(s, "0123456789")] == 0;
}

/* X as a factor: in parentheses where it is a sum. */
static const char *factor(struct routine *r, const char *x)
{
	return strstr(x, " + ") || strstr(x, " - ") ? arena_text(r->a, "(%s)", x)
							  : x;
}

const char *routine_times(struct routine *r, const char *x, const char *y)
{
	if (!strcmp(x, "0") || !strcmp(y, "0"))
		return "0";
	if (!strcmp(x, "1"))
		return y;
	if (!strcmp(y, "1"))
		return x;
	if (is_number_text(x) && is_number_text(y))
		return arena_text(r->a, "%lld",
				  strtoll(x, NULL, 10) * strtoll(y, NULL, 10));
	if (is_number_text(y))
		return arena_text(r->a, "%s * %s", y, factor(r, x));
	return arena_text(r->a, "%s * %s", factor(r, x), factor(r, y));
}

const char *routine_plus(struct routine *r, const char *x, const char *y)
{
	if (!strcmp(x, "0"))
		return y;
	if (!strcmp(y, "0"))
		return x;
	return arena_text(r->a, "%s + %s", x, y);
}

const char *routine_count(struct routine *r, const struct value *v, int from,
			  int to)
{
	const char *s = "1";

	for (int i = from; i < to; i++)
		s = routine_times(r, s, param_axis(r->e, &r->p, v, i));
	return s;
}

const char *routine_offset(struct routine *r, const struct value *v,
			   const char *const *at)
{
	const char *s = "0";

	for (int i = 0; i < v->type.shape.rank; i++)
		s = routine_plus(
			r, routine_times(r, s, param_pitch(r->e, &r->p, v, i)),
			at[i]);
	return s;
}

const char *routine_loop(struct routine *r, int axis, const char *n)
{
	char c = "ijklpqrs"[axis];

	if (!strcmp(n, "1"))
		return "0";
	put_open(&r->l, "for (int64_t %c = 0; %c < %s; %c++)", c, c, n, c);
	return arena_text(r->a, "%c", c);
}

void routine_loops(struct routine *r, const struct value *v, int from, int to,
		   const char **at)
{
	for (int i = from; i < to; i++)
		at[i] = routine_loop(r, i, param_axis(r->e, &r->p, v, i));
}

/* An extent that varies may be negative for all that a compiler knows, and
 * then it warns of memcpy; it makes one of the loop by itself. */
void routine_copy(struct routine *r, const char *to, const char *from,
		  const char *at, const char *count)
{
	int size = dtype_size(r->n->out[0]->type.dtype);

	if (!strcmp(count, "1")) {
		put(&r->l, "y[%s] = %s[%s];", to, from, at);
	} else if (is_number_text(count)) {
		put(&r->l, "__builtin_memcpy(%s, %s, %lld);",
		    routine_plus(r, "y", to), routine_plus(r, from, at),
		    (long long)size * strtoll(count, NULL, 10));
	} else {
		put(&r->l, "for (int64_t x = 0; x < %s; x++)", count);
		r->l.indent++;
		put(&r->l, "y[%s] = %s[%s];", routine_plus(r, to, "x"), from,
		    routine_plus(r, at, "x"));
		r->l.indent--;
	}
}

bool call_routine(struct emitter *e, const struct node *n, struct call *c)
{
	Writer write = move_writer(n->op);
	struct routine r;

	if (!write)
		write = index_writer(n->op);
	if (!write)
		return false;
	routine_start(&r, e, n);
	write(&r);
	put_close(&r.l, 1);
	routine_done(&r, c);
	return true;
}

/* ---- products ---- */

struct product {
	struct routine r;
	const struct node *n;	/* the matmul */
	const struct value *a, *b, *y;	/* a, b: before their transposes */
	bool ta, tb;
	bool direct;		/* called without a function of its own */
	int batch;		/* axes of y before the last two */
};

/* The operand that a transpose in the body hands on. */
static const struct value *untransposed(const struct node *k,
					const struct value *v, bool *t)
{
	for (int i = 0; k->op == OP_kernel && i < k->nbody - 1; i++)
		if (k->body[i]->out[0] == v) {
			*t = true;
			return k->body[i]->in[0];
		}
	return v;
}

static bool one_batch(const struct value *v)
{
	for (int i = 0; i < rank_of(v) - 2; i++)
		if (v->type.shape.d[i] != 1)
			return false;
	return true;
}

/* An extent of V: in a direct call the argument itself. */
static const char *extent_of(struct product *p, const struct value *v, int axis)
{
	const struct local *own = &p->r.e->p->local[v->id];

	if (!p->direct || own->extent[axis] == NULL)
		return param_axis(p->r.e, &p->r.p, v, axis);
	return arena_text(p->r.a, "m->own[%d].n", own->extent[axis]->id);
}

/* With one matrix B all rows of A, of all matrices, are those of one. */
static const char *rows_of(struct product *p)
{
	const char *s = "1";
	int last = rank_of(p->y) - 1;

	for (int i = p->direct ? 0 : last - 1; i < last; i++)
		s = routine_times(&p->r, s, extent_of(p, p->y, i));
	return s;
}

static bool is_slice(const struct product *p, const struct value *v)
{
	return p->r.e->p->local[v->id].slice_of != NULL;
}

/* Dense matrices of f32 have functions of their own. */
static bool is_plain(const struct product *p)
{
	return p->y->type.dtype == DT_F32 && !is_slice(p, p->a) &&
	       !is_slice(p, p->b);
}

static const char *function_of(struct product *p)
{
	if (!is_plain(p))
		return "sbp_gemm";
	return arena_text(p->r.a, "sbp_gemm_%c%c", p->ta ? 't' : 'n',
			  p->tb ? 't' : 'n');
}

/* "SBP_F64, 0, 1": what sbp_gemm wants to know and the others do not. */
static const char *kind_of(struct product *p)
{
	char name[8];
	const char *s = dtype_name(p->y->type.dtype);
	int i;

	if (is_plain(p))
		return "";
	for (i = 0; s[i] && i < 7; i++)
		name[i] = (char)toupper((unsigned char)s[i]);
	name[i] = '\0';
	return arena_text(p->r.a, "SBP_%s, %d, %d, ", name, p->ta, p->tb);
}

static void add_text(struct product *p, struct call *c, const char *text)
{
	struct arg arg = {.kind = ARG_TEXT, .text = name_of(text)};

	if (is_number_text(text)) {
		arg.kind = ARG_INT;
		arg.i = strtoll(text, NULL, 10);
	}
	call_arg(p->r.e, c, arg);
}

static void add_value(struct product *p, struct call *c, const struct value *v)
{
	call_arg(p->r.e, c, buffer_arg(p->r.e, v));
}

static const char *inner_of(struct product *p)
{
	return extent_of(p, p->a, rank_of(p->a) - (p->ta ? 2 : 1));
}

/* From a row of V in memory to the next. */
static const char *pitch_of(struct product *p, const struct value *v)
{
	return extent_of(p, lies_in(p->r.e->p, v), rank_of(v) - 1);
}

static const char *columns_of(struct product *p)
{
	return extent_of(p, p->b, rank_of(p->b) - (p->tb ? 2 : 1));
}

static void call_direct(struct product *p, struct call *c)
{
	const char *kind = kind_of(p);

	c->function = name_of(function_of(p));
	c->status = true;
	c->n = p->r.n;
	add_text(p, c, "m");
	if (*kind != '\0')
		add_text(p, c, arena_text(p->r.a, "%.*s",
					  (int)strlen(kind) - 2, kind));
	add_text(p, c, rows_of(p));
	add_text(p, c, columns_of(p));
	add_text(p, c, inner_of(p));
	add_value(p, c, p->a);
	if (!is_plain(p))
		add_text(p, c, pitch_of(p, p->a));
	add_value(p, c, p->b);
	if (!is_plain(p))
		add_text(p, c, pitch_of(p, p->b));
	add_value(p, c, p->y);
}

/* The place of the matrix of V that goes with indices AT of y's batch. */
static const char *matrix_of(struct product *p, const struct value *v,
			     const char *const *at)
{
	int n = rank_of(v) - 2, shift = p->batch - n;
	const char *s = "0";

	for (int i = 0; i < n + 2; i++) {
		const char *pitch = param_pitch(p->r.e, &p->r.p, v, i);

		s = routine_times(&p->r, s, pitch);
		if (i < n && v->type.shape.d[i] != 1)
			s = routine_plus(&p->r, s, at[i + shift]);
	}
	s = arena_text(p->r.a, strcmp(s, "0") ? "%s + %s" : "%s",
		       param_value(p->r.e, &p->r.p, v, false), s);
	return s;
}

/* A matrix of V as arguments. */
static const char *operand_of(struct product *p, const struct value *v,
			      const char *const *at)
{
	const char *s = matrix_of(p, v, at);

	return is_plain(p) ? s
			   : arena_text(p->r.a, "%s, %s", s, pitch_of(p, v));
}

static void call_batches(struct product *p, struct call *c)
{
	const char *at[MAX_RANK], *y, *a, *b;
	struct routine *r = &p->r;

	param_value(r->e, &r->p, p->y, true);
	r->p.model = r->p.status = true;
	routine_loops(r, p->y, 0, p->batch, at);
	y = matrix_of(p, p->y, at);
	a = operand_of(p, p->a, at);
	b = operand_of(p, p->b, at);
	put(&r->l, "SBP_TRY(%s(m, %s%s, %s, %s, %s, %s, %s));", function_of(p),
	    kind_of(p), rows_of(p), columns_of(p), inner_of(p), a, b, y);
	put_close(&r->l, 1);
	routine_done(r, c);
}

void call_gemm(struct emitter *e, const struct node *n, struct call *c)
{
	struct product p = {.n = n};

	routine_start(&p.r, e, n);
	p.r.p = (struct params){0};
	if (n->op == OP_kernel)
		p.n = n->body[n->nbody - 1];
	p.y = p.n->out[0];
	p.a = untransposed(n, p.n->in[0], &p.ta);
	p.b = untransposed(n, p.n->in[1], &p.tb);
	p.batch = rank_of(p.y) - 2;
	p.direct = one_batch(p.y) || (one_batch(p.b) && !p.ta &&
				      rank_of(p.a) == rank_of(p.y));
	if (p.direct)
		call_direct(&p, c);
	else
		call_batches(&p, c);
}
