/* SHA-256 as FIPS 180-4 defines it; its symbols are used here. See sha256.h. */
#include "common/sha256.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint32_t k[64], h0[8];

/* The first 32 bits of the fractional parts of the square roots of the first 8 primes, and of the cube
 * roots of the first 64. A double has 53 bits, so they are exact. */
static void make_constants(void)
{
	int n = 0;

	if (k[0])
		return;
	for (int p = 2; n < 64; p++) {
		int d = 2;
		double root;

		while (d * d <= p && p % d)
			d++;
		if (d * d <= p)
			continue;
		if (n < 8) {
			root = sqrt(p);
			h0[n] = (uint32_t)((root - floor(root)) * 4294967296.0);
		}
		root = cbrt(p);
		k[n++] = (uint32_t)((root - floor(root)) * 4294967296.0);
	}
}

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void block(uint32_t h[8], const unsigned char *m)
{
	uint32_t w[64], a[8];

	for (int t = 0; t < 16; t++)
		w[t] = (uint32_t)m[4 * t] << 24 | (uint32_t)m[4 * t + 1] << 16 | (uint32_t)m[4 * t + 2] << 8 |
		       m[4 * t + 3];
	for (int t = 16; t < 64; t++)
		w[t] = (turn(w[t - 2], 17) ^ turn(w[t - 2], 19) ^ w[t - 2] >> 10) + w[t - 7] +
		       (turn(w[t - 15], 7) ^ turn(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 16];
	memcpy(a, h, sizeof a);
	for (int t = 0; t < 64; t++) {
		uint32_t t1 = a[7] + (turn(a[4], 6) ^ turn(a[4], 11) ^ turn(a[4], 25)) +
			      ((a[4] & a[5]) ^ (~a[4] & a[6])) + k[t] + w[t];
		uint32_t t2 = (turn(a[0], 2) ^ turn(a[0], 13) ^ turn(a[0], 22)) +
			      ((a[0] & a[1]) ^ (a[0] & a[2]) ^ (a[1] & a[2]));

		memmove(a + 1, a, 7 * sizeof *a);
		a[4] += t1;
		a[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += a[i];
}

void sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES])
{
	const unsigned char *m = bytes;
	unsigned char last[128] = { 0 };
	uint32_t h[8];
	size_t rest = len % 64, padded = rest < 56 ? 64 : 128;

	make_constants();
	memcpy(h, h0, sizeof h);
	for (size_t i = 0; i + 64 <= len; i += 64)
		block(h, m + i);
	if (rest)
		memcpy(last, m + len - rest, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[padded - 1 - (size_t)i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
	for (size_t i = 0; i < padded; i += 64)
		block(h, last + i);
	for (int i = 0; i < 32; i++)
		out[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
