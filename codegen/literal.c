/*
 * literal.c: the data of constants, exactly.
 *
 * A few elements are printed as the numbers that they are. More become one
 * string of bytes, which a compiler reads much faster than an initializer
 * for each element.
 */
#include <math.h>
#include <string.h>

#include "codegen/codegen.h"

enum { MOST_NUMBERS = 64, COLUMNS = 76 };

static const char *element_type(enum dtype t)
{
	static const char *const names[] = {
		[DT_BOOL] = "unsigned char", [DT_U8] = "uint8_t",
		[DT_I8] = "int8_t",          [DT_I32] = "int32_t",
		[DT_I64] = "int64_t",        [DT_F16] = "uint16_t",
		[DT_BF16] = "uint16_t",      [DT_F32] = "float",
		[DT_F64] = "double",
	};

	return names[t];
}

/* Whether D prints as a decimal that reads back to the same bits. */
static bool plain(double d)
{
	return isfinite(d);
}

static void add_float(struct text *t, float f)
{
	size_t at = t->n;

	text_add_float(t, f);
	if (strpbrk(t->at + at, ".e") == NULL)
		text_add(t, ".0");
	text_add(t, "f");
}

static void add_double(struct text *t, double d)
{
	size_t at = t->n;

	text_add_double(t, d);
	if (strpbrk(t->at + at, ".e") == NULL)
		text_add(t, ".0");
}

/* Printed apart from its sign bit, as C has no negative literals. */
static void add_int64(struct text *t, int64_t i)
{
	if (i == INT64_MIN)
		text_add(t, "INT64_MIN");
	else
		text_add(t, "%lld", (long long)i);
}

static void add_element(struct text *t, enum dtype type, const void *p)
{
	uint16_t h;
	int32_t i32;
	int64_t i64;
	float f;
	double d;

	switch (type) {
	case DT_BOOL:
	case DT_U8:
		text_add(t, "%u", *(const uint8_t *)p);
		return;
	case DT_I8:
		text_add(t, "%d", *(const int8_t *)p);
		return;
	case DT_I32:
		memcpy(&i32, p, sizeof i32);
		add_int64(t, i32);
		return;
	case DT_I64:
		memcpy(&i64, p, sizeof i64);
		add_int64(t, i64);
		return;
	case DT_F32:
		memcpy(&f, p, sizeof f);
		add_float(t, f);
		return;
	case DT_F64:
		memcpy(&d, p, sizeof d);
		add_double(t, d);
		return;
	default:
		memcpy(&h, p, sizeof h);
		text_add(t, "0x%04x", h);
	}
}

static bool all_plain(enum dtype type, const void *data, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		if (type == DT_F32 && !plain(((const float *)data)[i]))
			return false;
		if (type == DT_F64 && !plain(((const double *)data)[i]))
			return false;
	}
	return true;
}

static void add_numbers(struct text *t, enum dtype type, const char *name,
			const unsigned char *data, int64_t count)
{
	struct text row = {0};

	for (int64_t i = 0; i < count; i++) {
		text_add(&row, "%s", i > 0 ? ", " : "");
		add_element(&row, type, data + i * dtype_size(type));
	}
	text_add(t, "static const %s %s[] = {\n", element_type(type), name);
	text_list(t, row.at);
	text_add(t, "};\n\n");
	text_free(&row);
}

/* Octal escapes have three digits where a digit follows; '?' is one, as it
 * could begin a trigraph. */
static size_t add_byte(struct text *t, unsigned char c, unsigned char next)
{
	size_t at = t->n;
	bool digit = next >= '0' && next <= '9';

	if (c == '"' || c == '\\')
		text_add(t, "\\%c", c);
	else if (c >= ' ' && c <= '~' && c != '?')
		text_add_n(t, (const char *)&c, 1);
	else
		text_add(t, digit ? "\\%03o" : "\\%o", c);
	return t->n - at;
}

static void add_bytes(struct text *t, const char *name,
		      const unsigned char *data, size_t n)
{
	size_t column = 0;

	text_add(t, "_Alignas(64) static const unsigned char %s[] =\n\t\"",
		 name);
	for (size_t i = 0; i < n; i++) {
		if (column >= COLUMNS - 8) {
			text_add(t, "\"\n\t\"");
			column = 0;
		}
		column += add_byte(t, data[i], i + 1 < n ? data[i + 1] : '0');
	}
	text_add(t, "\";\n\n");
}

static void add_data(struct text *t, enum dtype type, const char *name,
		     const void *data, int64_t count)
{
	if (count <= MOST_NUMBERS && count > 0 && all_plain(type, data, count))
		add_numbers(t, type, name, data, count);
	else
		add_bytes(t, name, data, (size_t)count * dtype_size(type));
}

static int64_t local_count(const struct value *v, int index)
{
	int coord[MAX_MESH];

	mesh_coords(v->dist.on, index, coord);
	return piece_count(piece_of(v->type.shape, v->dist, coord));
}

void emit_data(struct emitter *e, const struct value *v,
	       const struct init *init, const char *name, struct text *out)
{
	int n = v->dist.on->nranks;

	text_add(out, "/* %s: %s %s */\n", e->name[v->id], type_text(v->type),
		 dist_text(v->dist));
	if (init->local == NULL) {
		add_data(out, v->type.dtype, name, init->data,
			 shape_count(v->type.shape));
		return;
	}
	for (int i = 0; i < n; i++)
		add_data(out, v->type.dtype,
			 arena_text(e->arena, "%s_part%d", name, i),
			 init->local[i], local_count(v, i));
	text_add(out, "static const void *const %s[] = {\n", name);
	for (int i = 0; i < n; i++)
		text_add(out, "\t%s_part%d,\n", name, i);
	text_add(out, "};\n\n");
}
