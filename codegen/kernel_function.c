/*
 * kernel_function.c: the functions of a fused kernel: one, or where it is
 * large one that runs a part and one that runs the parts on the rank's
 * threads.
 */
#include <ctype.h>
#include <string.h>

#include "codegen/kernel.h"

#define line(w, ...) put(&(w)->l, __VA_ARGS__)

/* NAME stands in TEXT as a word. */
static bool mentions(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = text; (s = strstr(s, name)) != NULL; s += n) {
		bool before = s > text && (isalnum((unsigned char)s[-1]) ||
					   s[-1] == '_' || s[-1] == '>');
		bool after = isalnum((unsigned char)s[n]) || s[n] == '_';

		if (!before && !after)
			return true;
	}
	return false;
}

/* The extents that TEXT needs. */
static void write_head(struct writer *w, const char *text)
{
	const struct nest *k = w->k;

	for (int i = 0; i < k->head.n; i++)
		if (mentions(text, arena_text(k->a, "size%d", i)))
			line(w, "%s", k->head.at[i]);
}

static const char *failing_operator(const struct nest *k)
{
	for (int i = 0; i < k->nbody; i++)
		if (k->body[i]->op == OP_divisor)
			return "div";
	return "pow";
}

static void add_failure(struct writer *w)
{
	line(w, "if (bad)");
	w->l.indent++;
	line(w, "return sbp_fail(m, line, \"%s\", \"an integer is divided by "
		"0\");",
	     failing_operator(w->k));
	w->l.indent--;
	line(w, "return SBP_OK;");
}

static void serial_function(struct writer *w, const char *body)
{
	struct nest *k = w->k;
	struct text sig = {0};

	text_add(&sig, "static %s @", k->fails ? "sbp_status" : "void");
	add_signature(&sig, &k->p, true);
	line(w, "%s", sig.at);
	text_free(&sig);
	line(w, "{");
	w->l.indent++;
	write_head(w, body);
	if (k->fails)
		line(w, "int bad = 0;");
	text_add(&w->l.t, "%s", body);
	if (k->fails)
		add_failure(w);
	w->l.indent--;
	line(w, "}");
}

static const char *pointer_type(const struct nest *k, int i)
{
	const char *c = dtype_c(k->p.values.at[i]->type.dtype);

	return i < k->p.nout ? c : arena_text(k->a, "const %s", c);
}

/* A reduction whose parts come together after the loop. */
static bool is_cut_fold(const struct nest *k, int i)
{
	return k->cut >= 0 && node_is_fold(k->body[i]);
}

static const char *fold_type(const struct nest *k, int i)
{
	return expr_type(k->body[i]->out[0]->type.dtype, k->vectors);
}

static void write_struct(struct writer *w)
{
	const struct params *p = &w->k->p;

	line(w, "struct @_args {");
	w->l.indent++;
	for (int i = 0; i < p->values.n; i++)
		line(w, "%s *%s;", pointer_type(w->k, i), p->names.at[i]);
	for (int i = 0; i < p->more_decls.n; i++)
		line(w, "%s;", p->more_decls.at[i]);
	for (int i = 0; i < w->k->nbody; i++)
		if (is_cut_fold(w->k, i))
			line(w, "%s *%s;", fold_type(w->k, i), w->k->name[i]);
	w->l.indent--;
	line(w, "};");
	text_add(&w->l.t, "\n");
}

static void write_part(struct writer *w, const char *body)
{
	const struct params *p = &w->k->p;
	struct text heads = {0};

	line(w, "static void @_part(void *context, int64_t lo, int64_t hi)");
	line(w, "{");
	w->l.indent++;
	line(w, "const struct @_args *args = context;");
	for (int i = 0; i < p->values.n; i++)
		if (mentions(body, p->names.at[i]))
			line(w, "%s *%s%s = args->%s;", pointer_type(w->k, i),
			     param_restrict(p, i), p->names.at[i],
			     p->names.at[i]);
	for (int i = 0; i < w->k->head.n; i++)
		if (mentions(body, arena_text(w->k->a, "size%d", i)))
			text_add(&heads, "%s", w->k->head.at[i]);
	for (int i = 0; i < p->more_decls.n; i++) {
		const char *name = strrchr(p->more_decls.at[i], ' ') + 1;

		if (mentions(body, name) ||
		    (heads.at && mentions(heads.at, name)))
			line(w, "const %s = args->%s;", p->more_decls.at[i],
			     name);
	}
	text_free(&heads);
	write_head(w, body);
	text_add(&w->l.t, "\n%s", body);
	w->l.indent--;
	line(w, "}");
	text_add(&w->l.t, "\n");
}

/* How many parts; those of a cut row are a fixed number of elements. */
static const char *parts_text(const struct nest *k)
{
	const struct loop *l = &k->loop[k->cut];

	if (l->fixed)
		return arena_text(k->a, "%lld",
				  (long long)((l->max + k->grain - 1) /
					      k->grain));
	return arena_text(k->a, "(%s + %lld) / %lld", l->extent,
			  (long long)k->grain - 1, (long long)k->grain);
}

static void write_args(struct writer *w)
{
	const struct nest *k = w->k;
	const struct params *p = &k->p;
	struct text args = {0};
	const char *comma = "";

	text_add(&args, "struct @_args args = {");
	for (int i = 0; i < p->values.n; i++, comma = ", ")
		text_add(&args, "%s%s", comma, p->names.at[i]);
	for (int i = 0; i < p->more_decls.n; i++)
		text_add(&args, ", %s", strrchr(p->more_decls.at[i], ' ') + 1);
	for (int i = 0; i < k->nbody; i++)
		if (is_cut_fold(k, i))
			text_add(&args, ", %s_parts", k->name[i]);
	text_add(&args, "};");
	line(w, "%s", args.at);
	text_free(&args);
}

/* The calls of the parts, and what follows them. */
static void write_calls(struct writer *w)
{
	struct nest *k = w->k;
	int64_t most;

	if (k->cut < 0) {
		write_args(w);
		text_add(&w->l.t, "\n");
		line(w, "sbp_parallel(m, %s, %lld, @_part, &args);",
		     k->loop[k->parallel].extent, (long long)k->grain);
		return;
	}
	most = (k->loop[k->cut].max + k->grain - 1) / k->grain;
	for (int i = 0; i < k->nbody; i++)
		if (is_cut_fold(k, i))
			line(w, "%s %s_parts[%lld];", fold_type(k, i),
			     k->name[i], (long long)most);
	write_args(w);
	text_add(&w->l.t, "\n");
	line(w, "sbp_parallel(m, %s, 1, @_part, &args);", parts_text(k));
	body_whole(w, parts_text(k));
}

static void parallel_function(struct writer *w, const char *body)
{
	struct nest *k = w->k;
	struct text sig = {0};
	const char *end;

	end = k->loop[k->cut < 0 ? k->parallel : k->cut].extent;
	write_struct(w);
	write_part(w, body);
	text_add(&sig, "static void @");
	add_signature(&sig, &k->p, false);
	line(w, "%s", sig.at);
	text_free(&sig);
	line(w, "{");
	w->l.indent++;
	write_head(w, end);
	write_calls(w);
	w->l.indent--;
	line(w, "}");
}

const char *nest_text(struct nest *k)
{
	struct writer body = {.k = k, .l.indent = 1}, w = {.k = k};
	int place = place_of(k->n->span).line;

	if (k->fails) {
		k->p.model = k->p.status = true;
		param_text(k->e, &k->p, "int line",
			   arena_text(k->a, "%d", place));
	}
	body.done = NEW_N(k->a, bool, k->nbody);
	if (k->cut >= 0)
		body_parts(&body);
	else
		body_loops(&body);
	text_add(&body.l.t, "%s", "");
	if (k->parallel >= 0 || k->cut >= 0)
		parallel_function(&w, body.l.t.at);
	else
		serial_function(&w, body.l.t.at);
	text_free(&body.l.t);
	return taken_text(k->a, &w.l.t);
}
