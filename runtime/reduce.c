/*
 * reduce.c: the elements of reductions. Sums of integers wrap; the greatest
 * and the least of a nan and anything is nan.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/private.h"

enum { BLOCK = 32 };

#define SUM(a, b) ((a) + (b))
/* Comparisons with nan are false, so a nan b wins; a nan a is kept. */
#define GREATEST(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* Results go by way of a block of their own: TO may be A, and the compiler
 * makes vectors of it all the same. */
#define LOOP(NAME, type, STEP)                                                \
	static void NAME(void *to, const void *a, const void *b, int64_t n)   \
	{                                                                     \
		type *t = to, block[BLOCK];                                   \
		const type *x = a, *y = b;                                    \
		int64_t i = 0;                                                \
                                                                              \
		for (; i + BLOCK <= n; i += BLOCK) {                          \
			for (int j = 0; j < BLOCK; j++)                       \
				block[j] = (type)STEP(x[i + j], y[i + j]);    \
			memcpy(t + i, block, sizeof block);                   \
		}                                                             \
		for (; i < n; i++)                                            \
			t[i] = (type)STEP(x[i], y[i]);                        \
	}

#define LOOPS(name, type, wrapping)                                           \
	LOOP(name##_sum, wrapping, SUM)                                       \
	LOOP(name##_greatest, type, GREATEST)                                 \
	LOOP(name##_least, type, LEAST)

LOOPS(u8, uint8_t, uint8_t)
LOOPS(i8, int8_t, uint8_t)
LOOPS(i32, int32_t, uint32_t)
LOOPS(i64, int64_t, uint64_t)
LOOPS(f32, float, float)
LOOPS(f64, double, double)

typedef void loop(void *to, const void *a, const void *b, int64_t n);

static int reduce_index(char reduce)
{
	return reduce == '+' ? 0 : reduce == 'x' ? 1 : 2;
}

void combine(void *to, const void *a, const void *b, sbp_dtype t, char reduce,
	     int64_t n)
{
	static loop *const loops[][3] = {
		[SBP_U8] = {u8_sum, u8_greatest, u8_least},
		[SBP_I8] = {i8_sum, i8_greatest, i8_least},
		[SBP_I32] = {i32_sum, i32_greatest, i32_least},
		[SBP_I64] = {i64_sum, i64_greatest, i64_least},
		[SBP_F32] = {f32_sum, f32_greatest, f32_least},
		[SBP_F64] = {f64_sum, f64_greatest, f64_least},
	};

	loops[t][reduce_index(reduce)](to, a, b, n);
}

/* The identities of sum, greatest, least, as bytes. */
static void identity_bytes(void *to, sbp_dtype t, char reduce)
{
	static const uint8_t u8[] = {0, 0, UINT8_MAX};
	static const int8_t i8[] = {0, INT8_MIN, INT8_MAX};
	static const int32_t i32[] = {0, INT32_MIN, INT32_MAX};
	static const int64_t i64[] = {0, INT64_MIN, INT64_MAX};
	static const uint16_t f16[] = {0x8000, 0xfc00, 0x7c00};
	static const uint16_t bf16[] = {0x8000, 0xff80, 0x7f80};
	static const float f32[] = {-0.0f, -INFINITY, INFINITY};
	static const double f64[] = {-0.0, -(double)INFINITY, INFINITY};
	static const void *const table[] = {u8,	  u8,	i8,  i32, i64,
					    f16, bf16, f32, f64};
	int width = dtype_bytes(t);

	memcpy(to, (const char *)table[t] + reduce_index(reduce) * width,
	       (size_t)width);
}

void fill_identity(void *to, sbp_dtype t, char reduce, int64_t n)
{
	size_t width = (size_t)dtype_bytes(t), total = width * (size_t)n;

	if (n == 0)
		return;
	identity_bytes(to, t, reduce);
	for (size_t done = width; done < total; done *= 2)
		memcpy((char *)to + done, to,
		       done < total - done ? done : total - done);
}
