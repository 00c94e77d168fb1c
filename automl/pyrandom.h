/* The random numbers of Python's module `random`, so that a campaign with the same seed holds out the same
 * rows as aMLLibrary does and figures can be compared: MT19937 (Matsumoto, Nishimura, ACM TOMACS 8(1),
 * 1998). */
#ifndef AUTOML_PYRANDOM_H
#define AUTOML_PYRANDOM_H

#include <stddef.h>
#include <stdint.h>

struct pyrandom {
	uint32_t word[624];
	size_t at;
};

struct pyrandom pyrandom_of_int(uint64_t seed);   /* random.Random(seed) */
struct pyrandom pyrandom_of_float(double seed);   /* the same of a float in [0, 1): Python takes its hash */
double pyrandom_next(struct pyrandom *r);         /* r.random() */
/* r.sample(range(n), k): taken[i] is true for the k chosen. pool: scratch, n of them. */
void pyrandom_sample(struct pyrandom *r, size_t n, size_t k, uint32_t *pool, uint8_t *taken);

#endif
