/*
 * gemm_loops.h: the tiles of gemm_fixed.c, once for each instruction set. The
 * includer defines GEMM_TARGET (an attribute or nothing), GEMM_TABLE (the
 * name of the table), GEMM_VECTOR (the type), GEMM_LOAD, GEMM_STORE, GEMM_SET,
 * GEMM_ADD, GEMM_STEP(x, y, sum) = x * y + sum, and GEMM_ROWS, of a tile.
 */

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define LANES ((int64_t)(sizeof(GEMM_VECTOR) / sizeof(float)))

#define START(i) GEMM_VECTOR s##i = GEMM_SET(0), t##i = GEMM_SET(0);
#define STEP(i)                                                               \
	x = GEMM_SET(a[i]);                                                   \
	s##i = GEMM_STEP(x, y, s##i);                                         \
	t##i = GEMM_STEP(x, z, t##i);
#define END(i)                                                                \
	if (!first) {                                                         \
		s##i = GEMM_ADD(GEMM_LOAD(c + i * cs), s##i);                 \
		t##i = GEMM_ADD(GEMM_LOAD(c + i * cs + LANES), t##i);         \
	}                                                                     \
	GEMM_STORE(c + i * cs, s##i);                                         \
	GEMM_STORE(c + i * cs + LANES, t##i);

#define EACH1(X) X(0)
#define EACH2(X) EACH1(X) X(1)
#define EACH4(X) EACH2(X) X(2) X(3)
#define EACH6(X) EACH4(X) X(4) X(5)
#define EACH12(X) EACH6(X) X(6) X(7) X(8) X(9) X(10) X(11)
#define EACH(n) EACH_(n)
#define EACH_(n) EACH##n

/* A has the rows of one k after another, B its columns, BS apart. */
#define TILE(name, n)                                                         \
	GEMM_TARGET static void PASTE(GEMM_TABLE, name)(                      \
		int64_t depth, const float *a, const float *b, int64_t bs,    \
		float *c, int64_t cs, int first)                              \
	{                                                                     \
		GEMM_VECTOR x, y, z;                                          \
                                                                              \
		EACH(n)(START)                                                \
		for (int64_t k = 0; k < depth; k++, a += n, b += bs) {        \
			y = GEMM_LOAD(b);                                     \
			z = GEMM_LOAD(b + LANES);                             \
			EACH(n)(STEP)                                         \
		}                                                             \
		EACH(n)(END)                                                  \
	}

TILE(most, GEMM_ROWS)
TILE(four, 4)
TILE(two, 2)
TILE(one, 1)

static const struct tiles GEMM_TABLE = {
	2 * sizeof(GEMM_VECTOR) / sizeof(float),
	{GEMM_ROWS, 4, 2, 1},
	{PASTE(GEMM_TABLE, most), PASTE(GEMM_TABLE, four),
	 PASTE(GEMM_TABLE, two), PASTE(GEMM_TABLE, one)},
};

#undef PASTE_
#undef PASTE
#undef LANES
#undef START
#undef STEP
#undef END
#undef EACH1
#undef EACH2
#undef EACH4
#undef EACH6
#undef EACH12
#undef EACH
#undef EACH_
#undef TILE
#undef GEMM_TARGET
#undef GEMM_TABLE
#undef GEMM_VECTOR
#undef GEMM_LOAD
#undef GEMM_STORE
#undef GEMM_SET
#undef GEMM_ADD
#undef GEMM_STEP
#undef GEMM_ROWS
