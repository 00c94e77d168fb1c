/* Normal and exponential numbers, and shuffling. The generator itself is inline in rng.h. */
#include "common/rng.h"

#include <math.h>

double rng_normal(struct rng *r)
{
	/* Box-Muller without the spare: a stream's state stays one word. 1-u lies in (0,1]. */
	double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r)));

	return radius * cos(2.0 * M_PI * rng_uniform(r));
}

double rng_exponential(struct rng *r)
{
	return -log(1.0 - rng_uniform(r));
}

void rng_shuffle(struct rng *r, uint32_t *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		uint32_t j = rng_below(r, (uint32_t)i), t = v[i - 1];
		v[i - 1] = v[j];
		v[j] = t;
	}
}
