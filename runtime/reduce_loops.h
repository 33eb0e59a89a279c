/*
 * reduce_loops.h: the loops of reduce.c, once for each instruction set. The
 * includer defines LOOPS_TARGET (an attribute or nothing), LOOPS_STREAM(to,
 * from), which stores a line of 64 bytes past the caches, and LOOPS_TABLE,
 * the name of the table of loops.
 */

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

/* In parts of a known size, which become vectors; what is written may be what
 * is read at the same index. */
#define LOOP(NAME, type, STEP)                                                \
	LOOPS_TARGET static void PASTE(LOOPS_TABLE, NAME##_past)(             \
		const struct loop *l, int64_t n)                              \
	{                                                                     \
		enum { N = CACHE_LINE / sizeof(type) };                       \
		_Alignas(CACHE_LINE) type line[N];                            \
		const type *x = l->a, *y = l->b;                              \
		type *t = l->to, *u = l->mate;                                \
                                                                              \
		for (int64_t i = 0; i < n; i += N) {                          \
			for (int j = 0; j < N; j++)                           \
				line[j] = (type)STEP(x[i + j], y[i + j]);     \
			LOOPS_STREAM(t + i, line);                            \
			if (u)                                                \
				LOOPS_STREAM(u + i, line);                    \
		}                                                             \
	}                                                                     \
	LOOPS_TARGET static void PASTE(LOOPS_TABLE, NAME)(                    \
		const struct loop *l, int64_t n)                              \
	{                                                                     \
		enum { N = CACHE_LINE / sizeof(type) };                       \
		const type *x = l->a, *y = l->b;                              \
		type *t = l->to;                                              \
		int64_t i = 0;                                                \
                                                                              \
		for (; i + N <= n; i += N) {                                  \
			SAME_INDEX                                            \
			for (int j = 0; j < N; j++)                           \
				t[i + j] = (type)STEP(x[i + j], y[i + j]);    \
		}                                                             \
		for (; i < n; i++)                                            \
			t[i] = (type)STEP(x[i], y[i]);                        \
	}                                                                     \
	LOOPS_TARGET static void PASTE(LOOPS_TABLE, NAME##_both)(             \
		const struct loop *l, int64_t n)                              \
	{                                                                     \
		enum { N = CACHE_LINE / sizeof(type) };                       \
		const type *x = l->a, *y = l->b;                              \
		type *t = l->to, *u = l->mate;                                \
		int64_t i = 0;                                                \
                                                                              \
		for (; i + N <= n; i += N) {                                  \
			SAME_INDEX                                            \
			for (int j = 0; j < N; j++)                           \
				t[i + j] = u[i + j] =                         \
					(type)STEP(x[i + j], y[i + j]);       \
		}                                                             \
		for (; i < n; i++)                                            \
			t[i] = u[i] = (type)STEP(x[i], y[i]);                 \
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

#define ROW(name)                                                             \
	{{PASTE(LOOPS_TABLE, name##_sum), PASTE(LOOPS_TABLE, name##_greatest), \
	  PASTE(LOOPS_TABLE, name##_least)},                                  \
	 {PASTE(LOOPS_TABLE, name##_sum_both),                                \
	  PASTE(LOOPS_TABLE, name##_greatest_both),                           \
	  PASTE(LOOPS_TABLE, name##_least_both)},                             \
	 {PASTE(LOOPS_TABLE, name##_sum_past),                                \
	  PASTE(LOOPS_TABLE, name##_greatest_past),                           \
	  PASTE(LOOPS_TABLE, name##_least_past)}}

static const loop_row LOOPS_TABLE[] = {
	[SBP_U8] = ROW(u8),   [SBP_I8] = ROW(i8),   [SBP_I32] = ROW(i32),
	[SBP_I64] = ROW(i64), [SBP_F32] = ROW(f32), [SBP_F64] = ROW(f64),
};

#undef ROW
#undef LOOPS
#undef LOOP
#undef PASTE
#undef PASTE_
#undef LOOPS_TARGET
#undef LOOPS_STREAM
#undef LOOPS_TABLE
