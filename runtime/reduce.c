/*
 * reduce.c: the elements of reductions. Sums of integers wrap; the greatest
 * and the least of a nan and anything is nan.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/private.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

#define SUM(a, b) ((a) + (b))
/* Comparisons with nan are false, so a nan b wins; a nan a is kept. */
#define GREATEST(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* The loop that follows touches each index alone, whatever overlaps. */
#if defined __GNUC__ && !defined __clang__
#define SAME_INDEX _Pragma("GCC ivdep")
#else
#define SAME_INDEX
#endif

struct loop {
	void *to, *mate;
	const void *a, *b;
};
typedef void loop_fn(const struct loop *l, int64_t n);
/* Where to: TO; TO and MATE; past the caches in whole lines, to MATE too
 * unless it is NULL. */
enum ends { TO_ONE, TO_BOTH, TO_PAST, ENDS };
typedef loop_fn *loop_row[ENDS][3]; /* sum, greatest, least */

#if defined __x86_64__

#define STREAM_16(to, from)                                                   \
	do {                                                                  \
		__m128i *t_ = (__m128i *)(void *)(to);                        \
		const __m128i *f_ = (const __m128i *)(const void *)(from);    \
                                                                              \
		for (int k_ = 0; k_ < 4; k_++)                                \
			_mm_stream_si128(t_ + k_, _mm_load_si128(f_ + k_));   \
	} while (0)

#define LOOPS_TARGET
#define LOOPS_STREAM STREAM_16
#define LOOPS_TABLE any
#include "runtime/reduce_loops.h"

#define LOOPS_TARGET __attribute__((target("avx2")))
#define LOOPS_STREAM STREAM_16
#define LOOPS_TABLE avx2
#include "runtime/reduce_loops.h"

#define AVX512                                                                \
	"avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#define LOOPS_TARGET __attribute__((target(AVX512)))
#define LOOPS_STREAM(to, from)                                                \
	_mm512_stream_si512((__m512i *)(void *)(to),                          \
			    _mm512_load_si512(from))
#define LOOPS_TABLE avx512
#include "runtime/reduce_loops.h"

/* No __builtin_cpu_supports: it needs gcc's library at link time. */
static const loop_row *choose_loops(void)
{
	sbp_message e;

	if (isa_check("avx512f,avx512bw,avx512dq,avx512vl", &e) == SBP_OK)
		return avx512;
	return isa_check("avx2", &e) == SBP_OK ? avx2 : any;
}

#else

#define LOOPS_TARGET
#define LOOPS_STREAM(to, from) memcpy(to, from, CACHE_LINE)
#define LOOPS_TABLE any
#include "runtime/reduce_loops.h"

static const loop_row *choose_loops(void)
{
	return any;
}

#endif

static int reduce_index(char reduce)
{
	return reduce == '+' ? 0 : reduce == 'x' ? 1 : 2;
}

static bool is_aligned(const void *at)
{
	return ((uintptr_t)at & (CACHE_LINE - 1)) == 0;
}

static const loop_row *find_loops(void)
{
	static _Atomic(const loop_row *) chosen;
	const loop_row *loops =
		atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!loops) {
		loops = choose_loops();
		atomic_store_explicit(&chosen, loops, memory_order_relaxed);
	}
	return loops;
}

void combine(void *to, const void *a, const void *b, sbp_dtype t, char reduce,
	     int64_t n)
{
	struct loop l = {to, NULL, a, b};

	find_loops()[t][TO_ONE][reduce_index(reduce)](&l, n);
}

void combine_both(void *to, void *mate, const void *a, const void *b,
		  sbp_dtype t, char reduce, int64_t n)
{
	struct loop l = {to, mate, a, b};

	find_loops()[t][TO_BOTH][reduce_index(reduce)](&l, n);
}

void combine_past(void *to, void *mate, const void *a, const void *b,
		  sbp_dtype t, char reduce, int64_t n)
{
	int64_t width = dtype_bytes(t), line = CACHE_LINE / width;
	int64_t whole = is_aligned(to) && is_aligned(mate) ? n / line * line
							   : 0;
	struct loop l = {to, mate, a, b};

	find_loops()[t][TO_PAST][reduce_index(reduce)](&l, whole);
	width *= whole;
	to = (char *)to + width;
	combine(to, (const char *)a + width, (const char *)b + width, t,
		reduce, n - whole);
	if (mate)
		memcpy((char *)mate + width, to,
		       (size_t)((n - whole) * dtype_bytes(t)));
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
