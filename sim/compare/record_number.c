#include "sim/compare/record_number.h"

#include <math.h>
#include <stdbool.h>

#include "common/text/text.h"

#define DIGITS 24 /* more than a 64-bit number has */
#define MANTISSA_BITS 53
/* What is in between fits the 128 bits that are reckoned in below, and is printed without an exponent. */
#define LEAST 1e-3
#define MOST 1e9

typedef unsigned __int128 wide;

static const uint64_t power_of_ten[] = { 1ULL,
					 10ULL,
					 100ULL,
					 1000ULL,
					 10000ULL,
					 100000ULL,
					 1000000ULL,
					 10000000ULL,
					 100000000ULL,
					 1000000000ULL,
					 10000000000ULL,
					 100000000000ULL,
					 1000000000000ULL,
					 10000000000000ULL,
					 100000000000000ULL,
					 1000000000000000ULL,
					 10000000000000000ULL,
					 100000000000000000ULL,
					 1000000000000000000ULL,
					 10000000000000000000ULL };

/* The digits of v so that they end before `end`, at least `least` of them; returns where they start. */
static char *digits_before(char *end, uint64_t v, int least)
{
	for (; v > 0 || least > 0; v /= 10, least--)
		*--end = (char)('0' + v % 10);
	return end;
}

/* v / 10^decimals, without zeros at the end. */
static void put_fixed(struct strbuf *out, bool minus, uint64_t v, int decimals)
{
	char text[2 * DIGITS + 2], *end = text + sizeof text, *start = end;

	for (; decimals > 0 && v % 10 == 0; decimals--)
		v /= 10;
	if (decimals > 0) {
		start = digits_before(end, v % power_of_ten[decimals], decimals);
		*--start = '.';
	}
	start = digits_before(start, v / power_of_ten[decimals], 1);
	if (minus)
		*--start = '-';
	strbuf_add(out, start, (size_t)(end - start));
}

void record_put_whole(struct strbuf *out, uint64_t v)
{
	put_fixed(out, false, v, 0);
}

void record_put_seconds(struct strbuf *out, int64_t ns)
{
	put_fixed(out, ns < 0, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, 9);
}

/* m 2^-shift is the number. Does n / 10^decimals read back as it? It does if it is nearer to it than to its
 * neighbours, which are 2^-shift away (below a power of two half of that), or as near and m is even. All
 * times 10^decimals 2^shift here. */
static bool reads_back(uint64_t m, int shift, uint64_t n, int decimals)
{
	wide have = (wide)n << shift, want = (wide)m * power_of_ten[decimals], gap = power_of_ten[decimals];
	bool below = have < want;
	wide twice = 2 * (below ? want - have : have - want);

	if (below && m == (uint64_t)1 << (MANTISSA_BITS - 1))
		twice *= 2;
	return twice < gap || (twice == gap && m % 2 == 0);
}

/* m 2^-shift 10^decimals, rounded to the nearest, of two to the even one: as printf rounds. */
static uint64_t scaled(uint64_t m, int shift, int decimals)
{
	wide product = (wide)m * power_of_ten[decimals], half = (wide)1 << (shift - 1);
	wide rest = product & (((wide)1 << shift) - 1);
	uint64_t n = (uint64_t)(product >> shift);

	return n + (rest > half || (rest == half && n % 2 == 1));
}

/* Digits in front of the point; from 0 downwards: zeros behind it, and one more. */
static int digits_in_front(double v)
{
	static const double from[] = { 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8 };
	int i = 0;

	while (i < (int)(sizeof from / sizeof *from) && v >= from[i])
		i++;
	return i - 2;
}

void record_put_double(struct strbuf *out, double v)
{
	int exponent, shift, front, digits = 15; /* as many survive the way from text to a double */
	char text[32];
	uint64_t m, n;

	if (!isfinite(v))
		return;
	if (!(v >= LEAST && v < MOST)) {
		strbuf_puts(out, text_shortest(v, text));
		return;
	}
	m = (uint64_t)ldexp(frexp(v, &exponent), MANTISSA_BITS);
	shift = MANTISSA_BITS - exponent;
	front = digits_in_front(v);
	n = scaled(m, shift, digits - front);
	while (digits < 17 && !reads_back(m, shift, n, digits - front)) {
		digits++;
		n = scaled(m, shift, digits - front);
	}
	put_fixed(out, false, n, digits - front);
}
