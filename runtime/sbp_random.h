/*
 * sbp_random.h: Philox4x32-10, a generator without state. Every number is a
 * pure function of (seed, purpose, step, global index), so it does not depend
 * on how a tensor is distributed. Shared by the runtime and emitted kernels.
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef SBP_RANDOM_H
#define SBP_RANDOM_H

#include <stdint.h>

/* A stream of its own for each purpose: mixes both (splitmix64's finaliser,
 * applied to the seed and to the sum). */
static inline uint64_t sbp_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t sbp_stream(uint64_t seed, uint64_t purpose)
{
	return sbp_mix(sbp_mix(seed + 0x9e3779b97f4a7c15u) + purpose);
}

typedef struct sbp_random4 {
	uint32_t w[4];
} sbp_random4;

/* The block of counter (index, step, attempt) under the key STREAM. */
static inline sbp_random4 sbp_philox(uint64_t stream, uint64_t index,
				     uint32_t step, uint32_t attempt)
{
	uint32_t k0 = (uint32_t)stream, k1 = (uint32_t)(stream >> 32);
	uint32_t a = (uint32_t)index, b = (uint32_t)(index >> 32);
	uint32_t c = step, d = attempt;

	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)0xd2511f53u * a;
		uint64_t q = (uint64_t)0xcd9e8d57u * c;

		a = (uint32_t)(q >> 32) ^ b ^ k0;
		c = (uint32_t)(p >> 32) ^ d ^ k1;
		b = (uint32_t)q;
		d = (uint32_t)p;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	return (sbp_random4){{a, b, c, d}};
}

/* [0, 1) in steps of 2^-24, exact in f32. */
static inline float sbp_unit_f32(uint64_t stream, uint64_t index,
				 uint32_t step)
{
	sbp_random4 r = sbp_philox(stream, index, step, 0);

	return (float)(r.w[0] >> 8) * 0x1p-24f;
}

/* [0, 1) in steps of 2^-53. */
static inline double sbp_unit_f64(uint64_t stream, uint64_t index,
				  uint32_t step)
{
	sbp_random4 r = sbp_philox(stream, index, step, 0);
	uint64_t bits = (uint64_t)r.w[0] << 32 | r.w[1];

	return (double)(bits >> 11) * 0x1p-53;
}

/* [low, high); rounding may not reach high. */
static inline float sbp_uniform_f32(uint64_t stream, uint64_t index,
				    uint32_t step, double low, double high)
{
	double u = sbp_unit_f32(stream, index, step);
	float r = (float)(low + (high - low) * u);

	return r < (float)high ? r : (float)low;
}

static inline double sbp_uniform_f64(uint64_t stream, uint64_t index,
				     uint32_t step, double low, double high)
{
	double r = low + (high - low) * sbp_unit_f64(stream, index, step);

	return r < high ? r : low;
}

/* Mean 0, standard deviation 1, by Box and Muller; another attempt is an
 * independent number. */
static inline double sbp_normal_try(uint64_t stream, uint64_t index,
				    uint32_t step, uint32_t attempt)
{
	sbp_random4 r = sbp_philox(stream, index, step, attempt);
	double u = ((double)r.w[0] + 1) * 0x1p-32;	/* (0, 1] */
	double angle = (double)r.w[1] * (0x1p-32 * 6.283185307179586);

	return __builtin_sqrt(-2 * __builtin_log(u)) * __builtin_cos(angle);
}

static inline double sbp_normal(uint64_t stream, uint64_t index,
				uint32_t step, double mean, double std)
{
	return mean + std * sbp_normal_try(stream, index, step, 0);
}

/* Cut to [low, high]: the first of the attempts that lies there; what lies so
 * far out that 4,096 attempts miss it is set to the nearer bound. */
static inline double sbp_trunc_normal(uint64_t stream, uint64_t index,
				      uint32_t step, double mean, double std,
				      double low, double high)
{
	for (uint32_t attempt = 0; attempt < 4096; attempt++) {
		double r = sbp_normal_try(stream, index, step, attempt);

		r = mean + std * r;
		if (r >= low && r <= high)
			return r;
	}
	return mean < low ? low : high;
}

/* 1 with probability P, else 0. */
static inline int sbp_bernoulli(uint64_t stream, uint64_t index,
				uint32_t step, double p)
{
	return sbp_unit_f64(stream, index, step) < p;
}

#endif
