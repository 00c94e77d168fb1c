#include "common/text/text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

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

char *text_shortest(double v, char *buf)
{
	/* 15 digits survive any double's round trip from text, 17 any double's round trip to text. */
	if (v == floor(v) && fabs(v) < 1e15) { /* whole numbers are common and need no trial */
		snprintf(buf, 32, "%.15g", v);
		return buf;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, 32, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	return buf;
}

/* ---- durations ---- */

static int bad_duration(const char *s, struct err *err)
{
	char shown[48];

	return err_fail(err, ERR_ARG,
			"'%s' is not a duration: write seconds (90), a number with s, m, h or d (1.5m), "
			"MM:SS, HH:MM:SS or D-HH:MM:SS",
			text_printable(s, shown, sizeof shown));
}

/* Reads digits at *p; false if there are none or more than nine. */
static bool read_field(const char **p, double *out)
{
	const char *start = *p;
	double v = 0.0;

	for (; is_digit(**p); (*p)++)
		v = v * 10.0 + (**p - '0');
	*out = v;
	return *p > start && *p - start <= 9;
}

static int clock_duration(const char *s, double *out_s, struct err *err)
{
	double field[3], days = 0.0, total;
	const char *p = s;
	int n = 0;
	bool has_days = strchr(s, '-') != NULL;

	if (has_days && (!read_field(&p, &days) || *p++ != '-'))
		return bad_duration(s, err);
	do {
		if (n == 3 || !read_field(&p, &field[n]))
			return bad_duration(s, err);
		/* Only the leading field may run over: "90:00" is an hour and a half, "1:90" a slip. */
		if ((n > 0 && field[n] >= 60.0) || (n == 0 && has_days && field[n] >= 24.0))
			return bad_duration(s, err);
		n++;
	} while (*p == ':' && *p++);
	if (*p != '\0' || n < 2 || (has_days && n != 3))
		return bad_duration(s, err);
	total = n == 3 ? field[0] * 3600.0 + field[1] * 60.0 + field[2] : field[0] * 60.0 + field[1];
	*out_s = days * 86400.0 + total;
	return 0;
}

int text_duration(const char *s, double *out_s, struct err *err)
{
	size_t len = strlen(s);
	double factor = 1.0, v;
	char number[64];

	if (len == 0 || len >= sizeof number)
		return bad_duration(s, err);
	if (strchr(s, ':'))
		return clock_duration(s, out_s, err);
	switch (s[len - 1]) {
	case 's': len--; break;
	case 'm': factor = 60.0, len--; break;
	case 'h': factor = 3600.0, len--; break;
	case 'd': factor = 86400.0, len--; break;
	default: break;
	}
	memcpy(number, s, len);
	number[len] = '\0';
	if (!text_number(number, &v) || v < 0.0 || !isfinite(v * factor))
		return bad_duration(s, err);
	*out_s = v * factor + 0.0; /* "-0" becomes 0 */
	return 0;
}

/* Three significant digits or all whole ones, never an exponent, no zeros at the end. */
static void print_short(char *buf, size_t size, double v, const char *unit)
{
	char number[24];
	int decimals = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;

	snprintf(number, sizeof number, "%.*f", decimals, v);
	if (decimals) {
		size_t len = strlen(number);

		while (number[len - 1] == '0')
			len--;
		if (number[len - 1] == '.')
			len--;
		number[len] = '\0';
	}
	snprintf(buf, size, "%s %s", number, unit);
}

char *text_seconds(double s, char *buf)
{
	char *p = buf;
	size_t size = 32;
	long long whole;

	if (isnan(s)) {
		snprintf(buf, size, "unknown");
		return buf;
	}
	if (s < 0.0) {
		*p++ = '-';
		size--;
		s = -s;
	}
	if (s == 0.0)
		snprintf(p, size, "0 s");
	else if (s < 0.9995e-6)
		snprintf(p, size, "%.3g s", s);
	else if (s < 0.9995e-3)
		print_short(p, size, s * 1e6, "us");
	else if (s < 0.9995)
		print_short(p, size, s * 1e3, "ms");
	else if (s < 119.5)
		print_short(p, size, s, "s");
	else if (s >= 1e9) /* thirty years: digits after that are noise */
		snprintf(p, size, "%.3g d", s / 86400.0);
	else {
		whole = llround(s); /* round first, so that no field shows 60 */
		if (whole < 7200)
			snprintf(p, size, "%lld min %02lld s", whole / 60, whole % 60);
		else if ((whole = (whole + 30) / 60) < 48 * 60)
			snprintf(p, size, "%lld h %02lld min", whole / 60, whole % 60);
		else {
			whole = (whole + 30) / 60;
			snprintf(p, size, "%lld d %02lld h", whole / 24, whole % 24);
		}
	}
	return buf;
}

/* ---- moments ---- */

/* Days since 1970-01-01 of a date of the Gregorian calendar, counting years from March so that the leap day
 * comes last. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static char *put_digits(char *at, int64_t v, int n)
{
	for (int i = n; i-- > 0; v /= 10)
		at[i] = (char)('0' + v % 10);
	return at + n;
}

char *text_utc(int64_t ns, char *buf)
{
	int64_t us = ns / 1000 - (ns % 1000 < 0), second = us / 1000000 - (us % 1000000 < 0);
	int64_t day = second / 86400 - (second % 86400 < 0), of_day = second - day * 86400;
	int64_t z = day + 719468, era = z / 146097, of_era = z - era * 146097; /* years 0 and later only */
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t m = (5 * of_year + 2) / 153, month = m < 10 ? m + 3 : m - 9;
	char *at = put_digits(buf, year_of_era + era * 400 + (month <= 2), 4);

	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	at = put_digits(at, of_year - (153 * m + 2) / 5 + 1, 2);
	*at++ = 'T';
	at = put_digits(at, of_day / 3600, 2);
	*at++ = ':';
	at = put_digits(at, of_day / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, of_day % 60, 2);
	*at++ = '.';
	at = put_digits(at, us - second * 1000000, 6);
	strcpy(at, "Z");
	return buf;
}

/* n digits at *s, which moves behind them; -1: they are not there. */
static int take_digits(const char **s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!is_digit(**s))
			return -1;
		v = 10 * v + (**s - '0');
	}
	return v;
}

static bool take_char(const char **s, const char *any)
{
	if (!**s || !strchr(any, **s))
		return false;
	(*s)++;
	return true;
}

bool text_utc_parse(const char *s, int64_t *out_ns)
{
	static const int length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day, hour, minute, second, offset = 0, sign, h, m;
	int64_t fraction = 0, unit = 100000000;
	bool leap;

	if ((year = take_digits(&s, 4)) < 0 || !take_char(&s, "-") || (month = take_digits(&s, 2)) < 0 ||
	    !take_char(&s, "-") || (day = take_digits(&s, 2)) < 0 || !take_char(&s, "Tt ") ||
	    (hour = take_digits(&s, 2)) < 0 || !take_char(&s, ":") || (minute = take_digits(&s, 2)) < 0 ||
	    !take_char(&s, ":") || (second = take_digits(&s, 2)) < 0)
		return false;
	if (*s == '.') {
		s++;
		if (!is_digit(*s))
			return false;
		for (; is_digit(*s); s++, unit /= 10)
			fraction += unit * (*s - '0');
	}
	if (*s == '+' || *s == '-') {
		sign = *s++ == '-' ? -1 : 1;
		if ((h = take_digits(&s, 2)) < 0 || !take_char(&s, ":") || (m = take_digits(&s, 2)) < 0 ||
		    h > 23 || m > 59)
			return false;
		offset = sign * (60 * h + m);
	} else if (!take_char(&s, "Zz")) {
		return false;
	}
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (*s || year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 ||
	    day > length[month - 1] + (month == 2 && leap) || hour > 23 || minute > 59 || second > 60)
		return false;
	*out_ns = ((days_of(year, month, day) * 1440 + hour * 60 + minute - offset) * 60 + second) *
			  1000000000 +
		  fraction;
	return true;
}

/* ---- names ---- */

#define NEAREST_MAX 64 /* longer names are compared by nobody's eye */

static char fold(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* Edit distance where swapping two neighbours counts once (optimal string alignment). */
static int edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	int row[3][NEAREST_MAX + 1];
	int *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= n_b; j++)
		last[j] = (int)j;
	for (size_t i = 1; i <= n_a; i++) {
		int *t;

		now[0] = (int)i;
		for (size_t j = 1; j <= n_b; j++) {
			int best = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		t = before;
		before = last;
		last = now;
		now = t;
	}
	return last[n_b];
}

const char *text_nearest(const char *s, const char *const *names)
{
	size_t n_s = strlen(s);
	const char *best = NULL;
	int best_distance = 0;

	if (n_s == 0 || n_s > NEAREST_MAX)
		return NULL;
	for (; *names; names++) {
		size_t n = strlen(*names), longer = n > n_s ? n : n_s;
		int distance;

		if (n > NEAREST_MAX)
			continue;
		distance = edit_distance(s, n_s, *names, n);
		/* One slip in three letters still looks like the word that was meant. */
		if (distance > (int)(longer + 2) / 3 || distance >= (int)longer)
			continue;
		if (!best || distance < best_distance) {
			best = *names;
			best_distance = distance;
		}
	}
	return best;
}

char *text_printable(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++) {
		unsigned char c = (unsigned char)*s;

		buf[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	if (*s && n >= 3) { /* cut: whole characters only, and say so */
		n -= 3;
		while (n > 0 && ((unsigned char)buf[n] & 0xc0) == 0x80)
			n--;
		memcpy(buf + n, "...", 3);
		n += 3;
	}
	buf[n] = '\0';
	return buf;
}

const char *text_tail(const char *s, size_t max)
{
	size_t len = strlen(s);

	return len > max ? s + len - max : s;
}
