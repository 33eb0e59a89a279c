/*
 * sbp_kernel.h: what emitted kernels are made of. A vector of 16 f32 lanes with
 * one meaning on every processor: AVX-512, AVX2 and plain code give the same
 * bits (SLEEF's finz family; its cinz family where there is no FMA).
 *
 *   sbp_v16   16 floats         v_load v_store v_set v_exp v_max ...
 *   sbp_m16   16 bools, 0 or -1 m_load m_store m_set
 *   s_...     one float         d_... one double
 *
 * Included by every emitted file, so it stays small and includes no headers
 * of libc.
 */
#ifndef SBP_KERNEL_H
#define SBP_KERNEL_H

#include "sbp.h"
#include "sbp_random.h"

/* Vectors wider than the processor's are passed between inlined functions
 * only, so the warning on their ABI says nothing. gcc's note on the same, once
 * a file, obeys no pragma: -Wno-psabi, or -march for AVX-512, ends it. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define SBP_INLINE static inline __attribute__((always_inline, unused))

typedef float sbp_v16 __attribute__((vector_size(64)));
typedef int32_t sbp_m16 __attribute__((vector_size(64)));
typedef uint32_t sbp_u16 __attribute__((vector_size(64)));
typedef uint16_t sbp_h16 __attribute__((vector_size(32)));
typedef int8_t sbp_b16 __attribute__((vector_size(16)));
typedef float sbp_v8 __attribute__((vector_size(32)));
typedef float sbp_v4 __attribute__((vector_size(16)));

/* ---- lanes ---- */

/* How many of the LEFT elements fit in a vector. */
SBP_INLINE int sbp_lanes(int64_t left)
{
	return left < 16 ? (int)left : 16;
}

SBP_INLINE sbp_v16 v_set(float x)
{
	return (sbp_v16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

SBP_INLINE sbp_m16 m_set(int on)
{
	int32_t x = -(on != 0);

	return (sbp_m16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

/* The first N lanes. */
SBP_INLINE sbp_m16 m_first(int n)
{
	sbp_m16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	return lane < n;
}

SBP_INLINE sbp_v16 v_where(sbp_m16 c, sbp_v16 a, sbp_v16 b)
{
	return (sbp_v16)((c & (sbp_m16)a) | (~c & (sbp_m16)b));
}

SBP_INLINE sbp_m16 m_where(sbp_m16 c, sbp_m16 a, sbp_m16 b)
{
	return (c & a) | (~c & b);
}

/* The first N lanes of X, OTHER in the rest. */
SBP_INLINE sbp_v16 v_keep(sbp_v16 x, int n, float other)
{
	return v_where(m_first(n), x, v_set(other));
}

SBP_INLINE sbp_m16 m_keep(sbp_m16 x, int n, int other)
{
	return m_where(m_first(n), x, m_set(other));
}

/* ---- memory: whole vectors, or the first n elements of one ---- */

SBP_INLINE sbp_v16 v_load(const float *p)
{
	sbp_v16 x;

	__builtin_memcpy(&x, p, sizeof x);
	return x;
}

SBP_INLINE void v_store(float *p, sbp_v16 x)
{
	__builtin_memcpy(p, &x, sizeof x);
}

/* Lanes from n on are 0. */
SBP_INLINE sbp_v16 v_load_n(const float *p, int n)
{
#if defined(__AVX512F__)
	return (sbp_v16)__builtin_ia32_loadups512_mask(
		p, v_set(0), (unsigned short)((1u << n) - 1));
#else
	sbp_v16 x = {0};

	if (n == 16)
		return v_load(p);
	for (int i = 0; i < n; i++)
		x[i] = p[i];
	return x;
#endif
}

SBP_INLINE void v_store_n(float *p, sbp_v16 x, int n)
{
#if defined(__AVX512F__)
	__builtin_ia32_storeups512_mask(p, x,
					(unsigned short)((1u << n) - 1));
#else
	if (n == 16)
		v_store(p, x);
	else
		for (int i = 0; i < n; i++)
			p[i] = x[i];
#endif
}

SBP_INLINE sbp_m16 m_load_n(const uint8_t *p, int n)
{
	sbp_b16 x = {0};

	if (n == 16)
		__builtin_memcpy(&x, p, sizeof x);
	else
		for (int i = 0; i < n; i++)
			x[i] = (int8_t)p[i];
	return __builtin_convertvector(x, sbp_m16) != 0;
}

SBP_INLINE void m_store_n(uint8_t *p, sbp_m16 x, int n)
{
	sbp_b16 b = __builtin_convertvector(-x, sbp_b16);

	if (n == 16)
		__builtin_memcpy(p, &b, sizeof b);
	else
		for (int i = 0; i < n; i++)
			p[i] = (uint8_t)b[i];
}

SBP_INLINE sbp_m16 m_load(const uint8_t *p)
{
	return m_load_n(p, 16);
}

SBP_INLINE void m_store(uint8_t *p, sbp_m16 x)
{
	m_store_n(p, x, 16);
}

SBP_INLINE sbp_h16 h_load_n(const uint16_t *p, int n)
{
	sbp_h16 x = {0};

	if (n == 16)
		__builtin_memcpy(&x, p, sizeof x);
	else
		for (int i = 0; i < n; i++)
			x[i] = p[i];
	return x;
}

SBP_INLINE void h_store_n(uint16_t *p, sbp_h16 x, int n)
{
	if (n == 16)
		__builtin_memcpy(p, &x, sizeof x);
	else
		for (int i = 0; i < n; i++)
			p[i] = x[i];
}

/* ---- f16 and bf16: 16-bit integers in memory, f32 in a register ---- */

SBP_INLINE sbp_u16 v_bits_bf16(sbp_v16 x)
{
	sbp_u16 b = (sbp_u16)x;
	sbp_u16 even = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
	sbp_u16 nan = (b >> 16) | 0x40;
	sbp_u16 is_nan = (sbp_u16)(x != x);

	return (is_nan & nan) | (~is_nan & even);
}

/* To even; what is too small for a normal number is rounded by the addition
 * of 0.5, whose last bit is then the smallest step of an f16. */
SBP_INLINE sbp_u16 v_bits_f16(sbp_v16 x)
{
	sbp_u16 sign = (sbp_u16)x & 0x80000000u;
	sbp_u16 b = (sbp_u16)x ^ sign;
	sbp_u16 small = (sbp_u16)((sbp_v16)b + 0.5f) - 0x3f000000u;
	sbp_u16 even = (b + 0xc8000fffu + ((b >> 13) & 1)) >> 13;
	sbp_u16 is_small = (sbp_u16)(b < 0x38800000u);
	sbp_u16 is_large = (sbp_u16)(b >= 0x47800000u);
	sbp_u16 is_nan = (sbp_u16)(b > 0x7f800000u);
	sbp_u16 h = (is_small & small) | (~is_small & even);

	h = (is_large & 0x7c00u) | (~is_large & h);
	h = (is_nan & 0x7e00u) | (~is_nan & h);
	return h | (sign >> 16);
}

SBP_INLINE sbp_v16 v_from_bf16(sbp_u16 h)
{
	return (sbp_v16)(h << 16);
}

SBP_INLINE sbp_v16 v_from_f16(sbp_u16 h)
{
	sbp_u16 sign = (h & 0x8000u) << 16, b = (h & 0x7fffu) << 13;
	sbp_u16 special = (sbp_u16)(b >= 0x0f800000u) & 0x38000000u;
	sbp_v16 x = (sbp_v16)b * 0x1p112f;	/* exact, subnormals too */

	return (sbp_v16)((sbp_u16)x | special | sign);
}

SBP_INLINE sbp_v16 v_round_bf16(sbp_v16 x)
{
	return v_from_bf16(v_bits_bf16(x));
}

SBP_INLINE sbp_v16 v_round_f16(sbp_v16 x)
{
	return v_from_f16(v_bits_f16(x));
}

SBP_INLINE sbp_v16 v_load_bf16_n(const uint16_t *p, int n)
{
	return v_from_bf16(__builtin_convertvector(h_load_n(p, n), sbp_u16));
}

SBP_INLINE sbp_v16 v_load_f16_n(const uint16_t *p, int n)
{
	return v_from_f16(__builtin_convertvector(h_load_n(p, n), sbp_u16));
}

SBP_INLINE void v_store_bf16_n(uint16_t *p, sbp_v16 x, int n)
{
	h_store_n(p, __builtin_convertvector(v_bits_bf16(x), sbp_h16), n);
}

SBP_INLINE void v_store_f16_n(uint16_t *p, sbp_v16 x, int n)
{
	h_store_n(p, __builtin_convertvector(v_bits_f16(x), sbp_h16), n);
}

SBP_INLINE sbp_v16 v_load_bf16(const uint16_t *p)
{
	return v_load_bf16_n(p, 16);
}

SBP_INLINE sbp_v16 v_load_f16(const uint16_t *p)
{
	return v_load_f16_n(p, 16);
}

SBP_INLINE void v_store_bf16(uint16_t *p, sbp_v16 x)
{
	v_store_bf16_n(p, x, 16);
}

SBP_INLINE void v_store_f16(uint16_t *p, sbp_v16 x)
{
	v_store_f16_n(p, x, 16);
}

static inline float s_from_bf16(uint16_t h)
{
	uint32_t b = (uint32_t)h << 16;
	float x;

	__builtin_memcpy(&x, &b, sizeof x);
	return x;
}

static inline float s_from_f16(uint16_t h)
{
	return v_from_f16(__builtin_convertvector((sbp_h16){h}, sbp_u16))[0];
}

static inline uint16_t s_bits_bf16(float x)
{
	return (uint16_t)v_bits_bf16((sbp_v16){x})[0];
}

static inline uint16_t s_bits_f16(float x)
{
	return (uint16_t)v_bits_f16((sbp_v16){x})[0];
}

static inline float s_round_bf16(float x)
{
	return s_from_bf16(s_bits_bf16(x));
}

static inline float s_round_f16(float x)
{
	return s_from_f16(s_bits_f16(x));
}

/* A double rounds to f32 first as C does, but to odd, so that the second
 * rounding is the only one. */
static inline float s_odd(double d)
{
	float x = (float)d;
	int32_t b;

	if ((double)x == d || x != x)
		return x;
	__builtin_memcpy(&b, &x, sizeof b);
	if (((double)x > d) == (d > 0))
		b--;		/* towards zero */
	b |= 1;
	__builtin_memcpy(&x, &b, sizeof b);
	return x;
}

/* ---- elementary functions ---- */

SBP_INLINE sbp_v16 v_abs(sbp_v16 x)
{
	return (sbp_v16)((sbp_m16)x & 0x7fffffff);
}

/* a if it is a nan, else b's nan or the greater. */
SBP_INLINE sbp_v16 v_max(sbp_v16 a, sbp_v16 b)
{
	return v_where((a > b) | (a != a), a, b);
}

SBP_INLINE sbp_v16 v_min(sbp_v16 a, sbp_v16 b)
{
	return v_where((a < b) | (a != a), a, b);
}

SBP_INLINE sbp_v16 v_relu(sbp_v16 x)
{
	return v_where(x < 0, v_set(0), x);	/* nan stays nan */
}

SBP_INLINE sbp_v16 v_sign(sbp_v16 x)
{
	return v_where(x > 0, v_set(1), v_where(x < 0, v_set(-1), x));
}

SBP_INLINE sbp_m16 v_isnan(sbp_v16 x)
{
	return x != x;
}

/* From 2^23 on every float is an integer. T is the integer near X. */
SBP_INLINE sbp_v16 v_whole(sbp_v16 x, sbp_v16 t)
{
	sbp_m16 sign = (sbp_m16)x & (int32_t)0x80000000u;

	t = (sbp_v16)((sbp_m16)t | sign);	/* -0.0 and what rounds to it */
	return v_where(v_abs(x) < 0x1p23f, t, x);
}

SBP_INLINE sbp_v16 v_trunc(sbp_v16 x)
{
	sbp_v16 y = v_where(v_abs(x) < 0x1p23f, x, v_set(0));
	sbp_m16 i = __builtin_convertvector(y, sbp_m16);

	return __builtin_convertvector(i, sbp_v16);
}

SBP_INLINE sbp_v16 v_floor(sbp_v16 x)
{
	sbp_v16 t = v_trunc(x);

	return v_whole(x, t - v_where(t > x, v_set(1), v_set(0)));
}

SBP_INLINE sbp_v16 v_ceil(sbp_v16 x)
{
	sbp_v16 t = v_trunc(x);

	return v_whole(x, t + v_where(t < x, v_set(1), v_set(0)));
}

/* Half to even. */
SBP_INLINE sbp_v16 v_round(sbp_v16 x)
{
	sbp_v16 t = (v_abs(x) + 0x1p23f) - 0x1p23f;

	return v_whole(x, t);
}

/* The widest vector function that SLEEF has for this processor. */
#if defined(__AVX512F__)
#define SBP_SLEEF(name, f, u)                                                 \
	sbp_v16 Sleef_finz_##f##f16_##u##avx512f(sbp_v16);                    \
	SBP_INLINE sbp_v16 name(sbp_v16 x)                                    \
	{                                                                     \
		return Sleef_finz_##f##f16_##u##avx512f(x);                   \
	}
#define SBP_SLEEF2(name, f, u)                                                \
	sbp_v16 Sleef_finz_##f##f16_##u##avx512f(sbp_v16, sbp_v16);           \
	SBP_INLINE sbp_v16 name(sbp_v16 x, sbp_v16 y)                         \
	{                                                                     \
		return Sleef_finz_##f##f16_##u##avx512f(x, y);                \
	}
#elif defined(__AVX2__) && defined(__FMA__)
#define SBP_PART sbp_v8
#define SBP_SLEEF_NAME(f, u) Sleef_finz_##f##f8_##u##avx2
#elif defined(__SSE2__) && !defined(__FMA__)
#define SBP_PART sbp_v4
#define SBP_SLEEF_NAME(f, u) Sleef_cinz_##f##f4_##u##sse2
#else
#define SBP_PART float
#define SBP_SLEEF_NAME(f, u) SBP_SLEEF_ONE(f##f1, u)
#endif

/* One lane: the same bits. */
#if defined(__FMA__)
#define SBP_SLEEF_ONE(f, u) Sleef_finz_##f##_##u##purecfma
#else
#define SBP_SLEEF_ONE(f, u) Sleef_cinz_##f##_##u##purec
#endif

#ifdef SBP_PART
#define SBP_PARTS (sizeof(sbp_v16) / sizeof(SBP_PART))
#define SBP_SLEEF(name, f, u)                                                 \
	SBP_PART SBP_SLEEF_NAME(f, u)(SBP_PART);                              \
	SBP_INLINE sbp_v16 name(sbp_v16 x)                                    \
	{                                                                     \
		SBP_PART p[SBP_PARTS];                                        \
		__builtin_memcpy(p, &x, sizeof p);                            \
		for (unsigned i = 0; i < SBP_PARTS; i++)                      \
			p[i] = SBP_SLEEF_NAME(f, u)(p[i]);                    \
		__builtin_memcpy(&x, p, sizeof p);                            \
		return x;                                                     \
	}
#define SBP_SLEEF2(name, f, u)                                                \
	SBP_PART SBP_SLEEF_NAME(f, u)(SBP_PART, SBP_PART);                    \
	SBP_INLINE sbp_v16 name(sbp_v16 x, sbp_v16 y)                         \
	{                                                                     \
		SBP_PART p[SBP_PARTS], q[SBP_PARTS];                          \
		__builtin_memcpy(p, &x, sizeof p);                            \
		__builtin_memcpy(q, &y, sizeof q);                            \
		for (unsigned i = 0; i < SBP_PARTS; i++)                      \
			p[i] = SBP_SLEEF_NAME(f, u)(p[i], q[i]);              \
		__builtin_memcpy(&x, p, sizeof p);                            \
		return x;                                                     \
	}
#endif

SBP_SLEEF(v_exp, exp, u10)
SBP_SLEEF(v_log, log, u10)
SBP_SLEEF(v_log1p, log1p, u10)
SBP_SLEEF(v_sin, sin, u10)
SBP_SLEEF(v_cos, cos, u10)
SBP_SLEEF(v_tanh, tanh, u10)
SBP_SLEEF(v_erf, erf, u10)
SBP_SLEEF2(v_pow, pow, u10)

SBP_INLINE sbp_v16 v_sigmoid(sbp_v16 x)
{
	return 1.0f / (1.0f + v_exp(-x));
}

SBP_INLINE sbp_v16 v_sqrt(sbp_v16 x)
{
#if defined(__AVX512F__) && defined(__clang__)
	return (sbp_v16)__builtin_ia32_sqrtps512(x, 4);
#elif defined(__AVX512F__)
	return (sbp_v16)__builtin_ia32_sqrtps512_mask(x, x, 0xffff, 4);
#elif defined(__SSE2__)
	sbp_v4 p[4];

	__builtin_memcpy(p, &x, sizeof p);
	for (int i = 0; i < 4; i++)
		p[i] = __builtin_ia32_sqrtps(p[i]);
	__builtin_memcpy(&x, p, sizeof p);
	return x;
#else
	for (int i = 0; i < 16; i++)
		x[i] = __builtin_sqrtf(x[i]);
	return x;
#endif
}

SBP_INLINE sbp_v16 v_from_m(sbp_m16 x)		/* 1 or 0 */
{
	return __builtin_convertvector(-x, sbp_v16);
}

/* ---- the sum, the greatest, ... of all lanes, in each lane; a fixed tree ---- */

#define SBP_ACROSS(name, type, lane, combine)                                 \
	SBP_INLINE type name(type x)                                          \
	{                                                                     \
		lane a[16];                                                   \
		__builtin_memcpy(a, &x, sizeof a);                            \
		for (int w = 8; w > 0; w /= 2)                                \
			for (int i = 0; i < w; i++)                           \
				a[i] = combine(a[i], a[i + w]);               \
		for (int i = 1; i < 16; i++)                                  \
			a[i] = a[0];                                          \
		__builtin_memcpy(&x, a, sizeof a);                            \
		return x;                                                     \
	}

static inline float s_max(float a, float b) { return a > b || a != a ? a : b; }
static inline float s_min(float a, float b) { return a < b || a != a ? a : b; }
static inline float s_add(float a, float b) { return a + b; }
static inline float s_mul(float a, float b) { return a * b; }
static inline int32_t s_or(int32_t a, int32_t b) { return a | b; }
static inline int32_t s_and(int32_t a, int32_t b) { return a & b; }

SBP_ACROSS(v_across_sum, sbp_v16, float, s_add)
SBP_ACROSS(v_across_prod, sbp_v16, float, s_mul)
SBP_ACROSS(v_across_max, sbp_v16, float, s_max)
SBP_ACROSS(v_across_min, sbp_v16, float, s_min)
SBP_ACROSS(m_across_any, sbp_m16, int32_t, s_or)
SBP_ACROSS(m_across_all, sbp_m16, int32_t, s_and)

/* ---- one float, one double: for kernels of mixed and other types ---- */

#define SBP_SCALAR(f)                                                         \
	float SBP_SLEEF_ONE(f##f1, u10)(float);                               \
	double SBP_SLEEF_ONE(f##d1, u10)(double);                             \
	static inline float s_##f(float x)                                    \
	{                                                                     \
		return SBP_SLEEF_ONE(f##f1, u10)(x);                          \
	}                                                                     \
	static inline double d_##f(double x)                                  \
	{                                                                     \
		return SBP_SLEEF_ONE(f##d1, u10)(x);                          \
	}

SBP_SCALAR(exp)
SBP_SCALAR(log)
SBP_SCALAR(log1p)
SBP_SCALAR(sin)
SBP_SCALAR(cos)
SBP_SCALAR(tanh)
SBP_SCALAR(erf)

float SBP_SLEEF_ONE(powf1, u10)(float, float);
double SBP_SLEEF_ONE(powd1, u10)(double, double);

static inline float s_pow(float x, float y)
{
	return SBP_SLEEF_ONE(powf1, u10)(x, y);
}

static inline double d_pow(double x, double y)
{
	return SBP_SLEEF_ONE(powd1, u10)(x, y);
}

static inline float s_sigmoid(float x) { return 1 / (1 + s_exp(-x)); }
static inline double d_sigmoid(double x) { return 1 / (1 + d_exp(-x)); }
static inline float s_sqrt(float x) { return v_sqrt(v_set(x))[0]; }
static inline float s_abs(float x) { return __builtin_fabsf(x); }
static inline double d_abs(double x) { return __builtin_fabs(x); }
static inline float s_relu(float x) { return x < 0 ? 0 : x; }
static inline double d_relu(double x) { return x < 0 ? 0 : x; }
static inline float s_sign(float x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static inline double d_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static inline float s_floor(float x) { return v_floor(v_set(x))[0]; }
static inline float s_ceil(float x) { return v_ceil(v_set(x))[0]; }
static inline float s_round(float x) { return v_round(v_set(x))[0]; }

static inline double d_sqrt(double x)
{
#if defined(__SSE2__)
	typedef double pair __attribute__((vector_size(16)));

	return __builtin_ia32_sqrtpd((pair){x, 1})[0];
#else
	return __builtin_sqrt(x);
#endif
}

static inline double d_max(double a, double b)
{
	return a > b || a != a ? a : b;
}

static inline double d_min(double a, double b)
{
	return a < b || a != a ? a : b;
}

static inline double d_whole(double x, double t)
{
	return d_abs(x) < 0x1p52 ? __builtin_copysign(t, x) : x;
}

static inline double d_trunc(double x)
{
	return d_abs(x) < 0x1p52 ? (double)(int64_t)x : 0;
}

static inline double d_floor(double x)
{
	double t = d_trunc(x);

	return d_whole(x, t - (t > x));
}

static inline double d_ceil(double x)
{
	double t = d_trunc(x);

	return d_whole(x, t + (t < x));
}

static inline double d_round(double x)
{
	return d_whole(x, (d_abs(x) + 0x1p52) - 0x1p52);
}

/* *BAD is set by 0. */
static inline int64_t i_divisor(int64_t x, int *bad)
{
	*bad |= x == 0;
	return x;
}

/* Integers wrap. *BAD is set by 0 to a negative power. */
static inline int64_t i_pow(int64_t x, int64_t y, int *bad)
{
	uint64_t r = 1, b = (uint64_t)x;

	if (y < 0) {
		*bad |= x == 0;
		return x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1 ? 1 : 0) : 0;
	}
	for (; y > 0; y >>= 1, b *= b)
		if (y & 1)
			r *= b;
	return (int64_t)r;
}

/* Truncates and saturates; nan gives 0. */
static inline int64_t i_cast(double x, double low, double high)
{
	if (!(x > low))
		return x != x ? 0 : (int64_t)low;
	return x < high ? (int64_t)x : (int64_t)high;
}

static inline int32_t i32_cast(double x)
{
	return (int32_t)i_cast(x, -0x1p31, 0x1p31 - 1);
}

static inline int8_t i8_cast(double x)
{
	return (int8_t)i_cast(x, -128, 127);
}

static inline uint8_t u8_cast(double x)
{
	return (uint8_t)i_cast(x, 0, 255);
}

static inline int64_t i64_cast(double x)
{
	return x >= 0x1p63 ? INT64_MAX : i_cast(x, -0x1p63, 0x1p63);
}

/* ---- products of dense f32 matrices: gemm.c; n as it is, t transposed ---- */

static inline sbp_status sbp_gemm_nn(sbp_model *m, int64_t rows, int64_t cols,
				     int64_t inner, const float *a,
				     const float *b, float *c)
{
	return sbp_gemm(m, SBP_F32, 0, 0, rows, cols, inner, a, inner, b,
			cols, c);
}

static inline sbp_status sbp_gemm_nt(sbp_model *m, int64_t rows, int64_t cols,
				     int64_t inner, const float *a,
				     const float *b, float *c)
{
	return sbp_gemm(m, SBP_F32, 0, 1, rows, cols, inner, a, inner, b,
			inner, c);
}

static inline sbp_status sbp_gemm_tn(sbp_model *m, int64_t rows, int64_t cols,
				     int64_t inner, const float *a,
				     const float *b, float *c)
{
	return sbp_gemm(m, SBP_F32, 1, 0, rows, cols, inner, a, rows, b,
			cols, c);
}

static inline sbp_status sbp_gemm_tt(sbp_model *m, int64_t rows, int64_t cols,
				     int64_t inner, const float *a,
				     const float *b, float *c)
{
	return sbp_gemm(m, SBP_F32, 1, 1, rows, cols, inner, a, rows, b,
			inner, c);
}

#endif
