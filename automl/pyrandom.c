/* Python's random numbers. See pyrandom.h; tests/unit/predictors/test_automl_splits.c has Python's own
 * results. */
#include "automl/pyrandom.h"

#include <math.h>
#include <string.h>

#define WORDS 624
#define SHIFT 397

/* Seeding by an array, as Matsumoto and Nishimura do it, with one or two words. */
struct pyrandom pyrandom_of_int(uint64_t seed)
{
	uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	size_t n_key = key[1] ? 2 : 1, i = 1, j = 0;
	struct pyrandom r = { .at = WORDS };
	uint32_t *w = r.word;

	w[0] = 19650218;
	for (size_t k = 1; k < WORDS; k++)
		w[k] = 1812433253U * (w[k - 1] ^ (w[k - 1] >> 30)) + (uint32_t)k;
	for (size_t turn = 0; turn < 2 * WORDS - 1; turn++) {
		uint32_t before = w[i - 1] ^ (w[i - 1] >> 30);

		if (turn < WORDS) {
			w[i] = (w[i] ^ before * 1664525U) + key[j] + (uint32_t)j;
			j = (j + 1) % n_key;
		} else {
			w[i] = (w[i] ^ before * 1566083941U) - (uint32_t)i;
		}
		if (++i == WORDS) {
			w[0] = w[WORDS - 1];
			i = 1;
		}
	}
	w[0] = 0x80000000U;
	return r;
}

/* Python's hash of a number is its value modulo 2^61 - 1, where 2^-1 is 2^60. */
struct pyrandom pyrandom_of_float(double seed)
{
	const uint64_t prime = (1ULL << 61) - 1;
	int exponent;
	double mantissa = frexp(seed, &exponent);
	uint64_t hash = (uint64_t)ldexp(mantissa, 53) % prime;
	int turn = ((exponent - 53) % 61 + 61) % 61;

	return pyrandom_of_int(turn ? ((hash << turn) & prime) | (hash >> (61 - turn)) : hash);
}

static uint32_t next_word(struct pyrandom *r)
{
	uint32_t y;

	if (r->at == WORDS) {
		for (size_t k = 0; k < WORDS; k++) {
			y = (r->word[k] & 0x80000000U) | (r->word[(k + 1) % WORDS] & 0x7fffffffU);
			r->word[k] = r->word[(k + SHIFT) % WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfU : 0);
		}
		r->at = 0;
	}
	y = r->word[r->at++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680U;
	y ^= (y << 15) & 0xefc60000U;
	return y ^ (y >> 18);
}

double pyrandom_next(struct pyrandom *r)
{
	uint32_t high = next_word(r) >> 5, low = next_word(r) >> 6;

	return ((double)high * 67108864.0 + (double)low) * 0x1p-53;
}

static size_t below(struct pyrandom *r, size_t n) /* n < 2^32 */
{
	int bits = 64 - __builtin_clzll(n);
	size_t v;

	do
		v = next_word(r) >> (32 - bits);
	while (v >= n);
	return v;
}

void pyrandom_sample(struct pyrandom *r, size_t n, size_t k, uint32_t *pool, uint8_t *taken)
{
	/* Python draws from a list, or again until the number is new, whichever takes less room. */
	double room = 21.0 + (k > 5 ? pow(4.0, ceil(log(3.0 * (double)k) / log(4.0))) : 0.0);

	memset(taken, 0, n);
	for (size_t i = 0; i < n; i++)
		pool[i] = (uint32_t)i;
	for (size_t i = 0; i < k; i++) {
		size_t j;

		if ((double)n <= room) {
			j = below(r, n - i);
			taken[pool[j]] = 1;
			pool[j] = pool[n - i - 1];
			continue;
		}
		do
			j = below(r, n);
		while (taken[j]);
		taken[j] = 1;
	}
}
