/* Durations: as people write them in options, files and requests, and as they like to read them. */
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

static int bad_duration(const char *s, struct err *err)
{
	char shown[48];

	return err_fail(
		err, ERR_ARG,
		"'%s' is not a duration: write seconds (90), numbers with us, ms, s, m, h or d (1.5m, "
		"500ms, 1h30m), MM:SS, HH:MM:SS or D-HH:MM:SS",
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

struct unit {
	const char *name;
	double seconds, parts; /* `parts` of them are `seconds`: 1000 ms are 1 s */
};

/* The unit at *at, which moves behind it; NULL: there is none. */
static const struct unit *read_unit(const char **at)
{
	static const struct unit all[] = { { "us", 1, 1e6 }, { "ms", 1, 1e3 }, { "s", 1, 1 },
					   { "min", 60, 1 }, { "m", 60, 1 },   { "h", 3600, 1 },
					   { "d", 86400, 1 } };
	size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strlen(all[i].name) == len && !strncmp(all[i].name, *at, len)) {
			*at += len;
			return &all[i];
		}
	}
	return NULL;
}

/* Blanks between numbers and units are no matter: we print "2 h 05 min" ourselves. Those at the end stay. */
static const char *over_blanks(const char *at)
{
	const char *next = at + strspn(at, " ");

	return *next ? next : at;
}

/* "1.5m", "1h30m", "20 s": each number has its unit, and each unit is smaller than the one before it. */
int text_duration(const char *s, double *out_s, struct err *err)
{
	static const struct unit second = { "", 1, 1 };
	double total = 0.0, v, last = HUGE_VAL;
	const char *at = s;
	char number[64];

	if (strchr(s, ':'))
		return clock_duration(s, out_s, err);
	do {
		size_t len = strspn(at, "0123456789.+-eE");
		const struct unit *u;

		if (len >= sizeof number)
			return bad_duration(s, err);
		memcpy(number, at, len);
		number[len] = '\0';
		at = over_blanks(at + len);
		u = !*at && isinf(last) ? &second : read_unit(&at);
		if (!u || u->seconds / u->parts >= last || !text_number(number, &v) || v < 0.0)
			return bad_duration(s, err);
		total += v * u->seconds / u->parts;
		last = u->seconds / u->parts;
		at = over_blanks(at);
	} while (*at);
	if (!isfinite(total))
		return bad_duration(s, err);
	*out_s = total + 0.0; /* "-0" becomes 0 */
	return 0;
}

/* ---- writing ---- */

char *text_accuracy(double v, char *buf)
{
	if (isnan(v))
		strcpy(buf, "-");
	else
		snprintf(buf, 32, fabs(v) < 1.5 ? "%.4f" : "%.4g", v);
	return buf;
}

/* Three significant digits or all whole ones, never an exponent, no zeros at the end. */
static void print_decimals(char *buf, size_t size, double v, int decimals, const char *unit)
{
	char number[24];

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

static void print_short(char *buf, size_t size, double v, const char *unit)
{
	print_decimals(buf, size, v, v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, unit);
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

char *text_seconds_up(double s, char *buf)
{
	double scale, up;
	int decimals;

	if (!(s >= 0.0) || s >= 1e9)
		return text_seconds(s, buf);
	if (s >= 119.0) { /* in the unit that text_seconds() ends with */
		double unit = s < 7000.0 ? 1.0 : s < 47.0 * 3600.0 ? 60.0 : 3600.0;

		return text_seconds(unit * ceil(s / unit), buf);
	}
	decimals = s > 0.0 ? (int)fmax(0.0, fmin(2.0 - floor(log10(s)), 12.0)) : 0;
	scale = pow(10.0, decimals);
	up = ceil(s * scale);
	print_decimals(buf, 32, up / scale, decimals, "s");
	if (strtod(buf, NULL) < s) /* the product itself was rounded down */
		print_decimals(buf, 32, (up + 1.0) / scale, decimals, "s");
	return buf;
}
