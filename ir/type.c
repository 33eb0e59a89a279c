/*
 * type.c: element types, shapes, promotion.
 */
#include <string.h>

#include "ir/ir.h"

static const struct {
	const char *name;
	int size;
} dtypes[DT_N] = {
	[DT_BOOL] = {"bool", 1}, [DT_U8] = {"u8", 1}, [DT_I8] = {"i8", 1},
	[DT_I32] = {"i32", 4}, [DT_I64] = {"i64", 8}, [DT_F16] = {"f16", 2},
	[DT_BF16] = {"bf16", 2}, [DT_F32] = {"f32", 4}, [DT_F64] = {"f64", 8},
};

const char *dtype_name(enum dtype t)
{
	return (unsigned)t < DT_N ? dtypes[t].name : "?";
}

bool dtype_read(const char *s, enum dtype *t)
{
	int i;

	for (i = 0; i < DT_N; i++)
		if (!strcmp(s, dtypes[i].name)) {
			*t = (enum dtype)i;
			return true;
		}
	return false;
}

int dtype_size(enum dtype t)
{
	return dtypes[t].size;
}

bool dtype_is_float(enum dtype t)
{
	return t >= DT_F16;
}

bool dtype_is_int(enum dtype t)
{
	return t > DT_BOOL && t < DT_F16;
}

int64_t dtype_wrap(enum dtype t, int64_t i)
{
	switch (t) {
	case DT_BOOL:
		return i != 0;
	case DT_U8:
		return (uint8_t)i;
	case DT_I8:
		return (int8_t)(uint8_t)i;
	case DT_I32:
		return (int32_t)(uint32_t)i;
	default:
		return i;
	}
}

enum dtype dtype_promote(enum dtype a, enum dtype b)
{
	enum dtype least = a < b ? a : b, most = a < b ? b : a;

	/* The types are ordered by category and width, with two exceptions:
	 * neither of these two pairs has one that holds the other. */
	if (least == DT_U8 && most == DT_I8)
		return DT_I32;
	if (least == DT_F16 && most == DT_BF16)
		return DT_F32;
	return most;
}

bool shape_eq(Shape a, Shape b)
{
	int i;

	if (a.rank != b.rank)
		return false;
	for (i = 0; i < a.rank; i++)
		if (a.d[i] != b.d[i])
			return false;
	return true;
}

bool type_eq(Type a, Type b)
{
	return a.dtype == b.dtype && shape_eq(a.shape, b.shape);
}

bool shape_count_fits(Shape s, int64_t *count)
{
	int64_t n = 1;
	bool fits = true;
	int i;

	for (i = 0; i < s.rank; i++)
		if (s.d[i] == 0) {
			*count = 0;
			return true;
		}
	for (i = 0; i < s.rank; i++)
		fits = fits && !__builtin_mul_overflow(n, s.d[i], &n);
	*count = fits ? n : 0;
	return fits;
}

int64_t shape_count(Shape s)
{
	int64_t n;

	shape_count_fits(s, &n);
	return n;
}

int64_t type_bytes(Type t)
{
	return shape_count(t.shape) * dtype_size(t.dtype);
}

bool shape_broadcast(Shape a, Shape b, Shape *out)
{
	Shape s = {a.rank > b.rank ? a.rank : b.rank, {0}};
	int i, ia, ib;
	int64_t da, db;

	for (i = 0; i < s.rank; i++) {
		ia = i - (s.rank - a.rank);
		ib = i - (s.rank - b.rank);
		da = ia < 0 ? 1 : a.d[ia];
		db = ib < 0 ? 1 : b.d[ib];
		if (da != db && da != 1 && db != 1)
			return false;
		s.d[i] = da == 1 ? db : da;
	}
	*out = s;
	return true;
}

const char *shape_text(Shape s)
{
	const char *t = "";
	int i;

	for (i = 0; i < s.rank; i++)
		t = text_brief("%s%s%lld", t, i ? ", " : "",
			       (long long)s.d[i]);
	return text_brief("[%s]", t);
}

const char *type_text(Type t)
{
	return text_brief("%s%s", dtype_name(t.dtype), shape_text(t.shape));
}
