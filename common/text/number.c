/* Numbers to text and back. text_shortest() is the one way from a double to text: models, traces,
 * replies and reports all hold numbers, so its speed shows; the usual case is reckoned in whole
 * numbers, without printf. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ---- reading ---- */

/* Decimal notation only: strtod alone would also take blanks, "0x1p3", "inf" and "nan". */
bool text_number(const char *s, double *out)
{
	static const double ten_to[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const char *p = s;
	uint64_t mantissa = 0;
	long exponent = 0, written = 0;
	int n_digits = 0, n_kept = 0;
	bool negative = *p == '-', down = false;
	double v;

	if (*p == '-' || *p == '+')
		p++;
	for (; is_digit(*p); p++, n_digits++) {
		if (n_kept < 19 && (mantissa = mantissa * 10 + (uint64_t)(*p - '0')))
			n_kept++;
		else if (mantissa)
			exponent++;
		if (n_digits > 400) /* no text of a finite number needs that many before the point */
			return false;
	}
	if (*p == '.') {
		for (p++; is_digit(*p); p++) {
			if (n_digits < 1000) /* only whether there was any matters from here on */
				n_digits++;
			if (n_kept < 19) {
				mantissa = mantissa * 10 + (uint64_t)(*p - '0');
				n_kept += mantissa != 0;
				exponent--;
			}
		}
	}
	if (n_digits == 0)
		return false;
	if (*p == 'e' || *p == 'E') {
		p++;
		down = *p == '-';
		if (*p == '-' || *p == '+')
			p++;
		if (!is_digit(*p))
			return false;
		for (; is_digit(*p); p++)
			if (written < 100000)
				written = written * 10 + (*p - '0');
		exponent += down ? -written : written;
	}
	if (*p != '\0')
		return false;
#if FLT_EVAL_METHOD == 0
	/* Both operands are exact and the one operation rounds once, so this is what strtod would give
	 * (Clinger, PLDI 1990), several times sooner; tables of measurements hold little else. With 19
	 * digits kept none was dropped unless the mantissa is beyond 2^53 anyway. */
	if (mantissa <= (UINT64_C(1) << 53) && exponent >= -22 && exponent <= 22) {
		v = exponent < 0 ? (double)mantissa / ten_to[-exponent] : (double)mantissa * ten_to[exponent];
		*out = negative ? -v : v;
		return true;
	}
#endif
	v = strtod(s, NULL);
	if (!isfinite(v))
		return false;
	*out = v;
	return true;
}

bool text_uint64(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (!is_digit(*s) || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	}
	*out = v;
	return true;
}

/* ---- writing ---- */

typedef unsigned __int128 wide;

#define MANTISSA_BITS 53
/* Between these the reckoning below fits 128 bits, and printf's %g would write no exponent. */
#define LEAST 1e-3
#define MOST 1e9

/* 10^n, exactly: so small a power is a double without rounding, too. */
static const uint64_t power_of_ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
					 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19 };

static const char pairs[] = /* all of two digits */
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";

/* Writes v with this many digits, zeros in front if it has fewer; returns the end. */
static inline char *put_digits(char *p, uint64_t v, int digits)
{
	char *end = p + digits;

	for (p = end; digits >= 2; digits -= 2) {
		p -= 2;
		memcpy(p, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (digits)
		p[-1] = (char)('0' + v % 10);
	return end;
}

static inline char *put_whole(char *p, uint64_t v)
{
	int digits = 1;

	if (v < 10) {
		*p = (char)('0' + v);
		return p + 1;
	}
	while (digits < 20 && v >= power_of_ten[digits])
		digits++;
	return put_digits(p, v, digits);
}

/* Six digits as three pairs. */
static inline char *put_six(char *p, uint32_t v)
{
	memcpy(p, pairs + v / 10000 * 2, 2);
	memcpy(p + 2, pairs + v / 100 % 100 * 2, 2);
	memcpy(p + 4, pairs + v % 100 * 2, 2);
	return p + 6;
}

static inline char *put_decimal(char *p, bool minus, uint64_t whole, uint64_t fraction, int decimals)
{
	if (minus)
		*p++ = '-';
	p = put_whole(p, whole);
	if (!fraction)
		return p;
	*p++ = '.';
	p = decimals == 6 ? put_six(p, (uint32_t)fraction) : put_digits(p, fraction, decimals);
	while (p[-1] == '0')
		p--;
	return p;
}

/* The usual numbers of decimals are divided by constants, which takes no division. */
static inline char *decimal_end(bool minus, uint64_t v, int decimals, char *p)
{
	uint64_t unit = power_of_ten[decimals];

	switch (decimals) {
	case 0: return put_decimal(p, minus, v, 0, 0);
	case 3: return put_decimal(p, minus, v / 1000, v % 1000, 3);
	case 6: return put_decimal(p, minus, v / 1000000, v % 1000000, 6);
	default: return put_decimal(p, minus, v / unit, v % unit, decimals);
	}
}

char *text_decimal(bool minus, uint64_t v, int decimals, char *buf)
{
	*decimal_end(minus, v, decimals, buf) = '\0';
	return buf;
}

char *text_int64(int64_t v, char *buf)
{
	/* The smallest one has no positive counterpart, but its remainder as unsigned is right. */
	return text_decimal(v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 0, buf);
}

/* m 2^-shift 10^decimals rounded to the nearest whole number, halves to the even one, as printf rounds. The
 * product is exact in 128 bits, so nothing is rounded twice. */
static uint64_t scaled(uint64_t m, int shift, int decimals)
{
	wide product = (wide)m * power_of_ten[decimals], half = (wide)1 << (shift - 1);
	wide rest = product & (((wide)1 << shift) - 1);
	uint64_t n = (uint64_t)(product >> shift);

	return n + (rest > half || (rest == half && n % 2 == 1));
}

/* |v| = *out_m 2^-shift with a mantissa of 53 bits; returns the shift. Zero and subnormal numbers get a
 * shift that is far too large, but none that is small. */
static int taken_apart(double v, uint64_t *out_m)
{
	const uint64_t hidden = (uint64_t)1 << (MANTISSA_BITS - 1);
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	*out_m = (bits & (hidden - 1)) | hidden;
	return 1075 - (int)(bits >> 52 & 0x7ff);
}

/* m 2^-shift is the number. Does n / 10^decimals read back as it? It does if it is nearer to it than to
 * its neighbours, which are 2^-shift away (below a power of two half of that), or as near and m is
 * even. Everything is times 10^decimals 2^shift here. */
static bool reads_back(uint64_t m, int shift, uint64_t n, int decimals)
{
	wide have = (wide)n << shift, want = (wide)m * power_of_ten[decimals], gap = power_of_ten[decimals];
	bool below = have < want;
	wide twice = 2 * (below ? want - have : have - want);

	if (below && m == (uint64_t)1 << (MANTISSA_BITS - 1))
		twice *= 2;
	return twice < gap || (twice == gap && m % 2 == 0);
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

/* 15 digits survive any double's way from text and back, 17 bring any double back. */
char *text_shortest(double v, char *buf)
{
	double size = fabs(v);
	int shift, front, digits = 15;
	uint64_t m, n;

	if (v == floor(v) && size < 1e15)
		return text_decimal(signbit(v), (uint64_t)size, 0, buf);
	if (!(size >= LEAST && size < MOST)) {
		for (; digits <= 17; digits++) {
			snprintf(buf, TEXT_NUMBER, "%.*g", digits, v);
			if (strtod(buf, NULL) == v)
				break;
		}
		return buf;
	}
	shift = taken_apart(v, &m);
	front = digits_in_front(size);
	n = scaled(m, shift, digits - front);
	while (digits < 17 && !reads_back(m, shift, n, digits - front)) {
		digits++;
		n = scaled(m, shift, digits - front);
	}
	return text_decimal(v < 0.0, n, digits - front, buf);
}

/* |v| 10^decimals rounded to the nearest whole number, by one multiplication of doubles. Its error is at most
 * 2^-13 as the product is below 2^40, so that it is certain unless the product is near a half. */
static inline bool scaled_at_once(double v, int decimals, uint64_t *out)
{
	double product = fabs(v) * (double)power_of_ten[decimals], rest;

	if (!(product < 1099511627776.0))
		return false;
	*out = (uint64_t)(int64_t)product;
	rest = product - (double)(int64_t)*out;
	*out += rest > 0.5;
	return fabs(rest - 0.5) > 0.001;
}

char *text_fixed_end(double v, int decimals, char *buf)
{
	uint64_t m, n;
	int shift;

	if (!(fabs(v) < MOST)) /* NaN too */
		return buf + strlen(text_shortest(v, buf));
	if (v >= 0.0 && (double)(uint32_t)v == v) /* a batch, a wait of nothing */
		return put_whole(buf, (uint32_t)v);
	if (scaled_at_once(v, decimals, &n))
		return decimal_end(v < 0.0 && n, n, decimals, buf); /* what rounds to nothing has no sign */
	shift = taken_apart(v, &m);
	/* v is below 2^30, so the shift is at least 23; beyond 100 the product is far below a half. */
	n = shift > 100 ? 0 : scaled(m, shift, decimals);
	return decimal_end(v < 0.0 && n, n, decimals, buf);
}

char *text_fixed(double v, int decimals, char *buf)
{
	*text_fixed_end(v, decimals, buf) = '\0';
	return buf;
}
