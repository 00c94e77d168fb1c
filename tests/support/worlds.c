/* Tables whose truth is known: smooth functions with noise, factorial designs. See worlds.h. */
#include "tests/support/worlds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static struct dataset *make(size_t n, size_t p)
{
	struct dataset *d = calloc(1, sizeof *d);

	assert(d);
	d->n_rows = n;
	d->n_features = p;
	d->x = calloc(n * p, sizeof *d->x);
	d->y = calloc(n, sizeof *d->y);
	assert(d->x && d->y);
	return d;
}

struct dataset *world_factorial(size_t replications, double noise, uint64_t seed)
{
	static const double cpus[] = { 1, 2, 4, 8 }, batch[] = { 64, 128, 256, 512 }, njobs[] = { 1, 3, 5 };
	struct dataset *d = make(96 * replications, 5);
	struct rng rng = rng_stream(seed, 96);
	size_t n = 0;

	d->group = calloc(d->n_rows, sizeof *d->group);
	assert(d->group);
	for (size_t r = 0; r < replications; r++)
		for (size_t s = 0; s < 96; s++, n++) {
			double *x = d->x + 5 * n;

			x[0] = (double)(s % 2);
			x[1] = cpus[s / 2 % 4];
			x[2] = njobs[s / 8 % 3];
			x[3] = batch[s / 24];
			x[4] = x[1] * x[2];
			d->y[n] = 600000 / x[3] *
				  (0.04 + 0.006 * x[0] + 2e-4 * x[3] / pow(x[1], 0.7) +
				   0.007 * (1 + x[4] / 23)) *
				  (1 + noise * rng_normal(&rng));
			d->group[n] = (uint32_t)s;
		}
	return d;
}

struct dataset *world_smooth(size_t n, size_t p, double noise, double growth, uint64_t seed)
{
	struct dataset *d = make(n, p);
	struct rng rng = rng_stream(seed, n);

	for (size_t i = 0; i < n; i++) {
		double *x = d->x + i * p;

		for (size_t f = 0; f < p; f++)
			x[f] = rng_uniform(&rng);
		d->y[i] = 10 * sin(3 * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) + 10 * x[3] +
			  noise * rng_normal(&rng) * (1 + growth * x[3]);
	}
	return d;
}
