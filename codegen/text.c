/*
 * text.c: what all emitted text is made of: identifiers, constants, comments
 * and lines that fit.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "codegen/codegen.h"

enum { COLUMNS = 80, TAB = 8, MOST_SOURCE = 80 };

/* ---- names ---- */

const char *c_name(struct arena *a, const char *name)
{
	size_t n = strlen(name);
	char *s = arena_alloc(a, n + 1);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = name[i];

		s[i] = c < 128 && isalnum(c) ? (char)c : '_';
	}
	return s;
}

/* Open addressing by the pointer of an interned name. */
struct name_set {
	struct arena *arena;
	struct taken {
		Name name;
		int copies;
	} * at;
	int n, room; /* room: a power of 2 */
};

struct name_set *name_set_new(struct arena *a)
{
	struct name_set *s = NEW(a, struct name_set);

	s->arena = a;
	s->room = 64;
	s->at = NEW_N(a, struct taken, s->room);
	return s;
}

/* By content, so that the order of nothing depends on addresses. */
static struct taken *name_slot(const struct name_set *s, Name name)
{
	uint64_t i = hash_bytes(0, name, strlen(name));

	while (s->at[i & (s->room - 1)].name != NULL &&
	       s->at[i & (s->room - 1)].name != name)
		i++;
	return &s->at[i & (s->room - 1)];
}

static struct taken *name_add(struct name_set *s, Name name)
{
	struct taken *old = s->at, *slot;

	if (2 * ++s->n > s->room) {
		s->room *= 2;
		s->at = NEW_N(s->arena, struct taken, s->room);
		for (int i = 0; i < s->room / 2; i++)
			if (old[i].name != NULL)
				*name_slot(s, old[i].name) = old[i];
	}
	slot = name_slot(s, name);
	*slot = (struct taken){name, 1};
	return slot;
}

const char *name_unique(struct name_set *s, const char *name)
{
	Name base = name_of(name), fresh = base;
	struct taken *slot = name_slot(s, base);

	while (name_slot(s, fresh)->name != NULL)
		fresh = name_of(
			arena_text(s->arena, "%s_%d", base, ++slot->copies));
	name_add(s, fresh);
	return fresh;
}

/* The distribution as a part of a name: "B_S0". */
static const char *dist_name(struct arena *a, Dist d)
{
	char *s = arena_alloc(a, 32);
	size_t n = 0;

	for (int i = 0; i < d.on->naxes; i++) {
		Sbp t = d.t[i];

		if (i > 0)
			s[n++] = '_';
		s[n++] = "_BSP"[t.kind];
		if (t.kind == SBP_S)
			s[n++] = (char)('0' + t.axis);
	}
	return s;
}

/* A temporary is named after the operator that makes it, a converted value
 * after the value, and so is the copy of a state. */
static const char *value_name(const struct program *p, const struct value *v,
			      const char *const *names)
{
	const struct node *n = v->def;

	if (v->name != NULL)
		return c_name(p->arena, v->name);
	if (n->op == OP_move)
		return arena_text(p->arena, "%s_%s", names[n->in[0]->id],
				  dist_name(p->arena, v->dist));
	if (n->op == OP_to)
		return arena_text(p->arena, "%s_old", names[n->in[0]->id]);
	if (n->op == OP_kernel && n->nbody > 0)
		n = n->body[n->nbody - 1];
	return op_info(n->op)->name;
}

/* "h_B_S0" where H itself is taken by a step of its conversion. */
const char **value_names(struct program *p)
{
	struct name_set *set = name_set_new(p->arena);
	const char **names = NEW_N(p->arena, const char *, p->g->values.n);

	for (int i = 0; i < p->g->nodes.n; i++) {
		const struct node *n = p->g->nodes.at[i];

		for (int k = 0; k < n->nout; k++)
			if (n->out[k]->name != NULL)
				names[n->out[k]->id] = name_unique(
					set, value_name(p, n->out[k], names));
	}
	for (int i = 0; i < p->g->nodes.n; i++) {
		const struct node *n = p->g->nodes.at[i];

		for (int k = 0; k < n->nout; k++)
			if (n->out[k]->name == NULL)
				names[n->out[k]->id] = name_unique(
					set, value_name(p, n->out[k], names));
	}
	return names;
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* ---- constants ---- */

void text_double(struct text *t, double d)
{
	size_t at = t->n;

	if (isnan(d)) {
		text_add(t, "__builtin_nan(\"\")");
		return;
	}
	if (isinf(d)) {
		text_add(t, "%s__builtin_inf()", d < 0 ? "-" : "");
		return;
	}
	text_add_double(t, d);
	if (strpbrk(t->at + at, ".e") == NULL && d == 0 && signbit(d))
		text_add(t, ".0");
}

/* Octal escapes of three digits, and no '?', which could begin a trigraph. */
void text_string(struct text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s != '\0'; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			text_add(t, "\\%c", c);
		else if (c < ' ' || c > '~' || c == '?')
			text_add(t, "\\%03o", c);
		else
			text_add_n(t, s, 1);
	}
	text_add(t, "\"");
}

/* ---- comments ---- */

/* No comment may end or begin in it. */
void text_comment(struct text *t, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		bool meets = i > 0 && ((s[i - 1] == '*' && c == '/') ||
				       (s[i - 1] == '/' && c == '*'));

		if (meets)
			text_add(t, " ");
		if ((unsigned char)c < ' ' || c == 127)
			c = ' ';
		text_add_n(t, &c, 1);
	}
}

void text_line(struct text *t, Span at)
{
	struct place place = place_of(at);
	const char *file = path_base(place.path);

	text_comment(t, file, strlen(file));
	text_add(t, ":%d  ", place.line);
}

void text_source(struct text *t, Span at)
{
	const struct source *s = source_of(at);
	const char *line, *end;
	size_t start = t->n;
	ptrdiff_t room;
	bool long_line;

	if (s == NULL)
		return;
	line = s->text + (at.lo - s->base);
	while (line > s->text && line[-1] != '\n')
		line--;
	line += strspn(line, " \t");
	end = line + strcspn(line, "\r\n");
	text_line(t, at);
	room = MOST_SOURCE - (ptrdiff_t)(t->n - start);
	long_line = end - line > room;
	if (long_line) {
		end = line + (room < 24 ? 20 : room - 4);
		while (end > line && ((unsigned char)*end & 0xc0) == 0x80)
			end--;
	}
	while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	text_comment(t, line, (size_t)(end - line));
	text_add(t, "%s", long_line ? " ..." : "");
}

/* Whether the bracket that S begins with is closed by the last of N bytes,
 * or before an `as` or `on`. */
static bool closes_last(const char *s, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		depth += (s[i] == '(') - (s[i] == ')');
		if (depth == 0)
			return i == n - 1 || strncmp(s + i, ") as ", 5) == 0 ||
			       strncmp(s + i, ") on ", 5) == 0;
	}
	return false;
}

const char *text_call(struct arena *a, Span at)
{
	const struct source *s = source_of(at);
	const char *text;
	size_t n = 0, size = at.hi - at.lo;

	if (s == NULL)
		return NULL;
	text = s->text + (at.lo - s->base);
	while (n < size && (isalnum((unsigned char)text[n]) || text[n] == '_'))
		n++;
	if (n == 0 || n == size || !closes_last(text + n, size - n))
		return NULL;
	return arena_text(a, "%.*s", (int)n, text);
}

void text_local(struct text *t, const struct program *p, const struct value *v)
{
	const struct local *own = &p->local[v->id];
	bool even = shape_eq(own->max, v->type.shape);

	text_add(t, "%s", dtype_name(v->type.dtype));
	text_add(t, "%s", own->max.rank == 0 ? "[]" : shape_text(own->max));
	if (!even)
		text_add(t, " of %s", shape_text(v->type.shape));
	text_add(t, " %s", dist_terms(v->dist));
}

static void add_ranks(struct text *t, const struct placement *p)
{
	int row = p->naxes == 2 ? p->extent[1] : p->nranks;

	text_add(t, "%s", p->naxes == 2 ? "[" : "");
	for (int i = 0; i < p->nranks; i++) {
		text_add(t, "%s", i > 0 ? ", " : "");
		text_add(t, "%s%d%s", i % row == 0 ? "[" : "", p->rank[i],
			 i % row == row - 1 ? "]" : "");
	}
	text_add(t, "%s", p->naxes == 2 ? "]" : "");
}

static void add_mesh(struct text *t, const struct placement *p)
{
	int last = p->nranks - 1;

	if (p->rank[last] - p->rank[0] == last)
		text_add(t, "[%d..%d]", p->rank[0], p->rank[last] + 1);
	else
		text_add(t, "[%d, ...]", p->rank[0]);
	for (int i = 0; i < p->naxes; i++)
		text_add(t, "%s%d", i == 0 ? " as [" : ", ", p->extent[i]);
	text_add(t, "]");
}

void text_placement(struct text *t, const struct placement *p)
{
	if (p->name != NULL)
		text_add(t, "%s = ", p->name);
	text_add(t, "%s", p->device == DEV_CUDA ? "cuda" : "cpu");
	if (p->naxes <= 2 && p->nranks <= 16)
		add_ranks(t, p);
	else
		add_mesh(t, p);
}

/* ---- lines ---- */

static void text_tabs(struct text *t, int n)
{
	for (int i = 0; i < n; i++)
		text_add(t, "\t");
}

void text_tabs_to(struct text *t, const char *line, int column)
{
	int at = 0;

	for (; *line != '\0'; line++)
		at = *line == '\t' ? at / TAB * TAB + TAB : at + 1;
	if (at >= column)
		text_add(t, " ");
	for (; at < column; at = at / TAB * TAB + TAB)
		text_add(t, "\t");
}

/* The end of the words of [s, end) that fit in WIDTH, at least one word.
 * What is in brackets stays together. */
static const char *fit_words(const char *s, const char *end, size_t width)
{
	const char *best = NULL;
	int depth = 0;

	for (const char *c = s; c <= end; c++) {
		depth += c < end ? (*c == '[') - (*c == ']') : 0;
		if ((c == end || (*c == ' ' && depth == 0)) &&
		    (best == NULL || (size_t)(c - s) <= width))
			best = c;
	}
	return best == NULL ? end : best;
}

void text_paragraphs(struct text *t, const char *prefix, const char *s)
{
	size_t width = COLUMNS - strlen(prefix);

	while (*s != '\0') {
		const char *end = s + strcspn(s, "\n");

		if (s == end)
			text_add(t, "%.*s\n", (int)strcspn(prefix + 1, " ") + 1,
				 prefix);
		while (s < end) {
			const char *cut = fit_words(s, end, width);

			text_add(t, "%s", prefix);
			text_comment(t, s, (size_t)(cut - s));
			text_add(t, "\n");
			s = cut + (cut < end);
		}
		s = end + (*end == '\n');
	}
}

/* White space up to COLUMN. */
static void text_column(struct text *t, int column)
{
	text_tabs(t, column / TAB);
	text_add(t, "%*s", column % TAB, "");
}

/* Whether a line may end before S[i], a space: after a comma or, if
 * OPERATORS, after an operator. */
static bool may_end(const char *s, size_t i, bool operators)
{
	if (i < 2 || s[i] != ' ')
		return false;
	if (!operators)
		return s[i - 1] == ',';
	return strchr("+-*/=&|?:<>", s[i - 1]) != NULL &&
	       strchr(" &|<>=!", s[i - 2]) != NULL;
}

/* The last place of S within WIDTH and inside at most DEPTH brackets where a
 * line may end; 0: none. Strings stay whole. */
static size_t cut_at(const char *s, size_t width, int depth, bool operators)
{
	size_t best = 0;
	int inside = 0;
	bool quoted = false;

	for (size_t i = 0; s[i] != '\0' && i <= width; i++) {
		if (quoted && s[i] == '\\')
			i++;
		else if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && strchr("([{", s[i]))
			inside++;
		else if (!quoted && strchr(")]}", s[i]))
			inside--;
		else if (!quoted && inside <= depth && may_end(s, i, operators))
			best = i;
	}
	return best;
}

/* How much of S, of which no more than WIDTH columns fit, makes a line: up to
 * the outermost place that fits. */
static size_t fitting(const char *s, size_t width)
{
	size_t n = strlen(s);

	if (n <= width)
		return n;
	for (int depth = 0; depth < 8; depth++) {
		size_t cut = cut_at(s, width, depth, false);

		if (cut == 0)
			cut = cut_at(s, width, depth, true);
		if (cut > 0)
			return cut;
	}
	for (; width < n; width++)
		if (cut_at(s, width, 8, false) > 0)
			return cut_at(s, width, 8, false);
	return n;
}

/* Lines of S, indented by INDENT tabs, all but the first to column HANG. */
static void add_lines(struct text *t, int indent, int hang, const char *s)
{
	int column = TAB * indent;

	text_tabs(t, indent);
	for (;;) {
		size_t room = column < COLUMNS - 16 ? COLUMNS - column : 16;
		size_t n = fitting(s, room);

		text_add_n(t, s, n);
		text_add(t, "\n");
		s += n;
		if (*s == '\0')
			return;
		s += strspn(s, " ");
		column = hang;
		text_column(t, hang);
	}
}

void text_statement(struct text *t, int indent, const char *s)
{
	const char *open = strchr(s, '(');

	if (open != NULL && open - s < 40)
		add_lines(t, indent, TAB * indent + (int)(open - s) + 1, s);
	else
		add_lines(t, indent, TAB * indent + TAB, s);
}

void text_list(struct text *t, const char *s)
{
	add_lines(t, 1, TAB, s);
}
