/* Reproducible random streams: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). One word of state, so
 * a stream per tree, fold or job costs nothing, and a result never depends on who drew first.
 * GSL's generators carry kilobytes of state and cannot be split; they stay out of here. */
#ifndef COMMON_RNG_H
#define COMMON_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

/* The finaliser of SplitMix64: a bijection whose every output bit depends on every input bit. */
static inline uint64_t rng_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* The stream number `id` under `seed`: different ids give unrelated streams. */
static inline struct rng rng_stream(uint64_t seed, uint64_t id)
{
	struct rng r = { rng_mix(seed + 0x9e3779b97f4a7c15ULL * (rng_mix(id + 1) | 1)) };
	return r;
}

static inline uint64_t rng_next(struct rng *r)
{
	return rng_mix(r->state += 0x9e3779b97f4a7c15ULL);
}

/* Uniform on 0..n-1, n > 0, without bias (Lemire, ACM TOMACS 29(1), 2019). */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	uint64_t m = (rng_next(r) >> 32) * n;

	if ((uint32_t)m < n) {
		uint32_t reject = -n % n;
		while ((uint32_t)m < reject)
			m = (rng_next(r) >> 32) * n;
	}
	return (uint32_t)(m >> 32);
}

static inline double rng_uniform(struct rng *r) /* [0, 1) with 53 bits */
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r);                         /* mean 0, variance 1 */
double rng_exponential(struct rng *r);                    /* mean 1 */
void rng_shuffle(struct rng *r, uint32_t *v, size_t n);   /* Fisher-Yates */

#endif
