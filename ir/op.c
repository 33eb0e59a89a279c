/*
 * op.c: the table of operators: its strings parsed once, and its self-check.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

#define NONE K_NONE, NULL, NULL
#define VIEW K_VIEW, NULL, NULL
#define MAP(c) K_MAP, c, NULL
#define FOLD(c, identity) K_FOLD, c, identity
#define CALL(c) K_CALL, #c, NULL

static struct op_info table[OP_N] = {
#define OP(name, params, types, index, sum, max, ...)                         \
	{#name, params, types, index, sum, max, __VA_ARGS__, false, 0, 0, NULL},
#include "ir/ops.def"
#undef OP
};

static struct arena *memory;
static LIST(Name) callable;

static const char *const kinds[] = {
	[ATTR_INT] = "int", [ATTR_FLOAT] = "float", [ATTR_BOOL] = "bool",
	[ATTR_INTS] = "ints", [ATTR_DTYPE] = "dtype", [ATTR_TEXT] = "text",
};

/* ---- the column `params` ---- */

static const char *skip(const char *s)
{
	while (*s == ' ')
		s++;
	return s;
}

static const char *word(const char *s, Name *out)
{
	const char *start = s = skip(s);

	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	*out = name_n(start, (size_t)(s - start));
	return s;
}

static bool initial_value(struct op_param *p, Name text)
{
	struct attr *a = &p->initial;
	char *end;

	a->kind = p->kind;
	a->key = p->name;
	if (p->kind == ATTR_BOOL) {
		a->i = !strcmp(text, "true");
		return a->i || !strcmp(text, "false");
	}
	if (p->kind == ATTR_DTYPE) {
		enum dtype t = DT_F32;
		bool known = dtype_read(text, &t);

		a->i = t;
		return known;
	}
	if (p->kind == ATTR_INT)
		a->i = strtoll(text, &end, 10);
	else if (p->kind == ATTR_FLOAT)
		a->f = strtod(text, &end);
	else
		return false;
	return *text && !*end;
}

/* ": type = default" of P; where the text goes on. */
static const char *attribute(const struct op_info *info, struct op_param *p,
			     const char *s)
{
	Name type, initial;
	int k;

	s = word(s, &type);
	for (k = 0; k < 6 && strcmp(kinds[k], type); k++)
		;
	if (k == 6)
		bug("ops.def: %s: no attribute type '%s'", info->name, type);
	p->kind = (enum attr_kind)k;
	s = skip(s);
	if (*s != '=')
		return s;
	p->optional = true;
	s = skip(s + 1);
	initial = name_n(s, strcspn(s, ",;"));
	s += strlen(initial);
	if (!strcmp(initial, "none") || !strcmp(initial, "all"))
		return s;
	if (!initial_value(p, initial))
		bug("ops.def: %s: no default '%s' for '%s'", info->name,
		    initial, p->name);
	return s;
}

static const char *parameter(const struct op_info *info, struct op_param *p,
			     const char *s)
{
	s = skip(word(s, &p->name));
	if (!*p->name)
		bug("ops.def: %s: a parameter has no name at '%s'",
		    info->name, s);
	if (*s == ':')
		return attribute(info, p, s + 1);
	p->tensor = true;
	if (!strncmp(s, "..", 2)) {
		p->many = true;
		s = skip(s + 2);
	}
	return s;
}

static void parse(struct op_info *info)
{
	LIST(struct op_param) list = {0};
	struct op_param p;
	const char *s = info->params;

	info->internal = !strncmp(s, "INTERNAL", 8);
	s = skip(info->internal ? s + 8 : s);
	if (*s == ';')
		s++;
	while (*(s = skip(s))) {
		p = (struct op_param){0};
		s = skip(parameter(info, &p, s));
		if (*s && *s != ',' && *s != ';')
			bug("ops.def: %s: '%s' follows '%s'", info->name, s,
			    p.name);
		s += *s != 0;
		info->ntensor += p.tensor;
		PUSH(memory, list, p);
	}
	info->param = list.at;
	info->nparam = list.n;
}

static void start(void)
{
	int i;

	if (memory)
		return;
	memory = arena_new();
	for (i = 0; i < OP_N; i++) {
		table[i].name = name_of(table[i].name);
		parse(&table[i]);
		if (!table[i].internal)
			PUSH(memory, callable, table[i].name);
	}
}

const struct op_info *op_info(enum op op)
{
	start();
	return &table[op];
}

bool op_find(const char *name, enum op *op)
{
	int i;

	start();
	name = name_of(name);
	for (i = 0; i < OP_N; i++)
		if (table[i].name == name) {
			*op = (enum op)i;
			return true;
		}
	return false;
}

int op_names(const Name **names)
{
	start();
	*names = callable.at;
	return callable.n;
}

/* ---- the column `types` ---- */

static const char *const classes[] = {
	[TAKES_ANY] = "any", [TAKES_NUMBER] = "number",
	[TAKES_FLOAT] = "float", [TAKES_INT] = "int", [TAKES_BOOL] = "bool",
};

enum dtype_class op_takes(const struct op_info *info, int i)
{
	const char *s = info->types;
	size_t n;
	int k;

	for (; i > 0 && (n = strcspn(s, ",-"), s[n] == ','); i--)
		s += n + 1;
	s = skip(s);
	n = strcspn(s, " ,-");
	for (k = 0; k < 5; k++)
		if (strlen(classes[k]) == n && !strncmp(classes[k], s, n))
			return (enum dtype_class)k;
	bug("ops.def: %s: no class of types at '%s'", info->name, s);
}

bool op_is_leaf(enum op op)
{
	return op == OP_input || op == OP_param || op == OP_state ||
	       op == OP_constant;
}

bool op_shares(const struct op_info *info, int i)
{
	enum dtype_class c = op_takes(info, i);

	if (c != TAKES_INT && c != TAKES_BOOL)
		return true;
	return !strchr(info->types, ',');	/* the only class there is */
}

/* ---- self-check ---- */

static void check_sets(const struct op_info *info, const char *s)
{
	static const char *const words[] = {"max", "min", "swap", "float"};
	int k;

	if (*s == '@') {
		rule_sets(s, NULL);
		return;
	}
	while (*(s = skip(s))) {
		if (*s == '{') {
			s++;
			s += strspn(s, "0123456789*");
			if (*s++ != '}')
				bug("ops.def: %s: a set is not closed",
				    info->name);
			continue;
		}
		for (k = 0; k < 4; k++)
			if (!strncmp(s, words[k], strlen(words[k])))
				break;
		if (k == 4)
			bug("ops.def: %s: no set at '%s'", info->name, s);
		s += strlen(words[k]);
	}
}

static void check_index(const struct op_info *info)
{
	const char *s = info->index;
	int terms = 1;

	if (*s == '@') {
		rule_find(s);
		return;
	}
	if (!strstr(s, "->"))
		bug("ops.def: %s: index '%s' has no '->'", info->name, s);
	for (; strncmp(s, "->", 2); s++) {
		terms += *s == ',';
		if (!isalpha((unsigned char)*s) && !strchr("*@,", *s))
			bug("ops.def: %s: '%c' in index", info->name, *s);
	}
	if (terms != info->ntensor)
		bug("ops.def: %s: %d tensors, but index has %d", info->name,
		    info->ntensor, terms);
}

static void check_result(const struct op_info *info)
{
	const char *s = strstr(info->types, "->");

	if (s && strcmp(s, "-> bool") && strcmp(s, "-> sum") &&
	    strcmp(s, "-> attr"))
		bug("ops.def: %s: no result type '%s'", info->name, s);
}

/* Every %N of a template is an input, every %{name} an attribute. */
static void check_template(const struct op_info *info)
{
	const char *s = info->c;
	int i;

	for (; s && (s = strchr(s, '%')); s++) {
		if (isdigit((unsigned char)s[1])) {
			if (s[1] - '0' >= info->ntensor)
				bug("ops.def: %s: no input %%%c", info->name,
				    s[1]);
			continue;
		}
		for (i = 0; i < info->nparam; i++)
			if (s[1] == '{' && !info->param[i].tensor &&
			    !strncmp(s + 2, info->param[i].name,
				     strcspn(s + 2, "}")))
				break;
		if (i == info->nparam)
			bug("ops.def: %s: no attribute at '%s'", info->name,
			    s);
	}
}

void op_self_check(void)
{
	const struct op_info *info;
	int i, k;

	for (i = 0; i < OP_N; i++) {
		info = op_info((enum op)i);
		for (k = 0; k < info->ntensor; k++)
			op_takes(info, k);
		check_index(info);
		check_result(info);
		check_sets(info, info->sum);
		check_sets(info, info->max);
		if (info->kernel == K_MAP)
			check_template(info);
		if (info->kernel == K_FOLD && !info->identity)
			bug("ops.def: %s folds without identity",
			    info->name);
	}
}
