/*
 * convert.c: element types of files and arenas.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/formats.h"

static const struct {
	const char *name;
	int bytes;
	bool floats;
} types[] = {
	[SBP_BOOL] = {"bool", 1, false}, [SBP_U8] = {"u8", 1, false},
	[SBP_I8] = {"i8", 1, false},	 [SBP_I32] = {"i32", 4, false},
	[SBP_I64] = {"i64", 8, false},	 [SBP_F16] = {"f16", 2, true},
	[SBP_BF16] = {"bf16", 2, true},	 [SBP_F32] = {"f32", 4, true},
	[SBP_F64] = {"f64", 8, true},
};

int dtype_bytes(sbp_dtype t)
{
	return types[t].bytes;
}

const char *dtype_text(sbp_dtype t)
{
	return types[t].name;
}

bool dtype_floats(sbp_dtype t)
{
	return types[t].floats;
}

void swap_bytes(void *to, int width, int64_t n)
{
	unsigned char *at = to;

	for (; n > 0; n--, at += width)
		for (int i = 0; i < width / 2; i++) {
			unsigned char b = at[i];

			at[i] = at[width - 1 - i];
			at[width - 1 - i] = b;
		}
}

int64_t box_count(const sbp_box *box)
{
	int64_t n = 1;

	for (int i = 0; i < box->rank; i++)
		n *= box->n[i];
	return n;
}

void type_describe(char *to, size_t size, sbp_dtype t, int rank,
		   const int64_t *shape)
{
	size_t at = (size_t)snprintf(to, size, "%s[", dtype_text(t));

	for (int i = 0; i < rank && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, "%s%lld",
				       i ? ", " : "", (long long)shape[i]);
	if (at < size)
		snprintf(to + at, size - at, "]");
}

/* ---- 16-bit floats ---- */

static uint32_t bits_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}

static float of_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

float bf16_to_f32(uint16_t h)
{
	return of_bits((uint32_t)h << 16);
}

uint16_t f32_to_bf16(float f)
{
	uint32_t u = bits_of(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);	/* nan stays one */
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;

	if (rest >= 0x7c00)
		return of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
	if (rest >= 0x400)
		return of_bits(sign | ((rest << 13) + (112u << 23)));
	return of_bits(sign | bits_of((float)rest * 0x1p-24f));
}

uint16_t f32_to_f16(float f)
{
	uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, rest;

	u &= 0x7fffffff;
	if (u > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
	if (u >= 0x477ff000)		/* rounds to 65536 or more */
		return (uint16_t)(sign | 0x7c00);
	if (u < 0x38800000) {		/* less than 2^-14: subnormal */
		rest = bits_of(of_bits(u) + 0.5f) - bits_of(0.5f);
		return (uint16_t)(sign | rest);
	}
	rest = u - (112u << 23);
	return (uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1)) >> 13));
}

/* A double as a float that rounds again without error: to odd. */
static float to_odd(double d)
{
	float f = (float)d;
	uint32_t u = bits_of(f);

	if ((double)f == d || isnan(d) || isinf(f))
		return f;
	if (fabs((double)f) > fabs(d))
		u--;		/* now toward zero */
	return of_bits(u | 1);
}

/* ---- all pairs ---- */

/* Truncates and saturates; nan gives 0. */
static inline int64_t to_integer(double d, int64_t lo, int64_t hi)
{
	if (isnan(d))
		return 0;
	if (d <= (double)lo)
		return lo;
	return d >= (double)hi ? hi : (int64_t)d;
}

#define INTEGER(type, x, lo, hi)                                              \
	_Generic((x), int64_t: (type)(x),                                     \
		 default: (type)to_integer((double)(x), lo, hi))

#define GET_b8(x) ((int64_t)((x) != 0))
#define GET_u8(x) ((int64_t)(x))
#define GET_i8(x) ((int64_t)(x))
#define GET_i32(x) ((int64_t)(x))
#define GET_i64(x) ((int64_t)(x))
#define GET_f16(x) f16_to_f32(x)
#define GET_bf16(x) bf16_to_f32(x)
#define GET_f32(x) (x)
#define GET_f64(x) (x)

#define PUT_b8(x) ((x) != 0)
#define PUT_u8(x) INTEGER(uint8_t, x, 0, 255)
#define PUT_i8(x) INTEGER(int8_t, x, -128, 127)
#define PUT_i32(x) INTEGER(int32_t, x, INT32_MIN, INT32_MAX)
#define PUT_i64(x) INTEGER(int64_t, x, INT64_MIN, INT64_MAX)
#define NARROW(x) _Generic((x), double: to_odd((double)(x)), default: (float)(x))
#define PUT_f16(x) f32_to_f16(NARROW(x))
#define PUT_bf16(x) f32_to_bf16(NARROW(x))
#define PUT_f32(x) ((float)(x))
#define PUT_f64(x) ((double)(x))

/* Without the name bool, which is a macro. */
#define PAIR(to_name, to_type, from_name, from_type)                          \
	static void loop_##from_name##_##to_name(void *to_,                   \
						 const void *from_,           \
						 int64_t n)                   \
	{                                                                     \
		const from_type *from = from_;                                \
		to_type *to = to_;                                            \
									      \
		for (int64_t i = 0; i < n; i++)                               \
			to[i] = PUT_##to_name(GET_##from_name(from[i]));      \
	}
#define TO_ALL(name, type)                                                    \
	PAIR(b8, uint8_t, name, type)                                         \
	PAIR(u8, uint8_t, name, type)                                         \
	PAIR(i8, int8_t, name, type)                                          \
	PAIR(i32, int32_t, name, type)                                        \
	PAIR(i64, int64_t, name, type)                                        \
	PAIR(f16, uint16_t, name, type)                                       \
	PAIR(bf16, uint16_t, name, type)                                      \
	PAIR(f32, float, name, type)                                          \
	PAIR(f64, double, name, type)
TO_ALL(b8, uint8_t)
TO_ALL(u8, uint8_t)
TO_ALL(i8, int8_t)
TO_ALL(i32, int32_t)
TO_ALL(i64, int64_t)
TO_ALL(f16, uint16_t)
TO_ALL(bf16, uint16_t)
TO_ALL(f32, float)
TO_ALL(f64, double)

/* ORDER dtype */
#define ROW(name)                                                             \
	{                                                                     \
		loop_##name##_b8, loop_##name##_u8, loop_##name##_i8, loop_##name##_i32,      \
			loop_##name##_i64, loop_##name##_f16, loop_##name##_bf16,         \
			loop_##name##_f32, loop_##name##_f64                          \
	}
static void (*const pairs[][SBP_F64 + 1])(void *, const void *, int64_t) = {
	ROW(b8), ROW(u8), ROW(i8), ROW(i32), ROW(i64),
	ROW(f16), ROW(bf16), ROW(f32), ROW(f64),
};

void convert(void *to, sbp_dtype to_type, const void *from,
	     sbp_dtype from_type, int64_t n)
{
	if (to_type == from_type && to_type != SBP_BOOL)
		memmove(to, from, (size_t)n * (size_t)dtype_bytes(to_type));
	else
		pairs[from_type][to_type](to, from, n);
}
